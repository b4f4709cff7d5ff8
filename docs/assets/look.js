/* Where does it look? The attention of one question as lines from layer to layer, while the model
   learns. The data is that of the page's own training: see story() in
   docs/minidepth_lab/inspect.py. */

import { draw, drawing, make } from "./elements.js"

const COLOURS = ["var(--head-1)", "var(--head-2)"] // of the heads

/** A map is text, two digits for each weight in percent, row by row up to the diagonal. */
function weight(map, query, key) {
  const at = (query * (query + 1)) / 2 + key
  return key > query ? 0 : Number(map.slice(2 * at, 2 * at + 2)) / 99
}

const names = (n, what) => `${n} ${what}${n === 1 ? "" : "s"}`
const percent = (share) => `${Math.round(100 * share)} %`

function start(root) {
  const data = JSON.parse(root.querySelector("script").textContent)
  const T = data.tokens.length
  // a question that one layer does not answer, not even by chance
  const [shallow, deep] = data.models
  const wrong = data.targets.findIndex(([, right], i) => shallow.at(-1).said[i][0] !== right)
  const query = data.targets[Math.max(0, wrong)][0]
  const state = { model: 1, at: deep.length - 1, query, heads: [true, true] }
  const svg = drawing()
  const said = make("p", { class: "said", "aria-live": "polite" })
  const step = make("span")

  const isNarrow = () => root.clientWidth < 600
  const press = (buttons, chosen) =>
    buttons.forEach((button, i) => button.setAttribute("aria-pressed", chosen(i)))
  const models = data.models.map((_, i) =>
    make("button", { type: "button", onclick: () => set({ model: i }) }, names(i + 1, "layer")),
  )
  const queries = data.targets.map(([place]) =>
    make("button", { type: "button", onclick: () => set({ query: place }) }, data.tokens[place]),
  )
  const heads = state.heads.map((_, i) => {
    const change = (on, k) => (k === i ? !on : on)
    const onclick = () => set({ heads: state.heads.map(change) })
    const line = make("span", { class: "line", style: `background: ${COLOURS[i]}` })
    return make("button", { type: "button", onclick }, line, ` head ${i + 1}`)
  })
  const most = data.models[0].length - 1
  const oninput = (event) => {
    pause()
    set({ at: Number(event.target.value) })
  }
  const slider = make("input", { type: "range", min: 0, max: most, value: most, oninput })

  const play = make("button", { type: "button", onclick: () => (timer ? pause() : run()) }, "play")
  let timer = null

  /** Go through the training, a place of the slider every 0.4 seconds, from its start if it is at
      the end. The words under the picture are read aloud only when it has stopped. */
  function run() {
    if (state.at >= most) set({ at: 0 })
    said.setAttribute("aria-live", "off")
    play.textContent = "pause"
    timer = setInterval(() => (state.at < most ? set({ at: state.at + 1 }) : pause()), 400)
  }

  function pause() {
    clearInterval(timer)
    timer = null
    said.setAttribute("aria-live", "polite")
    play.textContent = "play"
  }

  function set(changes) {
    Object.assign(state, changes)
    show()
  }

  function show() {
    const now = data.models[state.model][state.at]
    press(models, (i) => i === state.model)
    press(queries, (i) => data.targets[i][0] === state.query)
    press(heads, (i) => state.heads[i])
    slider.value = state.at
    slider.setAttribute("aria-valuetext", `step ${now.step}`)
    step.textContent = `training step ${now.step}: ${percent(now.right)} of all questions right `
    picture(now)
    words(now)
  }

  /** How strongly each place of each layer takes part: the question itself fully, because it is
      carried upwards, and a place that it looks at by the weight of the look. */
  function reached(now) {
    const L = now.maps.length
    const strength = Array.from({ length: L + 1 }, () => Array(T).fill(0))
    strength[L][state.query] = 1
    for (let layer = L - 1; layer >= 0; layer--) {
      strength[layer][state.query] = 1
      for (let query = 0; query < T; query++)
        for (let key = 0; key <= query; key++) {
          const looks = now.maps[layer].map((map, head) =>
            state.heads[head] ? weight(map, query, key) : 0,
          )
          const through = strength[layer + 1][query] * Math.max(...looks)
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

  function picture(now) {
    // tokens side by side; on a narrow screen one below the other, so that they can be read
    const narrow = isNarrow()
    const L = now.maps.length
    const [cell, gap] = narrow ? [21, 125] : [32, 115]
    const size = [L * gap + 60, T * cell + 30]
    const [width, height] = narrow ? size : [size[1], size[0]]
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`)
    svg.style.maxWidth = `${width}px`
    svg.replaceChildren()
    // level 0 are the tokens: at the left of a narrow picture, at the foot of a wide one
    const place = (token, level) => {
      const asked = token >= T - data.targets.length // they stand a little apart
      const along = (token + 0.5) * cell + (asked ? 8 : 0) + (narrow ? 18 : 0)
      const across = narrow ? 30 + level * gap : 40 + (L - level) * gap
      return narrow ? [across, along] : [along, across]
    }
    const strength = reached(now)
    const least = L === 1 ? 0.35 : 0.15 // the fan of one layer has no strong lines
    for (let layer = 0; layer < L; layer++)
      now.maps[layer].forEach((map, head) => {
        if (!state.heads[head]) return
        for (let query = 0; query < T; query++)
          for (let key = 0; key <= query; key++) {
            const part = strength[layer + 1][query] * weight(map, query, key)
            if (part < 0.02) continue
            const d = curve(place(query, layer + 1), place(key, layer), 5 * head - 2.5, narrow)
            const style = `stroke: ${COLOURS[head]}; opacity: ${Math.min(1, least + part)}`
            draw(svg, "path", { d, style, fill: "none", "stroke-width": 0.5 + 4.5 * part })
          }
      })
    for (let level = 0; level <= L; level++)
      for (let token = 0; token < T; token++) {
        const [x, y] = place(token, level)
        const strong = strength[level][token]
        const part = level === 0 || strong > 0.3
        const [w, h] = part ? [30, 18] : [6, 6]
        const box = { x: x - w / 2, y: y - h / 2, width: w, height: h, rx: 3 }
        draw(svg, "rect", { ...box, class: token === state.query ? "node asked" : "node" })
        if (part) draw(svg, "text", { x, y: y + 4, "text-anchor": "middle" }, data.tokens[token])
      }
    for (let level = 0; level <= L; level++) {
      const [x, y] = place(0, level)
      const text = level ? `${narrow ? "" : "after "}layer ${level}` : "tokens"
      const at = narrow ? { x, y: 10, "text-anchor": "middle" } : { x: 2, y: y - 16 }
      draw(svg, "text", at, text)
    }
    svg.setAttribute("aria-label", "attention as lines; the text below says what it shows")
  }

  /** What the picture shows, for who cannot see it, too. */
  function words(now) {
    const number = data.targets.findIndex(([place]) => place === state.query)
    const [answer, share, rightShare] = now.said[number]
    const right = data.targets[number][1]
    const model = `the model of ${names(state.model + 1, "layer")}`
    let text = `${data.tokens[state.query]} is asked. After step ${now.step}, ${model} answers `
    text += `${answer} (${percent(share)} sure). `
    if (answer === right) text += "That is right."
    else text += `The right answer is ${right} (${percent(rightShare)}).`
    let query = state.query
    for (let layer = now.maps.length - 1; layer >= 0; layer--) {
      let best = { share: -1 }
      now.maps[layer].forEach((map, head) => {
        for (let key = 0; key <= query && state.heads[head]; key++) {
          const share = weight(map, query, key)
          if (share > best.share) best = { share, key, head }
        }
      })
      if (best.share < 0) break // both heads are switched off
      const [from, to] = [data.tokens[query], data.tokens[best.key]]
      const how = `head ${best.head + 1}, ${percent(best.share)} of its weight`
      text += ` In layer ${layer + 1}, ${from} attends most to ${to} (${how}).`
      query = best.key
    }
    said.textContent = text
  }

  svg.setAttribute("role", "img")
  const row = (name, ...items) =>
    make("div", { class: "buttons", role: "group", "aria-label": name }, ...items)
  const training = make("label", {}, step, slider)
  const choices = [row("model", ...models), row("heads", ...heads), training, row("training", play)]
  root.replaceChildren(...choices, row("question", "ask ", ...queries), svg, said)
  show()
  let was = isNarrow()
  addEventListener("resize", () => {
    if (was !== isNarrow()) show()
    was = isNarrow()
  })
}

document.querySelectorAll(".widget.look").forEach(start)
