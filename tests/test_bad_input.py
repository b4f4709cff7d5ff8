"""Bad command lines and bad files: one clear line on stderr, exit code 2, nothing lost."""

import json
import os
import pathlib
import random
import re
import shlex
import sys
import time

import pytest
import torch

import minidepth as md
import train
from minidepth_lab.base import configs, console
from minidepth_lab.command import dispatch, memory
from minidepth_lab.keep import checkpoints, running
from minidepth_lab.models import variants
from minidepth_lab.rows import forms, to_data, tokenizing
from minidepth_lab.tasks.base import own_code

HUGE, ENDLESS = "9" * 30, "9" * 400


def call(arguments, capsys):
    """(exit code, stdout, stderr) of the command, in this process."""
    try:
        code = train.main(arguments)
    except SystemExit as stop:
        code = stop.code
    return code, *capsys.readouterr()


def refused(arguments, words, capsys):
    """Assert that the command says `words` in one line, which it gives back, and does nothing."""
    code, _, err = call(arguments, capsys)
    assert code == 2 and words in err, err
    assert err.startswith("train.py: ") and err.count("\n") == 1 and "Traceback" not in err
    assert len(err) < 1300 and err[:-1].isprintable()
    return err


# --- command lines


def numbers():
    """A line for each number that each setting cannot be."""
    for kind in (configs.ModelConfig, configs.TrainConfig):
        for f in md.dataclasses.fields(kind):
            low, high = f.metadata["low"], f.metadata["high"]
            if low is None:
                continue
            yield f"--{f.name} {low - 1}", f"{f.name} {low - 1}"
            yield f"--{f.name} {HUGE}", f.name
            yield f"--{f.name} many", f.name
            if f.type is float:
                yield f"--{f.name} nan", f.name
                yield f"--{f.name} inf", f.name
            else:
                yield f"--{f.name} 1.5", f.name
                yield f"--{f.name} {ENDLESS}", f.name
            if high < 2**53:
                yield f"--{f.name} {high + 1}", f"{f.name} {high + 1}"


