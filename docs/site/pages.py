"""Runs the pages of the site that are programs, and keeps their outputs.

    python docs/site/pages.py    run those whose outputs are out of date, two at a time

A page is a file in docs and a line in the nav of mkdocs.yml. If the file is NAME.py, it is a
program. There are two kinds: a *percent file* (cells that begin with `# %%`) runs as a notebook
does, and any other program prints its page as Markdown.

The outputs of a page are kept in .cache/pages, in a file whose name holds a digest of all that the
page depends on: its code (a percent file's text may change), the modules of the project that it
imports, directly or not (their comments may change, unless the page shows source), the folders of
docs/results that it read, the look of figures, and PyTorch's version. So what has to run again is
what has no file.
"""

import ast
import concurrent.futures
import copy
import functools
import hashlib
import importlib.metadata
import json
import multiprocessing.connection
import os
import pathlib
import sys
import tempfile
import threading
import time
from unittest import mock

import jupytext
from mkdocs.utils.yaml import yaml_load

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
SITE = DOCS / "site"
RESULTS = DOCS / "results"
OUTPUTS = ROOT / ".cache" / "pages"
AT_ONCE = 2  # pages that run side by side
TORCH = importlib.metadata.version("torch").split("+")[0]
# what pages may import besides the modules at the top of the project
LABORATORY = ROOT / "minidepth_lab"
WIDGETS = SITE / "minidepth_site"


# ---------- which pages are programs ----------


def in_nav(nav):
    """[every page of a nav, however deep, as "folder/NAME.md"], in its order."""
    if isinstance(nav, str):
        return [nav]
    entries = nav.values() if isinstance(nav, dict) else nav
    return [page for entry in entries for page in in_nav(entry)]


def programs():
    """[the file of every page that is a program], in the order of the nav."""
    settings = yaml_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    files = [DOCS / page.removesuffix(".md") for page in in_nav(settings["nav"])]
    return [file.with_suffix(".py") for file in files if file.with_suffix(".py").exists()]


def prints_markdown(path):
    """Whether a program prints its page as Markdown. If not, it is a percent file."""
    return not path.read_text(encoding="utf-8").startswith("# %%")


def notebook(path):
    """A percent file as an nbformat notebook, the caller's own to change."""
    return copy.deepcopy(parsed(path.read_text(encoding="utf-8")))


@functools.cache  # one build needs each notebook several times
def parsed(text):
    return jupytext.reads(text, "py:percent")


def has_tag(cell, tag):
    """Whether a cell of a notebook has a tag."""
    return tag in cell.metadata.get("tags", ())


# ---------- what a page depends on ----------


def cells_of_code(path):
    """[the code of each cell]; a program that prints Markdown is a single cell."""
    if prints_markdown(path):
        return [path.read_text(encoding="utf-8")]
    return [cell.source for cell in notebook(path).cells if cell.cell_type == "code"]


def project_modules():
    """{a module's name: its file}, of all that pages can import from the project. A package has the
    name of its folder."""
    modules = {path.stem: path for path in ROOT.glob("*.py")}
    for package in (LABORATORY, WIDGETS):
        for path in package.rglob("*.py"):
            name = ".".join(path.relative_to(package.parent).with_suffix("").parts)
            modules[name.removesuffix(".__init__")] = path
    return modules


