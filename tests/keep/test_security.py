"""Nothing let in, nothing let out: no code of others runs, no path leads out of a run's folder, and
what a run writes says nothing of the user's home or tokens."""

import ast
import json
import os
import pathlib
import re
import shlex
import shutil
from types import SimpleNamespace

import pytest
import torch

import train
from minidepth_lab.base import console
from minidepth_lab.keep import checkpoints, running
from minidepth_lab.rows import tokenizing
from minidepth_lab.sweep import table

ROOT = pathlib.Path(__file__).resolve().parents[2]
PARTS = (ROOT.glob("*.py"), *((ROOT / part).rglob("*.py") for part in ("docs", "minidepth_lab")))
SOURCES = [path for part in PARTS for path in part]


def calls(content):
    """(name of the called function, its arguments, {keyword: value, None where it is no constant})
    in a file."""
    for node in ast.walk(ast.parse(content)):
        if isinstance(node, ast.Call):
            given = {}
            for each in node.keywords:
                is_constant = isinstance(each.value, ast.Constant)
                given[each.arg] = each.value.value if is_constant else None
            yield ast.unparse(node.func), node.args, given


def test_no_code_of_others_no_shell_and_text_in_utf8_everywhere():
    for path in SOURCES:
        content = path.read_text(encoding="utf-8")
        imported = re.findall(r"^\s*(?:import|from) (\w+)", content, re.M)
        assert not {"pickle", "dill", "shelve", "joblib", "marshal"} & set(imported), path
        for name, arguments, given in calls(content):
            if (path.stem, name) == ("judge", "eval"):  # of our own predictions, which are code
                continue
            assert name not in ("eval", "exec", "os.system", "os.popen", "__import__"), path
            assert not given.get("shell") and not given.get("trust_remote_code"), path
            if name == "torch.load":
                assert given.get("weights_only") is True, path
            if name.endswith("Tokenizer.from_pretrained"):
                assert given.get("trust_remote_code") is False, path
            if name == "open":
                mode = ast.unparse(arguments[1]) if len(arguments) > 1 else ""
                assert "b" in mode or "encoding" in given, path


