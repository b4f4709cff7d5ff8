"""The loop: learning rates, gradients over shards, FP16, resume, checkpoints."""

import contextlib
import gc
import io
import json
import math
import os
import shutil
import subprocess
import sys
import time
import types

import pytest
import torch
import torch.nn.functional as F

import minidepth as md
from conftest import TINY_MODEL, TINY_TRAIN, Recorded, log_of, same_weights
from minidepth_lab.base import configs, machine
from minidepth_lab.base.data import Data
from minidepth_lab.keep import checkpoints, naming, running
from minidepth_lab.measure import results, sampling
from minidepth_lab.models import variants
from minidepth_lab.rows import to_data


def gradients(model):
    return {name: p.grad.clone() for name, p in model.named_parameters()}


def batch(B=5, T=12, vocab=61, seed=0):
    g = torch.Generator().manual_seed(seed)
    x = torch.randint(vocab, (B, T + 1), generator=g)
    tokens, targets = x[:, :-1], x[:, 1:].clone()
    for i in range(B):  # uneven numbers of targets, as padding gives
        targets[i, 2 + 2 * i :] = -100
    return tokens, targets


def test_real_replicas_give_the_full_batchs_gradient(model, monkeypatch):
    """DataParallel's own replicate on the CPU, with uneven shards."""
    from torch.nn.parallel import replicate

    module = sys.modules["torch.nn.parallel.replicate"]
    names = ("_broadcast_coalesced_reshape", "_get_device_index")
    if not all(hasattr(module, name) for name in names):
        pytest.skip("this PyTorch has renamed what is replaced here")
    gpt = model(n_loops=2, n_heads=(4, 2, 8), position="rotary").double()
    tokens, targets = batch()
    loss_sum, n = gpt(tokens, targets)
    (loss_sum.sum() / n.sum()).backward()
    full, full_loss = gradients(gpt), (loss_sum.sum() / n.sum()).item()
    gpt.zero_grad()

    def copies(tensors, devices, detach=False):
        return [[t.detach() if detach else t.clone() for t in tensors] for _ in devices]

    monkeypatch.setattr(module, names[0], copies)
    monkeypatch.setattr(module, names[1], lambda device, optional=False: device)
    replicas = replicate(gpt, [0, 1, 2])
    assert all(not list(replica.parameters()) for replica in replicas)
    parts = zip(replicas, tokens.chunk(3), targets.chunk(3))  # 2, 2 and 1 of 5
    loss_sum, n = (torch.cat(part) for part in zip(*(copy(x, y) for copy, x, y in parts)))
    assert loss_sum.shape == n.shape == (5,)
    loss = loss_sum.sum() / n.sum()
    loss.backward()
    assert loss.item() == pytest.approx(full_loss, rel=1e-6)
    for name, gradient in gradients(gpt).items():
        assert (gradient - full[name]).norm() < 1e-6 * full[name].norm(), name


def test_padding_behind_the_last_target_is_not_computed_and_changes_nothing(
    model, monkeypatch, train_on
):
    torch.manual_seed(1)
    tokens, targets = torch.randint(61, (2, 6, 16))
    ends = [5, 16, 9, 4, 12, 3]
    for row, end in enumerate(ends):
        targets[row, end:] = -100
    targets[4] = -100  # a row without targets
    gpt = model(dropout=0.0).train()
    loss_sum, n = gpt(tokens, targets)
    (loss_sum.sum() / n.sum()).backward()
    whole = gradients(gpt)
    gpt.zero_grad()
    seen, real = [], variants.GPT.forward
    monkeypatch.setattr(
        variants.GPT, "forward", lambda self, x, y: seen.append(x.shape) or real(self, x, y)
    )
    optimizer = Recorded(gpt)
    run = train_on(gpt, tokens, targets, optimizer, batch_size=2, grad_accum=3)
    loss = run.log[0]["train_loss"]
    assert loss == pytest.approx((loss_sum.sum() / n.sum()).item(), rel=1e-6)
    for name, gradient in optimizer.gradients.items():
        torch.testing.assert_close(gradient, whole[name], atol=1e-7, rtol=1e-5)
    # the row without targets is taken for a full one; then 16, 9, 5, 4 and 3 tokens
    assert sorted(seen[:3]) == [(2, 4), (2, 9), (2, 16)]  # later ones are of the evaluation
    seen.clear()
    assert md.mean_loss(gpt, (tokens, targets), 6, 2) == pytest.approx(loss, rel=1e-6)
    assert sorted(seen) == [(2, 4), (2, 9), (2, 16)]


