# %% [markdown]
# # Reading the logs
#
# **You will learn** to read a training log as evidence: what the loss of one batch can say, why
# "best" and "last" are different claims, and how to check a text's sentences against its own
# numbers.<br>
# **Time** 5 to 15 s on two CPU cores; nothing is trained.<br>
# **Needs** Matplotlib and SciPy; no GPU, no network.
#
# **What the two logs support:** in one run each, the model with twelve layers fitted the training
# text better than the model with one, and at the last step it predicted new text worse, by 0.13
# nats per token. The rest of this page shows why they support no more.
#
# Two texts describe the same two runs, one of a model with one layer and one with twelve
# ([sources](../reference/citing.md)). One is a *report*, which credits Costikoooo & CompactAI and
# printed 21 log lines for each run; the other is an *article*. The lines are in
# [results/published](../reference/published.md), and every number below is computed from them. The
# article states some of what follows as its own caveats: a single seed, little data, and more
# parameters in the deeper model.

# %%
import math
import statistics

import matplotlib.pyplot as plt
from scipy.stats import t as student

from minidepth_lab import figures, results

logs = {n: results.published(f"report_log_{n}_layers") for n in (1, 12)}
steps = [row["step"] for row in logs[1]]
train = {n: [row["train_loss"] for row in log] for n, log in logs.items()}
val = {n: [row["val_loss"] for row in log] for n, log in logs.items()}

# %%
names = {1: "1 layer", 12: "12 layers"}
lowest_at = {n: steps[val[n].index(min(val[n]))] for n in names}
worse = val[12][-1] - val[1][-1]
figure, (top, low) = plt.subplots(2, 1, figsize=(4.6, 6.4), sharex=True, height_ratios=(3, 2))
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
low.set(xlabel="optimizer step", ylabel="validation loss", ylim=(5.65, 6.1))
low.set_title(
    f"with 12 layers it turns at step {lowest_at[12]}\nand ends {worse:.2f} nats above 1 layer"
)
plt.show()

# %% [markdown]
# What to see: train loss goes on falling, but validation loss turns and rises, more with twelve
# layers than with one. It is lowest at step 275 with twelve layers and at step 350 with one (open
# squares). The train lines jump about; the validation lines do not. The lower panel shows the two
# validation lines alone, enlarged; the scale of the upper panel is logarithmic. There is one run
# per depth (n = 1).

# %% [markdown]
# ## One batch is noisy
#
# The train column is the loss of a single batch. How noisy is that? Take the second half of each
# run, where the curve is nearly straight, fit a straight line, and see how far the points scatter
# about it.


# %%
def scatter(values):
    """Standard deviation about a straight line through the values."""
    x = list(range(len(values)))
    slope, start = statistics.linear_regression(x, values)
    residuals = [y - (start + slope * i) for i, y in zip(x, values)]
    return math.sqrt(sum(r * r for r in residuals) / (len(values) - 2))


late = slice(10, None)  # steps 250 to 500, 11 values
for n in (1, 12):
    both = scatter(train[n][late]), scatter(val[n][late])
    print(f"layers {n:2}: train {both[0]:.3f}, val {both[1]:.3f} nats")
final_gap = train[1][-1] - train[12][-1]
ratio = final_gap / math.hypot(*(scatter(train[n][late]) for n in (1, 12)))
print(f"final train gap {final_gap:.2f} nats,", end=" ")
print(f"{ratio:.1f} times the scatter of such a difference")

# %% [markdown]
# So the headline, a final train loss of 3.77 against 2.93, compares two single noisy values. The
# noise in each is a quarter to over a third of the gap. If we average the
# last five evaluations instead, the gap is smaller:

# %%
means = {n: statistics.mean(train[n][-5:]) for n in (1, 12)}
gap5 = means[1] - means[12]
last = {n: train[n][-1] for n in (1, 12)}
print(f"last value: {last[1]:.2f} against {last[12]:.2f}, gap {final_gap:.2f}")
print(f"mean of five: {means[1]:.2f} against {means[12]:.2f}, gap {gap5:.2f}")

# %% [markdown]
# The direction stays: this run of twelve layers fits the training text better. The size does not:
# the last values differ by 22 % (0.84 of 3.77), the means of five by 11 % (0.44 of 3.94). All of
# these train losses were measured with dropout on, which raises them by an amount that nobody has
# measured.
#
# ## Best is not last
#
# Both texts call the validation losses "essentially tied (Δ < 0.005)". That compares the *best*
# step of each run, while the train losses of the same table are those of the *last* step.

# %%
for what, pick in (("best", min), ("last", lambda values: values[-1])):
    a, b = pick(val[1]), pick(val[12])
    at = [steps[val[n].index(value)] for n, value in ((1, a), (12, b))]
    print(f"{what}: {a:.4f} at step {at[0]}, {b:.4f} at step {at[1]};", end=" ")
    print(f"12 minus 1: {b - a:+.4f}")

