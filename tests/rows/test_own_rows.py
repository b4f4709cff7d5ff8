"""People's own rows: what is read, what is left out and why, what stands on both sides, what does
not fit, and where an answer ends."""

import json
import os
import re
import shutil
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import minidepth as md
import train
from conftest import same_weights
from minidepth_lab.base import configs
from minidepth_lab.command import one_run, sample
from minidepth_lab.keep import checkpoints, export, running
from minidepth_lab.measure import sampling
from minidepth_lab.models import variants
from minidepth_lab.rows import answers, forms, hub, to_data, tokenizing
from minidepth_lab.rows import files as text

ASKED, SAID = "What is 1 plus 2 ?", "<think>\n1 + 2 = 3\n</think>\n\n 3"
TURNS = [("user", ASKED), ("assistant", SAID)]


def chat(question, answer, **of_answer):
    return dict(messages=[dict(role="user", content=question),
                          dict(role="assistant", content=answer, **of_answer)])  # fmt: skip


def sums(n=60, long=0):
    """Problems whose questions are all different."""
    return [chat(f"What is {i} plus {i + 1} ?{' and so on' * long}", f"#### {2 * i + 1}")
            for i in range(n)]  # fmt: skip


def loaded(source, block_size=64, load=to_data.load_data, **changes):
    values = dict(data=(source,) if isinstance(source, str) else source, max_rows=0) | changes
    return load(configs.make("laptop", tokenizer_size=400, **values)[1], block_size)


def texts(data, part="train"):
    return [data.tokenizer.decode(block) for block in getattr(data, part)[0]]


def told(data, words):
    """The one note that has these words."""
    (note,) = [note for note in data.facts["notes"] if words in note]
    return note


# --- the forms of a row

PARTS = [dict(type="text", text=ASKED[:5]), dict(type="text", text=ASKED[5:])]
USER, ASSISTANT = chat(ASKED, SAID)["messages"]
CALL = dict(role="assistant", content=None, tool_calls=[dict(id="c")])
PAIR = dict(question=ASKED, answer=SAID)
THOUGHTS, UNREAD = "is read as <think>…</think>", "columns that are not read: "
FORMS = {  # name: (row, what is told of it)
    "parts": (chat(PARTS, [SAID]), ""),
    "a list": ([USER, ASSISTANT], ""),  # as nanochat has them
    "conversation": (dict(conversation=[USER, ASSISTANT]), ""),
    "sharegpt": (dict(conversations=[dict([("from", "human"), ("value", ASKED)]),
                                     dict([("from", "gpt"), ("value", SAID)])]), "role human"),
    "both": (dict(messages=[USER | dict(value=None), ASSISTANT | dict(value=None)]), ""),
    "roles": (dict(messages=[dict(role="Human", content=ASKED), dict(role="model", content=SAID)]),
              "role Human is read as user"),
    "tools": (dict(messages=[USER, CALL, ASSISTANT]), "turns that only call a tool are left out"),
    "a title": (chat(ASKED, SAID) | dict(title="A sum"), f"{UNREAD}title"),
    "a weight": (chat(ASKED, SAID, weight=0.5), "the weight 0.5 of a turn is not heeded"),
    "thoughts": (chat(ASKED, " 3", reasoning_content="1 + 2 = 3"), f"reasoning_content {THOUGHTS}"),
    "thoughts of another name": (chat(ASKED, " 3", reasoning="1 + 2 = 3"), f"reasoning {THOUGHTS}"),
    "thoughts that are told": (dict(messages=[USER | dict(reasoning="none"),
                                              ASSISTANT | dict(reasoning="1 + 2 = 3")]), ""),
    "thoughts that are no text": (chat(ASKED, SAID, reasoning=["1 + 2 = 3"]), ""),
    "thoughts beside a pair": (dict(question=ASKED, reasoning="1 + 2 = 3", answer=" 3"), THOUGHTS),
    "a rationale": (dict(prompt=ASKED, rationale="1 + 2 = 3", completion=" 3"), THOUGHTS),
    "question": (PAIR, ""),
    "choices": (PAIR | dict(choices=["3", "4"]), ""),
    "empty messages": (dict(messages=[]) | PAIR, ""),
    "problem": (dict(problem=ASKED, solution=SAID, answer="V"), f"{UNREAD}answer"),
    "solution": (dict(question=ASKED, solution=SAID), ""),
    "query": (dict(query=ASKED, response=SAID), ""),
    "input": (dict(input=ASKED, output=SAID, id="a", n=3), f"{UNREAD}id"),
    "prompt": (dict(prompt=ASKED, completion=SAID), ""),
    "response": (dict(prompt=ASKED, response=SAID, chosen=None), ""),
    "turns": (dict(prompt=[USER], completion=[ASSISTANT]), ""),
    "turns and a text": (dict(prompt=[USER], completion=SAID), ""),
    "alpaca": (dict(instruction=ASKED, input="", output=SAID), ""),
    "a column named gym": (PAIR | dict(gym="no"), f"{UNREAD}gym"),
}  # fmt: skip
COLUMNS = dict.fromkeys(key for row, _ in FORMS.values() if isinstance(row, dict) for key in row)


