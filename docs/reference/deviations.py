"""# Deviations and status

For each of the five documents that this project started from: what was run as it was published,
what was run differently and why, and what has not been run yet. What the documents are is in
[citing](citing.md). What we expected of our own runs, and what came of it, is on a page of its own:
[predictions](predictions.md). Most numbers of this page are computed from the stored runs when the
site is built, and the build stops if a sentence no longer fits them.
"""

import csv
import dataclasses
import itertools
import json
import statistics

from minidepth_lab.base import configs
from minidepth_lab.keep import registry
from minidepth_lab.measure import judge, results
from minidepth_lab.models import variants
from minidepth_lab.studies import budget, depth, heads, reread


def values(groups, metric="accuracy"):
    """{name: its runs} → {name: the metric of each run}"""
    return {name: [run[metric] for run in runs] for name, runs in groups.items()}


def of_task(task):
    """{layers: the accuracies} of the stored runs of a depth task, which had their settings."""
    runs = [run for run in results.runs("tasks", data=task, n_loops=1) if run["grid"]]
    return values(results.by(runs, "n_layers"))


def shown(numbers):
    mean, half = results.interval(numbers)
    return f"{mean:.3f} ± {half:.3f}"


longer = [run["accuracy"] for run in budget.stored()["1 layer"]]
lines = [line for name in results.experiments() for line in results.lines_of(name)]
narrowest = registry.configs("llmini-c")[0].d_model  # of the models of the documents
widths = [line["model"]["d_model"] for line in lines]
widest = max(width for width in widths if width < narrowest)
at_size = [line for line, width in zip(lines, widths) if width >= narrowest]
assert widths.count(504) == 10 and widest == 210
of_report = results.runs("report")
on_card = [line for line in lines if "NVIDIA" in line["device"]]
assert (len(at_size), len(of_report)) == (95, 22), (
    "more runs of a published size are stored now than docs/reference/deviations.py tells"
)
assert len(on_card) == 177 and all("H100" in line["device"] for line in on_card)

print(__doc__)
print(f"""
**The report's pair has been repeated at its own size, on other text and with three seeds each**
([the logs](../tutorials/report.md)), and so has
[the experiment with heads](../tutorials/heads.md), scaled and unscaled. LLmini's
three models, and C with one thing changed at a time, were trained for three passes over a fifth of
its text, most with two seeds ([scale](../tutorials/scale.md)). The sizes of Chen & Zou are not
known to us. Of {len(lines)} finished runs that are stored here {len(on_card)} were trained on a
lent H100 and the others on a CPU. The narrowest of the published models is {narrowest} wide;
{len(at_size)} of our runs are as wide or wider, and all others at most {widest}. (Some of the
{len(at_size)} have no published size, such as one layer of width 504.)
""")

# ---------- the report ----------

m, t = configs.make("report")
totals = [variants.parameters(dataclasses.replace(m, n_layers=n))["total"] for n in (1, 12)]
assert [round(n / 1e6, 2) for n in totals] == [60.21, 79.69]
assert (m.d_model, m.d_ff, m.heads[0], m.dropout, m.tie_weights) == (384, 1536, 8, 0.1, True)
assert (t.beta1, t.beta2, t.weight_decay, t.lr, t.warmup_steps) == (0.9, 0.95, 0.1, 3e-4, 50)
assert (t.batch_size, m.block_size, t.steps, t.grad_clip, t.eval_every) == (16, 512, 500, 1.0, 25)
assert (t.lr_floor, t.loss_on, t.packing, t.val_fraction, t.seed) == (0.1, "all", "pack", 0.05, 0)
eleven, biases = totals[1] - totals[0], 11 * (5 * m.d_model + m.d_ff)
assert round(eleven / 1e6, 2) == round(79.69 - 60.21, 2) < round((eleven + biases) / 1e6, 2)
first_runs = results.runs("first-run", seed=range(120, 140))  # seed 0 is the run of the README
deep, flat = (values(results.by(first_runs, "n_layers"))[n] for n in (12, 1))
assert len(deep) == len(flat) == 20 and min(deep) >= 0.95
small, _ = configs.make("laptop")
assert (small.d_model, small.d_ff, small.dropout) == (64, 0, 0)

