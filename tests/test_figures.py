"""Figures: what they show, and that drawing them disturbs nobody."""

import math
import pathlib
import types

import matplotlib
import pytest

import minidepth as md
from minidepth_lab.base import configs
from minidepth_lab.keep import check
from minidepth_lab.measure import results
from minidepth_lab.show import curve, figures

SITE = pathlib.Path(__file__).parents[1] / "docs" / "site"


@pytest.fixture
def maps(monkeypatch):
    """The (axes, rows) that heat_map() was called with."""
    seen, real = [], figures.heat_map

    def see(axes, rows, *others, **options):
        seen.append((axes, rows))
        return real(axes, rows, *others, **options)

    monkeypatch.setattr(figures, "heat_map", see)
    return seen


def ticks(axis):
    return [text.get_text() for text in axis.get_ticklabels()]


def test_drawing_leaves_the_programs_backend_and_figures_alone(tmp_path):
    import matplotlib.pyplot as plt

    before = matplotlib.get_backend()
    matplotlib.use("svg")  # a program's own choice
    try:
        n = plt.get_fignums()
        with figures.drawing(tmp_path / "new" / "figure.png", 1, 2) as (figure, (left, right)):
            left.plot([1, 2])
        assert matplotlib.get_backend() == "svg" and plt.get_fignums() == n
    finally:
        matplotlib.use(before)
    assert (tmp_path / "new" / "figure.png").read_bytes().startswith(b"\x89PNG")


