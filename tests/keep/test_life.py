"""What a finished run can still do: go on for longer, be begun from, keep its best, end early."""

import contextlib
import dataclasses
import io
import json
import math
import os
import shutil
import signal

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import GPT2Config, GPT2LMHeadModel

import minidepth as md
from conftest import call, same_weights
from minidepth_lab.base import configs
from minidepth_lab.command import one_run, sample
from minidepth_lab.keep import checkpoints, export, registry, running
from minidepth_lab.measure import results
from minidepth_lab.models import variants
from minidepth_lab.studies import thinking

pytestmark = pytest.mark.usefixtures("kept")
SMALL = dict(
    n_layers=1, d_model=16, n_heads=2, d_ff=32, block_size=80, dropout=0.1, batch_size=4,
    grad_accum=1, max_rows=300, ring_questions=1, warmup_steps=2, eval_every=2, eval_blocks=4,
    eval_problems=0, watch_problems=0,
)  # fmt: skip


SHAPE = dict(vocab_size=50, n_positions=16, n_embd=8, n_layer=1, n_head=2)  # of a GPT-2


def settings(tmp_path, name, **changes):
    return configs.make("laptop", **SMALL | dict(out_dir=str(tmp_path), name=name) | changes)


def losses(run):
    return [
        (record["step"], record["lr"], record["train_loss"], record["val_loss"])
        for record in run.log
    ]


# ---------- longer ----------


def test_a_finished_run_goes_on_as_one_that_was_to_be_longer(data, tmp_path):
    whole = running.train(*settings(tmp_path, "whole", steps=10, lr_steps=6), data)
    first = running.train(*settings(tmp_path, "run", steps=6), data)
    assert results.result(first.dir)["step"] == 6
    longer = settings(tmp_path, "run", steps=10, lr_steps=6)
    run = running.train(*longer, data, resume=True, changed=("steps", "lr_steps"), command="x")
    assert same_weights(run.model, whole.model) and run.finished
    # the end of the first six steps was an evaluation, as it is of the whole
    assert losses(run) == losses(whole)
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert config["train"]["steps"] == 10 and config["command"] == "x"
    before = dict(steps_done=6, train=dict(steps=6, lr_steps=0), command=None)
    assert config["earlier"] == [before]
    with pytest.raises(ValueError, match="10 of 10 steps are done; give more --steps"):
        running.train(*longer, data, resume=True)
    again = settings(tmp_path, "run", steps=11, lr_steps=6)
    running.train(*again, data, resume=True, changed=("steps",))
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    after = dict(steps_done=10, train=dict(steps=10), command="x")
    assert config["earlier"] == [before, after]


def test_a_run_that_is_killed_right_after_it_was_made_longer_goes_on(data, tmp_path):
    """Its checkpoint has the settings of before, and its config.json those of now."""
    running.train(*settings(tmp_path, "run", steps=6), data)
    whole = running.train(*settings(tmp_path, "whole", steps=10, lr_steps=6), data)

    class Killed(Exception):
        pass

    def stop():
        raise Killed

    longer = settings(tmp_path, "run", steps=10, lr_steps=6)
    with pytest.raises(Killed):
        running.train(*longer, data, resume=True, changed=("steps", "lr_steps"), stop=stop)
    assert checkpoints.read_state(tmp_path / "run" / "state.pt")["settings"]["train"]["steps"] == 6
    run = running.train(*checkpoints.read_config(str(tmp_path / "run")), data, resume=True)
    assert same_weights(run.model, whole.model)


def test_a_rate_that_has_fallen_to_0_trains_no_longer(data, tmp_path, capsys):
    running.train(*settings(tmp_path, "run", steps=6, lr_floor=0.0), data)
    code, _, err = call(f"--resume {tmp_path / 'run'} --steps 9", capsys)
    assert code == 2 and "fell to 0 by step 6 and stays there; give --lr_steps 9 too" in err
    assert call(f"--resume {tmp_path / 'run'} --steps 9 --lr_steps 9", capsys)[0] == 0


