# %% [markdown]
# # Looped beyond training
#
# **Most walks go on only on short rings, with both halves of recall, and after training to six hops
# or more. Two rounds tell whether a walk goes on: it does if its state comes back. Sums and answers
# that have to be held go on less often, and text gains nothing from loops beyond training.**
#
# In [A thousand hops](thousand_hops.md) a layer was trained to eight hops along a ring, and looped
# on and on. Read that first.
#
# ## One thing changed
#
# Each row changes one thing of the first row, in runs of its own. Everywhere the loops change the
# pairs, too; nothing is read once.

# %% tags=["hide"]
import statistics

import matplotlib.pyplot as plt
import torch

import minidepth as md
from minidepth_lab.keep import checkpoints
from minidepth_lab.measure import inspect, judge, results
from minidepth_lab.studies import text_loops, walk
from minidepth_lab.tasks import TASKS
from minidepth_site import widgets

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
furthest = {text: [walk.reached(run) for run in runs] for text, runs in reached.items()}
order = sorted(
    furthest, key=lambda text: (statistics.median(furthest[text]), statistics.mean(furthest[text]))
)
trained = {"trained to 12 hops": 12, "trained to 6 hops": 6, "trained to 4 hops": 4}
_, axes = plt.subplots(figsize=(6.5, 4.2))
order.reverse()  # the furthest first
reached = {text: reached[text] for text in order}
walk.draw_reached_on(axes, reached, {text: trained.get(text, 8) for text in order})
axes.set_title("most walks on short rings reach a thousand hops, with recall")
plt.show()

# %% [markdown]
# What to see: a dot is how far one run goes until less than 0.9 of its questions are right; a cross
# is what training asked for. Rows are sorted by how far the middle run gets. At the end of the
# test, a thousand hops, stand most walks with recall on rings of 16 or 24, trained to six hops or
# more.

# %% [markdown]
# - **It takes both, the input and the normalisation.** (Where the map is [read
#   once](thousand_hops.md#read-once-then-walk), the normalisation is enough.)
# - **More in the loop is less stable.** With a feed-forward part two of five are right at 0.95
#   after a thousand hops, with two layers one of five.
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
# **Two rounds tell whether a walk goes on for a thousand hops.** Each walk that comes back within a
# tenth is as often right at a thousand hops as at a hundred, give or take 0.06. But to come back is
# not to be right: a question that took a wrong turn on the first round goes round with the wrong
# letters for ever. (We had not predicted this figure.)
#
# A hop takes two looks. The second letter of a pair looks at the first, to know which pair it ends.
# And a question looks at the second letter of the pair that begins with the letter it has come to.
# Here is the weight that the best head gives to each look:

# %%
LOOPS = 32
sequences, targets = TASKS["walk"].draw(50, md.generator("heads"), True, ring=16, hops=8)
links = TASKS["walk"].links(sequences, targets, ring=16, hops=LOOPS - 1)
looks = {"the pair's first letter": [], "the pair asked for": []}
walks = [
    run
    for run in results.runs("walk", hops=8, ring=16, loss_after="each", d_model=64, loop_keeps=0)
    if run["loop_start"] in looks_of and results.weights_file("walk", run["id"]).exists()
]
for run in walks:
    model, _ = checkpoints.load(results.weights("walk", run["id"]))
    model.config.n_loops = LOOPS
    maps = inspect.attention_maps(model, sequences)
    for look, its in looks.items():
        best = []
        for loop in range(LOOPS):
            hop = f"hop {loop}" if loop else "hop 1"  # the first loop has no hop to take yet
            link = links["copy" if look == "the pair's first letter" else hop]
            (heads,) = inspect.link_weights([maps[loop]], link)
            best.append(max(heads))
        its.append((run["loop_start"], best))

