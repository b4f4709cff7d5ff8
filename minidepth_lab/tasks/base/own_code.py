"""Files of one's own: a task, a loader or a study that the command line names. No other file is
executed, whatever a run's folder mentions."""

import contextlib
import functools
import importlib.util
import os
import pathlib
import shlex

from minidepth_lab.base import console

NAMED = set()  # the files that the command line names


def own_file(path, kind):
    """A file of one's own as a module; ValueError if the command line does not name it. `kind` is
    what it is named as: data, loader or study."""
    if path not in NAMED:
        flag = "data" if kind == "data" else "loader"
        raise ValueError(
            f"{path} is code of one's own and made this run's data; to execute it, name it again: "
            f"--{flag} {shlex.quote(path)}"
        )
    is_there(path, kind)
    return executed(os.path.abspath(path), os.path.getmtime(path))


def name_those_of(settings):
    """Name the task and the loader in a study's own settings: to name a study is to name these."""
    sources = settings.get("data", ())
    sources = [sources] if isinstance(sources, str) else list(sources)
    named = [*sources, settings.get("loader", "")]
    NAMED.update(path for path in named if isinstance(path, str) and path.endswith(".py"))


def is_there(path, kind):
    """ValueError for a file of one's own that does not exist."""
    if not os.path.isfile(path):
        raise ValueError(f"{kind} {path} is not there; give a Python file")


@functools.cache
def executed(path, changed):
    """The module of a file, once for each time that it was changed."""
    spec = importlib.util.spec_from_file_location(pathlib.Path(path).stem, path)
    module = importlib.util.module_from_spec(spec)
    with console.one_line_errors(path, "cannot be executed"):
        spec.loader.exec_module(module)
    return module


def mistakes_in(name, kind, problem):
    """A context in which a mistake in a file of one's own becomes a ValueError, one line, and
    nothing else does."""
    if name.endswith(".py"):
        return console.one_line_errors(f"{kind} {name}", problem)
    return contextlib.nullcontext()