def test_epochs_are_made_longer_by_epochs(data, tmp_path, capsys):
    run = running.train(*settings(tmp_path, "run", epochs=1, batch_size=300, warmup_steps=0), data)
    steps = run.log[-1]["step"]
    code, _, err = call(f"--resume {run.dir} --steps 99", capsys)
    assert code == 2 and "counts epochs, 1 of them; give --epochs" in err
    code, _, err = call(f"--resume {run.dir}", capsys)
    assert code == 2 and "give more --epochs to go on" in err
    code, out, _ = call(f"--resume {run.dir} --epochs 3", capsys)
    assert code == 0 and "3 epochs instead of 1" in out
    assert results.result(run.dir)["step"] == 3 * steps
    assert checkpoints.read_config(run.dir)[1].lr_steps == steps


# ---------- begun from ----------


@pytest.fixture(scope="module")
def source(data, tmp_path_factory):
    """The run whose weights others begin with."""
    return running.train(*settings(tmp_path_factory.mktemp("runs"), "source", steps=4), data)


def test_a_run_begins_with_the_weights_of_another_and_its_words(source, tmp_path, capsys):
    line = f"--init_from {source.dir} --out_dir {tmp_path} --max_rows 300 --eval_blocks 4"
    line += " --ring_questions 1 --batch_size 4 --grad_accum 1 --steps 2 --warmup_steps 0"
    line += " --lr 0 --eval_problems 0 --watch_problems 0"
    code, out, err = call(f"{line} --name next", capsys)
    assert code == 0, err
    assert f"weights to begin with: {source.dir}" in out
    model, tokenizer = checkpoints.load(str(tmp_path / "next"))
    assert same_weights(source.model, model)
    assert tokenizer.get_vocab() == source.tokenizer.get_vocab()
    row = results.result(tmp_path / "next")
    assert row["val_loss"] == pytest.approx(source.log[-1]["val_loss"], rel=1e-6)
    # other loops of the same layers, but no other layers
    assert call(f"{line} --name loops --n_loops 3", capsys)[0] == 0
    for flags, words in (
        (f"{line} --name other --n_layers 2", "n_layers 2 is not that of"),
        (f"{line} --name other --tokenizer embedded", "brings the tokenizer"),
        (f"--init_from {tmp_path}/nowhere", "nowhere is not there"),
        (f"--init_from {tmp_path}", "is no configuration of a GPT-2"),
    ):
        code, _, err = call(flags, capsys)
        assert code == 2 and words in err and not (tmp_path / "other").exists()


def test_train_itself_begins_with_them_too_and_refuses_another_shape(source, data, tmp_path):
    begun = dict(init_from=source.dir, steps=1, lr=0.0, warmup_steps=0)
    for name, resume in (("next", False), ("resumed", True)):  # nothing has been saved yet of it
        run = running.train(*settings(tmp_path, name, **begun), data, resume=resume)
        assert same_weights(run.model, source.model)
    own = running.train(*settings(tmp_path, "own", **begun, tokenizer_size=300))  # with its words
    assert own.tokenizer.get_vocab() == source.tokenizer.get_vocab()
    with pytest.raises(ValueError, match=f"began with the weights of {source.dir}; --sample that"):
        sample.untrained(own.dir)
    with pytest.raises(ValueError, match=f"init_from {source.dir} is of another shape than this"):
        running.train(*settings(tmp_path, "wide", d_model=32, **begun), data)
    with pytest.raises(ValueError, match="^weights is of another shape than this model"):
        weights = source.model.state_dict()
        running.train(*settings(tmp_path, "wider", d_model=32), data, weights=weights)
    # the shapes of the weights do not tell how many heads there are
    with pytest.raises(ValueError, match=f"n_heads 4 is not that of {source.dir}, 2; leave it out"):
        registry.configs("laptop", init_from=source.dir, n_heads=4)


def test_a_run_that_began_with_weights_goes_on_without_them(source, data, tmp_path):
    weights = shutil.copytree(source.dir, tmp_path / "source")
    changes = dict(steps=6, init_from=str(weights))
    whole = running.train(*settings(tmp_path, "whole", **changes), data)
    running.train(*settings(tmp_path, "run", **changes), data, stop=lambda: True)
    shutil.rmtree(weights)
    resumed = running.train(*settings(tmp_path, "run", **changes), data, resume=True)
    assert resumed.finished and same_weights(resumed.model, whole.model)


