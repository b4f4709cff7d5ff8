"""# Every flag

Every setting is a field of `ModelConfig` or `TrainConfig` and a flag of `train.py` of the same
name. The tables are made from the code when the site is built; `python train.py --help` prints
the same. In code: `minidepth.configs(preset, name=value, …)`.

Without `--preset` the command takes `report` where it finds a CUDA GPU, `tasks` where `--data` is
a depth task, and else `laptop`, and its first line says which and why. The last column
has what presets change. Several values of a flag train every combination:
`--n_layers 1 2 4 --seed 0 1 2`.
"""

import dataclasses

import minidepth as md
import train

print(__doc__)
FLAGS = {name for action in train.make_parser()._actions for name in action.option_strings}


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
    return f"from {low:g}" + (f" to {high}" if high != float("inf") else "")


for title, kind in (("Model", md.ModelConfig), ("Data and training", md.TrainConfig)):
    print(f"## {title}\n")
    print("| flag | what | values | default | presets |\n|---|---|---|---|---|")
    for f in dataclasses.fields(kind):
        assert f"--{f.name}" in FLAGS
        others = [f"{name} {shown(p[f.name])}" for name, p in md.PRESETS.items() if f.name in p]
        cells = [f"`--{f.name}`", f.metadata["help"], limits(f), shown(f.default)]
        print(f"| {' | '.join([*cells, '<br>'.join(others)])} |")
    print()
print("Of the preset `tasks`, a task changes further:\n")
print("| task | settings |\n|---|---|")
for task, settings in md.TASK_SETTINGS.items():
    text = ", ".join(f"`--{key} {shown(value).strip('`')}`" for key, value in settings.items())
    print(f"| `{task}` | {text} |")

print("""
## What else the command does

These flags are not settings of a run. They choose what is done, or how a grid is run.
""")

settings = {f"--{f.name}" for kind in (md.ModelConfig, md.TrainConfig)
            for f in dataclasses.fields(kind)}  # fmt: skip
print("| flag | what |\n|---|---|")
for action in train.make_parser()._actions:
    if not settings & set(action.option_strings):
        value = action.metavar if isinstance(action.metavar, str) else ""
        value = " ".join(action.metavar) if isinstance(action.metavar, tuple) else value
        flag = f"{action.option_strings[-1]} {value}".strip()
        print(f"| `{flag}` | {action.help % vars(action)} |")
