# %% [markdown]
# # Looking inside
#
# **A map of attention suggests what a head does; switching the head off tells. In one run of twelve
# layers, half of the layers can be left out, and nothing but sums suffers.** You will learn how to
# measure attention, how to switch heads and layers off, and how to read what a model knows in its
# middle.
#
# ## How to count attention
#
# A *query*, the token that looks, spreads a weight of 1 over its *keys*: itself and the tokens
# before it. Two numbers say how widely:
#
# - **Entropy**, H = −Σ p ln p, in nats: 0 if all weight is on one key, ln n if it is equal on n. So
#   e^H can be read as a number of keys.
# - **Sparsity**: the share of keys whose weight is below 0.001.
#
# Begin with the least sparse attention there can be, equal to all keys, with T = 256 tokens:

# %%
import json
import math
from inspect import getsource

import matplotlib.pyplot as plt
import torch

import minidepth as md
from minidepth_lab import tasks
from minidepth_lab.keep import registry, running
from minidepth_lab.measure import inspect, results
from minidepth_lab.show import figures
from minidepth_lab.studies import layers
from minidepth_site import exercises, widgets

T = 256
uniform = torch.ones(T, T).tril()
uniform = (uniform / uniform.sum(1, keepdim=True))[None, None]  # (B, H, T, T)
right = inspect.head_stats(uniform)
masked = inspect.head_stats(uniform, count_masked=True)
print(f"entropy {right['entropy'].item():.3f} nats")
print(f"sparsity {right['sparsity'].item():.3f} over keys in sight")
print(f"sparsity {masked['sparsity'].item():.3f} over the whole T × T square")

# %% [markdown]
# The last number is a mistake. Nearly half of the square is the future, which the mask sets to
# exactly 0: counted, it makes any causal model look about "50 % sparse".
#
# It seems to be a published mistake, too. [LLmini](scale.md), a small study of three models,
# printed the sparsity of each layer at T = 256. Its lowest value is just above the share of masked
# entries, f = (T − 1) / 2T. The share s with them and the share v without them belong together by v
# = (s − f) / (1 − f). Corrected in this way, LLmini's first layers are about 2 % sparse, not 51 %:

# %% tags=["hide"]
f = (T - 1) / (2 * T)
table = results.published("llmini_attention")
corrected = {}  # {model: [(layer, s, v)]}
for variant in "abc":
    found = [(row["layer"], row[f"sparsity_{variant}"]) for row in table]
    corrected[variant] = [(i, s, (s - f) / (1 - f)) for i, s in found if s != ""]
rows = []
for variant, its in corrected.items():
    for at, (layer, s, v) in (("first", its[0]), ("sparsest", max(its, key=lambda row: row[1]))):
        rows.append([variant.upper(), f"{at} ({layer})", f"{100 * s:.1f} %", f"{100 * v:.1f} %"])
widgets.table(["model", "layer", "published", "corrected"], rows)

# %% [markdown]
# The correction assumes that masked entries were counted. No published value lies below f, and
# every first layer lies within 0.014 above it.
#
# ## Heads switched off
#
# [Two layers answer a question from its context](3_one_look_or_two.md): in the first, each answer
# copies the question before it; in the second, each question finds the answer that carries it. We
# train such a model. (To switch heads off by hand, [train one in the page](play.md).)

# %%
sizes = dict(n_layers=2, steps=300, eval_every=300, eval_blocks=64)
m, t = registry.configs("tasks", data="icqa", **sizes)
run = running.train(m, t, registry.data_of(t), quiet=True)
data = run.data

# %% [markdown]
# How much weight do answers give to the token before them (*copies* in the table), and the queries
# to the right answer (*finds*)? And how many answers are right without each head? `ablated()` takes
# away what a head adds while the model runs.

