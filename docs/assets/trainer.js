/* A worker: it trains one model by training.js, beside the page, and tells how it goes.

   It is told {task, changes, seed} to begin, {pause: true or false}, and {stop: true}. It tells, every
   few steps and at the end, {step, steps, loss, accuracy, example, finished}, with the weights as a
   file when it ends. */

import * as training from "./training.js"

const EVERY = 10 // steps
const FAR = 100 // hops of a ring that are tried at the end
let paused = false
let stopped = false
let goOn = () => {}

onmessage = ({ data }) => {
  if (data.task) train(data)
  if ("pause" in data) paused = data.pause
  if (data.stop) stopped = true
  goOn()
}

/** Messages are read while nothing runs: after each step, and as long as it is to wait. */
async function messages() {
  await new Promise((resolve) => setTimeout(resolve))
  while (paused && !stopped) await new Promise((resolve) => (goOn = resolve))
}

async function train({ task, changes, seed }) {
  const run = new training.Training(training[task], changes, seed)
  const began = performance.now()
  const tell = (loss, rest) => {
    const { steps } = run.recipe
    const seconds = (performance.now() - began) / 1000
    postMessage({ step: run.steps, steps, loss, accuracy: run.accuracy(), seconds, ...rest })
  }
  const example = () => (task === "questions" ? { example: run.example() } : {})
  tell(null, example())
  let loss
  while (!run.finished && !stopped) {
    await messages()
    if (stopped) break
    loss = run.step()
    if (run.steps % EVERY === 0 && !run.finished) tell(loss, example())
  }
  const file = training.asSafetensors(run.config, run.model.weights)
  const far = task === "walk" ? { far: run.accuracy(FAR) } : {}
  tell(loss, { ...example(), ...far, file, ended: true })
}
