"""Train a minidepth model: python train.py --n_layers 12. Every flag: python train.py --help."""

import argparse
import contextlib
import dataclasses
import os
import shlex
import sys

try:  # this takes seconds, in which one may change one's mind
    import torch

    import minidepth as md
except KeyboardInterrupt:
    print("train.py: interrupted", file=sys.stderr)
    sys.exit(130)

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "docs"))  # the studies: imported where they are used
FIELDS = [f for kind in (md.ModelConfig, md.TrainConfig) for f in dataclasses.fields(kind)]


# ---------- flags: one for each field of the configs, and those that choose what is done ----------


class Parser(argparse.ArgumentParser):
    def error(self, message):
        from minidepth_lab.check import one_line

        self.exit(2, f"train.py: {one_line(message)}; see python train.py --help\n")


def number(text, kind=float, what="a number"):
    """'0.1' → 0.1"""
    try:
        return kind(text)
    except ValueError:
        apart = "; several values stand apart: 1 2" if "," in text else ""
        raise argparse.ArgumentTypeError(f"{text!r:.40} is not {what}{apart}") from None


def whole(text):
    """'12' → 12"""
    return number(text, int, "a whole number")


def several(text):
    """'2,3' → (2, 3), '2' → (2,)"""
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        wanted = "is not a whole number, or several: 8,4,2"
        raise argparse.ArgumentTypeError(f"{text!r} {wanted}") from None


def heads(text):
    """'8,4' → (8, 4), '8' → 8"""
    found = several(text)
    return found if len(found) > 1 else found[0]


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


# how one value of a flag is read, where its type does not say
KINDS = dict(n_heads=heads, problem_steps=several, warmup_steps=steps_or_share, sizes=named)
# shells leave the ~ of --out_dir=~/runs alone, while config.json means the home folder by it
KINDS |= dict.fromkeys(("out_dir", "name", "tokenizer", "loader"), os.path.expanduser)
ONCE = ("out_dir", "name", "device")  # flags that make no grid
WRITTEN = ("curve.png", "log.jsonl", "model.safetensors")  # of a run, what one looks at
SMALLER = "give a smaller --batch_size, --block_size, --d_model or --sizes"
TRAINED = ("sample", "mechanism", "score", "attention", "export_hf")  # flags about trained runs


def shown(value):
    """A setting as it is typed: (8, 4) → 8,4"""
    if isinstance(value, tuple):
        return ",".join(str(part) for part in value)
    return str(value)


def add_field(group, f):
    """The flag of a field of a config."""
    default = "unset" if f.default in (None, "", ()) else shown(f.default)
    if f.name in md.PRESETS["laptop"]:
        default += f" [{shown(md.PRESETS['laptop'][f.name])}]"
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
        if f.name not in ONCE:
            options["nargs"] = "+"
    group.add_argument(f"--{f.name}", **options)


def make_parser(full=False):
    """The flags; `full` names every study and preset, for which all studies are read."""
    studies = presets = "a study's name"
    if full:
        studies, presets = (", ".join(finder().offering(what)) for what in ("study", "preset"))
    parser = Parser(
        description="Train a Transformer of any depth and see what the depth did.",
        epilog="Defaults are the report's; the laptop preset's own are in brackets.",
        allow_abbrev=False,
    )
    parser.register("type", int, whole)  # how all flags of these types are read
    parser.register("type", float, number)
    parser.register("type", None, os.path.expanduser)  # of those that name a file or a folder
    presets = f"auto (report with CUDA, else laptop), report, laptop, or of {presets}"
    parser.add_argument("--preset", help=presets)
    for title, kind in (("model", md.ModelConfig), ("data and training", md.TrainConfig)):
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
    do.add_argument("--dry_run", action="store_true", help="print the facts, train nothing")
    do.add_argument("--bench", action="store_true", help="time training and generation")
    do.add_argument(
        "--against", metavar="gpt2", help="of --bench: the same for transformers' GPT-2"
    )
    do.add_argument("--resume", metavar="RUN_DIR", help="go on with a run that was stopped")
    do.add_argument("--sample", metavar="RUN_DIR", help="let a trained model answer --prompt")
    do.add_argument("--mechanism", metavar="RUN_DIR", help="show which heads solve a depth task")
    do.add_argument("--prompt", type=str, metavar="TEXT", help="the user's turn for --sample")
    do.add_argument("--temperature", type=float, metavar="X", help="of --sample (0)")
    do.add_argument("--max_new_tokens", type=int, metavar="X", help="of --sample (256)")
    do.add_argument("--score", metavar="RUN_DIR", help="answer multiple-choice rows of --data")
    do.add_argument("--attention", nargs="+", metavar="RUN_DIR", help="measure and draw attention")
    gpt2 = "write as GPT-2, if it has a feed-forward part (--d_ff), as laptop has not"
    do.add_argument("--export_hf", nargs=2, metavar=("RUN_DIR", "OUT_DIR"), help=gpt2)
    return parser


