"""Whether a verdict can be given on some data, and what its scores are."""

import dataclasses
import math
import statistics
from collections import Counter
from collections.abc import Iterable

import minidepth as md

DRAWN = 4000  # training sequences that the test's are looked for in


def commonest(values: Iterable) -> tuple[float, int]:
    """(share of the commonest value, how many different ones there are)"""
    counts = Counter(values)
    return max(counts.values()) / counts.total(), len(counts)


def judged_by(data: md.Data, source: str, asked: int) -> dict:
    """What the scores of this data are: `metric` (accuracy, or loss in nats), `chance`, `ceiling`,
    and `answers`, how many problems an accuracy is measured on, of text the first `asked`."""
    tried = dataclasses.replace(data, state=dict(data.state))  # a draw may change it
    if tried.draw(0, 1)[1].ndim == 3:
        own = f"{source} asks for a loss after each loop, which sets its models' depth itself"
        raise ValueError(f"{own}; see --study ring or walk")
    problems = data.problems[:asked]
    if data.infinite:
        targets = [int(each) for each in data.val[1][data.val[1] != -100].tolist()]
        share, kinds = commonest(targets)
        if kinds == 1:
            raise ValueError(f"{source}: every answer of the test is the same; nothing is asked")
        known = [data.facts[name] for name in ("guess", "shortcut") if name in data.facts]
        chance = max(known, default=share)
        return dict(metric="accuracy", chance=chance, ceiling=1.0, answers=len(data.val[0]))
    if problems:
        share, kinds = commonest(str(problem["answer"]) for problem in problems)
        if kinds == 1:
            raise ValueError(f"{source}: every answer of the test is the same; nothing is asked")
        known = [p["guess"] for p in problems if p.get("guess") is not None]
        if len(known) == len(problems):
            share = max(share, statistics.mean(known))
        return dict(metric="accuracy", chance=share, ceiling=1.0, answers=len(problems))
    return dict(metric="nats", chance=None, ceiling=None, answers=None)


def repeated(data: md.Data) -> float:
    """The share of the test that training has word for word, looked for in DRAWN sequences."""
    if data.infinite:
        tokens, _ = dataclasses.replace(data, state=dict(data.state)).draw(0, DRAWN)
        shown = {tuple(row) for row in tokens.tolist()}
    else:
        shown = {tuple(row) for row in data.train[0].tolist()}
    test = [tuple(row) in shown for row in data.val[0].tolist()]
    return statistics.mean(test)


def check_source(data: md.Data, source: str, margin: float, repeats: bool, asked: int) -> dict:
    """judged_by() of the data, for which `asked` is too; ValueError, a line, for what no verdict
    can be given on."""
    told = judged_by(data, source, asked)
    if not repeats and (share := repeated(data)) > 0.5:
        learned = f"{source}: training repeats {share:.0%} of the test, so recall is all it asks"
        raise ValueError(f"{learned}; give --repeats if that is the question")
    if told["metric"] == "accuracy":
        if told["chance"] > 1 - margin:
            reach = f"{source}: chance is {told['chance']:.2f}, and 1 is the most"
            raise ValueError(f"{reach}: no difference larger than {margin:g} fits between them")
        # below it the sampling error of the test alone is as large as the margin
        least = math.ceil(0.25 / margin**2)
        if told["answers"] < least:
            few = f"{source}: the test has {told['answers']} problems with an answer"
            enough = math.ceil(50 / math.sqrt(told["answers"])) / 100
            wanted = f"give more of them, or --margin {enough:g}"
            raise ValueError(f"{few}, a margin of {margin:g} needs {least}; {wanted}")
    elif len(data.val[0]) < 2:
        raise ValueError(f"{source}: one block is held out, which is too few; give more rows")
    return told
