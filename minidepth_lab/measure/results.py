"""Runs as data: a run's folder, the stored experiments, the published tables, and intervals.

    row = results.result("runs/laptop_n_layers-12")      settings, last evaluation, log: one dict
    rows = results.runs("depth", n_layers=12)            the same of docs/results/depth/runs.jsonl
    log = results.published("report_log_12_layers")      docs/results/published/….csv
    mean, half = results.interval([0.61, 0.68, 0.66])    mean ± half of its 95 % interval
    low, high = results.wilson(57, 60)                   95 % interval of a share

An experiment is a folder docs/results/NAME. Its runs.jsonl has a line for each run: `id`, the
`date` on which it began (order.py says how that is known of older ones), the settings `model` and
`train`, `command`, `versions`, `device`, `commit`, the columns of its `log`, and, of some, the
command and the date of the `grid` that made it, and what was `measured` later, with when and where
under `about`. Finished runs are put there by

    PYTHONPATH=.:docs python -m minidepth_lab.measure.results publish RUN_FOLDER … NAME

and the same with `keep` for `publish` stores their weights, for a page that needs them: a file
weights/ID.safetensors for a run, in which the text of the folder's other files stands, too. What a
study measures of trained runs is added by its own module, in the same way:

    PYTHONPATH=.:docs python -m minidepth_lab.studies.walk RUN_FOLDER … NAME

Nothing here trains or draws.
"""

import argparse
import contextlib
import csv
import dataclasses
import functools
import itertools
import json
import math
import os
import pathlib
import re
import shlex
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from minidepth_lab.base import configs, console, machine
from minidepth_lab.keep import checkpoints
from minidepth_lab.measure.stored import stored_folder
from minidepth_lab.models import variants

RESULTS = stored_folder("results")  # the logs behind every figure

METRICS = {  # of a run, as tables name them: heading, format
    "accuracy": ("accuracy", ".3f"),
    "val_loss": ("validation loss", ".3g"),
    "val_loss_per_byte": ("validation loss per byte", ".4g"),
    "perplexity": ("perplexity", ".4g"),
    "best_val_loss": ("best validation loss", ".3g"),
    "train_loss_eval": ("train loss, no dropout", ".3g"),
    "params_total": ("parameters", ",.0f"),
    "params_layers": ("in layers", ",.0f"),
    "tokens_per_second": ("tokens per second", ",.0f"),
    "seconds": ("seconds", ".1f"),
}

WORDS_DIFFER = "Losses per token of different tokenizers do not compare, losses per byte do"


def words_differ(settings: list[dict]) -> bool:
    """Whether runs with these settings count losses per token of different words."""
    return len({(each.get("tokenizer"), each.get("tokenizer_size")) for each in settings}) > 1


# ---------- runs ----------


def with_tuples(settings: dict) -> dict:
    """Settings as read from JSON, with tuples for its lists."""
    return {
        name: tuple(value) if isinstance(value, list) else value for name, value in settings.items()
    }


def settings_from(config: dict) -> tuple[configs.ModelConfig, dict]:
    """(ModelConfig, dict of the training settings) of a config.json's content, whatever version of
    this project wrote it: a setting of the training that has gone since is kept, so that stored
    runs can be read for ever."""
    known = {field.name for field in dataclasses.fields(configs.ModelConfig)}
    model = {name: value for name, value in config["model"].items() if name in known}
    train, fields = with_tuples(config["train"]), dataclasses.fields(configs.TrainConfig)
    its = {field.name: train[field.name] for field in fields if field.name in train}
    configs.check_fields(configs.TrainConfig(**its))
    return configs.ModelConfig(**with_tuples(model)).validate(), train


def settings_of(run_dir: console.Path) -> tuple[configs.ModelConfig, dict]:
    """settings_from() a run's config.json; ValueError if it is not the configuration of a run."""
    about = checkpoints.read_about(run_dir)
    path = os.path.join(run_dir, "config.json")
    with console.one_line_errors(path, "is not the configuration of a run"):
        model, train = settings_from(about)
        if not isinstance(train["steps"], int):
            raise ValueError(f"steps {train['steps']!r} is not a whole number")
        return model, train


def read_log(run_dir: console.Path) -> list[dict]:
    """The records of a run's log.jsonl; ValueError says what is damaged, and in which line."""
    path = checkpoints.path_inside(run_dir, "log.jsonl")
    with console.one_line_errors(path, "is not the log of a run"):
        with open(console.regular_file(path), encoding="utf-8") as f:
            lines = f.read().split("\n")
    log = []
    for number, line in enumerate(lines, 1):
        if not line and number == len(lines):
            break
        with console.one_line_errors(path, f"is not the log of a run, in line {number}"):
            log.append(json.loads(line))
            checkpoints.check_log(log[-2:])
            losses = checkpoints.LOSSES
            log[-1] |= {name: math.nan for name in losses if log[-1][name] is None}
    return log


