"""python train.py, as a user runs it."""

import io
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

import pytest
import torch
from huggingface_hub import constants

import minidepth as md
import train
from conftest import call, log_of
from minidepth_lab import studies
from minidepth_lab.base import configs, console
from minidepth_lab.command import dispatch, flags, one_run, sample
from minidepth_lab.keep import checkpoints, registry, running
from minidepth_lab.measure import sampling
from minidepth_lab.models import variants
from minidepth_lab.rows import hub
from minidepth_lab.studies import heads

ROOT = pathlib.Path(__file__).resolve().parents[2]
TINY = "--n_layers 1 --d_model 16 --n_heads 2 --d_ff 32 --steps 12 --warmup_steps 2 --eval_every 5"
TINY += " --batch_size 4 --eval_blocks 8 --max_rows 300 --eval_problems 4 --watch_problems 1"


def test_ctrl_c_while_torch_is_imported_is_no_traceback(tmp_path):
    (tmp_path / "torch.py").write_text("raise KeyboardInterrupt\n")
    command = [sys.executable, str(ROOT / "train.py"), "--help"]
    environment = os.environ | dict(PYTHONPATH=str(tmp_path))
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "train.py: interrupted\n")


LINE = r"epoch \d+ step (\d+)/12 lr \d\.\d\de[-+]\d\d train \d+\.\d{4} val \d+\.\d{4} \(\d+s\)"
LINE += r" right \d\.\d\d"  # of the held-out problems that each evaluation asks


