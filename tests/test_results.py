"""The figures that the README quotes are those of the logs in docs/results/."""

import json
import pathlib
import re

import pytest

import minidepth as md

ROOT = pathlib.Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "results"
RUNS = RESULTS / "main-job"


def last(name):
    return [json.loads(line) for line in open(RUNS / name / "log.jsonl")][-1]


@pytest.mark.parametrize("n_layers", [1, 12])
def test_the_table_of_the_main_job(n_layers):
    rows = [last(f"laptop-{n_layers}-layers-seed-{seed}") for seed in (0, 1, 2)]
    accuracy = " / ".join(f"{row['accuracy']:.3f}" for row in rows)
    loss = " / ".join(f"{row['val_loss']:.3f}" for row in rows)
    page = (ROOT / "docs" / "results" / "README.md").read_text()
    assert re.search(rf"\| {n_layers} \|.*\| {accuracy} \| {loss} \|", page)


def test_the_readme_tells_the_study_as_it_was_logged():
    readme = (ROOT / "README.md").read_text()
    page = (ROOT / "docs" / "results" / "README.md").read_text()
    study = json.loads((ROOT / "docs" / "results" / "depth" / "summary.json").read_text())
    found = {}
    for run in study["runs"]:
        found.setdefault(run["labels"]["model"], []).append(run)
    for name, text in {"1 layer, 12 times": "1 layer, applied 12 times"}.items():
        found[text] = found.pop(name)
    for name, runs in found.items():
        mean, half = md.interval([run["accuracy"] for run in runs])
        (row,) = re.findall(rf"(?m)^\| {name} \|.*$", readme)
        assert f"{mean:.3f} ± {half:.3f}" in row and f"{runs[0]['params_total']:,}" in row
        assert f"{mean:.3f} ± {half:.3f}" in page
    tuned = [md.result(path.parent)["accuracy"] for path in RESULTS.glob("depth-wide/*/log.jsonl")]
    mean, half = md.interval(tuned)
    assert f"{mean:.3f} ± {half:.3f} (n = {len(tuned)})" in readme
    for line in study["differences"]:
        if line.startswith("accuracy, 1 layer, 12 times minus 1 layer:"):
            low, high = re.search(r"from \+(\S+) to \+(\S+),", line).groups()
            assert f"interval +{low} to +{high}" in readme and f"(+{low} to\n+{high})" in page


def test_each_run_says_how_it_was_made():
    configs = [json.loads(path.read_text()) for path in RUNS.glob("*/config.json")]
    assert len(configs) == 6
    for config in configs:
        assert config["command"].endswith(config["train"]["name"])
        assert config["versions"]["torch"] and "CPU" in config["device"]
        assert re.fullmatch("[0-9a-f]{40}", config["commit"])


def test_the_example_in_the_readme_is_what_the_run_printed():
    printed = (RUNS / "laptop-12-layers-seed-0" / "stdout.txt").read_text()
    example = re.search(r"```\n(preset laptop.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[
        1
    ]
    for part in example.split("…\n"):
        assert part in printed


SUMMARIES = sorted(RESULTS.rglob("summary.json"))


@pytest.mark.parametrize("path", SUMMARIES, ids=lambda path: path.parent.name)
def test_a_summary_holds_what_its_runs_logged(path):
    """Each number of a table is that of the logs beside it; the intervals with SciPy's own t."""
    from scipy.stats import sem, t

    found = json.loads(path.read_text())
    logs = [md.result(config.parent) for config in path.parent.rglob("config.json")]
    keys = ("val_loss", "best_val_loss", "train_loss_eval", "seconds")
    logged = {tuple(log[key] for key in keys) for log in logs}
    assert {tuple(run[key] for key in keys) for run in found["runs"]} == logged
    assert found["command"].startswith("python train.py") and found["versions"]["torch"]
    for row in found["table"]:
        runs = [r for r in found["runs"] if row["labels"].items() <= r["labels"].items()]
        assert len(runs) == row["n"]
        for key in keys:
            mean, half = row[key]
            values = [run[key] for run in runs]
            assert mean == pytest.approx(sum(values) / len(values))
            if half is not None and len(values) > 1:
                low, high = t.interval(0.95, len(values) - 1, mean, sem(values))
                assert half == pytest.approx((high - low) / 2, nan_ok=True)


def test_no_result_names_a_machines_folder():
    for path in RESULTS.rglob("*.json*"):
        assert not re.search(r'"[^"]*/(tmp|work|home|root)/', path.read_text()), path
