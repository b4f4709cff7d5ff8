"""Train one model, go on with it, or ask it: python train.py --n_layers 12

Every setting of minidepth.py is a flag. This file does what needs minidepth.py alone; with the
package minidepth_lab beside it, or installed, that one's command takes over: the same runs in a
more careful folder, tasks, studies, grids, figures, and what one asks of trained runs.
"""

import argparse
import contextlib
import dataclasses
import importlib.util
import json
import os
import platform
import re
import signal
import sys

utf8 = sys.getfilesystemencoding() == "utf-8" or os.environ.get("PYTHONUTF8") == "1"
if __name__ == "__main__" and not utf8:  # a machine set to C; begun anew once, not for ever
    os.environ["PYTHONUTF8"] = "1"  # names of files, and what is printed, are in UTF-8 all the same
    os.execv(sys.executable, sys.orig_argv)

try:  # this takes seconds, in which one may change one's mind
    import torch

    import minidepth as md
except KeyboardInterrupt:
    print("train.py: interrupted", file=sys.stderr)
    sys.exit(130)


class Parser(argparse.ArgumentParser):
    def error(self, message):
        print(f"train.py: {message}; see python train.py --help", file=sys.stderr)
        self.exit(2)


def several(text: str) -> tuple[int, ...]:
    """'2,3' → (2, 3)"""
    return tuple(int(part) for part in text.split(","))


def steps_or_share(text: str) -> float:
    """'50' → 50, '0.1' → 0.1"""
    return int(text) if text.isdecimal() else float(text)


KINDS = md.ModelConfig, md.TrainConfig
SETTINGS = [f.name for kind in KINDS for f in dataclasses.fields(kind)]


def make_parser() -> Parser:
    """The flags: what is done, and one for each setting."""
    about = "Train a Transformer of any depth and see what the depth did."
    parser = Parser(description=about, allow_abbrev=False)
    parser.add_argument(
        "--preset", choices=md.PRESETS, help="laptop, or report where CUDA is found"
    )
    parser.add_argument("--out_dir", default="runs", help="folder of all runs")
    parser.add_argument("--name", help="the run's folder in it; else made from the settings")
    parser.add_argument("--resume", metavar="RUN_DIR", help="go on with a run that was stopped")
    parser.add_argument("--sample", metavar="RUN_DIR", help="let a trained model answer --prompt")
    parser.add_argument("--prompt", metavar="TEXT", help="the user's turn for --sample")
    parser.add_argument("--temperature", type=float, default=0.0, help="of --sample")
    for kind in KINDS:
        group = parser.add_argument_group(kind.__name__)
        for f in dataclasses.fields(kind):
            how = dict(type=f.type, metavar="X")
            if f.type is bool:
                how = dict(action=argparse.BooleanOptionalAction)
            elif f.type is tuple:
                how["type"] = several
            elif f.name == "warmup_steps":
                how["type"] = steps_or_share
            text = f"{f.metadata['help']} ({f.default})".replace("%", "%%")
            group.add_argument(f"--{f.name}", default=argparse.SUPPRESS, help=text, **how)
    return parser


def describe(m: md.ModelConfig, t: md.TrainConfig, data: md.Data) -> list[str]:
    """What follows from the settings of a run, a line each."""
    device, half = md.pick_machine(t)
    where = f"{platform.machine()} CPU, {torch.get_num_threads()} threads"
    if device.type == "cuda":
        where = f"{torch.cuda.device_count()} x {torch.cuda.get_device_name()}"
    precision = str(half or torch.float32).removeprefix("torch.")
    why = f"the default on {device.type}" if t.precision == "auto" else "as asked"
    facts, (n_blocks, T) = data.facts, data.train[0].shape
    tokens = t.batch_size * t.grad_accum * T
    with torch.device("meta"):  # counted without taking memory
        model = md.GPT(dataclasses.replace(m, vocab_size=m.vocab_size or data.n_words))
    n = {name: p.numel() for name, p in model.named_parameters()}
    in_layers = sum(count for name, count in n.items() if name.startswith("blocks."))
    lines = [
        f"device {where}; {precision}, {why}",
        f"model {m.n_layers} layers looped {m.n_loops} times, d_model {m.d_model}, d_ff {m.d_ff}, "
        f"{m.n_heads} heads",
        f"parameters {sum(n.values()):,}, of them {in_layers:,} in the layers",
        f"step {t.batch_size} x {t.grad_accum} x {T} = {tokens:,} tokens; {t.steps} steps, "
        f"{t.steps * tokens / (n_blocks * T):.1f} epochs",
        f"data {t.data}: {facts['train_rows']:,} rows, {facts['val_rows']:,} held out",
    ]
    for name, why in (("unusable_rows", "are no conversations"),
                      ("train_rows_too_long", "for training are longer than a block"),
                      ("val_rows_too_long", "held out are longer than a block")):  # fmt: skip
        if facts.get(name):
            lines.append(f"note: {facts[name]:,} rows {why} and left out")
    return lines


def check_run(path: str) -> None:
    """ValueError for what is no run's folder."""
    if not os.path.exists(os.path.join(path, "config.json")):
        raise ValueError(f"{path} holds no run; give a run's folder, as runs/NAME")


