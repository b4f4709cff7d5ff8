# %% [markdown]
# # One look or two
#
# **In the same short training, two attention layers learn to look something up in their context;
# one layer does not, not even one with as many parameters.** You will learn why a second look
# helps, how to see the two looks in a trained model, and which runs separate depth from size.
#
# On [the ring](1_hypothesis.md) the first loop brought no hop. This lesson shows what it is for,
# with the smallest question for which one look seems not enough.
#
# ## The question
#
# A sequence shows eight pairs of a question and an answer, drawn at random from 16 questions and 16
# answers. Then it asks the eight questions in another order. (The task is that of [Chen & Zou
# 2024](https://arxiv.org/abs/2404.01601), the sizes are ours.) This page follows one sequence:

# %%
import matplotlib.pyplot as plt

import minidepth as md
from minidepth_lab import tasks
from minidepth_lab.keep import checkpoints, registry, running
from minidepth_lab.measure import by_hand, inspect, results
from minidepth_lab.models import variants
from minidepth_lab.show import figures
from minidepth_lab.studies import depth
from minidepth_site import exercises, widgets

_, example = registry.configs("tasks", data="icqa", n_layers=2, steps=1)
tokens, targets = (part[0].tolist() for part in registry.data_of(example).val)
words = [f"q{i}" if i < 16 else f"a{i - 16}" for i in tokens]
pairs = [f"{q} {a}" for q, a in zip(words[:16:2], words[1:16:2])]
print("shown:", "  ".join(pairs[:4]))
print("      ", "  ".join(pairs[4:]))
print("asked:", " ".join(words[16:]))

# %% [markdown]
# The first question asked is q2, and the answer that stands behind it above is a0. The pairs are
# new in each sequence, so there is nothing to learn by heart.
#
# ## Why one look seems not enough
#
# Put yourself in the place of the token that has to answer, q2. You have one look at all the tokens
# before you. Of each you see what it is and where it stands.
#
# - You can find the *same question* among the pairs. But what you fetch there is that question
#   again, not the answer beside it.
# - You can fetch *answers*. But an answer does not say which question it belongs to: it has had no
#   chance to look at what stands before it. So you pick one of the eight. (There is [a way round
#   this](#what-this-says-and-what-it-does-not).)
#
# With two layers there is a way. First each answer looks one place back and copies the question
# that stands there. Then q2 looks for the answer that *carries* q2. **Copy, then match.** (A layer
# looks with several *heads* side by side. One that matches in this way is called an *induction
# head*.)


# %%
def draw_looks(axes, looks, levels):
    """looks: [(token looked at, token that looks, layer from 0, weight, colour)]"""
    for key, query, layer, weight, color in looks:
        axes.plot((key, query), (layer, layer + 1), color=color, lw=3 * weight, alpha=0.8)
    for level in range(levels + 1):
        axes.plot(range(17), [level] * 17, "o", color="C5", markersize=3)
    axes.set_xticks(range(17), words[:17], rotation=90)
    names = ["tokens", "after layer 1", "after layer 2"]
    axes.set_yticks(range(levels + 1), names[: levels + 1])
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)


answers, asked = range(1, 16, 2), 16
right = next(place for place in answers if tokens[place] == targets[asked])
plan = [(place - 1, place, 0, 1, "C0") for place in answers]
plan.append((right, asked, 1, 1, "C1"))
figure, axes = plt.subplots(figsize=(4.6, 2.6))
draw_looks(axes, plan, 2)
for place in answers:
    axes.annotate(
        words[place - 1], (place, 1.12), color="C0", ha="center", rotation=90, va="bottom"
    )
axes.set(ylim=(-0.1, 2.15), title="each answer copies; then the question matches")
plt.show()

# %% [markdown]
# What to see: in the first look (blue) each answer fetches the question to its left; what it
# carries then is written above it. In the second look (orange) the question q2, at the right, finds
# the one answer that carries q2. The second look has to wait for the first.

# %% [markdown]
# ## Train both
#
# **Predict first:** what share of the questions will one layer answer, and what share two? Two
# layers also have more parameters. So there is a third model: one layer, so wide that it has the
# parameters of two. All have attention layers of two heads and nothing else.

