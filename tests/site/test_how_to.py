"""The how-to on tasks and studies of one's own: its two files, as the page has them, run."""

import json
import pathlib
import re

import pytest

import train
from minidepth_lab.base import configs
from minidepth_lab.measure import results
from minidepth_lab.tasks.base import own_code

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "how-to" / "own_task_and_study.md"
TINY = "--steps 4 --warmup_steps 1 --batch_size 4 --eval_every 2 --d_model 16 --n_heads 2".split()


@pytest.fixture
def files(tmp_path, monkeypatch, in_this_process):
    """{name: text} of the page's files, written into a folder in which the test then runs."""
    found = re.findall(r'```python title="(.*?)"\n(.*?)```', PAGE.read_text("utf-8"), re.DOTALL)
    for name, text in found:
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(own_code, "NAMED", set())
    monkeypatch.setattr(configs, "PRESETS", dict(configs.PRESETS))
    return dict(found)


def test_another_librarys_model_learns_a_task(files, capsys):
    exec(files["elsewhere.py"].replace("range(500)", "range(2)"), {})
    assert "right; guessing, a shortcut: (0.0625, 0.25)" in capsys.readouterr().out


def test_a_task_of_ones_own_trains_and_is_resumed_if_it_is_named_again(files, monkeypatch, capsys):
    run, mine = pathlib.Path("runs", "own"), ["--data", "my_task.py"]
    line = [*mine, "--n_layers", "1", "--name", "own", *TINY, "--sizes", "jumps=1"]
    assert train.main(line) == 0
    said = capsys.readouterr().out
    assert "preset tasks" in said and "(places 8, jumps 1)" in said and "guessing 0.125" in said
    saved = json.loads((run / "config.json").read_text())["train"]
    assert saved["data"] == ["my_task.py"] and saved["sizes"] == ["places=8", "jumps=1"]
    for file in ("state.pt", "log.jsonl"):  # cut off before its first checkpoint
        (run / file).unlink()
    monkeypatch.setattr(own_code, "NAMED", set())  # as in a new process
    assert train.main(["--resume", str(run)]) == 2
    assert "--data my_task.py" in capsys.readouterr().err
    for words in (["--resume"], ["--mechanism"], ["--attention"]):
        monkeypatch.setattr(own_code, "NAMED", set())
        assert train.main([*words, str(run), *mine]) == 0
    assert results.result(str(run))["guess"] == 1 / 8 and "jump 1" in capsys.readouterr().out


def test_the_study_trains_its_two_rows_and_draws_its_figure(files, capsys):
    own = "--study my_study.py --n_layers 1 --max_rows 60 --eval_problems 3 --eval_blocks 8".split()
    assert train.main([*own, *TINY]) == 0
    said = capsys.readouterr().out
    assert "preset my_study: the study my_study.py is about it" in said
    assert "2 runs, 0 finished before" in said
    (folder,) = pathlib.Path("runs").glob("study_my_study_my_study_n_layers-1_*")
    summary = json.loads((folder / "summary.json").read_text())
    found = [run["labels"]["model"] for run in summary["runs"]]
    assert found == ["dropout 0.0", "dropout 0.2"]
    assert (folder / "gap.png").exists() and (folder / "summary.png").exists()
    dropouts = {json.loads(path.read_text())["model"]["dropout"]
                for path in pathlib.Path("runs").rglob("config.json")}  # fmt: skip
    assert dropouts == {0.0, 0.2}
