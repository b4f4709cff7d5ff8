"""A map of depth: seven tasks, each with a formula for the layers that a difficulty needs, written
before any run; and small models of one to six layers, of their own or one looped, trained on all
difficulties of a task at once.

    python train.py --study map --seed 0 1 2              63 small models for each seed

A cell is a task, a difficulty and a number of layers. It is called right if the model does as the
formula says: RIGHT of the test's answers or more where the layers are enough, less where not. So a
formula can be wrong on either side: what it takes for possible was not found in this training, or
what it takes for impossible was found.

    python -m minidepth_lab.studies.map RUN_FOLDER … map-longer

looks into published runs: how two layers follow three pointers, and where a step of a path is
found.
"""

import math
import os
import statistics

import torch
import torch.nn.functional as F

import minidepth as md
from minidepth_lab.measure import inspect, results
from minidepth_lab.show import figures
from minidepth_lab.tasks import TASKS
from minidepth_lab.tasks.base.sizes import with_sizes
from minidepth_lab.tasks.pointers import PLACES
from minidepth_lab.tasks.reachability import NODES

DEPTHS = (1, 2, 3, 4, 6)
RIGHT = 0.9  # accuracy from which a cell counts as learned
MAPPED = {  # name on the map: (task, its sizes)
    "pointers": ("pointers", {}),
    "reachability": ("reachability", {}),
    "S5": ("composition", dict(group="S5")),
    "Z60": ("composition", dict(group="Z60")),
    "parity": ("parity", {}),
    "modulo ten": ("modulo", {}),
    "brackets": ("brackets", {}),
}
PRESETS = {
    "map": dict(
        block_size=48, n_layers=2, n_heads=4, d_model=64, d_ff=128, dropout=0.0, init_std=0.1,
        tie_weights=False, data=("parity",), steps=1000, batch_size=32, lr=1e-3, weight_decay=0.0,
        eval_every=250, eval_blocks=200,
    ),
}  # fmt: skip
md.PRESETS.update(PRESETS)


def rows(preset, settings):
    """{"TASK, D layers" or "TASK, D loops": its settings}"""
    made = {}
    for name, (task, sizes) in MAPPED.items():
        given = with_sizes(settings, "map", **sizes)
        own = settings | dict(data=(task,))
        if given:
            own["sizes"] = given
        for depth in DEPTHS:
            made[f"{name}, {depth} layers"] = own | dict(n_layers=depth, n_loops=1)
        for depth in DEPTHS[1:]:  # one loop is one layer
            looped = dict(n_layers=1, n_loops=depth, loop_start="recall")
            made[f"{name}, {depth} loops"] = own | looped
    return made


def formula(name, n):
    """The layers that a difficulty of a task on the map should need."""
    task, sizes = MAPPED[name]
    return TASKS[task].layers_for(n, **sizes)


def cells(runs):
    """{(task on the map, "layers" or "loops", difficulty, depth): median accuracy of the seeds} of
    [(row's name, difficulty, accuracy), …]. One layer counts for both kinds."""
    shares = {}
    for model, n, accuracy in runs:
        name, _, rest = model.rpartition(", ")
        depth, kind = rest.split()
        kinds = ("layers", "loops") if depth == "1" else (kind,)
        for each in kinds:
            shares.setdefault((name, each, int(n), int(depth)), []).append(accuracy)
    return {cell: statistics.median(seeds) for cell, seeds in shares.items()}


def called_right(measured):
    """{(task, kind): (cells that the formula called right, all cells)}. `measured` of cells()"""
    counts = {}
    for (name, kind, n, depth), accuracy in measured.items():
        right, total = counts.get((name, kind), (0, 0))
        right += (accuracy >= RIGHT) == (depth >= formula(name, n))
        counts[name, kind] = right, total + 1
    return counts


def name_on_map(run):
    """The row's name of a stored run, as rows() gives it."""
    for name, (task, sizes) in MAPPED.items():
        if tuple(run["data"]) == (task,) and sizes.items() <= run["sizes_by_name"].items():
            kind = "loops" if run["n_loops"] > 1 else "layers"
            return f"{name}, {run['depth']} {kind}"
    raise ValueError(f"the run {run['id']} is of no task on the map")


def stored(experiment="map", **wanted):
    """[(row's name, difficulty, accuracy), …] of stored runs, for cells()."""
    found = []
    for run in results.runs(experiment, **wanted):
        for n, part in run["accuracy_by"]["n"].items():
            found.append((name_on_map(run), int(n), part["accuracy"]))
    return found


def draw_map(path, measured):
    """A panel for each task and kind: accuracy by difficulty and depth, with the formula's line."""
    names = list(dict.fromkeys(name for name, *_ in measured))
    size = (2.6 * len(names) + 0.4, 5.6)
    with figures.drawing(path, 2, len(names), size, squeeze=False) as (figure, drawn):
        draw_panels(drawn, names, measured)
        right, total = (sum(numbers) for numbers in zip(*called_right(measured).values()))
        figure.suptitle(f"{right} of {total} cells as the formula says (line)", size="medium")


def draw_panels(drawn, names, measured):
    """A column for each task in `drawn`, axes (2, tasks): above layers of its own, below loops."""
    counts = called_right(measured)
    for column, name in enumerate(names):
        for axes, kind in zip(drawn[:, column], ("layers", "loops")):
            draw_panel(axes, name, kind, measured)
            right, total = counts.get((name, kind), (0, 0))
            axes.set_title(f"{name}: {right} of {total}" if total else name, size="medium")
            axes.set(xlabel=kind, ylabel="difficulty" if column == 0 else "")


