"""How long a grid will take: each kind of run in it is measured as forecast.py does."""

import dataclasses

import minidepth as md
from minidepth_lab import forecast, registry, sources
from minidepth_lab.sweep.cell import OF_DATA, shown

ROWS = 2000  # of the data that a step is measured on: enough for any batch, and soon read


def same_time(m, t):
    """What two runs have in common that take as long as one another: all but the seed, the rates,
    and how often they are saved."""
    kept = (
        "batch_size", "grad_accum", "device", "precision", "grad_checkpoint", "steps", "eval_every",
        "eval_blocks", "eval_problems", "watch_problems",
    )  # fmt: skip
    return repr((dataclasses.asdict(m), [getattr(t, name) for name in (*OF_DATA, *kept)]))


def read(cell, kept):
    """(ModelConfig, Data) of a cell, of a few rows; its own ModelConfig and None where the data is
    not here. `kept` has what was read for others."""
    if sources.away(cell.t):
        return cell.m, None
    rows = min(cell.t.max_rows or ROWS, ROWS)
    t = dataclasses.replace(cell.t, max_rows=rows)
    key = repr((cell.m.block_size, [getattr(t, name) for name in OF_DATA]))
    if key not in kept:
        kept[key] = registry.data_of(t, cell.m.block_size)
    data = dataclasses.replace(kept[key], seed=t.seed, state=dict(kept[key].state))
    m, _ = md.complete_configs(cell.m, dataclasses.replace(t, epochs=0), data)
    return m, data


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
    """For each cell a dict of `cell`, `parameters`, `tokens` of a step, `steps` and `seconds`; None
    where they are not known without its data."""
    times, kept, rows = {}, {}, []
    for cell in cells:
        m, data = read(cell, kept)
        t, T = cell.t, m.block_size
        if data:
            T = data.val[0].shape[-1]
            t = dataclasses.replace(t, steps=n_steps(cell, data), epochs=0)
        tokens = t.batch_size * t.grad_accum * T
        row = dict(cell=cell, tokens=tokens, steps=t.steps, seconds=None, parameters=None)
        if m.vocab_size:
            row["parameters"] = md.parameters(m)["total"]
            key = same_time(m, t)
            if key not in times:
                times[key] = forecast.of_run(m, t, data)[1].total
            row["seconds"] = times[key]
        rows.append(row)
    return rows


def time_of(seconds):
    return "unknown" if seconds is None else forecast.as_time(seconds)


def show(cells, jobs):
    """Print what a grid would train: for each run parameters, tokens, steps and time."""
    rows = estimates(cells)
    if not rows:
        return
    print(f"{'parameters':>12} {'tokens':>14} {'steps':>7} {'time':>8}  run")
    for row in rows:
        n = "unknown" if row["parameters"] is None else f"{row['parameters']:,}"
        tokens = f"{row['tokens'] * row['steps']:,}"
        of_run = f"{n:>12} {tokens:>14} {row['steps']:>7,} {time_of(row['seconds']):>8}"
        print(md.visible(f"{of_run}  {row['cell']}"))
    known = [row["seconds"] for row in rows if row["seconds"] is not None]
    tokens = sum(row["tokens"] * row["steps"] for row in rows)
    line = f"in all {tokens:,} tokens"
    if known:
        how = f"{shown(jobs)} at a time" if jobs > 1 else "one after the other"
        line += f", {time_of(sum(known) / jobs)} on this machine, {how}"
        line += "; measured on one layer and the head of each model, just now"
    if len(known) < len(rows):
        unknown = md.plural(len(rows) - len(known), "run")
        line += f"; {unknown} could not be measured: no data is here"
    print(line)
