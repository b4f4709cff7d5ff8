/* Draw one seed: what would you have concluded from one run? The data is that of stored runs: see
   seeds() in docs/site/minidepth_site/widgets.py. */

import { draw, drawing, make } from "./elements.js"

const signed = (number) => `${number < 0 ? "−" : "+"}${Math.abs(number).toFixed(3)}`

/** A model's colour, as color_of() of minidepth_lab/show/figures.py has it in the figures. */
function colour(name) {
  if (name.includes("wide")) return "#a45fd0"
  if (name.includes("times")) return "#24945a"
  const byDepth = { 1: "#2f7fe0", 2: "#b58900", 4: "#d4650b", 8: "#d8452f", 12: "#c7356f" }
  return byDepth[name.split(" ")[0]]
}

function start(root) {
  const data = JSON.parse(root.querySelector("script").textContent)
  const names = Object.keys(data.accuracy)
  const chosen = [...data.first]
  let drawn = [] // the seeds drawn so far, as places in the lists
  const svg = drawing()
  const said = make("p", { class: "said", "aria-live": "polite" })
  const tally = make("p", { class: "said" })
  const menus = chosen.map((name, i) => {
    const onchange = (event) => {
      chosen[i] = event.target.value
      drawn = []
      drawOne()
    }
    const options = names.map((name) => make("option", { value: name }, name))
    const menu = make("select", { "aria-label": `model ${"AB"[i]}`, onchange }, ...options)
    menu.value = name
    return menu
  })
  const one = make("button", { type: "button", class: "draw", onclick: drawOne }, "Draw one seed")
  const all = make("button", { type: "button", onclick: drawAll }, "Show all five")

  function drawOne() {
    const n = data.seeds.length
    if (drawn.length >= n) drawn = []
    const left = [...Array(n).keys()].filter((i) => !drawn.includes(i))
    drawn.push(left[Math.floor(Math.random() * left.length)])
    show()
  }

  function drawAll() {
    const rest = [...data.seeds.keys()].filter((i) => !drawn.includes(i))
    drawn = [...drawn, ...rest]
    show()
  }

  const gap = (i) => data.accuracy[chosen[1]][i] - data.accuracy[chosen[0]][i]

  function show() {
    picture()
    const [a, b] = chosen
    said.textContent = "Choose two different models."
    tally.textContent = ""
    one.disabled = all.disabled = a === b
    if (a === b) return
    const i = drawn.at(-1)
    const [first, second] = chosen.map((name) => data.accuracy[name][i])
    const better = gap(i) > 0 ? b : a
    const size = Math.abs(gap(i)).toFixed(3)
    said.textContent =
      `Seed ${data.seeds[i]}: ${a} ${first.toFixed(3)}, ${b} ${second.toFixed(3)}. From this ` +
      `run alone you would have concluded that “${better}” is better, by ${size}.`
    const wins = drawn.filter((i) => gap(i) > 0).length
    tally.textContent = `So far, “${b}” was better in ${wins} of ${drawn.length}.`
    if (drawn.length < data.seeds.length) return
    const [mean, low, high, paired] = data.differences[`${a} | ${b}`]
    const range = `${signed(low)} to ${signed(high)}`
    const zero = low > 0 || high < 0 ? "does not contain 0" : "contains 0"
    tally.textContent +=
      ` Over all five, “${b}” minus “${a}” is ${signed(mean)}, and its 95 % interval` +
      `${paired && " (paired)"}, ${range}, ${zero}.`
  }

  function picture() {
    const width = root.clientWidth < 600 ? 330 : 640
    const x = (accuracy) => 12 + (width - 24) * accuracy
    svg.setAttribute("viewBox", `0 0 ${width} 118`)
    svg.style.maxWidth = `${width}px`
    svg.replaceChildren()
    chosen.forEach((name, row) => {
      const y = 32 + 42 * row
      draw(svg, "text", { x: 12, y: y - 14 }, name)
      draw(svg, "line", { x1: x(0), x2: x(1), y1: y, y2: y, class: "axis" })
      drawn.forEach((i, turn) => {
        const last = turn === drawn.length - 1
        const dot = { cx: x(data.accuracy[name][i]), cy: y, r: last ? 7 : 5 }
        const fill = last ? colour(name) : "none"
        draw(svg, "circle", { ...dot, class: "dot", stroke: colour(name), fill })
      })
    })
    for (const at of [0, 0.5, 1]) {
      const anchor = at === 0 ? "start" : at === 1 ? "end" : "middle"
      draw(svg, "text", { x: x(at), y: 98, "text-anchor": anchor }, at)
    }
    const middle = { x: width / 2, y: 114, "text-anchor": "middle" }
    draw(svg, "text", middle, "accuracy on held-out problems")
  }

  const question = "Draw one seed: what would you have concluded from one run?"
  svg.setAttribute("role", "img")
  svg.setAttribute("aria-label", "a dot for each run drawn; the text below says what it shows")
  root.replaceChildren(
    make("p", {}, make("strong", {}, question)),
    make("div", { class: "buttons" }, menus[0], " against ", menus[1]),
    make("div", { class: "buttons" }, one, all),
    svg,
    said,
    tally,
  )
  drawOne()
  addEventListener("resize", picture) // a phone is turned
}

document.querySelectorAll(".widget.seeds").forEach(start)
