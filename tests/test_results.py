"""Stored results: what is read of them, and that the README quotes what the logs say."""

import json
import math
import pathlib
import re
import shutil
import statistics

import pytest

import minidepth as md
from minidepth_lab import results, verdicts
from minidepth_lab.studies import budget

ROOT = pathlib.Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "results"
RUNS = RESULTS / "main-job"


def last(name):
    return [json.loads(line) for line in open(RUNS / name / "log.jsonl")][-1]


@pytest.mark.parametrize("n_layers", [1, 12])
def test_the_table_of_the_main_job(n_layers):
    rows = [last(f"laptop-{n_layers}-layers-seed-{seed}") for seed in (0, 1, 2)]
    accuracy = " / ".join(f"{row['accuracy']:.3f}" for row in rows)
    loss = " / ".join(f"{row['val_loss']:.3f}" for row in rows)
    page = (ROOT / "docs" / "results" / "README.md").read_text()
    assert re.search(rf"\| {n_layers} \|.*\| {accuracy} \| {loss} \|", page)


def test_the_readme_tells_the_study_as_it_was_logged():
    readme = (ROOT / "README.md").read_text()
    page = (ROOT / "docs" / "results" / "README.md").read_text()
    study = results.summary("depth")
    found = {}
    for run in study["runs"]:
        found.setdefault(run["labels"]["model"], []).append(run)
    for name, text in {"1 layer, 12 times": "1 layer, applied 12 times"}.items():
        found[text] = found.pop(name)
    for name, runs in found.items():
        mean, half = results.interval([run["accuracy"] for run in runs])
        (row,) = re.findall(rf"(?m)^\| {name} \|.*$", readme)
        assert f"{mean:.3f} ± {half:.3f}" in row and f"{runs[0]['params_total']:,}" in row
        assert f"{mean:.3f} ± {half:.3f}" in page
    tuned = [
        results.result(path.parent)["accuracy"] for path in RESULTS.glob("depth-wide/*/log.jsonl")
    ]
    mean, half = results.interval(tuned)
    assert f"{mean:.3f} ± {half:.3f} (n = {len(tuned)})" in readme
    for line in study["differences"]:
        if line.startswith("accuracy, 1 layer, 12 times minus 1 layer:"):
            low, high = re.search(r"from \+(\S+) to \+(\S+),", line).groups()
            assert f"interval +{low} to +{high}" in readme and f"(+{low} to\n+{high})" in page


@pytest.mark.parametrize(
    "folder, model, threads, least",
    [
        ("first-run", "12 layers", 1, 10),
        ("first-run", "12 layers, two threads", 2, 10),
        ("first-run", "1 layer, two threads", 2, 10),
        ("first-run", "1 layer", 1, 10),
        ("first-run-three-passes", "12 layers", 1, 10),
        ("first-run-three-passes", "12 layers, two threads", 2, 10),
        ("first-run-three-passes", "1 layer, two threads", 2, 10),
        ("first-run-three-passes", "1 layer", 1, 10),
        ("first-run-short", "12 layers", 1, 4),
        ("first-run-momentum", "12 layers", 1, 10),
        ("first-run-momentum", "12 layers, two threads", 2, 10),
        ("first-run-momentum", "1 layer, two threads", 2, 10),
        ("first-run-momentum", "1 layer", 1, 10),
        ("first-run-longer", "12 layers", 1, 10),
        ("first-run-longer", "12 layers, two threads", 2, 5),
        ("first-run-longer", "1 layer", 1, 10),
        ("first-run-before", "12 layers", 1, 10),
        ("first-run-before", "1 layer", 1, 10),
    ],
)
def test_the_fresh_seeds_are_told_one_by_one(folder, model, threads, least):
    """Every run that was made, none chosen; the test problems are today's, and each is there."""
    page = (RESULTS / "README.md").read_text().split(f"## {folder}\n")[1].split("\n## ")[0]
    found, seeds = [], []
    names = f"{model.split()[0]}-layers-seed-*-{threads}-threads"
    for path in sorted((RESULTS / folder).glob(names)):
        row = results.result(path)
        assert row["answers"].count("1") / 600 == row["accuracy"] and len(row["answers"]) == 600
        seeds.append(int(path.name.split("-")[3]))
        found.append(row["accuracy"])
    assert seeds == list(range(seeds[0], seeds[0] + len(seeds))) and len(seeds) >= least
    label = f"{model}, seeds {seeds[0]} to {seeds[-1]}"
    (line,) = re.findall(rf"(?m)^\| {label} \|.*$", page)
    assert " ".join(f"{accuracy:.3f}" for accuracy in found) in line
    assert f"| {sum(accuracy >= 0.95 for accuracy in found)} of {len(found)} |" in line


