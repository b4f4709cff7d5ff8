"""The learning rate: as published, where runs are short, and the same that each step is made at."""

import pytest
from torch.optim.optimizer import register_optimizer_step_pre_hook

import minidepth as md
from minidepth_lab.base import configs
from minidepth_lab.keep import running


def rates(**changes):
    t = configs.make("laptop", **changes)[1]
    return [md.lr_at(step, t) / t.lr for step in range(t.steps)]


def test_published_learning_rates():
    config = configs.make("report")[1]
    published = {1: 0, 25: 1.44e-4, 50: 2.94e-4, 75: 2.98e-4, 250: 1.89e-4, 350: 9.83e-5, 500: 3e-5}
    for step, lr in (published | {51: 3e-4}).items():
        assert md.lr_at(step - 1, config) == pytest.approx(lr, rel=3e-3)


@pytest.mark.parametrize("floor", [0.0, 0.3, 1.0])
def test_the_rate_falls_to_the_floor_that_is_asked_for_and_stays_there(floor):
    t = configs.make("laptop", steps=60, warmup_steps=4, lr=0.5, lr_floor=floor)[1]
    assert md.lr_at(60, t) == pytest.approx(0.5 * floor)
    assert md.lr_at(32, t) == pytest.approx(0.5 * (1 + floor) / 2)  # half of the cosine
    short = dict(warmup_steps=2, lr_floor=floor)
    longer = rates(steps=20, lr_steps=10, **short)
    assert longer[:10] == rates(steps=10, **short) and longer[10:] == [floor] * 10


@pytest.mark.parametrize("changes, at", [
    (dict(steps=12, warmup_steps=0.1), 1), (dict(steps=18, warmup_steps=0.1), 2),
    (dict(steps=26, warmup_steps=0.05), 1), (dict(steps=20), 2), (dict(steps=51), 50),
    (dict(steps=20, warmup_steps=7), 7), (dict(steps=4, warmup_steps=0.9), 3),
    (dict(steps=20, lr_steps=10, warmup_steps=0.4), 4), (dict(steps=40, warmup_steps=1), 1),
    *((dict(steps=1, warmup_steps=share), 0) for share in (0, 0.1, 0.9)),
])  # fmt: skip
def test_the_warm_up_is_a_number_of_steps_or_a_share_of_those_that_the_rate_changes_in(changes, at):
    """A share is rounded to the nearest step and leaves one at the peak; a run too short for the
    preset's own warm-up takes a tenth."""
    found = rates(**changes)
    assert found[: at + 1] == pytest.approx([step / at if at else 1 for step in range(at + 1)])
    assert found.index(max(found)) == at
    assert configs.steps_of_rise(configs.make("laptop", **changes)[1]) == at


@pytest.mark.parametrize(
    "changes, warmup", [(dict(steps=50), 0.1), (dict(epochs=2), 0.1), (dict(epochs=0), 50)]
)
def test_where_the_presets_warm_up_is_too_long(changes, warmup):
    assert configs.make("laptop", **changes)[1].warmup_steps == warmup
    for steps in (1, 50):  # one that is asked for is refused
        with pytest.raises(ValueError, match=f"warmup_steps {steps} leaves none of {steps} steps"):
            configs.make("laptop", steps=steps, warmup_steps=steps)


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
