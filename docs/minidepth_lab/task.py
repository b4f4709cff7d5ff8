"""What a depth task is, and how it becomes the data of a run.

A task of one's own is a class in a file of its own, whose last line is TASK = the_class():

    python train.py --data my_task.py --n_layers 1 2
"""

import inspect
import json
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F

import minidepth as md
from minidepth_lab import find


class Task:
    """A task says at least how it is drawn. Its sizes are what draw() has after `test`."""

    settings = {}  # what the preset `tasks` changes for it

    @property
    def name(self):
        return type(self).__name__

    @property
    def sizes(self):
        """{name: default} of all sizes."""
        known = list(inspect.signature(self.draw).parameters.values())[3:]
        return {p.name: p.default for p in known if p.kind is not p.KEYWORD_ONLY}

    def draw(self, batch, generator, test=False):
        """(tokens, targets), each (batch, T) int64; a target of -100 is none. `test` draws from
        what training never shows, where the task has such a thing."""
        raise NotImplementedError(f"{self.name} does not say how it is drawn")

    def train_batch(self, done, batch, generator, **sizes):
        """What training draws when the share `done` of its steps, from 0 to 1, is behind it."""
        return self.draw(batch, generator, **sizes)

    def ahead(self, loss, done, **sizes):
        """What `done` is from now on at least, after a step drawn at `done` that had this loss: for
        a curriculum that goes on as soon as its beginning is learned."""
        return 0.0

    def guess(self, **sizes):
        """Accuracy, from 0 to 1, of guessing among all answers; None where unknown."""

    def shortcut(self, **sizes):
        """Accuracy of the best way known that does not solve the task; None where unknown."""

    def links(self, tokens, targets, **sizes):
        """Where the known solution has to look: {step: (B, T, T) bool}, query by key."""
        raise ValueError(f"{self.name} has no steps to look for; its solution is not known")

    def accuracy(self, model, tokens, targets, **sizes):
        """What a test on tokens and targets (B, T) finds: {"accuracy": share of targets hit}."""
        said = predicted(model, tokens)
        return dict(accuracy=(said == targets)[targets != -100].float().mean().item())

    def chance(self, **sizes):
        """(guess, shortcut) of these sizes, the others by default."""
        sizes = self.sizes | sizes
        return self.guess(**sizes), self.shortcut(**sizes)


@md.in_eval_mode
def predicted(model, tokens):
    """The likeliest next token at each place: (B, T) int64."""
    device = next(model.parameters()).device
    return torch.cat([model(x.to(device)).argmax(-1).cpu() for x in tokens.split(100)])


def distinct(batch, n, k, generator, what):
    """k different numbers below n in random order, for each of a batch: (batch, k)."""
    if k > n:
        raise ValueError(f"a sequence needs {k} different {what}, but there are {n}; see --sizes")
    return torch.rand(batch, n, generator=generator).topk(k).indices


def ask(prompt, answer, query):
    """prompt (B, T) and a constant last token `query`, at which answer (B,) is the only target: at
    a token of the prompt itself some short patterns can be read off in one layer."""
    targets = F.pad(answer[:, None], (prompt.size(1), 0), value=-100)
    return F.pad(prompt, (0, 1), value=query), targets


def equal_before(tokens):
    """Which earlier keys hold the same token as the query: (B, T, T) bool."""
    return (tokens[:, :, None] == tokens[:, None]).tril(-1)


def answer_before(tokens, targets):
    """Which earlier keys hold the token that is the query's target: (B, T, T) bool."""
    return (targets[:, :, None] == tokens[:, None]).tril(-1)