def test_a_gradient_is_unscaled_then_clipped_then_taken(model, monkeypatch, train_on):
    real, norms = torch.nn.utils.clip_grad_norm_, []
    clip = lambda given, most: norms.append(real(list(given), most)) or norms[-1]  # noqa: E731
    monkeypatch.setattr(torch.nn.utils, "clip_grad_norm_", clip)
    real_scaler = torch.amp.GradScaler
    scaler = lambda device, enabled: real_scaler(device, init_scale=1024.0)  # noqa: E731
    monkeypatch.setattr(torch.amp, "GradScaler", scaler)
    gpt = model().train()
    optimizer = Recorded(gpt, lr=0.5)
    run = train_on(gpt, *batch(6), optimizer, lr=0.25, grad_clip=0.1)
    norm = torch.stack([g.norm() for g in optimizer.gradients.values()]).norm().item()
    assert 0.2 < norms[0] < 100 and norm == pytest.approx(0.1, rel=1e-3)
    assert run.log[0]["grad_norm"] == norms[0].item()  # the log has it before the clipping
    assert optimizer.param_groups[0]["lr"] == run.log[0]["lr"] == 0.25


@pytest.mark.parametrize(
    "precision, scale, value",
    # of the last each gradient is finite, their norm is not
    [("fp16", 2.0**15, math.inf), ("fp32", None, math.inf), ("fp32", None, 1e38)],
)
def test_an_infinite_gradient_skips_the_step(model, train_on, precision, scale, value):
    gpt, (tokens, targets) = model(dropout=0.0).train(), batch(6)
    steps, before, after = [], [p.clone() for p in gpt.parameters()], []

    def too_large_at_first(grad):
        steps.append(1)
        return torch.full_like(grad, value) if len(steps) == 1 else grad

    def look(model, args):
        after.append([p.detach().clone() for p in gpt.parameters()])

    gpt.norm.weight.register_hook(too_large_at_first)
    gpt.register_forward_pre_hook(look)  # in each step, and when it is evaluated
    run = train_on(gpt, tokens, targets, lr=0.1, steps=2, precision=precision)
    assert [record["skipped_steps"] for record in run.log] == [1, 1]
    assert run.log[0]["grad_norm"] == math.inf
    assert all(torch.equal(a, b) for a, b in zip(before, after[1]))
    assert not all(torch.equal(a, b) for a, b in zip(before, after[-1]))
    state = torch.load(os.path.join(run.dir, "state.pt"), weights_only=True)
    assert state["scaler"].get("scale") == scale


@pytest.fixture
def overflowing(monkeypatch):
    """FP16 begins with a loss scale at which gradients are infinite, so that steps are skipped."""
    real = torch.amp.GradScaler
    large = lambda kind, enabled: real(kind, enabled=enabled, init_scale=2.0**40)  # noqa: E731
    monkeypatch.setattr(torch.amp, "GradScaler", large)


def test_data_is_told_of_no_step_that_was_skipped(tiny, data, monkeypatch, overflowing):
    """A run that is lost takes skipped steps back; what the data was told must not go beyond."""
    told = []
    monkeypatch.setattr(Data, "after_step", lambda self, loss: told.append(loss))
    silent = dict(eval_problems=0, watch_problems=0)
    log = running.train(*tiny(precision="fp16", steps=30, lr=1e-3, **silent), data=data).log
    assert len(told) == 30 - log[-1]["skipped_steps"]
    assert log[0]["skipped_steps"] == 1 and 5 < log[-1]["skipped_steps"] < 30


def test_weight_decay_falls_on_matrices_alone(model):
    gpt = model()
    gpt.gate = torch.nn.Parameter(torch.ones(()))  # one number that a model learns
    config = configs.TrainConfig(weight_decay=0.3, beta1=0.8, beta2=0.97)
    decayed, spared = md.make_optimizer(gpt, config).param_groups
    assert decayed["weight_decay"] == 0.3 and spared["weight_decay"] == 0
    assert {p.dim() for p in decayed["params"]} == {2}
    assert {p.dim() for p in spared["params"]} == {0, 1}
    assert len(decayed["params"]) + len(spared["params"]) == len(list(gpt.parameters()))
    assert decayed["fused"] and decayed["betas"] == (0.8, 0.97)
    config.decay_all = True
    assert {each["weight_decay"] for each in md.make_optimizer(gpt, config).param_groups} == {0.3}


