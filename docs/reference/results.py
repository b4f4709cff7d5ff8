"""Prints the page of all stored experiments: of each what its notes say, and a table of its runs.

No number of a run is typed here: tables are computed from docs/results/NAME/runs.jsonl.
"""

import statistics
import textwrap

from minidepth_lab.base import console
from minidepth_lab.measure import judge, results
from minidepth_lab.studies import budget

# settings that make no other experiment, or follow from others
IGNORED = {"seed", "name", "out_dir", "save_every", "eval_every", "vocab_size", "data_seed"}
FIRST = ("data", "n_layers", "n_loops", "d_model", "steps", "lr", "init_std")  # columns, in order
KEPT = {"data", "n_layers", "n_loops", "loop_keeps"}  # even where they follow from others
MANY = 16  # kinds of question; of more, a table has those that the predictions measure


# ---------- tables ----------


def settings_of(run):
    """The settings by which runs of an experiment may differ, those of its data by their names."""
    names = set(run) - {key for key in run if key.startswith("params_")}
    names -= {"log", "measured", "grid", "id", "date", "command", "commit", "versions"}
    names -= {"sizes_by_name"}
    settings = {key: run[key] for key in names if key not in run["log"][-1] or key == "lr"}
    return {**settings, **run["sizes_by_name"]}


def columns_of(runs):
    """The settings that tell the models of an experiment apart, without those that follow from the
    others."""
    settings = [settings_of(run) for run in runs]
    names = {name for each in settings for name in each} - IGNORED - {"sizes", "depth", "hardware"}
    names -= {"best_val_loss", "perplexity", "tokens_per_second", "experiment"}
    varying = [name for name in names if len({repr(each.get(name)) for each in settings}) > 1]
    sizes = {name for run in runs for name in run["sizes_by_name"]}

    def place(name):
        """FIRST, then what the data asks, then all others, of which more follow from these."""
        return (FIRST.index(name) if name in FIRST else len(FIRST) + (name not in sizes), name)

    varying.sort(key=place)

    def n_groups(names):
        return len({tuple(repr(each.get(name)) for name in names) for each in settings})

    for name in reversed(list(varying)):
        fewer = [other for other in varying if other != name]
        if name not in KEPT and n_groups(fewer) == n_groups(varying):
            varying = fewer
    return varying


def spread(numbers, form):
    """The median of some numbers and, if they differ, the lowest and the highest."""
    low, middle, high = min(numbers), statistics.median(numbers), max(numbers)
    if f"{low:{form}}" == f"{high:{form}}":
        return f"{middle:{form}}"
    return f"{middle:{form}} ({low:{form}} to {high:{form}})"


def seeds(runs):
    """The seeds of some runs in words."""
    numbers = sorted({run["seed"] for run in runs})
    if len(numbers) > 2 and numbers == list(range(numbers[0], numbers[-1] + 1)):
        return f"{numbers[0]} to {numbers[-1]}"
    return ", ".join(map(str, numbers))


def parts_of(run):
    """{kind of question: accuracy} at the end of a run; {} where its log tells none apart."""
    parts = dict(run.get("accuracy_by_family", run.get("accuracy_by_problem", {})))
    for what, shares in run.get("accuracy_by", {}).items():
        for value, share in shares.items():
            parts[f"{what} {value}"] = share["accuracy"]
    return parts


def shown(value):
    """A setting in a cell of a table."""
    if isinstance(value, tuple):
        return "-".join(map(str, value))
    return "–" if value is None else f"{value}"


def sortable(key):
    """A tuple of settings in an order with numbers as numbers."""
    numbers = (isinstance(value, (int, float)) for value in key)
    return [(0, value, "") if number else (1, 0, str(value)) for number, value in zip(numbers, key)]


def kinds_of(name, runs):
    """The kinds of question that an experiment's table has a column for, those of one word in the
    order of their numbers; of one kind alone there is none, as its share is the accuracy."""
    kinds = list(dict.fromkeys(kind for run in runs for kind in parts_of(run)))
    if len(kinds) > MANY and (results.RESULTS / name / "predictions.toml").exists():
        measures = " ".join(judge.File(name).measures.values())
        kinds = [kind for kind in kinds if f"accuracy_by.{kind.replace(' ', '.')}." in measures]
    words = [kind.rpartition(" ")[0] for kind in kinds]

    def place(kind):
        word, _, number = kind.rpartition(" ")
        return words.index(word), int(number) if number.isdigit() else 0

    return sorted(kinds, key=place) if len(kinds) > 1 else []


def table_of(name, runs):
    """A table of the runs of an experiment in Markdown, a line for the seeds of each model."""
    names = columns_of(runs)
    groups = {}
    for run in runs:
        settings = settings_of(run)
        key = tuple(settings.get(name) for name in names)
        groups.setdefault(key, []).append(run)
    kinds = kinds_of(name, runs)
    heads = [*names, "seeds", "n"]
    heads += ["accuracy"] if any("accuracy" in run for run in runs) else []
    heads += [*kinds, "validation loss", "parameters", "seconds"]
    lines = [heads, ["---"] * len(heads)]
    for key in sorted(groups, key=sortable):
        group = groups[key]
        line = [*map(shown, key), seeds(group), str(len(group))]
        if "accuracy" in heads:
            shares = [run["accuracy"] for run in group if "accuracy" in run]
            line.append(spread(shares, ".3f") if shares else "–")
        for kind in kinds:
            shares = [parts_of(run)[kind] for run in group if kind in parts_of(run)]
            line.append(spread(shares, ".2f") if shares else "–")
        line.append(spread([run["val_loss"] for run in group], ".4g"))
        line.append(f"{group[0]['params_total']:,}")
        line.append(f"{statistics.median(run['seconds'] for run in group):.0f}")
        lines.append(line)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


