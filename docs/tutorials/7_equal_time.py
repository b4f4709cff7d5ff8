# %% [markdown]
# # Controls: equal time, parameters, data
#
# **Twelve layers have more than depth: more parameters, more computing, more room to learn text by
# heart. With these held equal, looping one layer still helps with lookups and orderings, not with
# sums. But two layers learn all that twelve learn, in less than half of the time.** You will learn
# which control tells these things apart.
#
# The report compared one layer with twelve. Twelve have **depth**: what one look finds can direct
# the next. They also have twelve times the **parameters** in their layers. A step of training takes
# them nearly eight times as **long**. And they can **learn more text by heart**. Any of these could
# lower a training loss.
#
# The article proposes two controls. One is a single layer, so *wide* that it has as many parameters
# as twelve; the other is a sweep over depths. We made both. A third has the depth and not the
# parameters: one layer *looped* twelve times, as in the [Universal
# Transformer](https://arxiv.org/abs/1807.03819).
#
# ## Depth or parameters?
#
# Every model is asked 600 held-out problems: lookups in a ring, orderings of letters, and chains of
# sums. It [writes the steps down](5_writing.md) and then answers. All train for 800 steps on the
# same problems.

# %% tags=["hide"]
import itertools
import math
import statistics

import matplotlib.pyplot as plt

import minidepth as md
from minidepth_lab.base import configs
from minidepth_lab.measure import judge, results
from minidepth_lab.show import figures
from minidepth_lab.studies import budget, depth, reread
from minidepth_site import exercises, widgets

at_steps = depth.stored()  # {model: its five runs}
accuracy = {name: [run["accuracy"] for run in found] for name, found in at_steps.items()}

# %%
figure, axes = plt.subplots(figsize=(4.6, 3.8))
for x, (name, shares) in enumerate(accuracy.items()):
    figures.draw_dots(axes, x, shares, figures.color_of(name))
guess = at_steps["1 layer"][0]["guess"]
axes.axhline(guess, color="C5", linestyle=":")
axes.annotate("guessing", (3.6, guess - 0.02), ha="center", va="top")
short = [name.replace(", ", ",\n").replace("wide ", "wide\n") for name in at_steps]
axes.set_xticks(range(len(short)), short)
axes.set(ylabel="accuracy on 600 held-out problems", ylim=(-0.03, 1.1))
axes.set_title("twelve layers answer most; no wide layer\nreaches even their lowest run")
plt.show()

# %% [markdown]
# What to see: twelve layers answer most, and one layer looped twelve times comes next. No wide
# layer reaches the lowest run of twelve layers. Each dot is one of five runs; beside the dots are
# their mean and its 95 % interval.

# %% [markdown]
# - **Depth seems to help, with the same parameters, at equal steps.** Each looped run answers more
#   than each run of one layer.
# - **Parameters alone did not do it.** (*Tuned* is one other setting, with which the wide layer is
#   trained better.)
# - **Perhaps depth and parameters do more together.** Twelve layers are far ahead of the looped
#   layer, which was not tuned here.
# - **More layers answer more**, in the mean, from one to twelve ([the
#   sweep](../reference/results.md#depth)).
#
# **These are hints.** With five seeds no comparison of ten can be below 0.05 once [p is
# corrected](6_how_would_you_know.md#is-it-only-luck). With six it could.

# %% [markdown] tags=["details"]
# Every pair of models. *95 %* is the interval of the difference; where the runs of two models rise
# and fall together by seed, it is taken from the five differences, and the pair has a star. *p* is
# from an exact permutation test, and *Holm* is that p, corrected for ten comparisons.

