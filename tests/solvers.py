"""A solver for each task, which works a sequence out by itself: (sequence, the task's targets,
sizes) → targets, or (targets, difficulties). The task's targets only tell which of several
questions was asked."""

import itertools

from minidepth_lab.tasks.program import operations

NO = -100  # no target


def pairs(x, ring, width=2):
    """{letter: the one that follows it} of a sequence, a list."""
    return {x[i]: x[i + width - 1] for i in range(0, width * ring, width)}


def follow(follows, letter, n):
    for _ in range(n):
        letter = follows[letter]
    return letter


def circle(follows):
    """The letters of a ring, from the smallest one on."""
    letters = [min(follows)]
    while follows[letters[-1]] != letters[0]:
        letters.append(follows[letters[-1]])
    return tuple(letters)


def carried(x, ring, kind, letter, n):
    """(letter, state) after n hops along a ring, each of which does what its letter says."""
    follows, state = pairs(x, ring, 3), 0
    operation = {x[i]: x[i + 1] - 2 * ring for i in range(0, 3 * ring, 3)}
    for _ in range(n):
        if kind == "additions":
            state = (state + operation[letter]) % 10
        else:
            state = operations(kind)[operation[letter]].tolist()[state]
        letter = follows[letter]
    return letter, state


def walk(x, y, ring, hops, loss_after, **_):
    rows = [[NO] * 3 * ring]
    for n in range(1, hops + 1):
        rows.append([NO] * 2 * ring + [follow(pairs(x, ring), a, n) for a in x[2 * ring :]])
    if loss_after == "last":  # after one loop alone
        (only,) = [i for i, row in enumerate(y) if any(t != NO for t in row)]
        rows = [row if i == only else rows[0] for i, row in enumerate(rows)]
    return rows


def hold(x, y, ring, loops, **_):
    rows = [[NO] * 4 * ring] + [[NO] * 2 * ring for _ in range(1, loops)]
    for i, row in enumerate(rows[1:], 1):
        for k, letter in zip(x[2 * ring :: 2], x[2 * ring + 1 :: 2]):
            row += [NO, follow(pairs(x, ring), letter, min(i, k - 2 * ring))]
    return rows


