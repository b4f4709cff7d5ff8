# %% [markdown]
# # The architecture, and a step of training
#
# **Nearly all of the published one-layer model is a table of words. So "32 % more parameters" and
# "twelve times as many between embedding and head" are true of the same two models.** You will
# learn what each part of the model computes, where its parameters sit, and what one step of
# training does. This lesson is for those who want the code.
#
# In these lessons *the report* and *the article* are two texts about one published experiment,
# which trained a model of one layer and one of twelve: [the published pair](2_logs.md).
#
# ![Tokens become vectors, to which positions are added. A layer of normalisation and attention,
# then of normalisation and a feed-forward part, each added to the residual stream, stands L times
# one above the other, each with weights of its own. A last normalisation and a head whose weights
# are the embedding's give the logits.](../assets/architecture.svg)
#
# The sizes are those of the preset `report`: B sequences of T = 512 tokens, C = 384 numbers per
# token, a vocabulary of V = 151,665 words, L layers. The line on the left, the **residual stream**,
# is a list of T vectors that each part reads and adds to. Nothing overwrites it.

# %%
import dataclasses
import inspect
import textwrap

import matplotlib.pyplot as plt
import torch

import minidepth as md
from minidepth_lab.base import configs
from minidepth_lab.keep import running
from minidepth_lab.measure import results
from minidepth_lab.models import fast, variants
from minidepth_lab.show import figures
from minidepth_lab.studies import depth
from minidepth_site import exercises, widgets

report, recipe = configs.make("report")

# %% tags=["hide"]
shown = "vocab_size block_size n_layers n_heads d_model d_ff dropout".split()
rows = [(name, f"{getattr(report, name):,}") for name in shown]
widgets.table(("setting", "value"), rows)

# %% [markdown]
# ## Attention: the part that moves information
#
# Each token asks with a query (q), and every token up to it offers a key (k) and a value (v). The
# attention weights are a softmax over q · k / √D, where D is how many numbers one head works with.
# The output is the mean of the values, weighted so. This is the only place in the model where a
# token learns anything about another token. Here is the formula in code:

# %% tags=["hide", "python"]
print(inspect.getsource(fast.readable_attention))

# %% [markdown]
# Training uses PyTorch's fused function instead. It gives the same result without ever storing the
# whole table of attention weights. (On a CPU with dropout the fused function is slower, so there
# the code above is used.) Here we check that the two give the same result:

# %%
torch.manual_seed(0)
q, k, v = torch.randn(3, 2, 4, 16, 8).unbind(0)  # each (B, H, T, D)
readable, weights = fast.readable_attention(q, k, v, scale=8**-0.5)
fused = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
print(f"largest difference {(readable - fused).abs().max():.1e}")
third = weights[0, 0, 2, :5].tolist()
print("weights of the third token:", [round(w, 3) for w in third])

# %% [markdown]
# The third token spreads its weight over three tokens, and the later ones get exactly 0. That is
# the causal mask: without it a token would be asked to predict a word that it can already see.

# %% [markdown]
# ## The layer: attention, then a feed-forward part
#
# Each part reads a normalised copy of the stream ("pre-norm") and adds its result to the stream.
# The feed-forward part (MLP) works on each token by itself: 384 → 1,536 → 384 numbers. With
# `d_ff=0` it is left out, as in the [depth tasks](3_one_look_or_two.md).

# %% tags=["hide", "python"]
print(inspect.getsource(md.Layer))

# %% [markdown]
# Depth is the number of layers that are applied one after another. Only another layer, or the same
# layer once more, lets a token use what it found to choose what to look for next.
#
# Does the causal mask hold in a whole model? We change one token of a two-layer model's input, that
# at position 5, and see which outputs change: only those from that position on.

# %%
shape = dict(n_layers=2, n_heads=2, d_model=16, d_ff=32)
tiny = configs.ModelConfig(vocab_size=50, block_size=12, **shape)
model = variants.GPT(tiny).eval()
tokens = torch.arange(12)[None]
changed = tokens.clone()
changed[0, 5] = 40
noticed = (model(tokens) != model(changed)).any(-1)[0]
print("positions whose output changed:", noticed.nonzero().flatten().tolist())

# %% [markdown]
# ## Count the parameters by hand
#
# | part | has | report's numbers |
# |---|---|---|
# | token embedding | V × C | 151,665 × 384 |
# | positions | T × C | 512 × 384 |
# | attention, one layer | q, k, v and output: 4 C² | 4 × 384² |
# | feed-forward, one layer | up and down: 2 × C × d_ff | 2 × 384 × 1,536 |
# | two norms, one layer | weight and bias each: 4 C | 4 × 384 |
# | last norm | 2 C | 2 × 384 |
# | head | the embedding again ("tied") | 0 more |
#
# No linear map has a bias.