@functools.cache
def imports(source, package=""):
    """{the names that a source imports, in functions, too}. `package` is the package that the
    source belongs to, from which relative imports count."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            start = package.split(".")[: -(node.level - 1) or None] if node.level else []
            module = ".".join([*start, *filter(None, [node.module])])
            names |= {module, *(f"{module}.{alias.name}" for alias in node.names)}
    return names


def rooms():
    """{each room of the laboratory, as a package: [it, and its modules, by their names]}. What
    pages show their boxes with is one more."""
    found = {}
    for name in sorted(project_modules()):
        package, _, rest = name.partition(".")
        if package == WIDGETS.name:
            found.setdefault(package, []).append(name)
        elif package == LABORATORY.name and rest:
            found.setdefault(f"{package}.{rest.partition('.')[0]}", []).append(name)
    return found


def imports_by_name(source):
    """Whether a source imports modules whose names show only as it runs."""
    return any(sign in source for sign in ("import_module(", "__import__(", "pkgutil."))


def with_packages(name):
    """a.b.c → [a, a.b, a.b.c]: to import a module runs the packages around it."""
    parts = name.split(".")
    return [".".join(parts[:n]) for n in range(1, len(parts) + 1)]


def modules_of(source):
    """{the project's files that a source imports, directly or not}"""
    known = project_modules()
    laboratory = {name for name in known if name.startswith(f"{LABORATORY.name}.")}
    names = {path: name for name, path in known.items()}
    files, unread = set(), [(source, "")]
    while unread:
        source, package = unread.pop()
        wanted = imports(source, package)
        if imports_by_name(source):
            wanted = wanted | laboratory
        new = {known[part] for name in wanted for part in with_packages(name) if part in known}
        for path in new - files:
            is_package = path.name == "__init__.py"
            inside = names[path] if is_package else names[path].rpartition(".")[0]
            unread.append((path.read_text(encoding="utf-8"), inside))
        files |= new
    return files


def add_files(digest, paths, contents=bytes):
    """Let a digest depend on files, their names and their contents(bytes)."""
    for path in sorted(paths):
        digest.update(str(path.relative_to(ROOT)).encode() + contents(path.read_bytes()))


@functools.cache
def without_comments(source):
    """What Python makes of a source: neither its comments nor where its lines end."""
    return ast.dump(ast.parse(source)).encode()


def digest_of_code(path):
    """A digest of all that a page depends on, but for the results."""
    digest = hashlib.sha256(TORCH.encode())
    add_files(digest, [SITE / "matplotlibrc"])
    cells = cells_of_code(path)
    digest.update(json.dumps(cells).encode())
    if prints_markdown(path):  # such a page is about the project: it may show any file's source
        add_files(digest, [*project_modules().values(), *(DOCS / "assets").glob("*.js")])
        return digest
    source = "\n".join(cells)
    try:
        shows_source = "inspect" in imports(source)
        add_files(digest, modules_of(source), bytes if shows_source else without_comments)
    except SyntaxError:
        pass  # the page will fail as it runs, and say in which line
    return digest


@functools.cache
def digest_of_results(place):
    """A digest of a file of docs/results, or of all files in one of its folders."""
    digest = hashlib.sha256()
    inside = [place] if place.is_file() else place.rglob("*")
    add_files(digest, [path for path in inside if path.is_file()])
    return digest.digest()


def label(path):
    """What the files that are kept of a page are called."""
    return f"{path.parent.name}-{path.stem}"


def note_file(path):
    """The file that says which results a page read when it last ran, and what its code was."""
    return OUTPUTS / f"{label(path)}.reads"


def results_read(path, code):
    """[files and folders of docs/results that a page depends on]: those that it read when it last
    ran, if its code has this digest still, else all. A page that listed docs/results itself
    (noted as "") depends on what will be added there, so on all."""
    there = {place.name: place for place in RESULTS.glob("*")}
    if note_file(path).exists():
        note = json.loads(note_file(path).read_text(encoding="utf-8"))
        if note["code"] == code and "" not in note["read"]:
            return [there[name] for name in note["read"] if name in there]
    return [there[name] for name in sorted(there)]


def output_files(paths):
    """{page: the file that holds its outputs, once it has run as it is now}"""
    digest_of_results.cache_clear()  # files may have changed since the last call
    files = {}
    for path in paths:
        digest = digest_of_code(path)
        for place in results_read(path, digest.hexdigest()):
            digest.update(digest_of_results(place))
        files[path] = OUTPUTS / f"{label(path)}-{digest.hexdigest()[:16]}.json"
    return files


# ---------- running ----------

running = set()  # the processes of pages, for stop()


def environment():
    """The environment of a page: the same whatever the user's settings are."""
    threads = max(1, (os.cpu_count() or 1) // AT_ONCE)  # more than cores would wait for each other
    return os.environ | dict(
        IPYTHONDIR=str(ROOT / ".cache" / "ipython"),
        MATPLOTLIBRC=str(SITE / "matplotlibrc"),
        MPLBACKEND="module://matplotlib_inline.backend_inline",
        OMP_NUM_THREADS=str(threads),
        PYTHONIOENCODING="utf-8",
        PYTHONPATH=os.pathsep.join(map(str, (ROOT, DOCS, SITE))),  # installed or not
        TOKENIZERS_PARALLELISM="false",
    )


# The libraries that most pages import. To import them takes longer than most pages do; so, where a
# process can be divided in two, one that has imported them is, for each of many pages.
MANY = 4
LIBRARIES = "IPython.core.interactiveshell jupytext matplotlib.pyplot nbformat scipy.stats torch"
DIVIDES = sys.platform == "linux"  # elsewhere not with such libraries
processes = multiprocessing.get_context("forkserver" if DIVIDES else "spawn")
starting = threading.Lock()
# what such a process does: it becomes `python execute.py PAGE` in its environment
BECOME = """
import os, runpy, sys
for number, file in ((1, printed), (2, errors)):
    os.dup2(os.open(file, os.O_WRONLY), number)
sys.stdout, sys.stderr = (open(n, "w", encoding="utf-8", closefd=False) for n in (1, 2))
os.environ.clear()
os.environ.update(environment)
if "matplotlib" in sys.modules:
    sys.modules["matplotlib"].rc_file(environment["MATPLOTLIBRC"])
os.chdir(root)
sys.argv[:] = program, page
sys.path[:0] = [os.path.dirname(program), *environment["PYTHONPATH"].split(os.pathsep)]
runpy.run_path(program, run_name="__main__")
"""


def expect(n):
    """Before the first of n pages runs."""
    if n >= MANY:
        processes.set_forkserver_preload(LIBRARIES.split())


def in_a_process(path):
    """Run a page in a process of its own → (its outputs, [what it read of docs/results]).

    RuntimeError: the page failed; the message says where.
    """
    with tempfile.TemporaryDirectory() as folder:
        printed, errors, reads = (pathlib.Path(folder, name) for name in ("out", "err", "reads"))
        for file in (printed, errors, reads):
            file.touch()
        given = dict(
            environment=environment() | dict(READS=str(reads)),
            root=str(ROOT),
            program=str(SITE / "execute.py"),
            page=str(path),
            printed=str(printed),
            errors=str(errors),
        )
        with starting:  # threads are counted, and the look of figures is read, at an import
            with mock.patch.dict(os.environ, environment()):
                process = processes.Process(target=exec, args=(BECOME, given))
                process.start()
        running.add(process)
        multiprocessing.connection.wait([process.sentinel])
        with starting:  # to start one asks how others ended, too, and that can be read once
            process.join()
        running.remove(process)
        out, said = (file.read_text(encoding="utf-8") for file in (printed, errors))
        read = reads.read_text(encoding="utf-8").splitlines()
    if process.exitcode:
        raise RuntimeError(f"{path.relative_to(ROOT).as_posix()} failed:\n{said}")
    return out if prints_markdown(path) else json.loads(out), sorted(read)


def run(path, file):
    """Run a page whose output file is not there, and keep as JSON the `seconds` it took and its
    `outputs`: Markdown, or the outputs of each cell of code. Which results it read is noted, and
    from now on its output file has a name made from these.

    RuntimeError: the page failed, or changed while it ran.
    """
    began = time.perf_counter()
    outputs, read = in_a_process(path)
    seconds = round(time.perf_counter() - began)
    if output_files([path])[path] != file:
        name = path.relative_to(ROOT).as_posix()
        raise RuntimeError(f"{name}, or what it reads, changed while it ran; run it again")
    replace(note_file(path), dict(code=digest_of_code(path).hexdigest(), read=read))
    replace(output_files([path])[path], dict(seconds=seconds, outputs=outputs))


def replace(file, content):
    """Write JSON to a file, whole or not at all."""
    new = file.with_suffix(f".new{os.getpid()}")
    file.parent.mkdir(parents=True, exist_ok=True)
    new.write_text(json.dumps(content), encoding="utf-8")
    os.replace(new, file)


def run_outdated(files):
    """Run the pages of {page: output file} whose file is not there, some at once, and delete
    outputs that are older → {page: output file}, named by what the pages read.

    RuntimeError: a page failed. The others end or do not begin.
    """
    outdated = [(path, file) for path, file in files.items() if not file.exists()]
    expect(len(outdated))
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        work = [pool.submit(run, path, file) for path, file in outdated]
        try:
            for done in concurrent.futures.as_completed(work):
                done.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            stop()
            raise
    if outdated:
        files = output_files(files)
    for path, file in files.items():
        for old in set(OUTPUTS.glob(f"{label(path)}-{'?' * 16}.json")) - {file}:
            old.unlink()
    return files


def stop():
    """End the pages that run."""
    for process in list(running):
        process.terminate()


if __name__ == "__main__":
    run_outdated(output_files(programs()))
