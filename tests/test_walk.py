"""The task `walk` and its study: against a walk along the pairs, letter by letter."""

import contextlib
import json
import math
import pathlib
import random
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from matplotlib.figure import Figure

import minidepth as md
import train
from conftest import changed
from minidepth_lab.base import configs
from minidepth_lab.command import dispatch
from minidepth_lab.keep import checkpoints, registry, running
from minidepth_lab.measure import inspect, results
from minidepth_lab.models import variants
from minidepth_lab.show import figures
from minidepth_lab.studies import walk as study
from minidepth_lab.sweep import table
from minidepth_lab.tasks import TASKS, held_out_rings, walk

TASK = TASKS["walk"]
CASES = [{}, dict(ring=4, hops=3), dict(ring=9, hops=1), dict(ring=6, hops=5, loss_after="last")]


def drawn(n=200, test=False, asked=None, **sizes):
    """(all sizes, tokens, targets) of n sequences."""
    tokens, targets = TASK.draw(n, md.generator("test"), test, asked=asked, **sizes)
    assert tokens.dtype == targets.dtype == torch.int64
    return TASK.sizes | sizes, tokens, targets


def follows_of(x, ring):
    """{letter: the one that follows it} of a sequence, a list."""
    return dict(zip(x[0 : 2 * ring : 2], x[1 : 2 * ring : 2]))


def circle(x, ring):
    """The letters of a sequence's ring, from the smallest one on."""
    follows = follows_of(x, ring)
    letters = [min(follows)]
    while follows[letters[-1]] != letters[0]:
        letters.append(follows[letters[-1]])
    return tuple(letters)


# ---------- what is drawn ----------


@pytest.mark.parametrize("changes", CASES)
def test_targets_are_found_by_walking(changes):
    sizes, tokens, targets = drawn(**changes)
    ring, hops = sizes["ring"], sizes["hops"]
    assert tokens.shape == (200, 3 * ring) and targets.shape == (200, 1 + hops, 3 * ring)
    loops_asked = []
    for x, y in zip(tokens.tolist(), targets.tolist()):
        letters = circle(x, ring)
        assert len(letters) == ring and max(letters) < 2 * ring
        asked = x[2 * ring :]
        assert sorted(asked) == sorted(letters)  # each letter once
        loops_asked.append([i for i, row in enumerate(y) if any(t != -100 for t in row)])
        follows, at = follows_of(x, ring), asked
        for i, row in enumerate(y):
            wanted = at if i in loops_asked[-1] else [-100] * ring
            assert row == [-100] * 2 * ring + wanted
            at = [follows[letter] for letter in at]
    if sizes["loss_after"] == "each":
        assert all(loops == list(range(1, hops + 1)) for loops in loops_asked)
    else:  # after one loop alone, each of them about as often
        assert all(len(loops) == 1 for loops in loops_asked)
        counts = [loops_asked.count([i]) for i in range(hops + 1)]
        assert counts[0] == 0 and min(counts[1:]) > 200 / hops / 2


def test_rings_pairs_and_questions_are_in_mixed_order():
    _, tokens, _ = drawn()
    rings, first_pairs, second_pairs, first_asked = set(), set(), set(), set()
    for x in tokens.tolist():
        letters = circle(x, 16)
        rings.add(letters)
        first_pairs.add(letters.index(x[0]))
        second_pairs.add((letters.index(x[2]) - letters.index(x[0])) % 16)
        first_asked.add((letters.index(x[32]) - letters.index(x[0])) % 16)
    assert len(rings) == 200 and len(first_pairs) == len(first_asked) == 16
    assert second_pairs == set(range(1, 16))


@pytest.mark.parametrize("ring", [4, 5, 16])
def test_rings_of_the_test_are_never_trained_on(ring):
    """By the rule of the embedded problems, whatever letter a ring is begun with."""
    sizes = dict(ring=ring, hops=3)
    split = {}
    for test in (False, True):
        split[test] = {circle(x, ring) for x in drawn(3000, test, **sizes)[1].tolist()}
    curriculum, _ = TASK.train_batch(2.0, 3000, md.generator("later"), **sizes)
    split[False] |= {circle(x, ring) for x in curriculum.tolist()}
    assert split[True] and split[False] and not split[True] & split[False]
    n = math.perm(2 * ring, ring) // ring
    for test, rings in split.items():
        for letters in rings:
            assert md.is_held_out(" ".join(map(str, letters)), n) == test
    if ring == 4:  # all 420 of them, of which so few are halved
        assert len(split[True]) + len(split[False]) == n == 420
    if ring == 16:  # an eighth of all
        share = held_out_rings(torch.rand(4000, 32).topk(16).indices).float().mean()
        assert share == pytest.approx(1 / 8, abs=0.03)


def test_a_ring_is_held_out_whatever_letter_it_is_begun_with():
    lines = torch.rand(100, 20, generator=md.generator("lines")).topk(10).indices
    for places in (1, 4, 9):
        assert torch.equal(held_out_rings(lines), held_out_rings(lines.roll(places, 1)))


@pytest.mark.parametrize("ring", [4, 7, 16])
def test_guess_and_shortcut_are_those_of_players(ring):
    """Players that know no more than the rates say, over one to ring - 1 hops."""
    player, guessed, looked, n = random.Random(0), 0, 0, 0
    _, tokens, _ = drawn(300, ring=ring, hops=1)
    for x in tokens.tolist():
        letters = circle(x, ring)
        for i, start in enumerate(letters):
            after, before = letters[(i + 1) % ring], letters[i - 1]
            far = [letter for letter in letters if letter not in (start, after, before)]
            for hops in range(1, ring):
                n += 1
                right = letters[(i + hops) % ring]
                guessed += right == player.choice([x for x in letters if x != start])
                near = {1: after, ring - 1: before}
                looked += right == (near[hops] if hops in near else player.choice(far))
    guess, shortcut = TASK.chance(ring=ring)
    assert guessed / n == pytest.approx(guess, abs=4 * (guess / n) ** 0.5)
    assert looked / n == pytest.approx(shortcut, abs=4 * (shortcut / n) ** 0.5)


