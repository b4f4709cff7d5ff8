# %% [markdown]
# # A thousand hops
#
# **Train one layer to follow eight hops, and loop it on: in 13 of 15 runs it still knows where it
# is after a thousand. What fails in others is mostly not the walk but the memory of the map. Let
# the layer read the map once and never change it, and ten of ten runs walk on, round rings of 64,
# too.** You will learn how to take a walk apart, and what makes it go on.
#
# When you [walked the ring](4_walking.md), a loop more than in training gained nothing. There the
# question said how many hops, and so when to stop. Here no number stands in the question. The layer
# walks as far as it is looped.
#
# One more thing is new. What a loop passes on grows from loop to loop, and drowns what was there
# before. So each loop now begins with the last one's state brought to one length (*normalised*),
# and with **the input added again**. We call this *recall*.

# %% tags=["hide"]
import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F

import minidepth as md
from minidepth_lab.keep import checkpoints
from minidepth_lab.measure import far, judge, results, walk_by_hand
from minidepth_lab.tasks import TASKS
from minidepth_lab.tasks.walk import by_hops, following
from minidepth_site import exercises, widgets

# %% [markdown]
# ## Take it apart
#
# The ring has sixteen letters. The map is its pairs, in mixed order. Training asks for one hop
# after the second loop, two after the third, up to eight. Here is such a layer, asked from two
# letters at once. **Predict first:** what happens if both questions skip a loop? And if they swap
# their states half way?

# %% tags=["hide"]
widgets.show("apart", widgets.further(), "This part needs JavaScript. A test of it is below.")

# %% [markdown]
# **The state of a question is the place that it has come to.** A skipped loop costs one hop,
# whichever loop it is, from the second on. Swapped states walk on from each other's place. We
# tested it on all letters of twenty rings:

# %%
walker, _ = checkpoints.load(results.weights("walk", "8-hops-ring-16-seed-200"))
sizes = dict(ring=16, hops=8)
sequences, _ = TASKS["walk"].draw(20, md.generator("apart"), test=True, **sizes)
asked = slice(32, None)  # behind the pairs: every letter of the ring


@torch.no_grad()
def take_apart(loops=9, skip=(), swap=None):
    """What all questions hold at the end, (20, 16), if they skip some loops, or
    after one swap states: each with the question before it in the sequence."""
    x = embedded = walker.embed(sequences)
    for loop in range(1, loops + 1):
        after = walker.blocks[0](F.layer_norm(x, x.shape[-1:]) + embedded)
        if loop in skip:
            after[:, asked] = x[:, asked]
        if loop == swap:
            after[:, asked] = after[:, asked].roll(1, 1)
        x = after
    return (walker.norm(x[:, asked]) @ walker.head_weight.T).argmax(-1)


# %% tags=["hide"]
follows = following(sequences, 16)


def walked(hops):
    """The letter so many hops on from each question."""
    letter = sequences[:, asked]
    for _ in range(hops):
        letter = follows.gather(1, letter)
    return letter


def share(answers, letters):
    return (answers == letters).float().mean().item()


skipping = {n: share(take_apart(skip=[n]), walked(7)) for n in range(1, 10)}
swapping = {n: share(take_apart(swap=n), walked(8).roll(1, 1)) for n in range(1, 10)}
rows = [[n, f"{skipping[n]:.2f}", f"{swapping[n]:.2f}"] for n in (1, 2, 5, 9)]
widgets.table(["loop", "skipped: one hop less", "swapped: the other's way"], rows)

# %% [markdown]
# ## Loop it on
#
# If every loop does the same from wherever a question stands, nothing should end with the nine
# loops of training. We trained 15 layers with recall, and 15 whose loops begin with the bare state.

# %%
named = judge.named_runs("walk")
kinds = {"recall": named["8 hops, ring of 16"] + named["8 hops, pairs kept"]}
for start in ("state", "input", "normalised"):
    its = (f"start: {start}{more}" for more in ("", ", five more", ", pairs kept"))
    kinds[start] = sum((named[name] for name in its), [])


