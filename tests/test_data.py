"""The generated problems, files, the hub, the tokenizer and the blocks."""

import hashlib
import json
import os
import random
import re
import socket
import subprocess
import sys
import time
from collections import Counter

import pytest
import torch
from conftest import SHARED

import minidepth as md


def text_of(row):
    return row["messages"][1]["content"], row["messages"][2]["content"]


def solve(question):
    """The answer of an embedded problem, worked out from its words alone."""
    if question.startswith("From"):
        return str(sum(int(d) for d in re.findall(r"(?:From|add) (\d+)", question)) % 10)
    pairs = dict(re.findall(r"(\w) (\w)(?=[,.])", question))
    if question.startswith("Follow"):
        hops, letter = re.search(r"Go (\d+) from (\w)", question).groups()
        for _ in range(int(hops)):
            letter = pairs[letter]
        return letter
    assert question.startswith("Sort")
    line = [(set(pairs) - set(pairs.values())).pop()]
    while line[-1] in pairs:
        line.append(pairs[line[-1]])
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
    assert Counter((r["family"], r["steps"]) for r in rows) == {
        (f, s): 80 for f in ("chain", "lookup", "order") for s in (1, 2, 3, 4, 5)
    }


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


def test_training_and_held_out_problems_are_disjoint():
    train = {text_of(row)[0] for row in md.embedded_rows(20_000)}
    held_out = {text_of(row)[0] for row in md.embedded_rows(600, True)}
    assert len(held_out) > 300 and not train & held_out


def test_the_same_seed_gives_the_same_bytes():
    """The digest was made once; another platform or Python version must give it too."""
    content = json.dumps([md.embedded_rows(100, False), md.embedded_rows(50, True, (9,), 7)])
    assert hashlib.sha256(content.encode()).hexdigest() == DIGEST
    assert md.embedded_rows(20, seed=1) != md.embedded_rows(20, seed=0)


DIGEST = "63b79aa632d4173b88a53fa1f7930e2ef2da482cd220295abb24e3c129a5d50c"


@pytest.mark.parametrize("steps", [(1,), (9,)])
def test_every_step_count_can_be_generated(steps):
    for held_out in (False, True):
        assert {row["steps"] for row in md.embedded_rows(60, held_out, steps)} == set(steps)


# --- files


def config(**changes):
    return md.configs("laptop", **dict(max_rows=0, tokenizer="embedded") | changes)[1]


ROWS = [dict(question=f"What is {i} plus {i}?", answer=f"It is #### {2 * i}") for i in range(40)]


def test_every_kind_of_file_gives_the_same_rows(tmp_path, jsonl):
    import pyarrow
    import pyarrow.parquet

    (tmp_path / "rows.json").write_text(json.dumps(ROWS))
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(ROWS), tmp_path / "rows.parquet")
    (tmp_path / "bom.jsonl").write_text("\ufeff" + "\n\n".join(map(json.dumps, ROWS)))
    for path in (jsonl(ROWS), *(tmp_path / f"rows.{e}" for e in ("json", "parquet"))):
        assert md.read_file(str(path)) == ROWS
    assert md.read_file(str(tmp_path / "bom.jsonl")) == ROWS


def test_text_files_give_paragraphs_or_else_lines(tmp_path):
    (tmp_path / "a.txt").write_text("one\ntwo\n\n \nthree")
    (tmp_path / "b.txt").write_text("one\ntwo\nthree")
    assert [r["text"] for r in md.read_file(str(tmp_path / "a.txt"))] == ["one\ntwo\n", "three\n"]
    assert [r["text"] for r in md.read_file(str(tmp_path / "b.txt"))] == [
        "one\n",
        "two\n",
        "three\n",
    ]


