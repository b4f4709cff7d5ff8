"""Fully sharded training under torchrun: each process keeps a part of every weight, gradient and
moment; a run's files are the same as without."""

import torch

import minidepth as md
from minidepth_lab.base import machine


def check_fsdp(t, resumed=False):
    """Raise ValueError, a line, where a TrainConfig with fsdp cannot be trained here."""
    if t.compile:
        raise ValueError("--fsdp does not work with --compile; leave one of them out")
    if md.processes()[1] == 1 and not resumed:  # a run may go on in one process
        how = "torchrun --nproc_per_node 2 train.py …"
        raise ValueError(f"--fsdp shares the weights among the processes of torchrun: {how}")
    if torch.__version__ < (2, 7) and machine.pick_device(t.device).type == "cpu":
        raise ValueError(f"--fsdp on a CPU needs PyTorch 2.7; this is {torch.__version__}")


def wrap(model, device):
    """The model with its weights shared out. The whole weights of a layer are put together where it
    is computed, and let go."""
    from torch.distributed.device_mesh import init_device_mesh  # these take a second to import
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh(device.type, (md.processes()[1],))
    for layer in model.blocks:
        fully_shard(layer, mesh=mesh)
    model.is_sharded = True
    return fully_shard(model, mesh=mesh)


def whole(value):
    """A state_dict() with every tensor that is shared out put together, on the CPU. All processes
    call this alike."""
    if isinstance(value, dict):
        return {key: whole(part) for key, part in value.items()}
    return value.full_tensor().cpu() if hasattr(value, "full_tensor") else value


def parts_of(weights, moments, model):
    """The states of a model and its optimizer, from whole(), shared out as the model is."""
    parameters = list(model.parameters())  # as minidepth.make_optimizer() puts them in groups
    parameters = [p for p in parameters if p.dim() > 1] + [p for p in parameters if p.dim() < 2]
    shared = share_like(moments["state"], dict(enumerate(parameters)))
    return share_like(weights, model.state_dict()), moments | dict(state=shared)


def share_like(saved, own):
    """{key: tensor or dict of them}, each tensor shared out as that of `own`, {key: parameter}."""
    from torch.distributed.tensor import distribute_tensor

    def share(value, parameter):
        if isinstance(value, dict):  # the moments of a parameter, and a count of steps
            return {key: share(part, parameter) for key, part in value.items()}
        if hasattr(parameter, "full_tensor") and value.shape == parameter.shape:
            return distribute_tensor(value, parameter.device_mesh, parameter.placements)
        return value

    return {key: share(value, own.get(key)) for key, value in saved.items()}
