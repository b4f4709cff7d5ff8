"""From flags to the runs of a grid: every combination of the values given, or a study's rows."""

import dataclasses
import itertools

from minidepth_lab.base import configs, console
from minidepth_lab.keep import registry
from minidepth_lab.measure.cell import shown
from minidepth_lab.studies import depth
from minidepth_lab.sweep import pool
from minidepth_lab.tasks.base import own_code
from minidepth_lab.tasks.base.own_code import mistakes_in


def planned(a, preset, axes):
    """[(labels, settings)] of all runs, and the study whose rows they are, or None. `a` are the
    command's flags, `axes` {setting: its values}; ValueError for what makes no grid."""
    for name, values in axes.items():
        twice = [value for i, value in enumerate(values) if value in values[:i]]
        if twice:
            raise ValueError(f"--{name} has {twice[0]} twice; give each value once")
    varied = [name for name, values in axes.items() if len(values) > 1]
    if a["bench"] and (varied or a["study"]):
        raise ValueError("several values of a flag make a grid, but --bench does one")
    if a["study"]:
        return study_runs(a, preset, axes, varied), registry.study(a["study"])
    made = []
    for values in itertools.product(*axes.values()):
        settings = dict(zip(axes, values))
        made.append(({name: settings[name] for name in varied}, settings))
    if a["match_params"] is not None:
        match(preset, made, a["match_params"], a["match"] or "total")
    return made, None


def study_runs(a, preset, axes, varied):
    """[(labels, settings)] of a study's rows, each with every seed."""
    study = registry.study(a["study"])
    if not hasattr(study, "rows"):
        known = ", ".join(registry.offering("study"))
        raise ValueError(f"study {a['study']!r} has no rows to train; choose from {known}")
    if others := [name for name in varied if name not in ("seed", "sizes")]:
        raise ValueError(f"a study varies seed and sizes alone; give one value of --{others[0]}")
    if a["match_params"] is not None:
        raise ValueError("--match_params has no effect with --study, whose rows have their widths")
    settings = {name: values[0] for name, values in axes.items() if name != "seed"}
    made = []
    for own in [dict(sizes=sizes) for sizes in axes.get("sizes", ())] or [{}]:
        rows = own_rows(a["study"], study.rows, preset, settings | own)
        check_data(a["study"], study, preset, settings | own, rows)
        more = own if "sizes" in varied else {}
        for (model, row), seed in itertools.product(rows.items(), axes.get("seed", [0])):
            labels = dict(model=console.one_line(model), **more, seed=seed)
            made.append((labels, row | dict(seed=seed)))
    return made


def own_rows(name, rows, preset, settings):
    """rows(preset, settings) of a study; ValueError if that is no {name: settings}, or for a
    setting of the model that the rows leave nothing of."""
    with mistakes_in(name, "study", "has rows() that failed"):
        made = rows(preset, dict(settings))
    if not isinstance(made, dict) or {type(row) for row in made.values()} != {dict}:
        raise ValueError(f"study {name}: rows() must give {{name: settings}}; it gave {made!r:.60}")
    for row in made.values():
        own_code.name_those_of(row)
    for one, other in itertools.combinations(made, 2):
        if made[one] == made[other]:  # they would train in one folder
            same = f"{one!r} and {other!r} are the same settings"
            raise ValueError(f"study {name}: {same}; leave out the flag that makes them so")
    for field in dataclasses.fields(configs.ModelConfig):
        given = settings.get(field.name)
        if given is not None and all(row.get(field.name) != given for row in made.values()):
            raise ValueError(f"--{field.name} has no effect with --study {name}, which sets it")
    return made


def check_data(name, study, preset, settings, rows):
    """ValueError for rows that set sizes of a task or loader that none of the study's presets has:
    else it would be told of sizes that nobody typed."""
    presets = getattr(study, "PRESETS", {})
    if not presets or name.endswith(".py"):  # one's own may be about any task
        return
    typed = {key: settings[key] for key in ("data", "loader") if key in settings}
    _, t = registry.configs(preset, **typed)
    own = [its.get("loader") or tuple(its.get("data", ())) for its in presets.values()]
    if (t.loader or t.data) in own:
        return
    for row in rows.values():
        of_row = row.get("sizes") != settings.get("sizes")
        if of_row and all(row.get(key) == settings.get(key) for key in ("data", "loader")):
            flags = " and ".join(f"--{key}" for key in typed) or "--preset"
            whose = f"--study {name} has runs of its own preset, {' or '.join(presets)}"
            raise ValueError(
                f"{whose}, and does not work with {t.loader or t.data[0]}; leave out {flags}"
            )


def match(preset, made, n_layers, part):
    """Give the settings the width that has the parameters of n_layers; seeds share one."""
    widths = {}
    for _, settings in made:
        same = repr([(name, value) for name, value in settings.items() if name != "seed"])
        if same not in widths:
            widths[same] = depth.matched_width(preset, settings, n_layers, part)
        settings |= widths[same]


def train_planned(a, preset, axes, made, study, command):
    """The grid's exit code; `command` is what was typed."""
    given = {name: values[0] for name, values in axes.items() if name != "seed"}
    if len(axes.get("sizes", ())) > 1:
        given["sizes"] = [shown(sizes) for sizes in axes["sizes"]]
    how = a["jobs"] or 1, a["yes"], a["dry_run"]
    return pool.train_sweep(preset, made, command, *how, study, given)
