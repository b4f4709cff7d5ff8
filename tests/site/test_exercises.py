"""Exercises that say whether the learner is right: what a check prints, that the build proves each
of them, and that those of the lessons are put together as they have to be."""

import ast

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
    words = ", f'{letter} is one hop before it'"
    for letter, more, said in (
        ("d", words, "Not yet: d is one hop before it\n"),
        ("d", "", "Not yet: this is not right\n"),
        ("e", words, "Right.\n"),
    ):
        names = dict(letter=letter)  # as text, so that pytest does not rewrite its assert
        exec(f"def conditions():\n    assert letter == 'e'{more}", names)
        conditions = names["conditions"]
        assert exercises.check(conditions) is conditions  # so that it can be run again, by its name
        assert capsys.readouterr().out == said


# ---------- the build proves each exercise ----------


def cell(source, *tags):
    return nbformat.v4.new_code_cell(source, metadata=dict(tags=list(tags)))


def test_the_check_of_a_stub_stands_after_it_and_is_a_copy():
    cells = [
        cell("x = ...", "exercise"), cell("x = 1", "answer"), cell("check x", "check"),
        cell("y = ...", "exercise"), cell("check y", "check"), cell("print(x)"),
    ]  # fmt: skip
    together = execute.with_stubs_checked(cells)
    sources = [each.source for each in together]
    assert sources == [
        "x = ...", "check x", "x = 1", "check x", "y = ...", "check y", "check y", "print(x)",
    ]  # fmt: skip
    assert [each for each in together if each in cells] == cells
    assert together[1].metadata["tags"] == together[5].metadata["tags"] == ["check of the stub"]


PAGE = """# %% [markdown]
# # A
# 1. What is two and two?

# %%
from minidepth_site import exercises

# %% tags=["exercise"]
four = {stub}

# %% tags=["answer"]
four = {answer}

# %% tags=["check"]
@exercises.check
def two_and_two():
    assert four == 4, f"{{four}} is not four"
"""


def test_a_page_runs_with_its_exercise_and_not_with_one_that_proves_nothing(tmp_path, monkeypatch):
    path = tmp_path / "page.py"
    monkeypatch.setenv("PYTHONPATH", str(pages.SITE))
    monkeypatch.setenv("READS", str(tmp_path / "reads"))
    path.write_text(PAGE.format(stub="...", answer=4))
    outputs = execute.run_notebook(path)
    assert [[each.text for each in shown] for shown in outputs] == [[], [], [], ["Right.\n"]]
    for stub, answer, why in (
        (4, 4, "'Not yet:' expected.*It said: Right."),
        ("...", 5, "'Right.' expected.*It said: Not yet: 5 is not"),
    ):
        path.write_text(PAGE.format(stub=stub, answer=answer))
        with pytest.raises(RuntimeError, match=f"(?s){why}"):
            execute.run_notebook(path)


# ---------- those of the lessons ----------


def role(each):
    """hint, answer, exercise or check; None of any other cell."""
    tags = set(each.metadata.get("tags", ())) & {"exercise", "hint", "answer", "check"}
    assert len(tags) < 2, tags
    return next(iter(tags), None)


def groups(cells):
    """[[the cells of an exercise that is checked, from its stub to its check]] of a page."""
    stubs = [number for number, each in enumerate(cells) if role(each) == "exercise"]
    return [cells[at : 1 + cells.index(execute.check_of(cells, at))] for at in stubs]


def bound(source):
    """{names that a cell gives a value or a meaning}"""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.arg):
            names.add(node.arg)
        if isinstance(node, ast.alias):
            names.add((node.asname or node.name).partition(".")[0])
    return names


def used(source):
    """{names that a cell reads}"""
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)]
    return {node.id for node in nodes if isinstance(node.ctx, ast.Load)}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_the_exercises_of_a_page_are_put_together_as_they_have_to_be(path):
    """Stub, hints, answers, check; a stub is unsolved, a condition has words, and the rest of the
    page runs whether or not the exercise is solved."""
    cells = pages.notebook(path).cells
    found = groups(cells)
    assert sum(role(each) == "check" for each in cells) == len(found)
    for stub, *between, check in found:
        roles = [role(each) for each in between]
        assert set(roles) == {"hint", "answer"} and roles == sorted(roles, reverse=True)
        nodes = ast.walk(ast.parse(stub.source))
        assert any(isinstance(node, ast.Constant) and node.value is ... for node in nodes)
        assert check.source.startswith("@exercises.check\ndef ")
        nodes = ast.walk(ast.parse(check.source))
        asserts = [node for node in nodes if isinstance(node, ast.Assert)]
        assert asserts and all(each.msg for each in asserts), check.source
        for later in cells[cells.index(check) + 1 :]:
            if later.cell_type == "code" and role(later) != "answer":
                read = used(later.source) - bound(later.source)
                assert not read & bound(stub.source), later.source


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
