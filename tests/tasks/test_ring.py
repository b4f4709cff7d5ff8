"""The task `ring` and its study: against a walk along the pairs, letter by letter."""

import dataclasses

import pytest
import torch

import minidepth as md
import train
from conftest import draw_of
from minidepth_lab import tasks
from minidepth_lab.keep import checkpoints, registry
from minidepth_lab.measure import by_hand, results, ring_runs
from minidepth_lab.models import variants
from minidepth_lab.studies import ring
from solvers import follow, pairs
from tasks.oracle import Oracle

TASK = tasks.TASKS["ring"]
WRITTEN = dict(answer="written", lengths=(1, 3, 7), questions=5)


def test_letters_and_lengths_are_asked_evenly():
    tokens, _ = TASK.draw(2000, md.generator("test"), lengths=(1, 2, 4))
    asked = torch.stack((tokens[:, 16::2], tokens[:, 17::2]), 2).flatten(0, 1)
    _, counts = asked.unique(dim=0, return_counts=True)
    expected = 2000 * 56 / (16 * 3)
    assert len(counts) == 48
    assert (counts - expected).abs().max() < 5 * expected**0.5


@pytest.mark.parametrize("changes", [dict(lengths=(1, 2, 4)), WRITTEN])
def test_accuracy_by_length(changes):
    sizes = TASK.sizes | changes
    tokens, targets = TASK.draw(200, md.generator("val"), **changes)
    first = sizes["lengths"][0]
    but_one = torch.where(tokens.roll(1, 1) == 16 + first, 99, targets)  # after its number
    found = TASK.accuracy(Oracle(tokens, but_one), tokens, targets, **sizes)
    by_length = found["accuracy_by"]["lengths"]
    shares = {int(k): part["accuracy"] for k, part in by_length.items()}
    assert shares == {k: float(k != first) for k in sizes["lengths"]}
    assert 0.6 < found["accuracy"] < 0.73
    for k, part in by_length.items():
        guess, shortcut = TASK.chance(**changes | dict(lengths=(int(k),)))
        assert part["guess"] == guess and part.get("shortcut") == shortcut
    whole = TASK.accuracy(Oracle(tokens, targets), tokens, targets, **sizes)
    assert whole["accuracy"] == 1.0


def lengths_at(done, **sizes):
    tokens, _ = TASK.train_batch(done, 200, md.generator(done), **sizes)
    return tokens.shape, sorted(set((tokens[tokens > 16] - 16).tolist()))


def test_the_lengths_join_by_time():
    sizes = dict(lengths=(4, 1, 2), early=0.4)  # in any order
    shape, first = lengths_at(0.0, **sizes)
    assert first == [1]
    for done, expected in ((0.2, [1]), (0.21, [1, 2]), (0.39, [1, 2]), (0.4, [1, 2, 4])):
        assert lengths_at(done, **sizes) == (shape, expected)
    assert lengths_at(0.39, lengths=(1, 2), early=0.4)[1] == [1]
    assert lengths_at(0.4, lengths=(1, 2), early=0.4)[1] == [1, 2]
    assert lengths_at(0.0, lengths=(1, 2), early=0.0)[1] == [1, 2]
    assert lengths_at(0.9, lengths=(2,), early=1.0)[1] == [2]
    # written questions keep their width, or their places would mean something else later
    written = dict(WRITTEN, early=0.5)
    assert lengths_at(0.0, **written)[0] == lengths_at(0.9, **written)[0]


def gated(tmp_path, name, sizes):
    """Settings of a run whose lengths join by the loss or by time, and its data."""
    values = dict(n_layers=1, d_model=16, n_heads=2, block_size=32, steps=12, batch_size=4)
    values |= dict(warmup_steps=1, eval_every=4, save_every=4, sizes=sizes, name=name)
    m, t = registry.configs("ring", out_dir=str(tmp_path), **values)
    return m, t, registry.data_of(t, m.block_size)


