"""Depth tasks: what one, two and three layers of attention can do. One class in one file each.

    task = TASKS["icqa"]
    tokens, targets = task.draw(64, torch.Generator())        (64, T) each
    python train.py --data icqa --n_layers 1 2

A task says what it draws, how often guessing and the best shortcut we know are right, where its
known solution has to look, its sizes and its settings. A task of one's own is a class in a file of
its own, whose last line is TASK = TheClass():

    python train.py --data my_task.py --n_layers 1 2
"""

import collections.abc
import importlib
import inspect
import math
import pathlib
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

import minidepth as md
from minidepth_lab.base import machine
from minidepth_lab.models import variants

PRESETS = {
    "tasks": dict(
        block_size=128, n_heads=4, d_model=64, d_ff=0, dropout=0.0, init_std=0.1,
        tie_weights=False, data=("icqa",), steps=500, batch_size=64, lr=2e-3, weight_decay=0.0,
        eval_every=50, eval_blocks=1000,
    ),
}  # fmt: skip


class Task:
    """A task says at least how it is drawn. Its sizes are what draw() has after `test`."""

    settings: dict[str, Any] = {}  # what the preset `tasks` changes for it

    @property
    def name(self) -> str:
        """That of its file: the task in tasks/khop.py is `khop`."""
        return type(self).__module__.rpartition(".")[2]

    @property
    def sizes(self) -> dict[str, Any]:
        """{name: default} of all sizes."""
        known = list(inspect.signature(self.draw).parameters.values())[3:]
        return {p.name: p.default for p in known if p.kind is not p.KEYWORD_ONLY}

    def draw(
        self, batch: int, generator: torch.Generator, test: bool = False
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """(tokens, targets), each (batch, T) int64; a target of -100 is none. Targets (batch,
        loops, T) ask for a loss after each loop; such a task needs an accuracy() of its own. `test`
        draws from what training never shows, where the task has such a thing."""
        raise NotImplementedError(f"{self.name} does not say how it is drawn")

    def train_batch(
        self, done: float, batch: int, generator: torch.Generator, **sizes: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """What training draws when the share `done` of its steps, from 0 to 1, is behind it; above
        1 it is what ahead() said."""
        return self.draw(batch, generator, **sizes)

    def ahead(self, loss: float, done: float, **sizes: Any) -> float:
        """What `done` is from now on at least, after a step drawn at `done` that had this loss: for
        a curriculum that goes on as soon as its beginning is learned."""
        return 0.0

    def guess(self, **sizes: Any) -> float | None:
        """Accuracy, from 0 to 1, of guessing among all answers; None where unknown."""

    def shortcut(self, **sizes: Any) -> float | None:
        """Accuracy of the best way known that does not solve the task; None where unknown."""

    def map_tokens(self, **sizes: Any) -> int | None:
        """How many tokens, the first of a sequence, are the map that questions are asked about, so
        that a looped model may read them once and keep them; None where there is no such part."""

    def links(
        self, tokens: torch.Tensor, targets: torch.Tensor, **sizes: Any
    ) -> dict[str, torch.Tensor] | None:
        """Where the known solution has to look: {step: (B, T, T) bool}, query by key."""
        raise ValueError(f"{self.name} has no steps to look for; its solution is not known")

    def accuracy(
        self, model: variants.GPT, tokens: torch.Tensor, targets: torch.Tensor, **sizes: Any
    ) -> dict:
        """What a test on tokens and targets (B, T) finds: {"accuracy": share of targets hit}."""
        right = predicted(model, tokens) == targets
        return dict(accuracy=right[targets != -100].float().mean().item())

    def final_accuracy(
        self, model: variants.GPT, tokens: torch.Tensor, targets: torch.Tensor, **sizes: Any
    ) -> dict:
        """What the test after the last step finds: accuracy(), and what is too long to be measured
        at every evaluation."""
        return self.accuracy(model, tokens, targets, **sizes)

    def chance(self, **sizes: Any) -> tuple[float | None, float | None]:
        """(guess, shortcut) of these sizes, the others by default."""
        sizes = self.sizes | sizes
        return self.guess(**sizes), self.shortcut(**sizes)


# ---------- the tasks of this folder ----------


class Tasks(collections.abc.Mapping):
    """{name: the task}: the TASK of each file of this folder, which is read when it is asked for,
    so that a run on one task does not read the others."""

    def __init__(self) -> None:
        files = pathlib.Path(__file__).parent.glob("[a-z]*.py")
        self.names = sorted(path.stem for path in files)

    def __getitem__(self, name):
        if name not in self.names:
            raise KeyError(name)
        return importlib.import_module(f"{__name__}.{name}").TASK

    def __contains__(self, name):  # Mapping's own would read the file
        return name in self.names

    def __iter__(self):
        return iter(self.names)

    def __len__(self):
        return len(self.names)


TASKS = Tasks()


# ---------- parts of tasks ----------


@machine.in_eval_mode
def predicted(model: variants.GPT, tokens: torch.Tensor) -> torch.Tensor:
    """The likeliest next token at each place: (B, T) int64."""
    device = next(model.parameters()).device
    return torch.cat([model(x.to(device)).argmax(-1).cpu() for x in tokens.split(100)])


def distinct(batch: int, n: int, k: int, generator: torch.Generator, what: str) -> torch.Tensor:
    """k different numbers below n in random order, for each of a batch: (batch, k)."""
    if k > n:
        raise ValueError(f"a sequence needs {k} different {what}, but there are {n}; see --sizes")
    return torch.rand(batch, n, generator=generator).topk(k).indices


def held_out_rings(lines: torch.Tensor, letters: int | None = None) -> torch.Tensor:
    """Whether each ring is the test's alone: lines (batch, ring), its letters in order from any of
    them, of so many, or of twice as many as it has → (batch,) bool. The rule is that of the
    embedded problems, on the ring's letters from the smallest one on."""
    ring = lines.size(1)
    at = lines.argmin(1, keepdim=True) + torch.arange(ring)
    keys = math.perm(letters or 2 * ring, ring) // ring
    texts = [" ".join(map(str, line)) for line in lines.gather(1, at % ring).tolist()]
    return torch.tensor([md.is_held_out(text, keys) for text in texts])


def of_split(batch: int, draw: Callable, is_tests: Callable, test: bool) -> torch.Tensor:
    """`batch` sequences of the test, or of training. draw() gives some of either, (n, …), and
    is_tests(some) says of each whether it is the test's alone, (n,) bool. ValueError where a split
    has none."""
    kept, n, n_drawn = [], 0, 0
    while n < batch:
        some = draw()
        kept.append(some[is_tests(some) == test])
        n, n_drawn = n + len(kept[-1]), n_drawn + len(some)
        if not n and n_drawn > 2000:
            whose = "the test" if test else "training"
            raise ValueError(f"there is no sequence for {whose}; give larger ones with --sizes")
    return torch.cat(kept)[:batch]


def rings(
    batch: int, ring: int, generator: torch.Generator, test: bool, letters: int | None = None
) -> torch.Tensor:
    """Rings of the test, or of training: (batch, ring), the letters of each in order, out of so
    many, or of twice as many as it has. ValueError where there is one ring alone."""
    if letters == ring == 2:
        raise ValueError("letters 2 make one ring, and none is left to test on; give at least 3")

    def some():
        return distinct(batch, letters or 2 * ring, ring, generator, "letters")

    return of_split(batch, some, lambda lines: held_out_rings(lines, letters), test)


def ask(
    prompt: torch.Tensor, answer: torch.Tensor, query: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """prompt (B, T) and a constant last token `query`, at which answer (B,) is the only target: at
    a token of the prompt itself some short patterns can be read off in one layer."""
    targets = F.pad(answer[:, None], (prompt.size(1), 0), value=-100)
    return F.pad(prompt, (0, 1), value=query), targets


def equal_before(tokens: torch.Tensor) -> torch.Tensor:
    """Which earlier keys hold the same token as the query: (B, T, T) bool."""
    return (tokens[:, :, None] == tokens[:, None]).tril(-1)


def answer_before(tokens: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Which earlier keys hold the token that is the query's target: (B, T, T) bool."""
    return (targets[:, :, None] == tokens[:, None]).tril(-1)
