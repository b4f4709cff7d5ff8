"""Think longer: one layer that is trained to follow at most eight links of a ring, and is looped on
and on. The task is tasks/walk.py; one model, in minutes, and the study of it:

    python train.py --preset walk                         a thousand hops at the end
    python train.py --study walk --seed 0 1 2 3 4

Each of the first rows changes one thing: what a loop starts from, which loops have a loss, the hops
trained to, the ring, the width, the feed-forward part, the layers in the loop. A longer ring has
the places that it needs, and more steps, for its first hop is learned later. On rings of 48 and 64
it was not learned at all without `hints`, which tasks/walk.py explains. In the last rows ("kept
throughout") the loops keep the pairs as the first one leaves them (`--loop_keeps`), alone or beside
such a change: so nothing fades of what a question looks up. Rings of 128 take long on a CPU;
`--dry_run` says how long.

A thousand hops on a ring of 16 are not a thousand new situations: whoever is right once round, and
comes back to the same state, is right for ever. The harder question is once round a longer ring.
"""

import contextlib
import math
import os
import statistics

import minidepth as md
from minidepth_lab.base import machine
from minidepth_lab.keep import checkpoints
from minidepth_lab.measure import results
from minidepth_lab.show import figures
from minidepth_lab.tasks import TASKS
from minidepth_lab.tasks.base.sizes import with_sizes
from minidepth_lab.tasks.walk import FAR, RINGS_TESTED, by_hops, length_kept, pairs_kept

RING, HOPS = 16, 8  # of the study, unless a row says another
PRESETS = {
    "walk": dict(
        block_size=3 * RING, n_layers=1, n_heads=4, d_model=64, d_ff=0, n_loops=1 + HOPS,
        loop_start="recall", dropout=0.0, init_std=0.1, tie_weights=False, data=("walk",),
        sizes=(f"ring={RING}", f"hops={HOPS}"), steps=2500, batch_size=64, lr=2e-3, beta1=0.7,
        weight_decay=0.0, eval_every=100, eval_blocks=200,
    ),
}  # fmt: skip

BASE = f"{HOPS} hops, ring of {RING}"
RING_STEPS = {24: 2500, 32: 5000, 48: 8000, 64: 10_000}
HINTED = (48, 64)  # rings that are trained with hints as well
HINTED_STEPS = 5000
KEPT = (64, 128)  # rings that are trained with hints and with their pairs kept
KEPT_STEPS = 3000
RIGHT = 0.9  # accuracy from which so many hops count as reached
NONE = 0.5  # where a run that learned nothing stands, on a scale that has no 0


def row(settings, ring=RING, hops=HOPS, loss_after="each", hints=0, **changes):
    """The settings of a run: with the sizes of the task, and the model that they need."""
    own = dict(ring=ring, hops=hops, loss_after=loss_after, hints=hints)
    sizes = with_sizes(settings, "walk", **own)
    return settings | dict(sizes=sizes, block_size=3 * ring, n_loops=1 + hops) | changes


def rows(preset, settings):
    """{row's name: its settings}: the claim first, then one thing changed at a time."""
    made = {BASE: row(settings)}
    for start in ("state", "input", "normalised"):
        made[f"start: {start}"] = row(settings, loop_start=start)
    made["loss: last"] = row(settings, loss_after="last")
    for hops in (4, 6, 12):
        made[f"hops: {hops}"] = row(settings, hops=hops)
    for ring, steps in RING_STEPS.items():
        made[f"ring: {ring}"] = row(settings, ring=ring, steps=settings.get("steps", steps))
    for ring in HINTED:
        steps = settings.get("steps", HINTED_STEPS)
        made[f"ring: {ring}, hints"] = row(settings, ring=ring, hints=1, steps=steps)
    for width in (32, 128):
        made[f"width: {width}"] = row(settings, d_model=width)
    made["feed-forward: 256"] = row(settings, d_ff=256)
    made["layers: 2"] = row(settings, n_layers=2)
    made["kept throughout"] = row(settings, loop_keeps=2 * RING)
    for hops in (2, 4):
        made[f"hops: {hops}, kept throughout"] = row(settings, hops=hops, loop_keeps=2 * RING)
    for start in ("state", "input", "normalised"):
        made[f"start: {start}, kept throughout"] = row(
            settings, loop_start=start, loop_keeps=2 * RING
        )
    for ring in KEPT:
        steps = settings.get("steps", KEPT_STEPS)
        made[f"ring: {ring}, hints, kept throughout"] = row(
            settings, ring=ring, hints=1, steps=steps, loop_keeps=2 * ring
        )
    return made


def reached(shares):
    """The most hops up to which every tested number of hops is RIGHT; 0 if one hop is not.
    `shares` {hops: accuracy}"""
    most = 0
    for hops, share in sorted(shares.items()):
        if share < RIGHT:
            break
        most = hops
    return most


def trained_to(model, kind="hops", usual=HOPS):
    """The hops that a row was trained to, by its name."""
    its_kind, _, value = model.partition(",")[0].partition(": ")
    return int(value) if its_kind == kind else usual


