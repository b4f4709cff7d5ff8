"""What a verdict trains: its arms, their steps at equal time, and how much fits into a budget.

A Plan is measured once and kept in OUT_DIR/NAME/plan.json, so that the same command goes on with
the same plan.
"""

import copy
import dataclasses
import json
import math
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable

import torch

import minidepth as md
from minidepth_lab.base import configs, console, machine
from minidepth_lab.keep import checkpoints, registry, running
from minidepth_lab.measure import verdict as rule
from minidepth_lab.measure.forecast import as_time, training_of
from minidepth_lab.models import memory, variants
from minidepth_lab.sweep import verdict_rows
from minidepth_lab.sweep.verdict_data import check_source

TUNING_SEEDS = (1000, 1001)  # never among the reported ones, which count from 0
FACTORS = (1 / 3, 1.0, 3.0)  # of the preset's learning rate
BEYOND = 2  # more of them at most, where the best lies at an end
SAME_TIME = 1.15  # step counts nearer than this are one run
LEAST_STEPS = 50
BESIDE = 1.0  # seconds of a run that reads, draws and saves
# (share of the steps, share of the width) that a budget may come down to, the first that fits
SHARES = ((1, 1), (0.5, 1), (0.5, 0.5), (0.25, 1), (0.25, 0.5))


# ---------- what is asked for ----------


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
    command: Callable | None = None  # trains a run in this process: its arguments → the exit code

    @property
    def folder(self):
        return os.path.join(self.out_dir, self.name)

    @property
    def rows_folder(self):
        return os.path.join(self.folder, "data")

    def default_name(self):
        """Of the source and the settings."""
        parts = [os.path.splitext(os.path.basename(os.path.normpath(self.source)))[0]]
        for key, value in self.settings.items():
            text = "+".join(map(str, value)) if isinstance(value, (tuple, list)) else str(value)
            parts.append(f"{key}-{text}")
        if self.n_layers != 4:
            parts.append(f"L{self.n_layers}")
        return "_".join(re.sub(r"[^\w.=+-]+", "-", part) for part in parts)[:150]

    def identity(self):
        """What makes it another verdict; how long it may take and where it runs does not."""
        kept = ("source", "preset", "settings", "n_layers", "margin")
        return json.loads(json.dumps({name: getattr(self, name) for name in kept}))


def seconds_of(text: str) -> float:
    """'20m' → 1200, '1h30m' → 5400, '90' or '90s' → 90; ValueError for what is no time."""
    found = re.fullmatch(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s?)?", text)
    if not text or not found:
        raise ValueError(f"--budget {text!r:.40} is no time; give 20m, 90s or 1h30m")
    hours, minutes, seconds = (float(part or 0) for part in found.groups())
    return 3600 * hours + 60 * minutes + seconds


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
    return dataclasses.replace(request, name=request.name or request.default_name())


# ---------- the arms ----------


