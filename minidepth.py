"""minidepth: does depth help a Transformer reason, and how would you know?

One file to read top to bottom: the model, sampling and the training loop. Each section uses only
what stands above it.

    python train.py --n_layers 12                            laptop or GPU, as the machine has it
    python train.py --n_layers 1 12 --seed 0 1 2             a grid: six runs, a table, a figure
    python train.py --data icqa --n_layers 1 2               a task that needs two layers
    python train.py --preset report --n_layers 12            the published run, made for 2 x T4
    python train.py --preset report --n_layers 12 --dry_run  its facts; needs no GPU, no network
    torchrun --nproc_per_node 2 train.py --n_layers 12       under DistributedDataParallel

Sections: 1 this text, 2 configuration, 3 model, 4 data, 5 sampling and answer accuracy, 6 training.
Section 4 is made in minidepth_data.py, where text becomes batches, and only imported here; how
settings and files are checked and written is in minidepth_files.py. What we ask of trained models
(tasks, grids, attention, export) is in docs/minidepth_lab.

Dimensions, in comments as (B, T, C)                     example: the report's 12 layers
    B  sequences in a batch                              16
    T  tokens in a sequence, S keys it can look at       512
    C  d_model, the width of the residual stream         384
    H  attention heads in a layer, D = C / H their size  8, 48
    V  words in the vocabulary, rows of the embedding    151,665
    L  layers                                            12
    N  tokens that carry a loss, all sequences together  up to B * T = 8,192
"""

import contextlib
import dataclasses
import functools
import json
import math
import os
import shlex
import statistics
import tempfile
import time
import weakref
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from minidepth_files import (  # noqa: F401  some are only passed on, as names of this file
    MOST,
    STATES,
    RunFolder,
    all_finite,
    blame,
    check_fields,
    check_new,
    check_same_step,
    check_share,
    checksum,
    connect,
    folder_checksum,
    from_json,
    inside,
    locked,
    processes,
    provenance,
    regular,
    settings,
    shard_like,
    shard_model,
    sum_over_processes,
    unshard,
    whole_state,
    whole_weights,
    without_home,
    write_file,
)

# ---------- 2. configuration ----------


def option(default, help, low=None, high=MOST, choices=()):
    """A field with its help text and limits: flags, checks and the docs derive from it, so every
    field needs one. A default of None allows None, which the field's type does not name."""
    return field(default=default, metadata=dict(help=help, low=low, high=high, choices=choices))


@dataclass
class ModelConfig:
    """The architecture. The defaults are the published report's."""

    vocab_size: int = option(0, "rows of the embedding; 0: as many as the tokenizer has words", 0)
    block_size: int = option(512, "tokens in a training sequence", 1)
    n_layers: int = option(12, "layers of weights", 1)
    n_heads: int | tuple = option(8, "attention heads, one number or one per layer: 8,4,2", 1)
    d_model: int = option(384, "width of the residual stream", 1)
    d_ff: int = option(1536, "width inside the feed-forward part; 0: attention only", 0)
    dropout: float = option(0.1, "on embeddings, attention weights and attention output", 0, 0.99)
    ffn_dropout: float = option(None, "on the feed-forward output; unset: as --dropout", 0, 0.99)
    tie_weights: bool = option(True, "the output head shares the token embedding")
    position: str = option("learned", "how order is known", choices=("learned", "rotary", "none"))
    n_loops: int = option(1, "times the stack of layers is applied, with the same weights", 1)
    attn_scale: float = option(None, "factor on attention logits; unset: 1/sqrt(head size)", 1e-9)
    init_std: float = option(0.02, "standard deviation of the initial weights", 1e-9)

    @property
    def heads(self):
        """Heads of each layer, a tuple of n_layers numbers."""
        if isinstance(self.n_heads, int):
            return (self.n_heads,) * self.n_layers
        return tuple(self.n_heads)

    def validate(self):
        """Return self; raise ValueError for what cannot be built."""
        check_fields(self)
        C, heads = self.d_model, self.n_heads
        if isinstance(heads, int):
            heads = (heads,)  # not self.heads: there may be a hundred million layers
        elif len(heads) != self.n_layers:
            what = f"n_heads has {len(heads)} numbers but n_layers is {self.n_layers}"
            raise ValueError(f"{what}; give one number, or one per layer")
        for n in heads:
            if C % n:
                divisors = [d for d in range(1, min(C, 100_000) + 1) if C % d == 0]
                nearest = sorted(divisors, key=lambda d: abs(d - n))[:4]
                near = ", ".join(str(d) for d in sorted(nearest))
                raise ValueError(f"n_heads {n} does not divide d_model {C}; near it {near} do")
            if self.position == "rotary" and C // n % 2:
                raise ValueError(f"head size {C // n} is odd; rotary turns pairs; change n_heads")
        return self


REPORT_DATA = "wop/XXXXXL-chain-of-thought"
PRECISIONS = ("auto", "fp32", "fp16", "bf16")


