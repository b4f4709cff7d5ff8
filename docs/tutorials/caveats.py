# %% [markdown]
# # Caveats: the controls
#
# **A deeper model has more than depth: more parameters, and more room to learn text by heart. With
# the same parameters, at equal steps and at equal time, one layer looped twelve times answered more
# than one layer. On new text, deeper models predict a little better, if one stops in time.** You
# will learn which control runs tell these things apart.
#
# The report compared one layer with twelve. Twelve have **depth**: what one look finds can direct
# the next. They also have 12 times the **parameters** in their layers, and with these they can
# **learn more text by heart**. A lower training loss could come from any of the three. The article
# proposes two controls: a single layer widened until it has as many parameters, and a sweep over 1,
# 2, 4, 8 and 12 layers. We did both, and a third with the depth but not the parameters: one layer
# looped, as in the [Universal Transformer](https://arxiv.org/abs/1807.03819).
#
# ## Depth or parameters?
#
# Every model is scored on 600 held-out problems: chains of sums, lookups in a ring, and orderings
# of letters, with one to three steps that it writes down before it answers. All train for 800 steps
# on the same problems.

# %%
import itertools
import math
import statistics

import matplotlib.pyplot as plt

from minidepth_lab.measure import judge, results
from minidepth_lab.show import figures
from minidepth_lab.studies import budget, depth, reread
from minidepth_site import exercises, widgets

runs = depth.stored()  # {model: its five runs}
rows = []
for model, found in runs.items():
    mean, half = results.interval([run["accuracy"] for run in found])
    size, layers = f"{found[0]['params_total']:,}", found[0]["depth"]
    rows.append((model, size, layers, f"{mean:.3f} ± {half:.3f}"))
widgets.table(("model", "parameters", "depth", "accuracy"), rows)

# %%
figure, axes = plt.subplots(figsize=(4.6, 3.8))
for x, (model, found) in enumerate(runs.items()):
    values = [run["accuracy"] for run in found]
    figures.draw_dots(axes, x, values, figures.color_of(model))
guess = found[0]["guess"]
axes.axhline(guess, color="C5", linestyle=":")
axes.annotate("guessing", (3.6, guess - 0.02), ha="center", va="top")
short = [model.replace(", ", ",\n").replace("wide ", "wide\n") for model in runs]
axes.set_xticks(range(len(runs)), short)
axes.set(ylabel="accuracy on 600 held-out problems", ylim=(-0.03, 1.1))
axes.set_title("twelve layers answer most; no wide layer\nreaches even their lowest run")
plt.show()

# %% [markdown]
# What to see: twelve layers answer most, one layer looped twelve times comes next, and no wide
# layer reaches the lowest run of twelve layers. Each dot is one run, with five seeds per model;
# beside the dots are their mean and its 95 % interval.

# %% [markdown]
# - **Depth seems to help, with the same parameters, at equal steps.** Each looped run answers more
#   than each run of one layer.
# - **Parameters alone did not do it.** None of the ten runs of a wide layer reaches the lowest of
#   twelve layers. (*Tuned* is one other setting, with which it is trained better.)
# - **Perhaps depth and parameters do more together.** Twelve layers answer 0.30 more than the
#   looped layer, which was not tuned here.
#
# **These are hints.** With five seeds no comparison of ten can be below 0.05 once [p is
# corrected](6_how_would_you_know.md#is-it-only-luck); six seeds could.

# %% [markdown] tags=["details"]
# Every pair of models. *95 %* is the interval of the difference; where the runs of two models rise
# and fall together by seed, it is taken from the five differences, and the pair has a star. *p* is
# from an exact permutation test, and *Holm* is that p, corrected for ten comparisons.

# %% tags=["hide", "details"]
one, loop, deep = "1 layer", "1 layer, 12 times", "12 layers"
wide, tuned = "1 wide layer", "1 wide layer, tuned"
called = {one: one, wide: "wide", tuned: "tuned", loop: "looped", deep: deep}
pairs = list(itertools.combinations(called, 2))
table = {}  # {(metric, model, other model): mean, low, high, p, corrected p}


