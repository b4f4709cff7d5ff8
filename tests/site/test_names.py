"""What the pages tell a reader to type exists: each name of ours, and all of the code that they
show without running it."""

import importlib
import re
import subprocess
import sys

import pytest

from conftest import ROOT

DOCS = ROOT / "docs"
# without docs/site, and without predictions, whose words are as they were on the day
PAGES = [ROOT / "README.md", *DOCS.rglob("*.md"), *DOCS.glob("[!s]*/*.py")]
FENCED = r"```python.*?\n(.*?)```"


def text_of(path):
    """A page's text; of a percent file also what its cells do."""
    text = path.read_text(encoding="utf-8")
    return re.sub(r"^# ?", "", text, flags=re.MULTILINE) if path.suffix == ".py" else text


def there(name):
    """Whether a dotted name is a module, or something in one."""
    parts = name.split(".")
    for n in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:n]))
        except ModuleNotFoundError:
            continue
        for part in parts[n:]:
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_names_that_a_page_gives_exist(path):
    names = set(re.findall(r"[` ](minidepth(?:_lab)?(?:\.\w+)+)", text_of(path)))
    files = {name for name in names if name.endswith((".py", ".js", ".zip"))}
    assert not [name for name in names - files if not there(name)]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_code_that_is_shown_and_not_run_knows_its_names(path):
    """Each snippet alone, as a reader copies it."""
    snippets = re.findall(FENCED, text_of(path), re.DOTALL)
    for code in (code for code in snippets if code[0] != " "):  # a line of a class is no program
        check = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "F821,F811", "-"]
        done = subprocess.run(check, input=code, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout
