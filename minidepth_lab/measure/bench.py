"""What a training step and generation cost: python train.py --bench

    python train.py --bench --against gpt2     and the same of the GPT-2 of `transformers`

One device; reading data and evaluating are left out. The batch is the first one of the data where
that is at hand, as embedded data and tasks are, and else random tokens. With --against each model
has a process of its own, for two in one process share memory and caches, which changes the ratios.
They take turns, step by step, so that what else the machine does meets both.

Of a step, `forward` is the model up to the last norm, `head` from there to the loss, with its
gradients in our model, `backward` the other gradients, `update` clipping and AdamW. The share of
matrix products is the time that those of its linear layers and head take by themselves.
"""

import contextlib
import dataclasses
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

import minidepth as md
from minidepth_lab.base import configs, machine
from minidepth_lab.keep import export, registry, running
from minidepth_lab.measure import sampling
from minidepth_lab.models import compiling, fast, variants
from minidepth_lab.rows import sources

STEPS, WARM = 10, 2  # measured, and before them
PROMPT, NEW = 32, 256  # tokens
BATCHES = (1, 16)  # sequences generated at a time


def peak_bytes():
    """The most memory that this process has held, in bytes; None where the system does not say."""
    with contextlib.suppress(OSError, TypeError):  # Linux, where getrusage() begins at what the
        status = pathlib.Path("/proc/self/status").read_text()  # process held that started this one
        return 1024 * int(re.search(r"VmHWM:\s+(\d+) kB", status)[1])
    with contextlib.suppress(ImportError):  # Windows has no such module
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak * (1 if sys.platform == "darwin" else 1024)  # bytes or kilobytes


class Ours:
    """Our model, whose steps are those of training, timed by their parts."""

    def __init__(self, m, t, device):
        t = dataclasses.replace(t, device=device.type)
        self.training = md.Training(m, t, self.maker(t))
        self.model, self.device = self.training.model, device
        self.spent = dict(hidden=0.0, forward=0.0)
        self.timed(self.model, "hidden")
        self.timed(self.model, "forward")
        unscale = self.training.scaler.unscale_

        def begin_update(optimizer):
            self.update_began = self.now()
            unscale(optimizer)

        self.training.scaler.unscale_ = begin_update

    def maker(self, t):
        return running.model_maker(t, None)

    def now(self):
        if self.device.type == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter()

    def timed(self, owner, name):
        """Let the calls of a method be timed."""
        call = getattr(owner, name)

        def lap(*given, **named):
            began = self.now()
            result = call(*given, **named)
            self.spent[name] += self.now() - began
            return result

        setattr(owner, name, lap)

    def generate(self, tokens, n):
        return sampling.generate(self.model, tokens, n, temperature=0)

    def step(self, tokens, targets):
        """One step on tokens and targets (B, T) → seconds of each part."""
        self.spent = dict(hidden=0.0, forward=0.0)
        began = self.now()
        self.training.step(tokens, targets)
        ended = self.now()
        forward, model = self.spent["hidden"], self.spent["forward"]
        return dict(
            forward=forward, head=model - forward, backward=self.update_began - began - model,
            update=ended - self.update_began,
        )  # fmt: skip


class GPT2Loss(nn.Module):
    """The GPT-2 of `transformers`, called as minidepth.Training calls a model; its loss is
    cross_entropy() of all logits."""

    def __init__(self, config):
        super().__init__()
        self.gpt2, self.autocast_dtype = export.to_gpt2(variants.GPT(config)), None

    def hidden(self, tokens):
        return self.gpt2.transformer(tokens).last_hidden_state

    def autocast(self, tokens):
        half = self.autocast_dtype
        return torch.autocast(tokens.device.type, half, enabled=half is not None)

    def forward(self, tokens, targets):
        with self.autocast(tokens):
            logits = self.gpt2.lm_head(self.hidden(tokens)).float()
            nll = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none")
        return nll.view(targets.shape).sum(1), (targets != -100).sum(1)


class GPT2(Ours):
    """The same of GPT-2."""

    def maker(self, t):
        return GPT2Loss

    def generate(self, tokens, n):
        self.model.eval()
        options = dict(max_new_tokens=n, min_new_tokens=n, do_sample=False, pad_token_id=0)
        with self.model.autocast(tokens):
            ones = torch.ones_like(tokens)
            return self.model.gpt2.generate(tokens, attention_mask=ones, **options)


