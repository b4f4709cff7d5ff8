"""The task `walk` and its study: against a walk along the pairs, letter by letter."""

import contextlib
import functools
import math
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F

import minidepth as md
from conftest import draw_of
from minidepth_lab.base import configs
from minidepth_lab.command import one_run
from minidepth_lab.keep import registry, running
from minidepth_lab.measure import inspect, results
from minidepth_lab.studies import walk as study
from minidepth_lab.tasks import TASKS, walk
from solvers import pairs

TASK = TASKS["walk"]
drawn = functools.partial(draw_of, TASK)


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
    assert hops_asked(data, 11) == 1  # never by time alone
    # the first hop known, 0.26 is a loss of 0.52 on the second; all there are are three, and none
    # goes again
    course = ((0.5, 1), (0.49, 2), (0.26, 2), (0.24, 3), (0.0, 3), (9.0, 3))
    for step, (loss, asked) in enumerate(course, 1):
        data.after_step(loss)
        assert hops_asked(data, step) == asked


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


# ---------- the model ----------


def walker(model, **changes):
    """A model with weights large enough for differences to show, for rings of 5."""
    options = dict(vocab_size=10, block_size=15, n_layers=2, d_ff=0, n_loops=3)
    return model(**options | dict(tie_weights=False) | changes)


def by_hand(gpt, tokens, loops, begun=None, after=lambda loop, x: x):
    """The states after each loop, a layer after the other, each start by its formula; begun from a
    state and not from the input, and changed as after(loop from 1, state) says."""
    e = gpt.token_embedding.weight[tokens] + gpt.position_embedding.weight[: tokens.size(1)]
    x = e if begun is None else begun
    for loop in range(1, loops + 1):
        centred = x - x.mean(2, keepdim=True)
        normal = centred / (centred.square().mean(2, keepdim=True) + 1e-5).sqrt()
        starts = {"state": x, "input": x + e, "normalised": normal, "recall": normal + e}
        x = starts[gpt.config.loop_start]
        for block in gpt.blocks:
            x = block(x)
        x = after(loop, x)
        yield x


def summed_loss(gpt, states, targets):
    """Cross-entropy after each of these loops, summed over all targets."""
    loss = 0.0
    for x, wanted in zip(states, targets.unbind(1), strict=True):
        logits = (gpt.norm(x) @ gpt.head_weight.T).flatten(0, 1)
        loss = loss + F.cross_entropy(logits, wanted.flatten(), reduction="sum")
    return loss


@pytest.mark.parametrize("loops", [1, 2, 7])
def test_so_many_loops_are_those_of_a_config_with_so_many(model, loops):
    gpt, other = (walker(model, loop_start="recall", n_loops=n) for n in (3, loops))
    other.load_state_dict(gpt.state_dict())
    _, tokens, _ = drawn(4, ring=5, hops=4)
    assert torch.equal(gpt(tokens, loops=loops), other(tokens))
    assert not torch.equal(gpt(tokens), other(tokens))
    after_each = list(gpt.run_loops(tokens, loops=loops))
    assert len(after_each) == loops
    assert torch.equal(gpt.norm(after_each[-1]) @ gpt.head_weight.T, other(tokens))


@pytest.mark.parametrize("start", configs.LOOP_STARTS)
@pytest.mark.parametrize("checkpointed", [False, True])
def test_the_last_loops_alone_have_a_gradient(model, start, checkpointed):
    """As if the loops before them were of another model with the same weights."""
    gpt = walker(model, loop_start=start, dropout=0.0).double().train()
    gpt.checkpointed = checkpointed
    _, tokens, targets = drawn(4, ring=5, hops=4)
    targets[:, :3] = -100
    *_, begun = gpt.run_loops(tokens, loops=3)
    summed_loss(gpt, by_hand(gpt, tokens, 2, begun.detach()), targets[:, 3:]).backward()
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
                    follows = pairs(x, self.ring)
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


