/* A run of the visitor's own: its weights, model.safetensors, with its settings, config.json, or a file
   that a box of this site saved, which has both. It is read in the page and sent nowhere. */

import { GPT, readHeader, readSafetensors } from "./minidepth.js"

const NEEDS = "a walk of attention alone, with learned positions: python train.py --preset walk"

/** Files → {model, ring: letters on its ring, hops: to which it was trained}. An Error says what is
    missing. */
export async function ownWalk(files) {
  const named = (end) => [...files].find(({ name }) => name.endsWith(end))
  const weights = named(".safetensors")
  if (!weights) throw new Error("there is no file that ends in .safetensors")
  const buffer = await weights.arrayBuffer()
  const about = readHeader(buffer).header.__metadata__ ?? {}
  const beside = named("config.json")
  const text = beside ? await beside.text() : about.config
  if (!text) throw new Error("its config.json is needed, too: choose both files at once")
  const settings = JSON.parse(text)
  const config = settings.model ?? settings
  const ring = config.vocab_size / 2 // as the task walk has it: so many letters are told of as many
  const walks = String(settings.train?.data ?? "walk") === "walk" && config.block_size >= 3 * ring
  if (!walks || config.d_ff || config.bias || config.position !== "learned")
    throw new Error(`this box runs ${NEEDS}`)
  return { model: new GPT(config, readSafetensors(buffer)), ring, hops: config.n_loops - 1 }
}
