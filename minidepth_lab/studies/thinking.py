"""Written steps against layers: lookups, chains or orderings, answered after worked steps or
directly, the shorter ones first if one likes.

    python train.py --preset thinking --sizes answer=thinking answer=direct --n_layers 1 2 3
"""

from dataclasses import dataclass

import minidepth as md
from minidepth_lab.base.data import Data
from minidepth_lab.rows import to_data
from minidepth_lab.tasks.base.sizes import as_text, check_known, sizes_of, with_sizes

PRESETS = {
    # attention alone, one length of problems after another
    "thinking": dict(
        block_size=56, n_heads=2, d_model=64, d_ff=0, dropout=0.0, init_std=0.1,
        tie_weights=False, data=("embedded",), loader="thinking",
        sizes=("families=lookup", "curriculum=0.1"), max_rows=100_000, tokenizer="embedded",
        packing="pad", loss_on="assistant", steps=6000, batch_size=64, lr=2e-3, lr_floor=0.3,
        weight_decay=0.0, eval_every=500,
    ),
}  # fmt: skip

WAYS = ("thinking", "direct")
SIZES = dict(
    families=md.FAMILIES,  # kinds of embedded problems
    modulus=10,  # of the sums in chains
    answer="thinking",  # after worked steps, or direct
    curriculum=0.0,  # train loss below which the next length joins; 0: all lengths at once
)


def rows(preset, settings):
    """Both ways of answering with one to four layers."""
    made = {}
    for way in WAYS:
        sizes = with_sizes(settings, "thinking", answer=way)
        for n in (1, 2, 3, 4):
            made[f"{way}, {n} layers"] = settings | dict(n_layers=n, sizes=sizes)
    return made


@dataclass
class Lengths(Data):
    """Problems in the order of their steps, of which the longer ones join one length at a time: the
    next when the training loss of a step falls below `curriculum`. How many lengths take part is
    kept in checkpoints and logged as `lengths`."""

    curriculum: float = 0.0
    n_lengths: int = 1

    def draw(self, step, n):
        n_open = max(1, len(self.train[0]) * self.state["lengths"] // self.n_lengths)
        part = tuple(each[:n_open] for each in self.train)
        return md.Data(part, (), seed=self.seed).draw(step, n)

    def after_step(self, loss):
        if loss < self.curriculum:
            self.state["lengths"] = min(self.n_lengths, self.state["lengths"] + 1)

    def evaluate(self, model):
        return dict(lengths=self.state["lengths"])


def load_data(config, block_size, tokenizer=None):
    """Data of embedded problems of the kinds that `sizes` name; ValueError for what is unknown."""
    sizes = sizes_of(config.sizes, SIZES, "the loader thinking")
    for family in sizes["families"]:
        check_known("families", family, md.FAMILIES)
    check_known("answer", sizes["answer"], WAYS)
    if not 2 <= sizes["modulus"] <= 10:
        raise ValueError(f"modulus {sizes['modulus']} does not work; give a number from 2 to 10")
    if config.data != ("embedded",):
        data = " ".join(config.data)
        raise ValueError(f"data {data}: the loader thinking makes its own; give --data embedded")
    if config.val_data:
        made = "the loader thinking makes its own problems to validate on; leave it out"
        raise ValueError(f"val_data {config.val_data}: {made}")
    if sizes["curriculum"] and config.packing == "pack":
        what = f"curriculum {sizes['curriculum']:g} opens whole problems, which packing cuts"
        raise ValueError(f"{what}; give --packing pad")
    kind = dict(steps=config.problem_steps, families=sizes["families"], modulus=sizes["modulus"])
    train = md.embedded_rows(config.max_rows or 20_000, False, **kind)
    if sizes["curriculum"]:
        train.sort(key=lambda row: row["steps"])
    held_out = md.embedded_rows(600, True, **kind)
    for row in train + held_out if sizes["answer"] == "direct" else ():
        said = row["messages"][-1]
        said["content"] = f"#### {md.final_answer(said['content'])}"
    if not train or not held_out:
        left = f"with steps {config.problem_steps} and modulus {sizes['modulus']}"
        raise ValueError(f"{left} there is no problem left; give others")
    data = to_data.make_data("embedded", train, held_out, config, block_size, tokenizer)
    data.sizes = as_text(sizes)
    if not sizes["curriculum"]:
        return data
    n_lengths = len(config.problem_steps)
    return Lengths(
        **vars(data) | dict(state=dict(lengths=1)),
        curriculum=sizes["curriculum"], n_lengths=n_lengths,
    )  # fmt: skip
