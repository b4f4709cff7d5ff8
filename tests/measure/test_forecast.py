"""What a run is said to take before it begins: what train() does is counted, and timed."""

import itertools

import pytest
import torch

import minidepth as md
from minidepth_lab.base import configs
from minidepth_lab.keep import registry, running
from minidepth_lab.measure import forecast
from minidepth_lab.tasks import walk
from minidepth_lab.tasks.base import task_data


def test_evaluations_are_those_that_train_makes():
    for steps, every in itertools.product((1, 2, 3, 6, 7, 50), (1, 2, 3, 7, 25)):
        t = configs.TrainConfig(steps=steps, eval_every=every, warmup_steps=0)
        made = [n for n in range(1, steps + 1) if n == 1 or n == steps or n % every == 0]
        assert running.evaluations_of(t) == (len(made), len(made) * 64 + 64, 0)


def test_a_run_does_as_many_evaluations_and_answers_as_were_counted(tiny, data, monkeypatch):
    """Against a run in which every call is counted."""
    m, t = tiny(steps=5, warmup_steps=1, eval_every=2, eval_problems=3, watch_problems=1)
    found = forecast.of_run(*running.complete_configs(m, t, data), data)
    assert found.evaluations == 4 and found.answered == 3 + 3 * 1
    blocks = running.evaluations_of(t, data)[1]
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
    running.train(m, t, data)
    assert seen == dict(evaluations=found.evaluations, blocks=blocks, answered=found.answered)


@pytest.fixture
def read(monkeypatch):
    """Counts the tokens that layers read, and takes a second for each that they read in a call."""
    tokens, forward = [], md.Layer.forward

    def counting(layer, x, cache=None):
        tokens.append(x.size(0) * x.size(1))
        return forward(layer, x, cache)

    def counted(call, device):
        tokens.clear()
        call()
        return sum(tokens)

    monkeypatch.setattr(md.Layer, "forward", counting)
    monkeypatch.setattr(forecast, "seconds_of", counted)
    return tokens


@pytest.mark.parametrize("batch_size, grad_accum, loops", [(4, 3, 3), (6, 1, 1), (40, 5, 1)])
def test_a_step_takes_what_it_takes_in_training(read, batch_size, grad_accum, loops):
    """A batch that is larger than what is timed, too."""
    m, t = configs.make("laptop", n_layers=2, d_model=8, vocab_size=50, block_size=64,
                        batch_size=batch_size, grad_accum=grad_accum, n_loops=loops)  # fmt: skip
    found = forecast.of_run(m, t)
    assert found.step == batch_size * grad_accum * 64 * 2 * loops
    blocks = running.evaluations_of(t)[1]
    assert found.evaluating == pytest.approx(blocks * 64 * 2 * loops)
    assert found.total == t.steps * found.step + found.evaluating


def test_data_is_timed_as_its_batches_are(read, tiny, data):
    m, t = running.complete_configs(*tiny(batch_size=4, grad_accum=3), data)
    parts = [x for x, _ in md.by_length(*data.draw(0, 12), 4)]
    tokens = sum(x.numel() for x in parts)
    assert tokens < 12 * m.block_size
    assert forecast.of_run(m, t, data).step == tokens * m.n_layers * m.n_loops


def test_of_a_run_that_goes_on_it_is_what_is_left():
    t = configs.TrainConfig(steps=7, eval_every=3, warmup_steps=0, batch_size=2, grad_accum=1)
    m = configs.ModelConfig(block_size=8, d_model=8, n_heads=1, d_ff=8, n_layers=1, vocab_size=9)
    for done, evaluations in ((1, 3), (3, 2), (6, 1)):  # at steps 1, 3, 6 and 7
        found = forecast.of_run(m, t, done=done)
        assert (found.steps, found.evaluations) == (7 - done, evaluations)


@pytest.mark.parametrize("name", ["walk", "icqa"])
def test_a_tasks_own_tests_are_counted_as_the_run_makes_them(name, monkeypatch, tmp_path):
    """Against a run in which every layer counts what it reads in evaluate(), the last one too."""
    monkeypatch.setattr(walk, "RINGS_TESTED", 20)
    monkeypatch.setattr(task_data, "N_DRAWN", 50)
    small = dict(d_model=16, n_heads=2, steps=4, warmup_steps=1, eval_every=3, batch_size=4)
    small |= dict(out_dir=str(tmp_path), name="run", data=(name,))
    if name == "walk":
        small["sizes"] = ("ring=5", "hops=2", "far=10")
    m, t = registry.configs("walk" if name == "walk" else "tasks", **small)
    data = registry.data_of(t, m.block_size)
    m, t = running.complete_configs(m, t, data)
    evaluations = running.evaluations_of(t, data)[0]
    tested, aside = forecast.tests(m, t, data, evaluations, torch.device("cpu"))
    read, measuring = [], []
    forward, measure = md.Layer.forward, type(data).evaluate

    def counting(layer, x, cache=None):
        read.extend([x.size(0) * x.size(1)] * bool(measuring))
        return forward(layer, x, cache)

    def watched(self, model):
        measuring.append(True)
        found = measure(self, model)
        measuring.clear()
        return found

    monkeypatch.setattr(md.Layer, "forward", counting)
    monkeypatch.setattr(type(data), "evaluate", watched)
    running.train(m, t, data)
    assert tested == sum(read) > 0 and aside > 0


def test_random_numbers_drawn_for_it_change_nothing_after_it(tiny, data):
    m, t = running.complete_configs(*tiny(), data)
    torch.manual_seed(5)
    forecast.of_run(m, t, data)
    after = torch.rand(3)
    torch.manual_seed(5)
    assert torch.equal(after, torch.rand(3))
