"""How a depth task becomes the data of a run: sequences drawn anew for each step."""

import json
from dataclasses import dataclass, field, replace

import torch

import minidepth as md
from minidepth_lab.base.data import Data
from minidepth_lab.tasks import Task
from minidepth_lab.tasks.base.own_code import mistakes_in
from minidepth_lab.tasks.base.sizes import as_text, sizes_of

N_DRAWN = 1000  # sequences of the test split, and as many to look at what is drawn


@dataclass
class TaskData(Data):
    """Sequences drawn anew for each step. `train` is 1,000 of those that a training ends with,
    `val` a test split of as many."""

    first: tuple = ()  # 1,000 sequences that a training begins with
    task: Task = None
    task_sizes: dict = field(default_factory=dict)  # all of them
    block_size: int = 0
    steps: int = 1  # of the whole training
    done: float = 0.0  # how far the last draw() was

    def draw(self, step, n):
        self.at_end = step + 1 == self.steps
        self.done = max(step / self.steps, self.state.get("ahead", 0.0))
        generator, name = md.generator(self.seed, step), self.facts["task"]
        with mistakes_in(name, "the task", "has a train_batch() that failed"):
            drawn = self.task.train_batch(self.done, n, generator, **self.task_sizes)
        # a curriculum may draw otherwise later than at first, when all else is checked
        check_shape(f"the task {name} at step {step + 1}", drawn, n, self.block_size)
        most = max(int(part.max()) for part in drawn)
        if most >= self.n_words:
            unknown = f"draws the number {most} at step {step + 1}"
            raise ValueError(
                f"the task {name} {unknown}; its test has none above {self.n_words - 1}"
            )
        return drawn

    def after_step(self, loss):
        with mistakes_in(self.facts["task"], "the task", "has an ahead() that failed"):
            ahead = self.task.ahead(loss, self.done, **self.task_sizes)
            self.state["ahead"] = max(ahead, self.state.get("ahead", 0.0))

    def fingerprint(self):
        """Of what is drawn first, so that runs of before `train` was another go on."""
        return md.Data.fingerprint(replace(self, train=self.first))

    def evaluate(self, model):
        tokens, targets = (torch.as_tensor(part).long() for part in self.val)
        with mistakes_in(self.facts["task"], "the task", "has an accuracy() that failed"):
            accuracy = self.task.final_accuracy if self.at_end else self.task.accuracy
            measured = accuracy(model, tokens, targets, **self.task_sizes)
            check_measured(measured)
        return measured


def check_measured(measured):
    """ValueError or TypeError for what accuracy() must not return, as no log can hold it."""
    share = measured.get("accuracy") if isinstance(measured, dict) else None
    if not isinstance(share, int | float) or not 0 <= share <= 1:
        wanted = "dict(accuracy=SHARE), the share a number from 0 to 1"
        raise ValueError(f"it must return {wanted}; it returned {measured!r:.60}")
    for by_value in measured.get("accuracy_by", {}).values():
        if not all(isinstance(part, dict) and "accuracy" in part for part in by_value.values()):
            raise ValueError("accuracy_by must be {size: {value: {'accuracy': SHARE, …}}}")
    json.dumps(measured)


def share_of(what, share):
    """What guess() or shortcut() gave as a float; ValueError for what is no share."""
    number = float(share)
    if not 0 <= number <= 1:
        wanted = "a number from 0 to 1, or None where unknown"
        raise ValueError(f"{what}() must return {wanted}; it returned {share!r:.40}")
    return number


def links_of(data, tokens, targets):
    """links() of the task of a TaskData; ValueError, one line, for what a task of one's own must
    not return."""
    task, name = data.task, data.facts["task"]
    if type(task).links is Task.links:  # it has none, and says so itself
        return task.links(tokens, targets)
    with mistakes_in(name, "the task", "has a links() that failed"):
        links = task.links(tokens, targets, **data.task_sizes)
    B, T = tokens.shape
    whose = f"the task {name}: links() must return {{step: bool tensor ({B}, {T}, {T})}}"
    if not isinstance(links, dict) or not links:
        raise ValueError(f"{whose}; it returned {links!r:.40}")
    for step, link in links.items():
        if not isinstance(link, torch.Tensor):
            raise ValueError(f"{whose}; its {step!r:.40} is {link!r:.40}")
        if link.dtype != torch.bool or link.shape != (B, T, T):
            kind = str(link.dtype).removeprefix("torch.")
            raise ValueError(f"{whose}; its {step!r:.40} is {kind} {tuple(link.shape)}")
    return links


