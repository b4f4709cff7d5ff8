"""The whole command: one run is trained, resumed and sampled here; what else a flag asks for, many
runs, studies, what trained runs are asked, is imported only then."""

import argparse
import contextlib
import dataclasses
import functools
import json
import os
import re
import shlex
import signal
import sys
import tempfile
import threading

import torch

import minidepth as md
from minidepth_lab.base import configs, console, machine
from minidepth_lab.keep import check, checkpoints, naming, registry, running
from minidepth_lab.measure import sampling as drawing
from minidepth_lab.models import variants
from minidepth_lab.rows import files, reading, tokenizing

FIELDS = [
    f for kind in (configs.ModelConfig, configs.TrainConfig) for f in dataclasses.fields(kind)
]


# ---------- flags: one for each field of the configs, and those that choose what is done ----------


class Parser(argparse.ArgumentParser):
    def error(self, message):
        console.complain(f"{message}; see {console.COMMAND} --help")
        self.exit(2)


def number(text, kind=float, wanted="a number"):
    """'0.1' → 0.1"""
    try:
        return kind(text)
    except ValueError:
        apart = "; several values stand apart: 1 2" if "," in text else ""
        raise argparse.ArgumentTypeError(f"{text!r:.40} is not {wanted}{apart}") from None


def several(text):
    """'2,3' → (2, 3), '2' → (2,)"""
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        wanted = "is not a whole number, or several: 8,4,2"
        raise argparse.ArgumentTypeError(f"{text!r} {wanted}") from None


def heads(text):
    """'8,4' → (8, 4), '8' → 8"""
    numbers = several(text)
    return numbers if len(numbers) > 1 else numbers[0]


def steps_or_share(text):
    """'50' → 50, '0.1' → 0.1"""
    try:
        return int(text) if text.lstrip("+-").isdecimal() else float(text)
    except ValueError:
        wanted = "is neither a number of steps, 50, nor a share, 0.1"
        raise argparse.ArgumentTypeError(f"{text!r} {wanted}") from None


def named(text):
    """'pairs=8,symbols=16' → ('pairs=8', 'symbols=16')"""
    sizes = tuple(text.split(","))
    names = [size.partition("=")[0] for size in sizes]
    if len(set(names)) < len(names):
        wanted = (
            "gives a size twice; several values of one, each a model, stand apart: pairs=4 pairs=8"
        )
        raise argparse.ArgumentTypeError(f"{text!r} {wanted}")
    return sizes


whole = functools.partial(number, kind=int, wanted="a whole number")  # '12' → 12
# how one value of a flag is read, where its type does not say
KINDS = dict(n_heads=heads, problem_steps=several, warmup_steps=steps_or_share, sizes=named)
# shells leave the ~ of --out_dir=~/runs alone, while config.json means the home folder by it
EXPANDED = ("out_dir", "name", "tokenizer", "loader", "init_from", "val_data")
KINDS |= dict.fromkeys(EXPANDED, os.path.expanduser)
# what is done to trained runs, and what makes many runs: the laboratory's
TRAINED = ("runs", "compare", "report", "mechanism", "score", "attention", "export_hf")
MANY = ("study", "match_params", "bench")
OF_MANY = ("match", "jobs", "yes", "against")
OF_RUNS = ("sort",)


def shown(value):
    """A setting as it is typed: (8, 4) → 8,4"""
    if isinstance(value, tuple):
        return ",".join(str(part) for part in value)
    return str(value)


def add_field(group, f):
    """The flag of a field of a config."""
    default = "unset" if f.default in (None, "", ()) else shown(f.default)
    if f.name in configs.PRESETS["laptop"]:
        default += f" [{shown(configs.PRESETS['laptop'][f.name])}]"
    text = f"{f.metadata['help']} ({default})".replace("%", "%%")
    options = dict(default=argparse.SUPPRESS, help=text)
    if f.type is bool:
        options["action"] = argparse.BooleanOptionalAction
    elif f.name == "data":
        options.update(nargs="+", metavar="SOURCE")
    else:
        options.update(type=KINDS.get(f.name, f.type), metavar="X")
        if f.metadata["choices"]:
            options["metavar"] = f"{{{','.join(f.metadata['choices'])}}}"
        if f.name not in naming.NOT_NAMED:  # those make no grid
            options["nargs"] = "+"
    group.add_argument(f"--{f.name}", **options)


