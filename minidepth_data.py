"""minidepth's data: rows from anywhere → text, its learnable parts marked → blocks to train on.

The model, sampling and training stand in minidepth.py, which offers these names as its own.
Nothing here knows what a model is.

Sections: 1 embedded problems, 2 rows of files and hubs, 3 rows to text to tokens, 4 blocks and
batches, 5 a Data of all that.
"""

import array
import contextlib
import functools
import gc
import itertools
import math
import os
import random
import re
import statistics
import zlib
from dataclasses import dataclass, field

import numpy as np
import torch

from minidepth_files import blame, parsed, regular, without_home

# ---------- 1. embedded problems ----------

FAMILIES = ("chain", "lookup", "order")  # of embedded problems


def generator(*numbers):
    """A random generator that is a function of the numbers, whatever was drawn elsewhere."""
    return torch.Generator().manual_seed(zlib.crc32(repr(numbers).encode()))


def mixed(draw, pairs):
    """Pairs of letters as text, in an order that is drawn."""
    return ", ".join(sorted((f"{a} {b}" for a, b in pairs), key=lambda _: draw()))


def embedded_problem(draw, family, steps, modulus=10, ring=()):
    """A problem of `steps` steps: its question, worked steps, answer, the number of answers that
    are possible, its key, and how many keys there are.

    chain   a number to which numbers are added, modulo `modulus`; guessing finds 1 in `modulus`
    lookup  a ring of six or more letters in mixed order, followed `steps` times; 1 in (ring - 1)
    order   steps + 1 letters, neighbours compared in mixed order; which is k-th: 1 in (steps + 1)

    Problems of one key are the same: the numbers of a chain, the ring whatever its first letter,
    the line of letters; in whatever order the pairs are given, and whatever is asked of them.
    `draw()` gives a number from 0 to 1, 1 excluded. Of a `ring` that was given before, a list of
    letters, a look-up asks from any of them, without its pairs.
    """
    if family == "chain":
        value, question, work = int(modulus * draw()), [], []
        for _ in range(steps):
            add = 1 + int((modulus - 1) * draw())
            question.append(f"add {add}" if question else f"From {value} add {add}")
            work.append(f"{value} + {add} = {(value + add) % modulus}")
            value = (value + add) % modulus
        asked = f"{', '.join(question)} modulo {modulus} ?"
        return asked, ", ".join(work), str(value), modulus, asked, modulus * (modulus - 1) ** steps
    if ring:
        first = int(len(ring) * draw())
        letters = ring[first:] + ring[:first]
    else:
        letters = sorted("abcdefghij", key=lambda _: draw())
    if family == "lookup":
        line = letters[: max(6, steps + 1)]
        first = line.index(min(line))
        key, keys = " ".join(line[first:] + line[:first]), math.perm(10, len(line)) // len(line)
        pairs = mixed(draw, zip(line, line[1:] + line[:1]))
        asked = f"Go {steps} from {line[0]} ?"
        if not ring:
            asked = f"Follow {pairs}. {asked}"
        return asked, " ".join(line[: steps + 1]), line[steps], len(line) - 1, key, keys
    line, k = letters[: steps + 1], int((steps + 1) * draw())
    key, keys = " ".join(line), math.perm(10, len(line))
    asked = f"Sort {mixed(draw, zip(line, line[1:]))}. Number {k + 1} ?"
    return asked, key, line[k], len(line), key, keys


def is_held_out(key, keys):
    """Whether training never sees the problem of this key, of which there are `keys`: an eighth of
    them, a half where they are few."""
    share = 8 if keys >= 600 else 2
    return zlib.crc32(key.encode()) % share == 0


