"""Weights written by hand: ONE attention layer, applied once, that answers one hop along a ring.

    model = one_layer(n_heads=8)
    tokens, targets = one_hop(1000)
    TASKS["ring"].accuracy(model, tokens, targets, **SIZES)["accuracy"]          1.0

Training found no such weights for eight heads. With four heads of width 128 some runs of 6,000
steps found a like way by themselves, which gives half of the answers (`ring-wide`). These weights
show that a layer can have all: "not learned" was never "cannot". The model is the project's own GPT
with attention alone, and the sequence the one that the task `ring` draws, of eight pairs `x y` for
"y follows x" and then questions. A question stands at a letter a and wants the y of the pair whose
x is a.

**The difficulty.** A query that finds x = a fetches x, not the y beside it. And y does not know
which x stands before it: it has seen nothing yet when it is looked at. So no head that looks for
its letter among all pairs can fetch the answer. (One that watches a single pair can: the trained
ones look at x, and turn to y if x is the letter. That was found after these weights were written.)

**The way round: fetch what is wrong, and subtract it.** All second letters together are the eight
letters of the ring. A head that watches one pair sees two keys, x and y:

- x is not a: the head looks at y, since y's key is a little stronger. y is wrong. The head
  subtracts it.
- x is a: the match makes x stronger than y. The head looks at x, and leaves y alone.

Eight pairs, eight watching heads: every second letter is subtracted but the right one. The last
pair needs no head, because its y is what is left when all others are gone. Its place is needed by
a head that says which letters are in the ring at all: it adds all second letters, more of those
that are watched than of the one that is not. So eight heads answer all questions.

**Fewer heads watch fewer pairs.** With n heads n − 1 pairs are watched, and the 9 − n second
letters that are not watched look alike. The question's own letter is ruled out. If the answer is
unwatched, that leaves a guess among u = 9 − n letters, or among u − 1 if the own letter is one of
them. `expected(n_heads)` does the sum.

**Sizes.** A head needs 15 numbers to compare 16 letters and one for places: 16 for each head. So
the width is 16 n. That is why the wider layer can do more: it has room for more heads.
"""

import math

import torch

import minidepth as md
from minidepth_lab.base import configs
from minidepth_lab.models import variants
from minidepth_lab.tasks import TASKS

LETTERS = 16
PAIRS = 8  # of a ring
PAIR_TOKENS = 2 * PAIRS  # the places 0 to 15 hold pairs, all later ones questions
VOCAB = LETTERS + 5  # the blank and the numbers 1 to 4, as the direct questions have them
MOST_WORDS = LETTERS + 8  # written, a way has up to seven hops
HEAD_SIZE = 16
SIZES = dict(letters=LETTERS, ring=PAIRS, questions=56, lengths=(1,))

# the residual stream, number by number: which token, which place, what the heads found
PLACE = MOST_WORDS  # 17 numbers: one for each place of a pair, one that all questions share
QUESTION = PLACE + PAIR_TOKENS
SUM = QUESTION + 1  # 16 numbers: for each letter the sum of what the heads add and subtract
WIDTH_USED = SUM + LETTERS

# attention scores before the softmax; a difference of 70 leaves the loser a weight of zero
WATCHED = 2000.0  # for the two letters of the pair that a head watches
SECOND = 100.0  # more for its second letter
MATCH = 200.0  # more for the letter that is asked about: beats SECOND
ADDED = 4.0  # what the last head adds in all, where each watching head subtracts 1
LOUD = 50.0  # so that the sum outweighs the token and the place in the last normalisation


