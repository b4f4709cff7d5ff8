"""Text beyond what minidepth.py reads: other kinds of files, and several sources at once."""

import contextlib
import itertools
import os
import re

import minidepth as md

FILES = (".jsonl", ".json", ".parquet", ".txt")


def read_file(path):
    """Rows of a .jsonl, .json, .parquet or .txt file; ValueError says what is wrong with it."""
    if path.endswith(FILES) and not os.path.exists(path):
        raise ValueError(f"data {path} is not there; give the path of a file")
    if not os.path.isfile(path) or not path.endswith(FILES):
        raise ValueError(f"data {path} is not a file that ends in one of {' '.join(FILES)}")
    if path.endswith(".jsonl"):
        return md.read_jsonl(path)
    if path.endswith(".parquet"):
        with md.one_line_errors(f"data {path}", "cannot be read"):
            import pyarrow.parquet

            return pyarrow.parquet.read_table(path).to_pylist()
    text = md.read_text(path)
    if path.endswith(".json"):
        problem = "is not JSON (with a row per line it is a .jsonl)"
        with md.one_line_errors(f"data {path}", problem):
            return md.parse_json(text)
    # a row is a paragraph, or a line where there is only one
    parts = [part for part in re.split(r"\n\s*\n", text) if part.strip()]
    if len(parts) < 2:
        parts = [line for line in text.splitlines() if line.strip()]
    return [{"text": part + "\n"} for part in parts]


def read_source(source, config):
    """As minidepth.read_source(), of any file that read_file() reads."""
    if source != "embedded" and (source.endswith(FILES) or os.path.exists(source)):
        return md.split_rows(source, read_file(source), config)
    return md.read_source(source, config)


def in_turn(lists):
    """The first of each list, then the second of each, and so on: wherever it is cut off, all
    lists have had their share."""
    missing = object()
    turns = itertools.zip_longest(*lists, fillvalue=missing)
    return [x for turn in turns for x in turn if x is not missing]


def mix(sources, config, block_size, tokenizer=None, chunks=None):
    """[(source, rows to train on, rows held out)] → Data, with a validation part for each source
    where there are several. `chunks` as in minidepth.make_blocks()."""
    names = ", ".join(name for name, _, _ in sources)
    train = [row for _, rows, _ in sources for row in rows]
    held_out = in_turn([rows for _, _, rows in sources])
    data = md.make_data(names, train, held_out, config, block_size, tokenizer, chunks)
    if len(sources) > 1:
        for name, _, rows in sources:
            usable = list(filter(md.turns_of, rows))
            made = [usable, "val", name, data.tokenizer, config, block_size, chunks]
            with contextlib.suppress(ValueError):  # too small for a block of its own
                data.val_by_source[md.without_home(name)], _ = md.make_blocks(*made)
    return data


@md.no_garbage_collection()
def load_data(config, block_size=512, tokenizer=None):
    """As minidepth.load_data(), of any files and of several sources."""
    if len(config.data) == 1 and not is_other_file(config.data[0]):
        return md.load_data(config, block_size, tokenizer)
    if config.sizes:
        given = f"sizes {','.join(config.sizes)} are for a task or a loader"
        raise ValueError(f"{given}; give none with --data {' '.join(config.data)}")
    sources = [(source, *read_source(source, config)) for source in config.data]
    return mix(sources, config, block_size, tokenizer)


def is_other_file(source):
    """Whether a source is a file that minidepth.py does not read by itself."""
    if source == "embedded" or source.endswith(".jsonl"):
        return False
    return source.endswith(FILES) or os.path.exists(source)