@machine.in_eval_mode
def distance_to_a_round_before(model, tokens, hops):
    """How far the state is from where it was a round of the ring before: {hops: the median over the
    questions of tokens (B, 3 ring) of |x - x a round before| / |x|}, of any hops from `ring` on.
    Where it is 0 the walk is an orbit: what is right then is right for ever."""
    ring = tokens.size(1) // 3
    states, distances = [], {}  # of the last round and this one, from no hops on
    for i, x in enumerate(model.run_loops(tokens, loops=1 + max(hops))):
        states = [*states[-ring:], x[:, 2 * ring :]]
        if i in hops:
            moved = (states[-1] - states[0]).norm(dim=-1) / states[-1].norm(dim=-1)
            distances[i] = moved.median().item()
    return distances


def held_out_rings_of(run_dir, task, n, purpose):
    """(model, tokens, letters of a ring) of a finished run of `task`, with n of the rings that are
    held out, drawn for a `purpose`. ValueError for a run of something else."""
    train = results.trained_on(task, run_dir)
    model, _ = checkpoints.load(run_dir)
    sizes = TASKS[task].sizes | results.size_values(train["sizes"])
    sizes = {name: sizes[name] for name in ("ring", "hops")}
    tokens, _ = TASKS[task].draw(n, md.generator(purpose), test=True, **sizes)
    return model, tokens, sizes["ring"]


def returned(run_dir):
    """distance_to_a_round_before() of a finished run after two, four and eight rounds, on 20 of the
    rings that are held out: {rounds: median distance}. What `measured` of stored runs has, of those
    whose weights were there, comes from
    `python -m minidepth_lab.studies.walk RUN_FOLDER … walk`."""
    model, tokens, ring = held_out_rings_of(run_dir, "walk", 20, "returned")
    rounds = (2, 4, 8)
    distances = distance_to_a_round_before(model, tokens, [n * ring for n in rounds])
    return dict(zip(map(str, rounds), distances.values()))


def kept(run_dir):
    """How often a finished run is right far out, on 200 of the rings that are held out, if beyond
    the loops of its training the pairs are kept as they are, or the length of what a question
    holds, or both: {"pairs": {hops: share}, "length": …, "both": …}. Of stored runs `measured` has
    it from `python -m minidepth_lab.studies.walk --what kept RUN_FOLDER … walk`."""
    model, tokens, ring = held_out_rings_of(run_dir, "walk", RINGS_TESTED, "kept")
    given = model, 2 * ring, model.config.n_loops
    ways = {"pairs": [pairs_kept], "length": [length_kept], "both": [pairs_kept, length_kept]}
    found = {}
    for name, contexts in ways.items():
        with contextlib.ExitStack() as stack:
            for context in contexts:
                stack.enter_context(context(*given))
            shares = by_hops(model, tokens, ring, (ring - 1, *FAR))
        found[name] = {str(hops): share for hops, share in shares.items()}
    return found


def by_model(runs, kind="hops"):
    """{row: [{hops: accuracy} of each seed]} of a grid's records; of another kind of number than
    hops the same."""
    models = {}
    for run in runs:
        by_number = run["accuracy_by"][kind].items()
        shares = {int(number): part["accuracy"] for number, part in by_number}
        models.setdefault(run["labels"]["model"], []).append(shares)
    return models


def draw_reached(path, models, trained, kind="hops"):
    """How far each run reached, beside what it was trained to: `models` of by_model(), `trained`
    {row: number}."""
    with figures.drawing(path, size=(6.5, 1.6 + 0.3 * len(models))) as (_, axes):
        draw_reached_on(axes, models, trained, kind)


def draw_reached_on(axes, models, trained, kind="hops"):
    """draw_reached() on `axes` that are there."""
    learned_nothing = False
    for y, (name, seeds) in enumerate(models.items()):
        furthest = [reached(shares) for shares in seeds]
        learned_nothing |= 0 in furthest
        axes.plot([x or NONE for x in furthest], [y] * len(furthest), "o", color="C0", alpha=0.5)
        axes.plot(statistics.median(furthest) or NONE, y, "|", color="C0", markersize=16, mew=3)
        axes.plot(trained[name], y, "x", color="C1")
    numbers = sorted({len(seeds) for seeds in models.values()})
    axes.plot([], [], "o", color="C0", label="reached, each seed")
    axes.plot([], [], "|", color="C0", markersize=10, mew=3, label="median")
    axes.plot([], [], "x", color="C1", label="trained to")
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    if learned_nothing:
        low, high = axes.get_xlim()
        tens = [10**n for n in range(1 + int(math.log10(high)))]
        axes.set_xticks([NONE, *tens], ["none", *tens])
        axes.set_xlim(low, high)
    axes.set_yticks(range(len(models)), models)
    axes.invert_yaxis()
    axes.grid(alpha=0.3, axis="x")
    axes.set_xlabel(f"{kind} up to which {RIGHT:g} of the questions are right")
    n = " or ".join(map(str, numbers))
    axes.set_title(f"Trained against reached, n = {n}", size="medium")
    axes.legend(loc="lower center", bbox_to_anchor=(0.4, 1.08), ncols=3, fontsize="small")


def figure(runs, folder):
    """walk.png of a grid: the hops that each run reached, beside those it was trained to."""
    models = by_model(runs)
    trained = {name: trained_to(name) for name in models}
    draw_reached(os.path.join(folder, "walk.png"), models, trained)


if __name__ == "__main__":
    results.measuring_command(returned=returned, kept=kept)
