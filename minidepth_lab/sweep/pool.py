"""Many runs: one for each combination of values, or for each row of a study, in processes of their
own. What is finished is skipped, what was stopped goes on, what fails is told at the end, and the
others make a table and figures. A run is a Cell (cell.py), the table is made in table.py.

    python train.py --n_layers 1 2 4 --seed 0 1 2     nine runs and runs/grid_…/summary.md
    python train.py --study depth --seed 0 1 2 --jobs 2

Ctrl-C, SIGTERM and SIGHUP are handed on once to the runs under way, which save themselves; no
others begin, and the exit code is 128 and the signal's number, 130 after Ctrl-C. A second Ctrl-C or
SIGTERM kills them.
"""

import concurrent.futures
import os
import pathlib
import queue
import threading
from concurrent.futures import ThreadPoolExecutor

import torch

import minidepth as md
from minidepth_lab.base import console
from minidepth_lab.keep import check, naming, registry, trackers
from minidepth_lab.measure.cell import (
    POSIX,
    Cell,
    grid_name,
    is_finished,
    other_data,
    typed_preset,
)
from minidepth_lab.models import compiling, memory
from minidepth_lab.show import curve
from minidepth_lab.sweep import estimate
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
    gives → [(cell, why)] that failed, and the number of the signal that stopped all, or None.

    A thread for each slot starts a run and waits for it. The main thread, which alone is told of
    signals, prints what has ended and hands signals on.
    """
    from tqdm import tqdm

    slots_left = queue.SimpleQueue()
    for slot in free:
        slots_left.put(slot)
    under_way, lock = [], threading.Lock()  # no run may begin while the others are told to stop
    stopped, failed, n_ended, handed_on = threading.Event(), [], 0, 0

    def train(cell):
        """(whether it is finished, what to print of it), or None if it has not begun."""
        slot = slots_left.get()
        try:
            with lock:
                if stopped.is_set() or noted:
                    return None
                child = start(cell, slot)
                under_way.append(child)
            code = child.wait()
            with lock:
                under_way.remove(child)
            return cell.outcome(code)
        except (OSError, ValueError) as error:
            return False, str(error)
        except BaseException:  # a fault of ours: nothing more begins
            stopped.set()
            raise
        finally:
            slots_left.put(slot)

    cost = sum(cell.cost for cell in cells)
    bar = tqdm(total=cost, disable=None, unit_scale=True, unit="layer")
    with console.noted_signals() as noted, bar, ThreadPoolExecutor(len(free)) as threads:
        waiting = {threads.submit(train, cell): cell for cell in cells}
        try:
            while waiting:
                ended, _ = concurrent.futures.wait(waiting, PAUSE, "FIRST_COMPLETED")
                if len(noted) > handed_on:
                    handed_on = len(noted)
                    with lock:
                        hand_on(under_way, handed_on)
                for future in ended:
                    cell, outcome = waiting.pop(future), future.result()
                    if outcome is None or (noted and not outcome[0]):
                        continue  # one that was stopped has not failed
                    good, line = outcome
                    if not good:
                        failed.append((cell, line))
                    n_ended += 1
                    bar.write(f"[{n_ended}/{len(cells)}] {cell}: {line}")
                    bar.update(cell.cost)
        finally:  # whatever went wrong here, nothing trains on unseen
            stopped.set()
            with lock:
                hand_on(under_way, 1)
    return failed, noted[0] if noted else None


def train_sweep(preset, planned, command, jobs, yes, dry_run, study, given):
    """Train every (labels, settings) of `planned` and write their summary, with the `command` that
    was typed; the exit code. `study` is the module that they are the rows of, or None, and `given`
    the settings that its rows were made with. ValueError, before anything is trained, for settings
    that cannot work and for a folder that holds a different run."""
    if len(planned) > 200 and not yes:
        raise ValueError(f"{len(planned)} runs are more than 200; give --yes if you mean it")
    if jobs < 1:
        raise ValueError(f"--jobs {jobs} does not work; give at least 1")
    if md.processes()[1] > 1:
        raise ValueError("several values of a flag make a grid, which runs without torchrun")
    cells = [Cell(labels, s, *registry.configs(preset, **s)) for labels, s in planned]
    for cell in cells:
        if cell.t.fsdp:
            from minidepth_lab.models import fsdp

            fsdp.check_fsdp(cell.t)
        memory.check_enough(cell.m, cell.t)
        if cell.t.compile:
            compiling.check_compile(cell.t)
        trackers.check_tracker(cell.t)
    name = cells[0].t.name
    if not name and study:
        name = naming.run_name(f"study_{pathlib.Path(study.__file__).stem}_{preset}", given)
    elif not name:
        name = grid_name(preset, cells)
    for cell in cells:
        cell.t.name = os.path.join(cell.t.name, naming.run_name(preset, cell.settings))
    todo = [cell for cell in cells if not is_finished(cell.m, cell.t)]
    check.grid_data(todo)
    jobs = max(1, min(jobs, len(todo)))  # no more than there are runs
    print(f"{len(cells)} runs, {len(cells) - len(todo)} finished before, {jobs} at a time")
    if dry_run:
        estimate.show(todo, jobs)
        return 0
    for cell in cells:
        if cell not in todo and not os.path.exists(os.path.join(cell.folder, "curve.png")):
            with check.drawn("curve.png"):  # which a kill has cost
                curve.draw_lost(cell.folder)
    typed = typed_preset(preset, study)

    def start(cell, slot):
        return cell.start(*typed, os.environ | slot)

    failed, stopped = train_all(todo, slots(jobs, cells[0].t.device), start)
    if stopped:
        console.complain("interrupted; the same command goes on")
        return 128 + stopped
    lost = [cell for cell, _ in failed]
    good = [cell for cell in cells if cell not in lost]
    for one, other in other_data(good):
        said = f"{other} was not trained on the data of {one}, though both name the same"
        advice = f"delete {other.folder} or {one.folder} and repeat the command"
        console.complain(f"{said}; {advice}")
    if good:
        summarize(os.path.join(cells[0].t.out_dir, name), good, command, study)
    for cell, line in failed:
        console.complain(f"{cell} failed: {line}")
    return 1 if failed else 0
