"""# Functions and classes

`minidepth.py` holds the model, the data, sampling and training; `minidepth_lab` holds what one
asks of many runs, or of a trained one: that is [the laboratory](laboratory.md). Descriptions,
signatures and source are taken from the files when the site is built. Dimensions: B sequences,
T tokens, C width, H heads, D head size, V words, L layers. Start here:

```python
import minidepth as md
from minidepth_lab.base import configs
from minidepth_lab.keep import running
from minidepth_lab.measure import sampling
from minidepth_lab.rows import to_data

m, t = configs.make("laptop", n_layers=2, steps=200)
data = to_data.load_data(t, m.block_size)
run = running.train(m, t, data)
print(md.accuracy(run.model, run.tokenizer, data.problems[:50])["accuracy"])
```
"""

import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]

print(__doc__)
for path in sorted(ROOT.glob("minidepth*.py")):
    print(f"::: {path.stem}\n")
