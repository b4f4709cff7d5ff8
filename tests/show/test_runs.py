"""The list of runs, some of them side by side, and how long a grid will take."""

import json
import os
import shutil
import sys
from unittest import mock

import pytest

import train
from conftest import call
from minidepth_lab.command import one_run
from minidepth_lab.keep import checkpoints, registry, running
from minidepth_lab.measure import forecast
from minidepth_lab.measure.cell import Cell
from minidepth_lab.models import variants
from minidepth_lab.show import runs
from minidepth_lab.sweep import estimate

LONG = "laptop_n_layers-12_data-embedded_steps-1100_seed-0_1234abcd"


@pytest.fixture(scope="module")
def place(finished, solved, tmp_path_factory):
    """A folder with a finished run, one in a grid, one that was stopped, one that is damaged, one
    that ended early, a folder of another program, and the run of a task."""
    out = tmp_path_factory.mktemp("all")
    copies = dict(one=finished, stopped=finished, early=finished, damaged=finished, two=solved)
    for name, source in copies.items():
        shutil.copytree(source, out / name)
    shutil.copytree(finished, out / "grid" / LONG)
    (out / "grid" / "summary.json").write_text("{}")
    (out / "hf").mkdir()
    (out / "hf" / "config.json").write_text('{"model_type": "gpt2"}')
    lines = (out / "stopped" / "log.jsonl").read_text().splitlines(keepends=True)
    (out / "stopped" / "log.jsonl").write_text("".join(lines[:2]))
    last = json.loads(lines[1]) | dict(ended_early=True)
    (out / "early" / "log.jsonl").write_text(lines[0] + json.dumps(last) + "\n")
    (out / "damaged" / "config.json").write_text('{"model": {')
    for age, name in enumerate(("two", "early", "stopped", "one")):
        os.utime(out / name / "log.jsonl", (1.7e9 - age * 1e5,) * 2)
    return out


def names_of(out):
    return [line.split()[0] for line in out.splitlines()[1:] if not line.startswith(" ")]


def test_the_list_has_every_run_in_80_columns(place, capsys):
    code, out, _ = call(f"--runs --out_dir {place}", capsys)
    lines = out.splitlines()
    assert code == 0 and max(len(line) for line in lines) <= 80
    assert lines[0].split() == "name layers params words data loss right status date".split()
    rows = {line.split()[0]: line for line in lines if not line.startswith(" ")}
    last = [json.loads(line) for line in open(place / "one" / "log.jsonl")][-1]
    assert rows["one"].split()[1:] == [
        "2", "10.8k", "332", "embedded", f"{last['val_loss']:.4f}"[:6], f"{last['accuracy']:.3f}",
        "finished", "11-11",
    ]  # fmt: skip
    assert "5/12" in rows["stopped"] and "early end" in rows["early"]
    assert "damaged" in rows["damaged"] and "icqa" in rows["two"] and "hf" not in rows
    # a name too long for its column has a line of its own, to be typed as it is
    at = lines.index(f"grid/{LONG}")
    assert lines[at + 1].startswith(" " * 21 + "2")
    assert names_of(out)[:4] == ["one", "stopped", "early", "two"]  # the newest last


@pytest.mark.skipif(os.name != "posix", reason="pipes as POSIX has them")
def test_a_command_is_quiet_when_nobody_reads_on(place, tiny, monkeypatch, capsys):
    """`--runs | head -1` ended with the words of a full disk. A run says how it goes on."""
    read, write = os.pipe()
    os.close(read)
    with open(write, "w") as nobody, monkeypatch.context() as patch:  # at its end it is flushed
        patch.setattr(sys, "stdout", nobody)
        assert train.main(["--runs", "--out_dir", str(place)]) == 141
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(running, "train", mock.Mock(side_effect=BrokenPipeError))
    with pytest.raises(ValueError, match="nobody reads what this run prints any more; go on with"):
        one_run.run_training(*tiny(), "python train.py")


