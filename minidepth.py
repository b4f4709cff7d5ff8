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
    N  tokens that carry a loss, all sequences together  up to B * T = 8,192
"""

import array
import contextlib
import dataclasses
import itertools
import json
import math
import os
import random
import re
import statistics
import time
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

__version__ = "0.3"

# ---------- settings: the defaults are the published report's ----------


def option(
    default: object, help: str, low: float | None = None, high: float = 2**53, choices: tuple = ()
) -> Any:
    """A setting with its help text and its limits: the command's flags, the checks and the pages
    derive from it. Up to 2**53 floats, and with them JSON everywhere, count exactly."""
    return field(default=default, metadata=dict(help=help, low=low, high=high, choices=choices))


def check_limits(config: Any) -> None:
    """ValueError for a setting beyond its limits, or that is none of its choices."""
    for f in dataclasses.fields(config):
        low, high, choices = (f.metadata[name] for name in ("low", "high", "choices"))
        value = getattr(config, f.name)
        for part in value if isinstance(value, tuple) else (value,):
            fits = part in choices if choices else low is None or low <= part <= high
            if not fits:
                wanted = ", ".join(choices) or f"{low} to {high:g}"
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
        check_limits(self)
        if self.d_model % self.n_heads:
            wrong = f"n_heads {self.n_heads} does not divide d_model {self.d_model}"
            raise ValueError(f"{wrong}; give {math.gcd(self.n_heads, self.d_model)}, say")
        return self


@dataclass
class TrainConfig:
    """The data and the training. The defaults are the published report's."""

    data: str = option("wop/XXXXXL-chain-of-thought", "'embedded', a .jsonl file, or a hub id")
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
    device: str = option("auto", "where to train", choices=("auto", "cuda", "cpu"))
    precision: str = option(
        "auto", "auto: fp16 on CUDA, else fp32", choices=("auto", "fp32", "fp16", "bf16")
    )
    seed: int = option(0, "of the weights, the dropout and the order of the batches", 0, 2**31)
    eval_every: int = option(25, "steps from one evaluation to the next", 1)
    eval_blocks: int = option(64, "validation blocks measured, always the same ones", 1)
    eval_problems: int = option(200, "held-out problems answered at the end", 0)
    watch_problems: int = option(0, "held-out problems answered at every evaluation", 0)
    save_every: int = option(100, "steps from one checkpoint to the next", 1)

    def validate(self) -> "TrainConfig":
        """Return self; ValueError for what cannot be run."""
        check_limits(self)
        steps = self.lr_steps or self.steps
        if self.warmup_steps >= steps:
            rise = f"warmup_steps {self.warmup_steps:g}"
            raise ValueError(f"{rise} leaves none of {steps} steps; give fewer, or a share: 0.1")
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


def configs(preset: str = "laptop", **changes: Any) -> tuple[ModelConfig, TrainConfig]:
    """(ModelConfig, TrainConfig) of a preset, changed; ValueError for what is unknown."""
    if preset not in PRESETS:
        raise ValueError(f"preset {preset!r} is unknown; choose from {', '.join(PRESETS)}")
    values, made = PRESETS[preset] | changes, []
    # the report warms up for 50 steps, a tenth of its run; a run too short for that for a tenth
    if values.get("steps") in range(51):
        values.setdefault("warmup_steps", 0.1)
    for kind in (ModelConfig, TrainConfig):
        names = {f.name for f in dataclasses.fields(kind)} & values.keys()
        made.append(kind(**{name: values.pop(name) for name in names}).validate())
    if values:
        raise ValueError(f"setting {', '.join(values)} is unknown")
    return tuple(made)


# ---------- model: a pre-norm GPT, twin of transformers' GPT-2 ----------


# cuDNN's attention makes a plan for each length: 39 of the 41 ms that a generated token took on an
# H100, whose lengths are all new. PyTorch's other fused kernels have none to make
torch.backends.cuda.enable_cudnn_sdp(False)


class Attention(nn.Module):
    """Causal self-attention: each token asks the tokens up to itself. x (B, T, C) → (B, T, C)"""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        C, self.n_heads, self.p = config.d_model, config.n_heads, config.dropout
        self.qkv = nn.Linear(C, 3 * C, bias=config.bias)  # one matrix product for all three
        self.out = nn.Linear(C, C, bias=config.bias)  # mixes what the heads have found
        self.drop = nn.Dropout(config.dropout)

    def forward(self, x: torch.Tensor, cache: dict | None = None) -> torch.Tensor:
        B, T, C = x.shape
        # (B, T, 3 C) → (B, T, 3, H, D) → three of (B, H, T, D)
        q, k, v = self.qkv(x).view(B, T, 3, self.n_heads, -1).permute(2, 0, 3, 1, 4)
        if cache:  # the keys and values of the tokens before x come first: (B, H, S, D)
            k, v = torch.cat((cache["k"], k), 2), torch.cat((cache["v"], v), 2)
        if cache is not None:
            cache.update(k=k, v=v)
        # softmax(q k^T / sqrt(D)) v without storing the (T, S) weights. q k^T adds D products, so
        # its spread grows as sqrt(D): divided by that, the softmax is about as sharp for a head of
        # any size. No token sees a later one; a single one is the last, and sees every key
        p = self.p if self.training else 0.0  # the fused kernel does not know the mode
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=p, is_causal=T > 1)
        return self.drop(self.out(y.transpose(1, 2).reshape(B, T, C)))  # heads side by side


