"""minidepth: does depth help a Transformer reason, and how would you know?

One file, read top to bottom: settings, model, problems, rows to blocks, answers, the run's folder,
training. It needs no other file of the project, and each section uses only what stands above it.

    python train.py --n_layers 12                            laptop or GPU, as the machine has it
    python train.py --preset report --n_layers 12            the published run, made for 2 x T4
    torchrun --nproc_per_node 2 train.py --n_layers 12       under DistributedDataParallel

Whatever is not the experiment plugs in, in five places that say what they ask for: the classes Data
and Folder, and three arguments of train(): make_model, on_log and stop.

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
import itertools
import json
import math
import os
import random
import re
import statistics
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

__version__ = "0.3"

# ---------- settings: the defaults are the published report's ----------


def option(
    default: object, help: str, low: float | None = None, high: float = 2**53, choices: tuple = ()
) -> Any:
    """A setting with its help text and its limits: the command's flags, the checks and the pages
    derive from it. Up to 2**53 floats, and with them JSON everywhere, count exactly."""
    return field(default=default, metadata=dict(help=help, low=low, high=high, choices=choices))


def check_fields(config: Any) -> None:
    """ValueError for a setting of another type than its field's, or beyond its limits."""
    for f in dataclasses.fields(config):
        value, low, choices = getattr(config, f.name), f.metadata["low"], f.metadata["choices"]
        kind, high = int if f.type is tuple else f.type, f.metadata["high"]
        for part in value if isinstance(value, tuple) else (value,):
            good = type(part) is kind or (kind is float and type(part) is int)
            if choices or low is not None:
                good = good and (part in choices if choices else low <= part <= high)
            if not good:
                limits = f"from {low} to {high:g}" if low is not None else ""
                wanted = ", ".join(choices) or f"a value of type {kind.__name__} {limits}"
                raise ValueError(f"{f.name} {part!r:.40} does not work; give {wanted}")


@dataclass
class ModelConfig:
    """The architecture. The defaults are the published report's."""

    vocab_size: int = option(0, "rows of the embedding; 0: as many as the tokenizer has words", 0)
    block_size: int = option(512, "tokens in a training sequence", 1)
    n_layers: int = option(12, "layers of weights", 1)
    n_heads: int = option(8, "attention heads of a layer", 1)
    d_model: int = option(384, "width of the residual stream", 1)
    d_ff: int = option(1536, "width inside the feed-forward part; 0: attention only", 0)
    dropout: float = option(0.1, "on embeddings, attention weights, and what layers add", 0, 0.99)
    bias: bool = option(False, "linear maps but the head add a vector of their own")
    tie_weights: bool = option(True, "the output head shares the token embedding")
    n_loops: int = option(1, "times the stack of layers is applied, with the same weights", 1)
    init_std: float = option(0.02, "standard deviation of the initial weights", 1e-9)

    def validate(self) -> "ModelConfig":
        """Return self; ValueError for what cannot be built."""
        check_fields(self)
        if self.d_model % self.n_heads:
            wrong = f"n_heads {self.n_heads} does not divide d_model {self.d_model}"
            raise ValueError(f"{wrong}; give {math.gcd(self.n_heads, self.d_model)}, say")
        return self


REPORT_DATA = "wop/XXXXXL-chain-of-thought"
DEVICES, PRECISIONS = ("auto", "cuda", "mps", "cpu"), ("auto", "fp32", "fp16", "bf16")


@dataclass
class TrainConfig:
    """The data and the training. The defaults are the published report's."""

    data: str = option(REPORT_DATA, "'embedded', a .jsonl file of conversations, or a hub id")
    tokenizer: str = option("Qwen/Qwen2.5-0.5B", "hub id, folder, or 'embedded'")
    problem_steps: tuple = option((1, 2, 3), "steps of the embedded problems: 2,3,4", 1, 9)
    ring_questions: int = option(1, "questions about each embedded ring to train on", 1, 99)
    max_rows: int = option(20_000, "most rows of each source, a sample of it; 0: all", 0)
    val_fraction: float = option(0.05, "share of a source's rows held out", 0.001, 0.9)
    packing: str = option("pack", "rows end to end, or each padded", choices=("pack", "pad"))
    loss_on: str = option("all", "tokens that carry a loss", choices=("all", "assistant"))
    steps: int = option(500, "optimizer steps", 1)
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
    device: str = option("auto", "where to train", choices=DEVICES)
    precision: str = option("auto", "auto: fp16 on CUDA, else fp32", choices=PRECISIONS)
    seed: int = option(0, "of the weights, the dropout and the order of the batches", 0, 2**31)
    eval_every: int = option(25, "steps from one evaluation to the next", 1)
    eval_blocks: int = option(64, "validation blocks measured, always the same ones", 1)
    eval_problems: int = option(200, "held-out problems answered at the end", 0)
    watch_problems: int = option(0, "held-out problems answered at every evaluation", 0)
    save_every: int = option(100, "steps from one checkpoint to the next", 1)

    def validate(self) -> "TrainConfig":
        """Return self; ValueError for what cannot be run."""
        check_fields(self)
        if self.warmup_steps >= max(1, self.lr_steps or self.steps):
            wrong = f"warmup_steps {self.warmup_steps:g} leaves none of {self.steps} steps"
            raise ValueError(f"{wrong}; give fewer, or a share of all steps, as 0.1")
        return self


# a preset is what differs from the defaults above
PRESETS = {
    "report": dict(vocab_size=151_665),
    # attention alone: with a feed-forward part some seeds do not learn in this time
    "laptop": dict(
        block_size=104, n_heads=4, d_model=64, d_ff=0, dropout=0.0, tie_weights=False, init_std=0.1,
        data="embedded", ring_questions=3, max_rows=40_000, tokenizer="embedded", packing="pad",
        loss_on="assistant", steps=1100, batch_size=12, grad_accum=3, lr=3e-3, beta1=0.7,
        eval_every=50, eval_problems=600, watch_problems=99,
    ),
}  # fmt: skip


def make_configs(values: dict, kinds: Sequence[type] = (ModelConfig, TrainConfig)) -> tuple:
    """One object of each of the dataclasses `kinds`, of {setting: value}; ValueError for a value
    that cannot work and for a setting that none of them has."""
    values, made = dict(values), []
    # the report warms up for 50 steps, a tenth of its run; a run too short for that for a tenth
    if values.get("steps") in range(51):
        values.setdefault("warmup_steps", 0.1)
    for kind in kinds:
        names = {f.name for f in dataclasses.fields(kind)} & values.keys()
        made.append(kind(**{name: values.pop(name) for name in names}).validate())
    if values:
        raise ValueError(f"setting {', '.join(values)} is unknown")
    return tuple(made)


def configs(preset: str = "laptop", **changes: Any) -> tuple[ModelConfig, TrainConfig]:
    """(ModelConfig, TrainConfig) of a preset, changed; ValueError for what is unknown."""
    if preset not in PRESETS:
        raise ValueError(f"preset {preset!r} is unknown; choose from {', '.join(PRESETS)}")
    return make_configs(PRESETS[preset] | changes)


# ---------- model: a pre-norm GPT, by default without biases, twin of transformers' GPT-2 ------


