"""The table of a grid of runs: a row for the seeds of the same labels, means and intervals, paired
differences; summary.md, summary.json and the figures beside them."""

import itertools
import json
import os

import torch

from minidepth_lab.base import console, machine
from minidepth_lab.keep import check, checkpoints, registry
from minidepth_lab.measure import judge, results
from minidepth_lab.measure.cell import shown
from minidepth_lab.measure.results import METRICS, grouped
from minidepth_lab.show import figures
from minidepth_lab.tasks.base.sizes import by_name

# beside METRICS, what of a run is kept, all but its log in summary.json, too
ALSO_KEPT = ("depth", "sizes", "guess", "shortcut", "accuracy_by_problem", "log")
MOST_COMPARED = 6  # models of a plain grid, two by two
OF_ALL = ("val_loss", "perplexity", "best_val_loss", "train_loss_eval")  # values of a size together


# ---------- runs as records ----------


def finished(cells):
    """The results.result() of finished runs, read once, each with its `labels`, texts by name."""
    rows = []
    for cell in cells:
        labels = {name: shown(value) for name, value in cell.labels.items()}
        rows.append(results.result(cell.folder) | dict(labels=labels))
    return rows


def numbers_of(row):
    """What is kept of one of finished(): {name: number, or `log`}."""
    return {key: row[key] for key in (*METRICS, *ALSO_KEPT) if key in row}


def whole_records(rows):
    """finished() as a list of dicts of `labels`, numbers and `log`, one a run."""
    runs = [dict(labels=dict(row["labels"]), **numbers_of(row)) for row in rows]
    drop_repeated_sizes(runs)
    return runs


def records(rows):
    """As whole_records(), but a run whose accuracy is known for several values of a size, as
    `accuracy_by` = {"hops": {"1": {"accuracy": 0.9, "shortcut": 0.5}, …}}, gives one for each
    value, labelled with it, without the losses, which are of all values together. If these are not
    the values that its size has, as hops that are walked beyond those trained to, it stays one and
    keeps its `accuracy_by`."""
    runs = []
    for row in rows:
        labels, numbers = row["labels"], numbers_of(row)
        if not row.get("accuracy_by"):
            runs.append(dict(labels=dict(labels), **numbers))
            continue
        sizes = by_name(row["sizes"])
        for name, by_value in row["accuracy_by"].items():
            if name in sizes and not by_value.keys() <= set(sizes[name].split("+")):
                runs.append(dict(labels=dict(labels), accuracy_by={name: by_value}, **numbers))
                continue
            kept = numbers
            if len(by_value) > 1:
                kept = {key: value for key, value in numbers.items() if key not in OF_ALL}
            for value, of_value in by_value.items():
                runs.append(dict(labels=labels | {name: str(value)}, **(kept | of_value)))
    drop_repeated_sizes(runs)
    return runs


def drop_repeated_sizes(runs):
    """Of the label `sizes` keep what tells runs apart and no other label does: not "length=16" if
    all have it, nor "hops=1" beside hops 1."""
    if not all("sizes" in run["labels"] for run in runs):
        return
    given = [by_name(run["labels"]["sizes"].split(",")) for run in runs]
    kept = []
    for name in dict.fromkeys(name for sizes in given for name in sizes):
        values = [sizes.get(name) for sizes in given]
        told = values == [run["labels"].get(name) for run in runs]
        if len(set(values)) > 1 and not told:
            kept.append(name)
    for run, sizes in zip(runs, given):
        text = ",".join(f"{name}={sizes[name]}" for name in kept if name in sizes)
        run["labels"]["sizes"] = text
        if not kept:
            del run["labels"]["sizes"]


def differences(runs, metrics):
    """What each model has over each other one, seed by seed, as sentences, each with the p of
    Student's t or None. A study names its models, and of those named GROUP: NAME only those of one
    group are compared; in a plain grid the values of its settings are the names."""
    from scipy.stats import ttest_1samp

    values = {}  # {labels but model and seed: {model: {seed: run}}}
    for run in runs:
        labels = dict(run["labels"])
        seed = labels.pop("seed", None)
        model = labels.pop("model", None)
        if model is None:
            model, labels = ", ".join(f"{name} {value}" for name, value in labels.items()), {}
        where = "".join(f", {name} {value}" for name, value in labels.items())
        values.setdefault(where, {}).setdefault(model, {})[seed] = run
    for metric, (where, models) in itertools.product(metrics, values.items()):
        for a, b in itertools.combinations(models, 2):
            if a.rpartition(": ")[0] != b.rpartition(": ")[0]:
                continue
            seeds = [seed for seed in models[a] if seed in models[b]]
            gaps = [models[b][seed][metric] - models[a][seed][metric] for seed in seeds]
            if len(gaps) < 2:
                continue
            mean, half = results.interval(gaps)
            interval, p = "no interval, the gaps do not differ", None
            if half > 0:
                p = ttest_1samp(gaps, 0).pvalue.item()
                interval = f"95 % interval from {mean - half:+.3f} to {mean + half:+.3f}, "
                interval += "excludes 0" if abs(mean) > half else "does not exclude 0"
            yield (
                (
                    f"{METRICS[metric][0]}{where}, {b} minus {a}: {mean:+.3f}, {interval} "
                    f"(n = {len(gaps)}, same seeds)"
                ),
                p,
            )


