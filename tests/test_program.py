"""The task `program`: against a walk that applies operation by operation; and the tests far out."""

import itertools

import matplotlib.pyplot as plt
import pytest
import torch
import torch.nn.functional as F

import minidepth as md
from minidepth_lab.base import configs
from minidepth_lab.measure import far
from minidepth_lab.models import kept_once
from minidepth_lab.show import why
from minidepth_lab.tasks import TASKS
from minidepth_lab.tasks.program import operations

TASK = TASKS["program"]


def drawn(n=100, test=False, asked=None, **sizes):
    """(all sizes, tokens, targets) of n sequences."""
    tokens, targets = TASK.draw(n, md.generator("test"), test, asked=asked, **sizes)
    assert tokens.dtype == targets.dtype == torch.int64
    return TASK.sizes | sizes, tokens, targets


def read(x, ring):
    """({letter: the one that follows it}, {letter: its operation}) of a sequence, a list."""
    triples = [x[i : i + 3] for i in range(0, 3 * ring, 3)]
    return {a: b for a, _, b in triples}, {a: p - 2 * ring for a, p, _ in triples}


def carried(x, ring, kind, letter, n):
    """(letter, state) after n hops, by hand."""
    follows, operation = read(x, ring)
    state = 0
    for _ in range(n):
        if kind == "additions":
            state = (state + operation[letter]) % 10
        else:
            state = operations(kind)[operation[letter]].tolist()[state]
        letter = follows[letter]
    return letter, state


@pytest.mark.parametrize("kind, states", [("permutations", 5), ("additions", 10)])
def test_targets_are_found_hop_by_hop(kind, states):
    _, tokens, targets = drawn(ring=5, hops=7, kind=kind, hints=1)
    assert tokens.shape == (100, 20) and targets.shape == (100, 8, 20)
    assert (targets[:, 0] == -100).all() and (targets[:, :, :15] == -100).all()
    for x, rows in zip(tokens.tolist(), targets[:, :, 15:].tolist()):
        assert sorted(x[15:]) == sorted(read(x, 5)[0])
        for n, row in enumerate(rows[1:], 1):
            ends = [carried(x, 5, kind, letter, n) for letter in x[15:]]
            assert row == [states * letter + state for letter, state in ends]


def after_one(x, letter):
    return 5 * letter + carried(x, 5, "permutations", letter, 1)[1]


def test_the_hint_is_one_operation_and_asked_with_one_hop_alone():
    _, tokens, targets = drawn(ring=5, hops=7, hints=1, asked=1)
    for x, row in zip(tokens.tolist(), targets[:, 0].tolist()):
        hints = [hint for first in x[:15:3] for hint in (-100, -100, after_one(x, first))]
        assert row == hints + 5 * [-100]


def test_ten_permutations_make_up_all():
    """So the program is of a group that is not solvable; and none of the ten does nothing."""
    ten = [tuple(row) for row in operations("permutations").tolist()]
    made, newest = set(), {tuple(range(5))}
    while newest:
        made |= newest
        newest = {tuple(p[i] for i in x) for x in newest for p in ten} - made
    assert made == set(itertools.permutations(range(5)))
    assert len(set(ten)) == 10 and tuple(range(5)) not in ten


def test_rings_of_the_test_are_never_trained_on():
    for test in (False, True):
        _, tokens, _ = drawn(100, test, ring=5)
        for x in tokens.tolist():
            follows, letters = read(x, 5)[0], [min(x[15:])]
            while len(letters) < 5:
                letters.append(follows[letters[-1]])
            assert md.is_held_out(" ".join(map(str, letters)), 6048) == test


def looped(model, **changes):
    sizes = dict(vocab_size=50, block_size=20, n_loops=3, d_ff=8, loop_start="recall")
    return model(**sizes | dict(tie_weights=False) | changes)


@pytest.mark.parametrize(
    "changes",
    [{}, dict(n_layers=2, loop_start="input"), dict(d_ff=0), dict(position="rotary", d_ff=0)],
)
def test_what_is_kept_is_computed_once(model, changes, monkeypatch):
    gpt = looped(model, loop_keeps=15, **changes)
    _, tokens, _ = drawn(20, ring=5)
    assert kept_once.possible(gpt, tokens)
    quick = list(gpt.run_loops(tokens, loops=6))
    alone = list(kept_once.questions_alone(gpt, tokens, 6))
    monkeypatch.setattr(kept_once, "possible", lambda *given: False)
    before = list(gpt.run_loops(tokens, loops=6))
    for i, (x, y, z) in enumerate(zip(before, quick, alone, strict=True)):
        torch.testing.assert_close(y, x, atol=1e-5, rtol=0)
        torch.testing.assert_close(z, x[:, 15 * (i > 0) :], atol=1e-5, rtol=0)


def test_with_chance_or_a_look_inside_it_is_computed_in_each_loop(model):
    _, tokens, _ = drawn(2, ring=5)
    plain = looped(model, loop_keeps=15, dropout=0.0)
    assert not kept_once.possible(looped(model, loop_keeps=15, dropout=0.1).train(), tokens)
    assert not kept_once.possible(
        looped(model, loop_keeps=15, loop_noise=0.1, dropout=0.0).train(), tokens
    )
    assert kept_once.possible(plain.train(), tokens)
    assert not kept_once.possible(plain, tokens[:, :15])  # nothing goes on
    handle = plain.blocks[0].attn.register_forward_pre_hook(lambda *given: None)
    assert not kept_once.possible(plain, tokens)
    handle.remove()
    assert kept_once.possible(plain, tokens)


