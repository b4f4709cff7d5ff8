"""Read once, quickly: what the loops keep is not computed again in each of them. The states are
those of GPT.run_loops() with `loop_keeps`, to 1e-5; a training step or a walk is a few times as
fast, as only the tokens that are not kept go on.

    with kept_once(): train.main([...])       every model whose loops keep something, within it
"""

import contextlib

import torch
import torch.nn.functional as F

from minidepth_lab.models import variants


def start_of(config, x, embedded):
    """What a loop begins with: x and embedded, both (B, T, C) → (B, T, C)"""
    if config.loop_start in ("normalised", "recall"):
        x = F.layer_norm(x, (config.d_model,))
    return x + embedded if config.loop_start in ("input", "recall") else x


def kept_memory(model, kept, embedded):
    """Keys and values, each (B, H, n, D), of the n tokens that are kept, of every layer: the same
    in each loop from the second on, since they see no other token. kept, embedded (B, n, C)"""
    x, memory = start_of(model.config, kept, embedded), []
    for i, block in enumerate(model.blocks):
        memory.append(block.attn.project(block.norm1(x))[1:])
        if i + 1 < len(model.blocks):
            x = block(x)
    return memory


def look(block, x, memory, may_see):
    """A layer of the other tokens alone, x (B, T, C), which look at those that are kept and,
    causally, at one another: may_see (T, n + T) bool → (B, T, C)"""
    q, k, v = block.attn.project(block.norm1(x))
    k, v = (torch.cat(pair, 2) for pair in zip(memory, (k, v)))
    y = F.scaled_dot_product_attention(q, k, v, may_see, scale=block.attn.scale)
    x = x + block.attn.out(y.transpose(1, 2).flatten(2))
    return x + block.mlp(block.norm2(x)) if block.has_mlp else x


def run_loops(model, tokens, loops=None):
    """Yield the stream (B, T, C) after each loop, as GPT.run_loops() does, of a model with learned
    positions, without noise and dropout."""
    kept = None
    for x in questions_alone(model, tokens, loops):
        if kept is None:
            kept = x[:, : model.config.loop_keeps]
            yield x
        else:
            yield torch.cat((kept, x), 1)


def questions_alone(model, tokens, loops=None):
    """run_loops(), but from the second loop on of the tokens that are not kept: (B, T - n, C)."""
    c = model.config
    n, T = c.loop_keeps, tokens.size(1)
    embedded = model.embed(tokens)
    x = start_of(c, embedded, embedded)
    for block in model.blocks:
        x = block(x)
    yield x
    memory = kept_memory(model, x[:, :n], embedded[:, :n])
    x, embedded = x[:, n:], embedded[:, n:]
    may_see = torch.ones(T - n, T, dtype=torch.bool, device=x.device).tril(n)
    for _ in range((loops or c.n_loops) - 1):
        x = start_of(c, x, embedded)
        for block, of_layer in zip(model.blocks, memory):
            x = look(block, x, of_layer, may_see)
        yield x


@contextlib.contextmanager
def kept_once():
    """A context in which run_loops() is that of every model whose loops keep something."""
    before = variants.GPT.run_loops

    def quick(self, tokens, cache=None, loops=None):
        c = self.config
        if cache or not 0 < c.loop_keeps < tokens.size(1) or c.position != "learned":
            return before(self, tokens, cache, loops)
        return run_loops(self, tokens, loops)

    variants.GPT.run_loops = quick
    try:
        yield
    finally:
        variants.GPT.run_loops = before
