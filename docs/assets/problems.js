/* The embedded problems of minidepth.py, composed by hand: what a question says, its worked
   steps, its answer, and whether training could have shown it. */

import { shuffled } from "./walking.js"

export const LETTERS = [..."abcdefghij"]
const RING = 6 // letters in a ring

/** Any settings, at random. `mix` is the order in which the pairs are given. */
export function draw(family, steps) {
  const below = (n) => Math.floor(Math.random() * n)
  const letters = shuffled(LETTERS)
  return {
    family,
    steps,
    first: below(10),
    adds: [0, 0, 0, 0].map(() => 1 + below(9)),
    letters,
    from: below(RING),
    number: below(steps + 1),
    mix: shuffled([...LETTERS.keys()]),
  }
}

/** Settings as the page's address has them, and back; what does not fit is left as it is. */
export function asText({ family, steps, first, adds, letters, from, number, mix }) {
  if (family === "chain") return { kind: family, steps, first, add: adds.slice(0, steps).join("") }
  const its = letters.slice(0, family === "lookup" ? RING : steps + 1).join("")
  const told = mix.filter((i) => i < its.length).join("")
  return { kind: family, steps, letters: its, told, at: family === "lookup" ? from : number }
}

export function fromText({ kind, steps, first, add, letters, told, at }, settings) {
  const its = { ...settings }
  const different = (text = "") => text && new Set(text).size === text.length
  if (["chain", "lookup", "order"].includes(kind)) its.family = kind
  if (/^[1-4]$/.test(steps ?? "")) its.steps = Number(steps)
  if (/^\d$/.test(first ?? "")) its.first = Number(first)
  if (/^[1-9]{1,4}$/.test(add ?? "")) its.adds = [...add, ...its.adds].slice(0, 4).map(Number)
  if (different(letters) && [...letters].every((each) => LETTERS.includes(each)))
    its.letters = [...letters, ...LETTERS.filter((each) => !letters.includes(each))]
  if (different(told) && /^\d+$/.test(told))
    its.mix = [...new Set([...told].map(Number).concat([...LETTERS.keys()]))]
  if (/^\d$/.test(at ?? "")) [its.from, its.number] = [Math.min(Number(at), RING - 1), Number(at)]
  its.number = Math.min(its.number, its.steps)
  return its
}

/** Settings → {question, work, answer, heldOut}, in the words that the models were trained on. */
export function problem({ family, steps, first, adds, letters, from, number, mix }) {
  const mixed = (pairs) => mix.filter((i) => i < pairs.length).map((i) => pairs[i]).join(", ")
  if (family === "chain") {
    let value = first
    const work = adds.slice(0, steps).map((add) => {
      const before = value
      value = (value + add) % 10
      return `${before} + ${add} = ${value}`
    })
    const sums = adds.slice(0, steps).map((add) => `add ${add}`)
    const question = `From ${first} ${sums.join(", ")} modulo 10 ?`
    const heldOut = isHeldOut(question, 10 * 9 ** steps)
    return { question, work: work.join(", "), answer: `${value}`, heldOut }
  }
  if (family === "lookup") {
    const ring = letters.slice(0, RING)
    const next = (i) => ring[i % RING]
    const pairs = ring.map((letter, i) => `${letter} ${next(i + 1)}`)
    const walk = Array.from({ length: steps + 1 }, (_, i) => next(from + i))
    const least = ring.indexOf([...ring].sort()[0]) // the same ring, whatever its first letter
    const key = ring.map((_, i) => next(least + i)).join(" ")
    return {
      question: `Follow ${mixed(pairs)}. Go ${steps} from ${walk[0]} ?`,
      work: walk.join(" "),
      answer: walk[steps],
      heldOut: isHeldOut(key, orders(RING) / RING),
    }
  }
  const line = letters.slice(0, steps + 1)
  const pairs = line.slice(1).map((letter, i) => `${line[i]} ${letter}`)
  return {
    question: `Sort ${mixed(pairs)}. Number ${number + 1} ?`,
    work: line.join(" "),
    answer: line[number],
    heldOut: isHeldOut(line.join(" "), orders(steps + 1)),
  }
}

/** In how many orders n of the ten letters can stand. */
function orders(n) {
  let count = 1
  for (let i = 0; i < n; i++) count *= LETTERS.length - i
  return count
}

/** Whether training never shows the problem of this key: a checksum says it, as it does there. */
function isHeldOut(key, keys) {
  return crc32(key) % (keys >= 600 ? 8 : 2) === 0
}

function crc32(text) {
  let crc = 0xffffffff
  for (const byte of new TextEncoder().encode(text)) {
    crc ^= byte
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0)
  }
  return (crc ^ 0xffffffff) >>> 0
}
