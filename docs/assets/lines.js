/* The attention of one question as lines from layer to layer. */

import { draw } from "./elements.js"

export const COLOURS = ["var(--head-1)", "var(--head-2)"] // of the heads

/** How strongly each place of each layer takes part: the question itself fully, because it is
    carried upwards, and a place that it looks at by the weight of the look. */
function reached({ T, L, query, heads, weight }) {
  const strength = Array.from({ length: L + 1 }, () => Array(T).fill(0))
  strength[L][query] = 1
  for (let layer = L - 1; layer >= 0; layer--) {
    strength[layer][query] = 1
    for (let from = 0; from < T; from++)
      for (let key = 0; key <= from; key++) {
        const looks = heads.map((on, head) => (on ? weight(layer, head, from, key) : 0))
        const through = strength[layer + 1][from] * Math.max(...looks)
        strength[layer][key] = Math.max(strength[layer][key], through)
      }
  }
  return strength
}

/** A line from one place to another, moved aside so that both heads can be seen. */
function curve([x, y], [u, v], aside, narrow) {
  if (narrow) {
    const middle = (x + u) / 2
    const [from, to] = [y + aside, v + aside]
    return `M ${x} ${from} C ${middle} ${from}, ${middle} ${to}, ${u} ${to}`
  }
  const middle = (y + v) / 2
  const [from, to] = [x + aside, u + aside]
  return `M ${from} ${y} C ${from} ${middle}, ${to} ${middle}, ${to} ${v}`
}

/** Draw what a question looks at. tokens: their names; asked: how many of the last ones are
    questions; query: the place of the one; L: layers; heads: which are on; weight(layer, head, from,
    key): a share. Tokens stand side by side, or, if narrow, one below the other, with `apart` from layer
    to layer. */
export function drawLooks(svg, { tokens, asked, query, L, heads, weight, narrow, apart = 125 }) {
  const T = tokens.length
  const [cell, gap] = narrow ? [21, apart] : [32, 115]
  const size = [L * gap + 60, T * cell + 30]
  const [width, height] = narrow ? size : [size[1], size[0]]
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`)
  svg.style.maxWidth = `${width}px`
  svg.replaceChildren()
  // level 0 are the tokens: at the left of a narrow picture, at the foot of a wide one
  const place = (token, level) => {
    const isAsked = token >= T - asked // questions stand a little apart
    const along = (token + 0.5) * cell + (isAsked ? 8 : 0) + (narrow ? 18 : 0)
    const across = narrow ? 30 + level * gap : 40 + (L - level) * gap
    return narrow ? [across, along] : [along, across]
  }
  const strength = reached({ T, L, query, heads, weight })
  const least = L === 1 ? 0.35 : 0.15 // the fan of one layer has no strong lines
  for (let layer = 0; layer < L; layer++)
    heads.forEach((on, head) => {
      if (!on) return
      for (let from = 0; from < T; from++)
        for (let key = 0; key <= from; key++) {
          const part = strength[layer + 1][from] * weight(layer, head, from, key)
          if (part < 0.02) continue
          const d = curve(place(from, layer + 1), place(key, layer), 5 * head - 2.5, narrow)
          const style = `stroke: ${COLOURS[head]}; opacity: ${Math.min(1, least + part)}`
          draw(svg, "path", { d, style, fill: "none", "stroke-width": 0.5 + 4.5 * part })
        }
    })
  for (let level = 0; level <= L; level++)
    for (let token = 0; token < T; token++) {
      const [x, y] = place(token, level)
      const part = level === 0 || strength[level][token] > 0.3
      const [w, h] = part ? [30, 18] : [6, 6]
      const box = { x: x - w / 2, y: y - h / 2, width: w, height: h, rx: 3 }
      draw(svg, "rect", { ...box, class: token === query ? "node asked" : "node" })
      if (part) draw(svg, "text", { x, y: y + 4, "text-anchor": "middle" }, tokens[token])
    }
  for (let level = 0; level <= L; level++) {
    const [x, y] = place(0, level)
    const text = level ? `${narrow ? "" : "after "}layer ${level}` : "tokens"
    const at = narrow ? { x, y: 10, "text-anchor": "middle" } : { x: 2, y: y - 16 }
    draw(svg, "text", at, text)
  }
  svg.setAttribute("aria-label", "attention as lines; the text below says what it shows")
}
