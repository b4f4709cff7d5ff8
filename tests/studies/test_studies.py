"""Settings and what follows from them: epochs, shares, presets of studies, kinds of numbers."""

import dataclasses
import json
import math
import runpy
import sys

import numpy as np
import pytest
import torch

import train
from minidepth_lab import studies
from minidepth_lab.base import configs
from minidepth_lab.command import dispatch
from minidepth_lab.keep import checkpoints, registry, running
from minidepth_lab.measure import results
from minidepth_lab.measure.cell import is_finished
from minidepth_lab.rows import hub
from minidepth_lab.studies import layers, llmini


def test_a_run_of_epochs_ends_with_the_last_pass_and_resumes(tiny, data):
    m, t = tiny(epochs=2, batch_size=128, warmup_steps=0.2, eval_every=100, eval_problems=4)
    steps = math.ceil(2 * len(data.train[0]) / 128)
    stop = iter([False] * 2 + [True] * 99)
    run = running.train(m, t, data, stop=lambda: next(stop))
    assert not run.finished and checkpoints.read_config(run.dir)[1].steps == steps == 5
    run = running.train(*checkpoints.read_config(run.dir), data, resume=True)
    assert run.log[-1]["step"] == steps and run.log[-1]["epoch"] == 2
    assert results.result(run.dir)["steps"] == steps
    assert is_finished(m, t)  # a grid knows it though its own settings count epochs
    with pytest.raises(ValueError, match="is finished: 5 of 5 steps"):
        running.train(*checkpoints.read_config(run.dir), data, resume=True)


def test_a_study_brings_its_preset(monkeypatch, capsys):
    assert train.main("--study llmini --seed 0 1 --dry_run".split()) == 0
    out = capsys.readouterr().out
    assert "preset llmini-c: the study llmini is about it" in out and "10 runs" in out
    assert dispatch.pick_preset("auto", (), "heads")[0] == "laptop"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert dispatch.pick_preset("auto", (), "heads")[0] == "heads"
    monkeypatch.setattr(hub, "fault", lambda url: None)
    assert dispatch.pick_preset("auto", (), "packing")[0] == "report"
    assert dispatch.pick_preset("laptop", (), "llmini")[0] == "laptop"
    assert dispatch.pick_preset("auto", (), "thinking")[0] == "thinking"


# ---------- kinds of numbers ----------


def test_numbers_of_numpy_are_numbers():
    """Of another kind they were refused; as they are they would print, and so seed generators, in
    another way."""
    plain = dict(n_layers=2, seed=3, lr=0.001, problem_steps=(1, 2), dropout=0.125, n_heads=(2, 4))
    numpy = dict(n_layers=np.int64(2), seed=np.uint8(3), lr=np.float64(0.001))
    numpy |= dict(problem_steps=(np.int64(1), np.int16(2)), dropout=np.float32(0.125))
    numpy |= dict(n_heads=[np.int64(2), np.int32(4)])
    for ours, theirs in zip(configs.make(**plain), configs.make(**numpy)):
        assert repr(ours) == repr(theirs)


def test_a_preset_brings_the_study_that_its_name_begins_with(monkeypatch):
    """Nobody has read the study yet, as in a run's own process."""
    known = registry.configs("map")
    monkeypatch.delitem(sys.modules, "minidepth_lab.studies.map")
    monkeypatch.setattr(studies, "map", None)  # what is read now is not to stay
    assert registry.configs("map") == known and known[0].d_ff == 128


@pytest.mark.parametrize("changes, why", [
    (dict(loader="reread", data=("icqa",)), "has lost its folder tokenizer"),
    (dict(data=("mine.py",)), "was trained on a depth task: it knows no text"),
    (dict(loader="mine.py"), "was trained on data of one's own, without text"),
])  # fmt: skip
def test_a_run_without_a_tokenizer_says_why(changes, why, tmp_path):
    m, t = configs.make("laptop", **changes)
    about = dict(model=dataclasses.asdict(m), train=dataclasses.asdict(t))
    (tmp_path / "config.json").write_text(json.dumps(about))
    assert registry.no_text(tmp_path).startswith(why)


