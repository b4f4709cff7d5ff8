# %% [markdown]
# # Layer by layer: how many, and what each does
#
# **How many layers does a task take? Five small tasks (k-hop up to four hops) were learned with as
# many attention layers as theory says, and by no run with fewer. For other tasks the layers were
# mostly enough on paper, and training did not find how. And of twelve layers in one run, half can
# be left out: nothing but sums suffers.** You will learn how to look for such thresholds, and how
# to see what a layer or a head does.
#
# ## Thresholds
#
# Four tasks are those of [Chen & Zou 2024](https://arxiv.org/abs/2404.01601), built anew; the
# fifth, k-hop, is that of [Sanford, Hsu & Telgarsky 2024](https://arxiv.org/abs/2402.09268).

# %% tags=["hide"]
import json
import math
from inspect import getsource

import matplotlib.pyplot as plt
import torch

import minidepth as md
from minidepth_lab import tasks
from minidepth_lab.keep import registry, running
from minidepth_lab.measure import inspect, judge, results
from minidepth_lab.show import figures
from minidepth_lab.studies import layers as study
from minidepth_lab.studies import map as depth_map
from minidepth_site import exercises, widgets


def accuracies(task):
    """{number of layers: accuracy of each seed} of a stored grid, `python train.py --data TASK`."""
    runs = [run for run in results.runs("tasks", data=task, n_loops=1) if run["grid"]]
    return {n: [run["accuracy"] for run in its] for n, its in results.by(runs, "n_layers").items()}


TASKS = {  # what is asked, the layers that are enough by the papers
    "memorize": ("the label of one of 512 fixed sequences", 1),
    "icqa": ("the answer that stood after this question", 2),
    "template": ("which places hold equal symbols", 2),
    "icl_template": ("the label that a string of this pattern had", 3),
}
rows = []
for name, (asked, enough) in TASKS.items():
    ends = {
        n: sorted({f"{min(its):.2f}", f"{max(its):.2f}"}) for n, its in accuracies(name).items()
    }
    shares = {n: " to ".join(both) for n, both in ends.items()}
    shortcut = f"{tasks.TASKS[name].chance()[1]:.2f}"
    rows.append([name, asked, enough, shortcut, *(shares.get(n, "–") for n in (1, 2, 3))])
head = ["task", "what is asked", "layers, by the paper", "a shortcut gets"]
widgets.table([*head, "1 layer", "2 layers", "3 layers"], rows)

# %% [markdown]
# `memorize` is tested on its own sequences, the others on fresh ones, and the templates on symbols
# that training never had. (`icl_template` is learned only with hints in training.)
#
# The fifth, k-hop: in `baebcabebdea` the last symbol is a. Go back to the a before it, and read
# what followed there: b. That is one hop. From that b go back to the b before it: c. In the paper's
# construction ⌊log₂ k⌋ + 2 layers are enough for k hops.

# %%
khop = tasks.TASKS["khop"]
errors = {}  # {(hops, layers): the error of each run}
five_seeds = results.runs("khop", seed=range(60, 65))
for at, runs in results.by(five_seeds, "hops", "n_layers").items():
    errors[at] = [1 - run["accuracy"] for run in runs]
hops, layers = (sorted(set(numbers)) for numbers in zip(*errors))
floor = {k: 1 - khop.chance(length=48, hops=(k,))[1] for k in hops}
mean = {at: sum(values) / len(values) for at, values in errors.items()}

_, axes = plt.subplots()
for number, (k, color) in enumerate(zip(hops, ("C6", "C7", "C4"))):
    for n in layers:
        place = [n + 0.05 * (number - 1)] * len(errors[k, n])
        axes.plot(place, errors[k, n], "o", color=color, alpha=0.6)
    axes.plot(layers, [mean[k, n] for n in layers], color=color)
    axes.axhline(floor[k], color=color, linestyle=":")
    figures.name_end(axes, layers[0] - 0.62, mean[k, 2], f"k = {k}", color)
axes.set_title("twice the hops, one more layer")
axes.set(xlabel="layers", xticks=layers, xlim=(1.3, 4.2), ylabel="error (share of targets)")
plt.show()

# %% [markdown]
# What to see: one hop is learned with two layers, two hops with three, and four hops with four, in
# 14 of 15 runs. The dotted lines are the best one can do from the last two tokens. Each dot is one
# run; lines join the means.

