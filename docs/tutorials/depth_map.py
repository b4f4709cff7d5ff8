# %% [markdown]
# # A map of depth
#
# **For seven small tasks we wrote down, before any run, how many layers each needs. Three fifths of
# the map came out as written, two tasks nearly whole. But "nothing is learned" would have been
# right in more than half of it.**
#
# - Where a formula was wrong, it was mostly because the layers were enough on paper and training
#   did not find how.
# - In S5 fewer layers did more than the formula allows, and in the easiest row of brackets. Short
#   stretches of S5 may be known by heart; whole beginnings of fourteen moves are not.
# - After six times the training, one more task, pointers, is as written with one layer and with
#   two, not yet with more.
# - Reachability was guessed everywhere, even one step of it. With a second target in training three
#   layers learn that step; the formula says two, and two guess.
#
# Rings are one task. Is there a rule for how many layers *other* tasks take? Theory has rules for
# some, and we made formulas of them: the least number of layers, or of loops of one layer, for
# difficulty n. Then we trained models of one to six layers for 1,000 steps, on all difficulties of
# a task at once. Each layer has attention and a feed-forward part, and is 64 wide.
#
# | task | what is asked | formula |
# |---|---|---|
# | Z60 | where a circle of sixty places stands after n turns, each by one place or by seven | 1 |
# | brackets | which kind of bracket is to be closed next, if it opened n places before | 2 |
# | S5 | the order of five things after n moves, each a swap of two or a turn of all | log₂ n |
# | parity | whether the ones among n bits are odd in number | 1 |
# | modulo ten | the last digit of the sum of n digits | 1 |
# | pointers | where n jumps (hops between places) lead, when each points to any | log₂ (n + 1) |
# | reachability | whether a path leads from here to there, n steps on | 1 + log₂ (n + 1) |
#
# Logarithms are rounded up. They stand where the order of the parts counts: a layer can put two
# neighbouring stretches together, so the length of what is known doubles with each layer. Where the
# order does not count, one layer can take the mean of all that stands there. These formulas are [in
# the tasks](../reference/laboratory.md#minidepth_lab.tasks), each with its reason.
#
# Training never had a sequence of the test as a whole. But there are few short ones: where there
# are two symbols, training has seen every beginning of eight symbols, and where there are ten,
# every beginning of two. So the easiest rows of a map may be known by heart; [below](#s5-by-heart)
# we look at this for S5.
#
# ## As written: Z60 and brackets

# %% tags=["hide"]
import matplotlib.pyplot as plt
import torch

import minidepth as md
from minidepth_lab.keep import checkpoints, registry
from minidepth_lab.measure import judge, results
from minidepth_lab.studies import map as depth_map
from minidepth_lab.tasks import TASKS, predicted
from minidepth_site import widgets

measured = depth_map.cells(depth_map.stored())
counts = depth_map.called_right(measured)


def draw(*names):
    """The panels of tasks: layers of their own above, loops of one layer below."""
    _, axes = plt.subplots(2, len(names), figsize=(2.6 * len(names), 5.2), squeeze=False)
    depth_map.draw_panels(axes, names, measured)
    plt.show()


# %%
draw("Z60", "brackets")

# %% [markdown]
# What to see: Z60 takes one layer at every difficulty, and brackets take two, but for the easiest
# ones. The line is the formula: from it on, models should be right (0.9 or more), and before it
# wrong; where no line is seen, all should be right. Each cell is the median of five runs. The title
# counts the cells that are as the formula says.
#
# ## More than written: S5

# %%
draw("S5")

# %% [markdown]
# What to see: one layer puts eight moves of S5 together, where the formula asks for three layers,
# and no model puts thirty-two together. At sixteen each further layer helps a little: there is no
# threshold. Loops of one layer help less.
#
# ## Less than written: parity, and sums modulo ten

# %%
draw("parity", "modulo ten")

# %% [markdown]
# What to see: one layer is enough on paper, but only short sequences were learned, and somewhat
# longer ones with more layers. A training can do better: one run of the forty-five adds eight
# digits, at 0.90, with four layers.
#
# Attention takes means, and one symbol among thirty-two hardly moves a mean. Hahn 2020 ([arXiv
# 1906.06755](https://arxiv.org/abs/1906.06755)) shows how small the difference is that parity has
# to be read from. Yet Z60 is read from a mean as well, and was learned; exercise 1 is about why.
#
# ## Not found: pointers and reachability

