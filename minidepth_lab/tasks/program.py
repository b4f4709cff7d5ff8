"""A program along a ring: each letter has an operation, and a walk carries a state through those
that it passes. Permutations of five things do not commute, so the state has to be computed step by
step; adding modulo ten is the control. How far a model goes that was trained to few steps is in
studies/program.py."""

import functools
import itertools

import torch
import torch.nn.functional as F

from minidepth_lab.base import machine
from minidepth_lab.tasks import distinct, rings
from minidepth_lab.tasks.base.sizes import check_known
from minidepth_lab.tasks.walk import RINGS_TESTED, Walk, check_sizes

KINDS = {"permutations": 5, "additions": 10}  # {kind of operation: how many states there are}


class Program(Walk):
    """A ring of letters as triples in mixed order, a p b for "b follows a, whose operation is p";
    then each of its letters is asked. Each question begins in state 0. After loop i + 1 the answer
    is the letter i hops on together with the state after the operations of the i letters that were
    left: one word, states × letter + state. Only the state counts in the accuracy.

    With `kind` "permutations" an operation is a permutation of five things, and the state is where
    the first thing has come to. `n_ops` different ones are used, ten of the 120 by default, which
    make up all 120 between them. Permutations of five things are the smallest
    symmetric group that is not solvable: no constant number of layers follows any number of them,
    unless TC0 = NC1 (Barrington 1989; Merrill & Sabharwal 2023, arXiv 2207.00729). With
    "additions" an operation adds a digit, modulo ten, as in the task `sums`.

    `hints` 1 gives the first loop a target too, while one step alone is asked: at the last letter
    of each triple, its first letter and what its operation makes of the state 0.

    Letters are drawn as for `walk`, and the same rings are held out. Letters are words below
    2 ring, operation p is 2 ring + p. `hops` is what is trained to; they join one at a time, as
    the hops of `walk` do. What is tested at the end is once round and 2 ring + 3.
    """

    reach = "hops"

    def draw(
        self, batch, generator, test=False, ring=16, hops=8, kind="permutations", gate=0.5,
        hints=0, n_ops=10, *, asked=None,
    ):  # fmt: skip
        """tokens (batch, 4 ring) and targets (batch, 1 + asked, 4 ring), a loss after each loop.
        `asked`: the steps that are asked up to now, if not all. ValueError for sizes that cannot
        be."""
        check_sizes(ring, 1, "each")
        check_known("kind", kind, KINDS)
        n, table = asked or hops, operations(kind, n_ops)
        lines = rings(batch, ring, generator, test)
        operation = torch.randint(len(table), (batch, ring), generator=generator)
        order = distinct(batch, ring, ring, generator, "triples")
        letter, following = lines.gather(1, order), lines.gather(1, (order + 1) % ring)
        triples = torch.stack((letter, 2 * ring + operation.gather(1, order), following), 2)
        start = distinct(batch, ring, ring, generator, "questions")
        tokens = torch.cat((triples.flatten(1), lines.gather(1, start)), 1)
        answers = [torch.full_like(start, -100)]  # the first loop has no target
        state = torch.zeros_like(start)
        for i in range(n):
            state = table[operation.gather(1, (start + i) % ring), state]
            answers.append(KINDS[kind] * lines.gather(1, (start + i + 1) % ring) + state)
        targets = F.pad(torch.stack(answers, 1), (3 * ring, 0), value=-100)
        if hints and asked == 1:
            after_one = table[operation.gather(1, order), 0]
            targets[:, 0, 2 : 3 * ring : 3] = KINDS[kind] * letter + after_one
        return tokens, targets

    def guess(self, kind, **_):
        """Any state."""
        return 1 / KINDS[kind]

    def shortcut(self, ring, hops, kind, **_):
        """A look at the letter's own operation, which is one step; other numbers of steps are
        guessed. Additions of whole rounds have the same sum from every letter and need no order;
        with a look at a neighbour, one more or less is known as well. Of 1 to `hops` on average."""
        known = 1
        if kind == "additions":
            known = sum(i % ring in (0, 1, ring - 1) for i in range(1, hops + 1))
        return (known + (hops - known) / KINDS[kind]) / hops

    def links(self, tokens, targets, ring, hops, **_):
        """The last letter of a triple looks at its first one and at its operation (copy), and a
        question, hop by hop, at the last letter of the triple that begins with the letter it has
        come to."""
        triples = tokens[:, : 3 * ring].unflatten(1, (ring, 3))
        last = torch.arange(2, 3 * ring, 3)
        nowhere = torch.zeros(*tokens.shape, tokens.size(1), dtype=torch.bool)
        found = {}
        for name, back in (("copy", 2), ("copy operation", 1)):
            found[name] = nowhere.clone()
            found[name][:, last, last - back] = True
        letter, (follows, _) = tokens[:, 3 * ring :], tables(tokens, ring)
        for hop in range(1, hops + 1):
            begins = letter[:, :, None] == triples[:, None, :, 0]  # (B, questions, triples)
            found[f"hop {hop}"] = nowhere.clone()
            found[f"hop {hop}"][:, 3 * ring :, last] = begins
            letter = follows.gather(1, letter)
        return found

    def accuracy(self, model, tokens, targets, ring, hops, kind, n_ops, **_):
        """{"accuracy": share of states that are right, the mean over 1 to `hops`, "accuracy_by":
        {"hops": {"1": {"accuracy": …}, …}}}, with once round, ring - 1, beside them."""
        return measured(model, tokens, ring, (kind, n_ops), hops, [ring - 1])

    def final_accuracy(self, model, tokens, targets, ring, hops, kind, n_ops, **_):
        """accuracy(), with 2 ring + 3 among those of `accuracy_by`."""
        return measured(model, tokens, ring, (kind, n_ops), hops, [ring - 1, 2 * ring + 3])


