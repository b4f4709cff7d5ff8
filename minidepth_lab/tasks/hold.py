"""A walk along a ring whose question names its hops: the answer has to be held from then on,
however often one loops. Whoever loops until it is right needs that. See studies/hold.py."""

import torch
import torch.nn.functional as F

from minidepth_lab.base import machine
from minidepth_lab.tasks import distinct, rings
from minidepth_lab.tasks.walk import RINGS_TESTED, Walk, check_sizes, following

FAR = (24, 31, 50, 100)  # loops beyond those of training that are tested at the end


class Hold(Walk):
    """A ring as in `walk`; then each of its letters is asked with a number of hops before it, drawn
    evenly from 1 to `hops`. After loop i + 1 the answer is the letter i hops on as long as that is
    not beyond the number, and then the letter so many hops on, for ever.

    Training draws for each step how many loops there are, from as many as the longest question
    needs to `loops`, with a loss after each but the first, or after the last `taught` of them; the
    test has `loops`. The hops join one at a time, by the gate of `walk`, which is wider here: the
    newest hop has a smaller part of the loss it goes by. The number k is the word
    2 ring + k. `far` is how many loops are made at the last test.
    """

    def draw(
        self, batch, generator, test=False, ring=8, hops=4, loops=16, gate=0.5, far=100,
        taught=0, *, asked=None, looped=None,
    ):  # fmt: skip
        """tokens (batch, 4 ring) and targets (batch, looped, 4 ring), a loss after each loop.
        `asked`: the most hops that are asked up to now, `looped`: how many loops, if not `loops`.
        ValueError for sizes that cannot be."""
        check_sizes(ring, hops, "each")
        if loops <= hops:
            few = f"loops {loops} is too few: {hops} hops take {hops + 1}"
            raise ValueError(f"{few}; give more with --sizes loops=N, or fewer hops")
        lines = rings(batch, ring, generator, test)
        order = distinct(batch, ring, ring, generator, "pairs")
        pairs = torch.stack((lines.gather(1, order), lines.gather(1, (order + 1) % ring)), 2)
        start = distinct(batch, ring, ring, generator, "questions")
        k = torch.randint(1, (asked or hops) + 1, start.shape, generator=generator)
        questions = torch.stack((2 * ring + k, lines.gather(1, start)), 2)
        tokens = torch.cat((pairs.flatten(1), questions.flatten(1)), 1)
        answers = [torch.full_like(start, -100)]  # the first loop has no target
        for i in range(1, looped or loops):
            answers.append(lines.gather(1, (start + k.clamp(max=i)) % ring))
        at_letters = torch.stack(answers, 1)[..., None]  # (batch, looped, ring, 1)
        if taught:
            at_letters[:, :-taught] = -100
        at_questions = F.pad(at_letters, (1, 0), value=-100).flatten(2)
        return tokens, F.pad(at_questions, (2 * ring, 0), value=-100)

    def train_batch(self, done, batch, generator, **sizes):
        sizes = self.sizes | sizes
        how_many = (sizes["hops"] + 1, sizes["loops"] + 1)
        looped = int(torch.randint(*how_many, (1,), generator=generator))
        asked = self.n_asked(done, sizes)
        return self.draw(batch, generator, asked=asked, looped=looped, **sizes)

    def shortcut(self, ring, hops, **_):
        """A look at the letter's two neighbours, which are one hop and ring - 1 hops on; for other
        hops it and they are ruled out. Of 1 to `hops` on average."""
        shares = (1 if k % ring in (0, 1, ring - 1) else 1 / (ring - 3) for k in range(1, hops + 1))
        return sum(shares) / hops

    def links(self, tokens, targets, ring, hops, **_):
        """The second letter of a pair looks at its first one (copy), a question's letter at its
        number, and, hop by hop, at the second letter of the pair that begins with the letter it has
        come to."""
        pairs = tokens[:, : 2 * ring].unflatten(1, (ring, 2))
        second, letters = torch.arange(1, 2 * ring, 2), torch.arange(2 * ring + 1, 4 * ring, 2)
        nowhere = torch.zeros(*tokens.shape, tokens.size(1), dtype=torch.bool)
        steps = {}
        for name, at in (("copy", second), ("number", letters)):
            steps[name] = nowhere.clone()
            steps[name][:, at, at - 1] = True
        k, letter = asked_of(tokens, ring)
        for hop in range(1, hops + 1):
            begins = letter[:, :, None] == pairs[:, None, :, 0]  # (B, questions, pairs)
            begins &= (k >= hop)[:, :, None]
            steps[f"hop {hop}"] = nowhere.clone()
            steps[f"hop {hop}"][:, letters[:, None], second] = begins
            letter = following(tokens, ring).gather(1, letter)
        return steps

    def accuracy(self, model, tokens, targets, ring, hops, loops, **_):
        """{"accuracy": share of questions that are right after `loops` loops, "accuracy_by":
        {"loops": {"5": {"accuracy": …}, …}}}, from as many as the longest question needs."""
        return measured(model, tokens, ring, loops, range(hops + 1, loops + 1))

    def final_accuracy(self, model, tokens, targets, ring, hops, loops, far, **_):
        """accuracy(), with FAR loops and `far` among those of `accuracy_by`."""
        beyond = [n for n in (*FAR, far) if loops < n <= far]
        return measured(model, tokens, ring, loops, [*range(hops + 1, loops + 1), *beyond])


def asked_of(tokens, ring):
    """Of tokens (B, 4 ring) the number of hops and the letter of each question, each (B, ring)."""
    number, letter = tokens[:, 2 * ring :].unflatten(1, (ring, 2)).unbind(2)
    return number - 2 * ring, letter


@machine.in_eval_mode
def by_loops(model, tokens, ring, loops):
    """{loops: share of the questions of tokens (B, 4 ring) that are right after so many}."""
    device = next(model.parameters()).device
    follows = following(tokens, ring)
    k, answer = asked_of(tokens, ring)
    for hop in range(1, int(k.max()) + 1):
        answer = torch.where(k >= hop, follows.gather(1, answer), answer)
    shares = {}
    for i, x in enumerate(model.run_loops(tokens.to(device), loops=max(loops)), 1):
        if i in loops:
            logits = F.linear(model.norm(x[:, 2 * ring + 1 :: 2]), model.head_weight)
            shares[i] = (logits.argmax(-1).cpu() == answer).float().mean().item()
    return shares


def measured(model, tokens, ring, trained, loops):
    """What accuracy() gives, of the first RINGS_TESTED sequences."""
    shares = by_loops(model, tokens[:RINGS_TESTED], ring, loops)
    named = {str(i): dict(accuracy=share) for i, share in shares.items()}
    return dict(accuracy=shares[trained], accuracy_by=dict(loops=named))


TASK = Hold()
