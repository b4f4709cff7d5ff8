"""Notes which folders of docs/results a page reads, so that it runs again when one of them changes.

    python docs/reads.py PAGE    run a program so; a notebook calls note() in a cell of its own

The file that READS in the environment names has a line for each folder, and an empty line if
docs/results was listed.
"""

import os
import pathlib
import runpy
import sys

RESULTS = pathlib.Path(__file__).resolve().parent / "results"
READING = ("open", "os.listdir", "os.scandir")  # Python's audit events (PEP 578)


def note():
    """From here on each folder that this process reads is noted, once."""
    file = os.open(os.environ["READS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
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


if __name__ == "__main__":
    sys.argv.pop(0)
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    note()
    runpy.run_path(sys.argv[0], run_name="__main__")
