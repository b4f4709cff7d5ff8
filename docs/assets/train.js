/* Train it here: one layer and two layers side by side, each in a worker, on in-context questions.
   The model is minidepth.js, the training training.js. */

import { copyLink, inAddress } from "./address.js"
import { button, drawing, make, percent } from "./elements.js"
import { COLOURS, drawLooks } from "./lines.js"
import { curves, overSteps, Run, saveLink, seedField, TrainButton } from "./running.js"

const GUESS = 1 / 8 // any of the answers that are shown
const LEARNED = 0.9
const LOOK = ["var(--one-layer)", "var(--two-layers)"] // as figures have them
const WHO = ["one layer", "two layers"]
const PREDICTIONS = { "one layer": [true, false], "two layers": [false, true], both: [true, true] }
PREDICTIONS.neither = [false, false]

const name = (token) => (token < 16 ? `q${token}` : `a${token - 16}`)

const row = (label, ...items) =>
  make("div", { class: "buttons", role: "group", "aria-label": label }, ...items)

function start(root) {
  let predicted = null // a key of PREDICTIONS
  let runs = []
  let steps = 150 // as the workers tell it
  const told = [[], []] // what each run has told
  const seed = seedField()
  const chart = drawing()
  const looks = [drawing(), drawing()]
  for (const svg of [chart, ...looks]) svg.setAttribute("role", "img")
  looks.forEach((svg) => svg.setAttribute("aria-label", "attention as lines; nothing is trained yet"))
  chart.setAttribute("aria-label", "accuracy over training steps; nothing is trained yet")
  const state = make("p", { class: "said", "aria-live": "polite" })
  const example = make("p", { class: "said" })
  const files = make("p", { class: "said" })
  const heads = make("div", { hidden: "" })
  const choices = Object.keys(PREDICTIONS).map((text) => button(text, () => predict(text)))
  const train = new TrainButton("Train both", begin, () => runs.forEach((run) => run.stop()), state)
  const another = button("Another seed", () => {
    seed.another()
    begin()
  })
  const { seed: linked } = inAddress("train")
  if (linked) seed.set(linked)

  function predict(text) {
    predicted = text
    for (const each of choices) each.setAttribute("aria-pressed", each.textContent === text)
    allow()
    state.textContent = "Now train both."
  }

  const running = () => runs.some((run) => !run.ended)

  function allow() {
    const on = running()
    choices.forEach((each) => (each.disabled = on || told[0].length > 0))
    train.root.disabled = another.disabled = !predicted
    train.show(on)
    seed.allow(!on)
  }

  function begin() {
    runs.forEach((run) => run.end())
    told.forEach((list) => (list.length = 0))
    files.replaceChildren()
    heads.hidden = true
    const number = seed.read()
    runs = [1, 2].map((n_layers, i) => {
      const about = { task: "questions", changes: { n_layers }, seed: number }
      return new Run(about, (report) => heard(i, report))
    })
    state.textContent = "Both begin …"
    allow()
  }

  function heard(i, report) {
    if (report.error) {
      state.textContent = `This browser does not train here: ${report.error}`
      runs.forEach((run) => run.end())
      return allow()
    }
    if (report.without) return showWithout(report)
    told[i].push(report)
    steps = report.steps
    if (report.ended) {
      const file = `minidepth-${i + 1}-layer${i ? "s" : ""}-seed-${seed.read()}.safetensors`
      if (i === 1) offerHeads()
      const link = saveLink(`Download the weights of ${WHO[i]}`, report.file, file)
      files.append(files.childNodes.length ? " · " : "", link)
      allow()
    }
    show()
  }

  const withoutHeads = make("p", { class: "said", "aria-live": "polite" })

  /** The heads of the two layers, to be switched off in the model that is trained now. */
  function offerHeads() {
    const off = new Set()
    const ask = () => runs[1].without([...off].map((n) => [n >> 1, n % 2]))
    const buttons = [0, 1, 2, 3].map((n) => {
      const each = button(`layer ${(n >> 1) + 1}, head ${(n % 2) + 1}`, () => {
        if (!off.delete(n)) off.add(n)
        each.setAttribute("aria-pressed", off.has(n))
        ask()
      })
      each.setAttribute("aria-pressed", false)
      return each
    })
    heads.replaceChildren(row("heads", "Switch off", ...buttons), withoutHeads)
    heads.hidden = false
    ask()
  }

  function showWithout({ without, share }) {
    const which = ["With all heads", "Without this head"][without.length] ?? "Without these heads"
    withoutHeads.textContent = `${which}, two layers answer ${percent(share)} of new questions right.`
  }

  function show() {
    const lines = told.map((list, i) => {
      const points = list.map(({ step, accuracy }) => [step, accuracy[1]])
      return { name: WHO[i], colour: LOOK[i], dash: i ? undefined : "6 4", points }
    })
    curves(chart, lines, GUESS, overSteps(steps))
    chart.setAttribute("aria-label", "accuracy of both models; the text below says it")
    looking.hidden = false
    told.forEach((list, i) => list.length && picture(looks[i], list.at(-1).example))
    state.textContent = running() ? progress() : outcome()
    if (told[1].length) example.textContent = exampleWords()
  }

  function picture(svg, { tokens, targets, maps }) {
    drawLooks(svg, {
      tokens: tokens.map(name),
      asked: targets.length,
      query: targets[0].place,
      L: maps.length,
      heads: [true, true],
      weight: (layer, head, from, key) => maps[layer][from][head][key] ?? 0,
      narrow: root.clientWidth < 600,
      apart: 62, // both models stand side by side on a phone
    })
  }

  const now = (i) => told[i].at(-1)

  function progress() {
    const part = (i) => {
      const { step, accuracy } = now(i)
      return `${WHO[i]}: step ${step} of ${steps}, ${percent(accuracy[1])} right`
    }
    return `${[0, 1].filter(now).map(part).join("; ")}.`
  }

  /** What came out, beside what was predicted. */
  function outcome() {
    const shares = [0, 1].map((i) => now(i).accuracy[1])
    const learned = shares.map((share) => share >= LEARNED)
    const held = PREDICTIONS[predicted].every((yes, i) => yes === learned[i])
    const after = now(0).step === now(1).step ? now(1).step : `${now(0).step} and ${now(1).step}`
    let text = `After ${after} steps and ${Math.round(now(1).seconds)} seconds one layer answers `
    text += `${percent(shares[0])} of new questions right, two layers ${percent(shares[1])}. `
    if (now(1).step < steps) return `${text}You stopped before the end.`
    text += `You had said “${predicted}”: your prediction ${held ? "held" : "was wrong"}. `
    return `${text}(One in eight, 13 %, is what guessing among the answers shown gives.)`
  }

  function exampleWords() {
    const { tokens, targets, shares } = now(1).example
    const best = shares[0].indexOf(Math.max(...shares[0]))
    const [asked, right] = [name(tokens[targets[0].place]), name(targets[0].token)]
    const verdict = best === targets[0].token ? "which is right" : `which is wrong: it is ${right}`
    return `${asked} is asked, and two layers answer ${name(best)}, ${verdict}.`
  }

  const link = copyLink("train", () => ({ seed: seed.read() }))
  const line = (colour, text) =>
    make("span", {}, make("span", { class: "line", style: `background: ${colour}` }), ` ${text} `)
  const legend = make("p", { class: "said" }, ...COLOURS.map((c, i) => line(c, `head ${i + 1}`)))
  const title = make("p", { class: "title" }, "What one question looks at")
  const looking = make("div", { hidden: "" }, title, example, legend)
  looking.append(make("div", { class: "pair" }, ...looks))
  root.replaceChildren(
    row("your prediction", "Which will learn to answer?", ...choices),
    row("training", train.root, another, seed.label, link),
    state,
    chart,
    files,
    heads,
    looking,
  )
  state.textContent = "Choose first. Then train both."
  curves(chart, [], GUESS, overSteps(steps))
  allow()
  if (linked) root.scrollIntoView({ block: "center" })
  addEventListener("resize", () => told[0].length && told[1].length && show())
}

document.querySelectorAll(".widget.train").forEach(start)