# %%
V, T, C, d_ff = 151_665, 512, 384, 1536
embedding, positions, last_norm = V * C, T * C, 2 * C
layer = 4 * C * C + 2 * C * d_ff + 4 * C
counts, rows = {}, []
for L in (1, 12):
    deep = dataclasses.replace(report, n_layers=L)
    counts[L] = counted = variants.parameters(deep)
    by_hand = embedding + positions + L * layer + last_norm
    assert by_hand == counted["total"]
    share = (embedding + positions) / by_hand
    rows.append((L, f"{by_hand:,}", f"{L * layer:,}", f"{100 * share:.0f} %"))
widgets.table(("layers", "parameters", "in layers", "words and positions"), rows)

# %% [markdown] tags=["details"]
# The published table gives 151,936 words and 1,028 positions. What leads to the published totals of
# 60.21 and 79.69 million is 151,665 words, the `len()` of the tokenizer, and 512 positions, the
# length of a training block.

# %% tags=["details"]
for words, positions_ in ((151_936, 1028), (151_665, 512)):
    totals = [words * C + positions_ * C + L * layer + 2 * C for L in (1, 12)]
    both = [f"{n / 1e6:.2f} M" for n in totals]
    print(f"{words:,} words, {positions_:5,} positions:", both)

# %%
figure, axes = plt.subplots(figsize=(4.6, 2.8))
for y, (L, n) in enumerate(counts.items()):
    table = (n["embedding"] + n["position"]) / 1e6
    axes.barh(y, table, color="C5", alpha=0.35)
    axes.barh(y, n["layers"] / 1e6, left=table, color=figures.color_of(L))
    axes.annotate("words and positions", (table / 2, y), ha="center", va="center")
    figures.name_end(
        axes, n["total"] / 1e6, y, f"layers: {n['layers'] / 1e6:.1f} M", figures.color_of(L)
    )
axes.set_yticks([0, 1], ["1 layer", "12 layers"])
axes.set(xlabel="parameters (millions)", xlim=(0, 125))
more = counts[12]["total"] / counts[1]["total"] - 1
times = counts[12]["layers"] / counts[1]["layers"]
axes.set_title(
    f"{100 * more:.0f} % more parameters in total,\nbut {times:.0f} times as many in the layers"
)
plt.show()

# %% [markdown]
# What to see: nearly all of the one-layer model is a table of words. From 1 to 12 layers the total
# grows by 32 %, and the layers grow by a factor of 12. These are exact counts.
#
# Try other sizes; the report's two models are shown below yours.
#
# <div class="widget parameters"><p>This part needs JavaScript. The figure above shows the report's
# two models.</p></div>
# <script type="module" src="../../assets/parameters.js"></script>

# %% [markdown] tags=["details"]
# **What the head costs.** In training, a weight that is used once for each token costs about 6
# operations per token, and the head is such a matrix. Looking up a word in the embedding costs next
# to nothing.

# %% tags=["details"]
cost = {"head": 6 * embedding, "one layer": 6 * layer, "12 layers": 6 * 12 * layer}
for name, operations in cost.items():
    print(f"{name:10} {operations / 1e6:6.1f} million operations per token")
ratio = (cost["head"] + cost["12 layers"]) / (cost["head"] + cost["one layer"])
print(f"12 layers against 1: {ratio:.2f} times the operations", end=" ")
print("(attention over keys left out)")

# %% [markdown] tags=["details"]
# In both models the head does most of the work. So twelve times the depth should not cost twelve
# times the time, and it did not: the published runs took 210 s and 252 s, a factor of 1.20. (Our
# estimate of 1.32 leaves out whatever takes the same time in both models.)
#
# The size of the head is also why training never holds all logits (the scores of all words for all
# tokens) at once. For 16 × 512 tokens they would be 8,192 × 151,665 numbers, 5 GB in single
# precision. `HeadLoss` computes them a few rows at a time, together with their gradient. It agrees
# with PyTorch's own loss on all logits:

# %% tags=["details"]
targets = torch.randint(50, (1, 12))
loss_sum, n_tokens = model(tokens, targets)
logits = model(tokens)[0]
plain = torch.nn.functional.cross_entropy(logits, targets[0], reduction="sum")
print(f"{loss_sum.item():.5f} in chunks, {plain.item():.5f} at once,", end=" ")
print(f"{n_tokens.item():.0f} tokens")

