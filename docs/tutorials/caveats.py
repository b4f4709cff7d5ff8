# %% [markdown]
# # Caveats: depth, parameters, memorisation
#
# **At equal steps, one layer looped twelve times answered more than one layer in every run, with no
# more parameters. But five seeds cannot decide ten comparisons, and at equal time the looped layer
# was ahead only with settings of its own.** This page is further reading to [the logs](2_logs.md).
# It says what a deeper model has besides depth, which control runs tell these things apart, and
# what ours found.
#
# The report compared one layer with twelve. Twelve have three things that one does not:
#
# - **depth**: what one look finds can direct the next,
# - **parameters**: there are 12 times as many in the blocks,
# - **memorisation**: with those parameters they can learn more of the training text by heart.
#
# A lower training loss could come from any of the three. The article admits as much, and proposes
# two controls: a single layer widened until it has as many parameters, and a sweep over 1, 2, 4, 8
# and 12 layers. Our study does both, and adds a third, with the depth but not the parameters: one
# layer looped, as in the Universal Transformer (Dehghani et al. 2018, [arXiv
# 1807.03819](https://arxiv.org/abs/1807.03819)).
#
# Every model is scored on 600 problems held out from training, of three families: chains of sums
# modulo ten, lookups in a ring of six letters, and orderings of letters. Each takes one to three
# steps, which the model writes down before it answers. All train for 800 steps on the same
# problems.

# %%
import itertools
import math
import statistics

import matplotlib.pyplot as plt
from scipy.stats import ttest_rel

from minidepth_lab.measure import judge, results
from minidepth_lab.show import figures
from minidepth_lab.studies import budget, depth
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
# The model called tuned is there for fairness. With the learning rate of the others the wide layer
# is badly trained: its loss is far above that of the narrow one. At a third of that rate, with
# initial weights of half the size, it does better. "Tuned" says too much: this was the only other
# setting that we tried, and for the other models we tried none.
#
# ## Ten differences, five seeds
#
# Below is every pair of models.
#
# - *95 %* is the interval of the difference. Where the runs of two models rise and fall together by
#   seed (a correlation of 0.5 or more), it is taken from the five differences, and the pair has a
#   star; otherwise from the two groups (Welch's).
# - [*p*](6_how_would_you_know.md#is-it-only-luck) is from an exact permutation test: divide the ten
#   runs into two groups of five in every way, and count how often the means differ at least this
#   much.
# - *Holm* is that p, corrected for ten comparisons.

# %%
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

# %% [markdown] tags=["details"]
# The same for the validation loss, where lower is better:

# %% tags=["details"]
compare("val_loss")

# %% [markdown]
# **Once corrected, no p is below 0.05, in accuracy or in loss.** With five seeds none could be: of
# the 252 ways to divide ten runs, two are the most extreme, and ten times 2/252 is 0.079. So five
# seeds can decide one comparison that was named before the runs, but not ten. Six seeds could.
# Eight of the ten pairs reach the least p in accuracy, and seven in loss: there the runs of the two
# models do not overlap at all.
#
# The comparison that matters most to us is *looped − 1 layer* in accuracy. We had not named it
# before the runs, so treat its p as exploratory. In loss the runs of the two overlap.
#
# The interval and p can disagree. Every looped run answers more than every tuned wide one, so p is
# as small as it can be. Yet the interval of this +0.12 contains 0, because Welch's method assumes
# that runs scatter like a bell curve.
#
# The five looped runs also differ in what they learned:


# %%
def family(run, name):
    """A run's accuracy on a family: the mean of one, two and three steps."""
    shares = run["accuracy_by_problem"]
    return statistics.mean(shares[f"{name} {k}"] for k in (1, 2, 3))


looped = runs[loop]
rows = []
for run in looped:
    shares = [f"{family(run, name):.2f}" for name in figures.FAMILY_COLORS]
    rows.append((run["seed"], *shares))
widgets.table(("looped, seed", *figures.FAMILY_COLORS), rows)

# %% [markdown]
# What would you have concluded from one run of each model? [Draw one
# seed](6_how_would_you_know.md#draw-one-seed) and see.
#
# ## More layers, more right answers?

# %%
by_depth = depth.swept()
rows = []
for layers, found in by_depth.items():
    mean, half = results.interval([run["accuracy"] for run in found])
    rows.append((layers, f"{mean:.3f} ± {half:.3f}", len(found)))
