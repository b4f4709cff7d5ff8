# %% [markdown]
# # Ask the models
#
# **Give a problem of your own to a model of one layer and to one of twelve, and see where each of
# them looked while it wrote its answer.** They run here, in your browser: 0.66 MB are loaded, and
# nothing that you do leaves the page.
#
# Both models were trained on a CPU, on the same problems in the same order for the same number of
# steps, by `python train.py --n_layers 12` and `--n_layers 1`. Compose a problem, or have one drawn
# at random, and let both models answer; the first problem is answered at once. (▸ is the token that
# begins a turn, ■ the one that ends it.)
#
# <div class="widget ask-the-models" data-models="../../results/ask/weights"><p>This part needs
# JavaScript. The same answers from Python are below.</p></div>
# <script type="module" src="../../assets/ask.js"></script>
#
# Things to try:
#
# - Ask about a sum (a *chain*), a ring (a *lookup*) and a line of letters (an *ordering*). The
#   model of twelve layers answers nearly all such problems. The model of one layer writes in the
#   right form, but what it writes is mostly a guess. (Trained for as much CPU time as twelve
#   layers, one layer learns sums, too: [equal time](7_equal_time.md).)
# - Choose a token that the model of twelve layers wrote, and see where one of the layers looked to
#   write it. Move the slider to see the others: most layers look elsewhere.
# - Ask for four hops around a ring. Training never asks for four, and twelve layers were wrong in
#   all twenty that we tried (exercise 3).
#
# ## The same from Python
#
# The models are stored in half precision, each in the folder of its run, so that the page and
# Python read the same files.

# %%
import re

import matplotlib.pyplot as plt
import torch

import minidepth as md
from minidepth_lab.keep import checkpoints
from minidepth_lab.measure import inspect, results, sampling
from minidepth_lab.rows import to_data
from minidepth_lab.show import figures
from minidepth_lab.studies import budget
from minidepth_site import exercises, widgets

names = {1: "1 layer", 12: "12 layers"}
ids = {L: name.replace(" ", "-") for L, name in names.items()}
folders = {L: results.weights("ask", run_id) for L, run_id in ids.items()}
runs = {L: results.runs("ask", n_layers=L)[0] for L in names}
models = {L: checkpoints.load(folder)[0] for L, folder in folders.items()}
_, tokenizer = checkpoints.load(folders[12])
rows = []
for L, folder in folders.items():
    run = runs[L]
    size = (folder / "model.safetensors").stat().st_size
    share = f"{100 * run['accuracy']:.1f} %"
    rows.append((names[L], f"{run['params_total']:,}", f"{size / 1e6:.2f}", share))
widgets.table(("model", "parameters", "MB", "right after training"), rows)

# %% [markdown]
# Right is the share of 600 held-out problems. Here are three of them, one of each family, and what
# the models say. The likeliest token is taken each time, so the answers are always the same.

# %%
problems = [to_data.problem_of(row) for row in md.embedded_rows(600, held_out=True)]
some = problems[3:6]  # of two steps
answers_of = sampling.answer_texts
said = {L: answers_of(model, tokenizer, some) for L, model in models.items()}
for number, problem in enumerate(some):
    print(problem["messages"][0]["content"])
    for L in models:
        right = md.final_answer(said[L][number]) == problem["answer"]
        text = said[L][number].replace("\n", " ")
        print(f"  {names[L]:9} {text} {'✓' if right else '✗'}")

# %% [markdown]
# Half precision rounds every weight to about three digits. To see what that costs, we ask the first
# 60 of the 600 problems again and compare with the log of the training, which says which of them
# were answered right before the rounding.

# %%
again, rows = {}, []
for L, run in runs.items():
    logged = [int(each) for each in run["answers"][:60]]
    right = sampling.answers_right(models[L], tokenizer, problems[:60])
    again[L] = sum(a == b for a, b in zip(right, logged))
    rows.append((names[L], f"{sum(right):.0f}", sum(logged), again[L]))