@pytest.mark.parametrize("form", FORMS)
def test_a_form_is_read_as_the_plain_one_or_it_is_told(form):
    row, remark = FORMS[form]
    # as columnar files mix them, too
    for each in (row, COLUMNS | row) if isinstance(row, dict) else (row,):
        remarks = []
        assert forms.turns_of(each, remarks.append) == TURNS
        assert remark in "".join(remarks) and bool(remarks) == bool(remark)


def test_what_stands_beside_a_question_is_asked_with_it():
    row = dict(instruction="Add", input="1 and 2", output="3", system="Be kind")
    assert forms.turns_of(row) == [
        ("system", "Be kind"), ("user", "Add\n\n1 and 2"), ("assistant", "3")
    ]  # fmt: skip
    assert forms.turns_of(PAIR | dict(system="a column of one's own")) == TURNS
    sharegpt, _ = FORMS["sharegpt"]
    for system, turns in (("Be kind", [("system", "Be kind")]), (" ", []), (3, [])):
        assert forms.turns_of(sharegpt | dict(system=system)) == [*turns, *TURNS]
    both = row | chat(ASKED, SAID)  # what stands in the messages is all
    assert forms.turns_of(both) == TURNS


def test_rows_that_only_look_odd_are_read():
    assert forms.turns_of(dict(question="q", answer="B")) == [("user", "q"), ("assistant", "B")]
    silent = dict(role="system", content="")
    assert forms.turns_of(dict(messages=[silent, USER, ASSISTANT])) == [("system", ""), *TURNS]
    assert forms.read_row(dict(text="a", input="b", query=None)) == dict(text="a")


def test_an_answer_in_the_last_box_is_put_where_answers_stand():
    remarks = []
    row = forms.read_row(dict(question="q", answer=r"It is \boxed{5}."), remarks.append)
    assert row["messages"][1]["content"] == "It is \\boxed{5}.\n\n#### 5" and "boxed" in remarks[0]
    for said, after in (
        (r"not \boxed{3}, \boxed{ 5 }", "5"), (r"not \boxed{3}, \boxed{\frac{1}{2}}", None),
        (r"\boxed{}", None), (rf"\boxed{{{'1' * 41}}}", None), (r"\boxed{5} #### 6", "6"),
    ):  # fmt: skip
        row = forms.read_row(dict(question="q", answer=said))
        assert md.final_answer(row["messages"][-1]["content"]) == after, said
    assert answers.bare(r"not \boxed{3}, \boxed{ 5 }") == "5"
    nested = r"not \boxed{3}, \boxed{\frac{1}{2}}"
    assert answers.bare(nested) == nested


def test_numbers_are_answers_and_roles_are_roles():
    remarks = []
    for number, said in ((5, "5"), (2.5, "2.5")):
        turns = forms.turns_of(dict(question="q", answer=number), remarks.append)
        assert turns == [("user", "q"), ("assistant", said)]
    assert remarks[0] == "numbers in answer are read as text"
    spoken = [dict(role="text", content="all"), dict(role="assistant", content="that")]
    assert forms.read_row(dict(messages=spoken))["messages"] == spoken  # and not the first alone


@pytest.mark.parametrize("mark", [dict(train=False), dict(weight=0), dict(weight=0.0)])
def test_turns_that_are_marked_so_are_not_learned(mark):
    row = forms.read_row(dict(messages=[USER, ASSISTANT, USER, ASSISTANT | mark]))
    assert [text for text, said in tokenizing.segments(row) if said and text] == [SAID]
    row["messages"][-1]["content"] = type(row["messages"][-1]["content"])("#### 4")
    problem = to_data.problem_of(row)  # what is asked, and measured by its length, is plain text
    texts = [message["content"] for message in problem["messages"]] + [problem["solution"]]
    assert {type(text) for text in texts} == {str} and problem["answer"] == "4"