@dataclass
class TrainConfig:
    """The data and the training. The defaults are the published report's."""

    data: tuple = option((REPORT_DATA,), "'embedded', a task, .jsonl .json .parquet .txt, hub ids")
    sizes: tuple = option((), "of a task or loader, by name: pairs=8,symbols=16; lists: hops=1+2")
    loader: str = option("", "what makes the data: thinking, llmini, packing, reread, or my.py")
    tokenizer: str = option("Qwen/Qwen2.5-0.5B", "hub id, folder, or 'embedded': made from data")
    tokenizer_size: int = option(2048, "most words of an embedded tokenizer", 300, 10**6)
    problem_steps: tuple = option((1, 2, 3), "steps of the embedded problems: 2,3,4", 1, 9)
    ring_questions: int = option(1, "questions about each embedded ring to train on", 1, 99)
    max_rows: int = option(20_000, "most rows taken from each source; 0: all", 0)
    val_fraction: float = option(0.05, "share of a source's rows held out", 0.001, 0.9)
    packing: str = option("pack", "rows end to end, or each padded", choices=("pack", "pad"))
    loss_on: str = option("all", "tokens that carry a loss", choices=("all", "assistant"))
    steps: int = option(500, "optimizer steps", 1)
    epochs: int = option(0, "passes over the data instead of --steps; 0: as --steps says", 0)
    batch_size: int = option(16, "sequences in one forward pass, all GPUs together", 1)
    grad_accum: int = option(1, "forward passes in one optimizer step", 1)
    lr: float = option(3e-4, "peak learning rate", 0)
    lr_floor: float = option(0.1, "share of the peak at which the rate ends", 0, 1)
    warmup_steps: float = option(50, "of rising learning rate; below 1: a share of all steps", 0)
    weight_decay: float = option(0.1, "AdamW's, on matrices and embeddings, not on norms", 0)
    beta1: float = option(0.9, "AdamW's decay rate of the mean gradient", 0, 0.999999)
    beta2: float = option(0.95, "AdamW's decay rate of the mean squared gradient", 0, 0.999999)
    grad_clip: float = option(1.0, "longest gradient, as a norm over all weights", 1e-9)
    device: str = option("auto", "where to train", choices=("auto", "cuda", "mps", "cpu"))
    precision: str = option("auto", "auto: fp16 on CUDA, else fp32", choices=PRECISIONS)
    compile: bool = option(False, "train with torch.compile, a block at a time; one device only")
    grad_checkpoint: bool = option(False, "compute each layer twice, to keep less of it")
    fsdp: bool = option(False, "under torchrun: each process keeps a part of every weight")
    seed: int = option(0, "of the weights, the dropout and the order of the batches", 0, 2**31)
    eval_every: int = option(25, "steps from one evaluation to the next", 1)
    eval_blocks: int = option(64, "validation blocks measured, always the same ones", 1)
    eval_problems: int = option(200, "held-out problems answered at the end", 0)
    watch_problems: int = option(0, "held-out problems answered at every evaluation", 0)
    save_every: int = option(100, "steps from one checkpoint to the next", 1)
    out_dir: str = option("runs", "folder of all runs")
    name: str = option("", "this run's folder in it; empty: made from the settings")

    def validate(self):
        """Return self; raise ValueError for what cannot be run."""
        check_fields(self)
        if self.warmup_steps >= self.steps > 1 and not self.epochs:
            what = f"warmup_steps {self.warmup_steps:g} leaves none of {self.steps} steps"
            raise ValueError(f"{what}; give at most {self.steps - 1}, or more --steps")
        return self


# a preset is what differs from the defaults above; the files of docs/minidepth_lab add theirs
PRESETS = {
    "report": dict(vocab_size=151_665),
    # attention alone: with a feed-forward part some seeds do not learn in this time. How the rest
    # was chosen, and on how many seeds it was tried: docs/tutorials/15_first_run.py
    "laptop": dict(
        block_size=104, n_heads=4, d_model=64, d_ff=0, dropout=0.0, tie_weights=False, init_std=0.1,
        data=("embedded",), ring_questions=3, max_rows=40_000, tokenizer="embedded", packing="pad",
        loss_on="assistant", steps=1100, batch_size=12, grad_accum=3, lr=3e-3, beta1=0.7,
        eval_every=50, eval_problems=600, watch_problems=99,
    ),
}  # fmt: skip


def configs(preset="laptop", **changes):
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
    """Rotary positions (Su et al. 2021): turn the pairs (i, i + D/2) of x (B, H, T, D)."""
    half = x.size(-1) // 2
    position = torch.arange(start, start + x.size(2), device=x.device, dtype=torch.float32)
    exponent = torch.arange(half, device=x.device, dtype=torch.float32) / half  # 0 to 1
    angle = position[:, None] * 10_000**-exponent  # (T, D/2)
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    a, b = x[..., :half], x[..., half:]
    return torch.cat((a * cos - b * sin, a * sin + b * cos), -1)


class Cache:
    """Keys and values (B, H, S, D) of the S tokens that a layer has read, in a buffer for as many
    as there can be, so that a token more does not copy all the others."""

    def __init__(self, most):
        self.length, self.most, self.buffer = 0, most, None

    def append(self, k, v):
        """k and v (B, H, T, D) of T more tokens → those of all tokens."""
        start, self.length = self.length, self.length + k.size(2)
        assert self.length <= self.most, "the cache is full"
        if self.buffer is None:
            self.buffer = k.new_empty(2, *k.shape[:2], self.most, k.size(3))
        self.buffer[0, :, :, start : self.length] = k
        self.buffer[1, :, :, start : self.length] = v
        return self.buffer[:, :, :, : self.length].unbind(0)


