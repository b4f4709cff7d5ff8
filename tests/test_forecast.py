"""What a run is said to take before it begins: counted as train() does it, timed part by part."""

import pytest
import torch

import minidepth as md
from minidepth_lab.base import configs, machine
from minidepth_lab.keep import registry, running
from minidepth_lab.measure import forecast
from minidepth_lab.models import variants

CPU = torch.device("cpu")


@pytest.mark.parametrize("every", [1, 2, 3, 7, 25])
@pytest.mark.parametrize("steps", [1, 2, 3, 6, 7, 50])
def test_evaluations_are_those_that_train_makes(steps, every):
    t = configs.TrainConfig(steps=steps, eval_every=every, warmup_steps=0)
    made = [n for n in range(1, steps + 1) if n == 1 or n == steps or n % every == 0]
    assert running.evaluations_of(t) == (len(made), len(made) * 64 + 64, 0)


def test_a_run_does_as_many_evaluations_and_answers_as_were_counted(tiny, data, monkeypatch):
    """Against a run in which every call is counted."""
    seen = dict(evaluations=0, blocks=0, answered=0)
    mean_loss, answers = md.mean_loss, md.answer_texts

    def counting(model, part, n, batch_size):
        seen["evaluations"] += part is data.val
        seen["blocks"] += min(n, len(part[0]))
        return mean_loss(model, part, n, batch_size)

    def asked(model, tokenizer, problems, *more):
        seen["answered"] += len(problems)
        return answers(model, tokenizer, problems, *more)

    monkeypatch.setattr(md, "mean_loss", counting)
    monkeypatch.setattr(md, "answer_texts", asked)
    m, t = tiny(steps=7, warmup_steps=1, eval_every=3, eval_problems=5, watch_problems=2)
    work = forecast.work_of(*running.complete_configs(m, t, data), data)
    running.train(m, t, data)
    assert seen == {name: getattr(work, name) for name in seen}
    assert work.evaluations == 4 and work.answered == 5 + 3 * 2


def test_a_step_is_counted_as_the_parts_that_its_batch_makes(tiny, data):
    m, t = tiny(batch_size=4, grad_accum=3)
    work = forecast.work_of(*running.complete_configs(m, t, data), data)
    tokens, targets = data.draw(0, 12)
    parts = [x for x, _ in md.by_length(tokens, targets, 4)]
    assert work.tokens == pytest.approx(sum(x.numel() for x in parts))
    assert work.learned == (targets != -100).sum() and work.layers == m.n_layers * m.n_loops


def test_a_loss_after_each_loop_counts_each_loop():
    m, t = registry.configs("walk")
    data = registry.data_of(t, m.block_size)
    _, targets = data.draw(0, t.batch_size * t.grad_accum)
    work = forecast.work_of(*running.complete_configs(m, t, data), data)
    assert targets.dim() == 3 and work.layers == m.n_layers * targets.size(1)


def test_loops_without_a_gradient_go_forward_alone(monkeypatch):
    parts = dict(layer_seconds=(0.5, 0.25), head_seconds=(2.0, 1.0), update_seconds=0.125)
    for name, seconds in parts.items():
        monkeypatch.setattr(forecast, name, lambda *given, seconds=seconds: seconds)
    loops = dict(n_layers=2, n_loops=5, loop_start="recall")
    steps = []
    for learned in (0, 1, 5, 9):
        m, t = configs.make("report", gradient_loops=learned, **loops)
        steps.append(forecast.forecast(m, t, forecast.work_of(m, t), None, CPU).step)
    every = 10 * 0.5 + 2.0 + 0.125
    assert steps == [every, 2 * 0.5 + 8 * 0.25 + 2.0 + 0.125, every, every]


@pytest.mark.parametrize("name", ["walk", "icqa"])
def test_a_tasks_own_tests_are_counted_as_the_run_makes_them(name, monkeypatch, tmp_path):
    """Against a run in which every layer counts what it reads in evaluate(), the last one too."""
    small = dict(d_model=16, n_heads=2, steps=7, warmup_steps=1, eval_every=3, batch_size=4)
    small |= dict(out_dir=str(tmp_path), name="run", data=(name,))
    if name != "icqa":
        small["sizes"] = ("ring=5", "hops=2", "far=40")
    preset = name if name in configs.PRESETS else "tasks"
    m, t = registry.configs(preset, **small)
    data = registry.data_of(t, m.block_size)
    m, t = running.complete_configs(m, t, data)
    work = forecast.work_of(m, t, data)
    forecast.count_tests(m, t, work, data, CPU)
    read, measuring = [], []
    forward, measure = md.Layer.forward, type(data).evaluate

    def counting(layer, x, cache=None):
        if measuring:
            read.append(x.size(0) * x.size(1))
        return forward(layer, x, cache)

    def watched(self, model):
        measuring.append(True)
        found = measure(self, model)
        measuring.clear()
        return found

    monkeypatch.setattr(md.Layer, "forward", counting)
    monkeypatch.setattr(type(data), "evaluate", watched)
    running.train(m, t, data)
    assert work.tested == sum(read) > 0 and work.aside > 0 and not work.untried


