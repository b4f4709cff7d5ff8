"""The forms of a row, which rows are usable, and how they are split."""

import hashlib
import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

import minidepth as md
from minidepth_lab.base import configs, console
from minidepth_lab.rows import answers

# the columns of a conversation; of what is asked and, in turn, of what is said to it
CONVERSATIONS = ("messages", "conversations", "conversation")
PAIRS = dict(
    question=("answer", "response", "solution"),
    problem=("solution", "answer"),
    prompt=("completion", "response", "answer"),
    query=("response", "answer"),
    instruction=("output", "response"),
    input=("output",),
)
BESIDE = ("input", "context")  # an instruction, and asked with it
THOUGHTS = ("reasoning_content", "reasoning", "thinking", "rationale")  # before an answer
ROW_FORMS = (
    f"{', '.join(CONVERSATIONS[:2])}, "
    f"{', '.join(f'{asked} + {said[0]}' for asked, said in PAIRS.items())}, or text"
)
LABELS = ("family", "steps", "guess")
KNOWN_ROLES = ("system", "user", "assistant", "tool")
ROLES = dict(human="user", prompter="user", developer="system", function="tool")
ROLES |= dict.fromkeys(("gpt", "model", "bot", "ai", "chatgpt"), "assistant")
WITH_PASSAGE = (
    "it is a question with choices or a passage: --loader llmini trains on it, --score asks it"
)
PREFERENCE = "it is a pair of answers, chosen and rejected; name the one to learn completion"


class Given(str):
    """What the assistant says in a turn that its row marks as one not to learn."""


def content_text(name: str, content: Any) -> str:
    """The text of a turn's content: a text, or a list of parts that are texts."""
    if isinstance(content, list) and content:
        for part in content:
            kind = part.get("type", "text") if isinstance(part, dict) else "text"
            text = part.get("text") if isinstance(part, dict) else part
            if kind != "text" or not isinstance(text, str):
                raise ValueError(f"{name} has a part that is no text: {kind!s:.40}")
        return "".join(part["text"] if isinstance(part, dict) else part for part in content)
    if not isinstance(content, str):
        raise ValueError(f"{name} is {console.kind_of(content)}, no text")
    return content


def with_thoughts(row: dict, text: str, remark: Callable[[str], object]) -> str:
    """An answer after the thoughts of its message or row, if there are any."""
    for name in THOUGHTS:
        thoughts = row.get(name)
        if isinstance(thoughts, str) and thoughts.strip() and "<think>" not in text:
            remark(f"{name} is read as <think>…</think>")
            return f"<think>\n{thoughts.strip()}\n</think>\n\n{text}"
    return text


def read_turn(message: Any, remark: Callable[[str], object]) -> tuple[str, str] | None:
    """(role, text) of a message; None for one that only calls a tool."""
    if not isinstance(message, dict):
        raise ValueError(f"a message is {console.kind_of(message)}, no object")
    written = message.get("role", message.get("from"))
    if not isinstance(written, str) or not re.fullmatch(r"\w[\w .-]{0,39}", written):
        raise ValueError(f"a role is {'null' if written is None else f'{written!r:.40}'}")
    role = written if written in KNOWN_ROLES else written.lower()
    role = ROLES.get(role, role)
    if role not in KNOWN_ROLES:  # a name of one's own stays as it is
        role = written
    if role != written:
        remark(f"role {written} is read as {role}")
    name = "content" if "content" in message or "value" not in message else "value"
    content = message.get(name)
    if not content and message.get("tool_calls") is not None:
        remark("turns that only call a tool are left out")
        return None
    text = content_text(name, content)
    if role != "assistant":
        return role, text
    text = with_thoughts(message, text, remark)
    if not text.strip():
        raise ValueError("an assistant's turn is empty")
    weight = message.get("weight")
    if message.get("train") is False or (weight is not None and weight == 0):
        remark("turns marked train: false or weight: 0 have no loss with --loss_on assistant")
        text = Given(text)
    elif weight is not None and weight != 1:
        remark(f"the weight {weight!s:.20} of a turn is not heeded")
    return role, text


