"""The depth tasks against slow, obvious solutions, and what the command makes of them."""

import itertools
import json
import os
import re

import numpy as np
import pytest
import torch

import minidepth as md
import train
from conftest import draw_of
from minidepth_lab import tasks
from minidepth_lab.base import configs
from minidepth_lab.keep import checkpoints, registry, running
from minidepth_lab.measure import results
from minidepth_lab.rows import to_data
from minidepth_lab.tasks import TASKS
from minidepth_lab.tasks.base import own_code
from minidepth_lab.tasks.base.sizes import by_name, sizes_of
from minidepth_lab.tasks.icl_template import IclTemplate
from minidepth_lab.tasks.template import pair_patterns

N = 2000  # sequences a case


def rows(name, test=False, n=N, seed="test", **sizes):
    """(tokens, targets) of n sequences, as lists."""
    tokens, targets = TASKS[name].draw(n, md.generator(seed), test, **sizes)
    assert tokens.shape == targets.shape and tokens.dtype == targets.dtype == torch.int64
    return zip(tokens.tolist(), targets.tolist())


def test_memorize_has_one_label_for_each_of_its_sequences():
    label, labels = {}, set()
    for x, y in rows("memorize", n=20_000):
        assert y[:-1] == [-100] * 8 and x[-1] == 40 and all(0 <= token < 32 for token in x[:-1])
        assert label.setdefault(tuple(x), y[-1]) == y[-1] and 32 <= y[-1] < 40
        labels.add(y[-1])
    assert len(label) == 512 and len(labels) == 8  # all are shown, none is there twice
    assert {tuple(x) for x, _ in rows("memorize", test=True)} <= label.keys()
    small = {tuple(x) for x, _ in rows("memorize", sequences=5, length=3, labels=2, symbols=9)}
    assert len(small) == 5 and {len(x) for x in small} == {4} and {x[-1] for x in small} == {11}


@pytest.mark.parametrize(("pairs", "symbols"), [(8, 16), (3, 3), (1, 5)])
def test_icqa_targets_are_looked_up(pairs, symbols):
    orders, answers = set(), set()
    for x, y in rows("icqa", pairs=pairs, symbols=symbols):
        q, a, asked = x[0 : 2 * pairs : 2], x[1 : 2 * pairs : 2], x[2 * pairs :]
        assert len(set(q)) == len(set(a)) == pairs and sorted(asked) == sorted(q)
        assert all(t < symbols for t in q) and all(symbols <= t < 2 * symbols for t in a)
        table = dict(zip(q, a))
        assert y == [-100] * 2 * pairs + [table[token] for token in asked]
        orders.add(tuple(q.index(token) for token in asked))
        answers.add((q[0], a[0]))
    assert len(orders) > (1 if pairs > 1 else 0) and len(answers) > symbols  # drawn anew


def pattern(string):
    """abba → (0, 1, 1, 0)"""
    names = {}
    return tuple(names.setdefault(token, len(names)) for token in string)


