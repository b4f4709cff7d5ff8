"""Train a minidepth model: python train.py --n_layers 12. Every flag: python train.py --help."""

import argparse
import contextlib
import dataclasses
import os
import shlex
import signal
import statistics
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
    """'8' → 8, '8,4,2' → (8, 4, 2)"""
    values = tuple(int(part) for part in text.split(","))
    return values if "," in text else values[0]


def tuple_of_numbers(text):
    """'2,3' → (2, 3), '2' → (2,)"""
    return tuple(int(part) for part in text.split(","))


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
                kinds = {"n_heads": numbers, "problem_steps": tuple_of_numbers}
                metavar = f"{{{','.join(f.metadata['choices'])}}}" if f.metadata["choices"] else "X"
                options |= dict(type=kinds.get(f.name, f.type), metavar=metavar)
            group.add_argument(f"--{f.name}", **options)
    do = parser.add_argument_group("instead of training anew")
    do.add_argument("--dry_run", action="store_true", help="print the facts, train nothing")
    do.add_argument("--bench", action="store_true", help="time training steps on random tokens")
    do.add_argument("--resume", metavar="RUN_DIR", help="go on with a run that was stopped")
    do.add_argument("--sample", metavar="RUN_DIR", help="let a trained model answer --prompt")
    do.add_argument("--prompt", metavar="TEXT", help="the user's turn for --sample")
    do.add_argument("--temperature", type=float, default=0.0, metavar="X", help="of --sample (0)")
    do.add_argument(
        "--max_new_tokens", type=int, default=256, metavar="X", help="of --sample (256)"
    )
    do.add_argument(
        "--export_hf",
        nargs=2,
        metavar=("RUN_DIR", "OUT_DIR"),
        help="write it as GPT-2 for transformers",
    )
    return parser


def pick_preset(name):
    """The preset's name, and why it was taken."""
    if name != "auto":
        return name, "as asked"
    if torch.cuda.is_available():
        return "report", f"{torch.cuda.device_count()} CUDA GPU found"
    return "laptop", "no CUDA GPU found"


# ---------- what is printed and drawn ----------


def facts(m, t, data=None):
    """What follows from the settings, as the lines printed before the first step."""
    device = md.pick_device(t.device)
    _, why = md.pick_precision(t.precision, device)
    lines = [f"device {md.provenance(device)['device']}; {why}"]
    if data:
        m = dataclasses.replace(m, vocab_size=m.vocab_size or len(data.tokenizer))
    tokens = t.batch_size * t.grad_accum * m.block_size
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
        with torch.device("meta"):  # shapes without memory
            n = md.GPT(m).num_params()
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
    lines.append(
        f"step {t.batch_size} x {t.grad_accum} x {m.block_size} = {tokens:,} tokens; {t.steps} "
        f"steps, learning rate up to {t.lr:g} in {t.warmup_steps}, down to {t.lr * t.lr_floor:g}"
    )
    if not data:
        lines.append(f"data {' + '.join(t.data)}, tokenizer {t.tokenizer} (not loaded)")
        return lines
    f, (n_blocks, T) = data.facts, data.train[0].shape
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


def draw_curve(run):
    """curve.png: train and validation loss over the steps."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    for key, label, style in (
        ("train_loss", "train, one batch", "o-"),
        ("val_loss", "validation, fixed blocks", "s-"),
    ):
        steps = [row["step"] for row in run.log]
        axes.plot(steps, [row[key] for row in run.log], style, label=label, markersize=3)
    axes.set(xlabel="optimizer step", ylabel="loss (nats a token)", title=os.path.basename(run.dir))
    axes.set_yscale("log")  # most of the fall is in the first steps, most of the story later
    axes.yaxis.set_major_formatter("{x:g}")
    axes.grid(alpha=0.3, which="both")
    axes.legend()
    md.write_file(os.path.join(run.dir, "curve.png"), lambda f: figure.savefig(f, dpi=150))
    plt.close(figure)


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
    saved = md.load_tokenizer(os.path.join(folder, "tokenizer")) if resume else None
    data = md.load_data(t, m.block_size, saved)
    for line in facts(m, t, data) if first else ():
        print(line)
    command = shlex.join([os.path.basename(sys.executable), *sys.argv])
    with stop_requests() as noted:
        run = md.train(m, t, data, resume, command, stop=lambda: bool(noted))
    if first and run.log:
        draw_curve(run)
    if first and run.finished:
        show_answers(run, t, data.problems)
        print(f"wrote {run.dir}: curve.png, log.jsonl, model.safetensors")
    return 0 if run.finished else 130


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
    sampling = dict(temperature=temperature, max_new_tokens=max_new_tokens, seed=seed)
    if tokenizer.chat_template:  # trained on conversations
        _, t = md.read_config(run_dir)
        messages = [dict(role="system", content=md.SYSTEM)] if t.data == ("embedded",) else []
        problem = dict(messages=[*messages, dict(role="user", content=prompt)])
        return print(md.answer_texts(model, tokenizer, [problem], **sampling)[0].strip())
    tokens = torch.tensor([tokenizer(prompt, add_special_tokens=False).input_ids])
    tokens = md.generate(model, tokens, eos=tokenizer.eos_token_id, **sampling)
    print(tokenizer.decode(tokens[0], skip_special_tokens=True))


def run_command(arguments):
    """Do what the flags say; the exit code, None for 0."""
    a = vars(make_parser().parse_args(arguments))
    changes = {f.name: a[f.name] for f in FIELDS if f.name in a}
    if "data" in changes:
        changes["data"] = tuple(changes["data"])
    if a["sample"]:
        return sample(
            a["sample"], a["prompt"], a["temperature"], a["max_new_tokens"], changes.get("seed", 0)
        )
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
    preset, why = pick_preset(a["preset"])
    m, t = md.configs(preset, **changes)
    if int(os.environ.get("RANK", 0)) == 0:
        print(f"preset {preset}: {why}")
    if a["bench"]:
        return bench(m, t)
    if a["dry_run"]:
        return print("\n".join(facts(m, t)))
    if not t.name:  # from the preset and whatever was changed, so that no two runs meet
        parts = [preset]
        for key, value in changes.items():
            value = "+".join(map(str, value)) if isinstance(value, tuple) else value
            parts += [f"{key}-{value}"] if key not in ("out_dir", "device") else []
        t.name = "_".join(file_safe(part) for part in parts)
    return run_training(m, t)


def file_safe(text):
    """A text as part of a folder's name."""
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in str(text))[-60:].strip("-")


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
