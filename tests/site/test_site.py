"""The site: its pages run, its links lead somewhere, and a browser finds nothing to complain of.

SITE=folder checks a site built before, as .ci/run does, and opens each of its pages in a browser;
else one is built here without running the tutorials' code.
"""

import ast
import contextlib
import html.parser
import inspect
import io
import itertools
import json
import os
import pathlib
import re
import shutil
import time
import urllib.parse
import zipfile

import bs4
import markdown
import pytest

import browser
import minidepth as md
import warm
from conftest import ROOT, made_once
from minidepth_lab.base import configs

pytest.importorskip("material", reason="mkdocs-material is not installed")
pytest.importorskip("mkdocs_jupyter", reason="mkdocs-jupyter is not installed")
DOCS = ROOT / "docs"
from mkdocs.utils.yaml import yaml_load  # noqa: E402

import docstrings  # noqa: E402  they need what the lines above look for
import downloads  # noqa: E402
import hooks  # noqa: E402
import pages as programs  # noqa: E402
import render  # noqa: E402

# percent files: those of the nav, and how-to/kaggle_notebook.py, which is offered for download
SETTINGS = yaml_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
NOTEBOOKS = [path for path in programs.programs() if not programs.prints_markdown(path)]
TUTORIALS = [path for path in NOTEBOOKS if path.parent.name == "tutorials"]
KAGGLE = DOCS / "how-to" / "kaggle_notebook.py"
KNOWN = dict(  # where the project is, if a build is told
    REPO_URL="https://code.example/us/minidepth", COLAB_URL="https://colab.example/",
    KAGGLE_URL="https://kaggle.example/?src=a&b=", SITE_URL="https://site.example/docs/",
)  # fmt: skip


def build(project, folder, run=True, **known):
    """mkdocs build --strict, which is told no address but these → (its exit code, what it said)"""
    environment = os.environ | dict(DOCS_EXECUTE=str(run).lower(), NO_MKDOCS_2_WARNING="1")
    for name in (*KNOWN, "EDIT_URI"):
        environment.pop(name, None)
    words = ["build", "--strict", "-d", str(folder)]
    done = warm.run(words, warm.BUILDS, cwd=project, env=environment | known)
    return done.returncode, re.sub(r"\x1b\[[\d;]*m", "", done.stdout + done.stderr)  # no colours


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The folder of the built site."""
    if os.environ.get("SITE"):
        return pathlib.Path(os.environ["SITE"]).resolve()

    def make(folder):
        code, said = build(ROOT, folder / "site", run=False)
        assert code == 0, said

    return made_once(tmp_path_factory, "built", make) / "site"


# ---------- the sources ----------


def test_a_page_reads_nothing_relative_to_the_working_directory():
    for path in [*NOTEBOOKS, KAGGLE]:
        code = "\n".join(programs.cells_of_code(path))
        assert not re.search(r"""["']docs/""", code), path
        assert not re.search(r"^(import|from) train\b", code, re.MULTILINE), path


def test_a_cell_is_marked_by_what_means_something():
    """With a tag that is mistyped an answer would not be folded, and stand in the notebook."""
    meant = {*render.FOLDS, "exercise", "check", "hide", "python"}
    for path in NOTEBOOKS:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"^# %% (?!\[markdown\]|tags=)", text, re.MULTILINE), path
        for cell in programs.notebook(path).cells:
            assert meant.issuperset(cell.metadata.get("tags", ())), (path, cell.source)


# ---------- a site of one page ----------


def make_project(folder):
    """A project with our mkdocs.yml and hooks, and a single tutorial, to be written."""
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    settings = settings[: settings.index("\nnav:")] + "\nnav: [tutorials/01_page.md]\n"
    shutil.copytree(DOCS / "site", folder / "docs" / "site")
    (folder / "minidepth.py").write_text("x = 1\n")
    (folder / "mkdocs.yml").write_text(settings, encoding="utf-8")
    (folder / "docs" / "tutorials").mkdir()