def test_the_main_job(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code, out, err = call(TINY, capsys)
    assert (code, err) == (0, "")  # no progress bar into a file
    lines = out.splitlines()
    assert re.match("preset laptop: no CUDA GPU found|preset report", lines[0])
    facts = "\n".join(lines[1:6])
    for words in ("device ", "fp32, the default on cpu", "parameters ", "layers ", "12 steps",
                  "300 rows, 600 held out", "of positions filled"):  # fmt: skip
        assert words in facts
    assert "at its peak" not in facts  # no estimate of what begins at once
    logged = [re.fullmatch(LINE, line) for line in lines if line.startswith("epoch")]
    assert [m[1] for m in logged] == ["1", "5", "10", "12"]
    done_line = r"Done\. Final train loss: \d+\.\d{4} \| total time \d+s"
    (last,) = (i for i, line in enumerate(lines) if re.fullmatch(done_line, line))
    rest = "\n".join(lines[last + 1 :])
    assert "held-out problem: " in rest and "right answer: " in rest
    assert re.search(r"answer accuracy \d\.\d{3} on 4 held-out problems, guessing 0\.\d{3}", rest)
    (folder,) = (tmp_path / "runs").iterdir()
    names = {"config.json", "log.jsonl", "model.safetensors", "state.pt", "tokenizer", "curve.png"}
    assert names == set(os.listdir(folder)) - {".lock"}
    assert (folder / "curve.png").read_bytes()[:4] == b"\x89PNG"
    config = json.loads((folder / "config.json").read_text())
    assert config["command"].startswith("python train.py --n_layers 1 --d_model 16")
    code, _, err = call(TINY, capsys)
    assert code == 2 and "exists; give another --name" in err
    code, _, _ = call(TINY + " --seed 1 --dry_run", capsys)
    assert code == 0 and len(os.listdir("runs")) == 1
    code, _, err = call(f"--sample {folder} --prompt Sort", capsys)
    assert (code, err) == (0, "")


def test_dry_run_prints_the_published_facts(capsys):
    for n_layers, total, blocks in ((1, "60,207,744", "1,771,008"),
                                    (12, "79,688,832", "21,252,096")):  # fmt: skip
        code, out, err = call(f"--preset report --n_layers {n_layers} --dry_run", capsys)
        assert code == 0 and err == ""
        for words in (f"parameters {total}: embedding 58,239,360", f"layers {blocks}",
                      "151,665 words", "16 x 1 x 512 = 8,192 tokens; 500 steps",
                      "learning rate up to 0.0003 in 50, down to 3e-05",
                      "head tied to the embedding", f"model {n_layers} layer",
                      "wop/XXXXXL-chain-of-thought, tokenizer Qwen/Qwen2.5-0.5B",
                      "GiB at its peak: weights "):  # fmt: skip
            assert words in out


def test_a_dry_run_says_what_follows_from_the_settings_alone(capsys):
    """How many steps epochs make, only the data tells."""
    line = "--preset laptop --data some/hub --dry_run --eval_every 1 --eval_blocks 200"
    _, out, _ = call(f"{line} --n_loops 3 --n_layers 2", capsys)
    assert "2 layers looped 3 times" in out and "head tied" not in out
    assert "this run evaluates for longer than it trains" in out
    _, out, _ = call(f"{line} --epochs 2", capsys)
    assert "looped" not in out and "evaluates for longer" not in out
    line = "--preset laptop --dry_run --epochs 1 --eval_every 1 --max_rows 60"
    _, out, _ = call(f"{line} --watch_problems 0", capsys)
    assert "evaluates for longer" in out  # now that it is there
    _, out, _ = call("--preset laptop --dry_run --tokenizer somebody/words", capsys)
    assert "tokenizer somebody/words (not loaded)" in out
    # of epochs only the data tells where the rate ends
    rate = "--preset laptop --dry_run --tokenizer somebody/words --lr_steps 1100"
    assert "where it stays" in call(f"{rate} --epochs 2", capsys)[1]
    assert "where it stays" not in call(rate, capsys)[1]


def test_dry_run_says_what_is_in_a_file_and_refuses_a_folder_that_exists(tmp_path, capsys):
    rows = [dict(question=f"What is {i} + 1 ?", answer=f"{i + 1}") for i in range(60)]
    rows += [dict(question="unanswered")] * 3
    (tmp_path / "my.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    flags = f"--data {tmp_path}/my.jsonl --out_dir {tmp_path}/runs"
    flags += " --epochs 40 --block_size 40 --tokenizer_size 300"
    code, out, err = call(f"{flags} --dry_run", capsys)
    assert code == 0 and err == "" and not (tmp_path / "runs").exists()
    assert re.search(r"my\.jsonl: 5\d rows, \d held out, 3 left out; [\d,]+ tokens in", out)
    assert re.search(r"4\d\.\d epochs", out) and " words" in out
    (tmp_path / "runs" / "mine").mkdir(parents=True)
    (tmp_path / "runs" / "mine" / "config.json").write_text("{}")
    code, out, err = call(f"{flags} --name mine --dry_run", capsys)
    assert code == 2 and "mine exists; give another --name" in err
    code, out, err = call("--data icqa --dry_run", capsys)
    assert code == 0 and "drawn anew each step" in out


def test_a_home_folder_that_the_shell_left_as_it_was_typed_is_found():
    """--out_dir=~/runs made a folder of the name ~ which config.json then took for another one."""
    home = os.path.expanduser("~")
    line = "--out_dir=~/runs --tokenizer=~/a --resume=~/b --attention=~/c --data=~/d.txt"
    found = vars(flags.make_parser(full=False).parse_args([*line.split(), "--prompt", "~/e"]))
    for name, path in dict(out_dir="runs", resume="b").items():
        assert found[name] == os.path.join(home, path)
    for name, path in dict(tokenizer="a", attention="c", data="d.txt").items():
        assert found[name] == [os.path.join(home, path)]
    assert found["prompt"] == "~/e"  # what is said is no path


def test_the_preset_follows_the_machine(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "empty"))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(hub, "fault", lambda url: None)
    assert dispatch.pick_preset("auto") == ("report", "2 CUDA GPU found")
    # without a network it takes what needs none, and says so
    monkeypatch.setattr(hub, "fault", lambda url: "no route to host")
    name, why = dispatch.pick_preset("auto")
    assert name == "laptop" and why.startswith("2 CUDA GPU found, but not the report's data: ")
    assert "is not cached" in why and "no route to host" in why
    # unless nothing is to be fetched, or all of it is cached
    assert dispatch.pick_preset("auto", ("my.jsonl",), None, "words")[0] == "report"
    assert dispatch.pick_preset("auto", ("my.jsonl",))[0] == "laptop"
    for folder in (f"datasets--{md.TrainConfig.data}", f"models--{configs.TrainConfig.tokenizer}"):
        (tmp_path / folder.replace("/", "--") / "snapshots").mkdir(parents=True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    assert dispatch.pick_preset("auto") == ("report", "2 CUDA GPU found")


def test_a_studys_preset_is_found_before_anything_has_read_the_study(monkeypatch):
    known = {name: configs.PRESETS[name] for name in ("report", "laptop")}
    monkeypatch.setattr(configs, "PRESETS", known)
    monkeypatch.setattr(studies, "heads", heads)  # put back, as the line below is
    monkeypatch.delitem(sys.modules, heads.__name__)
    m, _ = registry.configs("heads")
    assert (m.n_layers, m.n_heads) == (4, 48)


def test_a_finished_run_that_was_kept_without_its_checkpoints_is_not_trained_anew(
    finished, tmp_path, capsys
):
    kept = tmp_path / "kept"
    shutil.copytree(finished, kept, ignore=shutil.ignore_patterns("state*.pt"))
    before = (kept / "model.safetensors").stat().st_mtime_ns
    code, _, err = call(f"--resume {kept}", capsys)
    assert code == 2 and "is finished: 12 of 12 steps are done" in err
    assert (kept / "model.safetensors").stat().st_mtime_ns == before
    rows = (kept / "log.jsonl").read_text().splitlines(keepends=True)
    (kept / "log.jsonl").write_text("".join(rows[:-1]))  # it died before its first checkpoint
    one_run.check_kept(str(kept), 12)


@pytest.mark.skipif(os.name != "posix", reason="limits the size of files as POSIX does")
def test_a_full_disk_gets_one_line_and_leaves_no_half_file(tmp_path, capsys, monkeypatch):
    """A limit on file size stands in for the disk: the weights do not fit, config.json does."""
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    monkeypatch.chdir(tmp_path)
    resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, before[1]))
    try:
        line = TINY.replace("--d_model 16", "--d_model 64") + " --out_dir runs --name full"
        code, _, err = call(line, capsys)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert code == 2 and err.count("\n") == 1
    assert "runs/full/model.safetensors: File too large" in err
    left = os.listdir(tmp_path / "runs" / "full")
    assert "state.pt" not in left and not [name for name in left if name.endswith(".tmp")]


