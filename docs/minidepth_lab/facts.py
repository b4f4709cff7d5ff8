"""What follows from the settings, as the lines that the command prints before the first step."""

import minidepth as md


def facts(m, t, data=None):
    """The lines printed before the first step; with `data`, the settings are those fitted to it."""
    T = m.block_size
    if data:
        T = data.val[0].shape[1]
    yield from model_facts(m, t)
    steps = f"{t.steps} steps" if data or not t.epochs else f"{t.epochs} epochs"
    warmup = f"{t.warmup_steps:g}" if t.warmup_steps >= 1 else f"{t.warmup_steps:.0%} of them"
    tokens = t.batch_size * t.grad_accum * T
    yield (
        f"step {t.batch_size} x {t.grad_accum} x {T} = {tokens:,} tokens; {steps}, "
        f"learning rate up to {t.lr:g} in {warmup}, down to {t.lr * t.lr_floor:g}"
    )
    if data is None:
        yield f"data {' + '.join(t.data)}, tokenizer {t.tokenizer} (not loaded)"
    elif data.fresh:
        yield task_fact(data)
    elif "train_tokens" in data.facts:
        yield text_fact(t, data, tokens)
    else:  # a loader of one's own
        n, held_out = len(data.train[0]), len(data.val[0])
        yield f"data of {t.loader}: {n:,} blocks of {T} tokens, {held_out:,} held out"
    yield from odd(m, t, data, tokens)


def odd(m, t, data, tokens):
    """What can be, but is seldom meant: a line each."""
    if data and m.vocab_size > 100 * data.n_words:
        yield f"note: {m.vocab_size:,} words, of which the data has {data.n_words:,}"
    seconds = 6 * md.parameters(m)["total"] * m.n_loops * tokens / 1e11
    if md.pick_device(t.device).type == "cpu" and seconds > 60:
        yield f"note: a step will take minutes on a CPU: {seconds / 60:,.0f} or more"


def device_fact(t):
    """Where a TrainConfig trains, in which precision, and why."""
    device = md.pick_device(t.device)
    half, why = md.pick_precision(t.precision, device), f"{t.precision}, as asked"
    if t.precision == "auto":
        why = f"{'fp16' if half else 'fp32'}, the default on {device.type}"
    return f"device {md.provenance(device)['device']}; {why}"


def model_facts(m, t):
    """Device, model, parameters and memory, a line each."""
    yield device_fact(t)
    parts = [f"{m.n_layers} layer{'' if m.n_layers == 1 else 's'}"]
    if m.n_loops > 1:
        parts[0] += f" looped {m.n_loops} times"
    heads = m.n_heads
    if not isinstance(heads, int):
        heads = ",".join(str(n) for n in heads)
    parts += [f"d_model {m.d_model}", f"d_ff {m.d_ff}", f"{heads} heads", f"block {m.block_size}"]
    if m.vocab_size:
        parts.append(f"{m.vocab_size:,} words")
    if m.tie_weights:
        parts.append("head tied to the embedding")
    yield f"model {', '.join(parts)}"
    if not m.vocab_size:
        yield "parameters: known when the data has given the tokenizer its words"
        return
    n = md.parameters(m)
    yield (
        f"parameters {n['total']:,}: embedding {n['embedding']:,}, position {n['position']:,}, "
        f"blocks {n['blocks']:,}, head {n['head']:,}, final norm {n['final_norm']:,}"
    )
    memory = n["total"] * 16 / 2**30
    yield (
        f"memory {memory:.2f} GiB for weights, gradients and AdamW's moments; "
        "activations come on top"
    )


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
    f, (n_blocks, T) = data.facts, data.train[0].shape
    used = 1.0
    if t.packing == "pack":
        used = min(1.0, n_blocks * T / f["train_tokens"])
    filled = min(1.0, f["train_tokens"] / (n_blocks * T))
    learned = (data.train[1] != -100).sum() / f["train_tokens"]
    rows = f"{f['train_rows']:,} rows, {f['val_rows']:,} held out"
    if f["unusable_rows"]:
        rows += f", {f['unusable_rows']:,} unusable"
    return (
        f"data {' + '.join(t.data)}: {rows}; {f['train_tokens']:,} tokens in {n_blocks:,} blocks, "
        f"{used:.1%} of them used, {learned:.1%} with a loss; {filled:.1%} of positions filled; "
        f"{t.steps * tokens / (n_blocks * T):.1f} epochs"
    )
