"""# The laboratory

What one asks of many runs, or of a trained one: tasks, studies, and the machinery for them, in
`minidepth_lab`. With a [depth task](../tutorials/depth_map.md#thresholds), start here:

```python
import minidepth as md
from minidepth_lab.keep import running
from minidepth_lab.keep import registry
from minidepth_lab.measure import inspect

m, t = registry.configs("tasks", data="icqa", n_layers=2, steps=300)
data = registry.data_of(t)
run = running.train(m, t, data)
print(inspect.mechanism(run.model, data)["steps"])
```
"""

import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
# packages, and the modules in them, by their names as they are imported
FILES = [*ROOT.glob("minidepth_lab/**/*.py"), *ROOT.glob("docs/site/minidepth_site/*.py")]

print(__doc__)
for path in sorted(FILES):
    package = ROOT / "docs" / "site" if "minidepth_site" in path.parts else ROOT
    name = ".".join(path.relative_to(package).with_suffix("").parts)
    print(f"::: {name.removesuffix('.__init__')}\n")
