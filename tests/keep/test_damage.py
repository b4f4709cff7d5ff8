"""Nothing lost: damaged run folders, deaths at every step of writing, divergence, odd files.

A damaged folder is refused in one line, or gives what the whole one gives, bit for bit. With LONG=1
in the environment twenty times as many bits are flipped.
"""

import contextlib
import json
import math
import os
import pathlib
import random
import shutil
from unittest import mock

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

import minidepth as md
from conftest import same_weights
from minidepth_lab.base import configs
from minidepth_lab.keep import checkpoints, running
from minidepth_lab.measure import results, score
from minidepth_lab.models import variants
from minidepth_lab.rows import forms, to_data, tokenizing
from minidepth_lab.rows.reading import read_file

SMALL = dict(n_layers=1, d_model=8, n_heads=1, d_ff=8, dropout=0.1, block_size=80, steps=4,
             warmup_steps=1, batch_size=4, eval_every=2, eval_blocks=4, save_every=2,
             eval_problems=0, watch_problems=0, max_rows=200, tokenizer_size=400,
             grad_accum=1, ring_questions=1)  # fmt: skip
TIMES = ("seconds", "tokens_per_second")
POSIX, LONG = os.name == "posix", "LONG" in os.environ


def timeless(log):
    return [{key: value for key, value in record.items() if key not in TIMES} for record in log]


@pytest.fixture(scope="module")
def text():
    """The data of all runs here."""
    return to_data.load_data(configs.make("laptop", **SMALL)[1], 80)


@pytest.fixture(scope="module")
def folders(tmp_path_factory, text):
    """(a run stopped after step 3, its last checkpoints at 3 and 2; the same run, finished)."""
    out = str(tmp_path_factory.mktemp("runs"))
    asked = []
    m, t = configs.make("laptop", **SMALL, out_dir=out, name="cut")
    cut = running.train(m, t, data=text, stop=lambda: asked.append(1) or len(asked) == 3)
    m, t = configs.make("laptop", **SMALL, out_dir=out, name="whole")
    return cut.dir, running.train(m, t, data=text)


def go_on(folder, text):
    """The run in a folder, resumed as the command does it."""
    m, t = checkpoints.read_config(folder)
    t.out_dir, t.name = os.path.split(folder)
    return running.train(m, t, data=text, resume=True)


# --- damage


def flip(content, place):
    """The content with one bit changed."""
    at, bit = divmod(place, 8)
    return content[:at] + bytes([content[at] ^ 1 << bit]) + content[at + 1 :]


def folder_instead(path):
    path.unlink()
    path.mkdir()


def pipe_instead(path):
    path.unlink()
    os.mkfifo(path)


def link_to_itself(path):
    path.unlink()
    path.symlink_to(path)


def link_out(path):
    away = path.parents[2] / "away"
    shutil.move(path, away)
    path.symlink_to(away)


def damages(name, content, flips):
    """{what it is: what does it to a path} of the file of this name and content."""
    draw, half = random.Random(f"0 {name}"), len(content) // 2
    others = {f"cut at {share}": content[: int(len(content) * share)] for share in (0, 0.5, 0.999)}
    others |= {
        "zeros": bytes(len(content)),
        "zeros inside": content[:half] + bytes(64) + content[half + 64 :],
        "doubled": content + content,
        "foreign": b'{"a": 1}',
        "a list": b"[]",
    }
    for i in range(flips * (20 if LONG else 1)):
        others[f"bit {i}"] = flip(content, draw.randrange(8 * len(content)))
    does = {what: lambda path, its=its: path.write_bytes(its) for what, its in others.items()}
    does |= {"gone": pathlib.Path.unlink, "a folder": folder_instead}
    if POSIX:
        does |= {"a pipe": pipe_instead, "a link to itself": link_to_itself}
        does |= {"a link out": link_out}
    return does


