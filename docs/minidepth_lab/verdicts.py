"""What runs say of predictions written before them: shares with exact intervals, contrasts between
two models by exact tests, Holm's correction over all that were named. The predictions of the ring
(docs/results/ring/predictions.md) stand here as data:

    python -c "from minidepth_lab import verdicts; verdicts.show()"    with PYTHONPATH=.:docs
"""

import re
import statistics

from minidepth_lab import results
from minidepth_lab.studies import ring
from minidepth_lab.studies.ring import (
    LEARNED,  # of a length's questions at the last step: it is learned
)

LITTLE, SOME, RULED_OUT = 0.2, 0.3, 0.4  # accuracies below which a prediction says "not learned"
PAIRED = 0.5  # correlation over seeds from which the paired test is shown as well


# ---------- statistics ----------


def exact_interval(successes, n, level=0.95):
    """(low, high) of Clopper and Pearson's (1934) interval for a share of n trials."""
    from scipy.stats import binomtest

    found = binomtest(successes, n).proportion_ci(level, method="exact")
    return float(found.low), float(found.high)


def fisher(a, b):
    """Two-sided p of Fisher's exact test: a and b are lists of whether each run succeeded."""
    from scipy.stats import fisher_exact

    table = [[sum(a), len(a) - sum(a)], [sum(b), len(b) - sum(b)]]
    return float(fisher_exact(table).pvalue)


def difference(a, b, axis):
    return a.mean(axis) - b.mean(axis)


def permutation(a, b):
    """Two-sided p of the difference of means over all ways to make two such groups."""
    from scipy.stats import permutation_test

    found = permutation_test((a, b), difference, vectorized=True, n_resamples=float("inf"))
    return float(found.pvalue)


def paired(a, b):
    """(correlation over seeds, two-sided p of the mean difference over all changes of sign). The p
    is None below PAIRED, and both are where one never varies or where seeds are missing."""
    from scipy.stats import permutation_test

    if len(a) != len(b) or len(set(a)) < 2 or len(set(b)) < 2:
        return None, None
    correlation = statistics.correlation(a, b)
    if correlation < PAIRED:
        return correlation, None
    options = dict(vectorized=True, n_resamples=float("inf"), permutation_type="samples")
    return correlation, float(permutation_test((a, b), difference, **options).pvalue)


def holm(ps):
    """Holm's (1979) corrected p of each of the ps, in their order: significant where it is at most
    the level that one asks for."""
    corrected, highest = [0.0] * len(ps), 0.0
    for rank, i in enumerate(sorted(range(len(ps)), key=lambda i: ps[i])):
        highest = max(highest, min(1.0, (len(ps) - rank) * ps[i]))
        corrected[i] = highest
    return corrected


def show_contrasts(contrasts):
    """Print of each contrast, {name: (numbers, others)}, the difference of means, the p of its
    permutation(), and Holm's over all of them → {name: Holm's p}."""
    ps = [permutation(a, b) for a, b in contrasts.values()]
    corrected = dict(zip(contrasts, holm(ps)))
    for (name, (a, b)), p in zip(contrasts.items(), ps):
        gap = statistics.mean(a) - statistics.mean(b)
        print(f"{name:46} {gap:+9.3g}  p {p:.4f}, corrected {corrected[name]:.4f}")
    return corrected


# ---------- the ring's predictions ----------

# (hypothesis, preset, model, {steps on: (which side of it, accuracy)}, runs that must, of how many)
AT_LEAST, AT_MOST = "≥", "≤"
GOOD = (AT_LEAST, LEARNED)
HYPOTHESES = [
    ("H1", "ring", "applied 1", {1: (AT_MOST, LITTLE), 2: (AT_MOST, LITTLE)}, 10, 10),
    ("H1", "ring", "applied 2", {1: GOOD, 2: (AT_MOST, SOME)}, 9, 10),
    ("H1", "ring", "applied 3", {1: GOOD, 2: GOOD}, 9, 10),
    ("H2", "ring", "applied 4", {1: GOOD, 2: GOOD}, 8, 10),
    ("H2", "ring", "applied 5", {1: GOOD, 2: GOOD}, 8, 10),
    ("H3", "ring", "wide, applied 1", {1: (AT_MOST, LITTLE), 2: (AT_MOST, LITTLE)}, 10, 10),
    ("H4", "ring-layers", "2 layers", {1: GOOD, 2: (AT_MOST, SOME)}, 5, 6),
    ("H4", "ring-layers", "3 layers", {2: GOOD}, 3, 6),
    ("H4", "ring-layers", "4 layers", {2: GOOD}, 5, 6),
    ("H5", "ring-layers", "2 layers, 2 times", {1: GOOD, 2: GOOD}, 5, 6),
    ("H7", "ring-four", "3 layers", {4: (AT_MOST, RULED_OUT)}, 5, 5),
    ("H7", "ring-four", "4 layers", {4: GOOD}, 2, 5),
    ("H7", "ring-four", "5 layers", {4: GOOD}, 2, 5),
    ("H8", "ring-written", "2 layers", {k: GOOD for k in (1, 2, 4, 7)}, 6, 6),
    ("H8", "ring-written", "1 layer", {k: (AT_MOST, LITTLE) for k in (1, 2, 4, 7)}, 6, 6),
]

