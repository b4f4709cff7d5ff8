"""Half precision on two GPUs, in ten minutes and one line to send back. It needs no Internet.

    python -m minidepth_lab.measure.two_cards

The README's twelve layers take their first steps in FP16, under DataParallel if there are several
GPUs, and their loss is put beside that of the stored run, in single precision on a CPU. Then the
report's two models take some steps of 16 sequences of 512 tokens, for their seconds; their text is
the embedded one, so their losses say nothing.
"""

import platform
import time

import torch

from minidepth_lab.base import configs, machine
from minidepth_lab.keep import running
from minidepth_lab.measure import results

STEPS = 50  # of the README's run: its first evaluation after the beginning
STORED = dict(seed=0, n_layers=12)  # which run of docs/results/first-run that is
TIMED = 40  # of the report's models


def precision():
    """FP16 where there is a GPU; a CPU, on which this can be tried, has none."""
    return "fp16" if machine.pick_device("auto").type == "cuda" else "fp32"


def beside_ours():
    """The README's run, its last record after STEPS steps and the stored one of that step."""
    (stored,) = results.runs("first-run", **STORED)
    m, t = configs.make(
        "laptop", **STORED, precision=precision(), eval_problems=0, watch_problems=0
    )
    done = iter(range(1, STEPS + 1))
    run = running.train(m, t, quiet=True, stop=lambda: next(done) == STEPS)
    (ours,) = [record for record in stored["log"] if record["step"] == STEPS]
    return run.log[-1], ours


def seconds_a_step(n_layers, **changes):
    """(seconds of a step of the report's model, skipped steps), of the second half of TIMED, but
    for the last, which evaluates, too."""
    given = dict(data="embedded", tokenizer="embedded", steps=TIMED, warmup_steps=5)
    given |= dict(n_layers=n_layers, eval_every=TIMED, eval_problems=0, precision=precision())
    m, t = configs.make("report", **given | changes)
    at = []

    def never():
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        at.append(time.perf_counter())
        return False

    run = running.train(m, t, quiet=True, stop=never)
    half, last = len(at) // 2, len(at) - 2
    return (at[last] - at[half]) / (last - half), run.log[-1].get("skipped_steps", 0)


def line(**changes):
    """The line to send back; `changes` of the report's settings, to try it."""
    n = torch.cuda.device_count()
    cards = f"{n} x {torch.cuda.get_device_name(0)}" if n else f"no GPU, {platform.machine()}"
    found, ours = beside_ours()
    parts = [f"{cards}, {precision()}, PyTorch {torch.__version__}"]
    losses = [
        f"{key} {found[key]:.4f} (ours {ours[key]:.4f})" for key in ("train_loss", "val_loss")
    ]
    skipped = found.get("skipped_steps", 0)
    parts.append(f"12 layers, step {STEPS}: {', '.join(losses)}, {skipped} skipped")
    for n_layers in (1, 12):
        seconds, skipped = seconds_a_step(n_layers, **changes)
        parts.append(f"report, {n_layers}: {seconds:.3f} s a step, {skipped} skipped")
    return "; ".join(parts)


if __name__ == "__main__":
    print(line())
