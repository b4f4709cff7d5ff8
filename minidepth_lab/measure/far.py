"""Tests of a walk that a weaker model cannot pass: the least over a window that holds every residue
of the ring, on 1,000 rings that were held out, with three cheats beside it.

    found = far(run_dir)          of a finished run of walk, sums or program
    cheats("walk", (63, 1000), trained=8, ring=64)      what they would get, without a model
    python -m minidepth_lab.measure.far RUN_FOLDER … NAME      adds it to stored runs as `measured`

A walk along a ring of 16 is at 1,000 hops where it was at 8, and after 200 additions along a ring
of 4 every sum is 0 modulo ten: one number far out says little. The ring is the unit that is
counted, as errors come by rings. What a cheat would get:

    commonest     the commonest answer, given to every question
    own           what holds before the first hop: the question's own letter, or the state 0
    stopped       the model's own answers at the last loop that it was trained to
"""

from collections.abc import Callable, Iterable, Iterator

import torch
import torch.nn.functional as F

import minidepth as md
from minidepth_lab.base import console, machine
from minidepth_lab.keep import checkpoints
from minidepth_lab.measure import results
from minidepth_lab.measure.judge import exact_interval
from minidepth_lab.models import kept_once, variants
from minidepth_lab.tasks import TASKS, hold, program, sums, walk

RINGS = 1000  # tested
DRIFT_AT = (1, 2, 4, 8, 15, 35, 100, 1000)  # hops after which the map's change is told


def answers(task: str, tokens: torch.Tensor, sizes: dict, most: int) -> Iterator[torch.Tensor]:
    """Yield the right answers (B, ring) of all questions after 0, 1, … `most` hops: letters, or of
    sums and programs the states."""
    ring, kinds = sizes["ring"], dict(sums=sums.ADDITIONS)
    if task == "program":
        kinds["program"] = sizes["kind"], sizes["n_ops"]
    if task in kinds:
        yield from (state for _, state in program.states(tokens, ring, kinds[task], most))
        return
    follows, letter = walk.following(tokens, ring), tokens[:, -ring:]
    for i in range(most + 1):
        yield letter
        if i < most:
            letter = follows.gather(1, letter)


def states_of(task: str, sizes: dict) -> int | None:
    """How many answers there are to each letter in a word: a word is states × letter + state. None
    where a word is the letter itself."""
    if task == "program":
        return program.KINDS[sizes["kind"]]
    return 10 if task == "sums" else None


def tests_of(task: str, ring: int) -> tuple[tuple[int, ...], range]:
    """(hops that are told one by one, the window): both beyond training, and neither with a right
    answer that is the same for all questions at each hop of the window."""
    once, twice = ring - 1, 2 * ring + 3
    if task == "sums":
        return (31, 39), range(161, 201)
    if task == "program":  # permutations come back after 60 rounds: 985 would be 25 once more
        return (once, twice), range(ring + 4, twice + 1)
    return (once, twice), range(985, 1001)


def count(said: torch.Tensor, right: torch.Tensor) -> float:
    """The share of (B, ring) answers that are right, exact."""
    return (said == right).sum().item() / right.numel()


@machine.in_eval_mode
def tested(
    model: variants.GPT, tokens: torch.Tensor, truths: list, at: tuple, window: range,
    words: int | None, run: Callable | None = None,
) -> dict:  # fmt: skip
    """What far() tells, of the tokens (B, T) and their right answers after 0, 1, … hops, each (B,
    ring). `run` (model, tokens, loops) yields the stream after each loop, if not the model's own.
    """
    ring, trained = truths[0].size(1), model.config.n_loops - 1
    most, n_map = window[-1], tokens.size(1) - ring
    loops = run(model, tokens, 1 + most) if run else model.run_loops(tokens, loops=1 + most)
    found, good, stopped, drift, first = {}, torch.ones(len(tokens), dtype=bool), None, {}, None
    in_window, told = [], {trained, *at}
    for i, x in enumerate(loops):
        if x.size(1) > ring and i in (0, *DRIFT_AT):  # how far the map has moved since loop one
            state = F.layer_norm(x[:, :n_map], x.shape[-1:])
            first = state if first is None else first
            drift[str(i)] = ((state - first).norm(dim=-1) / first.norm(dim=-1)).mean().item()
        if i not in told and i not in window:
            continue
        said = F.linear(model.norm(x[:, -ring:]), model.head_weight).argmax(-1)
        said = said % words if words else said
        stopped = said if i == trained else stopped
        part = dict(
            right=count(said, truths[i]),
            commonest=truths[i].flatten().bincount().max().item() / truths[i].numel(),
            own=count(truths[0], truths[i]),
        )
        if stopped is not None:
            part["stopped"] = count(stopped, truths[i])
        perfect = (said == truths[i]).all(1)
        if i in told:
            found[str(i)] = part | dict(rings_without_error=perfect.sum().item())
        if i in window:
            good &= perfect
            in_window.append(part | dict(hops=i))
    worst = min(in_window, key=lambda part: part["right"])
    n_good = good.sum().item()
    low, high = exact_interval(n_good, len(tokens))
    summary = {
        "from": window[0], "to": most, "least": worst["right"], "least_at": worst["hops"],
        "rings_without_error": n_good, "interval": [round(low, 4), round(high, 4)],
    }  # fmt: skip
    for cheat in ("commonest", "own", "stopped"):  # the same measure, and where it does best
        shares = [part[cheat] for part in in_window]
        summary |= {cheat: min(shares), f"{cheat}_at_best": max(shares)}
    drift.pop("0", None)
    return dict(rings=len(tokens), trained=trained, at=found, window=summary, drift=drift)


