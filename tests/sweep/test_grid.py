"""Grids: what is run, skipped, resumed, interrupted and reported, and the numbers in the tables."""

import dataclasses
import json
import math
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
import types

import pytest
import torch

import train
import warm
from conftest import log_of, made_once
from minidepth_lab.base import configs, console
from minidepth_lab.command import flags
from minidepth_lab.keep import checkpoints, naming, registry, running
from minidepth_lab.measure.cell import (
    OF_DATA,
    Cell,
    as_flags,
    grid_name,
    is_finished,
    other_data,
    typed_preset,
)
from minidepth_lab.models import variants
from minidepth_lab.studies import heads
from minidepth_lab.sweep import estimate, pool, table
from minidepth_lab.tasks.base import own_code
from settings_changed import COMPUTING, MEASURING, TRAINING

ROOT = pathlib.Path(__file__).resolve().parents[2]
SMALL = "--data icqa --steps 6 --warmup_steps 1 --eval_every 3 --batch_size 8".split()


@pytest.fixture(autouse=True)
def quick(warm_cells):
    """Each test's grids. How a grid starts Python itself is seen where it is interrupted."""


@pytest.fixture(scope="module")
def grid(tmp_path_factory):
    """The out_dir of a finished grid of 2 x 2 runs, two at a time, and its command line."""

    def line(folder):
        return [*SMALL, "--out_dir", str(folder), "--n_layers", "1", "2", "--seed", "0", "1"]

    def make(folder):
        with pytest.MonkeyPatch.context() as patch:
            warm.start_cells(patch)
            assert train.main([*line(folder), "--jobs", "2"]) == 0

    out = made_once(tmp_path_factory, "grid", make)
    return out, line(out)


@pytest.fixture
def copied(grid, tmp_path):
    """A copy of that grid's out_dir without its summary, and the command line that finds it."""
    out, line = grid
    copy = tmp_path / "copy"
    shutil.copytree(out, copy, ignore=shutil.ignore_patterns("grid_*"))
    return copy, [str(copy) if part == str(out) else part for part in line]


def summary(out):
    (path,) = out.glob("grid_*/summary.json")
    return json.loads(path.read_text()), path.parent


def test_a_grid_trains_every_combination(grid):
    out, _ = grid
    found, losses = [], set()
    for path in out.glob("tasks_*"):
        config, last = json.loads((path / "config.json").read_text()), log_of(path)[-1]
        found.append((config["model"]["n_layers"], config["train"]["seed"]))
        losses.add(last["val_loss"])
        assert last["step"] == 6
        # the machine's paths are its own affair
        assert config["command"].startswith("python train.py --preset tasks --n_layers")
    assert sorted(found) == [(1, 0), (1, 1), (2, 0), (2, 1)] and len(losses) == 4


def test_the_summary_is_computed_from_the_logs(grid):
    out, line = grid
    found, folder = summary(out)
    assert {"summary.json", "summary.md", "summary.png"} <= set(os.listdir(folder))
    # what was asked of the project, whatever program did: here pytest, else a notebook
    asked = shlex.join(["python", "train.py", *line, "--jobs", "2"])
    assert found["command"] == console.without_home(asked)
    assert found["versions"]["torch"] and found["date"] and len(found["runs"]) == 4
    for row, layers in zip(found["table"], (1, 2)):
        logs = [log_of(path) for path in sorted(out.glob(f"tasks_n_layers-{layers}_*"))]
        assert row["labels"] == {"n_layers": str(layers)} and row["n"] == len(logs) == 2
        for key in ("val_loss", "train_loss_eval", "accuracy", "seconds"):
            a, b = (log[-1][key] for log in logs)
            mean, half = row[key]
            assert mean == pytest.approx((a + b) / 2)
            if a == b:  # values that do not differ say nothing of how far they might
                assert half is None
                continue
            # Student's t for one degree of freedom is 12.706; the standard error |a - b| / 2
            assert half == pytest.approx(12.706 * abs(a - b) / 2, rel=1e-4)
        best = [min(e["val_loss"] for e in log) for log in logs]
        assert row["best_val_loss"][0] == pytest.approx(sum(best) / 2)
        words = [math.exp(log[-1]["val_loss"]) for log in logs]
        assert row["perplexity"][0] == pytest.approx(sum(words) / 2)
        assert row["params_layers"][0] == layers * (4 * 64 * 64 + 2 * 64)
    mean, half = found["table"][0]["accuracy"]
    assert f"| 1 | 2 | {mean:.3f}" in (folder / "summary.md").read_text()