def read_pair(row: dict, remark: Callable[[str], object]) -> tuple[list[dict], set[str]] | None:
    """(messages, columns that are read) of a row that names what is asked and what is said; None if
    it does not."""
    there = [name for name in PAIRS if row.get(name) is not None]
    answered = [name for name in there if any(row.get(k) is not None for k in PAIRS[name])]
    if not there or (not answered and row.get("text") is not None):
        return None
    asked = (answered or there)[0]
    said = next((k for k in PAIRS[asked] if row.get(k) is not None), PAIRS[asked][0])
    if row.get(said) is None and row.get("chosen") and row.get("rejected"):
        raise ValueError(PREFERENCE)
    if is_chat(row[asked]):  # whose answer may be one more message
        end = row.get(said)
        if not isinstance(end, list):
            end = [
                dict(role="assistant", content=with_thoughts(row, content_text(said, end), remark))
            ]
        return row[asked] + end, {asked, said, *THOUGHTS}
    question = content_text(asked, row[asked])
    if asked == "instruction":
        for more in BESIDE:
            if isinstance(row.get(more), str) and row[more].strip():
                question += f"\n\n{row[more]}"
    answer = row.get(said)
    if type(answer) in (int, float):
        remark(f"numbers in {said} are read as text")
        answer = str(answer)
    answer = content_text(said, answer)
    if row.get("choices") and re.fullmatch("[A-Z]", answer):  # the letter of one of them
        raise ValueError(WITH_PASSAGE)
    if not answer.strip():
        raise ValueError(f"{said} is empty")
    answer = with_thoughts(row, answer, remark)
    messages = [dict(role="user", content=question), dict(role="assistant", content=answer)]
    return messages, {asked, said, *THOUGHTS, *(BESIDE if asked == "instruction" else ())}


def is_chat(value: Any) -> bool:
    """Whether a value is a list of messages."""
    names = ("role", "from")
    return isinstance(value, list) and any(
        isinstance(each, dict) and any(name in each for name in names) for each in value
    )


def turns_of(
    row: Any, remark: Callable[[str], object] = lambda text: None
) -> list[tuple[str, str]]:
    """[(role, text), …] of a row in any of ROW_FORMS, or of a list of messages; a plain text has
    the role "text". ValueError says why it is none; remark() is told what is read in another way
    than it is written, and of what is not read."""
    if is_chat(row):
        row = dict(messages=row)
    if not isinstance(row, dict):
        raise ValueError(f"it is {console.kind_of(row)}, no object")
    column = next((name for name in CONVERSATIONS if row.get(name)), None)
    messages, read = row.get(column), {column}
    if column is None and (pair := read_pair(row, remark)):
        messages, read = pair
    if not messages:
        if row.get("text") is None:  # columnar files fill the other rows' columns with None
            if row.get("chosen") and row.get("rejected"):
                raise ValueError(PREFERENCE)
            columns = sorted(
                f"{key!s:.40} ({console.kind_of(value)})" for key, value in row.items()
            )
            raise ValueError(f"it has {', '.join(columns[:20]) or 'no columns'}")
        text = content_text("text", row["text"])
        if not text.strip():
            raise ValueError("text is empty")
        tell_unread(row, {"text"}, remark)
        return [("text", text)]
    if not isinstance(messages, list):
        raise ValueError(f"{column} is {console.kind_of(messages)}, no list")
    turns = []
    for m in messages:
        # most have nothing to be read otherwise; to see that here takes a third of the time
        role, text = (m.get("role"), m.get("content")) if type(m) is dict else (None, None)
        has_text = type(text) is str and text and not text.isspace()
        if has_text and role in KNOWN_ROLES and len(m) == 2:
            turns.append((role, text))
        elif turn := read_turn(m, remark):
            turns.append(turn)
    # a system turn can stand beside these forms
    if column not in (None, "messages") or "instruction" in read:
        read.add("system")
        if isinstance(row.get("system"), str) and row["system"].strip():
            turns.insert(0, ("system", row["system"]))
    if not any(text.strip() for _, text in turns):
        raise ValueError("its turns are empty")
    tell_unread(row, read, remark)
    return turns


def tell_unread(row: dict, read: set[str], remark: Callable[[str], object]) -> None:
    """Tell of the columns that hold a text and are not read."""
    left = []
    for name, value in row.items():
        if name not in read and name not in LABELS and isinstance(value, str) and value.strip():
            left.append(console.one_line(name, 40))
    if left:
        remark(f"columns that are not read: {', '.join(left[:12])}")