widgets.table(("of 60 problems", "right now", "in the log", "alike"), rows)

# %% [markdown]
# ## Where it looks while it writes
#
# Take the lookup among these problems. For each token that the model of twelve layers writes, we
# ask all 48 heads how much weight they put on each token of the question, and keep the head that
# puts the most on a single one.

# %%
lookup = some[1]
prompt = md.prompt_ids(tokenizer, lookup["messages"])
tokens = prompt + tokenizer.encode(said[12][1], add_special_tokens=False)
maps = inspect.attention_maps(models[12], torch.tensor([tokens]))
maps = torch.cat(maps)  # (L, H, T, T)
first, last = 3, len(prompt) - 5  # the question without the marks around it
words = [tokenizer.decode([token]).strip() or "⏎" for token in tokens]
rows = range(len(prompt) - 1, len(tokens) - 1)  # each row writes the token after it
sharpest = torch.stack([maps[:, :, row, first:last].flatten(0, 1) for row in rows])
best = sharpest.amax(2).argmax(1)  # of each row, the head
seen = torch.stack([sharpest[i, head] for i, head in enumerate(best)])
H = maps.size(1)
rows = []
for word, head, weights in zip(words[len(prompt) :], best.tolist(), seen):
    at = words[first + weights.argmax().item()]
    share = f"{100 * weights.max():.0f} %"
    rows.append((word, head // H + 1, head % H + 1, at, share))
widgets.table(("writing", "layer", "head", "looked at", "attention"), rows)

# %%
figure = plt.figure(figsize=(4.6, 3.8))
plt.imshow(seen, cmap=figures.ground(), vmin=0, vmax=1, aspect="auto")
plt.xticks(range(last - first), words[first:last], rotation=90)
plt.yticks(range(len(rows)), words[len(prompt) :])
plt.xlabel("token of the question")
plt.ylabel("token that is written")
plt.title("each hop of the walk is looked up\nin the question")
plt.show()

# %% [markdown]
# What to see: for each of the three letters of the walk there is one dark cell, on that letter in
# the question. All three are found by the same head, in the second layer. The answer at the end
# looks at the question less sharply: by then it already stands in the written steps. Each row shows
# the attention of one head, the sharpest of the 48, chosen after the fact, and for one problem (n =
# 1). So this is an illustration, not a measurement. [Looking inside](inside.md) measures.
#
# ## The same model in another language
#
# [minidepth.js](../assets/minidepth.js) is the whole program of the box above: it reads the files,
# splits text into tokens, runs the model and chooses words, in some 200 lines and without a
# library. This is its forward pass:
#
# ```js
#   /** One more token → {attention: by layer and head, the weight on each token so far, states: the
#       residual stream before the first loop and after each}. The cache grows by this token. */
#   forward(token, cache) {
#     const place = cache[0].qkv.length
#     const embedded = this.embed(token, place)
#     const kept = place < (this.config.loop_keeps ?? 0)
#     const attention = []
#     const states = [embedded]
#     while (attention.length < cache.length) {
#       const its = cache.slice(attention.length, attention.length + this.config.n_layers)
#       const again = kept && states.length > 2 // as in the second loop
#       const { x, looked } = again
#         ? repeat(its, cache, attention)
#         : this.loop(states.at(-1), embedded, its)
#       states.push(kept && states.length > 1 ? states[1] : x) // it stays as the first loop left it
#       attention.push(...looked)
#     }
#     return { attention, states }
#   }
#
#   /** A token at its place → what the residual stream begins with. */
#   embed(token, place) {
#     const w = this.weights
#     const where = row(w["position_embedding.weight"], place)
#     return add(row(w["token_embedding.weight"], token), where)
#   }
#
#   /** A token's stream through all layers once → {x: the stream then, looked: its attention}. */
#   loop(x, embedded, cache) {
#     x = this.startOfLoop(x, embedded)
#     const looked = this.heads.map((heads, layer) => {
#       const { y, byHead } = this.attend(`blocks.${layer}`, heads, x, cache[layer])
#       x = add(x, y) // the residual stream: a layer only adds to it
#       return byHead
#     })
#     return { x, looked }
#   }
# ```
#
# Compare it with `GPT.hidden()` in [the library](../reference/api.md#minidepth.GPT.hidden). Three
# things differ. The Python takes all tokens of many conversations at once; here, one token follows
# another. The Python has no loop over heads, because a tensor has an axis for them. And the Python
# can also learn; in JavaScript that is [a file of its own](../reference/javascript.md). A test
# compares the two programs. On twelve problems the logits differ by less than 0.001 and the answers
# are the same, token by token.

# %%
shares = {L: run["accuracy"] for L, run in runs.items()}
assert shares[12] > 0.95 and shares[1] < 0.4
assert min(again.values()) >= 58  # of 60
assert [md.final_answer(text) == p["answer"] for text, p in zip(said[12], some)] == [True] * 3
walk = [i for i, word in enumerate(words[len(prompt) :]) if word in "abcdefghij"][:3]
assert [words[first + seen[i].argmax()] for i in walk] == "j f d".split()
assert {best[i].item() for i in walk} == {1 * H + 2}  # layer 2, head 3, counted from 1
assert min(seen[i].max() for i in walk) > 0.8 > 0.5 > seen[-1].max()

# %% [markdown]
# ## Exercises
#
# 1. Find a sum of one addition that the model of one layer gets wrong, and write it as in `From 7
#    add 5 modulo 10 ?`: a digit, then a number from 1 to 9.

# %% tags=["exercise"]
question = ...  # such as "From 7 add 5 modulo 10 ?"

# %% [markdown] tags=["hint"]
# Try some in the box at the top of this page. It answers at once.

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
# 2. There are only 90 such sums. Give all of them to both models: those that training held out, and
#    those that it did not. What does one layer do with those that it has seen?

# %% [markdown] tags=["hint"]
# `minidepth.is_held_out(question, 90)` says whether training left a sum out.

# %% [markdown] tags=["answer"]
# One layer answers more than half of the sums that it was asked in training, and hardly any of the
# 46 others, though all 90 occur in training as steps of longer chains. Twelve layers answer nearly
# all 90: what they learned as a step of a longer chain, they can also answer when it is asked by
# itself. One layer can do this too, if it [trains for as long as twelve](7_equal_time.md): it then
# answers more than 0.8 of the held-out sums, in six runs of six.

# %% tags=["answer"]
from minidepth import is_held_out  # noqa: E402

sums = {"seen in training": [], "held out": []}
for value in range(10):
    for add in range(1, 10):
        question = f"From {value} add {add} modulo 10 ?"
        where = "held out" if is_held_out(question, 90) else "seen in training"
        turns = [dict(role="user", content=question)]
        sums[where].append(dict(messages=turns, answer=str((value + add) % 10)))
answered, rows = {}, []
for where, those in sums.items():
    for L in models:
        answered[L, where] = int(sum(sampling.answers_right(models[L], tokenizer, those)))
        rows.append((names[L], where, f"{answered[L, where]} of {len(those)}"))
widgets.table(("model", "sums", "right"), rows)
assert answered[1, "held out"] <= 2 and 23 <= answered[1, "seen in training"] <= 30
assert answered[12, "held out"] >= 45 and answered[12, "seen in training"] >= 43
for_longer = [run["accuracy_by_problem"]["chain 1"] for run in budget.stored()["1 layer"]]
assert len(for_longer) == 6 and min(for_longer) > 0.8

# %% [markdown]
# 3. Ask twelve layers for four hops around a ring. Which hop of the answer is the first wrong one?

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

# %% [markdown]
# 4. To run: train two layers with `python train.py --n_layers 2`. Which families does it answer:
#    those that one layer answers, those that twelve layers answer, or neither? [Equal
#    time](7_equal_time.md) trains two layers for as long as twelve.
