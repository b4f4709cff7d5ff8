# %% [markdown]
# # A thousand hops
#
# **On a ring of sixteen letters one attention layer, trained to follow at most eight hops, goes on
# when it is looped on: thirteen of fifteen runs are right at 0.95 or better at every length tested,
# from once round to a thousand hops, if each loop begins with the state that the last one left,
# normalised, and with the input added again. (With a feed-forward part it is two of five, with two
# layers one of five.) Where such a layer is lost on this ring, it mostly loses the pairs of letters
# that say what the ring is. If it reads these once and then leaves them alone, in training too, ten
# of ten go on, and on a ring of 64 ten of ten as well, with a hint for the first hop.** You will
# learn how to take a walk apart, and what makes it go on.
#
# In [Walking the ring](4_walking.md) each loop of a layer was one hop, and a loop more than in
# training gained none. There is a way to go on: two heads with weights [written by
# hand](../reference/laboratory.md#minidepth_lab.measure.walk_by_hand) walk as far as one likes.
# What a loop writes is loud beside what was there before, and each loop begins with its state
# normalised, that is, brought to one size, and **the input added again** (`--loop_start
# recall`). Here we train layers that begin their loops in this way.

# %% tags=["hide"]
import statistics

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F

import minidepth as md
from minidepth_lab.keep import checkpoints
from minidepth_lab.measure import judge, results, walk_by_hand
from minidepth_lab.show import figures
from minidepth_lab.studies import walk
from minidepth_lab.tasks import TASKS, sums
from minidepth_lab.tasks.walk import by_hops, following
from minidepth_site import exercises, widgets

# %% [markdown]
# ## Take it apart
#
# Now there is no number in the question: the layer walks as far as it is looped. The ring has
# sixteen letters. Training asks for one hop after the second loop, two after the third, and so on
# up to eight. Here is such a model, asked from two letters at once. What do you expect if both
# questions skip a loop? And if they swap their states half way?

# %% tags=["hide"]
widgets.show("apart", widgets.further(), "This part needs JavaScript. A test of it is below.")

# %% [markdown]
# **The state of a question is the place that it has come to.** A skipped loop costs one hop,
# whichever loop it is, from the second on. (In the first a question does not walk yet.) Swapped
# states walk on from each other's place. We had not predicted this; we saw it, and then tested it
# in one model, on all letters of twenty rings:

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
rows = [[n, f"{skipping[n]:.2f}", f"{swapping[n]:.2f}"] for n in skipping]
widgets.table(["loop", "skipped: one hop less", "swapped: the other's way"], rows)

# %% [markdown]
# ## More loops than training ever made
#
# If every loop does the same from wherever a question stands, nothing should end with the nine
# loops of training. In ten models each loop begins with the state that the last one left,
# normalised, and the input added again (*recall*). In ten more it begins with nothing but that
# state, as it is.

# %%
kinds = {}  # {row: its runs}
kept = {}  # those whose last test has both, with the pairs kept and without
throughout = {}  # those whose loops keep the pairs in training, too
for name, runs in judge.named_runs("walk").items():
    if "kept throughout" in name:
        throughout[name] = runs
        continue
    if any("pairs_kept" in run["accuracy_by"]["hops"]["1"] for run in runs):
        kept[name] = runs
    if runs and name.endswith(", five more"):  # they stand with the first five
        kinds[name.removesuffix(", five more")] += runs
    elif runs and name not in kept:
        kinds[name] = runs
by_start = dict(recall=kinds["8 hops, ring of 16"], state=kinds["start: state"])
walked_on = {}  # {start: [{hops: share right} of each seed]}
for start, runs in by_start.items():
    shares = [run["accuracy_by"]["hops"].items() for run in runs]
    walked_on[start] = [{int(n): part["accuracy"] for n, part in each} for each in shares]

figure, axes = plt.subplots(figsize=(4.8, 3.4))
for start, color, text, up in (
    ("recall", "C0", "normalised,\nand the input", -9),
    ("state", "C3", "state\nalone", 9),
):
    for run in walked_on[start]:
        axes.plot(run.keys(), run.values(), color=color, alpha=0.5)
    end = statistics.median(run[1000] for run in walked_on[start])
    figures.name_end(axes, 1000, end, text, color, up)
axes.axvline(8, color="C1", linestyle="--")
axes.annotate("trained\nup to here", (7.4, 0.2), color="C1", ha="right")
axes.set(xscale="log", xlabel="hops", ylabel="share of questions right")
axes.set(xlim=(0.9, 30_000), xticks=(1, 10, 100, 1000), ylim=(-0.03, 1.05))
axes.xaxis.set_major_formatter("{x:g}")
axes.set_title("a walk goes on if each loop begins\nwith its state normalised, and the input")
plt.show()

# %% [markdown]
# What to see: with recall, most runs are nearly as often right at a thousand hops as at eight; with
# the state alone all are lost by the thirty-first hop. (*Lost* means here that fewer than 0.3 of
# the questions are right.) Each line is one run. Both were
# [predicted](../reference/predictions.md#walk) and held: at least 0.95 of the questions right at a
# thousand hops in eight runs of ten, and below 0.3 at thirty-one in five of five, and again in five
# of five more. Five later runs with recall are right at 0.99 or more. We made these
# [for another question](#what-gets-lost).
#
# ### What a cheat would get
#
# A ring of sixteen is back after sixteen hops: 31 hops are fifteen, 100 are four, and **a thousand
# are eight**, which training asks for. A model that stops at its eighth hop would be right at a
# thousand, and wrong at 15, 31 and 100. All runs on such a ring were tested at these four lengths.
# Where this page says how many are at 0.95 at a thousand, as many are at each of the four. Of four
# runs with recall the weights are stored; here they are tested again, at each hop from 985 to
# 1,000, which is a whole round:

# %% tags=["hide"]
WINDOW, TESTED = range(985, 1001), (15, 31, 100, 1000)
on_rings, _ = TASKS["walk"].draw(200, md.generator("window"), test=True, **sizes)
window, first_alone, rows = {}, {}, []  # {seed: {hops: share right}}; of the first question alone
for run in by_start["recall"]:
    if results.weights_file("walk", run["id"]).exists():
        model, _ = checkpoints.load(results.weights("walk", run["id"]))
        window[run["seed"]] = by_hops(model, on_rings, 16, (*TESTED, *WINDOW))
        first_alone[run["seed"]] = by_hops(model, on_rings[:, :33], 16, TESTED[:3])
cheats = {
    "the question's own letter": walked(0),
    "stop after eight hops": walked(8),
    "one letter, always": walked(0).flatten().mode().values,
}
found = {f"trained, seed {seed}": shares for seed, shares in window.items()}
for name, given in cheats.items():
    found[name] = {n: share(given, walked(n)) for n in (*TESTED, *WINDOW)}
