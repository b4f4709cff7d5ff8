"""Reachability in a graph: can one come from here to there?"""

import math

import torch
import torch.nn.functional as F

from minidepth_lab.tasks import distinct, of_split
from minidepth_lab.tasks.base.graded import Graded, held_out

NODES = 16  # two paths of eight
LENGTH = NODES // 2
QUESTIONS = 8
YES, NO = NODES, NODES + 1


class Reachability(Graded):
    """A graph of two paths of eight nodes each, as pairs in mixed order, a b for "from a to b".
    Then questions, two nodes, at the second of which the answer is yes or no. Yes: it is n steps on
    from the first one, n drawn from `n`. No: it is the node at the same place of the other path.

    Formula: 1 + log2(n + 1) layers, rounded up. The first tells each pair's second node what stands
    before it; then known stretches double, as in `pointers`.

    `hints` is the share of training, from its start, with a second target in each question: at its
    first node the one n steps on, which a yes or no has to be compared with. Without it we saw
    nothing learned.
    """

    def draw(self, batch, generator, test=False, n=(1, 2, 3, 5, 7), hints=0.0, *, hinted=False):
        """tokens and targets (batch, 28 + 16). ValueError for more steps than a path has."""
        if max(n) >= LENGTH:
            raise ValueError(f"n {max(n)} is too much: a path has {LENGTH - 1} steps")

        def some():
            return distinct(batch, NODES, NODES, generator, "nodes")

        paths = of_split(batch, some, lambda rows: held_out(rows, NODES), test)
        paths = paths.unflatten(1, (2, LENGTH))
        edges = torch.stack((paths[..., :-1], paths[..., 1:]), 3).flatten(1, 2)
        order = distinct(batch, edges.size(1), edges.size(1), generator, "edges")
        pairs = edges.gather(1, order[..., None].expand(-1, -1, 2)).flatten(1)

        def drawn(most):
            """A number below `most` for each question."""
            share = torch.rand(batch, QUESTIONS, generator=generator)
            return (share * most).long()

        steps = torch.tensor(n)[drawn(len(n))]
        path, first, reached = drawn(2), drawn(LENGTH - steps), drawn(2)
        nodes = paths.flatten(1)
        start = nodes.gather(1, path * LENGTH + first)
        its_path = torch.where(reached == 1, path, 1 - path)
        end = nodes.gather(1, its_path * LENGTH + first + steps)
        questions = torch.stack((start, end), 2).flatten(1)
        answers = torch.where(reached == 1, YES, NO)
        on_its_way = torch.full_like(answers, -100)
        if hinted:
            on_its_way = nodes.gather(1, path * LENGTH + first + steps)
        targets = torch.stack((on_its_way, answers), 2).flatten(1)
        return torch.cat((pairs, questions), 1), F.pad(targets, (pairs.size(1), 0), value=-100)

    def train_batch(self, done, batch, generator, hints=0.0, **sizes):
        return self.draw(batch, generator, hinted=done < hints, **sizes)

    def difficulty(self, tokens, targets, **_):
        """How many steps further on its path the second node of a question is than the first one is
        on its own."""
        pairs = tokens[:, : 2 * (NODES - 2)].unflatten(1, (NODES - 2, 2))
        before = torch.full((len(tokens), NODES), -1)
        before.scatter_(1, pairs[..., 1], pairs[..., 0])
        place, at = torch.zeros(len(tokens), NODES, dtype=torch.int64), before
        for _ in range(LENGTH):  # how many nodes stand before each one
            place += at >= 0
            at = torch.where(at >= 0, before.gather(1, at.clamp(min=0)), -1)
        start, end = tokens[:, 2 * (NODES - 2) :].unflatten(1, (QUESTIONS, 2)).unbind(2)
        hard = place.gather(1, end) - place.gather(1, start)
        hard = F.pad(hard[..., None], (1, 0)).flatten(1)
        return F.pad(hard, (2 * (NODES - 2), 0))

    def layers_for(self, n):
        return 1 + math.ceil(math.log2(n + 1))

    def guess(self, **_):
        """Yes or no."""
        return 1 / 2


TASK = Reachability()