def make_parser(full=False):
    """The flags; `full` names every study and preset, for which all studies are read."""
    studies = presets = "a study's name"
    if full:
        studies, presets = (", ".join(registry.offering(kind)) for kind in ("study", "preset"))
    parser = Parser(
        prog=console.COMMAND.split()[-1],
        description="Train a Transformer of any depth and see what the depth did.",
        epilog="Defaults are the report's; the laptop preset's own are in brackets.",
        allow_abbrev=False,
    )
    parser.register("type", int, whole)  # how all flags of these types are read
    parser.register("type", float, number)
    parser.register("type", None, os.path.expanduser)  # of those that name a file or a folder
    presets = f"auto (report with CUDA, else laptop), report, laptop, or of {presets}"
    parser.add_argument("--version", action="version", version=f"minidepth {md.__version__}")
    parser.add_argument("--preset", help=presets)
    for title, kind in (("model", configs.ModelConfig), ("data and training", configs.TrainConfig)):
        group = parser.add_argument_group(title)
        for f in dataclasses.fields(kind):
            add_field(group, f)
    grid = parser.add_argument_group("several values of flags train every combination")
    matched = "as wide as gives the parameters of N layers"
    studies = f"all runs of a study: {studies}, or my.py"
    grid.add_argument("--jobs", type=int, metavar="N", help="runs at a time (1), a GPU each")
    grid.add_argument("--study", metavar="NAME", help=studies)
    grid.add_argument("--match_params", type=int, metavar="N", help=matched)
    part = "of --match_params (total)"
    grid.add_argument("--match", metavar="{total,blocks}", help=part)
    grid.add_argument("--yes", action="store_true", help="train even more than 200 runs")
    do = parser.add_argument_group("instead of training anew")
    asked = "does depth help on it? a task, a file or hub data set, rg:NAME; --verdict --help"
    do.add_argument("--verdict", metavar="SOURCE", help=asked)  # command/verdict.py reads it
    do.add_argument("--dry_run", action="store_true", help="print the facts, train nothing")
    do.add_argument("--bench", action="store_true", help="time training and generation")
    do.add_argument(
        "--against", metavar="gpt2", help="of --bench: the same for transformers' GPT-2"
    )
    resume = "go on with a run that was stopped, or, with more --steps, with a finished one"
    do.add_argument("--resume", metavar="RUN_DIR", help=resume)
    do.add_argument("--sample", metavar="RUN_DIR", help="let a trained model answer --prompt")
    do.add_argument("--mechanism", metavar="RUN_DIR", help="show which heads solve a depth task")
    do.add_argument("--prompt", type=str, metavar="TEXT", help="the user's turn for --sample")
    do.add_argument("--prompt_file", metavar="FILE", help="of --sample: the same from a file")
    do.add_argument("--chat", action="store_true", help="of --sample: several turns, typed in")
    said = "of --sample: a system turn; by default the one that the data begins with"
    do.add_argument("--system", type=str, metavar="TEXT", help=said)
    do.add_argument("--temperature", type=float, metavar="X", help="of --sample (0)")
    do.add_argument("--top_k", type=int, metavar="K", help="of --sample: of the K likeliest words")
    do.add_argument("--max_new_tokens", type=int, metavar="X", help="of --sample (256)")
    do.add_argument("--num_samples", type=int, metavar="N", help="answers to --sample (1)")
    first = "of --sample: the weights before training"
    do.add_argument("--first_weights", action="store_true", help=first)
    do.add_argument("--score", metavar="RUN_DIR", help="answer multiple-choice rows of --data")
    do.add_argument("--attention", nargs="+", metavar="RUN_DIR", help="measure and draw attention")
    runs = "list the runs in --out_dir; other flags choose those that have their values"
    do.add_argument("--runs", action="store_true", help=runs)
    sorts = "of --runs: date, name, layers, parameters, data, loss, accuracy, status"
    do.add_argument("--sort", metavar="COLUMN", help=sorts)
    compare = "print what differs between runs, and draw their curves"
    do.add_argument("--compare", nargs="+", metavar="RUN_DIR", help=compare)
    report = "write report.html, a page of a run or a grid that opens offline"
    do.add_argument("--report", metavar="FOLDER", help=report)
    gpt2 = "write as GPT-2, if it has a feed-forward part (--d_ff), as laptop has not"
    do.add_argument("--export_hf", nargs=2, metavar=("RUN_DIR", "OUT_DIR"), help=gpt2)
    return parser


# ---------- what a command line names ----------


def pick_preset(name, data=(), study=None, tokenizer=None):
    """The preset's name, and why it was taken. `report` is taken by itself only where its data and
    its tokenizer, as far as others are not named, can be had at once."""
    if name != "auto":
        return name, "as asked"
    if study and (own := registry.preset_of(study)):
        return own, f"the study {study} is about it"
    other = data and data[0] != "embedded" and not data[0].endswith(".jsonl")
    if other and registry.task(data[0]):
        return "tasks", f"{data[0]} is a depth task"
    if not torch.cuda.is_available():
        return "laptop", "no CUDA GPU found"
    found = f"{torch.cuda.device_count()} CUDA GPU found"
    wanted = []
    if not data:
        wanted.append((md.REPORT_DATA, "dataset"))
    if not tokenizer:
        wanted.append((configs.TrainConfig.tokenizer, "model"))
    if wanted:
        from minidepth_lab.rows import hub

        if why := hub.out_of_reach(wanted):
            return "laptop", f"{found}, but not the report's data: {console.one_line(why, 200)}"
    return "report", found


# ---------- what is told before anything is done ----------


def unknown_flag(words, names):
    """Raise ValueError for what is left of a command line, with the flag that may be meant."""
    import difflib

    known = [f"--{name}" for name in names]
    known += [f"--no-{f.name}" for f in FIELDS if f.type is bool]
    message = f"unrecognized arguments: {' '.join(words)}"
    alike = {name.replace("-", "_"): name for name in known}  # an easy slip
    typed = words[0].partition("=")[0].replace("-", "_")
    close = difflib.get_close_matches(typed, alike, 1, cutoff=0.75)
    meant = f"; is {alike[close[0]]} meant?" if close else f"; see {console.COMMAND} --help"
    raise ValueError(console.one_line(message) + meant)


def check_values(a, axes):
    """Raise ValueError for flags whose values cannot work, whatever is done; `a` are the command's
    flags, `axes` {setting: its values}."""
    for name, value in a.items():
        values = value if isinstance(value, list) else [value]
        if "" in values and name not in ("name", "loader", "val_data"):
            raise ValueError(f"--{name} was given an empty value; is a variable unset?")
    for sources in axes.get("data", ()):
        paths = [os.path.realpath(source) for source in sources]
        for source, path in zip(sources, paths):
            if paths.count(path) > 1:  # its held-out rows would count twice
                raise ValueError(f"--data has {source} twice; give each source once")
    for folder in axes.get("tokenizer", ()):
        if os.path.isfile(folder):
            raise ValueError(f"--tokenizer {folder} is a file; give the folder that holds it")
        within = os.path.join(folder, "tokenizer")
        if os.path.isdir(within):  # as in a run's folder
            raise ValueError(f"--tokenizer {folder} holds the folder tokenizer; give {within}")
    for name in axes.get("name", ()):
        inside = os.path.normpath(name)
        if name and (os.path.isabs(name) or inside.split(os.sep)[0] in (".", "..")):
            where = "is not within --out_dir; give a name, as in --name try1"
            raise ValueError(f"--name {name} {where}")
        if max(len(part) for part in name.encode(errors="replace").split(b"/")) > 255:
            raise ValueError(f"--name {name:.40}… is too long; give at most 255 bytes")


