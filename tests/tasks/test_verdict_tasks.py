"""The tasks depo, mqar, words and maze against slow, obvious solutions."""

import collections
import functools
import itertools

import pytest
import torch

import minidepth as md
from conftest import draw_of
from minidepth_lab.tasks import TASKS
from solvers import circle, follow
from tasks.oracle import Oracle


def rows(task, count=300, **sizes):
    tokens, targets = TASKS[task].draw(count, md.generator("test"), **sizes)
    assert tokens.shape == targets.shape and tokens.dtype == targets.dtype == torch.int64
    return list(zip(tokens.tolist(), targets.tolist()))


@pytest.mark.parametrize(
    ("nodes", "hops", "name"), [(8, (1, 2, 4), 1), (5, (3,), 2), (2, (1, 7), 1), (6, (6,), 3)]
)
def test_depo_answers_are_so_many_edges_later(nodes, hops, name):
    seen, orders, ends = set(), set(), 2 * nodes * name
    for x, y in rows("depo", nodes=nodes, hops=hops, name=name):
        x = [*x, y[-1]]  # the last word is a target alone
        pieces = [tuple(x[i : i + name]) for i in range(0, ends, name)]
        follows = dict(zip(pieces[::2], pieces[1::2]))
        assert len(follows) == len(circle(follows)) == nodes and max(x[:ends]) < 48  # one cycle
        orders.add(tuple(pieces[::2].index(one) for one in pieces[1::2]))
        asked, wanted = set(), [-100] * (ends - 1)  # a target stands a place before its word
        for at in range(ends, len(x), 1 + 2 * name):
            k, answer_at = x[at] - 48, at + 1 + name
            q, a = tuple(x[at + 1 : answer_at]), tuple(x[answer_at : answer_at + name])
            assert k in hops and a == follow(follows, q, k)
            asked.add(q)
            seen.add(k)
            wanted += [-100] * (1 + name) + [*a]
        assert y == wanted and asked == set(follows)
    assert seen == set(hops) and len(orders) > (nodes > 2)


def test_depo_counts_answers_of_which_all_words_are_right():
    sizes, tokens, targets = draw_of(TASKS["depo"], 50, nodes=4, hops=(1, 2), name=2, words=10)
    accuracy = functools.partial(TASKS["depo"].accuracy, tokens=tokens, targets=targets, **sizes)
    assert accuracy(Oracle(tokens, targets))["accuracy"] == 1
    place = (targets[0] != -100).nonzero()[-1].item()  # the last word of the last answer
    wrong = targets.clone()
    wrong[0, place] += 1
    found = accuracy(Oracle(tokens, wrong))
    assert found["accuracy"] == pytest.approx(1 - 1 / 200)
    hop = str(tokens[0, place - 3].item() - 10)
    by_hops = found["accuracy_by"]["hops"]
    assert by_hops[hop]["accuracy"] < 1 and by_hops[{"1": "2", "2": "1"}[hop]]["accuracy"] == 1


@pytest.mark.parametrize(("pairs", "hops", "room"), [(8, 1, 16), (6, 3, 8), (4, 4, 1), (5, 1, 5)])
def test_mqar_values_are_looked_up(pairs, hops, room):
    distances = collections.Counter()
    for x, y in rows("mqar", 400, pairs=pairs, hops=hops, room=room, symbols=12):
        assert len(x) == 2 * pairs + 2 * room
        table = dict(zip(x[0 : 2 * pairs : 2], x[1 : 2 * pairs : 2]))
        assert len(table) == pairs and len(set(table.values())) == pairs
        n = 0
        for place, target in enumerate(y):
            if target == -100:
                assert place < 2 * pairs or x[place] == 24  # a blank
                continue
            assert place >= 2 * pairs and not place % 2
            value = x[place]
            for _ in range(hops):
                value = table[value]
            assert value == target >= 12
            distances[(place - 2 * pairs) // 2] += 1
            n += 1
        assert n == pairs // hops
    if pairs == 8:  # a power law: near places are asked more often
        assert distances[0] > 1.5 * distances[15] > 0


@pytest.mark.parametrize(("group", "size"), [("A5", 60), ("S5", 120), ("Z60", 60)])
def test_words_are_multiplied_from_the_left(group, size):
    elements = []
    for p in itertools.permutations(range(5)):
        # even: its matrix has determinant 1
        if group == "S5" or round(torch.linalg.det(torch.eye(5)[list(p)]).item()) == 1:
            elements.append(p)
    shown = set()
    for x, y in rows("words", group=group, n=(2, 8)):
        shown.update(x)
        if group == "Z60":
            assert y == [sum(x[: i + 1]) % 60 for i in range(8)]
            continue
        at = tuple(range(5))
        for symbol, target in zip(x, y):
            at = tuple(at[i] for i in elements[symbol])
            assert elements[target] == at
    assert len(shown) == size


@pytest.mark.parametrize("width", [2, 3, 5])
def test_the_way_through_a_maze_is_the_only_one(width):
    """Every cell can be reached without a circle, and a walk that turns back at dead ends finds
    the way."""
    shown, n = set(), width * width
    for x, y in rows("maze", 100, width=width):
        assert x[:n] == x[n:] and y[:n] == [-100] * n
        open_to = {cell: set() for cell in range(n)}
        for cell, token in enumerate(x[:n]):
            for bit, other in ((1, cell + 1), (2, cell + width)):
                if token & bit:
                    assert bit == 2 or other % width  # not over the edge
                    open_to[cell].add(other)
                    open_to[other].add(cell)
        assert sum(map(len, open_to.values())) == 2 * (n - 1)
        start, goal = (cell for cell in range(n) if x[cell] & 4)

        def ways(cell, before, goal=goal, open_to=open_to):
            if cell == goal:
                return [[cell]]
            ahead = open_to[cell] - {before}
            return [[cell, *way] for other in ahead for way in ways(other, cell)]

        (way,) = ways(start, None)
        assert [cell for cell in range(n) if y[n + cell]] == sorted(way)
        shown.add((start, goal))
    assert len(shown) > n / 2


def test_what_is_known_of_layers():
    words = TASKS["words"]
    assert [words.layers_for(n) for n in (2, 4, 8, 9)] == [1, 2, 3, 4]
    assert words.layers_for(32, group="Z60") == 1
    assert TASKS["mqar"].chance(pairs=6, hops=3) == (1 / 32, 0.5)
    assert TASKS["depo"].guess(nodes=5, hops=(1, 2)) == 0.2
    assert TASKS["depo"].map_tokens(nodes=4, name=2) == 16 and TASKS["mqar"].map_tokens(8) == 16
