"""Steps along a ring of letters: which letter comes k steps after another, answered at once or with
the steps written. What attention can do of it is in studies/ring.py."""

import math
import statistics

import torch
import torch.nn.functional as F

from minidepth_lab.tasks import Task, answer_before, distinct, predicted, rings
from minidepth_lab.tasks.base.sizes import check_known

ANSWERS = ("direct", "written")


LEARNED = 0.9  # accuracy from which a length counts as learned


def layers_that_suffice(k, answer="direct"):
    """The layers with which k hops can be done as far as is known, at the width of these runs."""
    return 2 if answer == "written" else 2 + math.ceil(math.log2(k))


class Ring(Task):
    """A ring of letters as pairs in mixed order, a b for "b follows a", then questions: a number k
    and a letter, at which the one k steps on is asked. (The other way round a question would first
    have to copy its letter, which takes a layer of its own.) The ring is drawn anew for
    each sequence, of 65 million by default, of which an eighth is held out for the test; letters
    and lengths of questions are drawn evenly and may come again. Answered directly, a question is
    these two tokens and no answer stands in the sequence: an answered question would be a lookup
    for a later one. Written, the letters on the way follow, and each is the target of the token
    before it; the places that a shorter question leaves over hold a blank. A question counts as
    right if all its letters are.

    A letter is its number below `letters`, k is letters + k, the blank is `letters`. Lengths reach
    half way round, for beyond that the other way is shorter; written, all the way.

    `early` is the share of training, from its start, in which the lengths join one by one, the
    shortest first; the next joins sooner if the loss, times how many are asked, is below `gate`.
    """

    settings = dict(steps=1200, eval_every=100)

    def draw(
        self, batch, generator, test=None, letters=16, ring=8, questions=56, lengths=(1, 2),
        answer="direct", early=0.3, gate=0.0, *, opened=None,
    ):  # fmt: skip
        """tokens and targets (batch, 2 ring + questions × width), where width is 2, or written
        1 + the longest length. `test`: of the rings that are held out, or of the others; None: of
        all, as the stored runs of before 26 November 2026 were trained. `opened`: the lengths to
        draw from, if not all. ValueError for lengths that the ring has no room for, or an unknown
        way of answering."""
        check_lengths(ring, lengths, answer)
        if test is None:
            line = distinct(batch, letters, ring, generator, "letters")  # in the ring's order
        else:
            line = rings(batch, ring, generator, test, letters)
        order = distinct(batch, ring, ring, generator, "pairs")
        pairs = torch.stack((line.gather(1, order), line.gather(1, (order + 1) % ring)), 2)
        start = torch.randint(ring, (batch, questions), generator=generator)
        lengths_open = torch.tensor(opened or lengths)
        which = torch.randint(len(lengths_open), (batch, questions), generator=generator)
        k = lengths_open[which][..., None]  # (B, questions, 1)
        step = torch.arange(max(lengths) + 1)
        at = (start[..., None] + step) % ring
        path = line.gather(1, at.flatten(1)).view(at.shape)  # the letter 0, 1, 2, … steps on
        if answer == "direct":
            asked = torch.cat((letters + k, path[..., :1]), 2)
            targets = F.pad(path.gather(2, k), (1, 0), value=-100)
        else:
            on_the_way = path[..., 1:-1].where(step[1:-1] < k, letters)
            asked = torch.cat((letters + k, path[..., :1], on_the_way), 2)
            wanted = path[..., 1:].where(step[1:] <= k, -100)
            targets = F.pad(wanted, (1, 0), value=-100)
        tokens = torch.cat((pairs.flatten(1), asked.flatten(1)), 1)
        return tokens, F.pad(targets.flatten(1), (2 * ring, 0), value=-100)

    def n_asked(self, done, lengths=(1, 2), early=0.3, **_):
        """How many of the lengths are asked when the share `done` of training is behind it."""
        n = len(lengths)
        return n if done >= early else max(1, math.ceil((n - 1) * done / early))

    def train_batch(self, done, batch, generator, **sizes):
        opened = sorted(sizes.get("lengths", (1, 2)))[: self.n_asked(done, **sizes)]
        return self.draw(batch, generator, test=False, opened=opened, **sizes)

    def ahead(self, loss, done, lengths=(1, 2), early=0.3, gate=0.0, **_):
        asked = self.n_asked(done, lengths, early)
        if asked == len(lengths) or loss * asked >= gate:
            return 0.0
        return early * asked / (len(lengths) - 1) + 1e-9  # just after the next one joins

    def guess(self, ring, lengths, answer, **_):
        """Any other letter of the ring; of written steps each one that is not there yet."""
        if answer == "direct":
            return 1 / (ring - 1)
        return statistics.mean(1 / math.perm(ring - 1, k) for k in lengths)

    def shortcut(self, ring, lengths, answer, **_):
        """A look at the letter's neighbours, and none from there: one step is known, and one less
        than the ring has; for other steps the letter and its neighbours are ruled out. Unknown for
        written steps."""
        if answer == "direct":
            near = (1, ring - 1)
            return statistics.mean(1.0 if k in near else 1 / (ring - 3) for k in lengths)

    def links(self, tokens, targets, letters, ring, lengths, answer, **_):
        """The second letter of a pair and a question's letter copy the token before (copy).
        Written, each letter is found in the pair of the one before (match). Directly, a question
        finds the letters on its way in their pairs (step 1, step 2, …), or, for four steps and
        more, an earlier question about the letter half way (half)."""
        place = torch.arange(tokens.size(1))
        second = (place < 2 * ring) & (place % 2 == 1)
        k = tokens.roll(1, 1) - letters  # above 0 where a question asks
        asks = k > 0
        copy = (second | asks)[:, :, None] & (place == place[:, None] - 1)
        if answer == "written":
            return dict(copy=copy, match=answer_before(tokens, targets) & second)
        follows = torch.zeros(len(tokens), letters, dtype=torch.int64)
        follows.scatter_(1, tokens[:, : 2 * ring : 2], tokens[:, 1 : 2 * ring : 2])
        steps, at = dict(copy=copy), tokens.where(asks, 0)
        half = torch.zeros_like(copy)
        for step in range(1, max(lengths) + 1):
            at = follows.gather(1, at)
            same = at[:, :, None] == tokens[:, None]
            steps[f"step {step}"] = same & second & (asks & (k >= step))[:, :, None]
            if step > 1:
                half |= same & asks[:, None] & (asks & (k == 2 * step))[:, :, None]
        if max(lengths) > 3:
            steps["half"] = half.tril(-1)
        return steps

    def accuracy(self, model, tokens, targets, letters, ring, questions, **sizes):
        """{"accuracy": share of questions whose letters are all right, "accuracy_by": {"lengths":
        {"1": {"accuracy", "guess", "shortcut"}, …}}}"""
        good = (predicted(model, tokens) == targets) | (targets == -100)
        right = good[:, 2 * ring :].unflatten(1, (questions, -1)).all(2).float()
        asked = tokens[:, 2 * ring :].unflatten(1, (questions, -1))
        k = asked[..., 0] - letters
        by_length = {}
        for length in sizes["lengths"]:
            alone = sizes | dict(lengths=(length,))
            of_length = dict(accuracy=right[k == length].mean().item())
            for name, share in zip(("guess", "shortcut"), self.chance(ring=ring, **alone)):
                if share is not None:
                    of_length[name] = share
            by_length[str(length)] = of_length
        return dict(accuracy=right.mean().item(), accuracy_by=dict(lengths=by_length))

    # lengths.png of a grid: the error by length and layers
    by_layers = dict(label="lengths", title="error (share of questions)", shortcut="one look")


def check_lengths(ring, lengths, answer):
    """ValueError for lengths that a ring has no room for, or an unknown way of answering."""
    check_known("answer", answer, ANSWERS)
    room = ring // 2 if answer == "direct" else ring - 1
    if room < 1:
        raise ValueError(f"ring {ring} is too short: no letter is a step on; give at least 2")
    if max(lengths) > room:
        advice = "give less, or a longer ring with --sizes ring=N"
        most = f"answered {answer}, a ring of {ring} has room for {room}"
        raise ValueError(f"lengths {max(lengths)} is too much: {most}; {advice}")


TASK = Ring()
