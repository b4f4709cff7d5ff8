"""Runs the pages of the site that are programs, and keeps what they show.

    python docs/pages.py    run those that have not run as they are now, two at a time

docs/index.py and docs/tutorials/*.py are percent files, which run as notebooks do, and
docs/reference/*.py print a page of Markdown. What a page shows is kept in .cache/pages under a name
made from all that it depends on: its code (a percent file's text may change), the modules of the
project that it imports, directly or not (their comments may change, if it does not show them), the
folders of docs/results that it reads, the look of figures and PyTorch's version.
"""

import ast
import concurrent.futures
import copy
import functools
import hashlib
import importlib.metadata
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import jupytext

ROOT = pathlib.Path(__file__).resolve().parents[1]
KEPT = ROOT / ".cache" / "pages"
AT_ONCE = 2
TORCH = importlib.metadata.version("torch").split("+")[0]
running = set()  # processes, for stop()


def pages():
    """The files that run, in the order of the site's menu, more or less."""
    docs = ROOT / "docs"
    tutorials = sorted(docs.glob("tutorials/*.py"))
    return [docs / "index.py", *tutorials, *sorted(docs.glob("reference/*.py"))]


def prints_markdown(path):
    """Whether a page is a program that prints it, not a percent file."""
    return path.parent.name == "reference"


def notebook(path):
    """A percent file as a notebook, the caller's own to change."""
    return copy.deepcopy(parsed(path.read_text(encoding="utf-8")))


@functools.cache  # for a build it is read several times
def parsed(text):
    return jupytext.reads(text, "py:percent")


# ---------- what a page depends on ----------


def code(path):
    """[the code of each cell]"""
    if prints_markdown(path):
        return [path.read_text(encoding="utf-8")]
    return [cell.source for cell in notebook(path).cells if cell.cell_type == "code"]


@functools.cache
def imported(source):
    """The names of modules that code may import, or None where that shows only as it runs."""
    if "import_module(" in source:
        return None
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            names.add(node.module)
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def modules(source):
    """The project's files that code imports, directly or not."""
    studies = set((ROOT / "docs" / "minidepth_lab").rglob("*.py"))
    known = {path.stem: path for path in ROOT.glob("*.py")}
    for path in studies:
        name = ".".join(path.relative_to(ROOT / "docs").with_suffix("").parts)
        known[name.removesuffix(".__init__")] = path
    found, sources = set(), [source]
    while sources:
        names = imported(sources.pop())
        new = studies if names is None else {known[name] for name in names if name in known}
        sources += [path.read_text(encoding="utf-8") for path in new - found]
        found |= new
    return found


def kept(paths):
    """{page: the file that holds what it shows, once it has run as it is now}"""
    files, contents_once = {}, functools.cache(contents)
    for path in paths:
        digest = made_from(path)
        for place in folders_read(path, digest.hexdigest()):
            digest.update(contents_once(place))
        files[path] = KEPT / f"{path.parent.name}-{path.stem}-{digest.hexdigest()[:16]}.json"
    return files


def made_from(path):
    """A digest of all that a page depends on, but for the results."""
    digest = hashlib.sha256(TORCH.encode())
    add(digest, [ROOT / "docs" / "matplotlibrc"])
    sources = code(path)
    digest.update(json.dumps(sources).encode())
    if prints_markdown(path):  # one of them lists all modules
        add(digest, [*ROOT.glob("*.py"), *(ROOT / "docs" / "minidepth_lab").rglob("*.py")])
        return digest
    source = "\n".join(sources)
    try:
        shows_source = "inspect" in (imported(source) or {"inspect"})
        add(digest, modules(source), of=bytes if shows_source else meaning)
    except SyntaxError:
        pass  # it will fail as it runs, with the line
    return digest


def contents(place):
    """A digest of a file, or of all files in a folder."""
    digest = hashlib.sha256()
    inside = [place] if place.is_file() else place.rglob("*")
    add(digest, [each for each in inside if each.is_file()])
    return digest.digest()


def add(digest, paths, of=bytes):
    for path in sorted(paths):
        digest.update(str(path.relative_to(ROOT)).encode() + of(path.read_bytes()))


@functools.cache
def meaning(text):
    """What Python reads of a module: neither its comments nor where its lines end."""
    return ast.dump(ast.parse(text)).encode()


def note_of(path):
    """The file that says what a page was made from and which results it read when it last ran."""
    return KEPT / f"{path.parent.name}-{path.stem}.reads"