LINES = [
    # what no machine holds
    ("--d_model 1000000", "needs at least 71"),
    ("--vocab_size 1000000000000", "GiB for weights, gradients and AdamW's moments; cpu has"),
    ("--block_size 100000000", "GiB for a batch's activations; cpu has"),
    ("--n_layers 100000000", "of memory"),
    ("--n_layers 100000000 --n_heads 3", "n_heads 3 does not divide d_model 64"),
    ("--batch_size 10000000000", "lower --batch_size, --block_size"),
    ("--grad_accum 10000000000", "GiB for a batch's tokens"),
    ("--n_loops 100000000", "of memory"),
    ("--max_rows 10000000000", "GiB for the rows; cpu has"),
    ("--d_ff 100000000000", "of memory"),
    ("--d_model 1000000000 --dry_run", "of memory"),
    ("--d_model 1000000000 --bench", "of memory"),
    ("--n_layers 1,2", "'1,2' is not a whole number; several values stand apart: 1 2"),
    ("--lr 3,5", "'3,5' is not a number; several values stand apart"),
    ("--steps 1e3", "'1e3' is not a whole number; see"),
    ("--name ' '", "name ' ' does not work; give a text that is not empty"),
    ("--loader '\u3000'", "loader '\\u3000' does not work; give a text that is not empty"),
    ("--steps 10 --epochs 3", "--steps has no effect with --epochs 3; give --epochs 0 too"),
    ("--steps 5 10 --epochs 0 1", "--steps has no effect with --epochs 1"),
    ("--preset reread --steps 10", "--steps has no effect with --epochs 20; give --epochs 0"),
    ("--name .", "--name . is not within --out_dir; give a name"),
    ("--name a/../..", "--name a/../.. is not within --out_dir"),
    ("--name {tmp}/a", "/a is not within --out_dir"),
    ("--name " + "a" * 256, "aaa… is too long; give at most 255 bytes"),
    ("--name a/" + "é" * 128, "is too long; give at most 255 bytes"),
    ("--attention {run} {tmp}", "holds no run"),
    ("--export_hf {tmp} out", "holds no run"),
    ("--export_hf {run} {run}/config.json", "config.json is no empty folder; choose another one"),
    ("--score {run} --max_rows -5", "max_rows -5 does not work"),
    ("--resume {run} --device abacus", "device 'abacus'"),
    ("--match_params 10000 --d_model 4096", "as 10000 layers have: training needs"),
    ("--d_model 1000000000 --n_layers 1 2", "of memory"),
    ("--d_model 9007199254740992 --n_heads 7", "n_heads 7 does not divide d_model"),
    ("--d_model 64 --n_heads 1000000000000", "does not divide d_model 64; near it"),
    # names that are none
    ("--preset ''", "--preset was given an empty value"),
    ("--data ''", "--data was given an empty value"),
    ("--data embedded ''", "--data was given an empty value"),
    ("--data ' '", "data ' ' does not work; give a text that is not empty"),
    ("--tokenizer ''", "--tokenizer was given an empty value"),
    ("--out_dir ''", "--out_dir was given an empty value"),
    ("--resume ''", "--resume was given an empty value; is a variable unset?"),
    ("--sample '' --prompt x", "--sample was given an empty value"),
    ("--study ''", "--study was given an empty value"),
    ("--score ''", "--score was given an empty value"),
    ("--mechanism ''", "--mechanism was given an empty value"),
    ("--attention ''", "--attention was given an empty value"),
    ("--export_hf '' ''", "--export_hf was given an empty value"),
    ("--sample {run} --prompt ''", "--prompt was given an empty value"),
    ("--name 'a\tb'", "name 'a\\tb' does not work; give a text"),
    ("--name 'a\x1b[31mb'", "without control characters"),
    ("--out_dir 'a\udcffb'", "without control characters"),
    ("--data 'a\udcffb.txt'", "without control characters"),
    ("--data 'a\nb.txt'", "without control characters"),
    ("--preset no\x1b[31mthing", "preset 'no\\x1b[31mthing' is unknown"),
    ("--loader nobody", "loader 'nobody' is unknown; choose from"),
    ("--loader ../tasks", "loader '../tasks' is unknown"),
    ("--study ../grid", "study '../grid' is unknown"),
    ("--study depth.pyc", "study 'depth.pyc' is unknown"),
    ("--position sideways", "position 'sideways' is unknown; choose from learned, rotary, none"),
    ("--packing half", "packing 'half' is unknown"),
    ("--loss_on nobody", "loss_on 'nobody' is unknown"),
    ("--precision fp64", "precision 'fp64' is unknown"),
    ("--device tpu", "device 'tpu' is unknown"),
    # flags without effect
    ("--prompt hello", "--prompt has no effect without --sample RUN_DIR"),
    ("--temperature 1", "--temperature has no effect without --sample"),
    ("--max_new_tokens 5", "--max_new_tokens has no effect without --sample"),
    ("--resume {run} --prompt x", "--prompt has no effect without --sample"),
    ("--sample {run} --prompt x --n_layers 3", "--n_layers has no effect with --sample"),
    ("--sample {run} --prompt x --data embedded", "--data has no effect with --sample"),
    ("--sample {run} --prompt x --preset report", "--preset has no effect with --sample"),
    ("--sample {run} --prompt x --dry_run", "--dry_run has no effect with --sample"),
    ("--sample {run} --prompt x --study depth", "--study has no effect with --sample"),
    ("--score {run} --lr 1", "--lr has no effect with --score"),
    ("--mechanism {run} --seed 1", "--seed has no effect with --mechanism"),
    ("--attention {run} --steps 1", "--steps has no effect with --attention"),
    ("--export_hf {run} out --seed 1", "--seed has no effect with --export_hf"),
    ("--export_hf {run} out --match_params 3", "--match_params has no effect with --export_hf"),
    ("--sample {run} --prompt x --resume {run}", "are two things to do; give one of them"),
    ("--sample {run} --prompt x --score {run}", "are two things to do"),
    ("--bench --resume {run}", "are two things to do"),
    ("--bench --dry_run", "are two things to do"),
    ("--bench --fsdp", "--fsdp shares the weights among the processes"),
    ("--resume {run} --preset laptop", "--resume keeps the run's settings; leave out --preset"),
    ("--resume {run} --lr 1", "--resume keeps the run's settings; leave out --lr"),
    ("--resume {run} --keep nothing", "keep 'nothing' is unknown; choose from last, best"),
    ("--resume {run} --steps 0", "steps 0 does not work; give a whole number at least 1"),
    ("--resume {run} --n_layers 3", "--resume keeps the run's settings; leave out --n_layers"),
    ("--resume {run} --out_dir x", "--resume keeps the run's settings; leave out --out_dir"),
    ("--resume {run} --name x", "--resume keeps the run's settings; leave out --name"),
    ("--resume {run} --dry_run --lr 1", "--resume keeps the run's settings; leave out --lr"),
    ("--resume {run} --dry_run --study depth", "settings; leave out --study"),
    ("--resume {run} --match_params 3", "settings; leave out --match_params"),
    ("--resume {run} --jobs 3", "settings; leave out --jobs"),
    ("--resume {run} --yes", "settings; leave out --yes"),
    ("--sample {run} --prompt x --jobs 3", "--jobs has no effect with --sample"),
    ("--sample {run} --prompt x --yes", "--yes has no effect with --sample"),
    ("--sample {run} --prompt x --seed 1 2", "--seed has several values, but --sample takes one"),
    ("--score {run} --max_rows 5 10", "--max_rows has several values, but --score takes one"),
    ("--attention {run} --data nothere.py", "data nothere.py is not there; give a Python file"),
    ("--mechanism {run} --loader no.py", "loader no.py is not there; give a Python file"),
    ("--score {run} --data nothere.py", "data nothere.py is not there; give a Python file"),
    # code that would not be asked
    ("--sample {run} --prompt x --data my.py", "--data has no effect with --sample, which trains"),
    ("--sample {run} --prompt x --loader my.py", "--loader has no effect with --sample"),
    ("--score {run} --loader my.py", "--loader has no effect with --score"),
    ("--export_hf {run} out --data my.py", "--data has no effect with --export_hf"),
    ("--compare {run} {run} --loader my.py", "--loader has no effect with --compare"),
    ("--report {run} --data my.py", "--data has no effect with --report"),
    ("--attention {run} --data embedded.pyc", "--data has no effect with --attention"),
    ("--attention {run} --data my.py a.jsonl", "--data has no effect with --attention"),
    ("--attention {run} --name my.py", "--name has no effect with --attention"),
    ("--match_params 2 --n_layers 1 --jobs 3", "--jobs has no effect on a single run; it is for"),
    ("--match_params 2 --n_layers 1 --yes --dry_run", "--yes has no effect on a single run; it"),
    ("--study depth --match_params 3", "--match_params has no effect with --study"),
    ("--study heads --n_heads 2", "--n_heads has no effect with --study heads, which sets it"),
    ("--study ring --preset ring --n_layers 3 --d_model 64", "--n_layers has no effect"),
    ("--jobs -5", "--jobs -5 does not work; give at least 1"),
    ("--jobs 0", "--jobs 0 does not work"),
    ("--seed 0 1 --jobs -1", "--jobs -1 does not work"),
    (f"--seed 0 1 --jobs {HUGE}", "does not work; give at least 1"),
    ("--jobs 2", "--jobs has no effect on a single run; it is for a grid"),
    ("--yes", "--yes has no effect on a single run"),
    ("--match nope", "--match nope is unknown; give total or blocks"),
    ("--match blocks", "--match has no effect without --match_params N"),
    ("--match_params 0", "--match_params 0 does not work"),
    (f"--match_params {HUGE}", "does not work; give a number of layers"),
    ("--match_params 2 --match heads", "--match heads is unknown"),
    # sampling
    ("--sample {run}", "--sample needs --prompt TEXT, --prompt_file FILE or --chat"),
    ("--sample {run} --prompt x --chat", "--prompt and --chat are two ways to ask; give one"),
    ("--sample {run} --prompt_file {tmp}/none", "none is not there; give the path of a file"),
    ("--sample {run} --prompt ' '", "the prompt is empty; give some text"),
    ("--sample {run} --prompt x --top_k 0 --temperature 1", "--top_k 0 does not work; give a num"),
    ("--sample {run} --prompt x --num_samples 0 --temperature 1", "--num_samples 0 does not work"),
    ("--sample {run} --prompt x --top_k 3", "--top_k has no effect at --temperature 0, which"),
    ("--sample {run} --prompt x --num_samples 3", "--num_samples has no effect at --temperature 0"),
    ("--top_k 3", "--top_k has no effect without --sample RUN_DIR"),
    ("--chat", "--chat has no effect without --sample RUN_DIR"),
    ("--first_weights", "--first_weights has no effect without --sample RUN_DIR"),
    ("--data embedded --val_data nowhere.csv", "nowhere.csv is not there; give the path"),
    ("--data nothing*.jsonl", "data nothing*.jsonl fits no file that ends in one of .jsonl"),
    ("--data icqa --val_data {tmp}/x.csv", "draws what it is validated on; leave it out"),
    ("--data embedded --loader thinking --val_data x.jsonl", "makes its own problems to validate"),
    ("--long_rows burn", "long_rows 'burn' is unknown; choose from drop, cut, split"),
    ("--sample {run} --prompt x --max_new_tokens -1", "--max_new_tokens -1 does not work"),
    ("--sample {run} --prompt x --max_new_tokens 0", "give a number from 1 to 100,000"),
    (f"--sample {{run}} --prompt x --max_new_tokens {HUGE}", "give a number from 1 to 100,000"),
    ("--sample {run} --prompt x --temperature -1", "--temperature -1.0 does not work"),
    ("--sample {run} --prompt x --temperature nan", "--temperature nan does not work"),
    ("--sample {run} --prompt x --temperature inf", "--temperature inf does not work"),
    ("--sample {run} --prompt x --temperature 1e-300", "give 0, or 0.001 to 1000"),
    ("--sample {run} --prompt 'a\udcff'", "--prompt is not text: 'utf-8' codec can't encode"),
    ("--sample {run} --prompt x --seed -1", "seed -1 does not work; give a whole number"),
    (f"--sample {{run}} --prompt x --seed {HUGE}", "give a whole number from 0 to 2147483648"),
    ("--attn_scale 0", "attn_scale 0.0 does not work; give a number at least 1e-09"),
    ("--lr 1e308", "lr 1e+308 does not work; give a number from 0 to 9.007199255e+15"),
    ("--init_std 1e300", "give a number from 1e-09 to 9.007199255e+15"),
    ("--sample {tmp} --prompt x", "holds no run; give a run's folder, as runs/NAME"),
    ("--resume {tmp}/nowhere", "nowhere is not there; give a run's folder"),
    ("--resume {pipe}", "it is not a regular file"),
    ("--sample {pipe} --prompt x", "it is not a regular file"),
    ("--score {pipe}", "it is not a regular file"),
    ("--mechanism {pipe}", "it is not a regular file"),
    ("--attention {pipe}", "it is not a regular file"),
    ("--export_hf {pipe} out", "it is not a regular file"),
    # what argparse says, cut to a line
    (f"--n_layers {'9' * 5000}", "argument --n_layers: '9999"),
    ("--no_such_flag", "unrecognized arguments: --no_such_flag; see python train.py --help"),
    ("--n_layer 12", "unrecognized arguments: --n_layer 12; is --n_layers meant?"),
    ("--devise=cpu", "unrecognized arguments: --devise=cpu; is --device meant?"),
    ("--dry-run", "unrecognized arguments: --dry-run; is --dry_run meant?"),
    ("--seed 0 --seed 5", "--seed is given twice; give it once, several values after it"),
    ("--lr=1e-3 --lr 2e-3", "--lr is given twice"),
    ("--compile --no-compile", "--compile is given twice"),
    ("--no_tie_weights", "--no_tie_weights; is --no-tie_weights meant?"),
    ("--seed 0 1 --loader budget", "loader budget makes no data; choose from"),
    ("--out_dir {run}/config.json", "config.json is not a folder; give one"),
    ("--out_dir {run}/config.json/a/b --seed 0 1", "config.json is not a folder; give one"),
    ("--out_dir /proc/x", "--out_dir /proc/x: nothing can be written in /proc ("),
    ("--out_dir /proc/x --seed 0 1", "); give another folder"),
    ("--out_dir /proc --dry_run", "nothing can be written in /proc ("),
    ("--compare {run} {run} --out_dir /proc", "nothing can be written in /proc ("),
    ("--attention {run} --out_dir /proc", "nothing can be written in /proc ("),
    ("--bench --name x", "--name has no effect with --bench, which writes nothing"),
    ("--bench --out_dir x", "--out_dir has no effect with --bench"),
    ("--preset report --loader nope.py --dry_run", "loader nope.py is not there; give a"),
    ("--preset report --loader thinking --sizes x=1 --dry_run", "sizes x is none of the loader th"),
    ("--dry_run --data nowhere.jsonl", "data nowhere.jsonl is not there; give the path"),
    ("--dry_run --data ./nowhere", "data ./nowhere is not there; give the path"),
    ("--dry_run --data a/b nowhere.jsonl", "data nowhere.jsonl is not there; give the path"),
    ("--dry_run --data {tmp}/nowhere", "/nowhere is not there; give the path of a file"),
    ("--data {tmp}/nowhere", "/nowhere is not there; give the path of a file"),
    ("--data embedded a/b/c --max_rows 100", "data a/b/c is not there; give the path of a file"),
    ("--study packing --preset walk", "rows of text: walk has none; give --data FILE"),
    ("--data {tmp}/mine.py --n_layers 1 2", "/mine.py is not there; give a Python file"),
    ("--dry_run --max_rows 99 --data embedded --vocab_size 100",
     "vocab_size 100 is less than the data's 332"),
    ("--data embedded --sizes x=1 --seed 0 1", "sizes x=1 are for a task or a loader; give none"),
    ("--data icqa --epochs 2 --seed 0 1", "epochs 2: a task's data never repeats; give --steps"),
    ("--n_layers", "expected at least one argument"),
    ("--resume", "expected one argument"),
    ("--prompt 'a\x1b]0;b' extra", "unrecognized arguments: extra"),
    ("'a\x1b]0;b'", "unrecognized arguments: a\\x1b]0;b"),
    ("--problem_steps ,", "is not a whole number, or several"),
    ("--warmup_steps 1e999", "warmup_steps"),
    ("--warmup_steps 2.5", "2.5 does not work; give a whole number of steps, or a share below 1"),
    ("--sizes =", "are for a task or a loader"),
    ("--data icqa --sizes symbols=0", "does not work; give a whole number from 1 to 1,0"),
    ("--data icqa --sizes symbols=x", "does not work; give a whole number from 1 to 1,0"),
    ("--data icqa --sizes symbols", "does not work; give a whole number from 1 to 1,0"),
    (f"--data icqa --sizes symbols={HUGE}", "does not work; give a whole number from 1 to 1,0"),
    ("--data icqa --sizes symbols=4,symbols=8", "gives a size twice"),
    ("--data khop --sizes length=1000000", "whose sequences have 1000001 tokens; give at"),
    ("--data icqa embedded", "the task icqa does not mix; give it alone"),
    ("--data icqa --epochs 2", "a task's data never repeats; give --steps"),
    ("--seed 0 0", "--seed has 0 twice; give each value once"),
    ("--study depth --n_layers 1 2", "a study varies the seed alone"),
    ("--epochs 2 --lr_steps 5 --warmup_steps 5", "leaves none of 5 steps; give at most 4"),
    ("--steps 50 --lr_steps 5 --warmup_steps 5", "leaves none of 5 steps; give at most 4, or more "
     "--lr_steps"),
    ("--steps 5 --warmup_steps 5", "leaves none of 5 steps; give at most 4, or more --steps"),
    ("--position rotary --d_model 12 --n_heads 4", "head size 3 is odd"),
    ("--data nowhere.jsonl", "data nowhere.jsonl is not there; give the path of a file"),
    ("--data {run}/tokenizer", "is no list of rows, "),
    ("--data {tmp}/piped", "is a folder without a file that ends in one of"),
    ("--data :", "data ':' names no data set; give HUB_ID or HUB_ID:SUBSET"),
    ("--data :main", "data ':main' names no data set"),
    ("--data {fifo}", "cannot be read: it is not a regular file"),
    ("--tokenizer {tmp}", "cannot be read"),
    ("--tokenizer {run}/config.json", "config.json is a file; give the folder that holds it"),
    ("--data embedded embedded", "--data has embedded twice; give each source once"),
    ("--data {tmp}/a.jsonl {tmp}/../{tmp.name}/a.jsonl", "/a.jsonl twice; give each source once"),
    ("--data {tmp}/link.jsonl {tmp}/a.jsonl", "/link.jsonl twice; give each source once"),
    ("--score {run} --data a.jsonl b.jsonl a.jsonl", "--data has a.jsonl twice"),
    ("--tokenizer {run}", "finished holds the folder tokenizer; give "),
    # nothing of it was loaded, and nothing said
    ("--tokenizer ./notthere --dry_run", "tokenizer ./notthere is not there; give the folder that"),
    ("--tokenizer ../notthere --dry_run --data some/hub", "tokenizer ../notthere is not there"),
    ("--tokenizer {tmp}/notthere --dry_run", "/notthere is not there; give the folder that holds"),
    ("--tokenizer runs/a/tokenizer --dry_run", "tokenizer runs/a/tokenizer is not there; give"),
    ("--tokenizer {tmp} --dry_run --data some/hub", "is a folder that cannot be read"),
    ("--tokenizer ./notthere --n_layers 1 2", "tokenizer ./notthere is not there; give the folder"),
    ("--tokenizer embedded ./notthere --dry_run", "tokenizer ./notthere is not there; give the fo"),
    # a zero is not nothing
    ("--top_k 0", "--top_k has no effect without --sample"),
    ("--num_samples 0", "--num_samples has no effect without --sample"),
    ("--temperature 0", "--temperature has no effect without --sample"),
    ("--resume {run} --match_params 0", "--resume keeps the run's settings; leave out --match"),
    ("--sample {run} --prompt x --jobs 0", "--jobs has no effect with --sample"),
    ("--sample {run} --prompt x --seed 7", "--seed has no effect at --temperature 0"),
    ("--sample {run} --chat --num_samples 3 --temperature 1", "--num_samples has no effect with"),
    ("--bench --block_size 1", "--bench generates after a prompt; give --block_size 2 or more"),
    ("--init_from {run} --match_params 3", "--init_from keeps that of its weights; give one of"),
    ("--data parity --sizes n=1", "there is no sequence for the test; give larger ones with"),
    ("--data composition --sizes n=1,group=Z60", "there is no sequence for the test; give larger"),
    ("--data brackets --sizes n=1,length=1", "there is no sequence for the test; give larger"),
    ("--data khop --sizes symbols=2,length=2", "length 2 with 2 symbols has room for 0; give"),
]  # fmt: skip
LINES += list(numbers())


