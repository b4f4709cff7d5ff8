"""How long a training step takes: python train.py --bench"""

import contextlib
import dataclasses
import statistics
import sys
import time

import torch

import minidepth as md


def bench(m, t, steps=10):
    """Time training steps on random tokens; what is left out is reading data and evaluating."""
    device = md.pick_device(t.device)
    half, why = md.pick_precision(t.precision, device)
    m = dataclasses.replace(m, vocab_size=m.vocab_size or 2048)
    torch.manual_seed(t.seed)
    model = md.GPT(m)
    model.half = half
    wrapped = md.parallel(model.to(device).train(), device)
    optimizer = md.make_optimizer(model, t)
    scaler = torch.amp.GradScaler(device.type, enabled=half == torch.float16)
    tokens = torch.randint(m.vocab_size, (t.batch_size * t.grad_accum, m.block_size))
    seconds = []
    for _ in range(steps + 2):  # the first two warm up
        began = time.perf_counter()
        md.train_step(wrapped, optimizer, scaler, tokens, tokens, t.lr, t)
        seconds.append(time.perf_counter() - began)
    seconds = sorted(seconds[2:])
    middle = statistics.median(seconds)
    print(f"device {md.provenance(device)['device']}; {why}; {m.vocab_size:,} words")
    print(
        f"median {middle * 1e3:.1f} ms a step over {steps} steps (from {seconds[0] * 1e3:.1f} to "
        f"{seconds[-1] * 1e3:.1f}), {tokens.numel() / middle:,.0f} tokens a second"
    )
    if device.type == "cuda":
        print(f"peak memory {torch.cuda.max_memory_allocated() / 2**30:.2f} GiB on GPU 0")
        return
    with contextlib.suppress(ImportError):  # Windows has no such module
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        unit = 1 if sys.platform == "darwin" else 1024  # bytes or kilobytes
        print(f"peak memory {peak * unit / 2**30:.2f} GiB")
