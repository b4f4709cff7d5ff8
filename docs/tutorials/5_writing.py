# %% [markdown]
# # Or write it down
#
# **Two layers that write each letter down go seven hops along a ring, in six runs of six. Answering
# at once, two layers learned one hop.** You will learn which part of writing helps, whether a model
# would write by itself, and what writing costs compared with looping.
#
# [Walking the ring](4_walking.md), one loop was one hop. There is another way to use a layer again.
# Whatever a model writes goes back in at the bottom: the next token passes through every layer, and
# can look at what has been written. So a model that writes its work down can go on where its layers
# end. ([Feng et al. 2023](https://arxiv.org/abs/2305.15408) and [Merrill & Sabharwal
# 2024](https://arxiv.org/abs/2310.07923) say what this can buy in principle.)
#
# ## As far as there is room to write
#
# A question has a number, a letter, and then places to write in. *At once* the model says the
# answer at the letter. *In writing* it says the next letter there, then the one after it, until it
# has come as far as the number says. Here are both, for two layers of attention:

# %%
import statistics

import matplotlib.pyplot as plt
import torch

from minidepth_lab import tasks
from minidepth_lab.measure import judge, ring_runs
from minidepth_lab.show import figures
from minidepth_lab.studies import strides, written
from minidepth_lab.tasks.ring import LEARNED
from minidepth_lab.tasks.written import WAYS
from minidepth_site import exercises, widgets

stored = written.stored()  # {way of asking: its five runs}
runs = {way: ring_runs.accuracies(found) for way, found in stored.items()}
writers = ring_runs.in_writing()[2]  # two layers, by seed


def learned_by(shares):
    """How many of these runs answer nine of ten questions, as "5 of 5"."""
    return f"{sum(share >= LEARNED for share in shares)} of {len(shares)}"


rows = []
for k in (1, 2, 4, 7):
    at_once = [run[k] for run in runs["direct"].values() if k in run]
    in_writing = [run[k] for run in writers.values()]
    directly = learned_by(at_once) if at_once else "–"
    rows.append([k, directly, learned_by(in_writing)])
widgets.table(["hops", "runs that learned it at once", "in writing"], rows)

# %% [markdown]
# (A dash: at once, they were asked for three hops at most. One layer that writes only guesses.)
#
# ## What is it that helps?
#
# A model that writes has three things that one that answers at once lacks: **time**, since each
# token is another pass through the layers; **supervision**, since each letter on the way is a
# target in training; and **something to read**. To take these apart we asked the same questions in
# seven ways:
#
# - `direct` answers at once.
# - `filler` writes blanks first. It has the time and nothing else, like the dots of [Pfau, Merrill
#   & Bowman 2024](https://arxiv.org/abs/2404.15758).
# - `random` fills the places with letters that say nothing.
# - `hidden` has every letter as a target, and never sees one written.
# - `given` sees the true letters, and only the answer is a target.
# - `written` has both: the letters are targets, and can be read.
# - `backwards` writes the same letters on the way, the last one first.
#
# Here is one question of three hops in each; a dot is a blank, a dash means no target:

# %% tags=["hide"]
letters = "abcdefghijklmnop.123"


def text(numbers):
    """Tokens or targets as text: a dot is a blank, a dash no target."""
    return " ".join("–" if i < 0 else letters[i] for i in numbers.tolist())


rows = []
for way in WAYS:
    tokens, targets = tasks.TASKS["written"].draw(1, torch.Generator().manual_seed(0), way=way)
    shown, wanted = (part[0, 16:].view(-1, 4) for part in (tokens, targets))
    three = next(i for i in range(48) if shown[i, 0] == 16 + 3)
    rows.append([way, text(shown[three]), text(wanted[three])])
widgets.table(["way", "reads", "has to say"], rows)

# %% [markdown]
# **Predict first:** which of them will learn three hops? Our guess was that two layers learn one
# lookup at each place: from a letter that stands there to the next. Then a way works as long as
# each of its targets is *one hop from a letter that can be read*.

