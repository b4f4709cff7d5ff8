"""The figures that the README quotes are those of the logs in docs/results/."""

import json
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
RUNS = ROOT / "docs" / "results" / "main-job"


def last(name):
    return [json.loads(line) for line in open(RUNS / name / "log.jsonl")][-1]


@pytest.mark.parametrize("n_layers", [1, 12])
def test_the_table_of_the_main_job(n_layers):
    rows = [last(f"laptop-{n_layers}-layers-seed-{seed}") for seed in (0, 1, 2)]
    accuracy = " / ".join(f"{row['accuracy']:.3f}" for row in rows)
    loss = " / ".join(f"{row['val_loss']:.3f}" for row in rows)
    for page in (ROOT / "README.md", ROOT / "docs" / "results" / "README.md"):
        assert re.search(rf"\| {n_layers} \|.*\| {accuracy} \| {loss} \|", page.read_text()), page


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