def embedded_rows(
    n,
    held_out=False,
    steps=(1, 2, 3),
    seed=0,
    families=FAMILIES,
    modulus=10,
    direct=False,
    questions=1,
):
    """n generated conversations in the published row format, families and step counts in turn, the
    answer after the worked steps or, with `direct`, without them.

    To train on, a ring is asked so many `questions`, one after another. All but the first go from
    a letter to the one before it, all the way round, so that there is more to learn from
    (docs/tutorials/15_first_run.py). The test asks one.

    Training never sees what is_held_out(). No key is held out twice; a kind that has no more drops
    out, and if none is left there are fewer than n rows; ValueError if there are none at all. Only
    random.random() is drawn from, whose numbers Python keeps the same in every version and on every
    platform: the same seed gives the same bytes.
    """
    draw, rows, taken = random.Random(2 * seed + held_out).random, [], set()
    kinds, turn, tried = list(itertools.product(steps, families)), 0, 0
    while len(rows) < n:
        if not kinds and not rows:
            raise ValueError(f"modulus {modulus} leaves too few chains; give a larger one")
        if not kinds:
            break
        k, family = kinds[turn % len(kinds)]
        question, work, answer, candidates, key, keys = embedded_problem(draw, family, k, modulus)
        tried += 1
        if is_held_out(key, keys) == held_out and key not in taken:
            asked = [(question, work, answer)]
            if held_out:
                taken.add(key)
            elif family == "lookup":
                ring = key.split()
                for _ in range(1, questions):
                    asked.append(embedded_problem(draw, family, len(ring) - 1, ring=ring)[:3])
            messages = []
            for question, work, answer in asked:
                says = f"#### {answer}" if direct else f"<think>\nSo {work}\n</think>\n\n {answer}"
                messages.append(dict(role="user", content=question))
                messages.append(dict(role="assistant", content=says))
            rows.append(dict(messages=messages, family=family, steps=k, guess=1 / candidates))
            turn, tried = turn + 1, 0
        elif tried == 2000:
            kinds.remove((k, family))
            tried = 0
    return rows


# ---------- 2. rows of files and hubs ----------


FILES = (".jsonl", ".json", ".parquet", ".txt")


def read_file(path):
    """Rows of a .jsonl, .json, .parquet or .txt file; ValueError says what is wrong with it."""
    if path.endswith(FILES) and not os.path.exists(path):
        raise ValueError(f"data {path} is not there; give the path of a file")
    if not os.path.isfile(path) or not path.endswith(FILES):
        raise ValueError(f"data {path} is not a file that ends in one of {' '.join(FILES)}")
    with blame(f"data {path}", "cannot be read"):
        if path.endswith(".parquet"):
            import pyarrow.parquet

            return pyarrow.parquet.read_table(path).to_pylist()
        with open(path, encoding="utf-8-sig", errors="surrogateescape") as f:
            text = f.read()
        if odd := re.search("[\0\udc80-\udcff]", text):  # bytes that are not UTF-8 are these
            what = "a NUL; leave it out or, of UTF-16," if odd[0] == "\0" else "not text in UTF-8;"
            raise ValueError(f"character {odd.start() + 1} is {what} save it as UTF-8")
    if path.endswith(".txt"):  # a row is a paragraph, or a line where there is only one
        parts = [part for part in re.split(r"\n\s*\n", text) if part.strip()]
        if len(parts) < 2:
            parts = [line for line in text.splitlines() if line.strip()]
        return [{"text": part + "\n"} for part in parts]
    if path.endswith(".json") or re.match(r"\s*\[\s*\{", text):  # or a .json by another name
        with blame(f"data {path}", "is not JSON (with a row per line it is a .jsonl)"):
            return parsed(text)
    rows = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            with blame(f"data {path}, line {number}", "is not JSON"):
                rows.append(parsed(line))
    return rows


HUB = "is neither a local file or folder nor to be had from the Hugging Face hub; on Kaggle turn"