# %% [markdown]
# All of this was predicted. A looped layer counts once for each loop: one layer looped three times
# learns two hops in five of five runs. But eight hops, for which five layers should be enough, were
# learned in none of five.
#
# ## Seven formulas
#
# For seven other tasks we made formulas, from theory where there was one: the least number of
# layers, or of loops of one layer, for difficulty n. Then we trained models of one to six layers
# on all difficulties at once. The last two columns count the cells, one for each depth and
# difficulty, that came out as the formula says.

# %% tags=["hide"]
measured = depth_map.cells(depth_map.stored())
counts = depth_map.called_right(measured)
ASKED = {  # task: what is asked, formula
    "Z60": ("where a circle of sixty places stands after n turns by one place or by seven", "1"),
    "brackets": ("which bracket is to be closed next, if it opened n places before", "2"),
    "S5": ("the order of five things after n moves, a swap of two or a turn of all", "log₂ n"),
    "parity": ("whether the ones among n bits are odd in number", "1"),
    "modulo ten": ("the last digit of the sum of n digits", "1"),
    "pointers": ("where n jumps lead, when each place points to any other", "log₂ (n + 1)"),
    "reachability": ("whether a path leads from here to there, n steps on", "1 + log₂ (n + 1)"),
}
rows = []
for name, (asked, formula) in ASKED.items():
    cells = ("{} of {}".format(*counts[name, kind]) for kind in ("layers", "loops"))
    rows.append([name, asked, formula, *cells])
widgets.table(["task", "what is asked", "formula", "layers", "loops"], rows)

# %% [markdown]
# Logarithms, rounded up, stand where the order of the parts counts: a layer can put two
# neighbouring stretches together. Where it does not, one layer can take a mean. Each formula has
# [its reason](../reference/laboratory/tasks.md#minidepth_lab.tasks).

# %%
_, axes = plt.subplots(2, 3, figsize=(7.8, 5.2), squeeze=False)
depth_map.draw_panels(axes, ("Z60", "S5", "parity"), measured)
plt.show()

# %% [markdown]
# What to see: Z60 takes one layer at every difficulty, as the formula says. One layer puts eight
# moves of S5 together, where the formula asks for three layers. Parity needs one layer on paper;
# only short sequences were learned, and somewhat longer ones with more layers. The line is the
# formula: from it on, models should be right (0.9 or more). Each cell is the median of five runs.

# %% [markdown]
# Brackets came out as written as well; sums modulo ten less than parity. One symbol among
# thirty-two hardly moves a mean ([Hahn 2020](https://arxiv.org/abs/1906.06755)). Exercise 1 is
# about why Z60 was learned all the same.
#
# Pointers and reachability were hardly learned at all. Trained six times as long, pointers do come
# as the formula says with one layer, which learns one jump, and with two, which learn three.
# (Three and four layers do not yet.) Reachability needs a hint in training: then three layers learn
# one step, and two do not.
#
# **Over all seven tasks, three fifths of the cells came out as written. That is less than it
# sounds: "nothing is ever learned" would have been right in more than half.** The formulas say what
# layers are enough *for*. Training still has to find the way.
#
# ## Three jumps with two layers
#
# Two layers make two lookups one after another. How do they make three jumps? **Places look as
# well, while the question does.** In the first layer a question finds the place that it begins
# with: one jump. Meanwhile that place looks back at the one that it points to, and so knows where
# two jumps lead. In the second layer the question looks at it, and has all three.
#
# And if the place points ahead, where it cannot look? Then the one that it points to has looked
# back at who points to it, and the question finds *that* one. To see whether these looks are
# needed, we forbade the first layer one kind of them at a time, in five models:

# %% tags=["hide"]
looked = results.runs("map-longer", data="pointers", n_layers=2, n_loops=1)
looked = [run["measured"]["inside"] for run in looked if run["measured"] and run["seed"] > 202]
rows, jumps_right = [], {}  # {(what the first layer does not look at, kind): shares by run}
forbidden = {
    "nothing cut": "nothing", "where it points": "a place, where it points",
    "what points to it": "a place, what points to it", "jump 1": "a question, its beginning",
}  # fmt: skip
for name, said in forbidden.items():
    cells = []
    for kind in ("1 jump", "2 jumps", "back", "ahead"):
        jumps_right[name, kind] = [inside["right"][name][kind] for inside in looked]
        least, most = min(jumps_right[name, kind]), max(jumps_right[name, kind])
        cells.append(f"{least:.2f}–{most:.2f}")
    rows.append([said, *cells])
