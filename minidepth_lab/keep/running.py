"""One run of the laboratory: minidepth.train() in a careful folder, with a progress bar, trackers,
the best weights, and an early end."""

import contextlib
import dataclasses
import math
import os
import shlex
import tempfile
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import nn

import minidepth as md
from minidepth_lab.base import configs, console, machine
from minidepth_lab.base.data import Data
from minidepth_lab.keep import checkpoints, naming
from minidepth_lab.keep.folder import CarefulFolder, finish_log, is_there
from minidepth_lab.models import fsdp, variants
from minidepth_lab.rows import to_data

if TYPE_CHECKING:  # to import it takes seconds, which only those pay who have text
    from transformers import PreTrainedTokenizerBase as Tokenizer


def complete_configs(
    m: configs.ModelConfig, t: configs.TrainConfig, data: Data
) -> tuple[configs.ModelConfig, configs.TrainConfig]:
    """The settings with what the data adds: the steps of its epochs, its sizes, its words."""
    if t.epochs and data.infinite:
        raise ValueError(f"epochs {t.epochs}: a task's data never repeats; give --steps")
    if t.epochs:
        steps = t.epochs * len(data.train[0]) / (t.batch_size * t.grad_accum)
        t = dataclasses.replace(t, steps=math.ceil(steps))
        # whether any are left after the warm-up, which validate() asks only without epochs
        dataclasses.replace(t, epochs=0).validate()
    t = dataclasses.replace(t, sizes=getattr(data, "sizes", ()))
    m = dataclasses.replace(m, vocab_size=m.vocab_size or data.n_words)
    if data.n_words > m.vocab_size:
        too_few = f"vocab_size {m.vocab_size} is less than the data's {data.n_words} words"
        advice = "give at least that, or 0"
        if t.init_from:
            advice = f"give data with the words of {t.init_from}, or leave out init_from"
        raise ValueError(f"{too_few}; {advice}")
    if 0 < t.gradient_loops < m.n_loops and m.loop_start not in configs.READ_INPUT:
        no_gradient = "no gradient reaches the embeddings, which the first loop alone reads"
        raise ValueError(
            f"gradient_loops {t.gradient_loops} of {m.n_loops} with loop_start {m.loop_start}: "
            f"{no_gradient}; give --loop_start recall or input"
        )
    if m.loop_keeps and 0 < t.gradient_loops < m.n_loops:
        no_gradient = "the first loop, which alone reads the tokens that are kept, has no gradient"
        both = f"loop_keeps {m.loop_keeps} with gradient_loops {t.gradient_loops} of {m.n_loops}"
        raise ValueError(f"{both}: {no_gradient}; give --gradient_loops 0")
    return m, t


@dataclass
class Run:
    """What train() returns."""

    dir: str  # the run's folder
    model: variants.GPT  # in eval mode
    tokenizer: "Tokenizer | None"  # None for a task
    data: Data  # what it was trained on
    log: list  # the records of log.jsonl
    finished: bool  # whether all steps are done, or --stop_after has ended it


def evaluations_of(t: configs.TrainConfig, data: "Data | None" = None) -> tuple[int, int, int]:
    """What train() measures in a whole run, (evaluations, the validation blocks that they and the
    last training loss read, problems that are answered); without the data as if it were enough."""
    n = t.steps // t.eval_every  # after every n-th step,
    n += (t.eval_every > 1) + (t.steps % t.eval_every > 0 and t.steps > 1)  # the first, the last
    held_out = [data.val, *getattr(data, "val_by_source", {}).values()] if data else []
    sizes = [min(t.eval_blocks, len(tokens)) for tokens, _ in held_out] or [t.eval_blocks]
    problems = len(data.problems) if data else 0
    answered = (n - 1) * min(t.watch_problems, problems) + min(t.eval_problems, problems)
    return n, n * sum(sizes) + t.eval_blocks, answered


