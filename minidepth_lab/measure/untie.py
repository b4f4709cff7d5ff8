"""Layers of their own that begin as copies: the run of a looped model, written out as a model that
has its layers once for each loop. At first it computes the same; trained further, each copy goes
its own way.

    python -m minidepth_lab.measure.untie runs/looped runs/copies
    python train.py --n_layers 5 --init_from runs/copies …        for one layer looped five times
"""

import argparse
import dataclasses
import os

from minidepth_lab.keep import checkpoints
from minidepth_lab.measure.walk_by_hand import write_run
from minidepth_lab.models import variants


def untied(model: variants.GPT) -> variants.GPT:
    """A model with n_layers * n_loops layers of its own that computes as `model` does.

    ValueError if there is one loop only, if a loop begins with more or less than the state: between
    layers of their own nothing is added, and nothing set back; or if other layers than before would
    have the window, which each second one has.
    """
    c = model.config
    if c.n_loops == 1:
        raise ValueError("n_loops is 1: the model has layers of its own already")
    if c.loop_start != "state":
        own = "layers of their own begin with the state, which is loop_start state"
        raise ValueError(f"loop_start is {c.loop_start}; {own}")
    if c.loop_keeps:
        raise ValueError(f"loop_keeps is {c.loop_keeps}; layers of their own change every token")
    if c.attn_window and c.n_layers % 2:
        other = f"in the copies each second of all {c.n_layers * c.n_loops} layers would have it"
        raise ValueError(f"attn_window is {c.attn_window} with n_layers {c.n_layers}; {other}")
    changes = dict(n_layers=c.n_layers * c.n_loops, n_loops=1)
    if not isinstance(c.n_heads, int):
        changes["n_heads"] = tuple(c.n_heads) * c.n_loops
    copies = variants.GPT(dataclasses.replace(c, **changes))
    weights = {}
    for name, weight in model.state_dict().items():
        if not name.startswith("blocks."):
            weights[name] = weight
            continue
        _, layer, rest = name.split(".", 2)
        for loop in range(c.n_loops):
            weights[f"blocks.{loop * c.n_layers + int(layer)}.{rest}"] = weight.clone()
    copies.load_state_dict(weights)
    return copies


def main(words: list[str] | None = None) -> None:
    """The command, of `words` or of the command line."""
    parser = argparse.ArgumentParser(description="A looped run as a model with copies of its own.")
    parser.add_argument("run", help="the folder of the looped run")
    parser.add_argument("folder", help="the folder to write, which is not there yet")
    args = parser.parse_args(words)
    if os.path.lexists(args.folder):
        parser.error(f"{args.folder} is there already; give another name")
    try:
        copies = untied(checkpoints.load(args.run)[0])
    except (ValueError, OSError) as error:
        parser.error(f"{args.run}: {error}")
    words = os.path.join(args.run, "tokenizer")
    try:
        write_run(args.folder, copies, words if os.path.isdir(words) else None)
    except OSError as error:
        parser.error(f"{args.folder} cannot be written: {error.strerror or error}")


if __name__ == "__main__":
    main()
