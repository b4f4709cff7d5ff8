# %% [markdown]
# # Layer by layer
#
# **You will learn** to read what a model knows after each of its layers, to measure what is lost
# without one, and what became of a claim about early, middle and late layers.<br>
# **Time** about a minute on one CPU core, nearly all of it training.<br>
# **Needs** [Looking inside](08_looking_inside.md).
#
# The report guesses at a division of labour: early layers detect patterns, middle layers connect
# information, late layers reason and conclude. It did not look. We look at two models of our own:
# twelve layers trained as a first run was then (900 steps, `beta1` 0.9), and four layers that are
# trained on this page.
#
# ## Two tools
#
# **The logit lens.** The residual stream has the same shape after every layer, so the last norm and
# the head can be applied to it anywhere. `layers.known()` does that and asks whether the likeliest
# word is the right one. A word that the lens does not find may still be there, in directions that
# the head does not read. So the lens says by when something is *ready to be said*.
#
# **Leaving a layer out.** `layers.skipped()` hands the stream past one layer. What gets worse
# needed that layer, or needed the stream to look as that layer leaves it.

# %%
import contextlib
import inspect
import json
import tempfile

import matplotlib.pyplot as plt
import torch

import minidepth as md
from studies import layers, results, tasks

# %% tags=["hide", "python"]
print(inspect.getsource(layers.known))

# %% [markdown]
# ## Four layers on a task that needs two
#
# [In-context questions](01_hypothesis.md) need two layers: copy, then match. What do four layers do
# with the task? Here are three seeds.


# %%
def trained(seed):
    """Four layers after 300 steps, and 200 test sequences with their targets."""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(None):
        settings = dict(n_layers=4, steps=300, eval_every=300)
        m, t = tasks.configs("icqa", seed=seed, out_dir=folder, **settings)
        data = tasks.load_data(t)
        model = md.train(m, t, data).model
    tokens, targets = (torch.as_tensor(part[:200]).long() for part in data.val)
    return model, tokens, targets


def share(right, targets):
    """The share of the answers that are right, of (B, T) bool."""
    return right[targets != -100].float().mean().item()


lens, without = [], []
for seed in (0, 1, 2):
    model, tokens, targets = trained(seed)
    lens.append([share(right, targets) for right in layers.known(model, tokens, targets)])
    without.append([])
    for layer in range(4):
        with layers.skipped(model, layer):
            *_, last = layers.known(model, tokens, targets)
        without[seed].append(share(last, targets))
    print(f"seed {seed}, right after 0 to 4 layers:", *(f"{x:.2f}" for x in lens[seed]))
    print("        without layer 1, 2, 3, 4:     ", *(f"{x:.2f}" for x in without[seed]))

# %% [markdown]
# In all three seeds the answers are ready after the second layer, and the third and fourth can each
# be left out: the first two do all of the work. Nothing asked them to be quick. Guessing among all
# answers finds 1 in 16, and among those shown 1 in 8.
#
# ## Twelve layers on the embedded problems
#
# Next, the model that `python train.py --n_layers 12 --seed 0` trained with the settings that the
# main job had when we did this: attention alone, width 64, four heads per layer, 900 steps. It is
# **one run (n = 1)**. What follows was measured after the training, by `python -m studies.layers`,
# on 200 held-out problems; the [file](../results/README.md#layers) has its command and hardware.
# The model reads the right words up to each place, and we ask whether it knows the next one. The
# words of its answers are of six kinds:

# %%
path = results.RESULTS / "layers" / "laptop-12-layers-seed-0.json"
found = json.loads(path.read_text(encoding="utf-8"))
print(f"answers by itself {found['accuracy']:.3f} of {found['problems']} problems")
for kind, what in layers.KINDS.items():
    print(f"{kind:8} {found['words'][kind]:5,} words: {what}")

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
    panel.imshow(list(found[part].values()), vmin=0, vmax=1, cmap="viridis", aspect="auto")
    panel.set_yticks(range(6), found[part])
    panel.set_xticks(range(len(labels)), labels)
    for y, shares in enumerate(found[part].values()):
        for x, value in enumerate(shares):
            text = f"{100 * value:.0f}"
            panel.text(x, y, text, ha="center", va="center", size=9, color="wk"[value > 0.6])
