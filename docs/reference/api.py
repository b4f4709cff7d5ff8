"""# Functions and classes

Everything is in one file, `minidepth.py`, in the order below. Descriptions and source are taken
from it when the site is built. Dimensions: B sequences, T tokens, C width, H heads, D head size,
V words, L layers. Start here:

```python
import minidepth as md

m, t = md.configs("laptop", n_layers=2, steps=200)
run = md.train(m, t)
print(md.answer_accuracy(run.model, run.tokenizer, md.load_data(t, m.block_size).problems[:50]))
```
"""

import inspect
import re

import minidepth as md

print(__doc__)
PUBLIC = """ModelConfig TrainConfig configs GPT readable_attention chunked_loss TASKS memorize icqa
template icl_template khop chance task_sizes load_data Data embedded_rows generate
answer_texts answer_accuracy task_accuracy final_answer lr_at train train_step Run
Diverged load read_config mean_loss attention_maps watch_attention ablated links
mechanism head_stats attention_stats model_stats parameters width_matched result
interval published to_gpt2 export_hf""".split()


def described(text):
    """A docstring as Markdown: paragraphs that are tables stay as they are laid out."""
    parts = []
    for part in inspect.cleandoc(text).split("\n\n"):
        if re.search(r"^ |\S {2,}\S", part, re.MULTILINE):
            parts.append(f"```{{ .text }}\n{part}\n```")
        else:
            parts.append(re.sub(r"([\\*_<>|\[\]])", r"\\\1", part) if "`" not in part else part)
    return "\n\n".join(parts)


lines = inspect.getsource(md).split("\n")
titles = [
    (number, line) for number, line in enumerate(lines, 1) if line.startswith("# ---------- ")
]


def section(thing):
    """The title of the section of the file that it stands in."""
    at = inspect.getsourcelines(thing)[1]
    title = [line for number, line in titles if number <= at][-1].strip("# -")
    return re.sub(r"^\d+\. ", "", title).split(":")[0].split(",")[0]


before = None
for name in sorted(PUBLIC, key=lambda n: n != "TASKS" and inspect.getsourcelines(vars(md)[n])[1]):
    thing = vars(md)[name]
    if name == "TASKS":
        continue
    if section(thing) != before:
        before = section(thing)
        print(f"## {before[0].upper()}{before[1:]}\n")
    signature = "" if isinstance(thing, type) else str(inspect.signature(thing))
    print(f"### {name} {{ #{name} }}\n")
    if signature:
        print(f"```python\n{name}{signature}\n```\n")
    own = vars(thing).get("__doc__") if isinstance(thing, type) else thing.__doc__
    if own and not own.startswith(f"{name}("):
        print(described(own) + "\n")
    source = "\n".join("    " + line for line in inspect.getsource(thing).rstrip().split("\n"))
    print(f'??? note "Source of {name}"\n\n    ```python\n{source}\n    ```\n')
