"""Words drawn from a model in other ways than the likeliest one."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

import minidepth as md
from minidepth_lab.base import machine


def sampler(
    temperature: float = 1.0, top_k: int | None = None, seed: int | None = None
) -> Callable[[torch.Tensor], torch.Tensor] | None:
    """What minidepth.generate() takes as `pick`: at temperature 0 None, for the likeliest, else
    a function that draws from the top_k likeliest ones. ValueError for numbers that cannot work."""
    if not temperature >= 0 or (top_k is not None and top_k < 1):
        raise ValueError(f"temperature {temperature} must be at least 0, top_k {top_k} at least 1")
    if temperature == 0:
        return None
    draw = torch.Generator()
    draw.seed() if seed is None else draw.manual_seed(seed)

    def pick(logits):
        if top_k is not None:
            top = logits.topk(min(top_k, logits.size(-1)))
            logits = torch.full_like(logits, -math.inf).scatter(-1, top.indices, top.values)
        # drawn on the CPU, so that a seed draws the same numbers everywhere
        p = (logits / temperature).softmax(-1).cpu()
        return torch.multinomial(p, 1, generator=draw).to(logits.device)

    return pick


@machine.in_eval_mode
def generate(
    model: nn.Module,
    tokens: torch.Tensor,
    max_new_tokens: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    seed: int | None = None,
    **how: Any,
) -> torch.Tensor:
    """minidepth.generate() with a sampler()."""
    pick = sampler(temperature, top_k, seed)
    return md.generate(model, tokens, max_new_tokens, pick, **how)


@machine.in_eval_mode
def answer_texts(
    model: nn.Module,
    tokenizer: Any,
    problems: list[dict],
    max_new_tokens: int = 0,
    temperature: float = 0,
    top_k: int | None = None,
    seed: int | None = None,
) -> list[str]:
    """minidepth.answer_texts() with a sampler()."""
    pick = sampler(temperature, top_k, seed)
    return md.answer_texts(model, tokenizer, problems, max_new_tokens, pick)


def answers_right(
    model: nn.Module, tokenizer: Any, problems: list[dict], **how: Any
) -> list[float]:
    """For each of the problems whether its final_answer() is exactly the right one, 1.0 or 0.0."""
    texts = answer_texts(model, tokenizer, problems, **how)
    return [float(md.final_answer(text) == p["answer"]) for text, p in zip(texts, problems)]
