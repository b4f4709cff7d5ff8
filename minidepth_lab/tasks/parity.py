"""Whether the number of ones so far is odd."""

from minidepth_lab.tasks.modulo import Modulo


class Parity(Modulo):
    """Zeros and ones; at each place the target is 1 if the ones up to it are odd in number, else 0.

    Formula: one layer for any n. Its attention takes the mean of all symbols, its feed-forward part
    makes the parity of it. (Whether training finds that is another question: Hahn 2020, arXiv
    1906.06755, shows how small the difference is that one symbol makes.)
    """

    modulus = 2


TASK = Parity()
