"""Runs one page in this process, and prints its outputs.

    python docs/site/execute.py docs/tutorials/NAME.py     JSON: the outputs of each cell of code
    python docs/site/execute.py docs/reference/NAME.py     Markdown

For pages.py, which keeps what is printed.
"""

import contextlib
import io
import json
import os
import pathlib
import runpy
import sys

import nbformat
import traitlets.config
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets import Type

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
    execute(notebook)
    for cell in notebook.cells:
        if pages.has_tag(cell, "check"):
            hold(cell, exercises.RIGHT)
        if pages.has_tag(cell, "check of the stub"):
            hold(cell, exercises.NOT_YET)
    return [cell.outputs for cell in own]


class Publisher(DisplayPublisher):
    """Keeps what a cell displays, in the order in which it does."""

    def publish(self, data, metadata=None, **_):
        shown = nbformat.v4.new_output("display_data", data, metadata=metadata or {})
        self.shell.outputs.append(shown)


class Shell(InteractiveShell):
    """IPython in this process: to start a kernel would take a short page half of its time."""

    display_pub_class = Type(Publisher)
    outputs = ()  # of the cell that runs

    def _showtraceback(self, etype, evalue, stb):
        self.failure = "\n".join(stb)


class Printed(io.TextIOBase):
    """Keeps what a cell prints, as a notebook has it."""

    def __init__(self, shell, name):
        self.shell, self.name = shell, name

    def write(self, text):
        outputs = self.shell.outputs
        if not (outputs and outputs[-1].get("name") == self.name):
            outputs.append(nbformat.v4.new_output("stream", name=self.name, text=""))
        outputs[-1].text += text
        return len(text)


def execute(notebook):
    """Run a notebook's cells in place. RuntimeError: one failed; the message says where."""
    settings = traitlets.config.Config()
    settings.HistoryManager.enabled = False
    settings.InlineBackend.figure_formats = {"svg"}
    settings.InteractiveShell.ast_node_interactivity = "none"  # show what a script would print
    settings.InteractiveShell.colors = "nocolor"
    main, folder = sys.modules["__main__"], os.getcwd()
    shell = Shell.instance(config=settings)
    os.chdir(pages.ROOT)
    try:
        for cell in notebook.cells:
            if cell.cell_type != "code":
                continue
            shell.outputs = cell.outputs = []
            streams = Printed(shell, "stdout"), Printed(shell, "stderr")
            with contextlib.redirect_stdout(streams[0]), contextlib.redirect_stderr(streams[1]):
                done = shell.run_cell(cell.source)
            if not done.success:
                raise RuntimeError(f"in this cell:\n{cell.source}\n\n{shell.failure}")
    finally:
        Shell.clear_instance()
        sys.modules["__main__"] = main
        os.chdir(folder)


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
        with open(os.dup(1), "w", encoding="utf-8") as result:
            os.dup2(2, 1)  # what a program prints that a cell starts is no part of it
            json.dump(run_notebook(page), result)
