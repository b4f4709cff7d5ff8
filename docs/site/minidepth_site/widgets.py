"""Boxes in a page that answer to the reader, and the data that they are given.

    widgets.show("look", data)    a box that docs/assets/look.js fills, from data of the page's code

The script stands beside the page, and the data in it: nothing is asked of any other host. A
notebook that was downloaded, in Colab, say, has no scripts beside it: it says where the box is to
be seen. Outside of a notebook nothing is shown.
"""

import html as html_module
import json
import math
import statistics

import torch

from minidepth_lab.keep import checkpoints
from minidepth_lab.measure import judge, results
from minidepth_lab.studies import depth
from minidepth_lab.tasks.ring import LEARNED
from minidepth_site import elsewhere

here = None  # in a downloaded notebook: the address of its page, "" if that is not known
NO_SCRIPT = "This part needs JavaScript. The figure below shows a piece of it."


def html(name, data, without):
    """The box `name` with its data, as JSON. `without` is HTML that stands there without
    JavaScript. The address of the script counts from the root of the site: docs/site/hooks.py
    makes it one from the page."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("</", "<\\/")
    box = f'<div class="widget {name}"><div>{without}</div>'
    box += f'<script type="application/json">{text}</script></div>'
    return f'{box}\n<script type="module" src="/assets/{name}.js"></script>'


def show(name, data, without=NO_SCRIPT):
    """Show the box in a page, and in a notebook that was downloaded where it is to be seen."""
    show_html(html(name, data, without) if here is None else elsewhere(here))


def show_html(text):
    """Show HTML in a page or notebook."""
    if in_notebook():
        from IPython.display import HTML, display

        display(HTML(text))


def in_notebook():
    """Whether this runs in a page or notebook. A script may run where IPython is not installed."""
    try:
        from IPython import get_ipython
    except ImportError:
        return False
    return get_ipython() is not None


# ---------- tables ----------


def table(head, rows):
    """Show a table: in a page or notebook as one, from a script as aligned text.

    head: a text for each column; rows: as many texts or numbers each. A number is shown as str()
    shows it: format what needs it. Columns whose cells all begin with a digit, or are a dash, stand
    to the right; but not the first one where it has names, such as `12 layers`."""
    rows = [[str(cell) for cell in row] for row in rows]
    to_the_right = [all(map(is_number, column)) for column in zip(*rows)]
    if any(letter.isalpha() for first, *_ in rows for letter in first):
        to_the_right[0] = False
    if in_notebook():
        show_html(as_html(head, rows, to_the_right))
        return
    widths = [max(map(len, column)) for column in zip(head, *rows)]
    for row in [head, *rows]:
        cells = zip(row, widths, to_the_right)
        line = [cell.rjust(width) if right else cell.ljust(width) for cell, width, right in cells]
        print("  ".join(line).rstrip())


def is_number(cell):
    return cell == "–" or cell.lstrip("+−-.")[:1].isdigit()


def as_html(head, rows, to_the_right):
    """The rows of a table as HTML."""

    def line(cells, tag):
        styles = (' style="text-align: right"' if right else "" for right in to_the_right)
        texts = (html_module.escape(cell) for cell in cells)
        return "".join(f"<{tag}{style}>{text}</{tag}>" for style, text in zip(styles, texts))

    body = "".join(f"<tr>{line(row, 'td')}</tr>" for row in rows)
    return f"<table><thead><tr>{line(head, 'th')}</tr></thead><tbody>{body}</tbody></table>"


def wrong(*predictions):
    """Show which predictions were wrong, and what was measured instead. Of a whole experiment
    ("walk") these are picked; each that is named ("walk/W11") has to be one."""
    rows = []
    for name in predictions:
        experiment, _, which = name.partition("/")
        for each in judge.judged(experiment):
            if each["id"] == name or not which and each["verdict"] == judge.WRONG:
                if each["verdict"] != judge.WRONG:
                    raise ValueError(f"the prediction {name} was not wrong")
                rows.append([each["id"], " ".join(each["sentence"].split()), each["measured"]])
    table(["prediction", "we had said", "measured"], rows)


# ---------- draw one seed ----------


def gap_interval(b, a):
    """What runs b have over runs a, of the same seeds: (mean, the ends of its 95 % interval,
    "paired" or ""). If they rise and fall together by seed (a correlation of 0.5 or more), it is
    taken from their differences (Student's t), otherwise from the two groups (Welch's)."""
    from scipy.stats import ttest_ind, ttest_rel

    correlation, _ = judge.paired(b, a)
    together = correlation is not None and correlation >= judge.PAIRED
    test = ttest_rel(b, a) if together else ttest_ind(b, a, equal_var=False)
    low, high = map(float, test.confidence_interval())
    return statistics.mean(b) - statistics.mean(a), low, high, "paired" if together else ""


def seeds(first=("8 layers", "12 layers")):
    """For the box `seeds`: the accuracy of every model of the study `depth` by seed, every
    difference as gap_interval() gives it, and the two models to begin with."""
    swept = depth.swept()
    models = {f"{n} layers": runs for n, runs in swept.items() if n > 1}
    models = {"1 layer": swept[1]} | models | depth.stored()
    del models["1 wide layer, tuned"]
    by_model = {
        name: {run["seed"]: run["accuracy"] for run in runs} for name, runs in models.items()
    }
    drawn = sorted(by_model["1 layer"])
    accuracy = {name: [by_seed[seed] for seed in drawn] for name, by_seed in by_model.items()}
    differences = {}
    for a, of_a in accuracy.items():
        for b, of_b in accuracy.items():
            if a != b:
                differences[f"{a} | {b}"] = gap_interval(of_b, of_a)
    return dict(accuracy=accuracy, differences=differences, seeds=drawn, first=first)


# ---------- the walk around a ring ----------

LETTERS = "abcdefghijklmnop"  # the model knows them as 0 to 15, and "k hops" as 16 + k
RING = 8  # letters in a ring
WALKERS = "ring-staircase"  # one layer, applied five times; ten seeds
HOPS = (1, 2, 3, 4)


def walkers():
    """The stored models, by seed: their runs' ids, their folders for minidepth.load(), and how many
    hops they learned."""
    models = {}
    for run in results.runs(WALKERS, d_model=64, n_loops=5):
        by_hops = run["accuracy_by"]["lengths"]
        learned = [k for k in HOPS if by_hops[str(k)]["accuracy"] >= LEARNED]
        folder = results.weights(WALKERS, run["id"])
        models[run["seed"]] = dict(id=run["id"], folder=folder, hops=max(learned, default=0))
    return models


def address_of(experiment, run_id):
    """Where the weights of a stored run are on this site."""
    path = results.weights_file(experiment, run_id)
    return f"results/{path.relative_to(results.RESULTS).as_posix()}"


def walk(seed=110, letters="gbkcmaph", order=(2, 5, 0, 7, 3, 6, 1, 4), hops=4, loops=5, own=False):
    """For the box `walk`: (its data, a picture for a page without JavaScript).

    The data are the settings that the stored models share, each model's weights, and the question
    to begin with: `hops` from the first of `letters`, which form a ring and are told as pairs in
    this `order`. The picture shows where the model of `seed` was after each of so many loops. With
    `own` the box takes a visitor's run, too."""
    models = walkers()
    model, _ = checkpoints.load(models[seed]["folder"])
    listed = []
    for each, about in models.items():
        address = address_of(WALKERS, about["id"])
        listed.append(dict(seed=each, weights=address, hops=about["hops"]))
    settings = {name: getattr(model.config, name) for name in model.config.__dataclass_fields__}
    ring = [LETTERS.index(letter) for letter in letters]
    question = dict(ring=ring, order=order, start=0, hops=hops, seed=seed)
    shares = after_each_loop(model, question_tokens(ring, order, 0, hops))[: loops + 1]
    picture = drawing(ring, shares.tolist(), 0, hops, model.config.n_loops)
    return dict(config=settings, models=listed, question=question, own=own), picture


