# %% [markdown]
# # Equal time, same text
#
# **On problems with the steps written out, two layers learn all that twelve learn, in less than
# half of the time. But when one text is read twenty times, twelve layers predict new text better
# than one.** You will learn what depth buys when time is equal, what it buys when the text is
# equal, and how much of either is depth.
#
# A step of training takes twelve layers nearly eight times as long as one layer. So whoever
# compares models after equal numbers of *steps* gives the deep one nearly eight times the
# computation. That can be right if text is what is scarce, and wrong if time is. This lesson does
# both: first equal time on the problems of our main command, then equal readings of one text.
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
from minidepth_lab.measure import judge, results
from minidepth_lab.studies import budget, reread
from minidepth_site import exercises, widgets

models = budget.stored()  # {name: its six runs}
rows = []
for name, runs in models.items():
    n, steps = runs[0]["params_total"], runs[0]["steps"]
    rows.append([name, f"{n:,}", f"{budget.COST[name]:.0f}", f"{steps:,}"])
widgets.table(["model", "parameters", "ms a step", "steps"], rows)

# %% [markdown]
# A problem is a lookup (letters in a ring), an ordering (letters in a line) or a chain of sums, and
# the way to the answer is written down, as in [lesson 5](5_writing.md). A family is learned when
# 0.9 of its problems are answered. Here is which model learns what, and when:

# %%
_, panels = plt.subplots(3, 1, figsize=(4.6, 7.4), sharex=True, sharey=True)
budget.draw(panels, models)
panels[0].set_title("lookups: two and four layers first")
panels[1].set_title("orderings: two and four layers first")
panels[2].set_title("chains of sums: one layer first")
plt.show()

# %% [markdown]
# What to see: two and four layers are the first to learn lookups, twelve follow, one layer does not
# learn them. One layer is the first to learn chains. Each panel is a family of problems. Thin lines
# are runs, six seeds of each model; thick ones are their medians. A point is measured on 33
# problems, the last one on 200.
#
# The table counts the runs, of six, that learn a family. The accuracy is on all 600 problems, of
# the lowest run and the highest.

# %%
families = ("lookup", "order", "chain")
rows = []
for name, runs in models.items():
    counts = [sum(budget.learned(runs, family)) for family in families]
    ends = [run["accuracy"] for run in runs]
    rows.append([name, *counts, f"{min(ends):.2f} to {max(ends):.2f}"])
widgets.table(["learned by", *families, "accuracy"], rows)

# %% [markdown]
# **The second layer brings lookups.** One layer guesses to the end, in six runs of six, over more
# than 100,000 rows of lookups. Two layers learn them in the first ten of 110 CPU seconds. A lookup,
# to find the letter after another, is like the task of [lesson 3](3_one_look_or_two.md), which one
# layer did not learn there either.
#
# **More layers than two bring no more right answers here, and cost time.** Two, four and twelve
# layers end within one problem of 600 of each other: all are at the ceiling. For lookups they need
# about equally many *steps*, but a step of twelve layers takes nearly five times as long as one of
# two. This was not what we expected: of [eight predictions](../reference/predictions.md#budget)
# three **were wrong**, each because a model, two layers among them, did better than we thought.
#
# **One layer learns sums**, in every run, and sooner than any run of twelve. Each of the sums that
# it has to write is of two digits, and all of these occur in training.
#
# ## At their own best
#
# What does more than one layer add, depth or parameters? The looped layer has the depth of twelve
# layers, and learned lookups in three runs of six. The wide one has their parameters, and learned
# lookups in none. But all settings had been chosen for twelve layers. So we tried others for these
# two, in tuning runs, and ran six fresh seeds with the best:

# %% tags=["hide"]
loop, wide = "1 layer, 12 times", "1 wide layer"
tuned = {name: judge.named_runs("budget-tuned")[name] for name in (loop, wide)}
rows = []
for name, runs in tuned.items():
    counts = [sum(run["accuracy_by_family"][each] >= 0.9 for run in runs) for each in families]
    ends = [run["accuracy"] for run in runs]
    rows.append([name, *counts, f"{min(ends):.2f} to {max(ends):.2f}"])
