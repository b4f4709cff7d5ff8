"""What does each layer know? After each layer of a model of the embedded problems: what can be read
from its residual stream, what is lost without it, and where the written steps look.

    found = layers.examined(model, tokenizer, problems)     all of it, by kind of word

    python -m minidepth_lab.studies.layers RUN_DIR OUT.json 3-8

writes the same of a stored run to a file, and what is lost without layers 3 to 8 together.
"""

import argparse
import contextlib
import json
import time

import torch

import minidepth as md
from minidepth_lab.base import console
from minidepth_lab.keep import checkpoints
from minidepth_lab.measure import inspect
from minidepth_lab.rows import to_data, tokenizing

KINDS = {  # of the assistant's words, by what it takes to know the next one
    "form": "words that are the same in all problems of a family",
    "copy": "a number or letter that the question, or the step before, has in this place",
    "sum": "the sum of two numbers modulo ten",
    "look-up": "the next letter of a ring",
    "order": "the next letter of a line",
    "answer": "the answer, after the thinking",
}


def kind(family, word, before):
    """The kind of a word that the assistant says after the word before it."""
    if not (len(word.strip()) == 1 and word.strip().isalnum()):
        return "form"
    if before == "\n\n":
        return "answer"
    if family == "chain":
        return "sum" if before.strip() == "=" else "copy"
    if family == "lookup":
        return "copy" if before == "So" else "look-up"
    return "order"


def read(problem, tokenizer):
    """A problem with its solution → token ids, words, and the place where the assistant begins."""
    asked = md.prompt_ids(tokenizer, problem["messages"])
    said = dict(role="assistant", content=problem["solution"])
    row = dict(messages=[*problem["messages"], said])
    ids, _ = next(md.encode([tokenizing.segments(row, tokenizer)], tokenizer))
    ids = ids[:-1]  # the line break after the last turn is nobody's word
    return ids, [tokenizer.decode([i]) for i in ids], len(asked)


def links_of(family, words, start):
    """Where a solution can look, as the problem is written: {link: [(query, keys), …]}

    copy   the second letter of a pair → the first
    match  the letter before a look-up's or an ordering's next → the next one, in their pair
    sum    "=" → the two numbers before it
    answer the end of the thinking → the last place in it of what is the answer
    """
    found = dict(copy=[], match=[], sum=[], answer=[])
    names = [word.strip() for word in words]
    pairs = {}
    if family != "chain":
        for place in range(1, names.index("?")):
            if all(name.isalpha() and len(name) == 1 for name in names[place - 1 : place + 1]):
                found["copy"].append((place, [place - 1]))
                pairs[names[place - 1]] = place
    for place in range(start, len(words)):
        what = kind(family, words[place], words[place - 1])
        if what in ("look-up", "order") and names[place - 1] in pairs:
            found["match"].append((place - 1, [pairs[names[place - 1]]]))
        if what == "sum":
            found["sum"].append((place - 1, [place - 2, place - 4]))
        if what == "answer":
            before = [p for p in range(start, place) if names[p] == names[place]]
            found["answer"].append((place - 1, before[-1:]))
    return found


def batch(problems, tokenizer):
    """Problems → tokens and targets (B, T), the place of each kind's targets {kind: (B, T)}, and
    the links {link: (B, T, T)}. Words after the end are zeros: nothing looks ahead."""
    texts = [read(problem, tokenizer) for problem in problems]
    B, T = len(texts), max(len(ids) for ids, _, _ in texts)
    tokens, targets = torch.zeros(B, T, dtype=torch.int64), torch.full((B, T), -100)
    kinds = {name: torch.zeros(B, T, dtype=torch.bool) for name in KINDS}
    links = {}
    for b, (problem, (ids, words, start)) in enumerate(zip(problems, texts)):
        tokens[b, : len(ids)] = torch.tensor(ids)
        for place in range(start, len(ids)):
            targets[b, place - 1] = ids[place]
            kinds[kind(problem["family"], words[place], words[place - 1])][b, place - 1] = True
        for link, looks in links_of(problem["family"], words, start).items():
            at = links.setdefault(link, torch.zeros(B, T, T, dtype=torch.bool))
            for query, keys in looks:
                at[b, query, keys] = True
    return tokens, targets, kinds, links


@torch.no_grad()
def examined(model, tokenizer, problems, spans=()):
    """What the layers of a model of the embedded problems do, the true words given before each:

    words    {kind: how many}
    known    {kind: share of its words that the logit lens has right, by depth, L + 1 numbers}
    without  {kind: share that the model has right without each layer, L numbers}
    spans    {"3 to 8": {kind: the same without all of these layers}}, counted from 1
    looks    {link: (L, H), the mean weight that a head's queries give to their keys}
    """
    tokens, targets, kinds, links = batch(problems, tokenizer)

    def shares(right):
        return {name: right[those].float().mean().item() for name, those in kinds.items()}

    def without(layers):
        with contextlib.ExitStack() as stack:
            for layer in layers:
                stack.enter_context(inspect.skipped(model, layer))
            return shares(inspect.known(model, tokens, targets)[-1])

    by_depth = [shares(right) for right in inspect.known(model, tokens, targets)]
    by_layer = [without([layer]) for layer in range(model.config.n_layers * model.config.n_loops)]
    maps = inspect.attention_maps(model, tokens)
    return dict(
        words={name: int(those.sum()) for name, those in kinds.items()},
        known={name: [found[name] for found in by_depth] for name in KINDS},
        without={name: [found[name] for found in by_layer] for name in KINDS},
        spans={f"{first} to {last}": without(range(first - 1, last)) for first, last in spans},
        looks={name: inspect.link_weights(maps, link) for name, link in links.items()},
    )


def write_examined(run_dir, path, spans=(), n=200):
    """Write examined() of a run and n problems of the test, with what it was made from. ValueError
    for a folder that is no run of words, or a span of layers that the model has not."""
    model, tokenizer = checkpoints.load(run_dir)
    if tokenizer is None:
        raise ValueError(f"{run_dir} is of a depth task; give a run of the embedded problems")
    last = len(model.blocks)
    for first, end in spans:
        if not 1 <= first <= end <= last:
            raise ValueError(f"layers {first}-{end} are not among the {last} of {run_dir}")
    problems = [to_data.problem_of(row) for row in md.embedded_rows(n, held_out=True)]
    with open(checkpoints.path_inside(run_dir, "config.json"), encoding="utf-8") as f:
        config = json.load(f)
    about = {key: config.get(key) for key in ("command", "versions", "device", "commit")}
    right = md.accuracy(model, tokenizer, problems)["accuracy"]
    about |= dict(date=time.strftime("%Y-%m-%d"), problems=n, accuracy=right)
    text = json.dumps(about | examined(model, tokenizer, problems, spans), indent=1)
    checkpoints.write(path, lambda f: f.write(f"{text}\n".encode()))


def span_of(text):
    """'3-8' → (3, 8), '3' → (3, 3)"""
    first, _, last = text.partition("-")
    try:
        return int(first), int(last or first)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no span of layers; as in 3-8") from None


def main():
    parser = argparse.ArgumentParser(description="Write what each layer of a run knows to a file.")
    parser.add_argument("run", help="the folder of a trained run")
    parser.add_argument("file", help="the JSON file to write")
    parser.add_argument("spans", nargs="*", type=span_of, help="layers to leave out together: 3-8")
    args = parser.parse_args()
    try:
        write_examined(args.run, args.file, args.spans)
    except (OSError, ValueError) as error:
        parser.error(console.one_line(error))


if __name__ == "__main__":
    main()
