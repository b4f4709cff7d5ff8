"""The laboratory: what one asks of many runs, or of a trained one.

tasks/ has a file for each task, studies/ one for each question; the other files are machinery.
registry.py says where a name on the command line leads.
"""

import functools
from typing import Any


def verdict(source: str, **options: Any) -> Any:
    """Does depth help on a task, rows or a data set? sweep.verdict.verdict(), imported when asked:
    an object with `decision`, `differences`, `runs` and figure()."""
    from minidepth_lab.command import dispatch
    from minidepth_lab.sweep import verdict

    command = functools.partial(dispatch.main, draws=False)  # without runs' own curves
    return verdict.verdict(source, command=command, **options)