# %% [markdown]
# At the end the deeper model is 0.13 nats *worse* on text that it has not seen. And if
# you report the best of 21 evaluations, you use the validation set twice: to choose the value, and
# to report it.
# To call two such best values a tie, one would have to know how much a best value varies from seed
# to seed. There was one seed.
#
# ## The gap between train and validation

# %%
figure, axes = plt.subplots(figsize=(4.6, 3.2))
gaps = {n: [v - t for v, t in zip(val[n], train[n])] for n in names}
for n, marker in ((1, "o"), (12, "s")):
    axes.plot(steps, gaps[n], f"{marker}-", color=figures.color_of(n))
    figures.name_end(axes, 500, gaps[n][-1], names[n], figures.color_of(n))
axes.axhline(0, color="C5", linestyle="--")
axes.set(xlabel="optimizer step", ylabel="validation minus train loss\n(nats per token)")
axes.set(xlim=(-10, 660), xticks=range(0, 501, 100))
axes.set_title(
    f"the gap grows to {gaps[1][-1]:.2f} nats with 1 layer,\nand to {gaps[12][-1]:.2f} with 12"
)
plt.show()

# %% [markdown]
# What to see: at first the gap is small or negative, then it grows, to 1.95 nats with one layer and
# 2.92 with twelve. The model predicts text that it has seen ten to twenty times far better than new
# text. (Whether ten or twenty, the report's numbers leave open: see the table below.) A lower train
# loss with a *higher* validation loss is what learning by heart looks like; nothing in these
# numbers calls for reasoning as an explanation. [The same text, twenty times](same_text.md)
# makes such curves with five seeds. There is one run per depth (n = 1), and each train loss is of
# one batch.

# %% [markdown]
# ## Perplexity
#
# *Perplexity* is e to the loss: a choice among so many equally likely words would be as hard.

# %%
for n, log in logs.items():
    ends = [math.exp(log[-1][key]) for key in ("train_loss", "val_loss")]
    print("{:2} layers: train {:.1f}, validation {:.0f}".format(n, *ends))

# %% [markdown]
# The report gives the first of these numbers, 43.5 and 18.7, and not the second, which is twelve
# layers' loss: on text that they have not read, one layer is less perplexed.
#
# ## Sentences against numbers

# %%
below = [s for s, a, b in zip(steps, train[1], train[12]) if b < a]
above = [s for s, a, b in zip(steps, train[1], train[12]) if b > a]
print("train loss of 12 layers against 1")
print("lower at steps ", *below)
print("higher at steps", *above)
lowest = min(train[1])
at = steps[train[1].index(lowest)]
print(f"1 layer, lowest train loss {lowest:.2f}, at step {at}")

# %% [markdown]
# | the texts say | the log says |
# |---|---|
# | the curves part at step 50 for good | one layer is lower at 5 of 19 points since, up to 300 |
# | one layer stops at about 3.8 | means of five values fall to the end: 4.19, then 3.94 |
# | validation is tied, Δ < 0.005 | at the best steps; at the last twelve layers lose by 0.13 |
# | 32 % more parameters | in total; in the layers [twelve times](0_model.md) as many |
# | about 420,000 tokens, 20 epochs | 25 steps × 16 × 512 tokens are 204,800 per epoch |
# | the hypothesis is confirmed | one seed, no task with checked answers, parameters vary too |
#
# ## Our own runs beside them
#
# Our runs have what the report lacked: three seeds per depth, and 600 held-out problems to answer
# (about 480 of them are different, and some are training problems in other words). They were made
# on generated problems, with the laptop preset as it was at the time; today `--preset depth` has
# those settings. They differ from the report's runs in nearly everything (text, size, 800 steps, a
# loss on the answers alone), so do not compare their numbers with the report's.

# %%
own = results.by(results.runs("main-job"), "n_layers")
figure, axes = plt.subplots(figsize=(4.6, 3.6))
for n, marker in ((1, "o"), (12, "s")):
    color = figures.color_of(n)
    for seed, row in enumerate(own[n]):
        x, y = zip(*((e["step"], e["val_loss"]) for e in row["log"]))
        axes.plot(x, y, f"{marker}-", color=color)
        if n == 12:
            figures.name_end(
                axes, x[-1], y[-1], f"12 layers, seed {seed}", color, up=(4, -4, 0)[seed]
            )
    if n == 1:
        figures.name_end(axes, x[-1], y[-1], "1 layer, 3 seeds", color, up=4)
