"""What is installed: the wheel as it is built, unpacked where the project is not, and what names
its version."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tomllib
import zipfile

import pytest

import minidepth as md
import versions

ROOT = pathlib.Path(md.__file__).resolve().parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built from the project as it is now."""
    pytest.importorskip("hatchling")
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (path,) = out.glob("*.whl")
    return path


def test_the_wheel_holds_what_it_needs_and_nothing_else(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    tops = {name.partition("/")[0] for name in names}
    info = {top for top in tops if top.endswith(".dist-info")}
    # nothing of a name that others use, such as train or docs, goes to everybody's packages
    assert tops - info == {"minidepth.py", "minidepth_lab", "minidepth_site"}
    for part in ("minidepth_lab/py.typed",
                 "minidepth_lab/stored/results/depth/runs.jsonl",
                 "minidepth_lab/stored/results/published/report_log_12_layers.csv",
                 "minidepth_lab/stored/data/gsm8k-1001-2000.jsonl"):  # fmt: skip
        assert part in names
    assert not [name for name in names if "__pycache__" in name]
    text = zipfile.ZipFile(wheel).read(f"{min(info)}/METADATA").decode()
    needed = re.findall(r"^Requires-Dist: ([\w-]+)(.*)$", text, re.MULTILINE)
    plain = {name for name, rest in needed if "extra" not in rest}
    assert {"torch", "transformers", "matplotlib", "scipy"} <= plain
    assert not [name for name in plain if name.startswith(("mkdocs", "pytest"))]
    assert {"mkdocs", "pytest"} <= {name for name, rest in needed if "extra" in rest}
    scripts = zipfile.ZipFile(wheel).read(f"{min(info)}/entry_points.txt").decode()
    assert "minidepth = minidepth_lab.command:main" in scripts


LOOK = """import sys
import minidepth
from minidepth_lab import command
from minidepth_lab.measure import judge, results
tiny = "--data icqa --n_layers 1 --d_model 16 --steps 2 --warmup_steps 1 --seed 0 1"
assert command.main(tiny.split()) == 0
print(minidepth.__file__, len(results.runs("depth")), len(results.experiments()))
sys.exit(command.main(["--no_such_flag"]))
"""


def test_the_command_of_an_installation_trains_a_grid(wheel, tmp_path):
    """With the wheel's files, and not the project's, where Python looks."""
    place, elsewhere = tmp_path / "site-packages", tmp_path / "elsewhere"
    zipfile.ZipFile(wheel).extractall(place)
    elsewhere.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", LOOK], cwd=elsewhere, capture_output=True, text=True,
        env=os.environ | dict(PYTHONPATH=str(place)),
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert done.stderr.endswith("arguments: --no_such_flag; see minidepth --help\n")
    file, *numbers = done.stdout.splitlines()[-1].split()
    assert str(place) in file and min(map(int, numbers)) >= 20
    printed = [*elsewhere.glob("runs/*/stdout.txt")]  # a grid's runs are the command's
    assert len(printed) == 2
    for path in printed:
        assert "Done. Final train loss" in path.read_text(encoding="utf-8")
        config = json.loads((path.parent / "config.json").read_text(encoding="utf-8"))
        assert config["command"].startswith("minidepth --preset tasks --n_layers 1 --d_model 16 ")
        assert (path.parent / "curve.png").exists()


def test_the_version_is_the_same_everywhere():
    cited = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f'version: "{md.__version__}"' in cited
    changes = (ROOT / ".github" / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(r"^## ([\d.]+)$", changes, re.MULTILINE)[1] == md.__version__


def test_the_page_has_the_versions_that_were_tried():
    page = (ROOT / "docs" / "how-to" / "commands.md").read_text(encoding="utf-8")
    assert versions.written(page) == page, "run python tests/versions.py table"


def requirements(text):
    """{(package, specifier)} of a list of requirements."""
    return {tuple(re.fullmatch(r"([\w-]+)(?:\[.*\])?(.*)", each).groups()) for each in text}


def test_the_lock_file_is_of_what_the_project_needs():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    locked = tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))
    (own,) = (each for each in locked["package"] if each["name"] == "minidepth")
    wanted = sum(project["optional-dependencies"].values(), project["dependencies"])
    found = {(each["name"], each["specifier"]) for each in own["metadata"]["requires-dist"]}
    assert found == requirements(wanted), "run uv lock"
    assert locked["requires-python"] == project["requires-python"]
    elsewhere = {
        each["source"].get("registry") for each in locked["package"] if each["name"] != "minidepth"
    }
    assert elsewhere == {"https://pypi.org/simple"}
