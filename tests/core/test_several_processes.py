"""Two processes: layers computed twice with dropout, and a stop that only one of them is asked for.

As a program this file is both: it imports what they need, and divides itself in two, which takes a
third of the time of torchrun. That the command works under torchrun is tested in test_processes.py.
"""

import json
import os
import socket
import subprocess
import sys

import pytest

import minidepth as md
from minidepth_lab.base import configs
from minidepth_lab.keep import checkpoints, running
from minidepth_lab.rows import to_data

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork() here")
SETTINGS = dict(
    n_layers=2, n_loops=2, d_model=16, n_heads=2, d_ff=16, dropout=0.3, batch_size=4, grad_accum=2,
    steps=3, warmup_steps=0, lr=0.05, eval_every=1, eval_blocks=4, max_rows=60, eval_problems=0,
    watch_problems=0,
)  # fmt: skip


def settings(out, **changes):
    return configs.make("laptop", **SETTINGS | dict(out_dir=str(out)) | changes)


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """The folder in which two processes have done what main() says."""
    from conftest import made_once  # which the program does without

    def make(out):
        root = os.path.dirname(os.path.abspath(md.__file__))
        paths = root
        # one thread can fork
        environment = os.environ | dict(OMP_NUM_THREADS="1", PYTHONPATH=paths)
        command = [sys.executable, os.path.abspath(__file__), str(out)]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=1800
        )
        assert done.returncode == 0, done.stderr

    return made_once(tmp_path_factory, "several_processes", make)


def log_of(folder):
    with open(folder / "log.jsonl", encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def test_layers_computed_twice_with_dropout_change_nothing_for_two_processes(two):
    """DistributedDataParallel hooks into the way back, on which the layers are computed again; in
    looped layers each weight has two gradients."""
    once, twice = (log_of(two / name) for name in ("once", "twice"))
    assert [row["step"] for row in once] == [1, 2, 3]
    for key in ("train_loss", "val_loss"):
        assert [row[key] for row in once] == pytest.approx([row[key] for row in twice], rel=1e-5)
    without = log_of(two / "without")  # dropout would tell
    assert abs(once[-1]["train_loss"] - without[-1]["train_loss"]) > 1e-3


def test_a_stop_asked_of_one_process_stops_both_after_the_same_step(two):
    asked = [json.loads((two / f"asked.{rank}").read_text()) for rank in (0, 1)]
    assert asked == [2, 2]
    assert [row["step"] for row in log_of(two / "stopped")] == [1, 2]
    run = running.train(*settings(two, name="stopped"), resume=True)
    assert [row["step"] for row in run.log] == [1, 2, 3]
    whole = log_of(two / "once")
    assert [row["val_loss"] for row in run.log[:2]] == [row["val_loss"] for row in whole[:2]]


def test_two_processes_end_early_together(two):
    log = log_of(two / "early")
    assert [row["step"] for row in log] == [1, 2] and log[-1]["ended_early"]
    assert checkpoints.describe_weights(str(two / "early")).count("of step 1,") == 1


def process(rank, port, out):
    """What each of the processes does, told as torchrun tells it."""
    told = dict(RANK=rank, LOCAL_RANK=rank, WORLD_SIZE=2, MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
    os.environ.update({name: str(value) for name, value in told.items()})
    asked = []

    def stop():
        asked.append(1)
        return rank == 1 and len(asked) == 2

    m, t = settings(out)
    data = to_data.load_data(t, m.block_size)
    running.train(*settings(out, name="once"), data=data)
    running.train(*settings(out, name="twice", grad_checkpoint=True), data=data)
    running.train(*settings(out, name="without", dropout=0.0), data=data)
    running.train(*settings(out, name="stopped"), data=data, stop=stop)
    early = dict(lr=0.0, stop_after=1, keep="best")
    assert running.train(*settings(out, name="early", **early), data=data).finished
    with open(os.path.join(out, f"asked.{rank}"), "w", encoding="utf-8") as f:
        json.dump(len(asked), f)


def main(out):
    import torch._dynamo  # noqa: F401  once for both: the optimizer would do it in each
    from transformers import PreTrainedTokenizerFast  # noqa: F401

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    child = os.fork()
    process(0 if child else 1, port, out)
    if child:
        _, status = os.waitpid(child, 0)
        sys.exit(os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main(sys.argv[1])
