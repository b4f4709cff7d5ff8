"""The generated problems, the tokenizer, blocks, and several sources at once."""

import hashlib
import itertools
import json
import random
import re
from collections import Counter

import numpy as np
import pytest
import torch

import minidepth as md
from minidepth_lab.base import configs, console
from minidepth_lab.keep import running
from minidepth_lab.measure import results
from minidepth_lab.rows import files, forms, to_data, tokenizing
from minidepth_lab.rows.to_data import load_data
from minidepth_lab.studies import thinking


def config(**changes):
    return configs.make("laptop", **dict(max_rows=0, tokenizer="embedded") | changes)[1]


# --- the embedded problems


def text_of(row):
    return row["messages"][0]["content"], row["messages"][1]["content"]


def line_of(question):
    """The letters of a ring from the smallest one on, of an ordering from its first one on."""
    pairs = dict(re.findall(r"(\w) (\w)(?=[,.])", question))
    first = {min(pairs)} if question.startswith("Follow") else set(pairs) - set(pairs.values())
    line = [first.pop()]
    while (follows := pairs.get(line[-1], line[0])) != line[0]:
        line.append(follows)
    return line


def solve(question):
    """The answer of an embedded problem, worked out from its words alone."""
    if question.startswith("From"):
        *numbers, modulus = map(int, re.findall(r"\d+", question))
        return str(sum(numbers) % modulus)
    line = line_of(question)
    if question.startswith("Follow"):
        hops, letter = re.search(r"Go (\d+) from (\w)", question).groups()
        return line[(line.index(letter) + int(hops)) % len(line)]
    assert question.startswith("Sort")
    return line[int(re.search(r"Number (\d+)", question)[1]) - 1]


@pytest.mark.parametrize("held_out", [False, True])
def test_the_embedded_answers_are_right_and_the_work_leads_to_them(held_out):
    rows = md.embedded_rows(1200, held_out, (1, 2, 3, 4, 5))
    for row in rows:
        question, says = text_of(row)
        answer = solve(question)
        assert md.final_answer(says) == answer
        work = re.fullmatch(r"<think>\nSo (.*)\n</think>\n\n .", says)[1]
        if row["family"] == "chain":
            for a, b, c in re.findall(r"(\d) \+ (\d) = (\d)", work):
                assert (int(a) + int(b)) % 10 == int(c)
            assert len(work.split(",")) == row["steps"] and work.endswith(answer)
        else:
            assert len(work.split()) == row["steps"] + 1 and answer in work.split()
    kinds = Counter((r["family"], r["steps"]) for r in rows)
    assert kinds.keys() == set(itertools.product(("chain", "lookup", "order"), (1, 2, 3, 4, 5)))
    if not held_out:  # of which there may be fewer of some kinds
        assert set(kinds.values()) == {80}


def test_the_guessing_rate_is_what_guessing_finds():
    """Drawing among the answers that the question allows is right as often as `guess` says."""
    draw, right, expected = random.Random(0), 0, 0
    rows = md.embedded_rows(6000)
    for row in rows:
        question, says = text_of(row)
        letters = sorted(set(re.findall(r"\b[a-j]\b", question.split(". ")[0])))
        start = re.search(r"from (\w)", question)
        options = [x for x in letters if not start or x != start[1]] or list("0123456789")
        right += draw.choice(options) == md.final_answer(says)
        expected += row["guess"]
    assert right / len(rows) == pytest.approx(expected / len(rows), abs=0.02)


def canonical(question):
    """What makes it the same problem, read off the question."""
    if question.startswith("From"):
        return tuple(re.findall(r"\d+", question))
    return question[:4], *line_of(question)


