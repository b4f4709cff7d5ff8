"""The memory of a training step, part by part: the one estimate that the command's checks and the
page on many machines use.

    python -m minidepth_lab.models.memory      the tables of that page

A step holds the most at one of three moments. Where the forward pass ends, all is there that the
way back needs, and the head has just made its part of the gradient. Where the way back begins, the
head is done and the last layer is at work. Where it ends, all gradients are there, and the first
layer is at work. tests/models/test_memory.py compares this with what a step takes on the CPU.
"""

import contextlib
import dataclasses
import os
import pathlib
import re

import torch

import minidepth as md
from minidepth_lab.base import configs, machine
from minidepth_lab.models import fast, variants

GIB = 2**30
# name, GPUs, GiB that each of them offers; about one goes to CUDA and PyTorch themselves
MACHINES = (
    ("T4", 1, 14.6),
    ("2 × T4, `--fsdp`", 2, 14.6),
    ("A100, 40 GB", 1, 39.4),
    ("H100, 80 GB", 1, 79.1),
    ("8 × H100, `--fsdp`", 8, 79.1),
)
ITSELF = 1.0
# name, what differs from the preset report
MODELS = (
    ("the report", dict()),
    ("as GPT-2 small", dict(d_model=768, d_ff=3072, n_heads=12)),
    ("as GPT-2 medium", dict(n_layers=24, d_model=1024, d_ff=4096, n_heads=16)),
    ("as GPT-2 large", dict(n_layers=36, d_model=1280, d_ff=5120, n_heads=20)),
    ("as GPT-2 XL", dict(n_layers=48, d_model=1600, d_ff=6400, n_heads=25)),
    ("as GPT-3 6.7B", dict(n_layers=32, d_model=4096, d_ff=16384, n_heads=32)),
)


def attention_weights(m, half=False):
    """Bytes of a layer's attention weights for a token as a query, one for each head and key, in
    the precision that is computed with; the mean where layers have different numbers of heads."""
    n_heads = m.n_heads if isinstance(m.n_heads, int) else sum(m.n_heads) / len(m.n_heads)
    return n_heads * m.block_size * (2 if half else 4)


def layer_activations(m, half=False, device="cuda"):
    """Bytes that a layer keeps of a token for the way back; `half`: under autocast. On a CPU or an
    Apple GPU dropout brings in readable_attention(), which keeps the weights and which of them were
    dropped, on the latter what that leaves, too."""
    C, size = m.d_model, 2 if half else 4
    # what goes in, which autocast leaves in float32; the norm's output, q, k, v, attention's output
    kept = 4 * C + size * 5 * C
    if m.d_ff:  # the same, and both sides of the bend
        kept += 4 * C + size * (C + 2 * m.d_ff)
    on_additions = m.dropout if m.residual_dropout is None else m.residual_dropout
    if on_additions:  # a byte for each element that may have been dropped
        kept += C * (1 + bool(m.d_ff))
    if m.dropout and device != "cuda":
        copies = 2 if device == "mps" else 1
        kept += copies * attention_weights(m, half) + attention_weights(m) / 4
    return kept


