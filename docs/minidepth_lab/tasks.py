"""Depth tasks: what one, two and three layers of attention can do.

Each task is one class: what it draws, how often guessing and the best shortcut we know are right,
where its known solution has to look, its sizes and its settings. What they share is in task.py;
`ring` and `written` have files of their own.
"""

import functools
import itertools
import os
import statistics

import torch
import torch.nn.functional as F

import minidepth as md
from minidepth_lab import figures, find
from minidepth_lab.ring import ring
from minidepth_lab.task import (
    Task,
    answer_before,
    ask,
    distinct,
    equal_before,
    predicted,
    task_data,
)
from minidepth_lab.written import written

PRESETS = {
    "tasks": dict(
        block_size=128, n_heads=4, d_model=64, d_ff=0, dropout=0.0, init_std=0.1,
        tie_weights=False, data=("icqa",), steps=500, batch_size=64, lr=2e-3, weight_decay=0.0,
        eval_every=50, eval_blocks=1000,
    ),
}  # fmt: skip
md.PRESETS.update(PRESETS)


class memorize(Task):
    """Memorization (Chen & Zou 2024; sizes ours): fixed sequences, each with a label drawn once.
    The test is on the same ones: there is no rule to find."""

    settings = dict(n_heads=8, steps=1000)

    def draw(self, batch, generator, test=False, symbols=32, length=8, labels=8, sequences=512):
        fixed = torch.Generator().manual_seed(0)
        pool = torch.randint(symbols, (sequences, length), generator=fixed)
        label = symbols + torch.randint(labels, (sequences,), generator=fixed)
        chosen = torch.randint(sequences, (batch,), generator=generator)
        return ask(pool[chosen], label[chosen], symbols + labels)

    def guess(self, labels, **_):
        return 1 / labels

    shortcut = guess


class icqa(Task):
    """In-context question answering (reasoning, Chen & Zou 2024): q1 a1 … qk ak, then every q in
    another order, each to be answered. Pairs are drawn anew for each sequence and answers differ.
    The shortcut is any answer shown."""

    settings = dict(n_heads=2)

    def draw(self, batch, generator, test=False, symbols=16, pairs=8):
        q = distinct(batch, symbols, pairs, generator, "questions")
        a = distinct(batch, symbols, pairs, generator, "answers") + symbols
        order = distinct(batch, pairs, pairs, generator, "places")
        tokens = torch.cat((torch.stack((q, a), 2).flatten(1), q.gather(1, order)), 1)
        return tokens, F.pad(a.gather(1, order), (2 * pairs, 0), value=-100)

    def guess(self, symbols, **_):
        return 1 / symbols

    def shortcut(self, pairs, **_):
        return 1 / pairs

    def links(self, tokens, targets, pairs, **_):
        """An answer copies the question before it; a question finds the answer copied to."""
        place = torch.arange(tokens.size(1))
        query, key = place[:, None], place
        copy = (query % 2 == 1) & (query < 2 * pairs) & (key == query - 1)
        match = answer_before(tokens, targets)
        return dict(copy=copy.expand_as(match), match=match)


