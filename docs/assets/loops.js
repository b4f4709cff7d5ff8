/* Train a walker here: one layer in as many loops as the visitor chooses, on a ring of eight letters.
   The model is minidepth.js, the training training.js. */

import { drawing, make } from "./elements.js"
import { button, curves, percent, Run, saveLink, seedField } from "./running.js"

const GUESS = 1 / 7 // any other letter of the ring
const PAIRS = 16 // tokens, which come before the questions
const COLOURS = ["var(--head-1)", "var(--head-2)", "var(--goal)", "var(--md-default-fg-color)"]
const RIGHT = 0.9

const times = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`

function start(root) {
  let run = null
  let steps = 500
  const told = []
  const seed = seedField()
  const chart = drawing()
  chart.setAttribute("role", "img")
  const state = make("p", { class: "said", "aria-live": "polite" })
  const further = make("p", { class: "said" })
  const file = make("p", { class: "said" })
  const options = [2, 3, 4, 5].map((n) =>
    make("option", { value: n, selected: n === 4 && "" }, `${n} loops`),
  )
  const loops = make("select", { "aria-label": "how many loops" }, ...options)
  const once = make("input", { type: "checkbox" })
  const readOnce = make("label", {}, once, " read once: the pairs stay as the first loop leaves them")
  const train = button("Train it", begin)
  train.classList.add("ask")
  const stop = button("Stop", () => run.stop())
  const another = button("Another seed", () => {
    seed.another()
    begin()
  })

  function allow(on) {
    train.disabled = another.disabled = loops.disabled = once.disabled = on
    stop.disabled = !on
    seed.allow(!on)
  }

  function begin() {
    run?.end()
    told.length = 0
    file.replaceChildren()
    further.textContent = ""
    const changes = { n_loops: Number(loops.value), loop_keeps: once.checked ? PAIRS : 0 }
    const about = { task: "walk", changes, seed: seed.read() }
    run = new Run(about, heard)
    state.textContent = "The worker begins …"
    allow(true)
  }

  function heard(report) {
    if (report.error) {
      state.textContent = `This browser does not train here: ${report.error}`
      return
    }
    told.push(report)
    steps = report.steps
    show(report)
    if (!report.ended) return
    allow(false)
    const kind = once.checked ? "-read-once" : ""
    const name = `minidepth-${loops.value}-loops${kind}-seed-${seed.read()}.safetensors`
    file.replaceChildren(saveLink("Download its weights", report.file, name))
    further.textContent = lookFurther(report)
  }

  const shares = ({ accuracy }) => Object.entries(accuracy).map(([loop, share]) => [loop - 1, share])

  function show(report) {
    const lines = shares(report).map(([hops], i) => {
      const points = told.map(({ step, accuracy }) => [step, accuracy[hops + 1]])
      return { name: times(hops, "hop"), colour: COLOURS[i], points }
    })
    curves(chart, lines, steps, GUESS)
    chart.setAttribute("aria-label", "accuracy for each number of hops; the text below says it")
    const each = shares(report).map(([hops, share]) => `${times(hops, "hop")} ${percent(share)}`)
    state.textContent = `Step ${report.step} of ${steps}: ${each.join(", ")} right.`
  }

  /** What the trained model does in more loops than it was trained with. */
  function lookFurther({ far, step }) {
    const trained = Number(loops.value) - 1
    const hops = Object.entries(far).map(([loop, share]) => [loop - 1, share])
    const first = hops.find(([, share]) => share < RIGHT)
    const reached = first ? first[0] - 1 : hops.length
    const list = hops.filter(([n]) => (n > trained && n <= trained + 4) || n === hops.length)
    const beyond = list.map(([n, share]) => `${times(n, "hop")} ${percent(share)}`).join(", ")
    let text = `Looped on, without more training: ${beyond}. `
    const all = first ? "" : "all " // that were tried
    text += `It is right in nine of ten questions or more up to ${all}${times(reached, "hop")}`
    text += step < steps ? "; you stopped before the end." : `, and was trained to ${trained}.`
    return text
  }

  const row = (...items) => make("div", { class: "buttons", role: "group" }, ...items)
  const choice = make("p", {}, readOnce)
  root.replaceChildren(row(loops, train, stop, another, seed.label), choice, state, chart, further, file)
  curves(chart, [], steps, GUESS)
  allow(false)
}

document.querySelectorAll(".widget.loops").forEach(start)
