"""What the pages tell a reader to type exists: each name of ours, and all of the code that they
show without running it."""

import importlib
import re
import subprocess
import sys

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


def test_names_that_a_page_gives_exist():
    missing = set()
    for path in PAGES:
        for name in re.findall(r"[` ](minidepth(?:_lab)?(?:\.\w+)+)", text_of(path)):
            if not name.endswith((".py", ".js", ".zip")) and not there(name):
                missing.add((str(path), name))
    assert not missing


def test_code_that_is_shown_and_not_run_knows_its_names(tmp_path):
    """Each snippet alone, as a reader copies it."""
    for path in PAGES:
        for number, code in enumerate(re.findall(FENCED, text_of(path), re.DOTALL)):
            if code[0] != " ":  # a line of a class is no program
                file = tmp_path / f"{path.parent.name}-{path.stem}-{number}.py"
                file.write_text(code, encoding="utf-8")
    check = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "F821,F811", tmp_path]
    done = subprocess.run(check, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
