"""The depth tasks against slow, obvious solutions, and what the command makes of them."""

import functools
import itertools
import json
import os

import numpy as np
import pytest
import torch

import minidepth as md
import train

N = 2000  # sequences a case


def rows(name, test=False, n=N, seed="test", **sizes):
    """(tokens, targets) of n sequences, as lists."""
    tokens, targets = md.TASKS[name](n, md.generator(seed), test, **sizes)
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
    known = [tuple(row) for row in md.pair_patterns(length).tolist()]
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
    for x, y in rows("icl_template", hints=share, symbols=40):
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
    assert 1 - md.chance("khop", hops=(k,))[1] == pytest.approx(error, abs=0.005)
    if bottom:
        _, y = md.khop(4000, md.generator(0), hops=(k,))
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
    assert md.chance(name, **sizes) == expected
    tokens, targets = md.TASKS[name](4000, md.generator(1), **sizes)
    answers = targets[targets >= 0]
    most = answers.bincount().max() / len(answers)  # the best constant answer
    assert most == pytest.approx(expected[0], abs=0.05)


@pytest.mark.parametrize("name", md.TASKS)
def test_batches_are_a_function_of_the_generator(name):
    draw = lambda seed: md.TASKS[name](8, md.generator(seed))  # noqa: E731
    again = zip(draw(1), draw(1), draw(2))
    assert all(torch.equal(a, b) and not torch.equal(a, c) for a, b, c in again)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (dict(data=("icqa",), sizes=("pairs=17",)), "17 different questions, but there are 16"),
        (dict(data=("icqa",), sizes=("colour=3",)), "sizes colour is none of icqa's: give symbols"),
        (dict(data=("icqa",), sizes=("pairs=x",)), "sizes pairs=x does not work"),
        (dict(data=("icqa",), sizes=("pairs=0",)), "at least 1"),
        (dict(data=("icqa",), block_size=23), "block_size 23 is too short .* 24 tokens"),
        (dict(data=("template",), sizes=("length=5",)), "length 5 makes no list of pairs"),
        (dict(data=("template",), sizes=("symbols=2",)), "3 different symbols, but there are 2"),
        (dict(data=("icl_template",), sizes=("blocks=16",)), "16 different patterns"),
        (dict(data=("khop",), hops=(26,)), "hops 26 is too much: length 48 .* room for 12"),
        (dict(data=("icqa",), curriculum=0.5), "0.5 is for embedded problems; give 0 for icqa"),
        (dict(data=("icqa",), hints=0.5), "hints 0.5 is for icl_template alone"),
        (dict(data=("khop", "icqa")), "the task icqa does not mix"),
        (dict(data=("khop", "embedded")), "the task khop does not mix"),
    ],
)
def test_sizes_that_make_a_task_impossible_say_so(settings, words):
    m, t = md.configs("tasks", **settings)
    with pytest.raises(ValueError, match=words):
        md.load_data(t, m.block_size)


def test_test_split_is_fixed_and_training_batches_are_not():
    load = lambda seed: md.load_data(md.configs("tasks", data=("template",), seed=seed)[1])  # noqa: E731
    one, two = load(0), load(1)
    assert torch.equal(one.val[0], two.val[0]) and one.val[0][:, :6].min() >= 2048
    assert one.train[0][:, :6].max() < 2048
    assert one.n_words == 2 * 2048 + 15 + 1 and one.draw(3, md.generator(0))[0].shape == (3, 7)


def test_hints_are_given_in_the_first_part_of_training_alone(tmp_path, monkeypatch):
    given, real = [], md.icl_template
    see = lambda *a, hints=None, **k: given.append(hints) or real(*a, hints=hints, **k)  # noqa: E731
    monkeypatch.setitem(md.TASKS, "icl_template", functools.wraps(real)(see))
    settings = dict(data=("icl_template",), steps=20, hints=0.5, warmup_steps=1, batch_size=2)
    m, t = md.configs("tasks", n_layers=1, eval_every=20, out_dir=str(tmp_path), **settings)
    data = md.load_data(t, m.block_size)
    given.clear()
    run = md.train(m, t, data)
    assert given == [1.0] * 2 + [0.2] * 8 + [None] * 10
    # names of patterns are words too, and the test split asks for none
    assert data.n_words == 2 * 2048 + 8 + 1 + 3 == run.model.config.vocab_size
    assert data.val[1].max() < 2 * 2048 + 8