# %%
m, _ = registry.configs("tasks", data="icqa", n_layers=1, vocab_size=32)
two, _ = registry.configs("tasks", data="icqa", n_layers=2, vocab_size=32)
wide = depth.width_matched(m, variants.parameters(two)["total"])
models = {"1 layer": m, "2 layers": two, "1 wide layer": wide}


def train(model, seed, steps=200):
    """→ a finished run, measured every 25 steps on 250 fresh sequences"""
    settings = dict(seed=seed, steps=steps, eval_every=25, eval_blocks=250)
    _, t = registry.configs("tasks", data="icqa", **settings)
    data = registry.data_of(t)
    if seed == 0 and model is not wide:
        data = inspect.watched(data)  # keeps where the model looks
    return running.train(model, t, data, quiet=True)


seeds = (0, 1, 2)
runs = {}
for name, model in models.items():
    runs[name] = [train(model, seed) for seed in seeds]

# %%
final = {name: [run.log[-1]["accuracy"] for run in its] for name, its in runs.items()}
most = max(final["1 layer"] + final["1 wide layer"])
figure, axes = plt.subplots(figsize=(4.6, 3.4))
for (name, its), marker, up in zip(runs.items(), "os^", (21, 0, 7)):
    color = figures.color_of(name)
    for run in its:
        steps = [record["step"] for record in run.log]
        axes.plot(steps, [record["accuracy"] for record in run.log], f"{marker}-", color=color)
    figures.name_end(axes, 200, sum(final[name]) / 3, name, color, up)
guess, shortcut = tasks.TASKS["icqa"].chance()
for value, what, up in ((guess, "guessing, 1 in 16", -9), (shortcut, "any shown, 1 in 8", -7)):
    axes.plot((-5, 200), (value, value), "--", color="C5")
    figures.name_end(axes, 200, value, what, "C5", up)
axes.set(xlim=(-5, 345), xticks=range(0, 201, 50), ylim=(-0.04, 1.06))
axes.set(xlabel="training step", ylabel="accuracy on fresh sequences")
least = int(100 * min(final["2 layers"]))  # rounded down: 99.9 % is not 100
axes.set_title(
    f"two layers answer at least {least} %,\none layer, wide or not, under {int(100 * most) + 1} %"
)
plt.show()

# %% [markdown]
# What to see: all models first learn to name one of the eight answers shown, which is right one
# time in eight. The single layers stay there, the wide one too. Two layers leave that level half
# way through and then rise fast: until both looks work, neither is of much use. Each line is one of
# three runs.

# %%
rows = []
for name, values in final.items():
    mean, half = results.interval(values)
    total = variants.parameters(models[name])["total"]
    rows.append((name, f"{total:,}", f"{mean:.3f} ± {half:.3f}"))
gaps = [b - a for a, b in zip(final["1 wide layer"], final["2 layers"])]
gap, half = results.interval(gaps)
rows.append(("2 layers minus 1 wide", "–", f"{gap:.3f} ± {half:.3f}"))
widgets.table(("model", "parameters", "accuracy"), rows)

# %% [markdown]
# The ± is a 95 % interval for the mean, from how much the seeds differ. Here they agree, so three
# are enough. [Often they are not](6_how_would_you_know.md).
#
# ## See the two looks
#
# Here is our sequence in the first run of one layer and of two. Choose which question is asked, and
# move the slider through the training. Each line is one token looking at another; the wider it is,
# the more attention. In the lower layer, only the looks that reach the answer stand out.

# %% tags=["hide"]
watched = [runs["1 layer"][0], runs["2 layers"][0]]
without = "This part needs JavaScript. The next figure shows the same sequence after the last step."
widgets.show("look", inspect.story(watched), without)


# %%
def looks_of(run):
    """Of the finished run, the looks of answers and of the question asked, as draw_looks() has
    them: of each two tokens the weight of the head that gives the most."""
    maps = inspect.attention_maps(run.model, run.data.val[0][:1])
    weights = [layer[0].amax(0).tolist() for layer in maps]
    found = []
    for layer, rows in enumerate(weights):
        is_last = layer + 1 == len(weights)
        for query in [asked] if is_last else answers:
            color = "C1" if is_last else "C0"
            found += [(key, query, layer, rows[query][key], color) for key in range(query)]
    return [look for look in found if look[3] > 0.03]


