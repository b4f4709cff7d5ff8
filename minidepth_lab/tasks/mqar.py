"""Multi-query associative recall: which value belongs to a key, over one hop or several."""

import torch

from minidepth_lab.tasks import Task, distinct


class Mqar(Task):
    """Associative recall (Arora et al. 2023, arXiv 2312.04927): pairs of a key and a value, then
    keys again, each at a place drawn from a power law, at which its value is asked; between them
    stands a blank. Keys and values are drawn anew. Of `hops` above 1 the value of a pair is the key
    of another one, and the pairs, in mixed order, make chains of so many; the first key of each is
    asked for what the last pair has. The shortcut is any value shown.

    With one hop two layers are known to be enough (an induction head: Olsson et al. 2022), and one
    is known to fail unless it is wide (Sanford, Hsu & Telgarsky 2024b, arXiv 2408.14332). With more
    hops, no prediction.
    """

    settings = dict(n_heads=2, steps=1000)

    def draw(self, batch, generator, test=False, pairs=8, hops=1, symbols=32, room=16, power=0.1):
        """tokens and targets (batch, 2 pairs + 2 room)."""
        if pairs % hops:
            raise ValueError(f"pairs {pairs} make no chains of {hops}; give a multiple of hops")
        chains = pairs // hops
        if power > 10:  # no place but the last would be likely
            raise ValueError(f"power {power:g} does not work; give 0 to 10")
        if chains > room:
            raise ValueError(
                f"room {room} is too little for {chains} questions; give at least that"
            )
        keys = distinct(batch, symbols, pairs, generator, "keys").view(batch, chains, hops)
        last = distinct(batch, symbols, chains, generator, "values") + symbols
        values = torch.cat((keys[:, :, 1:], last[..., None]), 2)
        shown = torch.stack((keys, values), 3).flatten(1, 2)  # (B, pairs, 2)
        order = distinct(batch, pairs, pairs, generator, "pairs")
        shown = shown.gather(1, order[..., None].expand_as(shown)).flatten(1)
        # near places are likelier, the more so the lower the power
        share = torch.arange(1, room + 1).double() ** (power - 1)
        places = torch.multinomial(share.expand(batch, -1), chains, generator=generator)
        asked = torch.full((batch, 2 * room), 2 * symbols)
        targets = torch.full((batch, 2 * pairs + 2 * room), -100)
        asked.scatter_(1, 2 * places, keys[:, :, 0])
        targets.scatter_(1, 2 * pairs + 2 * places, last)
        return torch.cat((shown, asked), 1), targets

    def guess(self, symbols, **_):
        return 1 / symbols

    def shortcut(self, pairs, hops, **_):
        """Any value that ends a chain."""
        return hops / pairs

    def map_tokens(self, pairs, **_):
        """The pairs, which a looped model may read once."""
        return 2 * pairs


TASK = Mqar()