@pytest.mark.parametrize("processes, gpus, batch", [(1, 4, 4), (2, 8, 8), (8, 4, 2), (1, 0, 16)])
def test_a_batch_is_shared_by_gpus_or_else_by_processes(processes, gpus, batch, monkeypatch):
    """Of processes each has a GPU, however many its machine has."""
    seen = []
    monkeypatch.setattr(
        machine, "pick_device", lambda device: torch.device("cuda" if gpus else "cpu")
    )
    monkeypatch.setattr(machine, "pick_precision", lambda precision, device: None)
    monkeypatch.setattr(md, "processes", lambda: (0, processes))
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    monkeypatch.setattr(forecast, "forecast", lambda m, t, work, *given: seen.append(work.batch))
    forecast.of_run(*configs.make("report", batch_size=16, grad_accum=1, data="embedded"))
    assert seen == [batch]


def test_the_whole_is_the_sum_of_its_parts(monkeypatch):
    m, t = configs.make("report", n_layers=3, steps=100, batch_size=4, grad_accum=2)
    work = forecast.work_of(m, t)
    work.answered, work.words = 150, 10
    monkeypatch.setattr(forecast, "layer_seconds", lambda *given: (0.5, 0.25))
    monkeypatch.setattr(forecast, "head_seconds", lambda *given: (2.0, 1.0))
    monkeypatch.setattr(forecast, "update_seconds", lambda *given: 0.125)
    monkeypatch.setattr(forecast, "word_seconds", lambda *given: 0.01)
    found = forecast.forecast(m, t, work, None, CPU)
    assert found.step == 2 * (3 * 0.5 + 2.0) + 0.125
    blocks = 5 * 64 + 64  # at 1, 25, 50, 75 and 100, and the training loss of the end
    assert found.evaluations == blocks * (3 * 0.25 + 1.0) / 4
    assert found.answers == pytest.approx(2 * 10 * 0.01 + 150 * 3 * 0.25 / 4)
    assert found.total == pytest.approx(100 * found.step + found.evaluations + found.answers)


def clock(monkeypatch):
    """Let time pass by one second each time it is asked."""
    ticks = iter(range(10**9))
    monkeypatch.setattr(forecast.time, "perf_counter", lambda: float(next(ticks)))


def test_what_is_timed_in_part_is_multiplied(monkeypatch):
    """A clock that gives one second to every call, however much it computes."""
    clock(monkeypatch)
    m, t = configs.make("report", d_model=16, d_ff=0, n_heads=(2, 4), n_layers=2, vocab_size=50)
    work = forecast.work_of(m, t)
    there, alone = forecast.layer_seconds(m, t, work, None, CPU)
    at_once = forecast.TOKENS // 512
    assert there == alone == 16 / at_once  # sequences, so many at a time
    calls, forward = [], md.Layer.forward
    monkeypatch.setattr(md.Layer, "forward", lambda *given: calls.append(1) or forward(*given))

    def counted(part, device):
        before = len(calls)
        part()
        return len(calls) - before

    monkeypatch.setattr(forecast, "seconds_of", counted)
    assert forecast.layer_seconds(m, t, work, None, CPU) == (16 / at_once, 16 / at_once)
    t.grad_checkpoint = True  # goes forward once more on the way back
    assert forecast.layer_seconds(m, t, work, None, CPU) == (2 * 16 / at_once, 16 / at_once)
    monkeypatch.setattr(forecast, "seconds_of", lambda part, device: len(rows_of(part)) / 8)
    both = forecast.head_seconds(m, work, None, CPU)
    assert both == pytest.approx([16 * 512 / 8] * 2)


def test_the_update_that_is_timed_moves_every_weight(monkeypatch):
    """One without a gradient would be passed over, and take no time."""
    timed, make = [], md.make_optimizer
    monkeypatch.setattr(md, "make_optimizer", lambda m, t: timed.append(m) or make(m, t))

    def moved(part, device):
        before = [p.clone() for p in timed[0]]
        part()
        return sum(int((p != old).sum()) for p, old in zip(timed[0], before))

    monkeypatch.setattr(forecast, "seconds_of", moved)  # a second for each weight that moves
    m, t = configs.make("report", d_model=16, d_ff=32, n_heads=2, n_layers=2, vocab_size=50)
    seconds = forecast.update_seconds(m, t, CPU)
    assert seconds == pytest.approx(variants.parameters(m)["total"], rel=1e-3)


def rows_of(part):
    """The rows of h of a call of the head that is being timed."""
    return part.__closure__[part.__code__.co_freevars.index("h")].cell_contents


def test_random_numbers_drawn_for_it_change_nothing_after_it(tiny, data):
    m, t = running.complete_configs(*tiny(), data)
    torch.manual_seed(5)
    forecast.forecast(m, t, forecast.work_of(m, t, data), None, CPU)
    after = torch.rand(3)
    torch.manual_seed(5)
    assert torch.equal(after, torch.rand(3))
