# %% [markdown]
# # A first run that learns
#
# **With today's settings `python train.py --n_layers 12` learns in twenty runs of twenty; before
# the five tries below it was eight of ten.** This page is the story behind those settings, the
# preset `laptop`: what the failed runs had in common, why one seed kept failing, as far as we know,
# and what chosen seeds promised that fresh ones did not keep. [Lesson
# 6](6_how_would_you_know.md#tune-on-some-report-on-others) has the moral.
#
# This command is what most people try first, and whether it learns should not be a matter of luck.
# After [the first runs](../reference/results.md#first-run-before) we gave each ring of letters
# three questions in training instead of one. Since then we have chosen settings five times, on a
# few seeds and problems set aside for that, and each time run the command on several fresh seeds.
# All of those runs are stored:

# %%
import math
import statistics

import matplotlib.pyplot as plt
from scipy.stats import mannwhitneyu

import minidepth as md
from minidepth_lab.measure import judge, results
from minidepth_lab.show import figures
from minidepth_site import widgets

tries = {
    "first": ("900 steps", "first-run-momentum"),
    "second": ("1,200 steps, beta2 0.99", "first-run-longer"),
    "third": ("900 steps, beta1 0.5", "first-run-short"),
    "fourth": ("1,000 steps, beta1 0.7", "first-run-three-passes"),
    "today": ("1,100 steps, beta1 0.7, longer walks, no row twice", "first-run"),
}
tried = {}  # {folder: its runs of twelve layers}


def step_learned(run, family):
    """The step from which a run answers 0.9 of a family; infinite if none."""
    return results.onset(run, family) or math.inf


rows = []
for name, (settings, folder) in tries.items():
    runs = results.runs(folder, n_layers=12)
    # seed 0 is that of the README
    runs = tried[folder] = [run for run in runs if run["seed"] > 0]
    accuracies = [run["accuracy"] for run in runs]
    enough = sum(accuracy >= 0.95 for accuracy in accuracies)
    step = statistics.median(step_learned(run, "lookup") for run in runs)
    lowest = f"{min(accuracies):.3f}"
    share = f"{enough} of {len(runs)}"
    rows.append([f"{name}: {settings}", share, lowest, f"{step:.0f}"])
widgets.table(["settings", "answer 0.95", "lowest", "lookups from step"], rows)


# %%
def chains_came_first(run):
    """Whether chains were learned before lookups, or lookups never."""
    return step_learned(run, "chain") < step_learned(run, "lookup")


figure, axes = plt.subplots(figsize=(4.6, 3.6))
for at, (_, folder) in enumerate(tries.values()):
    runs = tried[folder]
    for i, run in enumerate(runs):
        place = at + 0.3 * (i / len(runs) - 0.5)
        color = "C3" if chains_came_first(run) else "C1"
        axes.plot(place, run["accuracy"], "o", color=color, alpha=0.7)
axes.axhline(0.95, color="gray", linestyle=":")
axes.annotate("chains before lookups", (0.45, 0.7), color="C3")
axes.annotate("lookups first", (0.45, 0.75), color="C1")
axes.set_xticks(range(len(tries)), tries)
axes.set(ylabel="accuracy, held-out problems", ylim=(0.6, 1.02))
axes.set_title("the last settings learn in every run")
plt.show()

# %% [markdown]
# What to see: with the settings of today all twenty runs are above the dotted line, at 0.95; of the
# earlier settings, each that had many runs has one run below it. Each dot is one run of twelve
# layers, measured on 600 held-out problems. Purple: chains were learned before lookups.
#
# Twenty runs of each were planned. We stopped the second settings after seventeen, for lack of
# time, and the third after four, because chains had come late in two of them. Settings that are
# better at the median need not be safer: with the second settings the median rose, and one run
# never learned lookups.
#
# **The runs that went wrong learned chains before lookups.** Of the three families of problems,
# lookups (`Follow c a, b c, … Go 2 from b ?`) are usually learned first, and suddenly; chains,
# which are sums, come last. In the first four tries chains came before lookups in three runs of 61,
# and exactly these three ended below 0.95:

