"""The tasks of the map of depth and its study: each answer against a computation of its own."""

import collections
import itertools
from types import SimpleNamespace

import pytest
import torch

import minidepth as md
import train
from minidepth_lab.keep import checkpoints, registry
from minidepth_lab.measure import inspect, results
from minidepth_lab.studies import map as study
from minidepth_lab.sweep import table
from minidepth_lab.tasks import TASKS

ON_MAP = [(task, sizes) for task, sizes in study.MAPPED.values()]


def drawn(name, n=300, test=False, seed="test", **sizes):
    """(task, all sizes, tokens, targets, difficulty of each place) of n sequences."""
    task = TASKS[name]
    sizes = task.sizes | sizes
    tokens, targets = task.draw(n, md.generator(seed), test, **sizes)
    assert tokens.shape == targets.shape and tokens.dtype == targets.dtype == torch.int64
    hard = task.difficulty(tokens, targets, **sizes)
    return task, sizes, tokens, targets, hard


def lists(*parts):
    return zip(*(part.tolist() for part in parts))


# ---------- answers, each computed in another way ----------


def test_parity_counts_the_ones():
    for x, y, hard in lists(*drawn("parity")[2:]):
        assert y == [x[: i + 1].count(1) % 2 for i in range(32)] and set(x) <= {0, 1}
        assert hard == list(range(1, 33))


def test_modulo_is_the_last_digit_of_the_sum():
    digits = set()
    for x, y, hard in lists(*drawn("modulo")[2:]):
        assert y == [int(str(sum(x[: i + 1]))[-1]) for i in range(32)]
        assert hard == list(range(1, 33))
        digits |= set(x)
    assert digits == set(range(10))


def test_s5_moves_five_things():
    """The number of an element is its place among all orders of five things."""
    orders, seen = list(itertools.permutations("abcde")), set()
    for x, y in lists(*drawn("composition", group="S5")[2:4]):
        things = list("abcde")
        for symbol, answer in zip(x, y):
            if symbol == 0:  # swap the things at the first two places
                things[0], things[1] = things[1], things[0]
            else:  # turn all by a place
                things = things[1:] + things[:1]
            assert orders[answer] == tuple(things)
        seen |= set(y)
    assert len(seen) == 120


def test_z60_turns_a_circle():
    seen = set()
    for x, y in lists(*drawn("composition", group="Z60")[2:4]):
        assert y == [(x[: i + 1].count(0) + 7 * x[: i + 1].count(1)) % 60 for i in range(32)]
        seen |= set(y)
    assert len(seen) == 60


@pytest.mark.parametrize("group", ["S5", "Z60"])
def test_few_symbols_come_to_few_elements(group):
    """One that knows how many symbols there were, and says what they most often come to."""
    _, shortcut = TASKS["composition"].chance(group=group, n=(2, 4, 8, 16, 32))
    symbols = torch.randint(2, (20_000, 32), generator=md.generator("commonest"))
    said = TASKS["composition"].results(symbols, group=group)
    most = [said[:, n - 1].bincount().max().item() / len(said) for n in (2, 4, 8, 16, 32)]
    assert sum(most) / 5 == pytest.approx(shortcut, abs=0.01)


def test_pointers_are_followed_and_paths_that_come_back_are_not_measured():
    asked, back = collections.Counter(), 0
    for x, y, hard in lists(*drawn("pointers")[2:]):
        assert y[:16] == [-100] * 16 and set(hard[:16]) == {0}
        assert sorted(x[17::2]) == list(range(16))
        for at in range(16, 48, 2):
            k, place = x[at] - 16, x[at + 1]
            path = [place]
            for _ in range(k):
                path.append(x[path[-1]])
            assert y[at] == -100 and y[at + 1] == path[-1] and hard[at] == 0
            comes_back = len(set(path[:-1])) < k or path[-1] in path[:-1]
            assert hard[at + 1] == (0 if comes_back else k)
            asked[k] += 1
            back += comes_back
    assert set(asked) == {1, 2, 3, 5, 8} and min(asked.values()) > 800 and back > 500


