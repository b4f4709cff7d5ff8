"""One run: it is trained, tried out, or gone on with, and says at its end what it has learned."""

import contextlib
import dataclasses
import json
import os
import shlex

import minidepth as md
from minidepth_lab.base import console, machine, processes
from minidepth_lab.command import facts, flags
from minidepth_lab.keep import check, checkpoints, registry, running
from minidepth_lab.measure import sampling
from minidepth_lab.rows import files


def check_machine(m, t, resumed=False):
    """Raise ValueError, a line, for what this machine or so many processes cannot train."""
    machine.check_batch(t)
    from minidepth_lab.models import memory

    if t.fsdp:
        from minidepth_lab.models import fsdp

        fsdp.check_fsdp(t, resumed)
    if t.compile:
        from minidepth_lab.models import compiling

        compiling.check_compile(t)
    if t.report_to != "none":
        from minidepth_lab.keep import trackers

        trackers.check_tracker(t)
    memory.check_enough(m, t)


def weights_to_begin_with(t):
    """{name: tensor} of the weights to begin with, where minidepth.py alone does not read them:
    those of a GPT-2. Print where they come from."""
    which = f"weights to begin with: {t.init_from}"
    weights = None
    if checkpoints.is_run(t.init_from):
        which = checkpoints.describe_weights(t.init_from) or which
    else:
        from minidepth_lab.keep import export

        weights = export.from_gpt2(t.init_from)
    if md.processes()[0] == 0:
        print(which)
    return weights


def run_training(m, t, command, resume=False, changed=(), draws=True):
    """Load the data, print the facts, train, draw, answer; the exit code. `command` and `changed`
    as train() has them."""
    first = md.processes()[0] == 0  # under torchrun one process speaks
    folder = os.path.join(t.out_dir, t.name)
    if not resume:  # train() asks this too, but only after the data has been loaded for it
        checkpoints.check_new(folder)
    else:
        check_kept(folder, t.steps)
    data = registry.data_of(
        t, m.block_size, checkpoints.saved_tokenizer(folder) if resume else None
    )
    if resume:
        check_same_data(folder, data)
    m, t = running.complete_configs(m, t, data)
    if first:
        facts.print_facts(m, t, data)
    begun = checkpoints.has_checkpoint(folder)
    weights = weights_to_begin_with(t) if t.init_from and not begun else None
    told = None
    if first and t.report_to != "none":
        from minidepth_lab.keep import trackers

        told = trackers.Told(m, t)
    together = processes.connected(t) if md.processes()[1] > 1 else contextlib.nullcontext()
    with together:
        try:
            run = running.train(
                m, t, data, resume, command, changed=changed,
                weights=weights, tell=told,
            )  # fmt: skip
        except BrokenPipeError:  # python train.py | head
            go_on = f"go on with --resume {shlex.quote(folder)}"
            raise ValueError(f"nobody reads what this run prints any more; {go_on}") from None
    if told:
        told.finish()
    if first and run.log and draws:
        draw_curve(run, t)
    if first and run.finished:
        if "task" in data.facts:
            show_accuracy(run.log[-1])
        if "val_loss_by_loops" in run.log[-1]:
            print(f"loss by loops: {listed(run.log[-1]['val_loss_by_loops'], 4)}")
        if problems := data.problems[: t.eval_problems]:
            show_answers(run, problems)
            if shares := run.log[-1].get("accuracy_by_source"):
                print(f"answer accuracy by source: {listed(shares, 3)}")
        if which := checkpoints.describe_weights(run.dir):
            print(which)
        files = (
            "curve.png",
            "log.jsonl",
            checkpoints.LAST,
            checkpoints.BEST,
        )  # of a run, what one looks at
        written = [name for name in files if os.path.exists(os.path.join(run.dir, name))]
        print(f"wrote {run.dir}: {', '.join(written)}")
    return 0 if run.finished else 130


def check_kept(folder, steps):
    """ValueError for a run that is finished but has no checkpoint any more: it would begin anew."""
    if checkpoints.has_checkpoint(folder):
        return
    done, over = 0, False
    with contextlib.suppress(OSError, ValueError, KeyError, IndexError):
        row = last_row(folder)
        done, over = row["step"], checkpoints.is_over([row], steps)
    if over:
        raise checkpoints.Finished(f"{folder} is finished: {done} of {steps} steps are done")


def last_row(folder):
    """The last record of a run's log; an OSError, ValueError or IndexError where there is none."""
    with open(os.path.join(folder, "log.jsonl"), encoding="utf-8") as f:
        return json.loads(f.readlines()[-1])


