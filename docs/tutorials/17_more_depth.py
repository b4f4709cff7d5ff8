# %% [markdown]
# # More depth than needed
#
# **You will learn** what happens to a model that is deeper than its problem asks for: the same
# layer looped more often learns the same thing later, or not in the time it has, while one more
# layer with weights of its own can help.<br>
# **Time** 5 to 15 s: nothing is trained here, the runs took hours and are stored.<br>
# **Needs** [Depth by itself](12_rings.md).
#
# [Depth by itself](12_rings.md) showed what a layer gains when it is looped twice instead of once,
# and three times instead of twice. A layer that is looped four or five times can do all that as
# well: it needs only to leave alone what it holds. So it should learn as much. That is what we
# [predicted](../results/ring/notes.md), as H2, before the runs: both lengths learned in at least
# eight of ten runs with four loops, and in eight of ten with five.
#
# ## The same training, two more loops
#
# The task is the ring of eight letters: which letter is one hop on, and which is two hops on? The
# training is the one of the first figure there, 1,200 steps, in which two hops are asked from step
# 360 on. The ten seeds are the same, too.

# %%
import matplotlib.pyplot as plt

from minidepth_lab import judge, results
from minidepth_lab.ring_runs import course, onset
from minidepth_lab.studies.ring import LEARNED

stored = judge.named_runs("ring")
applied = {n: stored[f"applied {n}"] for n in (2, 3, 4, 5)}

both = {}
for n, runs in applied.items():
    lowest = [min(course(run, k)[1200] for k in (1, 2)) for run in runs]
    both[n] = sum(share >= LEARNED for share in lowest)
    one = [onset(run, 1) for run in runs]
    came = sorted(step for step in one if step)
    print(f"{n} loops: both lengths learned in {both[n]} of {len(runs)};")
    lacking = one.count(None)
    print(f"    one hop came at {came[0]} to {came[-1]}, never in {lacking}")

# %%
figure, axes = plt.subplots(figsize=(4.6, 3.6))
never = 1300
for n, runs in applied.items():
    for i, run in enumerate(sorted(runs, key=lambda run: onset(run, 1) or never)):
        step = onset(run, 1)
        x, look = n + 0.05 * (i - 4.5), "o" if step else "x"
        axes.plot(x, step or never, look, color="C2", alpha=0.7)
axes.axhline(360, color="C5", linestyle=":")
axes.annotate("two hops are asked from here", (2.55, 190))
axes.set_yticks([200, 400, 600, 800, 1000, 1200, never], [200, 400, 600, 800, 1000, "", "never"])
axes.set_xticks(list(applied))
axes.set(xlabel="loops of the same layer", ylabel="training step of the first 0.9, one hop")
axes.set(ylim=(120, 1400))
axes.set_title("each loop that is not needed\nmakes the first hop come later")
plt.show()

# %% [markdown]
# What to see: two loops suffice for one hop, and with them all ten runs learn it by step
# 300. With three it comes by step 400. With four, nine of ten runs reach 0.9 at some time between
# steps 400 and 800; with five, five of ten do, between 700 and 1,000. Each dot is one run, a cross
# one that never answers nine in ten.
#
# It may not last: as two-hop answers improve, some runs get worse at one hop, as if they could not
# tell which of the two is asked. At the last step, eight of ten runs
# with four loops answer one hop in 0.9 of the cases, and two of ten with five.
#
# Models with fewer loops are ahead even before two hops are asked. At step 200 two loops answer
# 0.46 to 0.97 of the questions, and three 0.15 to 0.17. At step 300 three answer 0.34 to 0.99, four
# 0.15 to 0.28, and five 0.14 to 0.15, which is guessing.
#
# So H2 **was wrong** twice: seven of ten runs learn both lengths with four loops, and one of ten
# with five, where eight of ten were expected of each. No weight was added on the way from two loops
# to five, and nothing was taken away that the model could do. What changed is whether this training
# finds it in time, and keeps it.
#
# ## Was it the depth, or the timetable?
#
# Two hops are asked from step 360 on, whether one hop has been learned by then or not. That suits
# two and three loops. With four, at least half of the runs are asked before they have learned the
# first hop. In the [third try](12_rings.md#a-third-try-ask-for-two-hops-sooner) of the other page
# the question about two hops waits for the first: a gate opens once a step's loss is below 1. We
# gave ten fresh seeds of the layer looped four times that training, as it was, and
# [expected](../results/ring-gate/notes.md) nine of ten to learn both lengths (G7).

