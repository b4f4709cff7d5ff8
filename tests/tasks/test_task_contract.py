"""What holds for every task: its targets are those of an independent solver, which works each
sequence out by itself, what the test asks is never trained on, and what is drawn is a function of
the generator."""

import itertools
import math
import statistics

import numpy as np
import pytest
import torch

import minidepth as md
import solvers
from conftest import draw_of
from minidepth_lab.keep import registry
from minidepth_lab.tasks import TASKS
from minidepth_lab.tasks.base.sizes import as_text, sizes_of
from minidepth_lab.tasks.program import operations
from minidepth_lab.tasks.written import WAYS
from solvers import NO, circle, follow, hop, pairs

CASES = [
    ("walk", {}), ("walk", dict(ring=4, hops=3)), ("walk", dict(ring=9, hops=1)),
    ("walk", dict(ring=6, hops=5, loss_after="last")),
    ("hold", {}), ("hold", dict(ring=5, hops=4, loops=5)), ("hold", dict(ring=6, hops=1)),
    ("strides", {}), ("strides", dict(stride=1, loops=1)), ("strides", dict(stride=4, loops=2)),
    ("strides", dict(stride=3, loops=5)),
    ("sums", {}), ("sums", dict(ring=8, additions=6)), ("sums", dict(ring=5, additions=1)),
    ("program", dict(ring=5, hops=7, hints=1)),
    ("program", dict(ring=5, hops=7, hints=1, kind="additions")),
    ("ring", {}), ("ring", dict(letters=5, ring=4, questions=3, lengths=(2,))),
    ("ring", dict(lengths=(1, 2, 4), questions=9)),
    ("ring", dict(ring=2, letters=3, lengths=(1,), questions=1)),
    ("ring", dict(answer="written", lengths=(1, 3, 7), questions=5)),
    ("ring", dict(letters=6, ring=3, questions=4, lengths=(1, 2), answer="written")),
    *(("written", dict(way=way)) for way in WAYS),
    ("icqa", {}), ("icqa", dict(pairs=3, symbols=3)), ("icqa", dict(pairs=1, symbols=5)),
    ("template", dict(symbols=20, length=4)), ("template", dict(symbols=20, length=6)),
    ("icl_template", dict(symbols=40, length=4, blocks=3, queries=3, labels=9)),
    ("icl_template", dict(symbols=40, length=6, blocks=4, queries=1, labels=9)),
    ("khop", dict(hops=(1,), length=60)), ("khop", dict(hops=(1, 2, 4, 8), length=60)),
    ("parity", {}), ("modulo", {}), ("pointers", {}), ("reachability", {}), ("brackets", {}),
    ("composition", dict(group="S5")), ("composition", dict(group="Z60")),
]  # fmt: skip
OF_RINGS = dict(walk=2, hold=2, strides=2, sums=3, program=3)  # tokens for a letter


@pytest.mark.parametrize("test", [False, True])
@pytest.mark.parametrize("name, changes", CASES, ids=str)
def test_targets_are_what_an_independent_solver_finds(name, changes, test):
    task, solver = TASKS[name], getattr(solvers, name)
    sizes = task.sizes | changes
    tokens, targets = task.draw(200, md.generator("test"), test, **changes)
    assert tokens.dtype == targets.dtype == torch.int64
    assert len(tokens) == len(targets) == 200 and tokens.size(1) == targets.size(-1)
    more, told = dict(test=test) if "template" in task.name else {}, [None] * 200
    if hasattr(task, "difficulty"):
        told = task.difficulty(tokens, targets, **sizes).tolist()
    drawn, firsts = set(), set()
    for x, y, difficulty in zip(tokens.tolist(), targets.tolist(), told):
        found = solver(x, y, **sizes, **more)
        if difficulty:
            found, hard = found
            # how far the end of a path would be that there is not, is not in the graph
            assert all(h in (d, None) for h, d in zip(hard, difficulty, strict=True))
        assert y == found
        drawn.add(tuple(x))
        if name in OF_RINGS:
            n, width = sizes["ring"], OF_RINGS[name]
            letters = circle(pairs(x, n, width))
            asked = x[width * n + (name == "hold") :: 1 + (name == "hold")]
            assert len(letters) == n and max(letters) < 2 * n and sorted(asked) == sorted(letters)
            firsts.add((letters.index(asked[0]) - letters.index(x[0])) % n)
            firsts.add((letters.index(x[width]) - letters.index(x[0]), "second") if n > 9 else 0)
    assert len(drawn) > 100 or name in ("template", "icqa") or sizes.get("letters") == 3
    if name in OF_RINGS:  # in mixed order
        assert set(range(sizes["ring"])) <= firsts