def test_a_model_of_plain_text_goes_on_with_the_prompt(tmp_path, jsonl, capsys):
    path = jsonl([dict(text="one two three four")] * 90 + [dict(text="six")] * 9)
    flags = f"--data {path} --n_layers 1 --loss_on all --block_size 16 --steps 60 --batch_size 16"
    assert call(f"{flags} --out_dir {tmp_path} --name text", capsys)[0] == 0
    code, out, _ = call(f"--sample {tmp_path}/text --prompt one", capsys)
    assert code == 0 and out == "one two three four\n"
    for flags in ("--prompt one --system two", "--chat"):
        code, _, err = call(f"--sample {tmp_path}/text {flags}", capsys)
        assert code == 2 and f"has no effect on {tmp_path}/text, trained on plain text" in err
    code, _, err = call(f"--sample {tmp_path}/text --prompt {'one,' * 9}", capsys)
    assert code == 2 and "tokens; this model reads at most 15 and has one left to answer" in err


def test_a_curve_that_cannot_be_drawn_takes_nothing_with_it(tmp_path, capsys, monkeypatch):
    from minidepth_lab.show import curve

    monkeypatch.setattr(curve, "draw_curve", lambda run, t: 1 / 0)
    code, out, err = call(f"{SMALL} --out_dir {tmp_path}", capsys)
    assert code == 0 and "wrote " in out
    assert err == "train.py: curve.png could not be drawn: division by zero\n"


