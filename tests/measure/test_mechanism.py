"""How a model solves a depth task: where it should look, where it looks, what it needs."""

import itertools
import json
import shutil

import numpy as np
import pytest
import torch

import minidepth as md
import train
from minidepth_lab import tasks
from minidepth_lab.keep import checkpoints, registry, running
from minidepth_lab.measure import inspect
from minidepth_lab.models import variants


def linked(name, n=200, **sizes):
    """(tokens, targets, {step: {query: set of keys}}) of each of n sequences."""
    task = tasks.TASKS[name]
    tokens, targets = task.draw(n, md.generator("links"), **sizes)
    found = task.links(tokens, targets, **(task.sizes | sizes))
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


def test_links_of_pointers():
    for x, _, steps in linked("pointers"):
        ahead = {i: {x[i]} for i in range(16) if x[i] < i}
        behind = {i: {j for j in range(i) if x[j] == i} for i in range(16)}
        assert steps["where it points"] == ahead
        assert steps["what points to it"] == {i: places for i, places in behind.items() if places}
        assert steps["jump 1"] == {i: {x[i]} for i in range(17, 48, 2)}


def test_an_ablated_head_adds_nothing(model):
    gpt, tokens = model(), torch.randint(61, (2, 9))
    before, copy = gpt(tokens), model()
    with torch.no_grad():  # the same by weights: the head's columns of the output matrix
        copy.blocks[1].attn.out.weight[:, 8:16] = 0
        copy.blocks[2].attn.out.weight[:, 24:] = 0
    with inspect.ablated(gpt, [(1, 1), (2, 3)]):
        cut = gpt(tokens)
    assert torch.allclose(cut, copy(tokens), atol=1e-6) and not torch.allclose(
        cut, before, atol=0.1
    )
    assert torch.equal(gpt(tokens), before)
    with pytest.raises(RuntimeError), inspect.ablated(gpt, [(0, 0)]):
        raise RuntimeError
    assert torch.equal(gpt(tokens), before)


@pytest.mark.parametrize("layer, head", [(6, 0), (-1, 0), (5, 4), (5, -1)])
def test_what_is_not_there_cannot_be_left_out(model, layer, head):
    gpt = model(n_layers=3, n_loops=2)  # of four heads
    ways = [inspect.ablated(gpt, [(0, 0), (layer, head)])]
    if head == 0:
        ways.append(inspect.skipped(gpt, layer))
        ways.append(inspect.without_links(gpt, layer, torch.zeros(2, 9, 9, dtype=torch.bool)))
    for way in ways:
        with pytest.raises(ValueError, match=f"{layer}.* is not there"), way:
            pass
    assert not any(module._forward_pre_hooks for module in gpt.modules())


def test_targets_may_lie_on_another_device(model):
    gpt, tokens = model().to("meta"), torch.zeros(2, 9, dtype=torch.int64)
    assert [each.shape for each in inspect.known(gpt, tokens, tokens)] == [(2, 9)] * 4


def test_each_pass_of_a_looped_model_is_ablated_by_itself(model):
    looped, stacked = model(n_layers=2, n_loops=2), model(n_layers=4)
    for block, twin in zip([*looped.blocks, *looped.blocks], stacked.blocks):
        twin.load_state_dict(block.state_dict())
    for part in ("token_embedding", "position_embedding", "norm"):
        getattr(stacked, part).load_state_dict(getattr(looped, part).state_dict())
    tokens, heads = torch.randint(61, (2, 9)), [(1, 1), (2, 3), (3, 1)]
    for _ in range(2):  # counted anew in each forward pass
        for cut in (heads, heads[:1], heads[2:]):
            with inspect.ablated(looped, cut), inspect.ablated(stacked, cut):
                assert torch.allclose(looped(tokens), stacked(tokens), atol=1e-5)
    longer = model(n_layers=2, n_loops=5)  # more than it was trained with: each is its own
    longer.load_state_dict(looped.state_dict())
    with inspect.ablated(longer, heads):
        cut = longer(tokens)
    with inspect.ablated(looped, [(1, 1)]):
        with inspect.ablated(looped, heads[1:]):
            assert torch.allclose(looped(tokens, loops=5), cut, atol=1e-5)
        assert not torch.allclose(looped(tokens, loops=5), cut, atol=1e-2)
    m, t = registry.configs("tasks", data="icqa", n_layers=1, n_loops=3, vocab_size=40)
    found = inspect.mechanism(variants.GPT(m), registry.data_of(t, m.block_size), n=20)
    shapes = [np.shape(part) for part in (found["without"], found["steps"]["copy"]["weight"])]
    assert shapes == [(3, 2)] * 2


