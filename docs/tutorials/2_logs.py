# %% [markdown]
# # The published logs
#
# **The report's two logs show one thing: its model of twelve layers fitted the training text better
# than its model of one. At the last step it predicted new text worse.** You will learn to read a
# training log as evidence: what the loss of one batch can tell, why "best" and "last" are different
# claims, and how to check what a text says against its own numbers.
#
# [The first lesson](1_hypothesis.md) told what the report claims. It printed 21 lines of log for
# each of its two models, and an article about the same runs adds a few sentences
# ([sources](../reference/citing.md)). Both name a notebook and a public data set, which we have not
# seen. Weights, answers or a second run were not published. So these 42 lines have to carry the
# word "PROVED". Do they? Here are some of them:

# %%
import math
import statistics

import matplotlib.pyplot as plt
from scipy.stats import t as student

from minidepth_lab.measure import results
from minidepth_lab.show import figures
from minidepth_site import exercises, widgets

logs = {n: results.published(f"report_log_{n}_layers") for n in (1, 12)}
names = {1: "1 layer", 12: "12 layers"}
steps = [record["step"] for record in logs[1]]
train = {n: [record["train_loss"] for record in log] for n, log in logs.items()}
val = {n: [record["val_loss"] for record in log] for n, log in logs.items()}

# %% tags=["hide"]
rows = []
for step in (1, 100, 200, 275, 350, 500):
    i = steps.index(step)
    four = train[1][i], train[12][i], val[1][i], val[12][i]
    rows.append((step, *(f"{loss:.2f}" for loss in four)))
widgets.table(("step", "train, 1", "train, 12", "val, 1", "val, 12 layers"), rows)

# %% [markdown]
# *Train* is the loss on the text that the model learns from, *val* (validation) the loss on text
# that was held out, both in [nats](../reference/glossary.md#nat) per token. Lower is better. All
# lines are in the [published tables](../reference/published.md), and every number below is computed
# from them.

# %%
lowest_at = {n: steps[val[n].index(min(val[n]))] for n in names}
worse = val[12][-1] - val[1][-1]
figure, (top, low) = plt.subplots(2, 1, figsize=(4.6, 6.0), sharex=True, height_ratios=(3, 2))
for n in names:
    color = figures.color_of(n)
    top.plot(steps, train[n], "o:", color=color)
    figures.name_end(top, 500, train[n][-1], f"train, {names[n]}", color)
    for axes in (top, low):
        axes.plot(steps, val[n], "s-", color=color)
    figures.name_end(low, 500, val[n][-1], names[n], color)
    low.plot(lowest_at[n], min(val[n]), "s", color=color, markersize=9, fillstyle="none")
figures.name_end(top, 500, val[12][-1], "validation, both", "C5")
top.set(ylabel="loss (nats per token)", yscale="log", xlim=(-10, 760), xticks=range(0, 501, 100))
top.set_yticks([3, 4, 5, 6, 8, 10, 12], ["3", "4", "5", "6", "8", "10", "12"])
top.minorticks_off()
top.set_title("train loss goes on falling, validation loss does not")
low.set(xlabel="training step", ylabel="validation loss", ylim=(5.65, 6.1))
low.set_title(
    f"with 12 layers it turns at step {lowest_at[12]}\nand ends {worse:.2f} nats above 1 layer"
)
plt.show()

# %% [markdown]
# What to see: train loss goes on falling, but validation loss turns and rises, sooner and more with
# twelve layers than with one. The lower panel shows the validation lines alone, enlarged; open
# squares mark their lowest values. There is one run per depth (n = 1).

# %% [markdown]
# ## First clue: the train lines jump
#
# The report's headline is the last train loss, 3.77 against 2.93. But that column is the loss of a
# single batch, the few texts of one step, and from one batch to the next it jumps about. How much?
# Fit a straight line to the second half of each run, and see how far the points lie from it.


# %%
def scatter(values):
    """Standard deviation about a straight line through the values."""
    x = list(range(len(values)))
    slope, start = statistics.linear_regression(x, values)
    residuals = [y - (start + slope * i) for i, y in zip(x, values)]
    return math.sqrt(sum(r * r for r in residuals) / (len(values) - 2))


late = slice(10, None)  # steps 250 to 500, 11 values
noise = {n: scatter(train[n][late]) for n in names}
means = {n: statistics.mean(train[n][-5:]) for n in names}
final_gap, gap5 = train[1][-1] - train[12][-1], means[1] - means[12]

# %% tags=["hide"]
rows = [("last batch", train[1][-1], train[12][-1], final_gap)]
rows.append(("noise of a batch", noise[1], noise[12], "–"))
rows.append(("mean of the last five", means[1], means[12], gap5))
rows = [[x if isinstance(x, str) else f"{x:.2f}" for x in row] for row in rows]
widgets.table(("train loss", *names.values(), "gap"), rows)

