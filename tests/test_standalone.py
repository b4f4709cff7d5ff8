"""minidepth.py and train.py alone, in a folder of their own, on a machine without the project."""

import ast
import dis
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

import minidepth as md
import train
from minidepth_lab.base import configs
from minidepth_lab.keep import checkpoints, running

ROOT = pathlib.Path(md.__file__).resolve().parent
SMALL = "--n_layers 1 --d_model 16 --n_heads 2 --d_ff 32 --steps 6 --warmup_steps 1 --max_rows 300"
SMALL += " --batch_size 4 --grad_accum 1 --eval_every 3 --eval_problems 4 --watch_problems 0"

# the project is installed here in editable form: its folders are taken off the path
ALONE = """
import json, sys
sys.path = [folder for folder in sys.path if not folder.startswith(sys.argv[2])]
import minidepth, train
assert not train.LABORATORY
for line in json.loads(sys.argv[1]):
    print("exit code", train.main(line.split()), flush=True)
"""


@pytest.fixture
def alone(tmp_path):
    """Runs commands of train.py in a folder that has two files of ours → (stdout, stderr)."""
    for name in ("minidepth.py", "train.py"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "alone.py").write_text(ALONE)
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}

    def run(*lines, launcher=()):
        command = [sys.executable, *launcher, "alone.py", json.dumps(lines), str(ROOT)]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120
        )
        return done.stdout, done.stderr

    return run


def test_two_files_train_resume_and_sample(alone, tiny, data, tmp_path, jsonl):
    stopped = running.train(*tiny(name="stopped"), data, stop=lambda: True)
    rows = [dict(question=f"What is {i} plus 1?", answer=f"#### {i + 1}") for i in range(99)]
    words = os.path.join(stopped.dir, "tokenizer")
    report = f"--preset report --vocab_size 0 --block_size 64 --data {jsonl(rows)}"
    out, err = alone(
        f"{SMALL} --name main",
        f"--resume {stopped.dir}",
        f"--sample {stopped.dir} --prompt hello --max_new_tokens 3",
        f"{report} --tokenizer {words} {SMALL} --name own",
        "--study depth",
        f"{SMALL} --name other --temperature 1",
        f"{SMALL} --name other --jobs 2",
    )
    codes = [line.split()[-1] for line in out.splitlines() if line.startswith("exit code")]
    assert codes == ["0", "0", "0", "0", "2", "2", "2"], out + err
    assert "--temperature has no effect here" in err and "--jobs has no effect here" in err
    assert "get the whole project" in err and "Traceback" not in err
    assert out.count("Done. Final train loss") == 3
    for name in ("main", "own"):
        assert checkpoints.load(str(tmp_path / "runs" / name))
    resumed = checkpoints.load(stopped.dir)[0]
    whole = running.train(*tiny(name="whole"), data).model
    for name, weight in whole.state_dict().items():
        assert (weight == resumed.state_dict()[name]).all(), name


def test_two_files_train_under_torchrun(alone, tmp_path):
    torchrun = ["-m", "torch.distributed.run", "--nproc_per_node", "2", "--standalone"]
    out, err = alone(f"{SMALL} --name both", launcher=torchrun)
    assert out.count("exit code 0") == 2, out + err
    assert "DistributedDataParallel over 2 processes" in out
    assert checkpoints.load(str(tmp_path / "runs" / "both"))


def test_rows_words_and_validation_of_ones_own_are_read_without_the_laboratory(
    finished, jsonl, monkeypatch
):
    rows = [dict(question=f"What is {i} plus 1?", answer=f"#### {i + 1}") for i in range(20)]
    paths = dict(data=(jsonl(rows[:15], "a.jsonl"),), val_data=jsonl(rows[15:], "b.jsonl"))
    m, t = configs.make("laptop", **paths, tokenizer=os.path.join(finished, "tokenizer"))
    monkeypatch.setattr(train, "registry", lambda: pytest.fail("the laboratory is asked"))
    data = train.load_data(m, t)
    assert (data.facts["train_rows"], data.facts["val_rows"]) == (15, 5)
    assert data.tokenizer.get_vocab() == checkpoints.saved_tokenizer(finished).get_vocab()


def test_without_the_laboratory_what_does_not_need_it_is_done(monkeypatch, capsys, tmp_path):
    """In this process, which has it, so that whoever asks for it is seen."""
    import datasets

    monkeypatch.setattr(train, "LABORATORY", False)
    with pytest.raises(SystemExit) as helped:
        train.main(["--help"])
    assert helped.value.code == 0 and "--n_layers" in capsys.readouterr().out
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert train.pick_preset("auto", ("somebody/something",))[0] == "laptop"
    assert train.main("--preset laptop --max_rows 60 --dry_run".split()) == 0
    assert "at its peak" not in capsys.readouterr().out
    rows = datasets.Dataset.from_list([dict(question=f"q {i}", answer="a") for i in range(20)])
    monkeypatch.setattr("datasets.load_dataset", lambda *_: dict(train=rows))
    m, t = train.configs("laptop", dict(data=("somebody/something",)))
    assert train.load_data(m, t).facts["train_rows"] == 19
    small = f"--preset laptop --max_rows 60 --out_dir {tmp_path} --report_to wandb"
    for line in ("--n_layers 1 2 --jobs 2", "--runs", "--bench", "--data mine.py", small):
        assert train.main(line.split()) == 2
        assert "get the whole project" in capsys.readouterr().err, line
    with pytest.raises(ValueError, match="get the whole project"):
        train.weights_to_begin_with(configs.TrainConfig(init_from="gpt2"))


def test_minidepth_imports_nothing_of_ours():
    tree = ast.parse((ROOT / "minidepth.py").read_text(encoding="utf-8"))
    names = set()
    for node in ast.walk(tree):  # imports within functions too
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module.partition(".")[0])
    assert not names & {"train", "minidepth_lab", "minidepth_data", "minidepth_files"}


def test_each_section_uses_only_what_stands_above_it():
    """At the top level, and of what functions name: a name of a later section is not used."""
    text = (ROOT / "minidepth.py").read_text(encoding="utf-8")
    starts = [i for i, line in enumerate(text.splitlines(), 1) if line.startswith("# ---------- ")]
    assert len(starts) == 6  # section 1 is the docstring
    section = lambda line: sum(start <= line for start in starts)  # noqa: E731
    tree = ast.parse(text)
    home = {}
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            home[node.name] = section(node.lineno)
        elif isinstance(node, ast.Assign):
            home[node.targets[0].id] = section(node.lineno)
    wrong = []
    for node in tree.body:
        parts = [compile(ast.Module([node], []), "minidepth.py", "exec")]
        while parts:
            code = parts.pop()
            parts += [const for const in code.co_consts if hasattr(const, "co_code")]
            for step in dis.get_instructions(code):
                if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                    if home.get(step.argval, 0) > section(node.lineno):
                        wrong.append(f"{code.co_name}: {step.argval}")
    assert not wrong
