"""What the rows of every study vary, and what each preset is: as they were when their runs were
made, whose figures stand on pages. UPDATE=1 keeps what they are now, in golden.json."""

import dataclasses

import pytest

from conftest import changed
from minidepth_lab.base import configs
from minidepth_lab.keep import registry
from minidepth_lab.tasks import TASKS

PRESETS = registry.offering("preset")


@pytest.mark.parametrize("preset", ["laptop", "report", *PRESETS])
def test_a_preset_is_what_it_was(preset, golden):
    """By what differs from the defaults."""
    settings = {}
    for config, kind in zip(registry.configs(preset), (configs.ModelConfig, configs.TrainConfig)):
        plain, own = dataclasses.asdict(kind()), dataclasses.asdict(config)
        settings |= {name: value for name, value in own.items() if value != plain[name]}
    golden(f"preset: {preset}", settings)


def test_a_task_is_as_large_as_it_was(golden):
    golden("sizes of the tasks", {name: task.sizes for name, task in TASKS.items()})


@pytest.mark.parametrize("name", [each for each in registry.offering("study")])
def test_a_study_varies_what_it_did(name, golden, capsys):
    study, found = registry.study(name), {}
    for preset in [each for each in PRESETS if each.partition("-")[0] == name] or ["laptop"]:
        given = dict(max_rows=200) if preset in ("laptop", "depth") else {}
        given |= dict(vocab_size=300) if name in ("depth", "reread") else {}
        first, differ = changed(study, preset, given)
        found[preset] = {key: first[key] for row in differ.values() for key in row}, differ
        for row in study.rows(preset, given | dict(seed=7)).values():
            assert row["seed"] == 7  # what is given is in each
    golden(f"study: {name}", found)


STORED = {
    "budget": [()], "depth": [()], "heads": [(64,), (64, 1.0)], "map": [()], "reread": [()],
    "strides": [()], "written": [()],
}  # fmt: skip


@pytest.mark.parametrize("name", STORED)
def test_stored_runs_are_found_under_the_names_they_had(name, golden):
    """What pages draw: of each name its runs, or what was measured of them."""
    found = []
    for given in STORED[name]:
        runs = registry.study(name).stored(*given)
        for key, those in runs.items() if isinstance(runs, dict) else enumerate(runs):
            those = those if isinstance(those, (list, tuple)) else [those]
            found.append([str(key), [each["id"] if isinstance(each, dict) else each
                                     for each in those]])  # fmt: skip
    golden(f"stored: {name}", found)
