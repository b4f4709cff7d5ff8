"""Was a prediction in the history before its runs? order.py, against cases made by hand."""

import subprocess

import pytest

from minidepth_lab.measure import judge, order, results

MEASURES = dict(accuracy="accuracy", far="measured.far.least")


def invented(monkeypatch, holds, runs):
    """A file of these runs, and a prediction of them."""
    file = judge.File("walk")
    file.measures = MEASURES
    monkeypatch.setattr(file, "runs", lambda of: runs)
    monkeypatch.setattr(order, "committed", lambda: {"walk/X1": "2026-11-28T10:00:00Z"})
    return file, dict(id="walk/X1", parts=[dict(a="walks", holds=holds)])


@pytest.mark.parametrize(
    "dates, expected",
    [
        (["2026-11-28T10:01Z"], order.BEFORE),  # began later
        ([["2026-11-28T10:00:00Z", "2026-11-28T12:00:00Z"]], order.BEFORE),  # code of that commit
        ([["2026-11-28T09:59:59Z", "2026-11-28T12:00:00Z"]], order.UNPROVEN),
        ([[None, "2026-11-28T12:00:00Z"]], order.UNPROVEN),  # the commit is gone
        ([[None, "2026-11-28T10:00:00Z"]], order.AFTER),  # stored with it
        (["2026-11-28T10:01Z", "2026-11-28T09:00Z"], order.PARTLY),
        ([], None),
    ],
)
def test_order(monkeypatch, dates, expected):
    runs = [dict(date=date, measured={}) for date in dates]
    assert order.of(*invented(monkeypatch, "count(a.accuracy >= 0.9) >= 1", runs)) == expected


def test_measured_of_runs_that_there_were(monkeypatch):
    about = dict(far=dict(date="2026-11-28T11:00Z"))
    run = dict(date="2026-11-27T10:00Z", measured=dict(about=about))
    for asked, expected in (
        ("a.far", order.MEASURED),
        ("a.accuracy", order.AFTER),
        ("a.far - a.accuracy", order.AFTER),  # half of it was known
    ):
        given = invented(monkeypatch, f"count({asked} >= 0.9) >= 1", [run])
        assert order.of(*given) == expected


def test_every_run_has_its_date_and_every_prediction_its_commit():
    for name in results.experiments():
        for line in results.lines_of(name):
            earliest, latest = order.times(line["date"])
            assert earliest <= latest != "~", line["id"]
    git = ["git", "grep", "-E", r"^[A-Z]+[0-9]+ = \[", "HEAD", "--", "*/predictions.toml"]
    head = subprocess.run(git, cwd=results.RESULTS, capture_output=True, text=True).stdout
    for name in judge.experiments():
        for each in judge.File(name).predictions:
            line = f"{name}/predictions.toml:{each['id'].partition('/')[2]} = ["
            assert each["id"] in order.committed() or line not in head
