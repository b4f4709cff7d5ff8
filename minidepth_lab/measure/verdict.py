"""The rule of --verdict: does depth help, or do parameters, or time; and when is it undecided?

    found = decide(scores, margin=0.05, chance=0.125)
    found.decision            "depth helps"
    found.differences         {"deep - one": Difference(mean 0.59, low 0.55, high 0.62, …), …}
    simulate("rare luck", 2000)    {decision: how often}, of outcomes whose truth is known

`scores` are {(arm, budget): (n,) numbers, one for each seed}, higher is better: accuracies from 0
to 1, or minus a loss in nats. The arms are `one` (one layer), `deep` (L layers), `looped` (one
layer L times), `wide` (one layer, as many parameters in its layers as `deep`) and sometimes
`reread`; the budgets `steps` (all arms as many) and `time` (all arms as long as the slowest).

The rule, in full. Arms are compared seed by seed. A difference d has at each look its Student's t
interval of 99.3 %: there are five looks at most, and five errors of 0.7 % are 3.5 % together
(Bonferroni; Dunn 1961). What is left of 5 % goes to outcomes that are "learned or not", of which no
t is true: where both arms learn with every second seed, three seeds all favour one of them in 3.1 %
of cases, however narrow the interval asked for. A difference is *more* where its interval lies
above 0, *less* where it lies below, and *alike* where it lies within ± margin and there are at
least eight seeds; else it is *open*. Differences are asked in a fixed order, the next one only
where the one before was *more*, so that they need no further correction (Westfall & Krishen 2001):
deep - one at equal steps; deep - one at equal time; then wide - one and deep - wide. Whether this
keeps its word where training is "learned or not" is not proved here but counted: simulate(), and
the table in docs/how-to/verdict.

No model, no file, no figure.
"""

import dataclasses
import functools
import math
from collections.abc import Mapping, Sequence

import numpy as np

LOOKS = (3, 5, 8, 12, 20)  # seeds, after which the runs are looked at
ERROR = 0.05  # of all looks together, at most
LOOK_ERROR = 0.007  # of an interval at one look; why not a hundredth: test_verdict.py, "worst case"
# with eight seeds alike, those that are unlike them are at most 31 % of all, with 95 % confidence
LEAST_ALIKE = 8
MOST = 200  # more seeds than that are not asked for

HELPS, PARAMETERS = "depth helps", "depth helps, and so do parameters alone"
STEPS_ONLY, HURTS = "helps at equal steps only", "depth hurts"
SAME, NOBODY, EASY = "no difference larger than the margin", "nobody learned it", "too easy"
UNDECIDED = "undecided"
DECISIONS = (HELPS, PARAMETERS, STEPS_ONLY, SAME, HURTS, NOBODY, EASY, UNDECIDED)
RULES = {  # each verdict's rule, in a sentence; "above 0" is *more*, "within the margin" *alike*
    HELPS: (
        "L layers minus one layer is above 0 at equal steps and at equal time, and the wide layer "
        "is not above one layer, or L layers are above the wide one"
    ),
    PARAMETERS: "the same two are above 0, and so is the wide layer minus one layer",
    STEPS_ONLY: "above 0 at equal steps, but at equal time below 0 or within the margin",
    SAME: "L layers minus one layer is within the margin",
    HURTS: "L layers minus one layer is below 0",
    NOBODY: "with eight seeds, every arm's interval lies below chance plus the margin",
    EASY: "with eight seeds, every arm's interval lies above 1 minus the margin",
    UNDECIDED: "none of these; it says how many seeds would decide, if mean and spread stayed",
}
KEEP, DISCARD = "keep", "discard"
MORE, LESS, ALIKE, OPEN = "more", "less", "alike", "open"
RULE = (
    f"Arms are compared seed by seed, after {', '.join(map(str, LOOKS))} seeds, with Student's t "
    f"interval of {1 - LOOK_ERROR:.1%} at each look; wrong at all looks together at most "
    f"{ERROR:.0%}. No difference is said after {LEAST_ALIKE} seeds at the earliest."
)
NAMES = {  # a difference: (arm, arm, budget)
    "deep - one": ("deep", "one", "steps"),
    "deep - one at equal time": ("deep", "one", "time"),
    "wide - one": ("wide", "one", "steps"),
    "deep - wide": ("deep", "wide", "steps"),
    "looped - one": ("looped", "one", "steps"),
}


@dataclasses.dataclass
class Difference:
    """Of two arms, over the seeds that both have: `mean`, the interval from `low` to `high`, `n`
    seeds, what it is `found` to be, and how many `more` seeds may decide it (None: over MOST)."""

    mean: float
    low: float
    high: float
    n: int
    found: str
    more: int | None