def dropout(x: torch.Tensor, p: float, training: bool = True) -> torch.Tensor:
    """Zero each element with probability p and scale the others by 1/(1 - p); any shape."""
    if not training or p == 0:
        return x
    if x.device.type != "cpu":
        return F.dropout(x, p)
    # PyTorch draws CPU masks one number at a time, which was a third of a training step. We draw
    # 64-bit words instead and read each as four 16-bit numbers, from -32,768 to 32,767
    words = torch.empty((x.numel() + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
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
    weights (B, H, T, S), these before their dropout p."""
    T, S = q.size(2), k.size(2)
    # -inf where a key comes after the query, which softmax turns into a weight of 0
    later = torch.full((T, S), -math.inf, dtype=q.dtype, device=q.device).triu(S - T + 1)
    weights = ((q * scale) @ k.transpose(2, 3)).add_(later).softmax(-1)
    return dropout(weights, p) @ v, weights


class Cache:
    """Keys and values (B, H, S, D) of the S tokens that a layer has read, in a buffer for as many
    as there can be, so that a token more does not copy all the others."""

    def __init__(self, most: int) -> None:
        self.length, self.most, self.buffer = 0, most, None

    def append(self, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """k and v (B, H, T, D) of T more tokens → those of all tokens."""
        start, self.length = self.length, self.length + k.size(2)
        if self.buffer is None:  # made when the first keys say on which device, and in which type
            self.buffer = k.new_empty(2, *k.shape[:2], self.most, k.size(3))
        self.buffer[:, :, :, start : self.length] = torch.stack((k, v))
        return self.buffer[:, :, :, : self.length].unbind(0)


# cuDNN's attention makes a plan for each length: 39 of the 41 ms that a generated token took on an
# H100, whose lengths are all new. PyTorch's other fused kernels have none to make
torch.backends.cuda.enable_cudnn_sdp(False)


class Attention(nn.Module):
    """Causal self-attention: each token asks the tokens up to itself. x (B, T, C) → (B, T, C)"""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        C = config.d_model
        self.n_heads = config.n_heads
        self.p = self.p_out = config.dropout  # on the weights, and on what is added
        # q k^T adds D products, so its spread grows as sqrt(D): divided by that, the softmax is
        # about as sharp for a head of any size
        self.scale = (C // config.n_heads) ** -0.5
        self.qkv = nn.Linear(C, 3 * C, bias=config.bias)  # one matrix product for all three
        self.out = nn.Linear(C, C, bias=config.bias)  # mixes what the heads have found

    def project(self, x: torch.Tensor, start: int = 0) -> tuple[torch.Tensor, ...]:
        """x (B, T, C), whose first token has position `start` → q, k, v, each (B, H, T, D)."""
        B, T, _ = x.shape
        # (B, T, 3 C) → (B, T, 3, H, D) → three of (B, H, T, D)
        return self.qkv(x).view(B, T, 3, self.n_heads, -1).permute(2, 0, 3, 1, 4).unbind(0)

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
        self.p = config.dropout
        self.up = nn.Linear(config.d_model, config.d_ff, bias=config.bias)
        self.out = nn.Linear(config.d_ff, config.d_model, bias=config.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return dropout(self.out(F.gelu(self.up(x))), self.p, self.training)


class Layer(nn.Module):
    """What attention finds, then what the feed-forward part makes of it, is added to the residual
    stream x (B, T, C). Each reads a normalised copy, so that the stream may grow."""

    def __init__(self, config: ModelConfig, attention: Callable = Attention) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(config.d_model)
        self.attn = attention(config)
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
CPU_ROWS = 256  # of float32 logits; fewer would pass over dweight too often
HALF_ROWS = 1024  # fp16 ends at 65,504, which so many products stay below if none is above 63
SOFTMAX_ROWS, GRADIENT_WORDS = 32, 4096  # so few stay in a CPU's cache


def rows_at_once(n: int, n_words: int, half: bool, on_cpu: bool) -> int:
    """Of n rows of logits over n_words words, how many the head computes at a time."""
    most = HALF_ROWS if half else CPU_ROWS if on_cpu else n
    return min(most, max(64, min(n, LOGITS_AT_ONCE // n_words)))


class HeadLoss(torch.autograd.Function):
    """Cross-entropy of h @ weight^T in `dtype`: h (N, C), weight (V, C), targets (N,) → nll (N,).

    All (N, V) logits would be 5 GB at the report's size. Here some rows of them live at a time and
    give their gradient before they go: a causal model's loss is a sum over tokens, so each row can
    be done with for good. The gradients are those of sum(nll), for tokens of equal weight;
    RuntimeError for other weights, and for a second way back."""

    @staticmethod
    def forward(
        ctx: Any, h: torch.Tensor, weight: torch.Tensor, targets: torch.Tensor,
        dtype: torch.dtype, grads: bool,
    ) -> torch.Tensor:  # fmt: skip
        ctx.types = h.dtype, weight.dtype
        h, weight, V = h.to(dtype), weight.to(dtype), len(weight)
        exact = torch.promote_types(dtype, torch.float32)  # a softmax in half would round
        half, on_cpu = dtype != exact, h.device.type == "cpu"
        rows = rows_at_once(len(h), V, half, on_cpu)
        few, words = (SOFTMAX_ROWS, GRADIENT_WORDS) if on_cpu else (rows, V + 64)
        if half:  # a GPU's products are slow where V is odd: more words, of zeros, that are none
            weight = F.pad(weight, (0, 0, 0, -V % 64))
        nll, dh = torch.empty(len(h), dtype=exact, device=h.device), torch.empty_like(h)
        dweight = torch.zeros_like(weight, dtype=exact) if grads else None
        # buffers for all rows: new memory for each part would take a CPU as long as the softmax
        buffer = torch.empty(min(len(h), rows), len(weight), dtype=dtype, device=h.device)
        product = torch.empty_like(weight[:words]) if grads and half else None
        for x, t, loss, dx in zip(*(each.split(rows) for each in (h, targets[:, None], nll, dh))):
            logits = torch.mm(x, weight.T, out=buffer[: len(x)])  # (rows, V)
            logits[:, V:] = -math.inf  # a word that is none has the probability 0
            for z, right, one in zip(logits.split(few), t.split(few), loss.split(few)):
                if on_cpu:  # a copy in half precision alone
                    log_p = z.to(exact)
                    torch.log_softmax(log_p, 1, out=log_p)
                else:
                    log_p = torch.log_softmax(z, 1, dtype=exact)
                one.copy_(-log_p.gather(1, right).squeeze(1))
                if grads:  # by the logits: the softmax less 1 at the target, entries of at most 1
                    minus_one = log_p.new_full(right.shape, -1.0)
                    z.copy_(log_p.exp_().scatter_add_(1, right, minus_one))
                log_p = None
            if grads:
                torch.mm(logits, weight, out=dx)
            if grads and not half:
                dweight.addmm_(logits.T, x)
            elif grads:  # products in half, their sum in float32
                for d, total in zip(logits.split(words, 1), dweight.split(words)):
                    total += torch.mm(d.T, x, out=product[: len(total)])
        # kept on ctx and not by save_for_backward, so that backward can scale them in place
        ctx.gradients = (dh, dweight[:V]) if grads else None
        return nll

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, g: torch.Tensor) -> tuple:
        if ctx.gradients is None or (g != g[:1]).any():
            raise RuntimeError("the head's loss goes back once, with one weight for all its tokens")
        # the loss scale over the token count; 0 where no token has a loss
        scale, gradients, ctx.gradients = g[:1].sum(), ctx.gradients, None
        return *(d.to(t).mul_(scale) for d, t in zip(gradients, ctx.types)), None, None, None


class GPT(nn.Module):
    """tokens (B, T) int64 → logits (B, T, V), with a cache those of the last token, (B, 1, V);
    with targets (B, T), -100 for none → loss_sum, n_tokens, each (B,). Targets (B, loops, T) ask
    for a loss after each of so many loops, and their sum.

    Another model that train() is to train is called in the same ways and has `config`, `n_words`
    and `autocast_dtype`; what looks into models asks for run_loops(), `norm` and `head_weight` too.
    """

    keeps_converted = True  # whether autocast may keep a weight in half precision between layers

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        c = self.config = config.validate()
        if not c.vocab_size:
            raise ValueError("vocab_size 0 is unknown; give the number of words")
        # names as in PyTorch's own modules: they are the keys of the checkpoint
        self.token_embedding = nn.Embedding(c.vocab_size, c.d_model)
        self.make_layers()
        self.norm = nn.LayerNorm(c.d_model)
        if not c.tie_weights:
            self.head = nn.Linear(c.d_model, c.vocab_size, bias=False)
        self.autocast_dtype: torch.dtype | None = None  # half precision's, set by prepare()
        self.n_words = c.vocab_size  # ids from here on belong to no word and are never sampled
        self.most_tokens: int | None = c.block_size  # that it can read; None: any number
        self.init_weights()

    def make_layers(self) -> None:
        c = self.config
        self.position_embedding = nn.Embedding(c.block_size, c.d_model)
        self.blocks = nn.ModuleList(Layer(c) for _ in range(c.n_layers))

    @torch.no_grad()
    def init_weights(self) -> None:
        """The table of GPT-2 in `transformers`, with init_std 0.02:

        embeddings, qkv, up, head   normal, init_std
        attn.out, mlp.out           normal, init_std / sqrt(additions to the residual stream)
        norms                       weight 1, bias 0, as they are made: what has "norm" in its name
        biases, if there are any    0
        """
        c = self.config
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

    @property
    def head_weight(self) -> torch.Tensor:
        """(V, C)"""
        return self.token_embedding.weight if self.config.tie_weights else self.head.weight

    def embed(self, tokens: torch.Tensor, start: int = 0) -> torch.Tensor:
        """tokens (B, T), the first at position `start` → the stream's beginning, (B, T, C)."""
        c, end = self.config, start + tokens.size(1)
        if end > c.block_size:
            raise ValueError(f"{end} tokens do not fit block_size {c.block_size}")
        # the head has made a dense gradient (V, C) of a tied weight: a sparse one saves a second
        sparse = c.tie_weights and tokens.device.type == "cpu"
        x = F.embedding(tokens, self.token_embedding.weight, sparse=sparse)
        return dropout(x + self.position_embedding.weight[start:end], c.dropout, self.training)

    def run_loops(
        self, tokens: torch.Tensor, cache: list[Cache] | None = None, loops: int | None = None
    ) -> Iterator[torch.Tensor]:
        """Yield the residual stream (B, T, C) after each loop, an application of all layers, before
        the last norm; `loops` of them, or config.n_loops. In `cache`, a Cache for each time a layer
        is applied, keys and values gather: the next call goes on where this one ends."""
        x = self.embed(tokens, cache[0].length if cache else 0)
        for loop in range(loops or self.config.n_loops):  # the same weights again (2502.17416)
            for i, layer in enumerate(self.blocks):
                x = layer(x, cache[loop * len(self.blocks) + i] if cache else None)
            yield x

    def hidden(
        self, tokens: torch.Tensor, cache: list[Cache] | None = None, loops: int | None = None
    ) -> torch.Tensor:
        """The residual stream after the last loop and the last norm, (B, T, C)."""
        for after_loop in self.run_loops(tokens, cache, loops):
            x = after_loop  # only the last one is wanted
        return self.norm(x)

    def forward(
        self, tokens: torch.Tensor, targets: torch.Tensor | None = None,
        cache: list[Cache] | None = None, loops: int | None = None,
    ) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
        half = self.autocast_dtype
        # DataParallel's threads inherit "autocast on" but not its dtype: so it is entered here
        how = dict(enabled=half is not None, cache_enabled=self.keeps_converted)
        with torch.autocast(tokens.device.type, half, **how):
            if targets is None and cache:  # who generates needs the last token's logits alone
                return (self.head_weight @ self.hidden(tokens, cache, loops)[:, -1].T).T[:, None]
            if targets is None:
                return F.linear(self.hidden(tokens, None, loops), self.head_weight)
            if targets.dim() == 2:
                x = self.hidden(tokens, None, loops)
            else:
                assert loops in (None, targets.size(1)), "the targets say how many loops"
                states = self.run_loops(tokens, None, targets.size(1))
                x = torch.stack([self.norm(state) for state in states], 1)  # (B, loops, T, C)
        # sums and counts leave, no means: so 1, 2 or uneven shards give the same gradient.
        # tokens without a target are left out before the head, the costliest part
        has_target = targets != -100
        where = has_target.nonzero(as_tuple=True)  # its sequence, (its loop,) its place: (N,)
        dtype, grads = half or x.dtype, torch.is_grad_enabled()
        nll = HeadLoss.apply(x[where], self.head_weight, targets[where], dtype, grads)
        loss_sum = nll.new_zeros(len(tokens)).index_add(0, where[0], nll)
        return loss_sum.float(), has_target.flatten(1).sum(1).float()


def processes() -> tuple[int, int]:
    """(rank, world): which process of how many this is, as torchrun says."""
    return int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))


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


