"""The site's hook for mkdocs: what mkdocs-jupyter leaves to do.

docs/index.py and docs/tutorials/*.py are percent files. docs/pages.py runs them, two at a time, and
mkdocs-jupyter renders them; mkdocs.yml has its settings. For these pages the hook

- has them run where their code, or what it reads, has changed: `mkdocs build` waits for them,
  `mkdocs serve` shows the site at once and each page's outputs when it has run;
- makes the notebook's HTML like that of the other pages, and its links those of the site;
- joins a figure and the paragraph after it, which begins "What to see:": it becomes the caption,
  and the text that a screen reader reads;
- shows what a cell tagged `python` prints as Python;
- folds cells with a tag of FOLDS: `hint` and `answer`, of the exercises, and others;
- offers tutorials as notebook and script.

The hook also takes the pages that docs/reference/*.py print, and makes minidepth.zip and the
picture that a link to a page shows elsewhere. It names the commit at the foot of each page,
links to the project where `extra` in mkdocs.yml says where that is, gives the 404 page a text, and
keeps the tables of single studies out of the search.
`DOCS_EXECUTE=false mkdocs serve` leaves the percent files unrun.
"""

import concurrent.futures
import html
import io
import json
import logging
import os
import pathlib
import platform
import posixpath
import re
import subprocess
import urllib.parse
import zipfile

import bs4
import nbformat
import pygments
from mkdocs.exceptions import PluginError
from mkdocs.plugins import get_plugin_logger
from mkdocs.structure.files import File
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

import pages

ROOT = pages.ROOT
CACHE = ROOT / ".cache"
CODE = ["minidepth.py", "minidepth_data.py", "minidepth_files.py", "train.py"]
SEE = "What to see:"
ABSENT = """\
<h1>There is no page at this address</h1>
<p>It may have moved, or the address may be mistyped. Search for it at the top of this page, or go
on from <a href="{root}/">the home page</a>, which has a map of the site, from
<a href="{root}/tutorials/01_hypothesis/">the first tutorial</a>, or from
<a href="{root}/reference/flags/">the list of flags</a>.</p>"""
INK = "#010203"  # of matplotlibrc: the colour of the page's text
# its colours of lines, with a contrast of 3:1 on light and dark; as text they need more
LINES = re.findall('"([0-9a-f]{6})"', (ROOT / "docs" / "matplotlibrc").read_text("utf-8"))
COLORED_TEXT = re.compile(f"fill: #({'|'.join(LINES)})")
READABLE = 11  # pixels
WAIT = "The code of this page runs now. What it shows comes by itself when it has."
log = get_plugin_logger("minidepth")


# ---------- running ----------

serving = []  # what runs pages beside `mkdocs serve`
begun = set()  # the files of pages that it has begun or will
later = []  # [(page, file)] for when the site has been built
shown = {}  # {address of a page: (its percent file, seconds it ran, or None)}


def on_startup(command, dirty):
    if command == "serve":
        serving.append(concurrent.futures.ThreadPoolExecutor(pages.AT_ONCE))


def on_serve(server, config, builder):
    """What a page shows is a file that `mkdocs serve` watches, as it does the pages themselves."""
    pages.KEPT.mkdir(parents=True, exist_ok=True)
    server.watch(str(pages.KEPT))


def on_shutdown():
    while serving:
        serving.pop().shutdown(wait=False, cancel_futures=True)
    pages.stop()


def run_beside(path, file):
    """Run a page while the server serves."""
    try:
        pages.run(path, file)
    except RuntimeError as error:
        if serving:  # else it has been stopped with the server
            log.warning(str(error))


def on_post_build(config):
    """Only now, so that the site is there sooner."""
    while later:
        serving[0].submit(run_beside, *later.pop(0))


def run(paths):
    """Have pages run → {page: what it shows, or None while it runs}"""
    files = pages.kept(paths)
    if not serving:
        try:
            files = pages.run_missing(files)
        except RuntimeError as error:
            raise PluginError(str(error)) from None
    said = {}
    for path, file in files.items():
        said[path] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else None
        if said[path] is None and file not in begun:
            begun.add(file)
            later.append((path, file))
    return said