def write(project, *parts):
    text = "\n\n".join(f"# %%{part}" for part in parts)
    (project / "docs" / "tutorials" / "01_page.py").write_text(text + "\n")


def test_a_cell_that_fails_ends_the_build_and_is_named(tmp_path):
    make_project(tmp_path)
    write(tmp_path, "\nprint(1)\nassert 1 == 2")
    code, said = build(tmp_path, tmp_path / "site")
    assert code == 1
    assert re.search("(?s)tutorials/01_page.*-> 2 assert 1 == 2.*AssertionError", said), said


def test_a_dead_link_ends_the_build(tmp_path):
    make_project(tmp_path)
    links = "[there](02_other.md), [here](01_page.md#a), [nowhere](01_page.md#b)"
    write(tmp_path, f" [markdown]\n# # A\n#\n# {links}")
    code, said = build(tmp_path, tmp_path / "site", run=False)
    assert code == 1 and "not there" in said and "no such anchor" in said
    assert said.count("WARNING") == 2


# the words that are folded are not read
PARTS = [
    """ [markdown]
# # A
#
# You learn.
#
# So: [here](01_page.md#a), [zip](../minidepth.zip)
#
# **Time** short. **Two layers learn what one does not:** so.
#
# ```
# once
# ```""",
    """
import matplotlib.pyplot as plt
plt.plot([1, 2])
plt.title('T')
plt.show()
print('7 < 8')
9""",
    ' [markdown]\n# What to see: *up*, "so".\n#\n# More.',
    ' tags=["hide", "python"]\nprint("def f(): 1")',
    "\nimport minidepth as md\nopen('n', 'a').write('1')\nprint('x', flush=True)\nprint(md.x)",
    " [markdown]\n# 1. Why?",
    ' [markdown] tags=["hint"]\n# Look.',
    ' [markdown] tags=["answer"]\n# So:',
    ' tags=["answer"]\nprint(6 * 7)',
    ' [markdown] tags=["answer"]\n# Or so.',
    " [markdown]\n# 2. How?",
    f' [markdown] tags=["answer"]\n# Thus.\n#\n# {"word " * 300}',
]


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """The page of PARTS, as it is built first, and once more when the code that it imports has
    changed and the project has addresses."""

    def make(folder):
        make_project(folder)
        write(folder, *PARTS)
        for x, known in ((1, {}), (2, KNOWN)):
            (folder / "minidepth.py").write_text(f"x = {x}\n")
            code, said = build(folder, folder / f"site{x}", **known)
            assert code == 0, said

    folder = made_once(tmp_path_factory, "page", make)
    assert (folder / "n").read_text() == "11"  # it has run twice
    path = "tutorials/01_page/index.html"
    return [(folder / name / path).read_text() for name in ("site1", "site2")]


def test_a_page_shows_what_it_prints_and_draws(built):
    page, again = built
    for x, each in enumerate(built, 1):
        assert f'<div class="output highlight"><pre><code>x\n{x}</code></pre></div>' in each
    assert '<div class="output highlight"><pre><code>7 &lt; 8</code></pre></div>' in page
    figure = re.search("(?s)<figure><svg(.*)</svg><figcaption>(.*?)</figcaption></figure>", page)
    assert "aria-label='Figure 1. up, \"so\".'" in figure[1] and ">T<" in figure[1]
    assert "currentColor" in figure[1] and render.INK not in page
    assert "<g>" in figure[1] and "<g id=" not in figure[1]  # which each figure would have
    assert figure[2] == '<strong>Figure 1.</strong> <em>up</em>, "so".' and "<p>More.</p>" in page
    drawn = '<details class="code" data-search-exclude=""><summary>How this figure is drawn'
    assert page.index("</figure>") < page.index(drawn) and page.count(drawn) == 1
    assert '<span class="k">def</span>' in page and '"def f(): 1"' not in page  # hidden, Python
    assert 'href="./#a"' in page and 'href="../../minidepth.zip"' in page
    assert re.search('<h1 id="a">A<a class="headerlink" href="#a"', page)
    assert page.count("once") == 1  # fenced code in Markdown is not a cell's
    assert not re.search("<script[^>]*src=.?http|jp-|MathJax", page)