for name, shares in found.items():
    least = min(shares[n] for n in WINDOW)
    rows.append([name, *(f"{shares[n]:.2f}" for n in TESTED), f"{least:.2f}"])
widgets.table(["right after hops", *map(str, TESTED), "985 to 1,000, the least"], rows)

# %% [markdown]
# **The least of the whole round is as good as a thousand hops, give or take 0.02; no cheat is above
# 0.05 there.** These are 200 rings. A walk needs no other question, either: the first question of a
# sequence, which sees the pairs alone, is as often right as all, within 0.01. Of the other runs no
# weights are stored, so they are not tested over a whole round.
#
# ### One thing changed
#
# Still, a thousand hops are not a thousand new situations: whoever is right once round, and comes
# back to the same state, is right for ever. A longer ring is the harder test. (The ring has the
# same size in training and in the test, in all that follows.) Here each row changes one thing of
# the first row, in runs of its own:

# %%
shares = {}  # {row: [{hops: share right} of each seed]}
for name, runs in kinds.items():
    by_hop = [run["accuracy_by"]["hops"].items() for run in runs]
    shares[name] = [{int(n): each["accuracy"] for n, each in run} for run in by_hop]
_, axes = plt.subplots(figsize=(6.5, 4.4))
walk.draw_reached_on(axes, shares, {name: walk.trained_to(name) for name in shares})
axes.set_title("rings of 16 and 24, recall, six hops or more: most reach a thousand")
plt.show()

# %% [markdown]
# What to see: with recall, on rings of 16 or 24 and trained to six hops or more, most walks reach
# the thousand hops at which the test ends (on 24 letters they are sixteen, on 32 eight), far beyond
# the crosses, which are what training asked for. On longer rings few do, and none does with the
# state alone, with one half of recall, or trained to four hops. On rings of 48 and 64 no run
# learned even one hop without hints. A dot is how far one run goes until less than 0.9 of its
# questions are right.
#
# What the rows change:
#
# - *hops*: how many hops training asks for at most;
# - *start: state*: a loop begins with the state alone;
# - *start: input*: it begins with the state as it is, and the input;
# - *start: normalised*: it begins with the state normalised, without the input;
# - *loss: last*: training looks only at what the last loop says;
# - *ring*: the ring has so many letters. Those of 32, 48 and 64 had 5,000, 8,000 and
#   10,000 steps, where the others had 2,500;
# - *hints*: while one hop alone is asked, the first loop has a target as well: the second letter of
#   each pair has to say the first one. These runs had 5,000 steps;
# - *width*: the vectors have so many numbers, where those of the others have 64;
# - *feed-forward*: the layer has a feed-forward part of so many units, where the others have none;
# - *layers*: a loop applies two layers, each with weights of its own.

# %% tags=["details"]
rows = []
for name, runs in kinds.items():
    once_round = runs[0]["sizes_by_name"]["ring"] - 1
    once, far = ([each[n] for each in shares[name]] for n in (once_round, 1000))
    middle = (f"{statistics.median(each):.2f}" for each in (once, far))
    rows.append([name, len(runs), *middle, f"{min(far):.2f}"])
head = ["changed", "runs", "once round, median", "1,000 hops, median", "worst"]
widgets.table(head, rows)

# %% [markdown]
# - **It takes both, the input and the normalisation.** With the input alone ten of ten runs are
#   lost by the thirty-first hop, and with the normalisation alone ten of ten; three and four of
#   them are below 0.9 before they are once round. That the input is needed we had predicted; that
#   with it alone three of five would have 0.3 of the questions right at 31 hops was wrong.
# - **On a ring of 24 nine of ten walks go on**, once round and for a thousand hops; the tenth is
#   lost before it has been round once.
# - **On a ring of 32 six of ten come round**, at 0.9 or more, and one of them stays at 1.00. Three
#   go wrong on the way, to 0.38 to 0.73 once round, and one has learned three hops badly and no
#   more.
# - **On rings of 48 and 64 this training does not find even the first hop**, in 8,000 and 10,000
#   steps. On 64 letters one hop is right in 0.014 to 0.020 of the questions of all ten runs, and
#   guessing gives 1/64, or 0.016; on 48 it is so in four of five runs, and the fifth is right in
#   0.15. The longer the ring, the later the first hop: on sixteen letters it is learned by step 300
#   in all ten runs of the first row, on twenty-four by steps 400 to 1,500, on 32 by steps 700 to
#   4,100. (Of these runs those on 64 letters, those with hints, and five each on 32 letters and of
#   four hops were made on a lent H100, the others on a CPU.) Our goal was once round a ring of 64
#   in five of ten ([reached later](#read-once-then-walk), with hints). What else we tried for it,
#   one seed each, in runs that are not stored: rotary positions, alone and with twice the width,
#   showed nothing in 1,600 and 700 steps; training that begins on rings of sixteen and lets them
#   grow lost what it had learned with each growth, and came to 18 to 32 letters.
# - **With hints all know the eight hops**, five on 48 letters and ten on 64, and one hop by the
#   first evaluation, at step 500. The first hop takes two looks, one back in the pair and one for
#   the question; without hints nothing rewards the first of them by itself. But knowing eight hops
#   is not walking on: on 48 letters three of five come once round at 0.9, on 64 none of ten does,
#   where we had predicted five. Nine of these are lost by the thirty-first hop. The reason
#   is in [the next section](#what-gets-lost).
# - **With two layers in the loop the walk is less stable.** All five come round once, and one is
#   right at 0.95 after a thousand hops; the others are at 0.42 to 0.92. The hops of training they
#   all know: what they lose, they lose beyond it.
# - **With a feed-forward part it is so, too.** All five come round once, two are right at 0.95
#   after a thousand hops, and the others at 0.86 to 0.89. **Twice the width** does no harm: all
#   five are right at 0.99 and more.
# - **Trained to more hops, more walks go on.** At a thousand hops, none of ten layers trained to
#   four hops is still right at 0.95, three of five trained to six are, and all five trained to
#   twelve. (More hops are also more loops in each step; we have not trained the others for longer.)
# - **A loss after the last loop alone does as well** as one after each loop, and half the width is
#   enough to come round.
#
# Eight of our predictions about these runs **were wrong**. Twice walks went further than we
# expected: of training to six hops we had said two of five at most, and width 32 came round in all
# runs. Six times they went less far: with the input alone, and with the normalisation alone, we
# had expected more right at thirty-one; with two layers, or with a feed-forward part, three of
# five at 0.95 after a thousand; and with hints on a ring of 64, five of ten at 0.9 once round and
# three of ten after a thousand.
#
# A walk that goes on comes back to the state it had a round before: [Looped beyond
# training](beyond_training.md) shows it, and what more loops do to text.
#
# ## What gets lost
#
# Where does a lost walk go wrong? A question walks by looking at pairs. But the loops are
# applied to every token: they change the pairs as well, and nothing in training asks what becomes
# of these after the last loop. So we let the pairs stay as they are after the loops of training,
# and looped the questions alone. Nothing is trained for this; weights and questions are the same.

