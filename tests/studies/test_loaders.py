"""Loaders, the studies that make a run's data: thinking, llmini, packing, and one's own."""

import dataclasses
import json
import math
import re
import statistics

import numpy as np
import pytest
import torch

import minidepth as md
import train
from minidepth_lab.base import configs
from minidepth_lab.keep import checkpoints, registry, running
from minidepth_lab.measure import judge
from minidepth_lab.rows import hub, to_data
from minidepth_lab.studies import llmini, reread, thinking
from minidepth_lab.tasks.base import own_code

# ---------- thinking: kinds of problems, answers, curricula ----------

LOOKUPS = ("families=lookup", "answer=direct")


@pytest.fixture
def lookups(tiny):
    """(ModelConfig, TrainConfig) of a run on look-ups answered directly, and its Data."""

    def build(*sizes, **changes):
        settings = dict(loader="thinking", sizes=(*LOOKUPS, *sizes), max_rows=300, eval_problems=4)
        m, t = tiny(**settings | changes)
        return m, t, registry.data_of(t, m.block_size)

    return build


def test_a_curriculum_begins_with_the_shortest_problems_and_ends_with_all(lookups, monkeypatch):
    seen, draw, after_step = [], thinking.Lengths.draw, thinking.Lengths.after_step
    losses = iter([9.0, 0.6, 0.5, 0.4, 0.7, 0.7, 0.6, *[0.1] * 13])

    def see(data, step, n):
        tokens, targets = draw(data, step, n)
        seen.append(tokens)
        return tokens, targets

    told = lambda data, loss: after_step(data, next(losses))  # noqa: E731
    monkeypatch.setattr(thinking.Lengths, "draw", see)
    monkeypatch.setattr(thinking.Lengths, "after_step", told)
    settings = dict(steps=20, warmup_steps=1, eval_every=5, batch_size=24)
    m, t, data = lookups("curriculum=0.5", **settings)
    run = running.train(m, t, data)
    texts = [run.tokenizer.batch_decode(tokens) for tokens in seen]
    asked = [{int(text.split("Go ")[1][0]) for text in batch} for batch in texts]
    # the loss falls below 0.5 in the fourth step, not in the fifth to seventh, then always
    assert asked == [{1}] * 4 + [{1, 2}] * 4 + [{1, 2, 3}] * 12
    assert [record["lengths"] for record in run.log] == [1, 2, 3, 3, 3]
    assert sorted(p["steps"] for p in data.problems[:3]) == [1, 2, 3]
    assert data.state == dict(lengths=1)  # the run has a state of its own


def test_the_settings_reach_the_problems(tiny):
    t = tiny(loader="thinking", sizes=("answer=direct", "families=chain", "modulus=7"))[1]
    data = registry.data_of(t, 80)
    assert {p["family"] for p in data.problems} == {"chain"} and data.facts["guess"] == 1 / 7
    for p in data.problems:
        *numbers, modulus = map(int, re.findall(r"\d+", p["messages"][0]["content"]))
        assert p["solution"] == f"#### {sum(numbers) % modulus}" and modulus == 7
    assert data.sizes == ("families=chain", "modulus=7", "answer=direct", "curriculum=0.0")
    two = registry.data_of(dataclasses.replace(t, sizes=("families=lookup+order",)), 80)
    assert {p["family"] for p in two.problems} == {"lookup", "order"}
    assert all("<think>" in p["solution"] for p in two.problems)


def test_without_a_curriculum_and_sizes_the_problems_are_the_embedded_ones(tiny, data):
    """So that a study compares with what the main job trains on."""
    same = registry.data_of(tiny(loader="thinking")[1], 80)
    assert np.array_equal(same.train[0], data.train[0]) and same.problems == data.problems
    assert torch.equal(same.draw(3, 8)[0], data.draw(3, 8)[0])


