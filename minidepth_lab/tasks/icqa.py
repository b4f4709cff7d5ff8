"""In-context question answering: reasoning, two layers."""

import torch
import torch.nn.functional as F

from minidepth_lab.tasks import Task, answer_before, distinct


class Icqa(Task):
    """In-context question answering (reasoning, Chen & Zou 2024): q1 a1 … qk ak, then every q in
    another order, each to be answered. Pairs are drawn anew for each sequence and answers differ.
    The shortcut is any answer shown."""

    settings = dict(n_heads=2)

    def draw(self, batch, generator, test=False, symbols=16, pairs=8):
        q = distinct(batch, symbols, pairs, generator, "questions")
        a = distinct(batch, symbols, pairs, generator, "answers") + symbols
        order = distinct(batch, pairs, pairs, generator, "places")
        tokens = torch.cat((torch.stack((q, a), 2).flatten(1), q.gather(1, order)), 1)
        return tokens, F.pad(a.gather(1, order), (2 * pairs, 0), value=-100)

    def guess(self, symbols, **_):
        return 1 / symbols

    def shortcut(self, pairs, **_):
        return 1 / pairs

    def links(self, tokens, targets, pairs, **_):
        """An answer copies the question before it; a question finds the answer copied to."""
        place = torch.arange(tokens.size(1))
        query, key = place[:, None], place
        copy = (query % 2 == 1) & (query < 2 * pairs) & (key == query - 1)
        match = answer_before(tokens, targets)
        return dict(copy=copy.expand_as(match), match=match)


TASK = Icqa()
