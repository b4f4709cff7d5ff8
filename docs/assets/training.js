/* training.js: the training of minidepth.py in another language, without a library.

   minidepth.js takes a sequence forward, one token after another. Here the same way is gone back,
   from the last token to the first and from the last layer to the first, and AdamW changes the
   weights. train.js shows it in a page, and trainer.js runs it beside the page.

   A gradient has the form of what it belongs to: {name: matrix} for the weights, a Float32Array for
   a vector. `dx` is the gradient of the loss with respect to x.
   Sections: 1 chance, 2 tasks, 3 first weights, 4 the way back, 5 AdamW, 6 a training,
   7 the weights as a file. */

import { add, dot, emptyCache, GPT, shapes, softmax, standardised } from "./minidepth.js"

// ---------- 1. chance ----------

/** A function that gives numbers from 0 to 1, the same for the same seed (xorshift: Marsaglia 2003,
    "Xorshift RNGs"). */
export function randomFrom(seed) {
  let bits = Math.imul(seed + 1, 0x9e3779b1) || 1 // seeds that are near begin far apart
  const next = () => {
    bits ^= bits << 13
    bits ^= bits >>> 17
    bits ^= bits << 5
    return (bits >>> 0) / 2 ** 32
  }
  for (let i = 0; i < 20; i++) next()
  return next
}

/** A number of the normal distribution with mean 0 and standard deviation 1 (Box and Muller). */
function normal(random) {
  const radius = Math.sqrt(-2 * Math.log(1 - random()))
  return radius * Math.cos(2 * Math.PI * random())
}

/** `k` different numbers below `n`, in an order by chance. */
function distinct(n, k, random) {
  const numbers = Array.from({ length: n }, (_, i) => i)
  for (let i = 0; i < k; i++) {
    const j = i + Math.floor(random() * (n - i))
    ;[numbers[i], numbers[j]] = [numbers[j], numbers[i]]
  }
  return numbers.slice(0, k)
}

// ---------- 2. tasks ----------

/* A task draws a sequence: {tokens, targets}. A target {place, loop, token} says which token is the
   right one at a place after so many loops. */

/** In-context questions, as tasks/icqa.py: q1 a1 … q8 a8 in pairs that are drawn anew each time,
    then every q in another order. The right answer is the a that stood behind this q. */
export const questions = {
  config: { vocab_size: 32, block_size: 24, d_model: 64, n_heads: 2, n_loops: 1 },
  recipe: { steps: 150, batch: 24, lr: 5e-3, warmup: 20, beta1: 0.7 },

  draw(random) {
    const [asked, answers] = [distinct(16, 8, random), distinct(16, 8, random)]
    const pairs = asked.flatMap((q, i) => [q, 16 + answers[i]])
    const order = distinct(8, 8, random)
    const target = (which, n) => ({ place: 16 + n, loop: 1, token: 16 + answers[which] })
    return { tokens: [...pairs, ...order.map((i) => asked[i])], targets: order.map(target) }
  },
}

/** A ring of eight letters, as tasks/walk.py: its pairs in mixed order, then every letter. After
    loop i + 1 the right answer is the letter i hops on, for as many hops as are asked. */
export const walk = {
  config: { vocab_size: 16, block_size: 24, d_model: 32, n_heads: 4, n_layers: 1, loop_start: "recall" },
  recipe: { steps: 500, batch: 16, lr: 1.2e-2, warmup: 20, beta1: 0.7 },

  draw(random, hops) {
    const ring = distinct(16, 8, random)
    const after = (i, n) => ring[(i + n) % 8]
    const pairs = distinct(8, 8, random).flatMap((i) => [ring[i], after(i, 1)])
    const order = distinct(8, 8, random)
    const targets = order.flatMap((i, n) =>
      Array.from({ length: hops }, (_, hop) => {
        return { place: 16 + n, loop: hop + 2, token: after(i, hop + 1) }
      }),
    )
    return { tokens: [...pairs, ...order.map((i) => ring[i])], targets }
  },
}

// ---------- 3. first weights ----------

const INIT_STD = 0.1

/** The settings of a model, those that a task leaves open included. */
export function settings(changes) {
  const rest = { d_ff: 0, position: "learned", loop_start: "state", loop_keeps: 0 }
  return { ...rest, tie_weights: false, init_std: INIT_STD, dropout: 0, ...changes }
}

/** Norms begin as 1 and 0, all else by chance; what is added to the residual stream begins smaller
    the more often something is added. */
