"""A verdict as text to paste, as a figure, and as verdict.html, one page that opens offline."""

import html
import json
import math
import os
import shlex
import time
from typing import Any

import torch

from minidepth_lab.base import console, machine
from minidepth_lab.keep import checkpoints
from minidepth_lab.measure import verdict as rule
from minidepth_lab.show import figures, report, verdict_map

TEMPLATE = """<h2>Verdict</h2>
<pre class="verdict">{text}</pre>
<h2>The arms</h2>
{figure}
<p class="note">Points are runs; the bar is the mean with its interval of {level:.1%} at one look,
the rule's own. {metric}</p>
{arms}
<h2>The differences</h2>
{differences}
<p>{rule}</p>
<h2>What would change the verdict</h2>
<ul>{change}</ul>
<h2>Curves</h2>
{curves}
<h2>What was tuned</h2>
<p class="note">Mean score of the seeds {tuning_seeds}, which are not among those reported. The
chosen rate of each arm stands in the table of runs; equal time uses the rate of equal steps.</p>
{tuned}
<h2>The looks</h2>
<pre>{looks}</pre>
<h2>The runs</h2>
{runs}
<h2>To paste</h2>
<textarea readonly rows="24" style="width:100%">{paste}</textarea>
<p class="note">{made}</p>
"""


COLORS = {arm: color for arm, (_, color, _) in verdict_map.ARMS.items()}


def names_of(made: Any) -> dict[str, str]:
    """{arm: how it is called}"""
    return rule.names_of(made.plan.request.n_layers)


def difference(made: Any, name: str) -> str:
    """A difference in words: 4 layers − 1 layer, at equal time"""
    (one, other, budget), names = rule.NAMES[name], names_of(made)
    return f"{names[one]} − {names[other]}" + (", at equal time" if budget == "time" else "")


def value(made: Any, arm: str, budget: str = "steps") -> str:
    """The mean of an arm, as accuracy or as nats, for the reader: 0.98"""
    mean, _, _ = made.found.arms[arm, budget]
    return f"{mean:.2f}" if made.plan.told["metric"] == "accuracy" else f"{-mean:.3f} nats"


# ---------- the text ----------


def text(made: Any) -> str:
    """The verdict in a few lines: what, by how much, and what it is not."""
    found, names, plan = made.found, names_of(made), made.plan
    gaps, said, most = found.differences, found.decision, plan.told["ceiling"]
    if said == rule.UNDECIDED:
        said = f"undecided, {found.why}{rule.more_words(found.more)}"
        if plan.stopped_by:
            said += f" ({plan.stopped_by})"
    lines = [f"{said}: {names['deep']} {value(made, 'deep')}, {names['one']} {value(made, 'one')}"]
    if "deep - one" in gaps:
        # of losses, where lower is better, above 0 is better all the same
        word = "difference" if plan.told["metric"] == "accuracy" else "gain"
        lines[0] += f"; {word} {rule.shown(gaps['deep - one'], most)}"
    lines[0] += f", {console.plural(found.n, 'seed')}"
    if said in (rule.NOBODY, rule.EASY, rule.SAME):
        unlike = 1 - 0.05 ** (1 / found.n)
        lines.append(f"{found.why}; up to {unlike:.0%} of seeds may be unlike these {found.n}")
    if "wide - one" in gaps:
        kind = gaps["wide - one"].found
        word = {rule.MORE: "parameters, too", rule.OPEN: "parameters: open"}
        about = word.get(kind, "not parameters")
        gap, margin = gaps["wide - one"], plan.request.margin
        if kind == rule.OPEN and gap.high < margin:
            about = "not parameters"
        elif kind == rule.OPEN and gaps["deep - wide"].found == rule.MORE:
            about = "not parameters as much"
        lines.append(f"{about}: {names['wide']} {value(made, 'wide')}")
    if "looped - one" in gaps:
        kind = gaps["looped - one"].found
        about = "not only weights" if kind == rule.MORE else "the same weights looped"
        lines.append(f"{about}: {names['looped']} {value(made, 'looped')}")
    if ("reread", "steps") in found.arms:
        lines.append(f"{names['reread']}: {value(made, 'reread')}")
    if ("one", "time") in found.arms:
        steps = plan.steps["one"]
        factor = steps["time"] / steps["steps"]
        lines.append(
            f"at equal time: {names['deep']} {value(made, 'deep', 'time')}, {names['one']} "
            f"({factor:.1f} × the steps) {value(made, 'one', 'time')}; difference "
            f"{rule.shown(gaps['deep - one at equal time'], most)}"
        )
    lines += [f"note: {note}" for note in plan.notes]
    return "\n".join(lines)


