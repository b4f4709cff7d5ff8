"""What minidepth lets in, settings and files; how it writes, whole or not at all; what the folder
of a run holds; and what several processes tell each other.

minidepth.py offers these names as its own. Nothing here knows what a model is; read this file when
you want to know why a run that was killed, or whose disk lost a bit, goes on to the same result.
"""

import contextlib
import dataclasses
import importlib.metadata
import json
import os
import platform
import re
import shlex
import subprocess
import zipfile
import zlib

import numpy as np
import torch

# ---------- settings ----------

MOST = 2**53  # of any setting: up to here floats, and with them JSON everywhere, count exactly


def plain(value):
    """NumPy's numbers as Python's: the others print, and so seed generators, in another way."""
    if isinstance(value, tuple):
        return tuple(plain(part) for part in value)
    return value.item() if isinstance(value, np.generic) else value


KINDS = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}
UNSEEN = r"[\x00-\x1f\x7f\ud800-\udfff]"  # half characters and what moves a terminal


def check_fields(config):
    """Make NumPy's numbers Python's; ValueError for a field of another type or beyond limits."""
    for f in dataclasses.fields(config):
        value = plain(getattr(config, f.name))
        setattr(config, f.name, value)
        if value is None and f.default is None:
            continue
        if f.type is tuple and (not isinstance(value, (tuple, list)) or (f.default and not value)):
            raise ValueError(f"{f.name} {value!r:.40} does not work; give a tuple of at least one")
        several = f.type not in KINDS and isinstance(value, (tuple, list))
        for v in value if several else (value,):
            check_value(f, v)


def check_value(f, v):
    """Raise ValueError for a value, or a part of it, that the field cannot have."""
    low, high, choices = (f.metadata[name] for name in ("low", "high", "choices"))
    kind = f.type
    if kind not in KINDS:  # a tuple, of numbers if it has limits, else of texts
        kind = str if low is None else int
    good, wanted = type(v) is kind or (kind is float and type(v) is int), KINDS[kind]
    if kind in (int, float):
        good = good and low <= v <= high
        wanted += f" at least {low:g}"
        if high < MOST or (type(v) in (int, float) and high < v < float("inf")):
            wanted = f"{KINDS[kind]} from {low:g} to {high:.10g}"
    if good and kind is str and (re.search(UNSEEN, v) or not (v.strip() or v == f.default)):
        good, wanted = False, "a text that is not empty, without control characters"
    if good and choices and v not in choices:
        raise ValueError(f"{f.name} {v!r:.40} is unknown; choose from {', '.join(choices)}")
    if not good:
        raise ValueError(f"{f.name} {v!r:.40} does not work; give {wanted}")


def from_json(value):
    """Settings as config.json keeps them → as configs have them: tuples, ~ as the home folder."""
    if isinstance(value, dict):
        return {key: from_json(part) for key, part in value.items()}
    if isinstance(value, list):
        return tuple(from_json(part) for part in value)
    if isinstance(value, str) and (value == "~" or value[:2] in ("~/", "~\\")):
        return os.path.expanduser(value)
    return value


# what may change when a run goes on
PLACES = ("out_dir", "name", "device", "precision", "fsdp", "grad_checkpoint")


def settings(m, t):
    """What a run's results follow from, as text: what differs from the defaults."""
    parts = []
    for config in (m, t):
        for f in dataclasses.fields(config):
            value = getattr(config, f.name)
            if value != f.default and f.name not in PLACES:
                parts.append(f"{f.name}={value!r}")
    return without_home(" ".join(parts))


# ---------- reading ----------


@contextlib.contextmanager
def blame(path, problem):
    """Make any error a ValueError: parsers raise all kinds on a broken file."""
    try:
        yield
    except (Exception, SystemExit) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        short = reason if len(reason) <= 150 else f"{reason[:149].rsplit(' ', 1)[0]} …"
        raise ValueError(f"{path} {problem}: {short}") from error


def regular(path):
    """The path, if it is one of a file that ends: a pipe, say, would be waited on for ever."""
    if os.path.exists(path) and not os.path.isfile(path):
        raise ValueError("it is not a regular file")
    return path