again, apart = reread.stored(**reread.FIRST), {}
for times in (20, 80):
    ends = [[run["val_loss"] for run in again[times, model]] for model in ("1 layer", "12 layers")]
    assert [len(group) for group in ends] == [5, 5]
    apart[times] = statistics.mean(ends[1]) - statistics.mean(ends[0])
assert apart[20] < 0 < apart[80]

at_its_size = judge.named_runs("report")
ends = values(at_its_size, "val_loss")
apart_at_size = [a - b for a, b in zip(ends["1 layer"], ends["12 layers"])]
assert len(apart_at_size) == 3 and min(apart_at_size) > 0
pair_gap = statistics.mean(apart_at_size)
mean_of = {name: statistics.mean(losses) for name, losses in ends.items()}
by_loops = mean_of["1 layer"] - mean_of["1 layer, 12 times"]
further = mean_of["1 layer, 12 times"] - mean_of["12 layers"]
kinds = ["1 layer", *(f"{n} layers" for n in (2, 4, 8, 12))]
fit_of = values(at_its_size, "train_loss_eval")
fit_by_depth = [statistics.mean(fit_of[name]) for name in kinds]
assert fit_by_depth[:4] == sorted(fit_by_depth[:4], reverse=True)
own_rate = judge.named_runs("report-tuned")
gains = [
    once["best_val_loss"] - looped["best_val_loss"]
    for once, looped in zip(own_rate["1 layer"], own_rate["1 layer, 12 times"])
]
mean, half = results.interval(gains)
assert len(gains) == 3 and 0 < mean < half and by_loops < mean + half + 0.005
shown_gain = f"{mean:.2f} ± {half:.2f}"
flat_log, deep_log = (results.published(f"report_log_{n}_layers")[-1] for n in (1, 12))
published_gap = deep_log["val_loss"] - flat_log["val_loss"]
wide_runs = at_its_size["1 layer, wide"]
assert len(wide_runs) == 3
for wide_run, twelve_run in zip(wide_runs, at_its_size["12 layers"]):
    assert wide_run["train_loss_eval"] < twelve_run["train_loss_eval"]
    assert wide_run["val_loss"] > twelve_run["val_loss"]