def test_training_and_held_out_problems_are_apart_whatever_way_they_are_written():
    trained = {canonical(text_of(row)[0]) for row in md.embedded_rows(10_000)}
    rows = md.embedded_rows(600, True)
    held_out = [canonical(text_of(row)[0]) for row in rows]
    assert len(rows) == len(set(held_out)) == 600  # all different
    assert not trained & set(held_out)
    kinds = Counter((row["family"], row["steps"]) for row in rows)
    assert len(kinds) == 9 and min(kinds.values()) >= 45 and max(kinds.values()) <= 75
    first = Counter((row["family"], row["steps"]) for row in rows[:99])
    assert set(first.values()) == {11}  # the first hundred have all kinds alike


def test_a_kind_that_is_used_up_drops_out_of_what_is_held_out():
    rows = md.embedded_rows(600, True, steps=(1,), families=("chain", "order"))
    assert len({text_of(row)[0] for row in rows}) == len(rows) < 120
    few = md.embedded_rows(600, steps=(1,), families=("chain", "order"))
    assert len(few) == 600  # training repeats


def test_the_same_seed_gives_the_same_bytes():
    """The digest was made once; another platform or Python version must give it too."""
    content = json.dumps([md.embedded_rows(100, False), md.embedded_rows(50, True, (9,), 7)])
    assert hashlib.sha256(content.encode()).hexdigest() == DIGEST
    assert md.embedded_rows(20, seed=1) != md.embedded_rows(20, seed=0)


DIGEST = "78a3eb8ca0ba5e642a46283690ade7bb8c54f539e6344068581bb4cf51aa880d"


def test_a_ring_is_asked_several_times_from_anywhere_in_training():
    rings, starts = 0, set()
    for row in md.embedded_rows(900, steps=(1, 2, 9), questions=3):
        turns = row["messages"]
        asked = [turn["content"] for turn in turns[::2]]
        if row["family"] != "lookup":
            assert len(asked) == 1
            continue
        rings += 1
        pairs = asked[0].split("Go")[0]
        assert len(asked) == 3 and asked[0].startswith("Follow")
        for later, question in enumerate(asked):
            if later:
                assert question.startswith("Go ")  # the ring is not given again
                starts.add((pairs.index(question[-3]) - pairs.index(asked[0][-3])) != 0)
                question = pairs + question
            answer = turns[2 * later + 1]["content"]
            assert md.final_answer(answer) == solve(question)
            written = answer.split("\n")[1].removeprefix("So ").split()
            size = max(6, row["steps"] + 1)
            assert len(written) == (size if later else row["steps"] + 1)  # all the way round
    assert rings == 300 and starts == {True, False}
    assert md.embedded_rows(9, True, questions=3) == md.embedded_rows(9, True)  # the test asks one


def test_families_and_modulus_are_chosen():
    rows = md.embedded_rows(200, families=("lookup",), steps=(2, 3))
    assert {(row["family"], row["steps"]) for row in rows} == {("lookup", 2), ("lookup", 3)}
    rows = md.embedded_rows(400, families=("chain",), modulus=5)
    answers = {md.final_answer(text_of(row)[1]) for row in rows}
    assert answers == set("01234") and {row["guess"] for row in rows} == {1 / 5}
    for question, says in map(text_of, rows):
        assert "modulo 5" in question and md.final_answer(says) == solve(question)


def test_settings_say_which_embedded_rows_there_are(monkeypatch):
    """More questions about a ring are for training alone."""
    few = config(max_rows=30, problem_steps=(2, 4), ring_questions=3)
    asked_more = md.embedded_rows(30, steps=(2, 4), questions=3)
    assert files.read_source("embedded", few) == (asked_more, md.embedded_rows(600, True, (2, 4)))
    assert files.read_source("embedded", config(max_rows=3, val_data="a.jsonl"))[1] == []
    monkeypatch.setattr(md, "embedded_rows", lambda n, *_, **__: [n])  # seconds for so many
    without_a_limit, _ = files.read_source("embedded", config(max_rows=0))
    assert without_a_limit == [configs.TrainConfig.max_rows]


# --- rows, and which are held out