def inside(folder, name):
    """The path of a file in a run's folder; ValueError for a link that leads out of it: a folder
    that was given to us is not to make us read or write elsewhere."""
    path, here = os.path.join(folder, name), os.path.realpath(folder)
    if os.path.commonpath((here, os.path.realpath(path))) != here:
        raise ValueError(f"{path} is a link that leads out of the run's folder")
    return path


def parsed(text):
    """The value of a JSON text; ValueError for half a character, which no tokenizer takes."""
    value = json.loads(text)
    json.dumps(value, ensure_ascii=False).encode()
    return value


def whole_state(path):
    """What torch.save() wrote to `path`, nothing in it executed; ValueError if a bit of it has
    changed: the file is a zip archive, whose checksums PyTorch writes but does not look at."""
    with blame(path, "is not a checkpoint to resume from"), zipfile.ZipFile(regular(path)) as f:
        if damaged := f.testzip():
            raise ValueError(f"{damaged} in it is damaged")
        return torch.load(path, map_location="cpu", weights_only=True)


def whole_weights(path, used, n):
    """The n weights that RunFolder.save() wrote to a file, {name: tensor}, and what else it says,
    {name: text}; ValueError if they are others, or were trained with other settings than `used`."""
    from safetensors import safe_open

    with safe_open(regular(path), "pt") as f:
        weights, about = {name: f.get_tensor(name) for name in f.keys()}, f.metadata() or {}
    found = sum(weight.numel() for weight in weights.values())
    if found != n:
        raise ValueError(f"size mismatch, {found:,} weights for {n:,} parameters")
    crc = checksum(weights, used)
    if about.get("crc32", crc) != crc:  # there is none if another program wrote them
        raise ValueError("it is damaged, or config.json is not what it was trained with")
    if not all_finite(weights):
        raise ValueError("it holds infinite or NaN weights")
    return weights, about


# ---------- what damage is noticed by ----------


def checksum(weights, about=""):
    """A number, as text, of {name: tensor} and of what else they are to be used with."""
    crc = zlib.crc32(about.encode())
    for name in sorted(weights):
        flat = weights[name].detach().cpu().contiguous().reshape(-1)
        crc = zlib.crc32(name.encode(), crc)
        crc = zlib.crc32(flat.view(torch.uint8).numpy(), crc)
    return str(crc)


def folder_checksum(folder):
    """A number, as text, of all files in a folder; ValueError if it holds anything else."""
    crc = 0
    with blame(folder, "cannot be read"):
        for name in sorted(os.listdir(folder)):
            with open(regular(inside(folder, name)), "rb") as f:
                crc = zlib.crc32(f.read(), zlib.crc32(name.encode(), crc))
    return str(crc)


def all_finite(weights):
    """Whether no number in {name: tensor} is infinite or NaN."""
    return all(bool(weight.isfinite().all()) for weight in weights.values())


# ---------- writing ----------


def write_file(path, write, previous=None):
    """Call write(file) on a temporary file and move it to `path`: it is whole or not there. What
    was there before goes to the path `previous`, if one is given."""
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        with open(temporary, "wb") as f:
            write(f)
            f.flush()
            os.fsync(f.fileno())
        if previous and os.path.exists(path):
            os.replace(path, previous)
        os.replace(temporary, path)
    except (OSError, RuntimeError) as error:  # torch.save hides a full disk in a RuntimeError
        cause = error if isinstance(error, OSError) else error.__context__
        if isinstance(cause, OSError):
            raise OSError(cause.errno, cause.strerror, path) from None
        raise
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.remove(temporary)


def check_new(folder):
    """Raise ValueError for a folder in which a new run would replace something."""
    names = [f.name for f in os.scandir(folder) if not f.is_dir()] if os.path.isdir(folder) else []
    if "config.json" in names:
        go_on = f"or go on with --resume {shlex.quote(folder)} if it was stopped"
        raise ValueError(f"{folder} exists; give another --name, {go_on}")
    own = r".+\.\d+\.tmp|\.lock|tokenizer|stdout\.txt"  # before a run's first step, or a grid's
    if others := [n for n in names if not re.fullmatch(own, n)]:
        raise ValueError(f"{folder} has files of no run: {min(others)}; give another --name")