def question_tokens(ring, order, start, hops):
    """Which letter is `hops` after the `start` of a ring (8 letters)? → (18,) tokens: pairs of
    neighbours in a mixed order, the number of hops, the letter."""
    pairs = [(ring[i], ring[(i + 1) % len(ring)]) for i in order]
    return torch.tensor([*sum(pairs, ()), len(LETTERS) + hops, ring[start]])


@torch.no_grad()
def after_each_loop(model, tokens):
    """What the model would answer, had it only so many loops: its last norm and its head on the
    last token of (T,), before the first loop and after each → (n_loops + 1, V) shares."""
    x = model.token_embedding(tokens[None]) + model.position_embedding.weight[: len(tokens)]
    states = [x]
    for _ in range(model.config.n_loops):
        for layer in model.blocks:
            x = layer(x)
        states.append(x)
    last = torch.stack([state[0, -1] for state in states])
    return (model.norm(last) @ model.head_weight.T).softmax(-1)


def drawing(ring, shares, start, hops, n_loops):
    """The picture that docs/assets/walk.js draws, as SVG: the letters of a ring, each as strongly
    filled as the model would give it as its answer now, and the loops after which it was there.
    `shares` are those of all tokens, before the first loop and after each so far."""
    loops, size = len(shares) - 1, len(ring)
    goal = (start + hops) % size

    def at(i, radius):
        angle = 2 * math.pi * i / size - math.pi / 2
        return f"{150 + radius * math.cos(angle):.1f}", f"{150 + radius * math.sin(angle):.1f}"

    best = [max(range(len(LETTERS)), key=each.__getitem__) for each in shares]
    came = [(n, ring.index(best[n])) for n in range(2, loops + 1) if best[n] in ring]
    circles, arrows = [], []  # an arrow between two letters says which of them follows
    for i, letter in enumerate(ring):
        turned = f"rotate({360 * (i + 0.5) / size} 150 150) translate(150 40)"
        arrows.append(f'<path class="arrow" d="M-3 -4L3 0L-3 4" transform="{turned}"/>')
        x, y = at(i, 110)
        role = "goal" if i == goal else "start" if i == start else ""
        fill = shares[-1][letter] / 2 if loops else 0
        circles.append(
            f'<circle class="letter {role}" cx="{x}" cy="{y}" r="24"/>'
            f'<circle class="share" cx="{x}" cy="{y}" r="20" fill-opacity="{fill:.3f}"/>'
            f'<text x="{x}" y="{y}">{LETTERS[letter]}</text>'
        )
        x, y = at(i, 70)
        if numbers := [str(n) for n, place in came if place == i]:
            circles.append(f'<text class="small" x="{x}" y="{y}">{"·".join(numbers)}</text>')
    trail = " ".join(",".join(at(i, 110)) for i in (start, *(place for _, place in came)))
    asked, answer = LETTERS[ring[start]], LETTERS[best[-1]]
    text = f"Which letter is {hops} hops after {asked}? After {loops} of {n_loops} loops the model "
    text += f"is at {answer}."
    return (
        '<svg viewBox="0 0 300 300" role="img" aria-label="a ring of letters; see the text">'
        '<circle class="track" cx="150" cy="150" r="110"/>'
        f'{"".join(arrows)}<polyline class="trail" points="{trail}"/>{"".join(circles)}'
        f'<text x="150" y="140">loop {loops}</text>'
        f'<text class="small" x="150" y="166">of {n_loops}</text></svg>'
        f"<p>{text} With JavaScript you can ask it other questions here.</p>"
    )


# ---------- walk on ----------

WALKS = "walk"  # one layer, trained to eight hops on a ring of sixteen letters


def further():
    """For the box `further`: the stored models that are looped on and on, those that begin each
    loop with their state normalised and the input added ("recall") and those that lack the input
    ("normalised") or both ("state"), and which two to begin with."""
    listed = []
    for run in results.runs(
        WALKS, ring=16, hops=8, loss_after="each", n_layers=1, d_model=64, loop_keeps=0
    ):
        stored = results.weights_file(WALKS, run["id"]).exists()
        if run["loop_start"] == "input" or not stored:
            continue
        config, _ = checkpoints.read_config(results.weights(WALKS, run["id"]))
        settings = {name: getattr(config, name) for name in config.__dataclass_fields__}
        share = run["accuracy_by"]["hops"]["31"]["accuracy"]
        name = f"seed {run['seed']}: {100 * share:.0f} % at 31 hops"
        about = dict(name=name, start=run["loop_start"], weights=address_of(WALKS, run["id"]))
        listed.append(about | dict(config=settings))
    first = {about["start"]: i for i, about in reversed(list(enumerate(listed)))}
    return dict(ring=16, hops=8, models=listed, first=[first["recall"], first["normalised"]])
