# %% [markdown]
# # How would you know?
#
# **Ten runs of one model, alike but for their seed: six learn four hops, and four do not.** You
# will learn why a single run can show nearly anything, what a p-value says in plain words, and how
# many runs a claim takes.
#
# "Depth helps" compares two models. But what one really compares is two *runs*, and a run is a
# model and a good deal of luck: which first weights were drawn, and in which order the questions
# came. Both follow from the *seed*. So the first question is how far two runs of the *same* model
# lie apart.
#
# ## Ten seeds
#
# A layer that is looped five times can [learn to walk four hops](4_walking.md) along a ring. Looped
# four times, it did not in any run. Here are the ten runs with five loops, and how many four-hop
# questions they answer while they train:

# %%
import math
import random

import matplotlib.pyplot as plt

from minidepth_lab.measure import judge, results, ring_runs
from minidepth_lab.show import figures
from minidepth_lab.studies import budget
from minidepth_lab.tasks.ring import LEARNED
from minidepth_site import exercises, widgets

by_loops = results.by(results.runs("ring-staircase", d_model=64), "n_loops")
accuracy = {}  # {loops: accuracy at four hops, run by run}
for loops, runs in by_loops.items():
    accuracy[loops] = [shares[4] for shares in ring_runs.accuracies(runs).values()]
_, axes = plt.subplots(figsize=(4.6, 3.2))
ring_runs.draw_courses(axes, by_loops[5], 4, figures.color_of("1 layer, 5 times"))
axes.axhline(1 / 7, color="gray", linestyle=":")
axes.annotate("guessing", (30, 0.16), color="gray")
axes.set(ylabel="accuracy at four hops")
axes.set_title("the same model, ten seeds:\nall or nothing")
plt.show()

# %% [markdown]
# What to see: six runs learn four hops, each rather suddenly. Four stay at guessing. Each line is
# one run. (All begin below guessing: while only shorter walks are asked, the model names a letter,
# but never the fourth.)

# %% [markdown]
# No run ends in between. So the mean of the ten describes none of them; what one can say is *how
# many* learned it. With a single run you would have reported that five loops do learn four hops, or
# that they do not, depending on the seed.
#
# ## Draw one seed
#
# It is so with more than rings. One of our [studies](7_equal_time.md) has models of one to twelve
# layers, with five seeds each. Suppose you had one run of each of two models. Draw a seed, and see
# what you would have concluded; then show all five.

# %% tags=["hide"]
without = "This part needs JavaScript. The page of all runs has them."
widgets.show("seeds", widgets.seeds(), without)

# %% [markdown]
# ## Is it only luck?
#
# Back to the ring. With five loops six runs of ten learned four hops, with four loops none did.
# Could that be luck? Suppose that it is: the number of loops does not matter, and six of these
# twenty runs would have learned it anyway. Then it is chance that all six stand on one side. How
# often does chance do that? Write the twenty results on cards, shuffle them and deal two piles of
# ten. **Guess first:** in how many deals of a hundred do all six fall on one side?

# %% tags=["hide"]
five, four = ([share >= LEARNED for share in accuracy[loops]] for loops in (5, 4))
without = "This part needs JavaScript. The code below deals the same cards."
widgets.show("cards", dict(learned=[sum(five), sum(four)], runs=len(five)), without)

# %%
cards = five + four
dice = random.Random(0)
differences = []
for _ in range(10_000):
    dice.shuffle(cards)
    differences.append(sum(cards[:10]) - sum(cards[10:]))
seen = sum(five) - sum(four)
as_large = sum(abs(difference) >= seen for difference in differences)
exact = judge.fisher(five, four)
print(f"{as_large} deals of 10,000 differ as much")
print(f"exactly, counted: p = {exact:.4f}")

# %% [markdown]
# Mostly luck deals three and three, or four and two. All six fall on one side, this one or the
# other, in about one deal of a hundred.
#
# **That share is the p-value**: how often luck alone would make a difference at least as large as
# the one that we saw. One need not shuffle; Fisher's exact test counts all deals. By custom a p
# below 0.05 is called significant. What p is *not*:
#
# - It is not the probability that the models are alike.
# - It is not the size of the difference.
# - A large p does not show that there is no difference: perhaps there were too few runs to see it.
#
# **Look twenty times, and expect to find one.** Luck alone goes below 0.05 one time in twenty. That
# is why these pages correct p where they make several comparisons, by Holm's method: the smallest p
# counts as many times as there are comparisons, the next one time less, and so on. [Heads per
# layer](heads.md) has eighteen comparisons, of which three look significant; once corrected, none
# does.
#
# ## How many runs?
#
# Suppose that one model learns in half of its runs and another in one run of ten, and that your
# runs come out in exactly these shares. The last column is the 95 % interval (Clopper and Pearson)
# of the first model: the true shares for which such a result would be no surprise.