@pytest.mark.parametrize("changes, words", [
    (dict(sizes=("families=chain+x",)), "families 'x' is unknown"),
    (dict(sizes=("answer=x",)), "answer 'x' is unknown"),
    (dict(sizes=("modulus=11",)), "modulus 11 does not work"),
    (dict(sizes=("modulus=1",)), "modulus 1 does not work"),
    (dict(sizes=("curriculum=-1",)), "curriculum=-1 does not work"),
    (dict(sizes=("pairs=8",)), "sizes pairs is none of the loader thinking's"),
    (dict(data=("embedded", "icqa")), "give --data embedded"),
    (dict(sizes=("families=chain", "modulus=2"), problem_steps=(2,)), "there is no problem left"),
    (dict(sizes=("curriculum=0.5",), packing="pack"), "--packing pad"),
])  # fmt: skip
def test_settings_of_thinking_that_cannot_work_say_why(tiny, changes, words):
    with pytest.raises(ValueError, match=words):
        registry.data_of(tiny(loader="thinking", **changes)[1], 80)


# ---------- llmini: chunks of long rows ----------


def strided(rows, T, stride):
    """blocks() of padded rows that overlap."""
    return md.blocks(llmini.overlapping(rows, T, stride or T), T, "pad")


@pytest.mark.parametrize("stride", [0, 1, 3, 5, 8])
def test_long_rows_overlap_as_the_stride_says(stride):
    T = 8
    for n in (2, 8, 9, 10, 17, 25):
        ids, start, seen = list(range(100, 100 + n)), 0, set()
        tokens, targets = strided([(ids, [True] * n)], T, stride)
        there = to_data.filled(tokens, targets)
        for row, target, real in zip(tokens.tolist(), targets.tolist(), there.tolist()):
            size = min(T, n - 1 - start)
            assert row == [*ids[start : start + size], *[0] * (T - size)]
            assert target == [*ids[start + 1 : start + size + 1], *[-100] * (T - size)]
            assert real == [True] * size + [False] * (T - size)
            seen |= {t for t in target if t != -100}
            last, start = start + size == n - 1, start + (stride or T)
        assert last and seen == set(ids[1:])  # every token is learned, no chunk is one too many
        assert len(tokens) == 1 + math.ceil(max(0, n - 1 - T) / (stride or T))


def test_packed_rows_do_not_overlap_and_no_stride_skips(jsonl):
    path = jsonl([dict(text=" ".join(str(j) for j in range(i, i + 40))) for i in range(30)])
    t = configs.make("laptop", data=(path,), packing="pack", loss_on="all")[1]
    loaded = dataclasses.replace(t, loader="llmini", sizes=("stride=3",))
    packed = registry.data_of(loaded, 8)
    assert packed.sizes == ("stride=3", "texts=ours", "share=1.0")
    assert np.array_equal(packed.train[0], to_data.load_data(t, 8).train[0])
    loaded.packing = "pad"
    assert len(registry.data_of(loaded, 8).train[0]) > 2 * len(packed.train[0])
    with pytest.raises(ValueError, match="stride 9 skips tokens"):
        registry.data_of(dataclasses.replace(loaded, sizes=("stride=9",)), 8)


def test_rows_of_multiple_choice_are_text_with_the_right_choice(tiny, jsonl):
    rows = [dict(question=f"Is it {i}", choices=dict(text=["red", "blue"], label=["A", "B"]),
                 answerKey="B") for i in range(40)]  # fmt: skip
    t = tiny(data=(jsonl(rows),), loader="llmini", packing="pad", loss_on="all")[1]
    data = registry.data_of(t, 40)
    texts = data.tokenizer.batch_decode(data.train[0])
    assert data.facts["unusable_rows"] == 0 and len(texts) == 38
    assert all("blue" in text and "red" not in text for text in texts)
    with pytest.raises(ValueError, match="--loader llmini trains on it, --score asks it"):
        to_data.load_data(dataclasses.replace(t, loader=""), 40)


def by_hand(texts, T, stride):
    """LLmini's chunks of lists of ids, as its notebook is read: a short text is one, of a long one
    each start is tried and kept if all of its window is there."""
    made = []
    for ids in texts:
        if len(ids) <= T:
            made.append(ids)
            continue
        for start in range(0, len(ids), stride):
            if start + T + 1 <= len(ids):
                made.append(ids[start : start + T + 1])
    return made