@pytest.fixture(scope="module")
def places(tmp_path_factory, finished):
    """Paths for the lines: a finished run, an empty folder, a run whose config.json is a pipe."""
    tmp = tmp_path_factory.mktemp("places")
    (tmp / "piped").mkdir()
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp / "piped" / "config.json")
        os.mkfifo(tmp / "fifo.jsonl")
        os.symlink(tmp / "a.jsonl", tmp / "link.jsonl")
    return dict(run=finished, tmp=tmp, pipe=tmp / "piped", fifo=tmp / "fifo.jsonl")


def test_the_table_of_command_lines_is_long():
    assert len(LINES) > 230


@pytest.mark.parametrize("line, words", LINES, ids=[str(i) for i in range(len(LINES))])
def test_a_bad_command_line_gets_one_line(line, words, places, tmp_path, capsys, monkeypatch):
    if re.search("pipe|fifo|link", line) and not hasattr(os, "mkfifo"):
        pytest.skip("no pipes and links here")
    if "/proc" in line and not os.path.isdir("/proc/self"):
        pytest.skip("no folder here in which nobody writes")
    if torch.cuda.is_available() and "cpu has" in words:
        pytest.skip("there is a GPU")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(running, "train", lambda *a, **k: pytest.fail("it trains"))
    arguments = [part.format(**places) if "{" in part else part for part in shlex.split(line)]
    began = time.process_time()
    refused(arguments, words, capsys)
    assert time.process_time() - began < 2 or "data" in line
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("tokenizer", ["gpt2", "nobody/nothing", "embedded", "characters"])
@pytest.mark.parametrize("layers", ["1", "1 2"])
def test_a_dry_run_asks_for_no_tokenizer_of_the_hub(tokenizer, layers, capsys, monkeypatch):
    monkeypatch.setattr(tokenizing, "load_tokenizer", lambda *given: pytest.fail("it loads"))
    line = f"--preset report --dry_run --data some/hub --tokenizer {tokenizer} --n_layers {layers}"
    code, out, err = call(line.split(), capsys)
    assert code == 0 and err == "", err
    assert layers == "1 2" or f"tokenizer {tokenizer} (not loaded)" in out


