"""Which errors mean that the memory is full: others are shown as they are."""

import os

import pytest
import torch

import train
from minidepth_lab.base import console
from minidepth_lab.keep import checkpoints, running

FLAGS = "--preset laptop --n_layers 1 --max_rows 60 --steps 2 --warmup_steps 1"


@pytest.mark.parametrize("error", [
    torch.OutOfMemoryError("CUDA out of memory"), MemoryError(),
    RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"),
    PermissionError(13, "Permission denied"),
])  # fmt: skip
def test_a_checkpoint_is_not_damaged_where_it_cannot_be_taken_in_now(
    error, tiny, data, tmp_path, monkeypatch
):
    run = running.train(*tiny(steps=6, save_every=2), data)
    place = dict(steps=8, lr_steps=6, out_dir=os.path.dirname(run.dir), save_every=2)
    before = sorted(os.listdir(run.dir))
    assert set(checkpoints.STATES) < set(before)

    def fail(*_, **__):
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(torch, "load", fail)
        with pytest.raises((type(error), ValueError)) as raised:
            running.train(*tiny(**place), data, resume=True, changed=("steps", "lr_steps"))
    assert isinstance(raised.value, ValueError) == isinstance(error, PermissionError)
    assert sorted(os.listdir(run.dir)) == before
    run = running.train(*tiny(**place), data, resume=True, changed=("steps", "lr_steps"))
    assert run.log[-1]["step"] == 8


@pytest.mark.parametrize("error, full", [
    (RuntimeError("CUDA error: out of memory"), True),
    (RuntimeError("DefaultCPUAllocator: can't allocate memory"), True), (MemoryError(), True),
    (RuntimeError("an illegal memory access"), False), (ValueError("out of memory"), False),
])  # fmt: skip
def test_a_full_memory_is_told_by_the_error_and_its_words(error, full):
    assert console.is_out_of_memory(error) == full


def failing(monkeypatch, error):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(running, "train", fail)


@pytest.mark.parametrize("words", [
    "CUDA error: an illegal memory access was encountered",
    "expected all memory formats to be contiguous",
])  # fmt: skip
def test_another_error_with_the_word_memory_keeps_its_traceback(words, tmp_path, monkeypatch):
    failing(monkeypatch, RuntimeError(words))
    with pytest.raises(RuntimeError, match=words):
        train.main([*FLAGS.split(), "--out_dir", str(tmp_path)])
