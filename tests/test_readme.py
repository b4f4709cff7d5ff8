"""Every command of the README runs as it is written, with few steps and small models."""

import json
import math
import os
import pathlib
import re
import shlex
import shutil

import pytest

import train
from minidepth_lab.base import configs
from minidepth_lab.command import bench, registry
from minidepth_lab.measure import judge, results
from minidepth_lab.studies import strides
from minidepth_lab.tasks import TASKS, walk
from minidepth_lab.tasks.base import own_code, task_data

ROOT = pathlib.Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
# each as it is typed; a shell's own lines and other programs are not ours to try
LINES = list(dict.fromkeys(re.findall(r"(?:python train\.py|minidepth) --[^`\n]*", README)))
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
    """A command line of the README as a list, with few steps where it trains."""
    words = shlex.split(re.sub(r"--seed( \d)+", "--seed 0", line))[2:]
    if {f"--{name}" for name in LOOKS} & set(words):
        return words
    # the rows of some have times of their own, which no flag makes short; llmini's data is far away
    if "--study" in words and {"budget", "llmini", "written"} & set(words):
        return [*words, "--dry_run"]
    for name, value in SHORT.items():
        if f"--{name}" not in words and not (name == "max_rows" and "--bench" in words):
            words += [f"--{name}", str(value)]
    return words


def with_few_rows(name, monkeypatch):
    """Let a study of many rows have eight at most, from all over it: what its rows are is tested
    with the study."""
    study = registry.study(name)
    made = study.rows

    def few(*arguments):
        rows = list(made(*arguments).items())
        return dict(rows[:: math.ceil(len(rows) / 8)])

    monkeypatch.setattr(study, "rows", few)


def lines():
    """Those that can be tried here, each once; the published runs are only for --dry_run."""
    return [line for line in LINES if "--preset report" not in line or "--dry_run" in line]


@pytest.fixture
def here(tmp_path, monkeypatch, finished, solved, in_this_process):
    """A folder that has what the README names: runs/NAME, runs/OTHER, my.jsonl, my_task.py."""
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
    monkeypatch.setattr(task_data, "N_DRAWN", 100)  # sequences that a task is measured on
    monkeypatch.setattr(walk, "RINGS_TESTED", 10)  # and those that it follows a thousand hops
    registry.offering("preset")  # of all studies: the page's own add to them
    monkeypatch.setattr(configs, "PRESETS", dict(configs.PRESETS))
    return tmp_path


def test_the_readme_has_many_commands():
    assert len(LINES) >= 25 and len(lines()) >= 23
    assert sum("--study" in line for line in LINES) >= 7


@pytest.mark.parametrize("line", lines())
def test_a_command_of_the_readme_runs(line, here, solved, capsys, monkeypatch):
    if "--mechanism" in line:  # of a run on a depth task
        shutil.rmtree(here / "runs" / "NAME")
        shutil.copytree(solved, here / "runs" / "NAME")
    if "--bench" in line:  # it would measure for a minute
        monkeypatch.setattr(bench, "show_bench", lambda m, t, against: check_bench(m, against))
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


def check_bench(m, against):
    """What a bench asks of its model before it measures."""
    from minidepth_lab.models import export

    if against:
        export.check_gpt2(m)
    return 0


def test_every_task_stands_in_the_readme_and_runs_with_three_depths(here, capsys):
    (row,) = (
        line for line in README.splitlines() if line.startswith("| `python train.py --data icqa")
    )
    assert len(TASKS) == 21
    assert row.count("`") == 2 * (1 + len(TASKS))  # the command, and no other name
    for task in TASKS:
        assert f"`{task}`" in row
        line = f"python train.py --data {task} --n_layers 1 2 3 --dry_run"
        assert train.main(shortened(line)) == 0, (task, capsys.readouterr().err)


def test_the_minutes_of_the_studies_are_those_of_the_stored_runs():
    minutes = []
    for name in ("depth", "ring", "written", "budget"):
        command = f"python train.py --study {name} --seed"
        runs = [
            run
            for run in results.runs(name)
            if (run["grid"].get("command") or "").startswith(command) and run["threads"] == 1
        ]
        n = len({run["seed"] for run in runs})
        assert n >= 5
        minutes.append(round(sum(run["seconds"] for run in runs) / 60 / n))
    depth, ring, written, budget = minutes
    told = (
        f"{depth} minutes (`depth`), {ring} (`ring`), {written} (`written`) or {budget} (`budget`)."
    )
    assert f"for each seed, {told}" in " ".join(README.split())


def test_no_number_is_printed_as_nothing():
    assert "0.00 GiB" not in README


def test_the_readme_has_the_lessons_as_the_site_names_them():
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    lessons = re.findall(r'- "(\d)\. ([^"]*)": (tutorials/\w+)\.md', settings)
    assert [number for number, _, _ in lessons] == list("01234567")
    for number, title, page in lessons:
        short = title.partition(",")[0] if number == "0" else title
        assert f"{number} [{short}](docs/{page}.py)" in README


