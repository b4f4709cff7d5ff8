"""What is told before anything is done: files, tokenizers and data that are not there. And a figure
that fails."""

import contextlib
import os

from minidepth_lab.base import console
from minidepth_lab.keep import registry, running
from minidepth_lab.rows import files as text
from minidepth_lab.rows import to_data, tokenizing
from minidepth_lab.rows.sources import names_task
from minidepth_lab.tasks.base.sizes import sizes_of


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
