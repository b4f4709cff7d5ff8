"""What a command line says: its flags, one for each setting and those that choose what is done, and
which of them go together."""

import argparse
import dataclasses
import difflib
import functools
import os
import shlex
import tempfile

import minidepth as md
from minidepth_lab.base import configs, console
from minidepth_lab.keep import checkpoints, naming, registry
from minidepth_lab.measure.cell import shown
from minidepth_lab.tasks.base import own_code

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


def make_parser(full):
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
    grid.add_argument("--match", metavar="{total,layers}", help=part)
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


# ---------- what a command line says ----------


# what is done to trained runs, and the settings that it heeds; None: any of them
LOOKS = dict(
    sample=("seed", "n_loops"), mechanism=(), score=("data", "max_rows"), attention=("out_dir",),
    export_hf=(), compare=("out_dir",), report=(), runs=None,
)  # fmt: skip
REREAD = ("mechanism", "attention")  # make a run's data again, by code of one's own that is named
# flags that do something only beside another one
BESIDE = dict(sort="runs", against="bench", match="match_params") | dict.fromkeys(
    ("prompt", "prompt_file", "system", "chat", "temperature", "top_k", "max_new_tokens",
     "num_samples", "first_weights"), "sample",
)  # fmt: skip
OF_TRAINING = ("preset", "study", "match_params", "jobs", "yes")  # beside the settings


@dataclasses.dataclass
class Call:
    """What was typed: `flags` {name: value} of all that are no settings, `axes` {setting: [its
    values]}, `doing` the flag that says what is done, None for training, and the line itself."""

    flags: dict
    axes: dict
    doing: str | None
    line: str
    draws: bool = True  # a run its curve

    def __getitem__(self, name):
        return self.flags[name]

    @property
    def changes(self):
        """{setting: its first value}, which is the only one of a run."""
        return {name: values[0] for name, values in self.axes.items()}

    @property
    def varied(self):
        """The settings with several values, of which every combination is trained."""
        return [name for name, values in self.axes.items() if len(values) > 1]


def read(arguments):
    """The Call of a command line; ValueError for flags that are unknown, that cannot work or that
    have no effect together."""
    parser = make_parser(full="--help" in arguments or "-h" in arguments)
    a, unknown = parser.parse_known_args(arguments)
    a = vars(a)
    if unknown:
        unknown_flag(unknown, ("help", *a, *(f.name for f in FIELDS)))
    given = (word.partition("=")[0] for word in arguments if word.startswith("--"))
    typed = [flag.replace("--no-", "--", 1) for flag in given]
    for flag in typed:
        if typed.count(flag) > 1:  # argparse would heed the last
            raise ValueError(f"{flag} is given twice; give it once, several values after it")
    axes = {f.name: a.pop(f.name) for f in FIELDS if f.name in a}
    for name, values in axes.items():
        if name == "data":
            axes[name] = [tuple(values)]
        elif not isinstance(values, list):
            axes[name] = [values]
    doing = [name for name in (*LOOKS, "resume", "bench") if a[name]]
    call = Call(a, axes, next(iter(doing), None), f"{console.COMMAND} {shlex.join(arguments)}")
    check_values(a | axes, axes)
    code = [*call.changes.get("data", ()), call.changes.get("loader", ""), a["study"] or ""]
    own_code.NAMED.update(path for path in code if path.endswith(".py"))
    if a["bench"] and a["dry_run"]:
        doing.append("dry_run")
    if len(doing) > 1:
        raise ValueError(f"--{doing[0]} and --{doing[1]} are two things to do; give one of them")
    check_together(call)
    return call


def unknown_flag(words, names):
    """Raise ValueError for what is left of a command line, with the flag that may be meant."""
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
        if name == "data":  # one list of sources
            (values,) = values
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


def is_given(value):
    """Whether a flag was given: a 0 as well, which equals False."""
    return value is not None and value is not False


def check_together(call):
    """Raise ValueError for flags without effect beside the others."""
    doing, varied = call.doing, call.varied
    if doing not in (None, "bench", "runs", "report"):  # a grid has a report, too
        check_runs(call[doing], doing)
    if doing in LOOKS:
        check_look(call)
    for name, other in BESIDE.items():
        if is_given(call[name]) and not is_given(call[other]):
            raise ValueError(f"--{name} has no effect without --{other}; give both")
    for name in OF_TRAINING:
        if doing == "resume" and is_given(call[name]):
            raise ValueError(f"--resume keeps the run's settings; leave out --{name}")
    if doing == "resume" and varied:
        raise ValueError(f"--resume is one run; give one value of --{varied[0]}")
    for name in ("out_dir", "name"):
        if doing == "bench" and name in call.axes:
            raise ValueError(f"--{name} has no effect with --bench, which writes nothing")
    if doing in (*LOOKS, "bench") and md.processes()[1] > 1:
        raise ValueError(f"--{doing} is done by one process; start it without torchrun")
    check_grid(call)


def check_runs(given, doing):
    """Raise ValueError for what is no run's folder; --attention is given several, --export_hf one
    and where to write."""
    folders = given if isinstance(given, list) else [given]
    for folder in folders[:1] if doing == "export_hf" else folders:
        checkpoints.check_run(folder, doing)


def check_look(call):
    """Raise ValueError for flags of training beside one that looks at trained runs."""
    doing = call.doing
    for name, values in call.axes.items() if doing != "runs" else ():  # which chooses by them
        paths = dict(data=values[0], loader=values).get(name, ())
        code = [path for path in paths if path.endswith(".py")]
        named = doing in REREAD and code and len(code) == len(paths)
        if name not in LOOKS[doing] and not named:
            raise ValueError(f"--{name} has no effect with --{doing}, which trains nothing")
        if len(values) > 1:
            raise ValueError(f"--{name} has several values, but --{doing} takes one; give one")
        for path in code:
            own_code.is_there(path, name)
    for name in (*OF_TRAINING, "dry_run"):
        if is_given(call[name]):
            raise ValueError(f"--{name} has no effect with --{doing}, which trains nothing")


def check_grid(call):
    """Raise ValueError for flags of a grid where there is none, or that make no sense."""
    jobs, match, wide = call["jobs"], call["match"], call["match_params"]
    if jobs is not None and not 1 <= jobs <= 1000:
        raise ValueError(f"--jobs {jobs!s:.40} does not work; give at least 1")
    if match not in (None, "total", "layers"):
        raise ValueError(f"--match {match:.40} is unknown; give total or layers")
    if wide is not None and "init_from" in call.axes:
        wider = "--match_params makes the model wider, and --init_from keeps that of its weights"
        raise ValueError(f"{wider}; give one of them")
    if wide is not None and wide > 10_000:
        few = "give a number of layers, 1 to 10,000"
        raise ValueError(f"--match_params {wide!s:.40} does not work; {few}")
    for name in ("jobs", "yes"):
        if call[name] and not (call["study"] or call.varied):
            raise ValueError(f"--{name} has no effect on a single run; it is for a grid")
