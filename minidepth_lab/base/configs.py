"""The settings of a run in the laboratory: those of minidepth.py, and what its rooms add."""

import dataclasses
import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

import minidepth as md
from minidepth_lab.base import console

KINDS = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}
UNPRINTABLE = r"[\x00-\x1f\x7f\ud800-\udfff]"  # halves of characters and what moves a terminal


def check_fields(config: "ModelConfig | TrainConfig") -> None:
    """Make NumPy's numbers Python's; ValueError for a field of another type or beyond limits."""
    for f in dataclasses.fields(config):
        low, high, choices = (f.metadata[name] for name in ("low", "high", "choices"))
        value = getattr(config, f.name)
        # NumPy's numbers print, and so seed generators, in another way than Python's
        if isinstance(value, np.generic):
            value = value.item()
        elif isinstance(value, (tuple, list)):
            value = tuple(v.item() if isinstance(v, np.generic) else v for v in value)
        setattr(config, f.name, value)
        if value is None and f.default is None:
            continue

        kind, several = f.type, False
        if kind not in KINDS:  # a tuple, of numbers if it has limits, else of texts
            kind = str if low is None else int
            several = isinstance(value, tuple)
        if f.type is tuple and (not several or (f.default and not value)):
            raise ValueError(f"{f.name} {value!r:.40} does not work; give a tuple of at least one")
        for part in value if several else (value,):
            wanted = KINDS[kind]
            good = type(part) is kind or (kind is float and type(part) is int)
            if kind in (int, float):
                good = good and low <= part <= high
                too_high = type(part) in (int, float) and high < part < math.inf
                limits = f" at least {low:g}"
                if high < 2**53 or too_high:
                    limits = f" from {low:g} to {high:.10g}"
                wanted += limits
            elif good and kind is str:
                empty = not part.strip() and part != f.default
                if empty or re.search(UNPRINTABLE, part):
                    good, wanted = False, "a text that is not empty, without control characters"
            if not good:
                raise ValueError(f"{f.name} {part!r:.40} does not work; give {wanted}")
            if choices and part not in choices:
                known = ", ".join(choices)
                raise ValueError(f"{f.name} {part!r:.40} is unknown; choose from {known}")


# what a loop starts from: the residual stream as the last loop left it ("state"); that plus the
# embedded input again ("input"); its normalised form ("normalised"); this plus the input ("recall",
# Bansal et al. 2022)
LOOP_STARTS = ("state", "input", "normalised", "recall")
READ_INPUT = ("input", "recall")  # in each loop; with the others the first one alone reads it
INITS = ("gpt2", "pytorch")
POSITIONS = ("learned", "rotary", "none")


@dataclass
class ModelConfig(md.ModelConfig):
    """The architecture, and its variants (models/variants.py)."""

    n_heads: int | tuple = md.option(8, "attention heads, one number or one per layer: 8,4,2", 1)
    residual_dropout: float = md.option(None, "on what layers add; unset: as --dropout", 0, 0.99)
    embedding_dropout: float = md.option(None, "on embeddings; unset: as --dropout", 0, 0.99)
    position: str = md.option("learned", "how order is known", choices=POSITIONS)
    attn_scale: float = md.option(
        None, "factor on attention logits; unset: 1/sqrt(head size)", 1e-9
    )
    attn_window: int = md.option(
        0, "newest tokens that each second layer alone looks at; 0: all", 0
    )
    loop_start: str = md.option("state", "what a loop starts from", choices=LOOP_STARTS)
    loop_keeps: int = md.option(0, "first tokens that stay as the first loop leaves them", 0)
    loop_noise: float = md.option(0.0, "noise on what loops start from, in training, as its std", 0)
    init: str = md.option("gpt2", "initial weights: as GPT-2's or PyTorch's own", choices=INITS)

    def dropout_of(self, part: str) -> float:
        """The rate of a part that may have one of its own: residual or embedding."""
        own = getattr(self, f"{part}_dropout")
        return self.dropout if own is None else own

    @property
    def heads(self) -> tuple[int, ...]:
        """Heads of each layer, a tuple of n_layers numbers."""
        if isinstance(self.n_heads, int):
            return (self.n_heads,) * self.n_layers
        return tuple(self.n_heads)

    def validate(self) -> "ModelConfig":
        """Return self; raise ValueError for what cannot be built."""
        check_fields(self)
        C, heads = self.d_model, self.n_heads
        if isinstance(heads, int):
            heads = (heads,)  # not self.heads: there may be a hundred million layers
        elif len(heads) != self.n_layers:
            numbers = f"n_heads has {len(heads)} numbers but n_layers is {self.n_layers}"
            raise ValueError(f"{numbers}; give one number, or one per layer")
        for n in heads:
            if C % n:
                divisors = [d for d in range(1, min(C, 100_000) + 1) if C % d == 0]
                nearest = sorted(divisors, key=lambda d: abs(d - n))[:4]
                near = ", ".join(str(d) for d in sorted(nearest))
                raise ValueError(f"n_heads {n} does not divide d_model {C}; near it {near} do")
            if self.position == "rotary" and C // n % 2:
                raise ValueError(f"head size {C // n} is odd; rotary turns pairs; change n_heads")
        if self.loop_keeps:
            keeps = f"loop_keeps {self.loop_keeps}"
            if self.n_loops == 1:
                raise ValueError(f"{keeps} has no effect with n_loops 1; give more loops, or 0")
            if self.loop_keeps >= self.block_size:
                none_left = f"leaves none of {self.block_size} tokens for later loops to change"
                raise ValueError(f"{keeps} {none_left}; give at most {self.block_size - 1}")
        return self


