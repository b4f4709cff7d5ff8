/* Train a walker here: one layer in as many loops as the visitor chooses, on a ring of eight letters,
   with pairs that change in each loop or that are read once. What each run does when it is looped on
   is kept, so that runs can be compared. The model is minidepth.js, the training training.js. */

import { copyLink, inAddress, toAddress } from "./address.js"
import { button, drawing, make, percent, times } from "./elements.js"
import { curves, overSteps, Run, saveLink, seedField, TrainButton } from "./running.js"

const GUESS = 1 / 7 // any other letter of the ring
const PAIRS = 16 // tokens, which come before the questions
const RIGHT = 0.9
const LOOPS = [2, 3, 4, 5]
const HOPS = [["var(--look-4)", "none"], ["var(--look-3)", "8 3"], ["var(--look-2)", "4 3"],
  ["var(--look-1)", "1.5 3"]] // the look of the curve of one hop, of two, …
const FAR = { text: "hops, looped on", ticks: [1, 2, 4, 8, 16, 32, 100], from: 1, scale: Math.log }
const KEPT = 6 // runs

const byHops = (byLoop) => Object.entries(byLoop).map(([loop, share]) => [loop - 1, share])

function start(root) {
  let run = null
  let steps = 500
  let about = null // what the run in training is: {loops, once, number}
  const told = []
  let kept = [] // of each run that has ended: what it is, and far: [[hops, share]]
  const seed = seedField()
  const chart = drawing()
  const farChart = drawing()
  for (const svg of [chart, farChart]) svg.setAttribute("role", "img")
  chart.setAttribute("aria-label", "accuracy over training steps; nothing is trained yet")
  farChart.setAttribute("aria-label", "accuracy over hops; no run has ended yet")
  const state = make("p", { class: "said", "aria-live": "polite" })
  const further = make("p", { class: "said", "aria-live": "polite" })
  const file = make("p", { class: "said" })
  const list = make("ul", { class: "said" })
  const option = (n) => make("option", { value: n, selected: n === 4 && "" }, `${n} loops`)
  const options = LOOPS.map(option)
  const loops = make("select", { "aria-label": "how many loops", onchange: chosen }, ...options)
  const once = make("input", { type: "checkbox", onchange: chosen })
  const name = make("strong", {}, "read once")
  const readOnce = make("label", {}, once, " ", name, ": the pairs stay as the first loop leaves them")
  const few = make("p", { class: "said" })
  const train = new TrainButton("Train it", begin, () => run.stop(), state)
  const another = button("Another seed", () => {
    seed.another()
    begin()
  })
  const clear = button("Forget these runs", () => {
    kept = []
    showFar()
    train.root.focus() // this button is gone
  })
  const title = make("p", { class: "title" }, "Looped on, without more training")
  const looked = make("div", { hidden: "" }, title)

  const settings = () => ({ loops: loops.value, once: Number(once.checked), seed: seed.read() })

  /** A link opens the box as it was. */
  const linked = inAddress("loops")
  if (LOOPS.includes(Number(linked.loops))) loops.value = linked.loops
  once.checked = linked.once === "1"
  if (linked.seed) seed.set(linked.seed)

  function chosen() {
    const fails = once.checked && Number(loops.value) < 4
    const text = "With two or three loops reading once fails: train with four or five."
    few.textContent = fails ? text : ""
  }

  function allow(on) {
    train.show(on)
    loops.disabled = once.disabled = on
    seed.allow(!on)
  }

  function begin() {
    run?.end()
    told.length = 0
    file.replaceChildren()
    further.textContent = ""
    about = { loops: Number(loops.value), once: once.checked, number: seed.read() }
    toAddress("loops", settings())
    const changes = { n_loops: about.loops, loop_keeps: about.once ? PAIRS : 0 }
    run = new Run({ task: "walk", changes, seed: about.number }, heard)
    state.textContent = "It begins …"
    allow(true)
  }

  const kind = ({ loops, once, number }) =>
    `${once ? "read once" : "pairs that change"}, ${loops} loops, seed ${number}`

  function heard(report) {
    if (report.error) {
      state.textContent = `This browser does not train here: ${report.error}`
      return allow(false)
    }
    if (report.far) {
      kept = [...kept, { ...about, far: byHops(report.far), stopped: told.at(-1).step < steps }]
      kept = kept.slice(-KEPT)
      further.textContent = lookFurther(kept.at(-1))
      showFar()
      return
    }
    told.push(report)
    steps = report.steps
    show(report)
    if (!report.ended) return
    allow(false)
    const kind = `${about.loops}-loops${about.once ? "-read-once" : ""}`
    const save = `minidepth-${kind}-seed-${about.number}`
    file.replaceChildren(saveLink("Download its weights", report.file, `${save}.safetensors`))
    further.textContent = "Now it is looped on, for a hundred hops …"
  }

  function show(report) {
    const now = byHops(report.accuracy)
    const lines = now.map(([hops], i) => {
      const points = told.map(({ step, accuracy }) => [step, accuracy[hops + 1]])
      return { name: times(hops, "hop"), colour: HOPS[i][0], dash: HOPS[i][1], points }
    })
    curves(chart, lines, GUESS, overSteps(steps))
    chart.setAttribute("aria-label", "accuracy for each number of hops; the text above says it")
    const each = now.map(([hops, share]) => `${times(hops, "hop")} ${percent(share)}`)
    const when = `Step ${report.step} of ${steps}, ${Math.round(report.seconds)} s`
    state.textContent = `${when}: ${each.join(", ")} right.`
  }

  /** Of each run that was kept, how often it is right so many hops on. */
  function showFar() {
    const look = ({ once }) =>
      once ? { colour: "var(--goal)", dash: "none" } : { colour: "var(--start)", dash: "6 4" }
    const lines = kept.map((each) => ({ ...look(each), name: "", points: each.far }))
    curves(farChart, lines, GUESS, FAR)
    farChart.setAttribute("aria-label", "accuracy over hops for each run; the list below says it")
    const item = (each) => {
      const style = `border-top: 3px ${each.once ? "solid" : "dashed"} ${look(each).colour}`
      const line = make("span", { class: "line", style })
      return make("li", {}, line, ` ${kind(each)}: ${reached(each)}`)
    }
    list.replaceChildren(...kept.map(item))
    looked.hidden = !kept.length
  }

  /** How far a run is right, in words. */
  function reached({ far }) {
    const first = far.find(([, share]) => share < RIGHT)
    const last = far.at(-1)[0]
    const until = first ? `up to ${times(first[0] - 1, "hop")}` : `at every one of ${last} hops`
    return `right ${until}, and in ${percent(far.at(-1)[1])} of the questions at ${last}`
  }

  /** What the trained model does in more loops than it was trained with. */
  function lookFurther(each) {
    const { stopped, once, loops } = each
    let text = `Looped on, it is ${reached(each)}. `
    text += stopped ? "You stopped before the end." : `It was trained to ${times(loops - 1, "hop")}.`
    if (!once && !stopped && loops > 3) text += " Now tick “read once”, and train the same seed."
    return text
  }

  const row = (...items) => make("div", { class: "buttons" }, ...items)
  const nine = "Here a run is right where nine of ten of its answers are."
  const rule = make("p", { class: "said" }, nine)
  looked.append(farChart, list, rule, row(clear))
  root.replaceChildren(
    row(loops, readOnce),
    few,
    row(train.root, another, seed.label, copyLink("loops", settings)),
    state,
    chart,
    further,
    looked,
    file,
  )
  curves(chart, [], GUESS, overSteps(steps))
  chosen()
  allow(false)
  if (Object.keys(linked).length) root.scrollIntoView({ block: "center" })
}

document.querySelectorAll(".widget.loops").forEach(start)
