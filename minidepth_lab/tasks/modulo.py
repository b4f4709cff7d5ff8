"""The sum of all digits so far, modulo ten."""

from minidepth_lab.tasks.base.graded import Prefix


class Modulo(Prefix):
    """Digits; at each place the target is the last digit of the sum of those up to it.

    Formula: one layer for any n, as for `parity`: the order does not count, so a mean is enough.
    """

    modulus = 10

    def draw(self, batch, generator, test=False, n=(2, 4, 8, 16, 32)):
        """tokens and targets (batch, the greatest n)."""
        return self.drawn(batch, generator, test, n)

    def symbols(self, **_):
        return self.modulus

    def results(self, symbols, **_):
        return symbols.cumsum(1) % self.modulus

    def layers_for(self, n):
        return 1

    def guess(self, **_):
        return 1 / self.modulus


TASK = Modulo()