def refused(source, file, flips, tmp_path, act, same):
    """How many of the damages to a copy of the folder are refused by act(), in one line; what it
    gives of the others has to be as same() wants it."""
    n, copy = 0, tmp_path / "runs" / "copy"
    content = pathlib.Path(source, file).read_bytes()
    for what, do in damages(os.path.basename(file), content, flips).items():
        shutil.rmtree(tmp_path / "runs", ignore_errors=True)
        shutil.copytree(source, copy)
        do(copy / file)
        try:
            assert same(act(str(copy))), what
        except (ValueError, OSError) as error:  # the command says both in one line
            assert "\n" not in str(error) and len(str(error)) < 700, what
            n += 1
        except Exception as error:
            raise AssertionError(f"{file}, {what}: {error!r}") from error
    return n


@pytest.mark.parametrize("file, flips, least, most", [
    ("state.pt", 5, 0, 0),  # the checkpoint before stands in for each of them
    ("state.previous.pt", 1, 0, 99), ("config.json", 20, 16, 99), ("log.jsonl", 1, 0, 99),
    ("model.safetensors", 1, 0, 99), ("tokenizer/tokenizer.json", 1, 1, 99),
])  # fmt: skip
def test_a_damaged_folder_is_refused_or_goes_on_to_the_same(
    folders, text, file, flips, least, most, tmp_path
):
    cut, whole = folders

    def same(run):
        right = timeless(run.log) == timeless(whole.log)
        return right and same_weights(run.model, whole.model)

    n = refused(cut, file, flips, tmp_path, lambda folder: go_on(folder, text), same)
    assert least <= n <= most


@pytest.mark.parametrize("file, flips, least", [
    ("model.safetensors", 20, 11), ("config.json", 20, 11), ("tokenizer/tokenizer.json", 10, 11),
    ("tokenizer/tokenizer_config.json", 5, 11), ("state.pt", 1, 0),
])  # fmt: skip
def test_a_damaged_folder_is_refused_or_loads_the_same(folders, file, flips, least, tmp_path):
    whole = folders[1].dir
    model, tokenizer = checkpoints.load(whole)
    said = tokenizer("add 3 modulo 10 <|im_end|>").input_ids

    def same(found):
        again, by = found
        # without a tokenizer, as of a depth task, it cannot speak, which --sample then says
        same_words = by is None or said == by("add 3 modulo 10 <|im_end|>").input_ids
        return same_words and same_weights(again, model)

    assert refused(whole, file, flips, tmp_path, checkpoints.load, same) >= least


def copied(folder, tmp_path):
    return str(shutil.copytree(folder, tmp_path / "copies" / "run"))


def test_weights_without_a_checksum_load(folders, tmp_path):
    """As another program writes them."""
    run = copied(folders[0], tmp_path)
    path = os.path.join(run, "model.safetensors")
    weights = {name: weight.clone() for name, weight in load_file(path).items()}  # not the file's
    save_file(weights, path)
    assert same_weights(checkpoints.load(run)[0], weights)


def test_weights_that_are_no_numbers_are_refused(folders, text, tmp_path):
    run = copied(folders[0], tmp_path)
    os.remove(os.path.join(run, "state.previous.pt"))
    path, weights = (os.path.join(run, name) for name in ("state.pt", "model.safetensors"))
    state = torch.load(path, weights_only=True)
    state["model"]["norm.weight"][3] = math.inf
    torch.save(state, path)
    with pytest.raises(ValueError, match="it holds infinite or NaN weights"):
        go_on(run, text)
    broken = load_file(weights)
    broken["norm.weight"][3] = math.nan
    save_file(broken, weights)
    with pytest.raises(ValueError, match="it holds infinite or NaN weights"):
        checkpoints.load(run)


def test_a_model_that_has_diverged_with_finite_weights_does_not_load(folders, tmp_path):
    """Drawing a word from what it says was a traceback; a score of it was printed as any other."""
    run = copied(folders[1].dir, tmp_path)
    path = os.path.join(run, "model.safetensors")
    save_file({name: weight * 1e25 for name, weight in load_file(path).items()}, path)
    with pytest.raises(ValueError, match="it has diverged: its logits are infinite or NaN"):
        checkpoints.load(run)


