# %% [markdown]
# # Looking inside: attention, and how to count it
#
# **You will learn** to get attention weights out of a model, to measure them by entropy and
# sparsity, to see why 51 % in a published table is really 2 %, and to check what a map suggests by
# switching heads off.<br>
# **Time** 12 to 20 s on two CPU cores.<br>
# **Needs** PyTorch and Matplotlib; no GPU, no network.
#
# Attention weights are easy to look at and easy to misread. This page measures first, looks second,
# and then intervenes.

# %%
import contextlib
import math
import tempfile

import matplotlib.pyplot as plt
import torch

import minidepth as md
from studies import attention, results, tasks

# %% [markdown]
# ## Two measures
#
# A query spreads a weight of 1 over the keys that it may see.
#
# - **Entropy**, H = −Σ p ln p, in nats: 0 if all weight is on one key, ln n if it is equal on n.
#   e^H reads as a number of keys.
# - **Sparsity**: the share of keys whose weight is below 0.001.
#
# Begin with a case whose answer is known: attention that is equal over all keys in sight, with T =
# 256 tokens. No attention is less sparse.

# %%
T = 256
uniform = torch.ones(T, T).tril()
uniform = (uniform / uniform.sum(1, keepdim=True))[None, None]  # (B, H, T, T)
right = attention.head_stats(uniform)
masked = attention.head_stats(uniform, count_masked=True)
print(f"entropy {right['entropy'].item():.3f} nats, by formula {math.lgamma(T + 1) / T:.3f}")
print(f"sparsity {right['sparsity'].item():.3f} over keys in sight")
print(f"sparsity {masked['sparsity'].item():.3f} over the whole T × T square")

# %% [markdown]
# The last number is the mistake. Half of the square is the future, which the mask sets to exactly
# 0. If you count those entries, any causal model looks "50 % sparse" before it has learned
# anything. The share of masked entries is f = (T − 1) / 2T; for T = 256 that is 0.498.
#
# ## A published table, corrected
#
# LLmini, a small study of three models (A, B, C), published entropy and sparsity per layer at T =
# 256. Its lowest sparsity is 0.505. Let s be the sparsity that counts masked entries and v the one
# that does not. Then s = f + (1 − f) v, so v = (s − f) / (1 − f).

# %%
f = (T - 1) / (2 * T)
table = results.published("llmini_attention")
corrected = {
    variant: [
        (row["layer"], row[f"sparsity_{variant}"], (row[f"sparsity_{variant}"] - f) / (1 - f))
        for row in table
        if row[f"sparsity_{variant}"] != ""
    ]
    for variant in "abc"
}
for variant, rows in corrected.items():
    values = [f"{s:.1%} → {v:.1%}" for _, s, v in (rows[0], max(rows, key=lambda row: row[1]))]
    print(f"{variant.upper()}: layer 1 {values[0]}, its sparsest layer {values[1]}")

# %%
figure = plt.figure(figsize=(4.6, 3.8))
for number, (variant, rows) in enumerate(corrected.items()):
    layer, s, v = zip(*rows)
    name = variant.upper()
    plt.plot(layer, s, "os^"[number] + ":", color=f"C{number}", label=f"{name}, published")
    plt.plot(layer, v, "os^"[number] + "-", color=f"C{number}", label=f"{name}, corrected")
plt.axhline(f, color="C5", linestyle="--")
plt.annotate("counted for equal attention", (0.8, f - 0.045), size=9)
plt.xlabel("layer")
plt.ylabel("share of weights below 0.001")
plt.ylim(0, 0.85)
figure.legend(ncol=3, loc="outside upper center", fontsize=9, columnspacing=1)
plt.show()

# %% [markdown]
# What to see: corrected, layer 1 is about 2 % sparse, and the growth with depth is larger than it
# looked, up to 56 %. The published values begin at the dashed line, which is where attention
# without any sparsity lies. There is one model per variant (n = 1); the spread over seeds was not
# published.
#
# The correction is arithmetic and assumes that masked entries were counted. Two facts speak for
# that: no published value lies below f, and every first layer lies within 0.014 above it. A
# threshold of 0.001 also depends on T: equal attention over more than 1,000 keys is "100 % sparse".
# So `head_stats()` gives `relative_sparsity` as well, whose threshold is a tenth of the equal
# share.

# %% [markdown]
# ## A model of our own
#
# [One look against many](01_hypothesis.md) argued how two layers answer a question from its
# context: in the first, each answer copies the question before it; in the second, an induction head
# finds for each query the answer that carries its question. We train that model and look.

# %%
with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(None):
    m, t = tasks.configs("icqa", n_layers=2, out_dir=folder)
    data = tasks.load_data(t)
    run = md.train(m, t, data)