# %%
sequences, targets = (torch.as_tensor(part[:200]).long() for part in data.val)
maps = inspect.attention_maps(run.model, sequences)  # of each layer, (B, H, T, T)
stats = inspect.attention_stats(maps)
answers = torch.arange(1, 16, 2)
match = targets[:, 16:, None] == sequences[:, None, :16]  # (B, query, key)
copies, finds, off = {}, {}, {}  # by (layer, head); off: accuracy without it
rows = []
for at in ((0, 0), (0, 1), (1, 0), (1, 1)):
    w = maps[at[0]][:, at[1]]  # (B, T, T)
    copies[at] = w[:, answers, answers - 1].mean().item()
    finds[at] = (w[:, 16:, :16] * match).sum(-1).mean().item()
    with inspect.ablated(run.model, [at]):
        off[at] = data.evaluate(run.model)["accuracy"]
    its = (stats["entropy"][at], copies[at], finds[at], off[at])
    rows.append([f"{at[0] + 1}.{at[1] + 1}", *(f"{x:.2f}" for x in its)])
with inspect.ablated(run.model, [(0, 0), (0, 1)]):
    no_first_layer = data.evaluate(run.model)["accuracy"]
base = data.evaluate(run.model)["accuracy"]
rows.append(["none", "–", "–", "–", f"{base:.2f}"])
rows.append(["layer 1", "–", "–", "–", f"{no_first_layer:.2f}"])
widgets.table(["head", "entropy", "copies", "finds", "accuracy without"], rows)

# %%
copier, finder = max(copies, key=copies.get), max(finds, key=finds.get)
words = [f"q{i}" if i < 16 else f"a{i - 16}" for i in sequences[0].tolist()]
figure, (top, low) = plt.subplots(2, 1, figsize=(4.6, 7.4), height_ratios=(2, 1))
for panel, (layer, head), shown in ((top, copier, range(16)), (low, finder, range(16, 24))):
    panel.imshow(
        maps[layer][0, head][shown.start : shown.stop, :16],
        cmap=figures.ground(),
        vmin=0,
        vmax=1,
        aspect="auto",
    )
    panel.set_xticks(range(16), words[:16], rotation=90)
    panel.set_yticks(range(len(shown)), [words[row] for row in shown])
where = f"layer {copier[0] + 1}, head {copier[1] + 1}"
top.set_title(f"{where}:\nanswers give their questions {100 * copies[copier]:.0f} %")
where = f"layer {finder[0] + 1}, head {finder[1] + 1}"
low.set_title(f"{where}:\nqueries give the right answers {100 * finds[finder]:.0f} %")
top.set_ylabel("pair's token that looks")
low.set(ylabel="query that looks", xlabel="token looked at")
plt.show()

# %% [markdown]
# What to see: above, dark cells one place left of the diagonal, on every other row: an answer looks
# at its question. Below, one dark cell in each row: a query looks at its own answer, wherever that
# stands. The percentages are means over 200 sequences; the maps are of one.
#
# Without its first layer the model is right no more often than by naming any answer shown, 1 time
# in 8. That fits "copy, then match". But in layer 2 **either head can be switched off alone, and
# nothing shows, since both do the same work**. This is one model with one seed.
#
# ## One look, many heads
#
# What does a layer do that has one look and several heads? We trained [one layer without
# loops](4_walking.md#what-this-shows-and-what-it-does-not) to find the next letter on a ring of
# eight pairs. Here is where the four heads of three such layers look when a question is asked:

# %%
longer = results.runs("ring-wide", steps=6000, d_model=128)
_, axes = plt.subplots(1, 3, figsize=(7.6, 2.9), sharey=True)
for each, seed in zip(axes, (210, 211, 213)):
    (one_run,) = (run for run in longer if run["seed"] == seed)
    pairs_of = one_run["measured"]["watched"]
    rows = [*pairs_of["weight"], pairs_of["right"]]
    texts = [[f"{share:.1f}" if share >= 0.25 else "" for share in row] for row in rows]
    figures.heat_map(each, rows, vmax=1, texts=texts)
    each.set_xticks(range(8), range(1, 9))
    each.set_yticks(range(5), ["head 1", "head 2", "head 3", "head 4", "right"])
    each.axhline(3.5, color="C1", linewidth=2)
    each.set(xlabel="pair", title=f"right: {one_run['accuracy']:.2f}")
