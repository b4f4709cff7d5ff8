# %% [markdown]
# # Depth, parameters, memory
#
# **You will learn** what a run with more layers has besides depth, which control tells them apart,
# and what our controlled runs found.<br>
# **Time** 5 s: nothing is trained here, the runs took hours and are stored.<br>
# **Needs** [The logs](04_logs.md).
#
# The report compared one layer with twelve. Twelve layers have three things that one has not:
#
# - **depth**: what one look finds can direct the next;
# - **parameters**: 12 times as many in the blocks;
# - **memory**: with those parameters they can learn more of the training text by heart.
#
# A lower training loss fits all three. So the study has two more models, each with one of the first
# two and not the other, and measures answers to problems that were held out.
#
# | model | parameters | depth |
# |---|---|---|
# | 1 layer | few | 1 |
# | 12 layers | many | 12 |
# | 1 layer, applied 12 times | few | 12 |
# | 1 wide layer | many | 1 |
#
# Applying the same layers again is the idea of Saunshi et al. 2025
# ([arXiv 2502.17416](https://arxiv.org/abs/2502.17416)). The width of the last model comes from
# `minidepth.width_matched()`.

# %%
import json

import matplotlib.pyplot as plt

import minidepth as md

with open("docs/results/depth/summary.json", encoding="utf-8") as f:
    study = json.load(f)
print(study["command"])
print(study["date"], study["device"], "PyTorch", study["versions"]["torch"])

runs = {}
for run in study["runs"]:
    runs.setdefault(run["labels"]["model"], []).append(run)
for model, found in runs.items():
    mean, half = md.interval([run["accuracy"] for run in found])
    first = found[0]
    print(
        f"{model:18} {first['params_total']:8,} parameters, depth {first['depth']:2}: "
        f"accuracy {mean:.3f} ± {half:.3f}, n = {len(found)}"
    )

# %%
figure, axes = plt.subplots(figsize=(6.2, 4))
for number, (_model, found) in enumerate(runs.items()):
    values = [run["accuracy"] for run in found]
    mean, half = md.interval(values)
    axes.plot([number] * len(values), values, "o", color=f"C{number}", alpha=0.6)
    axes.errorbar(number + 0.15, mean, half, fmt="_", color=f"C{number}", capsize=3)
guess = study["runs"][0]["guess"]
axes.axhline(guess, color="C5", linestyle=":")
axes.annotate("guessing", (len(runs) - 1, guess + 0.015), ha="center", color="C5")
axes.set_xticks(range(len(runs)), [model.replace(", ", ",\n") for model in runs])
axes.set(ylabel="accuracy on 600 held-out problems (share)", ylim=(-0.03, 1.1))
plt.show()

# %% [markdown]
# What to see: each point is a run, n = 5 seeds a model, all trained for the same 800 steps on the
# same problems; beside them the mean and its 95 % interval (Student's t, which does not know that
# an accuracy ends at 1).
#
# ## Differences, seed by seed
#
# Runs of one seed share the order of the batches, so we compare them with each other. A difference
# whose interval excludes 0 is one that these seeds establish, for these sizes and this budget.

# %%
for line in study["differences"]:
    if line.startswith("accuracy"):
        print(line)

# %% [markdown]
# ## More layers, more right answers?

# %%
with open("docs/results/depth-sweep/summary.json", encoding="utf-8") as f:
    sweep = json.load(f)
by_depth = {}
for run in sweep["runs"]:
    by_depth.setdefault(int(run["labels"]["n_layers"]), []).append(run)
figure, all_axes = plt.subplots(1, 2, figsize=(6.4, 3.4))
panels = {"accuracy": "accuracy on held-out problems", "val_loss": "validation loss (nats a token)"}
for axes, (key, label) in zip(all_axes, panels.items()):
    for depth, found in by_depth.items():
        axes.plot([depth] * len(found), [run[key] for run in found], "o", color="C0", alpha=0.6)
    axes.set(xlabel="layers", ylabel=label, xticks=list(by_depth))
all_axes[1].set_yscale("log")
plt.show()
for depth, found in by_depth.items():
    mean, half = md.interval([run["accuracy"] for run in found])
    print(f"{depth:2} layers: accuracy {mean:.3f} ± {half:.3f}, n = {len(found)}")
