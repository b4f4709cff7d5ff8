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

It has rooms, and each has a page with the functions and classes of its modules:
"""

import ast

import docstrings
import pages

print(__doc__)
files = pages.project_modules()
for room, modules in pages.rooms().items():
    print(f"## {room}\n")
    page = f"laboratory/{room.rpartition('.')[2]}.md"
    for name in modules:
        docstring = ast.get_docstring(ast.parse(files[name].read_text(encoding="utf-8"))) or ""
        said = " ".join(docstrings.paragraph(docstring.partition("\n\n")[0]).split())
        print(f"- [`{name}`]({page}#{name}): {said}")
    print()
