"""The task `strides` and its study: against a walk along the pairs."""

import functools
import math

import pytest
import torch
import torch.nn.functional as F

import minidepth as md
import train
from conftest import changed, draw_of
from minidepth_lab.keep import registry
from minidepth_lab.measure import results
from minidepth_lab.show import figures
from minidepth_lab.studies import strides as study
from minidepth_lab.tasks import TASKS

TASK = TASKS["strides"]

drawn = functools.partial(draw_of, TASK)


def follows_of(x, ring):
    return dict(zip(x[0 : 2 * ring : 2], x[1 : 2 * ring : 2]))


def walked(follows, letter, hops):
    for _ in range(hops):
        letter = follows[letter]
    return letter


def circle(follows):
    letters = [min(follows)]
    while follows[letters[-1]] != letters[0]:
        letters.append(follows[letters[-1]])
    return tuple(letters)


CASES = [{}, dict(stride=1, loops=1), dict(stride=4, loops=2), dict(stride=3, loops=5)]


@pytest.mark.parametrize("changes", CASES)
def test_every_letter_is_written_once_and_its_target_is_a_stride_on(changes):
    sizes, tokens, targets = drawn(**changes)
    ring, stride, loops = (sizes[name] for name in ("ring", "stride", "loops"))
    assert tokens.shape == (200, 36) and targets.shape == (200, loops, 36)
    firsts = set()
    for x, y in zip(tokens.tolist(), targets.tolist()):
        follows, asked = follows_of(x, ring), x[2 * ring :]
        letters = circle(follows)
        assert sorted(asked) == sorted(letters) and len(letters) == ring
        for i, letter in enumerate(asked[:-1]):
            if (i + 1) % (ring // stride):  # within a chain
                assert asked[i + 1] == walked(follows, letter, stride)
        firsts.add(letters.index(asked[0]))
        for i, row in enumerate(y):
            hops = stride if i == loops - 1 else min(i, stride)
            wanted = [walked(follows, letter, hops) for letter in asked]
            assert row == [-100] * 2 * ring + (wanted if hops else [-100] * ring)
    assert firsts == set(range(12))


def test_rings_of_the_test_are_never_trained_on():
    split, sizes = {}, dict(ring=4, stride=2)
    for test in (False, True):
        split[test] = {circle(follows_of(x, 4)) for x in drawn(2000, test, **sizes)[1].tolist()}
    later, _ = TASK.train_batch(3.0, 2000, md.generator("later"), **sizes)
    split[False] |= {circle(follows_of(x, 4)) for x in later.tolist()}
    assert len(split[True]) > 100 < len(split[False]) and not split[True] & split[False]


@pytest.mark.parametrize("stride", [2, 4])
def test_loops_join_one_at_a_time_and_the_last_asks_for_the_stride(stride):
    for done, looped, hops in ((0, 2, 1), (2, 4, min(3, stride)), (3, 5, stride), (9, 5, stride)):
        tokens, targets = TASK.train_batch(done, 8, md.generator(1), stride=stride, loops=5)
        assert targets.size(1) == looped
        x, y = tokens[0].tolist(), targets[0, -1].tolist()
        follows = follows_of(x, 12)
        assert y[24:] == [walked(follows, letter, hops) for letter in x[24:]]
    assert TASK.train_batch(0, 8, md.generator(1), loops=1)[1].size(1) == 1
    assert TASK.ahead(0.2, 0, loops=5) == 2 - 1 + 1 and TASK.ahead(0.26, 0, loops=5) == 0


def test_guess_and_shortcut():
    assert TASK.chance(ring=12, stride=1) == (1 / 11, 1.0)
    guess, shortcut = TASK.chance(ring=12, stride=3)
    assert guess == 1 / 11
    right = n = 0
    for x, y in zip(*(each.tolist() for each in drawn(400, stride=3, loops=1)[1:])):
        letters, follows = x[24:], follows_of(x, 12)
        before = {b: a for a, b in follows.items()}
        for i, (letter, answer) in enumerate(zip(letters, y[0][24:])):
            near = (letter, follows[letter], before[letter])
            said = next(a for a in letters if a not in near)
            if i % 4 == 3:  # the chain's last
                said = letters[i - 3]
            right += said == answer
            n += 1
    assert right / n == pytest.approx(shortcut, abs=0.03)


def test_following_the_links_answers_every_question():
    sizes, tokens, targets = drawn(20, stride=3, loops=4)
    links = TASK.links(tokens, targets, **sizes)
    assert list(links) == ["copy", "hop 1", "hop 2", "hop 3"]
    read = (links["hop 3"].float() @ tokens[..., None].float())[..., 0].long()
    assert torch.equal(read[:, 24:], targets[:, -1, 24:])


class Writer(torch.nn.Module):
    """Makes `hops` hops where it is asked; says its own letter after any that is `broken`."""

    def __init__(self, hops, broken=-1):
        super().__init__()
        self.hops, self.broken = torch.nn.Parameter(torch.tensor(float(hops))), broken

    def forward(self, tokens, loops):
        said = tokens.clone()
        for x, row in zip(tokens.tolist(), said):
            follows = follows_of(x, 12)
            for at in range(24, 36):
                if x[at] in follows and at != self.broken:
                    row[at] = walked(follows, x[at], int(self.hops))
        return F.one_hot(said, 24)


def test_accuracy_is_of_true_letters_and_of_its_own():
    sizes, tokens, targets = drawn(20, stride=3, loops=4)
    right = TASK.final_accuracy(Writer(3), tokens, targets, **sizes)
    assert right == dict(accuracy=1.0, own=1.0)
    assert TASK.accuracy(Writer(3), tokens, targets, **sizes) == dict(accuracy=1.0)
    wrong = TASK.final_accuracy(Writer(2), tokens, targets, **sizes)
    assert wrong == dict(accuracy=0.0, own=0.0)
    # one wrong letter, the first that is written: what is written after it in its chain is off
    # by a stride as well
    once = TASK.final_accuracy(Writer(3, broken=24), tokens, targets, **sizes)
    assert once == dict(accuracy=pytest.approx(11 / 12), own=pytest.approx(8 / 12))


def test_a_trained_model_writes_with_so_many_loops(model):
    """Without the dropout of its training, which goes on afterwards."""
    shape = dict(vocab_size=24, block_size=36, n_loops=2, tie_weights=False, dropout=0.5)
    gpt = model(**shape, loop_start="recall").train()
    sizes, tokens, targets = drawn(30, stride=2, loops=3)
    share = TASK.accuracy(gpt, tokens, targets, **sizes)["accuracy"]
    assert gpt.training
    gpt.eval()
    right = gpt(tokens, loops=3).argmax(-1)[:, 24:] == targets[:, -1, 24:]
    assert share == pytest.approx(right.float().mean().item()) and 0 < share < 1


def test_its_own_letters_are_written_one_after_another(model):
    gpt = model(vocab_size=24, block_size=36, n_loops=2, tie_weights=False, loop_start="recall")
    sizes, tokens, targets = drawn(30, stride=3, loops=3)
    right = 0
    for text, wanted in zip(tokens.clone(), targets[:, -1]):
        for place in range(24, 36):
            said = gpt(text[None, : place + 1], loops=3)[0, -1].argmax()
            right += bool(said == wanted[place])
            if (place - 24) % 4 != 3:
                text[place + 1] = said
    own = TASK.final_accuracy(gpt, tokens, targets, **sizes)["own"]
    assert own == pytest.approx(right / 360) and 0 < right < 360


def test_sizes_that_do_not_work_say_so_in_one_line(tmp_path, capsys):
    for sizes, words in (
        ("stride=5", "stride 5 does not divide a ring of 12; give one that does"),
        ("stride=12", "hops 12 is too much: a ring of 12 has room for 11"),
        ("ring=14", "block_size 36 is too short for the task strides, whose sequences have 42"),
    ):
        line = ["--preset", "strides", "--sizes", sizes, "--out_dir", str(tmp_path)]
        assert train.main(line) == 2
        error = capsys.readouterr().err
        assert words in error and error.count("\n") == 1


def test_the_command_trains_and_writes(tmp_path, capsys):
    flags = "--d_model 8 --n_heads 1 --batch_size 4 --steps 2 --warmup_steps 0"
    line = f"--preset strides --sizes ring=4 {flags} --out_dir {tmp_path} --name run"
    assert train.main(line.split()) == 0
    capsys.readouterr()
    assert '"own"' in (tmp_path / "run" / "log.jsonl").read_text()


def test_the_study_has_every_stride_with_every_number_of_loops(tmp_path, monkeypatch):
    first, differ = changed(study, "strides")
    assert first["sizes"] == ("ring=12", "stride=1", "loops=1") and len(differ) == 20
    assert registry.configs("strides")[0].n_loops == 3
    runs = []
    for name, row in differ.items():
        stride, loops = study.cell_of(name)
        assert (row | first)["ring_questions"] and row.get("n_loops", 1) == loops
        if name != "stride 1, loops 1":
            assert row["sizes"] == ("ring=12", f"stride={stride}", f"loops={loops}")
        assert set(row) <= {"n_loops", "sizes"}
        for seed in range(2):
            labels = dict(model=name, seed=str(seed))
            runs.append(dict(labels=labels, accuracy=float(stride < loops)))
    lines = []
    plot = "matplotlib.axes.Axes.plot"
    with monkeypatch.context() as patch:
        patch.setattr(plot, lambda self, x, y, **options: lines.append((x, y)))
        study.figure(runs, str(tmp_path))
    x, y = lines[0]  # the stair: stride 1 from two loops on, which is the second column
    assert x == [0.5, 0.5, 1.5, 1.5, 2.5, 2.5, 3.5, 3.5]
    assert y == [-0.5, 0.5, 0.5, 1.5, 1.5, 2.5, 2.5, 3.5]
    study.figure(runs, str(tmp_path))
    assert (tmp_path / "strides.png").stat().st_size > 5000
    assert study.walk_is_enough(4, 5) and not study.walk_is_enough(4, 4)


def test_stored_cells_are_those_of_the_study():
    cells = study.stored()
    assert set(cells) == {study.cell_of(name) for name in study.rows("strides", {})}
    (run,) = results.runs("strides", stride=3, n_loops=4, seed=201)
    assert cells[3, 4][1] == run["accuracy"] and len(cells[3, 4]) == 5
    assert study.stored(seed=201)[3, 4] == [run["accuracy"]]


def test_a_cell_that_was_not_run_stays_empty(monkeypatch, tmp_path):
    rows, most = [], []
    see = lambda axes, cells, form, vmax: rows.extend(cells) or most.append(vmax)  # noqa: E731
    monkeypatch.setattr(study.figures, "heat_map", see)
    with figures.drawing(tmp_path / "cells.png") as (_, axes):
        study.draw_cells(axes, {(1, 2): [0.5, 0.7, 1.0], (2, 3): [0.25]})
    for axis, ticks in ((axes.xaxis, ["2", "3"]), (axes.yaxis, ["1", "2"])):
        assert [text.get_text() for text in axis.get_ticklabels()] == ticks
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("loops", "hops for each letter written")
    assert axes.get_title() == "Share of letters right, median, n = 3; line: a walk's"
    assert rows[0][0] == 0.7 and rows[1][1] == 0.25 and most == [1]
    assert math.isnan(rows[0][1]) and math.isnan(rows[1][0])
