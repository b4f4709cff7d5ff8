"""Seconds that it takes to prepare text with a vocabulary of the report's size, and the memory.

    python tests/bench_text.py [ROWS]

Once as minidepth does it, and once with the end of a turn looked for as it was before: in the
whole vocabulary, built anew for each row. Of that only 100 rows are timed, and the rest counted.
"""

import json
import pathlib
import resource
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT)]

import minidepth as md  # noqa: E402

WORDS = 151_665  # of the report's tokenizer
OLD_ROWS = 100


def large_tokenizer():
    """A byte-level BPE of WORDS words: a real small one, and words that no text has."""
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

    rows = md.embedded_rows(2000)
    texts = ["".join(text for text, _ in md.segments(row)) for row in rows]
    tokenizer = md.load_tokenizer("embedded", texts)
    made = json.loads(tokenizer.backend_tokenizer.to_str())
    words, n = made["model"]["vocab"], len(tokenizer)
    for i in range(WORDS - n):
        words[f"word{i}"] = n + i
    made = Tokenizer.from_str(json.dumps(made))
    large = PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<|endoftext|>")
    assert len(large) == WORDS
    return large


def old_turn_end(tokenizer):
    if "<|im_end|>" in tokenizer.get_vocab():
        return "<|im_end|>"
    return tokenizer.eos_token or ""


def seconds(rows, tokenizer):
    """(seconds, tokens) of making blocks of rows."""
    began = time.perf_counter()
    encoded = md.encode((md.segments(row, tokenizer) for row in rows), tokenizer)
    tokens, _ = md.blocks(encoded, 512, "pack")
    return time.perf_counter() - began, tokens.size


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    tokenizer, rows = large_tokenizer(), md.embedded_rows(n)
    now, tokens = seconds(rows, tokenizer)
    print(f"{n:,} rows, {tokens:,} tokens, {len(tokenizer):,} words: {now:.1f} s")
    new, md.turn_end = md.turn_end, old_turn_end
    try:
        before, _ = seconds(rows[:OLD_ROWS], tokenizer)
    finally:
        md.turn_end = new
    whole = before / OLD_ROWS * n
    each = before / OLD_ROWS * 1000
    print(f"as before: {each:.1f} ms a row, so {whole:,.0f} s ({OLD_ROWS} rows timed)")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak of the process {peak:,.0f} MiB")


if __name__ == "__main__":
    main()
