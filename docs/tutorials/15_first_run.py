# %% [markdown]
# # A first run that learns
#
# **You will learn** why one run in twenty of our main command failed, what two models with the same
# settings can differ in, and what cured the failure.<br>
# **Time** 5 to 15 s: nothing is trained here, the runs took hours and are stored.<br>
# **Needs** [Seeds, threads, luck](13_seeds.md).
#
# `python train.py --n_layers 12` is what most people try first. It should not be a matter of luck
# whether it learns. Five times we fixed its settings, on some seeds and problems, and then ran it on
# seeds that had not been looked at, each once. All of those runs are stored:

# %%
import json
import math
import statistics

import matplotlib.pyplot as plt

from studies import figures, results, verdicts

tries = {
    "900 steps": "first-run-momentum",
    "1,200 steps,\nbeta2 0.99": "first-run-longer",
    "beta1 0.5": "first-run-short",
    "beta1 0.7,\n1,000 steps": "first-run-three-passes",
    "today": "first-run",
}
tried = {}  # {folder: its runs of twelve layers}
for name, folder in tries.items():
    paths = sorted((results.RESULTS / folder).glob("12-layers-seed-*-threads"))
    runs = tried[folder] = [results.result(path) for path in paths]
    enough = sum(run["accuracy"] >= 0.95 for run in runs)
    lookups = [results.onset(run, "lookup") or math.inf for run in runs]
    first = sum(step > (results.onset(run, "chain") or math.inf)
                for step, run in zip(lookups, runs))  # fmt: skip
    print(name.replace("\n", " ") + f": {enough} of {len(runs)} answer 0.95 or more;", end=" ")
    print(f"lowest {min(run['accuracy'] for run in runs):.3f};", end=" ")
    print(f"look-ups at step {statistics.median(lookups):.0f} (median), chains first in {first}")

# %% tags=["hide"]
figure, axes = plt.subplots(figsize=(5, 3.2))
for at, (name, folder) in enumerate(tries.items()):
    accuracies = [run["accuracy"] for run in tried[folder]]
    spread = [at + 0.24 * (i / max(1, len(accuracies) - 1) - 0.5) for i in range(len(accuracies))]
    axes.plot(spread, accuracies, "o", color="C1", alpha=0.6)
axes.axhline(0.95, color="gray", linestyle=":")
axes.set_xticks(range(len(tries)), tries, fontsize=8)
axes.set(ylabel="accuracy on 600 held-out problems", ylim=(0.6, 1.02))
axes.set_title("FIGURE TITLE", loc="left")
plt.show()

# %% [markdown]
# What to see: SEEN. Each dot is one run of twelve layers. Of the second settings we stopped after
# seventeen runs of twenty for lack of time, of the third after four, because two of them had learned
# late. What is better at the median need not be surer: with the second settings the median rose, and
# one run never learned look-ups.
#
# What goes wrong is nearly always the same. There are three families of problems. Look-ups
# (`Follow c a, b c, … Go 2 from b ?`) are usually learned first, suddenly, and chains (sums) last.
# In the first four tries chains came before look-ups in three runs of 61, and exactly these three
# ended below 0.95.

# %%
before = sum((tried[folder] for folder in list(tried)[:4]), [])
late = [run for run in before
        if (results.onset(run, "chain") or math.inf) < (results.onset(run, "lookup") or math.inf)]  # fmt: skip
for run in late:
    steps = [f"{family} {results.onset(run, family) or '–'}" for family in ("lookup", "chain")]
    print(f"seed {run['seed']}: accuracy {run['accuracy']:.3f}; at 0.9 from step", *steps)
others = [run["accuracy"] for run in before if run not in late]
print(f"the other {len(others)}: from {min(others):.3f}")

# %% [markdown]
# ## A shorter memory
#
# AdamW does not follow the gradient of a step but an average of the last ones. `beta1` says how far
# back it goes: about ten steps with 0.9, three with 0.7, two with 0.5. With two layers and nothing
# but look-ups, which takes half a minute per run, a shorter memory finds them sooner:

# %%
lines = (results.RESULTS / "first-run" / "tuning.jsonl").read_text(encoding="utf-8").splitlines()
tuning = [json.loads(line) for line in lines]


def learned_at(run):
    """The first evaluation at which look-ups are learned; None if none is."""
    for row in run["evaluations"]:
        # the loss tells where there was nothing else to learn
        alone = run["only_lookups_until"] and row["train_loss"] < 0.1
        if alone or row.get("lookup", 0) >= 0.9:
            return row["step"]


by_beta = {}
for run in tuning:
    if run["n_layers"] == 2 and run["changed"].keys() <= {"beta1", "steps"}:
        steps = by_beta.setdefault(run["changed"].get("beta1", 0.9), {})
        steps.setdefault(run["seed"], learned_at(run))