def test_a_prompt_may_leave_one_place():
    config = configs.ModelConfig(block_size=8)
    sample.check_room(config, [0] * 7)
    with pytest.raises(ValueError, match="makes 8 tokens; this model reads at most 7"):
        sample.check_room(config, [0] * 8)
    sample.check_room(configs.ModelConfig(block_size=8, position="rotary"), [0] * 8)


def test_help_lists_every_setting_with_its_default(capsys):
    code, out, _ = call("--help", capsys)
    assert code == 0
    for field in flags.FIELDS:
        assert f"--{field.name} " in out
    assert "peak learning rate (0.0003 [0.003])" in out
    assert call("-h", capsys)[1] == out
    assert call("--version", capsys)[:2] == (0, f"minidepth {md.__version__}\n")


def test_what_a_terminal_cannot_show_is_shown_as_escapes_at_once(finished, monkeypatch):
    """That of a machine set to C, say; a notebook's output is no real stream."""
    monkeypatch.setattr(sampling, "answer_texts", lambda *_, **__: ["schön"])
    for stream in (io.TextIOWrapper(io.BytesIO(), encoding="ascii"), io.StringIO()):
        monkeypatch.setattr(sys, "stdout", stream)
        assert train.main(["--sample", finished, "--prompt", "x"]) == 0
        if isinstance(stream, io.StringIO):
            assert stream.getvalue() == "schön\n"
        else:
            assert stream.buffer.getvalue() == rb"sch\xf6n" + b"\n"


READ = """
import importlib, pathlib, sys
heavy = ("transformers", "datasets", "matplotlib", "safetensors", "pyarrow", "scipy")
read = lambda: [m for m in sys.modules if m in heavy or m.startswith("minidepth_lab")]
import minidepth
first = read()
import train
tiny = "--n_layers 1 --d_model 8 --n_heads 1 --batch_size 2 --grad_accum 1 --eval_problems 0"
train.main(["--dry_run", "--max_rows", "60", "--data", "embedded", *tiny.split()])
print(*[m for m in read() if any(part in m for part in (".studies.", ".show.", ".sweep"))])
for path in pathlib.Path("minidepth_lab").glob("*/[a-z]*.py"):
    importlib.import_module(f"minidepth_lab.{path.parent.name}.{path.stem}")
print(first, "matplotlib" in sys.modules)
"""


