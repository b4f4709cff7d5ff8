# %% [markdown]
# # Heads per layer
#
# **A published experiment found that the order matters: with the fewest heads in the first layer a
# model ends worse. Its author's public code does not scale the logits. Unscaled, our runs repeat
# its order, about twice as large; scaled, as in most models, what is left of it is a ninth as
# large.** Ours are one or two seeds each, on far less text.
#
# You will learn what nine single runs can tell, how a setting that the text does not name can make
# a result, and what three "significant" differences among eighteen are worth.
#
# A layer divides its width among attention heads: with 12 heads, 768 numbers per token become 12
# times 64. The [published experiment](https://chrissarmstrong.github.io/seeking-manifold) gave four
# layers their heads in three orders: *ascending* has the fewest first, *descending* the most,
# *constant* the same in all. Each order has three runs, with a low, a medium and a high total.

# %%
import collections
import json
import math
import statistics

import matplotlib.pyplot as plt
import torch
from scipy.stats import spearmanr
from scipy.stats import t as student

import minidepth as md
from minidepth_lab.base import configs
from minidepth_lab.keep import registry
from minidepth_lab.measure import inspect, results
from minidepth_lab.models import variants
from minidepth_lab.show import figures
from minidepth_lab.studies.heads import stored
from minidepth_site import exercises, widgets

rows = results.published("heads_schedules")
head = ("group", "order", "heads by layer", "loss", "drawn curve", "hours")
keys = ("group", "scheme", "heads", "eval_loss", "drawn_curve", "hours")
widgets.table(head, [[row[key] for key in keys] for row in rows])

# %% [markdown]
# Losses and hours are read off the author's plots, ± 0.005 and ± 0.1. The losses are those on
# held-out text after one pass over 250,000 short stories.
#
# ## What nine runs can say
#
# The text says that descending does as well as constant or slightly better, and ascending worse:

# %%
loss = {(row["group"], row["scheme"]): row["eval_loss"] for row in rows}
rows_of = []
for group in ("low", "medium", "high"):
    base = loss[group, "constant"]
    gaps = [loss[group, scheme] - base for scheme in ("descending", "ascending")]
    rows_of.append([group, *(f"{gap:+.2f}" for gap in gaps)])
widgets.table(["group", "descending − constant", "ascending − constant"], rows_of)

# %% [markdown]
# So it is: ascending is worse in all three groups, by far more than an error of reading. But one
# run each cannot tell how large this is beside the spread between seeds. (The text's percentages,
# 0.3 better and 4.5 worse, are those of curves that the plot draws through three points each. And
# where it says that constant and *ascending* lie on one another, the plot has constant and
# descending.)
#
# ## What its author's code says
#
# The text names two experiments whose setup it shares. Their code is public
# ([data-lane](https://github.com/chrissarmstrong/data-lane)), and says what the text does not:

# %%
code = {row["setting"]: row["value"] for row in results.published("heads_code")}
head = ["setting", "in the author's code"]
widgets.table(head, [list(pair) for pair in code.items()])
m, t = registry.configs("heads", n_heads=12)
biases = m.n_layers * (m.d_model + m.d_ff + m.d_model)  # of out, up and out
ours_total = variants.parameters(m)["total"]
table = [["our preset", f"{ours_total:,}"]]
table.append(["with its biases", f"{ours_total + biases:,}"])
table.append(["the author's baseline", f"{code['parameters of the baseline']:,}"])
widgets.table(["model", "parameters"], table)

