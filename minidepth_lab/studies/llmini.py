"""LLmini: three sizes that differ in depth, width and heads at once, and what changes one at a
time. Its rows are padded, and a long one goes on in a block that begins `stride` tokens later.

    python train.py --preset llmini-c                what its code did; also -a and -b
    python train.py --study llmini --seed 0 1 2      from C to A by one change at a time
    python -m minidepth_lab.studies.llmini TOKENIZER SOURCE …     the table of its data, as JSON

The presets follow LLmini's code, not its text, where the two differ: github.com/NorisTalaban/LLmini
(docs/results/llmini/predictions.toml lists where). With `--sizes texts=ours` its data is as that of
other runs: rows of any form, split before they are cut.
"""

import argparse
import json
import math
import os
import re
import statistics

import torch

import minidepth as md
from minidepth_lab.base import configs, console
from minidepth_lab.base.data import Data
from minidepth_lab.measure import score
from minidepth_lab.rows import files as text
from minidepth_lab.rows import to_data, tokenizing
from minidepth_lab.rows.sources import text_data
from minidepth_lab.tasks.base.sizes import as_text, check_known, sizes_of

COMMON = dict(
    vocab_size=50_257, block_size=256, dropout=0.1, residual_dropout=0.3, embedding_dropout=0.0,
    tie_weights=False, bias=True, init="pytorch", decay_all=True,
    data=(
        "openai/gsm8k:main", "allenai/ai2_arc:ARC-Challenge", "tau/commonsense_qa", "allenai/sciq",
        "google/boolq", "Rowan/hellaswag", "allenai/winogrande:winogrande_xl", "fancyzhx/ag_news",
        "rajpurkar/squad", "Salesforce/wikitext:wikitext-2-raw-v1", "roneneldan/TinyStories",
    ),
    loader="llmini", sizes=("stride=128", "texts=published"), tokenizer="openai-community/gpt2",
    packing="pad", epochs=3, batch_size=32, grad_accum=2, lr_floor=0.0, warmup_steps=0.1,
    weight_decay=0.05, beta2=0.999, seed=42, eval_every=250, eval_blocks=256,
)  # fmt: skip
PRESETS = {
    "llmini-a": COMMON | dict(n_layers=10, n_heads=6, d_model=384, d_ff=1536),
    "llmini-b": COMMON | dict(n_layers=9, n_heads=5, d_model=320, d_ff=1280),
    "llmini-c": COMMON | dict(n_layers=8, n_heads=4, d_model=256, d_ff=1024),
}
PRESET = "llmini-c"  # the smallest: the study goes from it to the largest

# tokens from chunk to chunk of a long padded row, 0: the block; whose texts these are; and of
# LLmini's which share of what is trained on is kept, with the same held out
SIZES = dict(stride=0, texts="ours", share=1.0)


def rows(preset, settings):
    """From LLmini's C to its A by depth, width or heads alone. A's 6 heads do not divide C's width;
    8 is the nearest number above that does."""
    keys = ("n_layers", "n_heads", "d_model", "d_ff")
    a = {key: PRESETS["llmini-a"][key] for key in keys}
    c = {key: PRESETS["llmini-c"][key] for key in keys}
    changes = {
        "C": {},
        f"C, {a['n_layers']} layers": dict(n_layers=a["n_layers"]),
        f"C, width {a['d_model']}": dict(d_model=a["d_model"], d_ff=a["d_ff"]),
        "C, 8 heads": dict(n_heads=8),
        "A": a,
    }
    return {name: settings | c | change for name, change in changes.items()}


# ---------- the data as LLmini's code made it ----------

# what is in the name of a source, without marks; its text; and the share of the hub's rows taken
TEXTS = (
    ("gsm8k", "{question}", 1),
    ("arc", "{question}", 1),
    ("commonsenseqa", "{question}", 1),
    ("sciq", "{question} {support}", 1),
    ("boolq", "{passage} {question}", 1),
    ("hellaswag", "{ctx}", 0.5),
    ("winogrande", "{sentence}", 0.5),
    ("agnews", "{text}", 0.17),
    ("squad", "{context}", 0.23),
    ("wikitext", "{text}", 0.54),
    ("tinystories", "{text}", 0.009),
)
SHORTEST, LONGEST = 11, 2559  # characters of a text that is kept
SPLIT_SEED = 42