# %%
gate = results.by(results.runs("ring-gate", gate=1, n_loops=[3, 4]), "n_loops")
came = {}
for n, runs in gate.items():
    lowest = [min(course(run, k)[1400] for k in (1, 2)) for run in runs]
    good = sum(share >= LEARNED for share in lowest)
    came[n] = sorted(onset(run, 2) for run in runs)
    print(f"{n} loops: both lengths in {good} of {len(runs)};", end=" ")
    print(f"two hops came at {came[n][0]} to {came[n][-1]}")
later = judge.permutation(came[3], came[4])
print(f"that four are later: p = {later:.4f}, permutation test")
print("G7", judge.verdict("ring-gate/G7"))

# %% [markdown]
# Where the second question waits for the first, four loops learn both lengths in ten of ten runs,
# as three do: **G7 held**. So the timetable was what failed, or `beta1`, which is 0.7 here and was
# 0.9 above; that a depth of four can be trained to do it is no longer in doubt. But the depth that
# is not needed still has a price: two hops come at training steps 600 to 700, with three loops at
# 400 to 600. The settings are the same and the seeds are not; p is 0.0006, for a test that was not
# planned. Five loops have not been tried with this training; with another, which lets in four
# lengths one by one, they learn [the first three in every run, and four hops in
# some](4_walking.md).
#
# ## Four hops, layers of their own
#
# H7, also one of the [first predictions](../results/ring/notes.md), asks the opposite: is there a
# problem for which three layers are too few? With lengths 1, 2 and 4, and layers of their own,
# theory has a solution for four hops in four layers, and we knew of none in three. There are five
# seeds per depth, 4,000 steps, and the lengths join one by one.

# %%
four = results.by(results.runs("ring", lengths="1+2+4"), "n_layers")
for n, runs in four.items():
    for k in (1, 2, 4):
        shares = sorted(course(run, k)[4000] for run in runs)
        print(f"{n} layers, hops {k}: accuracy", *(f"{x:.2f}" for x in shares))

# %% [markdown]
# With four layers, two hops are answered in every run, and four hops in 0.41 to 0.71 of the
# questions, still rising; with three layers, four hops in 0.20 to 0.42. The planned test compares
# how many runs learned four hops. No run of either depth did in 4,000 training steps, where we had
# expected two of five with four layers, so it says nothing (p = 1). That the accuracies are higher
# with four layers is a hint that the fourth helps (permutation test, p = 0.016, not corrected for
# the eight contrasts that we named). And one run of three layers ends at 0.42, where we had
# expected 0.4 or less of all five: a model that knows the letters up to two hops away, either way,
# can rule these out and is right one time in three, and this run does better than that. So these
# two parts of H7 **were wrong**. The third part was run a day later, and **held**: with five
# layers, one more than theory asks for, four hops are learned in four of five runs, and end at 0.86
# to 0.98, where four layers end at 0.71 or less. Two were expected. Two hops, which three layers of
# their own learned in [none of six runs](12_rings.md#layers-with-weights-of-their-own) of 1,200
# steps, they learn here in three of five.
#
# Taken together: every loop of the same layer beyond the two that suffice for one hop made that
# hop come later. Three suffice for two hops; with four these came later, too, but where the
# training waited for the model, they came in every run. And one more layer with weights of its own,
# beyond the four that suffice for four hops, brought these to 0.9, which four layers did not. What
# a depth makes possible and how soon training finds it are two questions, and neither answers the
# other.

