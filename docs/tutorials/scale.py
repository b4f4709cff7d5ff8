# %% [markdown]
# # Scale, packing, starving for data
#
# **In one small published study the bigger model was better, and so it was again in our runs of its
# three models, on a fifth of its text. In the mean the gain followed the parameters: of all that
# the largest has more, its width makes 85 % and brought 89 % of the gain, and its two more layers
# make 6 % and brought 7 %. In its blocks two thirds of the positions hold padding, and in ours four
# fifths. And its losses do not show the lack of data that it names.** You will learn why three
# sizes of a model cannot tell depth from width, what one change at a time can tell and what it
# cannot, what their heads look at, what padding costs and what packing changes, and how to see from
# its losses that a model has too little data.
#
# LLmini is three models, A, B and C, trained for three passes over 14 million tokens from eleven
# data sets. It raises three questions that any small project meets. Does a bigger model help? How
# much of each block is text? Is there enough text?

# %%
import dataclasses
import json

import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.colors import ListedColormap

import minidepth as md
from minidepth_lab.base import configs
from minidepth_lab.keep import registry, running
from minidepth_lab.measure import judge, results
from minidepth_lab.models import memory, variants
from minidepth_lab.rows import to_data, tokenizing
from minidepth_lab.show import figures
from minidepth_lab.studies import depth, llmini
from minidepth_site import exercises, widgets

# %% [markdown]
# ## Three sizes
#
# The presets `llmini-a`, `-b` and `-c` have the published shapes. Here are their parameters:

# %% tags=["hide"]
sizes, rows = {}, []
for name in "abc":
    m, _ = registry.configs(f"llmini-{name}")
    sizes[name] = variants.parameters(m)
    total = sizes[name]["total"]
    outside = f"{100 * (1 - sizes[name]['blocks'] / total):.0f} %"
    rows.append([name.upper(), m.n_layers, m.d_model, f"{total / 1e6:.1f} M", outside])
widgets.table(["model", "layers", "width", "parameters", "outside the blocks"], rows)

# %% [markdown]
# From C to A depth, width, heads and parameters all grow, and so does the time per step. LLmini
# says itself that it cannot tell which of them does what. (Its introduction traces every difference
# to the architecture alone; with one seed, part may be chance.) Two thirds of A and four fifths of
# C are the table of 50,257 words, which is there twice, as embedding and as output layer.
#
# Here are LLmini's losses after each pass, as if each took a third of the reported minutes:

# %%
minutes = dict(a=69.8, b=57.8, c=44.5)  # as LLmini prints them
epochs = results.published("llmini_training")
figure, axes = plt.subplots(figsize=(4.6, 3.4))
for number, name in enumerate("abc"):
    m, _ = registry.configs(f"llmini-{name}")
    x = [row["epoch"] * minutes[name] / 3 for row in epochs]
    y = [row[f"val_{name}"] for row in epochs]
    axes.plot(x, y, "os^"[number] + "-", color=f"C{number}")
    label = f"{name.upper()}: {m.n_layers} × {m.d_model}"
    figures.name_end(axes, x[-1], y[-1], label, f"C{number}")
axes.set(xlabel="training time (minutes, as published)", xlim=(0, 100))
axes.set(ylabel="validation loss (nats per token)")
ahead = epochs[-1]["val_c"] - epochs[-1]["val_a"]
axes.set_title(f"A ends {ahead:.2f} nats below C")
plt.show()

# %% [markdown]
# What to see: at equal passes A is ahead of B by 0.17 to 0.22 nats, and B of C by 0.20 to 0.25. A
# is ahead of C at equal time, too: two passes of A take about as long as three of C and end lower.
# (And by our preset's schedule A's learning rate was still at 30 % of its peak then.) One run per
# size (n = 1, seed 42); beside the names are layers × width.
#
# So the bigger model was better, in one run each.
#
# ## The three sizes, run again
#
# Does the order come again? We trained A, B and C on ten of its eleven sources, a fifth of its
# tokens, with two seeds each: three passes, as LLmini made, in half precision on a lent card. What
# we expected was [written down](../reference/predictions.md#llmini) before. Here are our losses
# beside the published ones:

# %%
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
# What to see: with both seeds A is ahead of B, and B of C, wherever we looked from step 250 on. All
# of ours lie higher than LLmini's, as one would expect with a fifth of the text (and the validation
# texts are not the same: a source is missing, others are there in part). Lines are our runs, n = 2
# seeds per model, from step 750 on; points are LLmini's, one run each.

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
head = ["at the end", "published", "ours, seed 42", "seed 43", "perplexities of these three"]
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
# (Ours took a fifth of the text, on an H100 that fifteen runs shared. So their minutes compare with
# each other at most.) The differences between the sizes are 0.17 to 0.20 nats. Published are 0.22
# and 0.25 at the end, and 0.17 and 0.20 after the first pass, which had nearly as many steps as our
# three have (2,386 and 2,467). With two seeds alone both intervals exclude 0, since the seeds
# hardly differ. What does that make of LLmini's statements and losses?
#
# - *A is better than B, and B than C*: **repeated**, in both seeds. A is 0.36 and 0.38 ahead of
#   C, where LLmini has 0.47.
# - *Validation loss still falls in the last pass*: in ours, too, and each run is best at its end.
#   But the learning rate goes to 0, and in the last 217 steps the loss falls by 0.003 at most. So
#   this says little about a fourth pass.
# - *Its gaps between training and validation loss*, which are small: LLmini compares a training
#   loss that has dropout on with a validation loss that has none, and prints +0.003 for A. Without
#   dropout on both sides A's gap is 0.30 and 0.32 in our runs, B's 0.21 and 0.23, C's 0.13 and
#   0.15. So the bigger model gains more on its training text than on held-out text, 0.54 in place
#   of 0.37 from C to A.
#
# Here are both after each pass, loss by loss. We evaluated every 250 steps, so ours are of the
# evaluation nearest to the end of a pass:

# %% tags=["hide"]
near, rows = [], []
for number, row in enumerate(epochs, 1):
    pass_end = 2467 * number / 3
    for name in names:
        at_pass = []
        for run in ours[name].values():
            at_pass.append(min(run["log"], key=lambda each: abs(each["step"] - pass_end)))
        near.append((round(pass_end), at_pass[0]["step"]))
        key = name.lower()
        theirs = row[f"val_{key}"], row[f"ppl_{key}"], row[f"val_{key}"] - row[f"train_{key}"]
        losses = [each["val_loss"] for each in at_pass]
        gaps = [each["val_loss"] - each["train_loss"] for each in at_pass]
        cells = [f"{number}, {name}", f"{theirs[0]:.2f}", ", ".join(f"{x:.2f}" for x in losses)]
        cells += [f"{theirs[1]:.0f}", ", ".join(f"{np.exp(x):.0f}" for x in losses)]
        cells += [f"{theirs[2]:+.2f}", ", ".join(f"{x:+.2f}" for x in gaps)]
        rows.append(cells)
head = ["pass, model", "loss, published", "ours, by seed", "perplexity, published"]
widgets.table([*head, "ours", "val − train, published", "val − one step"], rows)
steps_at = [f"{step} for {end}" for end, step in dict(near).items()]
print(f"ours, at steps, for the end of a pass: {', '.join(steps_at)}")

# %% [markdown]
# After each pass both loss and perplexity of ours are higher, in the same order of models. The gaps
# are not the same measure: our training loss is of the 64 blocks of one step, and LLmini's seems to
# be a mean over the whole pass; dropout is on in both. At the end our two seeds give gaps 0.3 to
# 0.4 apart, where their validation losses differ by 0.02 at most. So the gap of one step tells
# next to nothing.

# %% [markdown] tags=["details"]
# Time and memory. LLmini prints both for each run on its GPU. Our runs shared a card, so we
# measured a step of each size on a CPU with two cores, in bf16 ([what was
# printed](../results/bench/printed.txt)). What a GPU would need at its peak we have computed, by
# [the estimate](../how-to/many_machines.md) that the command checks with.