def draw_panel(axes, name, kind, measured):
    """One task with layers of its own, or with loops of one."""
    of_panel = {cell[2:]: share for cell, share in measured.items() if cell[:2] == (name, kind)}
    if not of_panel:  # this part of the grid was not run
        axes.axis("off")
        return
    difficulties = sorted({n for n, _ in of_panel})
    depths = sorted({depth for _, depth in of_panel})
    shares = [[of_panel.get((n, depth), math.nan) for depth in depths] for n in difficulties]
    figures.heat_map(axes, shares, ".2f", vmax=1)
    axes.set_xticks(range(len(depths)), depths)
    axes.set_yticks(range(len(difficulties)), difficulties)
    too_few = [sum(depth < formula(name, n) for depth in depths) for n in difficulties]
    figures.draw_stair(axes, too_few)


def figure(runs, folder):
    """map.png of a grid."""
    of_cells = [(run["labels"]["model"], run["labels"]["n"], run["accuracy"]) for run in runs]
    draw_map(os.path.join(folder, "map.png"), cells(of_cells))


@torch.no_grad()
def three_jumps(run_dir):
    """How a finished run on pointers with two layers follows three jumps, by the `way`: "back"
    where the place one jump on points to one before it, "ahead" where it points to a later one. On
    600 sequences of the test split:

    right  {what the first layer does not look at, "nothing cut" or a step of the task's links():
           {way: share of the questions that are right; and "1 jump", "2 jumps": of those of so many
           jumps}}
    looks  {way: {"0", "1", "2" or "3": weight that the heads of the second layer give the place so
           many jumps on, in the mean over the questions, of the head that gives most}}
    """
    model, _ = md.load(run_dir)
    task = TASKS["pointers"]
    tokens, targets = task.draw(600, md.generator("three jumps"), test=True)
    links = task.links(tokens, targets)
    nowhere = torch.zeros_like(links["jump 1"])
    asks = slice(PLACES + 1, None, 2)  # where the questions have their place, and their answer
    pointers, path = tokens[:, :PLACES], [tokens[:, asks]]  # (B, questions) each
    for _ in range(3):
        path.append(pointers.gather(1, path[-1]))
    jumps = task.difficulty(tokens, targets, **task.sizes)[:, asks]
    ways = dict(back=(jumps == 3) & (path[2] < path[1]), ahead=(jumps == 3) & (path[2] > path[1]))
    kinds = ways | {"1 jump": jumps == 1, "2 jumps": jumps == 2}

    right = {}
    for name, link in {"nothing cut": nowhere, **links}.items():
        with inspect.without_links(model, 0, link):
            hits = (model(tokens).argmax(-1) == targets)[:, asks]
        right[name] = {kind: hits[asked].float().mean().item() for kind, asked in kinds.items()}

    looks, maps = {}, inspect.attention_maps(model, tokens)
    for way, asked in ways.items():
        looks[way] = {}
        for so_far, at in enumerate(path):
            link = nowhere.clone()
            link[:, asks, :PLACES] = F.one_hot(at, PLACES).bool() & asked[..., None]
            looks[way][str(so_far)] = max(inspect.link_weights(maps, link)[1])
    return dict(right=right, looks=looks)


@torch.no_grad()
def one_step(run_dir):
    """Where a finished run on reachability finds the answer to one step, on 300 sequences of the
    test split:

    next    {"0", "1", …: share of the questions at whose first node the lens reads the next node of
            the path, the target of a hint, after so many layers}
    answer  the same of the answer, at the second node
    look    weight that the heads of the last layer give the first node of a question at its second
            one, in the mean, of the head that gives most
    cut     {"1", "2", …: share of the answers that are right if the second node does not look at
            the first in this layer}
    """
    model, _ = md.load(run_dir)
    drawing = dict(test=True, n=(1,), hinted=True)
    tokens, targets = TASKS["reachability"].draw(300, md.generator("one step"), **drawing)
    known = inspect.known(model, tokens, targets)
    first = torch.arange(2 * (NODES - 2), tokens.size(1), 2)
    shares = {}
    for name, places in (("next", first), ("answer", first + 1)):
        by_depth = (right[:, places].float().mean().item() for right in known)
        shares[name] = {str(depth): share for depth, share in enumerate(by_depth)}
    weights = inspect.attention_maps(model, tokens)[-1]
    look = weights[:, :, first + 1, first].mean((0, 2)).max().item()
    link = torch.zeros(*tokens.shape, tokens.size(1), dtype=torch.bool)
    link[:, first + 1, first] = True
    cut = {}
    for layer in range(model.config.n_layers):
        with inspect.without_links(model, layer, link):
            right = model(tokens).argmax(-1) == targets
        cut[str(layer + 1)] = right[:, first + 1].float().mean().item()
    return dict(shares, look=look, cut=cut)


def inside(run_dir):
    """three_jumps() of a run on pointers, one_step() of one on reachability; ValueError for a run
    of another task."""
    by_task = dict(pointers=three_jumps, reachability=one_step)
    _, train = results.settings_of(run_dir)
    name = " + ".join(train["data"])
    if name not in by_task:
        raise ValueError(f"{run_dir} is a run of {name}; give one of {' or '.join(by_task)}")
    return by_task[name](run_dir)


if __name__ == "__main__":
    results.measuring_command(inside=inside)
