"""What readers take with them: a page as a notebook, and the project as minidepth.zip."""

import io
import posixpath
import re
import zipfile

import nbformat
import pathspec

import pages
from minidepth_site import elsewhere

# the first cell of a downloaded notebook
SETUP = """\
# Gets the code of minidepth: from this folder or one above, from minidepth.zip beside this
# notebook, from a Kaggle data set or an installation, or else from the site of this notebook
import glob
import importlib.util
import io
import os
import sys
import urllib.request
import zipfile

SITE = {site!r}  # where it is, if the notebook was told
PAGE = {page!r}  # this page of it


def project():
    \"\"\"The folder of the project, None if it is not here.\"\"\"
    in_data_sets = glob.glob("/kaggle/input/**/minidepth.py", recursive=True)
    for folder in (".", "..", "../..", "minidepth-project", *map(os.path.dirname, in_data_sets)):
        if os.path.isdir(os.path.join(folder, "minidepth_lab")):
            return os.path.abspath(folder)


def installed(package):
    spec = importlib.util.find_spec(package)
    return bool(spec and spec.origin)  # a folder of that name alone has none


if os.path.exists("minidepth.zip"):
    zipfile.ZipFile("minidepth.zip").extractall("minidepth-project")
elif SITE and not project() and not installed("minidepth_lab"):
    try:
        with urllib.request.urlopen(SITE + "minidepth.zip", timeout=60) as answer:
            zipfile.ZipFile(io.BytesIO(answer.read())).extractall("minidepth-project")
        print(f"The code comes from {{SITE}}minidepth.zip")
    except (OSError, zipfile.BadZipFile) as error:
        print(f"{{SITE}}minidepth.zip cannot be had: {{error}}")
if found := project():
    sys.path[:0] = [os.path.join(found, *part) for part in ([], ["docs", "site"])]
elif not installed("minidepth_lab"):
    sys.exit("minidepth is not here. Download minidepth.zip from the site of this notebook, put it "
             "beside the notebook (on Kaggle: add it as a data set), and run this cell again.")
if missing := [name for name in ("torch", "transformers", "matplotlib") if not installed(name)]:
    missing = " ".join(missing)
    sys.exit(f"Not installed: {{missing}}. Run %pip install {{missing}} first.")

from minidepth_site import widgets

widgets.here = PAGE"""
LONG_AGO = (2026, 1, 1, 0, 0, 0)  # the time of all files in the archive: the same files, same bytes


def as_json(notebook):
    """An nbformat notebook → JSON, the same for the same cells."""
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"
    notebook.metadata = dict(kernelspec=dict(name="python3", display_name="Python 3"))
    return nbformat.writes(notebook)


def notebook(path, site=""):
    """A percent file → a Jupyter notebook that gets minidepth, as JSON, without outputs and
    without the answers to exercises: these stand on the page. `site` is the address of the site,
    with a slash at its end, where that is known."""
    made = pages.notebook(path)
    made.cells = [cell for cell in made.cells if not pages.has_tag(cell, "answer")]
    for cell in made.cells:
        if cell.cell_type == "markdown":
            cell.source = from_afar(cell.source, path, site)
    made.cells.insert(1, nbformat.v4.new_code_cell(setup(path, site)))
    return as_json(made)


def address_of(path, site):
    """The address of the page of a percent file; "" if that of the site is not known."""
    name = path.relative_to(pages.DOCS).with_suffix("").as_posix()
    return site and f"{site}{name}/"


def setup(path, site=""):
    """The cell SETUP of a percent file."""
    return SETUP.format(site=site, page=address_of(path, site))


BOX = re.compile(r'<div class="widget .*?</div>\n<script[^>]*></script>', re.DOTALL)
LINK = re.compile(r"(!?)\[([^\]]*)\]\(\s*(?!https?:|#)([^)\s]+)\)")  # to another file


def from_afar(text, path, site):
    """A page's Markdown for a notebook that lies anywhere: instead of a box it says where that is,
    and links lead to the site; where its address is not known, only their words are left."""
    text = BOX.sub(lambda box: elsewhere(address_of(path, site)), text)
    folder = path.parent.relative_to(pages.DOCS).as_posix()

    def whole(link):
        picture, words, address = link.groups()
        if not site:
            return words
        file, mark, anchor = address.partition("#")
        file = posixpath.normpath(posixpath.join(folder, file))
        file = re.sub(r"(^|/)(index|README)\.md$", r"\1", file)  # the page of a folder
        return f"{picture}[{words}]({site}{re.sub(r'[.]md$', '/', file)}{mark}{anchor})"

    return LINK.sub(whole, text)


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