def flat(model: configs.ModelConfig, train: dict, log: list[dict]) -> dict:
    """One dict of a finished run: its settings, the last evaluation of `log`, `best_val_loss` (nats
    per token), `perplexity` (e to the last validation loss: a choice among so many equally likely
    words would be as hard), `tokens_per_second` (median), `depth` (layers applied), `params_…` by
    part, and `log`, a dict per evaluation."""
    row = dataclasses.asdict(model)
    row.update(train)
    for part, n in variants.parameters(model).items():
        row[f"params_{part}"] = n
    row.update(log[-1])
    row["lr"] = train["lr"]  # the setting, which the log's last rate has replaced
    row["tokens_per_second"] = statistics.median(record["tokens_per_second"] for record in log)
    losses = [record["val_loss"] for record in log if not math.isnan(record["val_loss"])]
    row["best_val_loss"] = min(losses, default=math.nan)
    row["perplexity"] = math.exp(min(row["val_loss"], 700.0))  # beyond, floats end
    row["depth"] = model.n_layers * model.n_loops
    row["log"] = log
    return row


def result(run_dir: console.Path) -> dict:
    """flat() of a run's folder; ValueError if the run is not finished, or damaged."""
    model, train = settings_of(run_dir)
    log = read_log(run_dir)
    if not checkpoints.is_over(log, train["steps"]):
        go_on = f"go on with --resume {shlex.quote(str(run_dir))}"
        raise ValueError(f"{run_dir} is not finished; {go_on}")
    return flat(model, train, log)


def onset(run: dict, family: str, enough: float = 0.9) -> int | None:
    """The step of the first evaluation at which a result() answers `enough` of a family's held-out
    problems, as its log says; None if there is none."""
    for record in run["log"]:
        if record.get("accuracy_by_family", {}).get(family, 0) >= enough:
            return record["step"]
    return None


def grouped(runs: list[dict]) -> dict[tuple, list[dict]]:
    """Runs as dicts with `labels` → {labels without the seed, as pairs: the runs of all seeds}."""
    groups = {}
    for run in runs:
        key = tuple(pair for pair in run["labels"].items() if pair[0] != "seed")
        groups.setdefault(key, []).append(run)
    return groups


# ---------- stored experiments ----------


def columns_of(records: list[dict]) -> dict:
    """The records of a log as {column: [a value for each record]}, None where one has none. A
    column of dicts, such as `accuracy_by`, becomes a dict of columns; records_of() is the way back.
    """
    columns = {}
    for name in dict.fromkeys(name for record in records for name in record):
        values = [record.get(name) for record in records]
        given = [value for value in values if value is not None]
        if given and all(isinstance(value, dict) and value for value in given):
            columns[name] = columns_of([value or {} for value in values])
        else:
            columns[name] = values
    return columns


def records_of(columns: dict) -> list[dict]:
    """{column: [a value for each record]} as records, dicts, without the values that are None."""
    records = []
    for name, values in columns.items():
        if isinstance(values, dict):
            values = [record or None for record in records_of(values)]
        records = records or [{} for _ in values]
        for record, value in zip(records, values, strict=True):
            if value is not None:
                record[name] = value
            elif name in checkpoints.LOSSES:
                record[name] = math.nan
    return records


def experiments() -> list[str]:
    """The names of all stored experiments, in alphabetical order."""
    return sorted(path.parent.name for path in RESULTS.glob("*/runs.jsonl"))


def lines_of(name: str) -> list[dict]:
    """The lines of docs/results/NAME/runs.jsonl as dicts; ValueError for an unknown name."""
    path = RESULTS / name / "runs.jsonl"
    if not path.exists():
        known = ", ".join(experiments())
        raise ValueError(f"experiment {str(name)!r} is unknown; choose from {known}")
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def runs(name: str, **wanted: Any) -> list[dict]:
    """The runs of an experiment that have the `wanted` settings, as select() has them: flat() of
    each, and `id`, `experiment`, `date`, `command`, `versions`, `commit`, `hardware`, `threads`,
    the `sizes_by_name` of its data, `measured` and `grid`, each {} where there is none."""
    rows = []
    for line in lines_of(name):
        model, train = settings_from(line)
        row = flat(model, train, records_of(line["log"]))
        row.update(id=line["id"], experiment=name, hardware=line["device"])
        row.update({key: line[key] for key in ("date", "command", "versions", "commit")})
        threads = re.search(r"(\d+) threads?", line["device"])
        row["threads"] = int(threads[1]) if threads else None
        row["sizes_by_name"] = size_values(train.get("sizes", ()))
        row.update(measured=line.get("measured", {}), grid=line.get("grid", {}))
        rows.append(row)
    return select(rows, **wanted)