def test_a_name_in_other_letters_draws_no_warning(tmp_path, recwarn, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with figures.drawing("a.png") as (_, axes):  # a path without a folder
        axes.set_title("深度")
    assert (tmp_path / "a.png").stat().st_size > 1000
    assert not [w for w in recwarn if "Glyph" in str(w.message)]


def test_a_heat_map_says_in_its_cells_what_it_is_told(tmp_path):
    with figures.drawing(tmp_path / "map.png") as (_, axes):
        figures.heat_map(axes, [[0.1, 0.9]], vmax=1, texts=[["1 of 10", "9 of 10"]])
    assert [(text.get_text(), text.get_color()) for text in axes.texts] == [
        ("1 of 10", "black"),  # the colour of all text, on the ground
        ("9 of 10", "w"),
    ]


def test_every_number_in_a_heat_map_can_be_read(tmp_path):
    """Its contrast with its cell, on a light page; on a dark one all of the text is light."""
    from matplotlib.colors import to_rgb

    values = [i / 50 for i in range(51)]
    with figures.drawing(tmp_path / "map.png") as (_, axes):
        figures.heat_map(axes, [values], ".2f", vmax=1)
        inks = [text.get_color() for text in axes.texts]
    for value, ink in zip(values, inks, strict=True):
        *color, opacity = figures.ground()(value)
        cell = [1 - opacity + opacity * c for c in color]
        assert contrast(cell, to_rgb(ink)) > 4.3, (value, ink)


def test_a_heat_map_of_rows_of_different_lengths(tmp_path):
    with figures.drawing(tmp_path / "map.png") as (_, axes):
        image = figures.heat_map(axes, [[0.1, 0.9, 0.7], [0.5]], ".1f", vmax=1)
        shown = image.get_array().filled(math.nan).tolist()
        assert shown[0] == [0.1, 0.9, 0.7] and shown[1][0] == 0.5
        assert all(math.isnan(value) for value in shown[1][1:])
        texts = [(t.get_position(), t.get_text(), t.get_color()) for t in axes.texts]
        assert texts == [
            ((0, 0), "0.1", "black"), ((1, 0), "0.9", "w"), ((2, 0), "0.7", "black"),
            ((0, 1), "0.5", "black"),
        ]  # fmt: skip
        assert ticks(axes.xaxis) == ["1", "2", "3"] and ticks(axes.yaxis) == ["1", "2"]
        assert image.get_clim() == (0, 1)
    with figures.drawing(tmp_path / "large.png") as (_, axes):
        figures.heat_map(axes, [[1.0] * 30])
        assert not axes.texts and ticks(axes.xaxis)[:3] == ["1", "4", "7"]


def test_a_stair_stands_behind_so_many_cells_of_each_row(tmp_path):
    with figures.drawing(tmp_path / "stair.png") as (_, axes):
        figures.draw_stair(axes, [1, 3])
    (line,) = axes.lines  # a cell has its number in its middle
    assert line.get_xydata().tolist() == [[0.5, -0.5], [0.5, 0.5], [2.5, 0.5], [2.5, 1.5]]


def test_problems_are_drawn_by_kind_and_row_of_the_table(tmp_path, maps):
    found = {("2", "direct"): [(0.1, 0.2), (0.5, 0.4)], ("2", "thinking"): [(1, 0.9), (0.7, 1)]}
    runs = [
        dict(
            labels=dict(n_layers=layers, answer=answer, seed=str(seed)),
            accuracy_by_problem={"lookup 1": one, "lookup 2": two},
        )
        for (layers, answer), pairs in found.items()
        for seed, (one, two) in enumerate(pairs)
    ]
    figures.draw_problems(runs, tmp_path / "problems.png")
    ((axes, rows),) = maps
    assert rows == [pytest.approx([0.3, 0.85]), pytest.approx([0.3, 0.95])]
    assert ticks(axes.xaxis) == ["2\ndirect", "2\nthinking"]
    assert ticks(axes.yaxis) == ["lookup 1", "lookup 2"]
    assert axes.get_xlabel() == "n_layers, answer" and "n = 2" in axes.get_title()
    assert (tmp_path / "problems.png").exists()


def test_errors_by_layers_have_a_row_for_each_value_and_the_shortcut_last(tmp_path, maps):
    runs = []
    for hops, accuracies in (("10", (0.5, 0.7)), ("2", (0.9, 1.0))):
        for layers in ("2", "12"):
            for seed, accuracy in enumerate(accuracies):
                labels = dict(n_layers=layers, hops=hops, seed=str(seed))
                runs.append(dict(labels=labels, accuracy=accuracy, shortcut=1 / int(hops)))
    del runs[6:]  # 12 layers with 2 hops were not trained
    figures.draw_by_layers(runs, tmp_path / "hops.png", "hops", title="error of hops")
    ((axes, rows),) = maps
    assert rows[0] == [pytest.approx(0.05), pytest.approx(math.nan, nan_ok=True), 0.5]
    assert rows[1] == [pytest.approx(0.4), pytest.approx(0.4), 0.9]
    assert ticks(axes.xaxis) == ["2", "12", "two tokens"] and ticks(axes.yaxis) == ["2", "10"]
    assert axes.get_ylabel() == "hops" and axes.get_title() == "error of hops"
    assert [text.get_text() for text in axes.texts[:2]] == ["0.050", "0.500"]  # nothing between
    for run in runs:
        del run["shortcut"]
    figures.draw_by_layers(runs, tmp_path / "hops.png", "hops")
    assert ticks(maps[1][0].xaxis) == ["2", "12"]
    # nothing to draw: without accuracies, layers, or such a label
    del runs[0]["accuracy"]
    for label, those in (("hops", runs), ("pairs", runs[1:])):
        figures.draw_by_layers(those, tmp_path / "none.png", label)
    del runs[1]["labels"]["n_layers"]
    figures.draw_by_layers(runs[1:], tmp_path / "none.png", "hops")
    assert not (tmp_path / "none.png").exists()


def drawn_summary(runs, path, monkeypatch):
    """What draw_points() was called with for a summary figure of runs, a tuple a curve."""
    curves, real = [], figures.draw_points
    with monkeypatch.context() as patched:
        patched.setattr(figures, "draw_points", lambda *all: curves.append(all) or real(*all))
        figures.draw_summary(runs, path)
    return curves


def test_the_summary_has_a_curve_for_the_other_labels_and_a_panel_for_what_all_have(
    tmp_path, monkeypatch, kept
):
    runs = []
    for width in ("8", "16"):
        for layers in ("1", "2", "4"):
            for seed in ("0", "1"):
                labels = dict(d_model=width, n_layers=layers, seed=seed)
                runs.append(dict(labels=labels, accuracy=0.5, val_loss=1.0, guess=0.1))
    found = drawn_summary(runs, tmp_path / "summary.png", monkeypatch)
    assert [(each[3], each[-1]) for each in found] == [
        ("accuracy", "d_model 8"), ("accuracy", "d_model 16"),
        ("val_loss", "d_model 8"), ("val_loss", "d_model 16"),
    ]  # fmt: skip
    assert all([len(group) for group in each[2]] == [2, 2, 2] for each in found)
    assert found[0][1] == pytest.approx([-0.03, 0.97, 1.97])
    assert ticks(found[0][0].xaxis) == ["1", "2", "4"]
    accuracy, loss = found[0][0], found[2][0]
    assert [text.get_text() for text in accuracy.texts] == ["guess"] and not loss.texts
    assert kept[0].get_suptitle().endswith("n = 2")
    assert loss.get_yscale() == accuracy.get_yscale() == "linear"
    assert loss.get_xlabel() == accuracy.get_xlabel() == "n_layers"
    assert "share" in accuracy.get_ylabel() and "nats per token" in loss.get_ylabel()
    for panel in (accuracy, loss):
        named = [text.get_text() for text in panel.get_legend().get_texts()]
        assert named == ["d_model 8", "d_model 16"]
    low, high = accuracy.get_ylim()
    assert low <= 0 and high >= 1  # whatever the runs' shares
    del runs[-1]["accuracy"]
    runs[0]["val_loss"] = 4.0  # far from the others
    found = drawn_summary(runs, tmp_path / "summary.png", monkeypatch)
    assert [each[3] for each in found] == ["val_loss", "val_loss"]
    assert found[0][0].get_yscale() == "log"
    for run in runs:  # long names lean, so that they do not overlap, and one line needs no name
        run["labels"] = dict(model=f"a model of {run['labels']['n_layers']} layers or so, by name")
    ((axes, *_),) = drawn_summary(runs, tmp_path / "summary.png", monkeypatch)
    assert axes.get_xticklabels()[0].get_rotation() > 0 and axes.get_legend() is None


def test_the_plane_is_of_what_all_runs_have(tmp_path, kept):
    runs = []
    for model, params in (("A", 2000), ("B", 1000)):
        for seed in ("0", "1"):
            found = dict(accuracy=0.5, val_loss=1.5, params_total=params, depth=2)
            runs.append(dict(labels=dict(model=model, seed=seed), **found))
    figures.draw_plane(runs, tmp_path / "all.png")
    del runs[-1]["accuracy"]
    figures.draw_plane(runs, tmp_path / "some.png")
    (every,), (some,) = (figure.axes for figure in kept)
    assert every.get_title().startswith("accuracy: mean")
    assert [text.get_text() for text in every.texts] == ["A\n0.500", "B\n0.500"]
    assert some.get_title().startswith("validation loss: mean")
    assert ticks(every.xaxis) == ["1,000", "2,000"] and ticks(every.yaxis) == ["2"]
    assert not every.xaxis.get_minorticklocs().size  # whose labels would stand among these
    assert every.get_xscale() == every.get_yscale() == "log"
    assert every.get_xlabel() == "parameters" and every.get_ylabel().startswith("depth")
    assert [line.get_xydata().tolist() for line in every.lines] == [[[2000, 2]], [[1000, 2]]]
    runs[0]["accuracy"], runs[-1]["accuracy"] = 0.4, 0.5
    figures.draw_plane(runs, tmp_path / "apart.png")
    # Student's t for one degree of freedom is 12.706, the standard error 0.05
    assert kept[2].axes[0].texts[0].get_text() == "A\n0.450 ± 0.635"


def test_each_run_is_a_point_with_the_mean_and_interval_of_its_group(tmp_path):
    with figures.drawing(tmp_path / "points.png") as (_, axes):
        groups = [[dict(loss=1.0), dict(loss=3.0)], [dict(loss=5.0)]]
        figures.draw_points(axes, [0.1, 1.1], groups, "loss", True, "C0", "a name")
        (bars,) = axes.containers
        assert bars.lines[0].get_ydata().tolist() == [2.0, 5.0]
        low, high = bars.lines[1]
        # Student's t for one degree of freedom is 12.706, the standard error 1; none of one run
        assert high.get_ydata().tolist() == pytest.approx([2 + 12.706, 5.0], rel=1e-4)
        assert low.get_ydata().tolist() == pytest.approx([2 - 12.706, 5.0], rel=1e-4)
        assert [line.get_ydata().tolist() for line in axes.lines[:2]] == [[1.0, 3.0], [5.0]]


def test_a_model_has_one_colour_by_whatever_page_it_is_drawn():
    names = ["1 layer", "1 wide layer", "1 wide layer, tuned", "1 layer, 12 times"]
    assert [figures.color_of(name) for name in names] == ["C0", "C3", "C3", "C2"]
    assert figures.color_of(1) == "C0" and figures.color_of(12) == figures.color_of("12 layers")
    by_depth = [figures.color_of(f"{n} layers") for n in (2, 3, 4, 8, 12, 24)]
    assert by_depth[0] == by_depth[1] and by_depth[4] == by_depth[5]  # as the depth below
    assert len(set(by_depth)) == 4


def luminance(color):
    """The relative luminance of an RGB colour, as WCAG defines it."""
    parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in color]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def contrast(one, other):
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_lines_of_every_depth_stand_out_and_get_darker_with_it():
    """Contrasts with the grounds of the site, and that the site's colours are those of the code."""
    from matplotlib.colors import to_hex, to_rgb

    with matplotlib.rc_context():
        matplotlib.rc_file(SITE / "matplotlibrc")
        cycle = matplotlib.rcParams["axes.prop_cycle"].by_key()["color"]
        depths = [to_rgb(color) for color in figures.DEPTH_COLORS.values()]
    lines = [to_rgb(color) for color in cycle]
    assert set(depths) <= set(lines)  # else docs/site/render.py leaves the names as pale as lines
    for ground in ("#ffffff", "#1e2129"):  # of the theme's light pages and of its dark ones
        assert min(contrast(line, to_rgb(ground)) for line in lines) >= 3
    light = [luminance(color) for color in depths[1:]]
    assert light == sorted(light, reverse=True)
    script = (SITE.parent / "assets" / "seeds.js").read_text()
    assert all(to_hex(color) in script for color in depths)


