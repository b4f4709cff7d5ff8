# %% [markdown]
# # Depth, parameters, memorisation
#
# **You will learn** what a deeper model has besides depth, which control runs tell these things
# apart, and what our controlled runs found.<br>
# **Time** 5 to 15 s: nothing is trained here, the runs took hours and are stored.<br>
# **Needs** [The logs](04_logs.md).
#
# The report compared one layer with twelve. Twelve layers have three things that one layer does not
# have:
#
# - **depth**: what one look finds can direct the next;
# - **parameters**: there are 12 times as many in the blocks;
# - **memorisation**: with those parameters they can learn more of the training text by heart.
#
# A lower training loss fits all three. The article on those runs says itself that they do not
# separate depth from parameters. It proposes two controls: a single layer widened until it has as
# many parameters, and a sweep over 1, 2, 4, 8 and 12 layers. Our study does both, and adds a third:
# a model that has the depth but not the parameters. Every model is scored on problems that were
# held out from training. These come in three families: chains of sums modulo ten, look-ups in a
# ring of six letters, and orderings of letters. Each takes one to three steps, and the model writes
# these steps down before it answers.
#
# | model | parameters | depth |
# |---|---|---|
# | 1 layer | few | 1 |
# | 12 layers | many | 12 |
# | 1 layer, applied 12 times | few | 12 |
# | 1 wide layer | many | 1 |
#
# **In short:** at equal steps, one layer applied 12 times answers more than one applied once, so
# depth helped without more parameters; twelve layers answer most; the wide layer, with as many
# parameters as twelve layers, stays far behind them. At equal CPU time things look different: see
# [Depth or time?](16_depth_or_time.md).
#
# The idea of applying the same layers again goes back to the Universal Transformer (Dehghani et al.
# 2018, [arXiv 1807.03819](https://arxiv.org/abs/1807.03819)); Saunshi et al. 2025 ([arXiv
# 2502.17416](https://arxiv.org/abs/2502.17416)) study it for reasoning. The width of the last model
# comes from `studies.depth.width_matched()`.

# %%
import itertools
import statistics

import matplotlib.pyplot as plt
from scipy.stats import ttest_rel

from studies import parts, results, verdicts

study = results.summary("depth")
print(study["command"])
print(study["date"], study["device"], "PyTorch", study["versions"]["torch"])

runs = {}
for run in study["runs"]:
    runs.setdefault(run["labels"]["model"], []).append(run)
# a fifth row: the wide layer at one other setting, which is better for its width
runs["1 wide layer, tuned"] = [
    results.result(run) for run in sorted((results.RESULTS / "depth-wide").glob("*"))
]
for model, found in runs.items():
    mean, half = results.interval([run["accuracy"] for run in found])
    first = found[0]
    print(
        f"{model:18} {first['params_total']:8,} parameters, depth {first['depth']:2}: "
        f"accuracy {mean:.3f} ± {half:.3f}, n = {len(found)}"
    )

# %%
figure, axes = plt.subplots(figsize=(4.6, 3.8))
for number, (_model, found) in enumerate(runs.items()):
    values = [run["accuracy"] for run in found]
    mean, half = results.interval(values)
    axes.plot([number] * len(values), values, "o", color=f"C{number}", alpha=0.6)
    axes.errorbar(number + 0.15, mean, half, fmt="_", color=f"C{number}", capsize=3)
guess = study["runs"][0]["guess"]
axes.axhline(guess, color="C5", linestyle=":")
axes.annotate("guessing", (0.5, guess + 0.02), ha="center")
short = [model.replace(", ", ",\n").replace("wide ", "wide\n") for model in runs]
axes.set_xticks(range(len(runs)), short)
axes.set(ylabel="accuracy on 600 held-out problems", ylim=(-0.03, 1.1))
axes.set_title("twelve layers answer most; no wide layer\nreaches even their lowest run")
plt.show()

# %% [markdown]
# What to see: twelve layers answer most, one layer applied twelve times comes next, and no wide
# layer reaches the lowest run of twelve layers. Each dot is one run, with five seeds per model, all
# trained for the same 800 steps on the same problems. Beside the dots are their mean and its 95 %
# interval (Student's t, which does not know that an accuracy cannot exceed 1).
#
# The fifth model, called tuned, is there for fairness. With the learning rate of the others, 0.003,
# the wide layer is badly trained: it does worse than the narrow one. At 0.001, with initial weights
# of half the size, it does better. "Tuned" says too much: this was the only other setting that we
# tried, and for the other models we tried none.
#
# ## Differences, seed by seed
#
# Runs with the same seed see the batches in the same order, so we take the difference between two
# models seed by seed. An interval that excludes 0 speaks for a difference at these sizes and this
# budget. But there are many pairs, and the intervals are not corrected for their number (exercise 1
# does that for accuracy). Every pair of models is here, both for accuracy and for loss; a lower
# loss is better.

