"""A program that does not repeat: one layer with a feed-forward part that is trained to carry a
state through at most eight operations along a ring, and is looped on and on. The task is
tasks/program.py:

    python train.py --preset program                      once round and 2 N + 3 at the end
    python train.py --study program --seed 0 1 2 3 4

Does *read once* save a computed state, or the map alone? The rows are the arms of that test: the
map changes, is read once, or is read once without the norm, for permutations of five things and for
adding modulo ten. The map kept at the test alone, with the weights of the first arm, is what
minidepth_lab/measure/far.py measures of it.
"""

import os

from minidepth_lab.studies.walk import by_model, draw_reached
from minidepth_lab.tasks.base.sizes import with_sizes

RING, HOPS = 16, 8
PRESETS = {
    "program": dict(
        block_size=4 * RING, n_layers=1, n_heads=4, d_model=64, d_ff=256, n_loops=1 + HOPS,
        loop_start="recall", dropout=0.0, init_std=0.1, tie_weights=False, data=("program",),
        sizes=(f"ring={RING}", f"hops={HOPS}", "hints=1"), steps=2000, batch_size=32, lr=2e-3,
        beta1=0.7, weight_decay=0.0, eval_every=250, eval_blocks=200,
    ),
}  # fmt: skip


def row(settings, kind="permutations", **changes):
    """The settings of a run: with the sizes of the task."""
    sizes = with_sizes(settings, "program", ring=RING, hops=HOPS, kind=kind, hints=1)
    return settings | dict(sizes=sizes) | changes


def rows(preset, settings):
    """{row's name: its settings}: the arms that are trained, of each kind of operation."""
    made = {}
    for kind in ("permutations", "additions"):
        made[f"{kind}, map changes"] = row(settings, kind)
        made[f"{kind}, read once"] = row(settings, kind, loop_keeps=3 * RING)
        made[f"{kind}, read once, no norm"] = row(
            settings, kind, loop_keeps=3 * RING, loop_start="input"
        )
    return made


def figure(runs, folder):
    """program.png of a grid: the steps that each run reached, beside those it was trained to."""
    models = by_model(runs)
    trained = dict.fromkeys(models, HOPS)
    draw_reached(os.path.join(folder, "program.png"), models, trained)
