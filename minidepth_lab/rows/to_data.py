"""Usable rows as blocks, held-out problems, and what a user is told of them."""

import contextlib
import copy
import gc
import itertools
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

import minidepth as md
from minidepth_lab.base import configs, console
from minidepth_lab.base.data import Data
from minidepth_lab.rows import answers, files, forms, tokenizing

if TYPE_CHECKING:  # to import it takes seconds, which only those pay who have text
    from transformers import PreTrainedTokenizerBase as Tokenizer


def problem_of(row: dict) -> dict | None:
    """A usable row as minidepth.problem_of() has it; an answer that is a number is compared as one,
    but for those of our own problems, and of reasoning-gym by its scorer."""
    if "messages" not in row:
        return None
    plain = [m | dict(content=str(m["content"])) for m in row["messages"]]  # of forms.Given, too
    problem = md.problem_of(row | dict(messages=plain))
    if problem and "gym" in row:  # an item of reasoning-gym
        problem["answer"] = answers.Scored(problem["answer"], row["gym"])
    elif problem and "family" not in problem:
        problem["answer"] = answers.Answer(problem["answer"])
    return problem


def filled(tokens: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Which positions of blocks() hold text, (n_blocks, T) bool: all up to the last token or
    target."""
    there = (tokens != 0) | (targets != -100)
    return np.logical_or.accumulate(there[:, ::-1], axis=1)[:, ::-1]


@contextlib.contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Without Python's garbage collector, which would look through every row and token made so far
    again and again, though all of them stay: a third of the time that data takes."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def fit_to_block(
    ids: list[int],
    learn: list[bool],
    row: dict,
    block_size: int,
    config: configs.TrainConfig,
    too_long: dict[str, list[int]],
) -> tuple[list[int], list[bool]] | None:
    """(ids, learn) of a row that is longer than a block, dropped (None), cut, or as it is, to be
    split; its length is added to `too_long`, {what was done: lengths}."""
    how = config.long_rows
    if how is None:  # half of a conversation would teach an answer without its question
        whole = config.packing == "pack" or forms.turns_of(row)[0][0] == "text"
        how = "split" if whole else "drop"
    too_long.setdefault(how, []).append(len(ids))
    if how == "drop":
        return None
    if how == "cut":
        return ids[: block_size + 1], learn[: block_size + 1]
    return ids, learn


def make_blocks(
    rows: list[dict],
    kind: str,
    name: str,
    tokenizer: "Tokenizer",
    config: configs.TrainConfig,
    block_size: int,
    chunks: Callable | None = None,
    notes: list[str] | None = None,
) -> tuple[tuple[np.ndarray, np.ndarray], dict]:
    """Usable rows of the source `name` → blocks() of them, and facts: how many rows and tokens of
    this `kind` ('train', 'val') there are, and the lengths of the rows in tokens. Rows longer than
    a block are dropped, cut or split as config.long_rows says, and blocks without a target left
    out, both told to `notes`. ValueError where nothing to learn from is left.

    chunks(encode()'s rows) may cut the rows otherwise before they become blocks.
    """
    lengths, too_long = [], {}  # of all rows, and of those that do not fit in a block
    unknown = []  # rows with a word that the tokenizer does not know

    def counted():
        parts = (tokenizing.segments(row, tokenizer) for row in rows)
        for row, (ids, learn) in zip(rows, md.encode(parts, tokenizer, config.loss_on)):
            lengths.append(len(ids))
            if tokenizer.unk_token_id is not None and tokenizer.unk_token_id in ids:
                unknown.append(row)
            if len(ids) > block_size + 1 and not chunks:
                fitted = fit_to_block(ids, learn, row, block_size, config, too_long)
                if fitted is None:
                    continue
                ids, learn = fitted
            yield ids, learn

    encoded = chunks(counted()) if chunks else counted()
    tokens, targets = md.blocks(encoded, block_size, config.packing)
    if "embedded" in config.data:  # others are as long as they are
        longest = max((n for row, n in zip(rows, lengths) if forms.is_labelled(row)), default=0)
        if longest > block_size + 1:  # cut, it could not be answered
            too_short = f"block_size {block_size} is too short for problems of {longest} tokens"
            fewer = "or fewer --ring_questions or --problem_steps"
            raise ValueError(f"{too_short}; give at least {longest - 1}, {fewer}")
    dropped = too_long.get("drop", [])
    n_tokens = (
        sum(lengths) - sum(dropped) - sum(n - block_size - 1 for n in too_long.get("cut", []))
    )
    told = []
    if too_long:
        told = tell_long_rows(too_long, len(rows), kind, name, block_size, config.packing)
    if len(dropped) == len(rows):
        raise ValueError(f"data {told[0]}")
    learned = (targets != -100).any(1)
    if not learned.any():
        raise ValueError(
            f"data {name}: {nothing_learned(rows, n_tokens, kind, block_size, config)}"
        )
    if not learned.all():
        without = console.plural(int((~learned).sum()), "block")
        told.append(
            f"{without} of {name} for {kind} have nothing to learn in them and are left out"
        )
        tokens, targets = tokens[learned], targets[learned]
    if unknown:
        text = "".join(text for _, text in forms.turns_of(unknown[0]))
        what = f"what the tokenizer does not know, as {tokenizing.unknown_in(tokenizer, text)!r}"
        told.append(f"{console.plural(len(unknown), 'row')} of {name} for {kind} have {what}")
    if notes is not None:
        notes += told
    counts = {f"{kind}_rows": len(rows) - len(dropped), f"{kind}_tokens": n_tokens}
    return (tokens, targets), counts | {f"{kind}_lengths": lengths}


def tell_long_rows(
    too_long: dict[str, list[int]], n_rows: int, kind: str, name: str, block_size: int, packing: str
) -> list[str]:
    """What is told of rows longer than a block: a list of sentences, none without such rows."""
    told = []
    for how, lengths in too_long.items():
        some = f"{name}: {len(lengths):,} of {console.plural(n_rows, 'row')} for {kind} "
        some += "are longer than a "
        some += f"block of {block_size}"
        enough = f"--block_size {max(lengths) - 1:,} holds them all".replace(",", "")
        if how == "drop":
            why = "their answers would be trained without their questions"
            other = "or give --long_rows cut"
            told.append(f"{some} and left out, as {why}; {enough}, {other}")
        elif how == "cut":
            told.append(f"{some} and cut at its end; {enough}")
        else:
            where = "cut where a block ends" if packing == "pack" else "go on in another block"
            told.append(f"{some} and {where}; {enough}")
    return told


def nothing_learned(
    rows: list[dict], n_tokens: int, kind: str, block_size: int, config: configs.TrainConfig
) -> str:
    """Why the blocks of some rows have no target, and what would help."""
    roles = sorted({role for row in rows for role, _ in forms.turns_of(row)})
    if config.loss_on == "assistant" and not {"assistant", "text"} & set(roles):
        silent = f"no row for {kind} has a turn of the assistant, but of {', '.join(roles):.200}"
        return f"{silent}; call its role assistant, or give --loss_on all"
    few = f"{n_tokens} tokens for {kind} do not fill a block of {block_size} to learn from"
    advice = "give more text, a smaller --block_size, --packing pad, or --loss_on all"
    if config.packing == "pad":
        advice = "give rows whose answers begin within a block, or a larger --block_size"
    return f"{few}; {advice}"


def tell_copies(train: list[dict], held_out: list[dict], notes: list[str]) -> None:
    """Note how many held-out rows also stand in what is trained on."""
    keys = forms.row_keys(held_out)
    wanted = set(keys.tolist())
    both = {key for key in map(forms.row_key, train) if key in wanted}
    if both:
        n = int(np.isin(keys, np.fromiter(both, np.uint64)).sum())
        first = next(row for row, key in zip(held_out, keys.tolist()) if key in both)
        asked = console.one_line(forms.turns_of(first)[0][1], 60)
        notes.append(
            f"{n:,} of {console.plural(len(held_out), 'held-out row')} also stand in training, "
            f"by their "
            f"question or text; the first: {asked}"
        )


def tell_marks(rows: list[dict], tokenizer: "Tokenizer", notes: list[str]) -> None:
    """Note how many rows have a control token in their text, and which."""
    marks, found = tokenizing.marks_of(tokenizer), Counter()
    for row in rows:
        text = "\n".join(text for _, text in forms.turns_of(row))
        for mark in marks:
            if mark in text:
                found[mark] += 1
    for mark, n in found.most_common():
        notes.append(
            f"{console.plural(n, 'row')} with {mark} in the text: it is read as characters there"
        )


def make_data(
    name: str,
    train: list[dict],
    held_out: list[dict],
    config: configs.TrainConfig,
    block_size: int,
    tokenizer: "Tokenizer | None" = None,
    chunks: Callable | None = None,
    facts: dict | None = None,
) -> Data:
    """Rows to train on and rows held out of the source `name` → Data, as load_data() says. With
    `facts`, which it keeps, they come from usable_rows(); without, they may be unusable."""
    if facts is None:
        facts = {}
        train, held_out = (forms.usable_rows(name, rows, facts) for rows in (train, held_out))
    facts = dict(notes=[], unusable_rows=0) | facts
    if config.val_data and not held_out:
        raise ValueError(f"val_data {config.val_data} has no rows")
    for kind, rows in (("train", train), ("val", held_out)):
        if not rows:
            raise ValueError(f"data {name}: there are no rows for {kind}")
    notes = facts["notes"]
    every_row = train + held_out
    if tokenizer is None:
        texts = ("".join(text for text, _ in tokenizing.segments(row)) for row in every_row)
        tokenizer = tokenizing.load_tokenizer(config.tokenizer, texts, config.tokenizer_size)
        # without an end of text no answer would ever end; the token for what is unknown is none
        if tokenizer.eos_token in (None, tokenizer.unk_token):
            tokenizer.add_special_tokens(dict(eos_token=md.END_OF_TEXT))
            notes.append(
                f"the tokenizer has no end of text; {md.END_OF_TEXT} is added as a word of its own"
            )
    tokenizer = copy.copy(tokenizer)  # which others may use, and whose template changes here
    # of the data's conversations, None without: not the one that the tokenizer came with
    conversations = tokenizer.chat_template = tokenizing.chat_template(
        every_row, md.turn_end(tokenizer)
    )
    if name != "embedded" or config.val_data:  # our own problems have no copies and no marks
        tell_copies(train, held_out, notes)
        tell_marks(every_row, tokenizer, notes)
    made, lengths = [], {}  # blocks of each kind, tokens of its rows
    for kind, rows in (("train", train), ("val", held_out)):
        part, counts = make_blocks(rows, kind, name, tokenizer, config, block_size, chunks, notes)
        made.append(part)
        lengths[kind] = counts.pop(f"{kind}_lengths")
        facts |= counts
    too_long, problems, of_source = [], [], []
    for row, length in zip(held_out, lengths["val"]):
        if problem := problem_of(row):
            fits = length <= block_size + 1
            (problems if fits else too_long).append(problem)
            if fits and "source" in row:
                of_source.append(console.without_home(row["source"]))
    if too_long:
        asked = "".join(turn["content"] for turn in too_long[0]["messages"][-1:])
        notes.append(
            f"{len(too_long):,} held-out problems do not fit in a block of {block_size} with their "
            f"answers and are not asked; the first: {console.one_line(asked, 60)}"
        )
    elif not problems and conversations and config.eval_problems:
        notes.append(
            "no held-out row can be asked: none ends in an answer after #### or </think> or in "
            "\\boxed{}, of one line, by the assistant"
        )
    asked = problems[: config.eval_problems]
    guesses = [problem["guess"] for problem in asked if "guess" in problem]
    if guesses and len(guesses) == len(asked):
        facts["guess"] = statistics.mean(guesses)
    data = Data(*made, tokenizer, problems, facts, len(tokenizer), problem_sources=of_source)
    if name != "embedded":
        data.bytes_per_target = bytes_per_target(made[1][1][: config.eval_blocks], tokenizer)
    return data


def bytes_per_target(targets: np.ndarray, tokenizer: "Tokenizer") -> float:
    """How many bytes of text a target stands for: by tokens alone no two tokenizers compare."""
    learned = [block[block != -100].tolist() for block in targets]
    texts = tokenizer.batch_decode(learned, skip_special_tokens=True)
    return sum(len(text.encode(errors="replace")) for text in texts) / sum(map(len, learned))


# ---------- several sources ----------


def in_turn(lists: Iterable) -> list:
    """The first of each list, then the second of each, and so on: wherever it is cut off, all
    lists have had their share."""
    missing = object()
    turns = itertools.zip_longest(*lists, fillvalue=missing)
    return [x for turn in turns for x in turn if x is not missing]


def mix(
    sources: list[tuple[str, list[dict], list[dict]]],
    config: configs.TrainConfig,
    block_size: int,
    facts: dict,
    tokenizer: Any = None,
    chunks: Callable | None = None,
) -> Data:
    """[(source, rows to train on, rows held out)], all of them usable, → Data, with a validation
    part for each source where several have one. `facts` and `chunks` as in make_data()."""
    names = ", ".join(name for name, _, _ in sources)
    train = [row for _, rows, _ in sources for row in rows]
    for source, _, rows in sources if len(sources) > 1 else ():
        for row in rows:
            row["source"] = source
    held_out = in_turn([rows for _, _, rows in sources])
    data = make_data(names, train, held_out, config, block_size, tokenizer, chunks, facts)
    measured = [(name, rows) for name, _, rows in sources if rows]
    if len(measured) > 1:
        for name, rows in measured:
            made = [rows, "val", name, data.tokenizer, config, block_size, chunks]
            try:
                data.val_by_source[console.without_home(name)], _ = make_blocks(*made)
            except ValueError as error:  # too small for a block of its own
                why = str(error).removeprefix(f"data {name}: ")
                data.facts["notes"].append(f"{name} is not in val_loss_by_source: {why}")
    return data


@no_garbage_collection()
def load_data(
    config: configs.TrainConfig, block_size: int = 512, tokenizer: "Tokenizer | None" = None
) -> Data:
    """Read, split, tokenize and pack the sources of a TrainConfig → Data; ValueError if that does
    not give at least one block to train and one to validate on."""
    if config.sizes:
        given = f"sizes {','.join(config.sizes)} are for a task or a loader"
        raise ValueError(f"{given}; give none with --data {' '.join(config.data)}")
    facts = {}
    return mix(files.read_sources(config, facts), config, block_size, facts, tokenizer)
