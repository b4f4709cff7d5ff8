"""Why a walk gets lost: what becomes of the map, loop by loop, beside what is right.

why.draw(axes, why.arms())      two rows of two: right by hops, drift of the map by loops
"""

import functools
from collections.abc import Iterator
from typing import Any

import torch.nn.functional as F

import minidepth as md
from minidepth_lab.base import machine
from minidepth_lab.keep import checkpoints
from minidepth_lab.measure import far, results
from minidepth_lab.models import kept_once
from minidepth_lab.tasks import TASKS

RING, MOST = 16, 1000
AT = sorted({round(10 ** (i / 8)) for i in range(25)} | {8, 15, 31, *range(985, 1001)})  # hops
COLORS = {"map changes": "C3", "kept at the test": "C1", "read once": "C0"}
COLUMNS = {"norm and input": "recall", "norm alone": "normalised", "neither": "state"}


@machine.in_eval_mode
def followed(model: Any, loops: Iterator, truths: list) -> tuple[dict, dict]:
    """({hops: share right}, {loops: how far the map has moved since the first, as a share of its
    length}) of the streams after each loop; the second is empty where they lack the map."""
    ring = truths[0].size(1)
    right, drift, first = {}, {}, None
    for i, x in enumerate(loops):
        if x.size(1) > ring and (i == 0 or i in AT):
            state = F.layer_norm(x[:, :-ring], x.shape[-1:])
            first = state if first is None else first
            drift[i + 1] = ((state - first).norm(dim=-1) / first.norm(dim=-1)).mean().item()
        if i in AT:
            said = F.linear(model.norm(x[:, -ring:]), model.head_weight).argmax(-1)
            right[i] = far.count(said, truths[i])
    return right, drift


@functools.cache
def arms(rings: int = 20) -> dict:
    """{column: {arm: [(right, drift) of each run]}}: the walks of a ring of 16 whose weights are
    stored, as they are and with the map kept from the first loop on; and what the runs that read
    once were right in, whose map cannot drift."""
    sizes = TASKS["walk"].sizes | dict(ring=RING, hops=8)
    shape = {name: sizes[name] for name in TASKS["walk"].sizes}
    tokens, _ = TASKS["walk"].draw(rings, md.generator("why"), test=True, **shape)
    truths = list(far.answers("walk", tokens, sizes, MOST))
    stored = [file.stem for file in results.weights_file("walk", "").parent.glob("*.safetensors")]
    models = [checkpoints.load(results.weights("walk", name))[0] for name in sorted(stored)]
    found = {}
    for column, start in COLUMNS.items():
        of = found[column] = {arm: [] for arm in COLORS}
        for model in models:
            if model.config.loop_start != start:
                continue
            changing = model.run_loops(tokens, loops=1 + MOST)
            of["map changes"].append(followed(model, changing, truths))
            model.config.loop_keeps = 2 * RING
            run_on = kept_once.questions_alone(model, tokens, 1 + MOST)
            right, _ = followed(model, run_on, truths)
            of["kept at the test"].append((right, {1: 0.0, MOST: 0.0}))
        kept = dict(ring=RING, loop_keeps=2 * RING, loop_start=start, hops=8, d_ff=0, n_layers=1)
        for run in results.runs("walk", **kept):
            told = run["accuracy_by"]["hops"]
            right = {int(n): part["accuracy"] for n, part in told.items()}
            of["read once"].append((right, {1: 0.0, MOST: 0.0}))
    return found


def draw(axes: Any, found: dict) -> None:
    """Draw arms() on axes of two rows and a column for each of COLUMNS."""
    for (top, below), (column, of) in zip(axes.T, found.items()):
        for arm, runs in of.items():
            for right, drift in runs:
                top.plot(list(right), list(right.values()), color=COLORS[arm], alpha=0.6)
                below.plot(list(drift), list(drift.values()), color=COLORS[arm], alpha=0.6)
            label = f"{arm} ({len(runs)})"
            below.plot([], [], color=COLORS[arm], label=label)
        for each in (top, below):
            each.axvline(8, color="0.6", linestyle="--")
            each.set(xscale="log")
            each.xaxis.set_major_formatter("{x:g}")
        top.set(title=column, ylim=(-0.03, 1.05))
        below.legend(loc="upper left")
        below.set(xlabel="hops", ylim=(-0.05, 2.2))
    axes[0][0].set_ylabel("share right")
    axes[1][0].set_ylabel("drift of the map")
