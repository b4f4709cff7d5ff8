# %% [markdown]
# # Loops: what training finds, and how far it carries
#
# **What a model can do and what its training finds are two things. Layers of their own can do
# whatever one looped layer can, and found it later. Looped beyond training, most walks go on only
# on short rings, with recall, after training to six hops or more, unless the map is read once. Sums
# go on if trained to sixteen, and text gains nothing.**
#
# This page has the runs behind [Walking the ring](4_walking.md) and [A thousand
# hops](thousand_hops.md).
#
# ## Five ways of training
#
# In theory three loops are enough for two hops. In our first training half of the runs with three
# loops learned them. So we changed the training four times, each time with ten fresh seeds. In the
# last two a *gate* asks for longer questions as soon as the shorter ones are being learned:

# %% tags=["hide"]
import copy
import dataclasses
import statistics

import matplotlib.pyplot as plt
import torch

import minidepth as md
from minidepth_lab.keep import checkpoints
from minidepth_lab.measure import inspect, judge, results
from minidepth_lab.measure.ring_runs import accuracies, course, onset, staircase, walk
from minidepth_lab.models import variants
from minidepth_lab.show.figures import draw_learned
from minidepth_lab.studies import budget, depth, reread, text_loops
from minidepth_lab.studies.walk import draw_reached_on
from minidepth_lab.studies.walk import reached as reached_by
from minidepth_lab.tasks import TASKS
from minidepth_lab.tasks.ring import LEARNED, Ring
from minidepth_site import exercises, widgets

first = judge.named_runs("ring")
tries = [  # what was changed, the prediction, the runs
    ("beta1 0.9, 1,200 steps", "ring", "H1", first["3 loops"]),
    ("beta1 0.7", "ring-short-memory", "S1", results.runs("ring-short-memory", n_loops=3)),
    ("and 2,000 steps", "ring-ten-seeds", "T1", results.runs("ring-ten-seeds", n_loops=3)),
    ("a gate, 1,400 steps", "ring-gate", "G1", results.runs("ring-gate", n_loops=3, gate=1)),
    (
        "up to four hops",
        "ring-to-ten",
        "Z1",
        results.runs("ring-staircase", d_model=64, n_loops=3),
    ),
]
rows, enough = [], []
for changed, name, which, runs in tries:
    shares = [course(run, 2)[run["step"]] for run in runs]
    enough.append([share >= LEARNED for share in shares])
    (parts,) = (each["parts"] for each in judge.judged(name) if each["id"] == f"{name}/{which}")
    (part,) = (p for p in parts if p["a"] == "3 loops" and "steps_2 >=" in p["holds"])
    good, n = sum(enough[-1]), len(runs)
    least = part["holds"].rpartition(">= ")[2]
    rows.append([changed, f"{least} of {part['counts'][0][1]}", f"{good} of {n}"])
widgets.table(["three loops", "predicted", "learned two hops"], rows)

# %% [markdown]
# Was it the gate? Trained once more without it, with two hops asked from step 420 on, six of the
# ten seeds learned them. So that asking sooner helps is likely, but not shown (p is 0.087). The
# fifth training is that of [the staircase](4_walking.md#one-loop-more-one-hop-more).
#
# ## More depth than needed
#
# A layer that is looped five times can do all that it does in three: it only has to leave alone
# what it holds. We had predicted that it learns as much, and were wrong. In the first training,
# with five loops half of the runs never learned the first hop. (More loops begin with smaller
# weights, too.) With the gate, four loops learn both hops in ten of ten runs, but later than three
# do. **So depth that is not needed costs time.**
#
# ## The same layer, or another?
#
# One layer looped five times is five layers that must all be alike. Layers *of their own* may be
# alike or not. So whatever the looped layer can do, they can do. We gave them the fifth training:

# %%
logs = results.by(results.runs("ring-own-layers", steps=2000), "n_layers")
own = {n: accuracies(group) for n, group in logs.items()}
shared = {n: runs for n, runs in staircase().items() if n > 1}
learned = draw_learned("layers of their own:\ntwo hops, hardly more", own)
plt.gca().set_xlabel("layers")
draw_learned("the same layer:\none hop more each time", shared)
plt.gca().set_xlabel("loops")
plt.show()

