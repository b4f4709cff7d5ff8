# %% [markdown]
# # Depth or time?
#
# **You will learn** whether twelve layers answer more than one, two or four layers that train for
# the same CPU time, and which models only need longer.<br>
# **Time** 5 to 15 s: nothing is trained here, the runs are stored.<br>
# **Needs** [Depth, parameters, memorisation](caveats.md).
#
# **Here two layers do what twelve do, in less than half of the CPU time.** One layer learns chains
# of sums in six of six runs, but lookups in none. One layer looped twelve times learns lookups in
# three of six runs; with settings chosen for it, in six of six, and part of the chains.
#
# A training step of twelve layers takes nearly eight times as long as one of a single layer. So a
# comparison at equal *steps*, as in [Seeds, threads, luck](6_how_would_you_know.md), gives the
# deep model
# nearly eight times the CPU time. What if each model may train for as long as twelve layers do?
#
# ## Six models, one budget
#
# Problems and settings are those of our main command, `python train.py --n_layers 12`; the
# settings, the preset `laptop`, were tuned for twelve layers. Each model takes as many steps as fit
# into the CPU time of 1,100 steps of twelve layers, and as many training rows as that needs, none
# of them twice. So cheaper steps also mean more rows: 305,532 for one layer, 39,600 for twelve.

# %%
import math
import statistics

import matplotlib.pyplot as plt

import minidepth as md
from minidepth_lab import judge, results
from minidepth_lab.studies import budget

models = budget.stored()
run = models["1 layer"][0]
print(run["grid"]["command"])
print(run["grid"]["date"], run["hardware"], "PyTorch", run["versions"]["torch"])
for name, runs in models.items():
    n, steps = runs[0]["params_total"], runs[0]["steps"]
    print(f"{name:17} {n:7,} parameters,", end=" ")
    print(f"{budget.COST[name]:5.1f} ms per step, {steps:5,} steps")

# %% [markdown]
# The milliseconds were measured before the runs, on a quiet machine with one thread, and then
# fixed. The CPU seconds on this page are steps times these milliseconds, so what else the machine
# did does not count. [What we expected](../results/budget/notes.md) was written down before
# the runs, too.
#
# ## Who answers what, and when

# %%
families = ("lookup", "order", "chain")
for name, runs in models.items():
    print(f"{name:17} accuracy", *(f"{run['accuracy']:.3f}" for run in runs))
    for family in families:
        at = [results.onset(run, family) for run in runs]
        after = (f"{budget.seconds(name, x):3.0f}" if x else "  –" for x in at)
        print(f"    {family:6} at 0.9 after CPU seconds", *after)

# %%
_, panels = plt.subplots(3, 1, figsize=(4.6, 8.6), sharex=True, sharey=True)
budget.draw(panels, models)
panels[0].set_title("two and four layers learn lookups soonest")
panels[1].set_title("two and four layers learn orderings soonest")
panels[2].set_title("one layer learns chains soonest")
plt.show()

# %% [markdown]
# What to see: two and four layers are the first to learn lookups, twelve follow, and one layer
# never does. Orderings go the same way at the median, though one layer learns them in four of six
# runs. But one layer is the first to learn chains. Thin lines are runs, six seeds per model, and
# thick lines their medians. Every 2.5 CPU seconds the model is tested on 33 problems of each
# family, the *watched* ones; the last point, and the accuracy printed above, is on all 600.
#
# **The second layer brings lookups.** One layer takes 8,487 steps, over more than 100,000 rows of
# lookups, and still guesses in six runs of six: of the five possible letters it finds the right one
# in 0.17 to 0.21 of the problems. Two layers answer 0.9 of the watched lookups after 5 to 10 CPU
# seconds, and in the end every one in the test. The known way to go on from a letter takes two
# looks, the first of which prepares the second: see [One look against many](3_one_look_or_two.md).
#
# **More layers than two bring no more right answers here, and they cost CPU time.** Two, four and
# twelve layers end with the same accuracy, to within one problem of 600: all three are at the
# ceiling. They learn lookups after about as many steps, 351, 264 and 300 at the median, but a step
# of twelve layers takes nearly five times as long as one of two. So two layers learn lookups in a
# quarter of the CPU time of twelve, and all three families in less than half of it.
#
# **One layer learns chains**, in every run, and in less CPU time than any run of twelve. Each step
# of a chain is a sum of two digits, and all of these sums occur in training. Orderings reach 0.9 in
# four of six runs.
#
# **Neither depth nor parameters alone were enough at these settings.** One layer looped twelve
# times is as deep as twelve layers, and a step of it takes as long. It learned lookups in three
# runs of six, after 64 to 109 of the 110 CPU seconds, where one layer looped once learned them in
# none; but it learned chains in none, where one layer looped once did in all six. The wide layer
# has as many parameters as twelve layers. By the same rule it learned orderings in one run of six,
# chains in two and lookups in none, though it does answer some lookups (exercise 3).
#
# ## What was expected
#
# Three of the eight predictions **were wrong**, each because a model did better than expected: one
# layer (B2), the wide layer (B3) and two layers (B5). B2 and B3 also said that lookups would not be
# learned, and that part came true in all twelve runs. B4 was no blind guess: in [tuning
# runs](15_first_run.md) two layers had learned lookups when they were given nothing else.

