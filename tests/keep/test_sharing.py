"""A run as a model of the hub, on a local folder."""

import json
import os
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

from minidepth_lab.keep import checkpoints
from minidepth_lab.measure import results, sharing


def test_a_run_is_a_model_of_the_hub_and_back(finished, tmp_path, monkeypatch):
    model = sharing.SharedGPT.from_pretrained(finished)
    mine, tokenizer = checkpoints.load(finished)
    tokens = torch.arange(20)[None]
    assert torch.equal(model(tokens), mine(tokens)) and not model.training
    assert model.tokenizer.get_vocab() == tokenizer.get_vocab()
    model.save_pretrained(tmp_path / "out")
    files = ["README.md", "config.json", "log.jsonl", "model.safetensors", "tokenizer"]
    assert sorted(os.listdir(tmp_path / "out")) == files
    again, words = checkpoints.load(str(tmp_path / "out"))  # a run's folder, for all commands
    assert torch.equal(again(tokens), mine(tokens)) and again.n_words == mine.n_words
    assert sharing.SharedGPT.from_pretrained(tmp_path / "out").log == model.log
    # of the hub: a snapshot of links, as its cache has them
    (tmp_path / "snapshot").mkdir()
    for name in os.listdir(tmp_path / "out"):
        (tmp_path / "snapshot" / name).symlink_to(tmp_path / "out" / name)
    monkeypatch.setattr(sharing, "snapshot_download", lambda name, **_: tmp_path / "snapshot")
    monkeypatch.setattr("huggingface_hub.hub_mixin.hf_hub_download", lambda *_, **__: 1 / 0,
                        raising=False)  # fmt: skip
    shared = sharing.SharedGPT._from_pretrained(model_id="somebody/run", token=None)
    assert torch.equal(shared(tokens), mine(tokens))


def test_the_card_says_what_the_run_says(finished, tmp_path):
    model = sharing.SharedGPT.from_pretrained(finished)
    model.about = model.about | dict(command="train \x1b]0;x\x07 `a` | b")
    model.save_pretrained(tmp_path)
    text, last = (tmp_path / "README.md").read_text(), model.log[-1]
    for fact in ("| layers | `2` |", f"`{last['val_loss']:.4f} nats per token`", "95 % interval",
                 f"`{last['guess']:.3f}`", "| data | `embedded` |", "'a' \\| b`"):  # fmt: skip
        assert fact in text, fact
    assert "\x1b" not in text and text.startswith("---\nlibrary_name: minidepth\n")
    assert json.loads((tmp_path / "config.json").read_text())["train"]["steps"] == 12


def test_the_card_of_the_best_weights_tells_their_evaluation(finished, tmp_path):
    run = shutil.copytree(finished, tmp_path / "run")
    save_file(load_file(run / checkpoints.LAST), run / checkpoints.BEST)
    config, log = json.loads((run / "config.json").read_text()), results.read_log(run)
    config["train"]["keep"], log[1]["val_loss"] = "best", 0.5
    (run / "config.json").write_text(json.dumps(config))
    checkpoints.write_log(run, log)
    for folder in (run, tmp_path / "out"):  # there they are all there is
        model = sharing.SharedGPT.from_pretrained(folder)
        model.save_pretrained(tmp_path / "out")
        text = (tmp_path / "out" / "README.md").read_text()
        assert f"`of step {log[1]['step']}`" in text and "`0.5000 nats per token`" in text


def test_the_card_of_an_early_end_says_how_many_steps_there_were(finished, tmp_path):
    shutil.copytree(finished, tmp_path / "run")
    log = tmp_path / "run" / "log.jsonl"
    log.write_text("\n".join(log.read_text().splitlines()[:-1]) + "\n")
    model = sharing.SharedGPT.from_pretrained(str(tmp_path / "run"))
    assert "10 of 12" in str(model.generate_model_card())


def test_a_folder_that_is_no_run_is_told(tmp_path):
    with pytest.raises(ValueError, match="is not the configuration of a run"):
        sharing.SharedGPT._from_pretrained(model_id=str(tmp_path))
