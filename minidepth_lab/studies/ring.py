"""Depth by itself: the same weights, looped once, twice, three times. The task `ring` asks for the
letter k hops on along a ring of letters, at once or with the letters on the way written; its study:

    python train.py --study ring --seed 0 1 2                       one layer, looped 1 to 5 times
    python train.py --study ring --preset ring-layers --seed 0 1 2  layers with weights of their own
    python train.py --study ring --preset ring-four --seed 0 1 2    and four hops
    python train.py --study ring --preset ring-written --seed 0 1 2 letter by letter in writing
    python train.py --study ring --preset ring-wide --seed 0 1 2    width and heads beside loops
    python train.py --study ring --preset ring-compute --seed 0 1 2 few loops train for longer

What attention alone can do, k hops in L layers (in L loops of one layer as well):

directly, k ≤ 2^(L-2), as we count: ⌈log2 k⌉ + 2 layers. The first layer tells the second letter of
each pair which letter stands before it, the second finds the pair that begins with the letter asked
for, and each layer after that puts two finds together, so that the hops double. For k-hop ⌊log2 k⌋
+ 2 layers suffice (Sanford, Hsu & Telgarsky 2024, arXiv 2402.09268), and the depth must grow as log
k, if a conjecture holds, unless the model is very wide or has very many heads. Two things differ
here. First, a place sees only what stands before it. In k-hop all hops lead back, so every place
can put its finds together; here a pair's successor may stand after it. So questions can, and pairs
whose successor stands before them, which one model was seen to do, and our
count leaves out. Letter by letter, k hops take k + 1 layers: as many for one, two and three hops,
one more for four. Doubling needs an earlier question about the letter half way. Second, the ring is
short: letters found on both sides can be ruled out. Of a ring of 8, four hops on is all that is
left when three either way are known: an answer does not tell how it was found.

written, any k in two layers, as each hop is the first one again.

One layer with eight heads and width 128 can answer one hop, with weights written by hand
(by_hand.py); with the four heads and width 64 of these runs the same way answers about half. The
trained layers of width 64 did not find it, nor did those of width 128 with eight heads
(`ring-wide`); with four heads of width 128 some longer runs did.
Beyond one hop we know of no way in one layer.
"""

import itertools
import math
import os
import re
import statistics

from minidepth_lab.show import figures
from minidepth_lab.studies import depth
from minidepth_lab.tasks.ring import LEARNED, layers_that_suffice

DIRECT = dict(
    block_size=128, n_heads=4, d_model=64, d_ff=0, dropout=0.0, init_std=0.1, tie_weights=False,
    data=("ring",), sizes=("lengths=1+2",), steps=1200, batch_size=64, lr=2e-3, weight_decay=0.0,
    eval_every=100, eval_blocks=200,
)  # fmt: skip
WRITTEN_SIZES = ("answer=written", "lengths=1+2+4+7", "questions=8", "early=0")
PRESETS = {
    "ring": DIRECT,
    "ring-layers": DIRECT,
    "ring-four": DIRECT | dict(sizes=("lengths=1+2+4",), steps=4000, eval_every=200),
    "ring-written": DIRECT | dict(sizes=WRITTEN_SIZES, steps=1000),
    # one hop alone, which eight heads of width 128 can answer in one loop: see by_hand.py
    "ring-wide": DIRECT | dict(sizes=("lengths=1",)),
    # as many steps times loops as five loops have in the preset `ring`
    "ring-compute": DIRECT | dict(steps=5 * DIRECT["steps"]),
}