widgets.table(["tuned", *families, "accuracy"], rows)

# %% [markdown]
# **Most of what the looped layer lacked was settings.** With initial weights of half the size it
# learns lookups and orderings in every run. Each of its runs is now above every run of one layer
# without loops, which has the same parameters and trains for as long. (We tuned that one, too, and
# its settings stayed.) So here depth helps, at equal time and equal parameters. (That comparison
# was not named before.) Still the looped layer answers fewer problems than two layers of their own.
# The wide layer learns no lookups with its best settings either.

# %% [markdown] tags=["details"]
# **The tests.** Seven comparisons were named before the runs; exact permutation tests, corrected
# for seven. Twelve runs can be divided into two groups of six in 924 ways, so 2/924 = 0.0022 is the
# least p there is: the runs do not overlap at all. A p of 1 does not show that two models are
# equal; here both are at the ceiling. In loss two and four layers are ahead of twelve in every run;
# they took more steps.

# %% tags=["details"]
accuracy = {name: [run["accuracy"] for run in runs] for name, runs in models.items()}
losses = {name: [run["val_loss"] for run in runs] for name, runs in models.items()}


def until(name, family):
    """CPU seconds until each run of a model has learned a family, or until its end."""
    return [budget.learned_at(name, run, family) for run in models[name]]


judge.show("budget")

# %% [markdown] tags=["details"]
# **The tuning.** Pairs of a learning rate and a size of the initial weights, one run each for the
# same CPU time, by validation loss on problems taken out of training. One layer and twelve kept the
# pair that they had. Of the [predictions](../reference/predictions.md#budget-tuned) about this, one
# was wrong: for twelve layers, initial weights of half the size are no worse.

# %% tags=["details"]
budget.show_tried()
print("predictions:", judge.tally("budget-tuned"))

# %% [markdown] tags=["details"]
# **The time** is that of one CPU thread without evaluations, measured before the runs on a quiet
# machine, and then fixed: CPU seconds here are steps times these milliseconds. In the runs
# themselves, two at a time, a step of twelve layers took 112 ms instead of 100, and one of the wide
# layer 41 instead of 44, so the wide layer had some 15 % too few steps. On other machines the
# ratios may differ more.
#
# **The schedule.** The learning rate falls over each model's own steps. When twelve layers learn
# chains, it is at about half of its peak, which may be why they learn them then.

# %% [markdown]
# ## The same text, twenty times
#
# Now the other comparison. The [report's log](2_logs.md) has one run of one layer and one of
# twelve, which read the same 840 conversations twenty times. The deeper one ended with the lower
# loss on the text that it read, and the *higher* one on new text. Is that what depth does? We
# made a small copy, with five seeds of each depth: 840 worked problems of GSM8K ([Cobbe et al.
# 2021](https://arxiv.org/abs/2110.14168)), width 64, every model as many steps.

# %%
stored = reread.stored(**reread.FIRST)  # {(times read, model): its five runs}
read_20 = reread.models_read(stored, 20)
finding = "more layers end lower on both texts"
reread.draw_depths(read_20, f"read twenty times:\n{finding}")