ROWS = [dict(question=f"What is {i} plus {i}?", answer=f"It is #### {2 * i}") for i in range(40)]


def test_columns_that_other_rows_fill_do_not_hide_a_row(tmp_path):
    """A columnar file gives each row every column, None where it has nothing."""
    import pyarrow
    import pyarrow.parquet

    chat = [dict(role="user", content="hello"), dict(role="assistant", content="there")]
    rows = []
    for i in range(20):
        more = [dict(chat[0], content=f"hello {i}"), chat[1]]
        rows += [dict(messages=more), dict(question=f"q {i}", answer="a"), dict(text=f"plain {i}")]
    empty = dict(messages=None, question=None, answer=None, text=None)
    rows = [empty | row for row in rows]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "mixed.parquet")
    path = str(tmp_path / "mixed.parquet")
    data = load_data(config(data=(path,), loss_on="all"), 16)
    assert data.facts["unusable_rows"] == 0 and data.tokenizer.chat_template
    only = [empty | dict(text=f"x y z {i}") for i in range(60)]
    table = pyarrow.Table.from_pylist(only, pyarrow.Table.from_pylist(rows).schema)
    pyarrow.parquet.write_table(table, path)
    # nor has it a template that the tokenizer came with: what is sampled would be asked in it
    for given in (None, data.tokenizer):
        assert not load_data(config(data=(path,), loss_on="all"), 16, given).tokenizer.chat_template


def test_a_share_of_the_rows_is_held_out_from_all_over_the_file(jsonl):
    train, held_out = files.read_source(jsonl(ROWS), config(val_fraction=0.25, max_rows=100))
    every_row = [forms.read_row(row) for row in ROWS]
    places = [every_row.index(row) for row in held_out]
    assert len(places) == 10 and max(places) > 20 and places != sorted(places)
    assert sorted(map(every_row.index, train + held_out)) == list(range(40))
    for n in (2, 3, 9):  # however large the share, a row is left to train on
        train, held_out = files.read_source(jsonl(ROWS[:n]), config(val_fraction=0.9))
        assert len(train) == 1 and len(held_out) == n - 1


def test_held_out_problems_are_checkable(data):
    assert len(data.problems) == 600
    p = data.problems[1]
    assert [m["role"] for m in p["messages"]] == ["user"]
    assert p["answer"] == solve(p["messages"][0]["content"]) and p["family"] == "lookup"
    long = dict(question="q", answer="<think>x</think> " + "long " * 20)
    said = dict(role="assistant", content="<think>x</think> 3")
    alone, blank = [said], [dict(role="user", content=" \n"), said]  # nothing was asked
    rows = [dict(text="#### 3"), dict(question="q", answer="no mark"), long]
    for row in (*rows, dict(messages=alone), dict(messages=blank)):
        assert to_data.problem_of(forms.read_row(row)) is None
    for answer, asked in (("a" * 40, True), ("a" * 41, False)):
        row = forms.read_row(dict(question="q", answer=f"#### {answer}"))
        assert bool(to_data.problem_of(row)) == asked
    assert md.final_answer("a #### b </think> #### 12 ") == "12"


# --- tokens and blocks


def test_the_embedded_tokenizer_gives_text_back(data):
    for text in ("Follow a b, c d. 3 + 4 = 7", "Ünïcode → 漢字 🙂\n\ttabs", "12 + 3456"):
        ids = data.tokenizer(text, add_special_tokens=False).input_ids
        assert data.tokenizer.decode(ids) == text
    assert data.tokenizer.convert_tokens_to_ids(["<|im_start|>", "<think>"]) == [1, 3]
    assert len(data.tokenizer(" 7 8 9").input_ids) == 3  # a digit is one token
    texts = [text for row in md.embedded_rows(300) for text in text_of(row)]
    assert len(tokenizing.load_tokenizer("embedded", texts, 300)) == 300  # the most that is asked


