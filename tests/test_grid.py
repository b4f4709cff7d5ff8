"""Grids and studies: what is run, skipped, resumed and reported, and the numbers in the tables."""

import functools
import json
import math
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

import minidepth as md
import train

ROOT = pathlib.Path(__file__).resolve().parents[1]
SMALL = "--data icqa --steps 6 --warmup_steps 1 --eval_every 3 --batch_size 8".split()


def log_of(folder):
    return [json.loads(line) for line in open(folder / "log.jsonl")]


@pytest.fixture(scope="module")
def grid(tmp_path_factory):
    """The out_dir of a finished grid of 2 x 2 runs, two at a time, and its exit code."""
    out = tmp_path_factory.mktemp("grid")
    line = [*SMALL, "--out_dir", str(out), "--n_layers", "1", "2", "--seed", "0", "1"]
    return out, train.main([*line, "--jobs", "2"]), line


def summary(out):
    (path,) = out.glob("grid_*/summary.json")
    return json.loads(path.read_text()), path.parent


def test_a_grid_trains_every_combination(grid):
    out, code, _ = grid
    assert code == 0
    runs = {path.name: log_of(path) for path in out.glob("tasks_*")}
    assert len(runs) == 4 and all(log[-1]["step"] == 6 for log in runs.values())
    configs = [json.loads((out / name / "config.json").read_text()) for name in runs]
    cells = {(config["model"]["n_layers"], config["train"]["seed"]) for config in configs}
    assert cells == {(1, 0), (1, 1), (2, 0), (2, 1)}
    for config in configs:  # the machine's paths are its own affair
        assert config["command"].startswith("python train.py --preset tasks --n_layers")
    losses = {log[-1]["val_loss"] for log in runs.values()}
    assert len(losses) == 4


def test_the_summary_is_computed_from_the_logs(grid):
    out, _, _ = grid
    found, folder = summary(out)
    assert {"summary.json", "summary.md", "summary.png"} <= set(os.listdir(folder))
    assert found["versions"]["torch"] and found["date"] and len(found["runs"]) == 4
    for row, layers in zip(found["table"], (1, 2)):
        logs = [log_of(path) for path in sorted(out.glob(f"tasks_n_layers-{layers}_*"))]
        assert row["labels"] == {"n_layers": str(layers)} and row["n"] == len(logs) == 2
        for key in ("val_loss", "train_loss_eval", "accuracy", "seconds"):
            a, b = (log[-1][key] for log in logs)
            mean, half = row[key]
            assert mean == pytest.approx((a + b) / 2)
            # Student's t for one degree of freedom is 12.706; the standard error |a - b| / 2
            assert half == pytest.approx(12.706 * abs(a - b) / 2, rel=1e-4, abs=1e-12)
        best = [min(e["val_loss"] for e in log) for log in logs]
        assert row["best_val_loss"][0] == pytest.approx(sum(best) / 2)
        assert row["params_blocks"][0] == layers * (4 * 64 * 64 + 2 * 64)
    text = (folder / "summary.md").read_text()
    mean, half = found["table"][0]["accuracy"]
    assert f"| 1 | 2 | {mean:.3f}" in text and "python train.py" not in text.split("`")[0]


def test_a_finished_grid_is_not_run_again(grid, capsys):
    out, _, line = grid
    before = {path: path.stat().st_mtime_ns for path in out.glob("tasks_*/*")}
    assert train.main(line) == 0
    assert "4 runs, 4 finished before" in capsys.readouterr().out
    assert before == {path: path.stat().st_mtime_ns for path in out.glob("tasks_*/*")}


def test_a_grid_goes_on_past_a_failed_run_and_resumes_a_stopped_one(grid, tmp_path, capsys):
    out, _, _ = grid
    line = [*SMALL, "--out_dir", str(tmp_path), "--seed", "0", "1", "2", "--n_layers", "1"]
    for seed in (0, 1):  # stopped after three steps
        settings = dict(data=("icqa",), steps=6, warmup_steps=1, eval_every=3, batch_size=8)
        changes = settings | dict(n_layers=1, seed=seed, out_dir=str(tmp_path))
        name = f"tasks_n_layers-1_data-icqa_steps-6_batch_size-8_warmup_steps-1_seed-{seed}_eval"
        m, t = md.configs("tasks", name=name + "_every-3", **changes)
        stops = iter([False, False, True])
        assert not md.train(m, t, stop=lambda: next(stops)).finished  # noqa: B023
    (tmp_path / t.name / "state.pt").write_bytes(b"torn")  # seed 1's
    assert train.main(line) == 1
    shown = capsys.readouterr()
    assert "train.py: seed 1 failed:" in shown.err and "state.pt" in shown.err
    found, _ = summary(tmp_path)
    assert [run["labels"]["seed"] for run in found["runs"]] == ["0", "2"]
    resumed = [log for log in map(log_of, tmp_path.glob("tasks_*_seed-0_*"))][0]
    whole = [log for log in map(log_of, out.glob("tasks_n_layers-1_*_seed-0_*"))][0]
    # nearly: the whole one had fewer threads, which add up in another order
    losses = [[row["val_loss"] for row in log] for log in (resumed, whole)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)


