"""The learning rate where runs are short, and where the warm-up is a share of the steps."""

import pytest
from torch.optim.optimizer import register_optimizer_step_pre_hook

import minidepth as md
from minidepth_lab.base import configs
from minidepth_lab.keep import running


def test_published_learning_rates():
    config = configs.make("report")[1]
    published = {1: 0, 25: 1.44e-4, 50: 2.94e-4, 75: 2.98e-4, 250: 1.89e-4, 350: 9.83e-5, 500: 3e-5}
    for step, lr in (published | {51: 3e-4}).items():
        assert md.lr_at(step - 1, config) == pytest.approx(lr, rel=3e-3)


@pytest.mark.parametrize("steps, share, at", [(12, 0.1, 1), (18, 0.1, 2), (26, 0.05, 1)])
def test_a_share_of_warm_up_is_rounded_to_the_nearest_step(steps, share, at):
    t = configs.make("laptop", steps=steps, warmup_steps=share)[1]
    rates = [md.lr_at(step, t) for step in range(steps)]
    assert rates.index(max(rates)) == at
    assert rates[:at] == pytest.approx([t.lr * step / at for step in range(at)])


@pytest.mark.parametrize("floor", [0.0, 0.3, 1.0])
def test_the_rate_falls_to_the_floor_that_is_asked_for(floor):
    t = configs.make("laptop", steps=60, warmup_steps=4, lr=0.5, lr_floor=floor)[1]
    assert md.lr_at(4, t) == pytest.approx(0.5)
    assert md.lr_at(60, t) == pytest.approx(0.5 * floor)
    middle = md.lr_at(32, t)  # half of the cosine is behind it
    assert middle == pytest.approx(0.5 * (1 + floor) / 2)


@pytest.mark.parametrize("warmup", [1, 50])
def test_a_warm_up_never_takes_the_only_step(warmup):
    """Its rate would be 0, and nothing trained."""
    with pytest.raises(ValueError, match=f"warmup_steps {warmup} leaves none of 1 steps"):
        configs.make("laptop", steps=1, warmup_steps=warmup)
    for share in (0, 0.1, 0.9):
        t = configs.make("laptop", steps=1, warmup_steps=share)[1]
        assert md.lr_at(0, t) == pytest.approx(t.lr)


def test_each_step_is_made_at_its_own_rate(tiny, data):
    """The optimizer's, not only the one that is logged; of all its groups."""
    made = []

    def note(optimizer, arguments, named):
        made.append([group["lr"] for group in optimizer.param_groups])

    hook = register_optimizer_step_pre_hook(note)
    try:
        m, t = tiny()
        running.train(m, t, data)
    finally:
        hook.remove()
    assert made == [[md.lr_at(step, t)] * 2 for step in range(t.steps)]
