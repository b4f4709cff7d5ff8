"""minidepth: does depth help a Transformer reason, and how would you know?

One file: the model, its data and tasks, the training loop, the analysis. Read it top to bottom;
each section uses only what stands above it.

    python train.py --n_layers 12                            laptop or GPU, chosen by itself
    python train.py --n_layers 1 12 --seed 0 1 2             a grid: six runs, a table, a figure
    python train.py --data icqa --n_layers 1 2               a task that needs two layers
    python train.py --preset report --n_layers 12            the published run, made for 2 x T4
    python train.py --preset report --n_layers 12 --dry_run  its facts; needs no GPU, no network
    torchrun --nproc_per_node 2 train.py --n_layers 12       under DistributedDataParallel

Sections: 1 this page, 2 configuration, 3 model, 4 depth tasks, 5 data, 6 sampling and accuracy,
7 training, 8 analysis, 9 export

Dimensions, in comments as (B, T, C)                     example: the report's 12 layers
    B  sequences in a batch                              16
    T  tokens in a sequence, S keys it can look at       512
    C  d_model, the width of the residual stream         384
    H  attention heads in a layer, D = C / H their size  8, 48
    V  words in the vocabulary, rows of the embedding    151,665
    L  layers                                            12
    N  tokens that carry a loss, all sequences together  up to B * T = 8,192
"""

import bisect
import contextlib
import csv
import dataclasses
import functools
import importlib.metadata
import inspect
import itertools
import json
import math
import os
import platform
import random
import re
import socket
import statistics
import subprocess
import time
import zlib
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import torch
import torch.nn.functional as F
from torch import nn

# ---------- 2. configuration ----------


def option(default, help, low=None, high=math.inf, choices=()):
    """A field with its help text and limits: flags, checks and the docs derive from it."""
    return field(default=default, metadata=dict(help=help, low=low, high=high, choices=choices))


def check_fields(config):
    """Raise ValueError for a field outside its limits, naming the value and the limit."""
    for f in dataclasses.fields(config):
        value, (_, low, high, choices) = getattr(config, f.name), f.metadata.values()
        for v in value if isinstance(value, tuple) and choices else [value] * bool(choices):
            if v not in choices:
                raise ValueError(f"{f.name} {v!r} is unknown; choose from {', '.join(choices)}")
        if low is None or (value is None and f.default is None):
            continue
        whole = f.type is not float
        for v in value if isinstance(value, (tuple, list)) else (value,):
            if not isinstance(v, int if whole else (int, float)) or not low <= v <= high:
                limit = f"at least {low:g}" if high == math.inf else f"from {low:g} to {high:g}"
                kind = "a whole number" if whole else "a number"
                raise ValueError(f"{f.name} {v} does not work; give {kind} {limit}")


@dataclass
class ModelConfig:
    """The architecture. The defaults are the published report's."""

    vocab_size: int = option(0, "rows of the embedding; 0: as many as the tokenizer has words", 0)
    block_size: int = option(512, "tokens in a training sequence", 1)
    n_layers: int = option(12, "layers of weights", 1)
    n_heads: int | tuple = option(8, "attention heads, one number or one a layer: 8,4,2", 1)
    d_model: int = option(384, "width of the residual stream", 1)
    d_ff: int = option(1536, "width inside the feed-forward part; 0: attention only", 0)
    dropout: float = option(0.1, "on embeddings, attention weights and attention output", 0, 0.99)
    ffn_dropout: float = option(None, "on the feed-forward output; unset: as --dropout", 0, 0.99)
    tie_weights: bool = option(True, "the output head shares the token embedding")
    position: str = option("learned", "how order is known", choices=("learned", "rotary", "none"))
    n_loops: int = option(1, "times the stack of layers is applied, with the same weights", 1)
    attn_scale: float = option(None, "factor on attention logits; unset: 1/sqrt(head size)", 0)
    init_std: float = option(0.02, "standard deviation of the initial weights", 1e-9)

    @property
    def heads(self):
        """Heads of each layer, a tuple of n_layers numbers."""
        n = self.n_heads
        return (n,) * self.n_layers if isinstance(n, int) else tuple(n)

    def validate(self):
        """Return self; raise ValueError for what cannot be built."""
        check_fields(self)
        C, heads = self.d_model, self.heads
        if len(heads) != self.n_layers:
            n = f"n_heads has {len(heads)} numbers but n_layers is {self.n_layers}"
            raise ValueError(f"{n}; give one number, or one a layer")
        for n in heads:
            if C % n:
                near = sorted((d for d in range(1, C + 1) if C % d == 0), key=lambda d: abs(d - n))
                near = ", ".join(map(str, sorted(near[:4])))
                raise ValueError(f"n_heads {n} does not divide d_model {C}; near it {near} do")
            if self.position == "rotary" and C // n % 2:
                raise ValueError(
                    f"rotary turns pairs, but head size {C // n} is odd; change n_heads"
                )
        return self


REPORT_DATA = "wop/XXXXXL-chain-of-thought"
PRECISIONS = ("auto", "fp32", "fp16", "bf16")
FAMILIES = ("chain", "lookup", "order")  # of embedded problems
VAL_PACKINGS = ("same", "pack", "pad")


@dataclass
class TrainConfig:
    """The data and the training. The defaults are the published report's."""

    data: tuple = option((REPORT_DATA,), "'embedded', a task, .jsonl .json .parquet .txt, hub ids")
    tokenizer: str = option("Qwen/Qwen2.5-0.5B", "hub id, folder, or 'embedded': made from data")
    tokenizer_size: int = option(2048, "most words of an embedded tokenizer", 300)
    sizes: tuple = option((), "of a task, as its generator names them: pairs=8,symbols=16")
    hints: float = option(0.0, "share of the steps in which icl_template gives hints", 0, 1)
    hops: tuple = option((1,), "hops in the task khop; of several one is drawn a sequence", 1)
    problem_steps: tuple = option((1, 2, 3), "steps of the embedded problems: 2,3,4", 1, 9)
    problem_families: tuple = option(FAMILIES, "the embedded problems' kinds", choices=FAMILIES)
    problem_modulus: int = option(10, "of the sums in chains", 2, 10)
    curriculum: float = option(0.0, "train loss at which the next length joins; 0: all at once", 0)
    answer: str = option("thinking", "of embedded problems", choices=("thinking", "direct"))
    max_rows: int = option(20_000, "most rows taken from each source; 0: all", 0)
    val_fraction: float = option(0.05, "share of a source's rows held out", 0.001, 0.9)
    packing: str = option("pack", "rows end to end, or each padded", choices=("pack", "pad"))
    stride: int = option(0, "tokens from chunk to chunk of a long padded row; 0: the block", 0)
    val_packing: str = option("same", "packing of validation blocks", choices=VAL_PACKINGS)
    loss_on: str = option("all", "tokens that carry a loss", choices=("all", "assistant"))
    steps: int = option(500, "optimizer steps", 1)
    epochs: int = option(0, "passes over the data instead of --steps; 0: as --steps says", 0)
    batch_size: int = option(16, "sequences in one forward pass, all GPUs together", 1)
    grad_accum: int = option(1, "forward passes in one optimizer step", 1)
    lr: float = option(3e-4, "peak learning rate", 0)
    lr_floor: float = option(0.1, "share of the peak at which the cosine ends", 0, 1)
    warmup_steps: float = option(50, "of rising learning rate; below 1: a share of all steps", 0)
    weight_decay: float = option(0.1, "AdamW's, on matrices and embeddings, not on norms", 0)
    beta1: float = option(0.9, "AdamW's memory of the gradient", 0, 0.999999)
    beta2: float = option(0.95, "AdamW's memory of its square", 0, 0.999999)
    grad_clip: float = option(1.0, "longest gradient, as a norm over all weights", 1e-9)
    device: str = option("auto", "where to train", choices=("auto", "cuda", "mps", "cpu"))
    precision: str = option("auto", "fp16 on CUDA, else fp32", choices=PRECISIONS)
    seed: int = option(0, "of the weights, the dropout and the order of the batches", 0, 2**31)
    eval_every: int = option(25, "steps from one evaluation to the next", 1)
    eval_blocks: int = option(64, "validation blocks measured, always the same ones", 1)
    eval_problems: int = option(200, "held-out problems answered at the end", 0)
    save_every: int = option(100, "steps from one checkpoint to the next", 1)
    out_dir: str = option("runs", "folder of all runs")
    name: str = option("", "this run's folder in it; empty: made from the settings")

    def validate(self):
        """Return self; raise ValueError for what cannot be run."""
        check_fields(self)
        if self.warmup_steps >= self.steps > 1 and not self.epochs:
            n, most = self.warmup_steps, self.steps - 1
            raise ValueError(
                f"warmup_steps {n} leaves none of {self.steps} steps; give at most {most}"
            )
        return self


# a preset is what differs from the defaults above
PRESETS = {
    "report": dict(vocab_size=151_665),
    "laptop": dict(
        block_size=58, n_heads=2, d_model=64, d_ff=256, dropout=0.0, init_std=0.2,
        data=("embedded",), tokenizer="embedded", packing="pad", loss_on="assistant",
        steps=800, batch_size=64, lr=3e-3, eval_every=50,
    ),
    "tasks": dict(
        block_size=128, n_heads=4, d_model=64, d_ff=0, dropout=0.0, init_std=0.1,
        tie_weights=False, data=("icqa",), steps=500, batch_size=64, lr=2e-3, weight_decay=0.0,
        eval_every=50, eval_blocks=1000,
    ),
    # look-ups, for written steps against layers: attention alone, lengths one after another
    "thinking": dict(
        block_size=56, n_heads=2, d_model=64, d_ff=0, dropout=0.0, init_std=0.1,
        tie_weights=False, data=("embedded",), problem_families=("lookup",), curriculum=0.1,
        max_rows=100_000, tokenizer="embedded", packing="pad", loss_on="assistant",
        steps=6000, batch_size=64, lr=2e-3, lr_floor=0.3, weight_decay=0.0, eval_every=500,
    ),
    # heads by layer (published losses in docs/results/published); learning rate and batch are ours
    "heads": dict(
        vocab_size=50_257, block_size=2048, n_layers=4, n_heads=48, d_model=768, d_ff=3072,
        dropout=0.0, data=("roneneldan/TinyStories",), tokenizer="EleutherAI/gpt-neo-125m",
        max_rows=250_000, epochs=1, batch_size=8, lr=5e-4, warmup_steps=0.1, eval_every=250,
    ),
}  # fmt: skip
# LLmini's data as far as our rows go: eight of its eleven sources
LLMINI = dict(
    vocab_size=50_257, block_size=256, dropout=0.1, ffn_dropout=0.3, tie_weights=False,
    data=(
        "roneneldan/TinyStories", "Salesforce/wikitext:wikitext-2-raw-v1", "google/boolq",
        "fancyzhx/ag_news", "Rowan/hellaswag", "openai/gsm8k:main", "tau/commonsense_qa",
        "allenai/ai2_arc:ARC-Challenge",
    ),
    tokenizer="openai-community/gpt2", packing="pad", stride=128, epochs=3, batch_size=32,
    grad_accum=2, lr_floor=0.0, warmup_steps=0.1, weight_decay=0.05, beta2=0.999, seed=42,
    eval_every=250, eval_blocks=256,
)  # fmt: skip
PRESETS |= {
    f"llmini-{name}": LLMINI | dict(n_layers=L, n_heads=H, d_model=C, d_ff=4 * C)
    for name, L, H, C in (("a", 10, 6, 384), ("b", 9, 5, 320), ("c", 8, 4, 256))
}
# what the preset `tasks` changes further for a task
TASK_SETTINGS = {
    "memorize": dict(n_heads=8, steps=1000),
    "icqa": dict(n_heads=2),
    "template": dict(steps=3000, batch_size=128, eval_every=200),
    "icl_template": dict(steps=6000, eval_every=200, hints=0.75),
    "khop": dict(steps=2000, batch_size=32, sizes=("length=48",), eval_every=100),
}


