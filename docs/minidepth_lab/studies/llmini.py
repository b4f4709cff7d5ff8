"""LLmini: three sizes that differ in depth, width and heads at once, and what changes one at a
time. Its rows are padded, and a long one goes on in a block that begins `stride` tokens later.

    python train.py --study llmini --seed 0 1 2
"""

import minidepth as md
from minidepth_lab import score, text
from minidepth_lab.sizes import as_text, sizes_of
from minidepth_lab.sources import text_data

# LLmini's data as far as our rows go: eight of its eleven sources
COMMON = dict(
    vocab_size=50_257, block_size=256, dropout=0.1, ffn_dropout=0.3, tie_weights=False,
    data=(
        "roneneldan/TinyStories", "Salesforce/wikitext:wikitext-2-raw-v1", "google/boolq",
        "fancyzhx/ag_news", "Rowan/hellaswag", "openai/gsm8k:main", "tau/commonsense_qa",
        "allenai/ai2_arc:ARC-Challenge",
    ),
    loader="llmini", sizes=("stride=128",), tokenizer="openai-community/gpt2", packing="pad",
    epochs=3, batch_size=32, grad_accum=2, lr_floor=0.0, warmup_steps=0.1, weight_decay=0.05,
    beta2=0.999, seed=42, eval_every=250, eval_blocks=256,
)  # fmt: skip
PRESETS = {
    "llmini-a": COMMON | dict(n_layers=10, n_heads=6, d_model=384, d_ff=1536),
    "llmini-b": COMMON | dict(n_layers=9, n_heads=5, d_model=320, d_ff=1280),
    "llmini-c": COMMON | dict(n_layers=8, n_heads=4, d_model=256, d_ff=1024),
}
md.PRESETS.update(PRESETS)
PRESET = "llmini-c"  # the smallest: the study goes from it to the largest

SIZES = dict(stride=0)  # tokens from chunk to chunk of a long padded row; 0: the block


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
    """Data of a TrainConfig's sources, rows of multiple choice with the right choice as text, long
    padded rows in overlapping blocks."""
    return text_data(config, block_size, tokenizer, load=chunked)


def chunked(config, block_size, tokenizer=None):
    sizes = sizes_of(config.sizes, SIZES, "the loader llmini")
    facts = {}
    sources = text.read_sources(config, facts, score.as_training_text)

    def chunks(encoded):
        if config.packing == "pack":
            return encoded
        return overlapping(encoded, block_size, sizes["stride"] or block_size)

    data = text.mix(sources, config, block_size, tokenizer, chunks, facts)
    data.sizes = as_text(sizes)
    return data
