"""The model's variants: heads and dropout by part, rotary positions, layers that look at the newest
tokens alone, what a loop starts from, tokens that stay as the first loop leaves them, and layers
that are compiled or computed twice."""

import dataclasses
import functools
from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

import minidepth as md
from minidepth_lab.base import configs
from minidepth_lab.models import fast, kept_once


def rotate(x: torch.Tensor, start: int = 0) -> torch.Tensor:
    """Rotary positions (Su et al. 2021): turn the pairs (i, i + D/2) of x (B, H, T, D)."""
    half = x.size(-1) // 2  # pair i turns by its position times a frequency, from 1 down to 1e-4
    position = torch.arange(start, start + x.size(2), device=x.device, dtype=torch.float32)
    exponent = torch.arange(half, device=x.device, dtype=torch.float32) / half  # 0 to 1
    angle = position[:, None] * 10_000**-exponent  # (T, D/2)
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    a, b = x[..., :half], x[..., half:]
    return torch.cat((a * cos - b * sin, a * sin + b * cos), -1)


class RotaryAttention(fast.Attention):
    """q k^T depends on how far apart two tokens are, not on where."""

    def project(self, x: torch.Tensor, start: int = 0) -> tuple[torch.Tensor, ...]:
        q, k, v = super().project(x, start)
        return rotate(q, start), rotate(k, start), v


def make_layer(config: configs.ModelConfig, n_heads: int) -> md.Layer:
    """One layer of GPT(config), with so many heads."""
    attention = RotaryAttention if config.position == "rotary" else fast.Attention
    layer = md.Layer(dataclasses.replace(config, n_heads=n_heads), attention)
    layer.attn.drop = fast.Dropout(config.dropout_of("residual"))
    layer.attn.scale = config.attn_scale or layer.attn.scale
    if layer.has_mlp:
        layer.mlp.drop = fast.Dropout(config.dropout_of("residual"))
    return layer


