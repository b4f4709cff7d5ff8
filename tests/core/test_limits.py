"""At the limits of what works: one word too many, the highest value of a setting, no targets."""

import dataclasses

import pytest

import minidepth as md
from minidepth_lab.base import configs
from minidepth_lab.keep import running


def test_a_vocabulary_holds_all_words_or_is_refused(tiny, data):
    words = len(data.tokenizer)
    settings = dict(steps=1, warmup_steps=0, eval_problems=0, watch_problems=0)
    enough = running.train(*tiny(vocab_size=words, **settings), data=data)
    assert enough.model.config.vocab_size == words
    with pytest.raises(ValueError, match=f"vocab_size {words - 1} is less than the data's {words}"):
        running.train(*tiny(vocab_size=words - 1, name="less", **settings), data=data)
    begun = tiny(vocab_size=words - 1, init_from="runs/other", **settings)
    with pytest.raises(ValueError, match="give data with the words of runs/other, or leave out in"):
        running.complete_configs(*begun, data)


def test_several_values_may_be_a_list():
    """Of a study's rows, say: once saved they are a tuple, as which a second run compares them."""
    t = configs.TrainConfig(problem_steps=[1, 2]).validate()
    assert t == configs.TrainConfig(problem_steps=(1, 2)) and t.problem_steps == (1, 2)
    assert configs.ModelConfig(n_layers=2, n_heads=[2, 4]).validate().n_heads == (2, 4)


def test_every_setting_takes_its_lowest_and_its_highest_value():
    """And nothing beyond: refused values are in test_bad_input.py."""
    tried = 0
    for kind in (configs.ModelConfig, configs.TrainConfig):
        for f in dataclasses.fields(kind):
            low, high = f.metadata["low"], f.metadata["high"]
            # sizes of a model depend on one another: heads divide the width
            if low is None or f.name in ("n_heads", "d_model", "n_layers"):
                continue
            for value in (low, high):
                if f.type is float:
                    value = float(value)
                elif f.type is not int:
                    value = (int(value),)
                # a warm-up leaves a step, however long the other, and loops a token to change
                beside = dict(steps=2**53) if f.name == "warmup_steps" else {}
                if value == 2**53 and f.name in ("warmup_steps", "loop_keeps"):
                    continue
                beside |= dict(warmup_steps=0) if f.name == "steps" else {}
                kind(**{f.name: value}, **beside).validate()
                tried += 1
    assert tried > 50


def test_the_file_alone_takes_the_limits_and_nothing_beyond():
    kinds = md.ModelConfig(), md.TrainConfig()
    defaults = {f: config for config in kinds for f in dataclasses.fields(config)}
    for f in defaults:
        low, high = f.metadata["low"], f.metadata["high"]
        if low is not None:
            for value in (low, high):
                md.check_limits(dataclasses.replace(defaults[f], **{f.name: value}))
            for beyond in (low - 1, high * 2):
                with pytest.raises(ValueError, match=f"{f.name} .* does not work; give {low} to"):
                    md.configs(**{f.name: beyond})
    for name, lowest in dict(n_heads=1, d_ff=0, n_layers=1, steps=1, seed=0, max_rows=0).items():
        md.configs(**{name: lowest})
    for name in ("packing", "loss_on", "device", "precision"):
        with pytest.raises(ValueError, match=f"{name} 'padded' does not work; give "):
            md.configs(**{name: "padded"})


@pytest.mark.parametrize("name, value, words", [
    ("depth", 12, "depth is unknown; see .* --help"), ("steps", True, "steps True does not work"),
    ("lr", True, "lr True does not work"), ("n_layers", True, "n_layers True does not work"),
])  # fmt: skip
def test_what_is_no_setting_or_no_number_is_refused(name, value, words):
    with pytest.raises(ValueError, match=words):
        configs.make("laptop", **{name: value})


def test_a_warm_up_must_end_before_the_steps_that_the_epochs_give(tiny, data):
    """How many those are, only the data tells: 300 rows, of which 100 make a step."""
    few = dict(epochs=1, batch_size=100, warmup_steps=3, eval_problems=0, watch_problems=0)
    with pytest.raises(ValueError, match="warmup_steps 3 leaves none of 3 steps"):
        running.train(*tiny(**few), data=data)
    run = running.train(*tiny(**few | dict(warmup_steps=2), name="enough"), data=data)
    assert run.log[-1]["step"] == 3 and run.log[-1]["epoch"] == 1
