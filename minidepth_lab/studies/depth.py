"""Depth or parameters? Twelve layers have more of both than one. The study sets them apart:

    python train.py --study depth --n_layers 12 --seed 0 1 2 3 4

one layer; twelve; one layer applied twelve times, which is depth without parameters; and one layer
as wide as gives the parameters of twelve, which is parameters without depth. The width alone:

    python train.py --n_layers 1 --match_params 12

Its figure is plane.png, parameters against depth, which every study gets whose rows differ in
parameters (sweep/table.py).
"""

import bisect
import dataclasses
import math

from minidepth_lab.keep import registry
from minidepth_lab.measure import results
from minidepth_lab.models import memory, variants

PRESETS = {
    # the laptop preset as it was when the stored runs of this study were made: its twelve layers,
    # with a feed-forward part, learn all problems with some seeds and not with others
    "depth": dict(
        block_size=58, n_heads=2, d_model=64, d_ff=256, dropout=0.0, init_std=0.2,
        data=("embedded",), tokenizer="embedded", packing="pad", loss_on="assistant",
        steps=800, batch_size=64, lr=3e-3, eval_every=50,
    ),
}  # fmt: skip


def width_matched(config, params, part="total"):
    """The config with the d_model, a multiple of all heads, and d_ff in proportion, whose `part` of
    num_params() is nearest to `params`; ValueError if the nearest is over 2 % off."""
    unit = math.lcm(*config.heads)
    if config.position == "rotary":  # which turns pairs
        unit *= 2

    def wide(n):
        d_model = n * unit
        d_ff = round(config.d_ff * d_model / config.d_model)
        return dataclasses.replace(config, d_model=d_model, d_ff=d_ff)

    def off(n):
        return variants.parameters(wide(n))[part] - params

    widths = range(1, 2**20 // unit)
    enough = bisect.bisect_left(widths, 0, key=off) + 1  # the first n that is not too narrow
    below = max(1, enough - 1)
    n = min(enough, below, key=lambda n: abs(off(n)))
    if abs(off(n)) > 0.02 * params:
        found = f"d_model {n * unit} with {params + off(n):,}"
        raise ValueError(f"no width has {part} {params:,} parameters within 2 %; nearest: {found}")
    return wide(n)


def words_known(m, t):
    """The ModelConfig with the size of its vocabulary, out of the data where it is not set."""
    if m.vocab_size:
        return m
    return dataclasses.replace(m, vocab_size=registry.data_of(t, m.block_size).n_words)


def matched_width(preset, settings, n_layers, part="total"):
    """{d_model, d_ff} with which the settings have as many parameters as n_layers layers, in
    `total` or in `layers`; prints both counts."""
    if n_layers < 1:
        raise ValueError(f"--match_params {n_layers} does not work; give a number of layers")
    m, t = registry.configs(preset, **settings)
    as_many = dict(n_layers=n_layers, n_heads=m.heads[0])
    # weights that no memory holds, however small a batch, are told before the data is read
    least = dataclasses.replace(m, block_size=1, **as_many)
    try:
        memory.check_enough(least, dataclasses.replace(t, batch_size=1, grad_accum=1))
    except ValueError as error:
        raise ValueError(f"as many parameters as {n_layers} layers have: {error}") from None
    m = words_known(m, t)
    deep = variants.parameters(dataclasses.replace(m, **as_many))
    wide = width_matched(m, deep[part], part)
    n = variants.parameters(wide)
    print(
        f"{n_layers} layers have {deep['total']:,} parameters, {deep['layers']:,} in layers; "
        f"{m.n_layers} with d_model {wide.d_model} and d_ff {wide.d_ff} {n['total']:,}, "
        f"{n['layers']:,}"
    )
    return dict(d_model=wide.d_model, d_ff=wide.d_ff)


def rows(preset, settings):
    """{row's name: its settings}, of the four models."""
    deep = registry.configs(preset, **settings)[0].n_layers
    one = settings | dict(n_layers=1)
    return {
        "1 layer": one,
        f"{deep} layers": settings | dict(n_layers=deep),
        f"1 layer, {deep} times": one | dict(n_loops=deep),
        "1 wide layer": one | matched_width(preset, one, deep),
    }


def stored():
    """{model: the runs of docs/results/depth, by seed}: the four of the study, and the wide one at
    a learning rate and initial weights of its own."""
    models = {
        "1 layer": dict(n_layers=1, n_loops=1, d_model=64),
        "12 layers": dict(n_layers=12),
        "1 layer, 12 times": dict(n_loops=12),
        "1 wide layer": dict(d_model=210, lr=3e-3),
        "1 wide layer, tuned": dict(d_model=210, lr=1e-3),
    }
    runs = results.runs("depth", d_ff=[256, 840])  # others have no feed-forward part
    return {name: results.select(runs, **model) for name, model in models.items()}


def swept():
    """{layers: the runs of docs/results/depth of so many layers, by seed}, 1 to 12."""
    runs = results.runs("depth", d_ff=256, n_loops=1, d_model=64)
    return results.by(runs, "n_layers")