# %% tags=["hide"]
before = sum((tried[folder] for folder in list(tried)[:4]), [])
late = [run for run in before if chains_came_first(run)]
rows = []
for run in late:
    first, last = (results.onset(run, name) or "–" for name in ("lookup", "chain"))
    rows.append([f"seed {run['seed']}", f"{run['accuracy']:.3f}", first, last])
well = [run["accuracy"] for run in before if run not in late]
rows.append([f"the other {len(well)}", f"{min(well):.3f} or more", "first", "later"])
widgets.table(["run", "accuracy", "lookups from step", "chains from step"], rows)

# %% [markdown]
# ## When does it happen?
#
# The log has the accuracy on each family of problems at every evaluation: on 33 problems of each,
# and at the last step on 600 in all. Here are ten of the twenty seeds with today's settings:

# %%
families = figures.FAMILY_COLORS  # {"lookup": its colour, "order", "chain"}
ten = results.by(results.runs("first-run", seed=range(120, 130)), "n_layers")
onsets = {L: {f: [results.onset(run, f) for run in found] for f in families}
          for L, found in ten.items()}  # fmt: skip
_, axes = plt.subplots(figsize=(4.6, 3.2))
for family, color in families.items():
    lines = []
    for run in ten[12]:
        rows = [row for row in run["log"] if "accuracy_by_family" in row]
        steps = [row["step"] for row in rows]
        lines.append([row["accuracy_by_family"][family] for row in rows])
        axes.plot(steps, lines[-1], color=color, alpha=0.25, linewidth=0.8)
    axes.plot(steps, [statistics.median(at) for at in zip(*lines)], color=color, linewidth=2.5)
axes.annotate("lookup", (290, 0.93), color=families["lookup"], ha="right")
axes.annotate("order", (350, 0.7), color=families["order"], ha="right")
axes.annotate("chain", (915, 0.6), color=families["chain"])
axes.set(xlabel="training step", ylabel="accuracy of a family", ylim=(-0.03, 1.08))
axes.set_title("twelve layers learn one family after another")
plt.show()

# %% [markdown]
# What to see: twelve layers learn lookups suddenly. For 200 steps or more they answer few of them;
# then, within 50 or 100 steps, the share goes from less than half to nine of ten. Orderings grow
# more evenly, and chains come last, when the learning rate has already fallen. Each thin line is
# one run, each thick one the median of ten.
#
# One run is different: with seed 125, chains are learned at step 700 and lookups only at step 900.
# So the first and the last run to learn lookups are 650 steps apart, and for chains it is 200:
# whoever trains a single seed, and stops in between, reports luck. One layer learns no family in
# these steps.
#
# **Even eighty runs can mislead, if all of them stop too early.** Eighty runs of one layer are
# stored, with these settings and earlier ones. None of them learns chains. Two stand out, and may
# have been on the way. And given eight times the steps, and fresh rows for all of them, [six runs
# of six](7_equal_time.md) learn chains. The table has the share of chains that is answered:

# %% tags=["hide"]
names = [name for name in results.experiments() if name.startswith("first-run")]
flat = [run for name in names for run in results.runs(name, n_layers=1)]
chains = sorted(run["accuracy_by_family"]["chain"] for run in flat)
shown = [f"{share:.2f}" for share in (chains[0], chains[-3], *chains[-2:])]
widgets.table(["runs", "lowest", "third", "second", "best"], [[len(chains), *shown]])

# %% [markdown]
# ## A shorter memory
#
# AdamW does not follow the gradient of one step but an average over the last steps. `beta1` says
# how far back the average goes: about ten steps with 0.9, three with 0.7, two with 0.5. With two
# layers and nothing but lookups to learn, a shorter memory finds them sooner, in both seeds that we
# tried:

# %% tags=["details"]
tuning = results.noted("first-run")