# %% tags=["details"]
peaks = dict(a=7.57, b=6.85, c=6.21)  # GB, as LLmini prints them
step_of, peak_of, computed, rows = {}, {}, {}, []
for name, peak in peaks.items():
    step_of[name], peak_bytes = results.step_by_bench(f"preset llmini-{name}: as asked")
    peak_of[name] = peak_bytes / 1e9
    m, t = registry.configs(f"llmini-{name}")
    computed[name] = sum(memory.step_memory(m, t, half=True).values()) / 1e9
    cells = [f"{minutes[name]} min", f"{step_of[name]:.1f} s", f"{peak:.2f} GB"]
    cells += [f"{peak_of[name]:.2f} GB", f"{computed[name]:.2f} GB"]
    rows.append([name.upper(), *cells])


def saved(of):
    """How much less C takes than A, as "36 %"."""
    return f"{100 * (1 - of['c'] / of['a']):.0f} %"


rows.append(["C below A", *map(saved, (minutes, step_of, peaks, peak_of, computed))])
head = ["model", "published run", "our step", "published peak", "ours, on a CPU"]
widgets.table([*head, "on a GPU, computed"], rows)

# %% [markdown] tags=["details"]
# In a step on a CPU C saves more of A's time and memory than in LLmini's whole runs on a GPU. (In
# our own runs, on a shared GPU, it took 14 % less time.) All published peaks are far above what we
# compute. One reason may be the logits: those of a whole batch, 8,192 tokens by 50,257 words, are
# 1.6 GB in single precision each time that they are held, and our head never makes them all at
# once. They would be as many in each model, so that C would save a smaller share of A's peak.

# %% [markdown]
# ## One change at a time
#
# *Why* is the bigger model better? From C to A three things change, and so `--study llmini` trains
# models that differ from C in one of them: A's ten layers in place of eight, or A's width of 384 in
# place of 256, or 8 heads in place of 4 (A's 6 do not divide C's width). They had the same text,
# steps and seeds:

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
# What to see: bars are means of two seeds, the dots. With A's width C gains nearly as much as A is
# ahead. With A's depth it gains 0.02 and 0.03, which two seeds do not tell from nothing, and with
# more heads nothing.

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
# All four [predictions](../reference/predictions.md#llmini) about this held. But look at the last
# column: **in the mean, two more layers gained as much for each million parameters as the width
# did.** But with two seeds what the layers gain could be nothing, or several times as much. So
# these runs do not tell width from parameters, most of which are in the two tables of words, and
# hardly try depth: eight layers or ten are a small change. (All models have LLmini's learning rate,
# which nobody chose for any of them; a part of the gain of width may be that.)
#
# ## What its heads look at
#
# LLmini measured how widely each head looks, by the entropy of its weights ([looking
# inside](inside.md#how-to-count-attention) explains it), and says: early layers look widely, the
# middle ones are selective, the last ones relax. It has one run of each model. Here are its numbers
# by layer beside ours, on 32 blocks of the training text, as it counts, with masked entries and
# padding:

# %%
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

# %% [markdown]
# What to see: in each of our six runs, as in two of LLmini's three, the first three layers look
# widest, and the lowest layer is the fifth or a later one. By the last layer entropy has risen
# again, in five of six runs by 0.1 nats or more. Lines are ours, n = 2 seeds per model; points are
# LLmini's, one run each.
#
# Four fifths of the positions in our blocks are padding. So here is the entropy over the keys in
# sight of the text alone, with what else LLmini names:

# %% tags=["hide"]
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
# LLmini's table of layers has sparsity, too. Here are both measures by layer, as it counts and as
# one should, over the keys in sight of the text alone:

# %% tags=["details"]
by_layer_of = {}  # {(model, kind, measure): mean of heads and seeds, of each layer}
for name in names:
    rows = []
    for kind in ("counted", "proper"):
        for measure in ("entropy", "sparsity"):
            layers = [by_layer(found, kind, measure) for found in measured[name]]
            by_layer_of[name, kind, measure] = np.mean(layers, axis=0)
    for i in range(len(by_layer_of[name, "proper", "entropy"])):
        row = [i + 1]
        for measure, places in (("entropy", 2), ("sparsity", 3)):
            row.append(f"{their_layers[i][f'{measure}_{name.lower()}']:.{places}f}")
            for kind in ("counted", "proper"):
                row.append(f"{by_layer_of[name, kind, measure][i]:.{places}f}")
        rows.append(row)
    head = [f"{name}, layer", "entropy, published", "ours, its count", "text in sight"]
    widgets.table([*head, "sparsity, published", "ours, its count", "text in sight"], rows)

