"""What is told on a terminal: text made visible, errors of one line, signals."""

import contextlib
import json
import os
import re
import signal
import sys
import threading
from collections.abc import Iterator

import torch

Path = str | os.PathLike[str]  # of a file or a folder, in signatures
COMMAND = "python train.py"  # as advice says how to type it; train.py knows where it is another
# what the command says of a run that diverged, and tells it by among others that failed
DIVERGED = "lower --lr, raise --warmup_steps, or use --precision fp32"
# what a terminal obeys, halves of characters, and marks that turn the direction of writing
UNSEEN = r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"


def visible(text: str) -> str:
    """The text with control characters spelled out, all but line ends and tabs."""
    return re.sub(UNSEEN, lambda match: ascii(match[0])[1:-1], text)


def one_line(message: object, most: int = 1000) -> str:
    """A message as one line that a terminal shows, its middle left out if it is very long."""
    line = " ".join(visible(str(message)).split())
    if len(line) > most:
        line = f"{line[: most // 2]} … {line[-most // 2 :]}"
    return line


def complain(message: object) -> None:
    """Print one line on stderr, with the command's name before it."""
    print(f"{COMMAND.split()[-1]}: {one_line(message)}", file=sys.stderr)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that the memory is full. Not by the word alone: "an illegal memory
    access" is another matter, whose traceback is wanted. A CPU's allocator raises a plain
    RuntimeError, and so do some of CUDA's libraries."""
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)):
        return True
    if not isinstance(error, RuntimeError):
        return False
    text = str(error)
    return "DefaultCPUAllocator" in text or "out of memory" in text


@contextlib.contextmanager
def one_line_errors(subject: object, problem: str) -> Iterator[None]:
    """Make any error a ValueError of one line, "subject problem: its first words": parsers raise
    all kinds on a broken file. The error itself stays as its cause. That the memory is full is no
    fault of the subject, and stays what it is."""
    try:
        yield
    except (Exception, SystemExit) as error:
        if is_out_of_memory(error):
            raise
        reason = " ".join(str(error).split()) or type(error).__name__
        short = reason if len(reason) <= 150 else f"{reason[:149].rsplit(' ', 1)[0]} …"
        raise ValueError(f"{subject} {problem}: {short}") from error


def regular_file(path: Path) -> Path:
    """The path, if it is one of a file that ends: a pipe, say, would be waited on for ever."""
    if os.path.exists(path) and not os.path.isfile(path):
        raise ValueError("it is not a regular file")
    return path


KINDS_OF_JSON = {type(None): "null", bool: "true or false", int: "a number", float: "a number"}
KINDS_OF_JSON |= {str: "a text", list: "a list", dict: "an object"}


def kind_of(value: object) -> str:
    """What JSON calls a value, as "a text"."""
    return KINDS_OF_JSON.get(type(value), type(value).__name__)


def plural(n: int, noun: str) -> str:
    """1, "row" → "1 row"; 2,000, "row" → "2,000 rows" """
    return f"{n:,} {noun}" + ("" if n == 1 else "s")


def without_home(text: str) -> str:
    """The text with ~ for the user's home folder, whose name is nobody else's business."""
    home = os.path.expanduser("~")
    if len(home) < 3:  # "/": there is no home
        return text
    for spelled in (json.dumps(home)[1:-1], home):  # in JSON some characters are escaped
        text = re.sub(rf"(?<![\w/.~-]){re.escape(spelled)}(?=[/\\\s'\",:]|$)", "~", text)
    return text


HANG_UP = getattr(signal, "SIGHUP", None)  # Windows has none; terminals send it twice


@contextlib.contextmanager
def noted_signals(twice: bool = False) -> Iterator[list[int]]:
    """While active, Ctrl-C, SIGTERM and SIGHUP are only noted, in the list that it gives, so that
    no step is cut in two; with `twice` a second Ctrl-C does not wait. What this process ignores,
    as under nohup, it goes on ignoring."""
    noted, before = [], {}

    def note(number, frame):
        if twice and noted and number == signal.SIGINT:  # torchrun adds a SIGTERM to a Ctrl-C
            raise KeyboardInterrupt
        if not noted or number != HANG_UP:
            noted.append(number)

    if threading.current_thread() is threading.main_thread():  # no other may
        for number in (signal.SIGINT, signal.SIGTERM, HANG_UP):
            if number and signal.getsignal(number) != signal.SIG_IGN:
                before[number] = signal.signal(number, note)
    try:
        yield noted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)
