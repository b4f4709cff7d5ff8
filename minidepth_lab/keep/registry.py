"""Where a name on the command line leads: a study, a depth task, a preset, the data of a run.

A study is a file of studies/, or a file of one's own that the command line names. It may hold

    PRESETS     {name: settings}, presets by name; each begins with the study's
    PRESET      the one that --study takes by itself, if not the first; NEEDS_GPU, if only with one
    rows        (preset, settings) → {name of a run: its settings}, for --study NAME
    figure      (runs, folder) draws what the study is about, after its grid
    load_data   (config, block_size, tokenizer=None) → minidepth.Data, for --loader NAME; beside it
                SIZES, {name: default} of what --sizes may change

A task is the TASK of a file of tasks/, or of a file of one's own, for --data NAME.

A study or a task is read when its name is looked up, and is not imported here: so its own file may
ask for any data and any preset by their names.
"""

import contextlib
import dataclasses
import importlib
import os
import pathlib
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import torch

import minidepth as md
from minidepth_lab.base import configs as plain
from minidepth_lab.base import console
from minidepth_lab.base.data import Data
from minidepth_lab.keep import checkpoints
from minidepth_lab.rows import sources
from minidepth_lab.tasks import PRESETS as TASK_PRESETS
from minidepth_lab.tasks import TASKS, Task
from minidepth_lab.tasks.base import own_code, task_data
from minidepth_lab.tasks.base.own_code import mistakes_in, own_file
from minidepth_lab.tasks.base.sizes import by_name

# ---------- studies ----------


def study_names() -> list[str]:
    """The names of all studies, whatever they hold."""
    folder = pathlib.Path(__file__).parents[1] / "studies"
    return sorted(path.stem for path in folder.glob("[a-z]*.py"))


def read_study(name: str) -> ModuleType:
    """The module of a study of this project."""
    return importlib.import_module(f"minidepth_lab.studies.{name}")


def study(name: str, kind: str = "study") -> ModuleType:
    """The module of a study's name or file; ValueError for a name that is none, or for a file that
    the command line does not name. `kind` is what it is named as: study or loader."""
    if name.endswith(".py"):
        module = own_file(name, kind)
        for settings in getattr(module, "PRESETS", {}).values():
            own_code.name_those_of(settings)
        return module
    if name not in study_names():
        raise ValueError(f"{kind} {name!r} is unknown; choose from {', '.join(offering(kind))}")
    return read_study(name)


def offering(kind: str) -> list[str]:
    """What can be named as `kind`: studies that have rows, loaders, or the studies' presets."""
    modules = {name: read_study(name) for name in study_names()}
    if kind == "preset":
        presets = {name: getattr(module, "PRESETS", {}) for name, module in modules.items()}
        presets["tasks"] = TASK_PRESETS
        return [preset for name in sorted(presets) for preset in presets[name]]
    part = dict(study="rows", loader="load_data")[kind]
    return [name for name, module in modules.items() if hasattr(module, part)]


def preset_of(name: str) -> str | None:
    """The preset that a study takes by itself, or None."""
    module = study(name)
    if getattr(module, "NEEDS_GPU", False) and not torch.cuda.is_available():
        return None
    return getattr(module, "PRESET", next(iter(getattr(module, "PRESETS", {})), None))


def loader(name: str) -> ModuleType:
    """The module of a loader's name or file; ValueError for one that makes no data."""
    module = study(name, "loader")
    if not hasattr(module, "load_data"):
        raise ValueError(
            f"loader {name} makes no data; choose from {', '.join(offering('loader'))}"
        )
    return module


# ---------- tasks ----------


def task(name: str) -> Task | None:
    """The depth task of a name or of a file of one's own; None if it is neither."""
    if not name.endswith(".py"):
        return TASKS.get(name)
    own = getattr(own_file(name, "data"), "TASK", None)
    if not isinstance(own, Task):
        wanted = "an object of a class made from minidepth_lab.tasks.Task"
        raise ValueError(f"data {name} has no TASK, {wanted}; see the how-to")
    if not isinstance(own.settings, dict):
        wrong = f"data {name} has a TASK whose settings are {own.settings!r:.40}"
        raise ValueError(f"{wrong}; give a dict, {{setting: value}}")
    return own


# ---------- settings ----------


def values_of(preset: str) -> dict:
    """{setting: value} of a preset; ValueError for one that is unknown."""
    study = preset.partition("-")[0]
    known = plain.PRESETS | TASK_PRESETS
    if preset not in known and study in study_names():
        known |= getattr(read_study(study), "PRESETS", {})
    if preset not in known:
        for path in sorted(filter(os.path.isfile, own_code.NAMED)):
            known |= getattr(own_file(path, "study"), "PRESETS", {})
    if preset not in known:
        names = ", ".join(["report", "laptop", *offering("preset")])
        raise ValueError(f"preset {preset!r} is unknown; choose from {names}")
    return dict(known[preset])


def configs(preset: str, **changes: Any) -> tuple[plain.ModelConfig, plain.TrainConfig]:
    """As minidepth.configs(), with the presets of all studies, and with `sizes` joined: those of
    the preset and of the task stay as far as the changes do not name them."""
    values = values_of(preset)
    data = changes.get("data", values.get("data", ()))
    both = data, values.get("data", data)
    names, of_preset = ((each,) if isinstance(each, str) else tuple(each) for each in both)
    if names != of_preset and not values.get("loader"):
        values.pop("sizes", None)  # of the preset's own task
    if preset == "tasks" and names and (its_task := task(names[0])):
        values |= its_task.settings
    sizes = by_name(values.get("sizes", ())) | by_name(changes.get("sizes", ()))
    if changes.get("init_from"):
        values |= settings_of_weights(changes)
    values |= changes
    values["sizes"] = tuple(f"{name}={value}" for name, value in sizes.items())
    return plain.of_values(values)


