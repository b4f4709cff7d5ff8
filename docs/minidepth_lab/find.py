"""Where a name on the command line leads: a study, a depth task, a preset, the data of a run.

A study is a file of this folder, or a file of one's own that the command line names. It may hold

    PRESETS     {name: settings}, added to minidepth.PRESETS; the name begins with the study's
    PRESET      the one that --study takes by itself, if not the first; NEEDS_GPU, if only with one
    rows        (preset, settings) → {name of a run: its settings}, for --study NAME
    figure      (runs, folder) draws what the study is about, after its grid
    load_data   (config, block_size, tokenizer=None) → minidepth.Data, for --loader NAME; beside it
                SIZES, {name: default} of what --sizes may change
    TASKS       {name: task}, for --data NAME
"""

import contextlib
import functools
import importlib
import importlib.util
import os
import pathlib
import shlex
import tempfile

import torch

import minidepth as md
from minidepth_lab import text

HERE = pathlib.Path(__file__).parent
NO_STUDY = ("__init__", "find", "plan")  # they have functions of those names for all studies
MOST_SIZE = 10**6  # of a task or loader: what is drawn with it is to fit into memory
NAMED = set()  # files of one's own that the command line names: no other file is executed


def names():
    """The studies of this folder, whatever they hold."""
    return sorted(path.stem for path in HERE.glob("*.py") if path.stem not in NO_STUDY)


def study(name, what="study"):
    """The module of a study's name or file; ValueError for a name that is none, or for a file that
    the command line does not name."""
    if name.endswith(".py"):
        return own_file(name, what)
    if name not in names():
        raise ValueError(f"{what} {name!r} is unknown; choose from {', '.join(offering(what))}")
    return importlib.import_module(f"minidepth_lab.{name}")


def offering(what):
    """What can be named as `what`: studies that have rows, loaders, or the studies' presets."""
    modules = {name: importlib.import_module(f"minidepth_lab.{name}") for name in names()}
    if what == "preset":
        return [preset for module in modules.values() for preset in vars(module).get("PRESETS", ())]
    part = dict(study="rows", loader="SIZES")[what]
    return [name for name, module in modules.items() if hasattr(module, part)]


def preset_of(name):
    """The preset that a study takes by itself, or None."""
    found = study(name)
    if getattr(found, "NEEDS_GPU", False) and not torch.cuda.is_available():
        return None
    return getattr(found, "PRESET", next(iter(getattr(found, "PRESETS", {})), None))


def own_file(path, what):
    """A file of one's own as a module; it is executed only if the command line names it."""
    if path not in NAMED:
        flag = "data" if what == "data" else "loader"
        raise ValueError(
            f"{path} is code of one's own and made this run's data; to execute it, name it again: "
            f"--{flag} {shlex.quote(path)}"
        )
    is_there(path, what)
    return executed(os.path.abspath(path), os.path.getmtime(path))


def is_there(path, what):
    """ValueError for a file of one's own that does not exist."""
    if not os.path.isfile(path):
        raise ValueError(f"{what} {path} is not there; give a Python file")


def own_code(name, what, problem):
    """A context in which a mistake in a file of one's own becomes a ValueError, one line, and
    nothing else does."""
    if name.endswith(".py"):
        return md.one_line_errors(f"{what} {name}", problem)
    return contextlib.nullcontext()


@functools.cache
def executed(path, changed):
    """The module of a file, once for each time that it was changed."""
    spec = importlib.util.spec_from_file_location(pathlib.Path(path).stem, path)
    module = importlib.util.module_from_spec(spec)
    with md.one_line_errors(path, "cannot be executed"):
        spec.loader.exec_module(module)
    return module


def task(name):
    """The depth task of a name or of a file of one's own; None if it is neither."""
    if name.endswith(".py"):
        from minidepth_lab.task import Task

        found = getattr(own_file(name, "data"), "TASK", None)
        if not isinstance(found, Task):
            wanted = "an object of a class made from minidepth_lab.task.Task"
            raise ValueError(f"data {name} has no TASK, {wanted}; see the how-to")
        return found
    from minidepth_lab.tasks import TASKS

    return TASKS.get(name)


def names_task(name):
    """Whether a source is a depth task, without executing a file of one's own, which may be."""
    return name.endswith(".py") or task(name) is not None


def configs(preset, **changes):
    """As minidepth.configs(), with the presets of all studies, and with `sizes` joined: those of
    the preset and of the task stay as far as the changes do not name them."""
    if preset not in md.PRESETS and preset.partition("-")[0] in names():
        importlib.import_module(f"minidepth_lab.{preset.partition('-')[0]}")
    if preset not in md.PRESETS:
        known = ", ".join(["report", "laptop", *offering("preset")])
        raise ValueError(f"preset {preset!r} is unknown; choose from {known}")
    values = dict(md.PRESETS[preset])
    data = changes.get("data", values.get("data", ()))
    sources = (data,) if isinstance(data, str) else data
    found = task(sources[0]) if sources else None
    if found and preset == "tasks":
        values |= found.settings
    sizes = by_name(values.get("sizes", ())) | by_name(changes.get("sizes", ()))
    values |= changes
    values["sizes"] = tuple(f"{name}={value}" for name, value in sizes.items())
    return md.configs(preset, **values)


def by_name(sizes):
    """("pairs=8", …) → {"pairs": "8", …}"""
    return dict(size.partition("=")[::2] for size in sizes)


