"""Attention captured, measured and drawn, against plain loops in float64."""

import contextlib
import itertools
import json
import math
import shutil

import pytest
import torch
from torch.nn.functional import gelu, layer_norm

import train
from minidepth_lab.keep import checkpoints
from minidepth_lab.measure import inspect
from minidepth_lab.rows import to_data

HEADS = (4, 2, 8)


def tokens_of(batch, T, words=61):
    return torch.randint(words, (batch, T), generator=torch.Generator().manual_seed(3))


def maps_by_hand(gpt, tokens):
    """attention_maps() of a model with learned positions, in float64, head by head."""
    w = {k: v.double() for k, v in gpt.state_dict().items()}
    c, maps = gpt.config, []
    x = w["token_embedding.weight"][tokens] + w["position_embedding.weight"][: tokens.size(1)]
    later = torch.ones(tokens.size(1), tokens.size(1), dtype=torch.bool).triu(1)

    def norm(x, name):
        return layer_norm(x, (c.d_model,), w[f"{name}.weight"], w[f"{name}.bias"])

    for i in [*range(c.n_layers)] * c.n_loops:
        name, H = f"blocks.{i}", c.heads[i]
        q, k, v = (norm(x, f"{name}.norm1") @ w[f"{name}.attn.qkv.weight"].T).chunk(3, -1)
        D, heads, outputs = c.d_model // H, [], []
        for h in range(H):
            part = slice(h * D, (h + 1) * D)
            scores = q[..., part] @ k[..., part].transpose(1, 2) / D**0.5
            heads.append(scores.masked_fill(later, -math.inf).softmax(-1))
            outputs.append(heads[-1] @ v[..., part])
        maps.append(torch.stack(heads, 1))
        x = x + torch.cat(outputs, -1) @ w[f"{name}.attn.out.weight"].T
        up = gelu(norm(x, f"{name}.norm2") @ w[f"{name}.mlp.up.weight"].T)
        x = x + up @ w[f"{name}.mlp.out.weight"].T
    return maps


def stats_by_hand(weights, count_masked, counted, window=99):
    """head_stats() with one Python number after the other."""
    heads = []
    for head in weights.transpose(0, 1):
        entropies, normalised, entries, few, relative = [], [], 0, 0, 0
        for b, i in counted.nonzero().tolist():
            row = head[b, i].tolist()
            seen = row[max(0, i + 1 - window) : i + 1]
            entropies.append(-sum(p * math.log(p) for p in seen if p > 0))
            normalised += [entropies[-1] / math.log(len(seen))] if i else []
            shown = row if count_masked else seen
            entries += len(shown)
            few += sum(p < 1e-3 for p in shown)
            relative += sum(p < 0.1 / len(seen) for p in shown)
        mean = sum(entropies) / len(entropies)
        keys = sum(map(math.exp, entropies)) / len(entropies)
        heads.append((mean, sum(normalised) / len(normalised), keys, few / entries,
                      relative / entries))  # fmt: skip
    names = ("entropy", "normalised_entropy", "effective_keys", "sparsity", "relative_sparsity")
    return dict(zip(names, torch.tensor(heads).T))


@pytest.mark.parametrize("changes", [dict(), dict(n_loops=2, n_heads=HEADS)], ids=str)
def test_maps_equal_float64(model, changes):
    gpt, tokens = model(**changes), tokens_of(2, 11)
    maps, expected = inspect.attention_maps(gpt, tokens), maps_by_hand(gpt, tokens)
    assert len(maps) == len(expected) == 3 * gpt.config.n_loops
    for found, hand in zip(maps, expected):
        assert found.dtype == torch.float32
        torch.testing.assert_close(found, hand.float(), rtol=1e-4, atol=1e-6)
    assert not torch.allclose(maps[0][:, :2], maps[1][:, :2], atol=0.01)


