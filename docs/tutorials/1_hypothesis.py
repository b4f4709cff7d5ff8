# %% [markdown]
# # The hypothesis
#
# **Depth is said to help a model reason, because each layer can look again, and start from what the
# layers before it found. On a ring of letters you can watch a small model do so: from its second
# loop on, each loop comes one letter further. Not every model is as clear.**
#
# You will learn what was claimed, which question can test it, and what would count as evidence. The
# models run in this page; nothing is installed.
#
# ## A question that takes several lookups
#
# Eight letters form a ring. You are not shown the ring. You are told which letter follows which, in
# mixed order:

# %%
import math

import matplotlib.pyplot as plt

from minidepth_lab.keep import checkpoints
from minidepth_lab.measure import results
from minidepth_site import exercises, widgets

ring = "g b k c m a p h".split()
order = (2, 5, 0, 7, 3, 6, 1, 4)
pairs = [(ring[i], ring[(i + 1) % 8]) for i in order]
print("  ".join(f"{first}→{second}" for first, second in pairs))

# %% [markdown]
# **Which letter is four hops after g?** Find it in the line above before you read on. A *hop* goes
# from a letter to the one that follows it.
#
# You looked for the pair that begins with g, and found b. Then you looked for the pair that begins
# with b, and so on. The first lookup told you where to make the second. As a program:

# %%
follows = dict(pairs)
letter = "g"
for _ in range(4):
    letter = follows[letter]
print("four hops after g:", letter)

# %%
figure, axes = plt.subplots(figsize=(3.4, 3.4))
angles = [math.pi / 2 - math.tau * i / 8 for i in range(8)]
places = [(math.cos(angle), math.sin(angle)) for angle in angles]
for i, (x, y) in enumerate(places):
    color = {0: "C1", 4: "C2"}.get(i, "C5")
    axes.annotate(ring[i], (x, y), ha="center", va="center", fontsize=15,
                  bbox=dict(boxstyle="circle,pad=0.4", fc="none", ec=color, lw=2))  # fmt: skip
    next_x, next_y = places[(i + 1) % 8]
    look = dict(arrowstyle="->", color="C1" if i < 4 else "C5", shrinkA=17, shrinkB=17)
    axes.annotate("", (next_x, next_y), (x, y), arrowprops=dict(look, lw=2 if i < 4 else 1))
axes.text(0, 0, "four hops\nafter g: m", ha="center", va="center")
axes.set(xlim=(-1.35, 1.35), ylim=(-1.35, 1.35), aspect="equal")
axes.axis("off")
plt.show()

# %% [markdown]
# What to see: the eight pairs, put together, are a ring. The question starts at g (orange) and
# walks four hops to m (green). If you go letter by letter, each hop is one lookup among the pairs,
# and needs the letter that the one before has found. (Exercise 2 has a shorter way.)

# %% [markdown]
# ## What was claimed
#
# A Transformer is a stack of layers. In an attention layer every token (a word, or here a letter)
# looks once at the tokens before it, and fetches something from them. One layer is one round of
# looking; twelve layers are twelve rounds.
#
# A [report](../reference/citing.md) of 2026 made this a hypothesis. Perhaps reasoning takes several
# rounds: first the tokens share facts, then they combine them, then they find patterns, and at last
# they conclude. The report compares this to a hundred children with a puzzle: if they may talk
# often, each of them can build on what the others found.
#
# The ring is the smallest case of it. But an analogy is a reason to run an experiment, not its
# result. The authors did run one. They trained a model of one layer and a model of twelve on the
# same 840 conversations, in which the reasoning is written out. The deeper model ended with the
# lower training loss. The report closes with "HYPOTHESIS: PROVED".
#
# Was it? With its conversations it is hard to tell: nobody knows how many lookups such a text
# takes. For our ring we do know. So we begin there. What the report's logs say [comes
# later](2_logs.md).

# %% [markdown]
# ## Watch it walk
#
# Here is a model that is as small as can be: **one** attention layer. It is *looped*: the same
# weights are applied five times, and each loop begins with what the loop before it left. So more
# loops make the model deeper without more weights. (They also take more computing.) It was trained
# on rings drawn at random, with questions of one to four hops, the short ones first.
#
# **Predict first.** Which letter will it hold after each loop? How many loops will it take for the
# four hops from g to m? Then let it walk.

