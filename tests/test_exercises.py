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


def said_of(condition, capsys, **names):
    """What a check of this line prints. As text, so that pytest does not rewrite its assert."""
    exec(f"def conditions():\n    {condition}", names)
    conditions = names["conditions"]
    assert exercises.check(conditions) is conditions  # so that it can be run again, by its name
    return capsys.readouterr().out


def test_a_check_prints_what_its_asserts_say_and_raises_nothing(capsys):
    words = "assert letter == 'e', f'{letter} is one hop before it'"
    assert said_of(words, capsys, letter="d") == "Not yet: d is one hop before it\n"
    assert said_of("assert letter == 'e'", capsys, letter="d") == "Not yet: this is not right\n"
    assert said_of(words, capsys, letter="e") == "Right.\n"


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
    path.write_text(PAGE.format(stub=4, answer=4))
    with pytest.raises(RuntimeError, match="(?s)'Not yet:' expected.*It said: Right."):
        execute.run_notebook(path)
    path.write_text(PAGE.format(stub="...", answer=5))
    with pytest.raises(RuntimeError, match="(?s)'Right.' expected.*It said: Not yet: 5 is not"):
        execute.run_notebook(path)


# ---------- those of the lessons ----------


def groups(path):
    """[[the cells of an exercise that is checked, from its stub to its check]] of a page."""
    cells = pages.notebook(path).cells
    found = []
    for number, each in enumerate(cells):
        if pages.has_tag(each, "exercise"):
            last = cells.index(execute.check_of(cells, number))
            found.append(cells[number : last + 1])
    return found


def role(each):
    """hint, answer, exercise or check; None of any other cell."""
    tags = set(each.metadata.get("tags", ())) & {"exercise", "hint", "answer", "check"}
    assert len(tags) < 2, tags
    return next(iter(tags), None)


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
    nodes = ast.walk(ast.parse(source))
    return {
        node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_the_cells_of_an_exercise_come_in_order(path):
    cells = pages.notebook(path).cells
    for group in groups(path):
        before = cells[cells.index(group[0]) - 1]
        question = (
            [before] if before.cell_type == "markdown" else [before, cells[cells.index(before) - 1]]
        )
        assert any(each.cell_type == "markdown" and role(each) is None for each in question)
        roles = [role(each) for each in group]
        hints, answers = roles.count("hint"), roles.count("answer")
        assert hints and answers
        assert roles == ["exercise", *["hint"] * hints, *["answer"] * answers, "check"]
    checks = sum(role(each) == "check" for each in cells)
    assert checks == len(groups(path))  # each of them belongs to an exercise


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_stub_is_unsolved_and_each_condition_has_words(path):
    for stub, *_, check in groups(path):
        nodes = list(ast.walk(ast.parse(stub.source)))
        assert any(isinstance(node, ast.Constant) and node.value is ... for node in nodes)
        assert check.source.startswith("@exercises.check\ndef ")
        asserts = [
            node for node in ast.walk(ast.parse(check.source)) if isinstance(node, ast.Assert)
        ]
        assert asserts and all(each.msg for each in asserts), check.source


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_notebook_without_answers_needs_none(path):
    """What only an answer binds, no cell of the downloaded notebook but its check reads."""
    made = nbformat.reads(downloads.notebook(path), 4).cells
    kept = [each for each in made if each.cell_type == "code"]
    there = set().union(*(bound(each.source) for each in kept))
    answers = [each for each in pages.notebook(path).cells if role(each) == "answer"]
    answers = [each.source for each in answers if each.cell_type == "code"]
    only_there = set().union(set(), *map(bound, answers)) - there
    for each in kept:
        assert not used(each.source) & only_there, each.source


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_what_a_stub_is_to_give_is_not_used_elsewhere(path):
    """The rest of the notebook runs whether or not the exercise is solved."""
    cells = pages.notebook(path).cells
    for stub, *_, check in groups(path):
        for later in cells[cells.index(check) + 1 :]:
            if later.cell_type == "code" and role(later) != "answer":
                read = used(later.source) - bound(later.source)
                assert not read & bound(stub.source), later.source