def size_values(sizes: Iterable[str]) -> dict:
    """("hops=4", "lengths=1+2") → {"hops": 4, "lengths": "1+2"}"""
    pairs = (size.partition("=")[::2] for size in sizes)
    return {name: number_or_text(value) for name, value in pairs}


def select(rows: list[dict], **wanted: Any) -> list[dict]:
    """The runs() whose settings are the `wanted` ones. A
    size of the data counts as a setting, so does a setting of one value in a tuple, such as `data`.
    A list or range means one of several, or all of them where a run has several, such as heads by
    layer or lengths of the data; a run without the setting is never meant."""
    return [row for row in rows if all(matches(row, key, wanted[key]) for key in wanted)]


def matches(row: dict, key: str, wanted: object) -> bool:
    """Whether a run has one setting."""
    missing = object()
    value = row["sizes_by_name"].get(key, row.get(key, missing))
    if isinstance(value, tuple) and len(value) == 1:
        (value,) = value
    if isinstance(wanted, (list, range, set)):
        as_size = "+".join(map(str, wanted))  # as --sizes has it
        return value in wanted or value == tuple(wanted) or value == as_size
    return value == wanted


def by(rows: list[dict], *settings: str) -> dict:
    """{value of a setting: its runs}, in the order of the values, numbers before texts, lists, and
    None; of several settings the key is a tuple of their values."""
    groups = {}
    for row in rows:
        values = tuple(row["sizes_by_name"].get(key, row.get(key)) for key in settings)
        groups.setdefault(values if len(values) > 1 else values[0], []).append(row)
    return {key: groups[key] for key in sorted(groups, key=comparable)}


def comparable(value: object) -> tuple:
    """What values of settings are sorted by, of which some cannot be compared with others."""
    if isinstance(value, tuple):
        return 2, tuple(map(comparable, value))
    return (3, 0) if value is None else (int(isinstance(value, str)), value)


def noted(name: str) -> list[dict]:
    """The lines of docs/results/NAME/tuning.jsonl as dicts: the runs by which settings were chosen,
    with what was noted of each."""
    path = RESULTS / name / "tuning.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def step_by_bench(line: str) -> tuple[float, float]:
    """(seconds of a step, its peak memory in bytes) as --bench printed them after `line`, in
    docs/results/bench/printed.txt. ValueError where that is no line of it, or more than one, and
    where its section has none."""
    lines = (RESULTS / "bench" / "printed.txt").read_text(encoding="utf-8").splitlines()
    if lines.count(line) != 1:
        raise ValueError(f"{line!r} is {lines.count(line)} lines of what --bench printed, not one")
    section = itertools.takewhile(lambda x: not x.startswith("["), lines[lines.index(line) + 1 :])
    after = "\n".join(section)
    if "median " not in after or "peak memory " not in after:
        raise ValueError(f"{line!r} has no step of --bench behind it")
    milliseconds = after.split("median ")[1].split(" ms")[0]
    peak = after.split("peak memory ")[1].split(" GiB")[0]
    return float(milliseconds) / 1000, float(peak) * 2**30


def trained_on(name: str, run_dir: console.Path) -> dict:
    """The settings of training of a run; ValueError if its data has another name than this."""
    _, train = settings_of(run_dir)
    if list(train["data"]) != [name]:
        raise ValueError(f"{run_dir} is a run of {' + '.join(train['data'])}; give one of {name}")
    return train


# ---------- stored weights ----------

# so begin, in the header of stored weights, the names of files that were beside them
BESIDE = "run/"


def weights_file(name: str, run_id: str) -> pathlib.Path:
    """Where the weights of a stored run are, or would be."""
    return RESULTS / name / "weights" / f"{run_id}.safetensors"