# %% [markdown] tags=["details"]
# As LLmini counts, every layer of ours looks at least half sparse. Over the text in sight none is
# more than 36 % sparse, and the first is 1 or 2 %. LLmini's sparsest layers are sparser than ours
# by its own count, too: 0.71 to 0.78 against 0.59 to 0.62. Ours are means of the heads of a layer
# and of two seeds. Published is one run of each model.

# %% [markdown]
# - *Early layers diffuse, later ones selective*: **repeated**. Over the text alone the first layer
#   looks widest in all six runs. The lowest is the last but one in four of six, so it is not the
#   middle that is most selective.
# - *The last one relaxes*: **in part**. It is above the lowest by 0.1 nats or more in five of six
#   as LLmini counts, and in four over the text alone; we had expected all six.
# - *Deeper models have a wider range*: **not sure**. Over the text alone A's layers span more than
#   C's in both seeds, but B's less than C's in one; as LLmini counts, the order of its three models
#   turns round in one of two seeds. And the deeper ones are wider, too.
# - *Entropy and sparsity correlate at about −0.9*: **repeated**, −0.83 to −0.95 as LLmini counts.
#   Both count the same thing, a head whose weight is on few tokens.
# - *Pruning heads would show causes*: it shows that no head does much alone. Without any one of
#   them the loss of held-out text rises by less than 0.01 nats, in every run. In five of six the
#   head that is worth most is in the first half of the layers, where heads look widely.
# - *Chain of thought against a flat question*: while they read a worked solution of GSM8K, heads
#   look a little more widely than at the same places of bare questions put end to end, by 0.07 to
#   0.15 nats; we had expected less than 0.1. But of GSM8K these models were trained on the
#   questions alone, so a solution is a strange text to them. (What the question's own words look at
#   cannot change with what follows: the model is causal.)
#
# ## What its models know
#
# LLmini asks what its models would score on the tests that its texts come from, without being
# trained on the answers. We let A and C choose the likeliest answer, seed 42:

# %% tags=["hide"]
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
# None is above the commonest answer: on BoolQ both say "no" each time, and the commonest is "yes";
# on ARC A is right less often than guessing would be. So what A is ahead of C in loss does not show
# in answers. (BoolQ's passages with their questions and HellaSwag's beginnings stand in the
# training text, without the answers.)
#
# It also asks for rotary positions and for one table of words in place of two. We trained C with
# each (n = 1, seed 42). With rotary positions it ends 0.24 nats lower, more than the 0.2 that we
# had expected at most, and two thirds of what A gains; a part may be that the code's initial table
# of positions, which they replace, is as large as that of the words. With one table it ends 1.86
# higher. That is no verdict on tying: PyTorch's own initial weights of an embedding are nearly
# thirty times as large as those of an output layer of this width. Our presets that tie them begin
# with small ones.
#
# ## What padding costs
#
# LLmini gives each text a block of 256 tokens and fills the rest with padding. A longer text
# continues in another block, which begins 128 tokens after the one before. By its own counts:

# %% tags=["hide"]
texts, long, chunks, tokens, short = 158_227, 7_256, 160_745, 13_973_679, 150_971
of_squad = 2_691_776  # of these tokens
twice = 2 * (chunks - short - long) / chunks
rows = [["positions that hold text", f"{100 * tokens / (256 * chunks):.1f} %"]]
rows.append(["blocks of a long text, on average", f"{(chunks - short) / long:.2f}"])
rows.append(["blocks that share text with another, at most", f"{100 * twice:.1f} %"])
widgets.table(["by LLmini's own counts", ""], rows)

# %% [markdown]
# Two thirds of the positions, and of the computation, go to padding. And a text of more than 256
# tokens needs at least two blocks, but long texts got 1.35 on average: their ends are left out. The
# presets do all this as well, so that they can be compared; our own loaders split texts first and
# keep their ends.
#
# LLmini's code is public, and the presets follow it. So we counted its data again: ten of its
# eleven sources, as far as we have their rows, in the form of its code.

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
# over texts. SQuAD, which has 19 % of LLmini's tokens by its own counts, asks several questions
# about one paragraph; LLmini takes the paragraph each time, and so the copies fall on both sides.
# Elsewhere hardly any text is there twice, but a long text has several blocks, which share half of
# their text with one another. (GSM8K, CommonsenseQA and ARC are there in full, and our counts of
# their tokens are LLmini's exactly.)
#
# What would other ways of filling blocks do? We count for *rows* (texts) of our own, 1,900 problems
# and 100 long rows of five problems each, in blocks of T = 128 tokens:
#
# - *padded*;
# - *padded with a stride*: a long row goes on in a block that begins 64 tokens later;
# - *packed*: rows are put end to end and cut into blocks.

