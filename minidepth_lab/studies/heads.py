"""How many heads, and in which layers? Schedules of heads over four layers, all with as many
parameters, after a published table (docs/results/published/heads_schedules.csv):

    python train.py --study heads --seed 0 1 2                   the published size, on a GPU
    python train.py --study heads --preset heads --seed 0 1      the same, on a CPU as well
    python train.py --study heads --preset laptop --seed 0 1 2   its ratios on a laptop

The study adds the preset `heads` and draws heads.png: validation loss and time per step by the
number of heads, beside the published ones.
"""

import os

from minidepth_lab.keep import registry
from minidepth_lab.measure import results
from minidepth_lab.show import figures

# what the author's public code has beside the published text: see PRESETS["heads-author"]
AUTHORS = dict(
    n_layers=4,
    n_heads=48,
    dropout=0.0,
    attn_window=256,
    bias=True,
    packing="pad",
    loss_on="all",
    batch_size=2,
    grad_accum=1,
    lr_floor=0.0,
    beta1=0.9,
    beta2=0.999,
    weight_decay=0.0,
)
# its rows were the first 250,000 of skeskinen/TinyStories-GPT4, whose text is the column `story`
STORIES = ("roneneldan/TinyStories",)
PRESETS = {
    # the published size; learning rate and batch are ours
    "heads": dict(
        vocab_size=50_257, block_size=2048, n_layers=4, n_heads=48, d_model=768, d_ff=3072,
        dropout=0.0, data=STORIES, tokenizer="EleutherAI/gpt-neo-125m",
        max_rows=250_000, epochs=1, batch_size=8, lr=5e-4, warmup_steps=0.1, eval_every=250,
    ),
    # the same by its author's code; --attn_scale 1.0 leaves the logits unscaled, as it did
    "heads-author": AUTHORS | dict(
        vocab_size=50_257, block_size=2048, d_model=768, d_ff=3072, data=STORIES,
        tokenizer="EleutherAI/gpt-neo-125m", max_rows=250_000, val_fraction=0.01, epochs=1,
        lr=5e-5, warmup_steps=0, eval_every=5000, eval_blocks=2500, precision="fp32",
    ),
    # a quarter of its width, for a CPU. --attn_scale 2.0, the root of that quarter the other way
    # round, and the larger init_std leave the first logits as large as they were
    "heads-small": AUTHORS | dict(
        block_size=512, d_model=192, d_ff=768, init_std=0.04, data=STORIES, tokenizer="embedded",
        steps=200, lr=1e-3, warmup_steps=10, max_rows=0, eval_every=100, eval_problems=0,
    ),
}  # fmt: skip
NEEDS_GPU = True  # at the published size, 68.5 million parameters

MOST_HEADS = 96  # in a layer of the published schedules, and a multiple of all their counts


def rows(preset, settings):
    """{row's name: its settings}, of the published schedules. A d_model that their counts do not
    divide gets a third of each: the same ratios."""
    four = settings | dict(n_layers=4)
    width = registry.configs(preset, **four | dict(n_heads=1))[0].d_model
    part = 1 if width % MOST_HEADS == 0 else 3
    found = {}
    for row in results.published("heads_schedules"):
        heads = tuple(int(n) // part for n in row["heads"].split("-"))
        name = f"{row['group']}: {row['scheme']} {'-'.join(str(n) for n in heads)}"
        found[name] = four | dict(n_heads=heads)
    return found


def stored(d_model, attn_scale=None):
    """{row's name: the runs of docs/results/heads, by seed}, of the width 64, or of 768, with the
    usual scale of the logits, or with the attn_scale 1.0."""
    runs = results.runs("heads", d_model=d_model, attn_scale=attn_scale)
    schedules = results.by(runs, "n_heads")
    every = rows("heads", dict(d_model=d_model)).items()
    return {name: schedules[row["n_heads"]] for name, row in every if row["n_heads"] in schedules}


def by_scheme(models):
    """{GROUP: SCHEME HEADS-HEADS-…: runs} → {scheme: {heads in all layers: runs}}"""
    schemes = {}
    for name, runs in models.items():
        _, scheme, heads = name.split()
        n = sum(int(part) for part in heads.split("-"))
        schemes.setdefault(scheme, {})[n] = runs
    return schemes


def draw_schemes(axes, schemes, measure):
    """A line for each scheme: measure(run) by the number of heads, mean and 95 % interval."""
    for number, (scheme, found) in enumerate(schemes.items()):
        x = [n * 1.02**number for n in found]  # bars side by side
        intervals = [results.interval([measure(run) for run in runs]) for runs in found.values()]
        means, halves = zip(*intervals)
        axes.errorbar(x, means, halves, fmt="-o", capsize=3, label=scheme)
    axes.set_xscale("log")
    axes.grid(alpha=0.3)


def figure(runs, folder):
    """heads.png: validation loss and time by the number of heads, beside the published."""
    theirs = {}
    for row in results.published("heads_schedules"):
        name = f"{row['group']}: {row['scheme']} {row['heads']}"
        theirs[name] = [dict(val_loss=row["eval_loss"], tokens_per_second=1 / row["hours"])]
    ours = {dict(key)["model"]: found for key, found in results.grouped(runs).items()}
    n = max(len(found) for found in ours.values())
    panels = {"published, one run each": theirs, f"ours, n = {n}, 95 % intervals": ours}
    path = os.path.join(folder, "heads.png")
    with figures.drawing(path, 2, 2, (9, 7), sharex="col") as (whole, drawn):
        for (loss_axes, time_axes), (title, models) in zip(drawn.T, panels.items()):
            schemes = by_scheme(models)
            speeds = [run["tokens_per_second"] for found in models.values() for run in found]
            fastest = max(speeds)
            draw_schemes(loss_axes, schemes, lambda run: run["val_loss"])
            draw_schemes(time_axes, schemes, lambda run: fastest / run["tokens_per_second"])
            counts = sorted({n for found in schemes.values() for n in found})[1::2]  # 45 hides 48
            time_axes.set_xticks(counts, labels=counts)
            time_axes.set_xticks([], minor=True)
            time_axes.set(
                xlabel="heads in all four layers", ylabel="time per step, fastest run = 1"
            )
            loss_axes.set(title=title, ylabel="validation loss (nats per token)")
        handles, labels = loss_axes.get_legend_handles_labels()
        whole.legend(handles, labels, loc="outside upper center", ncols=3)
