"""Multiple choice by likelihood: rows of every shape, scores beside `transformers`."""

import re
import statistics

import datasets
import pytest
import torch
from scipy.stats import binomtest

import minidepth as md
import train
from minidepth_lab.keep import checkpoints, export
from minidepth_lab.measure import score
from minidepth_lab.rows import files, forms


def labelled(texts, labels="ABC"):
    return dict(text=texts, label=[*labels[: len(texts)]])


# one row of each shape, made up here, with the context, choices and answer that it stands for
SHAPES = {
    "ours": (
        dict(context="A cat says", choices=["moo", "miaow", "hello"], answer=1),
        ("A cat says", ["moo", "miaow", "hello"], 1),
    ),
    "hellaswag": (
        dict(ctx="He lifts the cup and", endings=["drinks.", "flies."], label="0"),
        ("He lifts the cup and", ["drinks.", "flies."], 0),
    ),
    "boolq": (
        dict(passage="Iron is a metal.", question="is iron a metal", answer=True),
        ("Iron is a metal.\nQuestion: is iron a metal\nAnswer:", ["no", "yes"], 1),
    ),
    "arc": (
        dict(question="What melts?", choices=labelled(["stone", "ice", "air"]), answerKey="B"),
        ("Question: What melts?\nAnswer:", ["stone", "ice", "air"], 1),
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_is_read(shape):
    row, expected = SHAPES[shape]
    columns = {key: None for other, _ in SHAPES.values() for key in other}
    context, choices, answer = expected
    text = f"{context} {choices[answer]}"
    for each in (row, columns | row):  # as columnar files mix them
        assert score.choices_of(each) == expected
        assert score.as_training_text(each) == {"text": text}
        assert forms.turns_of(score.as_training_text(each)) == [("text", text)]
    with pytest.raises(ValueError):  # the main job knows no such rows; a study makes texts of them
        forms.turns_of(row)


def test_what_is_not_asked_of_a_text_stays_as_it_is():
    rows = [*score.embedded_choices(3), dict(text="a"), dict(question="a", answer="b"), "a", None]
    found = dict(context="a", question="b", answers=dict(text=["c"]))
    rows += [found | dict(answers=dict(text=text)) for text in ([], "c", None)]
    for row in [*rows, found | dict(question="")]:
        assert score.as_training_text(row) is row


NO_CHOICE = [
    "text", {}, dict(text="a"), dict(question="a", answer="b"),
    *(dict(dict(context="a", choices=["b", "c"], answer=0), **wrong) for wrong in (
        dict(choices=None), dict(context=""), dict(context=5), dict(context=[1]),
        dict(choices=["b"]), dict(choices=["b", None]),
        *(dict(answer=answer) for answer in (2, -1, "9" * 5000, "²", "-1", [1], None, 1.0)))),
    dict(messages=[dict(role="user", content=5)], choices=["b", "c"], answer=0),
    *(dict(dict(question="a", choices=labelled(["b", "c"]), answerKey="A"), **wrong) for wrong in (
        dict(answerKey="E"), dict(choices=dict(text=None, label=None)), dict(question=None),
        *(dict(choices=dict(text=["b", "c"], label=label))
          for label in (5, "AB", None, {"A": 0}, [], ["B"], [["A"]])),
        dict(choices=dict(text=3, label=["A"])), dict(choices=labelled("bc")))),
    dict(ctx="a", endings=["b"], label=""), dict(ctx="", endings=["b", "c"], label=0),
    dict(question=5, passage="a", answer=True), dict(passage="a", answer=False),
    dict(passage="a", question="b", answer="yes"),
]  # fmt: skip


def test_what_is_no_multiple_choice_is_left_out():
    for row in NO_CHOICE:
        assert score.choices_of(row) is None, row


def test_scores_equal_those_of_the_export(finished, tmp_path):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    export.export_hf(finished, str(tmp_path / "out"))
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path / "out").eval()
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "out")
    long = dict(context="Sort a b, c d. " * 30, choices=["a b c d", "b"], answer=0)
    texts = [row for row, _ in SHAPES.values()] + [long]
    found = [score.choices_of(row) for row in score.embedded_choices(9) + texts]
    gpt, _ = checkpoints.load(finished)
    scores = score.choice_scores(
        gpt.train(), [score.asked_and_said(tokenizer, each) for each in found]
    )
    assert gpt.training
    for (context, choices, _), each in zip(found, scores):
        assert len(each) == len(choices)
        for choice, found_score in zip(choices, each):
            if isinstance(context, str):
                asked, choice = tokenizer(context).input_ids, " " + choice
            else:
                text = "".join(
                    f"<|im_start|>{m['role']}\n{m['content']}<|im_end|>\n" for m in context
                )
                asked = tokenizer(text + "<|im_start|>assistant\n").input_ids
            said = tokenizer(choice).input_ids
            ids = torch.tensor([(asked + said)[-81:]])
            with torch.no_grad():
                p = theirs(ids[:, :-1]).logits.log_softmax(-1)
            p = p[0].gather(1, ids[0, 1:, None])[-len(said) :]
            assert found_score == pytest.approx(p.sum().item(), abs=1e-3)
    assert len({round(s, 3) for each in scores for s in each}) > 20


