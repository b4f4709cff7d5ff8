"""Questions that look at the map alone, on sizes never seen, and where a loop too many does no
harm. The model is that of docs/tutorials/from_scratch.py in plain PyTorch: a map of pairs is read
once, its keys and values are computed once, and each loop lets the questions look at these and at
nothing else.

    model = train(seed, "sizes")          rings of 8 to 32 in training, 64 and 128 in the test
    model = train(seed, "stop")           trees at most 8 deep in training, 60 deep in the test
    found = tested(model, "sizes")

"sizes": a ring is as long as chance has it, anew for each step. While the map is read, places are
rotary: how far apart two tokens are counts, not where they stand, so a longer map needs nothing
new. A learned mark says only which letter of its pair each is: without it the first letter of a
pair cannot be told from what follows the letter before it, and half of the answers are those of
the pair before. Questions have no places. Letters are 128 for all sizes.

"stop": 64 letters of 128 form a tree; a pair says which letter is whose parent, and the root is its
own. After loop i the answer is the letter i steps up, or the root if that is nearer. So looping can
end where the answer stands still, and one need not know how deep a question is. In training
a tree is at most 8 deep; in the test it is a spine of 61 letters with three more along it. After 60
loops the answer is the root to each question, which could be seen without a walk (it is its own
parent): so what counts is the least over 1 to 60 loops.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn

import minidepth as md
from minidepth_lab.models import variants

WIDTH, HEADS, BATCH, RATE = 64, 4, 64, 2e-3
SIZES = dict(
    sizes=dict(letters=128, places=2, hops=7, steps=3000),
    stop=dict(letters=128, places=128, hops=8, steps=1500),
)
GATE, FIRST = 0.3, 5.0  # the newest hop's mean loss below which the next one joins, and its first
RINGS, NODES, DEEP = (8, 32), 64, 60


class Walker(nn.Module):
    """pairs (B, 2 n) → a memory, read once; questions (B, m) → their states, loop by loop."""

    def __init__(self, letters, places, hops):
        super().__init__()
        self.letter, self.place = nn.Embedding(letters, WIDTH), nn.Embedding(places, WIDTH)
        self.rotary = places == 2  # then these say which letter of its pair each is
        self.norm, self.last = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        sizes = WIDTH, 2 * WIDTH, WIDTH, letters
        self.q, self.kv, self.out, self.head = (nn.Linear(WIDTH, n, bias=False) for n in sizes)
        for part in (self.letter, self.place, self.q, self.kv, self.head):
            nn.init.normal_(part.weight, 0, 0.1)
        nn.init.normal_(self.out.weight, 0, 0.1 / (hops + 1) ** 0.5)

    def keys_and_values(self, x):
        """x (B, T, C) → two of (B, H, T, D)"""
        return self.kv(self.norm(x)).unflatten(-1, (2 * HEADS, -1)).transpose(1, 2).chunk(2, 1)

    def look(self, x, keys, values, causal=False):
        """x (B, T, C) asks keys and values (B, H, S, D) → (B, T, C)"""
        q = self.q(self.norm(x)).unflatten(-1, (HEADS, -1)).transpose(1, 2)
        if causal and self.rotary:
            q, keys = variants.rotate(q), variants.rotate(keys)
        found = F.scaled_dot_product_attention(q, keys, values, is_causal=causal)
        return x + self.out(found.transpose(1, 2).flatten(2))

    def say(self, x):
        """(B, T, C) → logits (B, T, letters)"""
        return self.head(self.last(x))

    def read(self, pairs):
        """pairs (B, T) → what is read (B, T, C), its keys and values for the questions"""
        place = torch.arange(pairs.size(1)) % self.place.num_embeddings
        told = self.letter(pairs) + self.place(place)
        read = self.look(told, *self.keys_and_values(told), causal=True)
        return read, self.keys_and_values(F.layer_norm(read, (WIDTH,)) + told)

    def walk(self, asked, memory, loops):
        """Yield the states (B, m, C) of the letters asked (B, m) after each loop."""
        x = start = self.letter(asked)
        for _ in range(loops):
            x = self.look(F.layer_norm(x, (WIDTH,)) + start, *memory)
            yield x


def mixed(line, follows, generator):
    """Pairs of line (B, n) and follows (B, n), its letters' followers, in mixed order: (B, 2 n)."""
    order = torch.rand(line.shape, generator=generator).argsort(1)
    return torch.stack((line.gather(1, order), follows.gather(1, order)), 2).flatten(1)


def rings(n, ring, letters, generator):
    """n rings → letters asked (n, ring) and, of each, the index of its follower (n, ring)"""
    line = torch.rand(n, letters, generator=generator).topk(ring).indices
    return line, ((torch.arange(ring) + 1) % ring).expand(n, -1)


def trees(n, letters, generator, test):
    """n trees → letters (n, NODES), the root first, and, of each, the index of its parent, (n,
    NODES). Of training at most 8 deep, each parent chosen by chance among those that are not too
    deep; of the test a spine DEEP deep, with the other letters along it."""
    line = torch.rand(n, letters, generator=generator).topk(NODES).indices
    parent, depth = (torch.zeros(n, NODES, dtype=torch.int64) for _ in range(2))
    most = DEEP if test else SIZES["stop"]["hops"]
    for i in range(1, NODES):
        chance = torch.rand(n, i, generator=generator)
        chosen = chance.masked_fill(depth[:, :i] >= most, -1).argmax(1, keepdim=True)
        if test and i <= DEEP:
            chosen = torch.full_like(chosen, i - 1)
        parent[:, i : i + 1] = chosen
        depth[:, i : i + 1] = depth.gather(1, chosen) + 1
    return line, parent