# %% [markdown]
# What to see: in the first map most of what is learned ends at two hops, whether there are three
# layers, four or five. In the second, of one layer looped, each loop adds a hop. Each cell says how
# many runs learned that many hops; right of the orange line we know weights that would work.

# %% [markdown]
# **They could.** We take a looped model that has learned four hops, and write its layer out as
# five, each with weights of its own:


# %%
def written_out(model):
    """A model of as many layers as `model` applies its one, each a copy of that."""
    n = model.config.n_loops
    config = dataclasses.replace(model.config, n_layers=n, n_loops=1)
    copy = variants.GPT(config).eval()
    old = model.state_dict().items()
    weights = {name: w for name, w in old if "blocks" not in name}
    for name, w in model.blocks[0].state_dict().items():
        weights |= {f"blocks.{i}.{name}": w for i in range(n)}
    copy.load_state_dict(weights)
    return copy


(run,) = results.runs("ring-staircase", d_model=64, n_loops=5, seed=110)
looped, _ = checkpoints.load(results.weights("ring-staircase", run["id"]))
copied = written_out(looped)
tokens, _ = Ring().draw(200, md.generator("walk"), lengths=(1, 2, 3, 4))
same = torch.equal(copied(tokens).argmax(-1), looped(tokens).argmax(-1))
print(f"five copies answer as the looped layer does, everywhere: {same}")

# %% [markdown]
# So there are such weights; this training did not find them. Another one does. With 6,000 steps
# instead of 2,000, **all five runs of five layers learn four hops**, all later than the looped
# layer did. Perhaps this is why: a looped layer that takes one hop takes another when it is looped
# again, while each of five layers has to learn its own. (We have not tested that.)
#
# In four other studies layers of their own end ahead. They have three to
# eight times the parameters there, and in three of the four most settings were chosen for them.
#
# ## One thing changed
#
# Now from learning to looping on. Each row here changes one thing of the layer of [A thousand
# hops](thousand_hops.md), in runs of its own. Nothing is read once.

# %%
SHOWN = {  # what is changed: the runs, by their names
    "nothing: 8 hops, ring of 16": ("8 hops, ring of 16", "8 hops, pairs kept"),
    "trained to 12 hops": ("hops: 12",),
    "trained to 6 hops": ("hops: 6",),
    "trained to 4 hops": ("hops: 4", "hops: 4, five more"),
    "twice the width": ("width: 128",),
    "with a feed-forward part": ("feed-forward: 256",),
    "two layers in the loop": ("layers: 2",),
    "ring of 24": ("ring: 24",),
    "ring of 32": ("ring: 32",),
    "ring of 64, with hints": ("ring: 64, hints",),
    "without the input": ("start: normalised", "start: normalised, five more"),
    "without the normalisation": ("start: input", "start: input, five more"),
}
named, reached = judge.named_runs("walk"), {}  # {row: [{hops: share right} of each run]}
for text, groups in SHOWN.items():
    for name in groups:
        for run in named[name]:
            shares = {int(n): each["accuracy"] for n, each in run["accuracy_by"]["hops"].items()}
            reached.setdefault(text, []).append(shares)
furthest = {text: [reached_by(run) for run in runs] for text, runs in reached.items()}
order = sorted(
    furthest, key=lambda text: (statistics.median(furthest[text]), statistics.mean(furthest[text]))
)
trained = {"trained to 12 hops": 12, "trained to 6 hops": 6, "trained to 4 hops": 4}
_, axes = plt.subplots(figsize=(6.5, 4.2))
order.reverse()  # the furthest first
reached = {text: reached[text] for text in order}
draw_reached_on(axes, reached, {text: trained.get(text, 8) for text in order})
axes.set_title("most walks on short rings reach a thousand hops, with recall")
plt.show()

