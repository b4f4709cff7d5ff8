"""Where rows come from: files, folders and patterns of them, data sets of the hub, several at
once; and which of them are held out."""

import glob
import os
import pathlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

import minidepth as md
from minidepth_lab.base import configs, console
from minidepth_lab.rows import forms, hub, reading
from minidepth_lab.rows.reading import KINDS, kind_of

# ---------- files ----------


def is_pattern(source: str) -> bool:
    """Whether a source is a pattern of files, maybe several, and not the name of one."""
    return glob.has_magic(source) and not os.path.exists(source)


def is_path(name: str) -> bool:
    """Whether a name can only be a path on this machine: an id of the hub has one / at most, and
    begins with a letter or a digit."""
    return name.startswith((".", "/")) or name.count("/") > 1


def is_local(source: str) -> bool:
    """Whether a source names a file, a folder or a pattern of files, there or not."""
    if kind_of(source) or is_path(source):
        return True
    return os.path.exists(source) or glob.has_magic(source)


def is_missing(source: str) -> bool:
    """Whether a source names a file or a folder that is not there."""
    return is_local(source) and not (os.path.exists(source) or is_pattern(source))


def inside(folder: str) -> Iterator[str]:
    """The files in a folder and in its folders; of folders that are not looked into, hidden ones
    and links, their own paths."""
    for at, folders, names in os.walk(folder):
        for name in list(folders):
            if name.startswith(".") or os.path.islink(os.path.join(at, name)):
                folders.remove(name)
                names.append(name)
        yield from (os.path.join(at, name) for name in names)


# beside the .arrow files of save_to_disk()
OF_DATASETS = ("dataset_dict.json", "dataset_info.json", "state.json")


def why_not_read(path: str) -> str:
    """What keeps a path inside() a folder from being read, in a word or two; "" if it is read."""
    name = os.path.basename(path)
    if name.startswith("."):
        return "hidden"
    if not os.path.isfile(path):
        return "no regular file"
    if not kind_of(path) or name in OF_DATASETS:
        return os.path.splitext(name)[1].lower() or "without an ending"
    return ""


def parted(pattern: str) -> tuple[str, str]:
    """A pattern as the folder that it looks in, and what is to be found there."""
    parts = pathlib.Path(pattern).parts
    n = next(i for i, part in enumerate(parts) if glob.has_magic(part))
    return os.path.join(*parts[:n]) if n else "", os.path.join(*parts[n:])


def fitting(pattern: str) -> list[str]:
    """The paths that a pattern fits; with **, which fits every folder on the way but hidden ones
    and links, files alone."""
    if "**" not in pattern:
        return glob.glob(pattern)
    folder, rest = parted(pattern)
    rest = os.path.join(rest, "*") if rest.endswith("**") else rest
    found = []
    for path in pathlib.Path(folder or ".").glob(rest):  # glob.glob() would follow links, in rings
        hidden = any(part.startswith(".") for part in path.relative_to(folder or ".").parts[:-1])
        if not hidden and not path.is_dir():
            found.append(os.path.join(folder, path.relative_to(folder or ".")))
    return found


def left_out(source: str) -> list[str]:
    """What is to be told of the files of a folder, or of those that a pattern fits, that are not
    read: a note that counts them by their ending, or none."""
    paths = fitting(source) if is_pattern(source) else inside(source)
    counts = Counter(filter(None, map(why_not_read, paths)))
    if not counts:
        return []
    by_ending = ", ".join(f"{ending} ({n:,})" for ending, n in counts.most_common())
    return [f"{console.plural(counts.total(), 'file')} of {source} left out: {by_ending}"]


def files_of(source: str) -> list[str]:
    """The files that a source names: itself, those in a folder and its folders that end in one of
    KINDS, or those that a pattern fits, in the order of their names; ValueError for none."""
    if os.path.isdir(source):
        found = [path for path in inside(source) if not why_not_read(path)]
        what = "is a folder without a file that ends in one of"
    elif is_pattern(source):
        found = [path for path in fitting(source) if not why_not_read(path)]
        what = "fits no file that ends in one of"
    else:
        if not os.path.exists(source):
            raise ValueError(f"data {source} is not there; give the path of a file")
        found = [source] if kind_of(source) else []
        what = "is neither a folder nor a file that ends in one of"
    if not found:
        raise ValueError(
            f"data {source} {what} {' '.join(KINDS)}, or these with {' '.join(reading.PACKED)}"
        )
    return sorted(found)


# the columns of a row of text, or of one that is told what else it is for
COLUMNS = (*forms.CONVERSATIONS, *forms.PAIRS, "text", "choices", "endings", "passage", "answers")


def check_names(
    source: str, rows: list[dict], known: Iterable[str] = COLUMNS, wanted: str = forms.ROW_FORMS
) -> None:
    """ValueError for rows of tables of whose columns none is `known`: their first line may be a
    row. `wanted` says which columns a row has."""
    if not all(kind_of(path) in (".csv", ".tsv") for path in files_of(source)):
        return
    if not rows or set().union(*rows) & set(known):
        return
    names = ", ".join(name[:40].strip() for name in list(rows[0])[:4])
    unknown = f"data {source}: its first line has no name that is known: {names}"
    advice = "a table begins with a line of names: add one, such as class,title,text"
    raise ValueError(f"{unknown}; {advice}; a row has {wanted}")


# ---------- splits ----------

# what names of files and folders, and the hub's data sets, call them
SPLITS = dict(
    train=("train", "training"),
    validation=("validation", "valid", "val", "dev"),
    test=("test", "testing", "eval", "evaluation"),
)