# %%
loop, deep = "1 layer, 12 times", "12 layers"
wide, tuned = "1 wide layer", "1 wide layer, tuned"


def difference(metric, b, a):
    """What models b have over models a, paired by seed: mean and half of the 95 % interval."""
    pairs = zip(runs[b], runs[a])
    return results.interval([mine[metric] - other[metric] for mine, other in pairs])


for metric in ("accuracy", "val_loss"):
    print(f"\n{metric:41}    mean   95 % interval")
    for a, b in itertools.combinations(["1 layer", wide, tuned, loop, deep], 2):
        gap, half = difference(metric, b, a)
        note = "" if abs(gap) > half else "  contains 0"
        print(f"{b:>19} - {a:19}  {gap:+.3f}  {gap - half:+.3f} to {gap + half:+.3f}{note}")

# %% [markdown]
# The two measures do not always agree. In accuracy, one layer applied 12 times (the *looped* layer)
# is better than one applied once: the interval of the difference excludes 0. **In loss, the
# interval contains 0.** Compared with the *tuned* wide layer, the looped layer's intervals contain
# 0 in both measures; in accuracy the difference is +0.119, with an interval from -0.012 to +0.250.
#
# The five looped runs also differ in what they learned. All five answer the orderings of two
# letters. Three learned nothing but orderings, one learned look-ups in full, and one learned them
# in part:

# %%
for path in sorted((results.RESULTS / "depth" / "runs").glob("*_n_loops-12_*")):
    run = results.result(path)
    solved = run["accuracy_by_problem"]
    row = "  ".join(
        f"{family} " + " ".join(f"{solved[f'{family} {k}']:.2f}" for k in (1, 2, 3))
        for family in ("chain", "lookup", "order")
    )
    print(f"{loop}, seed {run['seed']}: {row}")

# %% tags=["hide"]
parts.show("seeds", parts.seeds(), "To draw one seed after another needs JavaScript.")

# %% [markdown]
# ## More layers, more right answers?

# %%
sweep = results.summary("depth-sweep")
print(sweep["command"])
by_depth = {}
for run in sweep["runs"]:
    by_depth.setdefault(int(run["labels"]["n_layers"]), []).append(run)
for depth, found in by_depth.items():
    mean, half = results.interval([run["accuracy"] for run in found])
    print(f"{depth:2} layers: accuracy {mean:.3f} ± {half:.3f}, n = {len(found)}")

_, left = plt.subplots(figsize=(3.4, 3.4))
_, right = plt.subplots(figsize=(3.4, 3.4))
for depth, found in by_depth.items():
    left.plot([depth] * len(found), [run["accuracy"] for run in found], "o", color="C0", alpha=0.6)
left.set_title("deeper models answer more", fontsize=11)
left.set(xlabel="layers", ylabel="accuracy, all problems", xticks=list(by_depth), ylim=(0, 1.03))
for number, family in enumerate(("chain", "lookup", "order")):
    means = [
        statistics.mean(
            run["accuracy_by_problem"][f"{family} {k}"] for run in found for k in (1, 2, 3)
        )
        for found in by_depth.values()
    ]
    right.plot(list(by_depth), means, "o-", color=f"C{number}", label=family)
right.set_title("some runs with 8 and 12 layers learn chains", fontsize=11)
right.set(
    xlabel="layers", ylabel="mean accuracy of a family", xticks=list(by_depth), ylim=(0, 1.03)
)
right.legend()
plt.show()

