"""# Every flag

Every setting is a field of `ModelConfig` or `TrainConfig` and a flag of `train.py` of the same
name. The tables are made from the code when the site is built; `python train.py --help` prints
the same. In code: `minidepth.configs(preset, name=value, …)` for the presets `report` and
`laptop`, `minidepth_lab.keep.registry.configs(preset, name=value, …)` for all of them.

Without `--preset` the command takes `tasks` if `--data` is a depth task, the study's own preset
with `--study`, `report` if it finds a CUDA GPU and its data, and `laptop` otherwise; its first line
says which and why. What presets change stands [below](#what-presets-change). Several values of a
flag train every combination: `--n_layers 1 2 4 --seed 0 1 2`.
"""

import argparse
import dataclasses

from minidepth_lab import tasks
from minidepth_lab.base import configs
from minidepth_lab.command import flags, verdict
from minidepth_lab.keep import registry
from minidepth_lab.tasks.base.sizes import as_text, sizes_of

print(__doc__)
PRESETS = {name: registry.values_of(name) for name in registry.offering("preset")}
PRESETS = configs.PRESETS | PRESETS
ACTIONS = flags.make_parser(full=True)._actions
FLAGS = {name for action in ACTIONS for name in action.option_strings}


def shown(value):
    if value in (None, (), ""):
        return "unset"
    text = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return f"`{text}`" if len(text) < 24 else text


def limits(f):
    low, high, choices = (f.metadata[key] for key in ("low", "high", "choices"))
    if choices:
        return " ".join(f"`{choice}`" for choice in choices)
    if f.type is bool:
        return f"off: `--no-{f.name}`"
    if low is None:
        return ""
    return f"from {low:g}" + (f" to {high}" if high != 2**53 else "")


for title, kind in (("Model", configs.ModelConfig), ("Data and training", configs.TrainConfig)):
    print(f"## {title}\n")
    print("| flag | what | values | default |\n|---|---|---|---|")
    for f in dataclasses.fields(kind):
        assert f"--{f.name}" in FLAGS
        print(f"| `--{f.name}` | {f.metadata['help']} | {limits(f)} | {shown(f.default)} |")
    print()


def flags_of(values):
    """Settings as flags: `--n_heads 4`, `--no-tie_weights`"""
    texts = []
    for name, value in values.items():
        flag = f"--{name} {shown(value).strip('`')}"
        if name == "data":  # several sources are several words
            flag = f"--data {' '.join(value)}"
        if isinstance(value, bool):
            flag = f"--{name}" if value else f"--no-{name}"
        texts.append(f"`{flag}`")
    return " ".join(texts)


print("## What presets change\n")
print("Each preset as the flags that differ from the defaults above.\n")
for name, values in PRESETS.items():
    print(f"`--preset {name}`\n:   {flags_of(values)}\n")
print("Of the preset `tasks`, a task changes further:\n")
print("| task | settings |\n|---|---|")
for name, task in tasks.TASKS.items():
    print(f"| `{name}` | {flags_of(task.settings)} |")

print("""
## Sizes

`--sizes NAME=VALUE,NAME=VALUE` sets what only one depth task or one loader has. Several values of
one name that belong to one run are joined by `+`; several values of the flag are several runs:

| typed | trains |
|---|---|
| `--sizes hops=1+2,length=48` | one model on one hop and two |
| `--sizes hops=1 hops=2` | two models, a grid |

A preset's and a task's sizes stay unless the flag names them. An unknown name is an error. All
sizes that were used, including those left at their defaults, are in the run's
[config.json](run_folder.md#configjson).

| of | sizes and their defaults, of tasks those of the preset `tasks` |
|---|---|""")


def sizes(known):
    return ", ".join(f"`{size}`" for size in as_text(known))


for name, task in tasks.TASKS.items():
    known = sizes_of(task.settings.get("sizes", ()), task.sizes, name)
    print(f"| `--data {name}` | {sizes(known)} |")
for name in registry.offering("loader"):
    if known := getattr(registry.loader(name), "SIZES", None):
        print(f"| `--loader {name}` | {sizes(known)} |")

print("""
A task or a loader of your own brings [its own sizes](../how-to/own_task_and_study.md).

## Flags that are gone

Each of these served one task or one study, and is a size of it now:

| before | now |
|---|---|
| `--hops 1 2` | `--sizes hops=1 hops=2`: a run for each |
| `--hops 1,2` | `--sizes hops=1+2`: one run on both |
| `--hints 0.75` | `--sizes hints=0.75` |
| `--answer direct` | `--loader thinking --sizes answer=direct` |
| `--problem_families lookup,chain` | `--loader thinking --sizes families=lookup+chain` |
| `--problem_modulus 5` | `--loader thinking --sizes modulus=5` |
| `--curriculum 0.1` | `--loader thinking --sizes curriculum=0.1` |
| `--ffn_dropout 0.3` | `--residual_dropout 0.3`, which acts on what attention adds as well |
| `--stride 64` | `--loader llmini --sizes stride=64` |
| `--val_packing pad` | `--loader packing --sizes val_packing=pad` |

The presets `thinking`, `llmini-a`, `llmini-b` and `llmini-c` choose their loaders themselves: with
them `--sizes` is enough.
""")

print("""
## What else the command does

These flags are not settings of a run. They choose what the command does, or how it runs a grid.
""")

settings = {f"--{f.name}" for kind in (configs.ModelConfig, configs.TrainConfig)
            for f in dataclasses.fields(kind)}  # fmt: skip


def print_others(parser):
    """A table of the flags that are no settings."""
    print("| flag | what |\n|---|---|")
    for action in parser._actions:
        if settings & set(action.option_strings) or action.help == argparse.SUPPRESS:
            continue
        value = action.metavar if isinstance(action.metavar, str) else ""
        value = " ".join(action.metavar) if isinstance(action.metavar, tuple) else value
        flag = f"{action.option_strings[-1]} {value}".strip()
        print(f"| `{flag}` | {action.help % vars(action)} |")


print_others(flags.make_parser(full=True))
print("""
## Flags of a verdict

With [`--verdict`](../how-to/verdict.md) these are different or new. `--compare` of two groups of
runs takes `--margin X` and `--json`.
""")
print_others(verdict.make_parser())