print(f"""## The report: one layer against twelve

### As published

1. **The models.** The preset `report` has {totals[0]:,} parameters with one layer and
   {totals[1]:,} with twelve, the published 60.21 and 79.69 million
   ([counted by hand](../tutorials/0_model.md)).
2. **The settings of training**: AdamW, its decay and betas, the peak rate, 50 steps of warm-up and
   a cosine to a tenth, 500 steps of 16 × 512 tokens, clipping at 1.0. The learning rate agrees with
   all 42 published values ([the architecture](../tutorials/0_model.md#a-step-of-training)).
3. **What is logged**: the loss of one batch and a validation loss, every 25 steps, in the same
   format.

### Differently, and why

1. **{m.vocab_size:,} words and {m.block_size} positions**, where the report's table says 151,936
   and 1,028. Only with these do its own totals come out.
2. **No biases** in the linear maps. The report does not say; {eleven / 1e6:.2f} million parameters
   for eleven layers leave no room for them.
3. **The text.** How a conversation became text is not stated. Ours is ChatML, packed end to end,
   with 5 % of the rows held out. We have not seen a row of the data set itself.
4. **Where dropout acts.** The report gives its rate, not its places. Ours acts on embeddings,
   attention weights, and the outputs of attention and feed-forward part.
5. **Tokens per epoch.** With 25 steps per epoch, 16 × 512 tokens per step make
   {25 * 16 * 512:,} tokens, about half of the 420,000 that the report names. With 16 on each of
   two cards it would be {25 * 32 * 512:,}: then its numbers agree. Our runs have 16 a step.
6. **A smaller question was run as well**: problems with answers instead of conversations, twelve
   layers of width {small.d_model} without feed-forward part or dropout, and a loss on the
   assistant's turn alone. This needs no GPU and no network, and its answers can be checked. In all
   of twenty seeds twelve layers answer {min(deep):.3f} or more of the held-out problems, and one
   layer answers at most {max(flat):.3f}
   ([the runs](results.md#first-run)). That is in as many steps; in as much CPU time one
   layer answers {min(longer):.3f} to {max(longer):.3f}
   ([the controls](../tutorials/7_equal_time.md#at-equal-time)).
7. **Early, middle and late layers**, whose jobs the report guesses at: on models of our own, one of
   twelve layers and one of four (n = 1 each) ([layer by
   layer](../tutorials/depth_map.md#twelve-layers-on-the-embedded-problems)).
8. **Its conclusions** were checked against its own logs, and against the pair run again at its
   size: its settings, FP16, 770 conversations of the same form in place of its own, three seeds,
   one H100. There twelve layers end {pair_gap:.2f} nats *below* one layer on held-out text, with
   each of three seeds, where the published run ends {published_gap:.2f} above
   ([the logs](../tutorials/report.md)).
9. **Few conversations, read many times**, at a small size: 840 word problems at width 64. Read
   twenty times, twelve layers end {-apart[20]:.2f} nats per token below one layer on new text; with
   a quarter of the problems, read eighty times, they end {apart[80]:.2f} above it (n = 5 each),
   though at their best evaluation below. At the same training loss they predict new text better
   than one layer, on fresh seeds and at a constant learning rate as well ([the same text, twenty
   times](../tutorials/7_equal_time.md#the-same-text-twenty-times)).

### Not yet

1. **The published pair on its own data**: `python train.py --preset report --n_layers 1 12`. How to
   do it on Kaggle is [written down](../how-to/notebooks.md) and has not been done.
2. **Two T4s.** The half-precision loop has run on one H100. There DataParallel was given the same
   card twice, and two processes of torchrun shared it: the losses were those of one process, to
   0.0003 ([what was printed](../results/bench/printed.txt)). Two cards have not been tried.
3. **32 sequences a step, answers by likelihood, the inside of the pair, a layer with the weights of
   twelve**, at their size: prepared for [a lent
   GPU](../how-to/many_machines.md#a-gpu-for-minutes).
""")

# ---------- the article ----------

one = dataclasses.replace(m, n_layers=1)
asked = variants.parameters(dataclasses.replace(one, d_model=600, d_ff=2400))["total"]
wide = depth.width_matched(one, totals[1])
study = values(depth.stored())
params = values(depth.stored(), "params_total")
tuned = study.pop("1 wide layer, tuned")
losses = values(depth.swept(), "train_loss_eval")
assert list(losses) == [1, 2, 4, 8, 12]
assert {len(group) for group in [*study.values(), *losses.values(), tuned]} == {5}
falling = [statistics.mean(group) for group in losses.values()]
assert falling == sorted(falling, reverse=True)
looped, once = study["1 layer, 12 times"], study["1 layer"]
gap, half = results.interval([b - a for a, b in zip(once, looped)])
assert judge.paired(looped, once)[0] >= judge.PAIRED and min(looped) > max(once)
p = judge.permutation(looped, once)
pairs = itertools.combinations([*study.values(), tuned], 2)
corrected = judge.holm([judge.permutation(a, b) for a, b in pairs])
assert len(corrected) == 10 and f"{min(corrected):.3f}" == f"{10 * p:.3f}"