plt.show()

# %% [markdown]
# What to see: above the line, the share of its attention that each head gives to each of the eight
# pairs. Below it, how often the question is right whose answer stands in that pair. In the first
# two layers the heads have divided the pairs among them. In the third one head watches one pair,
# and the rest is guessed.

# %% [markdown]
# A pair that a head watches alone is always right; of two that share a head about half are. So four
# heads get half of eight pairs right, or little more.
#
# ## The logit lens
#
# The *residual stream* is what a token carries from layer to layer. It has the same shape after
# every layer, so the last norm and the output layer can be applied to it anywhere. `inspect.lens()`
# does that and names the likeliest word, and `inspect.known()` asks whether it is the right one. So
# the lens says after which layer something is *ready to be said*. (A word that it does not find may
# still be there, in directions that the output layer does not read.)

# %% tags=["hide", "python"]
print(getsource(inspect.lens))

# %% [markdown]
# Its counterpart is `inspect.skipped()`, which hands the stream past one layer. What do four layers
# do on the task above, for which two are enough? Here are three seeds:


# %%
def trained(seed):
    """Four layers after 300 steps, and 200 test sequences with their targets."""
    settings = dict(n_layers=4, seed=seed, steps=300, eval_every=300)
    m, t = registry.configs("tasks", data="icqa", **settings)
    data = registry.data_of(t)
    model = running.train(m, t, data, quiet=True).model
    tokens, targets = (torch.as_tensor(part[:200]).long() for part in data.val)
    return model, tokens, targets


def share(right, targets):
    """The share of the answers that are right, of (B, T) bool."""
    return right[targets != -100].float().mean().item()


lens, skipped = [], []  # of each seed, by layers
for seed in (0, 1, 2):
    model, tokens, targets = trained(seed)
    known = inspect.known(model, tokens, targets)
    lens.append([share(right, targets) for right in known])
    skipped.append([])
    for layer in range(4):
        with inspect.skipped(model, layer):
            *_, last = inspect.known(model, tokens, targets)
        skipped[seed].append(share(last, targets))
rows = []
for layer in range(4):
    after = (f"{each[layer + 1]:.2f}" for each in lens)
    less = (f"{each[layer]:.2f}" for each in skipped)
    rows.append([layer + 1, " ".join(after), " ".join(less)])
widgets.table(["layer", "right after it", "right without it"], rows)

# %% [markdown]
# The answers are ready after the second layer, and the third or the fourth can be left out. Nothing
# asked the layers to be quick.
#
# ## Twelve layers on the embedded problems
#
# The [report](2_logs.md) guesses that layers divide the work: early layers detect patterns, middle
# layers connect information, late layers reason and conclude. It did not look. We did, in **one
# run** of twelve layers of attention alone ([how](../reference/results.md#layers)). The model reads
# 200 held-out problems with their solutions, and we ask at each place whether it knows the next
# word. The words are of six kinds:

# %% tags=["hide"]
path = results.RESULTS / "layers" / "laptop-12-layers-seed-0.json"
found = json.loads(path.read_text(encoding="utf-8"))
rows = [[kind, what, f"{found['words'][kind]:,}"] for kind, what in layers.KINDS.items()]
widgets.table(["kind", "", "words"], rows)

# %%
ready = {}  # the depth from which on the lens has 95 % of a kind right
for kind, shares in found["known"].items():
    ready[kind] = max((d + 1 for d, x in enumerate(shares) if x < 0.95), default=0)
depths = {}
for kind, depth in ready.items():
    depths.setdefault(depth, []).append(kind)
title = "\n".join(f"ready after layer {d}: {', '.join(depths[d])}" for d in sorted(depths))

figure, (top, low) = plt.subplots(2, 1, figsize=(4.6, 5.4))
for panel, part, labels in ((top, "known", range(13)), (low, "without", range(1, 13))):
    shares = list(found[part].values())
    texts = [["" if x >= 0.995 else f"{100 * x:.0f}" for x in row] for row in shares]
    figures.heat_map(panel, shares, vmax=1, texts=texts)
    panel.set_yticks(range(6), found[part])
    panel.set_xticks(range(len(labels)), labels)
