"""Stored results: what is read of them, and how runs are published."""

import errno
import json
import math
import os
import pathlib
import shlex
import shutil

import pytest
import torch
from scipy.stats import binomtest

import stored
from conftest import ROOT
from minidepth_lab.base import configs
from minidepth_lab.command import dispatch, flags
from minidepth_lab.keep import checkpoints, registry
from minidepth_lab.measure import judge, results
from minidepth_lab.models import variants
from minidepth_lab.tasks.base.sizes import sizes_of

RESULTS = ROOT / "docs" / "results"
NAMES = results.experiments()


# ---------- stored runs ----------


def test_the_runs_of_a_first_run_are_all_there_and_answered_600_problems():
    """Every run that was made, none chosen; the test problems are today's, and each is there."""
    for name in (name for name in NAMES if name.startswith("first-run")):
        for n_layers, runs in results.by(results.runs(name), "n_layers").items():
            seeds = sorted(run["seed"] for run in runs)
            seeds.remove(0) if n_layers == 12 and name != "first-run-short" else None
            assert seeds == list(range(seeds[0], seeds[0] + len(seeds)))
            for run in runs:
                assert len(run["answers"]) == 600
                assert sum(run["answers"]) / 600 == run["accuracy"]


@pytest.mark.parametrize("name", NAMES)
def test_every_stored_run_is_read_with_all_its_settings(name):
    """Also those of settings that have gone since: hints, hops, answer, stride and the like."""
    lines, runs = results.lines_of(name), results.runs(name)
    assert len({line["id"] for line in lines}) == len(lines) == len(runs) > 0
    for line, run in zip(lines, runs):
        assert run["id"] == line["id"] and run["hardware"] == line["device"]
        for key in ("command", "versions", "commit"):
            assert run[key] == line[key]
        last = run["log"][-1]
        for key, value in (line["model"] | line["train"]).items():
            if key == "ffn_dropout":  # of the model, and gone: no stored run has used it
                assert value is None
                continue
            assert run[key] == (tuple(value) if isinstance(value, list) else value), key
        for key in last.keys() - line["train"].keys() - {"tokens_per_second"}:
            assert run[key] == last[key], key
        assert run["best_val_loss"] == min(each["val_loss"] for each in run["log"])
        assert line["command"] and line["versions"]["torch"] and "CPU" in line["device"]
        assert results.columns_of(run["log"]) == line["log"]


OTHERWISE = {  # stored commands that mean something else today: flags are gone, presets improved
    "attention": 1, "depth": 49, "direct": 15, "first-run-before": 21, "first-run-longer": 28,
    "first-run-momentum": 41, "first-run-short": 4, "first-run-three-passes": 41, "heads": 54,
    "llmini": 22, "lookups-before": 18, "main-job": 6, "packing": 9, "reread": 40, "tasks": 34,
}  # fmt: skip
DEFAULTS = vars(configs.ModelConfig()) | vars(configs.TrainConfig())
OF_A_RUN = {"seed", "name", "out_dir", "save_every", "device"}


def settings_by(words):
    """{setting: value} that a command makes today; ValueError if it is none today."""
    call = flags.read(words)
    m, t = registry.configs(dispatch.preset_of(call)[0], **call.changes)
    return vars(m) | vars(t)


def all_sizes(settings):
    """{name: value} of the sizes, with those that the task or the loader has anyway."""
    loader = settings["loader"]
    of = registry.loader(loader) if loader else registry.task(settings["data"][0])
    known = getattr(of, "SIZES", None) or getattr(of, "sizes", {})
    return sizes_of(settings["sizes"], known, "it")


def means_the_same(words, stored):
    """Whether a command makes the settings of a stored run today."""
    try:
        now = settings_by(words)
        if all_sizes(now) != all_sizes(DEFAULTS | stored):
            return False
    except ValueError:
        return False
    # what follows from the data is filled in when it is read
    of_data = {"sizes", "vocab_size"} | ({"steps"} if now["epochs"] else set())
    compared = now.keys() - OF_A_RUN - of_data
    return all(stored.get(key, DEFAULTS[key]) == now[key] for key in compared)


