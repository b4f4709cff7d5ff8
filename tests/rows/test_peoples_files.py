"""Files as people have them, kinds that public reports describe: what is read of each, and what is
told."""

import bz2
import dataclasses
import json
import lzma

import pyarrow as pa
import pyarrow.parquet
import pytest

import minidepth as md
import train
from minidepth_lab.base import configs, console
from minidepth_lab.keep import running
from minidepth_lab.measure import results, sampling
from minidepth_lab.rows import answers, files, forms, reading, to_data, tokenizing

ASKED = ("user", "2 + 3 ?")
ROWS = [dict(question=f"What is {i} plus {i} ?", answer=f"#### {2 * i}") for i in range(40)]
LINES = "".join(json.dumps(row) + "\n" for row in ROWS)


def loaded(path, **changes):
    values = dict(data=(str(path),), tokenizer_size=400, max_rows=0) | changes
    return to_data.load_data(configs.make("laptop", **values)[1], 64)


# ---------- rows ----------

MESSAGES = [dict(role="user", content="2 + 3 ?"), dict(role="assistant", content="5")]
THOUGHT = "<think>\n2, 3\n</think>\n\n5"
UNREAD = "columns that are not read: "


@pytest.mark.parametrize("row, said, remark", [
    (MESSAGES, "5", ""),  # a line that is a list, as nanochat has them
    (dict(conversation=MESSAGES), "5", ""),
    (dict(problem="2 + 3 ?", solution="5", answer="V"), "5", f"{UNREAD}answer"),
    (dict(question="2 + 3 ?", solution="5"), "5", ""),
    (dict(query="2 + 3 ?", response="5"), "5", ""),
    (dict(input="2 + 3 ?", output="5", id="a", n=3), "5", f"{UNREAD}id"),
    (dict(prompt=MESSAGES[:1], completion="5"), "5", ""),
    (dict(question="2 + 3 ?", reasoning="2, 3", answer="5"), THOUGHT, "reasoning is read as"),
    (dict(prompt="2 + 3 ?", rationale="2, 3", completion="5"), THOUGHT, "rationale is read as"),
    (dict(messages=MESSAGES, title="A sum"), "5", f"{UNREAD}title"),
    (dict(messages=[MESSAGES[0], MESSAGES[1] | dict(weight=0.5)]), "5", "the weight 0.5 of a turn"),
    (dict(question="2 + 3 ?", answer=r"It is \boxed{5}."), "It is \\boxed{5}.\n\n#### 5", "boxed"),
])  # fmt: skip
def test_a_row_is_read_or_it_is_told(row, said, remark):
    told = []
    read = forms.read_row(row, told.append)
    assert forms.turns_of(read) == [ASKED, ("assistant", said)]
    assert remark in "".join(told) and len(told) == bool(remark)


def test_a_file_of_one_line_that_is_a_list_has_one_chat_or_many_rows(tmp_path):
    path, rows = tmp_path / "a.jsonl", [dict(question="2 + 3 ?", answer="5")] * 2
    for line, read in ((MESSAGES, [MESSAGES]), (rows, rows)):
        path.write_text(json.dumps(line))
        assert reading.read_jsonl(str(path)) == read


@pytest.mark.parametrize("row, words", [
    (dict(prompt="2 + 3 ?", chosen="5", rejected="6"), "a pair of answers, chosen and rejected"),
    (dict(chosen=MESSAGES, rejected=MESSAGES), "a pair of answers, chosen and rejected"),
    ([1, 2], "it is a list, no object"),
])  # fmt: skip
def test_a_row_that_is_none_says_what_it_is(row, words):
    with pytest.raises(ValueError, match=words):
        forms.read_row(row)


def test_a_text_beside_half_a_pair_is_a_text():
    assert forms.read_row(dict(text="a", input="b", query=None)) == dict(text="a")


@pytest.mark.parametrize("mark", [dict(train=False), dict(weight=0), dict(weight=0.0)])
def test_turns_that_are_marked_so_are_not_learned(mark):
    row = forms.read_row(dict(messages=[*MESSAGES, MESSAGES[0], MESSAGES[1] | mark]))
    learned = [text for text, said in tokenizing.segments(row) if said and text]
    assert learned == ["5"]


@pytest.mark.parametrize("right, said, same", [
    ("1,000", "1000", True), ("1000", "1,000.", True), ("0.5", "1/2", True), ("5", "5.0", True),
    ("5", r"so \boxed{5}", True), (r"\boxed{x}", "x", True), ("5", "$5$", True), ("-5", "5", False),
    ("5", "6", False), ("1,00", "100", False), ("1/0", "1/0", True), ("x", "X", False),
    ("5", None, False), ("5", "5" * 50, False),
])  # fmt: skip
def test_answers_that_are_numbers_are_compared_as_numbers(right, said, same):
    assert (said == answers.Answer(right)) is same and hash(answers.Answer(right)) == hash(right)