_, axes = plt.subplots(1, 2, figsize=(7.4, 3), sharey=True)
for each, (look, its) in zip(axes, looks.items()):
    for start, best in its:
        each.plot(range(1, LOOPS + 1), best, looks_of[start], alpha=0.7)
    each.axvline(9, color="gray", lw=0.8, ls=":")
    each.set(xlabel="loop", ylim=(-0.03, 1.05), title=f"weight on {look}")
axes[0].plot([], [], looks_of["recall"], label="normalised, and the input")
axes[0].plot([], [], looks_of["state"], label="state alone")
axes[0].legend(title="a loop begins with", fontsize="small")
plt.show()

# %% [markdown]
# What to see: with *recall* both looks are made anew in every loop, at the thirty-second as at the
# second. With the bare state the pairs look at their first letter less and less, and a few loops
# after those of training (the dotted line) the questions do not find their pair any more.

# %% tags=["hide"]
grown = {}  # {start: how many times as long after 64 loops as after nine, by run}
for run in walks:
    model, _ = checkpoints.load(results.weights("walk", run["id"]))
    with torch.no_grad():
        states = model.eval().run_loops(sequences, loops=64)
        long = [x[:, 32:].norm(dim=-1).mean().item() for x in states]
    grown.setdefault(run["loop_start"], []).append(long[63] / long[8])
rows = [[start, f"{min(each):.1f} to {max(each):.1f}"] for start, each in grown.items()]
widgets.table(
    ["a loop begins with", "length of the state, after 64 loops: times that after 9"], rows
)

# %% [markdown]
# With the bare state, what a question holds grows tenfold or more, and what a head adds in one loop
# counts for less and less. So layers that do not normalise are lost even with their pairs kept. If
# the length is kept as well, they walk on.
#
# ## Sums, and an answer that has to stay
#
# Does this work beyond rings of letters?
#
# - **Sums.** Each of four letters on a ring has a digit, and the model is asked for the sum of the
#   digits on the way, modulo ten. Training made at most eight additions, or sixteen.
# - **Holding.** The number of hops is in the question again, so that the model has to arrive and
#   then hold its answer. Training made at most sixteen loops.

# %% tags=["hide"]
TASKS_ON = (  # the experiment, what is counted, trained to, looped on to, how, its runs
    ("sums", "additions", 8, 50, "", ("8 additions", "five more")),
    ("sums", "additions", 8, 50, ", read once", ("read once", "read once, five more")),
    ("sums", "additions", 16, 50, "", ("16 additions",)),
    ("hold", "loops", 16, 100, "", ("16 loops",)),
    ("hold", "loops", 16, 100, ", read once", ("read once",)),
)
ends = {}  # {(experiment, trained to and how): {number: the share of each run}}
rows = []
for name, unit, trained, far, how, groups in TASKS_ON:
    of_task = judge.named_runs(name)
    right = [run["accuracy_by"][unit] for group in groups for run in of_task[group]]
    found = {n: sorted(each[str(n)]["accuracy"] for each in right) for n in (trained, 31, far)}
    ends[name, f"{trained}{how}"] = found
    for n, shares in found.items():
        middle = statistics.median(shares)
        cells = (f"{share:.2f}" for share in (shares[0], middle, shares[-1]))
        rows.append([f"{trained} {unit}{how}", n, len(shares), *cells])
widgets.table(["trained to", "looped on to", "runs", "worst", "median", "best"], rows)

# %% [markdown]
# **Sums go on, but runs differ.** Trained to sixteen additions, all ten layers go on, at 0.98 or
# more after fifty. Trained to eight, one of ten does at 0.95, and of those that read once four.
#
# **An answer is held for as long as training made it**, and then lost, in five runs of five. (Read
# once, two of five hold it.) Can holding be learned? Ten more such layers were trained further:

# %% tags=["hide"]
further = judge.named_runs("hold-further")
held, rows_held = {}, []  # {training: [share right after a hundred loops, by seed]}
labels = dict(trained="not further", further="further, to 64 loops", more="as before, for longer")
labels["noise"] = "for longer, with noise"
for name, label in labels.items():
    runs = sorted(further[name], key=lambda run: run["seed"])
    held[name] = [run["accuracy_by"]["loops"]["100"]["accuracy"] for run in runs]
    least, most = min(held[name]), max(held[name])
    middle = statistics.median(held[name])
    row = [label, len(runs), *(f"{share:.2f}" for share in (least, middle, most))]
    row.append(sum(share >= 0.95 for share in held[name]))
    later = [run["measured"]["held"] for run in runs if run["measured"]]  # {loops: share right}
    at_1000 = [shares["1000"] for shares in later]
    row.append(sum(share >= 0.95 for share in at_1000) if at_1000 else "–")
    rows_held.append(row)
head = ["training", "runs", "worst", "median", "best", "at 0.95", "at 0.95, 1,000 loops"]
widgets.table(head, rows_held)

# %% [markdown]
# It can: with up to 64 loops in training eight of ten hold after a hundred, and seven after a
# thousand. More of the same training did nearly as much.
#
# ## And on text?
#
# Does text that reasons gain from more loops in the same way? We trained looped models on worked
# solutions of word problems, read ten times. Each step of the training drew a number of loops from
# one to eight, and had its loss after the last of them. At test the same weights are looped up to
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
# **Within training loops help, a little, and soon no more. Beyond it they harm.** From one loop to
# four the loss falls by 0.06 to 0.15 nats per token; from eight to thirty-two it rises by 0.12 to
# 0.27. A loss after each loop, as the walks had, did not change that. To keep the text before a
# token as it is, as *read once* keeps the map, spares a part of the rise with recall, and nothing
# without.
#
# A walk has to do the same in every loop; nothing in text asks for the same work again. These
# models are small, and read 840 solutions.

# %%
assert set(grown) == {"recall", "state"} and min(grown["state"]) > 10
assert max(abs(times - 1) for times in grown["recall"]) < 0.02
back, lost = [], []  # pairs (share at a hundred hops, at a thousand)
for run in stored:
    if run["id"] in returns:
        shares = run["accuracy_by"]["hops"]
        pair = tuple(shares[n]["accuracy"] for n in ("100", "1000"))
        (back if returns[run["id"]]["2"] < 0.1 else lost).append(pair)
assert len(back) == 53 and len(lost) == 13
assert max(abs(near - far) for near, far in back) < 0.06 and min(far for _, far in back) > 0.41
assert max(far for _, far in lost) < 0.34
(orbit,) = (run for run in stored if run["id"] == "hops-6-201")  # of exercise 1
assert f"{orbit['accuracy_by']['hops']['1000']['accuracy']:.2f}" == "0.81"
assert returns["hops-6-201"]["8"] < 1e-6
for look, its in looks.items():
    assert [start for start, _ in its].count("recall") >= 4 and len(its) >= 6
    for start, best in its:
        if start == "recall":
            assert min(best[1:]) > 0.9
        elif look == "the pair asked for":
            assert min(best[1:9]) > 0.95 and max(best[20:]) < 0.2
        else:
            assert best[0] > 0.9 and best[8] < 0.4 and best[-1] < best[4] < best[1] < 0.6
of_0_95 = {text: sum(run[1000] >= 0.95 for run in runs) for text, runs in reached.items()}
assert of_0_95["with a feed-forward part"] == 2 and of_0_95["two layers in the loop"] == 1
assert [of_0_95[f"trained to {n} hops"] for n in (4, 6, 12)] == [0, 3, 5]
assert of_0_95["without the input"] == of_0_95["without the normalisation"] == 0
assert max(run[63] for run in reached["ring of 64, with hints"]) < 0.9
of_64 = named["ring: 64"] + named["ring: 64, five more"]
plain = [run["accuracy_by"]["hops"]["1"]["accuracy"] for run in of_64]
assert len(plain) == 10 and max(plain) < 0.021
for text in ("nothing: 8 hops, ring of 16", "trained to 12 hops", "twice the width", "ring of 24"):
    assert statistics.median(run[1000] for run in reached[text]) >= 0.9
