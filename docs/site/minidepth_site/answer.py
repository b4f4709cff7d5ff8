"""The answer in a hundred words and its table, as the README and the home page have them.

    python docs/site/minidepth_site/answer.py     writes both into README.md

Each number is counted here, from the stored runs.
"""

import itertools
import pathlib
import re
import statistics

from minidepth_lab.measure import judge, order, results
from minidepth_lab.measure.ring_runs import accuracies, staircase
from minidepth_lab.tasks.ring import LEARNED

README = pathlib.Path(__file__).resolve().parents[3] / "README.md"
ROUND = ("15", "31", "100", "1000")  # hops along a ring of 16, tested from once round on


def of(good):
    """Of how many runs something is true, each True or False: "13 of 15"."""
    return f"{sum(good)} of {len(good)}"


def predictions():
    """(how many of our predictions have been run, how many of these were wrong, of how many the
    history shows that they were committed before their runs)"""
    verdicts = {
        each["id"]: each["verdict"]
        for name in judge.experiments()
        for each in judge.judged_predictions(judge.File(name))
    }
    run = [key for key, verdict in verdicts.items() if verdict in (judge.HELD, judge.WRONG)]
    n_wrong = sum(verdicts[key] == judge.WRONG for key in run)
    before = set(order.counts()[order.BEFORE])
    return len(run), n_wrong, len(before & set(run))


# ---------- what the points count, a list of one True or False for each run ----------


def each_loop_less_costs_a_hop():
    """Trained with two to four loops: with as many loops or fewer, one hop less than the loops."""
    good = []
    for run in results.runs("ring-at-test"):
        if run["n_loops"] == 1:
            continue
        by_loops = run["measured"]["by_loops"]
        answered = []
        for loops in range(1, run["n_loops"] + 1):
            shares = by_loops[str(loops)].values()
            answered.append(len(list(itertools.takewhile(lambda x: x >= LEARNED, shares))))
        good.append(answered == list(range(run["n_loops"])))
    return good


def right(runs, lengths, least):
    """Whether each run of the experiment walk is right at all of these lengths."""
    by_hops = [run["accuracy_by"]["hops"] for run in runs]
    return [min(each[n]["accuracy"] for n in lengths) >= least for each in by_hops]


def walks_on():
    """Trained to eight hops on a ring of 16, and right at 15, 31, 100 and 1,000."""
    named = judge.named_runs("walk")
    return right(named["8 hops, ring of 16"] + named["8 hops, pairs kept"], ROUND, 0.95)


def walks_on_that_read_once():
    """The same with a map that is read once; and on rings of 64, once round and at 1,000."""
    named = judge.named_runs("walk")
    larger = named["ring: 64, hints, kept throughout"]
    return right(named["kept throughout"], ROUND, 0.95), right(larger, ("63", "1000"), 0.95)


def follows_programs():
    """Programs of permutations on a ring of 16, whose state does not come round with the ring, by
    runs that read the map once. Each that knows the eight steps it was trained to is right at its
    worst of 20 to 35 and of 985 to 1,000; whether a run knows them."""
    file, known = judge.File("no-cheat"), []
    for norm in ("", ", no norm"):
        for run in file.runs(f"permutations, read once{norm}"):
            far, thousand = run["measured"]["far"], run["measured"]["thousand"]
            known.append(far["at"]["8"]["right"] >= 0.95)
            least = min(each["window"]["least"] for each in (far, thousand))
            assert not known[-1] or least >= 0.9
    return known


def gains_on_text():
    """How much lower the validation loss of twelve layers is than that of one, at the report's
    size: (each at its best, with a learning rate of its own; at the end, with the report's)"""

    def lower(experiment, key):
        runs = judge.named_runs(experiment)
        one, twelve = ([run[key] for run in runs[name]] for name in ("1 layer", "12 layers"))
        assert max(twelve) < min(one)
        return statistics.mean(one) - statistics.mean(twelve)

    return lower("report-tuned", "best_val_loss"), lower("report", "val_loss")


# ---------- as Markdown ----------


def answer(page="docs/{}.py"):
    """The answer; `page` says how the address of a page is written."""
    at_16, at_64 = walks_on_that_read_once()
    low, high = (f"{gain:.2f}" for gain in sorted(gains_on_text()))
    n_run, n_wrong, n_before = predictions()
    walking, far, on_text, wrong, no_cheat = (
        page.format(name)
        for name in (
            "tutorials/4_walking", "tutorials/thousand_hops", "tutorials/report",
            "reference/predictions", "reference/no_cheat",
        )
    )  # fmt: skip
    return f"""\
**One attention layer, looped, learns to follow pointers.**

- **[Each loop buys one hop]({walking}).** Take a loop away from a trained layer, and it loses one,
  in {of(each_loop_less_costs_a_hop())} runs.
- **[Looped on, it still knows where it is]({far}).** Trained to eight hops, it is right at a
  thousand, in {of(walks_on())}.
- **What mostly fails is its memory of the map.** Let it read the map once and never change it, and
  {of(at_16)} are right, and with training hints {of(at_64)} round rings of 64. So are the
  {of(follows_programs())} that learned [programs whose state does not come round with the
  ring]({no_cheat}).
- **On real text, twelve layers [predict a little better]({on_text})**, by {low} to {high} nats per
  token. Better answers were not shown.
- **[{n_wrong} of {n_run} predictions]({wrong}) were wrong.** History shows
  {n_before} written before their runs."""


ROWS = {1: "one attention layer", 2: "looped twice", 3: "looped three times",
        4: "looped four times", 5: "looped five times"}  # fmt: skip


def table():
    """How many runs learned one to four hops along a ring of eight letters."""
    models = {ROWS[n]: runs for n, runs in staircase().items()}
    own = results.runs("ring-own-layers", n_layers=5, steps=2000)
    models["five layers, each with its own weights"] = accuracies(own)
    longer = judge.named_runs("ring-copies")["own, 6,000 steps"]
    models["the same, three times the training"] = accuracies(longer)
    wide = results.runs("ring-staircase", d_model=120)
    models["one wide layer, as many parameters as four"] = accuracies(wide)
    lines = ["| model | 1 hop | 2 hops | 3 hops | 4 hops |", "|---|---|---|---|---|"]
    for name, runs in models.items():
        cells = [of([run[k] >= LEARNED for run in runs.values()]) for k in (1, 2, 3, 4)]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def written(text):
    """The README with the answer and the table as they are now."""
    for name, part in (("answer", answer()), ("table", table())):
        begin, end = f"<!-- {name} -->\n", f"<!-- end of the {name} -->"
        whole = f"{begin}{part}\n{end}"
        text, n = re.subn(f"{begin}.*?{end}", lambda _: whole, text, flags=re.DOTALL)
        assert n == 1, f"README.md has no place for the {name}"
    return text


if __name__ == "__main__":
    README.write_text(written(README.read_text(encoding="utf-8")), encoding="utf-8")
