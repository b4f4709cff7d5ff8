"""Several processes, as torchrun starts them."""

import contextlib
import os
import re
import shlex
import signal
import threading

import torch

import minidepth as md
from minidepth_lab.base import machine


def check_launch():
    """Raise ValueError where what torchrun tells a process is there in part, or is no number."""
    told = ("RANK", "LOCAL_RANK", "WORLD_SIZE")
    if not os.environ.keys() & set(told):
        return
    for name in told:
        value = os.environ.get(name, "0")
        if not value.isdecimal():
            wrong = "is no number; start with torchrun, or unset it"
            raise ValueError(f"the environment's {name}, {value!r:.40}, {wrong}")
    rank, world = md.processes()
    missing = [n for n in ("RANK", "MASTER_ADDR", "MASTER_PORT") if n not in os.environ]
    if world > 1 and missing:
        wrong = f"is {world} but {' and '.join(missing)} not set"
        raise ValueError(f"the environment's WORLD_SIZE {wrong}; start with torchrun, or unset it")
    port = os.environ.get("MASTER_PORT", "0")
    if world > 1 and not (port.isdecimal() and int(port) < 2**16):
        wrong = "is no port, 0 to 65535; start with torchrun, or give another"
        raise ValueError(f"the environment's MASTER_PORT, {port!r:.40}, {wrong}")
    if rank >= world:
        wrong = f"the environment's RANK is {rank} of a WORLD_SIZE of {world}"
        raise ValueError(f"{wrong}; start with torchrun, or unset both")
    local = int(os.environ.get("LOCAL_RANK", 0))
    if local > rank:  # which no launcher says; it would take that GPU, for a job of one process
        wrong = f"the environment's LOCAL_RANK is {local} but its RANK {rank}"
        raise ValueError(f"{wrong}; start with torchrun, or unset both")


@contextlib.contextmanager
def ended_by_ctrl_c():
    """While active, Ctrl-C ends this process as SIGTERM does. Python would note it and raise
    KeyboardInterrupt once PyTorch comes back, which may wait half an hour for another process."""
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGINT) != signal.default_int_handler:
        yield  # ignored, as under nohup, or handled by somebody else
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextlib.contextmanager
def connected(t):
    """Let the processes of torchrun find one another; while active, the loss of another one is told
    in a line: ConnectionError. Signals are noted within, not around it: a process that waits for
    one that never comes is to end when it is told so.

    At the end they let go of one another. Without that PyTorch's threads may still hold a tensor
    when the interpreter goes, and the process is aborted although all its work is done. After a
    failure they do not: letting go may wait for a process that is no longer there.
    """
    rank, world = md.processes()
    new_group = not torch.distributed.is_initialized()
    try:
        with ended_by_ctrl_c():
            machine.connect(machine.pick_device(t.device))
        yield
        if new_group and torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()
    except RuntimeError as error:
        # PyTorch's word for another process that it cannot reach
        lost = isinstance(error, torch.distributed.DistError) or re.search(r"gloo[/\\]", str(error))
        if not lost:
            raise
        why = "ends because another one has ended or cannot be reached"
        folder = shlex.quote(os.path.join(t.out_dir, t.name))
        go_on = f"go on with: torchrun … train.py --resume {folder}"
        raise ConnectionError(
            f"process {rank} of {world} {why}; its own message, if it left one, says more; {go_on}"
        ) from None
