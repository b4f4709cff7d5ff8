"""Which heads --mechanism names, on models whose attention is known."""

import json

import pytest

import train


def mechanism(out, data, *flags):
    """mechanism.json of a model of two layers after a step, trained by the command."""
    line = f"--data {data} --n_layers 2 --steps 1 --warmup_steps 0 --batch_size 2 --out_dir {out}"
    assert train.main([*line.split(), "--name", "run", "--d_model", "32", *flags]) == 0
    assert train.main(["--mechanism", str(out / "run")]) == 0
    return json.loads((out / "run" / "mechanism.json").read_text())["steps"]


@pytest.fixture
def undrawn(monkeypatch):
    """No figure is drawn: it takes longer than all the rest."""
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda *_, **__: None)


def test_heads_that_look_at_all_tokens_alike_have_the_known_weights(tmp_path, undrawn):
    """Weights so small that every key gets the same: the end of a string of six, the seventh token,
    reads three of seven, and nobody gives half."""
    steps = mechanism(tmp_path, "template", "--n_heads", "2", "--init_std", "1e-9", "--lr", "0")
    for layer in steps["read"]["weight"]:
        assert layer == pytest.approx([3 / 7, 3 / 7], abs=1e-5)
    assert steps["read"]["heads"] == []
    # an equal symbol, one key of the i + 1 in sight: at the second place or later, up to the sixth
    for layer in steps["parse"]["weight"]:
        assert all(1 / 6 < weight < 1 / 2 for weight in layer)


def test_the_heads_named_are_those_that_give_half_or_more(tmp_path, undrawn):
    """One pair: its answer has two keys in sight, and an untrained head gives the question about
    half, one more and one less."""
    flags = ["--sizes", "pairs=1", "--n_heads", "8", "--init_std", "0.4", "--lr", "0"]
    copy = mechanism(tmp_path, "icqa", *flags)["copy"]
    flat = {(i, j): w for i, layer in enumerate(copy["weight"]) for j, w in enumerate(layer)}
    near = [w for w in flat.values() if 0.3 < w < 0.7]
    assert min(near) < 0.5 < max(near) and len(flat) == 16
    assert {tuple(head) for head in copy["heads"]} == {head for head, w in flat.items() if w >= 0.5}