# %%
draw("pointers", "reachability")

# %% [markdown]
# What to see: two jumps were never learned, one jump in two runs of forty-five (of two layers of
# their own), and reachability was only guessed, at any depth. Both are lookups one after another,
# as on a ring. On rings the questions began with one hop and [grew with what was
# learned](rings.md); here all difficulties are asked from the start. Is it the formulas that are
# wrong, or was the training too short? We trained these two again, five seeds of pointers (eight
# with two layers) and two of reachability, for six times as many steps:

# %%
longer = depth_map.cells(depth_map.stored("map-longer", steps=6000))
_, axes = plt.subplots(1, 3, figsize=(7.8, 2.6))
panels = [("pointers", "layers"), ("pointers", "loops"), ("reachability", "layers")]
for each, (name, kind) in zip(axes, panels):
    depth_map.draw_panel(each, name, kind, longer)
    each.set(title=name, xlabel=kind)
axes[0].set_ylabel("difficulty")
plt.show()

# %% [markdown]
# What to see: pointers now come **as the formula says with one layer and with two**: one layer
# learns one jump and no more in five runs, two layers learn three and no more in eight. With three
# and four layers they do not yet: five jumps are half right with three layers and mostly right with
# four, where the formula asks for all, and eight are not learned. Reachability is still guessed.
#
# So for pointers the training of the map was too short.
#
# ## Three jumps with two layers
#
# Why three, and not two? Each jump is a lookup, and two layers make two lookups one after another.
# But **places look as well, while the question does.** We looked inside.
#
# In the first layer a question finds the place that it begins with: one jump. In the same layer a
# place looks at the one that it points to, if that stands before it, and so knows where two jumps
# lead. In the second layer the question looks at the place that it has come to, and has all three.
#
# And if that place points ahead? It cannot look there. But the place that it points to has looked
# back at who points to it. So the question finds *that* place in the second layer, two jumps on,
# and reads the third jump there. To see whether these looks are needed, we forbade the first layer
# one kind of them at a time. The shares are of questions that are right, those of three jumps by
# whether the place one jump on points back or ahead; guessing finds one in sixteen:

# %% tags=["hide"]
looked = results.runs("map-longer", data="pointers", n_layers=2, n_loops=1)
looked = [run["measured"]["inside"] for run in looked if run["measured"] and run["seed"] > 202]
rows, jumps_right = [], {}  # {(what the first layer does not look at, kind): shares by run}
forbidden = {
    "nothing cut": "nothing", "where it points": "a place, where it points",
    "what points to it": "a place, what points to it", "jump 1": "a question, its beginning",
}  # fmt: skip
for name, said in forbidden.items():
    cells = []
    for kind in ("1 jump", "2 jumps", "back", "ahead"):
        jumps_right[name, kind] = [inside["right"][name][kind] for inside in looked]
        least, most = min(jumps_right[name, kind]), max(jumps_right[name, kind])
        cells.append(f"{least:.2f}–{most:.2f}")
    rows.append([said, *cells])
head = ["may not look at", "1 jump", "2 jumps", "3, back", "3, ahead"]
widgets.table(head, rows)

# %% [markdown]
# **Each kind of look carries one kind of question of three jumps, and no other.** Without looks at
# where a place points, those by way of a place that points back are nearly all wrong, and the
# others as right as before. Without looks at what points to it, it is the other way round: then
# those by way of one that points ahead are right in a third at most. (In two runs a fifth and a
# third of them stay right; how, we have not looked.) In the second layer a head gives more than
# nine tenths of its weight to the place one jump on where this points back, and more than half to
# the place two jumps on where it points ahead. We looked into one run, predicted as much of five
# others with looser bounds (L11 to L13), and it held in all five. (Of the other two runs no weights
# are left.)

# %% [markdown]
# ## What reachability lacks
#
# Reachability is guessed even if one step is all that is ever asked. A yes or no may tell too
# little: one way to be right is to find the next node and to compare it with the one asked for, and
# half of that way gains nothing. So we gave the training a hint (`--sizes n=1,hints=1`): at the
# first node of a question, the next node is a target as well. The test has no hints. All of these
# runs, with hints or without, had 4,000 steps.

