"""Who imports whom, read from the syntax trees: imports within functions count as well."""

import ast
import graphlib
import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
LAB = ROOT / "minidepth_lab"


def module_names(folder):
    """{file: its module's name} of all files of a package."""
    names = {}
    for path in folder.rglob("*.py"):
        name = ".".join(path.relative_to(folder.parent).with_suffix("").parts)
        names[path] = name.removesuffix(".__init__")
    return names


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


def check_no_cycle(folder):
    """AssertionError for a package whose modules import one another in a circle."""
    try:
        list(graphlib.TopologicalSorter(graph(folder)).static_order())
    except graphlib.CycleError as error:
        pytest.fail(f"imports in a circle: {' → '.join(error.args[1])}")


def test_the_laboratory_has_no_import_cycle():
    edges = graph(LAB)
    assert len(edges) > 30 and sum(map(len, edges.values())) > 60
    check_no_cycle(LAB)


# who stands above may ask who stands below
FLOORS = [
    "base",
    "models",
    "tasks",
    "rows",
    "keep",
    "measure",
    "show",
    "studies",
    "sweep",
    "command",
]


def test_no_room_of_the_laboratory_imports_a_room_above_it():
    rooms = {path.parent.name for path in LAB.glob("*/__init__.py")}
    assert rooms == set(FLOORS)
    for module, asked in graph(LAB).items():
        room = module.split(".")[1:2]
        for other in asked if room else ():
            above = FLOORS.index(other.split(".")[1]) if "." in other else 0
            assert above <= FLOORS.index(room[0]), f"{module} imports {other}"


@pytest.mark.parametrize("back", ["from lab import a", "import lab.a", "from lab.a import x"])
@pytest.mark.parametrize("inside", [False, True], ids=["at the top", "in a function"])
def test_a_cycle_is_found(tmp_path, back, inside):
    """Through a subpackage, and where an import stands in a function."""
    (tmp_path / "lab" / "part").mkdir(parents=True)
    files = {
        "__init__": "",
        "a": "from lab.part import b\nx = 1\n",
        "part/__init__": "",
        "part/b": "from lab import c\n",
        "c": "y = 2\n",
    }
    for name, code in files.items():
        (tmp_path / "lab" / f"{name}.py").write_text(code)
    check_no_cycle(tmp_path / "lab")
    code = f"def f():\n    {back}\n" if inside else f"{back}\n"
    (tmp_path / "lab" / "c.py").write_text(code)
    with pytest.raises(pytest.fail.Exception, match="imports in a circle: .*lab.c"):
        check_no_cycle(tmp_path / "lab")


def test_a_package_that_is_asked_for_something_of_its_own_is_imported(tmp_path):
    """`from lab.part import B` asks the package's own file; `from lab.part import b` does not."""
    (tmp_path / "lab" / "part").mkdir(parents=True)
    (tmp_path / "lab" / "__init__.py").write_text("")
    (tmp_path / "lab" / "part" / "__init__.py").write_text("class B:\n    pass\n")
    (tmp_path / "lab" / "part" / "b.py").write_text("from lab.part import B\n")
    (tmp_path / "lab" / "a.py").write_text("from lab.part import b\n")
    (tmp_path / "lab" / "c.py").write_text("from lab.part import B, b\n")
    edges = graph(tmp_path / "lab")
    assert edges["lab.part.b"] == {"lab.part"} and edges["lab.a"] == {"lab.part.b"}
    assert edges["lab.c"] == {"lab.part", "lab.part.b"}


# ---------- one way: tutorials → laboratory and site → minidepth ----------


def ours(path):
    """The first part of each name of this project that a file imports."""
    top = {each.stem for folder in (ROOT, DOCS, DOCS / "site") for each in folder.glob("*.py")}
    return {module.partition(".")[0] for module, _ in imports(path)} & (top | {"minidepth_lab"})


SITE = {path.stem for folder in (DOCS, DOCS / "site") for path in folder.glob("*.py")}


def test_minidepth_imports_nothing_that_is_built_on_it():
    for path in ROOT.glob("minidepth*.py"):
        assert not ours(path) & ({"train", "minidepth_lab"} | SITE), path


def test_the_laboratory_imports_minidepth_alone():
    for path in module_names(LAB):
        assert not ours(path) & ({"train"} | SITE), path


def test_tutorials_and_the_site_do_not_import_the_command():
    for path in [*DOCS.glob("tutorials/*.py"), *DOCS.glob("*.py"), *DOCS.glob("site/*.py")]:
        assert "train" not in ours(path), path


def test_the_command_imports_the_laboratory_only_where_it_is_used():
    tree = ast.parse((ROOT / "train.py").read_text(encoding="utf-8"))
    at_the_top = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    names = {alias.name for node in at_the_top for alias in node.names}
    names |= {node.module for node in at_the_top if isinstance(node, ast.ImportFrom)}
    assert not {name for name in names if name.startswith("minidepth_lab")}
    assert "minidepth_lab" in ours(ROOT / "train.py")


def test_names_are_looked_up_in_two_places_alone():
    """A study or a task is read when it is named, which no syntax tree shows."""
    by_name = {
        name
        for path, name in module_names(LAB).items()
        if "import_module(" in path.read_text(encoding="utf-8")
    }
    assert by_name == {"minidepth_lab.keep.registry", "minidepth_lab.tasks"}


@pytest.mark.parametrize(
    ("preset", "changes", "read"),
    [
        ("tasks", dict(data="icqa"), "tasks.icqa"),
        ("tasks", dict(data="written"), "tasks.ring tasks.written"),
        ("ring-four", {}, "studies.depth studies.ring tasks.ring"),
        ("thinking", {}, "studies.thinking"),
    ],
)
def test_only_the_files_of_a_name_are_read(preset, changes, read):
    """A task is found by its file's name, a preset by its study's: no list names them, and no
    other study or task is read on the way."""
    code = "import json, sys\nfrom minidepth_lab.keep import registry\n"
    code += f"registry.configs({preset!r}, **{changes})\n"
    code += "parts = [m for m in sys.modules if m.split('.')[1:2] in (['tasks'], ['studies'])]\n"
    code += "print(json.dumps(sorted(parts)))"
    environment = os.environ | dict(PYTHONPATH=str(ROOT))
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = [m for m in json.loads(done.stdout) if m.count(".") == 2 and not m.endswith(".base")]
    assert found == [f"minidepth_lab.{name}" for name in read.split()]


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