WRONG = dict(
    train=dict(
        steps=["8", True, 8.5, None], lr=["fast", math.inf, [1], math.nan], seed=[-1, 10**400],
        data=[[], "embedded", [1], [[]]], problem_steps=[[], ["1"]], name=[5, None], device=[1],
        out_dir=[{}, "a\u0000b"], packing=[None], tokenizer=[""], sizes=["pairs=3"],
    ),
    model=dict(
        colour=[3], tie_weights=["yes", 1], n_heads=[[], [1, 1], {}, "1"], n_layers=[1e9, 10**8],
        d_model=[10**9], vocab_size=[10**15], dropout=["0.1"], position=[["learned"]],
        attn_scale=["1"], n_loops=[0],
    ),
)  # fmt: skip


@pytest.mark.parametrize("part, name", [(part, name) for part in WRONG for name in WRONG[part]])
def test_a_wrong_value_in_config_json_is_one_line(folders, tmp_path, part, name):
    run = tmp_path / "run"
    run.mkdir()
    for file in ("config.json", "model.safetensors"):
        shutil.copy(os.path.join(folders[1].dir, file), run)
    config = json.loads((run / "config.json").read_text())
    for value in WRONG[part][name]:
        config[part][name] = value
        (run / "config.json").write_text(json.dumps(config))
        with pytest.raises(ValueError) as error:
            checkpoints.read_config(str(run))
            checkpoints.load(str(run))
        assert "\n" not in str(error.value) and len(str(error.value)) < 600
        assert f"{run}{os.sep}" in str(error.value)
        if part == "train":  # a model is loaded whatever it was trained with
            assert checkpoints.load(str(run))
        with pytest.raises(ValueError, match="config.json|log.jsonl"):
            results.result(str(run))


LOGS = [
    ("", "is not finished"), ("{", "in line 1"), ("[]\n", "in line 1"), ("{}\n", "in line 1"),
    ("null\n", "in line 1"), ("ROW\nnot JSON\nROW\n", "in line 2"), ("ROW\nROW\n", "step 1 after"),
    ("ROW\n\nROW\n", "in line 2"), ("ROW\n" + "[" * 50_000, "in line 2"),
    ("ROW\n" + "9" * 5000, "in line 2"), ('ROW\n{"step": "two"}\n', "in line 2"),
    ("\x00" * 50, "in line 1"), ('{"step": true}\n', "in line 1"),
]  # fmt: skip


@pytest.mark.parametrize("content, words", LOGS, ids=[str(i) for i in range(len(LOGS))])
def test_a_damaged_log_is_named_with_its_line(folders, tmp_path, content, words):
    whole = pathlib.Path(folders[1].dir)
    shutil.copy(whole / "config.json", tmp_path)
    row = (whole / "log.jsonl").read_text().splitlines()[0]
    (tmp_path / "log.jsonl").write_text(content.replace("ROW", row))
    with pytest.raises(ValueError, match=words) as error:
        results.result(str(tmp_path))
    assert "\n" not in str(error.value) and len(str(error.value)) < 500


def test_a_tokenizer_of_a_run_that_died_before_it_began_is_replaced(tiny, data):
    """Without config.json, which comes after it, nothing says that the folder tokenizer/ is whole,
    or this run's."""
    m, t = tiny(steps=1, warmup_steps=0, eval_problems=0, watch_problems=0)
    folder = pathlib.Path(t.out_dir, t.name)

    def die(tokenizer, path):
        os.makedirs(path)
        pathlib.Path(path, "tokenizer.json").write_text('{"version": "1.0", "trunc')
        raise Killed

    with mock.patch.object(checkpoints, "save_tokenizer", die), pytest.raises(Killed):
        running.train(m, t, data)
    assert (folder / "tokenizer").exists() and not (folder / "config.json").exists()
    run = running.train(m, t, data)
    _, tokenizer = checkpoints.load(run.dir)
    assert tokenizer.get_vocab() == data.tokenizer.get_vocab()


