"""What runs found: a run's numbers, the stored results, the published tables, and intervals.

    row = results.result("runs/laptop_n_layers-12")     settings, last evaluation, log: one dict
    table = results.summary("depth")["table"]           docs/results/depth/summary.json
    log = results.published("report_log_12_layers")     docs/results/published/….csv
    mean, half = results.interval([0.61, 0.68, 0.66])   mean ± half of its 95 % interval
    low, high = results.wilson(57, 60)                  95 % interval of a share

Nothing here trains or draws.
"""

import contextlib
import csv
import dataclasses
import json
import math
import os
import pathlib
import shlex
import statistics

import minidepth as md

RESULTS = pathlib.Path(__file__).resolve().parents[1] / "results"  # the logs behind every figure

METRICS = {  # of a run, as tables name them: heading, format
    "accuracy": ("accuracy", ".3f"),
    "val_loss": ("validation loss", ".3g"),
    "best_val_loss": ("best validation loss", ".3g"),
    "train_loss_eval": ("train loss, no dropout", ".3g"),
    "params_total": ("parameters", ",.0f"),
    "params_blocks": ("in blocks", ",.0f"),
    "tokens_per_second": ("tokens per second", ",.0f"),
    "seconds": ("seconds", ".1f"),
}


# ---------- runs ----------


def with_tuples(settings):
    """Settings as read from JSON, with tuples for its lists."""
    return {
        name: tuple(value) if isinstance(value, list) else value for name, value in settings.items()
    }


def settings_of(run_dir):
    """(ModelConfig, dict of the training settings) of a run's config.json, whatever version of this
    project wrote it: a setting of the training that has gone since is kept, so that stored runs can
    be read for ever. ValueError if it is not the configuration of a run."""
    path = os.path.join(run_dir, "config.json")
    with md.one_line_errors(path, "is not the configuration of a run"):
        with open(md.regular_file(md.path_inside(run_dir, "config.json")), encoding="utf-8") as f:
            saved = json.load(f)
        known = {field.name for field in dataclasses.fields(md.ModelConfig)}
        model = {name: value for name, value in saved["model"].items() if name in known}
        train = with_tuples(saved["train"])
        if not isinstance(train["steps"], int):
            raise ValueError(f"steps {train['steps']!r} is not a whole number")
        return md.ModelConfig(**with_tuples(model)).validate(), train


NUMBERS = ("step", "lr", "train_loss", "val_loss", "seconds", "tokens_per_second")


def read_log(run_dir):
    """The rows of a run's log.jsonl; ValueError names the line that is damaged."""
    path = os.path.join(run_dir, "log.jsonl")
    with md.one_line_errors(path, "is not the log of a run"):
        with open(md.regular_file(md.path_inside(run_dir, "log.jsonl")), encoding="utf-8") as f:
            lines = f.read().split("\n")
    log = []
    for number, line in enumerate(lines, 1):
        if not line and number == len(lines):
            break
        with md.one_line_errors(path, f"is not the log of a run, in line {number}"):
            row = json.loads(line)
            for name in NUMBERS:
                if isinstance(row[name], bool) or not isinstance(row[name], (int, float)):
                    raise ValueError(f"{name} {row[name]!r:.40} is not a number")
            if log and row["step"] <= log[-1]["step"]:
                raise ValueError(f"step {row['step']} after step {log[-1]['step']}")
            log.append(row)
    return log


def result(run_dir):
    """A finished run in one flat dict: its settings, last evaluation, `best_val_loss` (nats
    per token), `tokens_per_second` (median), `depth` (layers applied), `params_…` by part, and
    `log`, a dict per evaluation; ValueError if it is not finished, or damaged."""
    m, train = settings_of(run_dir)
    log = read_log(run_dir)
    losses = [evaluation["val_loss"] for evaluation in log]
    speeds = [evaluation["tokens_per_second"] for evaluation in log]
    if not log or log[-1]["step"] < train["steps"]:
        go_on = f"go on with --resume {shlex.quote(str(run_dir))}"
        raise ValueError(f"{run_dir} is not finished; {go_on}")
    row = dataclasses.asdict(m)
    row.update(train)
    for part, n in md.parameters(m).items():
        row[f"params_{part}"] = n
    row.update(log[-1])
    row["lr"] = train["lr"]  # the setting, which the log's last rate has replaced
    row["tokens_per_second"] = statistics.median(speeds)
    row["best_val_loss"] = min(losses)
    row["depth"] = m.n_layers * m.n_loops
    row["log"] = log
    return row