def test_the_way_to_download_a_page_stands_below_its_first_paragraph(built):
    additions = r"<p>Read 1 min, runs in \d+ s <.*</p>\n<p>Download this page: .*</p>"
    assert re.search(f"<p>You learn.</p>\n{additions}\n<p>So: ", built[0])


def test_hints_and_answers_are_folded_with_the_code_that_they_need(built):
    page = built[0]
    folds = re.findall("(?s)<details class=.?(tip|success).*?</details>", page)
    assert folds == ["tip", "success", "success"]  # one answer, however many cells it has
    first, last = page.index("<p>So:</p>"), page.index("<p>Thus.</p>")
    shown = page.index("42", first)
    assert first < shown < page.index("<p>Or so.</p>", shown) < page.index("</details>", first)
    assert page.rindex("</details>", 0, last) < page.index("How?")


def test_where_the_project_is_known_pages_lead_there(built):
    page, known = built
    assert not re.search("og:image|Colab|Kaggle|the project|rel=.?edit", page)
    for part in (
        'href="https://code.example/us/minidepth/edit/main/docs/tutorials/01_page.py"',
        '"https://code.example/us/minidepth">the project',
        'href="https://colab.example/tutorials/01_page.ipynb"',
        'href="https://kaggle.example/?src=a&amp;b=tutorials/01_page.ipynb"',
        'og:title" content="A"',
        'og:description" content="Two layers learn what one does not."',
        'og:image" content="https://site.example/docs/assets/social.png"',
    ):
        assert part in known


# ---------- what pages are made with ----------


def test_a_figure_needs_its_paragraph():
    drawn = '<div><div class="jp-RenderedSVG"><svg></svg></div></div>'
    other = '<div><div class="jp-RenderedMarkdown"><p>Who to see: up.</p></div></div>'
    for after in ("", "<div>1</div>", other):
        box = bs4.BeautifulSoup(drawn + after, "html.parser").div
        with pytest.raises(ValueError, match="01_page.py: a figure without 'What to see:'"):
            render.figure(box, itertools.count(1), "01_page.py")


def test_a_figure_shrinks_until_its_smallest_text_can_just_be_read():
    """And has its own width where that text is too small from the start."""
    for size, least in ((22, 150), (10, 330), (6, 400)):
        text = f'<text style="font: {size}px a">b</text><text style="font-size: 40px">c</text>'
        svg = bs4.BeautifulSoup(f'<svg width="300pt">{text}</svg>', "html.parser").svg
        assert render.widths(svg) == f"max-width: 400px; min-width: {least}px"


def test_a_docstring_is_shown_as_it_is_written():
    for docstring, shown in (
        ("(B, T)\n\ncopy   this\nmatch  that", "(B, T)\n\n    copy   this\n    match  that"),
        ("after </think>, a_b", "after \\</think\\>, a\\_b"),
        ("`</think>` and a_b", "`</think>` and a_b"),
        ("python train.py", "    python train.py"),
        ("    python train.py   one run", "    python train.py   one run"),
    ):
        assert docstrings.as_markdown(docstring) == shown


def test_the_home_page_says_where_to_clone_the_project_from():
    cells = programs.notebook(DOCS / "index.py").cells
    (sentence,) = [cell.source for cell in cells if "unpack" in cell.source]
    soup = bs4.BeautifulSoup(markdown.markdown(sentence), "html.parser")
    hooks.add_clone(soup, "https://code.example/us/minidepth")
    said = " ".join(soup.get_text().split())
    assert "download the project (or git clone https://code.example/us/minidepth) and" in said


