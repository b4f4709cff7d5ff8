"""Prints the page of what others did. Our rows of its table are counted in the stored runs."""

import statistics

from minidepth_lab.measure import far as tests
from minidepth_lab.measure import judge, results
from minidepth_site import answer

RIGHT = 0.95
walks, far = judge.named_runs("walk"), judge.named_runs("no-cheat")


def at(hops, share="accuracy"):
    """A measure of a run: what was right after so many hops."""
    return lambda run: run["accuracy_by"]["hops"][str(hops)][share]


def least(run):
    """What was right at the worst hop of the window."""
    return run["measured"]["far"]["window"]["least"]


ROWS = (  # what, trained to, looped on to, runs, measure, hops at which a cheat is scored
    (
        "[here][walk], ring of 16, recall",
        "eight hops",
        "31, 100 and 1,000",
        walks["8 hops, ring of 16"] + walks["8 hops, pairs kept"],
        lambda run: min(at(n)(run) for n in (31, 100, 1000)),
        (16, 8, (31, 100, 1000)),
    ),
    (
        "[here][lost], the same, pairs kept at the test",
        "four hops",
        "1,000",
        walks["hops: 4, five more"],
        at(1000, "pairs_kept"),
        (16, 4, (1000,)),
    ),
    (
        "[here][once], ring of 16, read once",
        "four hops",
        "1,000",
        walks["hops: 4, kept throughout"],
        at(1000),
        (16, 4, (1000,)),
    ),
    (
        "[here][cheat], the same, feed-forward part",
        "eight hops",
        "each of 985 to 1,000",
        far["read once, feed-forward 256"],
        least,
        (16, 8, range(985, 1001)),
    ),
    (
        "[here][cheat], the same, two layers",
        "eight hops",
        "each of 985 to 1,000",
        far["read once, two layers"],
        least,
        (16, 8, range(985, 1001)),
    ),
    (
        "[here][cheat], from scratch, the map alone",
        "six hops",
        "each of 985 to 1,000",
        far["map alone, ring of 16"],
        least,
        (16, 6, range(985, 1001)),
    ),
    (
        "[here][cheat], the same on a ring of 64, hints",
        "eight hops",
        "each of 937 to 1,000",
        far["map alone, ring of 64"],
        least,
        (64, 8, range(937, 1001)),
    ),
    (
        "[here][cheat], the same on a ring of 128, hints",
        "eight hops",
        "each of 873 to 1,000",
        far["map alone, ring of 128"],
        least,
        (128, 8, range(873, 1001)),
    ),
    (
        "[here][once], ring of 128, hints, read once",
        "eight hops",
        "once round, 127",
        walks["ring: 128, hints, kept throughout"],
        at(127),
        (128, 8, (127,)),
    ),
)
ours = []
for what, trained, on, runs, measure, (ring, n, hops) in ROWS:
    n_right = sum(measure(run) >= RIGHT for run in runs)
    cheats = tests.cheats("walk", hops, n, rings=100, ring=ring).values()
    best = max(min(each[name] for each in cheats) for name in ("commonest", "own", "stopped"))
    on = f"{on} in {n_right} of {len(runs)} (a cheat: {best:.2f})"
    ours.append(f"| {what} | {trained} | {on} | {len(runs)} |")


def spread(runs):
    """What is right at a thousand hops in runs, as words."""
    right = sorted(at(1000)(run) for run in runs)
    return f"{right[0]:.2f} to {right[-1]:.2f}"


drawn = walks["loss: last"]
each_loop = [run for run in walks["8 hops, ring of 16"] if run["seed"] < 205]
assert len(drawn) == len(each_loop) == 5 and min(at(1000)(run) for run in drawn) >= RIGHT
KINDS = {  # which walks: the settings of their runs
    "norm and input": dict(loop_start="recall", n_layers=1, d_ff=0),
    "the same, with a feed-forward part": dict(loop_start="recall", n_layers=1, d_ff=256),
    "the same, with two layers": dict(loop_start="recall", n_layers=2, d_ff=0),
    "input alone": dict(loop_start="input"),
    "neither": dict(loop_start="state"),
}
kinds, moved = [], {}
for kind, settings in KINDS.items():
    found = [run["measured"] for run in results.runs("walk", ring=16, **settings)]
    moved[kind] = [each["returned"] for each in found if "returned" in each]
    middle = (statistics.median(each[n] for each in moved[kind]) for n in ("2", "4", "8"))
    worst = max(each["8"] for each in moved[kind])
    cells = " | ".join(f"{x:.3f}" for x in (*middle, worst))
    kinds.append(f"| {kind} | {len(moved[kind])} | {cells} |")
stays = [each["8"] < 0.01 for each in moved["norm and input"]]
assert all(each["8"] > 0.1 for kind in ("input alone", "neither") for each in moved[kind])

