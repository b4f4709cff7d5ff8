"""The arithmetic of what fits where: beside what a step takes on the CPU, and on its page."""

import os
import pathlib
import subprocess
import sys

import pytest

import minidepth as md
from minidepth_lab import memory

ROOT = pathlib.Path(md.__file__).resolve().parent
PAGE = ROOT / "docs" / "how-to" / "many_machines.md"
TOLERANCE = 0.1

# a first, small step brings in what PyTorch loads when it is used
MEASURE = """
import sys, torch
import minidepth as md
from minidepth_lab import bench, memory

def steps(twice, **changes):
    m, t = md.configs("laptop", n_heads=4, dropout=0.0, tie_weights=True, **changes)
    ours = bench.Ours(m, t, torch.device("cpu"))
    tokens = torch.randint(m.vocab_size, (t.batch_size, m.block_size))
    for t.grad_checkpoint in twice:
        ours.model.checkpointed = t.grad_checkpoint
        for _ in range(2):
            ours.step(tokens, tokens)
        print(bench.peak_bytes(), sum(memory.step_memory(m, t).values()))

torch.set_num_threads(1)
steps([False], n_layers=1, d_model=16, d_ff=32, block_size=8, vocab_size=50, batch_size=1)
steps([True, False], n_layers=5, d_model=256, d_ff=1024, block_size=256, vocab_size=10_000,
      batch_size=4, grad_accum=1)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere freed memory is given back later")
def test_the_estimated_peak_is_what_a_step_takes():
    """Without dropout: with it the CPU keeps attention weights, which no GPU does."""
    path = os.pathsep.join((str(ROOT), str(ROOT / "docs")))
    # glibc gives back what is freed only if it is larger than this
    given_back = dict(MALLOC_MMAP_THRESHOLD_="65536", MALLOC_TRIM_THRESHOLD_="65536")
    done = subprocess.run(
        [sys.executable, "-c", MEASURE],
        env=os.environ | dict(PYTHONPATH=path, OMP_NUM_THREADS="1") | given_back,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    lines = [[float(number) for number in line.split()] for line in done.stdout.splitlines()]
    (before, _), (twice, estimated_twice), (once, estimated_once) = lines
    assert twice - before == pytest.approx(estimated_twice, rel=TOLERANCE)
    assert once - before == pytest.approx(estimated_once, rel=TOLERANCE)
    assert once - before > 1.4 * (twice - before)  # what --grad_checkpoint is for


def test_shared_out_weights_take_less_and_copies_more():
    m, t = md.configs("report", d_model=1024, d_ff=4096, n_layers=24, batch_size=8)
    alone = sum(memory.step_memory(m, t, True).values())
    copies = sum(memory.step_memory(m, t, True, 8).values())
    t.fsdp = True
    shared = memory.step_memory(m, t, True, 8)
    assert sum(shared.values()) < copies < alone + 4 * md.parameters(m)["total"]
    assert shared["weights"] == 4 * md.parameters(m)["total"] / 8


def test_the_pages_tables_are_those_of_the_code():
    page = PAGE.read_text(encoding="utf-8")
    for table in (memory.parts_table, memory.batch_table):
        assert "\n".join(table()) in page