def keeping(last):
    """Sets the pairs back, after each loop beyond `last`, to what that one has left."""
    kept = []

    def after(loop, x):
        if loop <= last:
            kept[:] = [x[:, :10]]
        return torch.cat((kept[0], x[:, 10:]), 1)

    return after


@pytest.mark.parametrize("start", configs.LOOP_STARTS)
def test_pairs_that_are_kept_no_longer_move_and_the_questions_go_on(model, start):
    """Against loops by hand, of two layers, whose pairs are set back after the third loop."""
    gpt = walker(model, loop_start=start).double().eval()
    _, tokens, _ = drawn(6, ring=5, hops=4)
    with walk.pairs_kept(gpt, 10, after=3):
        states = list(gpt.run_loops(tokens, loops=7))
    for state, x in zip(states, by_hand(gpt, tokens, 7, after=keeping(3)), strict=True):
        assert torch.allclose(state, x, rtol=1e-10)
    as_before = list(gpt.run_loops(tokens, loops=7))[-1]
    assert not torch.allclose(as_before, states[-1], rtol=1e-3)  # and nothing is kept any more


@pytest.mark.parametrize("start", configs.LOOP_STARTS)
def test_first_tokens_that_loops_keep_stay_as_the_first_loop_leaves_them(model, start):
    """Against loops by hand, of two layers: outputs, and gradients of every weight."""
    gpt = walker(model, loop_start=start, loop_keeps=10, dropout=0.0).double().train()
    _, tokens, targets = drawn(6, ring=5, hops=4)
    targets[2, 1:3] = -100  # a sequence of fewer loops
    targets[3, 2, 11] = -100
    expected = list(by_hand(gpt, tokens, 5, after=keeping(1)))
    whole = summed_loss(gpt, expected, targets)
    whole.backward()
    wanted = {name: w.grad.clone() for name, w in gpt.named_parameters()}
    gpt.zero_grad()
    states = list(gpt.run_loops(tokens, loops=5))
    assert all(torch.allclose(a, b, rtol=1e-10) for a, b in zip(states, expected, strict=True))
    loss_sum, n_targets = gpt(tokens, targets)
    assert loss_sum.sum().item() == pytest.approx(whole.item(), rel=1e-6)  # it leaves as float32
    assert n_targets.tolist() == (targets != -100).sum((1, 2)).tolist()
    loss_sum.sum().backward()
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
    cache = [{} for _ in range(6)]  # three loops of two layers
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


@pytest.mark.parametrize("keep_pairs", [True, False])
def test_a_length_that_is_kept_is_that_of_the_questions_and_no_other(model, keep_pairs):
    """Against loops by hand, the pairs kept as well from the third loop on, or left to change."""
    gpt = walker(model, loop_start="input").double().eval()
    _, tokens, _ = drawn(6, ring=5, hops=4)
    pairs_too = walk.pairs_kept(gpt, 10, 3) if keep_pairs else contextlib.nullcontext()
    with walk.length_kept(gpt, 10, 3), pairs_too:
        states = list(gpt.run_loops(tokens, loops=7))
    then, turned = [], []

    def after(loop, x):
        if loop <= 3:
            then[:] = x[:, :10], x[:, 10:].norm(dim=2, keepdim=True)
            return x
        of_pairs, length = then
        turned.append(length / x[:, 10:].norm(dim=2, keepdim=True))
        return torch.cat((of_pairs if keep_pairs else x[:, :10], x[:, 10:] * turned[-1]), 1)

    for state, x in zip(states, by_hand(gpt, tokens, 7, after=after), strict=True):
        assert torch.allclose(state, x, rtol=1e-8)
    assert all((factor - 1).abs().max() > 1e-4 for factor in turned)  # it would have changed


