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
def files(tmp_path, monkeypatch, warm_cells):
    """{name: text} of the page's files, written into a folder in which the test then runs."""
    found = re.findall(r'```python title="(.*?)"\n(.*?)```', PAGE.read_text("utf-8"), re.DOTALL)
    for name, text in found:
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(own_code, "NAMED", set())
    monkeypatch.setattr(configs, "PRESETS", dict(configs.PRESETS))
    return dict(found)


def cut_off_before_its_first_checkpoint(name):
    """Make a finished run look so: with its log it would count as finished."""
    for file in ("state.pt", "log.jsonl"):
        pathlib.Path("runs", name, file).unlink()


def test_another_librarys_model_learns_a_task(files, capsys):
    exec(files["elsewhere.py"].replace("range(500)", "range(2)"), {})
    assert "right; guessing, a shortcut: (0.0625, 0.25)" in capsys.readouterr().out


def named_again(line, flags, monkeypatch, capsys):
    """Go on with a run whose code has to be named again, as in a new process."""
    cut_off_before_its_first_checkpoint("own")
    monkeypatch.setattr(own_code, "NAMED", set())
    assert train.main(line) == 2 and " ".join(flags) in capsys.readouterr().err
    monkeypatch.setattr(own_code, "NAMED", set())
    assert train.main([*line, *flags]) == 0


def test_a_task_of_ones_own_trains_and_is_resumed_if_it_is_named_again(files, monkeypatch, capsys):
    mine = ["--data", "my_task.py"]
    line = [*mine, "--n_layers", "1", "--name", "own", *TINY, "--sizes", "jumps=1"]
    assert train.main(line) == 0
    said = capsys.readouterr().out
    assert "preset tasks" in said and "(places 8, jumps 1)" in said and "guessing 0.125" in said
    saved = json.loads(pathlib.Path("runs/own/config.json").read_text())["train"]
    assert saved["data"] == ["my_task.py"] and saved["sizes"] == ["places=8", "jumps=1"]
    named_again(["--resume", "runs/own"], mine, monkeypatch, capsys)
    assert results.result("runs/own")["guess"] == 1 / 8
    monkeypatch.setattr(own_code, "NAMED", set())
    assert train.main(["--mechanism", "runs/own", *mine]) == 0
    assert "jump 1" in capsys.readouterr().out
    assert train.main(["--attention", "runs/own", *mine]) == 0


def test_a_grid_of_the_task_over_two_layers(files, monkeypatch, capsys):
    command = ["--data", "my_task.py", "--n_layers", "1", "2", *TINY]
    for before in (0, 2):
        monkeypatch.setattr(own_code, "NAMED", set())
        assert train.main(command) == 0
        said = capsys.readouterr().out
        assert f"2 runs, {before} finished before" in said and "| 2 | 1 |" in said


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
    assert (folder / "gap.png").stat().st_size > 1000 and (folder / "summary.png").exists()
    dropouts = {json.loads(path.read_text())["model"]["dropout"]
                for path in pathlib.Path("runs").rglob("config.json")}  # fmt: skip
    assert dropouts == {0.0, 0.2}


LOADER = """
from minidepth_lab.base.data import Data
from minidepth_lab.rows import files, to_data


class Backwards(Data):
    def draw(self, step, n):
        return super().draw(1000 - step, n)


def load_data(config, block_size, tokenizer=None):
    (source,) = config.data
    train, held_out = files.read_source(source, config)
    data = to_data.make_data(source, train, held_out, config, block_size, tokenizer)
    return Backwards(**vars(data))
"""


def test_a_loader_of_ones_own_is_named_again_as_the_page_says(files, monkeypatch, capsys):
    pathlib.Path("my_loader.py").write_text(LOADER)
    mine = ["--loader", "my_loader.py"]
    own = "--n_layers 1 --max_rows 60 --eval_problems 0 --name own --preset laptop".split()
    assert train.main([*mine, *own, *TINY]) == 0
    losses = [row["train_loss"] for row in results.result("runs/own")["log"]]
    named_again(["--resume", "runs/own"], mine, monkeypatch, capsys)
    assert losses == [row["train_loss"] for row in results.result("runs/own")["log"]]
