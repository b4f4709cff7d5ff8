# %% [markdown]
# # Does depth help on your problem?
#
# **One command trains the arms, tunes each of them, and says whether depth helps, or that it cannot
# say.**
#
# ```
# python train.py --verdict icqa --budget 20m
# python train.py --verdict my_task.py --sizes jumps=3 --n_layers 6 --jobs 2
# python train.py --verdict my.jsonl --margin 0.1
# ```
#
# The source is a depth task, [a task of your own](own_task_and_study.md), rows of your own or a
# data set of the hub, `embedded`, or `rg:NAME`, a generator of the package reasoning-gym. Any
# setting of the model and the training may be typed beside it: `--d_model 128 --steps 2000`. A
# generator's own settings, its difficulty, are `--sizes`, as in `--verdict rg:chain_sum --sizes
# max_terms=4,max_digits=1`. An answer is right if the generator's own scorer gives it full marks:
# any palindrome of the letters is right, not one of them alone.
#
# The answer to `--verdict icqa --sizes pairs=4,symbols=8 --steps 500 --d_model 32 --seeds 8`, and
# how long it took on one core of a busy machine:

# %%
import matplotlib.pyplot as plt

from minidepth_lab.measure import verdict
from minidepth_lab.show import verdict_map
from minidepth_site import widgets

verdicts = verdict_map.stored()
kept = verdicts["icqa"]
print(kept["text"])
minutes = kept["seconds"] / 60
print(f"{len(kept['runs'])} runs reported, {minutes:.0f} minutes with those for tuning")

# %% [markdown]
# ## What is trained
#
# | arm | is |
# |---|---|
# | 1 layer | what depth is compared with |
# | L layers | depth, and with it parameters and time (`--n_layers`, 4) |
# | 1 layer looped L times | depth and time, without parameters |
# | 1 wide layer | as many parameters in its layer as the L layers have, without depth |
# | the same, read once | for tasks that say which tokens are the map (`map_tokens`) |
#
# **Equal steps, and equal time.** All arms train for as many steps. Where depth helps so, all of
# them also train for as long as the slowest takes: the time of three real steps is measured on this
# machine, and the faster arms get more steps.
#
# **Fair to the shallow.** Each arm's learning rate is chosen from three, by two seeds that are not
# reported. If the best of them is the lowest or the highest, one beyond it is tried, and another.
# Equal time uses the rate of equal steps.
#
# ## The verdicts
#
# A *difference* is the mean over seeds of one arm's accuracy minus another's, with the same seeds.
# Of losses, where lower is better, it is called a *gain*, and above 0 is better all the same.
# Its *interval* is Student's t of 99.3 %. It is looked at after 3, 5, 8, 12 and 20 seeds, and
# training stops when the verdict is decided.

# %%
widgets.table(("verdict", "its rule"), verdict.RULES.items())

# %% [markdown]
# *Within the margin*: the whole interval lies within ± `--margin` (0.05), and there are eight seeds
# or more. *Above 0*: the whole interval is above 0, and not within the margin. A difference that is
# surely there but surely small is no help. Chance is the task's own number for guessing or for its
# shortcut, whichever is higher, else the share of the commonest answer. Rows without answers are
# judged by validation loss, in nats, with the same margin; there *nobody learned it* and *too easy*
# do not occur.
#
# ## How you would know
#
# Five intervals of 99.3 % are wrong in at most 3.5 % of cases together, by Bonferroni's inequality.
# That is true of normal outcomes. Training is often "learned or not", and no t interval is made for
# that: if both arms learn with every second seed, three seeds all favour one of them in 3.1 % of
# cases. So the rule is tried on outcomes whose truth is known. The cell below gives 2,000 verdicts
# for each truth, with the same function that the command calls. A verdict is wrong if it says what
# is not so; `undecided` is not wrong.

# %%
rows = []
for truth, (_, _, words) in verdict.TRUTHS.items():
    counts = verdict.simulate(truth, 2000)
    wrong = verdict.wrong(truth, counts)
    assert truth not in verdict.SIX or wrong <= 0.05, truth
    said = [(counts[each], each) for each in verdict.DECISIONS if counts[each] >= 20]
    shown = ", ".join(f"{each} {n / 2000:.0%}" for n, each in sorted(said, reverse=True))
    rows.append([truth, words, f"{wrong:.1%}", f"{counts['seeds']:.1f}", shown])
widgets.table(("truth", "outcomes", "wrong", "seeds, mean", "verdicts"), rows)