def strides(x, y, ring, stride, loops, **_):
    follows, asked, rows = pairs(x, ring), x[2 * ring :], []
    for i, letter in enumerate(asked[:-1]):
        if (i + 1) % (ring // stride):  # within a chain
            assert asked[i + 1] == follow(follows, letter, stride)
    for i in range(loops):
        n = stride if i == loops - 1 else min(i, stride)
        rows.append([NO] * 2 * ring + [follow(follows, a, n) if n else NO for a in asked])
    return rows


def program(x, y, ring, hops, kind, **_):
    states, rows = dict(additions=10, permutations=5)[kind], [[NO] * 4 * ring]
    for n in range(1, hops + 1):
        ends = [carried(x, ring, kind, letter, n) for letter in x[3 * ring :]]
        rows.append([NO] * 3 * ring + [states * letter + state for letter, state in ends])
    return rows


def sums(x, y, ring, additions, **_):
    return program(x, y, ring, additions, "additions")


def ring(x, y, ring, letters, lengths, answer, **_):
    wanted, width = [NO] * 2 * ring, 1 + max(lengths) if answer == "written" else 2
    for at in range(2 * ring, len(x), width):
        k = x[at] - letters
        path = [follow(pairs(x, ring), x[at + 1], n) for n in range(k + 1)]
        if answer == "direct":
            wanted += [NO, path[k]]
        else:
            blanks = max(lengths) - k
            assert x[at + 2 : at + width] == path[1:k] + [letters] * blanks
            wanted += [NO, *path[1:], *[NO] * blanks]
    return wanted


def written(x, y, way, **_):
    wanted = [NO] * 16
    for at in range(16, len(x), 4):
        k, shown = x[at] - 16, x[at + 2 : at + 4]
        path = [follow(pairs(x, 8), x[at + 1], n) for n in range(k + 1)]
        steps, blanks, none = path[1:k], [16] * (3 - k), [NO] * (3 - k)
        only = [NO] * (k - 1) + [path[k]] + none
        seen, asked = {
            "direct": ([16] * 2, [path[k]] + [NO] * 2),
            "filler": ([16] * 2, only),
            "random": (shown[: k - 1] + blanks, only),
            "hidden": ([16] * 2, path[1:] + none),
            "given": (steps + blanks, only),
            "backwards": (steps[::-1] + blanks, steps[::-1] + [path[k]] + none),
            "written": (steps + blanks, path[1:] + none),
        }[way]
        assert shown == seen and set(shown) <= {*pairs(x, 8), 16}
        wanted += [NO, *asked]
    return wanted


def icqa(x, y, pairs, symbols, **_):
    q, a, asked = x[0 : 2 * pairs : 2], x[1 : 2 * pairs : 2], x[2 * pairs :]
    assert len(set(q)) == len(set(a)) == pairs and sorted(asked) == sorted(q)
    assert all(t < symbols for t in q) and all(symbols <= t < 2 * symbols for t in a)
    return [NO] * 2 * pairs + [dict(zip(q, a))[token] for token in asked]


def pattern(string):
    """abba → (0, 1, 1, 0)"""
    names = {}
    return tuple(names.setdefault(token, len(names)) for token in string)


def all_patterns(length):
    """Every string of `length` places in which each symbol comes twice, as pattern()s, in order."""
    words = itertools.product(range(length // 2), repeat=length)
    return sorted(w for w in words if pattern(w) == w and all(w.count(s) == 2 for s in w))


def template(x, y, symbols, length, test, **_):
    assert all(t // symbols == test for t in x[:-1])  # unseen symbols in the test, only there
    patterns = all_patterns(length)
    assert x[-1] == 2 * symbols + len(patterns)
    return [NO] * length + [2 * symbols + patterns.index(pattern(x[:-1]))]


def icl_template(x, y, symbols, length, blocks, queries, labels, test, **_):
    parts = [x[i : i + length + 1] for i in range(0, len(x), length + 1)]
    shown = {pattern(part[:-1]): part[-1] for part in parts[:blocks]}
    assert len(shown) == len(set(shown.values())) == blocks  # patterns and labels differ
    assert all(2 * symbols <= label < 2 * symbols + labels for label in shown.values())
    given = [t for part in parts for t in part[:-1]]
    assert all(t // symbols == test for t in given)
    assert len(set(given)) == len(parts) * length // 2  # each block has its own
    assert len({pattern(part[:-1]) for part in parts[blocks:]}) == queries
    assert {part[-1] for part in parts[blocks:]} == {2 * symbols + labels}
    answers = [[NO] * length + [shown[pattern(part[:-1])]] for part in parts[blocks:]]
    return [NO] * blocks * (length + 1) + sum(answers, [])


def hop(x, k):
    """x[find_k(i)] for each i, None for ⊥: the definition with 1-based places, word for word."""

    def find1(i):
        return max([0] + [j for j in range(2, i + 1) if x[j - 2] == x[i - 1]])

    def find(i, k):
        return i if k == 0 or i == 0 else find1(find(i, k - 1))

    found = [find(i, k) for i in range(1, len(x) + 1)]
    return [x[at - 1] if at else None for at in found]


def khop(x, y, symbols, hops, **_):
    k, string = x[0] - symbols, x[1:]
    assert k in hops and all(0 <= t < symbols for t in string)
    assert all(a != b for a, b in zip(string, string[1:]))
    return [NO, *(symbols if s is None else s for s in hop(string, k))]


def parity(x, y, **_):
    return [x[: i + 1].count(1) % 2 for i in range(len(x))], [*range(1, len(x) + 1)]


def modulo(x, y, **_):
    return [int(str(sum(x[: i + 1]))[-1]) for i in range(len(x))], [*range(1, len(x) + 1)]


ORDERS = list(itertools.permutations("abcde"))


def composition(x, y, group, **_):
    if group == "Z60":
        wanted = [(x[: i + 1].count(0) + 7 * x[: i + 1].count(1)) % 60 for i in range(len(x))]
    else:
        things, wanted = list("abcde"), []
        for symbol in x:
            if symbol == 0:  # swap the things at the first two places
                things[0], things[1] = things[1], things[0]
            else:  # turn all by a place
                things = things[1:] + things[:1]
            wanted.append(ORDERS.index(tuple(things)))
    return wanted, [*range(1, len(x) + 1)]


def pointers(x, y, **_):
    wanted, hard = [NO] * 16, [0] * 16
    assert sorted(x[17::2]) == list(range(16))
    for k, place in zip(x[16::2], x[17::2]):
        path = [place]
        for _ in range(k - 16):
            path.append(x[path[-1]])
        wanted += [NO, path[-1]]
        comes_back = len(set(path[:-1])) < k - 16 or path[-1] in path[:-1]
        hard += [0, 0 if comes_back else k - 16]  # a path that comes back is not measured
    return wanted, hard


def reachability(x, y, **_):
    edges, wanted, hard = dict(zip(x[0:28:2], x[1:28:2])), [NO] * 28, [0] * 28
    for at in range(28, 44, 2):
        node, steps, distance = x[at], 0, None
        while node in edges:
            node, steps = edges[node], steps + 1
            if node == x[at + 1]:
                distance = steps
        wanted += [NO, 17 if distance is None else 16]
        hard += [0, distance]
    return wanted, hard


def brackets(x, y, **_):
    stack, wanted, hard = [], [], []
    for at, word in enumerate(x):
        if word < 2:
            stack.append((word, at))
        else:
            assert stack.pop()[0] == word - 2  # what closes is what was opened last
        kind, opened = stack[-1] if stack else (4, at)
        wanted.append(kind)
        hard.append(at - opened)
    return wanted, hard
