# %% [markdown]
# # Scale, packing, starving for data
#
# **In one small published study the bigger model was better, and so it was in our reruns of its
# three models. The gain followed the parameters, so three sizes cannot tell depth from width. Two
# thirds of its positions are padding, and its losses do not show the lack of data that it names.**
#
# LLmini is three models, A, B and C, trained for three passes over 14 million tokens from eleven
# data sets. From C to A depth, width, heads and parameters all grow, and LLmini says itself that it
# cannot tell which of them does what. The presets `llmini-a`, `-b` and `-c` have the published
# shapes:

# %%
import json

import matplotlib.pyplot as plt
import numpy as np

import minidepth as md
from minidepth_lab.keep import registry
from minidepth_lab.measure import judge, results
from minidepth_lab.models import variants
from minidepth_lab.rows import to_data, tokenizing
from minidepth_lab.show import figures
from minidepth_lab.studies import depth
from minidepth_site import exercises, widgets

# %% tags=["hide"]
sizes, rows = {}, []
for name in "abc":
    m, _ = registry.configs(f"llmini-{name}")
    sizes[name] = variants.parameters(m)
    total = sizes[name]["total"]
    outside = f"{100 * (1 - sizes[name]['layers'] / total):.0f} %"
    rows.append([name.upper(), m.n_layers, m.d_model, f"{total / 1e6:.1f} M", outside])
widgets.table(["model", "layers", "width", "parameters", "outside the layers"], rows)

# %% [markdown]
# ## The three sizes, run again
#
# Does the order come again? We trained A, B and C on ten of its eleven sources, a fifth of its
# tokens, with two seeds each: three passes, as LLmini made.

# %%
minutes = dict(a=69.8, b=57.8, c=44.5)  # as LLmini prints them
epochs = results.published("llmini_training")
names, ours = ("A", "B", "C"), {}
for model, runs in judge.named_runs("llmini").items():
    ours[model] = {run["seed"]: run for run in runs}
figure, axes = plt.subplots(figsize=(4.6, 3.6))
for number, name in enumerate(names):
    color, column = f"C{number}", f"val_{name.lower()}"
    x, y = zip(*((row["epoch"], row[column]) for row in epochs))
    axes.plot(x, y, "os^"[number] + "--", color=color)
    figures.name_end(axes, x[-1], y[-1], f"{name}, published", color)
    for run in ours[name].values():
        rows = [row for row in run["log"] if row["step"] >= 750]
        x = [3 * row["step"] / run["steps"] for row in rows]
        y = [row["val_loss"] for row in rows]
        axes.plot(x, y, color=color)
    figures.name_end(axes, x[-1], y[-1], f"{name}, ours", color)
axes.set(xlabel="passes over the text", ylabel="validation loss (nats per token)")
axes.set(xticks=(1, 2, 3), xlim=(0.8, 4.1))
axes.set_title("on a fifth of the text, the order\nis the same")
plt.show()

# %% [markdown]
# What to see: with both seeds A is ahead of B, and B of C, by nearly as much as LLmini's. All of
# ours lie higher, as one would expect with a fifth of the text. Lines are our runs, from step 750
# on; points are LLmini's, one run each.

# %% tags=["hide"]
rows, last = [], epochs[-1]
for name in names:
    published_end = f"{last[f'val_{name.lower()}']:.2f}"
    perplexity = [f"{last[f'ppl_{name.lower()}']:.0f}"]
    perplexity += [f"{run['perplexity']:.0f}" for run in ours[name].values()]
    losses = [f"{run['val_loss']:.2f}" for run in ours[name].values()]
    took = [run["seconds"] / 60 for run in ours[name].values()]
    times = [f"{minutes[name.lower()]:.0f}", ", ".join(f"{time:.1f}" for time in took)]
    rows.append([name, published_end, *losses, ", ".join(perplexity), *times])
