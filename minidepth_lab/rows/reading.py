"""What one file holds: rows of any of KINDS."""

import bisect
import bz2
import contextlib
import csv
import functools
import gzip
import io
import itertools
import json
import lzma
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from minidepth_lab.base import console
from minidepth_lab.rows import forms

# small and capital letters are alike; all but COLUMNAR, of which no more is read than is asked for,
# may be PACKED, as in .jsonl.gz
COLUMNAR = (".parquet", ".arrow")
KINDS = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", *COLUMNAR, ".txt")
PACKED = (".gz", ".xz", ".bz2", ".zst")


def kind_of(path: str) -> str | None:
    """Which of KINDS a file's name ends in, or None."""
    name, ending = os.path.splitext(path.lower())
    name = name if ending in PACKED else path.lower()
    kind = next((kind for kind in KINDS if name.endswith(kind)), None)
    return None if kind in COLUMNAR and ending in PACKED else kind


class Rows:
    """Rows that are read when they are asked for, in parts: (how many there are, take), and
    take(places) gives those at some places of the part."""

    def __init__(self, parts: Iterable[tuple[int, Callable]]) -> None:
        self.parts = list(parts)
        self.ends = list(itertools.accumulate(n for n, _ in self.parts))

    def __len__(self) -> int:
        return self.ends[-1] if self.ends else 0

    def select(self, places: Iterable[int]) -> Iterator[dict]:
        """The rows at places that rise: each part is read once."""
        of = functools.partial(bisect.bisect_right, self.ends)
        for number, some in itertools.groupby(places, key=of):
            n, take = self.parts[number]
            yield from take([place - self.ends[number] + n for place in some])

    def __iter__(self) -> Iterator[dict]:
        return self.select(range(len(self)))


def joined(parts: list) -> "list | Rows":
    """Lists and Rows one after the other: a list, if all are."""
    if all(isinstance(part, list) for part in parts):
        return list(itertools.chain.from_iterable(parts))
    every = []
    for part in parts:
        if isinstance(part, list):
            part = Rows([(len(part), lambda places, rows=part: [rows[i] for i in places])])
        every += part.parts
    return Rows(every)


def read_columns(path: str) -> Rows:
    """Rows of a .parquet file, a group of them at a time, or of an .arrow file as `datasets` writes
    them, of which memory holds what is taken."""
    import pyarrow as pa

    def take(part, places):
        table = part() if callable(part) else part
        return table.take(pa.array(places)).to_pylist()

    with console.one_line_errors(f"data {path}", "cannot be read"):
        if kind_of(path) == ".parquet":
            import pyarrow.parquet

            file = pa.parquet.ParquetFile(console.regular_file(path))
            numbers = range(file.num_row_groups)
            sizes = [file.metadata.row_group(i).num_rows for i in numbers]
            parts = [functools.partial(file.read_row_group, i) for i in numbers]
        else:
            source = pa.memory_map(str(console.regular_file(path)))
            try:
                parts = list(pa.ipc.open_stream(source))
            except pa.ArrowInvalid:  # the other of its two forms
                file = pa.ipc.open_file(source)
                parts = [file.get_batch(i) for i in range(file.num_record_batches)]
            sizes = [part.num_rows for part in parts]
        return Rows((n, functools.partial(take, part)) for n, part in zip(sizes, parts))


def open_packed(path: str) -> Any:
    """A file, unpacked, to read bytes from."""
    ending = os.path.splitext(path.lower())[1]
    if ending == ".zst":
        import pyarrow as pa

        return pa.input_stream(path, compression="zstd")
    return {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}.get(ending, open)(path, "rb")


def read_text(path: str, flag: str = "data") -> str:
    """The text of a file in UTF-8, one of PACKED unpacked; ValueError, which names the `flag` that
    it was given to, for what is none."""
    if not os.path.exists(path):
        raise ValueError(f"{flag} {path} is not there; give the path of a file")
    with console.one_line_errors(f"{flag} {path}", "cannot be read"):
        with open_packed(console.regular_file(path)) as f:
            how = dict(encoding="utf-8-sig", errors="surrogateescape")
            text = io.TextIOWrapper(io.BytesIO(f.read()), **how).read()
        if "\ufeff" in text:  # files that begin with this mark, one after the other
            text = re.sub("(?m)^\ufeff", "", re.sub("(?<=})\ufeff(?={)", "\n", text))
        if odd := re.search("[\0\udc80-\udcff]", text):  # bytes that are not UTF-8 are these
            wrong = "not text in UTF-8; save it as UTF-8"
            if odd[0] == "\0":
                wrong = "a NUL; leave it out or, of UTF-16, save it as UTF-8"
            raise ValueError(f"character {odd.start() + 1} is {wrong}")
    return text


def parse_json(text: str) -> Any:
    """The value of a JSON text; ValueError for half a character, which no tokenizer takes."""
    value = json.loads(text)
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        half = f"\\u{ord(error.object[error.start]):04x}"
        raise ValueError(f"{half} is half a character, which no tokenizer takes") from None
    return value


def read_jsonl(path: str) -> list:
    """Rows of a .jsonl file, one on each line; also of a file by that name that is one list."""
    text = read_text(path)
    rows, numbered = [], [line for line in enumerate(text.split("\n"), 1) if line[1].strip()]
    if numbered and re.match(r"\s*\[\s*(\{|$)", numbered[0][1]):
        with contextlib.suppress(ValueError):  # a line can be a list, too: of messages
            whole = parse_json(text)
            return whole if len(numbered) > 1 or not forms.is_chat(whole) else [whole]
    for number, line in numbered:
        with console.one_line_errors(f"data {path}, line {number}", "is no JSON to read"):
            rows.append(parse_json(line))
    return rows