class Layer(nn.Module):
    """What attention finds, then what the feed-forward part makes of it, each token by itself, is
    added to the residual stream x (B, T, C). Each reads a normalised copy, so that the stream may
    grow."""

    def __init__(self, config: ModelConfig, attention: Callable = Attention) -> None:
        super().__init__()
        c, C = config, config.d_model
        self.norm1, self.attn = nn.LayerNorm(C), attention(c)
        self.has_mlp = c.d_ff > 0  # the depth tasks are attention alone
        if self.has_mlp:
            up, out = nn.Linear(C, c.d_ff, bias=c.bias), nn.Linear(c.d_ff, C, bias=c.bias)
            parts = dict(up=up, gelu=nn.GELU(), out=out, drop=nn.Dropout(c.dropout))
            self.norm2, self.mlp = nn.LayerNorm(C), nn.Sequential(OrderedDict(parts))

    def forward(self, x: torch.Tensor, cache: dict | None = None) -> torch.Tensor:
        x = x + self.attn(self.norm1(x), cache)
        return x + self.mlp(self.norm2(x)) if self.has_mlp else x


class GPT(nn.Module):
    """tokens (B, T) int64 → logits (B, T, V), with a cache those of the last token, (B, 1, V);
    with targets (B, T), -100 for none → loss_sum, n_tokens, each (B,).

    Another model that train() is to train is called in the same ways and has `config`, `n_words`,
    `most_tokens` and `autocast_dtype`; what looks into models asks for run_loops(), `norm` and
    `head_weight` too."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        c = self.config = config.validate()
        if not c.vocab_size:
            raise ValueError("vocab_size 0 is unknown; give the number of words")
        # names as in PyTorch's own modules: they are the keys of the checkpoint
        self.token_embedding = nn.Embedding(c.vocab_size, c.d_model)
        self.make_layers()
        self.drop = nn.Dropout(c.dropout)
        self.norm = nn.LayerNorm(c.d_model)
        if not c.tie_weights:
            self.head = nn.Linear(c.d_model, c.vocab_size, bias=False)
        self.autocast_dtype: torch.dtype | None = None  # half precision's, set by Training
        self.n_words = c.vocab_size  # ids from here on belong to no word and are never sampled
        self.most_tokens: int | None = c.block_size  # that it can read; None: any number
        self.init_weights()

    def make_layers(self) -> None:
        c = self.config
        self.position_embedding = nn.Embedding(c.block_size, c.d_model)
        self.blocks = nn.ModuleList(Layer(c) for _ in range(c.n_layers))

    @torch.no_grad()
    def init_weights(self) -> None:
        """As GPT-2's in `transformers`, with init_std 0.02: normal, what is added to the residual
        stream less; biases 0; norms, which have "norm" in their names, as they are made."""
        c = self.config
        # each addition to the residual stream is independent at first, so that its variance grows
        # with their number; divided by its root, the stream is as large for any depth
        additions = c.n_layers * c.n_loops * (2 if c.d_ff else 1)
        for name, w in self.named_parameters():
            if name.endswith("bias"):
                w.zero_()
            elif "norm" not in name:
                shrink = additions**0.5 if name.endswith("out.weight") else 1
                w.normal_(0, c.init_std / shrink)

    @property
    def head_weight(self) -> torch.Tensor:
        """(V, C)"""
        return self.token_embedding.weight if self.config.tie_weights else self.head.weight

    def run_loops(self, tokens: torch.Tensor, cache: list[dict] | None = None) -> Iterator:
        """Yield the residual stream (B, T, C) after each loop, an application of all layers, before
        the last norm. In `cache`, a dict for each time a layer is applied, empty at first, its keys
        and values (B, H, S, D) of S tokens gather: the next call, of one token, goes on there."""
        c, start = self.config, cache[0]["k"].size(2) if cache and cache[0] else 0
        end = start + tokens.size(1)
        if end > c.block_size:
            raise ValueError(f"{end} tokens do not fit block_size {c.block_size}")
        positions = self.position_embedding.weight[start:end]
        x = self.drop(self.token_embedding(tokens) + positions)
        for loop in range(c.n_loops):  # the same weights again (2502.17416)
            for i, layer in enumerate(self.blocks):
                x = layer(x, cache[loop * c.n_layers + i] if cache else None)
            yield x

    def forward(
        self, tokens: torch.Tensor, targets: torch.Tensor | None = None, cache: list | None = None
    ) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
        # not around the call: DataParallel's threads inherit "autocast on" but not its dtype; and
        # no weight is kept in half precision: what each of its uses adds to its gradient would be
        half = self.autocast_dtype
        with torch.autocast(tokens.device.type, half, half is not None, cache_enabled=False):
            *_, after_last_loop = self.run_loops(tokens, cache)
            x = self.norm(after_last_loop)
            if targets is None:
                # who generates needs the last token's logits alone
                return F.linear(x[:, -1:] if cache else x, self.head_weight)
            # tokens without a target are left out before the head, the costliest part
            has_target = targets != -100
            where = has_target.nonzero(as_tuple=True)  # its sequence, its place: each (N,)
            # all (N, V) logits and their gradient would be 10 GB at the report's size: so 512 rows
            # of them, in float32 300 MB, live at a time, and are computed again on the way back
            parts = zip(x[where].split(512), targets[where].split(512))
            nll = [checkpoint(self.token_losses, *part, use_reentrant=False) for part in parts]
        # sums and counts, no means: so 1, 2 or uneven shards give the same gradient
        loss_sum = x.new_zeros(len(x), dtype=torch.float32).index_add(0, where[0], torch.cat(nll))
        return loss_sum, has_target.sum(1).float()

    def token_losses(self, h: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Cross-entropy of each token: h (N, C), targets (N,) → (N,), float32."""
        logits = F.linear(h, self.head_weight).float()
        return F.cross_entropy(logits, targets, reduction="none")


