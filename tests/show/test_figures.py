"""Figures: what they show, and that drawing them disturbs nobody."""

import matplotlib
from matplotlib.figure import Figure

from minidepth_lab.measure import results
from minidepth_lab.show import curve, figures, why


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


def test_a_model_has_one_colour_by_whatever_page_it_is_drawn():
    names = ["1 layer", "1 wide layer", "1 wide layer, tuned", "1 layer, 12 times"]
    assert [figures.color_of(name) for name in names] == ["C0", "C3", "C3", "C2"]
    assert figures.color_of(1) == "C0" and figures.color_of(12) == figures.color_of("12 layers")
    by_depth = [figures.color_of(f"{n} layers") for n in (2, 3, 4, 8, 12, 24)]
    assert by_depth[0] == by_depth[1] and by_depth[4] == by_depth[5]  # as the depth below
    assert len(set(by_depth)) == 4


def test_a_task_of_ones_own_may_have_its_accuracies_in_another_form():
    for other in ([0.5], {"n": {"1": 0.5}}, {"n": [1]}, {"kind": {"a": {}}}):
        assert curve.last_by_number([dict(accuracy_by=other)]) == ("", {})
    assert curve.last_by_number([{}]) == ("", {})
    in_memory = dict(n={2: dict(accuracy=0.5), 3: dict(accuracy=0.25)})
    assert curve.last_by_number([dict(accuracy_by=in_memory)]) == ("n", {2: 0.5, 3: 0.25})


def test_why_a_walk_is_lost_in_three_columns(monkeypatch):
    monkeypatch.setattr(why, "MOST", 100)  # of the thousand hops that a page walks
    found, far_out = why.arms(rings=2), {}
    for column, of in found.items():
        for arm, runs in of.items():
            far_out[column, arm] = [right[100] for right, _ in runs]
    assert min(far_out["norm and input", "kept at the test"]) > 0.9
    assert min(far_out["norm alone", "kept at the test"]) > 0.9
    assert max(far_out["norm alone", "map changes"]) < 0.3
    assert max(far_out["neither", "kept at the test"] + far_out["neither", "read once"]) < 0.3
    drift = {c: max(max(d.values()) for _, d in of["map changes"]) for c, of in found.items()}
    assert drift["norm and input"] < 1 < drift["norm alone"]
    figure = Figure()
    axes = figure.subplots(2, 3)
    why.draw(axes, found)
    assert {each.get_xscale() for each in axes.flat} == {"log"}


def test_a_title_counts_the_runs_of_every_group():
    runs = [dict(labels=dict(model=m, seed=str(s))) for m, s in ((1, 0), (1, 1), (2, 0), (3, 0))]
    assert figures.counted(results.grouped(runs)) == "1 to 2"
    assert figures.counted(results.grouped(runs[:2])) == "2"