def change_of(made: Any) -> list[str]:
    """What would change the verdict, a sentence each."""
    found, plan = made.found, made.plan
    steps, margin = plan.steps["one"]["steps"], plan.request.margin
    lines = []
    for name, gap in found.differences.items():
        if gap.found == rule.OPEN:
            more = f"over {rule.MOST}" if gap.more is None else f"about {gap.more}"
            lines.append(
                f"{difference(made, name)} is open: {more} more seeds, if mean and spread stay"
            )
    if found.decision == rule.NOBODY:
        lines.append(f"more than {steps} steps, a wider model, or a smaller problem (--sizes)")
    if found.decision == rule.EASY:
        lines.append(f"fewer than {steps} steps, or a larger problem (--sizes)")
    if found.decision == rule.SAME:
        lines.append(f"a margin below {margin:g} (--margin), with more seeds")
    rates = {arm: sorted(map(float, tried)) for arm, tried in plan.tried.items()}
    for arm, rate in plan.rates.items():
        if rate in (rates[arm][0], rates[arm][-1]):
            lines.append(
                f"{names_of(made)[arm]}: its best learning rate, {rate:g}, lies at an end of what "
                "was tried"
            )
    unlike = 1 - 0.05 ** (1 / max(1, found.n))
    lines.append(
        f"seeds unlike all of these {found.n}: with 95 % confidence they are at most {unlike:.0%}"
    )
    lines.append(f"other numbers of steps: all of this is said of {steps}")
    return lines


# ---------- figures ----------


def draw_arms(axes: Any, made: Any) -> None:
    """The arms as points with intervals, equal steps filled, equal time hollow."""
    names, places, labels = names_of(made), [], []
    sign = 1 if made.plan.told["metric"] == "accuracy" else -1
    place = 0
    for (arm, budget), values in made.scores.items():
        color = COLORS.get(arm, "C4")
        values = [sign * each for each in values]
        mean, low, high = made.found.arms[arm, budget]
        mean, low, high = sign * mean, *sorted((sign * low, sign * high))
        full = color if budget == "steps" else "none"
        axes.plot([place - 0.12] * len(values), values, "o", color=color, mfc=full, alpha=0.6)
        if low > -float("inf"):
            bar = [[mean - low], [high - mean]]
            axes.errorbar(place + 0.12, mean, bar, fmt="s", color=color, mfc=full, capsize=3)
        places.append(place)
        labels.append(names[arm] + ("" if budget == "steps" else "\nequal time"))
        place += 1
    if made.plan.told["chance"] is not None:
        axes.axhline(made.plan.told["chance"], color="C5", linestyle=":", label="chance")
        axes.set_ylim(-0.03, 1.03)
        axes.legend(frameon=False, fontsize="small")
    axes.set_xticks(places, [label.replace(" looped", "\nlooped") for label in labels])
    axes.tick_params(axis="x", labelsize="small")
    axes.set_ylabel("accuracy" if sign > 0 else "validation loss, nats")


def figure(made: Any) -> Any:
    """A matplotlib Figure of the arms."""
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(8, 4), layout="constrained")
    draw_arms(drawn.subplots(), made)
    return drawn