def check_place(flag, place):
    """Raise ValueError for the value of a flag that is no folder, or none that can be made."""
    here = os.path.abspath(place)
    while not os.path.lexists(here) and here != os.path.dirname(here):  # a drive may be gone
        here = os.path.dirname(here)
    if not os.path.isdir(here):
        raise ValueError(f"--{flag} {place}: {here} is not a folder; give one")
    try:  # what a folder says of itself does not tell: it may be a system's own
        tempfile.TemporaryFile(dir=here).close()
    except OSError as error:
        why = f"nothing can be written in {here} ({error.strerror}); give another folder"
        raise ValueError(f"--{flag} {place}: {why}") from None


def check_machine(m, t, resumed=False):
    """Raise ValueError, a line, for what this machine or so many processes cannot train."""
    machine.check_batch(t)
    from minidepth_lab.models import memory

    if t.fsdp:
        from minidepth_lab.models import fsdp

        fsdp.check_fsdp(t, resumed)
    if t.compile:
        from minidepth_lab.models import compiling

        compiling.check_compile(t)
    if t.report_to != "none":
        from minidepth_lab.keep import trackers

        trackers.check_tracker(t)
    memory.check_enough(m, t)


def print_facts(m, t, data=None, measured=False, done=0):
    """Print what follows from the settings, a line each; with `data`, from those fitted to it;
    `measured`, what it will take: its memory, and the time of all steps but the first `done`, for
    which parts of a step are timed."""
    model = [console.plural(m.n_layers, "layer")]
    if m.n_loops > 1:
        model[0] += f" looped {m.n_loops} times"
    model += [f"d_model {m.d_model}", f"d_ff {m.d_ff}", f"{shown(m.n_heads)} heads"]
    model.append(f"block {m.block_size}")
    if m.vocab_size:
        model.append(f"{m.vocab_size:,} words")
    if m.tie_weights:
        model.append("head tied to the embedding")
    lines = [machine.describe_device(t), f"model {', '.join(model)}"]

    if m.vocab_size:
        n = variants.parameters(m)
        lines.append(
            f"parameters {n['total']:,}: embedding {n['embedding']:,}, "
            f"position {n['position']:,}, blocks {n['blocks']:,}, head {n['head']:,}, "
            f"final norm {n['final_norm']:,}"
        )
    else:
        lines.append("parameters: known when the data has given the tokenizer its words")

    T = data.val[0].shape[-1] if data else m.block_size
    tokens = t.batch_size * t.grad_accum * T
    steps = f"{t.steps} steps" if data or not t.epochs else f"{t.epochs} epochs"
    lines.append(
        f"step {t.batch_size} x {t.grad_accum} x {T} = {tokens:,} tokens; {steps}, "
        f"learning rate {rate_fact(t, known=data or not t.epochs)}"
    )
    if data is None:
        lines.append(f"data {' + '.join(t.data)}, tokenizer {t.tokenizer} (not loaded)")
    elif data.infinite:
        lines.append(task_fact(data))
    elif "train_tokens" in data.facts:
        lines.append(text_fact(t, data, tokens))
    else:  # a loader of one's own
        n, held_out = len(data.train[0]), len(data.val[0])
        lines.append(f"data of {t.loader}: {n:,} blocks of {T} tokens, {held_out:,} held out")
        lines += data.facts.get("lines", ())  # what the loader has to say of it
    if data and m.vocab_size > 100 * data.n_words:
        lines.append(f"note: {m.vocab_size:,} words, of which the data has {data.n_words:,}")
    lines += notes(t, data)
    if measured and m.vocab_size:  # a run that begins at once shows it itself
        from minidepth_lab.measure import forecast
        from minidepth_lab.models import memory

        lines += [memory.line(m, t), *forecast.lines(m, t, data, done)]
    print(console.visible("\n".join(lines)))


def rate_fact(t, known):
    """What the learning rate does in a whole run, as words; `known`, whether t.steps is."""
    floor, fallen = t.lr * t.lr_floor, t.lr_steps
    if not fallen or (known and fallen == t.steps):
        rise = f"{t.warmup_steps:g}" if t.warmup_steps >= 1 else f"{t.warmup_steps:.0%} of them"
        return f"up to {t.lr:g} in {rise}, down to {floor:g}"
    rise, last = configs.steps_of_rise(t), md.lr_at(t.steps - 1, t)
    if known and t.steps <= rise + 1:  # all of it is the rise
        rises = f"it would rise until step {rise + 1}"
        return f"up to {last:.3g} at the last; {rises} and fall until step {fallen} (--lr_steps)"
    up = f"up to {t.lr:g} in {console.plural(int(rise), 'step')}, then down to"
    if known and t.steps < fallen:
        return f"{up} {last:.3g} at the last; its fall ends at step {fallen} (--lr_steps)"
    return f"{up} {floor:g} by step {fallen} (--lr_steps), where it stays"


def notes(t, data=None):
    """What is worth knowing before any run, a line each."""
    lines = []
    known = data or not t.epochs  # else only the data tells how many steps there are
    n, blocks, answered = running.evaluations_of(t, data)
    # a step goes forward and back, which is three times forward alone
    if known and blocks + answered > 3 * t.steps * t.batch_size * t.grad_accum:
        measured = f"{console.plural(n, 'evaluation')} of up to {t.eval_blocks} blocks"
        lower = "--eval_blocks"
        if answered:
            measured += f" and {answered:,} answers"
            lower = "--eval_blocks, --eval_problems or --watch_problems"
        lines.append(
            f"note: this run evaluates for longer than it trains: {measured} for "
            f"{console.plural(t.steps, 'step')}; lower {lower}, or raise --eval_every"
        )
    if t.init_from and t.lr >= 1e-3:
        lines.append(
            f"note: it begins with trained weights at a learning rate of up to {t.lr:g}, as if "
            "they were new; --lr 0.0003, say, keeps more of what they have learned"
        )
    device = machine.pick_device(t.device)
    bf16 = machine.pick_precision(t.precision, device) is torch.bfloat16
    if device.type == "cpu" and bf16 and machine.bf16_of_cpu() == "":
        lines.append(
            "note: this CPU has neither AVX512-BF16 nor AMX: it emulates bf16, which takes longer "
            "than --precision fp32"
        )
    return lines