def test_a_finished_grid_is_not_run_again(copied, capsys):
    out, line = copied
    for path in out.glob("tasks_*/config.json"):
        config = json.loads(path.read_text())
        path.write_text(json.dumps(config | dict(device="a CPU, 77 threads")))
    before = {path: path.stat().st_mtime_ns for path in out.glob("tasks_*/*")}
    assert train.main(line) == 0
    assert "4 runs, 4 finished before" in capsys.readouterr().out
    assert summary(out)[0]["device"] == "a CPU, 77 threads"  # the runs', not that which waits
    assert before == {path: path.stat().st_mtime_ns for path in out.glob("tasks_*/*")}


def test_a_grid_goes_on_past_a_failed_run_and_resumes_a_stopped_one(grid, tmp_path, capsys):
    out, _ = grid
    line = [*SMALL, "--out_dir", str(tmp_path), "--seed", "1", "0", "--n_layers", "1"]
    for seed in (0, 1):  # stopped after three steps
        settings = dict(data=("icqa",), steps=6, warmup_steps=1, eval_every=3, batch_size=8)
        changes = settings | dict(n_layers=1, seed=seed, out_dir=str(tmp_path))
        name = naming.run_name("tasks", changes)
        m, t = registry.configs("tasks", name=name, **changes)
        stops = iter([False, False, True])
        data = registry.data_of(t, m.block_size)
        assert not running.train(m, t, data, stop=lambda: next(stops)).finished  # noqa: B023
    (tmp_path / t.name / "state.pt").write_bytes(b"torn")  # seed 1's
    assert train.main(line) == 1
    shown = capsys.readouterr()
    assert "train.py: seed 1 failed:" in shown.err and "state.pt" in shown.err
    ended = re.findall(r"^\[(\d)/2\] seed (\d): ", shown.out, re.M)
    assert ended == [("1", "1"), ("2", "0")]
    found, _ = summary(tmp_path)
    assert [run["labels"]["seed"] for run in found["runs"]] == ["0"]
    (resumed,) = tmp_path.glob("tasks_*_seed-0_*")
    (whole,) = out.glob("tasks_n_layers-1_*_seed-0_*")
    # nearly: the whole one had fewer threads, which add up in another order
    losses = [[record["val_loss"] for record in log_of(path)] for path in (resumed, whole)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)


# ---------- GPUs ----------


@pytest.mark.parametrize("jobs, device, visible, expected", [
    (1, "auto", None, [None]), (3, "cuda", None, ["0", "1", "0"]),
    (2, "auto", "5, GPU-c0ffee", ["5", "GPU-c0ffee"]), (2, "cpu", None, [None, None]),
])  # fmt: skip
def test_each_of_several_runs_has_a_gpu(jobs, device, visible, expected, monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 8)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    slots = pool.slots(jobs, device)
    assert [slot.get("CUDA_VISIBLE_DEVICES") for slot in slots] == expected
    threads = {1: None, 2: "4", 3: "2"}[jobs]  # a share of those that this process may use
    assert [slot.get("OMP_NUM_THREADS") for slot in slots] == [threads] * jobs


def test_a_run_takes_the_gpu_that_has_become_free():
    """Of two GPUs the second one's run goes on, and the other three follow each other on the first;
    one that cannot start takes none."""
    busy, used = [], []

    class Process:
        def __init__(self, cell, slot):
            self.cell, self.slot, self.returncode = cell, slot, 0
            assert slot not in busy
            busy.append(slot)

        def wait(self):
            while self.cell.name == "b" and len(used) < 5:
                time.sleep(0.01)
            busy.remove(self.slot)
            return 0

    def start(cell, slot):
        used.append((cell.name, slot["gpu"]))
        if cell.name == "c":
            raise OSError("no folder")
        return Process(cell, slot)

    good = dict(cost=1, outcome=lambda code: (True, ""))
    made = [types.SimpleNamespace(name=name, **good) for name in "abcde"]
    failed, stopped = pool.train_all(made, [dict(gpu=0), dict(gpu=1)], start)
    slots = dict(used)
    assert sorted(slots) == list("abcde") and slots["a"] != slots["b"]
    assert [name for name, slot in used if slot == slots["a"]] == list("acde")
    assert [cell.name for cell, _ in failed] == ["c"] and stopped is None


def test_an_error_in_the_grid_itself_leaves_no_run_behind():
    """The runs are told to stop, and are waited for."""
    children = []

    def start(cell, slot):
        children.append(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]))
        if len(children) == 2:
            raise ZeroDivisionError
        return children[-1]

    made = [types.SimpleNamespace(cost=1, outcome=lambda code: (True, "")) for _ in range(3)]
    try:
        with pytest.raises(ZeroDivisionError):
            pool.train_all(made, [{}, {}], start)
        assert len(children) == 2 and children[0].returncode is not None
    finally:
        for child in children:
            child.kill()
            child.wait()


