/* minidepth.js: the model of minidepth.py in another language, without a library.

   It reads a stored run, a file that has its weights, its settings and its words, and answers.
   Tokens go through one at a time. Each attends to the keys and values of itself and of all tokens
   before it, which are kept in a cache. training.js goes the same way back.

   A vector is a Float32Array, a matrix is {shape: [rows, columns], data: its rows end to end}.
   Sections: 1 files, 2 words, 3 the model, 4 answering. */

// ---------- 1. files ----------

/** The number that 16 bits mean: a sign, 5 bits of exponent, 10 bits of fraction. */
export function half(bits) {
  const sign = bits & 0x8000 ? -1 : 1
  const exponent = (bits >> 10) & 31
  const fraction = (bits & 1023) / 1024
  if (exponent === 0) return sign * fraction * 2 ** -14 // too small for the leading 1
  return sign * (1 + fraction) * 2 ** (exponent - 15)
}

/** The bytes of a .safetensors file → {length, header}. It begins with the length of a header, the
    header says in JSON where each matrix lies, and then come the numbers. */
export function readHeader(buffer) {
  const length = Number(new DataView(buffer).getBigUint64(0, true))
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)))
  return { length, header }
}

/** The bytes of a .safetensors file → {name: matrix}. */
export function readSafetensors(buffer) {
  const { length, header } = readHeader(buffer)
  const weights = {}
  for (const [name, about] of Object.entries(header)) {
    if (name === "__metadata__") continue
    const [start, end] = about.data_offsets
    const bytes = buffer.slice(8 + length + start, 8 + length + end)
    weights[name] = { shape: about.shape, data: numbers(about.dtype, bytes) }
  }
  return weights
}

function numbers(dtype, bytes) {
  if (dtype === "F32") return new Float32Array(bytes)
  if (dtype === "F16") return Float32Array.from(new Uint16Array(bytes), half)
  throw new Error(`weights of type ${dtype}, which this file cannot read`)
}

/** The address of a stored run → {model, words}. Its header has the text of the files that stood
    beside the weights, by their names. */
export async function load(address) {
  const file = await fetch(address)
  if (!file.ok) throw new Error(`${file.url}: ${file.status}`)
  const buffer = await file.arrayBuffer()
  const texts = readHeader(buffer).header.__metadata__
  const config = JSON.parse(texts["run/config.json"])
  const tokenizer = JSON.parse(texts["run/tokenizer/tokenizer.json"])
  return { model: new GPT(config.model, readSafetensors(buffer)), words: new Words(tokenizer) }
}

// ---------- 2. words ----------

const LETTERS = { " ": "Ġ", "\n": "Ċ", Ġ: " ", Ċ: "\n" } // in a tokenizer's files, and back
const SPECIAL = /(<\|im_start\|>|<\|im_end\|>|<\/?think>)/
const PIECES = / ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+/gu // as GPT-2 cuts: words, numbers

export class Words {
  constructor(tokenizer) {
    this.ids = tokenizer.model.vocab // {word: its number}
    this.list = []
    for (const [word, id] of Object.entries(this.ids)) this.list[id] = word
  }

  /** A text → its token ids. These tokenizers were made from the problems and have each piece of
      one as a word, so nothing is put together from shorter ones; an Error for another piece. */
  encode(text) {
    const cut = (part) => (SPECIAL.test(part) ? [part] : (part.match(PIECES) ?? []))
    return text.split(SPECIAL).flatMap(cut).map((piece) => {
      const word = piece.replace(/[ \n]/g, (letter) => LETTERS[letter])
      if (!(word in this.ids)) throw new Error(`${piece} is no word that this model knows`)
      return this.ids[word]
    })
  }

  text(id) {
    return [...this.list[id]].map((letter) => LETTERS[letter] ?? letter).join("")
  }
}

// ---------- 3. the model ----------

const row = ({ shape, data }, i) => data.subarray(i * shape[1], (i + 1) * shape[1])

/** The products of n numbers of a, from place i on, with those of b, from place j on, added up. */
export function dot(a, i, b, j, n) {
  let total = 0
  for (let k = 0; k < n; k++) total += a[i + k] * b[j + k]
  return total
}

/** A matrix times a vector: each row's products, added up. */
function linear({ shape, data }, x) {
  const [rows, columns] = shape
  const y = new Float32Array(rows)
  for (let r = 0; r < rows; r++) y[r] = dot(data, r * columns, x, 0, columns)
  return y
}

export const add = (a, b) => a.map((value, i) => value + b[i])

/** x with mean 0 and variance 1 → {z, scale: what its distance from the mean was multiplied by} */
export function standardised(x) {
  const n = x.length
  let mean = 0
  for (const value of x) mean += value / n
  let variance = 0
  for (const value of x) variance += (value - mean) ** 2 / n
  const scale = 1 / Math.sqrt(variance + 1e-5)
  return { z: x.map((value) => (value - mean) * scale), scale }
}

/** The norm of that name: standardised, then scaled and shifted. */
function layerNorm(weights, name, x) {
  const [weight, bias] = [weights[`${name}.weight`].data, weights[`${name}.bias`].data]
  return standardised(x).z.map((value, i) => value * weight[i] + bias[i])
}

export function softmax(scores) {
  let most = -Infinity // taken off first, so that no exponential is too large
  for (const score of scores) most = Math.max(most, score)
  let total = 0
  const powers = scores.map((score) => {
    const power = Math.exp(score - most)
    total += power
    return power
  })
  return powers.map((power) => power / total)
}

/** What the layers of a loop, `its` part of the cache, compute for a token is what those of the
    second loop did. */
function repeat(its, cache, attention) {
  const second = cache.slice(its.length, 2 * its.length)
  its.forEach((layer, i) => {
    layer.qkv.push(second[i].qkv.at(-1))
    layer.kept.push(second[i].kept.at(-1))
  })
  return { looked: attention.slice(its.length, 2 * its.length) }
}

/** {name of a weight: its shape}, in the order of minidepth.py. */
export function shapes({ vocab_size: V, block_size: T, d_model: C, n_layers, tie_weights }) {
  const list = { "token_embedding.weight": [V, C], "position_embedding.weight": [T, C] }
  for (let layer = 0; layer < n_layers; layer++) {
    list[`blocks.${layer}.norm1.weight`] = [C]
    list[`blocks.${layer}.norm1.bias`] = [C]
    list[`blocks.${layer}.attn.qkv.weight`] = [3 * C, C]
    list[`blocks.${layer}.attn.out.weight`] = [C, C]
  }
  const head = tie_weights ? {} : { "head.weight": [V, C] }
  return { ...list, "norm.weight": [C], "norm.bias": [C], ...head }
}

export class GPT {
  constructor(config, weights) {
    if (config.d_ff || config.position !== "learned")
      throw new Error("this file knows attention alone, with learned positions")
    this.config = config
    this.weights = weights
    this.heads = [config.n_heads].flat() // one number, or one for each layer
    if (this.heads.length === 1) this.heads = Array(config.n_layers).fill(this.heads[0])
  }

  /** The matrix that makes logits. */
  get head() {
    return this.weights["head.weight"] ?? this.weights["token_embedding.weight"]
  }

  /** One more token → {attention: by layer and head, the weight on each token so far, states: the
      residual stream before the first loop and after each}. The cache grows by this token. */
  forward(token, cache) {
    const place = cache[0].qkv.length
    const embedded = this.embed(token, place)
    const kept = place < (this.config.loop_keeps ?? 0)
    const attention = []
    const states = [embedded]
    while (attention.length < cache.length) {
      const its = cache.slice(attention.length, attention.length + this.config.n_layers)
      const again = kept && states.length > 2 // as in the second loop
      const { x, looked } = again
        ? repeat(its, cache, attention)
        : this.loop(states.at(-1), embedded, its)
      states.push(kept && states.length > 1 ? states[1] : x) // it stays as the first loop left it
      attention.push(...looked)
    }
    return { attention, states }
  }

  /** A token at its place → what the residual stream begins with. */
  embed(token, place) {
    const w = this.weights
    const where = row(w["position_embedding.weight"], place)
    return add(row(w["token_embedding.weight"], token), where)
  }

  /** A token's stream through all layers once → {x: the stream then, looked: its attention}. */
  loop(x, embedded, cache) {
    x = this.startOfLoop(x, embedded)
    const looked = this.heads.map((heads, layer) => {
      const { y, byHead } = this.attend(`blocks.${layer}`, heads, x, cache[layer])
      x = add(x, y) // the residual stream: a layer only adds to it
      return byHead
    })
    return { x, looked }
  }

  /** What a loop starts from: the stream as the last loop left it, or normalised; and the input
      again, or not. */
  startOfLoop(x, embedded) {
    const { loop_start: from } = this.config
    const stream = from === "normalised" || from === "recall" ? standardised(x).z : x
    return from === "input" || from === "recall" ? add(stream, embedded) : stream
  }

  /** A residual stream → logits, a number for each word that may come next. Of one from the middle
      of the model: what it holds so far. */
  read(x) {
    return linear(this.head, layerNorm(this.weights, "norm", x))
  }

  /** Attention of the newest token in one layer. `cache` has what the layer computed for each token
      so far: qkv, its query, key and value end to end, and what training needs besides. */
  attend(block, heads, x, cache) {
    const C = x.length
    const D = C / heads
    const scale = this.config.attn_scale ?? 1 / Math.sqrt(D)
    const h = layerNorm(this.weights, `${block}.norm1`, x)
    const qkv = linear(this.weights[`${block}.attn.qkv.weight`], h)
    cache.qkv.push(qkv)
    const sides = new Float32Array(C) // the outputs of the heads, side by side
    const byHead = []
    for (let start = 0; start < C; start += D) {
      const scores = cache.qkv.map((other) => dot(qkv, start, other, C + start, D) * scale)
      const weights = softmax(scores)
      cache.qkv.forEach((other, at) => {
        for (let i = start; i < start + D; i++) sides[i] += weights[at] * other[2 * C + i]
      })
      byHead.push(weights)
    }
    cache.kept.push({ x, h, sides, byHead })
    return { y: linear(this.weights[`${block}.attn.out.weight`], sides), byHead }
  }
}

// ---------- 4. answering ----------

/** The tokens of a question, up to where the assistant begins to speak. */
export function promptIds(words, question) {
  const parts = ["<|im_start|>user\n", `${question}<|im_end|>`, "\n", "<|im_start|>assistant\n"]
  return parts.flatMap((part) => words.encode(part))
}

/** What a conversation begins with: nothing computed yet, in any layer of any loop. Of a model that
    loops, `loops` may be another number than that of its training. */
export function emptyCache({ config }, loops = config.n_loops) {
  const layers = { length: config.n_layers * loops } // each loop has keys of its own
  return Array.from(layers, () => ({ qkv: [], kept: [] }))
}

/** Reads the prompt, then gives one token after another, each the likeliest, until `end` or until
    the positions are used up: {token, attention: what the model attended to for it}. */
export function* generate(model, prompt, end) {
  const cache = emptyCache(model)
  let output
  for (const token of prompt) output = model.forward(token, cache)
  for (let n = prompt.length; n < model.config.block_size; n++) {
    const logits = model.read(output.states.at(-1))
    const token = logits.indexOf(Math.max(...logits))
    yield { token, ...output }
    if (token === end) return
    output = model.forward(token, cache)
  }
}
