"""Rows for a verdict in three files: to train on, to tune on, and to report.

The learning rate is chosen on rows that are not reported. So a file of one's own, or what a
generator of the package reasoning-gym (`rg:NAME`) makes, is split by a checksum of the question:

    rows = made("my.jsonl", (), folder)      {"train": path, "tune": path, "test": path}
    rows = made("rg:chain_sum", ("max_terms=3",), folder)

The split is a function of the questions, so it is the same for every seed and every machine.
"""

import contextlib
import json
import os
import random
import time
import zlib
from typing import Any

from minidepth_lab.base import console
from minidepth_lab.keep import checkpoints
from minidepth_lab.rows import forms, reading
from minidepth_lab.tasks.base.sizes import by_name

GYM = "rg:"
N_TRAIN, N_TEST = 12_000, 600  # rows that are made; as many to tune on as to test
LEAST = 3000  # of these, where a generator is slow
SECONDS = 60.0  # that it may take
LONGEST = 40  # characters of an answer that is checked; see the how-to on one's own data
ORIGIN = "origin.json"  # beside the parts: what they were made of
SHARE = 0.1  # of a file's questions to test on, and as many to tune on


def is_rows(source: str) -> bool:
    """Whether a source is split here: a generator, or one file of rows, but for a text."""
    kind = None if os.path.isdir(source) else reading.kind_of(source)
    return source.startswith(GYM) or kind not in (None, ".txt")


def made(source: str, sizes: tuple, folder: str) -> dict[str, str]:
    """{train, tune, test: a .jsonl file in the folder}, written unless they are there and made of
    this source."""
    paths = {part: os.path.join(folder, f"{part}.jsonl") for part in ("train", "tune", "test")}
    now = origin(source, sizes)
    if origin_of(folder) == now:
        return paths
    parts = of_gym(source, sizes) if source.startswith(GYM) else of_file(source)
    os.makedirs(folder, exist_ok=True)
    for part, rows in parts.items():
        text = "".join(json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in rows)
        checkpoints.write(paths[part], lambda file, text=text: file.write(text.encode()))
    checkpoints.write_json(os.path.join(folder, ORIGIN), now)  # last: then all parts are there
    return paths


def origin(source: str, sizes: tuple) -> dict:
    """What parts are made of; of a file its bytes, not its place. ValueError if it is not there."""
    if source.startswith(GYM):
        return dict(source=source, sizes=list(sizes))
    if not os.path.isfile(source):
        raise ValueError(f"{source} is not there; give a file of rows")
    with open(source, "rb") as file:
        return dict(crc32=zlib.crc32(file.read()))


def origin_of(folder: str) -> dict | None:
    """What the parts in a folder were made of; None where nothing says it."""
    path = os.path.join(folder, ORIGIN)
    if not os.path.exists(path):
        return None
    with console.one_line_errors(path, "does not say what rows were made of"):
        with open(path, encoding="utf-8") as file:
            return json.load(file)


def have_changed(source: str, sizes: tuple, folder: str) -> bool:
    """Whether the parts in a folder are of another source than it is now, as far as that is known:
    a file may be gone."""
    before = origin_of(folder)
    there = source.startswith(GYM) or os.path.isfile(source)
    return before is not None and there and before != origin(source, sizes)


# ---------- a file of one's own ----------


def question_of(row: Any) -> str:
    """What a row asks, as a text that tells it from others; the whole row if it is of no form."""
    try:
        return str(forms.row_key(forms.read_row(row)))
    except ValueError:
        return json.dumps(row, sort_keys=True, default=str)


def of_file(path: str) -> dict[str, list]:
    """The rows of a file in three parts; ValueError for one that cannot be read."""
    parts, notes = dict(train=[], tune=[], test=[]), []
    for row in reading.read_file(path, notes):
        at = zlib.crc32(question_of(row).encode(errors="replace")) / 2**32
        part = "test" if at < SHARE else "tune" if at < 2 * SHARE else "train"
        parts[part].append(row)
    for note in notes:  # the runs read the parts, and do not see what was left out before
        console.complain(f"note: {note}")
    for part, rows in parts.items():
        if not rows:
            raise ValueError(f"{path} has too few rows: none is left for the {part} part")
    return parts


