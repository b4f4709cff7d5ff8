"""The table of statements: a verdict rests on runs that are stored, and its link leads to the page
that tells of them."""

import csv
import re

import pytest

from minidepth_lab.measure import results

REFERENCE = results.RESULTS.parent / "reference"
with open(results.RESULTS / "published" / "statements.csv", encoding="utf-8") as f:
    ROWS = list(csv.DictReader(f))
RUN, NOT_RUN = ("published", "small"), ("its log", "counted", "none")


def pages_of(row):
    """The sources of the pages that a row links to."""
    found = {}
    for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", f"{row['where']} {row['verdict']}"):
        path = (REFERENCE / link).resolve()
        path = path if path.exists() else path.with_suffix(".py")  # a page that is run
        found[path.stem] = path.read_text("utf-8")
    return found


def complaints(row):
    """What is wrong with a row."""
    n, names = int(row["n"]), row["experiments"].split()
    if row["size"] not in RUN + NOT_RUN or row["published"] not in ("yes", "in part", "no"):
        yield f"size {row['size']!r}, published {row['published']!r}"
    if row["size"] in RUN and not (n and names):
        yield "a verdict without runs"
    if row["size"] == "its log" and (n != 1 or names):
        yield "a published log is one run, and none of ours"
    if row["size"] in ("counted", "none") and (n or names):
        yield "runs that nothing is said of"
    pages = pages_of(row)
    for name in names:
        folder = results.RESULTS / name
        if not folder.is_dir():
            yield f"no experiment {name}"
        elif (folder / "runs.jsonl").exists():
            stored = {run["seed"] for run in results.runs(name)}
            if len(stored) < n and len(names) == 1:
                yield f"n is {n}, and {name} has {len(stored)} seeds"
        read = (f'"{name}"', f"{name}.stored(", f"{name.replace('-', '_')}.stored(")
        if "results" not in pages and not any(
            word in text for text in pages.values() for word in read
        ):
            yield f"none of {', '.join(pages) or 'no page'} reads {name}"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['document']}: {row['statement'][:40]}")
def test_a_verdict_rests_on_runs_of_which_its_page_tells(row):
    assert list(complaints(row)) == []


def test_a_verdict_without_runs_and_a_page_that_tells_of_others_are_found():
    row = dict(next(row for row in ROWS if row["experiments"] == "report"), n="0")
    assert list(complaints(row)) == ["a verdict without runs"]
    moved = row | dict(n="3", where="[logs](../tutorials/2_logs.md)", verdict="yes")
    assert list(complaints(moved)) == ["none of 2_logs reads report"]
    assert list(complaints(moved | dict(n="99")))[0] == "n is 99, and report has 3 seeds"
    assert "no experiment nowhere" in list(complaints(row | dict(n="1", experiments="nowhere")))
