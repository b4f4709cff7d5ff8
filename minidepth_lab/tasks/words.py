"""Words of a group, by length: what a row of any elements comes to, in A5, S5 or Z60."""

import functools
import itertools
import math

import torch

from minidepth_lab.tasks.base.graded import Prefix
from minidepth_lab.tasks.base.sizes import check_known

GROUPS = ("A5", "S5", "Z60")


@functools.cache
def products(group):
    """(elements, elements) int64: the number of the product of any two. Of permutations the first
    is done first; they are numbered in the order of itertools.permutations, A5's are the even
    ones."""
    if group == "Z60":
        each = torch.arange(60)
        return (each[:, None] + each) % 60
    elements = [p for p in itertools.permutations(range(5)) if group == "S5" or is_even(p)]
    number = {element: i for i, element in enumerate(elements)}
    rows = []
    for one in elements:
        rows.append([number[tuple(one[i] for i in other)] for other in elements])
    return torch.tensor(rows)


def is_even(p):
    """Whether a permutation is made of an even number of swaps."""
    return sum(a > b for a, b in itertools.combinations(p, 2)) % 2 == 0


class Words(Prefix):
    """The word problem: symbols are all elements of a group, and at each place the target is the
    element that all up to it come to. (`composition` has two elements as symbols, which makes less
    of each and needs the table of all.)

    Known: A5 and S5 are not solvable, so no fixed number of layers does all lengths unless TC0 is
    NC1 (Barrington 1989; Merrill, Petrov & Sabharwal 2024, arXiv 2404.08819), and log2 n layers,
    rounded up, do length n (Liu et al. 2023, arXiv 2210.10749). Z60 is commutative: one layer.
    """

    settings = dict(steps=2000, eval_every=100)

    def draw(self, batch, generator, test=False, n=(2, 4, 8), group="A5"):
        """tokens and targets (batch, the greatest n). ValueError for an unknown group."""
        check_known("group", group, GROUPS)
        return self.drawn(batch, generator, test, n, group=group)

    def symbols(self, group, **_):
        return len(products(group))

    def results(self, symbols, group, **_):
        table, at = products(group), [symbols[:, 0]]
        for each in symbols.T[1:]:
            at.append(table[at[-1], each])
        return torch.stack(at, 1)

    def layers_for(self, n, group="A5"):
        return 1 if group == "Z60" else max(1, math.ceil(math.log2(n)))

    def guess(self, group, **_):
        """Any element: the last symbol alone tells nothing."""
        return 1 / len(products(group))


TASK = Words()