def test_nothing_is_read_before_it_is_needed():
    """minidepth.py needs torch alone, the main job no study, figure or grid, and no module of the
    laboratory a plotting library."""
    done = subprocess.run([sys.executable, "-c", READ], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.endswith("\n\n[] False\n"), done.stdout + done.stderr


def test_a_long_list_by_value_is_told_in_part():
    few = {str(n): n / 100 for n in range(1, 5)}
    assert one_run.listed(few, 2) == "1 0.01, 2 0.02, 3 0.03, 4 0.04"
    many = {str(n): n / 100 for n in range(1, 101)}
    told = "1 0.010, 2 0.020, 4 0.040, 8 0.080, 16 0.160, 32 0.320, 64 0.640, 100 1.000"
    assert one_run.listed(many, 3) == told


# ---------- how it begins and ends ----------

SMALL = "--preset laptop --n_layers 1 --d_model 16 --n_heads 2 --steps 4 --warmup_steps 1 "
SMALL += "--max_rows 60 --ring_questions 1 --eval_blocks 4 --eval_problems 0 --watch_problems 0"


def tiny_run(tmp_path, flags):
    return train.main([*SMALL.split(), "--out_dir", str(tmp_path), *flags.split()])


def test_a_run_that_has_diverged_ends_with_1(tmp_path, monkeypatch, capsys):
    def diverge(*_, **__):
        raise md.Diverged("the gradient was infinite")

    monkeypatch.setattr(running, "train", diverge)
    assert tiny_run(tmp_path, "--name diverged") == 1
    err = capsys.readouterr().err
    assert err.startswith("train.py: the gradient was infinite; lower --lr")
    assert err.count("\n") == 1


@pytest.mark.skipif(os.name != "posix", reason="signals as POSIX has them")
def test_ctrl_c_saves_and_the_run_goes_on(tmp_path, monkeypatch, capsys):
    real, steps = variants.GPT.forward, []

    def told_to_stop(self, *arguments, **options):
        if self.training:
            steps.append(1)
            if len(steps) == 2:
                os.kill(os.getpid(), signal.SIGINT)
        return real(self, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(variants.GPT, "forward", told_to_stop)
        # in the background of a shell Ctrl-C is ignored, and would be here, too
        patch.setattr(signal, "getsignal", lambda number: signal.default_int_handler)
        assert tiny_run(tmp_path, "--name cut --grad_accum 1 --eval_every 3") == 130
    folder = tmp_path / "cut"
    advice = f"Stopped after step 2; go on with: python train.py --resume {folder}\n"
    assert capsys.readouterr().out.endswith(advice) and (folder / "curve.png").exists()
    # wherever it began, and as a shell completes it
    assert train.main(["--resume", f"{folder}{os.sep}", "--device", "cpu"]) == 0
    assert [record["step"] for record in log_of(folder)] == [1, 3, 4]
    assert train.main(["--resume", str(folder)]) == 2
    assert sorted(os.listdir(tmp_path)) == ["cut"]


def test_a_run_whose_disk_is_read_only_is_not_resumed(finished, monkeypatch, capsys):
    def refuse(dir):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    assert train.main(["--resume", finished, "--steps", "20", "--dry_run"]) == 2
    said = f"--resume {finished}: nothing can be written in {finished} (Read-only file system)"
    assert said in capsys.readouterr().err


def test_a_new_run_makes_its_tokenizer_anew_though_one_lies_where_it_will_be(
    finished, tmp_path, monkeypatch, capsys
):
    """Of a run that died before it began, with other settings maybe."""
    shutil.copytree(os.path.join(finished, "tokenizer"), tmp_path / "run" / "tokenizer")

    def load_data(t, block_size, tokenizer=None):
        raise ValueError(f"the tokenizer is {tokenizer}")

    monkeypatch.setattr(dispatch.registry, "data_of", load_data)
    assert tiny_run(tmp_path, "--name run") == 2
    assert capsys.readouterr().err == "train.py: the tokenizer is None\n"
    assert train.main(["--resume", finished, "--steps", "20"]) == 2
    assert os.path.join(finished, "tokenizer") in capsys.readouterr().err


def test_the_flags_of_sample_reach_the_model(finished, capsys):
    model, tokenizer = checkpoints.load(finished)
    problem, said = dict(messages=[dict(role="user", content="Sort")]), set()
    for given, how in (
        ("", dict(temperature=0)),
        ("--max_new_tokens 5", dict(temperature=0, max_new_tokens=5)),
        ("--temperature 2", dict(temperature=2, seed=0)),
        ("--temperature 2 --seed 3", dict(temperature=2, seed=3)),
        ("--temperature 2 --seed 3 --top_k 7", dict(temperature=2, seed=3, top_k=7)),
    ):
        _, out, _ = call(f"--sample {finished} --prompt Sort {given}", capsys)
        (expected,) = sampling.answer_texts(model, tokenizer, [problem], **how)
        assert out == f"{console.visible(expected.strip())}\n"
        said.add(out)
    assert len(said) == 5
