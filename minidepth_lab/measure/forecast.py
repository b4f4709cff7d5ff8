"""How long a run will take on this machine, said before it: python train.py … --dry_run

Nothing is guessed from a table of machines. Three steps of the run, an evaluation and some
generated words are made here by the code that makes them in the run, on a model that is thrown
away. So what else the machine is busy with is in the times as well. What the data adds to an
evaluation, as a depth task its accuracy, is tried on a model whose layers only count what they are
given. Reading data, saving and drawing are left out.
"""

import dataclasses
import math
import statistics
import time

import torch

import minidepth as md
from minidepth_lab.base import console, machine
from minidepth_lab.base.data import Data
from minidepth_lab.keep import running
from minidepth_lab.models import variants

LONG = 0.5  # seconds of a call that need not be made again
WITHOUT_TESTS = "without the data's own tests, which could not be tried"
TOKENS = 4096  # the most that a step is timed on, on a CPU: a larger batch is counted as so many
AT_ONCE = 100  # problems that minidepth.answer_texts() answers together
WORDS = 8  # generated for each of them, of as many as the longest solution has


@dataclasses.dataclass
class Forecast:
    """A run: how often it does what, and the seconds that this takes."""

    steps: int | None  # None: only the data tells, which is not at hand
    step: float = 0.0  # of one
    evaluations: int = 0
    evaluating: float = 0.0  # of all of them together
    answered: int = 0  # problems, in the whole run
    answering: float = 0.0  # of all of them together
    untried: bool = False  # whether the data's own tests are left out: nobody could try them

    @property
    def total(self):
        return self.steps and self.steps * self.step + self.evaluating + self.answering


def seconds_of(call, device):
    """The median time of call(), in seconds."""

    def timed():
        began = time.perf_counter()
        call()
        if device.type == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter() - began

    first = timed()
    if first > LONG:
        return first
    return statistics.median(timed() for _ in range(3))  # the first takes memory, chooses kernels


def first_batch(m, t, data):
    """(tokens, targets) of a step; without data full blocks."""
    n = t.batch_size * t.grad_accum
    if data:
        return dataclasses.replace(data, state=dict(data.state)).draw(0, n)
    return (torch.randint(m.vocab_size, (n, m.block_size)),) * 2


def training_of(m, t):
    """The minidepth.Training whose steps are those of a run; but compiling would take long."""
    t = dataclasses.replace(t, compile=False, device=machine.pick_device(t.device).type)
    return md.Training(m, t, running.model_maker(t, None))