# %%
panels = {  # row: (its title, the hops of its training)
    "hops: 4, five more": ("trained to four hops,\nring of 16", 4),
    "start: normalised, pairs kept": ("without the input,\nring of 16", 8),
    "ring: 64, hints, 4,000 steps": ("trained to eight hops\nwith hints, ring of 64", 8),
}
_, axes = plt.subplots(1, 3, figsize=(7.6, 3), sharey=True)
for each, (name, (title, trained)) in zip(axes, panels.items()):
    for run in kept[name]:
        hops = [int(n) for n in run["accuracy_by"]["hops"]]
        for what, color in (("accuracy", "C3"), ("pairs_kept", "C0")):
            right = [part[what] for part in run["accuracy_by"]["hops"].values()]
            each.plot(hops, right, color=color, alpha=0.5)
    each.axvline(trained, color="C1", linestyle="--")
    each.set(xscale="log", xlabel="hops", title=title, ylim=(-0.03, 1.05))
    each.xaxis.set_major_formatter("{x:g}")
axes[0].set_ylabel("share of questions right")
axes[0].annotate("pairs kept\nat the test", (1000, 0.82), color="C0", ha="right")
axes[0].annotate("pairs left\nto change", (1000, 0.55), color="C3", ha="right")
plt.show()

# %% [markdown]
# What to see: the same layers, once as they are and once with their pairs kept. Each line is one of
# five runs, on the right of ten; the dashed lines are the hops of training. Layers trained to four
# hops, and layers that never read their input again, are right at all lengths on sixteen letters.

# %% tags=["hide"]
rows = []
for name, runs in kept.items():
    ring = runs[0]["sizes_by_name"]["ring"]
    for n in (ring - 1, 1000):
        cells = []
        for what in ("accuracy", "pairs_kept"):
            right = sorted(run["accuracy_by"]["hops"][str(n)][what] for run in runs)
            cells.append(f"{right[0]:.2f} to {right[-1]:.2f}")
        named = name.removesuffix(", pairs kept").removesuffix(", five more")
        rows.append([named, len(runs), n, *cells])
head = ["trained with", "runs", "hops", "right, worst to best", "with the pairs kept at the test"]
widgets.table(head, rows)

# %% [markdown]
# - **In these layers it is the pairs that get lost.** At a thousand hops five layers trained to
#   four are right at 0.01 to 0.53, and with the pairs kept at 0.98 or more; five without the input
#   at 0.03, and at 0.99 or more. At 15, 31 and 100 hops it is so, too. So on a ring of sixteen,
#   trained to eight hops, the input is needed only to keep the pairs.
# - **On a ring of 64 that is half of it.** Five of ten come once round at 0.9, trained to eight
#   hops, and the others are right at 0.66 or more. Our goal, five of ten as they are, is not
#   reached: as they are, none comes round. We had predicted eight of ten with the pairs kept, and a
#   thousand hops at 0.9 in five of ten, where it is three: both **were wrong**. Most of what they
#   lose they lose in the first hundred hops; from there to a thousand it is less than 0.05.
# - **So it is on other rings.** These are runs of the [section
#   before](#more-loops-than-training-ever-made), measured again. With their pairs kept, the five on
#   32 letters of which we still had the weights come once round at 0.96 or more, five of five on 48
#   at 0.98 or more, and of the ten on 64, which had a thousand steps more, seven at 0.9; the other
#   three are at 0.30, 0.80 and just below 0.9. Of two runs on 128 letters, with hints, one goes
#   from 0.90 once round to 0.99, and the other, twice as wide, from 0.00 to 0.93.
# - **Without the norm this is not enough.** Layers that do not normalise are lost with the pairs
#   kept, too: at the thirty-first hop ten of ten are right at 0.27 or less. We had predicted a
#   little less than that, and it held: with the input alone four of five below 0.5 there, and with
#   the state alone all five below 0.1 at a hundred hops.
#
# What does the norm add? Without it, what a question holds [grows from loop to
# loop](beyond_training.md#what-the-heads-do-in-each-loop). So we kept its length as well: after
# each loop beyond those of training its vector is brought back to the length that it had after
# them. Here are the layers without the norm, after a thousand hops, where all with both kept are
# least often right of the four lengths, but for 0.01:

# %% tags=["hide"]
rows, without_norm = [], {}  # {(start, judged): {what is kept: shares, the least first}}
for start in ("input", "state"):
    for text, groups in (
        ("judged", (f"start: {start}, pairs kept",)),
        ("seen before", (f"start: {start}", f"start: {start}, five more")),
    ):
        runs = sum((judge.named_runs("walk")[name] for name in groups), [])
        runs = [run for run in runs if "kept" in run["measured"]]
        found = {"nothing": [run["accuracy_by"]["hops"]["1000"]["accuracy"] for run in runs]}
        for what in ("pairs", "length", "both"):
            found[what] = [run["measured"]["kept"][what]["1000"] for run in runs]
        without_norm[start, text] = {what: sorted(shares) for what, shares in found.items()}
        cells = (f"{min(shares):.2f} to {max(shares):.2f}" for shares in found.values())
        rows.append([f"start: {start}, {text}", len(runs), *cells])
widgets.table(["1,000 hops, kept:", "runs", "nothing", "the pairs", "the length", "both"], rows)

# %% [markdown]
# **With both kept, layers that were trained without the norm walk on, too.** Those of which we had
# predicted it are right at 0.69 or more after a thousand hops, all ten, and nine of them at 0.92;
# of the twelve others all are at 0.60 or more. Neither of the two is enough alone. So the walk
# itself mostly goes on. What fails beyond training is around it: the pairs change, and without the
# norm the question grows.
#
# The runs of both tables are new, but for those called *seen before*, of which we had looked at
# some; which, the [predictions](../reference/predictions.md#walk) say. Those with the input alone
# and with the state alone were made on a CPU, all others on a lent H100.
#
# Do looped models of text lose what they have read in this way? In five of one layer with recall
# keeping it spares an eighth to a good third of what their loss rises, in five with the state alone
# nothing ([more loops on text](beyond_training.md#and-on-text)).
#
# ## Read once, then walk
#
# If it is the pairs that get lost, training can keep them, too. With `--loop_keeps 128` the first
# 128 tokens of a sequence, which are the pairs of a ring of 64, stay as the first loop leaves them,
# in training and at the test. So the layer reads once, and then the questions walk. (That saves no
# work here: the layer is applied to these tokens in each loop, and what it adds is dropped.) Here
# are ten runs on each ring, trained to eight hops with hints for 3,000 steps, beside layers whose
# pairs change. Those had more steps: 5,000 and 4,000 on 64 letters, and 4,000 on 128, where they
# are two runs, one of them twice as wide. All were made on a lent H100.

