"""The site's hook for mkdocs: how a program becomes a page.

pages.py runs the programs among the pages (docs/index.py, docs/tutorials/*.py, docs/reference/*.py)
and keeps their outputs. mkdocs-jupyter renders the percent files with these, and render.py gives
the result the form of the other pages. In this file is what mkdocs calls, in the order of a build:

- the commit, for the foot of each page;
- the pages that are programs, notebooks to download and minidepth.zip, as files of the site;
- of each page: its links, title and description, what it weighs in a search, where to edit it;
- the map of the site, on the home page.

`mkdocs build` waits for programs that have to run; `mkdocs serve` shows the site at once, and is
built once more when all of them have run. `DOCS_EXECUTE=false mkdocs serve` leaves percent files
unrun.
"""

import concurrent.futures
import html
import json
import logging
import math
import os
import pathlib
import platform
import posixpath
import re
import subprocess
import time
import urllib.parse

import bs4
import nbformat
from mkdocs.exceptions import PluginError
from mkdocs.plugins import get_plugin_logger
from mkdocs.structure.files import File

import downloads
import pages
import render

CACHE = pages.ROOT / ".cache"
WAIT = (
    "The code of some pages runs now, and this is one. What it shows comes by itself when all have."
)
ALL_RAN = CACHE / "all-ran"  # a file that is written when pages have run, and no page still has to
log = get_plugin_logger("minidepth")


# ---------- running ----------

pool = []  # while `mkdocs serve` runs: the executor that runs pages beside it
begun = set()  # the output files of pages that it has begun to run, or will
unfinished = set()  # those of them that have not run
waiting = []  # [(page, output file)] that begin to run when the site has been built


def on_startup(command, dirty):
    if command == "serve":
        pool.append(concurrent.futures.ThreadPoolExecutor(pages.AT_ONCE))


def on_serve(server, config, builder):
    """The code that pages import is watched as the pages are. Their outputs are not: each would
    have the whole site built, and all browsers load their page anew."""
    ALL_RAN.parent.mkdir(parents=True, exist_ok=True)
    ALL_RAN.touch()
    for path in (ALL_RAN, *pages.ROOT.glob("*.py")):
        server.watch(str(path))


def on_shutdown():
    while pool:
        pool.pop().shutdown(wait=False, cancel_futures=True)
    pages.stop()


def on_post_build(config):
    """Pages run only now, so that the site is there sooner."""
    pages.expect(len(waiting))
    while waiting:
        pool[0].submit(run_beside, *waiting.pop(0))


def run_beside(path, file):
    """Run a page while the server serves, unless it has changed since and so waits anew."""
    try:
        if pages.output_files([path])[path] == file:
            pages.run(path, file)
        else:
            begun.remove(file)  # it may change back
    except RuntimeError as error:
        if pool:  # else it has been stopped with the server
            log.warning(str(error))
    unfinished.remove(file)
    if pool and not unfinished:
        ALL_RAN.write_text(str(time.time()))


def outputs_of(paths):
    """Have pages run → {page: its `seconds` and `outputs`, or None while it runs}"""
    files = pages.output_files(paths)
    if not pool:
        try:
            files = pages.run_outdated(files)
        except RuntimeError as error:
            raise PluginError(str(error)) from None
    outputs = {}
    for path, file in files.items():
        outputs[path] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else None
        if outputs[path] is None and file not in begun:
            begun.add(file)
            unfinished.add(file)
            waiting.append((path, file))
    return outputs


# ---------- settings ----------


def git(*words):
    """What git prints; nothing outside of git."""
    try:
        command = ["git", *words]
        return subprocess.run(command, cwd=pages.ROOT, capture_output=True, text=True).stdout
    except FileNotFoundError:
        return ""


def made_from():
    """The commit and its date, with + if files were changed since; nothing outside of git."""
    commit, _, date = git("log", "-1", "--format=%h %cs").strip().partition(" ")
    changed = git("status", "--porcelain", "--untracked-files=no")
    return f"Made from commit {commit}{'+' if changed else ''} of {date}" if commit else ""