@dataclass
class TaskData(md.Data):
    """Sequences drawn anew for each step; `val` is a test split of 1,000."""

    task: Task = None
    task_sizes: dict = field(default_factory=dict)  # all of them
    steps: int = 1  # of the whole training
    done: float = 0.0  # that of the last draw()

    def draw(self, step, n):
        self.done = max(step / self.steps, self.state.get("ahead", 0.0))
        generator = md.generator(self.seed, step)
        with find.own_code(self.facts["task"], "the task", "has a train_batch() that failed"):
            return self.task.train_batch(self.done, n, generator, **self.task_sizes)

    def after_step(self, loss):
        with find.own_code(self.facts["task"], "the task", "has an ahead() that failed"):
            ahead = self.task.ahead(loss, self.done, **self.task_sizes)
            self.state["ahead"] = max(ahead, self.state.get("ahead", 0.0))

    def measure(self, model):
        tokens, targets = (torch.as_tensor(part).long() for part in self.val)
        with find.own_code(self.facts["task"], "the task", "has an accuracy() that failed"):
            found = self.task.accuracy(model, tokens, targets, **self.task_sizes)
            check_measured(found)
        return found


def check_measured(found):
    """ValueError or TypeError for what accuracy() must not return, as no log can hold it."""
    share = found.get("accuracy") if isinstance(found, dict) else None
    if not isinstance(share, int | float) or not 0 <= share <= 1:
        wanted = "dict(accuracy=SHARE), the share a number from 0 to 1"
        raise ValueError(f"it must return {wanted}; it returned {found!r:.60}")
    json.dumps(found)


N_DRAWN = 1000  # sequences of the test split, and as many to look at what is drawn


def check_shape(name, drawn, n, block_size):
    """ValueError for what is no n sequences that fit into a block."""
    kinds = [(part.dtype, part.dim()) for part in drawn] if isinstance(drawn, tuple) else []
    if kinds != [(torch.int64, 2)] * 2 or drawn[0].shape != drawn[1].shape:
        wanted = "(tokens, targets), each (batch, T) int64"
        raise ValueError(f"{name} must draw {wanted}; it drew {drawn!r:.60}")
    found, T = drawn[0].shape
    if found != n or T < 1:
        asked = f"as many sequences as it is asked for, {n}, of a token or more"
        raise ValueError(f"{name} must draw {asked}; it drew {found} of {T}")
    if T > block_size:
        what = f"block_size {block_size} is too short for {name}"
        raise ValueError(f"{what}, whose sequences have {T} tokens; give at least that")


def check_values(name, tokens, targets):
    """ValueError for numbers that a task must not draw."""
    if tokens.min() < 0 or targets.min() < -100:
        raise ValueError(f"{name} draws numbers below 0; tokens count from 0, no target is -100")
    if not (targets != -100).any():
        raise ValueError(f"{name} draws no targets: all of them are -100")


def task_data(task, config, block_size=128):
    """TaskData of a task with the sizes, name and steps of a TrainConfig; ValueError for sizes that
    do not work."""
    name = f"the task {config.data[0]}"
    sizes = find.sizes_of(config.sizes, task.sizes, name)

    def drawn(n, method, *how, **more):
        with find.own_code(config.data[0], "the task", f"has a {method.__name__}() that failed"):
            found = method(*how, **more, **sizes)
        check_shape(name, found, n, block_size)
        return found

    drawn(1, task.draw, 1, md.generator("one"))  # a thousand too long for a block may fit nowhere
    train = drawn(N_DRAWN, task.train_batch, 0.0, N_DRAWN, md.generator("train"))
    val = drawn(N_DRAWN, task.draw, N_DRAWN, md.generator("val"), test=True)
    check_values(name, *train)
    check_values(name, *val)
    n_words = 1 + max(int(part.max()) for part in train + val)
    facts = dict(task=config.data[0])
    with find.own_code(config.data[0], "the task", "has a guess() or shortcut() that failed"):
        for what, share in zip(("guess", "shortcut"), task.chance(**sizes)):
            if share is not None:
                facts[what] = float(share)
    train, val = (tuple(part.int().numpy() for part in pair) for pair in (train, val))
    texts = find.as_text(sizes)
    return TaskData(train, val, facts=facts, n_words=n_words, sizes=texts, fresh=True,
                    task=task, task_sizes=sizes, steps=config.steps)  # fmt: skip
