"""What must not change between a stop and a resume, and what may."""

import json
import os
import shutil

import pytest
import torch

import train
from conftest import same_weights
from minidepth_lab.base import configs
from minidepth_lab.keep import checkpoints, running
from minidepth_lab.measure import results
from minidepth_lab.rows import to_data

SHORT = dict(steps=6, warmup_steps=2, eval_every=3, eval_problems=0, watch_problems=0)

# of the same shapes of weights, so that nothing else would notice; with the value it has at first
CHANGES = dict(
    steps=7, lr=0.01, lr_floor=0.3, warmup_steps=3, weight_decay=0.4, beta1=0.5, beta2=0.8,
    grad_clip=0.3, seed=5, batch_size=2, grad_accum=3, eval_every=2, eval_blocks=3, packing="pack",
    loss_on="all", dropout=0.2, residual_dropout=0.3, embedding_dropout=0.1, n_loops=2, n_heads=4,
    attn_scale=0.7, attn_window=3, init_std=0.3, init="pytorch", decay_all=True,
)  # fmt: skip


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    """(ModelConfig, TrainConfig) of the runs here."""
    out = str(tmp_path_factory.mktemp("cut"))

    def make(**changes):
        values = dict(n_layers=1, d_model=16, n_heads=2, d_ff=16, block_size=80, dropout=0.1,
                      batch_size=4, grad_accum=1, max_rows=300, ring_questions=1)  # fmt: skip
        values |= SHORT | dict(eval_blocks=4, out_dir=out, name="run")
        return configs.make("laptop", **values | changes)

    return make


def stopped(settings, data):
    """The folder of a run that was stopped after step 3 of 6."""
    asked = []
    return running.train(*settings, data, stop=lambda: asked.append(1) or len(asked) == 3).dir


@pytest.fixture(scope="module")
def cut(data, settings):
    """The folder of a run that was stopped; tests must not change it."""
    return stopped(settings(), data)


@pytest.fixture(scope="module")
def whole(data, settings):
    """The run that was not stopped."""
    return running.train(*settings(name="whole"), data)


@pytest.fixture
def copied(cut, tmp_path, settings):
    """(a copy of the folder of the run that was stopped, what makes its settings)"""
    copy = shutil.copytree(cut, tmp_path / "copy")
    return copy, lambda **more: settings(out_dir=str(tmp_path), name="copy", **more)


@pytest.mark.parametrize("name", CHANGES)
def test_a_setting_that_the_results_follow_from_may_not_change(cut, settings, data, name):
    before = sorted((entry.name, entry.stat().st_mtime_ns) for entry in os.scandir(cut))
    with pytest.raises(ValueError) as error:
        running.train(*settings(**{name: CHANGES[name]}), data=data, resume=True)
    assert name in str(error.value) and "\n" not in str(error.value)
    after = sorted((entry.name, entry.stat().st_mtime_ns) for entry in os.scandir(cut))
    assert before == after


def test_what_does_not_change_the_results_may_change(copied, data, whole):
    _, settings = copied
    run = running.train(*settings(grad_checkpoint=True, device="cpu"), data, resume=True)
    assert run.log[-1]["train_loss"] == whole.log[-1]["train_loss"]
    assert same_weights(whole.model, run.model)


def test_the_batch_may_be_shared_out_anew(settings, data, tmp_path, capsys, kept):
    """As many sequences a step: the same gradients, but for what is rounded in another order."""
    shared = ["--batch_size", "2", "--grad_accum", "2"]
    for name, flags in (("one", []), ("other", shared)):
        stopped(settings(name=name, out_dir=str(tmp_path), dropout=0.0), data)
        for wrong in (shared[:2], shared[2:], [*shared[:2], "--grad_accum", "3"]):
            assert train.main(["--resume", str(tmp_path / name), *wrong]) == 2
            its = f"batch_size x grad_accum, 4 x 1; leave out {wrong[0]}"
            assert its in capsys.readouterr().err
        assert train.main(["--resume", str(tmp_path / name), *flags]) == 0
    one, other = (results.result(tmp_path / name)["log"] for name in ("one", "other"))
    for a, b in zip(one, other, strict=True):
        assert b["train_loss"] == pytest.approx(a["train_loss"], rel=1e-5)
        assert b["val_loss"] == pytest.approx(a["val_loss"], rel=1e-5)