def test_links_that_are_cut_get_no_weight_and_come_back(model):
    """Against attention written out in float64, query by query."""
    gpt, tokens = model(n_layers=2), torch.randint(61, (2, 9))
    drawn = torch.rand(2, 9, 9, generator=md.generator("links"))
    link = (drawn < 0.4).tril(-1)  # each query sees itself
    before = gpt(tokens)
    with inspect.without_links(gpt, 1, link):
        cut = gpt(tokens)
    assert torch.equal(gpt(tokens), before) and not torch.allclose(cut, before, atol=0.1)

    exact = model(n_layers=2).double()
    x = exact.blocks[0](exact.embed(tokens))
    attn = exact.blocks[1].attn
    q, k, v = attn.project(exact.blocks[1].norm1(x))
    heads = torch.zeros_like(q)
    for b, h, i in itertools.product(range(2), range(attn.n_heads), range(9)):
        seen = [j for j in range(i + 1) if not link[b, i, j]]
        weights = (attn.scale * k[b, h, seen] @ q[b, h, i]).softmax(0)
        heads[b, h, i] = weights @ v[b, h, seen]
    x = x + attn.out(heads.transpose(1, 2).reshape(x.shape))
    if exact.blocks[1].has_mlp:
        x = x + exact.blocks[1].mlp(exact.blocks[1].norm2(x))
    logits = exact.norm(x) @ exact.head_weight.T
    assert torch.allclose(cut.double(), logits, atol=1e-4)

    with pytest.raises(RuntimeError), inspect.without_links(gpt, 0, link):
        raise RuntimeError
    assert torch.equal(gpt(tokens), before)


def test_links_are_cut_in_one_loop_of_a_looped_model(model):
    looped, tokens = model(n_layers=2, n_loops=2), torch.randint(61, (2, 9))
    link = torch.ones(2, 9, 9, dtype=torch.bool).tril(-1)  # each sees itself alone
    plain = [x.detach() for x in looped.run_loops(tokens)]
    with inspect.without_links(looped, 2, link):
        first, second = (x.detach() for x in looped.run_loops(tokens))
        with inspect.without_links(looped, 0, link):
            both, _ = (x.detach() for x in looped.run_loops(tokens))
        again, same = (x.detach() for x in looped.run_loops(tokens))
    assert torch.equal(first, plain[0]) and not torch.allclose(second, plain[1], atol=0.1)
    assert not torch.allclose(both, plain[0], atol=0.1)
    assert torch.equal(again, first) and torch.equal(same, second)


