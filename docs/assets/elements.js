/* What the parts of a page are made of. */

const SVG = "http://www.w3.org/2000/svg"

function withAttributes(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value)
    else if (value !== false) element.setAttribute(name, value)
  }
  return element
}

/** A new element: its attributes, `on…` among them, then what it holds. */
export function make(tag, attributes = {}, ...inside) {
  const element = withAttributes(document.createElement(tag), attributes)
  element.append(...inside)
  return element
}

export const button = (text, onclick) => make("button", { type: "button", onclick }, text)

/** Who wants little motion. */
export const still = matchMedia("(prefers-reduced-motion: reduce)").matches

export const percent = (share) => `${Math.round(100 * share)} %`
export const times = (n, word) => `${n.toLocaleString("en")} ${word}${n === 1 ? "" : "s"}`

/** A new drawing, or a new part of one at its end. */
export function drawing() {
  return document.createElementNS(SVG, "svg")
}

export function draw(parent, tag, attributes, text = "") {
  const element = withAttributes(document.createElementNS(SVG, tag), attributes)
  element.textContent = text
  parent.append(element)
  return element
}

/** A ring for n letters that stand clockwise from its top: a circle, and between two letters an
    arrow that says which of them follows. */
export function drawTrack(svg, middle, radius, n) {
  draw(svg, "circle", { class: "track", cx: middle, cy: middle, r: radius })
  for (let i = 0; i < n; i++) {
    const degrees = (360 * (i + 0.5)) / n
    const turned = `rotate(${degrees} ${middle} ${middle}) translate(${middle} ${middle - radius})`
    draw(svg, "path", { class: "arrow", d: "M-3 -4L3 0L-3 4", transform: turned })
  }
}