def on_config(config):
    config.plugins["mkdocs-jupyter"].config["cache_dir"] = str(CACHE / "mkdocs-jupyter")
    config.copyright = made_from()
    if repo := config.extra["repo_url"]:
        config.copyright += f' · <a href="{html.escape(repo)}">the project</a>'
    os.environ["JUPYTER_CONFIG_DIR"] = str(pages.SITE)  # the user's settings have no effect


# ---------- files ----------

# {a page's address as Markdown: (its percent file, the seconds that it ran or None)}
notebook_pages = {}


def on_files(files, config):
    """Programs become pages. Each is known as .md, so that links and the nav are the same for all
    pages. What is no page of the nav is offered as it is, and as a notebook."""

    def add(name, **content):
        files.append(File.generated(config, name, **content))

    sources = {file: pathlib.Path(file.abs_src_path) for file in files if is_program(file)}
    in_nav = [path for path in pages.programs() if path in sources.values()]
    to_run = [path for path in in_nav if config.extra["run"] or pages.prints_markdown(path)]
    outputs = outputs_of(to_run)
    first = None in outputs.values()  # of two builds: some pages have not run yet
    if first:  # pages that others link to do not have all their headings yet
        config.validation.links.anchors = logging.DEBUG
    for file, path in sources.items():
        name = file.src_uri.removesuffix(".py")
        files.remove(file)
        if path in in_nav and pages.prints_markdown(path):
            add(f"{name}.md", content=outputs[path]["outputs"] if outputs[path] else WAIT)
            continue
        if path in in_nav:
            run = outputs.get(path) or dict(seconds=None, outputs=[])
            notebook_pages[f"{name}.md"] = path, run["seconds"]
            add(f"{name}.md", abs_src_path=str(with_outputs(path, run["outputs"])))
        if name != "index":
            add(f"{name}.ipynb", content=downloads.notebook(path, config.site_url or ""))
            add(f"{name}.py", abs_src_path=str(path))
    has_laboratory = "reference/laboratory.md" in files.src_uris  # a site of a few pages may not
    for room, modules in pages.rooms().items() if has_laboratory else ():
        content = "\n".join([f"# {room}\n", *(f"::: {name}\n" for name in modules)])
        if first:  # a fifth of a build, which somebody waits for
            content = f"# {room}\n\n{WAIT}"
        add(f"reference/laboratory/{room.rpartition('.')[2]}.md", content=content)
    add("minidepth.zip", content=downloads.archive())
    for old, new in MOVED.items():
        page, _, heading = new.partition("#")
        if f"{page}.md" in files.src_uris:  # a site of a few pages has not all
            address = f"{posixpath.relpath(page, old)}/{'#' if heading else ''}{heading}"
            add(f"{old}/index.html", content=moved_to(address))
    return files


# {the address of a page that was: the page where its text is now, and its heading}
MOVED = {
    "how-to/colab": "how-to/notebooks",
    "how-to/kaggle": "how-to/notebooks",
    "tutorials/01_hypothesis": "tutorials/1_hypothesis",
    "tutorials/02_model": "tutorials/0_model",
    "tutorials/03_training": "how-to/half_precision",
    "tutorials/04_logs": "tutorials/2_logs",
    "tutorials/05_caveats": "tutorials/7_equal_time",
    "tutorials/06_depth_thresholds": "tutorials/depth_map",
    "tutorials/07_thinking": "tutorials/5_writing",
    "tutorials/08_looking_inside": "tutorials/depth_map#how-to-count-attention",
    "tutorials/09_heads": "tutorials/heads",
    "tutorials/10_scale": "tutorials/scale",
    "tutorials/11_layer_by_layer": "tutorials/depth_map#the-logit-lens",
    "tutorials/12_rings": "tutorials/4_walking",
    "tutorials/13_seeds": "tutorials/6_how_would_you_know",
    "tutorials/14_written_steps": "tutorials/5_writing",
    "tutorials/15_first_run": "reference/results#first-run",
    "tutorials/16_depth_or_time": "tutorials/7_equal_time",
    "tutorials/17_more_depth": "tutorials/beyond_training#more-depth-than-needed",
    "tutorials/18_one_more_step": "tutorials/4_walking",
    "tutorials/19_another_layer": "tutorials/beyond_training#the-same-layer-or-another",
    "tutorials/20_same_text": "tutorials/7_equal_time#the-same-text-twenty-times",
    "tutorials/train_here": "tutorials/play",
    "tutorials/ask": "tutorials/play#ask-models-that-write-their-steps",
    "tutorials/another_layer": "tutorials/beyond_training#the-same-layer-or-another",
    "tutorials/depth_thresholds": "tutorials/depth_map#thresholds",
    "tutorials/first_run": "reference/results#first-run",
    "tutorials/same_text": "tutorials/7_equal_time#the-same-text-twenty-times",
    "tutorials/caveats": "tutorials/7_equal_time",
    "tutorials/inside": "tutorials/depth_map#how-to-count-attention",
    "tutorials/rings": "tutorials/beyond_training",
}