@pytest.mark.parametrize("name", NAMES)
def test_the_command_beside_a_stored_run_makes_its_settings_today(name, monkeypatch):
    """Whoever changes a preset, a default or a size sees which runs can no longer be repeated."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)  # as where they were made
    asked = {}  # a grid's runs differ by their seeds
    for line in results.lines_of(name):
        _, script, *words = shlex.split(line["command"])
        assert script.endswith("train.py")
        if "--init_from" in words:  # the weights that it begins with are not stored
            continue
        for flag in {"--seed", "--name"} & set(words):
            if words.count(flag) == 1:
                del words[words.index(flag) : words.index(flag) + 2]
        stored = results.with_tuples(line["model"] | line["train"])
        its = {key: value for key, value in stored.items() if key not in OF_A_RUN}
        asked.setdefault(repr((words, its)), []).append((words, its))
    same = [len(each) for each in asked.values() if means_the_same(*each[0])]
    assert sum(map(len, asked.values())) - sum(same) == OTHERWISE.get(name, 0)


def test_settings_that_are_gone_are_kept_and_no_result_names_a_machines_folder():
    gone = set()
    for name in NAMES:
        gone |= {key for line in results.lines_of(name) for key in line["train"]}
    assert {"hints", "hops", "answer", "stride", "val_packing", "curriculum"} <= (
        gone - vars(configs.TrainConfig()).keys()
    )
    for path in RESULTS.rglob("*.json*"):
        text = path.read_text(encoding="utf-8")
        assert not any(f"/{folder}/" in text for folder in ("tmp", "work", "home", "root")), path


def test_each_experiment_says_what_it_is_about():
    """In notes, or in the note of its predictions; the pages of results print one of them."""
    for folder in RESULTS.iterdir():
        if folder.is_dir() and folder.name != "published" and not (folder / "notes.md").exists():
            assert judge.File(folder.name).about["note"], folder


def test_a_log_becomes_columns_and_is_the_same_again():
    log = [
        dict(step=1, loss=0.1 + 0.2, by={"k": {"1": dict(accuracy=0.5)}}),
        dict(step=2, loss=1e-300, by={"k": {"1": dict(accuracy=1.0), "2": dict(accuracy=0.25)}}),
        dict(step=3, loss=5, answers="0110", empty={}),
    ]
    columns = results.columns_of(log)
    assert columns["step"] == [1, 2, 3] and columns["answers"] == [None, None, "0110"]
    assert columns["by"]["k"]["2"]["accuracy"] == [None, 0.25, None]
    again = results.records_of(json.loads(json.dumps(columns)))
    assert again == log and isinstance(again[2]["loss"], int)
    lost = dict(step=[1, 2], val_loss=[None, 0.5], accuracy=[None, 0.25])
    first, second = results.records_of(
        lost
    )  # a loss of null was no number, any other was not there
    assert math.isnan(first.pop("val_loss")) and first == dict(step=1)
    assert second == dict(step=2, val_loss=0.5, accuracy=0.25)


def test_runs_are_selected_by_settings_sizes_and_ranges(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    log, sizes = [dict(step=3, val_loss=1.0)], ["hops=4", "lengths=1+2"]
    lines = [
        stored.line("a", log, seed=3, sizes=["hops=2", "way=given"]),
        stored.line("b", log, seed=4, sizes=sizes, n_heads=[2, 4], d_model=16, n_layers=2),
        stored.line("c", log, seed=5, hops=[2], data=["khop"]),
    ]
    stored.write(tmp_path, "made", lines)
    for wanted, ids in (
        (dict(), "abc"), (dict(hops=2), "ac"), (dict(hops=4), "b"), (dict(seed=range(3, 5)), "ab"),
        (dict(seed=[3, 5]), "ac"), (dict(data="khop"), "c"), (dict(way="given"), "a"),
        (dict(n_heads=(2, 4)), "b"), (dict(n_heads=[2, 4]), "b"), (dict(n_heads=[4, 2]), ""),
        (dict(lengths=[1, 2]), "b"), (dict(lengths=[2, 1]), ""),
        (dict(nothing=1), ""), (dict(threads=2), "abc"), (dict(hops=2, seed=5), "c"),
    ):  # fmt: skip
        assert "".join(run["id"] for run in results.runs("made", **wanted)) == ids, wanted
    stored.write(tmp_path, "alone", [lines[0] | dict(device="x86_64 CPU, 1 thread")])
    assert len(results.runs("alone", threads=1)) == 1
    groups = results.by(results.runs("made"), "n_layers", "seed")
    assert list(groups) == [(1, 3), (1, 5), (2, 4)]
    mixed = [None, "1+2", 0.5, (8, 4), 2]
    rows = [dict(sizes_by_name={}, seed=1, attn_scale=value) for value in mixed]
    assert list(results.by(rows, "attn_scale")) == [0.5, 2, "1+2", (8, 4), None]


# ---------- publishing ----------


def copy_of(finished, tmp_path, name, seed):
    """A finished run's folder with another name and seed."""
    folder = tmp_path / name
    folder.mkdir()
    shutil.copy(pathlib.Path(finished) / "log.jsonl", folder)
    config = json.loads((pathlib.Path(finished) / "config.json").read_text(encoding="utf-8"))
    config["train"].update(seed=seed, name=name, out_dir=str(folder))
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


