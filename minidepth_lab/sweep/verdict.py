"""Does depth help on a source? The looks of a verdict, and what comes of them.

    found = verdict("icqa", budget="20m")      an object with decision, differences, runs, figure()
    python train.py --verdict icqa --budget 20m

In the order of the work: verdict_data.py says whether the data can be judged, verdict_rows.py
splits rows, verdict_plan.py measures what it takes, verdict_runs.py trains, measure/verdict.py has
the rule, show/verdict.py the page.
"""

import dataclasses
import json
import os
import statistics
from typing import Any

from minidepth_lab.keep import registry
from minidepth_lab.measure import results
from minidepth_lab.measure import verdict as rule
from minidepth_lab.measure.cell import is_finished
from minidepth_lab.measure.forecast import as_time
from minidepth_lab.sweep.verdict_plan import Plan, Request, facts, prepared, seconds_of
from minidepth_lab.sweep.verdict_runs import (
    OVER,
    OverBudget,
    cells_of,
    check_same_data,
    scores_of,
    train,
    tune,
)
from minidepth_lab.tasks.base import own_code


def decided(plan: Plan, scores: dict) -> rule.Decision:
    """decide() on these scores."""
    told = plan.told
    return rule.decide(
        scores, plan.request.margin, told["chance"], told["ceiling"], told["answers"]
    )


def carried_out(plan: Plan) -> tuple[rule.Decision, dict]:
    """Train until it is decided, or seeds or budget are used up → (the decision, the scores)."""
    try:
        tune(plan)
    except OverBudget:
        over = f"--budget {as_time(plan.request.seconds)} is over before the rates are chosen"
        raise ValueError(f"{over}; the same command with more of it goes on") from None
    budgets, found, scores = ["steps"], None, {}
    for look in rule.LOOKS:
        if look > plan.seeds:
            break
        if found and (why := too_long(plan, look, budgets)):
            plan.stopped_by = why
            break
        try:
            for _ in ("steps", "time"):  # once more where equal time is to be asked now
                cells = []
                for budget in budgets:
                    cells += cells_of(plan, look, budget).values()
                    train(plan, cells)
                check_same_data(plan, cells)
                scores = scores_of(plan, look, budgets)
                found = decided(plan, scores)
                if found.budget == "steps" or "time" in budgets:
                    break
                print(progress(plan, found))
                budgets.append("time")
        except OverBudget:
            if found is None:
                over = f"--budget {as_time(plan.request.seconds)} is over before the first look"
                raise ValueError(f"{over}; the same command with more of it goes on") from None
            plan.stopped_by = "the budget is over"
            break
        line = progress(plan, found)
        plan.looks.append(line)
        print(line)
        if found.decided:
            break
    plan.save()
    return found, scores


def too_long(plan: Plan, look: int, budgets: list[str]) -> str:
    """Why the budget does not reach to the next look; empty where it does."""
    if not plan.request.seconds:
        return ""
    left, slower = 0.0, []
    for budget in budgets:
        for (arm, _), cell in cells_of(plan, look, budget).items():
            if budget == "time" and plan.same_run(arm):
                continue  # it is that of equal steps
            expected = plan.seconds(arm, budget)
            if is_finished(cell.m, cell.t):  # what runs really took here tells how long others do
                took = results.result(cell.folder)["seconds"] + plan.start
                slower.append(took / expected)
            else:
                left += expected
    left *= statistics.median(slower or [1.0]) / plan.request.jobs
    if plan.spent + left > OVER * plan.request.seconds:
        return f"{as_time(left)} to {look} seeds would go beyond the budget"
    return ""


def progress(plan: Plan, found: rule.Decision) -> str:
    """What is decided so far, in a line."""
    names = rule.names_of(plan.request.n_layers)
    shown = []
    for arm in ("deep", "one"):
        mean, _, _ = found.arms[arm, "steps"]
        shown.append(f"{names[arm]} {abs(mean):.2f}")
    gap = found.differences["deep - one"]
    line = f"after {found.n} seeds: {', '.join(shown)}; "
    line += f"difference {rule.shown(gap, plan.told['ceiling'])}"
    if found.decided:
        return f"{line}: {found.decision}"
    return f"{line}; undecided {found.why}{rule.more_words(found.more)}"


@dataclasses.dataclass
class Verdict:
    """What verdict() gives back."""

    plan: Plan
    found: rule.Decision
    scores: dict

    @property
    def decision(self) -> str:
        return self.found.decision

    @property
    def differences(self) -> dict:
        return self.found.differences

    @property
    def folder(self) -> str:
        return self.plan.request.folder

    @property
    def runs(self) -> list[dict]:
        """Reported runs: arm, budget, seed, score, steps, seconds, lr, folder, command, log."""
        made = []
        budgets = list(dict.fromkeys(budget for _, budget in self.scores))
        for budget in budgets:
            seeds = len(self.scores["one", budget])
            for (arm, seed), cell in cells_of(self.plan, seeds, budget).items():
                if budget == "time" and self.plan.same_run(arm):
                    continue
                row = results.result(cell.folder)
                with open(os.path.join(cell.folder, "config.json"), encoding="utf-8") as file:
                    about = json.load(file)
                made.append(
                    dict(
                        arm=arm, budget=budget, seed=seed, lr=self.plan.rates[arm],
                        score=self.scores[arm, budget][seed], steps=row["step"],
                        seconds=row["seconds"], folder=cell.folder,
                        command=about.get("command"), log=row["log"],
                    )
                )  # fmt: skip
        return made

    def text(self) -> str:
        from minidepth_lab.show import verdict as page

        return page.text(self)

    def figure(self) -> Any:
        """A matplotlib Figure of the arms as points with intervals."""
        from minidepth_lab.show import verdict as page

        return page.figure(self)


def verdict(source: str, dry_run=False, **options: Any) -> Verdict | None:
    """The Verdict on a task by its name or file, rows, a data set or `embedded`. `options` are
    those of Request, `budget` as a text ("20m"), and any setting of the model and the training.
    Each run is trained in a process of its own, or by `command`, its arguments → the exit code, one
    at a time in this one. ValueError, a line, for what cannot be judged, Stopped after
    a signal."""
    for named in (source, options.get("loader", "")):
        if named.endswith(".py"):
            own_code.NAMED.add(named)  # to name it here is to let it be executed
    budget = options.pop("budget", None)
    names = {f.name for f in dataclasses.fields(Request)} - {"source", "settings", "seconds"}
    own = {name: options.pop(name) for name in names & options.keys()}
    own.setdefault("preset", "tasks" if is_task(source) else "laptop")
    if budget is not None:
        own["seconds"] = seconds_of(budget) if isinstance(budget, str) else float(budget)
    plan = prepared(Request(source, settings=options, **own))
    print(facts(plan))
    if dry_run:
        return None
    plan.save()
    with registry.read_once():
        found, scores = carried_out(plan)
    made = Verdict(plan, found, scores)
    from minidepth_lab.show import verdict as page

    page.write(made)
    return made


def is_task(source: str) -> bool:
    """Whether a source is a depth task, by its name or as a file."""
    return source.endswith(".py") or registry.task(source) is not None
