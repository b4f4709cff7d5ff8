"""Runs found again: the list of those in a folder, and some of them side by side.

python train.py --runs                          all runs under runs/, the newest last
python train.py --runs --data icqa --sort loss  those on one task, the lowest loss first
python train.py --compare runs/A runs/B         what differs, and compare.png
"""

import math
import os
import time
from collections.abc import Callable, Sequence

from minidepth_lab.base import console
from minidepth_lab.keep import checkpoints
from minidepth_lab.measure import results
from minidepth_lab.measure.cell import shown
from minidepth_lab.models import variants
from minidepth_lab.show import curve
from minidepth_lab.tasks.base.sizes import by_name

WIDTH = 80  # of the list, in characters
COLUMNS = dict(  # heading: (key of the list's rows, width)
    name=("name", 20),
    layers=("layers", 6),
    params=("parameters", 6),
    words=("words", 5),
    data=("data", 9),
    loss=("loss", 6),
    right=("accuracy", 5),
    status=("status", 9),
    date=("date", 5),
)
SORTS = ("date", "name", "layers", "parameters", "data", "loss", "accuracy", "status")


# ---------- one run ----------


def about(folder: console.Path) -> dict:
    """What is known of a run's folder, finished or not: `folder`, `model` (a ModelConfig), `train`
    (a dict), `log`, `status` and `date` (seconds since 1970). Of one that cannot be read only
    `folder`, `date`, and the `status` damaged."""
    row = dict(folder=folder, date=os.path.getmtime(os.path.join(folder, "config.json")))
    try:
        model, train = results.settings_of(folder)
        path = os.path.join(folder, "log.jsonl")
        log = results.read_log(folder) if os.path.lexists(path) else []
    except (OSError, ValueError):
        return row | dict(status="damaged")
    if log:
        row["date"] = os.path.getmtime(path)
    status = f"{log[-1]['step'] if log else 0}/{train['steps']}"
    if checkpoints.is_over(log, train["steps"]):
        status = "early end" if log[-1].get("ended_early") else "finished"
    return row | dict(model=model, train=train, log=log, status=status)


def readable(folder: console.Path) -> dict:
    """about() a run; ValueError, which says what is wrong, for one that cannot be read."""
    row = about(folder)
    if "model" not in row:
        results.settings_of(folder)
        results.read_log(folder)  # one of these says what is wrong
    return row


def folders(out_dir: console.Path) -> list[str]:
    """The folders of all runs below a folder, in the order of their names; links are not followed
    and grids, which hold runs, are."""
    found = []
    for folder, inside, names in os.walk(out_dir):
        inside.sort()
        if "config.json" in names:
            found.append(folder)
            inside.clear()  # a run holds no runs
    return [folder for folder in found if is_run(folder)]


def is_run(folder: console.Path) -> bool:
    """Whether a config.json is a trained run's, whole or damaged, and not of another program or of
    weights that nobody trained."""
    try:
        about = checkpoints.read_about(folder)
        return {"model", "train"} <= about.keys() and about["train"] != {}
    except (OSError, ValueError):
        return os.path.lexists(os.path.join(folder, "log.jsonl"))


def short_data(train: dict) -> str:
    """What a run was trained on, in a word: a source, a file without its folder, a loader."""
    sources = train.get("data") or ("",)
    first = train.get("loader") or sources[0]
    word = os.path.basename(str(first).rstrip("/")) or str(first)
    return word if len(sources) == 1 or train.get("loader") else f"{word}+{len(sources) - 1}"


def magnitude(n: float) -> str:
    """A count in at most six characters: 75,008 → 75k, 79,688,832 → 79.7M"""
    for size, letter in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if n >= size:
            return f"{n / size:.3g}{letter}" if n / size < 999.5 else f"{n / size:.0f}{letter}"
    return str(n)


def listed(row: dict, out_dir: console.Path) -> dict:
    """What about() knows as the list's row, {key of COLUMNS: value}; None where there is none."""
    name = os.path.relpath(row["folder"], out_dir)
    shown = dict.fromkeys((key for key, _ in COLUMNS.values()), None)
    shown |= dict(name=name, status=row["status"], date=row["date"])
    if "model" not in row:
        return shown
    model, log = row["model"], row["log"]
    shown["layers"] = model.n_layers * model.n_loops
    shown["shape"] = f"{model.n_layers}x{model.n_loops}" if model.n_loops > 1 else model.n_layers
    shown["data"] = short_data(row["train"])
    if model.vocab_size:
        shown["parameters"] = variants.parameters(model)["total"]
        shown["words"] = magnitude(model.vocab_size)
    if log:
        shown["loss"], shown["accuracy"] = log[-1]["val_loss"], log[-1].get("accuracy")
    return shown


# ---------- the list ----------


def wanted(row: dict, filters: dict[str, list]) -> bool:
    """Whether a run has one of the values that each of `filters`, {setting: values}, allows."""
    if not filters:
        return True
    if "model" not in row:
        return False
    has = vars(row["model"]) | checkpoints.from_json(row["train"])
    for name, values in filters.items():
        value = has.get(name)
        if name == "sizes":  # all of those that are named
            if not any(set(sizes) <= set(value or ()) for sizes in values):
                return False
        elif value not in values:
            return False
    return True


def cut(text: str, width: int) -> str:
    """A text of at most `width` characters, its middle left out."""
    if len(text) <= width:
        return text
    half = (width - 1) // 2
    return f"{text[: width - 1 - half]}…{text[len(text) - half :]}"