def onset(run, family, enough=0.9):
    """The step of the first evaluation at which a result() answers `enough` of a family's held-out
    problems, as its log says; None if there is none."""
    for row in run["log"]:
        if row.get("accuracy_by_family", {}).get(family, 0) >= enough:
            return row["step"]
    return None


def grouped(runs):
    """Runs as dicts with `labels` → {labels without the seed, as pairs: the runs of all seeds}."""
    groups = {}
    for run in runs:
        key = tuple(pair for pair in run["labels"].items() if pair[0] != "seed")
        groups.setdefault(key, []).append(run)
    return groups


# ---------- stored results, published tables ----------


def stored_runs(name):
    """result() of each run in docs/results/NAME/runs, in the order of their names."""
    return [result(path) for path in sorted((RESULTS / name / "runs").iterdir())]


def summary(name):
    """The summary of a stored grid, docs/results/NAME/summary.json, as a dict: `table`, `runs`,
    `command` and what else sweep.table.summarize() writes. ValueError for an unknown name."""
    path = RESULTS / name / "summary.json"
    if not path.exists():
        stored = sorted(file.parent for file in RESULTS.rglob("summary.json"))
        names = ", ".join(folder.relative_to(RESULTS).as_posix() for folder in stored)
        raise ValueError(f"result {str(name)!r} is unknown; choose from {names}")
    return json.loads(path.read_text(encoding="utf-8"))


def number_or_text(text):
    """A field of a table: '12' → 12, '0.5' → 0.5, 'A' → 'A'."""
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text


def published(name):
    """A table of the source documents, docs/results/published/NAME.csv, as dicts, its numbers as
    numbers; among them `report_log_1_layers` and `report_log_12_layers`, keyed as log.jsonl is."""
    folder = RESULTS / "published"
    path = folder / f"{name}.csv"
    if not path.exists():
        known = ", ".join(sorted(file.stem for file in folder.glob("*.csv")))
        raise ValueError(f"published {name!r} is unknown; choose from {known}")
    with open(path, encoding="utf-8", newline="") as f:
        rows = list(csv.DictReader(f))
    return [{key: number_or_text(value) for key, value in row.items()} for row in rows]


# ---------- intervals ----------


def interval(values, level=0.95):
    """(mean, half width) of Student's t interval for the mean; the half width of one is NaN, and so
    is that of values of which any is infinite or NaN, as the loss of a run can be."""
    mean = statistics.mean(values)
    if len(values) < 2 or not math.isfinite(mean):
        return mean, math.nan
    from scipy.stats import t

    error = statistics.stdev(values) / math.sqrt(len(values))
    return mean, error * t.ppf((1 + level) / 2, len(values) - 1).item()


def wilson(successes, n, level=0.95):
    """(low, high) of Wilson's score interval for a share of n trials, from 0 to 1. Unlike Student's
    it has a width where all of them, or none, succeeded."""
    if not 0 <= successes <= n or n < 1:
        raise ValueError(f"{successes} successes of {n} trials; give 0 to n of at least 1 trial")
    z = statistics.NormalDist().inv_cdf((1 + level) / 2)
    share = successes / n
    scale = 1 + z**2 / n
    center = (share + z**2 / (2 * n)) / scale
    half = z / scale * math.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    # the ends are exact there, but rounding would miss them
    low = 0.0 if successes == 0 else center - half
    high = 1.0 if successes == n else center + half
    return low, high
