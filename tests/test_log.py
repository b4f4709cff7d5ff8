"""log.jsonl: JSON that every reader takes without loss, and speeds of their own interval."""

import json
import math
import os
import shutil
import subprocess
import time

import pandas
import pytest

from minidepth_lab.keep import checkpoints, running
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


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_loss_that_is_no_number_is_null_in_the_log(tiny, data, monkeypatch, value):
    """A browser's JSON.parse() refuses the whole line otherwise. The gradient stays finite."""
    steps, real = [0], variants.GPT.forward

    def forward(self, *arguments, **options):
        steps[0] += self.training
        loss_sum, n = real(self, *arguments, **options)
        return (loss_sum + value if steps[0] == 5 else loss_sum), n

    def refuse(word):
        raise AssertionError(f"{word} is no JSON")

    monkeypatch.setattr(variants.GPT, "forward", forward)
    run = running.train(*tiny(**SILENT), data=data)
    rows = [json.loads(line, parse_constant=refuse) for line in lines_of(run.dir)]
    assert [row["step"] for row in rows] == [1, 5, 10, 12]
    for name in ("train_loss", "val_loss"):
        assert rows[1][name] is None and rows[0][name] > 0


def test_pandas_reads_every_number_of_the_log_as_it_was(finished):
    table = pandas.read_json(os.path.join(finished, "log.jsonl"), lines=True)
    rows = [json.loads(line) for line in lines_of(finished)]
    for name in ("step", "epoch", "lr", "train_loss", "val_loss", "seconds", "tokens_per_second"):
        assert table[name].tolist() == pytest.approx([row[name] for row in rows], rel=1e-9)


PARSE = """
const lines = require("fs").readFileSync(process.argv[1], "utf8").trim().split("\\n")
console.log(JSON.stringify(lines.map(line => JSON.parse(line))))
"""


@pytest.mark.skipif(not shutil.which("node"), reason="there is no Node.js")
@pytest.mark.parametrize("value", [None, math.nan])
def test_javascript_reads_the_log_as_python_does(tiny, data, tmp_path, value):
    """JSON.parse() takes no NaN, which Python's own reader does."""
    run = running.train(*tiny(steps=3, warmup_steps=1), data=data)
    if value is not None:
        run.log[0]["grad_norm"] = value
        checkpoints.write_log(run.dir, run.log)
    path = os.path.join(run.dir, "log.jsonl")
    done = subprocess.run(["node", "-e", PARSE, path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [json.loads(line) for line in lines_of(run.dir)]
