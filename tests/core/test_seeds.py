"""The seed decides the weights, the order of the blocks and each step's dropout, each by itself."""

import dataclasses
import itertools

import torch

from conftest import same_weights
from minidepth_lab.keep import running
from minidepth_lab.models import variants

STILL = dict(lr=0.0, steps=3, warmup_steps=1, eval_problems=0, watch_problems=0)


def test_the_weights_are_those_of_a_model_made_with_this_seed(tiny, data):
    """At rate 0 they stay as they were drawn."""
    for seed in (0, 1, 3):
        run = running.train(*tiny(seed=seed, name=f"seed-{seed}", **STILL), data=data)
        torch.manual_seed(seed)
        assert same_weights(run.model, variants.GPT(run.model.config)), seed


def test_each_step_of_each_seed_has_a_batch_and_a_dropout_of_its_own(tiny, data, monkeypatch):
    seen, found, real = [], {}, variants.GPT.forward

    def see(self, tokens, *arguments, **options):
        if self.training:
            seen.append((tokens.numpy().tobytes(), torch.get_rng_state().numpy().tobytes()))
        return real(self, tokens, *arguments, **options)

    monkeypatch.setattr(variants.GPT, "forward", see)
    for name, seed in (("a", 0), ("b", 1), ("c", 2), ("again", 1)):
        seen.clear()
        running.train(*tiny(seed=seed, name=name, **STILL), data=data)
        found[name] = list(seen)
    assert found["again"] == found["b"] and len(found["b"]) == 3
    for part in zip(*(step for name in "abc" for step in found[name])):
        assert len(set(part)) == 9


def test_no_epoch_of_a_seed_has_the_order_of_another_seeds_epoch(data):
    """seed + epoch would give epoch 1 of seed 0 to seed 1 as its epoch 0."""
    orders = {
        dataclasses.replace(data, seed=seed).draw(epoch, len(data.train[0]))[0].numpy().tobytes()
        for seed, epoch in itertools.product(range(4), repeat=2)
    }
    assert len(orders) == 16