def test_a_published_run_is_read_as_its_folder_is(finished, shelf, tmp_path):
    folders = [copy_of(finished, tmp_path, f"run-{seed}", seed) for seed in (7, 8)]
    assert results.main(["publish", *map(str, folders), "new"]) == 0
    for folder, run in zip(folders, results.runs("new"), strict=True):
        own = results.result(folder)
        assert own == {key: run[key] for key in own} and run["id"] == folder.name
        assert results.records_of(results.lines_of("new")[0]["log"]) == results.read_log(folder)
    third = copy_of(finished, tmp_path, "run-9", 9)
    results.publish([third], "new")
    assert [run["seed"] for run in results.runs("new")] == [7, 8, 9]
    assert sorted(os.listdir(shelf / "new")) == ["runs.jsonl"]


def test_what_cannot_be_published_or_kept_is_told_in_a_line_and_nothing_is_written(
    finished, shelf, tmp_path, capsys
):
    run = copy_of(finished, tmp_path, "run", 7)
    results.publish([run], "new")
    before = (shelf / "new" / "runs.jsonl").read_bytes()
    fresh = copy_of(finished, tmp_path, "fresh", 8)
    again = copy_of(finished, tmp_path, "another-name", 7)
    stopped = copy_of(finished, tmp_path, "stopped", 9)
    lines = (stopped / "log.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (stopped / "log.jsonl").write_text("".join(lines[:-1]), encoding="utf-8")
    (run / "model.safetensors").write_bytes(b"damaged")
    for what, folders, name, words in (
        ("publish", [fresh, run], "new", "has a run run already"),
        ("publish", [fresh, again], "new", "has this run already, as run"),
        ("publish", [fresh, fresh], "new", "has a run fresh already"),
        ("publish", [fresh, stopped], "new", "is not finished; go on with --resume"),
        ("publish", [fresh, tmp_path / "none"], "new", "config.json"),
        ("publish", [fresh], "old", "experiment 'old' is unknown; make "),
        ("keep", [run, fresh], "new", "is not a checkpoint of this model"),
        ("keep", [fresh], "new", "experiment 'new' has no run fresh; publish it first"),
        ("keep", [run], "old", "experiment 'old' is unknown"),
    ):
        assert results.main([what, *map(str, folders), name]) == 2
        printed = capsys.readouterr()
        assert words in printed.err and printed.err.count("\n") == 1 and not printed.out
        assert (shelf / "new" / "runs.jsonl").read_bytes() == before
        assert not (shelf / "new" / "weights").exists()
    with pytest.raises(ValueError, match="no weights are stored for run 'run' of experiment 'new"):
        results.weights("new", "run")
    for arguments in ([], ["publish"], ["publish", "new"], ["look", str(fresh), "new"]):
        assert results.main(arguments) == 2
        said = capsys.readouterr().err
        assert said.startswith("usage: python -m minidepth_lab.measure.results publish|keep")


def test_what_is_measured_later_is_added_to_the_lines_of_runs(
    finished, shelf, tmp_path, monkeypatch, capsys
):
    """Beside what was measured before, of all runs or of none."""
    folders = [copy_of(finished, tmp_path, f"run-{seed}", seed) for seed in (7, 8, 9)]
    results.publish(folders, "new")
    before = results.lines_of("new")

    def seed_of(run_dir):
        return dict(seed=results.settings_of(run_dir)[1]["seed"])

    def command(*words):
        monkeypatch.setattr("sys.argv", ["study", *map(str, words), "new"])
        results.measuring_command(seeds=seed_of, name=os.path.basename)

    command(folders[0], f"{folders[2]}/")
    first, none, third = results.runs("new")
    assert first["measured"]["seeds"] == dict(seed=7) and third["measured"]["seeds"] == dict(seed=9)
    about = first["measured"]["about"]["seeds"]
    assert set(about) == {"date", "versions", "device", "commit"} and none["measured"] == {}
    after = [line | dict(measured=0) for line in results.lines_of("new")]
    assert after == [line | dict(measured=0) for line in before]
    command("--what", "name", folders[0])
    measured = results.runs("new")[0]["measured"]
    assert measured["seeds"] == dict(seed=7) and measured["name"] == "run-7"
    assert set(measured["about"]) == {"seeds", "name"}
    stored = (shelf / "new" / "runs.jsonl").read_bytes()

    def full(name, lines):
        raise OSError(errno.ENOSPC, "No space left on device")

    for given, words in (
        ([folders[1], finished], "has no run finished; publish it"),
        ([folders[1], "none"], "no run none"),
        (["--what", "size", folders[0]], "invalid choice: 'size'"),
        ([folders[0]], "No space left"),
    ):
        if words == "No space left":
            monkeypatch.setattr(results, "write_lines", full)
        with pytest.raises(SystemExit) as left:
            command(*given)
        error = capsys.readouterr().err
        assert left.value.code == 2 and words in error and "Traceback" not in error
        assert (shelf / "new" / "runs.jsonl").read_bytes() == stored


def test_kept_weights_are_the_runs_folder_again(finished, shelf, tmp_path):
    """The logits, and every byte that load() reads, whatever has become of the run."""
    run = pathlib.Path(shutil.copytree(finished, tmp_path / "kept-run"))
    assert results.main(["publish", str(run), "new"]) == 0
    for _ in range(2):  # anew, where there are some
        assert results.main(["keep", str(run), "new"]) == 0
    assert sorted(os.listdir(shelf / "new" / "weights")) == ["kept-run.safetensors"]
    folder = results.weights("new", "kept-run")
    assert folder == results.weights("new", "kept-run") and folder.name == "kept-run"
    assert folder.is_relative_to(results.folder_of_folders().name)  # which goes with the program
    for part in (run / "config.json", *(run / "tokenizer").iterdir()):
        assert (folder / part.relative_to(run)).read_bytes() == part.read_bytes()
    kept = sorted(path.name for path in folder.iterdir())
    assert kept == ["config.json", "model.safetensors", "tokenizer"]
    (model, tokenizer), (again, words) = checkpoints.load(str(run)), checkpoints.load(str(folder))
    assert tokenizer.get_vocab() == words.get_vocab()
    tokens = torch.arange(8)[None]
    assert torch.equal(model(tokens), again(tokens))


# ---------- reading the folder of a run ----------


def test_a_result_has_the_settings_the_last_evaluation_and_what_follows_from_both(finished):
    row = results.result(finished)
    m, t = checkpoints.read_config(finished)
    assert row["n_layers"] == m.n_layers and row["problem_steps"] == t.problem_steps
    assert row["step"] == t.steps and row["depth"] == m.n_layers * m.n_loops
    speeds = sorted(each["tokens_per_second"] for each in row["log"])
    middle = len(speeds) // 2
    assert row["tokens_per_second"] == (speeds[middle] + speeds[~middle]) / 2
    assert row["params_total"] == variants.GPT(m).num_params()["total"]
    assert (
        sum(row[f"params_{part}"] for part in ("embedding", "position", "layers"))
        < (row["params_total"])
    )


def test_onset_is_the_first_evaluation_that_reaches_enough():
    log = [dict(step=1), dict(step=50, accuracy_by_family=dict(chain=0.5, order=0.9))]
    log.append(dict(step=100, accuracy_by_family=dict(chain=0.9, order=0.2)))
    assert results.onset(dict(log=log), "chain") == 100
    assert results.onset(dict(log=log), "chain", 0.5) == 50
    assert results.onset(dict(log=log), "order") == 50  # it need not last
    assert results.onset(dict(log=log), "lookup") is None


def test_published_tables_are_read_as_numbers():
    log = results.published("report_log_12_layers")
    assert len(log) == 21 and log[0]["train_loss"] == 12.0194 and log[-1]["step"] == 500
    assert results.published("heads_schedules")[0]["heads"] == "3-6-12-24"
    with pytest.raises(ValueError, match="'x' is unknown; choose from heads_code, heads_l"):
        results.published("x")


# ---------- intervals ----------


def test_interval_is_students_t_and_has_no_width_where_there_is_no_spread():
    """A run can end with an infinite loss after few steps, and a grid of them with its table; two
    equal gaps are no proof of one: an interval without a width would exclude 0."""
    found = results.interval([1.0, 2.0, 3.0, 4.0, 5.0])
    assert found == pytest.approx((3, 2.776 * math.sqrt(0.5)), 1e-3)
    for values in ([7.0], [2.0, 2.0], [0.3 - 0.2, 0.2 - 0.1], [0.7] * 5, [0.0, 0.0]):
        mean, half = results.interval(values)
        assert mean == pytest.approx(values[0]) and math.isnan(half)
    for values in ([math.nan, 1.0], [math.inf, 1.0], [math.inf, -math.inf]):
        mean, half = results.interval(values)
        assert not math.isfinite(mean) and math.isnan(half)


def test_wilsons_interval_is_scipys():
    for successes, n in ((0, 5), (5, 5), (1, 1), (57, 60), (3, 1000)):
        for level in (0.95, 0.5):
            low, high = results.wilson(successes, n, level)
            expected = binomtest(successes, n).proportion_ci(level, method="wilson")
            assert (low, high) == pytest.approx((expected.low, expected.high), abs=1e-9)
            assert (low == 0) == (successes == 0) and (high == 1) == (successes == n)
    for successes, n in ((1, 0), (3, 2), (-1, 2)):
        with pytest.raises(ValueError, match=f"{successes} successes of {n} trials; give 0 to n"):
            results.wilson(successes, n)


def test_what_the_bench_printed_is_read_after_its_line(tmp_path, monkeypatch):
    text = "[one]\na: median 9.0 ms\n  peak memory 1.00 GiB\n[two]\na: median 250.5 ms per step\n"
    text += "  forward 1 ms\n  peak memory 0.50 GiB, 0.2 above\nb: median 7.0 ms\n[two]s\n[one]\n"
    text += "[peak]\n  peak memory 1.00 GiB\n[median]\na: median 9.0 ms\n"
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / "printed.txt").write_text(text)
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    assert results.step_by_bench("[two]") == (0.2505, 2**29)
    for line in ("[two]s", "[peak]", "[median]"):
        with pytest.raises(ValueError, match="' has no step of --bench behind it"):
            results.step_by_bench(line)
    for line, n in (("[one]", 2), ("[three]", 0)):
        with pytest.raises(ValueError, match=f"{n} lines of what --bench printed, not one"):
            results.step_by_bench(line)