def test_khop_accuracy_leaves_out_bottom_and_is_told_by_hops():
    data = md.load_data(md.configs("tasks", data=("khop",), hops=(1, 3), sizes=("length=20",))[1])
    tokens, targets = data.val

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

    found = md.task_accuracy(Oracle(), data)
    assert found["accuracy_by_hops"] == {"1": 1.0, "3": 0.0} and 0.4 < found["accuracy"] < 0.7


@pytest.fixture(scope="module")
def solved(tmp_path_factory):
    """The folder of two layers that have learned icqa, in the steps of the tasks preset."""
    settings = dict(n_layers=2, out_dir=str(tmp_path_factory.mktemp("runs")), name="two")
    return md.train(*md.configs("tasks", eval_every=500, **settings)).dir


def test_two_layers_answer_in_context_and_one_does_not(tmp_path, solved):
    settings = dict(n_layers=1, out_dir=str(tmp_path), name="one", eval_every=500)
    run = md.train(*md.configs("tasks", **settings))
    assert run.tokenizer is None and run.log[-1]["shortcut"] == 1 / 8
    assert run.log[-1]["accuracy"] < 1 / 8 + 0.05 and md.result(solved)["accuracy"] > 0.99
    model, tokenizer = md.load(solved)
    assert tokenizer is None
    data = md.load_data(md.read_config(solved)[1])
    assert md.task_accuracy(model, data)["accuracy"] == md.result(solved)["accuracy"]


def test_a_task_run_is_resumed_to_the_same_losses(tmp_path):
    settings = dict(n_layers=1, steps=9, warmup_steps=2, eval_every=3, out_dir=str(tmp_path))
    whole = md.train(*md.configs("tasks", name="whole", **settings))
    stops = iter([False] * 4 + [True] * 9)
    m, t = md.configs("tasks", name="halves", **settings)
    assert not md.train(m, t, stop=lambda: next(stops)).finished
    halves = md.train(m, t, resume=True)
    keys = ("step", "train_loss", "val_loss", "accuracy")
    assert [[row[k] for k in keys] for row in whole.log] == [
        [row[k] for k in keys] for row in halves.log
    ]


def test_the_command_takes_a_task(tmp_path, capsys):
    line = f"--data khop --n_layers 1 --steps 4 --warmup_steps 1 --out_dir {tmp_path} --hops 1,2"
    assert train.main([*line.split(), "--sizes", "length=16,symbols=3"]) == 0
    out = capsys.readouterr().out
    assert "preset tasks: khop is a depth task" in out
    assert "data khop (symbols 3, length 16, hops 1,2), drawn anew each step" in out
    (folder,) = os.listdir(tmp_path)
    assert set(os.listdir(tmp_path / folder)) == {
        "config.json", "log.jsonl", "model.safetensors", "state.pt", "curve.png"
    }  # fmt: skip
    last = json.loads((tmp_path / folder / "log.jsonl").read_text().splitlines()[-1])
    assert last["accuracy_by_hops"].keys() == {"1", "2"}
    assert train.main(["--sample", str(tmp_path / folder), "--prompt", "a"]) == 2
    assert "knows no text" in capsys.readouterr().err


# ---------- how a task is solved ----------


def linked(name, n=200, **sizes):
    """(tokens, targets, {step: {query: set of keys}}) of each of n sequences."""
    tokens, targets = md.TASKS[name](n, md.generator("links"), **sizes)
    found = md.links(name, tokens, targets, **md.task_sizes(name, **sizes))
    for i, (x, y) in enumerate(zip(tokens.tolist(), targets.tolist())):
        steps = {}
        for step, link in found.items():
            assert link.shape == (n, len(x), len(x)) and not link[i].triu().any()  # earlier keys
            keys = {}
            for query, key in link[i].nonzero().tolist():
                keys.setdefault(query, set()).add(key)
            steps[step] = keys
        yield x, y, steps


def test_links_of_icqa():
    for x, y, steps in linked("icqa", pairs=4):
        assert steps["copy"] == {1: {0}, 3: {2}, 5: {4}, 7: {6}}
        assert steps["match"] == {q: {x.index(y[q], 0, 8)} for q in range(8, 12)}