one_looks, two_looks = map(looks_of, watched)
figure, (top, low_axes) = plt.subplots(2, 1, figsize=(4.6, 4.4), height_ratios=(1, 2))
draw_looks(top, one_looks, 1)
top.set_title("one layer: a fan over all the answers")
draw_looks(low_axes, two_looks, 2)
low_axes.set_title("two layers: copy, then match")
plt.show()

# %% [markdown]
# What to see: the one layer's question looks at every answer, since nothing tells it which is its
# own. With two layers, training has found the plan of Figure 1: most answers look at the question
# to their left (blue), and q2 looks at a0 (orange). Nobody told it to. This is one sequence of one
# run; a line is as wide as the weight of the head that gives the most.

# %% [markdown]
# A picture of attention does not show that the answer depends on it. So we take away what layer 1
# adds, and ask again:

# %%
run = runs["2 layers"][0]
with inspect.ablated(run.model, [(0, 0), (0, 1)]):
    no_copy = run.data.evaluate(run.model)["accuracy"]
print(f"accuracy {final['2 layers'][0]:.3f}, without layer 1 {no_copy:.3f}")

# %% [markdown]
# Without the copies, the second look is as blind as the one layer's. (You can switch off single
# heads of a model that you have [trained in the page](play.md).)
#
# On the ring the first loop seems to do the same copying. In "g b" the b has to copy the g before
# it can be found, and in each of the ten models some head looks from the b to the g in the first
# loop. From then on each loop matches once more, and [walks](4_walking.md).
#
# ## What this says, and what it does not
#
# It says: *on this task, at this size, in 200 steps*, two attention layers learn what one does not.
# The number of parameters does not explain it, since the wide layer has as many.
#
# It does not say that one layer could never do it. With as many heads as pairs it can. Each head
# watches one pair. If that pair is not the one asked for, the head subtracts its answer; the right
# one is left. Here are weights [written by
# hand](../reference/laboratory/measure.md#minidepth_lab.measure.by_hand) for a ring of eight pairs:

# %% tags=["hide"]
by_heads = {n_heads: by_hand.measured(n_heads) for n_heads in (4, 7, 8)}
widgets.table(("heads in one layer", "width", "right"), [
    (n_heads, 16 * n_heads, f"{share:.3f}") for n_heads, share in by_heads.items()
])  # fmt: skip

# %% [markdown]
# So the question is what training finds. (For a related task it is
# [proved](https://arxiv.org/abs/2408.14332) how large one layer would have to be.)
#
# Nor does it say that a deeper language model reasons better. This task was made so that depth
# matters. Where the reasoning is [written out](5_writing.md), there is a surprise.

# %%
assert all(value < 0.2 for value in final["1 layer"] + final["1 wide layer"])
assert all(value > 0.95 for value in final["2 layers"]) and gap - half > 0.5
assert m.n_heads == wide.n_heads == 2 and by_heads[8] == 1 > by_heads[7]
assert abs(variants.parameters(wide)["total"] / variants.parameters(two)["total"] - 1) < 0.02
assert (words[16], words[right]) == ("q2", "a0") and no_copy < 0.15
rises = [record["step"] for record in run.log if record["accuracy"] < 0.2]
assert 75 <= rises[-1] <= 125  # "half way through"
rings, _ = tasks.TASKS["ring"].draw(20, md.generator("walk"), lengths=(1, 2, 3, 4))
seconds = range(1, 16, 2)  # the second letters of the pairs
ten = results.runs("ring-staircase", d_model=64, n_loops=5)
for each in ten:
    ring_model, _ = checkpoints.load(results.weights("ring-staircase", each["id"]))
    first_loop = inspect.attention_maps(ring_model, rings)[0].mean(0)  # (H, T, T)
    to_first = [max(head[place, place - 1].item() for head in first_loop) for place in seconds]
    assert min(to_first) > 0.9
