"""The line that tells how half precision did on somebody's GPUs, tried on a CPU."""

import re

from minidepth_lab.measure import two_cards


def test_on_a_cpu_the_line_has_our_own_losses(monkeypatch):
    monkeypatch.setattr(two_cards, "TIMED", 6)
    monkeypatch.setattr(two_cards, "STEPS", 1)
    monkeypatch.setattr(two_cards, "STORED", dict(seed=120, n_layers=1))  # the fastest
    small = dict(n_heads=2, d_model=8, d_ff=16, block_size=64, batch_size=2, vocab_size=0)
    said = two_cards.line(**small, max_rows=200, eval_blocks=4)
    assert "fp32" in said and said.count("0 skipped") == 3 and "\n" not in said
    pairs = re.findall(r"(\d\.\d{4}) \(ours (\d\.\d{4})\)", said)
    assert len(pairs) == 2 and all(abs(float(a) - float(b)) < 1e-3 for a, b in pairs)
    assert len(re.findall(r"report, (?:1|12): \d+\.\d{3} s a step", said)) == 2