# %% [markdown]
# What to see: at the end of the test, a thousand hops, stand most walks with recall on rings of 16
# or 24, trained to six hops or more. A dot is how far one run goes until less than 0.9 of its
# questions are right; a cross is what training asked for.

# %% [markdown]
# - **It takes both, the input and the normalisation.** (Where the map is [read
#   once](thousand_hops.md#read-once-then-walk), the normalisation is enough.)
# - **More in the loop is less stable**: a feed-forward part, or a second layer. (Read once, [ten of
#   ten of each](../reference/no_cheat.md) walk a thousand hops.)
# - **Trained to more hops, more walks go on.** (More hops are also more loops in each step.)
# - **Longer rings fail.** On 64 letters no run learned even one hop without hints, and with them
#   none comes once round.
#
# ## A walk that goes on comes back
#
# On a ring of sixteen letters a question is back where it began after sixteen hops. If its *state*
# is the same as well, nothing new can happen: what was right on this round is right on all rounds.
# So we looped the walks for two rounds, and measured how far every question's state is from where
# it was one round before:

# %%
stored = results.runs("walk")
returns = {  # {run: {rounds: median distance}}, of those it was measured of
    run["id"]: run["measured"]["returned"] for run in stored if "returned" in run["measured"]
}
points = {}  # {what a loop starts from: [(distance after two rounds, share at a thousand hops)]}
for run in stored:
    if run["id"] in returns:
        far = run["accuracy_by"]["hops"]["1000"]["accuracy"]
        points.setdefault(run["loop_start"], []).append((returns[run["id"]]["2"], far))

_, axes = plt.subplots(figsize=(4.8, 3.6))
marks = dict(recall=("o", "C0"), input=("s", "C1"), state=("^", "C3"))
looks_of = dict(recall="C0-", state="C3--")
names = dict(recall="normalised, and the input", input="input, not normalised", state="state alone")
for start, (marker, color) in marks.items():
    axes.plot(*zip(*points[start]), marker, color=color, alpha=0.6, label=names[start])
where = "distance to the state a round before, after two rounds\n(share of its length, median)"
axes.set(xscale="log", xlabel=where)
axes.set(ylabel="right at a thousand hops", ylim=(-0.03, 1.05))
axes.set_title("what comes back stays as right as it was")
axes.legend(title="a loop begins with", fontsize="small")
plt.show()

# %% [markdown]
# What to see: walks whose state comes back, on the left, are right at a thousand hops in two fifths
# of the questions up to all; the others are right in a third of them or fewer. Each dot is a run of
# which the weights were there.

# %% [markdown]
# **Two rounds tell whether a walk goes on for a thousand hops.** (We had not predicted this
# figure.) But to come back is not to be right: a question that took a wrong turn on the first round
# goes round with the wrong letters for ever.
#
# What is lost without recall? A hop takes two looks: the second letter of a pair looks at the
# first, and a question looks at the second letter of its pair. With recall both looks are made anew
# in every loop. With the bare state, what a token holds grows tenfold and more, and what a head
# adds counts for less and less. Then both looks fail.
#
# ## Sums, and an answer that has to stay
#
# Does this work beyond rings of letters?
#
# - **Sums.** Each of four letters on a ring has a digit, and the model is asked for the sum of the
#   digits on the way, modulo ten.
# - **Holding.** The number of hops is in the question again, so that the model has to arrive and
#   then hold its answer.

# %% tags=["hide"]
TASKS_ON = (  # the experiment, what is counted, trained to, looped on to, how, its runs
    ("sums", "additions", 8, 50, "", ("8 additions", "five more")),
    ("sums", "additions", 8, 50, ", read once", ("read once", "read once, five more")),
    ("sums", "additions", 16, 50, "", ("16 additions",)),
    ("hold", "loops", 16, 100, "", ("16 loops",)),
    ("hold", "loops", 16, 100, ", read once", ("read once",)),
)
ends, rows = {}, []  # {(experiment, trained to and how): shares right at the end, by run}
for name, unit, to, far, how, groups in TASKS_ON:
    of_task = judge.named_runs(name)
    right = [run["accuracy_by"][unit] for group in groups for run in of_task[group]]
    ends[name, f"{to}{how}"] = [each[str(far)]["accuracy"] for each in right]
