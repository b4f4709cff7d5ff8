"""A notebook in nbconvert's HTML → HTML as the other pages have it.

- Consecutive cells with the same tag of FOLDS are folded: `hint` and `answer`, of the exercises,
  and others.
- Code that draws a figure, or checks what the page says, is folded as well, below what it shows.
- A figure and the paragraph after it, which begins "What to see:", are joined: the paragraph
  becomes the caption, and the text that a screen reader reads.
- What a cell tagged `python` prints is shown as Python.
"""

import html
import itertools
import re

import bs4
import pygments
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

import pages

FOLDS = dict(  # tag: the look of the fold (of an admonition) and its name
    hint=("tip", "Hint"),
    answer=("success", "Answer"),
    details=("note", "The details"),
    wrong=("note", "What we had predicted, and was wrong"),
)
CHECKS = "How your answer is checked"
CAPTION = "What to see:"  # a figure's caption begins so in the notebook
MATPLOTLIBRC = (pages.SITE / "matplotlibrc").read_text(encoding="utf-8")
INK = "#010203"  # in matplotlibrc, the colour of text: on a page, that of the page's text
# the colours of lines have a contrast of 3:1 on light and on dark; text in them needs more
LINE_COLOURS = re.findall('"([0-9a-f]{6})"', MATPLOTLIBRC)
COLOURED_TEXT = re.compile(f"fill: #({'|'.join(LINE_COLOURS)})")
READABLE = 11  # the height in pixels of text that can be read on a phone
PIXELS_PER_POINT = 4 / 3


def page_parts(soup, notebook, name):
    """The HTML of a rendered notebook → [HTML of each of its cells, or folds].

    soup: nbconvert's HTML; notebook: its cells, as nbconvert's HTML does not tell the tags of
    Markdown cells; name: the page's, for messages. ValueError: a figure without a caption.
    """
    let_code_scroll(soup)
    figure_numbers = itertools.count(1)
    cells = zip(soup.find_all(recursive=False), notebook.cells)
    parts = []
    # groupby is lazy: a figure takes its caption out of the next cell before that is rendered
    for fold, group in itertools.groupby(cells, lambda cell: fold_of(cell[1])):
        rendered = []
        for box, source in group:
            if source.cell_type == "markdown":
                rendered.append(markdown_cell(box))
            else:
                role = None if fold else role_of(source)
                rendered.append(code_cell(box, role, figure_numbers, name))
        parts += rendered if fold is None else [folded(*FOLDS[fold], "\n".join(rendered))]
    return parts


def fold_of(cell):
    """The tag by which a cell is folded, or None."""
    tags = cell.metadata.get("tags", ())
    return next((tag for tag in tags if tag in FOLDS), None)


def folded(look, name, content):
    return f'<details class="{look}"><summary>{name}</summary>{content}</details>'


def role_of(cell):
    """What to call code that only serves the page, because it draws, or checks what the page says;
    None for code that is to be read."""
    if cell.cell_type != "code":
        return None
    if pages.has_tag(cell, "check"):
        return CHECKS
    if re.search(r"^plt\.show\(\)", cell.source, re.MULTILINE):
        return "How this figure is drawn"
    statements = re.findall(r"^\S.*", cell.source, re.MULTILINE)
    checks = [line for line in statements if line.startswith("assert")]
    if statements and len(checks) >= len(statements) / 2:
        return "What this page checks"
    return None


# ---------- cells ----------


def markdown_cell(box):
    return "\n".join(text.decode_contents() for text in box.select(".jp-RenderedMarkdown"))


def code_cell(box, role, figure_numbers, name):
    """A cell of code: the code, what it printed, its widgets, its figure. Code with a role is
    folded and stands at the end."""
    # not `.jp-InputArea pre`, which would find the fenced code in Markdown cells as well
    inputs = [pre.decode_contents() for pre in box.select(".jp-InputArea-editor pre")]
    code = "".join(
        f'<div class="highlight"><pre><code>{text}</code></pre></div>' for text in inputs
    )
    shown = printed(box) + widgets(box) + figure(box, figure_numbers, name)
    if role == CHECKS:  # "Right.", of the answer: on a page it would stand below the stub
        shown = ""
    if role and code:
        return shown + folded("code", role, code)
    return code + shown


def printed(box):
    """What a cell printed, in one block: it comes in pieces."""
    pieces = box.select('.jp-OutputArea-output[data-mime-type="text/plain"] pre')
    text = "".join(piece.decode_contents() for piece in pieces).strip("\n")
    if "celltag_python" in box["class"]:
        source = html.unescape(text)
        text = pygments.highlight(source, PythonLexer(), HtmlFormatter(nowrap=True))
    return f'<div class="output highlight"><pre><code>{text}</code></pre></div>' if text else ""


def widgets(box):
    """The boxes that minidepth_site.widgets shows."""
    boxes = box.select('.jp-OutputArea-output[data-mime-type="text/html"]')
    return "".join(box.decode_contents() for box in boxes)


def let_code_scroll(soup):
    """Fenced code in Markdown cells gets the <code> by which the theme lets wide lines scroll."""
    for pre in soup.select(".jp-RenderedMarkdown .highlight > pre"):
        code = bs4.BeautifulSoup("<code></code>", "html.parser").code
        code.extend(list(pre.contents))
        pre.append(code)


# ---------- figures ----------


def figure(box, numbers, name):
    """The figure that a cell drew, with the paragraph after the cell as its caption."""
    drawings = box.select(".jp-RenderedSVG svg")
    if not drawings:
        return ""
    after = box.find_next_sibling()
    caption = after and after.select_one(".jp-RenderedMarkdown > :first-child")
    if not caption or not caption.get_text().startswith(CAPTION):
        raise ValueError(f"{name}: a figure without '{CAPTION}' after it")
    caption.extract().name = "figcaption"
    without_its_beginning(caption)
    number = f"<strong>Figure {next(numbers)}.</strong> "
    caption.insert(0, bs4.BeautifulSoup(number, "html.parser"))
    text = " ".join(caption.get_text().split())
    return f"<figure>{''.join(for_page(svg, text) for svg in drawings)}{caption}</figure>"


def without_its_beginning(caption):
    """What follows "What to see:" begins the caption, with a capital letter."""
    first = caption.find(string=True)
    text = str(first).removeprefix(CAPTION).lstrip()
    first.replace_with(text[:1].upper() + text[1:])


def for_page(svg, text):
    """Matplotlib's SVG as part of a page: named by a text, the ink in the colour of the page's,
    as wide as its column allows."""
    for group in svg.select("g[id]"):  # the same in each figure, but unique it must be in a page
        del group["id"]
    for metadata in svg.select("metadata"):
        metadata.decompose()
    for words in svg.select("text[style]"):  # nearer to the page's text, darker or lighter
        mixed = r"fill: color-mix(in srgb, #\1 65%, currentColor)"
        words["style"] = COLOURED_TEXT.sub(mixed, words["style"])
    svg.attrs |= {"role": "img", "aria-label": text, "style": widths(svg)}
    del svg["width"], svg["height"]
    return str(svg).replace(INK, "currentColor")


def widths(svg):
    """CSS for the width of a figure. On a phone it shrinks until its smallest text is READABLE, and
    scrolls from there."""
    points = float(svg["width"].removesuffix("pt"))
    sizes = [float(size) for size in re.findall(r"font(?:-size)?: ?([\d.]+)px", str(svg))]
    most = points * PIXELS_PER_POINT
    least = min(most, points * READABLE / min(sizes, default=READABLE))
    return f"max-width: {most:.0f}px; min-width: {least:.0f}px"