PAGE = """# What others did

**Whether a looped model can go on for longer than it was trained to has been asked for some
years, and the answers differ.** So do the tasks. This is what the papers say of themselves; the
last rows are ours: a run counts that is right at 0.95, and in brackets is what the best of three
[cheats](no_cheat.md) would get. "–" means that we found no number of trained models (seeds) in the
paper.

| who, and what is looped | trained to | looped on | seeds |
|---|---|---|---|
| [Schwarzschild 2021][s21], convolutions | easy sums, mazes, chess | harder ones are solved | – |
| [Bansal 2022][b22], convolutions with recall | mazes of 9 × 9 | 201 × 201 are solved | – |
| [Anil 2022][a22], equilibrium models | easy problems | better if the state comes back | – |
| [Fan 2024][f24], a Transformer block | short sums, parities | longer ones are solved | – |
| [Geiping 2025][g25], a large language model | text, random loops | better, up to a level | – |
| [Kohli 2026][k26], Transformer layers | chains of five facts | of ten; too many loops harm | – |
| [Ouro 2025][o25], a large language model | four loops | [worse][lee] with each loop more | – |
{OURS}
| here, text, one layer and four | eight loops | worse, slowly | 5 |

## Nearest to ours

Each in a sentence, as far as we could read it. **Of most of the new ones we read the abstract
alone, so no details are quoted.** None that we read freezes, in a trained model, what a question
looks up, to see whether the walk or the map is lost; that does not show that there is none.

*Why loops hold or get lost.*

- [Labovich 2026][l26] (abstract) trains single looped layers on chess, sudoku and prefix sums, and
  proves that without recall a looped network cannot depend on its input strongly, while recall and
  a norm on the outside make fixed points that can be reached. Our walks agree where the map
  changes: they need both. Read once they need the norm alone, because the map, which is looked at
  in each loop, supplies the input.
- [Blayney 2026][b26] (read about, not read) looks into looped language models and finds that each
  layer of the loop goes to a fixed point of its own, so that the states go round a cycle. What
  comes round in our walks is the question: after a whole ring it is where it was.
- [Huang 2026][h26] (abstract) trains models to end in an attractor, and with up to 40,000 layers
  unrolled answers more than 0.99 of hard sudokus. There more loops settle an answer; in a walk each
  loop has to move it.

*How much a loop does.*

- *When does recurrence become an algorithm* ([2607.20594][w26]; read in another's summary) trains
  looped models on products in groups: trained to n steps in T loops, they learn about n ÷ T steps a
  loop, and tied weights choose to go step by step where untied ones go in parallel. Ours go step by
  step, too, but **at one hop a loop whatever n ÷ T is**: asked for up to four hops in two, three
  and four loops (2, 1.3 and 1), {LOSE} layers answer one hop less than they have loops, and lose
  one with each loop less; with eight hops in nine loops (0.9) they go on at one hop a loop.
- [Merrill & Sabharwal 2025][m25b] (abstract) prove that log n loops are enough for regular
  languages and for connected graphs, and find that training needs the depth that theory says. Ours
  takes n loops for n hops: what training finds is not the shortest way.
- [2606.29983][s26] (abstract) trains on additions, brackets, sets and copies with random numbers of
  loops, which makes runs differ far less beyond training. Five of our runs have their loss after
  the last loop alone, whose number is drawn for each ring. All are right at 0.95 at a thousand
  hops, at {DRAWN}; with a loss after each loop the same seeds are at {EACH}. So our runs differ no
  less for it.
- [Chen 2026][c26] (abstract) trains a looped layer with a loss after the last loop on graphs, logic
  and text, for more than twenty loops, and finds a frontier: what loops reach is right, and beyond
  it is chance.
- [A study of pointers][p26] (its page) is nearest in its task: f applied k times, f a random map of
  64 numbers, asked at once; 17 models of several kinds, trained to 8 and tested to 64.

*Keeping, and what must not change.*

- [Conchello Vendrell 2026][v26] (abstract) let all loops of a large model share one memory of keys
  and values, which a gate changes, to save memory. Ours is computed by the first loop and never
  changed.
- [Altabaa 2025][a25] (abstract) makes a looped model right on larger graphs of sums modulo a number
  than it was trained on, with supervised steps, a discrete state between loops, and errors put in
  for it to correct. Ours has none of these, so its state can drift.
- [Rodionov & Prokhorenkova 2025][r25] (abstract) force the state of each node into a finite set,
  and can then prove the learned algorithm right for any input. For ours nothing is proved.
- [Veličković 2022][v22] made the benchmark that such work is tested on: thirty algorithms, larger
  inputs at the test, and the steps between given in training.

*A fixed thing that a moving state reads* is an old idea. [Graves 2016][g16] trained a network
beside a memory that it writes and reads, on paths through graphs among others; [Hudson & Manning
2018][hm18] a cell that reads one fixed image again and again, each time with another question; and
[Giannou 2023][g23] set the weights of a looped Transformer by hand, with program, memory and
scratchpad at places of their own. Ours learns what to look up where, and is told where the map
ends.

We found no text of 2608.18222 and 2605.30757, and say nothing of them. The number of seeds is in
none of the abstracts.

## Settle, stay or drift

A state that is worked on again and again may settle, come round, or drift away. A walk along a ring
should come round. So we looked at how far the state of a question is from where it was one round
before, as a share of its length, in walks whose map changes. 0 means that it is back:

| a loop begins with | runs | after two rounds | four | eight | eight, the worst |
|---|---|---|---|---|---|
{KINDS}

**With the norm and the input the state comes round, in {STAYS}**, to less than a hundredth; the
first four numbers are medians. Without the norm it does not: after eight rounds it still moves by a
sixth of its length in each, and these walks are lost. Coming round says nothing of being right: a
walk that is lost may come round, too.

## An older task, and older forms of reading once

*Depo*, a task of [Physics of Language Models 4.1][depo] (Allen-Zhu 2025), is nearly ours: pairs
of a directed permutation of 75 to 375 nodes in mixed order, and the node k hops on is asked at
once. Transformers and linear models are compared on it there, without loops. Our nearest to it
with more than two runs are rings of 128 letters: with hints in training, and [read once][once],
seven of ten layers come once round, though hop by hop, not asked at once, and on rings of the size
that they were trained on.

To read once is not new. In [memory networks][m15] (Sukhbaatar 2015) sentences are embedded once,
and a question makes a few hops over them, in one form with the same weights each time. And to
save memory [MoR][m25] (Bae 2025) shares the keys and values of its first recursion, of all
tokens. Ours keeps the first tokens alone. On rings of
64 it decided whether a walk goes on: ten of ten do with it, and none of twenty without. On 16 and
24 letters most layers that were trained to six hops or more go on without it, with recall.

So where a task is the same work again and again, looping on can work: with recall, or where what
is looked up stays as it is and the state is normalised. Of the two
large language models in this table one levels off, and one gets worse. That one is Ouro, looped
on by J. Y. Lee: of the word problems of GSM8K it answers 0.79 with the four loops of its
training, 0.71 with eight, and 0.11 with sixteen. Bansal and others saw that without recall more
loops destroy an answer that was there, and call it overthinking. Our walks that begin each loop
with their state alone do the same.

[l26]: https://arxiv.org/abs/2604.15259
[b26]: https://arxiv.org/abs/2604.11791
[h26]: https://arxiv.org/abs/2605.21488
[w26]: https://arxiv.org/abs/2607.20594
[m25b]: https://arxiv.org/abs/2503.03961
[s26]: https://arxiv.org/abs/2606.29983
[c26]: https://arxiv.org/abs/2603.21676
[p26]: https://huggingface.co/eac123/ptr-recurrent-depth
[v26]: https://arxiv.org/abs/2605.07721
[a25]: https://arxiv.org/abs/2510.14095
[r25]: https://arxiv.org/abs/2402.11628
[v22]: https://arxiv.org/abs/2205.15659
[g16]: https://www.nature.com/articles/nature20101
[hm18]: https://arxiv.org/abs/1803.03067
[g23]: https://arxiv.org/abs/2301.13196
[s21]: https://arxiv.org/abs/2106.04537
[b22]: https://arxiv.org/abs/2202.05826
[a22]: https://arxiv.org/abs/2211.09961
[f24]: https://arxiv.org/abs/2409.15647
[g25]: https://arxiv.org/abs/2502.05171
[k26]: https://arxiv.org/abs/2604.07822
[o25]: https://arxiv.org/abs/2510.25741
[depo]: https://arxiv.org/abs/2512.17351
[walk]: ../tutorials/thousand_hops.md
[lost]: ../tutorials/thousand_hops.md#what-gets-lost
[cheat]: no_cheat.md
[once]: ../tutorials/thousand_hops.md#read-once-then-walk
[m15]: https://arxiv.org/abs/1503.08895
[m25]: https://arxiv.org/abs/2507.10524
[lee]: https://huggingface.co/JunYoungLee/ut-depth-probe-artifacts
"""

PARTS = {
    "{OURS}": "\n".join(ours),
    "{KINDS}": "\n".join(kinds),
    "{STAYS}": answer.of(stays),
    "{LOSE}": answer.of(answer.each_loop_less_costs_a_hop()),
    "{DRAWN}": spread(drawn),
    "{EACH}": spread(each_loop),
}
for name, part in PARTS.items():
    PAGE = PAGE.replace(name, part)
print(PAGE)
