"""What figures show, of invented runs: lines, dots, cells and names as they were when somebody
looked at them. UPDATE=1 keeps what they show now, in drawn.json, for a look at the difference."""

import itertools
import math
import os
from types import SimpleNamespace

import numpy as np
import pytest

from minidepth_lab.keep import registry
from minidepth_lab.measure import results, ring_runs
from minidepth_lab.show import curve, figures, verdict
from minidepth_lab.studies import map as map_study
from minidepth_lab.studies import reread, text_loops

SEEDS = ("0", "1")


def share(*parts):
    """A number between 0 and 1 that follows from what it is of."""
    return sum(map(ord, repr(parts))) * 37 % 101 / 100


def runs(seeds=SEEDS, columns=("accuracy", "val_loss"), **labels):
    """A record for each combination of labels and seed."""
    made = []
    for values in itertools.product(*labels.values(), seeds):
        own = dict(zip([*labels, "seed"], map(str, values)))
        numbers = {name: share(name, *values) for name in columns}
        made.append(dict(labels=own, params_total=1000 * (1 + len(made) % 3), depth=2) | numbers)
    return made


def by_number(models, kind, numbers):
    """Runs of a study's models that have an accuracy for each number."""
    made = runs(model=models)
    for run in made:
        parts = {str(n): dict(accuracy=share(n, run["labels"])) for n in numbers}
        run |= dict(accuracy_by={kind: parts}, sizes=("loops=8",))
        run["log"] = [dict(val_loss_by_loops={n: share(n, run["labels"]) for n in parts})]
    return made


def of_study(name, made):
    return lambda folder: registry.study(name).figure(made, folder)


def on_axes(draw):
    """A figure whose one panel draw(axes) fills."""

    def make(folder):
        with figures.drawing(os.path.join(folder, "one.png")) as (_, axes):
            draw(axes)

    return make


def log(*columns):
    return [dict(step=1 + 9 * i) | {name: share(name, i) for name in columns} for i in range(3)]


def courses(n=2):
    return [dict(log=log("train_loss_eval", "val_loss"), train_loss_eval=share(i), val_loss=0.1 * i)
            for i in range(n)]  # fmt: skip


