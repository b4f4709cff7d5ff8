"""The seed decides the weights, the order of the blocks and each step's dropout, each by itself."""

import dataclasses
import hashlib

import torch

from minidepth_lab.keep import running
from minidepth_lab.models import variants

SEEDS = (0, 1, 3)
STILL = dict(lr=0.0, steps=3, warmup_steps=1, eval_problems=0, watch_problems=0)


def test_the_weights_are_those_of_a_model_made_with_this_seed(tiny, data):
    """At rate 0 they stay as they were drawn."""
    for seed in SEEDS:
        run = running.train(*tiny(seed=seed, name=f"seed-{seed}", **STILL), data=data)
        torch.manual_seed(seed)
        fresh = variants.GPT(run.model.config).state_dict()
        for name, weight in run.model.state_dict().items():
            assert torch.equal(weight, fresh[name]), (seed, name)


def test_no_epoch_of_a_seed_has_the_order_of_another_seeds_epoch(data):
    """seed + epoch would give epoch 1 of seed 0 to seed 1 as its epoch 0."""
    n = len(data.train[0])
    orders = set()
    for seed in range(4):
        own = dataclasses.replace(data, seed=seed)
        for epoch in range(4):
            tokens, _ = own.draw(epoch, n)
            orders.add(tokens.numpy().tobytes())
    assert len(orders) == 16


def test_each_step_of_each_seed_has_a_dropout_of_its_own(tiny, data, monkeypatch):
    """What dropout draws from is in another state at every step, whatever the seed of the run."""
    states, real = [], variants.GPT.forward

    def see(self, *arguments, **options):
        if self.training:
            states.append(hashlib.sha256(torch.get_rng_state().numpy().tobytes()).hexdigest())
        return real(self, *arguments, **options)

    monkeypatch.setattr(variants.GPT, "forward", see)
    by_seed = {}
    for name, seed in (("a", 0), ("b", 1), ("c", 2), ("again", 1)):
        states.clear()
        running.train(*tiny(seed=seed, name=name, **STILL), data=data)
        by_seed[name] = list(states)
        assert len(states) == 3
    assert by_seed["again"] == by_seed["b"]
    assert len({*by_seed["a"], *by_seed["b"], *by_seed["c"]}) == 9