def hub_rows(source, split, most=None):
    """The first `most` rows, by default all, of a split of a data set, HUB_ID or HUB_ID:SUBSET."""
    name, _, subset = source.partition(":")
    if not name.strip():
        raise ValueError(f"data {source!r} names no data set; give HUB_ID or HUB_ID:SUBSET")
    from datasets import load_dataset

    with blame(f"data {source}", f"{HUB} Internet on, or give --data FILE or --data embedded"):
        rows = load_dataset(name, subset or None, split=split)
        return list(rows.select(range(min(len(rows), most or len(rows)))))


def read_source(source, config):
    """(rows to train on, rows held out) of one source of `data`, lists of dicts, whatever the
    seed: every run is measured on the same rows."""
    most = config.max_rows or None
    if source == "embedded":
        steps, questions = config.problem_steps, config.ring_questions
        train = embedded_rows(most or 20_000, False, steps, questions=questions)
        return train, embedded_rows(600, True, steps)
    if source.endswith(FILES) or os.path.exists(source):
        rows = read_file(source)
    else:
        rows = hub_rows(source, "train", most)
    if not isinstance(rows, list) or len(rows) < 2:
        n = f"has {len(rows)} rows" if isinstance(rows, list) else "is no list of rows, [{…}, {…}]"
        raise ValueError(f"data {source} {n}; it needs at least 2, one to hold out")
    rows = rows[:most]
    rows = [rows[i] for i in torch.randperm(len(rows), generator=generator(0)).tolist()]
    cut = min(len(rows) - 1, math.ceil(len(rows) * config.val_fraction))
    return rows[cut:], rows[:cut]


# ---------- 3. rows to text to tokens ----------


def turns_of(row):
    """[(role, content), …] of a row; its `text` has the role "text"; [] if it is unusable."""
    if not isinstance(row, dict):
        return []
    if isinstance(row.get("messages"), list):
        messages = [m if isinstance(m, dict) else {} for m in row["messages"]]
        turns = [(m.get("role"), m.get("content")) for m in messages]
    elif row.get("question") is not None:  # columnar files fill the other rows' columns with None
        turns = [("user", row["question"]), ("assistant", row.get("answer"))]
    else:
        turns = [("text", row.get("text"))]
    usable = all(isinstance(part, str) for turn in turns for part in turn)
    return turns if usable else []


def turn_end(tokenizer):
    """What ends a turn: ChatML's token where the tokenizer has it, else its end of text."""
    number = tokenizer.convert_tokens_to_ids("<|im_end|>")  # of an unknown word: none, or another's
    if number is not None and tokenizer.convert_ids_to_tokens(number) == "<|im_end|>":
        return "<|im_end|>"
    return tokenizer.eos_token or ""


def segments(row, tokenizer=None):
    """[(text, whether the assistant says it), …] of a usable row, in ChatML or as plain text."""
    end, end_of_text = "", ""
    if tokenizer:
        end, end_of_text = turn_end(tokenizer), tokenizer.eos_token or ""
    parts = []
    for role, content in turns_of(row):
        if role == "text":
            parts.append((content + end_of_text, True))
        else:
            parts.append((f"<|im_start|>{role}\n", False))
            parts.append((content + end, role == "assistant"))
            parts.append(("\n", False))
    return parts


LONGEST = 50_000  # characters of a text tokenized at once: each takes 100 bytes or more


def pieces(text):
    """A text in parts, cut before a space where there is one, and not within 100 characters of its
    end, where a mark may stand."""
    start = 0
    while len(text) - start > LONGEST:
        most = min(start + LONGEST, len(text) - 100)
        space = text.rfind(" ", start + 1, most)
        end = space if space > 0 else most
        yield text[start:end]
        start = end
    yield text[start:]


def short_words(text):
    """A text to make a tokenizer from: the time that one word takes grows with its square."""
    return re.sub(r"(\S{500})(?=\S)|(\s{500})\s+", r"\1\2 ", text) if len(text) > 500 else text


