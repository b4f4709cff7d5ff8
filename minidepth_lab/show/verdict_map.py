"""The map of verdicts: which of other problems need depth, beside what was predicted.

    python -m minidepth_lab.show.verdict_map FOLDER …     store finished verdicts in docs/results
    rows = verdict_map.rows()                             a row for each, for a table

A stored verdict is a line of docs/results/verdicts/verdicts.jsonl, its verdict.json and its `name`;
predictions.json beside it was written before the runs.
"""

import json
import os
import pathlib
import sys
from typing import Any

from minidepth_lab.base import console
from minidepth_lab.keep import checkpoints
from minidepth_lab.measure import verdict as rule
from minidepth_lab.measure.results import RESULTS

FOLDER = RESULTS / "verdicts"
HEADS = (
    "task", "sizes", "verdict", "predicted", "4 layers", "1 layer", "looped", "wide",
    "1 layer, equal time", "seeds", "minutes",
)  # fmt: skip

KNOWN = (  # tasks, the depth that is known or was found, where it says so
    (
        "icqa, mqar with one hop",
        "two layers; a single one would have to be very wide",
        "Olsson et al. 2022; Sanford, Hsu and Telgarsky 2024, arXiv 2408.14332",
    ),
    ("template", "two layers", "Chen and Zou 2024"),
    ("icl_template", "three layers", "Chen and Zou 2024"),
    ("memorize", "one layer", "Chen and Zou 2024"),
    ("khop", "about log2 k layers", "Sanford, Hsu and Telgarsky 2024"),
    (
        "parity (prefix sums), modulo",
        "one layer with a feed-forward part, hard to train",
        "Hahn 2020",
    ),
    (
        "composition, words in A5 and S5",
        "log2 n layers for length n, and no fixed number for all n unless TC0 is NC1",
        "Barrington 1989; Liu et al. 2023; Merrill, Petrov and Sabharwal 2024",
    ),
    ("words in Z60", "one layer", "the order does not count"),
    ("brackets", "two layers", "Yao et al. 2021"),
    (
        "pointers, reachability",
        "log2 n layers by formula; asked of all difficulties at once they are hard to learn at all",
        "measured here: the depth map",
    ),
    ("walk, sums, strides, hold", "a hop for each loop", "measured here"),
    ("depo, mqar with more hops", "no prediction", "Allen-Zhu 2025"),
    (
        "maze",
        "no prediction; looped networks go on to larger ones than they were trained on",
        "Schwarzschild et al. 2021, arXiv 2106.04537",
    ),
)


def predictions() -> dict:
    """predictions.json"""
    return json.loads((FOLDER / "predictions.json").read_text(encoding="utf-8"))


def stored() -> dict[str, dict]:
    """{name: a stored verdict}, in the order of their names."""
    path = FOLDER / "verdicts.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {kept["name"]: kept for kept in map(json.loads, lines)}


def mean_of(kept: dict, arm: str, budget: str = "steps") -> str:
    """The mean score of an arm, or a dash where it was not trained."""
    each = kept["arms"].get(arm, {}).get(budget)
    return "–" if each is None else f"{each['mean']:.2f}"


def came_true(name: str, kept: dict) -> str:
    """What was predicted of a verdict, and whether it held; a dash where nothing was."""
    about = predictions()["tasks"].get(name)
    if about is None:
        return "–"
    held = kept["decision"] in about["predicted"]
    open_ = kept["decision"] == rule.UNDECIDED
    word = "open" if open_ else "held" if held else "was wrong"
    return f"{' or '.join(about['predicted'])}: {word}"


def rows() -> list[list[str]]:
    """A row under HEADS for each stored verdict."""
    made = []
    for name, kept in stored().items():
        more = kept["more_seeds"]
        decision = kept["decision"]
        if decision == rule.UNDECIDED and more:
            decision += f": about {console.plural(more, 'more seed')}"
        sizes = kept["request"]["settings"].get("sizes", [])
        arms = [mean_of(kept, arm) for arm in ("deep", "one", "looped", "wide")]
        made.append(
            [
                name, ", ".join(sizes), decision, came_true(name, kept), *arms,
                mean_of(kept, "one", "time"), str(kept["seeds"]), f"{kept['seconds'] / 60:.0f}",
            ]
        )  # fmt: skip
    return made


def draw(path: console.Path, found: dict[str, dict] | None = None) -> None:
    """One picture: each task a line, its arms as dots, grouped by verdict."""
    from minidepth_lab.show import figures

    found = stored() if found is None else found
    order = {name: i for i, name in enumerate(rule.DECISIONS)}
    names = sorted(found, key=lambda name: (order[found[name]["decision"]], name), reverse=True)
    kinds = (("one", "C0", "o"), ("wide", "C3", "s"), ("looped", "C2", "^"), ("deep", "C1", "D"))
    with figures.drawing(path, 1, 1, (8, 0.4 * len(names) + 1.2)) as (_, axes):
        for y, name in enumerate(names):
            for arm, color, shape in kinds:
                mean = found[name]["arms"][arm]["steps"]["mean"]
                label = dict(one="1 layer", wide="1 wide layer", looped="looped", deep="L layers")
                axes.plot(mean, y, shape, color=color, label=None if y else label[arm], alpha=0.8)
            axes.plot(found[name]["judged_by"]["chance"], y, "|", color="C5", ms=12)
        texts = [f"{name}: {found[name]['decision']}" for name in names]
        axes.set_yticks(range(len(names)), texts)
        axes.set_xlabel("accuracy at equal steps; the bar is chance")
        axes.set_xlim(-0.02, 1.02)
        axes.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1, 1))


def store(folder: console.Path) -> str:
    """Add the verdict.json of a verdict's folder to the stored ones, in place of one of the same
    name → its name."""
    kept: dict[str, Any] = json.loads(pathlib.Path(folder, "verdict.json").read_text("utf-8"))
    for run in kept["runs"]:  # the command makes it again
        del run["folder"]
    name = os.path.basename(os.path.normpath(folder))
    found = dict(sorted((stored() | {name: dict(name=name) | kept}).items()))
    text = "".join(json.dumps(each) + "\n" for each in found.values())
    checkpoints.write(FOLDER / "verdicts.jsonl", lambda file: file.write(text.encode()))
    return name


if __name__ == "__main__":
    for each in sys.argv[1:]:
        print(f"stored {store(each)}")