@functools.cache
def pair_patterns(length):
    """Every way to put `length` places into pairs, (ways, length): 0 0 1 1, 0 1 0 1, 0 1 1 0, …"""
    if length % 2 or length > 8:
        raise ValueError(f"length {length} makes no list of pairs; give 2, 4, 6 or 8")
    symbols = list(range(length // 2))
    ways = {way for way in itertools.permutations(symbols * 2) if [*dict.fromkeys(way)] == symbols}
    return torch.tensor(sorted(ways))


class template(Task):
    """Template matching (generalization, Chen & Zou 2024; Boix-Adserà et al. 2023): which places
    hold equal symbols? Every symbol comes twice, so counting does not help; the test has symbols
    that training never shows. The shortcut is one pair of equal places: a head that prefers some
    symbols looks at both places of the one it likes best; several heads may see several pairs."""

    settings = dict(steps=3000, batch_size=128, eval_every=200)

    def draw(self, batch, generator, test=False, symbols=2048, length=6):
        patterns = pair_patterns(length)
        label = torch.randint(len(patterns), (batch,), generator=generator)
        names = distinct(batch, symbols, length // 2, generator, "symbols") + symbols * test
        string = names.gather(1, patterns[label])
        return ask(string, 2 * symbols + label, 2 * symbols + len(patterns))

    def guess(self, length, **_):
        return 1 / len(pair_patterns(length))

    def shortcut(self, length, **_):
        return 1 / len(pair_patterns(length - 2))

    def links(self, tokens, targets, **_):
        """A symbol finds its equal (parse); the end reads where the equals are."""
        parse = equal_before(tokens)
        read = torch.zeros_like(parse)
        read[:, -1] = parse.any(2)
        return dict(parse=parse, read=read)


class icl_template(Task):
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
    x, targets = khop().draw(2000, md.generator("chance"), False, symbols, length, (k,))
    pair = x[:, 1:-1] * symbols + x[:, 2:]  # the tokens at i - 1 and i
    kinds = symbols * symbols * (symbols + 1)
    counts = (pair * (symbols + 1) + targets[:, 2:]).flatten().bincount(minlength=kinds)
    counts = counts.view(-1, symbols + 1)[:, :symbols]  # how often each pair had each answer
    return (counts.amax(1).sum() / counts.sum()).item()


class khop(Task):
    """k-hop induction (Sanford, Hsu & Telgarsky 2024), k from `hops` as the first token: with
    findk = find1(find(k-1)) the target at place i is x[findk(i)], or ⊥ (the id `symbols`) if
    findk(i) is 0. No symbol follows itself. The shortcut is the best predictor from k and the last
    two tokens. As in the paper, accuracy leaves the targets ⊥ out."""

    settings = dict(steps=2000, batch_size=32, sizes=("length=48",), eval_every=100)

    def draw(self, batch, generator, test=False, symbols=4, length=100, hops=(1,)):
        if symbols < 2:
            raise ValueError(f"symbols {symbols}: none could follow another; give at least 2")
        if max(hops) > length // symbols:  # a hop goes back as many places as there are symbols
            most = f"length {length} with {symbols} symbols has room for {length // symbols}"
            advice = "give fewer, or --sizes length=N"
            raise ValueError(f"hops {max(hops)} is too much: {most}; {advice}")
        steps = torch.randint(1, symbols, (batch, length), generator=generator)
        x = (steps.cumsum(1) + torch.randint(symbols, (batch, 1), generator=generator)) % symbols
        k = torch.tensor(hops)[torch.randint(len(hops), (batch, 1), generator=generator)]
        found, at = find1(x, symbols), torch.arange(length + 1).expand(batch, -1)
        for hop in range(max(hops)):
            at = torch.where(hop < k, found.gather(1, at), at)
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
        found = find1(tokens[:, 1:], symbols)
        for hop in range(1, max(hops) + 1):
            at = found.gather(1, at)
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

    def figure(self, runs, folder):
        """hops.png of a grid: the error by k and layers, beside the best from two tokens."""
        title = "error on targets that are not ⊥"
        figures.draw_by_layers(runs, os.path.join(folder, "hops.png"), "hops", title=title)


ALL = (memorize(), icqa(), template(), icl_template(), khop(), ring(), written())
TASKS = {task.name: task for task in ALL}


def configs(name, /, **changes):
    """(ModelConfig, TrainConfig) of a task's own settings, changed."""
    return find.configs("tasks", data=(name,), **changes)


def load_data(config, block_size=128, tokenizer=None):
    """TaskData of the task that a TrainConfig names; ValueError if it names none."""
    task = find.task(config.data[0])
    if task is None:
        raise ValueError(f"data {config.data[0]} is no task; choose from {', '.join(TASKS)}")
    return task_data(task, config, block_size)