def with_size(given, name, value, study):
    """The sizes `given`, ("pairs=8", …), and one that the rows of a study set; ValueError if it is
    given already."""
    if name in by_name(given):
        raise ValueError(f"--sizes {name} has no effect with --study {study}, whose rows set it")
    return (*given, f"{name}={value}")


def sizes_of(given, known, whose):
    """All sizes of a task or loader: `known`, {name: default}, changed by `given`, ("pairs=8", …),
    each read as what its default is. ValueError for a name that is unknown, or a value that does
    not fit: whole numbers from 1, numbers from 0, one of several words."""
    sizes = dict(known)
    for name, typed in by_name(given).items():
        if name not in known:
            names = ", ".join(known) or "none"
            raise ValueError(f"sizes {name} is none of {whose}'s; it has {names}")
        sizes[name] = read_size(name, typed, known[name])
    return sizes


def read_size(name, text, default):
    """One size from its text, of the kind that its default is; of a tuple the parts are joined
    by +."""
    if isinstance(default, tuple):
        values = tuple(read_size(name, part, default[0]) for part in text.split("+"))
        if len(set(values)) < len(values):
            raise ValueError(f"sizes {name}={text:.40} has one twice; give each once")
        return values
    if isinstance(default, str):
        return text
    kind, least = ("a whole number", 1) if isinstance(default, int) else ("a number", 0)
    try:
        value = type(default)(text)
    except ValueError:
        value = -1
    if not least <= value <= MOST_SIZE:
        limits = f"from {least} to {MOST_SIZE:,}"
        raise ValueError(f"sizes {name}={text:.40} does not work; give {kind} {limits}")
    return value


def as_text(sizes):
    """{"hops": (1, 2), …} → ("hops=1+2", …), as config.json keeps them."""
    texts = []
    for name, value in sizes.items():
        parts = value if isinstance(value, tuple) else (value,)
        texts.append(f"{name}={'+'.join(str(part) for part in parts)}")
    return tuple(texts)


def loader_of(name):
    """The module of a loader's name or file; ValueError for one that makes no data."""
    loader = study(name, "loader")
    if not hasattr(loader, "load_data"):
        raise ValueError(
            f"loader {name} makes no data; choose from {', '.join(offering('loader'))}"
        )
    return loader


def load_data(config, block_size, tokenizer=None):
    """The Data of any TrainConfig: of a loader, a depth task, or text."""
    if config.loader:
        loader = loader_of(config.loader)
        with own_code(config.loader, "the loader", "has a load_data() that failed"):
            data = loader.load_data(config, block_size, tokenizer)
        check_data(data, f"the loader {config.loader}")
        return data
    tasks = [source for source in config.data if task(source)]
    if tasks and len(config.data) > 1:
        sources = ", ".join(config.data)
        raise ValueError(f"data {sources}: the task {min(tasks)} does not mix; give it alone")
    if tasks:
        return importlib.import_module("minidepth_lab.tasks").load_data(config, block_size)
    return text_data(config, block_size, tokenizer)


def check_data(data, whose):
    """ValueError for what a loader must not make."""
    if not isinstance(data, md.Data):
        raise ValueError(f"{whose}: load_data() must give a minidepth.Data; it gave {data!r:.60}")
    for name, part in (("train", data.train), ("val", data.val)):
        shapes = [tuple(getattr(each, "shape", ())) for each in part]
        if len(shapes) != 2 or shapes[0] != shapes[1] or len(shapes[0]) != 2 or 0 in shapes[0]:
            wanted = f"{name} must be (tokens, targets), each (N, T)"
            raise ValueError(f"{whose}: {wanted}; their shapes are {shapes!s:.60}")
        most = max(int(each.max()) for each in part)
        if most >= data.n_words:
            raise ValueError(f"{whose}: {name} has the word {most}, but n_words is {data.n_words}")


def no_text(run_dir):
    """Why a run has no tokenizer, to be put after its name."""
    _, t = md.read_config(run_dir)
    if t.loader.endswith(".py"):
        return "was trained on data of one's own, without text"
    if not t.loader and names_task(t.data[0]):
        return "was trained on a depth task: it knows no text"
    return "has lost its folder tokenizer; copy it from another run on the same data"


def check_place(flag, place):
    """Raise ValueError for the value of a flag that is no folder, or none that can be made."""
    here = os.path.abspath(place)
    while not os.path.lexists(here) and here != os.path.dirname(here):  # a drive may be gone
        here = os.path.dirname(here)
    if not os.path.isdir(here):
        raise ValueError(f"--{flag} {place}: {here} is not a folder; give one")
    try:  # what a folder says of itself does not tell: it may be a system's own
        tempfile.TemporaryFile(dir=here).close()
    except OSError as error:
        why = f"nothing can be written in {here} ({error.strerror}); give another folder"
        raise ValueError(f"--{flag} {place}: {why}") from None


def away(config, tokenizer=None):
    """Whether something of a TrainConfig's data is to come from the hub."""
    named = [s for s in config.data if s != "embedded" and not s.endswith(text.FILES)]
    if any(names_task(source) for source in named):
        return False  # it is drawn, without a tokenizer
    if any(not os.path.exists(source) for source in named):
        return True
    if tokenizer or config.tokenizer == "embedded":
        return False
    return not os.path.isdir(config.tokenizer)


def text_data(config, block_size, tokenizer=None, load=text.load_data):
    """load(config, block_size, tokenizer), with a look first at whether the hub can be reached if
    something is to come from there."""
    if not away(config, tokenizer):
        return load(config, block_size, tokenizer)
    from minidepth_lab import hub

    with hub.looked_for():
        return load(config, block_size, tokenizer)
