"""Whether the number of ones so far is odd."""

from minidepth_lab.graded import Prefix


class Parity(Prefix):
    """Zeros and ones; at each place the target is 1 if the ones up to it are odd in number, else 0.

    Formula: one layer for any n. Its attention takes the mean of all symbols, its feed-forward part
    makes the parity of it. (Whether training finds that is another question: Hahn 2020, arXiv
    1906.06755, shows how small the difference is that one symbol makes.)
    """

    def draw(self, batch, generator, test=False, n=(2, 4, 8, 16, 32)):
        """tokens and targets (batch, the greatest n)."""
        return self.drawn(batch, generator, test, n)

    def symbols(self, **_):
        return 2

    def results(self, symbols, **_):
        return symbols.cumsum(1) % 2

    def layers_for(self, n):
        return 1

    def guess(self, **_):
        return 1 / 2


TASK = Parity()
