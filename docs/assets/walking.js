/* A stored model that is looped on and on, all of its questions at once. Its weights come from an
   address that counts from the root of the site. */

import { GPT, readSafetensors, emptyCache } from "./minidepth.js"

export async function loadModel(config, address) {
  const file = await fetch(new URL(`../${address}`, import.meta.url))
  if (!file.ok) throw new Error(`${file.url}: ${file.status}`)
  return new GPT(config, readSafetensors(await file.arrayBuffer()))
}

export function shuffled(list) {
  const keyed = list.map((item) => [Math.random(), item])
  return keyed.sort((a, b) => a[0] - b[0]).map(([, item]) => item)
}

export const LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEF" // tokens 0 to 31

/** A ring of so many letters at random. None stands on it small and large: e beside E would be
    misread. */
export function drawnRing(size) {
  const seen = new Set()
  const fresh = (token) => {
    const name = LETTERS[token].toLowerCase()
    return !seen.has(name) && seen.add(name)
  }
  return shuffled([...LETTERS].map((_, i) => i)).filter(fresh).slice(0, size)
}

/** A sequence of tokens in a model, loop by loop. */
export class Walk {
  constructor(model, tokens) {
    this.model = model
    this.embedded = tokens.map((token, place) => model.embed(token, place))
    this.states = this.embedded // of each token
    this.loops = 0
    this.map = null // of each layer, the queries, keys and values of the tokens that are kept
  }

  /** One loop more. Tokens of `skip` (their places) stay as they are, and from the second loop on
      those that the model keeps: what these are to the others is computed once. */
  step(skip = []) {
    const cache = emptyCache(this.model, 1)
    const keeps = this.loops ? (this.model.config.loop_keeps ?? 0) : 0
    if (keeps && this.map) cache.forEach((layer, i) => layer.qkv.push(...this.map[i]))
    const from = keeps && this.map ? keeps : 0
    const after = this.states.map((x, t) => (t < from ? x : this.loop(t, cache)))
    this.states = after.map((x, t) => (t < keeps || skip.includes(t) ? this.states[t] : x))
    if (keeps) this.map ??= cache.map(({ qkv }) => qkv.slice(0, keeps))
    this.loops++
  }

  loop(t, cache) {
    return this.model.loop(this.states[t], this.embedded[t], cache).x
  }

  /** Two tokens change their states. */
  swap(a, b) {
    this.map = null
    this.states = [...this.states]
    ;[this.states[a], this.states[b]] = [this.states[b], this.states[a]]
  }

  /** What the token at a place would answer now: the likeliest of all tokens. */
  answer(place) {
    const logits = this.model.read(this.states[place])
    return logits.indexOf(Math.max(...logits))
  }
}