def test_loss_falls_on_the_assistant_alone_or_on_all(data):
    turns = dict(system="Be kind", user="Go 1 from a", tool="a b", assistant="So b\n#### b")
    row = dict(messages=[dict(role=role, content=text) for role, text in turns.items()])
    parts = tokenizing.segments(row, data.tokenizer)
    written = [f"<|im_start|>{role}\n{text}<|im_end|>\n" for role, text in turns.items()]
    assert "".join(text for text, _ in parts) == "".join(written)
    assert parts == md.segments(row["messages"], "<|im_end|>")
    (ids, learn), (_, learn_all) = (
        next(md.encode([parts], data.tokenizer, on)) for on in ("assistant", "all")
    )
    said = data.tokenizer.decode([i for i, s in zip(ids, learn) if s])
    assert said == turns["assistant"] + "<|im_end|>" and all(learn_all)
    plain = tokenizing.segments(dict(text="plain"), data.tokenizer)
    assert plain == [("plain", True), ("<|endoftext|>", True)]


ENCODED = [((1, 2, 3), (False, True, True)), ((4, 5, 6, 7, 8), (False, False, True, True, True))]


def test_packing_puts_rows_end_to_end():
    tokens, targets = md.blocks(ENCODED, 3, "pack")
    assert tokens.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert targets.tolist() == [[2, 3, -100], [-100, 6, 7]]
    assert md.blocks(ENCODED, 9, "pack")[0].shape == (0, 9)


def test_padding_starts_each_row_anew():
    tokens, targets = md.blocks(ENCODED, 3, "pad")
    assert tokens.tolist() == [[1, 2, 0], [4, 5, 6], [7, 0, 0]]
    assert targets.tolist() == [[2, 3, -100], [-100, 6, 7], [8, -100, -100]]
    assert tokens.dtype == targets.dtype == np.int32


def test_a_prompt_is_the_start_of_what_was_trained_on(data):
    for p in data.problems[:30]:
        row = dict(messages=[*p["messages"], dict(role="assistant", content=p["solution"])])
        parts = tokenizing.segments(row, data.tokenizer)
        ids, _ = next(md.encode([parts], data.tokenizer))
        prompt = md.prompt_ids(data.tokenizer, p["messages"])
        assert ids[: len(prompt)] == prompt
        template = data.tokenizer.apply_chat_template(
            p["messages"], add_generation_prompt=True, tokenize=False
        )
        assert data.tokenizer(template).input_ids == list(prompt)


def test_each_epoch_takes_every_block_once_in_an_order_of_its_own():
    def rows_of(step, n, total, seed):
        """Which of `total` blocks a step draws: block i holds the number i."""
        part = np.arange(total, dtype=np.int32)[:, None]
        return md.Data((part, part), (), seed=seed).draw(step, n)[0][:, 0]

    rows = torch.cat([rows_of(step, 6, 21, 3) for step in range(7)])
    first, second = rows[:21].tolist(), rows[21:].tolist()
    assert sorted(first) == sorted(second) == list(range(21)) and first != second
    assert not torch.equal(rows_of(0, 6, 21, 4), rows[:6])
    assert rows_of(0, 10, 3, 0).bincount().tolist() in ([3, 3, 4], [3, 4, 3], [4, 3, 3])


