"""Many runs: one for each combination of values, or for each row of a study, in processes of their
own. What is finished is skipped, what was stopped goes on, what fails is told at the end, and the
others make a table and figures. A run is a Cell (cell.py), the table is made in table.py.

    python train.py --n_layers 1 2 4 --seed 0 1 2     nine runs and runs/grid_…/summary.md
    python train.py --study depth --seed 0 1 2 --jobs 2

Ctrl-C, SIGTERM and SIGHUP are handed on once to the runs under way, which save themselves; no
others begin, and the exit code is 128 and the signal's number, 130 after Ctrl-C. A second Ctrl-C or
SIGTERM kills them.
"""

import os
import pathlib
import sys
import time

import torch

import minidepth as md
from minidepth_lab import check, compiling, fsdp, registry
from minidepth_lab.sweep.cell import (
    POSIX,
    Cell,
    grid_name,
    is_finished,
    other_data,
    typed_preset,
)
from minidepth_lab.sweep.table import summarize

PAUSE = 0.1  # seconds between two looks at the runs under way


def hand_on(children, n_signals):
    """Tell the runs under way to stop: the first time so that they save, then at once."""
    for child in children:
        if n_signals > 1:
            child.kill()
        elif POSIX:  # a Windows console has told them itself, and to terminate there is to kill
            child.terminate()


def visible_gpus():
    """The names of the GPUs that this process may use, as CUDA_VISIBLE_DEVICES spells them."""
    listed = os.environ.get("CUDA_VISIBLE_DEVICES")
    if listed is not None and torch.cuda.device_count():
        return [name.strip() for name in listed.split(",")][: torch.cuda.device_count()]
    return [str(i) for i in range(torch.cuda.device_count())]


def slots(jobs, device):
    """What the environment of each of the runs under way at a time has of its own, one dict each:
    a GPU where there are any, in turns, and on CPUs a share of the cores."""
    if jobs == 1:
        return [{}]  # all GPUs, all cores
    # threads of two runs that wait for the same core slow both down manifold
    threads = str(max(1, torch.get_num_threads() // jobs))
    own = [dict(OMP_NUM_THREADS=threads) for _ in range(jobs)]
    gpus = visible_gpus() if device in ("auto", "cuda") else []
    if gpus:
        for i, each in enumerate(own):
            each["CUDA_VISIBLE_DEVICES"] = gpus[i % len(gpus)]
    return own


def train_all(cells, free, start):
    """Train the cells, one in each slot of `free` at a time, in the process that start(cell, slot)
    gives → [(cell, why)] that failed, and the number of the signal that stopped all, or None."""
    from tqdm import tqdm

    waiting, running, failed, handed_on = list(cells), {}, [], 0
    free, used = list(free), {}  # used: the slot of each process
    cost = sum(cell.cost for cell in cells)
    bar = tqdm(total=cost, disable=None, unit_scale=True, unit="layer")

    def ended(cell, good, line):
        if not good:
            failed.append((cell, line))
        number = len(cells) - len(waiting) - len(running)
        bar.write(f"[{number}/{len(cells)}] {cell}: {line}")
        bar.update(cell.cost)

    with md.noted_signals() as noted, bar:
        try:
            while running or (waiting and not noted):
                while waiting and free and not noted:
                    cell = waiting.pop(0)
                    try:
                        child = start(cell, free[0])
                    except (OSError, ValueError) as error:
                        ended(cell, False, str(error))
                        continue
                    running[child], used[child] = cell, free.pop(0)
                if len(noted) > handed_on:
                    handed_on = len(noted)
                    hand_on(running, handed_on)
                time.sleep(PAUSE)
                for child in [child for child in running if child.poll() is not None]:
                    cell = running.pop(child)
                    free.append(used.pop(child))
                    good, line = cell.outcome(child.returncode)
                    if good or not noted:  # one that was stopped has not failed
                        ended(cell, good, line)
        finally:  # whatever went wrong here, nothing trains on unseen
            hand_on(running, 1)
            for child in running:
                child.wait()
    return failed, noted[0] if noted else None


def grid(preset, cells, jobs=1, yes=False, dry_run=False, study=None, given=None):
    """Train every (labels, settings) of cells and write their summary; the exit code. `study` is
    the module that they are the rows of, if any, and `given` the settings that its rows were made
    with. ValueError, before anything is trained, for settings that cannot work and for a folder
    that holds a different run."""
    if len(cells) > 200 and not yes:
        raise ValueError(f"{len(cells)} runs are more than 200; give --yes if you mean it")
    if jobs < 1:
        raise ValueError(f"--jobs {jobs} does not work; give at least 1")
    if md.processes()[1] > 1:
        raise ValueError("several values of a flag make a grid, which runs without torchrun")
    cells = [Cell(labels, s, *registry.configs(preset, **s)) for labels, s in cells]
    for cell in cells:
        if cell.t.fsdp:
            fsdp.check(cell.t)
        check.memory(cell.m, cell.t)
        if cell.t.compile:
            compiling.check(cell.t)
    name = cells[0].t.name
    if not name and study:
        name = md.run_name(f"study_{pathlib.Path(study.__file__).stem}_{preset}", given or {})
    elif not name:
        name = grid_name(preset, cells)
    for cell in cells:
        cell.t.name = os.path.join(cell.t.name, md.run_name(preset, cell.settings))
    todo = [cell for cell in cells if not is_finished(cell.m, cell.t)]
    check.grid_data(todo)
    print(f"{len(cells)} runs, {len(cells) - len(todo)} finished before, {jobs} at a time")
    if dry_run:
        print("\n".join(str(cell) for cell in todo))
        return 0
    typed = typed_preset(preset, study)

    def start(cell, slot):
        return cell.start(*typed, os.environ | slot)

    failed, stopped = train_all(todo, slots(max(1, min(jobs, len(todo))), cells[0].t.device), start)
    if stopped:
        print("train.py: interrupted; the same command goes on", file=sys.stderr)
        return 128 + stopped
    lost = [cell for cell, _ in failed]
    good = [cell for cell in cells if cell not in lost]
    for one, other in other_data(good):
        said = f"{other} was not trained on the data of {one}, though both name the same"
        advice = f"delete {other.folder} or {one.folder} and repeat the command"
        print(f"train.py: {said}; {advice}", file=sys.stderr)
    if good:
        summarize(os.path.join(cells[0].t.out_dir, name), good, study)
    for cell, line in failed:
        print(f"train.py: {cell} failed: {line}", file=sys.stderr)
    return 1 if failed else 0
