"""What a run says before its first step, a line each."""

import torch

import minidepth as md
from minidepth_lab.base import configs, console, machine
from minidepth_lab.keep import running
from minidepth_lab.measure.cell import shown
from minidepth_lab.models import variants
from minidepth_lab.rows import files, hub


def print_facts(m, t, data=None, measured=False, done=0):
    """Print what follows from the settings, a line each; with `data`, from those fitted to it;
    `measured`, what it will take: its memory, and the time of all steps but the first `done`, for
    which parts of a step are timed."""
    model = [console.plural(m.n_layers, "layer")]
    if m.n_loops > 1:
        model[0] += f" looped {m.n_loops} times"
    model += [f"d_model {m.d_model}", f"d_ff {m.d_ff}", f"{shown(m.n_heads)} heads"]
    model.append(f"block {m.block_size}")
    if m.vocab_size:
        model.append(f"{m.vocab_size:,} words")
    if m.tie_weights:
        model.append("head tied to the embedding")
    lines = [machine.describe_device(t), f"model {', '.join(model)}"]

    if m.vocab_size:
        n = variants.parameters(m)
        lines.append(
            f"parameters {n['total']:,}: embedding {n['embedding']:,}, "
            f"position {n['position']:,}, layers {n['layers']:,}, head {n['head']:,}, "
            f"final norm {n['final_norm']:,}"
        )
    else:
        lines.append("parameters: known when the data has given the tokenizer its words")

    T = data.val[0].shape[-1] if data else m.block_size
    tokens = t.batch_size * t.grad_accum * T
    steps = f"{t.steps} steps" if data or not t.epochs else f"{t.epochs} epochs"
    lines.append(
        f"step {t.batch_size} x {t.grad_accum} x {T} = {tokens:,} tokens; {steps}, "
        f"learning rate {rate_fact(t, known=data or not t.epochs)}"
    )
    if data is None:
        asks = "".join(hub.meant(source) for source in t.data if not files.is_local(source))
        lines.append(f"data {' + '.join(t.data)}, tokenizer {t.tokenizer} (not loaded){asks}")
    elif "task" in data.facts:
        lines.append(task_fact(data))
    elif "train_tokens" in data.facts:
        lines.append(text_fact(t, data, tokens))
    else:  # a loader of one's own
        n, held_out = len(data.train[0]), len(data.val[0])
        lines.append(f"data of {t.loader}: {n:,} blocks of {T} tokens, {held_out:,} held out")
        lines += data.facts.get("lines", ())  # what the loader has to say of it
    if data and m.vocab_size > 100 * data.n_words:
        lines.append(f"note: {m.vocab_size:,} words, of which the data has {data.n_words:,}")
    lines += notes(t, data)
    if measured and m.vocab_size:  # a run that begins at once shows it itself
        from minidepth_lab.measure import forecast
        from minidepth_lab.models import memory

        lines += [memory.line(m, t), *forecast.lines(m, t, data, done)]
    print(console.visible("\n".join(lines)))


def rate_fact(t, known):
    """What the learning rate does in a whole run, as words; `known`, whether t.steps is."""
    floor, fallen = t.lr * t.lr_floor, t.lr_steps
    if not fallen or (known and fallen == t.steps):
        rise = f"{t.warmup_steps:g}" if t.warmup_steps >= 1 else f"{t.warmup_steps:.0%} of them"
        return f"up to {t.lr:g} in {rise}, down to {floor:g}"
    rise, last = configs.steps_of_rise(t), md.lr_at(t.steps - 1, t)
    if known and t.steps <= rise + 1:  # all of it is the rise
        rises = f"it would rise until step {rise + 1}"
        return f"up to {last:.3g} at the last; {rises} and fall until step {fallen} (--lr_steps)"
    up = f"up to {t.lr:g} in {console.plural(int(rise), 'step')}, then down to"
    if known and t.steps < fallen:
        return f"{up} {last:.3g} at the last; its fall ends at step {fallen} (--lr_steps)"
    return f"{up} {floor:g} by step {fallen} (--lr_steps), where it stays"