head = [
    "nats per token at the end",
    "published",
    "ours, seed 42",
    "seed 43",
    "perplexities of these three",
]
head += ["minutes, published", "ours"]
widgets.table(head, rows)
apart, rows = {}, []
for larger, smaller in (("A", "B"), ("B", "C")):
    one, other = (ours[name].values() for name in (smaller, larger))
    apart[larger] = [a["val_loss"] - b["val_loss"] for a, b in zip(one, other)]
    by_pass = [row[f"val_{smaller.lower()}"] - row[f"val_{larger.lower()}"] for row in epochs]
    mean, half = results.interval(apart[larger])
    cells = [", ".join(f"{gap:.2f}" for gap in gaps) for gaps in (by_pass, apart[larger])]
    rows.append([f"{smaller} − {larger}", *cells, f"{mean:.2f} ± {half:.2f}"])
widgets.table(["loss", "published, by pass", "ours, by seed", "95 % interval"], rows)

# %% [markdown]
# At equal *time*, too, A is ahead of C in the published losses. LLmini finds its gaps between
# training and validation loss small, but only its training loss has dropout on. Without it A's gap
# is twice C's in our runs: the bigger model gains more on its training text.
#
# ## One change at a time
#
# *Why* is the bigger model better? These models differ from C in one thing: A's ten layers in place
# of eight, A's width of 384 in place of 256, or 8 heads in place of 4. Text, steps and seeds are
# the same:

# %%
changed = {name: ours[name] for name in ("C, 8 heads", "C, 10 layers", "C, width 384", "A")}
gained = {}  # {model: [nats below C, of each seed]}
for name, runs in changed.items():
    gained[name] = [ours["C"][seed]["val_loss"] - run["val_loss"] for seed, run in runs.items()]
figure, axes = plt.subplots(figsize=(4.6, 2.6))
for place, gaps in enumerate(gained.values()):
    axes.barh(place, np.mean(gaps), color=f"C{place}", alpha=0.4)
    axes.plot(gaps, [place] * len(gaps), "o", color=f"C{place}")
axes.set_yticks(range(len(gained)), gained)
axes.set_xlabel("nats below C, on held-out text")
axes.set_title("the change that adds most parameters\ngains most")
plt.show()

# %% [markdown]
# What to see: with A's width C gains nearly as much as A is ahead. With A's depth it gains a
# little, which two seeds do not tell from nothing, and with more heads nothing. Bars are means of
# two seeds, the dots.

# %% tags=["hide"]
rows = []
for name, runs in (("C", ours["C"]), *changed.items()):
    n = next(iter(runs.values()))["params_total"]
    more = (n - ours["C"][42]["params_total"]) / 1e6
    row = [name, f"{n / 1e6:.1f} M", f"{more:.2f} M"]
    if name in gained:
        row.append("{:.3f} ± {:.3f}".format(*results.interval(gained[name])))
        row.append(f"{np.mean(gained[name]) / more:.4f}" if more else "–")
    rows.append(row + ["–"] * (5 - len(row)))
head = ["model", "parameters", "more than C", "nats below C, 95 %, n = 2"]
widgets.table([*head, "for each million more"], rows)

# %% [markdown]
# **In the mean, two more layers gained as much for each million parameters as the width did.** But
# with two seeds what the layers gain could be nothing, or several times as much. So these runs do
# not tell width from parameters, and eight layers or ten are a small change.
#
# ## Tying and rotary positions, fairly
#
# LLmini names both as next steps. At C's size rotary positions helped, and one table for embedding
# and head did great harm. But that was with the first weights of LLmini's code, far too large for a
# head. So once more, small: four layers of width 128, on stories, for 150 steps.

# %% tags=["hide"]
small = {name: list(runs.values()) for name, runs in ours.items() if "stories" in name}
rows = [[name, *(f"{run['val_loss']:.3f}" for run in runs)] for name, runs in small.items()]
widgets.table(["four layers on", "nats per token, seed 50", "seed 51"], rows)
far = [run["measured"]["far"] for run in small["stories, rotary"]]
rows = [[place, *(f"{found[place]:.3f}" for found in far)] for place in far[0]]
widgets.table(["rotary, at places", "loss, seed 50", "seed 51"], rows)

