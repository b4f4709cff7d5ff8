"""Which errors mean that the memory is full: others are shown as they are."""

import pytest
import torch

import minidepth as md
import train

FLAGS = "--preset laptop --n_layers 1 --max_rows 60 --steps 2 --warmup_steps 1"


def failing(monkeypatch, error):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(md, "train", fail)


def test_a_full_gpu_is_a_line_that_says_what_to_give(tmp_path, monkeypatch, capsys):
    failing(monkeypatch, torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"))
    assert train.main([*FLAGS.split(), "--out_dir", str(tmp_path)]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1 and "the memory is full" in told and "--batch_size" in told


@pytest.mark.parametrize("words", [
    "CUDA error: an illegal memory access was encountered",
    "expected all memory formats to be contiguous",
])  # fmt: skip
def test_another_error_with_the_word_memory_keeps_its_traceback(words, tmp_path, monkeypatch):
    failing(monkeypatch, RuntimeError(words))
    with pytest.raises(RuntimeError, match=words):
        train.main([*FLAGS.split(), "--out_dir", str(tmp_path)])
