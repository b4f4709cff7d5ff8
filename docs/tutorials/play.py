# %% [markdown]
# # Play
#
# **Train one attention layer in this page: looped, it learns to walk along a ring, a hop for each
# loop after the first. Looped on, it loses its way. Let it read the ring once, and it goes on.**
# All boxes run here; nothing that you do leaves the page.
#
# ## Train a walk
#
# Eight letters form a ring, and the model is told which letter follows which. To *loop* a layer is
# to apply it several times. After the second loop it should be at the letter one hop on, after the
# third loop two hops on, and so on. A longer walk is asked for when the shorter one is learned.
# **Guess first:** trained with four loops to three hops, at how many hops will it be lost?

# %% tags=["hide"]
import dataclasses
import re

import torch

import minidepth as md
from minidepth_lab.base import configs
from minidepth_lab.keep import checkpoints
from minidepth_lab.measure import results, sampling
from minidepth_lab.models import variants
from minidepth_lab.rows import to_data
from minidepth_lab.studies import budget
from minidepth_lab.tasks import TASKS
from minidepth_lab.tasks.walk import by_hops
from minidepth_site import exercises, widgets

NO_SCRIPT = "This part needs JavaScript. The same training in PyTorch is below."
widgets.show("loops", None, NO_SCRIPT)

# %% [markdown]
# **Then tick *read once* and train the same seed again.** The pairs stay as the first loop leaves
# them, and only the questions go on. What do you expect at a hundred hops, which are twelve times
# round this ring and four hops? Both curves stay in the box. (With two or three loops reading
# once fails here.)
#
# ## One layer or two
#
# Each example shows eight pairs of a question and its answer, such as `q3 a7`, and then asks one of
# the questions: `q3`? The pairs are drawn anew each time, so knowing them by heart does not help.
# **Predict first:** will one layer learn it, or two layers, or both?

# %% tags=["hide"]
widgets.show("train", None, NO_SCRIPT)

# %% [markdown]
# Two layers seem to learn nothing for a while, and then rise within some twenty steps. At that
# moment the lines change. In layer 1 each answer looks at the question before it; in layer 2 the
# last question looks at the answer that now carries its name. One layer has no second look, and its
# lines stay a fan. [One look or two](3_one_look_or_two.md) says why. When they have trained, switch
# heads off: which of them does the model need?
#
# ## Trained to eight hops, and looped on
#
# These were trained before, on rings of sixteen letters. One begins each loop with its state
# normalised and the input added again. The other lacks the input, and gets lost. Then keep the
# pairs as they are after the loops of training, and loop it on once more. [A thousand
# hops](thousand_hops.md) has all runs.

# %% tags=["hide"]
without = "This part needs JavaScript. The page that is linked above has figures of these runs."
widgets.show("further", widgets.further(), without)

# %% [markdown]
# ## Ask a ring
#
# One layer, looped five times, is asked for one to four hops, as on the home page. This box also
# takes a run of your own: `python train.py --preset ring --n_layers 1 --n_loops 3` makes one.

# %% tags=["hide"]
widgets.show("walk", *widgets.walk(own=True))

# %% [markdown]
# ## Ask models that write their steps
#
# One layer, two and twelve were trained on the same problems in the same order for the same number
# of steps, by `python train.py --n_layers 1 2 12 --seed 0`. Compose a problem or have one drawn,
# and let all three answer. Then choose a token that one of them wrote, and see where it looked.
# (▸ begins a turn, ■ ends it.)
#
# <div class="widget ask-the-models" data-models="../../results/ask/weights"><p>This part needs
# JavaScript. Exercise 3 asks the same models from Python.</p></div>
# <script type="module" src="../../assets/ask.js"></script>
#
# - Twelve layers answer nearly all such problems, sums (a *chain*), rings (a *lookup*) and lines of
#   letters (an *ordering*). Two layers answer rings and lines, but not sums. One layer writes in
#   the right form, and mostly guesses.
# - Ask for four hops around a ring: training never did, and twelve layers were wrong in all twenty
#   that we tried (exercise 5).