def is_labelled(row: dict) -> bool:
    """Whether it says of itself what embedded rows do; others can have columns so named."""
    family, steps, guess = (row.get(name) for name in LABELS)
    if not isinstance(family, str) or type(steps) is not int or type(guess) is not float:
        return False
    return bool(family.strip()) and 1 <= steps <= 99 and 0 < guess <= 1


def read_row(row: Any, remark: Callable[[str], object] = lambda text: None) -> dict:
    """A row in any form as all that comes after reads it: {"messages": […]} with its labels, or
    {"text": …}. What is in its last \\boxed{} is an answer, and stands after #### too."""
    turns = turns_of(row, remark)
    if len(turns) == 1 and turns[0][0] == "text":
        return dict(text=turns[0][1]) | (dict(goes_on=True) if row.get("goes_on") else {})
    role, last = turns[-1]
    answer = (answers.boxed(last) or "").strip() if role == "assistant" else ""
    if 0 < len(answer) <= 40 and "####" not in last:
        remark("the answer in \\boxed{} is put after ####, too")
        turns[-1] = role, type(last)(f"{last}\n\n#### {answer}")
    messages = [dict(role=role, content=text) for role, text in turns]
    about = row if isinstance(row, dict) else {}  # a list of turns alone has no labels
    kept = [*LABELS] if is_labelled(about) else []
    kept += ["gym"] if answers.is_item(about.get("gym")) else []
    return dict(messages=messages) | {name: row[name] for name in kept}


def has_passage(row: Any) -> bool:
    """Whether an unusable row looks like one of the multiple-choice sets that everyone has."""
    if not isinstance(row, dict):
        return False
    known = ("choices", "endings", "passage", "answers")
    return any(row.get(name) for name in known) or isinstance(row.get("question"), dict)


def sample_order(n: int) -> np.ndarray:
    """The numbers below n in the order in which a sample takes them, whatever a run's seed."""
    return torch.randperm(n, generator=md.generator("max_rows")).numpy()


def usable_rows(
    source: str, rows: Sequence, facts: dict, most: int = 0, change: Callable | None = None
) -> list[dict]:
    """The rows of a source, a list or what has len() and select(), that read_row() can read and as
    it gives them, in their order; with `most` a sample of so many, drawn alike for every seed of a
    run. ValueError if none can be read.

    change(row) may make another row of each. To `facts` are added `unusable_rows`, their number,
    and `notes`, what a user is to be told: what was left out and why, what was read otherwise.
    """
    n, order = len(rows), np.arange(len(rows))
    if 0 < most < n:
        order = sample_order(n)
    taken, at, looked_at = [], [], 0  # rows, and where they stand in the source
    reasons, remarks, example = Counter(), Counter(), ""
    while looked_at < n and (not most or len(taken) < most):
        # as many rows as are missing: of a data set no more are read than are wanted
        places = np.sort(order[looked_at : looked_at + (most - len(taken) if most else n)]).tolist()
        looked_at += len(places)
        with console.one_line_errors(f"data {source}", "cannot be read"):
            some = rows.select(places) if hasattr(rows, "select") else [rows[i] for i in places]
            some = list(some)
        for i, row in zip(places, some):
            row = change(row) if change else row
            told = []
            try:
                taken.append(read_row(row, told.append))
                if 0 < most < n:
                    at.append(i)
                remarks.update(told)
            except ValueError as error:
                reason = WITH_PASSAGE if has_passage(row) else str(error)
                reasons[reason] += 1
                example = example or f"row {i + 1}: {reason}"
    left_out = sum(reasons.values())
    notes = facts.setdefault("notes", [])
    facts["unusable_rows"] = facts.get("unusable_rows", 0) + left_out
    if left_out and not taken:
        none = f"data {source}: none of {console.plural(looked_at, 'row')} can be read"
        raise ValueError(f"{none}: {example}; a row has {ROW_FORMS}")
    if left_out:
        why = example
        if len(reasons) > 1:
            counts = [f"{reason:.80} ({k:,})" for reason, k in reasons.most_common(4)]
            why += f"; by reason: {', '.join(counts)}" + (", …" if len(reasons) > 4 else "")
        notes.append(
            f"{left_out:,} of {console.plural(looked_at, 'row')} of {source} left out: {why}"
        )
    if looked_at < n:
        notes.append(
            f"{console.plural(len(taken), 'row')} of {n:,} of {source} are taken, a sample, the "
            f"same for "
            "every --seed; --max_rows 0 takes all"
        )
    for text, k in remarks.most_common():
        notes.append(f"{source}: {text} ({k:,})")
    if 0 < most < n:  # more than once may have been looked for rows
        taken = [taken[i] for i in sorted(range(len(taken)), key=at.__getitem__)]
    return taken


