"""The line that tells how half precision did on somebody's GPUs, tried on a CPU."""

import re
import time

import minidepth as md
from minidepth_lab.measure import two_cards

SMALL = dict(n_heads=2, d_model=8, d_ff=16, block_size=64, batch_size=2, vocab_size=0)


def test_an_evaluation_is_no_part_of_a_step(monkeypatch):
    monkeypatch.setattr(two_cards, "TIMED", 6)
    monkeypatch.setattr(md, "mean_loss", lambda *_: time.sleep(1) or 1.0)
    assert two_cards.seconds_a_step(1, **SMALL, max_rows=200)[0] < 0.3


def test_on_a_cpu_the_line_has_our_own_losses(monkeypatch):
    monkeypatch.setattr(two_cards, "TIMED", 6)
    monkeypatch.setattr(two_cards, "STEPS", 1)
    monkeypatch.setattr(two_cards, "STORED", dict(seed=120, n_layers=1))  # the fastest
    said = two_cards.line(**SMALL, max_rows=200, eval_blocks=4)
    assert "fp32" in said and said.count("0 skipped") == 3 and "\n" not in said
    pairs = re.findall(r"(\d\.\d{4}) \(ours (\d\.\d{4})\)", said)
    assert len(pairs) == 2 and all(abs(float(a) - float(b)) < 1e-3 for a, b in pairs)
    assert len(re.findall(r"report, (?:1|12): \d+\.\d{3} s a step", said)) == 2
