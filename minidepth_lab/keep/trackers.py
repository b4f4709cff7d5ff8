"""What a run measures, told to a tracker of experiments as well: --report_to tensorboard, wandb or
trackio, where it is installed. Nothing leaves the machine unless the tracker is asked for that:
W&B is offline unless WANDB_MODE says otherwise, the others write files.

    tensorboard --logdir runs     the runs that were told to it, each in its folder
    wandb sync runs/NAME/wandb/…  what W&B has kept there

Of each evaluation: train/loss, val/loss, val/perplexity, lr, grad_norm, tokens_per_second, and
where problems are answered accuracy/all and accuracy/FAMILY. The settings are its hyperparameters.
"""

import importlib.util
import math
import os
import zlib

from minidepth_lab.base import console
from minidepth_lab.keep import checkpoints

PROJECT = "minidepth"
# the column of a log, and what trackers call it
NAMES = dict(
    train_loss="train/loss",
    val_loss="val/loss",
    lr="lr",
    grad_norm="grad_norm",
    tokens_per_second="tokens_per_second",
    accuracy="accuracy/all",
)
PACKAGES = dict(tensorboard="tensorboard", wandb="wandb", trackio="trackio")


def check_tracker(t):
    """Raise ValueError where the tracker of a TrainConfig is not installed."""
    package = PACKAGES.get(t.report_to)
    if package and importlib.util.find_spec(package) is None:
        raise ValueError(f"--report_to {t.report_to} is not installed: pip install {package}")


def metrics(record):
    """A record of the log as {name: number}, without what is none."""
    values = {name: record.get(key) for key, name in NAMES.items()}
    if record.get("val_loss") is not None and record["val_loss"] < 700:  # beyond it overflows
        values["val/perplexity"] = math.exp(record["val_loss"])
    for family, share in record.get("accuracy_by_family", {}).items():
        values[f"accuracy/{family}"] = share
    return {n: float(v) for n, v in values.items() if v is not None and math.isfinite(v)}


def hyperparameters(m, t):
    """The settings as {name: number or text}, lists as they are typed."""
    values = {}
    for part in checkpoints.settings(m, t).values():
        for name, value in part.items():
            if isinstance(value, list):
                value = ",".join(str(each) for each in value)
            values[name] = "unset" if value is None else value
    return values


class TensorBoard:
    """Files for TensorBoard, in the folder of the run."""

    def __init__(self, folder, settings, first):
        from torch.utils.tensorboard import SummaryWriter
        from torch.utils.tensorboard.summary import hparams

        # what was told of steps after the checkpoint that a run goes on from is told again
        self.writer = SummaryWriter(
            checkpoints.path_inside(folder, "tensorboard"), purge_step=first
        )
        # as SummaryWriter.add_hparams() does, which would also add a point to each curve
        for summary in hparams(settings, dict.fromkeys(["val/loss", "accuracy/all"])):
            self.writer.file_writer.add_summary(summary)

    def log(self, values, step):
        for name, value in values.items():
            self.writer.add_scalar(name, value, step)
        self.writer.flush()

    def finish(self):
        self.writer.close()


class Wandb:
    """Weights & Biases, offline unless the environment's WANDB_MODE says otherwise."""

    def __init__(self, folder, settings, first):
        import wandb

        checkpoints.path_inside(folder, "wandb")  # where it writes
        self.run = wandb.init(
            project=os.environ.get("WANDB_PROJECT", PROJECT),
            name=os.path.basename(folder),
            id=f"{zlib.crc32(os.path.abspath(folder).encode()):08x}",  # a resumed run is the same
            resume="allow",
            dir=folder,
            config=settings,
            mode=os.environ.get("WANDB_MODE", "offline"),
        )

    def log(self, values, step):
        self.run.log(values, step=step)

    def finish(self):
        self.run.finish()


class Trackio:
    """Trackio, which keeps a database in the user's cache."""

    def __init__(self, folder, settings, first):
        import trackio

        self.module = trackio
        name = os.path.basename(folder)
        trackio.init(project=PROJECT, name=name, config=settings, resume="allow")

    def log(self, values, step):
        self.module.log(values, step=step)

    def finish(self):
        self.module.finish()


TRACKERS = dict(tensorboard=TensorBoard, wandb=Wandb, trackio=Trackio)


class Told:
    """Tells a run's log to its tracker, a record a call, then finish(). A tracker that fails
    is told no more, in one line, and the run goes on."""

    def __init__(self, m, t):
        check_tracker(t)
        self.name, self.folder = t.report_to, os.path.join(t.out_dir, t.name)
        self.settings = hyperparameters(m, t)
        self.tracker, self.failed = None, False

    def attempt(self, do):
        if self.failed:
            return
        try:
            do()
        except Exception as error:  # a network, a disk, another version of the package
            self.failed = True
            why = console.one_line(error, 200) or type(error).__name__
            console.complain(f"{self.name} is told no more: {why}")

    def __call__(self, record):
        def tell():
            if not self.tracker:  # not before the run's folder is its own
                self.tracker = TRACKERS[self.name](self.folder, self.settings, record["step"])
            self.tracker.log(metrics(record), record["step"])

        self.attempt(tell)

    def finish(self):
        if self.tracker:
            self.attempt(self.tracker.finish)
