"""What stored runs say of the predictions that were written before them, and the tests this needs.

    for each in judge.judged("ring"): print(each["id"], each["verdict"])
    judge.show("ring")                     each prediction part by part, and the contrasts
    print(judge.tally("ring"))             2 of 8 held; H1, H2, … were wrong

docs/results/NAME/predictions.toml holds the predictions of an experiment. No verdict is stored: it
is worked out from runs.jsonl each time.

    written = 2026-11-22                   the day on which they were written; a prediction that was
                                           written on another has its own
    told = ["rings"]                       the tutorials that tell of them
    title, note                            for the page of all predictions

    [runs]                                 names for runs: the settings of each, as select() takes
    "2 loops" = {n_layers = 1, n_loops = 2}              them. `seed = "80 to 89"` is a range;
                                           `experiment` names another experiment, and
                                           `trials = true` means the lines of tuning.jsonl

    [measures]                             names for measures, which are
    "1 step" = "last accuracy_by.lengths.1.accuracy"
        last COLUMN                        at the last evaluation; a dot leads into a dict
        least COLUMN, greatest COLUMN      of all evaluations
        step of least COLUMN               the training step of that evaluation
        step of COLUMN at 0.9              that of the first evaluation with at least so much;
                                           infinite if there is none
        COLUMN where OTHER is 3.26         on a straight line between two evaluations, the first
                                           time that OTHER is so low; at the end if it never is
        greatest gap in COLUMN from step 50 to 250           of two runs of one seed
        measured NAME                      what was measured after the training
        walk                               of a model of rings that is stored: see walk_share()

    [[prediction]]
    id = "ring/H1"                         its experiment, and its name there
    sentence = "…"

A prediction holds if all its parts do: [[prediction.part]], or the prediction itself if it has one.
A part counts runs, or compares numbers, or asks for a p value.

    of = "2 loops"                         the runs it is about, by name or by their settings
    given = [CONDITION, …]                 only those of them that meet these conditions
    runs = 10                              how many were planned; with fewer it was "not run"
    minus = "1 loop"                       a run's value is less that of the run of the same seed

    each = [CONDITION, …]                  a run must meet all of them; one alone stands in the part
    count = 9, most = 10                   in at least, and at most, so many runs

    statistic = "median"                   or mean, greatest, least: of the values of all runs `of`,
                                           less that of the runs `minus`, is within the bounds; or
                                           "share": that of the runs that meet `each`.
                                           minus_statistic, if it is another; minus_runs, how many.
                                           Lists `of` and `minus` are added up

    contrasts = ["ring/C1", …]             the corrected p of each of these is within the bounds

A CONDITION is a measure, from which the measure `less` may be taken, and bounds: {measure, low}.
Bounds are low ≤ value ≤ high and above < value < below. `scale` multiplies, [of, minus].

    [[contrast]]                           a test of two models
    id = "ring/C1"
    family = "ring"                        Holm's correction is over all contrasts of one family
    test = "fisher"                        on how many runs meet `each`; or "permutation", on the
                                           means of `measure`, both two-sided
    of, minus, each, measure, scale        as above
    beside = ["1 step"]                    measures, whose mean a permutation test compares as well
"""

import functools
import math
import pathlib
import statistics
import textwrap
import tomllib
from collections.abc import Sequence
from typing import Any

from minidepth_lab.measure import results

HELD, WRONG, NOT_RUN = "held", "was wrong", "not run"
WIDTH = 84  # columns of what show() prints
PAIRED = 0.5  # correlation over seeds from which the paired test is shown as well
STATISTICS = dict(
    mean=statistics.mean, median=statistics.median, greatest=max, least=min
)  # fmt: skip
BOUNDS = dict(low="≥", high="≤", above=">", below="<")


# ---------- statistics ----------


def exact_interval(successes: int, n: int) -> tuple[float, float]:
    """(low, high) of Clopper and Pearson's (1934) 95 % interval for a share of n trials."""
    from scipy.stats import binomtest

    share = binomtest(successes, n).proportion_ci(0.95, method="exact")
    return float(share.low), float(share.high)