@functools.cache
def weights(name: str, run_id: str) -> pathlib.Path:
    """The weights of a stored run as the folder that the run had, for minidepth.load(): made of
    weights_file() beside no other, and gone when the program ends. ValueError if none are stored.
    """
    path = weights_file(name, run_id)
    if not path.exists():
        raise ValueError(f"no weights are stored for run {run_id!r} of experiment {name!r}")
    from safetensors import safe_open

    with safe_open(path, "pt") as f:
        about = f.metadata()
    folder = pathlib.Path(folder_of_folders().name, name, run_id)
    for key in about:
        if key.startswith(BESIDE):
            part = folder / key.removeprefix(BESIDE)
            part.parent.mkdir(parents=True, exist_ok=True)
            part.write_text(about[key], encoding="utf-8", newline="")
    shutil.copyfile(path, folder / checkpoints.LAST)
    return folder


@functools.cache
def folder_of_folders() -> tempfile.TemporaryDirectory:
    """A temporary folder for what weights() makes."""
    return tempfile.TemporaryDirectory(prefix="minidepth-")


def keep(run_dirs: Iterable[console.Path], name: str) -> None:
    """Store the weights of published runs, of each that load() takes: weights_file(), with what
    load() needs beside them, config.json and the tokenizer, as text in its header.

    ValueError: the experiment has no such run, or load() cannot read its folder.
    """
    from safetensors import safe_open
    from safetensors.torch import save

    by_id = {line["id"]: line for line in lines_of(name)}
    contents = {}
    for run_dir in map(pathlib.Path, run_dirs):
        run_id = line_in(by_id, run_dir, name)["id"]
        checkpoints.load(str(run_dir))
        parts = [run_dir / "config.json", *sorted(run_dir.glob("tokenizer/*"))]
        texts = {BESIDE + part.relative_to(run_dir).as_posix(): text_of(part) for part in parts}
        with safe_open(run_dir / checkpoints.weights_file(run_dir), "pt") as f:
            tensors = {key: f.get_tensor(key) for key in f.keys()}
            about = (f.metadata() or {}) | texts
        contents[weights_file(name, run_id)] = save(tensors, about)
    for path, content in contents.items():
        path.parent.mkdir(exist_ok=True)
        checkpoints.write(str(path), lambda f, content=content: f.write(content))


def text_of(path: console.Path) -> str:
    """A file's text, its ends of lines as they are."""
    with open(path, encoding="utf-8", newline="") as f:
        return f.read()


# ---------- publishing ----------


def line_of(run_dir: console.Path) -> dict:
    """A finished run's folder as a line of runs.jsonl, a dict; ValueError as result() raises it."""
    result(run_dir)
    with open(os.path.join(run_dir, "config.json"), encoding="utf-8") as f:
        config = json.load(f)
    return dict(id=id_of(run_dir), **config, log=columns_of(read_log(run_dir)))


def id_of(run_dir: console.Path) -> str:
    """What a run is called where it is stored: as its folder."""
    return os.path.basename(os.path.abspath(run_dir))


def publish(run_dirs: Iterable[console.Path], name: str) -> None:
    """Add the runs in these folders to docs/results/NAME/runs.jsonl, all or none of them.

    ValueError: the experiment has no folder, a run is not finished, or it is stored already, by its
    id or by its settings.
    """
    folder = RESULTS / name
    if not folder.is_dir():
        known = ", ".join(sorted(path.name for path in RESULTS.iterdir() if path.is_dir()))
        raise ValueError(f"experiment {name!r} is unknown; make {folder} or choose from {known}")
    path = folder / "runs.jsonl"
    lines = lines_of(name) if path.exists() else []
    for run_dir in run_dirs:
        new = line_of(run_dir)
        for old in lines:
            if new["id"] == old["id"]:
                raise ValueError(f"{run_dir}: {path} has a run {new['id']} already")
            if own_settings(new) == own_settings(old):
                raise ValueError(f"{run_dir}: {path} has this run already, as {old['id']}")
        lines.append(new)
    write_lines(name, lines)


def write_lines(name: str, lines: Iterable[dict]) -> None:
    """Write docs/results/NAME/runs.jsonl, whole or not at all."""
    path = RESULTS / name / "runs.jsonl"
    text = "".join(checkpoints.json_line(line) for line in lines)
    part = path.with_suffix(f".{os.getpid()}.tmp")
    part.write_text(text, encoding="utf-8")
    os.replace(part, path)


def own_settings(line: dict) -> tuple:
    """What tells one run from another, of a line of runs.jsonl: its settings and the machine."""
    train = {key: line["train"][key] for key in line["train"] if key not in ("name", "out_dir")}
    return line["model"], train, line["device"]


