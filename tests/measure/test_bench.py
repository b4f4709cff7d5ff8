"""What --bench prints, that it times the step which train() makes, and what it refuses."""

import contextlib
import dataclasses
import functools
import re

import pytest
import torch

import minidepth as md
import train
from conftest import same_weights
from minidepth_lab.base import configs, machine
from minidepth_lab.keep import checkpoints, running
from minidepth_lab.measure import bench
from minidepth_lab.models import compiling, variants
from minidepth_lab.rows import to_data

TINY = "--preset report --vocab_size 61 --n_layers 1 --d_model 16 --n_heads 2 --d_ff 32"
TINY += " --batch_size 2 --block_size 40"


def numbers(pattern, text):
    """What the pattern's groups find, as floats, a list for each place it is found."""
    found = re.findall(pattern, text)
    assert found, f"{pattern} is not in\n{text}"
    rows = [row if isinstance(row, tuple) else (row,) for row in found]
    return [[float(number.replace(",", "")) for number in row] for row in rows]


def is_the_rate(rate, tokens, milliseconds):
    """Whether a rate is that of so many tokens in a time that was rounded to 0.1 ms."""
    least, most = (1e3 * tokens / (milliseconds + off) for off in (0.051, -0.051))
    return least - 1 <= rate <= most + 1


def values():
    """TINY's settings."""
    words = TINY.split()
    pairs = zip(words[2::2], words[3::2])
    return {name.removeprefix("--"): int(value) for name, value in pairs}


def made(kind, **changes):
    """A runner of bench on settings like TINY's."""
    m, t = configs.make("report", **values() | dict(dropout=0.0, device="cpu") | changes)
    return kind(m, t, torch.device("cpu")), t


def test_bench_measures_ours_and_gpt2_and_prints_their_ratios(capfd):
    """The step, its parts, memory and generation of both."""
    assert train.main(["--bench", "--against", "gpt2", *TINY.split()]) == 0
    out = capfd.readouterr().out
    steps = numbers(STEP, out)
    for (middle, least, most, rate), parts in zip(steps, numbers(PARTS, out), strict=True):
        assert least <= middle <= most and is_the_rate(rate, 80, middle)
        assert all(0 <= part <= most for part in parts)
    for peak, above in numbers(MEMORY, out):
        assert 0 <= above < peak
    speeds = numbers(SPEED, out)  # half of the block is the prompt
    assert [row[:2] for row in speeds] == [[1, 20], [16, 20]] * 2
    total = variants.parameters(configs.make("report", **values())[0])["total"]
    read, rate, most = numbers(BOUND, out)[0]
    assert read == pytest.approx(4 * total / 2**20, abs=0.006)
    assert most == pytest.approx(rate * 1e9 / (4 * total), rel=0.1)
    assert numbers(PRODUCTS, out)
    ((ratio, _, alone, many),) = numbers(
        r"minidepth / gpt2: speed of a step ([\d.]+), peak memory ([\d.]+), generation, "
        r"batch 1 ([\d.]+), generation, batch 16 ([\d.]+)",
        out,
    )
    (ours, *_), (theirs, *_) = steps
    assert (theirs - 0.051) / (ours + 0.051) - 0.01 <= ratio
    assert ratio <= (theirs + 0.051) / (ours - 0.051) + 0.01  # however quick the machine
    quotients = [speeds[0][2] / speeds[2][2], speeds[1][2] / speeds[3][2]]
    assert [alone, many] == pytest.approx(quotients, rel=0.03)


STEP = r"median ([\d.]+) ms per step over 10 steps \(from ([\d.]+) to ([\d.]+)\), ([\d,]+) tokens"
PARTS = r"forward ([\d.]+) ms, head ([\d.]+) ms, backward ([\d.]+) ms, update ([\d.]+) ms"
MEMORY = r"peak memory ([\d.]+) GiB, ([\d.]+) above the model's"
SPEED = r"generation, batch (\d+): (\d+) new tokens, ([\d,.]+) tokens per second"
PRODUCTS = r"by themselves ([\d.]+) ms, (\d+)% of it, at ([\d,]+) GFLOP/s"
BOUND = r"once per token, ([\d.]+) MiB at ([\d.]+) GB/s: at most ([\d,.]+) tokens per second"