# %% tags=["hide"]
loop, wide = "1 layer, 12 times", "1 wide layer"
accuracy = {name: [run["accuracy"] for run in runs] for name, runs in models.items()}


def until(name, family):
    """CPU seconds until each run of a model has learned a family, or until its end."""
    return [budget.learned_at(name, run, family) for run in models[name]]


look_ups = {name: until(name, "lookup") for name in models}
for each in judge.judged("budget"):
    name = each["id"].partition("/")[2]
    print(f"{name} {each['sentence']}:\n   {each['measured']}, {each['verdict']}")

# %% [markdown]
# **In loss, two and four layers are ahead of twelve**, in every run, where accuracy sees no
# difference: they end below 0.000003, and twelve above 0.00004. They took more steps.

# %% [markdown] tags=["details"]
# Here are the seven comparisons that were named before the runs, by exact permutation tests, with
# Holm's correction for seven. Below them are eleven that were *not planned*, corrected for eleven:
# the last validation loss of the same five pairs, and when orderings and chains are learned.
#
# Twelve runs can be divided into two groups of six in 924 ways, so 2/924 = 0.0022 is the smallest p
# that this test can give. It gives that where the runs of the two models do not overlap at all. A p
# of 1 is no evidence that two models are equal: here both are at the ceiling. The three other
# models differ from twelve layers in loss as in accuracy. Two and four layers learn orderings and
# chains sooner than twelve. One layer learns chains sooner; in orderings, which two of its runs
# never learn, the two overlap.

# %% tags=["details"]
planned, not_planned = {}, {}
losses = {name: [run["val_loss"] for run in runs] for name, runs in models.items()}
for name in ("1 layer", "2 layers", "4 layers", loop, wide):
    planned[f"accuracy, 12 layers − {name}"] = accuracy["12 layers"], accuracy[name]
    not_planned[f"loss, 12 layers − {name}"] = losses["12 layers"], losses[name]
for name in ("2 layers", "4 layers"):
    both = look_ups["12 layers"], look_ups[name]
    planned[f"CPU seconds to lookups, 12 layers − {name}"] = both
for name in ("1 layer", "2 layers", "4 layers"):
    for family in ("order", "chain"):
        both = until("12 layers", family), until(name, family)
        what = f"CPU seconds to {budget.FAMILIES[family]}"
        not_planned[f"{what}, 12 layers − {name}"] = both
judge.show_tests(planned)
print()
unplanned = judge.show_tests(not_planned)

# %% [markdown]
# ## At their own best
#
# The looped layer (one layer looped twelve times) and the wide one fell short with settings chosen
# for twelve layers. So we tried others: pairs of a learning rate and a size of the initial weights
# (`init_std`), one run each for the same CPU time. Here is their validation loss on problems taken
# out of training for the purpose:

# %%
budget.show_tried()
print("predictions:", judge.tally("budget-tuned"))

# %% [markdown]
# One layer and twelve kept the pair that they had, 0.003 and 0.1. For the other two, another pair
# was best; with it we ran six fresh seeds, after [new
# predictions](../results/budget-tuned/notes.md). The pairs of twelve layers and the outermost
# ones were added later, and changed nothing. One of [three
# predictions](../results/budget-tuned/notes.md) about them **was wrong**: for twelve layers,
# initial weights of half the size are no worse (0.00003 against 0.0005).

# %%
tuned = {}
for name in (loop, wide):
    tuned[name] = judge.named_runs("budget-tuned")[name]
    print(f"{name}:")
    print("    all   ", *(f"{run['accuracy']:.3f}" for run in tuned[name]))
    for family in families:
        shares = [run["accuracy_by_family"][family] for run in tuned[name]]
        print(f"    {family:6}", *(f"{share:.2f}" for share in shares))

best = {name: [run["accuracy"] for run in runs] for name, runs in tuned.items()}
ends = {name: [run["val_loss"] for run in runs] for name, runs in tuned.items()}
for what, old, new in (("accuracy", accuracy, best), ("loss", losses, ends)):
    judge.show_tests({
        f"{what}, 12 layers − {loop}": (old["12 layers"], new[loop]),
        f"{what}, 12 layers − {wide}": (old["12 layers"], new[wide]),
        f"{what}, {loop}: now − before": (new[loop], old[loop]),
    })  # fmt: skip

