"""The runs of a verdict: one of train.py each, in OUT_DIR/NAME/runs, its rate tuned before.

They can be stopped and go on, listed and asked like any other run.
"""

import contextlib
import math
import os
import statistics
import time

from minidepth_lab.base import console, machine
from minidepth_lab.keep import check, registry
from minidepth_lab.measure import results
from minidepth_lab.measure import verdict as rule
from minidepth_lab.measure.cell import Cell, is_finished, other_data
from minidepth_lab.sweep import pool, verdict_plan
from minidepth_lab.sweep.verdict_plan import Plan, Request

OVER = 1.1  # times the budget, at which training ends
EVALUATIONS = 4  # of a run: a curve, and little time


class Stopped(Exception):
    """By a signal, whose number it holds; what was trained is kept."""


class OverBudget(Exception):
    """The time is used up, in the middle of what was to be trained."""


def cell_of(plan: Plan, arm: str, budget: str, seed: int, rate: float, tuning=False) -> Cell:
    """One run as the grid machinery has it."""
    settings = dict(plan.arms[arm])
    settings |= dict(lr=rate, seed=seed, steps=plan.steps[arm][budget])
    settings.setdefault("eval_every", max(1, math.ceil(settings["steps"] / EVALUATIONS)))
    settings["out_dir"] = plan.request.out_dir
    if tuning and plan.rows:
        settings["val_data"] = plan.rows["tune"]
    _, t = registry.configs(plan.request.preset, **settings)
    if t.watch_problems and "watch_problems" not in plan.request.settings:
        settings["watch_problems"] = 0  # answers are asked for at the end alone
    if not tuning:
        what = f"{arm}-{budget}-seed{seed}"
    else:
        what = f"tuning-{arm}-lr{rate:g}-seed{seed}"
    labels = dict(arm=rule.names_of(plan.request.n_layers)[arm], lr=f"{rate:g}", seed=seed)
    if budget == "time":
        labels["steps"] = settings["steps"]
    cell = Cell(labels, settings, *registry.configs(plan.request.preset, **settings))
    cell.t.name = os.path.join(plan.request.name, "runs", what)
    return cell


def train(plan: Plan, cells: list[Cell], may_diverge=False) -> None:
    """Train those of the cells that are not finished. Stopped after a signal, ValueError for a run
    that failed, unless it diverged and may. One at a time on a CPU they are trained in this
    process: what a process of its own imports takes longer than many a small run."""
    todo = [cell for cell in cells if not is_finished(cell.m, cell.t)]
    if not todo:
        return
    check.grid_data(todo)
    jobs = min(plan.request.jobs, len(todo))
    preset, device = plan.request.preset, todo[0].t.device
    own = plan.request.command and jobs == 1 and machine.pick_device(device).type == "cpu"
    at_once = 1 if own else 4 * jobs  # between which it is asked whether there is time left

    def start(cell, slot):
        return cell.start(preset, {}, os.environ | slot)

    for first in range(0, len(todo), at_once):
        if plan.request.seconds and plan.spent > OVER * plan.request.seconds:
            raise OverBudget
        some, began = todo[first : first + at_once], time.monotonic()
        try:
            if own:
                told = f"[{first + 1}/{len(todo)}]"
                failed, stopped = train_here(some[0], plan.request, told)
            else:
                failed, stopped = pool.train_all(some, pool.slots(jobs, device), start)
        finally:
            plan.spent += time.monotonic() - began
            plan.save()
        if stopped:
            raise Stopped(stopped)
        for cell, line in failed:
            # a full disk, or memory, or a lock say nothing against a learning rate
            if may_diverge and console.DIVERGED in line:
                continue
            raise ValueError(f"{cell} failed: {line}; the same command goes on")


def train_here(cell: Cell, request: Request, told: str) -> tuple[list, int | None]:
    """Train a cell in this process, what it prints into its folder → what pool.train_all() gives.
    `told` stands before the line that says what came of it."""
    os.makedirs(cell.folder, exist_ok=True)
    with open(os.path.join(cell.folder, "stdout.txt"), "a", encoding="utf-8") as out:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            code = request.command(cell.command(request.preset, {}))
    if code > 128:
        return [], code - 128
    good, line = cell.outcome(code)
    print(f"{told} {cell}: {line}", flush=True)
    return [] if good else [(cell, line)], None


