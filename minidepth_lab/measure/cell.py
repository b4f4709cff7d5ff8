"""One run of a grid: its folder's name, the command line that trains it in a process of its own or
goes on with it, and whether it is finished."""

import dataclasses
import os
import pathlib
import subprocess
import sys

from minidepth_lab.base import configs, console
from minidepth_lab.keep import checkpoints, naming, running
from minidepth_lab.measure import results
from minidepth_lab.measure.results import METRICS, number_or_text
from minidepth_lab.tasks.base.sizes import by_name

ROOT = str(pathlib.Path(__file__).resolve().parents[2])  # where a run's process finds the packages
FIELDS = [
    f.name for kind in (configs.ModelConfig, configs.TrainConfig) for f in dataclasses.fields(kind)
]
OF_DATA = (  # all settings that make other data
    "data", "sizes", "loader", "val_data", "tokenizer", "tokenizer_size", "problem_steps",
    "ring_questions", "max_rows", "val_fraction", "packing", "long_rows", "loss_on",
)  # fmt: skip
PLACES = [name for name in checkpoints.PLACES if name not in ("out_dir", "name")]
POSIX = os.name == "posix"


# ---------- names and command lines ----------


def shown(value):
    """A setting as it is typed: (8, 4) → 8,4"""
    if isinstance(value, (tuple, list)):
        return ",".join(str(part) for part in value)
    return str(value)


def grid_name(preset, cells):
    """A folder's name for a grid: the preset and every value of what was changed."""
    values = {}
    for key in cells[0].settings:
        distinct = dict.fromkeys(shown(cell.settings[key]) for cell in cells)
        values[key] = "+".join(distinct)
    return naming.run_name(f"grid_{preset}", values)


def as_flags(settings):
    """Settings as the command line that gives them."""
    line = []
    for key, value in settings.items():
        if value is None:
            raise ValueError(f"{key} None cannot be typed as a flag; leave it out")
        if isinstance(value, bool):
            line.append(f"--{key}" if value else f"--no-{key}")
        elif key == "data":
            line.append("--data")
            line.extend([value] if isinstance(value, str) else value)
        else:
            line.extend([f"--{key}", shown(value)])
    return line


def typed_preset(preset, study):
    """(preset, settings) for a run's command line, which names no study: a preset that only a
    study of one's own knows is spelled out, from the defaults."""
    lab = pathlib.Path(__file__).resolve().parents[1]
    own = study and not pathlib.Path(study.__file__).resolve().is_relative_to(lab)
    if own and preset in getattr(study, "PRESETS", {}):
        return "report", dict(vocab_size=0) | study.PRESETS[preset]  # the report is the defaults
    return preset, {}


# ---------- one run ----------


