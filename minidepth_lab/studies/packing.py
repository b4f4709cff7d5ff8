"""Rows padded against rows packed, at equal steps and at equal text, all validated on the same
blocks.

    python train.py --study packing --seed 0 1 2
"""

import dataclasses

from minidepth_lab.keep import registry, running
from minidepth_lab.rows import to_data
from minidepth_lab.rows.sources import names_task, text_data
from minidepth_lab.tasks.base.sizes import as_text, check_known, sizes_of

SIZES = dict(val_packing="same")  # of validation blocks: same as in training, pack, or pad


def rows(preset, settings):
    """Padded, and packed for as many steps or for as many tokens of text; validated on padded
    blocks, each row by itself, unless `sizes` say otherwise. ValueError for a task, which has no
    rows to pack."""
    m, t = registry.configs(preset, **settings | dict(packing="pad", sizes=()))
    if names_task(t.data[0]):
        wanted = f"{t.data[0]} has none; give --data FILE"
        raise ValueError(f"--study packing is of rows of text: {wanted}")
    data = registry.data_of(t, m.block_size)
    _, t = running.complete_configs(m, t, data)
    share = to_data.filled(*data.train).mean().item()
    print(f"padded blocks are {share:.1%} text: packed, {share:.1%} of the steps see as much of it")
    sizes = settings.get("sizes", ()) or ("val_packing=pad",)
    same = settings | dict(epochs=0, loader="packing", sizes=sizes)
    return {
        "padded": same | dict(packing="pad", steps=t.steps),
        "packed, same steps": same | dict(packing="pack", steps=t.steps),
        "packed, same text": same | dict(packing="pack", steps=max(1, round(t.steps * share))),
    }


def load_data(config, block_size, tokenizer=None):
    """Data whose validation blocks are packed as `sizes` say."""
    sizes = sizes_of(config.sizes, SIZES, "the loader packing")
    packing = sizes["val_packing"]
    check_known("val_packing", packing, ("same", "pack", "pad"))
    plain = dataclasses.replace(config, sizes=(), loader="")
    data = text_data(plain, block_size, tokenizer)
    if packing not in ("same", config.packing):
        other = dataclasses.replace(plain, packing=packing)
        measured = text_data(other, block_size, data.tokenizer)
        data.val, data.val_by_source = measured.val, measured.val_by_source
        data.bytes_per_target = measured.bytes_per_target
    data.sizes = as_text(sizes)
    return data