NO_TEXT = "has a part that is no text"
NO_ROWS = [
    (dict(prompt=ASKED, chosen="5", rejected="6"), "a pair of answers, chosen and rejected"),
    (dict(chosen=[USER], rejected=[USER]), "a pair of answers, chosen and rejected"),
    (dict(prompt=ASKED, completion=[dict(role="assistant")]), f"completion {NO_TEXT}"),
    (dict(prompt=[dict(text="x"), dict(x="x")], completion="a"), f"prompt {NO_TEXT}"),
    (dict(messages=[dict(role="user", content=" ")]), "its turns are empty"),
    (PAIR | dict(answer="B", choices=["3", "4"]), "--loader llmini trains on it, --score asks it"),
]
for turn, words in [
    ("a word", "a message is a text, no object"),
    (dict(role="user <|x|>", content="a word"), "a role is 'user <|x|>'"),
    (dict(role="user", content=["a word", 3]), f"content {NO_TEXT}: text"),
    (dict(role="user", content=[]), "content is a list, no text"),
    (dict(role="user", content=[dict(type="image_url")]), f"{NO_TEXT}: image_url"),
    (dict(role="user", content=[dict(type="sound", text="a word")]), f"{NO_TEXT}: sound"),
    (dict(role="assistant", content=" "), "an assistant's turn is empty"),
    (dict(role="assistant", content=None), "content is null, no text"),
    (dict(role="assistant", content=""), "an assistant's turn is empty"),
]:
    NO_ROWS.append((dict(messages=[USER, ASSISTANT, turn]), words))