@pytest.mark.parametrize("count_masked", [False, True])
def test_statistics_equal_loops(model, count_masked):
    gpt, tokens = model(n_heads=HEADS, n_loops=2), tokens_of(3, 13)
    for layer in gpt.blocks:  # sharp enough that some weights lie below both thresholds
        layer.attn.scale *= 3
    counted = torch.rand(3, 13, generator=torch.Generator().manual_seed(1)) < 0.6
    maps = inspect.attention_maps(gpt, tokens)
    hand = [stats_by_hand(weights.double(), count_masked, counted) for weights in maps]
    for found in (
        inspect.attention_stats(maps, count_masked, counted),
        inspect.model_stats(gpt, tokens, count_masked, counted),
    ):
        assert found.keys() == hand[0].keys()
        for name, layers in found.items():
            for layer, expected in zip(layers, hand, strict=True):
                torch.testing.assert_close(layer, expected[name], rtol=1e-4, atol=1e-6)
    assert 0 < found["sparsity"][2].mean() < found["relative_sparsity"][2].mean() < 1


@pytest.mark.parametrize("count_masked", [False, True])
def test_what_a_window_hides_is_no_key(model, count_masked):
    gpt, tokens = model(attn_window=4), tokens_of(3, 13)
    found = inspect.model_stats(gpt, tokens, count_masked)
    every = torch.ones(3, 13)
    for layer, weights in enumerate(inspect.attention_maps(gpt, tokens)):
        hand = stats_by_hand(weights.double(), count_masked, every, 4 if layer == 1 else 99)
        for name, values in found.items():
            torch.testing.assert_close(values[layer], hand[name], rtol=1e-4, atol=1e-6)
    alone = inspect.model_stats(model(attn_window=1), tokens)  # a token that sees itself alone
    assert not alone["normalised_entropy"][1].any()


def test_watching_training_changes_nothing(model):
    def step(watch):
        gpt, seen = model(dropout=0.3, n_loops=2).train(), []
        torch.manual_seed(5)
        watching = inspect.watch_attention(gpt, lambda *each: seen.append(each))
        with watching if watch else contextlib.nullcontext():
            with torch.enable_grad():
                loss = gpt(tokens, tokens)[0].sum()
                loss.backward()
        return loss, [p.grad for p in gpt.parameters()], torch.rand(3), seen, gpt

    tokens = tokens_of(2, 11)
    loss, grads, draw, seen, gpt = step(True)
    plain, plain_grads, plain_draw, _, _ = step(False)
    assert loss == plain and torch.equal(draw, plain_draw)
    assert all(map(torch.equal, grads, plain_grads))
    assert [layer for layer, _ in seen] == [0, 1, 2, 0, 1, 2]
    for _, weights in seen:  # whole rows: no dropout on what is shown, though training goes on
        assert not weights.requires_grad
        torch.testing.assert_close(weights.sum(-1), torch.ones(2, 4, 11))
    gpt(tokens)
    assert len(seen) == 6


def test_a_wrapped_model_is_watched_too(model):
    wrapped, seen = torch.nn.DataParallel(model()), []
    with inspect.watch_attention(wrapped, lambda layer, weights: seen.append(layer)):
        wrapped(tokens_of(2, 5))
    assert seen == [0, 1, 2]
    found = inspect.model_stats(wrapped, tokens_of(2, 5))["entropy"]
    assert torch.equal(found, inspect.model_stats(wrapped.module, tokens_of(2, 5))["entropy"])


def test_an_error_leaves_nothing_behind(model):
    gpt = model(dropout=0.3).train()
    gpt.autocast_dtype = torch.bfloat16

    def fail(layer, weights):
        raise RuntimeError("seen enough")

    with pytest.raises(RuntimeError, match="seen enough"):
        with inspect.watch_attention(gpt, fail):
            gpt(tokens_of(1, 5))
    with pytest.raises(ValueError, match="30 tokens do not fit"):
        inspect.attention_maps(gpt, tokens_of(1, 30))
    assert gpt.training and gpt.autocast_dtype == torch.bfloat16
    assert not any(layer.attn._forward_pre_hooks for layer in gpt.blocks)


