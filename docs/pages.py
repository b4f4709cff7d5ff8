"""Runs the pages of the site that are programs, and keeps what they show.

    python docs/pages.py    run those that have not run as they are now, two at a time

docs/index.py and docs/tutorials/*.py are percent files, which run as notebooks do, and
docs/reference/*.py print a page of Markdown. What a page shows is kept in .cache/pages under a name
made from all that it depends on: its code (a percent file's text may change), the modules of the
project that it imports, directly or not, the results, the look of figures and PyTorch's version.
"""

import ast
import concurrent.futures
import hashlib
import importlib.metadata
import json
import os
import pathlib
import subprocess
import sys
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


# ---------- what a page depends on ----------


def code(path):
    """[the code of each cell]"""
    if prints_markdown(path):
        return [path.read_text(encoding="utf-8")]
    return [cell.source for cell in jupytext.read(path).cells if cell.cell_type == "code"]


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
    studies = set((ROOT / "docs" / "studies").glob("*.py"))
    known = {path.stem: path for path in ROOT.glob("*.py")}
    known |= {f"studies.{path.stem}": path for path in studies}
    found, sources = set(), [source]
    while sources:
        names = imported(sources.pop())
        new = studies if names is None else {known[name] for name in names if name in known}
        sources += [path.read_text(encoding="utf-8") for path in new - found]
        found |= new
    return found


def kept(paths):
    """{page: the file that holds what it shows, once it has run as it is now}"""
    results = (ROOT / "docs" / "results").rglob("*")
    for_all = [path for path in results if path.is_file()] + [ROOT / "docs" / "matplotlibrc"]
    shared = hashlib.sha256(TORCH.encode())
    add(shared, for_all)
    files = {}
    for path in paths:
        digest = shared.copy()
        sources = code(path)
        digest.update(json.dumps(sources).encode())
        if prints_markdown(path):  # one of them lists all modules
            add(digest, [*ROOT.glob("*.py"), *(ROOT / "docs" / "studies").glob("*.py")])
        else:
            try:
                add(digest, modules("\n".join(sources)))
            except SyntaxError:
                pass  # it will fail as it runs, with the line
        files[path] = KEPT / f"{path.parent.name}-{path.stem}-{digest.hexdigest()[:16]}.json"
    return files


def add(digest, paths):
    for path in sorted(paths):
        digest.update(str(path.relative_to(ROOT)).encode() + path.read_bytes())


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
    """Run a page and keep what it shows in the file, as JSON: `seconds` and `shown`, Markdown or
    the outputs of each cell of code.

    RuntimeError: the page failed; it says where.
    """
    name = path.relative_to(ROOT).as_posix()
    command = [sys.executable, str(path)]
    if not prints_markdown(path):
        command.insert(1, __file__)
    began = time.perf_counter()
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment(), text=True, encoding="utf-8",
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    running.add(process)
    shown, said = process.communicate()
    running.remove(process)
    if process.returncode:
        raise RuntimeError(f"{name} failed:\n{said}")
    if kept([path])[path] != file:
        raise RuntimeError(f"{name}, or what it reads, changed while it ran; run it again")
    if not prints_markdown(path):
        shown = json.loads(shown)
    seconds = round(time.perf_counter() - began)
    part = file.with_suffix(f".part{os.getpid()}")
    file.parent.mkdir(parents=True, exist_ok=True)
    part.write_text(json.dumps(dict(seconds=seconds, shown=shown)), encoding="utf-8")
    os.replace(part, file)


def run_missing(files):
    """Run the pages of {page: file} whose file is not there, some at once; older files go.

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
    for path in files:
        for old in set(KEPT.glob(f"{path.parent.name}-{path.stem}-*")) - {files[path]}:
            old.unlink()


def stop():
    """End what runs."""
    for process in list(running):
        process.terminate()


def outputs(path):
    """Run a percent file as a notebook → [the outputs of each cell of code]"""
    import nbclient
    import traitlets.config

    notebook = jupytext.read(path)
    settings = traitlets.config.Config()
    settings.KernelManager.transport_encryption = "auto"  # else ipykernel warns on each page
    shown = [
        "--InlineBackend.figure_formats=svg",
        "--InteractiveShell.ast_node_interactivity=none",  # what a script would print
    ]
    client = nbclient.NotebookClient(
        notebook, timeout=None, kernel_name="python3", extra_arguments=shown, config=settings,
        resources=dict(metadata=dict(path=str(ROOT))),
    )  # fmt: skip
    client.execute()
    return [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]


if __name__ == "__main__":
    if len(sys.argv) == 1:
        run_missing(kept(pages()))
    else:
        sys.stdout.reconfigure(encoding="utf-8")
        print(json.dumps(outputs(pathlib.Path(sys.argv[1]))))