# %%
_, axes = plt.subplots(1, 2, figsize=(7.2, 3.2), sharey=True)
changing = {64: kinds["ring: 64, hints"] + kept["ring: 64, hints, 4,000 steps"]}
changing[128] = results.runs("walk", ring=128, seed=50)
keeping = {ring: throughout[f"ring: {ring}, hints, kept throughout"] for ring in changing}
for each, ring in zip(axes, changing):
    for runs, color in ((changing[ring], "C3"), (keeping[ring], "C0")):
        for run in runs:
            hops = [int(n) for n in run["accuracy_by"]["hops"]]
            right = [part["accuracy"] for part in run["accuracy_by"]["hops"].values()]
            each.plot(hops, right, color=color, alpha=0.5)
    each.axvline(8, color="C1", linestyle="--")
    each.axvline(ring - 1, color="0.6", linestyle=":")
    each.annotate("once\nround", (ring * 0.9, 0.3), ha="right")
    each.set(xscale="log", xlabel="hops", title=f"ring of {ring}", ylim=(-0.03, 1.05))
    each.xaxis.set_major_formatter("{x:g}")
axes[0].set_ylabel("share of questions right")
axes[0].annotate("pairs kept from\nthe first loop on", (1000, 0.82), color="C0", ha="right")
axes[0].annotate("pairs that\nchange", (1000, 0.1), color="C3", ha="right")
plt.show()

# %% [markdown]
# What to see: with the pairs kept in training, ten of ten layers on the ring of 64 are right at a
# thousand hops, and most on the ring of 128. Where the pairs change, all but two are lost before
# they are once round. The dashed lines are the hops of training.
#
# - **On a ring of 64 ten of ten come once round, right at 1.00**, and at a thousand hops, too. We
#   had predicted 0.95 in nine, after seeing two other runs on 64 and three on 128, all right at
#   1.00. So the goal of the last section is reached, with hints, and for the test only the number
#   of loops is changed.
# - **On a ring of 128 seven of ten come once round, right at 0.99 or better**: 127 hops, each to a
#   letter that the walk had not met, after training on eight. A thousand hops are right as often.
#   The other three had learned their first hop only when most of their 3,000 steps were over, or
#   not at all: one is at 0.90 once round, one knows one hop, and one none. We had predicted 0.95 in
#   eight of ten, once round and at a thousand hops: both **were wrong**.
# - **On a ring of 256 one run is right at 1.00 at 255 hops**, in a test of eight rings. It is four
#   times as wide, with half the learning rate. Nothing had been predicted of it. All other tries on
#   256 letters or more, 128 wide, with learned positions and with rotary ones, learned no hop; one
#   of them, with as many steps, is stored, and the others had half as many or fewer.

# %% [markdown]
# What is needed for that? On a ring of sixteen, where no hint is needed, each row of this table
# changes one thing. These layers were trained on a CPU, for the same 2,500 steps as those of [the
# first figure](#more-loops-than-training-ever-made). On the right stand layers whose pairs change;
# five each of the first, second and fourth row are from a lent H100. The shares are those of the
# worst run and the best:

# %% tags=["hide"]
plain = {  # row: those whose pairs change
    "kept throughout": ("8 hops, ring of 16", "8 hops, pairs kept"),
    "hops: 4, kept throughout": ("hops: 4", "hops: 4, five more"),
    "hops: 2, kept throughout": (),
}
for start in ("normalised", "state", "input"):
    its = (f"start: {start}{more}" for more in ("", ", five more", ", pairs kept"))
    plain[f"start: {start}, kept throughout"] = tuple(its)
table, rows = {}, []  # {row: ([shares right at a thousand hops, read once], [pairs that change])}
for name, groups in plain.items():
    its_runs = throughout[name], sum((judge.named_runs("walk")[group] for group in groups), [])
    row, both = [name.removesuffix(", kept throughout").replace("kept throughout", "–")], []
    for runs in its_runs:
        right = sorted(run["accuracy_by"]["hops"]["1000"]["accuracy"] for run in runs)
        row += [len(runs), f"{right[0]:.2f} to {right[-1]:.2f}" if runs else "–"]
        both.append(right)
    table[name] = tuple(both)
    rows.append(row)
head = ["changed", "runs", "read once: right at 1,000 hops", "runs", "pairs change: right at 1,000"]
widgets.table(head, rows)

# %% [markdown]
# - **Reading once, ten of ten layers on a ring of sixteen are right at 1.00 at a thousand hops**,
#   and at 15, 31 and 100, trained to eight, and five of five trained to four. We had predicted 0.99
#   in nine, and 0.95 in four.
# - **Two hops teach it in part.** Trained to two hops, five layers are right at 0.22 to 0.89 at a
#   thousand, and none at 0.9 at fifteen. We had predicted less: below 0.5 at fifteen hops in four
#   of five. That **was wrong**: one is.
# - **The input is not needed then, but the norm is.** With the norm and without the input five of
#   five are right at 1.00; we had predicted 0.95 in four. Without the norm ten of ten are lost by a
#   hundred hops. (Two of these, with the state alone, had not learned their eight hops fully.) We
#   had predicted four of five of each kind below 0.5 at thirty-one hops. With the state alone it is
#   four. With the input alone it is two: that **was wrong**.

# %% tags=["details"]
judge.show("walk")

# %% [markdown]
# ## Sums, and an answer that has to stay
#
# Does this work beyond rings of letters? We trained one layer on each of two more tasks, and looped
# it on:
#
# - **Sums.** The ring has four letters. Each letter has a digit, and the model is asked for the sum
#   of the digits on the way, modulo ten. What it is shown are triples: a letter, its digit and the
#   letter that follows. Training made at most eight additions, or sixteen.
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
    named = judge.named_runs(name)
    right = [run["accuracy_by"][unit] for group in groups for run in named[group]]
    found = {n: sorted(each[str(n)]["accuracy"] for each in right) for n in (trained, 31, far)}
    ends[name, f"{trained}{how}"] = found
    for n, shares in found.items():
        middle = statistics.median(shares)
        cells = (f"{share:.2f}" for share in (shares[0], middle, shares[-1]))
        rows.append([f"{trained} {unit}{how}", n, len(shares), *cells])
widgets.table(["trained to", "looped on to", "runs", "worst", "median", "best"], rows)

