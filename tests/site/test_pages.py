"""docs/site/pages.py runs what has changed and no more; `mkdocs serve` does not wait for it."""

import importlib.util
import json
import multiprocessing
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from multiprocessing import forkserver

import pytest

pytest.importorskip("mkdocs_jupyter", reason="mkdocs-jupyter is not installed")

from conftest import ROOT  # noqa: E402


@pytest.fixture
def pages(project):
    """The module docs/site/pages.py of the project."""
    path = project / "docs" / "site" / "pages.py"
    spec = importlib.util.spec_from_file_location("pages_of_a_project", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def project(tmp_path):
    """A project of three modules, one tutorial that reads one study of two, and a program."""
    folders = ("tutorials", "minidepth_lab/tasks", "reference", "results/a", "results/b/c")
    for name in folders:
        parent = "" if name.startswith("minidepth_lab") else "docs"
        (tmp_path / parent / name).mkdir(parents=True)
    shutil.copytree(ROOT / "docs" / "site", tmp_path / "docs" / "site")
    files = {
        "mkdocs.yml": "nav: [index.md, {Deep: [tutorials/01_page.md]}, reference/list.md]\n",
        "minidepth.py": "x = 1\n",
        "train.py": "x = 1\n",
        "minidepth_lab/__init__.py": "",
        "minidepth_lab/used.py": "import minidepth as md\n"
        "def f():\n    from minidepth_lab import below\n    from .tasks import ring\n"
        "    return below.x * ring.x\nx = f()\n",
        "minidepth_lab/tasks/__init__.py": "",
        "minidepth_lab/tasks/ring.py": "from .. import aside\nx = 1\n",
        "minidepth_lab/tasks/walk.py": "x = 1\n",
        "minidepth_lab/aside.py": "x = 1\n",
        "minidepth_lab/below.py": "x = 1\n",
        "minidepth_lab/unused.py": "x = 1\n",
        "docs/results/a/log.jsonl": "{}\n",
        "docs/results/b/c/log.jsonl": "{}\n",
        "docs/tutorials/01_page.py": "# %% [markdown]\n# # A\n\n# %%\n"
        "from minidepth_lab import used\nopen('n', 'a').write('1')\nprint('it is', used.x)\n",
        "docs/reference/list.py": "import sys\nprint('# List')\nprint(sys.argv[1:])\n",
        "docs/index.py": "# %% [markdown]\n# # Home\n\n# %%\n1\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def prints(pages):
    """{page: the name of the file of its outputs}, which follows from what it depends on."""
    files = pages.output_files(pages.programs())
    return {path.stem: file.name for path, file in files.items()}


def differ(before, after):
    return {page for page in before if before[page] != after[page]}


ALL = {"01_page", "list", "index"}


@pytest.mark.parametrize("name, changed", [
    *((name, {"01_page", "list"}) for name in (
        "minidepth.py", "minidepth_lab/used.py", "minidepth_lab/below.py", "minidepth_lab/aside.py",
        "minidepth_lab/__init__.py", "minidepth_lab/tasks/__init__.py",
        "minidepth_lab/tasks/ring.py")),
    *((name, {"list"}) for name in (
        "minidepth_lab/tasks/walk.py", "docs/site/minidepth_site/widgets.py",
        "minidepth_lab/unused.py", "train.py", "docs/reference/list.py")),
    ("docs/tutorials/01_page.py", {"01_page"}),
    ("docs/results/a/log.jsonl", ALL), ("docs/results/a/new.csv", ALL),
    ("docs/site/matplotlibrc", ALL),
])  # fmt: skip
def test_a_page_runs_again_if_what_it_depends_on_has_changed(project, pages, name, changed):
    before = prints(pages)
    with open(project / name, "a", encoding="utf-8") as file:
        file.write("\nx = 2\n")
    assert differ(before, prints(pages)) == changed


def test_another_pytorch_counts_and_text_does_not(project, pages, monkeypatch):
    before = prints(pages)
    page = project / "docs" / "tutorials" / "01_page.py"
    page.write_text(page.read_text().replace("# # A", "# # A, in other words\n#\n# More."))
    assert prints(pages) == before
    monkeypatch.setattr(pages, "TORCH", "0.1")
    assert differ(before, prints(pages)) == ALL


@pytest.mark.parametrize("shows", [False, True])
def test_comments_count_where_source_is_shown(project, pages, shows):
    page = project / "docs" / "tutorials" / "01_page.py"
    page.write_text(page.read_text() + "import inspect\n" * shows)
    before = prints(pages)
    (project / "minidepth.py").write_text("# said\n\nx = (\n    1\n)\n")
    assert differ(before, prints(pages)) == ({"list", "01_page"} if shows else {"list"})


def stale(pages):
    files = pages.output_files(pages.programs())
    return {path.stem for path, file in files.items() if not file.exists()}


def test_what_has_run_is_kept_until_code_or_the_results_that_it_read_change(project, pages):
    """Of 01_page a file, of the home page a folder in a folder, of the list what there is."""
    docs = project / "docs"
    page = docs / "tutorials" / "01_page.py"
    for path, code in (
        (page, "for _ in 'ab': open('docs/results/a/log.jsonl').read()"),
        (docs / "index.py", "import pathlib\nlist(pathlib.Path('docs/results/b').rglob('*'))"),
        (docs / "reference/list.py", "import os\nos.listdir('docs/results')"),
    ):
        with open(path, "a", encoding="utf-8") as file:
            file.write(f"\n{code}\n")
    for _ in range(2):
        files = pages.run_outdated(pages.output_files(pages.programs()))
    assert (project / "n").read_text() == "1"
    shown = {path.stem: json.loads(file.read_text())["outputs"] for path, file in files.items()}
    assert shown["list"] == "# List\n[]\n" and shown["index"] == [[]]
    assert [output["text"] for output in shown["01_page"][0]] == ["it is 1\n"]
    note = json.loads(pages.note_file(page).read_text())
    assert note["read"] == ["a"]  # once, however often it is read
    for change, wanted in (
        ("a/more.jsonl", {"01_page", "list"}),
        ("b/c/log.jsonl", {"index", "list"}),
        ("new.csv", {"list"}),
    ):
        (docs / "results" / change).write_text(f"{change}\n")
        assert stale(pages) == wanted
        pages.run_outdated(pages.output_files(pages.programs()))
    page.write_text("# %%\nopen('docs/results/b/c/log.jsonl').read()\n")  # other code, others read
    files = pages.run_outdated(pages.output_files(pages.programs()))
    assert stale(pages) == set()
    (docs / "results" / "a" / "log.jsonl").write_text("[]\n")
    assert stale(pages) == {"list"}
    notes = [pages.note_file(path) for path in pages.programs()]
    assert sorted(pages.OUTPUTS.iterdir()) == sorted([*files.values(), *notes])  # older ones went


def test_code_that_imports_by_name_depends_on_every_study(pages):
    by_name = "import importlib\nimportlib.import_module('minidepth_lab.' + name)"
    assert {path.stem for path in pages.modules_of(by_name)} >= {"used", "below", "unused"}
    found = {path.stem for path in pages.modules_of("import minidepth_lab.unused")}
    assert found == {"__init__", "unused"}


def test_a_page_that_fails_or_changes_while_it_runs_leaves_nothing(project, pages):
    page = project / "docs" / "tutorials" / "01_page.py"
    for code, said in (
        ("1 +", r"(?s)tutorials/01_page\.py failed.*SyntaxError"),
        ("open('docs/results/new.csv', 'w')", r"01_page\.py, or what it reads, changed while"),
    ):
        page.write_text(f"# %%\n{code}\n")
        with pytest.raises(RuntimeError, match=said):
            pages.run_outdated(pages.output_files([page]))
        assert not pages.OUTPUTS.exists()


def test_two_pages_run_at_once_on_half_of_the_cores_each(project, pages):
    wait = "# %%\nimport os, pathlib, time\npathlib.Path('{me}').touch()\n"
    wait += "while not pathlib.Path('{other}').exists():\n    time.sleep(0.1)\n"
    wait += "print(os.environ['OMP_NUM_THREADS'])\n"
    both = [project / "docs" / "tutorials" / name for name in ("a.py", "a-b.py")]
    for me, other in (both, both[::-1]):  # one name begins as the other
        me.write_text(wait.format(me=me.stem, other=other.stem))
    pages.run_outdated(pages.output_files(both))  # would wait for ever, one after the other
    each = str(max(1, os.cpu_count() // 2))
    for file in pages.output_files(both).values():
        assert json.loads(file.read_text())["outputs"][0][0]["text"] == f"{each}\n"


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a status may be read twice")
def test_a_page_has_ended_well_though_another_begins_as_it_ends(project, pages, monkeypatch):
    """To start a process looks for those that have ended, too; how one did can be read once."""
    read, over = forkserver.read_signed, threading.Event()

    def slowly(file):
        if threading.current_thread() is not beside:
            time.sleep(0.3)
        return read(file)

    def another_begins():
        while not over.wait(0.05):
            with pages.starting:
                multiprocessing.active_children()

    beside = threading.Thread(target=another_begins)
    monkeypatch.setattr(forkserver, "read_signed", slowly)
    beside.start()
    try:
        assert pages.in_a_process(project / "docs" / "index.py")[0] == [[]]
    finally:
        over.set()
        beside.join()


def test_a_page_that_fails_ends_the_one_beside_it(project, pages):
    head = "# %%\nimport pathlib, time\n"
    fails = f"{head}while not pathlib.Path('begun').exists():\n    time.sleep(0.1)\n1 / 0\n"
    waits = "pathlib.Path('begun').touch()\ntime.sleep(20)\npathlib.Path('ended').touch()\n"
    both = {"a": fails, "b": head + waits}
    paths = [project / "docs" / "tutorials" / f"{name}.py" for name in both]
    for path in paths:
        path.write_text(both[path.stem])
    with pytest.raises(RuntimeError, match="tutorials/a.py failed"):
        pages.run_outdated(pages.output_files(paths))
    assert not (project / "ended").exists()


@pytest.fixture
def served(project):
    """`mkdocs serve` of the project with one page more, each of which waits for a file → its
    address"""
    pytest.importorskip("material", reason="mkdocs-material is not installed")
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    nav = (
        (project / "mkdocs.yml")
        .read_text()
        .replace("01_page.md", "01_page.md, tutorials/02_page.md")
    )
    settings = settings[: settings.index("\nnav:")] + "\n" + nav
    (project / "mkdocs.yml").write_text(settings, encoding="utf-8")
    page = project / "docs" / "tutorials" / "01_page.py"
    wait = "import os, time\nwhile not os.path.exists('go'):\n    time.sleep(0.1)\n"
    text = page.read_text().replace("# %%\n", f"# %%\n{wait}")
    page.write_text(
        text.replace("# # A\n", "# # A\n#\n# [A heading](../reference/list.md#list).\n")
    )
    other = text.replace("'go'", "'go on'").replace("# A", "# B").replace("('n'", "('m'")
    page.with_name("02_page.py").write_text(other)
    port = 20_000 + os.getpid() % 20_000
    # a shell's job in the background has this signal ignored, and its children inherit that
    run = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    run += "from mkdocs.__main__ import cli; cli()"
    command = [sys.executable, "-c", run, "serve", "-a", f"127.0.0.1:{port}"]
    log = open(project / "serve.log", "w")
    process = subprocess.Popen(
        command, cwd=project, stdout=log, stderr=log, start_new_session=True
    )  # fmt: skip
    yield f"http://127.0.0.1:{port}/"
    process.send_signal(signal.SIGINT)
    try:
        process.wait(30)
    finally:
        process.kill()
        log.close()
    assert "failed" not in (project / "serve.log").read_text()  # what it ended is no failure


def fetched(address, until, seconds=90):
    """The page at an address, once it holds what is waited for."""
    end = time.monotonic() + seconds
    text = "no answer"
    while time.monotonic() < end:
        try:
            text = urllib.request.urlopen(address, timeout=30).read().decode()
        except OSError:
            pass
        if re.search(until, text):
            return text
        time.sleep(0.3)
    raise AssertionError(f"no {until} in {text}")


@pytest.mark.skipif(os.name == "nt", reason="the server is ended by a signal that Windows lacks")
def test_serve_shows_pages_before_they_have_run_and_their_outputs_afterwards(served, project):
    page = fetched(served + "tutorials/01_page/", "and this is one")
    assert "it is" not in re.sub("<[^>]*>", "", page).replace("'it is'", "")
    assert "WARNING -" not in (project / "serve.log").read_text()  # of a heading not there yet
    (project / "go").touch()
    outputs = project / ".cache" / "pages"
    end = time.monotonic() + 90
    while not list(outputs.glob("tutorials-01_page-*.json")):
        assert time.monotonic() < end, (project / "serve.log").read_text()
        time.sleep(0.1)
    (project / "go on").touch()
    page = fetched(served + "tutorials/01_page/", "<pre><code>it is 1</code>")
    assert "runs now" not in page and "while another page ran" in page
    log = (project / "serve.log").read_text()
    assert log.count("Building documentation") == 2 and "WARNING -" not in log
    assert "List" in fetched(served + "reference/list/", r"\[\]")
    assert (project / "n").read_text() == "1"  # however often the site was built
