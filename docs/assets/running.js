/* What the boxes that train in the page share: a model in training beside the page, a button, a seed,
   and curves of accuracy. */

import { button, draw, make, percent } from "./elements.js"

/** A training in a worker of its own, by trainer.js: `heard` is given what it tells. It waits while
    the page is hidden. */
export class Run {
  constructor(about, heard) {
    this.worker = new Worker(new URL("trainer.js", import.meta.url), { type: "module" })
    this.worker.onmessage = ({ data }) => {
      if (data.ended) this.ended = true
      heard(data)
    }
    this.worker.onerror = (event) => {
      this.end()
      heard({ error: event.message || "the worker did not start" })
    }
    this.onHidden = () => this.worker.postMessage({ pause: document.hidden })
    document.addEventListener("visibilitychange", this.onHidden)
    this.worker.postMessage({ ...about, pause: document.hidden })
  }

  /** The model stays as it is now, and its weights are told. */
  stop() {
    this.worker.postMessage({ stop: true })
  }

  /** How often the trained model is right without some heads, is asked. */
  without(heads) {
    this.worker.postMessage({ without: heads })
  }

  /** No more is told. */
  end() {
    this.ended = true
    document.removeEventListener("visibilitychange", this.onHidden)
    this.worker.terminate()
  }
}

/** One button that begins a training and stops it: so the focus stays where it is. While it trains,
    what is said is not read aloud. */
export class TrainButton {
  constructor(text, begin, stop, said) {
    Object.assign(this, { text, said, running: false })
    this.root = button(text, () => {
      if (!this.running) return begin()
      this.root.textContent = "Stopping …"
      stop()
    })
    this.root.classList.add("ask")
  }

  show(running) {
    this.running = running
    this.root.textContent = running ? "Stop" : this.text
    this.said.setAttribute("aria-live", running ? "off" : "polite")
  }
}

/** A field for the visitor's own seed, a whole number. */
export function seedField() {
  const field = { type: "number", min: 0, max: 999999, step: 1, value: 1 }
  const input = make("input", field)
  return {
    label: make("label", { class: "seed" }, "your seed ", input),
    read() {
      // the number, made a possible one
      const seed = Math.floor(Math.abs(Number(input.value))) % 1000000 || 0
      input.value = seed
      return seed
    },
    set: (number) => (input.value = number),
    another: () => (input.value = Math.floor(Math.random() * 1000000)),
    allow: (yes) => (input.disabled = !yes),
  }
}

/** A link that saves a file under this name. */
export function saveLink(text, bytes, name) {
  const blob = new Blob([bytes], { type: "application/octet-stream" })
  return make("a", { href: URL.createObjectURL(blob), download: name }, text)
}

/** Curves of accuracy. lines: [{name, colour, dash, points: [[at, share]]}], named where they end.
    `along` has what lies along the foot: {text, ticks, from, scale}, where `scale` of a number is
    what its place is in proportion to. */
export function curves(svg, lines, guess, { text, ticks, from = 0, scale = (n) => n }) {
  const narrow = (svg.parentNode?.clientWidth ?? 640) < 600 // there its text would be too small
  const [width, height, left, right, top, foot] = [narrow ? 300 : 480, 190, 44, 98, 12, 34]
  const until = ticks.at(-1)
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`)
  svg.replaceChildren()
  const part = (at) => (scale(at) - scale(from)) / (scale(until) - scale(from))
  const x = (at) => left + (width - left - right) * part(at)
  const y = (share) => top + (height - top - foot) * (1 - share)
  for (const share of [0, 0.5, 1]) {
    draw(svg, "line", { class: "axis", x1: left, x2: x(until), y1: y(share), y2: y(share) })
    draw(svg, "text", { x: left - 6, y: y(share) + 4, "text-anchor": "end" }, percent(share))
  }
  const at = { x1: left, x2: x(until), y1: y(guess), y2: y(guess) }
  draw(svg, "line", { class: "axis", "stroke-dasharray": "2 4", ...at })
  draw(svg, "text", { x: left - 6, y: y(guess) + 4, "text-anchor": "end" }, "guess")
  for (const tick of ticks)
    draw(svg, "text", { x: x(tick), y: height - 20, "text-anchor": "middle" }, Math.round(tick))
  draw(svg, "text", { x: (left + x(until)) / 2, y: height - 4, "text-anchor": "middle" }, text)
  const taken = [] // heights of names, which must not lie on each other
  const last = ({ points }) => points.at(-1)?.[1] ?? 0
  for (const line of [...lines].sort((a, b) => last(b) - last(a))) {
    const { name, colour, dash, points } = line
    if (!points.length) continue
    const path = points.map(([at, share]) => `${x(at).toFixed(1)},${y(share).toFixed(1)}`)
    const look = { fill: "none", "stroke-width": 2.5, "stroke-dasharray": dash ?? "none" }
    draw(svg, "polyline", { points: path.join(" "), ...look, style: `stroke: ${colour}` })
    let beside = y(points.at(-1)[1]) + 4
    while (taken.some((other) => Math.abs(other - beside) < 13)) beside += 1
    taken.push(beside)
    if (!name) continue
    const [end, style] = [x(points.at(-1)[0]), `stroke: ${colour}`]
    const sample = { x1: end + 5, x2: end + 24, y1: beside - 4, y2: beside - 4, style }
    draw(svg, "line", { "stroke-width": 2.5, "stroke-dasharray": dash ?? "none", ...sample })
    draw(svg, "text", { x: end + 28, y: beside }, name)
  }
}

/** What lies along the foot of curves over training. */
export const overSteps = (steps) => ({ text: "training step", ticks: [0, steps / 2, steps] })
