"""What is told before anything is done: flags that would have no effect, and models and batches
that no memory of this machine holds. How strangers' text is shown, and a figure that fails."""

import contextlib
import difflib
import os
import re
import sys
import tempfile

import torch

import minidepth as md
from minidepth_lab import own_code, registry
from minidepth_lab.memory import step_memory
from minidepth_lab.sizes import sizes_of
from minidepth_lab.sources import names_task

# what each thing that is done to trained runs heeds of the flags of training
HEEDED = dict(
    sample=("seed",), mechanism=(), score=("data", "max_rows"), attention=("out_dir",), export_hf=()
)  # fmt: skip
OF_SAMPLE = ("prompt", "temperature", "max_new_tokens")
MOST_TOKENS = 100_000  # of --max_new_tokens


# ---------- flags ----------


def once(arguments):
    """Raise ValueError for a flag that is given twice, of which argparse would heed the last."""
    given = (word.partition("=")[0] for word in arguments if word.startswith("--"))
    names = [name.replace("--no-", "--", 1) for name in given]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{name} is given twice; give it once, several values after it")


def unknown(words, known):
    """Raise ValueError for what is left of a command line, with the flag that may be meant."""
    message = f"unrecognized arguments: {' '.join(words)}"
    alike = {name.replace("-", "_"): name for name in known}  # an easy slip
    typed = words[0].partition("=")[0].replace("-", "_")
    close = difflib.get_close_matches(typed, alike, 1, cutoff=0.75)
    meant = f"; is {alike[close[0]]} meant?" if close else "; see python train.py --help"
    raise ValueError(one_line(message) + meant)


def flags(a, axes):
    """Raise ValueError for flags without effect, or with an empty value; `a` are the command's
    flags, `axes` {setting: its values}."""
    for name, value in a.items():
        values = value if isinstance(value, list) else [value]
        if "" in values and name not in ("name", "loader"):
            raise ValueError(f"--{name} was given an empty value; is a variable unset?")
    for sources in axes.get("data", ()):
        paths = [os.path.realpath(source) for source in sources]
        for source, path in zip(sources, paths):
            if paths.count(path) > 1:  # what is held out would count twice
                raise ValueError(f"--data has {source} twice; give each source once")
    for folder in axes.get("tokenizer", ()):
        if os.path.isfile(folder):
            raise ValueError(f"--tokenizer {folder} is a file; give the folder that holds it")
        within = os.path.join(folder, "tokenizer")
        if os.path.isdir(within):  # as in a run's folder
            raise ValueError(f"--tokenizer {folder} holds the folder tokenizer; give {within}")
    done = [name for name in (*HEEDED, "resume", "bench") if a[name]]
    if a["bench"] and a["dry_run"]:
        done.append("dry_run")
    if len(done) > 1:
        raise ValueError(f"--{done[0]} and --{done[1]} are two things to do; give one of them")
    doing = done[0] if done else None
    if doing and doing != "bench":
        runs(a[doing], doing)
    if doing in HEEDED:
        look_flags(a, axes, doing)
    if doing != "sample":
        for name in OF_SAMPLE:
            if a[name] is not None:
                raise ValueError(f"--{name} has no effect without --sample RUN_DIR")
    for name in ("preset", "study", "match_params", "jobs", "yes"):
        if doing == "resume" and a[name] not in (None, False):
            raise ValueError(f"--resume keeps the run's settings; leave out --{name}")
    if a["against"] is not None and doing != "bench":
        raise ValueError("--against belongs to --bench; give both")
    for name in ("out_dir", "name"):
        if doing == "bench" and name in axes:
            raise ValueError(f"--{name} has no effect with --bench, which writes nothing")
    folders(a, axes, doing)
    sampling(a)
    grid_flags(a, axes)