# %% [markdown]
# What to see: deeper models answer more, and two layers already answer more than one. On the left
# each dot is one run, with five seeds per depth; on the right are the means over the seeds for each
# family. Within these 800 steps chains are answered (above 0.9) in three of five runs with eight
# layers, in three with twelve, and in none with fewer. Look-ups are answered in one run with four
# layers, in one with eight and in two with twelve.
#
# A run learns a family rather suddenly, at a time that depends on the seed, and after 800 steps not
# every run has got there. So a mean over these runs says how often a model gets there within the
# budget, not how good a depth is in the end.
#
# [Seeds, threads, luck](13_seeds.md) shows these sudden jumps, and how the number of CPU threads
# changes when they come. That is why the runs of 12 layers with seeds 0, 1 and 2 on [the page
# before](04_logs.md) have other accuracies than here: they had the same settings but two threads.
#
# ## The same with another recipe
#
# Does this depend on how the models are trained? Nothing in the comparison so far was tuned for
# shallow models. The depth tasks of [Depth thresholds](06_depth_thresholds.md) are learned best by
# attention alone: no feed-forward part, initial weights of half the size, learning rate 0.002, no
# weight decay, and a head that does not share its weights with the embedding. Here are models of
# one, two and four layers, trained in that way on the same problems for the same 800 steps:

# %%
other = results.summary("attention-sweep")
print(other["command"])
attention = {}
for run in other["runs"]:
    attention.setdefault(int(run["labels"]["n_layers"]), []).append(run)
for depth, found in attention.items():
    mean, half = results.interval([run["accuracy"] for run in found])
    total = found[0]["params_total"]
    print(
        f"{depth} layers: {total:7,} parameters, accuracy {mean:.3f} ± {half:.3f}, n = {len(found)}"
    )

# %% [markdown]
# Two layers of attention alone, with fewer parameters, answer 0.38 to 0.68 of the problems; two of
# their three runs answer more than any run of two layers above. Four layers are not better than two
# here. With three seeds the intervals are wide. But the recipe changes the accuracy of a shallow
# model as much as a few more layers do. So how deep a model must be for a given accuracy depends on
# the recipe. Read the figures above as: *with this recipe and this number of steps, this many
# layers got this far*. With more steps and another recipe, one layer [learns chains as
# well](16_depth_or_time.md). [Thinking against depth](07_thinking.md) goes on from here.
#
# ## What the evidence says
#
# For problems of this kind, at width 64, in 800 steps:
#
# - **Depth helped, with the same parameters, at equal steps.** One layer applied 12 times answers
#   more problems than one applied once: its accuracy is higher by 0.193, with an interval from
#   +0.085 to +0.300. Its loss is lower too, but that interval contains 0. Each of its training
#   steps takes nearly eight times as long. At [equal CPU time](16_depth_or_time.md), with other
#   settings, it is not ahead: the difference is -0.116, with an interval from -0.359 to +0.127 (n =
#   6). With settings of its own it is ahead, in six runs of six.
# - **Parameters alone did not do it.** The wide layer has as many as twelve layers and stays far
#   behind them, tuned or not. Whether the looped layer is better than the tuned wide one, these
#   runs do not tell.
# - **Perhaps depth and parameters do more together.** Twelve layers with weights of their own
#   answer more than one layer applied 12 times. The interval just excludes 0; once corrected for
#   the number of comparisons, it is no evidence. Looped layers also train differently, and their
#   learning rate was not tuned, so part of the gap may come from the training.
#
# On problems made for the purpose, with predictions written first, the same comparison is sharper:
# [Depth by itself](12_rings.md).
#
# The evidence does not say that this holds for chain-of-thought text written by people, at the
# report's size, after longer training, with another recipe, or for other ways to spend parameters.
#
# The test in this study was also softer than [today's](../reference/problems.md). Only about 480 of
# the 600 problems were different, and a test problem could be a training problem in other words,
# for example an ordering with its pairs swapped. This was the same for all models. Today's preset
# `laptop` trains attention alone, so that the first run learns; the settings of this page are the
# preset `depth`.
#
# **We see no sign of memorisation.** Every model's training loss, measured without dropout, is
# close to its validation loss: with 20,000 problems and 800 steps there is little time to learn
# them by heart. As some test problems are training problems in other words, this cannot rule it
# out. In the report's runs, 840 conversations read ten to twenty times, it was different: see [the
# logs](04_logs.md), and [the same text, twenty times](20_same_text.md), where the number of
# readings varies.

# %%
for model, found in runs.items():
    gap, half = results.interval([run["val_loss"] - run["train_loss_eval"] for run in found])
    print(f"{model:19} validation minus training loss: {gap:+.3f} ± {half:.3f} nats per token")

