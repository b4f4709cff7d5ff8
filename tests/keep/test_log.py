"""log.jsonl: JSON that every reader takes without loss, and speeds of their own interval."""

import json
import os
import time

import pandas
import pytest

from minidepth_lab.keep import running
from minidepth_lab.models import variants

SILENT = dict(eval_problems=0, watch_problems=0)


def lines_of(run_dir):
    with open(os.path.join(run_dir, "log.jsonl"), encoding="utf-8") as f:
        return f.read().splitlines()


def test_the_speed_is_that_of_the_steps_since_the_row_before(tiny, data, monkeypatch):
    """By a clock that only training moves: a second a step up to step 5, then half a second.
    A step is two forward passes."""
    clock, steps, real = [1000.0], [0], variants.GPT.forward

    def forward(self, *arguments, **options):
        if self.training:
            steps[0] += 0.5
            clock[0] += 0.5 if steps[0] <= 5 else 0.25
        return real(self, *arguments, **options)

    monkeypatch.setattr(variants.GPT, "forward", forward)
    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])
    log = running.train(*tiny(grad_accum=2, **SILENT), data=data).log
    tokens = 2 * 4 * 80  # of a step, of which one takes a second
    assert [row["step"] for row in log] == [1, 5, 10, 12]
    assert [row["tokens_per_second"] for row in log] == [tokens, tokens, 2 * tokens, 2 * tokens]


def test_pandas_reads_every_number_of_the_log_as_it_was(finished):
    table = pandas.read_json(os.path.join(finished, "log.jsonl"), lines=True)
    rows = [json.loads(line) for line in lines_of(finished)]
    for name in ("step", "epoch", "lr", "train_loss", "val_loss", "seconds", "tokens_per_second"):
        assert table[name].tolist() == pytest.approx([row[name] for row in rows], rel=1e-9)
