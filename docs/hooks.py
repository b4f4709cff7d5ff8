"""The site's hook for mkdocs: pages that are programs.

A page in docs/ may be a .py file in percent format: Markdown and code in cells. If the nav has it
(as .md), then when the site is built its code runs, in a process of its own, and the page is what
it says, what it prints and what it draws. A cell that fails ends the build. What a page gave is
kept in .cache/site until the page, minidepth.py, train.py or a file in docs/results changes.

Words in a cell's first line, after `# %%`, say how it appears:
    hide      its code is folded away
    markdown  what it prints is part of the page
    python    what it prints is Python
A figure needs a paragraph after its cell that begins "What to see:"; it becomes the caption, and
the text that a screen reader reads.

`DOCS_EXECUTE=false mkdocs serve` leaves the code of tutorials unrun.
"""

import contextlib
import hashlib
import html
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
CACHE = ROOT / ".cache" / "site"
SEE = "What to see:"
INK = "#010203"  # of matplotlibrc: the colour of the page's text


# ---------- cells ----------


def split(text):
    """A percent file → [(words of the cell's first line, source, number of its first line)]; the
    source of a Markdown cell without its comment signs."""
    cells, lines = [], text.splitlines()
    starts = [i for i, line in enumerate(lines) if line.startswith("# %%")]
    for start, end in zip(starts, starts[1:] + [len(lines)]):
        words, source = lines[start][4:].split(), lines[start + 1 : end]
        if "[markdown]" in words:
            source = [line[2:] if line.startswith("# ") else line.lstrip("#") for line in source]
        cells.append((words, "\n".join(source).strip("\n"), start + 1))
    return cells


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


def notebook(text):
    """A percent file → a Jupyter notebook, as JSON."""
    cells = []
    for number, (words, source, _) in enumerate(split(text)):
        kind = "markdown" if "[markdown]" in words else "code"
        cells.append(dict(cell_type=kind, source=source))
        if number == 0:
            cells.append(dict(cell_type="code", source=SETUP))
    for number, cell in enumerate(cells):
        cell |= dict(id=f"cell-{number}", metadata={})
        cell |= dict(execution_count=None, outputs=[]) if cell["cell_type"] == "code" else {}
    about = dict(kernelspec=dict(name="python3", display_name="Python 3", language="python"))
    return json.dumps(dict(cells=cells, metadata=about, nbformat=4, nbformat_minor=5), indent=1)


# ---------- running a page ----------


def as_svg(figure):
    """A Matplotlib figure as SVG for a page: text as text, the ink in the page's colour."""
    file = io.StringIO()
    figure.savefig(file, format="svg", metadata=dict(Date=None))
    svg = file.getvalue()
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    svg = re.sub(r'<g id="[^"]*"', "<g", svg).replace(INK, "currentColor")
    width = re.search(r'width="([\d.]+)pt"', svg)[1]
    size = f'style="max-width: {float(width) * 4 / 3:.0f}px"'
    svg = re.sub(r'height="[\d.]+pt"', size, svg, count=1)
    return re.sub(r' width="[\d.]+pt"', "", svg, count=1)


def run(path):
    """Run a percent file's code → [(what it printed, [SVG of a figure])], one a cell."""
    import matplotlib.pyplot as plt

    figures, made, names = [], [], {"__name__": "__main__"}

    def show(*_, **__):
        figures.extend(as_svg(plt.figure(number)) for number in plt.get_fignums())
        plt.close("all")

    plt.show = show
    for number, (words, source, line) in enumerate(split(path.read_text(encoding="utf-8"))):
        out = io.StringIO()
        if "[markdown]" not in words:
            plt.rcParams["svg.hashsalt"] = f"{path.stem}-{number}"  # ids of two figures differ
            with contextlib.redirect_stdout(out):
                exec(compile("\n" * line + source, str(path), "exec"), names)
                show()
        made.append((out.getvalue(), figures[:]))
        figures.clear()
    return made


def salt():
    """A hash of everything that pages read besides themselves."""
    digest = hashlib.sha256()
    files = [ROOT / "minidepth.py", ROOT / "train.py", ROOT / "docs" / "matplotlibrc"]
    files += [pathlib.Path(__file__), *(ROOT / "docs" / "results").rglob("*")]
    for path in sorted(path for path in files if path.is_file()):
        digest.update(str(path.relative_to(ROOT)).encode() + path.read_bytes())
    return digest.digest()


def outputs(path, log=print):
    """run() in a process of its own, or what it gave before; and {seconds, torch, device}."""
    key = hashlib.sha256(salt() + path.read_bytes()).hexdigest()[:16]
    kept = CACHE / f"{path.stem}-{key}.json"
    if not kept.exists():
        began = time.perf_counter()
        environment = os.environ | dict(
            MATPLOTLIBRC=str(ROOT / "docs" / "matplotlibrc"), MPLBACKEND="Agg",
            TOKENIZERS_PARALLELISM="false", PYTHONPATH=str(ROOT),
        )  # fmt: skip
        with tempfile.TemporaryDirectory() as folder:
            result = os.path.join(folder, "result.json")
            command = [sys.executable, __file__, str(path), result]
            done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True)
            if done.returncode:
                raise failure(path, done.stderr.decode(errors="replace"))
            made = json.loads(pathlib.Path(result).read_text(encoding="utf-8"))
        made["seconds"] = time.perf_counter() - began
        CACHE.mkdir(parents=True, exist_ok=True)
        for old in CACHE.glob(f"{path.stem}-*.json"):
            old.unlink()
        kept.write_text(json.dumps(made), encoding="utf-8")
        log(f"ran {path.name} in {made['seconds']:.0f} s")
    return json.loads(kept.read_text(encoding="utf-8"))


