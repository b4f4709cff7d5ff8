"""Whether --compile can work here: asked before the data is loaded, as its own errors are long."""

import importlib.util
import os
import shutil
import sys

import torch

import minidepth as md


def check_compile(t):
    """Raise ValueError, a line, where a TrainConfig's `compile` cannot work."""
    device = md.pick_device(t.device)
    if device.type == "cuda":
        if md.processes()[1] == 1 and torch.cuda.device_count() > 1:
            # its replicas would all compute with the weights of GPU 0
            other = "use torchrun, or CUDA_VISIBLE_DEVICES=0 for one GPU"
            raise ValueError(f"--compile does not work with DataParallel; {other}")
        if not importlib.util.find_spec("triton"):
            raise ValueError("--compile needs the package triton on CUDA; leave --compile out")
        return
    if device.type == "cpu":
        # the one that torch.compile takes
        usual = dict(darwin="clang++", win32="cl").get(sys.platform, "g++")
        compiler = os.environ.get("CXX", usual)
        if not shutil.which(compiler):
            missing = f"and there is no {compiler}"
            raise ValueError(f"--compile needs a C++ compiler, {missing}; leave --compile out")