# --- a run and its folder


def losses(log):
    return [(r["step"], r["train_loss"], r["val_loss"], r["lr"], r["epoch"]) for r in log]


KILLED = dict(save_every=4, grad_accum=2)  # settings of a run, and of those it is compared with


@pytest.fixture(scope="module")
def wholes(data, tmp_path_factory):
    """{precision: a run that never stopped}"""
    values = TINY_MODEL | TINY_TRAIN | KILLED | dict(out_dir=str(tmp_path_factory.mktemp("wholes")))
    runs = {}
    for precision in ("fp32", "fp16"):
        changes = values | dict(precision=precision, name=precision)
        runs[precision] = running.train(*configs.make("laptop", **changes), data=data)
    return runs


def test_fp16_with_its_scaler_trains_like_fp32(wholes):
    """On the CPU: autocast, chunked half-precision head, GradScaler, the same loop as on a T4."""
    half, whole = wholes["fp16"], wholes["fp32"]
    for name in ("train_loss", "val_loss"):
        a, b = ([record[name] for record in run.log] for run in (half, whole))
        assert a == pytest.approx(b, abs=0.02) and a != b
    assert whole.log[-1]["val_loss"] < whole.log[0]["val_loss"] - 0.5
    assert half.model.autocast_dtype == torch.float16
    assert all(p.dtype == torch.float32 for p in half.model.parameters())


@pytest.mark.parametrize("at", [7, 2])  # after the checkpoint of step 4, and before it
def test_a_run_that_was_killed_goes_on_as_one_that_never_was(tiny, data, wholes, at):
    """In half precision, with the loss scale. Of any data: core/test_contracts.py."""
    asked, whole = [], wholes["fp16"]

    class Killed(Exception):
        pass

    def stop():
        asked.append(1)
        if len(asked) == at:
            raise Killed

    m, t = tiny(name="cut", precision="fp16", **KILLED)
    with pytest.raises(Killed):
        running.train(m, t, data=data, stop=stop)
    m.vocab_size = whole.model.config.vocab_size
    assert checkpoints.read_config(os.path.join(t.out_dir, "cut")) == (m, t)
    rest = running.train(m, t, resume=True)
    assert losses(rest.log) == losses(log_of(rest.dir)) == losses(whole.log)
    assert same_weights(whole.model, rest.model)


def test_the_folder_of_a_run(finished):
    names = set(os.listdir(finished))
    assert {"config.json", "log.jsonl", "model.safetensors", "state.pt", "tokenizer"} <= names
    assert not [name for name in names if name.endswith(".tmp")]
    with open(os.path.join(finished, "config.json")) as f:
        config = json.load(f)
    keys = {"model", "train", "command", "fingerprint", "date", "versions", "device", "commit"}
    assert set(config) == keys
    assert set(config["versions"]) == {"python", "torch", "transformers"}
    log = log_of(finished)
    assert [record["step"] for record in log] == [1, 5, 10, 12]
    keys = "step epoch lr train_loss grad_norm val_loss seconds tokens_per_second skipped_steps"
    assert all(set(keys.split()) <= set(record) for record in log)
    assert log[-1]["train_loss_eval"] > 0
    assert log[0]["lr"] == 0 and log[-1]["seconds"] > log[0]["seconds"]


def test_the_speed_is_that_of_the_steps_since_the_row_before(tiny, data, monkeypatch):
    """By a clock that only training moves: a second a step up to step 5, then half a second.
    A step is two forward passes."""
    clock, steps, real = [1000.0], [0], variants.GPT.forward

    def forward(self, *arguments, **options):
        if self.training:
            steps[0] += 0.5
            clock[0] += 0.5 if steps[0] <= 5 else 0.25
        return real(self, *arguments, **options)

    monkeypatch.setattr(variants.GPT, "forward", forward)
    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])
    log = running.train(*tiny(grad_accum=2, eval_problems=0, watch_problems=0), data=data).log
    tokens = 2 * 4 * 80  # of a step, of which one takes a second
    assert [record["step"] for record in log] == [1, 5, 10, 12]
    speeds = [record["tokens_per_second"] for record in log]
    assert speeds == [tokens, tokens, 2 * tokens, 2 * tokens]