# %%
problems = md.embedded_rows(2400)
words = ("".join(text for text, _ in tokenizing.segments(row)) for row in problems)
tokenizer = tokenizing.load_tokenizer("embedded", words)
parts_of = [tokenizing.segments(row, tokenizer) for row in problems]
encoded = list(md.encode(parts_of, tokenizer))
fives = [encoded[i : i + 5] for i in range(1900, 2400, 5)]
merged = [[sum(part, []) for part in zip(*five)] for five in fives]
rows = encoded[:1900] + merged
order = torch.randperm(len(rows), generator=md.generator("mix")).tolist()
rows = [rows[i] for i in order]
total = sum(len(ids) for ids, _ in rows)
# for the picture: in place of each token the number of its row
numbered = [([i + 1] * len(ids), learn) for i, (ids, learn) in enumerate(rows)]

ways = {
    "padded": ("pad", lambda rows: rows),
    "padded, stride 64": ("pad", lambda rows: llmini.overlapping(rows, 128, 64)),
    "packed": ("pack", lambda rows: rows),
}
filled, pictures, table = {}, {}, []
for name, (packing, cut) in ways.items():
    made = md.blocks(cut(rows), 128, packing)
    there = to_data.filled(*made)
    filled[name] = there.mean()
    x, _ = md.blocks(cut(numbered), 128, packing)
    pictures[name] = np.where(there, 1 + x % 2, 0)[:40]
    share = f"{100 * filled[name]:.0f} %"
    table.append([name, f"{len(there):,}", share, f"{there.sum():,}"])
widgets.table(["way", "blocks", "filled", "tokens to learn from"], table)
print(f"tokens in all rows: {total:,}")

# %%
for name, picture in pictures.items():
    _, panel = plt.subplots(figsize=(2.2, 2.9))
    colours = ListedColormap(["#00000000", "#2f7fe0", "#d4650b"])
    panel.imshow(picture, cmap=colours, aspect="auto", vmin=0, vmax=2, interpolation="none")
    panel.set_title(f"{name}:\n{100 * filled[name]:.0f} % filled")
    panel.set_xticks([0, 64, 127])
    panel.set(xlabel="position (tokens)", ylabel="block")
plt.show()

# %% [markdown]
# What to see: padded, most of the area is empty. With a stride, some text of long rows is there
# twice, and is counted twice above. Packed, all positions hold text, and rows are cut where a block
# ends. These are the first 40 blocks of each way; padding is empty, and rows alternate between two
# colours.
#
# Packing is not only cheaper; it changes the training. A row's tokens see the end of the row
# before, which has nothing to do with them. Rows begin at any position, not always at 0. And each
# step has more text. So to pack instead of to pad is several changes at once.
#
# ## Packed against padded
#
# Our small study uses the 7,473 problems of GSM8K's training part, with four layers of width 64,
# blocks of 256, and three seeds. All runs are validated on the same *padded* blocks. We had written
# no prediction down.

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
# These are differences within seeds, n = 3. At equal text packing is worse. At equal steps it looks
# better, but corrected for two comparisons (97.5 % each) that interval includes 0. So which of the
# two is better may depend on what is held equal. These runs do not tell whether the number of
# steps, the schedule of the learning rate or the neighbouring rows made the difference. The
# learning rate was tuned for neither. And here padded blocks were two thirds full. LLmini's were a
# third full, so packing might gain more there.
#
# Our command, with hardware, is in the [results](../reference/results.md#packing). For LLmini's
# rows it is `python train.py --preset llmini-c --study packing --seed 0 1 2`, which has not been
# run.
#
# ## Starving for data
#
# LLmini calls its models starved for data. By a known rule, a given amount of computation is best
# spent on 20 tokens per parameter, each read once (Hoffmann et al. 2022). LLmini has far fewer.

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
# By this rule LLmini's "order of a billion tokens" is right for A. C needs 0.64 billion, not the
# billion that the text names for the smallest model. But the rule tells how to spend computation,
# not whether a model has run out of data. Losses could tell that, and LLmini's do not:
#
# - LLmini takes A's gap after the last pass, which it prints as +0.003, for a beginning of
#   memorisation. But it seems that the train loss is a mean over the pass, with dropout on: after
#   the first pass it lies 1.1 *above* the validation loss. If so, a gap of 0 means nothing special.
# - Validation loss still falls in the last pass, for all three models, and so it does in ours.
#
# What would a lack of data look like? We train two layers for 150 steps on 100, 1,000 or 10,000
# rows, with the same tokenizer and validation rows. Both losses are measured without dropout.