head = ["may not look at", "1 jump", "2 jumps", "3, back", "3, ahead"]
widgets.table(head, rows)

# %% [markdown]
# **Each kind of look by places carries one kind of question of three jumps, and no other.** (Seen
# in one run, predicted of these five. Guessing finds one in sixteen.)
#
# ## How to count attention
#
# So much for how many layers. What does one do? A *query*, the token that looks, spreads a weight
# of 1 over its *keys*, the tokens up to it. Two numbers say how widely:
#
# - **Entropy**, H = −Σ p ln p, in nats: 0 if all weight is on one key, ln n if it is equal on n. So
#   e^H can be read as a number of keys.
# - **Sparsity**: the share of keys whose weight is below 0.001.
#
# Here is the least sparse attention there can be, equal to all keys:

# %%
T = 256
uniform = torch.ones(T, T).tril()
uniform = (uniform / uniform.sum(1, keepdim=True))[None, None]  # (B, H, T, T)
right = inspect.head_stats(uniform)
masked = inspect.head_stats(uniform, count_masked=True)
print(f"entropy {right['entropy'].item():.3f} nats")
print(f"sparsity {right['sparsity'].item():.3f} over keys in sight")
print(f"sparsity {masked['sparsity'].item():.3f} over the whole T × T square")

# %% [markdown]
# The last number is a mistake: nearly half of the square is the future, which the mask sets to 0.
# It seems to be a published mistake, too. **The first layers of [LLmini](scale.md) are about 2 %
# sparse, not 51 %.**

# %% [markdown] tags=["details"]
# LLmini, a small study of three models, printed the sparsity of each layer at T = 256. Its lowest
# value is just above the share of masked entries, f = (T − 1) / 2T. The share s with them and the
# share v without them belong together by v = (s − f) / (1 − f). The correction assumes that masked
# entries were counted. No published value lies below f, and every first layer lies within 0.014
# above it.

# %% tags=["hide", "details"]
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
# ## Heads switched off
#
# **A map of attention suggests what a head does; switching the head off tells.** We train the two
# layers of [One look or two](3_one_look_or_two.md). How much weight do answers give to the token
# before them (*copies*), and queries to the right answer (*finds*)? And how many answers are right
# when `ablated()` takes away what a head adds?

# %%
short = dict(steps=300, eval_every=300, device="cpu")  # so small that a GPU would not help
m, t = registry.configs("tasks", data="icqa", n_layers=2, eval_blocks=64, **short)
run = running.train(m, t, registry.data_of(t), quiet=True)
data = run.data
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

# %% [markdown]
# Without its first layer the model only names any answer shown, which is right 1 time in 8. But in
# layer 2 **either head can be switched off alone, and nothing shows, since both do the same work**.
# This is one model with one seed. (To switch heads off by hand, [train one in the page](play.md).)
#
# ## One look, many heads
#
# And with one look alone? We trained [one layer without
# loops](4_walking.md#what-this-shows-and-what-it-does-not) to find the next letter on a ring of
# eight pairs. Here is where the four heads of three such layers look:

# %%
longer_one_look = results.runs("ring-wide", steps=6000, d_model=128)
_, axes = plt.subplots(1, 3, figsize=(7.6, 2.9), sharey=True)
for each, seed in zip(axes, (210, 211, 213)):
    (one_run,) = (run for run in longer_one_look if run["seed"] == seed)
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
# A pair that a head watches alone is always right; of two that share a head, half the time. So four
# heads get half of eight pairs right, or little more.
#
# ## The logit lens
#
# The *residual stream* is what a token carries from layer to layer. The lens applies the last norm
# and the output layer to it in the middle, and so says after which layer something is *ready to be
# said*. (A word that it does not find may still be there, in directions that the output layer does
# not read.)

# %% tags=["hide", "python"]
print(getsource(inspect.lens))

# %% [markdown]
# `inspect.skipped()` hands the stream past one layer. What do four layers do on the task above, for
# which two are enough?


# %%
m, t = registry.configs("tasks", data="icqa", n_layers=4, **short)
model = running.train(m, t, registry.data_of(t), quiet=True).model
tokens, targets = (torch.as_tensor(part[:200]).long() for part in data.val)


def share(right):
    """The share of the answers that are right, of (B, T) bool."""
    return right[targets != -100].float().mean().item()