def compare(metric):
    """Show every pair of models in `accuracy` or `val_loss`."""
    values = {m: [run[metric] for run in found] for m, found in runs.items()}
    ps = [judge.permutation(values[b], values[a]) for a, b in pairs]
    rows = []
    for (a, b), p, corrected in zip(pairs, ps, judge.holm(ps)):
        gap, low, high, how = widgets.gap_interval(values[b], values[a])
        table[metric, b, a] = gap, low, high, p, corrected
        interval = f"{low:+.2f} to {high:+.2f}"
        numbers = f"{gap:+.2f}", interval, f"{p:.4f}", f"{corrected:.3f}"
        name = f"{called[b]} − {called[a]}{' *' if how == 'paired' else ''}"
        rows.append((name, *numbers))
    widgets.table(("in " + metric, "mean", "95 %", "p", "Holm"), rows)


compare("accuracy")

# %% [markdown]
# ## At equal time
#
# A step of the looped layer costs what one of twelve layers costs. So in [Equal
# time](7_equal_time.md) each model had as much CPU time, and all had the settings of twelve layers.
# Here the looped layer and the wide one have settings of their own, and six fresh seeds each. The
# table counts the runs that learn a kind of problem:

# %% tags=["hide"]
families = ("lookup", "order", "chain")
tuned_runs = {name: judge.named_runs("budget-tuned")[name] for name in (loop, wide)}
rows = []
for name, found in tuned_runs.items():
    counts = [sum(run["accuracy_by_family"][each] >= 0.9 for run in found) for each in families]
    shares = [run["accuracy"] for run in found]
    rows.append([name, *counts, f"{min(shares):.2f} to {max(shares):.2f}"])
widgets.table(["tuned", *families, "accuracy"], rows)

# %% [markdown]
# **Most of what the looped layer lacked was settings.** With initial weights of half the size it
# learns lookups and orderings in every run. Each run is above every run of one layer without loops,
# whose own settings, tuned as well, stayed. **So here depth helps, at equal time and equal
# parameters.** (We had not named that comparison before.) Two layers of their own answer still
# more.

# %% [markdown] tags=["details"]
# **The tuning.** Pairs of a learning rate and a size of the initial weights, one run each for the
# same CPU time, by validation loss on problems taken out of training. One layer and twelve kept the
# pair that they had.

# %% tags=["hide", "details"]
budget.show_tried()

# %% [markdown]
# ## More layers, more right answers?


# %%
def family(run, name):
    """A run's accuracy on a family: the mean of one, two and three steps."""
    shares = run["accuracy_by_problem"]
    return statistics.mean(shares[f"{name} {k}"] for k in (1, 2, 3))


by_depth = depth.swept()

# %%
_, first = plt.subplots(figsize=(3.4, 3.4))
_, second = plt.subplots(figsize=(3.4, 3.4))
for layers, found in by_depth.items():
    values, color = [run["accuracy"] for run in found], figures.color_of(f"{layers} layers")
    first.plot([layers] * len(found), values, "o", color=color, alpha=0.6)
options = dict(xlabel="layers", xticks=list(by_depth), ylim=(0, 1.03))
first.set(title="deeper models answer more", ylabel="accuracy, all problems", **options)
by_family = {}
for name, color in figures.FAMILY_COLORS.items():
    shares = [[family(run, name) for run in found] for found in by_depth.values()]
    by_family[name] = shares
    means = [*map(statistics.mean, shares)]
    second.plot(list(by_depth), means, "o-", color=color)
    figures.name_end(second, 12, means[-1], name, color, {"chain": 7, "order": -7}.get(name, 0))
second.set(title="some runs with 8 and 12\nlayers learn chains", xlim=(0.4, 16.5), **options)
second.set_ylabel("mean accuracy of a family")
plt.show()

