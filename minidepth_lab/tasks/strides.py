"""Tokens against loops: write every m-th letter along a ring. From each written letter the model
makes `stride` hops at once, so a long way takes fewer letters. How many loops that needs is in
studies/strides.py."""

import torch
import torch.nn.functional as F

from minidepth_lab.base import machine
from minidepth_lab.tasks import distinct, rings
from minidepth_lab.tasks.walk import RINGS_TESTED, Walk, check_sizes


class Strides(Walk):
    """A ring as in `walk`; then its letters again, as a model writes them that makes `stride` hops
    at a time: each of `stride` chains has every stride-th letter, and together they have each
    letter once. So no answer can be looked up but a chain's last one, the letter that it began
    with. At each letter the target after the last of `loops` loops is the letter `stride` hops on;
    after the loop i + 1 before it the one i hops on, or `stride`, if that is less.

    Loops join when those before are learned, by the gate of `walk`: at first there are two, then
    four, then one more each time.
    """

    reach = "loops"

    def draw(
        self, batch, generator, test=False, ring=12, stride=2, loops=3, gate=0.5, *, asked=None
    ):
        """tokens (batch, 3 ring) and targets (batch, loops, 3 ring), a loss after each loop.
        `asked`: the loops that there are up to now, if not all. ValueError for sizes that cannot
        be."""
        check_sizes(ring, stride, "each")
        if ring % stride:
            raise ValueError(
                f"stride {stride} does not divide a ring of {ring}; give one that does"
            )
        lines = rings(batch, ring, generator, test)
        order = distinct(batch, ring, ring, generator, "pairs")
        pairs = torch.stack((lines.gather(1, order), lines.gather(1, (order + 1) % ring)), 2)
        # the chains in mixed order, each from a letter of its own on
        first = distinct(batch, stride, stride, generator, "chains")
        length = ring // stride
        begin = torch.randint(length, (batch, stride), generator=generator)
        step = begin[:, :, None] + torch.arange(length)
        at = (first[:, :, None] + stride * step).flatten(1) % ring  # (batch, ring)
        tokens = torch.cat((pairs.flatten(1), lines.gather(1, at)), 1)
        answers = []
        for i in range(asked or loops):
            hops = stride if i + 1 == loops else min(i, stride)
            answer = lines.gather(1, (at + hops) % ring)
            answers.append(answer if hops else torch.full_like(answer, -100))
        return tokens, F.pad(torch.stack(answers, 1), (2 * ring, 0), value=-100)

    def n_asked(self, done, sizes):
        """How many loops there are: at first two, of which one has a target, then one more for each
        whole number that `done` has reached."""
        return min(sizes["loops"], 2 + int(done))

    def guess(self, ring, **_):
        """Any other letter of the ring."""
        return 1 / (ring - 1)

    def shortcut(self, ring, stride, **_):
        """A look at the letter's neighbour, which is right for a stride of one; else a look at
        where its chain began, which is right for the last letter of each, and for the others any
        letter that is not yet written."""
        if stride == 1:
            return 1.0
        length = ring // stride
        left = [1 / (ring - 1 - place) for place in range(ring) if (place + 1) % length]
        return (stride + sum(left)) / ring

    def links(self, tokens, targets, ring, stride, **_):
        """Those of `walk`, for as many hops as a stride has."""
        return super().links(tokens, targets, ring, hops=stride)

    def accuracy(self, model, tokens, targets, ring, loops, **_):
        """{"accuracy": share of the letters written after true ones that are right}."""
        some, wanted = tokens[:RINGS_TESTED], targets[:RINGS_TESTED, -1, 2 * ring :]
        said = written(model, some, loops)[:, 2 * ring :]
        return dict(accuracy=(said == wanted).float().mean().item())

    def final_accuracy(self, model, tokens, targets, ring, stride, loops, **sizes):
        """accuracy(), and as `own` the share that is right where the model reads what it wrote
        itself, from the first letter of each chain on."""
        measured = self.accuracy(model, tokens, targets, ring=ring, loops=loops)
        some, wanted = tokens[:RINGS_TESTED].clone(), targets[:RINGS_TESTED, -1, 2 * ring :]
        letters = some[:, 2 * ring :]  # a view: what is written is read
        for place in range(ring):  # one letter after another, chain after chain
            said = written(model, some, loops)[:, 2 * ring :]
            if (place + 1) % (ring // stride):  # the next one is not given
                letters[:, place + 1] = said[:, place]
        return measured | dict(own=(said == wanted).float().mean().item())


@machine.in_eval_mode
def written(model, tokens, loops):
    """The likeliest next letter at each place after so many loops: (B, T) int64."""
    device = next(model.parameters()).device
    return model(tokens.to(device), loops=loops).argmax(-1).cpu()


TASK = Strides()
