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

import nbclient
import nbformat
import traitlets.config

import pages
import reads


def run_program(path):
    """Run a program as `python PATH` would."""
    sys.argv = [str(path)]
    sys.path[0] = os.path.dirname(os.path.abspath(path))
    reads.note()
    runpy.run_path(str(path), run_name="__main__")


def run_notebook(path):
    """Run a percent file as a notebook → [the outputs of each cell of code]"""
    notebook = pages.notebook(path)
    notebook.cells.insert(0, nbformat.v4.new_code_cell("__import__('reads').note()"))
    settings = traitlets.config.Config()
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
    return [cell.outputs for cell in notebook.cells[1:] if cell.cell_type == "code"]


if __name__ == "__main__":
    page = pathlib.Path(sys.argv[1])
    sys.stdout.reconfigure(encoding="utf-8")
    if pages.prints_markdown(page):
        run_program(page)
    else:
        print(json.dumps(run_notebook(page)))
