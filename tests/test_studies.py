"""LLmini and heads: presets, chunks, passes over the data, and what their studies vary."""

import dataclasses
import json
import math
import pathlib
import statistics

import pytest
import torch

import minidepth as md
import train


@pytest.mark.parametrize(
    "letter, layers, heads, width, total",
    [
        # 2 × 50,257 × C for embedding and head, 256 × C positions, 12 C² + 4 C a layer, 2 C
        ("a", 10, 6, 384, 2 * 50_257 * 384 + 256 * 384 + 10 * (12 * 384**2 + 4 * 384) + 768),
        ("b", 9, 5, 320, 2 * 50_257 * 320 + 256 * 320 + 9 * (12 * 320**2 + 4 * 320) + 640),
        ("c", 8, 4, 256, 2 * 50_257 * 256 + 256 * 256 + 8 * (12 * 256**2 + 4 * 256) + 512),
    ],
)
def test_llmini_presets_are_the_published_ones(letter, layers, heads, width, total):
    m, t = md.configs(f"llmini-{letter}")
    assert (m.n_layers, m.n_heads, m.d_model, m.d_ff) == (layers, heads, width, 4 * width)
    assert md.parameters(m)["total"] == total and md.parameters(m)["head"] == 50_257 * width
    assert (m.dropout, m.ffn_dropout, m.position, m.block_size) == (0.1, 0.3, "learned", 256)
    assert (t.beta1, t.beta2, t.weight_decay, t.lr, t.grad_clip) == (0.9, 0.999, 0.05, 3e-4, 1.0)
    assert (t.batch_size, t.grad_accum, t.epochs, t.seed, t.stride) == (32, 2, 3, 42, 128)
    assert (t.packing, t.val_fraction, t.max_rows, t.loss_on) == ("pad", 0.05, 20_000, "all")
    steps = md.counted_steps(t, _data(152_708)).steps  # chunks, as published
    assert steps == math.ceil(3 * 152_708 / 64)
    t = dataclasses.replace(t, steps=steps)
    rates = [md.lr_at(step, t) for step in range(steps)]
    assert rates[0] == 0 and rates.index(max(rates)) == round(0.1 * steps)
    assert max(rates) == 3e-4 and rates[-1] < 1e-9


def _data(n):
    """Data of n blocks to train on, as far as the count of steps needs it."""
    return md.Data((torch.empty(n, 0),) * 2, (), None, [], {}, 0)


def test_the_heads_preset_has_the_published_size():
    m, t = md.configs("heads")
    assert round(md.parameters(m)["total"] / 1e6, 1) == 68.5
    assert (m.n_layers, m.d_model, t.max_rows, t.epochs) == (4, 768, 250_000, 1)


@pytest.mark.parametrize("epochs, n, batch, steps", [(3, 10, 4, 8), (1, 8, 8, 1), (2, 7, 16, 1)])
def test_steps_follow_from_the_epochs(epochs, n, batch, steps):
    t = md.TrainConfig(epochs=epochs, batch_size=batch, warmup_steps=0)
    assert md.counted_steps(t, _data(n)).steps == steps
    assert md.counted_steps(dataclasses.replace(t, epochs=0), _data(n)).steps == t.steps
    if steps > 1:
        with pytest.raises(ValueError, match=f"warmup_steps 50 leaves none of {steps} steps"):
            md.counted_steps(dataclasses.replace(t, warmup_steps=50), _data(n))


def test_a_run_of_epochs_ends_with_the_last_pass_and_resumes(tiny, data):
    m, t = tiny(epochs=2, batch_size=128, warmup_steps=0.2, eval_every=100)
    steps = math.ceil(2 * len(data.train[0]) / 128)
    stop = iter([False] * 2 + [True] * 99)
    run = md.train(m, t, data, stop=lambda: next(stop))
    assert not run.finished and md.read_config(run.dir)[1].steps == steps == 5
    run = md.train(*md.read_config(run.dir), data, resume=True)
    assert run.log[-1]["step"] == steps and run.log[-1]["epoch"] == 2
    assert md.result(run.dir)["steps"] == steps
    assert train.is_finished(m, t)  # a grid knows it though its own settings count epochs
    with pytest.raises(ValueError, match="is finished: 5 of 5 steps"):
        md.train(*md.read_config(run.dir), data, resume=True)


def test_epochs_of_a_task_are_refused(capsys, tmp_path):
    assert train.main(f"--data icqa --epochs 2 --out_dir {tmp_path}".split()) == 2
    assert "epochs 2: a task's data never repeats; give --steps" in capsys.readouterr().err


