# %% [markdown]
# # Walking the ring
#
# **Train the same layer with one loop more, and it can learn one hop more. Take a loop away from a
# trained model, with nothing else changed, and it answers one hop less: in six models of six, and
# in 13 of 15 others.** You will learn what a loop does, and how to see it.
#
# Two layers [looked something up](3_one_look_or_two.md) where one layer only guessed. Here depth
# comes without more weights: one layer is applied again and again. Each application is a *loop*.
# Loops can be added or taken away when the training is over. So you can change the depth of a
# trained model and nothing else. No comparison of two trained models can do that.
#
# ## One loop more, one hop more
#
# Eight letters form a ring, as in [the first lesson](1_hypothesis.md). The model is told the pairs
# in mixed order, and asked for the letter so many *hops* further along. It has to answer at once.

# %% tags=["hide"]
import itertools
import statistics

import matplotlib.pyplot as plt

import minidepth as md
from minidepth_lab.keep import checkpoints
from minidepth_lab.measure import judge, results, ring_runs
from minidepth_lab.show import figures
from minidepth_lab.tasks.ring import LEARNED, Ring
from minidepth_site import widgets

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEF"

# %%
tokens, targets = Ring().draw(200, md.generator("walk"), lengths=(1, 2, 3, 4))
shown = [LETTERS[i] if i < 16 else str(i - 16) for i in tokens[0, :24].tolist()]
print("pairs:", " ".join(a + b for a, b in zip(shown[:16:2], shown[1:16:2])))
for place in (16, 18, 20):
    answer = LETTERS[targets[0, place + 1]]
    print(f"how many hops: {shown[place]}, from {shown[place + 1]}: {answer}")

# %% [markdown]
# We trained such a layer with one to five loops, ten runs each, on one to four hops. All have the
# same number of weights. A cell counts the runs that *learned* that many hops: on fresh rings they
# answer at least nine of ten questions.

# %% tags=["hide"]
hops = (1, 2, 3, 4)
applied = ring_runs.staircase()  # {loops: {seed: {hops: accuracy}}}
learned = {
    n: [sum(run[k] >= LEARNED for run in its.values()) for k in hops] for n, its in applied.items()
}
rows = [
    [k, *(f"{learned[n][i]} of {len(applied[n])}" for n in applied)] for i, k in enumerate(hops)
]
widgets.table(["hops", *("1 loop" if n == 1 else f"{n} loops" for n in applied)], rows)

# %% [markdown]
# **One loop learns nothing, and each further loop adds a hop**, the third and fourth not in every
# run. It is not the parameters: a wide layer with those of four layers, applied once, learns
# nothing either.
#
# But models that are trained apart differ in more than their loops. A step of five loops takes more
# computing than a step of one, for example. So we also gave every model the same computing:

# %% [markdown] tags=["details"]
# A model of few loops is trained for more steps, so that all take the same computing. They are
# asked for one and two hops, five runs each. Three loops are then enough for two hops in some runs
# only. Five loops, which get the fewest steps, seldom learn them: that loops *can* do it is one
# thing, that training finds it another.

# %% tags=["hide", "details"]
rows, equal = [], {}  # {kind: (runs that learned one hop, two hops, all)}
for name, runs in judge.named_runs("ring-compute").items():
    right = [run["accuracy_by"]["lengths"] for run in runs]
    if right:
        counts = (sum(each[k]["accuracy"] >= LEARNED for each in right) for k in "12")
        equal[name] = (*counts, len(runs))
        one_hop, two_hops, n = equal[name]
        rows.append([name, f"{runs[0]['steps']:,}", f"{one_hop} of {n}", f"{two_hops} of {n}"])
widgets.table(["equal computing", "steps", "1 hop", "2 hops"], rows)

# %% [markdown]
# More computing is not the reason: one loop still only guesses. To be sure that it is the loops,
# change nothing else.
#
# ## Change only the number of loops
#
# Six of the ten models with five loops learned all four hops. We ran these six with fewer loops,
# and with one more.

# %%
logs = results.runs("ring-staircase", d_model=64, n_loops=5)
models = {}  # by seed, those that learned four hops
for run in logs:
    if applied[5][run["seed"]][4] >= LEARNED:
        folder = results.weights("ring-staircase", run["id"])
        models[run["seed"]], _ = checkpoints.load(folder)
cut = {}  # {loops at test: accuracies by hops, of each model}
for n in (1, 2, 3, 4, 5, 6):
    cut[n] = [ring_runs.with_loops(model, tokens, n) for model in models.values()]
good = [[sum(each[k] >= LEARNED for each in cut[n]) for n in cut] for k in hops]