top.set(title=title, xlabel="layers that have been applied", ylabel="kind of word")
harmless = [n + 1 for n in range(12) if min(x[n] for x in found["without"].values()) >= 0.97]
low.set_title(
    f"no kind falls below 97 % without\nany one of the layers {harmless[0]} to {harmless[-1]}"
)
low.set(xlabel="layer that is left out", ylabel="kind of word")
plt.show()

# %% [markdown]
# What to see: after two layers the lens reads all lookups, all copying and most orderings, and only
# sums become readable in the last layers. Above is what the lens finds at each depth, below what
# the whole model still knows without one layer. Both are in percent of the words of a kind; a full
# cell without a number is 100 %. *Ready* means that from there on the lens has at least 95 %.
#
# A layer that can be left out alone may be one of several that do the same work. So here several
# are left out at a time:

# %% tags=["hide"]
spans = found["spans"]
rows = [[kind, *(f"{shares[kind]:.2f}" for shares in spans.values())] for kind in layers.KINDS]
widgets.table(["without layers", *spans], rows)

# %% [markdown]
# Without layers 3 to 8, half of the model, lookups, orderings and answers are as right as before,
# and 40 % of the sums are lost. A lookup is copy and match again, in the first two layers. The
# model does not use the ten others to go several hops at once: it may [write](5_writing.md) each
# letter down.
#
# ## The claim about early, middle and late layers
#
# | the report's guess | this model, one run |
# |---|---|
# | early layers detect patterns | lookups, most orderings are ready after two; sums need both |
# | middle layers connect information | any one can be spared; sums need some of them |
# | late layers reason and conclude | only sums become readable in layers 9 to 12 |
#
# **A division of this kind is there for sums at most**, one kind of problem of three. And in [the
# same time](7_equal_time.md) two layers learn all three kinds. None of this says anything about a
# language model.

# %%
assert abs(right["entropy"].item() - math.lgamma(T + 1) / T) < 1e-3
assert right["sparsity"].item() == 0 and round(masked["sparsity"].item(), 3) == 0.498
firsts = [its[0] for its in corrected.values()]
assert all(0.005 < v < 0.03 and f < s < f + 0.014 for _, s, v in firsts)
assert min(s for its in corrected.values() for _, s, _ in its) > f
assert base > 0.95 and copies[copier] > 0.5 and finds[finder] > 0.5
assert max(finds[0, 0], finds[0, 1]) < 0.3 and (copier[0], finder[0]) == (0, 1)
assert off[copier] < 0.3 and min(finds[1, 0], finds[1, 1]) > 0.8
assert no_first_layer < 1 / 8 + 0.02 and min(off[1, 0], off[1, 1]) > 0.9
for seed in (0, 1, 2):
    assert lens[seed][1] < 0.2 and min(lens[seed][2:]) > 0.95
    assert max(skipped[seed][:2]) < 0.2 and min(skipped[seed][2:]) > 0.95
assert {ready[kind] for kind in ("copy", "look-up", "order", "answer")} == {2}
assert ready["sum"] == 12 and found["known"]["sum"][8] < 0.3 and harmless == [3, 4, 5, 6, 7, 8, 9]
for kind in ("copy", "look-up", "order", "answer"):
    assert min(spans[span][kind] for span in ("5 to 8", "9 to 12", "3 to 8")) > 0.98
assert round(1 - spans["3 to 8"]["sum"], 2) == 0.40
best = {link: [max(heads) for heads in found["looks"][link]] for link in ("copy", "match")}
for link, layer in (("copy", 1), ("match", 2)):
    assert best[link].index(max(best[link])) + 1 == layer and max(best[link]) > 0.7
