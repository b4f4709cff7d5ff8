"""One attention layer with weights written by hand that walks a hop in each loop."""

import math

import pytest
import torch
import torch.nn.functional as F

import minidepth as md
from minidepth_lab import inspect, walk_by_hand
from minidepth_lab.tasks import TASKS, walk


def test_it_is_right_in_all_cases_of_rings_of_four():
    """All rings of four of eight letters, their pairs in every order, every question."""
    cases = walk_by_hand.all_cases()
    assert cases.unique(dim=0).shape == (math.perm(8, 4) // 4 * math.factorial(4), 12)
    assert walk.held_out(cases[:, 8:]).any()  # among them those that no training sees
    shares = walk.by_hops(walk_by_hand.walker(4), cases, 4, (1, 2, 3, 4, 100))
    assert shares == {1: 1.0, 2: 1.0, 3: 1.0, 4: 1.0, 100: 1.0}


@pytest.mark.parametrize("ring", [8, 16])
def test_two_and_four_and_a_thousand_hops(ring):
    tokens, _ = TASKS["walk"].draw(20, md.generator("by hand"), True, ring=ring, hops=4)
    shares = walk.by_hops(walk_by_hand.walker(ring), tokens, ring, (1, 2, 4, 7, 1000))
    assert set(shares.values()) == {1.0}


def test_so_many_loops_are_needed():
    """As it is looped: after loop i + 1 it says the letter i hops on, and no other."""
    model = walk_by_hand.walker(8)
    tokens, targets = TASKS["walk"].draw(50, md.generator("loops"), ring=8, hops=4)
    for loops in (2, 3, 4, 5):
        said = model(tokens, loops=loops).argmax(-1)[:, 16:]
        right = [torch.equal(said, targets[:, hops, 16:]) for hops in (1, 2, 3, 4)]
        assert right == [hops == loops - 1 for hops in (1, 2, 3, 4)]


def test_it_needs_no_more_than_the_project_has():
    config = walk_by_hand.walker(8).config
    assert (config.n_layers, config.n_heads, config.d_ff, config.d_model) == (1, 2, 0, 66)
    assert config.loop_start == "recall"


def test_each_head_looks_at_what_it_should():
    model = walk_by_hand.walker(8)
    model.config.n_loops = 4
    tokens, targets = TASKS["walk"].draw(20, md.generator("heads"), ring=8, hops=3)
    maps = inspect.attention_maps(model, tokens)  # a layer for each loop
    links = TASKS["walk"].links(tokens, targets, ring=8, hops=3)
    assert (maps[0][:, 0][links["copy"]] > 0.999).all()
    own = torch.arange(16, 24)
    assert (maps[0][:, 1, own, own] > 0.999).all()  # in the first loop at itself
    for hop in (1, 2, 3):
        assert (maps[hop][:, 1][links[f"hop {hop}"]] > 0.999).all()


def test_without_the_input_it_is_lost():
    """The layer's start is the reason for `recall`: as it is, what is written drowns the rest."""
    model = walk_by_hand.walker(8)
    model.config.loop_start = "state"
    tokens, _ = TASKS["walk"].draw(50, md.generator("state"), ring=8, hops=4)
    assert walk.by_hops(model, tokens, 8, (4,))[4] < 0.5


def test_what_the_norm_takes_from_all_numbers_is_not_seen():
    """Each row that reads the stream adds up to 0."""
    weight = walk_by_hand.walker(8).blocks[0].attn.qkv.weight
    assert torch.allclose(weight.sum(1), torch.zeros(len(weight)), atol=1e-3)
    x = torch.randn(3, weight.size(1))
    shifted = F.linear(x + 7, weight)
    assert torch.allclose(shifted, F.linear(x, weight), atol=0.1, rtol=1e-4)
