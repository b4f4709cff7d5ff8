"""Runs that somebody sent, or that died at a bad moment: what their files say of themselves is
checked where it is read, and one bad run takes no other with it."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file, save_file

import minidepth as md
import train
from minidepth_lab.keep import checkpoints, running
from minidepth_lab.show import runs


@pytest.fixture
def bad(finished, tmp_path):
    """A copy of a finished run beside it: its folder."""
    shutil.copytree(finished, tmp_path / "runs" / "good")
    return shutil.copytree(finished, tmp_path / "runs" / "bad")


def change_record(folder, **values):
    lines = (folder / "log.jsonl").read_text().splitlines()
    lines[-1] = json.dumps(json.loads(lines[-1]) | values)
    (folder / "log.jsonl").write_text("\n".join(lines) + "\n")


def change_config(folder, part, **values):
    about = json.loads((folder / "config.json").read_text())
    about[part] = about[part] | values if values else []
    (folder / "config.json").write_text(json.dumps(about))


def endless(folder, make):
    (folder / "config.json").unlink()
    make(folder / "config.json")


CHANGES = {
    "accuracy": lambda folder: change_record(folder, accuracy="x"),
    "by family": lambda folder: change_record(folder, accuracy_by_family=dict(a="x")),
    "answers": lambda folder: change_record(folder, answers=[3]),
    "train loss": lambda folder: change_record(folder, train_loss=[1.0]),
    "data": lambda folder: change_config(folder, "train", data=5),
    "data in it": lambda folder: change_config(folder, "train", data=[{}]),
    "train": lambda folder: change_config(folder, "train"),
    "layers": lambda folder: change_config(folder, "model", n_layers="x"),
    "a pipe": lambda folder: endless(folder, os.mkfifo),
    "no end": lambda folder: endless(folder, lambda path: path.symlink_to("/dev/zero")),
}


@pytest.mark.parametrize("change", CHANGES)
def test_one_bad_run_is_one_line_and_the_others_are_listed(change, bad, capsys):
    CHANGES[change](bad)
    runs.show(str(bad.parent), {})
    heads, *lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["good", "bad"] or "damaged" in "".join(lines)
    assert any(line.startswith("good ") and "finished" in line for line in lines)


STATES = dict(
    step="x", log=[1], skipped="x", in_a_row=-1, settings=[1], tokenizer="x", model=[], seconds="x",
    fingerprint="x", optimizer="x", data=[1], scaler=1,
)  # fmt: skip


@pytest.mark.parametrize("name", STATES)
def test_a_state_of_other_types_is_none(name, finished, tmp_path):
    state = torch.load(pathlib.Path(finished, "state.pt"), weights_only=True)
    path = tmp_path / "state.pt"
    torch.save(state | {name: STATES[name]}, path)
    with pytest.raises(ValueError, match="state.pt is not a checkpoint to resume from"):
        checkpoints.read_state(path)
    del state[name]
    torch.save(state, path)
    with pytest.raises(ValueError, match=f"it lacks {name}"):
        checkpoints.read_state(path)


@pytest.mark.parametrize("name, value", [
    ("step", "9\x1b]0;owned\x07"), ("val_loss", "abc"), ("tokenizer", "[]"), ("model", "3"),
])  # fmt: skip
def test_what_weights_say_of_themselves_is_checked(name, value, bad):
    path = bad / checkpoints.BEST
    about = dict(step="3", val_loss="2.5", tokenizer="{}", model="{}") | {name: value}
    save_file(load_file(bad / checkpoints.LAST), path, about)
    change_config(bad, "train", keep="best")
    for read in (checkpoints.describe_weights, checkpoints.load):
        with pytest.raises(ValueError, match=f"best.safetensors is not .*: {name} of the weights"):
            read(str(bad))


def test_a_full_disk_is_told_when_the_tokenizer_is_written(tmp_path):
    class Full:
        def save_pretrained(self, folder):
            raise Exception("No space left on device (os error 28)")

    with pytest.raises(OSError, match="No space left on device"):
        checkpoints.save_tokenizer(Full(), tmp_path)


@pytest.mark.parametrize("losses, step", [
    ([5.0, 4.0, 3.0, 2.0, 4.5, 4.6], 4),  # the best one is the checkpoint that it goes on from
    ([5.0, 4.0, 2.0, 3.0, 4.5, 4.6], None),  # it was not kept: the last ones are all there is
    ([5.0, 2.0, 3.0, 3.0, 4.5, 4.6], 2),  # the first life has kept it
])  # fmt: skip
def test_the_best_weights_are_those_of_the_logs_best_evaluation(
    losses, step, tiny, data, monkeypatch
):
    said = iter(losses)
    monkeypatch.setattr(md, "mean_loss", lambda model, part, *how: next(said, 9.0))
    monkeypatch.setattr(md, "evaluate", lambda *how, **more: {})
    short = dict(eval_every=1, warmup_steps=0, lr_steps=6)
    run = running.train(*tiny(steps=2, keep="best", **short), data)
    for steps, keep in ((4, "last"), (6, "best")):
        life = tiny(steps=steps, keep=keep, **short)
        running.train(*life, data, resume=True, changed=("steps", "keep"))
    path = os.path.join(run.dir, checkpoints.BEST)
    assert os.path.exists(path) == bool(step)
    assert not step or checkpoints.said_of_weights(path)["step"] == step
    assert bool(checkpoints.describe_weights(run.dir)) == bool(step)


def test_a_curve_that_a_kill_has_cost_is_drawn_on_resume(bad, capsys, kept):
    (bad / "curve.png").unlink(missing_ok=True)  # if another test had it drawn
    assert train.main(["--resume", str(bad), "--lr", "1"]) == 2  # which is not about that
    assert not (bad / "curve.png").exists() and "leave out --lr" in capsys.readouterr().err
    assert train.main(["--resume", str(bad)]) == 2
    assert (bad / "curve.png").exists() and "is finished" in capsys.readouterr().err


def test_train_returns_what_there_is_when_it_is_stopped(tiny, data):
    run = running.train(*tiny(), data, stop=lambda: os.kill(os.getpid(), signal.SIGINT))
    assert not run.finished and run.log[-1]["step"] == 1
    assert checkpoints.read_state(os.path.join(run.dir, "state.pt"))["step"] == 2


@pytest.mark.skipif(os.name != "posix", reason="elsewhere nobody asks")
def test_a_run_whose_grid_is_gone_stops(tiny, data, monkeypatch):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    monkeypatch.setenv(running.GRID, str(os.getpid()))
    assert not running.orphaned()
    monkeypatch.setenv(running.GRID, str(gone.pid))
    run = running.train(*tiny(), data)
    assert not run.finished and checkpoints.has_checkpoint(run.dir)


def test_losses_of_other_tokenizers_are_told_per_byte(tiny, jsonl):
    rows = [dict(text=f"Text number {i} and so on") for i in range(60)]
    own = dict(data=(jsonl(rows),), packing="pack", loss_on="all", block_size=16)
    record = running.train(*tiny(tokenizer_size=400, **own)).log[-1]
    letters = running.train(*tiny(tokenizer="characters", name="letters", **own)).log[-1]
    assert letters["val_loss_per_byte"] == pytest.approx(letters["val_loss"], rel=0.05)
    assert record["val_loss_per_byte"] < record["val_loss"] / 2