def check_shape(name, drawn, n, block_size):
    """ValueError for what is no n sequences that fit into a block."""
    tensors = isinstance(drawn, tuple) and all(isinstance(part, torch.Tensor) for part in drawn)
    kinds = [(part.dtype, part.dim()) for part in drawn] if tensors else []
    plain, after_each_loop = (torch.int64, 2), (torch.int64, 3)
    good = kinds in ([plain, plain], [plain, after_each_loop])
    if not good or drawn[0].shape != (drawn[1].size(0), drawn[1].size(-1)):
        wanted = "(tokens, targets), each (batch, T) int64"
        raise ValueError(f"{name} must draw {wanted}; it drew {drawn!r:.60}")
    n_drawn, T = drawn[0].shape
    if n_drawn != n or T < 1:
        asked = f"as many sequences as it is asked for, {n}, of a token or more"
        raise ValueError(f"{name} must draw {asked}; it drew {n_drawn} of {T}")
    if T > block_size:
        what = f"block_size {block_size} is too short for {name}"
        raise ValueError(f"{what}, whose sequences have {T} tokens; give at least that")


def check_values(name, tokens, targets):
    """ValueError for numbers that a task must not draw."""
    if tokens.min() < 0 or targets.min() < -100:
        raise ValueError(f"{name} draws numbers below 0; tokens count from 0, no target is -100")
    if not (targets != -100).any():
        raise ValueError(f"{name} draws no targets: all of them are -100")


def make_task_data(task, config, block_size=128):
    """TaskData of a task with the sizes, name and steps of a TrainConfig; ValueError for sizes that
    do not work."""
    name = f"the task {config.data[0]}"
    sizes = sizes_of(config.sizes, task.sizes, name)

    def checked_draw(n, method, *how, **more):
        with mistakes_in(config.data[0], "the task", f"has a {method.__name__}() that failed"):
            sequences = method(*how, **more, **sizes)
        check_shape(name, sequences, n, block_size)
        return sequences

    # one alone first: a thousand that are too long for a block may fit nowhere
    checked_draw(1, task.draw, 1, md.generator("one"))
    train = checked_draw(N_DRAWN, task.draw, N_DRAWN, md.generator("train"), test=False)
    first = checked_draw(N_DRAWN, task.train_batch, 0.0, N_DRAWN, md.generator("train"))
    val = checked_draw(N_DRAWN, task.draw, N_DRAWN, md.generator("val"), test=True)
    check_values(name, *first)
    check_values(name, *val)
    if config.data[0].endswith(".py"):  # another test with the same seed would compare nothing
        for method, how in ((task.draw, ()), (task.train_batch, (0.0,))):
            twice = [checked_draw(50, method, *how, 50, md.generator("twice")) for _ in range(2)]
            if not all(map(torch.equal, *twice)):
                other = f"{method.__name__}() draws other sequences with the same generator"
                raise ValueError(f"{name}: {other}; take all random numbers from the generator")
    n_words = 1 + max(int(part.max()) for part in first + train + val)
    facts = dict(task=config.data[0])
    with mistakes_in(config.data[0], "the task", "has a guess() or shortcut() that failed"):
        for what, share in zip(("guess", "shortcut"), task.chance(**sizes)):
            if share is not None:
                facts[what] = share_of(what, share)
    drawn = ([part.int().numpy() for part in pair] for pair in (train, val, first))
    train, val, first = map(tuple, drawn)
    texts = as_text(sizes)
    return TaskData(
        train, val, facts=facts, n_words=n_words, sizes=texts, infinite=True,
        first=first, task=task, task_sizes=sizes, block_size=block_size, steps=config.steps,
    )  # fmt: skip