def made_from():
    """The commit and its date, for the foot of each page, with + if files were changed since;
    nothing outside git."""

    def git(*words):
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True).stdout

    try:
        commit, _, date = git("log", "-1", "--format=%h %cs").strip().partition(" ")
        changed = git("status", "--porcelain", "--untracked-files=no")
    except FileNotFoundError:
        return ""
    return f"Made from commit {commit}{'+' if changed else ''} of {date}" if commit else ""


def on_config(config):
    config.plugins["mkdocs-jupyter"].config["cache_dir"] = str(CACHE / "mkdocs-jupyter")
    config.copyright = made_from()
    if repo := config.extra["repo_url"]:
        config.copyright += f' · <a href="{html.escape(repo)}">the project</a>'
    os.environ["JUPYTER_CONFIG_DIR"] = str(ROOT / "docs")  # the user's settings have no effect


# ---------- files ----------

SETUP = """\
# Finds minidepth.py and docs/minidepth_lab: in this folder or its parents, in a Kaggle data set,
# or in
# the minidepth.zip that the site offers
import glob
import os
import sys

if os.path.exists("minidepth.zip") and not os.path.exists("minidepth.py"):
    import zipfile

    zipfile.ZipFile("minidepth.zip").extractall()
found = glob.glob("/kaggle/input/**/minidepth.py", recursive=True)
for folder in [".", "..", "../..", *map(os.path.dirname, found)]:
    if os.path.exists(os.path.join(folder, "minidepth.py")):
        folder = os.path.abspath(folder)
        sys.path += [folder, os.path.join(folder, "docs")]"""


def notebook(path):
    """A percent file → a Jupyter notebook that finds minidepth and the studies, as JSON."""
    made = pages.notebook(path)
    made.cells.insert(1, nbformat.v4.new_code_cell(SETUP))
    return written(made)


def written(made):
    """A notebook → JSON, the same for the same cells."""
    for number, cell in enumerate(made.cells):
        cell.id = f"cell-{number}"
    made.metadata = dict(kernelspec=dict(name="python3", display_name="Python 3"))
    return nbformat.writes(made)


def with_outputs(path, outputs):
    """The file of a notebook: a percent file and [what each cell of code shows]."""
    made = pages.notebook(path)
    code = [cell for cell in made.cells if cell.cell_type == "code"]
    for cell, shows in zip(code, outputs):
        cell.outputs = [nbformat.from_dict(output) for output in shows]
    file = CACHE / "notebooks" / f"{path.parent.name}-{path.stem}.ipynb"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(written(made), encoding="utf-8")
    return file