def test_a_grid_of_a_task_asks_for_no_tokenizer(capsys):
    """It needs none, so that none is missing."""
    line = "--data icqa --tokenizer ./notthere --n_layers 1 2 --dry_run"
    code, _, err = call(line.split(), capsys)
    assert code == 0 and err == "", err


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="no folder in which nobody writes")
def test_a_current_folder_in_which_nothing_can_be_written_is_told_before_the_data_is_read(
    capsys, monkeypatch
):
    monkeypatch.setattr(dispatch.registry, "data_of", lambda *a, **k: pytest.fail("it reads"))
    monkeypatch.chdir("/proc")
    refused(["--preset", "laptop"], "--out_dir runs: nothing can be written in /proc (", capsys)


@pytest.mark.parametrize(
    "variables, words",
    [
        (dict(RANK="abc"), "RANK, 'abc', is no number; start with torchrun, or unset it"),
        (dict(RANK="-1"), "RANK, '-1', is no number"),
        (dict(RANK="0", LOCAL_RANK=""), "LOCAL_RANK, '', is no number"),
        (dict(WORLD_SIZE="two"), "WORLD_SIZE, 'two', is no number"),
        (dict(WORLD_SIZE="2"), "WORLD_SIZE is 2 but RANK and MASTER_ADDR and MASTER_PORT not set"),
        (dict(WORLD_SIZE="2", RANK="0", MASTER_ADDR="here"), "is 2 but MASTER_PORT not set"),
        (
            dict(WORLD_SIZE="2", RANK="0", MASTER_ADDR="here", MASTER_PORT="x"),
            "MASTER_PORT, 'x', is no port, 0 to 65535; start with torchrun, or give another",
        ),
        (
            dict(WORLD_SIZE="2", RANK="0", MASTER_ADDR="here", MASTER_PORT="99999"),
            "MASTER_PORT, '99999', is no port, 0 to 65535",
        ),
        (dict(RANK="5"), "RANK is 5 of a WORLD_SIZE of 1; start with torchrun, or unset both"),
        (dict(WORLD_SIZE="0"), "RANK is 0 of a WORLD_SIZE of 0"),
        (dict(LOCAL_RANK="3"), "LOCAL_RANK is 3 but its RANK 0; start with torchrun, or unset"),
    ],
)
def test_half_of_what_torchrun_sets_gets_one_line(variables, words, capsys, monkeypatch):
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    refused(["--n_layers", "1"], words, capsys)


def test_what_other_launchers_set_for_a_single_process_does_no_harm(monkeypatch):
    """It meets nobody: no address is needed, and none is looked at."""
    for name, value in dict(RANK="0", LOCAL_RANK="0", WORLD_SIZE="1", MASTER_PORT="x").items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("MASTER_ADDR", raising=False)
    dispatch.check_launch()


@pytest.mark.parametrize("flags", ["--sample {} --prompt x", "--runs", "--score {}", "--bench"])
def test_what_one_process_does_is_not_done_by_two(flags, finished, capsys, monkeypatch):
    several = dict(RANK="1", WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT="1")
    for name, value in several.items():
        monkeypatch.setenv(name, value)
    flags = [part.format(finished) for part in flags.split()]
    refused(flags, f"{flags[0]} is done by one process; start it without torchrun", capsys)


def test_of_a_dry_run_that_goes_on_one_process_speaks(finished, capsys, monkeypatch):
    several = dict(WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT="1")
    for name, value in several.items():
        monkeypatch.setenv(name, value)
    said = []
    for rank in "01":
        monkeypatch.setenv("RANK", rank)
        code, out, err = call(["--resume", finished, "--steps", "20", "--dry_run"], capsys)
        assert code == 0, err
        said.append(out)
    assert "parameters " in said[0] and said[1] == ""


def test_a_dry_run_of_several_processes_asks_whether_the_batch_divides(capsys, monkeypatch):
    several = dict(RANK="0", WORLD_SIZE="3", MASTER_ADDR="127.0.0.1", MASTER_PORT="1")
    for name, value in several.items():
        monkeypatch.setenv(name, value)
    line = ["--preset", "laptop", "--batch_size", "4", "--dry_run"]
    refused(line, "4 does not divide among 3 processes; give a multiple of 3", capsys)


# --- files

