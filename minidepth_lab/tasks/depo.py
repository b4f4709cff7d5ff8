"""Depo: the k-th name after a given one, round a cycle of names in mixed order."""

import math

import torch
import torch.nn.functional as F

from minidepth_lab.tasks import Task, distinct, predicted


class Depo(Task):
    """Mental depth (Allen-Zhu 2025, "Physics of Language Models: Part 4.1", whose format this has):
    the edges x y of one directed cycle through all names, in mixed order, then questions: a number
    of hops k, a name, and the name that comes k edges later. A name is `name` words long, no name
    is there twice in a sequence, and cycles are drawn anew. An answer counts if all its words are
    right.

    No prediction for the number of layers. One layer cannot join an edge to the one before it, so
    with k = 1 alone two are expected, as for icqa.
    """

    settings = dict(steps=2000, eval_every=100, block_size=192)

    def draw(self, batch, generator, test=False, nodes=8, hops=(1, 2, 4), name=1, words=48):
        """tokens and targets (batch, T): 2 nodes names, then nodes times a number and two names,
        but for the last word."""
        if name > 3 or words**name > 10**6:
            most = f"name {name} with {words} words makes more names than a million"
            raise ValueError(f"{most}; give at most 3, or fewer words")
        if nodes < 2:
            raise ValueError(f"nodes {nodes} make no cycle; give at least 2")
        number = distinct(batch, words**name, nodes, generator, "names")  # round the cycle
        parts = [number // words**place % words for place in range(name)]
        names = torch.stack(parts, -1)  # (B, nodes, name)
        edges = torch.cat((names, names.roll(-1, 1)), 2)  # x y
        order = distinct(batch, nodes, nodes, generator, "edges")
        edges = edges.gather(1, order[..., None].expand_as(edges)).flatten(1)
        start = distinct(batch, nodes, nodes, generator, "questions")
        k = torch.tensor(hops)[torch.randint(len(hops), start.shape, generator=generator)]
        asked = names.gather(1, start[..., None].expand(-1, -1, name))
        answer = names.gather(1, ((start + k) % nodes)[..., None].expand(-1, -1, name))
        questions = torch.cat((words + k[..., None], asked, answer), 2).flatten(1)
        tokens = torch.cat((edges, questions), 1)
        counted = torch.zeros(nodes, 1 + 2 * name, dtype=torch.bool)
        counted[:, 1 + name :] = True
        counted = F.pad(counted.flatten(), (edges.size(1), 0))
        targets = tokens.masked_fill(~counted, -100)
        return tokens[:, :-1], targets[:, 1:]

    def guess(self, nodes, **_):
        """Any of the names."""
        return 1 / nodes

    def shortcut(self, nodes, hops, **_):
        """A name that is left: of as many hops each has been the answer once, and none is its own;
        that one where the cycle has come round. A mean over hops and questions."""

        def known(before):  # with so many earlier answers to as many hops
            own = before / (nodes - 1)  # how likely it is that the name asked about is one
            return (1 - own) / max(1, nodes - 1 - before) + own / (nodes - before)

        share, left = 1 / len(hops), 0.0
        for n in range(nodes):
            for k in range(n + 1):
                likely = math.comb(n, k) * share**k * (1 - share) ** (n - k)
                left += likely * known(k) / nodes
        return sum(left if hop % nodes else 1.0 for hop in hops) / len(hops)

    def map_tokens(self, nodes, name, **_):
        """The edges, which a looped model may read once."""
        return 2 * nodes * name

    def accuracy(self, model, tokens, targets, nodes, hops, name, words):
        """The share of answers of which all words are right, in all and by hops."""
        right = (predicted(model, tokens) == targets)[targets != -100]
        right = right.view(len(tokens), nodes, name).all(2)
        k = tokens[:, 2 * nodes * name :: 1 + 2 * name] - words  # (B, nodes)
        by_hops = {}
        for hop in hops:
            if (k == hop).any():
                by_hops[str(hop)] = dict(accuracy=right[k == hop].float().mean().item())
        return dict(accuracy=right.float().mean().item(), accuracy_by=dict(hops=by_hops))


TASK = Depo()
