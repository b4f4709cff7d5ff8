"""The flags of a verdict, and of two groups of runs compared by the same rule.

    python train.py --verdict icqa --budget 20m
    python train.py --verdict my_task.py --sizes jumps=3 --n_layers 6 --jobs 2
    python train.py --compare "runs/new/*" "runs/old/*" --json

`--verdict` answers one question, does depth help on this source, and says when it cannot. What a
run's settings are by other flags may be typed beside it. `--compare` of two groups, folders of runs
or patterns of them in quotes, ends with 0 to keep the first, 1 to discard it, 3 for undecided.
"""

import argparse
import dataclasses
import glob
import json
import os
import statistics
from collections.abc import Callable

import minidepth as md
from minidepth_lab.base import configs, console
from minidepth_lab.command import flags
from minidepth_lab.measure import results
from minidepth_lab.measure import verdict as rule
from minidepth_lab.measure.cell import OF_DATA

# settings that a verdict chooses itself
CHOSEN = ("data", "n_layers", "n_loops", "seed", "epochs", "out_dir", "name", "loop_keeps")
# what runs of a group have in common, and what two groups are measured on
SETTINGS = [
    field.name
    for kind in (configs.ModelConfig, configs.TrainConfig)
    for field in dataclasses.fields(kind)
    if field.name not in ("seed", "out_dir", "name", "device", "report_to")
]
MEASURED_ON = (*OF_DATA, "block_size", "eval_problems", "eval_blocks")
CODES = {rule.KEEP: 0, rule.DISCARD: 1, rule.UNDECIDED: 3}


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise ValueError(f"{message}; see {console.COMMAND} --verdict --help")


