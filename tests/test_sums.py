"""The task `sums` and its study: against a walk that adds digit by digit."""

import json

import pytest
import torch
import torch.nn.functional as F

import minidepth as md
import train
from conftest import changed
from minidepth_lab.keep import registry
from minidepth_lab.studies import sums as study
from minidepth_lab.tasks import TASKS

TASK = TASKS["sums"]


def drawn(n=200, test=False, asked=None, **sizes):
    """(all sizes, tokens, targets) of n sequences."""
    tokens, targets = TASK.draw(n, md.generator("test"), test, asked=asked, **sizes)
    assert tokens.dtype == targets.dtype == torch.int64
    return TASK.sizes | sizes, tokens, targets


def read(x, ring):
    """({letter: the one that follows it}, {letter: its digit}) of a sequence, a list."""
    triples = [x[i : i + 3] for i in range(0, 3 * ring, 3)]
    assert all(2 * ring <= digit < 2 * ring + 10 for _, digit, _ in triples)
    follows = {letter: following for letter, _, following in triples}
    return follows, {letter: digit - 2 * ring for letter, digit, _ in triples}


def added(follows, digit, letter, n):
    """(letter, sum modulo ten) after n hops."""
    total = 0
    for _ in range(n):
        total += digit[letter]
        letter = follows[letter]
    return letter, total % 10


def circle(follows):
    letters = [min(follows)]
    while follows[letters[-1]] != letters[0]:
        letters.append(follows[letters[-1]])
    return tuple(letters)


@pytest.mark.parametrize("changes", [{}, dict(ring=8, additions=6), dict(ring=5, additions=1)])
def test_targets_are_found_by_adding(changes):
    sizes, tokens, targets = drawn(**changes)
    ring, n = sizes["ring"], sizes["additions"]
    assert tokens.shape == (200, 4 * ring) and targets.shape == (200, 1 + n, 4 * ring)
    digits = set()
    for x, y in zip(tokens.tolist(), targets.tolist()):
        follows, digit = read(x, ring)
        asked = x[3 * ring :]
        assert sorted(asked) == sorted(circle(follows)) and len(asked) == ring
        assert y[0] == [-100] * 4 * ring
        for i, row in enumerate(y[1:], 1):
            ends = [added(follows, digit, letter, i) for letter in asked]
            assert row == [-100] * 3 * ring + [10 * letter + total for letter, total in ends]
        digits |= set(digit.values())
    assert digits == set(range(10))


def test_rings_of_the_test_are_never_trained_on():
    """Whatever their digits are: it is the ring that is held out, by the rule of `walk`."""
    split = {}
    for test in (False, True):
        _, tokens, _ = drawn(2000, test, ring=4)
        split[test] = {circle(read(x, 4)[0]) for x in tokens.tolist()}
    later, _ = TASK.train_batch(3.0, 2000, md.generator("later"), ring=4)
    split[False] |= {circle(read(x, 4)[0]) for x in later.tolist()}
    assert len(split[True]) > 100 < len(split[False]) and not split[True] & split[False]
    for test, rings in split.items():
        assert all(md.is_held_out(" ".join(map(str, each)), 420) == test for each in rings)


def test_triples_and_questions_are_in_mixed_order():
    _, tokens, _ = drawn(ring=8)
    seconds, asked = set(), set()
    for x in tokens.tolist():
        letters = circle(read(x, 8)[0])
        seconds.add((letters.index(x[3]) - letters.index(x[0])) % 8)
        asked.add((letters.index(x[24]) - letters.index(x[0])) % 8)
    assert seconds == set(range(1, 8)) and asked == set(range(8))


def test_guess_and_shortcut_are_those_of_players():
    """One that says 0, and one that says 0 but for whole rounds, with one letter more or less."""
    constant = once_round = n = 0
    for x in drawn(400, ring=5)[1].tolist():
        follows, digit = read(x, 5)
        for additions in range(1, 13):
            total = added(follows, digit, x[15], additions)[1]
            n += 1
            constant += total == 0
            rounds, rest = divmod(additions, 5)
            whole, before = sum(digit.values()), {b: a for a, b in follows.items()}
            said = {0: rounds * whole, 1: rounds * whole + digit[x[15]]}
            said[4] = (rounds + 1) * whole - digit[before[x[15]]]
            once_round += total == said.get(rest, 0) % 10
    guess, shortcut = TASK.chance(ring=5, additions=12)
    assert constant / n == pytest.approx(guess, abs=0.03)
    assert once_round / n == pytest.approx(shortcut, abs=0.03)


def test_following_the_links_answers_every_question():
    """The triple that each hop looks at has the next letter, and the digit that is added."""
    sizes, tokens, targets = drawn(50, ring=7, additions=5)
    links = TASK.links(tokens, targets, **sizes)
    assert list(links) == ["copy", "copy digit", *(f"hop {i}" for i in range(1, 6))]
    total = torch.zeros(50, 7, dtype=torch.int64)
    for hop in range(1, 6):
        rows, query, key = links[f"hop {hop}"].nonzero().T
        assert len(rows) == 50 * 7 and (query >= 21).all()
        for name, back in (("copy", 2), ("copy digit", 1)):
            assert links[name][rows, key, key - back].all() and links[name].sum() == 50 * 7
        total[rows, query - 21] += tokens[rows, key - 1] - 14
        answer = 10 * tokens[rows, key] + total[rows, query - 21] % 10
        assert torch.equal(answer, targets[rows, hop, query])