def moved_to(address):
    """A page that takes its visitor to another address, relative to its own."""
    return (
        f'<!doctype html><meta charset="utf-8"><title>Moved</title><link rel="canonical" '
        f'href="{address}"><meta http-equiv="refresh" content="0; url={address}">'
        f'<h1>This page has moved</h1><p><a href="{address}">Here it is</a>.</p>'
    )


def is_program(file):
    return file.src_uri.endswith(".py") and file.inclusion.is_included()


def with_outputs(path, outputs):
    """The file of a notebook, for mkdocs-jupyter: a percent file with the outputs of its cells of
    code."""
    notebook = pages.notebook(path)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for cell, shown in zip(code, outputs):
        cell.outputs = [nbformat.from_dict(output) for output in shown]
    file = CACHE / "notebooks" / f"{pages.label(path)}.ipynb"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(downloads.as_json(notebook), encoding="utf-8")
    return file


# ---------- each page ----------

titles = {}  # {address of a page: its title in the nav, None where that gives none}


def on_nav(nav, config, files):
    titles.update((page.file.src_uri, page.title) for page in nav.pages)


# {page: words that visitors type who look for it}: they count more than titles, and are not shown
SEARCHED = {
    "how-to/own_data.md": "own data dataset custom jsonl",
    "how-to/troubleshooting.md": "cuda out memory oom error nan slow",
    "reference/flags.md": "hyperparameters hyperparameter settings options learning rate lr",
    "tutorials/0_model.md": "architecture model parameters count",
    "tutorials/1_hypothesis.md": "hypothesis claim",
    "tutorials/3_one_look_or_two.md": "induction head heads",
    "tutorials/2_logs.md": "overfitting overfit validation",
    "tutorials/depth_map.md": "logit lens inside thresholds",
    "tutorials/4_walking.md": "ring rings hop hops",
    "tutorials/thousand_hops.md": "length generalisation generalization recall looped",
    "tutorials/5_writing.md": "chain thought cot steps",
    "tutorials/play.md": "train browser javascript ask",
}


def on_page_markdown(markdown, page, config, files):
    """How much a page weighs in a search, and words by which it is found first; buttons that open a
    notebook, where the page has <!-- open ADDRESS -->."""
    address = page.file.src_uri
    page.meta["tags"] = SEARCHED.get(address, "").split()
    if address in notebook_pages:
        page.meta["search"] = dict(boost=4)
    if address == "reference/flags.md":  # who types a flag wants to know what it does
        page.meta["search"] = dict(boost=6)
    if address.startswith(tuple(f"reference/{name}." for name in ("api", "laboratory", "results"))):
        page.meta["search"] = dict(boost=0.05)  # these have nearly every word
    if address.startswith(("results/", "reference/laboratory/")) and address != "results/README.md":
        page.meta["search"] = dict(
            exclude=True
        )  # single experiments and functions: no pages to read
    return re.sub("<!-- open (.*?) -->", lambda found: in_one_click(found[1], config), markdown)


