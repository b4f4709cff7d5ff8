"""Depth by itself: the same weights, applied once, twice, three times. The task `ring` asks for the
letter k steps on along a ring of letters, at once or with the steps written; the study of it:

    python train.py --study ring --seed 0 1 2                       one layer, applied 1 to 5 times
    python train.py --study ring --preset ring-layers --seed 0 1 2  layers with weights of their own
    python train.py --study ring --preset ring-four --seed 0 1 2    and four steps
    python train.py --study ring --preset ring-written --seed 0 1 2 the steps written, one by one

What attention alone can do, k steps in L layers (in L applications of one layer as well):

directly, k ≤ 2^(L-2), as we count: ⌈log2 k⌉ + 2 layers. The first layer tells the second letter of
each pair which letter stands before it, the second finds the pair that begins with the letter asked
for, and each layer after that puts two finds together, so that the steps double. For k-hop ⌊log2 k⌋
+ 2 layers suffice (Sanford, Hsu & Telgarsky 2024, arXiv 2402.09268), and the depth must grow as log
k, if a conjecture holds, unless the model is very wide or has very many heads. Two things differ
here. First, a place sees only what stands before it. In k-hop all hops lead back, so every place
can put its finds together; here a pair's successor may stand after it. So questions can, and pairs
whose successor stands before them, which one model was seen to do (page 19) and our count leaves
out. Letter by letter, k steps take k + 1 layers: as many for one, two and three steps, one more for
four. Doubling needs an earlier question about the letter half way. Second, the ring is short:
letters found on both sides can be ruled out. Of a ring of 8, four steps on is all that is left when
three either way are known: an answer does not tell how it was found.

written, any k in two layers, as each step is the first one again. One layer in neither way: what it
adds to a question depends on each place by itself, never on which letter stands beside which.
"""

import math
import os
import statistics

import torch
import torch.nn.functional as F

import minidepth as md
from minidepth_lab import depth, figures
from minidepth_lab.task import Task, answer_before, distinct, predicted

WAYS = ("direct", "written")
LEARNED = 0.9  # accuracy from which a length counts as learned

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
}
md.PRESETS.update(PRESETS)


# ---------- the task ----------


