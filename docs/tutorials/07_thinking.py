# %% [markdown]
# # Thinking against depth
#
# **You will learn** how worked steps and layers buy the same thing, serial steps, and how far each
# went in our runs.<br>
# **Time** 5 s: the runs are stored.<br>
# **Needs** [Depth, parameters, memory](05_caveats.md).
#
# A layer is a serial step: what it computes can use what the layer below computed. A written token
# is a serial step too: the next token can use all that went into it, every layer again. So a model
# that writes its work can take more serial steps than it has layers. Feng et al. 2023
# ([arXiv 2305.15408](https://arxiv.org/abs/2305.15408)) and Merrill & Sabharwal 2024
# ([arXiv 2310.07923](https://arxiv.org/abs/2310.07923)) say what this can buy in principle. Here is
# the small, measured version.
#
# The same problems, answered in two ways:

# %%
import glob
import statistics

import matplotlib.pyplot as plt

import minidepth as md

for direct in (False, True):
    row = md.embedded_rows(3, held_out=True, steps=(3,), direct=direct)[1]
    *_, asked, said = (turn["content"] for turn in row["messages"])
    print(f"{asked}\n{said}\n")

# %% [markdown]
# The three families are chains of sums modulo 10, look-ups in a ring of six letters and orderings;
# one, two or three steps each, mixed in training, so that the short ones can help the long ones.
# The loss is on the assistant's turn alone.


# %%
def stored(*studies):
    """{layers: [accuracy by kind of problem of each seed]} of stored runs that differ in layers
    alone."""
    found = {}
    for study in studies:
        for folder in sorted(glob.glob(f"docs/results/{study}/runs/*")):
            row = md.result(folder)
            if row["n_loops"] == 1 and row["d_model"] == 64:
                found.setdefault(row["n_layers"], []).append(row["accuracy_by_problem"])
                steps = row["steps"]
    print(f"{' and '.join(studies)}: {steps} steps,", end=" ")
    print("seeds by layers:", {n: len(runs) for n, runs in sorted(found.items())})
    return dict(sorted(found.items()))


ways = {"thinking": stored("depth", "depth-sweep"), "direct": stored("direct")}

# %%
families = ("chain", "lookup", "order")
guess = dict(chain=[1 / 10] * 3, lookup=[1 / 5] * 3, order=[1 / 2, 1 / 3, 1 / 4])
figure, all_axes = plt.subplots(2, 3, figsize=(6.6, 5), sharex=True, sharey=True)
for line, (way, depths) in zip(all_axes, ways.items()):
    for axes, family in zip(line, families):
        for number, (depth, runs) in enumerate(depths.items()):
            steps = [[run[f"{family} {k}"] for run in runs] for k in (1, 2, 3)]
            for k, values in enumerate(steps, 1):
                x = k + 0.06 * (number - len(depths) / 2)
                axes.plot([x] * len(values), values, ".", color=f"C{number}", alpha=0.5)
            means = [statistics.mean(values) for values in steps]
            axes.plot([1, 2, 3], means, color=f"C{number}", label=f"{depth}")
        axes.plot([1, 2, 3], guess[family], ":", color="C5")
        axes.set(title=f"{family}, {way}", xticks=[1, 2, 3], ylim=(-0.05, 1.05))
        axes.title.set_size("medium")
for axes in all_axes[1]:
    axes.set_xlabel("steps")
for axes in all_axes[:, 0]:
    axes.set_ylabel("accuracy (share)")
all_axes[0, 0].legend(title="layers", fontsize="small")
plt.show()

# %% [markdown]
# What to see: points are runs, lines join the means of a depth, the dotted line is guessing. Above
# with worked steps after 800 training steps, below answered directly after 1,600. Chains: only some
# runs of twelve layers learn them, and those that do are right at every length. Look-ups: the same,
# and one run of four layers. Orderings are learned in part by all, either way.
#
# ## What this says
#
# **Chains and look-ups that are learned with thinking are learned at every length.** Three steps
# are then answered nearly as often as one: each written step is one small look. (Orderings are not
# like that: they get worse with length in most runs.) The runs that have a family's single steps
# right in 95 of 100 cases:

# %%
for way, depths in ways.items():
    for family in ("chain", "lookup"):
        learned = [
            (depth, run)
            for depth, found in depths.items()
            for run in found
            if run[f"{family} 1"] >= 0.95
        ]
        total = sum(len(found) for found in depths.values())
        print(f"{way}, {family}: {len(learned)} of {total} runs")
        for depth, run in learned:
            shares = ", ".join(f"{run[f'{family} {k}']:.2f}" for k in (1, 2, 3))
            print(f"    {depth:2} layers: {shares} with 1, 2, 3 steps")

# %% [markdown]
# **Nobody learned chains or look-ups directly here**, with one, two or four layers, though these
# runs had twice the training, and problems of one step among the others to begin with. That is how
# far we looked, not a limit. A look-up of one step is in-context question answering, which two
# layers of attention alone [learn in 100 steps](01_hypothesis.md) when nothing else is asked; in
# this mixture, with a feed-forward part, 1,600 steps were not enough. Their validation loss rises
# again before the end: 20,000 problems of one or two learned tokens each are soon known by heart.
#
# **So the trade cannot be read off yet.** Layers and written steps should replace each other, and
# to see it one needs direct runs that succeed. No direct run has more than four layers; none was
# trained on fresh problems only. Thinking needed depth too: with two or four layers chains were
# not learned in 800 steps, though a chain's single step needs no more than a table of sums.
#
# One thing is easy to miss: one layer that answers directly gets more orderings right than one
# layer that thinks. It had twice the steps, and its loss falls on the answer alone. So "thinking
# helps" depends on the budget, too.

# %%
direct = [run for found in ways["direct"].values() for run in found]
assert max(run["lookup 1"] for run in direct) < 0.3
assert max(run["chain 2"] for run in direct) < 0.2
thinking = [run for found in ways["thinking"].values() for run in found]
chains = [run for run in thinking if run["chain 1"] >= 0.95]
assert chains and all(run["chain 3"] >= 0.95 for run in chains)
assert not any(run in chains for n in (1, 2, 4) for run in ways["thinking"][n])

# %% [markdown]
# ## Exercises
#
# 1. `python train.py --answer direct --problem_families lookup --problem_steps 1 --n_layers 2` asks
#    for one look-up and nothing else. How many steps until it is learned? With `--d_ff 0`?
# 2. Write down what you expect for `--problem_modulus 3` in chains answered directly. Then run it
#    with 1, 2 and 4 layers and three seeds.
# 3. With `--problem_steps 2` alone, is thinking learned sooner or later than in the mixture?