# %% [markdown]
# **With initial weights of half the size, the looped layer learns lookups and orderings** in six
# runs of six, and answers half to four fifths of the chains: 0.845 to 0.938 of all problems instead
# of 0.322 to 0.797. So most of what it lacked was better settings. It still answers fewer than
# twelve layers, or two, in the same time. But each of its runs is above every run of one layer
# looped once, which has the same parameters, trains as long, and ends at 0.55 to 0.69. So here
# depth helps, at equal time and with the same parameters. (This comparison was not named before.)
#
# **The wide layer does not get much further**: it answers 0.30 to 0.70, and learns chains in five
# runs of six and lookups in none. All four new predictions held. The losses (not planned) differ as
# the accuracies do.
#
# ## What this does not say
#
# - **The steps are written.** A model that writes each letter down has to find only one hop at a
#   time, and two layers do that. Where it has to answer at once, more steps took more layers in our
#   runs: [Thinking against depth](5_writing.md), [Rings](rings.md).
# - **The problems are small.** Three models answer nearly all of them; harder ones may tell these
#   apart. Nothing here says that two layers would do for chain-of-thought text written by people.
# - **Few settings.** The learning rate, the initial weights and 50 steps of warm-up were chosen for
#   twelve layers. Four models were tried with more pairs of the first two, one run each. And a
#   model that is still guessing may yet learn: a looped run guessed at lookups for 90 CPU seconds
#   and then learned them. "Not found" is not "cannot".
# - **The schedule.** The learning rate falls over each model's own steps. When twelve layers learn
#   chains, at the median, it is at about half of its peak. That may be why they learn them then.
# - **The time is that of one CPU thread**, without evaluations, as measured before the runs. In the
#   runs themselves, two at a time, a step of twelve layers took 112 ms instead of 100, and one of
#   the wide layer 41 instead of 44. By these numbers the wide layer had some 15 % too few steps. On
#   other machines the ratios may differ more.

# %%
all_three = {}
for name in models:
    all_three[name] = [max(times) for times in zip(*(until(name, f) for f in families))]
verdicts = judge.verdicts("budget")
assert [name for name in verdicts if verdicts[name] == judge.WRONG] == ["B2", "B3", "B5"]
looked = {name: sum(budget.learned(runs, "lookup")) for name, runs in models.items()}
assert looked["1 layer"] == looked[wide] == 0 and looked[loop] == 3
for run in models["1 layer"]:
    last = run["accuracy_by_family"]
    assert 0.165 < last["lookup"] < 0.215 and last["chain"] > 0.95
    assert 0.575 < last["order"] < 0.935
for name in ("2 layers", "4 layers", "12 layers"):
    assert looked[name] == 6 and min(accuracy[name]) > 1 - 1.5 / 600
assert 5 <= min(look_ups["2 layers"]) and max(look_ups["2 layers"]) < 10.05
middle = {name: statistics.median(look_ups[name]) for name in models}
assert 0.2 < middle["2 layers"] / middle["12 layers"] < 0.3
assert max(all_three["2 layers"]) < 0.5 * min(all_three["12 layers"])
chains = {name: [results.onset(run, "chain") for run in runs] for name, runs in models.items()}
assert None not in chains["1 layer"] and set(chains[loop]) == {None}
assert max(until("1 layer", "chain")) < min(until("12 layers", "chain"))
assert max(losses["2 layers"] + losses["4 layers"]) < 3e-6
assert min(losses["12 layers"]) > 4e-5
above = [name for name, p in unplanned.items() if p > 0.05]
assert above == ["CPU seconds to orderings, 12 layers − 1 layer"]
for name, step in (("2 layers", 351), ("4 layers", 264), ("12 layers", 300)):
    assert statistics.median(results.onset(run, "lookup") for run in models[name]) == step