# %%
lengths = (1, 2, 3)
medians, cells = [], []
for way in WAYS:
    found = [[run[k] for run in runs[way].values()] for k in lengths]
    medians.append([statistics.median(shares) for shares in found])
    counts = [f"{sum(share >= LEARNED for share in shares)}/{len(shares)}" for shares in found]
    cells.append([f"{share:.2f} ({n})" for share, n in zip(medians[-1], counts)])
_, axes = plt.subplots(figsize=(4.6, 4.2))
figures.heat_map(axes, medians, vmax=1, texts=cells)
axes.set_xticks(range(len(lengths)), lengths)
axes.set_yticks(range(len(WAYS)), WAYS)
axes.set(xlabel="hops asked", ylabel="way of asking")
axes.set_title("what can be read decides what is learned")
plt.show()

# %% [markdown]
# What to see: every way learns one hop. Two and three hops are learned where each target is one hop
# from a letter that can be read, and nowhere else. Each cell has the median accuracy of five runs,
# and how many of them learned it.

# %% [markdown]
# - **Time alone did not help.** Blanks pass through the same two layers side by side. (Pfau and
#   others have a task in which dots do help. There the work can be done side by side.)
# - **Supervision alone did not help either**: see `hidden`.
# - **What helped was to have the letters to read**, even in `given`, which is never asked to say
#   them. Their order matters: written backwards, the first letter to write is two hops away.
#
# All of this was [predicted](../reference/predictions.md#written), way by way, and held.
#
# ## Would it write them itself?
#
# The runs of `given` were shown the true letters, and never trained to say those on the way. What
# if they have to write their own? At each place we take the letter that the model finds likeliest,
# put it there, and go on:

# %% tags=["hide"]
own = {}  # {(way, hops): accuracies of its runs}
rows = []
for way in ("given", "backwards", "written"):
    for k in (2, 3):
        own[way, k] = [run["measured"]["own"][str(k)] for run in stored[way]]
    rows.append([way, *(f"{min(own[way, k]):.2f} to {max(own[way, k]):.2f}" for k in (2, 3))])
widgets.table(["way", "two hops", "three hops"], rows)

# %% [markdown]
# They can, presumably because each letter is the same lookup.

# %% [markdown]
# ## Write less, think more
#
# A model that both writes and loops can trade one for the other. Here one layer writes every m-th
# letter along a ring of twelve. We predicted that it learns this if, and only if, it has more than
# m loops, as a walk makes its first hop in the second one:

# %%
every_mth = strides.stored()  # {(m, L): shares right of five runs}
_, axes = plt.subplots(figsize=(4.6, 3.4))
strides.draw_cells(axes, every_mth)
axes.set_title("one loop more, one letter less to write")
plt.show()

# %% [markdown]
# What to see: right of the line, which is the prediction, the layer learns it in all fifty runs;
# left of it, in none. Each cell has the share of letters that are right, the median of five runs.
#
# What would a cheat get? Each letter is written once. One that follows nothing, and strikes out the
# letters that are written already, is right this often:

# %%
cheat = {m: tasks.TASKS["strides"].shortcut(12, m) for m in (2, 3, 4)}
for name, share in zip(("second", "third", "fourth"), cheat.values()):
    print(f"every {name} letter: {share:.2f}")
medians = {cell: statistics.median(shares) for cell, shares in every_mth.items()}
assert all(medians[m, n] < cheat[m] for m, n in medians if 1 < m and n <= m)

# %% [markdown]
# Left of the line no median is above that.
#
# **Each further loop saves letters.** A layer that loops twice has to write every letter; one that
# loops five times may write every fourth.
#
# ## Count the layers
#
# To compare writing with looping, all were trained on rings of sixteen letters. We counted how many
# layers, or loops of one, a question passes until the letter so many hops on is said. The layer
# that writes nothing is that of [A thousand hops](thousand_hops.md).

