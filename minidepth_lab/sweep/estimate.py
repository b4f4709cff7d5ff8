"""How long a grid will take: each kind of run in it is measured as forecast.py does."""

import dataclasses

from minidepth_lab.base import console
from minidepth_lab.keep import registry, running
from minidepth_lab.measure import forecast
from minidepth_lab.measure.cell import OF_DATA
from minidepth_lab.models import variants
from minidepth_lab.rows import sources

ROWS = 2000  # of the data that a step is measured on: enough for any batch, and soon read


def same_time(m, t):
    """What two runs have in common that take as long as one another: all but the seed, the rates,
    and how often they are saved."""
    kept = (
        "batch_size", "grad_accum", "device", "precision", "grad_checkpoint", "steps", "eval_every",
        "eval_blocks", "eval_problems", "watch_problems", "gradient_loops",
    )  # fmt: skip
    return repr((dataclasses.asdict(m), [getattr(t, name) for name in (*OF_DATA, *kept)]))


def read(cell, kept):
    """(ModelConfig, TrainConfig, Data) of a cell, of a few rows, or of all that it takes where it
    counts epochs; its own configs and None where the data is not here. `kept` has what was read for
    others."""
    t = cell.t
    if sources.away(t):
        return cell.m, t, None
    if not t.epochs:
        t = dataclasses.replace(t, max_rows=min(t.max_rows or ROWS, ROWS))
    names = (*OF_DATA, "steps", "eval_blocks", "batch_size")  # what it keeps of the others
    key = repr((cell.m.block_size, [getattr(t, name) for name in names]))
    if key not in kept:
        kept[key] = registry.data_of(t, cell.m.block_size)
    data = dataclasses.replace(kept[key], seed=t.seed, state=dict(kept[key].state))
    return *running.complete_configs(cell.m, t, data), data


def estimates(cells):
    """For each cell a dict of `cell`, `parameters`, `tokens`, `steps` and `seconds`, None where
    they are not known without its data, and whether its tests are `untried`."""
    times, kept, rows = {}, {}, []
    for cell in cells:
        m, t, data = read(cell, kept)
        T = data.val[0].shape[-1] if data else m.block_size
        row = dict(cell=cell, tokens=None, steps=None, seconds=None, parameters=None, untried=False)
        if data or not t.epochs:
            row["steps"] = t.steps
            row["tokens"] = t.steps * t.batch_size * t.grad_accum * T
        if m.vocab_size:
            row["parameters"] = variants.parameters(m)["total"]
            key = same_time(m, t)
            if key not in times:
                found = forecast.of_run(m, t, data)
                times[key] = found.total, found.untried
            row["seconds"], row["untried"] = times[key]
        rows.append(row)
    return rows


def time_of(seconds):
    return "unknown" if seconds is None else forecast.as_time(seconds)


def number(n):
    return "unknown" if n is None else f"{n:,}"


def show(cells, jobs):
    """Print what a grid would train, so many runs at a time: for each run parameters, tokens, steps
    and time. Runs at the same time share the machine that one alone was measured on: so the whole
    is their sum, whatever the jobs."""
    rows = estimates(cells)
    if not rows:
        return
    print(f"{'parameters':>12} {'tokens':>14} {'steps':>7} {'time':>8}  run")
    for row in rows:
        n, tokens, steps = (number(row[name]) for name in ("parameters", "tokens", "steps"))
        of_run = f"{n:>12} {tokens:>14} {steps:>7} {time_of(row['seconds']):>8}"
        print(console.visible(f"{of_run}  {row['cell']}"))
    counted = [row["tokens"] for row in rows if row["tokens"] is not None]
    known = [row["seconds"] for row in rows if row["seconds"] is not None]
    line = f"in all {number(sum(counted) if len(counted) == len(rows) else None)} tokens"
    if known:
        how = "one after the other"
        if jobs > 1:
            how = f"{jobs} at a time, which share it: counted as one after the other"
        line += f", {time_of(sum(known))} on this machine, {how}"
        if any(row["untried"] for row in rows):
            line += f", {forecast.WITHOUT_TESTS}"
        line += "; three steps of each model were measured, just now"
    if len(known) < len(rows):
        unknown = console.plural(len(rows) - len(known), "run")
        line += f"; {unknown} could not be measured: no data is here"
    print(line)
