"""k-hop induction: one hop more for each look."""

import functools
import statistics

import torch
import torch.nn.functional as F

import minidepth as md
from minidepth_lab.tasks import Task, predicted


def find1(x, symbols):
    """For symbols x (B, T) and places i = 1 … T: max({0} ∪ {j ≤ i: x[j-1] = x[i]}), where the
    symbol that followed the last x[i] stands; (B, T + 1), with 0 at place 0."""
    before = F.pad(x[:, :-1], (1, 0), value=-1)  # x[j-1] at j
    places = torch.arange(1, x.size(1) + 1)
    after = (before[:, None] == torch.arange(symbols)[:, None]) * places  # (B, symbols, j): j or 0
    return F.pad(after.cummax(2).values.gather(1, x[:, None]).squeeze(1), (1, 0))


@functools.cache
def two_token_accuracy(symbols, length, k):
    """Of the best predictor of khop's targets from k and the last two tokens, counted on 2,000
    sequences."""
    x, targets = Khop().draw(2000, md.generator("chance"), False, symbols, length, (k,))
    pair = x[:, 1:-1] * symbols + x[:, 2:]  # the tokens at i - 1 and i
    kinds = symbols * symbols * (symbols + 1)
    counts = (pair * (symbols + 1) + targets[:, 2:]).flatten().bincount(minlength=kinds)
    counts = counts.view(-1, symbols + 1)[:, :symbols]  # how often each pair had each answer
    return (counts.amax(1).sum() / counts.sum()).item()


class Khop(Task):
    """k-hop induction (Sanford, Hsu & Telgarsky 2024), k from `hops` as the first token: with
    findk = find1(find(k-1)) the target at place i is x[findk(i)], or ⊥ (the id `symbols`) if
    findk(i) is 0. No symbol follows itself. The shortcut is the best predictor from k and the last
    two tokens. As in the paper, accuracy leaves the targets ⊥ out."""

    settings = dict(steps=2000, batch_size=32, sizes=("length=48",), eval_every=100)

    def draw(self, batch, generator, test=False, symbols=4, length=100, hops=(1,)):
        if symbols < 2:
            raise ValueError(f"symbols {symbols}: none could follow another; give at least 2")
        # a hop goes back as many places as there are symbols, and the last one to the second place
        room = min(length // symbols, length - 2)
        if max(hops) > room:
            most = f"length {length} with {symbols} symbols has room for {max(0, room)}"
            advice = "give fewer, or --sizes length=N"
            raise ValueError(f"hops {max(hops)} is too much: {most}; {advice}")
        steps = torch.randint(1, symbols, (batch, length), generator=generator)
        x = (steps.cumsum(1) + torch.randint(symbols, (batch, 1), generator=generator)) % symbols
        k = torch.tensor(hops)[torch.randint(len(hops), (batch, 1), generator=generator)]
        before, at = find1(x, symbols), torch.arange(length + 1).expand(batch, -1)
        for hop in range(max(hops)):
            at = torch.where(hop < k, before.gather(1, at), at)
        targets = F.pad(x, (1, 0), value=symbols).gather(1, at)
        targets[:, 0] = -100
        return torch.cat((symbols + k, x), 1), targets

    def guess(self, symbols, **_):
        return 1 / symbols

    def shortcut(self, symbols, length, hops, **_):
        return statistics.mean(two_token_accuracy(symbols, length, k) for k in hops)

    def links(self, tokens, targets, symbols, hops, **_):
        """A place copies the symbol before it; it finds the places 1, 2, … hops away."""
        (B, T), key = tokens.shape, torch.arange(tokens.size(1))
        copy = (key == key[:, None] - 1) & (key > 0)
        steps, at = dict(copy=copy.expand(B, T, T)), key.expand(B, T)
        before = find1(tokens[:, 1:], symbols)
        for hop in range(1, max(hops) + 1):
            at = before.gather(1, at)
            steps[f"hop {hop}"] = (at[:, :, None] == key) & (at > 0)[:, :, None]
        return steps

    def accuracy(self, model, tokens, targets, symbols, length, hops):
        counted = (targets != -100) & (targets != symbols)
        right = (predicted(model, tokens) == targets)[counted].float()
        k = (tokens[:, :1] - symbols).expand_as(tokens)[counted]
        by_hops = {}
        for hop in hops:
            shortcut = two_token_accuracy(symbols, length, hop)
            by_hops[str(hop)] = dict(accuracy=right[k == hop].mean().item(), shortcut=shortcut)
        return dict(accuracy=right.mean().item(), accuracy_by=dict(hops=by_hops))

    # hops.png of a grid: the error by k and layers, beside the best from two tokens
    by_layers = dict(label="hops", title="error on targets that are not ⊥")


TASK = Khop()
