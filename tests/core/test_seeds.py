"""The seed decides the weights, the order of the blocks and each step's dropout, each by itself."""

import dataclasses
import hashlib
import itertools

import pytest
import torch

from conftest import same_weights
from minidepth_lab.base.data import Data
from minidepth_lab.keep import running
from minidepth_lab.models import variants

SEEDS = (0, 1, 3)
STILL = dict(lr=0.0, steps=3, warmup_steps=1, eval_problems=0, watch_problems=0)


def test_the_weights_are_those_of_a_model_made_with_this_seed(tiny, data):
    """At rate 0 they stay as they were drawn."""
    for seed in SEEDS:
        run = running.train(*tiny(seed=seed, name=f"seed-{seed}", **STILL), data=data)
        torch.manual_seed(seed)
        assert same_weights(run.model, variants.GPT(run.model.config)), seed


class Noted(Data):
    """Data that notes the tokens of every step it draws."""

    drawn = None

    def draw(self, step, n):
        tokens, targets = super().draw(step, n)
        self.drawn.append(tokens.tolist())
        return tokens, targets


@pytest.fixture
def noted(data, monkeypatch):
    """The shared data as Noted, and the list of what training draws from it."""
    monkeypatch.setattr(Noted, "drawn", [])
    values = {f.name: getattr(data, f.name) for f in dataclasses.fields(data)}
    return Noted(**values), Noted.drawn


def of_each_seed(tiny, data, noted):
    """{run: what it noted in each of its three steps}; `again` has the seed of `b`."""
    found = {}
    for name, seed in (("a", 0), ("b", 1), ("c", 2), ("again", 1)):
        noted.clear()
        running.train(*tiny(seed=seed, name=name, **STILL), data=data)
        found[name] = list(noted)
        assert len(noted) == 3
    return found


def test_each_seed_trains_on_batches_of_its_own(tiny, noted):
    data, drawn = noted
    batches = of_each_seed(tiny, data, drawn)
    assert batches["again"] == batches["b"]
    for one, other in itertools.combinations("abc", 2):
        assert all(x != y for x, y in zip(batches[one], batches[other]))


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
    by_seed = of_each_seed(tiny, data, states)
    assert by_seed["again"] == by_seed["b"]
    assert len({*by_seed["a"], *by_seed["b"], *by_seed["c"]}) == 9
