"""A run or a grid as one page that opens offline: --report RUN writes RUN/report.html.

Of a run: settings, curves, accuracy by family, with 95 % intervals if its problems are still here,
some held-out problems with what the model answers, and where it looks in one. Of a grid: its tables
with intervals, paired differences, figures. The page holds its figures and asks for nothing.
"""

import base64
import html
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import torch

import minidepth as md
from minidepth_lab.base import configs, console
from minidepth_lab.base.data import Data
from minidepth_lab.keep import checkpoints, registry
from minidepth_lab.measure import inspect, results, sampling
from minidepth_lab.models import variants
from minidepth_lab.rows import sources, to_data
from minidepth_lab.show import curve, figures, runs

EXAMPLES = 4  # of right answers, and of wrong ones
LOOKED_AT = 60  # tokens of the example whose attention is drawn, at most
PANELS = (12, 8)  # layers and heads that are drawn of it, at most

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>
:root {{ color-scheme: light dark; }}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em; }}
img {{ max-width: 100%; background: #fff; }}
table {{ border-collapse: collapse; display: block; overflow-x: auto; }}
th, td {{ padding: .2em .8em .2em 0; text-align: left; vertical-align: top; }}
th {{ border-bottom: 1px solid; }}
td.number {{ text-align: right; font-variant-numeric: tabular-nums; }}
pre {{ white-space: pre-wrap; overflow-wrap: anywhere; margin: 0; font-size: .85em; }}
.note {{ opacity: .75; font-size: .9em; }}
</style></head>
<body><h1>{title}</h1>
{body}
</body></html>
"""
RUN = """<p>{status}: step {step:,} of {steps:,}, {n:,} parameters, validation loss {loss:.4f} nats
per token{accuracy}.</p>
<p class="note"><code>{command}</code></p>
<p class="note">{made_by}</p>
<h2>Curves</h2>
{curves}
{measured}
<h2>Settings</h2>
{settings}"""
ATTENTION = """<h2>Attention</h2>
<p class="note">Rows look, columns are looked at: {tokens}</p>
{maps}"""
GRID = """<p>{runs}. Mean ± half of the 95 % interval (Student's t) over n seeds.</p>
{tables}
<p class="note"><code>{command}</code>, {date}, {device}</p>
{more}"""


# ---------- parts of a page ----------


def safe(text: object) -> str:
    """A text of anybody's as HTML."""
    return html.escape(console.visible(str(text)))


def table(heads: Iterable[str], rows: Iterable[Iterable]) -> str:
    """Rows of texts as an HTML table; what reads as a number stands at the right."""
    lines = ["<table><thead><tr>", *(f"<th>{safe(head)}</th>" for head in heads)]
    lines.append("</tr></thead><tbody>")
    for row in rows:
        cells = []
        for value in row:
            number = str(value).replace(",", "").replace(".", "").lstrip("-").isdigit()
            kind = ' class="number"' if number else ""
            cells.append(f"<td{kind}>{safe(value)}</td>")
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return "".join([*lines, "</tbody></table>"])


def picture(path: console.Path, alt: str) -> str:
    """A PNG as an <img> that holds it."""
    with open(console.regular_file(path), "rb") as f:
        data = base64.b64encode(f.read()).decode()
    return f'<p><img src="data:image/png;base64,{data}" alt="{safe(alt)}"></p>'


def drawn(draw: Callable[[str], object], alt: str) -> str:
    """What draw(path) draws, as picture()."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "figure.png")
        draw(path)
        return picture(path, alt)


def page(title: str, body: str) -> str:
    """The whole page, as HTML."""
    return PAGE.format(title=safe(title), body=body)


# ---------- a run ----------


def shares(row: dict, by_kind: dict[str, list[int]]) -> list[tuple[str, str, str]]:
    """The accuracy of the last evaluation, in all and by kind: a table's rows. The interval is
    Wilson's, over the problems; that of a kind over its answers_by_kind()."""
    lines = [("all", f"{row['accuracy']:.3f}", interval(row["accuracy"], row.get("answers")))]
    for key in ("accuracy_by_family", "accuracy_by_problem"):
        for kind, share in row.get(key, {}).items():
            lines.append((kind, f"{share:.3f}", interval(share, by_kind.get(kind))))
    for size, by_value in row.get("accuracy_by", {}).items():
        for value, part in by_value.items():
            lines.append((f"{size} {value}", f"{part['accuracy']:.3f}", ""))
            for name, share in part.items():  # what else its task measured
                if name not in ("accuracy", "guess", "shortcut") and isinstance(share, float):
                    said = name.replace("_", " ")
                    lines.append((f"{size} {value}, {said}", f"{share:.3f}", ""))
    for name in ("guess", "shortcut"):
        if row.get(name) is not None:
            lines.append((f"({name})", f"{row[name]:.3f}", ""))
    return lines


def answers_by_kind(problems: list[dict], answers: Sequence[int]) -> dict[str, list[int]]:
    """{a family, or a family and its steps: 1 or 0 for each of its problems}, as a log names them.
    `answers` are those to the first problems."""
    by_kind = {}
    for problem, right in zip(problems, answers):
        family = str(problem.get("family", "other"))
        for kind in (family, f"{family} {problem.get('steps', 'other')}"):
            by_kind.setdefault(kind, []).append(right)
    return by_kind


def interval(share: float, answers: Sequence[int] | None) -> str:
    """A 95 % interval as text, where it is known how many were asked."""
    if not answers:
        return ""
    low, high = results.wilson(sum(answers), len(answers))
    return f"{low:.3f} to {high:.3f}, {len(answers)} asked"


def examples(
    model: variants.GPT, tokenizer: Any, problems: list[dict], answers: Sequence[int]
) -> list[tuple[str, str, str, str]]:
    """Held-out problems, some that were answered right and some that were not, each with what the
    model says: a table's rows."""
    n = min(len(problems), len(answers))
    chosen = []
    for wanted in (1, 0):
        of_them = [i for i in range(n) if answers[i] == wanted]
        chosen += of_them[:EXAMPLES]
    some = [problems[i] for i in chosen]
    said = sampling.answer_texts(model, tokenizer, some) if some else []
    rows = []
    for i, problem, text in zip(chosen, some, said):
        question = problem["messages"][-1]["content"]
        verdict = "right" if answers[i] else "wrong"
        rows.append((verdict, question, text.strip(), problem["answer"]))
    return rows


def draw_looks(maps: list[torch.Tensor], labels: list[str], path: console.Path) -> None:
    """Attention weights, [(1, H, T, T) of each layer applied], a panel for each head."""
    layers = maps[: PANELS[0]]
    heads = min(PANELS[1], max(each.shape[1] for each in layers))
    size = (2.2 * heads + 1, 2.2 * len(layers) + 0.5)
    with figures.drawing(path, len(layers), heads, size, squeeze=False) as (_, axes):
        for layer, weights in enumerate(layers):
            for head in range(heads):
                panel = axes[layer, head]
                if head >= weights.shape[1]:
                    panel.axis("off")
                    continue
                panel.imshow(weights[0, head].numpy(), vmin=0, vmax=1, cmap=figures.ground())
                panel.set_title(f"layer {layer + 1}, head {head + 1}", fontsize="small")
                panel.set(xticks=[], yticks=[])
                if len(labels) <= 24:
                    panel.set_yticks(range(len(labels)), labels, fontsize=5)


def looked_at(model: variants.GPT, tokenizer: Any, data: Data) -> tuple[torch.Tensor, list[str]]:
    """(tokens (1, T) of one held-out example, its tokens as texts)"""
    if data.problems and tokenizer:
        problem = data.problems[0]
        ids = md.prompt_ids(tokenizer, problem["messages"])[:LOOKED_AT]
        tokens = torch.tensor([ids])
    else:
        tokens, targets = (np.asarray(part[:1]) for part in data.val)
        if targets.ndim == 3:  # (N, loops, T)
            targets = targets.max(1)
        end = max(2, min(LOOKED_AT, int(to_data.filled(tokens, targets).sum())))
        tokens = torch.as_tensor(tokens[:, :end]).long()
    if tokenizer:
        labels = [console.visible(tokenizer.decode([i])) for i in tokens[0].tolist()]
    else:
        labels = [str(i) for i in tokens[0].tolist()]
    return tokens, [label.replace("$", r"\$") for label in labels]


def data_of(
    folder: console.Path, t: configs.TrainConfig, m: configs.ModelConfig, tokenizer: Any
) -> tuple[Data | None, str]:
    """(the data of a run, or None, and why)"""
    named = [*t.data, t.loader]
    if any(str(name).endswith(".py") for name in named):
        return None, "its data is made by code of one's own, which a report does not execute"
    if sources.away(t, tokenizer):
        return None, "its data is to come from a hub, which a report does not ask"
    try:
        data = registry.data_of(t, m.block_size, tokenizer)
    except (OSError, ValueError) as error:
        return None, console.one_line(error, 200)
    if checkpoints.has_changed(folder, data):  # the verdicts are of other problems
        return None, "its data has changed since"
    return data, ""


def of_run(folder: console.Path) -> str:
    """The body of a run's page."""
    row = runs.readable(folder)
    log = row["log"]
    if not log:
        raise ValueError(f"--report {folder} has no evaluation yet; let it train first")
    config, last = checkpoints.read_about(folder), log[-1]
    m, t = checkpoints.read_config(folder)
    model, tokenizer = checkpoints.load(folder)
    data, why = data_of(folder, t, m, tokenizer)
    measured = []
    if last.get("accuracy") is not None:
        by_kind = answers_by_kind(data.problems, last.get("answers", ())) if data else {}
        heads = ("of", "share", "95 % interval")
        measured += ["<h2>Accuracy</h2>", table(heads, shares(last, by_kind))]
    if data is None:
        measured.append(f'<p class="note">No examples and no attention: {safe(why)}.</p>')
    else:
        measured += model_parts(folder, last, model, tokenizer, data)
    settings = {**vars(row["model"]), **row["train"]}
    accuracy = last.get("accuracy")
    return RUN.format(
        status=safe(row["status"]), step=last["step"], steps=row["train"]["steps"],
        n=variants.parameters(row["model"])["total"], loss=last["val_loss"],
        accuracy="" if accuracy is None else f", accuracy {accuracy:.3f}",
        command=safe(config.get("command")), made_by=safe(made_by(config)),
        curves=drawn(
            lambda path: curve.draw_logs({"run": log}, path), "losses and accuracy over the steps"
        ),
        measured="\n".join(measured),
        settings=table(
            ("setting", "value"), [(name, runs.text(value)) for name, value in settings.items()]
        ),
    )  # fmt: skip


def made_by(config: dict) -> str:
    """Versions, device and commit of a config.json, in a line."""
    versions = [f"{name} {version}" for name, version in config.get("versions", {}).items()]
    parts = [*versions, config.get("device"), f"commit {config.get('commit') or 'unknown'}"]
    return ", ".join(str(part) for part in parts if part)


def model_parts(
    folder: console.Path, last: dict, model: variants.GPT, tokenizer: Any, data: Data
) -> list[str]:
    """What the model itself shows: answers to problems, and attention."""
    parts = []
    which = checkpoints.describe_weights(folder)
    if data.problems and tokenizer and last.get("answers"):
        rows = examples(model, tokenizer, data.problems, last["answers"])
        heads = ("last weights", "problem", "the model now says", "right answer")
        parts += ["<h2>Answers</h2>", table(heads, rows)]
        if which:
            note = f"Verdicts are of the last weights; what the model says is from {which}"
            parts.append(f'<p class="note">{safe(note)}.</p>')
    tokens, labels = looked_at(model, tokenizer, data)
    maps = inspect.attention_maps(model, tokens)
    looks = drawn(lambda path: draw_looks(maps, labels, path), "attention, a panel a head")
    return [*parts, ATTENTION.format(tokens=safe(" ".join(labels)), maps=looks)]


# ---------- a grid ----------


def of_grid(folder: console.Path) -> str:
    """The body of a grid's page, from its summary.json and its figures."""
    path = os.path.join(folder, "summary.json")
    with console.one_line_errors(path, "is not the summary of a grid"):
        with open(console.regular_file(path), encoding="utf-8") as f:
            about = json.load(f)
        tables = [grid_table(rows) for rows in (about["table"], about.get("by_value")) if rows]
        command, date, device = (about.get(key) for key in ("command", "date", "device"))
        differences = [str(line) for line in about.get("differences", [])]
        n_runs = about.get("n_runs", len(about["runs"]))  # older ones do not say
        if type(n_runs) is not int:
            raise ValueError(f"n_runs in it is {console.kind_of(n_runs)}, no number")
    more = []
    if differences:
        lines = "".join(f"<li>{safe(line)}</li>" for line in differences)
        more += ["<h2>Differences</h2>", f"<ul>{lines}</ul>"]
    pictures = sorted(name for name in os.listdir(folder) if name.endswith(".png"))
    if pictures:
        more.append("<h2>Figures</h2>")
    more += [picture(checkpoints.path_inside(folder, name), name) for name in pictures]
    return GRID.format(
        runs=console.plural(n_runs, "run"), tables="\n".join(tables), command=safe(command),
        date=safe(date), device=safe(device), more="\n".join(more),
    )  # fmt: skip


def grid_table(rows: list[dict]) -> str:
    """Rows of a summary.json's table as an HTML table."""
    names = list(dict.fromkeys(name for row in rows for name in row["labels"]))
    metrics = [key for key in results.METRICS if key in rows[0]]
    lines = []
    for row in rows:
        cells = [row["labels"].get(name, "") for name in names]
        lines.append(
            [*cells, row["n"], *(results.with_interval(key, *row[key]) for key in metrics)]
        )
    return table([*names, "n", *(results.METRICS[key][0] for key in metrics)], lines)


def write(folder: console.Path) -> str:
    """Write FOLDER/report.html of a run or of a grid → its path; ValueError for what is neither."""
    if not os.path.isdir(folder):
        raise ValueError(f"--report {folder} is not there; give a run's folder, as runs/NAME")
    if os.path.lexists(os.path.join(folder, "config.json")):
        body = of_run(folder)
    elif os.path.lexists(os.path.join(folder, "summary.json")):
        body = of_grid(folder)
    else:
        raise ValueError(f"--report {folder} holds neither a run nor a grid's summary.json")
    title = os.path.basename(os.path.abspath(folder))
    path = checkpoints.path_inside(folder, "report.html")
    checkpoints.write(path, lambda f: f.write(page(title, body).encode()))
    return path