BY_DEPTH = {d: {s: {k: share(d, s, k) for k in (1, 3)} for s in SEEDS} for d in (1, 2, 4)}
FAMILIES = dict(accuracy_by_family=dict(lookup=0.5, chain=0.25), accuracy=0.4)
FAR = (1, 15, 50, 100, 1000)
FIGURES = {
    "heat map": on_axes(lambda axes: figures.heat_map(axes, [[0.1, 0.9, 0.7], [0.5]], ".1f", 1)),
    "large heat map": on_axes(lambda axes: figures.heat_map(axes, [[1.0] * 30])),
    "points": on_axes(lambda axes: figures.draw_points(
        axes, [0.1, 1.1], [[dict(a=1.0), dict(a=3.0)], [dict(a=5.0)]], "a", True, "C0", "name")),
    "dots": on_axes(lambda axes: (figures.draw_dots(axes, 3, [1.0, 3.0], "C0"),
                                  figures.draw_dots(axes, 4, [1.0], "C1"),
                                  figures.name_end(axes, 3, 2.0, "a line", "C0", up=5))),
    "problems": lambda folder: figures.draw_problems(
        [run | dict(accuracy_by_problem={"lookup 1": run["accuracy"], "lookup 2": run["val_loss"]})
         for run in runs(n_layers=(2, 4), answer=("direct", "thinking"))], f"{folder}/a.png"),
    "by layers": lambda folder: figures.draw_by_layers(
        [run | dict(shortcut=1 / int(run["labels"]["hops"]))
         for run in runs(hops=(10, 2), n_layers=(2, 12))][:6], f"{folder}/a.png", "hops"),
    "by layers, no shortcut": lambda folder: figures.draw_by_layers(
        runs(hops=(10, 2), n_layers=(2, 12)), f"{folder}/a.png", "hops", title="error of hops"),
    "settings apart": lambda folder: figures.draw_by_layers(
        runs(hops=(10, 2), n_layers=(1, 2), lr=("0.1", "0.2")), f"{folder}/a.png", "hops"),
    "no layers": lambda folder: figures.draw_by_layers(runs(hops=(10, 2)), f"{folder}/a.png", "n"),
    "summary": lambda folder: figures.draw_summary(
        [run | dict(guess=0.1, shortcut=0.3) for run in runs(d_model=(8, 16), n_layers=(1, 2, 4))],
        f"{folder}/a.png"),
    "summary of losses": lambda folder: figures.draw_summary(
        runs(columns=("val_loss",), model=[f"a model of {n} layers, by name" for n in (1, 2, 4)]),
        f"{folder}/a.png"),
    "plane": lambda folder: figures.draw_plane(runs(model="ABC"), f"{folder}/a.png"),
    "profiles": lambda folder: figures.draw_profiles(
        dict(own=dict.fromkeys(("entropy", "counted", "sparsity"), [0.5] * 20)), f"{folder}/a.png"),
    "learned": lambda folder: figures.draw_learned("a title", BY_DEPTH),
    "courses": on_axes(lambda axes: ring_runs.draw_courses(axes, [dict(log=[
        dict(step=n, accuracy_by=dict(lengths={"2": dict(accuracy=share(n))})) for n in (1, 9)])],
        2, "C1")),
    "ring, loops": of_study("ring", [run | dict(depth=int(run["labels"]["model"][0]), guess=0.1)
        for run in runs(model=("1 loop", "2 loops", "3 loops"), lengths=(1, 2, 4))]),
    "ring, layers": of_study("ring", [run | dict(depth=int(run["labels"]["model"][0]), guess=0.1)
        for run in runs(model=("2 layers", "3 layers", "4 layers"), lengths=(1, 2, 4))]),
    "strides": of_study("strides", runs(model=[f"stride {m}, loops {n}" for m in (1, 2) for n in
                                               (1, 2, 3)])),
    "written": of_study("written", runs(model=("written", "filler"), lengths=(1, 3))),
    "map": lambda folder: map_study.draw_map(f"{folder}/a.png", map_study.cells(
        [(f"{task}, {depth} {kind}", n, share(task, n, depth)) for task in ("S5", "parity")
         for n in (4, 16) for depth, kind in ((1, "layers"), (2, "layers"), (2, "loops"))])),
    "walk": of_study("walk", by_number(("8 hops, ring of 16", "hops: 4"), "hops", FAR)),
    "sums": of_study("sums", by_number(("additions: 4", "ring: 8"), "additions", FAR)),
    "hold": of_study("hold", by_number(("loops: 8", "start: state"), "loops", FAR)),
    "program": of_study("program", by_number(("kept", "plain"), "hops", FAR)),
    "text loops": of_study("text_loops", by_number(("1 layer, recall", "4 layers, state"), "loops",
                                                   (1, 8, 32))),
    "text loops, drawn": on_axes(lambda axes: text_loops.draw_by_loops(
        axes, {"1 layer, recall": [{1: 5.0, 8: 4.0}, {1: 6.0, 8: 4.5}]}, None)),
    "heads": of_study("heads", runs(columns=("val_loss", "tokens_per_second"), model=[
        f"{row['group']}: {row['scheme']} {row['heads']}"
        for row in results.published("heads_schedules")])),
    "budget": of_study("budget", [run | dict(log=[
        dict(step=n, accuracy_by_family=dict(lookup=share(n), order=0.1 * n)) for n in (1, 5)])
        for run in runs(model=("1 layer", "12 layers"))]),
    "fit": on_axes(lambda axes: reread.draw_fit(axes, "1 layer, 12 times", courses())),
    "curve": lambda folder: curve.draw_run(folder, log("train_loss", "val_loss"), 2, ("a",)),
    "the report's": lambda folder: curve.draw_run(
        folder, log("train_loss", "val_loss"), 12, ("wop/XXXXXL-chain-of-thought",)),
    "curve with answers": lambda folder: curve.draw_run(folder, [
        record | FAMILIES | dict(guess=0.2, accuracy_by=dict(hops={n: dict(accuracy=share(n))
        for n in (1, 50)})) for record in log("train_loss", "val_loss")], 2, ("a",)),
    "curves of a verdict": lambda folder: verdict.draw_curves(
        SimpleNamespace(plan=SimpleNamespace(request=SimpleNamespace(n_layers=4))),
        [dict(budget=budget, arm=arm, log=log("accuracy")) for budget, arm in (
            ("steps", "one"), ("steps", "one"), ("steps", "deep"), ("time", "one"))],
        f"{folder}/a.png"),
    "curves": lambda folder: curve.draw_logs(
        {name: [record | FAMILIES for record in log("train_loss", "val_loss")] for name in "ab"},
        f"{folder}/a.png", train=False),
}  # fmt: skip


def plain(value):
    """Numbers of any kind, lists of them, and what is not there, as JSON has them."""
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(each) for each in np.ma.filled(np.ma.asarray(value, dtype=float), math.nan)]
    return None if math.isnan(value) else float(f"{value:.4g}")


def shown(figure):
    """What a figure shows, panel by panel."""
    panels = []
    for axes in figure.axes:
        legend = axes.get_legend()
        panels.append(dict(
            title=axes.get_title(), names=[axes.get_xlabel(), axes.get_ylabel()],
            scales=[axes.get_xscale(), axes.get_yscale()],
            limits=plain([axes.get_xlim(), axes.get_ylim()]),
            ticks=[[plain(axis.get_majorticklocs()), [t.get_text() for t in axis.get_ticklabels()]]
                   for axis in (axes.xaxis, axes.yaxis)],
            lines=[[str(line.get_color()), line.get_linestyle(), line.get_marker(),
                    plain(line.get_xydata())] for line in axes.lines],
            bars=[plain(path.vertices) for each in axes.collections for path in each.get_paths()],
            cells=[[plain(image.get_array()), plain(image.get_clim())] for image in axes.images],
            texts=[[plain(text.get_position()), text.get_text(), text.get_color()]
                   for text in axes.texts],
            patches=[plain(patch.get_extents().bounds) for patch in axes.patches],
            legend=[text.get_text() for text in legend.get_texts()] if legend else None,
        ))  # fmt: skip
    return dict(title=figure.get_suptitle(), panels=panels,
                legends=[t.get_text() for each in figure.legends for t in each.get_texts()],
                )  # fmt: skip


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_shows_what_it_showed(name, tmp_path, monkeypatch, kept, golden):
    import matplotlib.pyplot as plt

    monkeypatch.setattr(plt, "show", lambda: None)
    before = plt.get_fignums()
    folder = tmp_path / "run"  # its name is in some legends
    folder.mkdir()
    told = FIGURES[name](str(folder))
    kept += [plt.figure(number) for number in plt.get_fignums() if number not in before]
    try:
        golden(f"figure: {name}", [str(told), *map(shown, kept)])
    finally:
        plt.close("all")