# ---------- files ----------


def write_arrow(path, form=pa.ipc.new_stream):
    table = pa.Table.from_pylist(ROWS)
    with form(str(path), table.schema) as writer:
        writer.write_table(table, 7)


WRITERS = {
    "a.jsonl.xz": lambda path: path.write_bytes(lzma.compress(LINES.encode())),
    "a.jsonl.bz2": lambda path: path.write_bytes(bz2.compress(LINES.encode())),
    "a.jsonl.zst": lambda path: path.write_bytes(pa.compress(LINES.encode(), "zstd", asbytes=True)),
    "a.arrow": write_arrow,
    "b.arrow": lambda path: write_arrow(path, pa.ipc.new_file),
    "a.parquet": lambda path: pa.parquet.write_table(pa.Table.from_pylist(ROWS), path,
                                                     row_group_size=7),
}  # fmt: skip


@pytest.mark.parametrize("name", WRITERS)
def test_a_file_that_datasets_reads_is_read(name, tmp_path):
    WRITERS[name](tmp_path / name)
    rows = reading.read_file(str(tmp_path / name), [])
    assert list(rows) == ROWS
    (tmp_path / "b.jsonl").write_text(LINES)  # beside others, whose rows are lists
    both, _ = files.read_files([str(tmp_path / name), str(tmp_path / "b.jsonl")], [])
    some = (
        both.select([0, 6, 7, 41]) if hasattr(both, "select") else [both[i] for i in (0, 6, 7, 41)]
    )
    assert list(some) == [ROWS[i] for i in (0, 6, 7, 1)] and len(both) == 80


HEAD = "question{}answer\n"


@pytest.mark.parametrize("name, content, n, words", [
    # a quotation that opens in one line and ends in a later one
    ("a.tsv", '"Now\t1\nb\t2\nc"\t3\nd\t4\n', 4, "quotes from line 2 on are read as characters"),
    ("a.csv", '"Now,1\nb,2\nc",3\nd,4\n', 2, "a quote opens in line 2 and ends in a later one"),
    ("a.tsv", '"He" said\t1\nb\t2\n', 2, "quotes in it are read as characters (line 2"),
    ("a.csv", '"He said \\"so, then\\"",1\nb,2\n', 2, ""),
    ("a.tsv", '"two\nlines"\t1\n"b ""c"""\t2\n', 2, ""),
])  # fmt: skip
def test_no_row_of_a_table_is_swallowed(name, content, n, words, tmp_path):
    path, notes = tmp_path / name, []
    path.write_text(HEAD.format("\t" if name.endswith("tsv") else ",") + content)
    rows = reading.read_file(str(path), notes)
    assert len(rows) == n and words in "".join(notes) and bool(notes) == bool(words)


def test_a_quote_that_nothing_ends_is_told_with_its_line(tmp_path):
    (tmp_path / "a.csv").write_text('question,answer\na,b\n"c" d,e\nf,g,h\n')
    with pytest.raises(ValueError, match="a.csv is no table: line 3: .*double them within"):
        reading.read_file(str(tmp_path / "a.csv"), [])


# ---------- splits ----------


@pytest.mark.parametrize("names", [
    ("train.jsonl", "validation.jsonl", "test.jsonl"),
    ("data/train-0.jsonl", "data/dev-0.jsonl", "data/eval-0.jsonl"),
    ("train/a.jsonl", "val/a.jsonl", "test/a.jsonl"),
    ("rows.jsonl", "my_valid.jsonl", "testing.jsonl"),
])  # fmt: skip
@pytest.mark.parametrize("pattern", ["", "**/*.jsonl"])
def test_a_split_is_a_split(names, pattern, tmp_path):
    for name, part in zip(names, (ROWS[:20], ROWS[20:30], ROWS[30:])):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in part))
    data = loaded(tmp_path / pattern)
    assert (data.facts["train_rows"], data.facts["val_rows"]) == (20, 10)
    notes = "".join(data.facts["notes"])
    assert "1 file of its test split not read" in notes and "which is held out" in notes
    held_out = loaded(tmp_path / names[0], val_data=str(tmp_path))
    assert held_out.facts["val_rows"] == 10
    with pytest.raises(ValueError, match="has no split x; it has "):
        files.rows_of(str(tmp_path), "x", [])


def test_files_of_one_split_alone_are_all_there_is(tmp_path):
    for name in ("test_1.jsonl", "test_2.jsonl"):
        (tmp_path / name).write_text(LINES)
    assert loaded(tmp_path).facts["train_rows"] + loaded(tmp_path).facts["val_rows"] == 80
    (tmp_path / "dev.jsonl").write_text(LINES)
    with pytest.raises(ValueError, match="has no split train; it has validation, test"):
        loaded(tmp_path)