# %% [markdown]
# ## What the word PROVED would need
#
# The report ends with "hypothesis: PROVED". A claim of that kind would need at least: a task whose
# answers are checked, on problems that were held out; several seeds and an interval; a control for
# parameters; each model at its own best learning rate; more than one size; and a prediction written
# down before the runs. The logs had none of these, and the article names some of them as missing.
# This page has the first three, at one small size. An experiment supports a claim or fails to; it
# never has the last word.

# %%
for b, a in ((loop, "1 layer"), (deep, wide), (loop, wide), (deep, loop)):
    gap, half = difference("accuracy", b, a)
    assert gap - half > 0
for b, a, metric in ((loop, "1 layer", "val_loss"), (loop, tuned, "accuracy"),
                     (loop, tuned, "val_loss")):  # fmt: skip
    gap, half = difference(metric, b, a)
    assert abs(gap) < half
highest = max(run["accuracy"] for run in runs[wide] + runs[tuned])
assert highest < min(run["accuracy"] for run in runs[deep])
assert [f"{x:.3f}" for x in difference("accuracy", loop, tuned)] == ["0.119", "0.131"]
assert all(len(found) == 5 for found in [*runs.values(), *by_depth.values()])
assert abs(runs[wide][0]["params_total"] / runs[deep][0]["params_total"] - 1) < 0.02
assert runs[loop][0]["params_total"] == runs["1 layer"][0]["params_total"]

# %% [markdown]
# ## Exercises
#
# 1. The table above has ten differences in accuracy. Correct them for their number with Holm's
#    method, from paired t-tests. Which of them are still below 0.05?

# %% [markdown] tags=["hint"]
# `scipy.stats.ttest_rel` gives the p of a paired test, and `studies.verdicts.holm()` corrects a
# list of them: the smallest p counts ten times, the next nine times, and so on.

# %% [markdown] tags=["answer"]
# Six of them: twelve layers against one layer and against both wide ones, the loop against one
# layer and against the untuned wide one, and the two wide ones against each other. Twelve layers
# against the loop, whose interval came close to 0, is not among them.

# %% tags=["answer"]
pairs = list(itertools.combinations(["1 layer", wide, tuned, loop, deep], 2))
accuracy = {model: [run["accuracy"] for run in found] for model, found in runs.items()}
ps = [float(ttest_rel(accuracy[b], accuracy[a]).pvalue) for a, b in pairs]
corrected = dict(zip(pairs, verdicts.holm(ps)))
for (a, b), p in sorted(corrected.items(), key=lambda item: item[1]):
    print(f"{b:>19} - {a:19}  p {p:.3f}{'' if p < 0.05 else '  not below 0.05'}")
below = {pair for pair, p in corrected.items() if p < 0.05}
assert len(below) == 6 and {("1 layer", loop), (tuned, deep)} <= below and (loop, deep) not in below

# %% [markdown]
# 2. A t-test assumes that differences scatter like a bell curve. An exact test assumes less: if the
#    two models were equal, each of the five differences could just as well have had the other sign.
#    What is the smallest p that it can give with five seeds, two-sided? How many seeds would it
#    take for 0.05?

# %% [markdown] tags=["hint"]
# With n seeds there are 2ⁿ ways to choose the signs, and two of them are the most extreme.

# %% [markdown] tags=["answer"]
# With five seeds it cannot get below 2/32 = 0.0625, whatever the runs are; six are needed. Where we
# planned the number of runs in advance, on [rings](12_rings.md), we compare two groups that are not
# paired, with at least five runs in each. Two groups of five can reach p = 2/252 = 0.008 in a
# single test, and 0.06 after a correction for eight tests; two groups of six can reach 2/924 =
# 0.002.

# %% tags=["answer"]
for n in range(4, 8):
    print(f"{n} seeds: p at least {2 / 2**n:.4f}")
assert 2 / 2**5 > 0.05 > 2 / 2**6

# %% [markdown]
# 3. `--match blocks` matches the parameters of the blocks alone. Which of the two is the fairer
#    control, and for which claim?

# %% [markdown] tags=["answer"]
# If the claim is about what a file of a given size can do, the total is fair. If it is about what
# happens between embedding and head, the blocks are: a wider model has a wider table of words,
# too, and spends some of its parameters there.

# %% [markdown]
# 4. To run: `python train.py --study depth --n_layers 4 --seed 0 1 2` is the same study with four
#    layers, in a third of the time. Do the same differences exclude 0? And is the wide layer
#    better with other learning rates: `python train.py --preset depth --n_layers 1 --match_params
#    12 --lr 1e-3 3e-3 --seed 0 1 2`?