further = judge.named_runs("hold-further")
labels = dict(trained="not trained further", further="further, to 64 loops")
labels |= dict(more="further, as before", noise="further, with noise")
for name, label in labels.items():
    shares = [run["accuracy_by"]["loops"]["100"]["accuracy"] for run in further[name]]
    ends["ten more", label] = shares
SAID = {"sums": "sums, trained to {} additions", "hold": "holding, trained to {} loops"}
for (name, how), shares in ends.items():
    good = sum(share >= 0.95 for share in shares)
    middle = f"{statistics.median(shares):.2f}"
    number, comma, once = how.partition(",")
    said = f"ten more that hold, {how}"
    if name in SAID:
        said = SAID[name].format(number) + comma + once
    far = 50 if name == "sums" else 100
    rows.append([said, far, f"{good} of {len(shares)}", f"{min(shares):.2f}", middle])
widgets.table(["runs", "looped on to", "right at 0.95", "worst", "median"], rows)

# %% [markdown]
# - **Sums go on, but runs differ.** To train further helps most.
# - **An answer is held for as long as training made it, and then lost.** Read once, two of five
#   hold it on, and the median is lower.
# - **Holding can be learned**, with up to 64 loops in training. Most of those hold for a thousand.
#   More of the same training did nearly as much.
# - **Where the map itself says that one has arrived, ten of ten stay**: in [trees whose root is its
#   own parent](../reference/no_cheat.md#knowing-when-to-stop).
#
# ## And on text?
#
# We trained looped models on 840 worked solutions of word problems, read ten times. Each training
# step drew a number of loops from one to eight. At test the same weights are looped up to
# thirty-two times. One layer is looped, or four different layers, from the bare state or with
# recall:

# %%
losses, after_each = {}, {}  # {model: [{loops: loss} by seed]}; those with a loss after each loop
for name, found in judge.named_runs("text-loops").items():
    model, _, way = name.partition(", a loss after ")
    (after_each if way else losses)[model] = text_loops.by_loops(found)
_, axes = plt.subplots(figsize=(4.8, 3.8))
text_loops.draw_by_loops(axes, losses)
axes.set_title("text: best within training, worse beyond")
plt.show()

# %% [markdown]
# What to see: all four are best after four to six loops, within the shaded range, and are worse at
# each further number of loops that we tried. Thin lines are five runs each, thick ones their means.

# %% [markdown]
# **Within training loops help a little, and soon no more. Beyond it they harm.** A loss after each
# loop, as the walks had, did not change that. To keep the text before a token as it is, as *read
# once* keeps the map, spares a small part of the rise with recall, and nothing without.
#
# A walk has to do the same in every loop. Nothing in text asks for the same work again. And these
# models are small.

# %% tags=["hide"]
# the two looks in every loop, and how many times as long what a token holds gets after the ninth
LOOPS, looks = 32, {"recall": [], "state": []}
sequences, targets = TASKS["walk"].draw(50, md.generator("heads"), True, ring=16, hops=8)
links = TASKS["walk"].links(sequences, targets, ring=16, hops=LOOPS - 1)
for run in results.runs("walk", hops=8, ring=16, loss_after="each", d_model=64, loop_keeps=0):
    if run["loop_start"] in looks and results.weights_file("walk", run["id"]).exists():
        model, _ = checkpoints.load(results.weights("walk", run["id"]))
        with torch.no_grad():
            states = model.eval().run_loops(sequences, loops=64)
        long = [x[:, 32:].norm(dim=-1).mean().item() for x in states]
        model.config.n_loops = LOOPS
        maps = inspect.attention_maps(model, sequences)
        best = {"copy": [], "hop": []}
        for loop in range(LOOPS):
            for look, link in (("copy", "copy"), ("hop", f"hop {loop or 1}")):
                best[look].append(max(inspect.link_weights([maps[loop]], links[link])[0]))
        looks[run["loop_start"]].append((long[63] / long[8], best["copy"], best["hop"]))