top.set(title=title, xlabel="layers that have been applied")
harmless = [n + 1 for n in range(12) if min(x[n] for x in found["without"].values()) >= 0.97]
low.set_title(
    f"no kind falls below 97 % without\nany one of the layers {harmless[0]} to {harmless[-1]}"
)
low.set_xlabel("layer that is left out")
plt.show()

# %% [markdown]
# What to see: above, what the lens finds at each depth; below, what the whole model still knows
# without one layer; both in percent of the words of a kind. After two layers the lens reads all
# look-ups and all copying and 96 % of the orderings. The fixed words of the form are ready after
# layer 7 (92 % of them after layer 2), and the sums become readable only in the last layers. One
# run (n = 1).
#
# ## Several layers at once
#
# A layer that can be left out alone may be one of several that do the same work. So we leave out a
# third of the model, and then everything from the third layer to the eighth:

# %%
print(f"without layers  {'  '.join(f'{kind:>7}' for kind in layers.KINDS)}")
for span, shares in found["spans"].items():
    print(f"{span:14}  {'  '.join(f'{x:7.2f}' for x in shares.values())}")

# %% [markdown]
# Look-ups, orderings and answers do not notice when half of the layers are gone. Sums do, and more
# so at the end than in the middle: six layers from the middle cost 40 % of them, the last four 76
# %. A sum modulo ten is a table of a hundred entries, and a layer of attention alone has little to
# compute one with. It seems that several layers share this work. How they do it, we have not found
# out.
#
# ## Where a written step looks
#
# To write the next letter of a ring is to find the pair that begins with the current letter, and to
# take the other letter of it. Which heads look there? For each link we take the mean weight that
# the queries of a head give to the place in question, and then the best head of each layer.

# %%
links = {"copy": "copy: to the letter before", "match": "match: to the next letter",
         "sum": "sum: to both numbers"}  # fmt: skip
best = {link: [max(heads) for heads in found["looks"][link]] for link in links}
where = {link: best[link].index(max(best[link])) + 1 for link in links}
for number, (link, name) in enumerate(links.items()):
    plt.plot(range(1, 13), best[link], "os^"[number] + "-", color=f"C{number}")
    plt.annotate(name, (2.5, max(best[link])), color=f"C{number}")
plt.title(f"the copy is in layer {where['copy']}, the match in layer {where['match']};\n"
          f"no head gives a sum's numbers\nmore than {max(best['sum']):.2f}")  # fmt: skip
plt.ylim(0, 1)
plt.xticks(range(1, 13))
plt.xlabel("layer")
plt.ylabel("mean weight, best head")
plt.show()

# %% [markdown]
# What to see: a head of layer 1 looks from the second letter of each pair to the first, and a head
# of layer 2 from the letter just written to the one that follows it in its pair. No later layer
# looks there. For a sum no head looks at both numbers with much of its weight. One run (n =
# 1), means over all such places of 200 problems.
#
# So a step of a look-up is the copy and match of the [first lesson](01_hypothesis.md). For the next
# letter the model starts again from its first layer. It has ten more layers and does not use them
# to go further: [written steps](07_thinking.md) have made that unnecessary.
#
# ## The claim about early, middle and late layers
#
# | the report's guess | this model, one run |
# |---|---|
# | early layers detect patterns | look-ups and most orderings are ready by layer 2; sums need it |
# | middle layers connect information | any one can be spared; together they serve the sums |
# | late layers reason and conclude | only sums become readable in layers 9 to 12 |
#
# A division of this kind is there for one family of three. In this one model it is not the place of
# a layer that decides but what the problem needs: a look-up takes the first two layers, at the
# depth of two, four or twelve. Twelve layers learned all three families here and [two did
# not](05_caveats.md), with another recipe. From this one model we guessed that the sums are what
# twelve layers are for. That was wrong: with nearly this recipe and [the same CPU
# time](16_depth_or_time.md) two layers learn all three families in six runs of six, and one layer
# learns the sums.
#
# None of this speaks about a language model. There the words are of many more kinds, and no family
# has a solution that we know.