export function firstWeights(config, random) {
  const additions = config.n_layers * config.n_loops
  const first = (name) => {
    if (name.includes("norm")) return () => Number(name.endsWith("weight"))
    const std = name.endsWith("out.weight") ? INIT_STD / Math.sqrt(additions) : INIT_STD
    return () => std * normal(random)
  }
  return filled(shapes(config), first)
}

/** {name: matrix} of these shapes, filled number by number by what `first` says of the name. */
function filled(shapes, first) {
  const entry = ([name, shape]) => {
    const data = new Float32Array(shape.reduce((a, b) => a * b)).map(first(name))
    return [name, { shape, data }]
  }
  return Object.fromEntries(Object.entries(shapes).map(entry))
}

export const zeros = (config) => filled(shapes(config), () => () => 0)

// ---------- 4. the way back ----------

function addTo(total, change, from = 0) {
  for (let i = 0; i < change.length; i++) total[from + i] += change[i]
}

/** y = matrix x: from dy, the gradient of the matrix grows, and dx is returned. */
function linearBack({ shape, data }, { data: gradient }, x, dy) {
  const [rows, columns] = shape
  const dx = new Float32Array(columns)
  for (let r = 0; r < rows; r++) {
    const d = dy[r]
    const start = r * columns
    for (let c = 0; c < columns; c++) {
      dx[c] += d * data[start + c]
      gradient[start + c] += d * x[c]
    }
  }
  return dx
}

/** z = standardised(x): what all of x have in common, its mean and its length, cannot change z. */
function standardisedBack(x, dz) {
  const { z, scale } = standardised(x)
  let [mean, along] = [0, 0]
  for (let i = 0; i < x.length; i++) {
    mean += dz[i] / x.length
    along += (dz[i] * z[i]) / x.length
  }
  return x.map((_, i) => scale * (dz[i] - mean - along * z[i]))
}

function layerNormBack(weights, gradients, name, x, dy) {
  const { z } = standardised(x)
  const weight = weights[`${name}.weight`].data
  addTo(gradients[`${name}.weight`].data, dy.map((d, i) => d * z[i]))
  addTo(gradients[`${name}.bias`].data, dy)
  return standardisedBack(x, dy.map((d, i) => d * weight[i]))
}

/** What a token's attention in one layer hands on: from dy, dx is returned, and the gradients of
    the keys and values that it looked at grow in cache.dqkv. All later tokens have been here. */
function attendBack(model, gradients, layer, t, cache, dy) {
  const w = model.weights
  const block = `blocks.${layer}`
  const { x, h, sides, byHead } = cache.kept[t]
  const C = x.length
  const D = C / byHead.length
  const scale = model.config.attn_scale ?? 1 / Math.sqrt(D)
  const out = `${block}.attn.out.weight`
  const dSides = linearBack(w[out], gradients[out], sides, dy)
  const [qkv, dqkv] = [cache.qkv[t], cache.dqkv[t]]
  byHead.forEach((weights, head) => {
    const start = head * D
    // 1. the output is the sum of the values, each times its weight
    const dWeights = weights.map((_, at) => dot(dSides, start, cache.qkv[at], 2 * C + start, D))
    // 2. softmax: a weight grows at the cost of all others
    const total = weights.reduce((sum, weight, at) => sum + weight * dWeights[at], 0)
    weights.forEach((weight, at) => {
      const dScore = weight * (dWeights[at] - total) * scale
      const [other, dOther] = [cache.qkv[at], cache.dqkv[at]]
      for (let i = start; i < start + D; i++) {
        dOther[2 * C + i] += weight * dSides[i] // the value
        dOther[C + i] += dScore * qkv[i] // the key
        dqkv[i] += dScore * other[C + i] // the query
      }
    })
  })
  const name = `${block}.attn.qkv.weight`
  const dh = linearBack(w[name], gradients[name], h, dqkv)
  return layerNormBack(w, gradients, `${block}.norm1`, x, dh)
}

/** One token back through all loops: `states` is its residual stream before the first loop and
    after each, `dStates` what each of these got from the losses that were read from it. */