def test_the_last_test_tells_how_many_are_right_with_the_pairs_kept(model):
    gpt = walker(model, loop_start="recall")
    sizes, tokens, targets = drawn(30, ring=5, hops=4)
    sizes["far"] = 31
    by_number = TASK.final_accuracy(gpt, tokens, targets, **sizes)["accuracy_by"]["hops"]
    assert list(by_number) == ["1", "2", "3", "4", "31"]
    gpt.eval()
    with walk.pairs_kept(gpt, 10, after=3):  # as many as it has
        shares = walk.by_hops(gpt, tokens, 5, (1, 2, 3, 4, 31))
    kept = {int(n): part["pairs_kept"] for n, part in by_number.items()}
    assert kept == shares
    assert any(part["pairs_kept"] != part["accuracy"] for part in by_number.values())
    # not at each evaluation, nor of a model that keeps its pairs by itself
    keeps = walker(model, loop_start="recall", loop_keeps=10)
    for without in (TASK.accuracy(gpt, tokens, targets, **sizes),
                    TASK.final_accuracy(keeps, tokens, targets, **sizes)):  # fmt: skip
        assert all(part.keys() == {"accuracy"} for part in without["accuracy_by"]["hops"].values())


@pytest.mark.parametrize("ring, far, told", [
    (16, 1000, [*range(1, 16), 31, 100, 1000]), (16, 50, [*range(1, 16), 31, 50]),
    (16, 15, [*range(1, 16)]), (40, 1000, [*range(1, 40), 100, 1000]), (4, 100, [1, 2, 3, 31, 100]),
    (130, 200, [*range(1, 65), 100, 128, 129, 200]),  # of a long ring fewer hops
])  # fmt: skip
def test_how_far_the_last_test_goes(ring, far, told):
    _, tokens, targets = drawn(1, ring=ring, hops=1)
    result = TASK.final_accuracy(Walker(ring, 0), tokens, targets, ring=ring, far=far)
    assert [int(hops) for hops in result["accuracy_by"]["hops"]] == told
    assert result["accuracy"] == 0.0  # a walker that stays where it is


def test_of_a_long_ring_fewer_are_tested():
    for ring, rings in {16: 200, 64: 200, 65: 196, 128: 100, 20_000: 1}.items():
        assert len(walk.tested(torch.zeros(300, 3), ring)) == rings


def test_the_last_evaluation_alone_walks_far(tmp_path):
    run = running.train(*settings_of(tmp_path, "run", steps=4, eval_every=1))
    hops = [list(record["accuracy_by"]["hops"]) for record in run.log]
    assert hops == [["1", "2", "3", "4"]] * 3 + [["1", "2", "3", "4", "31"]]
    assert run.log[-1]["guess"] == 1 / 4 and run.log[-1]["shortcut"] == 3 / 4
    attention = inspect.measured(run.dir)  # wherever any loop has a token
    assert (attention["queries"], attention["blocks"], attention["block_size"]) == (20 * 15, 20, 15)


# ---------- sizes, the command, the study ----------


def test_what_else_was_measured_is_shown_where_every_value_has_it(capsys):
    """A task of one's own may keep what it likes beside an accuracy."""
    both = dict(accuracy=0.5, own_words=0.25, guess=0.1)
    odd = dict(accuracy=0.5, answers=[1, 0], note="odd")
    by = dict(n={"1": both, "2": both}, m={"1": both, "2": odd}, none={})
    one_run.show_accuracy(dict(accuracy=0.5, accuracy_by=by))
    told = ["by n: 1 0.500, 2 0.500", "by n, own words: 1 0.250, 2 0.250", "by m: 1 0.500, 2 0.500"]
    assert capsys.readouterr().out.splitlines()[1:4] == told


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


def test_what_comes_back_and_what_is_kept_is_that_of_stored_runs(monkeypatch):
    """Measured again of weights that are stored."""
    runs = [run for run in results.runs("walk") if "returned" in run["measured"]]
    assert len(runs) == 66
    run = next(run for run in runs if "kept" in run["measured"])
    monkeypatch.setattr(study, "FAR", (31,))
    folder, measured = results.weights("walk", run["id"]), run["measured"]
    assert study.returned(folder)["2"] == pytest.approx(measured["returned"]["2"], rel=0.02)
    for name, shares in study.kept(folder).items():
        for hops in ("15", "31"):
            assert shares[hops] == pytest.approx(measured["kept"][name][hops], abs=0.02)