# ---------- from flags to settings ----------


def finder():
    """docs/minidepth_lab/registry.py, which knows every study and task."""
    from minidepth_lab import registry

    return registry


def configs(preset, changes):
    """(ModelConfig, TrainConfig); the studies are asked where the main job's own do not do."""
    if preset in ("report", "laptop") and not changes.keys() & {"data", "sizes", "loader"}:
        return md.configs(preset, **changes)
    return finder().configs(preset, **changes)


def load_data(m, t, tokenizer=None):
    """The Data of a TrainConfig; the studies are asked if it is more than embedded problems."""
    if (t.data, t.tokenizer, t.loader, t.sizes) == (("embedded",), "embedded", "", ()):
        return md.load_data(t, m.block_size, tokenizer)
    return finder().data_of(t, m.block_size, tokenizer)


def pick_preset(name, data=(), study=None):
    """The preset's name, and why it was taken."""
    if name != "auto":
        return name, "as asked"
    if study and (own := finder().preset_of(study)):
        return own, f"the study {study} is about it"
    if data and data[0] not in ("embedded", "") and finder().task(data[0]):
        return "tasks", f"{data[0]} is a depth task"
    if torch.cuda.is_available():
        return "report", f"{torch.cuda.device_count()} CUDA GPU found"
    return "laptop", "no CUDA GPU found"


# ---------- what the command does ----------


def show_answers(run, problems):
    """One held-out problem with the model's answer, and the accuracy over all asked."""
    p = max(problems, key=lambda problem: problem.get("steps", 0))
    text = md.answer_texts(run.model, run.tokenizer, [p])[0]
    from minidepth_lab.check import visible

    print(visible(f"\nheld-out problem: {p['messages'][-1]['content']}\nmodel: {text.strip()}"))
    print(visible(f"right answer: {p['answer']}\n"))
    last = run.log[-1]
    guessing = f", guessing {last['guess']:.3f}" if "guess" in last else ""
    n = f"{len(problems)} held-out problems"
    print(f"answer accuracy {last['accuracy']:.3f} on {n}{guessing}")


def run_training(m, t, resume=False):
    """Load the data, print the facts, train, draw, answer; the exit code."""
    from minidepth_lab import check, compiling, curve, processes

    first = md.processes()[0] == 0  # under torchrun one process speaks
    folder = os.path.join(t.out_dir, t.name)
    if not resume:  # train() asks this too, but only after the data has been loaded for it
        md.check_new(folder)
    elif not any(os.path.lexists(os.path.join(folder, name)) for name in md.STATES):
        from minidepth_lab.sweep.cell import is_finished

        if is_finished(m, t):  # kept without its checkpoints, or it would begin anew
            raise ValueError(f"{folder} is finished: {t.steps} of {t.steps} steps are done")
    if t.compile:
        compiling.check(t)
    data = load_data(m, t, md.saved_tokenizer(folder) if resume else None)
    m, t = md.complete_configs(m, t, data)
    if first:
        print_facts(m, t, data)
    with processes.connected(t), processes.noted_signals(twice=True) as noted:
        command = shlex.join(["python", os.path.basename(sys.argv[0]), *sys.argv[1:]])
        run = md.train(m, t, data, resume, command, stop=lambda: bool(noted))
    if first and run.log:
        with check.drawn("curve.png"):
            curve.draw_curve(run, t)
    if first and run.finished:
        if data.fresh:
            print(f"accuracy {run.log[-1]['accuracy']:.3f} on the test split")
        if problems := data.problems[: t.eval_problems]:
            show_answers(run, problems)
        written = [name for name in WRITTEN if os.path.exists(run.folder.file(name))]
        print(f"wrote {run.dir}: {', '.join(written)}")
    return 0 if run.finished else 130


def print_facts(m, t, data=None):
    """What follows from the settings, a line each."""
    from minidepth_lab import facts
    from minidepth_lab.check import visible

    print(visible("\n".join(facts.facts(m, t, data))))


def try_out(m, t):
    """Print the facts of a run that is not trained, with those of its data if none of it is to
    come from a hub."""
    from minidepth_lab import check, sources

    if md.processes()[0]:
        return  # under torchrun one process speaks
    md.check_new(os.path.join(t.out_dir, t.name))
    check.files(t)
    if t.compile:
        from minidepth_lab import compiling

        compiling.check(t)
    if sources.away(t):
        if t.loader:
            check.its_loader(t)
        return print_facts(m, t)
    data = load_data(m, t)
    print_facts(*md.complete_configs(m, t, data), data)