def test_following_the_links_answers_every_question():
    """Attention that looks exactly there is a solution: a hop at a time."""
    sizes, tokens, targets = drawn(50, ring=7, hops=4)
    links = TASK.links(tokens, targets, **sizes)
    assert list(links) == ["copy", "hop 1", "hop 2", "hop 3", "hop 4"]
    rows, query, key = links["copy"].nonzero().T
    assert len(rows) == 50 * 7 and (key == query - 1).all() and (query % 2 == 1).all()
    for hop in (1, 2, 3, 4):
        link = links[f"hop {hop}"].float()
        assert (link.sum(2)[:, 14:] == 1).all() and (link.sum(2)[:, :14] == 0).all()
        read = (link @ tokens[..., None].float())[..., 0].long()
        assert torch.equal(read[:, 14:], targets[:, hop, 14:])


# ---------- the hops join one at a time ----------


def settings_of(tmp_path, name, *sizes, **changes):
    """(ModelConfig, TrainConfig, data) of a run of a second."""
    values = dict(d_model=16, n_heads=2, block_size=15, n_loops=4, steps=12, batch_size=4)
    values |= dict(warmup_steps=1, eval_every=4, save_every=4, eval_blocks=20, name=name)
    given = ("ring=5", "hops=3", "far=31", *sizes)
    m, t = registry.configs("walk", out_dir=str(tmp_path), sizes=given, **values | changes)
    return m, t, registry.data_of(t, m.block_size)


def hops_asked(data, step):
    _, targets = data.draw(step, 50)
    return targets.size(1) - 1


@pytest.mark.parametrize("loss_after", walk.LOSS_AFTER)
def test_hops_join_one_at_a_time_by_the_loss_of_the_newest(tmp_path, loss_after):
    *_, data = settings_of(tmp_path, "gate", f"loss_after={loss_after}")
    assert hops_asked(data, 0) == hops_asked(data, 11) == 1  # never by time alone
    data.after_step(0.5)
    assert hops_asked(data, 1) == 1
    data.after_step(0.49)
    assert hops_asked(data, 2) == 2
    data.after_step(0.26)  # the first hop known, this is a loss of 0.52 on the second
    assert hops_asked(data, 3) == 2
    data.after_step(0.24)
    assert hops_asked(data, 4) == 3
    data.after_step(0.0)
    assert hops_asked(data, 11) == 3  # all there are
    data.after_step(9.0)
    assert hops_asked(data, 11) == 3  # none goes again


def test_a_hint_is_the_first_letter_of_each_pair_while_one_hop_is_asked():
    sizes = dict(ring=5, hops=3)

    def with_and_without(done):
        for hints in (0, 1):
            yield TASK.train_batch(done, 50, md.generator("hints"), hints=hints, **sizes)

    plain, hinted = with_and_without(done=0.7)
    assert torch.equal(plain[0], hinted[0]) and torch.equal(plain[1][:, 1], hinted[1][:, 1])
    assert (plain[1][:, 0] == -100).all()
    for x, y in zip(hinted[0].tolist(), hinted[1][:, 0].tolist()):
        for place in range(15):
            second_of_pair = place < 10 and place % 2 == 1
            assert y[place] == (x[place - 1] if second_of_pair else -100)
    for done in (1.0, 2.0):  # a second hop has joined
        assert all(torch.equal(a, b) for a, b in zip(*with_and_without(done)))
    _, y = TASK.draw(50, md.generator("hints"), test=True, hints=1, **sizes)
    assert (y[:, 0] == -100).all()


def test_the_gate_asks_the_first_hop_itself_where_hints_share_the_loss(tmp_path):
    *_, data = settings_of(tmp_path, "gate", "hints=1")
    data.after_step(0.26)  # the hint known, this is a loss of 0.52 on the first hop
    assert hops_asked(data, 1) == 1
    data.after_step(0.24)
    assert hops_asked(data, 2) == 2
    data.after_step(0.24)  # the hint is gone: 0.48 on the second hop
    assert hops_asked(data, 3) == 3


def test_the_test_asks_all_hops_from_the_start(tmp_path):
    *_, data = settings_of(tmp_path, "test")
    assert data.val[1].shape == (1000, 4, 15) and (data.val[1][:, 1:, 10:] >= 0).all()
    assert data.train[1].shape == (1000, 2, 15)


@pytest.mark.parametrize("loss_after", walk.LOSS_AFTER)
def test_a_resumed_run_is_the_same_bit_for_bit(tmp_path, loss_after):
    """Stopped before and behind the gate of the second hop, which opens after the fourth step."""
    sizes = (f"loss_after={loss_after}", "gate=4")
    whole = running.train(*settings_of(tmp_path, "whole", *sizes))
    state = torch.load(pathlib.Path(whole.dir, "state.pt"), weights_only=True)
    assert state["data"]["ahead"] >= 1  # a second hop was asked
    for n in (2, 7):
        m, t, data = settings_of(tmp_path, f"stopped {n}", *sizes)
        asked = iter([False] * n + [True])
        assert not running.train(m, t, data, stop=lambda: next(asked)).finished
        again = running.train(*settings_of(tmp_path, f"stopped {n}", *sizes), resume=True)
        keys = ("step", "train_loss", "val_loss", "accuracy", "accuracy_by")
        for row, other in zip(whole.log, again.log, strict=True):
            assert [row[key] for key in keys] == [other[key] for key in keys]
        for name, weight in whole.model.state_dict().items():
            assert torch.equal(weight, again.model.state_dict()[name])


