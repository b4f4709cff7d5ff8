"""The site's hook for mkdocs: what mkdocs-jupyter leaves to do.

mkdocs-jupyter runs and renders the pages that are percent files: docs/index.py and
docs/tutorials/*.py. A cell that fails ends the build. Of these pages the hook

- names the cache, so that they run again when the code or a result changes, and keeps time;
- turns the notebook's HTML into that of the other pages, and its links into the site's;
- joins a figure and the paragraph after it, "What to see: …", its caption and its text for a
  screen reader;
- offers the tutorials as notebook and script.

A cell's tags say how it appears:
    # %% tags=["hide"]    its code is folded away
    # %% tags=["python"]  what it prints is Python

The hook also runs docs/reference/*.py, which print a page of Markdown, makes minidepth.zip, and
puts drawings into pages. `DOCS_EXECUTE=false mkdocs serve` leaves percent files unrun.
"""

import hashlib
import importlib.metadata
import io
import os
import pathlib
import platform
import posixpath
import re
import shutil
import subprocess
import sys
import time
import urllib.parse
import zipfile

import bs4
import jupytext
import nbformat
import pygments
from mkdocs.exceptions import PluginError
from mkdocs.plugins import get_plugin_logger
from mkdocs.structure.files import File
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

ROOT = pathlib.Path(__file__).resolve().parents[1]
CACHE = ROOT / ".cache" / "site"
SEE = "What to see:"
INK = "#010203"  # of matplotlibrc: the colour of the page's text
TORCH = importlib.metadata.version("torch").split("+")[0]
log = get_plugin_logger("minidepth")


# ---------- running ----------


def salt():
    """A hash of everything that pages read besides themselves."""
    digest = hashlib.sha256(TORCH.encode())
    files = [ROOT / "minidepth.py", ROOT / "train.py", *(ROOT / "docs" / "results").rglob("*")]
    files += [ROOT / "docs" / name for name in ("matplotlibrc", "jupyter_nbconvert_config.py")]
    for path in sorted(path for path in files if path.is_file()):
        digest.update(str(path.relative_to(ROOT)).encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def kept(folder, path, make):
    """The text that make() gives, kept in the folder until the file at the path changes."""
    file = pathlib.Path(folder, f"{path.stem}-{hashlib.sha256(path.read_bytes()).hexdigest()[:16]}")
    if not file.exists():
        text = make()
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return file.read_text(encoding="utf-8")


def printed(path):
    """What a script prints."""
    command = [sys.executable, str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, encoding="utf-8")
    if done.returncode:
        raise PluginError(f"{path.name} failed:\n{done.stderr}")
    return done.stdout


def on_config(config):
    plugin = config.plugins["mkdocs-jupyter"].config
    # a build that runs nothing clears its cache of all else, so it has one of its own
    plugin["cache_dir"] = str(CACHE / salt() / ("run" if plugin["execute"] else "unrun"))
    for old in CACHE.glob("*"):
        if old.name not in pathlib.Path(plugin["cache_dir"]).parts:
            shutil.rmtree(old)
    os.environ.update(
        IPYTHONDIR=str(ROOT / ".cache" / "ipython"),  # the user's settings have no effect here
        JUPYTER_CONFIG_DIR=str(ROOT / "docs"),
        MATPLOTLIBRC=str(ROOT / "docs" / "matplotlibrc"),
        MPLBACKEND="module://matplotlib_inline.backend_inline",
        PYTHONPATH=str(ROOT),
        TOKENIZERS_PARALLELISM="false",
    )


# ---------- files ----------

SETUP = """# Finds minidepth.py: in this folder or its parents, in a Kaggle data set, or in the
# minidepth.zip that the site offers
import glob
import os
import sys

if os.path.exists("minidepth.zip") and not os.path.exists("minidepth.py"):
    import zipfile

    zipfile.ZipFile("minidepth.zip").extractall()
found = glob.glob("/kaggle/input/**/minidepth.py", recursive=True)
sys.path += [".", "..", "../..", *map(os.path.dirname, found)]"""


def notebook(path):
    """A percent file → a Jupyter notebook that finds minidepth.py, as JSON."""
    made = jupytext.read(path)
    made.cells.insert(1, nbformat.v4.new_code_cell(SETUP))
    for number, cell in enumerate(made.cells):
        cell.id = f"cell-{number}"
    made.metadata = dict(kernelspec=dict(name="python3", display_name="Python 3"))
    return nbformat.writes(made)


def archive():
    """minidepth.zip: what a notebook needs beside itself."""
    files = ["minidepth.py", "train.py", "requirements.txt", "LICENSE"]
    files += sorted(str(p.relative_to(ROOT)) for p in ROOT.glob("docs/results/**/*.csv"))
    files += sorted(str(p.relative_to(ROOT)) for p in ROOT.glob("docs/results/**/*.json*"))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as zipped:
        for name in files:  # a fixed date: the same files give the same bytes
            zipped.writestr(zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0)), (ROOT / name).read_text())
    return buffer.getvalue()


def on_files(files, config):
    """Each page is known as .md, so that links and the nav are the same for all of them."""

    def add(name, **content):
        files.append(File.generated(config, name, **content))

    folder = pathlib.Path(config.plugins["mkdocs-jupyter"].config["cache_dir"]).parent
    for file in [f for f in files if f.src_uri.endswith(".py")]:
        path, name = pathlib.Path(file.abs_src_path), file.src_uri[: -len(".py")]
        files.remove(file)
        if name.startswith("reference/"):
            add(f"{name}.md", content=kept(folder, path, lambda: printed(path)))
        if name == "index" or name.startswith("tutorials/"):
            add(f"{name}.md", abs_src_path=str(path))  # a page of mkdocs-jupyter: it ends in .py
        if name.startswith(("tutorials/", "how-to/")):
            add(f"{name}.ipynb", content=notebook(path))
            add(f"{name}.py", abs_src_path=str(path))
    add("minidepth.zip", content=archive())
    return files