widgets.table(("layers", "accuracy", "runs"), rows)

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
# Read this as: *with this recipe and this number of steps, this many layers got this far*. A run
# learns a family rather suddenly, at a time that [depends on luck](6_how_would_you_know.md). So a
# mean over these runs says how often a model gets there within 800 steps, not how good a depth is
# in the end. And nothing here was tuned for shallow models. With another recipe, attention alone,
# two layers answer 0.38 to 0.68 of the problems (exercise 4). With more steps and yet another
# recipe, one layer [learns chains as well](7_equal_time.md).
#
# ## What the evidence says
#
# These are hints, not findings: no corrected p is below 0.05. At width 64, on these problems:
#
# - **Depth seems to help, with the same parameters, at equal steps.** Each looped run answers more
#   than each run of one layer. But each of its steps costs what one of twelve layers costs. At
#   [equal CPU time](7_equal_time.md), with other settings, the looped layer is not ahead: -0.116,
#   with an interval from -0.347 to +0.115 (n = 6). With settings chosen for it, all six of its runs
#   are ahead of every run of one layer.
# - **Parameters alone did not do it.** The wide layer has as many as twelve layers, and none of its
#   ten runs, tuned or not, reaches the lowest of twelve layers.
# - **Perhaps depth and parameters do more together.** Twelve layers answer 0.30 more than the
#   looped layer. But part of that may be its training: here it was not tuned, and [at its own
#   best](7_equal_time.md#at-their-own-best), with newer settings, it answers 0.845 to 0.938.
#   (Saunshi et al. 2025, [arXiv 2502.17416](https://arxiv.org/abs/2502.17416), report that on
#   addition a looped layer does about as well as twelve.)

# %% [markdown] tags=["corrected"]
# - We had said that depth *helped*, and that six of the ten differences stay below 0.05 once
#   corrected. That was from paired t-tests.
# - We had said that these runs do not tell whether the looped layer or the tuned wide one is
#   better. That was from a paired interval.
# - We had said that depth and parameters *do* more together, from an uncorrected interval.
# - Our first home page had parameters helping little and depth most. At equal CPU time that was
#   wrong: there two layers do [what twelve do](7_equal_time.md).
# - We had said that learning by heart did not make these differences. These runs cannot rule it
#   out.

# %% [markdown]
# On problems made for the purpose, with predictions written first, the same comparison is sharper:
# [walking the ring](4_walking.md). Nothing here says that it holds for chain-of-thought text that
# people wrote, after longer training, or with another recipe. At the report's size and on such text
# we ran [the wide layer beside twelve](report.md), with three seeds:
# it fits its own text better and predicts new text worse. (There most of what it has more is table
# of words.) All models that were asked answered questions there less often than guessing would.
#
# The test was also easier than [today's](../reference/problems.md): only about 480 of the 600
# problems were different from each other, and some were training problems in other words.
#
# ## Little sign of memorisation
#
# The validation loss is close to the training loss without dropout. Only for the tuned wide layer
# does the interval exclude 0. With so easy a test this cannot rule memorisation out. In the
# report's runs [the two losses part](2_logs.md#third-clue-the-two-losses-part).

# %%
rows, gaps = [], {}
for model, found in runs.items():
    gaps[model] = [run["val_loss"] - run["train_loss_eval"] for run in found]
    mean, half = results.interval(gaps[model])
    rows.append((model, f"{mean:+.3f} ± {half:.3f}"))
widgets.table(("model", "validation minus training loss"), rows)

# %% [markdown]
# ## What the word PROVED would need
#
# The report ends with "hypothesis: PROVED". A claim of that kind would need at least: a task whose
# answers are checked, on problems that were held out; several seeds and an interval; a control for
# parameters; each model at its own best learning rate; more than one size; and a prediction written
# down before the runs. The logs had none of these, and the article names some of them as missing.
# This page has the first three, at one small size, and five seeds were too few for it.

# %%
assert f"{table['accuracy', loop, one][1]:.3f}" == "0.085"  # above 0
mean, low, high, p, _ = table["accuracy", loop, tuned]
assert f"{mean:.2f}" == "0.12" and low < 0 < high and p == 2 / math.comb(10, 5)
assert f"{table['accuracy', deep, loop][0]:.2f}" == "0.30"
assert table["val_loss", loop, one][3] > 0.05
assert f"{min(corrected for *_, corrected in table.values()):.3f}" == "0.079"
least = [metric for (metric, _, _), numbers in table.items() if numbers[3] == 2 / 252]
assert (least.count("accuracy"), least.count("val_loss")) == (8, 7)
for model, each in gaps.items():
    mean, half = results.interval(each)
    assert 0 < mean < 0.0145 and (mean > half) == (model == tuned)
accuracy = {m: [run["accuracy"] for run in found] for m, found in runs.items()}
assert max(accuracy[wide] + accuracy[tuned]) < min(accuracy[deep])
timed = budget.stored()
equal = {m: [run["accuracy"] for run in timed[m]] for m in (one, loop, deep)}
assert [f"{end:+.3f}" for end in widgets.gap_interval(equal[loop], equal[one])[1:3]] == [
    "-0.347",
    "+0.115",
]
own = [run["accuracy"] for run in results.runs("budget-tuned", n_loops=12)]
assert min(own) > max(equal[one]) and min(accuracy[loop]) > max(accuracy[tuned])
assert f"{min(own):.3f} to {max(own):.3f}" == "0.845 to 0.938"
chains = [sum(share > 0.9 for share in row) for row in by_family["chain"]]
assert chains == [0, 0, 0, 3, 3]
assert all(len(found) == 5 for found in [*runs.values(), *by_depth.values()])
assert abs(runs[wide][0]["params_total"] / runs[deep][0]["params_total"] - 1) < 0.02
assert runs[loop][0]["params_total"] == runs[one][0]["params_total"]