# %% [markdown]
# What to see: deeper models answer more in the mean, and two layers already answer more than one.
# Chains are answered (above 0.9) in three of five runs with eight layers, in three with twelve, and
# in none with fewer. In the first panel each dot is one run; the second has the means of five seeds
# for each family.

# %% [markdown]
# A run learns a family rather suddenly, at a time that depends on luck. So a mean says how often a
# model gets there within 800 steps, not how good a depth is in the end. With more steps and another
# recipe [one layer learns chains as well](7_equal_time.md).
#
# ## The same text, twenty times
#
# In the [report's log](2_logs.md) one layer and twelve read the same 840 conversations twenty
# times. The deeper one ended with the lower loss on the text that it read, and the *higher* one on
# new text. Is that what depth does? We made a small copy, with five seeds of each depth: 840 worked
# problems of GSM8K ([Cobbe et al. 2021](https://arxiv.org/abs/2110.14168)), width 64.

# %%
stored = reread.stored(**reread.FIRST)  # {(times read, model): its five runs}
read_20 = reread.models_read(stored, 20)
finding = "more layers end lower on both texts"
reread.draw_depths(read_20, f"read twenty times:\n{finding}")

# %% [markdown]
# What to see: read twenty times, more layers end lower on both texts. On new text twelve layers are
# 0.2 nats per token below one, and eight nearly as low. Each dot is one of five runs; lines join
# the means, with their 95 % intervals.

# %% [markdown]
# (All have one learning rate, chosen for twelve layers. With a rate of its own one layer closes a
# third of the gap.) So our deep models do not do what the report's did. But it matters how often
# one reads. Other runs read a quarter of these problems eighty times, which is as many steps:

# %%
reread.draw_times(stored, 80, "stop early, or get worse", 0, 6.3)

# %% [markdown]
# What to see: read eighty times, both models predict new text best in the first quarter of the
# training, and then worse and worse, while they learn their text by heart. Solid lines are new
# text, dotted ones training text; each line is one of five runs.

# %% tags=["hide"]
one, twelve = "1 layer", "12 layers"
rows, mean = [], {}
for times in (20, 40, 80):
    for model in (one, twelve):
        for key in ("train_loss_eval", "val_loss", "best_val_loss"):
            mean[times, model, key] = statistics.mean(run[key] for run in stored[times, model])
        shown = (f"{mean[times, model, key]:.2f}" for key in ("val_loss", "best_val_loss"))
        rows.append([times, model, f"{mean[times, model, 'train_loss_eval']:.2f}", *shown])
widgets.table(["times read", "model", "its own text", "new text, at the end", "at its best"], rows)

# %% [markdown]
# **At the end of eighty readings twelve layers are worse than one on new text; stopped at their
# best, they are better, in every run.** So "depth hurts here" would say only that nobody stopped.
# The report's two curves have this shape.
#
# ## At the same fit
#
# Is a deeper model better where both fit their own text equally well? A falling learning rate
# lowers the loss by itself, so these runs keep theirs constant:

# %%
constant = judge.named_runs("reread-constant")
_, axes = plt.subplots(figsize=(4.6, 4.2))
ends_at = {one: (3.35, 3.9), "8 layers": (3.1, 3.42), twelve: (3.45, 3.5), loop: (3.75, 3.72)}
for model, place in ends_at.items():
    reread.draw_fit(axes, model, constant[model])
    axes.annotate(model, place, color=figures.color_of(model), ha="center")
axes.set(xlabel="loss on training text (nats per token)", xlim=(4.2, 3.0))
axes.set(ylabel="loss on new text (nats per token)", ylim=(3.35, 4.4))
axes.set_title("at a constant rate, too, deeper models\npredict new text better at the same fit")
plt.show()

