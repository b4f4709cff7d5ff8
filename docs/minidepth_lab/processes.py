"""What the command says of several processes, as torchrun starts them."""

import contextlib
import os
import re
import shlex
import signal
import threading

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
    rank, world = md.processes()
    missing = [name for name in NEEDED if name not in os.environ]
    if world > 1 and missing:
        what = f"is {world} but {' and '.join(missing)} not set"
        raise ValueError(f"the environment's WORLD_SIZE {what}; start with torchrun, or unset it")
    port = os.environ.get("MASTER_PORT", "0")
    if world > 1 and not (port.isdecimal() and int(port) < 2**16):
        what = "is no port, 0 to 65535; start with torchrun, or give another"
        raise ValueError(f"the environment's MASTER_PORT, {port!r:.40}, {what}")
    if rank >= world:
        what = f"the environment's RANK is {rank} of a WORLD_SIZE of {world}"
        raise ValueError(f"{what}; start with torchrun, or unset both")
    local = int(os.environ.get("LOCAL_RANK", 0))
    if local > rank:  # which no launcher says; it would take that GPU, for a job of one process
        what = f"the environment's LOCAL_RANK is {local} but its RANK {rank}"
        raise ValueError(f"{what}; start with torchrun, or unset both")


def check(t, resumed=False):
    """Raise ValueError, a line, where a TrainConfig cannot be trained by so many processes."""
    md.check_share(t.batch_size)  # train() asks this too, but no dry run gets there
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


HANG_UP = getattr(signal, "SIGHUP", None)  # Windows has none; terminals send it twice


@contextlib.contextmanager
def noted_signals(twice=False):
    """While active, Ctrl-C, SIGTERM and SIGHUP are only noted, in the list that it gives, so that
    no step is cut in two; with `twice` a second Ctrl-C does not wait. What this process ignores,
    as under nohup, it goes on ignoring."""
    noted, before = [], {}

    def note(number, frame):
        if twice and noted and number == signal.SIGINT:  # torchrun adds a SIGTERM to a Ctrl-C
            raise KeyboardInterrupt
        if not noted or number != HANG_UP:
            noted.append(number)

    if threading.current_thread() is threading.main_thread():  # no other may
        for number in (signal.SIGINT, signal.SIGTERM, HANG_UP):
            if number and signal.getsignal(number) != signal.SIG_IGN:
                before[number] = signal.signal(number, note)
    try:
        yield noted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)


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
    new_group = not torch.distributed.is_initialized()
    try:
        if md.processes()[1] > 1:
            with ended_by_ctrl_c():
                md.connect(md.pick_device(t.device))
        yield
        if new_group and torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()
    except RuntimeError as error:
        rank, world = md.processes()
        if world == 1 or not lost(error):
            raise
        why = "ends because another one has ended or cannot be reached"
        folder = shlex.quote(os.path.join(t.out_dir, t.name))
        go_on = f"go on with: torchrun … train.py --resume {folder}"
        raise ConnectionError(
            f"process {rank} of {world} {why}; its own message, if it left one, says more; {go_on}"
        ) from None