RINGS = [("walk", dict(ring=4, hops=3)), ("walk", dict(ring=16, hops=3)), ("hold", dict(ring=4,
         hops=3)), ("sums", dict(ring=4)), ("strides", dict(ring=4, stride=2)),
         ("program", dict(ring=5)), ("ring", {}), ("ring", dict(letters=6, ring=4)),
         ("written", {})]  # fmt: skip


@pytest.mark.parametrize("name, changes", RINGS, ids=str)
def test_rings_of_the_test_are_never_trained_on(name, changes):
    """By the rule of the embedded problems, whatever letter a ring is begun with."""
    task, split = TASKS[name], {False: set(), True: set()}
    sizes = task.sizes | changes
    n = sizes.get("ring", 8)
    letters = sizes.get("letters", 16 if name == "written" else 2 * n)
    draws = [(test, task.draw(1000, md.generator(test), test, **changes)) for test in split]
    for done in (0.0, 1.0, 3.0):
        draws.append((False, task.train_batch(done, 1000, md.generator(done), **sizes)))
    for test, (tokens, _) in draws:
        for x in tokens.tolist():
            split[test].add(circle(pairs(x, n, OF_RINGS.get(name, 2))))
    assert len(split[True]) > 20 < len(split[False]) and not split[True] & split[False]
    for test, rings in split.items():
        for each in rings:
            key = " ".join(map(str, each))
            assert md.is_held_out(key, math.perm(letters, n) // n) == test


ON_MAP = [("parity", {}), ("modulo", {}), ("composition", dict(group="S5")), ("composition",
          dict(group="Z60")), ("pointers", {}), ("brackets", {}), ("reachability", {})]  # fmt: skip


@pytest.mark.parametrize("name, changes", ON_MAP, ids=str)
def test_sequences_of_the_test_are_never_trained_on(name, changes):
    """By a rule on the symbols, the pointers, the paths or the text, not by luck."""
    for test in (False, True):
        for x in TASKS[name].draw(300, md.generator("test"), test, **changes)[0].tolist():
            keys = [x[:16] if name == "pointers" else x]
            if name == "reachability":  # by its two paths, in either order
                edges, heads = dict(zip(x[0:28:2], x[1:28:2])), set(x[0:28:2]) - set(x[1:28:2])
                paths = []
                for node in heads:
                    paths.append([node])
                    while paths[-1][-1] in edges:
                        paths[-1].append(edges[paths[-1][-1]])
                keys = [paths[0] + paths[1], paths[1] + paths[0]]
            n = 16**16 if name == "reachability" else 10**6
            assert test in [md.is_held_out(" ".join(map(str, key)), n) for key in keys]


@pytest.mark.parametrize("name", TASKS)
def test_its_sizes_are_read_as_a_run_keeps_them(name):
    sizes = TASKS[name].sizes
    assert sizes_of(as_text(sizes), sizes, name) == sizes


@pytest.mark.parametrize("name", TASKS)
def test_batches_are_a_function_of_the_generator(name):
    more = dict(khop=dict(hops=(1, 2, 3)), icl_template=dict(hints=0.75))
    sizes = more.get(name, dict(way="random") if name == "written" else {})  # more is drawn
    draw = lambda seed: TASKS[name].draw(8, md.generator(seed), **sizes)  # noqa: E731
    again = zip(draw(1), draw(1), draw(2))
    assert all(torch.equal(a, b) and not torch.equal(a, c) for a, b, c in again)
    others = torch.get_rng_state()  # of numbers that are drawn without it
    for test in (False, True):
        TASKS[name].draw(8, md.generator(1), test, **sizes)
    for done in (0.0, 0.5, 3.0):
        TASKS[name].train_batch(done, 8, md.generator(1), **sizes)
    assert torch.equal(torch.get_rng_state(), others)


def test_memorize_has_one_label_for_each_of_its_sequences():
    def rows(n=2000, test=False, **sizes):
        tokens, targets = TASKS["memorize"].draw(n, md.generator("test"), test, **sizes)
        return zip(tokens.tolist(), targets.tolist())

    label, labels = {}, set()
    for x, y in rows(20_000):
        assert y[:-1] == [NO] * 8 and x[-1] == 40 and all(0 <= token < 32 for token in x[:-1])
        assert label.setdefault(tuple(x), y[-1]) == y[-1] and 32 <= y[-1] < 40
        labels.add(y[-1])
    assert len(label) == 512 and len(labels) == 8  # all are shown, none is there twice
    assert {tuple(x) for x, _ in rows(test=True)} <= label.keys()
    small = {tuple(x) for x, _ in rows(sequences=5, length=3, labels=2, symbols=9)}
    assert len(small) == 5 and {len(x) for x in small} == {4} and {x[-1] for x in small} == {11}


def test_khop_of_the_papers_example():
    """Sanford, Hsu & Telgarsky 2024: the last token of baebcabebdea has 1-hop b and 2-hop c."""
    assert hop("baebcabebdea", 1)[-1] == "b" and hop("baebcabebdea", 2)[-1] == "c"


def test_ten_permutations_make_up_all():
    """So the program is of a group that is not solvable; and none of the ten does nothing."""
    ten = [tuple(row) for row in operations("permutations").tolist()]
    made, newest = set(), {tuple(range(5))}
    while newest:
        made |= newest
        newest = {tuple(p[i] for i in x) for x in newest for p in ten} - made
    assert made == set(itertools.permutations(range(5)))
    assert len(set(ten)) == 10 and tuple(range(5)) not in ten


# ---------- chances ----------


def player(x, y, name, ring, **_):
    """(letter asked, hops, letters of the ring from it on) of each question of a sequence."""
    follows = pairs(x, ring)
    asked = [(a, 1) for a in x[2 * ring :]]
    if name in ("hold", "ring"):
        first = 16 if name == "ring" else 2 * ring
        asked = [(a, k - first) for k, a in zip(x[2 * ring :: 2], x[2 * ring + 1 :: 2])]
    for i, (letter, hops) in enumerate(asked):
        yield i, hops, [follow(follows, letter, n) for n in range(ring)]


@pytest.mark.parametrize("name, changes", [
    ("hold", {}), ("hold", dict(ring=5, hops=4)), ("ring", dict(lengths=(1, 2, 4))),
    ("ring", dict(lengths=(2, 3))),
])  # fmt: skip
def test_guess_and_shortcut_are_those_of_players(name, changes):
    """One says any letter but the one that is asked; the other what follows it, or for more hops
    one that is neither it nor beside it. Each says another one in turn, which is as good as any."""
    task, guessed, looked, n = TASKS[name], 0, 0, 0
    sizes = task.sizes | changes
    for x in task.draw(600, md.generator("test"), **changes)[0].tolist():
        for i, hops, path in player(x, None, name, **sizes):
            right, others, far = path[hops % len(path)], sorted(path[1:]), sorted(path[2:-1])
            near = {1: path[1], len(path) - 1: path[-1]}
            guessed += right == others[(i + x[0]) % len(others)]
            looked += right == near.get(hops, far[(i + x[0]) % len(far)])
            n += 1
    guess, shortcut = task.chance(**changes)
    assert guessed / n == pytest.approx(guess, abs=0.03)
    assert looked / n == pytest.approx(shortcut, abs=0.03)


def test_guess_and_shortcut_of_walk_sums_strides_and_written():
    one = lambda n: pytest.approx(n)  # noqa: E731
    for n in (4, 7, 16):  # of one to n - 1 hops the first and the last are known at a look
        known = (2 + (n - 3) / (n - 3)) / (n - 1) if n > 3 else 1
        assert TASKS["walk"].chance(ring=n) == (one(1 / (n - 1)), one(known))
    assert TASKS["strides"].chance(ring=12, stride=1) == (1 / 11, 1.0)
    assert TASKS["strides"].guess(ring=12, stride=3) == one(1 / 11)
    guess, shortcut = TASKS["sums"].chance(ring=5, additions=12)
    # whole rounds, one more and one less are known, of twelve numbers seven
    assert (guess, shortcut) == (0.1, one((7 + 5 / 10) / 12))
    assert TASKS["ring"].shortcut(3, (1, 2), "direct") == 1.0  # which was a division by zero
    assert TASKS["ring"].shortcut(8, (6,), "direct") == 0.2
    assert TASKS["ring"].shortcut(8, (6,), "written") is None
    task, third = TASKS["written"], 1 / 3
    assert task.chance(way="direct") == task.chance(way="filler") == task.chance(way="random")
    assert task.chance(way="filler") == (one(1 / 7), one(third * (1 + 2 / 5)))
    # the letters shown are ruled out: 7, 6 and 5 others are left
    assert task.chance(way="given") == (one(third * (1 / 7 + 1 / 6 + 1 / 5)), None)
    steps = one(third * (1 / 7 + 1 / (7 * 6) + 1 / (7 * 6 * 5)))
    assert task.chance(way="written") == task.chance(way="backwards") == (steps, None)
    assert task.chance(way="hidden") == (one(third * (1 / 7 + 1 / 7**2 + 1 / 7**3)), None)


def left_in_depo(x, nodes, hops, name, words):
    """Of each question how many names are left: no earlier answer to as many hops, nor its own."""
    names, said, found = set(x[: 2 * nodes]), {}, []
    for i in range(2 * nodes, len(x), 3):
        k, own = x[i] - words, x[i + 1]
        answers = said.setdefault(k, set())
        found.append(1 if k % nodes == 0 else len(names - answers - {own}))
        answers |= {*x[i + 2 : i + 3]}
    return found


def left_in_strides(x, ring, stride, **_):
    """Of each written letter how many letters may come next: those that are not written yet."""
    length = ring // stride
    return [ring - len({*x[2 * ring : 2 * ring + i + 1]}) if (i + 1) % length else 1
            for i in range(ring)]  # fmt: skip


@pytest.mark.parametrize("name, left, sizes", [
    ("depo", left_in_depo, {}), ("depo", left_in_depo, dict(nodes=4, hops=(1, 2))),
    ("depo", left_in_depo, dict(nodes=3, hops=(3, 1))),
    ("strides", left_in_strides, dict(ring=12, stride=3)), ("strides", left_in_strides, {}),
])  # fmt: skip
def test_who_strikes_out_what_it_cannot_be_guesses_among_the_rest(name, left, sizes):
    task = TASKS[name]
    tokens, _ = task.draw(1000, md.generator("test"), **sizes)
    counts = [n for x in tokens.tolist() for n in left(x, **task.sizes | sizes)]
    found = statistics.mean(1 / n for n in counts)
    assert found == pytest.approx(task.chance(**sizes)[1], abs=0.01)


def test_the_most_frequent_answer_to_a_sequence_is_a_shortcut():
    task = TASKS["pointers"]
    tokens, targets = task.draw(2000, md.generator("test"), n=(1, 2))
    right = []
    for x, y in zip(tokens.tolist(), targets.tolist()):
        most = np.bincount(x[:16], minlength=16).argmax()
        for i in range(17, 48, 2):
            back = x[i] == x[x[i]] or (x[i - 1] == 18 and x[x[x[i]]] in (x[i], x[x[i]]))
            right += [] if back else [y[i] == most]  # the path has come back: a shorter way does
    assert np.mean(right) == pytest.approx(task.chance(n=(1, 2))[1], abs=0.01)
    _, targets = TASKS["maze"].draw(2000, md.generator("test"), width=3)
    on_the_way = ((targets == 1).sum() / (targets >= 0).sum()).item()
    most = max(on_the_way, 1 - on_the_way)
    assert TASKS["maze"].chance(width=3) == (None, pytest.approx(most, abs=0.01))
    sums = TASKS["sums"].shortcut(4, 8)
    assert TASKS["program"].shortcut(ring=4, hops=8, kind="additions") == sums > 0.7


def test_the_training_loss_is_told_of_what_a_training_ends_with():
    """Of a task whose lengths join one by one, of all of them; on rings that are not held out."""
    m, t = registry.configs("ring", sizes=("lengths=1+2+3", "questions=9"), n_layers=1)
    data = registry.data_of(t, m.block_size)
    tokens = data.train[0]
    assert tokens.shape[0] == 1000
    assert {*(tokens[:, 16::2] - 16).flatten().tolist()} == {1, 2, 3}
    _, held_out, _ = draw_of(TASKS["ring"], n=1000, test=True, lengths=(1, 2, 3), questions=9)
    rings = [{circle(pairs(x, 8)) for x in some.tolist()} for some in (tokens, held_out)]
    assert not rings[0] & rings[1]
    # runs of before were told apart by what is drawn first, and go on
    first = TASKS["ring"].train_batch(0.0, 1000, md.generator("train"), **data.task_sizes)
    first = tuple(part.int().numpy() for part in first)
    assert data.fingerprint() == md.Data(first, data.val).fingerprint()


@pytest.mark.parametrize("name, sizes, expected", [
    ("memorize", dict(labels=4), (1 / 4, 1 / 4)), ("icqa", dict(pairs=4), (1 / 16, 1 / 4)),
    ("template", {}, (1 / 15, 1 / 3)), ("icl_template", dict(blocks=2, queries=1), (1 / 8, 1 / 2)),
])  # fmt: skip
def test_the_best_constant_answer_is_right_as_often_as_guessing(name, sizes, expected):
    assert TASKS[name].chance(**sizes) == expected
    _, targets = TASKS[name].draw(4000, md.generator(1), **sizes)
    answers = targets[targets >= 0]
    assert answers.bincount().max() / len(answers) == pytest.approx(expected[0], abs=0.05)


@pytest.mark.parametrize("name, changes", ON_MAP, ids=str)
def test_guessing_is_what_the_most_frequent_answer_of_a_difficulty_gives(name, changes):
    task = TASKS[name]
    sizes = task.sizes | changes
    tokens, targets = task.draw(500, md.generator("test"), **changes)
    hard, guess = task.difficulty(tokens, targets, **sizes), task.guess(**sizes)
    for n in sizes["n"]:
        answers = targets[(hard == n) & (targets != NO)]
        most = answers.bincount().max().item() / len(answers)
        # few symbols come to few elements
        assert most >= guess if name == "composition" else abs(most - guess) < 0.12


@pytest.mark.parametrize("group", ["S5", "Z60"])
def test_few_symbols_come_to_few_elements(group):
    """One that knows how many symbols there were, and says what they most often come to."""
    task = TASKS["composition"]
    symbols = torch.randint(2, (20_000, 32), generator=md.generator("commonest"))
    said = task.results(symbols, group=group)
    most = [said[:, n - 1].bincount().max().item() / len(said) for n in (2, 4, 8, 16, 32)]
    shortcut = task.chance(group=group, n=(2, 4, 8, 16, 32))[1]
    assert sum(most) / 5 == pytest.approx(shortcut, abs=0.01)


@pytest.mark.parametrize("k, error, bottom", [
    (1, 0.495, 0.04), (2, 0.495, None), (4, 0.652, None), (8, 0.733, 0.25)
])  # fmt: skip
def test_khop_floor_and_share_of_bottom_are_the_known_ones(k, error, bottom):
    assert 1 - TASKS["khop"].chance(hops=(k,))[1] == pytest.approx(error, abs=0.005)
    if bottom:
        _, y = TASKS["khop"].draw(4000, md.generator(0), hops=(k,))
        assert (y[:, 1:] == 4).float().mean() == pytest.approx(bottom, abs=0.01)


# ---------- links ----------


@pytest.mark.parametrize("name, changes, last", [
    ("walk", dict(ring=7, hops=4), 4), ("hold", dict(ring=7, hops=4, loops=6), 4),
    ("strides", dict(stride=3, loops=4), 3), ("ring", dict(lengths=(1, 2, 4), questions=9), 4),
    ("ring", dict(answer="written", lengths=(1, 3, 7), questions=5), 0),
    ("sums", dict(ring=7, additions=5), 5),
])  # fmt: skip
def test_following_the_links_answers_every_question(name, changes, last):
    """Attention that looks exactly there is a solution: a hop at a time."""
    task = TASKS[name]
    tokens, targets = task.draw(50, md.generator("test"), **changes)
    links = task.links(tokens, targets, **task.sizes | changes)
    rows, query, key = links["copy"].nonzero().T
    back = 2 if name == "sums" else 1
    assert len(rows) >= 50 * 7 and (key == query - back).all()
    wanted, total = targets, torch.zeros_like(tokens)
    said = torch.full_like(tokens, NO)
    for n in range(1, last + 1):
        link = links[f"step {n}" if name == "ring" else f"hop {n}"]
        assert (link.sum(2) <= 1).all()
        rows, query, key = link.nonzero().T
        said[rows, query] = tokens[rows, key]
        if name == "sums":  # the triple has the next letter, and the digit that is added
            assert links["copy operation"][rows, key, key - 1].all()
            total[rows, query] += tokens[rows, key - 1] - 14
            said[rows, query] = 10 * tokens[rows, key] + total[rows, query] % 10
        if targets.dim() == 3 and name != "strides":
            asked = targets[:, n] != NO
            assert torch.equal(said[asked], targets[:, n][asked])
    if not last:
        rows, query, key = links["match"].nonzero().T
        said[rows, query] = tokens[rows, key]
    wanted = targets[:, -1] if targets.dim() == 3 else targets
    assert torch.equal(said[wanted != NO], wanted[wanted != NO])
