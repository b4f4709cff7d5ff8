"""The task `hold` and its study: against a walk that stops where the question says."""

import functools
import json

import pytest
import torch
import torch.nn.functional as F

import minidepth as md
import train
from conftest import changed, draw_of
from minidepth_lab.keep import checkpoints, registry
from minidepth_lab.measure import results
from minidepth_lab.studies import hold as study
from minidepth_lab.tasks import TASKS, hold

TASK = TASKS["hold"]

drawn = functools.partial(draw_of, TASK)


def read(x, ring):
    """({letter: the one that follows it}, [(hops, letter), …]) of a sequence, a list."""
    follows = dict(zip(x[0 : 2 * ring : 2], x[1 : 2 * ring : 2]))
    return follows, [(x[at] - 2 * ring, x[at + 1]) for at in range(2 * ring, 4 * ring, 2)]


def walked(follows, letter, hops):
    for _ in range(hops):
        letter = follows[letter]
    return letter


def circle(follows):
    letters = [min(follows)]
    while follows[letters[-1]] != letters[0]:
        letters.append(follows[letters[-1]])
    return tuple(letters)


@pytest.mark.parametrize("changes", [{}, dict(ring=5, hops=4, loops=5), dict(ring=6, hops=1)])
def test_targets_are_found_by_walking_and_stopping(changes):
    sizes, tokens, targets = drawn(**changes)
    ring, hops, loops = (sizes[name] for name in ("ring", "hops", "loops"))
    assert tokens.shape == (200, 4 * ring) and targets.shape == (200, loops, 4 * ring)
    seen = set()
    for x, y in zip(tokens.tolist(), targets.tolist()):
        follows, questions = read(x, ring)
        letters = circle(follows)
        assert len(letters) == ring and max(letters) < 2 * ring
        assert sorted(letter for _, letter in questions) == sorted(letters)
        assert y[0] == [-100] * 4 * ring
        for i, row in enumerate(y[1:], 1):
            wanted = [-100] * 2 * ring
            for k, letter in questions:
                wanted += [-100, walked(follows, letter, min(i, k))]
            assert row == wanted
        seen |= {(k, letters.index(letter)) for k, letter in questions}
    assert seen == {(k, at) for k in range(1, hops + 1) for at in range(ring)}


def test_targets_of_the_last_loops_alone_are_taught_if_asked():
    sizes = dict(ring=6, hops=3, loops=7)
    of_all, of_few = (drawn(20, **sizes, taught=taught) for taught in (0, 2))
    assert torch.equal(of_all[1], of_few[1])
    assert torch.equal(of_all[2][:, 5:], of_few[2][:, 5:])
    assert (of_few[2][:, :5] == -100).all() and (of_all[2][:, 1:5] != -100).any()
    longer = drawn(20, **sizes, taught=9)
    assert torch.equal(longer[2], of_all[2])


def test_rings_of_the_test_are_never_trained_on():
    split = {}
    for test in (False, True):
        _, tokens, _ = drawn(2000, test, ring=4, hops=3)
        split[test] = {circle(read(x, 4)[0]) for x in tokens.tolist()}
    later, _ = TASK.train_batch(3.0, 2000, md.generator("later"), ring=4, hops=3)
    split[False] |= {circle(read(x, 4)[0]) for x in later.tolist()}
    assert len(split[True]) > 100 < len(split[False]) and not split[True] & split[False]


def test_training_draws_its_loops_and_its_hops_join_one_at_a_time():
    sizes = dict(ring=6, hops=3, loops=7)
    looped, most = set(), {}
    for done in (0, 1, 2, 9):
        for seed in range(40):
            tokens, targets = TASK.train_batch(done, 8, md.generator(seed), **sizes)
            looped.add(targets.size(1))
            longest = max(k for x in tokens.tolist() for k, _ in read(x, 6)[1])
            most[done] = max(longest, most.get(done, 0))
    assert looped == {4, 5, 6, 7} and most == {0: 1, 1: 2, 2: 3, 9: 3}