def test_windows_are_whole_and_the_tail_is_left_out():
    for T, stride in ((8, 4), (8, 3), (8, 8), (5, 2)):
        for n in range(1, 40):
            ids = list(range(n))
            assert llmini.windows(ids, T, stride) == by_hand([ids], T, stride)


def long_and_short(folder, n=60):
    """A file of SQuAD's name: 20 contexts, each three times, some of them long."""
    words = [" ".join(f"w{i}x{j}" for j in range(5 + 3 * i)) for i in range(20)]
    rows = [dict(context=f"  {words[i % 20]} ", question=f"q{i}", answer=dict(text=["no"]))
            for i in range(n)]  # fmt: skip
    rows += [dict(context=text) for text in ("too short", "x" * 2560, None, " ")]
    path = folder / "squad" / "train.jsonl"
    path.parent.mkdir()
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return str(path)


def test_llminis_texts_are_those_of_its_code(tmp_path):
    path = long_and_short(tmp_path)
    t = registry.configs("llmini-c", data=path, tokenizer="embedded", tokenizer_size=300)[1]
    texts = llmini.texts_of(path, t)
    assert len(texts) == 60 and all(text == text.strip() and "q0" not in text for text in texts)
    raw = tmp_path / "arc.jsonl"  # as its authors have it
    raw.write_text(json.dumps(dict(question=dict(stem="Which of these ?", choices=[]))) + "\n")
    assert llmini.texts_of(str(raw), t) == ["Which of these ?"]
    t.max_rows = 7
    assert llmini.texts_of(path, t) == texts[:7]  # what is left out does not count
    t.max_rows = 20_000
    data = registry.data_of(t, 32)
    encoded = [data.tokenizer(text, add_special_tokens=False).input_ids for text in texts]
    chunks = by_hand(encoded, 32, 128)
    order = torch.utils.data.random_split(
        chunks, [len(chunks) - len(data.val[0]), len(data.val[0])],
        generator=torch.Generator().manual_seed(42),
    )  # fmt: skip
    assert len(data.val[0]) == int(0.05 * len(chunks))
    for part, made in zip(order, (data.train, data.val)):
        for ids, tokens, targets in zip(part, *made):
            n = len(ids) - 1
            assert tokens.tolist() == [*ids[:-1], *[0] * (32 - n)]
            assert targets.tolist() == [*ids[1:], *[-100] * (32 - n)]
    assert data.tokenizer.eos_token_id not in data.train[1]
    facts = data.facts
    there = [ids in list(order[0]) for ids in order[1]]
    assert facts["held_out_in_training"] == sum(there) and facts["held_out"] == len(there)
    assert sum(there) > 0  # each text is there three times
    assert facts["padded"] + facts["cut"] == 60 and facts["chunks"] == len(chunks)
    assert facts["utilisation"] == sum(map(len, encoded)) / (32 * len(chunks))
    assert facts["median"] == statistics.median(map(len, encoded))
    t.sizes = ("stride=128", "texts=published", "share=0.25")
    quarter = registry.data_of(t, 32)
    assert len(quarter.train[0]) == -(-len(data.train[0]) // 4)
    assert (quarter.train[0] == data.train[0][: len(quarter.train[0])]).all()
    assert (quarter.val[0] == data.val[0]).all()
    words = {word for ids in encoded for word in ids}
    assert facts["vocabulary"] == len(words) / len(data.tokenizer)


def test_what_llminis_texts_leave_out_is_told(tmp_path, monkeypatch):
    """Rows without the columns, and texts too short or too long, went without a word."""

    def notes(rows, **changes):
        path = tmp_path / "hellaswag.jsonl"
        path.write_text("\n".join(json.dumps(row) for row in rows))
        more = dict(tokenizer="embedded", tokenizer_size=300) | changes
        facts = registry.data_of(registry.configs("llmini-c", data=str(path), **more)[1], 32).facts
        told = [line for line in facts["lines"] if line.startswith("note: ")]
        return [line.split()[1:3] for line in told], facts["table"][str(path)]["samples"]

    rows = [dict(ctx=f"a context, number {i}") for i in range(20)]
    assert notes(rows) == ([], 20)
    bad = [dict(text="a text of another kind"), dict(ctx=None), dict(ctx=3), 7]
    odd = [dict(ctx=text) for text in ("x" * 10, "x" * 2560, " ")]
    edges = [dict(ctx="y" * 11), dict(ctx="y" * 2559)]
    every = [*bad, *rows, *odd, *edges]
    assert notes(every) == ([["4", "rows"], ["3", "texts"]], 22)
    assert notes(every, max_rows=8) == ([["4", "rows"], ["8", "texts"]], 8)  # the first are taken
    monkeypatch.setattr(llmini.text, "rows_of", lambda source, split, notes: rows * 2)
    t = registry.configs("llmini-c", data="Rowan/hellaswag", tokenizer="embedded")[1]
    told = []  # of a data set of the hub as many as LLmini took, half
    assert len(llmini.texts_of("Rowan/hellaswag", t, told)) == 20 and "50.0%" in told[0]


@pytest.mark.parametrize("name, content, changes, words", [
    ("hellaswag.jsonl", '{"ctx": "short"}\n{"ctx": "too"}', {}, "shorter than 11 or longer than"),
    ("hellaswag.jsonl", '{"text": "a text of some length"}', {}, "no row has the text {ctx}"),
    ("hellaswag.jsonl", "", {}, "no row has the text {ctx}"),
    ("winogrande.jsonl", '{"text": "a text"}', {}, "no row has the text {sentence}"),
    ("hellaswag.json", "3", {}, "is no list of rows, "),
    ("hellaswag.json", '{"ctx": "a text of some length"}', {}, "is no list of rows, "),
    ("hellaswag.csv", "3,a title,some words\n4,another,other\n", {}, "has no name that is known"),
    ("other.jsonl", "", {}, "is none of LLmini's eleven sources"),
    ("squad.jsonl", "", dict(sizes=("texts=mine",)), "texts 'mine' is unknown; choose from ours"),
    ("squad.jsonl", "", dict(sizes=("share=0.5", "texts=ours")), "share=0.5: give 0 to 1, with"),
    ("gsm8k.jsonl", "", dict(sizes=("texts=published",), val_data="a.jsonl"), "texts=published"),
])  # fmt: skip
def test_a_source_of_which_no_text_is_left_says_why(name, content, changes, words, tmp_path):
    (tmp_path / name).write_text(content)
    t = registry.configs("llmini-c", data=str(tmp_path / name), tokenizer="embedded", **changes)[1]
    with pytest.raises(ValueError, match=re.escape(words)):
        registry.data_of(t, 32)


# ---------- packing: validation blocks of another kind ----------


def test_validation_may_be_packed_otherwise(jsonl):
    """Also the part of each source by itself."""
    paths = []
    for word in ("apple", "plum"):
        rows = [dict(text=f"{word} {i} of a short text") for i in range(100)]
        paths.append(jsonl(rows, f"{word}.jsonl"))
    t = configs.TrainConfig(
        data=tuple(paths), tokenizer="embedded", packing="pack", val_fraction=0.3
    )
    packed = to_data.load_data(t, 32)
    padded = registry.data_of(dataclasses.replace(t, packing="pad"), 32)
    loaded = dataclasses.replace(t, loader="packing", sizes=("val_packing=pad",))
    mixed = registry.data_of(loaded, 32)
    assert np.array_equal(mixed.train[0], packed.train[0]) and len(mixed.val[0]) == 60
    assert np.array_equal(mixed.val[0], padded.val[0])
    for path in paths:
        assert np.array_equal(mixed.val_by_source[path][0], padded.val_by_source[path][0])
    same = registry.data_of(dataclasses.replace(loaded, sizes=()), 32)
    assert np.array_equal(same.val[0], packed.val[0]) and same.sizes == ("val_packing=same",)
    with pytest.raises(ValueError, match="val_packing 'x' is unknown"):
        registry.data_of(dataclasses.replace(loaded, sizes=("val_packing=x",)), 32)


# ---------- finding them, and data of one's own ----------


OWN = """
import pathlib
import minidepth as md
from minidepth_lab.rows import to_data
from minidepth_lab.tasks.base.sizes import as_text, sizes_of

pathlib.Path(__file__).with_suffix(".ran").touch()

def load_data(config, block_size, tokenizer=None):
    sizes = sizes_of(config.sizes, dict(length=6), "my loader")
    rows = [dict(text=f"{i} " * sizes["length"]) for i in range(60)]
    data = to_data.make_data("mine", rows[:50], rows[50:], config, block_size, tokenizer)
    data.sizes = as_text(sizes)
    return data
"""
BLOCKS = """
import numpy as np
import minidepth as md

def load_data(config, block_size, tokenizer):
    x = np.arange(40, dtype=np.int32).reshape(10, 4)
    return md.Data((x, x), (x, x), n_words=40)
"""


def test_a_loader_of_ones_own_is_read_once_for_each_seed(tmp_path, monkeypatch):
    path = tmp_path / "mine.py"
    path.write_text(BLOCKS.replace("x, x)", "x % (9 + config.seed), x)"))
    monkeypatch.setattr(own_code, "NAMED", {str(path)})
    with registry.read_once():
        a, b, again = (
            registry.data_of(configs.make("laptop", loader=str(path), seed=seed)[1], 4)
            for seed in (0, 1, 0)
        )
    assert a is again and [each.train[0].max() for each in (a, b)] == [8, 9]


def test_what_is_not_cached_is_out_of_reach_offline_without_a_question(tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr(hub, "fault", lambda url: pytest.fail("the hub was asked"))
    why = hub.out_of_reach([("nobody/words", "model")])
    assert why.startswith("nobody/words is not cached") and why.endswith("HF_HUB_OFFLINE is set")


def test_a_file_of_ones_own_is_executed_only_if_the_command_names_it(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(own_code, "NAMED", set())
    path = tmp_path / "mine.py"
    ran = path.with_suffix(".ran")
    path.write_text(OWN)
    with pytest.raises(ValueError, match="name it again: --loader .*mine.py"):
        registry.data_of(configs.make("laptop", loader=str(path))[1], 16)
    assert not ran.exists()
    small = "--n_layers 1 --d_model 8 --steps 4 --warmup_steps 1 --batch_size 2"
    flags = f"--preset laptop --block_size 16 {small} --loss_on all --sizes length=7"
    line = [*flags.split(), "--out_dir", str(tmp_path), "--name", "run", "--loader", str(path)]
    assert train.main(line) == 0 and ran.exists()
    t = checkpoints.read_config(tmp_path / "run")[1]
    assert t.sizes == ("length=7",) and t.loader == str(path)
    # the run folder alone executes nothing; without its log it is not known to be finished
    (tmp_path / "run" / "log.jsonl").unlink()
    ran.unlink()
    monkeypatch.setattr(own_code, "NAMED", set())
    resume = ["--resume", str(tmp_path / "run")]
    assert train.main(resume) == 2 and not ran.exists()
    assert "name it again: --loader" in capsys.readouterr().err
    assert train.main([*resume, "--loader", str(path)]) == 2
    assert "is finished: 4 of 4 steps" in capsys.readouterr().err
    # it is executed once for whatever it is asked for, and anew where it has changed
    module = own_code.own_file(str(path), "loader")
    assert own_code.own_file(str(path), "loader") is module
    path.write_text("1 / 0")
    with pytest.raises(ValueError, match="mine.py cannot be executed: division by zero"):
        registry.study(str(path), "loader")
    # one that knows only blocks, and tells nothing of them, trains too
    path.write_text(BLOCKS)
    line = ["--loader", str(path), *small.split(), "--block_size", "4", "--out_dir", str(tmp_path)]
    assert train.main(line) == 0
    assert "mine.py: 10 blocks of 4 tokens, 10 held out" in capsys.readouterr().out


# ---------- reread: fewer rows, more often; the loss on text that is trained on ----------


def test_reread_trains_on_fewer_rows_and_holds_out_the_same(tiny, jsonl):
    texts = [dict(question=f"{i} and {i}?", answer=f"It is {2 * i}, not {i}.") for i in range(99)]
    settings = dict(data=(jsonl(texts),), loader="reread", max_rows=99, val_fraction=0.2)

    def loaded(*sizes):
        m, t = tiny(**settings, sizes=sizes)
        return registry.data_of(t, m.block_size)

    every, few = loaded(), loaded("problems=30")
    assert (every.facts["train_rows"], few.facts["train_rows"]) == (79, 30)
    assert every.facts["val_rows"] == few.facts["val_rows"] == 20
    assert np.array_equal(every.val[0], few.val[0])
    assert every.tokenizer.get_vocab() == few.tokenizer.get_vocab()
    n = len(few.train[0]) - 1  # the last block goes on with what is left out of the few
    assert n > 3 and np.array_equal(every.train[0][:n], few.train[0][:n])
    assert "problems=840" in every.sizes and "problems=30" in few.sizes


def test_reread_measures_the_training_text_as_a_finished_run_does(tiny, jsonl):
    rows = [dict(text=f"{i} times {i} is {i * i}") for i in range(200)]
    m, t = tiny(data=(jsonl(rows),), loader="reread", eval_blocks=3, eval_every=4, eval_problems=0)
    data = registry.data_of(t, m.block_size)
    run = running.train(m, t, data)
    assert all(record["train_loss_eval"] > 0 for record in run.log) and len(run.log) > 2
    assert run.log[-1]["train_loss_eval"] == data.evaluate(run.model)["train_loss_eval"]
    plain = dataclasses.replace(t, loader="", sizes=(), name="plain")
    assert "train_loss_eval" not in running.train(m, plain).log[0]


def course_of(*losses):
    """A result() of (training loss, validation loss) by evaluation."""
    rows = [dict(train_loss_eval=train, val_loss=val) for train, val in losses]
    return dict(log=rows, **rows[-1])


COLUMNS = ("val_loss", "train_loss_eval")


def test_a_validation_loss_is_read_off_where_the_training_loss_is_first_as_low():
    run = course_of((8, 8.0), (4, 6.0), (5, 7.0), (0, 3.0))  # 5 comes after 4, and is not meant
    for train_loss, val_loss in ((9, 8.0), (8, 8.0), (6, 7.0), (4.5, 6.25), (4, 6.0), (2, 4.6)):
        assert judge.value_at(run, *COLUMNS, train_loss) == pytest.approx(val_loss)
    # never so low: as it ends, however low the other was before
    assert judge.value_at(run, *COLUMNS, -1) == 3.0
    assert judge.value_at(course_of((5, 9.0), (3, 8.0), (4, 6.0)), *COLUMNS, 2.9) == 6.0


def test_runs_are_compared_where_all_of_them_fit_their_text_equally_well():
    """Or at a fit that was chosen before, or where they end."""
    near, far = course_of((8, 8.0), (4, 6.0)), course_of((6, 5.0), (2, 3.0))
    reached, at = reread.equally_fitted({"a": [near, far], "b": [far]})
    assert reached == 4 and at == {"a": [6.0, 4.0], "b": [4.0]}
    stored = {(20, "a"): [near, far], (20, "b"): [far], (80, "a"): [far]}
    assert reread.at_fit(reread.models_read(stored, 20), 3) == {"a": [6.0, 3.5], "b": [3.5]}
    assert reread.at_fit(reread.models_read(stored, 80), 5) == {"a": [4.5]}


DRAWN = """
import numpy as np
import torch
from minidepth_lab.base.data import Data


class Drawn(Data):
    def draw(self, step, n):
        x = torch.randint(9, (n, 8), generator=torch.Generator().manual_seed(step))
        return x, x.roll(-1, 1)


def load_data(config, block_size, tokenizer):
    x = np.arange(80, dtype=np.int32).reshape(10, 8) % 9
    return Drawn((x, x), (x, x), n_words=9, infinite=True)
"""


def test_a_loader_may_draw_anew_for_each_step(tmp_path, capsys, kept):
    (tmp_path / "drawn.py").write_text(DRAWN)
    line = f"--loader {tmp_path}/drawn.py --preset tasks --block_size 8 --d_model 16 --n_heads 2"
    line += f" --n_layers 1 --steps 3 --warmup_steps 1 --out_dir {tmp_path} --name run"
    assert train.main(line.split()) == 0
    out = capsys.readouterr().out
    assert "drawn.py: 10 blocks of 8 tokens, 10 held out" in out and "Done." in out