def task_fact(data):
    """Of a depth task: its sizes, and what its accuracy is to be compared with."""
    sizes = ", ".join(size.replace("=", " ") for size in data.sizes)
    rates = []
    for key, name in (("guess", "of guessing"), ("shortcut", "of a shortcut")):
        if key in data.facts:
            rates.append(f"{name} {data.facts[key]:.3f}")
    line = f"data {data.facts['task']} ({sizes}), drawn anew each step; {len(data.val[0]):,} test"
    return f"{line} sequences; accuracy {', '.join(rates) or 'of guessing unknown'}"


def text_fact(t, data, tokens):
    """Of text: rows, tokens, blocks and how much of them is used; `tokens` are those of a step."""
    facts, (n_blocks, T) = data.facts, data.train[0].shape
    used = 1.0
    if t.packing == "pack":
        used = min(1.0, n_blocks * T / facts["train_tokens"])
    share_filled = min(1.0, facts["train_tokens"] / (n_blocks * T))
    learned = (data.train[1] != -100).sum().item() / facts["train_tokens"]
    losses = f"{learned:.1%} with a loss"
    if learned > 1:  # blocks that overlap show the same token more than once
        losses = f"each with a loss {learned:.2f} times on average, as blocks overlap"
    rows = f"{facts['train_rows']:,} rows, {facts['val_rows']:,} held out"
    if facts["unusable_rows"]:
        rows += f", {facts['unusable_rows']:,} left out"
    lines = "".join(f"\nnote: {console.one_line(note, 400)}" for note in facts.get("notes", ()))
    return (
        f"data {' + '.join(t.data)}: {rows}; {facts['train_tokens']:,} tokens in {n_blocks:,} "
        f"blocks, {used:.1%} of them used, {losses}; {share_filled:.1%} of positions filled; "
        f"{t.steps * tokens / (n_blocks * T):.1f} epochs{lines}"
    )


# ---------- several processes, as torchrun starts them ----------


def check_launch():
    """Raise ValueError where what torchrun tells a process is there in part, or is no number."""
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE"):
        value = os.environ.get(name, "0")
        if not value.isdecimal():
            wrong = "is no number; start with torchrun, or unset it"
            raise ValueError(f"the environment's {name}, {value!r:.40}, {wrong}")
    rank, world = md.processes()
    missing = [n for n in ("RANK", "MASTER_ADDR", "MASTER_PORT") if n not in os.environ]
    if world > 1 and missing:
        wrong = f"is {world} but {' and '.join(missing)} not set"
        raise ValueError(f"the environment's WORLD_SIZE {wrong}; start with torchrun, or unset it")
    port = os.environ.get("MASTER_PORT", "0")
    if world > 1 and not (port.isdecimal() and int(port) < 2**16):
        wrong = "is no port, 0 to 65535; start with torchrun, or give another"
        raise ValueError(f"the environment's MASTER_PORT, {port!r:.40}, {wrong}")
    if rank >= world:
        wrong = f"the environment's RANK is {rank} of a WORLD_SIZE of {world}"
        raise ValueError(f"{wrong}; start with torchrun, or unset both")
    local = int(os.environ.get("LOCAL_RANK", 0))
    if local > rank:  # which no launcher says; it would take that GPU, for a job of one process
        wrong = f"the environment's LOCAL_RANK is {local} but its RANK {rank}"
        raise ValueError(f"{wrong}; start with torchrun, or unset both")


@contextlib.contextmanager
def ended_by_ctrl_c():
    """While active, Ctrl-C ends this process as SIGTERM does. Python would note it and raise
    KeyboardInterrupt once PyTorch comes back, which may wait half an hour for another process."""
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGINT) != signal.default_int_handler:
        yield  # ignored, as under nohup, or handled by somebody else
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextlib.contextmanager
def connected(t):
    """Let the processes of torchrun find one another; while active, the loss of another one is told
    in a line: ConnectionError. Signals are noted within, not around it: a process that waits for
    one that never comes is to end when it is told so.

    At the end they let go of one another. Without that PyTorch's threads may still hold a tensor
    when the interpreter goes, and the process is aborted although all its work is done. After a
    failure they do not: letting go may wait for a process that is no longer there.
    """
    rank, world = md.processes()
    new_group = not torch.distributed.is_initialized()
    try:
        with ended_by_ctrl_c():
            machine.connect(machine.pick_device(t.device))
        yield
        if new_group and torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()
    except RuntimeError as error:
        # PyTorch's word for another process that it cannot reach
        lost = isinstance(error, torch.distributed.DistError) or re.search(r"gloo[/\\]", str(error))
        if not lost:
            raise
        why = "ends because another one has ended or cannot be reached"
        folder = shlex.quote(os.path.join(t.out_dir, t.name))
        go_on = f"go on with: torchrun … train.py --resume {folder}"
        raise ConnectionError(
            f"process {rank} of {world} {why}; its own message, if it left one, says more; {go_on}"
        ) from None


# ---------- what is done: train, resume, sample ----------


def weights_to_begin_with(t):
    """{name: tensor} of the weights to begin with, where minidepth.py alone does not read them:
    those of a GPT-2. Print where they come from."""
    which = f"weights to begin with: {t.init_from}"
    weights = None
    if checkpoints.is_run(t.init_from):
        which = checkpoints.describe_weights(t.init_from) or which
    else:
        from minidepth_lab.keep import export

        weights = export.from_gpt2(t.init_from)
    if md.processes()[0] == 0:
        print(which)
    return weights


