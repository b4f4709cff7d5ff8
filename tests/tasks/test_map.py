"""The tasks of the map of depth and its study: each answer against a computation of its own."""

import collections
import itertools

import pytest
import torch

import minidepth as md
from conftest import draw_of
from minidepth_lab.keep import registry, running
from minidepth_lab.measure import inspect
from minidepth_lab.studies import map as study
from minidepth_lab.tasks import TASKS
from minidepth_lab.tasks.base import task_data
from tasks.oracle import Oracle

# ---------- answers, each computed in another way ----------


def test_a_hint_is_the_node_that_an_answer_has_to_be_compared_with():
    """In the share of training that is asked for, and never in the test."""
    task, asked = TASKS["reachability"], dict(n=(1, 3))
    x, y = task.train_batch(0.4, 50, md.generator("hints"), hints=0.5, **asked)
    for tokens, targets in zip(x.tolist(), y.tolist()):
        edges = dict(zip(tokens[0:28:2], tokens[1:28:2]))
        for at in range(28, 44, 2):
            once = edges[tokens[at]]
            three = edges.get(edges.get(once))
            assert targets[at] in (once, three)
            if targets[at + 1] == 16:  # yes
                assert tokens[at + 1] == targets[at]
            else:
                assert tokens[at + 1] not in (once, three)
    for done, hints in ((0.5, 0.5), (0.0, 0.0)):
        _, y = task.train_batch(done, 50, md.generator("hints"), hints=hints, **asked)
        assert (y[:, 28:44:2] == -100).all() and (y[:, 29:44:2] > 0).all()
    _, y = task.draw(50, md.generator("hints"), test=True, hints=1.0, **asked)
    assert (y[:, 28:44:2] == -100).all()


def test_reachability_cannot_be_told_by_the_places_of_the_nodes_alone():
    """Whether an end is the last of its path, or the start the first, says nothing; and there are
    as many of either answer at each distance."""
    task, last, answers = TASKS["reachability"], collections.Counter(), collections.Counter()
    sizes, tokens, targets = draw_of(task, 1000)
    hard = task.difficulty(tokens, targets, **sizes)
    for x, y, distance in zip(tokens.tolist(), targets.tolist(), hard.tolist()):
        sources, ends = set(x[0:28:2]), set(x[1:28:2])
        for at in range(28, 44, 2):
            last[x[at] not in ends, x[at + 1] not in sources, y[at + 1]] += 1
            answers[distance[at + 1], y[at + 1]] += 1
    for first, end in itertools.product((True, False), repeat=2):
        yes, no = last[first, end, 16], last[first, end, 17]
        assert yes / (yes + no) == pytest.approx(0.5, abs=0.06)
    assert len(answers) == 10 and max(answers.values()) < 1.5 * min(answers.values())


# ---------- what holds for all of them ----------


@pytest.mark.parametrize(("name", "sizes"), [each for each in study.MAPPED.values()])
def test_accuracy_is_told_by_difficulty(name, sizes):
    """Of a model that is right up to a difficulty, and wrong beyond it."""
    task = TASKS[name]
    sizes, tokens, targets = draw_of(task, 300, **sizes)
    hard, most = task.difficulty(tokens, targets, **sizes), sizes["n"][2]
    oracle = Oracle(tokens, torch.where(hard <= most, targets, 199))
    measured = task.accuracy(oracle, tokens, targets, **sizes)
    by_n = {int(n): part["accuracy"] for n, part in measured["accuracy_by"]["n"].items()}
    assert by_n == {n: float(n <= most) for n in sizes["n"]}
    assert measured["accuracy"] == pytest.approx(3 / 5)


def test_formulas():
    """As they were written before the runs."""
    needed = {name: [study.formula(name, n) for n in (2, 3, 8, 32)] for name in study.MAPPED}
    assert needed == {
        "pointers": [2, 2, 4, 6],
        "reachability": [3, 3, 5, 7],
        "S5": [1, 2, 3, 5],
        "Z60": [1] * 4,
        "parity": [1] * 4,
        "modulo ten": [1] * 4,
        "brackets": [2] * 4,
    }


# ---------- the study ----------


def test_a_run_of_no_task_on_the_map_is_refused():
    run = dict(id="one", data=["composition"], sizes_by_name=dict(group="A5"), n_loops=1, depth=2)
    with pytest.raises(ValueError, match="the run one is of no task on the map"):
        study.name_on_map(run)


