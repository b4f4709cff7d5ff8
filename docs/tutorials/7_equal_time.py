# %% [markdown]
# # Equal time
#
# **On problems with the steps written out, two layers learn all that twelve learn, in less than
# half of the time. One layer does not; looped, with settings of its own, it does better.** You will
# learn what depth buys when time is equal, and how much of that is depth.
#
# A step of training takes twelve layers nearly eight times as long as one layer. So whoever
# compares models after equal numbers of *steps* gives the deep one nearly eight times the
# computing. That can be right if text is what is scarce, and wrong if time is.
#
# ## Six models, one budget
#
# The budget is what `python train.py --n_layers 12` takes: 1,100 steps of twelve layers. Each of
# six models gets that much CPU time, and as many rows of text as it can read in that time, none of
# them twice. The looped model has one layer, applied twelve times. The wide one has one layer with
# as many parameters as twelve layers.

# %%
import statistics

import matplotlib.pyplot as plt

import minidepth as md
from minidepth_lab.base import configs
from minidepth_lab.measure import judge, results
from minidepth_lab.studies import budget
from minidepth_site import exercises, widgets

models = budget.stored()  # {name: its six runs}
rows = []
for name, runs in models.items():
    n, steps = runs[0]["params_total"], runs[0]["steps"]
    rows.append([name, f"{n:,}", f"{budget.COST[name]:.0f}", f"{steps:,}"])
widgets.table(["model", "parameters", "ms a step", "steps"], rows)

# %% [markdown]
# A problem is a lookup (letters in a ring), an ordering (letters in a line) or a chain of sums, and
# the way to the answer is [written down](5_writing.md). A family is learned when nine of ten of its
# problems are answered. **Predict first:** which model will be the first to learn lookups, and
# which the first to learn sums?

# %%
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

# %% [markdown]
# The table counts the runs, of six, that learn a family. The accuracy is on 600 problems, of the
# lowest run and the highest.

# %%
families = ("lookup", "order", "chain")
loop, wide = "1 layer, 12 times", "1 wide layer"
rows = []
for name, runs in models.items():
    counts = [sum(budget.learned(runs, family)) for family in families]
    ends = [run["accuracy"] for run in runs]
    rows.append([name, *counts, f"{min(ends):.2f} to {max(ends):.2f}"])
widgets.table(["learned by", *families, "accuracy"], rows)

# %% [markdown]
# **The second layer brings lookups.** One layer guesses to the end, in six runs of six. Two layers
# learn them in the first tenth of the time. A lookup, to find the letter after another, is like the
# task of [One look or two](3_one_look_or_two.md), which one layer did not learn there either.
#
# **More layers than two bring no more right answers here, and cost time.** Two, four and twelve
# layers are all at the ceiling. They need about equally many *steps* for lookups, but a step of
# twelve layers takes nearly five times as long as one of two. We had not expected this.
#
# **One layer learns sums**, in every run, and sooner than any run of twelve. Each of the sums that
# it has to write is of two digits, and all of these occur in training.
#
# **So one layer looped lacks settings, not depth.** It was trained with settings chosen for twelve
# layers, and learned lookups in half of its runs. With settings of its own it learns them in every
# run, and is ahead of one layer without loops, at equal time and equal parameters: [the
# controls](caveats.md#at-equal-time).

# %% [markdown] tags=["details"]
# **The tests.** Seven comparisons were named before the runs; exact permutation tests, corrected
# for seven. With six runs of each, 0.0022 is the least p there is: the runs do not overlap at all.
# A p of 1 does not show that two models are equal; here both are at the ceiling.

# %% tags=["details"]
accuracy = {name: [run["accuracy"] for run in runs] for name, runs in models.items()}
losses = {name: [run["val_loss"] for run in runs] for name, runs in models.items()}


def until(name, family):
    """CPU seconds until each run of a model has learned a family, or until its end."""
    return [budget.learned_at(name, run, family) for run in models[name]]


judge.show("budget")

# %% [markdown] tags=["details"]
# **The time** is that of one CPU thread without evaluations, measured before the runs on a quiet
# machine, and then fixed: CPU seconds here are steps times these milliseconds. On other machines
# the ratios may differ. The learning rate falls over each model's own steps.

# %% [markdown]
# ## What did depth buy?
#
# - **At equal time, on problems with the steps written out**: a second layer bought lookups. Ten
#   more bought no more right answers.
# - **At equal time and equal parameters**: a looped layer, [tuned](caveats.md#at-equal-time),
#   answers more than one without loops.
# - **At equal text**: when one text is read many times, deeper models predict new text a little
#   better, if one [stops in time](caveats.md#the-same-text-twenty-times).
#
# Harder problems may tell apart the three models that are at the ceiling. And where the steps may
# *not* be written, more hops took [more loops](4_walking.md).
#
# This is the last lesson. To go on, read the [controls](caveats.md), or [A map of
# depth](depth_map.md), which asks how many layers seven other tasks take.

# %%
verdicts = judge.verdicts("budget")
assert [name for name in verdicts if verdicts[name] == judge.WRONG] == ["B2", "B3", "B5"]
assert len(verdicts) == 8
looked = {name: sum(budget.learned(runs, "lookup")) for name, runs in models.items()}
assert looked["1 layer"] == looked[wide] == 0 and looked[loop] == 3
for run in models["1 layer"]:
    last = run["accuracy_by_family"]
    assert 0.165 < last["lookup"] < 0.215 and last["chain"] > 0.95
for name in ("2 layers", "4 layers", "12 layers"):
    assert looked[name] == 6 and min(accuracy[name]) > 1 - 1.5 / 600
assert max(until("2 layers", "lookup")) < 10.05
all_three = {}
for name in ("2 layers", "12 layers"):
    all_three[name] = [max(times) for times in zip(*(until(name, each) for each in families))]
assert max(all_three["2 layers"]) < 0.5 * min(all_three["12 layers"])
assert max(until("1 layer", "chain")) < min(until("12 layers", "chain"))
assert None not in [results.onset(run, "chain") for run in models["1 layer"]]
assert max(losses["2 layers"] + losses["4 layers"]) < min(losses["12 layers"])
assert models["1 layer"][0]["max_rows"] > 300_000
assert 4.5 < budget.COST["12 layers"] / budget.COST["2 layers"] < 5
assert 7.5 < budget.COST["12 layers"] / budget.COST["1 layer"] < 8
took = {name: budget.milliseconds(runs) for name, runs in models.items()}
assert 110 < took["12 layers"] < 113 and 41 < took[wide] < 42
due = 1100 * took["12 layers"] / took[wide]
assert 0.13 < 1 - models[wide][0]["steps"] / due < 0.17

# %% tags=["hide", "wrong"]
widgets.wrong("budget")

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
# 2. (Medium, 15 minutes, of which 5 run.) `python train.py --study budget --steps 200 --seed 0`
#    gives each model less than a fifth of the time. (The warm-up stays at 50 steps.) Which of the
#    models still learn lookups? Write it down first.

# %% [markdown] tags=["hint"]
# The first figure has the CPU seconds that each of them took. But the learning rate falls over the
# steps of a training, so a short one is not the beginning of a long one.

# %% [markdown] tags=["answer"]
# We have not kept such runs. Two layers learn lookups in the first tenth of the full time, so they
# should be there again, if the faster fall of the rate does not prevent it.
