"""The README is short, and its answer and table are those of the stored runs. Every command of it
and of the page of commands runs as it is written, with few steps and small models; and so do the
files of the page on tasks and studies of one's own."""

import json
import math
import os
import pathlib
import re
import shlex
import shutil

import pytest

import train
from conftest import ROOT
from minidepth_lab.base import configs
from minidepth_lab.keep import registry
from minidepth_lab.measure import bench, results
from minidepth_lab.tasks import TASKS, walk
from minidepth_lab.tasks.base import own_code
from minidepth_site import answer

README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = (ROOT / "docs" / "how-to" / "commands.md").read_text(encoding="utf-8")
# each as it is typed; a shell's own lines and other programs are not ours to try
OURS = r"(?:python train\.py|minidepth) --[^`\n]*"
LINES = list(dict.fromkeys(re.findall(OURS, README + COMMANDS)))
# one names no source, one would train for hours
NOT_HERE = {"python train.py --verdict SOURCE", "python train.py --preset report --n_layers 12"}
# what makes any of them short, as far as the line does not say it itself
SHORT = dict(
    steps=2, warmup_steps=0, eval_every=50, eval_blocks=2, eval_problems=2, watch_problems=0,
    batch_size=2, grad_accum=1, max_rows=60, device="cpu",
)  # fmt: skip
LOOKS = (
    "sample", "mechanism", "attention", "score", "export_hf", "runs", "compare", "report", "help",
)  # fmt: skip
HOW_TO = ROOT / "docs" / "how-to" / "own_task_and_study.md"


def shortened(line):
    """A command line as a list, with few steps where it trains."""
    words = shlex.split(re.sub(r"--seed( \d)+", "--seed 0", line))[2:]
    if {f"--{name}" for name in LOOKS} & set(words):
        return words
    # the rows of some have times of their own, which no flag makes short; llmini's data is far away
    if "--verdict" in words or "--study" in words and {"budget", "llmini", "written"} & set(words):
        return [*words, "--dry_run"]
    for name, value in SHORT.items():
        if f"--{name}" not in words and not (name == "max_rows" and "--bench" in words):
            words += [f"--{name}", str(value)]
    return words


def with_few_rows(name, monkeypatch):
    """Let a study of many rows have two, the second from its middle: what its rows are is tested
    with the study."""
    study = registry.study(name)
    made = study.rows

    def few(*arguments):
        rows = list(made(*arguments).items())
        return dict(rows[:: math.ceil(len(rows) / 2)])

    monkeypatch.setattr(study, "rows", few)


@pytest.fixture
def here(tmp_path, monkeypatch, finished, solved, in_this_process):
    """A folder that has what the lines name: runs/NAME, runs/OTHER, my.jsonl, my_task.py."""
    shutil.copytree(finished, tmp_path / "runs" / "NAME")
    shutil.copytree(finished, tmp_path / "runs" / "OTHER")
    rows = [dict(question=f"What is {i} plus 1?", answer=f"#### {i + 1}") for i in range(60)]
    choices = dict(context="c d", choices=["a", "b"], answer=0)
    rows += [choices] * 4
    (tmp_path / "my.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = re.findall(r'```python title="(.*?)"\n(.*?)```', HOW_TO.read_text("utf-8"), re.DOTALL)
    for name, text in found:
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(own_code, "NAMED", set())
    monkeypatch.setattr(walk, "RINGS_TESTED", 10)  # and those that it follows a thousand hops
    registry.offering("preset")  # of all studies: the page's own add to them
    monkeypatch.setattr(configs, "PRESETS", dict(configs.PRESETS))
    return tmp_path


def test_its_answer_and_its_table_are_those_of_the_stored_runs():
    assert answer.written(README) == README, "run python docs/site/minidepth_site/answer.py"


def test_it_is_short_and_its_links_lead_to_files():
    assert len(README.split()) <= 900
    links = re.findall(r"\]\(([^)#]*)", README)
    assert len(links) > 15
    assert not [link for link in links if not (ROOT / link).exists()]


def test_its_example_is_what_the_run_printed():
    printed = (results.RESULTS / "first-run" / "stdout.txt").read_text(encoding="utf-8")
    (example,) = re.findall("```\n(held-out problem.*?)```", README, re.DOTALL)
    assert len(example.splitlines()) > 5 and example in printed


@pytest.mark.parametrize("line", [line for line in LINES if line not in NOT_HERE])
def test_a_command_runs(line, here, solved, capsys, monkeypatch):
    if "--mechanism" in line:  # of a run on a depth task
        shutil.rmtree(here / "runs" / "NAME")
        shutil.copytree(solved, here / "runs" / "NAME")
    if "--bench" in line:  # it would measure for a minute
        monkeypatch.setattr(bench, "show_bench", lambda *_: 0)
    words = shortened(line)
    if "--study" in words:
        with_few_rows(words[words.index("--study") + 1], monkeypatch)
    try:
        code = train.main(words)
    except SystemExit as stop:
        code = stop.code
    said = capsys.readouterr()
    assert code == 0, said.err
    if "--study" in words and "--dry_run" not in words:
        assert list(pathlib.Path("runs").glob("study_*/summary.md"))
    assert not os.path.exists("GiB") and "0.00 GiB" not in said.out


def test_every_task_stands_there_and_runs_with_three_depths(here, capsys):
    (row,) = re.findall(r"\| `python train\.py --data icqa.*", COMMANDS)
    assert len(TASKS) == 22
    assert row.count("`") == 2 * (1 + len(TASKS))  # the command, and no other name
    for task in TASKS:
        assert f"`{task}`" in row
        line = f"python train.py --data {task} --n_layers 1 2 3 --dry_run"
        assert train.main(shortened(line)) == 0, (task, capsys.readouterr().err)


# ---------- a task and a study of one's own ----------

TINY = "--steps 4 --warmup_steps 1 --batch_size 4 --eval_every 2 --d_model 16 --n_heads 2".split()


def test_another_librarys_model_learns_a_task(here, capsys):
    exec((here / "elsewhere.py").read_text("utf-8").replace("range(500)", "range(2)"), {})
    assert "right; guessing, a shortcut: (0.0625, 0.25)" in capsys.readouterr().out


def test_a_task_of_ones_own_trains_and_is_resumed_if_it_is_named_again(here, monkeypatch, capsys):
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


def test_the_study_trains_its_two_rows_and_draws_its_figure(here, capsys):
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
    saved = [json.loads(path.read_text()) for path in here.glob("runs/my_study_*/config.json")]
    assert {each["model"]["dropout"] for each in saved} == {0.0, 0.2}