# (contrast, (preset, model), (preset, model), the lengths that must all be learned)
CONTRASTS = [
    ("C1", ("ring", "applied 2"), ("ring", "applied 1"), (1,)),
    ("C2", ("ring", "applied 3"), ("ring", "applied 2"), (2,)),
    ("C3", ("ring", "applied 2"), ("ring", "wide, applied 1"), (1,)),
    ("C4", ("ring-layers", "3 layers"), ("ring-layers", "2 layers"), (2,)),
    ("C5", ("ring-layers", "2 layers, 2 times"), ("ring-layers", "2 layers"), (2,)),
    ("C6", ("ring", "applied 3"), ("ring-layers", "3 layers"), (2,)),
    ("C7", ("ring-four", "4 layers"), ("ring-four", "3 layers"), (4,)),
    ("C8", ("ring-written", "2 layers"), ("ring-written", "1 layer"), (1, 2, 4, 7)),
]


def stored(folder="ring"):
    """{(preset, model): {seed: {steps on: accuracy}}} of the runs in docs/results/FOLDER. A preset
    or a model that is not there was not run."""
    found = {}
    for path in sorted((results.RESULTS / folder).glob("*/summary.json")):
        preset = path.parent.name
        for run in results.summary(f"{folder}/{preset}")["runs"]:
            labels = run["labels"]
            seeds = found.setdefault((preset, labels["model"]), {})
            seeds.setdefault(int(labels["seed"]), {})[int(labels["lengths"])] = run["accuracy"]
    return found


def runs_of(folder, last=None):
    """{seed: {steps on: accuracy}} of the runs in docs/results/FOLDER/runs, of one model, up to the
    seed `last` if it is given."""
    found = {}
    for run in results.stored_runs(folder):
        if last is not None and run["seed"] > last:
            continue
        lengths = run["accuracy_by"]["lengths"]
        found[run["seed"]] = {int(k): part["accuracy"] for k, part in lengths.items()}
    return found


def as_predicted(accuracies, wanted):
    """Whether a run, {steps on: accuracy}, is on the predicted side at every length of `wanted`."""
    for length, (side, limit) in wanted.items():
        reached = accuracies[length]
        if (reached < limit) if side == AT_LEAST else (reached > limit):
            return False
    return True


def hypothesis_rows(found, hypotheses=HYPOTHESES):
    """Of each part of a hypothesis a dict: what was predicted, of how many runs it is true, their
    exact 95 % interval, and the verdict; "not run" where runs are missing."""
    rows = []
    for name, preset, model, wanted, least, planned in hypotheses:
        limits = {}  # lengths of the same limit are named together
        for k, limit in wanted.items():
            limits.setdefault(limit, []).append(str(k))
        said = ", ".join(f"{', '.join(ks)}: {side} {x}" for (side, x), ks in limits.items())
        row = dict(hypothesis=name, preset=preset, model=model, predicted=said)
        row["least"] = f"{least} of {planned}"
        runs = found.get((preset, model), {})
        if len(runs) < planned:
            row.update(measured=f"{len(runs)} runs", interval="", verdict="not run")
        else:
            n = sum(as_predicted(run, wanted) for run in runs.values())
            low, high = exact_interval(n, len(runs))
            row.update(measured=f"{n} of {len(runs)}", interval=f"{low:.2f} to {high:.2f}")
            row["verdict"] = "holds" if n >= least else "fell"
        rows.append(row)
    return rows


def sharing_row(found):
    """H6 as a row of hypothesis_rows(): whether two steps on the median of one layer applied three
    times is above that of three layers."""
    models = [("ring", "applied 3"), ("ring-layers", "3 layers")]
    row = dict(hypothesis="H6", preset="ring, ring-layers", model="applied 3, 3 layers")
    row.update(predicted="2: higher median", least="", interval="")
    if not all(model in found for model in models):
        return row | dict(measured="0 runs", verdict="not run")
    one, three = (statistics.median(run[2] for run in found[m].values()) for m in models)
    row["measured"] = f"{one:.2f}, {three:.2f}"
    return row | dict(verdict="holds" if one > three else "fell")