lens = [share(known) for known in inspect.known(model, tokens, targets)]
skipped, rows = [], []
for layer in range(4):
    with inspect.skipped(model, layer):
        *_, last = inspect.known(model, tokens, targets)
    skipped.append(share(last))
    rows.append([layer + 1, f"{lens[layer + 1]:.2f}", f"{skipped[layer]:.2f}"])
widgets.table(["layer", "right after it", "right without it"], rows)

# %% [markdown]
# In this run the answers are ready after the second layer, and the third or the fourth can be left
# out.
#
# ## Twelve layers on the embedded problems
#
# The [report](2_logs.md) guesses that layers divide the work: early layers detect patterns, middle
# layers connect information, late layers reason and conclude. It did not look. We did, in **one
# run** of twelve layers of attention alone ([how](../reference/results.md#layers)). The model reads
# 200 held-out problems with their solutions, and we ask at each place whether it knows the next
# word:

# %% tags=["hide"]
path = results.RESULTS / "layers" / "laptop-12-layers-seed-0.json"
found = json.loads(path.read_text(encoding="utf-8"))
rows = [[kind, what, f"{found['words'][kind]:,}"] for kind, what in study.KINDS.items()]
widgets.table(["kind of word", "", "words"], rows)

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
# the whole model still knows without one layer, both in percent; a full cell is 100 %. *Ready*
# means that from there on the lens has at least 95 %.

# %% [markdown]
# A layer that can be left out alone may be one of several that do the same work. But **without
# layers 3 to 8, half of the model, lookups, orderings and answers are as right as before**, and 40
# % of the sums are lost. Lookups are done in the first two layers. The model does not use the ten
# others to go several hops at once: it may [write](5_writing.md) each letter down.
#
# | the report's guess | this model, one run |
# |---|---|
# | early layers detect patterns | lookups, most orderings are ready after two; sums need both |
# | middle layers connect information | any one can be spared; sums need some of them |
# | late layers reason and conclude | only sums become readable in layers 9 to 12 |
#
# A division of this kind is there for sums at most. And in [the same time](7_equal_time.md) two
# layers learn all three kinds. None of this says anything about a language model.

# %%
learned = {cell: share >= depth_map.RIGHT for cell, share in measured.items()}
enough_layers = [cell for cell in learned if cell[3] >= depth_map.formula(cell[0], cell[2])]
n_found = sum(learned[cell] for cell in enough_layers)
as_written = sum(each[0] for each in counts.values())
nothing = sum(not each for each in learned.values())
assert len(learned) == 350 and 0.57 < as_written / len(learned) < 0.63
assert 0.51 < nothing / len(learned) < 0.57 and 0.5 < n_found / len(enough_layers) < 0.58
assert sum(counts["Z60", "layers"]) == sum(counts["Z60", "loops"]) == 50
assert min(counts["brackets", kind][0] for kind in ("layers", "loops")) >= 24
assert measured["brackets", "layers", 2, 1] > 0.9 > measured["brackets", "layers", 4, 1]
assert measured["S5", "layers", 8, 1] > 0.9 > 0.8 > measured["S5", "layers", 16, 6]
assert max(measured["S5", kind, 32, 6] for kind in ("layers", "loops")) < 0.1
assert max(share for cell, share in measured.items() if cell[0] == "reachability") < 0.53
longer = depth_map.cells(depth_map.stored("map-longer", steps=6000))
assert max(share for cell, share in longer.items() if cell[0] == "reachability") < 0.53
jumps = {depth: {n: longer["pointers", "layers", n, depth] for n in (1, 2, 3, 5)}
         for depth in (1, 2, 3, 4)}  # fmt: skip
assert jumps[1][1] > 0.95 and max(jumps[1][n] for n in (2, 3, 5)) < 0.2
assert min(jumps[2][n] for n in (1, 2, 3)) > 0.95 and jumps[2][5] < 0.2
assert 0.5 < jumps[3][5] < jumps[4][5] < 0.9
for depth, jumps_learned in ((1, 1), (2, 3)):
    runs = results.runs("map-longer", data="pointers", n_layers=depth, n_loops=1)
    assert len(runs) == (8 if depth == 2 else 5)
    for run in runs:
        shares = {int(n): part["accuracy"] for n, part in run["accuracy_by"]["n"].items()}
        assert all((share > 0.9) == (n <= jumps_learned) for n, share in shares.items())
