# %% [markdown]
# # Written steps, taken apart
#
# **You will learn** which part of writing the work down replaces layers: the extra tokens, the
# targets on the way, or the steps that can be read again.<br>
# **Time** 5 to 15 s: nothing is trained here, the runs are stored.<br>
# **Needs** [Depth by itself](12_rings.md).
#
# A model of two layers that writes each letter on its way along a ring gets anywhere. Answering at
# once, it gets one step far. But who writes has three things more than who answers at once:
# **time**, since each token is another pass through the layers; **supervision**, since each step is
# a target in training; and **something to read**, since the steps stand there for the tokens after
# them. Here they are taken apart.
#
# ## Seven ways to ask the same questions
#
# The rings are those of [Depth by itself](12_rings.md): eight letters, pairs in mixed order, then
# questions of one, two or three steps. Each question is a number and a letter, and two more places
# to write in. The ways differ in what stands at these places, and in what is a target:

# %%
import statistics

import matplotlib.pyplot as plt
import torch

from studies import tasks, verdicts, written

task, letters = tasks.TASKS["written"], "abcdefghijklmnop.123"


def said(numbers):
    """Tokens or targets as text: a dot is a blank, a line no target."""
    return " ".join("–" if number < 0 else letters[number] for number in numbers.tolist())


for way in written.WAYS:
    tokens, targets = task.draw(1, torch.Generator().manual_seed(3), way=way)
    shown, wanted = (part[0, 16:].view(-1, 4) for part in (tokens, targets))
    three = next(i for i in range(48) if shown[i, 0] == 16 + 3)
    print(f"{way:10} reads {said(shown[three])}   is to say {said(wanted[three])}")

# %% [markdown]
# `filler` has the time of the written steps and nothing else: "so many dots", as Pfau, Merrill &
# Bowman (2024, [arXiv 2404.15758](https://arxiv.org/abs/2404.15758)) have it. `random` fills the
# places with letters that say nothing. `hidden` has every step as a target, and never sees one
# written. `given` sees all steps and is never asked for them. `backwards` writes the same letters,
# the last one first.
#
# ## The prediction
#
# Two layers do one look-up at a place: they know what is one step from a letter that stands there,
# and no more. So we expected the ways to fall in two groups, by whether the letter before the
# answer can be read. It was [written down](../results/written/predictions.md) before the runs:
#
# | way | one step | two steps | three steps |
# |---|---|---|---|
# | direct, filler, random, hidden | learned | not | not |
# | backwards | learned | learned | not |
# | given, written | learned | learned | learned |
#
# *Learned* is 0.9 or more of the questions at the last of 1,000 steps, on rings never trained on;
# *not* is 0.3 or less. With five seeds of each way, all five have to agree. A question counts if
# every target of it is right, which for `written` and `backwards` is what a model needs to write
# the steps by itself.

# %%
hypotheses, contrasts = written.predictions()
runs = verdicts.stored("written")
verdicts.show(runs, hypotheses, contrasts)

# %% tags=["hide"]
lengths = (1, 2, 3)
_, axes = plt.subplots(figsize=(4.6, 4.2))
learned, medians = {}, []
for y, way in enumerate(written.WAYS):
    found = runs["written", way].values()
    medians.append([statistics.median(run[k] for run in found) for k in lengths])
    for x, k in enumerate(lengths):
        learned[way, k] = sum(run[k] >= verdicts.LEARNED for run in found), len(found)
        ink = "w" if medians[y][x] < 0.6 else "k"
        good, n = learned[way, k]
        cell = f"{medians[y][x]:.2f} ({good}/{n})"
        axes.text(x, y, cell, ha="center", va="center", color=ink)
axes.imshow(medians, vmin=0, vmax=1, cmap="viridis", aspect="auto")
axes.set_xticks(range(len(lengths)), lengths)
axes.set_yticks(range(len(written.WAYS)), written.WAYS)
axes.set(xlabel="steps on", title="What is learned goes with what can be read")
plt.show()
