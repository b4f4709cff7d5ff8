# %% [markdown]
# # One look against many
#
# **You will learn** why training did not find in one attention layer a lookup that two layers
# learn, how to see it in less than a minute of training, and which runs separate depth from
# size.<br>
# **Time** 25 to 50 s on two CPU cores, nearly all of it training.<br>
# **Needs** PyTorch and Matplotlib; no GPU, no network.
#
# **What you will see:** two attention layers learn to answer nearly everything, and one layer does
# not, not even one that has been widened until it has as many parameters.
#
# The hypothesis: an attention layer lets every token look once at the others. Reasoning may need a
# second *look*, aimed at a place that depends on what the first one found. If so, training will
# find such problems hard with one layer, and easier with several. A [published
# experiment](2_logs.md) tried this on 840 chain-of-thought conversations, but nobody knows how
# many looks such a text needs. So we begin with a task where we do know.

# %% [markdown]
# ## A task that needs two looks
#
# The task is in-context question answering, after Chen & Zou 2024 ([arXiv
# 2404.01601](https://arxiv.org/abs/2404.01601); the sizes are ours). Each sequence shows eight
# pairs of a question and an answer, drawn at random from 16 questions and 16 answers. Then it asks
# the eight questions in another order, and the model has to answer each one. Here is one sequence:

# %%
import matplotlib.pyplot as plt

import minidepth as md
from minidepth_lab import by_hand, figures, registry, results, tasks
from minidepth_lab.studies import depth

tokens, targets = tasks.TASKS["icqa"].draw(1, md.generator("example"))
say = lambda i: f"q{i}" if i < 16 else f"a{i - 16}"  # noqa: E731
pairs = [say(i) for i in tokens[0, :16].tolist()]
asked = [say(i) for i in tokens[0, 16:].tolist()]
right = [say(i) for i in targets[0, 16:].tolist()]
print("shown:   ", "  ".join(f"{q} {a}" for q, a in zip(pairs[::2], pairs[1::2])))
print("asked:   ", "     ".join(asked))
print("answers: ", "     ".join(right))

# %% [markdown]
# Put yourself in the place of a *query*, the token that looks: for example the first question
# asked. You may look once, at all the tokens before you. Of each one you see what it is and where
# it stands.
#
# - You can find the *same question* among the pairs. But what you fetch there is that question, not
#   the answer beside it.
# - You can fetch *answers*. But an answer does not say which question it belongs to: with a single
#   look, it has had no chance to see the question that stands before it. So you pick one of the
#   eight, and are right 1 time in 8.
#
# With two layers, each answer first looks one place back and copies the question that stands there.
# Then, in the second layer, the query looks for an answer that *carries* the query's own question,
# and fetches it. Copy, then match: the attention head that does the matching is known as an
# *induction head*. [Watch it happen](inside.md#where-does-it-look): move a slider
# through the training, and see the copy and the match appear.
#
# This is an argument about the easiest way, not a proof. One layer *can* do such a lookup if it has
# many heads. Each head watches one pair and fetches the wrong answer, unless the question matches;
# what is fetched is subtracted, and the right one is left. Here are weights written by hand for a
# close relative of our task, a ring of eight pairs ([how they
# work](4_walking.md#is-one-layer-without-loops-unable-to-answer)):

# %%
for n_heads in (4, 7, 8):
    share = by_hand.measured(n_heads)
    print(f"one layer, {n_heads} heads, width {16 * n_heads:3}: {share:.3f} right")

# %% [markdown]
# So the question is what training finds. For a related task it is proved how large one layer would
# have to be: [arXiv 2408.14332](https://arxiv.org/abs/2408.14332).

# %% [markdown]
# ## Train both, with three seeds each
#
# The preset `tasks` is attention alone (no feed-forward part), width 64, 64 sequences per step. We
# also train a third model, to meet an objection: two layers have more parameters than one, not only
# more depth. `width_matched()` widens one layer until it has as many parameters as two.

# %%
one, _ = registry.configs("tasks", data="icqa", n_layers=1, vocab_size=32)
two, _ = registry.configs("tasks", data="icqa", n_layers=2, vocab_size=32)
wide = depth.width_matched(one, md.parameters(two)["total"])
models = {"1 layer": one, "2 layers": two, "1 wide layer": wide}
for name, m in models.items():
    total = md.parameters(m)["total"]
    print(f"{name:13} d_model {m.d_model:3}  {total:,} parameters")


# %%
def accuracies(m, seed, steps=200):
    """[(step, share of answers right on 1,000 fresh sequences)] of one run."""
    settings = dict(seed=seed, steps=steps, eval_every=25)
    _, t = registry.configs("tasks", data="icqa", **settings)
    run = md.train(m, t, registry.data_of(t), quiet=True)
    return [(row["step"], row["accuracy"]) for row in run.log]


seeds = (0, 1, 2)
runs = {name: [accuracies(m, seed) for seed in seeds] for name, m in models.items()}

# %%
final = {name: [curve[-1][1] for curve in curves] for name, curves in runs.items()}
most = max(final["1 layer"] + final["1 wide layer"])
figure, axes = plt.subplots(figsize=(4.6, 3.6))
for (name, curves), marker, up in zip(runs.items(), "os^", (21, 0, 7)):
    color = figures.color_of(name)
    for curve in curves:
        axes.plot(*zip(*curve), f"{marker}-", color=color)
    figures.name_end(axes, 200, sum(final[name]) / 3, name, color, up)
