"""The runs behind a verdict: which arms, at which learning rate, how many steps and seeds.

    found = verdict("icqa", budget="20m")      an object with decision, differences, runs, figure()
    python train.py --verdict icqa --budget 20m

Every run is one of train.py in OUT_DIR/NAME/runs, so it can be stopped and goes on, listed and
asked like any other. What has been measured and chosen stands in OUT_DIR/NAME/plan.json, so
that the same command goes on with the same plan. The rule is in measure/verdict.py, the page in
show/verdict.py.
"""

import contextlib
import copy
import dataclasses
import json
import math
import os
import re
import statistics
import subprocess
import sys
import time
from typing import Any
from unittest import mock

import torch

import minidepth as md
from minidepth_lab.base import configs, console, machine
from minidepth_lab.keep import check, checkpoints, registry, running
from minidepth_lab.measure import results
from minidepth_lab.measure import verdict as rule
from minidepth_lab.measure.cell import Cell, is_finished, other_data
from minidepth_lab.models import memory, variants
from minidepth_lab.sweep import pool, verdict_rows
from minidepth_lab.tasks.base import own_code

TUNING_SEEDS = (1000, 1001)  # never among the reported ones, which count from 0
FACTORS = (1 / 3, 1.0, 3.0)  # of the preset's learning rate
BEYOND = 2  # rates that are tried at most beyond either end
SAME_TIME = 1.15  # step counts nearer than this are one run
OVER = 1.1  # times the budget, at which training ends
EVALUATIONS = 4  # of a run: a curve, and little time
DRAWN = 4000  # training sequences that the test's are looked for in
LEAST_STEPS = 50
BESIDE = 1.0  # seconds of a run that reads, draws and saves
# (share of the steps, share of the width) that a budget may come down to, the first that fits
SHARES = ((1, 1), (0.5, 1), (0.5, 0.5), (0.25, 1), (0.25, 0.5))


class Stopped(Exception):
    """By a signal, whose number it holds; what was trained is kept."""


class OverBudget(Exception):
    """The time is used up, in the middle of what was to be trained."""


@dataclasses.dataclass
class Request:
    """What is asked for."""

    source: str  # a task's name, my_task.py, my.jsonl, a hub's data set, embedded
    preset: str
    settings: dict  # what else was typed of the model and the training
    n_layers: int = 4
    margin: float = 0.05
    seeds: int = rule.LOOKS[-1]  # most of them
    seconds: float | None = None  # the budget
    jobs: int = 1
    out_dir: str = "verdicts"
    name: str = ""
    repeats: bool = False  # whether a test that repeats training is meant

    @property
    def folder(self):
        return os.path.join(self.out_dir, self.name)

    def identity(self):
        """What makes it another verdict; how long it may take and where it runs does not."""
        kept = ("source", "preset", "settings", "n_layers", "margin")
        return json.loads(json.dumps({name: getattr(self, name) for name in kept}))


# ---------- reading what was typed ----------


def seconds_of(text: str) -> float:
    """'20m' → 1200, '1h30m' → 5400, '90' or '90s' → 90; ValueError for what is no time."""
    found = re.fullmatch(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s?)?", text)
    if not text or not found:
        raise ValueError(f"--budget {text!r:.40} is no time; give 20m, 90s or 1h30m")
    hours, minutes, seconds = (float(part or 0) for part in found.groups())
    return 3600 * hours + 60 * minutes + seconds


def as_time(seconds: float) -> str:
    """A time in words: 40 s, 12 min, 3.5 h"""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def check_file(path: str) -> None:
    """ValueError for a file that is not there."""
    if not os.path.isfile(path):
        raise ValueError(f"{path} is not there; give a file of rows")


# ---------- the data: whether it can be judged ----------


def commonest(values) -> tuple[float, int]:
    """(share of the commonest value, how many different ones there are)"""
    counts = {}
    for value in values:
        counts[value] = counts.get(value, 0) + 1
    return max(counts.values()) / sum(counts.values()), len(counts)