class Attention(nn.Module):
    def __init__(self, config, n_heads):
        super().__init__()
        C = config.d_model
        self.n_heads = n_heads
        self.p = config.dropout
        self.rotary = config.position == "rotary"
        self.scale = config.attn_scale or (C // n_heads) ** -0.5
        self.qkv = nn.Linear(C, 3 * C, bias=False)  # one matrix product for all three
        self.out = nn.Linear(C, C, bias=False)

    def project(self, x, start=0):
        """x (B, T, C), whose first token has position `start` → q, k, v, each (B, H, T, D)."""
        B, T, _ = x.shape
        q, k, v = self.qkv(x).view(B, T, 3, self.n_heads, -1).permute(2, 0, 3, 1, 4)
        if self.rotary:
            q, k = rotate(q, start), rotate(k, start)
        return q, k, v

    def forward(self, x, cache=None):
        p = self.p if self.training else 0.0
        q, k, v = self.project(x, cache.length if cache else 0)
        if cache:  # the keys and values of the tokens before x come first
            k, v = cache.append(k, v)
        slow = p and x.device.type == "cpu"  # with dropout the fused kernel is slower on a CPU
        if slow or 1 < q.size(2) < k.size(2):  # is_causal counts queries from key 0
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
        self.norm1 = nn.LayerNorm(config.d_model)
        self.attn = Attention(config, n_heads)
        self.has_mlp = config.d_ff > 0
        if self.has_mlp:
            self.norm2 = nn.LayerNorm(config.d_model)
            self.mlp = MLP(config)

    def forward(self, x, cache=None):
        x = x + self.attn(self.norm1(x), cache)
        if self.has_mlp:
            x = x + self.mlp(self.norm2(x))
        return x


LOGITS_AT_ONCE = 2**26  # in float32 256 MB
CPU_ROWS = 256  # fewer would pass over dweight too often, more need memory for little speed
HALF_ROWS = 1024  # fp16 ends at 65,504, which so many products stay below if none is above 63


def chunked_loss(h, weight, targets, grads=True):
    """Cross-entropy of h @ weight^T and its gradients, a few rows at a time.

    h (N, C), weight (V, C), targets (N,) → nll (N,), dh (N, C), dweight (V, C): the gradients of
    sum(nll). All (N, V) logits would be 5 GB at the report's size; here `rows` of them live at a
    time, and give their gradient before they go.
    """
    N, V = len(h), len(weight)
    exact = torch.promote_types(h.dtype, torch.float32)  # a softmax in half precision would round
    rows = max(64, min(N, LOGITS_AT_ONCE // V))
    if h.device.type == "cpu":
        rows = min(rows, CPU_ROWS)
    if h.dtype != exact:
        rows = min(rows, HALF_ROWS)
    nll, dh, dweight = torch.empty(N, dtype=exact, device=h.device), None, None
    if grads:
        dh, dweight = torch.empty_like(h), torch.zeros_like(weight, dtype=exact)
    for i in range(0, N, rows):
        logits = log_p = d = None  # free the last rows' buffers, or two sets are alive at once
        x, target = h[i : i + rows], targets[i : i + rows, None]
        logits = (x @ weight.T).to(exact)  # (rows, V)
        log_p = torch.log_softmax(logits, 1, out=logits)  # in place: one buffer for all
        nll[i : i + rows] = -log_p.gather(1, target).squeeze(1)
        if not grads:
            continue
        d = log_p.exp_()  # the softmax p, and then its gradient p - one-hot
        d.scatter_add_(1, target, d.new_full(target.shape, -1.0))
        d = d.to(h.dtype)  # entries of at most 1: no overflow before the loss scale comes in
        torch.mm(d, weight, out=dh[i : i + rows])
        if d.dtype == exact:
            dweight.addmm_(d.T, x)
        else:
            dweight += d.T @ x  # products in half precision, their sum in single
    return nll, dh, dweight


class HeadLoss(torch.autograd.Function):
    """chunked_loss in `dtype`, differentiable: (h, weight, targets, dtype, grads) → nll (N,).

    The gradients are formed on the way forward, for tokens of equal weight, all that training asks
    for; RuntimeError for other weights, and for a second way back.
    """

    @staticmethod
    def forward(ctx, h, weight, targets, dtype, grads):
        nll, *ctx.ready = chunked_loss(h.to(dtype), weight.to(dtype), targets, grads)
        ctx.types = h.dtype, weight.dtype
        return nll

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        if ctx.ready is None or (g != g[:1]).any():
            raise RuntimeError("the head's loss goes back once, with one weight for all its tokens")
        dh, dweight = ctx.ready
        ctx.ready = None
        scale = g[:1].sum()  # the loss scale over the token count; 0 where no token has a loss
        h_type, weight_type = ctx.types
        return dh.to(h_type).mul_(scale), dweight.to(weight_type).mul_(scale), None, None, None


def last_logits(x, weight):
    """x (B, C), weight (V, C) → logits (B, V), for few rows of x.

    x @ weight^T, with the factors the other way round and never a single row: at the report's size
    a CPU takes a quarter of the time for one row, an eighth for two.
    """
    rows = x.repeat(2, 1) if len(x) == 1 else x
    return (weight @ rows.T).T[: len(x)]


class GPT(nn.Module):
    """tokens (B, T) int64 → logits (B, T, V), with a cache those of the last token, (B, 1, V);
    with targets (B, T) → loss_sum, n_tokens, each (B,)."""

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
        self.half = None  # autocast dtype, set by Run
        self.compiled = None  # torch.compile's forms of the blocks, set by Run
        self.checkpointed = False  # whether layers are computed twice, set by Run
        self.n_words = c.vocab_size  # ids from here on belong to no word and are never sampled
        self.init_weights()
        n = sum(p.numel() for p in self.parameters())
        assert n == parameters(c)["total"], "parameters() does not count what the model has"

    @torch.no_grad()
    def init_weights(self):
        """The table of GPT-2 in `transformers`, with init_std 0.02:

        embeddings, qkv, up, head   normal, init_std
        attn.out, mlp.out           normal, init_std / sqrt(additions to the residual stream)
        norms                       weight 1, bias 0, as they are made: what has "norm" in its name
        """
        c = self.config
        additions = c.n_layers * c.n_loops * (2 if c.d_ff else 1)
        for name, w in self.named_parameters():
            if name.endswith("out.weight"):
                w.normal_(0, c.init_std / additions**0.5)
            elif "norm" not in name:
                w.normal_(0, c.init_std)

    def num_params(self):
        """Parameters by part, as parameters() counts them."""
        return parameters(self.config)

    @property
    def head_weight(self):
        """(V, C)"""
        if self.config.tie_weights:
            return self.token_embedding.weight
        return self.head.weight

    def hidden(self, tokens, cache=None):
        """The residual stream after the last norm, (B, T, C). In `cache`, a Cache for each time a
        layer is applied, keys and values gather: the next call goes on where this one ends."""
        c, T = self.config, tokens.size(1)
        start = cache[0].length if cache else 0
        # the head has made a dense gradient (V, C) of a tied weight: a sparse one saves a second
        sparse = c.tie_weights and tokens.device.type == "cpu"
        x = F.embedding(tokens, self.token_embedding.weight, sparse=sparse)  # (B, T, C)
        if c.position == "learned":
            if start + T > c.block_size:
                raise ValueError(f"{start + T} tokens do not fit block_size {c.block_size}")
            x = x + self.position_embedding.weight[start : start + T]
        x = dropout(x, c.dropout, self.training)
        layers = self.compiled if self.compiled and self.training else self.blocks
        for i in range(c.n_loops * c.n_layers):  # looped: the same weights again (arXiv 2502.17416)
            layer = layers[i % c.n_layers]
            if self.checkpointed and torch.is_grad_enabled():
                layer = functools.partial(checkpoint, layer, use_reentrant=False)
            x = layer(x, cache[i] if cache else None)
        return self.norm(x)

    def forward(self, tokens, targets=None, cache=None):
        # DataParallel's threads inherit "autocast on" but not its dtype: so it is entered here
        with torch.autocast(tokens.device.type, self.half, enabled=self.half is not None):
            x = self.hidden(tokens, cache)  # (B, T, C)
            if cache:  # who generates needs the last token's logits alone
                return last_logits(x[:, -1], self.head_weight)[:, None]
            if targets is None:
                return F.linear(x, self.head_weight)
        # sums and counts leave, no means: so 1, 2 or uneven shards give the same gradient.
        # tokens without a target are left out before the head, the costliest part
        has_target = targets != -100  # (B, T)
        where = has_target.nonzero(as_tuple=True)  # its sequence and place, each (N,)
        dtype, grads = self.half or x.dtype, torch.is_grad_enabled()
        nll = HeadLoss.apply(x[where], self.head_weight, targets[where], dtype, grads)
        loss_sum = nll.new_zeros(len(tokens)).index_add(0, where[0], nll)
        return loss_sum.float(), has_target.sum(1).float()


def parameters(config):
    """Parameters of GPT(config) by part, counted without building it; `head` is 0 when tied,
    `final_norm` closes the sum to `total`."""
    c = config.validate()
    C = c.d_model
    block = 4 * C * C + 2 * C  # qkv, out and the norm before them
    if c.d_ff:
        block += 2 * C * c.d_ff + 2 * C
    n = dict(embedding=c.vocab_size * C)
    n["position"] = c.block_size * C if c.position == "learned" else 0
    n["blocks"] = c.n_layers * block
    n["head"] = 0 if c.tie_weights else c.vocab_size * C
    n["final_norm"] = 2 * C
    return dict(total=sum(n.values()), **n)


def in_eval_mode(function):
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


# ---------- 4. data: minidepth_data.py makes it; its names are names of this file too ----------

from minidepth_data import (  # noqa: E402, F401
    FAMILIES,
    FILES,
    Data,
    batch_rows,
    blocks,
    embedded_problem,
    embedded_rows,
    encode,
    filled,
    final_answer,
    generator,
    hub_rows,
    load_data,
    load_tokenizer,
    make_data,
    problem_of,
    read_file,
    read_source,
    segments,
    turn_end,
    turns_of,
)

# ---------- 5. sampling and answer accuracy ----------


@in_eval_mode
def generate(
    model, tokens, max_new_tokens, temperature=1.0, top_k=None, seed=None, eos=None, known=None
):
    """Continue tokens (B, T) int64 by up to max_new_tokens → (B, at most T + max_new_tokens).

    temperature 0 takes the likeliest word; top_k keeps the k likeliest. A row that has drawn
    `eos` is filled with it; the call ends when every row has, and with learned positions where
    the block does. Ids that belong to no word (model.n_words and above) are never drawn. Prompts
    of different lengths: `known` (B, K) int64 is what follows `tokens` in each of them, -1 where
    the model speaks.
    """
    if not temperature >= 0 or (top_k is not None and top_k < 1):
        raise ValueError(f"temperature {temperature} must be at least 0, top_k {top_k} at least 1")
    c, draw = model.config, torch.Generator()
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


def prompt_ids(tokenizer, messages):
    """A conversation as a list of token ids, up to where the assistant begins to speak."""
    parts = segments(dict(messages=messages), tokenizer)
    parts.append(("<|im_start|>assistant\n", False))
    ids, _ = next(encode([parts], tokenizer))
    return ids


ANSWERED_AT_ONCE = 100  # each problem keeps its keys and values: the report's 9 MB in FP16


def answer_texts(model, tokenizer, problems, max_new_tokens=256, temperature=0, **sampling):
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
        tokens = generate(model, tokens, most, temperature, eos=eos, known=known, **sampling)
        for i, ids in zip(some, tokens.tolist()):
            said = ids[len(prompts[i]) : len(prompts[i]) + max_new_tokens]
            texts[i] = tokenizer.decode(said[: said.index(eos)] if eos in said else said)
    return texts


def answers_right(model, tokenizer, problems, **sampling):
    """For each of the problems whether its final_answer() is exactly the right one, 1.0 or 0.0."""
    texts = answer_texts(model, tokenizer, problems, **sampling)
    return [float(final_answer(text) == p["answer"]) for text, p in zip(texts, problems)]


def answer_accuracy(model, tokenizer, problems, **sampling):
    """Share of the problems, from 0 to 1, whose final_answer() is exactly the right one."""
    return statistics.mean(answers_right(model, tokenizer, problems, **sampling) or [0.0])


def measure_answers(model, tokenizer, problems):
    """What a log says of problems: {"accuracy", "answers": 1 or 0 for each of them}, and where
    there are several kinds {"accuracy_by_family", "accuracy_by_problem"}, a family and its steps.
    """
    right = answers_right(model, tokenizer, problems)
    found = dict(accuracy=statistics.mean(right), answers="".join(f"{r:.0f}" for r in right))
    families = [str(problem.get("family", "other")) for problem in problems]
    lengths = [f"{family} {p.get('steps', 'other')}" for family, p in zip(families, problems)]
    for key, kinds in (("accuracy_by_family", families), ("accuracy_by_problem", lengths)):
        groups = {}
        for kind, correct in zip(kinds, right):
            groups.setdefault(kind, []).append(correct)
        if len(groups) > 1:
            found[key] = {kind: statistics.mean(groups[kind]) for kind in sorted(groups)}
    return found


# ---------- 6. training ----------


def lr_at(step, config):
    """Learning rate of the 0-based step: a line from 0 to the peak, half a cosine to the floor.
    A pure function, so skipped steps and resumed runs change nothing."""
    warmup = config.warmup_steps
    if warmup < 1:
        warmup = min(round(warmup * config.steps), config.steps - 1)
    if step < warmup:
        return config.lr * step / warmup
    floor = config.lr * config.lr_floor
    done = (step - warmup) / (config.steps - warmup)
    return floor + 0.5 * (1 + math.cos(math.pi * done)) * (config.lr - floor)


def complete_configs(m, t, data):
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
        what = f"vocab_size {m.vocab_size} is less than the data's {data.n_words} words"
        raise ValueError(f"{what}; give at least that, or 0")
    return m, t


def pick_device(name):
    """`device` of a TrainConfig → torch.device; ValueError if it is not there or does not run."""
    there = dict(cuda=torch.cuda.is_available(), mps=torch.backends.mps.is_available(), cpu=True)
    if name == "auto":
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


def pick_precision(name, device):
    """`precision` of a TrainConfig → autocast dtype, None for fp32."""
    if name == "auto":
        name = "fp16" if device.type == "cuda" else "fp32"
    # is_bf16_supported() says yes on a T4, which only emulates it
    if name == "bf16" and device.type == "cuda" and torch.cuda.get_device_capability() < (8, 0):
        raise ValueError("precision bf16 needs an Ampere GPU or newer; use --precision fp16")
    return dict(fp32=None, fp16=torch.float16, bf16=torch.bfloat16)[name]


def parallel(model, device, say=print, fsdp=False):
    """The model itself, or wrapped for several GPUs or the processes of torchrun."""
    world, gpus = processes()[1], torch.cuda.device_count()
    if world > 1:
        connect(device)
        if fsdp:
            say(f"Each of {world} processes keeps a part of every weight")
            return shard_model(model, model.blocks, device)
        say(f"Wrapping model with DistributedDataParallel over {world} processes")
        return nn.parallel.DistributedDataParallel(model)
    if device.type == "cuda" and gpus > 1:
        say(f"Wrapping model with DataParallel over {gpus} GPUs")
        return nn.DataParallel(model)
    return model


def make_optimizer(model, config):
    """AdamW in its fused form; weight decay on matrices and embeddings, not on norms."""
    matrices = [p for p in model.parameters() if p.dim() > 1]
    norms = [p for p in model.parameters() if p.dim() == 1]
    groups = [dict(params=matrices), dict(params=norms, weight_decay=0.0)]
    betas, decay = (config.beta1, config.beta2), config.weight_decay
    return torch.optim.AdamW(groups, config.lr, betas, weight_decay=decay, fused=True)


def by_length(tokens, targets, n):
    """(tokens, targets), each (B, T), in parts of n sequences that are about as long, each part cut
    behind its last target: what follows cannot change a causal model's loss."""
    ends = (targets != -100).flip(1).int().argmax(1)  # (B,), places after the last target, or 0
    order = ends.argsort(descending=True, stable=True)
    for rows in order.split(n):
        length = targets.size(1) - int(ends[rows].min())
        yield tokens[rows, :length], targets[rows, :length]


def train_step(wrapped, optimizer, scaler, tokens, targets, lr, config):
    """One optimizer step on tokens and targets (grad_accum * batch_size, T) → this process's share
    of the mean loss, and whether the step was skipped for an infinite or NaN gradient."""
    rank, world = processes()
    device, loss = next(wrapped.parameters()).device, 0.0
    # loss sums are divided by the count of the whole step, which every process can see: so
    # accumulation, DataParallel's uneven shards and processes all give the full batch's gradient
    n_targets = max(1, int((targets != -100).sum()))
    for group in optimizer.param_groups:
        group["lr"] = lr
    optimizer.zero_grad(set_to_none=True)
    parts = list(by_length(tokens, targets, config.batch_size))
    for i, (x, y) in enumerate(parts):
        x, y = x[rank::world].to(device), y[rank::world].to(device)
        # DistributedDataParallel asks for this: gradients are added up once, with the last part
        wrapped.require_backward_grad_sync = i + 1 == len(parts)
        loss_sum, _ = wrapped(x, y)  # (B,), gathered from all GPUs
        share = loss_sum.sum() / n_targets
        scaler.scale(share * world).backward()  # DistributedDataParallel averages: hence `world`
        loss += share.item()
    scaler.unscale_(optimizer)  # before clipping, which is about the true gradient
    norm = nn.utils.clip_grad_norm_(wrapped.parameters(), config.grad_clip)
    skipped = not norm.isfinite()
    if not skipped:
        scaler.step(optimizer)
    scaler.update()  # in FP16 it halves the loss scale after an infinite gradient
    return loss, skipped


@in_eval_mode
def mean_loss(model, part, n_blocks, batch_size):
    """Mean loss per token, without dropout, of the first n_blocks of (tokens, targets)."""
    device = next(model.parameters()).device
    some = (torch.as_tensor(each[:n_blocks]).long() for each in part)
    found = [model(x.to(device), y.to(device)) for x, y in by_length(*some, batch_size)]
    sums, counts = (torch.cat(each).cpu().double() for each in zip(*found))
    return (sums.sum() / counts.sum().clamp(min=1)).item()


def train_loss_eval(model, data, n_blocks, batch_size):
    """mean_loss() of always the same blocks of what is trained on: a batch's loss is noisy and has
    dropout on, this has neither."""
    some = torch.randperm(len(data.train[0]), generator=generator("train_loss_eval"))
    part = [each[some[:n_blocks].numpy()] for each in data.train]
    return mean_loss(model, part, n_blocks, batch_size)


def read_config(run_dir):
    """(ModelConfig, TrainConfig) of a run folder; ValueError if it is none."""
    path = inside(run_dir, "config.json")
    with blame(path, "is not the configuration of a run"):
        with open(regular(path), encoding="utf-8") as f:
            saved = from_json(json.load(f))
        return ModelConfig(**saved["model"]).validate(), TrainConfig(**saved["train"]).validate()


def saved_tokenizer(run_dir, checked=None):
    """The tokenizer of a run folder; None where it has none, as the depth tasks'. ValueError if
    its files are not those of the folder_checksum() `checked`, if given."""
    folder = os.path.join(run_dir, "tokenizer")
    if not os.path.isdir(folder):
        return None
    found = folder_checksum(inside(run_dir, "tokenizer"))
    if checked and found != checked:
        raise ValueError(f"{folder} cannot be read: a file in it is damaged")
    return load_tokenizer(folder)


def load(run_dir):
    """(model, tokenizer) of a run folder, on the CPU, in eval mode, the tokenizer None for a task;
    ValueError if it is broken."""
    m, t = read_config(run_dir)
    path = inside(run_dir, "model.safetensors")
    with blame(path, "is not a checkpoint of this model"):
        # before memory is taken for what a damaged config.json describes
        weights, about = whole_weights(path, settings(m, t), parameters(m)["total"])
        model = GPT(m).eval()
        model.load_state_dict(weights)
        if not model(torch.arange(min(m.vocab_size, m.block_size, 64))[None]).isfinite().all():
            raise ValueError("it has diverged: what it says is infinite or NaN")
    tokenizer = saved_tokenizer(run_dir, about.get("tokenizer"))
    if tokenizer:
        model.n_words = len(tokenizer)
    return model, tokenizer


class Diverged(RuntimeError):
    """Gradients or weights became infinite or NaN; the message says what to change."""


GENTLER = "lower --lr or raise --warmup_steps"
MOST_SKIPPED = 25  # in a row: GradScaler starts at 2^16, so after 16 halvings it is not the cause


class Run:
    """A training run: what its steps need, what a checkpoint keeps of it, what train() returns.

    dir, model, tokenizer (None for a task); log, the rows of log.jsonl; finished. How its folder is
    written and read again: RunFolder in minidepth_files.py
    """

    def __init__(self, m, t, data, folder, say):
        self.t, self.data, self.dir, self.log = t, data, folder, []
        self.tokenizer, self.folder = data.tokenizer, RunFolder(folder, m, t, data)
        self.device = pick_device(t.device)
        # of several processes the first one evaluates and writes; with --fsdp it needs the others
        self.first = processes()[0] == 0
        self.takes_part = self.first or t.fsdp
        half = pick_precision(t.precision, self.device)
        torch.manual_seed(t.seed)
        self.model = GPT(m)
        self.model.n_words, self.model.half = data.n_words, half
        if t.compile:  # blocks are alike: what is compiled for the first one serves all
            self.model.compiled = [torch.compile(block) for block in self.model.blocks]
        self.model.checkpointed = t.grad_checkpoint
        self.wrapped = parallel(self.model.to(self.device).train(), self.device, say, t.fsdp)
        self.optimizer = make_optimizer(self.model, t)
        # multiplies the loss, so that gradients below fp16's smallest number are not lost
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=half == torch.float16)
        self.now = dict(step=0, skipped=0, in_a_row=0)
        self.began, self.busy, self.tokens = time.perf_counter(), 0.0, 0

    @property
    def finished(self):
        return self.now["step"] >= self.t.steps

    def start(self, resume, command, say):
        """Begin the run's folder, or go on from what it holds; ValueError if that is all done."""
        if resume and os.path.exists(self.folder.file("config.json")):
            self.folder.restore(self.take, say)
        elif self.first:
            self.folder.begin(command, self.device)
        check_same_step(self.now["step"], self.device, self.dir)
        if self.finished:
            if self.first:  # it lacks a line if the run died after its last checkpoint
                self.folder.write_log(self.log)
            steps = self.t.steps
            raise ValueError(f"{self.dir} is finished: {steps} of {steps} steps are done")

    def last_words(self):
        """What is said of the run when its training ends, for now or for good."""
        if not self.finished:
            go_on = f"go on with: python train.py --resume {shlex.quote(self.dir)}"
            return f"Stopped after step {self.now['step']}; {go_on}"
        loss, seconds = self.log[-1]["train_loss"], self.log[-1]["seconds"]
        return f"Done. Final train loss: {loss:.4f} | total time {seconds:.0f}s"

    def save(self):
        """Keep what the run is after a step. All processes call this alike: with --fsdp each has a
        part of every weight; the first one writes."""
        self.now["seconds"] = time.perf_counter() - self.began
        state = dict(now=self.now, log=self.log, data=self.data.state)
        state |= dict(model=unshard(self.model.state_dict()), scaler=self.scaler.state_dict())
        state["optimizer"] = unshard(self.optimizer.state_dict())
        if not self.first:
            return
        if not all_finite(state["model"]):
            raise Diverged(f"weights are infinite or NaN after step {self.now['step']}; {GENTLER}")
        self.folder.save(state)

    def take(self, state):
        """Be the run that save() kept; any error where the state is of another model."""
        self.model.load_state_dict(shard_like(state["model"], self.model.state_dict()))
        own = [p for group in self.optimizer.param_groups for p in group["params"]]
        moments = shard_like(state["optimizer"]["state"], dict(enumerate(own)))
        self.optimizer.load_state_dict(state["optimizer"] | dict(state=moments))
        if state["scaler"]:  # empty after fp32, which may go on in fp16
            self.scaler.load_state_dict(state["scaler"])
        self.now, self.log, self.data.state = state["now"], state["log"], state["data"]
        self.began -= self.now["seconds"]

    def step(self, tokens, targets, lr):
        """train_step(), timed and counted → the loss; Diverged after too many without an update."""
        now, began = self.now, time.perf_counter()
        parts = self.wrapped, self.optimizer, self.scaler
        loss, skipped = train_step(*parts, tokens, targets, lr, self.t)
        self.busy += time.perf_counter() - began
        self.tokens += tokens.numel()
        now["step"] += 1
        now["skipped"] += skipped
        now["in_a_row"] = now["in_a_row"] + 1 if skipped else 0
        if now["in_a_row"] >= MOST_SKIPPED:
            what = f"infinite or NaN for {MOST_SKIPPED} steps, up to step {now['step']}"
            advice = GENTLER + (", or use --precision fp32" if self.model.half else "")
            if self.takes_part and all_finite(unshard(self.model.state_dict())):
                self.save_before(MOST_SKIPPED)
                advice += f"; {self.dir} holds the last good state, of step {now['step']}"
            raise Diverged(f"the gradient was {what}; {advice}")
        return loss

    def save_before(self, n):
        """Save what the run was, but for the loss scale, before its last n steps, all skipped."""
        self.now |= dict(step=self.now["step"] - n, skipped=self.now["skipped"] - n, in_a_row=0)
        self.log = [row for row in self.log if row["step"] <= self.now["step"]]
        self.save()

    def evaluate(self, lr, loss):
        """Add to the log what is known after a step that had this rate and this loss."""
        t, data, model, step = self.t, self.data, self.model, self.now["step"]
        how_much = t.eval_blocks, t.batch_size
        row = dict(step=step, epoch=1, lr=lr, train_loss=loss)
        if not data.fresh:
            row["epoch"] = (step - 1) * t.batch_size * t.grad_accum // len(data.train[0]) + 1
        row["val_loss"] = mean_loss(model, data.val, *how_much)
        if step == t.steps and not math.isfinite(row["val_loss"]):  # what was saved before stays
            raise Diverged(f"the loss is infinite or NaN at the last step, {step}; {GENTLER}")
        if data.val_by_source:
            parts = data.val_by_source.items()
            row["val_loss_by_source"] = {k: mean_loss(model, part, *how_much) for k, part in parts}
        row |= data.measure(model)
        n_asked = t.eval_problems if step == t.steps else t.watch_problems
        if problems := data.problems[:n_asked]:
            row |= measure_answers(model, self.tokenizer, problems)
        if step == t.steps:
            row["train_loss_eval"] = train_loss_eval(model, data, *how_much)
            for key in ("guess", "shortcut"):  # what the accuracy is to be compared with
                if key in data.facts:
                    row[key] = data.facts[key]
        row["seconds"] = round(time.perf_counter() - self.began, 2)
        row["skipped_steps"] = self.now["skipped"]
        row["tokens_per_second"] = round(self.tokens / self.busy)
        self.busy, self.tokens = 0.0, 0  # seconds of training and tokens, up to the next row
        self.log.append(row)


def log_line(row, config):
    """A row of the log as it is printed, in the report's own format."""
    where = f"epoch {row['epoch']} step {row['step']}/{config.steps} lr {row['lr']:.2e}"
    losses = f"train {row['train_loss']:.4f} val {row['val_loss']:.4f}"
    line = f"{where} {losses} ({row['seconds']:.0f}s)"
    if "accuracy" in row:
        line += f" right {row['accuracy']:.2f}"
    return line


def train(
    model_config, train_config, data=None, resume=False, command=None, stop=lambda: False,
    quiet=False,
):  # fmt: skip
    """Train one model and write its run folder → Run.

    `data`, from load_data(), is loaded if not given. `resume` goes on from the checkpoint, on the
    CPU to the same losses, bit for bit, as if it had never stopped. stop() is asked after each
    step; if true the run is saved and returned. `quiet` prints nothing and trains in a temporary
    folder, which goes when the Run does. Under torchrun every process calls this alike.
    ValueError for settings that cannot work, a folder that exists, is finished or is trained in by
    another process; Diverged if gradients stay infinite, or the loss is so in the end.
    """
    from tqdm import tqdm

    m, t = model_config.validate(), train_config.validate()
    rank, world = processes()
    silent = quiet or rank > 0
    say = (lambda line: None) if silent else tqdm.write  # a print that spares the progress bar
    check_share(t.batch_size)
    if quiet:
        temporary = tempfile.TemporaryDirectory()  # gone with the Run, or if none comes of it
        t = dataclasses.replace(t, out_dir=temporary.name)
    folder = os.path.join(t.out_dir, t.name or f"{m.n_layers}-layers-seed-{t.seed}")
    data = data or load_data(t, m.block_size, saved_tokenizer(folder) if resume else None)
    data = dataclasses.replace(data, seed=t.seed, state=dict(data.state))
    m, t = complete_configs(m, t, data)
    run = Run(m, t, data, folder, say)
    if quiet:
        weakref.finalize(run, temporary.cleanup)
    os.makedirs(folder, exist_ok=True)
    lock = locked(folder) if run.first else contextlib.nullcontext()
    with lock, tqdm(total=t.steps, disable=silent or None) as bar:
        run.start(resume, command, say)
        bar.update(run.now["step"])
        for step in range(run.now["step"], t.steps):  # from 0; in Run and the log from 1
            # everything random in a step is a function of (seed, step): nothing to store
            torch.manual_seed(generator(t.seed, step, rank).initial_seed())
            tokens, targets = data.draw(step, t.batch_size * t.grad_accum)
            lr = lr_at(step, t)
            loss = run.step(tokens, targets, lr)
            loss, stopping = sum_over_processes(loss, stop(), run.device)
            if not run.now["in_a_row"]:  # not of skipped steps, which save_before() may take back
                data.after_step(loss)
            bar.update()
            last = step + 1 == t.steps
            evaluating = last or step == 0 or (step + 1) % t.eval_every == 0
            if run.takes_part and evaluating:
                run.evaluate(lr, loss)
            if run.takes_part and (last or stopping or (step + 1) % t.save_every == 0):
                run.save()
            if run.first and evaluating:  # after the save: a finished log has its weights
                run.folder.write_log(run.log)
                say(log_line(run.log[-1], t))
            if stopping:
                break
        if run.first and world > 1 and t.fsdp:  # the first goes on alone, and has only its part
            run.model, _ = load(folder)
        run.model.eval()
        if run.first:
            say(run.last_words())
        return run


# ---------- the main job ends here; docs/minidepth_lab holds what we ask of the models ----------
