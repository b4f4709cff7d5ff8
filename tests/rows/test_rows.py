"""From rows of a file to what is learned and asked: which rows, which turns, which answers."""

import pytest

from minidepth_lab.base import configs
from minidepth_lab.keep import running
from minidepth_lab.rows import forms, to_data


def data_of(path, block_size=64, **changes):
    values = dict(data=(path,), packing="pad", max_rows=0, tokenizer_size=400) | changes
    return to_data.load_data(configs.make("laptop", **values)[1], block_size)


def test_the_rows_taken_are_a_sample_that_no_seed_changes(jsonl):
    """The first rows of a file that is sorted are of one kind. Rows that are blank or cannot be
    read do not count."""
    rows = [dict(text=f"number {i:03} of the rows") for i in range(200)]
    rows[::3] = [dict(text=" ")] * 67
    taken = []
    for seed in (0, 1):
        data = data_of(jsonl(rows), max_rows=50, val_fraction=0.2, loss_on="all", seed=seed)
        parts = [*data.train[0], *data.val[0]]
        texts = sorted(data.tokenizer.decode(block) for block in parts)
        taken.append([int(text[7:10]) for text in texts])
    assert taken[0] == taken[1] and len(taken[0]) == 50 and not any(i % 3 == 0 for i in taken[0])
    assert min(taken[0]) < 30 and max(taken[0]) > 170
    assert data.facts["notes"][1].startswith("50 rows of 200 of ")


def test_nothing_but_the_assistants_words_is_learned(jsonl):
    """Each turn has a word of its own; the roles are those that chats have."""
    words = dict(system="apple", user="pear", tool="plum", assistant="fig")
    row = [dict(role=role, content=f"{word} {word}") for role, word in words.items()]
    rows = [
        dict(messages=[*row[:1], dict(row[1], content="pear " * i), *row[2:]]) for i in range(1, 9)
    ]
    data = data_of(jsonl(rows), loss_on="assistant")
    for tokens, targets in zip(*data.train):
        learned = data.tokenizer.decode([t for t in targets.tolist() if t != -100])
        assert learned == "fig fig<|im_end|>"
        assert all(word in data.tokenizer.decode(tokens) for word in words.values())


@pytest.mark.parametrize("last", [
    dict(role="user", content="#### 3"), dict(role="assistant", content="#### 3\n4"),
    dict(role="assistant", content="####"), dict(role="assistant", content="3"),
])  # fmt: skip
def test_a_row_whose_end_is_no_answer_is_learned_but_not_asked(jsonl, last):
    turns = [dict(role="user", content="say"), dict(role="assistant", content="so"), last]
    rows = [dict(messages=[dict(role="user", content=f"say {i}"), *turns]) for i in range(9)]
    data = data_of(jsonl(rows))
    assert data.problems == [] and data.facts["unusable_rows"] == 0


def test_accuracy_is_told_by_kind_where_there_are_several_kinds(tiny, jsonl):
    rows = [dict(question=f"say {i}", answer=f"#### {i % 7}") for i in range(60)]
    kinds = [dict(family=family, steps=1, guess=0.5) for family in ("mine", "yours")]

    def last_row(name, rows):
        own = dict(data=(jsonl(rows),), name=name, max_rows=0, val_fraction=0.3)
        return running.train(
            *tiny(steps=1, warmup_steps=0, watch_problems=0, eval_problems=9, **own)
        ).log[-1]

    log = last_row("kinds", [row | kinds[i % 2] for i, row in enumerate(rows)])
    assert log["accuracy_by_family"].keys() == {"mine", "yours"}
    assert log["accuracy_by_problem"].keys() == {"mine 1", "yours 1"}
    for name, alike in (("none", rows), ("one", [row | kinds[0] for row in rows])):
        log = last_row(name, alike)
        assert "accuracy" in log and log.get("guess") == (0.5 if name == "one" else None)
        assert not {"accuracy_by_family", "accuracy_by_problem"} & log.keys()


@pytest.mark.parametrize("label, known", [
    (dict(family="mine", steps=1, guess=1.0), True),
    (dict(family="mine", steps=99, guess=0.01), True),
    (dict(family="mine", steps=100, guess=0.5), False),
    (dict(family="mine", steps=0, guess=0.5), False),
    (dict(family="mine", steps=1, guess=0.0), False),
    (dict(family="mine", steps=1, guess=1.5), False),
    (dict(family=" ", steps=1, guess=0.5), False),
])  # fmt: skip
def test_a_row_says_what_guessing_finds_if_it_is_a_share(jsonl, label, known):
    rows = [dict(question=f"say {i}", answer=f"#### {i % 7}", **label) for i in range(20)]
    data = data_of(jsonl(rows))
    assert data.facts.get("guess") == (label["guess"] if known else None)
    assert all(("family" in problem) == known for problem in data.problems)


def test_what_guessing_finds_is_not_said_of_problems_of_which_only_some_say_it(jsonl):
    rows = [dict(question=f"say {i}", answer=f"#### {i % 7}") for i in range(20)]
    label = dict(family="mine", steps=1, guess=0.5)
    mixed = [row | (label if i % 2 else {}) for i, row in enumerate(rows)]
    data = data_of(jsonl(mixed), val_fraction=0.5)
    assert 0 < sum("guess" in problem for problem in data.problems) < len(data.problems)
    assert "guess" not in data.facts


@pytest.mark.parametrize("turn", [
    dict(content="a word"), dict(role=None, content="a word"), dict(role=3, content="a word"),
    dict(role="user"), dict(role="user", content=["a word", 3]), "a word", dict(role="user <|x|>"),
    dict(role="user", content=[dict(type="image_url")]), dict(role="user", content=[]),
    dict(role="user", content=[dict(type="sound", text="a word")]),
    dict(role="assistant", content=" "), dict(role="assistant", content=None),
    dict(role="assistant", content=""),
])  # fmt: skip
def test_a_turn_without_a_role_or_words_makes_a_row_unusable(jsonl, turn):
    good = [dict(role="user", content="say"), dict(role="assistant", content="so")]
    rows = [dict(messages=[dict(good[0], content=f"say {i}"), good[1]]) for i in range(9)]
    rows.append(dict(messages=[*good, turn]))
    data = data_of(jsonl(rows), loss_on="all")
    assert data.facts["unusable_rows"] == 1


def test_a_sample_keeps_the_order_of_its_source():
    """Though some rows cannot be read, and more are looked for."""
    rows = [dict(text=f"{i:03}") if i % 3 else dict(text="") for i in range(90)]
    taken = [row["text"] for row in forms.usable_rows("x", rows, {}, 40)]
    assert len(taken) == 40 and taken == sorted(taken)


def test_more_questions_about_a_ring_are_for_training_alone():
    one, three = (data_of("embedded", 200, max_rows=30, ring_questions=n) for n in (1, 3))
    rings = [data.tokenizer.decode(data.train[0][1]).count("Go ") for data in (one, three)]
    assert rings == [1, 3]
    for name in ("val_rows", "train_rows"):
        assert one.facts[name] == three.facts[name]
    assert one.problems == three.problems
