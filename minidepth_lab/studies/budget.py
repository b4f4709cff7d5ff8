"""Depth or time? A step of twelve layers takes as much CPU time as nearly eight steps of one layer.
This study trains every model for the CPU time of twelve layers, on the main job's problems:

    python train.py --study budget --seed 140 141 142 143 144 145

Steps are counted from COST, which was measured once with one thread, so that the same command is
the same runs everywhere. python -m minidepth_lab.studies.budget measures it anew, each model in
a process of its own, in turns.
"""

import argparse
import dataclasses
import os
import statistics
import subprocess
import sys
import time

import torch

import minidepth as md
from minidepth_lab.base import configs
from minidepth_lab.keep import registry, running
from minidepth_lab.measure import results
from minidepth_lab.measure.results import grouped
from minidepth_lab.rows import to_data
from minidepth_lab.show import figures

# the laptop preset on a CPU, whose times COST has, under a name of its own
PRESETS = {"budget": configs.PRESETS["laptop"] | dict(device="cpu")}

DEEP = "12 layers"
MODELS = {
    "1 layer": dict(n_layers=1),
    "2 layers": dict(n_layers=2),
    "4 layers": dict(n_layers=4),
    DEEP: dict(n_layers=12),
    "1 layer, 12 times": dict(n_layers=1, n_loops=12),
    "1 wide layer": dict(n_layers=1, d_model=172),  # has the parameters of twelve
}
# milliseconds of CPU time per training step, one thread: the median of three times 50 steps,
# 23 November 2026, x86-64, PyTorch 2.13.0, nothing else running. Evaluations are left out
COST = {
    "1 layer": 13.0,
    "2 layers": 21.4,
    "4 layers": 38.1,
    DEEP: 100.3,
    "1 layer, 12 times": 101.7,
    "1 wide layer": 44.0,
}
# what a step's time depends on, and what the study sets itself
FIXED = {field.name for field in dataclasses.fields(configs.ModelConfig)} - {"init_std"}
FIXED |= {"batch_size", "grad_accum", "max_rows", "epochs", "eval_every", "data", "loader"}
FIXED |= {"tokenizer", "tokenizer_size", "packing", "loss_on", "problem_steps", "ring_questions"}
FIXED |= {"device", "precision", "compile", "grad_checkpoint", "fsdp"}
EVALUATIONS = 44  # of every model, so that they lie equally far apart in CPU time


def rows(preset, settings):
    """The six models, each with the steps that take the CPU time of the preset's with twelve
    layers, and with as many training rows as it takes: no row is taken twice. ValueError for
    settings with which a step would take another time than COST says."""
    if preset != "budget":
        raise ValueError(f"--preset {preset} does not work with --study budget; leave it out")
    if given := sorted(FIXED & settings.keys()):
        raise ValueError(f"--{given[0]} does not work with --study budget, which relies on its own")
    _, t = registry.configs(preset, **settings)
    per_step = t.batch_size * t.grad_accum
    made = {}
    for name, model in MODELS.items():
        steps = round(t.steps * COST[DEEP] / COST[name])
        every = max(1, round(steps / EVALUATIONS))
        own = dict(steps=steps, eval_every=every, max_rows=steps * per_step)
        made[name] = settings | model | own
    return made


def model_of(settings):
    """The name of the one of MODELS that has these settings; None if none has."""
    for name, model in MODELS.items():
        wanted = dict(n_loops=1, d_model=PRESETS["budget"]["d_model"]) | model
        if all(settings[key] == value for key, value in wanted.items()):
            return name
    return None


def stored():
    """{model: the runs of docs/results/budget, by seed}."""
    found = {name: [] for name in MODELS}
    for run in results.runs("budget"):
        if name := model_of(run):
            found[name].append(run)
    return {name: sorted(runs, key=lambda run: run["seed"]) for name, runs in found.items()}


def tried():
    """{model: {(learning rate, init_std): validation loss}} of the runs by which settings were
    chosen, docs/results/budget-tuned/tuning.jsonl, one run each."""
    found = {name: {} for name in MODELS}
    for run in results.noted("budget-tuned"):
        if name := model_of(run["settings"]):
            pair = run["settings"]["lr"], run["settings"]["init_std"]
            found[name][pair] = run["val_loss"]
    return {name: losses for name, losses in found.items() if losses}


def show_tried():
    """Print the losses of tried(), a column for each pair of settings."""
    models = tried()
    pairs = sorted(set().union(*models.values()))
    for i, what in enumerate(("learning rate", "init_std")):
        print(f"{what:17}", *(f"{pair[i]:7}" for pair in pairs))
    for name, losses in models.items():
        print(f"{name:17}", *(f"{losses[p]:7.3f}" if p in losses else "      –" for p in pairs))


