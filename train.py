"""Train a minidepth model: python train.py --n_layers 12. Every flag: python train.py --help."""

import argparse
import concurrent.futures
import contextlib
import dataclasses
import itertools
import json
import math
import os
import shlex
import signal
import statistics
import subprocess
import sys
import time

import torch

import minidepth as md

FIELDS = [f for kind in (md.ModelConfig, md.TrainConfig) for f in dataclasses.fields(kind)]


# ---------- flags: one for each field of the configs, and those that choose what is done ----------


class Parser(argparse.ArgumentParser):
    def error(self, message):
        self.exit(2, f"train.py: {message}; see python train.py --help\n")


def numbers(text):
    """'2,3' → (2, 3), '2' → (2,)"""
    return tuple(int(part) for part in text.split(","))


KINDS = {  # how one value of a flag is read, where its type does not say
    "n_heads": lambda text: numbers(text) if "," in text else int(text),
    "problem_steps": numbers,
    "problem_families": lambda text: tuple(text.split(",")),
    "hops": numbers,
    "warmup_steps": lambda text: float(text) if "." in text else int(text),
    "sizes": lambda text: tuple(text.split(",")),
}
ONCE = ("out_dir", "name", "device")  # flags that make no grid


def make_parser():
    parser = Parser(
        description="Train a Transformer of any depth and see what the depth did.",
        epilog="Defaults are the report's; the laptop preset's own are in brackets.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--preset",
        default="auto",
        help=f"auto (report with CUDA, else laptop), {', '.join(md.PRESETS)}",
    )
    for title, kind in (("model", md.ModelConfig), ("data and training", md.TrainConfig)):
        group = parser.add_argument_group(title)
        for f in dataclasses.fields(kind):
            default = "unset" if f.default in (None, "") else f.default
            default = ",".join(map(str, default)) if isinstance(default, tuple) else default
            laptop = md.PRESETS["laptop"].get(f.name, "")
            laptop = ",".join(map(str, laptop)) if isinstance(laptop, tuple) else laptop
            text = f"{f.metadata['help']} ({default}{f' [{laptop}]' if laptop != '' else ''})"
            options = dict(default=argparse.SUPPRESS, help=text.replace("%", "%%"))
            if f.type is bool:
                options["action"] = argparse.BooleanOptionalAction
            elif f.name == "data":
                options |= dict(nargs="+", metavar="SOURCE")
            else:
                metavar = f"{{{','.join(f.metadata['choices'])}}}" if f.metadata["choices"] else "X"
                options |= dict(type=KINDS.get(f.name, f.type), metavar=metavar)
                options |= {} if f.name in ONCE else dict(nargs="+")
            group.add_argument(f"--{f.name}", **options)
    grid = parser.add_argument_group("several values of flags train every combination")
    grid.add_argument("--jobs", type=int, default=1, metavar="N", help="runs at a time (1)")
    grid.add_argument("--study", metavar="NAME", help=f"all runs of a study: {', '.join(STUDIES)}")
    matched = "as wide as gives the parameters of N layers"
    grid.add_argument("--match_params", type=int, metavar="N", help=matched)
    grid.add_argument(
        "--match", default="total", metavar="{total,blocks}", help="of --match_params"
    )
    grid.add_argument("--yes", action="store_true", help="train even more than 200 runs")
    do = parser.add_argument_group("instead of training anew")
    do.add_argument("--dry_run", action="store_true", help="print the facts, train nothing")
    do.add_argument("--bench", action="store_true", help="time training steps on random tokens")
    do.add_argument("--resume", metavar="RUN_DIR", help="go on with a run that was stopped")
    do.add_argument("--sample", metavar="RUN_DIR", help="let a trained model answer --prompt")
    do.add_argument("--mechanism", metavar="RUN_DIR", help="show which heads solve a depth task")
    do.add_argument("--prompt", metavar="TEXT", help="the user's turn for --sample")
    do.add_argument("--temperature", type=float, default=0.0, metavar="X", help="of --sample (0)")
    do.add_argument(
        "--max_new_tokens", type=int, default=256, metavar="X", help="of --sample (256)"
    )
    do.add_argument("--score", metavar="RUN_DIR", help="answer multiple-choice rows of --data")
    do.add_argument("--attention", nargs="+", metavar="RUN_DIR", help="measure and draw attention")
    do.add_argument(
        "--export_hf",
        nargs=2,
        metavar=("RUN_DIR", "OUT_DIR"),
        help="write it as GPT-2 for transformers",
    )
    return parser


def pick_preset(name, data=(), study=None):
    """The preset's name, and why it was taken."""
    if name != "auto":
        return name, "as asked"
    if study == "llmini" or (study == "heads" and torch.cuda.is_available()):
        return dict(llmini="llmini-c").get(study, study), f"the study {study} is about it"
    if md.TASKS.keys() & set(data):
        return "tasks", f"{data[0]} is a depth task"
    if torch.cuda.is_available():
        return "report", f"{torch.cuda.device_count()} CUDA GPU found"
    return "laptop", "no CUDA GPU found"


# ---------- what is printed and drawn ----------


