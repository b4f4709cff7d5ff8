"""Multiple choice by likelihood: which choice does a language model find the likeliest?

python train.py --score RUN_DIR --data embedded          our held-out problems
python train.py --score RUN_DIR --data Rowan/hellaswag   a hub's validation split, or a file
"""

import contextlib
import itertools
import random
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch.nn.utils.rnn import pad_sequence

import minidepth as md
from minidepth_lab.base import console, machine
from minidepth_lab.keep import checkpoints, registry
from minidepth_lab.measure import results
from minidepth_lab.models import variants
from minidepth_lab.rows import files as text
from minidepth_lab.rows import forms, hub

# ---------- rows with several choices ----------


def choices_of(row: dict) -> tuple[Any, list[str], int] | None:
    """(context, choices, index of the right one) of a multiple-choice row, None if it is none.
    The context is a text, or for our embedded rows the messages that ask; what is taken:

    ours, embedded  context or messages, choices: [text, …], answer: the index
    HellaSwag       ctx, endings, label
    BoolQ           passage, question, answer: true or false
    ARC             question, choices: {text, label}, answerKey
    its authors'    question: {stem, choices: [{text, label}, …]}, answerKey; CommonsenseQA's too
    MMLU            question, choices: [text, …], answer: the index, or its letter
    """
    if not isinstance(row, dict):
        return None
    if isinstance(row.get("question"), dict):
        row = as_the_hub_has_it(row)
    question = row.get("question")
    asked = f"Question: {question}\nAnswer:" if isinstance(question, str) else None
    if isinstance(row.get("answer"), bool) and row.get("passage"):
        context = asked and f"{row['passage']}\n{asked}"
        choices = ["no", "yes"]
        answer = int(row["answer"])
    elif row.get("endings"):
        context, choices, answer = row.get("ctx"), row["endings"], row.get("label")
    elif isinstance(row.get("choices"), dict):
        labels, key = row["choices"].get("label"), row.get("answerKey")
        if not isinstance(labels, (list, tuple)) or key not in labels:
            return None
        context, choices, answer = asked, row["choices"].get("text"), labels.index(key)
    else:
        context = row.get("messages") or row.get("context") or asked
        choices, answer = row.get("choices"), row.get("answer")
        if isinstance(answer, str) and re.fullmatch("[A-Z]", answer):
            answer = ord(answer) - ord("A")
    if not context or not isinstance(context, (str, list)):
        return None
    if isinstance(context, list):
        try:
            forms.turns_of(dict(messages=context))
        except ValueError:
            return None
    # of one there is nothing to choose; a missing one would be read as the word None
    if not isinstance(choices, (list, tuple)) or len(choices) < 2 or None in choices:
        return None
    if not re.fullmatch("[0-9]{1,9}", str(answer)) or int(answer) >= len(choices):
        return None
    return context, [str(choice) for choice in choices], int(answer)


def as_the_hub_has_it(row: dict) -> dict:
    """A row of ARC or CommonsenseQA as their authors give it, with the question as a text and the
    choices beside it, as the hub has it."""
    question = row["question"]
    parts = question.get("choices")
    if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
        return row
    choices = {name: [part.get(name) for part in parts] for name in ("text", "label")}
    return row | dict(question=question.get("stem"), choices=choices)


def as_training_text(row: dict) -> dict:
    """A multiple-choice row whose context is a text as {"text": the context and its right choice},
    to be trained on, and SQuAD's as its context, question and first answer; any other row as it
    is."""
    if isinstance(row, dict) and isinstance(row.get("answers"), dict) and row.get("context"):
        answers = row["answers"].get("text")
        if isinstance(answers, (list, tuple)) and answers and row.get("question"):
            asked = f"{row['context']}\nQuestion: {row['question']}\nAnswer:"
            return {"text": f"{asked} {answers[0]}"}
    multiple_choice = choices_of(row)
    if multiple_choice is None or not isinstance(multiple_choice[0], str):
        return row
    context, choices, answer = multiple_choice
    return {"text": f"{context} {choices[answer]}"}