def processes() -> tuple[int, int]:
    """(rank, world): which process of how many this is, as torchrun says."""
    return int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))


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
    letters, a lookup asks from any of them, without its pairs."""
    if family == "chain":
        value, question, work = int(modulus * draw()), [], []
        for _ in range(steps):
            add = 1 + int((modulus - 1) * draw())
            question.append(f"add {add}" if question else f"From {value} add {add}")
            work.append(f"{value} + {add} = {(value + add) % modulus}")
            value = (value + add) % modulus
        asked = f"{', '.join(question)} modulo {modulus} ?"
        return asked, ", ".join(work), str(value), modulus, asked, modulus * (modulus - 1) ** steps
    first = int(len(ring) * draw()) if ring else 0
    letters = ring[first:] + ring[:first] or sorted("abcdefghij", key=lambda _: draw())
    if family == "lookup":
        line = letters[: max(6, steps + 1)]
        first = line.index(min(line))
        key, keys = " ".join(line[first:] + line[:first]), math.perm(10, len(line)) // len(line)
        pairs = sorted(map(" ".join, zip(line, line[1:] + line[:1])), key=lambda _: draw())
        told = "" if ring else f"Follow {', '.join(pairs)}. "
        asked = f"{told}Go {steps} from {line[0]} ?"
        return asked, " ".join(line[: steps + 1]), line[steps], len(line) - 1, key, keys
    line, k = letters[: steps + 1], int((steps + 1) * draw())
    key, keys = " ".join(line), math.perm(10, len(line))
    pairs = sorted(map(" ".join, zip(line, line[1:])), key=lambda _: draw())
    asked = f"Sort {', '.join(pairs)}. Number {k + 1} ?"
    return asked, key, line[k], len(line), key, keys


def is_held_out(key: str, keys: int) -> bool:
    """Whether training never sees the problem of this key: an eighth of all `keys`, half of few."""
    return zlib.crc32(key.encode()) % (8 if keys >= 600 else 2) == 0


def embedded_rows(
    n: int, held_out: bool = False, steps: Sequence[int] = (1, 2, 3), seed: int = 0,
    families: Sequence[str] = FAMILIES, modulus: int = 10, questions: int = 1,
) -> list[dict]:  # fmt: skip
    """n generated conversations in the published row format, families and step counts in turn.

    To train on, a ring is asked so many `questions`: all but the first go from a letter to the one
    before it, all the way round, so that there is more to learn from. No key is held out twice; a
    kind that has no more drops out. Only random.random() is drawn from, whose numbers Python keeps
    the same in every version and on every platform: the same seed gives the same bytes."""
    draw, rows, taken = random.Random(2 * seed + held_out).random, [], set()
    kinds = list(itertools.product(steps, families))
    while len(rows) < n and kinds:
        k, family = kinds[len(rows) % len(kinds)]
        for _ in range(2000):
            *asked, candidates, key, keys = embedded_problem(draw, family, k, modulus)
            if is_held_out(key, keys) == held_out and key not in taken:
                break
        else:  # so often in vain: there are no more of this kind
            kinds.remove((k, family))
            continue
        several, ring, messages = [asked], key.split(), []
        if held_out:
            taken.add(key)
        elif family == "lookup":
            for _ in range(1, questions):
                several.append(embedded_problem(draw, family, len(ring) - 1, ring=ring)[:3])
        for question, work, answer in several:
            says = f"<think>\nSo {work}\n</think>\n\n {answer}"
            messages += [dict(role="user", content=question), dict(role="assistant", content=says)]
        rows.append(dict(messages=messages, family=family, steps=k, guess=1 / candidates))
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
            try:
                rows = [json.loads(line) for line in f if line.strip()]
            except json.JSONDecodeError as error:
                raise ValueError(f"{config.data} has {error.doc:.40}…, not JSON: {error}") from None
    else:
        from datasets import load_dataset

        rows = load_dataset(config.data, split="train")
    places = torch.randperm(len(rows), generator=generator("max_rows"))
    places = places[: config.max_rows or None].sort().values.tolist()
    usable = []
    for row in (rows[i] for i in places):
        with contextlib.suppress(TypeError, KeyError):  # what is no conversation is left out
            said = [m[key] for m in row["messages"] for key in ("role", "content")]
            usable += [row] if said and all(isinstance(text, str) for text in said) else []
    n = min(len(usable) - 1, math.ceil(len(usable) * config.val_fraction))
    if n < 1:
        form = '{"messages": [{"role": "user", "content": "…"}, …]}'
        raise ValueError(f"data {config.data} has {len(usable)} rows {form}; it needs 2 or more")
    order = torch.randperm(len(usable), generator=generator(0)).tolist()
    train, held_out = ([usable[i] for i in part] for part in (order[n:], order[:n]))
    return train, held_out, len(places) - len(usable)


END_OF_TEXT = "<|endoftext|>"


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
    known = tokenizer.convert_tokens_to_ids("<|im_end|>") not in (None, tokenizer.unk_token_id)
    return "<|im_end|>" if known else tokenizer.eos_token or ""


class Markup(str):
    """A text in which a tokenizer's own marks count. In any other <|im_end|> is ten characters."""