def arms_of(request: Request, data: md.Data) -> dict[str, dict]:
    """{arm: its settings}, without rate, steps and seed."""
    deep, base = request.n_layers, dict(request.settings)
    one = base | dict(n_layers=1, n_loops=1)
    m, _ = registry.configs(request.preset, **one)
    stacked = dataclasses.replace(m, n_layers=deep, n_heads=m.heads[0])
    wide = as_wide(m, variants.parameters(stacked)["layers"])
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
    while variants.parameters(at(n))["layers"] < wanted:
        n += 1
    return min(
        (at(max(1, n - 1)), at(n)),
        key=lambda wide: abs(variants.parameters(wide)["layers"] - wanted),
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
            training = training_of(m, t)
            data = dataclasses.replace(data, state=dict(data.state))
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


# ---------- the plan ----------


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
    parameters: dict  # {arm: {total, layers}}
    notes: list
    rows: dict  # {train, tune, test: file} of rows that were split here
    spent: float = 0.0  # seconds, of all sessions
    looks: list = dataclasses.field(default_factory=list)  # a line after each
    stopped_by: str = ""  # why it ended undecided, if not for its seeds

    @property
    def path(self):
        return os.path.join(self.request.folder, "plan.json")

    def save(self):
        kept = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        kept["request"] = self.request.identity()
        os.makedirs(self.request.folder, exist_ok=True)
        checkpoints.write_json(self.path, kept)

    def seconds(self, arm, budget):
        """What a run takes, its evaluations and its start too."""
        steps = self.steps[arm][budget] * self.step_seconds[arm]
        return self.start + 1.2 * self.slower * steps

    def same_run(self, arm):
        """Whether its run at equal time is that at equal steps."""
        return self.steps[arm]["time"] == self.steps[arm]["steps"]

    def cost(self, seeds, tuned=False):
        """(runs, seconds on this machine) at most, but for learning rates beyond the three."""
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

    def most_seeds(self):
        """How many seeds fit into the budget, of those that are looked at; 0 where none do."""
        asked = self.request
        looks = [look for look in rule.LOOKS if look <= asked.seeds]
        fits = [n for n in looks if not asked.seconds or self.cost(n)[1] <= asked.seconds]
        return max(fits, default=0)


def equal_time(steps: int, seconds: dict[str, float]) -> dict[str, dict]:
    """{arm: {"steps": as many for all, "time": as many as take as long as the slowest arm's}}"""
    slowest = max(seconds.values())
    made = {}
    for arm, each in seconds.items():
        longer = round(steps * slowest / each)
        made[arm] = dict(steps=steps, time=longer if longer > SAME_TIME * steps else steps)
    return made


def of_source(request: Request) -> tuple[dict, dict]:
    """(files of rows that were split here, the settings that the source and the request give)"""
    source, typed = request.source, dict(request.settings)
    if not verdict_rows.is_rows(source) or "val_data" in typed:
        return {}, dict(data=[source]) | typed
    rows = verdict_rows.made(source, typed.get("sizes", ()), request.rows_folder)
    settings = dict(data=[rows["train"]], val_data=rows["test"])
    if source.startswith(verdict_rows.GYM):
        typed.pop("sizes", None)  # they are the generator's
        settings |= verdict_rows.settings_of(rows)
    return rows, settings | typed


def narrower(settings: dict, m: configs.ModelConfig, width: float) -> dict:
    """The settings of a model of this share of the width."""
    if width == 1:
        return settings
    unit = math.lcm(*m.heads) * 2
    d_model = max(unit, round(m.d_model * width / unit) * unit)
    return settings | dict(d_model=d_model, d_ff=round(m.d_ff * d_model / m.d_model))


def measured(request: Request, data: md.Data) -> dict:
    """The arms of a request, their parameters, and how long a step of each takes here."""
    arms, taken, wall, counted = arms_of(request, data), {}, {}, {}
    for arm, settings in arms.items():
        m, t = registry.configs(request.preset, **settings)
        m, t = running.complete_configs(m, t, data)
        memory.check_enough(m, t)
        taken[arm], wall[arm] = step_seconds(m, t, data, request.jobs)
        counted[arm] = {name: variants.parameters(m)[name] for name in ("total", "layers")}
    slower = max(1.0, *(wall[arm] / taken[arm] for arm in arms))
    return dict(arms=arms, step_seconds=taken, slower=slower, parameters=counted)


def made_plan(request: Request) -> Plan:
    """A new Plan, measured on this machine, that fits the budget; ValueError for data that no
    verdict can be given on, or a budget that cannot hold one."""
    rows, base = of_source(request)
    m, t = registry.configs(request.preset, **base)
    if t.epochs:
        raise ValueError("--epochs makes no equal time; give --steps")
    data = registry.data_of(t, m.block_size)
    told = check_source(data, request.source, request.margin, request.repeats, t.eval_problems)
    told["words"] = data.n_words
    start, of_width = start_seconds(request.jobs, t.device), {}
    for share, width in SHARES if request.seconds else SHARES[:1]:
        settings = narrower(base, m, width)
        if width not in of_width:
            trial = dataclasses.replace(request, settings=settings)
            of_width[width] = measured(trial, data)
        steps = max(min(LEAST_STEPS, t.steps), round(t.steps * share))
        made = copy.deepcopy(of_width[width])
        for arm in made["arms"].values():
            arm["steps"] = steps
        plan = Plan(
            request, told=told, steps=equal_time(steps, made["step_seconds"]), start=start,
            seeds=request.seeds, rates={}, tried={}, notes=[], rows=rows, **made,
        )  # fmt: skip
        most = plan.most_seeds()
        # fewer than five seeds are worth it only where nothing else fits
        if most and (most >= 5 or not request.seconds or request.seeds < 5):
            plan.seeds = most
            if share != 1:
                plan.notes.append(f"{steps} steps instead of {t.steps}, to fit the budget")
            if width != 1:
                narrow = f"d_model {settings['d_model']} instead of {m.d_model}"
                plan.notes.append(f"{narrow}, to fit the budget")
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


def prepared(request: Request) -> Plan:
    """The Plan of a request, that of its folder where there is one."""
    request = checked(request)
    plan = read_plan(request)
    if plan is None:
        there = os.path.exists(request.folder)
        try:
            return made_plan(request)
        except ValueError:
            if not there:  # what is refused leaves no copies of somebody's rows
                shutil.rmtree(request.folder, ignore_errors=True)
            raise
    sizes = request.settings.get("sizes", ())
    if plan.rows and verdict_rows.have_changed(request.source, sizes, request.rows_folder):
        changed = f"{request.source} is not what {request.folder} was begun with"
        raise ValueError(f"{changed}; give another --name")
    plan.seeds = plan.most_seeds() or min(plan.seeds, request.seeds)
    plan.looks, plan.stopped_by = [], ""
    return plan


def facts(plan: Plan) -> str:
    """What it will take, as lines, before it starts."""
    request = plan.request
    runs, seconds = plan.cost(plan.seeds, bool(plan.rates))
    looks = ", ".join(str(look) for look in rule.LOOKS if look <= plan.seeds)
    names = rule.names_of(request.n_layers)
    lines = [f"at most {runs} runs, {as_time(seconds)} on this machine; looks after {looks} seeds"]
    if not plan.rates:
        beyond = BEYOND * len(TUNING_SEEDS) * len(plan.arms)
        lines.append(f"  and up to {beyond} more, where the best learning rate is at an end")
    for arm, steps in plan.steps.items():
        n = plan.parameters[arm]
        lines.append(
            f"  {names[arm]}: {n['layers']:,} parameters in its layers, {steps['steps']} steps, "
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