def test_the_budget_is_told_as_it_was_logged():
    page = (RESULTS / "README.md").read_text().split("## budget\n")[1].split("\n## ")[0]
    found = {}
    for name, runs in budget.stored().items():
        assert [run["seed"] for run in runs] == list(range(140, 146))
        accuracies = found[name] = [run["accuracy"] for run in runs]
        cells = [f"{runs[0]['steps']:,}", " ".join(f"{share:.3f}" for share in accuracies)]
        for family in ("lookup", "order", "chain"):
            at = [results.onset(run, family) for run in runs]
            cells.append(" ".join(f"{budget.seconds(name, x):.0f}" if x else "–" for x in at))
        assert f"| {name} | {' | '.join(cells)} |" in page
    readme = (ROOT / "README.md").read_text()
    readme = " ".join(readme.split())
    for text, name in {
        "guesses at look-ups:": "1 layer",
        "One layer applied twelve times ends at": "1 layer, 12 times",
        "a wide layer with the parameters of twelve at": "1 wide layer",
    }.items():
        low, high = (f"{end(found[name]):.2f}" for end in (min, max))
        assert f"{text} {low} to {high}" in readme
    gap, low, high = unpaired(found["1 layer, 12 times"], found["1 layer"])
    p = verdicts.permutation(found["1 layer, 12 times"], found["1 layer"])
    said = f"{gap:+.3f}, interval {low:+.3f} to {high:+.3f}, p = {p:.2f} (six seeds, not paired)"
    assert said in readme
    said = f"{gap:+.3f}, with an interval from {low:+.3f} to {high:+.3f} (n = 6, not paired)"
    page = (ROOT / "docs" / "tutorials" / "05_caveats.py").read_text().replace("\n#", "")
    assert f"{said}, p = {p:.2f}" in " ".join(page.split())


def unpaired(a, b):
    """Difference of means and the ends of Welch's 95 % interval, from the formula."""
    from scipy.stats import t

    parts = [statistics.variance(values) / len(values) for values in (a, b)]
    freedom = sum(parts) ** 2 / sum(part**2 / (len(a) - 1) for part in parts)
    half = t.ppf(0.975, freedom) * math.sqrt(sum(parts))
    gap = statistics.mean(a) - statistics.mean(b)
    return gap, gap - half, gap + half


def test_each_run_says_how_it_was_made():
    configs = [json.loads(path.read_text()) for path in RUNS.glob("*/config.json")]
    assert len(configs) == 6
    for config in configs:
        assert config["command"].endswith(config["train"]["name"])
        assert config["versions"]["torch"] and "CPU" in config["device"]
        assert re.fullmatch("[0-9a-f]{40}", config["commit"])


def test_the_example_in_the_readme_is_what_the_run_printed():
    printed = (RESULTS / "first-run" / "laptop-12-layers" / "stdout.txt").read_text()
    example = re.search(r"```\n(preset laptop.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[
        1
    ]
    for part in example.split("…\n"):
        assert part in printed


SUMMARIES = sorted(RESULTS.rglob("summary.json"))


