"""Bad input, command lines and files alike, gets one clear line on stderr and exit code 2, and
nothing is lost. The table of it is in bad_lines.py."""

import dataclasses
import os
import re
import shlex
import shutil
import sys

import pytest
import torch

from bad_lines import FILES, LINES
from conftest import call
from minidepth_lab.base import configs, console, processes
from minidepth_lab.command import dispatch, one_run
from minidepth_lab.keep import checkpoints, running
from minidepth_lab.models import memory, variants
from minidepth_lab.rows import tokenizing
from minidepth_lab.tasks.base import own_code


@pytest.fixture(autouse=True)
def no_code_is_named(monkeypatch):
    monkeypatch.setattr(own_code, "NAMED", set())


def refused(arguments, words, capsys):
    """Assert that the command says `words` in one line, which it gives back, and does nothing."""
    code, _, err = call(arguments, capsys)
    assert code == 2 and words in err, err
    assert err.startswith("train.py: ") and err.count("\n") == 1 and "Traceback" not in err
    assert len(err) < 1300 and err[:-1].isprintable()
    return err


@pytest.fixture(scope="module")
def places(tmp_path_factory, finished):
    tmp = tmp_path_factory.mktemp("places")
    (tmp / "piped").mkdir()
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp / "piped" / "config.json")
        os.mkfifo(tmp / "fifo.jsonl")
        os.symlink(tmp / "a.jsonl", tmp / "link.jsonl")
    return dict(run=finished, tmp=tmp, pipe=tmp / "piped", fifo=tmp / "fifo.jsonl")


@pytest.mark.parametrize("line, words", LINES, ids=[str(i) for i in range(len(LINES))])
def test_a_bad_command_line_gets_one_line(line, words, places, tmp_path, capsys, monkeypatch):
    if re.search("pipe|fifo|link", line) and not hasattr(os, "mkfifo"):
        pytest.skip("no pipes and links here")
    if "/proc" in line and not os.path.isdir("/proc/self"):
        pytest.skip("no folder here in which nobody writes")
    if torch.cuda.is_available() and "of memory" in words:
        pytest.skip("there is a GPU")
    monkeypatch.setenv("CXX", "g0")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(running, "train", lambda *a, **k: pytest.fail("it trains"))
    arguments = [part.format(**places) if "{" in part else part for part in shlex.split(line)]
    refused(arguments, words, capsys)
    assert os.listdir(tmp_path) == []