def add_measured(run_dirs: Iterable[console.Path], name: str, what: str, measure: Callable) -> None:
    """Add what measure(folder) gives of each run to its line in docs/results/NAME/runs.jsonl, under
    `measured` and `what`; and, under `measured` and `about`, the date, versions, machine and commit
    that measured it. All of them or none. What was there under this name is replaced.

    ValueError: the experiment has no such run, or measure() cannot read its folder.
    """
    lines = lines_of(name)
    by_id = {line["id"]: line for line in lines}
    about = machine.provenance(torch.device("cpu"))
    for run_dir in run_dirs:
        measured = line_in(by_id, run_dir, name).setdefault("measured", {})
        measured[what] = measure(run_dir)
        measured.setdefault("about", {})[what] = about
    write_lines(name, lines)


def line_in(by_id: dict[str, dict], run_dir: console.Path, name: str) -> dict:
    """The line of a run's folder, whose name is its id, among {id: line} of the experiment `name`;
    ValueError if it is not there."""
    run_id = id_of(run_dir)
    if run_id not in by_id:
        raise ValueError(f"{run_dir}: experiment {name!r} has no run {run_id}; publish it first")
    return by_id[run_id]


def measuring_command(**measures: Callable) -> None:
    """The command line RUN_FOLDER … NAME of a study's module, which does add_measured(); of several
    measures, as {what: function}, the one that --what names, the first if it is not given."""
    names = ", ".join(f"{measure.__name__}()" for measure in measures.values())
    parser = argparse.ArgumentParser(description=f"Add {names} to stored runs.")
    parser.add_argument("run", nargs="+", help="the folder of a run that is published")
    parser.add_argument("name", help="its experiment in docs/results")
    if len(measures) > 1:
        parser.add_argument("--what", choices=measures, help="what to measure")
    parser.set_defaults(what=next(iter(measures)))
    args = parser.parse_args()
    try:
        add_measured(args.run, args.name, args.what, measures[args.what])
    except (OSError, ValueError) as error:
        parser.error(console.one_line(error))


def main(arguments: list[str]) -> int | None:
    """The exit code of `python -m minidepth_lab.measure.results …`."""
    acts = dict(
        publish=(publish, "runs added to", "runs.jsonl"), keep=(keep, "models in", "weights")
    )
    if len(arguments) < 3 or arguments[0] not in acts:
        usage = "usage: python -m minidepth_lab.measure.results publish|keep RUN_FOLDER … NAME"
        print(usage, file=sys.stderr)
        return 2
    act, done, place = acts[arguments[0]]
    *run_dirs, name = arguments[1:]
    try:
        act(run_dirs, name)
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    print(f"{len(run_dirs)} {done} {RESULTS / name / place}")
    return 0


# ---------- published tables ----------


def number_or_text(text: str) -> int | float | str:
    """A field of a table: '12' → 12, '0.5' → 0.5, 'A' → 'A'."""
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text


def published(name: str) -> list[dict]:
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


def interval(values: Sequence[float], level: float = 0.95) -> tuple[float, float]:
    """(mean, half width) of Student's t interval for the mean. The half width is NaN where there is
    none: of a single value, of values of which any is infinite or NaN, as the loss of a run can be,
    and of values that are all the same, which show no spread to judge by."""
    mean = statistics.mean(values)
    if len(values) < 2 or not math.isfinite(mean):
        return mean, math.nan
    spread = statistics.stdev(values)
    if spread <= 1e-12 * max(abs(value) for value in values):  # no more than rounding
        return mean, math.nan
    from scipy.stats import t

    _, half = t.interval(level, len(values) - 1, scale=spread / math.sqrt(len(values)))
    return mean, half.item()


def with_interval(metric: str, mean: float, half: float | None) -> str:
    """A mean of one of METRICS with its 95 % interval as text; one of shares ends at 0 and 1."""
    form = METRICS[metric][1]
    if half is None or not half > 0:
        return f"{mean:{form}}"
    low, high = mean - half, mean + half
    if metric == "accuracy" and (low < 0 or high > 1):
        return f"{mean:{form}} ({max(0.0, low):{form}} to {min(1.0, high):{form}})"
    return f"{mean:{form}} ± {half:{form}}"


def wilson(successes: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """(low, high) of Wilson's score interval for a share of n trials, from 0 to 1. Unlike Student's
    it has a width where all of them, or none, succeeded."""
    from scipy.stats import binomtest

    if not 0 <= successes <= n or n < 1:
        raise ValueError(f"{successes} successes of {n} trials; give 0 to n of at least 1 trial")
    share = binomtest(successes, n).proportion_ci(level, method="wilson")
    return float(share.low), float(share.high)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