def test_the_list_is_sorted_and_chosen_from_by_flags(place, capsys):
    def listed(flags):
        return call(f"--runs --out_dir {place} {flags}", capsys)[1]

    by_accuracy = names_of(listed("--sort accuracy"))
    assert by_accuracy[0] == "two" and by_accuracy[-1] == "damaged"
    by_name = ["damaged", "early", f"grid/{LONG}", "one", "stopped", "two"]
    assert names_of(listed("--sort name")) == by_name
    pairs = checkpoints.read_config(str(place / "two"))[1].sizes[0]
    for flags in ("--data icqa", f"--sizes {pairs}"):
        out = listed(flags)
        assert names_of(out)[:1] == ["two"] and "1 of 6 runs" in out
    assert "4 of 6 runs" in listed("--steps 5 12 --d_model 16 --sort name")
    # config.json has ~ for the home folder, and the shell has not
    path = place / "one" / "config.json"
    text = path.read_text()
    config = json.loads(text)
    path.write_text(json.dumps(config | dict(train=config["train"] | dict(data=["~/rows.jsonl"]))))
    out = listed(f"--data {os.path.expanduser('~/rows.jsonl')}")
    assert names_of(out)[:1] == ["one"] and "1 of 6 runs" in out
    path.write_text(text)
    for line, words in (
        (f"--runs --out_dir {place} --lr 77", "none of the 6 runs in"),
        (f"--runs --out_dir {place}/nowhere", "nowhere is not there"),
        (f"--runs --out_dir {place}/hf", "holds no runs"),
        (f"--runs --out_dir {place} --sort size", "--sort size is unknown; choose from date"),
        ("--sort name", "--sort has no effect without --runs"),
        ("--runs --preset laptop", "--preset has no effect with --runs"),
    ):
        code, _, err = call(line, capsys)
        assert code == 2 and words in err and err.count("\n") == 1, line


def test_counts_are_short():
    counts = {999: "999", 1000: "1k", 75_008: "75k", 999_600: "1000k", 79_688_832: "79.7M"}
    assert {n: runs.magnitude(n) for n in counts} == counts


def test_of_a_run_with_a_damaged_log_it_is_said(place, tmp_path, capsys):
    shutil.copytree(place / "one", tmp_path / "run")
    (tmp_path / "run" / "log.jsonl").write_text('{"step": ')
    code, _, err = call(f"--report {tmp_path}/run", capsys)
    assert code == 2 and "log.jsonl" in err and err.count("\n") == 1


def test_two_runs_side_by_side(place, tmp_path, capsys):
    code, out, _ = call(f"--compare {place}/one {place}/two --out_dir {tmp_path}", capsys)
    *lines, note, _ = out.splitlines()[2:]
    assert code == 0 and max(map(len, lines)) <= 80
    cells = {line[:24].strip(): line[24:].split() for line in lines}
    assert cells["data"] == ["embedded", "icqa"] and cells["steps"][0] == "12"
    assert not {"n_layers", "out_dir", "name"} & set(cells)
    assert cells["status"] == ["finished", "finished"]
    models = [checkpoints.read_config(str(place / name))[0] for name in ("one", "two")]
    assert cells["parameters"] == [f"{variants.parameters(m)['total']:,}" for m in models]
    assert (tmp_path / "compare.png").read_bytes()[:4] == b"\x89PNG"
    assert "per byte do" in note
    # a stopped one has a curve, too
    code, out, _ = call(f"--compare {place}/one {place}/stopped --out_dir {tmp_path}", capsys)
    assert code == 0 and "per byte do" not in out
    for others, words in (
        ("", "needs two runs or more"),
        (f"{place}/one", "each of them once"),
        (f"{place}/damaged", "is not the configuration of a run"),
        (f"{place}/none", "none is not there; give a run's folder"),
        (f"{place}/two --lr 1", "--lr has no effect with --compare"),
    ):
        line = f"--compare {place}/one {others} --out_dir {tmp_path}"
        code, _, err = call(line, capsys)
        assert code == 2 and words in err and err.count("\n") == 1, line


# ---------- how long ----------


def cell(**settings):
    values = dict(n_layers=1, d_model=16, n_heads=2, max_rows=300, steps=40) | settings
    return Cell(dict(n_layers=values["n_layers"]), values, *registry.configs("laptop", **values))


def test_an_estimate_is_the_forecast_of_each_kind_of_run(monkeypatch, capsys):
    asked = []

    def of_run(m, t, data):
        asked.append(m.n_layers)
        assert len(data.train[0]) > 0
        return forecast.Forecast(steps=1, step=100.0 * m.n_layers + t.steps)

    monkeypatch.setattr(forecast, "of_run", of_run)
    cells = [cell(seed=0), cell(seed=1, lr=0.1), cell(n_layers=3)]
    rows = estimate.estimates(cells)
    assert asked == [1, 3]  # seeds and rates take as long as one another
    assert [row["seconds"] for row in rows] == [140, 140, 340]
    m = running.complete_configs(cells[2].m, cells[2].t, registry.data_of(cells[2].t, 104))[0]
    assert rows[2]["parameters"] == variants.parameters(m)["total"]
    assert rows[0]["tokens"] == 40 * 12 * 3 * 104
    estimate.show(cells, 2)
    out = capsys.readouterr().out
    assert "in all 449,280 tokens, 10.3 min on this machine, 2 at a time" in out
    assert [line.split()[-1] for line in out.splitlines()[1:4]] == ["1", "1", "3"]
    # what takes longer is measured for itself
    asked.clear()
    names = ("steps", "eval_every", "eval_problems", "batch_size", "gradient_loops")
    estimate.estimates([cell(), *(cell(**{name: 20}) for name in names)])
    assert len(asked) == 1 + len(names)
