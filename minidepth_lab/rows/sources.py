"""Text to train on, and whether the hub has to be asked for some of it."""

import os

from minidepth_lab.rows import files as text
from minidepth_lab.rows import hub, reading, to_data
from minidepth_lab.tasks import TASKS


def names_task(name):
    """Whether a source is a depth task, without executing a file of one's own, which may be."""
    return name.endswith(".py") or name in TASKS


def away(config, tokenizer=None):
    """Whether something of a TrainConfig's data is to come from the hub."""
    named = [s for s in config.data if s != "embedded" and not reading.kind_of(s)]
    if any(names_task(source) for source in named):
        return False  # it is drawn, without a tokenizer
    if any(not text.is_local(source) for source in named):
        return True
    if tokenizer or config.tokenizer in ("embedded", "characters"):
        return False
    return not os.path.isdir(config.tokenizer)


def text_data(config, block_size, tokenizer=None, load=to_data.load_data):
    """load(config, block_size, tokenizer), with a look first at whether the hub can be reached if
    something is to come from there."""
    if not away(config, tokenizer):
        return load(config, block_size, tokenizer)
    with hub.looked_for():
        return load(config, block_size, tokenizer)