def lengths_of(data, step):
    tokens, _ = data.draw(step, 50)
    return sorted(set((tokens[:, 16::2] - 16).flatten().tolist()))


def test_the_gate_lets_one_length_in_at_a_time(tmp_path):
    """The loss is a mean over the lengths asked: times their number it is that of the newest, if
    the others are known. None goes again."""
    *_, data = gated(tmp_path, "three", ("questions=8", "lengths=1+2+4", "early=0.9", "gate=1"))
    asked = [lengths_of(data, 0)]
    for step, loss in enumerate((1.0, 0.9, 0.51, 20.0, 0.49, 0.0), 1):
        data.after_step(loss)
        asked.append(lengths_of(data, step))
    assert asked == [[1], [1], [1, 2], [1, 2], [1, 2], [1, 2, 4], [1, 2, 4]]
    *_, data = gated(tmp_path, "time", ("questions=4", "early=0.9"))
    data.after_step(0.0)
    assert lengths_of(data, 10) == [1] and lengths_of(data, 11) == [1, 2]


def test_half_of_a_question_is_an_earlier_one_about_the_letter_two_steps_on():
    sizes, tokens, targets = draw_of(TASK, 50, lengths=(1, 2, 4), questions=9)
    half, n = TASK.links(tokens, targets, **sizes)["half"], 0
    for x, link in zip(tokens.tolist(), half):
        follows, letters, expected = pairs(x, 8), x[17::2], set()
        for i, (k, letter) in enumerate(zip(x[16::2], letters)):
            two = follow(follows, letter, 2)
            earlier = [j for j in range(i) if k == 16 + 4 and letters[j] == two]
            expected |= {(17 + 2 * i, 17 + 2 * j) for j in earlier}
        assert {tuple(pair) for pair in link.nonzero().tolist()} == expected
        n += len(expected)
    assert n > 20


def test_the_layers_that_suffice_double_the_steps():
    for layers in range(2, 7):
        can = [k for k in range(1, 40) if ring.layers_that_suffice(k) <= layers]
        assert max(can) == 2 ** (layers - 2)
    assert ring.layers_that_suffice(7, "written") == 2


def test_the_questions_of_a_sequence_and_their_letters():
    """The task's own targets are the letters so many steps on."""
    for sizes in (dict(lengths=(1, 2, 3, 4)), dict(ring=5, letters=9, questions=3)):
        sizes, tokens, targets = draw_of(TASK, 20, **sizes)
        lengths, first = sizes["lengths"], 2 * sizes["ring"] + 1
        shape = dict(letters=sizes["letters"], ring=sizes["ring"], furthest=max(lengths))
        k, path = ring_runs.questions(tokens, **shape)
        assert k.shape == (20, sizes["questions"]) and k.unique().tolist() == [*lengths]
        assert torch.equal(path[0], tokens[:, first::2]) and len(path) == 1 + max(lengths)
        for steps in lengths:
            assert torch.equal(path[steps][k == steps], targets[:, first::2][k == steps])


@pytest.fixture
def untrained():
    """Builds (a model, tokens, targets) of rings of which one and three hops are asked."""

    def build(**changes):
        m, _ = registry.configs("ring", vocab_size=21, **changes)
        torch.manual_seed(0)
        drawn = TASK.draw(6, torch.Generator().manual_seed(0), lengths=(1, 3))
        return variants.GPT(m).eval(), *drawn

    return build


def test_a_walk_reads_the_letters_at_the_questions_after_each_layer(untrained):
    model, tokens, _ = untrained(n_layers=2, n_loops=2)
    k, path = ring_runs.questions(tokens)
    found = ring_runs.walk(model, tokens)
    assert list(found) == [(depth, length) for depth in range(5) for length in (1, 3)]
    said = model(tokens).argmax(-1)[:, 17::2]  # the last depth is what the model answers
    for length in (1, 3):
        asked = k == length
        shares = [(said == at)[asked].float().mean().item() for at in path]
        assert found[4, length] == pytest.approx(shares) and found[0, length] != found[4, length]