# %%
at_the_end = {n: [course(run, 1)[1200] >= LEARNED for run in applied[n]] for n in (4, 5)}
assert {n: sum(good) for n, good in at_the_end.items()} == {4: 8, 5: 2}
assert sum(course(run, 2)[4000] >= LEARNED for run in four[3]) == 3 and len(four[3]) == 5
assert len(gate[4]) == 10
assert all(min(course(run, k)[1400] for k in (1, 2)) > 0.99 for run in gate[4])
assert came[3][::9] == [400, 600] and came[4][::9] == [600, 700] and f"{later:.4f}" == "0.0006"
assert both == {2: 0, 3: 5, 4: 7, 5: 1}
assert [sum(onset(run, 1) is None for run in applied[n]) for n in applied] == [0, 0, 1, 5]
assert all(onset(run, 1) <= 300 for run in applied[2])
assert max(onset(run, 1) for run in applied[3]) == 400
ends = {}
for n, at in ((2, 200), (3, 200), (3, 300), (4, 300), (5, 300)):
    shares = [course(run, 1)[at] for run in applied[n]]
    ends[n, at] = f"{min(shares):.2f} to {max(shares):.2f}"
assert ends[2, 200] == "0.46 to 0.97" and ends[3, 200] == "0.15 to 0.17"
assert (ends[3, 300], ends[4, 300]) == ("0.34 to 0.99", "0.15 to 0.28")
assert ends[5, 300] == "0.14 to 0.15"
fours = {n: sorted(course(run, 4)[4000] for run in runs) for n, runs in four.items()}
assert [f"{share:.2f}" for share in fours[4][:: len(fours[4]) - 1]] == ["0.41", "0.71"]
assert [f"{share:.2f}" for share in fours[3][:: len(fours[3]) - 1]] == ["0.20", "0.42"]
assert all(course(run, 4)[4000] > course(run, 4)[3000] + 0.03 for run in four[4])
assert [f"{share:.2f}" for share in fours[5][::4]] == ["0.86", "0.98"] and len(fours[5]) == 5
assert sum(share >= LEARNED for share in fours[5]) == 4
assert min(course(run, 2)[4000] for run in four[4]) > 0.99
c7 = judge.judged_contrasts("ring")["ring/C7"]
assert f"{c7['permutation']:.3f}" == "0.016" and len(four[3]) == len(four[4]) == 5

# %% [markdown]
# ## Exercises
#
# 1. A layer looped five times could do what it does in two loops, and nothing in the other three.
#    What would its weights have to do for that? Why may that be harder to find for one layer looped
#    five times than for five layers of their own?

# %% [markdown] tags=["hint"]
# The weights of a layer of its own can be such that it adds nothing. Whose weights are those of the
# third loop?

# %% [markdown] tags=["answer"]
# In five layers, three can have an output of zero while the two others work. One layer looped five
# times has the same weights each time: what finds the pair in the second loop is there in the
# third, fourth and fifth as well, and must do no harm to what stands there by then. That is
# possible, since what a token carries after the find differs from what it carried before; but it is
# one more thing to learn. This is an argument, not something that these runs have measured.

# %% [markdown]
# 2. Is five loops' late start a matter of size? Draw the loss over the first 300 steps of a layer
#    looped twice and of one looped five times: `md.train()` with the preset `ring`, `steps=300`,
#    `eval_every=25`. Which learning rate would you try, and how would you keep the choice apart
#    from the seeds that you report?

# %% [markdown] tags=["hint"]
# The gradient of one weight is the sum over all loops. What does AdamW make of its size?

# %% [markdown] tags=["answer"]
# AdamW divides the gradient by its recent size, so that a sum over five is no larger a step than a
# sum over two; but the same step changes five loops at once. A lower rate is worth a try. Choose it
# on seeds of its own, say 1 to 6, by validation loss, and then train ten fresh seeds once. We have
# not run this.