def model_maker(
    t: configs.TrainConfig,
    weights: dict[str, torch.Tensor] | None,
    say: Callable[[str], object] = lambda line: None,
) -> Callable[[configs.ModelConfig], nn.Module]:
    """make_model() for minidepth.train(): the laboratory's GPT, with the `weights` to begin with,
    compiled, computed twice, or shared out as the settings say; say(line) is told of what takes
    long."""

    def make(config):
        model = variants.GPT(config)
        if weights:
            given = f"init_from {t.init_from}" if t.init_from else "weights"
            with console.one_line_errors(given, "is of another shape than this model"):
                model.load_state_dict(weights)
        model.checkpointed, model.gradient_loops = t.grad_checkpoint, t.gradient_loops
        if t.compile:  # layers are alike: what is compiled for the first one serves all
            say("Compiling a layer: the first step waits for it, often for a minute")
            model.compiled = [torch.compile(layer) for layer in model.blocks]
        device = machine.pick_device(t.device)
        if t.fsdp and md.processes()[1] > 1:
            say(f"Each of {md.processes()[1]} processes keeps a part of every weight")
            return fsdp.wrap(model.to(device), device)
        return model

    return make


GRID = "MINIDEPTH_GRID"  # in a run's environment: the process of the grid that has started it


def orphaned() -> bool:
    """Whether the grid that started this process is gone: nobody would hear of what it trains."""
    grid = os.environ.get(GRID, "")
    if grid.isdecimal() and os.name == "posix":  # elsewhere to ask would be to kill
        with contextlib.suppress(PermissionError):
            try:
                os.kill(int(grid), 0)
            except ProcessLookupError:
                return True
    return False


def record_now(
    model: nn.Module, data: md.Data, t: configs.TrainConfig, done: int, before: dict
) -> dict:
    """A record of a step at which none was due; what the step itself knew is of the one before."""
    tokens, targets = data.draw(done - 1, t.batch_size * t.grad_accum)
    epoch = 1 if data.infinite else (done - 1) * len(tokens) // len(data.train[0]) + 1
    record = before | dict(step=done, epoch=epoch, lr=md.lr_at(done - 1, t))
    for name, part, n in (
        ("train_loss", (tokens, targets), len(tokens)),
        ("val_loss", data.val, t.eval_blocks),
    ):
        record[name] = md.mean_loss(model, part, n, t.batch_size)
    return record