def test_presets_of_studies_begin_from_a_run_too(solved, tmp_path):
    m, t = registry.configs("tasks", data="icqa", init_from=solved)
    assert m == checkpoints.read_config(solved)[0] and t.tokenizer != "embedded"
    shutil.copytree(solved, tmp_path / "kept")
    assert checkpoints.settings_of_weights(str(tmp_path / "kept"))["n_layers"] == 2


def test_a_gpt2_is_begun_from(source, tmp_path, capsys):
    folder = str(tmp_path / "gpt2")
    export.export_hf(source.dir, folder)
    line = f"--init_from {folder} --out_dir {tmp_path} --max_rows 300 --ring_questions 1"
    line += " --batch_size 4 --grad_accum 1 --steps 1 --warmup_steps 0 --lr 0 --eval_problems 0"
    code, out, err = call(f"{line} --name next", capsys)
    assert code == 0 and f"weights to begin with: {folder}" in out, err
    model, tokenizer = checkpoints.load(str(tmp_path / "next"))
    assert same_weights(source.model, model)
    assert tokenizer.get_vocab() == source.tokenizer.get_vocab()
    with pytest.raises(ValueError, match="is not the configuration of a run"):
        checkpoints.read_config(folder)


@pytest.mark.parametrize("with_biases", [False, True])
def test_a_gpt2_of_anybodys_says_the_same_here(tmp_path, with_biases):
    """With biases, and dropout of three kinds, or without."""
    gpt2 = GPT2LMHeadModel(GPT2Config(**SHAPE, activation_function="gelu"))
    rates = (0.1, 0.2, 0.3) if with_biases else (0.1, 0.1, 0.1)
    for name, rate in zip(("attn_pdrop", "resid_pdrop", "embd_pdrop"), rates):
        setattr(gpt2.config, name, rate)
    for name, weight in gpt2.transformer.h.named_parameters():
        if with_biases and name.endswith("bias"):
            torch.nn.init.normal_(weight)
    gpt2.save_pretrained(tmp_path)
    config = export.gpt2_config(tmp_path)
    its = (config.dropout, config.residual_dropout, config.embedding_dropout)
    assert config.bias == with_biases and its == (rates if with_biases else (0.1, None, None))
    model = variants.GPT(config).eval()
    model.load_state_dict(export.from_gpt2(tmp_path))
    some = torch.arange(12)[None]
    torch.testing.assert_close(model(some), gpt2.eval()(some).logits)


def test_a_gpt2_that_is_another_model_is_refused(tmp_path):
    GPT2LMHeadModel(GPT2Config(**SHAPE)).save_pretrained(tmp_path / "new")
    with pytest.raises(ValueError, match="activation_function is 'gelu_new'"):
        export.gpt2_config(tmp_path / "new")
    gpt2 = GPT2LMHeadModel(GPT2Config(**SHAPE, activation_function="gelu"))
    gpt2.transformer.h[0].mlp.c_fc.weight.data[0, 0] = torch.nan
    gpt2.save_pretrained(tmp_path / "nan")
    with pytest.raises(ValueError, match="nan holds infinite or NaN weights"):
        export.from_gpt2(tmp_path / "nan")
    torch.save({}, tmp_path / "nan" / "pytorch_model.bin")  # which would be unpickled
    os.remove(tmp_path / "nan" / "model.safetensors")
    with pytest.raises(ValueError, match="cannot be read as GPT-2"):
        export.from_gpt2(tmp_path / "nan")


# ---------- the best, and an early end ----------

WORSE = dict(steps=12, lr=0.3, lr_floor=1.0, warmup_steps=0, keep="best")  # it diverges slowly


