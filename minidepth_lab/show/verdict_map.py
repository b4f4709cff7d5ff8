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
from minidepth_lab.tasks import TASKS
from minidepth_lab.tasks.base.sizes import sizes_of

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


ARMS = {  # how each is drawn
    "one": ("1 layer", "C0", "o"),
    "wide": ("1 wide layer", "C3", "s"),
    "looped": ("1 layer looped", "C2", "^"),
    "deep": ("4 layers", "#d4650b", "D"),
}


def predictions() -> dict:
    """predictions.json"""
    return json.loads((FOLDER / "predictions.json").read_text(encoding="utf-8"))


def stored() -> dict[str, dict]:
    """{name: a stored verdict}, in the order of their names."""
    path = FOLDER / "verdicts.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {kept["name"]: kept for kept in map(json.loads, lines)}


def chance_of(kept: dict) -> float:
    """The most that is known to be had without following anything: of a task of ours today's
    number, which can be higher than the one that its verdict was made with."""
    request, known = kept["request"], [kept["judged_by"]["chance"]]
    if task := TASKS.get(request["source"]):
        own = tuple(request["settings"].get("sizes", ()))
        shares = task.chance(**sizes_of(own, task.sizes, request["source"]))
        known += [share for share in shares if share is not None]
    return max(known)


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


def tally() -> dict[str, list[str]]:
    """{"held", "was wrong", "open", "not run": the tasks of which it is true}, as predicted."""
    found = stored()
    kinds = {kind: [] for kind in ("held", "was wrong", "open", "not run")}
    for name in predictions()["tasks"]:
        said = came_true(name, found[name]).rsplit(": ")[-1] if name in found else "not run"
        kinds[said].append(name)
    return kinds


def draw(axes: Any) -> None:
    """One picture: each task a line, its arms as dots, grouped by verdict."""
    found = stored()
    order = {name: i for i, name in enumerate(rule.DECISIONS)}
    names = sorted(found, key=lambda name: (order[found[name]["decision"]], name), reverse=True)
    for arm, (label, color, shape) in ARMS.items():
        means = [found[name]["arms"][arm]["steps"]["mean"] for name in names]
        axes.plot(means, range(len(names)), shape, color=color, label=label, alpha=0.8)
    chances = [chance_of(found[name]) for name in names]
    axes.plot(chances, range(len(names)), "|", color="C5", ms=12, label="chance")
    said = [found[name]["decision"] for name in names]
    said = ["no difference" if each == rule.SAME else each for each in said]  # room for the points
    texts = [f"{name.replace('rg_', 'rg:')}: {each}" for name, each in zip(names, said)]
    axes.set_yticks(range(len(names)), texts)
    axes.set_xlabel("accuracy at equal steps")
    axes.set_xlim(-0.02, 1.02)
    axes.legend(
        frameon=False, fontsize="small", loc="lower center", bbox_to_anchor=(0.5, 1), ncols=3
    )


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