def learned_at(run):
    """The first evaluation at which lookups are learned; None if none is."""
    for row in run["evaluations"]:
        # the loss tells where there was nothing else to learn
        alone = run["only_lookups_until"] and row["train_loss"] < 0.1
        if alone or row.get("lookup", 0) >= 0.9:
            return row["step"]


# %% tags=["hide"]
by_beta = {}
for run in tuning:
    if run["n_layers"] == 2 and run["changed"].keys() <= {"beta1", "steps"}:
        steps = by_beta.setdefault(run["changed"].get("beta1", 0.9), {})
        steps.setdefault(run["seed"], learned_at(run))
rows = []
for beta1, steps in sorted(by_beta.items(), reverse=True):
    rows.append([beta1, ", ".join(f"seed {seed} at {at}" for seed, at in sorted(steps.items()))])
widgets.table(["beta1", "two layers, lookups alone, learned"], rows)

# %% [markdown]
# So the fourth settings had `beta1` 0.7. At the median, lookups came 50 steps sooner than with the
# first settings; but one run of twenty still fell short. The typical run had improved, the bad case
# had not.
#
# ## A seed that fails again
#
# Does a failure come from the seed, or could it happen to any? Seed 73 is the one that never
# learned lookups. We trained it again with settings that work for other seeds, and with training
# rows that never repeat. These are tuning runs: their problems are not those of the test.


# %% tags=["details"]
def of_seed(seed, **changes):
    """The tuning runs of a seed with fresh rows, no changes beside these, 300 steps or more."""
    ours = {"beta1", "steps", "lr_floor", "max_rows", "block_size"}
    return [
        run for run in tuning
        if run["seed"] == seed and run["changed"].get("max_rows") and not run["only_lookups_until"]
        and {k: v for k, v in run["changed"].items() if k not in ours} == changes
        and run["stopped_at"] >= 300
    ]  # fmt: skip


def summary(runs):
    """When these runs learned lookups, or for how long they did not."""
    return ", ".join(
        f"at step {learned_at(run)}" if learned_at(run) else f"not by step {run['stopped_at']}"
        for run in runs
    )


# %% tags=["hide"]
rows = [["seed 73, as it is", summary(of_seed(73))]]
rows.append(["seed 73, batches in the order of seed 1", summary(of_seed(73, batches_of_seed=1))])
for part in ("positions", "token embeddings", "queries, keys and values"):
    rows.append([f"seed 73, {part} drawn anew", summary(of_seed(73, drawn_anew=part))])
for seed in (2, 4, 6, 7):
    rows.append([f"seed {seed}, as it is", summary(of_seed(seed))])
widgets.table(["run", "learns lookups"], rows)

# %% [markdown]
# Another order of the batches, or other initial positions, had not helped by step 500. With other
# initial token embeddings seed 73 learns lookups about as soon as other seeds do, and so it does
# with other initial queries, keys and values. So neither of the two seems bad by itself; they seem
# not to fit together. (Each line about seed 73 is a single run.)
#
# Our guess, which we have not tested, is this. To look a letter up, a head has to recognise it: the
# query of a letter must agree with the key of a place that the letter was copied to. How well they
# agree before training is a matter of chance, and in seed 73 no head agrees well enough to be
# improved.
#
# ## More of each walk
#
# We did not want to pick initial weights, so we gave the model more to learn from. In training,
# each ring is asked three questions, one after another. Until then all three went one to three hops
# round the ring. Now the second and the third go all the way round, which is five hops with six
# letters. Each hop of such a walk is a lookup, so on average a row has twelve lookups to learn from
# instead of six:

# %% tags=["hide"]
walks = {"one to three hops": {}, "one to five": dict(later_walks="1 to 5 steps")}
walks["all the way round"] = dict(later_walks="all the way round")
rows = []
for seed in (73, 2, 4, 7):
    rows.append([seed, *(summary(of_seed(seed, **changes)) or "–" for changes in walks.values())])
widgets.table(["seed", *(f"walks of {name}" for name in walks)], rows)

