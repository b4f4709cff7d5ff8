"""The command, which train.py hands to: `python train.py …`, installed `minidepth …`."""

import os

from minidepth_lab.base import console

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
if not os.path.exists(os.path.join(ROOT, "train.py")):  # an installation has a command of its own
    console.COMMAND = "minidepth"


def main(arguments: list[str] | None = None) -> int:
    """Do what the arguments say, by default those of the process; the exit code."""
    from minidepth_lab.command import dispatch

    return dispatch.main(arguments)
