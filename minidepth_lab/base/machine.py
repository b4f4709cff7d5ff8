"""The machine: its devices, its precision, and what a run says of it."""

import contextlib
import functools
import importlib.metadata
import os
import platform
import subprocess
import time
from collections.abc import Callable

import torch

import minidepth as md
from minidepth_lab.base import configs, console


def in_eval_mode(function: Callable) -> Callable:
    """The function of a model, run in eval mode and without gradients; the mode is given back."""

    @functools.wraps(function)
    @torch.no_grad()
    def run(model, *args, **kwargs):
        was_training = model.training
        model.eval()
        try:
            return function(model, *args, **kwargs)
        finally:
            model.train(was_training)

    return run


def provenance(device: torch.device) -> dict:
    """What makes a figure again: date, versions, device, commit (+ if changed since)."""
    versions = {name: importlib.metadata.version(name) for name in ("torch", "transformers")}
    versions["python"] = platform.python_version()
    name = f"{platform.machine()} CPU, {console.plural(torch.get_num_threads(), 'thread')}"
    if device.type == "cuda":
        name = f"{torch.cuda.device_count()} x {torch.cuda.get_device_name()}, {name}"
    git, commit = ["git", "describe", "--always", "--dirty=+", "--abbrev=40"], None
    with contextlib.suppress(OSError):  # no git here
        here = os.path.dirname(os.path.abspath(__file__))
        done = subprocess.run(git, cwd=here, capture_output=True, text=True)
        commit = done.stdout.strip() or None
    date = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return dict(date=date, versions=versions, device=name, commit=commit)


def pick_device(name: str) -> torch.device:
    """`device` of a TrainConfig → torch.device; ValueError if it is not there or does not run."""
    there = dict(cuda=torch.cuda.is_available(), mps=torch.backends.mps.is_available(), cpu=True)
    several = md.processes()[1] > 1
    if name == "mps" and several:  # gloo, by which its processes would talk, knows no MPS
        raise ValueError("device mps does not work under torchrun; use --device cpu")
    if name == "auto":
        there["mps"] = there["mps"] and not several
        name = next(kind for kind, found in there.items() if found)
    if not there[name]:
        raise ValueError(f"device {name} was asked for but PyTorch finds none; use --device cpu")
    device = torch.device(name)
    if name == "cuda":
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
    try:
        torch.ones(1, device=device).add_(1)  # a GPU can be found and still have no kernels
    except RuntimeError as error:
        why = f"cannot be used by PyTorch {torch.__version__} ({error!s:.60})"
        other = "on Kaggle choose GPU T4 x2, or use --device cpu"
        raise ValueError(f"device {device} {why}; {other}") from None
    return device


def connect(device: torch.device) -> None:
    """Let the processes of torchrun, each with its device, find one another."""
    if device.type == "cuda":
        torch.cuda.set_device(device)
    if not torch.distributed.is_initialized():
        torch.distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")


def pick_precision(name: str, device: torch.device) -> torch.dtype | None:
    """`precision` of a TrainConfig → autocast dtype, None for fp32."""
    if name == "auto":
        name = "fp16" if device.type == "cuda" else "fp32"
    if name != "fp32" and device.type == "mps":  # attention in half precision has seen later tokens
        raise ValueError(f"precision {name} is wrong on Apple's GPUs; use --precision fp32")
    # is_bf16_supported() says yes on a T4, which only emulates it
    if name == "bf16" and device.type == "cuda" and torch.cuda.get_device_capability() < (8, 0):
        raise ValueError("precision bf16 needs an Ampere GPU or newer; use --precision fp16")
    return dict(fp32=None, fp16=torch.float16, bf16=torch.bfloat16)[name]


# what a CPU says of itself if it multiplies bf16 by itself: on x86 and on Arm
BF16_FLAGS = ("amx_bf16", "avx512_bf16", "bf16")


def bf16_of_cpu() -> str | None:
    """By which of its flags this CPU computes in bf16; "" if it would only emulate it, None where
    nobody says, as outside Linux."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as f:
            flags = set(f.read().split())
    except OSError:
        return None
    return next((flag for flag in BF16_FLAGS if flag in flags), "")


def describe_device(t: configs.TrainConfig) -> str:
    """Where a TrainConfig trains, in which precision, and why: a line."""
    device = pick_device(t.device)
    half, why = pick_precision(t.precision, device), f"{t.precision}, as asked"
    if t.precision == "auto":
        why = f"{'fp16' if half else 'fp32'}, the default on {device.type}"
    return f"device {provenance(device)['device']}; {why}"


def check_batch(t: configs.TrainConfig) -> None:
    """ValueError for a batch that does not divide among the processes."""
    world = md.processes()[1]
    if t.batch_size % world:
        uneven = f"batch_size {t.batch_size} does not divide among {world} processes"
        raise ValueError(f"{uneven}; give a multiple of {world}")