def test_warm_up_may_be_a_share_of_the_steps():
    share, count = (md.TrainConfig(steps=200, warmup_steps=w) for w in (0.1, 20))
    assert [md.lr_at(s, share) for s in range(200)] == [md.lr_at(s, count) for s in range(200)]


@pytest.mark.parametrize("stride", [0, 1, 3, 5, 8])
@pytest.mark.parametrize("n", [2, 8, 9, 10, 17, 25])
def test_long_rows_overlap_as_the_stride_says(n, stride):
    T, ids = 8, tuple(range(100, 100 + n))
    tokens, targets = md.blocks([(ids, (True,) * n)], T, "pad", stride)
    there, start, seen = md.filled(tokens, targets), 0, set()
    for row, target, real in zip(tokens.tolist(), targets.tolist(), there.tolist()):
        size = min(T, n - 1 - start)
        assert row == [*ids[start : start + size], *[0] * (T - size)]
        assert target == [*ids[start + 1 : start + size + 1], *[-100] * (T - size)]
        assert real == [True] * size + [False] * (T - size)
        seen |= {t for t in target if t != -100}
        last, start = start + size == n - 1, start + (stride or T)
    assert last and seen == set(ids[1:])  # every token is learned, and no chunk is one too many
    assert len(tokens) == 1 + math.ceil(max(0, n - 1 - T) / (stride or T))


def test_packed_rows_do_not_overlap_and_no_stride_skips():
    rows = [(tuple(range(1, 30)), (True,) * 29)] * 2
    assert torch.equal(md.blocks(rows, 8, "pack", 3)[0], md.blocks(rows, 8, "pack")[0])
    with pytest.raises(
        ValueError, match="stride 9 skips tokens between blocks of 8; give at most 8"
    ):
        md.blocks(rows, 8, "pad", 9)


def test_empty_rows_make_no_block():
    for stride in (0, 3):
        rows = [((), ()), ((5,), (True,)), ((5, 6), (True, True))]
        assert len(md.blocks(rows, 8, "pad", stride)[0]) == 1


def test_validation_may_be_packed_otherwise(jsonl):
    path = jsonl([dict(text=f"row {i} of a short text") for i in range(200)])
    t = md.TrainConfig(data=(path,), tokenizer="embedded", packing="pack", val_fraction=0.3)
    packed = md.load_data(t, 32)
    mixed = md.load_data(dataclasses.replace(t, val_packing="pad"), 32)
    padded = md.load_data(dataclasses.replace(t, packing="pad"), 32)
    assert torch.equal(mixed.train[0], packed.train[0]) and len(mixed.val[0]) == 60
    assert torch.equal(mixed.val[0], padded.val[0]) and not torch.equal(mixed.val[0], packed.val[0])


def test_the_share_of_filled_positions_is_printed(jsonl, tmp_path, capsys):
    path = jsonl([dict(text="a b c d e f g h " * 2) for _ in range(60)])
    flags = "--tokenizer embedded --block_size 64 --n_layers 1 --steps 1 --warmup_steps 0"
    flags += f" --d_model 8 --out_dir {tmp_path} --eval_blocks 2 --batch_size 2"
    assert train.main(["--data", path, *flags.split()]) == 0
    data = md.load_data(md.TrainConfig(data=(path,), tokenizer="embedded", packing="pad"), 64)
    share = (len(data.tokenizer("a b c d e f g h " * 2).input_ids) + 1) / 64  # with end of text
    assert 0.1 < share < 0.6
    assert f"{share:.1%} of positions filled" in capsys.readouterr().out


def changed(study, preset, settings=None):
    """{row: what differs from the first row} of a study, as full configurations."""
    rows = {
        name: dataclasses.asdict(m) | dataclasses.asdict(t)
        for name, (m, t) in (
            (name, md.configs(preset, **row))
            for name, row in train.STUDIES[study](preset, settings or {}).items()
        )
    }
    first = next(iter(rows.values()))
    return first, {
        name: {k: v for k, v in row.items() if v != first[k]} for name, row in rows.items()
    }


def test_the_llmini_study_changes_one_thing_at_a_time():
    first, rows = changed("llmini", "llmini-c", dict(lr=1e-3))
    assert first["lr"] == 1e-3 and first["n_layers"] == 8 and not rows["C"]
    assert list(rows.values())[1:] == [
        dict(n_layers=10),
        dict(d_model=384, d_ff=1536),
        dict(n_heads=8),
        dict(n_layers=10, n_heads=6, d_model=384, d_ff=1536),
    ]