# %% tags=["hide"]
walkers = judge.named_runs("walk")["8 hops, ring of 16"]
on_16 = judge.named_runs("strides")
writing = {}  # {model: (hops for a letter, layers that it passes, right of each run)}
for model, name, hops, passed in (
    ("two layers, every letter", "every letter, two layers", 1, 2),
    ("two loops, every letter", "every letter, two loops", 1, 2),
    ("three loops, every second", "every second, three loops", 2, 3),
    ("five loops, every fourth", "every fourth, five loops", 4, 5),
):
    writing[model] = hops, passed, [run["own"] for run in on_16[f"ring of 16, {name}"]]
rows = []
for model, (hops, passed, shares) in writing.items():
    layers = [n // hops * passed for n in (4, 8, 12)]
    rows.append([model, *layers, f"{min(shares):.2f}", len(shares)])
looped = [run["accuracy_by"]["hops"]["12"]["accuracy"] for run in walkers]
rows.append(["loops, nothing written", 5, 9, 13, f"{min(looped):.2f}", len(looped)])
head = ["layers passed for", "4 hops", "8 hops", "12 hops", "right, worst run", "runs"]
widgets.table(head, rows)

# %% [markdown]
# **All of them get there, in every run, and looping alone passes the fewest layers one after
# another.** Writing every letter takes two layers for each hop, looping one. Counted in work it can
# be the other way round: each loop passes all the letters of the ring again, a written letter only
# itself. What looping loses is the record.

# %% [markdown] tags=["details"]
# *Right* is the share of letters that are right where a model reads what it wrote itself, all
# sixteen of a ring; for loops it is the share of twelve-hop questions. The loopers were trained on
# three times as many rings. Two layers have more parameters than one.

# %% [markdown]
# ## In sentences
#
# The models of our main command write their work down, as one does in a chain of thought. Ask three
# of them here. They run in your browser (0.84 MB), and choosing a word shows where they looked to
# write it.
#
# <div class="widget ask-the-models" data-models="../../results/ask/weights"><p>This part needs
# JavaScript. <a href="play.md#exercises">Play</a> asks the same models from Python.</p></div>
# <script type="module" src="../../assets/ask.js"></script>

# %% [markdown]
# ## What this does not show
#
# The rings are short, and each hop begins where the one before it ended. A real chain of thought is
# more than one lookup repeated.
#
# So much for what depth can do. What did the report that claimed it show? Its [published
# logs](2_logs.md) come next.

# %%
assert set(judge.verdicts("written").values()) == {judge.HELD}
wrong = {name for name, verdict in judge.verdicts("strides").items() if verdict == judge.WRONG}
assert wrong == {"T2"}
for (m, n_loops), shares in every_mth.items():
    assert len(shares) == 5 and (min(shares) > 0.99 if m < n_loops else max(shares) < 0.71)
    assert m < n_loops or (m, n_loops) == (4, 4) or max(shares) < 0.41
for m, length in ((1, 12), (2, 6), (3, 4), (4, 3)):  # of a chain the last, of the others a tenth
    looked_up = (1 + (length - 1) / 10) / length
    assert max(abs(share - looked_up) for share in every_mth[m, 1]) < 0.02
two, others = sorted(every_mth[4, 4])[:2], sorted(every_mth[4, 4])[2:]
assert max(two) < 0.4 and [f"{share:.2f}" for share in (others[0], others[-1])] == ["0.53", "0.71"]
assert min(run[k] for run in writers.values() for k in (1, 2, 4, 7)) > 0.99 and len(writers) == 6
assert len(walkers) == 10 and {run["steps"] for run in walkers} == {2500}
assert min(run["accuracy_by"]["hops"]["15"]["accuracy"] for run in walkers) > 0.99
for *_, shares in writing.values():
    assert min(shares) > 0.99 and len(shares) == 5
assert [judge.verdict(f"strides/{name}") for name in ("T5", "T6")] == [judge.HELD] * 2
alone = ring_runs.in_writing()[1].values()
assert len(alone) == 6 and max(run[1] for run in alone) < 0.16
for way in WAYS:
    reached = [sum(run[k] >= LEARNED for run in runs[way].values()) for k in lengths]
    both = way in ("given", "written")
    assert reached == ([5, 5, 5] if both else [5, 5, 0] if way == "backwards" else [5, 0, 0])
assert (f"{1 / 7:.2f}", f"{1 / 7**2:.2f}") == ("0.14", "0.02")  # any letter but that asked from
for way in ("filler", "random"):
    assert max(run[2] for run in runs[way].values()) < 0.15
assert min(own["given", 2] + own["given", 3]) >= 0.99 and max(own["backwards", 3]) < 0.15
assert min(own["backwards", 2] + own["written", 3]) >= 0.99

# %% tags=["hide", "wrong"]
widgets.wrong("written", "strides")

# %% [markdown]
# ## Exercises
#
# 1. (Medium, 10 minutes.) Apply the guess. In the table of the seven ways, take the targets of a
#    row one after another. When it is to be said, some letters can be read: the one at its place,
#    and those before it. How many hops is the target after the *nearest* of these? In `written` it
#    is one hop three times, `[1, 1, 1]`. (A dash is no target.)

# %% tags=["exercise"]
hidden = ...  # a list with a number for each target of the row
given = ...
backwards = ...

# %% [markdown] tags=["hint"]
# The row `written` has the letters in the order of the ring, from the letter of the question to the
# answer. A blank cannot be read.

# %% tags=["answer"]
hidden = [1, 2, 3]
given = [1]
backwards = [2, 1, 1]


# %% tags=["check"]
@exercises.check
def hops_to_each_target():
    answers = {"hidden": (hidden, 3), "given": (given, 1), "backwards": (backwards, 3)}
    for way, (found, n) in answers.items():
        assert isinstance(found, list), f"{way} should be a list, such as [1, 1, 1]"
        numbers = "number" if n == 1 else "numbers"
        assert len(found) == n, f"{way}: {n} {numbers}, as many as the row has targets"
    blanks = "hidden: dots stand where the letters would, so only that of the question can be read"
    assert hidden != [1, 1, 1], blanks
    assert hidden == [1, 2, 3], f"hidden: count from the letter of the question, not {hidden}"
    assert given != [3], "given: letters on the way can be read, though they are no targets"
    assert given == [1], f"given: the letter beside the answer can be read, not {given[0]} hops off"
    assert backwards[0] == 2, "backwards: the letter to write first is the one nearest the answer"
    assert backwards[1] == 1, "backwards: the second letter follows on that of the question"
    last = "backwards: the letter that was written first can be read, too"
    assert backwards[2] == 1, f"{last}, and is nearer than {backwards[2]} hops"


# %% [markdown] tags=["answer"]
# By the guess a way is learned where all its numbers are 1, as in `written` and `given`, and so the
# runs came out. In `backwards` one number is not 1, and that was enough. `filler` has one target,
# three hops away.

# %% tags=["answer"]
for way, far in (("hidden", hidden), ("given", given), ("backwards", backwards)):
    all_learned = min(run[3] for run in runs[way].values()) >= LEARNED
    assert all_learned == (set(far) == {1})

# %% [markdown]
# 2. (Medium, 5 minutes.) Answering at once, two hops come out right in about one of five cases, a
#    little more often than with blanks before the answer. What could a model know that is right so
#    often?

# %% [markdown] tags=["hint"]
# One lookup can go forwards or backwards along the ring.

# %% [markdown] tags=["answer"]
# If it knows both neighbours of the letter, it can rule them out, with the letter itself: five are
# left. With blanks not even that was learned.

# %% tags=["answer"]
for way in ("direct", "filler", "random"):
    shares = sorted(run[2] for run in runs[way].values())
    print(f"{way:7} two hops: accuracy", *(f"{share:.3f}" for share in shares))
assert all(0.17 < run[2] < 0.23 for run in runs["direct"].values())

# %% [markdown]
# 3. (Hard, 30 minutes.) To run: give `filler` a third layer, `python train.py --preset written
#    --sizes way=filler --n_layers 3`, and `direct` as well. First write down which lengths you
#    expect each to learn.

# %% [markdown] tags=["answer"]
# We have not run it. If a layer is a hop more, `direct` with three layers can learn two hops. So if
# `filler` with three learns more than that, the blanks are good for something.