# four studies: what layers of their own have over the looped one, and how many times its parameters
four, deep, looped_12 = [], "12 layers", "1 layer, 12 times"
hops, in_depth, in_time = results.runs("khop", hops=4), depth.stored(), budget.stored()
texts = reread.models_read(reread.stored(**reread.FIRST), 20)
for its, loops, key in (
    (results.select(hops, n_layers=4, n_loops=1), results.select(hops, n_layers=1, n_loops=4), ""),
    (in_depth[deep], in_depth[looped_12], ""),
    (in_time[deep], judge.named_runs("budget-tuned")[looped_12], ""),
    (texts[deep], texts[looped_12], "val_loss"),
):
    a, b = (statistics.mean(run[key or "accuracy"] for run in of) for of in (its, loops))
    four.append((b - a if key else a - b, its[0]["params_total"] / loops[0]["params_total"]))

# %%
assert [sum(found) for found in enough] == [5, 8, 5, 10, 10] and set(map(len, enough)) == {10}
assert all(all(course(run, 1)[run["step"]] >= LEARNED for run in runs) for *_, runs in tries)
with_gate, by_time = (results.runs("ring-gate", n_loops=3, gate=gate) for gate in (1, 0))
sooner, later = ([course(run, 2)[1400] >= LEARNED for run in of] for of in (with_gate, by_time))
assert sooner == [True] * 10 and sum(later) == 6 and len(later) == 10
assert f"{judge.fisher(sooner, later):.3f}" == "0.087"
assert {run["seed"] for run in with_gate} == {run["seed"] for run in by_time}
by_loops = {n: first[f"{n} loops"] for n in (2, 3, 4, 5)}
assert [sum(onset(run, 1) is None for run in by_loops[n]) for n in by_loops] == [0, 0, 1, 5]
assert judge.verdict("ring/H2") == judge.WRONG
gate = results.by(results.runs("ring-gate", gate=1, n_loops=[3, 4]), "n_loops")
for runs in gate.values():
    assert len(runs) == 10 and min(course(run, k)[1400] for run in runs for k in (1, 2)) >= LEARNED
came = {n: [onset(run, 2) for run in runs] for n, runs in gate.items()}
assert judge.permutation(came[3], came[4]) < 0.001
assert statistics.mean(came[3]) < statistics.mean(came[4])
assert [learned[k, n][0] for n in (3, 4, 5) for k in (2, 3, 4)] == [2, 0, 0, 6, 0, 0, 6, 1, 0]
assert all(learned[1, n][0] == len(own[n]) for n in own) and learned[2, 2][0] == 0
assert same and looped.config.n_loops == 5
fair = judge.named_runs("ring-copies")["own, 6,000 steps"]
assert len(fair) == 5 and all(run[4] >= LEARNED for run in accuracies(fair).values())
looped_at = [onset(run, 4) for run in results.runs("ring-staircase", d_model=64, n_loops=5)]
assert max(step for step in looped_at if step) < min(onset(run, 4) for run in fair)
back, lost = [], []  # pairs (share at a hundred hops, at a thousand)
for run in stored:
    if run["id"] in returns:
        shares = run["accuracy_by"]["hops"]
        pair = tuple(shares[n]["accuracy"] for n in ("100", "1000"))
        (back if returns[run["id"]]["2"] < 0.1 else lost).append(pair)