# %% [markdown]
# The runs were tested at 200 additions as well. **That is no test, and not in the table**: two
# hundred are fifty times round the ring, so that the right sum is always 0. What cheats would get:

# %% tags=["hide"]
triples, _ = TASKS["sums"].draw(1000, md.generator("cheats"), test=True)
after, digits = sums.tables(triples, 4)
letter = triples[:, 12:]
totals = [torch.zeros_like(letter)]  # the right sum after so many additions
for _ in range(200):
    totals.append((totals[-1] + digits.gather(1, letter)) % 10)
    letter = after.gather(1, letter)
cheat_at = {}  # {additions: (one digit, stop after eight, stop after sixteen)}
for n in (31, 50, 100, 200):
    given = totals[n].flatten().mode().values, totals[8], totals[16]
    cheat_at[n] = [share(each, totals[n]) for each in given]
head = ["additions", "one digit, always", "stop after 8", "stop after 16"]
widgets.table(head, [[n, *(f"{x:.2f}" for x in each)] for n, each in cheat_at.items()])

# %% [markdown]
# **Sums go on beyond training**, but runs differ in how many they still get right. Trained to eight
# additions, they get from a fifth to nearly all right after fifty, in the nine that learned their
# eight. One did not learn them.
#
# **Trained to sixteen additions, all ten layers go on**, right at 0.99 or more after 31 additions
# and at 0.98 or more after fifty. They had 3,500 steps in place of 2,500, too. So more loops in
# training, or the longer training that came with them, make what lies beyond it hold. Letter and
# sum come back together after 40 additions at the latest, and these weights are not stored, so a
# whole period is not tested.
#
# **With *read once* sums go further, but not all.** Trained to eight additions, with the triples
# kept in training, four of ten layers are right at 0.95 after fifty, where of ten whose triples
# change one is. Two of the ten are at 0.28 or less, and one of these had not learned its eight.
#
# Our predictions asked for two hundred additions. That one or two of the second five runs would
# keep 0.85 there, that of five that read once none would, and that four of five more would keep
# 0.75: all three **were wrong**.
#
# **Where the pairs change, an answer is held for as long as training made it.** After that the five
# runs lose it, four slowly and one fast. We had predicted 0.95 after a hundred loops in two runs of
# five. That **was wrong**: none has it. (Of the ten more below three do.) A walk never has to stand
# still, and to learn that took longer. With *read once* two of five still hold after a hundred
# loops, right at 0.99. The other three do worse than without it, in training already: after sixteen
# loops they are right at 0.74 to 0.94. We had predicted 0.95 after a hundred loops in none, which
# **was wrong**, too.
#
# What makes an answer hold? We trained ten more layers in this way, and then trained them further,
# in three ways:
#
# - *further, to 64 loops*: all ten, with up to 64 loops. Only the last sixteen have targets and a
#   gradient (`--gradient_loops 16`), as Bansal et al. 2022 do it, so that a step stays cheap;
# - *as before, for longer*: five of the ten, for 2,000 more steps with at most sixteen loops;
# - *for longer, with noise*: the same, with noise on what a loop starts from.
#
# The table has the share that is right after a hundred loops, and how many runs are at 0.95 or
# more:

# %% tags=["hide"]
further = judge.named_runs("hold-further")
held, rows = {}, []  # {training: [share right after a hundred loops, by seed]}
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
    rows.append(row)
head = ["training", "runs", "worst", "median", "best", "at 0.95", "at 0.95, 1,000 loops"]
widgets.table(head, rows)

# %% [markdown]
# **More of the same training was mostly enough.** Four of five runs then hold their answer, where
# one did before; noise makes each a little better. (The learning rate rises and falls once more in
# these steps, so it may be that as well.) The fifth run still loses all of it.
#
# **With up to 64 loops, eight of ten hold**, and seven of ten are right at 0.95 after a thousand
# loops as well. But of the same five seeds it is three, and four with more of the same. The run
# that lost everything is at 0.93 here, and at 0.16 after a thousand loops. We had predicted that
# more of the same training would do less than training with more loops: that **was wrong**, but for
# this one run.

# %% tags=["details"]
judge.show("hold-further")

# %% [markdown]
# ## What this shows, and what it does not
#
# In the model that we took apart, each loop is one hop from wherever a question stands. Trained to
# eight hops, with recall, such a walk goes on in most runs on rings of 16 and 24, and in few on
# longer ones; trained to four hops, in none of ten. With the pairs kept at the test, the five of
# these that were tested so go on; on a ring of 64 this brings five of ten once round. With the
# pairs kept in training, too, ten of ten go on on sixteen letters, and with a hint for the first
# hop ten of ten go round 64, and seven of ten round 128, each tested on rings of the size that it
# was trained on. Whether reading once could do without the hint there we have not tested, but for
# one run of 3,500 steps on 64 letters, which only guessed. Up to once round, each hop leads to a
# new letter. After that no new situation is met, and right answers show only that the state comes
# back.

# %%
assert set(by_hops(walk_by_hand.walker(16), sequences, 16, (1, 8, 100)).values()) == {1.0}
assert min(swapping.values()) > 0.99 and min(list(skipping.values())[1:]) > 0.99
assert skipping[1] < 0.5
assert all(judge.verdict(f"walk/W{n}") == judge.HELD for n in (1, 2, 3, 4))
far = [run[1000] for run in walked_on["recall"]]
assert len(far) == 10 and sum(share >= 0.95 for share in far) == 8 and min(far) > 0.85


def least(run, what="accuracy"):
    """The least share of all lengths that were tested from once round on."""
    by_hop, once_round = run["accuracy_by"]["hops"], run["sizes_by_name"]["ring"] - 1
    return min(part[what] for n, part in by_hop.items() if int(n) >= once_round)


in_all = kinds["8 hops, ring of 16"] + kept["8 hops, pairs kept"]
assert [least(run) >= 0.95 for run in in_all].count(True) == 13 and len(in_all) == 15
for runs in [*kinds.values(), *kept.values(), *throughout.values()]:
    if runs[0]["sizes_by_name"]["ring"] in (16, 24):
        at_1000 = [run["accuracy_by"]["hops"]["1000"]["accuracy"] >= 0.95 for run in runs]
        assert at_1000 == [least(run) >= 0.95 for run in runs]
for name, good in (("feed-forward: 256", 2), ("layers: 2", 1)):
    assert sum(least(run) >= 0.95 for run in kinds[name]) == good
for name, bound in (("hops: 4, five more", 0.98), ("start: normalised, pairs kept", 0.99)):
    assert min(least(run, "pairs_kept") for run in kept[name]) > bound
for name in ("kept throughout", "hops: 4, kept throughout"):
    assert min(map(least, throughout[name])) > 0.995