def encode(rows, tokenizer, loss_on="all"):
    """segments() of each row → its token ids, and for each token whether it is learned: two lists.

    Segments are encoded one by one, so that a prompt is what it was in training; a thousand rows
    at a time, so that their texts and lists are never all in memory, and a long text in pieces."""
    rows = iter(rows)
    # what else a tokenizer returns takes as long as the ids
    plain = dict(add_special_tokens=False, return_attention_mask=False, return_token_type_ids=False)
    while batch := list(itertools.islice(rows, 1000)):
        texts = list(dict.fromkeys(text for parts in batch for text, _ in parts))
        short = [text for text in texts if len(text) <= LONGEST] or [""]
        ids = dict(zip(short, tokenizer(short, **plain).input_ids))
        for text in set(texts) - set(short):
            ids[text] = []
            for piece in pieces(text):
                ids[text] += tokenizer([piece], **plain).input_ids[0]
        for parts in batch:
            tokens, learn = [], []
            for text, said in parts:
                tokens += ids[text]
                learn += [said or loss_on == "all"] * len(ids[text])
            yield tokens, learn


def load_tokenizer(name, texts=(), size=2048):
    """The tokenizer of a folder or hub id; 'embedded' makes a byte-level BPE from `texts`."""
    if name == "embedded":
        from tokenizers import ByteLevelBPETokenizer, Tokenizer
        from transformers import PreTrainedTokenizerFast

        special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>"]
        bpe = ByteLevelBPETokenizer()
        # a text as a whole would take eighty times its size
        texts = (part for text in texts for part in pieces(short_words(text)))
        bpe.train_from_iterator(texts, size, special_tokens=special, show_progress=False)
        bpe = Tokenizer.from_str(bpe.to_str())  # out of its wrapper
        return PreTrainedTokenizerFast(tokenizer_object=bpe, eos_token=special[0])
    local = os.path.isdir(name)
    problem = f"{HUB} Internet on, or give --tokenizer DIR or embedded"
    if local:
        problem = "is a folder that cannot be read"
    with blame(f"tokenizer {name}", problem):
        if local:
            for file in os.listdir(name):
                regular(os.path.join(name, file))
        from transformers import AutoTokenizer  # a second, which the embedded one can spare

        # said, so that nobody is asked whether a stranger's code may run
        return AutoTokenizer.from_pretrained(name, local_files_only=local, trust_remote_code=False)


def final_answer(text):
    """What a text answers: all after its last ####, else after </think>; None without either."""
    mark = "####" if "####" in text else "</think>"
    return text.rsplit(mark, 1)[1].strip() if mark in text else None


def is_labelled(row):
    """Whether it says of itself what embedded rows do; others can have columns so named."""
    family, steps, guess = row.get("family"), row.get("steps"), row.get("guess")
    if not isinstance(family, str) or type(steps) is not int or type(guess) is not float:
        return False
    return bool(family.strip()) and 1 <= steps <= 99 and 0 < guess <= 1


def problem_of(row):
    """A row as a held-out problem, {messages, solution: the last turn, answer, …}, or None: it is
    checkable if the assistant speaks last, with a final_answer() of one line, 40 characters."""
    *asked, (role, solution) = turns_of(row)
    answer = final_answer(solution)
    if role != "assistant" or not answer or len(answer) > 40 or "\n" in answer:
        return None
    messages = [dict(role=role, content=content) for role, content in asked]
    problem = dict(messages=messages, solution=solution, answer=answer)
    if is_labelled(row):
        problem |= {name: row[name] for name in ("family", "steps", "guess")}
    return problem