def test_dots_stand_beside_their_mean_and_interval(tmp_path):
    with figures.drawing(tmp_path / "dots.png") as (_, axes):
        figures.draw_dots(axes, 3, [1.0, 3.0], "C0")
        dots, mean = axes.lines[0], axes.containers[0]
        assert dots.get_ydata().tolist() == [1.0, 3.0] and set(dots.get_xdata()) == {2.92}
        assert mean.lines[0].get_xydata().tolist() == [[3.08, 2.0]]
        high = mean.lines[1][1].get_ydata().tolist()
        assert high == pytest.approx([2 + 12.706], rel=1e-4)
        figures.draw_dots(axes, 4, [1.0], "C0")  # of one run there is no interval
        assert axes.containers[1].lines[1][1].get_ydata().tolist() == [1.0]
        figures.name_end(axes, 3, 2.0, "a line", "C0", up=5)
        assert [(text.get_text(), text.xy) for text in axes.texts] == [("a line", (3, 2.0))]


def test_chance_is_named_once_where_guessing_is_as_good_as_the_shortcut(tmp_path):
    with figures.drawing(tmp_path / "chance.png") as (_, axes):
        figures.draw_chance(axes, [dict(guess=0.1), dict(guess=0.1, shortcut=0.4)], 2)
        names = [(text.get_text(), text.xy) for text in axes.texts]
        assert names == [("guess", (2, 0.1)), ("shortcut", (2, 0.4))]
        lines = [(line.get_ydata()[0], line.get_linestyle()) for line in axes.lines]
        assert lines == [(0.1, ":"), (0.4, "--")]
    with figures.drawing(tmp_path / "chance.png") as (_, axes):
        figures.draw_chance(axes, [dict(guess=0.1, shortcut=0.1)], 2)
        assert [text.get_text() for text in axes.texts] == ["shortcut"]