TEXT = b'{"text": "some words of text"}\n'
ASKED = b'{"question": "1 + 1", "answer": "#### 2"}\n'
NONE = "can be read: row 1: "
NO_LIST = "is no list of rows, [{…}, {…}]; it needs"
FEW = "it needs at least 2, one to hold out"
FILES = [
    # not JSON
    ("a.jsonl", TEXT + b"not JSON\n", "a.jsonl, line 2 is no JSON to read"),
    ("a.jsonl", TEXT + b"\n\n{", "line 4 is no JSON to read"),
    ("a.jsonl", TEXT + b"[" * 50_000, "line 2 is no JSON to read: maximum recursion"),
    ("a.jsonl", TEXT + b'{"a":' * 50_000, "line 2 is no JSON to read: maximum recursion"),
    (
        "a.jsonl",
        TEXT + b'{"text": ' + b"9" * 5000 + b"}",
        "line 2 is no JSON to read: Exceeds the limit",
    ),
    ("a.jsonl", TEXT + b'{"text": "\\ud800"}\n', "read: \\ud800 is half a character, which"),
    ("a.jsonl", TEXT + b'{"text": "x\\udc00y"}\n', "read: \\udc00 is half a character, which"),
    ("a.jsonl", TEXT + b'{"\\ud800": "x"}\n', "line 2 is no JSON to read: \\ud800 is half"),
    ("a.jsonl", TEXT + b"{'text': 'a'}", "line 2 is no JSON to read"),
    ("a.jsonl", TEXT + b'{"text": "a",}', "line 2 is no JSON to read"),
    ("a.jsonl", TEXT + b'{"text": "a"} {"text": "b"}', "line 2 is no JSON to read: Extra data"),
    ("a.jsonl", TEXT + b'{"text": "\x01"}', "line 2 is no JSON to read: Invalid control character"),
    ("a.jsonl", TEXT + b'{"text": "\x00"}', "character 42 is a NUL; leave it out or"),
    ("a.jsonl", b"\x00" * 100, "cannot be read: character 1 is a NUL"),
    ("a.jsonl", b"<html>", "line 1 is no JSON to read"),
    (
        "a.jsonl",
        b"[\n" + TEXT + b"3",
        "a.jsonl, line 1 is no JSON to read",
    ),
    ("a.jsonl", b"version https://git-lfs.github.com/spec/v1", "line 1 is no JSON to read"),
    ("a.jsonl", "[1]\n".encode("utf-16"), "character 1 is not text in UTF-8; save it as UTF-8"),
    ("a.jsonl", "café".encode("latin-1"), "character 4 is not text in UTF-8; save it as UTF-8"),
    ("a.jsonl", b"\x1f\x8b\x08\x00" + b"\x00" * 20, "character 2 is not text in UTF-8"),
    (
        "a.json",
        b"[" * 50_000,
        "a.json is no JSON to read (with a row per line it is a .jsonl): maximum recursion",
    ),
    ("a.json", b'[{"text": "\\ud800"}]', ".jsonl): \\ud800 is half a"),
    ("a.json", b"[" + b"9" * 5000 + b"]", ".jsonl): Exceeds the limit"),
    ("a.json", b"", "a.json is no JSON to read"),
    ("a.json", b'[{"text": "a"}', "a.json is no JSON to read"),
    ("a.json", b"[,]", "a.json is no JSON to read"),
    ("a.txt", "words words\n".encode("utf-16-le"), "character 2 is a NUL; leave it out or"),
    ("a.txt", "words words\n".encode("utf-16"), "character 1 is not text in UTF-8; save it as"),
    ("a.json", TEXT * 2, "is no JSON to read (with a row per line it is a .jsonl): Extra data"),
    # no rows
    ("a.jsonl", b"[" + TEXT.strip() + b"]", "has 1 row; " + FEW),
    ("a.jsonl", b"", "has 0 rows; " + FEW),
    ("a.jsonl", b"\n\n\n", "has 0 rows; " + FEW),
    ("a.jsonl", b"\xef\xbb\xbf", "has 0 rows; " + FEW),
    ("a.jsonl", TEXT, "has 1 row; " + FEW),
    ("a.json", b"{}", NO_LIST),
    ("a.json", b"null", NO_LIST),
    ("a.json", b"3", NO_LIST),
    ("a.json", b'"text"', NO_LIST),
    ("a.json", b"[]", "has 0 rows; " + FEW),
    ("a.json", b'{"rows": [{"text": "a"}, {"text": "b"}]}', NO_LIST),
    ("a.txt", b"", "has 0 rows; " + FEW),
    ("a.txt", b"\n \n\t\n\n", "has 0 rows; " + FEW),
    ("a.txt", b" " * 10_000, "has 0 rows; " + FEW),
    ("a.txt", b"\n" * 100_000, "has 0 rows; " + FEW),
    ("a.txt", b"one line", "has 1 row; " + FEW),
    ("a.txt", b"\xff\xfea\x00", "cannot be read: character 1 is not text in UTF-8"),
    # no usable rows
    ("a.jsonl", b"1\n2\n", "none of 2 rows " + NONE + "it is a number, no object; a row has"),
    ("a.jsonl", b"null\nnull\n", NONE + "it is null"),
    ("a.jsonl", b"[]\n[]\n", NONE + "it is a list, no object"),
    ("a.jsonl", b"{}\n{}\n", NONE + "it has no columns"),
    ("a.jsonl", b'{"text": 1}\n{"text": null}\n', NONE + "text is a number, no text"),
    ("a.jsonl", b'{"text": [1]}\n{"text": {}}\n', NONE + "text has a part that is no text"),
    ("a.jsonl", b'{"text": true}\n' * 3, NONE + "text is true or false"),
    ("a.jsonl", b'{"question": "a"}\n' * 3, NONE + "answer is null, no text"),
    ("a.jsonl", b'{"question": "a", "answer": 2}\n' * 3, NONE + "answer is a number"),
    ("a.jsonl", b'{"question": 1, "answer": 2}\n' * 3, NONE + "question is a number"),
    ("a.jsonl", b'{"question": "a", "answer": ""}\n' * 3, NONE + "answer is empty"),
    ("a.jsonl", b'{"messages": []}\n' * 3, NONE + "it has messages (a list)"),
    ("a.jsonl", b'{"messages": [1, 2]}\n' * 3, NONE + "a message is a number"),
    ("a.jsonl", b'{"messages": [{"role": "user"}]}\n' * 3, NONE + "content is null, no text"),
    ("a.jsonl", b'{"messages": [{"role": 1, "content": "a"}]}\n' * 3, NONE + "a role is 1"),
    ("a.jsonl", b'{"messages": [{"role": null, "content": "a"}]}\n' * 3, NONE + "a role is null"),
    ("a.jsonl", b'{"messages": [{"role": "", "content": "a"}]}\n' * 3, NONE + "a role is ''"),
    ("a.jsonl", b'{"messages": [{"role": "user", "content": [{}]}]}\n', "has a part that is no"),
    ("a.jsonl", b'{"messages": {"role": "user"}}\n' * 3, NONE + "messages is an object, no list"),
    ("a.jsonl", b'{"conversations": "a"}\n' * 3, NONE + "conversations is a text, no list"),
    ("a.jsonl", b'{"question": "a", "passage": "b", "answer": true}\n' * 3, "--loader llmini"),
    ("a.jsonl", b'{"question": {"stem": "a"}, "answerKey": "A"}\n' * 3, "--loader llmini trains"),
    ("a.jsonl", b'{"\\u001b[31m": 1}\n' * 3, "it has \\x1b[31m"),
    (
        "a.jsonl",
        json.dumps(dict.fromkeys(map(str, range(3000)))).encode() + b"\n{}",
        "it has 0 (null), 1 (n",
    ),
    ("a.jsonl", json.dumps({"k" * 100_000: 1}).encode() + b"\n{}", "it has kkkk"),
    ("a.jsonl", TEXT * 9, "all 9 rows are the same, none can be held out; give other rows too"),
    # too little
    ("a.jsonl", TEXT + ASKED, "do not fill a block of 104 to learn from"),
    ("a.jsonl", ASKED + ASKED.replace(b"1", b"3"), "do not fill a block of 104 to learn from"),
    ("a.jsonl", b'{"text": ""}\n' * 9, NONE + "text is empty"),
    ("a.txt", b"a\nb\n", "do not fill a block of 104"),
    # other files
    ("a.parquet", b"", "a.parquet cannot be read"),
    ("a.parquet", b"PAR1PAR1", "a.parquet cannot be read"),
    ("a.parquet", b"PAR1" + b"\xff" * 100 + b"PAR1", "a.parquet cannot be read"),
    ("a.csv", b"a,b", "has 0 rows; " + FEW),
    ("a.csv", b"a,b\n1,2\n3,4", "its first line has no name that is known: a, b; a table begins"),
    ("a.csv", b"3,title,words\n" * 3, "line has no name that is known: 3, title, words; a table"),
    ("a.csv", b'question,answer\n1,"2\n3,4,5', "line 3: unexpected end of data"),
    (
        "a.doc",
        b"a,b",
        "is neither a folder nor a file that ends in one of .jsonl .ndjson .json .csv .tsv .parq",
    ),
    ("a", b"a", "is neither a folder nor a file that ends in one of"),
    ("a.jsonl.gz", b"\x1f\x8b", "a.jsonl.gz cannot be read: Compressed file ended before"),
    ("a.txt.gz", b"words", "a.txt.gz cannot be read: Not a gzipped file"),
    ("a.py", b"1 / 0", "a.py cannot be executed: division by zero"),
    ("a.py", b"import nothing_of_this_name", "a.py cannot be executed: No module named"),
    (
        "a.py",
        b"TASKS = 3",
        "has no TASK, an object of a class made from minidepth_lab.tasks.Task; see the how-to",
    ),
    ("a.py", b"TASK = 3", "has no TASK, an object of a class made from minidepth_lab.tasks.Task"),
    ("a.py", b"raise SystemExit(0)", "a.py cannot be executed: 0"),
    ("a.py", b"\x00", "a.py cannot be executed"),
]


