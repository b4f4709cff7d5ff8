"""The parts of a page that answer to the reader, and what they are fed.

    parts.show("look", data)     a box that docs/assets/look.js fills, from data of the page's code

The script stands beside the page, and the data in it: no request goes anywhere else. Outside of a
notebook nothing is shown.
"""

import json


def html(name, data, without):
    """The box `name` with its data, as JSON; `without` is what stands there without JavaScript."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("</", "<\\/")
    box = f'<div class="part {name}"><p>{without}</p>'
    box += f'<script type="application/json">{text}</script></div>'
    return f'{box}\n<script src="../../assets/{name}.js" defer></script>'


def show(name, data, without="This part needs JavaScript. The figure below shows a piece of it."):
    """Show the box in a page or notebook."""
    try:
        from IPython import get_ipython
        from IPython.display import HTML, display
    except ImportError:  # a script may run where there is no notebook
        return
    if get_ipython():
        display(HTML(html(name, data, without)))
