"""What in the written steps helps? Two layers that write the letters on the way answer any number
of steps along a ring; at once they answer one. The task `written` takes the written steps apart:

    python train.py --study written --seed 0 1 2       seven ways of answering the same questions

A question is a number k and a letter, as in the task `ring`, then places to write in. The ways
differ in what stands at these places, and in which of them have a target:

way        what stands there                 targets
direct     blanks                            the answer, at the question's letter
filler     blanks                            the answer, k - 1 places later
random     letters of the ring, at random    the answer, k - 1 places later
hidden     blanks                            each step at its place, and the answer
given      the true steps                    the answer
backwards  the steps, the last one first     each of them, and the answer
written    the true steps                    each step, and the answer

So `filler` has the time of the written steps without what they say (Pfau, Merrill & Bowman 2024,
arXiv 2404.15758), `hidden` their supervision without anything to read, and `given` something to
read without the supervision. A place reads only what stands before it, so two layers can do one
look-up at each place: the answer then needs the letter before it, written down.
"""

import json
import os
import statistics
import sys
import time

import torch

import minidepth as md
from minidepth_lab import figures, find, results, ring
from minidepth_lab.task import Task, predicted

WAYS = ("direct", "filler", "random", "hidden", "given", "backwards", "written")
ONLY_ANSWER = ("direct", "filler", "random", "given")  # ways without a target on the way

CHANGES = dict(
    data=("written",), sizes=(), block_size=208, n_layers=2, steps=1000, batch_size=32
)  # fmt: skip
PRESETS = {"written": ring.DIRECT | CHANGES}
md.PRESETS.update(PRESETS)


class written(ring.ring):
    """The rings and questions of the task `ring`, all with as many places to write in, answered in
    one of WAYS. A question counts as right if every target of it is, with what the way shows
    before each place, in this question and in those before it.

    `accuracy_by` has for the ways `given`, `backwards` and `written` also `own`: the share of
    answers that are right where the model writes the steps of all questions itself.
    """

    links = Task.links

    def draw(
        self, batch, generator, test=False, letters=16, ring=8, questions=48, lengths=(1, 2, 3),
        way="written", early=0.3, *, opened=None,
    ):  # fmt: skip
        """tokens and targets (batch, 2 ring + questions × (1 + the longest length)). ValueError as
        for `ring`, and for an unknown way."""
        if way not in WAYS:
            raise ValueError(f"way {way!r} is unknown; choose from {', '.join(WAYS)}")
        known = letters, ring, questions, lengths, "written"
        tokens, targets = super().draw(batch, generator, test, *known, opened=opened)
        asked = tokens[:, 2 * ring :].unflatten(1, (questions, -1))  # a view, as the next one
        wanted = targets[:, 2 * ring :].unflatten(1, (questions, -1))  # of place 1: the first step
        k = asked[..., :1] - letters  # (batch, questions, 1)
        place = torch.arange(asked.size(2))
        on_the_way = (place > 1) & (place <= k)
        answer = wanted.gather(2, k)
        if way == "backwards":
            # step j stands at place j + 1; backwards it stands where step k - j would
            mirrored = (k - place + 1).clamp(0, max(lengths))
            steps = torch.where(on_the_way, wanted.gather(2, mirrored), asked)
            wanted[..., 1:-1] = torch.where(place[1:-1] < k, steps[..., 2:], wanted[..., 1:-1])
            asked.copy_(steps)
        if way in ("direct", "filler", "hidden"):
            asked[..., 2:] = letters
        if way == "random":
            drawn = torch.randint(ring, asked.shape, generator=generator).flatten(1)
            drawn = tokens[:, : 2 * ring : 2].gather(1, drawn).view(asked.shape)
            asked.copy_(torch.where(on_the_way, drawn, asked))
        if way in ONLY_ANSWER:
            wanted.fill_(-100)
            wanted.scatter_(2, torch.ones_like(k) if way == "direct" else k, answer)
        return tokens, targets

    def guess(self, ring, lengths, way, **_):
        """Any other letter of the ring, not one that the true steps have shown. Of several targets
        each is guessed."""
        if way in ("backwards", "written"):
            return super().guess(ring, lengths, "written")
        if way == "hidden":
            return statistics.mean((ring - 1) ** -k for k in lengths)
        shown = {k: k - 1 if way == "given" else 0 for k in lengths}
        return statistics.mean(1 / (ring - 1 - shown[k]) for k in lengths)

    def shortcut(self, ring, lengths, way, **_):
        """As answered directly, where nothing on the way can be read; else unknown."""
        if way in ("direct", "filler", "random"):
            return super().shortcut(ring, lengths, "direct")

    def accuracy(self, model, tokens, targets, letters, ring, questions, lengths, way, **_):
        sizes = dict(letters=letters, ring=ring, questions=questions)
        found = super().accuracy(model, tokens, targets, lengths=lengths, way=way, **sizes)
        if way in ("given", "backwards", "written"):
            for length, share in own_steps(model, tokens, targets, lengths, **sizes).items():
                found["accuracy_by"]["lengths"][str(length)]["own"] = share
        return found


