"""Runs one page in this process, and prints its outputs.

    python docs/site/execute.py docs/tutorials/NAME.py     JSON: the outputs of each cell of code
    python docs/site/execute.py docs/reference/NAME.py     Markdown

For pages.py, which keeps what is printed.
"""

import json
import os
import pathlib
import runpy
import sys
import tempfile

import nbclient
import nbformat
import traitlets.config

import pages
import reads
from minidepth_site import exercises


def run_program(path):
    """Run a program as `python PATH` would."""
    sys.argv = [str(path)]
    sys.path[0] = os.path.dirname(os.path.abspath(path))
    reads.note()
    runpy.run_path(str(path), run_name="__main__")


def run_notebook(path):
    """Run a percent file as a notebook → [the outputs of each cell of code]. RuntimeError: the
    check of an exercise lets its stub pass, or not its answer."""
    notebook = pages.notebook(path)
    own = [cell for cell in notebook.cells if cell.cell_type == "code"]
    notebook.cells = with_stubs_checked(notebook.cells)
    notebook.cells.insert(0, nbformat.v4.new_code_cell("__import__('reads').note()"))
    with tempfile.TemporaryDirectory() as folder:
        execute(notebook, folder)
    for cell in notebook.cells:
        if pages.has_tag(cell, "check"):
            hold(cell, exercises.RIGHT)
        if pages.has_tag(cell, "check of the stub"):
            hold(cell, exercises.NOT_YET)
    return [cell.outputs for cell in own]


def execute(notebook, folder):
    """Run a notebook's cells in place; its kernel is spoken to through files in the folder."""
    settings = traitlets.config.Config()
    if os.name == "posix":
        # not by TCP: a port that was free for the client may be another's when the kernel takes it
        settings.KernelManager.transport = "ipc"
        settings.KernelManager.ip = os.path.join(folder, "kernel")
    else:
        settings.KernelManager.transport_encryption = "auto"  # else ipykernel warns on each page
    options = [
        "--InlineBackend.figure_formats=svg",
        "--InteractiveShell.ast_node_interactivity=none",  # show what a script would print
    ]
    client = nbclient.NotebookClient(
        notebook,
        timeout=None,
        kernel_name="python3",
        extra_arguments=options,
        config=settings,
        resources=dict(metadata=dict(path=str(pages.ROOT))),
    )
    client.execute()


# ---------- exercises: minidepth_site/exercises.py ----------


def with_stubs_checked(cells):
    """The cells, and after the stub of each exercise the check that belongs to it. RuntimeError:
    an exercise has none."""
    together = []
    for number, cell in enumerate(cells):
        together.append(cell)
        if pages.has_tag(cell, "exercise"):
            check = check_of(cells, number)
            tags = dict(tags=["check of the stub"])
            together.append(nbformat.v4.new_code_cell(check.source, metadata=tags))
    return together


def check_of(cells, number):
    """The check of the exercise whose stub is this cell: it comes before the next stub."""
    for later in cells[number + 1 :]:
        if pages.has_tag(later, "check"):
            return later
        if pages.has_tag(later, "exercise"):
            break
    raise RuntimeError(f"this exercise has no check:\n{cells[number].source}")


def hold(cell, expected):
    """RuntimeError unless what a check printed begins as expected."""
    printed = "".join(output.get("text", "") for output in cell.outputs)
    if not printed.startswith(expected):
        raise RuntimeError(
            f"{expected!r} expected of this check:\n{cell.source}\nIt said: {printed}"
        )


if __name__ == "__main__":
    page = pathlib.Path(sys.argv[1])
    sys.stdout.reconfigure(encoding="utf-8")
    if pages.prints_markdown(page):
        run_program(page)
    else:
        print(json.dumps(run_notebook(page)))