def folders(a, axes, doing):
    """Raise ValueError for a place in which a run could not write, before its data is read."""
    for name in axes.get("name", ()):
        inside = os.path.normpath(name)
        if name and (os.path.isabs(name) or inside.split(os.sep)[0] in (".", "..")):
            where = "is not within --out_dir; give a name, as in --name try1"
            raise ValueError(f"--name {name} {where}")
        if max(len(part) for part in name.encode(errors="replace").split(b"/")) > 255:
            raise ValueError(f"--name {name:.40}… is too long; give at most 255 bytes")
    places = [("out_dir", place) for place in axes.get("out_dir", ())]
    if not places and doing in (None, "attention"):
        places.append(("out_dir", md.TrainConfig.out_dir))
    if doing == "resume":
        places.append(("resume", a["resume"]))
    for flag, place in places:
        check_place(flag, place)


def check_place(flag, place):
    """Raise ValueError for the value of a flag that is no folder, or none that can be made."""
    here = os.path.abspath(place)
    while not os.path.lexists(here) and here != os.path.dirname(here):  # a drive may be gone
        here = os.path.dirname(here)
    if not os.path.isdir(here):
        raise ValueError(f"--{flag} {place}: {here} is not a folder; give one")
    try:  # what a folder says of itself does not tell: it may be a system's own
        tempfile.TemporaryFile(dir=here).close()
    except OSError as error:
        why = f"nothing can be written in {here} ({error.strerror}); give another folder"
        raise ValueError(f"--{flag} {place}: {why}") from None


def runs(given, doing):
    """Raise ValueError for what is no run's folder; --attention is given several, --export_hf one
    and where to write."""
    folders = given if isinstance(given, list) else [given]
    for folder in folders[:1] if doing == "export_hf" else folders:
        if not os.path.isdir(folder):
            raise ValueError(f"--{doing} {folder} is not there; give a run's folder, as runs/NAME")
        if not os.path.lexists(os.path.join(folder, "config.json")):
            raise ValueError(f"--{doing} {folder} holds no run; give a run's folder, as runs/NAME")


def look_flags(a, axes, doing):
    """Raise ValueError for flags of training beside one that looks at trained runs."""
    for name, values in axes.items():
        # code of one's own that made a run's data is named again, whatever is done
        code = name in ("data", "loader") and ".py" in str(values[0])
        if name not in HEEDED[doing] and not code:
            raise ValueError(f"--{name} has no effect with --{doing}, which trains nothing")
        if len(values) > 1:
            raise ValueError(f"--{name} has several values, but --{doing} takes one; give one")
        for path in values[0] if name == "data" else values:
            if str(path).endswith(".py"):
                own_code.is_there(path, name)
    for name in ("preset", "study", "match_params", "dry_run", "jobs", "yes"):
        if a[name] not in (None, False):
            raise ValueError(f"--{name} has no effect with --{doing}, which trains nothing")


def sampling(a):
    """Raise ValueError for what --sample cannot do."""
    most, temperature = a["max_new_tokens"], a["temperature"]
    if most is not None and not 1 <= most <= MOST_TOKENS:
        limit = f"from 1 to {MOST_TOKENS:,}"
        raise ValueError(f"--max_new_tokens {most!s:.40} does not work; give a number {limit}")
    # a lower one divides by so little that the numbers overflow
    if temperature and not 0.001 <= temperature <= 1000:
        raise ValueError(f"--temperature {temperature} does not work; give 0, or 0.001 to 1000")


def grid_flags(a, axes):
    """Raise ValueError for flags of a grid where there is none, or that make no sense."""
    if a["jobs"] is not None and not 1 <= a["jobs"] <= 1000:
        raise ValueError(f"--jobs {a['jobs']!s:.40} does not work; give at least 1")
    if a["match"] not in (None, "total", "blocks"):
        raise ValueError(f"--match {a['match']:.40} is unknown; give total or blocks")
    if a["match"] and a["match_params"] is None:
        raise ValueError("--match has no effect without --match_params N")
    if a["match_params"] is not None and a["match_params"] > 10_000:
        n = f"{a['match_params']!s:.40}"
        raise ValueError(f"--match_params {n} does not work; give a number of layers, 1 to 10,000")
    several = any(len(values) > 1 for values in axes.values())
    if a["study"] or a["match_params"] is not None or several:
        return
    for name in ("jobs", "yes"):
        if a[name]:
            raise ValueError(f"--{name} has no effect on a single run; it is for a grid")


