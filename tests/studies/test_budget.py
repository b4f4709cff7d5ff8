"""Depth or time: the study that gives every model the CPU time of twelve layers."""

from types import SimpleNamespace

import pytest

import train
from minidepth_lab.keep import registry
from minidepth_lab.measure import results
from minidepth_lab.show import figures
from minidepth_lab.studies import budget


def test_every_model_trains_for_the_same_time_and_takes_no_row_twice():
    rows = budget.rows("budget", {})
    assert list(rows) == list(budget.MODELS) and rows["12 layers"]["steps"] == 1100
    for name, settings in rows.items():
        m, t = registry.configs("budget", **settings)
        assert budget.seconds(name, t.steps) == pytest.approx(110.33, rel=1e-3)
        assert t.steps * t.batch_size * t.grad_accum == t.max_rows
        assert 43 <= t.steps / t.eval_every <= 45
        assert str(m.n_layers * m.n_loops) == ("12" if "12" in name else name[0])
    shorter = budget.rows("budget", dict(steps=110, seed=3))
    assert shorter["12 layers"]["steps"] == 110 and shorter["1 layer"]["steps"] == 849


def test_the_median_is_of_the_steps_that_all_runs_have(tmp_path):
    def run(*shares):
        log = [dict(step=10 * i, accuracy_by_family=dict(order=x)) for i, x in enumerate(shares)]
        return dict(log=log)

    with figures.drawing(tmp_path / "a.png") as (_, axes):
        budget.draw_model(axes, "1 layer", [run(0.1, 0.3), run(0.3, 0.5, 1.0)], "order")
        *_, median = axes.lines
    assert median.get_xydata().flatten().tolist() == pytest.approx([0, 0.2, 0.13, 0.4])


@pytest.mark.parametrize("flag", ["--d_model 32", "--max_rows 100", "--epochs 2", "--preset depth"])
def test_what_would_change_a_steps_time_is_refused(flag, tmp_path, capsys):
    flags = f"--study budget {flag} --dry_run --out_dir {tmp_path}"
    assert train.main(flags.split()) == 2
    error = capsys.readouterr().err
    assert "does not work with --study budget" in error and flag.split()[0] in error


def test_the_study_trains_and_draws(tmp_path, monkeypatch, capsys, in_this_process):
    models = {name: budget.MODELS[name] for name in ("1 layer", "2 layers")}
    monkeypatch.setattr(budget, "MODELS", models)
    monkeypatch.setitem(budget.COST, budget.DEEP, 2 * budget.COST["1 layer"])
    flags = "--study budget --seed 0 --steps 2 --warmup_steps 1 --eval_problems 3"
    flags += " --watch_problems 3 --eval_blocks 4"
    assert train.main([*flags.split(), "--out_dir", str(tmp_path)]) == 0, capsys.readouterr()
    (folder,) = tmp_path.glob("study_budget*")
    assert (folder / "budget.png").exists()
    runs = [results.result(path) for path in tmp_path.glob("budget_*")]
    assert sorted(run["steps"] for run in runs) == [2, 4]
    for run in runs:
        assert run["epoch"] == 1 and len(run["log"]) == run["steps"]


def test_the_cost_of_a_step_is_measured(data, capsys, monkeypatch):
    monkeypatch.setattr(budget.to_data, "load_data", lambda t, block_size: data)
    monkeypatch.setattr(budget.torch, "set_num_threads", lambda n: None)
    one, twelve = (budget.measure(name, 2, 1) for name in ("1 layer", "12 layers"))
    assert 0 < one < twelve
    monkeypatch.setattr(budget, "measure", lambda name: 12.34)
    budget.main("1 layer")
    assert capsys.readouterr().out == "12.3\n"
    monkeypatch.setattr(budget, "MODELS", ["1 layer"])
    asked = lambda command, **_: SimpleNamespace(stdout=f"{len(command)}")  # noqa: E731
    monkeypatch.setattr(budget.subprocess, "run", asked)
    budget.main()
    out = capsys.readouterr().out
    assert "1 layer" in out and " 4.0 ms of CPU time" in out