def locked(folder):
    """A context that keeps a run's folder to this process, until it ends, however it ends. What a
    process that was killed had half written there goes."""
    import filelock

    try:
        lock = filelock.FileLock(inside(folder, ".lock"), timeout=0).acquire()
    except filelock.Timeout:
        what = f"{folder} is being trained by another process"
        raise ValueError(f"{what}; wait for it, or give another --name") from None
    for name in os.listdir(folder):
        if re.fullmatch(r".+\.\d+\.tmp", name):
            os.remove(os.path.join(folder, name))
    return lock


def without_home(text):
    """The text with ~ for the user's home folder, whose name is nobody else's business."""
    home = os.path.expanduser("~")
    if len(home) < 3:  # "/": there is no home
        return text
    for spelled in (home.replace("\\", "\\\\"), home):  # in JSON a backslash is doubled
        text = re.sub(rf"(?<![\w/.~-]){re.escape(spelled)}(?=[/\\\s'\",:]|$)", "~", text)
    return text


def provenance(device):
    """What is needed to make a figure again: versions, device, commit (+ if changed since)."""
    versions = {name: importlib.metadata.version(name) for name in ("torch", "transformers")}
    versions["python"] = platform.python_version()
    name = f"{platform.machine()} CPU, {torch.get_num_threads()} threads"
    if device.type == "cuda":
        name = f"{torch.cuda.device_count()} x {torch.cuda.get_device_name()}, {name}"
    git, commit = ["git", "describe", "--always", "--dirty=+", "--abbrev=40"], None
    with contextlib.suppress(OSError):  # no git here
        here = os.path.dirname(os.path.abspath(__file__))
        done = subprocess.run(git, cwd=here, capture_output=True, text=True)
        commit = done.stdout.strip() or None
    return dict(versions=versions, device=name, commit=commit)


# ---------- the folder of a run ----------

STATES = ("state.pt", "state.previous.pt")  # the newest checkpoint and the one before it


class RunFolder:
    """What a run leaves on the disk, and how it is noticed that this has changed since.

    path, the folder; m and t, the run's configurations; data, what it is trained on
    """

    def __init__(self, path, m, t, data):
        self.path, self.m, self.t, self.used = path, m, t, settings(m, t)
        self.tokenizer, self.fingerprint = data.tokenizer, data.fingerprint()

    def file(self, name):
        return os.path.join(self.path, name)

    def begin(self, command, device):
        """Write what the folder says of the run before its first step."""
        check_new(self.path)
        self.keep_tokenizer(anew=True)  # before config.json, which says that all is there
        m, t = dataclasses.asdict(self.m), dataclasses.asdict(self.t)
        about = dict(model=m, train=t, command=command, fingerprint=self.fingerprint)
        about |= provenance(device)
        text = without_home(json.dumps(about, indent=1)).encode()
        write_file(self.file("config.json"), lambda f: f.write(text))

    def keep_tokenizer(self, anew=False):
        """Write the tokenizer if it is not there → the checksum of its files, "" without one."""
        if not self.tokenizer:
            return ""
        folder = inside(self.path, "tokenizer")
        there = os.path.isdir(folder) and folder_checksum(folder)  # nothing in it leads elsewhere
        if anew or not there:
            self.tokenizer.save_pretrained(folder)
        return folder_checksum(folder)

    def write_log(self, log):
        lines = [json.dumps(row).encode() + b"\n" for row in log]
        write_file(self.file("log.jsonl"), lambda f: f.writelines(lines))

    def save(self, state):
        """Write a checkpoint, the weights first. A resume reads the state alone, so that it cannot
        be torn in two; the log comes last: a run whose log is at its end has its last weights."""
        from safetensors.torch import save as as_bytes

        tokenizer = self.keep_tokenizer()
        about = dict(crc32=checksum(state["model"], self.used), tokenizer=tokenizer)
        state = state | dict(fingerprint=self.fingerprint, settings=self.used, tokenizer=tokenizer)
        newest, previous = (self.file(name) for name in STATES)
        weights = self.file("model.safetensors")
        write_file(weights, lambda f: f.write(as_bytes(state["model"], about)))
        write_file(newest, lambda f: torch.save(state, f), previous)

    def restore(self, take, say):
        """Give take() the newest checkpoint, or where that is damaged the one before it, which is
        told to say(); nothing if the run was stopped before its first one. ValueError where none
        can be used, or the run's settings, data or tokenizer have changed."""
        there = [name for name in STATES if os.path.lexists(self.file(name))]
        if not there:
            return
        if there == [STATES[1]]:
            say(f"{self.file(STATES[0])} is gone; so the run goes on from the one before it")
        try:
            fingerprint, used, tokenizer = self.read(there[0], take)
        except ValueError as error:
            if len(there) == 1:
                raise
            say(f"{error}; so the run goes on from the checkpoint before it")
            fingerprint, used, tokenizer = self.read(there[1], take)
            if processes()[0] == 0:  # or the next save would put it in its place
                os.replace(self.file(there[0]), self.file(f"{there[0]}.damaged"))
        if fingerprint != self.fingerprint:
            raise ValueError(f"the data of {self.path} is not what its checkpoint was trained on")
        if used != self.used:
            differ = set(used.split(" ")) ^ set(self.used.split(" "))
            what = f"has other settings than its checkpoint: {', '.join(sorted(differ))}"
            raise ValueError(f"{self.file('config.json')} {what:.300}")
        here = os.path.isdir(self.file("tokenizer"))  # if not, save() writes it again
        if here and tokenizer != self.keep_tokenizer():
            raise ValueError(f"{self.file('tokenizer')} is not what the run was trained with")

    def read(self, name, take):
        """Give take() the checkpoint in a file → what it says of the run's data, settings and
        tokenizer; ValueError if it is none."""
        state = whole_state(inside(self.path, name))
        with blame(self.file(name), "is not a checkpoint to resume from"):
            if not all_finite(state["model"]):
                raise ValueError("it holds infinite or NaN weights")
            take(state)
            return state["fingerprint"], state["settings"], state["tokenizer"]