def draw(axes, runs, color, label, key="accuracy"):
    """Of each run the share of questions that are right, by hops."""
    for i, run in enumerate(runs):
        by_hop = run["accuracy_by"]["hops"].items()
        hops, right = zip(*((int(n), part[key]) for n, part in by_hop))
        axes.plot(hops, right, color=color, alpha=0.5, label=None if i else label)
    axes.set(xscale="log", xlabel="hops", ylim=(-0.03, 1.05), xticks=(1, 10, 100, 1000))
    axes.xaxis.set_major_formatter("{x:g}")


figure, axes = plt.subplots(figsize=(4.8, 3.4))
draw(axes, kinds["recall"], "C0", "state normalised, and the input")
draw(axes, kinds["state"], "C3", "bare state")
axes.axvline(8, color="C1", linestyle="--")
axes.annotate("trained\nup to here", (7.4, 0.2), color="C1", ha="right")
axes.set_ylabel("share of questions right")
axes.set_title("with recall, most walks go on")
figure.legend(title="a loop begins with", loc="upper center", bbox_to_anchor=(0.5, 0.02), ncols=2)
plt.show()

# %% [markdown]
# What to see: with recall, most runs are as often right at a thousand hops as at eight. With the
# bare state all are lost by the thirty-first hop. Each line is one run.

# %% [markdown]
# **With recall, 13 of 15 are right at 0.95 or better at every length tested from once round to a
# thousand hops.** It takes both halves: with the input alone, or the normalisation alone, all 15
# runs are lost by the thirty-first hop (fewer than 0.3 of the questions are right).
#
# ### What a cheat would get
#
# A ring of sixteen repeats after sixteen hops. So a thousand hops lead where **eight** do, which
# training asks for. A model that stops at its eighth hop would be right there, and wrong elsewhere.
# So here are four runs at several lengths, and at each hop of a whole round:

# %% tags=["hide"]
WINDOW, TESTED = range(85, 101), (15, 31, 100, 1000)
on_rings, _ = TASKS["walk"].draw(200, md.generator("window"), test=True, **sizes)
window, first_alone, rows = {}, {}, []  # {seed: {hops: share right}}; of the first question alone
for run in named["8 hops, ring of 16"]:
    if results.weights_file("walk", run["id"]).exists():
        model, _ = checkpoints.load(results.weights("walk", run["id"]))
        right = by_hops(model, on_rings, 16, (*TESTED[:3], *WINDOW))
        window[run["seed"]] = right | {1000: run["accuracy_by"]["hops"]["1000"]["accuracy"]}
        first_alone[run["seed"]] = by_hops(model, on_rings[:, :33], 16, TESTED[:3])
one_letter = walked(0).flatten().mode().values  # the commonest
cheats = {"stop after eight hops": walked(8), "stay at one's own letter": walked(0)}
cheats["the same letter always"] = one_letter
found = {f"trained, seed {seed}": shares for seed, shares in window.items()}
for name, given in cheats.items():
    found[name] = {n: share(given, walked(n)) for n in (*TESTED, *WINDOW)}
for name, shares in found.items():
    least = min(shares[n] for n in WINDOW)
    rows.append([name, *(f"{shares[n]:.2f}" for n in TESTED), f"{least:.2f}"])
widgets.table(["right after hops", *map(str, TESTED), "85 to 100, the least"], rows)

