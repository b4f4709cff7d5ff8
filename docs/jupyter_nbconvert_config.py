"""Settings of nbconvert, with which mkdocs-jupyter runs and renders pages. docs/hooks.py tells it
where they are."""

c = get_config()  # noqa: F821  Jupyter defines it
# figures as <svg>, not as <img>: only so can their ink follow light and dark
c.HTMLExporter.skip_svg_encoding = True
c.NotebookClient.extra_arguments = [
    "--InlineBackend.figure_formats=svg",
    "--InteractiveShell.ast_node_interactivity=none",  # a page shows what a script would print
]
c.KernelManager.transport_encryption = "auto"  # else ipykernel warns on each page
