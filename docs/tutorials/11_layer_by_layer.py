# %% [markdown]
# # Layer by layer
#
# **You will learn** how to read what a model knows after each of its layers, how to measure what is
# lost without one, and what became of a claim about early, middle and late layers.<br>
# **Time** about a minute on one CPU core, nearly all of it training.<br>
# **Needs** [Looking inside](inside.md).
#
# The [report](2_logs.md) behind this project guesses at a division of labour: early layers detect
# patterns, middle layers connect information, late layers reason and conclude. It did not look. We
# did. **In one model of twelve layers we find such a division for sums at most.** Everything but
# the sums is nearly ready after two layers, and hardly suffers if layers 3 to 8 are all left out;
# of the sums 40 % are lost then.
#
# We look at two models of our own: the one of twelve layers, trained with earlier settings of our
# main command, and one of four layers, which is trained on this page.
#
# ## Two tools
#
# **The logit lens.** The *residual stream* is what a token carries from layer to layer. It has the
# same shape after every layer, so the last norm and the output layer (the *head*) can be applied to
# it anywhere. `inspect.lens()` does that and names the likeliest word, and `inspect.known()` asks
# whether it is the right one. A word that the lens does not find may still be there, in directions
# that the head does not read. So the lens says after which layer something is *ready to be said*.
#
# **Leaving a layer out.** `inspect.skipped()` hands the stream past one layer, unchanged. What gets
# worse needed that layer, or needed the stream to look as that layer leaves it.

# %%
import json
from inspect import getsource

import matplotlib.pyplot as plt
import torch

import minidepth as md
from minidepth_lab import figures, inspect, registry, results, tasks
from minidepth_lab.studies import layers

# %% tags=["hide", "python"]
print(getsource(inspect.lens))

# %% [markdown]
# ## Four layers on a task for which two suffice
#
# For [in-context questions](3_one_look_or_two.md) two layers suffice: the first copies, the second
# matches. What do four layers do with them? Here are three seeds.


# %%
def trained(seed):
    """Four layers after 300 steps, and 200 test sequences with their targets."""
    settings = dict(n_layers=4, seed=seed, steps=300, eval_every=300)
    m, t = registry.configs("tasks", data="icqa", **settings)
    data = registry.data_of(t)
    model = md.train(m, t, data, quiet=True).model
    tokens, targets = (torch.as_tensor(part[:200]).long() for part in data.val)
    return model, tokens, targets


def share(right, targets):
    """The share of the answers that are right, of (B, T) bool."""
    return right[targets != -100].float().mean().item()


lens, without = [], []
for seed in (0, 1, 2):
    model, tokens, targets = trained(seed)
    known = inspect.known(model, tokens, targets)
    lens.append([share(right, targets) for right in known])
    without.append([])
    for layer in range(4):
        with inspect.skipped(model, layer):
            *_, last = inspect.known(model, tokens, targets)
        without[seed].append(share(last, targets))
    print(f"seed {seed}, right after 0 to 4 layers:", end=" ")
    print(*(f"{x:.2f}" for x in lens[seed]))
    print("        without layer 1, 2, 3, 4:     ", end=" ")
    print(*(f"{x:.2f}" for x in without[seed]))

# %% [markdown]
# In all three seeds the answers are ready after the second layer, and the third or the fourth can
# be left out: the first two do the work. Nothing asked them to be quick. Guessing among all answers
# finds 1 in 16, and among those shown 1 in 8.
#
# ## Twelve layers on the embedded problems
#
# Next, a model that `python train.py --n_layers 12 --seed 0` trained, with that day's settings:
# attention alone, width 64, four heads per layer, 900 steps, `beta1` 0.9. It is **one run (n =
# 1)**. What follows was measured after the training, by `python -m
# minidepth_lab.studies.layers`, on 200 held-out problems; [the
# results](../reference/results.md#layers) have the command and the hardware. The model reads the
# right words up to each place, and we ask whether it knows the next one. The words of its answers
# are of six kinds:

# %%
path = results.RESULTS / "layers" / "laptop-12-layers-seed-0.json"
found = json.loads(path.read_text(encoding="utf-8"))
print(f"answers by itself {found['accuracy']:.3f} of {found['problems']} problems")
for kind, what in layers.KINDS.items():
    print(f"{kind:8} {found['words'][kind]:5,} words:\n  {what}")

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
top.set(title=title, xlabel="layers that have been applied")
harmless = [n + 1 for n in range(12) if min(x[n] for x in found["without"].values()) >= 0.97]
low.set_title(
    f"no kind falls below 97 % without\nany one of the layers {harmless[0]} to {harmless[-1]}"
)
low.set_xlabel("layer that is left out")
plt.show()

# %% [markdown]
# What to see: after two layers the lens reads all lookups, all copying and 96 % of the orderings.
# The fixed words of the form are ready after layer 7 (92 % of them after layer 2), and the sums
# become readable only in the last layers. Above is what the lens finds at each depth; below is what
# the whole model still knows without one layer; both in percent of the words of a kind, and a full
# cell without a number is 100 %. *Ready* means that from there on the lens has at least 95 % of
# them. One run (n = 1).
#
# ## Several layers at once
#
# A layer that can be left out alone may be one of several that do the same work. So we leave out a
# third of the model at a time, and then everything from the third layer to the eighth:

# %%
print(f"without layers  {'  '.join(f'{kind:>7}' for kind in layers.KINDS)}")
for span, shares in found["spans"].items():
    print(f"{span:14}  {'  '.join(f'{x:7.2f}' for x in shares.values())}")

# %% [markdown]
# Without layers 3 to 8, half of the model, lookups, orderings and answers are as right as before.
# Without the first four, little is. Sums need the later layers, too, and the last ones more than
# the middle: without layers 3 to 8 the model loses 40 % of the sums, without the last four 76 %. It
# seems that several layers share the work of a sum. How they do it, we have not found out.
#
# ## Where a written step looks
#
# To write the next letter of a ring or a line is to find the pair that begins with the current
# letter, and to take the other letter of that pair. Which attention heads look there? Here is the
# mean weight that a head gives to the places in question, for the best head of each layer.

# %%
links = {"copy": "copy: to the letter before", "match": "match: to the next letter",
         "sum": "sum: to both numbers"}  # fmt: skip
best = {link: [max(heads) for heads in found["looks"][link]] for link in links}
where = {link: best[link].index(max(best[link])) + 1 for link in links}
for number, (link, name) in enumerate(links.items()):
    plt.plot(range(1, 13), best[link], "os^"[number] + "-", color=f"C{number}")
    plt.annotate(name, (3.1, max(best[link])), color=f"C{number}")
plt.title(f"the copy is in layer {where['copy']}, the match in layer {where['match']};\n"
          f"no head gives a sum's numbers\nmore than {max(best['sum']):.2f}")  # fmt: skip
plt.ylim(0, 1)
plt.xticks(range(1, 13))
plt.xlabel("layer")
plt.ylabel("mean weight, best head")
plt.show()

# %% [markdown]
# What to see: a head of layer 1 looks from the second letter of each pair to the first, and a head
# of layer 2 from the letter just written to the one that follows it in its pair. In later layers no
# head gives that next letter a tenth of its weight. For a sum, no head gives the two numbers
# together much more than a quarter. One run (n = 1), means over all such places of 200 problems.
#
# So a step of a lookup looks like the copy and match of [One look against
# many](3_one_look_or_two.md).
# For the letter after it the model starts again from its first layer. It has ten more layers and
# does not use them to go further: [written steps](5_writing.md) have made that unnecessary.
#
# ## The claim about early, middle and late layers
#
# | the report's guess | this model, one run |
# |---|---|
# | early layers detect patterns | lookups, most orderings are ready after two; sums need both |
# | middle layers connect information | any one can be spared; sums need some of them |
# | late layers reason and conclude | only sums become readable in layers 9 to 12 |
#
# A division of this kind is there for sums at most, one kind of problem of three. What decides in
# this model is less the place of a layer than what the problem needs: looking up takes the first
# two layers, whether there are four or twelve.
#
# In [an earlier study](caveats.md), with other settings, two layers had not learned the sums,
# and from this one model we guessed that the sums are what twelve layers are for. That was wrong:
# with nearly these settings and [the same CPU time](7_equal_time.md) two layers learn all three
# kinds of problems in six runs of six, and one layer learns the sums.
#
# None of this says anything about a language model. There the words are of many more kinds, and we
# know no solution for any of them.

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
# 1. The lens reads the stream with a norm and a head that were trained for the last layer. Take the
#    last four-layer model above and fit a head of its own to each depth, by least squares, on 2,000
#    fresh sequences. Are the answers there after one layer after all?

# %% [markdown] tags=["hint"]
# Take `inspect.streams()` at the places that have a target, and `torch.linalg.lstsq()` from there
# to one column per answer. Test on the 200 sequences that it has not seen.

# %% [markdown] tags=["answer"]
# No. After one layer the fitted head does no better than naming any answer shown, 1 in 8. After two
# it finds them all. So here the lens did not mislead: the head of the last layer misses nothing
# that these fitted heads find.


# %% tags=["answer"]
def at_targets(tokens, targets):
    """The stream at every place with a target, for each depth (n, C), and the targets (n,)."""
    asked = targets != -100
    return [stream[asked] for stream in inspect.streams(model, tokens)], targets[asked]


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
# 2. In the models of four layers, the lens finds nothing after layer 1, and without layer 1
#    everything is lost. How does that fit together?

# %% [markdown] tags=["hint"]
# At which places does layer 1 do its work, and at which does the lens look?

# %% [markdown] tags=["answer"]
# In the known solution layer 1 works at the places of the answers: it writes into each which
# question stood before it. The lens looks at the places of the questions asked, and what layer 1
# did has not come there yet. A lens tells what is ready at the place where it looks, not what has
# been done.

# %% [markdown]
# 3. To run, for other seeds: `python train.py --n_layers 12 --seed 1`, then `python -m
#    minidepth_lab.studies.layers RUN_DIR OUT.json`. Are lookups always ready after two layers?