def is_ag_news(path: str, line: list[str]) -> bool:
    """Whether the first line of a table is a row of AG News as its authors give it: a class, a
    title and a text, below no names."""
    named = "agnews" in re.sub(r"[^a-z0-9]", "", path.lower())
    return named and len(line) == 3 and line[0] in ("1", "2", "3", "4")


def quoted_lines(text: str, comma: str, **how: Any) -> list[tuple[int, list[str]]]:
    """[(number of its last line, cells)] of a table in which quotes hold cells together."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=comma, strict=True, **how)
    try:
        return [(reader.line_num, cells) for cells in reader if any(cells)]
    except csv.Error as error:
        advice = 'put a text with quotes in it in quotes, and double them within: ""'
        raise ValueError(f"line {reader.line_num:,}: {error}; {advice}") from None


def plain_lines(text: str, comma: str) -> list[tuple[int, list[str]]]:
    """The same of one in which each line is a row, whatever quotes are in it; [] if some line has
    more or fewer cells, or there is one column."""
    cell = re.compile(rf'"((?:[^"]|"")*)"(?={re.escape(comma)}|$)|[^{re.escape(comma)}]*')
    lines = []
    for number, line in enumerate(text.split("\n"), 1):
        cells, at = [], 0
        while at <= len(line):
            found = cell.match(line, at)
            inner = found[1]
            cells.append(found[0] if inner is None else inner.replace('""', '"'))
            at = found.end() + 1
        if any(cells):
            lines.append((number, cells))
    same = {len(cells) for _, cells in lines}
    return lines if len(same) == 1 and same != {1} else []


def read_lines(path: str, text: str, comma: str, notes: list[str]) -> list[tuple[int, list[str]]]:
    """(number, cells) of the lines of a table. In a .tsv a quote that holds no cell together is a
    character; where the same file reads in two ways, the way that is taken is told."""
    plain, fault = plain_lines(text, comma), None
    for how in (dict(), dict(escapechar="\\", doublequote=False))[: 1 + ('\\"' in text)]:
        try:
            quoted = quoted_lines(text, comma, **how)
        except ValueError as error:
            fault = fault or error
            continue
        if len(plain) <= len(quoted):
            return quoted
        odd = next(n for (n, one), (_, two) in zip(plain, quoted) if one != two)
        if kind_of(path) == ".tsv":
            notes.append(f"{path}: quotes from line {odd:,} on are read as characters")
            return plain
        rows = f"{len(quoted) - 1:,} rows in {len(plain):,} lines"
        notes.append(f"{path}: a quote opens in line {odd:,} and ends in a later one: {rows}")
        return quoted
    if not plain:
        raise fault
    notes.append(f"{path}: quotes in it are read as characters ({fault})")
    return plain


def read_csv(path: str, notes: list[str]) -> list[dict]:
    """Rows of a .csv or .tsv file, by the names in its first line, in small letters; of AG News'
    own file title and text as one, as the hub has them. ValueError for a line with more or fewer
    cells, of whose text a part would be lost, and for a name that two columns have."""
    text = read_text(path)
    first = text.partition("\n")[0]
    comma = "\t" if kind_of(path) == ".tsv" else max(",;\t", key=first.count)
    csv.field_size_limit(sys.maxsize if sys.maxsize < 2**31 else 2**31 - 1)
    with console.one_line_errors(f"data {path}", "is no table"):
        lines = read_lines(path, text, comma, notes) or [(1, [])]
        own_form = is_ag_news(path, lines[0][1])
        number, header = (1, ["class", "title", "text"]) if own_form else lines.pop(0)
        names = [name.strip().lower() for name in header]
        # spreadsheets leave columns behind that have neither a name nor anything in them
        twice = [name for name in names if name and names.count(name) > 1]
        if twice:
            where = f"line {number} names two columns {twice[0]:.40}"
            raise ValueError(f"{where}; give each a name of its own")
        rows = []
        for number, line in lines:
            if len(line) != len(names):
                counts = f"{console.plural(len(line), 'cell')}, but the header has {len(names):,}"
                mark = "tabs" if comma == "\t" else comma
                advice = f"put texts with {mark} or line ends in quotes"
                raise ValueError(f"line {number:,} has {counts}; {advice}")
            rows.append(dict(zip(names, line)))
        if own_form:
            return [{"text": f"{row['title']} {row['text']}"} for row in rows]
        return rows


def read_json(path: str) -> list[dict]:
    """Rows of a .json file: a list, or one under the name "data", as SQuAD's authors give theirs,
    whose questions are then a row each."""
    with console.one_line_errors(
        f"data {path}", "is no JSON to read (with a row per line it is a .jsonl)"
    ):
        rows = parse_json(read_text(path))
    if isinstance(rows, dict) and isinstance(rows.get("data"), list):
        rows = rows["data"]
    if not isinstance(rows, list):
        raise ValueError(f"data {path} is no list of rows, [{{…}}, {{…}}]; it needs one")
    with console.one_line_errors(f"data {path}", "has an article that is none of SQuAD's"):
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


def read_file(path: str, notes: list[str]) -> "list | Rows":
    """Rows of a file of any of KINDS; ValueError says what is wrong with it, and `notes` are told
    what may be. Of a .txt the documents or, if it is one text, the paragraphs."""
    kind = kind_of(path)
    if kind in COLUMNAR:
        return read_columns(path)
    if kind in (".csv", ".tsv"):
        return read_csv(path, notes)
    if kind == ".json":
        return read_json(path)
    if kind != ".txt":
        return read_jsonl(path)
    text = read_text(path)
    return documents(text) if END_OF_DOCUMENT in text else paragraphs(text)