# %% tags=["hide", "details"]
one, loop, twelve = "1 layer", "1 layer, 12 times", "12 layers"
wide, tuned = "1 wide layer", "1 wide layer, tuned"
called = {one: one, wide: "wide", tuned: "tuned", loop: "looped", twelve: twelve}
pairs = list(itertools.combinations(called, 2))
ps = [judge.permutation(accuracy[b], accuracy[a]) for a, b in pairs]
table, rows = {}, []  # {(model, other model): mean, low, high, corrected p}
for (a, b), p, corrected in zip(pairs, ps, judge.holm(ps)):
    gap, low, high, how = widgets.gap_interval(accuracy[b], accuracy[a])
    table[b, a] = gap, low, high, corrected
    name = f"{called[b]} − {called[a]}{' *' if how == 'paired' else ''}"
    rows.append([name, f"{gap:+.2f}", f"{low:+.2f} to {high:+.2f}", f"{p:.4f}", f"{corrected:.3f}"])
widgets.table(["accuracy", "mean", "95 %", "p", "Holm"], rows)

# %% [markdown]
# ## At equal time
#
# After equal numbers of *steps* the deep model has had nearly eight times the computing. That is
# right if text is scarce, and wrong if time is. So each of six models now gets the CPU time that
# `python train.py --n_layers 12` takes. It reads as many problems as it can in that time, none of
# them twice.
#
# A kind of problem is *learned* when nine of ten are answered. **Predict first:** which model will
# be the first to learn lookups, and which the first to learn sums?

# %%
models = budget.stored()  # {name: its six runs}
_, panels = plt.subplots(3, 1, figsize=(4.6, 7.4), sharex=True, sharey=True)
budget.draw(panels, models)
panels[0].set_title("lookups: two and four layers first")
panels[1].set_title("orderings: two and four layers first")
panels[2].set_title("chains of sums: one layer first")
plt.show()

# %% [markdown]
# What to see: two and four layers are the first to learn lookups, twelve follow, one layer does not
# learn them. One layer is the first to learn chains. Thin lines are runs, six seeds of each model;
# thick ones are their medians.

# %% tags=["hide"]
families = ("lookup", "order", "chain")
own_settings = {name: judge.named_runs("budget-tuned")[name] for name in (loop, wide)}
rows, best, ends = [], {}, {}  # accuracies: with settings of their own, with those of twelve layers
for name, runs in models.items():
    counts = [sum(budget.learned(runs, family)) for family in families]
    ends[name] = [run["accuracy"] for run in runs]
    n, cost = runs[0]["params_total"], f"{budget.COST[name]:.0f}"
    rows.append([name, f"{n:,}", cost, *counts, f"{min(ends[name]):.2f} to {max(ends[name]):.2f}"])
for name, runs in own_settings.items():
    counts = [sum(run["accuracy_by_family"][each] >= 0.9 for run in runs) for each in families]
    best[name] = [run["accuracy"] for run in runs]
    shares = f"{min(best[name]):.2f} to {max(best[name]):.2f}"
    rows.append([f"{name}: own settings", "as above", "as above", *counts, shares])
head = ["model", "parameters", "ms a step", "lookups", "orderings", "chains", "accuracy"]
widgets.table(head, rows)

# %% [markdown]
# The table counts the runs, of six, that learn a kind of problem.
#
# - **The second layer brings lookups.** One layer guesses to the end, as in [One look or
#   two](3_one_look_or_two.md).
# - **More layers than two bring no more right answers, and cost time.** Two, four and twelve layers
#   all answer nearly everything. They need about equally many *steps* for lookups. But a step of
#   twelve layers takes nearly five times as long as one of two. We had not expected this.
# - **One layer learns sums**, sooner than any run of twelve. Each sum that it has to write is of
#   two digits, and all of these occur in training.
# - **The looped layer lacked settings, not depth.** Those above were chosen for twelve layers. With
#   initial weights of half the size, each run is above every run of one layer without loops, which
#   kept its settings after tuning. **So here depth helps at equal time and equal parameters**, with
#   lookups and orderings; with sums it is worse. (We had not named that comparison before.)

# %% [markdown] tags=["details"]
# **The tests.** Seven comparisons were named before the runs; exact permutation tests, corrected
# for seven. With six runs of each, 0.0022 is the least p there is: the runs do not overlap at all.
# A p of 1 does not show that two models are equal; here both are at the ceiling.

# %% tags=["details"]
judge.show("budget")

