"""The page of all predictions: each that a file of predictions names has its row there."""

import contextlib
import io
import pathlib
import re
import runpy

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "results"
WORDS = ("holds", "**fell**", "not run", "not run yet")


def files_of_predictions():
    """{path in docs/results: text} of all files whose title says that they are predictions."""
    found = {}
    for path in RESULTS.rglob("*.md"):
        text = path.read_text(encoding="utf-8")
        if "what we expect" in text.partition("\n")[0].lower():
            found[path.relative_to(RESULTS).as_posix()] = text
    return found


def named(text):
    """The names that a file gives to what it expects or tests: at the start of a row or of a
    paragraph, or, with a colon, at the start of a cell."""
    at_the_start = re.findall(r"^(?:\| |\*\*)?([A-Z]\d+)\b", text, re.MULTILINE)
    in_a_cell = re.findall(r"\| ([A-Z]\d+): ", text)
    return {*at_the_start, *in_a_cell}


def rows_of(page):
    """{file: {name: verdict}} of the rows of the page; a named test has its p for a verdict."""
    found, file = {}, None
    for line in page.splitlines():
        if link := re.search(r"\(\.\./results/(.+?\.md)\)", line):
            file = link[1]
        if row := re.match(r"\| ([A-Z]\d+) \| .* \| (.*) \|$", line):
            found.setdefault(file, {})[row[1]] = row[2]
        if line.startswith("| ["):
            for name, p in re.findall(r"\b([CV]\d): ([\d.e-]+)", line):
                found.setdefault(file, {})[name] = p
    return found


def missing(page, files):
    """{file: names} of what has no row on the page."""
    rows = rows_of(page)
    found = {file: named(text) - rows.get(file, {}).keys() for file, text in files.items()}
    return {file: names for file, names in found.items() if names}


@pytest.fixture(scope="module")
def page():
    """What docs/reference/predictions.py prints."""
    with contextlib.redirect_stdout(io.StringIO()) as said:
        runpy.run_path(str(ROOT / "docs" / "reference" / "predictions.py"))
    return said.getvalue()


def test_no_prediction_is_forgotten_and_none_is_invented(page):
    files = files_of_predictions()
    assert len(files) >= 17 and not missing(page, files)
    assert {file: set(rows) for file, rows in rows_of(page).items()} == {
        file: named(text) for file, text in files.items()
    }


def test_a_prediction_without_a_row_is_found(page):
    files = files_of_predictions()
    shorter = re.sub(r"(?m)^\| M17 \|.*\n", "", page)
    assert missing(shorter, files) == {"reread/predictions.md": {"M17"}}
    assert missing(page.replace("C4: ", ""), files) == {"ring/predictions.md": {"C4"}}
    for form in ("| Q7 | what | expected |", "**Q7, more.** So.", "Q7: this.", "| a | Q7: b |"):
        later = files | {"ring/gate.md": files["ring/gate.md"] + f"\n{form}\n"}
        assert missing(page, later) == {"ring/gate.md": {"Q7"}}
    assert missing(page, files | {"new.md": "| Q7 | a |"}) == {"new.md": {"Q7"}}


def test_the_first_sentence_counts_the_rows(page):
    rows = [row for rows in rows_of(page).values() for row in rows.values()]
    verdicts = [row for row in rows if row in WORDS]
    held, fell, not_run, not_yet = (verdicts.count(word) for word in WORDS)
    tests = len(rows) - len(verdicts)
    assert tests == 12 and not_run == 2  # C1 to C8, V1 to V4; S2 and S4
    said = " ".join(page.split())
    assert f"Of {held + fell} predictions that have been run, {held} held and {fell} fell." in said
    assert f"all {len(verdicts)} that have a name" in said
    assert not not_yet or f"{not_yet} are of runs that are not over" in said


def test_the_results_say_the_same_of_each_prediction_on_rings(page):
    """The README of the results judges many of them one by one; a name is given once in ring/."""
    text = (RESULTS / "README.md").read_text(encoding="utf-8")
    text = " ".join(text.split("\n## ring\n")[1].split("\n## ")[0].split())
    judged = re.findall(r"\b([A-Z]\d+) (holds|fell)\b", text)
    assert len(judged) > 15
    rows = {}
    for file, its in rows_of(page).items():
        if file.startswith("ring/"):
            assert not rows.keys() & its.keys()
            rows |= its
    assert {name: rows[name].strip("*") for name, _ in judged} == dict(judged)
