"""How the command begins and ends: what it looks at first, the problem it shows, its exit codes."""

import os
import shutil
import signal

import pytest

import minidepth as md
import train
from minidepth_lab.base import configs
from minidepth_lab.command import dispatch
from minidepth_lab.keep import running
from minidepth_lab.models import variants
from minidepth_lab.rows import to_data

TINY = (
    "--preset laptop --n_layers 1 --d_model 16 --n_heads 2 --steps 4 --warmup_steps 1 "
    "--max_rows 60 --ring_questions 1 --eval_blocks 4 --watch_problems 0"
)


def call(tmp_path, flags):
    return train.main([*TINY.split(), "--out_dir", str(tmp_path), *flags.split()])


def test_the_problem_that_is_shown_is_one_of_the_most_steps(tmp_path, capsys):
    assert call(tmp_path, "--name run --eval_problems 9") == 0
    told = capsys.readouterr().out
    t = configs.make("laptop", max_rows=60, ring_questions=1)[1]
    problems = to_data.load_data(t, 104).problems[:9]
    steps = {p["messages"][-1]["content"]: p["steps"] for p in problems}
    shown = [question for question in steps if question in told]
    assert len(shown) == 1 and steps[shown[0]] == max(steps.values()) > min(steps.values())


@pytest.mark.skipif(os.name != "posix", reason="signals as POSIX has them")
def test_a_run_that_has_diverged_ends_with_1_and_one_that_was_stopped_with_130(
    tmp_path, monkeypatch, capsys
):
    def diverge(*_, **__):
        raise md.Diverged("the gradient was infinite")

    with monkeypatch.context() as patch:
        patch.setattr(running, "train", diverge)
        assert call(tmp_path, "--name diverged") == 1
    assert capsys.readouterr().err == "train.py: the gradient was infinite\n"

    real = variants.GPT.forward

    def told_to_stop(self, *arguments, **options):
        if self.training:
            os.kill(os.getpid(), signal.SIGINT)
        return real(self, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(variants.GPT, "forward", told_to_stop)
        # in the background of a shell Ctrl-C is ignored, and would be here, too
        patch.setattr(signal, "getsignal", lambda number: signal.default_int_handler)
        assert call(tmp_path, "--name stopped --eval_problems 0 --grad_accum 1") == 130
    folder = tmp_path / "stopped"
    assert "go on with: " in capsys.readouterr().out
    assert train.main(["--resume", f"{folder}{os.sep}"]) == 0  # as a shell completes it
    assert train.main(["--resume", str(folder)]) == 2
    assert sorted(os.listdir(tmp_path)) == ["stopped"]


def test_a_run_whose_disk_is_read_only_is_not_resumed(finished, monkeypatch, capsys):
    def refuse(dir):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    assert train.main(["--resume", finished, "--steps", "20", "--dry_run"]) == 2
    said = f"--resume {finished}: nothing can be written in {finished} (Read-only file system)"
    assert said in capsys.readouterr().err


def test_a_new_run_makes_its_tokenizer_anew_though_one_lies_where_it_will_be(
    finished, tmp_path, monkeypatch, capsys
):
    """Of a run that died before it began, with other settings maybe."""
    shutil.copytree(os.path.join(finished, "tokenizer"), tmp_path / "run" / "tokenizer")

    def load_data(t, block_size, tokenizer=None):
        raise ValueError(f"the tokenizer is {tokenizer}")

    monkeypatch.setattr(dispatch.registry, "data_of", load_data)
    assert call(tmp_path, "--name run") == 2
    assert capsys.readouterr().err == "train.py: the tokenizer is None\n"
    assert train.main(["--resume", finished, "--steps", "20"]) == 2
    assert os.path.join(finished, "tokenizer") in capsys.readouterr().err