TRACKERS = ("none", "tensorboard", "wandb", "trackio")
LONG_ROWS = "what becomes of rows longer than a block; unset: padded chats drop, others split"


@dataclass
class TrainConfig(md.TrainConfig):
    """The data and the training, and what the laboratory's rooms ask of them."""

    data: tuple = md.option(
        (md.TrainConfig.data,), "'embedded', a task, .jsonl .json .parquet .txt, hub ids"
    )
    tokenizer: str = md.option("Qwen/Qwen2.5-0.5B", "hub id, folder, 'embedded', or 'characters'")
    device: str = md.option("auto", "where to train", choices=("auto", "cuda", "mps", "cpu"))
    sizes: tuple = md.option(
        (), "of a task or loader, by name: pairs=8,symbols=16; lists: hops=1+2"
    )
    loader: str = md.option(
        "", "makes the data: llmini, packing, reread, text_loops, thinking, my.py"
    )
    val_data: str = md.option("", "a file of rows to validate on; empty: some of each source")
    tokenizer_size: int = md.option(
        2048, "most words of a tokenizer made from the data", 300, 10**6
    )
    long_rows: str = md.option(None, LONG_ROWS, choices=("drop", "cut", "split"))
    epochs: int = md.option(0, "passes over the data instead of --steps; 0: as --steps says", 0)
    compile: bool = md.option(False, "train with torch.compile, a layer at a time; one device only")
    grad_checkpoint: bool = md.option(False, "compute each layer twice, to keep less of it")
    gradient_loops: int = md.option(0, "the last loops alone have a gradient; 0: all", 0)
    fsdp: bool = md.option(False, "under torchrun: each process keeps a part of every weight")
    init_from: str = md.option("", "a run, or a GPT-2's folder: the weights to begin with")
    keep: str = md.option("last", "weights that are kept", choices=("last", "best"))
    stop_after: int = md.option(0, "evaluations in a row without a better loss that end the run", 0)
    minutes: float = md.option(0.0, "after which the run is saved and ends; 0: no limit", 0)
    report_to: str = md.option("none", "who else is told of each evaluation", choices=TRACKERS)
    out_dir: str = md.option("runs", "folder of all runs")
    name: str = md.option("", "this run's folder in it; empty: made from the settings")

    def validate(self) -> "TrainConfig":
        """Return self; raise ValueError for what cannot be run."""
        check_fields(self)
        if self.warmup_steps > 1 and self.warmup_steps % 1:
            wanted = "give a whole number of steps, or a share below 1"
            raise ValueError(f"warmup_steps {self.warmup_steps} does not work; {wanted}")
        more = "lr_steps" if self.lr_steps else "steps"
        known = self.lr_steps or not self.epochs  # else only the data tells how many there are
        steps = self.lr_steps or self.steps
        if known and self.warmup_steps >= max(1, steps):
            none_left = f"warmup_steps {self.warmup_steps:g} leaves none of {steps} steps"
            raise ValueError(f"{none_left}; give at most {steps - 1}, or more --{more}")
        return self


# a preset is what differs from the defaults; each study and the tasks have their own
PRESETS = {name: dict(values) for name, values in md.PRESETS.items()}
PRESETS["laptop"]["data"] = ("embedded",)


def make(preset: str = "laptop", **changes: Any) -> tuple[ModelConfig, TrainConfig]:
    """(ModelConfig, TrainConfig) of one of these presets, changed; ValueError for what is
    unknown."""
    if preset not in PRESETS:
        raise ValueError(f"preset {preset!r} is unknown; choose from {', '.join(PRESETS)}")
    return of_values(PRESETS[preset] | changes)


def of_values(values: dict) -> tuple[ModelConfig, TrainConfig]:
    """(ModelConfig, TrainConfig) of {setting: value}; ValueError for what is unknown."""
    values = dict(values)
    if isinstance(values.get("data"), str):
        values["data"] = (values["data"],)
    # as minidepth.configs() has it; and how many steps epochs are only the data tells
    if values.get("epochs") or values.get("steps") in range(51):
        values.setdefault("warmup_steps", 0.1)
    made = []
    for kind in (ModelConfig, TrainConfig):
        names = {f.name for f in dataclasses.fields(kind)} & values.keys()
        made.append(kind(**{name: values.pop(name) for name in names}).validate())
    if values:
        unknown = f"setting {', '.join(values)} is unknown"
        raise ValueError(f"{unknown}; see {console.COMMAND} --help")
    return tuple(made)


def steps_of_rise(config: TrainConfig) -> float:
    """In how many steps the learning rate rises: --warmup_steps, or its share of all steps."""
    steps = config.lr_steps or config.steps
    if config.warmup_steps >= 1:
        return config.warmup_steps
    return min(round(config.warmup_steps * steps), steps - 1)
