"""The tasks on rings that loops learn, `sums`, `program`, `strides`, `hold` and `written`: what
joins in training, how their accuracy is told, and their studies. Their targets: see
test_task_contract.py."""

import functools

import pytest
import torch
import torch.nn.functional as F

import minidepth as md
import train
from conftest import draw_of, log_of
from minidepth_lab import tasks
from minidepth_lab.base import configs
from minidepth_lab.keep import checkpoints
from minidepth_lab.measure import far, results
from minidepth_lab.models import kept_once
from minidepth_lab.studies import hold as hold_study
from minidepth_lab.studies import written
from minidepth_lab.tasks import TASKS, hold, program
from minidepth_lab.tasks.base import task_data
from minidepth_lab.tasks.written import WAYS, own_steps
from solvers import carried, follow, pairs

drawn = {name: functools.partial(draw_of, TASKS[name]) for name in TASKS}


class Looped(torch.nn.Module):
    """A model that says said(a sequence, number of loops), a list of tokens."""

    def __init__(self, words, said):
        super().__init__()
        self.words, self.said = words, said
        self.head_weight = torch.nn.Parameter(torch.eye(words))
        self.norm = torch.nn.Identity()

    def run_loops(self, tokens, loops):
        for i in range(loops):
            rows = [self.said(x, i) for x in tokens.tolist()]
            yield F.one_hot(torch.tensor(rows), self.words).float()


def adder(ring, most):
    """Adds `most` digits and stays there, and says the letter it began with."""

    def said(x, i):
        ends = [carried(x, ring, "additions", a, min(i, most))[1] for a in x[3 * ring :]]
        return [0] * 3 * ring + [10 * a + total for a, total in zip(x[3 * ring :], ends)]

    return Looped(20 * ring, said)


def holder(ring, lost):
    """Walks as it is asked, and has forgotten the answer once it has made `lost` loops."""

    def said(x, i):
        row = list(x)
        for at in range(2 * ring, 4 * ring if i < lost else 0, 2):
            row[at + 1] = follow(pairs(x, ring), x[at + 1], min(i, x[at] - 2 * ring))
        return row

    return Looped(3 * ring, said)


def told(name, model, method, by, **sizes):
    """(accuracy, {number: accuracy}) of a model."""
    sizes, tokens, targets = drawn[name](20, **sizes)
    sizes |= dict(far=31) if name == "sums" else {}
    found = getattr(TASKS[name], method)(model, tokens, targets, **sizes)
    parts = found["accuracy_by"][by].items()
    return found["accuracy"], {int(n): part["accuracy"] for n, part in parts}


def test_accuracy_of_sums_is_that_of_the_sums_alone_by_their_number():
    # not a ring of five, where a digit that is four rings too large is the same modulo ten
    shares = functools.partial(told, "sums", by="additions", ring=4, additions=3)
    assert shares(adder(4, 99), "accuracy") == (1.0, {1: 1.0, 2: 1.0, 3: 1.0})
    far = {n: 1.0 for n in (1, 2, 3, 15, 31)}
    assert shares(adder(4, 99), "final_accuracy") == (1.0, far)
    accuracy, by_number = shares(adder(4, 2), "final_accuracy")
    assert by_number[1] == by_number[2] == 1.0 and max(by_number[n] for n in (3, 15, 31)) < 0.3
    assert accuracy == pytest.approx((2 + by_number[3]) / 3)


def test_accuracy_of_hold_is_told_by_loops():
    shares = functools.partial(told, "hold", by="loops", ring=5, hops=3, loops=6)
    assert shares(holder(5, 999), "accuracy") == (1.0, {4: 1.0, 5: 1.0, 6: 1.0})
    far = {n: 1.0 for n in (4, 5, 6, 24, 31, 50, 100)}
    assert shares(holder(5, 999), "final_accuracy") == (1.0, far)
    held = {n: float(n <= 24) for n in far}
    assert shares(holder(5, 24), "final_accuracy") == (1.0, held)
    assert shares(holder(5, 5), "accuracy") == (0.0, {4: 1.0, 5: 1.0, 6: 0.0})


