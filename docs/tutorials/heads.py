# %% [markdown]
# # Heads per layer
#
# **A published experiment found that the order matters: with the fewest heads in the first layer a
# model ends worse. At its size, our runs repeat this only where the logits are not scaled, as in
# GPT-Neo: by 0.07 to 0.21 nats. Scaled, as in most models, the three orders end within 0.021 nats
# of each other.** These are one or two seeds each, 145 steps and other text.
#
# You will learn what nine single runs can tell, how a setting that nobody named can be the reason
# for a result, and what three "significant" differences among eighteen are worth.
#
# A layer divides its width among attention heads: with 12 heads, 768 numbers per token become 12
# times 64. Most models have the same number in every layer. The published experiment gave four
# layers their numbers in three orders: *ascending* has the fewest first, *descending* the most,
# *constant* the same in all. Each order has three runs, with a low, a medium and a high total.

# %%
import json
import math
import statistics

import matplotlib.pyplot as plt
import torch
from scipy.stats import t as student

import minidepth as md
from minidepth_lab.base import configs
from minidepth_lab.keep import registry
from minidepth_lab.measure import inspect, judge, results
from minidepth_lab.models import variants
from minidepth_lab.show import figures
from minidepth_lab.studies.heads import stored
from minidepth_site import exercises, widgets

rows = results.published("heads_schedules")
for row in rows:
    heads = tuple(map(int, row["heads"].split("-")))
    m, _ = registry.configs("heads", n_heads=heads)
    row["parameters"] = variants.parameters(m)["total"]
head = ("group", "order", "heads by layer", "loss", "hours")
keys = ("group", "scheme", "heads", "eval_loss", "hours")
widgets.table(head, [[row[key] for key in keys] for row in rows])
print(f"parameters of each: {rows[0]['parameters']:,}")

# %% [markdown]
# Heads divide the same matrices, so all nine models have the same number of parameters. We read the
# validation losses, after one pass over 250,000 short stories, off a plot, so they are ± 0.005, and
# the hours off another plot. **We no longer have the plots, so nobody can check these readings
# here.**
#
# ## What nine runs can say
#
# The published text says that descending does as well as constant or slightly better, and ascending
# worse. Here are the differences within each group (low, medium or high):

# %%
loss = {(row["group"], row["scheme"]): row["eval_loss"] for row in rows}
heads_of = {(row["group"], row["scheme"]): row["heads"] for row in rows}
rows_of = []
for group in ("low", "medium", "high"):
    base = loss[group, "constant"]
    gaps = [loss[group, scheme] - base for scheme in ("descending", "ascending")]
    rows_of.append([group, *(f"{gap:+.2f}" for gap in gaps)])
widgets.table(["group", "descending − constant", "ascending − constant"], rows_of)

# %% [markdown]
# Ascending is 0.06 to 0.13 nats worse than constant in all three groups, which is more than the
# error of reading the plot. Descending differs from constant by 0.01 at most. How large these
# differences are beside the spread between seeds, one run each cannot tell.
#
# (The text's own percentages compare fitted curves at 180 heads, not runs: no constant model has
# 180. An exponential has three free numbers, and each order has three points, so the curve runs
#      through all of them, whatever they are.)
#
# ## What else changed with the heads
#
# The model was a modified GPT-Neo; the text does not say what was modified. In GPT-Neo as
# published, the *logits* QKᵀ, from which the softmax makes the weights, are not divided by √(head
# size). If they were not divided here either, the number of heads also set the *scale of the
# logits*: a head of size 256 adds up 256 products, one of size 8 adds up 8. (And every other layer
# of GPT-Neo looks only at the last 256 tokens.)
#
# Does the scale matter? Here is an untrained layer of that width on random tokens, *scaled* (with
# the division) and *unscaled*. [Effective keys](inside.md#how-to-count-attention) are how many
# tokens a head looks at, as it were:


# %%
def at_start(heads, attn_scale, d_model=768, init_std=0.02):
    """Effective keys (e to the mean entropy) of an untrained layer."""
    m = configs.ModelConfig(
        vocab_size=512, block_size=256, n_layers=1, n_heads=heads, d_model=d_model,
        d_ff=0, dropout=0.0, attn_scale=attn_scale, init_std=init_std,
    )  # fmt: skip
    torch.manual_seed(0)
    model = variants.GPT(m)
    tokens = torch.randint(512, (4, 256), generator=md.generator("tokens"))
    return inspect.model_stats(model, tokens)["entropy"].mean().exp().item()