@pytest.mark.parametrize("path", SUMMARIES, ids=lambda path: path.parent.name)
def test_a_summary_holds_what_its_runs_logged(path):
    """Each number of a table is that of the logs beside it; the intervals with SciPy's own t."""
    from scipy.stats import sem, t

    found = json.loads(path.read_text())
    logs = [results.result(config.parent) for config in path.parent.rglob("config.json")]
    keys = ("val_loss", "best_val_loss", "train_loss_eval", "seconds")
    logged = {tuple(log[key] for key in keys) for log in logs}
    assert {tuple(run[key] for key in keys) for run in found["runs"]} == logged
    assert found["command"].startswith("python train.py") and found["versions"]["torch"]
    for row in found["table"]:
        runs = [r for r in found["runs"] if row["labels"].items() <= r["labels"].items()]
        assert len(runs) == row["n"]
        for key in keys:
            mean, half = row[key]
            values = [run[key] for run in runs]
            assert mean == pytest.approx(sum(values) / len(values))
            if half is not None and len(values) > 1:
                low, high = t.interval(0.95, len(values) - 1, mean, sem(values))
                assert half == pytest.approx((high - low) / 2, nan_ok=True)


def test_no_result_names_a_machines_folder():
    for path in RESULTS.rglob("*.json*"):
        assert not re.search(r'"[^"]*/(tmp|work|home|root)/', path.read_text()), path


# ---------- reading runs ----------

STORED = sorted(path.parent for path in RESULTS.rglob("config.json"))


def test_every_stored_run_is_read_with_all_its_settings():
    """Also those of settings that have gone since: hints, hops, answer, stride and the like."""
    assert len(STORED) >= 236
    gone = set()
    for folder in STORED:
        config = json.loads((folder / "config.json").read_text())
        log = [json.loads(line) for line in open(folder / "log.jsonl")]
        row = results.result(folder)
        for name, value in (config["model"] | log[-1] | config["train"]).items():
            if name != "tokens_per_second":
                assert row[name] == (tuple(value) if isinstance(value, list) else value), name
        assert row["log"] == log
        assert row["best_val_loss"] == min(each["val_loss"] for each in log)
        gone |= config["train"].keys() - vars(md.TrainConfig()).keys()
    assert {"hints", "hops", "answer", "stride", "val_packing", "curriculum"} <= gone


def test_a_result_has_the_settings_the_last_evaluation_and_what_follows_from_both(finished):
    row = results.result(finished)
    m, t = md.read_config(finished)
    assert row["n_layers"] == m.n_layers and row["problem_steps"] == t.problem_steps
    assert row["step"] == t.steps and row["depth"] == m.n_layers * m.n_loops
    speeds = sorted(each["tokens_per_second"] for each in row["log"])
    middle = len(speeds) // 2
    assert row["tokens_per_second"] == (speeds[middle] + speeds[~middle]) / 2
    assert row["params_total"] == md.GPT(m).num_params()["total"]
    assert (
        sum(row[f"params_{part}"] for part in ("embedding", "position", "blocks"))
        < (row["params_total"])
    )


def test_onset_is_the_first_evaluation_that_reaches_enough():
    log = [dict(step=1), dict(step=50, accuracy_by_family=dict(chain=0.5, order=0.9))]
    log.append(dict(step=100, accuracy_by_family=dict(chain=0.9, order=0.2)))
    assert results.onset(dict(log=log), "chain") == 100
    assert results.onset(dict(log=log), "chain", 0.5) == 50
    assert results.onset(dict(log=log), "order") == 50  # it need not last
    assert results.onset(dict(log=log), "lookup") is None


