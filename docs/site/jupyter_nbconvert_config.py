"""Settings of nbconvert, with which mkdocs-jupyter renders pages. docs/site/hooks.py tells it where
they are."""

c = get_config()  # noqa: F821  Jupyter defines it
# figures as <svg>, not as <img>: only so can their ink follow light and dark
c.HTMLExporter.skip_svg_encoding = True
