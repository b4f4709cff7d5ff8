"""Invented runs in a folder of experiments, as docs/results has them."""

import json

from minidepth_lab.base import configs
from minidepth_lab.measure import results


def line(run_id, log, **settings):
    """A line of runs.jsonl: a small model, the settings that differ, and a log of rows."""
    model = vars(configs.ModelConfig(vocab_size=8, block_size=8, n_layers=1, n_heads=1, d_model=8))
    train = dict(data=["ring"], sizes=[], seed=0, steps=log[-1]["step"], lr=1e-3, name=run_id)
    for name, value in settings.items():
        (model if name in model else train)[name] = value
    rows = [
        dict(lr=1e-3, train_loss=1.0, seconds=1.0, tokens_per_second=9) | record for record in log
    ]
    about = dict(
        date="2026-11-28T10:00:00Z",
        command="python train.py",
        versions=dict(torch="2"),
        commit="c0ffee",
    )
    return dict(
        id=run_id,
        model={name: model[name] for name in json.loads(json.dumps(model))},
        train=train,
        device="x86_64 CPU, 2 threads",
        log=results.columns_of(rows),
        **about,
    )


def write(folder, name, lines):
    """Make docs/results/NAME/runs.jsonl of such lines in `folder`."""
    (folder / name).mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(each) + "\n" for each in lines)
    (folder / name / "runs.jsonl").write_text(text, encoding="utf-8")