def fisher(a: Sequence[bool], b: Sequence[bool]) -> float:
    """Two-sided p of Fisher's exact test: a and b are lists of whether each run succeeded."""
    from scipy.stats import fisher_exact

    table = [[sum(a), len(a) - sum(a)], [sum(b), len(b) - sum(b)]]
    return float(fisher_exact(table).pvalue)


def difference(a: Any, b: Any, axis: int) -> Any:
    return a.mean(axis) - b.mean(axis)


def permutation(a: Sequence[float], b: Sequence[float]) -> float:
    """Two-sided p of the difference of means over all ways to make two such groups."""
    from scipy.stats import permutation_test

    test = permutation_test((a, b), difference, vectorized=True, n_resamples=float("inf"))
    return float(test.pvalue)


def paired(a: Sequence[float], b: Sequence[float]) -> tuple[float | None, float | None]:
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


def holm(ps: Sequence[float]) -> list[float]:
    """Holm's (1979) corrected p of each of the ps, in their order: significant where it is at most
    the level that one asks for."""
    corrected, highest = [0.0] * len(ps), 0.0
    for rank, i in enumerate(sorted(range(len(ps)), key=lambda i: ps[i])):
        highest = max(highest, min(1.0, (len(ps) - rank) * ps[i]))
        corrected[i] = highest
    return corrected


def show_tests(pairs: dict[str, tuple]) -> dict[str, float]:
    """Print of each of the pairs, {name: (numbers, others)}, the difference of means, the p of its
    permutation(), and Holm's over all of them → {name: Holm's p}."""
    ps = [permutation(a, b) for a, b in pairs.values()]
    corrected = dict(zip(pairs, holm(ps)))
    for (name, (a, b)), p in zip(pairs.items(), ps):
        gap = statistics.mean(a) - statistics.mean(b)
        print(f"{name:46} {gap:+9.3g}  p {p:.4f}, corrected {corrected[name]:.4f}")
    return corrected


# ---------- measures ----------


def seeds_of(named: Any) -> Sequence[int]:
    """The seeds that a prediction names: "200 to 204", one, or a list of them."""
    if isinstance(named, str):
        first, _, last = named.partition(" to ")
        return range(int(first), int(last) + 1)
    return [named] if isinstance(named, int) else named


def column(row: dict, path: str) -> Any:
    """The value of a log's row in a column, whose path has dots where it leads into dicts."""
    value = row
    for name in path.split("."):
        value = value[name]
    return value


def value_at(run: dict, path: str, other: str, level: float) -> float:
    """The column `path` of a run's log where the column `other` is first as low as `level`, on a
    straight line between two evaluations; as the run ends, if it never is."""
    before = None
    for row in run["log"]:
        if column(row, other) <= level:
            break
        before = row
    if before is None or before is row:
        return column(row, path)
    falls = column(before, other) - column(row, other)
    share = (column(before, other) - level) / falls
    return column(before, path) + share * (column(row, path) - column(before, path))


@functools.cache
def walk_share(experiment: str, run_id: str) -> float:
    """Of a stored model of rings that applies its layer five times: the share of 200 rings'
    questions whose token holds the letter that it has walked to, of the application and length
    where that is least."""
    import minidepth as md
    from minidepth_lab.measure import ring_runs
    from minidepth_lab.tasks import TASKS

    lengths = (1, 2, 3, 4)
    tokens, _ = TASKS["ring"].draw(200, md.generator("walk"), lengths=lengths)
    model, _ = md.load(results.weights(experiment, run_id))
    shares = ring_runs.walk(model, tokens)
    return min(shares[j, k][min(j - 1, k)] for j in (2, 3, 4, 5) for k in lengths)


def value(run: dict, measure: str) -> float:
    """What a measure, as the head of this file has them, is of a run of results.runs()."""
    log, (first, _, rest) = run["log"], measure.partition(" ")
    if measure == "walk":
        return walk_share(run["experiment"], run["id"])
    if first == "measured":
        return column(run["measured"], rest)
    if first == "last":
        return column(log[-1], rest)
    if first in ("least", "greatest"):
        return STATISTICS[first](column(row, rest) for row in log)
    if measure.startswith("step of least "):
        path = measure.removeprefix("step of least ")
        return min(log, key=lambda row: column(row, path))["step"]
    if measure.startswith("step of "):
        path, _, enough = measure.removeprefix("step of ").rpartition(" at ")
        steps = (row["step"] for row in log if column(row, path) >= float(enough))
        return next(steps, math.inf)
    path, where, level = measure.partition(" where ")
    if where:
        other, _, level = level.rpartition(" is ")
        return value_at(run, path, other, float(level))
    raise ValueError(f"measure {measure!r} is unknown; see the head of judge.py")