def segments(messages: list[dict], end: str = "") -> list[tuple[str, bool]]:
    """[(text, whether the assistant says it), …] of a conversation in ChatML; `end` ends turns."""
    parts = []
    for m in messages:
        said = m["role"] == "assistant"
        parts += [(Markup(f"<|im_start|>{m['role']}\n"), False), (m["content"], said)]
        parts += [(Markup(end), said), ("\n", False)]
    return parts


def encode(rows: Iterable, tokenizer: Any, loss_on: str = "all") -> Iterator[tuple[list, list]]:
    """segments() of each row → its token ids, and for each token whether it is learned: two lists.

    Segments are encoded one by one, so that a prompt is what it was in training, and of a thousand
    rows at a time each text once. Control tokens are made of Markup alone."""
    rows = iter(rows)
    # what else a tokenizer returns takes as long as the ids
    plain = dict(add_special_tokens=False, return_attention_mask=False, return_token_type_ids=False)
    while batch := list(itertools.islice(rows, 1000)):
        ids = {}
        for kind in (Markup, str):
            texts = dict.fromkeys(t for parts in batch for t, _ in parts if type(t) is kind)
            if texts:
                made = tokenizer(list(texts), split_special_tokens=kind is str, **plain).input_ids
                ids |= zip(((kind, text) for text in texts), made)
        for parts in batch:
            pairs = [(ids[type(text), text], said or loss_on == "all") for text, said in parts]
            learned = [said for some, said in pairs for _ in some]
            yield [i for some, _ in pairs for i in some], learned


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
            ids, following = [*ids[:-1], *[0] * missing], following[1:] + [-100] * missing
        tokens.extend(ids)
        targets.extend(following)
    first = 1 if packing == "pack" else 0
    tokens, targets = np.frombuffer(tokens, np.int32), np.frombuffer(targets, np.int32)[first:]
    n = len(targets) // T
    return tokens[: n * T].reshape(n, T), targets[: n * T].reshape(n, T)


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
        total, first = len(self.train[0]), step * n
        epochs = range(first // total, (first + n - 1) // total + 1)
        orders = [torch.randperm(total, generator=generator(self.seed, epoch)) for epoch in epochs]
        rows = torch.cat(orders)[first % total :][:n].numpy()
        return tuple(torch.from_numpy(part[rows]).long() for part in self.train)

    def after_step(self, loss: float) -> None:
        """Called with the training loss after each step that was not skipped."""

    def evaluate(self, model: nn.Module) -> dict:
        """{name: Python number} that an evaluation adds to the log; the model is in eval mode."""
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
    it cannot be checked: if the assistant does not answer in one line, of 40 characters at most."""
    *asked, last = row["messages"]
    answer = final_answer(last["content"]) or ""
    spoken = last["role"] == "assistant" and any(m["content"].strip() for m in asked)
    if not spoken or not re.fullmatch(".{1,40}", answer):
        return None
    problem = dict(messages=asked, solution=last["content"], answer=answer)
    return problem | {key: row[key] for key in ("family", "steps", "guess") if key in row}


def load_data(config: TrainConfig, block_size: int = 512, tokenizer: Any = None) -> Data:
    """Read, split, tokenize and pack the source of a TrainConfig → Data; ValueError if that does
    not give at least one block to train and one to validate on."""
    *both, left_out = read_rows(config)
    if tokenizer is None:
        texts = (text for rows in both for row in rows for text, _ in segments(row["messages"]))
        tokenizer = load_tokenizer(config.tokenizer, texts)
        if tokenizer.eos_token is None:  # without an end of text no answer would ever end
            tokenizer.add_special_tokens(dict(eos_token=END_OF_TEXT))
    made, facts, end = [], dict(unusable_rows=left_out), turn_end(tokenizer)
    for kind, rows in zip(("train", "val"), both):
        parts = (segments(row["messages"], end) for row in rows)
        encoded = list(encode(parts, tokenizer, config.loss_on))
        fits = [len(ids) <= block_size + 1 for ids, _ in encoded]
        if config.packing == "pad":  # half of a conversation would lack its question or its answer
            encoded = list(itertools.compress(encoded, fits))
            facts[f"{kind}_rows_too_long"] = fits.count(False)
        made.append(blocks(encoded, block_size, config.packing))
        facts[f"{kind}_rows"] = len(encoded)
        if not (made[-1][1] != -100).any():
            few = f"no row for {kind} fits in {block_size} tokens, or they are too few to fill it"
            raise ValueError(f"data {config.data}: {few}; give another --block_size")
    problems = [p for row, fit in zip(rows, fits) if fit and (p := problem_of(row))]  # held out
    guesses = [problem.get("guess") for problem in problems[: config.eval_problems]]
    if guesses and all(isinstance(guess, float) for guess in guesses):
        facts["guess"] = statistics.mean(guesses)
    return Data(*made, tokenizer, problems, facts, len(tokenizer))


# ---------- answers ----------


@torch.no_grad()
def generate(
    model: nn.Module, tokens: torch.Tensor, max_new_tokens: int, pick: Callable | None = None,
    eos: int = -1,
) -> torch.Tensor:  # fmt: skip
    """Continue tokens (B, T) int64 by up to max_new_tokens → (B, at most T + max_new_tokens), each
    the likeliest of the words there are, or what pick(logits (B, words)) → (B, 1) takes. A shorter
    prompt ends in -1, from where on the model speaks.

    A row that has said `eos` is filled with it; the call ends when every row has, and where the
    block does. ValueError for a prompt that is longer than the block."""
    if model.training:  # with dropout it would say something else
        raise ValueError("the model is in training mode; call model.eval() first")
    c, T = model.config, tokens.size(1)
    if not 0 < T <= (model.most_tokens or T):
        raise ValueError(f"a prompt of {T} tokens does not fit block_size {c.block_size}")
    end = min(T + max_new_tokens, model.most_tokens or math.inf)
    tokens = F.pad(tokens, (0, end - T), value=-1)
    done = torch.zeros(len(tokens), 1, dtype=torch.bool, device=tokens.device)
    cache, read = [{} for _ in range(c.n_loops * c.n_layers)], 0
    for i in range(int((tokens >= 0).sum(1).min()), end):  # from the shortest prompt's end on
        logits = model(tokens[:, read:i], cache=cache)[:, -1, : model.n_words].float()
        read = i
        new = pick(logits) if pick else logits.argmax(-1, keepdim=True)  # (B, 1)
        given = tokens[:, i : i + 1]
        new = torch.where(given < 0, new.masked_fill(done, eos), given)
        done |= (new == eos) & (given < 0)  # a prompt has ends of turns of its own
        tokens[:, i : i + 1] = new
        if done.all():
            return tokens[:, : i + 1]
    return tokens


def prompt_ids(tokenizer: Any, messages: list[dict]) -> list[int]:
    """A conversation as a list of token ids, up to where the assistant begins to speak."""
    parts = segments(messages, turn_end(tokenizer)) + [(Markup("<|im_start|>assistant\n"), False)]
    return next(encode([parts], tokenizer))[0]


def answer_texts(
    model: nn.Module, tokenizer: Any, problems: list[dict], max_new_tokens: int = 0,
    pick: Callable | None = None, at_once: int = 100,
) -> list[str]:  # fmt: skip
    """What the model says to each of Data.problems, a hundred at once: each keeps its keys and
    values, of the report's size 9 MB in FP16. Of 0 new tokens as many as the longest solution
    takes, at least 256: a right answer is not to be cut off."""
    solutions = encode(([(p.get("solution", ""), True)] for p in problems), tokenizer)
    most = max_new_tokens or max([256, *(len(ids) + 1 for ids, _ in solutions)])
    prompts = [prompt_ids(tokenizer, problem["messages"]) for problem in problems]
    eos = tokenizer.convert_tokens_to_ids(turn_end(tokenizer))
    device, texts = next(model.parameters()).device, [""] * len(prompts)
    # those of about the same length together: all wait until the longest has been read
    in_order = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
    for some in (in_order[i : i + at_once] for i in range(0, len(in_order), at_once)):
        longest = len(prompts[some[-1]])
        padded = [prompts[i] + [-1] * (longest - len(prompts[i])) for i in some]
        tokens = generate(model, torch.tensor(padded, device=device), most, pick, eos)
        for i, ids in zip(some, tokens.tolist()):
            answer = ids[len(prompts[i]) : len(prompts[i]) + most]
            texts[i] = tokenizer.decode(answer[: answer.index(eos)] if eos in answer else answer)
    return texts


def accuracy(model: nn.Module, tokenizer: Any, problems: list[dict]) -> dict:
    """What a log says of problems: {"accuracy": the share whose final_answer() is exactly the right
    one, "answers": 1 or 0 for each}, and where there are several kinds {"accuracy_by_family",
    "accuracy_by_problem"}, a family and its steps."""
    texts = answer_texts(model, tokenizer, problems)
    right = [int(final_answer(text) == p["answer"]) for text, p in zip(texts, problems)]
    measured = dict(accuracy=statistics.mean(right), answers=right)
    families = [str(problem.get("family", "other")) for problem in problems]
    kinds = [f"{family} {p.get('steps', 'other')}" for family, p in zip(families, problems)]
    for name, groups in (("accuracy_by_family", families), ("accuracy_by_problem", kinds)):
        for kind in sorted(set(groups)) if len(set(groups)) > 1 else ():
            of_kind = [correct for correct, group in zip(right, groups) if group == kind]
            measured.setdefault(name, {})[kind] = statistics.mean(of_kind)
    return measured


# ---------- the run's folder: config.json, log.jsonl, model.safetensors, state.pt, tokenizer/ -----


class Folder:
    """Where a run lives: what train() calls, on every process of a job alike, though only the first
    one writes. Without a path nothing is written. Another class may take more care, as long as
    resume() gives what save() was given."""

    def __init__(self, path: str | None = None) -> None:
        self.path, self.writes = path, path is not None and processes()[0] == 0

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
        """The log so far, a record a line, with null, which all can read, for infinity and NaN."""
        records = json.loads(json.dumps(log), parse_constant=lambda _: None)
        lines = [json.dumps(record, separators=(",", ":")) + "\n" for record in records]
        self.write("log.jsonl", lambda f: f.write("".join(lines).encode()))

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


def read_configs(path: str) -> tuple[ModelConfig, TrainConfig]:
    """The settings of a run's folder; ValueError for one that this file does not know."""
    with open(os.path.join(path, "config.json"), encoding="utf-8") as f:
        about = json.load(f)
    values = (about["model"] | about["train"]).items()
    return configs("report", **{k: tuple(v) if isinstance(v, list) else v for k, v in values})


def load(path: str) -> tuple[GPT, Any]:
    """(model, tokenizer) of a run's folder, on the CPU, in eval mode; None without a tokenizer."""
    from safetensors.torch import load_file

    model, words = GPT(read_configs(path)[0]).eval(), os.path.join(path, "tokenizer")
    model.load_state_dict(load_file(os.path.join(path, "model.safetensors")))
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
    if step < warmup:  # the first step has rate 0, as in the published log
        return config.lr * step / warmup
    floor, fallen = config.lr * config.lr_floor, min(1, (step - warmup) / (steps - warmup))
    return floor + 0.5 * (1 + math.cos(math.pi * fallen)) * (config.lr - floor)


def over_all(number: float, device: torch.device) -> float:
    """The sum of a number over all processes of a job."""
    if processes()[1] == 1:
        return number
    total = torch.tensor(float(number), device=device)
    torch.distributed.all_reduce(total)
    return total.item()


def pick_machine(config: TrainConfig) -> tuple[torch.device, torch.dtype | None]:
    """(device, under torchrun one of its own for each process; autocast's type, None for fp32)."""
    kind, found = config.device, "cuda" if torch.cuda.is_available() else "cpu"
    if kind == "cuda" and found == "cpu":
        raise ValueError("device cuda is not there; give cpu, or auto")
    kind = found if kind == "auto" else kind
    number = int(os.environ.get("LOCAL_RANK", 0)) if kind == "cuda" else None
    types = dict(fp32=None, fp16=torch.float16, bf16=torch.bfloat16)
    types["auto"] = torch.float16 if kind == "cuda" else None
    return torch.device(kind, number), types[config.precision]


def make_optimizer(model: nn.Module, config: TrainConfig) -> torch.optim.Optimizer:
    """AdamW in its fused form; weight decay on matrices and embeddings, and on norms and biases if
    `decay_all` says so."""
    decay, betas = config.weight_decay, (config.beta1, config.beta2)
    matrices = dict(params=[p for p in model.parameters() if p.dim() > 1])
    others = dict(params=[p for p in model.parameters() if p.dim() < 2])
    others["weight_decay"] = decay if config.decay_all else 0.0
    return torch.optim.AdamW([matrices, others], config.lr, betas, weight_decay=decay, fused=True)


def parallel(model: nn.Module, device: torch.device) -> nn.Module:
    """The model itself, or wrapped for several GPUs or for the processes of torchrun."""
    (rank, world), gpus = processes(), torch.cuda.device_count()
    if world > 1 and not getattr(model, "is_sharded", False):
        if rank == 0:
            print(f"Wrapping model with DistributedDataParallel over {world} processes")
        return nn.parallel.DistributedDataParallel(model)
    if world == 1 and device.type == "cuda" and gpus > 1:
        print(f"Wrapping model with DataParallel over {gpus} GPUs")
        return nn.DataParallel(model)
    return model


def by_length(tokens: torch.Tensor, targets: torch.Tensor, n: int) -> Iterator[tuple]:
    """(tokens (B, T), targets (B, …, T)) in parts of n sequences that are about as long, each part
    cut behind its last target: what follows cannot change a causal model's loss."""
    has_target = (targets != -100).reshape(len(tokens), -1, tokens.size(1)).any(1)
    unused = has_target.flip(1).int().argmax(1)  # (B,), places after the last target, or 0
    for rows in unused.argsort(descending=True, stable=True).split(n):
        length = tokens.size(1) - int(unused[rows].min())
        yield tokens[rows, :length], targets[rows, ..., :length]


class Training:
    """A model, what updates it, and the step: train(), the bench and the pages use this one."""

    def __init__(self, m: ModelConfig, t: TrainConfig, make_model: Callable = GPT) -> None:
        self.config, (self.device, half) = t, pick_machine(t)
        torch.manual_seed(t.seed)  # of the first weights: drawn on the CPU, alike for any device
        self.model = make_model(m)
        self.model.autocast_dtype = half
        self.wrapped = parallel(self.model.to(self.device).train(), self.device)
        self.optimizer = make_optimizer(self.model, t)
        # multiplies the loss, so that gradients below fp16's smallest number are not lost
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=half == torch.float16)

    def step(self, tokens: torch.Tensor, targets: torch.Tensor) -> tuple[float, float]:
        """One optimizer step on the batch (B, T) of all processes → (its loss per target, the norm
        of its gradient). If that is not finite, nothing has changed but the loss scale. The
        gradient is that of the mean over all targets of the batch: the same for any accumulation,
        for DataParallel's uneven shards and for several processes."""
        (rank, world), n_targets = processes(), int((targets != -100).sum())
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