def run_training(m, t, command, resume=False, changed=()):
    """Load the data, print the facts, train, draw, answer; the exit code. `command` and `changed`
    as train() has them."""
    first = md.processes()[0] == 0  # under torchrun one process speaks
    folder = os.path.join(t.out_dir, t.name)
    if not resume:  # train() asks this too, but only after the data has been loaded for it
        checkpoints.check_new(folder)
    else:
        check_kept(folder, t.steps)
    data = registry.data_of(
        t, m.block_size, checkpoints.saved_tokenizer(folder) if resume else None
    )
    if resume:
        check_same_data(folder, data)
    m, t = running.complete_configs(m, t, data)
    if first:
        print_facts(m, t, data)
    begun = checkpoints.has_checkpoint(folder)
    weights = weights_to_begin_with(t) if t.init_from and not begun else None
    told = None
    if first and t.report_to != "none":
        from minidepth_lab.keep import trackers

        told = trackers.Told(m, t)
    together = connected(t) if md.processes()[1] > 1 else contextlib.nullcontext()
    with together:
        try:
            run = running.train(
                m, t, data, resume, command, changed=changed,
                weights=weights, tell=told,
            )  # fmt: skip
        except BrokenPipeError:  # python train.py | head
            go_on = f"go on with --resume {shlex.quote(folder)}"
            raise ValueError(f"nobody reads what this run prints any more; {go_on}") from None
    if told:
        told.finish()
    if first and run.log:
        draw_curve(run, t)
    if first and run.finished:
        if data.infinite:
            show_accuracy(run.log[-1])
        if "val_loss_by_loops" in run.log[-1]:
            print(f"loss by loops: {listed(run.log[-1]['val_loss_by_loops'], 4)}")
        if problems := data.problems[: t.eval_problems]:
            show_answers(run, problems)
            if shares := run.log[-1].get("accuracy_by_source"):
                print(f"answer accuracy by source: {listed(shares, 3)}")
        if which := checkpoints.describe_weights(run.dir):
            print(which)
        files = (
            "curve.png",
            "log.jsonl",
            checkpoints.LAST,
            checkpoints.BEST,
        )  # of a run, what one looks at
        written = [name for name in files if os.path.exists(os.path.join(run.dir, name))]
        print(f"wrote {run.dir}: {', '.join(written)}")
    return 0 if run.finished else 130


def check_kept(folder, steps):
    """ValueError for a run that is finished but has no checkpoint any more: it would begin anew."""
    if checkpoints.has_checkpoint(folder):
        return
    done, over = 0, False
    with contextlib.suppress(OSError, ValueError, KeyError, IndexError):
        row = last_row(folder)
        done, over = row["step"], checkpoints.is_over([row], steps)
    if over:
        raise checkpoints.Finished(f"{folder} is finished: {done} of {steps} steps are done")


def last_row(folder):
    """The last row of a run's log; an OSError, ValueError or IndexError where there is none."""
    with open(os.path.join(folder, "log.jsonl"), encoding="utf-8") as f:
        return json.loads(f.readlines()[-1])


SAID = ("accuracy", "guess", "shortcut")  # said by itself, or known without a model


def show_accuracy(row):
    """Print the accuracy of a task that the log's last row has, and by what it is told apart:
    "by hops: 1 1.000, 2 0.998"; and in the same way what else was measured of it."""
    print(f"accuracy {row['accuracy']:.3f} on the test split")
    for size, by_value in row.get("accuracy_by", {}).items():
        print(f"by {size}: {listed({v: part['accuracy'] for v, part in by_value.items()}, 3)}")
        parts = list(by_value.values())
        for name in parts[0] if parts else ():
            numbers = [part.get(name) for part in parts]
            if name not in SAID and all(isinstance(number, float) for number in numbers):
                measured = listed(dict(zip(by_value, numbers)), 3)
                print(f"by {size}, {name.replace('_', ' ')}: {measured}")


def listed(by_value, digits):
    """{value: number} as "1 1.000, 2 0.998"; of a long one, which log.jsonl has whole, what stands
    at powers of two and at the end."""
    values = list(by_value)
    if len(values) > 24:
        powers = [str(2**k) for k in range(20)]
        values = [value for value in values if value in powers or value == values[-1]]
    return ", ".join(f"{value} {by_value[value]:.{digits}f}" for value in values)


def show_answers(run, problems):
    """Print one held-out problem with the model's answer, and the accuracy over all asked."""
    p = max(problems, key=lambda problem: problem.get("steps", 0))
    text = drawing.answer_texts(run.model, run.tokenizer, [p])[0]
    question = p["messages"][-1]["content"]
    print(console.visible(f"\nheld-out problem: {question}\nmodel: {text.strip()}"))
    print(console.visible(f"right answer: {p['answer']}\n"))
    last = run.log[-1]
    guessing = f", guessing {last['guess']:.3f}" if "guess" in last else ""
    n = f"{len(problems)} held-out problems"
    print(f"answer accuracy {last['accuracy']:.3f} on {n}{guessing}")


def draw_curve(run, t):
    """Draw curve.png, with the laboratory's figures; no error there takes the run with it."""

    with check.drawn("curve.png"):
        from minidepth_lab.show import curve

        curve.draw_curve(run, t)


def draw_lost(folder):
    """Draw the curve that a kill has cost a finished run."""

    if md.processes()[0] == 0 and not os.path.exists(os.path.join(folder, "curve.png")):
        with check.drawn("curve.png"):
            from minidepth_lab.show import curve

            curve.draw_lost(folder)


def try_out(m, t):
    """Print the facts of a run that is not trained, with those of its data if none of it is to
    come from a hub."""
    if md.processes()[0]:
        return  # under torchrun one process speaks
    checkpoints.check_new(os.path.join(t.out_dir, t.name))
    from minidepth_lab.rows import sources

    check.files(t)
    if sources.away(t):
        check.its_tokenizer(t)
        if t.loader:
            check.its_loader(t)
        print_facts(m, t, measured=True)
        return
    data = registry.data_of(t, m.block_size)
    print_facts(*running.complete_configs(m, t, data), data, measured=True)


