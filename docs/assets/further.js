/* Walk on: two stored models that were trained to eight hops on a ring of sixteen letters are looped
   as long as one likes, one that begins each loop with its state normalised and the input added,
   and one that begins it without the input. The pairs can be kept as they are after the loops of
   training. A walk of the visitor's own runs beside itself with its pairs kept. The data come from
   further() in docs/site/minidepth_site/widgets.py. */

import { copyLink, inAddress, toAddress } from "./address.js"
import { button, draw, drawing, drawTrack, make, still, times } from "./elements.js"
import { chooseOwn, ownWalk } from "./own.js"
import { drawnRing, LETTERS, loadModel, shuffled, Walk } from "./walking.js"

const MIDDLE = 150 // of a picture
const RADIUS = 122
const PAUSE = [450, 120] // milliseconds at a loop: up to where training ended, and beyond
const FAR = 1001 // loops: a thousand hops

const BEGINS = {
  recall: "State normalised, input added",
  normalised: "State normalised, no input",
  state: "State alone",
} // what a loop begins with
const OWN = ["Your model", "Your model, its pairs kept after the loops of training"]
const NAMED = 24 // letters on a ring at most, whose names can be read

function start(root) {
  const data = JSON.parse(root.querySelector("script").textContent)
  const { models, first: chosen } = data // chosen: the numbers of two models
  let { ring: size, hops: trained } = data
  let own = null // a model of the visitor's: it walks on both sides, on the right with its pairs kept
  const loaded = {} // by address
  const linked = inAddress("further")
  let ring, order // letters around, and the order in which the questions stand
  let walks = [] // none while models load
  let timer = null
  let turn = 0 // who begins another walk meanwhile does not get this one

  const pictures = chosen.map(() => {
    const svg = drawing()
    svg.setAttribute("viewBox", "0 0 300 300")
    svg.setAttribute("role", "img")
    const said = make("p", { class: "said" })
    return { svg, said, box: make("div", {}, make("strong"), svg, said) }
  })
  const counter = make("p", { class: "said", "aria-live": "polite" })
  const go = button("Go on", () => (timer ? stop() : play()))
  go.classList.add("ask")
  const one = button("One loop", () => {
    stop()
    step()
  })
  const another = button("Another ring", () => {
    begin()
    noted()
  })
  const keep = make("input", {
    type: "checkbox",
    onchange: () => {
      begin(ring)
      noted()
    },
  })
  const keeping = "keep the pairs as they are after the loops of training, loop the questions alone"

  const choice = make("p", {}, make("label", {}, keep, ` ${keeping}`))
  const asks = "Run a walk of your own: its model.safetensors and config.json, chosen or dropped here "
  const yours = chooseOwn(root, asks, take)

  const option = ({ name, start }, i) => {
    return make("option", { value: i }, start === "state" ? `${name}, state alone` : name)
  }
  const menus = ["with the input", "without the input"].map((label, side) => {
    const onchange = (event) => {
      chosen[side] = Number(event.target.value)
      name(side)
      begin(ring)
      noted()
    }
    const its = models.map(option).filter((_, i) => (models[i].start === "recall") === (side === 0))
    const select = make("select", { "aria-label": `model ${label}`, onchange }, ...its)
    select.value = chosen[side]
    return select
  })

  /** Say above a picture what its model's loops begin with. */
  function name(side) {
    const title = pictures[side].box.querySelector("strong")
    title.textContent = own ? OWN[side] : BEGINS[models[chosen[side]].start]
  }

  async function model(i) {
    const { config, weights } = models[i]
    return (loaded[weights] ??= await loadModel(config, weights))
  }

  const settings = () => ({
    ring: ring.map((letter) => LETTERS[letter]).join(""),
    models: chosen.join("."),
    keep: Number(keep.checked),
  })
  const noted = () => own || toAddress("further", settings())
  const link = copyLink("further", settings)

  /** The ring that a link asks for, if there can be such a one. */
  function linkedRing() {
    const tokens = [...(linked.ring ?? "")].map((letter) => LETTERS.indexOf(letter))
    return tokens.length === size && new Set(tokens).size === size && !tokens.includes(-1) && tokens
  }

  const anyRing = () => shuffled([...Array(2 * size).keys()]).slice(0, size)
  const named = (token) => LETTERS[token] ?? `letter ${token}`

  /** Run a model of the visitor's own, or, without files, ours again. */
  async function take(files) {
    try {
      own = files && (await ownWalk(files))
    } catch (error) {
      counter.textContent = `This could not be run: ${error.message}.`
      return false
    }
    size = own?.ring ?? data.ring
    trained = own?.hops ?? data.hops
    for (const part of [...menus, choice, link]) part.hidden = Boolean(own)
    pictures.forEach((_, side) => name(side))
    await begin()
    return true
  }

  /** Walk anew, around this ring or another. */
  async function begin(same) {
    stop()
    const mine = ++turn
    walks = []
    ring = same || (size > NAMED ? anyRing() : drawnRing(size))
    const places = shuffled(ring.map((_, i) => i))
    order = shuffled(ring.map((_, i) => i))
    const pairs = places.flatMap((i) => [ring[i], ring[(i + 1) % size]])
    const tokens = [...pairs, ...order.map((i) => ring[i])]
    try {
      const both = own ? [own.model, own.model] : await Promise.all(chosen.map(model))
      if (mine !== turn) return
      walks = both.map((each) => new Walk(each, tokens))
    } catch (error) {
      if (mine === turn) counter.textContent = `The models could not be loaded: ${error.message}`
      return
    }
    walks.forEach((walk) => walk.step()) // in the first loop pairs learn who follows whom
    step()
  }

  const hops = () => walks[0].loops - 1

  function step(seen = true) {
    if (!walks.length) return
    const pairs = hops() >= trained ? [...Array(2 * size).keys()] : [] // their places
    walks.forEach((walk, side) => walk.step((own ? side === 1 : keep.checked) ? pairs : []))
    if (seen || walks[0].loops >= FAR) show()
  }

  function play() {
    if (!walks.length || walks[0].loops >= FAR) return
    go.textContent = "Pause"
    counter.setAttribute("aria-live", "off") // read aloud only when it has stopped
    const next = () => {
      // who wants no motion sees a picture for each time round the ring
      for (let n = still ? size : 1; n > 0 && walks[0].loops < FAR; n--) step(n === 1)
      if (walks[0].loops >= FAR) return stop()
      timer = setTimeout(next, still ? 1500 : PAUSE[hops() >= trained ? 1 : 0])
    }
    timer = setTimeout(next)
  }

  function stop() {
    clearTimeout(timer)
    timer = null
    go.textContent = "Go on"
    counter.setAttribute("aria-live", "polite")
  }

  /** Which letter the question of the ring's letter i holds now. */
  const held = (walk, i) => walk.answer(2 * size + order.indexOf(i))
  const right = (i) => ring[(i + hops()) % size]

  function show() {
    const n = hops()
    const round = Math.floor(n / size)
    let text = `${times(n + 1, "loop")}, ${times(n, "hop")}`
    if (round) text += `: ${times(round, "time")} round the ring`
    text += n > trained ? `, ${times(n - trained, "hop")} further than in training.` : "."
    counter.textContent = text
    walks.forEach((walk, side) => picture(walk, pictures[side]))
  }

  function picture(walk, { svg, said }) {
    const answer = held(walk, 0)
    svg.replaceChildren()
    drawTrack(svg, MIDDLE, RADIUS, size)
    ring.forEach((letter, i) => {
      const angle = (2 * Math.PI * i) / size - Math.PI / 2
      const [x, y] = [MIDDLE + RADIUS * Math.cos(angle), MIDDLE + RADIUS * Math.sin(angle)]
      const role = letter === right(0) ? "goal" : i === 0 ? "start" : ""
      const r = Math.min(19, (0.8 * Math.PI * RADIUS) / size)
      draw(svg, "circle", { class: `letter ${role}`, cx: x, cy: y, r })
      if (letter === answer) draw(svg, "circle", { class: "share held", cx: x, cy: y, r: 0.8 * r })
      if (size <= NAMED) draw(svg, "text", { x, y }, LETTERS[letter])
    })
    const all = ring.filter((_, i) => held(walk, i) === right(i)).length
    draw(svg, "text", { x: MIDDLE, y: MIDDLE - 12 }, times(hops(), "hop"))
    const count = `${all} of ${size} right`
    draw(svg, "text", { class: "small", x: MIDDLE, y: MIDDLE + 14 }, count)
    svg.setAttribute("aria-label", "a ring of letters; the text below says what the model holds")
    const good = answer === right(0)
    const verdict = good ? "That is right." : `That is wrong: the answer is ${named(right(0))}.`
    const where = ring.includes(answer) ? "" : ", which is not on the ring"
    said.textContent =
      `Asked from ${named(ring[0])}, it is at ${named(answer)}${where}. ${verdict} ` +
      `Asked from every letter, ${count}.`
  }

  const asked = (linked.models ?? "").split(".").map(Number)
  menus.forEach((menu, side) => {
    const there = [...menu.options].some((each) => Number(each.value) === asked[side])
    if (linked.models && there) menu.value = chosen[side] = asked[side]
  })
  keep.checked = linked.keep === "1"
  pictures.forEach(({ box }, side) => {
    name(side)
    box.append(menus[side])
  })
  const buttons = make("div", { class: "buttons" }, go, one, another, link)
  const both = make("div", { class: "both" }, ...pictures.map(({ box }) => box))
  root.replaceChildren(buttons, choice, counter, both, yours)
  begin(linkedRing())
  if (Object.keys(linked).length) root.scrollIntoView({ block: "center" })
}

document.querySelectorAll(".widget.further").forEach(start)
