"""Who imports whom, read from the syntax trees: imports within functions count as well; and that
what a reader imports says of what type its arguments and results are."""

import ast
import functools
import graphlib
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
LAB = ROOT / "minidepth_lab"


def module_names(folder):
    """{file: its module's name} of all files of a package."""
    names = {}
    for path in folder.rglob("*.py"):
        name = ".".join(path.relative_to(folder.parent).with_suffix("").parts)
        names[path] = name.removesuffix(".__init__")
    return names


@functools.cache
def imports(path):
    """[(module, name)] of all that a file imports, anywhere in it: `from a import b` is (a, b),
    `import a` is (a, None)."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [(alias.name, None) for alias in node.names]
        if isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path} imports by dots, which this file does not follow"
            found += [(node.module, alias.name) for alias in node.names]
    return found


def graph(folder):
    """{module of a package: the modules of it that it imports}. `from a import b` imports a.b if
    that is a module, else a, which defines b."""
    names = module_names(folder)
    known = set(names.values())
    edges = {}
    for path, name in names.items():
        meant = set()
        for module, own in imports(path):
            inner = f"{module}.{own}"
            meant.add(inner if inner in known else module)
        edges[name] = meant & known
    return edges


def test_the_laboratory_has_no_import_cycle():
    edges = graph(LAB)
    assert len(edges) > 30 and sum(map(len, edges.values())) > 60
    try:
        list(graphlib.TopologicalSorter(edges).static_order())
    except graphlib.CycleError as error:
        pytest.fail(f"imports in a circle: {' → '.join(error.args[1])}")


# ---------- one way: tutorials → laboratory and site → minidepth ----------


SITE = {path.stem for folder in (DOCS, DOCS / "site") for path in folder.glob("*.py")}
OURS = SITE | {"minidepth", "minidepth_lab", "train"}


def ours(path):
    """The first part of each name of this project that a file imports."""
    return {module.partition(".")[0] for module, _ in imports(path)} & OURS


def test_the_laboratory_imports_minidepth_alone_and_no_page_the_command():
    assert ours(ROOT / "minidepth.py") == set()
    for path in module_names(LAB):
        assert not ours(path) & ({"train"} | SITE), path
    for path in [*DOCS.glob("tutorials/*.py"), *DOCS.glob("*.py"), *DOCS.glob("site/*.py")]:
        assert "train" not in ours(path), path


def test_every_task_and_study_is_found_from_its_file():
    from minidepth_lab.keep import registry
    from minidepth_lab.tasks import TASKS

    files = {path.stem for path in (LAB / "tasks").glob("*.py")} - {"__init__"}
    assert set(TASKS) == files and all(TASKS[name].name == name for name in files)
    studies = {path.stem for path in (LAB / "studies").glob("*.py")} - {"__init__"}
    assert set(registry.study_names()) == studies and "depth" in studies
    for preset in registry.offering("preset"):
        owner = preset.partition("-")[0]
        assert owner in studies or owner == "tasks", preset


TYPED = """tasks/__init__ measure/results measure/judge measure/inspect measure/score show/figures
show/report keep/export measure/walk_by_hand rows/files show/runs keep/registry show/attention"""


@pytest.mark.parametrize("path", [ROOT / "minidepth.py", *(LAB / f"{n}.py" for n in TYPED.split())])
def test_public_functions_and_methods_say_of_what_type_all_is(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    scopes = [tree, *(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name[0] != "_")]
    for scope in scopes:
        for node in scope.body:
            name = getattr(node, "name", "_")
            if not isinstance(node, ast.FunctionDef) or name.startswith("_") and name != "__init__":
                continue
            a = node.args
            given = [*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, (a.vararg, a.kwarg))]
            without = {each.arg for each in given if each.annotation is None} - {"self", "cls"}
            assert node.returns is not None and not without, (name, without)
