"""The whole command: what its flags ask for is done here, or by what is imported only then."""

import contextlib
import dataclasses
import functools
import os
import sys

import torch

import minidepth as md
from minidepth_lab.base import configs, console, processes
from minidepth_lab.command import flags
from minidepth_lab.keep import checkpoints, naming, registry


def pick_preset(name, data=(), study=None, tokenizer=None):
    """The preset's name, and why it was taken. `report` is taken by itself only where its data and
    its tokenizer, as far as others are not named, can be had at once."""
    if name != "auto":
        return name, "as asked"
    if study and (own := registry.preset_of(study)):
        return own, f"the study {study} is about it"
    other = data and data[0] != "embedded" and not data[0].endswith(".jsonl")
    if other and registry.task(data[0]):
        return "tasks", f"{data[0]} is a depth task"
    if not torch.cuda.is_available():
        return "laptop", "no CUDA GPU found"
    found = f"{torch.cuda.device_count()} CUDA GPU found"
    wanted = []
    if not data:
        wanted.append((md.TrainConfig.data, "dataset"))
    if not tokenizer:
        wanted.append((configs.TrainConfig.tokenizer, "model"))
    if wanted:
        from minidepth_lab.rows import hub

        if why := hub.out_of_reach(wanted):
            return "laptop", f"{found}, but not the report's data: {console.one_line(why, 200)}"
    return "report", found


def preset_of(call):
    """pick_preset() of what the flags name."""
    sources = call.changes.get("data", ()), call["study"], call.changes.get("tokenizer")
    return pick_preset(call["preset"] or "auto", *sources)


def ask(call):
    """Ask what the flags ask of trained runs."""
    if call.doing == "sample":
        from minidepth_lab.command import sample

        return sample.sample(call)
    from minidepth_lab.command import trained

    return trained.look(call)


def resume(call):
    """Go on with a run."""
    from minidepth_lab.command import one_run

    try:
        return one_run.resume(call["resume"], call.changes, call.line, call["dry_run"])
    except checkpoints.Finished:
        one_run.draw_lost(call["resume"])
        raise


def train(call):
    """Train a run, or all that a study or several values of flags make; say what it would be, or
    how long it takes."""
    from minidepth_lab.command import one_run

    changes, axes = call.changes, call.axes
    if not call["bench"]:
        flags.check_place("out_dir", changes.get("out_dir", configs.TrainConfig.out_dir))
    preset, why = preset_of(call)
    if md.processes()[0] == 0:
        print(f"preset {preset}: {why}")
    if "steps" in axes:
        most = max(axes.get("epochs") or [registry.configs(preset)[1].epochs])
        if most:
            raise ValueError(f"--steps has no effect with --epochs {most}; give --epochs 0 too")
    if call["study"] or call["match_params"] is not None or call.varied:
        from minidepth_lab.sweep import plan

        cells, study = plan.planned(call.flags, preset, axes)
        if study or len(cells) > 1:
            return plan.train_planned(call.flags, preset, axes, cells, study, call.line)
        changes = cells[0][1]
    m, t = registry.configs(preset, **changes)
    one_run.check_machine(m, t)
    if call["bench"]:
        from minidepth_lab.measure import bench

        return bench.show_bench(m, t, call["against"])
    t.name = t.name or naming.run_name(preset, changes)
    if call["dry_run"]:
        return one_run.try_out(m, t)
    return one_run.run_training(m, t, call.line, draws=call.draws)


# the flag that says what is done → who does it; without one of them it is train()
ACTIONS = dict.fromkeys(flags.LOOKS, ask) | dict(resume=resume)


def run_command(arguments, draws):
    """Do what the flags say; the exit code, None for 0. `draws`, whether a run draws its curve."""
    asks = any(word.partition("=")[0] == "--verdict" for word in arguments)
    if asks or "--compare" in arguments:  # which have flags of their own
        from minidepth_lab.command import verdict

        if asks or verdict.wants_groups(arguments):
            # its page has the curves of all runs
            return verdict.main(arguments, functools.partial(main, draws=False))
    processes.check_launch()
    call = dataclasses.replace(flags.read(arguments), draws=draws)
    return ACTIONS.get(call.doing, train)(call)


def main(arguments=None, draws=True):
    """The exit code: 2 with one line on stderr for what a user can put right, 1 for divergence."""
    with contextlib.suppress(AttributeError):  # not a real stream in a notebook
        sys.stdout.reconfigure(line_buffering=True, errors="backslashreplace")
    try:
        return run_command(sys.argv[1:] if arguments is None else arguments, draws) or 0
    except ValueError as error:
        message, code = error, 2
    except BrokenPipeError:  # `| head` has read enough; what Python flushes at its end fails, too
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + 13  # as shells say of what a broken pipe has ended
    except OSError as error:  # a full disk, a folder that may not be written
        where = f"{error.filename}: " if error.filename else ""
        message, code = f"{where}{error.strerror or error}; what was saved before is whole", 2
    except md.Diverged as error:
        message, code = f"{error}; {console.DIVERGED}", 1
    except (MemoryError, RuntimeError) as error:
        if not console.is_out_of_memory(error):
            raise
        advice = "give a smaller --batch_size, --block_size, --d_model or --sizes"
        message, code = f"the memory is full: {str(error) or 'nothing more is known'}; {advice}", 2
    except KeyboardInterrupt:
        message, code = "interrupted", 130
    console.complain(message)
    return code
