"""minidepth.py and train.py alone, in a folder of their own, on a machine without the project."""

import ast
import dataclasses
import dis
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest
import torch

import minidepth as md

ROOT = pathlib.Path(md.__file__).resolve().parent
MOST_LINES = 1055
SMALL = "--preset laptop --n_layers 1 --d_model 16 --n_heads 2 --d_ff 32 --steps 6 --warmup_steps 1"
SMALL += " --max_rows 300 --batch_size 4 --grad_accum 1 --eval_every 3 --eval_problems 4"
SMALL += " --watch_problems 0"

NO_TURNS = ("text", ["a"], [None], {"role": "user"}, 5, None, [], [dict(role="user", content=1)])

# the project may be installed here in editable form: its folders are taken off the path
ALONE = """
import json, os, sys
sys.path = [p for p in sys.path if "site-packages" in p or not os.path.isdir(f"{p}/minidepth_lab")]
import minidepth, train
for line in json.loads(sys.argv[1]):
    try:
        code = train.main(line.split())
    except SystemExit as end:
        code = end.code
    print("exit code", code, flush=True)
"""


@pytest.fixture
def alone(tmp_path):
    """Runs commands of train.py in a folder that has two files of ours → (exit codes, stdout,
    stderr)."""
    for name in ("minidepth.py", "train.py"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "alone.py").write_text(ALONE)
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}

    def run(*lines, launcher=()):
        command = [sys.executable, *launcher, "alone.py", json.dumps(lines)]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=1800
        )
        out = done.stdout.splitlines()
        codes = [int(line.split()[-1]) for line in out if line.startswith("exit code")]
        return codes, done.stdout, done.stderr

    return run


BAD = [
    f"{SMALL} --name a --n_heads 3",
    f"{SMALL} --name a --dropout 2",
    f"{SMALL} --name a --lr",
    "--study depth",
    "--sample nowhere --prompt hello",
    "--resume nowhere",
    f"{SMALL} --data nowhere.jsonl",
    f"{SMALL} --data broken.jsonl",
    f"{SMALL} --name a --packing padded",
    "--resume begun --lr 1",
    "--resume torn",
    "--sample torn --prompt hello",
    "--prompt hello",
    "--sample begun --prompt hello --temperature -1",
    *([] if torch.cuda.is_available() else [f"{SMALL} --name b --device cuda"]),
]


def test_two_files_train_and_sample_and_what_cannot_be_done_is_one_line_and_a_2(alone, tmp_path):
    rows = [
        dict(messages=[dict(role="user", content=f"What is {i} plus 1?"),
                       dict(role="assistant", content=f"#### {i + 1}")])
        for i in range(99)
    ]  # fmt: skip
    path = tmp_path / "rows.jsonl"
    none = [dict(text="no turns"), "text", None, *(dict(messages=each) for each in NO_TURNS)]
    rows = [row | dict(guess=None) for row in rows]  # a column without a value, as hubs have
    path.write_text("".join(json.dumps(row) + "\n" for row in [*rows, *none]))
    (tmp_path / "broken.jsonl").write_text('{"messages": []}\n{"messages": [\n')
    (tmp_path / "begun").mkdir()
    (tmp_path / "begun" / "config.json").write_text("{}")
    torn = tmp_path / "torn"
    torn.mkdir()
    (torn / "config.json").write_text(
        json.dumps(dict(zip(("model", "train"), map(dataclasses.asdict, md.configs()))))
    )
    for name in ("state.pt", "model.safetensors"):
        (torn / name).write_bytes(b"half of it")
    own = f"--data {path} --tokenizer runs/main/tokenizer --block_size 64 --name own"
    codes, out, err = alone(
        f"{SMALL} --name main",
        "--sample runs/main --prompt hello --temperature 1 --seed 3",
        f"{SMALL} {own}",
        *BAD,
    )
    assert codes == [0, 0, 0] + [2] * len(BAD), out + err
    assert out.count("Done. Final train loss") == 2 and f"{len(none)} rows are no" in out
    for name in ("main", "own"):
        model, tokenizer = md.load(str(tmp_path / "runs" / name))
        assert model.config.d_model == 16 and len(tokenizer) >= 300
        log = [json.loads(line) for line in open(tmp_path / "runs" / name / "log.jsonl")]
        assert [record["step"] for record in log] == [1, 3, 6]
        assert ["accuracy" in record for record in log] == [False, False, True]
    assert err.count("\n") == len(BAD) and "Traceback" not in err
    for words in ("broken.jsonl", "leave out --lr", "--temperature -1"):
        assert words in err


@pytest.mark.skipif(os.name != "posix", reason="sets a limit that others do not have")
def test_a_full_disk_is_one_line_and_a_2(alone):
    """The weights fit, what a resume needs does not."""
    limit = "resource.setrlimit(resource.RLIMIT_FSIZE, (80_000, 80_000))"
    code = f"import resource, runpy, sys; {limit}; del sys.argv[0]; runpy.run_path(sys.argv[0])"
    codes, _, err = alone(f"{SMALL} --name main", launcher=("-c", code))
    assert codes == [2] and err == "train.py: [Errno 27] File too large\n"


def test_guessing_is_of_the_problems_that_are_asked():
    """Those with few steps are easier to guess, and the mix of the first is not that of all."""
    m, t = md.configs(max_rows=50, eval_problems=1)
    data = md.load_data(t, m.block_size)
    assert len(data.problems) > 100 and data.facts["guess"] == data.problems[0]["guess"]


def test_two_files_train_under_torchrun(alone, tmp_path):
    torchrun = ["-m", "torch.distributed.run", "--nproc_per_node", "2", "--standalone"]
    codes, out, err = alone(f"{SMALL} --name both", launcher=torchrun)
    assert codes == [0, 0], out + err
    assert "DistributedDataParallel over 2 processes" in out
    assert md.load(str(tmp_path / "runs" / "both"))


def test_the_file_is_short_and_names_nothing_that_plugs_into_it():
    text = (ROOT / "minidepth.py").read_text(encoding="utf-8")
    assert text.count("\n") < MOST_LINES
    assert "minidepth_lab" not in text and "laboratory" not in text.lower()


def test_each_section_uses_only_what_stands_above_it():
    """At the top level, and of what functions name: a name of a later section is not used."""
    text = (ROOT / "minidepth.py").read_text(encoding="utf-8")
    starts = [i for i, line in enumerate(text.splitlines(), 1) if line.startswith("# ---------- ")]
    assert len(starts) == 7
    section = lambda line: sum(start <= line for start in starts)  # noqa: E731
    tree = ast.parse(text)
    home = {}
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            home[node.name] = section(node.lineno)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                for name in getattr(target, "elts", [target]):
                    home[name.id] = section(node.lineno)
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