def test_the_walk_of_the_answer_is_the_one_that_was_judged():
    answer = README.partition("**The answer so far:")[2].partition("**Seven lessons**")[0]
    answer = " ".join(answer.split())
    named = judge.named_runs("walk")
    recall = named["8 hops, ring of 16"] + named["8 hops, pairs kept"]
    lengths = ("15", "31", "100", "1000")  # those that were tested from once round on

    def least(run, kind="accuracy"):
        return min(run["accuracy_by"]["hops"][n][kind] for n in lengths)

    far = [least(run) >= 0.95 for run in recall]
    at_all = "is right at 0.95 or better at 15, 31, 100 and 1,000 hops"
    assert f"{at_all}, in {sum(far)} of {len(far)} runs." in answer
    larger = ("feed-forward: 256", "layers: 2")
    fed, two = ([least(run) >= 0.95 for run in named[name]] for name in larger)
    with_more = f"it is {sum(fed)} of {len(fed)}, with two layers {sum(two)} of {len(two)}."
    assert f"With a feed-forward part {with_more}" in answer
    assert "these are 15, 15, 4 and 8 hops." in answer
    assert [int(n) % 16 for n in lengths] == [15, 15, 4, 8]
    for start in ("state", "normalised", "input"):
        its = (f"start: {start}{more}" for more in ("", ", five more", ", pairs kept"))
        runs = sum((named[name] for name in its), [])
        assert len(runs) == 15
        assert max(run["accuracy_by"]["hops"]["31"]["accuracy"] for run in runs) < 0.3
    assert "its bare state is lost by the thirty-first hop, and so is one that has" in answer
    assert "is one that has only the norm, or only the input: 15 of 15 each." in answer

    def shares(group, hops, kind):
        """Of the runs of a group, the least first."""
        return sorted(run["accuracy_by"]["hops"][str(hops)][kind] for run in named[group])

    def at_least(share):
        return f"{math.floor(100 * share) / 100:.2f}"

    def at_most(share):
        return f"{math.ceil(100 * share) / 100:.2f}"

    rises = []
    for group, runs in (
        ("hops: 4, five more", "five trained to four hops rise"),
        ("start: normalised, pairs kept", "five with the norm but without the input"),
    ):
        kinds = ("accuracy", "pairs_kept")
        before, after = (sorted(least(run, kind) for run in named[group]) for kind in kinds)
        assert len(before) == 5
        low, high = at_most(before[-1]), at_least(after[0])
        rises.append(f"{runs} from at most {low} to at least {high}")
    assert f"where they are worst of these four lengths, {rises[0]}, and {rises[1]}." in answer
    on_64 = "ring: 64, hints, 4,000 steps"
    ends = [shares(on_64, n, "pairs_kept") for n in (63, 1000)]
    once, far = (sum(share >= 0.9 for share in each) for each in ends)
    half = f"{once} of {len(ends[0])} come once round at 0.9, and {far} of {len(ends[1])} are there"
    assert f"On a ring of 64 it is half of it: {half} at a thousand, where none was." in answer
    assert max(shares(on_64, 63, "accuracy")) < 0.1
    throughout = "ring: 64, hints, kept throughout"
    right = shares(throughout, 63, "accuracy") + shares(throughout, 1000, "accuracy")
    assert len(right) == 20 and f"{min(right):.2f}" == "1.00"
    everywhere = "are right at 1.00 once round and at a thousand hops."
    assert f"On a ring of 64 10 of 10, trained to eight, {everywhere}" in answer
    for group, n in (("kept throughout", 10), ("hops: 4, kept throughout", 5)):
        right = sorted(map(least, named[group]))
        assert len(right) == n and f"{right[0]:.2f}" == "1.00"
    four = "are right at 1.00 at all four lengths, and 5 of 5 trained to four."
    assert f"on a ring of sixteen 10 of 10 layers trained to eight hops {four}" in answer
    right = shares("ring: 128, hints, kept throughout", 127, "accuracy")
    round_once = f"{sum(share >= 0.99 for share in right)} of {len(right)} come once round"
    assert f"On a ring of 128 {round_once}, which is 127 hops, at 0.99 or better." in answer
    groups = ("ring: 64, hints", "ring: 64, hints, 4,000 steps")
    lost = sum((shares(name, 31, "accuracy") for name in groups), [])
    early = sum(share < 0.1 for share in lost)
    told = f"{early} of {len(lost)} are lost on a ring of 64 by the thirty-first hop."
    assert f"With the hint and pairs that change, {told}" in answer
    holds = [run["accuracy_by"]["loops"] for run in judge.named_runs("hold")["read once"]]
    still = [each["100"]["accuracy"] >= 0.95 for each in holds]
    assert f"reading once mostly fails: {sum(still)} of {len(still)} do (" in answer
    learned = {True: [], False: []}  # whether the loops are enough by the prediction
    for (stride, loops), shares in strides.stored().items():
        learned[stride < loops] += [share >= 0.95 for share in shares]
    enough, too_few = (f"{sum(found)} of {len(found)}" for found in learned.values())
    assert f"learned it in {enough} runs with m below L" in answer
    assert too_few == "0 of 50" and "and in none of 50 with fewer loops" in answer
