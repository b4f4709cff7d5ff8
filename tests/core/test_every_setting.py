"""No setting of the model or its training is ignored: each changes what a short run comes to."""

import pytest

from conftest import same_weights
from minidepth_lab.base import configs
from minidepth_lab.keep import running
from settings_changed import COMPUTING, MEASURING, OTHER_WEIGHTS, TRAINING

BASE = dict(
    n_layers=2, d_model=16, n_heads=2, d_ff=16, block_size=80, dropout=0.1, batch_size=4, steps=4,
    warmup_steps=1, lr=0.05, grad_accum=1, eval_every=2, eval_blocks=4, eval_problems=0,
    watch_problems=0, max_rows=300, ring_questions=1, tie_weights=True,
)  # fmt: skip


@pytest.fixture(scope="module")
def trained(data, tmp_path_factory):
    """Trains with changed settings → (weights, log)."""
    out, made = str(tmp_path_factory.mktemp("runs")), {}

    def train(**changes):
        key = str(changes)
        if key not in made:
            values = BASE | dict(out_dir=out, name=f"run-{len(made)}") | changes
            run = running.train(*configs.make("laptop", **values), data=data)
            made[key] = run.model.state_dict(), run.log
        return made[key]

    return train


def shapes(weights):
    return {name: w.shape for name, w in weights.items()}


@pytest.mark.parametrize("name", TRAINING)
def test_a_setting_of_the_training_changes_its_weights(trained, name):
    plain, changed = trained()[0], trained(**{name: TRAINING[name]})[0]
    assert shapes(plain) == shapes(changed)
    assert not same_weights(plain, changed)


@pytest.mark.parametrize("name", OTHER_WEIGHTS)
def test_a_setting_of_the_model_changes_which_weights_it_has(trained, name):
    plain, changed = trained()[0], trained(**{name: OTHER_WEIGHTS[name]})[0]
    assert shapes(plain) != shapes(changed)


@pytest.mark.parametrize("name", MEASURING | COMPUTING)
def test_how_a_run_is_measured_and_computed_does_not_change_its_weights(trained, name):
    changes = MEASURING | COMPUTING
    assert same_weights(trained()[0], trained(**{name: changes[name]})[0])


def test_what_is_measured_is_what_was_asked_for(trained):
    log = trained()[1]
    assert [record["step"] for record in log] == [1, 2, 4]
    assert [row["step"] for row in trained(eval_every=3)[1]] == [1, 3, 4]
    fewer = trained(eval_blocks=2)[1]
    assert all(a["val_loss"] != b["val_loss"] for a, b in zip(log, fewer))


def test_the_loss_on_what_is_trained_on_is_always_of_the_same_blocks(trained):
    """At rate 0 the weights stay, and so does what is measured, however long the run."""
    first, second = (trained(lr=0.0, steps=steps)[1][-1] for steps in (3, 4))
    assert first["val_loss"] == second["val_loss"]
    assert first["train_loss_eval"] == second["train_loss_eval"] != second["val_loss"]