def texts(row: dict) -> dict[str, str]:
    """The row of a list as {key: what is printed}."""
    shown = {key: "" if row[key] is None else str(row[key]) for key, _ in COLUMNS.values()}
    shown["layers"] = str(row.get("shape", ""))
    if row["parameters"] is not None:
        shown["parameters"] = magnitude(row["parameters"])
    if row["loss"] is not None:
        shown["loss"] = f"{row['loss']:.4f}"[:6]
    if row["accuracy"] is not None:
        shown["accuracy"] = f"{row['accuracy']:.3f}"
    shown["date"] = time.strftime("%m-%d", time.localtime(row["date"]))
    return shown


def as_lines(rows: list[dict]) -> list[str]:
    """The list as lines of at most WIDTH characters; a name that is too long for its column has a
    line of its own, whole, so that it can be typed."""
    lines = [" ".join(f"{head:<{width}}" for head, (_, width) in COLUMNS.items()).rstrip()]
    for row in rows:
        shown = texts(row)
        cells = []
        for key, width in COLUMNS.values():
            text = console.visible(shown[key])
            if key == "name" and len(text) > width:
                lines.append(text)
                text = ""
            cells.append(f"{cut(text, width):<{width}}")
        lines.append(" ".join(cells).rstrip())
    return lines


def order(key: str) -> Callable[[dict], tuple]:
    """A key for sorted(): runs that lack the value come last, numbers from low to high but the
    accuracy from high to low."""

    def of(row):
        value = row[key]
        missing = value is None or (isinstance(value, float) and math.isnan(value))
        if missing:
            return (True, 0)
        return (False, -value if key == "accuracy" else value)

    return of


def show(out_dir: console.Path, filters: dict[str, list], sort: str | None = None) -> None:
    """Print the list of the runs under a folder; ValueError where there is none, or for an order
    that is unknown."""
    sort = sort or "date"
    if sort not in SORTS:
        raise ValueError(f"--sort {sort:.40} is unknown; choose from {', '.join(SORTS)}")
    if not os.path.isdir(out_dir):
        raise ValueError(f"--out_dir {out_dir} is not there; give the folder of the runs")
    found = folders(out_dir)
    if not found:
        raise ValueError(f"{out_dir} holds no runs; give their folder as --out_dir")
    rows = map(about, found)  # a log is read, listed and let go before the next
    meant = [listed(row, out_dir) for row in rows if wanted(row, filters)]
    if not meant:
        raise ValueError(f"none of the {len(found)} runs in {out_dir} has these settings")
    lines = as_lines(sorted(meant, key=order(sort)))
    if len(meant) < len(found):
        lines.append(f"{len(meant)} of {len(found)} runs in {out_dir}")
    print("\n".join(lines))


# ---------- some of them side by side ----------


def differing(rows: list[dict]) -> list[tuple[str, list[str]]]:
    """[(setting, [its value in each run])] of the settings that are not the same in all, the name
    and place of a run left out. A task's sizes are settings of their own, since together they are
    too long to show where they differ."""
    every = [vars(row["model"]) | row["train"] for row in rows]
    for settings in every:
        sizes = by_name(settings.pop("sizes", None) or ())
        settings |= {f"sizes: {name}": value for name, value in sizes.items()}
    names = dict.fromkeys(name for settings in every for name in settings)
    lines = []
    for name in names:
        values = [settings.get(name, "unknown") for settings in every]
        same = all(value == values[0] for value in values)
        if not same and name not in ("name", "out_dir"):
            lines.append((name, [text(value) for value in values]))
    return lines


def text(value: object) -> str:
    """A setting as it is typed, or that it is unset."""
    return "unset" if value in (None, "") else shown(value)


def outcomes(rows: list[dict]) -> list[tuple[str, list[str]]]:
    """[(what was measured, [its value in each run])], of the last evaluation if not said."""
    lines = [("status", [row["status"] for row in rows])]
    lines.append(
        ("parameters", [f"{variants.parameters(row['model'])['total']:,}" for row in rows])
    )
    best = [results.flat(row["model"], row["train"], row["log"]) for row in rows]
    for key, (name, form) in results.METRICS.items():
        if key != "params_total" and any(row.get(key) is not None for row in best):
            values = [f"{row[key]:{form}}" if row.get(key) is not None else "" for row in best]
            lines.append((name, values))
    return lines


def compare(run_dirs: Sequence[console.Path], out_dir: console.Path) -> None:
    """Print the settings that differ and what came of them, side by side, and draw the curves in
    OUT_DIR/compare.png; ValueError for a run that cannot be read or has no evaluation yet."""
    if len({os.path.realpath(folder) for folder in run_dirs}) < max(2, len(run_dirs)):
        raise ValueError("--compare needs two runs or more, each of them once")
    if len(run_dirs) > 26:
        raise ValueError(f"--compare {len(run_dirs)} runs are more than 26; a grid has a table")
    rows = []
    for folder in run_dirs:
        row = readable(folder)
        if not row["log"]:
            raise ValueError(f"--compare {folder} has no evaluation yet; let it train first")
        rows.append(row)
    letters = [chr(ord("A") + i) for i in range(len(rows))]
    for letter, row in zip(letters, rows):
        print(console.visible(f"{letter}  {row['folder']}"))
    lines = [("", letters), *differing(rows), *outcomes(rows)]
    most = max(8, min(20, (WIDTH - 24) // len(rows) - 1))
    for name, values in lines:
        cells = [f"{cut(console.visible(value), most):>{most}}" for value in values]
        print(f"{cut(name, 24):<24}{' '.join(cells)}")
    if results.words_differ([row["train"] for row in rows]):
        print(results.WORDS_DIFFER)
    path = os.path.join(out_dir, "compare.png")
    logs = {letter: row["log"] for letter, row in zip(letters, rows)}
    curve.draw_logs(logs, path, train=False)
    print(f"wrote {path}")
