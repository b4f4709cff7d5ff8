/* Walk around a ring: a stored model is asked which letter is k hops after another, and the ring
   shows where it is after each loop of its layers. The model runs here, by minidepth.js. The data come from walk() in docs/site/minidepth_site/widgets.py. */

import { copyLink, inAddress, toAddress } from "./address.js"
import { button, draw, drawing, drawTrack, make, percent, still, times } from "./elements.js"
import { emptyCache, softmax } from "./minidepth.js"
import { chooseOwn, ownRing } from "./own.js"
import { LETTERS, loadModel, shuffled } from "./walking.js"

const OURS = { letters: 16, hops: [1, 2, 3, 4] } // "k hops" is the token letters + k
const MIDDLE = 150 // of the picture
const RADIUS = 110
const NUMBERS = 70 // the radius at which a letter has the loops that came to it
const PAUSE = 700 // ms at each loop

const named = (token) => LETTERS[token] ?? `letter ${token}`

/** A question → its tokens: pairs of neighbours in a mixed order, the number of hops, a letter. */
export function questionTokens({ ring, order, start, hops }, letters = OURS.letters) {
  const pairs = order.flatMap((i) => [ring[i], ring[(i + 1) % ring.length]])
  return [...pairs, letters + hops, ring[start]]
}

/** What the model would answer before the first loop and after each: [shares of all tokens]. */
export function afterEachLoop(model, tokens) {
  const cache = emptyCache(model)
  let last
  for (const token of tokens) last = model.forward(token, cache)
  return last.states.map((state) => softmax([...model.read(state)]))
}

/** A ring of so many of the letters at random, told in a random order. */
function anotherRing(size, letters) {
  const ring = shuffled([...Array(letters).keys()]).slice(0, size)
  return { ring, order: shuffled(ring.map((_, i) => i)), start: 0 }
}

/** A question as the page's address has it, and back; what does not fit is left as it is. */
function asText({ ring, order, start, hops, seed }) {
  const letters = ring.map((letter) => LETTERS[letter]).join("")
  return { ring: letters, told: order.join(""), from: letters[start], hops, seed }
}

