"""--sample: what the model says is what the flags ask for."""

import pytest

import train
from minidepth_lab.keep import checkpoints
from minidepth_lab.measure import sampling

QUESTION = "Sort c a, b c. Number 2 ?"


def said(capsys, run, *flags):
    assert train.main(["--sample", run, "--prompt", QUESTION, *flags]) == 0
    return capsys.readouterr().out


def words(finished, **how):
    """The same by the library."""
    model, tokenizer = checkpoints.load(finished)
    problem = dict(messages=[dict(role="user", content=QUESTION)])
    return sampling.answer_texts(model, tokenizer, [problem], **how)[0]


def letters(text):
    """Of a text as a terminal shows it: control characters as their escapes."""
    shown = (x if x.isprintable() else x.encode("unicode_escape").decode() for x in text.strip())
    return "".join(x for x in "".join(shown) if x.isascii() and x.isalnum())


@pytest.mark.parametrize("flags, sampling", [
    ("", dict()),
    ("--max_new_tokens 5", dict(max_new_tokens=5)),
    ("--temperature 2", dict(temperature=2.0, seed=0)),
    ("--temperature 2 --seed 3", dict(temperature=2.0, seed=3)),
    ("--temperature 0.5 --seed 3 --max_new_tokens 9",
     dict(temperature=0.5, seed=3, max_new_tokens=9)),
])  # fmt: skip
def test_the_flags_of_sample_reach_the_model(finished, capsys, flags, sampling):
    found = said(capsys, finished, *flags.split())
    assert letters(found) == letters(words(finished, **sampling)) != ""