# %% tags=["hide"]
widgets.show("walk", *widgets.walk(loops=0))

# %% [markdown]
# What the model held after each loop, for the question above:

# %% tags=["details"]
models = widgets.walkers()  # ten runs, by seed
model, _ = checkpoints.load(results.weights(widgets.WALKERS, models[110]["id"]))
question = widgets.question_tokens([ord(x) - ord("a") for x in ring], order, 0, 4)
after_each = widgets.after_each_loop(model, question)
held, rows = [], []
for loop, shares in enumerate(after_each[1:].tolist(), 1):
    letter = widgets.LETTERS[shares.index(max(shares))]
    held.append(letter)
    hops = ring.index(letter) if loop > 1 else "–"
    rows.append((loop, letter, f"{100 * max(shares):.0f} %", hops))
widgets.table(("after loop", "it holds", "how surely", "hops from g"), rows)

# %% [markdown]
# The first loop brings no hop. From the second on, each loop walks one hop: b, k, c, m. So four
# hops took five loops. (What the first loop is for, [the next lesson](3_one_look_or_two.md) shows.)
#
# It was told only the right answers, the short questions first: questions of two hops are added
# once those of one hop are learned, and so on. It took us [five training
# recipes](beyond_training.md) to find this.
#
# Training does not always find the walk. Ten runs were trained in this way. They differ only in
# their *seed*, the number that decides which first weights and which rings are drawn:

# %% tags=["hide"]
learned = [about["hops"] for about in models.values()]
rows = [(f"{hops} hops", learned.count(hops)) for hops in (4, 3)]
widgets.table(("the longest walk learned", "runs"), rows)

# %% [markdown]
# The menu above has all ten. Choose a run that learned three hops, and ask it for four.
#
# ## Train one yourself
#
# The next box trains such a layer from nothing, in one or two minutes, in your browser. **Predict
# first:** with three loops, how many hops will it learn? And if it is looped on after its training,
# will it walk further than it was trained to?

# %% tags=["hide"]
without = "This part needs JavaScript. The table above shows a walker that was trained before."
widgets.show("loops", None, without)

# %% [markdown]
# Try another seed. To see one layer and two train side by side, [train
# both](play.md#one-layer-or-two).
#
# ## What would count as evidence?
#
# One model that walks is a demonstration, not yet a test. Suppose that somebody finds one of the
# things on the left. What else could explain it?
#
# | a deeper model | but perhaps |
# |---|---|
# | has a lower loss on its training text | it knows the text by heart |
# | answers more new questions | it has more weights (parameters), too |
# | does so with no more weights | it trained for more time |
# | does so in equal time | that was a lucky seed |
# | does so in ten of ten runs | the shallow one was badly tuned |
#
# So these are the rules in all that follows:
#
# - Answers are checked, on questions that were held out from training or are drawn anew.
# - There are several seeds, and an interval that says how much is chance. No seed is left out.
# - A control model has the parameters without the depth, or the depth without the parameters, as a
#   looped layer has.
# - What we expect is written down [before the runs](../reference/predictions.md). Where it was not,
#   or was wrong, the page says so.
# - "Training did not find it" is not "it cannot be done".
#
# ## The path
#
# First what depth can do: [one look or two](3_one_look_or_two.md), [walking the
# ring](4_walking.md), [a thousand hops](thousand_hops.md), and [writing the steps
# down](5_writing.md) instead. Then how to tell: [the published logs](2_logs.md), [how would you
# know](6_how_would_you_know.md), and [the controls](7_equal_time.md).
#
# Reading all of it takes three quarters of an hour, with the figures and boxes nearer to an hour
# and a half. All the exercises together are four hours more; each says what it takes.