def test_cells_are_called_right_by_the_formula():
    """S5 of 4 symbols needs two layers, of 16 four."""
    runs = []
    shares = {(4, 1): 0.2, (4, 2): 1.0, (16, 1): 0.1, (16, 2): 0.95, (16, 4): 1.0}
    for (n, depth), share in shares.items():
        for each in (share, share, 0.0):  # the median of three seeds
            runs.append((f"S5, {depth} layers", str(n), each))
    measured = study.cells(runs)
    assert measured["S5", "layers", 16, 2] == 0.95 and measured["S5", "loops", 4, 1] == 0.2
    # wrong: 16 symbols with two layers were found
    assert study.called_right(measured) == {("S5", "layers"): (4, 5), ("S5", "loops"): (2, 2)}
    measured["S5", "layers", 16, 4] = 0.5  # and that they are not found with four is wrong, too
    assert study.called_right(measured)["S5", "layers"] == (3, 5)


@pytest.fixture
def trained(tmp_path, monkeypatch):
    """Trains for two steps → (the run's folder, its model, whose weights are nearly as drawn)."""
    monkeypatch.setattr(task_data, "N_DRAWN", 100)

    def train(name, n_layers, *sizes):
        short = dict(steps=2, warmup_steps=1, eval_blocks=9, out_dir=str(tmp_path), name="a")
        m, t = registry.configs("map", data=name, n_layers=n_layers, sizes=sizes, **short)
        run = running.train(m, t, registry.data_of(t, m.block_size))
        return run.dir, run.model

    return train


def test_how_two_layers_follow_three_jumps_is_measured_of_runs(trained, measured_of):
    """Against questions that are followed one by one."""
    folder, model = trained("pointers", 2)
    task = TASKS["pointers"]
    tokens, targets = task.draw(600, md.generator("three jumps"), test=True)
    link = task.links(tokens, targets)["where it points"]
    with torch.no_grad():
        whole = model(tokens).argmax(-1)
        with inspect.without_links(model, 0, link):
            cut = model(tokens).argmax(-1)
    weights = inspect.attention_maps(model, tokens)[1]
    found = {way: [] for way in ("back", "ahead")}  # (right, right if cut, weights by head)
    one_jump = []
    for b, x in enumerate(tokens.tolist()):
        for place in range(17, 48, 2):
            path = [x[place]]
            for _ in range(3):
                path.append(x[path[-1]])
            if x[place - 1] == 16 + 1 and path[0] != path[1]:
                one_jump.append(cut[b, place].item() == path[1])
            if x[place - 1] != 16 + 3 or len(set(path)) < 4:
                continue
            hits = [each[b, place].item() == path[3] for each in (whole, cut)]
            looks = weights[b, :, place, path[2]]
            found["back" if path[2] < path[1] else "ahead"].append((*hits, looks))
    measured = measured_of(folder, study)["inside"]
    assert list(measured["right"]) == ["nothing cut", *task.links(tokens, targets)]
    share = measured["right"]["where it points"]["1 jump"]
    assert share == pytest.approx(sum(one_jump) / len(one_jump))
    for way, asked in found.items():
        right, right_cut, looks = zip(*asked)
        assert len(asked) > 400
        shares = [measured["right"][name][way] for name in ("nothing cut", "where it points")]
        assert shares == pytest.approx([sum(right) / len(asked), sum(right_cut) / len(asked)])
        best = torch.stack(looks).mean(0).max().item()
        assert measured["looks"][way]["2"] == pytest.approx(best, rel=1e-4)
        assert list(measured["looks"][way]) == ["0", "1", "2", "3"]


def test_where_a_step_of_a_path_is_found_is_measured_of_runs(trained, measured_of):
    folder, model = trained("reachability", 3, "n=1", "hints=1")
    drawing = dict(test=True, n=(1,), hinted=True)
    tokens, targets = TASKS["reachability"].draw(300, md.generator("one step"), **drawing)
    found = measured_of(folder, study)["inside"]
    words = inspect.lens(model, tokens)
    for name, from_place in (("next", 28), ("answer", 29)):
        assert list(found[name]) == ["0", "1", "2", "3"]
        for depth, share in found[name].items():
            said, wanted = (each[:, from_place::2] for each in (words[int(depth)], targets))
            assert share == pytest.approx((said == wanted).float().mean().item())
    weights, heads = inspect.attention_maps(model, tokens)[2], [[] for _ in range(4)]
    for head, place in itertools.product(range(4), range(29, 44, 2)):
        heads[head].append(weights[:, head, place, place - 1])
    means = [torch.stack(each).mean().item() for each in heads]
    assert found["look"] == pytest.approx(max(means), rel=1e-4)
    link = torch.zeros(300, 44, 44, dtype=torch.bool)
    for place in range(29, 44, 2):
        link[:, place, place - 1] = True
    assert list(found["cut"]) == ["1", "2", "3"]
    with inspect.without_links(model, 1, link), torch.no_grad():
        right = (model(tokens).argmax(-1) == targets)[:, 29::2]
    assert found["cut"]["2"] == pytest.approx(right.float().mean().item())