for run in results.runs("walk"):
    if "kept" in run["measured"]:
        both = run["measured"]["kept"]["both"]
        assert both.keys() == set(map(str, TESTED)) and both["1000"] < min(both.values()) + 0.01
assert len(window) == 4
for seed, shares in window.items():
    assert shares[1000] - min(shares[n] for n in WINDOW) < 0.02
    assert all(abs(first_alone[seed][n] - shares[n]) < 0.01 for n in TESTED[:3])
assert all(min(share(given, walked(n)) for n in WINDOW) < 0.05 for given in cheats.values())
assert share(cheats["stop after eight hops"], walked(1000)) == 1
assert max(max(cheat_at[n]) for n in (31, 50)) < 0.13 and cheat_at[200][0] == 1
assert max(run[31] for run in walked_on["state"]) < 0.1
assert all(judge.verdict(f"walk/W{n}") == judge.HELD for n in (5, 6, 7, 8))
assert [judge.verdict(f"walk/W{n}") for n in (11, 13)] == [judge.WRONG] * 2
rings = {ring: kinds[f"ring: {ring}"] for ring in (24, 32, 64)}
one_hop = [run["accuracy_by"]["hops"]["1"]["accuracy"] for run in rings[64]]
assert len(one_hop) == 10 and (f"{min(one_hop):.3f}", f"{max(one_hop):.3f}") == ("0.014", "0.020")
assert {run["steps"] for run in rings[64]} == {10_000} and judge.verdict("walk/W16") == judge.HELD
*near_guess, fifth = sorted(
    run["accuracy_by"]["hops"]["1"]["accuracy"] for run in kinds["ring: 48"]
)
assert max(near_guess) < 1 / 48 + 0.004 and f"{fifth:.2f}" == "0.15"
assert {run["steps"] for run in kinds["ring: 48"]} == {8000}
on_64 = [part["accuracy"] for run in rings[64] for part in run["accuracy_by"]["hops"].values()]
assert max(on_64) < 0.021
for name, runs in kinds.items():
    steps = walk.RING_STEPS.get(runs[0]["sizes_by_name"]["ring"], 2500)
    assert {run["steps"] for run in runs} == {5000 if "hints" in name else steps}
    on_card = sum("H100" in run["hardware"] for run in runs)
    of_both = {"ring: 32": 5, "hops: 4": 5, "ring: 64": 10}
    assert on_card == (len(runs) if "hints" in name else of_both.get(name, 0))


def first_hop(run):
    """The step of the first evaluation at which 0.9 of the questions about one hop are right, or
    None."""
    right = (row for row in run["log"] if row["accuracy_by"]["hops"]["1"]["accuracy"] >= 0.9)
    return next((row["step"] for row in right), None)


two = [run["accuracy_by"]["hops"] for run in kinds["layers: 2"]]
assert len(two) == 5 and min(each["15"]["accuracy"] for each in two) > 0.99
*others, best = sorted(each["1000"]["accuracy"] for each in two)
assert best > 0.95 and (f"{others[0]:.2f}", f"{others[-1]:.2f}") == ("0.42", "0.92")
assert min(each[str(hops)]["accuracy"] for each in two for hops in range(1, 9)) > 0.999
assert [name for name, word in judge.verdicts("walk").items() if word == judge.WRONG] == [
    "W11", "W13", "W14", "W18", "W20", "W24", "W30", "W31", "W35", "W36", "W48", "W49",
    "W52", "W55",
]  # fmt: skip
far_of = {
    name: sorted(run["accuracy_by"]["hops"]["1000"]["accuracy"] for run in kinds[name])
    for name in ("width: 128", "feed-forward: 256")
}
assert [len(each) for each in far_of.values()] == [5, 5] and far_of["width: 128"][0] > 0.99
assert [f"{share:.2f}" for share in far_of["feed-forward: 256"][:3]] == ["0.86", "0.89", "0.89"]
assert far_of["feed-forward: 256"][3] > 0.95
fed = [run["accuracy_by"]["hops"]["15"]["accuracy"] for run in kinds["feed-forward: 256"]]
assert min(fed) > 0.99
on_32 = [run["accuracy_by"]["hops"] for run in rings[32]]
assert sum(each["31"]["accuracy"] >= 0.9 for each in on_32) == 6 and len(on_32) == 10
assert f"{max(each['1000']['accuracy'] for each in on_32):.2f}" == "1.00"
assert sum(each["8"]["accuracy"] > 0.99 for each in on_32) == 9
middle = sorted(f"{each['31']['accuracy']:.2f}" for each in on_32)[1:4]
assert middle == ["0.38", "0.44", "0.73"]
assert sum(0.7 < each["3"]["accuracy"] < 0.9 for each in on_32) == 1
assert judge.verdict("walk/W15") == judge.verdict("walk/W34") == judge.HELD
often = [first_hop(run) for run in rings[32] if run["eval_every"] == 100]
assert (min(often), max(often)) == (700, 4100) and max(map(first_hop, rings[32])) == 4100
assert {first_hop(run) for run in kinds["8 hops, ring of 16"]} == {300}
assert (min(map(first_hop, rings[24])), max(map(first_hop, rings[24]))) == (400, 1500)
on_24 = [run["accuracy_by"]["hops"] for run in rings[24]]
assert sorted(each["1000"]["accuracy"] >= 0.95 for each in on_24) == [False, *[True] * 9]
assert sorted(each["23"]["accuracy"] >= 0.95 for each in on_24) == [False, *[True] * 9]
assert judge.verdict("walk/W25") == judge.verdict("walk/W26") == judge.HELD
measured = {each["id"]: each["measured"] for each in judge.judged("walk")}
assert (measured["walk/W11"], measured["walk/W13"]) == ("3 of 5", "5 of 5")
assert judge.verdict("walk/W17") == judge.HELD and judge.verdict("walk/W18") == judge.WRONG
with_input = [run["accuracy_by"]["hops"] for run in kinds["start: input"]]
assert len(with_input) == 10 and max(each["31"]["accuracy"] for each in with_input) < 0.3
with_norm = [run["accuracy_by"]["hops"] for run in kinds["start: normalised"]]
assert len(with_norm) == 10 and max(each["31"]["accuracy"] for each in with_norm) < 0.1
assert sum(each["15"]["accuracy"] < 0.9 for each in with_norm) == 4
assert sum(each["15"]["accuracy"] < 0.9 for each in with_input) == 3
assert judge.verdict("walk/W19") == judge.HELD
assert [sum(x >= 0.95 for x in held[name]) for name in labels] == [3, 8, 4, 4]
assert sum(x >= 0.95 for x in held["trained"][:5]) == 1
of_five = {name: sum(share >= 0.95 for share in held[name][:5]) for name in ("further", "more")}
assert of_five == {"further": 3, "more": 4}
lost_one = sorted(further["further"], key=lambda run: run["seed"])[3]
assert f"{lost_one['measured']['held']['1000']:.2f}" == "0.16"
assert TASKS["sums"].sizes["ring"] == 4
assert held["more"][3] < 0.05 > held["noise"][3] and f"{held['further'][3]:.2f}" == "0.93"
assert {row[0]: row[-1] for row in rows}[labels["further"]] == 7
assert all(a > b for a, b in zip(held["noise"], held["more"]))
assert [judge.verdict(f"hold-further/F{n}") == judge.WRONG for n in range(1, 6)] == [
    False, False, False, True, False,
]  # fmt: skip
reached = {}  # {hops trained to: share that is right at a thousand, of each run}
for hops in (4, 6, 12):
    runs = kinds[f"hops: {hops}"]
    reached[hops] = [run["accuracy_by"]["hops"]["1000"]["accuracy"] for run in runs]
