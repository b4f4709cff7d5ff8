"""Where a model of in-context questions looks, from step to step of its training: what the box on
the page *Looking inside* draws (docs/assets/look.js).

    m, t = tasks.configs("icqa", n_layers=2, eval_every=25)
    run = md.train(m, t, looks.watched(tasks.load_data(t)))
    looks.story([run])                     a dict that JSON can hold
"""

import dataclasses
from dataclasses import dataclass, field

import torch

import minidepth as md
from minidepth_lab import attention
from minidepth_lab.task import TaskData


@dataclass
class Watched(TaskData):
    """TaskData that keeps, at every evaluation, how the model treats its first test sequence."""

    snapshots: list = field(default_factory=list)

    def measure(self, model):
        self.snapshots.append(snapshot(model, self))
        return super().measure(model)


def watched(data):
    """A TaskData → the same, watched."""
    fields = {f.name: getattr(data, f.name) for f in dataclasses.fields(data)}
    return Watched(**fields)


def first_test(data):
    """The first test sequence, its tokens and targets: (1, T) int64 each."""
    return (attention.token_ids(part[:1]) for part in data.val)


def asked(targets):
    """The places of a sequence (1, T) that have a target."""
    return (targets[0] != -100).nonzero().flatten().tolist()


def names(tokens, symbols):
    """icqa's ids → q0, q1, … for questions, a0, a1, … for answers."""
    return [f"q{i}" if i < symbols else f"a{i - symbols}" for i in tokens]


@md.in_eval_mode
def snapshot(model, data):
    """`maps`, by layer and head the weights of the first test sequence as text, and `said`, for
    each question the likeliest answer, its probability, and that of the right answer."""
    tokens, targets = first_test(data)
    maps = attention.attention_maps(model, tokens)
    shares = model(tokens).softmax(-1)[0]  # (T, V)
    said = []
    for place in asked(targets):
        share, word = shares[place].max(0)
        right = shares[place, targets[0, place]]
        (name,) = names([word.item()], data.task_sizes["symbols"])
        said.append([name, round(share.item(), 3), round(right.item(), 3)])
    return dict(maps=[[as_text(head) for head in layer[0]] for layer in maps], said=said)


def as_text(weights):
    """Weights (T, T) up to their diagonal, two digits for each, in percent, 99 at most."""
    kept = weights[torch.ones_like(weights).tril().bool()]
    return "".join(f"{min(99, round(100 * w)):02}" for w in kept.tolist())


def story(runs, until=300):
    """Finished runs on Watched data, of one layer, of two layers …: the sequence, and what each
    model made of it at each of its evaluations until this step, and at the last."""
    data = runs[0].data
    tokens, targets = first_test(data)
    symbols, places = data.task_sizes["symbols"], asked(targets)
    right = names(targets[0, places].tolist(), symbols)
    models = []
    for run in runs:
        steps = []
        for row, seen in zip(run.log, run.data.snapshots):
            if row["step"] <= until or row is run.log[-1]:
                steps.append(dict(step=row["step"], right=row["accuracy"]) | seen)
        models.append(steps)
    names_of_tokens = names(tokens[0].tolist(), symbols)
    return dict(tokens=names_of_tokens, targets=list(zip(places, right)), models=models)