# ---------- the embedded problems: reasoning whose answers can be checked, made here ----------


def generator(*numbers: object) -> torch.Generator:
    """A random generator that is a function of the numbers, whatever was drawn elsewhere."""
    return torch.Generator().manual_seed(zlib.crc32(repr(numbers).encode()))


FAMILIES = ("chain", "lookup", "order")


def embedded_problem(
    draw: Callable[[], float], family: str, steps: int, modulus: int = 10, ring: Sequence = ()
) -> tuple[str, str, str, int, str, int]:
    """A problem of `steps` steps: its question, worked steps, answer, the number of answers that
    are possible, its key, and how many keys there are. Problems of one key are the same.

    chain   a number to which numbers are added, modulo `modulus`; guessing finds 1 in `modulus`
    lookup  a ring of six or more letters in mixed order, followed `steps` times; 1 in (ring - 1)
    order   steps + 1 letters, neighbours compared in mixed order; which is k-th: 1 in (steps + 1)

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
    return zlib.crc32(key.encode()) % (8 if keys >= 600 else 2) == 0


def embedded_rows(
    n: int, held_out: bool = False, steps: Sequence[int] = (1, 2, 3), seed: int = 0,
    families: Sequence[str] = FAMILIES, modulus: int = 10, direct: bool = False, questions: int = 1,
) -> list[dict]:  # fmt: skip
    """n generated conversations in the published row format, families and step counts in turn, the
    answer after the worked steps or, with `direct`, without them.

    To train on, a ring is asked so many `questions`: all but the first go from a letter to the one
    before it, all the way round, so that there is more to learn from. No key is held out twice; a
    kind that has no more drops out. Only random.random() is drawn from, whose numbers Python keeps
    the same in every version and on every platform: the same seed gives the same bytes.
    """
    draw, rows, taken = random.Random(2 * seed + held_out).random, [], set()
    kinds, turn, tried = list(itertools.product(steps, families)), 0, 0
    while len(rows) < n and kinds:
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
    if n and not rows:
        none = f"with steps {tuple(steps)} and modulus {modulus} there is no problem left"
        raise ValueError(f"{none}; give others")
    return rows


# ---------- rows → tokens → blocks ----------


def read_rows(config: TrainConfig) -> tuple[list[dict], list[dict], int]:
    """(conversations to train on, those held out, how many rows are none and left out) of
    'embedded', a .jsonl file or a hub's split `train`. A conversation is {"messages": [{"role":
    text, "content": text}, …]}. Sample and split are the same for every seed of a run."""
    if config.data == "embedded":
        steps, questions = config.problem_steps, config.ring_questions
        train = embedded_rows(config.max_rows or 20_000, False, steps, questions=questions)
        return train, embedded_rows(600, True, steps), 0
    if config.data.endswith(".jsonl"):
        with open(config.data, encoding="utf-8") as f:
            rows = [json.loads(line) for line in f if line.strip()]
    else:
        from datasets import load_dataset

        rows = load_dataset(config.data, split="train")
    if 0 < config.max_rows < len(rows):
        places = torch.randperm(len(rows), generator=generator("max_rows"))[: config.max_rows]
        rows = [rows[i] for i in places.sort().values.tolist()]
    usable = [row for row in rows if is_conversation(row)]
    n = min(len(usable) - 1, math.ceil(len(usable) * config.val_fraction))
    if n < 1:
        form = '{"messages": [{"role": "user", "content": "…"}, …]}'
        raise ValueError(f"data {config.data} has {len(usable)} rows {form}; it needs 2 or more")
    order = torch.randperm(len(usable), generator=generator(0)).tolist()
    train, held_out = ([usable[i] for i in part] for part in (order[n:], order[:n]))
    return train, held_out, len(rows) - len(usable)


def is_conversation(row: Any) -> bool:
    messages = row.get("messages") if isinstance(row, dict) else None
    keys = ("role", "content")
    return bool(messages) and all(isinstance(m.get(key), str) for m in messages for key in keys)


END_OF_TEXT = "<|endoftext|>"
CHAT = """{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""  # kept with the tokenizer, for other programs; segments() says the same


def load_tokenizer(name: str, texts: Iterable[str] = (), size: int = 2048) -> Any:
    """The tokenizer of a folder or hub id; 'embedded' makes a byte-level BPE from the texts."""
    from tokenizers import ByteLevelBPETokenizer, Tokenizer
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    if name == "embedded":
        bpe, special = ByteLevelBPETokenizer(), [END_OF_TEXT, "<|im_start|>", "<|im_end|>"]
        special += ["<think>", "</think>"]
        bpe.train_from_iterator(texts, size, special_tokens=special, show_progress=False)
        made = PreTrainedTokenizerFast(tokenizer_object=bpe._tokenizer, eos_token=END_OF_TEXT)
    else:  # no stranger's code is run, and nobody asked whether it may
        local = os.path.isdir(name)
        made = AutoTokenizer.from_pretrained(name, local_files_only=local, trust_remote_code=False)
    # the marks around thoughts are part of what is said; control tokens would be left out of it
    if hasattr(made, "backend_tokenizer"):
        pattern = r'("content":\s*"</?think>"[^}]*"special":\s*)true'
        content = re.sub(pattern, r"\1false", made.backend_tokenizer.to_str())
        made._tokenizer = Tokenizer.from_str(content)
    return made


def turn_end(tokenizer: Any) -> str:
    """What ends a turn: ChatML's token where the tokenizer has it, else its end of text."""
    end = "<|im_end|>"  # of an unknown word the number is none, or another's
    known = tokenizer.convert_ids_to_tokens(tokenizer.convert_tokens_to_ids(end) or 0) == end
    return end if known else tokenizer.eos_token or ""


class Markup(str):
    """A text in which a tokenizer's own marks count. In any other text <|im_end|> is ten
    characters, whoever wrote them."""


def segments(messages: list[dict], end: str = "") -> list[tuple[str, bool]]:
    """[(text, whether the assistant says it), …] of a conversation in ChatML, whose turns `end`
    ends."""
    parts = []
    for m in messages:
        said = m["role"] == "assistant"
        parts += [(Markup(f"<|im_start|>{m['role']}\n"), False), (m["content"], said)]
        parts += [(Markup(end), said), ("\n", False)]
    return parts


def encode(
    rows: Iterable, tokenizer: Any, loss_on: str = "all"
) -> Iterator[tuple[list[int], list[bool]]]:
    """segments() of each row → its token ids, and for each token whether it is learned: two lists.

    Segments are encoded one by one, so that a prompt is what it was in training, and of a thousand
    rows at a time each text once. Control tokens are made of Markup alone."""
    rows = iter(rows)
    # what else a tokenizer returns takes as long as the ids
    plain = dict(add_special_tokens=False, return_attention_mask=False, return_token_type_ids=False)
    while batch := list(itertools.islice(rows, 1000)):
        ids = {}
        for kind in (Markup, str):
            texts = [text for parts in batch for text, _ in parts if type(text) is kind]
            if texts := list(dict.fromkeys(texts)):
                made = tokenizer(texts, split_special_tokens=kind is str, **plain).input_ids
                ids |= {(kind, text): each for text, each in zip(texts, made)}
        for parts in batch:
            pairs = [(ids[type(text), text], said or loss_on == "all") for text, said in parts]
            yield (
                [i for some, _ in pairs for i in some],
                [said for some, said in pairs for _ in some],
            )


def blocks(encoded: Iterable, T: int, packing: str) -> tuple[np.ndarray, np.ndarray]:
    """encode()'s rows → (tokens, targets), each (n_blocks, T) int32; -100 is no target.

    pack: all rows end to end, cut every T tokens; the rest, less than a block, is left out.
    pad:  each row from the start of a block, the last one filled up with zeros; a longer row goes
          on in another block."""
    # typed arrays, not lists of numbers: 4 bytes for a token where a list takes 36
    tokens, targets = array.array("i"), array.array("i")
    for ids, learn in encoded:
        following = [i if said else -100 for i, said in zip(ids, learn)]
        if packing == "pad":
            missing = -len(ids[1:]) % T
            ids = [*ids[:-1], *[0] * missing]
            following = following[1:] + [-100] * missing
        tokens.extend(ids)
        targets.extend(following)
    tokens, targets = np.frombuffer(tokens, np.int32), np.frombuffer(targets, np.int32)
    if packing == "pack":
        targets = targets[1:]
    n = len(targets) // T
    return tokens[: n * T].reshape(n, T), targets[: n * T].reshape(n, T)


@functools.lru_cache(4)
def block_order(n: int, seed: int, epoch: int) -> torch.Tensor:
    """The order of n blocks in an epoch, (n,) int64."""
    return torch.randperm(n, generator=generator(seed, epoch))


@dataclass
class Data:
    """What a model trains on and is measured by: all that train() asks of data. load_data() makes
    it of text. What is not blocks of text has methods of its own: batches drawn anew for each step,
    a curriculum, another measure."""

    train: tuple  # (tokens, targets), each (n_blocks, T) int32
    val: tuple  # the same
    tokenizer: Any = None
    problems: list = field(default_factory=list)  # held-out ones, see problem_of()
    facts: dict = field(default_factory=dict)  # {name: value} to be told before the first step
    n_words: int = 0  # ids in use
    infinite: bool = False  # draw() never repeats itself: there are no epochs
    seed: int = 0  # train() sets it to the run's
    state: dict = field(default_factory=dict)  # what a resume needs; kept in checkpoints

    def draw(self, step: int, n: int) -> tuple[torch.Tensor, torch.Tensor]:
        """(tokens, targets), each (n, T) int64, of the 0-based step: a function of it, of the seed
        and of the state, so that a resumed run draws the same, and every process of a job knows the
        whole batch. Here each epoch has a new order."""
        total, places = len(self.train[0]), range(step * n, (step + 1) * n)
        rows = [block_order(total, self.seed, at // total)[at % total] for at in places]
        rows = torch.stack(rows).numpy()
        return tuple(torch.from_numpy(part[rows]).long() for part in self.train)

    def after_step(self, loss: float) -> None:
        """Called with the training loss after each step that was not skipped."""

    def evaluate(self, model: nn.Module) -> dict:
        """{name: value} that each evaluation adds to the log."""
        return {}

    def fingerprint(self) -> list[int]:
        """Numbers that tell this data from other data, for resuming."""
        crcs = [0, zlib.crc32(repr(self.problems).encode(errors="replace"))]
        for part in (*self.train, *self.val):
            crcs[0] = zlib.crc32(np.ascontiguousarray(part), crcs[0])
        return crcs


def final_answer(text: str) -> str | None:
    """What a text answers: all after its last ####, else after </think>; None without either."""
    mark = "####" if "####" in text else "</think>"
    return text.rsplit(mark, 1)[1].strip() if mark in text else None


def problem_of(row: dict) -> dict | None:
    """A conversation as a held-out problem, {messages, solution: the last turn, answer, …}; None if
    it cannot be checked: if the assistant does not speak last, after something that was asked, with
    a final_answer() of one line, 40 characters."""
    *asked, last = row["messages"]
    answer = final_answer(last["content"]) or ""
    if last["role"] != "assistant" or not any(m["content"].strip() for m in asked):
        return None
    if not re.fullmatch(".{1,40}", answer):
        return None
    problem = dict(messages=asked, solution=last["content"], answer=answer)
    return problem | {key: row[key] for key in ("family", "steps", "guess") if key in row}


def load_data(config: TrainConfig, block_size: int = 512, tokenizer: Any = None) -> Data:
    """Read, split, tokenize and pack the source of a TrainConfig → Data; ValueError if that does
    not give at least one block to train and one to validate on."""
    *both, left_out = read_rows(config)
    if tokenizer is None:
        chats = (segments(row["messages"]) for rows in both for row in rows)
        texts = ("".join(text for text, _ in parts) for parts in chats)
        tokenizer = load_tokenizer(config.tokenizer, texts)
        if tokenizer.eos_token is None:  # without an end of text no answer would ever end
            tokenizer.add_special_tokens(dict(eos_token=END_OF_TEXT))
    end = turn_end(tokenizer)
    tokenizer.chat_template = CHAT.replace("<|im_end|>", end)
    made, facts = [], dict(unusable_rows=left_out)
    for kind, rows in zip(("train", "val"), both):
        parts = (segments(row["messages"], end) for row in rows)
        encoded = list(encode(parts, tokenizer, config.loss_on))
        fits = [len(ids) <= block_size + 1 for ids, _ in encoded]
        problems = [problem_of(row) for row, fit in zip(rows, fits) if fit]  # of those held out
        if config.packing == "pad":  # half of a conversation would lack its question or its answer
            encoded = list(itertools.compress(encoded, fits))
        made.append(blocks(encoded, block_size, config.packing))
        n_tokens = sum(len(ids) for ids, _ in encoded)
        facts |= {f"{kind}_rows": len(encoded), f"{kind}_tokens": n_tokens}
        facts[f"{kind}_rows_too_long"] = len(rows) - len(encoded)
        if not (made[-1][1] != -100).any():
            few = f"{len(encoded)} of {len(rows)} rows for {kind} fit in {block_size} tokens"
            raise ValueError(f"data {config.data}: {few}; give another --block_size, or more text")
    problems = [problem for problem in problems if problem]
    if problems and all("guess" in problem for problem in problems):
        facts["guess"] = statistics.mean(problem["guess"] for problem in problems)
    return Data(*made, tokenizer, problems, facts, len(tokenizer))


# ---------- answers ----------


def likeliest(logits: torch.Tensor) -> torch.Tensor:
    """logits (B, words) → the words to say, (B, 1)"""
    return logits.argmax(-1, keepdim=True)


@in_eval_mode
def generate(
    model: nn.Module, tokens: torch.Tensor, max_new_tokens: int, pick: Callable = likeliest,
    eos: int | None = None, known: torch.Tensor | None = None,
) -> torch.Tensor:  # fmt: skip
    """Continue tokens (B, T) int64 by up to max_new_tokens → (B, at most T + max_new_tokens), each
    of them pick(logits), and none of an id that belongs to no word.

    A row that has said `eos` is filled with it; the call ends when every row has, and where the
    block does. Prompts of different lengths: `known` (B, K) int64 is what follows `tokens` in each
    of them, -1 where the model speaks. ValueError for a prompt that is longer than the block."""
    c, T = model.config, tokens.size(1)
    longest = T if known is None else T + int((known >= 0).sum(1).max())
    if not 0 < longest <= (model.most_tokens or longest):
        raise ValueError(f"a prompt of {longest} tokens does not fit block_size {c.block_size}")
    if model.most_tokens:
        max_new_tokens = min(max_new_tokens, model.most_tokens - T)
    done = torch.zeros(len(tokens), 1, dtype=torch.bool, device=tokens.device)
    cache = [Cache(T + max_new_tokens) for _ in range(c.n_loops * c.n_layers)]
    for i in range(max_new_tokens):
        logits = model(tokens[:, cache[0].length :], cache=cache)
        new = pick(logits[:, -1, : model.n_words].float())  # (B, 1)
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


def prompt_ids(tokenizer: Any, messages: list[dict]) -> list[int]:
    """A conversation as a list of token ids, up to where the assistant begins to speak."""
    parts = segments(messages, turn_end(tokenizer)) + [(Markup("<|im_start|>assistant\n"), False)]
    return next(encode([parts], tokenizer))[0]


def answer_texts(
    model: nn.Module, tokenizer: Any, problems: list[dict], max_new_tokens: int = 256,
    pick: Callable = likeliest, at_once: int = 100,
) -> list[str]:  # fmt: skip
    """What the model says to each of Data.problems, a hundred at once: each keeps its keys and
    values, of the report's size 9 MB in FP16."""
    prompts = [prompt_ids(tokenizer, problem["messages"]) for problem in problems]
    eos = tokenizer.convert_tokens_to_ids(turn_end(tokenizer))
    device, texts = next(model.parameters()).device, [""] * len(prompts)
    # those of about the same length together: all wait until the longest has been read
    in_order = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
    for start in range(0, len(prompts), at_once):
        some = in_order[start : start + at_once]
        shortest, longest = len(prompts[some[0]]), len(prompts[some[-1]])
        padded = [prompts[i] + [-1] * (longest - len(prompts[i])) for i in some]
        tokens, known = torch.tensor(padded, device=device).tensor_split([shortest], 1)
        most = longest - shortest + max_new_tokens
        tokens = generate(model, tokens, most, pick, eos, known)
        for i, ids in zip(some, tokens.tolist()):
            answer = ids[len(prompts[i]) : len(prompts[i]) + max_new_tokens]
            texts[i] = tokenizer.decode(answer[: answer.index(eos)] if eos in answer else answer)
    return texts


def accuracy(model: nn.Module, tokenizer: Any, problems: list[dict]) -> dict:
    """What a log says of problems: {"accuracy": the share whose final_answer() is exactly the right
    one, "answers": 1 or 0 for each}, and where there are several kinds {"accuracy_by_family",
    "accuracy_by_problem"}, a family and its steps."""
    # a right answer is not to be cut off: as much may be said as the longest solution takes
    solutions = encode(([(p.get("solution", ""), True)] for p in problems), tokenizer)
    most = max(256, *(len(ids) + 1 for ids, _ in solutions))
    texts = answer_texts(model, tokenizer, problems, most)
    right = [float(final_answer(text) == p["answer"]) for text, p in zip(texts, problems)]
    measured = dict(accuracy=statistics.mean(right), answers=[int(r) for r in right])
    families = [str(problem.get("family", "other")) for problem in problems]
    kinds = [f"{family} {p.get('steps', 'other')}" for family, p in zip(families, problems)]
    for name, groups in (("accuracy_by_family", families), ("accuracy_by_problem", kinds)):
        by_kind = {kind: [] for kind in sorted(groups)}
        for kind, correct in zip(groups, right):
            by_kind[kind].append(correct)
        if len(by_kind) > 1:
            measured[name] = {kind: statistics.mean(each) for kind, each in by_kind.items()}
    return measured


# ---------- the run's folder: config.json, log.jsonl, model.safetensors, state.pt, tokenizer/ -----


class Folder:
    """Where a run lives: what train() calls, on every process of a job alike, though only the first
    one writes. Without a path nothing is written. Another class may take more care, as long as
    resume() gives what save() was given."""

    def __init__(self, path: str | None = None) -> None:
        self.path = path
        self.writes = path is not None and processes()[0] == 0

    def file(self, name: str) -> str:
        return os.path.join(self.path, name)

    def write(self, name: str, save_to: Callable) -> None:
        """Call save_to(f) on a temporary file and move it: the file is whole or not there."""
        if self.writes:
            with open(self.file(f"{name}.tmp"), "wb") as f:
                save_to(f)
            os.replace(self.file(f"{name}.tmp"), self.file(name))

    def begin(self, identity: dict, tokenizer: Any) -> None:
        """Before the first step; `identity` is {"settings", "fingerprint"}. ValueError where there
        is a run already."""
        if not self.writes:
            return
        if os.path.exists(self.file("config.json")):
            raise ValueError(f"{self.path} exists; give another --name, or --resume {self.path}")
        os.makedirs(self.path, exist_ok=True)
        if tokenizer:
            tokenizer.save_pretrained(self.file("tokenizer"))
        about = identity["settings"] | dict(fingerprint=identity["fingerprint"])
        self.write("config.json", lambda f: f.write(json.dumps(about, indent=1).encode()))

    def log(self, log: list[dict]) -> None:
        """The log so far, a record a line, JSON that every reader takes."""
        dump = functools.partial(json.dumps, allow_nan=False, separators=(",", ":"))
        lines = [f"{dump(without_nan(record))}\n".encode() for record in log]
        self.write("log.jsonl", lambda f: f.writelines(lines))

    def save(self, state: dict, identity: dict) -> None:
        """A checkpoint. The weights go first and the state, which is all that a resume reads, last:
        so it cannot be torn in two."""
        from safetensors.torch import save

        weights = {name: w.detach().cpu().contiguous() for name, w in state["model"].items()}
        self.write("model.safetensors", lambda f: f.write(save(weights)))
        self.write("state.pt", lambda f: torch.save(state | identity, f))

    def resume(self, identity: dict) -> dict | None:
        """The last checkpoint, None before the first one; ValueError if it is of another run."""
        if self.path is None or not os.path.exists(self.file("state.pt")):
            return None
        state = torch.load(self.file("state.pt"), map_location="cpu", weights_only=True)
        for name, value in identity.items():
            if state[name] != value:
                raise ValueError(f"{name} of {self.path} is not what it was trained with")
        return state


def without_nan(value: Any) -> Any:
    """The value with None for each number in it that is infinite or NaN."""
    if isinstance(value, dict):
        return {key: without_nan(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_nan(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def read_configs(path: str) -> tuple[ModelConfig, TrainConfig]:
    """The settings of a run's folder; ValueError for one that this file does not know."""
    with open(os.path.join(path, "config.json"), encoding="utf-8") as f:
        about = json.load(f)
    values = (about["model"] | about["train"]).items()
    return make_configs({k: tuple(v) if isinstance(v, list) else v for k, v in values})


def load(path: str) -> tuple[GPT, Any]:
    """(model, tokenizer) of a run's folder, on the CPU, in eval mode; None without a tokenizer."""
    from safetensors.torch import load_file

    model = GPT(read_configs(path)[0]).eval()
    model.load_state_dict(load_file(os.path.join(path, "model.safetensors")))
    words = os.path.join(path, "tokenizer")
    tokenizer = load_tokenizer(words) if os.path.isdir(words) else None
    model.n_words = len(tokenizer) if tokenizer else model.n_words
    return model, tokenizer


# ---------- training ----------


def lr_at(step: int, config: TrainConfig) -> float:
    """Learning rate of the 0-based step: a line from 0 to the peak, half a cosine to the floor.
    A pure function, so skipped steps and resumed runs change nothing."""
    warmup, steps = config.warmup_steps, config.lr_steps or config.steps
    if warmup < 1:  # a share of all steps
        warmup = min(round(warmup * steps), steps - 1)
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


def over_all(number: float, device: torch.device) -> float:
    """The sum of a number over all processes of a job."""
    if processes()[1] == 1:
        return number
    total = torch.tensor(float(number), device=device)
    torch.distributed.all_reduce(total)
    return total.item()


def pick_device(name: str) -> torch.device:
    """`device` of a TrainConfig → torch.device, under torchrun one of its own for each process."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(name, int(os.environ.get("LOCAL_RANK", 0)) if name == "cuda" else None)


def pick_precision(name: str, device: torch.device) -> torch.dtype | None:
    """`precision` of a TrainConfig → autocast dtype, None for fp32."""
    if name == "auto":
        name = "fp16" if device.type == "cuda" else "fp32"
    # is_bf16_supported() says yes on a T4, which only emulates it
    if name == "bf16" and device.type == "cuda" and torch.cuda.get_device_capability() < (8, 0):
        raise ValueError("precision bf16 needs an Ampere GPU or newer; use --precision fp16")
    return dict(fp32=None, fp16=torch.float16, bf16=torch.bfloat16)[name]


def make_optimizer(model: nn.Module, config: TrainConfig) -> torch.optim.Optimizer:
    """AdamW in its fused form; weight decay on matrices and embeddings, and on norms and biases if
    `decay_all` says so."""
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() == 1]
    of_vectors = config.weight_decay if config.decay_all else 0.0
    groups = [dict(params=matrices), dict(params=vectors, weight_decay=of_vectors)]
    betas, decay = (config.beta1, config.beta2), config.weight_decay
    return torch.optim.AdamW(groups, config.lr, betas, weight_decay=decay, fused=True)


def connect(device: torch.device) -> None:
    """Let the processes of torchrun, each with its device, find one another."""
    if device.type == "cuda":
        torch.cuda.set_device(device)
    if not torch.distributed.is_initialized():
        torch.distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")


def parallel(model: nn.Module, device: torch.device) -> nn.Module:
    """The model itself, or wrapped for several GPUs or for the processes of torchrun."""
    (rank, world), gpus = processes(), torch.cuda.device_count()
    if world > 1:
        connect(device)
    if world > 1 and not getattr(model, "is_sharded", False):
        if rank == 0:
            print(f"Wrapping model with DistributedDataParallel over {world} processes")
        return nn.parallel.DistributedDataParallel(model)
    if world == 1 and device.type == "cuda" and gpus > 1:
        print(f"Wrapping model with DataParallel over {gpus} GPUs")
        return nn.DataParallel(model)
    return model


class Training:
    """A model, what updates it, and the step: train(), the bench and the pages use this one."""

    def __init__(self, m: ModelConfig, t: TrainConfig, make_model: Callable = GPT) -> None:
        self.config, self.device = t, pick_device(t.device)
        torch.manual_seed(t.seed)  # of the first weights: drawn on the CPU, alike for any device
        self.model = make_model(m)
        self.model.autocast_dtype = pick_precision(t.precision, self.device)
        self.wrapped = parallel(self.model.to(self.device).train(), self.device)
        self.optimizer = make_optimizer(self.model, t)
        # multiplies the loss, so that gradients below fp16's smallest number are not lost
        half = self.model.autocast_dtype == torch.float16
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=half)

    def step(self, tokens: torch.Tensor, targets: torch.Tensor) -> tuple[float, float]:
        """One optimizer step on the batch (B, T) of all processes → (its loss per target, the norm
        of its gradient). If that is not finite, nothing has changed but the loss scale. The
        gradient is that of the mean over all targets of the batch: the same for any accumulation,
        for DataParallel's uneven shards and for several processes."""
        rank, world = processes()
        n_targets = int((targets != -100).sum())
        if not n_targets:
            raise ValueError("a batch has no target; nothing is learned")
        # forward and backward, a part after the other
        loss, parts = 0.0, list(by_length(tokens, targets, self.config.batch_size))
        for i, (x, y) in enumerate(parts):
            # every process draws the whole batch and takes its share of each part
            x, y = x[rank::world].to(self.device), y[rank::world].to(self.device)
            # DistributedDataParallel asks for this: gradients are added up once, at the end
            self.wrapped.require_backward_grad_sync = i + 1 == len(parts)
            loss_sum, _ = self.wrapped(x, y)  # (B,), gathered from all GPUs
            share = loss_sum.sum() / n_targets
            # DistributedDataParallel averages over the processes: hence `world`
            self.scaler.scale(share * world).backward()
            loss += share.item()
        # unscale before clipping, which is about the true gradient
        self.scaler.unscale_(self.optimizer)
        norm = nn.utils.clip_grad_norm_(self.wrapped.parameters(), self.config.grad_clip).item()
        if math.isfinite(norm):  # else AdamW would move by NaN
            self.scaler.step(self.optimizer)
        self.scaler.update()  # in FP16 it halves the loss scale after an infinite gradient
        self.optimizer.zero_grad(set_to_none=True)
        return over_all(loss, self.device), norm


def seed_step(seed: int, step: int, rank: int = 0) -> None:
    """Let all that a step draws be a function of (seed, step, rank), and of the GPU where
    DataParallel uses several: so nothing random has to be stored for a resumed run."""
    torch.manual_seed(generator(seed, step, rank).initial_seed())
    for gpu in range(1, torch.cuda.device_count() if processes()[1] == 1 else 1):
        with torch.cuda.device(gpu):  # else all shards would drop the same elements
            torch.cuda.manual_seed(generator(seed, step, rank, gpu).initial_seed())


def by_length(tokens: torch.Tensor, targets: torch.Tensor, n: int) -> Iterator[tuple]:
    """(tokens (B, T), targets (B, …, T)) in parts of n sequences that are about as long, each part
    cut behind its last target: what follows cannot change a causal model's loss."""
    has_target = (targets != -100).reshape(len(tokens), -1, tokens.size(1)).any(1)
    unused = has_target.flip(1).int().argmax(1)  # (B,), places after the last target, or 0
    for rows in unused.argsort(descending=True, stable=True).split(n):
        length = tokens.size(1) - int(unused[rows].min())
        yield tokens[rows, :length], targets[rows, ..., :length]


@in_eval_mode
def mean_loss(model: nn.Module, part: Sequence, n_blocks: int, batch_size: int) -> float:
    """Mean loss per token, without dropout, of the first n_blocks of (tokens, targets)."""
    device = next(model.parameters()).device
    some = (torch.as_tensor(each[:n_blocks]).long() for each in part)
    losses = [model(x.to(device), y.to(device)) for x, y in by_length(*some, batch_size)]
    sums, counts = (torch.cat(each).cpu().double() for each in zip(*losses))
    if not counts.sum():
        raise ValueError("the blocks to be measured have no target: there is no loss of them")
    return (sums.sum() / counts.sum()).item()


def train_loss(model: nn.Module, data: Data, n_blocks: int, batch_size: int) -> float:
    """mean_loss() of always the same blocks of what is trained on: a batch's loss is noisy and has
    dropout on, this has neither."""
    some = torch.randperm(len(data.train[0]), generator=generator("train_loss_eval"))[:n_blocks]
    return mean_loss(model, [each[some.numpy()] for each in data.train], n_blocks, batch_size)


def evaluate(model: nn.Module, data: Data, config: TrainConfig, last: bool) -> dict:
    """What else an evaluation measures. Few problems are answered each time, to watch, and all of
    them in the end."""
    record, n = data.evaluate(model), config.eval_blocks
    if problems := data.problems[: config.eval_problems if last else config.watch_problems]:
        record |= accuracy(model, data.tokenizer, problems)
    if last:
        record["train_loss_eval"] = train_loss(model, data, n, config.batch_size)
        # what the accuracy is to be compared with
        record |= {key: data.facts[key] for key in ("guess", "shortcut") if key in data.facts}
    return record


def log_line(record: dict, steps: int) -> str:
    """A record of the log as it is printed, in the report's own format."""
    where = f"epoch {record['epoch']} step {record['step']}/{steps} lr {record['lr']:.2e}"
    losses = f"train {record['train_loss']:.4f} val {record['val_loss']:.4f}"
    line = f"{where} {losses} ({record['seconds']:.0f}s)"
    return line + (f" right {record['accuracy']:.2f}" if "accuracy" in record else "")


class Diverged(RuntimeError):
    """Gradients or weights became infinite or NaN; the message says what to change."""


GENTLER = "lower --lr, raise --warmup_steps, or use --precision fp32"
MOST_SKIPPED = 25  # in a row: GradScaler starts at 2^16, so after 16 halvings it is not the cause


def settings(m: ModelConfig, t: TrainConfig) -> dict[str, dict]:
    """All settings as config.json keeps them: {"model": {name: value}, "train": {name: value}}."""
    return json.loads(json.dumps(dict(model=dataclasses.asdict(m), train=dataclasses.asdict(t))))


def train(
    model_config: ModelConfig, train_config: TrainConfig, data: Data, folder: Folder | None = None,
    resume: bool = False, make_model: Callable[[ModelConfig], nn.Module] = GPT,
    on_log: Callable[[dict], object] | None = None, stop: Callable[[], bool] = lambda: False,
) -> tuple[nn.Module, list[dict]]:  # fmt: skip
    """Train one model → (it, in eval mode, and the log: a record for each evaluation).

    Without a folder nothing is written. `resume` goes on from the folder's last checkpoint, if it
    has one, on the CPU to the same losses, bit for bit, as if the run had never stopped.
    make_model(config) gives a module that is called as GPT is. on_log(record) is called with each
    record; by default it prints the report's line. stop() is asked after each step: if true the run
    is saved and returned. Under torchrun every process calls this alike.
    ValueError for settings, data or a folder that cannot work; Diverged if gradients stay infinite
    or NaN, or weights are so when they are to be saved, or the loss in the end.
    """
    m, t, (rank, world) = model_config.validate(), train_config.validate(), processes()
    m = dataclasses.replace(m, vocab_size=m.vocab_size or data.n_words)
    if data.n_words > m.vocab_size:
        few = f"vocab_size {m.vocab_size} is less than the data's {data.n_words} words"
        raise ValueError(f"{few}; give at least that, or 0")
    if t.batch_size % world:
        raise ValueError(f"batch_size {t.batch_size} does not divide among {world} processes")
    folder, data = folder or Folder(), dataclasses.replace(data, seed=t.seed, state={**data.state})
    identity = dict(settings=settings(m, t), fingerprint=data.fingerprint())
    training = Training(m, t, make_model)
    model, optimizer, device = training.model, training.optimizer, training.device
    model.n_words = data.n_words or m.vocab_size
    done, log = 0, []  # steps that are done, and the records of log.jsonl
    skipped, in_a_row = 0, 0  # steps without an update, in all and up to now
    busy, busy_tokens = 0.0, 0  # seconds of training and tokens since the last record
    began = time.perf_counter()

    if not resume:
        folder.begin(identity, data.tokenizer)
    elif state := folder.resume(identity):
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        if state["scaler"]:  # empty after fp32, which may go on in fp16
            training.scaler.load_state_dict(state["scaler"])
        data.state, began = state["data"], began - state["seconds"]
        done, log, skipped, in_a_row = (state[k] for k in ("step", "log", "skipped", "in_a_row"))
    if over_all(done, device) != done * world:  # each process has read the folder for itself
        raise ValueError(f"{folder.path} is at another step for another process; let them share it")
    if done >= t.steps:
        folder.log(log)  # it lacks a line if the run died after its last checkpoint
        raise ValueError(f"{folder.path} is finished: {done} of {t.steps} steps are done")

    def save() -> None:
        if not all(bool(w.isfinite().all()) for w in model.state_dict().values()):
            raise Diverged(f"weights are infinite or NaN after step {done}; {GENTLER}")
        folder.save(dict(
            step=done, log=log, skipped=skipped, in_a_row=in_a_row, data=data.state,
            seconds=time.perf_counter() - began, model=model.state_dict(),
            optimizer=optimizer.state_dict(), scaler=training.scaler.state_dict(),
        ), identity)  # fmt: skip

    for step in range(done, t.steps):  # counted from 0; the log counts from 1
        # 1. the rate, and all that is random, are functions of the step: nothing to store
        seed_step(t.seed, step, rank)
        lr = lr_at(step, t)
        for group in optimizer.param_groups:
            group["lr"] = lr

        # 2. the batch, of all processes together
        tokens, targets = data.draw(step, t.batch_size * t.grad_accum)  # (batch, T)

        # 3. forward and backward of each part, unscale, clip, update
        started = time.perf_counter()
        loss, grad_norm = training.step(tokens, targets)
        busy, busy_tokens = busy + time.perf_counter() - started, busy_tokens + tokens.numel()

        # 4. after an infinite gradient nothing has changed; such steps are counted
        overflow = not math.isfinite(grad_norm)
        done, skipped = step + 1, skipped + overflow
        in_a_row = in_a_row + 1 if overflow else 0
        if not overflow:  # a curriculum goes on by what was learned
            data.after_step(loss)

        # 5. give up a run that is lost, and keep it as it was before it was
        if in_a_row == MOST_SKIPPED:
            done, skipped, in_a_row = done - in_a_row, skipped - in_a_row, 0
            log = [record for record in log if record["step"] <= done]
            with contextlib.suppress(Diverged):
                save()
            trouble = f"the gradient was infinite or NaN for {MOST_SKIPPED} steps"
            raise Diverged(f"{trouble}; {GENTLER}; the last good step was {done}")

        # 6. evaluate
        last = done == t.steps
        evaluating = last or step == 0 or done % t.eval_every == 0
        if evaluating:
            epoch = 1 if data.infinite else step * len(tokens) // len(data.train[0]) + 1
            record = dict(step=done, epoch=epoch, lr=lr, train_loss=loss, grad_norm=grad_norm)
            record["val_loss"] = mean_loss(model, data.val, t.eval_blocks, t.batch_size)
            if last and not math.isfinite(record["val_loss"]):  # what was saved before stays
                raise Diverged(f"the loss is infinite or NaN at the last step, {done}; {GENTLER}")
            record |= evaluate(model, data, t, last)
            record |= dict(seconds=round(time.perf_counter() - began, 2), skipped_steps=skipped)
            record["tokens_per_second"] = round(busy_tokens / busy)
            busy, busy_tokens = 0.0, 0

            # 7. log
            log.append(record)
            if on_log:
                on_log(record)
            elif rank == 0:
                print(log_line(record, t.steps), flush=True)

        # 8. asked to stop? If one process is, all are
        stopping = over_all(bool(stop()), device) > 0

        # 9. save; the log after the weights, so that a finished one has them
        if last or stopping or done % t.save_every == 0:
            save()
        if evaluating:
            folder.log(log)

        # 10. stop
        if stopping:
            break
    return model.eval(), log