def one_layer(n_heads, vocab_size=VOCAB):
    """The model: one layer of n_heads, from 4 to 9, of width 16 n_heads. ValueError for others."""
    if not 4 <= n_heads <= PAIRS + 1:
        raise ValueError(f"n_heads {n_heads} is not between 4 and {PAIRS + 1}")
    width = HEAD_SIZE * n_heads
    shape = dict(n_layers=1, n_heads=n_heads, d_model=width, d_ff=0, tie_weights=False)
    config = configs.ModelConfig(vocab_size=vocab_size, block_size=128, dropout=0.0, **shape)
    model = variants.GPT(config).eval()
    watched = n_heads - 1
    query, key, value, out = (torch.zeros(width, width) for _ in range(4))
    for head in range(n_heads):
        first = head * HEAD_SIZE  # its 16 rows of query, key and value, its 16 columns of out
        rows = slice(first, first + HEAD_SIZE)
        compare, place = slice(first, first + HEAD_SIZE - 1), first + HEAD_SIZE - 1
        query[place, QUESTION] = 1.0
        if head < watched:
            query[compare, :LETTERS] = simplex().T
            key[compare, :LETTERS] = MATCH * simplex().T
            key[place, PLACE : QUESTION + 1] = watch(head)
            share = -1.0
        else:
            key[place, PLACE : QUESTION + 1] = in_the_ring(watched)
            share = ADDED
        value[rows, :LETTERS] = torch.eye(LETTERS)
        out[SUM:WIDTH_USED, rows] = LOUD * share * torch.eye(LETTERS)

    # The layer's norm turns each 1 of a token or place into 1 / spread, less a constant. The
    # constant does no harm: it adds the same to all scores of a query, and to all letters.
    spread = spread_of_two_ones(width)
    key *= math.sqrt(HEAD_SIZE)  # attention divides scores by that
    with torch.no_grad():
        model.token_embedding.weight.zero_()
        model.token_embedding.weight[:, :vocab_size] = torch.eye(vocab_size)
        model.position_embedding.weight.zero_()
        for at in range(config.block_size):
            model.position_embedding.weight[at, PLACE + min(at, PAIR_TOKENS)] = 1.0
        attention = model.blocks[0].attn
        attention.qkv.weight.copy_(torch.cat((query, key, value)) * spread)
        attention.out.weight.copy_(out)
        model.head.weight.copy_(read_out(vocab_size, width))
    return model


def simplex():
    """Sixteen vectors of 15 numbers (16, 15), each with product 1 with itself and −1/15 with every
    other: the most that sixteen letters can differ."""
    centred = torch.eye(LETTERS) - 1 / LETTERS
    axes = torch.linalg.svd(centred).Vh[: LETTERS - 1]
    points = centred @ axes.T
    return points / points.norm(dim=1, keepdim=True)


def watch(pair):
    """Scores by place (17,) of a head that watches one pair; the last is that of all questions."""
    scores = torch.zeros(PAIR_TOKENS + 1)
    scores[2 * pair] = WATCHED
    scores[2 * pair + 1] = WATCHED + SECOND
    return scores - scores.mean()  # the norm's constant then has no effect


def in_the_ring(watched):
    """Scores by place (17,) of the head that adds second letters: three times as much weight on
    those of watched pairs. A watched answer then outweighs an unwatched letter, and an unwatched
    letter one that was subtracted or is not in the ring."""
    scores = torch.zeros(PAIR_TOKENS + 1)
    scores[1:PAIR_TOKENS:2] = WATCHED
    scores[1 : 2 * watched : 2] += math.log(3)
    return scores - scores.mean()


def spread_of_two_ones(width):
    """The standard deviation, as the layer's norm takes it, of `width` numbers, two of them 1."""
    mean = 2 / width
    variance = mean - mean**2
    return math.sqrt(variance + 1e-5)


def read_out(vocab_size, width):
    """The output matrix (vocab_size, width): a letter's logit is its sum; never the letter asked
    about, never a number."""
    weight = torch.zeros(vocab_size, width)
    weight[:LETTERS, SUM:WIDTH_USED] = torch.eye(LETTERS)
    weight[:LETTERS, :LETTERS] = -10 * LOUD * torch.eye(LETTERS)
    weight[LETTERS:, QUESTION] = -20 * LOUD
    return weight


def measured_in_writing(n=300):
    """The share of questions about up to seven hops, on n rings, of which eight heads write every
    letter of the way: the same weights, for each letter is one hop from the one just written."""
    sizes = SIZES | dict(questions=8, lengths=(1, 2, 4, 7), answer="written")
    tokens, targets = TASKS["ring"].draw(n, md.generator("val"), test=True, **sizes)
    model = one_layer(8, MOST_WORDS)
    return TASKS["ring"].accuracy(model, tokens, targets, **sizes)["accuracy"]


def one_hop(n):
    """Test sequences of the task `ring` with questions of one hop: tokens, targets (n, 128)."""
    return TASKS["ring"].draw(n, md.generator("val"), test=True, lengths=(1,))


def measured(n_heads, n=300):
    """The share of one-hop questions on n rings that the model answers."""
    return TASKS["ring"].accuracy(one_layer(n_heads), *one_hop(n), **SIZES)["accuracy"]


def expected(n_heads):
    """The share that it should answer, by counting."""
    unwatched = max(0, PAIRS - (n_heads - 1))
    if unwatched <= 1:
        return 1.0
    own_is_unwatched = (unwatched - 1) / (PAIRS - 1)
    guess = own_is_unwatched / (unwatched - 1) + (1 - own_is_unwatched) / unwatched
    return (PAIRS - unwatched + unwatched * guess) / PAIRS