# ---------- signals ----------


def wait_for(there):
    deadline = time.monotonic() + 120
    while not there() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert there(), "what is tested never came so far"


def test_interrupted_runs_are_saved_and_the_same_command_goes_on(tmp_path):
    """The signal goes to every process of the group, as a terminal's Ctrl-C does."""
    line = "--data icqa --n_layers 1 2 --steps 3000 --eval_every 1000 --out_dir".split()
    command = [sys.executable, str(ROOT / "train.py"), *line, str(tmp_path)]
    with open(tmp_path / "errors.txt", "w+") as file:
        own = dict(stderr=file, start_new_session=True)
        process = warm.Popen(command, stdout=subprocess.DEVNULL, **own)
        wait_for(lambda: list(tmp_path.glob("*/log.jsonl")))
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(timeout=600) == 130
        file.seek(0)
        errors = file.read()
    assert "train.py: interrupted" in errors and "Traceback" not in errors
    (folder,) = tmp_path.glob("tasks_*")  # the second never began
    # when the grid has ended, its run has too: saved, and long before its last step
    assert (folder / "state.pt").exists()
    assert "Stopped after step" in (folder / "stdout.txt").read_text()
    assert not list(tmp_path.glob("grid_*"))


DEAF = """
import pathlib, signal, sys, time
folder = pathlib.Path(sys.argv[1])
signal.signal(signal.SIGTERM, lambda number, frame: (folder / "told").touch())
(folder / "ready").touch()
time.sleep(60)
"""


def test_a_second_signal_kills_runs_that_do_not_stop(tmp_path, monkeypatch, capsys):
    children = []

    def start(*_):
        children.append(subprocess.Popen([sys.executable, "-c", DEAF, str(tmp_path)]))
        return children[-1]

    def tell_twice():
        for file in ("ready", "told"):
            wait_for((tmp_path / file).exists)
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(Cell, "start", start)
    telling = threading.Thread(target=tell_twice)
    telling.start()
    line = [*SMALL, "--seed", "0", "1", "--out_dir", str(tmp_path / "runs")]
    assert train.main(line) == 128 + signal.SIGTERM
    telling.join()
    (child,) = children  # no other has begun
    said = capsys.readouterr()
    assert child.returncode == -signal.SIGKILL and "seed 0" not in said.out  # as if it had failed
    assert said.err == "train.py: interrupted; the same command goes on\n"


def test_signals_are_noted_one_that_is_ignored_stays_so_and_handlers_come_back():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    try:
        with console.noted_signals() as noted:
            os.kill(os.getpid(), signal.SIGHUP)
            os.kill(os.getpid(), signal.SIGTERM)
        assert noted == [signal.SIGTERM]
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
        assert handlers == [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_terminal_may_hang_up_twice_and_a_second_ctrl_c_may_end_all():
    with console.noted_signals() as noted:
        for number in (signal.SIGHUP, signal.SIGHUP, signal.SIGINT):
            os.kill(os.getpid(), number)
    assert noted == [signal.SIGHUP, signal.SIGINT]
    with console.noted_signals(twice=True) as noted:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)  # torchrun adds it
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(10)
    assert noted == [signal.SIGINT, signal.SIGTERM]