def test_the_table_of_files_is_long():
    assert len(FILES) > 70


@pytest.mark.parametrize("name, content, words", FILES, ids=[str(i) for i in range(len(FILES))])
def test_a_bad_file_gets_one_line(name, content, words, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(running, "train", lambda *a, **k: pytest.fail("it trains"))
    own_code.NAMED.clear()
    (tmp_path / name).write_bytes(content)
    out = tmp_path / "runs"
    flags = ["--packing", "pack", "--tokenizer_size", "300", "--loss_on", "all"]
    err = refused(["--data", str(tmp_path / name), "--out_dir", str(out), *flags], words, capsys)
    assert name in err and not out.exists()


LABELS = [3, "B", None, {"a": 1}, True, 1.5, [], ["A"], [["B"]]]


@pytest.mark.parametrize("labels", LABELS, ids=str)
def test_rows_of_multiple_choice_with_odd_labels_are_no_rows(labels):
    from minidepth_lab.measure import score

    row = dict(question="q", choices=dict(label=labels, text=["x", "y"]), answerKey="B")
    assert score.choices_of(row) is None
    assert score.choices_of(row | dict(choices=dict(label=["A", "B"], text=3))) is None
    for answer in ("9" * 5000, "²", "-1", [1], None, 1.0):
        assert score.choices_of(dict(context="c", choices=["x", "y"], answer=answer)) is None


ODD = [0, -3, True, None, "many", [], {}, "9" * 50, 1e308, 2**70, float("nan"), ["a"], "", " "]


@pytest.mark.parametrize("value", ODD, ids=lambda value: f"{value!r:.12}")
@pytest.mark.parametrize("name", ["steps", "guess", "family"])
def test_columns_called_like_ours_do_not_reach_the_end_of_a_run(name, value):
    row = dict(question="q", answer="#### 2", family="chain", steps=2, guess=0.5) | {name: value}
    problem = to_data.problem_of(forms.read_row(row))
    assert problem["answer"] == "2"
    if problem.get(name) == value and name in problem:  # a family of one's own may have any name
        assert name == "family" and value.strip()


def test_a_long_unbroken_word_and_a_long_row_cost_seconds(tmp_path):
    """3 MB without a space took minutes, a row of 20 MB 3.3 GiB."""
    config = configs.make("laptop", data=(str(tmp_path / "a.jsonl"),), loss_on="all")[1]
    letters = torch.randint(97, 105, (600_000,), generator=md.generator(1), dtype=torch.uint8)
    word = bytes(letters.tolist()).decode()
    rows = [dict(text=word), dict(text="some words " * 30_000), dict(text="short\n" * 99)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    began = time.process_time()
    data = to_data.load_data(config, 58)
    assert time.process_time() - began < 30
    ids = next(md.encode([[(word, True)]], data.tokenizer))[0]
    assert data.tokenizer.decode(ids) == word


def test_a_long_text_makes_the_tokenizer_in_pieces_and_the_same_one(monkeypatch):
    """As a whole it would take eighty times its size."""
    from tokenizers import ByteLevelBPETokenizer

    train, lengths = ByteLevelBPETokenizer.train_from_iterator, []

    def seen(self, texts, *args, **kwargs):
        texts = list(texts)
        lengths.append(max(map(len, texts)))
        train(self, texts, *args, **kwargs)

    monkeypatch.setattr(ByteLevelBPETokenizer, "train_from_iterator", seen)
    draw = random.Random(0)
    words = ["".join(draw.choices("abcdefg", k=draw.randint(2, 8))) for _ in range(300)]
    text = " ".join(draw.choices(words, k=30_000))
    assert len(text) > 2 * tokenizing.LONGEST
    vocabulary = tokenizing.load_tokenizer("embedded", [text], 400).get_vocab()
    monkeypatch.setattr(tokenizing, "LONGEST", len(text))
    assert tokenizing.load_tokenizer("embedded", [text], 400).get_vocab() == vocabulary
    assert lengths[0] <= 50_000 and lengths[1] == len(text)


def test_long_texts_are_tokenized_in_pieces_that_make_up_the_whole():
    for text in ("a" * 200_000, "ab cd " * 50_000, "\n" * 120_000, "short", ""):
        parts = list(tokenizing.pieces(text))
        assert "".join(parts) == text and max(map(len, parts)) <= 50_000
        assert len(parts) == 1 or len(parts[-1]) >= 100


def test_what_the_data_says_does_not_move_the_terminal():
    assert console.visible("a\x1b[31m\x07\r\x9b\u202eb\ud800\tc\n") == (
        "a\\x1b[31m\\x07\\r\\x9b\\u202eb\\ud800\tc\n"
    )
    assert console.one_line("a\nb\r\n c" + "9" * 9000).startswith("a b")
    assert len(console.one_line("9" * 9000)) < 1010


def test_a_held_out_problem_is_printed_without_its_control_characters(finished, capsys):
    model, tokenizer = checkpoints.load(finished)
    run = running.Run.__new__(running.Run)
    run.model, run.tokenizer, run.log = model, tokenizer, [dict(accuracy=0.0)]
    messages = [dict(role="user", content="What\x1b[2J?")]
    dispatch.show_answers(run, [dict(messages=messages, answer="\x1b[31m2")])
    out = capsys.readouterr().out
    assert "\x1b" not in out and "What\\x1b[2J?" in out and "\\x1b[31m2" in out


def test_resume_and_dry_run_print_the_facts_and_train_nothing(finished, capsys, monkeypatch):
    monkeypatch.setattr(running, "train", lambda *a, **k: pytest.fail("it trains"))
    before = sorted(os.listdir(finished))
    code, out, err = call(["--resume", finished, "--steps", "20", "--dry_run"], capsys)
    assert code == 0 and err == "" and f"resume {finished}: 20" in out and "parameters " in out
    assert sorted(os.listdir(finished)) == before


STUDIES = [
    ("def rows(preset, settings): return 1 / 0", "has rows() that failed: division by zero"),
    ("def rows(preset, settings): return [1]", "rows() must give {name: settings}; it gave [1]"),
    ("def rows(preset, settings): return {}", "rows() must give {name: settings}; it gave {}"),
    ("def rows(preset, settings): return dict(a=None)", "must give {name: settings}; it gave {'a'"),
    ("def rows(preset, settings): return dict(a={}, b={})", "'a' and 'b' are the same settings"),
    ("raise SystemExit(0)", "cannot be executed: 0"),
]


@pytest.mark.parametrize("code, words", STUDIES)
def test_a_study_of_ones_own_that_does_not_work_gets_one_line(code, words, tmp_path, capsys):
    own_code.NAMED.clear()
    path = tmp_path / "mine.py"
    path.write_text(code)
    err = refused(["--study", str(path), "--dry_run", "--preset", "laptop"], words, capsys)
    assert "mine.py" in err


ZEROS = "torch.zeros(batch, 4, dtype=torch.int64)"
DRAWN = [
    ("1 / 0", "has a draw() that failed: division by zero"),
    ("3", "must draw (tokens, targets), each (batch, T) int64; it drew 3"),
    (f"({ZEROS}, {ZEROS}[:, 1:])", "must draw (tokens, targets), each (batch, T) int64"),
    (f"({ZEROS}[1:], {ZEROS}[1:])", "asked for, 1, of a token or more; it drew 0 of 4"),
    (f"({ZEROS}[:, 4:], {ZEROS}[:, 4:])", "of a token or more; it drew 1 of 0"),
    (f"({ZEROS}.float(), {ZEROS})", "must draw (tokens, targets), each (batch, T) int64"),
    (f"({ZEROS} - 5, {ZEROS})", "draws numbers below 0; tokens count from 0"),
    (f"({ZEROS}, {ZEROS} - 101)", "draws numbers below 0; tokens count from 0"),
    (f"({ZEROS}, {ZEROS} - 100)", "draws no targets: all of them are -100"),
    (f"({ZEROS}.numpy(), {ZEROS}.numpy())", "must draw (tokens, targets), each (batch, T) int64"),
    ("([[0]], [[0]])", "must draw (tokens, targets), each (batch, T) int64; it drew ([[0]]"),
]


@pytest.mark.parametrize("drawn, words", DRAWN)
def test_a_task_of_ones_own_that_draws_something_else_gets_one_line(drawn, words, tmp_path, capsys):
    own_code.NAMED.clear()
    path = tmp_path / "mine.py"
    code = "import torch\nfrom minidepth_lab.tasks import Task\nclass mine(Task):\n"
    code += f"    def draw(self, batch, generator, test=False):\n        return {drawn}\n"
    path.write_text(code + "TASK = mine()\n")
    err = refused(["--data", str(path), "--out_dir", str(tmp_path / "runs")], words, capsys)
    assert "mine.py" in err and not (tmp_path / "runs").exists()


@pytest.mark.parametrize("default", ["True", "None", "[1, 2]", "()", "(1, True)"])
def test_a_size_of_ones_own_that_nobody_can_type_gets_one_line(default, tmp_path, capsys):
    """`hard=False` was read as True."""
    own_code.NAMED.clear()
    path = tmp_path / "mine.py"
    code = "import torch\nfrom minidepth_lab.tasks import Task\nclass mine(Task):\n"
    code += f"    def draw(self, batch, generator, test=False, hard={default}):\n"
    path.write_text(code + f"        return {ZEROS}, {ZEROS}\nTASK = mine()\n")
    words = f"the default of hard is {default}; give it a whole number, a number, a word, or"
    refused(["--data", str(path), "--sizes", "hard=False"], words, capsys)


def test_settings_of_ones_own_task_that_are_none_get_one_line(tmp_path, capsys):
    own_code.NAMED.clear()
    path = tmp_path / "mine.py"
    code = "import torch\nfrom minidepth_lab.tasks import Task\nclass mine(Task):\n"
    code += "    settings = None\n    def draw(self, batch, generator, test=False):\n"
    path.write_text(code + f"        return {ZEROS}, {ZEROS}\nTASK = mine()\n")
    refused(["--data", str(path)], "a TASK whose settings are None; give a dict", capsys)


def test_a_guess_of_ones_own_that_fails_gets_one_line(tmp_path, capsys):
    own_code.NAMED.clear()
    code = "import torch\nfrom minidepth_lab.tasks import Task\nclass mine(Task):\n"
    code += (
        f"    def draw(self, batch, generator, test=False, n=3):\n        return {ZEROS}, {ZEROS}\n"
    )
    code += "    def guess(self):\n        return 0.5\nTASK = mine()\n"
    (tmp_path / "mine.py").write_text(code)
    refused(
        ["--data", str(tmp_path / "mine.py")], "has a guess() or shortcut() that failed", capsys
    )


@pytest.mark.parametrize(
    "part, words",
    [
        ("guess(self, **sizes):\n        return 'half'", "has a guess() or shortcut() that failed"),
        (
            "guess(self, **sizes):\n        return 5",
            "guess() must return a number from 0 to 1, or None where unknown; it returned 5",
        ),
        (
            "shortcut(self, **sizes):\n        return float('nan')",
            "shortcut() must return a number from 0 to 1, or None where unknown; it returned nan",
        ),
        ("accuracy(self, *a, **k):\n        1 / 0", "has an accuracy() that failed: division by"),
        (
            "accuracy(self, *a, **k):\n        return 'good'",
            "number from 0 to 1; it returned 'good'",
        ),
        ("accuracy(self, *a, **k):\n        return {}", "number from 0 to 1; it returned {}"),
        (
            "accuracy(self, *a, **k):\n        return dict(accuracy=float('nan'))",
            "it must return dict(accuracy=SHARE), the share a number from 0 to 1; it returned",
        ),
        (
            "accuracy(self, *a, **k):\n        return dict(accuracy=1.0, by=torch)",
            "has an accuracy() that failed: Object of type module is not JSON serializable",
        ),
        (
            "train_batch(self, done, *a, **k):\n        return 1 / 0 if done else self.draw(*a)",
            "has a train_batch() that failed: division by zero",
        ),
        (
            "train_batch(self, *a, **k):\n        return 1 / 0",
            "has a train_batch() that failed: division by zero",
        ),
        ("ahead(self, *a, **k):\n        return 'soon'", "has an ahead() that failed: '>' not"),
        (
            "train_batch(self, done, *a, **k):\n        x, y = self.draw(*a)\n"
            "        return x + 7 * (done > 0), y",
            "draws the number 7 at step 2; its test has none above",
        ),
        (
            "train_batch(self, done, *a, **k):\n        x, y = self.draw(*a)\n"
            "        return (x, y) if not done else (x.repeat(1, 99), y.repeat(1, 99))",
            "mine.py at step 2, whose sequences have 396 tokens",
        ),
    ],
)
def test_a_measure_of_ones_own_that_fails_gets_one_line(part, words, tmp_path, capsys):
    own_code.NAMED.clear()
    code = "import torch\nfrom minidepth_lab.tasks import Task\nclass mine(Task):\n"
    code += f"    def draw(self, batch, generator, test=False):\n        return {ZEROS}, {ZEROS}\n"
    code += f"    def {part}\nTASK = mine()\n"
    (tmp_path / "mine.py").write_text(code)
    flags = "--preset tasks --n_layers 1 --d_model 16 --n_heads 2 --steps 2 --warmup_steps 1"
    where = ["--data", str(tmp_path / "mine.py"), "--out_dir", str(tmp_path)]
    refused([*flags.split(), *where], words, capsys)


LINKS = [
    ("return oops", "has a links() that failed: name 'oops' is not defined"),
    ("return None", "links() must return {step: bool tensor (200, 4, 4)}; it returned None"),
    ("return {}", "links() must return {step: bool tensor (200, 4, 4)}; it returned {}"),
    ("return dict(a=3)", "its 'a' is 3"),
    ("return dict(a=tokens[:, 1:, None] == tokens[:, None, 1:])", "its 'a' is bool (200, 3, 3)"),
    ("return dict(a=tokens[:, :, None] + tokens[:, None])", "its 'a' is int64 (200, 4, 4)"),
    (None, "mine has no steps to look for; its solution is not known"),
]


def test_links_of_ones_own_that_are_none_get_one_line(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # it knows a file by second and size
    code = "import torch\nfrom minidepth_lab.tasks import Task\nclass mine(Task):\n"
    code += f"    def draw(self, batch, generator, test=False):\n        return {ZEROS}, {ZEROS}\n"
    flags = "--preset tasks --n_layers 1 --d_model 16 --n_heads 2 --steps 2 --warmup_steps 1"
    path = tmp_path / "mine.py"
    path.write_text(code + "TASK = mine()\n")
    its = ["--data", str(path)]
    line = [*flags.split(), *its, "--out_dir", str(tmp_path), "--name", "run"]
    assert call(line, capsys)[0] == 0
    for part, words in LINKS:
        own_code.executed.cache_clear()
        links = f"    def links(self, tokens, targets):\n        {part}\n" if part else ""
        path.write_text(f"{code}{links}TASK = mine()\n")
        refused(["--mechanism", str(tmp_path / "run"), *its], words, capsys)
    assert not (tmp_path / "run" / "mechanism.json").exists()


def test_the_names_of_a_studys_rows_do_not_move_the_terminal(tmp_path, capsys):
    own_code.NAMED.clear()
    path = tmp_path / "mine.py"
    path.write_text("def rows(preset, settings): return {'\\x1b[31mred\\n': settings}")
    code, out, _ = call(["--study", str(path), "--dry_run", "--preset", "laptop"], capsys)
    assert code == 0 and "\\x1b[31mred" in out and "\x1b" not in out


def test_a_loader_that_gives_no_data_gets_one_line(tmp_path, capsys):
    own_code.NAMED.clear()
    path = tmp_path / "mine.py"
    path.write_text("SIZES = {}\ndef load_data(config, block_size, tokenizer=None): pass")
    flags = ["--loader", str(path), "--out_dir", str(tmp_path / "runs"), "--preset", "laptop"]
    refused(flags, "mine.py: load_data() must give a minidepth.Data; it gave None", capsys)


def test_a_new_run_replaces_no_files(tmp_path, capsys, monkeypatch):
    """Neither those of a run that has lost its config.json nor what is no run's at all."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "runs" / "victim"
    folder.mkdir(parents=True)
    for file in ("log.jsonl", "results.123.tmp"):
        (folder / file).write_text("mine")
    refused(["--name", "victim"], " has files of no run: ", capsys)
    with pytest.raises(ValueError, match="has files of no run: .*; give another --name"):
        checkpoints.check_new(str(folder))
    assert {(folder / file).read_text() for file in ("log.jsonl", "results.123.tmp")} == {"mine"}


def test_what_a_run_leaves_that_died_before_its_first_step_is_not_in_the_way(tmp_path):
    (tmp_path / "tokenizer").mkdir()
    for name in (".lock", "config.json.77.tmp"):
        (tmp_path / name).write_text("")
    checkpoints.check_new(str(tmp_path))
    checkpoints.check_new(str(tmp_path / "not there"))
    (tmp_path / "tokenizer").rmdir()
    (tmp_path / "tokenizer").write_text("a file of that name")
    with pytest.raises(ValueError, match="has files of no run: tokenizer"):
        checkpoints.check_new(str(tmp_path))


def test_a_run_in_the_current_folder_is_resumed(finished, capsys, monkeypatch):
    parent, name = os.path.split(finished)
    monkeypatch.chdir(parent)
    for path in (name, os.path.join(".", name)):
        refused(["--resume", path], f"{name} is finished", capsys)


def test_advice_to_resume_is_quoted(tmp_path, monkeypatch, capsys, jsonl):
    folder = tmp_path / "my runs" / "it's one"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    err = refused(["--out_dir", str(folder.parent), "--name", folder.name], "exists", capsys)
    assert f"go on with --resume {shlex.quote(str(folder))} if it was stopped" in err


@pytest.mark.parametrize("fault", ["MemoryError", "RuntimeError"])
def test_a_full_memory_gets_one_line(fault, capsys, monkeypatch, tmp_path):
    def full(*a, **k):
        if fault == "MemoryError":
            raise MemoryError
        raise RuntimeError("[enforce fail] DefaultCPUAllocator: not enough memory: you tried …")

    monkeypatch.setattr(dispatch.registry, "data_of", full)
    said = dict(MemoryError="nothing more is known; give", RuntimeError="[enforce fail] Default")
    refused(["--out_dir", str(tmp_path)], f"the memory is full: {said[fault]}", capsys)


def test_what_has_no_text_says_whether_it_ever_had_one(solved, finished, tmp_path, capsys):
    import shutil

    refused(["--sample", solved, "--prompt", "x"], "was trained on a depth task", capsys)
    lost = shutil.copytree(finished, tmp_path / "lost")
    shutil.rmtree(lost / "tokenizer")
    for flags in (["--sample", str(lost), "--prompt", "x"], ["--score", str(lost)]):
        refused(flags, "lost its folder tokenizer; copy it from another run", capsys)


def test_attention_alone_is_no_gpt2_and_says_what_would_be(tmp_path):
    from minidepth_lab.models import export

    config = configs.ModelConfig(vocab_size=9, d_ff=0)
    with pytest.raises(ValueError, match="d_ff 0; it has a feed-forward part, d_ff at least 1"):
        export.check_gpt2(config)
    page = pathlib.Path(train.__file__).parent / "docs" / "how-to" / "commands.md"
    page = page.read_text(encoding="utf-8").replace("`", "")
    for told in (" ".join(dispatch.make_parser().format_help().split()), page):
        assert "if it has a feed-forward part (--d_ff)" in told  # before one has trained


# --- memory is estimated


CONFIGS = [
    dict(),
    dict(tie_weights=False),
    dict(d_ff=0),
    dict(position="rotary"),
    dict(position="none", tie_weights=False, d_ff=0),
    dict(n_layers=3, n_heads=(8, 4, 2), d_model=64, n_loops=4),
    dict(n_layers=1, d_model=8, d_ff=3, vocab_size=1, block_size=1),
]


@pytest.mark.parametrize("changes", CONFIGS, ids=str)
def test_parameters_are_counted_as_the_model_has_them(changes):
    config = configs.ModelConfig(**dict(vocab_size=300, n_layers=2) | changes)
    with torch.device("meta"):
        gpt = variants.GPT(config)
    counted = variants.parameters(config)
    parts = dict(embedding="token_embedding", position="position_embedding", blocks="blocks",
                 head="head", final_norm="norm")  # fmt: skip
    for part, name in parts.items():
        is_part = [p.numel() for key, p in gpt.named_parameters() if key.split(".")[0] == name]
        assert counted[part] == sum(is_part), part
    assert counted["total"] == sum(p.numel() for p in gpt.parameters())
    assert gpt.num_params() == counted


@pytest.mark.parametrize("d_ff", [0, 256])
def test_the_estimate_is_less_than_what_a_step_keeps(d_ff):
    """A lower bound, so that nothing that fits is refused; and not a far one."""
    m = configs.ModelConfig(
        vocab_size=300, n_layers=4, n_heads=4, d_model=64, d_ff=d_ff, dropout=0.0
    )
    t = configs.make("laptop", batch_size=4)[1]
    model, kept = variants.GPT(m).train(), {}

    def note(x):
        storage = x.untyped_storage()  # queries, keys and values share one
        if x.data_ptr() not in weights:
            kept[storage.data_ptr()] = storage.nbytes()
        return x

    weights = {p.data_ptr() for p in model.parameters()}
    tokens = torch.randint(300, (4, m.block_size))
    with torch.autograd.graph.saved_tensors_hooks(note, lambda x: x):
        model.hidden(tokens)
    estimate = memory.step_memory(m, t)["activations"]
    assert 0.5 < estimate / sum(kept.values()) <= 1


def test_a_machine_that_does_not_say_its_memory_refuses_nothing(monkeypatch):
    m, t = configs.make("laptop", d_model=10**6)
    with pytest.raises(ValueError, match="needs at least .* GiB of memory"):
        memory.check_enough(m, t)
    monkeypatch.setattr(memory, "machine_memory", lambda device: None)
    memory.check_enough(m, t)


def test_a_containers_own_limit_counts(monkeypatch, tmp_path):
    whole = 2**32
    monkeypatch.setattr(memory.os, "sysconf", lambda name: 2**16, raising=False)
    for text, expected in (("1048576\n", 2**20), (f"{2**80}\n", whole), ("max\n", whole)):
        (tmp_path / "memory.max").write_text(text)
        opened = lambda path, **how: open(tmp_path / os.path.basename(path), **how)  # noqa: E731
        monkeypatch.setattr(memory, "open", opened, raising=False)
        assert memory.machine_memory(torch.device("cpu")) == expected


def test_what_is_odd_is_said_once(data, capsys):
    m, t = configs.make("laptop", vocab_size=400_000, block_size=80)
    dispatch.print_facts(m, t, data)
    assert capsys.readouterr().out.count("400,000 words, of which the data has") == 1