# %% [markdown] tags=["details"]
# **The time** is that of one CPU thread without evaluations, measured before the runs on a quiet
# machine, and then fixed: CPU seconds here are steps times these milliseconds. On other machines
# the ratios may differ. The learning rate falls over each model's own steps.
#
# **The tuning.** Pairs of a learning rate and a size of the initial weights, one run each for the
# same CPU time, by validation loss on problems taken out of training. One layer and twelve kept the
# pair that they had. The runs with settings of their own have six fresh seeds each.

# %% tags=["hide", "details"]
budget.show_tried()

# %% [markdown]
# ## The same text, twenty times
#
# In the [report's log](2_logs.md) one layer and twelve read the same 840 conversations twenty
# times. The deeper one ended with the lower loss on that text, and the *higher* one on new text. Is
# that what depth does? We made a small copy: 840 worked problems of GSM8K ([Cobbe et al.
# 2021](https://arxiv.org/abs/2110.14168)), width 64, five seeds of each depth. Other runs read
# fewer of these problems more often, in as many steps.

# %% tags=["hide"]
stored = reread.stored(**reread.FIRST)  # {(times read, model): its five runs}
rows, mean = [], {}
for times in (20, 40, 80):
    for model in (one, twelve):
        for key in ("train_loss_eval", "val_loss", "best_val_loss"):
            mean[times, model, key] = statistics.mean(run[key] for run in stored[times, model])
        shown = (f"{mean[times, model, key]:.2f}" for key in ("val_loss", "best_val_loss"))
        rows.append([model, times, f"{mean[times, model, 'train_loss_eval']:.2f}", *shown])
widgets.table(
    [
        "model",
        "times read",
        "nats per token of its own text",
        "of new text, at the end",
        "at its best",
    ],
    rows,
)

# %% [markdown]
# **Read twenty times, twelve layers end lower on both texts.** (With a learning rate of its own,
# one layer closes a third of the gap.)
#
# **Read eighty times, they end worse than one layer on new text. Stopped at their best, they are
# better, in every run.** So "depth hurts here" would say only that nobody stopped. Both models are
# best in the first quarter of the training.
#
# ## At the same fit
#
# Is a deeper model better on new text where both fit their own text equally well? A falling
# learning rate lowers the loss by itself, so these runs keep theirs constant:

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
# What to see: at the same loss on training text eight layers, twelve and the looped layer lie on
# one another, below one layer on new text. Each line is one run, from upper left to a dot at its
# end.

# %% [markdown]
# **At the same fit twelve layers predict new text better than one, in every run**, by 0.07 nats per
# token. That twelve are better than eight is not shown. It need not be depth alone, as they have
# more parameters. The looped layer, which has not, is ahead of one layer by 0.05, but it has read
# the text more often by then.
#
# **Predicting new text better is not yet reasoning.** One run of each was asked the 160 held-out
# problems. One layer solved one of them, twelve layers two.
#
# ## What the word PROVED would need
#
# The report ends with "HYPOTHESIS: PROVED". Such a claim would need answers that are checked, on
# held-out problems; several seeds and an interval; a control for parameters; each model at its own
# best learning rate; and a prediction written down before the runs. The logs had none of these, and
# the article names some of them as missing. [The report, run again](report.md) has what we could
# add.
#
# ## What did depth buy?
#
# | what is equal | what depth bought |
# |---|---|
# | steps | twelve layers answer most; one layer looped answers more than one layer |
# | time | a second layer bought lookups; ten more bought no more right answers |
# | time and parameters | a looped layer, tuned, answers more than one without loops |
# | the fit to its own text | a little less loss on new text |
#
# Harder problems may tell apart the three models that answer everything. And where the steps may
# *not* be written, more hops took [more loops](4_walking.md).
#
# That was the path. Two pages go on from it: [loops](beyond_training.md), and what [each
# layer](depth_map.md) does. Or run [a verdict](../how-to/verdict.md) on a problem of your own.