assert [sum(share >= 0.95 for share in reached[hops]) for hops in reached] == [0, 3, 5]
assert len(reached[4]) == 2 * len(reached[6]) == 10 and max(reached[4]) < 0.7
hinted = {ring: kinds[f"ring: {ring}, hints"] for ring in (48, 64)}
for ring, runs in hinted.items():
    assert {first_hop(run) for run in runs} == {500} == {run["eval_every"] for run in runs}
    at_the_end = [run["accuracy_by"]["hops"] for run in runs]
    assert min(each["8"]["accuracy"] for each in at_the_end) > 0.99
    round_once = [each[str(ring - 1)]["accuracy"] >= 0.9 for each in at_the_end]
    assert (len(round_once), sum(round_once)) == {48: (5, 3), 64: (10, 0)}[ring]
assert sum(each["31"]["accuracy"] < 0.02 for each in at_the_end) == 9
assert [judge.verdict(f"walk/W{n}") == judge.HELD for n in range(29, 42)] == [
    True, False, False, True, True, True, False, False, *[True] * 5,
]  # fmt: skip


def at_end(name, hops, what):
    """Of the runs of a row, the least first."""
    return sorted(run["accuracy_by"]["hops"][str(hops)][what] for run in kept[name])


for name, bounds in (
    ("hops: 4, five more", ("0.01", "0.53", "0.98")),
    ("start: normalised, pairs kept", ("0.03", "0.03", "0.99")),
):
    lost_ones, kept_ones = (at_end(name, 1000, what) for what in ("accuracy", "pairs_kept"))
    assert len(kept_ones) == 5 and kept_ones[0] > float(bounds[2])
    assert (f"{lost_ones[0]:.2f}", f"{lost_ones[-1]:.2f}") == bounds[:2]
assert (
    len(kept["8 hops, pairs kept"]) == 5
    and at_end("8 hops, pairs kept", 1000, "accuracy")[0] >= 0.99
)
assert sum(run[1000] >= 0.95 for run in walked_on["recall"]) == 8
on_64 = "ring: 64, hints, 4,000 steps"
assert sum(share >= 0.9 for share in at_end(on_64, 63, "pairs_kept")) == 5
assert at_end(on_64, 63, "pairs_kept")[0] > 0.66 and at_end(on_64, 31, "accuracy")[-1] < 0.05
assert sum(share >= 0.9 for share in at_end(on_64, 1000, "pairs_kept")) == 3
later = {}  # {ring: share right once round with the pairs kept, as it was measured afterwards}
for run in results.runs("walk"):
    if "pairs_kept" in run["measured"]:
        ring = run["sizes_by_name"]["ring"]
        later.setdefault(ring, []).append(run["measured"]["pairs_kept"][str(ring - 1)])
assert (len(later[32]), len(later[48]), len(later[64])) == (5, 5, 10)
assert min(later[32]) > 0.96 and min(later[48]) > 0.98 and sum(x >= 0.9 for x in later[64]) == 7
assert [f"{share:.2f}" for share in sorted(later[64])[:3]] == ["0.30", "0.80", "0.90"]
assert hinted[64][0]["steps"] == kept[on_64][0]["steps"] + 1000
on_128 = {}  # {width: (right once round as it is, with the pairs kept)}
for run in results.runs("walk", ring=128, seed=50):
    both = run["accuracy_by"]["hops"]["127"]["accuracy"], run["measured"]["pairs_kept"]["127"]
    on_128[run["d_model"]] = tuple(f"{share:.2f}" for share in both)
assert on_128 == {64: ("0.90", "0.99"), 128: ("0.00", "0.93")}
reads_once = {  # {ring: its runs, the share right once round, the worst first}
    ring: sorted(run["accuracy_by"]["hops"][str(ring - 1)]["accuracy"] for run in runs)
    for ring, runs in keeping.items()
}
far = {
    ring: [run["accuracy_by"]["hops"]["1000"]["accuracy"] for run in runs]
    for ring, runs in keeping.items()
}
assert len(far[64]) == 10 and min(far[64] + reads_once[64]) > 0.995
assert sum(share >= 0.99 for share in far[128]) == 7
assert [judge.verdict(f"walk/W{n}") for n in (46, 47)] == [judge.HELD] * 2
late = []  # the first step at which the others had one hop
for run in keeping[128]:
    good = run["accuracy_by"]["hops"]["127"]["accuracy"] >= 0.99
    late += [] if good else [first_hop(run)]
    assert not good or first_hop(run) <= 1500
