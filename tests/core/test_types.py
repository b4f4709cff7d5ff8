"""What a reader imports says of what type its arguments and its results are, and ships the mark
that says so."""

import ast
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LABORATORY = ROOT / "minidepth_lab"
NAMES = """measure/results measure/judge measure/inspect measure/score show/figures show/report
keep/export measure/walk_by_hand rows/files show/runs keep/registry show/attention"""
FILES = [ROOT / "minidepth.py", LABORATORY / "tasks" / "__init__.py"]
FILES += [LABORATORY / f"{name}.py" for name in NAMES.split()]


def functions(tree, inside=""):
    """(name, definition, whether it is a method) of each public function and method, and of what
    makes an instance; not of functions in functions."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from functions(node, f"{node.name}.")
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if not node.name.startswith("_") or node.name == "__init__":
                yield f"{inside}{node.name}", node, bool(inside)


def without_types(source):
    """[what has no annotation] in a source: `f` its result, `f(x)` its argument."""
    found = []
    for name, node, is_method in functions(ast.parse(source)):
        a = node.args
        arguments = [*a.posonlyargs, *a.args][is_method and not is_static(node) :]
        arguments += [*a.kwonlyargs, *filter(None, (a.vararg, a.kwarg))]
        found += [f"{name}({each.arg})" for each in arguments if each.annotation is None]
        found += [name] * (node.returns is None)
    return found


def is_static(node):
    return any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in node.decorator_list)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_public_functions_say_of_what_type_all_is(path):
    assert not without_types(path.read_text(encoding="utf-8"))