def generation(runner, m):
    """{sequences: (new tokens of each, tokens per second of all)}"""
    prompt = min(PROMPT, m.block_size // 2)
    new, found = min(NEW, m.block_size - prompt), {}
    for batch in BATCHES:
        tokens = torch.randint(m.vocab_size, (batch, prompt), device=runner.device)
        runner.generate(tokens, 2)  # warms up
        began = time.perf_counter()
        out = runner.generate(tokens, new)
        made = out.size(1) - prompt
        found[batch] = (made, batch * made / (time.perf_counter() - began))
    return found


def at_hand(t):
    """Whether the data is made here, without a file or a network, in seconds."""
    return all(source == "embedded" or sources.names_task(source) for source in t.data)


def first_batch(m, t):
    """tokens and targets (batch_size * grad_accum, T) of a step, and the ModelConfig with the words
    of their data."""
    n = t.batch_size * t.grad_accum
    if at_hand(t):
        data = registry.data_of(t, m.block_size)
        tokens, targets = (torch.as_tensor(part).long() for part in data.draw(0, n))
        m, _ = running.complete_configs(m, t, data)
        return tokens, targets, m
    m = dataclasses.replace(m, vocab_size=m.vocab_size or 2048)
    generator = torch.Generator().manual_seed(t.seed)
    tokens = torch.randint(m.vocab_size, (n, m.block_size), generator=generator)
    return tokens, tokens, m


def worker(m, t, tokens, targets, kind, turns):
    """Measure one model on a batch's tokens and targets → the facts that print_model() prints.
    `turns` is asked before every step: it waits until it is this model's turn, and is told when the
    turn is over."""
    device = machine.pick_device(t.device)
    if kind == "gpt2":
        import transformers  # noqa: F401  its own memory is no part of the model's
    before = peak_bytes()
    runner = dict(ours=Ours, gpt2=GPT2)[kind](m, t, device)
    parts = md.by_length(tokens, targets, t.batch_size)
    shapes = [(x.numel(), int((y != -100).sum())) for x, y in parts]
    laps = []
    for _ in range(WARM + STEPS):
        with turns():
            laps.append(runner.step(tokens, targets))
    parts = {name: statistics.median(lap[name] for lap in laps[WARM:]) for name in laps[0]}
    seconds = sorted(sum(lap.values()) for lap in laps[WARM:])
    peak = torch.cuda.max_memory_allocated() if device.type == "cuda" else peak_bytes()
    n = variants.parameters(m)
    # weights, gradients and AdamW's two moments; of an untied embedding a token reads one row
    held = 16 * n["total"] + (0 if device.type == "cuda" else before or 0)
    read = 4 * (n["total"] - n["embedding"] * (not m.tie_weights))
    facts = dict(parts=parts, seconds=seconds, peak=peak, held=held, read=read, shapes=shapes)
    with turns():
        facts["generation"] = generation(runner, m)
    return facts


@contextlib.contextmanager
def told_turn():
    """A turn of a process that is told over its standard input, a line a turn."""
    sys.stdin.readline()
    yield
    print("over", flush=True)


def child():
    """What a process of against() does: settings from standard input, facts to standard output."""
    m, t, tokens, targets, kind = json.loads(sys.stdin.readline())
    both = configs.ModelConfig(**m), configs.TrainConfig(**t)
    tokens, targets = torch.tensor(tokens), torch.tensor(targets)
    print(json.dumps(worker(*both, tokens, targets, kind, told_turn)))


def taking_turns(m, t, tokens, targets, kinds):
    """The facts of each of the kinds, measured in processes of their own that take turns."""
    command = [sys.executable, "-c", "from minidepth_lab.measure import bench; bench.child()"]
    environment = os.environ | dict(PYTHONPATH=os.pathsep.join(sys.path))
    pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    processes = []
    try:
        for kind in kinds:
            process = subprocess.Popen(command, env=environment, **pipes)
            processes.append(process)
            given = [vars(m), vars(t), tokens.tolist(), targets.tolist(), kind]
            print(json.dumps(given), file=process.stdin, flush=True)
        for _ in range(WARM + STEPS + 1):  # the last turn is for generation
            for process in processes:
                print("go", file=process.stdin, flush=True)
                if process.stdout.readline() != "over\n":
                    raise BrokenPipeError
        return [json.loads(process.stdout.readline()) for process in processes]
    except BrokenPipeError:
        raise ValueError("a process of --bench ended early; is there enough memory?") from None
    finally:
        for process in processes:
            process.kill()
            process.wait()


# ---------- what a step and a generated token cannot do without ----------


def seconds_of(product, repeats=3):
    """The least time of a call, after one that warms up."""
    product()
    found = []
    for _ in range(repeats):
        began = time.perf_counter()
        product()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        found.append(time.perf_counter() - began)
    return min(found)


def product_seconds(m, t, parts, device, half):
    """(seconds, floating-point operations) of the matrix products of a step, one shape at a time.
    `parts`: of each of its forward passes how many tokens it has, and how many with a loss. Loops
    without a gradient have no way back."""
    C, layers = m.d_model, m.n_layers * m.n_loops
    with_gradient = min(1, (t.gradient_loops or m.n_loops) / m.n_loops)  # share of the layers
    shapes = []  # rows, in, out, how often, and what share of them has a way back
    for rows, learned in parts:
        sizes = [(C, 3 * C), (C, C)] + [(C, m.d_ff), (m.d_ff, C)] * bool(m.d_ff)
        shapes += [(rows, *size, layers, with_gradient) for size in sizes]
        at_once = fast.rows_at_once(learned, m.vocab_size, half, device.type == "cpu")
        at_once = min(learned, at_once)
        shapes.append((at_once, C, m.vocab_size, learned / at_once, 1))
    seconds, operations = 0.0, 0.0
    for n, inner, outer, times, there_and_back in shapes:
        options = dict(device=device, dtype=half or torch.float32)
        x, w = torch.randn(n, inner, **options), torch.randn(outer, inner, **options)
        y, dx, dw = x @ w.T, torch.empty_like(x), torch.empty_like(w)
        forward = seconds_of(lambda x=x, w=w, y=y: torch.mm(x, w.T, out=y))
        back = seconds_of(lambda y=y, w=w, dx=dx: torch.mm(y, w, out=dx))
        weight = seconds_of(lambda y=y, x=x, dw=dw: torch.mm(y.T, x, out=dw))
        seconds += times * (forward + there_and_back * (back + weight))
        operations += times * (2 + 4 * there_and_back) * n * inner * outer
    return seconds, operations


def read_rate(device):
    """Bytes a second at which a large array is read."""
    numbers = torch.ones(2**26, device=device)  # 256 MB: more than caches hold
    return 4 * numbers.numel() / seconds_of(lambda: numbers.sum().item())


# ---------- the command ----------


def print_model(name, facts):
    """The lines of one model."""
    seconds, parts = facts["seconds"], facts["parts"]
    middle = statistics.median(seconds)
    rate = sum(tokens for tokens, _ in facts["shapes"]) / middle
    print(
        f"{name}: median {middle * 1e3:.1f} ms per step over {len(seconds)} steps (from "
        f"{seconds[0] * 1e3:.1f} to {seconds[-1] * 1e3:.1f}), {rate:,.0f} tokens per second"
    )
    print("  " + ", ".join(f"{part} {s * 1e3:.1f} ms" for part, s in parts.items()))
    if facts["peak"] is not None:
        above = max(0, facts["peak"] - facts["held"]) / 2**30
        print(f"  peak memory {facts['peak'] / 2**30:.2f} GiB, {above:.2f} above the model's")
    for batch, (made, speed) in facts["generation"].items():
        print(f"  generation, batch {batch}: {made} new tokens, {speed:,.1f} tokens per second")


def show_bench(m, t, against=None):
    """Measure and print; ValueError for what cannot be compared."""
    if against not in (None, "gpt2"):
        raise ValueError(f"--against {against!r} is unknown; give gpt2")
    if m.block_size < 2:
        raise ValueError("--bench generates after a prompt; give --block_size 2 or more")
    if against:
        export.check_gpt2(m)
    if t.compile:
        compiling.check_compile(t)
    tokens, targets, m = first_batch(m, t)
    if targets.dim() == 3:
        what = f"data {' '.join(t.data)} has a loss after each loop"
        raise ValueError(f"{what}, but --bench times one after the last; give other --data")
    device = machine.pick_device(t.device)
    half = machine.pick_precision(t.precision, device)
    print(f"{machine.describe_device(t)}; {m.vocab_size:,} words")
    if against:
        found = taking_turns(m, t, tokens, targets, ("ours", against))
    else:
        found = [worker(m, t, tokens, targets, "ours", contextlib.nullcontext)]
    for name, facts in zip(("minidepth", against), found):
        print_model(name, facts)
    middle = [statistics.median(facts["seconds"]) for facts in found]
    seconds, operations = product_seconds(m, t, found[0]["shapes"], device, half)
    print(
        f"matrix products of a step by themselves {seconds * 1e3:.1f} ms, "
        f"{seconds / middle[0]:.0%} of it, at {operations / seconds / 1e9:,.0f} GFLOP/s"
    )
    rate, read = read_rate(device), found[0]["read"]
    print(
        f"reading the weights once per token, {read / 2**20:,.2f} MiB at {rate / 1e9:.1f} GB/s: at "
        f"most {rate / read:,.1f} tokens per second for one sequence"
    )
    if against:
        ratios = [f"speed of a step {middle[1] / middle[0]:.2f}"]
        if found[0]["peak"] is not None:
            ratios.append(f"peak memory {found[0]['peak'] / found[1]['peak']:.2f}")
        for batch, *facts in zip(BATCHES, *(each["generation"].values() for each in found)):
            ratios.append(f"generation, batch {batch} {facts[0][1] / facts[1][1]:.2f}")
        print(f"minidepth / {against}: {', '.join(ratios)}")