@dataclasses.dataclass
class Decision:
    """What decide() says: one of DECISIONS, `why` it is so, the `differences` by name, the interval
    of each arm {(arm, budget): (mean, low, high)}, seeds `n`, how many `more` may decide (None:
    over MOST), and which `budget` has to be trained before the next look."""

    decision: str
    why: str
    differences: dict
    arms: dict
    n: int
    more: int | None = 0
    budget: str = "steps"

    @property
    def decided(self):
        return self.decision != UNDECIDED


# ---------- intervals ----------


@functools.cache
def quantile(n: int, error: float) -> float:
    """Student's t that a mean of n values leaves to either side with `error` in all."""
    from scipy.stats import t

    return float(t.ppf(1 - error / 2, n - 1))


def interval(values: Sequence[float], answers: int | None = None) -> tuple[float, float, float]:
    """(mean, low, high) of the values, one a seed, at one look; infinite of fewer than
    two. `answers`: how many problems each accuracy was measured on. All seeds are asked the same
    ones, so the error of that choice does not shrink with seeds: a difference of so much has in n
    problems at least the variance |d| / n (McNemar 1947, all of it one way), which is added."""
    mean, deviation = moments(values)
    if not math.isfinite(deviation):
        return mean, -math.inf, math.inf
    half = half_width(mean, deviation, len(values), answers)
    return mean, mean - half, mean + half


def moments(values: Sequence[float]) -> tuple[float, float]:
    """(mean, standard deviation), NaN where there is none. Not NumPy's, which take ten times as
    long for so few values: simulate() asks for a million."""
    n = len(values)
    mean = sum(values) / n if n else math.nan
    away = [value - mean for value in values]
    return mean, math.sqrt(sum(it * it for it in away) / (n - 1)) if n > 1 else math.nan


def half_width(mean: float, spread: float, n: int, answers: int | None = None) -> float:
    """Half of interval() of n values with this mean and standard deviation."""
    half = quantile(n, LOOK_ERROR) * spread / math.sqrt(n)
    if answers:
        half = math.hypot(half, normal(LOOK_ERROR) * math.sqrt(abs(mean) / answers))
    return half


@functools.cache
def normal(error: float) -> float:
    """The normal quantile that leaves `error` to both sides together."""
    from scipy.stats import norm

    return float(norm.ppf(1 - error / 2))


def shown(gap: Difference, most: float | None = None) -> str:
    """A difference and its interval, "0.59 [0.55, 0.62]", no end beyond what there can be."""
    low, high = gap.low, gap.high
    if most is not None:
        low, high = max(-most, low), min(most, high)
    return f"{gap.mean:.2f} [{low:.2f}, {high:.2f}]"


def names_of(n_layers: int) -> dict[str, str]:
    """{arm: how it is called}"""
    return {
        "one": "1 layer",
        "deep": f"{n_layers} layers",
        "looped": f"1 layer looped {n_layers} times",
        "wide": "1 wide layer",
        "reread": f"1 layer looped {n_layers} times, the map read once",
    }


def more_words(more: int | None) -> str:
    """'about 4 more seeds' as the end of a sentence, nothing for 0."""
    if more is None:
        return f": more than {MOST} seeds"
    return f": about {more} more seed{'s' * (more > 1)}" if more else ""


def seeds_needed(
    mean: float, spread: float, margin: float, answers: int | None = None
) -> int | None:
    """How many seeds in all decide a difference, if mean and standard deviation stay as they are;
    None where that is more than MOST. `answers` as in interval()."""
    for n in range(3, MOST + 1):
        half = half_width(mean, spread, n, answers)
        if abs(mean) > half and abs(mean) + half >= margin:
            return n
        if n >= LEAST_ALIKE and abs(mean) + half < margin:
            return n
    return None


def compare(
    ours: Sequence[float],
    theirs: Sequence[float],
    margin: float,
    answers: int | None = None,
) -> Difference:
    """The Difference ours - theirs, two lists of numbers in the order of the same seeds."""
    n = min(len(ours), len(theirs))
    values = [a - b for a, b in zip(ours[:n], theirs[:n])]
    mean, low, high = interval(values, answers)
    if n < LOOKS[0] or not math.isfinite(low):
        return Difference(mean, low, high, n, OPEN, LOOKS[0] - n if n < LOOKS[0] else None)
    if -margin < low and high < margin:  # no larger, and so not more, however surely above 0
        found = ALIKE if n >= LEAST_ALIKE else OPEN
    else:
        found = MORE if low > 0 else LESS if high < 0 else OPEN
    more = 0
    if found == OPEN:
        whole = seeds_needed(mean, moments(values)[1], margin, answers)
        more = None if whole is None else max(1, whole - n)
    return Difference(mean, low, high, n, found, more)