function forwardBack(model, gradients, token, t, cache, states, dStates) {
  const { n_layers, loop_start, loop_keeps } = model.config
  let dx = new Float32Array(states[0].length)
  const dEmbedded = dx.slice()
  for (let loop = states.length - 1; loop > 0; loop--) {
    if (dStates[loop]) addTo(dx, dStates[loop])
    let around = null
    if (t < loop_keeps && loop > 1) {
      around = dx // a token that is kept goes around the loop; its keys and values come from inside
      dx = new Float32Array(dx.length)
    }
    for (let layer = n_layers - 1; layer >= 0; layer--) {
      const its = cache[(loop - 1) * n_layers + layer]
      dx = add(dx, attendBack(model, gradients, layer, t, its, dx)) // around the layer, and through
    }
    if (loop_start === "input" || loop_start === "recall") addTo(dEmbedded, dx)
    if (loop_start === "normalised" || loop_start === "recall") {
      dx = standardisedBack(states[loop - 1], dx)
    }
    if (around) addTo(dx, around)
  }
  addTo(dEmbedded, dx)
  const C = dx.length
  addTo(gradients["token_embedding.weight"].data, dEmbedded, token * C)
  addTo(gradients["position_embedding.weight"].data, dEmbedded, t * C)
}

/** The logits that were read from a state, and the loss −log p of the right token: the gradient of
    the loss, times `factor`, goes back → {loss, right, dState}. */
function readBack(model, gradients, state, target, factor) {
  const p = softmax(model.read(state))
  const right = p.every((share) => share <= p[target])
  const dLogits = p.map((share, token) => factor * (share - (token === target ? 1 : 0)))
  const w = model.weights
  const head = w["head.weight"]
  const normed = standardised(state).z.map(
    (z, i) => z * w["norm.weight"].data[i] + w["norm.bias"].data[i],
  )
  const dh = linearBack(head, gradients["head.weight"], normed, dLogits)
  const dState = layerNormBack(w, gradients, "norm", state, dh)
  return { loss: -Math.log(p[target]), right, dState }
}

/** A sequence there and back: its gradients, times `factor`, are added to `gradients`.
    → [{loss, right} of each target] */
export function backward(model, gradients, { tokens, targets }, factor) {
  const loops = Math.max(...targets.map((target) => target.loop))
  const cache = emptyCache(model, loops)
  const states = tokens.map((token) => model.forward(token, cache).states)
  const dStates = tokens.map(() => [])
  const read = targets.map(({ place, loop, token }) => {
    const { dState, ...rest } = readBack(model, gradients, states[place][loop], token, factor)
    dStates[place][loop] = dState
    return rest
  })
  for (const layer of cache) layer.dqkv = layer.qkv.map((qkv) => new Float32Array(qkv.length))
  for (let t = tokens.length - 1; t >= 0; t--)
    forwardBack(model, gradients, tokens[t], t, cache, states[t], dStates[t])
  return read
}

// ---------- 5. AdamW ----------

/** The learning rate of a step, counted from 0: a line up to the peak, half a cosine down to a tenth
    of it. */
export function rate(step, { steps, lr, warmup }) {
  if (step < warmup) return (lr * step) / warmup
  const done = (step - warmup) / (steps - warmup)
  const floor = 0.1 * lr
  return floor + 0.5 * (1 + Math.cos(Math.PI * done)) * (lr - floor)
}

export class AdamW {
  constructor(weights, { beta1, beta2 = 0.95, weightDecay = 0 }) {
    Object.assign(this, { weights, beta1, beta2, weightDecay, steps: 0 })
    const empty = ({ data }) => ({ mean: data.map(() => 0), square: data.map(() => 0) })
    const entry = ([name, matrix]) => [name, empty(matrix)]
    this.moments = Object.fromEntries(Object.entries(weights).map(entry))
  }

  /** A step against the gradients, which are made 0. A gradient longer than 1 is made as long. */
  step(gradients, lr) {
    this.steps++
    let squares = 0
    for (const { data } of Object.values(gradients)) for (const g of data) squares += g * g
    const clip = Math.min(1, 1 / (Math.sqrt(squares) + 1e-6))
    // both means begin at 0, and are too small at first by these factors
    const [mean1, mean2] = [1 - this.beta1 ** this.steps, 1 - this.beta2 ** this.steps]
    for (const [name, { shape, data }] of Object.entries(this.weights)) {
      const { mean, square } = this.moments[name]
      const decay = shape.length > 1 ? 1 - lr * this.weightDecay : 1 // of matrices, not of norms
      for (let i = 0; i < data.length; i++) {
        const g = gradients[name].data[i] * clip
        mean[i] += (1 - this.beta1) * (g - mean[i])
        square[i] += (1 - this.beta2) * (g * g - square[i])
        data[i] *= decay
        data[i] -= (lr * (mean[i] / mean1)) / (Math.sqrt(square[i] / mean2) + 1e-8)
      }
      gradients[name].data.fill(0)
    }
  }
}

// ---------- 6. a training ----------

const TESTS = 50 // sequences that training does not see, but by an accident of one in 10^16
const TEST_SEED = 1e6

/** The training of a task: new Training(questions, { n_layers: 2 }, seed), then step by step. The
    seed draws the first weights and the sequences. */
