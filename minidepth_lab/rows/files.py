"""Text beyond what minidepth.py reads: other kinds of files, folders of them, and several sources
at once."""

import csv
import glob
import io
import itertools
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import minidepth as md

# each but .parquet may be packed, as in .jsonl.gz; small and capital letters are alike
KINDS = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet", ".txt")

# ---------- files ----------


def kind_of(path: str) -> str | None:
    """Which of KINDS a file's name ends in, or None."""
    name = path.lower().removesuffix(".gz")
    return next((kind for kind in KINDS if name.endswith(kind)), None)


def is_pattern(source: str) -> bool:
    """Whether a source is a pattern of files, maybe several, and not the name of one."""
    return glob.has_magic(source) and not os.path.exists(source)


def is_path(name: str) -> bool:
    """Whether a name can only be a path on this machine: an id of the hub has one / at most, and
    begins with a letter or a digit."""
    return name.startswith((".", "/")) or name.count("/") > 1


def is_local(source: str) -> bool:
    """Whether a source names a file, a folder or a pattern of files, there or not."""
    if kind_of(source) or is_path(source):
        return True
    return os.path.exists(source) or glob.has_magic(source)


def is_missing(source: str) -> bool:
    """Whether a source names a file or a folder that is not there."""
    return is_local(source) and not (os.path.exists(source) or is_pattern(source))


def inside(folder: str) -> Iterator[str]:
    """The files in a folder and in its folders; of folders that are not looked into, hidden ones
    and links, their own paths."""
    for at, folders, names in os.walk(folder):
        for name in list(folders):
            if name.startswith(".") or os.path.islink(os.path.join(at, name)):
                folders.remove(name)
                names.append(name)
        yield from (os.path.join(at, name) for name in names)


def why_not_read(path: str) -> str:
    """What keeps a path inside() a folder from being read, in a word or two; "" if it is read."""
    name = os.path.basename(path)
    if name.startswith("."):
        return "hidden"
    if not os.path.isfile(path):
        return "no regular file"
    if not kind_of(path):
        return os.path.splitext(name)[1].lower() or "without an ending"
    return ""


def fitting(pattern: str) -> list[str]:
    """The paths that a pattern fits; with **, which fits every folder on the way, files alone."""
    found = glob.glob(pattern, recursive=True)
    return [path for path in found if "**" not in pattern or not os.path.isdir(path)]


def left_out(source: str) -> list[str]:
    """What is to be told of the files of a folder, or of those that a pattern fits, that are not
    read: a note that counts them by their ending, or none."""
    paths = fitting(source) if is_pattern(source) else inside(source)
    counts = Counter(filter(None, map(why_not_read, paths)))
    if not counts:
        return []
    by_ending = ", ".join(f"{ending} ({n:,})" for ending, n in counts.most_common())
    return [f"{md.plural(counts.total(), 'file')} of {source} left out: {by_ending}"]


def files_of(source: str) -> list[str]:
    """The files that a source names: itself, those in a folder and its folders that end in one of
    KINDS, or those that a pattern fits, in the order of their names; ValueError for none."""
    if os.path.isdir(source):
        found = [path for path in inside(source) if not why_not_read(path)]
        what = "is a folder without a file that ends in one of"
    elif is_pattern(source):
        found = [path for path in fitting(source) if not why_not_read(path)]
        what = "fits no file that ends in one of"
    else:
        if not os.path.exists(source):
            raise ValueError(f"data {source} is not there; give the path of a file")
        found = [source] if kind_of(source) else []
        what = "is neither a folder nor a file that ends in one of"
    if not found:
        raise ValueError(f"data {source} {what} {' '.join(KINDS)}, or these with .gz")
    return sorted(found)


def is_ag_news(path: str, line: list[str]) -> bool:
    """Whether the first line of a table is a row of AG News as its authors give it: a class, a
    title and a text, below no names."""
    named = "agnews" in re.sub(r"[^a-z0-9]", "", path.lower())
    return named and len(line) == 3 and line[0] in ("1", "2", "3", "4")


def read_csv(path: str) -> list[dict]:
    """Rows of a .csv or .tsv file, by the names in its first line, in small letters; of AG News'
    own file title and text as one, as the hub has them. ValueError for a line with more or fewer
    cells, of whose text a part would be lost, and for a name that two columns have."""
    text = md.read_text(path)
    first = text.partition("\n")[0]
    comma = "\t" if kind_of(path) == ".tsv" else max(",;\t", key=first.count)
    csv.field_size_limit(sys.maxsize if sys.maxsize < 2**31 else 2**31 - 1)
    with md.one_line_errors(f"data {path}", "is no table"):
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=comma, strict=True)
        lines = (line for line in reader if any(line))
        header = next(lines, [])
        own_form = is_ag_news(path, header)
        if own_form:
            header, lines = ["class", "title", "text"], itertools.chain([header], lines)
        names = [name.strip().lower() for name in header]
        # spreadsheets leave columns behind that have neither a name nor anything in them
        twice = [name for name in names if name and names.count(name) > 1]
        if twice:
            where = f"line {reader.line_num} names two columns {twice[0]:.40}"
            raise ValueError(f"{where}; give each a name of its own")
        rows = []
        for line in lines:
            if len(line) != len(names):
                counts = f"{md.plural(len(line), 'cell')}, but the header has {len(names):,}"
                mark = "tabs" if comma == "\t" else comma
                advice = f"put texts with {mark} or line ends in quotes"
                raise ValueError(f"line {reader.line_num:,} has {counts}; {advice}")
            rows.append(dict(zip(names, line)))
        if own_form:
            return [{"text": f"{row['title']} {row['text']}"} for row in rows]
        return rows


