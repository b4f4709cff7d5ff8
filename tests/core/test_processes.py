"""Several processes under torchrun: equal to one, ended together, resumed by another number."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import types

import pytest
import torch

import minidepth as md
import ranks
import train
from conftest import log_of, made_once
from minidepth_lab.base import configs, machine, processes
from minidepth_lab.keep import checkpoints, running
from minidepth_lab.models import variants
from minidepth_lab.rows import to_data

ROOT = os.path.dirname(os.path.abspath(md.__file__))
TESTS = os.path.join(ROOT, "tests")
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2"]
# a small run without dropout, on rows of uneven length
FLAGS = (
    "--n_layers 1 --d_model 16 --n_heads 2 --d_ff 32 --block_size 16 --loss_on all --steps 12 "
    "--warmup_steps 1 --eval_every 2 --save_every 4 --batch_size 4 --grad_accum 2"
)
shares = pytest.mark.skipif(not ranks.SHARES, reason="--fsdp on a CPU needs PyTorch 2.7")


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """(folder, what torchrun said, what each of two processes of tests/ranks.py found there)."""
    folder = made_once(tmp_path_factory, "ranks", run_both)
    done = types.SimpleNamespace(**json.loads((folder / "done.json").read_text()))
    return folder, done, [torch.load(folder / f"found.{rank}") for rank in (0, 1)]


def run_both(folder):
    """Let two processes do what tests/ranks.py says."""
    rows = [dict(text="word " * (1 + i % 7)) for i in range(60)]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    flags = ["--data", str(folder / "rows.jsonl"), "--out_dir", str(folder), *FLAGS.split()]
    (folder / "flags.json").write_text(json.dumps(flags))
    assert train.main([*flags, "--name", "one"]) == 0
    for name in ("cut", "ddp", "new", "old"):
        shutil.copytree(folder / "one", folder / name)
        os.replace(folder / name / "state.previous.pt", folder / name / "state.pt")  # step 8 of 12
    for name in ("state.pt", "log.jsonl"):  # this one would begin anew
        os.remove(folder / "old" / name)
    path = os.pathsep.join((ROOT, TESTS))
    environment = os.environ | dict(OMP_NUM_THREADS="1", PYTHONPATH=path)
    command = [*TORCHRUN, os.path.join(TESTS, "ranks.py"), str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=1800)
    assert os.path.exists(folder / "found.1"), done.stderr
    said = dict(returncode=done.returncode, stderr=done.stderr)
    (folder / "done.json").write_text(json.dumps(said))


def same_losses(a, b):
    assert [row["step"] for row in a] == [row["step"] for row in b]
    for key in ("train_loss", "val_loss"):
        assert [row[key] for row in a] == pytest.approx([row[key] for row in b], rel=1e-5)


def largest_difference(a, b):
    return max((a[key] - b[key]).abs().max().item() for key in a)


# ---------- the same as one process ----------


def shares_by_hand(m, t, data, seed_of):
    """A run of two processes' steps, taken in this one: each share of a part goes through the
    model by itself, with the dropout of its own process → (weights, losses)."""
    torch.manual_seed(t.seed)
    gpt, losses = variants.GPT(m).train(), []
    for step in range(t.steps):
        tokens, targets = data.draw(step, t.batch_size * t.grad_accum)
        n, loss = (targets != -100).sum(), 0.0
        for rank in (0, 1):
            torch.manual_seed(seed_of(step, rank))
            for x, y in md.by_length(tokens, targets, t.batch_size):
                part = gpt(x[rank::2], y[rank::2])[0].sum() / n
                part.backward()
                loss += part.item()
        losses.append(loss)
        with torch.no_grad():
            for p in gpt.parameters():
                p -= md.lr_at(step, t) * p.grad
        gpt.zero_grad()
    return gpt.state_dict(), losses


def test_dropout_and_accumulation_on_two_processes_are_what_their_shares_give_by_hand(two):
    folder, _, found = two
    first, second = (each["dropout"] for each in found)
    assert largest_difference(first["weights"], second["weights"]) == 0
    m, t = checkpoints.read_config(folder / "two" / "dropout")
    data = to_data.load_data(t, m.block_size)
    own = lambda step, rank: md.generator(t.seed, step, rank).initial_seed()  # noqa: E731
    weights, losses = shares_by_hand(m, t, data, own)
    assert largest_difference(weights, first["weights"]) < 1e-5
    assert losses == pytest.approx(first["losses"], rel=1e-5)
    # and these weights would tell if both processes had dropped the same
    weights, _ = shares_by_hand(m, t, data, lambda step, rank: own(step, 0))
    assert largest_difference(weights, first["weights"]) > 1e-3


@shares
def test_shared_weights_and_layers_computed_twice_give_what_copies_give_with_dropout(two):
    """--fsdp and --grad_checkpoint together, over looped layers, against neither."""
    folder, _, (first, second) = two
    assert first["shared"]["losses"] == pytest.approx(first["dropout"]["losses"], rel=1e-5)
    assert largest_difference(first["shared"]["weights"], first["dropout"]["weights"]) < 1e-5
    model, _ = checkpoints.load(folder / "two" / "shared")
    assert largest_difference(model.state_dict(), first["shared"]["weights"]) == 0


def test_layers_computed_twice_with_dropout_change_nothing_for_two_processes(two):
    """DistributedDataParallel hooks into the way back, on which the layers are computed again; in
    looped layers each weight has two gradients."""
    _, _, (first, _) = two
    assert first["twice"]["losses"] == pytest.approx(first["dropout"]["losses"], rel=1e-5)


def test_a_stop_asked_of_one_process_stops_both_after_the_same_step(two):
    folder, _, found = two
    assert [each["asked"] for each in found] == [2, 2]
    m, t = checkpoints.read_config(folder / "two" / "stopped")
    whole = log_of(folder / "two" / "dropout")
    assert [row["step"] for row in log_of(folder / "two" / "stopped")] == [1, 2]
    with ranks.replaced(make_optimizer=ranks.sgd):
        run = running.train(m, t, resume=True)
    assert [record["step"] for record in run.log] == [1, 2, 3]
    for record, other in zip(run.log[:2], whole):
        assert record["val_loss"] == other["val_loss"]


def test_two_processes_end_early_together(two):
    folder = two[0] / "two" / "early"
    log = log_of(folder)
    assert [record["step"] for record in log] == [1, 2] and log[-1]["ended_early"]
    assert checkpoints.describe_weights(str(folder)).count("of step 1,") == 1


# ---------- the command ----------


def test_two_processes_equal_one_and_go_on_where_one_has_stopped(two):
    """DistributedDataParallel over gloo, with uneven shares of targets."""
    folder, _, (first, second) = two
    for what, name in (("whole", "two"), ("rest", "cut")):
        assert first[what]["code"] == second[what]["code"] == 0, first[what]["errors"]
        words = "Wrapping model with DistributedDataParallel over 2 processes"
        assert words in first[what]["said"] and "step 12/12" in first[what]["said"]
        assert second[what]["said"] == ""
        same_losses(log_of(folder / name), log_of(folder / "one"))
    assert "step 10/12" in first["rest"]["said"] and "step 8/12" not in first["rest"]["said"]


def kinds(value):
    """What a checkpoint holds, without the numbers."""
    if isinstance(value, dict):
        return {key: kinds(part) for key, part in value.items()}
    return (type(value), value.shape) if isinstance(value, torch.Tensor) else type(value)


@shares
def test_fsdp_writes_the_files_of_one_process_and_one_process_goes_on(two):
    folder, _, (first, second) = two
    assert first["fsdp"]["code"] == second["fsdp"]["code"] == 0, first["fsdp"]["errors"]
    said = first["fsdp"]["said"]
    assert "Each of 2 processes keeps a part of every weight" in said and "step 12/12" in said
    assert "Distributed" not in said and second["fsdp"]["said"] == ""
    same_losses(log_of(folder / "fsdp"), log_of(folder / "one"))
    ours, theirs = (checkpoints.read_state(folder / name / "state.pt") for name in ("fsdp", "one"))
    assert kinds(ours) == kinds(theirs)
    assert largest_difference(ours["model"], theirs["model"]) < 1e-5
    for i, moments in theirs["optimizer"]["state"].items():
        assert largest_difference(ours["optimizer"]["state"][i], moments) < 1e-5
    os.replace(folder / "fsdp" / "state.previous.pt", folder / "fsdp" / "state.pt")
    assert train.main(["--resume", str(folder / "fsdp")]) == 0
    same_losses(log_of(folder / "fsdp"), log_of(folder / "one"))


@shares
def test_fsdp_goes_on_from_a_checkpoint_of_one_process(two):
    folder, _, (first, _) = two
    same_losses(log_of(folder / "ddp"), log_of(folder / "one"))
    assert first["sharing"] == [row["train_loss"] for row in log_of(folder / "ddp")]


@shares
@pytest.mark.parametrize(
    "name, more, close, skips",
    [("half", [], 1e-4, False), ("overflow", ["--init_std", "30"], 0.03, True)],
)
def test_fsdp_in_half_precision_scales_and_skips_as_one_process_does(two, name, more, close, skips):
    """Initial weights so large that gradients overflow in fp16 at first: no process takes the step
    that another one skips. How many are skipped is a matter of rounding."""
    folder, _, (first, second) = two
    assert first[name]["code"] == second[name]["code"] == 0, first[name]["errors"]
    flags = json.loads((folder / "flags.json").read_text())
    alone = f"{name}-alone"
    assert train.main([*flags, "--name", alone, "--precision", "fp16", *more]) == 0
    ours, theirs = log_of(folder / name), log_of(folder / alone)
    for row, other in zip(ours, theirs, strict=True):
        assert row["train_loss"] == pytest.approx(other["train_loss"], rel=close)
        assert row["val_loss"] == pytest.approx(other["val_loss"], rel=close)
    assert bool(ours[-1]["skipped_steps"]) == bool(theirs[-1]["skipped_steps"]) == skips


def test_machines_with_different_copies_of_a_run_do_not_go_on(two):
    for found in two[2]:
        assert found["apart"]["code"] == 2
        problem = "is at another step for another process; let them share it"
        assert problem in found["apart"]["errors"]


@pytest.mark.skipif(os.name != "posix", reason="there is no SIGKILL here")
def test_a_dead_process_ends_the_other_with_a_message_and_one_process_goes_on(two):
    folder, done, _ = two
    assert done.returncode != 0
    told = [line for line in done.stderr.splitlines() if line.startswith("train.py: ")]
    assert len(told) == 1, done.stderr
    assert "process 0 of 2 ends because another one has ended" in told[0]
    assert f"--resume {folder / 'killed'}; what was saved before is whole" in told[0]
    assert "rank0]: Traceback" not in done.stderr
    assert [row["step"] for row in log_of(folder / "killed")] == [1, 2, 4]
    assert train.main(["--resume", str(folder / "killed")]) == 0
    same_losses(log_of(folder / "killed"), log_of(folder / "one"))


@pytest.mark.skipif(os.name != "posix", reason="signals as POSIX has them")
def test_while_processes_meet_ctrl_c_ends_one_that_would_heed_it_and_no_other():
    """Under nohup it is ignored, and stays so; what somebody else has set is theirs."""
    heeded = signal.default_int_handler
    within = {heeded: signal.SIG_DFL, signal.SIG_IGN: signal.SIG_IGN, print: print}
    before = signal.getsignal(signal.SIGINT)
    try:
        for handler, expected in within.items():
            signal.signal(signal.SIGINT, handler)
            with processes.ended_by_ctrl_c():
                assert signal.getsignal(signal.SIGINT) == expected
            assert signal.getsignal(signal.SIGINT) == handler
        signal.signal(signal.SIGINT, heeded)
        seen = []

        def elsewhere():  # signals are the main thread's
            with processes.ended_by_ctrl_c():
                seen.append(signal.getsignal(signal.SIGINT))

        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        assert seen == [heeded]
    finally:
        signal.signal(signal.SIGINT, before)


# ---------- two machines ----------


@pytest.mark.parametrize("fails", [False, True])
def test_processes_let_go_of_one_another_unless_one_fails(tmp_path, monkeypatch, fails):
    """One process that takes itself for two, in a group of its own."""
    group = torch.distributed

    def join(device):
        if os.name == "posix":  # Ctrl-C ends what would wait for half an hour
            assert signal.getsignal(signal.SIGINT) == signal.SIG_DFL
        group.init_process_group("gloo", f"file://{tmp_path}/meet", rank=0, world_size=1)

    monkeypatch.setattr(md, "processes", lambda: (0, 2))
    monkeypatch.setattr(machine, "connect", join)
    t = configs.make("laptop")[1]
    try:
        with contextlib.suppress(ValueError), processes.connected(t):
            assert group.is_initialized()
            if fails:
                raise ValueError("some setting")
        assert group.is_initialized() == fails
        if fails:  # what was there before is somebody else's to end
            monkeypatch.setattr(machine, "connect", lambda device: None)
            with processes.connected(t):
                pass
            assert group.is_initialized()
    finally:
        if group.is_initialized():
            group.destroy_process_group()
