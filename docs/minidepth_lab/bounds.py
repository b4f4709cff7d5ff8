"""What a step and a generated token cannot do without: the time that the step's matrix products
take by themselves, and the rate at which weights can be read. For --bench."""

import time

import torch

import minidepth as md


def seconds_of(product, repeats=3):
    """The least time of a call, after one that warms up."""
    product()
    found = []
    for _ in range(repeats):
        began = time.perf_counter()
        product()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        found.append(time.perf_counter() - began)
    return min(found)


def product_seconds(m, parts, device, half):
    """(seconds, floating-point operations) of the matrix products of a step, one shape at a time.
    `parts`: of each of its forward passes how many tokens it has, and how many with a loss."""
    C, layers = m.d_model, m.n_layers * m.n_loops
    shapes = []  # rows, in, out, how often
    for rows, learned in parts:
        shapes += [(rows, C, 3 * C, layers), (rows, C, C, layers)]
        if m.d_ff:
            shapes += [(rows, C, m.d_ff, layers), (rows, m.d_ff, C, layers)]
        at_once = min(learned, md.CPU_ROWS if device.type == "cpu" else md.HALF_ROWS)
        shapes.append((at_once, C, m.vocab_size, learned / at_once))
    seconds, operations = 0.0, 0.0
    for n, inner, outer, times in shapes:
        options = dict(device=device, dtype=half or torch.float32)
        x, w = torch.randn(n, inner, **options), torch.randn(outer, inner, **options)
        y, dx, dw = x @ w.T, torch.empty_like(x), torch.empty_like(w)
        forward = seconds_of(lambda x=x, w=w, y=y: torch.mm(x, w.T, out=y))
        back = seconds_of(lambda y=y, w=w, dx=dx: torch.mm(y, w, out=dx))
        weight = seconds_of(lambda y=y, x=x, dw=dw: torch.mm(y.T, x, out=dw))
        seconds += times * (forward + back + weight)
        operations += times * 6 * n * inner * outer
    return seconds, operations


def read_rate(device):
    """Bytes a second at which a large array is read."""
    numbers = torch.ones(2**26, device=device)  # 256 MB: more than caches hold
    return 4 * numbers.numel() / seconds_of(lambda: numbers.sum().item())