print(f"""## The article on the report

### As published

1. Its two runs are the report's.

### Differently, and why

1. **One wide layer.** The article proposes d_model ≈ 600. At the report's size that has
   {asked / 1e6:.1f} million parameters; {wide.d_model} matches, with
   {variants.parameters(wide)["total"] / 1e6:.2f}. Ours is at a small size: width 210, with
   {params["1 wide layer"][0]:,} parameters against {params["12 layers"][0]:,} in twelve layers. It
   answers {shown(study["1 wide layer"])}, and {shown(tuned)} with a learning rate and initial
   weights of its own; twelve layers answer {shown(study["12 layers"])} (n = 5 each;
   [the controls](../tutorials/7_equal_time.md#depth-or-parameters)). At the report's size, d_model
   504, it fits the training text better than twelve layers and predicts new text worse, in each of
   three seeds ([the report, run again](../tutorials/report.md)). With a
   learning rate chosen for each it again predicts new text worse, at the best evaluation, in each
   seed ([the same lesson](../tutorials/report.md#a-learning-rate-for-each)).
2. **The sweep over 1, 2, 4, 8 and 12 layers**, at width 64, with five seeds per depth. The article
   asks for training loss against depth: without dropout it falls from {falling[0]:.3f} with one
   layer to {falling[-1]:.3f} with twelve, in the mean. The page shows accuracy instead, because a
   loss cannot tell the form of an answer from a right one.
3. **A control that the article does not propose**: one layer looped twelve times, depth without
   parameters. At equal steps each of its runs answers more than each run of one layer without
   loops, by {gap:.3f} in the mean, paired 95 % interval {gap - half:+.3f} to {gap + half:+.3f},
   n = 5. By the exact permutation test p is {p:.4f} alone, but {10 * p:.3f} corrected for the ten
   comparisons of the five models (Holm), so five seeds do not decide it. At the report's size and
   learning rate it ends {by_loops:.2f} nats below one layer on new text, in each of three seeds,
   and twelve layers of their own a further {further:.2f} lower. With a rate of its own each, at the
   best evaluation, it is {shown_gain} below one layer, which shows no gain and cannot rule out most
   of the other.
4. **The sweep at the report's size** is run on other text. The training loss without dropout falls
   from {fit_by_depth[0]:.2f} with one layer to {fit_by_depth[3]:.2f} with eight, and is
   {fit_by_depth[4]:.2f} with twelve, in the mean of three seeds.

### Not yet

1. All of this **on the report's own conversations**, which we have not seen.
""")

# ---------- Chen & Zou ----------

grids = {name: of_task(name) for name in ("memorize", "icqa", "template", "icl_template")}
assert list(grids["memorize"]) == [1, 2] and list(grids["icl_template"]) == [2, 3]
assert list(grids["icqa"]) == list(grids["template"]) == [1, 2, 3]
assert [len(grids[name][2]) for name in grids] == [5, 5, 5, 3]
assert min(grids["memorize"][1]) >= 0.99 and min(grids["icqa"][2]) >= 0.99
assert max(grids["icqa"][1]) < 0.13 and max(grids["template"][1]) < 0.63
assert min(grids["template"][2]) >= 0.98 and max(grids["icl_template"][2]) < 0.48
with_hints = grids["icl_template"][3]
(without,) = results.runs("tasks", data="icl_template", hints=0)
assert list(of_task("khop")) == [2, 3, 4]

print(f"""## The notes on Chen & Zou

### As published

1. **The question and its four kinds of task**: how many attention layers does memorisation need,
   how many reasoning, generalisation, and generalisation in context? Our runs agree with the
   paper's 1, 2, 2 and 3 layers, with the reservations below
   ([Layer by layer](../tutorials/depth_map.md#thresholds)).

### Differently, and why

1. **The tasks are built anew.** The notes and the paper's abstract, all that we read, give no
   sizes, no optimizer and no accuracies. So sizes and training are ours, and no number of theirs is
   compared with ours.
2. **The depths that were run**: one and two layers on `memorize`; one, two and three on `icqa` and
   `template`; two and three on `icl_template`. There are five seeds each, three on `icl_template`.
3. **`icl_template` is learned with hints in training**: three layers then reach
   {min(with_hints):.3f} to {max(with_hints):.3f}. The one stored run without them ends at
   {without["accuracy"]:.3f}, which naming any of the three labels shown would reach.
4. **The checks that the notes propose** were made in part: width, by a wide single layer
   ([one look or two](../tutorials/3_one_look_or_two.md)); width and heads, on
   [one hop on a ring](../tutorials/4_walking.md#what-this-shows-and-what-it-does-not); and
   four layers and more, on `khop`, a task of Sanford, Hsu & Telgarsky, on
   [a map of depth](../tutorials/depth_map.md) and on [text](../tutorials/report.md).

### Not yet

1. One layer on `icl_template`.
2. The first four tasks with other numbers of heads.
3. A threshold of this kind on text that people wrote.
""")

