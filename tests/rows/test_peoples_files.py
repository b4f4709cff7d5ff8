"""Files as people have them, kinds that public reports describe: what is read of each, and what is
told."""

import bz2
import dataclasses
import gzip
import json
import lzma

import pyarrow as pa
import pyarrow.parquet
import pytest

import minidepth as md
import train
from minidepth_lab.base import configs
from minidepth_lab.keep import running
from minidepth_lab.measure import results, sampling, score
from minidepth_lab.rows import answers, files, reading, sources, to_data, tokenizing
from minidepth_lab.studies import llmini

ROWS = [dict(question=f"What is {i} plus {i} ?", answer=f"#### {2 * i}") for i in range(40)]
LINES = "".join(json.dumps(row) + "\n" for row in ROWS)


def loaded(path, load=to_data.load_data, **changes):
    values = dict(data=(str(path),), tokenizer_size=400, max_rows=0) | changes
    return load(configs.make("laptop", **values)[1], 64)


def told(data, words):
    """The one note that has these words."""
    (note,) = [note for note in data.facts["notes"] if words in note]
    return note


# ---------- kinds of files ----------


def test_files_of_every_name_give_the_same_rows(tmp_path):
    rows = [dict(question=f"q {i}, or so", answer=f'"#### {i}"') for i in range(30)]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    quoted = [f'"{r["question"]}","""{r["answer"][1:-1]}"""' for r in rows]
    for name, content in {
        "A.JSONL": lines, "b.ndjson": lines, "c.jsonl.gz": lines, "d.JSON.GZ": json.dumps(rows),
        "e.csv": "\n".join(["\ufeff Question ,answer", *quoted]),
        "f.tsv": "\n".join(["question\tanswer", *(line.replace('","', '"\t"') for line in quoted)]),
        "g.csv": "\r\n".join(["question;answer", *(line.replace('","', '";"') for line in quoted)]),
        "h.json": json.dumps(dict(data=rows, version=1)),
        "i.jsonl": json.dumps(rows), "j.jsonl": json.dumps(rows, indent=1),  # a .json by that name
    }.items():  # fmt: skip
        packed = gzip.compress(content.encode()) if name.lower().endswith(".gz") else None
        (tmp_path / name).write_bytes(packed or content.encode())
        assert reading.read_file(str(tmp_path / name), []) == rows, name
        assert not sources.away(configs.make("laptop", data=(str(tmp_path / name),))[1])


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
    ("a.csv", '"Now,1\nb,2\nc",3\nd,4\n', 2, "ends in a later one: 2 rows in 5 lines"),
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


def test_lines_of_a_table_are_read_whole(tmp_path):
    """Blank ones are none, and columns without a name may be several."""
    path = tmp_path / "a.csv"
    path.write_text('\nText,,\n\n"The cat, which\nis grey",,\n,,\nThe dog,,\n\n')
    rows = reading.read_file(str(path), [])
    assert [row["text"] for row in rows] == ["The cat, which\nis grey", "The dog"]


def test_news_in_its_authors_form_is_read_without_a_line_of_names(tmp_path):
    folder = tmp_path / "AG-News"
    folder.mkdir()
    lines = [f'"{i % 4 + 1}","A title, of a kind {i}","some words"' for i in range(30)]
    path = folder / "test.csv"
    path.write_text("\n".join(lines))
    assert reading.read_file(str(path), []) == [
        dict(text=f"A title, of a kind {i} some words") for i in range(30)
    ]
    facts = loaded(str(path), load=llmini.load_data, loss_on="all").facts
    assert facts["train_rows"] + facts["val_rows"] == 30
    path.write_text("\n".join(["class,title,text", *lines]))  # with names it is any table
    assert reading.read_file(str(path), [])[0]["title"] == "A title, of a kind 0"
    for place, content in (  # no class of AG News, no three cells, no name that says so
        (path, "7,a,b\n7,a,b\n"), (path, "1,a\n1,a\n"), (tmp_path / "test.csv", "\n".join(lines))
    ):  # fmt: skip
        place.write_text(content)
        with pytest.raises(ValueError, match="its first line has no name that is known"):
            loaded(str(place))


