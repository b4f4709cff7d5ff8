"""Rows as texts whose learnable parts are marked, and the tokenizers that read them."""

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import minidepth as md
from minidepth_lab.base import console
from minidepth_lab.rows import forms, hub

if TYPE_CHECKING:  # to import it takes seconds, which only those pay who have text
    from transformers import PreTrainedTokenizerBase as Tokenizer


def marks_of(tokenizer: "Tokenizer") -> list[str]:
    """The tokenizer's control tokens, as they are written: <|im_end|> and the like."""
    return [token.content for token in tokenizer.added_tokens_decoder.values() if token.special]


def unknown_in(tokenizer: "Tokenizer", text: str) -> str:
    """The first character of a text that a tokenizer has no word for; "" if it knows all."""
    unknown = tokenizer.unk_token_id
    for letter in dict.fromkeys(text) if unknown is not None else ():
        if unknown in tokenizer(letter, add_special_tokens=False).input_ids:
            return letter
    return ""


def segments(row: dict, tokenizer: "Tokenizer | None" = None) -> list[tuple[str, bool]]:
    """[(text, whether the assistant says it), …] of a usable row, in ChatML or as plain text."""
    end, end_of_text = "", ""
    if tokenizer:
        end, end_of_text = md.turn_end(tokenizer), tokenizer.eos_token or ""
    parts = []
    for role, content in forms.turns_of(row):
        if role == "text":
            parts += [(piece, True) for piece in pieces(content)]
            if not row.get("goes_on"):  # in the next row, as a long text does that was cut
                parts.append((md.Markup(end_of_text), True))
        else:
            parts.append((md.Markup(f"<|im_start|>{role}\n"), False))
            said = role == "assistant" and not isinstance(content, forms.Given)
            parts += [(piece, said) for piece in pieces(content)]
            parts.append((md.Markup(end), said))
            parts.append(("\n", False))
    return parts


LONGEST = 50_000  # characters of a text tokenized at once: each takes 100 bytes or more


def pieces(text: str) -> Iterator[str]:
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


def short_words(text: str) -> str:
    """A text to make a tokenizer from: the time that one word takes grows with its square."""
    return re.sub(r"(\S{500})(?=\S)|(\s{500})\s+", r"\1\2 ", text) if len(text) > 500 else text


THOUGHTS = ("<think>", "</think>")


def load_tokenizer(name: console.Path, texts: Iterable[str] = (), size: int = 2048) -> "Tokenizer":
    """minidepth.load_tokenizer(), whose errors are a line; 'characters' makes one whose words are
    the characters in the texts."""
    if name == "characters":
        return character_tokenizer(texts, size)
    if name == "embedded":  # a text as a whole would take eighty times its size
        texts = (part for text in texts for part in pieces(short_words(text)))
        return md.load_tokenizer(name, texts, size)
    problem = f"{hub.HUB} Internet on, or give --tokenizer DIR or embedded"
    local = os.path.isdir(name)
    if local:
        import transformers

        problem = "is a folder that cannot be read"
        if not hasattr(transformers, "TokenizersBackend"):  # as 5 calls it in what it writes
            transformers.TokenizersBackend = transformers.PreTrainedTokenizerFast
    with console.one_line_errors(f"tokenizer {name}", problem):
        for file in os.listdir(name) if local else ():
            path = os.path.join(name, file)
            if not os.path.isdir(path):  # a download leaves a .cache, an editor other folders
                console.regular_file(path)
        return md.load_tokenizer(name)


def character_tokenizer(texts: Iterable[str], size: int) -> "Tokenizer":
    """A tokenizer whose words are ChatML's and the characters of `texts`, of more than `size` the
    commonest; any other is <unk>."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    counts = Counter()
    for text in texts:
        counts.update(text)
    special = [md.END_OF_TEXT, "<|im_start|>", "<|im_end|>", *THOUGHTS, "<unk>"]
    common = [letter for letter, _ in counts.most_common(size - len(special))]
    words = {word: i for i, word in enumerate([*special, *sorted(common)])}
    made = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    made.decoder = decoders.Fuse()
    made.add_tokens([AddedToken(w, special=w not in THOUGHTS, normalized=False) for w in special])
    return PreTrainedTokenizerFast(
        tokenizer_object=made, eos_token=special[0], unk_token="<unk>",
        clean_up_tokenization_spaces=False,
    )  # fmt: skip


CHAT = """{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""  # kept with the tokenizer, for other programs; minidepth.segments() says the same
OWN_SYSTEM = """{% set system = SYSTEM %}{% if messages[0].role != "system" %}<|im_start|>system
{{ system }}<|im_end|>
{% endif %}"""  # stands before CHAT where conversations begin with a system turn


def chat_template(rows: Iterable[dict], end: str) -> str | None:
    """CHAT for conversations among the rows, whose turns `end` ends, with the system turn
    that at least half of them begin with, if there is one; None without conversations."""
    n, firsts = 0, Counter()
    for row in rows:
        role, text = forms.turns_of(row)[0]
        n += role != "text"
        if role == "system":
            firsts[text] += 1
    if not n:
        return None
    chat, own_system = (text.replace("<|im_end|>", end) for text in (CHAT, OWN_SYSTEM))
    system, times = firsts.most_common(1)[0] if firsts else ("", 0)
    if 2 * times < n:
        return chat
    return own_system.replace("SYSTEM", json.dumps(system, ensure_ascii=False)) + chat


def system_turn(tokenizer: "Tokenizer") -> str | None:
    """The system turn that a tokenizer's chat_template() begins with, a text; None without one."""
    begin, _ = OWN_SYSTEM.split("SYSTEM")
    template = tokenizer.chat_template
    if not isinstance(template, str) or not template.startswith(begin):
        return None
    system, _ = json.JSONDecoder().raw_decode(template[len(begin) :])
    return system