class Walker(torch.nn.Module):
    """Right on all rings up to so many hops, and from there on lost on the last ring alone."""

    def __init__(self, task, tokens, sizes, right_until, words):
        super().__init__()
        self.given, self.until, self.words = (task, tokens, sizes), right_until, words
        self.config = configs.ModelConfig(n_loops=4)
        self.head_weight, self.norm = torch.nn.Parameter(torch.eye(100)), torch.nn.Identity()

    def run_loops(self, tokens, loops):
        for i, said in enumerate(far.answers(*self.given, loops - 1)):
            said = said.clone()
            if i > self.until:
                said[-1] = (said[-1] + 1) % (self.words or 100)
            yield F.pad(F.one_hot(said, 100).float(), (0, 0, tokens.size(1) - said.size(1), 0))


@pytest.mark.parametrize("task", ["walk", "sums", "program"])
def test_far_counts_rings_and_scores_three_cheats(task):
    sizes = TASKS[task].sizes | dict(ring=5)
    sizes |= dict(hops=3) if task == "walk" else {}
    shape = {name: sizes[name] for name in TASKS[task].sizes}
    tokens, _ = TASKS[task].draw(20, md.generator("far"), test=True, **shape)
    truths = list(far.answers(task, tokens, sizes, 40))
    for n in (1, 7, 23):  # the answers of an independent walk
        for x, row in zip(tokens.tolist(), truths[n].tolist()):
            ends = []
            for letter in x[-5:]:
                for _ in range(n) if task == "walk" else ():
                    letter = dict(zip(x[:10:2], x[1:10:2]))[letter]
                kind = "additions" if task == "sums" else "permutations"
                ends.append(letter if task == "walk" else carried(x, 5, kind, letter, n)[1])
            assert row == ends
    words = far.states_of(task, sizes)
    walker = Walker(task, tokens, sizes, 29, words)
    found = far.tested(walker, tokens, truths, (12,), range(28, 33), words)
    assert found["at"]["12"]["right"] == 1 and found["at"]["12"]["rings_without_error"] == 20
    window = found["window"]
    assert (window["least"], window["rings_without_error"]) == (0.95, 19)
    assert window["least_at"] == 30 and found["trained"] == 3
    own = [(truths[0] == truths[i]).float().mean().item() for i in range(28, 33)]
    stopped = [(truths[3] == truths[i]).float().mean().item() for i in range(28, 33)]
    for name, shares in dict(own=own, stopped=stopped).items():
        assert window[name] == pytest.approx(min(shares))
        assert window[f"{name}_at_best"] == pytest.approx(max(shares))
    if task == "walk":
        assert window["own"] == window["stopped"] == 0 and window["own_at_best"] == 1


def test_no_window_has_one_answer_for_all():
    """As 200 additions along a ring of 4 would have."""
    for task, ring in (("walk", 16), ("sums", 4), ("program", 16)):
        sizes = TASKS[task].sizes | dict(ring=ring)
        shape = {name: sizes[name] for name in TASKS[task].sizes}
        tokens, _ = TASKS[task].draw(50, md.generator("far"), test=True, **shape)
        _, window = far.tests_of(task, ring)
        truths = list(far.answers(task, tokens, sizes, window[-1]))
        assert {i % ring for i in window} == set(range(ring))
        for cheat in (truths[0], truths[8]):
            assert min(far.count(cheat, truths[i]) for i in window) < 0.3
        commonest = [truths[i].flatten().bincount().max() / truths[i].numel() for i in window]
        assert min(commonest) < 0.3


def test_cheats_are_scored_without_a_model():
    found = far.cheats("walk", (5, 8, 16), trained=8, rings=50, ring=16)
    assert found[16]["own"] == found[8]["stopped"] == 1  # a round, and where it stopped
    assert found[5]["own"] == found[5]["stopped"] == found[16]["stopped"] == 0
    assert 1 / 32 < found[5]["commonest"] < 0.06
    sums = far.cheats("sums", (31, 200), trained=16, rings=50, ring=4, additions=16)
    assert sums[200]["commonest"] == 1 and sums[31]["commonest"] < 0.3  # 200 additions are 0
    held = far.cheats("hold", (16, 100), trained=16, rings=50)
    assert held[16] == held[100] and held[100]["stopped"] == 1 > held[100]["commonest"]


def test_why_a_walk_is_lost_in_three_arms():
    found = why.arms(rings=2)
    far_out = {}
    for column, of in found.items():
        for arm, runs in of.items():
            far_out[column, arm] = [min(right[n] for n in (100, 1000)) for right, _ in runs]
    assert min(far_out["norm and input", "kept at the test"]) > 0.9
    assert min(far_out["norm alone", "kept at the test"]) > 0.9
    assert max(far_out["norm alone", "map changes"]) < 0.3
    assert max(far_out["neither", "kept at the test"] + far_out["neither", "read once"]) < 0.3
    drift = {c: max(max(d.values()) for _, d in of["map changes"]) for c, of in found.items()}
    assert drift["norm and input"] < 1 < drift["norm alone"]
    figure, axes = plt.subplots(2, 3)
    why.draw(axes, found)
    plt.close(figure)