def test_interrupted_runs_are_saved_and_the_same_command_goes_on(tmp_path):
    line = "--data icqa --n_layers 1 2 --steps 3000 --eval_every 1000 --out_dir".split()
    command = [sys.executable, str(ROOT / "train.py"), *line, str(tmp_path)]
    # a shell's background job, as these tests may be one, ignores Ctrl-C, and so would its children
    listen = functools.partial(signal.signal, signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(
        command, start_new_session=True, stdout=subprocess.PIPE, preexec_fn=listen
    )
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("*/log.jsonl")) and time.monotonic() < deadline:
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal's Ctrl-C does
    assert process.wait(timeout=60) == 130
    folders = list(tmp_path.glob("tasks_*"))
    assert len(folders) == 1 and (folders[0] / "state.pt").exists()  # the second never began
    assert not list(tmp_path.glob("grid_*"))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--seed 0 1 0", "--seed has 0 twice"),
        (f"--seed {' '.join(map(str, range(201)))}", "201 runs are more than 200; give --yes"),
        ("--seed 0 1 --jobs 0", "--jobs 0 does not work"),
        ("--n_heads 2 3", "n_heads 3 does not divide d_model 64"),
        ("--seed 0 1 --bench", "several values of a flag make a grid"),
        ("--study breadth", "study 'breadth' is unknown; choose from depth"),
        ("--study depth --d_ff 0 64", "a study varies the seed alone; give one value of --d_ff"),
        ("--match_params 2 --match heads", "--match heads is unknown; give total or blocks"),
        ("--match_params 0", "--match_params 0 does not work"),
    ],
)
def test_what_makes_no_grid_is_told_before_anything_runs(line, words, tmp_path, capsys):
    assert train.main([*SMALL, *line.split(), "--out_dir", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert words in error and error.count("\n") == 1 and not os.listdir(tmp_path)


def test_a_run_with_other_settings_is_not_taken_for_finished(grid, tmp_path, capsys):
    out, _, line = grid
    (folder,) = out.glob("tasks_n_layers-1_*_seed-0_*")
    copy = tmp_path / folder.name
    copy.mkdir()
    for name in ("config.json", "log.jsonl"):
        (copy / name).write_text((folder / name).read_text().replace('"lr": 0.002', '"lr": 0.001'))
    line = [str(tmp_path) if part == str(out) else part for part in line]
    assert train.main(line) == 2
    assert "holds a run with other settings" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == [folder.name]


def test_a_dry_run_of_a_grid_lists_it(tmp_path, capsys):
    line = [*SMALL, "--n_layers", "1", "2", "--n_heads", "4", "8,4", "--dry_run"]
    assert train.main([*line, "--out_dir", str(tmp_path)]) == 2  # 8,4 is two layers' list
    assert "n_heads has 2 numbers but n_layers is 1" in capsys.readouterr().err
    del line[line.index("--n_layers") + 1]
    assert train.main([*line, "--out_dir", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "n_heads 4\nn_heads 8,4\n" in out and not os.listdir(tmp_path)


# ---------- matched widths, the study ----------


def test_width_matched_gives_the_reports_numbers():
    """notes of the project: 504 for the 79.69 M of twelve layers, not the article's 600."""
    one, _ = md.configs("report", n_layers=1)
    twelve = md.parameters(md.configs("report", n_layers=12)[0])
    wide = md.width_matched(one, twelve["total"])
    assert (wide.d_model, wide.d_ff, wide.n_layers) == (504, 2016, 1)
    assert md.parameters(wide)["total"] == pytest.approx(79.75e6, abs=5e3)
    off = [abs(md.parameters(width(one, d))["total"] - twelve["total"]) for d in (496, 504, 512)]
    assert min(off) == off[1]
    blocks = md.width_matched(one, twelve["blocks"], "blocks")
    assert md.parameters(blocks)["blocks"] == pytest.approx(twelve["blocks"], rel=0.02)
    assert blocks.d_model == 8 * round(384 * math.sqrt(12) / 8)  # blocks grow with its square
    same = md.width_matched(one, md.parameters(one)["total"])
    assert same == one


def width(config, d_model):
    return md.ModelConfig(**vars(config) | dict(d_model=d_model, d_ff=4 * d_model))


def test_widths_that_cannot_match_name_the_nearest():
    small = md.ModelConfig(vocab_size=10, block_size=4, n_layers=1, n_heads=8, d_model=8, d_ff=32)
    with pytest.raises(ValueError, match=r"within 2 %; nearest: d_model 8 with [\d,]+"):
        md.width_matched(small, 2 * md.parameters(small)["total"])


def test_the_depth_study_has_the_four_cells_and_says_what_differs(tmp_path, capsys):
    line = "--study depth --n_layers 3 --seed 0 1 --max_rows 200 --steps 4 --warmup_steps 1"
    line += " --eval_problems 6 --eval_every 4 --batch_size 8 --preset laptop --jobs 2"
    assert train.main([*line.split(), "--out_dir", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    found = json.loads((tmp_path / "study_depth_laptop" / "summary.json").read_text())
    rows = {row["labels"]["model"]: row for row in found["table"]}
    depth = {run["labels"]["model"]: run["depth"] for run in found["runs"]}
    assert depth == {"1 layer": 1, "3 layers": 3, "1 layer, 3 times": 3, "1 wide layer": 1}
    total = {name: row["params_total"][0] for name, row in rows.items()}
    assert total["1 layer"] == total["1 layer, 3 times"] < total["3 layers"]
    assert total["1 wide layer"] == pytest.approx(total["3 layers"], rel=0.02)
    assert (tmp_path / "study_depth_laptop" / "plane.png").exists()
    assert (tmp_path / "study_depth_laptop" / "problems.png").exists()
    gaps = {}
    for run in found["runs"]:
        gaps.setdefault(run["labels"]["seed"], {})[run["labels"]["model"]] = run["val_loss"]
    a, b = (gaps[seed]["3 layers"] - gaps[seed]["1 layer"] for seed in "01")
    mean, half = (a + b) / 2, 12.706 * abs(a - b) / 2
    says = "excludes 0" if abs(mean) > half else "does not exclude 0"
    assert f"validation loss, 3 layers minus 1 layer: {mean:+.3f}, 95 % interval from " in out
    assert f"{mean - half:+.3f} to {mean + half:+.3f}, {says} (n = 2, same seeds)" in out


def test_problems_are_drawn_by_kind_and_row_of_the_table(tmp_path, monkeypatch):
    maps, real = [], train.heat_map
    see = lambda axes, rows, *a, **k: maps.append((axes, rows)) or real(axes, rows, *a, **k)  # noqa: E731
    monkeypatch.setattr(train, "heat_map", see)
    found = {("2", "direct"): [(0.1, 0.2), (0.5, 0.4)], ("2", "thinking"): [(1, 0.9), (0.7, 1)]}
    runs = [
        dict(
            labels=dict(n_layers=layers, answer=answer, seed=str(seed)),
            accuracy_by_problem={"lookup 1": one, "lookup 2": two},
        )
        for (layers, answer), pairs in found.items()
        for seed, (one, two) in enumerate(pairs)
    ]
    train.draw_problems(runs, tmp_path / "problems.png")
    ((axes, rows),) = maps
    assert rows == [pytest.approx([0.3, 0.85]), pytest.approx([0.3, 0.95])]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["2\ndirect", "2\nthinking"]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["lookup 1", "lookup 2"]
    assert axes.get_xlabel() == "n_layers, answer" and "n = 2" in axes.get_title()
    assert (tmp_path / "problems.png").exists()


def test_interval_is_students_t():
    assert md.interval([1.0, 2.0, 3.0, 4.0, 5.0]) == pytest.approx(
        (3, 2.776 * math.sqrt(0.5)), 1e-3
    )
    mean, half = md.interval([7.0])
    assert mean == 7 and math.isnan(half)


def test_published_tables_are_read_as_numbers():
    log = md.published("report_log_12_layers")
    assert len(log) == 21 and log[0]["train_loss"] == 12.0194 and log[-1]["step"] == 500
    assert md.published("heads_schedules")[0]["heads"] == "3-6-12-24"
    with pytest.raises(ValueError, match="'x' is unknown; choose from heads_schedules, llmini"):
        md.published("x")


def test_the_reports_runs_are_drawn_beside_the_published_ones(tmp_path, monkeypatch):
    drawn, real = [], train.draw_logs
    monkeypatch.setattr(train, "draw_logs", lambda logs, path: drawn.append((logs, path)))
    log = [dict(step=1, train_loss=12.0, val_loss=11.9)]
    for n_layers in (1, 12, 3):
        m, t = md.configs("report", n_layers=n_layers, d_model=8, d_ff=8)
        train.draw_curve(md.Run(str(tmp_path / "ours"), md.GPT(m), None, log), t)
    assert [logs.get("published") for logs, _ in drawn] == [
        md.published("report_log_1_layers"), md.published("report_log_12_layers"), None
    ]  # fmt: skip
    assert all(logs["ours"] == log and path.endswith("ours/curve.png") for logs, path in drawn)
    real(drawn[0][0], str(tmp_path / "both.png"))
    assert (tmp_path / "both.png").stat().st_size > 10_000