SAID = ("accuracy", "guess", "shortcut")  # said by itself, or known without a model


def show_accuracy(row):
    """Print the accuracy of a task that the log's last record has, and by what it is told apart:
    "by hops: 1 1.000, 2 0.998"; and in the same way what else was measured of it."""
    print(f"accuracy {row['accuracy']:.3f} on the test split")
    for size, by_value in row.get("accuracy_by", {}).items():
        print(f"by {size}: {listed({v: part['accuracy'] for v, part in by_value.items()}, 3)}")
        parts = list(by_value.values())
        for name in parts[0] if parts else ():
            numbers = [part.get(name) for part in parts]
            if name not in SAID and all(isinstance(number, float) for number in numbers):
                measured = listed(dict(zip(by_value, numbers)), 3)
                print(f"by {size}, {name.replace('_', ' ')}: {measured}")


def listed(by_value, digits):
    """{value: number} as "1 1.000, 2 0.998"; of a long one, which log.jsonl has whole, what stands
    at powers of two and at the end."""
    values = list(by_value)
    if len(values) > 24:
        powers = [str(2**k) for k in range(20)]
        values = [value for value in values if value in powers or value == values[-1]]
    return ", ".join(f"{value} {by_value[value]:.{digits}f}" for value in values)


def show_answers(run, problems):
    """Print one held-out problem with the model's answer, and the accuracy over all asked."""
    p = max(problems, key=lambda problem: problem.get("steps", 0))
    text = sampling.answer_texts(run.model, run.tokenizer, [p])[0]
    question = p["messages"][-1]["content"]
    print(console.visible(f"\nheld-out problem: {question}\nmodel: {text.strip()}"))
    print(console.visible(f"right answer: {p['answer']}\n"))
    last = run.log[-1]
    guessing = f", guessing {last['guess']:.3f}" if "guess" in last else ""
    n = f"{len(problems)} held-out problems"
    print(f"answer accuracy {last['accuracy']:.3f} on {n}{guessing}")


def draw_curve(run, t):
    """Draw curve.png, with the laboratory's figures; no error there takes the run with it."""

    with check.drawn("curve.png"):
        from minidepth_lab.show import curve

        curve.draw_curve(run, t)


def draw_lost(folder):
    """Draw the curve that a kill has cost a finished run."""

    if md.processes()[0] == 0 and not os.path.exists(os.path.join(folder, "curve.png")):
        with check.drawn("curve.png"):
            from minidepth_lab.show import curve

            curve.draw_lost(folder)


def try_out(m, t):
    """Print the facts of a run that is not trained, with those of its data if none of it is to
    come from a hub."""
    if md.processes()[0]:
        return  # under torchrun one process speaks
    checkpoints.check_new(os.path.join(t.out_dir, t.name))
    from minidepth_lab.rows import sources

    check.files(t)
    if sources.away(t):
        check.its_tokenizer(t)
        if t.loader:
            check.its_loader(t)
        facts.print_facts(m, t, measured=True)
        return
    data = registry.data_of(t, m.block_size)
    facts.print_facts(*running.complete_configs(m, t, data), data, measured=True)


def longer(folder, before, t, given):
    """(the settings that a run goes on with, [the names of those that are others now], which those
    are, in words). `t` has what was `given`, names of flags."""
    if "steps" in given and before.epochs:
        raise ValueError(f"{folder} counts epochs, {before.epochs} of them; give --epochs")
    if "epochs" in given and not before.epochs:
        raise ValueError(f"{folder} counts steps, {before.steps} of them; give --steps")
    lives_on = any(getattr(t, name) != getattr(before, name) for name in ("steps", "epochs"))
    if lives_on and not before.lr_steps and "lr_steps" not in given:
        t = dataclasses.replace(t, lr_steps=before.steps)  # no jump of the rate
    t = t.validate()
    changed = [n for n in checkpoints.LIFE if getattr(t, n) != getattr(before, n)]
    if "epochs" in changed:  # from which the data makes them
        changed.append("steps")
    if changed and not checkpoints.has_checkpoint(folder):
        anew = f"begin a new run with its weights: --init_from {shlex.quote(folder)}"
        raise ValueError(f"{folder} has no checkpoint to go on from; {anew}")
    words = []
    for name in changed:
        if name in ("steps", "epochs") and getattr(t, name) != getattr(before, name):
            words.append(f"{getattr(t, name)} {name} instead of {getattr(before, name)}")
        elif name in ("keep", "stop_after"):  # lr_steps is told by the learning rate
            words.append(f"{name} {getattr(t, name)} instead of {getattr(before, name)}")
    return t, changed, ", ".join(words)


