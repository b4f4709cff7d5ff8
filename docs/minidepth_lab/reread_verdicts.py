"""What the stored runs of `reread` say of what was predicted of them, M1 to M30 in
docs/results/reread/predictions.md, a row each:

    python -c "from minidepth_lab import reread_verdicts; reread_verdicts.show()"  with
    PYTHONPATH=.:docs

All losses are in nats per token, without dropout. "Below" means that every run of one model is
below every run of the other.
"""

import statistics

from minidepth_lab.studies import reread

ONE, OWN = "1 layer", "1 layer, learning rate 0.008"
LOOP, OWN_LOOP = "1 layer, 12 times", "1 layer, 12 times, learning rate 0.008"
WIDE, OWN_WIDE = "1 wide layer", "1 wide layer, learning rate 0.001"
TWO, FOUR, EIGHT, TWELVE = "2 layers", "4 layers", "8 layers", "12 layers"
TRAINING, LAST, LOWEST = "train_loss_eval", "val_loss", "best_val_loss"


def row(name, said, a, b, holds):
    """One prediction about the values a and b, by run, of two models."""
    means = dict(a=statistics.mean(a), b=statistics.mean(b))
    return dict(name=name, said=said, **means, n=(len(a), len(b)), holds=holds)


def below(name, said, a, b):
    """Every run of a is below every run of b."""
    return row(name, said, a, b, max(a) < min(b))


def lower(name, said, a, b):
    """The mean of a is below that of b."""
    return row(name, said, a, b, statistics.mean(a) < statistics.mean(b))


def within(name, said, a, b, limit):
    """The means of a and b are less than `limit` apart."""
    return row(name, said, a, b, abs(statistics.mean(a) - statistics.mean(b)) < limit)


def ends(runs, key):
    """{model: result() of its runs} → {model: the last, or lowest, value of each run}."""
    return {model: [run[key] for run in found] for model, found in runs.items()}


def gaps(runs):
    """{model: result() of its runs} → {model: validation minus training loss of each run}."""
    return {model: [run[LAST] - run[TRAINING] for run in found] for model, found in runs.items()}


def planned():
    """The rows of M1 to M8: twelve layers and one, whose text is read 20, 40 or 80 times."""
    stored = reread.stored()
    a, b, c = (reread.models_read(stored, times) for times in (20, 80, 40))
    fit, new, best = ends(a, TRAINING), ends(a, LAST), ends(b, LOWEST)
    first = below("M1", "12 layers fit better than 1, by 0.1 or more", fit[TWELVE], fit[ONE])
    first["holds"] = first["holds"] and first["b"] - first["a"] >= 0.1
    lowest_at = []  # share of the steps at which a run's validation loss is lowest
    for run in b[ONE] + b[TWELVE]:
        step = min(run["log"], key=lambda at: at[LAST])["step"]
        lowest_at.append(step / run["steps"])
    more = {}  # validation loss of twelve layers minus that of one
    for times, runs in ((20, a), (40, c), (80, b)):
        means = ends(runs, LAST)
        more[times] = statistics.mean(means[TWELVE]) - statistics.mean(means[ONE])
    fit_b, new_b, new_c = ends(b, TRAINING), ends(b, LAST), ends(c, LAST)
    half, between = max(lowest_at) < 0.5, more[20] < more[40] < more[80]
    return [
        first,
        below("M2", "12 layers below 1 on new text", new[TWELVE], new[ONE]),
        within("M3", "new minus training text, 12 and 1", gaps(a)[TWELVE], gaps(a)[ONE], 0.15),
        below("M4", "80 times: 12 layers fit better", fit_b[TWELVE], fit_b[ONE]),
        below("M5", "80 times: 1 layer below 12 on new text", new_b[ONE], new_b[TWELVE]),
        within("M6", "80 times: lowest on new text, 12 and 1", best[TWELVE], best[ONE], 0.1),
        row("M7", "80 times: lowest in the first half", best[TWELVE], best[ONE], half),
        row("M8", "40 times: 12 minus 1 lies between", new_c[TWELVE], new_c[ONE], between),
    ]


