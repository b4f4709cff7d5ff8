"""Memorization: one layer is enough."""

import torch

from minidepth_lab.tasks import Task, ask


class Memorize(Task):
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


TASK = Memorize()