# %% [markdown]
# The noise of one batch is a quarter of the gap with one layer, and over a third with twelve.
# Averaged over the last five evaluations, the gap is about half as large: 11 % of the loss of one
# layer, not 22 %. But it is still there: this run of twelve layers did fit the training text
# better.
#
# ## Second clue: best is not last
#
# Both texts call the validation losses essentially tied, less than 0.005 apart. The article even
# has 5.72 and 5.85 in its table, and below it "∆ < 0.005". Look at which steps each is from.

# %% tags=["hide"]
rows = []
compared = dict(best=(min(val[1]), min(val[12])), last=(val[1][-1], val[12][-1]))
for at, (a, b) in compared.items():
    rows.append((f"the {at} step", f"{a:.4f}", f"{b:.4f}", f"{b - a:+.4f}"))
widgets.table(("validation loss at", *names.values(), "12 minus 1"), rows)

# %% [markdown]
# The tie is between the *best* steps of the two runs. But the train losses that the texts compare
# are from the *last* step. At that step, on text that it has not read, the deeper model is worse by
# 0.13. And if you report the best of 21 evaluations, you use the validation set twice, once to
# choose the value and once to report it.
#
# ## Third clue: the two losses part
#
# If a model learns how such texts go, it gets better at its training text and at new text. If it
# learns the texts by heart, it gets better at its training text alone. So look at the difference
# between the two losses.

# %%
figure, axes = plt.subplots(figsize=(4.6, 3.2))
gaps = {n: [v - t for v, t in zip(val[n], train[n])] for n in names}
for n, marker in ((1, "o"), (12, "s")):
    axes.plot(steps, gaps[n], f"{marker}-", color=figures.color_of(n))
    figures.name_end(axes, 500, gaps[n][-1], names[n], figures.color_of(n))
axes.axhline(0, color="C5", linestyle="--")
axes.set(xlabel="training step", ylabel="validation minus train loss\n(nats per token)")
axes.set(xlim=(-10, 660), xticks=range(0, 501, 100))
axes.set_title(
    f"the gap grows to {gaps[1][-1]:.2f} nats with 1 layer,\nand to {gaps[12][-1]:.2f} with 12"
)
plt.show()

# %% [markdown]
# What to see: at first there is no gap. Then it grows, and with twelve layers it ends about one and
# a half times as large as with one. Each train loss is of one batch, and there is one run per depth
# (n = 1).

# %% [markdown]
# A lower train loss with a *higher* validation loss is what learning by heart looks like
# (*overfitting*). Nothing in these numbers calls for reasoning as an explanation.

# %% [markdown] tags=["details"]
# *Perplexity* is e to the power of the loss: a choice among so many equally likely words would be
# as hard. The report gives it for the training text, where it is lower with twelve layers, and not
# for new text, where it is lower with one. All these train losses were measured with dropout on,
# which raises them by an amount that was not measured.

# %% tags=["details"]
perplexity = {
    n: [math.exp(log[-1][k]) for k in ("train_loss", "val_loss")] for n, log in logs.items()
}
widgets.table(("perplexity", "training text", "new text"), [
    (names[n], f"{old:.1f}", f"{new:.0f}") for n, (old, new) in perplexity.items()
])  # fmt: skip

# %% [markdown]
# ## The verdict, sentence by sentence
#
# | the texts say | the log says |
# |---|---|
# | the curves part at step 50 for good | no: one layer is lower at 5 of 19 points from then on |
# | one layer stops at about 3.8 | no: its mean over five evaluations falls to the end |
# | validation is tied | at the best steps; at the last, twelve layers lose |
# | 32 % more parameters | in total; in the layers [twelve times](0_model.md) as many |
# | about 420,000 tokens, read 20 times | only with 32 sequences a step; with its 16, ten times |
# | twelve layers fit the text better | yes, in one run each |
# | the hypothesis is confirmed | no: one seed, no answer checked, more parameters |
#
# The article names the single seed, the little data and the parameters as caveats itself, and it
# proposes two runs that would tell depth from parameters. We made them, [small](7_equal_time.md)
# and [at its size](report.md).
#
# **So the word PROVED has nothing to stand on.** That does not make the hypothesis wrong. What the
# claim would need is on [one page](7_equal_time.md#what-the-word-proved-would-need). And the pair
# can be run again: we did, [at its size](report.md), with three seeds and two controls. There
# twelve layers predict new text better, and no model answers questions better than guessing.
#
# With one seed for each depth, could all of this be luck? That is [the next
# lesson](6_how_would_you_know.md).