def template_of(source):
    """(its template, its share) of a source by its name; ValueError for one that LLmini had not."""
    plain = re.sub(r"[^a-z0-9]", "", source.lower())
    for name, template, share in TEXTS:
        if name in plain:
            return template, share
    known = ", ".join(name for name, _, _ in TEXTS)
    advice = f"name a file or folder after it, or give --sizes texts=ours; there are {known}"
    raise ValueError(f"data {source} is none of LLmini's eleven sources; {advice}")


def texts_of(source, config, notes=None):
    """The texts of a source in LLmini's form: stripped, of some length, blank ones not counted. Of
    the hub the published share of the rows, of a file all, and at most max_rows of either. What is
    left out, and why, is added to the list `notes`."""
    template, share = template_of(source)
    columns = re.findall(r"{(\w+)}", template)
    found = text.rows_of(source, "train", [] if notes is None else notes)
    if text.is_local(source):
        text.check_names(source, found, columns, ", ".join(columns))
        share = 1
    most = min(config.max_rows or len(found), int(len(found) * share))
    kept, looked_at, n_unreadable = [], 0, 0
    for row in found:
        looked_at += 1
        cells = {name: row.get(name) for name in columns} if isinstance(row, dict) else {}
        for name, cell in cells.items():  # ARC's and CommonsenseQA's authors have it within
            if isinstance(cell, dict):
                cells[name] = cell.get("stem")
        if not all(isinstance(cell, str) for cell in cells.values()) or not cells:
            n_unreadable += 1
            continue
        filled = template.format(**cells).strip()
        if SHORTEST <= len(filled) <= LONGEST:
            kept.append(filled)
        if len(kept) == most:
            break
    lengths = f"shorter than {SHORTEST} or longer than {LONGEST:,} characters"
    if not kept and n_unreadable < looked_at:
        advice = "--sizes texts=ours takes texts of any length"
        raise ValueError(f"data {source}: each of its texts is {lengths}; {advice}")
    if not kept:
        raise ValueError(f"data {source}: no row has the text {template}; are these its columns?")
    notes = [] if notes is None else notes
    if n_unreadable:
        notes.append(
            f"{console.plural(n_unreadable, 'row')} of {source} left out: no text {template}"
        )
    if n := looked_at - n_unreadable - len(kept):
        why = f"{lengths}, as LLmini's code has it"
        notes.append(f"{console.plural(n, 'text')} of {source} left out: {why}")
    if looked_at < len(found):
        what = f"{console.plural(len(kept), 'text')} of {len(found):,} rows of {source} are taken"
        why = f"LLmini took {share:.1%}"
        if most == config.max_rows:
            why = "--max_rows 0 takes more"
        notes.append(f"{what}, the first; {why}")
    return kept


def windows(ids, T, stride):
    """Token ids of a text → lists of up to T + 1 of them: a short text whole, of a long one every
    window that is full, the next `stride` later; its tail is left out."""
    if len(ids) < T + 1:
        return [ids]
    return [ids[start : start + T + 1] for start in range(0, len(ids) - T, stride)]