# ---------- the model ----------


def walker(model, **changes):
    """A model with weights large enough for differences to show, for rings of 5."""
    options = dict(vocab_size=10, block_size=15, n_layers=2, d_ff=0, n_loops=3)
    return model(**options | dict(tie_weights=False) | changes)


@pytest.mark.parametrize("start", configs.LOOP_STARTS)
def test_loss_after_each_loop_is_cross_entropy_by_hand(model, start):
    gpt = walker(model, loop_start=start).double()
    _, tokens, targets = drawn(6, ring=5, hops=4)
    targets[2, 1:3] = -100  # a sequence of fewer loops
    targets[3, 2, 11] = -100
    loss_sum, n_targets = gpt(tokens, targets)
    expected, count = torch.zeros(6, dtype=torch.float64), torch.zeros(6)
    for i, x in enumerate(gpt.run_loops(tokens, loops=5)):
        log_p = F.log_softmax(gpt.norm(x) @ gpt.head_weight.T, 2)
        for row in range(6):
            for place in range(15):
                wanted = targets[row, i, place].item()
                if wanted != -100:
                    expected[row] -= log_p[row, place, wanted]
                    count[row] += 1
    assert loss_sum.tolist() == pytest.approx(expected.tolist(), rel=1e-6)  # it leaves as float32
    assert n_targets.tolist() == count.tolist()


@pytest.mark.parametrize("start", configs.LOOP_STARTS)
@pytest.mark.parametrize("loops", [1, 2, 7])
def test_so_many_loops_are_those_of_a_config_with_so_many(model, start, loops):
    gpt, other = (walker(model, loop_start=start, n_loops=n) for n in (3, loops))
    other.load_state_dict(gpt.state_dict())
    _, tokens, targets = drawn(4, ring=5, hops=4)
    assert torch.equal(gpt(tokens, loops=loops), other(tokens))
    after_each = list(gpt.run_loops(tokens, loops=loops))
    assert len(after_each) == loops
    assert torch.equal(gpt.norm(after_each[-1]) @ gpt.head_weight.T, other(tokens))
    assert loops == 3 or not torch.equal(gpt(tokens), other(tokens))


def test_what_a_loop_starts_from(model):
    """Each setting by its formula, a layer after the other, in float64."""
    gpt = {start: walker(model, loop_start=start).double() for start in configs.LOOP_STARTS}
    _, tokens, _ = drawn(4, ring=5, hops=4)
    assert gpt.keys() == {"state", "input", "normalised", "recall"}
    for start, each in gpt.items():
        e = each.token_embedding.weight[tokens] + each.position_embedding.weight[:15]
        x = e
        for after_loop in each.run_loops(tokens, loops=4):
            centred = x - x.mean(2, keepdim=True)
            normal = centred / (centred.square().mean(2, keepdim=True) + 1e-5).sqrt()
            starts = {"state": x, "input": x + e, "normalised": normal, "recall": normal + e}
            x = starts[start]
            for block in each.blocks:
                x = block(x)
            assert torch.allclose(after_loop, x, rtol=1e-10)


@pytest.mark.parametrize("start", configs.LOOP_STARTS)
@pytest.mark.parametrize("checkpointed", [False, True])
def test_the_last_loops_alone_have_a_gradient(model, start, checkpointed):
    """As if the loops before them were of another model with the same weights."""
    gpt = walker(model, loop_start=start, dropout=0.0).double().train()
    gpt.checkpointed = checkpointed
    _, tokens, targets = drawn(4, ring=5, hops=4)
    targets[:, :3] = -100
    states = list(gpt.run_loops(tokens, loops=3))
    e = gpt.embed(tokens)
    x, loss = states[-1].detach(), 0.0
    for i in (3, 4):
        normal = F.layer_norm(x, (gpt.config.d_model,))
        starts = {"state": x, "input": x + e, "normalised": normal, "recall": normal + e}
        x = starts[start]
        for block in gpt.blocks:
            x = block(x)
        logits = gpt.norm(x) @ gpt.head_weight.T
        loss = loss + F.cross_entropy(
            logits.flatten(0, 1), targets[:, i].flatten(), reduction="sum"
        )
    loss.backward()
    expected = {name: w.grad for name, w in gpt.named_parameters()}

    def gradients(loops):
        gpt.zero_grad(set_to_none=True)
        gpt.gradient_loops = loops
        loss_sum, _ = gpt(tokens, targets)
        loss_sum.sum().backward()
        return {name: w.grad for name, w in gpt.named_parameters()}

    ours, of_all = gradients(2), gradients(0)
    for name, wanted in expected.items():
        if wanted is None:  # embeddings, where no loop reads the input again
            assert start in ("state", "normalised") and "embedding" in name and ours[name] is None
            continue
        assert torch.allclose(ours[name].to_dense(), wanted.to_dense(), rtol=1e-5, atol=1e-9)
        same = torch.allclose(of_all[name].to_dense(), wanted.to_dense(), rtol=1e-2)
        assert same == name.startswith(("norm.", "head."))  # they come after the loops
    for loops in (5, 9):  # all there are
        for name, wanted in gradients(loops).items():
            assert torch.equal(wanted.to_dense(), of_all[name].to_dense())

    # in half precision no weight is kept converted: before PyTorch 2.10 one from a loop without a
    # gradient would have none in the others
    kept = []
    gpt.blocks[0].register_forward_hook(lambda *_: kept.append(torch.is_autocast_cache_enabled()))
    gpt.autocast_dtype = torch.bfloat16
    for loops, cached in ((2, False), (0, True)):
        gradients(loops)
        assert set(kept) == {cached}
        kept.clear()