# ---------- an experiment ----------


def intro(name):
    """What the notes of an experiment say before what was written before its runs, without their
    heading. Without notes it is what its predictions say of it."""
    path = results.RESULTS / name / "notes.md"
    if not path.exists():
        return " ".join(judge.File(name).about["note"].split())
    text = path.read_text(encoding="utf-8").partition("\n## Written before")[0]
    text = text.partition("\n")[2].strip()
    # links lead from the folder of the experiment, this page stands in reference/
    text = text.replace("](../", "](../results/")
    return text.replace("](../results/../reference/", "](").replace("](../results/../", "](../")


def print_experiment(name):
    print(f"\n## {name}\n")
    if text := intro(name):
        print(text)
    folder, links = results.RESULTS / name, []
    if (folder / "runs.jsonl").exists():
        runs = results.runs(name)
        machines = sorted({run["hardware"] for run in runs})
        torch = sorted({run["versions"]["torch"] for run in runs})
        made = f"{'; '.join(machines)}, PyTorch {', '.join(torch)}."
        brackets = "Of several seeds the median and, in brackets, the lowest and the highest."
        # folded, so that the page is a list of experiments; a browser's search opens it
        print(f'\n??? note "{console.plural(len(runs), "run")}"\n')
        print(textwrap.indent(f"{made} {brackets}\n\n{table_of(name, runs)}", "    "))
    if (folder / "notes.md").exists():
        links.append(f"[notes](../results/{name}/notes.md)")
    if (folder / "predictions.toml").exists():
        links.append(f"[predictions](predictions.md#{name}): {judge.tally(name)}")
    if links:
        print(f"\n{' · '.join(links)}")


def print_tuning():
    """The runs by which the settings of budget-tuned were chosen, one run each."""
    models = budget.tried()
    pairs = sorted(set().union(*models.values()))
    heads = ["model", *(f"{lr:g}, {std:g}" for lr, std in pairs)]
    print("\nValidation loss by learning rate and `init_std`, one run each, `tuning.jsonl`:\n")
    print(f"| {' | '.join(heads)} |\n{'|---' * len(heads)}|")
    for name, losses in models.items():
        cells = [f"{losses[pair]:.3g}" if pair in losses else "–" for pair in pairs]
        print(f"| {name} | {' | '.join(cells)} |")


def print_attention():
    """Means over the heads of each layer of the run whose attention was measured."""
    (run,) = results.runs("attention")
    stats = run["measured"]["attention"]
    columns = {name.replace("_", " "): heads for name, heads in stats["valid"].items()}
    columns["sparsity, mask counted"] = stats["count_masked"]["sparsity"]
    columns = {name: heads for name, heads in columns.items() if isinstance(heads, list)}
    print("\nMeans over the heads of a layer:\n")
    print(f"| layer | {' | '.join(columns)} |\n{'|---' * (len(columns) + 1)}|")
    for layer, values in enumerate(zip(*columns.values()), 1):
        cells = (f"{statistics.mean(heads):.3f}" for heads in values)
        print(f"| {layer} | {' | '.join(cells)} |")


def print_texts(name):
    """What programs printed, as it is kept in the folder of an experiment."""
    for path in sorted((results.RESULTS / name).glob("*.txt")):
        text = path.read_text(encoding="utf-8").rstrip()
        print(f"\n`{path.name}`\n\n```text\n{text}\n```")


every = [results.runs(name) for name in results.experiments()]
print(f"""# Results

**{sum(map(len, every)):,} runs are stored here, in {len(every)} experiments.** An experiment is a
folder of `docs/results`. Its `runs.jsonl` has a line for each run: its settings, command, versions,
device and commit, and the columns of its log. `minidepth_lab.measure.results.runs(name)` reads it,
and [this page](run_folder.md) says what the columns mean. The tables below are computed from these
files. What we had expected, and whether it held, is on one page: [predictions](predictions.md).

`notes.md` says what an experiment is about, and keeps what was written before its runs; where there
is none, both stand in `predictions.toml`, as its `note` and as its first lines. Commands
are given as they were typed; for flags that [no longer exist](flags.md#flags-that-are-gone), the
successor is given beside them. Commands that take the laptop preset, by name or because there was
no GPU, mean it as it was until 21 November 2026 except in `ask`, `budget`, `budget-tuned`,
`first-run` and the experiments whose names begin so: `--preset depth` has those settings today.
Until 22 November 2026 each embedded conversation began with a system turn, `Think step by step.`,
ten tokens that were always the same. Weights are kept where a page needs them, in `weights/` beside
the runs, a file for a model.
""")
for folder in sorted(path for path in results.RESULTS.iterdir() if path.is_dir()):
    if folder.name == "published":  # has a page of its own
        continue
    print_experiment(folder.name)
    if folder.name == "budget-tuned":
        print_tuning()
    if folder.name == "attention":
        print_attention()
    if folder.name == "bench":
        print_texts(folder.name)
