"""The report's regime, small: 840 solved word problems, read twenty times over, with a loss on
every token and dropout 0.1. Does a deeper model fit them better, and new ones no better?

    python train.py --study reread --seed 0 1 2 3 4
    python train.py --study reread --seed 0 1 2 3 4 --sizes problems=210 --epochs 80

One, two, four, eight and twelve layers; one layer applied twelve times; one layer as wide as gives
the parameters of twelve. The second command reads a quarter of the problems four times as often,
and is measured on the same new ones. At every evaluation the log has the loss on text that is
trained on (`train_loss_eval`) as it has the loss on new text, both without dropout.
"""

import dataclasses
from dataclasses import dataclass

import torch

import minidepth as md
from minidepth_lab.base.data import Data
from minidepth_lab.measure import judge, results
from minidepth_lab.measure.stored import stored_folder
from minidepth_lab.rows import files as text
from minidepth_lab.rows import to_data
from minidepth_lab.rows.sources import text_data
from minidepth_lab.show import figures
from minidepth_lab.studies import depth
from minidepth_lab.tasks.base.sizes import as_text, sizes_of

PRESETS = {
    "reread": dict(
        block_size=256, n_heads=4, d_model=64, d_ff=256, init_std=0.05, data=("embedded",),
        loader="reread", tokenizer="embedded", tokenizer_size=1024, max_rows=1000,
        val_fraction=0.16, epochs=20, warmup_steps=0.1, lr=4e-3, eval_every=44, eval_problems=0,
    ),
}  # fmt: skip

# what --data embedded is here: problems 1,001 to 2,000 of GSM8K's training part (Cobbe et al. 2021,
# arXiv 2110.14168)
GSM8K = stored_folder("data") / "gsm8k-1001-2000.jsonl"
SIZES = dict(problems=840)  # the first so many of those to train on


def rows(preset, settings):
    """The seven models."""
    between = {f"{n} layers": settings | dict(n_layers=n) for n in (2, 4, 8)}
    return between | depth.rows(preset, settings | dict(n_layers=12))


@dataclass
class Reread(Data):
    """Data that is measured on text it trains on, too."""

    def evaluate(self, model):
        """`train_loss_eval`, nats per token without dropout, on always the same blocks."""
        n, total = self.eval_blocks, len(self.train[0])
        some = torch.randperm(total, generator=md.generator("train_loss_eval"))[:n].numpy()
        part = [each[some] for each in self.train]
        return dict(train_loss_eval=md.mean_loss(model, part, n, self.batch_size))


def load_data(config, block_size, tokenizer=None):
    """The Data of a text, of which only the first rows are trained on; its tokenizer and what is
    held out are those of all its rows."""
    sizes = sizes_of(config.sizes, SIZES, "the loader reread")
    names = tuple(str(GSM8K) if name == "embedded" else name for name in config.data)
    plain = dataclasses.replace(config, data=names, sizes=(), loader="")

    def load(config, block_size, tokenizer):
        facts = {}
        split = text.read_sources(config, facts)
        tokenizer = tokenizer or to_data.mix(split, config, block_size, {}).tokenizer
        fewer = [(name, train[: sizes["problems"]], held_out) for name, train, held_out in split]
        return to_data.mix(fewer, config, block_size, facts, tokenizer)

    data = text_data(plain, block_size, tokenizer, load)
    sizes = as_text(sizes)
    how = dict(sizes=sizes, eval_blocks=config.eval_blocks, batch_size=config.batch_size)
    return Reread(**vars(data) | how)


def model_of(run):
    """What a result() is a run of, as the rows are called, with the learning rate if that is not
    the preset's."""
    preset = PRESETS["reread"]
    name = f"{run['n_layers']} layer" + "s" * (run["n_layers"] > 1)
    if run["n_loops"] > 1:
        name = f"1 layer, {run['n_loops']} times"
    if run["d_model"] > preset["d_model"]:
        name = "1 wide layer"
    if run["lr"] != preset["lr"]:
        name += f", learning rate {run['lr']:g}"
    return name


def stored(**wanted):
    """{(times that the text is read, model): the stored runs that have the `wanted` settings, by
    seed}, of docs/results/reread."""
    found = {}
    for run in results.runs("reread", **wanted):
        found.setdefault((run["epochs"], model_of(run)), []).append(run)
    return {which: sorted(runs, key=lambda run: run["seed"]) for which, runs in found.items()}


FIRST = dict(seed=range(200, 205), dropout=0.1)  # the runs of stored() that came first


def models_read(stored, times):
    """{model: its runs} of those in stored() that read their text so often."""
    return {model: runs for (read, model), runs in stored.items() if read == times}


def at_fit(runs, train_loss):
    """{model: result() of its runs} → {model: validation losses where the training loss is first as
    low as this, run by run}. A run that never comes so low counts as it ends."""
    return {
        model: [judge.value_at(run, "val_loss", "train_loss_eval", train_loss) for run in found]
        for model, found in runs.items()
    }


def equally_fitted(runs):
    """{model: result() of its runs} → the lowest training loss that every run ends at or below,
    and at_fit() of that loss."""
    reached = max(run["train_loss_eval"] for found in runs.values() for run in found)
    return reached, at_fit(runs, reached)


def draw_fit(axes, model, runs):
    """Validation loss of each run of a model by its training loss, with a dot at its end."""
    color = figures.color_of(model)
    for run in runs:
        x, y = zip(*((record["train_loss_eval"], record["val_loss"]) for record in run["log"]))
        axes.plot(x, y, color=color, linewidth=1)
        axes.plot(x[-1], y[-1], "o", color=color)