@pytest.mark.parametrize("added, end", [(["<|im_end|>"], "<|im_end|>"), ([], "</s>")])
def test_a_turn_ends_as_the_tokenizer_can_say_it_and_so_does_the_template(added, end):
    """Whether unknown words have a number or none."""
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    def made(unknown):
        words = models.WordLevel({"a": 0, "<unk>": 1, "</s>": 2}, unk_token="<unk>")
        names = dict(unk_token=unknown, eos_token="</s>")
        tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(words), **names)
        tokenizer.add_tokens(added, special_tokens=True)
        return tokenizer

    for tokenizer in map(made, ("<unk>", None)):
        assert md.turn_end(tokenizer) == end
        tokenizer.eos_token = None
        assert md.turn_end(tokenizer) == (end if added else "")
        assert "".join(text for text, _ in tokenizing.segments(dict(text="a"), tokenizer)) == "a"
    turns = dict(system="s", user="q", assistant="a")
    row = dict(messages=[dict(role=role, content=text) for role, text in turns.items()])
    _, t = configs.make("laptop", block_size=16)
    own = to_data.make_data("rows", [row], [row], t, 16, made("<unk>")).tokenizer
    said = "".join(text for text, _ in tokenizing.segments(row, own))
    asked = row["messages"][1:2]
    begin = own.apply_chat_template(asked, tokenize=False, add_generation_prompt=True)
    assert said == f"{begin}a{end}\n" and tokenizing.system_turn(own) == "s"


def test_whoever_cuts_the_rows_gets_long_ones_whole(data):
    """As LLmini's loader does: --long_rows is about rows that nobody else cuts."""
    rows, lengths, facts = [dict(text="one two " * 20), dict(text="three four")], [], {}

    def chunks(encoded):
        for ids, learn in encoded:
            lengths.append(len(ids))
            yield ids[:9], learn[:9]

    t = config(data=("x",), packing="pad", loss_on="all", long_rows="drop")
    made = to_data.make_data("x", rows, rows[::-1], t, 8, data.tokenizer, chunks, facts)
    assert max(lengths) > 40 and len(made.train[0]) == len(made.val[0]) == 2
    assert not any("longer than a block" in note for note in made.facts["notes"])


# --- several sources


ENOUGH = dict(packing="pad", loss_on="all")


def test_validation_and_problems_are_spread_over_all_sources(jsonl):
    """However few are measured, each source has its share; it was the first source alone."""
    paths = [jsonl([dict(question=f"{word} {i}?", answer=f"{word} #### {word}") for i in range(n)],
                   f"{word}.jsonl")
             for word, n in (("apple", 200), ("pear", 60), ("plum", 120))]  # fmt: skip
    told = [*map(console.without_home, paths)]
    data = load_data(config(data=tuple(paths), **ENOUGH), 32)
    names = [data.tokenizer.decode(row) for row in data.val[0]]
    for some in (names[:3], [problem["answer"] for problem in data.problems[:3]]):
        assert all(sum(word in text for text in some) == 1 for word in ("apple", "pear", "plum"))
    assert Counter(problem["answer"] for problem in data.problems) == dict(apple=10, pear=3, plum=6)
    assert len(names) == 19 and list(data.val_by_source) == told
    for word, (tokens, targets) in zip(("apple", "pear", "plum"), data.val_by_source.values()):
        assert all(word in data.tokenizer.decode(row) for row in tokens)
        assert tokens.shape == targets.shape == (sum(word in name for name in names), 32)
    assert data.problem_sources[:3] == told
    record = dict(answers=[1, 0, 1, 1], val_loss=1.0)
    data.complete(record)
    assert record["accuracy_by_source"] == dict(zip(told, (1.0, 0.0, 1.0)))
    one = load_data(config(data=tuple(paths[:1]), **ENOUGH), 32)
    assert one.val_by_source == {} and one.problem_sources == []


def test_the_loss_and_the_accuracy_of_each_source_are_logged(tiny, jsonl):
    texts = [dict(text=f"all the {i} words of a source that is easy") for i in range(300)]
    path = jsonl(texts)
    settings = dict(packing="pack", loss_on="all", eval_blocks=7, eval_problems=2, eval_every=1)
    m, t = tiny(data=("embedded", path), steps=2, warmup_steps=0, watch_problems=0, **settings)
    data, path = load_data(t, m.block_size), console.without_home(path)
    run = running.train(m, t, data)
    assert [record["val_loss_by_source"].keys() for record in run.log] == [{"embedded", path}] * 2
    assert run.log[-1]["accuracy_by_source"].keys() == {"embedded"}  # the other asks nothing
    for name, part in data.val_by_source.items():
        tokens, targets = (torch.as_tensor(each[:7]).long() for each in part)
        logits = run.model(tokens)
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
        assert run.log[-1]["val_loss_by_source"][name] == pytest.approx(loss.item(), abs=1e-5)
        text = "".join(data.tokenizer.decode(row) for row in part[0])
        assert ("words of a source" in text) == (name == path)
        assert ("<think>" in text) == (name == "embedded")


