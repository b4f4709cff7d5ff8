"""Shared pieces: a tiny finished run, tiny configs, a model whose weights are large."""

import dataclasses
import json
import os
import pathlib
import runpy
import signal
import sys
import threading

# ignored under nohup, or in a shell's background; the tests send them and wait for what they do
if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if "PYTEST_XDIST_WORKER" in os.environ:  # processes side by side, whose threads would wait
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # for each other

import filelock
import pytest
import torch
from matplotlib.figure import Figure

import browser
import minidepth as md
import train
import warm
from minidepth_lab.base import configs
from minidepth_lab.base.data import Data
from minidepth_lab.keep import registry, running
from minidepth_lab.measure import forecast, results
from minidepth_lab.measure.cell import Cell
from minidepth_lab.models import fast, variants
from minidepth_lab.rows import to_data
from minidepth_lab.show import curve
from minidepth_lab.tasks.base import task_data

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
ROOT = pathlib.Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"

TINY_MODEL = dict(
    n_layers=2, n_heads=2, d_model=16, d_ff=32, block_size=80, dropout=0.1, tie_weights=True
)  # fmt: skip
TINY_TRAIN = dict(
    steps=12, warmup_steps=2, batch_size=4, grad_accum=1, eval_every=5, eval_blocks=8, max_rows=300,
    ring_questions=1, eval_problems=12, watch_problems=3,  # a model that knows nothing writes long
)  # fmt: skip


def changed(study, preset, settings=None):
    """(first row, {row: what differs from the first row}) of a study, as full configurations."""
    rows = {}
    for name, row in study.rows(preset, settings or {}).items():
        m, t = registry.configs(preset, **row)
        rows[name] = dataclasses.asdict(m) | dataclasses.asdict(t)
    first = next(iter(rows.values()))
    differ = {}
    for name, row in rows.items():
        differ[name] = {key: value for key, value in row.items() if value != first[key]}
    return first, differ


def call(line, capsys):
    """(exit code, stdout, stderr) of the command, in this process."""
    try:
        code = train.main(line.split() if isinstance(line, str) else line)
    except SystemExit as stop:
        code = stop.code
    return code, *capsys.readouterr()


def same_weights(a, b):
    """Whether two models, or their state dicts, have the same weights bit for bit."""
    a, b = (each if isinstance(each, dict) else each.state_dict() for each in (a, b))
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def log_of(folder):
    """The records of a run's log."""
    lines = pathlib.Path(folder, "log.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def draw_of(task, n=200, test=False, **sizes):
    """(all sizes, tokens, targets) of n sequences of a task."""
    tokens, targets = task.draw(n, md.generator("test"), test, **sizes)
    assert tokens.dtype == targets.dtype == torch.int64
    return task.sizes | sizes, tokens, targets


@pytest.fixture(autouse=True)
def a_time_that_is_not_measured(request, monkeypatch):
    """A --dry_run measures for seconds: only the tests that are about it wait for that."""

    if request.path.stem not in ("test_forecast", "test_runs"):

        def a_second_a_step(m, t, data, done):
            known = data or not t.epochs
            return forecast.Forecast(t.steps - done if known else None, 1.0)

        monkeypatch.setattr(forecast, "measured", a_second_a_step)
        monkeypatch.setattr(forecast, "other_precision", lambda *given: [])


@pytest.fixture
def model():
    """Builds a GPT in eval mode whose weights are large enough for differences to show."""

    def build(**changes):
        torch.manual_seed(0)
        config = configs.ModelConfig(
            **dict(vocab_size=61, block_size=24, n_layers=3, n_heads=4, d_model=32, d_ff=64)
            | changes
        )
        gpt = variants.GPT(config).eval()
        with torch.no_grad():
            for name, p in gpt.named_parameters():
                p.add_(torch.randn_like(p) * (0.02 if "norm" in name else 0.2))
        return gpt

    return build


class Recorded(torch.optim.SGD):
    """SGD that keeps the gradients of its last step, {name of a weight: gradient}."""

    def __init__(self, gpt, lr=0.0):
        super().__init__(gpt.parameters(), lr=lr)
        self.named, self.gradients = dict(gpt.named_parameters()), None

    def step(self, closure=None):
        self.gradients = {name: p.grad.clone() for name, p in self.named.items()}
        return super().step(closure)


@dataclasses.dataclass
class OneBatch(Data):
    """Data that is the same batch at every step."""

    def draw(self, step, n):
        assert n == len(self.train[0])
        return tuple(torch.as_tensor(part).long() for part in self.train)


@pytest.fixture
def train_on(tmp_path, monkeypatch):
    """Lets train() make steps of a model that exists, on one batch → the Run."""

    def run(gpt, tokens, targets, optimizer=None, lr=0.0, steps=1, **changes):
        data = OneBatch((tokens, targets), (tokens, targets), n_words=gpt.config.vocab_size)
        values = dict(batch_size=len(tokens), steps=steps, lr=lr, lr_floor=1.0, warmup_steps=0)
        values |= dict(grad_accum=1, grad_clip=1e9, eval_every=1, eval_blocks=100)
        folder = dict(out_dir=str(tmp_path), name=f"on{len(os.listdir(tmp_path))}")
        t = configs.TrainConfig(**values | folder | changes)
        with monkeypatch.context() as patch:
            patch.setattr(variants, "GPT", lambda config: gpt)
            if optimizer:
                patch.setattr(md, "make_optimizer", lambda model, config: optimizer)
            return running.train(gpt.config, t, data)

    return run


@pytest.fixture
def tiny(tmp_path):
    """(ModelConfig, TrainConfig) of a run of a second, in a folder of its own."""

    def build(**changes):
        values = TINY_MODEL | TINY_TRAIN | dict(out_dir=str(tmp_path), name="run") | changes
        return configs.make("laptop", **values)

    return build


@pytest.fixture
def kept(monkeypatch):
    """The figures that are drawn, each of which is an empty file: to write one takes a second."""
    drawn = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *_, **__: drawn.append(figure))
    return drawn