# ---------- LLmini ----------

made = [registry.configs(f"llmini-{name}") for name in "abc"]
sizes = [variants.parameters(c)["total"] / 1e6 for c, _ in made]
for c, t in made:
    assert c.d_model == 64 * c.heads[0] and c.d_ff == 4 * c.d_model and c.block_size == 256
    assert (t.beta2, t.weight_decay, t.lr, t.batch_size, t.grad_accum) == (0.999, 0.05, 3e-4, 32, 2)
    assert (t.epochs, t.warmup_steps, t.seed) == (3, 0.1, 42) and t.decay_all
    assert t.sizes == ("stride=128", "texts=published") and len(t.data) == 11
    assert (c.dropout, c.residual_dropout, c.embedding_dropout) == (0.1, 0.3, 0.0)
    assert c.bias and c.init == "pytorch" and not c.tie_weights
corpus = json.loads((results.RESULTS / "llmini" / "data.json").read_text("utf-8"))
llmini_runs = judge.named_runs("llmini")
a, b, c = ([run["val_loss"] for run in llmini_runs[name]] for name in "ABC")
between = [more - less for pair in (zip(b, a), zip(c, b)) for more, less in pair]
assert len(between) == 4 and min(between) > 0
looked_at = [run["measured"] for name in "ABC" for run in llmini_runs[name]]
correlations = [each["correlation"]["counted"] for each in looked_at]
worth = max(each["pruned"]["most"] for each in looked_at)
aside = [each["written"]["written"] - each["written"]["bare"] for each in looked_at]
assert len(looked_at) == 6 and min(aside) > 0
from_c = {
    name: statistics.mean(
        one["val_loss"] - other["val_loss"]
        for one, other in zip(llmini_runs["C"], llmini_runs[name])
    )
    for name in ("A", "C, 10 layers", "C, width 384", "C, 8 heads", "C, rotary", "C, tied")
}
assert abs(from_c["C, 8 heads"]) < 0.001
(whose,) = results.runs("attention")
stats = whose["measured"]["attention"]
entropy = [statistics.mean(heads) for heads in stats["valid"]["entropy"]]
counted = [statistics.mean(heads) for heads in stats["count_masked"]["sparsity"]]
thirds = [statistics.mean(entropy[i : i + 4]) for i in (0, 4, 8)]
assert len(entropy) == 12 and thirds == sorted(thirds, reverse=True)
ends = values(results.by(results.runs("packing"), "packing", "steps"), "val_loss")
packed = ends["pack", 400], ends["pack", 265]
same_steps, same_text = ([a - b for a, b in zip(ends["pad", 400], each)] for each in packed)
assert len(same_steps) == 3 and min(same_steps) > 0 > max(same_text)

