/* How many parameters? parameters() of minidepth.py in another language, with sliders. */

import { make } from "./elements.js"

const REPORT = { layers: 12, width: 384, words: 151665, positions: 512, tied: true }
const TAGS = { embedding: "words", position: "positions", layers: "layers", head: "head" }

/** Parameters by part, as minidepth.parameters() counts them, with d_ff = 4 × width. */
function parameters({ layers, width: C, words, positions, tied }) {
  const ff = 4 * C
  const layer = 4 * C * C + 2 * C + 2 * C * ff + 2 * C // attention, its norm, the MLP, its norm
  const n = { embedding: words * C, position: positions * C, layers: layers * layer, head: 0 }
  if (!tied) n.head = words * C
  n.final_norm = 2 * C
  n.total = n.embedding + n.position + n.layers + n.head + n.final_norm
  return n
}

function start(root) {
  const now = { ...REPORT }
  const format = (number) => number.toLocaleString("en-US")

  /** A slider; its places are the numbers of the list. */
  function slider(key, text, list) {
    const told = make("span", {}, format(now[key]))
    const oninput = (event) => {
      now[key] = list[event.target.value]
      event.target.setAttribute("aria-valuetext", format(now[key]))
      told.textContent = format(now[key])
      show()
    }
    const range = { type: "range", min: 0, max: list.length - 1, oninput }
    const value = list.indexOf(now[key])
    const input = make("input", { ...range, value, "aria-valuetext": format(now[key]) })
    return make("label", {}, `${text} `, told, input)
  }

  const widths = [...Array(32).keys()].map((i) => 32 * (i + 1))
  const words = [332, 1000, 2048, 5000, 10000, 20000, 32000, 50257, 100000, 151665]
  const onchange = (event) => {
    now.tied = event.target.checked
    show()
  }
  const tied = make("input", { type: "checkbox", checked: "", onchange })
  const sliders = [
    slider("layers", "layers", [...Array(48).keys()].map((i) => i + 1)),
    slider("width", "width (d_model)", widths),
    slider("words", "words in the vocabulary", words),
    make("label", {}, tied, " the head is tied to the embedding"),
  ]
  const bars = make("div", { class: "bars" })
  const told = make("p", { "aria-live": "polite" })
  root.replaceChildren(...sliders, bars, told)

  function show() {
    const rows = [
      ["yours", parameters(now)],
      ["report, 1 layer", parameters({ ...REPORT, layers: 1 })],
      ["report, 12 layers", parameters(REPORT)],
    ]
    const most = Math.max(...rows.map(([, n]) => n.total))
    bars.replaceChildren(...rows.map((row) => bar(...row, most)))
    const n = rows[0][1]
    const share = (part) => `${((100 * part) / n.total).toFixed(1)} %`
    told.textContent =
      `Yours has ${format(n.total)} parameters. ${format(n.layers)} of them, ` +
      `${share(n.layers)}, are in its layers, the part that depth multiplies; ` +
      `${share(n.embedding + n.head)} are tables of words.`
  }

  function bar(name, n, most) {
    const parts = Object.keys(TAGS).map((part) => {
      const style = `width: ${(100 * n[part]) / most}%`
      return make("span", { class: part, style, title: `${TAGS[part]} ${format(n[part])}` })
    })
    const text = make("span", { class: "name" }, `${name}: ${format(n.total)}`)
    return make("div", {}, text, make("div", { class: "bar" }, ...parts))
  }

  const keys = Object.entries(TAGS).map(([part, text]) =>
    make("span", { class: "key" }, make("span", { class: `swatch ${part}` }), ` ${text}`),
  )
  root.append(make("p", { class: "keys" }, ...keys))
  show()
}

document.querySelectorAll(".widget.parameters").forEach(start)
