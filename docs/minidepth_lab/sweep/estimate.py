"""How long a grid will take: a few steps of each model on this machine, nothing of them kept."""

import dataclasses
import time

import torch

import minidepth as md
from minidepth_lab import registry, sources
from minidepth_lab.sweep.cell import OF_DATA, shown

ROWS = 2000  # of the data that a step is measured on: enough for any batch, and soon read
PATIENCE = 20.0  # seconds, at the pace of a slow machine, that one measured step may take


def same_speed(cell):
    """What two runs have in common that take as long as one another: all but the seed, the
    rates, and how often they are saved."""
    m, t = dataclasses.asdict(cell.m), dataclasses.asdict(cell.t)
    kept = ("batch_size", "grad_accum", "device", "precision", "compile", "grad_checkpoint")
    return repr((m, [t[name] for name in (*OF_DATA, *kept, "eval_blocks")]))


def guess(m, t):
    """Seconds of a step at 10^11 operations a second."""
    tokens = t.batch_size * t.grad_accum * m.block_size
    return 6 * md.parameters(m)["total"] * m.n_loops * tokens / 1e11


def read(cell, kept):
    """(ModelConfig, TrainConfig, Data) of a cell, of a few rows, or None where the data is not
    here. `kept` has what was read for others."""
    if sources.away(cell.t):
        return None
    rows = min(cell.t.max_rows or ROWS, ROWS)
    t = dataclasses.replace(cell.t, max_rows=rows)
    key = repr((cell.m.block_size, [getattr(t, name) for name in OF_DATA]))
    if key not in kept:
        kept[key] = registry.data_of(t, cell.m.block_size)
    data = dataclasses.replace(kept[key], seed=t.seed, state=dict(kept[key].state))
    m, complete = md.complete_configs(cell.m, dataclasses.replace(t, epochs=0), data)
    return m, complete, data


def timed(do):
    """Seconds that do() takes."""
    began = time.perf_counter()
    do()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - began


def measure(m, t, data):
    """(seconds of a step, seconds of an evaluation) on this machine: the lowest of two, after one
    that is not counted. The weights are drawn anew and thrown away."""
    device = md.pick_device(t.device)
    model = md.GPT(m).to(device).train()
    model.half, model.checkpointed = md.pick_precision(t.precision, device), t.grad_checkpoint
    optimizer = md.make_optimizer(model, t)

    def step():
        tokens, targets = data.draw(0, t.batch_size * t.grad_accum)
        for x, y in md.by_length(tokens, targets, t.batch_size):
            loss, _ = model(x.to(device), y.to(device))
            loss.sum().backward()
        optimizer.zero_grad(set_to_none=True)

    def update():
        for p in model.parameters():
            p.grad = torch.zeros_like(p)
        optimizer.step()

    def evaluate():
        md.mean_loss(model, data.val, t.eval_blocks, t.batch_size)

    for do in (step, update):
        do()  # the first is slower: memory is taken, kernels are chosen
    of_step = min(timed(step) + timed(update) for _ in range(2))
    return of_step, min(timed(evaluate) for _ in range(2))


def n_steps(cell, data):
    """The steps of a cell, where it counts epochs by the few rows of `data` and all it takes."""
    t = cell.t
    if not t.epochs:
        return t.steps
    share = 1.0
    if "train_rows" in data.facts:
        share = max(1.0, (t.max_rows or ROWS) / ROWS)
    return max(1, round(t.epochs * share * len(data.train[0]) / (t.batch_size * t.grad_accum)))


def estimates(cells):
    """For each cell a dict of `cell`, `parameters`, `tokens` of a step, `steps` and `seconds`, None
    where they are not known without its data, or a step takes too long to be tried."""
    speeds, kept, rows = {}, {}, []
    for cell in cells:
        there = read(cell, kept)
        m = there[0] if there else cell.m
        tokens = cell.t.batch_size * cell.t.grad_accum * m.block_size
        row = dict(cell=cell, tokens=tokens, steps=cell.t.steps, seconds=None, parameters=None)
        if m.vocab_size:
            row["parameters"] = md.parameters(m)["total"]
        if there:
            row["tokens"] = cell.t.batch_size * cell.t.grad_accum * there[2].val[0].shape[-1]
            row["steps"] = n_steps(cell, there[2])
            if guess(m, cell.t) < PATIENCE:
                speed = speeds.setdefault(same_speed(cell), None) or measure(*there)
                speeds[same_speed(cell)] = speed
                evaluations = row["steps"] // cell.t.eval_every + 2
                row["seconds"] = row["steps"] * speed[0] + evaluations * speed[1]
        rows.append(row)
    return rows


def duration(seconds):
    """95 → 1.6 min"""
    if seconds is None:
        return "unknown"
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"


def show(cells, jobs):
    """Print what a grid would train: for each run parameters, tokens, steps and time."""
    rows = estimates(cells)
    if not rows:
        return
    print(f"{'parameters':>12} {'tokens':>14} {'steps':>7} {'time':>8}  run")
    for row in rows:
        n = "unknown" if row["parameters"] is None else f"{row['parameters']:,}"
        tokens = f"{row['tokens'] * row['steps']:,}"
        of_run = f"{n:>12} {tokens:>14} {row['steps']:>7,} {duration(row['seconds']):>8}"
        print(md.visible(f"{of_run}  {row['cell']}"))
    known = [row["seconds"] for row in rows if row["seconds"] is not None]
    tokens = sum(row["tokens"] * row["steps"] for row in rows)
    line = f"in all {tokens:,} tokens"
    if known:
        how = f"{shown(jobs)} at a time" if jobs > 1 else "one after the other"
        line += f", {duration(sum(known) / jobs)} on this machine, {how}"
        line += ", as measured by a step of each model; answering problems comes on top"
    if len(known) < len(rows):
        line += f"; {len(rows) - len(known)} runs could not be measured: their data is not here"
        line += " or a step takes minutes"
    print(line)