# %% [markdown]
# The first six are what the rule is held to: at most 5 % wrong. The others show what it finds where
# something is there, and one limit. **A rare failure is not seen.** Where one layer fails with a
# fifth of the seeds and L layers never do, eight seeds are alike in a sixth of all cases, and the
# verdict is then *no difference*. No rule can know better from eight seeds: they only show that
# seeds unlike them are at most 31 % of all (with 95 % confidence). So the text says how many may be
# unlike.
#
# Three simpler or stronger rules were looked at. Five intervals of 99 % are wrong in up to 5.4 % of
# comparisons of "learned or not". A sign-flip test is exact for any outcomes, but with three seeds
# its p is never below 0.25, and with five never below 0.06: it decides nothing before eight. A
# betting interval for bounded means (Waudby-Smith and Ramdas 2023) is exact at any time, but needs
# eight seeds for a difference of 0.6, twenty for 0.2, and more than seventy to say that there is
# none.
#
# Each question is asked only if the one before was *above 0*, so the error does not add up.
#
# ## Time
#
# Before it starts, the command says how many runs there are at most, how long they take here and
# the memory of one. `--budget 20m` fits into a time: first fewer seeds, then half the steps, then
# half the width, then a quarter of the steps. It says what it changed, or that the time cannot hold
# five seeds. Where the machine turns out slower, training ends with the time, and the last look is
# the answer. `--dry_run` says this and trains nothing. `--jobs 2` trains two runs at a time.
#
# Ctrl-C keeps everything, and the same command goes on. Runs lie in `verdicts/NAME/runs` and are
# runs like any other: `--runs --out_dir verdicts/NAME` lists them.
#
# ## The page
#
# `verdicts/NAME` holds `verdict.html`, which opens offline: the verdict, the arms as points with
# intervals, curves, what was tuned, what would change the verdict, and every run with its command.
# `verdict.txt` is the whole as text to paste into an issue, and `verdict.json` the numbers. In
# Python:
#
# ```python
# import minidepth_lab
#
# found = minidepth_lab.verdict("icqa", steps=500, budget="20m")
# print(found.decision, found.differences["deep - one"], len(found.runs))
# found.figure().savefig("arms.png")
# ```
#
# ## Two groups of runs
#
# ```
# python train.py --compare "runs/new_seed-*" "runs/old_seed-*" --json
# ```
#
# asks whether the first group is better, by the same rule: *keep* if it is above 0, *discard* if it
# is below 0 or within the margin, else *undecided: about n more seeds*. The exit status is 0, 1 or
# 3, so that a script can obey it; 2 is an error. A group is a folder that holds runs, or a pattern
# in quotes, of one setting with a run for each seed. Only seeds that both have are compared. A rule
# that is asked after every new seed is wrong more often than it says: ask after 3, 5, 8, 12 and 20.
#
# ## What is refused
#
# One line, before any run: a test whose answer is always the same; a test that training repeats
# (unless `--repeats` is given, as for `memorize`, which is about recall); chance so high that no
# difference as large as the margin fits above it; a test with fewer than 1 / (4 margin²) problems,
# which is 100 for a margin of 0.05.
#
# ## A map of other people's tasks
#
# Small verdicts, each one command, of tasks of this project and of reasoning-gym (`rg:`), which are
# in words and have 300 steps. **"Nobody learned it" says that no arm did in so short a training,
# not that depth cannot help.**

# %%
_, axes = plt.subplots(figsize=(7.5, 0.3 * len(verdicts) + 1.5), layout="constrained")
verdict_map.draw(axes)
plt.show()

# %% [markdown]
# What to see: each line is a task, each colour an arm; tasks of one verdict stand together. *No
# difference* is none larger than the margin. **Where depth helps, the same layer looped is better
# than once, in the mean of every such task. One wide layer never comes a fifth of the way to four
# layers.** Chance is the best that we know without following anything. In `depo` four layers are
# little above it: who strikes out the names that have been answers already is nearly as good. We
# did not know that when the verdict was made.

# %% tags=["hide"]
for kept in (each for each in verdicts.values() if each["decision"] == verdict.HELPS):
    one, wide, looped, deep = (
        kept["arms"][arm]["steps"]["mean"] for arm in ("one", "wide", "looped", "deep")
    )
    assert looped > one and wide - one < (deep - one) / 5, kept["name"]
depo = verdicts["depo"]
assert 0.03 < depo["arms"]["deep"]["steps"]["mean"] - verdict_map.chance_of(depo) < 0.07
assert verdict_map.chance_of(depo) > depo["judged_by"]["chance"]

# %%
for kind in ("reasoning-gym", "ours"):
    by_verdict = {}
    for name, kept in verdicts.items():
        if name.startswith("rg_") == (kind == "reasoning-gym"):
            by_verdict.setdefault(kept["decision"], []).append(name.removeprefix("rg_"))
    print(kind)
    for decision, names in sorted(by_verdict.items()):
        print(f"  {decision}: {len(names)} ({', '.join(names)})")

# %% [markdown]
# What was predicted was written before the runs:

# %%
print(", ".join(f"{len(names)} {kind}" for kind, names in verdict_map.tally().items()))
widgets.table(verdict_map.HEADS, verdict_map.rows())

# %% [markdown]
# ## What is known of the tasks

# %%
widgets.table(("tasks", "depth that is known or was found", "source"), verdict_map.KNOWN)

# %% [markdown]
# What was measured here: [pointers and reachability](../tutorials/depth_map.md), [rings](
# ../tutorials/4_walking.md), [k-hop and templates](../tutorials/depth_map.md#thresholds).
