"""A walk along a ring of letters, one hop a loop: how far one goes is how often one loops. What a
model trained to few hops does when it is looped on and on is in studies/walk.py."""

import contextlib

import torch
import torch.nn.functional as F

from minidepth_lab.base import machine
from minidepth_lab.tasks import Task, distinct, rings
from minidepth_lab.tasks.base.sizes import check_known

LOSS_AFTER = ("each", "last")
RINGS_TESTED = 200  # of the test split, whose every letter is asked
QUESTIONS_TESTED = 12_800  # at most: of longer rings than 64 fewer are tested
FAR = (31, 100, 1000)  # hops beyond once round that are tested at the end
EACH_TOLD = 64  # of a longer ring's hops not each one is told from here on


class Walk(Task):
    """A ring of letters as pairs in mixed order, a b for "b follows a"; then each of its letters is
    asked. A question is this letter alone: no number of hops stands in the sequence. After loop
    i + 1 the answer is the letter i hops on; the first loop, in which a pair can learn which letter
    stands before its second one, has no target.

    The letters of a ring are drawn from twice as many, anew for each sequence. An eighth of all
    rings is held out for the test, by a rule on the ring itself: see
    held_out_rings().

    `hops` is what is trained to. `loss_after` says which loops have a loss: "each", or "last", the
    last of a number that is drawn for each sequence. The hops join one at a time: the next one when
    the loss of the newest is below `gate`. `far` is how many hops are walked at the last test.

    `hints` 1 gives the first loop a target too, while one hop alone is asked: at the second letter
    of each pair, the first one. Without that no run learned a ring of 48 or 64 letters.
    """

    reach = "hops"  # the size that says how far is trained

    def draw(
        self, batch, generator, test=False, ring=16, hops=8, loss_after="each", gate=0.5, far=1000,
        hints=0.0, *, asked=None,
    ):  # fmt: skip
        """tokens (batch, 3 ring) and targets (batch, 1 + asked, 3 ring), a loss after each loop.
        `asked`: the hops that are asked up to now, if not all. ValueError for sizes that cannot be:
        see check_sizes()."""
        check_sizes(ring, hops, loss_after)
        check_known("hints", hints, (0, 1))
        n = asked or hops
        lines = rings(batch, ring, generator, test)
        order = distinct(batch, ring, ring, generator, "pairs")
        pairs = torch.stack((lines.gather(1, order), lines.gather(1, (order + 1) % ring)), 2)
        start = distinct(batch, ring, ring, generator, "questions")
        tokens = torch.cat((pairs.flatten(1), lines.gather(1, start)), 1)
        answers = torch.stack([lines.gather(1, (start + i) % ring) for i in range(n + 1)], 1)
        loop = torch.arange(n + 1)
        if loss_after == "each":
            has_target = (loop > 0).expand(batch, -1)  # (batch, 1 + n)
        else:
            has_target = loop == torch.randint(1, n + 1, (batch, 1), generator=generator)
        answers = answers.where(has_target[:, :, None], -100)
        targets = F.pad(answers, (2 * ring, 0), value=-100)
        if hints and asked == 1:
            targets[:, 0, 1 : 2 * ring : 2] = pairs[..., 0]
        return tokens, targets

    # The hops join by the gate alone, never by time. So `done`, which rises with the steps from 0
    # to 1, opens the first hop, and ahead() says 1, 2, 3, … for a second, third, fourth one.

    def n_asked(self, done, sizes):
        """How many hops are asked: one more for each whole number that `done` has reached."""
        return min(sizes[self.reach], 1 + int(done))

    def train_batch(self, done, batch, generator, **sizes):
        asked = self.n_asked(done, self.sizes | sizes)
        return self.draw(batch, generator, asked=asked, **sizes)

    def ahead(self, loss, done, **sizes):
        sizes = self.sizes | sizes
        asked = self.n_asked(done, sizes)
        # a mean over the hint and all hops that are asked, each with as many targets: times their
        # number no less than the newest one's loss
        hinted = sizes.get("hints") and asked == 1
        learned = loss * (asked + bool(hinted)) < sizes["gate"]
        return float(asked) if learned else 0.0

    def guess(self, ring, **_):
        """Any other letter of the ring."""
        return 1 / (ring - 1)

    def shortcut(self, ring, **_):
        """A look at the letter's two neighbours, which are one hop and ring - 1 hops on; for other
        hops it and they are ruled out. Of 1 to ring - 1 hops on average."""
        others = (ring - 3) * (1 / (ring - 3))
        return (2 + others) / (ring - 1)

    def links(self, tokens, targets, ring, hops, **_):
        """The second letter of a pair looks at its first one (copy), and a question, hop by hop, at
        the second letter of the pair that begins with the letter it has come to."""
        pairs = tokens[:, : 2 * ring].unflatten(1, (ring, 2))
        second = torch.arange(1, 2 * ring, 2)
        nowhere = torch.zeros(*tokens.shape, tokens.size(1), dtype=torch.bool)
        copy = nowhere.clone()
        copy[:, second, second - 1] = True
        steps, letter = dict(copy=copy), tokens[:, 2 * ring :]
        for hop in range(1, hops + 1):
            begins = letter[:, :, None] == pairs[:, None, :, 0]  # (B, questions, pairs)
            steps[f"hop {hop}"] = nowhere.clone()
            steps[f"hop {hop}"][:, 2 * ring :, second] = begins
            letter = following(tokens, ring).gather(1, letter)
        return steps

    def accuracy(self, model, tokens, targets, ring, **_):
        """{"accuracy": share of questions that are right, the mean over 1 to ring - 1 hops,
        "accuracy_by": {"hops": {"1": {"accuracy": …}, …}}}"""
        return measured(model, tokens, ring, range(1, ring))

    def final_accuracy(self, model, tokens, targets, ring, far, **_):
        """accuracy(), with FAR hops and `far` among those of `accuracy_by`, beyond once round. Each
        has `pairs_kept` as well, if the model does not keep its first tokens by itself: the share
        that is right with pairs_kept() after as many loops as the model was trained with."""
        hops = [*range(1, ring), *(n for n in (*FAR, far) if ring <= n <= far)]
        result = measured(model, tokens, ring, hops)
        if not model.config.loop_keeps:
            with pairs_kept(model, 2 * ring, model.config.n_loops):
                kept = by_hops(model, tested(tokens, ring), ring, hops)
            for n, part in result["accuracy_by"]["hops"].items():
                part["pairs_kept"] = kept[int(n)]
        return result