@contextlib.contextmanager
def reading(path: str):
    """Make what a damaged file raises a ValueError of one line."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:  # JSON, zip, pickle and safetensors have errors of their own
        raise ValueError(f"{path} cannot be read: {error}") from None


def train(a: dict, changes: dict) -> int:
    """Train a run or go on with it; the exit code, 130 for one that was stopped."""
    path, first = a["resume"], md.processes()[0] == 0  # under torchrun one process speaks
    if path:
        if changes:
            raise ValueError(
                f"--resume keeps the run's settings; leave out --{next(iter(changes))}"
            )
        check_run(path)
        log, words, done = os.path.join(path, "log.jsonl"), os.path.join(path, "tokenizer"), 0
        with reading(path):
            m, t = md.read_configs(path)
            if os.path.exists(log):
                with open(log, encoding="utf-8") as f:
                    done = max((json.loads(line)["step"] for line in f), default=0)
            md.Folder(path).resume({})  # before the data is loaded
            tokenizer = md.load_tokenizer(words) if os.path.isdir(words) else None
        if done >= t.steps:
            raise ValueError(f"{path} is finished: all of its {t.steps} steps are done")
    else:
        preset = a["preset"] or ("report" if torch.cuda.is_available() else "laptop")
        if first:
            print(f"preset {preset}" + ("" if a["preset"] else ", as the machine has it"))
        m, t = md.configs(preset, **changes)
        tokenizer = None
        parts = [preset, *(f"{name}-{value}" for name, value in sorted(changes.items()))]
        path = os.path.join(a["out_dir"], a["name"] or re.sub(r"[^\w.+-]", "-", "_".join(parts)))
        if os.path.exists(os.path.join(path, "config.json")):  # before the data is loaded
            raise ValueError(f"{path} exists; give another --name, or --resume {path}")
    data = md.load_data(t, m.block_size, tokenizer)
    if first:
        print("\n".join(describe(m, t, data)))
    noted: list[int] = []  # signals, so that no step is cut in two

    def note(number, frame):
        if noted and number == signal.SIGINT:  # a second Ctrl-C does not wait
            raise KeyboardInterrupt
        noted.append(number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, note)
    device, several = md.pick_machine(t)[0], md.processes()[1] > 1
    if several and device.type == "cuda":
        torch.cuda.set_device(device)
    if several:
        torch.distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")
    model, log = md.train(m, t, data, md.Folder(path), bool(a["resume"]), stop=lambda: bool(noted))
    if several:
        torch.distributed.destroy_process_group()
    if not log or log[-1]["step"] < t.steps:
        if first:
            print(f"Stopped; go on with: python train.py --resume {path}")
        return 130
    if first:
        last = log[-1]
        seconds = f"total time {last['seconds']:.0f}s"
        print(f"Done. Final train loss: {last['train_loss']:.4f} | {seconds}")
        if "accuracy" in last:
            chance = f", guessing {last['guess']:.3f}" if "guess" in last else ""
            print(f"answer accuracy {last['accuracy']:.3f}{chance}")
        print(f"wrote {path}: log.jsonl, model.safetensors")
    return 0


def sample(a: dict, seed: int) -> int:
    """Print what a trained model answers to the prompt."""
    if not (a["prompt"] or "").strip():
        raise ValueError("--sample needs --prompt TEXT")
    if a["temperature"] and not 0.01 <= a["temperature"] <= 100:
        raise ValueError(f"--temperature {a['temperature']} does not work; give 0, or 0.01 to 100")
    check_run(a["sample"])
    with reading(a["sample"]):
        model, tokenizer = md.load(a["sample"])
    if tokenizer is None:
        raise ValueError(f"--sample {a['sample']} knows no words")
    draw = torch.Generator().manual_seed(seed)

    def pick(logits):
        p = (logits / a["temperature"]).softmax(-1)
        return torch.multinomial(p, 1, generator=draw)

    problem = dict(messages=[dict(role="user", content=a["prompt"])])
    how = dict(pick=pick) if a["temperature"] else {}
    print(md.answer_texts(model, tokenizer, [problem], **how)[0].strip())
    return 0


def alone(arguments: list[str]) -> int:
    """The exit code: 2 with one line on stderr for what a user can put right, 1 for divergence."""
    a = vars(make_parser().parse_args(arguments))
    changes = {name: a[name] for name in SETTINGS if name in a}
    try:
        if a["prompt"] and not a["sample"]:
            raise ValueError("--prompt has no effect without --sample; give both")
        return sample(a, changes.get("seed", 0)) if a["sample"] else train(a, changes)
    except (ValueError, OSError) as error:
        message, code = error, 2
    except md.Diverged as error:
        message, code = f"{error}; lower --lr, raise --warmup_steps, or use --precision fp32", 1
    except RuntimeError as error:  # in which torch.save hides a full disk
        if not isinstance(error.__context__, OSError):
            raise
        message, code = error.__context__, 2
    except KeyboardInterrupt:
        message, code = "interrupted", 130
    print(f"train.py: {' '.join(str(message).split())}", file=sys.stderr)
    return code


def main(arguments: list[str] | None = None) -> int:
    """Do what the arguments say, by default those of the process; the exit code."""
    laboratory = importlib.util.find_spec("minidepth_lab")
    if laboratory and laboratory.origin:  # a folder of that name alone is none
        from minidepth_lab import command

        return command.main(arguments)
    return alone(sys.argv[1:] if arguments is None else arguments)


if __name__ == "__main__":
    sys.exit(main())
