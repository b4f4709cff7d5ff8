"""Figures: the frame that all are drawn in, those of a grid of runs, and those of attention.

    with figures.drawing("losses.png", 1, 2, (8, 4)) as (figure, (left, right)):
        left.plot(steps, losses)
        figures.heat_map(right, accuracy_by_layer_and_head, ".2f", vmax=1)

`runs` are dicts with `labels` (what tells a run from the others, as text) and numbers, as
sweep.table.records() and the `runs` of a summary.json give them. pyplot is never used: it would
change the backend of a program or notebook that draws figures of its own.
"""

import contextlib
import math
import os
import statistics
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch

from minidepth_lab.base import console
from minidepth_lab.keep import checkpoints
from minidepth_lab.measure.results import METRICS, grouped, interval, published
from minidepth_lab.tasks.ring import LEARNED, layers_that_suffice


@contextlib.contextmanager
def drawing(
    path: console.Path,
    rows: int = 1,
    columns: int = 1,
    size: tuple[float, float] = (6, 4),
    **options: Any,
) -> Iterator[tuple]:
    """Gives a figure of `size` (inches) and its axes, (rows, columns) or one, and writes it as a
    PNG to `path` when done. `options` are those of Figure.subplots()."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    yield figure, figure.subplots(rows, columns, **options)
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with warnings.catch_warnings():
        # a name in letters that the font lacks: the figure shows boxes, which says as much
        warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)
        checkpoints.write(path, lambda file: figure.savefig(file, dpi=150, format="png"))


# ---------- parts of figures ----------

# One layer is blue. More of them go from yellow to red, darker and darker, in the order of their
# depth. Each has a contrast of 3:1 with a light page and with a dark one. docs/site/matplotlibrc
# has the same; they are not named by their places there, as outside the site these have others
DEPTH_COLORS = {1: "C0", 2: "#b58900", 4: "#d4650b", 8: "#d8452f", 12: "#c7356f"}


def ground() -> Any:
    """The map of colours of all heat maps: from the ground of the page, whichever that is, to the
    full colour, so that nothing is where nothing is."""
    from matplotlib.colors import LinearSegmentedColormap

    blue = (0.14, 0.39, 0.72)
    return LinearSegmentedColormap.from_list("ground", [(*blue, 0.0), (*blue, 1.0)])


def color_of(model: object) -> str:
    """The colour that a model has throughout the site: `1 layer`, `12 layers`, `1 wide layer, …`,
    `1 layer, 12 times`. A depth between two of DEPTH_COLORS has that of the lower one."""
    name = str(model)
    if "wide" in name:
        return "C3"
    if "times" in name:
        return "C2"
    n_layers = int(name.split()[0])
    return DEPTH_COLORS[max(depth for depth in DEPTH_COLORS if depth <= n_layers)]


def name_end(axes: Any, x: float, y: float, name: str, color: str, up: float = 0) -> None:
    """Write a line's name where it ends, in its colour, moved `up` by so many points."""
    place = dict(xytext=(6, up), textcoords="offset points", va="center")
    axes.annotate(name, (x, y), color=color, annotation_clip=False, **place)


def draw_dots(axes: Any, x: float, values: Sequence[float], color: str) -> None:
    """Runs as dots at x, and beside them their mean as a square with its 95 % interval."""
    axes.plot([x - 0.08] * len(values), values, "o", color=color, alpha=0.6)
    mean, half = interval(values)
    axes.errorbar(x + 0.08, mean, half if half > 0 else 0, fmt="s", color=color, capsize=3)