# %% [markdown]
# With first weights of GPT-2's size, one table is a little worse than two, by more than we had
# predicted. With LLmini's it ends far above a blind guess (7.6): so the great harm was that of the
# weights.
#
# Rotary positions are a little better. At places that no block of the training had, their loss is
# as before. These short trainings hardly look far back, so they do not show that there is no limit.
#
# ## What its heads look at, and what its models know
#
# **Early layers look widely and later ones less, as LLmini says, in all six of our runs.** That the
# middle ones are the most selective did not come again. And no head does much alone: without any
# one of them the loss rises by less than 0.01 nats.
#
# What would its models score on the tests that its texts come from? **Neither A nor C is above the
# commonest answer.** What A is ahead in loss does not show in answers.

# %% [markdown] tags=["details"]
# The [entropy](depth_map.md#how-to-count-attention) of LLmini's heads by layer beside ours, as it
# counts, with masked entries and padding:

# %% tags=["details"]
their_layers = results.published("llmini_attention")


def published_by_layer(name, measure="entropy"):
    column = [row[f"{measure}_{name.lower()}"] for row in their_layers]
    return [value for value in column if value != ""]  # B and C have fewer layers than A


def by_layer(found, kind, measure="entropy"):
    """The mean of the heads of each layer, of what was measured of a run."""
    return [np.mean(heads) for heads in found["by_head"][kind][measure]]


measured = {name: [run["measured"] for run in ours[name].values()] for name in names}
figure, panels = plt.subplots(1, 3, figsize=(7, 2.8), sharey=True)
for panel, name in zip(panels, names):
    theirs = published_by_layer(name)
    places = range(1, len(theirs) + 1)
    panel.plot(places, theirs, "o--", color="C5")
    for found in measured[name]:
        panel.plot(places, by_layer(found, "counted"), color="C0")
    panel.set(xlabel="layer", xticks=(1, 4, 8))
    panel.set_title(name)
panels[0].set_ylabel("entropy, mean of\nits heads (nats)")
panels[0].annotate("published", (1, 3.3), color="C5")
panels[0].annotate("ours", (6, 4.1), color="C0")
figure.suptitle("early layers look widely, later ones less, in ours as in theirs", y=1.08)
plt.show()

# %% [markdown] tags=["details"]
# What to see: in each of our six runs, as in two of LLmini's three, the first three layers look
# widest, and the lowest layer is the fifth or a later one. Lines are ours, n = 2 seeds per model;
# points are LLmini's, one run each.

# %% [markdown] tags=["details"]
# Over the keys in sight of the text alone, with what else LLmini names:

# %% tags=["hide", "details"]
rows = []
for name in names:
    for seed, run in ours[name].items():
        found = run["measured"]
        entropy = by_layer(found, "proper")
        lowest, said = found["layer"]["lowest"], found["written"]
        row = [f"{name}, {seed}", f"{entropy[0]:.2f}", f"{min(entropy):.2f} (layer {lowest})"]
        row += [f"{entropy[-1]:.2f}", f"{found['correlation']['counted']:.2f}"]
        row += [f"{found['pruned']['most']:.4f}", f"{said['written'] - said['bare']:+.2f}"]
        rows.append(row)
head = ["model, seed", "first layer", "lowest", "last", "correlation, as LLmini counts"]
widgets.table([*head, "a head is worth, at most", "with a solution"], rows)

# %% [markdown] tags=["details"]
# - The lowest is the last layer but one in four of six runs. The last one relaxes in five of six.
# - *Deeper models have a wider range*: not sure; two seeds give two orders.
# - *Entropy and sparsity correlate at about −0.9*: so do ours, −0.83 to −0.95. Both count the same
#   thing, a head whose weight is on few tokens.
#
# A and C, seed 42, on the tests, choosing the likeliest answer:

# %% tags=["hide", "details"]
rows = []
scores = {name: ours[name][42]["measured"]["scores"] for name in ("A", "C")}
for test, found in scores["A"].items():
    row = [test, f"{found['rows']:,}", f"{found['commonest']:.3f}"]
    for name in ("A", "C"):
        score = scores[name][test]
        row.append(f"{score['accuracy']:.3f} ({score['low']:.3f} to {score['high']:.3f})")
    rows.append(row)
widgets.table(["test", "rows", "the commonest answer", "A, right (95 %)", "C, right"], rows)

# %% [markdown]
# ## What padding costs
#
# LLmini gives each text a block of 256 tokens and fills the rest with padding. A longer text
# continues in another block, which begins 128 tokens later. By its own counts:

# %% tags=["hide"]
texts, long, chunks, tokens, short = 158_227, 7_256, 160_745, 13_973_679, 150_971
of_squad = 2_691_776  # of these tokens
twice = 2 * (chunks - short - long) / chunks
rows = [["positions that hold text", f"{100 * tokens / (256 * chunks):.1f} %"]]
rows.append(["blocks of a long text, on average", f"{(chunks - short) / long:.2f}"])
rows.append(["blocks that share text with another, at most", f"{100 * twice:.1f} %"])
widgets.table(["by LLmini's own counts", ""], rows)

# %% [markdown]
# **Two thirds of the positions, and of the computation, go to padding.** And a text of more than
# 256 tokens needs at least two blocks, but long texts got 1.35: their ends are left out.

# %% [markdown] tags=["details"]
# LLmini's code is public. So we counted its data again, in the form of its code: ten of its eleven
# sources, as far as we have their rows.

# %% tags=["details"]
path = results.RESULTS / "llmini" / "data.json"
corpus = json.loads(path.read_text(encoding="utf-8"))
rows = []
for name, row in corpus["table"].items():
    counts = [row[key] for key in ("samples", "tokens", "held_out", "held_out_in_training")]
    rows.append([name, *(f"{count:,}" for count in counts)])
widgets.table(["source", "texts", "tokens", "held out", "of these in training"], rows)
squad = corpus["table"]["squad"]
n_held, again = squad["held_out"], squad["held_out_in_training"]
print(f"SQuAD: {again} of {n_held} held-out blocks are in training, word for word")

# %% [markdown]
# **Part of its validation set stands in its training text.** The split was drawn over blocks, not
# over texts. SQuAD asks several questions about one paragraph; LLmini takes the paragraph each
# time, and so the copies fall on both sides.
#
# ## Packed against padded
#
# *Packed* rows are put end to end and cut into blocks, so no position is empty. But a row's tokens
# then see the end of the row before, and each step has more text. We tried both on the 7,473
# problems of GSM8K's training part, with four layers of width 64, blocks of 256, and three seeds.
# All are validated on the same *padded* blocks.

# %%
settings = {"padded": dict(packing="pad")}
settings["packed, same steps"] = dict(packing="pack", steps=400)
settings["packed, same text"] = dict(packing="pack", steps=265)
losses = {}
for name, wanted in settings.items():
    losses[name] = [run["val_loss"] for run in results.runs("packing", **wanted)]
figure, axes = plt.subplots(figsize=(4.6, 3.2))
gaps = {}
for number, (name, values) in enumerate(losses.items()):
    figures.draw_dots(axes, number, values, f"C{number}")
    gaps[name] = results.interval([a - b for a, b in zip(values, losses["padded"])])
axes.set_xticks(range(3), ["padded\n400 steps", "packed\n400 steps", "packed\n265 steps"])
axes.set(xlim=(-0.5, 2.5), ylabel="validation loss (nats per token)")
steps, text = gaps["packed, same steps"], gaps["packed, same text"]
axes.set_title(f"packed: {steps[0]:+.2f} at equal steps, {text[0]:+.2f} at equal text")
plt.show()