@pytest.mark.parametrize("name, sizes, by, first, words", [
    ("walk", dict(ring=5, hops=4), "hops", 10, 10), ("sums", dict(ring=5, additions=5), "additions",
     15, 100), ("hold", dict(ring=5, hops=2, loops=4), "loops", 11, 15),
    ("strides", dict(ring=5, stride=1, loops=3), None, 10, 10),
])  # fmt: skip
def test_a_trained_model_is_looped_as_it_answers(model, name, sizes, by, first, words):
    """The accuracy of a GPT is that of its logits after so many loops; its mode is given back."""
    sizes, tokens, targets = drawn[name](30, **sizes)
    shape = dict(vocab_size=words, block_size=tokens.size(1), n_loops=3, tie_weights=False)
    gpt = model(**shape, loop_start="recall", dropout=0.5).train()
    found = TASKS[name].accuracy(gpt, tokens, targets, **sizes)
    assert gpt.training
    gpt.eval()
    shares = found["accuracy_by"][by] if by else {"3": found}
    for n, part in shares.items():
        loops, row = (int(n), -1) if name in ("hold", "strides") else (1 + int(n), int(n))
        said, wanted = gpt(tokens, loops=loops).argmax(-1), targets[:, row]
        if name == "sums":
            said, wanted = said % 10, wanted % 10
        right = (said == wanted)[:, first :: 1 + (name == "hold")]
        assert part["accuracy"] == pytest.approx(right.float().mean().item())


@pytest.fixture
def small_test(monkeypatch, kept):
    """Runs are tested on few sequences and draw nothing."""
    monkeypatch.setattr(task_data, "N_DRAWN", 100)
    for task in (hold, program):
        monkeypatch.setattr(task, "RINGS_TESTED", 10)


@pytest.mark.parametrize("name, sizes, by, told", [
    ("sums", "ring=4,additions=2", "additions", "1 2 15 31 50 100 200"),
    ("hold", "ring=4,hops=2,loops=4", "loops", "3 4 24 31 50 100"),
    ("strides", "ring=4", None, ""),
])  # fmt: skip
def test_the_command_trains_and_ends_with_the_accuracy(
    name, sizes, by, told, tmp_path, capsys, small_test
):
    flags = "--d_model 8 --n_heads 1 --batch_size 4 --steps 2 --warmup_steps 0"
    line = f"--preset {name} --sizes {sizes} {flags} --out_dir {tmp_path} --name run"
    assert train.main(line.split()) == 0
    last = log_of(tmp_path / "run")[-1]
    assert by or "own" in last
    if by:
        assert list(last["accuracy_by"][by]) == told.split()
        shares = [f"{n} {part['accuracy']:.3f}" for n, part in last["accuracy_by"][by].items()]
        assert f"by {by}: {', '.join(shares)}" in capsys.readouterr().out.splitlines()


# ---------- what joins in training ----------


def test_additions_join_one_at_a_time():
    task, sizes = TASKS["sums"], dict(additions=3, gate=0.5)
    asked = [task.train_batch(d, 4, md.generator(1), **sizes)[1].size(1) - 1 for d in (0, 1, 2, 9)]
    assert asked == [1, 2, 3, 3]
    ahead = [task.ahead(loss, done, **sizes) for loss, done in ((0.5, 0), (0.4, 0), (0.24, 1))]
    assert ahead == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("stride", [2, 4])
def test_loops_join_one_at_a_time_and_the_last_asks_for_the_stride(stride):
    task = TASKS["strides"]
    for done, looped, hops in ((0, 2, 1), (2, 4, min(3, stride)), (3, 5, stride), (9, 5, stride)):
        tokens, targets = task.train_batch(done, 8, md.generator(1), stride=stride, loops=5)
        assert targets.size(1) == looped
        x, y = tokens[0].tolist(), targets[0, -1].tolist()
        assert y[24:] == [follow(pairs(x, 12), letter, hops) for letter in x[24:]]
    assert task.train_batch(0, 8, md.generator(1), loops=1)[1].size(1) == 1
    assert task.ahead(0.2, 0, loops=5) == 2 - 1 + 1 and task.ahead(0.26, 0, loops=5) == 0


def test_training_to_hold_draws_its_loops_and_its_hops_join_one_at_a_time():
    sizes, looped, most = dict(ring=6, hops=3, loops=7), set(), {}
    for done in (0, 1, 2, 9):
        for seed in range(40):
            tokens, targets = TASKS["hold"].train_batch(done, 8, md.generator(seed), **sizes)
            looped.add(targets.size(1))
            most[done] = max(int(tokens[:, 12::2].max()) - 12, most.get(done, 0))
    assert looped == {4, 5, 6, 7} and most == {0: 1, 1: 2, 2: 3, 9: 3}