def test_all_kinds_of_rows_mix_and_unusable_ones_are_counted(jsonl):
    chat = [dict(role="user", content="Say a word"), dict(role="assistant", content="word")]
    rows = [dict(messages=chat, other=1), dict(text="some plain text"), *ROWS]
    rows += [dict(messages=[dict(role="user")]), dict(title="x"), 7, dict(question="no answer")]
    data = md.load_data(config(data=(jsonl(rows), jsonl(ROWS, "b.jsonl")), loss_on="all"), 16)
    assert data.facts["unusable_rows"] == 4
    assert data.facts["train_rows"] + data.facts["val_rows"] == 82
    assert data.facts["val_rows"] == 5 - data.facts["unusable_rows"] + sum(
        not md.turns_of(r) for r in md.read_source(jsonl(rows), config())[0]
    )


def test_columns_that_other_rows_fill_do_not_hide_a_row(tmp_path):
    """A columnar file gives each row every column, None where it has nothing."""
    import pyarrow
    import pyarrow.parquet

    chat = [dict(role="user", content="hello"), dict(role="assistant", content="there")]
    rows = [dict(messages=chat), dict(question="q", answer="a"), dict(text="plain")] * 20
    rows = [dict(messages=None, question=None, answer=None, text=None) | row for row in rows]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "mixed.parquet")
    path = str(tmp_path / "mixed.parquet")
    data = md.load_data(config(data=(path,), loss_on="all"), 16)
    assert data.facts["unusable_rows"] == 0 and data.tokenizer.chat_template
    only = [dict(row, messages=None, question=None, answer=None, text="x y z") for row in rows]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(only), path)
    assert not md.load_data(config(data=(path,), loss_on="all"), 16).tokenizer.chat_template


def test_max_rows_limits_each_source(jsonl):
    for most, n in ((10, 10), (0, 40), (100, 40)):
        train, held_out = md.read_source(jsonl(ROWS), config(max_rows=most))
        assert len(train) + len(held_out) == n and len(held_out) == -(-n // 20)


def test_the_held_out_rows_are_drawn_from_all_over_the_file(jsonl):
    train, held_out = md.read_source(jsonl(ROWS), config(val_fraction=0.25))
    places = [ROWS.index(row) for row in held_out]
    assert len(places) == 10 and max(places) > 20 and places != sorted(places)
    assert sorted(map(ROWS.index, train + held_out)) == list(range(40))


@pytest.mark.parametrize(
    "name, content, words",
    [
        ("a.jsonl", '{"text": "a"}\n\n{"text": \n', "line 3 is not JSON"),
        ("a.json", '[{"text": "a"},\n{"text" 3}]', "line 2 is not JSON"),
        ("a.json", '{"text": "a"}', "has no list of rows"),
        ("a.jsonl", "", "has 0 rows; it needs at least 2"),
        ("a.txt", "one line", "has 1 rows; it needs at least 2"),
        ("a.parquet", "no parquet", "cannot be read"),
        ("a.csv", "a,b", "is not a file that ends in one of .jsonl"),
        ("a.jsonl", '{"title": 1}\n{"body": 2}', "found body, title"),
        ("a.jsonl", "1\n2", "found no columns"),
        ("a.jsonl", '{"text": "a"}\n{"text": "b"}', "do not fill a block of 80"),
        ("a.txt", b"\xff\xfe\x00a", "cannot be read: 'utf-8'"),
    ],
)
def test_data_that_cannot_be_used_says_why(tmp_path, name, content, words):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ValueError, match=re.escape(words)) as error:
        md.load_data(config(data=(str(path),), packing="pack"), 80)
    assert name in str(error.value) and "\n" not in str(error.value)


def test_a_missing_file_and_no_target_to_learn_from(jsonl):
    with pytest.raises(ValueError, match="nowhere.jsonl"):
        md.load_data(config(data=("nowhere.jsonl",)))
    rows = [dict(messages=[dict(role="user", content=f"a user speaks {i}")]) for i in range(50)]
    with pytest.raises(ValueError, match="to learn from"):
        md.load_data(config(data=(jsonl(rows),), loss_on="assistant"), 8)