@functools.cache
def operations(kind, n_ops=10):
    """What each operation makes of each state: (operations, states) int64. Of permutations `n_ops`
    that were drawn once and for all, without the one that moves nothing."""
    n = KINDS[kind]
    if kind == "additions":
        return (torch.arange(n)[:, None] + torch.arange(n)) % n
    every = torch.tensor(list(itertools.permutations(range(n))))
    chosen = torch.randperm(len(every) - 1, generator=torch.Generator().manual_seed(5))
    return every[1 + chosen[:n_ops]]


def tables(tokens, ring):
    """Of tokens (B, 4 ring) the letter that follows each letter, and the operation of each letter,
    both (B, 2 ring); 0 where it is not in the ring."""
    letter, operation, following = tokens[:, : 3 * ring].unflatten(1, (ring, 3)).unbind(2)
    nothing = torch.zeros(len(tokens), 2 * ring, dtype=torch.int64)
    operation = nothing.scatter(1, letter, operation - 2 * ring)
    return nothing.scatter(1, letter, following), operation


def states(tokens, ring, kind, most):
    """Yield (letter, state), each (B, ring), of every question after 0, 1, … `most` steps."""
    (follows, operation), table = tables(tokens, ring), operations(*kind)
    letter = tokens[:, 3 * ring :]
    state = torch.zeros_like(letter)
    yield letter, state
    for _ in range(most):
        state = table[operation.gather(1, letter), state]
        letter = follows.gather(1, letter)
        yield letter, state


@machine.in_eval_mode
def by_steps(model, tokens, ring, kind, steps):
    """{steps: share of the states that are right after so many, which take a loop more}."""
    device, shares = next(model.parameters()).device, {}
    loops = model.run_loops(tokens.to(device), loops=1 + max(steps))
    for i, (x, (_, state)) in enumerate(zip(loops, states(tokens, ring, kind, max(steps)))):
        if i in steps:
            logits = F.linear(model.norm(x[:, 3 * ring :]), model.head_weight)
            said = logits.argmax(-1).cpu() % KINDS[kind[0]]
            shares[i] = (said == state).float().mean().item()
    return shares


def measured(model, tokens, ring, kind, trained, beyond=(), name="hops"):
    """What accuracy() gives, of the first RINGS_TESTED sequences; steps have that `name`."""
    to_measure = [*range(1, trained + 1), *beyond]
    shares = by_steps(model, tokens[:RINGS_TESTED], ring, kind, to_measure)
    mean = sum(shares[i] for i in range(1, trained + 1)) / trained
    named = {str(i): dict(accuracy=share) for i, share in shares.items()}
    return dict(accuracy=mean, accuracy_by={name: named})


TASK = Program()
