"""The tasks depo, mqar, words and maze against slow, obvious solutions."""

import collections

import pytest
import torch

import minidepth as md
from minidepth_lab.tasks import TASKS


def rows(task, count=300, **sizes):
    tokens, targets = TASKS[task].draw(count, md.generator("test"), **sizes)
    assert tokens.shape == targets.shape and tokens.dtype == targets.dtype == torch.int64
    return list(zip(tokens.tolist(), targets.tolist()))


@pytest.mark.parametrize(
    ("nodes", "hops", "name"), [(8, (1, 2, 4), 1), (5, (3,), 2), (2, (1, 7), 1), (6, (6,), 3)]
)
def test_depo_answers_are_so_many_edges_later(nodes, hops, name):
    words, seen, orders = 48, set(), set()
    for x, y in rows("depo", nodes=nodes, hops=hops, name=name):
        x = [*x, y[-1]]  # the last word is a target alone
        edges, rest = x[: 2 * nodes * name], x[2 * nodes * name :]
        pieces = [tuple(edges[i : i + name]) for i in range(0, len(edges), name)]
        follows = dict(zip(pieces[::2], pieces[1::2]))
        assert len(follows) == nodes == len(set(pieces)) and all(w < words for w in edges)
        orders.add(tuple(pieces[::2].index(one) for one in pieces[1::2]))
        asked = set()
        for at in range(0, len(rest), 1 + 2 * name):
            k, (q, a) = (
                rest[at] - words,
                (tuple(rest[at + 1 + i * name : at + 1 + (i + 1) * name]) for i in (0, 1)),
            )
            assert k in hops
            place = q
            for _ in range(k):
                place = follows[place]
            assert a == place
            asked.add(q)
            seen.add(k)
            first = 2 * nodes * name + at + name  # the target stands a place before
            assert y[first : first + name] == list(a)
            assert set(y[first - name : first]) == {-100}
        assert len(asked) == nodes
        place, around = pieces[0], set()
        for _ in range(nodes):
            around.add(place)
            place = follows[place]
        assert len(around) == nodes and place == pieces[0]  # one cycle
    assert seen == set(hops) and len(orders) > (nodes > 2)


class Knows:
    """A model that predicts given tokens, but for some words."""

    training = False

    def __init__(self, targets, wrong=()):
        self.answers = targets.clamp(min=0)
        for row, place in wrong:
            self.answers[row, place] += 1

    def parameters(self):
        return iter([torch.zeros(1)])

    def eval(self):
        return self

    def train(self, mode=True):
        return self

    def __call__(self, tokens):
        made = torch.nn.functional.one_hot(self.answers[: len(tokens)], 64).float()
        self.answers = self.answers[len(tokens) :]
        return made


def test_depo_counts_answers_of_which_all_words_are_right():
    task, sizes = TASKS["depo"], dict(nodes=4, hops=(1, 2), name=2, words=10)
    tokens, targets = task.draw(50, md.generator(0), **sizes)
    assert task.accuracy(Knows(targets), tokens, targets, **sizes)["accuracy"] == 1
    place = (targets[0] != -100).nonzero()[-1].item()  # the last word of the last answer
    found = task.accuracy(Knows(targets, [(0, place)]), tokens, targets, **sizes)
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


def composed(one, other):
    return tuple(one[i] for i in other)


@pytest.mark.parametrize(("group", "size"), [("A5", 60), ("S5", 120), ("Z60", 60)])
def test_words_are_multiplied_from_the_left(group, size):
    import itertools

    elements = [
        p
        for p in itertools.permutations(range(5))
        # even: its matrix has determinant 1
        if group == "S5" or round(torch.linalg.det(torch.eye(5)[list(p)]).item()) == 1
    ]
    shown = set()
    for x, y in rows("words", group=group, n=(2, 8)):
        shown.update(x)
        if group == "Z60":
            assert y == [sum(x[: i + 1]) % 60 for i in range(8)]
            continue
        at = tuple(range(5))
        for symbol, target in zip(x, y):
            at = composed(at, elements[symbol])
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
    assert TASKS["depo"].chance(nodes=5, hops=(1, 2)) == (0.2, 0.25)
    assert TASKS["depo"].chance(nodes=5, hops=(1, 10)) == (0.2, 0.625)
    assert TASKS["depo"].map_tokens(nodes=4, name=2) == 16 and TASKS["mqar"].map_tokens(8) == 16