assert sorted(late, key=str) == [2500, 2500, None]
before = [(run["sizes_by_name"]["ring"], run["steps"]) for run in sum(changing.values(), [])]
assert sorted(before) == [(64, 4000)] * 10 + [(64, 5000)] * 10 + [(128, 4000)] * 2
assert sorted(run["d_model"] for run in changing[128]) == [64, 128]
assert all("H100" in run["hardware"] for run in sum([*changing.values(), *keeping.values()], []))
read_once = {name: both[0] for name, both in table.items()}
of_eight, of_four, of_two = (
    read_once[f"{which}kept throughout"] for which in ("", "hops: 4, ", "hops: 2, ")
)
assert (len(of_eight), len(of_four), len(of_two)) == (10, 5, 5) and min(of_eight + of_four) > 0.995
assert (f"{of_two[0]:.2f}", f"{of_two[-1]:.2f}") == ("0.22", "0.89")
fifteen = [
    run["accuracy_by"]["hops"]["15"]["accuracy"] for run in throughout["hops: 2, kept throughout"]
]
assert sum(share < 0.5 for share in fifteen) == 1 and max(fifteen) < 0.9
norm_alone = read_once["start: normalised, kept throughout"]
assert len(norm_alone) == 5 and norm_alone[0] > 0.995
no_norm = throughout["start: state, kept throughout"] + throughout["start: input, kept throughout"]
hundred = [run["accuracy_by"]["hops"]["100"]["accuracy"] for run in no_norm]
assert len(hundred) == 10 and max(hundred) < 0.3
not_eight = [run["accuracy_by"]["hops"]["8"]["accuracy"] < 0.95 for run in no_norm]
assert sum(not_eight[:5]) == 2 and not any(not_eight[5:])
cards = [
    sum("H100" in run["hardware"] for group in groups for run in judge.named_runs("walk")[group])
    for groups in plain.values()
]
assert cards == [5, 5, 0, 5, 0, 0]
input_alone = [run["accuracy_by"]["hops"]["31"]["accuracy"] for run in no_norm[5:]]
assert sum(share < 0.5 for share in input_alone) == 2 and judge.verdict("walk/W55") == judge.WRONG
assert [judge.verdict(f"walk/W{n}") for n in (50, 51, 53, 54)] == [judge.HELD] * 4
*others, tenth = (f"{share:.2f}" for share in reads_once[128][2::-1])
assert (others, tenth) == (["0.90", "0.00"], "0.00") and reads_once[128][3] > 0.99
assert len(reads_once[128]) == 10
one_hop = [run["accuracy_by"]["hops"]["1"]["accuracy"] for run in keeping[128]]
assert sorted(share < 0.99 for share in one_hop) == [False] * 9 + [True]
assert {run["steps"] for runs in keeping.values() for run in runs} == {3000}
round_256 = {
    (run["d_model"], run["position"]): run["accuracy_by"]["hops"]["255"]["accuracy"]
    for run in results.runs("walk", ring=256)
}
assert round_256.keys() == {(256, "learned"), (128, "rotary")}
assert round_256[256, "learned"] > 0.995 and round_256[128, "rotary"] < 0.01
not_lost = []
for run in sum(changing.values(), []):
    right = run["accuracy_by"]["hops"][str(run["sizes_by_name"]["ring"] - 1)]["accuracy"]
    not_lost += [f"{right:.2f}"] if right >= 0.3 else []
assert len(not_lost) == 2 and max(not_lost) == "0.90"
for run in kept[on_64]:
    at_hundred, far = (run["accuracy_by"]["hops"][n]["pairs_kept"] for n in ("100", "1000"))
    assert at_hundred - far < 0.05
for name, runs in kept.items():
    on_card = {"H100" in run["hardware"] for run in runs}
    assert on_card == {name not in ("start: input, pairs kept", "start: state, pairs kept")}
for start in ("input", "state"):
    assert at_end(f"start: {start}, pairs kept", 31, "pairs_kept")[-1] < 0.27
    for text, least in (("judged", 0.69), ("seen before", 0.6)):
        found = without_norm[start, text]
        assert len(found["both"]) >= 5 and found["both"][0] > least
        assert max(found[what][-1] for what in ("nothing", "pairs", "length")) < 0.08
assert [judge.verdict(f"walk/W{n}") for n in (42, 43, 44, 45)] == [judge.HELD] * 4
both_kept = sorted(
    share for start in ("input", "state") for share in without_norm[start, "judged"]["both"]
)
assert len(both_kept) == 10 and both_kept[1] > 0.92
eight, sixteen, holding = (ends[key] for key in (("sums", "8"), ("sums", "16"), ("hold", "16")))
assert 0.19 < eight[50][1] < 0.23 and eight[50][9] > 0.9
assert eight[8][0] < 0.6 and eight[8][1] > 0.97 and len(eight[8]) == 10
sums_at = {
    of: [run["accuracy_by"]["additions"]["200"]["accuracy"] for run in runs]
    for of, runs in judge.named_runs("sums").items()
}
assert len(sixteen[50]) == 10 and min(sixteen[50]) > 0.98 and min(sixteen[31]) > 0.99
assert judge.verdict("sums/S8") == judge.verdict("sums/S9") == judge.HELD
assert sum(share >= 0.85 for share in sums_at["8 additions"]) == 2
assert max(sums_at["five more"]) < 0.85 and sorted(sums_at["five more"])[-2] > 0.8
once = ends["sums", "8, read once"][50]
assert len(once) == len(eight[50]) == 10 and sum(right >= 0.95 for right in eight[50]) == 1
assert sum(right >= 0.95 for right in once) == 4 and once[1] < 0.28 < once[2]
assert sum(share >= 0.75 for share in sums_at["read once, five more"]) == 3
holds = ends["hold", "16, read once"][100]
assert len(holds) == 5 and holds[3] > 0.99 and holds[2] < 0.95
taught = ends["hold", "16, read once"][16]
assert [f"{share:.2f}" for share in taught[:3]] == ["0.74", "0.82", "0.94"]
assert taught[3] > 0.99
eighth = ends["sums", "8, read once"][8]
assert eighth[0] < 0.61 and eighth[1] > 0.95
assert judge.verdict("sums/S10") == judge.verdict("sums/S11") == judge.WRONG
assert judge.verdict("hold/H5") == judge.WRONG
assert [judge.verdict(f"sums/S{n}") for n in (5, 6, 7)] == [judge.WRONG, judge.HELD, judge.WRONG]
assert min(holding[16]) > 0.98 and max(holding[100]) < 0.95
assert holding[31][0] < 0.4 and holding[31][1] > 0.85
assert judge.verdict("hold/H3") == judge.WRONG

# %% [markdown]
# ## Exercises
#
# 1. The model that you took apart is looped twelve times, and all questions skip the fourth and the
#    seventh loop. How many hops on is the letter that they hold at the end?

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
# 2. To run: three more walkers, some four minutes each on one core. Write down first in how many
#    of them a thousand hops are right at 0.95: `python train.py --preset walk --seed 210 211 212`.

# %% [markdown] tags=["hint"]
# Eight of the first ten runs did it. How often would three of three, if each does with chance 0.8?

# %% [markdown] tags=["answer"]
# Three of three in half of the cases: 0.8³ = 0.51. Two of three in 0.38. So three runs say little
# about how often training finds such a walk, and one run says next to nothing.

# %% [markdown]
# 3. A walk on a ring of sixteen repeats after sixteen hops. How long must a ring be for a thousand
#    hops to be a thousand new situations? And would another task, where each place points to any
#    other, do with fewer places?

# %% [markdown] tags=["hint"]
# Where is a walker that has made as many hops as there are places?

# %% [markdown] tags=["answer"]
# More than a thousand letters. Other pointers need as many: among n places a path has come back to
# one of them after n hops at the latest, and goes round from there. So only larger tests are harder
# tests. Ours have sixteen to 128 letters, and 256 in two runs.