# %% [markdown]
# ## A step of training
#
# Rate, batch, update: so a step begins in `train()`, and `Training.step()` is the rest of it.

# %% tags=["python"]
source = inspect.getsource(md.train)
step = source.split("# 1. the rate")[1].split("# 4. after an infinite")[0]
print(textwrap.dedent(" " * 8 + "# 1. the rate" + step))
print(textwrap.dedent(inspect.getsource(md.Training.step)))

# %% [markdown]
# Three of its lines are worth a second look.
#
# **The batch is a function of the seed and the step's number**, and so is all that is random in the
# step. So a run that was stopped goes on [as if it had
# not](../how-to/half_precision.md#stop-and-go-on).
#
# **The model returns sums and counts, not means.** A step is computed in parts, one after another
# or on several GPUs. If each part gave its mean, a part with fewer targets would count as much as a
# full one. So the division is done once, by the targets of the whole step, here for a step of two
# parts:

# %%
tokens, targets = torch.randint(50, (2, 4, 12))
targets[2:, 3:] = -100  # most of the second part is padding, and does not count
whole_sum, whole_n = model(tokens, targets)
parts = [model(tokens[i : i + 2], targets[i : i + 2]) for i in (0, 2)]
mean_of_means = sum((loss.sum() / n.sum()).item() for loss, n in parts) / 2
from_sums = sum(loss.sum().item() for loss, _ in parts) / whole_n.sum().item()
in_one = (whole_sum.sum() / whole_n.sum()).item()
widgets.table(("loss of the step", "nats"), [
    ("computed in one", f"{in_one:.4f}"),
    ("from the parts' sums", f"{from_sums:.4f}"),
    ("mean of the parts' means", f"{mean_of_means:.4f}"),
])  # fmt: skip

# %% [markdown]
# **The rate comes first.** The report says: 50 steps of warm-up, then a cosine to a tenth of 3 ×
# 10⁻⁴. That leaves one question open: is the first step number 0 or number 1? Both logs print the
# rate at 21 steps, and one formula gives all 42 numbers:

# %% tags=["hide", "python"]
print(inspect.getsource(md.lr_at))

# %%
published = results.published("report_log_1_layers") + results.published("report_log_12_layers")
same = [f"{md.lr_at(row['step'] - 1, recipe):.2e}" == f"{row['lr']:.2e}" for row in published]
rates = [md.lr_at(step, recipe) * 1e4 for step in range(recipe.steps)]
figure, axes = plt.subplots(figsize=(4.6, 3.0))
axes.plot(range(1, recipe.steps + 1), rates, color="C0")
axes.plot(
    [row["step"] for row in published], [row["lr"] * 1e4 for row in published], "o", color="C1"
)
axes.annotate("line: lr_at()", (330, 2.6), color="C0")
axes.annotate("dots: both logs", (330, 2.3), color="C1")
axes.set(xlabel="training step", ylabel="learning rate (10⁻⁴)")
axes.set_title(f"{sum(same)} of {len(same)} published rates lie on one formula")
plt.show()

# %% [markdown]
# What to see: every published value lies on the curve, in all printed digits. The rate of the first
# step is 0.

# %% [markdown]
# ## A hundred and twenty steps
#
# Here is a small run of the laptop preset: two layers, and generated problems whose answers can be
# checked. One is "From 6 add 8 modulo 10 ?", to which the model is to write `So 6 + 8 = 4` and then
# 4; others ask for a letter of a ring or of a line.

# %%
small = dict(n_layers=2, steps=120, eval_every=40, max_rows=2000, eval_problems=60)
small |= dict(ring_questions=1, batch_size=32, grad_accum=1)
run = running.train(*configs.make("laptop", **small), quiet=True)
columns = ("step", "train_loss", "val_loss", "accuracy")
widgets.table(columns, [
    (record["step"], *(f"{record[key]:.2f}" for key in columns[1:])) for record in run.log
])  # fmt: skip

# %%
last = run.log[-1]
print(f"guessing: {last['guess']:.2f}; train loss without dropout:", end=" ")
print(f"{last['train_loss_eval']:.2f}")

# %% [markdown]
# `train_loss` is that of *one batch*, in [nats](../reference/glossary.md#nat) per token, with
# dropout if the model has any; `val_loss` is that of fixed blocks that were held out; `accuracy` is
# the share of right answers to held-out problems. [Run folders](../reference/run_folder.md) has the
# other columns.
#
# The loss fell to less than an eighth. And yet the model hardly does better than guessing: it has
# learned the *form* of an answer. That is why the lessons check answers, from [the
# first](1_hypothesis.md) on.