def test_the_archive_is_the_project():
    """All that a build may read, and nothing that it makes."""
    with zipfile.ZipFile(io.BytesIO(downloads.archive())) as zipped:
        names = set(zipped.namelist())
        assert zipped.read("minidepth.py") == (ROOT / "minidepth.py").read_bytes()
    for folder in ("docs", "tests", ".github"):
        there = {path.relative_to(ROOT).as_posix() for path in (ROOT / folder).rglob("*.*")}
        missing = [name for name in there - names if (ROOT / name).is_file()]
        assert not [name for name in missing if "__pycache__" not in name]
    assert {"README.md", "LICENSE", "mkdocs.yml", "requirements.txt", "train.py"} <= names
    assert not [name for name in names if name.startswith((".git/", ".cache/", "site/", "runs/"))]


# ---------- the built site ----------


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.links, self.ids, self.levels, self.unnamed = [], set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        a = dict(attrs)
        self.ids.add(a.get("id"))
        self.links += [a[key] for key in ("href", "src") if a.get(key)]
        if re.fullmatch("h[1-6]", tag):
            self.levels.append(int(tag[1]))
        if tag == "img" and not a.get("alt") or a.get("role") == "img" and not a.get("aria-label"):
            self.unnamed.append(attrs)


def soup_of(path):
    return bs4.BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")


@pytest.fixture(scope="session")
def pages(site):
    """{path: Page} of the built site."""
    paths = sorted(site.rglob("*.html"))
    return {path: Page(path.read_text(encoding="utf-8")) for path in paths}


def test_every_link_leads_somewhere(site, pages):
    dead = []
    for path, page in pages.items():
        if path.name == "404.html":  # its links are from the root of wherever it is put
            continue
        for link in page.links:
            url = urllib.parse.urlsplit(link)
            if url.scheme in ("http", "https", "mailto", "data"):
                continue
            target = path if not url.path else path.parent / urllib.parse.unquote(url.path)
            target = pathlib.Path(os.path.normpath(target))
            target = target / "index.html" if target.is_dir() else target
            anchor = urllib.parse.unquote(url.fragment)
            if not target.exists():
                dead.append((str(path.relative_to(site)), link))
            elif anchor and target in pages and anchor not in pages[target].ids | {"__skip"}:
                dead.append((str(path.relative_to(site)), link))
    assert not dead
    assert sum(len(page.links) for page in pages.values()) > 500


def test_the_page_of_a_dead_address_leads_on(site):
    soup = soup_of(site / "404.html")
    addresses = [link["href"] for link in soup.select("article a")]
    assert len(addresses) == 2 and "There is no page at this address" in soup.get_text()
    for address in addresses:  # counted from the root: the dead address may lie in any folder
        assert address.startswith("/") and (site / address[1:] / "index.html").exists()


def test_the_home_page_leads_to_every_page_of_the_nav(site):
    soup = soup_of(site / "index.html")
    links = {link["href"] for link in soup.select("article details h3 + ul a")}
    sections = [entry for entry in SETTINGS["nav"] for name in entry if isinstance(entry, dict)]
    wanted = [page for page in programs.in_nav(sections) if page != "index.md"]
    assert len(wanted) > 30
    assert not {f"{page.removesuffix('.md')}/" for page in wanted} - links


def test_each_page_says_in_a_sentence_what_it_says(site):
    """For a link to it elsewhere, and the map; not the same of all pages."""
    seen = {}
    for page in programs.in_nav(SETTINGS["nav"]):
        path = site / page.removesuffix(".md").removesuffix("index").removesuffix("README")
        text = (path / "index.html").read_text(encoding="utf-8")
        (seen[page],) = re.findall('<meta name="description" content="(.*?)"', text)
    assert len(set(seen.values())) == len(seen)