# %% [markdown]
# Model and steps agree. **One thing does not: that baseline, 12 heads in each layer, ended at
# 1.661, and 12-12-12-12 here at 1.73.** So something else differs between the two setups, by as
# much as ascending and constant do.
#
# ## Why the number of heads could matter
#
# The *logits* QKᵀ, from which the softmax makes the weights, are a sum over the numbers of a head.
# Usually they are divided by √(head size), *scaled*. Unscaled, a head of size 256 adds up 256
# products, and one of size 8 adds up 8. So the number of heads also sets how large the logits are.
# Here is an untrained layer on random tokens. [Effective
# keys](depth_map.md#how-to-count-attention) are how many tokens a head looks at, as it were:


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
# Scaled, attention begins nearly equal, whatever the size of a head. Unscaled, a layer of few heads
# begins with its weight on a few tokens, chosen by chance. Ascending models have their largest
# heads in the first layer. So "the order matters" and "a wider look at the start is better" predict
# the same. To separate them, train the orders with the scale and without it.
#
# ## Both ways, beside the author's plot
#
# - **At its size**: all nine, scaled and unscaled (`--attn_scale 1.0`), the high group with two
#   seeds, the others with one. Each read 2.4 million tokens of mixed text once. No windows, no
#   biases.
# - **By its code, small** (`--preset heads-small`): local windows in turn and biases, at a quarter
#   of the width, with first logits as large as at the published one. Each read 400 stories, at a
#   higher rate. One seed.


# %% tags=["hide"]
def losses_of(d_model, attn_scale):
    """{(group, scheme): [validation loss of each seed]} of our runs."""
    found = {}
    for name, runs in stored(d_model, attn_scale).items():
        group, scheme, _ = name.replace(":", "").split()
        found[group, scheme] = [run["val_loss"] for run in runs]
    n = collections.Counter(group for group, _ in found)
    return {key: losses for key, losses in found.items() if n[key[0]] == 3}  # whole groups


def differences(found, group, one, other):
    return [a - b for a, b in zip(found[group, one], found[group, other])]


setups = {"published": {key: [value] for key, value in loss.items()}}
for where, width, unscaled in (("at its size", 768, 1.0), ("by its code", 192, 2.0)):
    for title, scale in (("unscaled", unscaled), ("scaled", None)):
        setups[f"{where}, {title}"] = losses_of(width, scale)

# %%
total = {(row["group"], row["scheme"]): row["total_heads"] for row in rows}
figure, panels = plt.subplots(2, 3, figsize=(7.4, 5), sharex=True, sharey=True)
places = dict(zip(setups, ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2))))
for title, found in setups.items():
    panel, best = panels[places[title]], min(losses[0] for losses in found.values())
    for number, scheme in enumerate(("ascending", "constant", "descending")):
        keys = [key for key in found if key[1] == scheme]
        y = [found[key][0] - best for key in keys]
        panel.plot([total[key] for key in keys], y, "os^"[number] + "-", color=f"C{number}")
        panel.lines[-1].set_label(scheme)
    panel.set_title(title, fontsize=10)
    panel.set_xscale("log")
    panel.set_xticks([45, 90, 180], ["45", "90", "180"])
    panel.minorticks_off()
panels[0, 0].set_ylabel("loss less the best\nof the panel (nats)")
for panel in panels[1, 1:]:
    panel.set_xlabel("heads in all four layers")
panels[1, 0].axis("off")
handles, labels = panels[0, 0].get_legend_handles_labels()
panels[1, 0].legend(handles, labels, loc="center", frameon=False)
plt.show()

# %% [markdown]
# What to see: unscaled, in both setups, ascending lies as far above the others as in the published
# plot or further, and fewer heads are worse, as there. Scaled, there is little to see. Lines are
# the first seed of each schedule, less the best of its panel; the table has the second.

# %% tags=["hide"]
gaps, rows_of, spans, ranks = {}, [], {}, {}
for title, found in setups.items():
    digits = 2 if title == "published" else 3  # those were read off a plot
    for group in dict.fromkeys(group for group, _ in found):
        cells = []
        for scheme in ("ascending", "descending"):
            gaps[title, group, scheme] = differences(found, group, scheme, "constant")
            cells.append(", ".join(f"{gap:+.{digits}f}" for gap in gaps[title, group, scheme]))
        rows_of.append([title, group, *cells])
    first = [losses[0] for losses in found.values()]
    spans[title] = max(first) - min(first)
    ranks[title] = spearmanr(first, [loss[key] for key in found]).statistic