CHAT = """{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""  # kept with the tokenizer of a model trained on chats; segments() says the same


# ---------- 4. blocks and batches ----------


def blocks(encoded, T, packing):
    """encode()'s rows → (tokens, targets), each (N, T) int32; -100 is no target.

    pack: all rows end to end, cut every T tokens; the rest, less than a block, is left out.
    pad:  each row from the start of a block, the last one filled up with zeros; a longer row goes
          on in another block.
    """
    # typed arrays, not lists of numbers: 4 bytes for a token where a list takes 36
    tokens, targets = array.array("i"), array.array("i")
    for ids, learn in encoded:
        following = [i if said else -100 for i, said in zip(ids, learn)]
        if packing == "pack":
            tokens.extend(ids)
            targets.extend(following)
            continue
        tokens.extend(ids[:-1])
        targets.extend(following[1:])
        missing = -len(ids[1:]) % T
        tokens.extend([0] * missing)
        targets.extend([-100] * missing)
    tokens, targets = np.frombuffer(tokens, np.int32), np.frombuffer(targets, np.int32)
    if packing == "pack":
        targets = targets[1:]
    N = len(targets) // T
    return tokens[: N * T].reshape(N, T), targets[: N * T].reshape(N, T)


def filled(tokens, targets):
    """Which positions of blocks() hold text, (N, T) bool: all up to the last token or target."""
    there = (tokens != 0) | (targets != -100)
    return np.logical_or.accumulate(there[:, ::-1], axis=1)[:, ::-1]


@functools.lru_cache(4)
def block_order(n, seed, epoch):
    return torch.randperm(n, generator=generator(seed, epoch))


def batch_rows(step, batch_size, n, seed):
    """Which of n blocks the 0-based step takes, each epoch in a new order: nothing to save, and
    every process of a job knows the whole batch."""
    positions = range(step * batch_size, (step + 1) * batch_size)
    return torch.stack([block_order(n, seed, at // n)[at % n] for at in positions])


# ---------- 5. a Data of all that ----------


@dataclass
class Data:
    """What a model trains on and is measured by. load_data() makes it of text; a study makes its
    own, with methods of its own: a curriculum, batches drawn anew, another measure."""

    train: tuple  # (tokens, targets), each (N, T) int32
    val: tuple  # the same, several sources in turn
    tokenizer: object = None
    problems: list = field(default_factory=list)  # of problem_of(), several sources in turn
    facts: dict = field(default_factory=dict)  # for the lines printed before the first step
    n_words: int = 0  # ids in use
    val_by_source: dict = field(default_factory=dict)  # as `val`, where there are several sources
    sizes: tuple = ()  # all that were used, defaults too, for config.json
    fresh: bool = False  # draw() never repeats itself: there are no epochs
    seed: int = 0  # train() sets it to the run's
    state: dict = field(default_factory=dict)  # what a resume needs; kept in checkpoints

    def draw(self, step, n):
        """(tokens, targets), each (n, T) int64, of the 0-based step: a function of it, of the seed
        and of the state, so that a resumed run draws the same."""
        rows = batch_rows(step, n, len(self.train[0]), self.seed).numpy()
        return tuple(torch.from_numpy(part[rows]).long() for part in self.train)

    def after_step(self, loss):
        """Called with the training loss after each step that was not skipped."""

    def measure(self, model):
        """{name: value} that each evaluation adds to the log."""
        return {}

    def fingerprint(self):
        """Two numbers that tell this data from other data, for resuming: of its blocks, and of
        what else it is measured by."""
        sources = [part for pair in self.val_by_source.values() for part in pair]
        crcs = [0, zlib.crc32(repr(self.problems).encode(errors="replace"))]
        for i, parts in enumerate(((*self.train, *self.val), sources)):
            for part in parts:
                crcs[i] = zlib.crc32(np.ascontiguousarray(part), crcs[i])
        return crcs


def in_turn(lists):
    """The first of each list, then the second of each, and so on: wherever it is cut off, all
    lists have had their share."""
    missing = object()
    turns = itertools.zip_longest(*lists, fillvalue=missing)
    return [x for turn in turns for x in turn if x is not missing]


@contextlib.contextmanager
def uncollected():
    """Without Python's garbage collector, which would look through every row and token made so far
    again and again, though all of them stay: a third of the time that data takes."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@uncollected()