def test_a_tokenizer_folders_own_code_is_not_run_and_nobody_is_asked(tmp_path, monkeypatch):
    monkeypatch.setattr("builtins.input", lambda *a: pytest.fail("somebody is asked"))
    folder = tmp_path / "tokenizer"
    folder.mkdir()
    (folder / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    about = dict(tokenizer_class="Evil", auto_map={"AutoTokenizer": ["evil.Evil", "evil.Evil"]})
    (folder / "tokenizer_config.json").write_text(json.dumps(about))
    (folder / "config.json").write_text(json.dumps(dict(model_type="evil", **about)))
    with pytest.raises(ValueError, match="cannot be read") as error:
        tokenizing.load_tokenizer(str(folder))
    assert "\n" not in str(error.value) and not (tmp_path / "ran").exists()


def test_a_run_folders_paths_are_not_followed(finished, tmp_path, capsys, kept):
    """Its out_dir and name are where it was made, not where it is."""
    run = shutil.copytree(finished, tmp_path / "given")
    config = json.loads((run / "config.json").read_text())
    for out_dir, name in ((str(tmp_path), "elsewhere"), (str(tmp_path / "a"), "../../b")):
        config["train"] |= dict(out_dir=out_dir, name=name)
        (run / "config.json").write_text(json.dumps(config))
        assert train.main(["--resume", str(run)]) == 2
        assert f"{run} is finished" in capsys.readouterr().err
        assert sorted(os.listdir(tmp_path)) == ["given"]


@pytest.mark.skipif(os.name != "posix", reason="links as POSIX has them")
@pytest.mark.parametrize("name", [
    "config.json", "model.safetensors", "tokenizer", "tokenizer/tokenizer.json",
])  # fmt: skip
def test_links_out_of_a_run_folder_are_refused_and_others_followed(finished, tmp_path, name):
    run = shutil.copytree(finished, tmp_path / "run")
    shutil.move(run / name, tmp_path / "away")
    (run / name).symlink_to(tmp_path / "away")
    with pytest.raises(ValueError, match="link that leads out of the run's folder|cannot be"):
        checkpoints.load(str(run))
    if name.startswith("tokenizer"):
        with pytest.raises(ValueError, match="link that leads out|cannot be read"):
            checkpoints.saved_tokenizer(str(run))
    (run / name).unlink()
    inside = (run / name).with_name("inside")
    shutil.move(tmp_path / "away", inside)
    (run / name).symlink_to(inside)
    assert checkpoints.load(str(run))[1]


@pytest.mark.skipif(os.name != "posix", reason="links as POSIX has them")
@pytest.mark.parametrize("name", ["tokenizer", "tokenizer/tokenizer.json", ".lock"])
def test_nothing_is_written_through_a_link_in_a_folder_that_a_run_begins_in(
    name, tmp_path, data, tiny
):
    """The folder may have come with the link: a file of somebody's would be replaced."""
    m, t = tiny()
    link, victim = pathlib.Path(t.out_dir, t.name, name), tmp_path / "victim"
    link.parent.mkdir(parents=True)
    victim.mkdir() if name == "tokenizer" else victim.write_text("mine")
    link.symlink_to(victim)
    with pytest.raises(ValueError, match="is a link that leads out of the run's folder"):
        running.train(m, t, data=data)
    assert os.listdir(victim) == [] if victim.is_dir() else victim.read_text() == "mine"


def test_homes_and_tokens_reach_no_file_of_a_run(tmp_path, monkeypatch, jsonl, capsys, kept):
    home = tmp_path / "home" / "ann"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    (home / "my data").mkdir(parents=True)
    rows = [dict(question=f"say {i}", answer=f"#### {i % 7}") for i in range(60)]
    paths = [shutil.move(jsonl(rows, f"{i}.jsonl"), home / "my data") for i in range(2)]
    flags = "--preset laptop --block_size 16 --n_layers 1 --d_model 8 --n_heads 1 --steps 1"
    flags += " --warmup_steps 0 --tokenizer_size 300 --loss_on all --packing pack --eval_problems 2"
    line = [*flags.split(), "--data", *map(str, paths), "--out_dir", str(home / "runs")]
    monkeypatch.setattr("sys.argv", ["train.py", *line])
    assert train.main([*line, "--name", "run"]) == 0, capsys.readouterr().err
    m, t = checkpoints.read_config(str(home / "runs" / "run"))
    cell = SimpleNamespace(folder=str(home / "runs" / "run"), labels=dict(seed=0), t=t)
    table.summarize(str(home / "runs" / "grid"), [cell], shlex.join(line))
    written = [path for path in (home / "runs").rglob("*") if path.is_file()]
    assert len(written) >= 10
    for path in written:
        content = path.read_bytes()
        assert b"home/ann" not in content and b"hf_secret" not in content, path
    config = json.loads((home / "runs" / "run" / "config.json").read_text())
    assert config["train"]["data"] == ["~/my data/0.jsonl", "~/my data/1.jsonl"]
    assert "~/runs" in config["command"] and config["train"]["out_dir"] == "~/runs"
    assert t.data == tuple(map(str, paths)) and t.out_dir == str(home / "runs")


def test_a_home_is_replaced_where_it_is_one(monkeypatch):
    monkeypatch.setenv("HOME", "/home/ann")
    monkeypatch.setenv("USERPROFILE", "/home/ann")
    said = {
        "/home/ann/x": "~/x",
        "--out_dir /home/ann --name x": "--out_dir ~ --name x",
        '"/home/ann/x", "/home/anna"': '"~/x", "/home/anna"',
        "'/home/ann/a b'": "'~/a b'",
        "/mnt/home/ann/x": "/mnt/home/ann/x",
        "": "",
    }
    assert {text: console.without_home(text) for text in said} == said
    monkeypatch.setenv("HOME", "/")  # of a user who has none
    monkeypatch.setenv("USERPROFILE", "/")
    assert console.without_home("/a/b / c") == "/a/b / c"


@pytest.mark.parametrize("home", ["/home/ann", "/home/jörg", "C:\\Users\\ann"])
def test_a_home_comes_back_where_it_was(home, monkeypatch, tiny):
    """Of a size it did not, and one whose name is not ASCII was not replaced."""
    monkeypatch.setenv("HOME", home)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path.replace("~", home, 1))
    m, t = tiny(out_dir=f"{home}/runs", sizes=(f"file={home}/x.txt", "a~b=~1"))
    kept = checkpoints.settings(m, t)["train"]
    assert kept["out_dir"] == "~/runs" and kept["sizes"] == ["file=~/x.txt", "a~b=~1"]
    assert checkpoints.from_json(kept["out_dir"]) == t.out_dir
    assert checkpoints.from_json(kept["sizes"]) == t.sizes
    assert checkpoints.from_json(["~", "my ~/a", "~b/a", "a/~/b"]) == (
        home, "my ~/a", "~b/a", "a/~/b"
    )  # fmt: skip


def test_nothing_in_a_state_is_unpickled(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (open, (str(tmp_path / "exploded"), "w"))

    torch.save(dict(bomb=Bomb()), tmp_path / "state.pt")
    with pytest.raises(ValueError, match="is not a checkpoint to resume from"):
        checkpoints.read_state(str(tmp_path / "state.pt"))
    assert not (tmp_path / "exploded").exists()