# %% [markdown]
# What to see: at equal steps packing has the lower loss, having seen one and a half times as much
# text. At equal text (265 steps) it has the higher one, having had a third fewer steps. Circles are
# runs (n = 3 seeds), squares are means with 95 % intervals.

# %% tags=["hide"]
table = []
for name in ("packed, same steps", "packed, same text"):
    mean, half = gaps[name]
    table.append([name, f"{mean:+.3f}", f"{mean - half:+.3f} to {mean + half:+.3f}"])
widgets.table(["minus padded", "loss", "95 % interval"], table)

# %% [markdown]
# At equal text packing is worse. At equal steps it looks better, but corrected for two comparisons
# that interval includes 0. The learning rate was tuned for neither.
#
# ## Starving for data
#
# LLmini calls its models starved for data. By a known rule, a given amount of computation is best
# spent on 20 tokens per parameter, each read once (Hoffmann et al. 2022). LLmini has far fewer:

# %% tags=["hide"]
table = []
for name, found in sizes.items():
    n, gap = found["total"], last[f"val_{name}"] - last[f"train_{name}"]
    wanted = f"{20 * n / 1e9:.2f} billion"
    table.append(
        [name.upper(), f"{tokens / n:.2f}", f"{3 * tokens / n:.2f}", wanted, f"{gap:+.3f}"]
    )
head = ["model", "tokens per parameter", "with passes", "20 would be", "val − train, at the end"]
widgets.table(head, table)

# %% [markdown]
# But the rule tells how to spend computation, not whether a model has run out of data. LLmini's
# losses do not show that: its validation loss still falls in the last pass. With [fewer texts, read
# more often](7_equal_time.md#the-same-text-twenty-times), it turns and rises.
#
# A direct test, small: two sizes, each for 240 steps on 1,000 stories, on half of them or on a
# quarter, which is read four times as often:

# %% tags=["hide"]
rows, costs = [], []
for name in ("small C", "small A"):
    at = {share: ours[f"{name}, {share} %"] for share in (25, 50, 100)}
    row = (", ".join(f"{run['val_loss']:.3f}" for run in runs.values()) for runs in at.values())
    rows.append([name, *row])
    costs += [at[25][seed]["val_loss"] - at[100][seed]["val_loss"] for seed in at[25]]
widgets.table(["validation loss, seeds 60, 61", "a quarter", "half", "all"], rows)
assert len(costs) == 4 and 0 < min(costs) and max(costs) < 0.05

# %% [markdown]
# **A quarter of the text costs less than 0.05 nats, as predicted**, and the larger model stays far
# ahead. These trainings are short; they do not show what longer ones would run out of.

# %%
whole = {name: next(iter(runs.values()))["params_total"] for name, runs in changed.items()}
added = {name: n - ours["C"][42]["params_total"] for name, n in whole.items()}
of_gain = {name: f"{np.mean(gaps) / np.mean(gained['A']):.0%}" for name, gaps in gained.items()}
of_params = {name: f"{n / added['A']:.0%}" for name, n in added.items()}
assert (of_gain["C, width 384"], of_params["C, width 384"]) == ("89%", "85%")
assert (of_gain["C, 10 layers"], of_params["C, 10 layers"]) == ("7%", "6%")
per_million = [np.mean(gained[name]) / added[name] for name in ("C, 10 layers", "C, width 384")]
assert 0.95 < per_million[0] / per_million[1] < 1.05
assert [f"{gap:.2f}" for gap in gained["C, 10 layers"]] == ["0.02", "0.03"]
mean, half = results.interval(gained["C, 10 layers"])
assert half > mean and max(map(abs, gained["C, 8 heads"])) < 0.001
most = (mean + half) / added["C, 10 layers"]  # which the layers could gain, for each parameter
assert 3 < most / per_million[1] < 4
assert 0.79 < 1 - corpus["utilisation"] < 0.81  # ours; below, LLmini's
assert f"{of_squad / tokens:.0%}" == "19%"
assert {run["lr"] for runs in ours.values() for run in runs.values()} == {3e-4}
assert all(judge.verdict(f"llmini/L{n}") == judge.HELD for n in (7, 8, 10, 11, 13, 14, 15, 16))
fitted = {
    name: [run["val_loss"] - run["train_loss_eval"] for run in ours[name].values()]
    for name in names
}
shown = [f"{gap:.2f}" for name in names for gap in fitted[name]]
assert shown == ["0.30", "0.32", "0.21", "0.23", "0.13", "0.15"]
found = [each for name in names for each in measured[name]]
layers_of = {  # mean entropy by layer, of each run
    kind: [by_layer(each, kind) for each in found] for kind in ("counted", "proper")
}
for mine in layers_of["counted"]:  # what the figure shows
    assert max(mine) in mine[:3] and min(mine[:3]) > max(mine[3:]) and mine.index(min(mine)) >= 4