def test_guess_and_shortcut_are_those_of_players():
    """One that says a letter that is not asked, and one that says the letter that follows, or for
    more hops one of the ring that is neither it nor beside it."""
    guessed = looked = n = 0
    for x in drawn(400)[1].tolist():
        follows, questions = read(x, 8)
        letters = circle(follows)
        for i, (k, letter) in enumerate(questions):
            right = walked(follows, letter, k)
            others = [a for a in letters if a != letter]
            guessed += right == others[i % 7]
            far = [a for a in others if follows[a] != letter and a != follows[letter]]
            looked += right == (follows[letter] if k == 1 else far[i % 5])
            n += 1
    guess, shortcut = TASK.chance()
    assert guessed / n == pytest.approx(guess, abs=0.03)
    assert looked / n == pytest.approx(shortcut, abs=0.03)
    # of a ring of five the letter before is four hops on, and two are left for two hops or three
    assert TASK.chance(ring=5, hops=4)[1] == (1 + 1 / 2 + 1 / 2 + 1) / 4


def test_following_the_links_answers_every_question():
    sizes, tokens, targets = drawn(50, ring=7, hops=4, loops=6)
    links = TASK.links(tokens, targets, **sizes)
    assert list(links) == ["copy", "number", "hop 1", "hop 2", "hop 3", "hop 4"]
    for name, first in (("copy", 1), ("number", 15)):
        rows, query, key = links[name].nonzero().T
        assert len(rows) == 50 * 7 and (key == query - 1).all() and query.min() == first
    said = tokens.clone()
    for hop in range(1, 5):
        rows, query, key = links[f"hop {hop}"].nonzero().T
        said[rows, query] = tokens[rows, key]
        assert torch.equal(said[:, 15::2], targets[:, hop, 15::2])


class Holder(torch.nn.Module):
    """Walks as it is asked, and has forgotten the answer once it has made `lost` loops."""

    def __init__(self, ring, lost):
        super().__init__()
        self.ring, self.lost = ring, lost
        self.head_weight = torch.nn.Parameter(torch.eye(3 * ring))
        self.norm = torch.nn.Identity()

    def run_loops(self, tokens, loops):
        for i in range(loops):
            said = tokens.clone()
            for x, row in zip(tokens.tolist(), said):
                follows, questions = read(x, self.ring)
                answers = [walked(follows, letter, min(i, k)) for k, letter in questions]
                row[2 * self.ring + 1 :: 2] = torch.tensor(answers)
            lost = i + 1 > self.lost
            yield F.one_hot(tokens if lost else said, 3 * self.ring).float()


def test_accuracy_is_told_by_loops():
    sizes, tokens, targets = drawn(20, ring=5, hops=3, loops=6)

    def shares(model, method):
        result = method(model, tokens, targets, **sizes)
        by_loops = result["accuracy_by"]["loops"].items()
        return result["accuracy"], {int(n): part["accuracy"] for n, part in by_loops}

    assert shares(Holder(5, 999), TASK.accuracy) == (1.0, {4: 1.0, 5: 1.0, 6: 1.0})
    far = {n: 1.0 for n in (4, 5, 6, 24, 31, 50, 100)}
    assert shares(Holder(5, 999), TASK.final_accuracy) == (1.0, far)
    held = {n: float(n <= 24) for n in far}
    assert shares(Holder(5, 24), TASK.final_accuracy) == (1.0, held)
    assert shares(Holder(5, 5), TASK.accuracy) == (0.0, {4: 1.0, 5: 1.0, 6: 0.0})


def test_a_trained_model_is_looped_as_it_answers(model):
    """Of a GPT the accuracy is that of its logits after so many loops."""
    gpt = model(vocab_size=15, block_size=20, n_loops=3, tie_weights=False, loop_start="recall")
    sizes, tokens, targets = drawn(30, ring=5, hops=2, loops=4)
    shares = TASK.accuracy(gpt, tokens, targets, **sizes)["accuracy_by"]["loops"]
    for n in (3, 4):
        right = (gpt(tokens, loops=n).argmax(-1) == targets[:, -1])[:, 11::2]
        assert shares[str(n)]["accuracy"] == pytest.approx(right.float().mean().item())


def test_the_command_trains_and_ends_with_the_accuracy_by_loops(tmp_path, capsys):
    flags = "--d_model 8 --n_heads 1 --batch_size 4 --steps 3 --warmup_steps 0"
    line = f"--preset hold --sizes ring=4,hops=2,loops=4 {flags} --out_dir {tmp_path} --name run"
    assert train.main(line.split()) == 0
    lines = capsys.readouterr().out.splitlines()
    last = json.loads((tmp_path / "run" / "log.jsonl").read_text().splitlines()[-1])
    by_loops = last["accuracy_by"]["loops"]
    assert list(by_loops) == ["3", "4", "24", "31", "50", "100"]
    shares = ", ".join(f"{n} {part['accuracy']:.3f}" for n, part in by_loops.items())
    assert f"by loops: {shares}" in lines and last["accuracy"] == by_loops["4"]["accuracy"]