def gap(run: dict, other: dict, measure: str) -> float:
    """The value of a run less that of the other, which has its seed. Of "greatest gap in …" the
    difference is taken evaluation by evaluation."""
    words = measure.split()
    if words[:3] != ["greatest", "gap", "in"]:
        return value(run, measure) - value(other, measure)
    path, first, last = words[3], int(words[6]), int(words[8])
    theirs = {row["step"]: column(row, path) for row in other["log"]}
    gaps = []
    for row in run["log"]:
        if first <= row["step"] <= last and row["step"] in theirs:
            gaps.append(column(row, path) - theirs[row["step"]])
    return max(gaps)


def within(number: float, bounds: dict) -> bool:
    """Whether a number keeps to the bounds of a part or condition."""
    return (
        ("low" not in bounds or number >= bounds["low"])
        and ("high" not in bounds or number <= bounds["high"])
        and ("above" not in bounds or number > bounds["above"])
        and ("below" not in bounds or number < bounds["below"])
    )


# ---------- files ----------


@functools.lru_cache(maxsize=64)
def runs_at(path: pathlib.Path, changed: float) -> list[dict]:
    """results.runs() of the experiment whose file this is, once for each time that it changed."""
    return results.runs(path.parent.name)


@functools.lru_cache(maxsize=8)
def trials_at(path: pathlib.Path, changed: float) -> list[dict]:
    """The lines of a tuning.jsonl as select() takes runs: their settings and evaluations."""
    trials = []
    for trial in results.noted(path.parent.name):
        settings = dict(n_loops=1) | trial.pop("settings")
        log = [*trial.pop("evaluations"), dict(step=settings["steps"], **trial)]
        trials.append(settings | trial | dict(log=log, sizes_by_name={}))
    return trials