print(f"""## LLmini

### As published

1. **The three models**: the presets `llmini-a`, `-b` and `-c` have the published depth, width,
   heads and block, an untied head, and {sizes[0]:.1f}, {sizes[1]:.1f} and {sizes[2]:.1f} million
   parameters. LLmini prints no exact numbers of its own.
2. **The model and the training as its code has them**, where its text says otherwise: biases,
   PyTorch's initial weights, dropout 0.1 on attention weights, 0.3 on what layers add and none on
   embeddings, decay on all weights, end of text without a loss; AdamW, rates, 32 × 2 sequences per
   step, three passes, seed 42.
3. **The data as its code makes it**: eleven templates, the filter by length, windows of 257 tokens
   every 128 without the tail, a split over blocks. On the three sources that we have in full its
   own counts of tokens come out exactly: {corpus["table"]["gsm8k"]["tokens"]:,},
   {corpus["table"]["commonsense_qa"]["tokens"]:,} and
   {corpus["table"]["arc_challenge"]["tokens"]:,}.
4. **A, B and C, trained for three passes**, two seeds each, on a fifth of its text
   ([scale](../tutorials/scale.md)). In both seeds A ends below B, and B below C, by
   {min(between):.2f} to {max(between):.2f} nats.
5. **Entropy and sparsity** per layer and head, also with masked entries and padding counted, as in
   its tables, of all six runs. Over the heads of a model they correlate at
   {max(correlations):.2f} to {min(correlations):.2f}, as LLmini counts. The first layers look
   widest, later ones less, in each run.

### Differently, and why

1. **Masked entries are no keys.** LLmini counts them, so any causal model looks at least half
   sparse. Its table is corrected in [how to count
   attention](../tutorials/depth_map.md#how-to-count-attention).
2. **Both measures were taken on another model, too**, twelve layers of width 64 (n = 1). Counted as
   LLmini counts, the layers' sparsity is {min(counted):.2f} to {max(counted):.2f}. Their entropy is
   {min(entropy):.2f} to {max(entropy):.2f} nats; by thirds of the depth it is {thirds[0]:.2f},
   {thirds[1]:.2f} and {thirds[2]:.2f}. LLmini's models have their lowest entropies late in the
   middle, and the last layers rise again, as in most of our runs of them; this model's do not.
3. **Our other loaders** split rows before they cut them into blocks, and long rows keep their
   ends ([scale](../tutorials/scale.md) says why).
4. **Packing against padding**, on its list of future work, was run on GSM8K with four layers of
   width 64 and three seeds. At equal steps packing's validation loss is
   {statistics.mean(same_steps):.3f} nats lower, at equal text
   {-statistics.mean(same_text):.3f} higher ([results](results.md#packing)).
5. **One change at a time** from C towards A, which LLmini names as future work: A's width alone
   makes C {from_c["C, width 384"]:.2f} nats better, A's depth alone
   {from_c["C, 10 layers"]:.2f}, eight heads nothing; A is {from_c["A"]:.2f} ahead. In the mean
   width and depth gain alike for each million parameters more, but with two seeds the gain of
   depth is not told from nothing ([scale](../tutorials/scale.md#one-change-at-a-time)).
6. **What each head is worth**, which it also leaves to others: without any one of them the loss
   rises by {worth:.3f} nats at most.
7. **A written solution against bare questions**, too, at the same places: with the solution the
   mean entropy of the heads is {min(aside):.2f} to {max(aside):.2f} nats higher.
8. **Scores without training**, too: A and C are no better than the commonest answer on
   ARC-Challenge, CommonsenseQA, BoolQ and HellaSwag
   ([scale](../tutorials/scale.md#what-its-heads-look-at-and-what-its-models-know)).
9. **Tying and rotary positions**, too, one run each of C: with rotary positions it ends
   {from_c["C, rotary"]:.2f} nats lower, with one table for embedding and output
   {-from_c["C, tied"]:.2f} higher.

### Not yet

1. Packing with its models and its text.
2. **Reasoning traces**: GSM8K's worked answers were trained on for the studies of packing and
   heads, and only the loss was measured.
3. More data, longer contexts and larger models, for which LLmini plans sharded training and
   recomputed activations.
""")

# ---------- heads ----------

rows = results.published("heads_schedules")
four, t = registry.configs("heads")
assert round(variants.parameters(four)["total"] / 1e6, 1) == 68.5 and t.max_rows == 250_000
assert (four.d_model, four.n_layers, four.vocab_size, four.block_size) == (768, 4, 50_257, 2048)
assert t.epochs == 1 and len(rows) == 9
published, ours, scales = [], [], (("unscaled", 1.0), ("scaled", None))
for group in ("low", "medium", "high"):
    found = [row["eval_loss"] for row in rows if row["group"] == group]
    published.append(max(found) - min(found))
for _, scale in scales:
    means = {}
    for model, runs in heads.stored(64, scale).items():
        assert len(runs) == 3
        mean = statistics.mean(run["val_loss"] for run in runs)
        means.setdefault(model.split(":")[0], []).append(mean)
    ours += [max(group) - min(group) for group in means.values()]
large = {}  # "unscaled" and "scaled": of each seed, ascending less constant in the high group
for name, scale in scales:
    found = heads.stored(768, scale)
    pairs = zip(found["high: ascending 12-24-48-96"], found["high: constant 48-48-48-48"])
    large[name] = [f"{a['val_loss'] - b['val_loss']:+.2f}" for a, b in pairs]