def published_data(config, block_size, tokenizer, sizes):
    """Data as LLmini's code made it. The split is over chunks, not over texts, so that what is
    held out may be in training word for word: facts["held_out"] and of them how many are."""
    notes = []
    texts = {source: texts_of(source, config, notes) for source in config.data}
    if tokenizer is None:
        every = (each for some in texts.values() for each in some)
        tokenizer = tokenizing.load_tokenizer(config.tokenizer, every, config.tokenizer_size)
    chunks, of_source, table, words, lengths = [], [], {}, set(), []
    stride = sizes["stride"] or block_size
    n_padded, n_long = 0, 0
    for source, some in texts.items():
        encoded = [ids for ids, _ in md.encode(([(each, True)] for each in some), tokenizer)]
        table[source] = dict(samples=len(some), tokens=sum(map(len, encoded)))
        for ids in encoded:
            words.update(ids)
            lengths.append(len(ids))
            n_long += len(ids) > block_size
            n_padded += len(ids) <= block_size
            made = windows(ids, block_size, stride)
            chunks += made
            of_source += [source] * len(made)
    # as torch.utils.data.random_split() with a generator of LLmini's seed, whatever the run's
    order = torch.randperm(len(chunks), generator=torch.Generator().manual_seed(SPLIT_SEED))
    cut = len(chunks) - max(1, int(config.val_fraction * len(chunks)))
    # the order is by chance, and so are the first of it
    parts = order[: math.ceil(sizes["share"] * cut)].tolist(), order[cut:].tolist()
    if not parts[0]:
        raise ValueError(f"data {', '.join(texts)}: one chunk cannot be split; give more text")
    made = [
        md.blocks(((chunks[i], [True] * len(chunks[i])) for i in part), block_size, "pad")
        for part in parts
    ]
    trained = {tuple(chunks[i]) for i in parts[0]}
    for source, row in table.items():
        mine = [tuple(chunks[i]) for i in parts[1] if of_source[i] == source]
        row |= dict(held_out=len(mine), held_out_in_training=sum(ids in trained for ids in mine))
    tokens = sum(row["tokens"] for row in table.values())
    facts = dict(
        table=table,
        chunks=len(chunks),
        padded=n_padded,
        cut=n_long,
        # all tokens over all positions, as its own table has it
        utilisation=tokens / (len(chunks) * block_size),
        vocabulary=len(words) / len(tokenizer),
        median=statistics.median(lengths),  # tokens of a text
        held_out=len(parts[1]),
        held_out_in_training=sum(row["held_out_in_training"] for row in table.values()),
    )
    facts["lines"] = table_lines(facts) + [f"note: {note}" for note in notes]
    return Data(*made, tokenizer, [], facts, len(tokenizer))


def table_lines(facts):
    """The table that LLmini prints of its data, and what it does not: a line each."""
    table = facts["table"]
    samples = sum(row["samples"] for row in table.values())
    tokens = sum(row["tokens"] for row in table.values())
    lines = [f"{'source':40} {'samples':>8} {'tokens':>10} {'share':>6} {'average':>7}"]
    for source, row in sorted(table.items(), key=lambda item: -item[1]["tokens"]):
        share, mean = row["tokens"] / tokens, row["tokens"] / row["samples"]
        name = source if len(source) <= 40 else f"…{source[-39:]}"
        lines.append(f"{name:40} {row['samples']:8,} {row['tokens']:10,} {share:6.1%} {mean:7.1f}")
    lines.append(f"{'all':40} {samples:8,} {tokens:10,} {1:6.1%} {tokens / samples:7.1f}")
    lines.append(
        f"chunks {facts['chunks']:,}: {facts['padded']:,} texts padded, {facts['cut']:,} cut; "
        f"utilisation {facts['utilisation']:.1%}; vocabulary covered {facts['vocabulary']:.1%}"
    )
    lines.append(
        f"held out {facts['held_out']:,} chunks, of which {facts['held_out_in_training']:,} "
        "are in training word for word"
    )
    return lines


# ---------- its data in our form ----------


def overlapping(encoded, T, stride):
    """Rows of (ids, learn) → rows of T + 1 tokens at most, of which the next begins `stride` tokens
    later, until the end of the row is in one; ValueError for a stride that skips tokens."""
    if stride > T:
        raise ValueError(f"stride {stride} skips tokens between blocks of {T}; give at most {T}")
    for ids, learn in encoded:
        start = 0
        yield ids[: T + 1], learn[: T + 1]
        while start + T + 1 < len(ids):
            start += stride
            yield ids[start : start + T + 1], learn[start : start + T + 1]


def load_data(config, block_size, tokenizer=None):
    """Data of a TrainConfig's sources: with texts=published as LLmini's code made it, else rows of
    multiple choice with the right choice as text, long padded rows in overlapping blocks."""
    return text_data(config, block_size, tokenizer, load=chunked)