# %%
figure, axes = plt.subplots(figsize=(4.4, 3.2))
texts = [[f"{count}/{len(models)}" for count in row] for row in good]
figures.heat_map(axes, good, vmax=len(models), texts=texts)
axes.set_yticks(range(4), hops)
axes.set(xlabel="loops at test", ylabel="hops asked")
axes.set_title("the same weights, fewer loops:\none hop less for each loop")
plt.show()

# %% [markdown]
# What to see: take one loop away and the model answers one hop less, in six models of six. Each
# cell counts the models that answer at least nine of ten questions. Weights and questions are the
# same in every column.

# %% [markdown]
# **So the loops do the work.** A sixth loop, which training never had, gains nothing: at four hops
# some models walk on and lose the answer.
#
# These six were chosen because they had learned four hops. So we trained twenty more, five with
# each of one to four loops, chose none, and ran each with one loop to six:

# %%
at_test = {}  # {(loops in training, at test): the most hops that each run answers, after all fewer}
for run in results.runs("ring-at-test"):
    for loops, shares in run["measured"]["by_loops"].items():
        good_up_to = itertools.takewhile(lambda k: shares[str(k)] >= LEARNED, hops)
        answered = len(list(good_up_to))
        at_test.setdefault((run["n_loops"], int(loops)), []).append(answered)
_, axes = plt.subplots(figsize=(4.6, 3.2))
medians, texts = [], []
for trained in (1, 2, 3, 4):
    row = [sorted(at_test[trained, loops]) for loops in range(1, 7)]
    medians.append([statistics.median(each) for each in row])
    texts.append([f"{each[0]}–{each[-1]}" if each[0] < each[-1] else f"{each[0]}" for each in row])
figures.heat_map(axes, medians, vmax=3, texts=texts)
axes.set_xticks(range(6), range(1, 7))
axes.set_yticks(range(4), range(1, 5))
axes.set(xlabel="loops at test", ylabel="loops in training")
axes.set_title("hops answered, five runs each")
plt.show()

# %% [markdown]
# What to see: up to the loops of training, each loop at test is a hop. A cell has the most hops
# that the runs answer, the fewest and the most of five runs; the colour is the median.

# %% [markdown]
# Each loop less costs one hop in 13 of the 15 runs that had loops to lose. Beyond the loops of
# training nothing is gained, in none of the twenty. On the contrary: a layer forgets. By the sixth
# loop, 14 of these 15 answer at least one hop less.
#
# ## The layer walks
#
# Five loops could go letter by letter, or they could double their hops. To see which, we look into
# the middle of the model. What a token holds is a vector, to which each loop adds. After the last
# loop it is read through the model's last norm and output layer. We read it in that way after every
# loop. This is the [logit lens](depth_map.md#the-logit-lens).

# %% tags=["hide"]
walks = {seed: ring_runs.walk(model, tokens) for seed, model in models.items()}
lowest = {}  # of each model, the least that it holds of the letter it should have come to
for seed, read in walks.items():
    cells = [read[j, k][min(j - 1, k)] for j in (2, 3, 4, 5) for k in hops]
    lowest[seed] = min(cells)

# %%
figure, axes = plt.subplots(figsize=(4.6, 3.4))
columns = []
for j in (1, 2, 3, 4, 5):
    of_all = [walks[seed][j, 4] for seed in models]
    columns.append([sum(shares) / len(models) for shares in zip(*of_all)])
figures.heat_map(axes, list(zip(*columns)), ".2f", vmax=1)
axes.set_yticks(range(5), range(5))
axes.set(xlabel="after loop", ylabel="the letter so many hops on")
axes.set_title("asked for four hops,\nthe layer takes one at a time")
plt.show()

# %% [markdown]
# What to see: the layer walks along the ring, one letter a loop. After the second loop the question
# holds the next letter, after each further loop the letter after that. A cell has the share of
# questions that hold the letter, the mean of the six models, when four hops are asked.

# %% [markdown]
# The first loop only prepares. Asked for fewer hops, the question stops where it should and waits:
# the number in it says when. Only in two of the six models can the right letter be read in 0.8 of
# the questions after every loop.
#
# ## What this shows, and what it does not
#
# Within a trained model the number of loops decides how many hops are answered. That does not show
# that k hops *need* k + 1 loops. We know shorter ways, and other trainings found some: [three jumps
# in two layers](depth_map.md#three-jumps-with-two-layers), for example. Nor does it have to be [the
# same layer](beyond_training.md#the-same-layer-or-another) each time.
#
# And one layer without loops? We know weights, [written by
# hand](../reference/laboratory/measure.md#minidepth_lab.measure.by_hand), with which it answers
# every one-hop question. Training [did not find them](../reference/results.md#ring-wide): with one
# loop the best of 55 runs answers 0.54 of those questions, with two loops or three all eighty do
# nearly always. So "one layer learns nothing" is a fact about this training, not a limit of every
# layer.
#
# Here a sixth loop gained nothing. What if each loop did the same, from wherever a question stands?
# Then [a thousand hops](thousand_hops.md) are as near as nine.