def step_memory(m, t, half=False, gpus=1, device="cuda"):
    """{part: bytes} that a training step takes at its peak, on one of the `gpus` that share a
    batch: weights, AdamW's moments, copies, gradients, activations, logits. A vocabulary whose size
    is not known yet counts as none. `device`: a torch.device's type."""
    n = variants.parameters(m)
    head = m.vocab_size * m.d_model
    layers = m.n_layers * min(m.n_loops, t.gradient_loops or m.n_loops)  # whose inputs are kept
    tokens = t.batch_size * m.block_size // gpus
    shares = gpus if t.fsdp else 1
    lasting = {"weights": 4 * n["total"] / shares, "AdamW's moments": 8 * n["total"] / shares}
    gradients = 4 * n["total"] / shares
    copies = 0.0
    if t.fsdp and gpus > 1:  # whole where they are computed with: all but the layers, and two
        copies += 4 * (n["total"] - n["layers"] + 2 * n["layers"] / m.n_layers)
    elif gpus > 1:  # DistributedDataParallel has gradients of its own to send
        copies += gradients
    if half:  # autocast's, which it keeps to the end of the forward pass, and the head's
        copies += 2 * (n["layers"] + head)
    rows = fast.rows_at_once(tokens, max(1, m.vocab_size), half, device == "cpu")
    few = min(rows, fast.SOFTMAX_ROWS) if device == "cpu" else rows  # that are in float32 at a time
    logits = 4 * rows * m.vocab_size
    if half:  # the weight's gradient by a chunk, too, on a CPU of a part of the words
        words = min(m.vocab_size, fast.GRADIENT_WORDS) if device == "cpu" else m.vocab_size
        logits = 2 * rows * m.vocab_size + 4 * few * m.vocab_size + 2 * words * m.d_model
    logits += 8 * tokens * m.d_model
    one = tokens * layer_activations(m, half, device)
    # gradients inside a layer, of the feed-forward part or of attention weights that were kept
    inside = tokens * (2 if half else 4) * 2 * m.d_ff
    if m.dropout and device != "cuda":
        inside = max(inside, tokens * 3 * attention_weights(m, half))
    inputs = tokens * layers * 4 * m.d_model  # of all layers
    kept = inputs if t.grad_checkpoint else layers * one
    # gradients at the end of the forward pass: the head's, and those of earlier passes of the step
    early = 4 * head + (t.grad_accum > 1) * gradients
    ends = (
        {"gradients": early, "activations": kept, "logits": logits},
        {"gradients": early + inside, "activations": kept, "logits": 0.0},
        {"gradients": gradients, "activations": one + inputs, "logits": 0.0},
    )
    return lasting | {"copies": copies} | max(ends, key=lambda end: sum(end.values()))


def largest_batch(m, t, room, gpus):
    """The most sequences for each GPU, a power of two, whose step fits into `room` bytes; 0 if not
    even one does."""

    def fits(n):
        config = dataclasses.replace(t, batch_size=n * gpus)
        return sum(step_memory(m, config, True, gpus).values()) <= room

    n = 0
    while n < 4096 and fits(max(1, 2 * n)):
        n = max(1, 2 * n)
    return n


def model(changes):
    """(ModelConfig, TrainConfig) of a row of the tables."""
    return configs.make("report", **changes)


def parts_table():
    """Lines of Markdown: what the parts of a step on one GPU take, in GiB, and its peak."""
    yield (
        "| model | parameters | weights | gradients | AdamW's moments | activations | "
        "with `--grad_checkpoint` | peak | with `--grad_checkpoint` |"
    )
    yield "|---|" + "---:|" * 8
    for name, changes in MODELS:
        m, t = model(dict(changes, batch_size=8))
        twice = dataclasses.replace(t, grad_checkpoint=True)
        n, tokens = variants.parameters(m)["total"], t.batch_size * m.block_size
        one = tokens * layer_activations(m, True)
        sizes = [4 * n, 4 * n, 8 * n, m.n_layers * one, tokens * m.n_layers * 4 * m.d_model + one]
        sizes += [sum(step_memory(m, config, True).values()) for config in (t, twice)]
        cells = [f"{n / 1e6:,.0f} M", *(f"{size / GIB:,.1f}" for size in sizes)]
        yield f"| {name} | {' | '.join(cells)} |"


