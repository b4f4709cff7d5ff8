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
    return f'{box}\n<script type="module" src="../../assets/{name}.js"></script>'


def show(name, data, without="This part needs JavaScript. The figure below shows a piece of it."):
    """Show the box in a page or notebook."""
    try:
        from IPython import get_ipython
        from IPython.display import HTML, display
    except ImportError:  # a script may run where there is no notebook
        return
    if get_ipython():
        display(HTML(html(name, data, without)))


def seeds(first=("8 layers", "12 layers")):
    """For the box `seeds`: the accuracy of every model of the studies `depth` and `depth-sweep` by
    seed, every paired difference with half of its 95 % interval, and the two models to begin with.
    """
    from minidepth_lab import depth, results

    models = {f"{n} layers": runs for n, runs in depth.swept().items() if n > 1}
    models = {"1 layer": depth.swept()[1]} | models | depth.stored()
    del models["1 wide layer, tuned"]
    found = {name: {run["seed"]: run["accuracy"] for run in runs} for name, runs in models.items()}
    drawn = sorted(found["1 layer"])
    accuracy = {name: [by_seed[seed] for seed in drawn] for name, by_seed in found.items()}
    differences = {}
    for a, theirs in accuracy.items():
        for b, ours in accuracy.items():
            gaps = [our - their for our, their in zip(ours, theirs)]
            mean, half = results.interval(gaps)
            # a model has no interval against itself, and JSON no NaN
            differences[f"{a} | {b}"] = mean, half if half > 0 else 0
    return dict(accuracy=accuracy, differences=differences, seeds=drawn, first=first)
