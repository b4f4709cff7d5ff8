"""Was a prediction in the history before its runs? order.py, against cases made by hand."""

import subprocess

import pytest

from minidepth_lab.measure import judge, order, results

PART = dict(of="walks", measure="last accuracy", low=0.9, count=1, runs=1)


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
    file = judge.File("walk")
    runs = [dict(date=date, measured={}) for date in dates]
    monkeypatch.setattr(file, "runs", lambda of: runs)
    monkeypatch.setattr(order, "committed", lambda: {"walk/X1": "2026-11-28T10:00:00Z"})
    assert order.of(file, dict(id="walk/X1", **PART)) == expected


def test_measured_of_runs_that_there_were(monkeypatch):
    file = judge.File("walk")
    about = dict(far=dict(date="2026-11-28T11:00Z"))
    run = dict(date="2026-11-27T10:00Z", measured=dict(about=about))
    monkeypatch.setattr(file, "runs", lambda of: [run])
    monkeypatch.setattr(order, "committed", lambda: {"walk/X1": "2026-11-28T10:00:00Z"})
    part = PART | dict(measure="measured far.least")
    assert order.of(file, dict(id="walk/X1", **part)) == order.MEASURED
    assert order.of(file, dict(id="walk/X1", **PART)) == order.AFTER
    part |= dict(less="last accuracy")  # half of it was known
    assert order.of(file, dict(id="walk/X1", **part)) == order.AFTER


def test_every_run_has_its_date_and_every_prediction_its_commit():
    for name in results.experiments():
        for line in results.lines_of(name):
            earliest, latest = order.times(line["date"])
            assert earliest <= latest != "~", line["id"]
    git = ["git", "grep", "-hE", "^id = ", "HEAD", "--", "*/predictions.toml"]
    head = subprocess.run(git, cwd=results.RESULTS, capture_output=True, text=True).stdout
    for name in judge.experiments():
        for each in judge.File(name).predictions:
            assert each["id"] in order.committed() or f'"{each["id"]}"' not in head
