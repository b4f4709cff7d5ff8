/* Ask the models: menus that compose a problem, three models that answer it token by token, and for
   each token of an answer where the model looked. The models themselves are in minidepth.js. */

import { copyLink, inAddress, toAddress } from "./address.js"
import { make, percent, still } from "./elements.js"
import { generate, load, promptIds } from "./minidepth.js"
import { asText, draw, fromText, LETTERS, problem } from "./problems.js"

const NAMES = { chain: "sums modulo 10", lookup: "a ring of letters", order: "letters in line" }
const MODELS = { "1-layer": "1 layer", "2-layers": "2 layers", "12-layers": "12 layers" }
const END = "<|im_end|>"
const GIVEN = /^ ?[a-j\d]$/ // a letter or a number of a problem
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, still ? 0 : ms))

function menu(label, choices, chosen, choose) {
  const options = Object.entries(choices).map(([value, text]) =>
    make("option", { value, ...(value === `${chosen}` && { selected: "" }) }, text),
  )
  const onchange = (event) => choose(event.target.value)
  return make("select", { "aria-label": label, onchange }, ...options)
}

/** How a token is shown: a line break has a sign, a space before a word is left out, and a mark has
    a name. */
const MARKS = { "<|im_start|>": "▸", "<|im_end|>": "■" }
function shown(words, id) {
  const text = words.text(id)
  if (text in MARKS) return MARKS[text]
  return text.replaceAll("\n", "⏎").trim() || "␣"
}

// ---------- the problem ----------

/** Settings, at random, of a problem that training never shows. */
function drawHeldOut(family, steps) {
  let settings
  do settings = draw(family, steps)
  while (!problem(settings).heldOut)
  return settings
}

class Composer {
  constructor(root, changed) {
    this.menus = make("div", { class: "menus" })
    this.said = make("p", { class: "question", "aria-live": "polite" })
    this.seen = make("p", { class: "seen" })
    this.changed = changed
    root.append(this.menus, this.said, this.seen)
    this.linked = inAddress("ask")
    this.settings = fromText(this.linked, drawHeldOut("lookup", 2))
    this.show()
  }

  noted() {
    toAddress("ask", asText(this.settings))
  }

  random() {
    const families = Object.keys(NAMES)
    const family = families[Math.floor(Math.random() * families.length)]
    this.settings = drawHeldOut(family, 1 + Math.floor(Math.random() * 3))
    this.show()
    this.noted()
  }

  change(changes) {
    Object.assign(this.settings, changes)
    const s = this.settings
    s.number = Math.min(s.number, s.steps)
    const focused = document.activeElement?.getAttribute("aria-label")
    this.show()
    this.noted()
    // the menus are new, and who uses the keyboard stays where they were
    if (focused) this.menus.querySelector(`[aria-label="${focused}"]`)?.focus()
  }

  show() {
    const s = this.settings
    const kind = menu("kind of problem", NAMES, s.family, (family) => this.change({ family }))
    const lengths = { 1: "1 step", 2: "2 steps", 3: "3 steps", 4: "4 steps" }
    const steps = menu("steps", lengths, s.steps, (text) => this.change({ steps: Number(text) }))
    this.menus.replaceChildren(make("div", {}, kind, steps), make("div", {}, ...this.details(s)))
    this.problem = problem(s)
    this.said.textContent = this.problem.question
    let seen = "This problem may have been in training: it is not one of those held out."
    if (this.problem.heldOut) seen = "This problem is held out: training never shows it."
    if (s.steps === 4) seen = "Training has no problem of four steps."
    this.seen.textContent = seen
    this.changed()
  }

