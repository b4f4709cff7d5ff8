"""What holds with the packages that are installed: the tests of the core, of rows and of runs, and
sixty steps of the main job, as a line of docs/results/versions.jsonl. How-to: commands, Install.

python tests/versions.py         adds the line, and makes the page's table anew
python tests/versions.py table   only makes the table
"""

import datetime
import importlib.metadata
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "how-to" / "commands.md"
LINES = ROOT / "docs" / "results" / "versions.jsonl"
PACKAGES = ("torch", "transformers", "datasets", "numpy")
TESTS = ("tests/core", "tests/rows", "tests/keep")
MAIN_JOB = "train.py --preset laptop --n_layers 12 --steps 60 --eval_every 20 --eval_problems 0"


def measure():
    """The line of what is installed here."""
    line = dict(date=str(datetime.date.today()), python=platform.python_version())
    line |= {name: importlib.metadata.version(name) for name in PACKAGES}
    run = dict(cwd=ROOT, capture_output=True, text=True)
    run["env"] = os.environ | dict(OMP_NUM_THREADS="1", PYTHONPATH=str(ROOT))
    words = "-q -n 2 --tb=short -W default".split()  # old packages warn of each other
    command = [sys.executable, "-m", "pytest", *words, *TESTS]
    tests = subprocess.run(command, **run)
    print(tests.stdout, tests.stderr)
    last = tests.stdout.splitlines()[-1]
    for name, outcomes in dict(passed="passed", skipped="skipped", failed="failed|error").items():
        line[name] = sum(map(int, re.findall(rf"(\d+) (?:{outcomes})", last)))
    with tempfile.TemporaryDirectory() as folder:
        words = [*MAIN_JOB.split(), "--out_dir", folder, "--name", "run"]
        subprocess.run([sys.executable, *words], check=True, **run)
        log = pathlib.Path(folder, "run", "log.jsonl").read_text().splitlines()
    line["losses"] = {row["step"]: row["val_loss"] for row in map(json.loads, log)}
    return line


def table():
    """All lines as a table of Markdown: the losses beside those of the first."""
    lines = [json.loads(line) for line in LINES.read_text().splitlines()]
    heads = ["Python", *PACKAGES, "tests passed", "skipped", "failed", "losses of 60 steps"]
    rows = [heads, ["---"] * len(heads)]
    first = lines[0]["losses"]
    for line in lines:
        apart = max(abs(line["losses"][step] / first[step] - 1) for step in first)
        told = "equal, to the last bit" if apart == 0 else f"equal to {apart:.0e}"
        if line is lines[0]:
            told = f"the last {list(first.values())[-1]:.4f}"
        values = [line[name] for name in ("python", *PACKAGES, "passed", "skipped", "failed")]
        rows.append([str(value) for value in values] + [told])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def written(page):
    """The text of the page with the table as it is now."""
    begin, end = "<!-- versions -->\n", "<!-- end of the versions -->"
    before, rest = page.split(begin)
    return f"{before}{begin}\n{table()}\n\n{end}{rest.split(end)[1]}"


if __name__ == "__main__":
    if sys.argv[1:] != ["table"]:
        line = json.dumps(measure())
        with open(LINES, "a") as f:
            f.write(line + "\n")
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