# %%
one, twelve = counts[1], counts[12]
assert (one["total"], twelve["total"]) == (60_207_744, 79_688_832)
assert round((one["embedding"] + one["position"]) / one["total"], 2) == 0.97
assert twelve["layers"] == 12 * one["layers"] and round(twelve["total"] / one["total"], 2) == 1.32
assert noticed.tolist() == [False] * 5 + [True] * 7
assert (readable - fused).abs().max() < 1e-5 and abs(loss_sum.item() - plain.item()) < 1e-3
assert abs(from_sums - in_one) < 1e-5 < abs(mean_of_means - in_one)
assert all(same) and len(same) == 42
assert (
    last["val_loss"] < run.log[0]["val_loss"] / 8 and abs(last["accuracy"] - last["guess"]) < 0.12
)

# %% [markdown]
# ## Exercises
#
# 1. (Easy, 5 minutes.) Count by hand the parameters of one layer with C = 64 and a feed-forward
#    part of 256 numbers.

# %% tags=["exercise"]
C, d_ff = 64, 256
n_layer = ...  # a number, or a sum of products of C and d_ff

# %% [markdown] tags=["hint"]
# Three rows of the table above belong to a layer: attention, feed-forward, two norms.

# %% tags=["answer"]
n_layer = 4 * C * C + 2 * C * d_ff + 4 * C


# %% tags=["check"]
@exercises.check
def parameters_of_a_layer():
    shape = dict(n_layers=1, n_heads=4, d_model=64, d_ff=256, vocab_size=100, block_size=8)
    counted = variants.parameters(configs.ModelConfig(**shape))["layers"]
    missing = {4 * 64: "the two norms", 2 * 64: "one of the two norms, or their biases"}
    missing |= {64 * 64: "one of attention's four maps", 64 * 256: "the way up or down"}
    lacks = missing.get(counted - n_layer, "")
    assert not lacks, f"{n_layer:,} lacks {lacks}"
    biases = {4 * 64: "attention", 64 + 256: "feed-forward", 5 * 64 + 256: "both parts"}
    has = biases.get(n_layer - counted, "")
    assert not has, f"{n_layer:,} has biases in {has}, and no linear map here has one"
    assert n_layer - counted != 2 * 64, f"{n_layer:,} has three norms; the last is in no layer"
    more = "more" if n_layer > counted else "fewer"
    assert n_layer == counted, f"{n_layer:,} are {more} than there are"


# %% [markdown]
# 2. (Medium, 10 minutes.) To give one layer as many parameters as twelve, the article suggests
#    d_model ≈ 600. Count the parameters. Then ask `depth.width_matched()` for the width that fits.
#    Where is the catch?

# %% [markdown] tags=["hint"]
# The table of words gets wider, too. `dataclasses.replace(report, …)` changes `n_layers`, `d_model`
# and `d_ff` at once.

# %% [markdown] tags=["answer"]
# A width of 600 is far too much. 504 matches the total. But then most of the added parameters go
# into the table of words again: the one wide layer has fewer parameters in its layer than the
# twelve layers have in theirs.

# %% tags=["answer"]
shallow = dataclasses.replace(report, n_layers=1)
article = variants.parameters(dataclasses.replace(shallow, d_model=600, d_ff=2400))
matched = depth.width_matched(shallow, twelve["total"])
wide = variants.parameters(matched)
for name, n in (("600", article), (str(matched.d_model), wide), ("12 layers of 384", twelve)):
    print(f"{name:16} {n['total']:,} parameters, {n['layers']:,} of them in layers")
assert matched.d_model == 504 and wide["layers"] < twelve["layers"] / 6

# %% [markdown]
# 3. (Easy, 5 minutes.) Set `n_loops=12` with one layer. How many parameters does the model have,
#    and how many operations per token?

# %% [markdown] tags=["answer"]
# It has the parameters of one layer and the operations of twelve: a weight that is used twelve
# times costs twelve times as much. By the estimate above, with the head included:

# %% tags=["answer"]
looped = variants.parameters(dataclasses.replace(report, n_layers=1, n_loops=12))
print(f"{looped['total']:,} parameters,", end=" ")
print(f"{(cost['head'] + cost['12 layers']) / 1e6:.0f} million operations per token")
assert looped["total"] == one["total"]