  details(s) {
    if (s.family === "chain") {
      const digits = Object.fromEntries([...Array(10).keys()].map((n) => [n, n]))
      const { 0: _, ...adds } = digits
      const first = menu("first number", digits, s.first, (n) => this.change({ first: Number(n) }))
      const rest = s.adds.slice(0, s.steps).flatMap((add, i) => {
        const choose = (n) => this.change({ adds: s.adds.with(i, Number(n)) })
        return [" + ", menu(`number ${i + 1} to add`, adds, add, choose)]
      })
      return [first, ...rest]
    }
    const places = s.family === "lookup" ? 6 : s.steps + 1
    const letters = s.letters.slice(0, places)
    const menus = letters.flatMap((letter, i) => [i ? " → " : "", this.letter(s, letter, i)])
    if (s.family === "lookup") {
      const choices = Object.fromEntries(letters.entries())
      const from = menu("where to start", choices, s.from, (i) => this.change({ from: Number(i) }))
      return [...menus, " ↩ back to the first. Start at ", from]
    }
    const choices = Object.fromEntries(letters.map((_, i) => [i, i + 1]))
    const choose = (i) => this.change({ number: Number(i) })
    return [...menus, " , number ", menu("which one is asked", choices, s.number, choose)]
  }

  /** The menu of one letter; the letter that it had goes to where the new one stood. */
  letter(s, letter, i) {
    const choices = Object.fromEntries(LETTERS.map((name) => [name, name]))
    return menu(`letter ${i + 1}`, choices, letter, (name) => {
      const letters = [...s.letters]
      letters[letters.indexOf(name)] = letter
      letters[i] = name
      this.change({ letters })
    })
  }
}

// ---------- an answer ----------

class Panel {
  constructor(name) {
    this.prompt = make("p", { class: "tokens", "aria-label": "the question, in tokens" })
    this.answer = make("p", { class: "tokens", "aria-label": "the answer, in tokens" })
    this.verdict = make("p", { class: "verdict", "aria-live": "polite" })
    this.look = make("div", { class: "looked" })
    const parts = [this.prompt, this.answer, this.verdict, this.look]
    this.root = make("section", { "aria-label": name }, make("p", { class: "title" }, name), ...parts)
  }

  begin(words, ids) {
    this.words = words
    this.steps = []
    this.ids = ids
    const token = (id) => make("span", { class: "token" }, shown(words, id))
    this.prompt.replaceChildren(...ids.map(token))
    for (const part of [this.answer, this.verdict, this.look]) part.replaceChildren()
  }

  add(step) {
    const number = this.steps.push(step) - 1
    const button = { class: "token", type: "button", onclick: () => this.choose(number) }
    this.answer.append(make("button", button, shown(this.words, step.token)))
  }

  end(problem) {
    const said = this.steps.map((step) => this.words.text(step.token)).join("")
    const answer = said.replace(END, "").split("</think>").at(-1).trim()
    const right = answer === problem.answer
    this.verdict.textContent = right
      ? `✓ ${answer} is right.`
      : `✗ ${answer || "No answer"}: the right answer is ${problem.answer}.`
    // the last worked step first: there it has to look something up
    const texts = this.steps.map((step) => this.words.text(step.token))
    const thought = texts.slice(0, texts.indexOf("</think>")).findLastIndex((t) => GIVEN.test(t))
    this.choose(Math.max(0, thought))
  }

  /** Show where the model looked to write this token. It has many heads; the first one shown is
      the one that looks most sharply at a letter or a number of the question. */
  choose(number) {
    this.chosen = number
    const { attention } = this.steps[number]
    const given = [...this.ids.keys()].filter((i) => GIVEN.test(this.words.text(this.ids[i])))
    let most = -1
    attention.forEach((heads, layer) =>
      heads.forEach((weights, head) => {
        const weight = Math.max(...given.map((i) => weights[i]))
        if (weight > most) [most, this.layer, this.head] = [weight, layer, head]
      }),
    )
    this.controls(attention)
  }