widgets.table(["runs", "group", "ascending − constant", "descending − constant"], rows_of)

# %% [markdown]
# **So unscaled logits make the published order, one to two times as large.** In the setup of the
# code ascending is far above constant unscaled, and level with it scaled. (Descending is *below*
# constant there, further than we had predicted.) Scaled, the nine at its size are still ranked much
# alike, but their whole spread is a ninth as large. And scaled, each ends lower than unscaled: with
# the scale there is nothing left for the order to repair.
#
# How sure is the gap of the high group?

# %% tags=["hide"]
pairs = {key: v for key, v in gaps.items() if len(v) == 2}
alone = results.interval(gaps["at its size, unscaled", "high", "ascending"])
spread = statistics.mean(statistics.variance(values) for values in pairs.values()) ** 0.5
pooled = student.ppf(0.975, len(pairs)) * spread / 2**0.5
safer = student.ppf(0.975, len(pairs) / 2) * spread / 2**0.5
rows_of = [["from its two seeds alone", f"{alone[0]:.2f} ± {alone[1]:.2f}"]]
rows_of.append(["if all four differences spread alike", f"{alone[0]:.2f} ± {pooled:.2f}"])
widgets.table(["at its size, unscaled, ascending − constant", "mean, 95 % interval"], rows_of)
stories = {}
for title, scale in (("unscaled", 1.0), ("scaled", None)):
    runs = {name.split()[1]: found for name, found in stored(768, scale).items() if "high" in name}
    first = runs["constant"][0]["data"][0]
    own = {k: [run["val_loss_by_source"][first] for run in runs[k]] for k in runs}
    stories[title] = [a - b for a, b in zip(own["ascending"], own["constant"])]

# %% [markdown]
# Two seeds alone give an interval that holds 0. It excludes 0 only if all four differences of ours
# vary alike from seed to seed. Two things speak for a real difference: all unscaled pairs show it,
# and so do the held-out stories alone. Two speak for caution: most of these are single seeds, and
# our runs at its size ended far above the published ones, at 5.3 nats per token or more.
#
# ## What would settle it: data
#
# A pass over the stories is cheap. By our own times:

# %%
card = json.loads((results.RESULTS / "heads" / "h100.json").read_text("utf-8"))
corpus = json.loads((results.RESULTS / "llmini" / "data.json").read_text("utf-8"))
tokens_of = corpus["table"]["tinystories"]
length = tokens_of["tokens"] / tokens_of["samples"]
steps = t.max_rows * length / (t.batch_size * m.block_size)
seconds = [steps * ms / 1000 for ms in card["milliseconds_per_step"].values()]
print(f"{length:.0f} tokens a story, {steps:,.0f} steps, ", end="")
print(f"{min(seconds):.0f} to {max(seconds):.0f} seconds a schedule")

# %% [markdown]
# So ten seeds of all nine, both ways, are six hours of one H100. What we lack are the 250,000
# stories: we have 1,097. (`python train.py --study heads --preset heads-author --attn_scale 1.0` is
# ready, and nearly the setup of the code.)
#
# The direction is open. A preprint of 2026 ([Prism Transformer](https://arxiv.org/abs/2606.27449))
# reports the opposite: that ascending does better than constant.
#
# ## Words that the text never uses
#
# The published text also says that its trained models write none of the words that the data never
# uses. We let one of ours go on from "Once upon a time" ten times:

# %% tags=["hide"]
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
# So this nearly repeated, in one run. It is no sign of understanding: to learn how often each word
# occurs is enough for it.
#
# ## A small study, and seed by seed
#
# Before, we had trained all nine with three seeds, scaled and unscaled, at width 64
# ([results](../reference/results.md#heads)). Runs of the same seed see the same batches in the same
# order. So we subtract within each seed, and take the interval of the differences:

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
# group, by a few thousandths of a nat. Each point is the mean of the differences within seeds with
# its 95 % interval, n = 3. At that width all first logits are small, scaled or not, so there is
# little for the scale to change.

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
# %% [markdown]
# **Eighteen intervals at 95 % are eighteen chances to be wrong.** If no order differed from
# another, three or more would still exclude 0 in 6 of 100 such studies. With Bonferroni's
# correction, the level 1 − 0.05/18 in place of 95 %, none does. So those small models did not
# foresee what the large ones show.

# %%
big = "at its size, unscaled"
assert [f"{gap:.2f}" for gap in gaps[big, "high", "ascending"]] == ["0.09", "0.07"]
scaled = {key[1:]: values for key, values in gaps.items() if key[0] == "at its size, scaled"}
assert len(scaled) == 6 and all(abs(gap) < 0.021 for values in scaled.values() for gap in values)
for group, told in (("low", ["0.21"]), ("medium", ["0.17"])):
    assert [f"{gap:.2f}" for gap in gaps[big, group, "ascending"]] == told
for group in ("low", "medium", "high"):
    assert min(gaps[big, group, "ascending"]) > gaps["published", group, "ascending"][0]
    assert max(gaps[big, group, "descending"]) < 0.02
assert all(ranks[name] > 0.6 for name in setups if name.startswith("at its size"))
assert abs(alone[0]) < alone[1] and alone[0] > safer > pooled and len(pairs) == 4
assert min(stories["unscaled"]) > 0.1 and max(map(abs, stories["scaled"])) < 0.01
of_its_size = results.runs("heads", d_model=768)
ends = [run["val_loss"] for run in of_its_size]
assert len(ends) == 24 and all(5.25 < end < 5.65 for end in ends)
assert of_its_size[0]["steps"] == 145 and f"{145 * 8 * 2048 / 1e6:.1f}" == "2.4"
assert of_its_size[0]["params_total"] == ours_total
assert words["first_weights"]["never_used"] / 5000 - unused < 0.005
assert (words["trained"]["never_used"], words["trained"]["sampled"]) == (6, 5000)
misses = [abs(row["drawn_curve"] - row["eval_loss"]) for row in rows]
assert f"{max(misses):.2f}" == "0.03"
at_180 = {row["scheme"]: row["drawn_curve_at_180"] for row in rows}
percent = {name: 100 * (at_180[name] / at_180["constant"] - 1) for name in at_180}
assert [f"{percent[name]:.1f}" for name in ("descending", "ascending")] == ["-0.4", "4.6"]
assert ours_total + biases == code["parameters of the baseline"] == 68_514_048
per_pass = t.max_rows * (1 - code["share held out"]) / code["stories in a step"]
assert round(per_pass) == code["steps"] == 123_750
assert (code["validation loss of the baseline"], code["hours of the baseline"]) == (1.661, 15.0)
assert len({run["params_total"] for run in of_its_size}) == 1
assert 8.5 < spans["at its size, unscaled"] / spans["at its size, scaled"] < 9.5
assert round(length) == 208
for group in ("low", "medium"):
    (gap,) = gaps["by its code, unscaled", group, "ascending"]
    (nothing,) = gaps["by its code, scaled", group, "ascending"]
    assert f"{gap:.2f}" == "0.19" and abs(nothing) < 0.005
    (below,) = gaps["by its code, unscaled", group, "descending"]
    assert f"{below:.2f}" == dict(low="-0.07", medium="-0.05")[group]
for where in ("at its size", "by its code"):
    one, other = setups[f"{where}, scaled"], setups[f"{where}, unscaled"]
    assert all(one[key][0] < other[key][0] for key in one)
assert 105 < min(seconds) and max(seconds) < 140
assert 5 < sum(seconds) * 2 * 10 / 3600 < 7

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