export function fromText({ ring, told, from, hops, seed }, question, seeds) {
  const different = (text, n) => text?.length === n && new Set(text).size === n
  const size = question.ring.length
  const ours = LETTERS.slice(0, OURS.letters)
  if (different(ring, size) && [...ring].every((letter) => ours.includes(letter)))
    question.ring = [...ring].map((letter) => ours.indexOf(letter))
  if (different(told, size) && [...told].every((i) => i in question.ring))
    question.order = [...told].map(Number)
  const start = question.ring.indexOf(LETTERS.indexOf(from))
  if (from && start >= 0) question.start = start
  if (OURS.hops.includes(Number(hops))) question.hops = Number(hops)
  if (seeds.includes(Number(seed))) question.seed = Number(seed)
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
  let own = null // a ring run of the visitor's: {model, letters, ring: their number on it, hops}
  let nLoops = data.config.n_loops
  const models = {} // by seed, once loaded
  let shares = [] // of the question, after each loop
  let timer = null
  const seeds = data.models.map((each) => each.seed)
  const linked = inAddress("walk")
  fromText(linked, question, seeds)
  const ourSize = question.ring.length
  let size = ourSize

  const svg = drawing()
  svg.setAttribute("viewBox", "0 0 300 300")
  svg.setAttribute("role", "img")
  const ask = make("p", { class: "question" })
  const said = make("p", { class: "said", "aria-live": "polite" })
  const play = button("", () => (timer ? stop() : playFromStart()))
  play.classList.add("ask")
  const eachLoop = make("div", { class: "each-loop", role: "group", "aria-label": "loops" })
  const another = button("Another ring", () => change(anotherRing(size, (own ?? OURS).letters)))
  const runs = data.models.map(({ seed, hops }, i) => [
    seed,
    `training ${i + 1} of ${seeds.length}: learned ${times(hops, "hop")}`,
  ])
  const model = menu("which training", runs, question.seed, (seed) => change({ seed }))
  const link = copyLink("walk", () => asText(question))
  const asks = "Run a ring of your own: its model.safetensors and config.json, chosen or dropped here "
  const yours = data.own && chooseOwn(root, asks, take)

  /** Run a model of the visitor's own, or, without files, ours again. */
  async function take(files) {
    try {
      own = files && (await ownRing(files))
    } catch (error) {
      said.textContent = `This could not be run: ${error.message}.`
      return false
    }
    for (const part of [model, link]) part.hidden = Boolean(own)
    size = own?.ring ?? ourSize
    nLoops = (own?.model ?? data).config.n_loops
    prepare()
    const known = (own ?? OURS).hops
    const hops = known.includes(question.hops) ? question.hops : known.at(-1)
    await change({ ...anotherRing(size, (own ?? OURS).letters), hops })
    return true
  }

  /** A button for each loop that the model makes. */
  function prepare() {
    const one = (_, i) =>
      button("", () => {
        stop()
        showLoop(i + 1)
      })
    eachLoop.replaceChildren(...Array.from({ length: nLoops }, one))
  }

  /** Another question, or another model: it is asked at once. */
  async function change(changes) {
    stop()
    Object.assign(question, changes)
    const { seed } = question
    try {
      const { weights } = data.models.find((each) => each.seed === seed)
      if (!own) models[seed] ??= await loadModel(data.config, weights)
    } catch (error) {
      said.textContent = `The model could not be loaded: ${error.message}`
      return
    }
    if (seed !== question.seed) return // another model was chosen meanwhile
    const asked = questionTokens(question, own?.letters)
    shares = afterEachLoop(own?.model ?? models[seed], asked)
    if (Object.keys(changes).length && !own) toAddress("walk", asText(question))
    showQuestion()
    showLoop(0)
  }

  function showQuestion() {
    const lengths = (own ?? OURS).hops.map((k) => [k, times(k, "hop")])
    const letters = question.ring.map((letter, i) => [i, named(letter)])
    const hops = menu("how many hops", lengths, question.hops, (k) => change({ hops: k }))
    const from = menu("from which letter", letters, question.start, (i) => change({ start: i }))
    const focused = document.activeElement?.getAttribute("aria-label")
    ask.replaceChildren("Which letter is ", hops, " after ", from, "?")
    // the menus are new, and who uses the keyboard stays where they were
    if (focused) ask.querySelector(`[aria-label="${focused}"]`)?.focus()
  }

  function showLoop(loops) {
    question.loops = loops
    said.textContent = verdict(loops)
    picture(loops)
    ;[...eachLoop.children].forEach((box, i) => {
      const right = i < loops && held(i + 1) === goal()
      box.className = right ? "right" : i < loops ? "wrong" : ""
      const mark = make("span", {}, right ? "✓" : i < loops ? "✗" : "·")
      box.replaceChildren(`${times(i + 1, "loop")} `, mark)
      box.setAttribute("aria-pressed", i + 1 === loops)
    })
  }

  const likeliest = (loops) => shares[loops].indexOf(Math.max(...shares[loops]))
  const held = (loops) => question.ring.indexOf(likeliest(loops)) // its place, -1 if not on the ring
  const goal = () => (question.start + question.hops) % size

  /** Where the model is after so many loops, in words. */
  function verdict(loops) {
    if (loops === 0) return "It has been told the ring, pair by pair. It has no answer yet."
    const token = likeliest(loops)
    const letter = token < (own ?? OURS).letters ? named(token) : "no letter"
    const sure = percent(Math.max(...shares[loops]))
    if (loops === 1) return `After 1 loop it has read. It would say ${letter} (${sure} sure).`
    const place = held(loops)
    const gone = (place - question.start + size) % size
    let where = `${times(gone, "hop")} from ${named(question.ring[question.start])}`
    if (place < 0) where = "which is not on the ring"
    else if (gone === 0) where = "the letter asked about"
    const text = `After ${loops} loops it is at ${letter} (${sure} sure), ${where}.`
    if (loops < nLoops) return text
    if (place === goal()) return `${text} That is right.`
    return `${text} That is wrong: the answer is ${named(question.ring[goal()])}.`
  }

  function at(i, radius) {
    const angle = (2 * Math.PI * i) / size - Math.PI / 2
    return [MIDDLE + radius * Math.cos(angle), MIDDLE + radius * Math.sin(angle)]
  }

  /** As drawing() in widgets.py draws it. */
  function picture(loops) {
    svg.replaceChildren()
    drawTrack(svg, MIDDLE, RADIUS, size)
    const came = [] // [[loop, place]] where it was, from the second on
    for (let n = 2; n <= loops; n++) if (held(n) >= 0) came.push([n, held(n)])
    const trail = [question.start, ...came.map(([, place]) => place)]
    const points = trail.map((i) => at(i, RADIUS).map((x) => x.toFixed(1)).join(","))
    draw(svg, "polyline", { class: "trail", points: points.join(" ") })
    question.ring.forEach((letter, i) => {
      const [cx, cy] = at(i, RADIUS)
      const role = i === goal() ? "goal" : i === question.start ? "start" : ""
      const onclick = () => change({ start: i })
      const r = Math.min(24, (0.8 * Math.PI * RADIUS) / size)
      draw(svg, "circle", { class: `letter ${role}`, cx, cy, r, onclick })
      const fill = { "fill-opacity": loops ? shares[loops][letter] / 2 : 0, onclick }
      draw(svg, "circle", { class: "share", cx, cy, r: 0.84 * r, ...fill })
      draw(svg, "text", { x: cx, y: cy, onclick }, LETTERS[letter])
      const its = came.filter(([, place]) => place === i).map(([n]) => n)
      const [x, y] = at(i, NUMBERS)
      if (its.length) draw(svg, "text", { class: "small", x, y }, its.join("·"))
    })
    draw(svg, "text", { x: MIDDLE, y: MIDDLE - 10 }, `loop ${loops}`)
    draw(svg, "text", { class: "small", x: MIDDLE, y: MIDDLE + 16 }, `of ${nLoops}`)
    svg.setAttribute("aria-label", "a ring of letters; the text below says where the model is")
  }

  function playFromStart() {
    if (still) return showLoop(nLoops) // who wants no motion sees the whole trail at once
    said.setAttribute("aria-live", "off") // read aloud only when it has stopped
    play.textContent = "❚❚ Pause"
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
    play.textContent = "▶ Let the model walk"
  }

  /** The controls take the place of the picture without JavaScript when there is a model. */
  async function begin() {
    prepare()
    await change({})
    if (!shares.length) return root.append(said)
    const more = make("div", { class: "buttons" }, another, link, model)
    const side = make("div", { class: "side" }, ask, play, eachLoop, said, more)
    root.replaceChildren(svg, side, ...(yours ? [yours] : []))
    if (Object.keys(linked).length) root.scrollIntoView({ block: "center" })
    root.dispatchEvent(new Event("ready"))
  }

  begin()
}

document.querySelectorAll(".widget.walk").forEach(start)