base = data.measure(run.model)["accuracy"]
print(f"accuracy {base:.3f} on {len(data.val[0]):,} test sequences")

maps = attention.attention_maps(run.model, data.val[0][:200])  # one (B, H, T, T) tensor per layer
stats = attention.attention_stats(maps)
for layer in range(2):
    for head in range(2):
        print(
            f"layer {layer + 1} head {head + 1}: entropy {stats['entropy'][layer, head]:.2f} nats,"
            f" sparsity {stats['sparsity'][layer, head]:.2f}"
        )

# %% [markdown]
# Here are the maps of a single test sequence. Rows are tokens that look, columns are tokens looked
# at.

# %%
figure, axes = plt.subplots(2, 2, figsize=(6, 6), sharex=True, sharey=True)
for layer in range(2):
    for head in range(2):
        panel = axes[layer, head]
        panel.imshow(maps[layer][0, head], cmap="viridis", vmin=0, vmax=1, interpolation="none")
        panel.set_title(f"layer {layer + 1}, head {head + 1}")
        panel.axhline(15.5, color="C5", linewidth=0.8)
        panel.axvline(15.5, color="C5", linewidth=0.8)
for panel in axes[:, 0]:
    panel.set_ylabel("token that looks")
for panel in axes[1]:
    panel.set_xlabel("token looked at")
plt.show()

# %% [markdown]
# What to see: in layer 1, bright cells one place left of the diagonal, on every other row (an
# answer looks at its question); in layer 2, one bright cell in each row of a query. This is one
# sequence (n = 1), with weights from 0 (dark) to 1 (bright). Tokens 0 to 15 are the pairs, 16 to 23
# the queries, with a line between them.
#
# One sequence is an anecdote, so we count over 200 sequences. How much weight do answers give to
# the token before them? How much do queries give to the right answer?

# %%
sequences, targets = (torch.as_tensor(part[:200]).long() for part in data.val)
answers = torch.arange(1, 16, 2)
match = targets[:, 16:, None] == sequences[:, None, :16]  # (B, query, key): its right answer
for layer in range(2):
    for head in range(2):
        w = maps[layer][:, head]  # (B, T, T)
        copies = w[:, answers, answers - 1].mean().item()
        finds = (w[:, 16:, :16] * match).sum(-1).mean().item()
        print(f"layer {layer + 1} head {head + 1}: answer → its question {copies:.2f}, "
              f"query → right answer {finds:.2f}")  # fmt: skip
copy_weight = max(maps[0][:, h][:, answers, answers - 1].mean().item() for h in range(2))
find_weight = max((maps[1][:, h][:, 16:, :16] * match).sum(-1).mean().item() for h in range(2))
early_find = max((maps[0][:, h][:, 16:, :16] * match).sum(-1).mean().item() for h in range(2))

# %% [markdown]
# ## Switch heads off
#
# A map shows where a head looks. It does not show that the answer depends on it. `ablated()`
# removes a head's contribution while the model runs.

# %%
without = {}
for layer in range(2):
    for head in range(2):
        with attention.ablated(run.model, [(layer, head)]):
            without[layer, head] = data.measure(run.model)["accuracy"]
        print(f"without layer {layer + 1} head {head + 1}: accuracy {without[layer, head]:.3f}")
with attention.ablated(run.model, [(0, 0), (0, 1)]):
    no_first_layer = data.measure(run.model)["accuracy"]
print(f"without all of layer 1: {no_first_layer:.3f}; any answer shown: {1 / 8:.3f}")

# %% [markdown]
# Without its first layer the model is back at the shortcut of a single layer, 1 in 8. That fits
# "copy, then match". Here one head of layer 1 does the copying, and in layer 2 the model can do
# without either head, since both find the answer. It is one model with one seed; exercise 1 asks
# what is the same with others.

# %%
assert abs(right["entropy"].item() - math.lgamma(T + 1) / T) < 1e-3
assert right["sparsity"].item() == 0 and round(masked["sparsity"].item(), 3) == 0.498
assert (
    0.01 < corrected["a"][0][2] < 0.03 and min(s for r in corrected.values() for _, s, _ in r) > f
)
assert base > 0.95 and copy_weight > 0.5 and find_weight > 0.5 > 0.3 > early_find
assert no_first_layer < 0.3 and min(without[1, 0], without[1, 1]) > 0.9
assert min(without[0, 0], without[0, 1]) < 0.4

# %% [markdown]
# ## Exercises
#
# 1. Train with seeds 1 and 2 and repeat the count and the ablation. Is there always one head that
#    copies?
# 2. Compute `attention.attention_stats(maps, count_masked=True)` for this model, with T = 24. Which
#    f do you need to get back to the right values?
# 3. Look at an *untrained* model: `md.GPT(run.model.config)`. Which of the two measures can tell it
#    from the trained one?