def draw_curves(made: Any, runs: list[dict], path: console.Path) -> None:
    """Score by step of every reported run, a panel for each budget."""
    budgets = list(dict.fromkeys(run["budget"] for run in runs))
    key = (
        "accuracy"
        if all("accuracy" in record for run in runs for record in run["log"])
        else "val_loss"
    )
    names, size = names_of(made), (4 * len(budgets) + 1, 3.6)
    with figures.drawing(path, 1, len(budgets), size, squeeze=False, sharey=True) as (_, axes):
        for panel, budget in zip(axes[0], budgets):
            named = set()
            for run in runs:
                if run["budget"] != budget:
                    continue
                arm = run["arm"]
                color = COLORS.get(arm, "C4")
                label = None if arm in named else names[arm]
                named.add(arm)
                steps = [record["step"] for record in run["log"]]
                panel.plot(
                    steps, [record[key] for record in run["log"]], color=color, lw=1, label=label
                )
            panel.set_title(f"equal {budget}", fontsize="medium")
            panel.set_xlabel("step")
            if key == "val_loss":  # most of it is gone after the first steps
                panel.set_yscale("log")
            panel.legend(frameon=False, fontsize="x-small")
        axes[0][0].set_ylabel("accuracy" if key == "accuracy" else "validation loss, nats")


# ---------- files ----------


def summary(made: Any, runs: list[dict]) -> dict:
    """verdict.json: all that the page shows, as numbers."""
    found, plan = made.found, made.plan
    about = machine.provenance(torch.device("cpu"))
    arms = {}
    for (arm, budget), (mean, low, high) in found.arms.items():
        arms.setdefault(arm, {})[budget] = dict(
            mean=mean, low=low, high=high, scores=made.scores[arm, budget]
        )
    return dict(
        decision=found.decision,
        why=found.why,
        text=text(made),
        more_seeds=found.more,
        seeds=found.n,
        request=plan.request.identity(),
        judged_by=plan.told,
        arms=arms,
        differences={name: vars(gap) for name, gap in found.differences.items()},
        rates=plan.rates,
        tuning=plan.tried,
        tuning_seeds=[int(s) for s in next(iter(next(iter(plan.tried.values())).values()))],
        steps=plan.steps,
        step_seconds=plan.step_seconds,
        parameters=plan.parameters,
        looks=plan.looks,
        notes=plan.notes,
        seconds=plan.spent,
        rule=rule.RULE,
        runs=[{key: run[key] for key in run if key != "log"} for run in runs],
        date=time.strftime("%Y-%m-%d"),
        versions=about["versions"],
        device=about["device"],
        commit=about["commit"],
    )


def scores_are(plan: Any) -> str:
    """What a verdict's scores are, in a sentence."""
    if plan.told["metric"] == "nats":
        return "Scores are minus the validation loss, in nats per token: higher is better."
    return "Scores are accuracies on the test."


def paste_of(made: Any, kept: dict) -> str:
    """The whole as text to paste into an issue: Markdown."""
    names, plan = names_of(made), made.plan
    lines = [f"**Does depth help on `{plan.request.source}`?**", "", "```", kept["text"], "```", ""]
    rows = [["arm", "budget", "steps", "learning rate", "n", "mean", "interval", "scores"]]
    for arm, budgets in kept["arms"].items():
        for budget, each in budgets.items():
            low, high = each["low"], each["high"]
            held = f"{low:.3f} to {high:.3f}" if math.isfinite(low) else ""
            scores = " ".join(f"{score:.3f}" for score in each["scores"])
            steps = plan.steps[arm][budget]
            row = [names[arm], f"equal {budget}", f"{steps}", f"{plan.rates[arm]:g}"]
            rows.append([*row, str(len(each["scores"])), f"{each['mean']:.3f}", held, scores])
    lines.append("| " + " | ".join(rows[0]) + " |")
    lines.append("|" + " --- |" * len(rows[0]))
    lines += ["| " + " | ".join(row) + " |" for row in rows[1:]]
    lines += ["", scores_are(plan), "", f"Rule: {rule.RULE}", ""]
    lines += [f"`{command_of(made)}`, {kept['date']}, "]
    lines[-1] += f"{kept['device']}, {plan.spent / 60:.1f} minutes of training"
    return "\n".join(lines)