def test_a_number_that_a_setting_cannot_be_gets_one_line(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tried = 0
    for f in (*dataclasses.fields(configs.ModelConfig), *dataclasses.fields(configs.TrainConfig)):
        low, high = f.metadata["low"], f.metadata["high"]
        if low is None:
            continue
        refused([f"--{f.name}", "nan" if f.type is float else "1.5"], f.name, capsys)
        for value in [low - 1] + [high + 1] * (high < 2**53):
            refused([f"--{f.name}", str(value)], f"{f.name} {value}", capsys)
            tried += 1
    assert tried > 50 and os.listdir(tmp_path) == []


@pytest.mark.parametrize("name, content, words", FILES, ids=[str(i) for i in range(len(FILES))])
def test_a_bad_file_gets_one_line(name, content, words, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(running, "train", lambda *a, **k: pytest.fail("it trains"))
    (tmp_path / name).write_bytes(content)
    flags = ["--packing", "pack", "--tokenizer_size", "300", "--loss_on", "all"]
    line = ["--data", str(tmp_path / name), "--out_dir", str(tmp_path / "runs"), *flags]
    assert name in refused(line, words, capsys) and not (tmp_path / "runs").exists()


def test_a_dry_run_asks_for_no_tokenizer_of_the_hub(capsys, monkeypatch):
    monkeypatch.setattr(tokenizing, "load_tokenizer", lambda *given: pytest.fail("it loads"))
    for line in (
        "--preset report --data some/hub --tokenizer nobody/nothing --n_layers 1",
        "--preset report --data some/hub --tokenizer characters --n_layers 1 2",
        "--data icqa --tokenizer ./notthere --n_layers 1 2",
    ):
        code, _, err = call([*line.split(), "--dry_run"], capsys)
        assert code == 0 and err == "", err


HERE = dict(MASTER_ADDR="127.0.0.1", MASTER_PORT="1")


@pytest.mark.parametrize("line, variables, words", [
    ("--n_layers 1", dict(RANK="abc"), "RANK, 'abc', is no number; start with torchrun, or unset"),
    ("--n_layers 1", dict(RANK="-1"), "RANK, '-1', is no number"),
    ("--n_layers 1", dict(RANK="0", LOCAL_RANK=""), "LOCAL_RANK, '', is no number"),
    ("--n_layers 1", dict(WORLD_SIZE="2"), "RANK and MASTER_ADDR and MASTER_PORT not set"),
    ("--n_layers 1", dict(WORLD_SIZE="2", RANK="0", MASTER_ADDR="here"), "but MASTER_PORT not set"),
    ("--n_layers 1", dict(WORLD_SIZE="2", RANK="0", MASTER_ADDR="here", MASTER_PORT="99999"),
     "MASTER_PORT, '99999', is no port, 0 to 65535"),
    ("--n_layers 1", dict(RANK="5"), "RANK is 5 of a WORLD_SIZE of 1; start with torchrun, or un"),
    ("--n_layers 1", dict(WORLD_SIZE="0"), "RANK is 0 of a WORLD_SIZE of 0"),
    ("--n_layers 1", dict(LOCAL_RANK="3"), "LOCAL_RANK is 3 but its RANK 0; start with torchrun"),
    ("--preset laptop --batch_size 4 --dry_run", dict(RANK="0", WORLD_SIZE="3", **HERE),
     "4 does not divide among 3 processes; give a multiple of 3"),
    ("--seed 0 1 --dry_run", dict(RANK="0", WORLD_SIZE="2", **HERE), "runs without torchrun"),
    *((line, dict(RANK="1", WORLD_SIZE="2", **HERE), "is done by one process; start it without")
      for line in ("--sample {} --prompt x", "--runs", "--score {}", "--bench")),
])  # fmt: skip
def test_half_of_what_torchrun_sets_gets_one_line(
    line, variables, words, finished, capsys, monkeypatch
):
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    refused([part.format(finished) for part in line.split()], words, capsys)


def test_what_other_launchers_set_for_a_single_process_does_no_harm(monkeypatch):
    """It meets nobody: no address is needed, and none is looked at."""
    for name, value in dict(RANK="0", LOCAL_RANK="0", WORLD_SIZE="1", MASTER_PORT="x").items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("MASTER_ADDR", raising=False)
    processes.check_launch()


def test_of_a_dry_run_that_goes_on_one_process_speaks_and_nothing_is_trained(
    finished, capsys, monkeypatch
):
    monkeypatch.setattr(running, "train", lambda *a, **k: pytest.fail("it trains"))
    before = sorted(os.listdir(finished))
    said = []
    for rank in "01":
        for name, value in dict(WORLD_SIZE="2", RANK=rank, **HERE).items():
            monkeypatch.setenv(name, value)
        code, out, err = call(["--resume", finished, "--steps", "20", "--dry_run"], capsys)
        assert code == 0, err
        said.append(out)
    assert "parameters " in said[0] and said[1] == "" and sorted(os.listdir(finished)) == before


# --- what a terminal is shown


def test_what_the_data_says_does_not_move_the_terminal(finished, capsys):
    assert console.visible("a\x1b[31m\x07\r\x9b\u202eb\ud800\tc\n") == (
        "a\\x1b[31m\\x07\\r\\x9b\\u202eb\\ud800\tc\n"
    )
    assert console.one_line("a\nb\r\n c" + "9" * 9000).startswith("a b")
    assert len(console.one_line("9" * 9000)) < 1010
    model, tokenizer = checkpoints.load(finished)
    run = running.Run.__new__(running.Run)
    run.model, run.tokenizer, run.log = model, tokenizer, [dict(accuracy=0.0)]
    easy, hard = ([dict(role="user", content=text)] for text in ("Easy?", "What\x1b[2J?"))
    hard = dict(messages=hard, answer="\x1b[31m2", steps=2)
    one_run.show_answers(run, [dict(messages=easy, answer="1", steps=1), hard])  # of most steps
    out = capsys.readouterr().out
    assert "\x1b" not in out and "What\\x1b[2J?" in out and "\\x1b[31m2" in out


# --- code of one's own

ZEROS = "torch.zeros(batch, 4, dtype=torch.int64)"
LOADER = "import numpy as np\nimport minidepth as md\ndef load_data(config, block_size, tokenizer):"
LOADER += "\n    x = np.arange(40, dtype=np.int32).reshape(10, 4)\n    "
STUDIES = [
    ("def rows(preset, settings): return 1 / 0", "has rows() that failed: division by zero"),
    *((f"def rows(preset, settings): return {given}", "rows() must give {name: settings}; it gave")
      for given in ("{}", "dict(a=None)")),
    ("def rows(preset, settings): return dict(a={}, b={})", "'a' and 'b' are the same settings"),
    ("raise SystemExit(0)", "cannot be executed: 0"),
]  # fmt: skip
LOADERS = [
    (LOADER + body, words)
    for body, words in [
        ("return missing", "has a load_data() that failed: name 'missing' is not defined"),
        ("return 3", "load_data() must give a minidepth.Data; it gave 3"),
        ("return md.Data((x, x), (x, x[:0]), n_words=40)", "val must be (tokens,"),
        ("return md.Data((x, x), (x, x), n_words=39)", "the word 39, but n_words is 39"),
        ("return md.Data(None, None)", "train must be (tokens, targets), each (N, T)"),
        ("import torch; x = torch.zeros(2, 3).long(); return md.Data((x, x), (x, x))",
         "each (N, T) whole numbers in a NumPy array; it is (tensor("),
        ("x = x * 1.0; return md.Data((x, x), (x, x))", "whole numbers in a NumPy array"),
        ("return md.Data((x, x - 1), (x, x), n_words=40)", "train has numbers below 0"),
    ]
]  # fmt: skip


def task(body=f"return {ZEROS}, {ZEROS}", more="", sizes=""):
    """A file with a task of one's own."""
    lines = ["import torch", "from minidepth_lab.tasks import Task", "class mine(Task):"]
    lines += [f"    def draw(self, batch, generator, test=False{sizes}):", f"        {body}"]
    return "\n".join([*lines, f"    {more}" if more else "", "TASK = mine()\n"])


MEASURES = {
    "guess(self, **sizes):\n        return 'half'": "has a guess() or shortcut() that failed",
    "guess(self, **sizes):\n        return 5": "a number from 0 to 1, or None where unknown; it re",
    "shortcut(self, **sizes):\n        return float('nan')": "where unknown; it returned nan",
    "accuracy(self, *a, **k):\n        1 / 0": "has an accuracy() that failed: division by",
    "accuracy(self, *a, **k):\n        return 'good'": "number from 0 to 1; it returned 'good'",
    "accuracy(self, *a, **k):\n        return dict(accuracy=float('nan'))": "the share a number fr",
    "accuracy(self, *a, **k):\n        return dict(accuracy=1.0, by=torch)": "is not JSON serializ",
    "accuracy(self, *a, **k):\n        return dict(accuracy=1.0, accuracy_by=dict(n=dict(a=0.5)))":
        "accuracy_by must be {size: {value: {'accuracy': SHARE",
    "train_batch(self, done, *a, **k):\n        return 1 / 0 if done else self.draw(*a)":
        "has a train_batch() that failed: division by zero",
    "ahead(self, *a, **k):\n        return 'soon'": "has an ahead() that failed: '>' not",
    "train_batch(self, done, *a, **k):\n        x, y = self.draw(*a)\n"
    "        return x + 7 * (done > 0), y": "draws the number 7 at step 2; its test has none above",
    "train_batch(self, done, *a, **k):\n        x, y = self.draw(*a)\n"
    "        return (x, y) if not done else (x.repeat(1, 99), y.repeat(1, 99))":
        "mine.py at step 2, whose sequences have 396 tokens",
}  # fmt: skip
PAIR = "must draw (tokens, targets), each (batch, T) int64"
TASKS = [
    *((task(f"return {drawn}"), words) for drawn, words in [
        ("1 / 0", "has a draw() that failed: division by zero"), ("3", PAIR + "; it drew 3"),
        (f"({ZEROS}, {ZEROS}[:, 1:])", PAIR), (f"({ZEROS}.float(), {ZEROS})", PAIR),
        ("([[0]], [[0]])", PAIR),
        (f"({ZEROS}[1:], {ZEROS}[1:])", "asked for, 1, of a token or more; it drew 0 of 4"),
        (f"({ZEROS}[:, 4:], {ZEROS}[:, 4:])", "of a token or more; it drew 1 of 0"),
        (f"({ZEROS} - 5, {ZEROS})", "draws numbers below 0; tokens count from 0"),
        (f"({ZEROS}, {ZEROS} - 101)", "draws numbers below 0; tokens count from 0"),
        (f"({ZEROS}, {ZEROS} - 100)", "draws no targets: all of them are -100"),
    ]),
    *((task(sizes=f", hard={default}"), f"the default of hard is {default}; give it a whole number")
      for default in ("True", "None", "()", "(1, True)")),
    (task(more="settings = None"), "a TASK whose settings are None; give a dict"),
    *((task(more=f"def {part}"), words) for part, words in MEASURES.items()),
]  # fmt: skip
OWN = [("--study", "--dry_run", *each) for each in STUDIES]
OWN += [("--loader", "--n_layers 1", *each) for each in LOADERS]
OWN += [("--data", "--preset tasks --n_layers 1 --d_model 16 --n_heads 2 --steps 2 "
         "--warmup_steps 1", *each) for each in TASKS]  # fmt: skip


@pytest.mark.parametrize("flag, more, code, words", OWN, ids=[str(i) for i in range(len(OWN))])
def test_code_of_ones_own_that_does_not_work_gets_one_line(
    flag, more, code, words, tmp_path, capsys
):
    (tmp_path / "mine.py").write_text(code)
    line = [flag, str(tmp_path / "mine.py"), *more.split(), "--out_dir", str(tmp_path / "runs")]
    assert "mine.py" in refused(line, words, capsys)


LINKS = [
    ("return oops", "has a links() that failed: name 'oops' is not defined"),
    ("return {}", "links() must return {step: bool tensor (200, 4, 4)}; it returned {}"),
    ("return [tokens > 0]", "it returned [tensor("),
    ("return dict(a=3)", "its 'a' is 3"),
    ("return dict(a=tokens[:, :, None] + tokens[:, None])", "its 'a' is int64 (200, 4, 4)"),
    (None, "train.py: mine has no steps to look for; its solution is not known"),
]


def test_links_of_ones_own_that_are_none_get_one_line(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # it knows a file by second and size
    flags = "--preset tasks --n_layers 1 --d_model 16 --n_heads 2 --steps 2 --warmup_steps 1"
    path = tmp_path / "mine.py"
    path.write_text(task())
    its = ["--data", str(path)]
    line = [*flags.split(), *its, "--out_dir", str(tmp_path), "--name", "run"]
    assert call(line, capsys)[0] == 0
    for part, words in LINKS:
        own_code.executed.cache_clear()
        more = f"def links(self, tokens, targets):\n        {part}\n" if part else ""
        path.write_text(task(more=more))
        refused(["--mechanism", str(tmp_path / "run"), *its], words, capsys)
    assert not (tmp_path / "run" / "mechanism.json").exists()


def test_the_names_of_a_studys_rows_do_not_move_the_terminal(tmp_path, capsys):
    path = tmp_path / "mine.py"
    path.write_text("def rows(preset, settings): return {'\\x1b[31mred\\n': settings}")
    line = ["--study", str(path), "--dry_run", "--preset", "tasks", "--data", "icqa"]
    code, out, _ = call(line, capsys)
    assert code == 0 and "\\x1b[31mred" in out and "\x1b" not in out


# --- folders


def test_a_new_run_replaces_no_files(tmp_path, capsys, monkeypatch):
    """Neither those of a run that has lost its config.json nor what is no run's at all; what a run
    leaves that died before its first step is not in the way."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "runs" / "victim"
    folder.mkdir(parents=True)
    for file in ("log.jsonl", "results.123.tmp"):
        (folder / file).write_text("mine")
    refused(["--name", "victim"], " has files of no run: ", capsys)
    assert {(folder / file).read_text() for file in ("log.jsonl", "results.123.tmp")} == {"mine"}
    died = tmp_path / "died"
    (died / "tokenizer").mkdir(parents=True)
    for name in (".lock", "config.json.77.tmp"):
        (died / name).write_text("")
    checkpoints.check_new(str(died))
    checkpoints.check_new(str(tmp_path / "not there"))
    (died / "tokenizer").rmdir()
    (died / "tokenizer").write_text("a file of that name")
    with pytest.raises(ValueError, match="has files of no run: tokenizer"):
        checkpoints.check_new(str(died))


def test_a_run_in_the_current_folder_is_resumed(finished, kept, capsys, monkeypatch):
    parent, name = os.path.split(finished)
    monkeypatch.chdir(parent)
    refused(["--resume", os.path.join(".", name)], f"{name} is finished", capsys)


def test_advice_to_resume_is_quoted(tmp_path, capsys):
    folder = tmp_path / "my runs" / "it's one"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    err = refused(["--out_dir", str(folder.parent), "--name", folder.name], "exists", capsys)
    assert f"--resume {shlex.quote(str(folder))}" in err


@pytest.mark.parametrize("fault, is_full", [
    (MemoryError(), True), (RuntimeError("DefaultCPUAllocator: can't allocate memory"), True),
    (RuntimeError("CUDA error: out of memory"), True),
    (RuntimeError("CUDA error: an illegal memory access was encountered"), False),
    (RuntimeError("expected all memory formats to be contiguous"), False),
])  # fmt: skip
def test_a_full_memory_gets_one_line_and_other_errors_are_shown_as_they_are(
    fault, is_full, capsys, monkeypatch, tmp_path
):
    def full(*a, **k):
        raise fault

    monkeypatch.setattr(dispatch.registry, "data_of", full)
    if is_full:
        refused(["--out_dir", str(tmp_path)], "the memory is full: ", capsys)
    else:
        with pytest.raises(RuntimeError):
            call(["--out_dir", str(tmp_path)], capsys)
    assert not console.is_out_of_memory(ValueError("out of memory"))


def test_what_has_no_text_says_whether_it_ever_had_one(solved, finished, tmp_path, capsys):
    refused(["--sample", solved, "--prompt", "x"], "was trained on a depth task", capsys)
    lost = shutil.copytree(finished, tmp_path / "lost")
    shutil.rmtree(lost / "tokenizer")
    for flags in (["--sample", str(lost), "--prompt", "x"], ["--score", str(lost)]):
        refused(flags, "lost its folder tokenizer; copy it from another run", capsys)


# --- memory is estimated


@pytest.mark.parametrize("changes", [
    dict(),
    dict(tie_weights=False, d_ff=0),
    dict(position="rotary"),
    dict(n_layers=3, n_heads=(8, 4, 2), d_model=64, n_loops=4),
    dict(n_layers=1, d_model=8, d_ff=3, vocab_size=1, block_size=1),
], ids=str)  # fmt: skip
def test_parameters_are_counted_as_the_model_has_them(changes):
    config = configs.ModelConfig(**dict(vocab_size=300, n_layers=2) | changes)
    with torch.device("meta"):
        gpt = variants.GPT(config)
    counted = variants.parameters(config)
    parts = dict(embedding="token_embedding", position="position_embedding", layers="blocks",
                 head="head", final_norm="norm")  # fmt: skip
    for part, name in parts.items():
        is_part = [p.numel() for key, p in gpt.named_parameters() if key.split(".")[0] == name]
        assert counted[part] == sum(is_part), part
    assert counted["total"] == sum(p.numel() for p in gpt.parameters())
    assert gpt.num_params() == counted


def test_a_containers_own_limit_counts_and_an_unknown_one_refuses_nothing(monkeypatch, tmp_path):
    m, t = configs.make("laptop", d_model=10**6)
    with monkeypatch.context() as patch:
        patch.setattr(memory, "machine_memory", lambda device: None)
        memory.check_enough(m, t)
    whole = 2**32
    monkeypatch.setattr(memory.os, "sysconf", lambda name: 2**16, raising=False)
    for text, expected in (("1048576\n", 2**20), (f"{2**80}\n", whole), ("max\n", whole)):
        (tmp_path / "memory.max").write_text(text)
        opened = lambda path, **how: open(tmp_path / os.path.basename(path), **how)  # noqa: E731
        monkeypatch.setattr(memory, "open", opened, raising=False)
        assert memory.machine_memory(torch.device("cpu")) == expected