assert large == {"unscaled": ["+0.09", "+0.07"], "scaled": ["+0.01", "+0.00"]}
of_its_size = results.runs("heads", d_model=768)
assert len(of_its_size) == 24 and all(run["steps"] == 145 for run in of_its_size)
others = {}  # the same in the low and in the medium group
for name, scale in scales:
    gaps = []
    for group in ("low", "medium"):
        found = heads.stored(768, scale)
        first, second = [runs for title, runs in found.items() if group in title][:2]
        gaps.append(f"{first[0]['val_loss'] - second[0]['val_loss']:+.2f}")
    others[name] = " and ".join(gaps)
assert others == {"unscaled": "+0.21 and +0.17", "scaled": "+0.02 and +0.01"}
assert list(heads.stored(768)) == list(heads.rows("heads", {}))

print(f"""## The experiment with heads per layer

### As published

1. **The nine schedules**, and a preset `heads-author` with what the author's public code has and
   the text does not say: unscaled logits (`--attn_scale 1.0`), in every second layer the newest 256
   tokens alone, biases, no dropout, two stories in a step, a rate of 5e-05 and AdamW's defaults.
2. **All nine schedules at that size**, {of_its_size[0]["params_total"]:,} parameters, scaled and
   unscaled.
3. **Words that the text never uses**: how often they are sampled before and after the training;
   and [what a model says](../tutorials/heads.md#words-that-the-text-never-uses) before and after
   it.

### Differently, and why

1. **The text is another, and short**: {len(of_its_size)} runs of 145 steps read 2.4 million tokens
   of stories, encyclopaedia, news and word problems once, in half precision on a lent GPU, one
   or two seeds per schedule. We have 1,097 stories, and the published runs read 250,000, each
   padded by itself.
2. **Those runs have none of the code's windows and biases**, and a rate and batch of ours. The
   setup of the code was run at a quarter of the width, on 400 stories.
3. **Scaled, too**, to see what the missing 1/√(head size) does
   ([heads per layer](../tutorials/heads.md)).
4. **Small things in `heads-author`**: the rate falls along a cosine and not a line, q, k and v have
   biases, the first weights are smaller where a layer adds to the stream, and the stories are a
   sample of TinyStories, as its `skeskinen/TinyStories-GPT4` has its text in a column of another
   name.

At the published size ascending ends {" and ".join(large["unscaled"])} nats from constant unscaled
and {" and ".join(large["scaled"])} scaled, in the high group; in the low and the medium one it ends
{others["unscaled"]} unscaled and {others["scaled"]} scaled. So the missing scale makes most of the
published order; one or two seeds of a group do not settle it. The published losses differ within a
group by up to {max(published):.2f} nats, those of models of width 64 by at most {max(ours):.3f}.

### Not yet

1. The published text: `python train.py --study heads --preset heads-author --seed 0 1 2`, and the
   same with `--attn_scale 1.0`.
""")

# ---------- every statement of the five documents ----------

DOCUMENTS = {  # with their authors' names
    "report": "[report](https://huggingface.co/CompactAI), Costikoooo & CompactAI",
    "article": "[article](https://huggingface.co/blog/wop/multiple-attention-layers), wop",
    "Chen & Zou": "[paper](https://arxiv.org/abs/2404.01601), Chen & Zou",
    "LLmini": "[LLmini](https://github.com/NorisTalaban/LLmini), NorisTalaban",
    "heads": "[heads](https://chrissarmstrong.github.io/seeking-manifold), chrissarmstrong",
}
SETUP = ("yes", "in part", "no")  # whether a verdict is about the published setup
SHOWN = ("statement", "where", "size", "n", "published", "verdict")
with open(results.RESULTS / "published" / "statements.csv", encoding="utf-8") as f:
    statements = list(csv.DictReader(f))

