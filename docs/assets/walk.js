/* Walk around a ring: a stored model is asked which letter is k hops after another, and the ring
   shows what it holds after each loop of its one layer. The model runs here, by minidepth.js. The
   data come from walk() in docs/site/minidepth_site/widgets.py. */

import { draw, drawing, drawTrack, make } from "./elements.js"
import { emptyCache, softmax } from "./minidepth.js"
import { loadModel, shuffled } from "./walking.js"

const LETTERS = "abcdefghijklmnop" // tokens 0 to 15; "k hops" is token 16 + k
const HOPS = [1, 2, 3, 4]
const MIDDLE = 150 // of the picture
const RADIUS = 110
const PAUSE = 700 // milliseconds that Play stays at a loop

const learned = ({ hops }) => `learned ${times(hops, "hop")}`
const times = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`
const percent = (share) => `${Math.round(100 * share)} %`

/** A question → its tokens: pairs of neighbours in a mixed order, the number of hops, a letter. */
export function questionTokens({ ring, order, start, hops }) {
  const pairs = order.flatMap((i) => [ring[i], ring[(i + 1) % ring.length]])
  return [...pairs, LETTERS.length + hops, ring[start]]
}

/** What the model would answer before the first loop and after each: [shares of all tokens]. */
export function afterEachLoop(model, tokens) {
  const cache = emptyCache(model)
  let last
  for (const token of tokens) last = model.forward(token, cache)
  return last.states.map((state) => softmax([...model.read(state)]))
}

/** A ring of letters at random, told in a random order. */
function anotherRing(size) {
  const ring = shuffled([...LETTERS].map((_, i) => i)).slice(0, size)
  return { ring, order: shuffled(ring.map((_, i) => i)) }
}

function menu(label, choices, chosen, choose) {
  const options = choices.map(([value, text]) =>
    make("option", { value, selected: value === chosen && "" }, text),
  )
  const onchange = (event) => choose(Number(event.target.value))
  return make("select", { "aria-label": label, onchange }, ...options)
}

function start(root) {
  const data = JSON.parse(root.querySelector("script").textContent)
  const question = data.question
  const nLoops = data.config.n_loops
  const models = {} // by seed, once loaded
  let shares = [] // of the question, after each loop
  let timer = null

  const svg = drawing()
  svg.setAttribute("viewBox", "0 0 300 300")
  svg.setAttribute("role", "img")
  const ask = make("p", { class: "question" })
  const said = make("p", { class: "said", "aria-live": "polite" })
  const told = make("span")
  const oninput = (event) => {
    stop()
    showLoop(Number(event.target.value))
  }
  const slider = make("input", { type: "range", min: 0, max: nLoops, oninput })
  const button = (text, onclick) => make("button", { type: "button", onclick }, text)
  const play = button("Play", () => (timer ? stop() : playFromStart()))
  const another = button("Another ring", () => change(anotherRing(question.ring.length)))
  const seeds = data.models.map((each) => [each.seed, `seed ${each.seed}: ${learned(each)}`])
  const model = menu("which model", seeds, question.seed, (seed) => change({ seed }))

  /** Another question, or another model: it is asked at once. */
  async function change(changes) {
    stop()
    Object.assign(question, changes)
    const { seed } = question
    try {
      const { weights } = data.models.find((each) => each.seed === seed)
      models[seed] ??= await loadModel(data.config, weights)
    } catch (error) {
      said.textContent = `The model could not be loaded: ${error.message}`
      return
    }
    if (seed !== question.seed) return // another model was chosen meanwhile
    shares = afterEachLoop(models[seed], questionTokens(question))
    showQuestion()
    showLoop(question.loops)
  }

  function showQuestion() {
    const lengths = HOPS.map((k) => [k, times(k, "hop")])
    const letters = question.ring.map((letter, i) => [i, LETTERS[letter]])
    const hops = menu("how many hops", lengths, question.hops, (k) => change({ hops: k }))
    const from = menu("from which letter", letters, question.start, (i) => change({ start: i }))
    const focused = document.activeElement?.getAttribute("aria-label")
    ask.replaceChildren("Which letter is ", hops, " after ", from, "?")
    // the menus are new, and who uses the keyboard stays where they were
    if (focused) ask.querySelector(`[aria-label="${focused}"]`)?.focus()
  }

  function showLoop(loops) {
    question.loops = loops
    slider.value = loops
    slider.setAttribute("aria-valuetext", times(loops, "loop"))
    told.textContent = `${times(loops, "loop")} of the layer `
    said.textContent = verdict(loops)
    picture(loops)
  }

  /** The answer after so many loops, in words. */
  function verdict(loops) {
    const now = shares[loops]
    const best = now.indexOf(Math.max(...now))
    const place = question.ring.indexOf(best)
    const answer = `${LETTERS[best] ?? "no letter"} (${percent(now[best])})`
    const when = loops === 0 ? "Before the first loop" : `After loop ${loops}`
    if (loops < 2) return `${when} the model holds ${answer}. It has no answer yet.`
    const size = question.ring.length
    const gone = (place - question.start + size) % size
    const from = LETTERS[question.ring[question.start]]
    let where = `${times(gone, "hop")} from ${from}`
    if (place < 0) where = "not on the ring"
    else if (gone === 0) where = "the letter asked about"
    let text = `${when} the model holds ${answer}, ${where}.`
    if (loops < nLoops) return text
    if (gone === question.hops && place >= 0) return `${text} That is right.`
    return `${text} That is wrong: the answer is ${LETTERS[question.ring[goal()]]}.`
  }

  const goal = () => (question.start + question.hops) % question.ring.length

  /** As drawing() in widgets.py draws it. */
  function picture(loops) {
    svg.replaceChildren()
    drawTrack(svg, MIDDLE, RADIUS, question.ring.length)
    question.ring.forEach((letter, i) => {
      const angle = (2 * Math.PI * i) / question.ring.length - Math.PI / 2
      const [x, y] = [MIDDLE + RADIUS * Math.cos(angle), MIDDLE + RADIUS * Math.sin(angle)]
      const role = i === goal() ? "goal" : i === question.start ? "start" : ""
      draw(svg, "circle", { class: `letter ${role}`, cx: x, cy: y, r: 24 })
      const fill = { "fill-opacity": shares[loops][letter] / 2 }
      draw(svg, "circle", { class: "share", cx: x, cy: y, r: 20, ...fill })
      draw(svg, "text", { x, y }, LETTERS[letter])
    })
    draw(svg, "text", { x: MIDDLE, y: MIDDLE - 10 }, `loop ${loops}`)
    draw(svg, "text", { class: "small", x: MIDDLE, y: MIDDLE + 16 }, `of ${nLoops}`)
    svg.setAttribute("aria-label", "a ring of letters; the text below says what the model holds")
  }

  function playFromStart() {
    said.setAttribute("aria-live", "off") // read aloud only when it has stopped
    play.textContent = "Pause"
    showLoop(0)
    timer = setInterval(() => {
      if (question.loops < nLoops) showLoop(question.loops + 1)
      if (question.loops === nLoops) stop()
    }, PAUSE)
  }

  function stop() {
    clearInterval(timer)
    timer = null
    said.setAttribute("aria-live", "polite")
    play.textContent = "Play"
  }

  /** The controls take the place of the picture without JavaScript when there is a model. */
  async function begin() {
    await change({})
    if (!shares.length) return root.append(said)
    const loops = make("label", {}, told, slider)
    const buttons = make("div", { class: "buttons" }, play, another, model)
    root.replaceChildren(svg, make("div", { class: "side" }, ask, loops, said, buttons))
    root.dispatchEvent(new Event("ready"))
  }

  begin()
}

document.querySelectorAll(".widget.walk").forEach(start)