def configs(preset="laptop", **changes):
    """(ModelConfig, TrainConfig) of a preset, changed; ValueError for what is unknown."""
    if preset not in PRESETS:
        raise ValueError(f"preset {preset!r} is unknown; choose from {', '.join(PRESETS)}")
    values, made = PRESETS[preset] | changes, []
    if preset == "tasks":
        values = PRESETS[preset] | TASK_SETTINGS.get(values["data"][0], {}) | changes
    for kind in (ModelConfig, TrainConfig):
        names = {f.name for f in dataclasses.fields(kind)} & values.keys()
        made.append(kind(**{name: values.pop(name) for name in names}).validate())
    if values:
        raise ValueError(f"setting {', '.join(values)} is unknown; see python train.py --help")
    return tuple(made)


# ---------- 3. model: a pre-norm GPT without biases, twin of the GPT-2 in `transformers` ----------


def dropout(x, p, training=True):
    """Zero each element with probability p and scale the others by 1/(1 - p); any shape."""
    if not training or p == 0:
        return x
    if x.device.type != "cpu":
        return F.dropout(x, p)
    # PyTorch draws CPU masks one number at a time, which was a third of a training step. One
    # 64-bit draw holds four 16-bit numbers; a threshold on them keeps p exact to 1.5e-5
    words = torch.empty((x.numel() + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
    keep = words.view(torch.int16)[: x.numel()].view(x.shape) >= round(p * 65536) - 32768
    return (x * keep).mul_(1 / (1 - p))


def readable_attention(q, k, v, scale, p=0.0):
    """Causal attention as its formula says: softmax(scale * q k^T) v, no later keys.

    q (B, H, T, D), the last T of S positions, k and v (B, H, S, D) → output (B, H, T, D) and
    weights (B, H, T, S), these before their dropout p.
    """
    T, S = q.size(2), k.size(2)
    later = torch.full((T, S), -math.inf, dtype=q.dtype, device=q.device).triu(S - T + 1)
    scores = (q * scale) @ k.transpose(2, 3)  # (B, H, T, S)
    scores += later
    weights = scores.softmax(-1)
    return dropout(weights, p) @ v, weights


def rotate(x, start=0):
    """Rotary positions (Su et al. 2021, eq. 34): turn pairs of x (B, H, T, D) by position."""
    half = x.size(-1) // 2
    position = torch.arange(start, start + x.size(2), device=x.device, dtype=torch.float32)
    angle = torch.arange(half, device=x.device, dtype=torch.float32) / half
    angle = position[:, None] * 10_000**-angle  # (T, D/2)
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    a, b = x[..., :half], x[..., half:]
    return torch.cat((a * cos - b * sin, a * sin + b * cos), -1)


class Attention(nn.Module):
    def __init__(self, config, n_heads):
        super().__init__()
        C = config.d_model
        self.n_heads, self.p, self.rotary = n_heads, config.dropout, config.position == "rotary"
        self.scale = (C // n_heads) ** -0.5 if config.attn_scale is None else config.attn_scale
        self.qkv = nn.Linear(C, 3 * C, bias=False)  # one matrix product for all three
        self.out = nn.Linear(C, C, bias=False)

    def project(self, x, start=0):
        """x (B, T, C), whose first token has position `start` → q, k, v, each (B, H, T, D)."""
        B, T, _ = x.shape
        q, k, v = self.qkv(x).view(B, T, 3, self.n_heads, -1).permute(2, 0, 3, 1, 4)
        return (rotate(q, start), rotate(k, start), v) if self.rotary else (q, k, v)

    def forward(self, x, cache=None):
        p = self.p if self.training else 0.0
        q, k, v = self.project(x, cache[0].size(2) if cache else 0)
        if cache:  # the keys and values of the tokens before x
            k, v = torch.cat((cache[0], k), 2), torch.cat((cache[1], v), 2)
        if cache is not None:
            cache[:] = [k, v]
        if p and x.device.type == "cpu":  # with dropout the fused kernel is the slower one here
            y, _ = readable_attention(q, k, v, self.scale, p)
        else:  # the same without storing the (T, S) weights; one token, the last, sees every key
            options = dict(dropout_p=p, is_causal=x.size(1) > 1, scale=self.scale)
            y = F.scaled_dot_product_attention(q, k, v, **options)
        y = y.transpose(1, 2).reshape(x.shape)  # (B, H, T, D) → heads side by side
        return dropout(self.out(y), self.p, self.training)


class MLP(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.p = config.dropout if config.ffn_dropout is None else config.ffn_dropout
        self.up = nn.Linear(config.d_model, config.d_ff, bias=False)
        self.out = nn.Linear(config.d_ff, config.d_model, bias=False)

    def forward(self, x):
        return dropout(self.out(F.gelu(self.up(x))), self.p, self.training)


class Block(nn.Module):
    def __init__(self, config, n_heads):
        super().__init__()
        self.norm1, self.attn = nn.LayerNorm(config.d_model), Attention(config, n_heads)
        self.has_mlp = config.d_ff > 0
        if self.has_mlp:
            self.norm2, self.mlp = nn.LayerNorm(config.d_model), MLP(config)

    def forward(self, x, cache=None):
        x = x + self.attn(self.norm1(x), cache)
        return x + self.mlp(self.norm2(x)) if self.has_mlp else x


LOGITS_AT_ONCE = 2**26  # in float32 256 MB


def chunked_loss(h, weight, targets, token_weights=None, grads=True):
    """Cross-entropy of h @ weight^T with its gradients, a few rows at a time.

    h (N, C), weight (V, C), targets (N,) → nll (N,), dh (N, C), dweight (V, C): the gradients of
    sum(token_weights * nll), or of sum(nll). All (N, V) logits would be 5 GB at the report's size;
    here `rows` of them live at a time, and give their gradient before they go.
    """
    N, V = len(h), len(weight)
    exact = torch.promote_types(h.dtype, torch.float32)  # a softmax in half precision would round
    rows = max(64, min(N, LOGITS_AT_ONCE // V))
    nll, dh, dweight = torch.empty(N, dtype=exact, device=h.device), None, None
    if grads:
        dh, dweight = torch.empty_like(h), torch.zeros_like(weight, dtype=exact)
    for i in range(0, N, rows):
        x, target = h[i : i + rows], targets[i : i + rows, None]
        logits = (x @ weight.T).to(exact)  # (rows, V)
        lse = logits.logsumexp(1, keepdim=True)
        nll[i : i + rows] = (lse - logits.gather(1, target)).squeeze(1)
        if not grads:
            continue
        d = logits.sub_(lse).exp_()  # the softmax, in place, and then its gradient p - one-hot
        d.scatter_add_(1, target, d.new_full(target.shape, -1.0))
        if token_weights is not None:
            d *= token_weights[i : i + rows, None]
        d = d.to(h.dtype)  # entries of at most 1: no overflow before the loss scale comes in
        torch.mm(d, weight, out=dh[i : i + rows])
        if d.dtype == exact:
            dweight.addmm_(d.T, x)
        else:
            dweight += d.T @ x  # products in half precision, their sum in single
    return nll, dh, dweight


class HeadLoss(torch.autograd.Function):
    """chunked_loss in `dtype`, differentiable: (h, weight, targets, dtype, grads) → nll (N,)."""

    @staticmethod
    def forward(ctx, h, weight, targets, dtype, grads):
        nll, *ctx.ready = chunked_loss(h.to(dtype), weight.to(dtype), targets, grads=grads)
        ctx.save_for_backward(h, weight, targets)
        ctx.dtype = dtype
        return nll

    @staticmethod
    def backward(ctx, g):
        h, weight, targets = ctx.saved_tensors
        # what is ready holds for equal token weights, all that training asks for: g is then the
        # loss scale over the token count, multiplied in at full precision
        if not ctx.ready or not len(g) or not (g == g[0]).all():
            half_h, half_weight = h.to(ctx.dtype), weight.to(ctx.dtype)
            _, *ctx.ready = chunked_loss(half_h, half_weight, targets, g)
            g = g.new_ones(1)
        dh, dweight = ctx.ready
        ctx.ready = None  # scaled in place below, so good for one time
        return dh.to(h.dtype).mul_(g[0]), dweight.to(weight.dtype).mul_(g[0]), None, None, None


class GPT(nn.Module):
    """tokens (B, T) int64 → logits (B, T, V); with targets (B, T) → loss_sum, n_tokens (B,)."""

    def __init__(self, config):
        super().__init__()
        c = self.config = config.validate()
        if not c.vocab_size:
            raise ValueError("vocab_size 0 is filled in by train(); give the number of words")
        self.token_embedding = nn.Embedding(c.vocab_size, c.d_model)
        if c.position == "learned":
            self.position_embedding = nn.Embedding(c.block_size, c.d_model)
        self.blocks = nn.ModuleList(Block(c, n) for n in c.heads)
        self.norm = nn.LayerNorm(c.d_model)
        if not c.tie_weights:
            self.head = nn.Linear(c.d_model, c.vocab_size, bias=False)
        self.half = None  # autocast dtype, set by train()
        self.n_words = c.vocab_size  # ids from here on belong to no word and are never sampled
        self.init_weights()

    @torch.no_grad()
    def init_weights(self):
        """GPT-2's table (Radford et al. 2019), with init_std 0.02:

        embeddings, qkv, up, head   normal, init_std
        attn.out, mlp.out           normal, init_std / sqrt(additions to the residual stream)
        norms                       weight 1, bias 0
        """
        c = self.config
        additions = c.n_layers * c.n_loops * (2 if c.d_ff else 1)
        for name, w in self.named_parameters():
            if "norm" not in name:  # norms start with weight 1 and bias 0 by themselves
                w.normal_(0, c.init_std / (additions**0.5 if name.endswith("out.weight") else 1))

    def num_params(self):
        """Parameters by part; `head` is 0 when tied, `final_norm` closes the sum to `total`."""
        parts = dict(embedding="token_embedding", position="position_embedding")
        parts |= dict(blocks="blocks", head="head", final_norm="norm")
        named = list(self.named_parameters())
        n = {k: sum(p.numel() for a, p in named if a.split(".")[0] == v) for k, v in parts.items()}
        return dict(total=sum(n.values()), **n)

    @property
    def head_weight(self):
        """(V, C)"""
        return (self.token_embedding if self.config.tie_weights else self.head).weight

    def hidden(self, tokens, cache=None):
        """The residual stream after the last norm, (B, T, C). In `cache`, a list for each time a
        layer is applied, keys and values gather: the next call goes on where this one ends."""
        c, T = self.config, tokens.size(1)
        start = cache[0][0].size(2) if cache and cache[0] else 0
        x = self.token_embedding(tokens)
        if c.position == "learned":
            if start + T > c.block_size:
                raise ValueError(f"{start + T} tokens do not fit block_size {c.block_size}")
            x = x + self.position_embedding.weight[start : start + T]
        x = dropout(x, c.dropout, self.training)
        for i in range(c.n_loops * c.n_layers):  # looped: the same weights again (2502.17416)
            x = self.blocks[i % c.n_layers](x, cache[i] if cache else None)
        return self.norm(x)

    def forward(self, tokens, targets=None, cache=None):
        # DataParallel's threads inherit "autocast on" but not its dtype: so it is entered here
        with torch.autocast(tokens.device.type, self.half, enabled=self.half is not None):
            x = self.hidden(tokens, cache)  # (B, T, C)
            if targets is None:
                return F.linear(x, self.head_weight)
        # sums and counts leave, no means: so 1, 2 or uneven shards give the same gradient.
        # tokens without a target are left out before the head, the dearest part
        n_tokens = (targets != -100).sum(1)  # (B,)
        learned = (targets != -100).flatten().nonzero().squeeze(1)  # (N,)
        h, dtype = x.flatten(0, 1)[learned], self.half or x.dtype
        chosen = targets.flatten()[learned]
        nll = HeadLoss.apply(h, self.head_weight, chosen, dtype, torch.is_grad_enabled())
        sequence = torch.arange(len(tokens), device=x.device).repeat_interleave(n_tokens)
        loss_sum = nll.new_zeros(len(tokens)).index_add(0, sequence, nll)
        return loss_sum.float(), n_tokens.float()


def evaluated(function):
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


# ---------- 4. depth tasks: what one, two and three layers of attention can do ----------


def generator(*numbers):
    """A random generator that is a function of the numbers, whatever was drawn elsewhere."""
    return torch.Generator().manual_seed(zlib.crc32(repr(numbers).encode()))


def distinct(batch, n, k, generator, what):
    """k different numbers below n in random order, for each of a batch: (batch, k)."""
    if k > n:
        raise ValueError(f"a sequence needs {k} different {what}, but there are {n}; see --sizes")
    return torch.rand(batch, n, generator=generator).topk(k).indices


def ask(prompt, answer, query):
    """prompt (B, T) and a constant last token `query`, at which answer (B,) is the only target: at
    a token of the prompt itself some short patterns can be read off in one layer."""
    targets = F.pad(answer[:, None], (prompt.size(1), 0), value=-100)
    return F.pad(prompt, (0, 1), value=query), targets


def memorize(batch, generator, test=False, symbols=32, length=8, labels=8, sequences=512):
    """Memorization (Chen & Zou 2024; sizes ours): fixed sequences, each with a label drawn once.
    The test is on the same ones. Guessing finds 1 in `labels`, and there is no rule to find."""
    fixed = torch.Generator().manual_seed(0)
    pool = torch.randint(symbols, (sequences, length), generator=fixed)
    label = symbols + torch.randint(labels, (sequences,), generator=fixed)
    chosen = torch.randint(sequences, (batch,), generator=generator)
    return ask(pool[chosen], label[chosen], symbols + labels)


def icqa(batch, generator, test=False, symbols=16, pairs=8):
    """In-context question answering (reasoning, Chen & Zou 2024): q1 a1 … qk ak, then every q in
    another order, each to be answered. Pairs are drawn anew for each sequence and answers differ:
    guessing finds 1 in `symbols`, the shortcut "any answer shown" 1 in `pairs`."""
    q = distinct(batch, symbols, pairs, generator, "questions")
    a = distinct(batch, symbols, pairs, generator, "answers") + symbols
    order = distinct(batch, pairs, pairs, generator, "places")
    tokens = torch.cat((torch.stack((q, a), 2).flatten(1), q.gather(1, order)), 1)
    return tokens, F.pad(a.gather(1, order), (2 * pairs, 0), value=-100)


@functools.cache
def pair_patterns(length):
    """Every way to put `length` places into pairs, (ways, length): 0 0 1 1, 0 1 0 1, 0 1 1 0, …"""
    if length % 2 or length > 8:
        raise ValueError(f"length {length} makes no list of pairs; give 2, 4, 6 or 8")
    symbols = list(range(length // 2))
    ways = {way for way in itertools.permutations(symbols * 2) if [*dict.fromkeys(way)] == symbols}
    return torch.tensor(sorted(ways))


def template(batch, generator, test=False, symbols=2048, length=6):
    """Template matching (generalization, Chen & Zou 2024; Boix-Adserà et al. 2023): which places
    hold equal symbols? Every symbol comes twice, so counting does not help; the test has symbols
    that training never shows. Guessing finds 1 in 15 patterns (length 6). One layer can do better:
    a head that prefers some symbols looks at both places of the one it likes best in a string, and
    sees one pair, which leaves 3 patterns; several heads may see several."""
    patterns = pair_patterns(length)
    label = torch.randint(len(patterns), (batch,), generator=generator)
    names = distinct(batch, symbols, length // 2, generator, "symbols") + symbols * test
    string = names.gather(1, patterns[label])
    return ask(string, 2 * symbols + label, 2 * symbols + len(patterns))


def icl_template(
    batch, generator, test=False, symbols=2048, length=4, blocks=3, queries=3, labels=8, hints=None
):
    """In-context template matching (contextual generalization, Chen & Zou 2024): `blocks` strings
    of different patterns, each with a label drawn anew, then `queries` strings, each of another of
    the patterns, whose labels are asked. All strings have symbols of their own, those of the test
    are not shown in training. Guessing finds 1 in `labels`, among those shown 1 in `blocks`.

    With `hints` each label shown is to be followed by the name of its pattern, and so, in that
    share of the sequences, is each query: a scaffold without which we saw nothing learned.
    """
    patterns = pair_patterns(length)
    query = 2 * symbols + labels  # the token after a string whose label is asked
    which = distinct(batch, len(patterns), blocks, generator, "patterns")
    shown = distinct(batch, labels, blocks, generator, "labels") + 2 * symbols
    asked = distinct(batch, blocks, queries, generator, "blocks")
    count = (blocks + queries) * length // 2
    names = distinct(batch, symbols, count, generator, "symbols") + symbols * test
    which = torch.cat((which, which.gather(1, asked)), 1)  # (B, blocks + queries)
    strings = names.view(batch, blocks + queries, -1).gather(2, patterns[which])
    ends = torch.cat((shown, torch.full_like(asked, query)), 1)
    answers = torch.cat((torch.full_like(shown, -100), shown.gather(1, asked)), 1)
    if hints is not None:
        hinted = torch.rand(batch, 1, generator=generator) < hints
        hinted = hinted | (torch.arange(blocks + queries) < blocks)
        answers = torch.where(hinted, query + 1 + which, answers)
    tokens = torch.cat((strings, ends[..., None]), 2)  # (B, blocks + queries, length + 1)
    return tokens.flatten(1), F.pad(answers[..., None], (length, 0), value=-100).flatten(1)


def find1(x, symbols):
    """For symbols x (B, T) and places i = 1 … T: max({0} ∪ {j ≤ i: x[j-1] = x[i]}), where the
    symbol that followed the last x[i] stands; (B, T + 1), with 0 at place 0."""
    before = F.pad(x[:, :-1], (1, 0), value=-1)  # x[j-1] at j
    places = torch.arange(1, x.size(1) + 1)
    after = (before[:, None] == torch.arange(symbols)[:, None]) * places  # (B, symbols, j): j or 0
    return F.pad(after.cummax(2).values.gather(1, x[:, None]).squeeze(1), (1, 0))


def khop(batch, generator, test=False, symbols=4, length=100, hops=(1,)):
    """k-hop induction (Sanford, Hsu & Telgarsky 2024), k from `hops` as the first token: with
    findk = find1(find(k-1)) the target at place i is x[findk(i)], or ⊥ (the id `symbols`) if
    findk(i) is 0. No symbol follows itself."""
    if max(hops) > length // symbols:  # a hop goes back as many places as there are symbols
        most = f"length {length} with {symbols} symbols has room for {length // symbols}"
        raise ValueError(f"hops {max(hops)} is too much: {most}; give fewer, or --sizes length=N")
    steps = torch.randint(1, symbols, (batch, length), generator=generator)
    x = (steps.cumsum(1) + torch.randint(symbols, (batch, 1), generator=generator)) % symbols
    k = torch.tensor(hops)[torch.randint(len(hops), (batch, 1), generator=generator)]
    found, at = find1(x, symbols), torch.arange(length + 1).expand(batch, -1)
    for hop in range(max(hops)):
        at = torch.where(hop < k, found.gather(1, at), at)
    targets = F.pad(x, (1, 0), value=symbols).gather(1, at)
    targets[:, 0] = -100
    return torch.cat((symbols + k, x), 1), targets


TASKS = {f.__name__: f for f in (memorize, icqa, template, icl_template, khop)}


def task_sizes(name, **changes):
    """All sizes of a task, by default its generator's own; ValueError for one that it has not."""
    known = list(inspect.signature(TASKS[name]).parameters.values())[3:]
    sizes = {p.name: p.default for p in known if p.name != "hints"}
    if unknown := changes.keys() - sizes.keys():
        raise ValueError(f"sizes {min(unknown)} is none of {name}'s: give {', '.join(sizes)}")
    return sizes | changes


def chance(name, **sizes):
    """(guess, shortcut) of a task, accuracies from 0 to 1: of guessing among all answers, and of
    the best shortcut we know that solves nothing: one of the answers shown; for template one pair
    of equal places, which a single head can see; for khop the best predictor from the last two
    tokens and k, ⊥ left out, counted on 2,000 sequences a k."""
    s = task_sizes(name, **sizes)
    if name == "memorize":
        return 1 / s["labels"], 1 / s["labels"]
    if name == "icqa":
        return 1 / s["symbols"], 1 / s["pairs"]
    if name == "icl_template":
        return 1 / s["labels"], 1 / s["blocks"]
    if name == "template":
        return tuple(1 / len(pair_patterns(length)) for length in (s["length"], s["length"] - 2))
    n, right = s["symbols"], []
    for k in s["hops"]:
        x, targets = khop(2000, generator("chance"), **s | dict(hops=(k,)))
        pair = x[:, 1:-1] * n + x[:, 2:]  # the tokens at i - 1 and i
        counts = torch.zeros(n * n * (n + 1), dtype=torch.int64)
        counts = (pair * (n + 1) + targets[:, 2:]).flatten().bincount(minlength=len(counts))
        counts = counts.view(n * n, n + 1)[:, :n]  # how often each pair had each answer
        right.append((counts.amax(1).sum() / counts.sum()).item())
    return 1 / n, statistics.mean(right)


# ---------- 5. data: rows from anywhere → text, its learnable parts marked → blocks ----------

SYSTEM = "Think step by step."  # the constant system turn of the embedded data


def embedded_problem(draw, family, steps, modulus=10):
    """(question, worked steps, answer, number of possible answers) of a problem of `steps` steps.

    chain   a number to which numbers are added, modulo `modulus`; guessing finds 1 in `modulus`
    lookup  a ring of six or more letters in mixed order, followed `steps` times; 1 in (ring - 1)
    order   steps + 1 letters, neighbours compared in mixed order; which is k-th: 1 in (steps + 1)

    `draw()` gives a number from 0 to 1, 1 excluded.
    """
    if family == "chain":
        value, question, work = int(modulus * draw()), [], []
        for _ in range(steps):
            add = 1 + int((modulus - 1) * draw())
            question.append(f"add {add}" if question else f"From {value} add {add}")
            work.append(f"{value} + {add} = {(value + add) % modulus}")
            value = (value + add) % modulus
        return f"{', '.join(question)} modulo {modulus} ?", ", ".join(work), str(value), modulus
    letters = sorted("abcdefghij", key=lambda _: draw())
    if family == "lookup":
        ring = letters[: max(6, steps + 1)]
        pairs = [f"{a} {b}" for a, b in zip(ring, ring[1:] + ring[:1])]
        pairs = ", ".join(sorted(pairs, key=lambda _: draw()))
        question = f"Follow {pairs}. Go {steps} from {ring[0]} ?"
        return question, " ".join(ring[: steps + 1]), ring[steps], len(ring) - 1
    line, k = letters[: steps + 1], int((steps + 1) * draw())
    pairs = [f"{a} {b}" for a, b in zip(line, line[1:])]
    pairs = ", ".join(sorted(pairs, key=lambda _: draw()))
    return f"Sort {pairs}. Number {k + 1} ?", " ".join(line), line[k], len(line)


def embedded_rows(
    n, held_out=False, steps=(1, 2, 3), seed=0, families=FAMILIES, modulus=10, direct=False
):
    """n generated conversations in the published row format, families and step counts in turn, the
    answer after the worked steps or, with `direct`, without them. ValueError if the settings
    leave too few different problems.

    A problem is held out if the CRC-32 of its question is a multiple of 8, and trained on if not,
    so the two sets cannot meet. Only random.random() is drawn from, whose numbers Python keeps
    the same in every version and on every platform: the same seed gives the same bytes.
    """
    draw, rows, tried = random.Random(2 * seed + held_out).random, [], 0
    while len(rows) < n:
        i, tried = len(rows), tried + 1
        family, k = families[i % len(families)], steps[i // len(families) % len(steps)]
        question, work, answer, candidates = embedded_problem(draw, family, k, modulus)
        if (zlib.crc32(question.encode()) % 8 == 0) == held_out:
            says = f"#### {answer}" if direct else f"<think>\nSo {work}\n</think>\n\n {answer}"
            turns = [("system", SYSTEM), ("user", question), ("assistant", says)]
            messages = [dict(role=role, content=content) for role, content in turns]
            rows.append(dict(messages=messages, family=family, steps=k, guess=1 / candidates))
        elif tried > 1000 + 100 * n:
            raise ValueError(f"problem_modulus {modulus} leaves too few chains; give a larger one")
    return rows


@contextlib.contextmanager
def blame(path, problem):
    """Make any error a ValueError: parsers raise all kinds on a broken file."""
    try:
        yield
    except Exception as error:
        reason = " ".join(str(error).split())[:150]
        raise ValueError(f"{path} {problem}: {reason or type(error).__name__}") from None


FILES = (".jsonl", ".json", ".parquet", ".txt")


def read_file(path):
    """Rows of a .jsonl, .json, .parquet or .txt file; ValueError says what is wrong with it."""
    if not os.path.isfile(path) or not path.endswith(FILES):
        raise ValueError(f"data {path} is not a file that ends in one of {' '.join(FILES)}")
    if path.endswith(".parquet"):
        import pyarrow.parquet

        with blame(f"data {path}", "cannot be read"):
            return pyarrow.parquet.read_table(path).to_pylist()
    with blame(f"data {path}", "cannot be read"), open(path, encoding="utf-8-sig") as f:
        text = f.read()
    if path.endswith(".txt"):  # a row is a paragraph, or a line where there is only one
        parts = [part for part in re.split(r"\n\s*\n", text) if part.strip()]
        return [{"text": p + "\n"} for p in (parts if len(parts) > 1 else text.splitlines())]
    rows = []
    lines = text.split("\n") if path.endswith(".jsonl") else [text]
    for number, line in enumerate(lines, 1):
        try:
            rows += [json.loads(line)] if line.strip() else []
        except json.JSONDecodeError as error:
            number += error.lineno - 1
            raise ValueError(f"data {path}, line {number} is not JSON: {error.msg}") from None
    return rows if path.endswith(".jsonl") else (rows or [[]])[0]


def from_hub(name, what, instead, load):
    """load() with what is cached and no network call; if that fails, with the network.

    A hub silent for three seconds is a ValueError that says what to do `instead`; the libraries'
    own retries take up to a minute.
    """
    import datasets.config
    import huggingface_hub.constants as hub

    before = hub.HF_HUB_OFFLINE, datasets.config.HF_HUB_OFFLINE  # read from the environment once
    host = urlsplit(hub.ENDPOINT)
    try:
        hub.HF_HUB_OFFLINE = datasets.config.HF_HUB_OFFLINE = True
        with contextlib.suppress(OSError, ValueError):
            return load()
        hub.HF_HUB_OFFLINE, datasets.config.HF_HUB_OFFLINE = before
        if any(before):
            raise OSError("HF_HUB_OFFLINE is set")
        socket.create_connection((host.hostname, host.port or 443), timeout=3).close()
        return load()
    except (OSError, ValueError) as error:
        reason = str(error).strip().split("\n")[0]
        raise ValueError(
            f"{what} {name!r} is neither a local file or folder, nor in the cache, nor to be had "
            f"from {host.hostname} ({reason}); on Kaggle turn Internet on, or give {instead}"
        ) from None
    finally:
        hub.HF_HUB_OFFLINE, datasets.config.HF_HUB_OFFLINE = before


def hub_rows(source, split, most=None):
    """The first `most` rows, by default all, of a split of a data set, HUB_ID or HUB_ID:SUBSET."""
    from datasets import load_dataset

    name, _, subset = source.partition(":")
    instead = "--data FILE or --data embedded"
    load = functools.partial(load_dataset, name, subset or None, split=split)
    rows = from_hub(source, "data", instead, load)
    return list(rows.select(range(min(len(rows), most or len(rows)))))


def read_source(source, config):
    """(rows to train on, rows held out) of one source of `data`, lists of dicts, whatever the
    seed: every run is measured on the same rows."""
    most = config.max_rows or None
    if source == "embedded":
        sizes = ((most or 20_000, False), (600, True))
        kind = dict(families=config.problem_families, modulus=config.problem_modulus)
        kind |= dict(steps=config.problem_steps, direct=config.answer == "direct")
        return [embedded_rows(n, held_out, **kind) for n, held_out in sizes]
    if source.endswith(FILES) or os.path.exists(source):
        rows = read_file(source)
    else:
        rows = hub_rows(source, "train", most)
    if not isinstance(rows, list) or len(rows) < 2:
        n = len(rows) if isinstance(rows, list) else "no list of"
        raise ValueError(f"data {source} has {n} rows; it needs at least 2, one to hold out")
    rows = rows[:most]
    rows = [rows[i] for i in torch.randperm(len(rows), generator=generator(0)).tolist()]
    cut = math.ceil(len(rows) * config.val_fraction)
    return rows[cut:], rows[:cut]


def choices_of(row):
    """(context, choices, index of the right one) of a multiple-choice row, None if it is none.
    The context is a text, or for our embedded rows the messages that ask; what is taken:

    ours, embedded  context or messages, choices: [text, …], answer: the index
    HellaSwag       ctx, endings, label
    BoolQ           passage, question, answer: true or false
    ARC             question, choices: {text, label}, answerKey
    """
    get = row.get if isinstance(row, dict) else {}.get
    question, choices = get("question"), get("choices")
    asked = f"Question: {question}\nAnswer:"
    if isinstance(get("answer"), bool) and get("passage"):
        found = f"{row['passage']}\n{asked}", ["no", "yes"], int(row["answer"])
    elif get("endings"):
        found = get("ctx"), row["endings"], get("label")
    elif isinstance(choices, dict) and get("answerKey") in (choices.get("label") or ()):
        found = asked, choices.get("text"), choices["label"].index(row["answerKey"])
    else:
        found = get("messages") or get("context"), choices, get("answer")
    context, choices, answer = found
    usable = context and isinstance(context, (str, list)) and isinstance(choices, (list, tuple))
    usable = usable and str(answer).isdecimal() and int(answer) < len(choices)
    return (context, [str(choice) for choice in choices], int(answer)) if usable else None


def turns_of(row):
    """[(role, content), …] of a row; its `text` has the role "text"; [] if it is unusable."""
    row = row if isinstance(row, dict) else {}
    if isinstance(row.get("messages"), list):
        messages = [m if isinstance(m, dict) else {} for m in row["messages"]]
        turns = [(m.get("role"), m.get("content")) for m in messages]
    elif found := choices_of(row):  # of several choices the right one is learned
        context, choices, answer = found
        turns = [("text", f"{context} {choices[answer]}")]
    elif row.get("question") is not None:  # columnar files fill the other rows' columns with None
        turns = [("user", row["question"]), ("assistant", row.get("answer"))]
    else:
        turns = [("text", row.get("text"))]
    return turns if all(isinstance(part, str) for turn in turns for part in turn) else []


def turn_end(tokenizer):
    """What ends a turn: ChatML's token where the tokenizer has it, else its end of text."""
    return "<|im_end|>" if "<|im_end|>" in tokenizer.get_vocab() else tokenizer.eos_token or ""


def segments(row, tokenizer=None):
    """[(text, whether the assistant says it), …] of a usable row, in ChatML or as plain text."""
    end, eos = (turn_end(tokenizer), tokenizer.eos_token or "") if tokenizer else ("", "")
    parts = []
    for role, content in turns_of(row):
        if role == "text":
            parts += [(content + eos, True)]
        else:
            parts += [(f"<|im_start|>{role}\n", False), (content + end, role == "assistant")]
            parts += [("\n", False)]
    return parts


def encode(rows, tokenizer, loss_on="all"):
    """segments() of many rows → [(ids, learn), …]: token ids, and for each whether it is learned.
    Segments are encoded one by one, so that a prompt is what it was in training."""
    texts = list({text: None for parts in rows for text, _ in parts})
    ids = dict(zip(texts, tokenizer(texts, add_special_tokens=False).input_ids))
    everything = loss_on == "all"
    rows = [[(i, everything or said) for text, said in row for i in ids[text]] for row in rows]
    return [tuple(zip(*row)) or ((), ()) for row in rows]


def blocks(encoded, T, packing, stride=0):
    """encode()'s rows → (tokens, targets), each (N, T) int32; -100 is no target.

    pack: all rows end to end, cut every T tokens; the rest, less than a block, is left out.
    pad:  each row from the start of a block, the last one filled up with zeros; a longer row goes
          on in another block every `stride` tokens, by default T, until its end is in one.
    """
    if stride > T:
        raise ValueError(f"stride {stride} skips tokens between blocks of {T}; give at most {T}")
    stride = stride if stride and packing == "pad" else T
    if packing == "pack":
        encoded = [[[x for row in part for x in row] for part in zip(*encoded)]]
    made = []
    for ids, learn in encoded:
        following = [i if s else -100 for i, s in zip(ids[1:], learn[1:])]
        for start in range(0, max(len(following) - T + stride, min(len(following), 1)), stride):
            y = following[start : start + T]
            missing = T - len(y)
            if not missing or packing == "pad":
                x = ids[start : start + len(y)]
                made.append(([*x, *[0] * missing], y + [-100] * missing))
    return tuple(torch.tensor(made, dtype=torch.int32).view(-1, 2, T).unbind(1))


def filled(tokens, targets):
    """Which positions of blocks() hold text, (N, T) bool: all up to the last token or target."""
    return ((tokens != 0) | (targets != -100)).flip(1).cumsum(1).flip(1) > 0


def load_tokenizer(name, texts=(), size=2048):
    """The tokenizer of a folder or hub id; 'embedded' makes a byte-level BPE from `texts`."""
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    if name == "embedded":
        from tokenizers import ByteLevelBPETokenizer, Tokenizer

        special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>"]
        bpe = ByteLevelBPETokenizer()
        bpe.train_from_iterator(texts, size, special_tokens=special, show_progress=False)
        bpe = Tokenizer.from_str(bpe.to_str())  # out of its wrapper
        return PreTrainedTokenizerFast(tokenizer_object=bpe, eos_token=special[0])
    if not os.path.isdir(name):
        instead = "--tokenizer DIR or --tokenizer embedded"
        return from_hub(name, "tokenizer", instead, lambda: AutoTokenizer.from_pretrained(name))
    with blame(f"tokenizer folder {name}", "cannot be read"):
        return AutoTokenizer.from_pretrained(name, local_files_only=True)


def final_answer(text):
    """What a text answers: all after its last ####, else after </think>; None without either."""
    mark = "####" if "####" in text else "</think>"
    return text.rsplit(mark, 1)[1].strip() if mark in text else None


def problem_of(row):
    """A row as a held-out problem, {messages, solution: the last turn, answer, …}, or None: it is
    checkable if the assistant speaks last, with a final_answer() of one line, 40 characters."""
    *asked, (role, solution) = turns_of(row)
    answer = final_answer(solution)
    if role != "assistant" or not answer or len(answer) > 40 or "\n" in answer:
        return None
    known = {key: row[key] for key in ("family", "steps", "guess") if key in row}
    messages = [dict(role=role, content=content) for role, content in asked]
    return dict(messages=messages, solution=solution, answer=answer) | known


CHAT = """{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""  # kept with the tokenizer of a model trained on chats; segments() says the same


@dataclass
class Data:
    """What load_data() makes. `train` and `val` are (tokens, targets), each (N, T) int32."""

    train: tuple
    val: tuple
    tokenizer: object
    problems: list  # of problem_of()
    facts: dict  # train_rows, train_tokens, val_rows, val_tokens, unusable_rows, guess where known;
    # of a task: sizes, guess, shortcut
    n_words: int  # ids in use
    draw: object = None  # of a task: (n, generator) → fresh (tokens, targets), each (n, T)


def sizes_of(config):
    """All sizes of the task that a TrainConfig asks for; ValueError for what it has not."""
    given = dict(text.partition("=")[::2] for text in config.sizes)
    for key, value in given.items():
        if not value.isdigit() or int(value) < 1:
            raise ValueError(f"sizes {key}={value} does not work; give NAME=N with N at least 1")
    sizes = task_sizes(config.data[0], **{key: int(value) for key, value in given.items()})
    return sizes | (dict(hops=config.hops) if "hops" in sizes else {})


def task_data(config, block_size):
    """Data of a depth task: `draw` makes fresh batches, `val` is a test split of 1,000 sequences
    and `train` as many of the training kind; ValueError for sizes that do not work."""
    name, sizes = config.data[0], sizes_of(config)
    task = functools.partial(TASKS[name], **sizes)
    if config.curriculum:
        n = f"curriculum {config.curriculum:g} is for embedded problems"
        raise ValueError(f"{n}; give 0 for {name}")
    if config.hints and name != "icl_template":
        raise ValueError(f"hints {config.hints:g} is for icl_template alone; give 0 for {name}")
    hints = dict(hints=0.5) if config.hints else {}
    train, val = task(1000, generator("train"), **hints), task(1000, generator("val"), test=True)
    if (T := train[0].size(1)) > block_size:
        n = f"block_size {block_size} is too short for the task {name}"
        raise ValueError(f"{n}, whose sequences have {T} tokens; give at least that")
    n_words = 1 + max(int(tensor.max()) for tensor in train + val)
    guess, shortcut = chance(name, **sizes)
    facts = dict(sizes=sizes, guess=guess, shortcut=shortcut)
    return Data(train, val, None, [], facts, n_words, task)


def load_data(config, block_size=512, tokenizer=None):
    """Read, split, tokenize and pack the sources of a TrainConfig → Data; ValueError if that
    does not give at least one block to train and one to validate on."""
    data, parts = [config.data] if isinstance(config.data, str) else config.data, ([], [])
    sources = ", ".join(data)
    if tasks := TASKS.keys() & set(data):
        if len(data) > 1:
            raise ValueError(f"data {sources}: the task {min(tasks)} does not mix; give it alone")
        return task_data(config, block_size)
    for source in data:
        for part, rows in zip(parts, read_source(source, config)):
            part += rows
    rows = parts[0] + parts[1]
    parts = [[row for row in part if turns_of(row)] for part in parts]
    if config.curriculum:  # train() then takes a growing first part of them
        if not all("steps" in row for row in parts[0]):
            n = f"curriculum {config.curriculum:g} is for rows that say their steps"
            raise ValueError(f"{n}; give 0 for {sources}, or --data embedded")
        parts[0].sort(key=lambda row: row["steps"])
    if not all(parts):
        columns = ", ".join(sorted({str(k) for row in rows if isinstance(row, dict) for k in row}))
        raise ValueError(
            f"data {sources}: a row needs messages, question + answer, or text; "
            f"found {columns or 'no columns'}"
        )
    if tokenizer is None:
        texts = ("".join(text for text, _ in segments(row)) for row in parts[0] + parts[1])
        tokenizer = load_tokenizer(config.tokenizer, texts, config.tokenizer_size)
    if any(turns_of(row)[0][0] != "text" for row in parts[0]):
        tokenizer.chat_template = CHAT
    facts, made = dict(unusable_rows=len(rows) - len(parts[0]) - len(parts[1])), []
    for name, part in zip(("train", "val"), parts):
        encoded = encode([segments(row, tokenizer) for row in part], tokenizer, config.loss_on)
        longest = max(len(ids) for ids, _ in encoded)
        if "guess" in part[0] and longest > block_size + 1:  # cut, it could not be answered
            n = f"block_size {block_size} is too short for problems of {longest} tokens"
            raise ValueError(f"{n}; give at least {longest - 1}, or fewer --problem_steps")
        n = sum(len(ids) for ids, _ in encoded)
        facts |= {f"{name}_rows": len(part), f"{name}_tokens": n}
        packing = config.packing
        if name == "val" and config.val_packing != "same":
            packing = config.val_packing
        made.append(blocks(encoded, block_size, packing, config.stride))
        if not (made[-1][1] != -100).any():
            raise ValueError(
                f"data {sources}: {n} tokens for {name} do not fill a block of {block_size} to "
                "learn from; give more text, a smaller --block_size, or --packing pad"
            )
    problems = [problem for row in parts[1] if (problem := problem_of(row))]
    if problems and "guess" in problems[0]:
        facts["guess"] = statistics.mean(problem["guess"] for problem in problems)
    return Data(*made, tokenizer, problems, facts, len(tokenizer))


def batch_rows(step, batch_size, n, seed):
    """Which of n blocks the 0-based step takes, each epoch in a new order: nothing to save, and
    every process of a job knows the whole batch."""
    positions = range(step * batch_size, (step + 1) * batch_size)
    epochs = sorted({position // n for position in positions})
    orders = {e: torch.randperm(n, generator=generator(seed, e)) for e in epochs}
    return torch.stack([orders[position // n][position % n] for position in positions])


# ---------- 6. sampling and accuracy ----------


@evaluated
def generate(model, tokens, max_new_tokens, temperature=1.0, top_k=None, seed=None, eos=None):
    """Continue tokens (B, T) int64 by up to max_new_tokens → (B, at most T + max_new_tokens).

    temperature 0 takes the likeliest word; top_k keeps the k likeliest. A row that has drawn
    `eos` is filled with it; the call ends when every row has, and with learned positions where
    the block does. Ids that belong to no word (model.n_words and above) are never drawn.
    """
    if not temperature >= 0 or (top_k is not None and top_k < 1):
        raise ValueError(f"temperature {temperature} must be at least 0, top_k {top_k} at least 1")
    c, draw = model.config, torch.Generator()
    draw.seed() if seed is None else draw.manual_seed(seed)
    cache = [[] for _ in range(c.n_loops * c.n_layers)]  # keys and values of what was read
    done = torch.zeros(len(tokens), 1, dtype=torch.bool, device=tokens.device)
    if c.position == "learned":
        max_new_tokens = min(max_new_tokens, c.block_size - tokens.size(1))
    for _ in range(max_new_tokens):
        logits = model(tokens[:, -1:] if cache[0] else tokens, cache=cache)
        logits = logits[:, -1, : model.n_words].float()  # (B, words)
        if top_k is not None:
            least = logits.topk(min(top_k, logits.size(-1))).values[:, -1:]
            logits = logits.masked_fill(logits < least, -math.inf)
        if temperature == 0:
            new = logits.argmax(-1, keepdim=True)  # (B, 1)
        else:  # drawn on the CPU, so that a seed means the same text everywhere
            p = (logits / temperature).softmax(-1).cpu()
            new = torch.multinomial(p, 1, generator=draw).to(tokens.device)
        if eos is not None:
            new = new.masked_fill(done, eos)
            done |= new == eos
        tokens = torch.cat((tokens, new), 1)
        if done.all():
            break
    return tokens


def prompt_ids(tokenizer, messages):
    """A conversation as token ids, up to where the assistant begins to speak."""
    parts = segments(dict(messages=messages), tokenizer)
    return encode([[*parts, ("<|im_start|>assistant\n", False)]], tokenizer)[0][0]


def answer_texts(model, tokenizer, problems, max_new_tokens=256, **sampling):
    """What the model says to each of load_data().problems, by default the likeliest words.
    Prompts of one length run together, so that no padding disturbs them."""
    prompts = [prompt_ids(tokenizer, problem["messages"]) for problem in problems]
    eos = tokenizer.convert_tokens_to_ids(turn_end(tokenizer))
    device, texts = next(model.parameters()).device, [""] * len(problems)
    for length in {len(ids) for ids in prompts}:
        which = [i for i, ids in enumerate(prompts) if len(ids) == length]
        tokens = torch.tensor([prompts[i] for i in which], device=device)
        options = dict(temperature=0, eos=eos) | sampling
        tokens = generate(model, tokens, max_new_tokens, **options)
        for i, ids in zip(which, tokens[:, length:].tolist()):
            texts[i] = tokenizer.decode(ids[: ids.index(eos)] if eos in ids else ids)
    return texts


@evaluated
def task_accuracy(model, data):
    """Share of a test split's targets predicted, as {"accuracy"}; for khop without the targets ⊥,
    as in the paper, and for each k too, as {"accuracy_by_hops"}."""
    tokens, targets = data.val
    device = next(model.parameters()).device
    said = torch.cat([model(x.to(device)).argmax(-1).cpu() for x in tokens.split(100)])
    counted, hops = targets != -100, data.facts["sizes"].get("hops")
    if hops is None:
        return dict(accuracy=(said == targets)[counted].float().mean().item())
    bottom = tokens[:, 1:].max() + 1  # ⊥, the id after the last symbol
    counted &= targets != bottom
    k = (tokens[:, :1] - bottom).expand_as(tokens)[counted]
    right = (said == targets)[counted].float()
    by_hops = {str(h): right[k == h].mean().item() for h in hops}
    return dict(accuracy=right.mean().item(), accuracy_by_hops=by_hops)


def answer_accuracy(model, tokenizer, problems, **sampling):
    """Share of the problems, from 0 to 1, whose final_answer() is exactly the right one."""
    return statistics.mean(answers_right(model, tokenizer, problems, **sampling) or [0.0])


def answers_right(model, tokenizer, problems, **sampling):
    """For each of the problems whether its final_answer() is exactly the right one, 1.0 or 0.0."""
    texts = answer_texts(model, tokenizer, problems, **sampling)
    return [float(final_answer(text) == p["answer"]) for text, p in zip(texts, problems)]


def embedded_choices(n, steps=(1, 2, 3), choices=4, seed=0):
    """n held-out embedded problems for choice_scores(): the conversation up to the answer, the
    worked-out answer and, in the same words, up to three wrong results, in random order; guessing
    finds 1 in their number."""
    draw, rows = random.Random(seed).random, []
    for row in embedded_rows(n, True, steps, seed):
        *asked, said = row["messages"]
        work, right = said["content"].rsplit("\n</think>\n\n ", 1)
        known = re.findall(r"\b[a-j]\b", asked[-1]["content"]) or list("0123456789")
        wrong = sorted(sorted({*known} - {right}), key=lambda _: draw())[: choices - 1]
        answers = sorted([right, *wrong], key=lambda _: draw())
        # what the work ends with is the answer: a wrong one ends its work alike
        stem = work.removesuffix(right)
        ends = [(a if work != stem else "") + f"\n</think>\n\n {a}" for a in answers]
        said = [stem + end for end in ends]
        rows.append(dict(messages=asked, choices=said, answer=answers.index(right)))
    return rows


def read_choices(source, most=0):
    """choices_of() all multiple-choice rows of a file, of 'embedded', or of the validation split
    of a hub id, of at most the first `most` rows if given; ValueError if there are none."""
    if source == "embedded":
        rows = embedded_choices(most or 600)
    elif source.endswith(FILES) or os.path.exists(source):
        rows = read_file(source)
    else:
        rows = hub_rows(source, "validation", most)
    rows = rows[: most or None] if isinstance(rows, list) else []
    if not (found := [each for each in map(choices_of, rows) if each]):
        raise ValueError(f"data {source} has no row of context, choices, answer, as --score needs")
    return found


@evaluated
def choice_scores(model, tokenizer, found):
    """Mean log-likelihood a token, in nats, of each choice after its context, for each of
    choices_of(): one list a row. The last block_size tokens of both are read, and after a text
    a choice begins with a space. ValueError if a choice alone does not fit."""
    T, device, scores = model.config.block_size, model.head_weight.device, []
    stack = nn.utils.rnn.pad_sequence
    for number, (context, choices, _) in enumerate(found, 1):
        if isinstance(context, str):
            asked = encode([[(context, True)]], tokenizer)[0][0]
            choices = [f" {choice}" for choice in choices]
        else:
            asked = prompt_ids(tokenizer, context)
        said = [ids for ids, _ in encode([[(choice, True)] for choice in choices], tokenizer)]
        longest = max(map(len, said))
        if longest > T or not all(said):
            raise ValueError(f"row {number} has a choice of {longest} tokens; 1 to {T} can be read")
        rows = [(asked + ids)[-T - 1 :] for ids in said]
        heard = [(-100,) * (len(row) - 1 - len(ids)) + ids for row, ids in zip(rows, said)]
        tokens = stack([torch.tensor(row[:-1]) for row in rows], batch_first=True)
        targets = stack([torch.tensor(row) for row in heard], batch_first=True, padding_value=-100)
        loss, n = model(tokens.to(device), targets.to(device))
        scores.append((-loss / n).tolist())
    return scores


# ---------- 7. training ----------


def lr_at(step, config):
    """Learning rate of the 0-based step: a line from 0 to the peak, half a cosine to the floor.
    A pure function, so skipped steps and resumed runs change nothing."""
    warmup = config.warmup_steps
    warmup = round(warmup * config.steps) if warmup < 1 else warmup
    if step < warmup:
        return config.lr * step / warmup
    floor = config.lr * config.lr_floor
    done = (step - warmup) / max(1, config.steps - warmup)
    return floor + 0.5 * (1 + math.cos(math.pi * done)) * (config.lr - floor)


def counted_steps(config, data):
    """The TrainConfig with the steps that its epochs over data.train take, if it has any."""
    if not config.epochs:
        return config
    if data.draw:
        raise ValueError(f"epochs {config.epochs}: a task's data never repeats; give --steps")
    steps = config.epochs * len(data.train[0]) / (config.batch_size * config.grad_accum)
    found = dataclasses.replace(config, steps=math.ceil(steps))
    dataclasses.replace(found, epochs=0).validate()  # whether any are left after the warm-up
    return found


def pick_device(name):
    """`device` of a TrainConfig → torch.device; ValueError if it is not there or does not run."""
    there = dict(cuda=torch.cuda.is_available(), mps=torch.backends.mps.is_available(), cpu=True)
    if name == "auto":
        name = next(kind for kind, found in there.items() if found)
    if not there[name]:
        raise ValueError(f"device {name} was asked for but PyTorch finds none; use --device cpu")
    device = torch.device(name, int(os.environ.get("LOCAL_RANK", 0)) if name == "cuda" else None)
    try:
        torch.ones(1, device=device).add_(1)  # a GPU can be found and still have no kernels
    except RuntimeError as error:
        raise ValueError(
            f"device {device} cannot be used by PyTorch {torch.__version__} ({error!s:.60}); "
            "on Kaggle choose GPU T4 x2, or use --device cpu"
        ) from None
    return device


def pick_precision(name, device):
    """`precision` of a TrainConfig → (autocast dtype, or None for fp32; why, in words)."""
    if name == "auto":
        half = torch.float16 if device.type == "cuda" else None
        return half, f"{'fp16' if half else 'fp32'}, the default on {device.type}"
    # is_bf16_supported() says yes on a T4, which only emulates it
    if name == "bf16" and device.type == "cuda" and torch.cuda.get_device_capability() < (8, 0):
        raise ValueError("precision bf16 needs an Ampere GPU or newer; use --precision fp16")
    dtype = dict(fp32=None, fp16=torch.float16, bf16=torch.bfloat16)[name]
    return dtype, f"{name}, as asked"


def parallel(model, device, say=print):
    """The model itself, or wrapped for several GPUs or the processes of torchrun."""
    world, gpus = int(os.environ.get("WORLD_SIZE", 1)), torch.cuda.device_count()
    if world > 1:
        if device.type == "cuda":
            torch.cuda.set_device(device)
        if not torch.distributed.is_initialized():
            torch.distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")
        say(f"Wrapping model with DistributedDataParallel over {world} processes")
        return nn.parallel.DistributedDataParallel(model)
    if device.type == "cuda" and gpus > 1:
        say(f"Wrapping model with DataParallel over {gpus} GPUs")
        return nn.DataParallel(model)
    return model


def make_optimizer(model, config):
    """AdamW in its fused form; weight decay on matrices and embeddings, not on norms."""
    groups = [
        dict(params=[p for p in model.parameters() if (p.dim() > 1) == matrix], weight_decay=decay)
        for matrix, decay in ((True, config.weight_decay), (False, 0.0))
    ]
    return torch.optim.AdamW(groups, lr=config.lr, betas=(config.beta1, config.beta2), fused=True)


def train_step(wrapped, optimizer, scaler, tokens, targets, lr, config):
    """One optimizer step on tokens and targets (grad_accum * batch_size, T) → the mean loss of
    this process's share, and whether the step was skipped for an infinite or NaN gradient."""
    rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    device, loss = next(wrapped.parameters()).device, 0.0
    # loss sums are divided by the count of the whole step, which every process can see: so
    # accumulation, DataParallel's uneven shards and processes all give the full batch's gradient
    n_targets = max(1, int((targets != -100).sum()))
    for group in optimizer.param_groups:
        group["lr"] = lr
    optimizer.zero_grad(set_to_none=True)
    for x, y in zip(tokens.split(config.batch_size), targets.split(config.batch_size)):
        x, y = x[rank::world].to(device), y[rank::world].to(device)
        loss_sum, _ = wrapped(x, y)  # (B,), gathered from all GPUs
        part = loss_sum.sum() / n_targets
        scaler.scale(part * world).backward()  # DistributedDataParallel averages: hence `world`
        loss += part.item()
    scaler.unscale_(optimizer)  # before clipping, which is about the true gradient
    norm = nn.utils.clip_grad_norm_(wrapped.parameters(), config.grad_clip)
    scale, skipped = scaler.get_scale(), not norm.isfinite()
    if scaler.is_enabled() or not skipped:
        scaler.step(optimizer)  # does nothing after an infinite gradient in FP16
    scaler.update()
    return loss, skipped or scaler.get_scale() < scale


@evaluated
def mean_loss(model, part, n_blocks, batch_size):
    """Mean loss a token, without dropout, of the first n_blocks of (tokens, targets)."""
    device, total, count = next(model.parameters()).device, 0.0, 0.0
    for x, y in zip(*(t[:n_blocks].long().split(batch_size) for t in part)):
        loss_sum, n_tokens = model(x.to(device), y.to(device))
        total, count = total + loss_sum.sum().item(), count + n_tokens.sum().item()
    return total / max(1, count)


def write_file(path, write):
    """Call write(file) on a temporary file and move it to `path`: it is whole or not there."""
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        with open(temporary, "wb") as f:
            write(f)
            f.flush()
            os.fsync(f.fileno())
        os.replace(temporary, path)
    except (OSError, RuntimeError) as error:  # torch.save hides a full disk in a RuntimeError
        cause = error if isinstance(error, OSError) else error.__context__
        if isinstance(cause, OSError):
            raise OSError(cause.errno, cause.strerror, path) from None
        raise
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.remove(temporary)


def read_config(run_dir):
    """(ModelConfig, TrainConfig) of a run folder; ValueError if it is none."""
    path = os.path.join(run_dir, "config.json")
    with blame(path, "is not the configuration of a run"):
        with open(path, encoding="utf-8") as f:
            saved = json.load(f)
        for part in (saved["model"], saved["train"]):
            part |= {key: tuple(value) for key, value in part.items() if isinstance(value, list)}
        return ModelConfig(**saved["model"]).validate(), TrainConfig(**saved["train"]).validate()


def saved_tokenizer(run_dir):
    """The tokenizer of a run folder; None where it has none, as the depth tasks'."""
    folder = os.path.join(run_dir, "tokenizer")
    return load_tokenizer(folder) if os.path.isdir(folder) else None


def load(run_dir):
    """(model, tokenizer) of a run folder, on the CPU, in eval mode, the tokenizer None for a task;
    ValueError if it is broken."""
    from safetensors.torch import load_file

    model, path = GPT(read_config(run_dir)[0]), os.path.join(run_dir, "model.safetensors")
    with blame(path, "is not a checkpoint of this model"):
        model.load_state_dict(load_file(path))
    tokenizer = saved_tokenizer(run_dir)
    model.n_words = len(tokenizer) if tokenizer else model.n_words
    return model.eval(), tokenizer


def provenance(device):
    """What is needed to make a figure again: versions, device, commit (+ if changed since)."""
    versions = {name: importlib.metadata.version(name) for name in ("torch", "transformers")}
    versions["python"] = platform.python_version()
    name = f"{platform.machine()} CPU, {torch.get_num_threads()} threads"
    if device.type == "cuda":
        name = f"{torch.cuda.device_count()} x {torch.cuda.get_device_name()}, {name}"
    git, commit = ["git", "describe", "--always", "--dirty=+", "--abbrev=40"], None
    with contextlib.suppress(OSError):  # no git here
        here = os.path.dirname(os.path.abspath(__file__))
        done = subprocess.run(git, cwd=here, capture_output=True, text=True)
        commit = done.stdout.strip() or None
    return dict(versions=versions, device=name, commit=commit)


class Diverged(RuntimeError):
    """The gradient stayed infinite or NaN; the message says what to change."""


MOST_SKIPPED = 25  # in a row: GradScaler starts at 2^16, so 16 halvings are no accident


@dataclass
class Run:
    """What train() leaves. `log` is log.jsonl as a list of dicts, one an evaluation."""

    dir: str
    model: GPT
    tokenizer: object
    log: list
    finished: bool = True


def train(model_config, train_config, data=None, resume=False, command=None, stop=lambda: False):
    """Train one model and write its run folder → Run.

    `data`, from load_data(), is loaded if not given. `resume` goes on from the checkpoint, on the
    CPU to the same losses, bit for bit, as if it had never stopped. stop() is asked after each
    step; if true the run is saved and returned. Under torchrun every process calls this alike.
    ValueError for settings that cannot work or a folder that exists, Diverged if gradients do.
    """
    from safetensors.torch import save
    from tqdm import tqdm

    m, t = model_config.validate(), train_config.validate()
    rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    say = (lambda line: None) if rank else tqdm.write  # a print that spares the progress bar
    device = pick_device(t.device)
    half, _ = pick_precision(t.precision, device)
    if t.batch_size % world:
        raise ValueError(f"batch_size {t.batch_size} does not divide among {world} processes")
    folder = os.path.join(t.out_dir, t.name or f"{m.n_layers}-layers-seed-{t.seed}")
    path = lambda name: os.path.join(folder, name)  # noqa: E731
    # with a curriculum the shortest problems are learned first, then the next shortest too
    lengths = len(t.problem_steps)
    log, now = [], dict(step=0, skipped=0, in_a_row=0, seconds=0.0)
    now["lengths"] = 1 if t.curriculum else lengths
    if not resume and os.path.exists(path("config.json")):
        raise ValueError(f"{folder} exists; go on with --resume {folder}, or give another --name")
    state, broken = None, (path("state.pt"), "is not a checkpoint to resume from")
    if resume and os.path.exists(path("state.pt")):  # else it was stopped before the first one
        with blame(*broken):  # weights_only: nothing in the file is executed
            state = torch.load(path("state.pt"), map_location="cpu", weights_only=True)
            log, now = state["log"], now | state["now"]
    if now["step"] >= t.steps:
        raise ValueError(f"{folder} is finished: {t.steps} of {t.steps} steps are done")
    data = data or load_data(t, m.block_size, saved_tokenizer(folder) if resume else None)
    t = counted_steps(t, data)
    fingerprint = zlib.crc32(data.train[0].numpy().tobytes())
    if now.setdefault("fingerprint", fingerprint) != fingerprint:
        raise ValueError(f"the data of {folder} is not what its checkpoint was trained on")
    m = dataclasses.replace(m, vocab_size=m.vocab_size or data.n_words)
    if data.n_words > m.vocab_size:
        n = f"vocab_size {m.vocab_size} is less than the data's {data.n_words} words"
        raise ValueError(f"{n}; give at least that, or 0")

    torch.manual_seed(t.seed)
    model = GPT(m)
    model.n_words, model.half = data.n_words, half
    wrapped = parallel(model.to(device).train(), device, say)
    optimizer = make_optimizer(model, t)
    # multiplies the loss, so that gradients below fp16's smallest number are not lost
    scaler = torch.amp.GradScaler(device.type, enabled=half == torch.float16)
    parts = dict(model=model, optimizer=optimizer, scaler=scaler)
    if state:
        with blame(*broken):
            for name, part in parts.items():
                part.load_state_dict(state[name])
    if rank == 0 and not resume:
        os.makedirs(folder, exist_ok=True)
        if data.tokenizer:
            data.tokenizer.save_pretrained(path("tokenizer"))
        about = dict(model=dataclasses.asdict(m), train=dataclasses.asdict(t), command=command)
        about |= provenance(device)
        write_file(path("config.json"), lambda f: f.write(json.dumps(about, indent=1).encode()))

    def checkpoint():
        """All that a resume needs goes into one file, so that it cannot be torn in two."""
        if rank == 0:
            keep = {name: part.state_dict() for name, part in parts.items()}
            keep |= dict(now=now, log=log)
            write_file(path("state.pt"), lambda f: torch.save(keep, f))
            write_file(path("model.safetensors"), lambda f: f.write(save(keep["model"])))

    per_step = t.batch_size * t.grad_accum
    n_train = per_step * t.steps if data.draw else len(data.train[0])
    began, training, tokens_seen = time.perf_counter() - now["seconds"], 0.0, 0
    with tqdm(total=t.steps, initial=now["step"], disable=None) as bar:
        for step in range(now["step"], t.steps):
            # everything random in a step is a function of (seed, step): nothing to store
            torch.manual_seed(generator(t.seed, step, rank).initial_seed())
            if data.draw:
                hints = {}
                if step < t.hints * t.steps:  # first every query asks for a hint, then a fifth
                    hints["hints"] = 1.0 if step < 0.2 * t.hints * t.steps else 0.2
                tokens, targets = data.draw(per_step, generator(t.seed, step), **hints)
            else:
                n_open = max(1, n_train * now["lengths"] // lengths)
                rows = batch_rows(step, per_step, n_open, t.seed)
                tokens, targets = (part[rows].long() for part in data.train)
            step_began = time.perf_counter()
            lr = lr_at(step, t)
            loss, skipped = train_step(wrapped, optimizer, scaler, tokens, targets, lr, t)
            training += time.perf_counter() - step_began
            tokens_seen += tokens.numel()
            stopping = stop()
            if world > 1:  # every process learns the whole loss, and stops at the same step
                sums = torch.tensor([loss, stopping], device=device)
                torch.distributed.all_reduce(sums)
                loss, stopping = sums[0].item(), sums[1].item() > 0
            now["step"], now["skipped"] = step + 1, now["skipped"] + skipped
            now["in_a_row"] = now["in_a_row"] + 1 if skipped else 0
            now["lengths"] = min(lengths, now["lengths"] + (loss < t.curriculum))
            if now["in_a_row"] >= MOST_SKIPPED:
                what = f"infinite or NaN for {MOST_SKIPPED} steps, up to step {step + 1}"
                advice = "lower --lr, raise --warmup_steps, or use --precision fp32"
                raise Diverged(f"the gradient was {what}; {advice}")
            last = now["step"] == t.steps
            if last or now["step"] == 1 or now["step"] % t.eval_every == 0:
                epoch = step * per_step // n_train + 1
                row = dict(step=step + 1, epoch=epoch, lr=lr, train_loss=loss, val_loss=None)
                row |= dict(lengths=now["lengths"]) if t.curriculum else {}
                if rank == 0:
                    sizes = (t.eval_blocks, t.batch_size)
                    row["val_loss"] = mean_loss(model, data.val, *sizes)
                    if data.draw:
                        row |= task_accuracy(model, data)
                    if last:  # what accuracy is to be compared with
                        row |= {k: v for k, v in data.facts.items() if k in ("guess", "shortcut")}
                    if last:  # the batch's loss is noisy and has dropout on; this has neither
                        spread = [part[:: -(-len(part) // t.eval_blocks)] for part in data.train]
                        row["train_loss_eval"] = mean_loss(model, spread, *sizes)
                    if last and (problems := data.problems[: t.eval_problems]):
                        right = answers_right(model, data.tokenizer, problems)
                        row["accuracy"], kinds = statistics.mean(right), {}
                        for p, r in zip(problems, right):
                            kinds.setdefault(f"{p.get('family')} {p.get('steps')}", []).append(r)
                        if len(kinds) > 1:
                            row["accuracy_by_problem"] = {
                                kind: statistics.mean(kinds[kind]) for kind in sorted(kinds)
                            }
                now["seconds"] = time.perf_counter() - began
                row |= dict(seconds=round(now["seconds"], 2), skipped_steps=now["skipped"])
                log.append(row | dict(tokens_per_second=round(tokens_seen / training)))
                training, tokens_seen = 0.0, 0
                if rank == 0:
                    lines = [json.dumps(row).encode() + b"\n" for row in log]
                    write_file(path("log.jsonl"), lambda f: f.writelines(lines))
                    where = f"epoch {row['epoch']} step {step + 1}/{t.steps} lr {lr:.2e}"
                    val, seconds = row["val_loss"], row["seconds"]
                    say(f"{where} train {loss:.4f} val {val:.4f} ({seconds:.0f}s)")
            now["seconds"] = time.perf_counter() - began
            bar.update()
            if last or stopping or now["step"] % t.save_every == 0:
                checkpoint()
            if stopping and not last:
                say(f"Stopped after step {step + 1}; go on with: python train.py --resume {folder}")
                return Run(folder, model.eval(), data.tokenizer, log, finished=False)
    say(f"Done. Final train loss: {log[-1]['train_loss']:.4f} | total time {now['seconds']:.0f}s")
    return Run(folder, model.eval(), data.tokenizer, log)


# ---------- 8. analysis: attention, and what runs found ----------


@contextlib.contextmanager
def hooked(hooks):
    """While active, each (module, hook) is a forward pre-hook."""
    handles = [module.register_forward_pre_hook(hook) for module, hook in hooks]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def watch_attention(model, see):
    """While active, every attention layer of the GPT, unmodified and training or not, calls
    see(layer, weights) each time it is applied to tokens read without a cache: weights (B, H, T, T)
    float32, without dropout, and gone after the call, so that one layer's at a time need memory.
    Nothing is drawn and no gradient formed: training goes on as if unwatched."""

    def look(layer, attn, inputs):
        # in single precision, whatever the training's: entropies are sums of many small terms
        with torch.no_grad(), torch.autocast(inputs[0].device.type, enabled=False):
            x = inputs[0].to(attn.qkv.weight.dtype)
            q, k, v = (part.float() for part in attn.project(x))
            see(layer, readable_attention(q, k, v, attn.scale)[1])

    model = getattr(model, "module", model)  # out of DataParallel, whose replicas keep the hooks
    blocks = enumerate(model.blocks)
    return hooked([(block.attn, functools.partial(look, layer)) for layer, block in blocks])


def ablated(model, heads):
    """While active, the heads, (layer, head) from 0, add nothing to the residual stream. The second
    time that a looped model applies its layers is counted as further layers."""
    n, loops = model.config.n_layers, model.config.n_loops

    def cut(when, times, start, end, out, inputs):
        if next(times) % loops != when:
            return None
        kept = inputs[0].clone()
        kept[..., start:end] = 0
        return (kept,)

    hooks = []
    for layer, head in heads:
        attn = model.blocks[layer % n].attn
        size = attn.out.in_features // attn.n_heads
        where = (layer // n, itertools.count(), head * size, (head + 1) * size)
        hooks.append((attn.out, functools.partial(cut, *where)))
    return hooked(hooks)


@evaluated
def exact_hidden(model, tokens):
    """model.hidden(tokens), in eval mode and single precision; both are restored."""
    model = getattr(model, "module", model)
    half, model.half = model.half, None
    try:
        return model.hidden(tokens.to(model.head_weight.device))
    finally:
        model.half = half


def attention_maps(model, tokens):
    """Attention weights for tokens (B, T): a (B, H, T, T) float32 tensor for each time a layer is
    applied, rows over keys summing to 1; without dropout. All at once: for long contexts see
    watch_attention()."""
    maps = []
    with watch_attention(model, lambda layer, weights: maps.append(weights)):
        exact_hidden(model, tokens)
    return maps


def head_sums(weights, count_masked=False, counted=None):
    """head_stats() before its division, so that batches add up: {name: (2, H), sum and count}."""
    B, H, T, _ = weights.shape
    counted = torch.ones(B, T, dtype=torch.bool) if counted is None else counted
    counted = counted[:, None].to(weights.device).expand(B, H, T)
    causal = torch.ones(T, T, dtype=torch.bool, device=weights.device).tril()
    keys = torch.arange(1, T + 1, device=weights.device)  # in sight of query i
    among = causal | count_masked
    entropy = -weights.xlogy(weights).sum(-1)  # (B, H, T)

    def add(values, those, count=1):
        sums = [torch.where(those, part, 0).sum((0, 2)) for part in (values, count)]
        return torch.stack([part.cpu().double() for part in sums])  # counts outgrow float32

    def below(threshold):  # over all entries, as the published tables, not query by query
        return add(((weights < threshold) & among).sum(-1), counted, among.sum(-1))

    return dict(
        entropy=add(entropy, counted),
        normalised_entropy=add(entropy / keys.log().clamp(min=1e-9), counted & (keys > 1)),
        effective_keys=add(entropy.exp(), counted),
        sparsity=below(1e-3),
        relative_sparsity=below(0.1 / keys[:, None]),
    )


def head_stats(weights, count_masked=False, counted=None):
    """Of weights (B, H, T, T), averages over the queries `counted` (B, T), by default all, → (H,):

    entropy             -Σ p ln p of a query's weights, in nats
    normalised_entropy  that over ln(i + 1), its most with i + 1 keys in sight; from query i = 1 on
    effective_keys      e^entropy: this many keys with equal weights have this entropy
    sparsity            share of a query's keys with a weight below 1e-3
    relative_sparsity   the same below a tenth of 1 / (i + 1), which does not depend on the length

    Keys after the query are no keys; `count_masked` counts them, as LLmini's published tables do.
    """
    return averages(head_sums(weights, count_masked, counted))


def averages(sums):
    """head_sums() → {name: (H,) float32}"""
    return {name: (total / count).float() for name, (total, count) in sums.items()}


def stacked(layers):
    """[head_stats() of each layer] → {name: (L, H)}, a list of (H,) where layers differ in H."""
    columns = {name: [stats[name].cpu() for stats in layers] for name in layers[0]}
    same = len({len(column) for column in columns["entropy"]}) == 1
    return {name: torch.stack(parts) if same else parts for name, parts in columns.items()}


def attention_stats(maps, count_masked=False, counted=None):
    """head_stats() of attention_maps(): {name: (L, H)}, ragged (a list) where heads differ."""
    return stacked([head_stats(weights, count_masked, counted) for weights in maps])


def model_stats(model, tokens, count_masked=False, counted=None):
    """attention_stats() of a model on tokens (B, T), with the weights of one layer and one sequence
    at a time in memory, at most."""
    sums = []
    for i in range(len(tokens)):
        found = []

        def see(layer, weights):
            found.append(
                head_sums(weights, count_masked, None if counted is None else counted[i, None])
            )

        with watch_attention(model, see):
            exact_hidden(model, tokens[i, None])
        sums = [{k: a[k] + b[k] for k in b} for a, b in zip(sums, found)] or found
    return stacked([averages(layer) for layer in sums])


def links(name, tokens, targets, **sizes):
    """Where the known solutions of a depth task have to look: {step: (B, T, T) bool}, query by key.

    icqa          an answer copies the question before it; a question finds the answer copied to
    template      a symbol finds its equal (parse); the end reads where the equals are
    icl_template  the same for each string (parse, read); the query finds the right label (match)
    khop          a place copies the symbol before it; it finds the places 1, 2, … hops away
    """
    (B, T), key = tokens.shape, torch.arange(tokens.size(1))
    query = key[:, None]
    equal = (tokens[:, :, None] == tokens[:, None]) & (key < query)
    right = (targets[:, :, None] == tokens[:, None]) & (key < query)
    if name == "icqa":
        copy = (query % 2 == 1) & (query < 2 * sizes["pairs"]) & (key == query - 1)
        return dict(copy=copy.expand(B, T, T), match=right)
    if name == "template":
        return dict(parse=equal, read=equal.any(2)[:, None] & (query == T - 1))
    if name == "icl_template":
        L = sizes["length"] + 1
        symbol, inside = query % L < L - 1, (query // L == key // L) & (key < query)
        equals = equal.any(2)[:, None] & inside  # the second of each pair
        return dict(parse=equal & symbol, read=equals & ~symbol, match=right)
    if name == "khop":
        steps, at = dict(copy=((key == query - 1) & (key > 0)).expand(B, T, T)), key.expand(B, T)
        found = find1(tokens[:, 1:], sizes["symbols"])
        for hop in range(1, max(sizes["hops"]) + 1):
            at = found.gather(1, at)
            steps[f"hop {hop}"] = (at[:, :, None] == key) & (at > 0)[:, :, None]
        return steps
    raise ValueError(f"{name} has no steps to look for; choose icqa, template, icl_template, khop")


def mechanism(model, data, name, n=200):
    """How a model solves its depth task, on n sequences of the test split:

    accuracy  of the whole model
    without   (L, H), the accuracy with that head ablated()
    steps     {step of links(): its `weight` (L, H), the mean weight that a head's queries give to
              their links, the `heads` that give half or more, (layer, head) from 0, and the
              accuracy `without` all of these}
    """
    tokens, targets = (part[:n] for part in data.val)
    part = dataclasses.replace(data, val=(tokens, targets))
    maps = [weights.cpu() for weights in attention_maps(model, tokens)]

    def accuracy(*heads):
        with ablated(model, heads):
            return task_accuracy(model, part)["accuracy"]

    heads_by_layer = enumerate(model.config.heads * model.config.n_loops)
    every = [[(layer, h) for h in range(H)] for layer, H in heads_by_layer]
    without = [[accuracy(head) for head in layer] for layer in every]
    found = dict(accuracy=accuracy(), without=without, steps={})
    for step, link in links(name, tokens, targets, **data.facts["sizes"]).items():
        some = link.any(2)[:, None]  # (B, 1, T): queries that have a link
        given = [(w * link[:, None]).sum(3) for w in maps]  # (B, H, T)
        weight = [((g * some).sum((0, 2)) / some.sum()).tolist() for g in given]
        heads = [head for layer in every for head in layer if weight[head[0]][head[1]] >= 0.5]
        found["steps"][step] = dict(weight=weight, heads=heads, without=accuracy(*heads))
    return found


def parameters(config):
    """GPT(config).num_params() without the memory."""
    with torch.device("meta"):  # shapes alone
        return GPT(config).num_params()


def width_matched(config, params, part="total"):
    """The config with the d_model, a multiple of all heads, and d_ff in proportion, whose `part` of
    num_params() is nearest to `params`; ValueError if the nearest is over 2 % off."""
    unit = math.lcm(*config.heads) * (2 if config.position == "rotary" else 1)

    def wide(n):
        d_ff = round(config.d_ff * n * unit / config.d_model)
        return dataclasses.replace(config, d_model=n * unit, d_ff=d_ff)

    def off(n):
        return parameters(wide(n))[part] - params

    n = bisect.bisect_left(range(1, 2**20 // unit), 0, key=off) + 1
    n = min((n, max(1, n - 1)), key=lambda n: abs(off(n)))
    if abs(off(n)) > 0.02 * params:
        found = f"d_model {n * unit} with {params + off(n):,}"
        raise ValueError(f"no width has {part} {params:,} parameters within 2 %; nearest: {found}")
    return wide(n)


def result(run_dir):
    """A finished run in one flat dict: its settings, last evaluation, `best_val_loss`,
    `tokens_per_second` (median), `params_…` by part and `log`; ValueError if it is not finished."""
    m, t = read_config(run_dir)
    path = os.path.join(run_dir, "log.jsonl")
    with blame(path, "is not the log of a run"), open(path, encoding="utf-8") as f:
        log = [json.loads(line) for line in f]
    if not log or log[-1]["step"] < t.steps:
        raise ValueError(f"{run_dir} is not finished; go on with --resume {run_dir}")
    params = {f"params_{part}": n for part, n in parameters(m).items()}
    row = dataclasses.asdict(m) | dataclasses.asdict(t) | params | log[-1]
    row["tokens_per_second"] = statistics.median(e["tokens_per_second"] for e in log)
    row["best_val_loss"] = min(evaluation["val_loss"] for evaluation in log)
    return row | dict(depth=m.n_layers * m.n_loops, log=log)


def interval(values, level=0.95):
    """(mean, half width) of Student's t interval for the mean; the half width of one is NaN."""
    from scipy.stats import t

    if len(values) < 2:
        return statistics.mean(values), math.nan
    error = statistics.stdev(values) / math.sqrt(len(values))
    return statistics.mean(values), error * t.ppf((1 + level) / 2, len(values) - 1).item()


PUBLISHED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "docs/results/published")


def published(name):
    """A table of the source documents, docs/results/published/NAME.csv, as dicts, its numbers as
    numbers; among them `report_log_1_layers` and `report_log_12_layers`, keyed as log.jsonl is."""
    path = os.path.join(PUBLISHED, f"{name}.csv")
    if not os.path.exists(path):
        known = sorted(file[:-4] for file in os.listdir(PUBLISHED) if file.endswith(".csv"))
        raise ValueError(f"published {name!r} is unknown; choose from {', '.join(known)}")
    with open(path, encoding="utf-8", newline="") as f:
        rows = list(csv.DictReader(f))
    for row in rows:
        for key, value in row.items():
            with contextlib.suppress(ValueError):  # text stays text
                row[key] = float(value) if set(value) & set(".e") else int(value)
    return rows


# ---------- 9. export ----------


def to_gpt2(model):
    """The model as a GPT2LMHeadModel of `transformers` with zero biases; ValueError if it has
    what GPT-2 has not: several head counts, loops, other positions or scales, no MLP."""
    from transformers import GPT2Config, GPT2LMHeadModel

    c = model.config
    plain = dict(n_heads=c.heads[0], position="learned", n_loops=1, attn_scale=None)
    plain |= dict(d_ff=c.d_ff or "0", ffn_dropout=None)
    for name, value in plain.items():
        if getattr(c, name) not in (value, (value,) * c.n_layers):
            raise ValueError(f"GPT-2 cannot express {name} {getattr(c, name)}; it has {value}")
    p = c.dropout
    config = GPT2Config(
        vocab_size=c.vocab_size, n_positions=c.block_size, n_embd=c.d_model, n_inner=c.d_ff,
        n_layer=c.n_layers, n_head=c.heads[0], activation_function="gelu",
        layer_norm_epsilon=1e-5, resid_pdrop=p, embd_pdrop=p, attn_pdrop=p,
        tie_word_embeddings=c.tie_weights, bos_token_id=None, eos_token_id=None,
    )  # fmt: skip
    gpt2 = GPT2LMHeadModel(config)
    names = {"token_embedding": "wte", "position_embedding": "wpe", "blocks": "h", "norm": "ln_f"}
    names |= {"norm1": "ln_1", "norm2": "ln_2", "qkv": "c_attn", "up": "c_fc", "out": "c_proj"}
    weights = {k: torch.zeros_like(v) for k, v in gpt2.state_dict().items()}
    for key, value in model.state_dict().items():
        theirs = "transformer." + ".".join(names.get(part, part) for part in key.split("."))
        linear = "attn" in key or "mlp" in key  # stored transposed there
        weights[theirs] = value.T if linear else value
    weights.pop("transformer.head.weight", None)
    weights["lm_head.weight"] = model.head_weight
    gpt2.load_state_dict(weights)
    return gpt2.eval()


def export_hf(run_dir, out_dir):
    """Write a folder that `transformers` loads as GPT-2, tokenizer and all, without our code."""
    model, tokenizer = load(run_dir)
    if os.path.exists(out_dir) and os.listdir(out_dir):
        raise ValueError(f"{out_dir} is not empty; choose another folder for the export")
    to_gpt2(model).save_pretrained(out_dir)
    tokenizer.save_pretrained(out_dir)