def test_each_file_of_a_folder_of_texts_is_a_row(tmp_path):
    for i in range(4):
        (tmp_path / f"{i}.txt").write_text(f"story {i}\n\nits second paragraph")
    rows, one_text = files.read_files(files.files_of(str(tmp_path)), [])
    assert [row["text"] for row in rows][1] == "story 1\n\nits second paragraph\n" and not one_text
    assert len(files.read_files(files.files_of(str(tmp_path / "[01].*")), [])[0]) == 2


def test_files_of_a_folder_that_are_left_out_are_told(tmp_path):
    """A copy in a hidden folder was read as data; nothing was said of the others."""
    folder = tmp_path / "rows"
    for name in ("a.jsonl", "sub/b.csv", ".hidden.jsonl", ".copies/a.jsonl", "sub/.x/deep/a.jsonl",
                 "c.jsonl.zip", "d.md", "sub/E.MD", "LICENSE"):  # fmt: skip
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"text\n{name}\n")
    (folder / "gone.jsonl").symlink_to(tmp_path / "gone.jsonl")
    (tmp_path / "away").mkdir()
    (folder / "linked").symlink_to(tmp_path / "away")
    (folder / "a.jsonl").write_text(LINES)
    assert files.files_of(str(folder)) == [str(folder / "a.jsonl"), str(folder / "sub/b.csv")]
    kinds = {"hidden (3)", ".md (2)", ".zip (1)", "without an ending (1)", "no regular file (2)"}
    for source, given in ((folder, dict()), (folder / "a.jsonl", dict(val_data=str(folder)))):
        found = told(loaded(str(source), loss_on="all", **given), f"9 files of {folder} left out: ")
        assert set(found.split(": ")[1].split(", ")) == kinds
    # a pattern fits no hidden ones, and the folder sub, which is not looked into
    (note,) = files.left_out(str(folder / "*"))
    for part in ("6 files of ", ".zip (1)", ".md (1)", "without an ending (1)", "regular file (3)"):
        assert part in note
    (note,) = files.left_out(str(folder / "**"))  # fits the folders on its way as well
    assert "no regular file (1)" in note and ".md (2)" in note
    (folder / "z.jsonl").mkdir()
    assert files.files_of(str(folder / "*.jsonl")) == [str(folder / "a.jsonl")]
    assert files.files_of(str(folder / ".copies")) == [str(folder / ".copies" / "a.jsonl")]


@pytest.mark.parametrize("content, parts, one_text", [
    ("one\ntwo\n\n \nthree", ["one\ntwo\n", "three\n"], True),
    ("one\ntwo\nthree", ["one\n", "two\n", "three\n"], True),
    ("one\n\nits end\n<|endoftext|>\ntwo\n<|endoftext|>\n", ["one\n\nits end\n", "two\n"], False),
])  # fmt: skip
def test_a_text_is_its_paragraphs_or_else_its_lines_or_its_documents(
    content, parts, one_text, tmp_path
):
    (tmp_path / "a.txt").write_text(content)
    rows = [dict(text=part) for part in parts]
    assert files.read_files([str(tmp_path / "a.txt")], []) == (rows, one_text)


def test_two_files_put_together_with_their_marks_are_read(tmp_path):
    lines = LINES.split("\n")
    for between in ("\n\ufeff", "\ufeff"):
        (tmp_path / "both.jsonl").write_text("\ufeff" + lines[0] + between + lines[1])
        assert reading.read_file(str(tmp_path / "both.jsonl"), []) == ROWS[:2]


