"""Read once, quickly: what the loops keep is not computed again in each of them. The states are
those of GPT.run_loops() without it, to 1e-5; a walk of a thousand loops is a few times as fast, and
so is a training step, as only the tokens that are not kept go on.
"""

import math
from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F

import minidepth as md
from minidepth_lab.base import configs


def possible(model: Any, tokens: torch.Tensor) -> bool:
    """Whether a model computes what it keeps once: if there is no chance in it, which would be
    drawn anew in each loop, and nobody looks into its layers, or has put another attention there,
    who is to see all tokens."""
    c = model.config
    chance = model.training and (c.loop_noise or c.dropout or c.dropout_of("residual"))
    plain = not (model.compiled or model.checkpointed or model.gradient_loops or c.attn_window)
    parts = model.blocks.modules()
    seen = any(part._forward_hooks or part._forward_pre_hooks for part in parts)
    seen |= any("forward" in vars(layer.attn) for layer in model.blocks)
    fits = 0 < c.loop_keeps < tokens.size(1) and tokens.device.type != "mps"  # fast.py says why
    return fits and plain and not chance and not seen


def start_of(
    config: configs.ModelConfig, x: torch.Tensor, embedded: torch.Tensor
) -> torch.Tensor:  # fmt: skip
    """What a loop begins with: x and embedded, both (B, T, C) → (B, T, C)"""
    if config.loop_start in ("normalised", "recall"):
        # the norm keeps a stream that grows with each loop from drowning the input out: so a loop
        # more looks like the loops of training
        x = F.layer_norm(x, (config.d_model,))
    return x + embedded if config.loop_start in configs.READ_INPUT else x


class Map:
    """The keys and values of a layer, each (B, H, n, D), of the n tokens that are kept, which stand
    before those of the others in each loop. Without a gradient they are copied once."""

    def __init__(self, k: torch.Tensor, v: torch.Tensor, others: int) -> None:
        self.k, self.v, self.n = k, v, k.size(2)
        self.whole = None
        if not torch.is_grad_enabled():
            self.whole = tuple(F.pad(each, (0, 0, 0, others)) for each in (k, v))

    def before(self, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """k and v (B, H, T, D) of the other tokens → those of all, (B, H, n + T, D)."""
        if self.whole is None:
            return torch.cat((self.k, k), 2), torch.cat((self.v, v), 2)
        for whole, new in zip(self.whole, (k, v)):
            whole[:, :, self.n :] = new
        return self.whole


def maps_of(model: Any, kept: torch.Tensor, embedded: torch.Tensor, others: int) -> list[Map]:
    """What the kept tokens, kept and embedded (B, n, C), are to those others, of every layer: the
    same in each loop from the second on, since they see no other token."""
    x, maps = start_of(model.config, kept, embedded), []
    for i, layer in enumerate(model.blocks):
        maps.append(Map(*layer.attn.project(layer.norm1(x))[1:], others))
        if i + 1 < len(model.blocks):
            x = layer(x)
    return maps


def look(layer: md.Layer, x: torch.Tensor, its_map: Map, hidden: torch.Tensor) -> torch.Tensor:
    """A layer of the other tokens alone, x (B, T, C), which look at those that are kept and,
    causally, at one another: hidden (T, n + T) is -inf where not → (B, T, C)"""
    q, k, v = layer.attn.project(layer.norm1(x), its_map.n)
    k, v = its_map.before(k, v)
    y = F.scaled_dot_product_attention(q, k, v, hidden, scale=layer.attn.scale)
    x = x + layer.attn.out(y.transpose(1, 2).flatten(2))
    return x + layer.mlp(layer.norm2(x)) if layer.has_mlp else x


def run_loops(model: Any, tokens: torch.Tensor, loops: int) -> Iterator[torch.Tensor]:
    """Yield the stream (B, T, C) after each loop."""
    kept = None
    for x in questions_alone(model, tokens, loops):
        if kept is None:
            kept = x[:, : model.config.loop_keeps]
            yield x
        else:
            yield torch.cat((kept, x), 1)


def last(model: Any, tokens: torch.Tensor, loops: int) -> torch.Tensor:
    """The stream (B, T, C) after the last loop: nothing is put together before."""
    states = questions_alone(model, tokens, loops)
    first = x = next(states)
    for state in states:  # only the last one is wanted
        x = state
    return first if x is first else torch.cat((first[:, : model.config.loop_keeps], x), 1)


def questions_alone(model: Any, tokens: torch.Tensor, loops: int) -> Iterator[torch.Tensor]:
    """run_loops(), but from the second loop on of the tokens that are not kept: (B, T - n, C)."""
    c = model.config
    n, T = c.loop_keeps, tokens.size(1)
    embedded = model.embed(tokens)
    x = start_of(c, embedded, embedded)
    for layer in model.blocks:
        x = layer(x)
    yield x
    maps = maps_of(model, x[:, :n], embedded[:, :n], T - n)
    x, embedded = x[:, n:], embedded[:, n:]
    # 0 where a token may look, as numbers: a mask of bools would be made into this in each loop
    hidden = x.new_full((T - n, T), -math.inf).triu(n + 1)
    for _ in range(loops - 1):
        x = start_of(c, x, embedded)
        for layer, its_map in zip(model.blocks, maps):
            x = look(layer, x, its_map, hidden)
        yield x