def test_targets_of_the_last_loops_alone_are_taught_if_asked():
    sizes = dict(ring=6, hops=3, loops=7)
    of_all, of_few, longer = (drawn["hold"](20, **sizes, taught=taught) for taught in (0, 2, 9))
    assert torch.equal(of_all[1], of_few[1]) and torch.equal(longer[2], of_all[2])
    assert torch.equal(of_all[2][:, 5:], of_few[2][:, 5:])
    assert (of_few[2][:, :5] == -100).all() and (of_all[2][:, 1:5] != -100).any()


@pytest.mark.parametrize(("done", "lengths"), [(0.0, {1}), (0.2, {1, 2}), (0.3, {1, 2, 3})])
def test_lengths_of_written_questions_join_by_time(done, lengths):
    task = TASKS["written"]
    tokens, _ = task.train_batch(done, 50, md.generator(1), **task.sizes | dict(way="given"))
    assert tokens.shape == (50, 208)
    assert set((tokens[tokens > 16] - 16).tolist()) == lengths


def test_the_hint_of_a_program_is_one_operation_and_asked_with_one_hop_alone():
    _, tokens, targets = drawn["program"](100, ring=5, hops=7, hints=1, asked=1)
    for x, row in zip(tokens.tolist(), targets[:, 0].tolist()):
        after = [5 * a + carried(x, 5, "permutations", a, 1)[1] for a in x[:15:3]]
        hints = [hint for one in after for hint in (-100, -100, one)]
        assert row == hints + 5 * [-100]


# ---------- strides: written one after another ----------


class Writer(torch.nn.Module):
    """Makes `hops` hops where it is asked; says its own letter after any that is `broken`."""

    def __init__(self, hops, broken=-1):
        super().__init__()
        self.hops, self.broken = torch.nn.Parameter(torch.tensor(float(hops))), broken

    def forward(self, tokens, loops):
        said = tokens.clone()
        for x, row in zip(tokens.tolist(), said):
            follows = pairs(x, 12)
            for at in range(24, 36):
                if x[at] in follows and at != self.broken:
                    row[at] = follow(follows, x[at], int(self.hops))
        return F.one_hot(said, 24)


def test_accuracy_of_strides_is_of_true_letters_and_of_its_own():
    sizes, tokens, targets = drawn["strides"](20, stride=3, loops=4)
    final = functools.partial(TASKS["strides"].final_accuracy, **sizes)
    assert final(Writer(3), tokens, targets) == dict(accuracy=1.0, own=1.0)
    assert final(Writer(2), tokens, targets) == dict(accuracy=0.0, own=0.0)
    # one wrong letter, the first that is written: what is written after it in its chain is off
    # by a stride as well
    once = final(Writer(3, broken=24), tokens, targets)
    assert once == dict(accuracy=pytest.approx(11 / 12), own=pytest.approx(8 / 12))


def test_its_own_letters_are_written_one_after_another(model):
    gpt = model(vocab_size=24, block_size=36, n_loops=2, tie_weights=False, loop_start="recall")
    sizes, tokens, targets = drawn["strides"](10, stride=3, loops=3)
    right = 0
    for text, wanted in zip(tokens.clone(), targets[:, -1]):
        for place in range(24, 36):
            said = gpt(text[None, : place + 1], loops=3)[0, -1].argmax()
            right += bool(said == wanted[place])
            if (place - 24) % 4 != 3:
                text[place + 1] = said
    own = TASKS["strides"].final_accuracy(gpt, tokens, targets, **sizes)["own"]
    assert own == pytest.approx(right / 120) and 0 < right < 120


# ---------- hold: for a thousand loops ----------


def test_what_is_held_for_a_thousand_loops_is_measured_of_runs_and_stored(
    tmp_path, measured_of, small_test
):
    line = f"--preset hold --sizes ring=5,hops=2,loops=4 --n_loops 4 --out_dir {tmp_path} --name a"
    small = "--block_size 20 --steps 2 --warmup_steps 1 --eval_blocks 8 --d_model 16"
    small += " --gradient_loops 4 --loop_start state"  # all there are
    assert train.main([*line.split(), *small.split()]) == 0
    measured = measured_of(tmp_path / "a", hold_study)["held"]
    tokens, _ = TASKS["hold"].draw(50, md.generator("held"), test=True, ring=5, hops=2)
    (share,) = hold.by_loops(checkpoints.load(tmp_path / "a")[0], tokens, 5, {300}).values()
    assert list(measured) == ["100", "300", "1000"] and measured["300"] == share