# ---------- names and command lines ----------


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """mine.jsonl in the folder where one is."""
    rows = [dict(question=f"What is {i} + 1 ?", answer=f"#### {1 + i}") for i in range(40)]
    (tmp_path / "mine.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    monkeypatch.chdir(tmp_path)


def test_a_grid_says_so_when_its_data_has_changed_between_its_runs(mine):
    """Not if that is what it varies."""
    for name, values, found in (("seed", (0, 1, 2), ["a", "a", "b"]),
                                ("max_rows", (20, 30, 40), ["a", "b", "c"])):  # fmt: skip
        cells = []
        for value, fingerprint in zip(values, found):
            settings = dict(
                data="mine.jsonl", out_dir="out", name=f"{name}{value}", **{name: value}
            )
            cell = Cell({name: value}, {name: value}, *configs.make("laptop", **settings))
            os.makedirs(cell.folder)
            text = json.dumps(dict(fingerprint=[fingerprint]))
            pathlib.Path(cell.folder, "config.json").write_text(text)
            cells.append(cell)
        assert other_data(cells) == ([(cells[0], cells[2])] if name == "seed" else [])
    pathlib.Path(cell.folder, "config.json").write_text("{}")  # as older runs have none
    assert other_data(cells) == []


def test_every_setting_that_makes_other_data_is_known_as_such(mine):
    """No other changes it."""
    fields = set(vars(configs.TrainConfig())) - set(OF_DATA)
    rest = TRAINING | MEASURING | COMPUTING
    rest |= dict(epochs=1, compile=True, gradient_loops=1, fsdp=True, init_from="run")
    rest |= dict(report_to="wandb", minutes=5.0, out_dir="elsewhere")
    assert fields <= set(rest)
    _, t = configs.make("laptop", data="mine.jsonl", steps=4)
    other = dataclasses.replace(t, **{name: rest[name] for name in fields})
    assert registry.data_of(other, 80).fingerprint() == registry.data_of(t, 80).fingerprint()


@pytest.mark.parametrize("jobs, says", [(1, "1 at a time"), (50, "2 at a time")])
def test_a_dry_run_of_a_grid_lists_it(jobs, says, tmp_path, capsys):
    """More jobs than runs are not promised, and jobs share the machine."""
    line = [*SMALL, "--n_layers", "2", "--n_heads", "4", "8,4", "--jobs", str(jobs), "--dry_run"]
    assert train.main([*line, "--out_dir", str(tmp_path)]) == 0
    first, *rows, last = capsys.readouterr().out.splitlines()[1:]
    listed = [row for row in rows if "  n_heads " in row]
    assert [row.split("  ")[-1] for row in listed] == ["n_heads 4", "n_heads 8,4"]
    assert first == f"2 runs, 0 finished before, {says}"
    assert ", 12 s on this machine, " in last  # 6 steps of a second in each
    assert ("which share it" in last) == (jobs > 1) and not os.listdir(tmp_path)


def test_a_grid_over_layers_may_keep_the_parameters(tmp_path, capsys):
    """Each model has the width that gives it those of three layers, with every seed."""
    line = "--n_layers 1 2 --seed 0 1 --match_params 3 --dry_run --out_dir"
    assert train.main([*SMALL, *line.split(), str(tmp_path)]) == 0
    rows = [row for row in capsys.readouterr().out.splitlines() if "  n_layers " in row]
    assert [row.partition("  n_layers ")[2] for row in rows] == [
        f"{n}, seed {seed}" for n in (1, 2) for seed in (0, 1)
    ]
    counts = [int(row.split()[0].replace(",", "")) for row in rows]
    m, _ = registry.configs("tasks", n_layers=3, vocab_size=32)
    assert counts == pytest.approx([variants.parameters(m)["total"]] * 4, rel=0.02)
    assert counts[0] == counts[1] and counts[2] == counts[3]


def test_a_grids_dry_run_counts_epochs_as_a_runs_own(tmp_path, jsonl, capsys, monkeypatch):
    """By all rows that there are, and not by those that a step is measured on."""
    monkeypatch.setattr(estimate, "ROWS", 50)
    path = jsonl([dict(question=f"{i} + 1 ?", answer=f"{i + 1}") for i in range(240)])
    line = f"--data {path} --epochs 2 --max_rows 220 --block_size 60 --tokenizer_size 300"
    line += f" --n_layers 1 --eval_problems 0 --preset laptop --out_dir {tmp_path} --dry_run --seed"
    assert train.main([*line.split(), "0"]) == 0
    (steps,) = re.findall(r"tokens; (\d+) steps", capsys.readouterr().out)
    assert train.main([*line.split(), "0", "1"]) == 0
    listed = [line for line in capsys.readouterr().out.splitlines() if "  seed " in line]
    assert [line.split()[2] for line in listed] == [steps, steps]


def test_runs_of_a_grid_that_share_data_keep_what_their_own_settings_make_of_it():
    """A task's data knows when its training ends, and is tested otherwise then."""
    kept = {}
    for steps in (60, 70, 60):
        cell = Cell({}, {}, *registry.configs("walk", steps=steps))
        _, _, data = estimate.read(cell, kept)
        assert data.steps == steps
    assert len(kept) == 2


def test_steps_that_the_data_alone_tells_are_unknown_without_it(tmp_path, capsys):
    line = f"--preset report --epochs 2 --seed 0 1 --out_dir {tmp_path} --dry_run"
    assert train.main(line.split()) == 0
    out = capsys.readouterr().out
    (row,) = [line for line in out.splitlines() if line.endswith("  seed 0")]
    assert row.split()[1:4] == ["unknown"] * 3 and "in all unknown tokens; 2 runs could" in out


def test_a_run_is_finished_when_its_log_says_so_and_it_is_the_one_that_is_asked_for(copied):
    out, line = copied
    (folder,) = out.glob("tasks_n_layers-1_*_seed-0_*")
    m, t = checkpoints.read_config(folder)
    t = dataclasses.replace(t, out_dir=str(out), name=folder.name)
    assert is_finished(m, t) and is_finished(dataclasses.replace(m, vocab_size=0), t)
    # a finished run's config.json lists all sizes that were used, a cell only those given
    assert set(t.sizes) == {"symbols=16", "pairs=8"}
    for sizes in ((), ("pairs=8",), ("symbols=16.0", "pairs=8")):
        assert is_finished(m, dataclasses.replace(t, sizes=sizes))
    for wrong in (dict(sizes=("pairs=4",)), dict(sizes=("pairs=8", "length=3")), dict(seed=1)):
        with pytest.raises(ValueError, match="holds a run with other settings"):
            is_finished(m, dataclasses.replace(t, **wrong))
    with pytest.raises(ValueError, match="holds a run with other settings"):
        is_finished(dataclasses.replace(m, vocab_size=m.vocab_size + 1), t)
    lines = (folder / "log.jsonl").read_text().splitlines(keepends=True)
    late = json.loads(lines[-2]) | dict(ended_early=True)  # by --minutes
    (folder / "log.jsonl").write_text("".join(lines[:-2]) + json.dumps(late) + "\n")
    assert is_finished(m, dataclasses.replace(t, minutes=1.0)) and not is_finished(m, t)
    for text in ("".join(lines[:-1]) + lines[-1][:20], "".join(lines[:-1])):
        (folder / "log.jsonl").write_text(text)
        assert not is_finished(m, t)
    assert train.main(line) == 0 and len(summary(out)[0]["runs"]) == 4  # it died before that line
    assert (folder / "log.jsonl").read_text() == "".join(lines)


def test_long_names_are_cut_and_never_meet():
    words = ["ä" * 90 + "a", "ä" * 90 + "b", "a" + "ä" * 90]  # two bytes each
    names = [naming.run_name("laptop", dict(data=(a, b))) for a in words for b in words]
    names += [naming.run_name("laptop", dict(tokenizer=c + "/x" * 60)) for c in "ab"]
    for n in (80, 120):  # a grid of many values
        names.append(grid_name("laptop", [cell_of(seed=seed, n_layers=12) for seed in range(n)]))
    assert len(set(names)) == len(names) == 13
    for name in names:
        assert len(name.encode()) < 60 and re.fullmatch(r"[^/]*_[0-9a-f]{8}", name)
    assert naming.run_name("laptop", dict(n_layers=2, seed=1)) == "laptop_n_layers-2_seed-1"
    sizes = dict(sizes=("pairs=4", "symbols=8"), name="x", device="cpu")
    assert naming.run_name("tasks", sizes) == "tasks_sizes-pairs-4+symbols-8"


def test_a_long_name_says_what_differs_and_of_a_path_its_end():
    many = dict(steps=50, save_every=25, eval_every=25, tokenizer="/a/b/tokenizers/words/tokenizer")
    many |= dict(data=("/home/somewhere/data/cot/train.jsonl",), n_layers=1, seed=1)
    name = naming.run_name("report", many)
    assert name.startswith("report_n_layers-1_data-train.jsonl_steps-50_seed-1_")
    for other in (dict(data=("/home/elsewhere/train.jsonl",)), dict(eval_every=5), dict(seed=0)):
        assert naming.run_name("report", many | other) != name
    # the same run of two grids, which give their flags in another order
    assert naming.run_name("report", dict(reversed(many.items()))) == name
    more = many | dict(tokenizer_size=300, n_loops=1)  # not in its checksum alone
    assert "_words-300_" in naming.run_name("laptop", more)
    windows = naming.run_name("laptop", dict(data=("C:\\Users\\me\\" + "x" * 60 + "\\mine.jsonl",)))
    assert windows.startswith("laptop_data-mine.jsonl_")


def cell_of(**settings):
    m, t = configs.make("laptop")
    return Cell({}, settings, m, t)


def test_settings_become_the_command_line_that_gives_them():
    settings = dict(n_heads=(8, 4), tie_weights=False, data=("a.jsonl", "embedded"), lr=0.001)
    settings |= dict(sizes=("hops=1+2", "symbols=4"))
    line = "--n_heads 8,4 --no-tie_weights --data a.jsonl embedded --lr 0.001"
    assert as_flags(settings) == [*line.split(), "--sizes", "hops=1+2,symbols=4"]
    with pytest.raises(ValueError, match="attn_scale None cannot be typed as a flag; leave it out"):
        as_flags(dict(attn_scale=None))


def test_a_run_is_made_or_goes_on_by_the_command_of_its_cell(tmp_path):
    """A run's folder executes nothing: only what the command line names does. It goes on where the
    repeated grid says, as on the CPU if the GPU was full; not in another folder, and with no other
    settings."""
    m, t = configs.make("laptop", out_dir=str(tmp_path), name="run")
    (tmp_path / "run").mkdir()
    line = Cell({}, dict(seed=3, name="grid"), m, t).command("laptop", dict(lr=0.1))
    assert line == "--preset laptop --lr 0.1 --seed 3 --name run".split()
    (tmp_path / "run" / "config.json").write_text("{}")
    given = dict(lr=0.1, out_dir=str(tmp_path), name="grid", device="cpu", precision="fp32")
    given |= dict(grad_checkpoint=False, report_to="tensorboard", fsdp=True)
    line = Cell({}, given, m, t).command("laptop", {})
    places = "--device cpu --precision fp32 --fsdp --no-grad_checkpoint --report_to tensorboard"
    assert line == ["--resume", str(tmp_path / "run"), "--minutes", "0.0", *places.split()]
    taken = vars(flags.make_parser(full=False).parse_args(line))
    assert taken["device"] == "cpu" and taken["precision"] == ["fp32"]
    for data, loader, named in (
        (t.data, "thinking", []),  # which is ours
        (("my_task.py",), "my.py", ["--data", "my_task.py", "--loader", "my.py"]),
    ):
        of_code = Cell({}, {}, m, dataclasses.replace(t, data=data, loader=loader))
        again = ["--resume", str(tmp_path / "run"), "--minutes", "0.0", *named]
        assert of_code.command("laptop", {}) == again


def test_what_a_run_prints_is_not_written_elsewhere_nor_waited_for(tmp_path, monkeypatch):
    """A stopped run's folder may be anybody's."""
    start = "minidepth_lab.measure.cell.subprocess.Popen"
    monkeypatch.setattr(start, lambda *_, stdout, **__: stdout.write(b"begun"))
    m, t = configs.make("laptop", out_dir=str(tmp_path), name="run")
    cell, printed = Cell({}, {}, m, t), tmp_path / "run" / "stdout.txt"
    for _ in range(2):  # it is made, and gone on with
        cell.start("laptop", {}, {})
    assert printed.read_text() == "begun" * 2
    for text, last in (("\n \n", "no output"), ("one\n two \n\n", "two")):
        printed.write_text(text)
        assert cell.outcome(1) == (False, last)
        assert cell.outcome(-9) == (False, f"ended by signal 9; its last line: {last}")
    good, said = cell.outcome(0)  # as if all were well
    assert not good and "config.json is not the configuration of a run" in said
    printed.rename(tmp_path / "mine.txt")
    printed.symlink_to("../mine.txt")
    with pytest.raises(ValueError, match="is a link that leads out of the run's folder"):
        cell.start("laptop", {}, {})
    assert (tmp_path / "mine.txt").read_text() == "one\n two \n\n"
    printed.unlink()
    os.mkfifo(printed)
    with pytest.raises(ValueError, match="it is not a regular file"):
        cell.start("laptop", {}, {})


def test_a_preset_of_a_study_of_ones_own_is_spelled_out(tmp_path):
    """The runs' command lines do not name the study, which would be executed in each."""
    own = dict(n_layers=3, d_model=8, n_heads=2)
    mine = types.SimpleNamespace(__file__=str(tmp_path / "mine.py"), PRESETS=dict(mine=own))
    preset, settings = typed_preset("mine", mine)
    assert configs.make(preset, **settings)[0] == configs.ModelConfig(**own)
    assert typed_preset("laptop", mine) == ("laptop", {})
    assert typed_preset("heads", heads) == ("heads", {})
    assert typed_preset("laptop", None) == ("laptop", {})


# ---------- tables ----------


def test_an_accuracy_for_each_value_of_a_size_gives_a_record_for_each(copied, capsys):
    """Two models, two seeds, each with an accuracy for two hops: four runs, not eight. What is of
    all hops together is told once."""
    out, _ = copied
    cells = []
    for folder in sorted(out.glob("tasks_*")):
        log, (m, t) = log_of(folder), checkpoints.read_config(folder)
        more = 0.1 * t.seed * m.n_layers
        by_hops = {"1": dict(accuracy=0.5 + more, shortcut=0.7), "2": dict(accuracy=0.4 - more)}
        log[-1]["accuracy_by"] = dict(hops=by_hops)
        write_log(folder, log)
        t = dataclasses.replace(t, out_dir=str(out), name=folder.name, data=("khop",))
        labels = dict(model=f"{m.n_layers} layers", seed=t.seed, sizes=("hops=1+2",))
        cells.append(Cell(labels, {}, m, t))
    one, two, *_ = table.records(table.finished(cells))
    assert one["labels"]["hops"] == "1" and (one["accuracy"], one["shortcut"]) == (0.5, 0.7)
    assert two["labels"]["hops"] == "2" and two["accuracy"] == 0.4
    assert not set(table.OF_ALL) & (one.keys() | two.keys()) and one["guess"] == log[-1]["guess"]
    table.summarize(str(out / "grid"), cells, "python train.py")
    about = json.loads((out / "grid" / "summary.json").read_text())
    assert about["n_runs"] == 4 and len(about["runs"]) == 8
    models = [row["labels"] for row in about["table"]]
    assert models == [dict(model="1 layers"), dict(model="2 layers")]
    assert all("val_loss" in row and row["n"] == 2 for row in about["table"])
    assert [row["labels"]["hops"] for row in about["by_value"]] == ["1", "2"] * 2
    *differences, number = about["differences"]
    assert len(differences) == 4  # accuracy and loss, and the accuracy of each hops
    assert number.startswith("these are 4 intervals, each of 95 % by itself; p is corrected")
    assert train.main(["--report", str(out / "grid")]) == 0
    assert (out / "grid" / "report.html").read_text(encoding="utf-8").count("<table>") == 2
    table.summarize(str(out / "drawn"), [Cell(dict(n_layers=2), {}, m, t)], "python train.py")
    assert (out / "drawn" / "hops.png").exists()  # the task draws its errors by hops
    # losses alone can be compared where one run has no accuracy: none is told by hops
    del log[-1]["accuracy"], log[-1]["accuracy_by"]
    write_log(folder, log)
    table.summarize(str(out / "grid"), cells, "python train.py")
    about = json.loads((out / "grid" / "summary.json").read_text())
    assert len(about["runs"]) == 4 and about["by_value"] == []
    assert "accuracy" not in about["table"][1]


def write_log(folder, log):
    (folder / "log.jsonl").write_text("".join(json.dumps(record) + "\n" for record in log))


def test_the_label_sizes_keeps_what_tells_runs_apart():
    def left(*pairs):
        runs = [dict(labels=dict(sizes=sizes, hops=hops)) for sizes, hops in pairs]
        table.drop_repeated_sizes(runs)
        assert [run["labels"]["hops"] for run in runs] == [hops for _, hops in pairs]
        return [run["labels"].get("sizes") for run in runs]

    assert left(("hops=1", "1"), ("hops=2", "2")) == [None, None]
    assert left(("length=9,hops=1", "1"), ("hops=2,length=9", "2")) == [None, None]
    assert left(("hops=1+2", "1"), ("hops=1", "1")) == ["hops=1+2", "hops=1"]
    assert left(("hops=1,length=9", "1"), ("hops=2,length=8", "2")) == ["length=9", "length=8"]
    assert left(("hops=1,length=9", "1"), ("hops=2", "2")) == ["length=9", ""]


def test_differences_pair_runs_of_the_same_seed_and_labels():
    runs = []
    for hops, gap in (("1", 0.1), ("2", 0.3)):
        for seed in range(3):
            labels = dict(seed=str(seed), hops=hops)
            runs.append(dict(labels=dict(model="A") | labels, accuracy=0.1 * seed))
            if (hops, seed) != ("2", 2):
                more = gap + 0.01 * seed
                runs.append(dict(labels=dict(model="B") | labels, accuracy=0.1 * seed + more))
    found = list(table.differences(runs, ["accuracy"]))
    (one, p), (two, q) = found
    assert not list(table.differences(runs[:2], ["accuracy"]))  # of one seed
    # Student's t for two degrees of freedom is 4.303, the standard error 0.01 / √3
    low, high = 0.11 - 4.3027 * 0.01 / 3**0.5, 0.11 + 4.3027 * 0.01 / 3**0.5
    says = f"accuracy, hops 1, B minus A: +0.110, 95 % interval from {low:+.3f} to {high:+.3f}, "
    assert one == says + "excludes 0 (n = 3, same seeds)"
    assert two.startswith("accuracy, hops 2, B minus A: +0.305,") and "(n = 2, same" in two
    # t = 0.11 / (0.01 / √3) = 19.05 for two degrees of freedom, 61 for one; the lower counts twice
    assert p == pytest.approx(0.00274, abs=1e-5) and q == pytest.approx(0.01044, abs=1e-5)
    assert [line.rpartition(" p ")[2] for line in table.corrected(found)[:2]] == ["0.0055", "0.01"]


@pytest.mark.parametrize(("gaps", "says"), [
    ((-0.10, -0.11, -0.12), "-0.110, 95 % interval from -0.135 to -0.085, excludes 0"),
    ((-0.10, 0.11, -0.12), "does not exclude 0"),
    ((0.3 - 0.2, 0.2 - 0.1), "+0.100, no interval, the gaps do not differ (n = 2"),
])  # fmt: skip
def test_a_difference_excludes_0_on_either_side_but_not_without_a_width(gaps, says):
    runs = []
    for seed, gap in enumerate(gaps):
        for model, accuracy in (("A", 0.0), ("B", gap)):
            runs.append(dict(labels=dict(model=model, seed=str(seed)), accuracy=accuracy))
    ((line, _),) = table.differences(runs, ["accuracy"])
    assert says in line and ("excludes 0" in line) == ("excludes 0" in says)


def test_a_table_of_runs_with_different_labels_has_all_columns():
    different = dict(model="A"), dict(model="B", hops="1")
    runs = [dict(labels=labels, val_loss=1.0) for labels in different]
    text, entries = table.make_table(runs)
    assert text.splitlines() == [
        "| model | hops | n | validation loss |",
        "| --- | --- | --- | --- |",
        "| A |  | 1 | 1 |",
        "| B | 1 | 1 | 1 |",
    ]
    assert entries[0] == dict(labels=dict(model="A"), n=1, val_loss=(1.0, None))
    two = [dict(labels=dict(seed=str(seed)), val_loss=1.0 + seed) for seed in (0, 1)]
    text, _ = table.make_table(two)  # Student's t for one degree of freedom is 12.706
    assert text.splitlines()[2] == "| 2 | 1.5 ± 6.35 |"


def test_the_study_and_the_task_draw_figures_of_their_own(tmp_path, capsys):
    class Owner:
        def __init__(self, name):
            self.name = name

        def figure(self, runs, folder):
            if self.name == "fails":
                raise KeyError
            (pathlib.Path(folder) / self.name).write_text(runs[0]["labels"]["model"])

    runs = []
    for model, params in (("A", 10), ("B", 20)):
        runs.append(dict(labels=dict(model=model), val_loss=1.0, params_total=params, depth=1))
    table.draw_all(str(tmp_path), runs, Owner("fails"), Owner("task.txt"))
    table.draw_all(str(tmp_path), runs, Owner("study.txt"))
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"summary.png", "plane.png", "study.txt", "task.txt"}
    assert (tmp_path / "task.txt").read_text() == "A"
    assert capsys.readouterr().err.count("could not be drawn") == 1