def judged_by(data: md.Data, source: str) -> dict:
    """What the scores of this data are: `metric` (accuracy, or loss in nats), `chance`, `ceiling`,
    and `answers`, how many problems an accuracy is measured on."""
    if data.infinite:
        if data.val[1].ndim == 3:
            own = f"{source} asks for a loss after each loop, which sets its models' depth itself"
            raise ValueError(f"{own}; see --study ring or walk")
        targets = [int(each) for each in data.val[1][data.val[1] != -100].tolist()]
        share, kinds = commonest(targets)
        if kinds == 1:
            raise ValueError(f"{source}: every answer of the test is the same; nothing is asked")
        known = [data.facts[name] for name in ("guess", "shortcut") if name in data.facts]
        chance = max(known, default=share)
        return dict(metric="accuracy", chance=chance, ceiling=1.0, answers=len(data.val[0]))
    if data.problems:
        share, kinds = commonest(str(problem["answer"]) for problem in data.problems)
        if kinds == 1:
            raise ValueError(f"{source}: every answer of the test is the same; nothing is asked")
        known = [p["guess"] for p in data.problems if p.get("guess") is not None]
        if len(known) == len(data.problems):
            share = max(share, statistics.mean(known))
        n = len(data.problems)
        return dict(metric="accuracy", chance=share, ceiling=1.0, answers=n)
    return dict(metric="nats", chance=None, ceiling=None, answers=None)


def repeated(data: md.Data) -> float:
    """The share of the test that training has word for word, looked for in DRAWN sequences."""
    if data.infinite:
        tokens, _ = copy.copy(data).draw(0, DRAWN)
        shown = {tuple(row) for row in tokens.tolist()}
    else:
        shown = {tuple(row) for row in data.train[0].tolist()}
    test = [tuple(row) in shown for row in data.val[0].tolist()]
    return statistics.mean(test)


def check_source(data: md.Data, request: Request) -> dict:
    """judged_by() of the data; ValueError, a line, for what no verdict can be given on."""
    source, margin = request.source, request.margin
    told = judged_by(data, source)
    if not request.repeats and (share := repeated(data)) > 0.5:
        learned = f"{source}: training repeats {share:.0%} of the test, so recall is all it asks"
        raise ValueError(f"{learned}; give --repeats if that is the question")
    if told["metric"] == "accuracy":
        if told["chance"] > 1 - margin:
            reach = f"{source}: chance is {told['chance']:.2f}, and 1 is the most"
            raise ValueError(f"{reach}: no difference larger than {margin:g} fits between them")
        # below it the sampling error of the test alone is as large as the margin
        least = math.ceil(0.25 / margin**2)
        if told["answers"] < least:
            few = f"{source}: the test has {told['answers']} problems with an answer"
            raise ValueError(f"{few}, a margin of {margin:g} needs {least}; give more, or --margin")
    elif len(data.val[0]) < 2:
        raise ValueError(f"{source}: one block is held out, which is too few; give more rows")
    return told


# ---------- the arms ----------


def arms_of(request: Request, data: md.Data) -> dict[str, dict]:
    """{arm: its settings}, without rate, steps and seed."""
    deep, base = request.n_layers, dict(request.settings)
    one = base | dict(n_layers=1, n_loops=1)
    m, _ = registry.configs(request.preset, **one)
    m = dataclasses.replace(m, vocab_size=m.vocab_size or data.n_words)
    wanted = variants.parameters(dataclasses.replace(m, n_layers=deep, n_heads=m.heads[0]))[
        "blocks"
    ]
    wide = as_wide(m, wanted)
    arms = {
        "one": one,
        "deep": one | dict(n_layers=deep),
        "looped": one | dict(n_loops=deep),
        "wide": one | dict(d_model=wide.d_model, d_ff=wide.d_ff),
    }
    task = getattr(data, "task", None)
    if task and (kept := task.map_tokens(**data.task_sizes)):
        arms["reread"] = arms["looped"] | dict(loop_keeps=kept)
    return arms


