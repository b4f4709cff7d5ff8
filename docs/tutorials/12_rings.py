# %% [markdown]
# # Depth by itself
#
# **You will learn** what the same weights can do when they are applied once, twice, and three
# times, what width does instead, and how predictions that were written first came out.<br>
# **Time** 5 to 15 s: nothing is trained here, the runs took hours and are stored.<br>
# **Needs** [Depth, parameters, memory](05_caveats.md).
#
# Twelve layers differ from one in depth *and* in parameters. A layer that is applied several times
# differs from itself in depth alone: not one weight is added. If that changes what it can answer,
# depth did it. This page asks for problems on which theory says how much depth is needed.
#
# ## The task
#
# Eight letters form a ring. The sequence shows its pairs in mixed order, `a b` for "b follows a",
# and then asks 56 questions: a number of steps and a letter. The answer is the letter so many steps
# on, and it has to be given at once. No answer stands in the sequence, so that none can be copied.

# %%
import matplotlib.pyplot as plt
import torch

from studies import tasks, verdicts

task = tasks.TASKS["ring"]
tokens, targets = task.draw(1, torch.Generator().manual_seed(0), test=True)
letters = "abcdefghijklmnop"
said = [letters[i] if i < 16 else str(i - 16) for i in tokens[0].tolist()]
print("pairs:", " ".join(a + b for a, b in zip(said[:16:2], said[1:16:2])))
for k, letter, target in list(zip(said[16::2], said[17::2], targets[0, 17::2].tolist()))[:4]:
    print(f"{k} step{'s' * (k != '1')} on from {letter}: {letters[target]}")

# %% [markdown]
# What attention alone can do here: the first layer tells the second letter of each pair which
# letter stands before it. The second finds the pair that begins with the letter asked for: that is
# one step. A third can put two such finds together: two steps. Sanford, Hsu & Telgarsky (2024,
# [arXiv 2402.09268](https://arxiv.org/abs/2402.09268)) show it for a close relative, k-hop, where
# ⌊log₂ k⌋ + 2 layers suffice, and fewer do not under a conjecture about parallel computation. For
# this task the lower bound is not known to hold; what carries over, and what does not, is said in
# `docs/studies/ring.py`.
#
# ## The prediction
#
# It was written down before any of these runs was made, with the number of runs that would have to
# agree: [predictions](../results/ring/predictions.md). The main one, of one layer and ten seeds:
#
# | the layer is applied | one step on | two steps on | at least in |
# |---|---|---|---|
# | once | guessing | guessing | 10 of 10 runs |
# | twice | learned | not learned | 9 of 10 |
# | three times | learned | learned | 9 of 10 |
#
# *Learned* is an accuracy of 0.9 or more at the last of 1,200 steps, on rings that were never
# trained on. Guessing finds 1 in 7.

# %%
runs = verdicts.stored()
counts = verdicts.draw_rings(runs)

# %% [markdown]
# What to see: TODO
#
# ## Not found, or cannot?
#
# TODO

# %% tags=["hide"]
figure, axes = plt.subplots(figsize=(6.2, 3.4))
for run in three:
    rows = run["log"]
    two_on = [row["accuracy_by"]["lengths"]["2"]["accuracy"] for row in rows]
    came = two_on[-1] >= verdicts.LEARNED
    axes.plot([row["step"] for row in rows], two_on, color="C1" if came else "C5", alpha=0.7)
axes.axvline(360, color="C5", linestyle=":")
axes.annotate("questions two steps on\nare added", (350, 0.9), ha="right", size="small")
axes.annotate("learned", (830, 0.9), color="C1", size="small")
axes.annotate("not learned", (830, 0.22), color="C5", size="small")
axes.set(xlabel="step", ylabel="accuracy, two steps on", ylim=(-0.03, 1.05))
plt.show()

# %% [markdown]
# What to see: TODO
#
# ## Every hypothesis, every contrast
#
# This is what was predicted and what came out, for all that was run so far. *Needs* is the number
# of runs that had to agree, and the interval behind the number that did is Clopper and Pearson's,
# at 95 %:

# %%
verdicts.show(runs)

# %% [markdown]
# TODO
