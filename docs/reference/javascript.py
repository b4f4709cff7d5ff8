"""Prints the page of the training in JavaScript: the model of docs/assets/minidepth.js, then
docs/assets/training.js, section by section."""

import pathlib
import re

ASSETS = pathlib.Path(__file__).parents[1] / "assets"
# what to know of each section before one reads it
BEFORE = {
    "chance": "A browser's random numbers take no seed, so here is a generator that does.",
    "tasks": "A task draws its sequences here, so no data are loaded.",
    "first weights": "As `init_weights()` in minidepth.py.",
    "the way back": """PyTorch writes down what it computes and then goes back by itself. Here each
step of the way is written out. The backward pass of a part stands under the name of the part:
what `linear` is forward, `linearBack` is backward. Attention goes back last token first: a key is
used by all later tokens, and only when these have handed on their share is its own complete.""",
    "AdamW": "As `torch.optim.AdamW`, with the rate of `lr_at()` and the gradient clipped.",
    "a training": "The loop of `train()`, and what the page shows of it.",
    "the weights as a file": "A length, a header in JSON, and the numbers.",
}


def read(name):
    """A file → (its text, what it begins with, {section: its code})"""
    text = (ASSETS / name).read_text(encoding="utf-8")
    begin, *parts = re.split(r"^// -{10} \d+\. (.*) -{10}\n", text, flags=re.MULTILINE)
    return text, begin, dict(zip(parts[::2], parts[1::2]))


text, begin, sections = read("training.js")
assert sections.keys() == BEFORE.keys()
model = read("minidepth.js")[2]["the model"]

print(f"""# The same training in another language

**Forward, backward and AdamW in {len(text.splitlines())} lines of JavaScript, without a library.**
It is what runs when you [play](../tutorials/play.md). The forward pass is that of
[minidepth.js](../assets/minidepth.js), which also answers there
and walks on the [home page](../index.md); this file is
[training.js](../assets/training.js). In a test its gradients and the losses of ten steps agree with
PyTorch's to 0.001, for two layers and for one layer looped five times.

Whoever wants to know what `loss.backward()` does can read it here.
""")
print(f"""## The model

Of minidepth.js. Compare it with `GPT.run_loops()` in
[the library](api.md#minidepth.GPT.run_loops): that takes all tokens of many conversations at once,
and has an axis for the heads, not a loop.

```js
{model.strip()}
```

So begins training.js:

```js
{begin.strip()}
```
""")
for name, source in sections.items():
    print(f"## {name[0].upper()}{name[1:]}\n\n{BEFORE[name]}\n\n```js\n{source.strip()}\n```\n")