def load_data(config, block_size=512, tokenizer=None):
    """Read, split, tokenize and pack the sources of a TrainConfig → Data; ValueError if that
    does not give at least one block to train and one to validate on."""
    if config.sizes:
        what = f"sizes {','.join(config.sizes)} are for a task or a loader"
        raise ValueError(f"{what}; give none with --data {' '.join(config.data)}")
    sources = [(source, *read_source(source, config)) for source in config.data]
    return make_data(sources, config, block_size, tokenizer)


def make_data(sources, config, block_size, tokenizer=None, chunks=None):
    """[(source, rows to train on, rows held out)] → Data, as load_data() says.

    chunks(encode()'s rows) may cut the rows otherwise before they become blocks."""
    names = ", ".join(name for name, _, _ in sources)
    train = [row for _, rows, _ in sources for row in rows]
    held_out = in_turn([rows for _, _, rows in sources])
    every_row = train + held_out
    parts = dict(train=list(filter(turns_of, train)), val=list(filter(turns_of, held_out)))
    if not parts["train"] or not parts["val"]:
        cells = [cell for row in every_row if isinstance(row, dict) for cell in row.items()]
        columns = sorted({f"{key!s:.40} ({type(value).__name__})" for key, value in cells})
        found = ", ".join(columns[:20]) or "no columns"
        needs = "a row needs messages, question + answer, or text, all of strings"
        raise ValueError(f"data {names}: {needs}; found {found}")
    usable = parts["train"] + parts["val"]
    if tokenizer is None:
        texts = ("".join(text for text, _ in segments(row)) for row in usable)
        tokenizer = load_tokenizer(config.tokenizer, texts, config.tokenizer_size)
    if any(turns_of(row)[0][0] != "text" for row in usable):
        tokenizer.chat_template = CHAT
    facts = dict(unusable_rows=len(every_row) - len(usable))

    def cut(rows, kind):
        """blocks() of the rows; `facts` gain how many rows and tokens of this kind there are."""
        lengths = []

        def counted():
            parts = (segments(row, tokenizer) for row in rows)
            for ids, learn in encode(parts, tokenizer, config.loss_on):
                lengths.append(len(ids))
                yield ids, learn

        encoded = chunks(counted()) if chunks else counted()
        made = blocks(encoded, block_size, config.packing)
        longest = max((n for row, n in zip(rows, lengths) if is_labelled(row)), default=0)
        if longest > block_size + 1:  # cut, it could not be answered
            what = f"block_size {block_size} is too short for problems of {longest} tokens"
            fewer = "or fewer --ring_questions or --problem_steps"
            raise ValueError(f"{what}; give at least {longest - 1}, {fewer}")
        facts[f"{kind}_rows"], facts[f"{kind}_tokens"] = len(rows), sum(lengths)
        if not (made[1] != -100).any():
            what = f"data {names}: {sum(lengths)} tokens for {kind} do not fill a block of"
            advice = "give more text, a smaller --block_size, --packing pad, or --loss_on all"
            raise ValueError(f"{what} {block_size} to learn from; {advice}")
        return made

    train_blocks, val_blocks = cut(parts["train"], "train"), cut(parts["val"], "val")
    problems = [problem for row in parts["val"] if (problem := problem_of(row))]
    guesses = [problem["guess"] for problem in problems if "guess" in problem]
    if guesses and len(guesses) == len(problems):
        facts["guess"] = statistics.mean(guesses)
    data = Data(train_blocks, val_blocks, tokenizer, problems, facts, len(tokenizer))
    if len(sources) > 1:
        for name, _, rows in sources:
            with contextlib.suppress(ValueError):  # too small for a block of its own
                usable = list(filter(turns_of, rows))
                data.val_by_source[without_home(name)] = cut(usable, f"val of {name}")
    return data