@pytest.mark.parametrize("kind", [bench.Ours, bench.GPT2])
def test_what_is_timed_is_the_step_of_training(kind, train_on):
    changes = dict(grad_accum=2, batch_size=2, bias=True)  # as GPT-2 has
    (timed, t), (real, _) = made(kind, **changes), made(bench.Ours, **changes)
    tokens = torch.randint(61, (4, 40))
    targets = tokens.roll(-1, 1)
    targets[:, :5] = -100  # of a prompt
    for i, row in enumerate(targets):
        row[30 - 7 * i :] = -100  # padding
    settings = dict(batch_size=2, grad_accum=2, grad_clip=t.grad_clip, lr=t.lr)
    for batch in (tokens, tokens.flip(1)):
        spent = timed.step(batch, targets)
        assert list(spent) == ["forward", "head", "backward", "update"]
        assert min(spent.values()) > 0
        train_on(real.model, batch, targets, real.training.optimizer, **settings)
    ours, theirs = real.model.state_dict(), timed.model.state_dict()
    if kind is bench.GPT2:
        one, other = ours["token_embedding.weight"], theirs["gpt2.transformer.wte.weight"]
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)
        return
    for name, weight in ours.items():
        torch.testing.assert_close(weight, theirs[name], atol=1e-6, rtol=1e-5)


def test_what_the_first_call_takes_is_no_part_of_the_speed_of_generation(monkeypatch):
    """A model that needs a second a token, and an hour when it is called for the first time."""
    now = [0.0]

    class Slow:
        device, called = "cpu", set()

        def generate(self, tokens, n):
            now[0] += n if len(tokens) in self.called else n + 3600
            self.called.add(len(tokens))
            return torch.zeros(len(tokens), tokens.size(1) + n)

    monkeypatch.setattr(bench.time, "perf_counter", lambda: now[0])
    found = bench.generation(Slow(), configs.ModelConfig(block_size=40, vocab_size=9))
    assert found == {1: (20, 1.0), 16: (20, 16.0)}


@pytest.mark.parametrize("kind", [bench.Ours, bench.GPT2])
def test_text_is_generated_in_the_precision_of_training(kind):
    timed, _ = made(kind, precision="bf16")
    seen = []
    for name, part in timed.model.named_modules():
        if name.endswith(("qkv", "c_attn")):
            part.register_forward_hook(lambda *call: seen.append(call[-1].dtype))
    timed.generate(torch.randint(61, (1, 4)), 2)
    assert set(seen) == {torch.bfloat16}


def test_data_at_hand_is_measured_as_it_is(capsys):
    """Its words, its own lengths and targets; not the block and not a vocabulary out of the air."""
    line = "--bench --preset laptop --n_layers 1 --d_model 8 --max_rows 200 --device cpu"
    assert train.main(line.split()) == 0
    out = capsys.readouterr().out
    m, t = configs.make("laptop", n_layers=1, d_model=8, max_rows=200)
    data = to_data.load_data(t, m.block_size)
    assert f"; {data.n_words} words" in out
    computed = sum(x.numel() for x, _ in md.by_length(*data.draw(0, 36), t.batch_size))
    ((middle, _, _, rate),) = numbers(STEP, out)
    assert computed < 36 * m.block_size and is_the_rate(rate, computed, middle)


