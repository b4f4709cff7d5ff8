"""What is told before anything is done: flags that would have no effect, and models and batches
that no memory of this machine holds. How strangers' text is shown, and a figure that fails."""

import contextlib
import os

from minidepth_lab.base import console
from minidepth_lab.keep import checkpoints, registry, running
from minidepth_lab.rows import files as text
from minidepth_lab.rows import to_data, tokenizing
from minidepth_lab.rows.sources import names_task
from minidepth_lab.tasks.base import own_code
from minidepth_lab.tasks.base.sizes import sizes_of

# what each thing that is done to trained runs heeds of the flags of training
HEEDED = dict(
    sample=("seed", "n_loops"), mechanism=(), score=("data", "max_rows"), attention=("out_dir",),
    export_hf=(), compare=("out_dir",), report=(), runs=None,
)  # fmt: skip
REREAD = ("mechanism", "attention")  # make a run's data again, by code of one's own that is named
OF_SAMPLE = (
    "prompt", "prompt_file", "system", "chat", "temperature", "top_k", "max_new_tokens",
    "num_samples", "first_weights",
)  # fmt: skip


# ---------- flags ----------


def is_given(value):
    """Whether a flag was given: a 0 as well, which equals False."""
    return value is not None and value is not False


def flags(a, axes):
    """Raise ValueError for flags without effect; `a` are the command's flags, `axes` {setting: its
    values}."""
    done = [name for name in (*HEEDED, "resume", "bench") if a[name]]
    if a["bench"] and a["dry_run"]:
        done.append("dry_run")
    if len(done) > 1:
        raise ValueError(f"--{done[0]} and --{done[1]} are two things to do; give one of them")
    doing = done[0] if done else None
    if doing not in (None, "bench", "runs", "report"):  # a grid has a report, too
        runs(a[doing], doing)
    if a["sort"] is not None and doing != "runs":
        raise ValueError("--sort has no effect without --runs")
    if doing in HEEDED:
        look_flags(a, axes, doing)
    if doing != "sample":
        for name in OF_SAMPLE:
            if is_given(a[name]):
                raise ValueError(f"--{name} has no effect without --sample RUN_DIR")
    for name in ("preset", "study", "match_params", "jobs", "yes"):
        if doing == "resume" and is_given(a[name]):
            raise ValueError(f"--resume keeps the run's settings; leave out --{name}")
    if a["against"] is not None and doing != "bench":
        raise ValueError("--against belongs to --bench; give both")
    for name in ("out_dir", "name"):
        if doing == "bench" and name in axes:
            raise ValueError(f"--{name} has no effect with --bench, which writes nothing")
    grid_flags(a, axes)


def runs(given, doing):
    """Raise ValueError for what is no run's folder; --attention is given several, --export_hf one
    and where to write."""
    folders = given if isinstance(given, list) else [given]
    for folder in folders[:1] if doing == "export_hf" else folders:
        checkpoints.check_run(folder, doing)


def look_flags(a, axes, doing):
    """Raise ValueError for flags of training beside one that looks at trained runs."""
    for name, values in axes.items() if doing != "runs" else ():  # which chooses by them
        paths = dict(data=values[0], loader=values).get(name, ())
        code = [path for path in paths if path.endswith(".py")]
        named = doing in REREAD and code and len(code) == len(paths)
        if name not in HEEDED[doing] and not named:
            raise ValueError(f"--{name} has no effect with --{doing}, which trains nothing")
        if len(values) > 1:
            raise ValueError(f"--{name} has several values, but --{doing} takes one; give one")
        for path in code:
            own_code.is_there(path, name)
    for name in ("preset", "study", "match_params", "dry_run", "jobs", "yes"):
        if is_given(a[name]):
            raise ValueError(f"--{name} has no effect with --{doing}, which trains nothing")


def grid_flags(a, axes):
    """Raise ValueError for flags of a grid where there is none, or that make no sense."""
    if a["jobs"] is not None and not 1 <= a["jobs"] <= 1000:
        raise ValueError(f"--jobs {a['jobs']!s:.40} does not work; give at least 1")
    if a["match"] not in (None, "total", "blocks"):
        raise ValueError(f"--match {a['match']:.40} is unknown; give total or blocks")
    if a["match"] and a["match_params"] is None:
        raise ValueError("--match has no effect without --match_params N")
    if a["match_params"] is not None and "init_from" in axes:
        wider = "--match_params makes the model wider, and --init_from keeps that of its weights"
        raise ValueError(f"{wider}; give one of them")
    if a["match_params"] is not None and a["match_params"] > 10_000:
        n = f"{a['match_params']!s:.40}"
        raise ValueError(f"--match_params {n} does not work; give a number of layers, 1 to 10,000")
    several = any(len(values) > 1 for values in axes.values())
    if a["study"] or several:
        return
    for name in ("jobs", "yes"):
        if a[name]:
            raise ValueError(f"--{name} has no effect on a single run; it is for a grid")


def files(t):
    """Raise ValueError for a file of data that is not there, before a grid starts its first run."""
    for source in (*t.data, t.val_data):
        if text.is_missing(source) and not names_task(source):
            raise ValueError(f"data {source} is not there; give the path of a file")


def its_tokenizer(t):
    """Raise ValueError for a tokenizer that is a path on this machine, and none there. What may be
    an id of the hub is not asked for."""
    name = t.tokenizer
    if os.path.isdir(name):
        tokenizing.load_tokenizer(name)  # says what is wrong with it
    elif text.is_path(name):
        wanted = "give the folder that holds it, embedded, or characters"
        raise ValueError(f"tokenizer {name} is not there; {wanted}")


def its_loader(t):
    """Raise ValueError for a loader that is none, or for sizes that it does not have."""
    loader = registry.loader(t.loader)
    if hasattr(loader, "SIZES"):
        sizes_of(t.sizes, loader.SIZES, f"the loader {t.loader}")


def grid_data(cells):
    """Raise ValueError, before a grid's first run starts, for data that no run could be made of: a
    file or a tokenizer that is not there, a loader that is none, sizes or epochs that the data does
    not take."""
    kinds, tokenizers = {}, set()
    for cell in cells:
        t = cell.t
        files(t)
        if not names_task(t.data[0]) and t.tokenizer not in tokenizers:
            its_tokenizer(t)
            tokenizers.add(t.tokenizer)
        kinds[repr((t.data, t.loader, t.sizes, t.epochs, cell.m.block_size))] = cell
    for cell in kinds.values():
        if cell.t.loader:
            its_loader(cell.t)
        elif names_task(cell.t.data[0]):
            running.complete_configs(cell.m, cell.t, registry.data_of(cell.t, cell.m.block_size))
        elif cell.t.sizes:
            to_data.load_data(cell.t)  # says that text takes none


# ---------- after training ----------


@contextlib.contextmanager
def drawn(what):
    """Let no error in a figure, drawn when the training is over, take the rest with it."""
    try:
        yield
    except Exception as error:  # code of one's own, a backend that is not there
        why = console.one_line(error) or type(error).__name__
        console.complain(f"{what} could not be drawn: {why}")