# %%
for seed in (0, 1, 2):
    assert lens[seed][1] < 0.2 and min(lens[seed][2:]) > 0.95
    assert max(without[seed][:2]) < 0.2 and min(without[seed][2:]) > 0.95
assert {ready[kind] for kind in ("copy", "look-up", "order", "answer")} == {2}
assert ready["form"] == 7 and found["known"]["form"][2] > 0.915
assert ready["sum"] == 12 and found["known"]["sum"][8] < 0.3 and harmless == [3, 4, 5, 6, 7, 8, 9]
spans = found["spans"]
for kind in ("copy", "look-up", "order", "answer"):
    assert min(spans[span][kind] for span in ("5 to 8", "9 to 12", "3 to 8")) > 0.98
assert round(1 - spans["3 to 8"]["sum"], 2) == 0.40 < round(1 - spans["9 to 12"]["sum"], 2) == 0.76
assert (where["copy"], where["match"]) == (1, 2) and min(
    max(best["copy"]), max(best["match"])
) > 0.7
assert max(best["match"][2:]) < 0.1 and max(best["sum"]) < 0.3

# %% [markdown]
# ## Exercises
#
# 1. The lens reads the stream with a norm and a head that were trained for the last layer. Fit a
#    head of its own to each depth of the last four-layer model above, by least squares, on 2,000
#    fresh sequences. Are the answers there after one layer after all?

# %% [markdown] tags=["hint"]
# Take `layers.streams()` at the places that have a target, and `torch.linalg.lstsq()` from there
# to one column per answer. Test on the 200 sequences that it has not seen.

# %% [markdown] tags=["answer"]
# No. After one layer the best linear head does no better than any answer shown, 1 in 8. After two
# it finds them all. Here the lens was right: a head trained for the last layer misses nothing
# that a linear head can find.


# %% tags=["answer"]
def at_targets(tokens, targets):
    """The stream at every place with a target, for each depth (n, C), and the targets (n,)."""
    asked = targets != -100
    return [stream[asked] for stream in layers.streams(model, tokens)], targets[asked]


fresh = tasks.TASKS["icqa"].draw(2000, md.generator("probe"))
heads_of, answers = at_targets(*(part.long() for part in fresh))
tested, right_answers = at_targets(tokens, targets)
one_hot = torch.nn.functional.one_hot(answers, model.config.vocab_size).float()
probe = []
for stream, other in zip(heads_of, tested):
    head = torch.linalg.lstsq(stream, one_hot).solution
    probe.append(((other @ head).argmax(1) == right_answers).float().mean().item())
print("a head for each depth:", *(f"{x:.2f}" for x in probe))
print("the lens:             ", *(f"{x:.2f}" for x in lens[2]))
assert max(probe[:2]) < 0.2 and min(probe[2:]) > 0.95

# %% [markdown]
# 2. The lens finds nothing after layer 1, and without layer 1 everything is lost. How does that
#    fit together?

# %% [markdown] tags=["hint"]
# At which places does layer 1 do its work, and at which does the lens look?

# %% [markdown] tags=["answer"]
# Layer 1 works at the places of the answers: it writes into each which question stood before it.
# The lens looks at the places of the queries, and what layer 1 did has not come there yet. A lens
# tells what is ready at the place where it looks, not what has been done.

# %% [markdown]
# 3. To run: `python train.py --n_layers 12 --seed 1`, then `python -m studies.layers RUN_DIR
#    OUT.json`, for other seeds: are look-ups always ready after two layers?