# %% [markdown]
# Seed 73 learns lookups by step 250 now. But the longer walks do not make everything better: in a
# run of seed 7 with 800 steps, orderings were still at 0.73 when it ended. So the command takes
# 1,100 steps.
#
# What else we tried, in one or two runs each ([all runs](../reference/results.md#first-run)):
#
# - Seed 73 also learns lookups with walks of one to five hops, and with five questions instead of
#   three, but five questions make a row about one and a half times as long.
# - With queries that start equal to the keys it learned lookups, too. But seed 4, which has no
#   trouble otherwise, had not learned them by step 350.
# - These did not help: output matrices that start larger, another scale of the attention scores,
#   and a learning rate that is held at its peak.
#
# ## What fresh seeds say
#
# We [wrote down](../results/first-run/notes.md) four predictions, and then ran twenty fresh seeds,
# with twelve layers and with one. All twenty runs of twelve layers were to reach 0.95 (R1) and to
# learn lookups by step 500 (R2), and none was to learn chains first (R3). One layer was to stay
# below 0.5 (R4).

# %% tags=["hide"]
today = tried["first-run"]
good = [run["accuracy"] >= 0.95 for run in today]
low, high = judge.exact_interval(sum(good), len(good))
steps = [step_learned(run, "lookup") for run in today]
fourth = [step_learned(run, "lookup") for run in tried["first-run-three-passes"]]
middle, earlier = statistics.median(steps), statistics.median(fourth)
p = mannwhitneyu(steps, fourth).pvalue
again = [run for run in today if chains_came_first(run)]
flat = [run["accuracy"] for run in results.runs("first-run", n_layers=1)]
rows = [[each["id"].partition("/")[2], each["measured"], each["verdict"]]
        for each in judge.judged("first-run")]  # fmt: skip
widgets.table(["prediction", "runs", "verdict"], rows)
rows = [["share that reaches 0.95", f"{low:.2f} to {high:.2f}"]]
rows.append(["lookups from step, median", f"{middle:.0f}"])
rows.append(["with the fourth settings", f"{earlier:.0f}"])
rows.append(["p of Mann and Whitney", f"{p:.2f}"])
widgets.table(["fresh seeds", ""], rows)

# %% [markdown]
# All twenty runs learn; thirteen answer all 600 problems. R1 and R4 held. R2 and R3 **were wrong**,
# both by the same run: with seed 125 chains still come first, and lookups only at step 900. Yet
# this run answers 0.988, where the three earlier runs that learned chains first ended at 0.648 to
# 0.940.
#
# And lookups do not come sooner. In the tuning runs they did, with three seeds of four, but the
# median of twenty fresh seeds is no lower than with the fourth settings. That is what fresh seeds
# are for: four seeds that one has looked at while choosing say little.
#
# Why did the late run get there this time? Today's settings differ from the fourth in four things:
# the walks go all the way round, no row is used twice, there are 100 steps more, and the learning
# rate falls lower in the end. All four came together, so these runs do not tell which of them did
# it. They tell how often the command learns, and even that only roughly.

# %%
enough = {folder: [run["accuracy"] >= 0.95 for run in runs] for folder, runs in tried.items()}
assert [(sum(made), len(made)) for made in enough.values()] == [
    (19, 20), (16, 17), (4, 4), (19, 20), (20, 20)
]  # fmt: skip
assert sorted(run["seed"] for run in late) == [52, 73, 118] and len(before) == 61
assert max(run["accuracy"] for run in late) < 0.95 <= min(well)
assert [run["seed"] for run in again] == [125] and f"{again[0]['accuracy']:.3f}" == "0.988"
assert sum(run["accuracy"] == 1 for run in today) == 13 and all(enough["first-run"])
assert max(steps) == 900 and sum(step <= 500 for step in steps) == 19
assert p > 0.1 and max(flat) < 0.5 and len(flat) == 20
medians = {f: statistics.median(run["accuracy"] for run in runs) for f, runs in tried.items()}
assert medians["first-run-longer"] > medians["first-run-momentum"]
assert by_beta[0.9] == {4: 250, 6: 260} and by_beta[0.7] == {4: 150, 6: 160}
first_try = [step_learned(run, "lookup") for run in tried["first-run-momentum"]]
assert statistics.median(first_try) - statistics.median(fourth) == 50
(never,), round_it = of_seed(73), walks["all the way round"]
assert learned_at(never) is None and learned_at(of_seed(73, batches_of_seed=1)[0]) is None
anew = {"positions": None, "token embeddings": 350, "queries, keys and values": 350}
for part, step in anew.items():
    (run,) = of_seed(73, drawn_anew=part)
    assert learned_at(run) == step