@pytest.fixture
def begins(monkeypatch):
    """The exception that stands for a training that begins: no model is built."""

    class Begins(Exception):
        pass

    def begin(config):
        raise Begins

    monkeypatch.setattr(variants, "GPT", begin)
    return Begins


class Ended:
    """A process that has ended."""

    def __init__(self, code):
        self.returncode = code

    def wait(self):
        return self.returncode


@pytest.fixture
def in_this_process(monkeypatch, kept):
    """Grids train their runs in this process, which saves each the seconds of its imports: for
    tests of what is made of the runs. How processes are started and end is tested in test_grid.
    Nor do they draw each run's curve, as a run that is no grid's does, or write a figure."""

    def start(cell, preset, settings, environment):
        return Ended(train.main(cell.command(preset, settings)))

    def draw(run, t):
        if threading.current_thread() is threading.main_thread():  # a grid's runs have threads
            drawn(run, t)

    monkeypatch.setattr(task_data, "N_DRAWN", 200)  # sequences that a run of a task is tested on
    drawn = curve.draw_curve
    monkeypatch.setattr(curve, "draw_curve", draw)
    monkeypatch.setattr(Cell, "start", start)


@pytest.fixture
def warm_cells(monkeypatch):
    """Grids train their runs in processes of their own that have torch already."""
    warm.start_cells(monkeypatch)


def made_once(tmp_path_factory, name, make):
    """The folder that make(folder) has filled: by whichever process of the tests comes first, for
    all of them."""
    place = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        place = place.parent  # each process has a folder of its own in this one
    folder = place / name
    with filelock.FileLock(f"{folder}.lock"):
        if not (folder / "made").exists():
            folder.mkdir()
            make(folder)
            (folder / "made").touch()
    return folder


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """The folder of a finished tiny run; tests must not change it."""
    out = str(tmp_path_factory.mktemp("runs"))
    values = TINY_MODEL | TINY_TRAIN | dict(out_dir=out, name="finished")
    return running.train(*configs.make("laptop", **values)).dir


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    """A folder of experiments with one that is empty, `new`."""
    (tmp_path / "results" / "new").mkdir(parents=True)
    monkeypatch.setattr(results, "RESULTS", tmp_path / "results")
    return tmp_path / "results"


@pytest.fixture
def measured_of(shelf, monkeypatch):
    """What a study's module, run as a command, adds to the line of a run that is published."""

    def run(run_dir, study):
        results.publish([run_dir], "new")
        monkeypatch.setattr("sys.argv", [study.__name__, str(run_dir), "new"])
        monkeypatch.delitem(sys.modules, study.__name__)  # as a command it is loaded anew
        runpy.run_module(study.__name__, run_name="__main__")
        (line,) = results.runs("new")
        return line["measured"]

    return run


@pytest.fixture(scope="session")
def solved(tmp_path_factory):
    """The folder of two layers that have learned icqa; tests must not change its weights."""

    def make(folder):
        about = dict(data="icqa", n_layers=2, out_dir=str(folder), name="two")
        m, t = registry.configs("tasks", steps=300, eval_every=300, **about)
        running.train(m, t, registry.data_of(t, m.block_size))

    return str(made_once(tmp_path_factory, "solved", make) / "two")


@pytest.fixture(scope="session")
def data():
    """load_data() of a small embedded set, block 80, padded, loss on the assistant."""
    return to_data.load_data(configs.make("laptop", **TINY_TRAIN)[1], 80)


@pytest.fixture(scope="session")
def tab():
    """The one browser of all tests."""
    with browser.running() as tab:
        yield tab


@pytest.fixture(scope="session")
def docs():
    """The address of docs/, which is served."""
    with browser.serving(ROOT / "docs") as address:
        yield address


@pytest.fixture
def in_page(tab, docs):
    """What an async function of our scripts (m, p and t) returns."""

    def run(script):
        tab.open(docs + "assets/")
        return tab.run(f"""(async () => {{
          const m = await import("/assets/minidepth.js")
          const p = await import("/assets/problems.js")
          const t = await import("/assets/training.js")
          {script}
        }})()""")

    return run


@pytest.fixture
def jsonl(tmp_path):
    """Writes rows to a .jsonl file and gives its path."""

    def write(rows, name="rows.jsonl"):
        path = tmp_path / name
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return str(path)

    return write


def chunked_loss(h, weight, targets, grads=True):
    """(nll, dh, dweight) of the head, the gradients those of sum(nll), None without `grads`."""

    class Context:
        pass

    nll = fast.HeadLoss.forward(Context, h, weight, targets, h.dtype, grads)
    return nll, *(Context.gradients or (None, None))


GOLDEN = pathlib.Path(__file__).with_name("golden.json")


@pytest.fixture
def golden():
    """Compares a value with the one of this name in golden.json; with UPDATE=1 in the environment
    it puts it there."""

    def compare(name, value):
        known, value = json.loads(GOLDEN.read_text()), json.loads(json.dumps(value))
        if "UPDATE" in os.environ:
            lines = [f"{json.dumps(key)}: {json.dumps(each)}"
                     for key, each in sorted((known | {name: value}).items())]  # fmt: skip
            GOLDEN.write_text("{\n" + ",\n".join(lines) + "\n}\n")
        else:
            assert value == known[name]

    return compare