def given(run_dir: console.Path, rings: int, window: range | None = None) -> tuple:
    """(model, what tested() takes after it) of a finished run of walk, sums or program; ValueError
    for a run of something else."""
    _, train = results.settings_of(run_dir)
    task = " + ".join(train["data"])
    if task not in ("walk", "sums", "program"):
        raise ValueError(f"{run_dir} is a run of {task}; give one of walk, sums or program")
    model, _ = checkpoints.load(run_dir)
    sizes = TASKS[task].sizes | results.size_values(train["sizes"])
    shape = {name: sizes[name] for name in TASKS[task].sizes}
    tokens, _ = TASKS[task].draw(rings, md.generator("far"), test=True, **shape)
    at, usual = tests_of(task, sizes["ring"])
    window = window or usual
    truths = list(answers(task, tokens, sizes, window[-1]))
    return model, (tokens, truths, at, window, states_of(task, sizes))


def far(run_dir: console.Path, rings: int = RINGS) -> dict:
    """Of a finished run of walk, sums or program: {"rings", "trained", "at": {hops: {"right",
    "rings_without_error", and of each cheat its share}}, "window": {"least", "rings_without_error",
    its 95 % "interval", of each cheat its least share and that "…_at_best", …}, "drift": {hops: how
    far the map has moved since the first loop, as a share of its length}}, and, of a model whose
    map changes, "kept_at_test": the same with the map kept from the first loop on, at the test
    alone.
    """
    model, test = given(run_dir, rings)
    if model.config.loop_keeps:
        return tested(model, *test, run=kept_once.questions_alone)
    found = tested(model, *test)
    tokens, truths, *_ = test
    model.config.loop_keeps = tokens.size(1) - truths[0].size(1)
    found["kept_at_test"] = tested(model, *test, run=kept_once.questions_alone)
    return found


def cheats(
    task: str, at: Iterable[int], trained: int, rings: int = RINGS, **sizes: int
) -> dict[int, dict[str, float]]:
    """{hops of `at`: what the three cheats would get there, of so many held-out rings}; the last of
    them is a model that is right at the hops `trained` and answers the same for ever. Of hold these
    are loops."""
    sizes = TASKS[task].sizes | sizes
    shape = {name: sizes[name] for name in TASKS[task].sizes}
    tokens, _ = TASKS[task].draw(rings, md.generator("cheats"), test=True, **shape)
    if task == "hold":  # from the loop that a question's hops take on its answer is the same
        k, own = hold.asked_of(tokens, sizes["ring"])
        follows, answer = walk.following(tokens, sizes["ring"]), own
        for hop in range(1, sizes["hops"] + 1):
            answer = torch.where(k >= hop, follows.gather(1, answer), answer)
        truths = {n: answer for n in (0, trained, *at)} | {0: own}
    else:
        truths = list(answers(task, tokens, sizes, max(at)))
    found = {}
    for n in at:
        n_answers = truths[n].numel()
        found[n] = dict(
            commonest=truths[n].flatten().bincount().max().item() / n_answers,
            own=count(truths[0], truths[n]),
            stopped=count(truths[trained], truths[n]),
        )
    return found


def kept_after(run_dir: console.Path, loops: tuple = (2, 3, 9), rings: int = 200) -> dict:
    """Of a finished run whose map changes, {loops: far() with the map kept after so many, at the
    test alone}. After one loop it is "kept_at_test" of far()."""
    model, test = given(run_dir, rings)
    n_map = test[0].size(1) - test[1][0].size(1)
    found = {}
    for n in loops:
        with walk.pairs_kept(model, n_map, n):
            found[str(n)] = tested(model, *test)
    return found


def thousand(run_dir: console.Path, rings: int = 200) -> dict:
    """far() of a program whose map is read once, over 985 to 1,000 steps: of permutations it is
    25 to 40 once more, but the state has been computed as often."""
    model, test = given(run_dir, rings, range(985, 1001))
    return tested(model, *test, run=kept_once.questions_alone)


if __name__ == "__main__":
    results.measuring_command(far=far, kept_after=kept_after, thousand=thousand)