# %% [markdown]
# What to see: read twenty times, more layers end lower on both texts. On new text twelve layers are
# 0.2 nats per token below one, and eight nearly as low. Each dot is one of five runs; lines join
# the means, with their 95 % intervals.
#
# All depths have one learning rate here, which was chosen for twelve layers. With a rate of its own
# one layer ends at 3.41 on new text instead of 3.47, which closes a third of the gap.
#
# So our deep models do not do what the report's did. But it matters how many problems are read, and
# how often. Other runs read half of these problems forty times, or a quarter of them eighty times,
# which is as many steps:

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
# The report's two curves end in the same way. They are evidence neither that depth helped to reason
# nor that it did not.
#
# **Is a deeper model better at the same fit?** Compare one layer and twelve where they fit their
# own text equally well. They get there at nearly the same step, and on new text twelve layers are
# lower by 0.07. With a constant learning rate and five fresh seeds they are 0.07 lower again, in
# every run. (They also have more parameters.) With a falling rate the wide layer and the looped one
# cannot be compared so easily: they reach this fit earlier or later in training, at a higher or a
# lower learning rate, and a lower rate lowers the loss by itself. With a constant one the looped
# layer does not come so far. Where all runs come, at 3.47, it is below one layer as well, by 0.05,
# but at a later step. [The same text, twenty times](same_text.md) has these comparisons and the
# controls.
#
# ## What did depth buy?
#
# - **At equal time, on problems with the steps written out**: a second layer bought lookups. Ten
#   more bought no more right answers.
# - **At equal text**: a better prediction of new text, if one stops in time. A step took six times
#   as long.
# - **At equal time and equal parameters**: a looped layer, tuned, answers more than one without
#   loops.
#
# What these runs do not tell: three of the models are at the ceiling, and harder problems may tell
# them apart. Where the steps may *not* be written, more hops took more loops: [lesson
# 4](4_walking.md). And predicting the next word better is not yet reasoning.
#
# This is the last lesson. A good next page is [Caveats](caveats.md), which has the article's own
# controls, or [A map of depth](depth_map.md), which asks how many layers seven other tasks take.

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
best = {name: [run["accuracy"] for run in runs] for name, runs in tuned.items()}
for run in tuned[loop]:
    last = run["accuracy_by_family"]
    assert min(last["lookup"], last["order"]) > 0.98 and 0.5 < last["chain"] < 0.82
assert max(run["accuracy_by_family"]["lookup"] for run in tuned[wide]) < 0.9
assert max(accuracy["1 layer"]) < min(best[loop]) <= max(best[loop]) < min(accuracy["2 layers"])
tried = budget.tried()
own = {name: min(found, key=found.get) for name, found in tried.items()}
assert own[loop] == (0.003, 0.05) and own[wide] == (0.001, 0.05)
assert all(len(runs) == 5 for runs in stored.values())
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
same = reread.at_fit(read_20, 3.27)
assert f"{statistics.mean(same[one]) - statistics.mean(same[twelve]):.2f}" == "0.07"
constant = reread.at_fit(judge.named_runs("reread-constant"), 3.27)
assert len(constant[one]) == 5 and max(constant[twelve]) < min(constant[one])
assert f"{statistics.mean(constant[one]) - statistics.mean(constant[twelve]):.2f}" == "0.07"
fit, shared = reread.equally_fitted(judge.named_runs("reread-constant"))
looped = shared["1 layer, 12 times"]
assert f"{fit:.2f}" == "3.47" and max(looped) < min(shared[one])
assert f"{statistics.mean(shared[one]) - statistics.mean(looped):.2f}" == "0.05"
speeds = [statistics.median(run["tokens_per_second"] for run in read_20[model])
          for model in (one, twelve)]  # fmt: skip
assert 5.5 < speeds[0] / speeds[1] < 6.5

# %% [markdown]
# ## Exercises
#
# 1. Count steps instead of seconds. After how many steps have two layers, and twelve, learned all
#    three families, at the median of their six runs? `results.onset(run, family)` is the step at
#    which a run has learned a family.

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
    config = md.TrainConfig(steps=models[name][0]["steps"], warmup_steps=50)
    rates.append(f"{md.lr_at(700, config) / config.lr:.2f}")
    print(f"{name}: all three by step {steps:.0f}; rate at step 700: {rates[-1]} of its peak")
assert rates == ["0.96", "0.39"]
assert (two_layers, twelve_layers) == (1404, 650)

# %% [markdown]
# 2. After how many readings is the loss on new text lowest, when a text is read eighty times? What
#    would have been saved by stopping there?

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

# %% [markdown]
# 3. To run, in some five minutes: `python train.py --study budget --steps 200 --seed 0` gives each
#    model less than a fifth of the time. (The warm-up stays at 50 steps.) Which of the models still
#    learn lookups? Write it down first.

# %% [markdown] tags=["hint"]
# The first figure has the CPU seconds that each of them took. But the learning rate falls over the
# steps of a training, so a short one is not the beginning of a long one (lesson 3, exercise 2).