assert min(gap for gap, _ in four) > 0 and all(2.5 < times < 8.5 for _, times in four)
assert all(abs(grown - 1) < 0.05 for grown, *_ in looks["recall"]) and len(looks["recall"]) >= 4
assert all(min(copy[1:] + hop[1:]) > 0.9 for _, copy, hop in looks["recall"])
assert all(grown > 10 for grown, *_ in looks["state"]) and len(looks["state"]) >= 2
assert all(copy[0] > 0.9 and copy[8] < 0.4 for _, copy, _ in looks["state"])
assert all(min(hop[1:9]) > 0.95 and max(hop[20:]) < 0.2 for *_, hop in looks["state"])
assert len(back) == 53 and len(lost) == 13
assert max(abs(near - far) for near, far in back) < 0.06 and min(far for _, far in back) > 0.41
assert max(far for _, far in lost) < 0.34
(orbit,) = (run for run in stored if run["id"] == "hops-6-201")  # of exercise 3
assert f"{orbit['accuracy_by']['hops']['1000']['accuracy']:.2f}" == "0.81"
assert returns["hops-6-201"]["8"] < 1e-6
of_0_95 = {text: sum(run[1000] >= 0.95 for run in runs) for text, runs in reached.items()}
assert of_0_95["with a feed-forward part"] == 2 and of_0_95["two layers in the loop"] == 1
more = "with a feed-forward part", "two layers in the loop"
assert [len(reached[name]) for name in more] == [5, 5]
assert [of_0_95[f"trained to {n} hops"] for n in (4, 6, 12)] == [0, 3, 5]
assert of_0_95["without the input"] == of_0_95["without the normalisation"] == 0
assert max(run[63] for run in reached["ring of 64, with hints"]) < 0.9
of_64 = named["ring: 64"] + named["ring: 64, five more"]
plain = [run["accuracy_by"]["hops"]["1"]["accuracy"] for run in of_64]
assert len(plain) == 10 and max(plain) < 0.021
for text in ("nothing: 8 hops, ring of 16", "trained to 12 hops", "twice the width", "ring of 24"):
    assert statistics.median(run[1000] for run in reached[text]) >= 0.9
sums = {how: ends["sums", how] for how in ("8", "8, read once", "16")}
assert {how: len(shares) for how, shares in sums.items()} == dict.fromkeys(sums, 10)
assert [sum(x >= 0.95 for x in shares) for shares in sums.values()] == [1, 4, 10]
holding = judge.named_runs("hold")["16 loops"]
assert min(run["accuracy_by"]["loops"]["16"]["accuracy"] for run in holding) > 0.98
assert len(ends["hold", "16"]) == 5 and max(ends["hold", "16"]) < 0.95
assert sum(x >= 0.95 for x in ends["hold", "16, read once"]) == 2
assert [sum(x >= 0.95 for x in ends["ten more", label]) for label in labels.values()] == [
    3,
    8,
    4,
    4,
]
held = [run["measured"]["held"]["1000"] for run in further["further"]]
assert sum(share >= 0.95 for share in held) == 7
of_text = results.runs("text-loops")
assert all({"problems=840", "loops=8"} <= set(run["sizes"]) for run in of_text)
rises = {}
for name, seeds in (losses | {f"{name}, each": of for name, of in after_each.items()}).items():
    assert len(seeds) == 5
    rises[name] = statistics.mean(each[32] - each[8] for each in seeds)
for name, seeds in losses.items():
    for each in seeds:
        assert min(each, key=each.get) in (3, 4, 6)
        assert each[8] < each[12] < each[16] < each[24] < each[32]
    assert f"{name}, each" not in rises or rises[f"{name}, each"] > rises[name] > 0.1
for name, found in judge.named_runs("text-loops").items():
    if ", a loss after " in name:
        for run in found:
            loss, kept = run["log"][-1]["val_loss_by_loops"], run["measured"]["text_kept"]["8"]
            spared = (loss["32"] - kept["32"]) / (loss["32"] - loss["8"])
            assert spared > 0.12 if "recall" in name else abs(spared) < 0.04

# %% tags=["hide", "wrong"]
widgets.wrong("ring", "ring-short-memory", "ring-ten-seeds", "ring-gate", "ring-to-ten")
widgets.wrong("ring-own-layers", "ring-copies", "sums", "hold", "hold-further", "text-loops")

# %% [markdown]
# ## Exercises
#
# 1. (Hard, 15 minutes.) Is there a model of *six* layers that gives the same answers as the five
#    copies, though its layers are not all alike? Make it.