def checkpoint_of(folder):
    """(steps done, records of the log) in the checkpoint that a run goes on from, before the first
    one (0, []). The log.jsonl may be behind it, as a run that is stopped saves without evaluating.
    """

    def known(state):
        return int(state["step"]), list(state["log"])

    # of a damaged one it is told where the run goes on
    state = checkpoints.newest_state(folder, known, lambda line: None, put_aside=False)
    return known(state) if state else (0, [])


def check_unfinished(folder, t, done, log, changed):
    """ValueError where nothing is left to do, before anything is said of it; but for --steps that
    are fewer in the words of train(), which asks this too, once it has the data."""
    if "epochs" in changed:
        return  # only the data tells how many steps they are
    if done >= t.steps and "steps" in changed:
        too_few = f"--steps {t.steps} is too few: {done} steps of {folder} are done already"
        raise ValueError(f"{too_few}; give more than {done}")
    if finished := checkpoints.nothing_left(folder, t, done, log):
        raise checkpoints.Finished(finished)


def resume(run_dir, changes, command, dry_run=False):
    """Go on with a run, longer or on another device if need be; the exit code. Code of one's own
    that made its data is executed if it is named again. `command` is what was typed."""
    checkpoints.check_run(run_dir, "resume")
    flags.check_place("resume", run_dir)
    m, t = checkpoints.read_config(run_dir)
    before, life = t, {name: changes[name] for name in checkpoints.LIFE if name in changes}
    t = dataclasses.replace(t, **life)
    t, changed, longer_by = longer(run_dir, before, t, life)
    batch = {name: changes[name] for name in checkpoints.BATCH if name in changes}
    for name, value in changes.items():
        if name in checkpoints.LIFE:
            continue
        kept = not hasattr(t, name) or name in ("out_dir", "name")  # of the model, or its place
        if name == "data":  # code may not be another's, files may have moved
            kept = value != t.data and any(path.endswith(".py") for path in (*value, *t.data))
        new = batch if name in batch else {name: value}
        told = t if kept else dataclasses.replace(t, **new)
        # a device may be another one
        if kept or checkpoints.different_settings(
            checkpoints.settings(m, t), checkpoints.settings(m, told)
        ):
            its = "settings"
            if name in batch:
                its = f"batch_size x grad_accum, {before.batch_size} x {before.grad_accum}"
            raise ValueError(f"--resume keeps the run's {its}; leave out --{name}")
        t = told.validate()
    check_moved(run_dir, t)
    parent, t.name = os.path.split(os.path.normpath(run_dir))
    t.out_dir = parent or "."
    line = f"resume {run_dir}"
    if longer_by:
        line += f": {longer_by}"
    done, other_rate = 0, bool({"steps", "epochs", "lr_steps"} & set(changed))
    if other_rate or dry_run:
        folder = os.path.join(t.out_dir, t.name)
        check_kept(folder, t.steps)
        done, log = checkpoint_of(folder)
        check_unfinished(folder, t, done, log, changed)
    if other_rate:
        if t.epochs:
            rate = f"the learning rate falls until step {t.lr_steps} and stays at its floor"
            line += f"; {rate}" if t.lr_steps else ""
        else:
            line += f"; {facts.rate_ahead(t, done)}"
    if md.processes()[0] == 0:
        print(line)
    check_machine(m, t, resumed=True)
    if dry_run:
        if md.processes()[0] == 0:
            facts.print_facts(m, t, measured=True, done=done)
        return 0
    return run_training(m, t, command, resume=True, changed=tuple(changed))


def check_moved(run_dir, t):
    """Raise ValueError for a file of data that is no longer where a run has read it."""
    for flag, sources in (("data", t.data), ("val_data", (t.val_data,))):
        for source in sources:
            missing = files.is_missing(source)
            if missing:
                moved = f"--resume {shlex.quote(run_dir)} --{flag} FILE"
                raise ValueError(f"{flag} {source} is not there; if it has moved, give {moved}")


def check_same_data(folder, data):
    """Raise ValueError for other data than a run began with, as its config.json says: of a run that
    was stopped before its first checkpoint nothing else tells."""
    if checkpoints.has_changed(folder, data):
        raise ValueError(f"the data of {folder} is not what it began to train on")