def test_the_best_weights_are_kept_and_loaded(data, tmp_path, capsys):
    run = running.train(*settings(tmp_path, "run", **WORSE), data)
    best = min(run.log, key=lambda record: record["val_loss"])
    assert 1 <= best["step"] < 12
    count = []
    stopped = settings(tmp_path, "part", **WORSE | dict(keep="last"))
    part = running.train(*stopped, data, stop=lambda: count.append(1) or len(count) == best["step"])
    assert same_weights(part.model, checkpoints.load(run.dir)[0])
    assert same_weights(checkpoints.load(run.dir, checkpoints.LAST)[0], run.model)
    said = checkpoints.describe_weights(run.dir)
    assert f"best.safetensors, of step {best['step']}, with the best validation loss" in said
    assert f"{best['val_loss']:.4f}" in said and checkpoints.describe_weights(part.dir) is None
    line = ["--sample", run.dir, "--prompt", "x", "--max_new_tokens", "1"]
    code, _, err = call(line, capsys)
    assert code == 0 and said in err
    assert call([*line, "--first_weights"], capsys)[::2] == (0, "")  # of which there is one kind
    assert one_run.weights_to_begin_with(configs.TrainConfig(init_from=run.dir)) is None
    assert said in capsys.readouterr().out
    path = tmp_path / "run" / checkpoints.BEST
    save_file(load_file(path), path)  # as another program does, which says nothing beside them
    assert "best.safetensors, of step unknown, w" in checkpoints.describe_weights(run.dir)
    path.write_bytes(path.read_bytes()[:5])
    for read in (checkpoints.load, checkpoints.describe_weights):
        with pytest.raises(ValueError, match="best.safetensors is not a checkpoint of this model"):
            read(run.dir)
    # resumed to keep the last ones, they are what is loaded; the others are still there
    longer = settings(tmp_path, "run", **WORSE | dict(keep="last", steps=14, lr_steps=12))
    run = running.train(*longer, data, resume=True, changed=("keep", "steps", "lr_steps"))
    assert same_weights(checkpoints.load(run.dir)[0], run.model)
    assert os.path.exists(path) and checkpoints.describe_weights(run.dir) is None


def test_the_best_weights_are_kept_if_the_tokenizer_is_gone(data, tmp_path):
    """Only the last ones were: the best are written before them."""
    asked = []
    t = settings(tmp_path, "run", keep="best", steps=6, eval_every=1, save_every=1)
    run = running.train(*t, data, stop=lambda: asked.append(1) or len(asked) == 3)
    shutil.rmtree(os.path.join(run.dir, "tokenizer"))
    assert running.train(*t, data, resume=True).finished
    assert checkpoints.load(run.dir, checkpoints.BEST)[1].get_vocab() == data.tokenizer.get_vocab()


def test_evaluations_without_a_better_one_end_a_run(data, tmp_path, capsys):
    run = running.train(*settings(tmp_path, "run", steps=40, lr=0.0, stop_after=3), data)
    assert [record["step"] for record in run.log] == [1, 2, 4, 6]
    assert run.finished and run.log[-1]["ended_early"] and "train_loss_eval" in run.log[-1]
    row = results.result(run.dir)  # a finished run
    assert row["step"] == 6 and row["steps"] == 40
    m, t = settings(tmp_path, "run", steps=40, lr=0.0, stop_after=3)
    with pytest.raises(ValueError, match="6 of 40 steps are done; --stop_after has ended it"):
        running.train(m, t, data, resume=True)
    code, out, err = call(f"--resume {run.dir} --stop_after 5", capsys)
    assert code == 0 and "stop_after 5 instead of 3" in out, err
    assert "Ended early, after step 10: 5 evaluations without a better one than" in out
    assert results.result(run.dir)["step"] == 10
    # the best loss is not `stop_after` evaluations ago where that is lower than before
    code, out, err = call(f"--resume {run.dir} --stop_after 1", capsys)
    assert code == 2 and "10 of 40 steps are done; --stop_after has ended it" in err
    assert call(f"--resume {run.dir} --stop_after 1 --dry_run", capsys) == (2, "", err)
    whole = running.train(*settings(tmp_path, "whole", steps=6, lr=0.0, stop_after=3), data)
    assert len(whole.log) == 4 and "ended_early" not in whole.log[-1]  # all its steps are done


def test_after_an_early_end_a_run_that_goes_on_can_be_stopped_and_go_on_again(data, tmp_path):
    run = running.train(*settings(tmp_path, "run", steps=12, lr=0.0, stop_after=3), data)
    assert run.log[-1]["ended_early"]
    on = settings(tmp_path, "run", steps=12, lr=0.0, stop_after=0)

    def killed():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):  # before the next checkpoint
        running.train(*on, data, resume=True, changed=("stop_after",), stop=killed)
    part = running.train(*on, data, resume=True, stop=lambda: True)  # at one
    assert not part.finished and "ended_early" not in part.log[-1]
    assert not checkpoints.is_over(part.log, 12)
    run = running.train(*on, data, resume=True)
    assert run.finished and run.log[-1]["step"] == 12
    assert not any("ended_early" in record for record in run.log)