def facts(m, t, data=None):
    """What follows from the settings, as the lines printed before the first step."""
    device = md.pick_device(t.device)
    _, why = md.pick_precision(t.precision, device)
    lines = [f"device {md.provenance(device)['device']}; {why}"]
    T = m.block_size
    if data:
        m, T = dataclasses.replace(m, vocab_size=m.vocab_size or data.n_words), data.val[0].size(1)
    tokens = t.batch_size * t.grad_accum * T
    heads = m.heads[0] if len(set(m.heads)) == 1 else ",".join(map(str, m.heads))
    lines.append(
        f"model {m.n_layers} layer"
        + "s" * (m.n_layers > 1)
        + f" looped {m.n_loops} times" * (m.n_loops > 1)
        + f", d_model {m.d_model}, d_ff {m.d_ff}, {heads} heads, block {m.block_size}"
        + f", {m.vocab_size:,} words" * (m.vocab_size > 0)
        + ", head tied to the embedding" * m.tie_weights
    )
    if m.vocab_size:
        n = md.parameters(m)
        lines.append(
            f"parameters {n['total']:,}: embedding {n['embedding']:,}, position {n['position']:,}, "
            f"blocks {n['blocks']:,}, head {n['head']:,}, final norm {n['final_norm']:,}"
        )
        lines.append(
            f"memory {n['total'] * 16 / 2**30:.2f} GiB for weights, gradients and AdamW's moments; "
            "activations come on top"
        )
    else:
        lines.append("parameters: known when the data has given the tokenizer its words")
    steps = f"{t.steps} steps" if data or not t.epochs else f"{t.epochs} epochs"
    warmup = f"{t.warmup_steps:g}" if t.warmup_steps >= 1 else f"{t.warmup_steps:.0%} of them"
    lines.append(
        f"step {t.batch_size} x {t.grad_accum} x {T} = {tokens:,} tokens; {steps}, "
        f"learning rate up to {t.lr:g} in {warmup}, down to {t.lr * t.lr_floor:g}"
    )
    if not data:
        lines.append(f"data {' + '.join(t.data)}, tokenizer {t.tokenizer} (not loaded)")
        return lines
    if data.draw:
        f = data.facts
        sizes = ", ".join(f"{key} {shown(value)}" for key, value in f["sizes"].items())
        lines.append(
            f"data {t.data[0]} ({sizes}), drawn anew each step; {len(data.val[0]):,} test "
            f"sequences; accuracy of guessing {f['guess']:.3f}, of a shortcut {f['shortcut']:.3f}"
        )
        return lines
    f, n_blocks = data.facts, len(data.train[0])
    used = min(1.0, n_blocks * T / f["train_tokens"]) if t.packing == "pack" else 1.0
    filled = min(1.0, f["train_tokens"] / (n_blocks * T))
    learned = (data.train[1] != -100).sum().item() / f["train_tokens"]
    lines.append(
        f"data {' + '.join(t.data)}: {f['train_rows']:,} rows, {f['val_rows']:,} held out"
        + f", {f['unusable_rows']:,} unusable" * (f["unusable_rows"] > 0)
        + f"; {f['train_tokens']:,} tokens in {n_blocks:,} blocks, {used:.1%} of them used, "
        f"{learned:.1%} with a loss; {filled:.1%} of positions filled; "
        f"{t.steps * tokens / (n_blocks * T):.1f} epochs"
    )
    return lines


@contextlib.contextmanager
def drawing(path, rows=1, columns=1, size=(6, 4), **options):
    """Gives a figure and its axes, (rows, columns) or one, and writes the figure when done."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(rows, columns, figsize=size, layout="constrained", **options)
    yield figure, axes
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    md.write_file(path, lambda f: figure.savefig(f, dpi=150))
    plt.close(figure)


def heat_map(axes, rows, form=None, vmax=None):
    """Rows of numbers, which may differ in length, as colours from 0 up, counted from 1; with
    `form` their numbers too → the image, for a colour bar."""
    width = max(map(len, rows))
    grid = [[*row, *[math.nan] * (width - len(row))] for row in rows]
    image = axes.imshow(grid, vmin=0, vmax=vmax, cmap="viridis", aspect="auto")
    for axis, n in ((axes.xaxis, width), (axes.yaxis, len(rows))):
        some = range(0, n, 1 + n // 13)
        axis.set_ticks(some, [i + 1 for i in some])
    for y, row in enumerate(rows if form else ()):
        for x, value in enumerate(row):
            dark = value < 0.6 * (vmax or 1)
            axes.text(x, y, f"{value:{form}}", ha="center", va="center", color="kw"[dark])
    return image


def draw_logs(logs, path):
    """Train and validation loss over the steps of {name: log}, ours or md.published(), in one
    figure; and the accuracy where a log has it at every evaluation, as the depth tasks' do."""
    with drawing(path) as (_, axes):
        kinds = {"train_loss": ("train, one batch", "o-"), "val_loss": ("validation", "s-")}
        for number, (name, log) in enumerate(logs.items()):
            steps = [row["step"] for row in log]
            for shade, (key, (label, style)) in enumerate(kinds.items()):
                look = dict(markersize=3, color=f"C{2 * number + shade}")
                axes.plot(steps, [row[key] for row in log], style, label=f"{name}: {label}", **look)
            if all("accuracy" in row for row in log):
                right = axes.twinx()
                values = [row["accuracy"] for row in log]
                right.plot(
                    steps, values, "^-", color="C4", label="accuracy, test split", markersize=3
                )
                right.set(ylabel="accuracy (share of targets)", ylim=(-0.02, 1.02))
                right.legend(loc="center right", fontsize="small")
        axes.set(xlabel="optimizer step", ylabel="loss (nats a token)")
        axes.set_yscale("log")  # most of the fall is in the first steps, most of the story later
        axes.yaxis.set_major_formatter("{x:g}")
        axes.grid(alpha=0.3, which="both")
        axes.legend(fontsize="small")


def draw_curve(run, t):
    """curve.png of a run, beside the published log where it is one of the report's two."""
    logs, n = {os.path.basename(run.dir)[-40:]: run.log}, run.model.config.n_layers
    if t.data == (md.REPORT_DATA,) and n in (1, 12):
        logs["published"] = md.published(f"report_log_{n}_layers")
    draw_logs(logs, os.path.join(run.dir, "curve.png"))


def show_answers(run, t, problems):
    """One held-out problem with the model's answer, and the accuracy over all asked."""
    problems = problems[: t.eval_problems]
    if not problems:
        return
    p = max(problems, key=lambda p: p.get("steps", 0))
    text = md.answer_texts(run.model, run.tokenizer, [p])[0]
    print(f"\nheld-out problem: {p['messages'][-1]['content']}\nmodel: {text.strip()}")
    print(f"right answer: {p['answer']}\n")
    guess = [p["guess"] for p in problems if "guess" in p]
    guessing = f", guessing {sum(guess) / len(guess):.3f}" if guess else ""
    n, accuracy = len(problems), run.log[-1]["accuracy"]
    print(f"answer accuracy {accuracy:.3f} on {n} held-out problems{guessing}")


# ---------- what the command does ----------