def test_a_checkpoint_is_not_damaged_where_it_cannot_be_taken_in_now(folders, text, tmp_path):
    run = copied(folders[0], tmp_path)
    before = sorted(os.listdir(run))
    assert set(checkpoints.STATES) < set(before)
    for error in (
        torch.OutOfMemoryError("CUDA out of memory"), MemoryError(),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"),
        PermissionError(13, "Permission denied"),
    ):  # fmt: skip
        with mock.patch.object(torch, "load", side_effect=error):
            with pytest.raises((type(error), ValueError)) as raised:
                go_on(run, text)
        assert isinstance(raised.value, ValueError) == isinstance(error, PermissionError)
        assert sorted(os.listdir(run)) == before
    assert same_weights(go_on(run, text).model, folders[1].model)


# --- deaths


class Killed(BaseException):
    """As if the process had died here: nothing that would tidy up runs either."""


def die_before(monkeypatch, n):
    """Die before the n-th step of writing. Right after a step the disk is as it is before the
    next one, but for a temporary file."""
    steps, real = [], {name: getattr(os, name) for name in ("replace", "fsync", "remove")}

    def step(name):
        def do(*a, **k):
            if name != "remove":
                steps.append(name)
            if len(steps) > n:
                raise Killed
            return real[name](*a, **k)

        return do

    for name in real:
        monkeypatch.setattr(os, name, step(name))


def test_death_at_every_step_of_writing_loses_nothing(folders, text, tmp_path, monkeypatch):
    whole, deaths = folders[1], 0
    for n in range(200):
        m, t = configs.make("laptop", **SMALL, out_dir=str(tmp_path), name=f"death-{n}")
        folder = os.path.join(t.out_dir, t.name)
        with monkeypatch.context() as patch:
            die_before(patch, n)
            try:
                run = running.train(m, t, data=text)
                break
            except Killed:
                deaths += 1
        try:
            run = running.train(m, t, data=text, resume=True)
            assert same_weights(run.model, whole.model), n
        except ValueError as error:  # it died after its last checkpoint
            assert "is finished" in str(error)
        assert same_weights(checkpoints.load(folder)[0], whole.model), n
        assert timeless(results.read_log(folder)) == timeless(whole.log), n
        assert not [name for name in os.listdir(folder) if name.endswith(".tmp")], n
    assert deaths >= 15


def test_only_what_write_file_left_is_removed(tmp_path):
    for name in ("state.pt.123.tmp", "notes.tmp", "curve.png.7.tmp", "a.tmp.txt"):
        (tmp_path / name).write_text("x")
    with checkpoints.locked(str(tmp_path)):
        assert sorted(os.listdir(tmp_path)) == [".lock", "a.tmp.txt", "notes.tmp"]


# --- divergence


def test_a_run_that_diverges_keeps_its_last_checkpoint(text, tmp_path, monkeypatch):
    real, calls = torch.nn.utils.clip_grad_norm_, []
    m, t = configs.make("laptop", **SMALL, out_dir=str(tmp_path), name="run")
    t.steps, t.save_every = 40, 5

    def diverging(*a):
        calls.append(1)
        return real(*a) if len(calls) <= 5 else torch.tensor(math.nan)

    with monkeypatch.context() as patch:
        patch.setattr(torch.nn.utils, "clip_grad_norm_", diverging)
        with pytest.raises(md.Diverged, match="25 steps"):
            running.train(m, t, data=text)
    assert checkpoints.all_finite(checkpoints.load(str(tmp_path / "run"))[0].state_dict())
    run = running.train(m, t, data=text, resume=True)
    assert run.finished and run.log[-1]["skipped_steps"] == 20  # of its checkpoint, at step 25