start, rows_of = {}, []
for heads in (3, 6, 12, 24, 48, 96):
    start[heads] = at_start(heads, None), at_start(heads, 1.0)
    rows_of.append([heads, 768 // heads, *(f"{keys:.0f}" for keys in start[heads])])
uniform = math.exp(math.lgamma(257) / 256)
rows_of.append(["equal attention", "–", f"{uniform:.0f}", f"{uniform:.0f}"])
widgets.table(["heads", "head size", "effective keys, scaled", "unscaled"], rows_of)

# %% [markdown]
# Scaled, attention begins nearly equal, whatever the size of a head. Unscaled, a layer of 3 heads
# begins with its weight on about three tokens, chosen by chance, and a layer of 96 heads with its
# weight on about 68. And ascending models have their largest heads in the first layer. So "the
# order matters" and "a wider look at the start is better" predict the same: this is a confound. To
# separate them, train the orders with the scale and without it.
#
# ## The published size, scaled and unscaled
#
# We trained all nine with all 68.5 million parameters, scaled and unscaled (`--attn_scale 1.0`):
# the high group with two seeds, the others with one. Each read 2.4 million tokens once, in 145
# steps, in half precision on a lent GPU: stories, encyclopaedia, news and word problems.


# %%
def losses_of(d_model, attn_scale):
    """{(group, scheme): [validation loss of each seed]} of our runs."""
    found = {}
    for name, runs in stored(d_model, attn_scale).items():
        group, scheme, _ = name.replace(":", "").split()
        found[group, scheme] = [run["val_loss"] for run in runs]
    return found


def differences(found, group, one, other):
    return [a - b for a, b in zip(found[group, one], found[group, other])]


big = {"published": {key: [value] for key, value in loss.items()}}
big |= {"unscaled": losses_of(768, 1.0), "scaled": losses_of(768, None)}


# %% tags=["hide"]
gaps, rows_of = {}, []
for title, found in big.items():
    places = 2 if title == "published" else 3  # those were read off a plot
    for group in ("low", "medium", "high"):
        if (group, "constant") not in found:
            continue
        cells = []
        for scheme in ("ascending", "descending"):
            gaps[title, group, scheme] = differences(found, group, scheme, "constant")
            cells.append(", ".join(f"{gap:+.{places}f}" for gap in gaps[title, group, scheme]))
        rows_of.append([title, group, *cells])
widgets.table(["runs", "group", "ascending − constant", "descending − constant"], rows_of)

# %%
figure, panel = plt.subplots(figsize=(4.6, 3.4))
for number, title in enumerate(big):
    shift, color = 0.15 * (number - 1), f"C{number}"
    for place, group in enumerate(("low", "medium", "high")):
        values = gaps.get((title, group, "ascending"), [])
        error = 0.01 if title == "published" else None  # two readings of the plot
        x = [place + shift] * len(values)
        panel.errorbar(x, values, error, fmt="o^s"[number], color=color, capsize=3, markersize=6)
    named = title if title == "published" else f"ours, {title}"
    figures.name_end(panel, shift, gaps[title, "low", "ascending"][0], named, color, 6)
panel.axhline(0, color="C5", linestyle="--")
figures.name_end(panel, 2.35, 0, "constant", "C5", 7)
panel.set_xlim(-0.5, 3.2)
panel.set_ylim(-0.02, 0.25)
panel.set_xticks(range(3), ["low", "medium", "high"])
panel.set_xlabel("group: total of heads")
panel.set_ylabel("ascending less constant (nats)")
panel.set_title("in our runs, ascending is well above constant\nonly without the scale")
plt.show()

# %% [markdown]
# What to see: unscaled, every ascending run lies as far above constant as the published one, or
# further, and as there the distance is largest in the low group. Scaled, none does, in any group.
# Each of our points is one seed, ascending less constant of that seed (n = 2 in the high group, n =
# 1 in the others); the published points are one run each, with bars for what can be misread on the
# plot.
#
# Descending is never far above constant, by the table above. Scaled, ascending is furthest above it
# in the low group: the published sign, at a sixth of its size or less. One seed cannot tell such a
# difference from chance.
#
# **So what we had called a confound is, at this size, a possible reason for the published order.**
# How sure is that?

# %% tags=["hide"]
pairs = {key: values for key, values in gaps.items() if len(values) == 2}
alone = results.interval(gaps["unscaled", "high", "ascending"])
spread = statistics.mean(statistics.variance(values) for values in pairs.values()) ** 0.5
pooled = student.ppf(0.975, len(pairs)) * spread / 2**0.5
rows_of = [["from its two seeds alone", f"{alone[0]:.2f} ± {alone[1]:.2f}"]]
rows_of.append(["if all four differences spread alike", f"{alone[0]:.2f} ± {pooled:.2f}"])
safer = student.ppf(0.975, len(pairs) / 2) * spread / 2**0.5
rows_of.append(["the same, counted as two", f"{alone[0]:.2f} ± {safer:.2f}"])
widgets.table(["high group, unscaled, ascending − constant", "mean, 95 % interval"], rows_of)
stories = {}
for title, scale in (("unscaled", 1.0), ("scaled", None)):
    runs = {name.split()[1]: found for name, found in stored(768, scale).items() if "high" in name}
    first = runs["constant"][0]["data"][0]
    own = {k: [run["val_loss_by_source"][first] for run in runs[k]] for k in runs}
    stories[title] = [a - b for a, b in zip(own["ascending"], own["constant"])]
rows_of = [[k, ", ".join(f"{gap:+.3f}" for gap in values)] for k, values in stories.items()]
widgets.table(["high group, held-out stories alone", "ascending − constant"], rows_of)

# %% [markdown]
# Two seeds alone give an interval so wide that it holds 0. It excludes 0 only if we assume that all
# four differences of ours vary alike from seed to seed. Two things speak for a real difference: all
# four pairs of unscaled runs show it, in all three groups; and the stories alone, the kind of text
# that the published runs had, show it as well.
#
# Four things speak for caution. Most of these are single seeds. Our runs ended at 5.3 to 5.6 nats
# per token, and the published ones at 1.6, on far more stories. We do not know that the published
# models were unscaled. And ours have none of GPT-Neo's layers that see 256 tokens alone.
#
# ## Words that the text never uses
#
# The published text also tells what its models write: before the training random words, afterwards
# a story, without the words that the data never uses. We let one of ours (48-48-48-48, scaled) go
# on from "Once upon a time" ten times:

# %% tags=["hide"]
card = json.loads((results.RESULTS / "heads" / "h100.json").read_text(encoding="utf-8"))
words = card["never_used_words"]
unused = words["never_used"] / words["vocabulary"]
print(f"words that our text never uses: {words['never_used']:,} of {words['vocabulary']:,}", end="")
print(f" ({100 * unused:.1f} %)")
rows_of = []
for title, key in (("first weights", "first_weights"), ("trained", "trained")):
    probability, n_sampled = f"{100 * words[key]['probability']:.1f} %", words[key]["sampled"]
    rows_of.append([title, probability, f"{words[key]['never_used']:,} of {n_sampled:,}"])
widgets.table(["such words have", "probability together", "of the sampled tokens"], rows_of)

# %% [markdown]
# So this statement nearly repeated, in one run. It is no sign of understanding: to learn how often
# each word occurs is enough for it.
#
# ## A small study, and seed by seed
#
# Before, we had trained all nine with three seeds, scaled and unscaled: 54 runs of 250 steps, four
# layers of width 64 ([results](../reference/results.md#heads)). Runs of the same seed see the same
# batches in the same order. So we first subtract within each seed and then take the interval of the
# differences: what the runs of a seed have in common drops out.

# %% tags=["hide"]
ours = {"scaled": losses_of(64, None), "unscaled": losses_of(64, 1.0)}
PAIRS = [("constant", "ascending"), ("descending", "ascending"), ("descending", "constant")]
all_pairs = [(group, *pair) for group in ("low", "medium", "high") for pair in PAIRS]
paired = {
    (scaling, *pair): differences(found, *pair)
    for scaling, found in ours.items()
    for pair in all_pairs
}

# %%
figure, panel = plt.subplots(figsize=(4.6, 4.6))
for number, scaling in enumerate(ours):
    means, halves = zip(*(results.interval(paired[(scaling, *pair)]) for pair in all_pairs))
    y = [place + 0.4 * number - 0.2 for place in range(len(all_pairs))]
    color = f"C{number}"
    panel.errorbar(means, y, xerr=halves, fmt="os"[number], color=color, capsize=3)
    figures.name_end(panel, means[0] + halves[0], y[0], scaling, color, 3 - 6 * number)
panel.axvline(0, color="C5", linestyle="--")
panel.set_yticks(range(len(all_pairs)), [f"{g}: {a} − {b}" for g, a, b in all_pairs])
panel.set_ylim(len(all_pairs) - 0.4, -0.6)  # from above
panel.set_xlabel("difference in loss (nats)")
n_out = sum(abs(mean) > half for mean, half in map(results.interval, paired.values()))
by_chance = 0.05 * len(paired)
figure.suptitle(
    f"{n_out} of {len(paired)} intervals exclude 0;\n{by_chance:.1f} would by chance", fontsize=11
)
panel.set_xlim(-0.033, 0.062)
panel.set_xticks([-0.03, 0, 0.03], ["−0.03", "0", "0.03"])
plt.show()

# %% [markdown]
# What to see: none of the nine scaled intervals excludes 0. Three unscaled ones do, all in the high
# group; they are of a few thousandths of a nat. Each point is the mean of the differences within
# seeds with its 95 % interval, n = 3. The differences of the large unscaled models, 0.07 to 0.21,
# would leave this axis.

# %% tags=["hide"]
outside, rows_of = {}, []
for key, values in paired.items():
    mean, half = results.interval(values)
    if abs(mean) > half:
        outside[key] = mean
        scaling, group, one, other = key
        rows_of.append([f"{scaling}, {group}", f"{one} − {other}", f"{mean:+.4f} ± {half:.4f}"])
widgets.table(["runs", "interval excludes 0", "nats"], rows_of)
n = len(paired)
by_chance = 1 - sum(math.comb(n, k) * 0.05**k * 0.95 ** (n - k) for k in range(3))
strict = []
for key, values in paired.items():
    mean, half = results.interval(values, level=1 - 0.05 / n)
    if abs(mean) > half:
        strict.append(key)
rows_of = [[f"excluding 0, of {n}", n_out], ["expected by chance", f"{0.05 * n:.1f}"]]
rows_of.append(["three or more by chance", f"{100 * by_chance:.0f} %"])
rows_of.append([f"excluding 0 at the level 1 − 0.05/{n}", len(strict)])
widgets.table(["intervals", ""], rows_of)

# %% [markdown]
# **Eighteen intervals at 95 % are eighteen chances to be wrong.** If no order differed from
# another, about one of them would still exclude 0, and three or more would in 6 of 100 such
# studies. Bonferroni's correction is safe: the level is 1 − 0.05/18 in place of 95 %. Then none
# excludes 0. Nor do these three fit the published order: there ascending is worst, here constant
# is. So the small models did not foresee what the large ones show.
#
# ## What would settle it
#
# - **Length and text**: the published runs on 250,000 stories. `python train.py --study heads` has
#   them, on a GPU. We have not run it.
# - **The published program**: is its attention scaled?
# - **Seeds**, so many that the interval is smaller than the difference in question. By the
#   published hours, one seed of all nine takes nearly five days.
# - **One comparison, chosen first**: then there is nothing to correct for.
#
# The direction is open. A preprint of 2026 ([Prism Transformer](https://arxiv.org/abs/2606.27449))
# reports the opposite: that ascending does better than constant.

# %%
assert [f"{gap:.2f}" for gap in gaps["unscaled", "high", "ascending"]] == ["0.09", "0.07"]
assert [f"{gap:.2f}" for gap in gaps["unscaled", "high", "descending"]] == ["-0.01", "-0.01"]
scaled = {key[1:]: values for key, values in gaps.items() if key[0] == "scaled"}
assert len(scaled) == 6 and all(abs(gap) < 0.021 for values in scaled.values() for gap in values)
for group in ("low", "medium", "high"):  # the three orders of a seed end near each other
    for three in zip(scaled[group, "ascending"], scaled[group, "descending"]):
        assert max(0, *three) - min(0, *three) < 0.021
    (theirs,) = gaps["published", group, "ascending"]
    assert 0 <= min(scaled[group, "ascending"]) and max(scaled[group, "ascending"]) < theirs / 6
assert max(scaled, key=lambda key: max(scaled[key])) == ("low", "ascending")
for group, said in (("low", ["0.21"]), ("medium", ["0.17"])):
    assert [f"{gap:.2f}" for gap in gaps["unscaled", group, "ascending"]] == said
for group in ("low", "medium", "high"):
    assert min(gaps["unscaled", group, "ascending"]) > gaps["published", group, "ascending"][0]
    assert max(gaps["unscaled", group, "descending"]) < 0.02
assert f"{gaps['unscaled', 'low', 'descending'][0]:.2f}" == "-0.05"
largest = ("unscaled", "published")
assert all(
    gaps[name, "low", "ascending"] > gaps[name, group, "ascending"]
    for name in largest
    for group in ("medium", "high")
)
assert abs(alone[0]) < alone[1] and alone[0] > safer > pooled and len(pairs) == 4
assert (f"{pooled:.2f}", f"{safer:.2f}") == ("0.02", "0.04")
assert min(stories["unscaled"]) > 0.1 and max(map(abs, stories["scaled"])) < 0.01
ends = [run["val_loss"] for run in results.runs("heads", d_model=768)]
assert len(ends) == 24 and all(5.25 < end < 5.65 for end in ends)
run = results.runs("heads", d_model=768)[0]
assert run["steps"] == 145 and f"{145 * 8 * 2048 / 1e6:.1f}" == "2.4" and run["epochs"] == 1
assert judge.tally("heads") == "9 of 10 held; H9 was wrong"
assert run["params_total"] == rows[0]["parameters"]
assert 4.7 < sum(row["hours"] for row in rows) / 24 < 5
assert words["first_weights"]["never_used"] / 5000 - unused < 0.005
assert (words["trained"]["never_used"], words["trained"]["sampled"]) == (6, 5000)

# %% tags=["hide", "wrong"]
widgets.wrong("heads")

# %% [markdown]
# ## Exercises
#
# 1. (Medium, 10 minutes.) How many seeds would make the interval of `paired["scaled", "low",
#    "constant", "ascending"]` half as wide, if the spread between seeds stays the same?

# %% tags=["exercise"]
n_seeds = ...

# %% [markdown] tags=["hint"]
# With n seeds of standard deviation s the half width is t · s / √n, where t is `student.ppf(0.975,
# n - 1)`. So the width depends on n in two ways: t itself falls, from 4.30 at n = 3 to 2.57 at n =
# 6.

# %% tags=["answer"]
spread = statistics.stdev(paired["scaled", "low", "constant", "ascending"])
goal = results.interval(paired["scaled", "low", "constant", "ascending"])[1] / 2
n_seeds = next(k for k in range(3, 99) if student.ppf(0.975, k - 1) * spread / k**0.5 <= goal)


# %% tags=["check"]
@exercises.check
def half_as_wide():
    assert n_seeds != 12, "that is √n alone, four times the seeds; t gets smaller as well"
    values = paired["scaled", "low", "constant", "ascending"]
    whole = results.interval(values)[1]
    half = student.ppf(0.975, n_seeds - 1) * statistics.stdev(values) / n_seeds**0.5
    share = f"{n_seeds} seeds give an interval {half / whole:.2f} times as wide"
    assert half <= whole / 2, f"{share}: too few"
    assert n_seeds == 5, f"{share}: fewer would do"


# %% [markdown] tags=["answer"]
# Five, not twelve: with so few seeds, most of the gain comes from the smaller t.

# %% [markdown]
# 2. (Medium, 5 minutes.) Another test flips the signs of the three differences in all eight ways.
#    Its p-value is the share of the eight whose mean is at least as far from 0 as the measured one.
#    What is the smallest that it can be? What does Student's t assume that this test does not?

# %% [markdown] tags=["answer"]
# At least two of the eight are always as far from 0 as the measured mean: the signs as they are,
# and all of them turned. So p is never below 2/8 = 0.25, and three seeds cannot show anything by
# this test. Student's t assumes that the differences are normally distributed. Only that assumption
# makes smaller p-values out of three numbers.

# %% [markdown]
# 3. (Medium, 10 minutes.) To try: give `at_start()` four layers and the schedules 3-6-12-24 and
#    24-12-6-3; the entropies are then a list, one tensor per layer. In which layers do the two
#    starts differ, scaled and unscaled?

# %%
assert len({row["parameters"] for row in rows}) == 1 and round(row["parameters"] / 1e6, 1) == 68.5
for group in ("low", "medium", "high"):
    assert 0.055 < loss[group, "ascending"] - loss[group, "constant"] < 0.135
    assert abs(loss[group, "descending"] - loss[group, "constant"]) < 0.0101
assert all(keys > 0.9 * uniform for keys, _ in start.values())
assert start[3][1] < 5 and 0.6 * uniform < start[96][1] < 0.75 * uniform
for found in ours.values():
    means, halves = zip(*map(results.interval, found.values()))
    assert max(means) - min(means) < min(halves)
assert n == 18 and not strict and {key[:2] for key in outside} == {("unscaled", "high")}
assert len(outside) == 3 and all(0.001 < abs(mean) < 0.006 for mean in outside.values())
assert outside["unscaled", "high", "descending", "ascending"] > 0  # constant worst, ascending best
