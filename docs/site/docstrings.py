"""Our docstrings as Markdown, for mkdocstrings: what is laid out in columns stays so, and signs
that mean something to Markdown or HTML are shown as they are.

mkdocs.yml names this file as an extension of griffe, the part of mkdocstrings that reads code.
"""

import re

import griffe

# a paragraph of columns: two words with several spaces between them, or a command
COLUMNS = re.compile(r"\S {2,}\S|^(python|torchrun) ", re.MULTILINE)


def as_markdown(docstring):
    return "\n\n".join(map(paragraph, docstring.split("\n\n")))


def paragraph(text):
    if text.startswith("    "):  # an example: code already
        return text
    if COLUMNS.search(text):
        return "\n".join(f"    {line}" for line in text.split("\n"))  # code, to Markdown
    if "`" in text:  # written as Markdown
        return text
    return re.sub(r"([\\*_<>|\[\]])", r"\\\1", text)


class AsMarkdown(griffe.Extension):
    def on_instance(self, *, obj, **_):
        if obj.docstring:
            obj.docstring.value = as_markdown(obj.docstring.value)