def files(t):
    """Raise ValueError for a file of data that is not there, before a grid starts its first run."""
    for source in t.data:
        if source.endswith(md.FILES) and not os.path.exists(source):
            raise ValueError(f"data {source} is not there; give the path of a file")


def its_loader(t):
    """Raise ValueError for a loader that is none, or for sizes that it does not have."""
    loader = registry.loader(t.loader)
    if hasattr(loader, "SIZES"):
        sizes_of(t.sizes, loader.SIZES, f"the loader {t.loader}")


def grid_data(cells):
    """Raise ValueError, before a grid's first run starts, for data that no run could be made of: a
    file that is not there, a loader that is none, sizes or epochs that the data does not take."""
    kinds = {}
    for cell in cells:
        t = cell.t
        files(t)
        kinds[repr((t.data, t.loader, t.sizes, t.epochs, cell.m.block_size))] = cell
    for cell in kinds.values():
        if cell.t.loader:
            its_loader(cell.t)
        elif names_task(cell.t.data[0]):
            md.complete_configs(cell.m, cell.t, registry.data_of(cell.t, cell.m.block_size))
        elif cell.t.sizes:
            md.load_data(cell.t)  # says that text takes none


# ---------- memory ----------


def machine_memory(device):
    """Bytes of memory that a device has, or None where nobody says."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[1]
    found = []
    try:
        found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
        with open("/sys/fs/cgroup/memory.max", encoding="ascii") as f:  # a container's own limit
            found.append(int(f.read()))
    except (AttributeError, OSError, ValueError):  # Windows has no sysconf, others no such file
        pass
    return min(found, default=None)


def needed(m, t, device):
    """{what: (bytes that training takes, flags that lower them)}, for one GPU where several share a
    batch."""
    gpus = md.processes()[1]
    if device.type == "cuda" and gpus == 1:
        gpus = torch.cuda.device_count()
    half = bool(md.pick_precision(t.precision, device))
    parts = step_memory(m, t, half, gpus)
    activations, logits = parts.pop("activations"), parts.pop("logits")
    of_weights = sum(parts.values())
    tokens = 16 * t.batch_size * m.block_size * t.grad_accum
    rows = 500 * t.max_rows if "embedded" in t.data else 0
    return {
        "weights, gradients and AdamW's moments": (
            of_weights,
            "--n_layers, --d_model, --vocab_size",
        ),
        "a batch's activations": (activations, "--batch_size, --block_size"),
        "the loss of a batch": (logits, "--vocab_size, --batch_size, --d_model"),
        "a batch's tokens": (tokens, "--batch_size, --grad_accum"),
        "the rows": (rows, "--max_rows"),
    }


def enough_memory(m, t):
    """Raise ValueError, in no time and before any is taken, for what needs more memory than the
    machine has, as memory.step_memory() estimates it."""
    device = md.pick_device(t.device)
    there = machine_memory(device)
    parts = needed(m, t, device)
    total = sum(size for size, _ in parts.values())
    if there is None or total <= there:
        return
    what = max(parts, key=lambda name: parts[name][0])
    size, lower = parts[what]
    raise ValueError(
        f"training needs at least {gib(total)} of memory, {gib(size)} for {what}; "
        f"{device.type} has {gib(there)}; lower {lower}"
    )


def gib(size):
    return f"{size / 2**30:,.1f} GiB"


# ---------- text from outside ----------

# what a terminal obeys, halves of characters, and marks that turn the direction of writing
UNSEEN = r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"


def visible(text):
    """The text with control characters spelled out, all but line ends and tabs."""
    return re.sub(UNSEEN, lambda found: ascii(found[0])[1:-1], text)


def one_line(message, most=1000):
    """A message as one line that a terminal shows, its middle left out if it is very long."""
    line = " ".join(visible(str(message)).split())
    if len(line) > most:
        line = f"{line[: most // 2]} … {line[-most // 2 :]}"
    return line


# ---------- after training ----------


@contextlib.contextmanager
def drawn(what):
    """Let no error in a figure, drawn when the training is over, take the rest with it."""
    try:
        yield
    except Exception as error:  # code of one's own, a backend that is not there
        why = one_line(error) or type(error).__name__
        print(f"train.py: {what} could not be drawn: {why}", file=sys.stderr)