# %%
shape = dict(n_layers=2, steps=150, batch_size=32, max_rows=10_000, eval_problems=0)
shape |= dict(ring_questions=1, grad_accum=1, eval_every=150)
data = to_data.load_data(configs.make("laptop", **shape)[1], 58)
final, table = {}, []
for n in (100, 1_000, 10_000):
    for seed in (0, 1):
        part = dataclasses.replace(data, train=tuple(x[:n] for x in data.train))
        m, t = configs.make("laptop", **shape, seed=seed)
        end = running.train(m, t, part, quiet=True).log[-1]
        final.setdefault(n, []).append((end["train_loss_eval"], end["val_loss"]))
    shown = (f"{a:.2f}, {b:.2f}" for a, b in final[n])
    table.append([f"{n:,}", f"{150 * 32 / n:.1f}", *shown])
widgets.table(["rows", "passes", "seed 0: train, validation", "seed 1"], table)

# %%
figure, axes = plt.subplots(figsize=(4.6, 3.2))
for number, name in enumerate(("rows trained on", "new rows")):
    for seed in (0, 1):
        y = [final[n][seed][number] for n in final]
        axes.plot(list(final), y, "os"[number] + "-", color=f"C{number}")
    place = dict(xytext=(24, -3) if number == 0 else (7, 0), textcoords="offset points")
    axes.annotate(name, (100, final[100][0][number]), color=f"C{number}", **place)
axes.set(xscale="log", xlabel="rows in the training data", ylim=(-0.06, 1.45))
axes.set_xticks(list(final), [f"{n:,}" for n in final])
axes.set_ylabel("loss after 150 steps\n(nats per token of the answer)")
times = min(b / a for a, b in final[100])
axes.set_title(f"trained on 100 rows, the loss on new rows\nis {int(times)} times as high or more")
plt.show()

# %% [markdown]
# What to see: with 100 rows the loss on them is lowest and the loss on new rows highest: that is a
# lack of data. From 1,000 rows on the lines nearly meet, so these two layers had little use for
# more rows in 150 steps. There are n = 2 seeds, one line each.
#
# How that changes with more steps or a larger model was not tried. To learn it for LLmini, one
# would train on half of its data for as many steps and look at the validation loss.

# %%
assert judge.tally("llmini") == "15 of 18 held; L9, L12, L17 were wrong"
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
took = {name: sum(run["seconds"] for run in ours[name].values()) for name in names}
assert f"{1 - took['C'] / took['A']:.0%}" == "14%"
assert 0.79 < 1 - corpus["utilisation"] < 0.81  # ours; below, LLmini's
assert f"{of_squad / tokens:.0%}" == "19%"
assert {run["lr"] for runs in ours.values() for run in runs.values()} == {3e-4}
assert dict(near) == {822: 750, 1645: 1750, 2467: 2467} and len(set(near)) == 3
for row, step in zip(epochs, dict(near).values()):
    for name in names:
        for run in ours[name].values():
            (found,) = (each["val_loss"] for each in run["log"] if each["step"] == step)
            assert found > row[f"val_{name.lower()}"]
for name in names:
    first, second = (run["log"][-1] for run in ours[name].values())
    gaps_apart = [each["val_loss"] - each["train_loss"] for each in (first, second)]
    assert 0.3 < gaps_apart[1] - gaps_apart[0] < 0.4
    assert abs(first["val_loss"] - second["val_loss"]) < 0.02
