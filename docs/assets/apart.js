/* Take it apart: a stored model that walks a ring of sixteen letters is asked from two of them, and
   the reader skips loops, or swaps the states of the two questions after a loop. The data come from
   further() in docs/site/minidepth_site/widgets.py. */

import { button, draw, drawing, drawTrack, make, times } from "./elements.js"
import { drawnRing, LETTERS, loadModel, shuffled, Walk } from "./walking.js"

const APART = 5 // hops from the first letter that is asked to the second
const MIDDLE = 150 // of the picture
const RADIUS = 122
const WHICH = ["first", "second"] // of the two questions

async function start(root) {
  const data = JSON.parse(root.querySelector("script").textContent)
  const { ring: size, hops } = data
  const loops = hops + 1
  const about = data.models[data.first[0]]
  const said = make("p", { class: "said", "aria-live": "polite" })
  const table = make("table", { class: "taken-apart" })
  const svg = drawing()
  svg.setAttribute("viewBox", "0 0 300 300")
  svg.setAttribute("role", "img")
  svg.setAttribute("aria-label", "a ring of letters; the text below says where both questions end")
  const skipped = new Set() // loops
  let swapped = null // the loop after which the states are swapped
  let ring, tokens
  let model
  try {
    model = await loadModel(about.config, about.weights)
  } catch (error) {
    root.append(make("p", {}, `The model could not be loaded: ${error.message}`))
    return
  }

  function another() {
    ring = drawnRing(size)
    const pairs = shuffled(ring.map((_, i) => i)).flatMap((i) => [ring[i], ring[(i + 1) % size]])
    tokens = [...pairs, ...ring] // every letter is asked, in the order of the ring
    show()
  }

  const asked = [0, APART] // places in the ring
  const place = (i) => 2 * size + i // of a letter's question in the sequence

  /** What both questions hold after each loop: [[answers of a loop]], from no loop on. */
  function walked() {
    const walk = new Walk(model, tokens)
    const held = () => asked.map((i) => walk.answer(place(i)))
    const list = [held()]
    for (let loop = 1; loop <= loops; loop++) {
      walk.step(skipped.has(loop) ? asked.map(place) : [])
      if (swapped === loop) walk.swap(...asked.map(place))
      list.push(held())
    }
    return list
  }

  function toggle(loop) {
    if (!skipped.delete(loop)) skipped.add(loop)
    show()
  }

  function swap(loop) {
    swapped = swapped === loop ? null : loop
    show()
  }

  function show() {
    const list = walked()
    const focused = document.activeElement?.getAttribute("aria-label")
    const all = Array.from({ length: loops }, (_, i) => i + 1)
    const cell = (label, text, pressed, onclick) => {
      const about = { type: "button", "aria-label": label, "aria-pressed": pressed, onclick }
      return make("td", {}, make("button", about, text))
    }
    const skips = all.map((n) =>
      cell(`skip loop ${n}`, n, skipped.has(n), () => toggle(n)),
    )
    const swaps = all.map((n) =>
      cell(`swap after loop ${n}`, "⇅", swapped === n, () => swap(n)),
    )
    const row = (name, cells, about = {}) =>
      make("tr", about, make("th", { scope: "row" }, name), ...cells)
    const letters = (which) => all.map((n) => make("td", {}, LETTERS[list[n][which]]))
    table.replaceChildren(
      row("skip loop", skips),
      row(`from ${LETTERS[ring[asked[0]]]}`, letters(0), { class: "first" }),
      row("swap both", swaps),
      row(`from ${LETTERS[ring[asked[1]]]}`, letters(1), { class: "second" }),
    )
    picture(list.at(-1))
    if (focused) table.querySelector(`[aria-label="${focused}"]`)?.focus()
    said.textContent = words(list)
  }

  /** The ring: where both questions start is outlined, where they end is filled. */
  function picture(ends) {
    svg.replaceChildren()
    drawTrack(svg, MIDDLE, RADIUS, size)
    ring.forEach((letter, i) => {
      const angle = (2 * Math.PI * i) / size - Math.PI / 2
      const [x, y] = [MIDDLE + RADIUS * Math.cos(angle), MIDDLE + RADIUS * Math.sin(angle)]
      const starts = WHICH[asked.indexOf(i)] ?? ""
      draw(svg, "circle", { class: `letter ${starts}`, cx: x, cy: y, r: 19 })
      ends.forEach((end, which) => {
        if (end === letter) draw(svg, "circle", { class: `held ${WHICH[which]}`, cx: x, cy: y, r: 15 })
      })
      draw(svg, "text", { x, y }, LETTERS[letter])
    })
    draw(svg, "text", { class: "small", x: MIDDLE, y: MIDDLE - 10 }, "outlined: start")
    draw(svg, "text", { class: "small", x: MIDDLE, y: MIDDLE + 12 }, "filled: end")
  }

  const gone = (token, from) => (ring.indexOf(token) - from + size) % size

  /** What was done, and where both questions end. */
  function words(list) {
    const done = []
    if (skipped.size) {
      const which = [...skipped].sort((a, b) => a - b).join(", ")
      done.push(`loop${skipped.size === 1 ? "" : "s"} ${which} skipped by both questions`)
    }
    if (swapped) done.push(`states swapped after loop ${swapped}`)
    const ends = asked.map((from, which) => {
      const token = list.at(-1)[which]
      const name = LETTERS[ring[from]]
      if (!ring.includes(token)) return `asked from ${name}: ${LETTERS[token]}, not on the ring`
      let text = `asked from ${name}: ${LETTERS[token]}, ${times(gone(token, from), "hop")} from ${name}`
      const other = asked[1 - which]
      if (swapped) text += ` and ${times(gone(token, other), "hop")} from ${LETTERS[ring[other]]}`
      return text
    })
    const what = done.length ? `With ${done.join(" and ")}` : "As it was trained"
    return `${what}, after ${loops} loops: ${ends.join("; ")}.`
  }

  const plain = button("As it was trained", () => {
    skipped.clear()
    swapped = null
    show()
  })
  const buttons = make("div", { class: "buttons" }, plain, button("Another ring", another))
  root.replaceChildren(svg, table, said, buttons)
  another()
}

document.querySelectorAll(".widget.apart").forEach(start)
