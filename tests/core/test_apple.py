"""Apple's GPUs, of which there is none here: what goes wrong on them is refused or avoided."""

import pytest
import torch
import torch.nn.functional as F

import minidepth as md
from minidepth_lab.base import machine
from minidepth_lab.keep import running
from minidepth_lab.models import fast

MPS = torch.device("mps")


class OnMPS(torch.Tensor):
    """A tensor that says that it is on such a GPU; it is computed with on the CPU."""

    @property
    def device(self):
        return MPS


class OnCUDA(torch.Tensor):
    """The same of another GPU."""

    device = torch.device("cuda")


def test_half_precision_is_refused():
    assert machine.pick_precision("auto", MPS) is machine.pick_precision("fp32", MPS) is None
    for name in ("fp16", "bf16"):
        with pytest.raises(ValueError, match=f"precision {name} is wrong on"):
            machine.pick_precision(name, MPS)


def test_layers_computed_twice_with_dropout_are_refused(tiny, data, begins, monkeypatch):
    monkeypatch.setattr(machine, "pick_device", lambda name: MPS)
    for rates in ((0.1, None), (0.0, 0.1), (0.1, 0.0)):
        dropout = dict(zip(("dropout", "residual_dropout"), rates))
        with pytest.raises(ValueError, match="grad_checkpoint with dropout is wrong"):
            running.train(*tiny(grad_checkpoint=True, **dropout), data=data)
    for either in (dict(grad_checkpoint=True, dropout=0.0), dict(dropout=0.1)):
        with pytest.raises(begins):
            running.train(*tiny(**either), data=data)


def test_processes_of_torchrun_train_on_the_cpu(monkeypatch):
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with monkeypatch.context() as patch:
        patch.setattr(torch, "ones", lambda n, **_: torch.zeros(n))  # it is tried out
        for name in ("auto", "mps"):  # of one process alone
            assert machine.pick_device(name) == MPS
    monkeypatch.setattr(md, "processes", lambda: (0, 2))
    assert machine.pick_device("auto") == torch.device("cpu")
    with pytest.raises(ValueError, match="mps does not work under torchrun"):
        machine.pick_device("mps")


def test_attention_takes_its_readable_form(model, monkeypatch):
    calls, attention = [], model().blocks[0].attn
    x = torch.randn(2, 5, 32)

    def readable(q, k, v, scale, p, window):
        calls.append((*q.shape, p))
        return torch.zeros(q.shape), None

    monkeypatch.setattr(fast, "readable_attention", readable)
    attention(x)
    assert not calls  # without dropout a CPU takes the fused one
    attention(x.as_subclass(OnMPS))
    assert calls.pop() == (2, 4, 5, 8, 0.0)
    attention, told = model(dropout=0.5).train().blocks[0].attn, []

    def fused(q, k, v, dropout_p, **how):
        told.append(dropout_p)
        return torch.zeros(q.shape)

    monkeypatch.setattr(F, "scaled_dot_product_attention", fused)
    monkeypatch.setattr(fast, "dropout", lambda y, p, training=True: y)
    attention(x.as_subclass(OnCUDA))  # on which the fused one is fast with dropout, too
    attention.eval()(x.as_subclass(OnCUDA))
    assert told == [0.5, 0.0] and not calls
    attention.train()(x)
    assert calls == [(2, 4, 5, 8, 0.5)]