def in_one_click(address, config):
    """A sentence with the buttons of ways_to_open(), where there are any."""
    buttons = ways_to_open(address, config)
    return f"Or in one click: {buttons}" if buttons else ""


def on_page_content(content, page, config, files):
    """A page's HTML: that of a notebook gets the form of the others."""
    if page.file.src_uri in notebook_pages:
        # mkdocs-jupyter takes the first heading; a page that is not in the nav has no other
        page.title = titles.get(page.file.src_uri) or page.title
        content = notebook_page(content, page, config, files)
    describe(page, content)
    # each page that is opened reads the whole index: it has the sentences of the site, neither code
    # that draws, checks or is a function's, nor the numbers of all runs
    unsearched = ['<details class="mkdocstrings-source"', '<details class="code"']
    if page.file.src_uri == "reference/results.md":
        unsearched.append("<table")
    for tag in unsearched:
        content = content.replace(tag, f'{tag} data-search-exclude=""')
    return content


def on_page_context(context, page, config, nav):
    if page.is_homepage:  # only now do all pages have their titles
        page.content = page.content.replace('<div class="site-map"></div>', site_map(nav))
    if repo := config.extra["repo_url"]:
        page.edit_url = f"{repo.rstrip('/')}/{config.extra['edit_uri']}{source_of(page)}"


def source_of(page):
    """The file to edit, in docs: a program, where the page comes from one."""
    source = pathlib.PurePosixPath(page.file.src_uri)
    program = source.with_suffix(".py")
    return program if (pages.DOCS / program).exists() else source


def describe(page, content):
    """What a link to the page shows elsewhere, and the map: its title, or that of the text where
    the nav has no more than "Home", and a sentence."""
    # up to the first section after a paragraph: to read all of every page would take seconds
    beginning = re.match(r".*?<p.*?(?=<h2|$)", content, flags=re.DOTALL)
    soup = bs4.BeautifulSoup(beginning[0] if beginning else content, "html.parser")
    heading = soup.select_one("h1")
    page.meta["social_title"] = page.title
    if page.is_homepage and heading:
        page.meta["social_title"] = heading.find(string=True)
    page.meta.setdefault("description", first_claim(soup))


def first_claim(soup):
    """The first sentence in bold of a page's beginning, or the very first one."""
    sentences = []
    for paragraph in soup.select("p"):
        sentences += [as_line(words) for words in paragraph.select("strong")]
        if sentences and len(sentences[-1].split()) > 5:  # not a label such as "Time"
            return f"{sentences[-1].rstrip('.:,')}."
    first = soup.select_one("p")
    return re.split(r"(?<=[.?]) ", as_line(first))[0] if first else ""


def as_line(element):
    return " ".join(element.get_text().split())


def site_map(nav):
    """The sections of the nav with their pages, and what each page says first."""
    parts = []
    for section in nav.items:
        if not section.is_section:
            continue
        entries = [map_entry(page) for page in section.children]
        parts.append(f"<h3>{html.escape(section.title)}</h3><ul>{''.join(entries)}</ul>")
    return "\n".join(parts)


def map_entry(page):
    link = f'<a href="{page.url}">{html.escape(page.title)}</a>'
    if description := page.meta["description"]:
        link += f": {html.escape(description, quote=False)}"
    return f"<li>{link}</li>"


# ---------- the pages that are notebooks ----------


def notebook_page(content, page, config, files):
    """nbconvert's HTML → that of the other pages, with what only these have: downloads, how long
    the code ran, or that it still does."""
    path, seconds = notebook_pages[page.file.src_uri]
    soup = bs4.BeautifulSoup(content, "html.parser").select_one(".jp-Notebook")
    resolve_links(soup, path, page, files)
    if config.extra["repo_url"] and page.is_homepage:
        add_clone(soup, config.extra["repo_url"])
    try:
        parts = render.page_parts(soup, pages.notebook(path), path.name)
    except ValueError as error:
        raise PluginError(str(error)) from None
    if not page.is_homepage:
        addition = f"{how_long(path, seconds)}\n{ways_to_download(path, config)}"
        parts[0] = after_first_paragraph(parts[0], addition)
    if seconds is None and config.extra["run"]:
        parts.insert(0, f'<div class="admonition note"><p>{WAIT}</p></div>')
    return "\n".join(parts)