# %% tags=["hide"]
rows, by_hints = [], {}  # {(hints, layers): shares right of five runs}
for (hints, n_layers), runs in results.by(
    results.runs("map-longer", data="reachability", steps=4000), "hints", "n_layers"
).items():
    shares = [run["accuracy"] for run in runs]
    by_hints[hints, n_layers] = shares
    hinted = "with hints" if hints else "without"
    rows.append([n_layers, hinted, len(shares), f"{min(shares):.2f}", f"{max(shares):.2f}"])
widgets.table(["layers", "trained", "runs", "one step, worst", "best"], rows)

# %% [markdown]
# **With hints three layers are right; without them they guess, in five runs of five each.** So with
# three layers and one step, layers were not what was missing. Longer paths with hints we have only
# looked at, in one run each that is not kept, and they were guessed.
#
# Two layers learn the hint, which adds nothing to their loss in the end, and guess the answer.
# **They have the next node too late.** In each of four models that we looked into, the [logit
# lens](inside.md#the-logit-lens) reads it at a question's first node after the second layer and not
# after the first, so no layer is left to compare it. With three layers it is there after the second
# as well, and in the third a head at the second node gives the first one more than half of its
# weight. Forbid this look in the third layer, and the answer is guessed, in four of four; in the
# first or second it is not needed. The formula says two, as one could also look for the pair that
# was asked for. That way was not found. What the table says we had predicted after one earlier run
# each (L5 to L7), and the lens and the look after another one (L14, L15):

# %% tags=["details"]
judge.show("map-longer")

# %% [markdown]
# ## The count, of the first training

# %% tags=["hide"]
rows = []
for name in depth_map.MAPPED:
    cells = [name]
    for kind in ("layers", "loops"):
        right, total = counts[name, kind]
        cells.append(f"{right} of {total}")
    rows.append(cells)
widgets.table(["cells as the formula says", "own layers", "loops of one"], rows)
learned = {cell: share >= depth_map.RIGHT for cell, share in measured.items()}
enough = [cell for cell in learned if cell[3] >= depth_map.formula(cell[0], cell[2])]
found = sum(learned[cell] for cell in enough)
as_written = sum(each[0] for each in counts.values())
nothing = sum(not each for each in learned.values())
rows = [["as the formulas say", f"{as_written} of {len(learned)}"]]
rows.append(["as if nothing were ever learned", f"{nothing} of {len(learned)}"])
rows.append(["learned, of those that should be", f"{found} of {len(enough)}"])
widgets.table(["all seven tasks", "cells"], rows)

# %% [markdown]
# So the count says little by itself. A formula is put to the test where layers should be enough,
# and there about half was learned. Where layers should be too few, most cells agree, but for tasks
# that were never learned that is no merit of the formula. (A cell of one layer stands in both
# columns. Right means 0.9 or more; brackets come close to that with one layer.)
#
# Layers of their own did more than as many loops of one: in S5, parity and sums modulo ten, where a
# difficulty is half learned, more is right with own layers at every depth. They also have two to
# six times the weights, so this tells nothing of depth alone.
#
# Each task also had a prediction for one difficulty in words, before any run. Two of seven held.
# When two seeds had been seen, we said of three more that they would do the same, in seven further
# predictions. Five held. Two **were wrong**, narrowly: loops put eight moves of S5 together in
# eight runs of twelve, not nine; and one model, of four layers, adds eight digits, at 0.90.

# %% tags=["details"]
judge.show("map")

# %% [markdown]
# ## S5: by heart?
#
# S5 has two moves, so eight of them can come in 256 orders only, and training has seen all of them.
# Does one layer know them by heart? With more moves one can tell: a model that knows them by heart
# should be worse where the first n moves of a test never began a sequence of its training. The
# training draws its sequences from its seed, so we can draw them again and look:

# %%
m, t = registry.configs("map", data=("composition",), sizes=("group=S5",), seed=200)
data = registry.data_of(t, m.block_size)
batches = [torch.as_tensor(data.draw(step, 32)[0]) for step in range(1, 1001)]
trained = torch.cat(batches)  # all 32,000 sequences of 32 moves
test = dict(test=True, group="S5")
tokens, targets = TASKS["composition"].draw(2000, md.generator("map"), **test)


def beginnings(sequences, n):
    """The first n moves of each sequence, as one number."""
    return (sequences[:, :n].long() * 2 ** torch.arange(n)).sum(1).tolist()