rising = [mine[-1] - min(mine) for mine in layers_of["counted"]]
assert sum(rise >= 0.1 for rise in rising) == 5
for name in names:
    theirs = published_by_layer(name)
    assert theirs.index(min(theirs)) >= 4 and (min(theirs[:3]) > max(theirs[3:])) == (name != "A")
widest = [mine.index(max(mine)) for mine in layers_of["proper"]]
assert widest == [0] * 6
assert sum(mine.index(min(mine)) == len(mine) - 2 for mine in layers_of["proper"]) == 4
assert all(each["pruned"]["most"] < 0.01 for each in found)
correlations = [each["correlation"]["counted"] for each in found]
assert (f"{max(correlations):.2f}", f"{min(correlations):.2f}") == ("-0.83", "-0.95")
for model in scores.values():
    assert all(test["accuracy"] <= test["commonest"] for test in model.values())
for seed in (42, 43):
    logs = [ours[name][seed]["log"] for name in names]
    for a, b, c in zip(*logs):
        assert a["step"] == b["step"] == c["step"]
        assert a["step"] < 250 or a["val_loss"] < b["val_loss"] < c["val_loss"]
    ahead = logs[2][-1]["val_loss"] - logs[0][-1]["val_loss"]
    assert f"{ahead:.2f}" == {42: "0.36", 43: "0.38"}[seed]
    for log in logs:
        assert log[-1]["val_loss"] == min(record["val_loss"] for record in log)
        assert log[-1]["step"] - log[-2]["step"] == 217
        assert 0 < log[-2]["val_loss"] - log[-1]["val_loss"] < 0.0031
        assert log[-1]["val_loss"] < next(r["val_loss"] for r in log if 3 * r["step"] > 2 * 2467)
for name in names:
    assert min(run["val_loss"] for run in ours[name].values()) > last[f"val_{name.lower()}"]
    assert [run["steps"] for run in ours[name].values()] == [2467, 2467]
for b, differences in (("b", ["0.17", "0.22"]), ("c", ["0.20", "0.25"])):
    a = "ab"["bc".index(b)]
    assert [f"{row[f'val_{b}'] - row[f'val_{a}']:.2f}" for row in epochs[::2]] == differences