def test_a_curve_has_plain_numbers_and_names_its_lines():
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    rows = [(1, 6.2, 0.0), (10, 3.3, 0.1), (25, 2.1, 0.4)]
    log = [
        dict(step=step, train_loss=x, val_loss=x, accuracy=share, accuracy_by_family=dict(a=share))
        for step, x, share in rows
    ]
    log[-1]["guess"] = 0.2
    figure, (left, right) = pyplot.subplots(1, 2)
    curve.draw_losses(left, dict(run=log))
    curve.draw_accuracy(right, log)
    figure.canvas.draw()
    ticks = [label.get_text() for label in left.get_yticklabels(which="both")]
    assert {"3", "4", "6"} <= set(ticks) and not any("10" in tick for tick in ticks if tick != "10")
    left.set_ylim(0.001, 10)  # where labels between powers of ten would overlap
    assert not any(label.get_text() for label in left.get_yticklabels(minor=True))
    assert right.get_ylim()[0] < 0 and right.get_ylim()[1] > 1  # the same for all runs
    named = [text.get_text() for text in right.get_legend().get_texts()]
    pyplot.close(figure)
    assert named == ["all", "a", "guessing"]


@pytest.mark.parametrize(
    "n_layers, data, lines",
    [(12, md.REPORT_DATA, ["run", "published"]), (2, md.REPORT_DATA, ["run"]), (12, "a", ["run"])],
)
def test_the_reports_runs_stand_beside_the_published_ones(n_layers, data, lines, tmp_path, kept):
    log = [dict(step=1, train_loss=2.0, val_loss=3.0)]
    model = types.SimpleNamespace(config=configs.ModelConfig(n_layers=n_layers))
    run = types.SimpleNamespace(model=model, dir=str(tmp_path / "_run"), log=log)
    curve.draw_curve(run, configs.TrainConfig(data=(data,)))
    named = [text.get_text() for text in kept[0].axes[0].get_legend().get_texts()]
    kinds = ("train, one batch", "validation")
    assert named == [f"{line}: {kind}" for line in lines for kind in kinds]


