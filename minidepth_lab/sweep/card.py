"""The runs of the published size that are still open, in pieces for a GPU that is lent for minutes.

    python -m minidepth_lab.sweep.card OUT --texts FOLDER --tokenizers FOLDER     all pieces
    python -m minidepth_lab.sweep.card OUT … --pieces models scored               some of them
    python -m minidepth_lab.sweep.card OUT … --size tiny                          a rehearsal
    python -m minidepth_lab.sweep.card OUT --publish NAME      into docs/results/NAME

A piece takes at most --minutes, 8. What is cut off goes on with the same command, and what is done
is not done again. Runs and their weights are kept in OUT/runs, what was measured of them is a line
of JSON each in OUT/measured.jsonl. With --size small they have the width 64 and fit a CPU.

    readings   the report's two: 16 sequences a step, and 32 with twice the text, both on
               conversations of about 500 tokens, as long as its own must be for the second
    models     1, 2, 4, 8, 12 layers, one layer twelve times, one wide layer: the weights are kept
    scored     how those answer ARC's test questions, A to D by likelihood
    inside     of 1 and 12 layers: each layer skipped, the logit lens, entropy by layer
    tune       on conversations held out from those of `models`: a learning rate for one layer whose
               feed-forward part alone has the parameters of twelve layers, initial weights for the
               looped one
    closed     these two, as tuned
    llmini     LLmini's A and C on 25, 50 and 100 % of their text, in as many steps
    heads      the nine schedules of heads by their author's code, unscaled, on the stories here

FOLDER of texts has cot/train.jsonl, arc_challenge/test.jsonl, gsm8k/train.jsonl and, for llmini, a
file of each of its sources in a folder of its name; that of tokenizers qwen2.5 and gpt2.
"""

import argparse
import json
import os
import pathlib
import re
import signal
import sys
import threading
import time

import torch

from minidepth_lab.base import console, machine
from minidepth_lab.keep import checkpoints, registry
from minidepth_lab.measure import inspect, results, score
from minidepth_lab.measure.cell import Cell, is_finished
from minidepth_lab.rows import forms
from minidepth_lab.studies import heads
from minidepth_lab.sweep import pool

SYSTEM = "Enable thinking features: INTUITION, COLD START, HOT START"
LONG = 1_325  # characters, some 500 tokens
CONVERSATIONS = dict(published=840, small=83, tiny=40)  # 840, as the article says
ROWS = 770  # conversations of docs/results/report: a pass of them is 25 steps
RATES, SPREADS = (3e-4, 6e-4, 1.2e-3, 2.4e-3), (0.01, 0.02, 0.04, 0.08)
OF_LLMINI = (  # the files and the order of docs/results/llmini/data.json
    "gsm8k/train", "arc_challenge/train_all", "commonsense_qa/train", "boolq/validation",
    "hellaswag/validation", "winogrande/train_l", "ag_news/test", "squad/sample",
    "wikitext/valid", "tinystories/train",
)  # fmt: skip
SIZES = {
    "published": dict(),
    "small": dict(  # as the study reread
        vocab_size=0, tokenizer="embedded", tokenizer_size=1024, block_size=256, n_heads=4,
        d_model=64, d_ff=256, init_std=0.05, lr=4e-3, batch_size=8, steps=300,
        eval_every=50, eval_problems=0,
    ),
    "tiny": dict(
        vocab_size=0, tokenizer="embedded", tokenizer_size=300, block_size=128, n_heads=2,
        d_model=8, d_ff=16, batch_size=2, steps=3, warmup_steps=1, eval_every=2, eval_blocks=2,
        eval_problems=2,
    ),
}  # fmt: skip
WIDE = dict(published=504, small=188, tiny=12)  # d_model with the parameters of twelve layers


# ---------- texts ----------


def read(path):
    """The rows of a .jsonl file."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


def write(path, rows):
    """Rows as a .jsonl file, whole or not at all."""
    text = "".join(checkpoints.json_line(row) for row in rows)
    checkpoints.write(str(path), lambda f: f.write(text.encode()))


def conversation(turns):
    """Messages of (question, answer) pairs, in the form of the report's rows."""
    messages = [dict(role="system", content=SYSTEM)]
    for question, answer in turns:
        messages.append(dict(role="user", content=question))
        messages.append(dict(role="assistant", content=answer))
    return dict(messages=messages)