def split_of(path: str, folder: str) -> str:
    """Which of SPLITS a file is of, as its name or that of a folder around it says; "train" where
    nothing does."""
    for part in reversed(pathlib.Path(os.path.relpath(path, folder or ".")).parts):
        words = re.split("[^a-z]+", part.lower())
        for split, spelled in SPLITS.items():
            if set(words) & set(spelled):
                return split
    return "train"


def split_files(source: str) -> dict[str, list[str]]:
    """{split: its files} of a folder or pattern in which there are files to train on and others;
    else all files of a source as "train"."""
    files, found = files_of(source), {}
    folder = parted(source)[0] if is_pattern(source) else source
    for path in files:
        found.setdefault(split_of(path, folder) if len(files) > 1 else "train", []).append(path)
    if "train" in found or len(found) > 1:
        return found
    return dict(train=files)


def read_files(files: list[str], notes: list[str]) -> tuple["list | reading.Rows", bool]:
    """(rows of files, whether they are one text, in its order). Of several .txt files each is a
    document, and so a row."""
    if len(files) == 1:
        (path,) = files
        text = kind_of(path) == ".txt" and reading.END_OF_DOCUMENT not in reading.read_text(path)
        return reading.read_file(path, notes), text
    parts = []
    for path in files:
        if kind_of(path) == ".txt":
            parts.append(reading.documents(reading.read_text(path)))
        else:
            parts.append(reading.read_file(path, notes))
    return reading.joined(parts), False


def splits_of(source: str) -> dict[str, Any]:
    """{split: its files, or of the hub its rows}"""
    return split_files(source) if is_local(source) else hub.splits_of(source)


def rows_of(source: str, split: str, notes: list[str]) -> "list | reading.Rows":
    """The rows of a split of a source, all rows where it has one split alone; `notes` are told
    what is left out. ValueError where there is no such split."""
    splits = splits_of(source)
    if split not in splits and (len(splits) > 1 or not is_local(source)):
        raise ValueError(f"data {source} has no split {split}; it has {', '.join(splits)}")
    if not is_local(source):
        return splits[split]
    rows, _ = read_files(splits.get(split) or splits["train"], notes)
    notes += left_out(source)
    return rows


# ---------- sources ----------


def split_text(
    source: str,
    rows: list[dict],
    config: configs.TrainConfig,
    facts: dict,
    change: Callable | None = None,
) -> tuple[list[dict], list[dict]]:
    """(rows to train on, rows held out) of one text: its end is held out. Paragraphs that stand
    beside one another are not parted, each knows much of the next."""
    rows = forms.usable_rows(source, rows, facts, config.max_rows, change)
    if config.val_data:
        return rows, []
    if len(rows) < 2:
        few = f"data {source} has {console.plural(len(rows), 'row')}"
        raise ValueError(f"{few}; it needs at least 2, one to hold out")
    n = forms.n_held_out(len(rows), config)
    facts["notes"].append(
        f"{source} is one text: its end is held out, {n:,} of {len(rows):,} parts"
    )
    return rows[:-n], rows[-n:]


def read_source(
    source: str,
    config: configs.TrainConfig,
    facts: dict | None = None,
    change: Callable | None = None,
) -> tuple[list[dict], list[dict]]:
    """(rows to train on, rows held out) of 'embedded', of files, or of a data set of the hub: its
    own validation split where it has one, else a part. Its test split is left alone. `facts` and
    `change` as in usable_rows()."""
    facts = {} if facts is None else facts
    notes = facts.setdefault("notes", [])
    if source == "embedded":
        steps, questions = config.problem_steps, config.ring_questions
        train = md.embedded_rows(config.max_rows or 20_000, False, steps, questions=questions)
        return train, [] if config.val_data else md.embedded_rows(600, True, steps)
    splits, local = splits_of(source), is_local(source)
    if "train" not in splits:
        raise ValueError(f"data {source} has no split train; it has {', '.join(splits)}")
    own = (
        None
        if config.val_data
        else next((name for name in SPLITS["validation"] if name in splits), None)
    )
    rows, one_text = splits["train"], False
    if local:
        rows, one_text = read_files(rows, notes)
        check_names(source, rows)
        notes += left_out(source)
        if others := [name for name in splits if name not in ("train", own)]:
            n = console.plural(sum(len(splits[name]) for name in others), "file")
            notes.append(f"{source}: {n} of its {' and '.join(others)} split not read")
    if own is None and one_text:
        return split_text(source, rows, config, facts, change)
    if own is None:
        return forms.split_rows(source, rows, config, facts, change)
    kept = read_files(splits[own], notes)[0] if local else splits[own]
    train = forms.usable_rows(source, rows, facts, config.max_rows, change)
    held_out = forms.usable_rows(f"{source}, validation", kept, facts, config.max_rows, change)
    order = torch.randperm(len(train), generator=md.generator(0)).tolist()
    notes.append(f"{source} has a validation split of its own, which is held out")
    return [train[i] for i in order], held_out


def read_sources(
    config: configs.TrainConfig, facts: dict, change: Callable | None = None
) -> list[tuple[str, list[dict], list[dict]]]:
    """[(source, rows to train on, rows held out)] of a TrainConfig, its val_data the last."""
    if config.val_data and not is_local(config.val_data):
        raise ValueError(f"val_data {config.val_data} is not there; give the path of a file")
    found = [(source, *read_source(source, config, facts, change)) for source in config.data]
    if config.val_data:
        rows = rows_of(config.val_data, "validation", facts.setdefault("notes", []))
        check_names(config.val_data, rows)
        held_out = forms.usable_rows(config.val_data, rows, facts, change=change)
        found.append((config.val_data, [], held_out))
    return found
