"""A run's folder with more care than minidepth.Folder takes: one process at a time, the checkpoint
before is kept, damage is noticed, the settings say where they come from."""

import contextlib
import json
import os
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

import minidepth as md
from minidepth_lab.base import configs, console
from minidepth_lab.keep import checkpoints
from minidepth_lab.models import fsdp


class CarefulFolder(md.Folder):
    """The files of minidepth.Folder, and those that checkpoints.py describes.

    `t` are the settings that the run goes on with, `changed` the names of those of checkpoints.LIFE
    that are others than before; say(line) is told what a user should know. After resume() `log` is
    that of the checkpoint. Its lock holds until release(), or until the process ends.
    """

    def __init__(
        self,
        path: str,
        t: configs.TrainConfig,
        tokenizer: Any = None,
        command: str | None = None,
        changed: Sequence[str] = (),
        say: Callable[[str], object] = print,
    ) -> None:
        super().__init__(path)
        self.t, self.tokenizer, self.command, self.changed = t, tokenizer, command, changed
        self.say, self.done, self.records = say, 0, []  # its last checkpoint: steps, and the log
        self.identity: dict = {}
        self.data_state: dict = {}  # that of the data, where it was saved last
        self.model: nn.Module | None = None  # what a checkpoint has to fit, once it is made
        os.makedirs(path, exist_ok=True)
        # two processes that write one folder would each take the other's checkpoint for its own
        self.lock = checkpoints.locked(path) if self.writes else None

    def release(self) -> None:
        if self.lock:
            self.lock.lock.release()

    def own(self, identity: dict) -> dict:
        """What a run is told apart by, without the name of the user's home folder."""
        text = console.without_home(json.dumps(identity["settings"]))
        self.identity = identity | dict(settings=json.loads(text))
        return self.identity

    def begin(self, identity: dict, tokenizer: Any) -> None:
        identity = self.own(identity)
        if self.writes:
            device = next(self.model.parameters()).device
            checkpoints.begin_folder(self.path, identity, tokenizer, self.command, device)

    def log(self, log: list[dict]) -> None:
        if self.writes:
            checkpoints.write_log(self.path, log)

    def save(self, state: dict, identity: dict) -> None:
        state = fsdp.whole(state)  # with parts of weights everybody is needed for the whole
        self.done, self.data_state = state["step"], dict(state["data"])
        if self.writes:
            checkpoints.save(self.path, state, self.own(identity), self.tokenizer)

    def save_best(self, record: dict) -> None:
        """Keep the weights as those of the best evaluation, whose record this is."""
        weights = fsdp.whole(self.model.state_dict())
        if self.writes and checkpoints.all_finite(weights):
            self.write_best(weights, record)

    def write_best(self, weights: dict[str, torch.Tensor], record: dict) -> None:
        files = checkpoints.tokenizer_files(self.path, self.tokenizer)
        about = dict(step=record["step"], val_loss=record["val_loss"])
        of_model = self.identity["settings"]["model"]
        checkpoints.write_weights(self.path, weights, of_model, files, checkpoints.BEST, **about)

    def check_best(self, state: dict) -> None:
        """Let the best weights be those of the log's best evaluation, whatever --keep was up to
        now: they are the checkpoint's, or others that are kept go."""
        path = checkpoints.path_inside(self.path, checkpoints.BEST)
        if not self.records:
            return
        best = self.records[-1 - checkpoints.since_best(self.records)]
        with contextlib.suppress(ValueError, OSError):
            its = checkpoints.said_of_weights(path)
            if (its.get("step"), its.get("val_loss")) == (best["step"], best["val_loss"]):
                return
        if best["step"] == self.done:
            self.write_best(state["model"], best)
            return
        if os.path.lexists(path):
            os.remove(path)
        self.say(f"the weights of the best evaluation, after step {best['step']}, were not kept")

    def resume(self, identity: dict) -> dict | None:
        identity = self.own(identity)
        state = checkpoints.newest_state(self.path, self.fits, self.say, put_aside=self.writes)
        newer = False  # whether this code has other settings than the one that began the run
        if state:
            names = (*self.changed, *checkpoints.changed_before(self.path))
            checkpoints.check_same_run(self.path, state, identity, names)
            newer = checkpoints.names_of(state["settings"]) != checkpoints.names_of(
                identity["settings"]
            )
            self.done, self.records = state["step"], list(state["log"])
        if why := checkpoints.nothing_left(self.path, self.t, self.done, self.records):
            self.log(self.records)  # it lacks a line if the run died after its last checkpoint
            raise checkpoints.Finished(why)
        if state and self.t.keep == "best" and self.writes:
            self.check_best(state)
        if self.records:  # --stop_after is another one now, and the run goes on
            self.records[-1].pop("ended_early", None)
        if (self.changed or newer) and self.writes:
            checkpoints.change_config(self.path, identity, self.changed, self.done, self.command)
        if state and getattr(self.model, "is_sharded", False):
            weights, moments = state["model"], state["optimizer"]
            state["model"], state["optimizer"] = fsdp.parts_of(weights, moments, self.model)
        return state

    def fits(self, state: dict) -> None:
        """RuntimeError for a checkpoint of another model, as load_state_dict() would raise it."""
        own = self.model.state_dict()
        if state["model"].keys() != own.keys():
            raise RuntimeError("it has other weights than this model")
        for name, weight in state["model"].items():
            if weight.shape != own[name].shape:
                raise RuntimeError(f"size mismatch for {name}: {tuple(weight.shape)}")
        groups = state["optimizer"]["param_groups"]
        if sum(len(group["params"]) for group in groups) != len(list(self.model.parameters())):
            raise RuntimeError("its optimizer is of another model")


def finish_log(folder: CarefulFolder, log: list[dict]) -> None:
    """Write the log of a run that ended early, also into its checkpoint."""
    folder.log(log)
    if folder.writes:
        path = os.path.join(folder.path, checkpoints.STATES[0])
        state = checkpoints.read_state(path) | dict(log=log)
        checkpoints.write(path, lambda f: torch.save(state, f))


def is_there(path: console.Path) -> bool:
    """Whether a run has begun in this folder."""
    return os.path.exists(os.path.join(path, "config.json"))
