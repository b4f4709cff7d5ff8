"""What the command says of several processes, as torchrun starts them."""

import contextlib
import shlex

import torch

import minidepth as md


def lost(error):
    """Whether a RuntimeError is PyTorch's word for another process that it cannot reach."""
    return isinstance(error, torch.distributed.DistError) or "gloo" in str(error)


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