# ---------- reasoning-gym ----------


def gym() -> Any:
    """The package reasoning_gym; ValueError where it is not installed."""
    try:
        import reasoning_gym
    except ImportError:
        raise ValueError("rg: needs the package reasoning-gym; pip install reasoning-gym") from None
    return reasoning_gym


def value_of(text: str) -> Any:
    """A size as it is typed: '3' → 3, '0.5' → 0.5, 'a+b' → ['a', 'b'], 'true' → True"""
    if "+" in text:
        return [value_of(part) for part in text.split("+")]
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def of_gym(source: str, sizes: tuple) -> dict[str, list]:
    """Rows of a generator in three parts, each question once. ValueError for a name or a size that
    is unknown, and for one whose answers are no line of at most LONGEST characters."""
    package, name = gym(), source.removeprefix(GYM)
    from reasoning_gym.factory import DATASETS

    if name not in DATASETS:
        import difflib

        close = difflib.get_close_matches(name, DATASETS, 1)
        meant = f"; is {close[0]} meant?" if close else ""
        raise ValueError(f"reasoning-gym has no generator {name!r:.40}{meant}")
    options = {key: value_of(text) for key, text in by_name(sizes).items()}
    wanted = N_TRAIN + 2 * N_TEST
    with console.one_line_errors(source, "makes no rows"):
        drawn = package.create_dataset(name, size=2 * wanted, seed=0, **options)
    found, n_drawn, began, failed = {}, 0, time.monotonic(), ""
    for i in range(2 * wanted):
        n_drawn += 1
        try:
            item = drawn[i]
        except Exception as error:  # some generators give up on some of their items
            failed = f", the last error: {console.one_line(error, 100)}"
            item = dict(answer=None)
        answer = item["answer"]
        if isinstance(answer, str) and "\n" not in answer and 0 < len(answer) <= LONGEST:
            found.setdefault(item["question"], item)
        slow = time.monotonic() - began > SECONDS
        if len(found) == wanted or (slow and (len(found) >= LEAST or not found)):
            break
        if n_drawn == 1000 and len(found) < 10:
            break
    if len(found) < LEAST:
        few = f"{source} makes too few rows: {len(found):,} of {n_drawn:,} ask something new, with"
        raise ValueError(f"{few} an answer of one line, at most {LONGEST} characters{failed}")
    questions = list(found)
    random.Random(0).shuffle(questions)
    begins = os.path.commonprefix(questions)
    begins = begins[: begins.rfind(" ") + 1]  # what all of them say first, or last, tells nothing
    ends = os.path.commonprefix([question[len(begins) :][::-1] for question in questions])[::-1]
    ends = ends[ends.find(" ") :] if " " in ends else ""
    rows = []
    for question in questions:
        turns = [
            dict(role="user", content=question[len(begins) : len(question) - len(ends)]),
            dict(role="assistant", content=f"#### {found[question]['answer']}"),
        ]
        rows.append(dict(messages=turns))
    n = min(N_TEST, len(rows) // 6)
    for row, question in zip(rows[: 2 * n], questions):  # those that are asked
        with contextlib.suppress(TypeError):  # else they are compared word for word
            row["gym"] = json.loads(json.dumps(found[question]))
    if n < 1:
        raise ValueError(f"{source} has too few different questions: {len(rows)}")
    return dict(test=rows[:n], tune=rows[n : 2 * n], train=rows[2 * n :])


def settings_of(paths: dict[str, str]) -> dict:
    """The settings that rows of a generator are trained with, if no others are typed: a word for
    each character, and blocks as long as the longest row."""
    longest, letters = 0, set()
    for path in paths.values():
        for row in reading.read_jsonl(path):
            text = "".join(turn["content"] for turn in row["messages"])
            longest = max(longest, len(text))
            letters.update(text)
    return dict(
        tokenizer="characters",
        block_size=longest + 24,  # the turns' marks, one by one
        tokenizer_size=max(300, len(letters) + 16),
    )
