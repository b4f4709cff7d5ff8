"""What readers take with them: a page as a notebook, and the project as minidepth.zip."""

import io
import zipfile

import nbformat
import pathspec

import pages

# the first cell of a downloaded notebook
SETUP = """\
# Finds minidepth: in this folder or its parents, in a Kaggle data set, or in the minidepth.zip that
# the site offers
import glob
import os
import sys

if os.path.exists("minidepth.zip") and not os.path.exists("minidepth.py"):
    import zipfile

    zipfile.ZipFile("minidepth.zip").extractall()
in_data_sets = glob.glob("/kaggle/input/**/minidepth.py", recursive=True)
for folder in [".", "..", "../..", *map(os.path.dirname, in_data_sets)]:
    if os.path.exists(os.path.join(folder, "minidepth.py")):
        folder = os.path.abspath(folder)
        sys.path[:0] = [os.path.join(folder, *p) for p in ([], ["docs"], ["docs", "site"])]"""
LONG_AGO = (2026, 1, 1, 0, 0, 0)  # the time of all files in the archive: the same files, same bytes


def as_json(notebook):
    """An nbformat notebook → JSON, the same for the same cells."""
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"
    notebook.metadata = dict(kernelspec=dict(name="python3", display_name="Python 3"))
    return nbformat.writes(notebook)


def notebook(path):
    """A percent file → a Jupyter notebook that finds minidepth, as JSON, without outputs and
    without the answers to exercises: these stand on the page."""
    made = pages.notebook(path)
    made.cells = [cell for cell in made.cells if "answer" not in cell.metadata.get("tags", ())]
    made.cells.insert(1, nbformat.v4.new_code_cell(SETUP))
    return as_json(made)


def project_files():
    """[each file of the project, relative to it]: all but what .gitignore names, and git's own."""
    lines = [".git"]
    if (ignored := pages.ROOT / ".gitignore").exists():
        lines += ignored.read_text(encoding="utf-8").splitlines()
    spec = pathspec.GitIgnoreSpec.from_lines(lines)
    return sorted(spec.match_tree_files(pages.ROOT, negate=True))


def archive():
    """minidepth.zip: the project, whole."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as zipped:
        for name in project_files():
            about = zipfile.ZipInfo(name, LONG_AGO)
            zipped.writestr(about, (pages.ROOT / name).read_bytes(), zipfile.ZIP_DEFLATED)
    return buffer.getvalue()
