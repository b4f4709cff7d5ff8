"""For the pages that mkdocs-jupyter runs; docs/hooks.py says where this file is."""

c = get_config()  # noqa: F821  Jupyter defines it
c.HTMLExporter.skip_svg_encoding = True  # figures as <svg>, not as <img>: only so their colours
c.NotebookClient.coalesce_streams = True  # what a cell prints in pieces is one output
c.NotebookClient.extra_arguments = [
    "--InlineBackend.figure_formats=svg",
    "--InteractiveShell.ast_node_interactivity=none",  # a page shows what a script would print
]
c.KernelManager.transport_encryption = "auto"  # else ipykernel warns on each page
