"""minidepth: does depth help a Transformer reason, and how would you know?

One file to read top to bottom: settings, model, text, sampling, checkpoints and the training loop.
It needs no other file of the project, and each section uses only what stands above it.

    python train.py --n_layers 12                            laptop or GPU, as the machine has it
    python train.py --n_layers 1 12 --seed 0 1 2             a grid: six runs, a table, a figure
    python train.py --data icqa --n_layers 1 2               a task that two layers learn
    python train.py --preset report --n_layers 12            the published run, made for 2 x T4
    python train.py --preset report --n_layers 12 --dry_run  its facts; needs no GPU, no network
    torchrun --nproc_per_node 2 train.py --n_layers 12       under DistributedDataParallel

Sections: 1 this text, 2 settings, 3 model, 4 text to blocks, 5 sampling and answers,
6 checkpoints, 7 training. What we ask of many runs, or of a trained one (tasks, studies, grids,
attention, export), is the laboratory's: minidepth_lab.

Dimensions, in comments as (B, T, C)                     example: the report's 12 layers
    B  sequences in a batch                              16
    T  tokens in a sequence, S keys it can look at       512
    C  d_model, the width of the residual stream         384
    H  attention heads in a layer, D = C / H their size  8, 48
    V  words in the vocabulary, rows of the embedding    151,665
    L  layers                                            12
    N  tokens that carry a loss, all sequences together  up to B * T = 8,192
"""

import array
import contextlib
import dataclasses
import functools
import gc
import gzip
import hashlib
import importlib.metadata
import itertools
import json
import math
import os
import platform
import random
import re
import shlex
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import weakref
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

if TYPE_CHECKING:  # to import it takes seconds, which only those pay who have text
    from transformers import PreTrainedTokenizerBase as Tokenizer

__version__ = "0.2"
Path = str | os.PathLike[str]  # of a file or a folder, in signatures
COMMAND = "python train.py"  # as advice says how to type it; train.py knows where it is another

# ---------- 2. settings ----------

MOST = 2**53  # of any setting: up to here floats, and with them JSON everywhere, count exactly


def option(
    default: object, help: str, low: float | None = None, high: float = MOST, choices: tuple = ()
) -> Any:
    """A field with its help text and limits: flags, checks and the docs derive from it, so every
    field needs one. A default of None allows None, which the field's type does not name."""
    return field(default=default, metadata=dict(help=help, low=low, high=high, choices=choices))


# what a terminal obeys, halves of characters, and marks that turn the direction of writing
UNSEEN = r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"


def visible(text: str) -> str:
    """The text with control characters spelled out, all but line ends and tabs."""
    return re.sub(UNSEEN, lambda match: ascii(match[0])[1:-1], text)


def one_line(message: object, most: int = 1000) -> str:
    """A message as one line that a terminal shows, its middle left out if it is very long."""
    line = " ".join(visible(str(message)).split())
    if len(line) > most:
        line = f"{line[: most // 2]} … {line[-most // 2 :]}"
    return line


def complain(message: object) -> None:
    """Print one line on stderr, with the command's name before it."""
    print(f"{COMMAND.split()[-1]}: {one_line(message)}", file=sys.stderr)


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
                if high < MOST or too_high:
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


@dataclass
class ModelConfig:
    """The architecture. The defaults are the published report's."""

    vocab_size: int = option(0, "rows of the embedding; 0: as many as the tokenizer has words", 0)
    block_size: int = option(512, "tokens in a training sequence", 1)
    n_layers: int = option(12, "layers of weights", 1)
    n_heads: int | tuple = option(8, "attention heads, one number or one per layer: 8,4,2", 1)
    d_model: int = option(384, "width of the residual stream", 1)
    d_ff: int = option(1536, "width inside the feed-forward part; 0: attention only", 0)
    dropout: float = option(0.1, "on attention weights, and where the two below are unset", 0, 0.99)
    residual_dropout: float = option(None, "on what layers add; unset: as --dropout", 0, 0.99)
    embedding_dropout: float = option(None, "on embeddings; unset: as --dropout", 0, 0.99)
    bias: bool = option(False, "linear maps but the head add a vector of their own")
    tie_weights: bool = option(True, "the output head shares the token embedding")
    position: str = option("learned", "how order is known", choices=("learned", "rotary", "none"))
    n_loops: int = option(1, "times the stack of layers is applied, with the same weights", 1)
    attn_scale: float = option(None, "factor on attention logits; unset: 1/sqrt(head size)", 1e-9)
    loop_start: str = option("state", "what a loop starts from", choices=LOOP_STARTS)
    loop_keeps: int = option(
        0, "first tokens of a block that stay as the first loop leaves them", 0
    )
    loop_noise: float = option(0.0, "noise on what loops start from, in training, as its std", 0)
    init: str = option("gpt2", "initial weights: as GPT-2's or PyTorch's own", choices=INITS)
    init_std: float = option(0.02, "standard deviation of the initial weights of GPT-2", 1e-9)

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


REPORT_DATA = "wop/XXXXXL-chain-of-thought"
PRECISIONS = ("auto", "fp32", "fp16", "bf16")
TRACKERS = ("none", "tensorboard", "wandb", "trackio")
LONG_ROWS = "what becomes of rows longer than a block; unset: padded chats drop, others split"


@dataclass
class TrainConfig:
    """The data and the training. The defaults are the published report's."""

    data: tuple = option((REPORT_DATA,), "'embedded', a task, .jsonl .json .parquet .txt, hub ids")
    sizes: tuple = option((), "of a task or loader, by name: pairs=8,symbols=16; lists: hops=1+2")
    loader: str = option("", "makes the data: llmini, packing, reread, text_loops, thinking, my.py")
    val_data: str = option("", "a file of rows to validate on; empty: some of each source")
    tokenizer: str = option("Qwen/Qwen2.5-0.5B", "hub id, folder, 'embedded', or 'characters'")
    tokenizer_size: int = option(2048, "most words of a tokenizer made from the data", 300, 10**6)
    problem_steps: tuple = option((1, 2, 3), "steps of the embedded problems: 2,3,4", 1, 9)
    ring_questions: int = option(1, "questions about each embedded ring to train on", 1, 99)
    max_rows: int = option(20_000, "most rows of each source, a sample of it; 0: all", 0)
    val_fraction: float = option(0.05, "share of a source's rows held out", 0.001, 0.9)
    packing: str = option("pack", "rows end to end, or each padded", choices=("pack", "pad"))
    long_rows: str = option(None, LONG_ROWS, choices=("drop", "cut", "split"))
    loss_on: str = option("all", "tokens that carry a loss", choices=("all", "assistant"))
    steps: int = option(500, "optimizer steps", 1)
    epochs: int = option(0, "passes over the data instead of --steps; 0: as --steps says", 0)
    batch_size: int = option(16, "sequences in one forward pass, all GPUs together", 1)
    grad_accum: int = option(1, "forward passes in one optimizer step", 1)
    lr: float = option(3e-4, "peak learning rate", 0)
    lr_floor: float = option(0.1, "share of the peak at which the rate ends", 0, 1)
    warmup_steps: float = option(50, "of rising learning rate; below 1: a share of all steps", 0)
    lr_steps: int = option(0, "at which the rate has fallen to its floor and stays; 0: --steps", 0)
    weight_decay: float = option(0.1, "AdamW's, on matrices and embeddings, not on norms", 0)
    decay_all: bool = option(False, "weight decay on norms and biases, too")
    beta1: float = option(0.9, "AdamW's decay rate of the mean gradient", 0, 0.999999)
    beta2: float = option(0.95, "AdamW's decay rate of the mean squared gradient", 0, 0.999999)
    grad_clip: float = option(1.0, "longest gradient, as a norm over all weights", 1e-9)
    device: str = option("auto", "where to train", choices=("auto", "cuda", "mps", "cpu"))
    precision: str = option("auto", "auto: fp16 on CUDA, else fp32", choices=PRECISIONS)
    compile: bool = option(False, "train with torch.compile, a block at a time; one device only")
    grad_checkpoint: bool = option(False, "compute each layer twice, to keep less of it")
    gradient_loops: int = option(0, "the last loops alone have a gradient; 0: all", 0)
    fsdp: bool = option(False, "under torchrun: each process keeps a part of every weight")
    seed: int = option(0, "of the weights, the dropout and the order of the batches", 0, 2**31)
    eval_every: int = option(25, "steps from one evaluation to the next", 1)
    eval_blocks: int = option(64, "validation blocks measured, always the same ones", 1)
    eval_problems: int = option(200, "held-out problems answered at the end", 0)
    watch_problems: int = option(0, "held-out problems answered at every evaluation", 0)
    save_every: int = option(100, "steps from one checkpoint to the next", 1)
    init_from: str = option("", "a run, or a GPT-2's folder: the weights to begin with")
    keep: str = option("last", "weights that are kept", choices=("last", "best"))
    stop_after: int = option(0, "evaluations in a row without a better loss that end the run", 0)
    report_to: str = option("none", "who else is told of each evaluation", choices=TRACKERS)
    out_dir: str = option("runs", "folder of all runs")
    name: str = option("", "this run's folder in it; empty: made from the settings")

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


# a preset is what differs from the defaults above; the studies of the laboratory add theirs
PRESETS = {
    "report": dict(vocab_size=151_665),
    # attention alone: with a feed-forward part some seeds do not learn in this time. How the rest
    # was chosen, and on how many seeds it was tried: docs/tutorials/first_run.py
    "laptop": dict(
        block_size=104, n_heads=4, d_model=64, d_ff=0, dropout=0.0, tie_weights=False, init_std=0.1,
        data=("embedded",), ring_questions=3, max_rows=40_000, tokenizer="embedded", packing="pad",
        loss_on="assistant", steps=1100, batch_size=12, grad_accum=3, lr=3e-3, beta1=0.7,
        eval_every=50, eval_problems=600, watch_problems=99,
    ),
}  # fmt: skip


def configs(preset: str = "laptop", **changes: Any) -> tuple[ModelConfig, TrainConfig]:
    """(ModelConfig, TrainConfig) of a preset, changed; ValueError for what is unknown."""
    if preset not in PRESETS:
        raise ValueError(f"preset {preset!r} is unknown; choose from {', '.join(PRESETS)}")
    values = PRESETS[preset] | changes
    if isinstance(values.get("data"), str):
        values["data"] = (values["data"],)
    # the report warms up for 50 steps, a tenth of its run: a run too short for that, or counted in
    # epochs, warms up for a tenth of its own
    if changes.get("epochs") or values.get("steps") in range(51):
        values.setdefault("warmup_steps", 0.1)
    made = []
    for kind in (ModelConfig, TrainConfig):
        names = {f.name for f in dataclasses.fields(kind)} & values.keys()
        made.append(kind(**{name: values.pop(name) for name in names}).validate())
    if values:
        raise ValueError(f"setting {', '.join(values)} is unknown; see {COMMAND} --help")
    return tuple(made)


# ---------- 3. model: a pre-norm GPT, by default without biases, twin of transformers' GPT-2 ------


def dropout(x: torch.Tensor, p: float, training: bool = True) -> torch.Tensor:
    """Zero each element with probability p and scale the others by 1/(1 - p); any shape."""
    if not training or p == 0:
        return x
    if x.device.type != "cpu":
        return F.dropout(x, p)
    # PyTorch draws CPU masks one number at a time, which was a third of a training step. We draw
    # 64-bit words instead and read each as four 16-bit numbers, from -32,768 to 32,767
    n_words = (x.numel() + 3) // 4
    words = torch.empty(n_words, dtype=torch.int64).random_(-(2**63), None)
    numbers = words.view(torch.int16)[: x.numel()].view(x.shape)
    # an element stays if its number is not among the lowest share p of the 65,536 there are: so p
    # is exact to 1.5e-5
    keep = numbers >= round(p * 65536) - 32768
    return (x * keep).mul_(1 / (1 - p))


def readable_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float, p: float = 0.0
) -> tuple[torch.Tensor, torch.Tensor]:
    """Causal attention as its formula says: softmax(scale * q k^T) v, no later keys.

    q (B, H, T, D), the last T of S positions, k and v (B, H, S, D) → output (B, H, T, D) and
    weights (B, H, T, S), these before their dropout p.
    """
    T, S = q.size(2), k.size(2)
    # -inf where a key comes after the query, which softmax turns into a weight of 0
    later = torch.full((T, S), -math.inf, dtype=q.dtype, device=q.device).triu(S - T + 1)
    scores = (q * scale) @ k.transpose(2, 3)  # (B, H, T, S)
    scores += later
    weights = scores.softmax(-1)
    return dropout(weights, p) @ v, weights


def rotate(x: torch.Tensor, start: int = 0) -> torch.Tensor:
    """Rotary positions (Su et al. 2021): turn the pairs (i, i + D/2) of x (B, H, T, D)."""
    half = x.size(-1) // 2  # pair i turns by its position times a frequency, from 1 down to 1e-4
    position = torch.arange(start, start + x.size(2), device=x.device, dtype=torch.float32)
    exponent = torch.arange(half, device=x.device, dtype=torch.float32) / half  # 0 to 1
    angle = position[:, None] * 10_000**-exponent  # (T, D/2)
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    a, b = x[..., :half], x[..., half:]
    return torch.cat((a * cos - b * sin, a * sin + b * cos), -1)