for seed, step in ((73, 400), (4, None)):
    (run,) = of_seed(seed, queries_start_as_keys=True)
    assert learned_at(run) == step
assert {learned_at(run) for run in of_seed(73, **round_it)} == {250}
assert {learned_at(run) for run in of_seed(73, ring_questions=5)} == {350}
short = [run for run in of_seed(7, **round_it) if run["steps"] == 800]
assert f"{short[0]['evaluations'][-1]['order']:.2f}" == "0.73"
walked = []
for row in md.embedded_rows(900, questions=md.PRESETS["laptop"]["ring_questions"]):
    if row["family"] == "lookup":
        answers = [turn["content"] for turn in row["messages"] if turn["role"] == "assistant"]
        walked.append(sum(len(text.split("\n")[1].split()) - 2 for text in answers))
assert statistics.mean(walked) == 12
assert set(sum(onsets[1].values(), [])) == {None}
for run, look in zip(ten[12], onsets[12]["lookup"]):
    shares = {row["step"]: row["accuracy_by_family"]["lookup"] for row in run["log"]}
    few = [step for step, share in shares.items() if step < look and share < 0.5]
    assert max(few) >= look - 100 and 200 in few
odd = [run["seed"] for run in ten[12]].index(125)
for i, (look, order, chain) in enumerate(zip(*(onsets[12][family] for family in families))):
    assert (look, chain) == (900, 700) if i == odd else look <= order <= chain
assert max(onsets[12]["chain"]) - min(onsets[12]["chain"]) == 200
assert max(onsets[12]["lookup"]) - min(onsets[12]["lookup"]) == 650
before_all = results.runs("first-run-before", n_layers=12, seed=range(30, 40))
assert [run["accuracy"] >= 0.95 for run in before_all].count(True) == 8 and len(before_all) == 10
assert len(chains) == 80 and chains[-3] < 0.3 < chains[-2] < 0.5 < chains[-1] < 0.9

# %% [markdown]
# ## Exercises
#
# 1. Twenty of twenty runs learned. How likely was that, if the true share is nineteen of twenty?
#    And how low must the true share be for twenty of twenty to come out less than one time in
#    twenty?

# %% [markdown] tags=["hint"]
# The runs are independent, so multiply.

# %% [markdown] tags=["answer"]
# 0.95 to the 20th power is 0.36, so such luck is common. With a true share of 0.86 it is rarer than
# one time in twenty. So these runs say that most first runs learn, more than 0.86 of them unless we
# were that lucky. They do not say that every run does, nor even that the settings are better than
# those with nineteen of twenty.

# %% tags=["answer"]
print(f"{0.95**20:.2f} with a share of 0.95, {0.86**20:.3f} with 0.86, {0.87**20:.3f} with 0.87")
assert f"{0.95**20:.2f}" == "0.36" and 0.86**20 < 0.05 < 0.87**20

# %% [markdown]
# 2. To run: seed 73 is the one that never learned lookups with earlier settings. Train it with
#    today's, `python train.py --n_layers 12 --seed 73`. Which family does it learn first, and when?

# %% [markdown] tags=["hint"]
# The second panel of `curve.png` shows the accuracy of each family.

# %% [markdown] tags=["answer"]
# In our tuning runs with walks all the way round, lookups were learned at step 250, before the two
# other families. You train on other rows than those runs did, so your steps may differ.