def longer(folder, before, t, given):
    """(the settings that a run goes on with, [the names of those that are others now], which those
    are, in words). `t` has what was `given`, names of flags."""
    if "steps" in given and before.epochs:
        raise ValueError(f"{folder} counts epochs, {before.epochs} of them; give --epochs")
    if "epochs" in given and not before.epochs:
        raise ValueError(f"{folder} counts steps, {before.steps} of them; give --steps")
    lives_on = any(getattr(t, name) != getattr(before, name) for name in ("steps", "epochs"))
    if lives_on and not before.lr_steps and "lr_steps" not in given:
        t = dataclasses.replace(t, lr_steps=before.steps)  # no jump of the rate
    t = t.validate()
    changed = [n for n in checkpoints.LIFE if getattr(t, n) != getattr(before, n)]
    if "epochs" in changed:  # from which the data makes them
        changed.append("steps")
    if changed and not checkpoints.has_checkpoint(folder):
        anew = f"begin a new run with its weights: --init_from {shlex.quote(folder)}"
        raise ValueError(f"{folder} has no checkpoint to go on from; {anew}")
    words = []
    for name in changed:
        if name in ("steps", "epochs") and getattr(t, name) != getattr(before, name):
            words.append(f"{getattr(t, name)} {name} instead of {getattr(before, name)}")
        elif name in ("keep", "stop_after"):  # lr_steps is told by the learning rate
            words.append(f"{name} {getattr(t, name)} instead of {getattr(before, name)}")
    return t, changed, ", ".join(words)


def rate_ahead(t, done):
    """What the learning rate does after `done` steps of a TrainConfig, as words; ValueError if it
    is 0 from there on."""
    ends, last = t.lr_steps or t.steps, md.lr_at(t.steps - 1, t)
    if done >= ends:
        if last == 0:
            anew = f"give --lr_steps {t.steps} too, so that it falls anew"
            raise ValueError(f"the learning rate fell to 0 by step {ends} and stays there; {anew}")
        anew = f"--lr_steps {t.steps} lets it fall anew over all {t.steps} steps"
        return f"the learning rate stays at {last:g}, where it ended; {anew}"
    top = max(done, min(configs.steps_of_rise(t), t.steps - 1))  # from which it rises no more
    then = [f"is {md.lr_at(done, t):.3g} at step {done + 1}"]
    if top > done:
        then.append(f"rises to {md.lr_at(top, t):.3g} at step {top + 1}")
    if ends < t.steps:
        then += [f"falls until step {ends}", f"stays at {last:g}"]
    elif top < t.steps - 1:
        then.append(f"falls to {last:.3g} at step {t.steps}")
    if len(then) == 1:
        return f"the learning rate {then[0]}, the last"
    return f"the learning rate {', '.join(then[:-1])} and {then[-1]}"


def checkpoint_of(folder):
    """(steps done, rows of the log) in the checkpoint that a run goes on from, before the first one
    (0, []). The log.jsonl may be behind it, as a run that is stopped saves without evaluating."""

    def known(state):
        return int(state["step"]), list(state["log"])

    # of a damaged one it is told where the run goes on
    state = checkpoints.newest_state(folder, known, lambda line: None, put_aside=False)
    return known(state) if state else (0, [])


def check_unfinished(folder, t, done, log, changed):
    """ValueError where nothing is left to do, before anything is said of it; but for --steps that
    are fewer in the words of train(), which asks this too, once it has the data."""
    if "epochs" in changed:
        return  # only the data tells how many steps they are
    if done >= t.steps and "steps" in changed:
        too_few = f"--steps {t.steps} is too few: {done} steps of {folder} are done already"
        raise ValueError(f"{too_few}; give more than {done}")
    if finished := checkpoints.nothing_left(folder, t, done, log):
        raise checkpoints.Finished(finished)


def resume(run_dir, changes, command, dry_run=False):
    """Go on with a run, longer or on another device if need be; the exit code. Code of one's own
    that made its data is executed if it is named again. `command` is what was typed."""
    checkpoints.check_run(run_dir, "resume")
    check_place("resume", run_dir)
    m, t = checkpoints.read_config(run_dir)
    before, life = t, {name: changes[name] for name in checkpoints.LIFE if name in changes}
    t = dataclasses.replace(t, **life)
    t, changed, longer_by = longer(run_dir, before, t, life)
    batch = {name: changes[name] for name in checkpoints.BATCH if name in changes}
    for name, value in changes.items():
        if name in checkpoints.LIFE:
            continue
        kept = not hasattr(t, name) or name in ("out_dir", "name")  # of the model, or its place
        if name == "data":  # code may not be another's, files may have moved
            kept = value != t.data and any(path.endswith(".py") for path in (*value, *t.data))
        new = batch if name in batch else {name: value}
        told = t if kept else dataclasses.replace(t, **new)
        # a device may be another one
        if kept or checkpoints.different_settings(
            checkpoints.settings(m, t), checkpoints.settings(m, told)
        ):
            its = "settings"
            if name in batch:
                its = f"batch_size x grad_accum, {before.batch_size} x {before.grad_accum}"
            raise ValueError(f"--resume keeps the run's {its}; leave out --{name}")
        t = told.validate()
    check_moved(run_dir, t)
    parent, t.name = os.path.split(os.path.normpath(run_dir))
    t.out_dir = parent or "."
    line = f"resume {run_dir}"
    if longer_by:
        line += f": {longer_by}"
    done, other_rate = 0, bool({"steps", "epochs", "lr_steps"} & set(changed))
    if other_rate or dry_run:
        folder = os.path.join(t.out_dir, t.name)
        check_kept(folder, t.steps)
        done, log = checkpoint_of(folder)
        check_unfinished(folder, t, done, log, changed)
    if other_rate:
        if t.epochs:
            rate = f"the learning rate falls until step {t.lr_steps} and stays at its floor"
            line += f"; {rate}" if t.lr_steps else ""
        else:
            line += f"; {rate_ahead(t, done)}"
    if md.processes()[0] == 0:
        print(line)
    check_machine(m, t, resumed=True)
    if dry_run:
        if md.processes()[0] == 0:
            print_facts(m, t, measured=True, done=done)
        return 0
    return run_training(m, t, command, resume=True, changed=tuple(changed))


def check_moved(run_dir, t):
    """Raise ValueError for a file of data that is no longer where a run has read it."""
    for flag, sources in (("data", t.data), ("val_data", (t.val_data,))):
        for source in sources:
            missing = files.is_missing(source)
            if missing:
                moved = f"--resume {shlex.quote(run_dir)} --{flag} FILE"
                raise ValueError(f"{flag} {source} is not there; if it has moved, give {moved}")


