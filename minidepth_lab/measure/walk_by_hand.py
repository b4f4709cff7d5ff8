"""Weights written by hand: ONE attention layer of two heads that walks a hop in each loop.

    model = walker(ring=8)
    model(tokens, loops=1 + hops)            the letter `hops` hops on, after as many as one likes

by_hand.py answers one hop in one loop, with eight heads, and has no way to make a second. Here two
heads answer any number of hops, a loop for each and one before the first: what training is to find
in the task `walk` is there to be found. The sequence is that of the task.

**Copy.** The second letter of a pair looks at the place before it, and writes the letter that
stands there into numbers of its own, called COPY. All other places look everywhere at once.

**Hop.** A question holds the letter that it has come to in numbers called HERE. It looks at the
place whose COPY is that letter, which is the second letter of the right pair, and writes the letter
that stands there into HERE. In the first loop no COPY is there yet. So a question looks at itself,
for it matches its own letter, and begins there.

**Forget.** Nothing is ever erased from HERE. But what is written is a thousand times as large as
what was there, and each loop begins with its state normalised: after that the last letter is large,
the one before it next to nothing. The normalisation makes the input small beside it, so `recall`
adds the input again. With the loop's start as it is (`state`) this layer would drown its input and
itself.

**The way back.** How far does training find its way back from them? A run's folder with these
weights and noise on them, to begin with:

    python -m minidepth_lab.measure.walk_by_hand runs/by-hand --ring 8 --noise 0.3 --seed 0
    python train.py --preset walk --init_from runs/by-hand --n_loops 5 --sizes ring=8,hops=4
"""

import argparse
import dataclasses
import json
import math
import os
import shutil

import torch

from minidepth_lab.base import configs, console
from minidepth_lab.keep import checkpoints
from minidepth_lab.models import variants

LOUD = 1000.0  # what is written, beside what is there
SHARP = 5.0  # so that one place has all the weight
NEVER = 100.0  # against the first letters of pairs, which have a COPY by accident


def walker(ring: int) -> variants.GPT:
    """The model for rings of so many letters: one layer, two heads, width 8 ring + 2."""
    letters, pair_places, width = 2 * ring, 2 * ring, 8 * ring + 2
    shape = dict(n_layers=1, n_heads=2, d_model=width, d_ff=0, tie_weights=False)
    config = configs.ModelConfig(
        vocab_size=letters, block_size=3 * ring, dropout=0.0, loop_start="recall", **shape
    )
    model = variants.GPT(config).eval()

    # the residual stream, number by number
    token = torch.arange(letters)  # which letter stands here
    place = letters + torch.arange(pair_places)  # which place of the pairs this is
    question = letters + pair_places  # whether this is a question
    copy = question + 1 + torch.arange(letters)
    here = copy[-1] + 1 + torch.arange(letters)
    nothing = width - 1  # always as large as any number that is 0

    # A norm takes the same from all numbers. What reads a number less `nothing` does not see that.
    size = width // 2  # of a head
    query, key, value, out = (torch.zeros(width, width) for _ in range(4))
    copying, hopping = torch.arange(size), torch.arange(size, width)  # the rows of each head

    second = torch.arange(1, pair_places, 2)
    query[copying[second - 1], place[second]] = 1.0
    key[copying[:pair_places], place] = SHARP
    value[copying[:letters], token] = 1.0
    out[copy, copying[:letters]] = LOUD

    query[hopping[:letters], here] = 1.0
    query[hopping[:letters], token] = 1.0  # all there is in the first loop
    key[hopping[:letters], copy] = SHARP
    key[hopping[:letters], token] = SHARP
    flag = hopping[letters]
    query[flag, question] = 1.0
    key[flag, question] = SHARP
    key[flag, place[::2]] = -NEVER
    value[hopping[:letters], token] = 1.0
    out[here, hopping[:letters]] = LOUD

    for reads in (query, key, value):
        reads[:, nothing] -= reads.sum(1)
    key *= math.sqrt(size)  # attention divides scores by that
    with torch.no_grad():
        model.token_embedding.weight.zero_()
        model.token_embedding.weight[:, token] = torch.eye(letters)
        model.position_embedding.weight.zero_()
        model.position_embedding.weight[:pair_places, place] = torch.eye(pair_places)
        model.position_embedding.weight[pair_places:, question] = 1.0
        model.blocks[0].attn.qkv.weight.copy_(torch.cat((query, key, value)))
        model.blocks[0].attn.out.weight.copy_(out)
        model.head.weight.zero_()
        model.head.weight[:, here] = torch.eye(letters)
    return model


@torch.no_grad()
def add_noise(model: variants.GPT, noise: float, generator: torch.Generator) -> None:
    """Multiply every weight by 1 + `noise` times a number drawn from the normal distribution. What
    is 0 stays 0, for these weights differ in size by a factor of a thousand: no noise of one size
    is small beside all that matters and large enough for what does not."""
    for weight in model.parameters():
        weight *= 1 + noise * torch.randn(weight.shape, generator=generator)


def write_run(
    folder: console.Path, model: variants.GPT, tokenizer: console.Path | None = None
) -> None:
    """Write a run's folder as far as --init_from and minidepth.load() need one, with a copy of the
    folder of a `tokenizer`, if there is one. OSError where it cannot be written."""
    settings, files = json.loads(json.dumps(dataclasses.asdict(model.config))), {}
    os.makedirs(folder)
    if tokenizer:
        place = os.path.join(folder, "tokenizer")
        shutil.copytree(tokenizer, place)
        files = checkpoints.folder_checksums(place)
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
        json.dump(dict(model=settings, train={}), file, indent=1)
    checkpoints.write_weights(folder, model.state_dict(), settings, files)


def main(words: list[str] | None = None) -> None:
    """The command, of `words` or of the command line."""
    parser = argparse.ArgumentParser(description="Weights that walk, written by hand, as a run.")
    parser.add_argument("folder", help="the run's folder, which is not there yet")
    parser.add_argument("--ring", type=int, default=8, help="letters of the ring, 2 to 64")
    parser.add_argument("--noise", type=float, default=0.0, help="beside the size of each weight")
    parser.add_argument("--seed", type=int, default=0, help="of the noise")
    args = parser.parse_args(words)
    if not 2 <= args.ring <= 64:
        parser.error(f"--ring {args.ring}: a ring has 2 to 64 letters")
    if not 0 <= args.noise <= 1000:
        parser.error(f"--noise {args.noise}: give 0 to 1000, as 0.3")
    if not 0 <= args.seed <= 2**31:  # as a run's
        parser.error(f"--seed {args.seed}: give 0 to {2**31:,}")
    if os.path.lexists(args.folder):
        parser.error(f"{args.folder} is there already; give another name")
    model = walker(args.ring)
    add_noise(model, args.noise, torch.Generator().manual_seed(args.seed))
    try:
        write_run(args.folder, model)
    except OSError as error:
        parser.error(f"{args.folder} cannot be written: {error.strerror}")


if __name__ == "__main__":
    main()