for one_run in longer:  # one head for k pairs: 1 / k of their questions
    pairs_of = one_run["measured"]["watched"]
    for weight in pairs_of["weight"]:
        pairs = [pair for pair, part in enumerate(weight) if part > 0.25]
        if sum(weight[pair] for pair in pairs) > 0.9:
            alone = sum(pairs_of["right"][pair] for pair in pairs) / len(pairs)
            assert abs(alone - 1 / len(pairs)) < 0.1
most = {}
for heads in (4, 8):
    of_heads = results.runs("ring-wide", d_model=128, n_heads=heads, n_loops=1)
    most[heads] = max(each["accuracy"] for each in of_heads)
assert most[8] < 0.3 < 0.5 < most[4] < 0.6

# %% [markdown]
# ## Exercises
#
# 1. (Easy, 5 minutes.) Somebody measures a head of a model that reads T = 24 tokens, counts the
#    masked entries as well, and reports a sparsity of 0.60. What is it over the keys in sight?

# %% tags=["exercise"]
sparsity = ...

# %% [markdown] tags=["hint"]
# First take f for this T, then the formula for v.

# %% tags=["answer"]
f_here = (24 - 1) / (2 * 24)
sparsity = (0.60 - f_here) / (1 - f_here)


# %% tags=["check"]
@exercises.check
def over_keys_in_sight():
    assert isinstance(sparsity, float), "put a share, as 0.5, in the place of the dots"
    of_256 = (0.60 - f) / (1 - f)
    assert abs(sparsity - of_256) > 1e-3, "that is with the f of T = 256; here T is 24"
    less = 0.60 - 23 / 48
    assert abs(sparsity - less) > 1e-3, "divide by 1 − f: it is a share of the keys in sight"
    expected = less / (1 - 23 / 48)
    right = f"{sparsity:.3f} would be reported as {23 / 48 + (1 - 23 / 48) * sparsity:.3f}"
    assert abs(sparsity - expected) < 2e-3, f"{right}, not as 0.600"


# %% [markdown]
# 2. (Medium, 5 minutes.) In the models of four layers, the lens finds nothing after layer 1, and
#    without layer 1 everything is lost. How does that fit together?

# %% [markdown] tags=["hint"]
# At which places does layer 1 do its work, and at which does the lens look?

# %% [markdown] tags=["answer"]
# In the known solution layer 1 works at the places of the answers: it writes into each which
# question stood before it. The lens looks at the places of the questions asked, and what layer 1
# did has not come there yet. A lens tells what is ready at the place where it looks, not what has
# been done.

# %% [markdown]
# 3. (Hard, 20 minutes.) The lens reads the stream with a head that was trained for the last layer.
#    Take the last four-layer model above and fit a head of its own to each depth, by least squares,
#    on 2,000 fresh sequences. Are the answers there after one layer, hidden from the lens?

# %% [markdown] tags=["hint"]
# Take `inspect.streams()` at the places that have a target, and `torch.linalg.lstsq()` from there
# to one column per answer. Test on the 200 sequences that it has not seen.

# %% [markdown] tags=["answer"]
# No. After one layer the fitted head does no better than naming any answer shown, 1 in 8. After two
# it finds them all. So here the lens did not mislead.


# %% tags=["answer"]
def at_targets(tokens, targets):
    """The stream at every place with a target, for each depth (n, C), and the targets (n,)."""
    asked = targets != -100
    return [stream[asked] for stream in inspect.streams(model, tokens)], targets[asked]


fresh = tasks.TASKS["icqa"].draw(2000, md.generator("probe"))
heads_of, wanted = at_targets(*(part.long() for part in fresh))
tested, right_answers = at_targets(tokens, targets)
one_hot = torch.nn.functional.one_hot(wanted, model.config.vocab_size).float()
probe = []
for stream, other in zip(heads_of, tested):
    head = torch.linalg.lstsq(stream, one_hot).solution
    probe.append(((other @ head).argmax(1) == right_answers).float().mean().item())
print("a head for each depth:", *(f"{x:.2f}" for x in probe))
print("the lens:             ", *(f"{x:.2f}" for x in lens[2]))
assert max(probe[:2]) < 0.2 and min(probe[2:]) > 0.95
