"""--sample: what a trained model says."""

import dataclasses
import sys

import torch

import minidepth as md
from minidepth_lab.base import configs, console
from minidepth_lab.keep import checkpoints, registry
from minidepth_lab.measure import sampling as drawing
from minidepth_lab.models import variants
from minidepth_lab.rows import reading, tokenizing


def sample(call):
    """Print what a model answers to the prompt, or how it goes on if trained on plain text; with
    --n_loops so many times looped."""
    a, run_dir = call.flags, call["sample"]
    seed, n_loops = (call.changes.get(name) for name in ("seed", "n_loops"))
    prompt = prompt_of(a)
    sampling = sampling_of(a, seed)
    model, tokenizer = untrained(run_dir) if a["first_weights"] else checkpoints.load(run_dir)
    if not a["first_weights"] and (which := checkpoints.describe_weights(run_dir)):
        print(which, file=sys.stderr)
    if n_loops is not None:
        model.config = dataclasses.replace(model.config, n_loops=n_loops).validate()
    if tokenizer is None:
        raise ValueError(f"--sample {run_dir} {registry.no_text(run_dir)}")
    chats = bool(tokenizer.chat_template)  # trained on conversations
    for name in ("chat", "system"):
        if a[name] and not chats:
            raise ValueError(f"--{name} has no effect on {run_dir}, trained on plain text")
    marks = [mark for mark in tokenizing.marks_of(tokenizer) if mark in f"{prompt} {a['system']}"]
    if marks:
        print(f"note: {', '.join(marks)} in the prompt is read as characters", file=sys.stderr)
    if unknown := tokenizing.unknown_in(tokenizer, prompt or ""):
        print(f"note: the tokenizer does not know {unknown!r} in the prompt", file=sys.stderr)
    system = a["system"] or tokenizing.system_turn(tokenizer)
    messages = [dict(role="system", content=system)] if system else []
    if a["chat"]:
        return chat(model, tokenizer, messages, sampling)
    for text in answers(model, tokenizer, messages, prompt, chats, a["num_samples"] or 1, sampling):
        print(console.visible(text))


def prompt_of(a):
    """The prompt of --sample's flags, None for --chat, which asks for several; ValueError for none
    or for several ways to give one."""
    given = [name for name in ("prompt", "prompt_file", "chat") if a[name]]
    if not given:
        raise ValueError("--sample needs --prompt TEXT, --prompt_file FILE or --chat")
    if len(given) > 1:
        raise ValueError(f"--{given[0]} and --{given[1]} are two ways to ask; give one of them")
    if a["chat"] and a["num_samples"] is not None:
        raise ValueError("--num_samples has no effect with --chat, which answers once a turn")
    for name in ("prompt", "system"):
        with console.one_line_errors(f"--{name}", "is not text"):
            (a[name] or "").encode()
    prompt = a["prompt"]
    if a["prompt_file"]:
        prompt = reading.read_text(a["prompt_file"], "--prompt_file").rstrip("\n")
    if prompt is not None and not prompt.strip():
        raise ValueError("the prompt is empty; give some text")
    return prompt


def sampling_of(a, seed):
    """The keywords of generate() in --sample's flags; ValueError for values that cannot work."""
    most, temperature = a["max_new_tokens"], a["temperature"] or 0.0
    if most is not None and not 1 <= most <= 100_000:
        limit = "from 1 to 100,000"
        raise ValueError(f"--max_new_tokens {most!s:.40} does not work; give a number {limit}")
    # a lower one divides by so little that the numbers overflow
    if temperature and not 0.001 <= temperature <= 1000:
        raise ValueError(f"--temperature {temperature} does not work; give 0, or 0.001 to 1000")
    for name, limit in (("top_k", 10**6), ("num_samples", 1000)):
        if a[name] is not None and not 1 <= a[name] <= limit:
            wanted = f"give a number from 1 to {limit:,}"
            raise ValueError(f"--{name} {a[name]!s:.40} does not work; {wanted}")
    configs.check_fields(
        configs.TrainConfig(seed=seed or 0)
    )  # within the limits of training's seed
    for name, value in dict(top_k=a["top_k"], num_samples=a["num_samples"], seed=seed).items():
        if value is not None and not temperature:
            why = "always takes the likeliest word; give --temperature 1, say"
            raise ValueError(f"--{name} has no effect at --temperature 0, which {why}")
    return dict(
        temperature=temperature, max_new_tokens=most or 256, seed=seed or 0, top_k=a["top_k"]
    )  # fmt: skip


def untrained(run_dir):
    """(model, tokenizer) of a run as it was before its first step: its seed drew the weights."""
    m, t = checkpoints.read_config(run_dir)
    if t.init_from:
        raise ValueError(f"{run_dir} began with the weights of {t.init_from}; --sample that")
    torch.manual_seed(t.seed)
    model, tokenizer = variants.GPT(m).eval(), checkpoints.saved_tokenizer(run_dir)
    if tokenizer is not None:
        model.n_words = len(tokenizer)
    return model, tokenizer


def answers(model, tokenizer, messages, prompt, chats, n, sampling):
    """n texts: what a model answers to a user's turn after the messages or, trained on plain text,
    the prompt and how it goes on."""
    if chats:
        problem = dict(messages=[*messages, dict(role="user", content=prompt)])
        check_room(model.config, md.prompt_ids(tokenizer, problem["messages"]))
        texts = drawing.answer_texts(model, tokenizer, [problem] * n, **sampling)
        return [text.strip() for text in texts]
    ids, _ = next(md.encode([[(prompt, True)]], tokenizer))
    check_room(model.config, ids)
    tokens = drawing.generate(
        model, torch.tensor([ids] * n), eos=tokenizer.eos_token_id, **sampling
    )
    return [tokenizer.decode(row, skip_special_tokens=True) for row in tokens]


def chat(model, tokenizer, messages, sampling):
    """Read turns from the terminal, a line each, and print the answers, each of which stands before
    the next turn; an empty line or the end of the input ends it."""
    asks = sys.stdin.isatty()
    while True:
        if asks:
            print("> ", end="", flush=True)
        turn = sys.stdin.readline().strip()
        with console.one_line_errors("the turn", "is not text"):
            turn.encode()
        if not turn:
            return
        (said,) = answers(model, tokenizer, messages, turn, True, 1, sampling)
        print(console.visible(said))
        messages = [*messages, dict(role="user", content=turn)]
        if said:
            messages.append(dict(role="assistant", content=said))


def check_room(config, ids):
    """ValueError for a prompt that leaves its model no place for a word more."""
    room = config.block_size - 1
    if config.position == "learned" and len(ids) > room:
        too_long = f"the prompt, with all that was said before, makes {len(ids)} tokens"
        raise ValueError(f"{too_long}; this model reads at most {room} and has one left to answer")