def notes(t, data=None):
    """What is worth knowing before any run, a line each."""
    lines = []
    known = data or not t.epochs  # else only the data tells how many steps there are
    n, blocks, answered = running.evaluations_of(t, data)
    # a step goes forward and back, which is three times forward alone
    if known and blocks + answered > 3 * t.steps * t.batch_size * t.grad_accum:
        measured = f"{console.plural(n, 'evaluation')} of up to {t.eval_blocks} blocks"
        lower = "--eval_blocks"
        if answered:
            measured += f" and {answered:,} answers"
            lower = "--eval_blocks, --eval_problems or --watch_problems"
        lines.append(
            f"note: this run evaluates for longer than it trains: {measured} for "
            f"{console.plural(t.steps, 'step')}; lower {lower}, or raise --eval_every"
        )
    if t.init_from and t.lr >= 1e-3:
        lines.append(
            f"note: it begins with trained weights at a learning rate of up to {t.lr:g}, as if "
            "they were new; --lr 0.0003, say, keeps more of what they have learned"
        )
    device = machine.pick_device(t.device)
    bf16 = machine.pick_precision(t.precision, device) is torch.bfloat16
    if device.type == "cpu" and bf16 and machine.bf16_of_cpu() == "":
        lines.append(
            "note: this CPU has neither AVX512-BF16 nor AMX: it emulates bf16, which takes longer "
            "than --precision fp32"
        )
    return lines


def task_fact(data):
    """Of a depth task: its sizes, and what its accuracy is to be compared with."""
    sizes = ", ".join(size.replace("=", " ") for size in data.sizes)
    rates = []
    for key, name in (("guess", "of guessing"), ("shortcut", "of a shortcut")):
        if key in data.facts:
            rates.append(f"{name} {data.facts[key]:.3f}")
    line = f"data {data.facts['task']} ({sizes}), drawn anew each step; {len(data.val[0]):,} test"
    return f"{line} sequences; accuracy {', '.join(rates) or 'of guessing unknown'}"


def text_fact(t, data, tokens):
    """Of text: rows, tokens, blocks and how much of them is used; `tokens` are those of a step."""
    facts, (n_blocks, T) = data.facts, data.train[0].shape
    used = 1.0
    if t.packing == "pack":
        used = min(1.0, n_blocks * T / facts["train_tokens"])
    share_filled = min(1.0, facts["train_tokens"] / (n_blocks * T))
    learned = (data.train[1] != -100).sum().item() / facts["train_tokens"]
    losses = f"{learned:.1%} with a loss"
    if learned > 1:  # blocks that overlap show the same token more than once
        losses = f"each with a loss {learned:.2f} times on average, as blocks overlap"
    rows = f"{facts['train_rows']:,} rows, {facts['val_rows']:,} held out"
    if facts["unusable_rows"]:
        rows += f", {facts['unusable_rows']:,} left out"
    lines = "".join(f"\nnote: {console.one_line(note, 400)}" for note in facts.get("notes", ()))
    return (
        f"data {' + '.join(t.data)}: {rows}; {facts['train_tokens']:,} tokens in {n_blocks:,} "
        f"blocks, {used:.1%} of them used, {losses}; {share_filled:.1%} of positions filled; "
        f"{t.steps * tokens / (n_blocks * T):.1f} epochs{lines}"
    )


def rate_ahead(t, done):
    """What the learning rate does after `done` steps of a TrainConfig, as words; ValueError if it
    is 0 from there on."""
    ends, last = t.lr_steps or t.steps, md.lr_at(t.steps - 1, t)
    if done >= ends:
        if last == 0:
            anew = f"give --lr_steps {t.steps} too, so that it falls anew"
            raise ValueError(f"the learning rate fell to 0 by step {ends} and stays there; {anew}")
        anew = f"--lr_steps {t.steps} lets it fall anew over all {t.steps} steps"
        return f"the learning rate stays at {last:g}, where it ended; {anew}"
    top = max(done, min(configs.steps_of_rise(t), t.steps - 1))  # from which it rises no more
    then = [f"is {md.lr_at(done, t):.3g} at step {done + 1}"]
    if top > done:
        then.append(f"rises to {md.lr_at(top, t):.3g} at step {top + 1}")
    if ends < t.steps:
        then += [f"falls until step {ends}", f"stays at {last:g}"]
    elif top < t.steps - 1:
        then.append(f"falls to {last:.3g} at step {t.steps}")
    if len(then) == 1:
        return f"the learning rate {then[0]}, the last"
    return f"the learning rate {', '.join(then[:-1])} and {then[-1]}"