# %% tags=["hide"]
right = {}  # by layers: whether each place of the test is right
for layers in (1, 2):
    model, _ = checkpoints.load(results.weights("map", f"map-s5-{layers}-layers-200"))
    right[layers] = (predicted(model, tokens) == targets).float()
gaps, rows = [], []
for n in (14, 15, 16):
    seen = set(beginnings(trained, n))
    new = torch.tensor([each not in seen for each in beginnings(tokens, n)])
    row = [n, new.sum().item()]
    for layers in (1, 2):
        shares = [right[layers][which, n - 1].mean().item() for which in (~new, new)]
        gaps.append(shares[0] - shares[1])
        row += [f"{share:.2f}" for share in shares]
    rows.append(row)
widgets.table(["moves", "new ones", "one layer: seen", "new", "two layers: seen", "new"], rows)

# %% [markdown]
# **Whole beginnings of fourteen moves or more are not known by heart**, in the one run of each
# depth that we looked at. Those that training never had are right about as often as those that it
# had. Shorter stretches may be known by heart: eight moves, say, of which all orders were seen.
# Then a layer would put a few such pieces together, while our formula begins with single moves.
#
# ## What this shows
#
# The formulas say what layers are enough *for*; training still has to find the way. In this short
# training, on all difficulties at once, finding it was the bottleneck in five of seven tasks. In
# one of them, pointers, six times the steps were enough to find it with one layer and two; in
# another, reachability, hints were enough for one step, with three layers. A map of
# what training finds in the end would need longer training everywhere, and questions that grow with
# what is learned.

# %%
assert len(learned) == 350 and 0.57 < as_written / len(learned) < 0.63
assert 0.51 < nothing / len(learned) < 0.57 and 0.5 < found / len(enough) < 0.58
few = [learned[cell] for cell in learned if cell not in enough]
assert sum(few) <= 0.15 * len(few)  # most agree
assert sum(counts["Z60", "layers"]) == sum(counts["Z60", "loops"]) == 50
assert min(counts["brackets", kind][0] for kind in ("layers", "loops")) >= 24
assert measured["brackets", "layers", 2, 1] > 0.9 > measured["brackets", "layers", 4, 1]
assert measured["S5", "layers", 8, 1] > 0.9 > 0.8 > measured["S5", "layers", 16, 6]
assert max(measured["S5", kind, 32, 6] for kind in ("layers", "loops")) < 0.1
on_16 = [measured["S5", "layers", 16, depth] for depth in depth_map.DEPTHS]
assert on_16 == sorted(on_16)
assert max(share for cell, share in measured.items() if cell[0] == "reachability") < 0.53
assert max(share for cell, share in longer.items() if cell[0] == "reachability") < 0.53
jumps = {depth: {n: longer["pointers", "layers", n, depth] for n in (1, 2, 3, 5)}
         for depth in (1, 2, 3, 4)}  # fmt: skip
assert jumps[1][1] > 0.95 and max(jumps[1][n] for n in (2, 3, 5)) < 0.2
assert min(jumps[2][n] for n in (1, 2, 3)) > 0.95 and jumps[2][5] < 0.2
assert 0.5 < jumps[3][5] < jumps[4][5] < 0.9
assert [judge.verdict(f"map-longer/L{n}") for n in (1, 2, 3, 4, 8, 9, 10)] == [judge.HELD] * 7
for depth, jumps_learned in ((1, 1), (2, 3)):
    runs = results.runs("map-longer", data="pointers", n_layers=depth, n_loops=1)
    assert len(runs) == (8 if depth == 2 else 5)
    for run in runs:
        shares = {int(n): part["accuracy"] for n, part in run["accuracy_by"]["n"].items()}
        assert all((share > 0.9) == (n <= jumps_learned) for n, share in shares.items())
assert min(by_hints[1, 3]) > 0.95 and all(len(shares) == 5 for shares in by_hints.values())
assert max(sum((by_hints[0, 2], by_hints[0, 3], by_hints[1, 2]), [])) < 0.52
assert [judge.verdict(f"map-longer/L{n}") for n in (5, 6, 7)] == [judge.HELD] * 3
assert len(looked) == 5
for kept, cut in (("ahead", "where it points"), ("back", "what points to it")):
    pairs = zip(jumps_right[cut, kept], jumps_right["nothing cut", kept])
    assert all(without > whole - 0.02 for without, whole in pairs)
