"""The files of a run's folder: written whole, read with care."""

import contextlib
import dataclasses
import json
import math
import os
import re
import shlex
import zipfile
import zlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch

from minidepth_lab.base import configs, console, machine
from minidepth_lab.base.data import Data
from minidepth_lab.models import variants
from minidepth_lab.rows import tokenizing

if TYPE_CHECKING:  # to import it takes seconds, which only those pay who have text
    from transformers import PreTrainedTokenizerBase as Tokenizer

# A run's folder:
#     config.json          the settings, the command, the versions, the data's fingerprint
#     log.jsonl            a line for each evaluation
#     model.safetensors    the newest weights, for load()
#     best.safetensors     with --keep best: those of the lowest validation loss, which it prefers
#     state.pt             the same weights with all that --resume needs, and
#     state.previous.pt    the one before, if state.pt should be damaged
#     tokenizer/           as transformers writes it
STATES = ("state.pt", "state.previous.pt")
IN_STATE = {"model", "optimizer", "scaler", "data", "step", "log", "skipped", "in_a_row", "seconds"}
IN_STATE |= {"settings", "fingerprint", "tokenizer"}  # what check_same_run() asks
LAST = "model.safetensors"
BEST = "best.safetensors"
# what may change when a run goes on: where it is kept and computed, not what it computes
PLACES = (
    "out_dir",
    "name",
    "device",
    "precision",
    "fsdp",
    "grad_checkpoint",
    "report_to",
    "minutes",
)
# what may be changed on purpose when a run goes on: how long it lives, and what is kept of it
LIFE = ("steps", "epochs", "lr_steps", "keep", "stop_after")
# where its data is kept, whose fingerprint is compared
DATA_PLACES = ("data", "val_data")
# how the sequences of a step are shared out: with as many of them it is the same step
BATCH = ("batch_size", "grad_accum")


class Finished(ValueError):
    """A run has nothing left to do."""


def path_inside(folder: console.Path, name: str) -> str:
    """The path of a file in a run's folder; ValueError for a link that leads out of it: a folder
    that was given to us is not to make us read or write elsewhere."""
    path, here = os.path.join(folder, name), os.path.realpath(folder)
    if os.path.commonpath((here, os.path.realpath(path))) != here:
        raise ValueError(f"{path} is a link that leads out of the run's folder")
    return path


def write(path: console.Path, save_to: Callable, previous: console.Path | None = None) -> None:
    """Call save_to(file) on a temporary file and move it to `path`: it is whole or not there. What
    was there before goes to the path `previous`, if one is given."""
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        with open(temporary, "wb") as f:
            save_to(f)
            f.flush()
            os.fsync(f.fileno())  # or a power cut could leave the new name on empty blocks
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


def all_finite(weights: dict[str, torch.Tensor]) -> bool:
    """Whether no number in {name: tensor} is infinite or NaN."""
    return all(bool(weight.isfinite().all()) for weight in weights.values())


def weights_checksum(weights: dict[str, torch.Tensor]) -> str:
    """A number, as text, of the names and bytes of {name: tensor}."""
    crc = 0
    for name in sorted(weights):
        flat = weights[name].detach().cpu().contiguous().reshape(-1)
        crc = zlib.crc32(name.encode(), crc)
        crc = zlib.crc32(flat.view(torch.uint8).numpy(), crc)
    return str(crc)


def folder_checksums(folder: console.Path) -> dict[str, int]:
    """{name: number} of the files in a folder, not of those in its folders; ValueError if one of
    them cannot be read."""
    checksums = {}
    with console.one_line_errors(folder, "cannot be read"):
        for name in sorted(os.listdir(folder)):
            path = path_inside(folder, name)
            if os.path.isdir(path):  # .ipynb_checkpoints, say
                continue
            with open(console.regular_file(path), "rb") as f:
                checksums[name] = zlib.crc32(f.read())
    return checksums