# %%
assert [f"{noise[n] / final_gap:.2f}" for n in names] == [
    "0.24",
    "0.38",
] and 0.5 < gap5 / final_gap < 0.55
assert (f"{final_gap / train[1][-1]:.2f}", f"{gap5 / means[1]:.2f}") == ("0.22", "0.11")
assert lowest_at == {1: 350, 12: 275}
assert round(min(val[12]) - min(val[1]), 4) == 0.0018
assert round(val[12][-1] - val[1][-1], 4) == 0.1255
above = [s for s, a, b in zip(steps, train[1], train[12]) if b > a]
assert [s for s in above if s >= 50] == [100, 175, 200, 225, 300]
assert len([s for s in steps if s >= 50]) == 19
fives = [statistics.mean(train[1][i : i + 5]) for i in range(len(steps) - 4)]
assert fives[11] > fives[16] == min(fives) and min(train[1]) == train[1][-1]
assert 1.4 < gaps[12][-1] / gaps[1][-1] < 1.6 and abs(gaps[1][0]) < 0.1 > abs(gaps[12][0])
assert perplexity[12][0] < perplexity[1][0] and perplexity[12][1] > perplexity[1][1]
assert [f"{val[n][-1]:.2f}" for n in names] == ["5.72", "5.85"]  # as the article prints them
held_in = 0.95 * 420_000 / 512  # blocks, of which an epoch of 25 steps reads
assert math.ceil(held_in / 32) == 25 and math.ceil(held_in / 16) == 49

# %% [markdown]
# ## Exercises
#
# 1. (Medium, 10 minutes.) The headline is the gap of the last batch. What would it be if another
#    evaluation had been quoted? Find the smallest and the largest gap in train loss, one layer
#    minus twelve, among the eleven from step 250 on.

# %% tags=["exercise"]
# train[1] and train[12] are lists of 21 losses each, at the same steps
smallest = ...  # in nats
largest = ...

# %% [markdown] tags=["hint"]
# `zip(train[1][late], train[12][late])` goes through the last eleven of both together. Where one
# layer is lower, the gap is below 0.

# %% tags=["answer"]
late_gaps = [a - b for a, b in zip(train[1][late], train[12][late])]
smallest, largest = min(late_gaps), max(late_gaps)


# %% tags=["check"]
@exercises.check
def gaps_of_one_batch():
    gaps = [a - b for a, b in zip(train[1], train[12])]
    its = gaps[10:]  # from step 250 on

    def near(number, gap):
        return abs(number - gap) < 0.006

    turned = near(smallest, -max(its)) and near(largest, -min(its))
    assert not turned, "that is twelve minus one: take the loss of one layer, and subtract"
    assert not near(largest, max(gaps)), f"{largest:.2f} is the gap of a step before 250"
    least = min(map(abs, its))
    hint = "nearest to 0, but the smallest is where one layer is lower, below 0"
    assert not near(smallest, least), f"{smallest:.2f} is {hint}"
    for name, number, gap in (("smallest", smallest, min(its)), ("largest", largest, max(its))):
        where = f"below {number:.2f}" if gap < number else f"above {number:.2f}"
        assert near(number, gap), f"the {name} of the eleven gaps is {where}"


# %% [markdown] tags=["answer"]
# A reader could have been told that one layer is ahead by 0.53, or twelve by 0.85. The step that
# was reported, with 0.84, is nearly the best for twelve. On average over the eleven they are 0.36
# ahead.

# %% tags=["answer"]
in_words = [f"{gap:.2f}" for gap in (smallest, largest, late_gaps[-1], statistics.mean(late_gaps))]
assert in_words == ["-0.53", "0.85", "0.84", "0.36"]

# %% [markdown]
# 2. (Easy, 5 minutes.) Suppose that the report had printed only every second line (`val[n][::2]`).
#    Which comparison changes, that of the best steps or that of the last?

# %% [markdown] tags=["hint"]
# Of 21 evaluations this keeps the first, third, … and so the last one.

# %% [markdown] tags=["answer"]
# That of the best, because the best is a minimum over what was looked at. Here it changes with
# twelve layers, and not with one, whose lowest value is among those kept. So a tie, 0.002 nats
# apart, becomes a difference of 0.020. The last values stay.

# %% tags=["answer"]
for n in (1, 12):
    fewer = val[n][::2]
    print(f"{names[n]:9} best {min(val[n]):.4f} → {min(fewer):.4f},", end=" ")
    print(f"last {val[n][-1]:.4f} → {fewer[-1]:.4f}")
    assert fewer[-1] == val[n][-1]
assert min(val[1][::2]) == min(val[1])
assert round(min(val[12][::2]) - min(val[1][::2]), 3) == 0.020

# %% [markdown]
# 3. (Hard, 10 minutes.) We trained twelve layers three times ourselves, on problems of ours. How
#    many seeds would you need for a 95 % interval of ± 0.1, if accuracies scatter as they do there?
#    `[run["accuracy"] for run in results.runs("main-job", n_layers=12)]` has them.

# %% [markdown] tags=["hint"]
# The half width is t · s / √n. Take s from the three, and look for the first n that is enough;
# `scipy.stats.t.ppf(0.975, n - 1)` is the t.

# %% [markdown] tags=["answer"]
# Dozens. And from three runs, s itself is known only roughly.

# %% tags=["answer"]
s = statistics.stdev(run["accuracy"] for run in results.runs("main-job", n_layers=12))
n = next(n for n in range(2, 999) if student.ppf(0.975, n - 1) * s / math.sqrt(n) <= 0.1)
print(f"standard deviation {s:.2f}: {n} seeds")
assert 24 <= n < 99
