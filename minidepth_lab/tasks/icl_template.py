"""In-context template matching: contextual generalization, three layers."""

import torch
import torch.nn.functional as F

from minidepth_lab.tasks import Task, answer_before, distinct, equal_before
from minidepth_lab.tasks.template import pair_patterns


class IclTemplate(Task):
    """In-context template matching (contextual generalization, Chen & Zou 2024): `blocks` strings
    of different patterns, each with a label drawn anew, then `queries` strings, each of another of
    the patterns, whose labels are asked. All strings have symbols of their own, those of the test
    are not shown in training. The shortcut is any label shown.

    `hints` is the share of training, from its start, with a scaffold without which we saw nothing
    learned: each label shown is to be followed by the name of its pattern, and so are all queries
    at first, then a fifth of them.
    """

    settings = dict(steps=6000, eval_every=200, sizes=("hints=0.75",))

    def draw(
        self, batch, generator, test=False, symbols=2048, length=4, blocks=3, queries=3, labels=8,
        hints=0.0, *, hinted=None,
    ):  # fmt: skip
        patterns = pair_patterns(length)
        query = 2 * symbols + labels  # the token after a string whose label is asked
        which = distinct(batch, len(patterns), blocks, generator, "patterns")
        shown = distinct(batch, labels, blocks, generator, "labels") + 2 * symbols
        asked = distinct(batch, blocks, queries, generator, "blocks")
        count = (blocks + queries) * length // 2
        names = distinct(batch, symbols, count, generator, "symbols") + symbols * test
        which = torch.cat((which, which.gather(1, asked)), 1)  # (B, blocks + queries)
        strings = names.view(batch, blocks + queries, -1).gather(2, patterns[which])
        ends = torch.cat((shown, torch.full_like(asked, query)), 1)
        answers = torch.cat((torch.full_like(shown, -100), shown.gather(1, asked)), 1)
        if hinted is not None:  # this share of the sequences
            named = torch.rand(batch, 1, generator=generator) < hinted
            named = named | (torch.arange(blocks + queries) < blocks)
            answers = torch.where(named, query + 1 + which, answers)
        tokens = torch.cat((strings, ends[..., None]), 2)  # (B, blocks + queries, length + 1)
        return tokens.flatten(1), F.pad(answers[..., None], (length, 0), value=-100).flatten(1)

    def train_batch(self, done, batch, generator, hints=0.0, **sizes):
        hinted = None
        if done < hints:
            hinted = 1.0 if done < 0.2 * hints else 0.2
        return self.draw(batch, generator, hinted=hinted, **sizes)

    def guess(self, labels, **_):
        return 1 / labels

    def shortcut(self, blocks, **_):
        return 1 / blocks

    def links(self, tokens, targets, length, **_):
        """As template's for each string (parse, read); the query finds the right label (match)."""
        place = torch.arange(tokens.size(1))
        query, key, L = place[:, None], place, length + 1
        symbol, inside = query % L < length, (query // L == key // L) & (key < query)
        equal = equal_before(tokens)
        second = equal.any(2)[:, None] & inside  # of each pair
        match = answer_before(tokens, targets)
        return dict(parse=equal & symbol, read=second & ~symbol, match=match)


TASK = IclTemplate()
