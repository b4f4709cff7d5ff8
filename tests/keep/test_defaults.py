"""A stored model does not depend on what the code's defaults are by now, or on fields it had."""

import dataclasses
import json
import pathlib
import shutil

import pytest
import torch

import minidepth as md
from minidepth_lab.base import configs
from minidepth_lab.keep import checkpoints, registry
from minidepth_lab.measure import results

ROOT = pathlib.Path(md.__file__).resolve().parent
FILES = (ROOT / "docs" / "results").glob("*/weights/*.safetensors")
STORED = [results.weights(path.parents[1].name, path.stem) for path in sorted(FILES)]


@torch.no_grad()
def logits_of(folder):
    model, _ = checkpoints.load(str(folder))
    return model(torch.arange(12)[None])


def test_every_stored_model_loads_as_before_whatever_the_defaults_are(monkeypatch):
    assert len(STORED) >= 19
    before = {folder: logits_of(folder) for folder in STORED}
    others = dict(dropout=0.5, n_heads=2, d_ff=7, n_loops=9, position="rotary", tie_weights=True)
    fields = []
    for f in dataclasses.fields(configs.ModelConfig):
        if f.name in others:
            default = dataclasses.field(default=others[f.name], metadata=f.metadata)
            fields.append((f.name, f.type, default))
    later = dataclasses.make_dataclass("ModelConfig", fields, bases=(configs.ModelConfig,))
    monkeypatch.setattr(configs, "ModelConfig", later)
    for folder, logits in before.items():
        assert torch.equal(logits_of(folder), logits), folder


def test_a_model_needs_no_settings_of_its_training_but_all_of_its_own(tmp_path):
    """The weights say which settings of the model they were trained with."""
    folder = shutil.copytree(STORED[0], tmp_path / "run")
    config = json.loads((folder / "config.json").read_text())
    train = config.pop("train")
    (folder / "config.json").write_text(json.dumps(config))
    assert torch.equal(logits_of(folder), logits_of(STORED[0]))
    with pytest.raises(ValueError, match="is not the configuration of a run"):
        checkpoints.read_config(folder)  # which a run has to have, to go on
    config["model"]["n_loops"] += 1
    config["train"] = train | dict(lr=17.0)
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match="config.json is not what it was trained with"):
        checkpoints.load(str(folder))


def test_a_preset_may_name_its_task_as_a_text(monkeypatch):
    for data in ("icqa", ("icqa",)):
        monkeypatch.setitem(registry.TASK_PRESETS, "mine", dict(data=data, sizes=("pairs=4",)))
        assert registry.configs("mine")[1].sizes == ("pairs=4",)
        assert registry.configs("mine", data="walk")[1].sizes == ()  # another task has its own