def test_a_figure_that_fails_without_a_word_is_told_by_the_kind_of_its_error(capsys):
    with check.drawn("curve.png"):
        raise NotImplementedError
    assert "curve.png could not be drawn: NotImplementedError\n" in capsys.readouterr().err


def test_a_walks_curve_has_its_last_accuracy_by_hops(tmp_path, kept):
    run = results.runs("walk", ring=16, hops=8, loop_start="state")[0]
    curve.draw_logs({"run": run["log"]}, tmp_path / "curve.png")
    curve.draw_logs({"a": run["log"], "b": run["log"]}, tmp_path / "two.png", train=False)
    losses, accuracy, right = kept[0].axes
    named = [text.get_text() for text in losses.get_legend().get_texts()]
    assert named == ["run: train, one batch", "run: validation"] and losses.get_yscale() == "log"
    assert losses.get_xlabel() == accuracy.get_xlabel() == "optimizer step"
    assert "nats per token" in losses.get_ylabel() and "share" in accuracy.get_ylabel()
    steps = [row["step"] for row in run["log"]]
    for line, key in zip(losses.lines, ("train_loss", "val_loss"), strict=True):
        assert list(line.get_xdata()) == steps
        assert list(line.get_ydata()) == [row[key] for row in run["log"]]
    (line,) = right.lines
    shares = dict(zip(line.get_xdata(), line.get_ydata()))
    hops = run["accuracy_by"]["hops"]
    assert shares == {int(n): part["accuracy"] for n, part in hops.items()} and 1000 in shares
    assert right.get_xlabel() == "hops, after the last step" and right.get_xscale() == "log"
    assert "share" in right.get_ylabel() and right.get_ylim() == accuracy.get_ylim()
    assert {"1", "10", "1000"} <= set(ticks(right.xaxis))  # and not 10³
    assert len(kept[1].axes) == 2  # of several runs there is no such panel
    for panel, key in zip(kept[1].axes, ("val_loss", "accuracy")):
        for line in panel.lines:
            assert list(line.get_ydata()) == [row[key] for row in run["log"]]
        assert len(panel.lines) == len(panel.get_legend().get_texts()) == 2
    assert kept[1].axes[1].get_ylabel() == accuracy.get_ylabel()
    log = [row | dict(accuracy_by=dict(hops={"8": dict(accuracy=0.5)})) for row in run["log"]]
    curve.draw_logs({"run": log}, tmp_path / "one.png")
    assert len(kept[2].axes) == 2  # nor of one number
    curve.draw_logs({"run": [row | dict(accuracy=None) for row in log]}, tmp_path / "losses.png")
    assert len(kept[3].axes) == 1  # and none without an accuracy
    few = dict(hops={str(n): dict(accuracy=1 / n) for n in (1, 2, 3)})
    log = [row | dict(accuracy_by=few) for row in run["log"]]
    curve.draw_logs({"run": log}, tmp_path / "few.png")
    right = kept[4].axes[2]
    assert right.get_xscale() == "linear" and all(x == round(x) for x in right.get_xticks())


@pytest.mark.parametrize("of_its_own", [[0.5], {"n": {"1": 0.5}}, {"n": [1]}, {"kind": {"a": {}}}])
def test_a_task_of_ones_own_may_have_its_accuracies_in_another_form(of_its_own):
    assert curve.last_by_number([dict(accuracy_by=of_its_own)]) == ("", {})
    assert curve.last_by_number([{}]) == ("", {})
    in_memory = dict(n={2: dict(accuracy=0.5), 3: dict(accuracy=0.25)})
    assert curve.last_by_number([dict(accuracy_by=in_memory)]) == ("n", {2: 0.5, 3: 0.25})