@torch.no_grad()
def mean_loss(model: nn.Module, part: Sequence, n_blocks: int, batch_size: int) -> float:
    """Mean loss per token of the first n_blocks of (tokens, targets)."""
    if model.training:  # with dropout it would say something else
        raise ValueError("the model is in training mode; call model.eval() first")
    device = next(model.parameters()).device
    some = (torch.as_tensor(each[:n_blocks]).long() for each in part)
    losses = [model(x.to(device), y.to(device)) for x, y in by_length(*some, batch_size)]
    sums, counts = (torch.cat(each).cpu().double() for each in zip(*losses))
    if not counts.sum():
        raise ValueError("the blocks to be measured have no target: there is no loss of them")
    return (sums.sum() / counts.sum()).item()


def evaluate(model: nn.Module, data: Data, config: TrainConfig, last: bool) -> dict:
    """What else an evaluation measures. Few problems are answered each time, to watch, and all of
    them in the end; then also the loss of what was trained on, without a batch's noise."""
    record, n = data.evaluate(model), config.eval_blocks
    if problems := data.problems[: config.eval_problems if last else config.watch_problems]:
        record |= accuracy(model, data.tokenizer, problems)
    if last:
        some = torch.randperm(len(data.train[0]), generator=generator("train_loss_eval"))[:n]
        part = [each[some.numpy()] for each in data.train]
        record["train_loss_eval"] = mean_loss(model, part, n, config.batch_size)
        # what the accuracy is to be compared with
        record |= {key: data.facts[key] for key in ("guess", "shortcut") if key in data.facts}
    return record