by_hints = {}  # {(hints, layers): shares right of five runs}
of_hints = results.runs("map-longer", data="reachability", steps=4000)
for at, runs in results.by(of_hints, "hints", "n_layers").items():
    by_hints[at] = [run["accuracy"] for run in runs]
assert min(by_hints[1, 3]) > 0.95 and all(len(shares) == 5 for shares in by_hints.values())
assert max(by_hints[0, 3] + by_hints[1, 2]) < 0.52
assert len(looked) == 5
for kept, cut in (("ahead", "where it points"), ("back", "what points to it")):
    pairs = zip(jumps_right[cut, kept], jumps_right["nothing cut", kept])
    assert all(without > whole - 0.02 for without, whole in pairs)
assert max(jumps_right["where it points", "back"]) < 0.05
assert max(jumps_right["what points to it", "ahead"]) < 0.34
assert [share > 0.2 for share in jumps_right["what points to it", "ahead"]].count(True) == 2
for cut in ("where it points", "what points to it"):
    assert min(jumps_right[cut, "1 jump"] + jumps_right[cut, "2 jumps"]) > 0.99
assert judge.verdict("map-longer/L11") == judge.HELD
assert min(accuracies("memorize")[1]) >= 0.99
assert min(accuracies("icqa")[2]) >= 0.99 and max(accuracies("icqa")[1]) < 1 / 8 + 0.05
assert min(accuracies("template")[2]) >= 0.95 > max(accuracies("template")[1])
assert max(accuracies("icl_template")[2]) < 0.5 < 0.95 < min(accuracies("icl_template")[3])
(no_hints,) = results.runs("tasks", data="icl_template", hints=0)
assert no_hints["accuracy"] < 1 / 3 + 0.05
for k, depth in ((1, 2), (2, 3), (4, 4)):
    assert all(min(errors[k, n]) > 0.15 for n in layers if n < depth)
enough = [error for at in ((1, 2), (2, 3), (4, 4)) for error in errors[at]]
assert (sum(error <= 0.05 for error in enough), len(enough)) == (14, 15)
by_applications = {1: 2, 2: 3, 4: 4, 8: 5}  # each loop of a layer is one application
for run in results.runs("khop"):
    asked = run["sizes_by_name"]["hops"]
    assert run["accuracy"] < 0.95 or run["depth"] >= by_applications[asked]
looped = results.runs("khop", n_layers=1, n_loops=3, hops=2)
assert len(looped) == 5 and min(run["accuracy"] for run in looped) >= 0.95
eight = judge.named_runs("khop")["5 layers, 8 hops"]
assert len(eight) == 5 and max(run["accuracy"] for run in eight) < 0.5
assert [judge.verdict(f"khop/K{n}") for n in (6, 7, 8)] == [judge.HELD] * 3

assert abs(right["entropy"].item() - math.lgamma(T + 1) / T) < 1e-3
assert right["sparsity"].item() == 0 and round(masked["sparsity"].item(), 3) == 0.498
firsts = [its[0] for its in corrected.values()]
assert all(0.005 < v < 0.03 and f < s < f + 0.014 for _, s, v in firsts)
assert min(s for its in corrected.values() for _, s, _ in its) > f
copier, finder = max(copies, key=copies.get), max(finds, key=finds.get)
assert base > 0.95 and copies[copier] > 0.5 and finds[finder] > 0.5
assert max(finds[0, 0], finds[0, 1]) < 0.3 and (copier[0], finder[0]) == (0, 1)
assert off[copier] < 0.3 and min(finds[1, 0], finds[1, 1]) > 0.8
assert no_first_layer < 1 / 8 + 0.02 and min(off[1, 0], off[1, 1]) > 0.9
assert lens[1] < 0.2 and min(lens[2:]) > 0.95
assert max(skipped[:2]) < 0.2 and min(skipped[2:]) > 0.95
assert {ready[kind] for kind in ("copy", "look-up", "order", "answer")} == {2}
assert ready["sum"] == 12 and found["known"]["sum"][8] < 0.3 and harmless == [3, 4, 5, 6, 7, 8, 9]
spans = found["spans"]
for kind in ("copy", "look-up", "order", "answer"):
    assert min(spans[span][kind] for span in ("5 to 8", "9 to 12", "3 to 8")) > 0.98