def own_steps(model, tokens, targets, lengths, letters, ring, questions):
    """{length: share of answers that are right} where the model writes the steps itself, greedily.

    All places are written at once, again and again, until nothing changes. A place depends only on
    those before it, so each round settles at least one more, and what is left is what the model
    would have written one after another.
    """
    tokens = tokens.clone()
    asked = tokens[:, 2 * ring :].unflatten(1, (questions, -1))  # a view: what is written is read
    k = asked[..., :1] - letters
    place = torch.arange(1, max(lengths))
    while True:
        said = predicted(model, tokens)[:, 2 * ring :].unflatten(1, (questions, -1))
        steps = torch.where(place < k, said[..., 1:-1], letters)
        if torch.equal(steps, asked[..., 2:]):
            break
        asked[..., 2:] = steps
    wanted = targets[:, 2 * ring :].unflatten(1, (questions, -1))
    right = (said.gather(2, k) == wanted.gather(2, k)).float()
    return {length: right[k == length].mean().item() for length in lengths}


def own_of(run_dir):
    """own_steps() of a stored run on its test."""
    model, _ = md.load(run_dir)
    data = find.load_data(md.read_config(run_dir)[1], model.config.block_size)
    tokens, targets = (torch.as_tensor(part).long() for part in data.val)
    sizes = {name: data.task_sizes[name] for name in ("lengths", "letters", "ring", "questions")}
    return own_steps(model, tokens, targets, **sizes)


def rows(preset, settings):
    """{way: its settings}: seven ways of answering."""
    made = {}
    for way in WAYS:
        sizes = find.with_size(settings.get("sizes", ()), "way", way, "written")
        made[way] = settings | dict(sizes=sizes)
    return made


def figure(runs, folder):
    """ways.png of a grid: the median accuracy of each way by the number of steps."""
    found = {}
    for run in runs:
        labels = run["labels"]
        found.setdefault((labels["model"], int(labels["lengths"])), []).append(run["accuracy"])
    ways = [way for way in WAYS if way in {way for way, _ in found}]
    lengths = sorted({length for _, length in found})
    medians = [[statistics.median(found[way, k]) for k in lengths] for way in ways]
    with figures.drawing(os.path.join(folder, "ways.png"), size=(4.6, 3.9)) as (_, axes):
        figures.heat_map(axes, medians, ".2f", vmax=1)
        axes.set_xticks(range(len(lengths)), lengths)
        axes.set_yticks(range(len(ways)), ways)
        n = max(len(shares) for shares in found.values())
        axes.set(xlabel="steps on", title=f"Two layers: accuracy, median of {n} seeds")


def stored():
    """{way: the runs of docs/results/written, by seed}"""
    runs = results.by(results.runs("written"), "way")
    return {way: runs[way] for way in WAYS}


def main(path, *run_dirs):
    """Write own_of() of runs under the names of their folders, with what it was measured on."""
    own = {os.path.basename(run_dir): own_of(run_dir) for run_dir in run_dirs}
    about = dict(date=time.strftime("%Y-%m-%d"), **md.provenance(torch.device("cpu")))
    text = json.dumps(about | dict(own=own), indent=1)
    md.write_file(path, lambda f: f.write(f"{text}\n".encode()))


if __name__ == "__main__":
    main(*sys.argv[1:])
