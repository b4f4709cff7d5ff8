"""Which cells of a maze lie on the way from one end to the other."""

import torch
import torch.nn.functional as F

import minidepth as md
from minidepth_lab.tasks import Task

EAST, SOUTH, END = 1, 2, 4  # a cell's token: the sum of what is open, and whether it is an end


class Maze(Task):
    """The mazes of the deep-thinking networks (Schwarzschild et al. 2021, arXiv 2106.04537), small:
    a grid of `width` by `width` cells, row by row, in which one way leads from any cell to any
    other. It is shown twice; at each cell of the second copy the target is 1 if the cell lies on
    the way between the two ends, else 0.

    No prediction: filling dead ends takes as many rounds as the longest has cells, but who knows
    all ways of so many cells can double them, which takes the logarithm. (Prefix sums, their other
    problem, are the task parity.)
    """

    settings = dict(steps=2000, eval_every=100)

    def draw(self, batch, generator, test=False, width=4):
        """tokens and targets (batch, 2 width²)."""
        if width < 2:
            raise ValueError(f"width {width} is no maze; give at least 2")
        cells = torch.arange(width * width).view(width, width)
        pairs = [(cells[:, :-1], cells[:, 1:]), (cells[:-1], cells[1:])]
        one, other = (torch.cat([part.flatten() for part in side]) for side in zip(*pairs))
        ends = torch.rand(batch, cells.numel(), generator=generator).topk(2).indices
        # Prim's algorithm: the tree grows from one end, each time by the shortest edge that leads
        # out of it
        length, rows = torch.rand(batch, len(one), generator=generator), torch.arange(batch)
        inside = F.one_hot(ends[:, 0], cells.numel()).bool()
        opened = torch.zeros(batch, len(one), dtype=torch.bool)
        parent = torch.zeros(batch, cells.numel(), dtype=torch.int64)
        for _ in range(cells.numel() - 1):
            leads_out = inside[:, one] != inside[:, other]
            edge = length.masked_fill(~leads_out, 2.0).argmin(1)
            a, b = one[edge], other[edge]
            new = torch.where(inside[rows, a], b, a)
            parent[rows, new] = a + b - new
            inside[rows, new] = opened[rows, edge] = True
        # the way back to where the tree began
        way, at = F.one_hot(ends, cells.numel()).sum(1), ends[:, 1]
        for _ in range(cells.numel()):
            way[rows, at] = 1
            at = torch.where(at == ends[:, 0], at, parent[rows, at])
        tokens = END * F.one_hot(ends, cells.numel()).sum(1)
        kind = torch.tensor([EAST, SOUTH]).repeat_interleave(len(one) // 2)
        tokens.scatter_add_(1, one.expand(batch, -1), kind * opened)
        return tokens.repeat(1, 2), F.pad(way, (cells.numel(), 0), value=-100)

    def shortcut(self, width, **_):
        """What most cells are; counted."""
        _, targets = self.draw(1000, md.generator("shortcut"), width=width)
        on_the_way = targets[targets != -100].float().mean().item()
        return max(on_the_way, 1 - on_the_way)

    def map_tokens(self, width, **_):
        """The first copy, which a looped model may read once."""
        return width * width


TASK = Maze()