def embedded_choices(n: int) -> list[dict]:
    """n held-out embedded problems for choice_scores(): the conversation up to the answer, the
    worked-out answer and, in the same words, up to three wrong results, in random order; guessing
    finds 1 in their number."""
    draw = random.Random(0).random
    rows = []
    for row in md.embedded_rows(n, held_out=True):
        *asked, said = row["messages"]
        work, right = said["content"].rsplit("\n</think>\n\n ", 1)
        known = re.findall(r"\b[a-j]\b", asked[-1]["content"]) or list("0123456789")
        wrong = sorted(sorted({*known} - {right}), key=lambda _: draw())[:3]
        answers = sorted([right, *wrong], key=lambda _: draw())
        stem = work.removesuffix(right)
        texts = []
        for answer in answers:
            # what the work ends with is the answer: a wrong one ends its work alike
            end = answer if work != stem else ""
            texts.append(f"{stem}{end}\n</think>\n\n {answer}")
        rows.append(dict(messages=asked, choices=texts, answer=answers.index(right)))
    return rows


def read_choices(source: str, most: int, notes: list[str]) -> tuple[list[tuple], int]:
    """choices_of() the multiple-choice rows of files, of 'embedded', or of the validation split of
    a folder or hub id, a sample of at most `most`, 0 for all → (rows that can be asked, how many
    were looked at); ValueError if there are none. `notes` are told what is left out."""
    if source == "embedded":
        rows = embedded_choices(most or 600)
    else:
        with contextlib.nullcontext() if text.is_local(source) else hub.looked_for():
            rows = text.rows_of(source, "validation", notes)
    if 0 < most < len(rows):
        places = sorted(forms.sample_order(len(rows))[:most].tolist())
        rows = rows.select(places) if hasattr(rows, "select") else [rows[i] for i in places]
    questions = [choices_of(row) for row in rows]
    questions = [each for each in questions if each is not None]
    if not questions:
        raise ValueError(f"data {source} has no row of context, choices, answer, as --score needs")
    return questions, len(rows)


# ---------- their likelihoods ----------


def token_lists(texts: Iterable[str], tokenizer: Any) -> list[list[int]]:
    """The token ids of each text, by itself."""
    rows = [[(text, True)] for text in texts]
    return [list(ids) for ids, _ in md.encode(rows, tokenizer)]


def asked_and_said(tokenizer: Any, question: tuple) -> tuple[list[int], list[list[int]]]:
    """The token ids of a context of choices_of(), and of each choice after it: after a text it
    begins with a space."""
    context, choices, _ = question
    if isinstance(context, str):
        (asked,) = token_lists([context], tokenizer)
        choices = [f" {choice}" for choice in choices]
    else:
        asked = md.prompt_ids(tokenizer, context)
    return asked, token_lists(choices, tokenizer)


def too_long(encoded: Sequence[tuple], block_size: int) -> int:
    """How many of asked_and_said() have more tokens, with their longest choice, than are read."""
    wholes = [len(asked) + max(map(len, choices)) for asked, choices in encoded]
    # the last token is looked for and not read
    return sum(whole > block_size + 1 for whole in wholes)


def fits(choices: Sequence[list[int]], block_size: int) -> bool:
    """Whether each choice, its token ids, can be read as a whole."""
    return all(1 <= len(said) <= block_size for said in choices)


@machine.in_eval_mode
def choice_scores(model: variants.GPT, encoded: Sequence[tuple]) -> list[list[float]]:
    """Log-likelihood, in nats, of each choice after its context, for each of asked_and_said(): one
    list per row. The last block_size tokens of both are read. ValueError if a
    choice alone does not fit."""
    T, device = model.config.block_size, model.head_weight.device
    scores = []
    for asked, choices in encoded:
        if not fits(choices, T):
            raise ValueError(f"a choice is empty or has more than the {T} tokens that are read")
        tokens, targets = [], []
        for said in choices:
            row = torch.tensor((asked + said)[-T - 1 :])
            target = row[1:].clone()
            target[: -len(said)] = -100  # the context is given, not scored
            tokens.append(row[:-1])
            targets.append(target)
        tokens = pad_sequence(tokens, batch_first=True)
        targets = pad_sequence(targets, batch_first=True, padding_value=-100)
        loss, _ = model(tokens.to(device), targets.to(device))  # (choices,) each
        scores.append((-loss).tolist())
    return scores


def commonest_answer(questions: Sequence[tuple]) -> float:
    """Share of the choices_of() that who always takes the same place has right: "yes", say."""
    return Counter(answer for _, _, answer in questions).most_common(1)[0][1] / len(questions)