def test_stored_holds_are_of_stored_runs():
    """Of all that were trained further, on other rings than the run's own test."""
    runs = [run for run in results.runs("hold-further") if run["init_from"]]
    assert len(runs) == 20
    for run in runs:
        own = run["accuracy_by"]["loops"]["100"]["accuracy"]
        assert run["measured"]["held"]["100"] == pytest.approx(own, abs=0.03)


# ---------- programs far out ----------


@pytest.mark.parametrize(
    "changes",
    [{}, dict(n_layers=2, loop_start="input"), dict(d_ff=0), dict(position="rotary", d_ff=0)],
)
def test_what_is_kept_is_computed_once(model, changes, monkeypatch):
    shape = dict(vocab_size=50, block_size=20, n_loops=3, d_ff=8, loop_start="recall")
    gpt = model(**shape | dict(tie_weights=False, loop_keeps=15) | changes)
    _, tokens, _ = drawn["program"](20, ring=5)
    assert kept_once.possible(gpt, tokens)
    quick = list(gpt.run_loops(tokens, loops=6))
    alone = list(kept_once.questions_alone(gpt, tokens, 6))
    last = gpt.hidden(tokens, loops=6)
    with pytest.raises(ValueError, match="loops is 0"):
        gpt.hidden(tokens, loops=0)
    monkeypatch.setattr(kept_once, "possible", lambda *given: False)
    before = list(gpt.run_loops(tokens, loops=6))
    for i, (x, y, z) in enumerate(zip(before, quick, alone, strict=True)):
        torch.testing.assert_close(y, x, atol=1e-5, rtol=0)
        torch.testing.assert_close(z, x[:, 15 * (i > 0) :], atol=1e-5, rtol=0)
    torch.testing.assert_close(last, gpt.norm(before[-1]), atol=1e-5, rtol=0)


def test_with_chance_or_a_look_inside_it_is_computed_in_each_loop(model):
    shape = dict(vocab_size=50, block_size=20, n_loops=3, d_ff=8, loop_start="recall")
    shape |= dict(tie_weights=False, loop_keeps=15)
    _, tokens, _ = drawn["program"](2, ring=5)
    for noise, possible in ((dict(dropout=0.1), False), (dict(loop_noise=0.1), False), ({}, True)):
        plain = model(**shape | dict(dropout=0.0) | noise).train()
        assert kept_once.possible(plain, tokens) == possible
    assert not kept_once.possible(plain, tokens[:, :15])  # nothing goes on
    handle = plain.blocks[0].attn.register_forward_pre_hook(lambda *given: None)
    assert not kept_once.possible(plain, tokens)
    handle.remove()
    assert kept_once.possible(plain, tokens)


def test_cheats_are_scored_without_a_model():
    found = far.cheats("walk", (5, 8, 16), trained=8, rings=50, ring=16)
    assert found[16]["own"] == found[8]["stopped"] == 1  # a round, and where it stopped
    assert found[5]["own"] == found[5]["stopped"] == found[16]["stopped"] == 0
    assert 1 / 32 < found[5]["commonest"] < 0.06
    sums = far.cheats("sums", (31, 200), trained=16, rings=50, ring=4, additions=16)
    assert sums[200]["commonest"] == 1 and sums[31]["commonest"] < 0.3  # 200 additions are 0
    held = far.cheats("hold", (16, 100), trained=16, rings=50)
    assert held[16] == held[100] and held[100]["stopped"] == 1 > held[100]["commonest"]


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
    kind = "additions" if task == "sums" else "permutations"
    for n in (1, 7, 23):  # the answers of an independent walk
        for x, row in zip(tokens.tolist(), truths[n].tolist()):
            if task == "walk":
                assert row == [follow(pairs(x, 5), letter, n) for letter in x[-5:]]
            else:
                assert row == [carried(x, 5, kind, letter, n)[1] for letter in x[-5:]]
    words = far.states_of(task, sizes)
    walker = Walker(task, tokens, sizes, 29, words)
    found = far.tested(walker, tokens, truths, (12,), range(28, 33), words)
    assert found["at"]["12"]["right"] == 1 and found["at"]["12"]["rings_without_error"] == 20
    window = found["window"]
    assert (window["least"], window["rings_without_error"]) == (0.95, 19)
    assert window["least_at"] == 30 and found["trained"] == 3
    for name, start in (("own", 0), ("stopped", 3)):
        shares = [(truths[start] == truths[i]).float().mean().item() for i in range(28, 33)]
        assert window[name] == pytest.approx(min(shares))
        assert window[f"{name}_at_best"] == pytest.approx(max(shares))


