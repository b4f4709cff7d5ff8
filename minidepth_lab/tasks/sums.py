"""Sums along a ring: each letter has a digit, and a walk adds up those that it passes, modulo ten.
Unlike a walk alone it does not come back to where it was after one round. How far a model goes that
was trained to few additions is in studies/sums.py."""

from minidepth_lab.tasks.program import Program, measured

ADDITIONS = ("additions", 10)  # the kind of program
FAR = (15, 31, 50, 100, 200)  # additions beyond those of training that are tested at the end


class Sums(Program):
    """A ring of letters as triples in mixed order, a 7 b for "b follows a, which has a 7"; then
    each of its letters is asked. After loop i + 1 the answer is the letter i hops on together with
    the sum, modulo ten, of the digits of the i letters that were left: one word, 10 × letter + sum.
    Only the sum counts in the accuracy; the letter is asked since otherwise few runs learn in time.
    It is the task `program` whose operations are additions.

    Letters are drawn as for `walk`, and the same rings are held out; a digit may come again.
    Letters are words below 2 ring, the digit d is 2 ring + d. `additions` is what is trained to;
    they join one at a time, as the hops of `walk` do. `far` is how many are added at the last test.
    """

    reach = "additions"

    def draw(
        self, batch, generator, test=False, ring=4, additions=8, gate=0.5, far=200, *, asked=None
    ):
        """tokens (batch, 4 ring) and targets (batch, 1 + asked, 4 ring), a loss after each loop.
        `asked`: the additions that are asked up to now, if not all. ValueError for sizes that
        cannot be."""
        return super().draw(batch, generator, test, ring, additions, ADDITIONS[0], asked=asked)

    def guess(self, **_):
        """Any digit."""
        return super().guess(ADDITIONS[0])

    def shortcut(self, ring, additions, **_):
        return super().shortcut(ring, additions, ADDITIONS[0])

    def links(self, tokens, targets, ring, additions, **_):
        return super().links(tokens, targets, ring, additions)

    def accuracy(self, model, tokens, targets, ring, additions, **_):
        """{"accuracy": share of sums that are right, the mean over 1 to `additions`,
        "accuracy_by": {"additions": {"1": {"accuracy": …}, …}}}"""
        return measured(model, tokens, ring, ADDITIONS, additions, name=self.reach)

    def final_accuracy(self, model, tokens, targets, ring, additions, far, **_):
        """accuracy(), with FAR additions and `far` among those of `accuracy_by`."""
        beyond = [n for n in (*FAR, far) if additions < n <= far]
        return measured(model, tokens, ring, ADDITIONS, additions, beyond, name=self.reach)


TASK = Sums()
