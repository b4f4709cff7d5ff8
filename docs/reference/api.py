"""# Functions and classes

`minidepth.py` holds the model, sampling and training, `minidepth_data.py` the data and
`minidepth_files.py` settings, files and a run's folder, whose names `minidepth` offers too, and
`docs/minidepth_lab` what we ask of trained models: one file per question, imported as
`minidepth_lab.NAME`.
Descriptions and source are taken from the files when the site is built. Dimensions: B sequences,
T tokens, C width, H heads, D head size, V words, L layers. Start here:

```python
import minidepth as md

m, t = md.configs("laptop", n_layers=2, steps=200)
data = md.load_data(t, m.block_size)
run = md.train(m, t, data)
print(md.answer_accuracy(run.model, run.tokenizer, data.problems[:50]))
```

and with a [depth task](../tutorials/06_depth_thresholds.md) here:

```python
import minidepth as md
from minidepth_lab import attention, tasks

m, t = tasks.configs("icqa", n_layers=2, steps=300)
data = tasks.load_data(t)
run = md.train(m, t, data)
print(attention.mechanism(run.model, data)["steps"])
```
"""

import importlib
import inspect
import re

import minidepth as md

MOVED = """\
## What moved

In older versions `minidepth.py` held all of this. These are names that you may know from there:

| then | now |
|---|---|
| `minidepth.TASKS["icqa"](…)`, `icqa(…)` | `minidepth_lab.tasks.TASKS["icqa"].draw(…)` |
| `chance("icqa")`, `links("icqa", …)` | `chance()` and `links(…)` of the task |
| `task_sizes("icqa")` | `sizes` of the task |
| `task_accuracy(model, data)` | `data.measure(model)` |
| `configs("tasks", …)` | `minidepth_lab.tasks.configs("icqa", …)` |
| `configs("heads", …)`, another study's preset | `minidepth_lab.find.configs("heads", …)` |
| `attention_maps`, `head_stats`, `ablated`, `mechanism` | in `minidepth_lab.attention` |
| `result`, `published`, `interval` | in `minidepth_lab.results` |
| `choices_of`, `choice_scores`, `read_choices` | in `minidepth_lab.score` |
| `width_matched` | in `minidepth_lab.depth` |
| `to_gpt2`, `export_hf` | in `minidepth_lab.export` |
| `blocks(…, stride)` | `minidepth_lab.llmini.overlapping`, then `blocks` |
"""
MAIN = """ModelConfig TrainConfig configs GPT parameters readable_attention chunked_loss
embedded_rows segments encode blocks filled load_tokenizer final_answer load_data make_data Data
generate answer_texts answer_accuracy lr_at train_step mean_loss train_loss_eval train Run Diverged
load read_config"""
STUDIES = dict(
    tasks="memorize icqa template icl_template khop configs load_data",
    ring="ring rows layers_that_suffice figure",
    written="written rows own_steps figure stored",
    task="Task TaskData task_data",
    find="study task configs load_data sizes_of",
    results="result runs select by weights published publish interval wilson",
    attention="attention_maps watch_attention ablated head_stats attention_stats model_stats "
    "mechanism",
    layers="streams lens known skipped examined",
    score="choices_of read_choices choice_scores",
    depth="width_matched rows stored swept",
    budget="rows stored tried show_tried learned_at milliseconds draw figure",
    thinking="Lengths load_data rows",
    heads="rows figure stored",
    llmini="overlapping load_data rows",
    packing="load_data rows",
    grid="grid",
    tables="summarize",
    figures="drawing heat_map",
    export="to_gpt2 export_hf",
    halved="halve",
    looks="watched story",
    parts="show seeds",
    fits="peak of_a_layer",
    bounds="product_seconds read_rate",
    judge="judged verdicts verdict tally show named_runs judged_contrasts value exact_interval"
    " fisher permutation paired holm",
    reread="rows load_data stored models_read val_loss_at at_fit equally_fitted"
    " draw_losses draw_times draw_depths draw_fit",
    ring_runs="accuracies staircase in_writing course onset draw_courses draw_rings draw_learned"
    " questions walk",
)


def described(text):
    """A docstring as Markdown: paragraphs that are tables stay as they are laid out."""
    parts = []
    for part in inspect.cleandoc(text).split("\n\n"):
        if re.search(r"^ |\S {2,}\S|^python ", part, re.MULTILINE):
            parts.append(f"```{{ .text }}\n{part}\n```")
        else:
            parts.append(re.sub(r"([\\*_<>|\[\]])", r"\\\1", part) if "`" not in part else part)
    return "\n\n".join(parts)


def show(name, thing, anchor):
    """Print a name's heading, signature, description and source."""
    print(f"### {name} {{ #{anchor} }}\n")
    is_class = isinstance(thing, type)
    if not is_class:
        print(f"```python\n{name}{inspect.signature(thing)}\n```\n")
    text = vars(thing).get("__doc__") if is_class else thing.__doc__
    if text and not text.startswith(f"{name}("):  # a dataclass without a text has its signature
        print(described(text) + "\n")
    lines = inspect.getsource(thing).rstrip().split("\n")
    source = "\n".join("    " + line for line in lines)
    print(f'??? note "Source of {name}"\n\n    ```python\n{source}\n    ```\n')


def line_of(thing):
    return inspect.getsourcelines(thing)[1]


def section(thing):
    """The title of the section that it stands in, of its file."""
    lines = inspect.getsource(inspect.getmodule(thing)).split("\n")[: line_of(thing)]
    title = [line for line in lines if line.startswith("# ---------- ")][-1].strip("# -")
    return re.sub(r"^\d+\. ", "", title).split(":")[0].split(",")[0]


print(__doc__)
before = None
for thing in sorted(
    (vars(md)[name] for name in MAIN.split()), key=lambda x: (x.__module__, line_of(x))
):
    where = f"{thing.__module__}: {section(thing)}"
    if where != before:
        before = where
        print(f"## {where}\n")
    show(thing.__name__, thing, thing.__name__)
for study, names in STUDIES.items():
    module = importlib.import_module(f"minidepth_lab.{study}")
    print(f"## minidepth_lab.{study} {{ #minidepth_lab.{study} }}\n\n{described(module.__doc__)}\n")
    for name in names.split():
        show(name, vars(module)[name], f"{study}.{name}")
print(MOVED)