axes.set(yscale="log", xlim=(-10, 1400), xticks=range(0, 801, 200))
axes.set_yticks(
    [0.003, 0.01, 0.03, 0.1, 0.3, 1, 3], ["0.003", "0.01", "0.03", "0.1", "0.3", "1", "3"]
)
axes.minorticks_off()
axes.set(xlabel="optimizer step", ylabel="validation loss\n(nats per token of the answer)")
ends = {n: [row["val_loss"] for row in own[n]] for n in own}
apart = {n: max(ends[n]) / min(ends[n]) for n in ends}
axes.set_title(
    f"1 layer: seeds end a factor of {apart[1]:.2f} apart;\n12 layers: a factor of {apart[12]:.0f}"
)
plt.show()

# %% [markdown]
# What to see: with one layer the loss ends at nearly the same value for every seed. With twelve
# layers two seeds end near 0.003 and one at 0.13: a single run could have told either story. There
# are three seeds per depth.

# %%
for name in ("val_loss", "accuracy"):
    for n in (1, 12):
        values = [row[name] for row in own[n]]
        mean, half = results.interval(values)
        print(f"{name:8} layers {n:2}: {', '.join(f'{v:.3f}' for v in values)}; "
              f"mean {mean:.3f} ± {half:.3f}")  # fmt: skip
better = [b["accuracy"] - a["accuracy"] for a, b in zip(own[1], own[12])]
gap, half = results.interval(better)
low, high = gap - half, gap + half
print(f"accuracy, 12 minus 1: {gap:.2f},", end=" ")
print(f"95 % interval {low:.2f} to {high:.2f} (n = 3)")

# %% [markdown]
# The interval excludes 0, but it is so wide that it says little more. It also treats the three
# differences as normally distributed, which they cannot be exactly, because an accuracy lies
# between 0 and 1. And twelve layers have more parameters here too, so a difference is not yet a
# difference *of depth*. [One look against many](3_one_look_or_two.md) shows the kind of control
# that
# can tell them apart.

# %%
assert all(0.2 < scatter(train[n][late]) < 0.38 for n in (1, 12)) and gap5 < final_gap
assert (steps[val[1].index(min(val[1]))], steps[val[12].index(min(val[12]))]) == (350, 275)
assert round(min(val[12]) - min(val[1]), 4) == 0.0018
assert round(val[12][-1] - val[1][-1], 4) == 0.1255
assert [s for s in above if s >= 50] == [100, 175, 200, 225, 300]
assert len([s for s in steps if s >= 50]) == 19
assert [f"{statistics.mean(train[1][i : i + 5]):.2f}" for i in (11, 16)] == ["4.19", "3.94"]
assert lowest == train[1][-1]
assert [round(val[n][-1] - train[n][-1], 2) for n in (1, 12)] == [1.95, 2.92]
assert gap - half > 0 and half > 0.5

# %% [markdown]
# ## Exercises
#
# 1. Repeat the table of best and last with every second log line left out, from the second on
#    (`val[n][::2]`). Which of the two changes?

# %% [markdown] tags=["hint"]
# Of 21 evaluations this keeps the first, third, … and so the last one.

# %% [markdown] tags=["answer"]
# The best can change, because it is a minimum over what was looked at. Here it does with twelve
# layers, 5.6913 → 5.7092, and not with one, whose lowest value is among those kept. So a tie, 0.002
# nats apart, becomes a difference of 0.020. The last values stay.

# %% tags=["answer"]
for n in (1, 12):
    fewer = val[n][::2]
    print(f"{names[n]:9} best {min(val[n]):.4f} → {min(fewer):.4f},", end=" ")
    print(f"last {val[n][-1]:.4f} → {fewer[-1]:.4f}")
    assert fewer[-1] == val[n][-1]
assert min(val[1][::2]) == min(val[1])
assert round(min(val[12][::2]) - min(val[1][::2]), 3) == 0.020

# %% [markdown]
# 2. How many seeds would you need for a 95 % interval of ± 0.1, if accuracies scatter as they do in
#    our three runs of twelve layers?

# %% [markdown] tags=["hint"]
# The half width is t · s / √n. Take s from `own[12]`, and look for the first n that is enough;
# `scipy.stats.t.ppf(0.975, n - 1)` is the t.

# %% [markdown] tags=["answer"]
# Dozens. And from three runs, s itself is known only roughly.

# %% tags=["answer"]
s = statistics.stdev(row["accuracy"] for row in own[12])
n = next(n for n in range(2, 999) if student.ppf(0.975, n - 1) * s / math.sqrt(n) <= 0.1)
print(f"standard deviation {s:.2f}: {n} seeds")
assert 24 <= n < 99

# %% [markdown]
# 3. Which of the statements on the left of the table above could a second seed of each model have
#    saved? And what would the last one need?

# %% [markdown] tags=["answer"]
# None. The first three are about these two runs, whatever other runs do, and the next two are
# counted. The last one needs several seeds, but also answers that are checked, and a model that has
# the depth without the parameters: see [the next lesson](caveats.md).