class File:
    """The predictions of an experiment, as its predictions.toml has them."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.path = results.RESULTS / name / "predictions.toml"
        if not self.path.exists():
            known = ", ".join(experiments())
            raise ValueError(f"{name!r} has no predictions; choose from {known}")
        with open(self.path, "rb") as f:
            self.about = tomllib.load(f)
        self.measures = self.about.get("measures", {})
        self.predictions = self.about["prediction"]

    @functools.cached_property
    def judged_contrasts(self) -> dict[str, dict]:
        contrasts, families = {}, {}
        for about in self.about.get("contrast", ()):
            key = about["id"]
            contrasts[key] = contrast(self, about)
            families.setdefault(contrasts[key]["family"], []).append(key)
        for keys in families.values():
            for key, p in zip(keys, holm([contrasts[key]["p"] for key in keys])):
                contrasts[key]["holm"] = p
        return contrasts

    def measure(self, name: str) -> str:
        return self.measures.get(name, name)

    def settings(self, of: str | dict) -> dict:
        return dict(self.about["runs"][of] if isinstance(of, str) else of)

    def runs(self, of: Any) -> list[dict]:
        """The stored runs that `of` means, in the order of their seeds; none of an experiment that
        has no runs yet."""
        settings = self.settings(of)
        experiment = settings.pop("experiment", self.name)
        name, read = "runs.jsonl", runs_at
        if settings.pop("trials", False):
            name, read = "tuning.jsonl", trials_at
        path = results.RESULTS / experiment / name
        if not path.exists():
            return []
        if "seed" in settings:
            settings["seed"] = seeds_of(settings["seed"])
        runs = results.select(read(path, path.stat().st_mtime_ns), **settings)
        return sorted(runs, key=lambda run: run["seed"])

    def missing(self, of: Any) -> set[int]:
        """The seeds that `of` names and of which no run is stored."""
        named = self.settings(of).get("seed", ())
        return set(seeds_of(named)) - {run["seed"] for run in self.runs(of)}

    def has_logged(self, run: dict, part: dict) -> bool:
        """Whether a run's last row has what a part asks of it: of some runs only the lines that
        were printed are left."""
        for condition in conditions_of(part):
            for key in ("measure", "less"):
                when, _, path = self.measure(condition.get(key, "")).partition(" ")
                if when == "last" and path.partition(".")[0] not in run["log"][-1]:
                    return False
        return True

    def value(self, run: dict, condition: dict) -> float:
        """The measure of a condition, less the other if it names one."""
        number = value(run, self.measure(condition["measure"]))
        if "less" in condition:
            less = value(run, self.measure(condition["less"]))
            if number == less == math.inf:
                return math.inf  # neither ever came
            number -= less
        return number

    def meets(self, run: dict, conditions: list[dict]) -> bool:
        """Whether a run meets all of the conditions."""
        return all(within(self.value(run, each), each) for each in conditions)


def named_runs(name: str) -> dict[str, list[dict]]:
    """{name that an experiment's predictions.toml gives to runs: these runs, by seed}"""
    file = File(name)
    return {of: file.runs(of) for of in file.about["runs"]}


def experiments() -> list[str]:
    """The names of the experiments with predictions, in alphabetical order."""
    return sorted(path.parent.name for path in results.RESULTS.glob("*/predictions.toml"))


# ---------- parts ----------


def conditions_of(part: dict) -> list[dict]:
    """The conditions of a part that counts: those of `each`, or the one that stands in it."""
    return part["each"] if "each" in part else [part]


def listed(of: Any) -> list:
    return of if isinstance(of, list) else [of]


def enough_runs(file: File, part: dict) -> bool:
    """Whether all planned runs of a part are stored, and have logged what it asks; ValueError if
    there are more."""
    planned = part["runs"]
    for of, n in [(of, planned) for of in listed(part["of"])] + [
        (of, part.get("minus_runs", planned)) for of in listed(part.get("minus", []))
    ]:
        runs = file.runs(of)
        if len(runs) > n:
            raise ValueError(f"{file.path}: {of} are {len(runs)} runs where {n} were planned")
        if len(runs) < n or not all(file.has_logged(run, part) for run in runs):
            return False
    return True


def counted(file: File, part: dict) -> dict:
    """A part that counts runs: whether each of them did as predicted."""
    runs = file.runs(part["of"])
    runs = [run for run in runs if file.meets(run, part.get("given", ()))]
    if "minus" not in part:
        good = [file.meets(run, conditions_of(part)) for run in runs]
    else:
        others = {run["seed"]: run for run in file.runs(part["minus"])}
        measure = file.measure(part["measure"])
        good = [within(gap(run, others[run["seed"]], measure), part) for run in runs]
    held = part.get("count", 0) <= sum(good) <= part.get("most", len(good))
    return dict(good=good, measured=f"{sum(good)} of {len(good)}", n=[len(good)], held=held)


def compared(file: File, part: dict) -> dict:
    """A part that compares numbers: a statistic of some runs, less that of others."""
    numbers, names, n = [], [], []
    for key, sign in (("of", 1), ("minus", -1)):
        default = part["statistic"]
        statistic = part.get("minus_statistic", default) if sign < 0 else default
        scale = part.get("scale", (1, 1))[sign < 0]
        for of in listed(part.get(key, [])):
            runs = [run for run in file.runs(of) if file.meets(run, part.get("given", ()))]
            if statistic == "share":
                numbers.append(
                    (sign, statistics.mean(file.meets(run, part["each"]) for run in runs))
                )
            else:
                values = [file.value(run, part) * scale for run in runs]
                numbers.append((sign, STATISTICS[statistic](values)))
            names.append(f"{statistic} " if "minus_statistic" in part else "")
            n.append(len(runs))
    total = sum(sign * number for sign, number in numbers)
    measured = ", ".join(f"{name}{number:.4g}" for name, (_, number) in zip(names, numbers))
    return dict(measured=measured, n=n, held=within(total, part))


def tested(file: File, part: dict) -> dict:
    """A part that asks for p values."""
    contrasts = file.judged_contrasts
    ps = [contrasts[name]["holm"] for name in part["contrasts"]]
    n = sorted({n for name in part["contrasts"] for n in contrasts[name]["n"]})
    measured = f"p {'at most' if len(ps) > 1 else '='} {max(ps):.2g}"
    return dict(measured=measured, n=n, held=all(within(p, part) for p in ps))


def judged_part(file: File, part: dict) -> dict:
    """A part with what its runs say: `measured` and `verdict`, of `n` runs."""
    if "contrasts" in part:
        contrasts = file.judged_contrasts
        ran, judge = all(contrasts[name]["ran"] for name in part["contrasts"]), tested
    else:
        ran, judge = enough_runs(file, part), compared if "statistic" in part else counted
    if not ran:
        return part | dict(measured="–", n=[], verdict=NOT_RUN)
    part = part | judge(file, part)
    return part | dict(verdict=HELD if part["held"] else WRONG)


def judged_prediction(file: File, prediction: dict) -> dict:
    """A prediction with its judged `parts`, and its `verdict`, `measured` and `n` of them all."""
    parts = [judged_part(file, part) for part in prediction.get("part", [prediction])]
    verdicts = {part["verdict"] for part in parts}
    verdict = next(word for word in (NOT_RUN, WRONG, HELD) if word in verdicts)
    measured = "; ".join(part["measured"] for part in parts)
    written = prediction.get("written", file.about["written"])
    about = dict(id=prediction["id"], sentence=prediction["sentence"], written=written)
    return about | dict(
        parts=parts, verdict=verdict, measured=measured, n=[n for part in parts for n in part["n"]]
    )


def judged(name: str) -> list[dict]:
    """Every prediction of an experiment, in the order of its file, with its `verdict`; ValueError
    for an experiment that has none."""
    return judged_predictions(File(name))


def judged_predictions(file: File) -> list[dict]:
    return [judged_prediction(file, each) for each in file.predictions]


def verdicts(name: str) -> dict[str, str]:
    """{id without its experiment: verdict} of an experiment's predictions."""
    return {each["id"].partition("/")[2]: each["verdict"] for each in judged(name)}


def verdict(prediction_id: str) -> str:
    """The verdict of one prediction, "ring/H1"."""
    name, _, which = prediction_id.partition("/")
    return verdicts(name)[which]


def judged_contrasts(name: str) -> dict[str, dict]:
    """{id: contrast} of an experiment with what its runs say: `n` runs each, `p`, Holm's `holm`
    over its family (one that was not run counts as p = 1), `ran`; with Fisher's test how many runs
    were `good`, and with `beside` the `permutation` test and the `paired` one with its
    `correlation`."""
    return File(name).judged_contrasts


def contrast(file: File, about: dict) -> dict:
    """One contrast with what its runs say, but for Holm's correction over the others."""
    about = dict(family=file.name) | about
    groups = [file.runs(about[key]) for key in ("of", "minus")]
    if not all(groups) or file.missing(about["of"]) or file.missing(about["minus"]):
        return about | dict(p=1.0, ran=False, n=[])
    about = about | dict(ran=True, n=[len(runs) for runs in groups])
    if about["test"] == "fisher":
        good = [[file.meets(run, conditions_of(about)) for run in runs] for runs in groups]
        about |= dict(p=fisher(*good), good=good)
    else:
        scales = about.get("scale", (1, 1))
        values = [
            [file.value(run, about) * scale for run in runs] for runs, scale in zip(groups, scales)
        ]
        about |= dict(p=permutation(*values), values=values)
    if "beside" in about:
        measures = [file.measure(name) for name in about["beside"]]
        means = []
        for runs in groups:
            means.append(
                {run["seed"]: statistics.mean(value(run, m) for m in measures) for run in runs}
            )
        about["permutation"] = permutation(*(list(each.values()) for each in means))
        common = [seed for seed in means[0] if seed in means[1]]
        pairs = [[each[seed] for seed in common] for each in means]
        about["correlation"], about["paired"] = paired(*pairs)
    return about


# ---------- words ----------


def names_of(file: File, of: Any) -> str:
    """Runs as a table names them: by the file's name for them, or by their settings."""
    if isinstance(of, list):
        return ", ".join(names_of(file, each) for each in of)
    if isinstance(of, str):
        return of
    return ", ".join(f"{key} {value}" for key, value in of.items())


def asked(part: dict) -> str:
    """The conditions of a part in words: "1 step ≥ 0.9; 2 steps, 3 steps ≤ 0.4"."""
    if "contrasts" in part:
        names = (name.partition("/")[2] for name in part["contrasts"])
        return f"p of {', '.join(names)} < {part['below']}"
    measures = {}  # those that have the same bounds are named together
    for each in conditions_of(part):
        bounds = tuple(f"{sign} {each[key]}" for key, sign in BOUNDS.items() if key in each)
        less = f" − {each['less']}" if "less" in each else ""
        measures.setdefault(bounds, []).append(each["measure"] + less)
    return "; ".join(
        f"{', '.join(names)} {', '.join(bounds)}" for bounds, names in measures.items()
    )


def outcome(part: dict) -> str:
    """What came of a part in words: "in 9 of 10 predicted, 10 of 10 (0.69 to 1.00): held"."""
    if part["verdict"] == NOT_RUN:
        return NOT_RUN
    words = part["measured"]
    if "statistic" in part and "minus_statistic" not in part:
        words = f"{part['statistic']} {words}"
    elif "good" in part:
        least, most = part.get("count"), part.get("most")
        limits = f"at most {most}" if least is None else f"{least}"
        if least is not None and most is not None:
            limits = f"{least} to {most}"
        planned = "" if "given" in part else f" of {part['runs']}"
        words = f"in {limits}{planned} predicted, {words}"
        if part["good"]:
            low, high = exact_interval(sum(part["good"]), len(part["good"]))
            words += f" ({low:.2f} to {high:.2f})"
    return f"{words}: {part['verdict']}"


def tally(name: str, *names: str) -> str:
    """How an experiment's predictions came out, or those of these names, as a sentence's end: "7 of
    8 held; H1 was wrong"."""
    found = verdicts(name)
    chosen = {key: found[key] for key in names or found}
    held = sum(word == HELD for word in chosen.values())
    text = f"{held} of {len(chosen)} held"
    for word, plural in ((WRONG, "were wrong"), (NOT_RUN, "were not run")):
        if keys := [key for key in chosen if chosen[key] == word]:
            one = word if word == WRONG else "was not run"
            text += f"; {', '.join(keys)} {one if len(keys) == 1 else plural}"
    return text


def print_lines(text: str, *more: str) -> None:
    """Print a text and, set in, more of them, in lines that fit beside the menu of a page."""
    print(textwrap.fill(text, WIDTH, subsequent_indent="   "))
    for each in more:
        print(textwrap.fill(each, WIDTH, initial_indent="   ", subsequent_indent="   "))


def show(name: str, *names: str) -> None:
    """Print an experiment's predictions, or those of these names, part by part: runs that did as
    predicted come with their exact 95 % interval. Then its contrasts."""
    file = File(name)
    for each in judged_predictions(file):
        which = each["id"].partition("/")[2]
        if names and which not in names:
            continue
        for part in each["parts"]:
            of = f"{names_of(file, part['of'])}: " if "of" in part else ""
            if "minus" in part:
                of = f"{of.removesuffix(': ')} − {names_of(file, part['minus'])}: "
            print_lines(f"{which} {of}{asked(part)}", outcome(part))
    for each in file.judged_contrasts.values() if not names else ():
        show_contrast(file, each)


def show_contrast(file: File, each: dict) -> None:
    """Print one of judged_contrasts()."""
    which = each["id"].partition("/")[2]
    models = f"{which}: {names_of(file, each['of'])} against {names_of(file, each['minus'])}"
    if not each["ran"]:
        print_lines(f"{models}: not run")
        return
    if "good" in each:
        numbers = ", ".join(f"{sum(good)} of {len(good)}" for good in each["good"])
    else:
        numbers = ", ".join(f"{statistics.mean(values):.4g}" for values in each["values"])
    test = "Fisher's p" if each["test"] == "fisher" else "permutation p"
    tests = f"{test} {each['p']:.2g}, corrected {each['holm']:.2g}"
    if "permutation" in each:
        tests += f", permutation {each['permutation']:.2g}"
    if each.get("paired") is not None:
        tests += f", paired {each['paired']:.2g}"
    print_lines(f"{models}: {numbers}", tests)