assert len(ten) == 10
copied = [weight for key, query, layer, weight, _ in two_looks if (key, layer) == (query - 1, 0)]
assert sum(weight > 0.4 for weight in copied) >= 5
assert max(two_looks, key=lambda look: (look[2], look[3]))[:3] == (right, asked, 1)
fan = [weight for key, *_, weight, _ in one_looks if key in answers]
assert len(fan) == 8 and max(fan) < 0.5

# %% [markdown]
# ## Exercises
#
# 1. (Easy, 10 minutes.) Be the model: write the two looks as a program that works for any question.

# %%
shown, question = words[:16], words[19]
print("shown:", *shown[:8])
print("      ", *shown[8:])
print("asked:", question)

# %% tags=["exercise"]
carried = ...  # look 1: a list of 16, for each place what stands before it
found = ...  # look 2: the token that stands where the question is carried

# %% [markdown] tags=["hint"]
# `[None] + shown[:-1]` moves everything one place to the right. `carried.index(question)` is the
# place where the question is found.

# %% tags=["answer"]
carried = [None] + shown[:-1]
found = shown[carried.index(question)]


# %% tags=["check"]
@exercises.check
def two_looks_are_enough():
    assert isinstance(carried, list), "carried should be a list"
    assert len(carried) == 16, f"carried has {len(carried)} entries, and there are 16 places"
    for place in range(1, 16):
        had, wants = carried[place], shown[place - 1]
        assert had == wants, f"place {place} is {shown[place]}; it carries {had} instead of {wants}"
    assert isinstance(found, str), "found should be a token, such as a3: what stands at the place"
    assert found != question, f"{question} is where the question stands; what stands behind it?"
    wants = shown[shown.index(question) + 1]
    assert found == wants, f"the token at the place that carries {question} is not {found}"


# %% [markdown]
# 2. (Medium, 20 minutes.) Apply one layer's weights twice: `import dataclasses`, then `looped =
#    dataclasses.replace(m, n_loops=2)`. That model has two looks and the parameters of one layer.
#    In how many of five seeds does it behave like two layers? Try 200 steps, then 400:
#    `train(looped, 0, steps=400)`.

# %% [markdown] tags=["hint"]
# A second look made the difference. In the longer runs, when do they learn? `run.log` has a
# record for every 25 steps.

# %% [markdown] tags=["answer"]
# After 200 steps it behaves like one layer in four of five seeds; after 400 steps, like two layers
# in all five. So a second look suffices here, without the parameters of a second layer. Does the
# shared layer just need more steps? Look *when* the longer runs learn: at step 200 four of the five
# answer 0.9 already. Until then they had the first weights and the batches of the short ones, but a
# higher learning rate: each training lowers it over its own steps, and 200 steps lower it too soon.
# The ten runs are stored:

# %% tags=["answer"]
looped = results.runs("tasks", data="icqa", n_loops=2)
for steps in (200, 400):
    found = [run["accuracy"] for run in looped if run["steps"] == steps]
    print(f"one layer applied twice, {steps} steps:", *(f"{accuracy:.3f}" for accuracy in found))
    rows = [record for run in looped if run["steps"] == steps for record in run["log"]]
    at_200 = [row["accuracy"] for row in rows if row["step"] == 200]
    print("    at step 200:", *(f"{accuracy:.3f}" for accuracy in at_200))
    assert sum(accuracy > 0.9 for accuracy in at_200) == (1 if steps == 200 else 4)
    n_learned = sum(accuracy > 0.95 for accuracy in found)
    assert (n_learned, len(found)) == ((1, 5) if steps == 200 else (5, 5))
    assert n_learned == 5 or sorted(found)[-2] < 0.25

# %% [markdown]
# 3. (Easy, 5 minutes.) Show one layer only two pairs (`sizes=("pairs=2",)` in `registry.configs`).
#    At what accuracy does its curve level off now, and why there?

# %% [markdown] tags=["hint"]
# It levels off at the best a model can do if all it knows is to name one of the answers shown.

# %% [markdown] tags=["answer"]
# At one in two. One of two answers shown is the right one, and a single fetched answer does not
# tell which:

# %% tags=["answer"]
print("guessing, and naming one of those shown:", tasks.TASKS["icqa"].chance(pairs=2))
assert tasks.TASKS["icqa"].chance(pairs=2)[1] == 1 / 2
