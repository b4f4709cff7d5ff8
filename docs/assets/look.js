/* Where does it look? The attention of one question as lines from layer to layer, while the model
   learns. The data is that of the page's own training: see story() in
   minidepth_lab/measure/inspect.py. */

import { button, drawing, make, percent, still, times } from "./elements.js"
import { COLOURS, drawLooks } from "./lines.js"

/** A map is text, two digits for each weight in percent, row by row up to the diagonal. */
function weight(map, query, key) {
  const at = (query * (query + 1)) / 2 + key
  return key > query ? 0 : Number(map.slice(2 * at, 2 * at + 2)) / 99
}

function start(root) {
  const data = JSON.parse(root.querySelector("script").textContent)
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
  const models = data.models.map((_, i) => button(times(i + 1, "layer"), () => set({ model: i })))
  const ask = ([place]) => button(data.tokens[place], () => set({ query: place }))
  const queries = data.targets.map(ask)
  const heads = state.heads.map((_, i) => {
    const change = (on, k) => (k === i ? !on : on)
    const onclick = () => set({ heads: state.heads.map(change) })
    const line = make("span", { class: "line", style: `background: ${COLOURS[i]}` })
    return make("button", { type: "button", onclick }, line, ` show head ${i + 1}`)
  })
  const most = data.models[0].length - 1
  const oninput = (event) => {
    pause()
    set({ at: Number(event.target.value) })
  }
  const slider = make("input", { type: "range", min: 0, max: most, value: most, oninput })

  const play = button("play", () => (timer ? pause() : run()))
  let timer = null

  /** Go through the training, a place of the slider every 0.4 seconds, or 2 for who wants little
      motion, from its start if it is at the end. The words under the picture are read aloud only
      when it has stopped. */
  function run() {
    if (state.at >= most) set({ at: 0 })
    said.setAttribute("aria-live", "off")
    play.textContent = "pause"
    const next = () => (state.at < most ? set({ at: state.at + 1 }) : pause())
    timer = setInterval(next, still ? 2000 : 400)
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

  function picture(now) {
    drawLooks(svg, {
      tokens: data.tokens,
      asked: data.targets.length,
      query: state.query,
      L: now.maps.length,
      heads: state.heads,
      weight: (layer, head, from, key) => weight(now.maps[layer][head], from, key),
      narrow: isNarrow(), // tokens one below the other, so that they can be read
    })
  }

  /** What the picture shows, for who cannot see it, too. */
  function words(now) {
    const number = data.targets.findIndex(([place]) => place === state.query)
    const [answer, share, rightShare] = now.said[number]
    const right = data.targets[number][1]
    const model = `the model of ${times(state.model + 1, "layer")}`
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
      if (best.share < 0) break // no head is shown
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
  // on a phone the slider stays in view beside the drawing, which is taller than the screen
  const steer = make("div", { class: "steer" }, training, row("training", play))
  const choices = [row("model", ...models), row("heads", ...heads)]
  root.replaceChildren(...choices, row("question", "ask ", ...queries), steer, svg, said)
  show()
  let was = isNarrow()
  addEventListener("resize", () => {
    if (was !== isNarrow()) show()
    was = isNarrow()
  })
}

document.querySelectorAll(".widget.look").forEach(start)