def folders_read(path, digest):
    """What stands in docs/results and was read by a page when it last ran, made from what has this
    digest; if it has not, all. A page that listed docs/results depends on what will come there."""
    there = {each.name: each for each in (ROOT / "docs" / "results").glob("*")}
    if note_of(path).exists():
        note = json.loads(note_of(path).read_text(encoding="utf-8"))
        if note["made_from"] == digest and "" not in note["read"]:
            return [there[name] for name in note["read"] if name in there]
    return [there[name] for name in sorted(there)]


# ---------- running ----------


def environment():
    """What the pages find in their environment: ours, whatever the user's settings are."""
    each = max(1, (os.cpu_count() or 1) // AT_ONCE)  # more threads than cores wait for each other
    return os.environ | dict(
        IPYTHONDIR=str(ROOT / ".cache" / "ipython"),
        MATPLOTLIBRC=str(ROOT / "docs" / "matplotlibrc"),
        MPLBACKEND="module://matplotlib_inline.backend_inline",
        OMP_NUM_THREADS=str(each),
        PYTHONIOENCODING="utf-8",
        PYTHONPATH=os.pathsep.join([str(ROOT), str(ROOT / "docs")]),  # installed or not
        TOKENIZERS_PARALLELISM="false",
    )


def run(path, file):
    """Run a page whose kept() file is not there, and keep what it shows, as JSON: `seconds` and
    `shown`, Markdown or the outputs of each cell of code; and which results it read, by which
    the file has another name from now on.

    RuntimeError: the page failed; it says where.
    """
    name = path.relative_to(ROOT).as_posix()
    how = "reads.py" if prints_markdown(path) else "pages.py"
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        reads = pathlib.Path(folder) / "reads"
        process = subprocess.Popen(
            [sys.executable, str(ROOT / "docs" / how), str(path)],
            cwd=ROOT, env=environment() | dict(READS=str(reads)), text=True, encoding="utf-8",
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        running.add(process)
        shown, said = process.communicate()
        running.remove(process)
        read = reads.read_text(encoding="utf-8").splitlines() if reads.exists() else []
    if process.returncode:
        raise RuntimeError(f"{name} failed:\n{said}")
    if kept([path])[path] != file:
        raise RuntimeError(f"{name}, or what it reads, changed while it ran; run it again")
    if not prints_markdown(path):
        shown = json.loads(shown)
    seconds = round(time.perf_counter() - began)
    note = dict(made_from=made_from(path).hexdigest(), read=sorted(read))
    replace(note_of(path), note)
    replace(kept([path])[path], dict(seconds=seconds, shown=shown))


def replace(file, content):
    """Write JSON to a file, whole or not at all."""
    part = file.with_suffix(f".part{os.getpid()}")
    file.parent.mkdir(parents=True, exist_ok=True)
    part.write_text(json.dumps(content), encoding="utf-8")
    os.replace(part, file)


def run_missing(files):
    """Run the pages of {page: file} whose file is not there, some at once, and let older files go →
    {page: file}, where what has run is known by what it read.

    RuntimeError: a page failed. The others end or do not begin.
    """
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        missing = [(path, file) for path, file in files.items() if not file.exists()]
        work = [pool.submit(run, path, file) for path, file in missing]
        try:
            for done in concurrent.futures.as_completed(work):
                done.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            stop()
            raise
    if missing:
        files = kept(files)
    for path, file in files.items():
        for old in set(KEPT.glob(f"{path.parent.name}-{path.stem}-*")) - {file}:
            old.unlink()
    return files


def stop():
    """End what runs."""
    for process in list(running):
        process.terminate()


def outputs(path):
    """Run a percent file as a notebook → [the outputs of each cell of code]"""
    import nbclient
    import nbformat
    import traitlets.config

    made = notebook(path)
    made.cells.insert(0, nbformat.v4.new_code_cell("__import__('reads').note()"))
    settings = traitlets.config.Config()
    settings.KernelManager.transport_encryption = "auto"  # else ipykernel warns on each page
    shown = [
        "--InlineBackend.figure_formats=svg",
        "--InteractiveShell.ast_node_interactivity=none",  # what a script would print
    ]
    client = nbclient.NotebookClient(
        made, timeout=None, kernel_name="python3", extra_arguments=shown, config=settings,
        resources=dict(metadata=dict(path=str(ROOT))),
    )  # fmt: skip
    client.execute()
    return [cell.outputs for cell in made.cells[1:] if cell.cell_type == "code"]


if __name__ == "__main__":
    if len(sys.argv) == 1:
        run_missing(kept(pages()))
    else:
        sys.stdout.reconfigure(encoding="utf-8")
        print(json.dumps(outputs(pathlib.Path(sys.argv[1]))))