def test_noise_is_added_to_what_each_loop_starts_from_in_training_alone(model):
    alike = dict(loop_start="recall", n_layers=1, d_model=64, dropout=0.0)
    gpt, quiet = walker(model, loop_noise=0.5, **alike), walker(model, **alike)
    quiet.load_state_dict(gpt.state_dict())
    _, tokens, _ = drawn(50, ring=5, hops=4)
    assert torch.equal(gpt.eval()(tokens), quiet(tokens))
    gpt.train()
    came_in = []
    gpt.blocks[0].register_forward_pre_hook(lambda block, given: came_in.append(given[0].detach()))
    states = [x.detach() for x in gpt.run_loops(tokens, loops=3)]
    e = gpt.embed(tokens).detach()
    noise = []
    for before, given in zip([e, *states], came_in):
        noise.append(given - F.layer_norm(before, (64,)) - e)
        assert noise[-1].std().item() == pytest.approx(0.5, rel=0.02)
        assert abs(noise[-1].mean().item()) < 0.01
    assert not torch.allclose(noise[0], noise[1], atol=0.1)


# ---------- the test ----------


class Walker(torch.nn.Module):
    """Walks `hops` hops and stays there, or says no letter of the ring once it has walked `lost`;
    its stream is the letter it says, one-hot."""

    def __init__(self, ring, hops, lost=math.inf):
        super().__init__()
        self.ring, self.hops, self.lost = ring, hops, lost
        self.head_weight = torch.nn.Parameter(torch.eye(2 * ring))
        self.norm = torch.nn.Identity()
        self.blocks, self.config = [torch.nn.Identity()], SimpleNamespace(n_loops=1, loop_keeps=0)

    def run_loops(self, tokens, loops):
        at = tokens.clone()
        for i in range(loops):
            yield F.one_hot(at if i < self.lost else tokens * 0, 2 * self.ring).float()
            if i < self.hops:
                for x, row in zip(tokens.tolist(), at):
                    follows = follows_of(x, self.ring)
                    row.copy_(torch.tensor([follows[letter] for letter in row.tolist()]))


def test_accuracy_is_told_by_hops():
    sizes, tokens, targets = drawn(20, ring=6, hops=2)
    sizes["far"] = 31

    def shares(model, method):
        result = method(model, tokens, targets, **sizes)
        by_hops = {k: part["accuracy"] for k, part in result["accuracy_by"]["hops"].items()}
        return result["accuracy"], by_hops

    assert shares(Walker(6, 99), TASK.accuracy) == (1.0, {str(i): 1.0 for i in range(1, 6)})
    accuracy, by_hops = shares(Walker(6, 99), TASK.final_accuracy)
    assert accuracy == 1.0 and by_hops == {str(i): 1.0 for i in (1, 2, 3, 4, 5, 31)}
    accuracy, by_hops = shares(Walker(6, 3), TASK.final_accuracy)
    assert by_hops == {"1": 1.0, "2": 1.0, "3": 1.0, "4": 0.0, "5": 0.0, "31": 0.0}
    assert accuracy == pytest.approx(3 / 5)  # over once round, at the end as before
    right, by_hops = shares(Walker(6, 99, lost=2), TASK.accuracy)
    assert by_hops["1"] == 1.0 and by_hops["2"] < 0.3  # where the letter 0 is right
    # three hops that stay are right again once round later
    sizes["far"] = 33
    assert shares(Walker(6, 3), TASK.final_accuracy)[1]["33"] == 1.0


@pytest.mark.parametrize("start", configs.LOOP_STARTS)
def test_pairs_that_are_kept_no_longer_move_and_the_questions_go_on(model, start):
    """Against loops by hand, of two layers, whose pairs are set back after the third loop."""
    gpt = walker(model, loop_start=start).double().eval()
    _, tokens, _ = drawn(6, ring=5, hops=4)
    with walk.pairs_kept(gpt, 10, after=3):
        states = list(gpt.run_loops(tokens, loops=7))
    x = e = gpt.embed(tokens)
    for loop, state in enumerate(states, 1):
        normal = F.layer_norm(x, (gpt.config.d_model,))
        x = {"state": x, "input": x + e, "normalised": normal, "recall": normal + e}[start]
        for block in gpt.blocks:
            x = block(x)
        if loop <= 3:
            of_pairs = x[:, :10]
        x = torch.cat((of_pairs, x[:, 10:]), 1)
        assert torch.allclose(state, x, rtol=1e-10)
    as_before = list(gpt.run_loops(tokens, loops=7))[-1]
    assert not torch.allclose(as_before, states[-1], rtol=1e-3)  # and nothing is kept any more


@pytest.mark.parametrize("start", configs.LOOP_STARTS)
def test_first_tokens_that_loops_keep_stay_as_the_first_loop_leaves_them(model, start):
    """Against loops by hand, of two layers: outputs, and gradients of every weight."""
    gpt = walker(model, loop_start=start, loop_keeps=10, dropout=0.0).double().train()
    _, tokens, targets = drawn(6, ring=5, hops=4)
    x = e = gpt.embed(tokens)
    expected, loss = [], 0.0
    for loop in range(5):
        normal = F.layer_norm(x, (gpt.config.d_model,))
        x = {"state": x, "input": x + e, "normalised": normal, "recall": normal + e}[start]
        for block in gpt.blocks:
            x = block(x)
        pairs = expected[0][:, :10] if expected else x[:, :10]
        x = torch.cat((pairs, x[:, 10:]), 1)
        expected.append(x)
        logits = (gpt.norm(x) @ gpt.head_weight.T).flatten(0, 1)
        loss = loss + F.cross_entropy(logits, targets[:, loop].flatten(), reduction="sum")
    loss.nansum().backward()
    wanted = {name: w.grad.clone() for name, w in gpt.named_parameters()}
    gpt.zero_grad()
    states = list(gpt.run_loops(tokens, loops=5))
    assert all(torch.allclose(a, b, rtol=1e-10) for a, b in zip(states, expected, strict=True))
    gpt(tokens, targets)[0].sum().backward()
    for name, w in gpt.named_parameters():
        assert torch.allclose(w.grad, wanted[name], rtol=1e-6, atol=1e-9), name
    free = walker(model, loop_start=start, dropout=0.0).double()
    free.load_state_dict(gpt.state_dict())
    changed = [x[:, :10] for x in free.run_loops(tokens, loops=5)]
    assert torch.equal(changed[0], states[0][:, :10])
    assert not torch.allclose(changed[1], states[1][:, :10], rtol=1e-3)