# %%
rows = []
for n in (10, 20, 30):
    half = [True] * (n // 2) + [False] * (n - n // 2)
    tenth = [True] * (n // 10) + [False] * (n - n // 10)
    low, high = judge.exact_interval(sum(half), n)
    learned = f"{sum(half)} against {sum(tenth)}"
    p = judge.fisher(half, tenth)
    rows.append([n, learned, f"{p:.3f}", f"{low:.2f} to {high:.2f}"])
widgets.table(["runs of each", "learned", "p", "half may be"], rows)

# %% [markdown]
# Ten runs of each are too few to tell five from one; twenty would do, if the shares come out just
# so. With five, hardly anything can be shown (exercise 1). That is why these pages say beside a
# share how many runs there are.
#
# ## What else differs?
#
# A small p says that the two piles differ. It does not say *because of depth*. Twelve layers also
# have more parameters, and a step of training takes them nearly eight times as long. Each of these
# needs a comparison of its own: [the controls](7_equal_time.md).
#
# ## Say it first
#
# There is one more way to fool oneself: to look at the runs and then choose what to ask of them.
# Some question always comes out well. The cure is to write the question down first, with a bound
# and a count. Before eight of the ten runs above we had written: *with five loops, one to four hops
# are learned in six runs of eight.* Here is what came out:

# %%
judged = [each for name in judge.experiments() for each in judge.judged(name)]
(said,) = [each for each in judged if each["id"] == "ring-staircase/R5"]
verdicts = [each["verdict"] for each in judged]
held, wrong = verdicts.count(judge.HELD), verdicts.count(judge.WRONG)
rows = [["four hops with five loops", said["measured"], said["verdict"]]]
rows.append(["all that we ran", f"{held} held", f"{wrong} were wrong"])
widgets.table(["prediction", "runs", "verdict"], rows)

# %% [markdown]
# It was one run short, so it was wrong, and we say so, though "six of ten" sounds no worse. [All
# predictions](../reference/predictions.md) stand on one page, with the runs that decide them.
#
# ## Tune on some, report on others
#
# Settings are chosen by looking at runs, so those runs are no test of the settings any more. The
# settings of `python train.py --n_layers 12` were chosen five times, on a few seeds, and each
# choice was run on fresh ones:

# %%
tries = {
    "first": "first-run-momentum",
    "second": "first-run-longer",
    "third": "first-run-short",
    "fourth": "first-run-three-passes",
    "today": "first-run",
}
rows, ends = [], {}
for name, folder in tries.items():
    runs = [run for run in results.runs(folder, n_layers=12) if run["seed"] > 0]
    ends[name] = [run["accuracy"] for run in runs]
    enough = sum(share >= 0.95 for share in ends[name])
    rows.append([name, f"{enough} of {len(runs)}", f"{min(ends[name]):.3f}"])
widgets.table(["settings", "runs that answer 0.95", "the worst run"], rows)

# %% [markdown]
# When we chose the last change, one kind of problem had come sooner with three seeds of four. With
# twenty fresh seeds it came no sooner than before: four seeds that one has looked at while choosing
# say little. But all twenty runs learned, and that is what is now
# [reported](../reference/results.md#first-run).

# %% [markdown] tags=["details"]
# **The same seed is not the same run.** The same main job, seed by seed, once with two threads and
# once with one, everything else equal:

# %% tags=["details"]
two = results.runs("main-job", n_layers=12)
one = results.runs("depth", n_layers=12, seed=[0, 1, 2])
rows = [[run["seed"], f"{run['accuracy']:.3f}", f"{other['accuracy']:.3f}"]
        for run, other in zip(two, one)]  # fmt: skip
widgets.table(["seed", "accuracy, two threads", "one thread"], rows)
rows = [[row["step"], f"{row['train_loss']:.7f}", f"{other['train_loss']:.7f}"]
        for row, other in list(zip(two[0]["log"], one[0]["log"]))[:4]]  # fmt: skip
widgets.table(["step", "train loss of seed 0, two threads", "one thread"], rows)

# %% [markdown] tags=["details"]
# When two threads share a sum, they add it up in another order, so its last bit can differ, and
# training amplifies that. With the same number of threads every digit comes out again.

# %%
onsets = [ring_runs.onset(run, 4) for run in by_loops[5]]
assert len(onsets) == 10 and onsets.count(None) == 4
assert all(800 <= step <= 1000 for step in onsets if step)
assert all(share > 0.95 or share < 0.22 for share in accuracy[5])
assert all(min(ring_runs.course(run, 4).values()) < 0.05 for run in by_loops[5])
assert max(accuracy[4]) < 0.22 and len(accuracy[4]) == 10
assert 0.005 < exact < 0.015 and 0.005 < as_large / len(differences) < 0.016
assert said["measured"] == "5 of 8" and said["verdict"] == judge.WRONG
assert judge.fisher([True] * 5 + [False] * 5, [True] + [False] * 9) > 0.05
assert judge.fisher([True] * 10 + [False] * 10, [True] * 2 + [False] * 18) < 0.05
assert 7.5 < budget.COST["12 layers"] / budget.COST["1 layer"] < 8
assert len(ends["today"]) == 20 and min(ends["today"]) > 0.95
assert [f"{run['accuracy']:.3f}" for run in (two[0], one[0])] == ["0.975", "0.860"]

# %% tags=["hide", "wrong"]
widgets.wrong("ring-staircase/R5", "first-run")

# %% [markdown]
# ## Exercises
#
# 1. (Medium, 10 minutes.) The most extreme result that five runs of each can give: all five of one
#    model learn it, none of the other. In how many ways can the five that learn be dealt among ten
#    runs? In how many of these do all five stand on one side? And which p is that? Fill in all
#    three.

# %% tags=["exercise"]
ways = ...
on_one_side = ...
p_least = ...

# %% [markdown] tags=["hint"]
# `math.comb(10, 5)` counts the ways to choose five of ten. One side can be the first pile or the
# second.

# %% tags=["answer"]
ways = math.comb(10, 5)
on_one_side = 2
p_least = on_one_side / ways


# %% tags=["check"]
@exercises.check
def five_against_five():
    assert ways != 2**10, "1,024 deals any number of learners; here there are five"
    in_order = "that deals each five in every order; here it only counts who is among them"
    assert ways != math.perm(10, 5), in_order
    assert ways == 252, f"{ways} is not the number of ways to choose five of ten"
    assert on_one_side != 1, "you counted one pile; they may all stand in the other as well"
    assert on_one_side == 2, "only two deals have all five on one side"
    p = judge.fisher([True] * 5, [False] * 5)
    of_ways = "p is the share of all ways in which all five stand on one side"
    assert abs(p_least - p) < 1e-4, f"{of_ways}, not {p_least:.4f}"


# %% [markdown] tags=["answer"]
# So p is at least 0.008. Corrected for seven comparisons it is above 0.05: with five runs of each,
# nothing can be shown in so many comparisons. Six runs of each reach 2 of 924.

# %% tags=["answer"]
assert 7 * p_least > 0.05 > 7 * 2 / math.comb(12, 6)

# %% [markdown]
# 2. (Medium, 10 minutes.) Twenty of twenty runs learned with today's settings. How likely was that,
#    if the true share is nineteen of twenty? And how low must it be, in whole hundredths, for
#    twenty of twenty to happen less than one time in twenty?

# %% tags=["exercise"]
if_nineteen_of_twenty = ...
too_low = ...  # the largest such share, as 0.xx

# %% [markdown] tags=["hint"]
# The runs are independent, so multiply.

# %% tags=["answer"]
if_nineteen_of_twenty = 0.95**20
too_low = 0.86


# %% tags=["check"]
@exercises.check
def twenty_of_twenty():
    both = (if_nineteen_of_twenty, too_low)
    assert all(0 <= share <= 1 for share in both), "both are shares, between 0 and 1"
    likely = 0.95**20
    assert if_nineteen_of_twenty > 0.05, "that is rarer than it is: multiply 0.95 twenty times"
    assert abs(if_nineteen_of_twenty - likely) < 0.01, "multiply 0.95 by itself, twenty of them"
    assert round(too_low, 2) == too_low, "give too_low in whole hundredths, such as 0.50"
    often = f"with {too_low} it happens {100 * too_low**20:.1f} times in 100"
    assert too_low**20 < 0.05, f"{often}; less than 5 are asked"
    larger = f"{too_low + 0.01:.2f} is low enough, too; the largest is asked"
    assert (too_low + 0.01) ** 20 >= 0.05, larger


# %% [markdown] tags=["answer"]
# Such luck is common: 0.36. So these runs say that most first runs learn, more than 0.86 of them
# unless we were lucky. They do not say that every run does, nor that today's settings are better
# than those with nineteen of twenty.

# %% [markdown]
# 3. (Easy, 15 minutes, of which 10 run.) Train seed 0 with one thread, `OMP_NUM_THREADS=1 python
#    train.py --n_layers 12 --name one`, and with two (and another name). At which evaluation do the
#    two runs first differ on your machine, and how far apart do they end?

# %% [markdown] tags=["hint"]
# Both runs write a `log.jsonl`. Compare `train_loss` line by line, in all its digits.