class GPT(md.GPT):
    """minidepth.GPT with all settings of the laboratory's ModelConfig."""

    def __init__(self, config: configs.ModelConfig) -> None:
        self.compiled = None  # torch.compile's forms of the layers
        self.checkpointed = False  # whether layers are computed twice
        self.gradient_loops = 0  # the last loops alone have a gradient; 0: all
        super().__init__(config)
        self.drop = fast.Dropout(config.dropout_of("embedding"))
        if config.position != "learned":
            self.most_tokens = None

    def forward(
        self, tokens: torch.Tensor, targets: torch.Tensor | None = None,
        cache: list[dict] | None = None, loops: int | None = None,
    ) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
        """As minidepth.GPT's, without computing logits twice, after so many `loops` or those of the
        settings; targets (B, loops, T) ask for a loss after each of so many, and their sum."""
        # before PyTorch 2.10 a weight that was converted in a loop without a gradient would be kept
        # so for the loops that have one
        half, kept = self.autocast_dtype, not self.gradient_loops
        how = dict(enabled=half is not None, cache_enabled=kept)
        with torch.autocast(tokens.device.type, half, **how):
            if targets is not None and targets.dim() == 3:
                assert loops in (None, targets.size(1)), "the targets say how many loops"
                states = self.run_loops(tokens, None, targets.size(1))
                x = torch.stack([self.norm(state) for state in states], 1)  # (B, loops, T, C)
            else:
                x = self.hidden(tokens, cache, loops)
            if targets is None:
                return F.linear(x[:, -1:] if cache else x, self.head_weight)
        has_target = targets != -100
        where = has_target.nonzero(as_tuple=True)  # its sequence, …, its place: each (N,)
        dtype, grads = half or x.dtype, torch.is_grad_enabled()
        nll = fast.HeadLoss.apply(x[where], self.head_weight, targets[where], dtype, grads)
        loss_sum = nll.new_zeros(len(targets)).index_add(0, where[0], nll)
        return loss_sum.float(), has_target.flatten(1).sum(1).float()

    def number_of(self, loops: int | None) -> int:
        """How many loops are asked for; ValueError for less than one."""
        n = self.config.n_loops if loops is None else loops
        if n < 1:
            raise ValueError(f"loops is {n}; give 1 or more, or None for those of the settings")
        return n

    def hidden(
        self, tokens: torch.Tensor, cache: list[dict] | None = None, loops: int | None = None
    ) -> torch.Tensor:
        """The residual stream after the last loop and the last norm, (B, T, C)."""
        if not cache and kept_once.possible(self, tokens):
            return self.norm(kept_once.last(self, tokens, self.number_of(loops)))
        for after_loop in self.run_loops(tokens, cache, loops):
            x = after_loop  # only the last one is wanted
        return self.norm(x)

    def make_layers(self) -> None:
        c = self.config
        if c.position == "learned":
            self.position_embedding = nn.Embedding(c.block_size, c.d_model)
        self.blocks = nn.ModuleList(make_layer(c, n_heads) for n_heads in c.heads)
        for layer in self.blocks[1::2]:  # global and local attention in turn, as in GPT-Neo
            layer.attn.window = c.attn_window

    @torch.no_grad()
    def init_weights(self) -> None:
        """With init "pytorch" weights stay as PyTorch's modules have made them, embeddings with a
        standard deviation of 1, but for attention, as in its nn.MultiheadAttention."""
        if self.config.init == "gpt2":
            return super().init_weights()
        for layer in self.blocks:
            nn.init.xavier_uniform_(layer.attn.qkv.weight)
            if self.config.bias:
                layer.attn.qkv.bias.zero_()
                layer.attn.out.bias.zero_()

    def embed(self, tokens: torch.Tensor, start: int = 0) -> torch.Tensor:
        """tokens (B, T), the first at position `start` → the stream's beginning, (B, T, C)."""
        c, end = self.config, start + tokens.size(1)
        # the head has made a dense gradient (V, C) of a tied weight: a sparse one saves a second
        sparse = c.tie_weights and tokens.device.type == "cpu"
        x = F.embedding(tokens, self.token_embedding.weight, sparse=sparse)
        if c.position == "learned":  # rotary positions come in with attention's q and k
            if end > c.block_size:
                raise ValueError(f"{end} tokens do not fit block_size {c.block_size}")
            x = x + self.position_embedding.weight[start:end]
        return self.drop(x)

    def run_loops(
        self, tokens: torch.Tensor, cache: list[dict] | None = None, loops: int | None = None
    ) -> Iterator[torch.Tensor]:
        """Yield the residual stream (B, T, C) after each loop, as minidepth.GPT does; `loops` of
        them, or those of the settings."""
        c = self.config
        start = cache[0]["k"].size(2) if cache and cache[0] else 0
        x = embedded = self.embed(tokens, start)
        n_kept = max(0, c.loop_keeps - start)  # of these tokens
        layers = self.compiled if self.compiled and self.training else self.blocks
        n = self.number_of(loops)
        if not cache and kept_once.possible(self, tokens):
            yield from kept_once.run_loops(self, tokens, n)
            return
        # loops before these lead there and are not learned from: a step stays nearly as cheap as
        # one of a few loops (Bansal et al. 2022, arXiv 2202.05826)
        learned = min(n, self.gradient_loops or n)
        for loop in range(n):
            with torch.set_grad_enabled(torch.is_grad_enabled() and loop >= n - learned):
                x = kept_once.start_of(c, x, embedded)
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

    def num_params(self) -> dict[str, int]:
        """Parameters by part, as parameters() counts them."""
        return parameters(self.config)


def parameters(config: md.ModelConfig) -> dict[str, int]:
    """Parameters of GPT(config) by part, counted without building it; `head` is 0 when tied,
    `final_norm` closes the sum to `total`."""
    c = config.validate()
    C = c.d_model
    layer = 4 * C * C + 2 * C  # qkv, out and the norm before them
    if c.d_ff:
        layer += 2 * C * c.d_ff + 2 * C  # up, out and their norm
    if c.bias:
        layer += 4 * C + (c.d_ff + C if c.d_ff else 0)
    n = dict(embedding=c.vocab_size * C)
    n["position"] = c.block_size * C if getattr(c, "position", "learned") == "learned" else 0
    n["layers"] = c.n_layers * layer  # however often they are looped
    n["head"] = 0 if c.tie_weights else c.vocab_size * C
    n["final_norm"] = 2 * C
    return dict(total=sum(n.values()), **n)
