"""Sums along a ring: each letter has a digit, and a walk adds up those that it passes, modulo ten.
Unlike a walk alone it does not come back to where it was after one round. How far a model goes that
was trained to few additions is in studies/sums.py."""

import torch
import torch.nn.functional as F

from minidepth_lab.base import machine
from minidepth_lab.tasks import distinct, rings
from minidepth_lab.tasks.walk import RINGS_TESTED, Walk, check_sizes

FAR = (15, 31, 50, 100, 200)  # additions beyond those of training that are tested at the end


class Sums(Walk):
    """A ring of letters as triples in mixed order, a 7 b for "b follows a, which has a 7"; then
    each of its letters is asked. After loop i + 1 the answer is the letter i hops on together with
    the sum, modulo ten, of the digits of the i letters that were left: one word, 10 × letter + sum.
    Only the sum counts in the accuracy; the letter is asked since otherwise few runs learn in time.

    Letters are drawn as for `walk`, and the same rings are held out; a digit may come again.
    Letters are words below 2 ring, the digit d is 2 ring + d. `additions` is what is trained to;
    they join one at a time, as the hops of `walk` do. `far` is how many are added at the last test.
    """

    reach = "additions"

    def draw(
        self, batch, generator, test=False, ring=4, additions=8, gate=0.5, far=200, *, asked=None
    ):
        """tokens (batch, 4 ring) and targets (batch, 1 + asked, 4 ring), a loss after each loop.
        `asked`: the additions that are asked up to now, if not all. ValueError for sizes that
        cannot be."""
        check_sizes(ring, 1, "each")
        n = asked or additions
        lines = rings(batch, ring, generator, test)
        digits = torch.randint(10, (batch, ring), generator=generator)
        order = distinct(batch, ring, ring, generator, "triples")
        letter, following = lines.gather(1, order), lines.gather(1, (order + 1) % ring)
        triples = torch.stack((letter, 2 * ring + digits.gather(1, order), following), 2)
        start = distinct(batch, ring, ring, generator, "questions")
        tokens = torch.cat((triples.flatten(1), lines.gather(1, start)), 1)
        answers = [torch.full_like(start, -100)]  # the first loop has no target
        total = torch.zeros_like(start)
        for i in range(n):
            total = (total + digits.gather(1, (start + i) % ring)) % 10
            answers.append(10 * lines.gather(1, (start + i + 1) % ring) + total)
        return tokens, F.pad(torch.stack(answers, 1), (3 * ring, 0), value=-100)

    def guess(self, **_):
        """Any digit."""
        return 1 / 10

    def shortcut(self, ring, additions, **_):
        """The sum of whole rounds is the same from every letter, and needs no order; with a look at
        a neighbour, one addition more or less is known as well. The others are guessed. Of 1 to
        `additions` on average."""
        known = sum(i % ring in (0, 1, ring - 1) for i in range(1, additions + 1))
        return (known + (additions - known) / 10) / additions

    def links(self, tokens, targets, ring, additions, **_):
        """The last letter of a triple looks at its first one and at its digit (copy), and a
        question, hop by hop, at the last letter of the triple that begins with the letter it has
        come to."""
        triples = tokens[:, : 3 * ring].unflatten(1, (ring, 3))
        last = torch.arange(2, 3 * ring, 3)
        nowhere = torch.zeros(*tokens.shape, tokens.size(1), dtype=torch.bool)
        steps = {}
        for name, back in (("copy", 2), ("copy digit", 1)):
            steps[name] = nowhere.clone()
            steps[name][:, last, last - back] = True
        letter, (follows, _) = tokens[:, 3 * ring :], tables(tokens, ring)
        for hop in range(1, additions + 1):
            begins = letter[:, :, None] == triples[:, None, :, 0]  # (B, questions, triples)
            steps[f"hop {hop}"] = nowhere.clone()
            steps[f"hop {hop}"][:, 3 * ring :, last] = begins
            letter = follows.gather(1, letter)
        return steps

    def accuracy(self, model, tokens, targets, ring, additions, **_):
        """{"accuracy": share of sums that are right, the mean over 1 to `additions`,
        "accuracy_by": {"additions": {"1": {"accuracy": …}, …}}}"""
        return measured(model, tokens, ring, additions)

    def final_accuracy(self, model, tokens, targets, ring, additions, far, **_):
        """accuracy(), with FAR additions and `far` among those of `accuracy_by`."""
        beyond = [n for n in (*FAR, far) if additions < n <= far]
        return measured(model, tokens, ring, additions, beyond)


def tables(tokens, ring):
    """Of tokens (B, 4 ring) the letter that follows each letter, and the digit of each letter, both
    (B, 2 ring); 0 where it is not in the ring."""
    letter, digit, following = tokens[:, : 3 * ring].unflatten(1, (ring, 3)).unbind(2)
    nothing = torch.zeros(len(tokens), 2 * ring, dtype=torch.int64)
    return nothing.scatter(1, letter, following), nothing.scatter(1, letter, digit - 2 * ring)


@machine.in_eval_mode
def by_additions(model, tokens, ring, additions):
    """{additions: share of the sums that are right after so many, which take a loop more}."""
    device = next(model.parameters()).device
    follows, digit = tables(tokens, ring)
    letter = tokens[:, 3 * ring :]
    total, shares = torch.zeros_like(letter), {}
    for i, x in enumerate(model.run_loops(tokens.to(device), loops=1 + max(additions))):
        if i in additions:
            logits = F.linear(model.norm(x[:, 3 * ring :]), model.head_weight)
            shares[i] = (logits.argmax(-1).cpu() % 10 == total).float().mean().item()
        total = (total + digit.gather(1, letter)) % 10
        letter = follows.gather(1, letter)
    return shares


def measured(model, tokens, ring, trained, beyond=()):
    """What accuracy() gives, of the first RINGS_TESTED sequences."""
    to_measure = [*range(1, trained + 1), *beyond]
    shares = by_additions(model, tokens[:RINGS_TESTED], ring, to_measure)
    mean = sum(shares[i] for i in range(1, trained + 1)) / trained
    named = {str(i): dict(accuracy=share) for i, share in shares.items()}
    return dict(accuracy=mean, accuracy_by=dict(additions=named))


TASK = Sums()