def test_questions_of_squad_are_texts_and_those_without_an_answer_are_told(tmp_path):
    """As a test set has them; those of SQuAD's second version may have none."""
    asked = [dict(question=f"What is {i}?", answers=[dict(text=f"it is {i}")]) for i in range(20)]
    asked += [dict(question="Who?"), dict(question="How?", answers=None, is_impossible=True)]
    article = dict(title="x", paragraphs=[dict(context="All are numbers.", qas=asked)])
    path = tmp_path / "squad.json"
    path.write_text(json.dumps(dict(data=[article])))
    first, *_ = reading.read_file(str(path), [])
    assert score.as_training_text(first) == {
        "text": "All are numbers.\nQuestion: What is 0?\nAnswer: it is 0"
    }
    data = loaded(str(path), load=llmini.load_data, loss_on="all")
    assert data.facts["train_rows"] + data.facts["val_rows"] == 20
    assert "row 21: answer is null" in told(data, f"2 of 22 rows of {path} left out")


def test_paragraphs_of_other_rows_are_left_as_they_are(tmp_path):
    odd = [["a", "b"], "a", [], {}, None, [dict(context="a")], [dict(context="a", qas="b")]]
    odd.append([dict(context="a", qas=[]), "b"])
    rows = [dict(text=f"a text {i}", paragraphs=each) for i, each in enumerate(odd)]
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    assert reading.read_file(str(tmp_path / "rows.json"), []) == rows


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


@pytest.mark.parametrize("right, said, same", [
    ("1,000", "1000", True), ("1000", "1,000.", True), ("0.5", "1/2", True), ("5", "5.0", True),
    ("5", r"so \boxed{5}", True), (r"\boxed{x}", "x", True), ("5", "$5$", True), ("-5", "5", False),
    ("5", "6", False), ("1,00", "100", False), ("1/0", "1/0", True), ("x", "X", False),
    ("5", None, False), ("5", "5" * 50, False),
])  # fmt: skip
def test_answers_that_are_numbers_are_compared_as_numbers(right, said, same):
    assert (said == answers.Answer(right)) is same and hash(answers.Answer(right)) == hash(right)


@pytest.mark.parametrize("shares, said", [
    ([0.0, 1.0, 1.0], "0.667 (0.000 to 1.000)"), ([0.5, 0.6, 0.7], "0.600 ± 0.248"),
    ([1.0], "1.000"),
])  # fmt: skip
def test_an_interval_of_shares_stays_within_them(shares, said):
    assert results.with_interval("accuracy", *results.interval(shares)) == said
    assert results.with_interval("val_loss", 1.0, 2.0) == "1 ± 2"


def test_a_run_whose_minutes_are_over_is_done_and_may_go_on(tiny, data):
    m, t = tiny(minutes=1e-6, eval_every=99, eval_problems=0, watch_problems=0)
    first = running.train(m, t, data)
    assert first.finished and results.result(first.dir)["train_loss_eval"]  # a grid's table has it
    last = running.train(m, t, data, resume=True).log[-1]  # its minutes count anew
    assert last["step"] == 2 and last["val_loss"] != first.log[-1]["val_loss"]
    assert last["lr"] == md.lr_at(1, t) and last["ended_early"]
    end = running.train(m, dataclasses.replace(t, minutes=0.0), data, resume=True).log
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
    m, t = tiny(data=(str(tmp_path / "a.jsonl"),), tokenizer="characters", eval_problems=0)
    run = running.train(m, dataclasses.replace(t, steps=1, warmup_steps=0))
    known = run.tokenizer
    assert tokenizing.unknown_in(known, "What ß") == "ß" and not tokenizing.unknown_in(known, "at")
    other = dataclasses.replace(t, data=(str(tmp_path / "b.jsonl"),))
    note = told(to_data.load_data(other, 64, known), "not know")
    assert note.startswith("1 row of ") and note.endswith("as 'ß'")
    assert train.main(["--sample", run.dir, "--prompt", "What ß"]) == 0
    assert "the tokenizer does not know 'ß' in the prompt" in capsys.readouterr().err