  controls(attention) {
    const heads = { mean: "mean of all heads" }
    attention[0].forEach((_, i) => (heads[i] = `head ${i + 1}`))
    const head = menu("head", heads, this.head, (value) => {
      this.head = value === "mean" ? value : Number(value)
      this.shade()
    })
    const oninput = (event) => {
      this.layer = Number(event.target.value) - 1
      this.shade()
    }
    const range = { type: "range", min: 1, max: attention.length, value: this.layer + 1, oninput }
    this.layerName = make("span", {})
    const slider = make("label", {}, this.layerName, make("input", range))
    this.told = make("p", { "aria-live": "polite" })
    this.look.replaceChildren(...(attention.length > 1 ? [slider] : []), head, this.told)
    this.shade()
  }

  shade() {
    const { token, attention } = this.steps[this.chosen]
    const heads = attention[this.layer]
    let weights = heads[this.head]
    if (this.head === "mean")
      weights = heads[0].map((_, i) => heads.reduce((sum, head) => sum + head[i], 0) / heads.length)
    const spans = [...this.prompt.children, ...this.answer.children]
    spans.forEach((span, i) => {
      span.style.background = `rgba(var(--look), ${(0.6 * (weights[i] ?? 0)).toFixed(3)})`
      span.classList.toggle("chosen", i === this.ids.length + this.chosen)
    })
    const best = [...weights.keys()].sort((a, b) => weights[b] - weights[a]).slice(0, 3)
    const named = best.map((i) => `${percent(weights[i])} on “${spans[i].textContent}”`)
    const layer = `layer ${this.layer + 1} of ${attention.length}`
    const head = this.head === "mean" ? "the mean of the heads" : `head ${this.head + 1}`
    this.layerName.textContent = `${layer} `
    this.told.textContent =
      `Writing “${shown(this.words, token)}”, ${head} of ${layer} put ${named.join(", ")}.`
  }
}

// ---------- the page ----------

function start(root) {
  const panels = Object.values(MODELS).map((name) => new Panel(name))
  const state = make("p", { role: "status" })
  const answers = make("div", { class: "answers", hidden: "" }, ...panels.map((p) => p.root))
  const ask = make("button", { type: "button", class: "ask", onclick: answer }, "Ask all three")
  const random = { type: "button", class: "draw", onclick: () => composer.random() }
  let turn = 0 // who composes another problem meanwhile is not answered the old one
  let models
  root.replaceChildren()
  const composer = new Composer(root, () => {
    turn++
    answers.hidden = true
  })
  const link = copyLink("ask", () => asText(composer.settings))
  const draws = make("button", random, "Draw at random")
  root.append(make("div", { class: "buttons" }, ask, draws, link), state, answers)
  if (Object.keys(composer.linked).length) root.scrollIntoView({ block: "center" })

  async function answer() {
    const mine = ++turn
    const { problem } = composer
    try {
      if (!models) {
        state.textContent = "Loading the three models, 0.84 MB …"
        const files = Object.keys(MODELS).map((name) => `${root.dataset.models}/${name}.safetensors`)
        models = await Promise.all(files.map(load))
      }
      state.textContent = ""
    } catch (error) {
      state.textContent = `The models could not be loaded (${error.message}).`
      return
    }
    if (mine !== turn) return
    answers.hidden = false
    const runs = models.map(({ model, words }, i) => {
      const ids = promptIds(words, problem.question)
      panels[i].begin(words, ids)
      return { panel: panels[i], tokens: generate(model, ids, words.ids[END]) }
    })
    while (runs.length) {
      await pause(60)
      if (mine !== turn) return
      for (const run of [...runs]) {
        const { value, done } = run.tokens.next()
        if (!done) run.panel.add(value)
        else {
          run.panel.end(problem)
          runs.splice(runs.indexOf(run), 1)
        }
      }
    }
    root.dispatchEvent(new Event("answered"))
  }

  answer() // the first problem at once, so that there is something to see
}

document.querySelectorAll(".ask-the-models").forEach(start)