export class Training {
  constructor(task, changes, seed, weights) {
    const config = settings({ ...task.config, ...changes })
    const random = randomFrom(seed)
    Object.assign(this, { task, config, random, recipe: task.recipe, steps: 0, hops: 1 })
    this.model = new GPT(config, weights ?? firstWeights(config, random))
    this.gradients = zeros(config)
    this.optimizer = new AdamW(this.model.weights, task.recipe)
  }

  get finished() {
    return this.steps === this.recipe.steps
  }

  /** One step, on sequences drawn now or on these → the mean loss. */
  step(sequences) {
    const { batch } = this.recipe
    sequences ??= Array.from({ length: batch }, () => this.task.draw(this.random, this.hops))
    const n = sequences.length * sequences[0].targets.length
    let loss = 0
    for (const sequence of sequences)
      for (const read of backward(this.model, this.gradients, sequence, 1 / n)) loss += read.loss / n
    this.optimizer.step(this.gradients, rate(this.steps, this.recipe))
    this.steps++
    // hops are asked one more at a time: the next one when the loss of the newest must be small,
    // were it all of the loss
    if (loss * this.hops < 0.5 && this.hops < this.config.n_loops - 1) this.hops++
    return loss
  }

  /** The tests, always the same ones; `hops` as of task.draw(). */
  tests(hops) {
    const random = randomFrom(TEST_SEED)
    return Array.from({ length: TESTS }, () => this.task.draw(random, hops))
  }

  /** The share of the tests that is right: {loop after which it is read: share}. */
  accuracy(hops = this.config.n_loops - 1) {
    const [right, all] = [{}, {}]
    for (const { tokens, targets } of this.tests(hops)) {
      const cache = emptyCache(this.model, Math.max(...targets.map((target) => target.loop)))
      const states = tokens.map((token) => this.model.forward(token, cache).states)
      for (const { place, loop, token } of targets) {
        const logits = this.model.read(states[place][loop])
        all[loop] = (all[loop] ?? 0) + 1
        right[loop] = (right[loop] ?? 0) + logits.every((logit) => logit <= logits[token])
      }
    }
    for (const loop in all) right[loop] /= all[loop]
    return right
  }

  /** The share of the tests that is right without some heads, [[layer, head]]. A head says what it
      found through its columns of the output matrix: as 0 they are silent. */
  without(heads) {
    const copied = ([name, { shape, data }]) => [name, { shape, data: data.slice() }]
    const weights = Object.fromEntries(Object.entries(this.model.weights).map(copied))
    const C = this.config.d_model
    const D = C / this.config.n_heads
    for (const [layer, head] of heads) {
      const { data } = weights[`blocks.${layer}.attn.out.weight`]
      for (let row = 0; row < C; row++) data.fill(0, row * C + head * D, row * C + (head + 1) * D)
    }
    return new Training(this.task, this.config, 0, weights).accuracy()[this.config.n_loops]
  }

  /** The first test, and for each layer, head and token the weights on the tokens so far. */
  example() {
    const { tokens, targets } = this.tests(1)[0]
    const cache = emptyCache(this.model)
    const outputs = tokens.map((token) => this.model.forward(token, cache))
    const maps = cache.map((_, layer) => outputs.map((output) => output.attention[layer]))
    const shares = targets.map(({ place }) => softmax(this.model.read(outputs[place].states.at(-1))))
    return { tokens, targets, maps, shares }
  }
}

// ---------- 7. the weights as a file ----------

/** {name: matrix} → the bytes of a file as safetensors has it, which readSafetensors() and PyTorch
    read. The settings of the model go with them, as text. */
export function asSafetensors(config, weights) {
  const header = { __metadata__: { config: JSON.stringify(config) } }
  let end = 0
  for (const [name, { shape, data }] of Object.entries(weights)) {
    header[name] = { dtype: "F32", shape, data_offsets: [end, end + data.byteLength] }
    end += data.byteLength
  }
  const text = new TextEncoder().encode(JSON.stringify(header))
  const padding = (8 - (text.length % 8)) % 8 // numbers begin at a multiple of 8
  const bytes = new Uint8Array(8 + text.length + padding + end)
  new DataView(bytes.buffer).setBigUint64(0, BigInt(text.length + padding), true)
  bytes.set(text, 8)
  bytes.fill(32, 8 + text.length, 8 + text.length + padding) // spaces
  let at = 8 + text.length + padding
  for (const { data } of Object.values(weights)) {
    bytes.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), at)
    at += data.byteLength
  }
  return bytes
}
