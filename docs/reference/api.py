"""# Functions and classes

`minidepth.py` holds the model, the data, sampling and training; `minidepth_lab` holds what one
asks of many runs, or of a trained one: that is [the laboratory](laboratory.md). Descriptions,
signatures and source are taken from the files when the site is built. Dimensions: B sequences,
T tokens, C width, H heads, D head size, V words, L layers. Start here:

```python
import minidepth as md

m, t = md.configs("laptop", n_layers=2, steps=200)
data = md.load_data(t, m.block_size)
model, log = md.train(m, t, data)
print(md.accuracy(model, data.tokenizer, data.problems[:50])["accuracy"])
```
"""

import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]

print(__doc__)
for path in sorted(ROOT.glob("minidepth*.py")):
    print(f"::: {path.stem}\n")
print("::: minidepth_lab.verdict\n")
