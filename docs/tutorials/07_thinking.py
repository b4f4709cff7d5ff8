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
    print(", ".join(f"{len(runs)} runs of {n} layers" for n, runs in sorted(found.items())))
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
# What to see: points are runs, n = 3 seeds a depth; lines join their means; the dotted line is
# guessing. Above with worked steps, below answered directly, with twice the training steps.
