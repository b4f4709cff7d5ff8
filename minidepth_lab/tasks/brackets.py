"""Nested brackets of two kinds: which one is to be closed next?"""

import torch

from minidepth_lab.tasks import of_split
from minidepth_lab.tasks.base.graded import Graded, held_out

NONE = 4  # the words ( and [ are 0 and 1, ) and ] are 2 and 3


class Brackets(Graded):
    """The beginning of a text of brackets ( ) [ ]: half of them open one, if any is open, and what
    closes is of the kind that was opened last. At each place the target is the kind of the bracket
    that is to be closed next, or that none is.

    The difficulty is how many brackets have come and gone since that one: n = 4 after `[ ( ) ( )`.

    Formula: two layers for any n (Yao, Peng, Papadimitriou & Narasimhan 2021, arXiv 2105.11115).
    The first counts how many brackets are open at each place, the second looks for the last place
    at which there was one less.
    """

    def draw(self, batch, generator, test=False, n=(2, 4, 6, 8, 12), length=32):
        """tokens and targets (batch, length)."""

        def some():
            return torch.stack(self.texts(batch, generator, length), 1)

        pairs = of_split(batch, some, lambda pairs: held_out(pairs[:, 0], 4), test)
        tokens, targets = pairs.unbind(1)
        return tokens.contiguous(), targets.contiguous()

    def texts(self, batch, generator, length):
        """tokens and targets (batch, length), of either split."""
        rows, n_open = torch.arange(batch), torch.zeros(batch, dtype=torch.int64)
        stack = torch.full((batch, length + 1), NONE)  # the kinds that are open, after one NONE
        tokens, targets = [], []
        for _ in range(length):
            opens = (torch.rand(batch, generator=generator) < 0.5) | (n_open == 0)
            kind = torch.randint(2, (batch,), generator=generator)
            tokens.append(torch.where(opens, kind, stack[rows, n_open] + 2))
            n_open = n_open + torch.where(opens, 1, -1)
            stack[rows[opens], n_open[opens]] = kind[opens]
            targets.append(stack[rows, n_open])
        return torch.stack(tokens, 1), torch.stack(targets, 1)

    def difficulty(self, tokens, targets, **_):
        """Places since the bracket that is to be closed next; 0 where it has just been opened, or
        where none is open."""
        n_open = torch.where(tokens < 2, 1, -1).cumsum(1)
        places = torch.arange(tokens.size(1))
        # it stands behind the last place at which fewer were open
        fewer = (n_open[:, None] < n_open[:, :, None]).tril()  # (B, place, an earlier one)
        opened = torch.where(fewer, places, -1).amax(2) + 1
        return torch.where(n_open > 0, places - opened, 0)

    def layers_for(self, n):
        return 2

    def guess(self, **_):
        """One of two kinds, where any is open."""
        return 1 / 2


TASK = Brackets()