class ring(Task):
    """A ring of letters as pairs in mixed order, a b for "b follows a", then questions: a number k
    and a letter, at which the one k steps on is asked. (The other way round a question would first
    have to copy its letter, and one layer would fail for that alone.) The ring is drawn anew for
    each sequence, of 65 million by default; letters and lengths of questions are drawn evenly and
    may come again. Answered directly, a question is these two tokens and no answer stands in the
    sequence: an answered question would be a look-up for a later one. Written, the letters on the
    way follow, and each is the target of the token before it; the places that a shorter question
    leaves over hold a blank. A question counts as right if all its letters are.

    A letter is its number below `letters`, k is letters + k, the blank is `letters`. Lengths reach
    half way round, for beyond that the other way is shorter; written, all the way.

    `early` is the share of training, from its start, in which the lengths join one by one, the
    shortest first; the next joins sooner if the loss, times how many are asked, is below `gate`.
    """

    settings = dict(steps=1200, eval_every=100)

    def draw(
        self, batch, generator, test=False, letters=16, ring=8, questions=56, lengths=(1, 2),
        answer="direct", early=0.3, gate=0.0, *, opened=None,
    ):  # fmt: skip
        """tokens and targets (batch, 2 ring + questions × width), where width is 2, or written
        1 + the longest length. `opened`: the lengths to draw from, if not all. ValueError for
        lengths that the ring has no room for, or an unknown way of answering."""
        check(ring, lengths, answer)
        line = distinct(batch, letters, ring, generator, "letters")  # in the ring's order
        order = distinct(batch, ring, ring, generator, "pairs")
        pairs = torch.stack((line.gather(1, order), line.gather(1, (order + 1) % ring)), 2)
        start = torch.randint(ring, (batch, questions), generator=generator)
        lengths_open = torch.tensor(opened or lengths)
        which = torch.randint(len(lengths_open), (batch, questions), generator=generator)
        k = lengths_open[which][..., None]  # (B, questions, 1)
        step = torch.arange(max(lengths) + 1)
        at = (start[..., None] + step) % ring
        path = line.gather(1, at.flatten(1)).view(at.shape)  # the letter 0, 1, 2, … steps on
        if answer == "direct":
            asked = torch.cat((letters + k, path[..., :1]), 2)
            targets = F.pad(path.gather(2, k), (1, 0), value=-100)
        else:
            on_the_way = path[..., 1:-1].where(step[1:-1] < k, letters)
            asked = torch.cat((letters + k, path[..., :1], on_the_way), 2)
            wanted = path[..., 1:].where(step[1:] <= k, -100)
            targets = F.pad(wanted, (1, 0), value=-100)
        tokens = torch.cat((pairs.flatten(1), asked.flatten(1)), 1)
        return tokens, F.pad(targets.flatten(1), (2 * ring, 0), value=-100)

    def n_asked(self, done, lengths=(1, 2), early=0.3, **_):
        """How many of the lengths are asked when the share `done` of training is behind it."""
        n = len(lengths)
        return n if done >= early else max(1, math.ceil((n - 1) * done / early))

    def train_batch(self, done, batch, generator, **sizes):
        opened = sorted(sizes.get("lengths", (1, 2)))[: self.n_asked(done, **sizes)]
        return self.draw(batch, generator, opened=opened, **sizes)

    def ahead(self, loss, done, lengths=(1, 2), early=0.3, gate=0.0, **_):
        asked = self.n_asked(done, lengths, early)
        if asked == len(lengths) or loss * asked >= gate:
            return 0.0
        return early * asked / (len(lengths) - 1) + 1e-9  # just after the next one joins

    def guess(self, ring, lengths, answer, **_):
        """Any other letter of the ring; of written steps each one that is not there yet."""
        if answer == "direct":
            return 1 / (ring - 1)
        return statistics.mean(1 / math.perm(ring - 1, k) for k in lengths)

    def shortcut(self, ring, lengths, answer, **_):
        """A look at the letter's neighbours, and none from there: one step is known, for more
        steps the letter and its neighbours are ruled out. Unknown for written steps."""
        if answer == "direct":
            return statistics.mean(1.0 if k == 1 else 1 / (ring - 3) for k in lengths)

    def links(self, tokens, targets, letters, ring, lengths, answer, **_):
        """The second letter of a pair and a question's letter copy the token before (copy).
        Written, each letter is found in the pair of the one before (match). Directly, a question
        finds the letters on its way in their pairs (step 1, step 2, …), or, for four steps and
        more, an earlier question about the letter half way (half)."""
        place = torch.arange(tokens.size(1))
        second = (place < 2 * ring) & (place % 2 == 1)
        k = tokens.roll(1, 1) - letters  # above 0 where a question asks
        asks = k > 0
        copy = (second | asks)[:, :, None] & (place == place[:, None] - 1)
        if answer == "written":
            return dict(copy=copy, match=answer_before(tokens, targets) & second)
        follows = torch.zeros(len(tokens), letters, dtype=torch.int64)
        follows.scatter_(1, tokens[:, : 2 * ring : 2], tokens[:, 1 : 2 * ring : 2])
        steps, at = dict(copy=copy), tokens.where(asks, 0)
        half = torch.zeros_like(copy)
        for step in range(1, max(lengths) + 1):
            at = follows.gather(1, at)
            same = at[:, :, None] == tokens[:, None]
            steps[f"step {step}"] = same & second & (asks & (k >= step))[:, :, None]
            if step > 1:
                half |= same & asks[:, None] & (asks & (k == 2 * step))[:, :, None]
        if max(lengths) > 3:
            steps["half"] = half.tril(-1)
        return steps

    def accuracy(self, model, tokens, targets, letters, ring, questions, **sizes):
        """{"accuracy": share of questions whose letters are all right, "accuracy_by": {"lengths":
        {"1": {"accuracy", "guess", "shortcut"}, …}}}"""
        good = (predicted(model, tokens) == targets) | (targets == -100)
        right = good[:, 2 * ring :].unflatten(1, (questions, -1)).all(2).float()
        asked = tokens[:, 2 * ring :].unflatten(1, (questions, -1))
        k = asked[..., 0] - letters
        by_length = {}
        for length in sizes["lengths"]:
            alone = sizes | dict(lengths=(length,))
            found = dict(accuracy=right[k == length].mean().item())
            for name, share in zip(("guess", "shortcut"), self.chance(ring=ring, **alone)):
                if share is not None:
                    found[name] = share
            by_length[str(length)] = found
        return dict(accuracy=right.mean().item(), accuracy_by=dict(lengths=by_length))

    def figure(self, runs, folder):
        """lengths.png of a grid: the error by length and layers."""
        what = "lengths", "error (share of questions)", "one look"
        figures.draw_by_layers(runs, os.path.join(folder, "lengths.png"), *what)