def number_ticks(axis: Any, n: int) -> None:
    """Ticks of the numbers from 1 to n, at most 14 of them, on an axis that counts from 0."""
    places = range(0, n, 1 + n // 13)
    axis.set_ticks(places, [place + 1 for place in places])


def heat_map(
    axes: Any,
    rows: Sequence[Sequence[float]],
    form: str | None = None,
    vmax: float | None = None,
    texts: Sequence[Sequence[str]] | None = None,
) -> Any:
    """Rows of numbers, which may differ in length, as colours from 0 up, counted from 1 → the
    image, for a colour bar. In each cell its number, with `form`, or what `texts` has there;
    nothing where the number is NaN."""
    width = max(len(row) for row in rows)
    grid = []
    for row in rows:
        missing = width - len(row)
        grid.append([*row, *[math.nan] * missing])
    image = axes.imshow(grid, vmin=0, vmax=vmax, cmap=ground(), aspect="auto")
    number_ticks(axes.xaxis, width)
    number_ticks(axes.yaxis, len(rows))
    if form:
        texts = [[f"{value:{form}}" for value in row] for row in rows]
    if texts:
        dark = 0.85 * (vmax or 1)  # below it white has less contrast on light than black
        for y, row in enumerate(rows):
            for x, value in enumerate(row):
                if math.isnan(value):
                    continue
                color = "w" if value > dark else None  # None: that of the page's text
                axes.text(x, y, texts[y][x], ha="center", va="center", color=color)
    return image


def draw_stair(axes: Any, before: Sequence[int]) -> None:
    """A line through a heat map from its first row to its last, in each behind so many cells."""
    x, y = [], []
    for row, n_cells in enumerate(before):
        x += [n_cells - 0.5, n_cells - 0.5]
        y += [row - 0.5, row + 0.5]
    axes.plot(x, y, color="C3", linewidth=2)


def draw_points(
    axes: Any,
    x: Sequence[float],
    groups: Sequence[list[dict]],
    metric: str,
    ordered: bool,
    color: str,
    name: str,
) -> None:
    """Each run of each group a point at the group's x, with the group's mean and interval; the
    means joined by a line if the groups are in an order."""
    means, halves = [], []
    for place, rows in zip(x, groups):
        values = [row[metric] for row in rows]
        axes.plot([place] * len(values), values, "o", color=color, alpha=0.4, markersize=4)
        mean, half = interval(values)
        means.append(mean)
        halves.append(half if half > 0 else 0)
    style = "-_" if ordered else "_"
    axes.errorbar(x, means, halves, fmt=style, color=color, capsize=3, label=name or None)


def draw_chance(axes: Any, runs: list[dict], right: float) -> None:
    """Lines at the accuracy of guessing and of the shortcut, named at x = `right`."""
    names = {}  # {accuracy: its name}, one where both are as good
    for key in ("guess", "shortcut"):
        for run in runs:
            if key in run:
                names[run[key]] = key
    place = dict(xytext=(0, 2), textcoords="offset points", ha="right")
    look = dict(color="dimgray", fontsize="small")
    for value, name in names.items():
        axes.axhline(value, color="dimgray", linestyle=":" if name == "guess" else "--")
        axes.annotate(name, (right, value), **place, **look)


def known_to_all(runs: list[dict], *metrics: str) -> list[str]:
    """Those of the metrics that every run has: with only some of them means would mislead."""
    return [metric for metric in metrics if all(metric in run for run in runs)]


# ---------- figures of a grid ----------


def summary_axis(runs: list[dict]) -> str:
    """The label that summary.png has along its x: the layers, or the first if they do not vary."""
    names = [name for name in runs[0]["labels"] if name != "seed"]
    shared = [name for name in names if all(name in run["labels"] for run in runs)]
    if "n_layers" in shared:
        return "n_layers"
    return shared[0] if shared else "seed"


def draw_summary(runs: list[dict], path: console.Path) -> None:
    """Accuracy, where all runs have one, and validation loss over the layers, or the first label if
    they do not vary: each seed a point, and for the other labels a line of means and intervals."""
    panels = known_to_all(runs, "accuracy", "val_loss")
    axis = summary_axis(runs)
    ticks = list(dict.fromkeys(run["labels"][axis] for run in runs))
    curves = {}  # {the other labels: {tick: runs}}
    for key, rows in grouped(runs).items():
        others = ", ".join(f"{name} {value}" for name, value in key if name != axis)
        for row in rows:
            tick = row["labels"][axis]
            curves.setdefault(others, {}).setdefault(tick, []).append(row)
    size = (5 * len(panels), 4)
    with drawing(path, 1, len(panels), size, squeeze=False) as (figure, drawn):
        for metric, axes in zip(panels, drawn[0]):
            for number, (name, points) in enumerate(curves.items()):
                aside = 0.06 * (number - (len(curves) - 1) / 2)  # so that bars do not overlap
                x = [ticks.index(tick) + aside for tick in points]
                groups = points.values()
                draw_points(axes, x, groups, metric, axis != "model", f"C{number}", name)
            axes.set_xlabel(axis)
            axes.set_xticks(range(len(ticks)), ticks)
            if sum(len(tick) for tick in ticks) > 50:
                axes.set_xticks(range(len(ticks)), ticks, rotation=25, ha="right")
            axes.grid(alpha=0.3)
            if metric == "val_loss":
                losses = [run["val_loss"] for run in runs]
                axes.set_yscale("log" if max(losses) > 3 * min(losses) else "linear")
                axes.set_ylabel("validation loss (nats per token)")
            else:
                axes.set(ylabel="accuracy on held-out data (share)", ylim=(-0.03, 1.03))
                draw_chance(axes, runs, len(ticks) - 1)
            if list(curves) != [""]:
                axes.legend(fontsize="small")
        n = counted(grouped(runs))
        figure.suptitle(f"points: runs; bars: mean and 95 % interval, n = {n}", fontsize="medium")


def counted(groups: dict[tuple, list[dict]]) -> str:
    """How many runs each group has, as a title says it: "3", or "2 to 3" where they differ."""
    counts = [len(rows) for rows in groups.values()]
    return " to ".join(map(str, sorted({min(counts), max(counts)})))


def distinct_ticks(axis: Any, values: Iterable[float]) -> None:
    """Ticks at the values, leaving out those so near to the one before that they would overlap."""
    values = sorted(set(values))
    ticks = values[:1]
    for before, value in zip(values, values[1:]):
        if value > 1.2 * before:
            ticks.append(value)
    axis.set_ticks(ticks, labels=[f"{value:,}" for value in ticks])
    axis.set_ticks([], minor=True)


def draw_plane(runs: list[dict], path: console.Path) -> None:
    """The rows of a study by parameters and depth, with the mean and interval of accuracy, or of
    validation loss where not all runs have one."""
    metric, groups = known_to_all(runs, "accuracy", "val_loss")[0], grouped(runs)
    with drawing(path, size=(6, 4.5)) as (_, axes):
        for key, rows in groups.items():
            x, y = rows[0]["params_total"], rows[0]["depth"]
            axes.plot(x, y, "o", markersize=9)
            mean, half = interval([row[metric] for row in rows])
            text = f"{dict(key)['model']}\n{mean:.3f}"
            if half > 0:
                text += f" ± {half:.3f}"
            axes.annotate(text, (x, y), xytext=(0, 9), textcoords="offset points", ha="center")
        axes.set(xscale="log", yscale="log", xlabel="parameters", ylabel="depth (layers applied)")
        distinct_ticks(axes.xaxis, [run["params_total"] for run in runs])
        distinct_ticks(axes.yaxis, [run["depth"] for run in runs])
        axes.margins(0.25, 0.3)
        what = f"{METRICS[metric][0]}: mean and half of its 95 % interval"
        axes.set_title(f"{what}, n = {counted(groups)}", size="medium")
        axes.grid(alpha=0.3)


def draw_problems(runs: list[dict], path: console.Path) -> None:
    """The mean accuracy on each kind of problem for each row of the table. All runs must have been
    asked the same kinds."""
    groups = grouped(runs)
    kinds = list(runs[0]["accuracy_by_problem"])
    means = []
    for kind in kinds:
        values = []
        for rows in groups.values():
            values.append(statistics.mean(run["accuracy_by_problem"][kind] for run in rows))
        means.append(values)
    names = ["\n".join(value for _, value in key) for key in groups]
    longest = max(len(line) for name in names for line in name.split("\n"))
    width = (0.9 + 0.08 * longest) * len(names)
    labels = next(iter(groups))
    with drawing(path, size=(2 + width, 1.5 + 0.4 * len(kinds))) as (_, axes):
        heat_map(axes, means, ".2f", vmax=1)
        axes.set_xticks(range(len(names)), names)
        axes.set_yticks(range(len(kinds)), kinds)
        axes.set(xlabel=", ".join(name for name, _ in labels), ylabel="problems")
        axes.set_title(f"mean accuracy on held-out problems, n = {counted(groups)}")


def draw_by_layers(
    runs: list[dict],
    path: console.Path,
    label: str,
    title: str = "error (share of targets)",
    shortcut: str = "two tokens",
) -> None:
    """The error, 1 - accuracy, as a heat map: a row for each value of a label, which are numbers, a
    column for each number of layers, seeds averaged. If all runs have a `shortcut`, a last column
    under that name is its error. Draws nothing where runs have no such label, layers or accuracy,
    or differ in something else, too.
    """
    for run in runs:
        labels = run["labels"].keys()
        if "accuracy" not in run or not labels - {"seed"} == {label, "n_layers"}:
            return
    errors, of_shortcut = {}, {}
    for run in runs:
        row, column = run["labels"][label], run["labels"]["n_layers"]
        errors.setdefault((row, column), []).append(1 - run["accuracy"])
        if "shortcut" in run:
            of_shortcut[row] = 1 - run["shortcut"]
    rows = sorted({row for row, _ in errors}, key=float)
    columns = sorted({column for _, column in errors}, key=int)
    means = [[statistics.mean(errors.get((r, c), [math.nan])) for c in columns] for r in rows]
    names = list(columns)
    if of_shortcut.keys() == set(rows):
        names.append(shortcut)
        for row, values in zip(rows, means):
            values.append(of_shortcut[row])
    size = (2 + len(names), 1.5 + 0.6 * len(rows))
    with drawing(path, size=size) as (_, axes):
        heat_map(axes, means, ".3f", vmax=1)
        axes.set(xlabel="layers", ylabel=label, title=title)
        axes.set_xticks(range(len(names)), names)
        axes.set_yticks(range(len(rows)), rows)


def draw_learned(
    title: str, by_depth: dict[int, dict[int, dict[int, float]]]
) -> dict[tuple[int, int], tuple[int, int]]:
    """Draw a map of {depth: {seed: {hops: accuracy}}}, with pyplot: how many runs learned so
    many hops at that depth, and as a line where a way to do it is known from, at the runs' width
    → {(hops, depth): (runs that learned it, runs)}"""
    import matplotlib.pyplot as plt

    _, axes = plt.subplots(figsize=(0.5 + 0.62 * len(by_depth), 2.9))
    some_runs = next(iter(by_depth.values()))
    lengths = list(next(iter(some_runs.values())))
    learned = {}
    for k in lengths:
        for depth, runs in by_depth.items():
            good = sum(run[k] >= LEARNED for run in runs.values())
            learned[k, depth] = good, len(runs)
    cells = [[learned[k, depth] for depth in by_depth] for k in lengths]
    shares = [[good / n for good, n in row] for row in cells]
    texts = [[f"{good}/{n}" for good, n in row] for row in cells]
    heat_map(axes, shares, vmax=1, texts=texts)
    for y, k in enumerate(lengths):
        edge = sum(depth < layers_that_suffice(k) for depth in by_depth) - 0.5
        axes.plot([edge, edge], [y - 0.5, y + 0.5], color="C1", linewidth=3)
    axes.set_xticks(range(len(by_depth)), list(by_depth))
    axes.set_yticks(range(len(lengths)), lengths)
    axes.set(xlabel="depth", ylabel="hops asked", title=title)
    return learned


# ---------- attention ----------


def draw_attention(stats: dict[str, Sequence], path: console.Path, title: str) -> None:
    """Heat maps of entropy and sparsity, layer by head; head counts may differ."""
    n_layers = len(stats["entropy"])
    most_heads = max(map(len, stats["entropy"]))
    size = (5 + 0.4 * most_heads, 2 + 0.25 * n_layers)
    units = dict(entropy="nats", sparsity="share below 0.001")
    with drawing(path, 1, 2, size) as (figure, drawn):
        for axes, (name, unit) in zip(drawn, units.items()):
            image = heat_map(axes, stats[name])
            figure.colorbar(image, ax=axes, label=f"{name} ({unit})")
            axes.set(xlabel="head", ylabel="layer")
        figure.suptitle(title, fontsize="medium")


MASKED = 255 / 512  # share of masked entries in the published maps of 256 x 256


def published_profiles() -> dict[str, dict]:
    """Entropy and sparsity by layer of LLmini's A, B and C. What was published counts the masked
    entries, which are all 0; without them it is the share of keys in sight."""
    profiles = {}
    table = published("llmini_attention")
    for model in "abc":
        rows = [row for row in table if row[f"entropy_{model}"] != ""]
        counted = [row[f"sparsity_{model}"] for row in rows]
        profiles[f"LLmini {model.upper()}, published, 256 tokens"] = dict(
            entropy=[row[f"entropy_{model}"] for row in rows],
            counted=counted,
            sparsity=[(share - MASKED) / (1 - MASKED) for share in counted],
        )
    return profiles


def draw_profiles(profiles: dict[str, dict], path: console.Path) -> None:
    """Entropy and sparsity by layer of several runs, beside LLmini's A, B and C."""
    curves = [(name, "-o", profile) for name, profile in profiles.items()]
    curves += [(name, "--s", profile) for name, profile in published_profiles().items()]
    panels = dict(
        entropy="entropy (nats)",
        counted="share below 0.001, masked entries counted",
        sparsity="share below 0.001, of keys in sight",
    )
    with drawing(path, 1, 3, (13, 4.5)) as (figure, drawn):
        for axes, (key, label) in zip(drawn, panels.items()):
            for name, style, profile in curves:
                layers = range(1, len(profile[key]) + 1)
                axes.plot(layers, profile[key], style, label=name, markersize=4)
            axes.set(xlabel="layer", ylabel=label)
            axes.set_ylim(bottom=0)
            axes.xaxis.get_major_locator().set_params(integer=True)
            axes.grid(alpha=0.3)
        handles, labels = drawn[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize="small")


def draw_mechanism(
    maps: list[torch.Tensor], links: dict[str, torch.Tensor], found: dict, path: console.Path
) -> None:
    """For each step the weights of the head that does it most, on one test sequence, with the
    places it should look at circled; and the accuracy without each head. `maps` are the
    attention_maps() of that sequence, `links` the task's links() of it, `found` the mechanism()."""
    size = (4 * len(links) + 3, 4)
    with drawing(path, 1, len(links) + 1, size) as (figure, drawn):
        for axes, (step, link) in zip(drawn, links.items()):
            draw_step(axes, step, link[0], found["steps"][step]["weight"], maps)
        image = heat_map(drawn[-1], found["without"], ".2f", vmax=1)
        title = f"accuracy without a head\n(with all: {found['accuracy']:.2f})"
        drawn[-1].set(title=title, xlabel="head", ylabel="layer")
        figure.colorbar(image, ax=drawn[-1], shrink=0.6)


def draw_step(
    axes: Any, step: str, link: torch.Tensor, weight: list[list[float]], maps: list[torch.Tensor]
) -> None:
    """The map (T, T) of the head whose `weight` is the most, and the places that link (T, T)
    says circled."""
    heads = []
    for layer, row in enumerate(weight):
        heads += [(value, layer, head) for head, value in enumerate(row)]
    most, layer, head = max(heads)
    axes.imshow(maps[layer][0, head].cpu().numpy(), cmap=ground(), vmin=0, vmax=1)
    query, key = link.nonzero().T.numpy()
    axes.plot(key, query, "o", markerfacecolor="none", color="C3", alpha=0.7)
    title = f"{step}: layer {layer + 1}, head {head + 1}\nmean weight on the circles {most:.2f}"
    axes.set(title=title, xlabel="key (place in the sequence)", ylabel="query")
