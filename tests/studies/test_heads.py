"""The studies of heads and of depth: presets, rows, matched widths, figures, stored tables."""

import dataclasses
import json
import math

import pytest
import torch
import transformers

from minidepth_lab.base import configs
from minidepth_lab.keep import registry
from minidepth_lab.measure import results
from minidepth_lab.models import variants
from minidepth_lab.studies import depth, heads
from minidepth_lab.sweep import table

# ---------- heads ----------


def gpt_neo(c, **changes):
    """The GPT-Neo of `transformers` with the sizes of a ModelConfig."""
    about = dict(
        vocab_size=c.vocab_size, max_position_embeddings=c.block_size, hidden_size=c.d_model,
        num_layers=c.n_layers, num_heads=c.heads[0], window_size=c.attn_window,
        attention_types=[[["global", "local"], c.n_layers // 2]],
    )  # fmt: skip
    return transformers.GPTNeoForCausalLM(transformers.GPTNeoConfig(**about, **changes))


def test_the_authors_attention_is_gpt_neos():
    """Unscaled logits, and in each second layer the newest tokens alone."""
    small = dict(vocab_size=61, block_size=24, d_model=32, d_ff=128, n_heads=4, attn_window=5)
    m, _ = registry.configs("heads-author", attn_scale=1.0, init_std=0.3, **small)
    ours, theirs = variants.GPT(m).eval(), gpt_neo(m, activation_function="gelu").eval()
    twins = dict(theirs.named_parameters())
    with torch.no_grad():
        twins["transformer.wte.weight"].copy_(ours.token_embedding.weight)
        twins["transformer.wpe.weight"].copy_(ours.position_embedding.weight)
        for i, layer in enumerate(ours.blocks):
            its, attention = theirs.transformer.h[i], theirs.transformer.h[i].attn.attention
            parts = (attention.q_proj, attention.k_proj, attention.v_proj)
            for part, weight in zip(parts, layer.attn.qkv.weight.chunk(3)):
                part.weight.copy_(weight)
            pairs = (attention.out_proj, layer.attn.out), (its.mlp.c_fc, layer.mlp.up)
            for part, of_ours in (*pairs, (its.mlp.c_proj, layer.mlp.out)):
                part.weight.copy_(of_ours.weight)
                part.bias.copy_(of_ours.bias.normal_())
        x = torch.randint(61, (2, 24), generator=torch.Generator().manual_seed(0))
        torch.testing.assert_close(ours(x), theirs(x).logits, atol=1e-3, rtol=1e-3)


def test_a_heads_study_compares_within_groups_and_draws(tmp_path, monkeypatch, kept):
    """Runs of the nine schedules, three seeds each, whose results are known."""
    runs = []
    for i, row in enumerate(results.published("heads_schedules")):
        for seed in (0, 1, 2):
            labels = dict(model=f"{row['group']}: {row['scheme']} {row['heads']}", seed=str(seed))
            found = dict(val_loss=2.0 + 0.1 * i + 0.01 * seed, tokens_per_second=1000 - i)
            runs.append(dict(labels=labels, depth=4, params_total=5, **found))
    monkeypatch.setattr(table, "finished", lambda cells: runs)
    folder = tmp_path / "new"
    table.summarize(str(folder), [], "python train.py", heads)
    names = {path.name for path in folder.iterdir()}
    assert names == {"summary.json", "summary.md", "summary.png", "heads.png"}
    about = json.loads((folder / "summary.json").read_text())
    assert about["device"]  # this machine, where no run says another
    lines = about["differences"]
    assert len(lines) == 9 + 1 and all(line.count("low") in (0, 2) for line in lines)
    assert "low: constant 12-12-12-12 minus low: ascending 3-6-12-24: +0.100" in lines[0]


# ---------- matched widths, the depth study ----------


def total(config):
    return variants.parameters(config)["total"]


def width(config, d_model):
    return configs.ModelConfig(**vars(config) | dict(d_model=d_model, d_ff=4 * d_model))


def test_width_matched_gives_the_reports_numbers():
    """notes of the project: 504 for the 79.69 M of twelve layers, not the article's 600."""
    one, _ = configs.make("report", n_layers=1)
    twelve = variants.parameters(configs.make("report", n_layers=12)[0])
    wide = depth.width_matched(one, twelve["total"])
    assert (wide.d_model, wide.d_ff, wide.n_layers) == (504, 2016, 1)
    off = [abs(total(width(one, d)) - twelve["total"]) for d in (496, 504, 512)]
    assert total(wide) == pytest.approx(79.75e6, abs=5e3) and min(off) == off[1]
    layers = depth.width_matched(one, twelve["layers"], "layers")
    assert variants.parameters(layers)["layers"] == pytest.approx(twelve["layers"], rel=0.02)
    assert layers.d_model == 8 * round(384 * math.sqrt(12) / 8)  # layers grow with its square
    assert depth.width_matched(one, total(one)) == one


def test_widths_suit_all_heads_and_rotary_positions():
    """The width is a multiple of every head count, twice that where rotary positions turn pairs.
    What cannot match names the nearest."""
    two = configs.ModelConfig(
        vocab_size=500, block_size=32, n_layers=2, n_heads=(4, 3), d_model=24, d_ff=96
    )
    for position, unit in (("learned", 12), ("rotary", 24)):
        config = dataclasses.replace(two, position=position)
        target = round(1.01 * total(width(config, 72)))
        nearest = min(range(unit, 120, unit), key=lambda n: abs(total(width(config, n)) - target))
        assert depth.width_matched(config, target).d_model == nearest == 72
    sizes = dict(vocab_size=10, block_size=4, n_layers=1, n_heads=8, d_model=8, d_ff=32)
    small = configs.ModelConfig(**sizes)
    with pytest.raises(ValueError, match=r"within 2 %; nearest: d_model 8 with [\d,]+"):
        depth.width_matched(small, 2 * total(small))


def test_a_width_is_matched_with_the_words_of_the_data():
    settings = dict(n_layers=1, max_rows=200)
    n_words = registry.data_of(registry.configs("laptop", **settings)[1], 104).n_words
    known = settings | dict(vocab_size=n_words)
    assert depth.matched_width("laptop", settings, 4) == depth.matched_width("laptop", known, 4)