def train(
    model_config: configs.ModelConfig, train_config: configs.TrainConfig,
    data: md.Data | None = None,
    resume: bool = False, command: str | None = None, stop: Callable[[], bool] | None = None,
    quiet: bool = False, changed: Sequence[str] = (),
    weights: dict[str, torch.Tensor] | None = None, tell: Callable[[dict], object] | None = None,
) -> Run:  # fmt: skip
    """Train one model and write its run folder → Run.

    `data`, from load_data(), is loaded if not given. `resume` goes on from the checkpoint, if the
    run has begun. stop() is asked after each step; if true the run is saved and returned, as it is
    after Ctrl-C, SIGTERM, or a notebook's stop button. `quiet`
    prints nothing and trains in a temporary folder, which goes when the Run does. `changed` names
    what of checkpoints.LIFE a resumed run goes on with other values of. `weights`, {name: tensor},
    are to begin with, as those of the run that `init_from` names are. tell(record) is called with
    each record of the log.
    ValueError for settings or data that cannot work, a folder that exists, is finished or is
    trained in by another process, a checkpoint that is damaged or of other data; minidepth.Diverged
    as minidepth.train().
    """
    from tqdm import tqdm

    m, t, began = model_config.validate(), train_config.validate(), time.perf_counter()
    rank, world = md.processes()
    silent = quiet or rank > 0  # of several processes the first one speaks and writes
    say = (lambda line: None) if silent else tqdm.write
    machine.check_batch(t)
    device = machine.pick_device(t.device)
    drops = m.dropout or m.dropout_of("residual")
    if device.type == "mps" and t.grad_checkpoint and drops:  # its masks would differ twice
        raise ValueError("grad_checkpoint with dropout is wrong on Apple's GPUs; leave one out")
    machine.pick_precision(t.precision, device)
    if resume and quiet:
        raise ValueError("quiet trains in a folder of its own; there is nothing in it to resume")
    if t.compile and world == 1 and device.type == "cuda" and torch.cuda.device_count() > 1:
        other = "use torchrun, or CUDA_VISIBLE_DEVICES=0 for one GPU"
        raise ValueError(f"compile does not work with DataParallel; {other}")
    if t.report_to != "none" and not tell and rank == 0:
        raise ValueError(f"report_to {t.report_to}: give tell=trackers.Told(m, t) to train()")
    if device.type == "mps" and t.device == "auto":  # which minidepth.py leaves alone
        t = dataclasses.replace(t, device="mps")
    if quiet:
        temporary = tempfile.TemporaryDirectory()
        t = dataclasses.replace(t, out_dir=temporary.name)
    path = os.path.join(t.out_dir, t.name or naming.name_of(m, t))

    # the data, and the settings that follow from it; a resumed run takes its own tokenizer, since
    # the one that was named may have changed
    whose_words = path if resume else t.init_from
    words = checkpoints.saved_tokenizer(whose_words) if whose_words and not data else None
    data = data or to_data.load_data(t, m.block_size, words)
    m, t = complete_configs(m, t, data)
    if isinstance(data, Data):
        data = dataclasses.replace(data, eval_blocks=t.eval_blocks, batch_size=t.batch_size)
    if t.init_from and not weights and not checkpoints.has_checkpoint(path):
        weights = checkpoints.load(t.init_from)[0].state_dict()

    folder = CarefulFolder(path, t, data.tokenizer, command, changed, say)
    make, ended, late, logged = model_maker(t, weights, say), False, False, began
    untold = None  # the last record, until it is known whether the run ends with it

    def make_model(config):
        folder.model = make(config)
        return folder.model

    bar = tqdm(total=t.steps, disable=silent or None)

    def on_log(record):
        nonlocal ended, logged, untold
        logged, untold = time.perf_counter(), record
        if isinstance(data, Data):
            data.complete(record)
        folder.records.append(record)
        if t.keep == "best" and checkpoints.since_best(folder.records) == 0:
            folder.save_best(record)
        ended = record["step"] < t.steps and checkpoints.waited_enough(folder.records, t)

    def tell_it():
        nonlocal untold
        if untold:
            say(md.log_line(untold, t.steps))
            if tell and rank == 0:
                tell(untold)
        untold = None

    def stopping():
        nonlocal late
        late = 0 < t.minutes * 60 <= time.perf_counter() - began
        if not ended and not late:
            tell_it()
        bar.update(1 if bar.n else folder.done + 1)
        return ended or late or bool(noted) or orphaned() or bool(stop and stop())

    try:
        begun = resume and is_there(path)
        with bar, console.noted_signals(twice=True) as noted:
            model, log = md.train(m, t, data, folder, begun, make_model, on_log, stopping)
            # one process may have been late, or told to stop, without the others
            late = md.over_all(late and not noted, device) > 0
            late = late and folder.done < t.steps and not ended
            # as it drew last
            its = dataclasses.replace(data, seed=t.seed, state=folder.data_state)
            if late and log[-1]["step"] < folder.done:
                seconds = round(log[-1]["seconds"] + time.perf_counter() - logged, 2)
                log.append(record_now(model, its, t, folder.done, log[-1]) | dict(seconds=seconds))
                on_log(log[-1])
            ended = ended or late
            if ended:  # the whole evaluation of a last step
                if isinstance(its, Data):
                    its.at_end = True
                log[-1] |= md.evaluate(model, its, t, last=True) | dict(ended_early=True)
                if isinstance(data, Data):
                    data.complete(log[-1])
                finish_log(folder, log)
                untold = log[-1]
            tell_it()
    finally:
        folder.release()
    if getattr(model, "is_sharded", False) and rank == 0:
        model, _ = checkpoints.load(path)  # it has only its part of the weights
    finished = ended or folder.done == t.steps
    go_on = f"go on with: {console.COMMAND} --resume {shlex.quote(path)}"
    if late:
        say(f"Its {t.minutes:g} minutes are over, after step {folder.done}; {go_on}")
    elif ended:
        best = log[-1 - checkpoints.since_best(log)]
        worse = f"{checkpoints.since_best(log)} evaluations without a better one than"
        why = f"{worse} {best['val_loss']:.4f} at step {best['step']}"
        say(f"Ended early, after step {log[-1]['step']}: {why}")
    if finished:
        final = f"Final train loss: {log[-1]['train_loss']:.4f}"
        say(f"Done. {final} | total time {log[-1]['seconds']:.0f}s")
    else:
        say(f"Stopped after step {folder.done}; {go_on}")
    run = Run(path, model, data.tokenizer, data, log, finished)
    if quiet:
        weakref.finalize(run, temporary.cleanup)
    return run