def score(cell: Cell, metric: str) -> tuple[float, float]:
    """(score, tie-break) of a run, higher is better; minus infinity of one that diverged."""
    try:
        row = results.result(cell.folder)
    except (OSError, ValueError):
        return -math.inf, -math.inf
    loss = row["val_loss"] if math.isfinite(row["val_loss"]) else math.inf
    if metric == "accuracy":
        return row["accuracy"], -loss
    return -loss, -loss


def next_rates(tried: dict[float, tuple]) -> list[float]:
    """The learning rates to try next: one beyond, where the best of those tried lies at an end."""
    rates = sorted(tried)
    best = max(rates, key=lambda rate: tried[rate])
    if len(rates) >= len(verdict_plan.FACTORS) + verdict_plan.BEYOND:
        return []
    if best == rates[-1]:
        return [rounded(3 * best)]
    if best == rates[0]:
        return [rounded(best / 3)]
    return []


def rounded(rate: float) -> float:
    """To two digits, so that it can be typed."""
    return float(f"{rate:.2g}")


def tune(plan: Plan) -> None:
    """Choose each arm's learning rate by its mean score over the tuning seeds, the loss where these
    are equal; the best at an end of what was tried is tried beyond it."""
    metric = plan.told["metric"]
    rates = {}
    for arm in plan.arms:
        _, t = registry.configs(plan.request.preset, **plan.arms[arm])
        rates[arm] = [rounded(factor * t.lr) for factor in verdict_plan.FACTORS]
    waiting = {arm: list(rates[arm]) for arm in plan.arms if arm not in plan.rates}
    while waiting:
        cells = {}
        for arm, which in waiting.items():
            for rate in which:
                for seed in verdict_plan.TUNING_SEEDS:
                    cells[arm, rate, seed] = cell_of(plan, arm, "steps", seed, rate, True)
        train(plan, list(cells.values()), may_diverge=True)
        for (arm, rate, seed), cell in cells.items():
            value = score(cell, metric)
            plan.tried.setdefault(arm, {}).setdefault(f"{rate:g}", {})[str(seed)] = value
        left = {}
        for arm in waiting:
            means = {}
            for rate, by_seed in plan.tried[arm].items():
                parts = zip(*by_seed.values())
                means[float(rate)] = tuple(statistics.mean(part) for part in parts)
            if more := next_rates(means):
                left[arm] = more
            else:
                plan.rates[arm] = max(means, key=lambda rate: means[rate])
        waiting = left
    plan.save()
    chosen = ", ".join(
        f"{rule.names_of(plan.request.n_layers)[arm]} {rate:g}" for arm, rate in plan.rates.items()
    )
    print(f"learning rates {chosen}")


def cells_of(plan: Plan, seeds: int, budget: str) -> dict[tuple, Cell]:
    """{(arm, seed): its run} of a budget."""
    made = {}
    for seed in range(seeds):
        for arm in plan.arms:
            run = "steps" if budget == "time" and plan.same_run(arm) else budget
            made[arm, seed] = cell_of(plan, arm, run, seed, plan.rates[arm])
    return made


def scores_of(plan: Plan, seeds: int, budgets: list[str]) -> dict[tuple, list[float]]:
    """{(arm, budget): [score of each seed]} of finished runs."""
    found = {}
    for budget in budgets:
        for (arm, _), cell in cells_of(plan, seeds, budget).items():
            found.setdefault((arm, budget), []).append(score(cell, plan.told["metric"])[0])
    return found


def check_same_data(plan: Plan, cells: list[Cell]) -> None:
    """ValueError for runs on data that has changed since others were trained, as a task's file."""
    if other_data(cells):
        changed = f"{plan.request.source} is not what earlier runs of {plan.request.folder} had"
        raise ValueError(f"{changed}; give another --name")