def log_line(record: dict, steps: int) -> str:
    """A record of the log as it is printed, in the report's own format."""
    line = "epoch {epoch} step {step}/{steps} lr {lr:.2e} train {train_loss:.4f} val {val_loss:.4f}"
    line += " ({seconds:.0f}s)" + (" right {accuracy:.2f}" if "accuracy" in record else "")
    return line.format(steps=steps, **record)


class Diverged(RuntimeError):
    """Gradients, weights or the loss became infinite or NaN: the learning rate is too high, rises
    too fast, or half precision is too coarse."""


def train(
    model_config: ModelConfig, train_config: TrainConfig, data: Data, folder: Folder | None = None,
    resume: bool = False, make_model: Callable[[ModelConfig], nn.Module] = GPT,
    on_log: Callable[[dict], object] | None = None, stop: Callable[[], bool] = lambda: False,
) -> tuple[nn.Module, list[dict]]:  # fmt: skip
    """Train one model → (it, in eval mode, and the log: a record for each evaluation).

    Without a folder nothing is written. `resume` goes on from the last checkpoint of a folder that
    has begun, if it has one: on the CPU to the same losses, bit for bit, as if never stopped.
    make_model(config) gives a module that is called as GPT is. on_log(record) is called with each
    record; by default it prints the report's line. stop() is asked after each step: if true the run
    is saved and returned. Under torchrun every process calls this alike, once they are connected.
    ValueError for settings, data or a folder that cannot work; Diverged if gradients stay infinite
    or NaN, or weights are so when they are to be saved, or the loss in the end."""
    m, t, (rank, world) = model_config.validate(), train_config.validate(), processes()
    m = dataclasses.replace(m, vocab_size=m.vocab_size or data.n_words)
    if data.n_words > m.vocab_size:
        few = f"vocab_size {m.vocab_size} is less than the data's {data.n_words} words"
        raise ValueError(f"{few}; give at least that, or 0")
    if t.batch_size % world:
        raise ValueError(f"batch_size {t.batch_size} does not divide among {world} processes")
    folder, data = folder or Folder(), dataclasses.replace(data, seed=t.seed, state={**data.state})
    settings = dict(model=dataclasses.asdict(m), train=dataclasses.asdict(t))  # as JSON has them
    identity = dict(settings=json.loads(json.dumps(settings)), fingerprint=data.fingerprint())
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
        folder.log(log)  # a run that was cut off as it saved lacks its last line
    if over_all(done, device) != done * world:  # each process has read the folder for itself
        raise ValueError(f"{folder.path} is at another step for another process; let them share it")

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
        done, overflow = step + 1, not math.isfinite(grad_norm)
        skipped, in_a_row = skipped + overflow, in_a_row + 1 if overflow else 0
        if not overflow:  # a curriculum goes on by what was learned
            data.after_step(loss)

        # 5. give up a run that is lost; its last checkpoint stays
        if in_a_row == 25:  # GradScaler starts at 2^16: after 16 halvings it is not the cause
            raise Diverged(f"the gradient was infinite or NaN for 25 steps, up to {done}")

        # 6. evaluate
        last = done == t.steps
        evaluating = last or step == 0 or done % t.eval_every == 0
        if evaluating:
            model.eval()
            epoch = 1 if data.infinite else step * len(tokens) // len(data.train[0]) + 1
            record = dict(step=done, epoch=epoch, lr=lr, train_loss=loss, grad_norm=grad_norm)
            record["val_loss"] = mean_loss(model, data.val, t.eval_blocks, t.batch_size)
            if last and not math.isfinite(record["val_loss"]):  # what was saved before stays
                raise Diverged(f"the loss is infinite or NaN at the last step, {done}")
            record |= evaluate(model, data, t, last)
            record |= dict(seconds=round(time.perf_counter() - began, 2), skipped_steps=skipped)
            record["tokens_per_second"] = round(busy_tokens / busy)
            busy, busy_tokens = 0.0, 0
            model.train()

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
            if not all(bool(w.isfinite().all()) for w in model.state_dict().values()):
                raise Diverged(f"weights are infinite or NaN after step {done}")
            state = dict(step=done, log=log, skipped=skipped, in_a_row=in_a_row, data=data.state)
            state |= dict(model=model.state_dict(), optimizer=optimizer.state_dict())
            state |= dict(scaler=training.scaler.state_dict(), seconds=time.perf_counter() - began)
            folder.save(state, identity)
        if evaluating:
            folder.log(log)

        # 10. stop
        if stopping:
            break
    return model.eval(), log
