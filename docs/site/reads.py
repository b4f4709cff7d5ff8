"""Notes which folders of docs/results a page reads, so that it runs again when one of them changes.

execute.py calls note() before a program runs, and in the first cell of a notebook. The file that
READS in the environment names gets a line for each folder, and an empty line if docs/results itself
was listed.
"""

import os
import pathlib
import sys

RESULTS = pathlib.Path(__file__).resolve().parents[1] / "results"
READING = ("open", "os.listdir", "os.scandir")  # Python's audit events (PEP 578)


def note():
    """From here on each folder that this process reads is noted, once."""
    file = os.open(os.environ.get("READS", os.devnull), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    noted = set()

    def hook(event, arguments):
        if event not in READING or not isinstance(arguments[0], str | os.PathLike):
            return
        path = pathlib.Path(os.path.abspath(arguments[0]))
        if not path.is_relative_to(RESULTS):
            return
        folder = "".join(path.relative_to(RESULTS).parts[:1])
        if folder not in noted:
            noted.add(folder)
            os.write(file, f"{folder}\n".encode())

    sys.addaudithook(hook)