assert [saved(of) for of in (minutes, peaks)] == ["36 %", "18 %"]
assert [saved(of) for of in (step_of, peak_of)] == ["43 %", "38 %"]
assert min(peaks[name] - computed[name] for name in peaks) > 4
assert 32 * 256 == 8192 and f"{4 * 8192 * 50_257 / 1e9:.1f}" == "1.6"
sparse = {key[:2]: list(by_layer_of[key]) for key in by_layer_of if key[2] == "sparsity"}
assert min(min(sparse[name, "counted"]) for name in names) >= 0.5
assert max(max(sparse[name, "proper"]) for name in names) < 0.36
assert all(0.01 < sparse[name, "proper"][0] < 0.021 for name in names)
most = [max(sparse[name, "counted"]) for name in names]
assert (f"{min(most):.2f}", f"{max(most):.2f}") == ("0.59", "0.62")
most = [max(published_by_layer(name, "sparsity")) for name in names]
assert (f"{min(most):.2f}", f"{max(most):.2f}") == ("0.71", "0.78")
on_train = [
    ours["C"][seed]["train_loss_eval"] - ours["A"][seed]["train_loss_eval"] for seed in (42, 43)
]
assert (f"{np.mean(on_train):.2f}", f"{np.mean(gained['A']):.2f}") == ("0.54", "0.37")
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
spans = {kind: [max(mine) - min(mine) for mine in layers_of[kind]] for kind in layers_of}
a, b, c = ([spans["proper"][i + seed] for seed in (0, 1)] for i in (0, 2, 4))
assert all(x > z for x, z in zip(a, c)) and sum(y < z for y, z in zip(b, c)) == 1
a, b, c = ([spans["counted"][i + seed] for seed in (0, 1)] for i in (0, 2, 4))
assert a[0] > b[0] > c[0] and a[1] < b[1] < c[1]
assert all(each["pruned"]["most"] < 0.01 for each in found)
worth = [[max(heads) for heads in each["pruned"]["by_head"]] for each in found]
assert sum(layers.index(max(layers)) < len(layers) / 2 for layers in worth) == 5
assert sum(each["entropy"]["last"] - each["entropy"]["lowest"] >= 0.1 for each in found) == 4
correlations = [each["correlation"]["counted"] for each in found]
assert (f"{max(correlations):.2f}", f"{min(correlations):.2f}") == ("-0.83", "-0.95")
wider = [each["written"]["written"] - each["written"]["bare"] for each in found]
assert (f"{min(wider):.2f}", f"{max(wider):.2f}") == ("0.07", "0.15")
for model in scores.values():
    assert all(test["accuracy"] <= test["commonest"] for test in model.values())
    assert model["BoolQ"]["accuracy"] + model["BoolQ"]["commonest"] == 1
assert scores["A"]["ARC-Challenge"]["high"] < scores["A"]["ARC-Challenge"]["guessing"]
rotary, tied = (ours[name][42]["val_loss"] for name in ("C, rotary", "C, tied"))
plain = ours["C"][42]["val_loss"]
assert (f"{plain - rotary:.2f}", f"{tied - plain:.2f}") == ("0.24", "1.86")
assert abs((plain - rotary) / gained["A"][0] - 2 / 3) < 0.02
for seed in (42, 43):
    logs = [ours[name][seed]["log"] for name in names]
    for a, b, c in zip(*logs):
        assert a["step"] == b["step"] == c["step"]
        assert a["step"] < 250 or a["val_loss"] < b["val_loss"] < c["val_loss"]
    ahead = logs[2][-1]["val_loss"] - logs[0][-1]["val_loss"]
    assert f"{ahead:.2f}" == {42: "0.36", 43: "0.38"}[seed]
    for log in logs:
        assert log[-1]["val_loss"] == min(row["val_loss"] for row in log)
        assert log[-1]["step"] - log[-2]["step"] == 217
        assert 0 < log[-2]["val_loss"] - log[-1]["val_loss"] < 0.0031
        assert log[-1]["val_loss"] < next(r["val_loss"] for r in log if 3 * r["step"] > 2 * 2467)
for name in names:
    assert min(run["val_loss"] for run in ours[name].values()) > last[f"val_{name.lower()}"]
    assert [run["steps"] for run in ours[name].values()] == [2467, 2467]