def check_same_data(folder, data):
    """Raise ValueError for other data than a run began with, as its config.json says: of a run that
    was stopped before its first checkpoint nothing else tells."""
    if checkpoints.has_changed(folder, data):
        raise ValueError(f"the data of {folder} is not what it began to train on")


def sample(a, seed, n_loops=None):
    """Print what a model answers to the prompt, or how it goes on if trained on plain text;
    `n_loops` times looped, if that is given."""
    run_dir = a["sample"]
    checkpoints.check_run(run_dir, "sample")
    prompt = prompt_of(a)
    sampling = sampling_of(a, seed)
    model, tokenizer = untrained(run_dir) if a["first_weights"] else checkpoints.load(run_dir)
    if not a["first_weights"] and (which := checkpoints.describe_weights(run_dir)):
        print(which, file=sys.stderr)
    if n_loops:
        model.config = dataclasses.replace(model.config, n_loops=n_loops).validate()
    if tokenizer is None:
        task = f"--sample {run_dir} was trained on a depth task: it knows no text"
        raise ValueError(f"{task}, or has lost its folder tokenizer; copy it from another run")
    chats = bool(tokenizer.chat_template)  # trained on conversations
    for name in ("chat", "system"):
        if a[name] and not chats:
            raise ValueError(f"--{name} has no effect on {run_dir}, trained on plain text")
    marks = [mark for mark in tokenizing.marks_of(tokenizer) if mark in f"{prompt} {a['system']}"]
    if marks:
        print(f"note: {', '.join(marks)} in the prompt is read as characters", file=sys.stderr)
    if unknown := tokenizing.unknown_in(tokenizer, prompt or ""):
        print(f"note: the tokenizer does not know {unknown!r} in the prompt", file=sys.stderr)
    system = a["system"] or tokenizing.system_turn(tokenizer)
    messages = [dict(role="system", content=system)] if system else []
    if a["chat"]:
        return chat(model, tokenizer, messages, sampling)
    for text in answers(model, tokenizer, messages, prompt, chats, a["num_samples"] or 1, sampling):
        print(console.visible(text))


def prompt_of(a):
    """The prompt of --sample's flags, None for --chat, which asks for several; ValueError for none
    or for several ways to give one."""
    given = [name for name in ("prompt", "prompt_file", "chat") if a[name]]
    if not given:
        raise ValueError("--sample needs --prompt TEXT, --prompt_file FILE or --chat")
    if len(given) > 1:
        raise ValueError(f"--{given[0]} and --{given[1]} are two ways to ask; give one of them")
    if a["chat"] and a["num_samples"] is not None:
        raise ValueError("--num_samples has no effect with --chat, which answers once a turn")
    for name in ("prompt", "system"):
        with console.one_line_errors(f"--{name}", "is not text"):
            (a[name] or "").encode()
    prompt = a["prompt"]
    if a["prompt_file"]:
        prompt = reading.read_text(a["prompt_file"], "--prompt_file").rstrip("\n")
    if prompt is not None and not prompt.strip():
        raise ValueError("the prompt is empty; give some text")
    return prompt


def sampling_of(a, seed):
    """The keywords of generate() in --sample's flags; ValueError for values that cannot work."""
    most, temperature = a["max_new_tokens"], a["temperature"] or 0.0
    if most is not None and not 1 <= most <= 100_000:
        limit = "from 1 to 100,000"
        raise ValueError(f"--max_new_tokens {most!s:.40} does not work; give a number {limit}")
    # a lower one divides by so little that the numbers overflow
    if temperature and not 0.001 <= temperature <= 1000:
        raise ValueError(f"--temperature {temperature} does not work; give 0, or 0.001 to 1000")
    for name, limit in (("top_k", 10**6), ("num_samples", 1000)):
        if a[name] is not None and not 1 <= a[name] <= limit:
            wanted = f"give a number from 1 to {limit:,}"
            raise ValueError(f"--{name} {a[name]!s:.40} does not work; {wanted}")
    configs.check_fields(
        configs.TrainConfig(seed=seed or 0)
    )  # within the limits of training's seed
    for name, value in dict(top_k=a["top_k"], num_samples=a["num_samples"], seed=seed).items():
        if value is not None and not temperature:
            why = "always takes the likeliest word; give --temperature 1, say"
            raise ValueError(f"--{name} has no effect at --temperature 0, which {why}")
    return dict(
        temperature=temperature, max_new_tokens=most or 256, seed=seed or 0, top_k=a["top_k"]
    )  # fmt: skip


def untrained(run_dir):
    """(model, tokenizer) of a run as it was before its first step: its seed drew the weights."""
    m, t = checkpoints.read_config(run_dir)
    if t.init_from:
        raise ValueError(f"{run_dir} began with the weights of {t.init_from}; --sample that")
    torch.manual_seed(t.seed)
    model, tokenizer = variants.GPT(m).eval(), checkpoints.saved_tokenizer(run_dir)
    if tokenizer is not None:
        model.n_words = len(tokenizer)
    return model, tokenizer


def answers(model, tokenizer, messages, prompt, chats, n, sampling):
    """n texts: what a model answers to a user's turn after the messages or, trained on plain text,
    the prompt and how it goes on."""
    if chats:
        problem = dict(messages=[*messages, dict(role="user", content=prompt)])
        check_room(model.config, md.prompt_ids(tokenizer, problem["messages"]))
        texts = drawing.answer_texts(model, tokenizer, [problem] * n, **sampling)
        return [text.strip() for text in texts]
    ids, _ = next(md.encode([[(prompt, True)]], tokenizer))
    check_room(model.config, ids)
    tokens = drawing.generate(
        model, torch.tensor([ids] * n), eos=tokenizer.eos_token_id, **sampling
    )
    return [tokenizer.decode(row, skip_special_tokens=True) for row in tokens]