class Cache:
    """Keys and values (B, H, S, D) of the S tokens that a layer has read, in a buffer for as many
    as there can be, so that a token more does not copy all the others."""

    def __init__(self, most: int) -> None:
        self.length, self.most, self.buffer = 0, most, None

    def append(self, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """k and v (B, H, T, D) of T more tokens → those of all tokens."""
        start, self.length = self.length, self.length + k.size(2)
        assert self.length <= self.most, "the cache is full"
        if self.buffer is None:  # made when the first keys say on which device, and in which type
            self.buffer = k.new_empty(2, *k.shape[:2], self.most, k.size(3))
        self.buffer[0, :, :, start : self.length] = k
        self.buffer[1, :, :, start : self.length] = v
        return self.buffer[:, :, :, : self.length].unbind(0)


# cuDNN's attention makes a plan for each length: 39 of the 41 ms that a generated token took on an
# H100, whose lengths are all new. PyTorch's other fused kernels have none to make
torch.backends.cuda.enable_cudnn_sdp(False)


class Attention(nn.Module):
    """Causal self-attention: each token asks the tokens up to itself. x (B, T, C) → (B, T, C)"""

    def __init__(self, config: ModelConfig, n_heads: int) -> None:
        super().__init__()
        C = config.d_model
        self.n_heads = n_heads
        self.p, self.p_out = config.dropout, config.dropout_of("residual")
        self.rotary = config.position == "rotary"
        # q k^T adds D products, so its spread grows as sqrt(D): divided by that, the softmax is
        # about as sharp for a head of any size
        self.scale = config.attn_scale or (C // n_heads) ** -0.5
        self.qkv = nn.Linear(C, 3 * C, bias=config.bias)  # one matrix product for all three
        self.out = nn.Linear(C, C, bias=config.bias)  # mixes what the heads have found

    def project(
        self, x: torch.Tensor, start: int = 0
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """x (B, T, C), whose first token has position `start` → q, k, v, each (B, H, T, D)."""
        B, T, _ = x.shape
        # (B, T, 3 C) → (B, T, 3, H, D) → three of (B, H, T, D)
        q, k, v = self.qkv(x).view(B, T, 3, self.n_heads, -1).permute(2, 0, 3, 1, 4)
        if self.rotary:  # then q k^T depends on how far apart two tokens are, not on where
            q, k = rotate(q, start), rotate(k, start)
        return q, k, v

    def forward(self, x: torch.Tensor, cache: Cache | None = None) -> torch.Tensor:
        p = self.p if self.training else 0.0  # the fused kernel does not know the mode
        q, k, v = self.project(x, cache.length if cache else 0)
        if cache:  # the keys and values of the tokens before x come first
            k, v = cache.append(k, v)
        T, S = q.size(2), k.size(2)
        # the fused kernel is slower with dropout on a CPU, wrong for some shapes on Apple's GPUs,
        # and counts queries from key 0, where ours are the last T of S
        kind = x.device.type
        if kind == "mps" or (kind == "cpu" and p) or 1 < T < S:
            y, _ = readable_attention(q, k, v, self.scale, p)
        else:  # the same without storing the (T, S) weights; one token, the last, sees every key
            options = dict(dropout_p=p, is_causal=T > 1, scale=self.scale)
            y = F.scaled_dot_product_attention(q, k, v, **options)
        y = y.transpose(1, 2).reshape(x.shape)  # (B, H, T, D) → heads side by side
        return dropout(self.out(y), self.p_out, self.training)


class MLP(nn.Module):
    """The feed-forward part: each token by itself. x (B, T, C) → (B, T, C)"""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.p = config.dropout_of("residual")
        self.up = nn.Linear(config.d_model, config.d_ff, bias=config.bias)
        self.out = nn.Linear(config.d_ff, config.d_model, bias=config.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return dropout(self.out(F.gelu(self.up(x))), self.p, self.training)


class Block(nn.Module):
    """One layer: what attention finds, then what the feed-forward part makes of it, is added to
    the residual stream x (B, T, C). Each reads a normalised copy, so that the stream may grow."""

    def __init__(self, config: ModelConfig, n_heads: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(config.d_model)
        self.attn = Attention(config, n_heads)
        self.has_mlp = config.d_ff > 0  # the depth tasks are attention alone
        if self.has_mlp:
            self.norm2 = nn.LayerNorm(config.d_model)
            self.mlp = MLP(config)

    def forward(self, x: torch.Tensor, cache: Cache | None = None) -> torch.Tensor:
        x = x + self.attn(self.norm1(x), cache)
        if self.has_mlp:
            x = x + self.mlp(self.norm2(x))
        return x


LOGITS_AT_ONCE = 2**26  # in float32 256 MB
CPU_ROWS = 256  # of float32; fewer would pass over dweight too often, more are not much faster
ALIGNED = 64  # words: a GPU's products in half precision are slow where V is odd, as the report's
HALF_ROWS = 1024  # fp16 ends at 65,504, which so many products stay below if none is above 63
SOFTMAX_ROWS = 32  # so few rows in float32 stay in a CPU's cache
GRADIENT_WORDS = 4096  # and so many words' gradients, in half precision and in float32


def rows_at_once(n: int, n_words: int, half: bool, on_cpu: bool) -> int:
    """Of n rows of logits over n_words words, how many the head computes at a time."""
    rows = max(64, min(n, LOGITS_AT_ONCE // n_words))
    if half:
        return min(rows, HALF_ROWS)
    return min(rows, CPU_ROWS) if on_cpu else rows


def loss_to_gradient(
    logits: torch.Tensor, targets: torch.Tensor, grads: bool = True
) -> torch.Tensor:
    """A few rows' cross-entropy: logits (n, V), targets (n,) → nll (n,) in float32 or better.

    With `grads` the logits become the gradient of sum(nll) by them, in the memory where they are.
    """
    exact = torch.promote_types(logits.dtype, torch.float32)  # a softmax in half would round
    if logits.is_cuda:
        log_p = torch.log_softmax(logits, 1, dtype=exact)  # it converts on its way
    else:
        log_p = logits.to(exact)  # a copy in half precision alone
        torch.log_softmax(log_p, 1, out=log_p)
    target = targets[:, None]
    nll = -log_p.gather(1, target).squeeze(1)
    if grads:
        # the gradient of a row's nll by its logits: the softmax p less 1 at the target
        d = log_p.exp_()
        d.scatter_add_(1, target, d.new_full(target.shape, -1.0))
        logits.copy_(d)  # entries of at most 1: no overflow before the loss scale comes in
    return nll


def chunked_loss(
    h: torch.Tensor, weight: torch.Tensor, targets: torch.Tensor, grads: bool = True
) -> tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None]:
    """Cross-entropy of h @ weight^T and its gradients, a few rows at a time.

    h (N, C), weight (V, C), targets (N,) → nll (N,), dh (N, C), dweight (V, C): the gradients of
    sum(nll). All (N, V) logits would be 5 GB at the report's size; here `rows` of them live at a
    time, and give their gradient before they go.
    """
    N, V = len(h), len(weight)
    exact = torch.promote_types(h.dtype, torch.float32)
    on_cpu, half = h.device.type == "cpu", h.dtype != exact
    rows = rows_at_once(N, V, half, on_cpu)
    softmax_rows = SOFTMAX_ROWS if on_cpu else rows
    if half:  # more rows, of zeros: words that are none
        weight = F.pad(weight, (0, 0, 0, -V % ALIGNED))
    words = GRADIENT_WORDS if on_cpu else len(weight)
    # buffers for all chunks: new memory for each would take a CPU as long as the conversions do
    buffer = torch.empty(min(N, rows), len(weight), dtype=h.dtype, device=h.device)
    nll, dh, dweight = torch.empty(N, dtype=exact, device=h.device), None, None
    if grads:
        dh, dweight = torch.empty_like(h), torch.zeros_like(weight, dtype=exact)
        product = torch.empty_like(weight[:words]) if half else None
    # a causal model's loss is a sum over tokens, so each chunk of rows can be done with for good
    for i in range(0, N, rows):
        x = h[i : i + rows]
        logits = torch.mm(x, weight.T, out=buffer[: len(x)])  # (rows, V)
        logits[:, V:] = -math.inf  # so that a word that is none has the probability 0
        for j in range(0, len(x), softmax_rows):
            few = slice(i + j, min(i + j + softmax_rows, i + len(x)))
            nll[few] = loss_to_gradient(logits[j : j + softmax_rows], targets[few], grads)
        if grads:
            d = logits  # the gradient by them, from here on
            torch.mm(d, weight, out=dh[i : i + rows])
            if half:  # products in half, their sum in float32
                for j in range(0, len(weight), words):
                    part = product[: len(weight) - j]
                    dweight[j : j + words] += torch.mm(d[:, j : j + words].T, x, out=part)
            else:
                dweight.addmm_(d.T, x)
    return nll, dh, dweight[:V] if grads else None


class HeadLoss(torch.autograd.Function):
    """chunked_loss in `dtype`, differentiable: (h, weight, targets, dtype, grads) → nll (N,).

    The gradients are formed on the way forward, for tokens of equal weight, all that training asks
    for; RuntimeError for other weights, and for a second way back.
    """

    @staticmethod
    def forward(
        ctx: Any,
        h: torch.Tensor,
        weight: torch.Tensor,
        targets: torch.Tensor,
        dtype: torch.dtype,
        grads: bool,
    ) -> torch.Tensor:
        nll, dh, dweight = chunked_loss(h.to(dtype), weight.to(dtype), targets, grads)
        # kept on ctx and not by save_for_backward, so that backward can scale them in place
        ctx.gradients = dh, dweight
        ctx.types = h.dtype, weight.dtype
        return nll

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, g: torch.Tensor) -> tuple:
        if ctx.gradients is None or (g != g[:1]).any():
            raise RuntimeError("the head's loss goes back once, with one weight for all its tokens")
        dh, dweight = ctx.gradients
        ctx.gradients = None
        scale = g[:1].sum()  # the loss scale over the token count; 0 where no token has a loss
        h_type, weight_type = ctx.types
        return dh.to(h_type).mul_(scale), dweight.to(weight_type).mul_(scale), None, None, None


def last_logits(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """x (B, C), weight (V, C) → logits (B, V), for few rows of x.

    x @ weight^T, with the factors the other way round and never a single row: at the report's size
    a CPU takes a quarter of the time for one row, an eighth for two.
    """
    rows = x.repeat(2, 1) if len(x) == 1 else x
    return (weight @ rows.T).T[: len(x)]


class GPT(nn.Module):
    """tokens (B, T) int64 → logits (B, T, V), with a cache those of the last token, (B, 1, V);
    with targets (B, T), -100 for none → loss_sum, n_tokens, each (B,).

    `loops` applies the stack of layers so many times instead of config.n_loops. Targets (B, loops,
    T) ask for a loss after each loop; their sum and count leave as one.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        c = self.config = config.validate()
        if not c.vocab_size:
            raise ValueError(
                "vocab_size 0 is unknown; give the number of words, or train() Data(n_words=…)"
            )
        # names as in PyTorch's own modules: they are the keys of the checkpoint
        self.token_embedding = nn.Embedding(c.vocab_size, c.d_model)
        if c.position == "learned":
            self.position_embedding = nn.Embedding(c.block_size, c.d_model)
        self.blocks = nn.ModuleList(Block(c, n) for n in c.heads)
        self.norm = nn.LayerNorm(c.d_model)
        if not c.tie_weights:
            self.head = nn.Linear(c.d_model, c.vocab_size, bias=False)
        self.autocast_dtype = None  # half precision's, set by train()
        self.compiled = None  # torch.compile's forms of the blocks, set by train()
        self.checkpointed = False  # whether layers are computed twice, set by train()
        self.gradient_loops = 0  # the last loops alone have a gradient; 0: all; set by train()
        self.n_words = c.vocab_size  # ids from here on belong to no word and are never sampled
        self.init_weights()
        n = sum(p.numel() for p in self.parameters())
        assert n == parameters(c)["total"], "parameters() does not count what the model has"

    @torch.no_grad()
    def init_weights(self) -> None:
        """The table of GPT-2 in `transformers`, with init_std 0.02:

        embeddings, qkv, up, head   normal, init_std
        attn.out, mlp.out           normal, init_std / sqrt(additions to the residual stream)
        norms                       weight 1, bias 0, as they are made: what has "norm" in its name
        biases, if there are any    0

        With init "pytorch" weights stay as PyTorch's modules have made them, embeddings with a
        standard deviation of 1, but for attention, as in its nn.MultiheadAttention.
        """
        c = self.config
        if c.init == "pytorch":
            for block in self.blocks:
                nn.init.xavier_uniform_(block.attn.qkv.weight)
                if c.bias:
                    block.attn.qkv.bias.zero_()
                    block.attn.out.bias.zero_()
            return
        # each addition to the residual stream is independent at first, so that its variance grows
        # with their number; divided by its root, the stream is as large for any depth
        additions = c.n_layers * c.n_loops * (2 if c.d_ff else 1)
        for name, w in self.named_parameters():
            if name.endswith("bias"):
                w.zero_()
            elif name.endswith("out.weight"):
                w.normal_(0, c.init_std / additions**0.5)
            elif "norm" not in name:
                w.normal_(0, c.init_std)

    def num_params(self) -> dict[str, int]:
        """Parameters by part, as parameters() counts them."""
        return parameters(self.config)

    @property
    def head_weight(self) -> torch.Tensor:
        """(V, C)"""
        if self.config.tie_weights:
            return self.token_embedding.weight
        return self.head.weight

    def embed(self, tokens: torch.Tensor, start: int = 0) -> torch.Tensor:
        """tokens (B, T), the first at position `start` → the stream's beginning, (B, T, C)."""
        c, T = self.config, tokens.size(1)
        # the head has made a dense gradient (V, C) of a tied weight: a sparse one saves a second
        sparse = c.tie_weights and tokens.device.type == "cpu"
        x = F.embedding(tokens, self.token_embedding.weight, sparse=sparse)  # (B, T, C)
        if c.position == "learned":  # rotary positions come in with attention's q and k
            if start + T > c.block_size:
                raise ValueError(f"{start + T} tokens do not fit block_size {c.block_size}")
            x = x + self.position_embedding.weight[start : start + T]
        return dropout(x, c.dropout_of("embedding"), self.training)

    def run_loops(
        self, tokens: torch.Tensor, cache: list[Cache] | None = None, loops: int | None = None
    ) -> Iterator[torch.Tensor]:
        """Yield the residual stream (B, T, C) after each loop, an application of all layers, before
        the last norm.

        In `cache`, a Cache for each time a layer is applied, keys and values gather: the next call
        goes on where this one ends.
        """
        c = self.config
        start = cache[0].length if cache else 0
        x = embedded = self.embed(tokens, start)
        n_kept = max(0, c.loop_keeps - start)  # of these tokens
        layers = self.compiled if self.compiled and self.training else self.blocks
        n = c.n_loops if loops is None else loops
        if n < 1:
            raise ValueError(f"loops is {n}; give 1 or more, or None for those of the settings")
        # loops before these lead there and are not learned from: a step stays nearly as cheap as
        # one of a few loops (Bansal et al. 2022, arXiv 2202.05826)
        learned = min(n, self.gradient_loops or n)
        for loop in range(n):  # the same weights again (arXiv 2502.17416)
            with torch.set_grad_enabled(torch.is_grad_enabled() and loop >= n - learned):
                if c.loop_start in ("normalised", "recall"):
                    # the norm keeps a stream that grows with each loop from drowning the input
                    # out: so a loop more looks like the loops of training
                    x = F.layer_norm(x, (c.d_model,))
                if c.loop_start in READ_INPUT:
                    x = x + embedded
                if c.loop_noise and self.training:  # a model that finds back is not led astray
                    x = x + c.loop_noise * torch.randn_like(x)
                for i, layer in enumerate(layers):
                    # keep what goes into the layer alone, and compute the rest again on the way
                    # back
                    if self.checkpointed and torch.is_grad_enabled():
                        layer = functools.partial(checkpoint, layer, use_reentrant=False)
                    x = layer(x, cache[loop * c.n_layers + i] if cache else None)
                if loop == 0:
                    kept = x[:, :n_kept]
                elif n_kept:
                    # what the others look up is the same in each loop from the second on, but for
                    # noise and dropout: it cannot fade when there are more loops than in training
                    x = torch.cat((kept, x[:, n_kept:]), 1)
            yield x

    def hidden(
        self, tokens: torch.Tensor, cache: list[Cache] | None = None, loops: int | None = None
    ) -> torch.Tensor:
        """The residual stream after the last loop and the last norm, (B, T, C)."""
        for after_loop in self.run_loops(tokens, cache, loops):
            x = after_loop  # only the last one is wanted
        return self.norm(x)

    def forward(
        self,
        tokens: torch.Tensor,
        targets: torch.Tensor | None = None,
        cache: list[Cache] | None = None,
        loops: int | None = None,
    ) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
        # DataParallel's threads inherit "autocast on" but not its dtype: so it is entered here
        autocast = torch.autocast(
            tokens.device.type,
            self.autocast_dtype,
            enabled=self.autocast_dtype is not None,
            # before PyTorch 2.10 a weight that was converted in a loop without a gradient would be
            # kept so for the loops that have one
            cache_enabled=not self.gradient_loops,
        )
        with autocast:
            if targets is None:
                x = self.hidden(tokens, cache, loops)  # (B, T, C)
                if cache:  # who generates needs the last token's logits alone
                    return last_logits(x[:, -1], self.head_weight)[:, None]
                return F.linear(x, self.head_weight)
            if targets.dim() == 2:  # (B, T): after the last loop
                x = self.hidden(tokens, loops=loops)
            else:  # (B, loops, T): a loss after each loop
                assert loops in (None, targets.size(1)), "the targets say how many loops"
                after_each = self.run_loops(tokens, loops=targets.size(1))
                x = torch.stack([self.norm(x) for x in after_each], 1)  # (B, loops, T, C)
        # sums and counts leave, no means: so 1, 2 or uneven shards give the same gradient.
        # tokens without a target are left out before the head, the costliest part
        has_target = targets != -100
        where = has_target.nonzero(as_tuple=True)  # its sequence, (its loop,) its place: each (N,)
        dtype, grads = self.autocast_dtype or x.dtype, torch.is_grad_enabled()
        nll = HeadLoss.apply(x[where], self.head_weight, targets[where], dtype, grads)
        loss_sum = nll.new_zeros(len(tokens)).index_add(0, where[0], nll)
        return loss_sum.float(), has_target.flatten(1).sum(1).float()


def parameters(config: ModelConfig) -> dict[str, int]:
    """Parameters of GPT(config) by part, counted without building it; `head` is 0 when tied,
    `final_norm` closes the sum to `total`."""
    c = config.validate()
    C = c.d_model
    block = 4 * C * C + 2 * C  # qkv, out and the norm before them
    if c.d_ff:
        block += 2 * C * c.d_ff + 2 * C  # up, out and their norm
    if c.bias:
        block += 4 * C + (c.d_ff + C if c.d_ff else 0)
    n = dict(embedding=c.vocab_size * C)
    n["position"] = c.block_size * C if c.position == "learned" else 0
    n["blocks"] = c.n_layers * block  # however often they are looped
    n["head"] = 0 if c.tie_weights else c.vocab_size * C
    n["final_norm"] = 2 * C
    return dict(total=sum(n.values()), **n)


def in_eval_mode(function: Callable) -> Callable:
    """The function of a model, run in eval mode and without gradients; the mode is given back."""

    @functools.wraps(function)
    @torch.no_grad()
    def run(model, *args, **kwargs):
        was_training = model.training
        model.eval()
        try:
            return function(model, *args, **kwargs)
        finally:
            model.train(was_training)

    return run


# ---------- 4. text → blocks: rows, their learnable parts marked, as tokens ----------


def generator(*numbers: object) -> torch.Generator:
    """A random generator that is a function of the numbers, whatever was drawn elsewhere."""
    return torch.Generator().manual_seed(zlib.crc32(repr(numbers).encode()))


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that the memory is full. Not by the word alone: "an illegal memory
    access" is another matter, whose traceback is wanted. A CPU's allocator raises a plain
    RuntimeError, and so do some of CUDA's libraries."""
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)):
        return True
    if not isinstance(error, RuntimeError):
        return False
    text = str(error)
    return "DefaultCPUAllocator" in text or "out of memory" in text


@contextlib.contextmanager
def one_line_errors(subject: object, problem: str) -> Iterator[None]:
    """Make any error a ValueError of one line, "subject problem: its first words": parsers raise
    all kinds on a broken file. The error itself stays as its cause. That the memory is full is no
    fault of the subject, and stays what it is."""
    try:
        yield
    except (Exception, SystemExit) as error:
        if is_out_of_memory(error):
            raise
        reason = " ".join(str(error).split()) or type(error).__name__
        short = reason if len(reason) <= 150 else f"{reason[:149].rsplit(' ', 1)[0]} …"
        raise ValueError(f"{subject} {problem}: {short}") from error


def regular_file(path: Path) -> Path:
    """The path, if it is one of a file that ends: a pipe, say, would be waited on for ever."""
    if os.path.exists(path) and not os.path.isfile(path):
        raise ValueError("it is not a regular file")
    return path


# the embedded problems: reasoning whose answers can be checked, of any length, made here

FAMILIES = ("chain", "lookup", "order")


def embedded_problem(
    draw: Callable[[], float], family: str, steps: int, modulus: int = 10, ring: Sequence = ()
) -> tuple[str, str, str, int, str, int]:
    """A problem of `steps` steps: its question, worked steps, answer, the number of answers that
    are possible, its key, and how many keys there are.

    chain   a number to which numbers are added, modulo `modulus`; guessing finds 1 in `modulus`
    lookup  a ring of six or more letters in mixed order, followed `steps` times; 1 in (ring - 1)
    order   steps + 1 letters, neighbours compared in mixed order; which is k-th: 1 in (steps + 1)

    Problems of one key are the same: the numbers of a chain, the ring whatever its first letter,
    the line of letters; in whatever order the pairs are given, and whatever is asked of them.
    `draw()` gives a number from 0 to 1, 1 excluded. Of a `ring` that was given before, a list of
    letters, a lookup asks from any of them, without its pairs.
    """
    if family == "chain":
        value, question, work = int(modulus * draw()), [], []
        for _ in range(steps):
            add = 1 + int((modulus - 1) * draw())
            question.append(f"add {add}" if question else f"From {value} add {add}")
            work.append(f"{value} + {add} = {(value + add) % modulus}")
            value = (value + add) % modulus
        asked = f"{', '.join(question)} modulo {modulus} ?"
        return asked, ", ".join(work), str(value), modulus, asked, modulus * (modulus - 1) ** steps
    if ring:
        first = int(len(ring) * draw())
        letters = ring[first:] + ring[:first]
    else:
        letters = sorted("abcdefghij", key=lambda _: draw())
    if family == "lookup":
        line = letters[: max(6, steps + 1)]
        first = line.index(min(line))
        key, keys = " ".join(line[first:] + line[:first]), math.perm(10, len(line)) // len(line)
        pairs = [f"{a} {b}" for a, b in zip(line, line[1:] + line[:1])]
        pairs.sort(key=lambda _: draw())
        asked = f"Go {steps} from {line[0]} ?"
        if not ring:
            asked = f"Follow {', '.join(pairs)}. {asked}"
        return asked, " ".join(line[: steps + 1]), line[steps], len(line) - 1, key, keys
    line, k = letters[: steps + 1], int((steps + 1) * draw())
    key, keys = " ".join(line), math.perm(10, len(line))
    pairs = [f"{a} {b}" for a, b in zip(line, line[1:])]
    pairs.sort(key=lambda _: draw())
    asked = f"Sort {', '.join(pairs)}. Number {k + 1} ?"
    return asked, key, line[k], len(line), key, keys


def is_held_out(key: str, keys: int) -> bool:
    """Whether training never sees the problem of this key, of which there are `keys`: an eighth of
    them, a half where they are few."""
    share = 8 if keys >= 600 else 2
    return zlib.crc32(key.encode()) % share == 0


def embedded_rows(
    n: int,
    held_out: bool = False,
    steps: Sequence[int] = (1, 2, 3),
    seed: int = 0,
    families: Sequence[str] = FAMILIES,
    modulus: int = 10,
    direct: bool = False,
    questions: int = 1,
) -> list[dict]:
    """n generated conversations in the published row format, families and step counts in turn, the
    answer after the worked steps or, with `direct`, without them.

    To train on, a ring is asked so many `questions`, one after another. All but the first go from
    a letter to the one before it, all the way round, so that there is more to learn from
    (docs/tutorials/first_run.py). The test asks one.

    Training never sees what is_held_out(). No key is held out twice; a kind that has no more drops
    out, and if none is left there are fewer than n rows; ValueError if there are none at all. Only
    random.random() is drawn from, whose numbers Python keeps the same in every version and on every
    platform: the same seed gives the same bytes.
    """
    draw, rows, taken = random.Random(2 * seed + held_out).random, [], set()
    kinds, turn, tried = list(itertools.product(steps, families)), 0, 0
    while len(rows) < n:
        if not kinds and not rows:
            kept_out = f"with steps {tuple(steps)} and modulus {modulus}"
            raise ValueError(f"{kept_out} there is no problem left; give others")
        if not kinds:
            break
        k, family = kinds[turn % len(kinds)]
        question, work, answer, candidates, key, keys = embedded_problem(draw, family, k, modulus)
        tried += 1
        if is_held_out(key, keys) == held_out and key not in taken:
            asked = [(question, work, answer)]
            if held_out:
                taken.add(key)
            elif family == "lookup":
                ring = key.split()
                for _ in range(1, questions):
                    asked.append(embedded_problem(draw, family, len(ring) - 1, ring=ring)[:3])
            messages = []
            for question, work, answer in asked:
                says = f"#### {answer}" if direct else f"<think>\nSo {work}\n</think>\n\n {answer}"
                messages.append(dict(role="user", content=question))
                messages.append(dict(role="assistant", content=says))
            rows.append(dict(messages=messages, family=family, steps=k, guess=1 / candidates))
            turn, tried = turn + 1, 0
        elif tried == 2000:
            kinds.remove((k, family))
            tried = 0
    return rows


# rows of files and of the Hugging Face hub


def read_text(path: str, flag: str = "data") -> str:
    """The text of a file in UTF-8, one that ends in .gz unpacked; ValueError, which names the
    `flag` that it was given to, for what is none."""
    if not os.path.exists(path):
        raise ValueError(f"{flag} {path} is not there; give the path of a file")
    with one_line_errors(f"{flag} {path}", "cannot be read"):
        opened = gzip.open if path.lower().endswith(".gz") else open
        how = dict(encoding="utf-8-sig", errors="surrogateescape")
        with opened(regular_file(path), "rt", **how) as f:
            text = f.read()
        if "\ufeff" in text:  # files that begin with this mark, one after the other
            text = re.sub("(?m)^\ufeff", "", re.sub("(?<=})\ufeff(?={)", "\n", text))
        if odd := re.search("[\0\udc80-\udcff]", text):  # bytes that are not UTF-8 are these
            wrong = "not text in UTF-8; save it as UTF-8"
            if odd[0] == "\0":
                wrong = "a NUL; leave it out or, of UTF-16, save it as UTF-8"
            raise ValueError(f"character {odd.start() + 1} is {wrong}")
    return text


def parse_json(text: str) -> Any:
    """The value of a JSON text; ValueError for half a character, which no tokenizer takes."""
    value = json.loads(text)
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        half = f"\\u{ord(error.object[error.start]):04x}"
        raise ValueError(f"{half} is half a character, which no tokenizer takes") from None
    return value


def read_jsonl(path: str) -> list[dict]:
    """Rows of a .jsonl file, one on each line; also of a file by that name that is one list."""
    text = read_text(path)
    if re.match(r"\s*\[\s*\{", text):
        problem = "is no JSON to read (with a row per line it is a .jsonl)"
        with one_line_errors(f"data {path}", problem):
            return parse_json(text)
    rows = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            with one_line_errors(f"data {path}, line {number}", "is no JSON to read"):
                rows.append(parse_json(line))
    return rows


HUB = "is neither a local file or folder nor to be had from the Hugging Face hub; on Kaggle turn"


def hub_splits(source: str) -> dict[str, Any]:
    """{name of a split: its rows} of a data set of the hub, HUB_ID or HUB_ID:SUBSET."""
    name, _, subset = source.partition(":")
    if not name.strip():
        raise ValueError(f"data {source!r} names no data set; give HUB_ID or HUB_ID:SUBSET")
    from datasets import load_dataset

    advice = f"{HUB} Internet on, or give --data FILE or --data embedded"
    with one_line_errors(f"data {source}", advice):
        return dict(load_dataset(name, subset or None))


# the forms of a row, each read as turns of a conversation or as a text

ROW_FORMS = (
    "messages or conversations, question + answer, prompt + completion or response, "
    "instruction + output or response, or text"
)
KNOWN_ROLES = ("system", "user", "assistant", "tool")
ROLES = dict(human="user", prompter="user", developer="system", function="tool")
ROLES |= dict.fromkeys(("gpt", "model", "bot", "ai", "chatgpt"), "assistant")
WITH_PASSAGE = (
    "it is a question with choices or a passage: --loader llmini trains on it, --score asks it"
)
KINDS_OF_JSON = {type(None): "null", bool: "true or false", int: "a number", float: "a number"}
KINDS_OF_JSON |= {str: "a text", list: "a list", dict: "an object"}


def kind_of(value: object) -> str:
    """What JSON calls a value, as "a text"."""
    return KINDS_OF_JSON.get(type(value), type(value).__name__)


def content_text(name: str, content: Any) -> str:
    """The text of a turn's content: a text, or a list of parts that are texts."""
    if isinstance(content, list) and content:
        for part in content:
            kind = part.get("type", "text") if isinstance(part, dict) else "text"
            text = part.get("text") if isinstance(part, dict) else part
            if kind != "text" or not isinstance(text, str):
                raise ValueError(f"{name} has a part that is no text: {kind!s:.40}")
        return "".join(part["text"] if isinstance(part, dict) else part for part in content)
    if not isinstance(content, str):
        raise ValueError(f"{name} is {kind_of(content)}, no text")
    return content


def read_turn(message: Any, remark: Callable[[str], object]) -> tuple[str, str] | None:
    """(role, text) of a message; None for one that only calls a tool."""
    if not isinstance(message, dict):
        raise ValueError(f"a message is {kind_of(message)}, no object")
    written = message.get("role", message.get("from"))
    if not isinstance(written, str) or not re.fullmatch(r"\w[\w .-]{0,39}", written):
        raise ValueError(f"a role is {'null' if written is None else f'{written!r:.40}'}")
    role = written if written in KNOWN_ROLES else written.lower()
    role = ROLES.get(role, role)
    if role not in KNOWN_ROLES:  # a name of one's own stays as it is
        role = written
    if role != written:
        remark(f"role {written} is read as {role}")
    name = "content" if "content" in message or "value" not in message else "value"
    content = message.get(name)
    if not content and message.get("tool_calls") is not None:
        remark("turns that only call a tool are left out")
        return None
    text = content_text(name, content)
    thoughts = message.get("reasoning_content") or message.get("reasoning")
    if role == "assistant" and isinstance(thoughts, str) and "<think>" not in text:
        remark("reasoning_content is read as <think>…</think>")
        text = f"<think>\n{thoughts.strip()}\n</think>\n\n{text}"
    if role == "assistant" and not text.strip():
        raise ValueError("an assistant's turn is empty")
    return role, text


def read_pair(row: Any) -> list[dict] | None:
    """The messages of a row that names what is asked and what is said; None if it does not."""
    asked = next((k for k in ("question", "prompt", "instruction") if row.get(k) is not None), None)
    if asked is None:
        return None
    answers = dict(question=("answer", "response"), prompt=("completion", "response"))
    answers["instruction"] = ("output", "response")
    said = next((k for k in answers[asked] if row.get(k) is not None), answers[asked][0])
    if isinstance(row[asked], list) and isinstance(row.get(said), list):  # of messages, both
        return row[asked] + row[said]
    question = content_text(asked, row[asked])
    if asked == "instruction":
        for more in ("input", "context"):
            if isinstance(row.get(more), str) and row[more].strip():
                question += f"\n\n{row[more]}"
    answer = content_text(said, row.get(said))
    if row.get("choices") and re.fullmatch("[A-Z]", answer):  # the letter of one of them
        raise ValueError(WITH_PASSAGE)
    if not answer.strip():
        raise ValueError(f"{said} is empty")
    return [dict(role="user", content=question), dict(role="assistant", content=answer)]


def turns_of(
    row: Any, remark: Callable[[str], object] = lambda text: None
) -> list[tuple[str, str]]:
    """[(role, text), …] of a row in any of ROW_FORMS; a plain text has the role "text". ValueError
    says why it is none; remark() is told what is read in another way than it is written."""
    if not isinstance(row, dict):
        raise ValueError(f"it is {kind_of(row)}, no object")
    messages = row.get("messages") or row.get("conversations") or read_pair(row)
    if not messages:
        if row.get("text") is None:  # columnar files fill the other rows' columns with None
            columns = sorted(f"{key!s:.40} ({kind_of(value)})" for key, value in row.items())
            raise ValueError(f"it has {', '.join(columns[:20]) or 'no columns'}")
        text = content_text("text", row["text"])
        if not text.strip():
            raise ValueError("text is empty")
        return [("text", text)]
    if not isinstance(messages, list):
        column = "messages" if row.get("messages") else "conversations"
        raise ValueError(f"{column} is {kind_of(messages)}, no list")
    turns = []
    for m in messages:
        # most have nothing to be read otherwise; to see that here takes a third of the time
        role, text = (m.get("role"), m.get("content")) if type(m) is dict else (None, None)
        has_text = type(text) is str and text and not text.isspace()
        if has_text and role in KNOWN_ROLES and len(m) == 2:
            turns.append((role, text))
        elif turn := read_turn(m, remark):
            turns.append(turn)
    # a system turn can stand beside these forms
    beside = not row.get("messages") and (row.get("conversations") or row.get("instruction"))
    system = row.get("system") if beside else None
    if isinstance(system, str) and system.strip():
        turns.insert(0, ("system", system))
    if not any(text.strip() for _, text in turns):
        raise ValueError("its turns are empty")
    return turns


def has_passage(row: Any) -> bool:
    """Whether an unusable row looks like one of the multiple-choice sets that everyone has."""
    if not isinstance(row, dict):
        return False
    known = ("choices", "endings", "passage", "answers")
    return any(row.get(name) for name in known) or isinstance(row.get("question"), dict)


def plural(n: int, noun: str) -> str:
    """1, "row" → "1 row"; 2,000, "row" → "2,000 rows" """
    return f"{n:,} {noun}" + ("" if n == 1 else "s")


def sample_order(n: int) -> np.ndarray:
    """The numbers below n in the order in which a sample takes them, whatever a run's seed."""
    return torch.randperm(n, generator=generator("max_rows")).numpy()


def usable_rows(
    source: str, rows: Sequence, facts: dict, most: int = 0, change: Callable | None = None
) -> list[dict]:
    """The rows of a source, a list or a data set of the hub, that turns_of() can read, in their
    order; with `most` a sample of so many, drawn alike for every seed of a run. ValueError if none
    can be read.

    change(row) may make another row of each. To `facts` are added `unusable_rows`, their number,
    and `notes`, what a user is to be told: what was left out and why, what was read otherwise.
    """
    if not isinstance(rows, list) and not hasattr(rows, "select"):
        raise ValueError(f"data {source} is no list of rows, [{{…}}, {{…}}]; it needs one")
    n, order = len(rows), np.arange(len(rows))
    if 0 < most < n:
        order = sample_order(n)
    taken, at, looked_at = [], [], 0  # rows, and where they stand in the source
    reasons, remarks, example = Counter(), Counter(), ""
    while looked_at < n and (not most or len(taken) < most):
        # as many rows as are missing: of a data set no more are read than are wanted
        places = np.sort(order[looked_at : looked_at + (most - len(taken) if most else n)]).tolist()
        looked_at += len(places)
        with one_line_errors(f"data {source}", "cannot be read"):
            some = rows.select(places) if hasattr(rows, "select") else [rows[i] for i in places]
            some = list(some)
        for i, row in zip(places, some):
            row = change(row) if change else row
            told = []
            try:
                turns_of(row, told.append)
                taken.append(row)
                if 0 < most < n:
                    at.append(i)
                remarks.update(told)
            except ValueError as error:
                reason = WITH_PASSAGE if has_passage(row) else str(error)
                reasons[reason] += 1
                example = example or f"row {i + 1}: {reason}"
    left_out = sum(reasons.values())
    notes = facts.setdefault("notes", [])
    facts["unusable_rows"] = facts.get("unusable_rows", 0) + left_out
    if left_out and not taken:
        none = f"data {source}: none of {plural(looked_at, 'row')} can be read"
        raise ValueError(f"{none}: {example}; a row has {ROW_FORMS}")
    if left_out:
        why = example
        if len(reasons) > 1:
            counts = [f"{reason:.80} ({k:,})" for reason, k in reasons.most_common(4)]
            why += f"; by reason: {', '.join(counts)}" + (", …" if len(reasons) > 4 else "")
        notes.append(f"{left_out:,} of {plural(looked_at, 'row')} of {source} left out: {why}")
    if looked_at < n:
        notes.append(
            f"{plural(len(taken), 'row')} of {n:,} of {source} are taken, a sample, the same for "
            "every --seed; --max_rows 0 takes all"
        )
    for text, k in remarks.most_common():
        notes.append(f"{source}: {text} ({k:,})")
    if 0 < most < n:  # more than once may have been looked for rows
        taken = [taken[i] for i in sorted(range(len(taken)), key=at.__getitem__)]
    return taken


def row_key(row: dict) -> int:
    """A number of 64 bits of what a row says, spaces aside; of a conversation of what is asked, all
    before the assistant speaks last. Rows with the same number are copies."""
    turns = turns_of(row)
    last = max((i for i, (role, _) in enumerate(turns) if role == "assistant"), default=0)
    text = "\0".join(" ".join(content.split()) for _, content in turns[: last or None])
    digest = hashlib.blake2b(text.encode(errors="replace"), digest_size=8).digest()
    return int.from_bytes(digest)


def row_keys(rows: Sequence[dict]) -> np.ndarray:
    """row_key() of each, (len(rows),) uint64: 8 bytes a row."""
    return np.fromiter(map(row_key, rows), np.uint64, len(rows))


def held_out_places(keys: np.ndarray, n: int) -> np.ndarray:
    """Which of the rows with these keys, in a random order, are held out, (len(keys),) bool: the
    first n, if none is a copy of another. Copies go to the same side: as many kinds as fit in n,
    but at least the smallest one. ValueError if all are copies."""
    _, first, kind, size = np.unique(keys, return_index=True, return_inverse=True,
                                     return_counts=True)  # fmt: skip
    if len(size) == len(keys):
        return np.arange(len(keys)) < n
    if len(size) == 1:
        raise ValueError(f"all {len(keys):,} rows are the same")
    held_out, in_order = np.zeros(len(size), bool), np.argsort(first)
    for one in in_order:
        if size[one] <= n:
            held_out[one] = True
            n -= size[one]
    if not held_out.any():
        held_out[in_order[size[in_order].argmin()]] = True
    return held_out[kind]


def n_held_out(n: int, config: TrainConfig) -> int:
    """How many of n rows are held out: never all."""
    return min(n - 1, math.ceil(n * config.val_fraction))


def split_rows(
    source: str,
    rows: Sequence,
    config: TrainConfig,
    facts: dict | None = None,
    change: Callable | None = None,
) -> tuple[list[dict], list[dict]]:
    """(rows to train on, rows held out) of a source's usable rows, whatever the seed: every run is
    measured on the same rows. With --val_data none is held out. `facts` and `change` as in
    usable_rows()."""
    facts = {} if facts is None else facts
    rows = usable_rows(source, rows, facts, config.max_rows, change)
    if len(rows) < (1 if config.val_data else 2):
        wanted = "it needs at least 2, one to hold out"
        if config.val_data:
            wanted = "it needs at least 1"
        if 0 < config.max_rows < 2:
            wanted += f"; --max_rows {config.max_rows} takes no more of it"
        raise ValueError(f"data {source} has {plural(len(rows), 'row')}; {wanted}")
    order = torch.randperm(len(rows), generator=generator(0)).numpy()
    if config.val_data:
        return [rows[i] for i in order.tolist()], []
    n = n_held_out(len(rows), config)
    keys = row_keys(rows)[order]
    try:
        held_out = held_out_places(keys, n)
    except ValueError as error:
        advice = "give other rows too, or --val_data FILE"
        raise ValueError(f"data {source}: {error}, none can be held out; {advice}") from None
    if copies := len(keys) - len(np.unique(keys)):
        facts.setdefault("notes", []).append(
            f"{plural(copies, 'row')} of {source} repeat another's question or text; copies are "
            f"held out together or not at all"
        )
    train = [rows[i] for i in order[~held_out].tolist()]
    return train, [rows[i] for i in order[held_out].tolist()]


OWN_VALIDATION = ("validation", "valid", "val", "dev")  # what a hub's data sets call that split


def read_source(
    source: str, config: TrainConfig, facts: dict | None = None, change: Callable | None = None
) -> tuple[list[dict], list[dict]]:
    """(rows to train on, rows held out), lists of dicts: of 'embedded', a .jsonl file, or a data
    set of the hub, whose own validation split is held out where it has one."""
    facts = {} if facts is None else facts
    if source == "embedded":
        steps, questions = config.problem_steps, config.ring_questions
        train = embedded_rows(config.max_rows or 20_000, False, steps, questions=questions)
        return train, [] if config.val_data else embedded_rows(600, True, steps)
    if source.endswith(".jsonl"):
        return split_rows(source, read_jsonl(source), config, facts, change)
    if os.path.exists(source):
        raise ValueError(f"data {source} is not a .jsonl file; minidepth_lab reads others")
    splits = hub_splits(source)
    own = next((splits[name] for name in OWN_VALIDATION if name in splits), None)
    if "train" not in splits:
        raise ValueError(f"data {source} has no split train; it has {', '.join(splits)}")
    if own is None or config.val_data:
        return split_rows(source, splits["train"], config, facts, change)
    train = usable_rows(source, splits["train"], facts, config.max_rows, change)
    held_out = usable_rows(f"{source}, validation", own, facts, config.max_rows, change)
    order = torch.randperm(len(train), generator=generator(0)).tolist()
    facts["notes"].append(f"{source} has a validation split of its own, which is held out")
    return [train[i] for i in order], held_out


# rows to text to tokens


def turn_end(tokenizer: "Tokenizer") -> str:
    """What ends a turn: ChatML's token where the tokenizer has it, else its end of text."""
    end = "<|im_end|>"
    number = tokenizer.convert_tokens_to_ids(end)  # of an unknown word: none, or another's
    known = number is not None and tokenizer.convert_ids_to_tokens(number) == end
    return end if known else tokenizer.eos_token or ""


END_OF_TEXT = "<|endoftext|>"


class Markup(str):
    """A text in which a tokenizer's own marks count. In any other text <|im_end|> is ten
    characters, whoever wrote them."""


def marks_of(tokenizer: "Tokenizer") -> list[str]:
    """The tokenizer's control tokens, as they are written: <|im_end|> and the like."""
    return [token.content for token in tokenizer.added_tokens_decoder.values() if token.special]


def segments(row: dict, tokenizer: "Tokenizer | None" = None) -> list[tuple[str, bool]]:
    """[(text, whether the assistant says it), …] of a usable row, in ChatML or as plain text."""
    end, end_of_text = "", ""
    if tokenizer:
        end, end_of_text = turn_end(tokenizer), tokenizer.eos_token or ""
    parts = []
    for role, content in turns_of(row):
        if role == "text":
            parts.append((content, True))
            if not row.get("goes_on"):  # in the next row, as a long text does that was cut
                parts.append((Markup(end_of_text), True))
        else:
            parts.append((Markup(f"<|im_start|>{role}\n"), False))
            parts.append((content, role == "assistant"))
            parts.append((Markup(end), role == "assistant"))
            parts.append(("\n", False))
    return parts


LONGEST = 50_000  # characters of a text tokenized at once: each takes 100 bytes or more


def pieces(text: str) -> Iterator[str]:
    """A text in parts, cut before a space where there is one, and not within 100 characters of its
    end, where a mark may stand."""
    start = 0
    while len(text) - start > LONGEST:
        most = min(start + LONGEST, len(text) - 100)
        space = text.rfind(" ", start + 1, most)
        end = space if space > 0 else most
        yield text[start:end]
        start = end
    yield text[start:]


def short_words(text: str) -> str:
    """A text to make a tokenizer from: the time that one word takes grows with its square."""
    return re.sub(r"(\S{500})(?=\S)|(\s{500})\s+", r"\1\2 ", text) if len(text) > 500 else text


def encode(
    rows: Iterable, tokenizer: "Tokenizer", loss_on: str = "all"
) -> Iterator[tuple[list[int], list[bool]]]:
    """segments() of each row → its token ids, and for each token whether it is learned: two lists.

    Segments are encoded one by one, so that a prompt is what it was in training; a thousand rows
    at a time, so that their texts and lists are never all in memory, and a long text in pieces.
    Control tokens are made of Markup alone."""
    rows = iter(rows)
    # what else a tokenizer returns takes as long as the ids
    plain = dict(add_special_tokens=False, return_attention_mask=False, return_token_type_ids=False)
    while batch := list(itertools.islice(rows, 1000)):
        ids = {Markup: {}, str: {}}  # of either kind of text, each text once
        for parts in batch:
            for text, _ in parts:
                ids[Markup if type(text) is Markup else str][text] = None
        for kind, known in ids.items():
            plain["split_special_tokens"] = kind is str
            short = [text for text in known if len(text) <= LONGEST]
            if short:
                known.update(zip(short, tokenizer(short, **plain).input_ids))
            for text in set(known) - set(short):
                known[text] = []
                for piece in pieces(text):
                    known[text] += tokenizer([piece], **plain).input_ids[0]
        for parts in batch:
            tokens, learn = [], []
            for text, said in parts:
                found = ids[Markup if type(text) is Markup else str][text]
                tokens += found
                learn += [said or loss_on == "all"] * len(found)
            yield tokens, learn


THOUGHTS = ("<think>", "</think>")


def load_tokenizer(name: Path, texts: Iterable[str] = (), size: int = 2048) -> "Tokenizer":
    """The tokenizer of a folder or hub id; 'embedded' makes a byte-level BPE from `texts`, and
    'characters' one whose words are the characters in them."""
    special = [END_OF_TEXT, "<|im_start|>", "<|im_end|>", *THOUGHTS]
    if name == "characters":
        return character_tokenizer(texts, size, special)
    if name == "embedded":
        from tokenizers import ByteLevelBPETokenizer
        from transformers import PreTrainedTokenizerFast

        bpe = ByteLevelBPETokenizer()
        # a text as a whole would take eighty times its size
        texts = (part for text in texts for part in pieces(short_words(text)))
        bpe.train_from_iterator(texts, size, special_tokens=special, show_progress=False)
        bpe = ordinary_thoughts(bpe.to_str())
        return PreTrainedTokenizerFast(tokenizer_object=bpe, eos_token=special[0])
    local = os.path.isdir(name)
    problem = f"{HUB} Internet on, or give --tokenizer DIR or embedded"
    if local:
        problem = "is a folder that cannot be read"
    with one_line_errors(f"tokenizer {name}", problem):
        if local:
            for file in os.listdir(name):
                path = os.path.join(name, file)
                if not os.path.isdir(path):  # a download leaves a .cache, an editor other folders
                    regular_file(path)
        from transformers import AutoTokenizer  # a second, which the embedded one can spare

        # said, so that nobody is asked whether a stranger's code may run
        tokenizer = AutoTokenizer.from_pretrained(
            name, local_files_only=local, trust_remote_code=False
        )
        words = getattr(tokenizer, "added_tokens_decoder", {}).values()
        if any(word.special and word.content in THOUGHTS for word in words):
            tokenizer._tokenizer = ordinary_thoughts(tokenizer.backend_tokenizer.to_str())
        return tokenizer


def ordinary_thoughts(content: str) -> Any:
    """A tokenizers.Tokenizer of its JSON text, with the marks around thoughts as ordinary words:
    they are part of what is said, and what shows an answer would leave control tokens out."""
    from tokenizers import Tokenizer

    content = json.loads(content)
    for word in content["added_tokens"]:
        if word["content"] in THOUGHTS:
            word["special"] = False
    return Tokenizer.from_str(json.dumps(content))


def character_tokenizer(texts: Iterable[str], size: int, special: list[str]) -> "Tokenizer":
    """A tokenizer whose words are `special` and the characters of `texts`, of more than `size` the
    commonest; any other is <unk>."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    counts = Counter()
    for text in texts:
        counts.update(text)
    special = [*special, "<unk>"]
    common = [letter for letter, _ in counts.most_common(size - len(special))]
    words = {word: i for i, word in enumerate([*special, *sorted(common)])}
    made = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    made.decoder = decoders.Fuse()
    made.add_tokens([AddedToken(w, special=w not in THOUGHTS, normalized=False) for w in special])
    return PreTrainedTokenizerFast(
        tokenizer_object=made, eos_token=special[0], unk_token="<unk>",
        clean_up_tokenization_spaces=False,
    )  # fmt: skip


def final_answer(text: str) -> str | None:
    """What a text answers: all after its last ####, else after </think>; None without either."""
    mark = "####" if "####" in text else "</think>"
    return text.rsplit(mark, 1)[1].strip() if mark in text else None


def is_labelled(row: dict) -> bool:
    """Whether it says of itself what embedded rows do; others can have columns so named."""
    family, steps, guess = row.get("family"), row.get("steps"), row.get("guess")
    if not isinstance(family, str) or type(steps) is not int or type(guess) is not float:
        return False
    return bool(family.strip()) and 1 <= steps <= 99 and 0 < guess <= 1


def problem_of(row: dict) -> dict | None:
    """A row as a held-out problem, {messages, solution: the last turn, answer, …}, or None: it is
    checkable if the assistant speaks last, after something that was asked, with a final_answer() of
    one line, 40 characters."""
    *asked, (role, solution) = turns_of(row)
    answer = final_answer(solution)
    if role != "assistant" or not any(text.strip() for _, text in asked):
        return None
    if not answer or len(answer) > 40 or "\n" in answer:
        return None
    messages = [dict(role=role, content=content) for role, content in asked]
    problem = dict(messages=messages, solution=solution, answer=answer)
    if is_labelled(row):
        problem |= {name: row[name] for name in ("family", "steps", "guess")}
    return problem


CHAT = """{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""  # kept with the tokenizer of a model trained on chats; segments() says the same
OWN_SYSTEM = """{% set system = SYSTEM %}{% if messages[0].role != "system" %}<|im_start|>system
{{ system }}<|im_end|>
{% endif %}"""  # stands before CHAT where the data's conversations begin with a system turn


def chat_template(rows: Iterable[dict], end: str) -> str | None:
    """CHAT for conversations among the rows, whose turns `end` ends, with the system turn that at
    least half of them begin with, if there is one; None without conversations."""
    n, firsts = 0, Counter()
    for row in rows:
        role, text = turns_of(row)[0]
        n += role != "text"
        if role == "system":
            firsts[text] += 1
    if not n:
        return None
    chat, own_system = (text.replace("<|im_end|>", end) for text in (CHAT, OWN_SYSTEM))
    system, times = firsts.most_common(1)[0] if firsts else ("", 0)
    if 2 * times < n:
        return chat
    return own_system.replace("SYSTEM", json.dumps(system, ensure_ascii=False)) + chat


def system_turn(tokenizer: "Tokenizer") -> str | None:
    """The system turn that a tokenizer's chat_template() begins with, a text; None without one."""
    begin, _ = OWN_SYSTEM.split("SYSTEM")
    template = tokenizer.chat_template
    if not isinstance(template, str) or not template.startswith(begin):
        return None
    system, _ = json.JSONDecoder().raw_decode(template[len(begin) :])
    return system


# tokens to blocks and batches


def blocks(encoded: Iterable, T: int, packing: str) -> tuple[np.ndarray, np.ndarray]:
    """encode()'s rows → (tokens, targets), each (n_blocks, T) int32; -100 is no target.

    pack: all rows end to end, cut every T tokens; the rest, less than a block, is left out.
    pad:  each row from the start of a block, the last one filled up with zeros; a longer row goes
          on in another block.
    """
    # typed arrays, not lists of numbers: 4 bytes for a token where a list takes 36
    tokens, targets = array.array("i"), array.array("i")
    for ids, learn in encoded:
        following = [i if said else -100 for i, said in zip(ids, learn)]
        if packing == "pack":
            tokens.extend(ids)
            targets.extend(following)
            continue
        tokens.extend(ids[:-1])
        targets.extend(following[1:])
        missing = -len(ids[1:]) % T
        tokens.extend([0] * missing)
        targets.extend([-100] * missing)
    tokens, targets = np.frombuffer(tokens, np.int32), np.frombuffer(targets, np.int32)
    if packing == "pack":
        targets = targets[1:]
    n_blocks = len(targets) // T
    full = n_blocks * T
    return tokens[:full].reshape(n_blocks, T), targets[:full].reshape(n_blocks, T)


def filled(tokens: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Which positions of blocks() hold text, (n_blocks, T) bool: all up to the last token or
    target."""
    there = (tokens != 0) | (targets != -100)
    return np.logical_or.accumulate(there[:, ::-1], axis=1)[:, ::-1]


@functools.lru_cache(4)
def block_order(n: int, seed: int, epoch: int) -> torch.Tensor:
    """The order of n blocks in an epoch, (n,) int64."""
    return torch.randperm(n, generator=generator(seed, epoch))


def batch_rows(step: int, batch_size: int, n: int, seed: int) -> torch.Tensor:
    """Which of n blocks the 0-based step takes, each epoch in a new order: nothing to save, and
    every process of a job knows the whole batch."""
    positions = range(step * batch_size, (step + 1) * batch_size)
    return torch.stack([block_order(n, seed, at // n)[at % n] for at in positions])


@dataclass
class Data:
    """What a model trains on and is measured by. load_data() makes it of text; a study makes its
    own, with methods of its own: a curriculum, batches drawn anew, another measure."""

    train: tuple  # (tokens, targets), each (n_blocks, T) int32
    val: tuple  # the same, several sources in turn
    tokenizer: "Tokenizer | None" = None
    problems: list = field(default_factory=list)  # of problem_of(), several sources in turn
    facts: dict = field(default_factory=dict)  # for the lines printed before the first step
    n_words: int = 0  # ids in use
    val_by_source: dict = field(default_factory=dict)  # as `val`, where there are several sources
    sizes: tuple = ()  # all that were used, defaults too, for config.json
    fresh: bool = False  # draw() never repeats itself: there are no epochs
    seed: int = 0  # train() sets it to the run's
    state: dict = field(default_factory=dict)  # what a resume needs; kept in checkpoints

    def draw(self, step: int, n: int) -> tuple[torch.Tensor, torch.Tensor]:
        """(tokens, targets), each (n, T) int64, of the 0-based step: a function of it, of the seed
        and of the state, so that a resumed run draws the same."""
        rows = batch_rows(step, n, len(self.train[0]), self.seed).numpy()
        return tuple(torch.from_numpy(part[rows]).long() for part in self.train)

    def after_step(self, loss: float) -> None:
        """Called with the training loss after each step that was not skipped."""

    def measure(self, model: GPT) -> dict:
        """{name: value} that each evaluation adds to the log."""
        return {}

    def fingerprint(self) -> list[int]:
        """Two numbers that tell this data from other data, for resuming: of its blocks, and of
        what else it is measured by."""
        sources = [part for pair in self.val_by_source.values() for part in pair]
        crcs = [0, zlib.crc32(repr(self.problems).encode(errors="replace"))]
        for i, parts in enumerate(((*self.train, *self.val), sources)):
            for part in parts:
                crcs[i] = zlib.crc32(np.ascontiguousarray(part), crcs[i])
        return crcs


@contextlib.contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Without Python's garbage collector, which would look through every row and token made so far
    again and again, though all of them stay: a third of the time that data takes."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@no_garbage_collection()
def load_data(
    config: TrainConfig, block_size: int = 512, tokenizer: "Tokenizer | None" = None
) -> Data:
    """Read, split, tokenize and pack the source of a TrainConfig → Data; ValueError if that does
    not give at least one block to train and one to validate on."""
    if config.sizes:
        given = f"sizes {','.join(config.sizes)} are for a task or a loader"
        raise ValueError(f"{given}; give none with --data {' '.join(config.data)}")
    if len(config.data) > 1:
        raise ValueError(f"data {' '.join(config.data)}: minidepth_lab mixes several sources")
    (source,), facts = config.data, {}
    train, held_out = read_source(source, config, facts)
    if config.val_data:
        if not config.val_data.endswith(".jsonl"):
            other = f"val_data {config.val_data} is not a .jsonl file"
            raise ValueError(f"{other}; minidepth_lab reads others")
        held_out = usable_rows(config.val_data, read_jsonl(config.val_data), facts)
    return make_data(source, train, held_out, config, block_size, tokenizer, facts=facts)


def fit_to_block(
    ids: list[int],
    learn: list[bool],
    row: dict,
    block_size: int,
    config: TrainConfig,
    too_long: dict[str, list[int]],
) -> tuple[list[int], list[bool]] | None:
    """(ids, learn) of a row that is longer than a block, dropped (None), cut, or as it is, to be
    split; its length is added to `too_long`, {what was done: lengths}."""
    how = config.long_rows
    if how is None:  # half of a conversation would teach an answer without its question
        whole = config.packing == "pack" or turns_of(row)[0][0] == "text"
        how = "split" if whole else "drop"
    too_long.setdefault(how, []).append(len(ids))
    if how == "drop":
        return None
    if how == "cut":
        return ids[: block_size + 1], learn[: block_size + 1]
    return ids, learn


def make_blocks(
    rows: list[dict],
    kind: str,
    name: str,
    tokenizer: "Tokenizer",
    config: TrainConfig,
    block_size: int,
    chunks: Callable | None = None,
    notes: list[str] | None = None,
) -> tuple[tuple[np.ndarray, np.ndarray], dict]:
    """Usable rows of the source `name` → blocks() of them, and facts: how many rows and tokens of
    this `kind` ('train', 'val') there are, and the lengths of the rows in tokens. Rows longer than
    a block are dropped, cut or split as config.long_rows says, and blocks without a target left
    out, both told to `notes`. ValueError where nothing to learn from is left.

    chunks(encode()'s rows) may cut the rows otherwise before they become blocks.
    """
    lengths, too_long = [], {}  # of all rows, and of those that do not fit in a block

    def counted():
        parts = (segments(row, tokenizer) for row in rows)
        for row, (ids, learn) in zip(rows, encode(parts, tokenizer, config.loss_on)):
            lengths.append(len(ids))
            if len(ids) > block_size + 1 and not chunks:
                fitted = fit_to_block(ids, learn, row, block_size, config, too_long)
                if fitted is None:
                    continue
                ids, learn = fitted
            yield ids, learn

    encoded = chunks(counted()) if chunks else counted()
    tokens, targets = blocks(encoded, block_size, config.packing)
    longest = max((n for row, n in zip(rows, lengths) if is_labelled(row)), default=0)
    if longest > block_size + 1:  # cut, it could not be answered
        too_short = f"block_size {block_size} is too short for problems of {longest} tokens"
        made = "embedded" in config.data  # others are as long as they are
        fewer = ", or fewer --ring_questions or --problem_steps" if made else ""
        raise ValueError(f"{too_short}; give at least {longest - 1}{fewer}")
    dropped = too_long.get("drop", [])
    n_tokens = (
        sum(lengths) - sum(dropped) - sum(n - block_size - 1 for n in too_long.get("cut", []))
    )
    told = []
    if too_long:
        told = tell_long_rows(too_long, len(rows), kind, name, block_size, config.packing)
    if len(dropped) == len(rows):
        raise ValueError(f"data {told[0]}")
    learned = (targets != -100).any(1)
    if not learned.any():
        raise ValueError(
            f"data {name}: {nothing_learned(rows, n_tokens, kind, block_size, config)}"
        )
    if not learned.all():
        without = plural(int((~learned).sum()), "block")
        told.append(
            f"{without} of {name} for {kind} have nothing to learn in them and are left out"
        )
        tokens, targets = tokens[learned], targets[learned]
    if notes is not None:
        notes += told
    counts = {f"{kind}_rows": len(rows) - len(dropped), f"{kind}_tokens": n_tokens}
    return (tokens, targets), counts | {f"{kind}_lengths": lengths}


def tell_long_rows(
    too_long: dict[str, list[int]], n_rows: int, kind: str, name: str, block_size: int, packing: str
) -> list[str]:
    """What is told of rows longer than a block: a list of sentences, none without such rows."""
    told = []
    for how, lengths in too_long.items():
        some = f"{name}: {len(lengths):,} of {plural(n_rows, 'row')} for {kind} are longer than a "
        some += f"block of {block_size}"
        enough = f"--block_size {max(lengths) - 1:,} holds them all".replace(",", "")
        if how == "drop":
            why = "their answers would be trained without their questions"
            other = "or give --long_rows cut"
            told.append(f"{some} and left out, as {why}; {enough}, {other}")
        elif how == "cut":
            told.append(f"{some} and cut at its end; {enough}")
        else:
            where = "cut where a block ends" if packing == "pack" else "go on in another block"
            told.append(f"{some} and {where}; {enough}")
    return told


def nothing_learned(
    rows: list[dict], n_tokens: int, kind: str, block_size: int, config: TrainConfig
) -> str:
    """Why the blocks of some rows have no target, and what would help."""
    roles = sorted({role for row in rows for role, _ in turns_of(row)})
    if config.loss_on == "assistant" and not {"assistant", "text"} & set(roles):
        silent = f"no row for {kind} has a turn of the assistant, but of {', '.join(roles):.200}"
        return f"{silent}; call its role assistant, or give --loss_on all"
    few = f"{n_tokens} tokens for {kind} do not fill a block of {block_size} to learn from"
    advice = "give more text, a smaller --block_size, --packing pad, or --loss_on all"
    if config.packing == "pad":
        advice = "give rows whose answers begin within a block, or a larger --block_size"
    return f"{few}; {advice}"


def tell_copies(train: list[dict], held_out: list[dict], notes: list[str]) -> None:
    """Note how many held-out rows also stand in what is trained on."""
    keys = row_keys(held_out)
    wanted = set(keys.tolist())
    both = {key for key in map(row_key, train) if key in wanted}
    if both:
        n = int(np.isin(keys, np.fromiter(both, np.uint64)).sum())
        first = next(row for row, key in zip(held_out, keys.tolist()) if key in both)
        asked = one_line(turns_of(first)[0][1], 60)
        notes.append(
            f"{n:,} of {plural(len(held_out), 'held-out row')} also stand in training, by their "
            f"question or text; the first: {asked}"
        )


def tell_marks(rows: list[dict], tokenizer: "Tokenizer", notes: list[str]) -> None:
    """Note how many rows have a control token in their text, and which."""
    marks, found = marks_of(tokenizer), Counter()
    for row in rows:
        text = "\n".join(text for _, text in turns_of(row))
        for mark in marks:
            if mark in text:
                found[mark] += 1
    for mark, n in found.most_common():
        notes.append(f"{plural(n, 'row')} with {mark} in the text: it is read as characters there")


def make_data(
    name: str,
    train: list[dict],
    held_out: list[dict],
    config: TrainConfig,
    block_size: int,
    tokenizer: "Tokenizer | None" = None,
    chunks: Callable | None = None,
    facts: dict | None = None,
) -> Data:
    """Rows to train on and rows held out of the source `name` → Data, as load_data() says. With
    `facts`, which it keeps, they come from usable_rows(); without, they may be unusable."""
    if facts is None:
        facts = {}
        train, held_out = (usable_rows(name, rows, facts) for rows in (train, held_out))
    facts = dict(notes=[], unusable_rows=0) | facts
    if config.val_data and not held_out:
        raise ValueError(f"val_data {config.val_data} has no rows")
    for kind, rows in (("train", train), ("val", held_out)):
        if not rows:
            raise ValueError(f"data {name}: there are no rows for {kind}")
    notes = facts["notes"]
    every_row = train + held_out
    if tokenizer is None:
        texts = ("".join(text for text, _ in segments(row)) for row in every_row)
        tokenizer = load_tokenizer(config.tokenizer, texts, config.tokenizer_size)
        # without an end of text no answer would ever end; the token for what is unknown is none
        if tokenizer.eos_token in (None, tokenizer.unk_token):
            tokenizer.add_special_tokens(dict(eos_token=END_OF_TEXT))
            notes.append(
                f"the tokenizer has no end of text; {END_OF_TEXT} is added as a word of its own"
            )
    # of the data's conversations, None without: not the one that the tokenizer came with
    conversations = tokenizer.chat_template = chat_template(every_row, turn_end(tokenizer))
    if name != "embedded" or config.val_data:  # our own problems have no copies and no marks
        tell_copies(train, held_out, notes)
        tell_marks(every_row, tokenizer, notes)
    made, lengths = [], {}  # blocks of each kind, tokens of its rows
    for kind, rows in (("train", train), ("val", held_out)):
        part, counts = make_blocks(rows, kind, name, tokenizer, config, block_size, chunks, notes)
        made.append(part)
        lengths[kind] = counts.pop(f"{kind}_lengths")
        facts |= counts
    too_long, problems = [], []
    for row, length in zip(held_out, lengths["val"]):
        if problem := problem_of(row):
            (problems if length <= block_size + 1 else too_long).append(problem)
    if too_long:
        asked = "".join(turn["content"] for turn in too_long[0]["messages"][-1:])
        notes.append(
            f"{len(too_long):,} held-out problems do not fit in a block of {block_size} with their "
            f"answers and are not asked; the first: {one_line(asked, 60)}"
        )
    elif not problems and conversations and config.eval_problems:
        notes.append(
            "no held-out row can be asked: none ends in an answer after #### or </think>, of one "
            "line, by the assistant"
        )
    guesses = [problem["guess"] for problem in problems if "guess" in problem]
    if guesses and len(guesses) == len(problems):
        facts["guess"] = statistics.mean(guesses)
    return Data(*made, tokenizer, problems, facts, len(tokenizer))


# ---------- 5. sampling and answers ----------


@in_eval_mode
def generate(
    model: GPT,
    tokens: torch.Tensor,
    max_new_tokens: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    seed: int | None = None,
    eos: int | None = None,
    known: torch.Tensor | None = None,
) -> torch.Tensor:
    """Continue tokens (B, T) int64 by up to max_new_tokens → (B, at most T + max_new_tokens).

    temperature 0 takes the likeliest word; top_k keeps the k likeliest. A row that has drawn
    `eos` is filled with it; the call ends when every row has, and with learned positions where
    the block does. Ids that belong to no word (model.n_words and above) are never drawn. Prompts
    of different lengths: `known` (B, K) int64 is what follows `tokens` in each of them, -1 where
    the model speaks. ValueError for a prompt that is empty or, with learned positions, longer than
    the block.
    """
    if not temperature >= 0 or (top_k is not None and top_k < 1):
        raise ValueError(f"temperature {temperature} must be at least 0, top_k {top_k} at least 1")
    c, draw = model.config, torch.Generator()
    if tokens.size(1) == 0:
        raise ValueError("the prompt is empty; give at least one token")
    longest = tokens.size(1)
    if known is not None:
        longest += int((known >= 0).sum(1).max())
    if c.position == "learned" and longest > c.block_size:
        raise ValueError(f"a prompt of {longest} tokens does not fit block_size {c.block_size}")
    draw.seed() if seed is None else draw.manual_seed(seed)
    done = torch.zeros(len(tokens), 1, dtype=torch.bool, device=tokens.device)
    if c.position == "learned":
        max_new_tokens = min(max_new_tokens, c.block_size - tokens.size(1))
    most = tokens.size(1) + max_new_tokens
    cache = [Cache(most) for _ in range(c.n_loops * c.n_layers)]
    for i in range(max_new_tokens):
        logits = model(tokens[:, cache[0].length :], cache=cache)
        logits = logits[:, -1, : model.n_words].float()  # (B, words)
        if top_k is not None:
            least = logits.topk(min(top_k, logits.size(-1))).values[:, -1:]
            logits = logits.masked_fill(logits < least, -math.inf)
        if temperature == 0:
            new = logits.argmax(-1, keepdim=True)  # (B, 1)
        else:  # drawn on the CPU, so that a seed draws the same numbers everywhere
            p = (logits / temperature).softmax(-1).cpu()
            new = torch.multinomial(p, 1, generator=draw).to(tokens.device)
        if eos is not None:
            new = new.masked_fill(done, eos)
            done |= new == eos
        if known is not None and i < known.size(1):
            given = known[:, i : i + 1]
            new = torch.where(given < 0, new, given)
            done &= given < 0  # a prompt has ends of turns of its own
        tokens = torch.cat((tokens, new), 1)
        if done.all():
            break
    return tokens


def prompt_ids(tokenizer: "Tokenizer", messages: list[dict]) -> list[int]:
    """A conversation as a list of token ids, up to where the assistant begins to speak."""
    parts = segments(dict(messages=messages), tokenizer)
    parts.append((Markup("<|im_start|>assistant\n"), False))
    ids, _ = next(encode([parts], tokenizer))
    return ids


ANSWERED_AT_ONCE = 100  # each problem keeps its keys and values: the report's 9 MB in FP16


def answer_texts(
    model: GPT,
    tokenizer: "Tokenizer",
    problems: list[dict],
    max_new_tokens: int = 256,
    temperature: float = 0,
    seed: int | None = None,
    **sampling: Any,
) -> list[str]:
    """What the model says to each of load_data().problems, by default the likeliest words."""
    prompts = [prompt_ids(tokenizer, problem["messages"]) for problem in problems]
    eos = tokenizer.convert_tokens_to_ids(turn_end(tokenizer))
    device, texts = next(model.parameters()).device, [""] * len(prompts)
    # those of about the same length together: all wait until the longest has been read
    in_order = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
    for start in range(0, len(prompts), ANSWERED_AT_ONCE):
        some = in_order[start : start + ANSWERED_AT_ONCE]
        shortest, longest = len(prompts[some[0]]), len(prompts[some[-1]])
        padded = [prompts[i] + [-1] * (longest - len(prompts[i])) for i in some]
        tokens, known = torch.tensor(padded, device=device).tensor_split([shortest], 1)
        most = longest - shortest + max_new_tokens
        # the same problem in another batch is to have another answer
        drawn = None if seed is None else seed + start
        tokens = generate(
            model, tokens, most, temperature, seed=drawn, eos=eos, known=known, **sampling
        )
        for i, ids in zip(some, tokens.tolist()):
            answer = ids[len(prompts[i]) : len(prompts[i]) + max_new_tokens]
            if eos in answer:
                answer = answer[: answer.index(eos)]
            texts[i] = tokenizer.decode(answer)
    return texts


def answers_right(
    model: GPT, tokenizer: "Tokenizer", problems: list[dict], **sampling: Any
) -> list[float]:
    """For each of the problems whether its final_answer() is exactly the right one, 1.0 or 0.0."""
    texts = answer_texts(model, tokenizer, problems, **sampling)
    return [float(final_answer(text) == p["answer"]) for text, p in zip(texts, problems)]


def answer_accuracy(
    model: GPT, tokenizer: "Tokenizer", problems: list[dict], **sampling: Any
) -> float:
    """Share of the problems, from 0 to 1, whose final_answer() is exactly the right one;
    ValueError if there are none."""
    right = answers_right(model, tokenizer, problems, **sampling)
    if not right:
        raise ValueError("there are no problems to answer, and so no accuracy")
    return statistics.mean(right)


def measure_answers(model: GPT, tokenizer: "Tokenizer", problems: list[dict]) -> dict:
    """What a log says of problems: {"accuracy", "answers": 1 or 0 for each of them}, and where
    there are several kinds {"accuracy_by_family", "accuracy_by_problem"}, a family and its steps.
    """
    solutions = encode(([(p["solution"], True)] for p in problems), tokenizer)
    longest = max(len(ids) for ids, _ in solutions)
    # a right answer is not to be cut off: as much may be said as the longest solution takes
    right = answers_right(model, tokenizer, problems, max_new_tokens=max(256, longest + 1))
    measured = dict(accuracy=statistics.mean(right), answers=[int(r) for r in right])
    families = [str(problem.get("family", "other")) for problem in problems]
    kinds_of_problem = [
        f"{family} {p.get('steps', 'other')}" for family, p in zip(families, problems)
    ]
    for key, kinds in (("accuracy_by_family", families), ("accuracy_by_problem", kinds_of_problem)):
        groups = {}
        for kind, correct in zip(kinds, right):
            groups.setdefault(kind, []).append(correct)
        if len(groups) > 1:
            measured[key] = {kind: statistics.mean(groups[kind]) for kind in sorted(groups)}
    return measured


# ---------- 6. checkpoints: whole or not there, damage noticed, the one before kept ----------

# A run's folder:
#     config.json          the settings, the command, the versions, the data's fingerprint
#     log.jsonl            a line for each evaluation
#     model.safetensors    the newest weights, for load()
#     best.safetensors     with --keep best: those of the lowest validation loss, which it prefers
#     state.pt             the same weights with all that --resume needs, and
#     state.previous.pt    the one before, if state.pt should be damaged
#     tokenizer/           as transformers writes it
STATES = ("state.pt", "state.previous.pt")
IN_STATE = {"model", "optimizer", "scaler", "data", "step", "log", "skipped", "in_a_row", "seconds"}
IN_STATE |= {"settings", "fingerprint", "tokenizer"}  # what check_same_run() asks
LAST = "model.safetensors"
BEST = "best.safetensors"

# what may change when a run goes on: where it is kept and computed, not what it computes
PLACES = ("out_dir", "name", "device", "precision", "fsdp", "grad_checkpoint", "report_to")

# what may be changed on purpose when a run goes on: how long it lives, and what is kept of it
LIFE = ("steps", "epochs", "lr_steps", "keep", "stop_after")

# where its data is kept, whose fingerprint is compared
DATA_PLACES = ("data", "val_data")


def path_inside(folder: Path, name: str) -> str:
    """The path of a file in a run's folder; ValueError for a link that leads out of it: a folder
    that was given to us is not to make us read or write elsewhere."""
    path, here = os.path.join(folder, name), os.path.realpath(folder)
    if os.path.commonpath((here, os.path.realpath(path))) != here:
        raise ValueError(f"{path} is a link that leads out of the run's folder")
    return path


def write(path: Path, save_to: Callable, previous: Path | None = None) -> None:
    """Call save_to(file) on a temporary file and move it to `path`: it is whole or not there. What
    was there before goes to the path `previous`, if one is given."""
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        with open(temporary, "wb") as f:
            save_to(f)
            f.flush()
            os.fsync(f.fileno())  # or a power cut could leave the new name on empty blocks
        if previous and os.path.exists(path):
            os.replace(path, previous)
        os.replace(temporary, path)
    except (OSError, RuntimeError) as error:  # torch.save hides a full disk in a RuntimeError
        cause = error if isinstance(error, OSError) else error.__context__
        if isinstance(cause, OSError):
            raise OSError(cause.errno, cause.strerror, path) from None
        raise
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.remove(temporary)


def all_finite(weights: dict[str, torch.Tensor]) -> bool:
    """Whether no number in {name: tensor} is infinite or NaN."""
    return all(bool(weight.isfinite().all()) for weight in weights.values())


def weights_checksum(weights: dict[str, torch.Tensor]) -> str:
    """A number, as text, of the names and bytes of {name: tensor}."""
    crc = 0
    for name in sorted(weights):
        flat = weights[name].detach().cpu().contiguous().reshape(-1)
        crc = zlib.crc32(name.encode(), crc)
        crc = zlib.crc32(flat.view(torch.uint8).numpy(), crc)
    return str(crc)


def folder_checksums(folder: Path) -> dict[str, int]:
    """{name: number} of the files in a folder, not of those in its folders; ValueError if one of
    them cannot be read."""
    checksums = {}
    with one_line_errors(folder, "cannot be read"):
        for name in sorted(os.listdir(folder)):
            path = path_inside(folder, name)
            if os.path.isdir(path):  # .ipynb_checkpoints, say
                continue
            with open(regular_file(path), "rb") as f:
                checksums[name] = zlib.crc32(f.read())
    return checksums


def check_tokenizer(run_dir: Path, saved: dict) -> None:
    """ValueError unless each file of the tokenizer's folder that is in `saved`, {name: number}, is
    as it was. What else lies there, a .DS_Store say, does no harm."""
    folder = path_inside(run_dir, "tokenizer")
    there = folder_checksums(folder)
    changed = [name for name, number in saved.items() if there.get(name) != number]
    if changed:
        what_is = "is changed or damaged" if changed[0] in there else "is gone"
        raise ValueError(f"{folder} is not what the run was trained with: {changed[0]} {what_is}")


def without_home(text: str) -> str:
    """The text with ~ for the user's home folder, whose name is nobody else's business."""
    home = os.path.expanduser("~")
    if len(home) < 3:  # "/": there is no home
        return text
    for spelled in (json.dumps(home)[1:-1], home):  # in JSON some characters are escaped
        text = re.sub(rf"(?<![\w/.~-]){re.escape(spelled)}(?=[/\\\s'\",:]|$)", "~", text)
    return text


def from_json(value: Any) -> Any:
    """Settings as config.json keeps them → as configs have them: tuples, ~ as the home folder."""
    if isinstance(value, dict):
        return {key: from_json(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return tuple(from_json(part) for part in value)
    if isinstance(value, str):  # where without_home() has put it: sizes have it behind their =
        return re.sub(r"(?<![\w/.~-])~(?=[/\\]|$)", lambda _: os.path.expanduser("~"), value)
    return value


def settings(m: ModelConfig, t: TrainConfig) -> dict[str, dict]:
    """All settings as config.json keeps them: {"model": {name: value}, "train": {name: value}}."""
    both = dict(model=dataclasses.asdict(m), train=dataclasses.asdict(t))
    return json.loads(without_home(json.dumps(both)))


def names_of(both: dict[str, dict]) -> dict[str, list[str]]:
    """The names of all settings()."""
    return {part: sorted(both[part]) for part in ("model", "train")}


def different_settings(one: dict[str, dict], other: dict[str, dict]) -> list[str]:
    """["name: value, value", …] of what differs between two settings(), but for PLACES and
    DATA_PLACES."""
    differing = []
    for part in ("model", "train"):
        # a setting that only newer code has, or older, made no difference where it was not known
        for name in sorted(one[part].keys() & other[part].keys()):
            values = [each[part][name] for each in (one, other)]
            if values[0] != values[1] and name not in PLACES + DATA_PLACES:
                differing.append(f"{name}: {values[0]!r:.60}, {values[1]!r:.60}")
    return differing


def check_run(folder: Path, flag: str) -> None:
    """ValueError where what a command's `flag` was given is no run's folder."""
    if not os.path.isdir(folder):
        raise ValueError(f"--{flag} {folder} is not there; give a run's folder, as runs/NAME")
    if not os.path.lexists(os.path.join(folder, "config.json")):
        raise ValueError(f"--{flag} {folder} holds no run; give a run's folder, as runs/NAME")


def read_about(run_dir: Path) -> dict:
    """All that the config.json of a run's folder says; ValueError if it cannot be read."""
    path = path_inside(run_dir, "config.json")
    with one_line_errors(path, "is not the configuration of a run"):
        with open(regular_file(path), encoding="utf-8") as f:
            about = json.load(f)
        if not isinstance(about, dict):
            raise ValueError(f"it is {kind_of(about)}, no object")
        return about


def read_settings(run_dir: Path, parts: Sequence[str] = ("model", "train")) -> dict[str, dict]:
    """The settings() in the config.json of a run's folder, or one of their parts; ValueError if it
    has none."""
    about = read_about(run_dir)
    with one_line_errors(os.path.join(run_dir, "config.json"), "is not the configuration of a run"):
        return {part: dict(about[part]) for part in parts}


def make_config(kind: type, saved: dict, path: Path) -> Any:
    """A ModelConfig or TrainConfig of settings that were saved. Those that were saved are taken,
    whatever the defaults are by now; one that this code no longer has can have no effect here."""
    known = {f.name for f in dataclasses.fields(kind)}
    with one_line_errors(path, "is not the configuration of a run"):
        return kind(**from_json({k: v for k, v in saved.items() if k in known})).validate()


def read_config(run_dir: Path) -> tuple[ModelConfig, TrainConfig]:
    """(ModelConfig, TrainConfig) of a run folder; ValueError if it is none."""
    saved, path = read_settings(run_dir), os.path.join(run_dir, "config.json")
    m = make_config(ModelConfig, saved["model"], path)
    return m, make_config(TrainConfig, saved["train"], path)


def has_changed(run_dir: Path, data: Data) -> bool:
    """Whether the data of a run, read again, is another than it began with, as the fingerprint in
    its config.json says; False where nothing is said, as by older runs."""
    return read_about(run_dir).get("fingerprint") not in (None, data.fingerprint())


def check_new(folder: str) -> None:
    """Raise ValueError for a folder in which a new run would replace something."""
    names = [f.name for f in os.scandir(folder) if not f.is_dir()] if os.path.isdir(folder) else []
    if "config.json" in names:
        go_on = f"or go on with --resume {shlex.quote(folder)} if it was stopped"
        raise ValueError(f"{folder} exists; give another --name, {go_on}")
    own = r".+\.\d+\.tmp|\.lock|stdout\.txt"  # before a run's first step, or a grid's
    if others := [n for n in names if not re.fullmatch(own, n)]:
        raise ValueError(f"{folder} has files of no run: {min(others)}; give another --name")


def locked(folder: Path) -> Any:
    """A context that keeps a run's folder to this process, until it ends, however it ends; what a
    process that was killed had half written there goes. ValueError if another process has it."""
    import filelock

    try:
        lock = filelock.FileLock(path_inside(folder, ".lock"), timeout=0).acquire()
    except filelock.Timeout:
        taken = f"{folder} is being trained by another process"
        raise ValueError(f"{taken}; wait for it, or give another --name") from None
    for name in os.listdir(folder):
        if re.fullmatch(r".+\.\d+\.tmp", name):
            os.remove(os.path.join(folder, name))
    return lock


def provenance(device: torch.device) -> dict:
    """What is needed to make a figure again: versions, device, commit (+ if changed since)."""
    versions = {name: importlib.metadata.version(name) for name in ("torch", "transformers")}
    versions["python"] = platform.python_version()
    name = f"{platform.machine()} CPU, {plural(torch.get_num_threads(), 'thread')}"
    if device.type == "cuda":
        name = f"{torch.cuda.device_count()} x {torch.cuda.get_device_name()}, {name}"
    git, commit = ["git", "describe", "--always", "--dirty=+", "--abbrev=40"], None
    with contextlib.suppress(OSError):  # no git here
        here = os.path.dirname(os.path.abspath(__file__))
        done = subprocess.run(git, cwd=here, capture_output=True, text=True)
        commit = done.stdout.strip() or None
    return dict(versions=versions, device=name, commit=commit)


def begin_folder(
    folder: str,
    identity: dict,
    tokenizer: "Tokenizer | None",
    command: str | None,
    device: torch.device,
) -> None:
    """Write what a run's folder says of it before its first step; `identity` as save() has it."""
    check_new(folder)
    if tokenizer:  # before config.json, which says that all is there
        path = path_inside(folder, "tokenizer")
        if os.path.isdir(path):
            folder_checksums(path)  # an error if anything in it leads elsewhere
        tokenizer.save_pretrained(path)
    about = identity["settings"] | dict(command=command, fingerprint=identity["fingerprint"])
    about |= provenance(device)
    text = without_home(json.dumps(about, indent=1)).encode()
    write(os.path.join(folder, "config.json"), lambda f: f.write(text))


def json_line(row: dict) -> str:
    """A dict as a line of JSON that every reader takes: null for what is no number."""

    def number_or_null(value):
        if isinstance(value, dict):
            return {key: number_or_null(part) for key, part in value.items()}
        if isinstance(value, (list, tuple)):
            return [number_or_null(part) for part in value]
        if isinstance(value, float) and not math.isfinite(value):
            return None
        return value

    return json.dumps(number_or_null(row), allow_nan=False, separators=(",", ":")) + "\n"


def write_log(folder: Path, log: list[dict]) -> None:
    """Write the rows of a run's log, one a line."""
    lines = [json_line(row).encode() for row in log]
    write(os.path.join(folder, "log.jsonl"), lambda f: f.writelines(lines))


def write_weights(
    folder: Path,
    weights: dict[str, torch.Tensor],
    model_settings: dict,
    tokenizer_files: dict[str, int],
    name: str = LAST,
    **notes: Any,
) -> None:
    """Write a file of weights, {name: tensor}, and what load() compares them with, the settings of
    the model as config.json has them, and the checksums of the tokenizer's files. `notes`, such as
    the step, are for whoever reads the file."""
    from safetensors.torch import save as as_bytes

    weights = {name: weight.detach().cpu() for name, weight in weights.items()}
    about = dict(crc32=weights_checksum(weights), model=json.dumps(model_settings))
    about["tokenizer"] = json.dumps(tokenizer_files)
    about |= {key: json.dumps(value) for key, value in notes.items()}
    content = as_bytes(weights, about)
    write(os.path.join(folder, name), lambda f: f.write(content))


def tokenizer_files(folder: Path, tokenizer: "Tokenizer | None") -> dict[str, int]:
    """folder_checksums() of a run's tokenizer, which is written again if somebody has taken it
    away; {} without one."""
    if not tokenizer:
        return {}
    path = path_inside(folder, "tokenizer")
    if not os.path.isdir(path):
        tokenizer.save_pretrained(path)
    return folder_checksums(path)


def save(folder: Path, state: dict, identity: dict, tokenizer: "Tokenizer | None" = None) -> None:
    """Write a checkpoint: the `state` of a run after a step, and what it belongs to, `identity`:
    {"settings": settings(), "fingerprint": that of the data}.

    The weights go first and the state, which is all that a resume reads, last: so it cannot be torn
    in two. The checksums are of bytes that are stored, not of anything that this code adds.
    """
    files = tokenizer_files(folder, tokenizer)
    model_settings = identity["settings"]["model"]
    write_weights(folder, state["model"], model_settings, files, step=state["step"])
    newest, previous = (os.path.join(folder, name) for name in STATES)
    whole = state | identity | dict(tokenizer=files)
    write(newest, lambda f: torch.save(whole, f), previous)


def read_state(path: Path) -> dict:
    """What save() wrote to `path`, nothing in it executed; ValueError if a bit of it has changed:
    the file is a zip archive, whose checksums PyTorch writes but does not look at."""
    with one_line_errors(path, "is not a checkpoint to resume from"):
        with zipfile.ZipFile(regular_file(path)) as f:
            if damaged := f.testzip():
                raise ValueError(f"{damaged} in it is damaged")
            state = torch.load(path, map_location="cpu", weights_only=True)
        if missing := IN_STATE - state.keys():
            raise ValueError(f"it lacks {min(missing)}")
        if not all_finite(state["model"]):
            raise ValueError("it holds infinite or NaN weights")
        return state


def has_checkpoint(folder: Path) -> bool:
    """Whether a run's folder has something to resume from, damaged or not."""
    return any(os.path.lexists(os.path.join(folder, name)) for name in STATES)


def newest_state(
    folder: Path, restore: Callable, say: Callable[[str], object] = print, put_aside: bool = True
) -> dict | None:
    """Give restore() the newest checkpoint of a run's folder that is whole → that state; None if
    the run was stopped before its first one. What is damaged is told to say() and put aside, or the
    next save would keep it as the one before. ValueError where none can be used."""
    there = [name for name in STATES if os.path.lexists(os.path.join(folder, name))]
    if not there:
        return None
    if there == [STATES[1]]:
        gone = os.path.join(folder, STATES[0])
        say(f"{gone} is gone; so the run goes on from the one before it")
    for name in there:
        path = os.path.join(folder, name)
        try:
            state = read_state(path_inside(folder, name))
            with one_line_errors(path, "is not a checkpoint to resume from"):
                restore(state)
            return state
        except ValueError as error:
            # who may not read a file does not know whether it is damaged
            if name == there[-1] or isinstance(error.__cause__, PermissionError):
                raise
            say(f"{error}; so the run goes on from the checkpoint before it")
            if put_aside:
                os.replace(path, f"{path}.damaged")


def check_same_run(folder: Path, state: dict, identity: dict, changed: Sequence[str] = ()) -> None:
    """ValueError where a checkpoint is of other settings, but for those `changed` on purpose, of
    other data or another tokenizer."""
    if state["fingerprint"] != identity["fingerprint"]:
        raise ValueError(f"the data of {folder} is not what its checkpoint was trained on")
    then = dict(state["settings"], train=dict(state["settings"]["train"]))
    then["train"] |= {name: identity["settings"]["train"][name] for name in changed}
    if differing := different_settings(identity["settings"], then):
        where = os.path.join(folder, "config.json")
        listed = "; ".join(differing)
        raise ValueError(f"{where} has other settings than its checkpoint: {listed:.300}")
    if os.path.isdir(os.path.join(folder, "tokenizer")):  # if it is gone, save() writes it again
        check_tokenizer(folder, state["tokenizer"])


def changed_before(folder: Path) -> tuple[str, ...]:
    """The names of the settings that were changed when a run went on, as its config.json says."""
    earlier = read_about(folder).get("earlier", [])
    with one_line_errors(os.path.join(folder, "config.json"), "is not the configuration of a run"):
        return tuple(name for name in LIFE if any(name in each["train"] for each in earlier))


def change_config(
    folder: Path, identity: dict, changed: Sequence[str], done: int, command: str | None
) -> None:
    """Let config.json have the settings that a run goes on with, and under "earlier" those that it
    was trained with up to now, and by which command."""
    about = read_about(folder)
    before = {name: about["train"].get(name) for name in changed}
    entry = dict(steps_done=done, train=before, command=about.get("command"))
    about["earlier"] = [*about.get("earlier", []), entry]
    about |= identity["settings"] | dict(command=command)
    text = without_home(json.dumps(about, indent=1)).encode()
    write(os.path.join(folder, "config.json"), lambda f: f.write(text))


def is_over(log: list[dict], steps: int) -> bool:
    """Whether the log of a run says that it is finished: its steps are done, or --stop_after has
    ended it."""
    return bool(log) and (log[-1]["step"] >= steps or log[-1].get("ended_early", False))


def nothing_left(folder: Path, t: TrainConfig, done: int, log: list[dict]) -> str:
    """What to say of a run that is finished with the settings that it has now; "" if it goes on."""
    early = bool(log) and log[-1].get("ended_early") and 0 < t.stop_after <= since_best(log)
    if done < t.steps and not early:
        return ""
    why = "give more --steps to go on"
    if done < t.steps:
        why = "--stop_after has ended it, give --stop_after 0 to go on"
    return f"{folder} is finished: {done} of {t.steps} steps are done; {why}"


def since_best(log: list[dict]) -> int:
    """How many evaluations of a log came after the one with the lowest validation loss."""
    losses = [row["val_loss"] for row in log]
    losses = [math.inf if loss is None or math.isnan(loss) else loss for loss in losses]
    return len(losses) - 1 - losses.index(min(losses))


def saved_tokenizer(run_dir: Path) -> "Tokenizer | None":
    """The tokenizer of a run folder; None where it has none, as the depth tasks'."""
    folder = os.path.join(run_dir, "tokenizer")
    if not os.path.isdir(folder):
        return None
    folder_checksums(path_inside(run_dir, "tokenizer"))  # an error if anything leads out of it
    return load_tokenizer(folder)


def read_weights(path: Path, n_parameters: int) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
    """The weights in a file that save() wrote, {name: tensor}, and what else it says, {name: text};
    ValueError if they have not so many parameters, or are damaged."""
    from safetensors import safe_open

    with safe_open(regular_file(path), "pt") as f:
        weights, about = {name: f.get_tensor(name) for name in f.keys()}, f.metadata() or {}
    there = sum(weight.numel() for weight in weights.values())
    if there != n_parameters:
        raise ValueError(f"size mismatch, {there:,} weights for {n_parameters:,} parameters")
    crc = weights_checksum(weights)
    if about.get("crc32", crc) != crc:  # there is none if another program wrote them
        raise ValueError("it is damaged")
    if not all_finite(weights):
        raise ValueError("it holds infinite or NaN weights")
    return weights, about


def is_run(folder: Path) -> bool:
    """Whether a folder has the config.json of a run, not that of another program."""
    with contextlib.suppress(ValueError):
        return bool(read_settings(folder))
    return False


def settings_of_weights(folder: Path) -> dict:
    """{setting: value} of a model that begins with the weights of a run: all that its model has,
    and its tokenizer, if it has one."""
    if not os.path.isdir(folder):
        raise ValueError(f"init_from {folder} is not there; give a run's folder, as runs/NAME")
    path = os.path.join(folder, "config.json")
    values = dataclasses.asdict(make_config(ModelConfig, read_settings(folder)["model"], path))
    words = os.path.join(folder, "tokenizer")
    if os.path.isdir(words):
        values["tokenizer"] = words
    return values


def weights_file(run_dir: Path) -> str:
    """The name of the file whose weights load() takes: of the best validation loss, where a run
    keeps them, else the last. One that was resumed with --keep last keeps them no more."""
    there = os.path.lexists(os.path.join(run_dir, BEST))
    return BEST if there and read_settings(run_dir)["train"].get("keep") == "best" else LAST


def describe_weights(run_dir: Path) -> str | None:
    """Which of its weights load() takes of a run's folder, as a line; None where it has no choice.
    ValueError where the file is damaged."""
    if weights_file(run_dir) == LAST:
        return None
    from safetensors import safe_open

    path = path_inside(run_dir, BEST)
    with one_line_errors(path, "is not a checkpoint of this model"):
        with safe_open(regular_file(path), "pt") as f:
            about = f.metadata() or {}
    loss = float(about.get("val_loss", "nan"))
    of = f"of step {about.get('step', 'unknown')}, with the best validation loss, {loss:.4f}"
    return f"weights {path}, {of}; the last ones are in {LAST}"


def load(run_dir: Path, file: str | None = None) -> tuple[GPT, Any]:
    """(model, tokenizer) of a run folder, on the CPU, in eval mode, the tokenizer None for a task;
    ValueError if it is broken. Of the settings only the model's are needed, and `keep` where there
    are best weights. `file` names one of its files of weights, LAST or BEST; if it is not given, it
    is the one of weights_file()."""
    saved = read_settings(run_dir, ("model",))["model"]
    m = make_config(ModelConfig, saved, os.path.join(run_dir, "config.json"))
    path = path_inside(run_dir, file or weights_file(run_dir))
    with one_line_errors(path, "is not a checkpoint of this model"):
        # counted before memory is taken for what a damaged config.json describes
        weights, about = read_weights(path, parameters(m)["total"])
        if "model" in about and json.loads(about["model"]) != saved:
            raise ValueError("config.json is not what it was trained with")
        model = GPT(m).eval()
        model.load_state_dict(weights)
        if not model(torch.arange(min(m.vocab_size, m.block_size, 64))[None]).isfinite().all():
            raise ValueError("it has diverged: its logits are infinite or NaN")
    tokenizer = saved_tokenizer(run_dir)
    if tokenizer:
        if "tokenizer" in about:
            check_tokenizer(run_dir, json.loads(about["tokenizer"]))
        model.n_words = len(tokenizer)
    return model, tokenizer


# ---------- 7. training ----------


def steps_of_rise(config: TrainConfig) -> float:
    """In how many steps the learning rate rises: --warmup_steps, or its share of all steps."""
    steps = config.lr_steps or config.steps
    if config.warmup_steps >= 1:
        return config.warmup_steps
    return min(round(config.warmup_steps * steps), steps - 1)


def lr_at(step: int, config: TrainConfig) -> float:
    """Learning rate of the 0-based step: a line from 0 to the peak, half a cosine to the floor.
    A pure function, so skipped steps and resumed runs change nothing."""
    warmup, steps = steps_of_rise(config), config.lr_steps or config.steps
    # 1. the rise: the first step has rate 0, as in the published log
    if step < warmup:
        return config.lr * step / warmup
    # 2. the floor, in a run that goes on after the fall
    floor = config.lr * config.lr_floor
    if step >= steps:
        return floor
    # 3. the fall
    done = (step - warmup) / (steps - warmup)
    return floor + 0.5 * (1 + math.cos(math.pi * done)) * (config.lr - floor)


def complete_configs(m: ModelConfig, t: TrainConfig, data: Data) -> tuple[ModelConfig, TrainConfig]:
    """The settings with what the data adds: the steps of its epochs, its sizes, its words."""
    if t.epochs and data.fresh:
        raise ValueError(f"epochs {t.epochs}: a task's data never repeats; give --steps")
    if t.epochs:
        steps = t.epochs * len(data.train[0]) / (t.batch_size * t.grad_accum)
        t = dataclasses.replace(t, steps=math.ceil(steps))
        # whether any are left after the warm-up, which validate() asks only without epochs
        dataclasses.replace(t, epochs=0).validate()
    t = dataclasses.replace(t, sizes=data.sizes)
    m = dataclasses.replace(m, vocab_size=m.vocab_size or data.n_words)
    if data.n_words > m.vocab_size:
        too_few = f"vocab_size {m.vocab_size} is less than the data's {data.n_words} words"
        advice = "give at least that, or 0"
        if t.init_from:
            advice = f"give data with the words of {t.init_from}, or leave out init_from"
        raise ValueError(f"{too_few}; {advice}")
    if 0 < t.gradient_loops < m.n_loops and m.loop_start not in READ_INPUT:
        no_gradient = "no gradient reaches the embeddings, which the first loop alone reads"
        raise ValueError(
            f"gradient_loops {t.gradient_loops} of {m.n_loops} with loop_start {m.loop_start}: "
            f"{no_gradient}; give --loop_start recall or input"
        )
    if m.loop_keeps and 0 < t.gradient_loops < m.n_loops:
        no_gradient = "the first loop, which alone reads the tokens that are kept, has no gradient"
        both = f"loop_keeps {m.loop_keeps} with gradient_loops {t.gradient_loops} of {m.n_loops}"
        raise ValueError(f"{both}: {no_gradient}; give --gradient_loops 0")
    return m, t


# what tells runs apart first where not all of their settings have a place in a name, and what
# tells little: how a run is measured and kept
TELLING = ("n_layers", "n_loops", "seed", "data", "sizes", "d_model", "lr", "steps", "init_from")
QUIET = ("eval_every", "eval_blocks", "eval_problems", "watch_problems", "save_every", "keep")
NOT_NAMED = ("out_dir", "name", "device", "report_to")
UNFIT = r"[^\w.+-]"  # in a name: what not every file system takes
LONGEST_NAME = 59  # characters of ASCII: a name is read, typed, and shown in a list


def run_name(preset: str, changes: dict) -> str:
    """A run's folder from the preset and whatever was changed, so that two runs do not meet, unless
    they differ in characters that no name can have, and the same run of two grids does. If it would
    be too long, it says what tells most, of paths and lists the end or the beginning, and has a
    checksum of all."""
    known = [f.name for kind in (ModelConfig, TrainConfig) for f in dataclasses.fields(kind)]
    values = {}  # {setting: the parts of its value}, the one there is or those of a list
    for name in known:
        if name in changes and name not in NOT_NAMED:
            value = changes[name]
            values[name] = value if isinstance(value, (tuple, list)) else (value,)
    parts = [preset]
    for name, value in values.items():
        parts.append(f"{name}-{'+'.join(str(part) for part in value)}")
    name = "_".join(re.sub(UNFIT, "-", part).strip("-") for part in parts)
    if len(name.encode()) <= LONGEST_NAME:
        return name
    checksum = f"_{zlib.crc32(name.encode()):08x}"
    left = LONGEST_NAME - len(checksum)
    kept = re.sub(UNFIT, "-", preset).encode()[:left].decode(errors="ignore")  # no half character
    left -= len(kept.encode())
    short = {}  # {setting: the part of the name that says its value}
    for name, value in values.items():
        text = "+".join(str(part) for part in value)
        if value and isinstance(value[0], str) and re.search(r"[/\\]", value[0]):
            last = [part for part in re.split(r"[/\\]+", value[0]) if part not in ("", "tokenizer")]
            text = last[-1] if last else "root"  # of a path its last part
        short[name] = f"_{name}-{re.sub(UNFIT, '-', text).strip('-')[:24]}"
    loud = [name for name in known if name not in (*TELLING, *QUIET)]
    chosen = set()
    for name in (*TELLING, *loud, *QUIET):
        if name in short and len(short[name].encode()) <= left:
            chosen.add(name)
            left -= len(short[name].encode())
    return kept + "".join(short[name] for name in known if name in chosen) + checksum


def name_of(m: ModelConfig, t: TrainConfig) -> str:
    """run_name() of settings that say neither preset nor name: the one of this file's presets that
    they are nearest to, and what differs from it."""
    values = dataclasses.asdict(m) | dataclasses.asdict(t)
    defaults = dataclasses.asdict(ModelConfig()) | dataclasses.asdict(TrainConfig())
    differing = {}
    for preset in ("report", "laptop"):
        own = defaults | PRESETS[preset]
        differing[preset] = {k: v for k, v in values.items() if v != own[k]}
    preset = min(differing, key=lambda name: len(differing[name]))
    return run_name(preset, differing[preset])


def processes() -> tuple[int, int]:
    """(rank, world): which process of how many this is, as torchrun says."""
    return int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))


def pick_device(name: str) -> torch.device:
    """`device` of a TrainConfig → torch.device; ValueError if it is not there or does not run."""
    there = dict(cuda=torch.cuda.is_available(), mps=torch.backends.mps.is_available(), cpu=True)
    several = processes()[1] > 1
    if name == "mps" and several:  # gloo, by which its processes would talk, knows no MPS
        raise ValueError("device mps does not work under torchrun; use --device cpu")
    if name == "auto":
        there["mps"] = there["mps"] and not several
        name = next(kind for kind, found in there.items() if found)
    if not there[name]:
        raise ValueError(f"device {name} was asked for but PyTorch finds none; use --device cpu")
    device = torch.device(name)
    if name == "cuda":
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
    try:
        torch.ones(1, device=device).add_(1)  # a GPU can be found and still have no kernels
    except RuntimeError as error:
        why = f"cannot be used by PyTorch {torch.__version__} ({error!s:.60})"
        other = "on Kaggle choose GPU T4 x2, or use --device cpu"
        raise ValueError(f"device {device} {why}; {other}") from None
    return device


def pick_precision(name: str, device: torch.device) -> torch.dtype | None:
    """`precision` of a TrainConfig → autocast dtype, None for fp32."""
    if name == "auto":
        name = "fp16" if device.type == "cuda" else "fp32"
    # is_bf16_supported() says yes on a T4, which only emulates it
    if name == "bf16" and device.type == "cuda" and torch.cuda.get_device_capability() < (8, 0):
        raise ValueError("precision bf16 needs an Ampere GPU or newer; use --precision fp16")
    if name != "fp32" and device.type == "mps":  # attention in half precision has seen later tokens
        raise ValueError(f"precision {name} is wrong on Apple's GPUs; use --precision fp32")
    return dict(fp32=None, fp16=torch.float16, bf16=torch.bfloat16)[name]


# what a CPU says of itself if it multiplies bf16 by itself: on x86 and on Arm
BF16_FLAGS = ("amx_bf16", "avx512_bf16", "bf16")


def bf16_of_cpu() -> str | None:
    """By which of its flags this CPU computes in bf16; "" if it would only emulate it, None where
    nobody says, as outside Linux."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as f:
            flags = set(f.read().split())
    except OSError:
        return None
    return next((flag for flag in BF16_FLAGS if flag in flags), "")


def describe_device(t: TrainConfig) -> str:
    """Where a TrainConfig trains, in which precision, and why: a line."""
    device = pick_device(t.device)
    half, why = pick_precision(t.precision, device), f"{t.precision}, as asked"
    if t.precision == "auto":
        why = f"{'fp16' if half else 'fp32'}, the default on {device.type}"
    return f"device {provenance(device)['device']}; {why}"


def connect(device: torch.device) -> None:
    """Let the processes of torchrun, each with its device, find one another."""
    if device.type == "cuda":
        torch.cuda.set_device(device)
    if not torch.distributed.is_initialized():
        torch.distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")


def check_batch(t: TrainConfig) -> None:
    """ValueError for a batch that does not divide among the processes."""
    world = processes()[1]
    if t.batch_size % world:
        uneven = f"batch_size {t.batch_size} does not divide among {world} processes"
        raise ValueError(f"{uneven}; give a multiple of {world}")


def parallel(
    model: GPT, device: torch.device, say: Callable[[str], object] = print, shard: Any = None
) -> nn.Module:
    """The model itself, or wrapped for several GPUs or the processes of torchrun."""
    world, gpus = processes()[1], torch.cuda.device_count()
    if world > 1:
        connect(device)
        if shard:
            say(f"Each of {world} processes keeps a part of every weight")
            return shard.wrap(model, device)
        say(f"Wrapping model with DistributedDataParallel over {world} processes")
        return nn.parallel.DistributedDataParallel(model)
    if device.type == "cuda" and gpus > 1:
        say(f"Wrapping model with DataParallel over {gpus} GPUs")
        return nn.DataParallel(model)
    return model


def make_optimizer(model: GPT, config: TrainConfig) -> torch.optim.Optimizer:
    """AdamW in its fused form; weight decay on matrices and embeddings, and on norms and biases if
    `decay_all` says so."""
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() == 1]
    of_vectors = config.weight_decay if config.decay_all else 0.0
    groups = [dict(params=matrices), dict(params=vectors, weight_decay=of_vectors)]
    betas, decay = (config.beta1, config.beta2), config.weight_decay
    return torch.optim.AdamW(groups, config.lr, betas, weight_decay=decay, fused=True)


def seed_step(seed: int, step: int, rank: int) -> None:
    """Let all that a step draws be a function of (seed, step, rank), and of the GPU where
    DataParallel uses several: so a resumed run draws what it would have drawn, and nothing random
    has to be stored."""
    torch.manual_seed(generator(seed, step, rank).initial_seed())
    if processes()[1] == 1:
        for gpu in range(1, torch.cuda.device_count()):  # else all shards drop the same elements
            with torch.cuda.device(gpu):
                torch.cuda.manual_seed(generator(seed, step, rank, gpu).initial_seed())


def by_length(
    tokens: torch.Tensor, targets: torch.Tensor, n: int
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """(tokens (B, T), targets (B, T) or (B, loops, T)) in parts of n sequences that are about as
    long, each part cut behind its last target: what follows cannot change a causal model's loss."""
    has_target = targets != -100
    if has_target.dim() == 3:
        has_target = has_target.any(1)
    unused = has_target.flip(1).int().argmax(1)  # (B,), places after the last target, or 0
    order = unused.argsort(descending=True, stable=True)
    for rows in order.split(n):
        length = tokens.size(1) - int(unused[rows].min())
        yield tokens[rows, :length], targets[rows, ..., :length]


@in_eval_mode
def mean_loss(model: GPT, part: Sequence, n_blocks: int, batch_size: int) -> float:
    """Mean loss per token, without dropout, of the first n_blocks of (tokens, targets); ValueError
    if they have no target, of which there is no mean."""
    device = next(model.parameters()).device
    some = (torch.as_tensor(each[:n_blocks]).long() for each in part)
    losses = [model(x.to(device), y.to(device)) for x, y in by_length(*some, batch_size)]
    sums, counts = (torch.cat(each).cpu().double() for each in zip(*losses))
    if not counts.sum():
        raise ValueError("the blocks to be measured have no target: there is no loss of them")
    return (sums.sum() / counts.sum()).item()


def train_loss_eval(model: GPT, data: Data, n_blocks: int, batch_size: int) -> float:
    """mean_loss() of always the same blocks of what is trained on: a batch's loss is noisy and has
    dropout on, this has neither."""
    some = torch.randperm(len(data.train[0]), generator=generator("train_loss_eval"))
    part = [each[some[:n_blocks].numpy()] for each in data.train]
    return mean_loss(model, part, n_blocks, batch_size)


def check_same_step(step: int, device: torch.device, folder: Path) -> None:
    """Raise ValueError if the processes would go on from different steps: each of them reads the
    run's folder for itself, and another machine may have an older copy of it, or none."""
    ends = torch.tensor([step, -step], device=device)
    torch.distributed.all_reduce(ends, torch.distributed.ReduceOp.MAX)
    last, first = ends[0].item(), -ends[1].item()
    if first != last:
        apart = f"{folder} is at step {first} for one process and at step {last} for another"
        raise ValueError(f"{apart}; let all machines share the folder, or copy it to each of them")


HANG_UP = getattr(signal, "SIGHUP", None)  # Windows has none; terminals send it twice


@contextlib.contextmanager
def noted_signals(twice: bool = False) -> Iterator[list[int]]:
    """While active, Ctrl-C, SIGTERM and SIGHUP are only noted, in the list that it gives, so that
    no step is cut in two; with `twice` a second Ctrl-C does not wait. What this process ignores,
    as under nohup, it goes on ignoring."""
    noted, before = [], {}

    def note(number, frame):
        if twice and noted and number == signal.SIGINT:  # torchrun adds a SIGTERM to a Ctrl-C
            raise KeyboardInterrupt
        if not noted or number != HANG_UP:
            noted.append(number)

    if threading.current_thread() is threading.main_thread():  # no other may
        for number in (signal.SIGINT, signal.SIGTERM, HANG_UP):
            if number and signal.getsignal(number) != signal.SIG_IGN:
                before[number] = signal.signal(number, note)
    try:
        yield noted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)


def log_line(row: dict, config: TrainConfig) -> str:
    """A row of the log as it is printed, in the report's own format."""
    where = f"epoch {row['epoch']} step {row['step']}/{config.steps} lr {row['lr']:.2e}"
    losses = f"train {row['train_loss']:.4f} val {row['val_loss']:.4f}"
    line = f"{where} {losses} ({row['seconds']:.0f}s)"
    if "accuracy" in row:
        line += f" right {row['accuracy']:.2f}"
    return line


class Diverged(RuntimeError):
    """Gradients or weights became infinite or NaN; the message says what to change."""


GENTLER = "lower --lr or raise --warmup_steps"
MOST_SKIPPED = 25  # in a row: GradScaler starts at 2^16, so after 16 halvings it is not the cause


@dataclass
class Run:
    """What train() returns."""

    dir: str  # the run's folder
    model: GPT  # in eval mode
    tokenizer: "Tokenizer | None"  # None for a task
    data: Data  # what it was trained on
    log: list  # the rows of log.jsonl
    finished: bool  # whether all steps are done, or --stop_after has ended it


def evaluations_of(t: TrainConfig, data: "Data | None" = None) -> tuple[int, int, int]:
    """What train() measures in a whole run, (evaluations, the validation blocks that they and the
    last training loss read, problems that are answered); without the data as if it were enough."""
    n = t.steps // t.eval_every  # after every n-th step,
    n += (t.eval_every > 1) + (t.steps % t.eval_every > 0 and t.steps > 1)  # the first, the last
    held_out = [data.val, *data.val_by_source.values()] if data else []
    sizes = [min(t.eval_blocks, len(tokens)) for tokens, _ in held_out] or [t.eval_blocks]
    problems = len(data.problems) if data else 0
    answered = (n - 1) * min(t.watch_problems, problems) + min(t.eval_problems, problems)
    return n, n * sum(sizes) + t.eval_blocks, answered


def train(
    model_config: ModelConfig, train_config: TrainConfig, data: Data | None = None,
    resume: bool = False, command: str | None = None, stop: Callable[[], bool] | None = None,
    quiet: bool = False, shard: Any = None, changed: Sequence[str] = (),
    weights: dict[str, torch.Tensor] | None = None, tell: Callable[[dict], object] | None = None,
) -> Run:  # fmt: skip
    """Train one model and write its run folder → Run.

    `data`, from load_data(), is loaded if not given. `resume` goes on from the checkpoint, if the
    run has begun, on the CPU to the same losses, bit for bit, as if it had never stopped. stop() is
    asked after each step; if true the run is saved and returned. `quiet` prints nothing and trains
    in a temporary folder, which goes when the Run does. Under torchrun every process calls this
    alike; `shard`, the laboratory's fsdp, then lets each keep a part of every weight. `changed`
    names what of LIFE a resumed run goes on with other values of. `weights`, {name: tensor}, are to
    begin with, as those of the run that `init_from` names are. tell(row) is called with each row of
    the log.
    ValueError for settings or data that cannot work, a folder that exists, is finished or is
    trained in by another process, a checkpoint that is damaged or of other data; Diverged if
    gradients stay infinite or NaN, if weights are so when they are to be saved, or the loss in the
    end.
    """
    from tqdm import tqdm

    m, t = model_config.validate(), train_config.validate()
    rank, world = processes()
    first = rank == 0  # of several processes this one evaluates, speaks and writes
    silent = quiet or not first
    # print around the progress bar
    say = (lambda line: None) if silent else tqdm.write
    check_batch(t)
    if t.fsdp and not shard and world > 1:
        raise ValueError(
            "fsdp is the laboratory's: give shard=fsdp, its module, to train()"
        )
    if t.report_to != "none" and not tell and first:
        advice = "give tell=minidepth_lab.command.trackers.Told(m, t) to train()"
        raise ValueError(f"report_to {t.report_to} is the laboratory's: {advice}")
    if resume and quiet:
        raise ValueError("quiet trains in a folder of its own; there is nothing in it to resume")
    if quiet:
        temporary = tempfile.TemporaryDirectory()
        t = dataclasses.replace(t, out_dir=temporary.name)
    folder = os.path.join(t.out_dir, t.name or name_of(m, t))

    # the data, and the settings that follow from it; a resumed run takes its own tokenizer, since
    # the one that was named may have changed
    whose_words = folder if resume else t.init_from
    words = saved_tokenizer(whose_words) if whose_words and not data else None
    data = data or load_data(t, m.block_size, words)
    data = dataclasses.replace(data, seed=t.seed, state=dict(data.state))
    m, t = complete_configs(m, t, data)
    identity = dict(settings=settings(m, t), fingerprint=data.fingerprint())

    # the model
    device = pick_device(t.device)
    drops = m.dropout or m.dropout_of("residual")
    if device.type == "mps" and t.grad_checkpoint and drops:  # its masks would differ twice
        raise ValueError("grad_checkpoint with dropout is wrong on Apple's GPUs; leave one out")
    torch.manual_seed(t.seed)  # of the first weights: drawn on the CPU, the same for any device
    model = GPT(m)
    if t.init_from and not weights and not has_checkpoint(folder):
        source, _ = load(t.init_from)
        weights = source.state_dict()
    if weights:
        given = f"init_from {t.init_from}" if t.init_from else "weights"
        with one_line_errors(given, "is of another shape than this model"):
            model.load_state_dict(weights)
    model.n_words = data.n_words or m.vocab_size
    model.autocast_dtype = pick_precision(t.precision, device)
    model.checkpointed, model.gradient_loops = t.grad_checkpoint, t.gradient_loops
    wrapped = parallel(model.to(device).train(), device, say, shard)
    if t.compile:  # blocks are alike: what is compiled for the first one serves all
        if isinstance(wrapped, nn.DataParallel):  # its replicas would all use GPU 0's weights
            other = "use torchrun, or CUDA_VISIBLE_DEVICES=0 for one GPU"
            raise ValueError(f"compile does not work with DataParallel; {other}")
        model.compiled = [torch.compile(block) for block in model.blocks]
    whole = shard.whole if shard else (lambda state: state)  # puts parts of weights together

    # what updates it
    optimizer = make_optimizer(model, t)
    # multiplies the loss, so that gradients below fp16's smallest number are not lost
    scaler = torch.amp.GradScaler(device.type, enabled=model.autocast_dtype == torch.float16)

    # where the run is
    done, log = 0, []  # steps that are done, and the rows of log.jsonl
    skipped, in_a_row = 0, 0  # steps without an update, in all and up to now
    busy, busy_tokens = 0.0, 0  # seconds of training and tokens since the last row of the log
    began = time.perf_counter()

    def restore(state):
        """Be the run that was saved; any error where the state is of another model."""
        nonlocal done, log, skipped, in_a_row, began
        weights, moments = state["model"], state["optimizer"]
        if shard:
            weights, moments = shard.parts_of(weights, moments, model, optimizer)
        model.load_state_dict(weights)
        optimizer.load_state_dict(moments)
        if state["scaler"]:  # empty after fp32, which may go on in fp16
            scaler.load_state_dict(state["scaler"])
        data.state = state["data"]
        done, log, skipped, in_a_row = (state[k] for k in ("step", "log", "skipped", "in_a_row"))
        began = time.perf_counter() - state["seconds"]

    def snapshot():
        """What restore() takes: the run as it is now."""
        return dict(
            step=done,
            log=log,
            skipped=skipped,
            in_a_row=in_a_row,
            seconds=time.perf_counter() - began,
            data=data.state,
            model=whole(model.state_dict()),
            optimizer=whole(optimizer.state_dict()),
            scaler=scaler.state_dict(),
        )

    # two processes that write one folder would each take the other's checkpoint for its own
    os.makedirs(folder, exist_ok=True)
    lock = locked(folder) if first else contextlib.nullcontext()
    newer = False  # whether this code has other settings than the one that began the run
    with lock, tqdm(total=t.steps, disable=silent or None) as bar:
        if resume and os.path.exists(os.path.join(folder, "config.json")):
            if state := newest_state(folder, restore, say, put_aside=first):
                check_same_run(folder, state, identity, (*changed, *changed_before(folder)))
                newer = names_of(state["settings"]) != names_of(identity["settings"])
        elif first:
            begin_folder(folder, identity, data.tokenizer, command, device)
        if world > 1:
            check_same_step(done, device, folder)
        if why := nothing_left(folder, t, done, log):
            if first:  # it lacks a line if the run died after its last checkpoint
                write_log(folder, log)
            raise ValueError(why)
        if log:  # --stop_after is another one now, and the run goes on
            log[-1].pop("ended_early", None)
        if (changed or newer) and first:
            change_config(folder, identity, changed, done, command)
        bar.update(done)

        for step in range(done, t.steps):  # counted from 0; the log counts from 1
            # 1. the rate, and all that is random, are functions of the step: nothing to store
            seed_step(t.seed, step, rank)
            lr = lr_at(step, t)
            for group in optimizer.param_groups:
                group["lr"] = lr

            # 2. the batch, of all processes together; its loss is divided by the count of all its
            #    targets: so accumulation, DataParallel's uneven shards and several processes give
            #    the gradient of the full batch
            tokens, targets = data.draw(step, t.batch_size * t.grad_accum)  # (batch, T)
            n_targets = int((targets != -100).sum())
            if not n_targets:
                raise ValueError(f"the batch of step {step + 1} has no target; nothing is learned")
            started = time.perf_counter()

            # 3. forward and backward, a part after the other
            loss = 0.0
            parts = list(by_length(tokens, targets, t.batch_size))
            for i, (x, y) in enumerate(parts):
                # every process draws the whole batch and takes its share of each part
                x, y = x[rank::world].to(device), y[rank::world].to(device)
                # DistributedDataParallel asks for this: gradients are added up once, at the end
                wrapped.require_backward_grad_sync = i + 1 == len(parts)
                loss_sum, _ = wrapped(x, y)  # (B,), gathered from all GPUs
                share = loss_sum.sum() / n_targets
                # DistributedDataParallel averages over the processes: hence `world`
                scaler.scale(share * world).backward()
                loss += share.item()

            # 4. the update: unscaled before clipping, which is about the true gradient
            scaler.unscale_(optimizer)
            grad_norm = nn.utils.clip_grad_norm_(wrapped.parameters(), t.grad_clip)
            overflow = not grad_norm.isfinite()
            if not overflow:  # else the step is skipped, and counted: AdamW would move by NaN
                scaler.step(optimizer)
            scaler.update()  # in FP16 it halves the loss scale after an infinite gradient
            optimizer.zero_grad(set_to_none=True)
            busy += time.perf_counter() - started
            busy_tokens += tokens.numel()
            done = step + 1
            skipped += overflow
            in_a_row = in_a_row + 1 if overflow else 0

            # 5. every process learns the loss of the batch, and whether any was asked to stop
            stopping = bool(stop and stop())
            if world > 1:
                sums = torch.tensor([loss, stopping], device=device)
                torch.distributed.all_reduce(sums)
                loss, stopping = sums[0].item(), sums[1].item() > 0
            if not overflow:  # a curriculum goes on by what was learned
                data.after_step(loss)
            bar.update()

            takes_part = first or shard  # with parts of weights everybody is needed for the whole

            # 6. give up a run that is lost. What is saved is the state before its skipped steps:
            #    they have changed nothing but the loss scale
            if in_a_row == MOST_SKIPPED:
                done, skipped, in_a_row = done - in_a_row, skipped - in_a_row, 0
                log = [row for row in log if row["step"] <= done]
                advice = GENTLER
                if model.autocast_dtype:
                    advice += ", or use --precision fp32"
                if takes_part:
                    state = snapshot()
                    if all_finite(state["model"]):
                        if first:
                            save(folder, state, identity, data.tokenizer)
                        advice += f"; {folder} holds the last good state, of step {done}"
                trouble = f"infinite or NaN for {MOST_SKIPPED} steps, up to step {step + 1}"
                raise Diverged(f"the gradient was {trouble}; {advice}")

            # 7. evaluate
            last = done == t.steps
            evaluating = last or step == 0 or done % t.eval_every == 0
            better = False  # whether this evaluation has the lowest validation loss so far
            if evaluating and takes_part:
                epoch = 1
                if not data.fresh:  # a pass over the blocks; a task's data never repeats
                    epoch = step * t.batch_size * t.grad_accum // len(data.train[0]) + 1
                row = dict(step=done, epoch=epoch, lr=lr, train_loss=loss)
                row["grad_norm"] = grad_norm.item()  # before it was clipped
                row["val_loss"] = mean_loss(model, data.val, t.eval_blocks, t.batch_size)
                without_better = since_best([*log, row])
                better = without_better == 0
                if t.stop_after and without_better >= t.stop_after and not last:
                    last = True
                    row["ended_early"] = True
                if last and not math.isfinite(row["val_loss"]):  # what was saved before stays
                    raise Diverged(
                        f"the loss is infinite or NaN at the last step, {done}; {GENTLER}"
                    )
                if data.val_by_source:  # where there are several
                    row["val_loss_by_source"] = {
                        name: mean_loss(model, part, t.eval_blocks, t.batch_size)
                        for name, part in data.val_by_source.items()
                    }
                row |= data.measure(model)  # what a study adds, such as accuracy by length
                # few problems are answered each time, to watch, and all of them in the end
                n_asked = t.eval_problems if last else t.watch_problems
                if problems := data.problems[:n_asked]:
                    row |= measure_answers(model, data.tokenizer, problems)
                if last:
                    row["train_loss_eval"] = train_loss_eval(
                        model, data, t.eval_blocks, t.batch_size
                    )
                    for key in ("guess", "shortcut"):  # what the accuracy is to be compared with
                        if key in data.facts:
                            row[key] = data.facts[key]
                row["seconds"] = round(time.perf_counter() - began, 2)
                row["skipped_steps"] = skipped
                row["tokens_per_second"] = round(busy_tokens / busy)
                busy, busy_tokens = 0.0, 0
                log.append(row)
            if world > 1 and t.stop_after and evaluating:  # who evaluates tells the others
                ended = torch.tensor(float(last), device=device)
                torch.distributed.all_reduce(ended, torch.distributed.ReduceOp.MAX)
                last = ended.item() > 0

            # 8. save
            if better and t.keep == "best" and takes_part:
                best = whole(model.state_dict())
                if all_finite(best) and first:
                    files = tokenizer_files(folder, data.tokenizer)
                    notes = dict(step=done, val_loss=row["val_loss"])
                    write_weights(folder, best, identity["settings"]["model"], files, BEST, **notes)
            if (last or stopping or done % t.save_every == 0) and takes_part:
                state = snapshot()
                if not all_finite(state["model"]):
                    raise Diverged(f"weights are infinite or NaN after step {done}; {GENTLER}")
                if first:
                    save(folder, state, identity, data.tokenizer)

            # 9. log: after the save, so that a finished log has its weights
            if evaluating and first:
                write_log(folder, log)
                say(log_line(log[-1], t))
                if tell:
                    tell(log[-1])

            # 10. stop, if asked to, or if nothing has got better for long
            if stopping or last:
                break

    if first and shard:  # it goes on alone, and has only its part of the weights
        model, _ = load(folder)
    model.eval()
    finished = last
    if finished and first:
        if done < t.steps:
            worse = since_best(log)
            best = log[-1 - worse]
            why = f"{worse} evaluations without a better one than {best['val_loss']:.4f}"
            say(f"Ended early, after step {done}: {why} at step {best['step']}")
        say(f"Done. Final train loss: {loss:.4f} | total time {log[-1]['seconds']:.0f}s")
    elif first:
        go_on = f"go on with: {COMMAND} --resume {shlex.quote(folder)}"
        say(f"Stopped after step {done}; {go_on}")
    run = Run(folder, model, data.tokenizer, data, log, finished)
    if quiet:
        weakref.finalize(run, temporary.cleanup)
    return run


if __name__ == "__main__":  # python -m minidepth: the command, which stands beside this file
    import runpy

    here = os.path.dirname(os.path.abspath(__file__))
    if os.path.isdir(os.path.join(here, "minidepth_lab")):  # an installation has it there
        runpy.run_module("minidepth_lab.command", run_name="__main__")
    else:
        runpy.run_path(os.path.join(here, "train.py"), run_name="__main__")