assert max(jumps_right["where it points", "back"]) < 0.05
assert max(jumps_right["what points to it", "ahead"]) < 0.34
assert [share > 0.2 for share in jumps_right["what points to it", "ahead"]].count(True) == 2
for cut in ("where it points", "what points to it"):
    assert min(jumps_right[cut, "1 jump"] + jumps_right[cut, "2 jumps"]) > 0.99
assert max(sum((jumps_right["jump 1", kind] for kind in ("1 jump", "back", "ahead")), [])) < 0.22
of_steps = results.runs("map-longer", data="reachability", hints=1)
of_steps = [run["measured"]["inside"]["cut"] for run in of_steps if run["measured"]]
of_three = [cut for cut in of_steps if len(cut) == 3]
assert len(of_steps) == 8 and len(of_three) == 4
assert all(cut["3"] < 0.52 and min(cut["1"], cut["2"]) > 0.99 for cut in of_three)
assert min(inside["looks"]["back"]["1"] for inside in looked) > 0.9
assert min(inside["looks"]["ahead"]["2"] for inside in looked) > 0.55
assert [judge.verdict(f"map-longer/L{n}") for n in range(11, 16)] == [judge.HELD] * 5
for n in (14, 15):
    (of,) = (each["parts"] for each in judge.judged("map-longer") if each["id"].endswith(f"L{n}"))
    assert of[0]["measured"].startswith("4 of 4")
for run in results.runs("map-longer", hints=1, n_layers=2):
    # half of the training's targets are hints: what the answers cost is all that is left of it
    assert abs(2 * run["train_loss"] - run["val_loss"]) < 0.01
jumps = [share for _, n, share in depth_map.stored(data="pointers") if n == 2]
assert len(jumps) == 45 and max(jumps) < 0.9
one_jump = [(name, share) for name, n, share in depth_map.stored(data="pointers") if n == 1]
assert [name for name, share in one_jump if share > 0.9] == ["pointers, 2 layers"] * 2
for name, n in (("S5", 16), ("parity", 16), ("modulo ten", 4)):
    for depth in depth_map.DEPTHS[1:]:
        assert measured[name, "layers", n, depth] > measured[name, "loops", n, depth]
verdicts = judge.verdicts("map")
held = [name for name in verdicts if verdicts[name] == judge.HELD]
assert held == ["M4", "M7", "M8", "M9", "M11", "M12", "M14"]
assert len(results.runs("map")) == 5 * 7 * 9
(adder,) = results.runs("map", data="modulo", n_layers=4, seed=204)
digits = {n: part["accuracy"] for n, part in adder["accuracy_by"]["n"].items()}
assert f"{digits['8']:.2f}" == "0.90" and digits["16"] < 0.3
assert sum(share > 0.3 for _, n, share in depth_map.stored(data="modulo") if n == 8) == 1
assert max(map(abs, gaps)) < 0.05
assert not set(beginnings(tokens, 8)) - set(beginnings(trained, 8))

# %% [markdown]
# ## Exercises
#
# 1. In Z60, after i turns of which k were by seven, the circle stands at i + 6 k, modulo sixty. So
#    one layer needs k, which is i times a mean, and then the answer that belongs to it. How often
#    do the answers come back while k goes from 0 to 32? And in parity? And in sums modulo ten?

# %% [markdown] tags=["hint"]
# When is 6 k the same, modulo sixty, as before? What is the largest sum of 32 digits?

# %% [markdown] tags=["answer"]
# In Z60 they come back after every ten, so three times. In parity after every two: sixteen times. A
# sum of 32 digits is at most 288, and its last digit comes back after every ten: nearly thirty
# times. The feed-forward part has to make so many waves out of one number. At the difficulties that
# were learned there are few: eight for parity of sixteen, three or four for four digits. This fits
# what we saw; it is a guess, made afterwards.

# %% [markdown]
# 2. To run: does it help to ask the short questions alone? `python train.py --preset map --data
#    pointers --n_layers 2 --sizes n=1+2+3`, some twenty seconds. Write down first how many jumps
#    you expect.

# %% [markdown] tags=["hint"]
# A question of n jumps comes as often as any other.

# %% [markdown] tags=["answer"]
# We have not run it. Two fifths of the questions above ask for five or eight jumps, which no model
# learned, so their loss is noise for the others.