# %%
assert held[1:] == ["b", "k", "c", "m"] and after_each[2:].amax(1).min() > 0.9
assert held[0] != "b" and follows["g"] == "b"
assert sorted(learned) == [3] * 4 + [4] * 6
in_order = {"lengths=1+2+3+4", "early=0.9", "gate=1.0"}
ten = results.runs(widgets.WALKERS, d_model=64, n_loops=5)
assert len(ten) == 10 and all(in_order <= set(run["sizes"]) for run in ten)
assert model.config.n_layers == 1 and model.config.n_loops == 5
assert len({run["params_total"] for run in results.runs("ring-staircase", d_model=64)}) == 1

# %% [markdown]
# ## Exercises
#
# Two of them tell you whether you are right, if you download this page as a notebook.
#
# 1. (Easy, 3 minutes.) Here is another ring. Which letter is five hops after d?

# %%
another = "f→d  i→o  d→n  l→f  e→l  n→i  j→e  o→j"

# %% tags=["exercise"]
answer = ...  # a letter, such as "f"

# %% [markdown] tags=["hint"]
# `dict(pair.split("→") for pair in another.split())` makes a dictionary of the pairs.

# %% tags=["answer"]
its = dict(pair.split("→") for pair in another.split())
answer = "d"
for _ in range(5):
    answer = its[answer]


# %% tags=["check"]
@exercises.check
def five_hops_after_d():
    its = dict(pair.split("→") for pair in another.split())
    walk = ["d"]
    while len(walk) < 8:
        walk.append(its[walk[-1]])
    assert answer in walk, f"{answer} is none of the letters {' '.join(sorted(walk))}"
    hops = walk.index(answer)
    assert hops, "d is where you start; the first hop leads to n"
    assert hops == 5, f"{answer} is {hops} hop{'s' * (hops > 1)} after d, not five"


# %% [markdown]
# 2. (Medium, 10 minutes.) Does each hop need a lookup of its own? All letters can look at the same
#    time. Suppose that each of them has found the one *two* hops after it. Make a dictionary of
#    what they know then, `two_on`, with the help of `follows`. How many lookups in `two_on` lead
#    from g to the letter four hops after it?

# %% tags=["exercise"]
two_on = ...  # {letter: the letter two hops after it}, for all eight letters
lookups = ...  # how many lookups in two_on lead from g to four hops after it

# %% [markdown] tags=["hint"]
# Two hops after a letter is what follows on what follows it: `follows[follows[letter]]`.

# %% [markdown] tags=["answer"]
# Two lookups of two hops each. The first of them is made already: g knows k. So in one more round
# of looking each letter finds the one four hops on, and in the round after that the one eight hops
# on. Rounds that double the hops are far fewer than the hops: [Sanford, Hsu &
# Telgarsky](https://arxiv.org/abs/2402.09268) prove this for a task like ours. The model above does
# not do it. It walks, one hop a loop.

# %% tags=["answer"]
two_on = {letter: follows[follows[letter]] for letter in ring}
lookups = 2


# %% tags=["check"]
@exercises.check
def two_hops_at_a_time():
    assert isinstance(two_on, dict), "two_on should be a dictionary: {letter: letter}"
    missing = set(ring) - set(two_on)
    assert not missing, f"two_on does not say what comes after {' '.join(sorted(missing))}"
    for letter in ring:
        right = follows[follows[letter]]
        said = two_on[letter]
        assert said != follows[letter], f"{said} is one hop after {letter}, not two"
        assert said == right, f"two hops after {letter} is {right}, not {said}"
    assert isinstance(lookups, int), "lookups should be a whole number"
    assert lookups != 1, "one lookup of g in two_on gives k, two hops on; four are asked"
    assert lookups == 2, f"{lookups} lookups of two hops lead {2 * lookups} hops on; four are asked"


# %% [markdown]
# 3. (Easy, 5 minutes.) Somebody trains a model of two layers and a model of 24 on the same novel,
#    once each. The deeper one ends with the lower loss. Name three things besides reasoning that
#    can explain it.

# %% [markdown] tags=["hint"]
# Go through the table above, row by row.

# %% [markdown] tags=["answer"]
# It may have learned the novel by heart, for which it has more parameters. Its training took more
# computing. And with one run each, another seed could have ended the other way round. Nothing was
# asked of either model, so there is not even an answer that could show reasoning.