def test_experiments_and_code_are_not_searched_and_what_functions_do_is(site):
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    places = {entry["location"].partition("#")[0] for entry in index["docs"]}
    assert {place for place in places if place.startswith("results/")} == {"results/"}
    assert {"", "tutorials/2_logs/", "reference/api/"} <= places
    (lr_at,) = (each for each in index["docs"] if each["location"].endswith("#minidepth.lr_at"))
    code = inspect.getsource(md.lr_at).splitlines()[-1].strip()
    assert "half a cosine" in lr_at["text"] and code not in lr_at["text"]
    page = (site / "reference" / "api" / "index.html").read_text(encoding="utf-8")
    assert code in html.unescape(re.sub("<[^>]*>", "", page))


def test_headings_are_in_order_and_pictures_have_a_text(site, pages):
    for path, page in pages.items():
        if "results" not in path.parts and path.name != "404.html":
            assert page.levels.count(1) == 1 and page.levels[0] == 1, path
        assert all(b <= a + 1 for a, b in zip(page.levels, page.levels[1:])), (path, page.levels)
        assert not page.unnamed, path


def test_a_page_is_offered_as_it_is_and_as_a_notebook(site):
    for path in TUTORIALS:
        assert (site / "tutorials" / path.name).read_text() == path.read_text()
        assert json.loads((site / "tutorials" / f"{path.stem}.ipynb").read_text())["cells"]


def test_the_reference_is_complete(site):
    flags = (site / "reference" / "flags" / "index.html").read_text(encoding="utf-8")
    for name in vars(configs.ModelConfig()) | vars(configs.TrainConfig()):
        assert f"<code>--{name}</code>" in flags
    for name in ("thinking", "heads", "llmini-c", "tasks"):  # presets of studies
        assert f"<code>--preset {name}</code>" in flags