def all_patterns(length):
    """Every string of `length` places in which each symbol comes twice, as pattern()s, in order."""
    words = itertools.product(range(length // 2), repeat=length)
    return sorted(w for w in words if pattern(w) == w and all(w.count(s) == 2 for s in w))


@pytest.mark.parametrize(("length", "count"), [(2, 1), (4, 3), (6, 15), (8, 105)])
def test_pair_patterns_are_all_there_are(length, count):
    known = [tuple(row) for row in pair_patterns(length).tolist()]
    assert len(known) == count
    if length < 8:
        assert known == all_patterns(length)


@pytest.mark.parametrize("test", [False, True])
@pytest.mark.parametrize("length", [4, 6])
def test_template_labels_are_the_patterns(length, test):
    patterns, seen = all_patterns(length), set()
    for x, y in rows("template", test, symbols=20, length=length):
        assert all(t // 20 == test for t in x[:-1])  # unseen symbols in the test, only there
        assert y[:-1] == [-100] * length and x[-1] == 40 + len(patterns)
        assert patterns[y[-1] - 40] == pattern(x[:-1])
        seen.add(tuple(x))
    assert len(seen) > N / 10


@pytest.mark.parametrize("test", [False, True])
@pytest.mark.parametrize(("length", "blocks", "queries"), [(4, 3, 3), (6, 4, 1)])
def test_icl_template_answers_are_looked_up_by_pattern(length, blocks, queries, test):
    places, labels = set(), set()
    sizes = dict(symbols=40, length=length, blocks=blocks, queries=queries, labels=9)
    for x, y in rows("icl_template", test, **sizes):
        parts = [x[i : i + length + 1] for i in range(0, len(x), length + 1)]
        shown = {pattern(part[:-1]): part[-1] for part in parts[:blocks]}
        assert len(shown) == len(set(shown.values())) == blocks  # patterns and labels differ
        assert all(80 <= label < 89 for label in shown.values())
        symbols = [t for part in parts for t in part[:-1]]
        assert all(t // 40 == test for t in symbols)
        assert len(set(symbols)) == len(parts) * length // 2  # each block has its own
        assert len({pattern(part[:-1]) for part in parts[blocks:]}) == queries
        for number, part in enumerate(parts[blocks:]):
            at = (blocks + number + 1) * (length + 1) - 1
            assert y[at] == shown[pattern(part[:-1])] and part[-1] == 89
            y[at] = -100
            places.add(list(shown).index(pattern(part[:-1])))
        assert set(y) == {-100}
        labels |= set(shown.values())
    assert places == set(range(blocks)) and len(labels) == 9


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_hints_name_the_pattern_after_labels_and_in_a_share_of_the_queries(share):
    patterns, hinted = all_patterns(4), []
    for x, y in rows("icl_template", hinted=share, symbols=40):
        ends = range(4, len(x), 5)
        names = [89 + patterns.index(pattern(x[at - 4 : at])) for at in ends]  # after the query, 88
        assert [y[at] for at in ends][:3] == names[:3] and x[ends[3]] == 88
        shown = dict(zip(names[:3], (x[at] for at in ends)))
        said, labels = [y[at] for at in ends][3:], [shown[name] for name in names[3:]]
        assert said in (names[3:], labels)
        hinted.append(said == names[3:])
    assert sum(hinted) / N == pytest.approx(share, abs=0.05)


def hop(x, k):
    """x[find_k(i)] for each i, None for ⊥: the definition with 1-based places, word for word."""

    def find1(i):
        return max([0] + [j for j in range(2, i + 1) if x[j - 2] == x[i - 1]])

    def find(i, k):
        return i if k == 0 or i == 0 else find1(find(i, k - 1))

    found = [find(i, k) for i in range(1, len(x) + 1)]
    return [x[at - 1] if at else None for at in found]


def test_khop_of_the_papers_example():
    """Sanford, Hsu & Telgarsky 2024: the last token of baebcabebdea has 1-hop b and 2-hop c."""
    assert hop("baebcabebdea", 1)[-1] == "b" and hop("baebcabebdea", 2)[-1] == "c"


@pytest.mark.parametrize("hops", [(1,), (1, 2, 4, 8)])
def test_khop_equals_its_definition(hops):
    seen = set()
    for x, y in rows("khop", hops=hops, length=60, n=1000):
        k, string = x[0] - 4, x[1:]
        assert k in hops and all(0 <= t < 4 for t in string)
        assert all(a != b for a, b in zip(string, string[1:]))
        assert y == [-100, *(4 if s is None else s for s in hop(string, k))]
        seen.add((k, string[0]))
    assert len(seen) == 4 * len(hops)


@pytest.mark.parametrize(
    ("k", "error", "bottom"),
    [(1, 0.495, 0.04), (2, 0.495, None), (4, 0.652, None), (8, 0.733, 0.25)],
)
def test_khop_floor_and_share_of_bottom_are_the_known_ones(k, error, bottom):
    assert 1 - TASKS["khop"].chance(hops=(k,))[1] == pytest.approx(error, abs=0.005)
    if bottom:
        _, y = TASKS["khop"].draw(4000, md.generator(0), hops=(k,))
        assert (y[:, 1:] == 4).float().mean() == pytest.approx(bottom, abs=0.01)


@pytest.mark.parametrize(
    ("name", "sizes", "expected"),
    [
        ("memorize", dict(labels=4), (1 / 4, 1 / 4)),
        ("icqa", dict(pairs=4), (1 / 16, 1 / 4)),
        ("template", {}, (1 / 15, 1 / 3)),
        ("icl_template", dict(blocks=2, queries=1), (1 / 8, 1 / 2)),
    ],
)
def test_guessing_and_shortcut_rates_are_what_such_predictors_get(name, sizes, expected):
    assert TASKS[name].chance(**sizes) == expected
    tokens, targets = TASKS[name].draw(4000, md.generator(1), **sizes)
    answers = targets[targets >= 0]
    most = answers.bincount().max() / len(answers)  # the best constant answer
    assert most == pytest.approx(expected[0], abs=0.05)


@pytest.mark.parametrize("name", TASKS)
def test_batches_are_a_function_of_the_generator(name):
    more = dict(
        khop=dict(hops=(1, 2, 3)), icl_template=dict(hints=0.75), written=dict(way="random")
    )
    sizes = more.get(name, {})  # with which more is drawn
    draw = lambda seed: TASKS[name].draw(8, md.generator(seed), **sizes)  # noqa: E731
    again = zip(draw(1), draw(1), draw(2))
    assert all(torch.equal(a, b) and not torch.equal(a, c) for a, b, c in again)
    others = torch.get_rng_state()  # of numbers that are drawn without it
    for test in (False, True):
        TASKS[name].draw(8, md.generator(1), test, **sizes)
    for done in (0.0, 0.5, 3.0):
        TASKS[name].train_batch(done, 8, md.generator(1), **sizes)
    assert torch.equal(torch.get_rng_state(), others)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (dict(data="icqa", sizes=("pairs=17",)), "17 different questions, but there are 16"),
        (
            dict(data=("icqa",), sizes=("colour=3",)),
            "sizes colour is none of the task icqa's; it has symbols, pairs",
        ),
        (dict(data=("icqa",), sizes=("hops=3",)), "sizes hops is none of the task icqa's; it has"),
        (dict(data=("icqa",), sizes=("hints=0.5",)), "sizes hints is none of the task icqa's"),
        (dict(data=("icqa",), sizes=("pairs=x",)), "sizes pairs=x does not work"),
        (dict(data=("icqa",), sizes=("pairs",)), "sizes pairs= does not work"),
        (dict(data=("icqa",), sizes=("pairs=4+8",)), "sizes pairs=4+8 does not work"),
        (
            dict(data=("icqa",), sizes=("pairs=2.5",)),
            "pairs=2.5 does not work; give a whole number",
        ),
        (dict(data=("icqa",), sizes=("pairs=0",)), "whole number from 1 to 1,000,000"),
        (dict(data=("icl_template",), sizes=("hints=inf",)), "sizes hints=inf does not work; give"),
        (dict(data=("icl_template",), sizes=("hints=nan",)), "sizes hints=nan does not work; give"),
        (dict(data=("icqa",), block_size=23), "block_size 23 is too short .* 24 tokens"),
        (dict(data=("template",), sizes=("length=5",)), "length 5 makes no list of pairs"),
        (dict(data=("template",), sizes=("symbols=2",)), "3 different symbols, but there are 2"),
        (dict(data=("icl_template",), sizes=("blocks=16",)), "16 different patterns"),
        (dict(data="khop", sizes=("hops=26",)), "hops 26 is too much: length 48 .* room for 12"),
        (dict(data="khop", sizes=("hops=1+x",)), "sizes hops=x does not work"),
        (dict(data="khop", sizes=("hops=1+1",)), "sizes hops=1+1 has one twice; give each once"),
        (dict(data="khop", sizes=("hops=",)), "sizes hops= does not work"),
        (dict(data="khop", sizes=("symbols=1",)), "symbols 1: none could follow .* at least 2"),
        (dict(data=("khop", "icqa")), "the task icqa does not mix"),
        (dict(data=("khop", "embedded")), "the task khop does not mix"),
        (dict(data=("embedded", "khop")), "the task khop does not mix"),
    ],
)
def test_sizes_that_make_a_task_impossible_say_so(settings, words):
    m, t = registry.configs("tasks", **settings)
    with pytest.raises(ValueError, match=re.sub(r"\+", r"[+]", words)):
        registry.data_of(t, m.block_size)


def test_a_task_without_sizes_says_that_it_has_none():
    with pytest.raises(ValueError, match="sizes hops is none of the task mine's; it has none"):
        sizes_of(("hops=3",), {}, "the task mine")


def test_sizes_of_no_task_are_refused(jsonl, capsys):
    """They were ignored in silence."""
    path = jsonl([dict(text="a text")] * 30)
    for data in ("embedded", path):
        for load in (registry.data_of, to_data.load_data):
            t = registry.configs("laptop", data=data, sizes=("hops=3",))[1]
            with pytest.raises(ValueError, match="sizes hops=3 are for a task or a loader; give"):
                load(t, 58)
        line = f"--preset laptop --data {data} --steps 2 --warmup_steps 0 --sizes hops=3"
        assert train.main(line.split()) == 2
        assert "sizes hops=3 are for a task or a loader" in capsys.readouterr().err


def test_texts_mix_as_tasks_do_not(jsonl):
    rows = [dict(text=f"a text, {i}") for i in range(40)]
    paths = jsonl(rows, "mine.jsonl"), jsonl(rows, "yours.jsonl")
    _, t = registry.configs("laptop", data=paths, tokenizer="characters")
    assert set(registry.data_of(t, 60).val_by_source) == set(paths)


def test_settings_of_a_task_may_name_it_as_text():
    """A task's own settings are found whether `data` is a text or a tuple."""
    for made in (
        registry.configs("tasks", data="template"),
        registry.configs("tasks", data=("template",)),
        registry.configs("tasks", data="template"),
    ):
        m, t = made
        assert t.data == ("template",) and (t.steps, t.batch_size, t.eval_every) == (3000, 128, 200)
        assert (m.n_heads, m.d_ff, m.block_size) == (4, 0, 128)
    assert registry.configs("tasks", data="icqa")[0].n_heads == 2
    assert registry.configs("tasks", data="memorize", steps=70)[1].steps == 70
    assert configs.make("laptop", data="icqa")[1].data == ("icqa",)
    assert registry.configs("laptop", data="icqa")[0].n_heads == 4  # laptop's own, not the task's


def test_sizes_of_a_preset_are_of_its_own_task():
    """`--preset ring --data icqa` was told that icqa has no lengths."""
    assert registry.configs("ring", data=("icqa",))[1].sizes == ()
    assert registry.configs("ring", data=("icqa",), sizes=("pairs=3",))[1].sizes == ("pairs=3",)
    assert "lengths=1+2+4" in registry.configs("ring-four", sizes=("ring=9",))[1].sizes


def test_sizes_are_merged_by_name_and_all_of_them_are_known():
    t = registry.configs("tasks", data="khop", sizes=("hops=1+2+4",))[1]
    assert set(t.sizes) == {"length=48", "hops=1+2+4"}  # the task's own length stays
    data = registry.data_of(t)
    assert data.task_sizes == dict(symbols=4, length=48, hops=(1, 2, 4))
    assert data.sizes == ("symbols=4", "length=48", "hops=1+2+4")
    data = registry.data_of(registry.configs("tasks", data="icl_template")[1])
    assert data.task_sizes["hints"] == 0.75 and data.task_sizes["blocks"] == 3
    assert data.sizes[-1] == "hints=0.75" and len(data.sizes) == 6
    again = by_name(data.sizes)
    assert sizes_of(data.sizes, data.task.sizes, "it") == data.task_sizes and len(again) == 6


def test_test_split_is_fixed_and_training_batches_are_not():
    one, two = (
        registry.data_of(registry.configs("tasks", data="template", seed=seed)[1], 128)
        for seed in (0, 1)
    )
    assert np.array_equal(one.val[0], two.val[0]) and one.val[0][:, :6].min() >= 2048
    assert one.train[0][:, :6].max() < 2048
    assert one.n_words == 2 * 2048 + 15 + 1 and one.draw(3, 3)[0].shape == (3, 7)
    assert len(one.val[0]) == 1000 and one.val[0].dtype == one.val[1].dtype == np.int32
    two.seed = 1
    assert torch.equal(one.draw(3, 8)[0], one.draw(3, 8)[0])
    assert not torch.equal(one.draw(3, 8)[0], one.draw(4, 8)[0])
    assert not torch.equal(one.draw(3, 8)[0], two.draw(3, 8)[0])


@pytest.mark.parametrize("name", ["walk", "hold", "sums", "strides"])
def test_the_first_rings_alone_are_asked(name, model, monkeypatch):
    """Of however many the test has; each of these is looped on and on."""
    monkeypatch.setattr(f"minidepth_lab.tasks.{name}.RINGS_TESTED", 10)
    task = TASKS[name]
    far = dict(far=20) if "far" in task.sizes else {}
    sizes, tokens, targets = draw_of(task, 30, **far)
    n_words = int(max(tokens.max(), targets.max())) + 1
    looped = dict(n_layers=1, n_loops=3, loop_start="recall", tie_weights=False)
    gpt = model(vocab_size=n_words, block_size=tokens.size(1), **looped)
    for method in (task.accuracy, task.final_accuracy):
        first = method(gpt, tokens[:10], targets[:10], **sizes)
        assert method(gpt, tokens, targets, **sizes) == first


def test_hints_are_given_in_the_first_part_of_training_alone(tmp_path, monkeypatch):
    given, real = [], IclTemplate.draw

    def see(self, *a, hinted=None, **k):
        given.append(hinted)
        return real(self, *a, hinted=hinted, **k)

    settings = dict(data="icl_template", steps=20, warmup_steps=1)
    settings |= dict(n_layers=1, batch_size=2, eval_every=20, out_dir=str(tmp_path))
    m, t = registry.configs("tasks", sizes=("hints=0.5", "symbols=16"), **settings)
    data = registry.data_of(t, m.block_size)
    monkeypatch.setattr(IclTemplate, "draw", see)
    run = running.train(m, t, data)
    assert given == [1.0] * 2 + [0.2] * 8 + [None] * 10
    # names of patterns are words too, and the test split asks for none
    assert data.n_words == 2 * 16 + 8 + 1 + 3 == run.model.config.vocab_size
    assert data.val[1].max() < 2 * 16 + 8
    monkeypatch.undo()
    t = registry.configs("tasks", sizes=("hints=0", "symbols=16"), **settings)[1]
    assert registry.data_of(t, m.block_size).n_words == 2 * 16 + 8 + 1


def test_khop_accuracy_leaves_out_bottom_and_is_told_by_hops():
    data = registry.data_of(
        registry.configs("tasks", data="khop", sizes=("hops=1+3", "length=20"))[1]
    )
    tokens, targets = (torch.as_tensor(part).long() for part in data.val)

    class Oracle(torch.nn.Module):
        """Right for k = 1, a symbol further for k = 3, never ⊥."""

        def __init__(self):
            super().__init__()
            self.anchor = torch.nn.Parameter(torch.zeros(1))

        def forward(self, x):
            at = [(tokens == row).all(1).nonzero()[0, 0] for row in x]
            y = targets[torch.stack(at)].clamp(min=0)
            y = (y + (x[:, :1] == 4 + 3)) % 4
            return torch.nn.functional.one_hot(y, data.n_words).float()

    found = data.evaluate(Oracle())
    by_hops = found["accuracy_by"]["hops"]
    assert {k: part["accuracy"] for k, part in by_hops.items()} == {"1": 1.0, "3": 0.0}
    assert 0.4 < found["accuracy"] < 0.7
    for k, part in by_hops.items():  # what each is to be compared with
        expected = TASKS["khop"].chance(length=20, hops=(int(k),))[1]
        assert part["shortcut"] == pytest.approx(expected)


def trained(preset="tasks", resume=False, stop=lambda: False, **settings):
    m, t = registry.configs(preset, **settings)
    return running.train(m, t, registry.data_of(t, m.block_size), resume=resume, stop=stop)


def test_two_layers_answer_in_context_and_one_does_not(tmp_path, solved):
    run = trained(n_layers=1, out_dir=str(tmp_path), name="one", eval_every=500)
    assert run.tokenizer is None and run.log[-1]["shortcut"] == 1 / 8
    result = results.result(solved)
    assert run.log[-1]["accuracy"] < 1 / 8 + 0.05 and result["accuracy"] > 0.99
    model, tokenizer = checkpoints.load(solved)
    assert tokenizer is None
    data = registry.data_of(checkpoints.read_config(solved)[1], 128)
    assert data.evaluate(model)["accuracy"] == result["accuracy"]
    config = json.loads(open(os.path.join(solved, "config.json")).read())
    assert config["train"]["sizes"] == ["symbols=16", "pairs=8"]  # all that were used


def test_a_task_run_is_resumed_to_the_same_losses(tmp_path):
    settings = dict(n_layers=1, steps=9, warmup_steps=2, eval_every=3, out_dir=str(tmp_path))
    whole = trained(name="whole", **settings)
    stops = iter([False] * 4 + [True] * 9)
    assert not trained(name="halves", stop=lambda: next(stops), **settings).finished
    m, t = checkpoints.read_config(os.path.join(tmp_path, "halves"))
    halves = running.train(m, t, registry.data_of(t, m.block_size), resume=True)
    keys = ("step", "train_loss", "val_loss", "accuracy")
    assert [[row[k] for k in keys] for row in whole.log] == [
        [row[k] for k in keys] for row in halves.log
    ]


def test_a_resumed_task_goes_on_with_its_hints(tmp_path):
    settings = dict(data="icl_template", n_layers=1, steps=6, warmup_steps=1, eval_every=3)
    settings |= dict(out_dir=str(tmp_path), batch_size=4, d_model=16, sizes=("symbols=12",))
    whole = trained(name="whole", **settings)
    stops = iter([False] * 2 + [True] * 9)
    assert not trained(name="halves", stop=lambda: next(stops), **settings).finished
    halves = trained(name="halves", resume=True, **settings)
    assert [row["train_loss"] for row in whole.log] == [row["train_loss"] for row in halves.log]


def test_the_command_takes_a_task(tmp_path, capsys):
    line = f"--data khop --n_layers 1 --steps 4 --warmup_steps 1 --out_dir {tmp_path}"
    assert train.main([*line.split(), "--sizes", "length=16,symbols=3,hops=1+2"]) == 0
    out = capsys.readouterr().out
    assert "preset tasks: khop is a depth task" in out
    assert "data khop (symbols 3, length 16, hops 1+2), drawn anew each step" in out
    (folder,) = os.listdir(tmp_path)
    names = set(os.listdir(tmp_path / folder)) - {".lock"}
    assert names == {"config.json", "log.jsonl", "model.safetensors", "state.pt", "curve.png"}
    last = json.loads((tmp_path / folder / "log.jsonl").read_text().splitlines()[-1])
    assert last["accuracy_by"]["hops"].keys() == {"1", "2"}
    config = json.loads((tmp_path / folder / "config.json").read_text())
    assert config["train"]["sizes"] == ["symbols=3", "length=16", "hops=1+2"]
    assert train.main(["--sample", str(tmp_path / folder), "--prompt", "a"]) == 2
    assert "knows no text" in capsys.readouterr().err


OWN = """
import torch
from minidepth_lab.tasks import Task, ask

class parity(Task):
    settings = dict(steps=3, n_heads=1)

    def draw(self, batch, generator, test=False, length=5, shares=(0.5, 0.1)):
        x = torch.randint(2, (batch, length), generator=generator)
        return ask(x, 3 + x.sum(1) % 2, 2)

    def guess(self, **_):
        return 0.5

TASK = parity()
"""


def test_a_task_of_ones_own_is_one_class_in_a_file(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(own_code, "NAMED", set())
    path = tmp_path / "parity.py"
    path.write_text(OWN)
    line = f"--data {path} --n_layers 1 --warmup_steps 0 --out_dir {tmp_path} --name run"
    assert train.main([*line.split(), "--sizes", "length=6"]) == 0
    out = capsys.readouterr().out
    assert "parity.py is a depth task" in out and "accuracy of guessing 0.500" in out
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert config["train"]["sizes"] == ["length=6", "shares=0.5+0.1"]
    assert config["train"]["steps"] == 3 and config["model"]["n_heads"] == 1
    last = json.loads((tmp_path / "run" / "log.jsonl").read_text().splitlines()[-1])
    assert last["guess"] == 0.5 and "shortcut" not in last
    # longer: Python knows a changed file by its second and its size
    path.write_text(OWN.replace("TASK =", "MY_TASK ="))
    assert train.main([*line.split()[:-2], "--name", "other"]) == 2
    assert "has no TASK" in capsys.readouterr().err


def test_a_task_says_what_it_does_not_know():
    class silent(tasks.Task):
        def draw(self, batch, generator, test=False, n=3):
            return tuple(torch.randint(n, (batch, 2), generator=generator) for _ in range(2))

    task = silent()  # named after its file, as --data names it
    assert (task.name, task.sizes, task.settings) == ("test_tasks", dict(n=3), {})
    assert task.chance(n=5) == (None, None)
    with pytest.raises(ValueError, match="test_tasks has no steps to look for"):
        task.links(None, None)
