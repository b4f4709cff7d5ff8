/* A run of the visitor's own: its weights, model.safetensors, with its settings, config.json, or a file
   that a box of this site saved, which has both. It is read in the page and sent nowhere. */

import { button, make } from "./elements.js"
import { GPT, readHeader, readSafetensors, shapes } from "./minidepth.js"

const NEEDS = "of attention alone, with learned positions: python train.py --preset"

// the sizes of the task ring, where a run names no others
const RING = { letters: "16", ring: "8", lengths: "1+2", answer: "direct" }

/** What `read` gives; an Error names what it could not read. */
function readable(name, read) {
  try {
    return read()
  } catch {
    throw new Error(`${name} cannot be read`)
  }
}

/** Files → {model, task, sizes: those of its task, by name}. An Error says what is missing. */
async function ownRun(files) {
  const named = (end) => [...files].find(({ name }) => name.endsWith(end))
  const weights = named(".safetensors")
  if (!weights) throw new Error("there is no file that ends in .safetensors")
  const buffer = await weights.arrayBuffer()
  const about = readable(weights.name, () => readHeader(buffer).header.__metadata__ ?? {})
  const beside = named("config.json")
  const text = beside ? await beside.text() : (about.config ?? about["run/config.json"])
  if (!text) throw new Error("its config.json is needed, too: choose both files at once")
  const settings = readable("config.json", () => JSON.parse(text))
  const config = settings.model ?? settings
  if (config.d_ff || config.bias || config.position !== "learned")
    throw new Error(`this box runs models ${NEEDS} walk or ring`)
  const sizes = Object.fromEntries((settings.train?.sizes ?? []).map((each) => each.split("=")))
  const model = new GPT(config, readSafetensors(buffer))
  for (const [name, shape] of Object.entries(shapes(config)))
    if (`${model.weights[name]?.shape}` !== `${shape}`)
      throw new Error("these weights are not of the model that config.json describes")
  return { model, task: String(settings.train?.data ?? "walk"), sizes }
}

/** Files → {model, ring: letters on its ring, hops: to which it was trained}. */
export async function ownWalk(files) {
  const { model, task } = await ownRun(files)
  const { vocab_size, block_size, n_loops } = model.config
  const ring = vocab_size / 2 // as the task walk has it: so many letters are told of as many
  if (task !== "walk" || block_size < 3 * ring) throw new Error(`this box runs a walk ${NEEDS} walk`)
  return { model, ring, hops: n_loops - 1 }
}

/** Files → {model, letters: of how many, ring: how many stand on one, hops: [those that it knows]}. */
export async function ownRing(files) {
  const { model, task, sizes } = await ownRun(files)
  const { letters, ring, lengths, answer } = { ...RING, ...sizes }
  if (task !== "ring" || answer !== "direct")
    throw new Error(`this box runs a ring that is answered directly, ${NEEDS} ring`)
  const hops = lengths.split("+").map(Number)
  return { model, letters: Number(letters), ring: Number(ring), hops }
}

/** A line that takes a visitor's files, chosen or dropped on the box, and gives them to `take`; its
    button, "Back to ours", gives it null. `take` says whether it could run them. */
export function chooseOwn(box, asks, take) {
  const input = { type: "file", multiple: "", accept: ".safetensors,.json" }
  const files = make("input", { ...input, onchange: (event) => given(event.target.files) })
  const back = button("Back to ours", () => {
    files.value = "" // so that the same file can be chosen again
    given(null)
  })
  back.hidden = true
  const given = async (files) => {
    if (await take(files)) back.hidden = !files
  }
  box.addEventListener("dragover", (event) => event.preventDefault())
  box.addEventListener("drop", (event) => {
    event.preventDefault()
    given(event.dataTransfer.files)
  })
  return make("p", { class: "said" }, make("label", {}, asks, files), " ", back)
}
