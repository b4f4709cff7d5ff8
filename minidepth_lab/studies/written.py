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
lookup at each place: the answer then needs the letter before it, written down.
"""

import os
import statistics

import torch

from minidepth_lab.keep import checkpoints, registry
from minidepth_lab.measure import results
from minidepth_lab.show import figures
from minidepth_lab.studies import ring
from minidepth_lab.tasks.base.sizes import with_sizes
from minidepth_lab.tasks.written import WAYS, own_steps

CHANGES = dict(
    data=("written",), sizes=(), block_size=208, n_layers=2, steps=1000, batch_size=32
)  # fmt: skip
PRESETS = {"written": ring.DIRECT | CHANGES}


def own_of(run_dir):
    """own_steps() of a finished run on its test. ValueError for a run of another task."""
    results.trained_on("written", run_dir)
    model, _ = checkpoints.load(run_dir)
    data = registry.data_of(checkpoints.read_config(run_dir)[1], model.config.block_size)
    tokens, targets = (torch.as_tensor(part).long() for part in data.val)
    sizes = {name: data.task_sizes[name] for name in ("lengths", "letters", "ring", "questions")}
    return own_steps(model, tokens, targets, **sizes)


def rows(preset, settings):
    """{way: its settings}: seven ways of answering."""
    made = {}
    for way in WAYS:
        sizes = with_sizes(settings, "written", way=way)
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


if __name__ == "__main__":
    results.measuring_command(own=own_of)
