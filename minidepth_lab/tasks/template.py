"""Template matching: generalization, two layers."""

import functools
import itertools

import torch

from minidepth_lab.tasks import Task, ask, distinct, equal_before


@functools.cache
def pair_patterns(length):
    """Every way to put `length` places into pairs, (ways, length): 0 0 1 1, 0 1 0 1, 0 1 1 0, …"""
    if length % 2 or length > 8:
        raise ValueError(f"length {length} makes no list of pairs; give 2, 4, 6 or 8")
    symbols = list(range(length // 2))
    ways = {way for way in itertools.permutations(symbols * 2) if [*dict.fromkeys(way)] == symbols}
    return torch.tensor(sorted(ways))


class Template(Task):
    """Template matching (generalization, Chen & Zou 2024; Boix-Adserà et al. 2023): which places
    hold equal symbols? Every symbol comes twice, so counting does not help; the test has symbols
    that training never shows. The shortcut is one pair of equal places: a head that prefers some
    symbols looks at both places of the one it likes best; several heads may see several pairs."""

    settings = dict(steps=3000, batch_size=128, eval_every=200)

    def draw(self, batch, generator, test=False, symbols=2048, length=6):
        patterns = pair_patterns(length)
        label = torch.randint(len(patterns), (batch,), generator=generator)
        names = distinct(batch, symbols, length // 2, generator, "symbols") + symbols * test
        string = names.gather(1, patterns[label])
        return ask(string, 2 * symbols + label, 2 * symbols + len(patterns))

    def guess(self, length, **_):
        return 1 / len(pair_patterns(length))

    def shortcut(self, length, **_):
        return 1 / len(pair_patterns(length - 2))

    def links(self, tokens, targets, **_):
        """A symbol finds its equal (parse); the end reads where the equals are."""
        parse = equal_before(tokens)
        read = torch.zeros_like(parse)
        read[:, -1] = parse.any(2)
        return dict(parse=parse, read=read)


TASK = Template()