def test_sizes_that_do_not_work_say_so_in_one_line(tmp_path, capsys):
    for sizes, words in (
        ("hops=8", "hops 8 is too much: a ring of 8 has room for 7; give less, or a longer ring"),
        ("loops=4", "loops 4 is too few: 4 hops take 5; give more with --sizes loops=N, or fewer"),
        ("ring=9", "block_size 32 is too short for the task hold, whose sequences have 36 tokens"),
    ):
        assert train.main(["--preset", "hold", "--sizes", sizes, "--out_dir", str(tmp_path)]) == 2
        error = capsys.readouterr().err
        assert words in error and error.count("\n") == 1


def test_the_last_loops_alone_are_learned_from_where_a_loop_reads_its_input(tmp_path, capsys):
    words = ["--preset", "hold", "--gradient_loops", "4", "--steps", "2", "--warmup_steps", "0"]
    words += ["--eval_blocks", "2", "--out_dir", str(tmp_path)]
    assert train.main([*words, "--loop_start", "state"]) == 2
    error = capsys.readouterr().err
    assert "gradient_loops 4 of 16 with loop_start state: no gradient reaches the embed" in error
    assert error.count("\n") == 1
    assert train.main([*words, "--loop_start", "state", "--n_loops", "4"]) == 0  # all there are
    assert train.main([*words, "--loop_keeps", "16"]) == 2
    error = capsys.readouterr().err
    assert "loop_keeps 16 with gradient_loops 4 of 16: the first loop, which alone" in error
    assert "has no gradient; give --gradient_loops 0" in error and error.count("\n") == 1
    assert train.main([*words, "--loop_keeps", "16", "--n_loops", "4", "--name", "kept"]) == 0
    assert train.main([*words, "--name", "recall"]) == 0


def test_what_is_held_for_a_thousand_loops_is_measured_of_runs_and_stored(tmp_path, measured_of):
    line = f"--preset hold --sizes ring=5,hops=2,loops=4 --n_loops 4 --out_dir {tmp_path} --name a"
    small = "--block_size 20 --steps 2 --warmup_steps 1 --eval_blocks 8 --d_model 16"
    assert train.main([*line.split(), *small.split()]) == 0
    measured = measured_of(tmp_path / "a", study)
    tokens, _ = TASK.draw(50, md.generator("held"), test=True, ring=5, hops=2)
    shares = hold.by_loops(checkpoints.load(tmp_path / "a")[0], tokens, 5, {100, 300, 1000})
    assert measured["held"] == {str(loops): share for loops, share in shares.items()}


def test_stored_holds_are_of_stored_runs():
    """Of all that were trained further, on other rings than the run's own test."""
    runs = [run for run in results.runs("hold-further") if run["init_from"]]
    assert len(runs) == 20
    for run in runs:
        own = run["accuracy_by"]["loops"]["100"]["accuracy"]
        assert run["measured"]["held"]["100"] == pytest.approx(own, abs=0.03)


def test_what_the_studys_rows_vary(tmp_path):
    first, differ = changed(study, "hold")
    own, task = registry.configs("hold")
    assert first["n_loops"] == own.n_loops == 16 and own.block_size == 32
    assert set(task.sizes) == set(first["sizes"]) == {"ring=8", "hops=4", "loops=16"}
    loops = {}
    for n in (6, 8, 12, 24):
        loops[f"loops: {n}"] = dict(n_loops=n, sizes=("ring=8", "hops=4", f"loops={n}"))
    starts = {f"start: {start}": dict(loop_start=start) for start in ("state", "input")}
    assert differ == {"4 hops, 16 loops": {}} | loops | starts
    runs = []
    for name in differ:
        by_loops = {"16": dict(accuracy=1.0), "50": dict(accuracy=0.5)}
        runs.append(dict(labels=dict(model=name), accuracy_by=dict(loops=by_loops)))
    study.figure(runs, str(tmp_path))
    assert (tmp_path / "hold.png").stat().st_size > 5000
