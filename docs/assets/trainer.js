/* A worker: it trains one model by training.js, beside the page, and tells how it goes.

   It is told {task, changes, seed} to begin, {pause: true or false}, {stop: true}, and once it has
   ended {without: heads}. It tells, every few steps and at the end, {step, steps, loss, accuracy,
   seconds, example}, when it ends {ended: true} and the weights as a file, of a walk then
   {far: accuracy in many more loops}, and {without: heads, share: what is right without them}. */

import * as training from "./training.js"

const EVERY = 10 // steps
const FAR = 100 // hops of a ring that are tried at the end
let paused = false
let stopped = false
let goOn = () => {}
let run
let waited = 0 // milliseconds that the page was hidden

onmessage = ({ data }) => {
  if (data.task) train(data)
  if ("pause" in data) paused = data.pause
  if (data.stop) stopped = true
  if (data.without) postMessage({ without: data.without, share: run.without(data.without) })
  goOn()
}

/** Messages are read while nothing runs: after each step, and as long as it is to wait. */
async function messages() {
  await new Promise((resolve) => setTimeout(resolve))
  const since = performance.now()
  while (paused && !stopped) await new Promise((resolve) => (goOn = resolve))
  waited += performance.now() - since
}

async function train({ task, changes, seed }) {
  run = new training.Training(training[task], changes, seed)
  const began = performance.now()
  const tell = (loss, rest) => {
    const { steps } = run.recipe
    const seconds = (performance.now() - began - waited) / 1000
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
  tell(loss, { ...example(), file, ended: true })
  if (task === "walk") postMessage({ far: run.accuracy(FAR) })
}
