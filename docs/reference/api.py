"""# Functions and classes

`minidepth.py` holds the model, sampling and training, `minidepth_data.py` the data and
`minidepth_files.py` settings, files and a run's folder, whose names `minidepth` offers too, and
`docs/minidepth_lab` what we ask of many runs or of a trained one: a file for each task in
`minidepth_lab.tasks`, one for each question in `minidepth_lab.studies`, and machinery.
Descriptions, and the source of the model, of tasks and of studies, are taken from the files when
the site is built. Dimensions: B sequences, T tokens, C width, H heads, D head size, V words,
L layers. Start here:

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
from minidepth_lab import inspect, registry

m, t = registry.configs("tasks", data="icqa", n_layers=2, steps=300)
data = registry.data_of(t)
run = md.train(m, t, data)
print(inspect.mechanism(run.model, data)["steps"])
```
"""

import importlib
import inspect
import pathlib
import re

import minidepth as md
import minidepth_lab

MAIN = """ModelConfig TrainConfig configs GPT parameters readable_attention chunked_loss
embedded_rows segments encode blocks filled load_tokenizer final_answer load_data make_data Data
generate answer_texts answer_accuracy lr_at train_step mean_loss train_loss_eval train Run Diverged
load read_config"""
LAB = pathlib.Path(minidepth_lab.__file__).parent


def modules():
    """{name within minidepth_lab: module} of the laboratory's files: machinery, tasks, studies."""
    files = sorted(LAB.rglob("*.py"), key=lambda path: (len(path.parts), path))
    found = {}
    for path in files:
        name = ".".join(path.relative_to(LAB).with_suffix("").parts)
        name = name.removesuffix("__init__").removesuffix(".")
        if name:
            found[name] = importlib.import_module(f"minidepth_lab.{name}")
    return found


def described_in(module):
    """The functions and classes of a module that have a description, in their order."""
    things = [thing for thing in vars(module).values() if inspect.isroutine(thing) or
              isinstance(thing, type)]  # fmt: skip
    own = [thing for thing in things if thing.__module__ == module.__name__ and thing.__doc__]
    return sorted(own, key=line_of)


def described(text):
    """A docstring as Markdown: paragraphs that are tables stay as they are laid out."""
    parts = []
    for part in inspect.cleandoc(text).split("\n\n"):
        if re.search(r"^ |\S {2,}\S|^python ", part, re.MULTILINE):
            parts.append(f"```{{ .text }}\n{part}\n```")
        else:
            parts.append(re.sub(r"([\\*_<>|\[\]])", r"\\\1", part) if "`" not in part else part)
    return "\n\n".join(parts)


def show(name, thing, anchor, with_source=True):
    """Print a name's heading, signature and description, and its source."""
    print(f"### {name} {{ #{anchor} }}\n")
    is_class = isinstance(thing, type)
    if not is_class:
        print(f"```python\n{name}{inspect.signature(thing)}\n```\n")
    text = vars(thing).get("__doc__") if is_class else thing.__doc__
    if text and not text.startswith(f"{name}("):  # a dataclass without a text has its signature
        print(described(text) + "\n")
    if not with_source:
        return
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
for name, module in modules().items():
    print(f"## minidepth_lab.{name} {{ #minidepth_lab.{name} }}\n\n{described(module.__doc__)}\n")
    # of the machinery a reader calls functions, of a task or a study one reads how it is done
    with_source = name.startswith(("tasks", "studies"))
    for thing in described_in(module):
        show(thing.__name__, thing, f"{name}.{thing.__name__}", with_source)