# %% tags=["hide"]
models, rows = {}, []
for L, name in ((1, "1-layer"), (2, "2-layers"), (12, "12-layers")):
    folder = results.weights("ask", name)
    (run,) = results.runs("ask", n_layers=L)
    models[L], tokenizer = checkpoints.load(folder)
    size = (folder / "model.safetensors").stat().st_size
    share = f"{100 * run['accuracy']:.1f} %"
    rows.append((name.replace("-", " "), f"{run['params_total']:,}", f"{size / 1e6:.2f}", share))
widgets.table(("model", "parameters", "MB", "right, of 600 problems"), rows)

# %% [markdown]
# ## The same training in PyTorch
#
# All that trains here is [a program in JavaScript](../reference/javascript.md) that you can read in
# a sitting. This is the second box once more, with the model of `minidepth.py`: 150 steps of 24
# sequences.

# %%
task = TASKS["icqa"]
size = dict(vocab_size=32, block_size=24, d_model=64, n_heads=2, d_ff=0)
size |= dict(dropout=0.0, tie_weights=False, init_std=0.1)
recipe = dict(steps=150, lr=5e-3, warmup_steps=20, beta1=0.7, weight_decay=0.0)
recipe = configs.TrainConfig(**recipe)
test_tokens, test_targets = task.draw(50, md.generator("test"))
asked = test_targets != -100


def take_step(step, model, optimizer, recipe, drawn):
    """→ the mean loss before the step"""
    for group in optimizer.param_groups:
        group["lr"] = md.lr_at(step, recipe)
    loss_sum, n = model(*drawn)
    loss = loss_sum.sum() / n.sum()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.grad_clip)
    optimizer.step()
    optimizer.zero_grad()
    return loss.item()


def train(n_layers, seed):
    """→ the share of the test's questions that are right at the end"""
    torch.manual_seed(seed)
    model = variants.GPT(configs.ModelConfig(n_layers=n_layers, **size))
    optimizer = md.make_optimizer(model, recipe)
    for step in range(recipe.steps):
        drawn = task.draw(24, md.generator(seed, step))
        take_step(step, model, optimizer, recipe, drawn)
    with torch.no_grad():
        answers = model(test_tokens).argmax(-1)
    return (answers == test_targets)[asked].float().mean().item()


right = {n: [train(n, seed) for seed in (1, 2, 3)] for n in (1, 2)}
rows = []
for n, name in ((1, "one layer"), (2, "two layers")):
    rows.append((name, *(f"{share:.3f}" for share in right[n])))
widgets.table(("right answers", "seed 1", "seed 2", "seed 3"), rows)

# %%
assert min(right[2]) >= 0.95 and max(right[1]) <= 0.2
accuracies = {L: results.runs("ask", n_layers=L)[0]["accuracy"] for L in models}
assert accuracies[12] > 0.95 and accuracies[1] < 0.4
two = results.runs("ask", n_layers=2)[0]["accuracy_by_family"]
assert min(two["lookup"], two["order"]) > 0.98 and two["chain"] < 0.2

# %% [markdown]
# And this is the first box: four loops, trained to three hops, first with pairs that change and
# then with *read once*. Far beyond it is tested over a whole round of the ring, and the worst of
# these lengths is shown.

# %%
ring = TASKS["walk"]
looped = size | dict(vocab_size=16, d_model=32, n_heads=4, n_layers=1)
looped |= dict(n_loops=4, loop_start="recall")
longer = dataclasses.replace(recipe, steps=500, lr=1.2e-2)
# once round, but for 96: that is the question's own letter
ROUND = (93, 94, 95, 97, 98, 99, 100)