def command_of(made: Any) -> str:
    """What was typed, made again from the request."""
    from minidepth_lab.measure.cell import as_flags

    request = made.plan.request
    line = ["--verdict", request.source, "--preset", request.preset]
    line += ["--n_layers", str(request.n_layers), "--margin", f"{request.margin:g}"]
    line += ["--repeats"] if request.repeats else []
    line += ["--seeds", str(request.seeds)] if request.seeds != rule.LOOKS[-1] else []
    line += as_flags(request.settings)
    line += ["--out_dir", request.out_dir] if request.out_dir != "verdicts" else []
    line += ["--name", request.name] if request.name != request.default_name() else []
    return f"{console.COMMAND} {shlex.join(line)}"


def write(made: Any) -> None:
    """Write verdict.json, verdict.txt and verdict.html into the verdict's folder."""
    runs = made.runs
    kept = summary(made, runs)
    folder = made.folder
    paste = paste_of(made, kept)
    page = whole_page(made, kept, runs, paste)
    as_json = json.dumps(checkpoints.number_or_null(kept), indent=1)
    for name, content in {
        "verdict.json": as_json, "verdict.txt": paste + "\n", "verdict.html": page,
    }.items():  # fmt: skip
        checkpoints.write(
            os.path.join(folder, name), lambda file, c=content: file.write(c.encode())
        )


def whole_page(made: Any, kept: dict, runs: list[dict], paste: str) -> str:
    """verdict.html"""
    names, plan, found = names_of(made), made.plan, made.found
    arms = []
    for arm, budgets in kept["arms"].items():
        for budget, each in budgets.items():
            low, high = each["low"], each["high"]
            held = f"{low:.3f} to {high:.3f}" if math.isfinite(low) else ""
            n = plan.parameters[arm]
            row = [names[arm], f"equal {budget}", plan.steps[arm][budget], f"{n['layers']:,}"]
            arms.append([*row, len(each["scores"]), f"{each['mean']:.3f}", held])
    gaps = [
        [
            difference(made, name),
            gap.n,
            f"{gap.mean:.3f}",
            f"{gap.low:.3f} to {gap.high:.3f}",
            gap.found,
        ]
        for name, gap in found.differences.items()
    ]
    tuned = []
    for arm, tried in plan.tried.items():
        for rate, by_seed in sorted(tried.items(), key=lambda pair: float(pair[0])):
            values = [score for score, _ in by_seed.values()]
            mean = sum(values) / len(values)
            chosen = "chosen" if float(rate) == plan.rates[arm] else ""
            tuned.append([names[arm], rate, f"{mean:.3f}", chosen])
    table = [
        [
            names[run["arm"]], f"equal {run['budget']}", run["seed"], f"{run['lr']:g}",
            run["steps"], f"{run['score']:.4f}", f"{run['seconds']:.0f}", run["command"] or "",
        ]
        for run in runs
    ]  # fmt: skip
    body = TEMPLATE.format(
        text=report.safe(kept["text"]),
        figure=report.drawn(lambda path: save_arms(made, path), "the arms, with intervals"),
        level=1 - rule.LOOK_ERROR,
        metric=scores_are(plan),
        arms=report.table(
            ("arm", "budget", "steps", "parameters in layers", "seeds", "mean", "interval"), arms
        ),
        differences=report.table(("difference", "seeds", "mean", "interval", "found"), gaps),
        rule=report.safe(rule.RULE),
        change="".join(f"<li>{report.safe(line)}</li>" for line in change_of(made)),
        curves=report.drawn(lambda path: draw_curves(made, runs, path), "curves of all runs"),
        tuning_seeds=", ".join(map(str, kept["tuning_seeds"])),
        tuned=report.table(("arm", "learning rate", "mean score", ""), tuned),
        looks=report.safe("\n".join(plan.looks)),
        runs=report.table(
            ("arm", "budget", "seed", "rate", "steps", "score", "seconds", "command"), table
        ),
        paste=html.escape(console.visible(paste)),
        made=report.safe(f"{command_of(made)}, {kept['date']}, {kept['device']}"),
    )
    return report.page(f"Does depth help on {plan.request.source}?", body)


def save_arms(made: Any, path: console.Path) -> None:
    """The figure of the arms as a PNG."""
    with figures.drawing(path, 1, 1, (9, 4)) as (_, axes):
        draw_arms(axes, made)