@pytest.mark.skipif(not (SHARED / "data/gsm8k").is_dir(), reason="the GSM8K files are not here")
def test_gsm8k_loads_with_one_setting():
    data = md.load_data(config(data=(str(SHARED / "data/gsm8k/train.jsonl"),), max_rows=400), 128)
    assert data.facts["unusable_rows"] == 0 and len(data.problems) == 20
    assert all(re.fullmatch(r"-?[\d,.]+", p["answer"]) for p in data.problems)


# --- the hub, which cannot be reached here


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    import datasets.config
    import huggingface_hub.constants

    for name in ("HF_HUB_CACHE", "HF_HOME"):
        monkeypatch.setattr(huggingface_hub.constants, name, str(tmp_path / "hub"), raising=False)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "datasets")


@pytest.mark.parametrize(
    "call, instead",
    [
        (lambda: md.load_tokenizer("Qwen/Qwen2.5-0.5B"), "--tokenizer DIR"),
        (lambda: md.read_source("wop/XXXXXL-chain-of-thought", config()), "--data FILE"),
        (lambda: md.load_tokenizer("no such/id/at all"), "--tokenizer DIR"),
    ],
)
def test_what_is_not_cached_fails_quickly_with_what_to_do(call, instead, empty_cache, monkeypatch):
    def unreachable(address, timeout):
        assert address == ("huggingface.co", 443) and timeout <= 5
        raise TimeoutError("timed out")

    monkeypatch.setattr(socket, "create_connection", unreachable)
    began = time.perf_counter()
    with pytest.raises(ValueError) as error:
        call()
    assert instead in str(error.value) and "timed out" in str(error.value)
    assert "\n" not in str(error.value) and time.perf_counter() - began < 5


def test_a_real_failure_to_reach_the_hub_is_quick(empty_cache):
    """No fake: where the tests have no network this is what a user gets."""
    try:
        socket.create_connection(("huggingface.co", 443), timeout=3).close()
    except OSError:
        began = time.perf_counter()
        with pytest.raises(ValueError, match="Internet on"):
            md.load_tokenizer("minidepth/there-is-no-such-tokenizer")
        assert time.perf_counter() - began < 5
    else:
        pytest.skip("the hub can be reached")


def test_what_is_cached_needs_no_network(monkeypatch):
    import datasets.config
    import huggingface_hub.constants as hub

    def no_network(*a, **k):
        raise AssertionError("the network was used")

    def load():
        assert hub.HF_HUB_OFFLINE and datasets.config.HF_HUB_OFFLINE
        return "cached"

    monkeypatch.setattr(socket, "create_connection", no_network)
    before = hub.HF_HUB_OFFLINE, datasets.config.HF_HUB_OFFLINE
    assert md.from_hub("a/b", "data", "x", load) == "cached"
    assert (hub.HF_HUB_OFFLINE, datasets.config.HF_HUB_OFFLINE) == before