# %% [markdown]
# **No cheat survives the whole round; the trained layers do.** (A walk does not read the other
# questions either: asked alone, a question is as often right.) Still, a thousand hops on this ring
# are not a thousand new situations. Whoever is right once round, and comes back to the same state,
# is right for ever. A longer ring is the harder test, and on rings of 32 and more most walks of
# this kind [do not go on](beyond_training.md#one-thing-changed). **It need not be a ring, either**:
# programs whose state does not come round with the ring are followed as far, if they are read once
# ([walks that cannot cheat](../reference/no_cheat.md#a-computed-state-or-the-map-alone)).
#
# ## What gets lost
#
# Where does a lost walk go wrong? A question walks by looking at the pairs. But the loops are
# applied to every token: they change the pairs as well, and nothing in training asks what becomes
# of these after the last loop. So we took lost walks and **kept their pairs** as they are after the
# loops of training. Only the questions are looped on. Nothing is trained for this.

# %%
panels = {  # row: (its title, the hops of its training)
    "hops: 4, five more": ("trained to four hops,\nring of 16", 4),
    "start: normalised, pairs kept": ("without the input,\nring of 16", 8),
    "ring: 64, hints, 4,000 steps": ("trained to eight hops,\nring of 64", 8),
}
figure, axes = plt.subplots(1, 3, figsize=(7.6, 3), sharey=True)
for each, (name, (title, trained)) in zip(axes, panels.items()):
    draw(each, named[name], "C3", "pairs left to change")
    draw(each, named[name], "C0", "pairs kept at the test", "pairs_kept")
    each.axvline(trained, color="C1", linestyle="--")
    each.set_title(title)
axes[0].set_ylabel("share of questions right")
lines = axes[0].get_legend_handles_labels()
figure.legend(*lines, loc="upper center", bbox_to_anchor=(0.5, 0.02), ncols=2)
plt.show()

# %% [markdown]
# What to see: the same layers, as they are and with their pairs kept. Each line is one of five
# runs, on the right of ten. The dashed lines are the hops of training.

# %% [markdown]
# **In these layers it is the map that gets lost.** With the pairs kept, all ten on sixteen letters
# are right at a thousand hops, at 0.98 or more. On a ring of 64 keeping them brings five of ten
# once round, and without it none comes. (A layer that does not normalise loses more than the map:
# [its state grows](beyond_training.md#a-walk-that-goes-on-comes-back). [How far the map
# moves](../reference/no_cheat.md#why), loop by loop, is drawn beside what is right.)
#
# ## Read once, then walk
#
# If the pairs get lost, training can keep them, too. With `--loop_keeps` the pairs stay as the
# first loop leaves them, in training and at the test. **So the layer reads once, and then the
# questions walk.** [From scratch](from_scratch.md) has the whole program in plain PyTorch.
#
# Here are layers trained to eight hops on larger rings. On these the first hop is hard to find:
# while only one hop is asked, all of them get a *hint*, a target for the second letter of each
# pair, which has to say the first.

# %%
changing = {64: named["ring: 64, hints"] + named["ring: 64, hints, 4,000 steps"]}
changing[128] = results.runs("walk", ring=128, seed=50)
keeping = {ring: named[f"ring: {ring}, hints, kept throughout"] for ring in changing}
figure, axes = plt.subplots(1, 2, figsize=(7.2, 3.2), sharey=True)
for each, ring in zip(axes, changing):
    draw(each, changing[ring], "C3", "pairs change")
    draw(each, keeping[ring], "C0", "read once")
    each.axvline(8, color="C1", linestyle="--")
    each.axvline(ring - 1, color="0.6", linestyle=":")
    each.set_title(f"ring of {ring}")
axes[0].set_ylabel("share of questions right")
lines = axes[0].get_legend_handles_labels()
figure.legend(*lines, loc="upper center", bbox_to_anchor=(0.5, 0.02), ncols=2)
plt.show()

# %% [markdown]
# What to see: read once, ten of ten layers on the ring of 64 are right at a thousand hops, and most
# on the ring of 128. Where the pairs change, nearly all are lost before they are once round (dotted
# line).

# %% tags=["hide"]
READ_ONCE = {  # what is said: runs that read once, trained to so many hops
    "ring of 16, trained to 4 hops": ("hops: 4, kept throughout", 4),
    "ring of 16, trained to 8 hops": ("kept throughout", 8),
    "ring of 64, with hints": ("ring: 64, hints, kept throughout", 8),
    "ring of 128, with hints": ("ring: 128, hints, kept throughout", 8),
}