def settings_of_weights(changes: dict) -> dict:
    """{setting: value} of the model whose weights are to begin with, and of its tokenizer;
    ValueError where `changes`, what was typed, makes another model of it."""
    folder = changes["init_from"]
    if not os.path.isdir(folder):
        wanted = "give a run's folder, as runs/NAME, or a GPT-2's"
        raise ValueError(f"init_from {folder} is not there; {wanted}")
    if checkpoints.is_run(folder):
        values = checkpoints.settings_of_weights(folder)
    else:
        from minidepth_lab.keep import export

        values = dataclasses.asdict(export.gpt2_config(folder))
        if os.path.exists(os.path.join(folder, "tokenizer.json")):
            values["tokenizer"] = folder
    shapes = ["vocab_size", "n_layers", "n_heads", "d_model", "d_ff", "bias", "tie_weights"]
    shapes.append("position")
    if values["position"] == "learned":  # else it reads any number of tokens
        shapes.append("block_size")
    for name in shapes:
        if changes.get(name, values[name]) != values[name]:
            its = f"{changes[name]} is not that of {folder}, {values[name]}"
            raise ValueError(f"{name} {its}; leave it out")
    if (
        "tokenizer" in values
        and changes.get("tokenizer", values["tokenizer"]) != values["tokenizer"]
    ):
        raise ValueError(f"{folder} brings the tokenizer it was trained with; leave out tokenizer")
    return values


# ---------- data ----------


READ: dict[str, Data] | None = None  # what was read, inside read_once()


@contextlib.contextmanager
def read_once() -> Iterator[None]:
    """Inside, what runs have in common is read and tokenized once: of a small run that takes longer
    than half of it. train() makes its own of it, with the run's seed and state. A loader of one's
    own may heed the seed: it is read anew for each."""
    global READ
    before, READ = READ, {}
    try:
        yield
    finally:
        READ = before


def data_of(config: plain.TrainConfig, block_size: int = 128, tokenizer: Any = None) -> Data:
    """The Data of any TrainConfig: of a loader, a depth task, or text."""
    if READ is None or tokenizer is not None:
        return read_data(config, block_size, tokenizer)
    seed = config.seed if config.loader.endswith(".py") else 0
    key = repr((dataclasses.replace(config, lr=1.0, seed=seed, out_dir="", name=""), block_size))
    if key not in READ:
        if len(READ) == 4:  # enough for a verdict: to tune, and to report at each number of steps
            del READ[next(iter(READ))]
        READ[key] = read_data(config, block_size)
    return READ[key]


def read_data(config: plain.TrainConfig, block_size: int, tokenizer: Any = None) -> Data:
    """What data_of() gives, read anew."""
    if config.loader:
        module = loader(config.loader)
        with mistakes_in(config.loader, "the loader", "has a load_data() that failed"):
            data = module.load_data(config, block_size, tokenizer)
        check_data(data, f"the loader {config.loader}")
        return data
    tasks_named = [source for source in config.data if task(source)]
    if tasks_named and config.val_data:
        drawn = f"the task {min(tasks_named)} draws what it is validated on"
        raise ValueError(f"val_data {config.val_data}: {drawn}; leave it out")
    if tasks_named and len(config.data) > 1:
        named = ", ".join(config.data)
        raise ValueError(f"data {named}: the task {min(tasks_named)} does not mix; give it alone")
    if tasks_named:
        return task_data.make_task_data(task(tasks_named[0]), config, block_size)
    return sources.text_data(config, block_size, tokenizer)


def check_data(data: object, whose: str) -> None:
    """ValueError for what a loader must not make."""
    if not isinstance(data, md.Data):
        raise ValueError(f"{whose}: load_data() must give a minidepth.Data; it gave {data!r:.60}")
    for name, part in (("train", data.train), ("val", data.val)):
        wanted = f"{name} must be (tokens, targets), each (N, T) whole numbers in a NumPy array"
        pair = isinstance(part, (tuple, list)) and len(part) == 2
        arrays = pair and all(isinstance(each, np.ndarray) for each in part)
        if not arrays or any(each.dtype.kind not in "iu" for each in part):
            raise ValueError(f"{whose}: {wanted}; it is {part!r:.60}")
        shapes = [each.shape for each in part]
        if shapes[0] != shapes[1] or len(shapes[0]) != 2 or 0 in shapes[0]:
            raise ValueError(f"{whose}: {wanted}; their shapes are {shapes!s:.60}")
        tokens, targets = part
        if tokens.min() < 0 or ((targets < 0) & (targets != -100)).any():
            below = "has numbers below 0; tokens count from 0, no target is -100"
            raise ValueError(f"{whose}: {name} {below}")
        most = max(int(each.max()) for each in part)
        if most >= data.n_words:
            raise ValueError(f"{whose}: {name} has the word {most}, but n_words is {data.n_words}")


def no_text(run_dir: console.Path) -> str:
    """Why a run has no tokenizer, to be put after its name."""
    _, t = checkpoints.read_config(run_dir)
    if t.loader.endswith(".py"):
        return "was trained on data of one's own, without text"
    if not t.loader and sources.names_task(t.data[0]):
        return "was trained on a depth task: it knows no text"
    return "has lost its folder tokenizer; copy it from another run on the same data"