def test_a_figures_origin_is_known(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "Tesla T4")
    for said, commit in (("c0ffee+\n", "c0ffee+"), ("", None)):  # nothing, where git knows none
        done = types.SimpleNamespace(stdout=said)
        monkeypatch.setattr(subprocess, "run", lambda *_, **__: done)
        about = machine.provenance(torch.device("cuda"))
        assert about["commit"] == commit and about["device"].startswith("2 x Tesla T4, ")


def test_epochs_count_passes_over_the_data(tiny, jsonl):
    path = jsonl([dict(text=f"row {i} of some text") for i in range(30)])
    changes = dict(data=(path,), packing="pad", batch_size=8, steps=9, warmup_steps=1, eval_every=1)
    log = running.train(*tiny(**changes, loss_on="all", val_fraction=0.2)).log
    assert [record["epoch"] for record in log] == [1, 1, 1, 2, 2, 2, 3, 3, 3]  # 24 rows, 8 a step


def test_padding_rows_of_the_vocabulary_stay_unsampled_after_loading(tiny, data):
    run = running.train(*tiny(vocab_size=500), data=data)
    model, tokenizer = checkpoints.load(run.dir)
    assert model.config.vocab_size == 500
    assert run.model.n_words == model.n_words == len(tokenizer) < 500


def test_validation_loss_is_the_plain_mean_over_fixed_blocks(finished, data):
    model, _ = checkpoints.load(finished)
    x, y = (torch.from_numpy(part[:8]).long() for part in data.val)
    with torch.no_grad():
        expected = F.cross_entropy(model(x).flatten(0, 1), y.flatten()).item()
    assert md.mean_loss(model, data.val, 8, 3) == pytest.approx(expected, rel=1e-5)
    with pytest.raises(ValueError, match="eval"):  # with dropout it would be another loss
        md.mean_loss(model.train(), data.val, 8, 3)


def test_a_checkpoint_to_resume_from_must_be_of_the_same_shape(tiny, data):
    m, t = tiny()
    run = running.train(m, t, data=data, stop=lambda: True, command="first").dir
    state = torch.load(os.path.join(run, "state.pt"), weights_only=True)
    state["model"]["norm.weight"] = torch.ones(3)
    torch.save(state, os.path.join(run, "state.pt"))
    with pytest.raises(ValueError, match="state.pt is not a checkpoint .*size mismatch"):
        running.train(m, t, data=data, resume=True)


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "file"
    checkpoints.write(path, lambda f: f.write(b"old"))
    for error in (OSError(28, "No space left on device"), RuntimeError("another")):

        def fail(f, error=error):
            f.write(b"half of it")
            raise error

        with pytest.raises(type(error)):
            checkpoints.write(path, fail)
        assert path.read_text() == "old" and os.listdir(tmp_path) == ["file"]
    done, replace = [], os.replace
    monkeypatch.setattr(os, "fsync", lambda number: done.append("it is on the disk"))
    monkeypatch.setattr(os, "replace", lambda *paths: done.append("renamed") or replace(*paths))
    checkpoints.write(path, lambda f: f.write(b"new"))
    assert path.read_text() == "new" and done == ["it is on the disk", "renamed"]


def test_precision_and_parallel_follow_the_device(model, monkeypatch, capsys):
    cpu, cuda = torch.device("cpu"), torch.device("cuda")
    assert machine.pick_precision("auto", cpu) is None
    assert machine.pick_precision("auto", cuda) is torch.float16
    assert machine.pick_precision("bf16", cpu) is torch.bfloat16
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda *a: (7, 5))
    with pytest.raises(ValueError, match="--precision fp16"):  # where it is only emulated
        machine.pick_precision("bf16", cuda)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.nn, "DataParallel", lambda module: ("wrapped", module))
    gpt = model()
    assert md.parallel(gpt, cuda) == ("wrapped", gpt)
    assert capsys.readouterr().out == "Wrapping model with DataParallel over 2 GPUs\n"
    assert md.parallel(gpt, cpu) is gpt
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert md.parallel(gpt, cuda) is gpt and capsys.readouterr().out == ""