# %%
assert f"{table[loop, one][1]:.3f}" == "0.085"  # above 0
assert f"{min(corrected for *_, corrected in table.values()):.3f}" == "0.079"
assert 10 * 2 / math.comb(12, 6) < 0.05 < 10 * 2 / math.comb(10, 5)
assert max(accuracy[wide] + accuracy[tuned]) < min(accuracy[twelve])
assert min(accuracy[loop]) > max(accuracy[one]) and len(accuracy[loop]) == 5
assert table[twelve, loop][0] > 0.29
swept = depth.swept()
means = [statistics.mean(run["accuracy"] for run in found) for found in swept.values()]
assert list(swept) == [1, 2, 4, 8, 12] and means == sorted(means)
assert all(len(found) == 5 for found in [*at_steps.values(), *swept.values()])
assert abs(at_steps[wide][0]["params_total"] / at_steps[twelve][0]["params_total"] - 1) < 0.02
assert at_steps[loop][0]["params_total"] == at_steps[one][0]["params_total"]

verdicts = judge.verdicts("budget")
assert [name for name in verdicts if verdicts[name] == judge.WRONG] == ["B2", "B3", "B5"]
assert len(verdicts) == 8


def until(name, family):
    """CPU seconds until each run of a model has learned a family, or until its end."""
    return [budget.learned_at(name, run, family) for run in models[name]]


looked = {name: sum(budget.learned(runs, "lookup")) for name, runs in models.items()}
assert looked[one] == looked[wide] == 0 and looked[loop] == 3
for run in models[one]:
    last = run["accuracy_by_family"]
    assert 0.165 < last["lookup"] < 0.215 and last["chain"] > 0.95
for name in ("2 layers", "4 layers", twelve):
    assert looked[name] == 6 and min(ends[name]) > 1 - 1.5 / 600
all_three = {}
for name in ("2 layers", twelve):
    all_three[name] = [max(times) for times in zip(*(until(name, each) for each in families))]
assert max(all_three["2 layers"]) < 0.5 * min(all_three[twelve])
assert max(until(one, "chain")) < min(until(twelve, "chain"))
assert None not in [results.onset(run, "chain") for run in models[one]]
assert 4.5 < budget.COST[twelve] / budget.COST["2 layers"] < 5
assert 7.5 < budget.COST[twelve] / budget.COST[one] < 8
assert max(ends[one]) < min(best[loop]) <= max(best[loop]) < min(ends["2 layers"])
low, high = widgets.gap_interval(ends[loop], ends[one])[1:3]
assert low < 0 < high  # with the settings of twelve layers it was not ahead
for run in own_settings[loop]:
    assert min(run["accuracy_by_family"][each] for each in ("lookup", "order")) > 0.98
tried = budget.tried()
settings = {name: min(found, key=found.get) for name, found in tried.items()}
assert settings[loop] == (0.003, 0.05) and settings[wide] == (0.001, 0.05)

assert all(len(its) == 5 for its in stored.values())
for run in stored[80, one] + stored[80, twelve]:
    lowest = min(run["log"], key=lambda record: record["val_loss"])
    assert lowest["step"] <= run["steps"] / 4
at_80 = {(model, key): [run[key] for run in stored[80, model]] for model in (one, twelve)
         for key in ("val_loss", "best_val_loss")}  # fmt: skip
assert min(at_80[twelve, "val_loss"]) > max(at_80[one, "val_loss"])
assert max(at_80[twelve, "best_val_loss"]) < min(at_80[one, "best_val_loss"])
for key in ("train_loss_eval", "val_loss"):
    assert mean[20, twelve, key] < mean[20, one, key]
read_20 = reread.models_read(stored, 20)
own_rate = statistics.mean(run["val_loss"] for run in read_20["1 layer, learning rate 0.008"])
closed = (mean[20, one, "val_loss"] - own_rate) / (
    mean[20, one, "val_loss"] - mean[20, twelve, "val_loss"]
)
assert 0.3 < closed < 0.37
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
widgets.wrong("budget", "budget-tuned", "reread", "reread-constant")