def resume(run_dir, changes, dry_run=False):
    """Go on with a run, on another device if need be. Code of one's own that made its data is
    executed if it is named again."""
    from minidepth_lab import check, processes

    m, t = md.read_config(run_dir)
    for name, value in changes.items():
        kept = not hasattr(t, name) or name in ("out_dir", "name")  # of the model, or its place
        told = t if kept else dataclasses.replace(t, **{name: value})
        if kept or md.settings(m, told) != md.settings(m, t):  # a device may be another one
            raise ValueError(f"--resume keeps the run's settings; leave out --{name}")
        t = told.validate()
    folder, t.name = os.path.split(os.path.normpath(run_dir))
    t.out_dir = folder or "."
    if md.processes()[0] == 0:
        print(f"resume {run_dir}")
    processes.check(t, resumed=True)
    check.enough_memory(m, t)
    if dry_run:
        return print_facts(m, t)
    return run_training(m, t, resume=True)


def run_command(arguments):
    """Do what the flags say; the exit code, None for 0."""
    arguments = sys.argv[1:] if arguments is None else arguments
    full = "--help" in arguments or "-h" in arguments
    parser = make_parser(full)
    a, unknown = parser.parse_known_args(arguments)
    a = vars(a)
    from minidepth_lab import check, own_code, processes

    if unknown:
        known = [f"--{name}" for name in ("help", *a, *(f.name for f in FIELDS))]
        known += [f"--no-{f.name}" for f in FIELDS if f.type is bool]
        check.unknown(unknown, known)
    check.once(arguments)
    # every flag's values: one each for a run, several for a grid
    axes = {f.name: a[f.name] for f in FIELDS if f.name in a}
    for name, values in axes.items():
        if name == "data":
            axes[name] = [tuple(values)]
        elif not isinstance(values, list):
            axes[name] = [values]
    changes = {name: values[0] for name, values in axes.items()}
    check.flags(a, axes)
    processes.launched()
    code = [*changes.get("data", ()), changes.get("loader", ""), a["study"] or ""]
    if any(path.endswith(".py") for path in code):
        own_code.NAMED.update(code)
    if any(a[name] for name in TRAINED):
        from minidepth_lab import trained

        return trained.look(a, changes)
    if a["resume"]:
        return resume(a["resume"], changes, a["dry_run"])
    preset, why = pick_preset(a["preset"] or "auto", changes.get("data", ()), a["study"])
    if md.processes()[0] == 0:
        print(f"preset {preset}: {why}")
    if "steps" in axes:
        most = max(axes.get("epochs") or [configs(preset, {})[1].epochs])
        if most:
            raise ValueError(f"--steps has no effect with --epochs {most}; give --epochs 0 too")
    if a["study"] or a["match_params"] is not None or any(len(v) > 1 for v in axes.values()):
        from minidepth_lab.sweep import plan

        cells, study = plan.planned(a, preset, axes)
        if study or len(cells) > 1:
            return plan.train_planned(a, preset, axes, cells, study)
        changes = cells[0][1]
    m, t = configs(preset, changes)
    processes.check(t)
    check.enough_memory(m, t)
    if a["bench"]:
        from minidepth_lab import bench

        return bench.show_bench(m, t, a["against"])
    from minidepth_lab.sweep.cell import run_name

    t.name = t.name or run_name(preset, changes)
    if a["dry_run"]:
        return try_out(m, t)
    return run_training(m, t)


def main(arguments=None):
    """The exit code: 2 with one line on stderr for what a user can put right, 1 for divergence."""
    with contextlib.suppress(AttributeError):  # not a real stream in a notebook
        sys.stdout.reconfigure(line_buffering=True, errors="backslashreplace")
    try:
        return run_command(arguments) or 0
    except ValueError as error:
        message, code = error, 2
    except OSError as error:  # a full disk, a folder that may not be written
        where = f"{error.filename}: " if error.filename else ""
        message, code = f"{where}{error.strerror or error}; what was saved before is whole", 2
    except md.Diverged as error:
        message, code = error, 1
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and "memory" not in str(error):
            raise
        message, code = f"the memory is full: {error or 'nothing more is known'}; {SMALLER}", 2
    except KeyboardInterrupt:
        message, code = "interrupted", 130
    from minidepth_lab.check import one_line

    print(f"train.py: {one_line(message)}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