both_kept = []  # of layers without the norm: right after a thousand hops, pairs and length kept
for start in ("input", "state"):
    for run in named[f"start: {start}, pairs kept"]:
        kept = run["measured"]["kept"]
        assert max(kept[what]["1000"] for what in ("pairs", "length")) < 0.08
        both_kept.append(kept["both"]["1000"])
assert len(both_kept) == 10 and min(both_kept) > 0.69
eight, sixteen, holding = (ends[key] for key in (("sums", "8"), ("sums", "16"), ("hold", "16")))
assert len(sixteen[50]) == 10 and min(sixteen[50]) > 0.98
once = ends["sums", "8, read once"][50]
assert len(once) == len(eight[50]) == 10 and sum(right >= 0.95 for right in eight[50]) == 1
assert sum(right >= 0.95 for right in once) == 4
assert min(holding[16]) > 0.98 and len(holding[100]) == 5 and max(holding[100]) < 0.95
assert sum(right > 0.95 for right in ends["hold", "16, read once"][100]) == 2
assert [sum(x >= 0.95 for x in held[name]) for name in labels] == [3, 8, 4, 4]
assert {row[0]: row[-1] for row in rows_held}[labels["further"]] == 7
of_text = results.runs("text-loops")
assert all({"problems=840", "loops=8"} <= set(run["sizes"]) for run in of_text)
for seeds in losses.values():
    assert len(seeds) == 5
    for each in seeds:
        assert min(each, key=each.get) in (3, 4, 6)
        assert each[8] < each[12] < each[16] < each[24] < each[32]


def mean(name, loops):
    """Over the runs of a row."""
    return sum(each[loops] for each in losses[name]) / len(losses[name])


rises = {name: mean(name, 32) - mean(name, 8) for name in losses}
risen = {}
for name, seeds in after_each.items():
    means = {n: sum(each[n] for each in seeds) / len(seeds) for n in (8, 32)}
    risen[name] = means[32] - means[8]
    assert len(seeds) == 5 and risen[name] > rises[name] and means[8] < mean(name, 8)
falls = [mean(name, 1) - mean(name, 4) for name in losses]
assert (f"{min(falls):.2f}", f"{max(falls):.2f}") == ("0.06", "0.15")
assert (f"{min(rises.values()):.2f}", f"{max(rises.values()):.2f}") == ("0.12", "0.27")
for name, found in judge.named_runs("text-loops").items():
    if ", a loss after " in name:
        for run in found:
            loss, kept = run["log"][-1]["val_loss_by_loops"], run["measured"]["text_kept"]["8"]
            spared = (loss["32"] - kept["32"]) / (loss["32"] - loss["8"])
            assert spared > 0.12 if "recall" in name else abs(spared) < 0.04

# %% tags=["hide", "wrong"]
widgets.wrong("sums", "hold", "hold-further", "text-loops")

# %% [markdown]
# ## Exercises
#
# 1. (Easy, 5 minutes.) A walk on a ring of sixteen is at 0.81 after a hundred hops, and its state
#    comes back to a millionth. Where will it be after a million hops? And one on a ring of
#    twenty-four?

# %% [markdown] tags=["hint"]
# After the first rounds nothing new happens. What was wrong stays wrong.

# %% [markdown] tags=["answer"]
# At 0.81, give or take rounding, as at a thousand hops (the run is `hops-6-201`). On a ring of
# twenty-four it is the same: how long the ring is does not matter once the state comes back.

# %% [markdown]
# 2. (Medium, 10 minutes.) Each loop of the text models had to be as good as it can, since training
#    stopped after any of them. Why does that not teach them to stay where they are after the
#    eighth?

# %% [markdown] tags=["hint"]
# Which loops does training ever see, and what would a ninth one have to be asked?

# %% [markdown] tags=["answer"]
# Nothing asks loops beyond the eighth for anything. To stay can be learned, with training for it:
# see [above](#sums-and-an-answer-that-has-to-stay), where loops up to 64 had targets.