def test_the_users_own_offline_switch_is_obeyed(empty_cache, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr(socket, "create_connection", lambda *a, **k: pytest.fail("network used"))
    with pytest.raises(ValueError, match="HF_HUB_OFFLINE is set"):
        md.load_tokenizer("someone/words")


def test_what_is_not_cached_is_fetched_where_the_hub_answers(monkeypatch):
    import huggingface_hub.constants as hub

    calls = []

    def load():
        calls.append(hub.HF_HUB_OFFLINE)
        if hub.HF_HUB_OFFLINE:
            raise OSError("not cached")
        return "fetched"

    monkeypatch.setattr(hub, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", False)
    monkeypatch.setattr(socket, "create_connection", lambda address, timeout: socket.socket())
    assert md.from_hub("a/b", "data", "x", load) == "fetched" and calls == [True, False]


NO_NETWORK = """
import socket
def used(*a, **k): raise AssertionError("the network was used")
socket.socket.connect = socket.create_connection = socket.getaddrinfo = used
import minidepth as md
print(len(md.load_tokenizer("someone/words")))
train, held_out = md.read_source("someone/rows", md.configs("laptop")[1])
print(len(train) + len(held_out), sorted(train[0]))
"""


def test_a_cached_tokenizer_and_data_set_load_without_the_network(data, tmp_path, jsonl):
    """In caches laid out as the two libraries do, under hub ids, in a process of its own."""
    import datasets

    repo = tmp_path / "hub" / "models--someone--words"
    data.tokenizer.save_pretrained(repo / "snapshots" / "abc")
    (repo / "snapshots" / "abc" / "config.json").write_text('{"model_type": "gpt2"}')
    (repo / "refs").mkdir()
    (repo / "refs" / "main").write_text("abc")
    made = tmp_path / "made"
    datasets.load_dataset("json", data_files=jsonl(ROWS), cache_dir=str(made))
    cached = next((made / "json").glob("default*")).rename(tmp_path / "default")
    (tmp_path / "datasets").mkdir()
    (tmp_path / "datasets" / "someone___rows").mkdir()
    cached = cached.rename(tmp_path / "datasets" / "someone___rows" / "default")
    for path in [*cached.rglob("json-train.arrow")]:
        path.rename(path.with_name("rows-train.arrow"))
    caches = dict(HF_HUB_CACHE=str(tmp_path / "hub"), HF_DATASETS_CACHE=str(tmp_path / "datasets"))
    done = subprocess.run(
        [sys.executable, "-c", NO_NETWORK], env=os.environ | caches, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:2] == [f"{len(data.tokenizer)}", "40 ['answer', 'question']"]


# --- tokens and blocks


def test_the_embedded_tokenizer_gives_text_back(data):
    for text in ("Follow a b, c d. 3 + 4 = 7", "Ünïcode → 漢字 🙂\n\ttabs", "12 + 3456"):
        ids = data.tokenizer(text, add_special_tokens=False).input_ids
        assert data.tokenizer.decode(ids) == text
    assert data.tokenizer.convert_tokens_to_ids(["<|im_start|>", "<think>"]) == [1, 3]
    assert len(data.tokenizer(" 7 8 9").input_ids) == 3  # a digit is one token


def test_a_tokenizer_has_at_most_the_size_asked_for():
    assert len(md.load_data(config(max_rows=300, tokenizer_size=300), 100).tokenizer) == 300


def test_a_broken_tokenizer_folder_says_so(tmp_path):
    with pytest.raises(ValueError, match="tokenizer folder .* cannot be read"):
        md.load_tokenizer(str(tmp_path))


def test_loss_falls_on_the_assistant_alone_or_on_all(data):
    tokenizer, row = data.tokenizer, md.embedded_rows(1)[0]
    parts = md.segments(row, tokenizer)
    assert "".join(text for text, _ in parts) == (
        f"<|im_start|>system\nThink step by step.<|im_end|>\n<|im_start|>user\n{text_of(row)[0]}"
        f"<|im_end|>\n<|im_start|>assistant\n{text_of(row)[1]}<|im_end|>\n"
    )
    (ids, learn), (_, learn_all) = (
        md.encode([parts], tokenizer, on)[0] for on in ("assistant", "all")
    )
    said = tokenizer.decode([i for i, s in zip(ids, learn) if s])
    assert said == text_of(row)[1] + "<|im_end|>" and all(learn_all)
    plain = md.segments(dict(text="plain"), tokenizer)
    assert plain == [("plain<|endoftext|>", True)]


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
    assert tokens.dtype == targets.dtype == torch.int32


def test_a_prompt_is_the_start_of_what_was_trained_on(data):
    for p in data.problems[:30]:
        row = dict(messages=[*p["messages"], dict(role="assistant", content=p["solution"])])
        parts = md.segments(row, data.tokenizer)
        ids = md.encode([parts], data.tokenizer)[0][0]
        prompt = md.prompt_ids(data.tokenizer, p["messages"])
        assert ids[: len(prompt)] == prompt
        template = data.tokenizer.apply_chat_template(
            p["messages"], add_generation_prompt=True, tokenize=False
        )
        assert data.tokenizer(template).input_ids == list(prompt)


def test_held_out_problems_are_checkable(data):
    assert len(data.problems) == 600
    p = data.problems[1]
    assert [m["role"] for m in p["messages"]] == ["system", "user"]
    assert p["answer"] == solve(p["messages"][1]["content"]) and p["family"] == "lookup"
    long = dict(question="q", answer="<think>x</think> " + "long " * 20)
    for row in (dict(text="#### 3"), dict(question="q", answer="no mark"), long):
        assert md.problem_of(row) is None
    assert md.final_answer("a #### b </think> #### 12 ") == "12"


def test_the_split_does_not_depend_on_the_seed(jsonl):
    path = jsonl(ROWS)
    a, b = (md.load_data(config(data=(path,), seed=s, packing="pad"), 40) for s in (0, 1))
    assert torch.equal(a.val[0], b.val[0]) and a.problems == b.problems
    assert len(a.problems) == 2


def test_each_epoch_takes_every_block_once_in_an_order_of_its_own():
    rows = torch.cat([md.batch_rows(step, 6, 21, 3) for step in range(7)])
    first, second = rows[:21].tolist(), rows[21:].tolist()
    assert sorted(first) == sorted(second) == list(range(21)) and first != second
    assert not torch.equal(md.batch_rows(0, 6, 21, 4), rows[:6])
    torch.manual_seed(5)
    assert torch.equal(md.batch_rows(3, 6, 21, 3), rows[18:24])  # whatever was drawn before
    assert md.batch_rows(0, 10, 3, 0).bincount().tolist() in ([3, 3, 4], [3, 4, 3], [4, 3, 3])


# ---------- embedded problems: families, modulus, direct answers, curriculum ----------


def test_a_curriculum_begins_with_the_shortest_problems_and_ends_with_all(tiny, monkeypatch):
    seen, real = [], md.train_step
    losses = iter([9.0, 0.6, 0.5, 0.4, 0.7, 0.7, 0.6, *[0.1] * 13])

    def see(wrapped, optimizer, scaler, tokens, *others):
        seen.append(tokens)
        real(wrapped, optimizer, scaler, tokens, *others)
        return next(losses), False

    monkeypatch.setattr(md, "train_step", see)
    lookups = dict(problem_families=("lookup",), answer="direct", batch_size=24, max_rows=300)
    m, t = tiny(curriculum=0.5, steps=20, warmup_steps=1, eval_every=5, **lookups)
    run = md.train(m, t)
    asked = [
        {int(text.split("Go ")[1][0]) for text in run.tokenizer.batch_decode(tokens)}
        for tokens in seen
    ]
    # the loss falls below 0.5 in the fourth step, not in the fifth to seventh, then always
    assert asked == [{1}] * 4 + [{1, 2}] * 4 + [{1, 2, 3}] * 12
    assert [row["lengths"] for row in run.log] == [1, 2, 3, 3, 3]
    assert sorted(p["steps"] for p in md.load_data(t, 80).problems[:3]) == [1, 2, 3]


def test_a_resumed_run_goes_on_in_its_curriculum(tiny):
    lookups = dict(problem_families=("lookup",), answer="direct", max_rows=300, curriculum=99.0)
    stops = iter([True, False])
    stopped = md.train(*tiny(**lookups), stop=lambda: next(stops, False))
    assert not stopped.finished
    resumed = md.train(*tiny(**lookups), resume=True).log
    whole = md.train(*tiny(name="whole", **lookups)).log
    numbers = [[(row["train_loss"], row["val_loss"], row["lengths"]) for row in log]
               for log in (resumed, whole)]  # fmt: skip
    assert numbers[0] == numbers[1] and whole[0]["lengths"] == 2


def test_train_loss_is_measured_on_blocks_from_all_over_a_curriculum(tiny, monkeypatch):
    seen, real = [], md.mean_loss
    see = lambda model, part, *a: seen.append(part[0]) or real(model, part, *a)  # noqa: E731
    monkeypatch.setattr(md, "mean_loss", see)
    settings = dict(problem_families=("lookup",), answer="direct", max_rows=300, eval_blocks=30)
    run = md.train(*tiny(curriculum=0.5, **settings))
    asked = [text.split("Go ")[1][0] for text in run.tokenizer.batch_decode(seen[-1])]
    assert [asked.count(k) for k in "123"] == [10, 10, 10]


def test_a_curriculum_needs_rows_that_say_their_steps(jsonl):
    with pytest.raises(ValueError, match="curriculum 0.5 is for rows that say their steps; give 0"):
        md.load_data(config(data=(jsonl(ROWS),), packing="pad", curriculum=0.5), 40)


def test_direct_answers_have_no_steps_before_them():
    think, once = (md.embedded_rows(300, True, direct=flag) for flag in (False, True))
    for row, short in zip(think, once):
        *question, says = row["messages"]
        assert short["messages"][:-1] == question and "<think>" in says["content"]
        answer = md.final_answer(says["content"])
        assert short["messages"][-1]["content"] == f"#### {answer}"
        assert md.problem_of(short)["answer"] == answer == solve(question[1]["content"])


def test_families_and_modulus_are_chosen():
    rows = md.embedded_rows(200, families=("lookup",), steps=(2, 3))
    assert {(row["family"], row["steps"]) for row in rows} == {("lookup", 2), ("lookup", 3)}
    rows = md.embedded_rows(400, families=("chain",), modulus=5)
    answers = {md.final_answer(row["messages"][-1]["content"]) for row in rows}
    assert answers == set("01234") and {row["guess"] for row in rows} == {1 / 5}
    for row in rows:
        question = row["messages"][1]["content"]
        total = sum(int(n) for n in re.findall(r"\d+", question)[:-1])  # the last is the modulus
        assert "modulo 5" in question
        assert md.final_answer(row["messages"][-1]["content"]) == str(total % 5)


def test_too_few_problems_for_a_split_are_told():
    with pytest.raises(ValueError, match="problem_modulus 2 leaves too few chains"):
        md.embedded_rows(50, True, families=("chain",), steps=(1,), modulus=2)


@pytest.mark.parametrize("packing", ["pad", "pack"])
def test_a_block_in_which_problems_do_not_fit_says_what_would_do(tiny, packing):
    t = tiny(problem_steps=(4,), problem_families=("chain",), packing=packing)[1]
    with pytest.raises(ValueError, match="block_size 40 is too short for .* give at least") as told:
        md.load_data(t, 40)
    enough = int(re.search("at least ([0-9]+)", str(told.value))[1])
    longest = max(filled.sum() for filled in md.filled(*md.load_data(t, enough).val))
    if packing == "pad":
        assert longest == enough  # nothing is wasted, either
    with pytest.raises(ValueError, match=f"give at least {enough}"):
        md.load_data(t, enough - 1)


def test_the_settings_reach_the_problems(tiny):
    settings = dict(answer="direct", problem_families=("chain",), problem_modulus=7)
    data = md.load_data(tiny(**settings)[1], 80)
    assert {p["family"] for p in data.problems} == {"chain"} and data.facts["guess"] == 1 / 7
    assert all(p["solution"].startswith("####") for p in data.problems)
    with pytest.raises(ValueError, match="problem_families 'x' is unknown; choose from chain"):
        tiny(problem_families=("chain", "x"))