# ---------- written: what stands at the places to write in ----------


def test_all_ways_ask_the_same_questions_and_random_letters_say_nothing():
    draws = {way: drawn["written"](400, way=way)[1] for way in WAYS}
    for tokens in draws.values():  # the rings, the numbers and the letters asked
        assert torch.equal(tokens[:, :16], draws["direct"][:, :16])
        assert torch.equal(tokens[:, 16::4], draws["direct"][:, 16::4])
        assert torch.equal(tokens[:, 17::4], draws["direct"][:, 17::4])
    counts = [0] * 8
    for x in draws["random"].tolist():
        for at in range(16, len(x), 4):
            path = [follow(pairs(x, 8), x[at + 1], n) for n in range(8)]
            for token in x[at + 2 : at + 1 + x[at] - 16]:
                counts[path.index(token)] += 1
    n = sum(counts)
    assert max(abs(count - n / 8) for count in counts) < 5 * (n / 8) ** 0.5


class Follows(torch.nn.Module):
    """Says at each place the letter that follows the one that stands there; at the places before
    `silent` something that is no letter."""

    def __init__(self, silent=0):
        super().__init__()
        self.anchor = torch.nn.Parameter(torch.zeros(1))
        self.silent = silent

    def forward(self, x):
        follows = torch.full((len(x), 32), 16)
        follows.scatter_(1, x[:, :16:2], x[:, 1:16:2])
        said = follows.gather(1, x)
        place = (torch.arange(x.size(1)) - 16) % 4
        return F.one_hot(torch.where(place < self.silent, 16, said), 32).float()


@pytest.mark.parametrize("silent, way, found, own", [
    (0, "written", [1, 1, 1], [1, 1, 1]), (0, "given", [1, 1, 1], [1, 1, 1]),
    (0, "filler", [1, 0, 0], []), (0, "hidden", [1, 0, 0], []), (0, "direct", [1, 0, 0], []),
    (0, "backwards", [1, 1, 0], None),
    # without a step to go on from, but with the true ones before each place it knows the answer
    (2, "given", [0, 1, 1], [0, 0, 0]),
])  # fmt: skip
def test_who_follows_the_letter_before_needs_it_written(silent, way, found, own):
    sizes, tokens, targets = drawn["written"](100, way=way)
    before = tokens.clone()
    told = TASKS["written"].accuracy(Follows(silent), tokens, targets, **sizes)
    assert torch.equal(tokens, before)  # what the model writes is written elsewhere
    by_length = told["accuracy_by"]["lengths"]
    assert [by_length[k]["accuracy"] for k in "123"] == found
    if own is not None:
        assert [part["own"] for part in by_length.values() if "own" in part] == own


def test_own_steps_are_those_of_writing_one_token_after_another(model):
    sizes, tokens, targets = drawn["written"](100, way="written", questions=4)
    gpt = model(vocab_size=20, block_size=32, n_layers=2, n_heads=2)
    k = tokens[:, 16::4] - 16
    by_hand, right = tokens.clone(), {1: [], 2: [], 3: []}
    for place in range(17, 32):
        said = tasks.predicted(gpt, by_hand[:, : place + 1])[:, -1]
        number, step = divmod(place - 16, 4)
        length = k[:, number]
        hits = (said == targets[:, place])[length == step]
        if step:
            right[step] += hits.tolist()
        if step in (1, 2):
            by_hand[:, place + 1] = torch.where(step < length, said, 16)
    expected = {length: sum(hits) / len(hits) for length, hits in right.items()}
    shape = {name: sizes[name] for name in ("letters", "ring", "questions", "lengths")}
    assert own_steps(gpt, tokens, targets, **shape) == pytest.approx(expected)
    assert 0 < expected[3] and not torch.equal(by_hand, tokens)


def test_own_steps_of_stored_runs(tmp_path, measured_of, small_test):
    line = f"--preset written --sizes questions=3,way=given --steps 2 --out_dir {tmp_path} --name a"
    assert train.main([*line.split(), "--warmup_steps", "1", "--eval_blocks", "8"]) == 0
    measured = measured_of(tmp_path / "a", written)
    logged = results.result(tmp_path / "a")["accuracy_by"]["lengths"]
    shares = {k: part["own"] for k, part in logged.items()}
    assert measured["own"] == pytest.approx(shares) and measured["about"]["own"]["date"]
