"""The ring's questions with places to write in, in seven ways that differ in what stands at these
places and in which of them have a target. What each way is for is in studies/written.py."""

import statistics

import torch

from minidepth_lab.tasks import Task, predicted
from minidepth_lab.tasks.base.sizes import check_known
from minidepth_lab.tasks.ring import Ring

WAYS = ("direct", "filler", "random", "hidden", "given", "backwards", "written")
ONLY_ANSWER = ("direct", "filler", "random", "given")  # ways without a target on the way


class Written(Ring):
    """The rings and questions of the task `ring`, all with as many places to write in, answered in
    one of WAYS. A question counts as right if every target of it is, with what the way shows
    before each place, in this question and in those before it.

    `accuracy_by` has for the ways `given`, `backwards` and `written` also `own`: the share of
    answers that are right where the model writes the steps of all questions itself.
    """

    settings = Ring.settings | dict(block_size=208)
    links = Task.links

    def draw(
        self, batch, generator, test=None, letters=16, ring=8, questions=48, lengths=(1, 2, 3),
        way="written", early=0.3, *, opened=None,
    ):  # fmt: skip
        """tokens and targets (batch, 2 ring + questions × (1 + the longest length)). ValueError as
        for `ring`, and for an unknown way."""
        check_known("way", way, WAYS)
        known = letters, ring, questions, lengths, "written"
        tokens, targets = super().draw(batch, generator, test, *known, opened=opened)
        asked = tokens[:, 2 * ring :].unflatten(1, (questions, -1))  # a view, as the next one
        wanted = targets[:, 2 * ring :].unflatten(1, (questions, -1))  # of place 1: the first step
        k = asked[..., :1] - letters  # (batch, questions, 1)
        place = torch.arange(asked.size(2))
        on_the_way = (place > 1) & (place <= k)
        answer = wanted.gather(2, k)
        if way == "backwards":
            # step j stands at place j + 1; backwards it stands where step k - j would
            mirrored = (k - place + 1).clamp(0, max(lengths))
            steps = torch.where(on_the_way, wanted.gather(2, mirrored), asked)
            wanted[..., 1:-1] = torch.where(place[1:-1] < k, steps[..., 2:], wanted[..., 1:-1])
            asked.copy_(steps)
        if way in ("direct", "filler", "hidden"):
            asked[..., 2:] = letters
        if way == "random":
            drawn = torch.randint(ring, asked.shape, generator=generator).flatten(1)
            drawn = tokens[:, : 2 * ring : 2].gather(1, drawn).view(asked.shape)
            asked.copy_(torch.where(on_the_way, drawn, asked))
        if way in ONLY_ANSWER:
            wanted.fill_(-100)
            wanted.scatter_(2, torch.ones_like(k) if way == "direct" else k, answer)
        return tokens, targets

    def guess(self, ring, lengths, way, **_):
        """Any other letter of the ring, not one that the true steps have shown. Of several targets
        each is guessed."""
        if way in ("backwards", "written"):
            return super().guess(ring, lengths, "written")
        if way == "hidden":
            return statistics.mean((ring - 1) ** -k for k in lengths)
        shown = {k: k - 1 if way == "given" else 0 for k in lengths}
        return statistics.mean(1 / (ring - 1 - shown[k]) for k in lengths)

    def shortcut(self, ring, lengths, way, **_):
        """As answered directly, where nothing on the way can be read; else unknown."""
        if way in ("direct", "filler", "random"):
            return super().shortcut(ring, lengths, "direct")

    def accuracy(self, model, tokens, targets, letters, ring, questions, lengths, way, **_):
        sizes = dict(letters=letters, ring=ring, questions=questions)
        measured = super().accuracy(model, tokens, targets, lengths=lengths, way=way, **sizes)
        if way in ("given", "backwards", "written"):
            for length, share in own_steps(model, tokens, targets, lengths, **sizes).items():
                measured["accuracy_by"]["lengths"][str(length)]["own"] = share
        return measured


def own_steps(model, tokens, targets, lengths, letters, ring, questions):
    """{length: share of answers that are right} where the model writes the steps itself, greedily.

    All places are written at once, again and again, until nothing changes. A place depends only on
    those before it, so each round settles at least one more, and what is left is what the model
    would have written one after another.
    """
    tokens = tokens.clone()
    asked = tokens[:, 2 * ring :].unflatten(1, (questions, -1))  # a view: what is written is read
    k = asked[..., :1] - letters
    place = torch.arange(1, max(lengths))
    while True:
        said = predicted(model, tokens)[:, 2 * ring :].unflatten(1, (questions, -1))
        steps = torch.where(place < k, said[..., 1:-1], letters)
        if torch.equal(steps, asked[..., 2:]):
            break
        asked[..., 2:] = steps
    wanted = targets[:, 2 * ring :].unflatten(1, (questions, -1))
    right = (said.gather(2, k) == wanted.gather(2, k)).float()
    return {length: right[k == length].mean().item() for length in lengths}


TASK = Written()