# %%
assert learned[1] == [0, 0, 0, 0] and learned[2] == [10, 0, 0, 0] and learned[3] == [10, 10, 0, 0]
assert learned[4] == [10, 10, 8, 0] and learned[5] == [10, 10, 10, 6]
wide = ring_runs.accuracies(results.runs("ring-staircase", d_model=120))
assert len(wide) == 10 and max(share for run in wide.values() for share in run.values()) < 0.2
assert len(models) == 6 and [list(row) for row in zip(*good)] == [
    [0, 0, 0, 0], [6, 0, 0, 0], [6, 6, 0, 0], [6, 6, 6, 0], [6, 6, 6, 6], [6, 6, 6, 2],
]  # fmt: skip
assert [at for at, least in lowest.items() if least >= 0.8] == [110, 114]
wide_runs, one_hop = results.runs("ring-wide", steps=1200), {}  # {loops: share right of one hop}
for run in wide_runs:
    share = run["accuracy_by"]["lengths"]["1"]["accuracy"]
    one_hop.setdefault(run["n_loops"], []).append(share)
once = results.runs("ring-wide", n_loops=1)
answered = [run["accuracy_by"]["lengths"]["1"]["accuracy"] for run in once]
assert len(one_hop.pop(1)) == 40 and len(once) == 55 and f"{max(answered):.2f}" == "0.54"
assert len(one_hop[2] + one_hop[3]) == 80 and min(one_hop[2] + one_hop[3]) > 0.95
assert all(len(answers) == 5 for answers in at_test.values()) and len(at_test) == 24
for (trained, loops), answers in at_test.items():
    assert max(answers) == min(loops, trained) - 1 or loops > trained
    assert max(answers) <= trained - 1
had_one = [
    (of_run, at_test[trained, 6][i])
    for trained in (2, 3, 4)
    for i, of_run in enumerate(at_test[trained, trained])
]
walk_back = 0  # runs in which each loop less costs one hop
for trained in (2, 3, 4):
    of_each_run = zip(*(at_test[trained, loops] for loops in range(1, trained + 1)))
    walk_back += sum(list(answers) == list(range(trained)) for answers in of_each_run)
assert walk_back == 13
assert len(had_one) == 15 and sum(at_6 < of_run for of_run, at_6 in had_one) == 14
assert [equal[name][:2] for name in sorted(equal)] == [(0, 0), (5, 0), (5, 2), (5, 5), (2, 1)]
assert {n for *_, n in equal.values()} == {5}
guessing = [run["accuracy_by"]["lengths"] for run in judge.named_runs("ring-compute")["1 loop"]]
assert max(each[k]["accuracy"] for each in guessing for k in "12") < 0.2

# %% tags=["hide", "wrong"]
widgets.wrong("ring-staircase", "ring-at-test", "ring-compute", "ring-wide")

# %% [markdown]
# ## Exercises
#
# 1. (Medium, 10 minutes.) The models above were trained with five loops. Loop one of them six,
#    seven and ten times. What will happen to questions about two hops, and about four? Write it
#    down, then call `ring_runs.with_loops(models[110], tokens, 6)`.

# %% [markdown] tags=["hint"]
# In training, for how many loops had a question about two hops to stay where it was? And one about
# four hops?

# %% tags=["answer"]
further = {n: ring_runs.with_loops(models[110], tokens, n) for n in (5, 6, 7, 10)}
rows = [[n, *(f"{share:.2f}" for share in shares.values())] for n, shares in further.items()]
widgets.table(["loops", "1 hop", "2 hops", "3 hops", "4 hops"], rows)
assert further[7][2] > 0.99 and f"{further[7][4]:.2f}" == "0.68"
assert f"{further[10][1]:.2f}" == "0.77"

# %% [markdown] tags=["answer"]
# A question about two hops has waited for two loops in training, and waits on for a while. One
# about four hops arrives with the last loop and never had to wait, so nothing has taught it to.
# After ten loops even one hop is answered less often: no question waits for ever.

# %% [markdown]
# 2. (Medium, 5 minutes.) One layer, applied once, has four heads and eight pairs. A head that
#    watches one pair is right about it; one that watches two is right about half of their
#    questions. What share of all questions is right if each head watches one pair and the rest is
#    guessed, one in seven? And if each watches two?

# %% [markdown] tags=["hint"]
# How many of the eight questions can be answered for certain, and what do the others add?

# %% tags=["answer"]
one_each = (4 + 4 / 7) / 8
two_each = 8 * 0.5 / 8
print(f"one pair each: {one_each:.2f}, two each: {two_each:.2f}")

# %% [markdown] tags=["answer"]
# Half in both cases, but for the guesses. So the share right does not tell how heads divide the
# pairs; one has to look at [where they look](depth_map.md#one-look-many-heads).
