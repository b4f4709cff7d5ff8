"""One attention layer with weights written by hand that walks a hop in each loop."""

import itertools
import math

import pytest
import torch

import minidepth as md
from minidepth_lab.keep import checkpoints, registry, running
from minidepth_lab.measure import inspect, walk_by_hand
from minidepth_lab.show import runs
from minidepth_lab.tasks import TASKS, held_out_rings, walk


def all_cases():
    """Every ring of four of eight letters with its pairs in every order: tokens (10080, 12), whose
    last four places ask for each letter of the ring."""
    cases = []
    for first, *others in itertools.permutations(range(8), 4):
        if first > min(others):
            continue  # the same ring, begun with another letter
        line = (first, *others)
        pairs = [(line[i], line[(i + 1) % 4]) for i in range(4)]
        for order in itertools.permutations(pairs):
            cases.append([letter for pair in order for letter in pair] + list(line))
    return torch.tensor(cases)


def test_it_is_right_in_all_cases_of_rings_of_four():
    cases = all_cases()
    assert cases.unique(dim=0).shape == (math.perm(8, 4) // 4 * math.factorial(4), 12)
    assert held_out_rings(cases[:, 8:]).any()  # among them those that no training sees
    model = walk_by_hand.walker(4)
    for some in cases.split(630):  # so few states stay in a CPU's cache
        shares = walk.by_hops(model, some, 4, (1, 2, 3, 4))
        assert shares == {1: 1.0, 2: 1.0, 3: 1.0, 4: 1.0}
    assert walk.by_hops(model, cases[::64], 4, (100,)) == {100: 1.0}  # all of them take long


@pytest.mark.parametrize("ring", [8, 16])
def test_two_and_four_and_a_thousand_hops(ring):
    tokens, _ = TASKS["walk"].draw(4, md.generator("by hand"), True, ring=ring, hops=4)
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


def test_without_the_input_it_is_lost_and_what_the_norm_takes_is_not_seen():
    """The layer's start is the reason for `recall`: as it is, what is written drowns the rest. Each
    row that reads the stream adds up to 0."""
    model = walk_by_hand.walker(8)
    model.config.loop_start = "state"
    tokens, _ = TASKS["walk"].draw(50, md.generator("state"), ring=8, hops=4)
    assert walk.by_hops(model, tokens, 8, (4,))[4] < 0.5
    weight = model.blocks[0].attn.qkv.weight
    assert torch.allclose(weight.sum(1), torch.zeros(len(weight)), atol=1e-3)


def test_noise_is_beside_the_size_of_each_weight():
    clean, noisy = walk_by_hand.walker(8), walk_by_hand.walker(8)
    others = torch.get_rng_state()  # of numbers that are drawn without it
    walk_by_hand.add_noise(noisy, 0.1, torch.Generator().manual_seed(0))
    assert torch.equal(torch.get_rng_state(), others)
    pairs = zip(clean.parameters(), noisy.parameters())
    before, after = map(torch.cat, zip(*((a.flatten(), b.flatten()) for a, b in pairs)))
    assert (after[before == 0] == 0).all()
    off = after[before != 0] / before[before != 0] - 1
    assert 0.09 < off.std() < 0.11 and off.mean().abs() < 0.02


@pytest.mark.parametrize("words", ["--ring 1", "--ring 65", "--noise -1", "--seed -1"])
def test_what_no_walker_has_is_refused(words, tmp_path):
    with pytest.raises(SystemExit):
        walk_by_hand.main([str(tmp_path / "run"), *words.split()])
    assert not (tmp_path / "run").exists()


def test_a_run_begins_with_them(tmp_path):
    noise = {"clean": [], "noisy": ["--noise", "0.3", "--seed", "1"]}
    noise["other"] = ["--noise", "0.3", "--seed", "2"]
    heads = {}
    for name, words in noise.items():
        walk_by_hand.main([str(tmp_path / name), *words])
        heads[name] = checkpoints.load(tmp_path / name)[0].blocks[0].attn.out.weight
    assert torch.equal(heads["clean"], walk_by_hand.walker(8).blocks[0].attn.out.weight)
    assert not torch.equal(heads["clean"], heads["noisy"])
    assert not torch.equal(heads["noisy"], heads["other"])
    assert not runs.folders(tmp_path)  # nobody trained them
    changes = dict(init_from=str(tmp_path / "clean"), n_loops=5, block_size=24, steps=1, lr=1e-9)
    changes |= dict(sizes=("ring=8", "hops=4", "far=8"), warmup_steps=0, out_dir=str(tmp_path))
    m, t = registry.configs("walk", name="run", **changes)
    row = running.train(m, t, registry.data_of(t, 24)).log[-1]
    assert row["accuracy"] == 1.0
    with pytest.raises(ValueError, match="block_size 32 is not that of .*clean, 24; leave it out"):
        registry.configs("walk", **changes | dict(block_size=32))
