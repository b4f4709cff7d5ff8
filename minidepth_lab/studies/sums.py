"""Adding on: one layer that is trained to add the digits of at most eight letters along a ring,
and is looped on and on. Letter and sum together come back only after as many as ten rounds, so ten
times as late as in a walk. The task is tasks/sums.py:

    python train.py --preset sums                         200 additions at the end
    python train.py --study sums --seed 0 1 2 3 4

Each row of the study changes one thing: what a loop starts from, the additions trained to, the
ring, the width.
"""

import os

import minidepth as md
from minidepth_lab.studies.walk import by_model, draw_reached, trained_to
from minidepth_lab.tasks.base.sizes import with_sizes

RING, ADDITIONS = 4, 8  # of the study, unless a row says another
PRESETS = {
    "sums": dict(
        block_size=4 * RING, n_layers=1, n_heads=4, d_model=64, d_ff=128, n_loops=1 + ADDITIONS,
        loop_start="recall", dropout=0.0, init_std=0.1, tie_weights=False, data=("sums",),
        sizes=(f"ring={RING}", f"additions={ADDITIONS}"), steps=2500, batch_size=32, lr=2e-3,
        beta1=0.7, weight_decay=0.0, eval_every=100, eval_blocks=200,
    ),
}  # fmt: skip
md.PRESETS.update(PRESETS)

BASE = f"{ADDITIONS} additions, ring of {RING}"


def row(settings, ring=RING, additions=ADDITIONS, **changes):
    """The settings of a run: with the sizes of the task, and the model that they need."""
    sizes = with_sizes(settings, "sums", ring=ring, additions=additions)
    return settings | dict(sizes=sizes, block_size=4 * ring, n_loops=1 + additions) | changes


def rows(preset, settings):
    """{row's name: its settings}: the claim first, then one thing changed at a time."""
    made = {BASE: row(settings), "start: state": row(settings, loop_start="state")}
    for additions in (4, 6):
        made[f"additions: {additions}"] = row(settings, additions=additions)
    made["ring: 8"] = row(settings, ring=8)
    made["width: 128"] = row(settings, d_model=128)
    return made


def figure(runs, folder):
    """sums.png of a grid: the additions that each run reached, beside those it was trained to."""
    models = by_model(runs, "additions")
    trained = {name: trained_to(name, "additions", ADDITIONS) for name in models}
    draw_reached(os.path.join(folder, "sums.png"), models, trained, "additions")
