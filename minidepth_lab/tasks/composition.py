"""What permutations come to, one after the other: of five things, S5, or the turns of a circle of
sixty places, Z60."""

import functools
import itertools
import math

import torch

from minidepth_lab.tasks.base.graded import Prefix
from minidepth_lab.tasks.base.sizes import check_known

GROUPS = ("S5", "Z60")


@functools.cache
def table(group):
    """(generators, product of any element and any generator): numbers of elements (2,), and the
    table (elements, 2). Element 0 is the one that changes nothing."""
    if group == "Z60":
        elements = torch.arange(60)
        return torch.tensor([1, 7]), torch.stack(((elements + 1) % 60, (elements + 7) % 60), 1)
    elements = list(itertools.permutations(range(5)))
    number = {element: i for i, element in enumerate(elements)}
    swap, turn = (1, 0, 2, 3, 4), (1, 2, 3, 4, 0)  # they make all 120
    products = []
    for element in elements:
        products.append([number[tuple(element[i] for i in each)] for each in (swap, turn)])
    return torch.tensor([number[swap], number[turn]]), torch.tensor(products)


class Composition(Prefix):
    """Symbols are two elements of a group that make all of it: in S5 a swap of two of five things
    and a turn of all, in Z60 the turns by one and by seven. At each place the target is the number
    of the element that all symbols up to it come to, one after the other.

    Formula, for S5: a layer can put two neighbouring stretches together, so n symbols take log2 n
    layers, rounded up; less is not expected, since S5 is as hard as any such task (Barrington 1989;
    Merrill, Petrov & Sabharwal 2024, arXiv 2404.08819). For Z60 the order does not count: one
    layer.
    """

    def draw(self, batch, generator, test=False, n=(2, 4, 8, 16, 32), group="S5"):
        """tokens and targets (batch, the greatest n). ValueError for an unknown group."""
        check_known("group", group, GROUPS)
        return self.drawn(batch, generator, test, n, group=group)

    def symbols(self, **_):
        return 2

    def results(self, symbols, group, **_):
        _, products = table(group)
        element, at = torch.zeros(len(symbols), dtype=torch.int64), []
        for each in symbols.T:
            element = products[element, each]
            at.append(element)
        return torch.stack(at, 1)

    def layers_for(self, n, group="S5"):
        return math.ceil(math.log2(n)) if group == "S5" else 1

    def guess(self, group, **_):
        """Any element."""
        return 1 / len(table(group)[1])

    def shortcut(self, n, group, **_):
        """The commonest answer after so many symbols, whichever they are: few symbols come to few
        elements. A mean over the difficulties."""
        _, products = table(group)
        ways = torch.zeros(len(products), dtype=torch.float64)  # that lead to each element
        ways[0], shares = 1, {}
        for length in range(1, max(n) + 1):
            led = torch.zeros_like(ways)
            for symbol in (0, 1):
                led.index_add_(0, products[:, symbol], ways / 2)
            ways = led
            shares[length] = ways.max().item()
        return sum(shares[each] for each in n) / len(n)


TASK = Composition()