def test_statistics_are_exact_under_autocast(model):
    gpt, tokens, seen = model(n_layers=2), tokens_of(2, 16), []
    exact = inspect.attention_maps(gpt, tokens)
    gpt.autocast_dtype = torch.bfloat16
    for found, wanted in zip(inspect.attention_maps(gpt, tokens), exact, strict=True):
        assert torch.equal(found, wanted)
    with inspect.watch_attention(gpt, lambda layer, weights: seen.append(weights)):
        gpt(tokens)
    double = inspect.attention_maps(gpt.double(), tokens)[0]
    assert seen[0].dtype == double.dtype == torch.float32
    torch.testing.assert_close(seen[0], exact[0])  # the first layer's input is not rounded yet
    torch.testing.assert_close(double, exact[0], rtol=1e-4, atol=1e-6)


def test_the_command_measures_and_draws(finished, tmp_path, capsys):
    folder = tmp_path / "run"
    shutil.copytree(finished, folder)
    assert train.main(["--attention", str(folder), "--out_dir", str(tmp_path / "out")]) == 0
    out = capsys.readouterr().out
    found = json.loads((folder / "attention.json").read_text())
    for path in (folder / "attention.png", tmp_path / "out" / "attention_profiles.png"):
        assert path.read_bytes()[:4] == b"\x89PNG"
    gpt, tokenizer = checkpoints.load(finished)
    _, t = checkpoints.read_config(finished)
    tokens = to_data.load_data(t, gpt.config.block_size, tokenizer).val[0][: t.eval_blocks]
    tokens = torch.tensor(tokens).long()
    lengths = [int(row.nonzero().max()) + 1 for row in tokens]
    assert found["queries"] == sum(lengths) < tokens.numel()
    total = torch.zeros(2)
    for row, length in zip(tokens, lengths):  # the shorter rows by themselves, without padding
        maps = inspect.attention_maps(gpt, row[None, :length])
        total += inspect.attention_stats(maps)["entropy"][0] * length
    torch.testing.assert_close(torch.tensor(found["valid"]["entropy"][0]), total / sum(lengths))
    assert found["count_masked"]["sparsity"][0][0] > 0.5 > found["valid"]["sparsity"][0][0]
    assert f"| 1 | {total.mean() / sum(lengths):.3f} |" in out


def test_layer_by_layer_is_what_the_parts_give(model):
    gpt = model()
    whole = tokens_of(3, 21, 6)
    tokens, targets = whole[:, :-1], whole[:, 1:].clone()
    targets[1, :12] = -100  # a question, in which a pair can stand as well
    before = inspect.pairs_before(tokens, targets)
    for b in range(3):
        pairs = list(itertools.pairwise(whole[b].tolist()))
        seen = [pair in pairs[:i] for i, pair in enumerate(pairs)]
        assert before[b][targets[b] != -100].tolist() == seen[12 if b == 1 else 0 :]
    found = inspect.layer_by_layer(gpt, (tokens, targets))
    there = targets != -100
    for kind, those in (("seen", there & before), ("new", there & ~before)):
        assert found[kind]["targets"] == those.sum()
        chosen = torch.where(those, targets, -100)

        def loss(chosen=chosen):
            total, n = gpt(tokens, chosen)
            return (total.sum() / n.sum()).item()

        whole = loss()
        assert found[kind]["loss"] == pytest.approx(whole, abs=1e-4)
        assert found[kind]["lens"][-1] == pytest.approx(whole, abs=1e-4)
        for layer, rise in enumerate(found[kind]["skipped"]):
            with inspect.skipped(gpt, layer):
                assert rise == pytest.approx(loss() - whole, abs=1e-4)
        for depth, words in enumerate(inspect.lens(gpt, tokens)):
            right = (words == targets)[those].double().mean().item()
            assert found[kind]["right"][depth] == pytest.approx(right)
        rises = found[kind]["skipped"]
        assert rises[found[kind]["costliest"] - 1] == max(rises)
    entropy = inspect.model_stats(gpt, tokens, False, there)["normalised_entropy"].mean(1)
    assert found["entropy"] == pytest.approx(entropy.tolist())
    assert sum(third["fall"] for third in found["thirds"].values()) == pytest.approx(1)
    means = [third["entropy"] for third in found["thirds"].values()]
    assert min(entropy) - 1e-6 <= min(means) and max(means) <= max(entropy) + 1e-6
