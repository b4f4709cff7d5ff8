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
    """{name: the source} of the pages that a row links to."""
    found = {}
    for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", f"{row['where']} {row['verdict']}"):
        path = (REFERENCE / link).resolve()
        path = path if path.exists() else path.with_suffix(".py")  # a page that is run
        found[path.stem] = path.read_text("utf-8")
    return found


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['document']}: {row['statement'][:40]}")
def test_a_verdict_rests_on_runs_of_which_its_page_tells(row):
    n, names = int(row["n"]), row["experiments"].split()
    assert row["size"] in RUN + NOT_RUN and row["published"] in ("yes", "in part", "no")
    if row["size"] in RUN:
        assert n and names
    else:  # a published log is one run, and none of ours
        assert not names and n == (row["size"] == "its log")
    pages = pages_of(row)
    for name in names:
        if (results.RESULTS / name / "runs.jsonl").exists():
            assert len({run["seed"] for run in results.runs(name)}) >= n or len(names) > 1
        else:
            assert (results.RESULTS / name).is_dir()
        read = (f'"{name}"', f"{name}.stored(", f"{name.replace('-', '_')}.stored(")
        text = "".join(pages.values())
        assert "results" in pages or any(word in text for word in read), (name, [*pages])