def test_links_of_the_templates():
    for x, _, steps in linked("template"):
        equals = {q: {x.index(x[q])} for q in range(6) if x.index(x[q]) < q}
        assert steps == dict(parse=equals, read={6: set(equals)})
    for x, y, steps in linked("icl_template", blocks=2, queries=2):
        equals = {q: {x.index(x[q])} for q in range(20) if q % 5 < 4 and x.index(x[q]) < q}
        reads = {end: {q for q in equals if q // 5 == end // 5} for end in (4, 9, 14, 19)}
        assert steps["parse"] == equals and steps["read"] == reads
        assert steps["match"] == {q: {x.index(y[q])} for q in (14, 19)}


def test_links_of_khop():
    for x, _, steps in linked("khop", hops=(2,), length=20):
        s, found = "".join(map(str, x[1:])), {}
        for i in range(1, 21):  # the last place before i that follows the symbol of i
            found[i] = {j for j in range(2, i + 1) if s[j - 2] == s[i - 1]}
        one = {i: {max(places)} for i, places in found.items() if places}
        two = {i: one[max(at)] for i, at in one.items() if max(at) in one}
        assert steps == {"copy": {q: {q - 1} for q in range(2, 21)}, "hop 1": one, "hop 2": two}


def test_what_has_no_steps_says_so():
    with pytest.raises(ValueError, match="memorize has no steps to look for"):
        md.links("memorize", *md.memorize(2, md.generator(0)))


def test_an_ablated_head_adds_nothing(model):
    gpt, tokens = model(), torch.randint(61, (2, 9))
    before, copy = gpt(tokens), model()
    with torch.no_grad():  # the same by weights: the head's columns of the output matrix
        copy.blocks[1].attn.out.weight[:, 8:16] = 0
        copy.blocks[2].attn.out.weight[:, 24:] = 0
    with md.ablated(gpt, [(1, 1), (2, 3)]):
        cut = gpt(tokens)
    assert torch.allclose(cut, copy(tokens), atol=1e-6) and not torch.allclose(
        cut, before, atol=0.1
    )
    assert torch.equal(gpt(tokens), before)
    with pytest.raises(RuntimeError), md.ablated(gpt, [(0, 0)]):
        raise RuntimeError
    assert torch.equal(gpt(tokens), before)


def test_each_pass_of_a_looped_model_is_ablated_by_itself(model):
    looped, stacked = model(n_layers=2, n_loops=2), model(n_layers=4)
    for block, twin in zip([*looped.blocks, *looped.blocks], stacked.blocks):
        twin.load_state_dict(block.state_dict())
    for part in ("token_embedding", "position_embedding", "norm"):
        getattr(stacked, part).load_state_dict(getattr(looped, part).state_dict())
    tokens, heads = torch.randint(61, (2, 9)), [(1, 1), (2, 3), (3, 1)]
    for _ in range(2):  # counted anew in each forward pass
        for cut in (heads, heads[:1], heads[2:]):
            with md.ablated(looped, cut), md.ablated(stacked, cut):
                assert torch.allclose(looped(tokens), stacked(tokens), atol=1e-5)
    m, t = md.configs("tasks", n_layers=1, n_loops=3, vocab_size=40)
    found = md.mechanism(md.GPT(m), md.load_data(t, m.block_size), "icqa", n=20)
    shapes = [np.shape(part) for part in (found["without"], found["steps"]["copy"]["weight"])]
    assert shapes == [(3, 2)] * 2


def test_mechanism_and_its_command(solved, capsys):
    model, _ = md.load(solved)
    data = md.load_data(md.read_config(solved)[1])
    found = md.mechanism(model, data, "icqa")
    copy, match = found["steps"]["copy"], found["steps"]["match"]
    # one layer copies each question to its answer, the next finds it: and nothing works without
    assert {layer for layer, _ in copy["heads"]} == {0} and copy["without"] < 0.7
    assert {layer for layer, _ in match["heads"]} == {1} and match["without"] < 0.3
    tokens, targets = (part[:200] for part in data.val)
    maps = md.attention_maps(model, tokens)
    layer, head = match["heads"][0]
    given = [maps[layer][b, head, q, tokens[b].tolist().index(targets[b, q])]
             for b in range(200) for q in range(16, 24)]  # fmt: skip
    assert sum(given) / len(given) == pytest.approx(match["weight"][layer][head], abs=1e-4)
    assert len(found["without"]) == 2 and found["accuracy"] > 0.99
    assert train.main(["--mechanism", solved]) == 0
    assert "match: heads " in capsys.readouterr().out
    written = json.load(open(os.path.join(solved, "mechanism.json")))
    assert written["steps"]["match"]["without"] == match["without"]
    assert os.path.getsize(os.path.join(solved, "mechanism.png")) > 10_000


def test_the_mechanism_of_a_text_model_is_no_question(finished, capsys):
    assert train.main(["--mechanism", finished]) == 2
    assert "was not trained on a depth task" in capsys.readouterr().err
