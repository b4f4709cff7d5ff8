"""What trackers are told: read back with TensorBoard's own reader; the others are stood in for."""

import importlib.machinery
import math
import os
import sys
import types

import pytest

from conftest import call, log_of
from minidepth_lab.base import configs
from minidepth_lab.command import one_run
from minidepth_lab.keep import running, trackers

LINE = "--n_layers 1 --d_model 16 --n_heads 2 --d_ff 32 --steps 6 --warmup_steps 1 --max_rows 300"
LINE += " --batch_size 4 --grad_accum 1 --eval_every 3 --eval_blocks 4 --eval_problems 6"
LINE += " --watch_problems 6 --ring_questions 1"
NAMES = {"train/loss", "val/loss", "val/perplexity", "lr", "grad_norm", "tokens_per_second"}
NAMES |= {"accuracy/all", "accuracy/lookup", "accuracy/order", "accuracy/chain"}


def test_tensorboard_reads_what_a_run_has_told_it(tmp_path, capsys, kept):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    line = f"{LINE} --out_dir {tmp_path} --name run --report_to tensorboard --save_every 3"
    code, _, err = call(line, capsys)
    assert code == 0, err
    folder = tmp_path / "run"
    read = EventAccumulator(str(folder / "tensorboard")).Reload()
    assert NAMES <= set(read.Tags()["scalars"])
    log = log_of(folder)
    for name, key in (("val/loss", "val_loss"), ("lr", "lr"), ("accuracy/all", "accuracy")):
        told = [(event.step, event.value) for event in read.Scalars(name)]
        assert told == [(record["step"], pytest.approx(record[key], rel=1e-6)) for record in log]
    perplexity = read.Scalars("val/perplexity")[0].value
    assert perplexity == pytest.approx(math.exp(log[0]["val_loss"]), rel=1e-5)
    plugin = read.SummaryMetadata("_hparams_/session_start_info").plugin_data.content
    assert b"n_layers" in plugin and b"warmup_steps" in plugin
    # a run that goes on tells on, and nothing twice
    code, _, err = call(f"--resume {folder} --steps 9", capsys)
    assert code == 0, err
    read = EventAccumulator(str(folder / "tensorboard"), size_guidance=dict(scalars=0)).Reload()
    steps = [event.step for event in read.Scalars("grad_norm")]
    assert steps == [1, 3, 6, 9]


class Fake(types.ModuleType):
    """wandb or trackio, as far as we call it; it may fail."""

    def __init__(self, name, fails=False):
        super().__init__(name)
        self.__spec__ = importlib.machinery.ModuleSpec(name, None)
        self.told, self.begun, self.finished, self.fails = [], [], 0, fails

    def init(self, **options):
        self.begun.append(options)
        return self

    def log(self, values, step):
        if self.fails:
            raise ConnectionError("gone")
        self.told.append((step, values))

    def finish(self):
        self.finished += 1


@pytest.fixture
def tracked(tiny, monkeypatch, kept):
    """Trains a run that a Fake is told of: its folder."""

    def train(fake):
        monkeypatch.setitem(sys.modules, fake.__name__, fake)
        monkeypatch.delenv("WANDB_MODE", raising=False)
        m, t = tiny(report_to=fake.__name__, steps=6)
        assert one_run.run_training(m, t, None) == 0
        return os.path.join(t.out_dir, t.name)

    return train


@pytest.mark.parametrize("name", ["wandb", "trackio"])
def test_a_tracker_is_told_each_evaluation_and_the_settings(name, tracked):
    fake = Fake(name)
    folder = tracked(fake)
    log = log_of(folder)
    assert [step for step, _ in fake.told] == [record["step"] for record in log] == [1, 5, 6]
    assert all(set(values) == NAMES for _, values in fake.told) and fake.finished == 1
    assert [values["val/loss"] for _, values in fake.told] == [record["val_loss"] for record in log]
    (begun,) = fake.begun
    assert begun["name"] == "run" and begun["config"]["n_layers"] == 2
    assert begun["project"] == "minidepth" and begun["resume"] == "allow"
    if name == "wandb":
        assert begun["mode"] == "offline" and begun["dir"] == folder


def test_a_tracker_that_fails_takes_nothing_with_it(tracked, capsys):
    tracked(Fake("trackio", fails=True))
    assert capsys.readouterr().err.count("trackio is told no more: gone") == 1


def test_what_is_not_installed_is_told_before_anything_begins(
    tmp_path, finished, capsys, monkeypatch
):
    monkeypatch.setattr(trackers, "PACKAGES", dict(wandb="no_such_package"))
    new = f"{LINE} --out_dir {tmp_path}"
    for line in (new, f"{new} --seed 0 1", f"--resume {finished} --steps 20 --dry_run"):
        code, _, err = call(f"{line} --report_to wandb", capsys)
        assert code == 2 and not list(tmp_path.iterdir()) and err.count("\n") == 1
        assert "--report_to wandb is not installed: pip install no_such_package" in err
    with pytest.raises(ValueError, match="report_to wandb: give tell="):
        running.train(*configs.make("laptop", report_to="wandb", out_dir=str(tmp_path)))


def test_losses_that_are_no_number_are_not_told():
    row = dict(step=1, train_loss=math.nan, val_loss=math.inf, lr=0.1, grad_norm=1.0)
    assert trackers.metrics(row) == {"lr": 0.1, "grad_norm": 1.0}
