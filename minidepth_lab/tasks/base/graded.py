"""Tasks of the map of depth: each has a difficulty n, and a formula for the layers that it needs.

    TASKS["parity"].layers_for(16)         as it was written before the runs

A model is trained on all difficulties of a task at once and measured at each. One file a task, in
tasks/; the study is studies/map.py.
"""

import torch

import minidepth as md
from minidepth_lab.tasks import Task, of_split, predicted


class Graded(Task):
    """Says how hard each target is: a task has draw(), difficulty() and layers_for()."""

    def layers_for(self, n):
        """The least number of layers, or of loops of one, that difficulty n should need."""
        raise NotImplementedError(f"{self.name} does not say how many layers it needs")

    def difficulty(self, tokens, targets, **sizes):
        """How hard the target at each place is, (B, T) int64; 0 where it is not measured."""
        raise NotImplementedError(f"{self.name} does not say how hard its targets are")

    def accuracy(self, model, tokens, targets, n, **sizes):
        """{"accuracy": its mean over the difficulties `n`, "accuracy_by": {"n": {"2": {"accuracy":
        …}, …}}}"""
        hard = self.difficulty(tokens, targets, n=n, **sizes)
        right, shares = predicted(model, tokens) == targets, {}
        for each in n:
            these = right[(hard == each) & (targets != -100)]
            if not len(these):
                raise ValueError(f"no target of the test has difficulty {each}; see --sizes")
            shares[each] = these.float().mean().item()
        by_n = {str(each): dict(accuracy=share) for each, share in shares.items()}
        return dict(accuracy=sum(shares.values()) / len(shares), accuracy_by=dict(n=by_n))


class Prefix(Graded):
    """At each place the answer is what all symbols up to it, taken in order, come to. So the
    difficulty of a place is how many symbols that is. The sequences of the test are those that
    the rule of the embedded problems holds out: whole ones, of the greatest difficulty. There are
    few short beginnings, and training has most of those up to some ten symbols. Symbols are words
    from 0 on, answers as well."""

    def symbols(self, **sizes):
        """How many there are."""
        raise NotImplementedError(f"{self.name} does not say how many symbols it has")

    def results(self, symbols, **sizes):
        """symbols (B, T) → what they come to at each place, (B, T)."""
        raise NotImplementedError(f"{self.name} does not say what its symbols come to")

    def drawn(self, batch, generator, test, n, **sizes):
        """tokens and targets (batch, max(n)), a target at each place."""
        count = self.symbols(**sizes)

        def some():
            return torch.randint(count, (batch, max(n)), generator=generator)

        tokens = of_split(batch, some, lambda rows: held_out(rows, count), test)
        return tokens, self.results(tokens, **sizes)

    def difficulty(self, tokens, targets, **_):
        return torch.arange(1, tokens.size(1) + 1).expand_as(tokens)


def held_out(rows, count):
    """Whether each of the rows (B, T) of numbers below `count` is the test's alone: (B,) bool."""
    texts = [" ".join(map(str, row)) for row in rows.tolist()]
    keys = count ** rows.size(1)
    return torch.tensor([md.is_held_out(text, keys) for text in texts], dtype=torch.bool)