# %% [markdown]
# ## Exercises
#
# 1. This page used to judge its ten differences by paired t-tests. Correct these for their number
#    with Holm's method. Which differences in accuracy are below 0.05? And what do these tests
#    assume that the exact test does not?

# %% [markdown] tags=["hint"]
# `scipy.stats.ttest_rel` gives the p of a paired test, and `minidepth_lab.measure.judge.holm()`
# corrects a list of them: the smallest p counts ten times, the next nine times, and so on.

# %% [markdown] tags=["answer"]
# Six of them: twelve layers against one layer and against both wide ones, the loop against one
# layer and against the untuned wide one, and the two wide ones against each other. But only four of
# the ten pairs go together by seed, and a t-test takes differences to scatter like a bell curve,
# which five of them cannot show. The exact test assumes neither, and needs six seeds.

# %% tags=["answer"]
ps = [float(ttest_rel(accuracy[b], accuracy[a]).pvalue) for a, b in pairs]
corrected = dict(zip(pairs, judge.holm(ps)))
for (a, b), p in sorted(corrected.items(), key=lambda item: item[1]):
    print(f"{b:>19} - {a:19}  p {p:.3f}{'' if p < 0.05 else '  not below 0.05'}")
below = {pair for pair, p in corrected.items() if p < 0.05}
assert len(below) == 6 and {(one, loop), (tuned, deep)} <= below
assert (loop, deep) not in below
together = [widgets.gap_interval(accuracy[b], accuracy[a])[3] for a, b in pairs]
assert together.count("paired") == 4
least = {n: 2 / math.comb(2 * n, n) for n in (5, 6)}
for n, p in least.items():
    print(f"{n} seeds: p at least {p:.4f}, times ten {10 * p:.4f}")
assert 10 * least[5] > 0.05 > 10 * least[6]

# %% [markdown]
# 2. Suppose you compare two models in one planned exact test, two-sided, with six runs each. How
#    small can p become?

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
# 3. `--match_params 12` widens a layer until all of its parameters are as many as those of twelve
#    layers; with `--match blocks`, only those in the blocks. Which is the fairer control, and for
#    which claim?

# %% [markdown] tags=["answer"]
# If the claim is about what a file of a given size can do, the total is fair. If it is about what
# happens between embedding and head, the blocks are: a wider model has a wider table of words,
# too, and spends some of its parameters there.

# %% [markdown]
# 4. How much depends on the recipe? The depth tasks of [Depth thresholds](depth_thresholds.md)
#    are learned best by attention alone: no feed-forward part, initial weights of half the size,
#    learning rate 0.002, no weight decay, and a head that does not share its weights with the
#    embedding. `results.runs("depth", d_ff=0)` has models of one, two and four layers, trained in
#    that way on the same problems for the same 800 steps. How far do they get?

# %% [markdown] tags=["answer"]
# Two layers of attention alone, with fewer parameters, answer 0.38 to 0.68 of the problems; two of
# their three runs answer more than any run of two layers above. Four layers answer as many on
# average (0.54 against 0.55); with three seeds the intervals are too wide to tell. But the recipe
# changes the accuracy of a shallow model as much as a few more layers do. [Lesson
# 5](5_writing.md) goes on from here.

# %% tags=["answer"]
attention = results.by(results.runs("depth", d_ff=0), "n_layers")
rows = []
for layers, found in attention.items():
    mean, half = results.interval([run["accuracy"] for run in found])
    total = f"{found[0]['params_total']:,}"
    rows.append((layers, total, f"{mean:.3f} ± {half:.3f}", len(found)))
widgets.table(("layers", "parameters", "accuracy", "runs"), rows)
two = [run["accuracy"] for run in attention[2]]
assert (f"{min(two):.2f}", f"{max(two):.2f}", len(two)) == ("0.38", "0.68", 3)
before = max(run["accuracy"] for run in by_depth[2])
assert sum(share > before for share in two) == 2
four = [run["accuracy"] for run in attention[4]]
assert [f"{statistics.mean(each):.2f}" for each in (four, two)] == ["0.54", "0.55"]

# %% [markdown]
# 5. To run: `python train.py --study depth --n_layers 4 --seed 0 1 2` is the same study with four
#    layers, in a third of the time. Are the same models ahead? And is the wide layer better with
#    other learning rates: `python train.py --preset depth --n_layers 1 --match_params 12 --lr 1e-3
#    3e-3 --seed 0 1 2`?
