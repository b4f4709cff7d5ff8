"""Answers as people write them, compared."""

import functools
import re
from fractions import Fraction
from typing import Any

NUMBER = r"[-+]?(\d{1,3}(,\d{3})+|\d{1,40})?(\.\d{1,40})?|[-+]?\d{1,40}/0*[1-9]\d{0,39}"


def boxed(text: str) -> str | None:
    """What stands in the last \\boxed{} of a text; None without one, or where a brace or the end of
    a line is in it."""
    _, box, rest = text.rpartition("\\boxed{")
    inside = re.match(r"([^{}\n]*)\}", rest) if box else None
    return inside[1] if inside else None


def bare(text: str) -> str:
    """An answer without what is around it: \\boxed{42}, $42$, 42. → 42"""
    inside = boxed(text)
    text = text if inside is None else inside
    return text.strip().strip("$").removesuffix(".").strip()


def number(text: str) -> Fraction | None:
    """The number that a text is: 1,000 and 1000.0 are one, 1/2 and 0.5 another; None for others."""
    text = bare(text)
    if not re.search(r"\d", text) or not re.fullmatch(NUMBER, text):
        return None
    return Fraction(text.replace(",", ""))


class Answer(str):
    """A right answer, which a text equals that is the same number or, without \\boxed{} and the
    like, the same text."""

    def __eq__(self, other: object) -> bool:
        if str.__eq__(self, other) is True:
            return True
        if not isinstance(other, str):
            return False
        mine, its = number(self), number(other)
        return mine == its if None not in (mine, its) else bare(self) == bare(other)

    __hash__ = str.__hash__  # of the text: equal numbers may differ in it


class Scored(str):
    """A right answer by the scorer of a generator of reasoning-gym, whose item it is: a text equals
    it that gets the whole score, as any of several palindromes may."""

    def __new__(cls, text: str, item: dict) -> "Scored":
        made = super().__new__(cls, text)
        made.item = item
        return made

    def __eq__(self, other: object) -> bool:
        if str.__eq__(self, other) is True:
            return True
        return isinstance(other, str) and score(other, self.item) >= 1

    __hash__ = str.__hash__


def is_item(value: Any) -> bool:
    """Whether a value is an item of reasoning-gym; a column of one's own can have that name."""
    about = value.get("metadata") if isinstance(value, dict) else None
    return isinstance(about, dict) and isinstance(about.get("source_dataset"), str)


@functools.cache
def scorer(generator: str) -> Any:
    """(text, item) → score from 0 to 1, the generator's own; None where the package is not here."""
    try:
        import reasoning_gym
    except ImportError:
        return None
    return reasoning_gym.get_score_answer_fn(generator)


def score(text: str, item: dict) -> float:
    """What a text gets for an item of reasoning-gym; nothing for one that its scorer fails on."""
    scores = scorer(item["metadata"]["source_dataset"])
    try:
        return float(scores(text, item)) if scores else 0.0
    except Exception:  # many scorers take only what can be an answer
        return 0.0