def test_the_last_evaluation_tells_accuracy_by_kind_of_problem(finished, tiny):
    m, t = checkpoints.read_config(finished)
    row = results.result(finished)
    model, tokenizer = checkpoints.load(finished)
    problems = to_data.load_data(t, m.block_size, tokenizer).problems[: t.eval_problems]
    right = sampling.answers_right(model, tokenizer, problems)
    guesses = [problem["guess"] for problem in problems]
    assert row["answers"] == right and row["guess"] == pytest.approx(sum(guesses) / len(guesses))
    kinds = [(f"{p['family']} {p['steps']}", p["family"]) for p in problems]
    for name, n in (("accuracy_by_problem", 9), ("accuracy_by_family", 3)):
        assert len(row[name]) == n
        for kind, share in row[name].items():
            those = [r for r, names in zip(right, kinds) if kind in names]
            assert share == sum(those) / len(those)


def test_every_evaluation_asks_the_first_problems(finished):
    log = log_of(finished)
    assert [len(record["answers"]) for record in log] == [3, 3, 3, 12]
    for record in log:
        assert record["accuracy"] == sum(record["answers"]) / len(record["answers"])


# --- what goes wrong at the end, in between, and in two places at once


def test_a_run_may_go_on_in_another_precision(tiny, data):
    m, t = tiny()
    for step, t.precision in enumerate(("fp32", "fp16", "fp32"), 1):
        run = running.train(m, t, data=data, resume=True, stop=lambda: True)
        state = torch.load(os.path.join(run.dir, "state.pt"), weights_only=True)
        assert state["step"] == step and bool(state["scaler"]) == (t.precision == "fp16")


def test_train_loss_is_measured_on_every_kind_of_problem(tiny, monkeypatch):
    """Kinds come in turn, every ninth row is of one kind: a stride of 9 would see that one only."""
    _, t = tiny(max_rows=9 * 64, eval_blocks=64, eval_problems=0)
    data, seen = to_data.load_data(t, 80), []
    monkeypatch.setattr(md, "mean_loss", lambda model, part, *sizes: seen.append(part[0]))
    md.evaluate(None, data, t, last=True)
    rows = [data.train[0].tolist().index(row.tolist()) for row in seen[-1]]
    assert len(rows) == 64 and {row % 9 for row in rows} == set(range(9))
    for numbers in ((0,), (t.seed, 0)):  # orders that divide the rows, and that training takes
        other = torch.randperm(len(data.train[0]), generator=md.generator(*numbers))
        assert rows != other[:64].tolist()


def test_no_more_blocks_are_counted_than_there_are_to_be_measured():
    """Of 5 held-out blocks 4 are asked for; of the sources 3 and 2 are all there is."""
    blocks = [(torch.zeros(n, 4).numpy(),) * 2 for n in (9, 5, 3, 2)]
    data = Data(*blocks[:2], val_by_source=dict(a=blocks[2], b=blocks[3]))
    t = configs.TrainConfig(steps=1, warmup_steps=0, eval_blocks=4)
    assert running.evaluations_of(t, data) == (1, 4 + 3 + 2 + 4, 0)  # and 4 that were trained on


@pytest.mark.parametrize("changes", [dict(eval_blocks=1), dict(max_rows=1)], ids=str)
def test_one_block_is_enough_to_be_measured(tiny, changes):
    run = running.train(*tiny(eval_problems=0, watch_problems=0, **changes))
    assert run.finished and math.isfinite(run.log[-1]["train_loss_eval"])


def test_skipped_steps_must_follow_one_another_to_end_a_run(tiny, data, monkeypatch):
    real, skips = torch.nn.utils.clip_grad_norm_, iter(([True] * 24 + [False]) * 2)
    infinite = torch.tensor(math.inf)
    clip = lambda *a: (real(*a), infinite)[next(skips)]  # noqa: E731
    monkeypatch.setattr(torch.nn.utils, "clip_grad_norm_", clip)
    silent = dict(eval_problems=0, watch_problems=0)
    log = running.train(*tiny(steps=50, eval_every=25, **silent), data=data).log
    assert [record["skipped_steps"] for record in log] == [1, 24, 48]


