"""Notebooks that a reader takes along: they get the code by themselves, wherever they are opened,
and run to their end; the workflow that publishes tells them and the site where all is."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import types

import nbformat
import pytest
import torch

import browser
import minidepth as md
from conftest import ROOT
from minidepth_lab.base import machine
from minidepth_lab.keep import checkpoints, running
from minidepth_lab.measure import results
from minidepth_lab.models import variants

pytest.importorskip("material", reason="mkdocs-material is not installed")
pytest.importorskip("mkdocs_jupyter", reason="mkdocs-jupyter is not installed")
DOCS = ROOT / "docs"
from mkdocs.utils.yaml import yaml_load  # noqa: E402

import downloads  # noqa: E402  they need what the lines above look for
import hooks  # noqa: E402
import pages  # noqa: E402

KAGGLE = DOCS / "how-to" / "kaggle_notebook.py"
LESSON = DOCS / "tutorials" / "2_logs.py"
NOWHERE = "http://127.0.0.1:9/"  # a site that cannot be reached
NOTEBOOKS = [path for path in pages.programs() if not pages.prints_markdown(path)]
# appended to a cell: whose code is taken
SAY = "\nimport minidepth; print('from', minidepth.__file__)"
# appended to a lesson: that all of it is taken, and stored runs and weights came along
OURS = """
import minidepth, minidepth_lab, minidepth_site
from minidepth_lab.keep import checkpoints
from minidepth_lab.measure import results
print("from", minidepth.__file__, *minidepth_lab.__path__, *minidepth_site.__path__)
run = next(run for run in results.runs("ring-staircase", d_model=64, n_loops=5))
model, _ = checkpoints.load(results.weights("ring-staircase", run["id"]))
print("stored model of", model.num_params()["total"])
"""


def script(text):
    """A notebook as nbformat has it → its code cells as one script."""
    cells = json.loads(text)["cells"]
    return "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "code")


def execute(folder, text):
    """Run a script in a folder, as where the project is not installed → (exit code, stdout,
    stderr). Without `site` Python finds packages, and no editable installation."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "notebook.py").write_text(text, encoding="utf-8")
    environment = os.environ | dict(MPLBACKEND="Agg", OMP_NUM_THREADS="1")
    environment["PYTHONPATH"] = sysconfig.get_paths()["purelib"]
    command = [sys.executable, "-S", "-W", "ignore", "notebook.py"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


# ---------- what is in a notebook ----------


@pytest.mark.parametrize("path", [*NOTEBOOKS, KAGGLE], ids=lambda path: path.stem)
def test_a_notebook_holds_the_cells_of_its_page_in_order_and_no_answers(path):
    made = nbformat.reads(downloads.notebook(path), 4)
    nbformat.validate(made)
    assert made.cells.pop(1).source == downloads.setup(path)
    kept = [each for each in pages.notebook(path).cells if not pages.has_tag(each, "answer")]
    assert [cell.cell_type for cell in made.cells] == [cell.cell_type for cell in kept]
    for cell, own in zip(made.cells, kept):
        if cell.cell_type == "markdown":
            assert "](" not in re.sub(r"\]\((https?:|#)", "", cell.source)
            assert "<script" not in cell.source
        its, ours = (re.sub(r"!?\[([^\]]*)\]\(\s*[^)\s]+\)", r"\1", each.source)
                     for each in (cell, own))  # fmt: skip
        assert its == ours or '<div class="widget' in own.source


# ---------- where the code comes from ----------


def test_a_lesson_runs_with_the_archive_beside_it(tmp_path):
    (tmp_path / "minidepth.zip").write_bytes(downloads.archive())
    (tmp_path / "README.md").write_text("my own")
    code, out, err = execute(tmp_path, script(downloads.notebook(LESSON)) + OURS)
    assert code == 0, err
    parts = ("minidepth.py", "minidepth_lab", "docs/site/minidepth_site")
    where = " ".join(str(tmp_path / "minidepth-project" / part) for part in parts)
    assert f"from {where}\nstored model of" in out and "12 layers" in out
    assert "comes from" not in out
    assert (tmp_path / "README.md").read_text() == "my own"  # what is the reader's stays


@pytest.fixture
def small(tmp_path):
    """A folder that the first cell takes for the project, and that is imported in no time."""
    for name in (
        "minidepth.py",
        "minidepth_lab/__init__.py",
        "docs/site/minidepth_site/widgets.py",
    ):
        path = tmp_path / "small" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return tmp_path / "small"


def test_the_code_comes_from_the_site_if_it_is_not_here(small, tmp_path):
    shutil.make_archive(tmp_path / "published" / "minidepth", "zip", small)
    with browser.serving(tmp_path / "published") as site:
        code, out, err = execute(tmp_path / "mine", downloads.setup(LESSON, site) + SAY)
    assert code == 0, err
    here = f"from {tmp_path}/mine/minidepth-project/minidepth.py\n"
    assert out == f"The code comes from {site}minidepth.zip\n{here}"
    # the second time it is here: nothing is asked of the site
    code, out, err = execute(tmp_path / "mine", downloads.setup(LESSON, NOWHERE) + SAY)
    assert (code, out) == (0, here), err
    code, out, err = execute(tmp_path / "other", downloads.setup(LESSON, NOWHERE))
    assert code == 1 and "cannot be had" in out and "minidepth is not here" in err


def test_what_is_above_or_installed_comes_before_the_site(small, tmp_path):
    setup = downloads.setup(LESSON, NOWHERE) + SAY
    code, out, err = execute(small / "docs" / "tutorials", setup)
    assert (code, out) == (0, f"from {small}/minidepth.py\n"), err
    # an installation, for which a folder on the path does here
    path = ", ".join(repr(str(small / part)) for part in ("", "docs/site"))
    code, out, err = execute(tmp_path / "mine", f"import sys; sys.path[:0] = [{path}]\n{setup}")
    assert (code, out) == (0, f"from {small}/minidepth.py\n"), err


# ---------- the workflow that publishes ----------

CONTEXT = {  # what GitHub puts for each ${{ ... }}, of a repository that nobody knows
    "github.server_url": "https://github.com",
    "github.repository": "some-one/deep",
    "steps.pages.outputs.base_url": "https://some-one.github.io/deep",
    "github.token": "secret",
}


def workflow():
    text = (ROOT / ".github" / "workflows" / "pages.yml").read_text(encoding="utf-8")
    put = re.sub(r"\$\{\{ (.*?) \}\}", lambda found: CONTEXT.get(found[1], found[0]), text)
    return yaml_load(put)["jobs"]


def test_the_workflow_tells_the_build_every_address_from_its_own_context(monkeypatch):
    (build,) = (step for step in workflow()["pages"]["steps"] if "mkdocs build" in str(step))
    for name, value in build["env"].items():
        monkeypatch.setenv(name, str(value))
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    asked = set(re.findall(r"!ENV \[(\w+)", text))
    assert asked - {"EDIT_URI", "DOCS_EXECUTE"} <= build["env"].keys()
    settings = yaml_load(text)
    assert settings["site_url"] == "https://some-one.github.io/deep/"
    assert settings["extra"]["repo_url"] == "https://github.com/some-one/deep"
    config = types.SimpleNamespace(extra=settings["extra"])
    said = hooks.ways_to_download(LESSON, config)
    there = "github.com/some-one/deep/blob/notebooks/tutorials/2_logs.ipynb"
    assert 'href="https://colab.research.google.com/github/' + there[11:] in said
    assert f'href="https://www.kaggle.com/kernels/welcome?src=https://{there}"' in said

    def shown():
        file = types.SimpleNamespace(src_uri="how-to/notebooks.md")
        text = "a <!-- open how-to/kaggle_notebook.ipynb --> b"
        return hooks.on_page_markdown(text, types.SimpleNamespace(file=file, meta={}), config, [])

    assert shown().count("blob/notebooks/how-to/kaggle_notebook.ipynb") == 2
    config.extra.update(colab="", kaggle="")
    assert shown() == "a  b"


def test_the_workflow_puts_notebooks_where_the_buttons_look_for_them(tmp_path):
    """Its own lines, run with a repository of this machine in the place of GitHub's."""
    (step,) = (step for step in workflow()["notebooks"]["steps"] if "run" in step)
    inside = tmp_path / step["working-directory"]
    repository = tmp_path / "there.git"
    subprocess.run(["git", "init", "-q", "--bare", str(repository)], check=True)
    environment = os.environ | dict(
        GITHUB_ACTOR="some-one", GITHUB_SHA="abc", GITHUB_REPOSITORY="some-one/deep",
        GITHUB_SERVER_URL="https://github.com", GIT_CONFIG_COUNT="1", GIT_CONFIG_GLOBAL=os.devnull,
        GIT_CONFIG_KEY_0=f"url.{repository}.insteadOf",
        GIT_CONFIG_VALUE_0="https://github.com/some-one/deep", **step["env"],
    )  # fmt: skip
    for text in ("first", "second"):  # the second build replaces what the first has put there
        shutil.rmtree(inside, ignore_errors=True)
        (inside / "tutorials").mkdir(parents=True)
        (inside / "tutorials" / "2_logs.ipynb").write_text(text)
        subprocess.run(["bash", "-e", "-c", step["run"]], cwd=inside, env=environment, check=True)
    git = ["git", "-C", str(repository)]
    shown = subprocess.run([*git, "show", "notebooks:tutorials/2_logs.ipynb"], capture_output=True)
    assert shown.stdout == b"second"
    commits = subprocess.run([*git, "rev-list", "notebooks"], capture_output=True).stdout
    assert len(commits.split()) == 1


# ---------- the Kaggle notebook ----------

TINY = """PRESET = 'laptop'
SETTINGS = dict(out_dir='runs', steps=4, warmup_steps=1, max_rows=90, eval_every=2, save_every=2,
                eval_problems=2, watch_problems=0, eval_blocks=4, d_model=8, d_ff=8)"""


WHOLE = script(downloads.notebook(KAGGLE))
SMALL = re.sub(r'PRESET = "report"\nSETTINGS = .*', TINY, WHOLE)


@pytest.fixture
def kaggle(tmp_path, monkeypatch, capsys):
    """Runs the Kaggle notebook's cells, with tiny models if not another text, in a folder of its
    own → its output."""
    import matplotlib.pyplot as plt

    from minidepth_site import widgets

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(widgets, "here", None)
    monkeypatch.setattr(plt, "show", lambda: plt.close("all"))

    def run(text=SMALL):
        capsys.readouterr()
        exec(compile(text, "notebook", "exec"), {})
        return capsys.readouterr().out

    return run


def last_lines(said):
    """What the notebook prints in the end, without the seconds."""
    return re.findall(r"^ ?\d+ layers: last val .*, skipped steps \d+", said, re.MULTILINE)


@pytest.mark.parametrize("n_gpus", [1, 2])
def test_the_kaggle_notebook_trains_the_published_pair_on_t4s(kaggle, monkeypatch, n_gpus):
    """With GPUs and a training that are only said to be there: what is asked of them, and what is
    made of their logs."""
    asked = []

    def train(m, t, resume):
        device = machine.pick_device(t.device)
        with torch.device("meta"):
            model = variants.GPT(m)
        md.parallel(model, device)
        asked.append((m.n_layers, m.vocab_size, t.steps, t.batch_size, device.type, resume))
        rows = results.published(f"report_log_{m.n_layers}_layers")
        rest = dict(train_loss_eval=3.0, skipped_steps=0, seconds=200.0)
        return types.SimpleNamespace(model=model, log=[row | rest for row in rows])

    monkeypatch.setattr(torch.cuda, "device_count", lambda: n_gpus)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda which: "Tesla T4")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch, "ones", lambda *shape, device: torch.zeros(1))  # they do compute
    monkeypatch.setattr(torch.nn, "DataParallel", lambda model: model)
    monkeypatch.setattr(running, "train", train)
    said = kaggle(WHOLE)
    assert f"found {n_gpus} x Tesla T4: preset report on cuda" in said
    assert asked == [(n, 151_665, 500, 16, "cuda", False) for n in (1, 12)]
    assert said.count("Wrapping model with DataParallel over 2 GPUs") == (2 if n_gpus == 2 else 0)
    assert len(last_lines(said)) == 2 and "'total': 79688832" in said