def controls():
    """The rows of M9 to M18: other learning rates, a wide layer, a looped one, no dropout."""
    read = reread.models_read(reread.stored(), 20)
    fit, new, same = ends(read, TRAINING), ends(read, LAST), reread.at_fit(read, 3.26)
    bare = reread.at_fit(reread.models_read(reread.stored("reread/no-dropout"), 20), 3.26)
    near = within("M16", "the same, and 12 layers", same[OWN_LOOP], same[TWELVE], 0.05)
    middle = statistics.mean(same[TWELVE])
    near["holds"] = all(abs(loss - middle) < 0.05 for loss in same[OWN_LOOP])
    return [
        below("M9", "looped layer below 1 on new text", new[LOOP], new[ONE]),
        below("M10", "12 layers below the wide one on new text", new[TWELVE], new[WIDE]),
        below("M11", "12 layers below 1 at 0.008 on new text", new[TWELVE], new[OWN]),
        within("M12", "12 layers and 1 at 0.008 fit as well", fit[TWELVE], fit[OWN], 0.1),
        below("M13", "looped at 0.008 below 0.004 on new text", new[OWN_LOOP], new[LOOP]),
        below("M14", "12 layers below looped at 0.008", new[TWELVE], new[OWN_LOOP]),
        below("M15", "same fit: looped below 1, both at 0.008", same[OWN_LOOP], same[OWN]),
        near,
        below("M17", "no dropout, same fit: 12 layers below 1", bare[TWELVE], bare[ONE]),
        below("M18", "no dropout, same fit: looped below 1", bare[LOOP], bare[ONE]),
    ]


def repeated():
    """The rows of M19 to M22: the same fit on fresh seeds."""
    read = reread.models_read(reread.stored("reread/fresh"), 20)
    new, same = ends(read, LAST), reread.at_fit(read, 3.27)
    either = same[ONE] + same[OWN]
    return [
        below("M19", "fresh seeds, same fit: 12 layers below 1", same[TWELVE], either),
        below("M20", "fresh seeds, same fit: looped below 1", same[LOOP], either),
        within("M21", "fresh seeds, same fit: looped and 12", same[LOOP], same[TWELVE], 0.03),
        below("M22", "fresh seeds: 1 layer below looped", new[ONE], new[LOOP]),
    ]


def five_depths():
    """The rows of M23 to M26: two, four and eight layers as well."""
    read = reread.models_read(reread.stored(), 20)
    fit, new, same = ends(read, TRAINING), ends(read, LAST), reread.at_fit(read, 3.27)
    middle = {model: statistics.mean(losses) for model, losses in same.items()}
    return [
        lower("M23", "2 layers fit better than 1", fit[TWO], fit[ONE]),
        lower("M23", "4 layers fit better than 2", fit[FOUR], fit[TWO]),
        lower("M24", "2 layers below 1 on new text", new[TWO], new[ONE]),
        lower("M24", "4 layers below 2 on new text", new[FOUR], new[TWO]),
        within("M25", "8 layers and 12 on new text", new[EIGHT], new[TWELVE], 0.05),
        row("M26", "same fit: 2 layers between 12 and 1", same[TWO], same[ONE],
            middle[TWELVE] < middle[TWO] < middle[ONE]),
        within("M26", "same fit: 4 layers and 12", same[FOUR], same[TWELVE], 0.02),
        within("M26", "same fit: 8 layers and 12", same[EIGHT], same[TWELVE], 0.02),
    ]  # fmt: skip


def wide_at_its_own_rate():
    """The rows of M27 to M30: the wide layer at 1e-3."""
    read = reread.models_read(reread.stored(), 20)
    new, same = ends(read, LAST), reread.at_fit(read, 3.27)
    either = same[ONE] + same[OWN]
    return [
        below("M27", "wide at 0.001 below 0.004 on new text", new[OWN_WIDE], new[WIDE]),
        below("M28", "12 layers below wide at 0.001", new[TWELVE], new[OWN_WIDE]),
        lower("M29", "1 layer at 0.008 below wide at 0.001", new[OWN], new[OWN_WIDE]),
        below("M30", "same fit: 1 layer below wide at 0.001", either, same[OWN_WIDE]),
    ]


def verdicts():
    """Every prediction: `name`, what was `said`, the means `a` and `b` of `n` runs each, whether it
    `holds`."""
    return planned() + controls() + repeated() + five_depths() + wide_at_its_own_rate()


def show():
    """Print a line for each."""
    for found in verdicts():
        verdict = "holds" if found["holds"] else "fell"
        print(f"{found['name']:3} {found['said']:43} {found['a']:.2f} {found['b']:.2f} {verdict}")
