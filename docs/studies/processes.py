"""What the command says of several processes, as torchrun starts them."""

import contextlib
import os
import re
import shlex

import torch

import minidepth as md

NUMBERS = ("RANK", "LOCAL_RANK", "WORLD_SIZE")  # that torchrun tells each process
NEEDED = ("RANK", "MASTER_ADDR", "MASTER_PORT")  # with which several processes find one another


def launched():
    """Raise ValueError where what torchrun tells a process is there in part, or is no number."""
    for name in NUMBERS:
        value = os.environ.get(name, "0")
        if not value.isdecimal():
            what = "is no number; start with torchrun, or unset it"
            raise ValueError(f"the environment's {name}, {value!r:.40}, {what}")
    world = os.environ.get("WORLD_SIZE", "1")
    missing = [name for name in NEEDED if name not in os.environ]
    if int(world) > 1 and missing:
        what = f"is {world} but {' and '.join(missing)} not set"
        raise ValueError(f"the environment's WORLD_SIZE {what}; start with torchrun, or unset it")


def check(t, resumed=False):
    """Raise ValueError, a line, where a TrainConfig's `fsdp` cannot work."""
    if not t.fsdp:
        return
    if t.compile:
        raise ValueError("--fsdp does not work with --compile; leave one of them out")
    if md.processes()[1] == 1 and not resumed:  # a run may go on in one process
        how = "torchrun --nproc_per_node 2 train.py …"
        raise ValueError(f"--fsdp shares the weights among the processes of torchrun: {how}")
    if torch.__version__ < (2, 7) and md.pick_device(t.device).type == "cpu":
        raise ValueError(f"--fsdp on a CPU needs PyTorch 2.7; this is {torch.__version__}")


def lost(error):
    """Whether a RuntimeError is PyTorch's word for another process that it cannot reach."""
    return isinstance(error, torch.distributed.DistError) or re.search(r"gloo[/\\]", str(error))


@contextlib.contextmanager
def connected(folder):
    """While active, the loss of another process is told in a line: ConnectionError."""
    try:
        yield
    except RuntimeError as error:
        rank, world = md.processes()
        if world == 1 or not lost(error):
            raise
        why = "ends because another one has ended or cannot be reached"
        go_on = f"go on with: torchrun … train.py --resume {shlex.quote(folder)}"
        raise ConnectionError(
            f"process {rank} of {world} {why}; its own message, if it left one, says more; {go_on}"
        ) from None