@pytest.mark.parametrize("found, says", [
    (True, "no kernel image"),  # a P100: found, and PyTorch has nothing for it
    (False, "found no GPU: preset laptop on "),
])  # fmt: skip
def test_the_kaggle_notebook_without_a_gpu_that_works_takes_small_models(
    kaggle, monkeypatch, capsys, found, says
):
    def no_kernels(*shape, device):
        if torch.device(device).type == "cuda":
            raise RuntimeError("no kernel image is available for execution on the device")
        return torch.zeros(*shape)

    monkeypatch.setattr(torch.cuda, "is_available", lambda: found)
    monkeypatch.setattr(torch, "ones", no_kernels)
    text = WHOLE.replace("logs = {}", "raise EOFError", 1)
    with pytest.raises(EOFError):
        kaggle(text)
    said = capsys.readouterr().out
    assert says in said and "preset laptop on " in said


def test_the_kaggle_notebook_runs_again_and_goes_on_after_a_cut_off(kaggle):
    first = kaggle()
    assert len(last_lines(first)) == 2 and first.count("Done.") == 2
    again = kaggle()
    assert "Done." not in again and again.count("is finished") == 2
    assert last_lines(again) == last_lines(first)
    deep = pathlib.Path("runs", "12-layers")
    # cut off before the first checkpoint: there is the configuration, and nothing to go on from
    for name in ("state.pt", "model.safetensors", "log.jsonl"):
        (deep / name).unlink()
    again = kaggle()
    assert again.count("Done.") == 1 and again.count("is finished") == 1
    assert last_lines(again) == last_lines(first)
    # after one: the same settings, stopped in the middle
    m, t = checkpoints.read_config(deep)
    shutil.rmtree(deep)
    asked = iter([False, True])
    assert not running.train(m, t, stop=lambda: next(asked)).finished
    again = kaggle()
    assert "step 4/4" in again and "step 2/4" not in again
    assert last_lines(again) == last_lines(first)