# ---------- several processes ----------


def processes():
    """(rank, world): which process of how many this is, as torchrun says."""
    return int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))


def check_share(batch_size):
    """Raise ValueError for a batch of which some processes would get less than others."""
    world = processes()[1]
    if batch_size % world:
        what = f"batch_size {batch_size} does not divide among {world} processes"
        raise ValueError(f"{what}; give a multiple of {world}")


def connect(device):
    """Let the processes of torchrun, each with its device, find one another."""
    if device.type == "cuda":
        torch.cuda.set_device(device)
    if not torch.distributed.is_initialized():
        torch.distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")


def sum_over_processes(loss, stopping, device):
    """The sum of all processes' shares of the loss, and whether any of them is asked to stop."""
    if not torch.distributed.is_initialized():
        return loss, stopping
    sums = torch.tensor([loss, stopping], device=device)
    torch.distributed.all_reduce(sums)
    return sums[0].item(), sums[1].item() > 0


def check_same_step(step, device, folder):
    """Raise ValueError if the processes would go on from different steps: each of them reads the
    run's folder for itself, and another machine may have an older copy of it, or none."""
    if not torch.distributed.is_initialized():
        return
    ends = torch.tensor([step, -step], device=device)
    torch.distributed.all_reduce(ends, torch.distributed.ReduceOp.MAX)
    last, first = ends[0].item(), -ends[1].item()
    if first != last:
        what = f"{folder} is at step {first} for one process and at step {last} for another"
        raise ValueError(f"{what}; let all machines share the folder, or copy it to each of them")


def shard_model(model, parts, device):
    """The model with each process keeping its share of every weight, gradient and moment. The whole
    weights of one of its `parts` are put together where it is computed, and let go."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh(device.type, (processes()[1],))
    for part in parts:
        fully_shard(part, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def unshard(value):
    """A state_dict() with every tensor that is shared out put together, on the CPU: so a run's
    files are the same with --fsdp and without. All processes call this alike."""
    if isinstance(value, dict):
        return {key: unshard(part) for key, part in value.items()}
    return value.full_tensor().cpu() if hasattr(value, "full_tensor") else value


def shard_like(saved, own):
    """What unshard() gave, {key: tensor or dict of them}, with each tensor shared out as in `own`,
    {key: parameter}; unchanged where the parameters are not."""
    from torch.distributed.tensor import distribute_tensor

    def share(value, parameter):
        if isinstance(value, dict):  # the moments of a parameter, and a count of steps
            return {key: share(part, parameter) for key, part in value.items()}
        if hasattr(parameter, "full_tensor") and value.shape == parameter.shape:
            return distribute_tensor(value, parameter.device_mesh, parameter.placements)
        return value

    return {key: share(value, own.get(key)) for key, value in saved.items()}
