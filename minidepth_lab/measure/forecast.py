"""How long a run will take on this machine, said before it: python train.py … --dry_run

Nothing is guessed from a table of machines. One layer, the head on some rows, the update of some
weights and one generated token are timed here, in the code that training uses, and counted as often
as the run needs them. So what else the machine is busy with is in the times as well. What the data
adds to an evaluation, as a depth task its accuracy, is tried on a model whose layers only count
what they are given. Reading data, saving and drawing are left out.
"""

import dataclasses
import math
import statistics
import time

import torch
from torch.utils.checkpoint import checkpoint

import minidepth as md
from minidepth_lab.base import console, machine
from minidepth_lab.base.data import Data
from minidepth_lab.keep import running
from minidepth_lab.models import fast, variants

ENOUGH, LONG = 0.1, 0.5  # seconds to time a part for, and of a call that need not be made again
WITHOUT_TESTS = "without the data's own tests, which could not be tried"
TOKENS, WEIGHTS = 2048, 2**22  # the most that is timed at once; more is multiplied

AT_ONCE = 100  # problems that minidepth.answer_texts() answers together


@dataclasses.dataclass
class Work:
    """What a run has to do, counted."""

    steps: int | None  # None: only the data tells, which is not at hand
    parts: int  # forward passes of a step
    batch: int  # sequences in each
    length: float  # tokens of a sequence, as far as its last target
    learned: float  # tokens of a step that carry a loss, those of all loops together
    layers: int  # times that a layer is applied
    learning: int  # of these with a gradient
    evaluations: int  # those of the validation blocks
    blocks: int  # evaluated in the whole run, those of the last step's training loss too
    answered: int  # problems, in the whole run
    words: int  # generated for each of them, at most
    # of what the data adds to the evaluations, in the whole run:
    tested: float = 0.0  # tokens that a layer reads, counted each time it is applied
    aside: float = 0.0  # seconds beside the layers
    untried: bool = False  # whether neither is known: code of one's own may need real layers

    @property
    def tokens(self):
        """Read in a step of training."""
        return self.parts * self.batch * self.length


def work_of(m, t, data=None):
    """The Work of a run; without its data that of full blocks."""
    T, loops = m.block_size, m.n_loops
    length, learned = float(T), float(t.batch_size * t.grad_accum * T)
    parts = t.grad_accum
    if data:
        tokens, targets = data.draw(0, t.batch_size * t.grad_accum)
        if targets.dim() == 3:  # (B, loops, T): a loss after each
            loops = targets.size(1)
        made = [x for x, _ in md.by_length(tokens, targets, t.batch_size)]
        parts, length = len(made), statistics.mean(x.size(1) for x in made)
        learned = float((targets != -100).sum())
    known = data is not None or not t.epochs
    evaluations, blocks, answered = running.evaluations_of(t, data) if known else (0, 0, 0)
    words = 0
    if answered:
        some = data.problems[: t.eval_problems or t.watch_problems]
        solutions = [len(data.tokenizer(p["solution"]).input_ids) for p in some]
        prompts = [len(md.prompt_ids(data.tokenizer, p["messages"])) for p in some]
        # a hundred at a time wait for their longest; they are asked in order of length
        spread = (max(prompts) - min(prompts)) / max(1, len(some) / AT_ONCE)
        words = round(min(max(solutions) + spread, m.block_size))
    return Work(
        steps=t.steps if known else None,
        parts=parts,
        batch=t.batch_size,
        length=length,
        learned=learned,
        layers=m.n_layers * loops,
        learning=m.n_layers * min(loops, t.gradient_loops or loops),
        evaluations=evaluations,
        blocks=blocks,
        answered=answered,
        words=words,
    )


def count_tests(m, t, work, data, device):
    """Let `work` have what data.evaluate() does in the whole run, the last time after the last
    step. It draws random numbers, but leaves PyTorch's generator as it was."""
    if type(data).evaluate is Data.evaluate or work.steps is None:
        return
    read = []  # tokens, each time a layer is applied

    def only_count(x, cache=None):
        read.append(x.size(0) * x.size(1))
        return x

    with torch.random.fork_rng(devices=[]):
        model = variants.GPT(m).to(device)
        model.n_words = data.n_words
        for layer in model.blocks:
            layer.forward = only_count
        tried = {t.steps - 1: 1, 0: work.evaluations - 1}  # {step: evaluations like it}
        for step, times in tried.items():
            own = dataclasses.replace(data, state=dict(data.state))
            own.draw(step, 1)  # which may tell it how far the training is
            read.clear()
            began = time.perf_counter()
            try:
                own.evaluate(model)
            except Exception:  # code of one's own, which may look into layers
                work.tested, work.aside, work.untried = 0.0, 0.0, True
                return
            work.aside += times * (time.perf_counter() - began)
            work.tested += times * sum(read)


