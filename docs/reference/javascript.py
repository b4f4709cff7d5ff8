"""Prints the page of the training in JavaScript: docs/assets/training.js, section by section."""

import pathlib
import re

SOURCE = pathlib.Path(__file__).parents[1] / "assets" / "training.js"
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

text = SOURCE.read_text(encoding="utf-8")
begin, *parts = re.split(r"^// -{10} \d+\. (.*) -{10}\n", text, flags=re.MULTILINE)
sections = dict(zip(parts[::2], parts[1::2]))
assert sections.keys() == BEFORE.keys()

print(f"""# The same training in another language

**Forward, backward and AdamW in {len(text.splitlines())} lines of JavaScript, without a library.**
It is what runs when you [train it here](../tutorials/train_here.md). The forward pass is that of
[minidepth.js](../assets/minidepth.js), which also answers on [Ask the models](../tutorials/ask.md)
and walks on the [home page](../index.md); this file is
[training.js](../assets/training.js). In a test its gradients and the losses of ten steps agree with
PyTorch's to 0.001, for two layers and for one layer looped five times.

Whoever wants to know what `loss.backward()` does can read it here.
""")
print(f"```js\n{begin.strip()}\n```\n")
for name, source in sections.items():
    print(f"## {name[0].upper()}{name[1:]}\n\n{BEFORE[name]}\n\n```js\n{source.strip()}\n```\n")