def test_a_run_of_older_code_goes_on_to_the_same(copied, data, whole):
    """Its files lack the settings that came later, and have one that has gone since."""
    copy, settings = copied
    config, newest = copy / "config.json", copy / "state.pt"
    about, state = json.loads(config.read_text()), torch.load(newest)
    for both in (about, state["settings"]):
        del both["train"]["lr_steps"], both["train"]["keep"], both["model"]["bias"]
        both["train"]["of_old"] = 3
    config.write_text(json.dumps(about))
    torch.save(state, newest)
    assert checkpoints.read_config(str(copy))[1].steps == 6
    run = running.train(*settings(), data, resume=True)
    assert run.log[-1]["train_loss"] == whole.log[-1]["train_loss"]
    assert same_weights(whole.model, checkpoints.load(str(copy))[0])


def test_a_tokenizer_that_differs_by_a_space_is_not_the_runs(copied, data):
    """It may read the same: whoever wrote it may have changed more. Loading notices it too."""
    copy, settings = copied
    assert checkpoints.load(str(copy))[1] is not None
    path = copy / "tokenizer" / "tokenizer.json"
    whole = path.read_text(encoding="utf-8")
    for changed in (whole + " ", whole.replace(":", ": ", 1)):
        path.write_text(changed, encoding="utf-8")
        with pytest.raises(ValueError, match="tokenizer"):
            checkpoints.load(str(copy))
        with pytest.raises(ValueError, match="tokenizer.*is not what the run was trained with"):
            running.train(*settings(), data, resume=True)
    path.write_text(whole, encoding="utf-8")
    assert running.train(*settings(), data, resume=True).log[-1]["step"] == 6


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes in folders here")
def test_a_pipe_among_a_tokenizers_files_is_told_and_not_waited_on(copied):
    copy, _ = copied
    os.mkfifo(copy / "tokenizer" / "pipe")
    with pytest.raises(ValueError, match="tokenizer cannot be read: it is not a regular file"):
        checkpoints.load(str(copy))


def test_a_resume_takes_the_runs_own_tokenizer(data, tmp_path):
    """The folder that --tokenizer named may have gone or hold another one."""
    own = tmp_path / "tokenizer"
    data.tokenizer.save_pretrained(own)
    values = dict(n_layers=1, d_model=16, n_heads=2, d_ff=0, max_rows=60, ring_questions=1)
    values |= SHORT | dict(tokenizer=str(own), out_dir=str(tmp_path), name="run")
    settings = configs.make("laptop", **values)
    running.train(*settings, stop=lambda: True)
    shutil.rmtree(own)
    run = running.train(*settings, resume=True)
    assert run.log[-1]["step"] == 6 and run.tokenizer.get_vocab() == data.tokenizer.get_vocab()


def test_a_text_that_has_changed_is_noticed_whichever_it_is(tmp_path, jsonl):
    """Plain text makes no problems: nothing but the blocks can tell."""
    rows = [dict(text=f"row {i} of words") for i in range(40)]
    values = dict(data=(jsonl(rows),), packing="pad", loss_on="all", block_size=16, n_layers=1,
                  d_model=16, n_heads=2, d_ff=0, max_rows=0, val_fraction=0.2)  # fmt: skip
    values |= SHORT | dict(out_dir=str(tmp_path), name="run")
    m, t = configs.make("laptop", **values)
    data = to_data.load_data(t, m.block_size)
    assert not data.problems and [len(data.train[0]), len(data.val[0])] == [32, 8]
    running.train(m, t, data, stop=lambda: True)
    for part in (data.train, data.val):
        text = data.tokenizer.decode(part[0][0])
        (i,) = (i for i in range(40) if f"row {i} of" in text)
        jsonl([*rows[:i], dict(text=f"row {i} of sword"), *rows[i + 1 :]])
        with pytest.raises(ValueError, match="is not what its checkpoint was trained on"):
            running.train(m, t, resume=True)
    jsonl(rows)
    assert running.train(m, t, resume=True).log[-1]["step"] == 6


def test_after_a_damaged_checkpoint_the_next_one_has_a_whole_one_before_it(copied, data, capsys):
    """The damaged one would take that place, and a second damage would lose the run."""
    copy, settings = copied
    shutil.copy(copy / "state.pt", copy / "state.previous.pt")
    for _ in range(2):
        content = (copy / "state.pt").read_bytes()
        (copy / "state.pt").write_bytes(content[: len(content) // 2])
        running.train(*settings(), data, resume=True, stop=lambda: True)
        assert capsys.readouterr().out.count("state.pt is not a checkpoint to resume from") == 1
    assert running.train(*settings(), data, resume=True).log[-1]["step"] == 6