# the columns of a row of text, or of one that is told what else it is for
COLUMNS = ("messages", "conversations", "question", "prompt", "instruction", "text")
COLUMNS += ("choices", "endings", "passage", "answers")


def check_names(
    source: str, rows: list[dict], known: Iterable[str] = COLUMNS, wanted: str = md.ROW_FORMS
) -> None:
    """ValueError for rows of tables of whose columns none is `known`: their first line may be a
    row. `wanted` says which columns a row has."""
    if not all(kind_of(path) in (".csv", ".tsv") for path in files_of(source)):
        return
    if not rows or set().union(*rows) & set(known):
        return
    names = ", ".join(name[:40].strip() for name in list(rows[0])[:4])
    unknown = f"data {source}: its first line has no name that is known: {names}"
    advice = "a table begins with a line of names: add one, such as class,title,text"
    raise ValueError(f"{unknown}; {advice}; a row has {wanted}")


def read_json(path: str) -> list[dict]:
    """Rows of a .json file: a list, or one under the name "data", as SQuAD's authors give theirs,
    whose questions are then a row each."""
    with md.one_line_errors(
        f"data {path}", "is no JSON to read (with a row per line it is a .jsonl)"
    ):
        rows = md.parse_json(md.read_text(path))
    if isinstance(rows, dict) and isinstance(rows.get("data"), list):
        rows = rows["data"]
    if not isinstance(rows, list):
        return rows
    with md.one_line_errors(f"data {path}", "has an article that is none of SQuAD's"):
        return [part for row in rows for part in questions_of(row)]


def is_article(row: Any) -> bool:
    """Whether a row is an article of SQuAD: all of its paragraphs have their questions, qas."""
    paragraphs = row.get("paragraphs") if isinstance(row, dict) else None
    if not paragraphs or not isinstance(paragraphs, list):
        return False
    return all(isinstance(part, dict) and isinstance(part.get("qas"), list) for part in paragraphs)


def questions_of(row: Any) -> list[dict]:
    """The questions of an article of SQuAD, each with its context, as the hub has them; any other
    row as it is. Those of a test set have no answers."""
    if not is_article(row):
        return [row]
    found = []
    for paragraph in row["paragraphs"]:
        for asked in paragraph["qas"]:
            answers = [answer["text"] for answer in asked.get("answers") or []]
            both = dict(context=paragraph["context"], question=asked["question"])
            found.append(both | dict(answers=dict(text=answers) if answers else None))
    return found


END_OF_DOCUMENT = "<|endoftext|>"
SHORTEST_LINE = 1000  # characters; a longer text without an end of line is cut by position


def documents(text: str) -> list[dict]:
    """The parts of a text that stand between marks of a document's end."""
    parts = (part.strip("\n") for part in text.split(END_OF_DOCUMENT))
    return [{"text": part + "\n"} for part in parts if part.strip()]