# ---------- what a part takes ----------


def seconds_of(part, device):
    """The median time of part(), in seconds."""

    def timed():
        began = time.perf_counter()
        part()
        if device.type == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter() - began

    first = timed()
    if first > LONG:
        return first
    taken = []  # without the first: it takes memory and chooses kernels
    while len(taken) < 3 or sum(taken) < ENOUGH:
        taken.append(timed())
    return statistics.median(taken)


def at_work(half, device):
    """The context in which the model computes: autocast where it is in half precision."""
    return torch.autocast(device.type, half, enabled=half is not None)


def layer_seconds(m, t, work, half, device):
    """(forward and back, forward alone) of one layer on one part of a batch; of several kinds of
    layers, as different numbers of heads make them, the mean."""
    T = max(1, round(work.length))
    B = max(1, min(work.batch, TOKENS // T))
    x = torch.randn(B, T, m.d_model, device=device, requires_grad=True)
    training, alone = [], []
    for n_heads in sorted(set(m.heads)):
        layer = variants.make_layer(m, n_heads).to(device).train()
        called = layer
        if t.grad_checkpoint:
            called = lambda x, layer=layer: checkpoint(layer, x, use_reentrant=False)  # noqa: E731

        def there_and_back(called=called):
            with at_work(half, device):
                y = called(x)
            y.sum().backward()

        @torch.no_grad()
        def forward(layer=layer):
            with at_work(half, device):
                layer(x)

        share = m.heads.count(n_heads) / len(m.heads) * work.batch / B
        training.append(share * seconds_of(there_and_back, device))
        layer.eval()
        alone.append(share * seconds_of(forward, device))
    return sum(training), sum(alone)


def head_seconds(m, work, half, device):
    """(with gradients, without) of the head's loss for one part's tokens."""
    N = max(1, round(work.learned / work.parts))
    chunk = fast.rows_at_once(N, m.vocab_size, half is not None, device.type == "cpu")
    # small, as at first: the tiny probabilities that large ones give are slow on a CPU
    weight = 0.02 * torch.randn(m.vocab_size, m.d_model, device=device)

    def seconds(rows, grads):
        h = torch.randn(rows, m.d_model, device=device)
        targets = torch.randint(m.vocab_size, (rows,), device=device)
        loss = lambda: fast.HeadLoss.apply(h, weight, targets, half or h.dtype, grads)  # noqa: E731
        return seconds_of(loss, device)

    both = []
    for grads in (True, False):
        few, more = min(N, chunk), min(N, 2 * chunk)  # whole chunks, which have a cost of their own
        taken = seconds(few, grads)
        if more > few:  # part of it, as the table for the gradient, is the same for any rows
            of_row = max(0.0, seconds(more, grads) - taken) / (more - few)
            taken += (N - few) * of_row
        both.append(taken)
    return both


def update_seconds(m, t, device):
    """Of clipping and AdamW, for all weights."""
    n = variants.parameters(m)["total"]
    layer = variants.make_layer(m, m.heads[0]).to(device)
    of_layer = sum(p.numel() for p in layer.parameters())
    times = max(1, min(m.n_layers, WEIGHTS // of_layer))
    weights = [torch.randn_like(p).requires_grad_() for p in layer.parameters()]
    model = torch.nn.ParameterList(torch.nn.Parameter(w.clone()) for w in weights * times)
    rest = max(0, min(n - m.n_layers * of_layer, WEIGHTS)) // m.d_model
    if rest:
        model.append(torch.nn.Parameter(torch.randn(rest, m.d_model, device=device)))
    optimizer = md.make_optimizer(model, t)
    for p in model:
        p.grad = torch.randn_like(p)

    def update():
        torch.nn.utils.clip_grad_norm_(list(model), t.grad_clip)
        optimizer.step()

    return seconds_of(update, device) * n / sum(p.numel() for p in model)


def word_seconds(m, work, half, device):
    """Of one more word for each of the problems that are answered at once."""
    B, most = min(AT_ONCE, work.answered), max(2, work.words)
    layer = variants.make_layer(m, m.heads[0]).to(device).eval()
    before = torch.randn(2, B, layer.attn.n_heads, most // 2, m.d_model // m.heads[0])
    x, weight = torch.randn(B, 1, m.d_model), torch.randn(m.vocab_size, m.d_model)

    @torch.no_grad()
    def one_layer():
        cache = md.Cache()
        cache.append(*before)
        with at_work(half, device):
            layer(x, cache)

    @torch.no_grad()
    def choice():
        with at_work(half, device):
            logits = (weight @ x[:, -1].T).T
        logits.float().argmax(-1)

    if device.type != "cpu":
        return 0.0  # a small part there, and not worth a second copy of what is above
    return work.layers * seconds_of(one_layer, device) + seconds_of(choice, device)


# ---------- the whole run ----------


@dataclasses.dataclass
class Forecast:
    """Seconds."""

    step: float
    evaluations: float  # all of them together
    answers: float  # all of them together
    total: float | None  # None where the number of steps is not known


def forecast(m, t, work, half, device):
    """The Forecast of a run in a precision, `half` or None for fp32. It draws random numbers, but
    leaves PyTorch's generator as it was."""
    with torch.random.fork_rng(devices=[]):
        layer, layer_alone = layer_seconds(m, t, work, half, device)
        head, head_alone = head_seconds(m, work, half, device)
        unlearned = work.layers - work.learning  # loops without a gradient, which go forward alone
        step = work.parts * (work.learning * layer + unlearned * layer_alone + head)
        step += update_seconds(m, t, device)
        evaluations = work.blocks * (work.layers * layer_alone + head_alone) / work.batch
        evaluations += work.tested * layer_alone / (work.batch * work.length) + work.aside
        answers = 0.0
        if work.answered:
            turns = math.ceil(work.answered / AT_ONCE)
            answers = turns * work.words * word_seconds(m, work, half, device)
            answers += work.answered * work.layers * layer_alone / work.batch  # reading the prompts
    total = None if work.steps is None else work.steps * step + evaluations + answers
    return Forecast(step, evaluations, answers, total)


def as_time(seconds):
    """7,500 → '2.1 h'"""
    for unit, size in (("days", 86_400 * 2), ("h", 5400), ("min", 90)):
        if seconds >= size:
            of_unit = dict(days=86_400, h=3600, min=60)[unit]
            return f"{seconds / of_unit:.1f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.2g} s"


def take_off(work, t, done):
    """Let `work` be what is left after `done` steps of a run whose data is not at hand, so that
    neither answers nor tests are counted in it."""
    if not done or work.steps is None:
        return
    evaluated = done // t.eval_every + (t.eval_every > 1)  # the first step's too
    work.blocks -= round(evaluated * (work.blocks - t.eval_blocks) / work.evaluations)
    work.evaluations -= evaluated
    work.steps -= done


def of_run(m, t, data=None, done=0):
    """(the Work of a run on one of the GPUs or processes that share a batch, its Forecast);
    m.vocab_size is known. Of a run that goes on, without `data`, what is left after `done` steps.
    """
    device = machine.pick_device(t.device)
    work, half = work_of(m, t, data), machine.pick_precision(t.precision, device)
    gpus = md.processes()[1]
    if device.type == "cuda" and gpus == 1:
        gpus = torch.cuda.device_count()
    work.batch = max(1, work.batch // gpus)
    work.learned /= gpus
    if data:
        count_tests(m, t, work, data, device)
    else:
        from minidepth_lab.rows import sources  # the tasks with it, which a run on text never needs

        work.untried = bool(t.loader) or sources.names_task(t.data[0])
        take_off(work, t, done)
    return work, forecast(m, t, work, half, device)


def lines(m, t, data=None, done=0):
    """What --dry_run says of the time, a line each; m.vocab_size is known; `done` as of_run()."""
    device = machine.pick_device(t.device)
    half = machine.pick_precision(t.precision, device)
    work, this = of_run(m, t, data, done)
    if this.total is None:
        said = [f"time {as_time(this.step)} a step here; how many steps, only the data tells"]
    else:
        said = [
            f"time {'left ' * bool(done)}about {as_time(this.total)} here: "
            f"{console.plural(work.steps, 'step')} of {as_time(this.step)}, "
            f"{work.evaluations} evaluation{'s' * (work.evaluations != 1)} "
            f"{as_time(this.evaluations)}"
        ]
        if work.answered:
            said[0] += f", {work.answered:,} answers {as_time(this.answers)} if they are short"
        if work.untried:
            said[0] += f", {WITHOUT_TESTS}"
        said[0] += "; measured on one layer and the head, just now"
    if device.type == "cpu" and half is not torch.float16:
        said += other_precision(m, t, work, half, device, this)
    return said


def other_precision(m, t, work, half, device, this):
    """Whether fp32 or, where the CPU says that it has it, bf16 would take less time: [a line] or
    []."""
    how = machine.bf16_of_cpu()
    if half is None and not how:
        return []
    other, name = (None, "fp32") if half else (torch.bfloat16, "bf16")
    step = forecast(m, t, work, other, device).step
    if step > 0.9 * this.step:
        return []
    has = "" if half else f"this CPU has {how}: "
    return [f"note: {has}a step would take {as_time(step)} with --precision {name}"]
