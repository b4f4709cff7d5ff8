"""What stored runs say of the predictions that were written before them, and the tests this needs.

    for each in judge.judged("ring"): print(each["id"], each["verdict"])
    judge.show("ring")                     each prediction part by part, and the tests
    print(judge.tally("ring"))             2 of 8 held; H1, H2, … were wrong

docs/results/NAME/predictions.toml holds the predictions of an experiment. No verdict is stored: it
is worked out from runs.jsonl each time.

    title, note                            for the page of all predictions
    told = ["rings"]                       the tutorials that tell of them

    [runs]                                 names for runs: the settings of each, as select() takes
    "2 loops" = {n_layers = 1, n_loops = 2, seed = "80 to 89"}             them. `experiment` names
                                           another experiment, `trials = true` the lines of
                                           tuning.jsonl, `n` how many runs, if not one a seed

    [measures]                             names for numbers of a run: a column of its last
    step_1 = "accuracy_by.lengths.1.accuracy"           evaluation, a dot leads into a dict;
    far = "measured.far.window.least"      what was measured after the training; or a call of a
    comes = 'step_of("accuracy", 0.9)'     function in OF_A_RUN

    [written.2026-11-22]                   the day on which they were written
    H1 = ["What it says.", {a = "2 loops", holds = "count(a.step_1 >= 0.9) >= 9"}]

A prediction holds if all its parts do. A part names runs, a, b, …, and says in Python what has to
be true of them: `a.step_1` is an array of a measure, by seed. Without a run that was planned, or a
measure of it, it was "not run". A part may call count() and STATISTICS, and ask for p['C1'], the
corrected p of

    [tests]
    C1 = {a = "2 loops", b = "1 loop", p = "fisher(a.step_1 >= 0.9, b.step_1 >= 0.9)"}

or permutation(), on the means; both are two-sided. Holm's correction is over all tests of one
`family`, the experiment if none is named. `beside` names measures, whose mean a permutation test
compares as well.
"""

import datetime
import functools
import math
import pathlib
import statistics
import textwrap
import tomllib
from collections.abc import Sequence
from typing import Any

import numpy as np

from minidepth_lab.measure import results

HELD, WRONG, NOT_RUN = "held", "was wrong", "not run"
WIDTH = 84  # columns of what show() prints
PAIRED = 0.5  # correlation over seeds from which the paired test is shown as well
GROUPS = "abcd"  # what a part calls its runs
STATISTICS = dict(mean=np.mean, median=np.median, greatest=np.max, least=np.min)


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
    """Two-sided p of the difference of means over all ways to make two such groups; ValueError
    where one has no two runs."""
    from scipy.stats import permutation_test

    if min(len(a), len(b)) < 2:
        few = f"a permutation test of {len(a)} against {len(b)} runs"
        raise ValueError(f"{few} says nothing; give two of each at least")
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


# ---------- numbers of a run ----------


def seeds_of(named: Any) -> Sequence[int]:
    """The seeds that a prediction names: "200 to 204", one, or a list of them."""
    if isinstance(named, str):
        first, _, last = named.partition(" to ")
        return range(int(first), int(last) + 1)
    return [named] if isinstance(named, int) else named


def column(record: dict, path: str) -> Any:
    """The value of a record of a log in a column, whose path has dots where it leads into dicts."""
    value = record
    for name in path.split("."):
        value = value[name]
    return value


def value_at(run: dict, path: str, other: str, level: float) -> float:
    """The column `path` of a run's log where the column `other` is first as low as `level`, on a
    straight line between two evaluations; as the run ends, if it never is."""
    before = None
    for record in run["log"]:
        if column(record, other) <= level:
            break
        before = record
    if before is None or before is record:
        return column(record, path)
    falls = column(before, other) - column(record, other)
    share = (column(before, other) - level) / falls
    return column(before, path) + share * (column(record, path) - column(before, path))


def step_of(run: dict, path: str, enough: float) -> float:
    """The training step of the first evaluation with at least so much; infinite without one."""
    return next(
        (record["step"] for record in run["log"] if column(record, path) >= enough), math.inf
    )


def lowest(run: dict, path: str) -> dict:
    """The record of a run's log where a column is least: NaN never is, unless there is no other."""

    def key(record):
        value = column(record, path)
        return math.isnan(value), value

    return min(run["log"], key=key)


def step_of_least(run: dict, path: str) -> int:
    return lowest(run, path)["step"]


def least(run: dict, path: str) -> float:
    return column(lowest(run, path), path)


def course(run: dict, path: str, first: int, last: int) -> list[float]:
    """A column's values at the evaluations from one step to another."""
    return [column(record, path) for record in run["log"] if first <= record["step"] <= last]