def batch_table():
    """Lines of Markdown: the largest batch of each machine, without --grad_checkpoint / with it."""
    yield "| model | " + " | ".join(name for name, _, _ in MACHINES) + " |"
    yield "|---|" + "---:|" * len(MACHINES)
    for name, changes in MODELS:
        cells = []
        for _, gpus, gib in MACHINES:
            room = (gib - ITSELF) * GIB
            found = []
            for twice in (False, True):
                m, t = model(dict(changes, grad_checkpoint=twice, fsdp=gpus > 1))
                found.append(largest_batch(m, t, room, gpus))
            cells.append(" / ".join(str(n) if n else "–" for n in found))
        yield f"| {name} | {' | '.join(cells)} |"


def print_tables():
    """Print both tables, as the page has them."""
    for table in (parts_table, batch_table):
        print("\n".join(table()), end="\n\n")


# ---------- whether this machine has it ----------


def machine_memory(device):
    """Bytes of memory that a device has, or None where nobody says."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[1]
    limits = []
    try:
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
        with open("/sys/fs/cgroup/memory.max", encoding="ascii") as f:  # a container's own limit
            limits.append(int(f.read()))
    except (AttributeError, OSError, ValueError):  # Windows has no sysconf, others no such file
        pass
    return min(limits, default=None)


def held():
    """Bytes of memory that this process holds now: Python, PyTorch and the data that is loaded. On
    systems that do not say, 0."""
    with contextlib.suppress(OSError, TypeError):  # Linux
        status = pathlib.Path("/proc/self/status").read_text()
        return 1024 * int(re.search(r"VmRSS:\s+(\d+) kB", status)[1])
    return 0


def line(m, t):
    """What is said of the memory before a run."""
    device = machine.pick_device(t.device)
    half = bool(machine.pick_precision(t.precision, device))
    gpus = md.processes()[1]
    if device.type == "cuda" and gpus == 1:
        gpus = torch.cuda.device_count()
    parts = step_memory(m, t, half, gpus, device.type)
    named = ", ".join(f"{name} {size_text(size)}" for name, size in parts.items() if size)
    here = 0 if device.type == "cuda" else held()
    whole = sum(parts.values()) + here
    also = f", the process itself {size_text(here)}" if here else ""
    return f"memory about {size_text(whole)} at its peak: {named}{also}"


def size_text(size):
    """Bytes as "1.19 GiB" or "3.8 MiB"."""
    if size >= 2**30:
        return f"{size / 2**30:.2f} GiB"
    return f"{size / 2**20:.1f} MiB"


def check_enough(m, t):
    """Raise ValueError, in no time and before any is taken, for what needs more memory than the
    machine has, as step_memory() estimates it: for one GPU where several share a batch."""
    device = machine.pick_device(t.device)
    there = machine_memory(device)
    gpus = md.processes()[1]
    if device.type == "cuda" and gpus == 1:
        gpus = torch.cuda.device_count()
    half = bool(machine.pick_precision(t.precision, device))
    parts = step_memory(m, t, half, gpus, device.type)
    activations, logits = parts.pop("activations"), parts.pop("logits")
    of_weights = sum(parts.values())
    tokens = 16 * t.batch_size * m.block_size * t.grad_accum
    rows = 500 * t.max_rows if "embedded" in t.data else 0
    # bytes, for what, and the flags that lower them
    needed = [
        (
            of_weights,
            "weights, gradients and AdamW's moments",
            "--n_layers, --d_model, --vocab_size",
        ),
        (activations, "a batch's activations", "--batch_size, --block_size"),
        (logits, "the loss of a batch", "--vocab_size, --batch_size, --d_model"),
        (tokens, "a batch's tokens", "--batch_size, --grad_accum"),
        (rows, "the rows", "--max_rows"),
    ]
    total = sum(size for size, _, _ in needed)
    if there is None or total <= there:
        return
    size, largest, lower = max(needed)
    raise ValueError(
        f"training needs at least {gib(total)} of memory, {gib(size)} for {largest}; "
        f"{device.type} has {gib(there)}; lower {lower}"
    )


def gib(size):
    return f"{size / 2**30:,.1f} GiB"


if __name__ == "__main__":
    print_tables()