# %% [markdown]
# What to see: at the same loss on training text eight layers, twelve and the layer looped twelve
# times, which lie on one another, are below one layer on new text. The looped layer does not get as
# far to the right. Each line is one run, from upper left to a dot at its end.

# %% [markdown]
# **At the same fit, at nearly the same step and at the same rate, twelve layers predict new text
# better than one, in every run**, by 0.07 nats per token. That twelve are better than eight is not
# shown. It need not be depth alone: they have more parameters. The looped layer, which has not, is
# ahead of one layer by 0.05, but has read the text more often by then. The [report's
# pair](report.md), run again at its size, agrees on twelve layers against one.
#
# **Predicting new text better is not yet reasoning**: one run of each, asked the 160 held-out
# problems, solved one of them and two.
#
# ## What the word PROVED would need
#
# The report ends with "HYPOTHESIS: PROVED". Such a claim would need answers that are checked, on
# held-out problems; several seeds and an interval; a control for parameters; each model at its own
# best learning rate; and a prediction written down before the runs. The logs had none of these, and
# the article names some of them as missing.

# %%
assert f"{table['accuracy', loop, one][1]:.3f}" == "0.085"  # above 0
assert f"{table['accuracy', deep, loop][0]:.2f}" == "0.30"
assert f"{min(corrected for *_, corrected in table.values()):.3f}" == "0.079"
assert 10 * 2 / math.comb(12, 6) < 0.05 < 10 * 2 / math.comb(10, 5)
accuracy = {m: [run["accuracy"] for run in found] for m, found in runs.items()}
assert max(accuracy[wide] + accuracy[tuned]) < min(accuracy[deep])
assert min(accuracy[loop]) > max(accuracy[one]) and len(accuracy[loop]) == 5
timed = budget.stored()
equal = {m: [run["accuracy"] for run in timed[m]] for m in (one, loop)}
low, high = widgets.gap_interval(equal[loop], equal[one])[1:3]
best = {name: [run["accuracy"] for run in found] for name, found in tuned_runs.items()}
two_layers = [run["accuracy"] for run in timed["2 layers"]]
assert max(equal[one]) < min(best[loop]) <= max(best[loop]) < min(two_layers) and low < 0 < high
for run in tuned_runs[loop]:
    last = run["accuracy_by_family"]
    assert min(last["lookup"], last["order"]) > 0.98 and 0.5 < last["chain"] < 0.82
assert max(run["accuracy_by_family"]["lookup"] for run in tuned_runs[wide]) < 0.9
tried = budget.tried()
settings = {name: min(found, key=found.get) for name, found in tried.items()}
assert settings[loop] == (0.003, 0.05) and settings[wide] == (0.001, 0.05)
chains = [sum(share > 0.9 for share in row) for row in by_family["chain"]]
assert chains == [0, 0, 0, 3, 3]
assert all(len(found) == 5 for found in [*runs.values(), *by_depth.values()])
assert abs(runs[wide][0]["params_total"] / runs[deep][0]["params_total"] - 1) < 0.02
assert runs[loop][0]["params_total"] == runs[one][0]["params_total"]
assert all(len(its) == 5 for its in stored.values())
assert f"{mean[20, twelve, 'val_loss'] - mean[20, one, 'val_loss']:.1f}" == "-0.2"
for run in stored[80, one] + stored[80, twelve]:
    lowest = min(run["log"], key=lambda row: row["val_loss"])
    assert lowest["step"] <= run["steps"] / 4
ends = {(model, key): [run[key] for run in stored[80, model]] for model in (one, twelve)
        for key in ("val_loss", "best_val_loss")}  # fmt: skip