def train_walker(loop_keeps, seed):
    """→ {hops: the share of questions that are right, the least of these hops}"""
    torch.manual_seed(seed)
    model = variants.GPT(configs.ModelConfig(loop_keeps=loop_keeps, **looped))
    optimizer, hops = md.make_optimizer(model, longer), 1
    for step in range(longer.steps):
        drawn = ring.draw(16, md.generator(seed, step), ring=8, hops=3, asked=hops)
        loss = take_step(step, model, optimizer, longer, drawn)
        if hops < 3 and loss * hops < 0.5:
            hops += 1
    tokens, _ = ring.draw(50, md.generator("test"), test=True, ring=8, hops=3)
    shares = by_hops(model, tokens, 8, (3, *ROUND))
    return {"3": shares[3], "93 to 100": min(shares[n] for n in ROUND)}


walked, rows = {}, []
for loop_keeps, name in ((0, "pairs that change"), (16, "read once")):
    walked[name] = [train_walker(loop_keeps, seed) for seed in (1, 2)]
    for hops in walked[name][0]:
        shares = (f"{share[hops]:.2f}" for share in walked[name])
        rows.append((f"{name}, {hops} hops", *shares))
widgets.table(("right answers", "seed 1", "seed 2"), rows)

# %% [markdown]
# **With *read once* both go on, right at 0.95 or better. With pairs that change neither does**,
# though both know their three hops.

# %%
assert min(share for each in walked["read once"] for share in each.values()) >= 0.95
assert all(each["3"] > 0.97 > 0.6 > each["93 to 100"] for each in walked["pairs that change"])

# %% [markdown]
# ## Take the weights home
#
# The box offers the weights as a file, with the settings of the model. This reads it:
#
# ```python
# import json
#
# from safetensors import safe_open
# from safetensors.torch import load_file
#
# from minidepth_lab.base import configs
# from minidepth_lab.models import variants
#
# path = "minidepth-2-layers-seed-1.safetensors"
# with safe_open(path, "pt") as file:
#     config = configs.ModelConfig(**json.loads(file.metadata()["config"]))
# model = variants.GPT(config)
# model.load_state_dict(load_file(path))
# ```
#
# ## Exercises
#
# 1. (Easy, 5 minutes.) Train with three seeds of your own. At which step do two layers begin to
#    rise? Is it the same step for each seed?

# %% [markdown] tags=["hint"]
# Press *Another seed* and watch the curve of two layers. It has a point every ten steps.

# %% [markdown] tags=["answer"]
# It differs by some tens of steps. The rise itself is short in each run: until both layers do their
# part, neither is of use, so there is little to gain by learning half of it.

# %% [markdown]
# 2. (Medium, 5 minutes.) One layer ends near one in eight, not near one in sixteen, though there
#    are sixteen answers. What has it learned? And at which share would it end if each question
#    showed five pairs?

# %% tags=["exercise"]
share = ...  # of right answers that one layer would give

# %% [markdown] tags=["hint"]
# How many answers does a question show?

# %% [markdown] tags=["answer"]
# It says one of the answers that were shown: it can look at all of them, but not tell which of them
# stood behind its question. `TASKS["icqa"].chance()` gives both numbers, that of guessing and that
# of this shortcut.

# %% tags=["answer"]
guess, share = task.chance(pairs=5)
assert abs(sum(right[1]) / 3 - task.chance()[1]) < 0.05


# %% tags=["check"]
@exercises.check
def one_of_the_answers_shown():
    assert share != 1 / 16, "one in sixteen is guessing among all answers; which does it see?"
    assert share != 1 / 8, "one in eight is for eight pairs; here five are shown"
    assert abs(share - 1 / 5) < 0.001, f"{share} is not the share of one who names one of five"


# %% [markdown]
# 3. (Easy, 5 minutes.) Find a sum of one addition that the model of one layer gets wrong, and write
#    it as in `From 7 add 5 modulo 10 ?`: a digit, then a number from 1 to 9.

# %% tags=["exercise"]
question = ...  # such as "From 7 add 5 modulo 10 ?"

# %% [markdown] tags=["hint"]
# Try some in the box above. It answers at once.