def paragraphs(text: str) -> list[dict]:
    """The paragraphs of one document; its lines where there is only one paragraph, and where there
    is only one line parts of it, a hundredth or ten thousand characters each."""
    parts = [part for part in re.split(r"\n\s*\n", text) if part.strip()]
    if len(parts) < 2:
        parts = [line for line in text.splitlines() if line.strip()]
    if len(parts) != 1 or len(parts[0]) < SHORTEST_LINE:
        return [{"text": part + "\n"} for part in parts]
    (line,) = parts
    size = min(10_000, len(line) // 100)
    rows = [{"text": line[i : i + size], "goes_on": True} for i in range(0, len(line), size)]
    rows[-1]["goes_on"] = False
    return rows


def read_file(path: str) -> list[dict]:
    """Rows of a file of any of KINDS; ValueError says what is wrong with it."""
    (path,) = files_of(path)
    kind = kind_of(path)
    if kind == ".parquet":
        with md.one_line_errors(f"data {path}", "cannot be read"):
            import pyarrow.parquet

            return pyarrow.parquet.read_table(md.regular_file(path)).to_pylist()
    if kind in (".csv", ".tsv"):
        return read_csv(path)
    if kind == ".json":
        return read_json(path)
    if kind != ".txt":
        return md.read_jsonl(path)
    text = md.read_text(path)
    return documents(text) if END_OF_DOCUMENT in text else paragraphs(text)


def read_rows(source: str) -> tuple[list[dict], bool]:
    """(rows of the files that a source names, whether they are one text, in its order). Of several
    .txt files each is a document, and so a row."""
    files = files_of(source)
    if len(files) == 1:
        (path,) = files
        rows = read_file(path)
        one_text = kind_of(path) == ".txt" and END_OF_DOCUMENT not in md.read_text(path)
        return rows, one_text
    rows = []
    for path in files:
        found = documents(md.read_text(path)) if kind_of(path) == ".txt" else read_file(path)
        if not isinstance(found, list):
            raise ValueError(f"data {path} is no list of rows, [{{…}}, {{…}}]; it needs one")
        rows += found
    return rows, False


# ---------- sources ----------


def split_text(
    source: str, rows: list[dict], config: md.TrainConfig, facts: dict
) -> tuple[list[dict], list[dict]]:
    """(rows to train on, rows held out) of one text: its end is held out. Paragraphs that stand
    beside one another are not parted, each knows much of the next."""
    rows = md.usable_rows(source, rows, facts, config.max_rows)
    if config.val_data:
        return rows, []
    if len(rows) < 2:
        few = f"data {source} has {md.plural(len(rows), 'row')}"
        raise ValueError(f"{few}; it needs at least 2, one to hold out")
    n = md.n_held_out(len(rows), config)
    facts["notes"].append(
        f"{source} is one text: its end is held out, {n:,} of {len(rows):,} parts"
    )
    return rows[:-n], rows[-n:]


def read_source(
    source: str, config: md.TrainConfig, facts: dict | None = None, change: Callable | None = None
) -> tuple[list[dict], list[dict]]:
    """As minidepth.read_source(), of any files that read_rows() reads."""
    if source == "embedded" or not is_local(source):
        return md.read_source(source, config, facts, change)
    facts = {} if facts is None else facts
    rows, one_text = read_rows(source)
    check_names(source, rows)
    facts.setdefault("notes", []).extend(left_out(source))
    if one_text:
        return split_text(source, rows, config, facts)
    return md.split_rows(source, rows, config, facts, change)


def read_sources(
    config: md.TrainConfig, facts: dict, change: Callable | None = None
) -> list[tuple[str, list[dict], list[dict]]]:
    """[(source, rows to train on, rows held out)] of a TrainConfig, its val_data the last."""
    found = [(source, *read_source(source, config, facts, change)) for source in config.data]
    if config.val_data:
        rows, _ = read_rows(config.val_data)
        check_names(config.val_data, rows)
        facts.setdefault("notes", []).extend(left_out(config.val_data))
        held_out = md.usable_rows(config.val_data, rows, facts, change=change)
        found.append((config.val_data, [], held_out))
    return found


def in_turn(lists: Iterable) -> list:
    """The first of each list, then the second of each, and so on: wherever it is cut off, all
    lists have had their share."""
    missing = object()
    turns = itertools.zip_longest(*lists, fillvalue=missing)
    return [x for turn in turns for x in turn if x is not missing]


def mix(
    sources: list[tuple[str, list[dict], list[dict]]],
    config: md.TrainConfig,
    block_size: int,
    facts: dict,
    tokenizer: Any = None,
    chunks: Callable | None = None,
) -> md.Data:
    """[(source, rows to train on, rows held out)], all of them usable, → Data, with a validation
    part for each source where several have one. `facts` and `chunks` as in make_data()."""
    names = ", ".join(name for name, _, _ in sources)
    train = [row for _, rows, _ in sources for row in rows]
    held_out = in_turn([rows for _, _, rows in sources])
    data = md.make_data(names, train, held_out, config, block_size, tokenizer, chunks, facts)
    measured = [(name, rows) for name, _, rows in sources if rows]
    if len(measured) > 1:
        for name, rows in measured:
            made = [rows, "val", name, data.tokenizer, config, block_size, chunks]
            try:
                data.val_by_source[md.without_home(name)], _ = md.make_blocks(*made)
            except ValueError as error:  # too small for a block of its own
                why = str(error).removeprefix(f"data {name}: ")
                data.facts["notes"].append(f"{name} is not in val_loss_by_source: {why}")
    return data


@md.no_garbage_collection()
def load_data(config: md.TrainConfig, block_size: int = 512, tokenizer: Any = None) -> md.Data:
    """As minidepth.load_data(), of any files and of several sources."""
    if config.sizes:
        given = f"sizes {','.join(config.sizes)} are for a task or a loader"
        raise ValueError(f"{given}; give none with --data {' '.join(config.data)}")
    facts = {}
    sources = read_sources(config, facts)
    return mix(sources, config, block_size, facts, tokenizer)
