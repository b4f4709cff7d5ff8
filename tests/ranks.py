"""What two processes do for core/test_processes.py: torchrun --nproc_per_node 2 tests/ranks.py DIR

All of it in one start of torchrun, for that takes longer than the rest. The folder DIR has flags in
flags.json, and the runs `cut`, `ddp`, `new` and `old`, which were stopped.
"""

import contextlib
import io
import json
import os
import signal
import sys

import torch

import minidepth as md
import train
from minidepth_lab.base import configs, machine
from minidepth_lab.keep import checkpoints, running

SHARES = torch.__version__ >= (2, 7)  # --fsdp on a CPU
DROPOUT = dict(
    n_layers=2, n_loops=2, d_model=16, n_heads=2, d_ff=32, dropout=0.3, batch_size=4, grad_accum=3,
    steps=3, warmup_steps=0, lr=0.5, grad_clip=1e9, eval_every=1, max_rows=60, eval_problems=0,
    watch_problems=0,
)  # fmt: skip


def sgd(model, config):
    """In place of AdamW, which hides a gradient that is too small by a factor."""
    return torch.optim.SGD(model.parameters(), lr=0.1)


@contextlib.contextmanager
def replaced(**names):
    """While active, names of minidepth stand for something else."""
    before = {name: getattr(md, name) for name in names}
    for name, value in names.items():
        setattr(md, name, value)
    try:
        yield before
    finally:
        for name, value in before.items():
            setattr(md, name, value)


def with_dropout(out, name="dropout", stop=None, **changes):
    """A run with dropout and SGD: its log and its weights."""
    m, t = configs.make("laptop", **DROPOUT | changes, out_dir=out, name=name)
    with replaced(make_optimizer=sgd):
        run = running.train(m, t, stop=stop)
    weights = run.model.state_dict()
    if t.fsdp and md.processes()[0]:
        weights = None  # it has parts of them
    return dict(losses=losses(run.log), weights=weights)


def losses(log):
    return [record["train_loss"] for record in log]


def asked_in_vain(rank):
    """What asks process 1 alone to stop, after its second step; and how often it was asked."""
    asked = []

    def stop():
        asked.append(1)
        return rank == 1 and len(asked) == 2

    return stop, asked


def die_at_the_sixth_step(flags):
    """The command, in which process 1 ends as if the system had killed it."""
    real, taken = md.lr_at, []

    def rate(*arguments):
        taken.append(1)
        if md.processes()[0] == 1 and len(taken) == 6:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*arguments)

    with replaced(lr_at=rate):
        return train.main(flags)


def main(folder):
    torch.set_num_threads(1)
    rank, _ = md.processes()
    machine.connect(torch.device("cpu"))

    def path(name):
        return os.path.join(folder, name)

    with open(path("flags.json"), encoding="utf-8") as f:
        flags = json.load(f)

    def command(*arguments):
        """Run the command → its exit code and what it said."""
        said, errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(errors):
            code = train.main(list(arguments))
        return dict(code=code, said=said.getvalue(), errors=errors.getvalue())

    found = dict(dropout=with_dropout(path("two")))
    found["twice"] = with_dropout(path("two"), "twice", grad_checkpoint=True)
    stop, asked = asked_in_vain(rank)
    with_dropout(path("two"), "stopped", stop)
    found["asked"] = len(asked)
    with_dropout(path("two"), "early", lr=0.0, stop_after=1, keep="best")
    found["whole"] = command(*flags, "--name", "two")
    if SHARES:
        found["shared"] = with_dropout(path("two"), "shared", fsdp=True, grad_checkpoint=True)
        found["fsdp"] = command(*flags, "--name", "fsdp", "--fsdp")
        half = ["--fsdp", "--precision", "fp16"]
        found["half"] = command(*flags, "--name", "half", *half)
        found["overflow"] = command(*flags, "--name", "overflow", *half, "--init_std", "30")
        m, t = checkpoints.read_config(path("ddp"))
        t.name, t.fsdp = "ddp", True
        found["sharing"] = losses(running.train(m, t, resume=True).log)
    else:
        found["refused"] = command(*flags, "--name", "fsdp", "--fsdp")
    found["rest"] = command("--resume", path("cut"))
    # as on two machines that share no folder
    found["apart"] = command("--resume", path(("new", "old")[rank]))
    torch.save(found, path(f"found.{rank}"))
    if hasattr(signal, "SIGKILL"):
        sys.exit(die_at_the_sixth_step([*flags, "--name", "killed"]))


if __name__ == "__main__":
    main(sys.argv[1])