@pytest.mark.parametrize("cut", [1, 4, 10, 13])
def test_tokens_that_loops_keep_are_kept_when_a_sequence_comes_in_parts(model, cut):
    """As text does that is generated: the prompt first, then one token after the other."""
    gpt = walker(model, loop_start="recall", loop_keeps=10).double().eval()
    _, tokens, _ = drawn(3, ring=5, hops=4)
    whole = gpt(tokens)
    cache = [md.Cache() for _ in range(6)]  # three loops of two layers
    assert torch.allclose(gpt(tokens[:, :cut], cache=cache)[:, 0], whole[:, cut - 1])
    for place in range(cut, 15):
        logits = gpt(tokens[:, place : place + 1], cache=cache)
        assert torch.allclose(logits[:, 0], whole[:, place], rtol=1e-8)


def test_what_loops_keep_has_to_leave_something_to_change(model):
    with pytest.raises(ValueError, match="loop_keeps 4 has no effect with n_loops 1; give more"):
        walker(model, n_loops=1, loop_keeps=4)
    for keeps in (15, 20):
        said = f"loop_keeps {keeps} leaves none of 15 tokens for later loops.*; give at most 14"
        with pytest.raises(ValueError, match=said):
            walker(model, loop_keeps=keeps)
    assert walker(model, loop_keeps=14).config.loop_keeps == 14


def test_a_length_that_is_kept_is_that_of_the_questions_and_no_other(model):
    """Against loops by hand, the pairs kept as well from the third loop on, and left to change."""
    gpt = walker(model, loop_start="input").double().eval()
    _, tokens, _ = drawn(6, ring=5, hops=4)
    for keep_pairs in (True, False):
        pairs = walk.pairs_kept(gpt, 10, 3) if keep_pairs else contextlib.nullcontext()
        with walk.length_kept(gpt, 10, 3), pairs:
            states = list(gpt.run_loops(tokens, loops=7))
        x = e = gpt.embed(tokens)
        for loop, state in enumerate(states, 1):
            x = x + e
            for block in gpt.blocks:
                x = block(x)
            if loop == 3:
                of_pairs, length = x[:, :10], x[:, 10:].square().sum(2, keepdim=True).sqrt()
            if loop > 3:
                pair = of_pairs if keep_pairs else x[:, :10]
                norms = x[:, 10:].square().sum(2, keepdim=True).sqrt()
                x = torch.cat((pair, x[:, 10:] * length / norms), 1)
            assert torch.allclose(state, x, rtol=1e-8)
        assert (norms - length).abs().max() > 1e-3  # it would have changed


def test_the_last_test_tells_how_many_are_right_with_the_pairs_kept(model):
    gpt = walker(model, loop_start="recall")
    sizes, tokens, targets = drawn(30, ring=5, hops=4)
    sizes["far"] = 31
    by_number = TASK.final_accuracy(gpt, tokens, targets, **sizes)["accuracy_by"]["hops"]
    assert list(by_number) == ["1", "2", "3", "4", "31"]
    gpt.eval()
    with walk.pairs_kept(gpt, 10, after=3):  # as many as it has
        shares = walk.by_hops(gpt, tokens, 5, (1, 2, 3, 4, 31))
    assert {n: part["pairs_kept"] for n, part in by_number.items()} == {
        str(n): share for n, share in shares.items()
    }
    assert any(part["pairs_kept"] != part["accuracy"] for part in by_number.values())
    alone = TASK.accuracy(gpt, tokens, targets, **sizes)["accuracy_by"]["hops"]
    assert all(part.keys() == {"accuracy"} for part in alone.values())


@pytest.mark.parametrize(
    ("ring", "far", "beyond"),
    [
        (16, 1000, [31, 100, 1000]),
        (16, 50, [31, 50]),
        (16, 15, []),
        (40, 1000, [100, 1000]),
        (4, 100, [31, 100]),
    ],
)
def test_how_far_the_last_test_goes(ring, far, beyond):
    _, tokens, targets = drawn(1, ring=ring, hops=1)
    model = Walker(ring, 0)
    result = TASK.final_accuracy(model, tokens, targets, ring=ring, far=far)
    tested = [int(hops) for hops in result["accuracy_by"]["hops"]]
    assert tested == [*range(1, ring), *beyond]


def test_of_a_long_ring_fewer_hops_are_told_and_fewer_rings_are_tested():
    _, tokens, targets = drawn(1, ring=130, hops=1)
    result = TASK.final_accuracy(Walker(130, 0), tokens, targets, ring=130, far=200)
    told = [int(hops) for hops in result["accuracy_by"]["hops"]]
    assert told == [*range(1, 65), 100, 128, 129, 200]
    assert result["accuracy"] == 0.0  # a walker that stays where it is
    rings = {
        ring: len(walk.tested(torch.zeros(300, 3), ring)) for ring in (16, 64, 65, 128, 20_000)
    }
    assert rings == {16: 200, 64: 200, 65: 196, 128: 100, 20_000: 1}