def draw(kind, n, generator, ring=None, test=False):
    """(pairs (n, 2 m), letters asked (n, m), index of what follows each of them (n, m))"""
    letters = SIZES[kind]["letters"]
    if kind == "sizes":
        line, follows = rings(n, ring, letters, generator)
    else:
        line, follows = trees(n, letters, generator, test)
    return mixed(line, line.gather(1, follows), generator), line, follows


def answers(line, follows, hops):
    """Yield the letters (n, m) that are 1, 2, … hops on."""
    at = follows
    for _ in range(hops):
        yield line.gather(1, at)
        at = follows.gather(1, at)


def train(seed, kind, steps=None):
    """A Walker of this seed; prints when a hop joins."""
    sizes = SIZES[kind]
    torch.manual_seed(seed)
    model, asked = Walker(sizes["letters"], sizes["places"], sizes["hops"]), 1
    steps, newest = steps or sizes["steps"], FIRST
    adam = torch.optim.AdamW(model.parameters(), RATE, (0.7, 0.95), weight_decay=0.0)
    for step in range(1, steps + 1):
        fall = 0.55 + 0.45 * math.cos(math.pi * step / steps)  # from 1 to a tenth
        adam.param_groups[0]["lr"] = RATE * fall * min(1, step / 50)
        generator = md.generator(kind, seed, step)
        ring = int(torch.randint(RINGS[0], RINGS[1] + 1, (), generator=generator))
        pairs, line, follows = draw(kind, BATCH, generator, ring)
        read, memory = model.read(pairs)
        walk = zip(model.walk(line, memory, asked), answers(line, follows, asked))
        losses = [F.cross_entropy(model.say(x).mT, letter) for x, letter in walk]
        newest += 0.1 * (losses[-1].item() - newest)  # small rings are easier: no single loss
        if asked == 1:  # the hint: each pair's second letter is asked for its first one
            losses.append(F.cross_entropy(model.say(read[:, 1::2]).mT, pairs[:, ::2]))
        torch.stack(losses).mean().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        adam.zero_grad()
        if newest < GATE and asked < sizes["hops"]:
            asked, newest = asked + 1, FIRST
            print(f"step {step}: {asked} hops", flush=True)
        if step % 250 == 0:
            print(f"step {step}: loss {newest:.4f}", flush=True)
    return model


def share(right):
    return right.sum().item() / right.numel()


@torch.no_grad()
def tested(model, kind, ring=None, rings=200, n_far=300):
    """Of new rings so long, or trees: {"rings", "at": {hops: {"right", "rings_without_error"}},
    "window": {"from", "to", "least", "least_at", "rings_without_error", of each cheat its least and
    greatest share}}. Of rings the window is 1 to 2 ring + 3 hops, of trees 1 to DEEP; "at" has
    `n_far` loops of trees, too, and "stop": the "right" share if a question stops where its answer
    is that of the loop before, and the most "loops" that takes. The cheats are the commonest
    answer, the question's own letter, the answer at the last loop trained, and of trees the root.
    """
    generator = md.generator("test", kind, ring or 0)
    pairs, line, follows = draw(kind, rings, generator, ring, test=True)
    hops, most = SIZES[kind]["hops"], 2 * ring + 3 if ring else n_far
    window = range(1, most + 1 if ring else DEEP + 1)
    told = {1, hops, ring - 1, most} if ring else {1, hops, 30, DEEP, n_far}
    _, memory = model.read(pairs)
    at, parts, good, stopped = {}, [], torch.ones(rings, dtype=bool), None
    before, halted, loops = line, torch.full_like(line, -1), torch.zeros_like(line)
    walk = zip(model.walk(line, memory, most), answers(line, follows, most))
    for i, (x, letter) in enumerate(walk, 1):
        said = model.say(x).argmax(-1)
        right = said == letter
        stopped = said if i == hops else stopped
        stands = (said == before) & (halted < 0)
        halted, loops = torch.where(stands, said, halted), torch.where(stands, i, loops)
        before = said
        if i in told:
            n_good = right.all(1).sum().item()
            at[str(i)] = dict(right=share(right), rings_without_error=n_good)
        if i in window:
            good &= right.all(1)
            cheats = dict(commonest=letter == letter.flatten().mode()[0], own=letter == line)
            if stopped is not None:
                cheats["stopped"] = letter == stopped
            if not ring:
                cheats["root"] = letter == line[:, :1]
            parts.append({name: share(each) for name, each in cheats.items()})
            parts[-1] |= dict(right=share(right), hops=i)
    worst = min(parts, key=lambda part: part["right"])
    summary = {
        "from": 1, "to": window[-1], "least": worst["right"], "least_at": worst["hops"],
        "rings_without_error": good.sum().item(),
    }  # fmt: skip
    for cheat in parts[-1].keys() - {"right", "hops"}:
        shares = [part[cheat] for part in parts if cheat in part]
        summary |= {cheat: min(shares), f"{cheat}_at_best": max(shares)}
    found = dict(rings=rings, trained=hops, at=at, window=summary)
    if not ring:
        found["stop"] = dict(right=share(halted == line[:, :1]), loops=loops.max().item())
    return found