@functools.cache
def walk_share_of(experiment: str, run_id: str) -> float:
    """Of a stored model of rings that applies its layer five times: the share of 200 rings'
    questions whose token holds the letter that it has walked to, of the application and length
    where that is least."""
    import minidepth as md
    from minidepth_lab.keep import checkpoints
    from minidepth_lab.measure import ring_runs
    from minidepth_lab.tasks import TASKS

    lengths = (1, 2, 3, 4)
    tokens, _ = TASKS["ring"].draw(200, md.generator("walk"), lengths=lengths)
    model, _ = checkpoints.load(results.weights(experiment, run_id))
    shares = ring_runs.walk(model, tokens)
    return min(shares[j, k][min(j - 1, k)] for j in (2, 3, 4, 5) for k in lengths)


def walk_share(run: dict) -> float:
    return walk_share_of(run["experiment"], run["id"])


OF_A_RUN = dict(
    value_at=value_at, step_of=step_of, step_of_least=step_of_least, least=least, course=course,
    walk_share=walk_share,
)  # fmt: skip


def value(run: dict, measure: str) -> Any:
    """What a measure, as the head of this file has them, is of a run of results.runs(). KeyError
    if the run has not logged it: of some runs only the lines that were printed are left."""
    if "(" in measure:
        known = {name: functools.partial(of, run) for name, of in OF_A_RUN.items()}
        return eval(measure, known)
    first, _, rest = measure.partition(".")
    return column(run["measured"], rest) if first == "measured" else column(run["log"][-1], measure)


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
        self.tests = self.about.get("tests", {})
        self.predictions = [
            dict(id=f"{name}/{which}", sentence=sentence, parts=parts, written=day)
            for text, of_a_day in self.about["written"].items()
            for day in [datetime.date.fromisoformat(text)]
            for which, (sentence, *parts) in of_a_day.items()
        ]

    @functools.cached_property
    def judged_tests(self) -> dict[str, dict]:
        tests, families = {}, {}
        for which, about in self.tests.items():
            tests[which] = judged_test(self, which, about)
            families.setdefault(tests[which]["family"], []).append(which)
        for family in families.values():
            for which, p in zip(family, holm([tests[which]["p"] for which in family])):
                tests[which]["holm"] = p
        return tests

    def runs(self, of: str) -> list[dict]:
        """The stored runs that a name means, in the order of their seeds; none of an experiment
        that has no runs yet."""
        settings = dict(self.about["runs"][of])
        settings.pop("n", None)
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

    def planned(self, of: str) -> int:
        """How many runs a name means."""
        settings = self.about["runs"][of]
        return settings["n"] if "n" in settings else len(seeds_of(settings["seed"]))

    def all_there(self, part: dict) -> bool:
        """Whether all planned runs of a part are stored; ValueError if there are more."""
        for of in groups(part).values():
            n, planned = len(self.runs(of)), self.planned(of)
            if n > planned:
                raise ValueError(f"{self.path}: {of} are {n} runs where {planned} were planned")
            if n < planned:
                return False
        return True


class Arrays:
    """The measures of some runs, each an array by seed."""

    def __init__(self, file: File, of: str) -> None:
        self._file, self._runs = file, file.runs(of)

    def __getattr__(self, name: str) -> np.ndarray:
        if name not in self._file.measures:
            raise ValueError(f"{self._file.path} has no measure {name}")
        return np.array([value(run, self._file.measures[name]) for run in self._runs])


def groups(part: dict) -> dict[str, str]:
    """{"a": the name of runs, …} of a part or test."""
    return {key: part[key] for key in GROUPS if key in part}


def named_runs(name: str) -> dict[str, list[dict]]:
    """{name that an experiment's predictions.toml gives to runs: these runs, by seed}"""
    file = File(name)
    return {of: file.runs(of) for of in file.about["runs"]}


def experiments() -> list[str]:
    """The names of the experiments with predictions, in alphabetical order."""
    return sorted(path.parent.name for path in results.RESULTS.glob("*/predictions.toml"))


# ---------- verdicts ----------


class Measured:
    """What a part is told by: each of these functions notes what it gave."""

    def __init__(self, file: File) -> None:
        self.file, self.counts, self.numbers, self.n, self.ps = file, [], [], [], []

    def count(self, good: np.ndarray) -> int:
        self.counts.append((int(good.sum()), len(good)))
        self.n.append(len(good))
        return int(good.sum())

    def of_all(self, name: str, values: np.ndarray) -> float:
        self.numbers.append((name, float(STATISTICS[name](values))))
        self.n.append(len(values))
        return self.numbers[-1][1]

    def __getitem__(self, which: str) -> float:
        """The corrected p of a test; KeyError if it was not run, ValueError if there is none."""
        if which not in self.file.tests:
            raise ValueError(f"{self.file.path} has no test {which}")
        test = self.file.judged_tests[which]
        if not test["ran"]:
            raise KeyError(which)
        self.ps.append(test["holm"])
        self.n = sorted({*self.n, *test["n"]})
        return test["holm"]

    def __str__(self) -> str:
        if self.ps:
            return f"p {'at most' if len(self.ps) > 1 else '='} {max(self.ps):.2g}"
        label = len({name for name, _ in self.numbers}) > 1
        words = [f"{good} of {n}" for good, n in self.counts]
        words += [f"{name} {x:.4g}" if label else f"{x:.4g}" for name, x in self.numbers]
        return ", ".join(words)


