"""Masks of dropout: where they are drawn, what is kept of them, and in compiled layers."""

import contextlib

import pytest
import torch

import minidepth as md
from minidepth_lab.keep import running
from minidepth_lab.models import compiling, fast


def test_a_mask_is_drawn_where_the_numbers_are():
    """On a device without memory here, in place of a GPU."""
    assert fast.dropout(torch.ones(3, 5, device="meta"), 0.5).device == torch.device("meta")


def test_attention_on_a_cpu_stores_which_weights_stay_and_has_dropouts_gradient():
    q, k, v = torch.randn(3, 2, 4, 9, 8, generator=md.generator("qkv")).requires_grad_()
    g, gradients = torch.randn(2, 4, 9, 8, generator=md.generator("g")), []
    torch.manual_seed(0)
    y, weights = fast.readable_attention(q, k, v, 0.3, 0.4)
    assert "DroppedProduct" in y.grad_fn.name()
    torch.manual_seed(0)
    plain = fast.dropout(weights, 0.4) @ v
    for each in (y, plain):
        gradients.append(torch.autograd.grad(each, (q, k, v), g, retain_graph=True))
    torch.testing.assert_close(y, plain)
    torch.testing.assert_close(*gradients)


def test_each_gpu_of_dataparallel_drops_elements_of_its_own(monkeypatch):
    """All of them would drop the same of their shards. A process of torchrun has one GPU."""
    drawn = []
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    monkeypatch.setattr(torch.cuda, "device", lambda n: drawn.append(n) or contextlib.nullcontext())
    monkeypatch.setattr(torch.cuda, "manual_seed", drawn.append)
    for step in (5, 6, 5):
        md.seed_step(0, step, 0)
        drawn.append(torch.initial_seed())
    assert [drawn[0], drawn[2]] == [1, 2] and drawn[:5] == drawn[10:]
    assert len({*drawn[1:10:5], *drawn[3:10:5], *drawn[4:10:5]}) == 6
    monkeypatch.setattr(md, "processes", lambda: (0, 2))
    md.seed_step(0, 7, 0)
    assert len(drawn) == 15


def test_compiled_layers_train_and_plain_ones_are_measured(tiny, data, monkeypatch):
    """With dropout: the compiled form of a layer is never asked for what has none."""
    asked = []

    def compile(layer, **options):
        def compiled(*arguments):
            asked.append(layer.training)
            return layer(*arguments)

        return compiled

    monkeypatch.setattr(torch, "compile", compile)
    monkeypatch.setattr(compiling, "check_compile", lambda t: None)
    short = dict(dropout=0.4, n_loops=2, grad_accum=2, steps=5, eval_problems=0)
    plain = running.train(*tiny(name="plain", **short), data=data).log
    assert asked == []
    compiled = running.train(*tiny(name="compiled", compile=True, **short), data=data).log
    # 5 steps of 2 batches through 2 layers, looped twice
    assert asked == [True] * (5 * 2 * 2 * 2)
    for key in ("train_loss", "val_loss"):
        assert [row[key] for row in compiled] == [row[key] for row in plain]
    without = running.train(*tiny(name="without", **short | dict(dropout=0.0)), data=data).log
    assert without[-1]["train_loss"] != pytest.approx(plain[-1]["train_loss"], abs=1e-4)
