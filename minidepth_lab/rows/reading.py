"""Rows of .jsonl files and of the Hugging Face hub."""

import gzip
import json
import os
import re
from collections.abc import Callable
from typing import Any

import torch

import minidepth as md
from minidepth_lab.base import configs, console
from minidepth_lab.rows import forms


def read_text(path: str, flag: str = "data") -> str:
    """The text of a file in UTF-8, one that ends in .gz unpacked; ValueError, which names the
    `flag` that it was given to, for what is none."""
    if not os.path.exists(path):
        raise ValueError(f"{flag} {path} is not there; give the path of a file")
    with console.one_line_errors(f"{flag} {path}", "cannot be read"):
        opened = gzip.open if path.lower().endswith(".gz") else open
        how = dict(encoding="utf-8-sig", errors="surrogateescape")
        with opened(console.regular_file(path), "rt", **how) as f:
            text = f.read()
        if "\ufeff" in text:  # files that begin with this mark, one after the other
            text = re.sub("(?m)^\ufeff", "", re.sub("(?<=})\ufeff(?={)", "\n", text))
        if odd := re.search("[\0\udc80-\udcff]", text):  # bytes that are not UTF-8 are these
            wrong = "not text in UTF-8; save it as UTF-8"
            if odd[0] == "\0":
                wrong = "a NUL; leave it out or, of UTF-16, save it as UTF-8"
            raise ValueError(f"character {odd.start() + 1} is {wrong}")
    return text


def parse_json(text: str) -> Any:
    """The value of a JSON text; ValueError for half a character, which no tokenizer takes."""
    value = json.loads(text)
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        half = f"\\u{ord(error.object[error.start]):04x}"
        raise ValueError(f"{half} is half a character, which no tokenizer takes") from None
    return value


def read_jsonl(path: str) -> list[dict]:
    """Rows of a .jsonl file, one on each line; also of a file by that name that is one list."""
    text = read_text(path)
    if re.match(r"\s*\[\s*\{", text):
        problem = "is no JSON to read (with a row per line it is a .jsonl)"
        with console.one_line_errors(f"data {path}", problem):
            return parse_json(text)
    rows = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            with console.one_line_errors(f"data {path}, line {number}", "is no JSON to read"):
                rows.append(parse_json(line))
    return rows


HUB = "is neither a local file or folder nor to be had from the Hugging Face hub; on Kaggle turn"


def hub_splits(source: str) -> dict[str, Any]:
    """{name of a split: its rows} of a data set of the hub, HUB_ID or HUB_ID:SUBSET."""
    name, _, subset = source.partition(":")
    if not name.strip():
        raise ValueError(f"data {source!r} names no data set; give HUB_ID or HUB_ID:SUBSET")
    from datasets import load_dataset

    advice = f"{HUB} Internet on, or give --data FILE or --data embedded"
    with console.one_line_errors(f"data {source}", advice):
        return dict(load_dataset(name, subset or None))


OWN_VALIDATION = ("validation", "valid", "val", "dev")  # what a hub's data sets call that split


def read_source(
    source: str,
    config: configs.TrainConfig,
    facts: dict | None = None,
    change: Callable | None = None,
) -> tuple[list[dict], list[dict]]:
    """(rows to train on, rows held out), lists of dicts: of 'embedded', a .jsonl file, or a data
    set of the hub, whose own validation split is held out where it has one."""
    facts = {} if facts is None else facts
    if source == "embedded":
        steps, questions = config.problem_steps, config.ring_questions
        train = md.embedded_rows(config.max_rows or 20_000, False, steps, questions=questions)
        return train, [] if config.val_data else md.embedded_rows(600, True, steps)
    if source.endswith(".jsonl"):
        return forms.split_rows(source, read_jsonl(source), config, facts, change)
    if os.path.exists(source):
        raise ValueError(f"data {source} is not a .jsonl file; minidepth_lab reads others")
    splits = hub_splits(source)
    own = next((splits[name] for name in OWN_VALIDATION if name in splits), None)
    if "train" not in splits:
        raise ValueError(f"data {source} has no split train; it has {', '.join(splits)}")
    if own is None or config.val_data:
        return forms.split_rows(source, splits["train"], config, facts, change)
    train = forms.usable_rows(source, splits["train"], facts, config.max_rows, change)
    held_out = forms.usable_rows(f"{source}, validation", own, facts, config.max_rows, change)
    order = torch.randperm(len(train), generator=md.generator(0)).tolist()
    facts["notes"].append(f"{source} has a validation split of its own, which is held out")
    return [train[i] for i in order], held_out