# %% [markdown]
# ## Exercises
#
# 1. (Hard, 20 minutes.) Count steps instead of seconds. After how many steps have two layers, and
#    twelve, learned all three families, at the median of their six runs? `results.onset(run,
#    family)` is the step at which a run has learned a family.

# %% tags=["exercise"]
two_layers = ...
twelve_layers = ...

# %% [markdown] tags=["hint"]
# Of each run the last of the three families counts: the `max()` of three steps. Then
# `statistics.median()` of the six runs in `models["2 layers"]`.

# %% tags=["answer"]
two_layers, twelve_layers = (
    statistics.median(max(results.onset(run, family) for family in families) for run in models[n])
    for n in ("2 layers", "12 layers")
)


# %% tags=["check"]
@exercises.check
def steps_to_all_three():
    given = {"2 layers": two_layers, "12 layers": twelve_layers}
    for name, step in given.items():
        onsets = {each: [results.onset(run, each) for run in models[name]] for each in families}
        all_three = [max(steps) for steps in zip(*onsets.values())]
        right = statistics.median(all_three)
        for family, steps in onsets.items():
            alone = (
                f"{name}: by step {step} half of the runs have learned {budget.FAMILIES[family]}, "
            )
            assert step == right or step != statistics.median(steps), alone + "but not all three"
        in_seconds = budget.seconds(name, right)
        assert abs(step - in_seconds) > 1, f"{name}: {step} are CPU seconds, not steps"
        n = sum(last <= step for last in all_three)
        by_then = f"{name}: by step {step}, {n} of 6 runs have learned all three"
        assert step == right, f"{by_then}; the median is between the third run and the fourth"


# %% [markdown] tags=["answer"]
# Counted in steps, twelve layers are far ahead of two, mostly because of the chains. But the
# learning rate falls over each model's own steps. At step 700 that of twelve layers is at 0.39 of
# its peak, that of two layers still at 0.96. So the schedule may be part of the reason, and these
# runs cannot tell it from depth.

# %% tags=["answer"]
rates = []
for name, steps in (("2 layers", two_layers), ("12 layers", twelve_layers)):
    config = configs.TrainConfig(steps=models[name][0]["steps"], warmup_steps=50)
    rates.append(f"{md.lr_at(700, config) / config.lr:.2f}")
    print(f"{name}: all three by step {steps:.0f}; rate at step 700: {rates[-1]} of its peak")
assert rates == ["0.96", "0.39"]
assert (two_layers, twelve_layers) == (1404, 650)

# %% [markdown]
# 2. (Medium, 5 minutes.) Suppose you compare two models in one planned exact test, two-sided, with
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
# 3. (Medium, 5 minutes.) `--match_params 12` widens a layer until all of its parameters are as many
#    as those of twelve layers; with `--match layers`, only those in the layers. Which is the fairer
#    control, and for which claim?

# %% [markdown] tags=["answer"]
# If the claim is about what a file of a given size can do, the total is fair. If it is about what
# happens between embedding and head, the layers are: a wider model has a wider table of words, too,
# and spends some of its parameters there.

# %% [markdown]
# 4. (Medium, 10 minutes.) After how many readings is the loss on new text lowest, when a text is
#    read eighty times? What would have been saved by stopping there?

# %% [markdown] tags=["hint"]
# A record of `run["log"]` has its `step` and its `epoch`, the reading.

# %% [markdown] tags=["answer"]
# After the 16th reading with one layer, and the 20th with twelve. Three quarters of the training
# would have been saved, and new text would have been predicted better, by 0.8 nats per token with
# one layer and 1.5 with twelve.

# %% tags=["answer"]
for model, reading, saved in ((one, 16, "0.8"), (twelve, 20, "1.5")):
    for run in stored[80, model]:
        assert min(run["log"], key=lambda record: record["val_loss"])["epoch"] == reading
    gain = mean[80, model, "val_loss"] - mean[80, model, "best_val_loss"]
    print(f"{model}: reading {reading} of 80; {gain:.2f} nats lower than at the end")
    assert f"{gain:.1f}" == saved
