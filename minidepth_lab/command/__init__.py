"""The command `minidepth`, which is train.py, wherever the project is."""

import pathlib
import runpy

HERE = pathlib.Path(__file__).resolve().parent


def file():
    """The path of train.py: beside this file where the project is installed, else at its top."""
    installed = HERE / "train.py"
    return installed if installed.exists() else HERE.parents[1] / "train.py"


def main():
    """Run train.py as if it had been typed; it ends the process with its exit code."""
    runpy.run_path(str(file()), run_name="__main__")