def count(n, what):
    """ "1 layer", "2 layers", …"""
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def rows(preset, settings):
    """{row's name: its settings} of a preset of the study; of any other those of `ring`."""
    deep = {"ring-layers": (2, 3, 4), "ring-four": (1, 2, 3, 4, 5), "ring-written": (1, 2)}
    own = {count(n, "layer"): settings | dict(n_layers=n) for n in deep.get(preset, ())}
    if preset == "ring-layers":
        own["2 layers, 2 loops"] = settings | dict(n_layers=2, n_loops=2)
    if own:
        return own
    one = settings | dict(n_layers=1)
    if preset == "ring-wide":
        return wide_rows(one)
    if preset == "ring-compute":
        steps = settings.get("steps", PRESETS[preset]["steps"])
        return {count(n, "loop"): one | dict(n_loops=n, steps=steps // n) for n in (1, 2, 3, 4, 5)}
    made = {count(n, "loop"): one | dict(n_loops=n) for n in (1, 2, 3, 4, 5)}
    return made | {"wide, 1 loop": one | depth.matched_width(preset, one, 4)}


def wide_rows(one):
    """{"width W, H heads, N loops": its settings} of one layer, every combination."""
    made = {}
    for width, heads, loops in itertools.product((64, 128), (4, 8), (1, 2, 3)):
        changes = dict(d_model=width, n_heads=heads, n_loops=loops)
        made[f"width {width}, {heads} heads, {count(loops, 'loop')}"] = one | changes
    return made


def by_depth(runs, wanted):
    """{hops: {layers or loops: accuracies of all seeds}} of runs whose model is `wanted`."""
    found = {}
    for run in runs:
        if wanted(run["labels"]["model"]):
            length = found.setdefault(int(run["labels"]["lengths"]), {})
            length.setdefault(run["depth"], []).append(run["accuracy"])
    return found


def said_of(hops, medians):
    """What a title says of so many hops, of {loops: median accuracy}."""
    enough = [str(n) for n, median in medians.items() if median >= LEARNED]
    how = f"with {', '.join(enough)} loops" if enough else "never"
    return f"{count(hops, 'hop')}: {how}"


def draw_loops(found, guess, path):
    """Accuracy by hops over the loops of the one layer; `found` as by_depth() gives."""
    with figures.drawing(path, size=(6.5, 4.2)) as (_, axes):
        said, n = [], 0
        for number, (hops, values) in enumerate(sorted(found.items())):
            medians = {x: statistics.median(shares) for x, shares in sorted(values.items())}
            color = f"C{number}"
            for x, shares in values.items():
                n = max(n, len(shares))
                places = [x + 0.08 * (number - 0.5)] * len(shares)
                axes.plot(places, shares, "o", color=color, markersize=3, alpha=0.5)
            label = count(hops, "hop")
            axes.plot(medians.keys(), medians.values(), "-", color=color, linewidth=3, label=label)
            said.append(said_of(hops, medians))
        axes.axhline(guess, color="dimgray", linestyle=":", label="guessing")
        axes.set_xticks(sorted({x for values in found.values() for x in values}))
        axes.set(xlabel="loops of the one layer", ylim=(-0.03, 1.03))
        axes.set_ylabel("accuracy (share of questions)")
        title = f"The same weights, learned in the median of {n} seeds:\n{'; '.join(said)}"
        axes.set_title(title, size="medium")
        axes.legend()


def draw_map(found, path, answer="direct"):
    """Median accuracy by length and layers, and where it should begin; `found` as by_depth()
    gives."""
    lengths = sorted(found)
    columns = sorted({n for values in found.values() for n in values})
    medians = [[statistics.median(found[k].get(n, [math.nan])) for n in columns] for k in lengths]
    size = (max(6.0, 2.5 + len(columns)), 1.8 + 0.6 * len(lengths))  # the title needs the width
    with figures.drawing(path, size=size) as (_, axes):
        figures.heat_map(axes, medians, ".2f", vmax=1)
        edge = [sum(n < layers_that_suffice(length, answer) for n in columns) for length in lengths]
        x = [column - 0.5 for column in edge]
        axes.step([*x, x[-1]], [i - 0.5 for i in range(len(x) + 1)], "r-", where="pre", lw=3)
        axes.set_xticks(range(len(columns)), columns)
        axes.set_yticks(range(len(lengths)), lengths)
        axes.set(xlabel="layers", ylabel="hops")
        n = max(len(shares) for values in found.values() for shares in values.values())
        left, right = [], []  # of the line
        for row, first in zip(medians, edge):
            left += [median >= LEARNED for median in row[:first]]
            right += [median >= LEARNED for median in row[first:]]
        title = f"Learned: {sum(right)} of {len(right)} cells right of the predicted line, "
        title += f"{sum(left)} of {len(left)} left of it\n(median of {n} seeds {LEARNED} or more)"
        axes.set_title(title, size="medium")


def figure(runs, folder):
    """loops.png, where runs loop one layer; layers.png, where several have layers of their own:
    accuracy by hops and layers, the predicted boundary as a red line."""
    looped = by_depth(runs, lambda model: re.fullmatch(r"\d loops?", model))
    if looped:
        draw_loops(looped, runs[0]["guess"], os.path.join(folder, "loops.png"))
    own = by_depth(runs, lambda model: model.endswith(("layer", "layers")))
    if own:  # a question answered directly is guessed as well at any length, a written one is not
        answer = "direct" if len({run["guess"] for run in runs}) == 1 else "written"
        draw_map(own, os.path.join(folder, "layers.png"), answer)
