"""The script of pieces for a lent GPU: its texts, and a rehearsal at a tiny size."""

import argparse

import pytest

from minidepth_lab.keep import registry
from minidepth_lab.measure import results
from minidepth_lab.models import variants
from minidepth_lab.sweep import card


@pytest.fixture
def texts(tmp_path):
    """A folder of texts with a few rows of each kind that the report's pieces read."""
    folder = tmp_path / "given"
    said = "<think>\n" + "Because it is so. " * 40 + "\nThe best answer is B.\n</think>\n\nB"
    question = "What melts?\nA. stone {}\nB. ice\nC. air"
    cot = [card.conversation([(question.format(i), said)]) for i in range(60)]
    gsm8k = [dict(question=f"{i} and 1?", answer=f"It is {i + 1}.\n#### {i + 1}") for i in range(9)]
    choices = dict(text=["stone", "ice", "air"], label=["1", "2", "3"])
    arc = [dict(question=f"{i} melts?", choices=choices, answerKey="2") for i in range(8)]
    for name, rows in (("cot/train", cot), ("gsm8k/train", gsm8k), ("arc_challenge/test", arc)):
        path = folder / f"{name}.jsonl"
        path.parent.mkdir(parents=True)
        card.write(path, rows)
    return folder


def test_questions_are_asked_as_the_conversations_ask_them_and_long_ones_one_after_another(texts):
    row = card.asked(card.read(texts / "arc_challenge" / "test.jsonl")[0])
    assert row["answer"] == 1 and [m["role"] for m in row["messages"]] == ["system", "user"]
    assert row["messages"][-1]["content"] == "0 melts?\nA. stone\nB. ice\nC. air"
    assert row["choices"][1].endswith("The best answer is B.\n</think>\n\nB")
    both = (card.read(texts / n / "train.jsonl") for n in ("cot", "gsm8k"))
    long = card.long_conversations(*both)
    assert len(long) == 30  # two of some 800 characters each; the nine short ones fill none
    for row in long:
        assert [m["role"] for m in row["messages"]] == ["system", *["user", "assistant"] * 2]
        assert sum(len(m["content"]) for m in row["messages"][1:]) >= card.LONG


def test_the_controls_have_the_parameters_of_twelve_layers():
    def in_layers(**settings):
        return variants.parameters(registry.configs("report", **settings)[0])["layers"]

    inside = card.wide_inside("published")
    assert inside["d_ff"] == 26_880
    assert abs(in_layers(**inside) / in_layers(n_layers=12) - 1) < 0.001
    assert card.models("published")["wide"] == dict(n_layers=1, d_model=504, d_ff=2016)


def test_every_run_has_settings_that_work(tmp_path, monkeypatch):
    monkeypatch.setattr(card, "best", lambda cells, setting, runs: 0.001)
    for size in card.SIZES:
        here = tmp_path / size
        a = argparse.Namespace(out=here, texts=here, tokenizers=here, size=size, seed=[0, 1, 2])
        names = []
        for piece in set(card.PIECES) - set(card.LOOKS):
            runs = card.runs_of(piece, a)
            names += runs
            for preset, settings in runs.values():
                m, t = registry.configs(preset, **settings)
                m.validate(), t.validate()
                if size == "published" and piece == "llmini":  # less text is read more often
                    assert t.epochs * float(settings["sizes"][-1].partition("=")[2]) == 3
        assert len(names) == len(set(names)) == 12 + 21 + 8 + 9 + 6 + 27
        assert {"first-reading-1-layers-0", "second-reading-12-layers-2"} <= set(names)


def test_a_rehearsal_does_all_pieces_and_is_not_done_twice(
    texts, tmp_path, capsys, monkeypatch, in_this_process
):
    monkeypatch.setattr(card, "RATES", card.RATES[:2])
    monkeypatch.setattr(card, "SPREADS", card.SPREADS[:1])
    out = tmp_path / "out"
    line = [str(out), "--texts", str(texts), "--size", "tiny", "--seed", "0"]
    line += ["--pieces", *"models scored inside tune closed".split()]
    pair = {f"{n}-layers": dict(n_layers=n) for n in (1, 12)}
    monkeypatch.setattr(card, "models", lambda size: pair)
    assert card.main(line) == 0
    names = {path.name for path in (out / "runs").iterdir()}
    assert {"12-layers-0", "wide-inside-0"} <= names and len(names) == 2 + 3 + 3
    files = ("long", "long_half", "long_rest")
    some, half, rest = (card.read(out / "texts" / f"{name}.jsonl") for name in files)
    assert half == some[::2] and len(rest) == 20
    measured = card.read(out / "measured.jsonl")
    scored = [line["scored"] for line in measured if "scored" in line]
    assert len(scored) == 2 and all(each["n"] == 8 and each["commonest"] == 1 for each in scored)
    inside = {line["run"]: line["inside"] for line in measured if "inside" in line}
    deep = inside["12-layers-0"]
    assert len(deep["new"]["skipped"]) == len(deep["entropy"]) == len(deep["new"]["lens"]) - 1 == 12
    assert sum(third["fall"] for third in deep["thirds"].values()) == pytest.approx(1)
    capsys.readouterr()
    assert card.main(line) == 0
    said = capsys.readouterr().out
    assert said.count("finished before") == 3 and "validation loss" not in said
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    (tmp_path / "stored").mkdir()
    assert card.main([str(out), "--publish", "stored"]) is None
    stored = {run["id"]: run for run in results.runs("stored")}
    assert set(stored) == names and stored["1-layers-0"]["measured"]["scored"]["n"] == 8


def test_what_a_piece_had_no_time_for_is_left(texts, tmp_path, capsys):
    line = [str(tmp_path / "out"), "--texts", str(texts), "--size", "tiny", "--seed", "0"]
    assert card.main([*line, "--pieces", "readings", "inside", "--minutes", "0.001"]) == 1
    assert "not done: readings inside; the same command goes on" in capsys.readouterr().out