def test_a_model_that_keeps_its_pairs_is_not_tested_with_them_kept_once_more(model):
    gpt = walker(model, loop_start="recall", loop_keeps=10)
    sizes, tokens, targets = drawn(5, ring=5, hops=4)
    by_number = TASK.final_accuracy(gpt, tokens, targets, **sizes)["accuracy_by"]["hops"]
    assert all(part.keys() == {"accuracy"} for part in by_number.values())


def test_a_trained_model_is_looped_as_it_answers(model):
    """The accuracy of a GPT is that of its logits after so many loops; its mode is given back."""
    gpt = walker(model, loop_start="recall", dropout=0.5).train()
    sizes, tokens, targets = drawn(30, ring=5, hops=4)
    shares = TASK.accuracy(gpt, tokens, targets, **sizes)["accuracy_by"]["hops"]
    assert gpt.training
    gpt.eval()
    for hops in (1, 2, 3, 4):
        right = gpt(tokens, loops=1 + hops).argmax(-1) == targets[:, hops]
        share = right[:, 10:].float().mean().item()
        assert shares[str(hops)]["accuracy"] == pytest.approx(share)
    assert len({part["accuracy"] for part in shares.values()}) > 1


def test_the_last_evaluation_alone_walks_far(tmp_path):
    run = running.train(*settings_of(tmp_path, "run", steps=4, eval_every=1))
    hops = [list(row["accuracy_by"]["hops"]) for row in run.log]
    assert hops == [["1", "2", "3", "4"]] * 3 + [["1", "2", "3", "4", "31"]]
    assert run.log[-1]["guess"] == 1 / 4 and run.log[-1]["shortcut"] == 3 / 4