def long_conversations(cot, gsm8k):
    """Conversations of LONG characters or more, of one question after another."""
    turns = [tuple(message["content"] for message in row["messages"][1:]) for row in cot]
    for row in gsm8k:
        work, _, answer = row["answer"].rpartition("#### ")
        turns.append((row["question"], f"<think>\n{work.strip()}\n</think>\n\n{answer}"))
    found, some = [], []
    for turn in turns:
        some.append(turn)
        if sum(len(part) for pair in some for part in pair) >= LONG:
            found.append(conversation(some))
            some = []
    return found


def asked(row):
    """A question of ARC as the conversations ask it; the choices are what the assistant would say
    at once, without reasons."""
    labels, texts = row["choices"]["label"], row["choices"]["text"]
    letters = "ABCDE"[: len(texts)]
    lines = [row["question"], *(f"{letter}. {text}" for letter, text in zip(letters, texts))]
    said = [f"<think>\nThe best answer is {letter}.\n</think>\n\n{letter}" for letter in letters]
    messages = conversation([("\n".join(lines), "")])["messages"][:-1]
    return dict(messages=messages, choices=said, answer=labels.index(row["answerKey"]))


def make_texts(out, texts, size):
    """The files of OUT/texts, out of the folder `texts`."""
    folder = out / "texts"
    folder.mkdir(parents=True, exist_ok=True)
    cot = read(texts / "cot" / "train.jsonl")
    long = long_conversations(cot, read(texts / "gsm8k" / "train.jsonl"))
    n = CONVERSATIONS[size]
    apart = max(1, len(long) // n // 2)  # fewer are taken from all over, not from the beginning
    some, rest = (
        (long[:n], long[n:]) if size == "published" else (long[::apart][:n], long[1::apart])
    )
    write(folder / "long.jsonl", some)
    write(folder / "long_half.jsonl", some[::2])
    write(folder / "long_rest.jsonl", rest[: max(20, n // 2)])
    write(folder / "conversations.jsonl", cot[:ROWS])
    config = registry.configs("report", data="conversations.jsonl")[1]
    write(folder / "tune.jsonl", forms.split_rows("conversations", cot[:ROWS], config)[0])
    write(
        folder / "asked.jsonl",
        map(asked, read(texts / "arc_challenge" / "test.jsonl")),
    )


# ---------- pieces ----------


def models(size):
    """{name: what differs from the report's preset}, of the models that were run at its size."""
    base = registry.configs("report", **SIZES[size])[0]
    stacks = {f"{n}-layers": dict(n_layers=n) for n in (1, 12, 4, 2, 8)}
    width = WIDE[size]
    wide = dict(n_layers=1, d_model=width, d_ff=width * base.d_ff // base.d_model)
    return stacks | {"12-times": dict(n_layers=1, n_loops=12), "wide": wide}


def wide_inside(size):
    """One layer whose feed-forward part has, with its attention, the parameters of twelve."""
    base = registry.configs("report", **SIZES[size])[0]
    return dict(n_layers=1, d_ff=12 * base.d_ff + 22 * base.d_model)


def best(cells, setting, runs):
    """The value of the setting whose run of `tune` has the lowest validation loss."""
    found = [results.result(runs / name) for name in cells]
    return min(found, key=lambda run: run["best_val_loss"])[setting]


def tried(size):
    """{name: settings} of the piece `tune`."""
    looped = dict(n_layers=1, n_loops=12, lr=RATES[1])
    rates = {f"tune-wide-inside-{rate:g}": wide_inside(size) | dict(lr=rate) for rate in RATES}
    return rates | {f"tune-12-times-{std:g}": looped | dict(init_std=std) for std in SPREADS}


def runs_of(piece, a):
    """{name: (preset, settings)} of the runs of a piece."""
    texts, runs, size = a.out / "texts", a.out / "runs", SIZES[a.size]
    made = {}

    def add(name, preset, files, settings, seeds=a.seed):
        data = tuple(map(str, files if isinstance(files, list) else [files]))
        words = "qwen2.5" if preset == "report" else "gpt2"
        common = dict(tokenizer=str(a.tokenizers / words), save_every=10_000) | size
        if torch.cuda.is_available():
            common["precision"] = "fp16"
        for seed in seeds:
            own = common | dict(data=data) | settings | dict(seed=seed)
            made[f"{name}-{seed}"] = preset, own

    if piece == "readings":
        batch = size.get("batch_size", 16)
        for n in (1, 12):
            one = dict(n_layers=n)
            if size:  # 5 % of a few conversations say little
                one["val_data"] = str(texts / "long_rest.jsonl")
            add(f"first-reading-{n}-layers", "report", texts / "long_half.jsonl", one)
            two = one | dict(batch_size=2 * batch)
            add(f"second-reading-{n}-layers", "report", texts / "long.jsonl", two)
    elif piece == "models":
        for name, settings in models(a.size).items():
            add(name, "report", texts / "conversations.jsonl", settings)
    elif piece == "tune":
        for name, settings in tried(a.size).items():
            add(name, "report", texts / "tune.jsonl", settings, [10])
    elif piece == "closed":
        names = [f"{name}-10" for name in tried(a.size)]
        n, text = len(RATES), texts / "conversations.jsonl"
        rate = best(names[:n], "lr", runs)
        spread = best(names[n:], "init_std", runs)
        add("wide-inside", "report", text, wide_inside(a.size))
        add("wide-inside-tuned", "report", text, wide_inside(a.size) | dict(lr=rate))
        looped = dict(n_layers=1, n_loops=12, lr=RATES[1], init_std=spread)
        add("12-times-tuned", "report", text, looped)
    elif piece == "heads":
        own = dict(attn_scale=1.0, precision="fp32", eval_every=250)
        if size:  # a rehearsal: as wide as the most heads
            own |= dict(d_model=96, steps=size["steps"], epochs=0, eval_every=2)
        for title, settings in heads.rows("heads-author", own).items():
            name = "heads-" + re.sub("[^a-z0-9]+", "-", title)
            add(name, "heads-author", a.texts / "tinystories" / "train.jsonl", settings)
    elif piece == "llmini":
        files = [a.texts / f"{name}.jsonl" for name in OF_LLMINI]
        for letter in "ac":
            for share in (0.25, 0.5, 1.0):
                settings = dict(epochs=round(3 / share))
                settings["sizes"] = ("stride=128", "texts=published", f"share={share}")
                if size:  # a rehearsal: its shape does not count
                    settings |= dict(epochs=1, d_ff=size["d_ff"], sizes=settings["sizes"])
                add(f"llmini-{letter}-{share:g}", f"llmini-{letter}", files, settings, [42])
    return made


def train(piece, a, ends, noted):
    """Train the runs of a piece, several at a time, if no signal is `noted` before; whether all are
    finished. KeyboardInterrupt if somebody stopped it before its time was over."""
    cells = []
    for name, (preset, settings) in runs_of(piece, a).items():
        settings = settings | dict(out_dir=str(a.out / "runs"))
        m, t = registry.configs(preset, **settings)
        t.name = name
        cells.append((preset, Cell(dict(run=name), settings, m, t)))
    todo = [(preset, cell) for preset, cell in cells if not is_finished(cell.m, cell.t)]
    print(f"{piece}: {len(cells)} runs, {len(cells) - len(todo)} finished before", flush=True)
    presets = {cell.t.name: preset for preset, cell in todo}

    def start(cell, slot):
        return cell.start(presets[cell.t.name], {}, os.environ | slot)

    if not todo:
        return True
    slots = pool.slots(min(a.jobs, len(todo)), "auto")
    failed, stopped = [], noted
    if not noted:
        failed, stopped = pool.train_all([cell for _, cell in todo], slots, start)
    for cell, why in failed:
        print(f"{cell} failed: {why}")
    if stopped and time.monotonic() < ends:
        raise KeyboardInterrupt
    return not failed and not stopped


def measure(piece, a, ends):
    """Add a line to OUT/measured.jsonl for each run of `models` that the piece looks into; whether
    all have one."""
    path = a.out / "measured.jsonl"
    lines = read(path) if path.exists() else []
    done = {line["run"] for line in lines if piece in line}
    names = [name for name in runs_of("models", a) if name not in done]
    if piece == "inside":
        names = [name for name in names if name.startswith(("1-layers", "12-layers"))]
    print(f"{piece}: {len(names)} runs to look into", flush=True)
    for name in names:
        if time.monotonic() > ends:
            return False
        run_dir = a.out / "runs" / name
        try:
            results.result(run_dir)
        except ValueError as error:
            print(f"{piece}: {error}; `models` comes first")
            return False
        found = LOOKS[piece](run_dir, a)
        lines.append({"run": name, piece: found})
        write(path, lines)
        print(f"{piece} {name}: {shown(found)}", flush=True)
    return True


def scored(run_dir, a):
    """How a run answers ARC's questions."""
    model, tokenizer = checkpoints.load(run_dir)
    model.to(machine.pick_device("auto"))
    questions = 40 if a.size == "tiny" else 0
    return score.scored(model, tokenizer, str(a.out / "texts" / "asked.jsonl"), questions)


def inside(run_dir, a):
    """What each layer of a run does, on what was held out from it."""
    m, t = checkpoints.read_config(run_dir)
    model, tokenizer = checkpoints.load(run_dir)
    model.to(machine.pick_device("auto"))
    part = registry.data_of(t, m.block_size, tokenizer).val
    return inspect.layer_by_layer(model, [each[: t.eval_blocks] for each in part])


LOOKS = dict(scored=scored, inside=inside)
PIECES = ("readings", "models", "scored", "inside", "tune", "closed", "llmini", "heads")


def shown(found):
    """The numbers of what was measured that stand at its top."""
    numbers = {name: value for name, value in found.items() if isinstance(value, (int, float))}
    return ", ".join(f"{name} {value:.4g}" for name, value in numbers.items()) or "done"


def do(piece, a):
    """Do a piece, or as much of it as there is time for; whether it is done. A piece that needs
    another's runs says so."""
    ends = time.monotonic() + 60 * a.minutes
    if piece in LOOKS:
        return measure(piece, a, ends)
    # as Ctrl-C: the runs save themselves
    timer = threading.Timer(60 * a.minutes, os.kill, (os.getpid(), signal.SIGTERM))
    with console.noted_signals() as noted:  # while none are under way
        timer.start()
        try:
            return train(piece, a, ends, noted)
        except ValueError as error:
            print(f"{piece}: {console.one_line(error)}")
            return False
        finally:
            timer.cancel()


def publish(out, name):
    """Add the finished runs of OUT to docs/results/NAME/runs.jsonl, with what was measured."""
    folders = sorted(path for path in (out / "runs").iterdir() if path.is_dir())
    results.publish(folders, name)
    path = out / "measured.jsonl"
    for line in read(path) if path.exists() else []:
        run_dir = out / "runs" / line.pop("run")
        for what, found in line.items():
            results.add_measured([run_dir], name, what, lambda _, found=found: found)


def main(arguments=None):
    """The exit code: 0 if all pieces are done, 1 if the same command has to go on."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out", type=pathlib.Path, help="where runs and measurements are kept")
    parser.add_argument("--texts", type=pathlib.Path, help="the folder of texts")
    parser.add_argument("--tokenizers", type=pathlib.Path, default=pathlib.Path())
    parser.add_argument("--pieces", nargs="+", choices=PIECES, default=PIECES, metavar="PIECE")
    parser.add_argument("--size", choices=SIZES, default="published")
    parser.add_argument("--seed", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--jobs", type=int, default=16 if torch.cuda.is_available() else 1)
    parser.add_argument("--minutes", type=float, default=8, help="the most that a piece takes")
    parser.add_argument("--publish", metavar="NAME", help="an experiment in docs/results")
    a = parser.parse_args(arguments)
    try:
        if a.publish:
            return publish(a.out, a.publish)
        if not a.texts:
            parser.error("give --texts FOLDER")
        make_texts(a.out, a.texts, a.size)
        left = [piece for piece in a.pieces if not do(piece, a)]
    except (OSError, ValueError) as error:
        parser.error(console.one_line(error))
    except KeyboardInterrupt:
        print("interrupted; the same command goes on")
        return 130
    print(f"not done: {' '.join(left)}; the same command goes on" if left else "all done")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