def from_once_round(run):
    """{hops: what was right} at all lengths that were tested from once round on."""
    by_hop, once_round = run["accuracy_by"]["hops"], run["sizes_by_name"]["ring"] - 1
    return {int(n): part["accuracy"] for n, part in by_hop.items() if int(n) >= once_round}


rows, good = [], {}
for text, (name, trained) in READ_ONCE.items():
    right = [from_once_round(run) for run in named[name]]
    good[text] = sum(min(shares.values()) >= 0.99 for shares in right)
    hops, ring = list(right[0]), named[name][0]["sizes_by_name"]["ring"]
    at = far.cheats("walk", hops, trained, rings=100, ring=ring).values()
    cells = (f"{min(each[cheat] for each in at):.2f}" for cheat in ("commonest", "own", "stopped"))
    tested = ", ".join(f"{n:,}" for n in hops)
    rows.append([text, tested, f"{good[text]} of {len(right)}", *cells])
head = ["read once", "hops", "all right at 0.99"]
widgets.table([*head, "one letter always", "one's own letter", "stop"], rows)

# %% [markdown]
# On the right is what [a cheat](#what-a-cheat-would-get) would get at the worst of these lengths.
#
# Once round a ring of 128 are 127 hops, each to a letter that the walk had not met, after training
# on eight. The other three layers learned their first hop late or never.
#
# The input is then not needed any more; the normalisation still is. Without it ten of ten are lost
# by a hundred hops, though they read once.
#
# ## What this shows, and what it does not
#
# A layer can learn a step that it can repeat, if what it looks up stays where it is. That is shown
# for rings of the sizes that each layer was trained on, and on [half as large
# again](../reference/no_cheat.md#sizes-never-seen); on one larger size alone only with a hint. Sums
# [go on if trained to sixteen](beyond_training.md#sums-and-an-answer-that-has-to-stay). An answer
# that has to be held mostly is not, though the map is read once: two layers of five hold it, and
# after training with up to 64 loops eight of ten that do not read once. [Text gains
# nothing](beyond_training.md#and-on-text) from loops beyond training. What others found is [on one
# page](../reference/others.md).

# %%
assert set(by_hops(walk_by_hand.walker(16), sequences, 16, (1, 8, 100)).values()) == {1.0}
assert min(swapping.values()) > 0.99 and min(list(skipping.values())[1:]) > 0.99
assert skipping[1] < 0.5


def shares(name, hops, key="accuracy"):
    """Of the runs of a row, the least first."""
    return sorted(run["accuracy_by"]["hops"][str(hops)][key] for run in named[name])


def least(run):
    return min(from_once_round(run).values())


held = [run["accuracy_by"]["loops"] for run in judge.named_runs("hold")["read once"]]
assert sorted(loops["100"]["accuracy"] >= 0.95 for loops in held) == [False] * 3 + [True] * 2
assert [least(run) >= 0.95 for run in kinds["recall"]].count(True) == 13
assert {name: len(runs) for name, runs in kinds.items()} == dict.fromkeys(kinds, 15)
for start in ("state", "input", "normalised"):
    lost = [run["accuracy_by"]["hops"]["31"]["accuracy"] for run in kinds[start]]
    assert max(lost) < 0.3
assert len(window) == 4
for seed, right in window.items():
    assert max(right[100], right[1000]) - min(right[n] for n in WINDOW) < 0.02
    assert all(abs(first_alone[seed][n] - right[n]) < 0.01 for n in TESTED[:3])
for given in cheats.values():
    assert min(share(given, walked(n)) for n in WINDOW) < 0.05
assert share(cheats["stop after eight hops"], walked(1000)) == 1
for name in list(panels)[:2]:
    assert len(named[name]) == 5 and shares(name, 1000, "pairs_kept")[0] > 0.98
    assert shares(name, 1000)[-1] < 0.6