def check_tokenizer(run_dir: console.Path, saved: dict) -> None:
    """ValueError unless each file of the tokenizer's folder that is in `saved`, {name: number}, is
    as it was. What else lies there, a .DS_Store say, does no harm."""
    folder = path_inside(run_dir, "tokenizer")
    there = folder_checksums(folder)
    changed = [name for name, number in saved.items() if there.get(name) != number]
    if changed:
        what_is = "is changed or damaged" if changed[0] in there else "is gone"
        raise ValueError(f"{folder} is not what the run was trained with: {changed[0]} {what_is}")


def from_json(value: Any) -> Any:
    """Settings as config.json keeps them → as configs have them: tuples, ~ as the home folder."""
    if isinstance(value, dict):
        return {key: from_json(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return tuple(from_json(part) for part in value)
    if isinstance(
        value, str
    ):  # where console.without_home() has put it: sizes have it behind their =
        home = os.path.expanduser("~")
        return re.sub(r"^(\w+=)?~(?=[/\\]|$)", lambda m: f"{m[1] or ''}{home}", value)
    return value


def settings(m: configs.ModelConfig, t: configs.TrainConfig) -> dict[str, dict]:
    """All settings as config.json keeps them: {"model": {name: value}, "train": {name: value}}."""
    both = dict(model=dataclasses.asdict(m), train=dataclasses.asdict(t))
    return json.loads(console.without_home(json.dumps(both)))


def names_of(both: dict[str, dict]) -> dict[str, list[str]]:
    """The names of all settings()."""
    return {part: sorted(both[part]) for part in ("model", "train")}


def different_settings(one: dict[str, dict], other: dict[str, dict]) -> list[str]:
    """["name: value, value", …] of what differs between two settings(), but for PLACES,
    DATA_PLACES, and BATCH if a step has as many sequences."""
    differing, kept = [], PLACES + DATA_PLACES
    batches = [[each["train"].get(name) for name in BATCH] for each in (one, other)]
    if all(type(n) is int for n in sum(batches, [])) and len(set(map(math.prod, batches))) == 1:
        kept += BATCH
    for part in ("model", "train"):
        # a setting that only newer code has, or older, made no difference where it was not known
        for name in sorted(one[part].keys() & other[part].keys()):
            values = [each[part][name] for each in (one, other)]
            if values[0] != values[1] and name not in kept:
                differing.append(f"{name}: {values[0]!r:.60}, {values[1]!r:.60}")
    return differing


def check_run(folder: console.Path, flag: str) -> None:
    """ValueError where what a command's `flag` was given is no run's folder."""
    if not os.path.isdir(folder):
        raise ValueError(f"--{flag} {folder} is not there; give a run's folder, as runs/NAME")
    if not os.path.lexists(os.path.join(folder, "config.json")):
        raise ValueError(f"--{flag} {folder} holds no run; give a run's folder, as runs/NAME")


def read_about(run_dir: console.Path) -> dict:
    """All that the config.json of a run's folder says; ValueError if it cannot be read."""
    path = path_inside(run_dir, "config.json")
    with console.one_line_errors(path, "is not the configuration of a run"):
        with open(console.regular_file(path), encoding="utf-8") as f:
            about = json.load(f)
        if not isinstance(about, dict):
            raise ValueError(f"it is {console.kind_of(about)}, no object")
        for part in ("model", "train"):
            if not isinstance(about.get(part, {}), dict):
                raise ValueError(f"{part} in it is {console.kind_of(about[part])}, no object")
        return about


LOSSES = ("train_loss", "val_loss")  # null in a log where they are no number
NUMBERS = ("step", "lr", *LOSSES, "seconds", "tokens_per_second")
# what a record may lack
SHARES = ("accuracy", "guess", "shortcut", "train_loss_eval", "grad_norm", "epoch", "skipped_steps")
BY_NAME = ("accuracy_by_family", "accuracy_by_problem", "val_loss_by_source", "accuracy_by_source")


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def check_log(log: Any) -> None:
    """ValueError for what is no log, [{name: value}], or where a value has another type than its
    readers count on."""
    if not isinstance(log, list) or not all(isinstance(record, dict) for record in log):
        raise ValueError(f"a log is {console.kind_of(log)}, no list of records")
    for before, record in zip([dict(step=0), *log], log):
        for name in NUMBERS + SHARES:
            if name in NUMBERS and name not in record:
                raise ValueError(f"it lacks {name}")
            value = record.get(name)
            if not is_number(value) and (value is not None or name not in LOSSES + SHARES):
                raise ValueError(f"{name} {value!r:.40} is not a number")
        if record["step"] <= before["step"]:
            raise ValueError(f"step {record['step']} after step {before['step']}")
        for name in BY_NAME:
            each = record.get(name, {})
            if not isinstance(each, dict) or not all(map(is_number, each.values())):
                raise ValueError(f"{name} {each!r:.40} is not {{name: number}}")
        answers = record.get("answers", [])
        if not isinstance(answers, list) or not all(answer in (0, 1) for answer in answers):
            raise ValueError(f"answers {answers!r:.40} are not a list of 0 and 1")


def read_settings(
    run_dir: console.Path, parts: Sequence[str] = ("model", "train")
) -> dict[str, dict]:
    """The settings() in the config.json of a run's folder, or one of their parts; ValueError if it
    has none."""
    about = read_about(run_dir)
    with console.one_line_errors(
        os.path.join(run_dir, "config.json"), "is not the configuration of a run"
    ):
        return {part: dict(about[part]) for part in parts}


def make_config(kind: type, saved: dict, path: console.Path) -> Any:
    """A ModelConfig or TrainConfig of settings that were saved. Those that were saved are taken,
    whatever the defaults are by now; one that this code no longer has can have no effect here."""
    known = {f.name for f in dataclasses.fields(kind)}
    with console.one_line_errors(path, "is not the configuration of a run"):
        return kind(**from_json({k: v for k, v in saved.items() if k in known})).validate()


def read_config(run_dir: console.Path) -> tuple[configs.ModelConfig, configs.TrainConfig]:
    """(ModelConfig, TrainConfig) of a run folder; ValueError if it is none."""
    saved, path = read_settings(run_dir), os.path.join(run_dir, "config.json")
    m = make_config(configs.ModelConfig, saved["model"], path)
    return m, make_config(configs.TrainConfig, saved["train"], path)


def has_changed(run_dir: console.Path, data: Data) -> bool:
    """Whether the data of a run, read again, is another than it began with, as the fingerprint in
    its config.json says; False where nothing is said, as by older runs."""
    return read_about(run_dir).get("fingerprint") not in (None, data.fingerprint())


def check_new(folder: str) -> None:
    """Raise ValueError for a folder in which a new run would replace something."""
    names = [f.name for f in os.scandir(folder) if not f.is_dir()] if os.path.isdir(folder) else []
    if "config.json" in names:
        go_on = f"or go on with --resume {shlex.quote(folder)} if it was stopped"
        raise ValueError(f"{folder} exists; give another --name, {go_on}")
    own = r".+\.\d+\.tmp|\.lock|stdout\.txt"  # before a run's first step, or a grid's
    if others := [n for n in names if not re.fullmatch(own, n)]:
        raise ValueError(f"{folder} has files of no run: {min(others)}; give another --name")


def locked(folder: console.Path) -> Any:
    """A context that keeps a run's folder to this process, until it ends, however it ends; what a
    process that was killed had half written there goes. ValueError if another process has it."""
    import filelock

    try:
        lock = filelock.FileLock(path_inside(folder, ".lock"), timeout=0).acquire()
    except filelock.Timeout:
        taken = f"{folder} is being trained by another process"
        raise ValueError(f"{taken}; wait for it, or give another --name") from None
    for name in os.listdir(folder):
        if re.fullmatch(r".+\.\d+\.tmp", name):
            os.remove(os.path.join(folder, name))
    return lock


def write_json(path: console.Path, about: dict, hide_home: bool = False) -> None:
    """Write {name: value}; `hide_home`: with ~ for the user's home folder."""
    text = json.dumps(about, indent=1)
    text = console.without_home(text) if hide_home else text
    write(path, lambda f: f.write(text.encode()))


def begin_folder(
    folder: str,
    identity: dict,
    tokenizer: "Tokenizer | None",
    command: str | None,
    device: torch.device,
) -> None:
    """Write what a run's folder says of it before its first step; `identity` as save() has it."""
    check_new(folder)
    if tokenizer:  # before config.json, which says that all is there
        path = path_inside(folder, "tokenizer")
        if os.path.isdir(path):
            folder_checksums(path)  # an error if anything in it leads elsewhere
        save_tokenizer(tokenizer, path)
    about = identity["settings"] | dict(command=command, fingerprint=identity["fingerprint"])
    about |= machine.provenance(device)
    write_json(os.path.join(folder, "config.json"), about, hide_home=True)


def number_or_null(value: Any) -> Any:
    """What JSON holds, with null for what is infinite or NaN, however deep: JSON has neither."""
    if isinstance(value, dict):
        return {key: number_or_null(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [number_or_null(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def json_line(row: dict) -> str:
    """A dict as a line of JSON that every reader takes."""
    return json.dumps(number_or_null(row), allow_nan=False, separators=(",", ":")) + "\n"


def write_log(folder: console.Path, log: list[dict]) -> None:
    """Write the records of a run's log, one a line."""
    lines = [json_line(record).encode() for record in log]
    write(os.path.join(folder, "log.jsonl"), lambda f: f.writelines(lines))


def write_weights(
    folder: console.Path,
    weights: dict[str, torch.Tensor],
    model_settings: dict,
    tokenizer_files: dict[str, int],
    name: str = LAST,
    **notes: Any,
) -> None:
    """Write a file of weights, {name: tensor}, and what load() compares them with, the settings of
    the model as config.json has them, and the checksums of the tokenizer's files. `notes`, such as
    the step, are for whoever reads the file."""
    from safetensors.torch import save as as_bytes

    weights = {name: weight.detach().cpu() for name, weight in weights.items()}
    about = dict(crc32=weights_checksum(weights), model=json.dumps(model_settings))
    about["tokenizer"] = json.dumps(tokenizer_files)
    about |= {key: json.dumps(value) for key, value in notes.items()}
    content = as_bytes(weights, about)
    write(os.path.join(folder, name), lambda f: f.write(content))


def save_tokenizer(tokenizer: "Tokenizer", folder: console.Path) -> None:
    """Write a tokenizer; OSError where the disk does not take it, which its library hides."""
    try:
        tokenizer.save_pretrained(folder)
    except OSError:
        raise
    except Exception as error:  # tokenizers knows no other
        if found := re.search(r"\(os error (\d+)\)", str(error)):
            number = int(found[1])
            raise OSError(number, os.strerror(number), os.fspath(folder)) from None
        raise


def tokenizer_files(folder: console.Path, tokenizer: "Tokenizer | None") -> dict[str, int]:
    """folder_checksums() of a run's tokenizer, which is written again if somebody has taken it
    away; {} without one."""
    if not tokenizer:
        return {}
    path = path_inside(folder, "tokenizer")
    if not os.path.isdir(path):
        save_tokenizer(tokenizer, path)
    return folder_checksums(path)


def save(
    folder: console.Path, state: dict, identity: dict, tokenizer: "Tokenizer | None" = None
) -> None:
    """Write a checkpoint: the `state` of a run after a step, and what it belongs to, `identity`:
    {"settings": settings(), "fingerprint": that of the data}.

    The weights go first and the state, which is all that a resume reads, last: so it cannot be torn
    in two. The checksums are of bytes that are stored, not of anything that this code adds.
    """
    files = tokenizer_files(folder, tokenizer)
    model_settings = identity["settings"]["model"]
    write_weights(folder, state["model"], model_settings, files, step=state["step"])
    newest, previous = (os.path.join(folder, name) for name in STATES)
    whole = state | identity | dict(tokenizer=files)
    write(newest, lambda f: torch.save(whole, f), previous)


def read_state(path: console.Path) -> dict:
    """What save() wrote to `path`, nothing in it executed; ValueError if a bit of it has changed:
    the file is a zip archive, whose checksums PyTorch writes but does not look at."""
    with console.one_line_errors(path, "is not a checkpoint to resume from"):
        with zipfile.ZipFile(console.regular_file(path)) as f:
            if damaged := f.testzip():
                raise ValueError(f"{damaged} in it is damaged")
            state = torch.load(path, map_location="cpu", weights_only=True)
        if missing := IN_STATE - (state.keys() if isinstance(state, dict) else set()):
            raise ValueError(f"it lacks {min(missing)}")
        check_state(state)
        if not all_finite(state["model"]):
            raise ValueError("it holds infinite or NaN weights")
        return state


def check_state(state: dict) -> None:
    """ValueError for a part of a checkpoint that has another type than save() gave it."""
    kinds = dict.fromkeys(("step", "skipped", "in_a_row"), int) | dict(fingerprint=list, log=list)
    kinds |= dict.fromkeys(("model", "optimizer", "scaler", "data", "settings", "tokenizer"), dict)
    for name, kind in kinds.items():
        value = state[name]
        if type(value) is not kind and not (kind is dict and isinstance(value, dict)):
            raise ValueError(f"{name} in it is {console.kind_of(value)}")
        if kind is int and value < 0:
            raise ValueError(f"{name} in it is {value}")
    if not is_number(state["seconds"]):
        raise ValueError(f"seconds in it is {console.kind_of(state['seconds'])}")
    if not all(isinstance(state["settings"].get(part), dict) for part in ("model", "train")):
        raise ValueError("settings in it are none")
    check_log(state["log"])


def has_checkpoint(folder: console.Path) -> bool:
    """Whether a run's folder has something to resume from, damaged or not."""
    return any(os.path.lexists(os.path.join(folder, name)) for name in STATES)


def newest_state(
    folder: console.Path,
    restore: Callable,
    say: Callable[[str], object] = print,
    put_aside: bool = True,
) -> dict | None:
    """Give restore() the newest checkpoint of a run's folder that is whole → that state; None if
    the run was stopped before its first one. What is damaged is told to say() and put aside, or the
    next save would keep it as the one before. ValueError where none can be used."""
    there = [name for name in STATES if os.path.lexists(os.path.join(folder, name))]
    if not there:
        return None
    if there == [STATES[1]]:
        gone = os.path.join(folder, STATES[0])
        say(f"{gone} is gone; so the run goes on from the one before it")
    for name in there:
        path = os.path.join(folder, name)
        try:
            state = read_state(path_inside(folder, name))
            with console.one_line_errors(path, "is not a checkpoint to resume from"):
                restore(state)
            return state
        except ValueError as error:
            # who may not read a file does not know whether it is damaged
            if name == there[-1] or isinstance(error.__cause__, PermissionError):
                raise
            say(f"{error}; so the run goes on from the checkpoint before it")
            if put_aside:
                os.replace(path, f"{path}.damaged")


def check_same_run(
    folder: console.Path, state: dict, identity: dict, changed: Sequence[str] = ()
) -> None:
    """ValueError where a checkpoint is of other settings, but for those `changed` on purpose, of
    other data or another tokenizer."""
    if state["fingerprint"] != identity["fingerprint"]:
        raise ValueError(f"the data of {folder} is not what its checkpoint was trained on")
    then = dict(state["settings"], train=dict(state["settings"]["train"]))
    then["train"] |= {name: identity["settings"]["train"][name] for name in changed}
    if differing := different_settings(identity["settings"], then):
        where = os.path.join(folder, "config.json")
        listed = "; ".join(differing)
        raise ValueError(f"{where} has other settings than its checkpoint: {listed:.300}")
    if os.path.isdir(os.path.join(folder, "tokenizer")):  # if it is gone, save() writes it again
        check_tokenizer(folder, state["tokenizer"])


def changed_before(folder: console.Path) -> tuple[str, ...]:
    """The names of the settings that were changed when a run went on, as its config.json says."""
    earlier = read_about(folder).get("earlier", [])
    with console.one_line_errors(
        os.path.join(folder, "config.json"), "is not the configuration of a run"
    ):
        return tuple(name for name in LIFE if any(name in each["train"] for each in earlier))


def change_config(
    folder: console.Path, identity: dict, changed: Sequence[str], done: int, command: str | None
) -> None:
    """Let config.json have the settings that a run goes on with, and under "earlier" those that it
    was trained with up to now, and by which command."""
    about = read_about(folder)
    before = {name: about["train"].get(name) for name in changed}
    entry = dict(steps_done=done, train=before, command=about.get("command"))
    about["earlier"] = [*about.get("earlier", []), entry]
    about |= identity["settings"] | dict(command=command)
    write_json(os.path.join(folder, "config.json"), about, hide_home=True)


def is_over(log: list[dict], steps: int) -> bool:
    """Whether the log of a run says that it is finished: its steps are done, or --stop_after has
    ended it."""
    return bool(log) and (log[-1]["step"] >= steps or log[-1].get("ended_early", False))


def nothing_left(folder: console.Path, t: configs.TrainConfig, done: int, log: list[dict]) -> str:
    """What to say of a run that is finished with the settings that it has now; "" if it goes on."""
    early = bool(log) and log[-1].get("ended_early") and waited_enough(log, t)
    if done < t.steps and not early:
        return ""
    why = f"give more --{'epochs' if t.epochs else 'steps'} to go on"
    if done < t.steps:
        why = "--stop_after has ended it, give --stop_after 0 to go on"
    return f"{folder} is finished: {done} of {t.steps} steps are done; {why}"


def waited_enough(log: list[dict], t: configs.TrainConfig) -> bool:
    """Whether --stop_after is to end a run with this log. What --minutes measured at its end, or a
    last step that no longer is one, was no evaluation that it waits for."""
    planned = [record for record in log if record["step"] == 1 or not record["step"] % t.eval_every]
    return 0 < t.stop_after <= since_best(planned)


def since_best(log: list[dict]) -> int:
    """How many evaluations of a log came after the one with the lowest validation loss."""
    losses = [record["val_loss"] for record in log]
    losses = [math.inf if loss is None or math.isnan(loss) else loss for loss in losses]
    return len(losses) - 1 - losses.index(min(losses))


def saved_tokenizer(run_dir: console.Path) -> "Tokenizer | None":
    """The tokenizer of a run folder; None where it has none, as the depth tasks'."""
    folder = os.path.join(run_dir, "tokenizer")
    if not os.path.isdir(folder):
        return None
    folder_checksums(path_inside(run_dir, "tokenizer"))  # an error if anything leads out of it
    return tokenizing.load_tokenizer(folder)


def said_of_weights(path: console.Path) -> dict:
    """What a file of weights says of itself, as write_weights() was given it, of other programs'
    {}; ValueError for a value of another type."""
    from safetensors import safe_open

    with safe_open(console.regular_file(path), "pt") as f:
        written = f.metadata() or {}
    about = {name: written[name] for name in ("crc32",) if name in written}
    kinds = dict(model=dict, tokenizer=dict, step=int, val_loss=float)
    for name, kind in kinds.items():
        if name not in written:
            continue
        with console.one_line_errors(f"{name} of the weights", "is damaged"):
            about[name] = json.loads(written[name])
        if not isinstance(about[name], kind) and not (kind is float and is_number(about[name])):
            raise ValueError(f"{name} of the weights is {console.kind_of(about[name])}")
    return about


def read_weights(path: console.Path, n_parameters: int) -> tuple[dict[str, torch.Tensor], dict]:
    """The weights in a file that save() wrote, {name: tensor}, and said_of_weights();
    ValueError if they have not so many parameters, or are damaged."""
    from safetensors import safe_open

    about = said_of_weights(path)
    with safe_open(path, "pt") as f:
        weights = {name: f.get_tensor(name) for name in f.keys()}
    there = sum(weight.numel() for weight in weights.values())
    if there != n_parameters:
        raise ValueError(f"size mismatch, {there:,} weights for {n_parameters:,} parameters")
    crc = weights_checksum(weights)
    if about.get("crc32", crc) != crc:  # there is none if another program wrote them
        raise ValueError("it is damaged")
    if not all_finite(weights):
        raise ValueError("it holds infinite or NaN weights")
    return weights, about


def is_run(folder: console.Path) -> bool:
    """Whether a folder has the config.json of a run, not that of another program."""
    with contextlib.suppress(ValueError):
        return bool(read_settings(folder))
    return False


def settings_of_weights(folder: console.Path) -> dict:
    """{setting: value} of a model that begins with the weights of a run: all that its model has,
    and its tokenizer, if it has one."""
    if not os.path.isdir(folder):
        raise ValueError(f"init_from {folder} is not there; give a run's folder, as runs/NAME")
    path = os.path.join(folder, "config.json")
    values = dataclasses.asdict(
        make_config(configs.ModelConfig, read_settings(folder)["model"], path)
    )
    words = os.path.join(folder, "tokenizer")
    if os.path.isdir(words):
        values["tokenizer"] = words
    return values


def weights_file(run_dir: console.Path) -> str:
    """The name of the file whose weights load() takes: of the best validation loss, where a run
    keeps them, else the last. One that was resumed with --keep last keeps them no more."""
    there = os.path.lexists(os.path.join(run_dir, BEST))
    return BEST if there and read_settings(run_dir)["train"].get("keep") == "best" else LAST


def describe_weights(run_dir: console.Path) -> str | None:
    """Which of its weights load() takes of a run's folder, as a line; None where it has no choice.
    ValueError where the file is damaged."""
    if weights_file(run_dir) == LAST:
        return None
    path = path_inside(run_dir, BEST)
    with console.one_line_errors(path, "is not a checkpoint of this model"):
        about = said_of_weights(path)
    loss = about.get("val_loss", math.nan)
    of = f"of step {about.get('step', 'unknown')}, with the best validation loss, {loss:.4f}"
    return console.visible(f"weights {path}, {of}; the last ones are in {LAST}")


def load(run_dir: console.Path, file: str | None = None) -> tuple[variants.GPT, Any]:
    """(model, tokenizer) of a run folder, on the CPU, in eval mode, the tokenizer None for a task;
    ValueError if it is broken. Of the settings only the model's are needed, and `keep` where there
    are best weights. `file` names one of its files of weights, LAST or BEST; if it is not given, it
    is the one of weights_file()."""
    saved = read_settings(run_dir, ("model",))["model"]
    m = make_config(configs.ModelConfig, saved, os.path.join(run_dir, "config.json"))
    path = path_inside(run_dir, file or weights_file(run_dir))
    with console.one_line_errors(path, "is not a checkpoint of this model"):
        # counted before memory is taken for what a damaged config.json describes
        weights, about = read_weights(path, variants.parameters(m)["total"])
        if "model" in about and about["model"] != saved:
            raise ValueError("config.json is not what it was trained with")
        model = variants.GPT(m).eval()
        model.load_state_dict(weights)
        if not model(torch.arange(min(m.vocab_size, m.block_size, 64))[None]).isfinite().all():
            raise ValueError("it has diverged: its logits are infinite or NaN")
    tokenizer = saved_tokenizer(run_dir)
    if tokenizer:
        if "tokenizer" in about:
            check_tokenizer(run_dir, about["tokenizer"])
        model.n_words = len(tokenizer)
    return model, tokenizer