def test_a_results_rate_is_the_setting_and_not_the_last_one(finished):
    row = results.result(finished)
    assert row["lr"] == json.load(open(f"{finished}/config.json"))["train"]["lr"]
    assert row["log"][-1]["lr"] < row["lr"]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("config.json", '{"model": {', "config.json is not the configuration of a run: "),
        ("config.json", "[]", "config.json is not the configuration of a run: "),
        ("config.json", '{"model": {}, "train": {}}', "is not the configuration of a run: 'steps'"),
        ("config.json", '{"model": {"n_layers": 0}, "train": {"steps": 1}}', "n_layers 0 does not"),
        ("config.json", None, "config.json is not the configuration of a run: "),
        ("log.jsonl", None, "log.jsonl is not the log of a run: "),
        ("log.jsonl", '{"step": 12, "val', "log.jsonl is not the log of a run, in line 1: "),
        ("log.jsonl", '{"step": 12}', "log.jsonl is not the log of a run, in line 1: 'lr'"),
        ("log.jsonl", "3\n", "log.jsonl is not the log of a run, in line 1: "),
        ("log.jsonl", "", r"run is not finished; go on with --resume .*run$"),
    ],
)
def test_damaged_and_unfinished_runs_are_told_in_one_line(name, content, words, finished, tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    for part in ("config.json", "log.jsonl"):
        shutil.copy(pathlib.Path(finished) / part, folder)
    if content is None:
        (folder / name).unlink()
    else:
        (folder / name).write_text(content)
    with pytest.raises(ValueError, match=words) as caught:
        results.result(folder)
    assert "\n" not in str(caught.value)


def test_a_log_without_its_last_evaluation_is_of_an_unfinished_run(finished, tmp_path):
    shutil.copy(pathlib.Path(finished) / "config.json", tmp_path)
    lines = (pathlib.Path(finished) / "log.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "log.jsonl").write_text("".join(lines[:-1]))
    with pytest.raises(ValueError, match="is not finished; go on with --resume"):
        results.result(tmp_path)


def test_summaries_are_found_by_name():
    found = results.summary("tasks/icqa")
    assert found == json.loads((RESULTS / "tasks" / "icqa" / "summary.json").read_text())
    with pytest.raises(ValueError, match="result 'x' is unknown; choose from .*, tasks/icqa, "):
        results.summary("x")


def test_published_tables_are_read_as_numbers():
    log = results.published("report_log_12_layers")
    assert len(log) == 21 and log[0]["train_loss"] == 12.0194 and log[-1]["step"] == 500
    assert results.published("heads_schedules")[0]["heads"] == "3-6-12-24"
    with pytest.raises(ValueError, match="'x' is unknown; choose from heads_schedules, llmini"):
        results.published("x")


# ---------- intervals ----------


@pytest.mark.parametrize("values", [[math.nan, 1.0], [math.inf, 1.0], [math.inf, -math.inf]])
def test_an_interval_of_losses_that_are_infinite_or_nan_has_no_width(values):
    """A run can end with one after few steps, and a grid of them with its table."""
    mean, half = results.interval(values)
    assert not math.isfinite(mean) and math.isnan(half)


def test_interval_is_students_t():
    assert results.interval([1.0, 2.0, 3.0, 4.0, 5.0]) == pytest.approx(
        (3, 2.776 * math.sqrt(0.5)), 1e-3
    )
    mean, half = results.interval([7.0])
    assert mean == 7 and math.isnan(half)


@pytest.mark.parametrize("level", [0.95, 0.5])
@pytest.mark.parametrize(("successes", "n"), [(0, 5), (5, 5), (1, 1), (57, 60), (3, 1000)])
def test_wilsons_interval_is_scipys(successes, n, level):
    from scipy.stats import binomtest

    low, high = results.wilson(successes, n, level)
    expected = binomtest(successes, n).proportion_ci(level, method="wilson")
    assert (low, high) == pytest.approx((expected.low, expected.high), abs=1e-9)
    assert 0 <= low < high <= 1  # it has a width even where all are right
    assert (low == 0) == (successes == 0) and (high == 1) == (successes == n)


@pytest.mark.parametrize(("successes", "n"), [(1, 0), (3, 2), (-1, 2)])
def test_no_interval_of_no_trials(successes, n):
    with pytest.raises(ValueError, match=f"{successes} successes of {n} trials; give 0 to n"):
        results.wilson(successes, n)


def test_the_table_of_look_ups_is_what_their_runs_logged():
    readme = (RESULTS / "README.md").read_text()
    rows = {}
    for run in results.stored_runs("lookups"):
        way = "written" if "answer=thinking" in run["sizes"] else "direct, in turn"
        if "curriculum=0.0" in run["sizes"]:
            way = "direct, all at once"
        shares = [run["accuracy_by_problem"][f"lookup {k}"] for k in (1, 2, 3)]
        row = rows.setdefault((way, run["n_layers"]), {})
        row[run["seed"]] = " ".join(f"{share:.2f}" for share in shares)
    assert len(rows) == 8 and {tuple(row) for row in rows.values()} == {(50, 51, 52, 53, 54)}
    for (way, layers), row in rows.items():
        assert f"| {way} | {layers} | {' | '.join(row.values())} |\n" in readme
