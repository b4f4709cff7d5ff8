"""What the study of LLmini asks of a trained model's heads, beside plain arithmetic."""

import numpy as np
import pytest
import torch

import minidepth as md
from minidepth_lab.measure import inspect
from minidepth_lab.rows import to_data
from minidepth_lab.studies import llmini


@pytest.fixture
def blocks():
    """Six padded blocks (tokens, targets) of 12, of texts of 3 to 13 tokens."""
    draw = np.random.default_rng(3)
    rows = [draw.integers(1, 40, n).tolist() for n in (3, 13, 7, 5, 13, 9)]
    return md.blocks([(ids, [True] * len(ids)) for ids in rows], 12, "pad")


def test_attention_is_counted_as_llmini_did_and_as_one_should(model, blocks):
    """It counts padding, which its tokenizer makes of ends of text, and what the mask hides."""
    gpt, (tokens, targets) = model(init_std=0.5), blocks
    there, end = to_data.filled(tokens, targets), 7
    found = llmini.attention(gpt, tokens, targets, end)
    padded = np.where(there, tokens, end)
    for name, wanted in (
        ("counted", inspect.model_stats(gpt, padded, True, np.ones_like(there))),
        ("proper", inspect.model_stats(gpt, tokens, False, there)),
    ):
        parts = [torch.stack(list(wanted[key])) for key in ("entropy", "sparsity")]
        for key, expected in zip(("entropy", "sparsity"), parts):
            torch.testing.assert_close(torch.stack(list(found[name][key])), expected)
        expected = np.corrcoef(parts[0].flatten(), parts[1].flatten())[0, 1]
        assert found["correlation"][name] == pytest.approx(expected, abs=1e-3)
    # what the mask adds: of 12 keys 5.5 are masked in the mean, all of them "sparse"
    counted, proper = (torch.stack(list(found[name]["sparsity"])) for name in ("counted", "proper"))
    assert counted.min() >= 11 / 24 and proper.mean() < counted.mean()


def test_correlation_takes_layers_of_different_numbers_of_heads():
    entropy = [torch.tensor([1.0, 2.0]), torch.tensor([4.0])]
    sparsity = [torch.tensor([3.0, 2.5]), torch.tensor([0.0])]
    expected = np.corrcoef([1, 2, 4], [3, 2.5, 0])[0, 1]
    assert inspect.correlation(entropy, sparsity) == pytest.approx(expected)


def test_a_pruned_head_is_one_whose_part_of_the_output_map_is_zero(model, blocks):
    gpt = model(init_std=0.3, n_heads=(2, 4, 4)).eval()
    part = tuple(torch.tensor(each).long() for each in blocks)
    found = inspect.pruned(gpt, part, 4)
    assert [len(layer) for layer in found["without"]] == [2, 4, 4]
    assert found["whole"] == pytest.approx(md.mean_loss(gpt, part, 6, 4))
    for layer, rises in zip(gpt.blocks, found["without"]):
        weight = layer.attn.out.weight.data
        for columns, rise in zip(weight.chunk(len(rises), 1), rises):
            kept = columns.clone()
            columns.zero_()
            loss = md.mean_loss(gpt, part, 6, 4)
            columns.copy_(kept)
            assert rise == pytest.approx(loss - found["whole"], abs=1e-6)
    assert any(abs(rise) > 1e-5 for layer in found["without"] for rise in layer)


def test_a_written_solution_is_compared_at_the_same_places(model, data, monkeypatch):
    """The words of a solution against those of other questions, of each as many."""
    gpt = model(vocab_size=len(data.tokenizer), block_size=60, init_std=0.3).eval()
    problems = [(f"From {i} add {i + 1} ?", f"{i} + {i + 1} = {2 * i + 1}") for i in range(6)]
    asked = []
    real = inspect.model_stats

    def seen(model, tokens, count_masked, counted):
        asked.append((tokens, counted))
        return real(model, tokens, count_masked, counted)

    monkeypatch.setattr(inspect, "model_stats", seen)
    found = llmini.written_against_bare(gpt, data.tokenizer, problems, 60)
    (written, counted), (bare, same) = asked
    assert torch.equal(counted, same) and len(written) == 6
    for row, flat, those, (_, solution) in zip(written, bare, counted, problems):
        assert data.tokenizer.decode(row[those]) == solution
        assert "=" not in data.tokenizer.decode(flat)
        first = (those.cumsum(0) == 0).sum()
        assert torch.equal(row[:first], flat[:first])  # the same question begins both
        assert (flat[those] != 0).all()
    assert set(found) == {"written", "bare"}
    with pytest.raises(ValueError, match="none of 6 problems fits into 3 tokens"):
        llmini.written_against_bare(gpt, data.tokenizer, problems, 3)