def described(path):
    """The names at the top of a module that are public and have a docstring."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        is_described = isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node)
        if is_described and not node.name.startswith("_"):
            yield node.name


def test_the_pages_of_functions_have_all_that_are_described(site, pages):
    reference, ids = site / "reference", set()
    rooms = list((reference / "laboratory").glob("*/index.html"))
    assert len(rooms) == len(programs.rooms()) > 9
    for path in (reference / "api" / "index.html", *rooms):
        ids |= pages[path].ids
        assert '<details class="mkdocstrings-source"' in path.read_text(encoding="utf-8")
    wanted = set()
    for module, path in programs.project_modules().items():
        if module != "train":  # the command, which is run and not imported
            wanted |= {f"{module}.{name}" for name in described(path)}
    assert len(wanted) > 200 and not wanted - ids


# ---------- in a browser ----------

# innerWidth would grow with a page that is too wide; `screenWidth` is what the test has set
CHECK = r"""(screenWidth => {
  const found = [], seen = new Set()
  if (document.documentElement.scrollWidth > screenWidth) {
    const wide = [...document.querySelectorAll('body *')].filter(e => {
      const r = e.getBoundingClientRect()
      return r.right > screenWidth + 1 && r.width
        && !e.closest('pre, figure, .md-typeset__scrollwrap')})
    found.push('overflows: ' + wide.slice(0, 3).map(e => e.outerHTML.slice(0, 120)).join(' ; '))
  }
  const parse = c => { const n = (c.match(/[\d.]+/g) || []).map(Number)
    if (c.startsWith('color(')) for (const i of [0, 1, 2]) n[i] *= 255  // of color-mix(), 0 to 1
    return n.length ? [n[0], n[1], n[2], n.length > 3 ? n[3] : 1] : [0, 0, 0, 0] }
  const over = (a, b) => [0, 1, 2].map(i => a[i] * a[3] + b[i] * (1 - a[3])).concat(1)
  const light = c => { const [r, g, b] = c.slice(0, 3).map(x => (x /= 255) <= 0.04045
    ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b }
  const grounds = new Map([[null, [255, 255, 255, 1]]])  // of elements that have been asked
  const behind = e => { if (!grounds.has(e)) {
    const c = parse(getComputedStyle(e).backgroundColor)
    grounds.set(e, c[3] === 1 ? c : over(c, behind(e.parentElement))) }
    return grounds.get(e) }
  const tooSmall = [...document.querySelectorAll('figure svg[viewBox] text')].filter(e => {
    const svg = e.ownerSVGElement, scale = svg.clientWidth / svg.viewBox.baseVal.width
    return e.textContent.trim() && parseFloat(getComputedStyle(e).fontSize) * scale < 10.9 })
  if (tooSmall.length) found.push('small: ' + tooSmall.map(e => e.textContent).join(', '))
  // a reference has a hundred thousand words of code, most of them folded, where a browser lays out
  // what is asked of: of words of the same kind in the same kind of place the first one seen is
  const kinds = new Map([[null, '']]), asked = new Set()
  const kind = e => { if (!kinds.has(e)) kinds.set(e, kind(e.parentElement)
      + ` ${e.localName} ${e.getAttribute('class')} ${e.getAttribute('style')}`)
    return kinds.get(e) }
  const texts = document.createTreeWalker(document.body, 4)
  while (texts.nextNode()) {
    if (!texts.currentNode.data.trim()) continue
    const e = texts.currentNode.parentElement, code = e.closest('pre') && kind(e)
    if (asked.has(code) || e.closest('script, style, title, .headerlink')) continue
    const s = getComputedStyle(e)
    if (!e.getClientRects().length || s.visibility === 'hidden' || +s.opacity === 0) continue
    if (code) asked.add(code)
    if (/\$\$|^!!!|^\?\?\?|\{\{|@@|`{3}/.test(texts.currentNode.data) && !e.closest('code, pre'))
      found.push('raw markup: ' + texts.currentNode.data.slice(0, 60))
    const svg = e.closest('svg'), ground = behind(svg ? svg.parentElement : e)
    // a heat map's numbers are white or black and stand on their cells, which this does not see
    if (svg && /^rgb\((0, 0, 0|255, 255, 255)\)$/.test(s.fill)) continue
    const ink = over(parse(svg ? s.fill : s.color), ground)
    const [a, b] = [light(ink), light(ground)].sort((x, y) => y - x)
    const ratio = (a + 0.05) / (b + 0.05), px = parseFloat(s.fontSize)
    const large = px >= 24 || (px >= 18.6 && +s.fontWeight >= 700)
    const key = [s.color, s.fill, ground, large].join()
    if (ratio < (large ? 3 : 4.5) && !seen.has(key)) { seen.add(key)
      found.push(`contrast ${ratio.toFixed(2)}: ${e.tagName}.${e.getAttribute('class')} `
        + texts.currentNode.data.trim().slice(0, 40)) }
  }
  return found
})"""


@pytest.fixture(scope="module")
def address(site):
    with browser.serving(site) as address:
        yield address


@pytest.fixture(scope="module")
def reading(site, tmp_path_factory):
    """The address of the site with next to nothing to be searched: each page that is opened reads
    the whole index, which takes as long as all the rest."""
    folder = tmp_path_factory.mktemp("reading")
    for path in site.iterdir():
        if path.name != "search":
            (folder / path.name).symlink_to(path)
    shutil.copytree(site / "search", folder / "search")
    path = folder / "search" / "search_index.json"
    index = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(index | dict(docs=index["docs"][:1])), encoding="utf-8")
    with browser.serving(folder) as address:
        yield address


# true when the page has taken on the scheme, and the colours that change slowly have changed
SETTLED = """(async scheme => {
  for (let i = 0; document.body.dataset.mdColorScheme !== scheme && i < 100; i++)
    await new Promise(resolve => setTimeout(resolve, 20))
  document.getAnimations().forEach(change => change.finish())
  return document.body.dataset.mdColorScheme === scheme
})"""


def test_an_old_address_leads_to_the_page_that_has_its_text(site, tab, address):
    for old, new in hooks.MOVED.items():
        page, _, heading = new.partition("#")
        assert f'id="{heading}"' in (site / page / "index.html").read_text() or not heading
        text = (site / old / "index.html").read_text()
        (to,) = set(re.findall(r'(?:url=|href=")([^"]*)"', text))
        there, _, at = to.partition("#")
        assert (site / old / there).resolve() == (site / page).resolve() and at == heading
    tab.open(f"{address}{old}/")
    for _ in range(100):
        time.sleep(0.1)
        with contextlib.suppress(RuntimeError):  # between two pages
            if tab.run("location.pathname") == f"/{page}/":
                return
    raise AssertionError(f"{old} stays where it is")


@pytest.mark.parametrize("part", range(4))  # which may run side by side
def test_a_browser_finds_nothing_wrong(tab, reading, site, part):
    if not os.environ.get("SITE"):
        pytest.skip("a page is opened with what its code prints: SITE=folder of a built site")
    wrong, pictures = {}, os.environ.get("SCREENSHOTS")
    moved = [site / old / "index.html" for old in hooks.MOVED]  # they lead on at once
    pages = [path for path in sorted(site.rglob("index.html")) if path not in moved]
    for alike in ("results", "reference/laboratory"):  # pages of one form, of which the longest
        some = [path for path in pages if path.is_relative_to(site / alike)]
        shorter = sorted(some, key=lambda path: path.stat().st_size)[:-3]
        assert len(shorter) > 5
        pages = [path for path in pages if path not in shorter]
    assert len(pages) > 40
    for path in pages[part::4]:
        name = str(path.parent.relative_to(site))
        tab.view(375, "light")
        tab.open(reading + ("" if name == "." else f"{name}/"))
        # to open a page takes longer than all that is asked of it, so one is opened once, and seen
        # twice: nothing on it reads the width but by CSS and when it changes; and no colour depends
        # on the width, nor a width on the colours
        for width, scheme, called in ((375, "light", "default"), (1280, "dark", "slate")):
            tab.view(width, scheme)
            assert tab.run(f"{SETTLED}('{called}')"), f"{name} knows no scheme {scheme}"
            if found := [*tab.run(f"{CHECK}({width})"), *tab.complaints()]:
                wrong[f"{name}, {width} pixels, {scheme}"] = found
            if pictures:
                file = f"{name.replace('/', '_').replace('.', 'home')}-{width}-{scheme}.png"
                tab.screenshot(os.path.join(pictures, file))
    assert not wrong, json.dumps(wrong, indent=1, ensure_ascii=False)


FIRST_FOUND = {
    "ring": "tutorials/4_walking/",
    "length generalization": "tutorials/thousand_hops/",
    "own data": "how-to/own_data/",
    "cuda out of memory": "how-to/troubleshooting/",
    "induction head": "tutorials/3_one_look_or_two/",
    "chain of thought": "tutorials/5_writing/",
    "logit lens": "tutorials/depth_map/",
    "hypothesis": "tutorials/1_hypothesis/",
    "architecture": "tutorials/0_model/",
    "logs": "tutorials/2_logs/",
    "caveats": "tutorials/7_equal_time/",
    "hyperparameters": "reference/flags/",
    "--lr": "reference/flags/",
}


def test_a_search_finds_the_right_page_first(tab, address):
    """The page stays open for the next search: to open it and to read the index takes longer."""
    tab.view(1280, "light")
    tab.open(address)
    tab.run("document.querySelector('label[for=__search]').click()")
    found = tab.run(f"""(async () => {{
      const input = document.querySelector('.md-search__input')
      const links = () => [...document.querySelectorAll('.md-search-result__item > a')]
      const type = async (words, enough) => {{
        input.focus()
        input.value = words
        input.dispatchEvent(new Event('keyup'))
        input.dispatchEvent(new Event('input'))
        for (let i = 0; i < 1000 && !enough(); i++)
          await new Promise(resolve => setTimeout(resolve, 10))
      }}
      const first = {{}}
      for (const words of {json.dumps([*FIRST_FOUND])}) {{
        await type('', () => !links().length)
        await type(words, () => links().length)
        first[words] = links()[0]?.pathname.slice(1)
      }}
      return first
    }})()""")
    assert found == FIRST_FOUND