def learned_at(name, run, family):
    """CPU seconds of training after which a run of one of the MODELS answers 0.9 of the watched
    problems of a family; those of the whole run if it never does."""
    return seconds(name, results.onset(run, family) or run["steps"])


def learned(runs, family):
    """Whether each run ever answered 0.9 of its watched problems of a family."""
    return [results.onset(run, family) is not None for run in runs]


def seconds(name, step):
    """CPU seconds of the first `step` training steps of one of the MODELS."""
    return step * COST[name] / 1000


def milliseconds(runs):
    """That a training step of one model took, the median of all records in its runs' logs."""
    at_once = runs[0]["batch_size"] * runs[0]["grad_accum"] * runs[0]["block_size"]
    speeds = [record["tokens_per_second"] for run in runs for record in run["log"]]
    return 1000 * at_once / statistics.median(speeds)


FAMILIES = dict(lookup="lookups", order="orderings", chain="chains")


def figure(runs, folder):
    """budget.png: draw() of a grid's runs, which need not be all six models."""
    families = families_of(runs)
    if not families:
        return
    models = {dict(key)["model"]: group for key, group in grouped(runs).items()}
    size, path = (4.6, 2.4 * len(families)), os.path.join(folder, "budget.png")
    options = dict(sharex=True, sharey=True, squeeze=False)
    with figures.drawing(path, len(families), 1, size, **options) as (_, axes):
        draw(axes[:, 0], models)


def families_of(runs):
    """The FAMILIES that the logs of the runs, which were all asked the same, tell apart."""
    found = runs[0]["log"][0].get("accuracy_by_family", ())
    return [name for name in FAMILIES if name in found]


def draw(panels, models):
    """Accuracy on the watched problems of each family, a panel each, against CPU seconds: each run
    a thin line, the median of a model's runs a thick one. `models` {name: results()}"""
    families = families_of([run for group in models.values() for run in group])
    for axes, family in zip(panels, families):
        for name, group in models.items():
            draw_model(axes, name, group, family)
        axes.set(ylabel=f"{FAMILIES[family]} answered", ylim=(-0.03, 1.03))
    last = panels[-1]
    last.set_xlabel("CPU seconds of training")
    last.legend(loc="upper center", bbox_to_anchor=(0.5, -0.22), ncols=2)


def draw_model(axes, name, group, family):
    color = figures.color_of(name)
    at = {}  # {seconds: the runs' accuracies}; one that ended early has fewer
    for run in group:
        x = [seconds(name, record["step"]) for record in run["log"]]
        y = [record["accuracy_by_family"][family] for record in run["log"]]
        axes.plot(x, y, color=color, linewidth=0.5, alpha=0.4)
        for place, share in zip(x, y):
            at.setdefault(place, []).append(share)
    median = {x: statistics.median(shares) for x, shares in at.items() if len(shares) == len(group)}
    axes.plot(median.keys(), median.values(), color=color, linewidth=2, label=name)


# ---------- the cost of a step ----------


def measure(name, steps=50, warm=5):
    """Milliseconds of CPU time per training step of one of the MODELS, in this process."""
    torch.set_num_threads(1)
    m, t = configs.of_values(PRESETS["budget"] | MODELS[name] | dict(max_rows=2000))
    data = to_data.load_data(t, m.block_size)
    m = dataclasses.replace(m, vocab_size=data.n_words)
    training = md.Training(m, t, running.model_maker(t, None))
    for step in range(warm + steps):
        if step == warm:
            began = time.process_time()
        training.step(*data.draw(step, t.batch_size * t.grad_accum))
    return 1000 * (time.process_time() - began) / steps


def main(name=None, turns=3):
    """Print the cost of the model called `name`, or of all of them in turns."""
    if name:
        print(f"{measure(name):.1f}")
        return
    found = {name: [] for name in MODELS}
    for _ in range(turns):
        for name in MODELS:
            command = [sys.executable, "-m", "minidepth_lab.studies.budget", name]
            run = subprocess.run(command, capture_output=True, text=True, check=True)
            found[name].append(float(run.stdout))
    for name, costs in found.items():
        print(
            f"{name:20}{statistics.median(costs):8.1f} ms of CPU time per step; stored {COST[name]}"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Measure the CPU time of a step of each model.")
    parser.add_argument("name", nargs="?", choices=MODELS, help="one model alone")
    main(parser.parse_args().name)