def test_a_study_of_several_sizes_names_its_own_task(
    tmp_path, in_this_process, monkeypatch, capsys
):
    """In its rows or in its preset; and of the runs of two sizes it draws no figure."""
    task = "import torch\nfrom minidepth_lab.tasks import Task\n\nclass Own(Task):\n"
    task += "    def draw(self, batch, generator, test=False, words=4):\n"
    task += "        some = torch.randint(words, (batch, 3), generator=generator)\n"
    task += "        return some, some\n\nTASK = Own()\n"
    study = "PRESETS = {'study': dict(data=('task.py',), steps=2, d_model=8, n_heads=2)}\n"
    study += "def rows(preset, settings):\n    return dict(own=settings | dict(n_layers=1))\n"
    study += "def figure(runs, folder):\n    open(folder + '/own', 'w')\n"
    in_rows = study.replace("n_layers=1", "n_layers=1, data=('task.py',)")
    monkeypatch.chdir(tmp_path)
    pathlib.Path("task.py").write_text(task)
    small = "--warmup_steps 0 --batch_size 2 --eval_every 2 --steps 2 --d_ff 8".split()
    for name, text, more in (("study", study, []), ("rows", in_rows, ["--preset", "tasks"])):
        pathlib.Path(f"{name}.py").write_text(text)
        line = ["--study", f"{name}.py", *more, *small, "--out_dir", name]
        monkeypatch.setattr(own_code, "NAMED", set())
        assert train.main([*line, "--sizes", "words=3", "words=5"]) == 0, capsys.readouterr().err
        said = capsys.readouterr().out
        assert "| own | words=3 | 1 |" in said and "| own | words=5 | 1 |" in said
        assert not list(pathlib.Path(name).rglob("own"))
    assert train.main(line) == 0 and len(list(pathlib.Path("rows").rglob("own"))) == 1
    made = [json.loads(path.read_text()) for path in pathlib.Path().rglob("config.json")]
    assert len(made) == 5 and {about["train"]["seed"] for about in made} == {0}