guess, shortcut = tasks.TASKS["icqa"].chance()
lines = (guess, "guessing, 1 in 16", -9), (shortcut, "any shown, 1 in 8", -7)
for value, what, up in lines:
    axes.plot((-5, 200), (value, value), "--", color="C5")
    figures.name_end(axes, 200, value, what, "C5", up)
axes.set(xlim=(-5, 345), xticks=range(0, 201, 50), ylim=(-0.04, 1.06))
axes.set(xlabel="optimizer step", ylabel="accuracy on fresh sequences\n(share of 8,000 answers)")
least = int(100 * min(final["2 layers"]))  # rounded down: 99.9 % is not 100
axes.set_title(
    f"two layers answer at least {least} %,\none layer, wide or not, under {int(100 * most) + 1} %"
)
plt.show()

# %% [markdown]
# What to see: two layers learn to answer nearly everything, and one layer does not, not even a wide
# one. There are three seeds per model, and each line is one run. All models first learn to name one
# of the eight answers shown, which is right 1 time in 8. The single layers stay at that level. The
# models of two layers leave it about half way through training.

# %% [markdown]
# ## In numbers, with intervals

# %%
for name, values in final.items():
    mean, half = results.interval(values)
    print(f"{name:13} {mean:.3f} ± {half:.3f}")
gaps = [b - a for a, b in zip(final["1 wide layer"], final["2 layers"])]
gap, half = results.interval(gaps)
low, high = gap - half, gap + half
print(f"2 layers minus 1 wide layer: {gap:.3f},", end=" ")
print(f"95 % interval {low:.3f} to {high:.3f}")

# %% [markdown]
# The intervals come from how much the seeds differ (Student's t). With only three seeds (n = 3)
# they are wide wherever the seeds disagree; here the seeds agree.
#
# ## What this says, and what it does not
#
# It says: *on this task, at this size, in 200 steps*, two attention layers learn what one does not.
# The number of parameters does not explain it, since the wide layer has as many.
#
# It does not say that one layer could never do it: with eight heads, hand-made weights do, and the
# wide layer here has two. Nor does it say that two layers suffice for other tasks; nor that a
# deeper language model reasons better. This task was made so that depth matters. Whether depth
# matters in the same way for chain-of-thought text is another question, and a training loss cannot
# answer it: see [the logs](2_logs.md).
#
# The next lines check what this page says. If the code changes so that it is no longer true, the
# site does not build.

# %%
assert all(value < 0.2 for value in final["1 layer"] + final["1 wide layer"])
assert one.n_heads == wide.n_heads == 2 and by_hand.measured(8) == 1
assert all(value > 0.95 for value in final["2 layers"])
assert abs(md.parameters(wide)["total"] / md.parameters(two)["total"] - 1) < 0.02
assert gap - half > 0.5

# %% [markdown]
# ## Exercises
#
# 1. Give one layer about twelve times the steps: `accuracies(one, 0, steps=2500)`. Write down what
#    you expect before you run it.

# %% [markdown] tags=["hint"]
# What would more steps have to change? Put yourself once more in the place of a query.

# %% [markdown] tags=["answer"]
# We expect that it stays near 1 in 8: if training has not found a way in 200 steps, more of the
# same may not help. Your run takes half a minute. The five stored runs of one layer had 500 steps
# each:

# %% tags=["answer"]
stored = results.runs("tasks", data="icqa", n_layers=1, n_loops=1)
single = [run["accuracy"] for run in stored]
print("one layer, stored runs:", *(f"{accuracy:.3f}" for accuracy in single))
assert max(single) < 0.13

# %% [markdown]
# 2. Apply one layer's weights twice: `import dataclasses`, then `dataclasses.replace(one,
#    n_loops=2)`. That model has the depth of two layers and the parameters of one. Which of the two
#    does it behave like, in how many of five seeds? Try 200 steps, then 400.

# %% [markdown] tags=["hint"]
# A second look made the difference. Does having one also decide how soon a model learns?

# %% [markdown] tags=["answer"]
# After 200 steps it behaves like one layer in four of five seeds; after 400 steps, like two layers
# in all five. So a second look suffices here, without the parameters of a second layer. But when
# both looks share their weights, training here took longer to find a use for the second. The ten
# runs are stored:

# %% tags=["answer"]
looped = results.runs("tasks", data="icqa", n_loops=2)
for steps in (200, 400):
    found = [run["accuracy"] for run in looped if run["steps"] == steps]
    print(f"one layer applied twice, {steps} steps:", *(f"{accuracy:.3f}" for accuracy in found))
    learned = sum(accuracy > 0.95 for accuracy in found)
    assert (learned, len(found)) == ((1, 5) if steps == 200 else (5, 5))
    assert learned == 5 or sorted(found)[-2] < 0.25

# %% [markdown]
# 3. Show one layer only two pairs (`sizes=("pairs=2",)` in `tasks.configs`). At what accuracy does
#    the curve level off now (its *plateau*), and why there?

# %% [markdown] tags=["hint"]
# The plateau is the best a model can do if all it knows is to name one of the answers shown.

# %% [markdown] tags=["answer"]
# At 1 in 2. One of two answers shown is the right one, and a single fetched answer does not tell
# which:

# %% tags=["answer"]
print("guessing and shortcut with two pairs:", tasks.TASKS["icqa"].chance(pairs=2))
assert tasks.TASKS["icqa"].chance(pairs=2)[1] == 1 / 2