def test_additions_join_one_at_a_time():
    sizes = dict(additions=3, gate=0.5)
    asked = [TASK.train_batch(d, 4, md.generator(1), **sizes)[1].size(1) - 1 for d in (0, 1, 2, 9)]
    assert asked == [1, 2, 3, 3]
    ahead = [TASK.ahead(loss, done, **sizes) for loss, done in ((0.5, 0), (0.4, 0), (0.24, 1))]
    assert ahead == [0.0, 1.0, 2.0]


class Adder(torch.nn.Module):
    """Adds `most` digits and stays there, and says the letter it began with."""

    def __init__(self, ring, most):
        super().__init__()
        self.ring, self.most = ring, most
        self.head_weight = torch.nn.Parameter(torch.eye(20 * ring))
        self.norm = torch.nn.Identity()

    def run_loops(self, tokens, loops):
        for i in range(loops):
            said = torch.zeros_like(tokens)
            for x, row in zip(tokens.tolist(), said):
                for at in range(3 * self.ring, 4 * self.ring):
                    total = added(*read(x, self.ring), x[at], min(i, self.most))[1]
                    row[at] = 10 * x[at] + total
            yield F.one_hot(said, 20 * self.ring).float()


def test_accuracy_is_that_of_the_sums_alone_by_their_number():
    sizes, tokens, targets = drawn(20, ring=5, additions=3)
    sizes["far"] = 31

    def shares(model, method):
        result = method(model, tokens, targets, **sizes)
        by_number = result["accuracy_by"]["additions"].items()
        return result["accuracy"], {int(n): part["accuracy"] for n, part in by_number}

    assert shares(Adder(5, 99), TASK.accuracy) == (1.0, {1: 1.0, 2: 1.0, 3: 1.0})
    far = {n: 1.0 for n in (1, 2, 3, 15, 31)}
    assert shares(Adder(5, 99), TASK.final_accuracy) == (1.0, far)
    accuracy, by_number = shares(Adder(5, 2), TASK.final_accuracy)
    assert by_number[1] == by_number[2] == 1.0 and max(by_number[n] for n in (3, 15, 31)) < 0.3
    assert accuracy == pytest.approx((2 + by_number[3]) / 3)


def test_a_trained_model_is_looped_as_it_answers(model):
    """Of a GPT the accuracy is that of its logits after so many loops."""
    gpt = model(vocab_size=100, block_size=20, n_loops=3, tie_weights=False, loop_start="recall")
    sizes, tokens, targets = drawn(30, ring=5, additions=5)
    shares = TASK.accuracy(gpt, tokens, targets, **sizes)["accuracy_by"]["additions"]
    for n in range(1, 6):
        said = gpt(tokens, loops=1 + n).argmax(-1)[:, 15:]
        right = (said % 10 == targets[:, n, 15:] % 10).float().mean().item()
        assert shares[str(n)]["accuracy"] == pytest.approx(right)


def test_the_command_trains_and_ends_with_the_accuracy_by_additions(tmp_path, capsys):
    flags = "--d_model 8 --n_heads 1 --d_ff 8 --batch_size 4 --steps 2 --warmup_steps 0"
    line = f"--preset sums --sizes ring=4,additions=2 {flags} --out_dir {tmp_path} --name run"
    assert train.main(line.split()) == 0
    lines = capsys.readouterr().out.splitlines()
    last = json.loads((tmp_path / "run" / "log.jsonl").read_text().splitlines()[-1])
    by_number = last["accuracy_by"]["additions"]
    assert list(by_number) == ["1", "2", "15", "31", "50", "100", "200"]
    shares = ", ".join(f"{n} {part['accuracy']:.3f}" for n, part in by_number.items())
    assert f"by additions: {shares}" in lines and last["guess"] == 0.1


def test_sizes_that_do_not_work_say_so_in_one_line(tmp_path, capsys):
    for sizes, words in (
        ("ring=3", "ring 3 is too short: its letters are all neighbours; give 4 or more"),
        ("ring=5", "block_size 16 is too short for the task sums, whose sequences have 20 tokens"),
        ("hops=9", "sizes hops is none of the task sums's; it has ring, additions, gate, far"),
    ):
        assert train.main(["--preset", "sums", "--sizes", sizes, "--out_dir", str(tmp_path)]) == 2
        error = capsys.readouterr().err
        assert words in error and error.count("\n") == 1


def test_what_the_studys_rows_vary(tmp_path):
    first, differ = changed(study, "sums")
    own, task = registry.configs("sums")
    assert first["n_loops"] == own.n_loops == 9 and first["block_size"] == own.block_size == 16
    assert set(task.sizes) == set(first["sizes"]) == {"ring=4", "additions=8"}
    assert differ == {
        "8 additions, ring of 4": {},
        "start: state": dict(loop_start="state"),
        "additions: 4": dict(n_loops=5, sizes=("ring=4", "additions=4")),
        "additions: 6": dict(n_loops=7, sizes=("ring=4", "additions=6")),
        "ring: 8": dict(block_size=32, sizes=("ring=8", "additions=8")),
        "width: 128": dict(d_model=128),
    }
    runs = []
    for name in differ:
        by_number = {"1": dict(accuracy=1.0), "8": dict(accuracy=0.5)}
        runs.append(dict(labels=dict(model=name), accuracy_by=dict(additions=by_number)))
    study.figure(runs, str(tmp_path))
    assert (tmp_path / "sums.png").stat().st_size > 5000