assert 0.165 < min(sum(apart.values(), [])) and max(sum(apart.values(), [])) < 0.205
assert all(mean > half for mean, half in map(results.interval, apart.values()))
assert f"{last['val_c'] - last['val_a']:.2f}" == "0.47"
share = sum(row["tokens"] for row in corpus["table"].values()) / tokens
assert 0.19 < share < 0.22 and len(corpus["table"]) == 10
assert [round(sizes[name]["total"] / 1e6, 1) for name in "abc"] == [56.4, 43.3, 32.1]
assert [round(1 - s["layers"] / s["total"], 2) for s in sizes.values()] == [0.69, 0.74, 0.80]
assert all(
    0.17 < row[f"val_{a}"] - row[f"val_{b}"] < 0.27 for row in epochs for a, b in ("ba", "cb")
)
assert epochs[1]["val_a"] < epochs[2]["val_c"] and 2 / 3 * minutes["a"] < 1.06 * minutes["c"]
assert (n_held, again) == (113, 112) and corpus["table"]["gsm8k"]["tokens"] == 412_695
assert corpus["table"]["commonsense_qa"]["tokens"] == 150_470
assert corpus["table"]["arc_challenge"]["tokens"] == 28_217
assert texts == short + long and round(tokens / (256 * chunks), 3) == 0.34
assert sum(steps) < 0 < text[0] - text[1]
assert steps[0] + 6.205 / 4.303 * steps[1] > 0  # t of 97.5 % against 95 %, n = 3
assert 0.6 < 20 * sizes["c"]["total"] / 1e9 < 0.7 and 1.1 < 20 * sizes["a"]["total"] / 1e9 < 1.2

# %% tags=["hide", "wrong"]
widgets.wrong("llmini")

# %% [markdown]
# ## Exercises
#
# 1. (Medium, 10 minutes.) Here are 1,900 problems, and a hundred long rows of five problems each.
#    With which `block_size`, to the nearest 8, would padded blocks of them be half full? Guess
#    first, from the mean length of a row.

# %%
problems = md.embedded_rows(2400)
words = ("".join(text for text, _ in tokenizing.segments(row)) for row in problems)
tokenizer = tokenizing.load_tokenizer("embedded", words)
parts_of = [tokenizing.segments(row, tokenizer) for row in problems]
encoded = list(md.encode(parts_of, tokenizer))
fives = [encoded[i : i + 5] for i in range(1900, 2400, 5)]
rows = encoded[:1900] + [[sum(part, []) for part in zip(*five)] for five in fives]

# %% tags=["exercise"]
half_full = ...

# %% [markdown] tags=["hint"]
# `md.blocks(rows, size, "pad")` makes the blocks and `to_data.filled()` tells which positions hold
# text. Its `.mean()` is the share.

# %% tags=["answer"]
fills = {size: to_data.filled(*md.blocks(rows, size, "pad")).mean() for size in range(64, 136, 8)}
half_full = min(fills, key=lambda size: abs(fills[size] - 0.5))


# %% tags=["check"]
@exercises.check
def half_of_the_positions():
    assert half_full % 8 == 0, f"{half_full} is not a multiple of 8"
    share = to_data.filled(*md.blocks(rows, half_full, "pad")).mean()
    assert 0.48 < share < 0.52, f"with {half_full} they are {100 * share:.0f} % filled"


# %% [markdown] tags=["answer"]
# 80. Short rows have 37 tokens on average, so their blocks alone would be half full at twice that.
#     Long rows fill most of theirs, so the answer is a little higher.

# %% tags=["answer"]
print(f"mean length of a short row: {np.mean([len(ids) for ids, _ in encoded[:1900]]):.0f} tokens")

# %% [markdown]
# 2. (Easy, 5 minutes.) `depth.width_matched(registry.configs("llmini-c")[0], sizes["a"]["total"])`
#    widens C until it has as many parameters as A. How wide does it get, and what share of them is
#    outside the layers?

# %% [markdown] tags=["hint"]
# The table of words grows with the width, the layers with its square.

# %% [markdown] tags=["answer"]
# It becomes wider than A and still has 72 % of its parameters outside the layers. Of the parameters
# that C gains, more than half go into the table of words.

# %% tags=["answer"]
wider = depth.width_matched(registry.configs("llmini-c")[0], sizes["a"]["total"])
counted = variants.parameters(wider)
outside = 1 - counted["layers"] / counted["total"]
print(f"C with width {wider.d_model}: {counted['total']:,} parameters,", end=" ")
print(f"{100 * outside:.0f} % outside")
assert half_full == 80 and round(outside, 2) == 0.72
assert wider.d_model > registry.configs("llmini-a")[0].d_model