def test_the_embedded_set_has_one_right_choice_that_can_be_checked():
    rows = score.embedded_choices(300)
    trained_on = {row["messages"][0]["content"] for row in md.embedded_rows(3000)}
    known = {row["messages"][0]["content"]: row for row in md.embedded_rows(300, held_out=True)}
    for row in rows:
        question = row["messages"][-1]["content"]
        assert question not in trained_on and row["messages"][-1]["role"] == "user"
        right = known[question]["messages"][-1]["content"]
        assert [i for i, text in enumerate(row["choices"]) if text == right] == [row["answer"]]
        answers = [md.final_answer(text) for text in row["choices"]]
        assert len(set(answers)) == len(answers)
        if question.startswith("Sort") and "," not in question:
            assert len(answers) == 2
        for text, answer in zip(row["choices"], answers):
            if question.startswith(("From", "Follow")):  # nor does its work give a choice away
                assert re.split(r"\W+", text.split("\n")[1])[-1] == answer
    answers = [row["answer"] for row in rows]
    assert min(answers.count(i) for i in range(4)) > 30
    sizes = [len(row["choices"]) for row in rows]
    assert {2, 3, 4} == set(sizes) and statistics.mean(1 / n for n in sizes) < 0.3


def test_a_model_that_knows_scores_above_one_that_does_not(finished, capsys, monkeypatch):
    rows = score.embedded_choices(60)
    guess = statistics.mean(1 / len(row["choices"]) for row in rows)
    places = [row["answer"] for row in rows]
    found = score.scored(*checkpoints.load(finished), "embedded", 60)
    assert found["guessing"] == pytest.approx(guess) and abs(found["accuracy"] - guess) < 0.25
    assert found["commonest"] == max(map(places.count, places)) / 60
    theirs = binomtest(round(found["accuracy"] * 60), 60).proportion_ci(method="wilson")
    assert (found["low"], found["high"]) == pytest.approx((theirs.low, theirs.high))
    right = [[float(i == row["answer"]) for i in range(len(row["choices"]))] for row in rows]
    monkeypatch.setattr(score, "choice_scores", lambda *_: right)
    assert train.main(f"--score {finished} --max_rows 60".split()) == 0
    # all of 60 right is no certainty: by Wilson's score 60 / (60 + 1.96²) at least
    line = "embedded: accuracy 1.000 (95 % interval 0.940 to 1.000, Wilson) on 60 rows, guessing "
    assert capsys.readouterr().out.startswith(line)


def test_choices_that_are_alike_count_as_a_guess_among_them(finished, jsonl, capsys):
    """The first one was taken: right or wrong by its place."""
    rows = [dict(context="Sort", choices=["a b", "a b"], answer=answer) for answer in (1, 1, 0)]
    assert train.main(["--score", finished, "--data", jsonl(rows)]) == 0
    assert "accuracy 0.500 " in capsys.readouterr().out