def failure(path, text):
    """The exception that ends a build."""
    from mkdocs.exceptions import PluginError

    lines = [line for line in text.strip().splitlines() if "site-packages" not in line]
    return PluginError("\n".join([f"{path.name} failed:", *lines[-25:]]))


# ---------- a page ----------


def fenced(source, words):
    """A fence longer than any in the source."""
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", source)), default=0))
    return f"{fence} {{ {words} }}\n{source.rstrip()}\n{fence}"


def indented(text):
    return "\n".join("    " + line if line else "" for line in text.splitlines())


def as_markdown(path, made=None):
    """(a percent file as a page of Markdown, its figures as SVG)"""
    cells, parts, figures = split(path.read_text(encoding="utf-8")), [], []
    waiting, folded = (
        [],
        [],
    )  # figures of the cell before, for the caption of this one, and its code if folded
    for number, (words, source, line) in enumerate(cells):
        if "[markdown]" in words:
            if source.startswith(SEE):
                caption, _, source = source.partition("\n\n")
                for svg in waiting:
                    text = re.sub(r"[*`\\]|\]\([^)]*\)|\[", "", " ".join(caption.split()))
                    label = f'role="img" aria-label="{html.escape(text)}"'
                    figures.append(svg.replace("<svg", f"<svg {label}", 1))
                    parts.append(f"@@figure {len(figures) - 1}@@")
                caption = f'<figcaption markdown="span">{caption}</figcaption>'
                parts += [caption, *folded] if made else folded
            elif waiting:
                raise failure(path, f"line {line}: the figure before has no '{SEE}'")
            waiting = []
            parts.append(source)
            if number == 0 and "tutorials" in path.parts:
                get = f"[notebook]({path.stem}.ipynb){{ download }}"
                get += f" or [script]({path.name}){{ download }}"
                parts.append(f"Download this page: {get}.")
            continue
        if waiting:
            raise failure(path, f"line {line}: the figure before has no '{SEE}'")
        code = fenced(source, ".python")
        printed, waiting = made["cells"][number] if made else ("", [])
        show = [printed.strip("\n")] if printed.strip() else []
        if show and "markdown" not in words:
            show = [fenced(show[0], ".python .output" if "python" in words else ".text .output")]
        if "hide" in words:
            what = "drew" if waiting else "printed"
            folded = [f'??? note "The code that {what} this"\n\n{indented(code)}']
            parts += show + ([] if waiting else folded)
        else:
            folded = []
            parts += [code, *show]
    if waiting:
        raise failure(path, f"the last figure has no '{SEE}'")
    if made and "tutorials" in path.parts:
        about = f"PyTorch {made['torch']}, {made['device']}"
        parts.append(f"*This page ran in {made['seconds']:.0f} s when it was built: {about}.*")
    first = "---\nsearch:\n  boost: 4\n---\n\n" if "tutorials" in path.parts else ""
    return first + "\n\n".join(parts) + "\n", figures


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


# ---------- what mkdocs calls ----------

DRAWN = {}  # page → its figures


def in_nav(nav):
    """All pages of mkdocs.yml's nav."""
    if isinstance(nav, str):
        return {nav}
    parts = nav.values() if isinstance(nav, dict) else nav
    return set().union(*map(in_nav, parts))


def on_files(files, config):
    import logging

    from mkdocs.structure.files import File

    log = logging.getLogger("mkdocs.hooks.minidepth").info
    execute, pages = os.environ.get("DOCS_EXECUTE", "true") != "false", in_nav(config["nav"])
    for file in [f for f in files if f.src_uri.endswith(".py") and not f.inclusion.is_excluded()]:
        path, name = pathlib.Path(file.abs_src_path), file.src_uri[: -len(".py")]
        is_page, for_download = f"{name}.md" in pages, "/how-to/" in path.as_posix()
        if for_download or (is_page and "tutorials" in path.parts):
            text = path.read_text(encoding="utf-8")
            files.append(File.generated(config, f"{name}.ipynb", content=notebook(text)))
        else:
            files.remove(file)
        if is_page:
            quick = "tutorials" not in path.parts
            page, figures = as_markdown(path, outputs(path, log) if execute or quick else None)
            files.append(File.generated(config, f"{name}.md", content=page))
            DRAWN[f"{name}.md"] = figures
    files.append(File.generated(config, "minidepth.zip", content=archive()))
    return files


def on_page_content(content, page, config, files):
    """Put figures in their places, and drawings, <img src="….svg">, into the page itself: only
    there do they follow its colours."""
    for number, svg in enumerate(DRAWN.get(page.file.src_uri, [])):
        content = content.replace(f"<p>@@figure {number}@@</p>", f"<figure>{svg}</figure>")
    content = re.sub(r"</figure>\s*(<figcaption>.*?</figcaption>)", r"\1</figure>", content)

    def drawing(match):
        alt = re.search(r'alt="([^"]*)"', match[0])[1]
        svg = (ROOT / "docs" / "assets" / match[1]).read_text(encoding="utf-8")
        return svg.replace("<svg", f'<svg role="img" aria-label="{alt}"', 1)

    return re.sub(r'<img [^>]*src="[^"]*assets/([\w-]+\.svg)"[^>]*>', drawing, content)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    cells = run(pathlib.Path(sys.argv[1]))
    import platform

    import torch

    about = dict(torch=torch.__version__.split("+")[0])
    n = torch.get_num_threads()
    about["device"] = f"{platform.machine()} CPU, {n} thread{'s' * (n > 1)}"
    pathlib.Path(sys.argv[2]).write_text(json.dumps(dict(cells=cells, **about)), encoding="utf-8")