def step_seconds(m, t, batch):
    """(seconds of a step on the batch as train() makes it, training_of())."""
    training = training_of(m, t)
    device, n = training.device, len(batch[0])

    def seconds(few):
        return seconds_of(lambda: training.step(*(part[:few] for part in batch)), device)

    few = max(2, TOKENS // batch[0].shape[-1])
    if device.type != "cpu" or few >= n:
        return seconds(n), training
    of_few, of_half = seconds(few), seconds(few // 2)
    # updating the weights takes as long for any batch
    more = (n - few) * max(0.0, of_few - of_half) / (few - few // 2)
    return of_few + more, training


def tests(m, t, data, evaluations, device):
    """What data.evaluate() does in the whole run, the last time after the last step: (tokens that
    layers read, counted each time one is applied, seconds beside the layers); ValueError where code
    of one's own needs real layers."""
    read, aside = 0, 0.0

    def only_count(x, cache=None):
        nonlocal read
        read += times * x.size(0) * x.size(1)
        return x

    model = variants.GPT(m).to(device).eval()
    model.n_words = data.n_words
    for layer in model.blocks:
        layer.forward = only_count
    for step, times in ((t.steps - 1, 1), (0, evaluations - 1)):  # a step, evaluations like it
        own = dataclasses.replace(data, state=dict(data.state))
        own.draw(step, 1)  # which may tell it how far the training is
        began = time.perf_counter()
        try:
            own.evaluate(model)
        except Exception as error:
            raise ValueError("code of one's own may look into layers") from error
        aside += times * (time.perf_counter() - began)
    return read, aside


def of_run(m, t, data=None, done=0):
    """The Forecast of a run whose m.vocab_size is known. Without `data` it is that of full blocks;
    of a run that goes on then, that of what is left after `done` steps. Random numbers are drawn
    for it, but PyTorch's generator is left as it was."""
    with torch.random.fork_rng(devices=[]):
        return measured(m, t, data, done)


def measured(m, t, data, done):
    batch, known = first_batch(m, t, data), data is not None or not t.epochs
    found = Forecast(t.steps - done if known else None)
    found.step, training = step_seconds(m, t, batch)
    model, device = training.model.eval(), training.device
    model.n_words = data.n_words if data else m.vocab_size
    if not known:
        return found

    # evaluations, of blocks as those of the first batch
    found.evaluations, blocks, found.answered = running.evaluations_of(t, data)
    if done:
        made = done // t.eval_every + (t.eval_every > 1)  # the first step's too
        blocks -= round(made * (blocks - t.eval_blocks) / found.evaluations)
        found.evaluations -= made
    part = data.val if data else batch
    few = min(len(part[0]), t.batch_size, max(1, TOKENS // part[0].shape[-1]))
    forward = seconds_of(lambda: md.mean_loss(model, part, few, t.batch_size), device)
    found.evaluating = blocks * forward / few
    of_token = forward / (few * part[0].shape[-1])  # all layers, and the head

    # what the data measures
    if data and type(data).evaluate is not Data.evaluate:
        try:
            read, aside = tests(m, t, data, found.evaluations, device)
            found.evaluating += aside + read * of_token / (m.n_layers * m.n_loops)
        except ValueError:
            found.untried = True
    elif not data:
        from minidepth_lab.rows import sources  # the tasks with it, which a run on text never needs

        found.untried = bool(t.loader) or sources.names_task(t.data[0])

    # answers, a hundred at once: they read the prompts, and say a word after the other
    if found.answered:
        some = data.problems[: t.eval_problems or t.watch_problems]
        solutions = [len(data.tokenizer(p["solution"]).input_ids) for p in some]
        prompts = [len(md.prompt_ids(data.tokenizer, p["messages"])) for p in some]
        # they wait for their longest; they are asked in order of length
        spread = (max(prompts) - min(prompts)) / max(1, len(some) / AT_ONCE)
        words = min(max(solutions) + spread, m.block_size)
        room = max(1, min(WORDS, m.block_size - 1))
        asked = torch.zeros(min(AT_ONCE, found.answered), 1, dtype=torch.long, device=device)
        said = seconds_of(lambda: md.generate(model, asked, room), device) / room
        found.answering = math.ceil(found.answered / AT_ONCE) * words * said
        found.answering += found.answered * statistics.mean(prompts) * of_token
    return found


def as_time(seconds):
    """7,500 → '2.1 h'"""
    for unit, size in (("days", 86_400 * 2), ("h", 5400), ("min", 90)):
        if seconds >= size:
            of_unit = dict(days=86_400, h=3600, min=60)[unit]
            return f"{seconds / of_unit:.1f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.2g} s"


def lines(m, t, data=None, done=0):
    """What --dry_run says of the time, a line each; m.vocab_size is known; `done` as of_run()."""
    if md.processes()[1] > 1:
        return ["time: measured without torchrun alone"]
    this = of_run(m, t, data, done)
    if this.total is None:
        said = f"time {as_time(this.step)} a step here; how many steps, only the data tells"
    else:
        said = (
            f"time {'left ' * bool(done)}about {as_time(this.total)} here: "
            f"{console.plural(this.steps, 'step')} of {as_time(this.step)}, "
            f"{console.plural(this.evaluations, 'evaluation')} {as_time(this.evaluating)}"
        )
        if this.answered:
            said += f", {this.answered:,} answers {as_time(this.answering)} if they are short"
        if this.untried:
            said += f", {WITHOUT_TESTS}"
        said += "; three steps were measured, just now"
    return [said, *other_precision(m, t, data, this)]


def other_precision(m, t, data, this):
    """Whether on a CPU fp32 or, where the CPU says that it has it, bf16 would take less time: [a
    line] or []."""
    device = machine.pick_device(t.device)
    half = machine.pick_precision(t.precision, device)
    how = machine.bf16_of_cpu()
    if device.type != "cpu" or half is torch.float16 or (half is None and not how):
        return []
    name = "fp32" if half else "bf16"
    with torch.random.fork_rng(devices=[]):
        other = dataclasses.replace(t, precision=name)
        step, _ = step_seconds(m, other, first_batch(m, t, data))
    if step > 0.9 * this.step:
        return []
    has = "" if half else f"this CPU has {how}: "
    return [f"note: {has}a step would take {as_time(step)} with --precision {name}"]