def check_sizes(ring, hops, loss_after):
    """ValueError for a ring whose letters are all neighbours, for hops that lead once round it or
    further, and for an unknown choice of the loops that have a loss."""
    if ring < 4:
        raise ValueError(
            f"ring {ring} is too short: its letters are all neighbours; give 4 or more"
        )
    if hops >= ring:
        room = f"hops {hops} is too much: a ring of {ring} has room for {ring - 1}"
        raise ValueError(f"{room}; give less, or a longer ring with --sizes ring=N")
    check_known("loss_after", loss_after, LOSS_AFTER)


def following(tokens, ring):
    """Of tokens (B, 3 ring) the letter that follows each letter, (B, 2 ring); 0 where it is not in
    the ring."""
    follows = torch.zeros(len(tokens), 2 * ring, dtype=torch.int64)
    return follows.scatter(1, tokens[:, : 2 * ring : 2], tokens[:, 1 : 2 * ring : 2])


@contextlib.contextmanager
def changed_beyond(model, after, change):
    """Within it each loop beyond so many leaves change(what loop `after` left, what it would have
    left itself), both (B, T, C). For one pass over the loops."""
    loops, then = 0, None

    def changed(layer, given, x):
        nonlocal loops, then
        loops += 1
        if loops <= after:
            then = x
            return x
        return change(then, x)

    handle = model.blocks[-1].register_forward_hook(changed)
    try:
        yield
    finally:
        handle.remove()


def pairs_kept(model, places, after):
    """A context in which the first `places` of a sequence stay what they are after so many loops,
    however often the model is looped on: later loops move the rest alone. So one sees whether a
    walk is lost, or the pairs that it goes by. For one pass over the loops."""

    def keep(then, x):
        return torch.cat((then[:, :places], x[:, places:]), 1)

    return changed_beyond(model, after, keep)


def length_kept(model, places, after):
    """A context in which all but the first `places` of a sequence keep the length that their
    vectors have after so many loops: later loops turn them alone. For one pass over the loops."""

    def keep(then, x):
        before, now = then[:, places:], x[:, places:]
        turned = now / now.norm(dim=-1, keepdim=True) * before.norm(dim=-1, keepdim=True)
        return torch.cat((x[:, :places], turned), 1)

    return changed_beyond(model, after, keep)


@machine.in_eval_mode
def by_hops(model, tokens, ring, hops):
    """{hops: share of the questions of tokens (B, 3 ring) that are answered right after so many
    hops, which takes a loop more}."""
    device = next(model.parameters()).device
    follows, letter, shares = following(tokens, ring), tokens[:, 2 * ring :], {}
    after_each = model.run_loops(tokens.to(device), loops=1 + max(hops))
    for i, x in enumerate(after_each):
        if i in hops:
            logits = F.linear(model.norm(x[:, 2 * ring :]), model.head_weight)
            shares[i] = (logits.argmax(-1).cpu() == letter).float().mean().item()
        letter = follows.gather(1, letter)
    return shares


def tested(tokens, ring):
    """The first RINGS_TESTED of tokens (B, 3 ring), or as many as have QUESTIONS_TESTED letters."""
    return tokens[: min(RINGS_TESTED, max(1, QUESTIONS_TESTED // ring))]


def measured(model, tokens, ring, hops):
    """What accuracy() gives, of the sequences that are tested(). Of a longer ring than EACH_TOLD
    each doubling of the hops is told beyond it, FAR and once round."""
    shares = by_hops(model, tested(tokens, ring), ring, hops)
    once_round = [shares[i] for i in range(1, ring)]
    told = {}
    for i, share in shares.items():
        doubling = i & (i - 1) == 0  # a power of two
        if i <= EACH_TOLD or doubling or i in FAR or i >= ring - 1:
            told[str(i)] = dict(accuracy=share)
    return dict(accuracy=sum(once_round) / len(once_round), accuracy_by=dict(hops=told))


TASK = Walk()
