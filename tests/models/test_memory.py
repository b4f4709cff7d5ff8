"""The arithmetic of what fits where: beside what a step takes on the CPU, and on its page."""

import os
import pathlib
import subprocess
import sys

import pytest
import torch

import minidepth as md
from conftest import chunked_loss
from minidepth_lab.base import configs, machine
from minidepth_lab.models import fast, memory, variants

ROOT = pathlib.Path(md.__file__).resolve().parent
TOLERANCE = 0.1

# a first, small step brings in what PyTorch loads when it is used
MEASURE = """
import sys, torch
import minidepth as md
from minidepth_lab.base import configs
from minidepth_lab.keep import running
from minidepth_lab.measure import bench
from minidepth_lab.models import memory

def steps(twice, dropout=0.0, **changes):
    m, t = configs.make("laptop", n_heads=4, dropout=dropout, tie_weights=True, **changes)
    t.device = "cpu"
    training = md.Training(m, t, running.model_maker(t, None))
    tokens = torch.randint(m.vocab_size, (t.batch_size, m.block_size))
    for t.grad_checkpoint in twice:
        training.model.checkpointed = t.grad_checkpoint
        for _ in range(2):
            training.step(tokens, tokens)
        print(bench.peak_bytes(), sum(memory.step_memory(m, t, device="cpu").values()))

torch.set_num_threads(1)
steps([False], n_layers=1, d_model=16, d_ff=32, block_size=8, vocab_size=50, batch_size=1)
large = dict(n_layers=5, d_model=256, d_ff=1024, block_size=256, vocab_size=10_000, batch_size=4)
steps([True, False], grad_accum=1, **large)
steps([False], dropout=0.1, grad_accum=1, **large)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere freed memory is given back later")
def test_the_estimated_peak_is_what_a_step_takes():
    """The last without --grad_checkpoint and with dropout, for which a CPU keeps all attention
    weights."""
    # glibc gives back what is freed only if it is larger than this
    given_back = dict(MALLOC_MMAP_THRESHOLD_="65536", MALLOC_TRIM_THRESHOLD_="65536")
    done = subprocess.run(
        [sys.executable, "-c", MEASURE],
        env=os.environ | dict(PYTHONPATH=str(ROOT), OMP_NUM_THREADS="1") | given_back,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    lines = [[float(number) for number in line.split()] for line in done.stdout.splitlines()]
    (before, _), (twice, estimated_twice), (once, estimated_once), (dropped, with_dropout) = lines
    assert twice - before == pytest.approx(estimated_twice, rel=TOLERANCE)
    assert once - before == pytest.approx(estimated_once, rel=TOLERANCE)
    assert once - before > 1.4 * (twice - before)  # what --grad_checkpoint is for
    assert dropped - before == pytest.approx(with_dropout, rel=TOLERANCE)
    assert dropped - before > 1.1 * (once - before)


@pytest.mark.parametrize("half", [None, torch.bfloat16])
@pytest.mark.parametrize(("p", "added"), [(0.0, None), (0.1, None), (0.0, 0.3), (0.1, 0.0)])
@pytest.mark.parametrize("d_ff", [0, 192])
def test_a_layer_keeps_as_many_bytes_as_are_counted(half, p, added, d_ff):
    """Beside all tensors that PyTorch keeps for the way back, each storage once."""
    sizes = dict(d_model=96, n_heads=4, block_size=64, d_ff=d_ff, dropout=p, vocab_size=9)
    m, _ = configs.make("report", n_layers=1, residual_dropout=added, **sizes)
    layer = variants.make_layer(m, 4).train()
    x = torch.randn(5, 64, 96, requires_grad=True) * 1.0
    kept, weights = {}, {w.numel() for w in layer.parameters()}

    def note(tensor):
        storage = tensor.untyped_storage()
        if tensor.numel() not in weights:  # its weights, and autocast's copies of them
            kept[storage.data_ptr()] = tensor, storage.nbytes()
        return tensor

    autocast = torch.autocast("cpu", half, enabled=half is not None)
    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor), autocast:
        layer(x)
    there = sum(size for _, size in kept.values()) / (5 * 64)
    assert there == pytest.approx(memory.layer_activations(m, bool(half), "cpu"), rel=0.02)


def test_the_heads_buffers_in_half_precision_are_counted(monkeypatch):
    """Those that are empty at first, in which the head computes: PyTorch's own list of them."""
    made, empty, empty_like = [], torch.empty, torch.empty_like

    def noted(make):
        def call(*given, **options):
            tensor = make(*given, **options)
            made.append(tensor.nbytes)
            return tensor

        return call

    m, t = configs.make("report", vocab_size=20_032, d_model=64, n_heads=4, batch_size=1)
    h, weight = torch.randn(512, 64).bfloat16(), torch.randn(20_032, 64).bfloat16()
    monkeypatch.setattr(torch, "empty", noted(empty))
    monkeypatch.setattr(torch, "empty_like", noted(empty_like))
    chunked_loss(h, weight, torch.zeros(512, dtype=torch.int64))
    softmax = 4 * fast.SOFTMAX_ROWS * 20_032  # a copy that is made and goes
    states = 8 * 512 * 64  # counted with the logits; nll and dh are the empty ones of these
    counted = memory.step_memory(m, t, True, device="cpu")["logits"] - softmax - states
    assert sum(made) - 4 * 512 - 2 * 512 * 64 == counted


@pytest.mark.parametrize("processes, gpus, shares", [(1, 1, 1), (1, 4, 4), (2, 8, 2)])
def test_gpus_that_share_a_batch_hold_a_part_of_it(processes, gpus, shares, monkeypatch):
    """Of processes each has a GPU, however many its machine has."""
    monkeypatch.setattr(machine, "pick_device", lambda device: torch.device("cuda"))
    monkeypatch.setattr(md, "processes", lambda: (0, processes))
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    m, t = configs.make("report", precision="fp32")
    parts = memory.step_memory(m, t, gpus=shares)
    assert f", activations {memory.size_text(parts['activations'])}, " in memory.line(m, t)
    there = sum(parts.values())
    monkeypatch.setattr(memory, "machine_memory", lambda device: 1.01 * there)
    memory.check_enough(m, t)
    monkeypatch.setattr(memory, "machine_memory", lambda device: 0.99 * there)
    with pytest.raises(ValueError, match="training needs at least"):
        memory.check_enough(m, t)


def test_shared_out_weights_take_less_and_copies_more():
    m, t = configs.make("report", d_model=1024, d_ff=4096, n_layers=24, batch_size=8)
    alone = sum(memory.step_memory(m, t, True).values())
    copies = sum(memory.step_memory(m, t, True, 8).values())
    t.fsdp = True
    shared = memory.step_memory(m, t, True, 8)
    assert sum(shared.values()) < copies < alone + 4 * variants.parameters(m)["total"]
    assert shared["weights"] == 4 * variants.parameters(m)["total"] / 8


def test_the_page_has_the_tables_as_they_are_now():
    page = (ROOT / "docs" / "how-to" / "many_machines.md").read_text(encoding="utf-8")
    for table in (memory.parts_table, memory.batch_table):
        assert "\n".join(table()) in page