# %% tags=["answer"]
question = "From 9 add 3 modulo 10 ?"


# %% tags=["check"]
@exercises.check
def one_layer_is_wrong():
    form = r"From (\d) add ([1-9]) modulo 10 \?"
    parts = re.fullmatch(form, question) if isinstance(question, str) else None
    assert parts, f"{question} is not written as: From 7 add 5 modulo 10 ?"
    turns = [dict(role="user", content=question)]
    [text] = sampling.answer_texts(models[1], tokenizer, [dict(messages=turns)])
    said, right = md.final_answer(text), str(sum(map(int, parts.groups())) % 10)
    assert said != right, f"one layer says {said}, and that is right; try another sum"


# %% [markdown]
# 4. (Medium, 15 minutes.) There are only 90 such sums. Give all of them to one layer and to twelve:
#    those that training held out, and those that it did not. What does one layer do with those that
#    it has seen?

# %% [markdown] tags=["hint"]
# `minidepth.is_held_out(question, 90)` says whether training left a sum out.

# %% [markdown] tags=["answer"]
# One layer answers more than half of the sums that it was asked in training, and hardly any of the
# 46 others, though all 90 occur in training as steps of longer chains. Twelve layers answer nearly
# all 90: what they learned as a step of a longer chain, they can also answer when it is asked by
# itself. One layer can do this too, if it [trains for as long as twelve](7_equal_time.md): it then
# answers more than 0.8 of the held-out sums, in six runs of six.

# %% tags=["answer"]
sums = {"seen in training": [], "held out": []}
for value in range(10):
    for add in range(1, 10):
        question = f"From {value} add {add} modulo 10 ?"
        where = "held out" if md.is_held_out(question, 90) else "seen in training"
        turns = [dict(role="user", content=question)]
        sums[where].append(dict(messages=turns, answer=str((value + add) % 10)))
answered, rows = {}, []
for where, those in sums.items():
    for L in (1, 12):
        answered[L, where] = int(sum(sampling.answers_right(models[L], tokenizer, those)))
        name = "1 layer" if L == 1 else "12 layers"
        rows.append((name, where, f"{answered[L, where]} of {len(those)}"))
widgets.table(("model", "sums", "right"), rows)
assert answered[1, "held out"] <= 2 and 23 <= answered[1, "seen in training"] <= 30
assert answered[12, "held out"] >= 45 and answered[12, "seen in training"] >= 43
for_longer = [run["accuracy_by_problem"]["chain 1"] for run in budget.stored()["1 layer"]]
assert len(for_longer) == 6 and min(for_longer) > 0.8

# %% [markdown]
# 5. (Medium, 10 minutes.) Ask twelve layers for four hops around a ring. Which hop of the answer is
#    the first wrong one?

# %% [markdown] tags=["hint"]
# Compare what it writes with the worked steps of the problem, letter by letter.

# %% [markdown] tags=["answer"]
# None is wrong. The model writes one or two right hops and then stops, as if it had been asked for
# one or two. It can follow the ring, but it has never been asked for four hops and does not know
# how far to go.

# %% tags=["answer"]
four = [to_data.problem_of(row) for row in md.embedded_rows(20, True, (4,), families=("lookup",))]
walks, n_right = [], 0
for problem, text in zip(four, sampling.answer_texts(models[12], tokenizer, four)):
    n_right += md.final_answer(text) == problem["answer"]
    walk, wanted = (
        each.split("So ")[1].split("</think>")[0].split() for each in (text, problem["solution"])
    )
    walks.append((len(walk) - 1, walk == wanted[: len(walk)]))
for n in sorted({n for n, _ in walks}):
    some = [right for length, right in walks if length == n]
    hops = f"{n} hop{'s' * (n > 1)}"
    print(f"{hops} written in {len(some)} of 20 answers, all of them right in {sum(some)}")
assert sum(right for _, right in walks) >= 19 and {n for n, _ in walks} == {1, 2}
assert (n_right, len(walks)) == (0, 20)