# ---------- the rule ----------


def decide(
    scores: Mapping[tuple[str, str], Sequence[float]],
    margin: float = 0.05,
    chance: float | None = None,
    ceiling: float | None = 1.0,
    answers: int | None = None,
) -> Decision:
    """The Decision after as many seeds as every arm has at equal steps. `chance`: the score of not
    having learned; `ceiling`: that of having learned all; None where there is no such thing."""
    arms = {key: interval(values) for key, values in scores.items() if len(values)}
    equal = {arm: values for (arm, budget), values in scores.items() if budget == "steps"}
    n = min((len(values) for values in equal.values()), default=0)
    gaps = {}
    for name, (one, other, budget) in NAMES.items():
        if len(scores.get((one, budget), ())) and len(scores.get((other, budget), ())):
            pair = scores[one, budget], scores[other, budget]
            gaps[name] = compare(*pair, margin, answers)

    def say(decision, why, more=0, budget="steps"):
        return Decision(decision, why, gaps, arms, n, more, budget)

    if n >= LEAST_ALIKE:
        at_steps = [arms[arm, "steps"] for arm in equal]
        if chance is not None and all(high < chance + margin for _, _, high in at_steps):
            return say(NOBODY, f"every arm is within {margin:g} of chance, {chance:.2f}")
        if ceiling is not None and all(low > ceiling - margin for _, low, _ in at_steps):
            return say(EASY, f"every arm is within {margin:g} of the ceiling, {ceiling:g}")
    first = gaps.get("deep - one")
    if first is None or first.found == OPEN:
        return say(UNDECIDED, "whether depth helps at equal steps", first.more if first else 3)
    if first.found == ALIKE:
        return say(SAME, f"the interval lies within ± {margin:g}")
    if first.found == LESS:
        return say(HURTS, "the interval lies below 0")
    timed = gaps.get("deep - one at equal time")
    if timed is None or timed.n < n:
        return say(UNDECIDED, "whether depth helps at equal time", 0, "time")
    if timed.found == OPEN:
        return say(UNDECIDED, "whether depth helps at equal time", timed.more, "time")
    if timed.found != MORE:
        return say(STEPS_ONLY, "one layer does as well when it trains as long", 0, "time")
    wide, beyond = gaps.get("wide - one"), gaps.get("deep - wide")
    if wide is None:
        return say(HELPS, "the interval lies above 0, at equal time too", 0, "time")
    if wide.found == MORE:
        return say(PARAMETERS, "one wide layer is better than one layer, too", 0, "time")
    if wide.found in (ALIKE, LESS) or beyond.found == MORE:
        return say(HELPS, "and one wide layer does not do it", 0, "time")
    still = [gap.more for gap in (wide, beyond) if gap.found == OPEN and gap.more is not None]
    fewest = min(still, default=None)
    return say(UNDECIDED, "whether depth helps or parameters do", fewest, "time")


def judge_groups(
    new: Sequence[float], old: Sequence[float], margin: float, answers: int | None = None
) -> Decision:
    """The Decision on two groups of runs, in the order of their seeds: `keep` the new one where it
    is *more* by the rule, `discard` it where it is *less* or *alike*, else `undecided`."""
    gap = compare(new, old, margin, answers)
    arms = {("new", "steps"): interval(new), ("old", "steps"): interval(old)}
    decision = {MORE: KEEP, LESS: DISCARD, ALIKE: DISCARD, OPEN: UNDECIDED}[gap.found]
    why = {
        MORE: "the interval lies above 0",
        LESS: "the interval lies below 0",
        ALIKE: f"the interval lies within ± {margin:g}",
        OPEN: "the interval holds 0 and reaches beyond the margin",
    }[gap.found]
    if gap.found == OPEN and -margin < gap.low and gap.high < margin:
        why = f"the interval lies within ± {margin:g}, but {LEAST_ALIKE} seeds are needed for that"
    return Decision(decision, why, {"new - old": gap}, arms, gap.n, gap.more)


# ---------- outcomes whose truth is known ----------

KEYS = [(arm, budget) for budget in ("steps", "time") for arm in ("one", "deep", "looped", "wide")]