assert round(1 - spans["3 to 8"]["sum"], 2) == 0.40
best = {link: [max(heads) for heads in found["looks"][link]] for link in ("copy", "match")}
for link, layer in (("copy", 1), ("match", 2)):
    assert best[link].index(max(best[link])) + 1 == layer and max(best[link]) > 0.7
for one_run in longer_one_look:  # one head for k pairs: 1 / k of their questions
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

# %% tags=["hide", "wrong"]
widgets.wrong("khop", "map", "map-longer")

# %% [markdown]
# ## Exercises
#
# 1. (Hard, 10 minutes.) In Z60, after i turns of which k were by seven, the circle stands at i + 6
#    k, modulo sixty. So one layer needs k, which is i times a mean, and then the answer that
#    belongs to it. How often do the answers come back while k goes from 0 to 32? And in parity? And
#    in sums modulo ten?

# %% [markdown] tags=["hint"]
# When is 6 k the same, modulo sixty, as before? What is the largest sum of 32 digits?

# %% [markdown] tags=["answer"]
# In Z60 they come back after every ten, so three times. In parity after every two: sixteen times. A
# sum of 32 digits is at most 288, and its last digit comes back after every ten: nearly thirty
# times. The feed-forward part has to make so many waves out of one number. At the difficulties that
# were learned there are few: eight for parity of sixteen, three or four for four digits. This fits
# what we saw; it is a guess, made afterwards.

# %% [markdown]
# 2. (Medium, 20 minutes.) Write the task k-hop: a function that makes k hops from the last symbol
#    of a string. Where a symbol has not been there before, a hop leads nowhere: give `None`.


# %% tags=["exercise"]
def khop_answer(string, k):
    """The symbol that k hops from the last one of the string lead to, or None."""
    ...


# %% [markdown] tags=["hint"]
# A hop leads to the symbol *after* the last earlier place of the same symbol; the next hop begins
# there. `string.rfind(symbol, 0, place)` finds that place, or gives -1.


# %% [markdown] tags=["answer"]
# Done in this way, k hops take k lookups one after another. The paper's construction doubles what
# it has, so that eight hops take five layers and sixteen take six.


# %% tags=["answer"]
def khop_answer(string, k):  # noqa: F811
    """The symbol that k hops from the last one of the string lead to, or None."""
    place = len(string) - 1
    for _ in range(k):
        before = string.rfind(string[place], 0, place)
        if before < 0:
            return None
        place = before + 1
    return string[place]


# %% tags=["check"]
@exercises.check
def k_hops():
    example = "baebcabebdea"
    got = khop_answer(example, 1)
    assert got is not None, f"one hop in {example} gives nothing: return the symbol"
    said = f"one hop in {example} gives {got}"
    assert got != "a", f"{said}: read the symbol after the a before, not that a"
    assert got == "b", (
        f"{said}: go back to the nearest a before the last one, and read what follows"
    )
    got = khop_answer(example, 2)
    assert got == "c", f"two hops in {example} give {got}, not c: begin where the first one led"
    got = khop_answer(example, 3)
    assert got is None, f"three hops in {example} give {got}, but there is no c before this c"
    tokens, targets = khop.draw(20, md.generator("check"), length=12, hops=(3,))  # the task itself
    for row, target in zip(tokens[:, 1:].tolist(), targets[:, -1].tolist()):
        string, expected = "".join("abcd"[i] for i in row), [*"abcd", None][target]
        got = khop_answer(string, 3)
        assert got == expected, f"three hops in {string} give {got}, not {expected}"


# %% [markdown]
# 3. (Easy, 5 minutes.) Somebody measures a head of a model that reads T = 24 tokens, counts the
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
# 4. (Medium, 5 minutes.) In the models of four layers, the lens finds nothing after layer 1, and
#    without layer 1 everything is lost. How does that fit together?

# %% [markdown] tags=["hint"]
# At which places does layer 1 do its work, and at which does the lens look?

# %% [markdown] tags=["answer"]
# In the known solution layer 1 works at the places of the answers: it writes into each which
# question stood before it. The lens looks at the places of the questions asked, and what layer 1
# did has not come there yet. A lens tells what is ready at the place where it looks, not what has
# been done.

# %% [markdown]
# 5. (Hard, 20 minutes.) The lens reads the stream with a head that was trained for the last layer.
#    Take the model of four layers above and fit a head of its own to each depth, by least squares,
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
print("the lens:             ", *(f"{x:.2f}" for x in lens))
assert max(probe[:2]) < 0.2 and min(probe[2:]) > 0.95