def archive():
    """minidepth.zip: what a notebook needs beside itself."""
    files = [*CODE, "pyproject.toml", "requirements.txt", "LICENSE"]
    patterns = ["docs/minidepth_lab/*.py", "docs/data/*"]
    kinds = "csv", "json*", "safetensors", "jinja", "toml"
    patterns += [f"docs/results/**/*.{kind}" for kind in kinds]
    for pattern in patterns:
        files += sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob(pattern))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as zipped:
        for name in files:
            about = zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0))  # the same files, the same bytes
            zipped.writestr(about, (ROOT / name).read_bytes(), zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def social():
    """The picture that other sites show with a link, a PNG; no number, which could get old."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    figure = Figure(figsize=(12, 6.3), dpi=100, facecolor="#16324d")
    figure.text(0.07, 0.76, "minidepth", color="white", size=62, weight="bold")
    figure.text(0.07, 0.50, "Does depth help\na Transformer reason?", color="white", size=40)
    figure.text(0.07, 0.30, "And how would you know?", color="#9cc8ff", size=32)
    for n, left in ((1, 0.07), (12, 0.14)):  # one layer, and twelve
        for layer in range(n):
            corner = (left + 0.028 * layer, 0.09)
            figure.add_artist(
                Rectangle(corner, 0.02, 0.11, color="#2f7fe0" if n == 1 else "#d4650b")
            )
    buffer = io.BytesIO()
    figure.savefig(
        buffer, format="png", facecolor=figure.get_facecolor(), metadata={"Software": None}
    )
    return buffer.getvalue()


def on_files(files, config):
    """Each page is known as .md, so that links and the nav are the same for all of them."""

    def add(name, **content):
        files.append(File.generated(config, name, **content))

    sources = {f.src_uri[: -len(".py")]: f for f in files if f.src_uri.endswith(".py")}
    paths = {name: pathlib.Path(file.abs_src_path) for name, file in sources.items()}
    runs = [path for path in pages.pages() if path in paths.values()]
    said = run([path for path in runs if config.extra["run"] or pages.prints_markdown(path)])
    if later:  # nor does what their links lead to have all of its headings yet
        config.validation.links.anchors = logging.DEBUG
    for name, path in paths.items():
        files.remove(sources[name])
        if path in runs and pages.prints_markdown(path):
            add(f"{name}.md", content=said[path]["shown"] if said[path] else WAIT)
        elif path in runs:
            has_run = said.get(path) or dict(seconds=None, shown=[])
            shown[f"{name}.md"] = (path, has_run["seconds"])
            file = with_outputs(path, has_run["shown"])
            add(f"{name}.md", abs_src_path=str(file))  # a page of mkdocs-jupyter: a notebook
        if name.startswith(("tutorials/", "how-to/")):
            add(f"{name}.ipynb", content=notebook(path))
            add(f"{name}.py", abs_src_path=str(path))
    add("minidepth.zip", content=archive())
    add("assets/social.png", content=social())
    return files


# ---------- pages ----------

named = {}  # {address of a page: its title in the nav, None where that gives none}


def on_nav(nav, config, files):
    named.update((page.file.src_uri, page.title) for page in nav.pages)


def on_page_markdown(markdown, page, config, files):
    if page.file.src_uri.startswith("results/"):  # notes of one experiment, which no menu leads to
        page.meta["search"] = dict(exclude=True)
    if page.file.src_uri == "reference/flags.md":  # who types a flag looks for what it does
        page.meta["search"] = dict(boost=6)


def on_page_context(context, page, config, nav):
    """The link to edit the page's source, which may be a program, where the project is known."""
    if repo := config.extra["repo_url"]:
        source = pathlib.Path(page.file.src_uri)
        docs = pathlib.Path(config.docs_dir)
        if docs.joinpath(source.with_suffix(".py")).exists():
            source = source.with_suffix(".py")
        page.edit_url = f"{repo.rstrip('/')}/{config.extra['edit_uri']}{source.as_posix()}"


def on_post_page(output, page, config):
    """What other sites show of a link to the page; only a whole address can name the picture."""
    if not config.site_url:
        return output
    shown = dict(title=page.title, description=config.site_description, type="article")
    shown |= dict(url=page.canonical_url, image=f"{config.site_url.rstrip('/')}/assets/social.png")
    tags = [f'<meta property="og:{k}" content="{html.escape(str(v))}">' for k, v in shown.items()]
    tags.append('<meta name="twitter:card" content="summary_large_image">')
    return output.replace("</head>", "\n".join(tags) + "</head>", 1)


def on_post_template(output, template_name, config):
    """The page of an address that leads nowhere says where to go."""
    if template_name != "404.html":
        return output
    root = urllib.parse.urlsplit(config.site_url or "/").path.rstrip("/")
    return output.replace("<h1>404 - Not found</h1>", ABSENT.format(root=root))


def on_page_content(content, page, config, files):
    """nbconvert's HTML → that of the other pages."""
    if page.file.src_uri not in shown:
        return content
    # mkdocs-jupyter takes the first heading; a page that is not in the nav has no other
    page.title = named.get(page.file.src_uri) or page.title
    path, seconds = shown[page.file.src_uri]
    soup = bs4.BeautifulSoup(content, "html.parser").select_one(".jp-Notebook")
    relink(soup, path, page, files)
    if config.extra["repo_url"] and path.stem == "index":
        add_clone(soup, config.extra["repo_url"])
    parts = rendered(soup, path)
    if path.parent.name == "tutorials":
        page.meta["search"] = dict(boost=4)
        links = [f'<a href="../{path.stem}.ipynb" download>notebook</a>']
        links += [f'<a href="../{path.name}" download>script</a>']
        services = (config.extra["colab"], "Colab"), (config.extra["kaggle"], "Kaggle")
        opens = "".join(
            f' <a class="md-button" href="{html.escape(where)}tutorials/{path.stem}.ipynb">'
            f"Open in {name}</a>"
            for where, name in services
            if where
        )
        # after the paragraph that says what one will learn, not between two sentences
        begins, end, rest = parts[0].partition("</p>")
        parts[0] = f"{begins}{end}\n<p>Download this page: {' or '.join(links)}.{opens}</p>{rest}"
        if seconds is not None:
            about = f"in {seconds} s when the site was built, {pages.AT_ONCE} pages at a time"
            machine = f"PyTorch {pages.TORCH}, {platform.machine()} CPU"
            parts.append(f"<p><em>This page ran {about}: {machine}.</em></p>")
    if seconds is None and config.extra["run"]:
        parts.insert(0, f'<div class="admonition note"><p>{WAIT}</p></div>')
    return "\n".join(parts)


def add_clone(soup, repo):
    """The home page's other way to the code than the archive, once the project has an address."""
    command = soup.new_tag("code")
    command.string = f"git clone {repo}"
    archive = soup.select_one("a[href$='minidepth.zip']:not(.md-button)")
    archive.insert_after(" (or ", command, ")")


def relink(soup, path, page, files):
    """Links to sources become links to pages, drawings part of the page."""
    for link in soup.select(".anchor-link"):
        link.attrs |= {"class": "headerlink", "title": "Permanent link"}
    page.present_anchor_ids, page.links_to_anchors = {tag["id"] for tag in soup.select("[id]")}, {}
    for link in soup.select("a[href]"):
        url = urllib.parse.urlsplit(link["href"])
        if url.scheme or not url.path:
            continue
        target = posixpath.join(posixpath.dirname(page.file.src_uri), url.path)
        target = files.get_file_from_path(posixpath.normpath(target))
        if target is None:
            log.warning(f"'{page.file.src_uri}' links to '{link['href']}', which is not there")
            continue
        if url.fragment:  # mkdocs looks whether that page has it
            page.links_to_anchors.setdefault(target, {})[url.fragment] = link["href"]
        link["href"] = url._replace(path=target.url_relative_to(page.file)).geturl()
    for image in soup.select('img[src$=".svg"]'):  # only in the page does it follow its colours
        text = path.parent.joinpath(image["src"]).read_text("utf-8")
        svg = bs4.BeautifulSoup(text, "html.parser").svg
        svg.attrs |= {"role": "img", "aria-label": image["alt"]}
        image.replace_with(svg)


FOLDS = dict(  # tag: look and name
    hint=("tip", "Hint"),
    answer=("success", "Answer"),
    details=("note", "The details"),
    fell=("note", "What this page said before, and why it fell"),
)


def machinery(cell):
    """What to call code that only serves the page: it draws, or checks what the page says."""
    if cell.cell_type != "code":
        return None
    if re.search(r"^plt\.show\(\)", cell.source, re.MULTILINE):
        return "How this figure is drawn"
    tops = re.findall(r"^\S.*", cell.source, re.MULTILINE)
    checks = sum(line.startswith("assert") for line in tops)
    return "What this page checks" if tops and 2 * checks >= len(tops) else None


def rendered(soup, path):
    """A notebook in nbconvert's HTML → [HTML as Markdown pages have it]"""
    for pre in soup.select(".jp-RenderedMarkdown .highlight > pre"):
        code = bs4.BeautifulSoup("<code></code>", "html.parser").code  # or it would not scroll
        code.extend(list(pre.contents))
        pre.append(code)
    parts, folded, n_figures = [], None, 0
    sources = pages.notebook(path).cells  # nbconvert's Markdown cells do not tell their tags
    for number, (cell, source) in enumerate(zip(soup.find_all(recursive=False), sources), 1):
        fold = next((tag for tag in source.metadata.get("tags", ()) if tag in FOLDS), None)
        if folded and fold != folded:
            parts.append("</details>")
            folded = None
        if fold and not folded:
            look, name = FOLDS[fold]
            parts.append(f'<details class="{look}"><summary>{name}</summary>')
            folded = fold
        if source.cell_type == "markdown":
            parts += [text.decode_contents() for text in cell.select(".jp-RenderedMarkdown")]
            continue
        served = None if folded else machinery(source)
        below = ""
        for code in cell.select(".jp-InputArea-editor pre"):  # not the fenced code in Markdown
            text = code.decode_contents()
            text = f'<div class="highlight"><pre><code>{text}</code></pre></div>'
            if served:
                text = f'<details class="code"><summary>{served}</summary>{text}</details>'
                below = text
            else:
                parts.append(text)
        shown = cell.select('.jp-OutputArea-output[data-mime-type="text/plain"] pre')
        text = "".join(part.decode_contents() for part in shown).strip("\n")  # it comes in pieces
        if "celltag_python" in cell["class"]:
            python = (PythonLexer(), HtmlFormatter(nowrap=True))
            text = pygments.highlight(html.unescape(text), *python)
        if text:
            parts.append(f'<div class="output highlight"><pre><code>{text}</code></pre></div>')
        for box in cell.select('.jp-OutputArea-output[data-mime-type="text/html"]'):
            parts.append(box.decode_contents())  # of minidepth_lab/parts.py
        if figures := cell.select(".jp-RenderedSVG svg"):
            after = cell.find_next_sibling()
            caption = after and after.select_one(".jp-RenderedMarkdown > :first-child")
            if not caption or not caption.get_text().startswith(SEE):
                raise PluginError(
                    f"{path.name}: a figure without '{SEE}' after it, in cell {number}"
                )
            n_figures += 1
            caption.extract().name = "figcaption"
            first = caption.find(string=True)
            said = str(first).removeprefix(SEE).lstrip()
            first.replace_with(said[:1].upper() + said[1:])
            number = bs4.BeautifulSoup(f"<strong>Figure {n_figures}.</strong> ", "html.parser")
            caption.insert(0, number)
            figures = [as_svg(svg, " ".join(caption.get_text().split())) for svg in figures]
            parts.append(f"<figure>{''.join(figures)}{caption}</figure>")
        parts.append(below)
    if folded:
        parts.append("</details>")
    return parts


def as_svg(svg, text):
    """Matplotlib's SVG for a page: named, as wide as the page allows, the ink in its colour."""
    for group in svg.select("g[id]"):  # a page would have each name once a figure
        del group["id"]
    for extra in svg.select("metadata"):
        extra.decompose()
    for label in svg.select("text[style]"):  # nearer to the page's text, darker or lighter
        mixed = r"fill: color-mix(in srgb, #\1 65%, currentColor)"
        label["style"] = COLORED_TEXT.sub(mixed, label["style"])
    points = float(svg["width"].removesuffix("pt"))
    sizes = [float(size) for size in re.findall(r"font(?:-size)?: ?([\d.]+)px", str(svg))]
    # on a phone the figure shrinks until its smallest text is READABLE, and scrolls from there
    least = min(points * 4 / 3, points * READABLE / min(sizes, default=READABLE))
    del svg["width"], svg["height"]
    style = f"max-width: {points * 4 / 3:.0f}px; min-width: {least:.0f}px"
    svg.attrs |= {"role": "img", "aria-label": text, "style": style}
    return str(svg).replace(INK, "currentColor")
