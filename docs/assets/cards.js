/* Deal the cards: twenty results, one on each card, are shuffled and dealt in two piles of ten. How
   often does luck alone make the piles differ as much as the runs did? The data come from
   docs/tutorials/6_how_would_you_know.py. */

import { button, draw, drawing, make } from "./elements.js"
import { shuffled } from "./walking.js"

const WIDTH = 330
const COLUMN = 40 // of a bar and its number
const FLOOR = 190 // the y at which bars stand
const HIGH = 90 // the height of the highest bar, if it has LEAST of the deals or more
const LEAST = 0.4

const number = (n) => n.toLocaleString("en")

function start(root) {
  const { learned, runs } = JSON.parse(root.querySelector("script").textContent)
  const seen = learned[0] - learned[1] // the difference of the two models' runs
  const n = learned[0] + learned[1]
  const cards = Array.from({ length: 2 * runs }, (_, i) => i < n)
  const counts = new Map() // {difference: deals}
  const svg = drawing()
  svg.setAttribute("viewBox", `0 0 ${WIDTH} 230`)
  svg.setAttribute("role", "img")
  svg.style.maxWidth = "420px"
  const said = make("p", { class: "said", "aria-live": "polite" })
  let piles = [cards.slice(0, runs), cards.slice(runs)]
  let dealt = 0

  const sum = (pile) => pile.filter(Boolean).length

  function deal(times) {
    for (let i = 0; i < times; i++) {
      const mixed = shuffled(cards)
      piles = [mixed.slice(0, runs), mixed.slice(runs)]
      const difference = sum(piles[0]) - sum(piles[1])
      counts.set(difference, (counts.get(difference) ?? 0) + 1)
    }
    dealt += times
    show()
  }

  function show() {
    svg.replaceChildren()
    piles.forEach((pile, row) => {
      pile.forEach((card, i) => {
        const box = { x: 15 + 24 * i, y: 8 + 32 * row, width: 18, height: 26, rx: 3 }
        draw(svg, "rect", { class: card ? "card learned" : "card", ...box })
      })
      draw(svg, "text", { x: 262, y: 26 + 32 * row }, `${sum(pile)} learned`)
    })
    const high = HIGH / Math.max(LEAST, Math.max(0, ...counts.values()) / Math.max(1, dealt))
    for (let difference = -n, i = 0; difference <= n; difference += 2, i++) {
      const share = dealt ? (counts.get(difference) ?? 0) / dealt : 0
      const x = 25 + COLUMN * i
      const extreme = Math.abs(difference) >= Math.abs(seen)
      const bar = { x, y: FLOOR - high * share, width: COLUMN - 8, height: high * share }
      draw(svg, "rect", { class: extreme ? "deals extreme" : "deals", ...bar })
      const middle = { x: x + (COLUMN - 8) / 2, "text-anchor": "middle" }
      draw(svg, "text", { ...middle, y: FLOOR + 16 }, `${difference}`.replace("-", "−"))
    }
    draw(svg, "line", { class: "axis", x1: 15, x2: WIDTH - 10, y1: FLOOR, y2: FLOOR })
    const under = { x: WIDTH / 2, y: FLOOR + 34, "text-anchor": "middle" }
    draw(svg, "text", under, "how many more learned it in the first pile")
    svg.setAttribute("aria-label", "two piles of cards and a bar for each difference; see the text")
    const asMuch = [...counts].reduce(
      (all, [difference, deals]) => all + (Math.abs(difference) >= Math.abs(seen) ? deals : 0),
      0,
    )
    said.textContent = dealt
      ? `${number(dealt)} dealt: ${number(asMuch)} differ by ${seen} or more, one way or the other. ` +
        `That is ${(100 * asMuch / dealt).toFixed(1)} %.`
      : `As the runs came out: the piles differ by ${seen}. How often does luck do that?`
  }

  const dealer = (n) => button(`Deal ${n === 1 ? "once" : number(n)}`, () => deal(n))
  const buttons = make("div", { class: "buttons" }, ...[1, 100, 10_000].map(dealer))
  root.replaceChildren(buttons, svg, said)
  show()
}

document.querySelectorAll(".widget.cards").forEach(start)