def chat(model, tokenizer, messages, sampling):
    """Read turns from the terminal, a line each, and print the answers, each of which stands before
    the next turn; an empty line or the end of the input ends it."""
    asks = sys.stdin.isatty()
    while True:
        if asks:
            print("> ", end="", flush=True)
        turn = sys.stdin.readline().strip()
        with console.one_line_errors("the turn", "is not text"):
            turn.encode()
        if not turn:
            return
        (said,) = answers(model, tokenizer, messages, turn, True, 1, sampling)
        print(console.visible(said))
        messages = [*messages, dict(role="user", content=turn)]
        if said:
            messages.append(dict(role="assistant", content=said))


def check_room(config, ids):
    """ValueError for a prompt that leaves its model no place for a word more."""
    room = config.block_size - 1
    if config.position == "learned" and len(ids) > room:
        too_long = f"the prompt, with all that was said before, makes {len(ids)} tokens"
        raise ValueError(f"{too_long}; this model reads at most {room} and has one left to answer")


# ---------- the command ----------


def run_command(arguments):
    """Do what the flags say; the exit code, None for 0."""
    if arguments is None:
        arguments = sys.argv[1:]
    if "--verdict" in arguments or "--compare" in arguments:
        from minidepth_lab.command import verdict

        if "--verdict" in arguments or verdict.wants_groups(arguments):
            return verdict.main(arguments, sys.modules[__name__])
    command = f"{console.COMMAND} {shlex.join(arguments)}".rstrip()  # kept with the run
    parser = make_parser(full="--help" in arguments or "-h" in arguments)
    a, unknown = parser.parse_known_args(arguments)
    a = vars(a)
    if unknown:
        unknown_flag(unknown, ("help", *a, *(f.name for f in FIELDS)))
    given = (word.partition("=")[0] for word in arguments if word.startswith("--"))
    flags = [flag.replace("--no-", "--", 1) for flag in given]
    for flag in flags:
        if flags.count(flag) > 1:  # argparse would heed the last
            raise ValueError(f"{flag} is given twice; give it once, several values after it")
    # every flag's values: one each for a run, several for a grid
    axes = {f.name: a[f.name] for f in FIELDS if f.name in a}
    for name, values in axes.items():
        if name == "data":
            axes[name] = [tuple(values)]
        elif not isinstance(values, list):
            axes[name] = [values]
    changes = {name: values[0] for name, values in axes.items()}
    check_values(a, axes)
    if os.environ.keys() & {"RANK", "LOCAL_RANK", "WORLD_SIZE"}:
        check_launch()
    code = [*changes.get("data", ()), changes.get("loader", ""), a["study"] or ""]
    if any(path.endswith(".py") for path in code):
        from minidepth_lab.tasks.base import own_code

        own_code.NAMED.update(code)
    varied = [name for name, values in axes.items() if len(values) > 1]
    alone = ("resume", "sample", *TRAINED, *MANY, *OF_MANY, *check.OF_SAMPLE, *OF_RUNS)
    if any(check.is_given(a[name]) for name in alone):
        check.flags(a, axes)
    lone = [name for name in ("sample", *TRAINED, "bench") if a[name]]
    if lone and md.processes()[1] > 1:
        raise ValueError(f"--{lone[0]} is done by one process; start it without torchrun")
    if a["sample"]:
        return sample(a, changes.get("seed"), changes.get("n_loops"))
    if any(a[name] for name in TRAINED):
        if a["attention"] or a["compare"]:
            check_place("out_dir", changes.get("out_dir", configs.TrainConfig.out_dir))
        from minidepth_lab.command import trained

        return trained.look(a, axes)
    if a["resume"]:
        if varied:
            raise ValueError(f"--resume is one run; give one value of --{varied[0]}")
        try:
            return resume(a["resume"], changes, command, a["dry_run"])
        except checkpoints.Finished:
            draw_lost(a["resume"])
            raise
    if not a["bench"]:
        check_place("out_dir", changes.get("out_dir", configs.TrainConfig.out_dir))
    preset, why = pick_preset(
        a["preset"] or "auto", changes.get("data", ()), a["study"], changes.get("tokenizer")
    )
    if md.processes()[0] == 0:
        print(f"preset {preset}: {why}")
    if "steps" in axes:
        most = max(axes.get("epochs") or [registry.configs(preset)[1].epochs])
        if most:
            raise ValueError(f"--steps has no effect with --epochs {most}; give --epochs 0 too")
    if a["study"] or a["match_params"] is not None or varied:
        from minidepth_lab.sweep import plan

        cells, study = plan.planned(a, preset, axes)
        if study or len(cells) > 1:
            return plan.train_planned(a, preset, axes, cells, study, command)
        changes = cells[0][1]
    m, t = registry.configs(preset, **changes)
    check_machine(m, t)
    if a["bench"]:
        from minidepth_lab.measure import bench

        return bench.show_bench(m, t, a["against"])
    t.name = t.name or naming.run_name(preset, changes)
    if a["dry_run"]:
        return try_out(m, t)
    return run_training(m, t, command)


def main(arguments=None):
    """The exit code: 2 with one line on stderr for what a user can put right, 1 for divergence."""
    with contextlib.suppress(AttributeError):  # not a real stream in a notebook
        sys.stdout.reconfigure(line_buffering=True, errors="backslashreplace")
    try:
        return run_command(arguments) or 0
    except ValueError as error:
        message, code = error, 2
    except BrokenPipeError:  # `| head` has read enough; what Python flushes at its end fails, too
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + 13  # as shells say of what a broken pipe has ended
    except OSError as error:  # a full disk, a folder that may not be written
        where = f"{error.filename}: " if error.filename else ""
        message, code = f"{where}{error.strerror or error}; what was saved before is whole", 2
    except md.Diverged as error:
        message, code = error, 1
    except (MemoryError, RuntimeError) as error:
        if not console.is_out_of_memory(error):
            raise
        advice = "give a smaller --batch_size, --block_size, --d_model or --sizes"
        message, code = f"the memory is full: {str(error) or 'nothing more is known'}; {advice}", 2
    except KeyboardInterrupt:
        message, code = "interrupted", 130
    console.complain(message)
    return code