def test_an_early_end_is_measured_on_what_the_run_itself_draws_and_told_once(tmp_path):
    sizes = dict(data="walk", sizes=("ring=4", "hops=1", "far=31"), n_loops=2, block_size=12)
    m, t = registry.configs("tasks", **SMALL | sizes | dict(
        out_dir=str(tmp_path), name="run", seed=3, eval_every=99, dropout=0.0, minutes=1e-6,
    ))  # fmt: skip
    data, told = registry.data_of(t, m.block_size), []
    with contextlib.redirect_stdout(io.StringIO()) as said:
        for resume in (False, True):  # after step 1, which is evaluated, and after the second
            run = running.train(m, t, data, resume, tell=lambda record: told.append(dict(record)))
    assert told[0] | dict(ended_early=True) == run.log[0] | dict(ended_early=True)
    assert told[1:] == run.log[1:] and said.getvalue().count("val") == 2
    assert all("31" in record["accuracy_by"]["hops"] for record in told)
    own = dataclasses.replace(data, seed=3).draw(1, t.batch_size)
    assert told[1]["train_loss"] == md.mean_loss(run.model, own, t.batch_size, t.batch_size)


def test_an_early_end_keeps_the_state_of_the_data(data, tmp_path):
    m, t = settings(tmp_path, "run", steps=40, lr=0.0, stop_after=2)
    lengths = thinking.Lengths(**vars(data) | dict(state=dict(lengths=1)), curriculum=99.0,
                               n_lengths=2)  # fmt: skip
    assert [each["lengths"] for each in running.train(m, t, lengths).log] == [2, 2, 2]


def test_losses_that_are_no_number_are_never_the_best():
    rows = [dict(val_loss=loss) for loss in (2.0, math.nan, 1.0, None, 1.0)]
    assert [checkpoints.since_best(rows[:n]) for n in (1, 2, 3, 4, 5)] == [0, 1, 0, 1, 2]
    assert checkpoints.since_best(rows[1:3]) == 0  # the first one was none
    assert checkpoints.is_over([dict(step=3)], 3) and not checkpoints.is_over([dict(step=2)], 3)
    assert checkpoints.is_over([dict(step=2, ended_early=True)], 3) and not checkpoints.is_over(
        [], 3
    )


def test_minutes_in_between_do_not_let_stop_after_end_a_run_sooner(data, tmp_path):
    changes = dict(steps=40, lr=0.0, stop_after=3)
    for resume in (False, True, True):  # a step each; the third one is no evaluation of the plan's
        running.train(*settings(tmp_path, "run", minutes=1e-6, **changes), data, resume)
    run = running.train(*settings(tmp_path, "run", **changes), data, resume=True)
    assert [record["step"] for record in run.log] == [1, 2, 3, 4, 6]


def test_ctrl_c_while_an_early_end_is_measured_does_not_lose_it(data, tmp_path, monkeypatch):
    measure = md.evaluate

    def interrupted(model, data, t, last):
        if last:
            signal.raise_signal(signal.SIGINT)
        return measure(model, data, t, last)

    monkeypatch.setattr(md, "evaluate", interrupted)
    run = running.train(*settings(tmp_path, "run", steps=12, lr=0.0, stop_after=1), data)
    assert run.finished and results.result(run.dir)["ended_early"]


def test_what_minutes_measured_at_their_end_is_no_evaluation_that_is_waited_for():
    _, t = configs.make("laptop", stop_after=1, eval_every=5, steps=100)
    log = [dict(step=1, val_loss=2.0), dict(step=5, val_loss=1.0)]
    ended = [*log, dict(step=7, val_loss=1.1, ended_early=True)]
    assert checkpoints.nothing_left("run", t, 7, ended) == ""  # more --minutes go on with it
    worse = [*log, dict(step=10, val_loss=1.1, ended_early=True)]
    assert "--stop_after 0" in checkpoints.nothing_left("run", t, 10, worse)
