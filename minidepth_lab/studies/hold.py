"""Hold on: one layer walks as many hops as a question names, and has to keep the answer, however
often it is looped. Whoever loops a model until it is done needs that. The task is tasks/hold.py:

    python train.py --preset hold                         a hundred loops at the end
    python train.py --study hold --seed 0 1 2 3 4

Each row of the study changes one thing: the most loops in training, or what a loop starts from.
What else makes an answer hold was tried afterwards: docs/results/hold-further.
"""

import os

import minidepth as md
from minidepth_lab.measure import results
from minidepth_lab.studies.walk import by_model, draw_reached, held_out_rings_of, trained_to
from minidepth_lab.tasks.base.sizes import with_sizes
from minidepth_lab.tasks.hold import by_loops

RING, HOPS, LOOPS = 8, 4, 16  # of the study, unless a row says another
PRESETS = {
    "hold": dict(
        block_size=4 * RING, n_layers=1, n_heads=4, d_model=64, d_ff=0, n_loops=LOOPS,
        loop_start="recall", dropout=0.0, init_std=0.1, tie_weights=False, data=("hold",),
        sizes=(f"ring={RING}", f"hops={HOPS}", f"loops={LOOPS}"), steps=1500, batch_size=32,
        lr=2e-3, beta1=0.7, weight_decay=0.0, eval_every=100, eval_blocks=200,
    ),
}  # fmt: skip
md.PRESETS.update(PRESETS)

BASE = f"{HOPS} hops, {LOOPS} loops"


def row(settings, loops=LOOPS, **changes):
    """The settings of a run: with the loops of the task, which the model makes as well."""
    sizes = with_sizes(settings, "hold", loops=loops)
    return settings | dict(sizes=sizes, n_loops=loops) | changes


def rows(preset, settings):
    """{row's name: its settings}: the claim first, then one thing changed at a time."""
    made = {BASE: row(settings)}
    for loops in (6, 8, 12, 24):
        made[f"loops: {loops}"] = row(settings, loops=loops)
    for start in ("state", "input"):
        made[f"start: {start}"] = row(settings, loop_start=start)
    return made


def figure(runs, folder):
    """hold.png of a grid: the loops up to which each run holds, beside those of training."""
    models = by_model(runs, "loops")
    trained = {name: trained_to(name, "loops", LOOPS) for name in models}
    draw_reached(os.path.join(folder, "hold.png"), models, trained, "loops")


def held(run_dir):
    """{loops: share right} of a finished run after 100, 300 and 1,000 loops, on the questions of 50
    of the rings that are held out. What `measured` of stored runs has comes from
    `python -m minidepth_lab.studies.hold RUN_FOLDER … hold-further`."""
    model, tokens, ring = held_out_rings_of(run_dir, "hold", 50, "held")
    shares = by_loops(model, tokens, ring, {100, 300, 1000})
    return {str(loops): share for loops, share in shares.items()}


if __name__ == "__main__":
    results.measuring_command(held=held)