def chunked(config, block_size, tokenizer=None):
    sizes = sizes_of(config.sizes, SIZES, "the loader llmini")
    check_known("texts", sizes["texts"], ("ours", "published"))
    if not 0 < sizes["share"] <= 1 or (sizes["share"] < 1 and sizes["texts"] == "ours"):
        raise ValueError(f"sizes share={sizes['share']:g}: give 0 to 1, with texts=published")
    if sizes["texts"] == "published":
        if config.val_data:
            own = "texts=published holds out a part of --data's own chunks"
            raise ValueError(f"val_data {config.val_data}: {own}; leave it out, or give texts=ours")
        data = published_data(config, block_size, tokenizer, sizes)
        data.sizes = as_text(sizes)
        return data
    facts = {}
    sources = text.read_sources(config, facts, score.as_training_text)

    def chunks(encoded):
        if config.packing == "pack":
            return encoded
        return overlapping(encoded, block_size, sizes["stride"] or block_size)

    data = to_data.mix(sources, config, block_size, facts, tokenizer, chunks)
    data.sizes = as_text(sizes)
    return data


# ---------- attention, as LLmini counted it and as one should ----------


def attention(model, tokens, targets, end_of_text):
    """Of a trained model on padded blocks (N, T), layer by layer and head by head:

    counted    head_stats() as LLmini's: masked entries and padding count, padding is end of text
    proper     the same over the keys in sight of queries that are text
    correlation    of entropy and sparsity over all heads, of each of the two
    """
    from minidepth_lab.measure import inspect

    there = to_data.filled(tokens, targets)
    padded = tokens.copy()
    padded[~there] = end_of_text
    found = dict(
        counted=inspect.model_stats(model, padded, count_masked=True),
        proper=inspect.model_stats(model, tokens, False, there),
    )
    found["correlation"] = {
        name: inspect.correlation(stats["entropy"], stats["sparsity"])
        for name, stats in found.items()
    }
    return found


def written_against_bare(model, tokenizer, problems, T):
    """How widely heads look while they read a written solution, and at the same places of as many
    bare questions put end to end: {"written", "bare": head_stats()}. What a question's own words
    look at cannot change with what follows it: the model is causal.

    problems: [(question, solution), …]; ValueError if none of them fits into T tokens.
    """
    from minidepth_lab.measure import inspect

    parts = [(question + "\n", solution) for question, solution in problems]
    encoded = [
        [tokenizer(part, add_special_tokens=False).input_ids for part in pair] for pair in parts
    ]
    questions = [ids for ids, _ in encoded]
    sequences, bare, counted = [], [], []
    for i, (question, solution) in enumerate(encoded):
        n = len(question) + len(solution)
        others = [word for j in range(len(questions)) for word in questions[i - j]]
        if n > T or len(others) < n:
            continue
        missing = [0] * (T - n)
        sequences.append(question + solution + missing)
        bare.append(others[:n] + missing)
        counted.append([len(question) <= place < n for place in range(T)])
    if not sequences:
        raise ValueError(
            f"none of {len(problems)} problems fits into {T} tokens; give shorter ones"
        )
    counted = torch.tensor(counted)
    return {
        name: inspect.model_stats(model, torch.tensor(tokens), False, counted)
        for name, tokens in (("written", sequences), ("bare", bare))
    }


def main():
    parser = argparse.ArgumentParser(description="Print the facts of LLmini's data as JSON.")
    parser.add_argument("tokenizer", help="the folder of a tokenizer")
    parser.add_argument("source", nargs="+", help="a file of a source in a folder of its name")
    args = parser.parse_args()
    try:
        given = dict(data=tuple(args.source), tokenizer=args.tokenizer)
        m, t = configs.of_values(PRESETS["llmini-c"] | given)
        facts = load_data(t, m.block_size).facts
    except (OSError, ValueError) as error:
        parser.error(console.one_line(error))
    del facts["lines"]
    names = (os.path.basename(os.path.dirname(os.path.abspath(path))) for path in facts["table"])
    facts["table"] = dict(zip(names, facts["table"].values()))
    print(json.dumps(facts, indent=1))


if __name__ == "__main__":
    main()