# what statements.csv says of numbers, as far as no page asserts it
pair = [run for name in (*kinds, "1 layer, 12 times", "1 layer, wide") for run in at_its_size[name]]
assert all(run["val_loss"] - run["best_val_loss"] < 0.01 for run in pair) and len(pair) == 21
own_text = [run["val_loss"] - run["train_loss_eval"] for run in pair]
assert (f"{min(own_text):.1f}", f"{max(own_text):.1f}") == ("1.0", "1.7")
turned = [run for name, runs in own_rate.items() if "tried" not in name for run in runs]
assert all(run["val_loss"] > run["best_val_loss"] for run in turned) and len(turned) == 12
reached = [run["train_loss_eval"] for run in own_rate["1 layer"]]
assert (f"{min(reached):.2f}", f"{max(reached):.2f}") == ("0.42", "0.49")
for log in (
    results.published("report_log_1_layers"),
    *(run["log"] for run in at_its_size["1 layer"]),
):
    fives = [
        statistics.mean(record["train_loss"] for record in log[i - 5 : i]) for i in range(5, 22)
    ]
    assert min(fives) == fives[-1]
assert round(0.42e6 / totals[1], 3) == 0.005 and 3700 < 20 * totals[1] / 0.42e6 < 4000
assert (f"{210 / 60:.1f}", f"{252 / 60:.1f}") == ("3.5", "4.2")
took = [results.step_by_bench(f"[h100-{name}]")[0] for name in ("1-layer", "12-layers")]
assert [round(500 * seconds) for seconds in took] == [30, 39]
assert f"{from_c['A']:.2f}" == "0.37"
assert (f"{1 - 44.5 / 69.8:.0%}", f"{1 - 6.21 / 7.57:.0%}") == ("36%", "18%")
at_end = {(row["group"], row["scheme"]): row["eval_loss"] for row in rows}
assert f"{at_end['high', 'ascending'] - at_end['high', 'constant']:.2f}" == "0.06"
assert (f"{min(at_end.values()):.1f}", f"{max(at_end.values()):.1f}") == ("1.6", "1.9")
wide, twelve = (at_its_size[name][0]["params_layers"] for name in ("1 layer, wide", "12 layers"))
assert round(twelve / wide) == 7
path = results.RESULTS / "tasks" / "mechanism.json"
found = json.loads(path.read_text("utf-8"))
layers_of = {
    task: [{layer + 1 for layer, _ in step["heads"]} for step in model["steps"].values()]
    for task, model in found.items()
}
assert layers_of == {
    "icqa": [{1}, {2}], "icl_template": [{1}, {2}, {3}],
    "template": [{1}, {1, 2}], "khop-2": [{1}, {2, 3}, set()],
}  # fmt: skip
four_hops = values(
    results.by(results.runs("khop", seed=range(60, 65), hops=4, n_loops=1), "n_layers")
)
assert max(four_hops[3]) < 0.95 and sum(share >= 0.95 for share in four_hops[4]) == 4
notes = {  # which tell of runs that were made again
    "heads": "is 5.3130 both times; that of # the stored run is 5.3131",
    "report": "Two layers, eight and the looped one came later",
    "report-tuned": "those now stored # differ from them by 0.015 at most",
    "llmini": "the second and the third time are # the same to four decimals",
}
for name, said in notes.items():
    text = (results.RESULTS / name / "predictions.toml").read_text("utf-8")
    assert said in " ".join(text.split()), name
by_seed = {name: [run["seconds"] for run in llmini_runs[name]] for name in "AC"}
assert f"{1 - sum(by_seed['C']) / sum(by_seed['A']):.0%}" == "14%"
open_ = [row for row in statements if "not yet" in f"{row['where']} {row['verdict']}"]
assert {row["document"] for row in statements} == set(DOCUMENTS)
of_setup = {kind: sum(row["published"] == kind for row in statements) for kind in SETUP}
assert sum(of_setup.values()) == len(statements)

print(f"""## Every statement, one by one

{len(statements)} statements of the five documents. Of {len(open_)} of them something has not been
run; the verdict says what, and why. {of_setup["yes"]} verdicts are about the published setup,
{of_setup["in part"]} in part (its size with other text, say), {of_setup["no"]} not. *n* is how many
seeds of each model the verdict rests on.

| document | what it says | where | size | n | published setup? | verdict |
|---|---|---|---|---|---|---|""")
for row in statements:
    cells = [DOCUMENTS[row["document"]], *(row[name] for name in SHOWN)]
    print(f"| {' | '.join(cells)} |")