def test_a_looped_model_is_asked_with_another_number_of_loops(untrained):
    """As many right as the same weights answer whose configuration says that number."""
    model, tokens, targets = untrained(n_layers=1, n_loops=3)
    shares = ring_runs.with_loops(model, tokens, 2, lengths=(1, 3))
    model.config = dataclasses.replace(model.config, n_loops=2)
    sizes = TASK.sizes | dict(lengths=(1, 3))
    expected = TASK.accuracy(model, tokens, targets, **sizes)["accuracy_by"]["lengths"]
    for k, share in shares.items():
        assert share == pytest.approx(expected[str(k)]["accuracy"])


def test_which_pairs_heads_watch_and_what_is_right_there():
    """Of four heads written by hand three watch a pair each; the others are guessed."""
    model, (tokens, targets) = by_hand.one_layer(n_heads=4), by_hand.one_hop(50)
    found = ring_runs.pairs_watched(model, tokens)
    weight = torch.tensor(found["weight"])
    assert weight.shape == (4, 8) and (weight.sum(1) - 1).abs().max() < 1e-4
    assert (weight[:3, :3] - torch.eye(3)).abs().max() < 1e-4 and weight[3].max() < 0.3
    assert found["right"][:3] == [1, 1, 1]
    # if the first letter is asked they stay with it, else they look at the second
    second = torch.tensor(found["second"])
    assert (second[:3] - torch.tensor([0.0, 1.0])).abs().max() < 1e-4
    answers, asked, good = model(tokens).argmax(-1), [0] * 8, [0] * 8
    for sequence, target, answer in zip(tokens.tolist(), targets.tolist(), answers.tolist()):
        for at in range(17, len(sequence), 2):
            pair = sequence[1:16:2].index(target[at])
            asked[pair] += 1
            good[pair] += answer[at] == target[at]
    assert found["right"] == pytest.approx([a / b for a, b in zip(good, asked)])


def test_a_length_is_learned_at_the_first_evaluation_that_says_so():
    log = [dict(step=step, accuracy_by=dict(lengths={"2": dict(accuracy=share)}))
           for step, share in ((1, 0.1), (100, 0.9), (200, 0.85))]  # fmt: skip
    assert ring_runs.onset(dict(log=log), 2) == 100  # it need not last
    assert ring_runs.onset(dict(log=log[:1]), 2) is None


def test_other_loops_than_in_training_find_in_stored_weights_what_they_found(monkeypatch):
    run = next(run for run in results.runs("ring-at-test") if "loops-4" in run["id"])
    model, tokens = ring_runs.tested_on(results.weights("ring-at-test", run["id"]))
    monkeypatch.setattr(ring_runs, "tested_on", lambda folder: (model, tokens[:200]))
    found = ring_runs.by_loops(results.weights("ring-at-test", run["id"]))
    assert list(found) == list(run["measured"]["by_loops"]) == ["1", "2", "3", "4", "5", "6"]
    for loops, shares in run["measured"]["by_loops"].items():
        assert found[loops] == pytest.approx(shares, abs=0.03)


def test_which_pairs_are_watched_is_read_off_a_runs_own_test(tmp_path):
    small = "--preset ring --n_layers 1 --steps 1 --warmup_steps 0 --eval_blocks 9 --block_size 32"
    line = f"{small} --sizes questions=8 --d_model 16 --out_dir {tmp_path} --name a"
    assert train.main(line.split()) == 0
    data = registry.data_of(checkpoints.read_config(tmp_path / "a")[1], 32)
    tokens = torch.as_tensor(data.val[0]).long()[:200]
    expected = ring_runs.pairs_watched(checkpoints.load(tmp_path / "a")[0], tokens)
    assert ring_runs.watched(tmp_path / "a") == expected