@dataclasses.dataclass
class Cell:
    """A run of a grid."""

    labels: dict  # what tells it from the others
    settings: dict  # what differs from the preset
    m: configs.ModelConfig
    t: configs.TrainConfig

    def __str__(self):
        return ", ".join(f"{key} {shown(value)}" for key, value in self.labels.items())

    @property
    def folder(self):
        return os.path.join(self.t.out_dir, self.t.name)

    @property
    def cost(self):
        """Its share of the grid's time, in layers passed: near enough for a progress bar."""
        return self.t.steps * (self.m.n_layers * self.m.n_loops + 1)

    def command(self, preset, settings):
        """The arguments of train.py that train it, or go on with it if it was stopped."""
        if not os.path.exists(os.path.join(self.folder, "config.json")):
            every = settings | self.settings
            every.pop("name", None)
            return ["--preset", preset, *as_flags(every), "--name", self.t.name]
        # where it is computed, and how long it may take, may have changed since it was stopped
        places = dict(minutes=self.t.minutes)
        places |= {name: self.settings[name] for name in PLACES if name in self.settings}
        line = ["--resume", self.folder, *as_flags(places)]
        # a run's folder names no code to execute: only a command line does
        if any(source.endswith(".py") for source in self.t.data):
            line.extend(["--data", *self.t.data])
        if self.t.loader.endswith(".py"):
            line.extend(["--loader", self.t.loader])
        return line

    def start(self, preset, settings, environment):
        """Start it in a process of its own; OSError if that or its folder cannot be made."""
        os.makedirs(self.folder, exist_ok=True)
        path = os.path.join(self.folder, "stdout.txt")
        if os.path.lexists(path):
            console.regular_file(checkpoints.path_inside(self.folder, "stdout.txt"))
        found = (ROOT, environment.get("PYTHONPATH"))
        with open(path, "ab") as out:
            return subprocess.Popen(
                [sys.executable, "-m", "minidepth_lab.command", *self.command(preset, settings)],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env=environment
                | dict(PYTHONPATH=os.pathsep.join(filter(None, found)))
                | {running.GRID: str(os.getpid())},
                # a terminal's Ctrl-C reaches the grid alone, which hands it on once
                start_new_session=POSIX,
            )

    def last_line(self):
        """Of what the run printed."""
        path = os.path.join(self.folder, "stdout.txt")
        with open(console.regular_file(path), encoding="utf-8", errors="replace") as f:
            lines = f.read().split("\n")
        said = [line.strip() for line in lines if line.strip()]
        return said[-1] if said else "no output"

    def outcome(self, code):
        """(whether it is finished, what to print of it) of a run that ended with an exit code."""
        try:
            if code < 0:
                return False, f"ended by signal {-code}; its last line: {self.last_line()}"
            # one that died between its last checkpoint and the log mends it, and says so with a 2
            if code > 0 and not is_finished(self.m, self.t):
                return False, self.last_line()
            row = results.result(self.folder)
        except (OSError, ValueError) as error:
            return False, str(error)
        numbers = [f"{METRICS[key][0]} {row[key]:.4g}" for key in METRICS if key in row]
        return True, f"{', '.join(numbers[:2])} ({row['seconds']:.0f}s)"


def sizes_by_name(sizes):
    """("hops=1+2", "symbols=4") → {"hops": [1, 2], "symbols": [4]}"""
    values = {}
    for name, value in by_name(sizes).items():
        values[name] = [number_or_text(part) for part in value.split("+")]
    return values


def is_finished(m, t):
    """Whether the run's folder holds it, to the end; ValueError if it holds a different one. Of a
    folder without a config.json that can be read: no, and the run that goes on with it says why.
    One that --minutes has ended goes on if it has all the time now."""
    folder = os.path.join(t.out_dir, t.name)
    try:
        was_m, was_t = checkpoints.read_config(folder)
    except ValueError:
        return False
    # what the data made of the settings, and where they were used, makes no other run
    m = dataclasses.replace(m, vocab_size=m.vocab_size or was_m.vocab_size)
    steps = was_t.steps if t.epochs else t.steps
    minutes, place = t.minutes, {name: getattr(was_t, name) for name in checkpoints.PLACES}
    given, stored = sizes_by_name(t.sizes), sizes_by_name(was_t.sizes)
    same_sizes = all(stored.get(name) == value for name, value in given.items())
    t = dataclasses.replace(t, steps=steps, sizes=was_t.sizes, **place)
    if (m, t) != (was_m, was_t) or not same_sizes:
        raise ValueError(f"{folder} holds a run with other settings; give another --out_dir")
    try:
        row = results.result(folder)
    except ValueError:
        return False
    return bool(minutes or checkpoints.nothing_left(folder, was_t, row["step"], row["log"]))


def other_data(cells):
    """[(cell, other cell)] of finished runs with the same settings of their data but not the same
    data, as the fingerprints in their folders say: a file has changed between the two."""
    first, differing = {}, []
    for cell in cells:
        its = checkpoints.read_about(cell.folder).get("fingerprint")  # older runs have none
        kind = repr([cell.m.block_size, *(getattr(cell.t, name) for name in OF_DATA)])
        if its is None or cell.t.loader.endswith(".py"):  # which may heed the seed, or anything
            continue
        one, fingerprint = first.setdefault(kind, (cell, its))
        if its != fingerprint:
            differing.append((one, cell))
    return differing