assert min(ends[twelve, "val_loss"]) > max(ends[one, "val_loss"])
assert max(ends[twelve, "best_val_loss"]) < min(ends[one, "best_val_loss"])
own_rate = [run["val_loss"] for run in read_20["1 layer, learning rate 0.008"]]
assert f"{statistics.mean(own_rate):.2f}" == "3.41" and min(own_rate) > 3.3
assert f"{mean[20, one, 'val_loss']:.2f} {mean[20, twelve, 'val_loss']:.2f}" == "3.47 3.29"
at_constant = reread.at_fit(constant, 3.27)
assert max(at_constant[twelve] + at_constant["8 layers"]) < min(at_constant[one])
assert f"{statistics.mean(at_constant[one]) - statistics.mean(at_constant[twelve]):.2f}" == "0.07"
assert judge.permutation(at_constant[twelve], at_constant["8 layers"]) > 0.05
shared_fit, at_shared = reread.equally_fitted(constant)  # the lowest fit that all runs reach
assert max(at_shared[loop]) < min(at_shared[one])
assert f"{statistics.mean(at_shared[one]) - statistics.mean(at_shared[loop]):.2f}" == "0.05"
told = " ".join((results.RESULTS / "reread" / "notes.md").read_text("utf-8").split())
assert "one layer solved one of them, twelve layers two" in told

# %% tags=["hide", "wrong"]
widgets.wrong("reread", "reread-constant", "budget-tuned")

# %% [markdown]
# ## Exercises
#
# 1. (Medium, 5 minutes.) Suppose you compare two models in one planned exact test, two-sided, with
#    six runs each. How small can p become?

# %% tags=["exercise"]
least_p = ...  # a number, or a formula with math.comb

# %% [markdown] tags=["hint"]
# In how many ways can the twelve runs be divided into two groups of six, and how many of these ways
# are as extreme as a pair of groups that do not overlap?

# %% [markdown] tags=["answer"]
# `math.comb(12, 6)` is 924, and two ways are the most extreme: all high runs in the one group, or
# all in the other. Corrected for ten comparisons that is still below 0.05, which five seeds cannot
# reach. (A sign-flip test of six *paired* differences can reach only 2/64.)

# %% tags=["answer"]
least_p = 2 / math.comb(12, 6)


# %% tags=["check"]
@exercises.check
def the_least_p_of_six_against_six():
    ways = math.comb(12, 6)
    assert not math.isclose(least_p, 1 / ways), "that is one-sided: either model may be the better"
    assert not math.isclose(least_p, 2 / 2**6), "that is for six differences, not for two groups"
    assert not math.isclose(least_p, 2 / math.comb(10, 5)), "that is for five runs each"
    assert math.isclose(least_p, 2 / ways), f"{least_p:.4g} is not the least p"


# %% [markdown]
# 2. (Medium, 5 minutes.) `--match_params 12` widens a layer until all of its parameters are as many
#    as those of twelve layers; with `--match blocks`, only those in the blocks. Which is the fairer
#    control, and for which claim?

# %% [markdown] tags=["answer"]
# If the claim is about what a file of a given size can do, the total is fair. If it is about what
# happens between embedding and head, the blocks are: a wider model has a wider table of words, too,
# and spends some of its parameters there.

# %% [markdown]
# 3. (Medium, 10 minutes.) After how many readings is the loss on new text lowest, when a text is
#    read eighty times? What would have been saved by stopping there?

# %% [markdown] tags=["hint"]
# A row of `run["log"]` has its `step` and its `epoch`, the reading.

# %% [markdown] tags=["answer"]
# After the 16th reading with one layer, and the 20th with twelve. Three quarters of the training
# would have been saved, and new text would have been predicted better, by 0.8 nats per token with
# one layer and 1.5 with twelve.

# %% tags=["answer"]
for model, reading, saved in ((one, 16, "0.8"), (twelve, 20, "1.5")):
    for run in stored[80, model]:
        assert min(run["log"], key=lambda row: row["val_loss"])["epoch"] == reading
    gain = mean[80, model, "val_loss"] - mean[80, model, "best_val_loss"]
    print(f"{model}: reading {reading} of 80; {gain:.2f} nats lower than at the end")
    assert f"{gain:.1f}" == saved
