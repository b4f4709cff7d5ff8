"""Exercises that say whether the learner is right: what a check prints, that the build proves each
of them, and that those of the lessons are put together as they have to be."""

import ast
import re
import symtable

import nbformat
import pytest

from minidepth_site import exercises

pytest.importorskip("mkdocs_jupyter", reason="mkdocs-jupyter is not installed")
import downloads  # noqa: E402  they need what the line above looks for
import execute  # noqa: E402
import pages  # noqa: E402

PAGES = sorted(pages.DOCS.glob("tutorials/*.py"))

# ---------- what a check prints ----------


def test_a_check_prints_what_its_asserts_say_and_raises_nothing(capsys):
    holds = "assert letter == 'e'"
    for letter, condition, said in (
        ("e", holds, "Right.\n"),
        ("d", f"{holds}, f'{{letter}} is one hop before it'", "Not yet: d is one hop before it\n"),
        ("d", holds, "Not yet: this is not right\n"),
        ("d", "letter / 2", "Not yet: your answer gives TypeError: "),
        (..., holds, "Not yet: fill in letter\n"),
    ):
        names = dict(letter=letter)  # as text, so that pytest does not rewrite its assert
        exec(f"def conditions():\n    {condition}", names)
        conditions = names["conditions"]
        assert exercises.check(conditions) is conditions  # so that it can be run again, by its name
        assert capsys.readouterr().out.startswith(said)


# ---------- the build proves each exercise ----------

PAGE = """# %% [markdown]
# # A
# 1. What is two and two?

# %%
from minidepth_site import exercises

# %% tags=["exercise"]
four = {stub}

# %% tags=["answer"]
four = {answer}

# %% tags=["{check}"]
@exercises.check
def two_and_two():
    assert four == 4, f"{{four}} is not four"

# %% tags=["exercise"]
five = ...

# %% tags=["answer"]
five = 5

# %% tags=["check"]
@exercises.check
def two_and_three():
    assert five == 5
"""


def test_a_page_runs_with_its_exercises_and_not_with_one_that_proves_nothing(tmp_path, monkeypatch):
    path = tmp_path / "page.py"
    monkeypatch.setenv("PYTHONPATH", str(pages.SITE))
    monkeypatch.setenv("READS", str(tmp_path / "reads"))
    path.write_text(PAGE.format(stub="...", answer=4, check="check"))
    shown = [[each.text for each in outputs] for outputs in execute.run_notebook(path)]
    assert shown == [[], [], [], ["Right.\n"], [], [], ["Right.\n"]]
    for stub, answer, check, why in (
        (4, 4, "check", "'Not yet:' expected.*It said: Right."),
        ("...", 5, "check", "'Right.' expected.*It said: Not yet: 5 is not"),
        ("...", 4, "hint", "this exercise has no check:\nfour = ..."),
    ):
        path.write_text(PAGE.format(stub=stub, answer=answer, check=check))
        with pytest.raises(RuntimeError, match=f"(?s){why}"):
            execute.run_notebook(path)


# ---------- those of the lessons ----------


def role(each):
    """hint, answer, exercise or check; None of any other cell."""
    tags = set(each.metadata.get("tags", ())) & {"exercise", "hint", "answer", "check"}
    assert len(tags) < 2, tags
    return next(iter(tags), None)


def names(source, *kinds):
    """{the names in a cell, and in what it defines, of which Python says one of these}"""
    found, tables = set(), [symtable.symtable(source, "a cell", "exec")]
    while tables:
        table = tables.pop()
        tables += table.get_children()
        for symbol in table.get_symbols():
            if any(getattr(symbol, kind)() for kind in kinds):
                found.add(symbol.get_name())
    return found


def bound(source):
    """{names that a cell gives a value or a meaning}"""
    return names(source, "is_assigned", "is_imported", "is_parameter")


def used(source):
    """{names that a cell reads}"""
    return names(source, "is_referenced")


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_the_exercises_of_a_page_are_put_together_as_they_have_to_be(path):
    """Stub, hints, answers, check; a stub is unsolved, a condition has words, and the rest of the
    page runs whether or not the exercise is solved."""
    cells = pages.notebook(path).cells
    stubs = [number for number, each in enumerate(cells) if role(each) == "exercise"]
    assert sum(role(each) == "check" for each in cells) == len(stubs)
    for number in stubs:
        check = execute.check_of(cells, number)
        end = cells.index(check)
        roles = [role(each) for each in cells[number + 1 : end]]
        assert set(roles) == {"hint", "answer"} and roles == sorted(roles, reverse=True)
        assert re.search(r"(?m)(^ *|= )\.\.\.", cells[number].source)  # which is unsolved
        assert check.source.startswith("@exercises.check\ndef ")
        nodes = ast.walk(ast.parse(check.source))
        asserts = [node for node in nodes if isinstance(node, ast.Assert)]
        assert asserts and all(each.msg for each in asserts), check.source
        for later in cells[end + 1 :]:
            if later.cell_type == "code" and role(later) != "answer":
                read = used(later.source) - bound(later.source)
                assert not read & bound(cells[number].source), later.source


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_notebook_without_answers_needs_none(path):
    """What only an answer binds, no cell of the downloaded notebook reads."""
    made = nbformat.reads(downloads.notebook(path), 4).cells
    kept = [each.source for each in made if each.cell_type == "code"]
    cells = [each for each in pages.notebook(path).cells if each.cell_type == "code"]
    answers = [bound(each.source) for each in cells if role(each) == "answer"]
    only_there = set().union(*answers) - set().union(*map(bound, kept))
    for source in kept:
        assert not used(source) & only_there, source