def resolve_links(soup, path, page, files):
    """Links to sources become links to pages, scripts of widgets are found from any page, and
    drawings become part of the page."""
    for link in soup.select(".anchor-link"):
        link.attrs |= {"class": "headerlink", "title": "Permanent link"}
    page.present_anchor_ids = {tag["id"] for tag in soup.select("[id]")}
    page.links_to_anchors = {}
    for link in soup.select("a[href]"):
        resolve_link(link, page, files)
    for script in soup.select('script[src^="/"]'):  # from the root of the site, wherever that is
        target = files.get_file_from_path(script["src"].removeprefix("/"))
        script["src"] = target.url_relative_to(page.file)
    for image in soup.select('img[src$=".svg"]'):  # only in the page does it follow its colours
        text = path.parent.joinpath(image["src"]).read_text("utf-8")
        svg = bs4.BeautifulSoup(text, "html.parser").svg
        svg.attrs |= {"role": "img", "aria-label": image["alt"]}
        image.replace_with(svg)


def resolve_link(link, page, files):
    """A link to a file of docs → one to what the site makes of it. A dead one is warned of, which
    ends a strict build; mkdocs itself checks the anchors noted here."""
    url = urllib.parse.urlsplit(link["href"])
    if url.scheme or not url.path:
        return
    target = posixpath.join(posixpath.dirname(page.file.src_uri), url.path)
    target = files.get_file_from_path(posixpath.normpath(target))
    if target is None:
        log.warning(f"'{page.file.src_uri}' links to '{link['href']}', which is not there")
        return
    if url.fragment:
        page.links_to_anchors.setdefault(target, {})[url.fragment] = link["href"]
    link["href"] = url._replace(path=target.url_relative_to(page.file)).geturl()


def add_clone(soup, repo):
    """The home page's other way to the code than the archive, once the project has an address."""
    command = soup.new_tag("code")
    command.string = f"git clone {repo}"
    archive = soup.select_one("a[href$='minidepth.zip']:not(.md-button)")
    archive.insert_after(" (or ", command, ")")


def ways_to_download(path, config):
    """The paragraph that offers a page as notebook and script, and in services that open one."""
    links = [f'<a href="../{path.stem}.ipynb" download>notebook</a>']
    links += [f'<a href="../{path.name}" download>script</a>']
    address = f"{path.parent.relative_to(pages.DOCS).as_posix()}/{path.stem}.ipynb"
    opens = ways_to_open(address, config)
    return f"<p>Download this page: {' or '.join(links)}. {opens}</p>"


def ways_to_open(address, config):
    """The buttons that open a notebook of the site in the services that find it, as HTML."""
    buttons = []
    for service, name in ((config.extra["colab"], "Colab"), (config.extra["kaggle"], "Kaggle")):
        if service:
            target = html.escape(f"{service}{address}")
            buttons.append(f'<a class="md-button" href="{target}">Open in {name}</a>')
    return " ".join(buttons)


def after_first_paragraph(content, addition):
    """The first paragraph says what one will learn; the addition comes after it, not within."""
    first, end, rest = content.partition("</p>")
    return f"{first}{end}\n{addition}{rest}"


WORDS_A_MINUTE = 200  # with an eye on the figures


def how_long(path, seconds):
    """The paragraph that says how long a page takes: to read it without what is folded, and to run
    its code."""
    text = [
        cell.source
        for cell in pages.notebook(path).cells
        if cell.cell_type == "markdown" and not render.fold_of(cell)
    ]
    minutes = math.ceil(len(" ".join(text).split()) / WORDS_A_MINUTE)
    runs = f', runs in {seconds} s <span class="on">(on {platform.machine()}, with PyTorch '
    runs += f"{pages.TORCH}, while another page ran)</span>"
    return f"<p>Read {minutes} min{'' if seconds is None else runs}.</p>"