def test_contexts_that_are_cut_are_counted(finished, jsonl, capsys):
    """Of a context that is cut its first letter makes no difference."""
    gpt, tokenizer = checkpoints.load(finished)
    rows, n_cut = [], 0
    for n in range(70, 90):
        row = dict(context="a" + " b" * n, choices=["b", "b a c"], answer=1)
        both = [score.choices_of(row), score.choices_of(row | dict(context="c" + " b" * n))]
        encoded = [score.asked_and_said(tokenizer, each) for each in both]
        (_, one), (_, other) = score.choice_scores(gpt, encoded)
        n_cut += one == other
        rows.append(row)
    assert 0 < n_cut < len(rows)
    assert train.main(["--score", finished, "--data", jsonl(rows)]) == 0
    about, cut = capsys.readouterr().out.splitlines()
    assert "on 20 rows" in about and f"{n_cut} of 20 contexts are longer than the block" in cut


def test_files_and_hub_ids_are_scored(finished, jsonl, capsys, monkeypatch):
    path = jsonl([row for row, _ in SHAPES.values()] + [dict(text="no question")])
    assert train.main(["--score", finished, "--data", path, "embedded", "--max_rows", "9"]) == 0
    lines = capsys.readouterr().out.splitlines()
    why = "no multiple choice (a context, two choices or more, an answer that is one of them)"
    assert f" on 4 of 5 rows, the others are {why}, guessing 0.417" in lines[0]
    assert " on 9 rows, guessing" in lines[1]
    asked = []

    def load_dataset(name, subset):
        asked.append((name, subset))
        return dict(validation=datasets.Dataset.from_list([SHAPES["arc"][0]] * 3))

    monkeypatch.setattr("datasets.load_dataset", load_dataset)
    monkeypatch.setattr("minidepth_lab.rows.hub.fault", lambda url: None)
    found = score.read_choices("allenai/ai2_arc:ARC-Challenge", 2, [])
    assert found == ([SHAPES["arc"][1]] * 2, 2)
    with pytest.raises(ValueError, match="has no split train; it has validation"):
        files.rows_of("roneneldan/TinyStories", "train", [])
    assert asked == [("allenai/ai2_arc", "ARC-Challenge"), ("roneneldan/TinyStories", None)]


def test_what_cannot_be_scored_says_why(finished, jsonl, capsys):
    long = dict(context="Sort", choices=["c d " * 60, "a"], answer=0)
    empty = dict(messages=[dict(role="user", content="Sort")], choices=["", "a b"], answer=1)
    no_choice = "each row has a choice that is empty or has more than 80 tokens, which this"
    for rows, why in (
        ([dict(text="a story"), dict(text="another")], "has no row of context, choices, answer"),
        ([long], no_choice), ([empty], no_choice),
    ):  # fmt: skip
        assert train.main(["--score", finished, "--data", jsonl(rows)]) == 2
        error = capsys.readouterr().err
        assert why in error and error.count("\n") == 1
    short = [dict(context=f"Sort {i}", choices=["c d", "a b"], answer=0) for i in range(4)]
    path = jsonl([dict(text="none"), short[0], long, *short[1:]])
    assert train.main(["--score", finished, "--data", path]) == 0
    note, score_of = capsys.readouterr().out.splitlines()
    assert note == f"note: 1 row of {path} left out: a choice is empty or has more than 80 tokens"
    assert " on 4 of 5 rows, the others are no multiple choice" in score_of
    model, tokenizer = checkpoints.load(finished)
    encoded = score.asked_and_said(tokenizer, ("Sort", long["choices"], 0))
    with pytest.raises(ValueError, match="a choice is empty or has more than the 80 tokens"):
        score.choice_scores(model, [encoded])


def test_an_interval_is_told_beside_the_better_cheat():
    said = [
        score.against_chance(*ends, 0.25, 0.3) for ends in ((0.31, 0.4), (0.2, 0.29), (0.2, 0.3))
    ]
    assert said == [f"{told} the commonest answer" for told in (
        "better than", "worse than", "not told apart from")]  # fmt: skip
    assert score.against_chance(0.3, 0.4, 0.25, 0.2) == "better than guessing"