on_64 = "ring: 64, hints, 4,000 steps"
assert len(named[on_64]) == 10 and shares(on_64, 63)[-1] < 0.9
assert sum(right >= 0.9 for right in shares(on_64, 63, "pairs_kept")) == 5
assert list(good.values()) == [5, 10, 10, 7] and len(named["hops: 4, kept throughout"]) == 5
for name in ("kept throughout", "hops: 4, kept throughout", "ring: 64, hints, kept throughout"):
    assert min(map(least, named[name])) > 0.995
late = []  # the steps at which those that are not right have one hop
for run in keeping[128]:
    if run["accuracy_by"]["hops"]["127"]["accuracy"] < 0.99:
        one_hop = ((record["step"], record["accuracy_by"]["hops"]["1"]) for record in run["log"])
        late.append(next((step for step, part in one_hop if part["accuracy"] >= 0.9), None))
assert sorted(late, key=str) == [2500, 2500, None] and keeping[128][0]["steps"] == 3000
assert shares("start: normalised, kept throughout", 1000)[0] > 0.995
no_norm = [shares(f"start: {start}, kept throughout", 100) for start in ("state", "input")]
assert len(sum(no_norm, [])) == 10 and max(sum(no_norm, [])) < 0.3
not_lost = [run for run in sum(changing.values(), []) if least(run) >= 0.5]
assert len(not_lost) <= 2

# %% tags=["hide", "wrong"]
widgets.wrong("walk")

# %% [markdown]
# ## Exercises
#
# 1. (Easy, 5 minutes.) The model that you took apart is looped twelve times, and all questions skip
#    the fourth and the seventh loop. How many hops on is the letter that they hold at the end?

# %% tags=["exercise"]
hops_on = ...  # a number of hops

# %% [markdown] tags=["hint"]
# Which of the twelve loops make a hop, if none is skipped?

# %% tags=["answer"]
hops_on = 12 - 1 - 2  # the first loop prepares, and two are skipped


# %% tags=["check"]
@exercises.check
def twelve_loops_without_two():
    assert isinstance(hops_on, int), "hops_on should be a whole number"
    needed = f"{hops_on} hops would need {hops_on + 1} loops: the first one only prepares"
    assert hops_on < 12, needed
    assert hops_on != 11, "11 hops on is where the questions come if they skip no loop"
    assert hops_on != 10, "one too many: two loops are skipped, and the first makes no hop"
    right = share(take_apart(12, skip=(4, 7)), walked(hops_on))
    said = f"the letter {hops_on} hops on is what the model holds in {right:.2f} of the questions"
    assert right > 0.95, f"{said}: count the loops in which a question walks"


# %% [markdown]
# 2. (Easy, 15 minutes, of which 12 run.) Train three more walkers. Write down first in how many of
#    them a thousand hops are right at 0.95: `python train.py --preset walk --seed 210 211 212`.

# %% [markdown] tags=["hint"]
# Eight of the first ten runs did it. How often would three of three, if each does with chance 0.8?

# %% [markdown] tags=["answer"]
# Three of three in half of the cases: 0.8³ = 0.51. Two of three in 0.38. So three runs say little
# about how often training finds such a walk, and one run says next to nothing.

# %% [markdown]
# 3. (Hard, 10 minutes.) A walk on a ring of sixteen repeats after sixteen hops. How long must a
#    ring be for a thousand hops to be a thousand new situations? And would another task, where each
#    place points to any other, do with fewer places?

# %% [markdown] tags=["hint"]
# Where is a walker that has made as many hops as there are places?

# %% [markdown] tags=["answer"]
# More than a thousand letters. Other pointers need as many: among n places a path has come back to
# one of them after n hops at the latest, and goes round from there. So only larger tests are harder
# tests. Ours have sixteen to 128 letters, and 256 in two runs.