def test_infinite_weights_are_never_saved(tiny, data, monkeypatch):
    real, calls = torch.optim.AdamW.step, []

    def breaking(optimizer, *a):
        real(optimizer, *a)
        calls.append(1)
        if len(calls) == 7:
            with torch.no_grad():
                optimizer.param_groups[0]["params"][1][-1, 0] = math.inf  # a place of no token

    monkeypatch.setattr(torch.optim.AdamW, "step", breaking)
    m, t = tiny(save_every=4, keep="best", eval_every=1, eval_problems=0, watch_problems=0)
    with pytest.raises(md.Diverged, match="weights are infinite or NaN after step 8"):
        running.train(m, t, data=data)
    folder = os.path.join(t.out_dir, t.name)
    state = torch.load(os.path.join(folder, "state.pt"), weights_only=True)
    assert state["step"] == 4
    for name in (checkpoints.BEST, checkpoints.LAST):
        assert checkpoints.all_finite(checkpoints.load(folder, name)[0].state_dict())


@pytest.mark.parametrize("lr, steps", [(1e9, 3), (9e15, 60)])
def test_a_run_that_diverges_just_before_its_end_is_not_called_done(tiny, data, capsys, lr, steps):
    m, t = tiny(lr=lr, steps=steps, warmup_steps=0, d_ff=0, eval_problems=0, watch_problems=0)
    for _ in range(2):  # nor kept, as if it were finished
        with pytest.raises(md.Diverged, match="infinite or NaN"):
            running.train(m, t, data=data, resume=True)
        assert "Done" not in capsys.readouterr().out


# --- anything at all

ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda parts: (
        st.lists(parts, max_size=4) | st.dictionaries(st.text(max_size=9), parts, max_size=4)
    ),
    max_leaves=12,
)
NAMES = "text messages question answer role content steps guess family choices label endings ctx"
ROWS = st.dictionaries(st.sampled_from(NAMES.split()), ANY, max_size=5)
MANY = settings(max_examples=40 + 260 * LONG, deadline=None, derandomize=True,
                suppress_health_check=list(HealthCheck))  # fmt: skip


def only_one_line(act):
    """What act() gives; None if it is refused in one line."""
    try:
        return act()
    except ValueError as error:
        assert "\n" not in str(error)
        return None


@pytest.mark.parametrize("kind", [configs.ModelConfig, configs.TrainConfig])
def test_any_settings_are_taken_or_refused(kind):
    names = [f.name for f in md.dataclasses.fields(kind)]

    @MANY
    @given(st.dictionaries(st.sampled_from(names), ANY | st.integers(0, 20), max_size=3))
    def taken_or_refused(values):
        values = {name: checkpoints.from_json(value) for name, value in values.items()}
        config = only_one_line(lambda: kind(**values).validate())
        if config is not None and kind is configs.ModelConfig:
            assert variants.parameters(config)["total"] > 0

    taken_or_refused()


@MANY
@given(st.lists(ROWS | ANY, max_size=6))
def test_any_rows_are_read_or_refused(rows):
    for row in rows:
        turns = []
        with contextlib.suppress(ValueError):
            turns = forms.turns_of(row)
        assert all(isinstance(part, str) for turn in turns for part in turn)
        if turns:
            problem = to_data.problem_of(row)
            assert problem is None or problem["answer"]
            assert all(isinstance(text, str) for text, _ in tokenizing.segments(row))
        found = score.choices_of(row)
        assert found is None or 0 <= found[2] < len(found[1])


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.txt", "a.parquet"])
def test_any_bytes_are_read_or_refused(tmp_path, name):
    @MANY
    @given(
        st.binary(max_size=200) | st.text(max_size=100).map(lambda s: s.encode("utf-8", "ignore"))
    )
    def read_or_refused(content):
        (tmp_path / name).write_bytes(content)
        only_one_line(lambda: read_file(str(tmp_path / name), []))

    read_or_refused()


@MANY
@given(st.text(max_size=300), st.integers(1, 400))
def test_any_text_in_pieces_is_the_same_text(text, times):
    text *= times
    assert "".join(tokenizing.pieces(text)) == text
    assert len(tokenizing.short_words(text)) <= 1.01 * len(text) + 2