def test_a_folder_that_datasets_has_saved_is_read(tmp_path):
    import datasets

    parts = dict(train=datasets.Dataset.from_list(ROWS[:30]), test=datasets.Dataset.from_list(ROWS))
    datasets.DatasetDict(parts).save_to_disk(tmp_path / "all")
    parts["train"].save_to_disk(tmp_path / "one")
    for name in ("all", "one"):
        facts = loaded(tmp_path / name).facts
        assert facts["train_rows"] + facts["val_rows"] == 30 and not facts["unusable_rows"]


def test_a_pattern_follows_no_link_in_a_ring(tmp_path):
    (tmp_path / "a.jsonl").write_text(LINES)
    for name in "xy":
        (tmp_path / name).symlink_to(tmp_path)
    assert files.files_of(f"{tmp_path}/**/*.jsonl") == [f"{tmp_path}/a.jsonl"]


# ---------- what is measured ----------


def test_accuracy_is_told_by_source_where_there_are_several(tiny, tmp_path):
    for name, answer in (("a", "1"), ("b", "2")):
        rows = [dict(question=f"{name} {i}", answer=f"#### {answer}") for i in range(30)]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    paths = tuple(str(tmp_path / f"{name}.jsonl") for name in "ab")
    data, told = loaded(paths[0], data=paths), [*map(console.without_home, paths)]
    assert data.problem_sources == [told[i % 2] for i in range(4)]
    record = dict(answers=[1, 0, 1, 1], val_loss=1.0)
    data.complete(record)
    assert record["accuracy_by_source"] == dict(zip(told, (1.0, 0.5)))
    log = running.train(*tiny(data=paths, steps=2, warmup_steps=0, max_rows=0)).log
    assert log[-1]["accuracy_by_source"].keys() == set(told)


@pytest.mark.parametrize("shares, said", [
    ([0.0, 1.0, 1.0], "0.667 (0.000 to 1.000)"), ([0.5, 0.6, 0.7], "0.600 (0.352 to 0.848)"),
    ([1.0], "1.000"),
])  # fmt: skip
def test_an_interval_of_shares_stays_within_them(shares, said):
    text = results.with_interval("accuracy", *results.interval(shares))
    assert text == said.replace(" (0.352 to 0.848)", " ± 0.248")
    assert results.with_interval("val_loss", 1.0, 2.0) == "1 ± 2"


def test_a_run_whose_minutes_are_over_is_done_and_may_go_on(tiny):
    m, t = tiny(minutes=1e-6, eval_every=99)
    first = running.train(m, t)
    assert first.finished and results.result(first.dir)["train_loss_eval"]  # a grid's table has it
    last = running.train(m, t, resume=True).log[-1]  # its minutes count anew
    assert last["step"] == 2 and last["val_loss"] != first.log[-1]["val_loss"]
    assert last["lr"] == md.lr_at(1, t) and last["ended_early"]
    end = running.train(m, dataclasses.replace(t, minutes=0.0), resume=True).log
    assert end[-1]["step"] == t.steps and not any("ended_early" in record for record in end)


def test_a_sample_takes_another_number_of_loops(finished, capsys, monkeypatch):
    seen = []
    monkeypatch.setattr(sampling, "answer_texts", lambda model, *how, **more: [
        seen.append(model.config.n_loops) or "yes"])  # fmt: skip
    for flags, loops in (([], 1), (["--n_loops", "3"], 3)):
        assert train.main(["--sample", finished, "--prompt", "Go", *flags]) == 0
        assert seen.pop() == loops
    assert train.main(["--sample", finished, "--prompt", "Go", "--n_loops", "2", "3"]) == 2


def test_characters_that_a_tokenizer_does_not_know_are_told(tmp_path, tiny, capsys):
    (tmp_path / "a.jsonl").write_text(LINES)
    (tmp_path / "b.jsonl").write_text(LINES.replace("What is 3 ", "What ß "))
    known = loaded(tmp_path / "a.jsonl", tokenizer="characters").tokenizer
    assert tokenizing.unknown_in(known, "What ß") == "ß" and not tokenizing.unknown_in(known, "at")
    t = configs.make("laptop", data=(str(tmp_path / "b.jsonl"),), max_rows=0)[1]
    (note,) = [n for n in to_data.load_data(t, 64, known).facts["notes"] if "not know" in n]
    assert note.startswith("1 row of ") and note.endswith(
        "have what the tokenizer does not know, as 'ß'"
    )
    run = running.train(*tiny(data=(str(tmp_path / "a.jsonl"),), tokenizer="characters"))
    assert train.main(["--sample", run.dir, "--prompt", "What ß"]) == 0
    assert "the tokenizer does not know 'ß' in the prompt" in capsys.readouterr().err