for beta1, steps in sorted(by_beta.items(), reverse=True):
    told = ", ".join(f"seed {seed} at {step}" for seed, step in sorted(steps.items()))
    print(f"two layers, look-ups alone, beta1 {beta1}: {told}")

# %% [markdown]
# So the fourth settings had `beta1` 0.7. Look-ups came 50 steps sooner at the median, and still one
# run of twenty fell short. The average had moved, the bad case had not.
#
# ## A seed that fails every time
#
# Is a failed run bad luck that could strike any seed, or is it in the seed? Seed 73 is the one that
# never learned look-ups. We gave it to settings that work elsewhere, with training rows that are
# never repeated, and with problems it had not had. In these tuning runs the problems are not those
# of the test.

# %%
def of_seed(seed, **changes):
    """The tuning runs of a seed with fresh rows and these changes beside, however long."""
    ours = {"beta1", "steps", "lr_floor", "max_rows", "block_size"}
    return [
        run for run in tuning
        if run["seed"] == seed and run["changed"].get("max_rows") and not run["only_lookups_until"]
        and {k: v for k, v in run["changed"].items() if k not in ours} == changes
        and run["stopped_at"] >= 300
    ]  # fmt: skip


def told(runs):
    """When these runs learned look-ups, or for how long they did not."""
    return ", ".join(
        f"at step {learned_at(run)}" if learned_at(run) else f"not by step {run['stopped_at']}"
        for run in runs
    )


print("seed 73, as it is:", told(of_seed(73)))
print("  batches in the order of seed 1:", told(of_seed(73, batches_of_seed=1)))
for part in ("positions", "token embeddings", "queries, keys and values"):
    print(f"  {part} drawn anew:", told(of_seed(73, drawn_anew=part)))
print("other seeds, as they are:", ", ".join(told(of_seed(seed)) for seed in (2, 4, 6, 7)))

# %% [markdown]
# It is in the seed, and we can say where: not in the order of the batches, nor in the initial
# positions. With other initial token embeddings seed 73 learns look-ups as soon as other seeds do,
# and likewise with other initial queries, keys and values. Neither of the two is bad by itself, then;
# they are bad together. To look a letter up, a head has to recognise it: the query of a letter must
# agree with the key of a place that the letter was copied to. Before training, how well they agree
# is a matter of chance. We take seed 73 to be a draw in which no head agrees enough to be improved.
# That last sentence is a guess: we have not measured the agreement. One run per line, too.
#
# ## More of each walk
#
# If the start cannot be chosen, the signal can be made stronger. In training, each ring is asked
# three questions, one after another. Until then the second and third went one to three steps, as
# the first does. Let them go all the way round, which is five steps with six letters. Each step of
# a walk is a look-up, so a row has twelve look-ups to learn from instead of six, on average, and is
# 100 tokens long instead of 94:

# %%
walks = {"one to three steps": {}, "one to five": dict(later_walks="1 to 5 steps")}
walks["all the way round"] = dict(later_walks="all the way round")
for name, changes in walks.items():
    print(f"later walks of {name}:")
    for seed in (73, 2, 4, 7):
        print(f"  seed {seed}: {told(of_seed(seed, **changes)) or 'not run'}")

# %% [markdown]
# Seed 73 learns look-ups by step 250 now, and walks of one to five steps are enough for it, too. Five
# questions instead of three cure it as well, but rows are half as long again then. Not all is
# better: in a run of seed 7 with 800 steps, orderings were still at 0.73 when it ended. So the
# command takes 1,100 steps.
#
# What helped nothing on these seeds: a larger start for the output matrices, queries that begin as
# the keys, another scale of the attention scores, a learning rate that is held at its peak
# ([all runs](../results/README.md#first-run)).
#
# ## What fresh seeds say
#
# We wrote down [what we expected](../results/first-run/predictions.md) and ran twenty seeds.

# %%
today = tried["first-run"]
good = [run["accuracy"] >= 0.95 for run in today]
low, high = verdicts.exact_interval(sum(good), len(good))
print(f"R1 at 0.95 or more: {sum(good)} of {len(good)}, interval {low:.2f} to {high:.2f}")
steps = [results.onset(run, "lookup") or math.inf for run in today]
print(f"R2 look-ups by step 500: {sum(step <= 500 for step in steps)}; last {max(steps)}")
chains = [results.onset(run, "chain") or math.inf for run in today]
print(f"R3 chains before look-ups: {sum(b < a for a, b in zip(steps, chains))}")
flat = [results.result(path)["accuracy"]
        for path in (results.RESULTS / "first-run").glob("1-layers-seed-*-threads")]  # fmt: skip
print(f"R4 one layer below 0.5: {sum(accuracy < 0.5 for accuracy in flat)} of {len(flat)};", end=" ")
print(f"highest {max(flat):.3f}")