@pytest.mark.parametrize("row, words", NO_ROWS)
def test_a_row_that_is_none_says_why(row, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        forms.read_row(row)


def test_what_is_left_out_or_read_otherwise_is_told_with_a_count_and_a_place(jsonl):
    read = [*sums(20), *[FORMS[form][0] for form in ("roles", "roles", "tools")]]
    rows = [*read, chat("q", [dict(type="image")]), chat("q", 3), chat("q", 4), chat("q", " ")]
    data = loaded(jsonl(rows))
    assert told(data, "role Human is read as user (2)") and told(data, "only call a tool are left")
    note = told(data, f"4 of 27 rows of {jsonl(rows)} left out: row 24: content has a part that is")
    assert "content is a number, no text (2)" in note and data.facts["unusable_rows"] == 4
    more = loaded(jsonl([*rows, chat("q", True), chat("q", dict())]))  # of five reasons four
    assert told(more, "of 29 rows").endswith("), …")
    assert data.facts["train_rows"] + data.facts["val_rows"] == len(read)


# --- what is asked, and what guessing finds


def test_a_row_whose_end_is_no_answer_is_learned_but_not_asked(jsonl):
    data = loaded(jsonl([chat(f"say {i}", "3") for i in range(9)]))
    assert data.problems == [] and data.facts["unusable_rows"] == 0
    assert told(data, "no held-out row can be asked")


LABEL = dict(family="mine", steps=1, guess=0.5)


@pytest.mark.parametrize("changes, known", [
    (dict(guess=1.0), True), (dict(steps=99, guess=0.01), True), (dict(steps=100), False),
    (dict(steps=0), False), (dict(guess=0.0), False), (dict(guess=1.5), False),
    (dict(family=" "), False),
])  # fmt: skip
def test_a_row_says_what_guessing_finds_if_it_is_a_share(changes, known):
    label = LABEL | changes
    problem = to_data.problem_of(forms.read_row(dict(question="q", answer="#### 3") | label))
    assert {name: problem[name] for name in label if name in problem} == (label if known else {})


def test_what_guessing_finds_is_said_of_problems_all_of_which_say_it(jsonl):
    rows = [dict(question=f"say {i}", answer=f"#### {i % 7}") for i in range(20)]
    data = loaded(jsonl([row | LABEL for row in rows]))
    assert data.facts["guess"] == 0.5
    mixed = [row | (LABEL if i % 2 else {}) for i, row in enumerate(rows)]
    data = loaded(jsonl(mixed), val_fraction=0.5)
    assert 0 < sum("guess" in problem for problem in data.problems) < len(data.problems)
    assert "guess" not in data.facts


@pytest.mark.parametrize("n_kinds", [0, 1, 2])
def test_accuracy_is_told_by_kind_where_there_are_several_kinds(n_kinds, model, jsonl, monkeypatch):
    rows = sums(60)
    for i, row in enumerate(rows if n_kinds else []):
        row |= LABEL | dict(family=("mine", "yours")[i % n_kinds])
    data = loaded(jsonl(rows), val_fraction=0.3)
    right = ["#### 1"] + ["#### no"] * 8
    monkeypatch.setattr(md, "answer_texts", lambda model, tokenizer, problems, *_: right)
    t = configs.make("laptop", eval_problems=9)[1]
    log = md.evaluate(model(vocab_size=data.n_words, block_size=64), data, t, last=True)
    assert log.get("guess") == (0.5 if n_kinds else None)
    by_family, by_problem = (log.get(f"accuracy_by_{name}") for name in ("family", "problem"))
    if n_kinds < 2:
        assert "accuracy" in log and by_family is by_problem is None
    else:
        assert by_family.keys() == {"mine", "yours"} and by_problem.keys() == {"mine 1", "yours 1"}


# --- which rows are taken, which are copies, and what is validated on


def test_the_rows_taken_and_held_out_are_a_sample_that_no_seed_changes(jsonl):
    """The first rows of a file that is sorted are of one kind. Rows that are blank or cannot be
    read do not count."""
    rows = [dict(text=f"number {i:03} of the rows") for i in range(200)]
    rows[::3] = [dict(text=" ")] * 67
    taken, held_out = [], []
    for seed in (0, 1):
        how = dict(max_rows=50, val_fraction=0.2, loss_on="all", seed=seed)
        data = loaded(jsonl(rows), **how)
        said = "".join(texts(data) + texts(data, "val"))
        taken.append(sorted(int(number) for number in re.findall(r"number (\d{3})", said)))
        held_out.append(data.val[0].tolist())
    assert taken[0] == taken[1] and held_out[0] == held_out[1]
    assert len(taken[0]) == 50 and not any(i % 3 == 0 for i in taken[0])
    assert min(taken[0]) < 30 and max(taken[0]) > 170
    assert told(data, "50 rows of 200 of ")


def test_a_sample_keeps_the_order_of_its_source():
    """Though some rows cannot be read, and more are looked for."""
    rows = [dict(text=f"{i:03}") if i % 3 else dict(text="") for i in range(90)]
    taken = [row["text"] for row in forms.usable_rows("x", rows, {}, 40)]
    assert len(taken) == 40 and taken == sorted(taken)


def test_copies_go_to_the_same_side_and_the_others_as_ever(jsonl):
    # the same question, answered and spaced in another way, is the same row
    again = [chat("What  is 3 plus 4 ?\n", f"I do not know, {i}") for i in range(20)]
    facts = {}
    parts = forms.split_rows("x", sums(60) + again, configs.TrainConfig(val_fraction=0.4), facts)
    asked = [{" ".join(forms.turns_of(row)[0][1].split()) for row in part} for part in parts]
    assert not asked[0] & asked[1] and sum(map(len, parts)) == 80
    assert any(note.startswith("20 rows of x repeat another's question") for note in facts["notes"])


def test_copies_are_held_out_where_all_of_them_fit():
    few, none_fits = [5, 5, 9, 5, 7], [5, 5, 5, 9, 9]
    for keys, n, places in (
        (few, 1, [2]), (few, 2, [2, 4]), (few, 3, [0, 1, 3]), (few, 4, [0, 1, 2, 3]),
        (none_fits, 1, [3, 4]),  # the smallest kind
    ):  # fmt: skip
        found = forms.held_out_places(np.array(keys, np.uint64), n)
        assert found.nonzero()[0].tolist() == places
    keys = np.arange(1000, dtype=np.uint64)[::-1]  # without copies the first of the order
    assert forms.held_out_places(keys, 50).nonzero()[0].tolist() == list(range(50))
    with pytest.raises(ValueError, match="all 7 rows are the same"):
        forms.held_out_places(np.ones(7, np.uint64), 1)


def test_a_held_out_row_that_is_trained_on_too_is_told(jsonl):
    a, b = jsonl(sums(40), "a.jsonl"), jsonl(sums(60)[20:], "b.jsonl")
    data = loaded(a, val_data=b)
    assert data.facts["val_rows"] == 40 and data.facts["train_rows"] == 40
    note = told(data, "also stand in training")
    assert note.startswith("20 of 40 held-out rows also stand in training")
    assert "What is 20 plus 21 ?" in note
    apart = loaded(a, val_data=jsonl(sums(60)[40:], "c.jsonl"))
    assert not any("also stand" in note for note in apart.facts["notes"])
    assert not any("also stand" in n for n in loaded("embedded", 104, max_rows=300).facts["notes"])
    copied = jsonl(md.embedded_rows(300, False, questions=3)[:5], "copied.jsonl")
    data = loaded("embedded", 104, max_rows=300, val_data=copied)
    assert told(data, "5 of 5 held-out rows also stand in training")


def test_a_validation_file_of_ones_own_is_all_that_is_held_out(tmp_path, jsonl):
    (tmp_path / "val.csv").write_text("Question,Answer\nhow much,#### 7\nhow many,#### 8\n")
    for source in ((jsonl(sums()),), (jsonl(sums()), "embedded")):
        data = loaded(source, 104, val_data=str(tmp_path / "val.csv"), max_rows=99)
        assert [problem["answer"] for problem in data.problems] == ["7", "8"]
        assert data.facts["val_rows"] == 2 and data.val_by_source == {}


def test_a_hubs_own_validation_split_is_held_out(monkeypatch):
    import datasets

    splits = dict(train=sums(30), validation=sums(40)[30:])
    made = {name: datasets.Dataset.from_list(rows) for name, rows in splits.items()}
    asked = []
    monkeypatch.setattr("datasets.load_dataset", lambda *given: asked.append(given) or made)
    data = loaded("somebody/something")
    assert data.facts["val_rows"] == 10 and data.facts["train_rows"] == 30
    assert told(data, "has a validation split of its own")
    only = configs.TrainConfig(val_data="my.jsonl")  # by which alone it is validated
    rows, held_out = text.read_source("somebody/something", only)
    assert len(rows) == 30 and held_out == []
    hub.splits_of("somebody/something:main")
    assert set(asked) == {("somebody/something", None), ("somebody/something", "main")}


@pytest.mark.parametrize("empty", ["train", "val"])
def test_a_split_or_a_file_without_rows_is_told(empty, monkeypatch, jsonl):
    splits = dict(train=sums(5), val=sums(9)[5:]) | {empty: []}
    monkeypatch.setattr("datasets.load_dataset", lambda *_: splits)
    with pytest.raises(ValueError, match=f"something: there are no rows for {empty}"):
        loaded("somebody/something")
    with pytest.raises(ValueError, match="^val_data .*empty.jsonl has no rows"):
        loaded(jsonl(sums()), val_data=jsonl([], "empty.jsonl"))


def test_one_text_is_parted_at_one_place(tmp_path):
    path = tmp_path / "book.txt"
    path.write_text("\n\n".join(f"paragraph {i:02} of the book" for i in range(40)))
    data = loaded(str(path), val_fraction=0.25)
    assert [f"{i:02}" in "".join(texts(data, "val")) for i in (29, 30, 39)] == [False, True, True]
    assert "30" not in "".join(texts(data)) and told(data, "its end is held out, 10 of 40 parts")


# --- long rows and empty sets


def test_conversations_longer_than_a_block_are_left_out_or_cut_and_told(jsonl):
    path = jsonl([*sums(40), *sums(45, long=30)[40:]])
    data = loaded(path, val_fraction=0.1)
    note = told(data, "rows for train are longer than a block of 64 and left out")
    enough = int(re.search(r"--block_size (\d+) holds them all", note)[1])
    some, every = (loaded(path, size, val_fraction=0.1).facts for size in (enough - 1, enough))
    assert some["train_rows"] < every["train_rows"]
    assert data.facts["train_rows"] + data.facts["val_rows"] == 40
    assert not any("so on" in row for row in texts(data) + texts(data, "val"))
    packed = loaded(path, val_fraction=0.1, packing="pack")  # where each goes on anyway
    assert packed.facts["train_rows"] + packed.facts["val_rows"] == 45
    cut = loaded(path, val_fraction=0.1, long_rows="cut", loss_on="all")
    assert told(cut, "rows for train are longer than a block of 64 and cut at its end")
    assert cut.facts["train_rows"] + cut.facts["val_rows"] == 45
    assert len(cut.train[0]) + len(cut.val[0]) == 45
    whole = loaded(path, val_fraction=0.1, long_rows="split", loss_on="all")
    assert len(whole.train[0]) + len(whole.val[0]) > 45 and told(whole, "go on in another block")
    for facts, (tokens, targets) in ((data.facts, data.train), (cut.facts, cut.train)):
        # a row is a block, and its last token only a target
        assert facts["train_tokens"] == to_data.filled(tokens, targets).sum() + len(tokens)
    for data in (cut, whole):  # all tokens but what stands after the question are in blocks
        assert "so on" in "".join(texts(data))


def test_a_long_row_that_has_labels_is_left_out_like_any_other(jsonl):
    rows = [row | LABEL for row in sums(45, long=30)[40:] + sums(40)]
    data = loaded(jsonl(rows), val_fraction=0.1)
    assert data.facts["train_rows"] + data.facts["val_rows"] == 40
    assert told(data, "are longer than a block of 64 and left out")


def test_blocks_without_a_target_are_left_out(jsonl):
    path = jsonl([*sums(40), *sums(45, long=30)[40:]])
    data = loaded(path, val_fraction=0.1, long_rows="cut")
    assert told(data, "have nothing to learn in them and are left out")
    for tokens, targets in (data.train, data.val):
        assert (targets != -100).any(1).all() and len(tokens) == len(targets)


@pytest.mark.parametrize("rows, changes, words", [
    (sums(40), dict(max_rows=1), "one to hold out; --max_rows 1 takes no more of it"),
    (sums(30, long=30), dict(), "for train are longer than a block of 64 and left out"),
    (sums(30, long=30), dict(long_rows="cut"), "do not fill a block of 64 to learn from"),
    ([dict(messages=[USER | dict(content=f"a user speaks {i}")]) for i in range(50)], dict(),
     "no row for train has a turn of the assistant, but of user"),
])  # fmt: skip
def test_rows_that_nothing_can_be_learned_from_say_why(rows, changes, words, jsonl):
    with pytest.raises(ValueError, match=words):
        loaded(jsonl(rows), **changes)
    if "assistant" in words:  # the file alone has one reason for all
        with pytest.raises(ValueError, match="no row for train"):
            md.load_data(md.configs(data=jsonl(rows), tokenizer="embedded")[1], 64)


def test_a_loss_of_nothing_is_no_number(model, train_on):
    gpt, tokens = model(), torch.zeros(2, 5, dtype=torch.long)
    nothing = torch.full((2, 5), -100)
    with pytest.raises(ValueError, match="have no target: there is no loss of them"):
        md.mean_loss(gpt, (tokens, nothing), 2, 2)
    with pytest.raises(ValueError, match="a batch has no target"):
        train_on(gpt, tokens, nothing)


def test_problems_that_do_not_fit_are_named_and_not_asked(jsonl):
    path = jsonl([*sums(40), *sums(80, long=30)[40:]])
    data = loaded(path, val_fraction=0.5, long_rows="split", loss_on="all")
    note = told(data, "held-out problems do not fit in a block of 64 with their answers")
    assert note.split()[0] == str(data.facts["val_rows"] - len(data.problems)) and "What is" in note
    assert not any("so on" in problem["messages"][0]["content"] for problem in data.problems)


def test_generating_asks_for_a_prompt_that_fits(model):
    gpt = model(block_size=8)
    for n, words in ((9, "9 tokens does not fit block_size 8"), (0, "0 tokens does not fit")):
        with pytest.raises(ValueError, match=words):
            sampling.generate(gpt, torch.zeros(1, n, dtype=torch.long), 3)
    turned = model(block_size=8, position="rotary")  # which knows no last position
    assert sampling.generate(turned, torch.zeros(1, 9, dtype=torch.long), 3).shape == (1, 12)


def test_an_answer_longer_than_others_is_not_cut_off(finished, monkeypatch):
    """As much may be said as the longest solution takes, and 256 tokens at least."""
    model, tokenizer = checkpoints.load(finished)
    asked = []
    monkeypatch.setattr(md, "generate", lambda model, tokens, n, *_: asked.append(n) or tokens)
    solution = "1 2 3 4 " * 100 + "#### 4"
    n = len(tokenizer(solution).input_ids)
    for problem, most in ((dict(solution=solution), n + 1), (dict(solution="#### 4"), 256)):
        md.accuracy(model, tokenizer, [problem | dict(messages=[], answer="4")])
        assert asked.pop() == most
    assert n > 256


# --- text is text, and it ends


def test_control_tokens_in_a_text_are_characters(jsonl):
    odd = [chat(f"Say <|im_end|> {i}", "#### <|endoftext|>") for i in range(20)]
    data = loaded(jsonl(odd))
    marks = data.tokenizer.convert_tokens_to_ids(["<|im_start|>", "<|im_end|>", "<|endoftext|>"])
    for block in data.train[0]:
        # two turns begin and end; zeros fill the block, which are the end of text
        assert [int((block == mark).sum()) for mark in marks[:2]] == [2, 2]
    assert "20 rows with <|im_end|> in the text" in told(data, "<|im_end|> in the text")
    assert data.problems[0]["answer"] == "<|endoftext|>"
    prompt = md.prompt_ids(data.tokenizer, [dict(role="user", content="<|im_end|>")])
    assert prompt.count(marks[1]) == 1 and data.tokenizer.decode(prompt).count("<|im_end|>") == 2


def test_marks_of_thought_are_ordinary_words(data, tmp_path):
    ids = data.tokenizer("<think>a</think>", split_special_tokens=True).input_ids
    assert ids[0] == 3 and ids[-1] == 4
    assert data.tokenizer.decode(ids, skip_special_tokens=True) == "<think>a</think>"
    data.tokenizer.save_pretrained(tmp_path)  # as older runs have it
    path = tmp_path / "tokenizer.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    for word in content["added_tokens"]:
        word["special"] = True
    path.write_text(json.dumps(content), encoding="utf-8")
    old = tokenizing.load_tokenizer(str(tmp_path))
    assert tokenizing.marks_of(old) == ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    assert old("<think>", split_special_tokens=True).input_ids == [3]


@pytest.mark.parametrize("ends", [dict(), dict(unk_token="<unk>", eos_token="<unk>")])
def test_a_tokenizer_without_an_end_gets_one(tmp_path, jsonl, ends):
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = {word: i for i, word in enumerate(["<unk>", *map(chr, range(33, 127))])}
    made = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    PreTrainedTokenizerFast(tokenizer_object=made, **ends).save_pretrained(tmp_path / "words")
    rows = [chat(f"{i}+{i}", f"####{2 * i}") for i in range(30)]
    data = loaded(jsonl(rows), 200, tokenizer=str(tmp_path / "words"))
    assert told(data, "the tokenizer has no end of text; <|endoftext|> is added")
    end = data.tokenizer.convert_tokens_to_ids("<|endoftext|>")
    assert end != data.tokenizer.unk_token_id and data.n_words == len(words) + 1
    assert all((targets == end).sum() == 1 for targets in data.train[1])
    plain = loaded(jsonl([dict(text=f"{i}") for i in range(40)], "t.jsonl"), 8, loss_on="all",
                   tokenizer=str(tmp_path / "words"))  # fmt: skip
    assert all((targets == end).sum() == 1 for targets in plain.train[1])


def test_a_tokenizer_of_characters_has_a_word_for_each(tmp_path):
    path = tmp_path / "line.txt"
    path.write_text("the quick brown fox jumps over the lazy dog " * 100)
    data = loaded(str(path), 32, tokenizer="characters", packing="pack", loss_on="all")
    letters = sorted(set(path.read_text()))
    assert data.n_words == len(letters) + 6 and data.train[0].shape[1] == 32
    everything = "".join(texts(data))
    # one line, parted by position: no end of text within it, and nothing of it twice or missing
    assert path.read_text().startswith(everything) and len(everything) > 4000
    assert data.tokenizer.decode(data.tokenizer("lazy dog!").input_ids) == "lazy dog<unk>"
    path.write_text("a\nb\n\nc" * 50)
    few = tokenizing.load_tokenizer("characters", [path.read_text()], 8)
    assert len(few) == 8 and few("\n").input_ids == [6]  # the two commonest characters


# --- sampling and exports


@pytest.fixture(scope="module")
def kind(tmp_path_factory):
    """The folder of a run on conversations that begin with the same system turn."""
    out = tmp_path_factory.mktemp("kind")
    system = dict(role="system", content='Be "kind"\nand ü')
    rows = [dict(messages=[system, *row["messages"]]) for row in sums(40)]
    (out / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    m, t = configs.make("laptop", data=(str(out / "rows.jsonl"),), n_layers=1, d_model=16,
                      n_heads=2, d_ff=32, tokenizer_size=400, block_size=64, steps=3,
                      warmup_steps=1, out_dir=str(out), name="run", eval_problems=2)  # fmt: skip
    return running.train(m, t).dir


def test_a_system_turn_is_that_of_half_of_the_rows_at_least():
    plain = sums(2)
    kind, odd = (dict(messages=[dict(role="system", content=text), *plain[0]["messages"]])
                 for text in ("Be kind", "Be odd"))  # fmt: skip
    for rows, system in (
        ([kind, plain[0]], "Be kind"),
        ([kind, kind, odd], "Be kind"),
        ([kind, *plain], None),
        (plain, None),
    ):
        template = tokenizing.chat_template(rows, "<|im_end|>")
        assert tokenizing.system_turn(SimpleNamespace(chat_template=template)) == system
    assert tokenizing.chat_template([dict(text="a")], "<|im_end|>") is None


def test_a_sample_begins_as_the_data_did(kind, finished, capsys, monkeypatch):
    tokenizer = checkpoints.load(kind)[1]
    assert tokenizing.system_turn(tokenizer) == 'Be "kind"\nand ü'
    assert tokenizing.system_turn(checkpoints.load(finished)[1]) is None
    asked = [dict(role="user", content="Hello")]
    template = tokenizer.apply_chat_template(asked, tokenize=False, add_generation_prompt=True)
    assert template.startswith('<|im_start|>system\nBe "kind"\nand ü<|im_end|>\n<|im_start|>user\n')
    seen = []

    def answer_texts(model, tokenizer, problems, **sampling):
        seen.append([m["role"] + " " + m["content"] for m in problems[0]["messages"]])
        return ["yes"] * len(problems)

    monkeypatch.setattr(sampling, "answer_texts", answer_texts)
    assert train.main(["--sample", kind, "--prompt", "Hello"]) == 0
    assert train.main(["--sample", kind, "--prompt", "Hello", "--system", "Be brief"]) == 0
    assert seen == [['system Be "kind"\nand ü', "user Hello"], ["system Be brief", "user Hello"]]


def test_several_answers_first_weights_and_a_prompt_from_a_file(finished, tmp_path, capsys):
    (tmp_path / "prompt.txt").write_text("Sort c a, b c.\nNumber 2 ?\n", encoding="utf-8")

    def said(*more):
        line = ["--sample", finished, "--prompt_file", str(tmp_path / "prompt.txt"), *more]
        assert train.main(line) == 0
        return capsys.readouterr().out

    several = said("--temperature", "1", "--num_samples", "3", "--max_new_tokens", "4")
    assert len(several.splitlines()) >= 3
    likeliest = said("--temperature", "1", "--top_k", "1")
    assert said("--temperature", "0.001") == likeliest
    assert said("--temperature", "0.001", "--first_weights") != likeliest
    model, _ = sample.untrained(finished)
    m, t = checkpoints.read_config(finished)
    torch.manual_seed(t.seed)
    assert same_weights(variants.GPT(m), model)
    padded = shutil.copytree(finished, tmp_path / "padded")
    config = json.loads((padded / "config.json").read_text())
    config["model"]["vocab_size"] += 99
    (padded / "config.json").write_text(json.dumps(config))
    wide, words = sample.untrained(str(padded))  # what is no word is never drawn
    assert wide.n_words == len(words) == wide.config.vocab_size - 99


def test_a_chat_remembers_its_turns(finished, capsys, monkeypatch):
    import io

    seen = []

    def answer_texts(model, tokenizer, problems, **sampling):
        seen.append([m["content"] for m in problems[0]["messages"]])
        return [f"answer {len(seen)}" if len(seen) < 3 else ""] * len(problems)

    monkeypatch.setattr(sampling, "answer_texts", answer_texts)
    monkeypatch.setattr(sys, "stdin", io.StringIO("one\ntwo\nthree\nfour\n"))
    assert train.main(["--sample", finished, "--chat"]) == 0
    three = ["one", "answer 1", "two", "answer 2", "three"]
    assert seen == [three[:1], three[:3], three, [*three, "four"]]  # no turn that says nothing
    assert capsys.readouterr().out == "answer 1\nanswer 2\n\n\n"
    terminal = io.StringIO("\n")
    terminal.isatty = lambda: True  # where somebody is to see that it waits
    monkeypatch.setattr(sys, "stdin", terminal)
    assert train.main(["--sample", finished, "--chat"]) == 0
    assert capsys.readouterr().out == "> "
    monkeypatch.setattr(sys, "stdin", io.StringIO("a \udcff b\n"))  # as a byte that is no UTF-8
    assert train.main(["--sample", finished, "--chat"]) == 2
    assert "the turn is not text" in capsys.readouterr().err and len(seen) == 4


def test_an_export_stops_after_its_answer_and_keeps_the_thoughts(kind, tmp_path):
    from transformers import AutoTokenizer, GPT2LMHeadModel

    out = str(tmp_path / "out")
    export.export_hf(kind, out)
    tokenizer, model = AutoTokenizer.from_pretrained(out), GPT2LMHeadModel.from_pretrained(out)
    end, end_of_text = tokenizer.convert_tokens_to_ids(["<|im_end|>", "<|endoftext|>"])
    assert model.config.eos_token_id == tokenizer.eos_token_id == end
    assert model.generation_config.eos_token_id == [end_of_text, end]
    assert model.config.pad_token_id == tokenizer.pad_token_id == end_of_text
    assert tokenizer.model_max_length == model.generation_config.max_length == 64
    thought = tokenizer.convert_tokens_to_ids("</think>")
    assert tokenizer.decode([thought, end], skip_special_tokens=True) == "</think>"


# --- data that has moved


def test_a_run_goes_on_with_data_that_has_moved_and_no_other(tiny, jsonl, tmp_path, capsys, kept):
    path = jsonl(sums(), "here.jsonl")
    settings = dict(data=(path,), tokenizer_size=400, eval_problems=2)
    stopped = running.train(*tiny(**settings), stop=lambda: True)
    there = str(tmp_path / "there.jsonl")
    os.rename(path, there)
    assert train.main(["--resume", stopped.dir]) == 2
    assert "here.jsonl is not there; if it has moved, give --resume" in capsys.readouterr().err
    other = jsonl(sums(61), "other.jsonl")
    assert train.main(["--resume", stopped.dir, "--data", other]) == 2
    assert "is not what it" in capsys.readouterr().err
    assert train.main(["--resume", stopped.dir, "--data", there]) == 0
    os.rename(there, path)
    whole = running.train(*tiny(**settings | dict(name="whole")))
    assert same_weights(checkpoints.load(stopped.dir)[0], whole.model)


def test_what_is_no_file_has_not_moved(tmp_path):
    """Data sets of the hub, and patterns, which may fit other files by now."""
    for source in ("somebody/something", f"{tmp_path}/*.jsonl"):
        one_run.check_moved("runs/a", configs.TrainConfig(data=(source,)))
    for gone in ("gone.csv", "gone.jsonl"):
        with pytest.raises(ValueError, match=f"{gone} is not there; if it has moved"):
            one_run.check_moved("runs/a", configs.TrainConfig(data=(f"{tmp_path}/{gone}",)))