def corrected(found):
    """differences() as sentences; several with the p of each corrected for their number."""
    if len(found) < 2:
        return [line for line, _ in found]
    ps = iter(judge.holm([p for _, p in found if p is not None]))
    lines = [line if p is None else f"{line}, corrected p {next(ps):.2g}" for line, p in found]
    several = f"these are {len(found)} intervals, each of 95 % by itself"
    return [*lines, f"{several}; p is corrected for their number (Holm)"]


# ---------- the table ----------


def as_markdown(lines):
    """A list of rows, the first their headings, as a table."""
    heads, *rows = lines
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def make_table(runs, metrics=tuple(METRICS)):
    """(text, rows): the table in Markdown, and each row as a dict of `labels`, `n` and, for each of
    the metrics that all runs have, (mean, half of the 95 % interval or None)."""
    metrics = figures.known_to_all(runs, *metrics)
    groups = grouped(runs)
    names = list(dict.fromkeys(name for key in groups for name, _ in key))
    lines = [[*names, "n", *(METRICS[metric][0] for metric in metrics)]]
    table = []
    for key, rows in groups.items():
        labels = dict(key)
        entry = dict(labels=labels, n=len(rows))
        line = [labels.get(name, "") for name in names]
        line.append(str(len(rows)))
        for metric in metrics:
            mean, half = results.interval([row[metric] for row in rows])
            line.append(results.with_interval(metric, mean, half))
            entry[metric] = (mean, half if half >= 0 else None)  # JSON knows no NaN
        table.append(entry)
        lines.append(line)
    return as_markdown(lines), table


def devices(cells):
    """What the runs of the cells were trained on, threads and all, as their folders say."""
    names = {}
    for cell in cells:
        names[checkpoints.read_about(cell.folder).get("device")] = None
    return "; ".join(str(device) for device in names if device)


def summarize(folder, cells, command, study=None):
    """Print a table of finished runs, a row for the seeds of the same labels, a second one where
    accuracy is known for several values of a size, and write them with their numbers and figures:
    summary.md, summary.json, summary.png and those of draw_all(). `command` is what was typed."""
    rows = finished(cells)
    several_words = results.words_differ(rows)
    if not several_words:  # then a token says enough
        rows = [{k: v for k, v in row.items() if k != "val_loss_per_byte"} for row in rows]
    runs, whole = records(rows), whole_records(rows)
    split = len(runs) > len(whole)
    if split and not figures.known_to_all(runs, "accuracy"):  # beside runs that have none
        runs, split = whole, False
    text, table = make_table(whole)
    by_value = []
    if split:
        accuracies, by_value = make_table(runs, ["accuracy"])
        text += f"\n\n{accuracies}"
    about = dict(command=console.without_home(command))
    about.update(machine.provenance(torch.device("cpu")))
    # not this process's: its runs may have had another device, or fewer threads each
    about["device"] = devices(cells) or about["device"]
    note = "Mean ± half of its 95 % interval (Student's t) over n seeds. "
    note += f"`{about['command']}`, {about['date']}, {about['device']}, "
    note += f"PyTorch {about['versions']['torch']}"
    named, n_models = all("model" in run["labels"] for run in runs), len(grouped(whole))
    if named or 1 < n_models <= MOST_COMPARED:
        metrics = figures.known_to_all(whole, "accuracy", "val_loss")
        found = list(differences(whole, metrics))
        if split and named:
            found += differences(runs, ["accuracy"])
        about["differences"] = corrected(found)
        if found:
            text += "\n\n" + "\n".join(f"- {line}" for line in about["differences"])
    if several_words:
        note += f". {results.WORDS_DIFFER}"
    print(f"{text}\n{note}")
    kept = [{key: value for key, value in run.items() if key != "log"} for run in runs]
    about.update(n_runs=len(cells), table=table, by_value=by_value, runs=kept)
    os.makedirs(folder, exist_ok=True)
    files = {"summary.md": f"{text}\n\n{note}\n", "summary.json": json.dumps(about, indent=1)}
    for name, content in files.items():
        checkpoints.write(os.path.join(folder, name), lambda file: file.write(content.encode()))
    task = registry.task(cells[0].t.data[0]) if cells else None
    if len({cell.labels.get("sizes") for cell in cells}) > 1:
        study = None  # it would take the runs of other sizes for other seeds
    draw_all(folder, runs, study, task)
    print(f"wrote {folder}: summary.png, summary.md, summary.json")


def draw_all(folder, runs, study=None, task=None):
    """The figures of a grid: summary.png; plane.png where runs labelled `model`, a study's, differ
    in parameters; problems.png where all were asked the same kinds of problems; and what the study
    and the depth task draw themselves, each by a function or method figure(runs, folder)."""
    figures.draw_summary(runs, os.path.join(folder, "summary.png"))
    of_a_study = all("model" in run["labels"] for run in runs)
    if of_a_study and len({run["params_total"] for run in runs}) > 1:
        figures.draw_plane(runs, os.path.join(folder, "plane.png"))
    kinds = {tuple(run.get("accuracy_by_problem", ())) for run in runs}
    if len(kinds) == 1 and kinds != {()}:
        figures.draw_problems(runs, os.path.join(folder, "problems.png"))
    if by := getattr(task, "by_layers", None):
        figures.draw_by_layers(runs, os.path.join(folder, f"{by['label']}.png"), **by)
    for owner in (study, task):
        if hasattr(owner, "figure"):
            with check.drawn("what the study or the task draws"):
                owner.figure(runs, folder)