first = [run["accuracy"] for run in results.runs("first-run", n_layers=1)]
assert len(first) == 20 and f"{statistics.mean(first):.2f}" == "0.28"
assert f"{statistics.mean(accuracy['1 layer']):.2f}" == "0.64"
by_family = {name: [run["accuracy_by_family"] for run in runs] for name, runs in tuned.items()}
assert all(min(last["lookup"], last["order"]) > 0.98 for last in by_family[loop])
assert all(0.5 < last["chain"] < 0.82 for last in by_family[loop])
assert 0.84 < min(best[loop]) and max(best[loop]) < 0.94 and max(accuracy["1 layer"]) < 0.69
assert min(best[wide]) > 0.3 and max(best[wide]) < 0.7
assert sum(last["chain"] > 0.9 for last in by_family[wide]) == 5
assert max(last["lookup"] for last in by_family[wide]) < 0.9
before, one, deep = map(statistics.mean, (first, accuracy["1 layer"], accuracy["12 layers"]))
assert 0.45 < (one - before) / (deep - before) < 0.55
took = {name: budget.milliseconds(runs) for name, runs in models.items()}
assert 110 < took["12 layers"] < 113 and 41 < took[wide] < 42
due = 1100 * took["12 layers"] / took[wide]
assert 0.13 < 1 - models[wide][0]["steps"] / due < 0.17
tried = budget.tried()
own = {name: min(found, key=found.get) for name, found in tried.items()}
assert own[loop] == (0.003, 0.05) and own[wide] == (0.001, 0.05)
deep = sorted(tried["12 layers"].values())
assert deep[1] == tried["12 layers"][0.003, 0.1] < 0.001 < 0.08 < deep[2]
assert tried["1 layer"][0.003, 0.1] == min(tried["1 layer"].values())
assert models["1 layer"][0]["steps"] == 8487 and models["1 layer"][0]["max_rows"] > 300_000

# %% [markdown]
# ## Exercises
#
# 1. Count steps instead of seconds. After how many steps do two, four and twelve layers answer 0.9
#    of each of the three families? Does depth help by this measure?

# %% [markdown] tags=["hint"]
# `results.onset(run, family)` is the step; the last of the three families counts.

# %% [markdown] tags=["answer"]
# Counted in steps, twelve layers are ahead of two, with 650 against 1,404 at the median, mostly
# because of the chains; four are between them. But the learning rate falls over each model's own
# steps: at step 700 that of twelve layers is at 0.4 of its peak, and that of two layers still at
# 0.96. So the schedule may be part of the reason, and these runs cannot tell it from depth.
#
# One layer gets far with more steps, too. After [1,100 of them](6_how_would_you_know.md) it
# answers 0.28 of all
# problems, the mean of twenty seeds; after the CPU time of twelve layers 0.64, the mean of six.
# That closes half of the gap to twelve layers. At the end it answers 0.58 to 0.93 of the orderings,
# where guessing finds 0.34. Steps need not be the only reason: there are 7.7 times the rows as
# well, and the learning rate falls later.

# %% tags=["answer"]
for name in ("2 layers", "4 layers", "12 layers"):
    steps = [max(results.onset(run, family) for family in families) for run in models[name]]
    config = md.TrainConfig(steps=models[name][0]["steps"], warmup_steps=50)
    print(f"{name:10}", *steps, f"; rate at step 700: {md.lr_at(700, config) / config.lr:.2f}")

# %% [markdown]
# 2. Would five runs of each model have been enough for the seven comparisons?

# %% [markdown] tags=["hint"]
# In how many ways can ten runs be divided into two groups of five? In five of the comparisons the
# two models do not overlap, and Holm's correction multiplies the smallest p by seven.

# %% [markdown] tags=["answer"]
# No. Even where the two models do not overlap, the smallest p times seven is above 0.05. With six
# runs it is below.

# %% tags=["answer"]
for n in (5, 6):
    least = 2 / math.comb(2 * n, n)
    print(f"{n} runs of each: least p {least:.4f}, times seven {7 * least:.4f}")

# %% [markdown]
# 3. The wide layer learns lookups in none of its runs. How many of them does it answer, by the
#    number of steps? Does that contradict what theory says of one layer?

# %% [markdown] tags=["answer"]
# In three of six runs it answers 0.64 to 0.78 of the one-hop lookups. That does not contradict
# theory. For a related task a single layer has to be exponentially larger than two layers need to
# be ([arXiv 2408.14332](https://arxiv.org/abs/2408.14332)), and for six letters that need not be
# large. We know weights, [written by
# hand](4_walking.md#is-one-layer-without-loops-unable-to-answer), with which one layer
# answers such questions on a ring of eight. We have not looked at how the wide layer does it.

# %% tags=["answer"]
for name in ("1 layer", wide):
    for k in (1, 2, 3):
        shares = [run["accuracy_by_problem"][f"lookup {k}"] for run in models[name]]
        print(f"{name:12} lookups of {k}:", *(f"{share:.2f}" for share in shares))
ones = [run["accuracy_by_problem"]["lookup 1"] for run in models[wide]]
assert sum(0.63 < share < 0.79 for share in ones) == 3 and min(ones) > 0.1

# %% [markdown]
# 4. To run, in some five minutes: `python train.py --study budget --steps 200 --seed 0` gives each
#    model less than a fifth of the time. (The warm-up stays at 50 steps, a quarter of the 200 that
#    twelve layers take.) Which of the models still learn lookups?

# %% [markdown] tags=["hint"]
# The table that the command prints has a single accuracy per run. The log of each run has
# `accuracy_by_family`, and `budget.png` draws it.
