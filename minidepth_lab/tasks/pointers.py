"""Random pointers: each of 16 places points to any place; where is one after n jumps?"""

import math

import torch
import torch.nn.functional as F

import minidepth as md
from minidepth_lab.tasks import distinct, of_split
from minidepth_lab.tasks.base.graded import Graded, held_out

PLACES = 16


class Pointers(Graded):
    """First the pointers, the i-th word being the place that place i points to; then questions, a
    number of jumps and a place, at which the place that one comes to is asked. Paths may run
    together. Each place is asked once, with a number of jumps from `n`. A question of n jumps whose
    path has come back to a place by then is not measured: a shorter way would do.

    Formula: log2(n + 1) layers, rounded up. After one layer a place knows two jumps, after two
    four, while a question has made one and then, with the two jumps of where it stands, three. (So
    it was written. A place that points ahead does not see where; then the place that it points to
    has to look back at it. Two trained layers do both: see links() and the page depth_map.)
    """

    def draw(self, batch, generator, test=False, n=(1, 2, 3, 5, 8)):
        """tokens and targets (batch, 48)."""

        def some():
            return torch.randint(PLACES, (batch, PLACES), generator=generator)

        pointers = of_split(batch, some, lambda rows: held_out(rows, PLACES), test)
        start = distinct(batch, PLACES, PLACES, generator, "questions")
        k = torch.tensor(n)[torch.randint(len(n), start.shape, generator=generator)]
        at = start
        for jump in range(max(n)):
            at = torch.where(jump < k, pointers.gather(1, at), at)
        questions = torch.stack((PLACES + k, start), 2).flatten(1)
        answers = F.pad(at[..., None], (1, 0), value=-100).flatten(1)
        return torch.cat((pointers, questions), 1), F.pad(answers, (PLACES, 0), value=-100)

    def difficulty(self, tokens, targets, n, **_):
        pointers, questions = tokens[:, :PLACES], tokens[:, PLACES:].unflatten(1, (PLACES, 2))
        k, at = questions[..., 0] - PLACES, questions[..., 1]
        seen, again = F.one_hot(at, PLACES).bool(), torch.zeros_like(at, dtype=torch.bool)
        for jump in range(max(n)):
            at = pointers.gather(1, at)
            again |= (jump < k) & seen.gather(2, at[..., None])[..., 0]
            seen |= F.one_hot(at, PLACES).bool()
        hard = F.pad(torch.where(again, 0, k)[..., None], (1, 0)).flatten(1)
        return F.pad(hard, (PLACES, 0))

    def links(self, tokens, targets, **_):
        """Where the first of two trained layers looks: a place at the one that it points to, and at
        those that point to it, as far as these stand before it; a question at the place that it
        begins with."""
        pointers, places = tokens[:, :PLACES], torch.arange(PLACES)
        points = F.one_hot(pointers, PLACES).bool()  # (B, place, place it points to)
        before = places < places[:, None]
        nowhere = torch.zeros(*tokens.shape, tokens.size(1), dtype=torch.bool)
        steps = {
            name: nowhere.clone() for name in ("where it points", "what points to it", "jump 1")
        }
        steps["where it points"][:, :PLACES, :PLACES] = points & before
        steps["what points to it"][:, :PLACES, :PLACES] = points.transpose(1, 2) & before
        starts = F.one_hot(tokens[:, PLACES + 1 :: 2], PLACES).bool()
        steps["jump 1"][:, PLACES + 1 :: 2, :PLACES] = starts
        return steps

    def layers_for(self, n):
        return math.ceil(math.log2(n + 1))

    def guess(self, **_):
        """Any place."""
        return 1 / PLACES

    def shortcut(self, n, **_):
        """The place that most pointers lead to; counted. None where no path is so long."""
        tokens, targets = self.draw(1000, md.generator("shortcut"), n=n)
        most = F.one_hot(tokens[:, :PLACES], PLACES).sum(1).argmax(1)
        counted = self.difficulty(tokens, targets, n) > 0
        right = (targets == most[:, None])[counted].float()
        return right.mean().item() if len(right) else None


TASK = Pointers()