def test_reachability_is_found_by_search():
    answers = collections.Counter()
    for x, y, hard in lists(*drawn("reachability")[2:]):
        edges = dict(zip(x[0:28:2], x[1:28:2]))
        assert len(edges) == 14 and y[:28] == [-100] * 28
        for at in range(28, 44, 2):
            start, end, distance = x[at], x[at + 1], None
            node, steps = start, 0
            while node in edges:
                node, steps = edges[node], steps + 1
                if node == end:
                    distance = steps
            assert y[at] == -100 and y[at + 1] == (17 if distance is None else 16)
            assert hard[at + 1] in (1, 2, 3, 5, 7) and distance in (None, hard[at + 1])
            answers[hard[at + 1], y[at + 1]] += 1
    assert len(answers) == 10  # yes and no at each distance, about as often
    assert max(answers.values()) < 1.5 * min(answers.values())


def test_a_hint_is_the_node_that_an_answer_has_to_be_compared_with():
    """In the share of training that is asked for, and never in the test."""
    task, asked = TASKS["reachability"], dict(n=(1, 3))
    x, y = task.train_batch(0.4, 50, md.generator("hints"), hints=0.5, **asked)
    for tokens, targets in lists(x, y):
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
    """Whether an end is the last of its path, or the start the first, says nothing."""
    last = collections.Counter()
    for x, y in lists(*drawn("reachability", 1000)[2:4]):
        sources, ends = set(x[0:28:2]), set(x[1:28:2])
        for at in range(28, 44, 2):
            last[x[at] not in ends, x[at + 1] not in sources, y[at + 1]] += 1
    for first, end in itertools.product((True, False), repeat=2):
        yes, no = last[first, end, 16], last[first, end, 17]
        assert yes / (yes + no) == pytest.approx(0.5, abs=0.06)


def test_brackets_are_those_of_a_stack():
    seen = collections.Counter()
    for x, y, hard in lists(*drawn("brackets")[2:]):
        stack = []
        for at, word in enumerate(x):
            if word < 2:
                stack.append((word, at))
            else:
                assert stack.pop()[0] == word - 2  # what closes is what was opened last
            kind, opened = stack[-1] if stack else (4, at)
            assert y[at] == kind and hard[at] == at - opened
            seen[hard[at]] += 1
    assert all(seen[n] > 50 for n in (2, 4, 6, 8, 12))


# ---------- what holds for all of them ----------


@pytest.mark.parametrize(("name", "sizes"), [each for each in ON_MAP if each[0] != "reachability"])
def test_sequences_of_the_test_are_never_trained_on(name, sizes):
    """By a rule on the symbols, the pointers, the paths or the text, not by luck."""
    split = {}
    for test in (False, True):
        tokens = drawn(name, 300, test, **sizes)[2]
        rule = tokens[:, :16] if name == "pointers" else tokens
        keys = [" ".join(map(str, x)) for x in rule.tolist()]
        split[test] = {md.is_held_out(key, 10**6) for key in keys}
    assert split == {False: {False}, True: {True}}


def test_graphs_of_the_test_are_never_trained_on():
    split = {}
    for test in (False, True):
        kinds = set()
        for x in drawn("reachability", 300, test)[2].tolist():
            edges, heads = dict(zip(x[0:28:2], x[1:28:2])), set(x[0:28:2]) - set(x[1:28:2])
            paths = []
            for node in heads:
                paths.append([node])
                while paths[-1][-1] in edges:
                    paths[-1].append(edges[paths[-1][-1]])
            either = (paths[0] + paths[1], paths[1] + paths[0])
            told = [md.is_held_out(" ".join(map(str, each)), 16**16) for each in either]
            kinds.add(test in told)
        split[test] = kinds
    assert split == {False: {True}, True: {True}}


@pytest.mark.parametrize(("name", "sizes"), ON_MAP)
def test_guessing_is_what_the_most_frequent_answer_gives(name, sizes):
    task, sizes, _, targets, hard = drawn(name, 500, **sizes)
    for n in sizes["n"]:
        answers = targets[(hard == n) & (targets != -100)]
        most = answers.bincount().max().item() / len(answers)
        if name == "composition":  # few symbols come to few elements
            assert most >= task.guess(**sizes)
        else:
            assert most == pytest.approx(task.guess(**sizes), abs=0.12)