def test_the_table_of_llminis_data_is_by_tokens_with_shares_and_means():
    long = "/a_folder/that_has_a_long_name_of_its_own/rajpurkar/squad"
    table = dict(sciq=dict(samples=2000, tokens=30_000))
    table[long] = dict(samples=1000, tokens=90_000)
    facts = dict(table=table, chunks=1234, padded=56, cut=7, utilisation=0.5, vocabulary=0.255)
    _, *rows, _, _ = llmini.table_lines(facts | dict(held_out=123, held_out_in_training=4))
    assert [line.split() for line in rows] == [
        ["…_a_long_name_of_its_own/rajpurkar/squad", "1,000", "90,000", "75.0%", "90.0"],
        ["sciq", "2,000", "30,000", "25.0%", "15.0"],
        ["all", "3,000", "120,000", "100.0%", "40.0"],
    ]


def test_llminis_chunks_follow_each_other_where_no_stride_is_given(jsonl, tmp_path):
    """And one chunk alone cannot be split."""
    (tmp_path / "sciq").mkdir()
    path = jsonl([dict(question="a " * 70, support="b")], "sciq/rows.jsonl")
    own = dict(data=path, loader="llmini", tokenizer="characters", block_size=30)
    m, t = configs.make("laptop", **own, sizes=("texts=published",))
    facts = registry.data_of(t, m.block_size).facts
    assert facts["chunks"] == len("a " * 70 + " b") // 30 and facts["cut"] == 1
    with pytest.raises(ValueError, match="sciq.*: one chunk cannot be split; give more text"):
        registry.data_of(t, 120)


@pytest.fixture(scope="module")
def lookups(tmp_path_factory):
    """The folder of a short run of a depth task that no study measures afterwards."""
    about = dict(data="icqa", out_dir=str(tmp_path_factory.mktemp("runs")), name="icqa")
    m, t = registry.configs("tasks", **about, steps=2, warmup_steps=0, eval_blocks=8)
    return running.train(m, t, registry.data_of(t, m.block_size)).dir


OF_ICQA = "icqa is a run of icqa; give one of"
OF_A_TASK = "icqa is of a depth task; give a run of the embedded problems"


@pytest.mark.filterwarnings("ignore:.*found in sys.modules")
@pytest.mark.parametrize("module, words, message", [
    ("studies.walk", "", "the following arguments are required: run, name"),
    ("studies.walk", "icqa new", "icqa/config.json is not the configuration of a run"),
    ("studies.walk", "nothing new", "experiment 'new' has no run nothing; publish it first"),
    ("studies.walk", "RUN old", "experiment 'old' is unknown; choose from new"),
    ("studies.walk", "RUN new", f"{OF_ICQA} walk"),
    ("studies.hold", "RUN new", f"{OF_ICQA} hold"),
    ("studies.written", "RUN new", f"{OF_ICQA} written"),
    ("studies.map", "RUN new", f"{OF_ICQA} pointers or reachability"),
    ("measure.ring_runs", "RUN new", f"{OF_ICQA} ring"),
    ("measure.far", "RUN new", f"{OF_ICQA} walk, sums or program"),
    ("studies.layers", "RUN out.json", OF_A_TASK),
    ("studies.layers", "RUN out.json x-8", "'x-8' is no span of layers; as in 3-8"),
    ("studies.llmini", "nothing a.jsonl", "a.jsonl is none of LLmini's eleven sources"),
    ("studies.budget", "13", "invalid choice: '13'"),
])  # fmt: skip
def test_what_measures_runs_afterwards_says_what_is_wrong(
    module, words, message, lookups, shelf, tmp_path, monkeypatch, capsys
):
    results.publish([lookups], "new")
    stored = (shelf / "new" / "runs.jsonl").read_bytes()
    (tmp_path / "icqa").mkdir()  # of the same name, and empty
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [module, *words.replace("RUN", lookups).split()])
    with pytest.raises(SystemExit) as end:
        runpy.run_module(f"minidepth_lab.{module}", run_name="__main__")
    assert end.value.code == 2 and message in capsys.readouterr().err
    assert not (tmp_path / "out.json").exists()
    assert (shelf / "new" / "runs.jsonl").read_bytes() == stored


def test_what_is_measured_of_a_run_is_of_the_layers_that_it_has(finished, tmp_path):
    for first, last in ((0, 1), (2, 1), (1, 3)):
        with pytest.raises(ValueError, match=f"layers {first}-{last} are not among the 2 of"):
            layers.write_examined(finished, tmp_path / "out.json", [(first, last)])