def test_mechanism_and_its_command(solved, tmp_path, capsys, kept):
    model, _ = checkpoints.load(solved)
    data = registry.data_of(checkpoints.read_config(solved)[1], model.config.block_size)
    found = inspect.mechanism(model, data)
    copy, match = found["steps"]["copy"], found["steps"]["match"]
    # one layer copies each question to its answer, the next finds it: and nothing works without
    assert {layer for layer, _ in copy["heads"]} == {0} and copy["without"] < 0.7
    assert {layer for layer, _ in match["heads"]} == {1} and match["without"] < 0.3
    tokens, targets = (torch.tensor(part[:200]) for part in data.val)
    maps = inspect.attention_maps(model, tokens)
    layer, head = match["heads"][0]
    given = [maps[layer][b, head, q, tokens[b].tolist().index(targets[b, q])]
             for b in range(200) for q in range(16, 24)]  # fmt: skip
    assert sum(given) / len(given) == pytest.approx(match["weight"][layer][head], abs=1e-4)
    assert len(found["without"]) == 2 and found["accuracy"] > 0.99
    folder = shutil.copytree(solved, tmp_path / "run")
    assert train.main(["--mechanism", str(folder)]) == 0
    out = capsys.readouterr().out
    said = f"accuracy {found['accuracy']:.3f} on the first 200 of 1,000 test sequences\n"
    assert out.startswith(said) and "match: heads " in out
    written = json.load(open(folder / "mechanism.json"))
    assert written["steps"]["match"]["without"] == match["without"]
    # a panel a step: the map of the head that does it most, with circles where that should look
    _, panel, last, _ = kept[0].axes
    head = max(range(2), key=match["weight"][layer].__getitem__)
    assert panel.get_title().startswith(f"match: layer {layer + 1}, head {head + 1}\n")
    shades = torch.tensor(panel.images[0].get_array().data)
    torch.testing.assert_close(shades, maps[layer][0, head], atol=1e-5, rtol=0)
    shown = list(zip(panel.lines[0].get_xdata(), panel.lines[0].get_ydata()))
    asked, answers = tokens[0].tolist(), targets[0].tolist()
    assert shown == [(asked.index(answers[q]), q) for q in range(16, 24)]
    assert panel.get_xlabel().startswith("key") and panel.get_ylabel() == "query"
    # and one more of the accuracy without each head
    assert last.images[0].get_array().data.tolist() == found["without"]
    assert last.get_title().endswith(f"(with all: {found['accuracy']:.2f})")
    assert (last.get_xlabel(), last.get_ylabel()) == ("head", "layer")


def test_the_mechanism_of_a_text_model_is_no_question(finished, capsys):
    assert train.main(["--mechanism", finished]) == 2
    assert f"--mechanism {finished} was not trained on a depth task" in capsys.readouterr().err


def steps_of(data, **changes):
    """The steps that a model of two layers takes which has learned nothing."""
    m, t = registry.configs("tasks", data=data, n_layers=2, d_model=32, **changes)
    data = registry.data_of(t, m.block_size)
    torch.manual_seed(0)
    return inspect.mechanism(variants.GPT(running.complete_configs(m, t, data)[0]), data)["steps"]


def test_heads_that_look_at_all_tokens_alike_have_the_known_weights():
    """Weights so small that every key gets the same: the end of a string of six, the seventh token,
    reads three of seven, and nobody gives half."""
    steps = steps_of("template", n_heads=2, init_std=1e-9)
    for layer in steps["read"]["weight"]:
        assert layer == pytest.approx([3 / 7, 3 / 7], abs=1e-5)
    assert steps["read"]["heads"] == []
    # an equal symbol, one key of the i + 1 in sight: at the second place or later, up to the sixth
    for layer in steps["parse"]["weight"]:
        assert all(1 / 6 < weight < 1 / 2 for weight in layer)


def test_the_heads_named_are_those_that_give_half_or_more():
    """One pair: its answer has two keys in sight, and an untrained head gives the question about
    half, one more and one less."""
    copy = steps_of("icqa", sizes=("pairs=1",), n_heads=8, init_std=0.4)["copy"]
    flat = {(i, j): w for i, layer in enumerate(copy["weight"]) for j, w in enumerate(layer)}
    near = [w for w in flat.values() if 0.3 < w < 0.7]
    assert min(near) < 0.5 < max(near) and len(flat) == 16
    assert {tuple(head) for head in copy["heads"]} == {head for head, w in flat.items() if w >= 0.5}