# ---------- sizes, the command, the study ----------


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ("ring=3,hops=1", "ring 3 is too short: its letters are all neighbours; give 4 or more"),
        ("hops=16", "hops 16 is too much: a ring of 16 has room for 15; give less, or a longer"),
        ("ring=17", "block_size 48 is too short for the task walk, whose sequences have 51 tokens"),
        ("loss_after=some", "loss_after 'some' is unknown; choose from each, last"),
        ("hints=2", "hints 2.0 is unknown; choose from 0, 1"),
        ("hops=0", "sizes hops=0 does not work; give a whole number from 1 to 1,000,000"),
        ("gate=x", "sizes gate=x does not work; give a number from 0"),
        ("letters=9", "sizes letters is none of the task walk's; it has ring, hops, loss_after"),
    ],
)
def test_sizes_that_do_not_work_say_so_in_one_line(sizes, words, tmp_path, capsys):
    assert train.main(["--preset", "walk", "--sizes", sizes, "--out_dir", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert words in error and error.count("\n") == 1


def test_the_command_trains_and_ends_with_the_accuracy_by_hops(tmp_path, capsys):
    flags = "--d_model 8 --n_heads 1 --batch_size 4 --steps 2 --warmup_steps 0 --eval_every 2"
    line = f"--preset walk --sizes ring=5,hops=2,far=31 {flags} --out_dir {tmp_path} --name run"
    assert train.main(line.split()) == 0
    lines = capsys.readouterr().out.splitlines()
    last = json.loads((tmp_path / "run" / "log.jsonl").read_text().splitlines()[-1])
    by_hops = last["accuracy_by"]["hops"]
    assert by_hops.keys() == {"1", "2", "3", "4", "31"}
    shares = ", ".join(f"{hops} {part['accuracy']:.3f}" for hops, part in by_hops.items())
    kept = ", ".join(f"{hops} {part['pairs_kept']:.3f}" for hops, part in by_hops.items())
    assert lines[-4] == f"accuracy {last['accuracy']:.3f} on the test split"
    assert lines[-3:-1] == [f"by hops: {shares}", f"by hops, pairs kept: {kept}"]
    model, _ = checkpoints.load(tmp_path / "run")  # as trained, and with its test repeated
    m, t = checkpoints.read_config(tmp_path / "run")
    assert m.loop_start == "recall" and m.n_loops == 9
    again = registry.data_of(t, m.block_size).evaluate(model)
    assert again["accuracy"] == last["accuracy"]


def test_what_else_was_measured_is_shown_where_every_value_has_it(capsys):
    """A task of one's own may keep what it likes beside an accuracy."""
    both = dict(accuracy=0.5, own_words=0.25, guess=0.1)
    odd = dict(accuracy=0.5, answers=[1, 0], note="odd")
    by = dict(n={"1": both, "2": both}, m={"1": both, "2": odd}, k={"1": odd}, none={})
    dispatch.show_accuracy(dict(accuracy=0.5, accuracy_by=by))
    assert capsys.readouterr().out.splitlines()[1:] == [
        "by n: 1 0.500, 2 0.500",
        "by n, own words: 1 0.250, 2 0.250",
        "by m: 1 0.500, 2 0.500",
        "by k: 1 0.500",
        "by none: ",
    ]


def test_attention_of_a_walk_is_measured_where_it_has_tokens(tmp_path, capsys):
    folder = running.train(*settings_of(tmp_path, "run", steps=1, warmup_steps=0)).dir
    attention = inspect.measured(folder)
    assert (attention["queries"], attention["blocks"], attention["block_size"]) == (20 * 15, 20, 15)
    assert len(attention["valid"]["entropy"]) == 4  # a layer for each loop


def test_the_bench_knows_no_loss_after_each_loop(capsys):
    assert train.main("--preset walk --bench".split()) == 2
    error = capsys.readouterr().err
    assert "data walk has a loss after each loop, but --bench times one after the last" in error
    assert error.count("\n") == 1


def test_what_the_studys_rows_vary(capsys):
    assert train.main(["--study", "walk", "--seed", "0", "1", "--dry_run"]) == 0
    assert "preset walk: the study walk is about it" in capsys.readouterr().out
    first, differ = changed(study, "walk")
    own, task = registry.configs("walk")
    assert first["n_loops"] == own.n_loops == 9 and first["block_size"] == own.block_size == 48
    assert set(task.sizes) <= set(first["sizes"]) and first["d_ff"] == 0
    assert (
        variants.parameters(configs.ModelConfig(**vars(own) | dict(vocab_size=32)))["total"]
        == 23_808
    )
    sizes = {name: row.pop("sizes", first["sizes"]) for name, row in differ.items()}
    expected = {
        "8 hops, ring of 16": {},
        "start: state": dict(loop_start="state"),
        "start: input": dict(loop_start="input"),
        "start: normalised": dict(loop_start="normalised"),
        "loss: last": {},
        "hops: 4": dict(n_loops=5),
        "hops: 6": dict(n_loops=7),
        "hops: 12": dict(n_loops=13),
        "ring: 24": dict(block_size=72),
        "ring: 32": dict(block_size=96, steps=5000),
        "ring: 48": dict(block_size=144, steps=8000),
        "ring: 64": dict(block_size=192, steps=10_000),
        "ring: 48, hints": dict(block_size=144, steps=5000),
        "ring: 64, hints": dict(block_size=192, steps=5000),
        "width: 32": dict(d_model=32),
        "width: 128": dict(d_model=128),
        "feed-forward: 256": dict(d_ff=256),
        "layers: 2": dict(n_layers=2),
        "kept throughout": dict(loop_keeps=32),
        "hops: 2, kept throughout": dict(n_loops=3, loop_keeps=32),
        "hops: 4, kept throughout": dict(n_loops=5, loop_keeps=32),
        "start: state, kept throughout": dict(loop_start="state", loop_keeps=32),
        "start: input, kept throughout": dict(loop_start="input", loop_keeps=32),
        "start: normalised, kept throughout": dict(loop_start="normalised", loop_keeps=32),
        "ring: 64, hints, kept throughout": dict(block_size=192, steps=3000, loop_keeps=128),
        "ring: 128, hints, kept throughout": dict(block_size=384, steps=3000, loop_keeps=256),
    }
    assert differ == expected
    assert list(differ)[0] == "8 hops, ring of 16"  # the claim comes first
    for name, given in sizes.items():
        kind, _, value = name.partition(",")[0].partition(": ")
        hints = "1" if ", hints" in name else "0"
        wanted = dict(ring="16", hops="8", loss_after="each", hints=hints)
        if kind in ("ring", "hops"):
            wanted[kind] = value
        if kind == "loss":
            wanted["loss_after"] = value
        assert dict(size.split("=") for size in given) == wanted
    own_steps = study.rows("walk", dict(steps=7))
    assert all(row["steps"] == 7 for row in own_steps.values())
    far = study.rows("walk", dict(sizes=("far=100",)))["ring: 24"]
    assert set(far["sizes"]) == {"far=100", "ring=24", "hops=8", "loss_after=each", "hints=0"}
    with pytest.raises(ValueError, match="hops has no effect with --study walk, whose rows set it"):
        study.rows("walk", dict(sizes=("hops=4",)))


def test_a_grid_has_a_line_for_each_model_and_the_hops_in_its_numbers(tmp_path, capsys):
    """The hops that are walked are not the hops that a model is trained to."""
    flags = "--d_model 8 --n_heads 1 --batch_size 4 --steps 2 --warmup_steps 0 --eval_every 2"
    line = f"--preset walk --sizes ring=5,hops=2,far=31 {flags} --out_dir {tmp_path} --seed 0"
    cells = []
    for name, start in (("one", "recall"), ("other", "state")):
        assert train.main([*line.split(), "--name", name, "--loop_start", start]) == 0
        labels = dict(model=name, seed=0)
        cells.append(SimpleNamespace(folder=str(tmp_path / name), labels=labels))
    records = table.records(table.finished(cells))
    assert [run["labels"] for run in records] == [
        dict(model="one", seed="0"),
        dict(model="other", seed="0"),
    ]
    for run in records:
        assert run["accuracy_by"] == run["log"][-1]["accuracy_by"]
        assert list(run["accuracy_by"]["hops"]) == ["1", "2", "3", "4", "31"]
    text, _ = table.make_table(records)
    assert text.count("\n") == 3  # headings, a line below them, two models
    study.figure(records, str(tmp_path))
    assert (tmp_path / "walk.png").exists()


def test_how_far_a_run_reaches():
    assert study.reached({1: 1.0, 2: 0.9, 3: 0.89, 4: 1.0}) == 2  # the third was not
    assert study.reached({2: 1.0, 1: 0.5}) == 0
    assert study.reached({15: 0.95, 1000: 0.91, 31: 1.0}) == 1000
    assert study.trained_to("hops: 12") == 12 and study.trained_to("ring: 24") == 8
    assert study.trained_to("hops: 4, kept throughout") == 4
    assert study.trained_to("kept throughout") == 8


def test_how_far_the_state_is_from_where_it_was_a_round_before(model):
    _, tokens, _ = drawn(6, ring=5, hops=4)
    orbit = study.distance_to_a_round_before(Walker(5, 99), tokens, (5, 9, 21))
    assert orbit == {5: 0.0, 9: 0.0, 21: 0.0}
    stays = study.distance_to_a_round_before(Walker(5, 7), tokens, (6, 8, 12))
    assert stays == {6: 0.0, 8: pytest.approx(2**0.5), 12: 0.0}  # one-hot letters that differ
    gpt = walker(model, loop_start="recall")
    states = [x[:, 10:] for x in gpt.run_loops(tokens, loops=8)]
    moved = (states[7] - states[2]).square().sum(2).sqrt() / states[7].square().sum(2).sqrt()
    distance = study.distance_to_a_round_before(gpt, tokens, [7])
    assert distance == {7: pytest.approx(moved.median().item())} and distance[7] > 0.01


def test_what_comes_back_is_measured_of_runs_and_stored(tmp_path, measured_of, monkeypatch):
    line = f"--preset walk --sizes ring=5,hops=2 --n_loops 3 --block_size 15 --out_dir {tmp_path}"
    small = "--name a --steps 2 --warmup_steps 1 --eval_blocks 8 --d_model 16"
    # where a loop normalises, a length makes no difference
    small += " --loop_start input --init_std 1"
    assert train.main([*line.split(), *small.split()]) == 0
    measured = measured_of(tmp_path / "a", study)
    model, _ = checkpoints.load(tmp_path / "a")
    tokens, _ = TASKS["walk"].draw(20, md.generator("returned"), test=True, ring=5, hops=2)
    distances = study.distance_to_a_round_before(model, tokens, [10, 20, 40])
    expected = {"2": distances[10], "4": distances[20], "8": distances[40]}
    assert measured["returned"] == expected
    monkeypatch.setattr(study, "FAR", (7, 12))
    kept = study.kept(tmp_path / "a")
    tokens, _ = TASKS["walk"].draw(200, md.generator("kept"), test=True, ring=5, hops=2)
    for pairs, length, name in ((1, 0, "pairs"), (0, 1, "length"), (1, 1, "both")):
        with contextlib.ExitStack() as stack:
            if pairs:
                stack.enter_context(walk.pairs_kept(model, 10, 3))
            if length:
                stack.enter_context(walk.length_kept(model, 10, 3))
            shares = walk.by_hops(model, tokens, 5, (4, 7, 12))
        assert kept[name] == {str(hops): share for hops, share in shares.items()}
    assert len({str(each) for each in kept.values()}) == 3


def test_stored_returns_are_of_stored_runs():
    runs = [run for run in results.runs("walk") if "returned" in run["measured"]]
    assert len(runs) == 66
    run = next(run for run in runs if results.weights_file("walk", run["id"]).exists())
    again = study.returned(results.weights("walk", run["id"]))
    assert again["2"] == pytest.approx(run["measured"]["returned"]["2"], rel=0.02)


def test_the_figure_shows_every_seed_beside_what_it_was_trained_to(tmp_path, monkeypatch):
    points = []
    plot = "matplotlib.axes.Axes.plot"
    monkeypatch.setattr(plot, lambda self, x, y, style, **options: points.append((x, y, style)))
    monkeypatch.setattr("matplotlib.axes.Axes.legend", lambda self, **_: None)
    shares = {"8 hops, ring of 16": (1.0, 1.0), "hops: 4": (0.95, 0.2)}
    runs = []
    for model, (near, far) in shares.items():
        for seed in ("0", "1", "2"):
            by_hops = {"1": 1.0, "15": near, "1000": far if seed != "2" else 0.0}
            parts = {hops: dict(accuracy=share) for hops, share in by_hops.items()}
            labels = dict(model=model, seed=seed)
            runs.append(dict(labels=labels, accuracy_by=dict(hops=parts)))
    study.figure(runs, str(tmp_path))
    assert points[0] == ([1000, 1000, 15], [0, 0, 0], "o")
    assert points[1][:2] == (1000, 0) and points[2][:2] == (8, 0)
    assert points[3] == ([15, 15, 15], [1, 1, 1], "o")
    assert points[4][:2] == (15, 1) and points[5][:2] == (4, 1)
    monkeypatch.undo()
    study.figure(runs, str(tmp_path))
    assert (tmp_path / "walk.png").stat().st_size > 5000


def ticks_of(path, models):
    """{text of a tick: its place} of draw_reached_on(), and the places of its dots."""
    with figures.drawing(path) as (_, axes):
        study.draw_reached_on(axes, models, dict.fromkeys(models, 8))
        texts = [tick.get_text() for tick in axes.get_xticklabels()]
        dots = [line.get_xdata() for line in axes.lines if line.get_marker() == "o"]
        return dict(zip(texts, axes.get_xticks())), dots


def test_the_figure_says_what_its_marks_are():
    axes = Figure().subplots()
    seeds = [{1: 1.0, 31: 1.0, 1000: 0.2}, {1: 1.0, 31: 0.1, 1000: 0.0}]
    study.draw_reached_on(axes, {"a": seeds, "b": seeds[:1]}, dict(a=8, b=4), "loops")
    legend = {text.get_text() for text in axes.get_legend().get_texts()}
    marks = {line.get_label(): line.get_marker() for line in axes.lines}
    assert {name: marks[name] for name in legend} == {
        "reached, each seed": "o", "median": "|", "trained to": "x"
    }  # fmt: skip
    assert axes.get_xscale() == "log"  # of numbers as they are said, not as powers of ten
    assert axes.xaxis.get_major_formatter()(100) == "100"
    assert [text.get_text() for text in axes.get_yticklabels()] == ["a", "b"]
    low, high = axes.get_ylim()
    assert low > high  # the first row above
    assert axes.get_xlabel() == "loops up to which 0.9 of the questions are right"
    assert axes.get_title() == "Trained against reached, n = 1 or 2"


def test_the_figure_names_the_place_of_a_run_that_learned_nothing(tmp_path):
    """The scale has no 0, and a dot left of 1 hop would say nothing by itself."""
    learned, nothing = {1: 1.0, 31: 1.0, 1000: 0.2}, {1: 0.1, 31: 0.0, 1000: 0.0}
    ticks, dots = ticks_of(tmp_path / "a.png", {"a": [nothing], "b": [learned]})
    assert list(ticks) == ["none", "1", "10"] and dots[:2] == [[ticks["none"]], [31]]
    ticks, _ = ticks_of(tmp_path / "b.png", {"a": [learned]})
    assert "none" not in ticks
