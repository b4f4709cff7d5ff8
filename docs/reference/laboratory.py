"""# The laboratory

What one asks of many runs, or of a trained one: tasks, studies, and the machinery for them, in
`docs/minidepth_lab`. With a [depth task](../tutorials/depth_thresholds.md), start here:

```python
import minidepth as md
from minidepth_lab import inspect, registry

m, t = registry.configs("tasks", data="icqa", n_layers=2, steps=300)
data = registry.data_of(t)
run = md.train(m, t, data)
print(inspect.mechanism(run.model, data)["steps"])
```
"""

import pathlib

DOCS = pathlib.Path(__file__).resolve().parents[1]
# packages, and the modules in them, by their names as they are imported
FILES = [*DOCS.glob("minidepth_lab/**/*.py"), *DOCS.glob("site/minidepth_site/*.py")]

print(__doc__)
for path in sorted(FILES):
    package = DOCS / "site" if "minidepth_site" in path.parts else DOCS
    name = ".".join(path.relative_to(package).with_suffix("").parts)
    print(f"::: {name.removesuffix('.__init__')}\n")