def typed(field: dataclasses.Field) -> dict:
    """How argparse reads a setting."""
    options = dict(default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    if field.type is bool:
        return options | dict(action=argparse.BooleanOptionalAction)

    return options | dict(type=flags.KINDS.get(field.name, field.type), metavar="X")


def make_parser() -> argparse.ArgumentParser:
    """The flags of --verdict."""
    parser = Parser(prog=console.COMMAND.split()[-1], allow_abbrev=False, description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    source = "a task, my_task.py, my.jsonl, rg:NAME, a data set of the hub, or embedded"
    # --verdict --help is asked for by name, without a source
    parser.add_argument("--verdict", metavar="SOURCE", nargs="?", required=True, help=source)
    parser.add_argument("--n_layers", type=int, default=4, help="of the deep arm (4)")
    margin = "the difference that matters, of accuracy, or in nats (0.05)"
    parser.add_argument("--margin", type=float, default=0.05, metavar="X", help=margin)
    budget = "fit seeds, steps and width into a time: 20m, 1h30m"
    parser.add_argument("--budget", metavar="TIME", help=budget)
    looks = ", ".join(map(str, rule.LOOKS))
    parser.add_argument("--seeds", type=int, default=rule.LOOKS[-1], help=f"at most: {looks} (20)")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="runs at a time (1)")
    parser.add_argument("--preset", help="tasks for a depth task, else laptop")
    parser.add_argument("--out_dir", default="verdicts", help="folder of all verdicts (verdicts)")
    parser.add_argument("--name", default="", help="of the folder in it (made from the source)")
    repeats = "judge a test that training repeats, too"
    parser.add_argument("--repeats", action="store_true", help=repeats)
    parser.add_argument("--dry_run", action="store_true", help="say what it takes, train nothing")
    for kind in (configs.ModelConfig, configs.TrainConfig):
        for field in dataclasses.fields(kind):
            if field.name not in CHOSEN:
                parser.add_argument(f"--{field.name}", **typed(field))
    return parser


def main(arguments: list[str], command: Callable | None = None) -> int:
    """Do what the flags say; the exit code: 0 for a verdict of any kind, 130 after Ctrl-C. By
    `command`, arguments → exit code, runs go in this process, one at a time. ValueError for what a
    user can put right."""
    if "--compare" in arguments:
        return compare(arguments)
    if md.processes()[1] > 1:
        raise ValueError("--verdict starts its runs itself; start it without torchrun")
    typed_flags = [word.partition("=")[0] for word in arguments if word.startswith("--")]
    for flag in typed_flags:
        if typed_flags.count(flag) > 1:  # argparse would heed the last
            raise ValueError(f"{flag} is given twice; give it once")
    a = vars(make_parser().parse_args(arguments))
    source = os.path.expanduser(a.pop("verdict") or "")
    if not source.strip():
        raise ValueError("--verdict names no SOURCE; give a task, a file or a data set's name")
    if not a["preset"]:
        del a["preset"]
    if a["budget"] is None:
        del a["budget"]
    from minidepth_lab.sweep import verdict
    from minidepth_lab.sweep.verdict_runs import Stopped

    try:
        made = verdict.verdict(source, command=command, **a)
    except Stopped as stopped:
        console.complain("interrupted; the same command goes on")
        return 128 + stopped.args[0]
    if made is None:
        return 0
    head, *rest = made.text().split("\n")
    print(f"verdict  {head}")
    for line in rest:
        print(f"         {line}")
    runs = console.plural(len(made.runs), "run")
    print(f"wrote    {made.folder}: verdict.html, verdict.json, verdict.txt, {runs}")
    return 0


# ---------- two groups of runs ----------


def wants_groups(arguments: list[str]) -> bool:
    """Whether a --compare is of groups: it says --json or --margin, or one of its values is a
    pattern, or a folder that is no run."""
    if "--compare" not in arguments:
        return False
    if "--json" in arguments or "--margin" in arguments:
        return True
    rest = arguments[arguments.index("--compare") + 1 :]
    values = []
    for word in rest:
        if word.startswith("--"):
            break
        values.append(word)
    runs = [value for value in values if os.path.exists(os.path.join(value, "config.json"))]
    if any(glob.has_magic(value) for value in values if value not in runs):
        return True
    return len(values) == 2 and not runs and all(map(folders_of, values))


def folders_of(group: str) -> list[str]:
    """The runs of a group: a pattern's, a run's own folder, or all that lie in a folder."""
    if os.path.exists(os.path.join(group, "config.json")):
        return [group]
    found = glob.glob(group) if not os.path.isdir(group) else glob.glob(os.path.join(group, "*"))
    return sorted(path for path in found if os.path.exists(os.path.join(path, "config.json")))


def scores_of(group: str) -> tuple[dict, list]:
    """({seed: result()}, [result() of each run]) of a group's finished runs; ValueError where there
    are none, or two of the same seed."""
    rows = [results.result(folder) for folder in folders_of(group)]
    if not rows:
        raise ValueError(f"--compare {group}: no finished run is there; give a folder or a pattern")
    seeds = {}
    for row in rows:
        if row["seed"] in seeds:
            twice = f"--compare {group}: seed {row['seed']} is there twice"
            raise ValueError(f"{twice}; a group is one setting, with a run for each seed")
        seeds[row["seed"]] = row
    for name in SETTINGS:
        if row := next((row for row in rows if row.get(name) != rows[0].get(name)), None):
            two = f"{rows[0].get(name)!s:.40} and {row.get(name)!s:.40}"
            raise ValueError(f"--compare {group}: {name} is {two}; a group is one setting")
    return seeds, rows


def compare(arguments: list[str]) -> int:
    """--compare NEW OLD of two groups; the exit code 0 to keep NEW, 1 to discard it, 3."""
    parser = Parser(prog=console.COMMAND.split()[-1], allow_abbrev=False)
    parser.add_argument("--compare", nargs="+", metavar="GROUP")
    parser.add_argument("--margin", type=float, default=0.05)
    parser.add_argument("--json", action="store_true")
    a = parser.parse_args(arguments)
    if len(a.compare) != 2:
        n = len(a.compare)
        quoted = "quote a pattern, so that the shell leaves it alone"
        raise ValueError(f"--compare of groups takes two, NEW OLD; it was given {n}; {quoted}")
    if not 0 < a.margin < 1:
        raise ValueError(f"--margin {a.margin:g} does not work; give a number from 0 to 1")
    (new, new_rows), (old, old_rows) = (scores_of(group) for group in a.compare)
    common = sorted(new.keys() & old.keys())
    if not common:
        raise ValueError("--compare: the groups have no seed in common, and are compared by seed")
    rows = [*new_rows, *old_rows]
    for name in MEASURED_ON:
        if new_rows[0].get(name) != old_rows[0].get(name):
            two = f"{new_rows[0].get(name)!s:.40} and {old_rows[0].get(name)!s:.40}"
            console.complain(f"note: the groups differ in {name}, {two}: are they asked the same?")
    metric = "accuracy" if all("accuracy" in row for row in rows) else "val_loss"
    if metric == "val_loss" and results.words_differ(rows):
        metric = "val_loss_per_byte"
        if not all(metric in row for row in rows):
            raise ValueError(f"--compare: {results.WORDS_DIFFER}, which these runs lack")
    sign = 1 if metric == "accuracy" else -1
    ours, theirs = ([sign * each[seed][metric] for seed in common] for each in (new, old))
    answers = [len(row["answers"]) for row in rows if row.get("answers")]
    of_problems = min(answers) if answers and metric == "accuracy" else None
    found = rule.judge_groups(ours, theirs, a.margin, of_problems)
    gap = found.differences["new - old"]
    said = dict(
        decision=found.decision, why=found.why, metric=metric, seeds=common, margin=a.margin,
        new=statistics.mean(ours) * sign, old=statistics.mean(theirs) * sign,
        difference=gap.mean, low=gap.low if gap.n > 1 else None,
        high=gap.high if gap.n > 1 else None, more_seeds=found.more, rule=rule.RULE,
        exit_status=CODES[found.decision],
    )  # fmt: skip
    if a.json:
        print(json.dumps(said, indent=1))
        return CODES[found.decision]
    decision = found.decision
    if decision == rule.UNDECIDED:
        decision += rule.more_words(found.more)
    better = "higher" if metric == "accuracy" else "lower"
    print(
        f"{decision}: {metric} {said['new']:.4g} against {said['old']:.4g}, {better} is better; "
        f"difference {gap.mean:.4f} [{gap.low:.4f}, {gap.high:.4f}], {len(common)} seeds; "
        f"{found.why}"
    )
    return CODES[found.decision]
