"""Tokens against loops: what is not written has to be thought. One layer writes every m-th letter
along a ring with L loops. A walk makes its first hop in the second loop, so it should do so if and
only if m is at most L - 1. The task is tasks/strides.py:

    python train.py --preset strides --sizes stride=2,loops=3 --n_loops 3
    python train.py --study strides --seed 0 1 2          20 models for each seed, and a heat map
"""

import math
import os
import statistics

import minidepth as md
from minidepth_lab.measure import results
from minidepth_lab.show import figures
from minidepth_lab.tasks.base.sizes import with_sizes

RING, STRIDES, LOOPS = 12, (1, 2, 3, 4), (1, 2, 3, 4, 5)
PRESETS = {
    "strides": dict(
        block_size=3 * RING, n_layers=1, n_heads=4, d_model=64, d_ff=0, n_loops=3,
        loop_start="recall", dropout=0.0, init_std=0.1, tie_weights=False, data=("strides",),
        sizes=(f"ring={RING}", "stride=2", "loops=3"), steps=1500, batch_size=32, lr=2e-3,
        beta1=0.7, weight_decay=0.0, eval_every=250, eval_blocks=200,
    ),
}  # fmt: skip
md.PRESETS.update(PRESETS)


def rows(preset, settings):
    """{"stride M, loops L": its settings}: every stride with every number of loops."""
    made = {}
    for stride in STRIDES:
        for loops in LOOPS:
            sizes = with_sizes(settings, "strides", stride=stride, loops=loops)
            made[f"stride {stride}, loops {loops}"] = settings | dict(sizes=sizes, n_loops=loops)
    return made


def walk_is_enough(stride, loops):
    """What a walk predicts: the first loop only prepares, each other one makes a hop."""
    return stride <= loops - 1


def cell_of(model):
    """(stride, loops) of a row's name."""
    stride, loops = (int(part.split()[1]) for part in model.split(", "))
    return stride, loops


def draw_cells(axes, shares):
    """The heat map of {(stride, loops): accuracies of the seeds}: medians, and the boundary up to
    which a walk is enough."""
    strides = sorted({stride for stride, _ in shares})
    loops = sorted({loops for _, loops in shares})
    medians = [[statistics.median(shares.get((m, n), [math.nan])) for n in loops] for m in strides]
    figures.heat_map(axes, medians, ".2f", vmax=1)
    axes.set_xticks(range(len(loops)), loops)
    axes.set_yticks(range(len(strides)), strides)
    figures.draw_stair(axes, [sum(not walk_is_enough(m, n) for n in loops) for m in strides])
    n = max(len(seeds) for seeds in shares.values())
    axes.set(xlabel="loops", ylabel="hops for each letter written")
    axes.set_title(f"Share of letters right, median, n = {n}; line: a walk's", size="medium")


def stored(ring=RING, **wanted):
    """{(stride, loops): accuracies of the stored runs of one layer, by seed}"""
    found = results.runs("strides", ring=ring, n_layers=1, **wanted)
    runs = results.by(found, "stride", "n_loops")
    return {cell: [run["accuracy"] for run in found] for cell, found in runs.items()}


def figure(runs, folder):
    """strides.png of a grid: the accuracy by stride and loops."""
    shares = {}
    for run in runs:
        shares.setdefault(cell_of(run["labels"]["model"]), []).append(run["accuracy"])
    with figures.drawing(os.path.join(folder, "strides.png"), size=(5.2, 3.9)) as (_, axes):
        draw_cells(axes, shares)