@contextlib.contextmanager
def stop_requests():
    """While active, Ctrl-C and SIGTERM are only noted, so that no step is cut in two."""
    noted = []

    def note(number, frame):
        if noted:  # a second one does not wait
            raise KeyboardInterrupt
        noted.append(number)

    before = {s: signal.signal(s, note) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield noted
    finally:
        for s, handler in before.items():
            signal.signal(s, handler)


def run_training(m, t, resume=False):
    """Load the data, print the facts, train, draw, answer; the exit code."""
    first = int(os.environ.get("RANK", 0)) == 0  # under torchrun one process speaks
    folder = os.path.join(t.out_dir, t.name)
    # train() refuses this too, but only after the data has been loaded for it
    if not resume and os.path.exists(os.path.join(folder, "config.json")):
        raise ValueError(f"{folder} exists; go on with --resume {folder}, or give another --name")
    data = md.load_data(t, m.block_size, md.saved_tokenizer(folder) if resume else None)
    t = md.counted_steps(t, data)
    for line in facts(m, t, data) if first else ():
        print(line)
    with stop_requests() as noted:
        run = md.train(m, t, data, resume, this_command(), stop=lambda: bool(noted))
    if first and run.log:
        draw_curve(run, t)
    if first and run.finished:
        if data.draw:
            print(f"accuracy {run.log[-1]['accuracy']:.3f} on the test split")
        show_answers(run, t, data.problems)
        print(f"wrote {run.dir}: curve.png, log.jsonl, model.safetensors")
    return 0 if run.finished else 130


def mechanism(run_dir):
    """Print, draw and write how a run solves its depth task: mechanism.json, mechanism.png."""
    (model, _), (m, t) = md.load(run_dir), md.read_config(run_dir)
    data = md.load_data(t, m.block_size)
    if not data.draw:
        raise ValueError(f"--mechanism {run_dir} was not trained on a depth task")
    found = md.mechanism(model, data, t.data[0])
    print(f"accuracy {found['accuracy']:.3f}")
    name = lambda heads: ", ".join(f"{h + 1} of layer {layer + 1}" for layer, h in heads) or "none"  # noqa: E731
    for step, part in found["steps"].items():
        print(f"{step}: heads {name(part['heads'])}; accuracy without them {part['without']:.3f}")
    text = json.dumps(found, indent=1)
    md.write_file(os.path.join(run_dir, "mechanism.json"), lambda f: f.write(text.encode()))
    draw_mechanism(model, data, found, os.path.join(run_dir, "mechanism.png"))
    print(f"wrote {run_dir}: mechanism.png, mechanism.json")


def draw_mechanism(model, data, found, path):
    """For each step the weights of the head that does it most, on one test sequence, with the
    places it should look at circled; and the accuracy without each head."""
    tokens, targets = (part[:1] for part in data.val)
    maps = md.attention_maps(model, tokens)
    links = md.links(data.draw.func.__name__, tokens, targets, **data.facts["sizes"])
    with drawing(path, 1, len(links) + 1, (4 * len(links) + 3, 4)) as (figure, drawn):
        for (step, link), axes in zip(links.items(), drawn):
            weight = found["steps"][step]["weight"]
            heads = [(w, layer, h) for layer, row in enumerate(weight) for h, w in enumerate(row)]
            most, layer, h = max(heads)
            axes.imshow(maps[layer][0, h].numpy(), cmap="Blues", vmin=0, vmax=1)
            query, key = link[0].nonzero().T.numpy()
            axes.plot(key, query, "o", markerfacecolor="none", color="C3", alpha=0.7)
            title = (
                f"{step}: layer {layer + 1}, head {h + 1}\nmean weight on the circles {most:.2f}"
            )
            axes.set(title=title, xlabel="key (place in the sequence)", ylabel="query")
        image = heat_map(drawn[-1], found["without"], ".2f", vmax=1)
        title = f"accuracy without a head\n(with all: {found['accuracy']:.2f})"
        drawn[-1].set(title=title, xlabel="head", ylabel="layer")
        figure.colorbar(image, ax=drawn[-1], shrink=0.6)


def bench(m, t, steps=10):
    """Time training steps on random tokens; what is left out is reading data and evaluating."""
    device = md.pick_device(t.device)
    half, why = md.pick_precision(t.precision, device)
    m = dataclasses.replace(m, vocab_size=m.vocab_size or 2048)
    torch.manual_seed(t.seed)
    model = md.GPT(m)
    model.half = half
    wrapped = md.parallel(model.to(device).train(), device)
    optimizer = md.make_optimizer(model, t)
    scaler = torch.amp.GradScaler(device.type, enabled=half == torch.float16)
    shape = (t.batch_size * t.grad_accum, m.block_size)
    tokens, seconds = torch.randint(m.vocab_size, shape), []
    for _ in range(steps + 2):  # the first two warm up
        began = time.perf_counter()
        md.train_step(wrapped, optimizer, scaler, tokens, tokens, t.lr, t)
        seconds.append(time.perf_counter() - began)
    seconds = sorted(seconds[2:])
    middle = statistics.median(seconds)
    print(f"device {md.provenance(device)['device']}; {why}; {m.vocab_size:,} words")
    print(
        f"median {middle * 1e3:.1f} ms a step over {steps} steps (from {seconds[0] * 1e3:.1f} to "
        f"{seconds[-1] * 1e3:.1f}), {tokens.numel() / middle:,.0f} tokens a second"
    )
    if device.type == "cuda":
        print(f"peak memory {torch.cuda.max_memory_allocated() / 2**30:.2f} GiB on GPU 0")
        return
    with contextlib.suppress(ImportError):  # Windows has no such module
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(f"peak memory {peak * (1 if sys.platform == 'darwin' else 1024) / 2**30:.2f} GiB")


def sample(run_dir, prompt, temperature, max_new_tokens, seed):
    """Print what a model answers to the prompt, or how it goes on if trained on plain text."""
    if not prompt:
        raise ValueError("--sample needs --prompt TEXT")
    model, tokenizer = md.load(run_dir)
    if tokenizer is None:
        raise ValueError(f"--sample {run_dir} was trained on a depth task: it knows no text")
    sampling = dict(temperature=temperature, max_new_tokens=max_new_tokens, seed=seed)
    if tokenizer.chat_template:  # trained on conversations
        _, t = md.read_config(run_dir)
        messages = [dict(role="system", content=md.SYSTEM)] if t.data == ("embedded",) else []
        problem = dict(messages=[*messages, dict(role="user", content=prompt)])
        return print(md.answer_texts(model, tokenizer, [problem], **sampling)[0].strip())
    tokens = torch.tensor([tokenizer(prompt, add_special_tokens=False).input_ids])
    tokens = md.generate(model, tokens, eos=tokenizer.eos_token_id, **sampling)
    print(tokenizer.decode(tokens[0], skip_special_tokens=True))


def score(run_dir, sources, most):
    """Print the share of multiple-choice rows of each source whose right choice is likeliest."""
    model, tokenizer = md.load(run_dir)
    if tokenizer is None:
        raise ValueError(f"--score {run_dir} was trained on a depth task: it knows no text")
    model.to(md.pick_device("auto"))
    for source in sources:
        found = md.read_choices(source, most)
        scores = md.choice_scores(model, tokenizer, found)
        right = [each.index(max(each)) == answer for each, (_, _, answer) in zip(scores, found)]
        mean, half = md.interval([float(r) for r in right])
        guess = statistics.mean(1 / len(choices) for _, choices, _ in found)
        says = f" ± {half:.3f} (95 % interval)" if half >= 0 else ""
        print(f"{source}: accuracy {mean:.3f}{says} on {len(found)} rows, guessing {guess:.3f}")


def attention(run_dirs, out_dir):
    """Attention of runs on their own validation blocks, padding left out: a table and, in each
    folder, attention.json and attention.png; in out_dir the profiles of all, LLmini's beside."""
    profiles = {}
    for folder in run_dirs:
        m, t = md.read_config(folder)
        model, tokenizer = md.load(folder)
        tokens, targets = (p[: t.eval_blocks] for p in md.load_data(t, m.block_size, tokenizer).val)
        model.to(md.pick_device("auto"))
        there, kinds = md.filled(tokens, targets), dict(valid=False, count_masked=True)
        found = {k: md.model_stats(model, tokens.long(), v, there) for k, v in kinds.items()}
        about = {
            k: {name: [h.tolist() for h in v] for name, v in f.items()} for k, f in found.items()
        }
        about |= dict(queries=int(there.sum()), blocks=len(tokens), block_size=tokens.size(1))
        text = json.dumps(about, indent=1).encode()
        md.write_file(os.path.join(folder, "attention.json"), lambda f: f.write(text))
        draw_attention(found["valid"], os.path.join(folder, "attention.png"), folder)
        profile = {k: [h.mean().item() for h in v] for k, v in found["valid"].items()}
        profile["counted"] = [h.mean().item() for h in found["count_masked"]["sparsity"]]
        name = f"{os.path.basename(os.path.normpath(folder))}, {about['block_size']} tokens"
        profiles[name] = profile
        print(
            f"{folder}: {about['queries']:,} queries in {about['blocks']} validation blocks of "
            f"{about['block_size']}, means over heads\n"
            "| layer | entropy (nats) | normalised | effective keys | sparsity "
            "| relative sparsity | sparsity, mask counted |\n|---|---|---|---|---|---|---|"
        )
        for layer, row in enumerate(zip(*profile.values()), 1):
            print(f"| {layer} | {' | '.join(f'{value:.3f}' for value in row)} |")
    path = os.path.join(out_dir, "attention_profiles.png")
    draw_profiles(profiles, path)
    print(f"wrote {path}; in each folder attention.json, attention.png")


def draw_attention(stats, path, title):
    """Heat maps of entropy and sparsity, layer by head; head counts may differ."""
    H, L = max(map(len, stats["entropy"])), len(stats["entropy"])
    with drawing(path, 1, 2, (5 + 0.4 * H, 2 + 0.25 * L)) as (figure, drawn):
        units = dict(entropy="nats", sparsity="share below 0.001")
        for axes, (name, unit) in zip(drawn, units.items()):
            image = heat_map(axes, [layer.tolist() for layer in stats[name]])
            figure.colorbar(image, ax=axes, label=f"{name} ({unit})")
            axes.set(xlabel="head", ylabel="layer")
        figure.suptitle(os.path.basename(os.path.normpath(title)), fontsize="medium")


MASKED = 255 / 512  # share of masked entries in the published maps of 256 x 256


def draw_profiles(profiles, path):
    """Entropy and sparsity by layer of several runs, beside LLmini's A, B and C."""
    profiles = dict(profiles)
    for model in "abc":
        rows = [row for row in md.published("llmini_attention") if row[f"entropy_{model}"] != ""]
        entropy, counted = ([row[f"{k}_{model}"] for row in rows] for k in ("entropy", "sparsity"))
        valid = [(s - MASKED) / (1 - MASKED) for s in counted]
        name = f"LLmini {model.upper()}, published, 256 tokens"
        profiles[name] = dict(entropy=entropy, counted=counted, sparsity=valid)
    with drawing(path, 1, 3, (13, 4.5)) as (figure, drawn):
        panels = dict(
            entropy="entropy (nats)",
            counted="share below 0.001, masked entries counted",
            sparsity="share below 0.001, of keys in sight",
        )
        for axes, (key, label) in zip(drawn, panels.items()):
            for name, profile in profiles.items():
                style = "--s" if "published" in name else "-o"
                axes.plot(
                    range(1, len(profile[key]) + 1), profile[key], style, label=name, markersize=4
                )
            axes.set(xlabel="layer", ylabel=label)
            axes.set_ylim(bottom=0)
            axes.xaxis.get_major_locator().set_params(integer=True)
            axes.grid(alpha=0.3)
        handles, labels = drawn[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize="small")


# ---------- grids: a run for each combination of values, a table and figures of them ----------

METRICS = {  # of the table: heading, format
    "accuracy": ("accuracy", ".3f"),
    "val_loss": ("validation loss", ".3g"),
    "best_val_loss": ("best validation loss", ".3g"),
    "train_loss_eval": ("train loss, no dropout", ".3g"),
    "params_total": ("parameters", ",.0f"),
    "params_blocks": ("in blocks", ",.0f"),
    "tokens_per_second": ("tokens a second", ",.0f"),
    "seconds": ("seconds", ".1f"),
}


def this_command():
    """The command line that runs, without the machine's paths to Python and to this file."""
    return shlex.join(["python", os.path.basename(sys.argv[0]), *sys.argv[1:]])


def shown(value):
    """A setting as it is typed: (8, 4) → 8,4"""
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def flags(settings):
    """Settings as the command line that gives them."""
    line = []
    for key, value in settings.items():
        if isinstance(value, bool):
            line.append(f"--{key}" if value else f"--no-{key}")
        elif key == "data":
            line += ["--data", *value]
        else:
            line += [f"--{key}", shown(value)]
    return line


def is_finished(m, t):
    """Whether the run's folder holds it, to the end; ValueError if it holds a different one."""
    folder = os.path.join(t.out_dir, t.name)
    if not os.path.exists(os.path.join(folder, "config.json")):
        return False
    was_m, was_t = md.read_config(folder)
    m = dataclasses.replace(m, vocab_size=m.vocab_size or was_m.vocab_size)
    t = dataclasses.replace(t, out_dir=was_t.out_dir, name=was_t.name, device=was_t.device)
    t.steps = was_t.steps if t.epochs else t.steps  # as many as the data made of them
    if (m, t) != (was_m, was_t):
        raise ValueError(f"{folder} holds a run with other settings; give another --out_dir")
    with contextlib.suppress(ValueError):
        return bool(md.result(folder))
    return False


@dataclasses.dataclass
class Cell:
    """A run of a grid."""

    labels: dict  # what tells it from the others
    settings: dict  # what differs from the preset
    m: md.ModelConfig
    t: md.TrainConfig

    def __str__(self):
        return ", ".join(f"{key} {shown(value)}" for key, value in self.labels.items())

    @property
    def folder(self):
        return os.path.join(self.t.out_dir, self.t.name)

    @property
    def cost(self):
        """Its share of the grid's time, in layers passed: near enough for a progress bar."""
        return self.t.steps * (self.m.n_layers * self.m.n_loops + 1)

    def run(self, preset, environment):
        """Train it in a process of its own, or go on if it was stopped → exit code, last line."""
        os.makedirs(self.folder, exist_ok=True)
        what = ["--preset", preset, *flags(self.settings), "--name", self.t.name]
        if os.path.exists(os.path.join(self.folder, "config.json")):
            what = ["--resume", self.folder]
        with open(os.path.join(self.folder, "stdout.txt"), "a+", encoding="utf-8") as out:
            command = [sys.executable, os.path.abspath(__file__), *what]
            code = subprocess.call(command, stdout=out, stderr=out, env=environment)
            out.seek(0)
            return code, (out.read().strip().splitlines() or ["no output"])[-1]


def grid(preset, cells, jobs=1, yes=False, dry_run=False, study=None):
    """Train every (labels, settings) of cells; the exit code. What is finished is skipped, what
    was stopped goes on, what fails is reported at the end; the others make the summary."""
    from tqdm import tqdm

    if len(cells) > 200 and not yes:
        raise ValueError(f"{len(cells)} runs are more than 200; give --yes if you mean it")
    if jobs < 1:
        raise ValueError(f"--jobs {jobs} does not work; give at least 1")
    if int(os.environ.get("WORLD_SIZE", 1)) > 1:
        raise ValueError("several values of a flag make a grid, which runs without torchrun")
    # settings that cannot work are told here, before anything is trained
    cells = [Cell(labels, s, *md.configs(preset, **s)) for labels, s in cells]
    name = cells[0].t.name or (f"study_{study}_{preset}" if study else grid_name(preset, cells))
    folder = os.path.join(cells[0].t.out_dir, name)
    for cell in cells:
        cell.t.name = os.path.join(cell.t.name, run_name(preset, cell.settings))
    todo = [cell for cell in cells if not is_finished(cell.m, cell.t)]
    print(f"{len(cells)} runs, {len(cells) - len(todo)} finished before, {jobs} at a time")
    if dry_run:
        return print("\n".join(map(str, todo)))
    environment, failed = dict(os.environ), []
    if jobs > 1:  # threads of two runs that wait for the same core slow both down manifold
        environment["OMP_NUM_THREADS"] = str(max(1, (os.cpu_count() or 1) // jobs))
    bar = tqdm(total=sum(cell.cost for cell in todo), disable=None, unit_scale=True, unit="layer")
    pool = concurrent.futures.ThreadPoolExecutor(jobs)
    futures = {pool.submit(cell.run, preset, environment): cell for cell in todo}
    try:
        for number, future in enumerate(concurrent.futures.as_completed(futures), 1):
            cell, (code, line) = futures[future], future.result()
            if code == 0:
                row = md.result(cell.folder)
                found = [f"{METRICS[key][0]} {row[key]:.4g}" for key in METRICS if key in row]
                line = f"{', '.join(found[:2])} ({row['seconds']:.0f}s)"
            else:
                failed.append((cell, line))
            bar.write(f"[{number}/{len(todo)}] {cell}: {line}")
            bar.update(cell.cost)
    finally:  # after Ctrl-C the runs under way save themselves; the others do not begin
        pool.shutdown(cancel_futures=True)
        bar.close()
    lost = [cell for cell, _ in failed]
    if len(lost) < len(cells):
        summarize(folder, [cell for cell in cells if cell not in lost], study)
    for cell, line in failed:
        print(f"train.py: {cell} failed: {line}", file=sys.stderr)
    return 1 if failed else 0


def grid_name(preset, cells):
    """A folder's name for a grid: the preset and every value of what was changed."""
    values = {key: {shown(c.settings[key]): 0 for c in cells} for key in cells[0].settings}
    return run_name(f"grid_{preset}", {key: "+".join(each) for key, each in values.items()})


def records(cells):
    """Finished runs as dicts of `labels` and numbers, one a run; for khop one for each k."""
    for cell in cells:
        row, labels = md.result(cell.folder), {k: shown(v) for k, v in cell.labels.items()}
        keep = (*METRICS, "depth", "guess", "shortcut", "accuracy_by_problem")
        found = {key: row[key] for key in keep if key in row}
        if "accuracy_by_hops" not in row:
            yield dict(labels=labels, **found)
        for k, accuracy in row.get("accuracy_by_hops", {}).items():
            _, shortcut = md.chance("khop", **md.sizes_of(cell.t) | dict(hops=(int(k),)))
            found |= dict(accuracy=accuracy, shortcut=shortcut)
            yield dict(labels=labels | dict(hops=k), **found)


def grouped(runs):
    """records() → {labels without the seed, as pairs: the runs of all seeds}."""
    groups = {}
    for run in runs:
        key = tuple(pair for pair in run["labels"].items() if pair[0] != "seed")
        groups.setdefault(key, []).append(run)
    return groups


def summarize(folder, cells, study=None):
    """Print a table of finished runs, a row for the seeds of the same labels, and write it with
    its numbers and figures: summary.md, summary.json, summary.png, for khop hops.png."""
    runs = list(records(cells))
    metrics = [key for key in METRICS if all(key in run for run in runs)]
    lines, table = [], []
    for key, rows in grouped(runs).items():
        found = {metric: md.interval([row[metric] for row in rows]) for metric in metrics}
        known = {
            metric: (mean, half if half >= 0 else None) for metric, (mean, half) in found.items()
        }
        table.append(dict(labels=dict(key), n=len(rows), **known))
        forms = [(mean, half, METRICS[metric][1]) for metric, (mean, half) in found.items()]
        texts = [f"{mean:{f}}" + (f" ± {half:{f}}" if half > 0 else "") for mean, half, f in forms]
        lines.append([*(value for _, value in key), str(len(rows)), *texts])
    heads = [*table[0]["labels"], "n", *(METRICS[metric][0] for metric in metrics)]
    lines = [heads, ["---"] * len(heads), *lines]
    text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    about = dict(command=this_command(), date=time.strftime("%Y-%m-%d"))
    about |= md.provenance(md.pick_device("auto"))
    note = "Mean ± half of its 95 % interval (Student's t) over n seeds. "
    note += f"`{about['command']}`, {about['date']}, {about['device']}, "
    note += f"PyTorch {about['versions']['torch']}"
    os.makedirs(folder, exist_ok=True)
    if "model" in table[0]["labels"]:
        lines = [*differences(runs, [m for m in metrics if m in ("accuracy", "val_loss")])]
        about["differences"] = lines
        text += "\n\n" + "\n".join(f"- {line}" for line in lines)
        if len({run["params_total"] for run in runs}) > 1:
            draw_plane(runs, os.path.join(folder, "plane.png"))
        if study == "heads":
            draw_heads(runs, os.path.join(folder, "heads.png"))
    print(f"{text}\n{note}")
    about |= dict(table=table, runs=runs)
    files = {"summary.md": f"{text}\n\n{note}\n", "summary.json": json.dumps(about, indent=1)}
    for name, content in files.items():
        md.write_file(os.path.join(folder, name), lambda f: f.write(content.encode()))
    draw_summary(runs, os.path.join(folder, "summary.png"))
    if {"hops", "n_layers"} <= table[0]["labels"].keys():
        draw_hops(runs, os.path.join(folder, "hops.png"))
    kinds = {tuple(run.get("accuracy_by_problem", ())) for run in runs}
    if len(kinds) == 1 and kinds != {()}:  # the same problems in all runs
        draw_problems(runs, os.path.join(folder, "problems.png"))
    print(f"wrote {folder}: summary.png, summary.md, summary.json")


def differences(runs, metrics):
    """What each model of a study has over each other one, seed by seed, as sentences."""
    values = {}
    for run in runs:
        values.setdefault(run["labels"]["model"], {})[run["labels"].get("seed")] = run
    for metric, (a, b) in itertools.product(metrics, itertools.combinations(values, 2)):
        seeds = values[a].keys() & values[b].keys()
        gaps = [values[b][seed][metric] - values[a][seed][metric] for seed in seeds]
        # of models named GROUP: NAME only those of a group
        if len(gaps) > 1 and a.rpartition(": ")[0] == b.rpartition(": ")[0]:
            mean, half = md.interval(gaps)
            says = "excludes 0" if abs(mean) > half else "does not exclude 0"
            yield (
                f"{METRICS[metric][0]}, {b} minus {a}: {mean:+.3f}, 95 % interval from "
                f"{mean - half:+.3f} to {mean + half:+.3f}, {says} (n = {len(gaps)}, same seeds)"
            )


def draw_plane(runs, path):
    """The models of a study by parameters and depth, with the mean and interval of accuracy, or
    of validation loss where there is none."""
    metric = "accuracy" if "accuracy" in runs[0] else "val_loss"
    with drawing(path, size=(6, 4.5)) as (_, axes):
        for key, rows in grouped(runs).items():
            mean, half = md.interval([row[metric] for row in rows])
            x, y = rows[0]["params_total"], rows[0]["depth"]
            axes.plot(x, y, "o", markersize=9)
            text = f"{dict(key)['model']}\n{mean:.3f}" + (f" ± {half:.3f}" if half > 0 else "")
            axes.annotate(text, (x, y), xytext=(0, 9), textcoords="offset points", ha="center")
        axes.set(xscale="log", yscale="log", xlabel="parameters", ylabel="depth (layers applied)")
        for axis, key in ((axes.xaxis, "params_total"), (axes.yaxis, "depth")):
            values = sorted({run[key] for run in runs})
            few = [
                v for i, v in enumerate(values) if i == 0 or v > 1.2 * values[i - 1]
            ]  # no overlap
            axis.set_ticks(few, labels=[f"{value:,}" for value in few])
            axis.set_ticks([], minor=True)
        axes.margins(0.25, 0.3)
        n = len(rows)
        axes.set_title(
            f"{METRICS[metric][0]}: mean and half of its 95 % interval, n = {n}", size="medium"
        )
        axes.grid(alpha=0.3)


def draw_summary(runs, path):
    """Accuracy, where there is one, and validation loss over the layers, or the first label if
    they do not vary: each seed a point, and for the other labels a line of means and intervals."""
    groups = grouped(runs)
    names = [name for name, _ in next(iter(groups))] or ["seed"]
    axis = "n_layers" if "n_layers" in names else names[0]
    ticks = list(dict.fromkeys(run["labels"][axis] for run in runs))
    curves = {}
    for key, rows in groups.items():
        rest = ", ".join(f"{name} {value}" for name, value in key if name != axis)
        for row in rows:
            curves.setdefault(rest, {}).setdefault(row["labels"][axis], []).append(row)
    panels = [key for key in ("accuracy", "val_loss") if key in runs[0]]
    size = (5 * len(panels), 4)
    with drawing(path, 1, len(panels), size, squeeze=False) as (figure, drawn):
        for metric, axes in zip(panels, drawn[0]):
            for number, (name, points) in enumerate(curves.items()):
                x = [ticks.index(t) + 0.06 * (number - (len(curves) - 1) / 2) for t in points]
                draw_points(axes, x, points.values(), metric, axis != "model", f"C{number}", name)
            axes.set_xticks(range(len(ticks)), ticks)
            axes.set_xlabel(axis)
            if sum(map(len, ticks)) > 50:
                axes.set_xticks(range(len(ticks)), ticks, rotation=25, ha="right")
            axes.grid(alpha=0.3)
            if metric == "val_loss":
                losses = [run["val_loss"] for run in runs]
                axes.set_yscale("log" if max(losses) > 3 * min(losses) else "linear")
                axes.set_ylabel("validation loss (nats a token)")
            else:
                axes.set(ylabel="accuracy on held-out data (share)", ylim=(-0.03, 1.03))
                draw_chance(axes, runs, len(ticks) - 1)
            if list(curves) != [""]:
                axes.legend(fontsize="small")
        n = len(next(iter(groups.values())))
        figure.suptitle(f"points: runs; bars: mean and 95 % interval, n = {n}", fontsize="medium")


def draw_points(axes, x, groups, metric, ordered, color, name):
    """Each run of each group a point at the group's x, with the group's mean and interval; the
    means joined by a line if the groups are in an order."""
    means, halves = [], []
    for place, rows in zip(x, groups):
        values = [row[metric] for row in rows]
        axes.plot([place] * len(values), values, "o", color=color, alpha=0.4, markersize=4)
        mean, half = md.interval(values)
        means, halves = [*means, mean], [*halves, half if half > 0 else 0]
    look = dict(fmt="-_" if ordered else "_", color=color, capsize=3)
    axes.errorbar(x, means, halves, label=name or None, **look)


def draw_chance(axes, runs, right):
    """Lines at the accuracy of guessing and of the shortcut, named at x = `right`."""
    known = {run[key]: key for key in ("guess", "shortcut") for run in runs if key in run}
    for value, key in known.items():
        axes.axhline(value, color="dimgray", linestyle=":" if key == "guess" else "--")
        place = dict(xytext=(0, 2), textcoords="offset points", ha="right")
        axes.annotate(key, (right, value), color="dimgray", fontsize="small", **place)


def draw_hops(runs, path):
    """The error of khop by k and layers, seeds averaged, beside the best from two tokens."""
    cells = {}
    for run in runs:
        at = int(run["labels"]["hops"]), int(run["labels"]["n_layers"])
        cells.setdefault(at, []).append(1 - run["accuracy"])
        cells[at[0], math.inf] = [1 - run["shortcut"]]
    rows, columns = (sorted({at[i] for at in cells}) for i in (0, 1))
    errors = [[statistics.mean(cells.get((k, L), [math.nan])) for L in columns] for k in rows]
    with drawing(path, size=(2 + len(columns), 1.5 + 0.6 * len(rows))) as (_, axes):
        heat_map(axes, errors, ".3f", vmax=1)
        axes.set(xlabel="layers", ylabel="hops", title="error on targets that are not ⊥")
        axes.set(yticklabels=rows, xticklabels=[*columns[:-1], "two tokens"])


def draw_problems(runs, path):
    """The mean accuracy on each kind of problem for each row of the table."""
    groups, kinds = grouped(runs), [*runs[0]["accuracy_by_problem"]]
    means = [
        [
            statistics.mean(run["accuracy_by_problem"][kind] for run in rows)
            for rows in groups.values()
        ]
        for kind in kinds
    ]
    names = ["\n".join(value for _, value in key) for key in groups]
    width = 0.9 + 0.08 * max(len(line) for name in names for line in name.split("\n"))
    with drawing(path, size=(2 + width * len(names), 1.5 + 0.4 * len(kinds))) as (_, axes):
        heat_map(axes, means, ".2f", vmax=1)
        axes.set_xticks(range(len(names)), names)
        axes.set_yticks(range(len(kinds)), kinds)
        axes.set(xlabel=", ".join(name for name, _ in next(iter(groups))), ylabel="problems")
        axes.set_title(
            f"mean accuracy on held-out problems, n = {len(next(iter(groups.values())))}"
        )


# ---------- studies: grids whose runs differ in more than one setting ----------


def words_known(preset, settings):
    """The configs of a preset, changed, with the vocabulary's size filled in from the data."""
    m, t = md.configs(preset, **settings)
    if not m.vocab_size:
        m = dataclasses.replace(m, vocab_size=md.load_data(t, m.block_size).n_words)
    return m, t


def matched_width(preset, settings, n_layers, part="total"):
    """{d_model, d_ff} with which the settings have as many parameters as n_layers layers."""
    m, _ = words_known(preset, settings)
    if part not in ("total", "blocks"):
        raise ValueError(f"--match {part} is unknown; give total or blocks")
    if n_layers < 1:
        raise ValueError(f"--match_params {n_layers} does not work; give a number of layers")
    deep = md.parameters(dataclasses.replace(m, n_layers=n_layers, n_heads=m.heads[0]))
    wide = md.width_matched(m, deep[part], part)
    n = md.parameters(wide)
    print(
        f"{n_layers} layers have {deep['total']:,} parameters, {deep['blocks']:,} in blocks; "
        f"{m.n_layers} with d_model {wide.d_model} and d_ff {wide.d_ff} {n['total']:,}, "
        f"{n['blocks']:,}"
    )
    return dict(d_model=wide.d_model, d_ff=wide.d_ff)


def depth_study(preset, settings):
    """Depth against its confound, parameters: 1 layer, many, 1 layer applied as many times (depth
    without parameters), 1 wider layer (parameters without depth)."""
    deep, one = md.configs(preset, **settings)[0].n_layers, settings | dict(n_layers=1)
    return {
        "1 layer": one,
        f"{deep} layers": settings | dict(n_layers=deep),
        f"1 layer, {deep} times": one | dict(n_loops=deep),
        "1 wide layer": one | matched_width(preset, one, deep),
    }


def llmini_study(preset, settings):
    """From LLmini's C to its A by depth, width or heads alone. A's 6 heads do not divide C's width;
    8 is the nearest number above that does."""
    keys = ("n_layers", "n_heads", "d_model", "d_ff")
    a, c = ({key: md.PRESETS[f"llmini-{name}"][key] for key in keys} for name in "ac")
    rows = {
        "C": {},
        f"C, {a['n_layers']} layers": dict(n_layers=a["n_layers"]),
        f"C, width {a['d_model']}": dict(d_model=a["d_model"], d_ff=a["d_ff"]),
        "C, 8 heads": dict(n_heads=8),
        "A": a,
    }
    return {name: settings | c | changes for name, changes in rows.items()}


def packing_study(preset, settings):
    """Rows padded, and packed for as many steps or for as many tokens of text, all validated on
    the same blocks: padded, each row by itself, unless --val_packing says otherwise."""
    m, t = md.configs(preset, **settings | dict(packing="pad"))
    data = md.load_data(t, m.block_size)
    steps = md.counted_steps(t, data).steps
    share = md.filled(*data.train).float().mean().item()
    print(f"padded blocks are {share:.1%} text: packed, {share:.1%} of the steps see as much of it")
    same = dict(val_packing="pad") | settings | dict(epochs=0)
    return {
        "padded": same | dict(packing="pad", steps=steps),
        "packed, same steps": same | dict(packing="pack", steps=steps),
        "packed, same text": same | dict(packing="pack", steps=max(1, round(steps * share))),
    }


def heads_study(preset, settings):
    """The published schedules of heads over four layers, all with as many parameters. A d_model
    that their counts do not divide gets a third of each: the same ratios."""
    four = settings | dict(n_layers=4)
    C, rows = md.configs(preset, **four | dict(n_heads=1))[0].d_model, {}
    schedules = md.published("heads_schedules")
    part = 1 if C % 96 == 0 else 3  # 96 is the most, and a multiple of all the others
    for row in schedules:
        heads = tuple(int(n) // part for n in row["heads"].split("-"))
        name = f"{row['group']}: {row['scheme']} {'-'.join(map(str, heads))}"
        rows[name] = four | dict(n_heads=heads)
    return rows


def draw_heads(runs, path):
    """Validation loss and time by the number of heads of heads_study(), beside the published."""
    theirs = {}
    for row in md.published("heads_schedules"):
        name = f"{row['group']}: {row['scheme']} {row['heads']}"
        theirs[name] = [dict(val_loss=row["eval_loss"], tokens_per_second=1 / row["hours"])]
    ours = {dict(key)["model"]: rows for key, rows in grouped(runs).items()}
    n = max(map(len, ours.values()))
    panels = {"published, one run each": theirs, f"ours, n = {n}, 95 % intervals": ours}
    with drawing(path, 2, 2, (9, 7), sharex="col") as (figure, drawn):
        for (loss_axes, time_axes), (title, models) in zip(drawn.T, panels.items()):
            fastest = max(row["tokens_per_second"] for rows in models.values() for row in rows)
            schemes = {}
            for name, rows in models.items():
                _, scheme, heads = name.split()
                schemes.setdefault(scheme, {})[sum(map(int, heads.split("-")))] = rows
            for axes, measure in (
                (loss_axes, lambda row: row["val_loss"]),
                (time_axes, lambda row: fastest / row["tokens_per_second"]),
            ):
                for k, (scheme, found) in enumerate(schemes.items()):
                    x = [n * 1.02**k for n in found]  # bars side by side
                    means, halves = zip(*(md.interval([*map(measure, r)]) for r in found.values()))
                    axes.errorbar(x, means, halves, fmt="-o", capsize=3, label=scheme)
                axes.set_xscale("log")
                axes.grid(alpha=0.3)
            counts = sorted({n for found in schemes.values() for n in found})[1::2]  # 45 hides 48
            time_axes.set_xticks(counts, labels=counts)
            time_axes.set_xticks([], minor=True)
            time_axes.set(xlabel="heads in all four layers", ylabel="time a step, fastest run = 1")
            loss_axes.set(title=title, ylabel="validation loss (nats a token)")
        figure.legend(*loss_axes.get_legend_handles_labels(), loc="outside upper center", ncols=3)


STUDIES = {
    "depth": depth_study,
    "llmini": llmini_study,
    "packing": packing_study,
    "heads": heads_study,
}  # (preset, settings) → {name: settings of a run}


def run_command(arguments):
    """Do what the flags say; the exit code, None for 0."""
    a = vars(make_parser().parse_args(arguments))
    changes = {f.name: a[f.name] for f in FIELDS if f.name in a}
    if "data" in changes:
        changes["data"] = (tuple(changes["data"]),)
    axes = {key: v if isinstance(v, (list, tuple)) else [v] for key, v in changes.items()}
    for key, values in axes.items():
        twice = [value for i, value in enumerate(values) if value in values[:i]]
        if twice:
            raise ValueError(f"--{key} has {twice[0]} twice; give each value once")
    cells = [dict(zip(axes, values)) for values in itertools.product(*axes.values())]
    varied = [key for key, values in axes.items() if len(values) > 1]
    changes = cells[0]
    many = len(cells) > 1 or a["study"]
    if many and (a["sample"] or a["bench"]):
        raise ValueError("several values of a flag make a grid, but --sample and --bench do one")
    if a["sample"]:
        return sample(
            a["sample"], a["prompt"], a["temperature"], a["max_new_tokens"], changes.get("seed", 0)
        )
    if a["mechanism"]:
        return mechanism(a["mechanism"])
    if a["score"]:
        sources = changes.get("data", ("embedded",))
        return score(a["score"], sources, changes.get("max_rows", 0))
    if a["attention"]:
        return attention(a["attention"], changes.get("out_dir", md.TrainConfig.out_dir))
    if a["export_hf"]:
        md.export_hf(*a["export_hf"])
        return print(
            f"wrote {a['export_hf'][1]}; load it with AutoModelForCausalLM.from_pretrained"
        )
    if a["resume"]:
        m, t = md.read_config(a["resume"])
        if changes:
            raise ValueError(
                f"--resume keeps the run's settings; leave out --{next(iter(changes))}"
            )
        t.out_dir, t.name = os.path.split(os.path.normpath(a["resume"]))
        print(f"resume {a['resume']}")
        return run_training(m, t, resume=True)
    preset, why = pick_preset(a["preset"], changes.get("data", ()), a["study"])
    if int(os.environ.get("RANK", 0)) == 0:
        print(f"preset {preset}: {why}")
    if a["match_params"] is not None:
        widths = {}  # seeds share one
        for cell in cells:
            key = repr([(name, value) for name, value in cell.items() if name != "seed"])
            if key not in widths:
                widths[key] = matched_width(preset, cell, a["match_params"], a["match"])
            cell |= widths[key]
    cells = [({key: cell[key] for key in varied}, cell) for cell in cells]
    if a["study"]:
        if a["study"] not in STUDIES:
            raise ValueError(f"study {a['study']!r} is unknown; choose from {', '.join(STUDIES)}")
        if set(varied) - {"seed"}:
            raise ValueError(f"a study varies the seed alone; give one value of --{varied[0]}")
        changes.pop("seed", None)
        rows = STUDIES[a["study"]](preset, changes).items()
        seeds = axes.get("seed", [0])
        cells = [(dict(model=k, seed=s), row | dict(seed=s)) for k, row in rows for s in seeds]
    if many:
        return grid(preset, cells, a["jobs"], a["yes"], a["dry_run"], a["study"])
    m, t = md.configs(preset, **changes)
    if a["bench"]:
        return bench(m, t)
    if a["dry_run"]:
        return print("\n".join(facts(m, t)))
    t.name = t.name or run_name(preset, changes)
    return run_training(m, t)


def run_name(preset, changes):
    """A folder's name from the preset and whatever was changed, so that no two runs meet, and the
    same run of two grids does."""
    parts = [preset]
    for key in (f.name for f in FIELDS if f.name in changes):
        value = changes[key]
        value = "+".join(map(str, value)) if isinstance(value, (tuple, list)) else value
        parts += [f"{key}-{value}"] if key not in ONCE else []
    safe = ["".join(c if c.isalnum() or c in "-_.+" else "-" for c in part) for part in parts]
    return "_".join(part[-60:].strip("-") for part in safe)


def main(arguments=None):
    """The exit code: 2 with one line on stderr for what a user can put right, 1 for divergence."""
    with contextlib.suppress(AttributeError):  # not a real stream in a notebook
        sys.stdout.reconfigure(line_buffering=True)
    try:
        return run_command(arguments) or 0
    except ValueError as error:
        message, code = error, 2
    except OSError as error:  # a full disk, a folder that may not be written
        where = f"{error.filename}: " if error.filename else ""
        message, code = f"{where}{error.strerror or error}; what was saved before is whole", 2
    except md.Diverged as error:
        message, code = error, 1
    except KeyboardInterrupt:
        message, code = "interrupted", 130
    print(f"train.py: {message}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