def test_the_packing_study_is_at_equal_steps_and_at_equal_text():
    settings = dict(steps=100, max_rows=400)
    first, rows = changed("packing", "laptop", settings)
    data = md.load_data(md.configs("laptop", **settings)[1], 58)
    share = (data.train[0] != 0).float().mean().item()  # no embedded token inside a row has id 0
    assert 0.5 < share < 0.9 and (first["packing"], first["val_packing"]) == ("pad", "pad")
    assert rows["packed, same steps"] == dict(packing="pack")
    assert rows["packed, same text"] == dict(packing="pack", steps=round(100 * share))


@pytest.mark.parametrize("preset, width, part", [("heads", 768, 1), ("laptop", 64, 3)])
def test_the_heads_study_keeps_the_published_ratios(preset, width, part):
    first, rows = changed("heads", preset)
    assert first["d_model"] == width and first["n_layers"] == 4
    published = md.published("heads_schedules")
    assert len(rows) == len(published) == 9
    sizes = set()
    for row, (name, changes) in zip(published, rows.items()):
        heads = changes.get("n_heads", first["n_heads"])
        assert [n * part for n in heads] == [int(n) for n in row["heads"].split("-")]
        assert set(changes) <= {"n_heads"}
        assert name == f"{row['group']}: {row['scheme']} {'-'.join(map(str, heads))}"
        settings = dict(n_layers=4, n_heads=heads, vocab_size=512)
        sizes.add(md.parameters(md.configs(preset, **settings)[0])["total"])
    assert len(sizes) == 1


def test_a_study_brings_its_preset(monkeypatch, capsys):
    assert train.main("--study llmini --seed 0 1 --dry_run".split()) == 0
    out = capsys.readouterr().out
    assert "preset llmini-c: the study llmini is about it" in out and "10 runs" in out
    assert train.pick_preset("auto", (), "heads")[0] == "laptop"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert train.pick_preset("auto", (), "heads")[0] == "heads"
    assert train.pick_preset("auto", (), "packing")[0] == "report"
    assert train.pick_preset("laptop", (), "llmini")[0] == "laptop"


def test_the_facts_count_epochs_before_the_data_is_there(capsys):
    assert train.main("--preset llmini-a --dry_run".split()) == 0
    out = capsys.readouterr().out
    assert "32 x 2 x 256 = 16,384 tokens; 3 epochs, learning rate up to 0.0003 in 10% of" in out


def test_a_heads_study_compares_within_groups_and_draws(tmp_path, capsys, monkeypatch):
    """Runs whose results are known: what is written of them."""
    runs = []
    for i, row in enumerate(md.published("heads_schedules")):
        for seed in (0, 1, 2):
            labels = dict(model=f"{row['group']}: {row['scheme']} {row['heads']}", seed=str(seed))
            found = dict(val_loss=2.0 + 0.1 * i + 0.01 * seed, tokens_per_second=1000 - i)
            runs.append(dict(labels=labels, depth=4, params_total=5, **found))
    monkeypatch.setattr(train, "records", lambda cells: runs)
    folder = tmp_path / "new"
    train.summarize(str(folder), [], "heads")
    names = {path.name for path in folder.iterdir()}
    assert names == {"summary.json", "summary.md", "summary.png", "heads.png"}
    lines = json.loads((folder / "summary.json").read_text())["differences"]
    assert len(lines) == 9 and all(line.count("low") in (0, 2) for line in lines)
    assert "low: constant 12-12-12-12 minus low: ascending 3-6-12-24: +0.100" in lines[0]


@pytest.mark.parametrize("study, runs", [("packing", 9), ("heads", 54)])
def test_the_tables_of_results_are_those_of_the_logs(study, runs):
    results = pathlib.Path(train.__file__).parent / "docs" / "results"
    lines, losses = (results / "README.md").read_text().splitlines(), {}
    for path in results.glob(f"{study}*/*/config.json"):
        config = json.loads(path.read_text())
        last = json.loads((path.parent / "log.jsonl").read_text().splitlines()[-1])
        m, t = config["model"], config["train"]
        name = f"| packed, same {'steps' if t['steps'] == 400 else 'text'} |"
        name = name if t["packing"] == "pack" else "| padded |"
        name = f"| {'-'.join(map(str, m['n_heads']))} |" if study == "heads" else name
        losses.setdefault((name, m["attn_scale"]), []).append(last["val_loss"])
        assert last["step"] == t["steps"] and t["data"] == ["gsm8k.jsonl"]
    assert sum(map(len, losses.values())) == runs
    for (name, _), each in losses.items():
        half = 4.302653 * statistics.stdev(each) / 3**0.5  # Student's t with 2 degrees of freedom
        text = f"| {statistics.mean(each):.3f} ± {half:.3f} |"
        assert any(name in line and text in line for line in lines), (name, text)