def contrast_rows(found, contrasts=CONTRASTS):
    """Of each contrast whose runs are there a dict: how many runs of each model learned, Fisher's p
    and Holm's corrected one over all contrasts (one that was not run counts as p = 1), the
    permutation test's p of the mean accuracy, and correlation and p of the paired test."""
    rows = []
    for name, first, second, lengths in contrasts:
        row = dict(contrast=name, first=first, second=second, lengths=lengths, p=1.0, ran=False)
        if first in found and second in found:
            seeds = [sorted(found[model]) for model in (first, second)]
            common = [seed for seed in seeds[0] if seed in seeds[1]]
            good, means = [], []
            for model in (first, second):
                runs = found[model]
                good.append([min(run[k] for k in lengths) >= LEARNED for run in runs.values()])
                means.append({s: statistics.mean(r[k] for k in lengths) for s, r in runs.items()})
            row.update(ran=True, learned=[f"{sum(g)} of {len(g)}" for g in good])
            row["p"] = fisher(*good)
            row["permutation"] = permutation(*(list(each.values()) for each in means))
            pairs = [[each[seed] for seed in common] for each in means]
            row["correlation"], row["paired"] = paired(*pairs)
        rows.append(row)
    for row, p in zip(rows, holm([row["p"] for row in rows])):
        row["holm"] = p
    return rows


def hop_rows(table="predictions.md"):
    """A table of predictions on k-hop, each with the accuracies of the five runs about it: dicts
    with `hypothesis`, `model`, `hops`, `predicted`, `shares` and `verdict`, mostly as text."""
    found, stored = {}, results.RESULTS / "khop"
    for path in sorted(stored.glob("*/runs/*")):
        run = results.result(path)
        model = ring.n_layers(run["n_layers"])
        if run["d_model"] > 64:  # the width of all others
            model = f"{run['n_layers']} wide layers, parameters of four"
        if run["n_loops"] > 1:
            model += f", {run['n_loops']} times"
        (hops,) = (int(size[len("hops=") :]) for size in run["sizes"] if size.startswith("hops="))
        found.setdefault((model, hops), []).append(run["accuracy"])
    text = (stored / table).read_text(encoding="utf-8")
    row = r"\| (K\d) \| (.+?) \| (\d) \| (learned|[\d.]+ or less) \| (\d) \|"
    rows = []
    for hypothesis, model, hops, predicted, least in re.findall(row, text):
        shares = sorted(found.get((model, int(hops)), ()))
        if predicted == "learned":
            agree = sum(share >= 0.95 for share in shares)
        else:
            agree = sum(share <= float(predicted.split()[0]) for share in shares)
        verdict = f"in {agree} of {len(shares)}: "
        verdict += "as expected" if agree >= int(least) else "fell"
        if not shares:
            verdict = "not run"
        said = " ".join(f"{share:.2f}" for share in shares) or "–"
        about = dict(hypothesis=hypothesis, model=model, hops=int(hops), predicted=predicted)
        rows.append(about | dict(shares=said, verdict=verdict))
    return rows


def show(found=None, hypotheses=HYPOTHESES, contrasts=CONTRASTS):
    """Print both tables; of the ring's, if no others are given."""
    found = stored() if found is None else found
    rows = hypothesis_rows(found, hypotheses)
    if hypotheses is HYPOTHESES:
        rows.append(sharing_row(found))
    wide = max(len(row["predicted"]) for row in rows)
    form = f"{{:2}} {{:19}} {{:{wide}}} {{:8}} {{:10}} {{:12}} {{}}"
    print(form.format("", "model", "steps: accuracy", "needs", "found", "interval", "result"))
    for row in sorted(rows, key=lambda row: row["hypothesis"]):
        keys = ("hypothesis", "model", "predicted", "least", "measured", "interval", "verdict")
        print(form.format(*(row[key] for key in keys)))
    print()
    for row in contrast_rows(found, contrasts):
        names = " against ".join(model for _, model in (row["first"], row["second"]))
        if not row["ran"]:
            print(f"{row['contrast']} {names}: not run")
            continue
        print(f"{row['contrast']} {names}: learned by {row['learned'][0]}, {row['learned'][1]};")
        said = f"Fisher's p {row['p']:.2g}, corrected {row['holm']:.2g}, "
        said += f"permutation {row['permutation']:.2g}"
        if row["paired"] is not None:
            said += f", paired {row['paired']:.2g}"
        print(f"   {said}")