# ---------- pages ----------


def block(code, words=""):
    """Code in HTML, as the other pages have it."""
    return f'<div class="{words} highlight"><pre><code>{code}</code></pre></div>'


def text_of(tag):
    return " ".join(tag.get_text().split())


def as_svg(svg, text):
    """Matplotlib's SVG for a page: named, as wide as the page allows, the ink in its colour."""
    for extra in svg.select("metadata"):
        extra.decompose()
    for group in svg.select("g[id]"):  # a page would have each name once a figure
        del group["id"]
    del svg["height"]
    width = float(svg.attrs.pop("width").removesuffix("pt")) * 4 / 3
    svg.attrs |= {"role": "img", "aria-label": text, "style": f"max-width: {width:.0f}px"}
    return str(svg).replace(INK, "currentColor")


def rendered(content, path):
    """nbconvert's HTML → [HTML of a cell], without its styles, scripts and frames."""
    parts, drawn, folded = [], [], ""  # figures of the cell before, and its code
    for cell in bs4.BeautifulSoup(content, "html.parser").select(".jp-Notebook > *"):
        text = cell.select_one(".jp-RenderedMarkdown")
        caption = text and text.find(True)
        caption = caption if caption and caption.get_text().startswith(SEE) else None
        if drawn:
            if not caption:
                raise PluginError(
                    f"{path.name}: no '{SEE}' after a figure, but: {text_of(cell)[:60]}"
                )
            named = text_of(caption)
            caption.extract().name = "figcaption"
            svgs = "".join(as_svg(svg, named) for svg in drawn)
            parts.append(f"<figure>{svgs}{caption}</figure>{folded}")
        drawn, folded = cell.select(".jp-RenderedSVG svg"), ""
        if text:
            for link in text.select(".anchor-link"):
                link.attrs |= {"class": "headerlink", "title": "Permanent link"}
            parts.append(text.decode_contents())
            continue
        code = block(cell.select_one(".jp-InputArea pre").decode_contents())
        hide, python = (f"celltag_{tag}" in cell["class"] for tag in ("hide", "python"))
        if hide:
            summary = f"The code that {'drew' if drawn else 'printed'} this"
            folded = f'<details class="note"><summary>{summary}</summary>{code}</details>'
        else:
            parts.append(code)
        for shown in cell.select('.jp-OutputArea-output[data-mime-type="text/plain"] pre'):
            text = shown.decode_contents().strip("\n")
            if python:
                formatter = HtmlFormatter(nowrap=True)
                text = pygments.highlight(shown.get_text(), PythonLexer(), formatter)
            parts.append(block(text, "output"))
        if hide and not drawn:
            parts.append(folded)
            folded = ""
    if drawn:
        raise PluginError(f"{path.name}: no '{SEE}' after the last figure")
    return parts


def relink(tag, key, page, files):
    """Make a link to a source file one to what the site has in its place."""
    url = urllib.parse.urlsplit(tag[key])
    if url.scheme or not url.path:
        return
    target = posixpath.join(posixpath.dirname(page.file.src_uri), urllib.parse.unquote(url.path))
    target = files.get_file_from_path(posixpath.normpath(target))
    if target is None:
        log.warning(f"'{page.file.src_uri}' links to '{tag[key]}', which is not there")
        return
    if url.fragment:  # mkdocs looks whether that page has it
        page.links_to_anchors.setdefault(target, {})[url.fragment] = tag[key]
    tag[key] = target.url_relative_to(page.file) + (url.fragment and f"#{url.fragment}")


def on_page_markdown(markdown, page, config, files):
    page.began = time.perf_counter()


def from_notebook(content, page, config, files):
    """nbconvert's HTML → the page's."""
    path, plugin = pathlib.Path(page.file.abs_src_path), config.plugins["mkdocs-jupyter"].config
    seconds = kept(plugin["cache_dir"], path, lambda: f"{time.perf_counter() - page.began:.0f}")
    parts = rendered(content, path)
    if path.parent.name == "tutorials":
        page.meta["search"] = dict(boost=4)
        get = f'<a href="{path.stem}.ipynb" download>notebook</a>'
        get += f' or <a href="{path.name}" download>script</a>'
        parts.insert(1, f"<p>Download this page: {get}.</p>")
        if plugin["execute"]:
            about = f"PyTorch {TORCH}, {platform.machine()} CPU"
            parts.append(
                f"<p><em>This page ran in {seconds} s when it was built: {about}.</em></p>"
            )
    soup = bs4.BeautifulSoup("\n".join(parts), "html.parser")
    page.links_to_anchors = {}
    for tag in soup.select("a[href], img[src]"):
        relink(tag, "href" if tag.name == "a" else "src", page, files)
    page.present_anchor_ids = {tag["id"] for tag in soup.select("[id]")}
    return str(soup)


def on_page_content(content, page, config, files):
    """Put drawings, <img src="….svg">, into the page itself: only there do they follow its
    colours."""
    if (page.file.abs_src_path or "").endswith(".py"):
        content = from_notebook(content, page, config, files)

    def drawing(match):
        alt = re.search(r'alt="([^"]*)"', match[0])[1]
        svg = (ROOT / "docs" / "assets" / match[1]).read_text(encoding="utf-8")
        return svg.replace("<svg", f'<svg role="img" aria-label="{alt}"', 1)

    return re.sub(r'<img [^>]*src="[^"]*assets/([\w-]+\.svg)"[^>]*>', drawing, content)