def check(ring, lengths, answer):
    """ValueError for lengths that a ring has no room for, or an unknown way of answering."""
    if answer not in WAYS:
        raise ValueError(f"answer {answer!r} is unknown; choose from {', '.join(WAYS)}")
    room = ring // 2 if answer == "direct" else ring - 1
    if room < 1:
        raise ValueError(f"ring {ring} is too short: no letter is a step on; give at least 2")
    if max(lengths) > room:
        advice = "give less, or a longer ring with --sizes ring=N"
        most = f"answered {answer}, a ring of {ring} has room for {room}"
        raise ValueError(f"lengths {max(lengths)} is too much: {most}; {advice}")


# ---------- the study ----------


def n_layers(n):
    return "1 layer" if n == 1 else f"{n} layers"


def rows(preset, settings):
    """{row's name: its settings} of a preset of the study; of any other those of `ring`."""
    deep = {"ring-layers": (2, 3, 4), "ring-four": (1, 2, 3, 4, 5), "ring-written": (1, 2)}
    own = {n_layers(n): settings | dict(n_layers=n) for n in deep.get(preset, ())}
    if preset == "ring-layers":
        own["2 layers, 2 times"] = settings | dict(n_layers=2, n_loops=2)
    if own:
        return own
    one = settings | dict(n_layers=1)
    made = {f"applied {n}": one | dict(n_loops=n) for n in (1, 2, 3, 4, 5)}
    return made | {"wide, applied 1": one | depth.matched_width(preset, one, 4)}


def layers_that_suffice(k, answer="direct"):
    """The layers with which k steps can be done as far as is known."""
    return 2 if answer == "written" else 2 + math.ceil(math.log2(k))


def by_depth(runs, wanted):
    """{length: {layers applied: accuracies of all seeds}} of runs whose model is `wanted`."""
    found = {}
    for run in runs:
        if wanted(run["labels"]["model"]):
            length = found.setdefault(int(run["labels"]["lengths"]), {})
            length.setdefault(run["depth"], []).append(run["accuracy"])
    return found


def said_of(length, medians):
    """What a title says of one length, of {layers applied: median accuracy}."""
    steps = "1 step" if length == 1 else f"{length} steps"
    enough = [str(n) for n, median in medians.items() if median >= LEARNED]
    if not enough:
        return f"{steps}: never"
    return f"{steps}: applied {', '.join(enough)} times"


def draw_applied(found, guess, path):
    """Accuracy by length over how often the one layer is applied; `found` as by_depth() gives."""
    with figures.drawing(path, size=(6.5, 4.2)) as (_, axes):
        said, n = [], 0
        for number, (length, values) in enumerate(sorted(found.items())):
            medians = {x: statistics.median(shares) for x, shares in sorted(values.items())}
            color = f"C{number}"
            for x, shares in values.items():
                n = max(n, len(shares))
                places = [x + 0.08 * (number - 0.5)] * len(shares)
                axes.plot(places, shares, "o", color=color, markersize=3, alpha=0.5)
            name = "1 step on" if length == 1 else f"{length} steps on"
            axes.plot(medians.keys(), medians.values(), "-", color=color, linewidth=3, label=name)
            said.append(said_of(length, medians))
        axes.axhline(guess, color="dimgray", linestyle=":", label="guessing")
        axes.set_xticks(sorted({x for values in found.values() for x in values}))
        axes.set(xlabel="times that the one layer is applied", ylim=(-0.03, 1.03))
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
        axes.set(xlabel="layers", ylabel="steps on")
        n = max(len(shares) for values in found.values() for shares in values.values())
        left, right = [], []  # of the line
        for row, first in zip(medians, edge):
            left += [median >= LEARNED for median in row[:first]]
            right += [median >= LEARNED for median in row[first:]]
        title = f"Learned: {sum(right)} of {len(right)} cells right of the predicted line, "
        title += f"{sum(left)} of {len(left)} left of it\n(median of {n} seeds {LEARNED} or more)"
        axes.set_title(title, size="medium")


def figure(runs, folder):
    """applied.png, where runs apply one layer several times; layers.png, where several have layers
    of their own: accuracy by length and layers, the predicted boundary as a red line."""
    applied = by_depth(runs, lambda model: model.startswith("applied"))
    if applied:
        draw_applied(applied, runs[0]["guess"], os.path.join(folder, "applied.png"))
    own = by_depth(runs, lambda model: model.endswith(("layer", "layers")))
    if own:  # a question answered directly is guessed as well at any length, a written one is not
        answer = "direct" if len({run["guess"] for run in runs}) == 1 else "written"
        draw_map(own, os.path.join(folder, "layers.png"), answer)