# %% tags=["exercise"]
six = variants.GPT(dataclasses.replace(copied.config, n_layers=6)).eval()
...  # give its layers such weights that six(tokens) is copied(tokens)

# %% [markdown] tags=["hint"]
# `six.blocks[i].load_state_dict(copied.blocks[i].state_dict())` copies a layer, and so for the
# embeddings, the norm and the head. What does a layer add to the residual stream if all weights of
# its output matrix are 0?

# %% tags=["answer"]
six = variants.GPT(dataclasses.replace(copied.config, n_layers=6)).eval()
last = {name: w for name, w in six.state_dict().items() if "blocks.5." in name}
six.load_state_dict(copied.state_dict() | last)
six.blocks[5].attn.out.weight.data.zero_()


# %% tags=["check"]
@exercises.check
def six_layers_as_five():
    assert six.config.n_layers == 6, f"the model has {six.config.n_layers} layers, not six"
    outside = [name for name in copied.state_dict() if "blocks" not in name]
    mine, theirs = six.state_dict(), copied.state_dict()
    other = [name for name in outside if not torch.equal(mine[name], theirs[name])]
    assert not other, f"{other[0]} is not that of the five copies: it belongs to no layer"
    idle = [i for i, layer in enumerate(six.blocks) if not layer.attn.out.weight.any()]
    assert idle, "each of the six layers still adds something: which weights must be 0?"
    right = torch.equal(six(tokens), copied(tokens))
    assert right, f"layer {idle[0] + 1} adds nothing, but the five others are not all copies"


# %% [markdown] tags=["answer"]
# There is: with a sixth layer that adds nothing. What a model can do never shrinks as layers are
# added; what its training finds may.

# %% [markdown]
# 2. (Medium, 10 minutes.) Swap the third and the fourth layer of the five copies, and then those of
#    a model whose layers are its own. Which questions will each of them still answer? Write it down
#    first.

# %% [markdown] tags=["hint"]
# `model.blocks[2], model.blocks[3] = model.blocks[3], model.blocks[2]`, of a `copy.deepcopy()`.
# Which of the two layers does a question about one hop need?

# %% tags=["answer"]
(run,) = results.select(logs[5], seed=120)
separate, _ = checkpoints.load(results.weights("ring-own-layers", run["id"]))
rows = []
for name, model in (("five copies", copied), ("layers of their own", separate)):
    model = copy.deepcopy(model)
    model.blocks[2], model.blocks[3] = model.blocks[3], model.blocks[2]
    swapped = walk(model, tokens)
    rows.append([name, *(f"{swapped[5, k][k]:.2f}" for k in (1, 2, 3, 4))])
widgets.table(["two layers swapped", "1 hop", "2 hops", "3 hops", "4 hops"], rows)

# %% [markdown] tags=["answer"]
# The copies answer all that they did: five copies are the same in any order. The model with layers
# of its own still answers one hop, which is there after the second layer, and little else.

# %% [markdown]
# 3. (Easy, 5 minutes.) A walk on a ring of sixteen is at 0.81 after a hundred hops, and its state
#    comes back to a millionth. Where will it be after a million hops? And one on a ring of
#    twenty-four?

# %% [markdown] tags=["hint"]
# After the first rounds nothing new happens. What was wrong stays wrong.

# %% [markdown] tags=["answer"]
# At 0.81, give or take rounding, as at a thousand hops (the run is `hops-6-201`). On a ring of
# twenty-four it is the same: how long the ring is does not matter once the state comes back.

# %% [markdown]
# 4. (Medium, 10 minutes.) Each loop of the text models had to be as good as it can, since training
#    stopped after any of them. Why does that not teach them to stay where they are after the
#    eighth?

# %% [markdown] tags=["hint"]
# Which loops does training ever see, and what would a ninth one have to be asked?

# %% [markdown] tags=["answer"]
# Nothing asks loops beyond the eighth for anything. To stay can be learned, with training for it:
# see [above](#sums-and-an-answer-that-has-to-stay), where loops up to 64 had targets.