def row_key(row: dict) -> int:
    """A number of 64 bits of what a row says, spaces aside; of a conversation of what is asked, all
    before the assistant speaks last. Rows with the same number are copies."""
    turns = turns_of(row)
    last = max((i for i, (role, _) in enumerate(turns) if role == "assistant"), default=0)
    text = "\0".join(" ".join(content.split()) for _, content in turns[: last or None])
    digest = hashlib.blake2b(text.encode(errors="replace"), digest_size=8).digest()
    return int.from_bytes(digest)


def row_keys(rows: Sequence[dict]) -> np.ndarray:
    """row_key() of each, (len(rows),) uint64: 8 bytes a row."""
    return np.fromiter(map(row_key, rows), np.uint64, len(rows))


def held_out_places(keys: np.ndarray, n: int) -> np.ndarray:
    """Which of the rows with these keys, in a random order, are held out, (len(keys),) bool: the
    first n, if none is a copy of another. Copies go to the same side: as many kinds as fit in n,
    but at least the smallest one. ValueError if all are copies."""
    _, first, kind, size = np.unique(keys, return_index=True, return_inverse=True,
                                     return_counts=True)  # fmt: skip
    if len(size) == len(keys):
        return np.arange(len(keys)) < n
    if len(size) == 1:
        raise ValueError(f"all {len(keys):,} rows are the same")
    held_out, in_order = np.zeros(len(size), bool), np.argsort(first)
    for one in in_order:
        if size[one] <= n:
            held_out[one] = True
            n -= size[one]
    if not held_out.any():
        held_out[in_order[size[in_order].argmin()]] = True
    return held_out[kind]


def n_held_out(n: int, config: configs.TrainConfig) -> int:
    """How many of n rows are held out: never all."""
    return min(n - 1, math.ceil(n * config.val_fraction))


def split_rows(
    source: str,
    rows: Sequence,
    config: configs.TrainConfig,
    facts: dict | None = None,
    change: Callable | None = None,
) -> tuple[list[dict], list[dict]]:
    """(rows to train on, rows held out) of a source's usable rows, whatever the seed: every run is
    measured on the same rows. With --val_data none is held out. `facts` and `change` as in
    usable_rows()."""
    facts = {} if facts is None else facts
    rows = usable_rows(source, rows, facts, config.max_rows, change)
    if len(rows) < (1 if config.val_data else 2):
        wanted = "it needs at least 2, one to hold out"
        if config.val_data:
            wanted = "it needs at least 1"
        if 0 < config.max_rows < 2:
            wanted += f"; --max_rows {config.max_rows} takes no more of it"
        raise ValueError(f"data {source} has {console.plural(len(rows), 'row')}; {wanted}")
    order = torch.randperm(len(rows), generator=md.generator(0)).numpy()
    if config.val_data:
        return [rows[i] for i in order.tolist()], []
    n = n_held_out(len(rows), config)
    keys = row_keys(rows)[order]
    try:
        held_out = held_out_places(keys, n)
    except ValueError as error:
        advice = "give other rows too, or --val_data FILE"
        raise ValueError(f"data {source}: {error}, none can be held out; {advice}") from None
    if copies := len(keys) - len(np.unique(keys)):
        facts.setdefault("notes", []).append(
            f"{console.plural(copies, 'row')} of {source} repeat another's question or text; "
            f"copies are "
            f"held out together or not at all"
        )
    train = [rows[i] for i in order[~held_out].tolist()]
    return train, [rows[i] for i in order[held_out].tolist()]