def judged_part(file: File, part: dict) -> dict:
    """A part with what its runs say: `measured` and `verdict`, of `n` runs, and of each count()
    (how many, of how many) in `counts`."""
    found = Measured(file)
    known = {letter: Arrays(file, of) for letter, of in groups(part).items()}
    known |= {name: functools.partial(found.of_all, name) for name in STATISTICS}
    known |= dict(count=found.count, p=found, inf=math.inf)
    not_run = part | dict(measured="–", n=[], counts=[], numbers=[], verdict=NOT_RUN)
    if not file.all_there(part):
        return not_run
    try:
        held = eval(part["holds"], known)
    except KeyError:  # of a run that has not logged it, or a test without its runs
        return not_run
    told = dict(measured=str(found), n=found.n, counts=found.counts, numbers=found.numbers)
    return part | told | dict(verdict=HELD if held else WRONG)


def judged_prediction(file: File, prediction: dict) -> dict:
    """A prediction with its judged `parts`, and its `verdict`, `measured` and `n` of them all."""
    parts = [judged_part(file, part) for part in prediction["parts"]]
    verdicts = {part["verdict"] for part in parts}
    verdict = next(word for word in (NOT_RUN, WRONG, HELD) if word in verdicts)
    measured = "; ".join(part["measured"] for part in parts)
    n = [n for part in parts for n in part["n"]]
    return prediction | dict(parts=parts, verdict=verdict, measured=measured, n=n)


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


def judged_tests(name: str) -> dict[str, dict]:
    """{name: test} of an experiment with what its runs say: `n` runs each, `p`, Holm's `holm` over
    its family (one that was not run counts as p = 1), `ran`, and the two `samples` it compares;
    with `beside` the `permutation` test and the `paired` one with its `correlation`."""
    return File(name).judged_tests


def judged_test(file: File, which: str, about: dict) -> dict:
    """One test with what its runs say, but for Holm's correction over the others."""
    about = dict(family=file.name) | about
    if not file.all_there(about):
        return about | dict(p=1.0, ran=False, n=[])
    a, b = (Arrays(file, about[key]) for key in "ab")
    samples = []

    def noting(test: Any) -> Any:
        def noted(*two: np.ndarray) -> float:
            samples.extend(each.tolist() for each in two)
            return test(*samples)

        return noted

    known = dict(a=a, b=b, fisher=noting(fisher), permutation=noting(permutation))
    p = eval(about["p"], known)
    about |= dict(
        asked=about["p"], p=p, ran=True, n=[len(each) for each in samples], samples=samples
    )
    if "beside" in about:
        means = []
        for key, arrays in zip("ab", (a, b)):
            values = np.mean([getattr(arrays, name) for name in about["beside"]], 0).tolist()
            means.append(dict(zip((run["seed"] for run in file.runs(about[key])), values)))
        about["permutation"] = permutation(*(list(each.values()) for each in means))
        common = [seed for seed in means[0] if seed in means[1]]
        pairs = [[each[seed] for seed in common] for each in means]
        about["correlation"], about["paired"] = paired(*pairs)
    return about


# ---------- words ----------


def outcome(part: dict) -> str:
    """What came of a part in words: "10 of 10 (0.69 to 1.00): held"."""
    if part["verdict"] == NOT_RUN:
        return NOT_RUN
    words = part["measured"]
    if len({name for name, _ in part["numbers"]}) == 1:
        words = f"{part['numbers'][0][0]} {words}"
    for good, n in part["counts"]:
        if n:  # of none there is no share
            low, high = exact_interval(good, n)
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
    predicted come with their exact 95 % interval. Then its tests."""
    file = File(name)
    for each in judged_predictions(file):
        which = each["id"].partition("/")[2]
        if names and which not in names:
            continue
        for part in each["parts"]:
            print_lines(f"{which} {asked(part)}", outcome(part))
    for which, each in file.judged_tests.items() if not names else ():
        show_test(which, each)


def asked(part: dict) -> str:
    """A part in words: what its runs are, and what has to hold of them."""
    of = "".join(f"{letter} = {name}; " for letter, name in groups(part).items())
    return of + part["holds"]


def show_test(which: str, each: dict) -> None:
    """Print one of judged_tests()."""
    models = f"{which}: {each['a']} against {each['b']}"
    if not each["ran"]:
        print_lines(f"{models}: not run")
        return
    fishers = each["asked"].startswith("fisher")
    if fishers:
        numbers = ", ".join(f"{sum(good)} of {len(good)}" for good in each["samples"])
    else:
        numbers = ", ".join(f"{statistics.mean(values):.4g}" for values in each["samples"])
    test = "Fisher's p" if fishers else "permutation p"
    tests = f"{test} {each['p']:.2g}, corrected {each['holm']:.2g}"
    if "permutation" in each:
        tests += f", permutation {each['permutation']:.2g}"
    if each.get("paired") is not None:
        tests += f", paired {each['paired']:.2g}"
    print_lines(f"{models}: {numbers}", tests)