def as_wide(m: configs.ModelConfig, wanted: int) -> configs.ModelConfig:
    """The config with the d_model, a multiple of all heads, and d_ff in proportion, whose layers
    have nearest to so many parameters. Unlike studies.depth.width_matched() it takes what is not
    within 2 %, as small models have few widths: the counts are printed and on the page."""
    unit = math.lcm(*m.heads) * (2 if m.position == "rotary" else 1)

    def at(n):
        d_ff = round(m.d_ff * n * unit / m.d_model)
        return dataclasses.replace(m, d_model=n * unit, d_ff=d_ff)

    n = max(1, m.d_model // unit)
    while variants.parameters(at(n))["blocks"] < wanted:
        n += 1
    return min(
        (at(max(1, n - 1)), at(n)),
        key=lambda wide: abs(variants.parameters(wide)["blocks"] - wanted),
    )


def threads_of(jobs: int) -> int:
    """Threads of each of so many runs at a time, as pool.slots() gives them."""
    return torch.get_num_threads() if jobs == 1 else max(1, torch.get_num_threads() // jobs)


def step_seconds(
    m: configs.ModelConfig, t: configs.TrainConfig, data: md.Data, jobs: int = 1
) -> tuple[float, float]:
    """(seconds of one optimizer step, the same by the clock on the wall): the fastest of three real
    ones. On a CPU the first is the processor's time, so that others who use the machine do not
    count where arms are compared; they do in how long a budget lasts."""
    device = machine.pick_device(t.device)
    threads, before = threads_of(jobs), torch.get_num_threads()
    torch.set_num_threads(threads)
    taken = []
    try:
        with torch.random.fork_rng(devices=[]):
            training = md.Training(m, dataclasses.replace(t, device=device.type), variants.GPT)
            data = copy.copy(data)
            data.state = {}
            for step in range(4):  # the first one warms up
                began = time.process_time(), time.perf_counter()
                training.step(*data.draw(step, t.batch_size * t.grad_accum))
                if device.type == "cuda":
                    torch.cuda.synchronize()
                ended = time.process_time(), time.perf_counter()
                taken.append([after - start for start, after in zip(began, ended)])
    finally:
        torch.set_num_threads(before)
    used, wall = (min(part) for part in zip(*taken[1:]))
    return (used / threads if device.type == "cpu" else wall), wall


def start_seconds(jobs: int, device: str) -> float:
    """How long a run takes beside its steps: what a process imports, where it has its own, and what
    it reads, draws and saves."""
    if jobs == 1 and machine.pick_device(device).type == "cpu":
        return BESIDE
    began = time.perf_counter()
    code = "import torch, minidepth, minidepth_lab.keep.registry, minidepth_lab.show.figures"
    subprocess.run([sys.executable, "-c", code], check=False, capture_output=True)
    return BESIDE + time.perf_counter() - began


# ---------- the plan: what was measured and chosen, kept ----------


@dataclasses.dataclass
class Plan:
    """A verdict under way. All but `request` and `data` is kept in plan.json."""

    request: Request
    arms: dict  # {arm: its settings}
    told: dict  # judged_by()
    steps: dict  # {arm: {budget: steps}}
    step_seconds: dict  # {arm: seconds of a step}
    slower: float  # how much slower than that the clock on the wall is, as others use the machine
    start: float  # seconds before a run trains
    seeds: int  # most of them
    rates: dict  # {arm: learning rate}, once chosen
    tried: dict  # {arm: {rate: {seed: score}}}
    parameters: dict  # {arm: {total, blocks}}
    notes: list
    rows: dict  # {train, tune, test: file} of rows that were split here
    spent: float = 0.0  # seconds, of all sessions
    looks: list = dataclasses.field(default_factory=list)  # a line after each
    stopped_by: str = ""  # why it ended undecided, if not for its seeds

    def __post_init__(self):
        self.once = Once()

    @property
    def path(self):
        return os.path.join(self.request.folder, "plan.json")

    def save(self):
        kept = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        kept["request"] = self.request.identity()
        os.makedirs(self.request.folder, exist_ok=True)
        text = json.dumps(kept, indent=1)
        checkpoints.write(self.path, lambda file: file.write(text.encode()))

    def seconds(self, arm, budget):
        """What a run takes, its evaluations and its start too."""
        steps = self.steps[arm][budget] * self.step_seconds[arm]
        return self.start + 1.2 * self.slower * steps

    def same_run(self, arm):
        """Whether its run at equal time is that at equal steps."""
        return self.steps[arm]["time"] == self.steps[arm]["steps"]

    def cost(self, seeds, tuned=False):
        """(runs, seconds on this machine) at most."""
        runs, whole = 0, 0.0
        if not tuned:
            n = len(FACTORS) * len(TUNING_SEEDS)
            runs += n * len(self.arms)
            whole += n * sum(self.seconds(arm, "steps") for arm in self.arms)
        for arm in self.arms:
            for budget in ("steps", "time"):
                if budget == "steps" or not self.same_run(arm):
                    runs += seeds
                    whole += seeds * self.seconds(arm, budget)
        return runs, whole / self.request.jobs


def equal_time(steps: int, seconds: dict[str, float]) -> dict[str, dict]:
    """{arm: {"steps": as many for all, "time": as many as take as long as the slowest arm's}}"""
    slowest = max(seconds.values())
    made = {}
    for arm, each in seconds.items():
        longer = round(steps * slowest / each)
        made[arm] = dict(steps=steps, time=longer if longer > SAME_TIME * steps else steps)
    return made


def made_plan(request: Request) -> Plan:
    """A new Plan, measured on this machine, that fits the budget; ValueError for data that no
    verdict can be given on, or a budget that cannot hold one."""
    rows, of_source = {}, dict(data=[request.source])
    if verdict_rows.is_rows(request.source) and "val_data" not in request.settings:
        if request.source.endswith(".jsonl"):
            check_file(request.source)
        sizes = request.settings.get("sizes", ())
        rows = verdict_rows.made(request.source, sizes, os.path.join(request.folder, "data"))
        of_source = dict(data=[rows["train"]], val_data=rows["test"])
        if request.source.startswith(verdict_rows.GYM):
            of_source |= verdict_rows.settings_of(rows)
    base = of_source | request.settings
    if rows and request.source.startswith(verdict_rows.GYM):
        base.pop("sizes", None)  # they are the generator's
    m, t = registry.configs(request.preset, **base)
    if t.epochs:
        raise ValueError("--epochs makes no equal time; give --steps")
    data = registry.data_of(t, m.block_size)
    told = check_source(data, request) | dict(words=data.n_words)
    start, kept = start_seconds(request.jobs, t.device), {}
    for share, width in SHARES if request.seconds else SHARES[:1]:
        trial = dataclasses.replace(request, settings=dict(base))
        fewer = max(min(LEAST_STEPS, t.steps), round(t.steps * share))
        trial.settings["steps"] = fewer
        if width != 1:
            unit = math.lcm(*m.heads) * 2
            trial.settings["d_model"] = max(unit, round(m.d_model * width / unit) * unit)
            trial.settings["d_ff"] = round(m.d_ff * trial.settings["d_model"] / m.d_model)
        if width not in kept:
            arms, taken, counted, wall = arms_of(trial, data), {}, {}, {}
            for arm, settings in arms.items():
                am, at = registry.configs(request.preset, **settings)
                am, at = running.complete_configs(am, at, data)
                memory.check_enough(am, at)
                taken[arm], wall[arm] = step_seconds(am, at, data, request.jobs)
                counted[arm] = {name: variants.parameters(am)[name] for name in ("total", "blocks")}
            slower = max(1.0, *(wall[arm] / taken[arm] for arm in arms))
            kept[width] = arms, taken, counted, slower
        arms, taken, counted, slower = copy.deepcopy(kept[width])
        for settings in arms.values():
            settings["steps"] = trial.settings["steps"]
        plan = Plan(
            request, arms, told, equal_time(trial.settings["steps"], taken), taken, slower,
            start, request.seeds, {}, {}, counted, [], rows,
        )  # fmt: skip
        looks = [look for look in rule.LOOKS if look <= request.seeds]
        fitting = [n for n in looks if not request.seconds or plan.cost(n)[1] <= request.seconds]
        # fewer than five seeds are worth it only where nothing else fits
        if fitting and (fitting[-1] >= 5 or not request.seconds or request.seeds < 5):
            plan.seeds = fitting[-1]
            if share != 1:
                plan.notes.append(f"{fewer} steps instead of {t.steps}, to fit the budget")
            if width != 1:
                narrow = trial.settings["d_model"]
                plan.notes.append(f"d_model {narrow} instead of {m.d_model}, to fit the budget")
            return plan
    runs, least = plan.cost(5 if request.seeds >= 5 else request.seeds)
    wanted = f"{runs} runs of {console.plural(plan.steps['one']['steps'], 'step')}"
    raise ValueError(
        f"--budget {as_time(request.seconds)} cannot hold a verdict: five seeds are {wanted}, "
        f"{as_time(least)} on this machine; give that, or fewer --steps, or more --jobs"
    )


def read_plan(request: Request) -> Plan | None:
    """The Plan that a folder holds, or None; ValueError where it is of another request."""
    path = os.path.join(request.folder, "plan.json")
    if not os.path.exists(path):
        return None
    with console.one_line_errors(path, "is not the plan of a verdict"):
        with open(path, encoding="utf-8") as file:
            kept = json.load(file)
        was = kept.pop("request")
        plan = Plan(request, **kept)
    now = request.identity()
    for name, value in now.items():
        if was[name] != value:
            other = f"{request.folder} holds a verdict with another {name}"
            raise ValueError(f"{other}, {was[name]!r:.60}; give another --name")
    return plan


# ---------- runs ----------


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


def train(plan: Plan, cells: list[Cell], may_fail=False) -> None:
    """Train those of the cells that are not finished. Stopped after a signal, ValueError for a run
    that failed, unless it may. One at a time on a CPU they are trained in this process: what a
    process of its own imports takes longer than many a small run."""
    todo = [cell for cell in cells if not is_finished(cell.m, cell.t)]
    if not todo:
        return
    check.grid_data(todo)
    jobs = min(plan.request.jobs, len(todo))
    preset, device = plan.request.preset, todo[0].t.device
    own = bool(IN_PROCESS) and jobs == 1 and machine.pick_device(device).type == "cpu"
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
                failed, stopped = train_here(some[0], preset, told, plan.once)
            else:
                failed, stopped = pool.train_all(some, pool.slots(jobs, device), start)
        finally:
            plan.spent += time.monotonic() - began
            plan.save()
        if stopped:
            raise Stopped(stopped)
        if failed and not may_fail:
            cell, line = failed[0]
            raise ValueError(f"{cell} failed: {line}; the same command goes on")


class Once:
    """registry.data_of(), read once for the runs of one process that differ in nothing it asks: to
    read and tokenize 12,000 short rows takes as long as half of a small run."""

    def __init__(self) -> None:
        self.read, self.kept = registry.data_of, {}

    def __call__(
        self, t: configs.TrainConfig, block_size: int = 128, tokenizer: Any = None
    ) -> md.Data:
        if tokenizer is not None:  # of a run that goes on
            return self.read(t, block_size, tokenizer)
        key = repr((dataclasses.replace(t, lr=1.0, seed=0, out_dir="", name=""), block_size))
        if key not in self.kept:
            if len(self.kept) == 4:  # to tune and to report, at equal steps and equal time
                del self.kept[next(iter(self.kept))]
            self.kept[key] = self.read(t, block_size)
        return self.kept[key]  # train() makes its own of it, with the run's seed and state


IN_PROCESS: list = []  # the command's module, once it has handed itself over


def command_module() -> Any:
    """The command, which trains runs in this process."""
    return IN_PROCESS[0]


def train_here(cell: Cell, preset: str, told: str, once: Once) -> tuple[list, int | None]:
    """Train a cell in this process, what it prints into its folder → what pool.train_all() gives.
    `told` stands before the line that says what came of it; `once` reads the data."""
    os.makedirs(cell.folder, exist_ok=True)
    with open(os.path.join(cell.folder, "stdout.txt"), "a", encoding="utf-8") as out:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            # the verdict's page has the curves of all
            no_curve = mock.patch.object(command_module(), "draw_curve", lambda *run: None)
            with no_curve, mock.patch.object(registry, "data_of", once):
                code = command_module().main(cell.command(preset, {}))
    if code > 128:
        return [], code - 128
    good, line = cell.outcome(code)
    print(f"{told} {cell}: {line}", flush=True)
    return [] if good else [(cell, line)], None


def score(cell: Cell, metric: str) -> tuple[float, float]:
    """(score, tie-break) of a finished run, higher is better; minus infinity of one that failed."""
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
    if len(rates) >= len(FACTORS) + BEYOND:
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
        rates[arm] = [rounded(factor * t.lr) for factor in FACTORS]
    waiting = {arm: list(rates[arm]) for arm in plan.arms if arm not in plan.rates}
    while waiting:
        cells = {}
        for arm, which in waiting.items():
            for rate in which:
                for seed in TUNING_SEEDS:
                    cells[arm, rate, seed] = cell_of(plan, arm, "steps", seed, rate, True)
        train(plan, list(cells.values()), may_fail=True)
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


def check_same_data(plan: Plan, cells: list[Cell]) -> None:
    """ValueError for runs on data that has changed since others were trained, as a task's file."""
    if other_data(cells):
        changed = f"{plan.request.source} is not what earlier runs of {plan.request.folder} had"
        raise ValueError(f"{changed}; give another --name")


def too_long(plan: Plan, look: int, budgets: list[str]) -> str:
    """Why the budget does not reach to the next look; empty where it does."""
    if not plan.request.seconds:
        return ""
    left, slower = 0.0, []
    for budget in budgets:
        for (arm, _), cell in cells_of(plan, look, budget).items():
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


# ---------- the whole ----------


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


def checked(request: Request) -> Request:
    """The request with its name; ValueError for numbers that cannot work."""
    if not 2 <= request.n_layers <= 100:
        raise ValueError(f"--n_layers {request.n_layers} does not work; give from 2 to 100")
    if not 0 < request.margin < 1:
        raise ValueError(f"--margin {request.margin:g} does not work; give a number from 0 to 1")
    if request.jobs < 1:
        raise ValueError(f"--jobs {request.jobs} does not work; give at least 1")
    if request.seeds not in rule.LOOKS:
        looks = ", ".join(map(str, rule.LOOKS))
        raise ValueError(f"--seeds {request.seeds} is no look; give one of {looks}")
    if not request.name:
        stem = os.path.splitext(os.path.basename(os.path.normpath(request.source)))[0]
        typed = {k: v for k, v in request.settings.items()}
        parts = [re.sub(r"[^\w.=+-]+", "-", stem)]
        for key, value in typed.items():
            text = "+".join(map(str, value)) if isinstance(value, (tuple, list)) else str(value)
            parts.append(re.sub(r"[^\w.=+-]+", "-", f"{key}-{text}"))
        if request.n_layers != 4:
            parts.append(f"L{request.n_layers}")
        request = dataclasses.replace(request, name="_".join(parts)[:150])
    return request


def facts(plan: Plan) -> str:
    """What it will take, as lines, before it starts."""
    request = plan.request
    runs, seconds = plan.cost(plan.seeds, bool(plan.rates))
    looks = ", ".join(str(look) for look in rule.LOOKS if look <= plan.seeds)
    names = rule.names_of(request.n_layers)
    lines = [f"at most {runs} runs, {as_time(seconds)} on this machine; looks after {looks} seeds"]
    for arm, steps in plan.steps.items():
        n = plan.parameters[arm]
        lines.append(
            f"  {names[arm]}: {n['blocks']:,} parameters in its layers, {steps['steps']} steps, "
            f"{steps['time']} at equal time, {1000 * plan.step_seconds[arm]:.1f} ms a step"
        )
    biggest = 0
    for settings in plan.arms.values():
        m, t = registry.configs(request.preset, **settings)
        m = dataclasses.replace(m, vocab_size=m.vocab_size or plan.told["words"])
        biggest = max(biggest, sum(memory.step_memory(m, t, device="cpu").values()))
    lines[0] += f"; {max(1, biggest // 2**20):,.0f} MB a run for its step"
    lines += [f"  note: {note}" for note in plan.notes]
    return "\n".join(lines)


def prepared(request: Request) -> Plan:
    """The Plan of a request, that of its folder where there is one."""
    request = checked(request)
    plan = read_plan(request)
    if plan is None:
        return made_plan(request)
    looks = [look for look in rule.LOOKS if look <= request.seeds]
    fitting = [n for n in looks if not request.seconds or plan.cost(n)[1] <= request.seconds]
    plan.seeds = fitting[-1] if fitting else min(plan.seeds, looks[-1])
    plan.looks, plan.stopped_by = [], ""
    return plan


def verdict(source: str, dry_run=False, **options: Any) -> Verdict | None:
    """The Verdict on a task by its name or file, rows, a data set or `embedded`. `options` are
    those of Request, `budget` as a text ("20m"), and any setting of the model and the training.
    Trains in processes of their own; ValueError, a line, for what cannot be judged, Stopped after
    a signal."""
    if source.endswith(".py"):
        own_code.NAMED.add(source)  # to name it here is to let it be executed
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
    found, scores = carried_out(plan)
    made = Verdict(plan, found, scores)
    from minidepth_lab.show import verdict as page

    page.write(made)
    return made


def is_task(source: str) -> bool:
    """Whether a source is a depth task, by its name or as a file."""
    return source.endswith(".py") or registry.task(source) is not None
