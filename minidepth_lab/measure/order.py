"""What the history says of each prediction: was it committed before the runs it is about?

    order.of(file, prediction)      BEFORE, UNPROVEN, … of a prediction of judge.File
    order.counts()                  {BEFORE: [ids], …} of all that have runs
    python -m minidepth_lab.measure.order      note the commits of new predictions

A stored run has a `date`: when it began. Of a run before 28 November 2026 that was not logged, and
its `date` are two times between which it began: that of the commit of its code, and that of the
first commit that had it, or had a run of its name. So is the `date` of what was measured later.
docs/results/committed.json has of each prediction the time of the first commit that had it.
"""

import json
import re
import subprocess
from typing import Any

from minidepth_lab.measure import judge, results

# when a prediction was committed, beside the runs that it is about
BEFORE = "before"
MEASURED = "before it was measured"
UNPROVEN = "not proven"
PARTLY = "after some"
AFTER = "after"
COMMITTED = results.RESULTS / "committed.json"


def committed() -> dict[str, str]:
    """{id of a prediction: the time of its commit}"""
    return json.loads(COMMITTED.read_text(encoding="utf-8"))


def times(date: Any) -> tuple[str, str]:
    """(no earlier than, no later than), as text that sorts: of an unknown time "" and "~"."""
    earliest, latest = (date, date) if isinstance(date, str) else date or (None, None)
    return (earliest or "").rstrip("Z"), (latest or "~").rstrip("Z")


def about(file: judge.File, prediction: dict) -> list[tuple[dict, str]]:
    """(run, what is asked of it) of each run that a prediction is about, those of its tests among
    them."""
    parts = []
    for part in prediction["parts"]:
        tests = [file.tests[which] for which in re.findall(r"p\['(.+?)'\]", part["holds"])]
        parts += [part, *tests]
    return [
        (run, part.get("holds") or part["p"])
        for part in parts
        for of in judge.groups(part).values()
        for run in file.runs(of)
    ]


def measured_since(file: judge.File, run: dict, asked: str, when: str) -> bool:
    """Whether all that is asked of a run was measured with code of a later commit."""
    for measure in re.findall(rf"\b[{judge.GROUPS}]\.(\w+)", asked):
        kind, *path = file.measures[measure].split(".")
        noted = run["measured"].get("about", {}).get(path[0], {}) if kind == "measured" else {}
        if when > times(noted.get("date"))[0]:
            return False
    return True


def of(file: judge.File, prediction: dict) -> str | None:
    """Which of BEFORE, MEASURED, UNPROVEN, PARTLY and AFTER a prediction is; None without runs."""
    runs = about(file, prediction)
    if not runs:
        return None
    when = committed()[prediction["id"]].rstrip("Z")
    dates = [times(run["date"]) for run, _ in runs]
    if all(when <= earliest for earliest, _ in dates):
        return BEFORE
    if all(measured_since(file, run, asked, when) for run, asked in runs):
        return MEASURED
    stored = [when >= latest for _, latest in dates]
    return AFTER if all(stored) else PARTLY if any(stored) else UNPROVEN


def counts() -> dict[str, list[str]]:
    """{BEFORE: the ids of the predictions that are, …}, of all that have runs."""
    found = {BEFORE: [], MEASURED: [], UNPROVEN: [], PARTLY: [], AFTER: []}
    for name in judge.experiments():
        file = judge.File(name)
        for prediction in file.predictions:
            if (which := of(file, prediction)) is not None:
                found[which].append(prediction["id"])
    return found


def note() -> None:
    """Add to committed.json the predictions that it lacks and a commit has."""
    known = committed()
    for name in judge.experiments():
        file = judge.File(name)
        for each in file.predictions:
            if each["id"] in known:
                continue
            text = f'{each["id"].partition("/")[2]} = ["'
            git = ["git", "log", "--reverse", "--date=format-local:%Y-%m-%dT%H:%M:%SZ"]
            git += ["--format=%cd", "-S", text, "--", str(file.path)]
            done = subprocess.run(
                git, cwd=file.path.parent, capture_output=True, text=True, check=True
            )
            if done.stdout:
                known[each["id"]] = done.stdout.split()[0]
                print(each["id"], known[each["id"]])
    COMMITTED.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    note()
