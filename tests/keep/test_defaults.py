"""A stored model does not depend on what the code's defaults are by now, or on fields it had."""

import dataclasses
import json
import pathlib
import shlex
import shutil

import pytest
import torch

import minidepth as md
import train
from minidepth_lab.base import configs
from minidepth_lab.command import one_run
from minidepth_lab.keep import checkpoints
from minidepth_lab.measure import results

ROOT = pathlib.Path(md.__file__).resolve().parent
FILES = (ROOT / "docs" / "results").glob("*/weights/*.safetensors")
STORED = [results.weights(path.parents[1].name, path.stem) for path in sorted(FILES)]


def changed(kind, defaults=None, without=()):
    """A dataclass like `kind`, with other defaults, and without some fields."""
    fields = []
    for f in dataclasses.fields(kind):
        if f.name not in without:
            default = (defaults or {}).get(f.name, f.default)
            fields.append((f.name, f.type, dataclasses.field(default=default, metadata=f.metadata)))
    methods = dict(validate=kind.validate)
    if kind is configs.ModelConfig:
        methods |= dict(heads=kind.heads, dropout_of=kind.dropout_of)
    # what no longer is a setting: the code that once read it has its one value
    methods |= {f.name: f.default for f in dataclasses.fields(kind) if f.name in without}
    return dataclasses.make_dataclass(kind.__name__, fields, namespace=methods)


LATER = [
    dict(TrainConfig=changed(configs.TrainConfig, dict(lr_floor=0.3, steps=7, beta2=0.5))),
    dict(TrainConfig=changed(configs.TrainConfig, without=("lr_floor", "grad_clip", "fsdp"))),
    dict(ModelConfig=changed(configs.ModelConfig, dict(dropout=0.5, n_heads=2, d_ff=7, n_loops=9))),
    dict(ModelConfig=changed(configs.ModelConfig, without=("residual_dropout",))),
]


@pytest.fixture(scope="module")
def answers():
    """{folder of a stored model: its logits on some tokens} by the code as it is."""
    return {folder: logits_of(folder) for folder in STORED}


@torch.no_grad()
def logits_of(folder):
    model, _ = checkpoints.load(str(folder))
    return model(torch.arange(12)[None])


def test_models_are_stored():
    assert len(STORED) >= 19


def test_a_model_needs_no_settings_of_its_training(tmp_path, answers):
    folder = shutil.copytree(STORED[0], tmp_path / "run")
    config = json.loads((folder / "config.json").read_text())
    del config["train"]
    (folder / "config.json").write_text(json.dumps(config))
    assert torch.equal(logits_of(folder), answers[STORED[0]])
    with pytest.raises(ValueError, match="is not the configuration of a run"):
        checkpoints.read_config(folder)  # which a run has to have, to go on


@pytest.mark.parametrize("later", LATER, ids=["defaults", "fewer", "model defaults", "model fewer"])
def test_every_stored_model_loads_as_before(later, answers, monkeypatch):
    for name, kind in later.items():
        monkeypatch.setattr(md, name, kind)
    for folder, logits in answers.items():
        assert torch.equal(logits_of(folder), logits), folder


def test_the_reports_commands_give_the_settings_that_its_runs_had(tmp_path, monkeypatch):
    """No default is another one now."""
    found = []
    monkeypatch.chdir(tmp_path)
    kept = lambda m, t, *_, **__: found.append(checkpoints.settings(m, t))  # noqa: E731
    monkeypatch.setattr(one_run, "check_machine", lambda m, t: None)
    monkeypatch.setattr(one_run, "run_training", kept)
    lines = results.lines_of("report")
    for line in lines:
        assert train.main(shlex.split(line["command"])[2:]) == 0
    for settings, line in zip(found, lines, strict=True):
        later = [settings["model"].pop(name) for name in ("loop_keeps", "attn_window")]
        assert [*later, settings["train"].pop("minutes")] == [0, 0, 0]  # which came later
        assert settings == dict(model=line["model"], train=line["train"])


def test_a_setting_of_the_model_that_was_changed_by_hand_is_noticed(tmp_path):
    """The weights say which settings they were trained with."""
    folder = shutil.copytree(STORED[0], tmp_path / "model")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config["model"]["n_loops"] += 1
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(ValueError, match="config.json is not what it was trained with"):
        checkpoints.load(str(folder))
    config["model"]["n_loops"] -= 1
    config["train"]["lr"] = 17.0  # of no use to a trained model
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    assert checkpoints.load(str(folder))