def learned_or_not(share: float, low: float = 0.35, high: float = 0.97, noise: float = 0.01):
    """A truth of "learned or not": with this share of seeds `high`, else `low`."""

    def draw(random, n):
        level = np.where(random.random(n) < share, high, low)
        return np.clip(level + noise * random.standard_normal(n), 0, 1)

    return draw


def around(mean: float, spread: float):
    """A normal truth."""
    return lambda random, n: np.clip(mean + spread * random.standard_normal(n), 0, 1)


def heavy(random, n):
    """An accuracy of 0.95 less |t| / 20 with 1.5 degrees of freedom, whose variance is infinite."""
    return np.clip(0.95 - 0.05 * np.abs(random.standard_t(1.5, n)), 0, 1)


def all_arms(draw, **others):
    """{arm: what draws its outcomes}; `deep_time` is the arm deep at equal time."""
    made = {key: draw for key in KEYS}
    for name, other in others.items():
        arm, _, budget = name.partition("_")
        for each in [budget] if budget else ["steps", "time"]:
            made[arm, each] = other
    return made


ONE, BOTH = around(0.6, 0.02), around(0.65, 0.02)
# {name: (what draws each arm, the decisions that are right, in words)}
TRUTHS = {
    "no effect": (all_arms(ONE), {SAME}, "all arms: normal, mean 0.60, sd 0.02"),
    "luck of seeds": (
        all_arms(learned_or_not(0.5)),
        {SAME},
        "all arms: half of the seeds 0.97, the others 0.35",
    ),
    "bimodal": (
        all_arms(learned_or_not(0.2), deep=learned_or_not(0.9), looped=learned_or_not(0.9)),
        {HELPS},
        "0.97 or 0.35: L layers learn with 90 % of seeds, one (wide) layer with 20 %",
    ),
    "heavy-tailed": (all_arms(heavy), {SAME}, "all arms: 0.95 - |t(1.5)| / 20"),
    "equal": (all_arms(around(0.6, 0.001)), {SAME}, "all arms: normal, mean 0.60, sd 0.001"),
    "at the margin": (
        all_arms(ONE, deep=BOTH),
        {HELPS},
        "L layers better by exactly the margin, 0.05; sd 0.02",
    ),
    # beyond the six
    "large effect": (
        all_arms(ONE, deep=around(0.95, 0.01), looped=around(0.95, 0.02)),
        {HELPS},
        "L layers 0.95, one (wide) layer 0.60",
    ),
    "parameters": (
        all_arms(ONE, deep=around(0.9, 0.02), wide=around(0.9, 0.02)),
        {PARAMETERS},
        "L layers and one wide layer 0.90, one layer 0.60",
    ),
    "only steps": (
        all_arms(around(0.9, 0.01), one_steps=around(0.7, 0.02), wide_steps=around(0.7, 0.02)),
        {STEPS_ONLY},
        "one layer is as good when it trains as long",
    ),
    "nobody learns": (all_arms(around(0.13, 0.01)), {NOBODY, SAME}, "all arms 0.13, chance 0.125"),
    "all learn": (all_arms(around(0.99, 0.003)), {EASY, SAME}, "all arms 0.99"),
    "rare luck": (
        all_arms(learned_or_not(0.1)),
        {SAME},
        "all arms: a tenth of the seeds 0.97, the others 0.35",
    ),
    "rare failure": (
        all_arms(learned_or_not(0.8), deep=learned_or_not(1.0)),
        {HELPS},
        "L layers learn always, the others with 80 % of seeds",
    ),
}
SIX = tuple(TRUTHS)[:6]


def simulate(truth: str, n: int = 2000, seed: int = 0, margin: float = 0.05) -> dict:
    """{decision: how often it came}, of n verdicts on outcomes drawn from one of TRUTHS, each
    looked at after LOOKS seeds and stopped when decided; and `seeds`, how many each took."""
    arms, _, _ = TRUTHS[truth]
    random = np.random.default_rng([seed, *truth.encode()])
    counts, seeds = dict.fromkeys(DECISIONS, 0), 0
    for _ in range(n):
        whole = {key: draw(random, LOOKS[-1]).tolist() for key, draw in arms.items()}
        for look in LOOKS:
            found = decide({key: whole[key][:look] for key in KEYS}, margin, chance=0.125)
            if found.decided:
                break
        counts[found.decision] += 1
        seeds += look
    return counts | dict(seeds=seeds / n)


def wrong(truth: str, counts: Mapping[str, float]) -> float:
    """The share of simulate()'s verdicts that say what is not so."""
    right = TRUTHS[truth][1] | {UNDECIDED}
    n = sum(counts[each] for each in DECISIONS)
    return sum(counts[each] for each in DECISIONS if each not in right) / n
