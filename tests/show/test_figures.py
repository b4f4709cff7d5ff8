"""Figures: what they show, and that drawing them disturbs nobody."""

import math
import pathlib

import matplotlib
import pytest

from minidepth_lab.show import curve, figures, why

SITE = pathlib.Path(__file__).parents[2] / "docs" / "site"


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


@pytest.mark.parametrize("of_its_own", [[0.5], {"n": {"1": 0.5}}, {"n": [1]}, {"kind": {"a": {}}}])
def test_a_task_of_ones_own_may_have_its_accuracies_in_another_form(of_its_own):
    assert curve.last_by_number([dict(accuracy_by=of_its_own)]) == ("", {})
    assert curve.last_by_number([{}]) == ("", {})
    in_memory = dict(n={2: dict(accuracy=0.5), 3: dict(accuracy=0.25)})
    assert curve.last_by_number([dict(accuracy_by=in_memory)]) == ("n", {2: 0.5, 3: 0.25})


def test_why_a_walk_is_lost_in_three_columns():
    found, far_out = why.arms(rings=2), {}
    for column, of in found.items():
        for arm, runs in of.items():
            far_out[column, arm] = [min(right[n] for n in (100, 1000)) for right, _ in runs]
    assert min(far_out["norm and input", "kept at the test"]) > 0.9
    assert min(far_out["norm alone", "kept at the test"]) > 0.9
    assert max(far_out["norm alone", "map changes"]) < 0.3
    assert max(far_out["neither", "kept at the test"] + far_out["neither", "read once"]) < 0.3
    drift = {c: max(max(d.values()) for _, d in of["map changes"]) for c, of in found.items()}
    assert drift["norm and input"] < 1 < drift["norm alone"]
    with matplotlib.rc_context({"backend": "agg"}):
        import matplotlib.pyplot as plt

        figure, axes = plt.subplots(2, 3)
        why.draw(axes, found)
        plt.close(figure)