def against_chance(low: float, high: float, guess: float, commonest: float) -> str:
    """What an interval says beside the better of two ways to answer without reading."""
    chance, name = max((guess, "guessing"), (commonest, "the commonest answer"))
    if low > chance:
        return f"better than {name}"
    if high < chance:
        return f"worse than {name}"
    return f"not told apart from {name}"


def share_right(scores: Sequence[Sequence[float]], questions: Sequence[tuple]) -> float:
    """How many of the questions have the right choice before all others. Several alike count in
    part, as a guess among them would."""
    right = 0.0
    for each, (_, _, answer) in zip(scores, questions):
        right += (each[answer] == max(each)) / each.count(max(each))
    return right


def scored(model: variants.GPT, tokenizer: Any, source: str, most: int = 0) -> dict:
    """How a model answers the multiple-choice rows of a source, `most` of them, 0 for all: the
    share whose right choice is likeliest by a token, with Wilson's interval, and by two other
    measures, beside guessing and the commonest answer. ValueError if it can be asked none."""
    notes = []
    questions, n_rows = read_choices(source, most, notes)
    encoded = [asked_and_said(tokenizer, question) for question in questions]
    T = model.config.block_size
    fit = [fits(choices, T) for _, choices in encoded]
    if not any(fit):
        what = f"each row has a choice that is empty or has more than {T} tokens"
        raise ValueError(f"data {source}: {what}, which this model does not read")
    questions = list(itertools.compress(questions, fit))
    encoded = list(itertools.compress(encoded, fit))
    sums, n = choice_scores(model, encoded), len(questions)
    lengths = dict(  # of choices, by which their sums are divided
        token=[[len(said) for said in choices] for _, choices in encoded],
        character=[[max(1, len(text)) for text in choices] for _, choices, _ in questions],
    )
    normalised = {}
    for unit, of_all in lengths.items():
        divided = [[s / k for s, k in zip(*pair)] for pair in zip(sums, of_all)]
        normalised[unit] = share_right(divided, questions)
    right = normalised["token"]
    low, high = results.wilson(round(right), n)
    return dict(
        accuracy=right / n,
        low=low,
        high=high,
        n=n,
        guessing=sum(1 / len(choices) for _, choices, _ in questions) / n,
        commonest=commonest_answer(questions),
        by_whole=share_right(sums, questions) / n,
        by_character=normalised["character"] / n,
        rows=n_rows,
        left_out=fit.count(False),
        too_long=too_long(encoded, T),
        notes=notes,
    )


def show_score(run_dir: console.Path, sources: Iterable[str], most: int) -> None:
    """Print what is scored() of each source, `most` rows of it. ValueError for a depth task."""
    model, tokenizer = checkpoints.load(run_dir)
    if tokenizer is None:
        raise ValueError(f"--score {run_dir} {registry.no_text(run_dir)}")
    model.to(machine.pick_device("auto"))
    T = model.config.block_size
    for source in sources:
        found = scored(model, tokenizer, source, most)
        n, n_rows = found["n"], found["rows"]
        if left := found["left_out"]:
            why = f"a choice is empty or has more than {T} tokens"
            print(f"note: {console.plural(left, 'row')} of {source} left out: {why}")
            n_rows -= left
        rows = console.plural(n, "row")
        if n < n_rows:
            rows = f"{n:,} of {console.plural(n_rows, 'row')}, the others are no multiple choice"
            rows += " (a context, two choices or more, an answer that is one of them)"
        low, high, guess, commonest = map(found.get, ("low", "high", "guessing", "commonest"))
        print(
            f"{source}: accuracy {found['accuracy']:.3f} (95 % interval {low:.3f} to {high:.3f}, "
            f"Wilson) on {rows}, guessing {guess:.3f}, the commonest answer {commonest:.3f}: "
            f"{against_chance(low, high, guess, commonest)}; by whole choices "
            f"{found['by_whole']:.3f} (acc of lm-evaluation-harness), by characters "
            f"{found['by_character']:.3f} (its acc_norm)"
        )
        if n_long := found["too_long"]:
            print(
                f"{source}: {n_long:,} of {console.plural(n, 'context')} are longer than the "
                f"block, "
                f"with a choice after them: only the last {T:,} tokens of both are read"
            )
        for note in found["notes"]:
            print(f"note: {note}")