class Knows(torch.nn.Module):
    """Right up to a difficulty, and wrong beyond it."""

    def __init__(self, targets, hard, most):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))
        self.said = torch.where((hard <= most) & (targets >= 0), targets, 199)

    def forward(self, tokens):
        start = self.at
        self.at += len(tokens)
        return torch.nn.functional.one_hot(self.said[start : self.at], 200)

    at = 0


@pytest.mark.parametrize(("name", "sizes"), ON_MAP)
def test_accuracy_is_told_by_difficulty(name, sizes):
    task, sizes, tokens, targets, hard = drawn(name, 300, **sizes)
    most = sizes["n"][2]
    measured = task.accuracy(Knows(targets, hard, most), tokens, targets, **sizes)
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


@pytest.mark.parametrize(
    ("task", "sizes", "words"),
    [
        ("composition", "group=S4", "group 'S4' is unknown; choose from S5, Z60"),
        ("reachability", "n=8", "n 8 is too much: a path has 7 steps"),
        ("parity", "n=99", "block_size 48 is too short for the task parity, whose sequences"),
        ("brackets", "n=2+3", "no target of the test has difficulty 3; see --sizes"),
        ("modulo", "n=0", "sizes n=0 does not work; give a whole number from 1"),
    ],
)
def test_sizes_that_do_not_work_say_so_in_one_line(task, sizes, words, tmp_path, capsys):
    flags = f"--steps 1 --warmup_steps 0 --d_model 8 --n_heads 1 --out_dir {tmp_path}"
    assert train.main(f"--preset map --data {task} --sizes {sizes} {flags}".split()) == 2
    error = capsys.readouterr().err
    assert words in error and error.count("\n") == 1


# ---------- the study ----------


def test_the_study_has_every_task_with_every_depth():
    made = study.rows("map", {})
    assert len(made) == 7 * 9
    for name, row in made.items():
        m, t = registry.configs("map", **row)
        task, _, rest = name.rpartition(", ")
        depth, kind = rest.split()
        assert m.n_layers * m.n_loops == int(depth) and t.data == (study.MAPPED[task][0],)
        looped = kind == "loops"
        assert (m.n_layers == 1 or not looped) and (m.loop_start == "recall") == looped
        sizes = registry.data_of(t, m.block_size).task_sizes
        assert sizes.get("group", task) == task
        run = dict(id="any", data=list(t.data), n_loops=m.n_loops, depth=int(depth))
        assert study.name_on_map(run | dict(sizes_by_name=results.size_values(t.sizes))) == name


def test_a_run_of_no_task_on_the_map_is_refused():
    run = dict(id="one", data=["composition"], sizes_by_name=dict(group="A5"), n_loops=1, depth=2)
    with pytest.raises(ValueError, match="the run one is of no task on the map"):
        study.name_on_map(run)


def test_the_stored_map_has_each_difficulty_of_its_runs():
    cells = study.stored(data="parity", n_layers=2)
    (run, *_) = results.runs("map", data="parity", n_layers=2)
    assert {(name, n) for name, n, _ in cells} == {
        ("parity, 2 layers", n) for n in (2, 4, 8, 16, 32)
    }
    assert ("parity, 2 layers", 16, run["accuracy_by"]["n"]["16"]["accuracy"]) in cells


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