assert round(0.95 * chunks / 64) == 2386
for b, differences in (("b", ["0.17", "0.22"]), ("c", ["0.20", "0.25"])):
    a = "ab"["bc".index(b)]
    assert [f"{row[f'val_{b}'] - row[f'val_{a}']:.2f}" for row in epochs[::2]] == differences
assert 0.165 < min(sum(apart.values(), [])) and max(sum(apart.values(), [])) < 0.205
assert all(mean > half for mean, half in map(results.interval, apart.values()))
assert f"{last['val_c'] - last['val_a']:.2f}" == "0.47"
share = sum(row["tokens"] for row in corpus["table"].values()) / tokens
assert 0.19 < share < 0.22 and len(corpus["table"]) == 10
assert [round(sizes[name]["total"] / 1e6, 1) for name in "abc"] == [56.4, 43.3, 32.1]
assert [round(1 - s["blocks"] / s["total"], 2) for s in sizes.values()] == [0.69, 0.74, 0.80]
assert all(
    0.17 < row[f"val_{a}"] - row[f"val_{b}"] < 0.27 for row in epochs for a, b in ("ba", "cb")
)
assert epochs[1]["val_a"] < epochs[2]["val_c"] and 2 / 3 * minutes["a"] < 1.06 * minutes["c"]
params = {name: ours[name][42]["params_total"] for name in ("C", *changed)}
more = [round(n / params["C"] - 1, 2) for n in params.values()]
assert more == [0, 0, 0.05, 0.65, 0.76]
for name, changes in llmini.rows("llmini-c", {}).items():  # the models are those of the study
    assert variants.parameters(registry.configs("llmini-c", **changes)[0])["total"] == params[name]
assert (n_held, again) == (113, 112) and corpus["table"]["gsm8k"]["tokens"] == 412_695
assert corpus["table"]["commonsense_qa"]["tokens"] == 150_470
assert corpus["table"]["arc_challenge"]["tokens"] == 28_217
assert texts == short + long and round(tokens / (256 * chunks), 3) == 0.34
assert 0.3 < filled["padded"] < 0.42 and filled["packed"] == 1
assert sum(steps) < 0 < text[0] - text[1]
assert steps[0] + 6.205 / 4.303 * steps[1] > 0  # t of 97.5 % against 95 %, n = 3
assert 0.6 < 20 * sizes["c"]["total"] / 1e9 < 0.7 and 1.1 < 20 * sizes["a"]["total"] / 1e9 < 1.2
assert all(b > 3 * a and b > 1 for a, b in final[100])
assert all(abs(b - a) < 0.1 for n in (1_000, 10_000) for a, b in final[n])

# %% [markdown]
# ## Exercises
#
# 1. With which `block_size`, to the nearest 8, would padded blocks of the rows above be half full?
#    The long rows count, too. Guess first, from the mean length of a row.

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
# Long rows fill most of theirs, so the answer is a little higher.

# %% tags=["answer"]
print(f"mean length of a short row: {np.mean([len(ids) for ids, _ in encoded[:1900]]):.0f} tokens")

# %% [markdown]
# 2. `depth.width_matched(registry.configs("llmini-c")[0], sizes["a"]["total"])` widens C until
#    it has as many parameters as A. How wide does it get, and what share of them is outside the
#    blocks?

# %% [markdown] tags=["hint"]
# The table of words grows with the width, the blocks with its square.

# %% [markdown] tags=["answer"]
# It becomes wider than A and still has 72 % of its parameters outside the blocks. Of the parameters
# that C gains, more than half go into the table of words.

# %% tags=["answer"]
wider = depth.width_matched(registry.configs("llmini-c")[0], sizes["a"]["total"])
counted = variants.parameters(wider)
outside = 1 - counted["blocks"] / counted["total"]
print(f"C with width {wider.d_model}: {counted['total']:,} parameters,", end=" ")
print(f"{100 * outside:.0f} % outside")
assert half_full == 80 and round(outside, 2) == 0.72
assert wider.d_model > registry.configs("llmini-a")[0].d_model

# %% [markdown]
# 3. To run: train on 1,000 rows for more steps, until the loss on them and the loss on new rows
#    part. How many passes does that take? Compare with 100 rows.