def test_what_training_refuses_is_refused_and_loops_without_a_gradient_are_cheaper(
    capsys, monkeypatch
):
    flags = "--bench --preset laptop --max_rows 200 --d_model 8 --n_layers 1 --device cpu"
    assert train.main(f"{flags} --vocab_size 100".split()) == 2
    assert "vocab_size 100 is less than the data's" in capsys.readouterr().err
    m, t = configs.make("laptop", d_model=8, n_layers=1, n_loops=4, vocab_size=50, gradient_loops=1)
    ours = bench.Ours(m, t, torch.device("cpu")).model
    assert ours.gradient_loops == 1 and not ours.compiled
    monkeypatch.setattr(torch, "compile", lambda block: block)
    compiled = bench.Ours(m, dataclasses.replace(t, compile=True), torch.device("cpu")).model
    assert len(compiled.compiled) == 1
    whole, last = (
        bench.product_seconds(m, each, [(96, 10)], torch.device("cpu"), None)[1]
        for each in (dataclasses.replace(t, gradient_loops=0), t)
    )
    of_a_loop = 96 * (3 * 8 * 8 + 8 * 8)
    assert (
        bench.product_seconds(  # as many words as the model is wide: still layers
            dataclasses.replace(m, vocab_size=8), t, [(96, 10)], torch.device("cpu"), None
        )[1]
        == (4 * 2 + 4) * of_a_loop + 6 * 10 * 8 * 8
    )
    assert whole - last == 3 * 4 * of_a_loop  # three loops without a way back
    assert whole == 6 * (4 * of_a_loop + 10 * 8 * 50)  # and the head


def test_each_step_waits_for_its_turn():
    turns = []

    @contextlib.contextmanager
    def turn():
        turns.append("begins")
        yield
        turns.append("ends")

    m, t = configs.make("report", **values() | dict(device="cpu"))
    facts = bench.worker(m, t, *bench.first_batch(m, t)[:2], "ours", turn)
    assert turns == ["begins", "ends"] * (bench.WARM + bench.STEPS + 1)
    assert len(facts["seconds"]) == bench.STEPS


def test_what_cannot_be_compared_is_one_line(capsys, monkeypatch):
    monkeypatch.setattr(bench, "first_batch", lambda *a: pytest.fail("it reads the data first"))
    for line, words in (
        ("--bench --against bert", "--against 'bert' is unknown; give gpt2"),
        ("--against gpt2", "--against has no effect without --bench"),
        ("--bench --against gpt2 --d_ff 0", "GPT-2 cannot express d_ff 0"),
    ):
        assert train.main(["--preset", "report", *line.split()]) == 2
        err = capsys.readouterr().err
        assert words in err and err.count("\n") == 1


def test_compile_is_refused_with_dataparallel(monkeypatch):
    monkeypatch.setattr(machine, "pick_device", lambda name: torch.device("cuda"))
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    t = configs.TrainConfig(compile=True)
    with pytest.raises(ValueError, match="does not work with DataParallel; use torchrun"):
        compiling.check_compile(t)


def test_a_compiled_run_has_the_same_losses_and_names(tiny, data, monkeypatch, capsys):
    """The layers are traced and differentiated as for the C++ compiler, which takes minutes; with
    dropout, of which each step has its own. Evaluated, saved, stopped and resumed; the plain run is
    stopped nowhere. To trace them takes seconds, so they are it in the second half alone."""
    traced = functools.partial(torch.compile, backend="aot_eager")
    monkeypatch.setattr(compiling, "check_compile", lambda t: None)
    short = dict(n_layers=1, steps=4, warmup_steps=1, eval_every=2, dropout=0.4)
    short |= dict(eval_problems=0, watch_problems=0, eval_blocks=2)
    plain = running.train(*tiny(name="plain", **short), data)
    stops, settings = iter([False, True]), tiny(name="compiled", compile=True, **short)
    monkeypatch.setattr(torch, "compile", lambda layer: layer)
    running.train(*settings, data, stop=lambda: next(stops))
    monkeypatch.setattr(torch, "compile", traced)
    compiled = running.train(*settings, data, resume=True)
    assert capsys.readouterr().out.count("Compiling a layer: the first step waits") == 2
    assert len(compiled.model.compiled) == 1
    assert same_weights(checkpoints.load(compiled.dir)[0], compiled.model)
    for a, b in zip(plain.log, compiled.log, strict=True):
        assert a["train_loss"] == pytest.approx(b["train_loss"], abs=1e-5)
        assert a["val_loss"] == pytest.approx(b["val_loss"], abs=1e-5)