def test_the_map_has_a_panel_for_each_task_above_its_layers_below_its_loops(kept, tmp_path):
    shares = {(4, 1): 0.2, (4, 2): 1.0, (16, 1): 0.1, (16, 2): 0.95}
    runs = [(f"S5, {depth} layers", n, share) for (n, depth), share in shares.items()]
    runs += [("parity, 2 layers", 8, 0.5), ("parity, 4 layers", 16, 1.0)]
    study.draw_map(tmp_path / "map.png", study.cells(runs))
    s5, parity, s5_loops, parity_loops = kept[0].axes
    # 16 symbols need four layers, but two were enough; a single layer is a single loop as well
    assert kept[0].get_suptitle() == "6 of 8 cells as the formula says (line)"
    assert [axes.get_title() for axes in (s5, parity)] == ["S5: 3 of 4", "parity: 1 of 2"]
    assert s5.get_images()[0].get_array().tolist() == [[0.2, 1.0], [0.1, 0.95]]
    assert s5.get_images()[0].get_clim() == (0, 1)
    assert s5_loops.get_images()[0].get_array().tolist() == [[0.2], [0.1]]
    assert parity.get_images()[0].get_array().tolist() == [[0.5, None], [None, 1.0]]
    assert [text.get_text() for text in s5.texts] == ["0.20", "1.00", "0.10", "0.95"]
    for axis, ticks in ((s5.xaxis, ["1", "2"]), (s5.yaxis, ["4", "16"])):
        assert [text.get_text() for text in axis.get_ticklabels()] == ticks
    labels = [(axes.get_xlabel(), axes.get_ylabel()) for axes in (s5, parity, s5_loops)]
    assert labels == [("layers", "difficulty"), ("layers", ""), ("loops", "difficulty")]
    (stair,) = s5.get_lines()  # behind one layer, then behind both
    assert stair.get_xydata().tolist() == [[0.5, -0.5], [0.5, 0.5], [1.5, 0.5], [1.5, 1.5]]
    (stair,) = parity.get_lines()  # one layer is enough
    assert stair.get_xydata().tolist() == [[-0.5, -0.5], [-0.5, 0.5], [-0.5, 0.5], [-0.5, 1.5]]
    assert [axes.axison for axes in kept[0].axes] == [True] * 3 + [False]
    assert not parity_loops.get_images()


def test_how_two_layers_follow_three_jumps_is_measured_of_runs(tmp_path, measured_of):
    """Of weights that are as drawn; against questions that are followed one by one."""
    line = f"--preset map --data pointers --n_layers 2 --steps 2 --out_dir {tmp_path} --name a"
    assert train.main([*line.split(), "--warmup_steps", "1", "--eval_blocks", "60"]) == 0
    model, _ = checkpoints.load(tmp_path / "a")
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
    measured = measured_of(tmp_path / "a", study)["inside"]
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


def test_where_a_step_of_a_path_is_found_is_measured_of_runs(tmp_path, measured_of):
    line = f"--preset map --data reachability --n_layers 3 --steps 2 --out_dir {tmp_path} --name a"
    sizes = ["--sizes", "n=1,hints=1", "--warmup_steps", "1", "--eval_blocks", "60"]
    assert train.main([*line.split(), *sizes]) == 0
    model, _ = checkpoints.load(tmp_path / "a")
    drawing = dict(test=True, n=(1,), hinted=True)
    tokens, targets = TASKS["reachability"].draw(300, md.generator("one step"), **drawing)
    found = measured_of(tmp_path / "a", study)["inside"]
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
    other = "--preset map --data parity --steps 2 --warmup_steps 1 --eval_blocks 60 --name b"
    assert train.main([*other.split(), "--out_dir", str(tmp_path)]) == 0
    with pytest.raises(ValueError, match="is a run of parity; give one of pointers or reachabil"):
        study.inside(tmp_path / "b")


def test_a_part_of_the_grid_becomes_a_map(tmp_path, in_this_process):
    """Trained for a step: a run gives a cell for each difficulty."""
    flags = "--preset map --steps 1 --warmup_steps 0 --d_model 8 --n_heads 1 --d_ff 8 --seed 0"
    cells = []
    for name, more in (
        ("parity, 1 layers", "--n_layers 1"),
        ("parity, 2 loops", "--n_layers 1 --n_loops 2"),
        ("S5, 2 layers", "--data composition --sizes group=S5 --n_layers 2"),
    ):
        folder = name.replace(" ", "-").replace(",", "")
        line = f"{flags} {more} --out_dir {tmp_path} --name {folder}".split()
        assert train.main(line) == 0
        labels = dict(model=name, seed=0)
        cells.append(SimpleNamespace(folder=str(tmp_path / folder), labels=labels))
    records = table.records(table.finished(cells))
    assert len(records) == 15
    study.figure(records, str(tmp_path))
    assert (tmp_path / "map.png").stat().st_size > 10_000