def test_one_source_alone_is_not_told_by_source(finished):
    names = set().union(*results.read_log(finished))
    assert "accuracy" in names and not {"val_loss_by_source", "accuracy_by_source"} & names


def test_a_source_too_small_for_a_block_of_its_own_does_no_harm(tiny, jsonl):
    """It trains and is validated on with the others; the loss of it alone is not logged, and a note
    says why."""
    small = jsonl([dict(text=f"small {i}") for i in range(20)], "small.jsonl")
    m, t = tiny(data=(small, "embedded"), packing="pack", loss_on="all")
    data = load_data(t, m.block_size)
    assert list(data.val_by_source) == ["embedded"] and data.facts["unusable_rows"] == 0
    (note,) = [note for note in data.facts["notes"] if "val_loss_by_source" in note]
    assert note.startswith(f"{small} is not in val_loss_by_source: ")
    assert data.facts["val_rows"] == 601
    assert "small" in data.tokenizer.decode(data.val[0][0])


OWN = [dict(text=f"the own text {i} is here, {'and long ' * 40}") for i in range(60)]


@pytest.mark.parametrize("order", [1, -1])
def test_embedded_problems_mix_with_rows_of_ones_own(tiny, jsonl, order):
    """In either order; each row is judged by itself, not all of them by the first."""
    chats = [dict(question=f"how much is {i}", answer=f"#### {i}") for i in range(60)]
    sources = ("embedded", jsonl(OWN, "own.jsonl"), jsonl(chats, "chats.jsonl"))[::order]
    m, t = tiny(data=sources, loss_on="all", eval_problems=4)
    data = load_data(t, m.block_size)
    assert data.facts["unusable_rows"] == 0 and data.facts["val_rows"] == 606
    assert data.tokenizer.chat_template and "guess" not in data.facts
    assert sorted("guess" in problem for problem in data.problems[:2]) == [False, True]


@pytest.mark.parametrize("kind", ["embedded", "thinking"])
def test_a_block_too_short_for_problems_is_told_whatever_else_there_is(tiny, jsonl, kind):
    """A long row of one's own, which may be cut, is not what makes it too short."""
    given, load = dict(data=(jsonl(OWN), "embedded"), loss_on="all"), load_data
    if kind == "thinking":
        given = dict(loader="thinking", sizes=("families=chain",), problem_steps=(4,))
        load = thinking.load_data
    t = tiny(packing="pad", **given)[1]
    with pytest.raises(ValueError, match="block_size 20 is too short for problems of") as told:
        load(t, 20)
    assert "--problem_steps" in str(told.value)
    enough = int(re.search("at least ([0-9]+)", str(told.value))[1])
    longest = max(filled.sum() for filled in to_data.filled(*load(t, enough).val))
    if kind == "thinking":
        assert longest == enough  # nothing is wasted, either
    with pytest.raises(ValueError, match=f"give at least {enough}"):
        load(t, enough - 1)


@pytest.mark.parametrize("text, shown", [
    ("a short  one", "a short one"), ("", "ValueError"), ("x" * 150, "x" * 150),
    ("library " * 20, "library " * 18 + "…"),  # cut between words
])  # fmt: skip
def test_a_reason_is_one_line(text, shown):
    with pytest.raises(ValueError) as error, console.one_line_errors("x", "fails"):
        raise ValueError(text)
    assert str(error.value) == f"x fails: {shown}"