@pytest.mark.parametrize("preset", ["laptop", "report"])
def test_a_run_without_a_name_is_called_by_the_preset_that_it_is_nearest_to(preset):
    assert naming.name_of(*configs.make(preset, n_layers=2)) == f"{preset}_n_layers-2"


def test_the_clock_and_the_loss_scale_go_on_after_a_resume(tiny, data, overflowing):
    m, t = tiny(precision="fp16", steps=16, lr=1e-3, watch_problems=0, eval_problems=0)
    stops = iter([False] * 13 + [True])  # after its last evaluation
    part = running.train(m, t, data=data, stop=lambda: next(stops))
    path = os.path.join(part.dir, "state.pt")
    state = torch.load(path, weights_only=True)
    scale = state["scaler"]["scale"]
    assert scale < 2.0**30 and 0 < part.log[-1]["seconds"] <= state["seconds"]
    state["seconds"] += 1000
    torch.save(state, path)
    rest = running.train(m, t, data=data, resume=True)
    assert rest.log[-1]["seconds"] > 1000
    assert scale / 4 <= torch.load(path, weights_only=True)["scaler"]["scale"] <= scale


def test_of_several_processes_one_tells_the_tracker(tiny, data, begins, monkeypatch):
    monkeypatch.setattr(md, "processes", lambda: (1, 2))
    with pytest.raises(begins):  # the second one has nobody to tell
        running.train(*tiny(report_to="wandb"), data=data)


# as checkpoints.locked() does it, without the seconds that its imports take
HELD = """
import filelock, sys
with filelock.FileLock(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_folder_is_trained_in_by_one_process_and_a_dead_one_does_not_hold_it(finished, tmp_path):
    folder = shutil.copytree(finished, tmp_path / "run")
    m, t = checkpoints.read_config(str(folder))
    t.out_dir, t.steps, t.lr_steps = str(tmp_path), t.steps + 1, t.steps
    t.name, longer = "run", dict(resume=True, changed=("steps", "lr_steps"))
    pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    other = subprocess.Popen([sys.executable, "-c", HELD, str(folder / ".lock")], **pipes)
    try:
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(ValueError, match="is being trained by another process"):
            running.train(m, t, **longer)
    finally:
        other.kill()
        other.wait()
    assert running.train(m, t, **longer).finished


def test_layers_computed_twice_give_the_same_run_bit_for_bit(tiny, data, monkeypatch):
    calls, real = [], md.Layer.forward
    see = lambda self, *a: calls.append(self.training) or real(self, *a)  # noqa: E731
    settings = dict(precision="fp16", dropout=0.3, n_loops=2, grad_accum=2, steps=4)
    monkeypatch.setattr(md.Layer, "forward", see)
    once = running.train(*tiny(name="once", **settings), data=data)
    assert sum(calls) == 4 * 2 * 2 * 2
    calls.clear()
    twice = running.train(*tiny(name="twice", grad_checkpoint=True, **settings), data=data)
    assert losses(twice.log) == losses(once.log)
    assert same_weights(once.model, twice.model)
    # 4 steps of 2 batches through 2 layers, looped twice; in training alone each is computed again
    assert sum(calls) == 4 * 2 * 2 * 2 * 2


def test_a_quiet_training_prints_nothing_and_leaves_nothing(tiny, data, capfd):
    terminal, count = io.StringIO(), []
    terminal.isatty = lambda: True  # where a bar moves
    with contextlib.redirect_stderr(terminal):
        running.train(*tiny(), data, stop=lambda: count.append(1) or len(count) == 5)
        loud = running.train(*tiny(), data, resume=True)
        assert "5/12" in terminal.getvalue() and "12/12" in terminal.getvalue()
        terminal.truncate(0)
        capfd.readouterr()
        run = running.train(*tiny(), data, quiet=True)
        assert capfd.readouterr() == ("", "") and terminal.getvalue() == ""
    assert losses(run.log) == losses(loud.log)
    folder = run.dir
    assert folder != loud.dir and checkpoints.load(folder)[0].config == run.model.config
    del run
    gc.collect()
    assert not os.path.exists(os.path.dirname(folder)) and os.path.exists(loud.dir)


def test_a_quiet_training_that_cannot_begin_leaves_nothing(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(ValueError, match="sizes"):
        running.train(*tiny(sizes=("pairs=3",)), quiet=True)
    gc.collect()
    assert os.listdir(tmp_path) == []
