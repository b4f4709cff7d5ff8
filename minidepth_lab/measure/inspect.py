"""Inside a model: where attention looks, what each layer knows, and what depends on either.

    maps = inspect.attention_maps(model, tokens)            weights, a tensor per layer
    stats = inspect.attention_stats(maps)                   entropy and sparsity of every head
    words = inspect.lens(model, tokens)                     the logit lens: likeliest words by depth
    with inspect.ablated(model, [(0, 1)]): ...              without the second head of layer 1
    with inspect.without_links(model, 0, link): ...         its first layer does not look there
    with inspect.skipped(model, 3): ...                     without the fourth layer
    found = inspect.mechanism(model, data)                  which heads do a depth task's steps
    found = inspect.layer_by_layer(model, part)             what each layer does for text

    python train.py --attention RUN_DIR RUN_DIR     entropy and sparsity of every head
    python train.py --mechanism RUN_DIR             which heads do the steps of a depth task

Layers and heads count from 0 here; depth 0 is the embedding, depth l the stream after l layers. A
looped model applies its layers several times: the second time is counted as further layers.
"""

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch.utils.hooks import RemovableHandle

import minidepth as md
from minidepth_lab.base import console, machine
from minidepth_lab.keep import checkpoints, registry, running
from minidepth_lab.models import fast, variants
from minidepth_lab.rows import to_data
from minidepth_lab.tasks.base.task_data import TaskData, links_of

# ---------- a model looked into, its code untouched ----------


@contextlib.contextmanager
def hooked(handles: Iterable[RemovableHandle]) -> Iterator[None]:
    """While active, the hooks are there that were registered with these `handles`."""
    with contextlib.ExitStack() as stack:
        for handle in handles:
            stack.enter_context(handle)
        yield


@contextlib.contextmanager
def replaced(module: Any, name: str, method: Callable) -> Iterator[None]:
    """While active, a method of this one object is another, whatever others were put there before;
    these are there again afterwards."""
    before = vars(module).get(name)
    setattr(module, name, method)
    try:
        yield
    finally:
        delattr(module, name)  # the class has its own still
        if before:
            setattr(module, name, before)


@contextlib.contextmanager
def watch_attention(
    model: variants.GPT, see: Callable[[int, torch.Tensor], object]
) -> Iterator[None]:
    """While active, every attention layer of the GPT, unmodified and training or not, calls
    see(layer, weights) each time it is applied to tokens read without a cache: weights (B, H, T, T)
    float32, without dropout, and gone after the call, so that one layer's at a time need memory.
    Nothing is drawn and no gradient formed: training goes on as if unwatched."""

    def look(layer, attn, inputs):
        # in single precision, whatever the training's: entropies are sums of many small terms
        with torch.no_grad(), torch.autocast(inputs[0].device.type, enabled=False):
            x = inputs[0].to(attn.qkv.weight.dtype)
            q, k, v = (part.float() for part in attn.project(x))
            _, weights = fast.readable_attention(q, k, v, attn.scale, window=attn.window)
            see(layer, weights)

    model = getattr(model, "module", model)  # out of DataParallel, whose replicas keep the hooks
    handles = []
    for i, layer in enumerate(model.blocks):
        hook = functools.partial(look, i)
        handles.append(layer.attn.register_forward_pre_hook(hook))
    with hooked(handles):
        yield


@contextlib.contextmanager
def loops_counted(model: variants.GPT) -> Iterator[dict]:
    """While active, the dict that this gives has under "loop" the number of the loop, from 0, that
    a forward pass of the GPT is in; however many loops it makes."""
    at, first = dict(loop=-1), model.blocks[0]
    run_loops = model.run_loops

    def begin(*args, **kwargs):
        at["loop"] = -1
        return run_loops(*args, **kwargs)

    def another(*_):
        at["loop"] += 1

    with replaced(model, "run_loops", begin), first.register_forward_pre_hook(another):
        yield at


def find(model: variants.GPT, layer: int, head: int = 0) -> tuple[int, md.Layer]:
    """(the loop, from 0, and the layer's module) of a layer that is counted as by ablated().
    ValueError for a layer or head that is not there: to leave out nothing looks as if nothing
    depended on it."""
    loop, of_weights = divmod(layer, model.config.n_layers)
    module = model.blocks[of_weights]
    if not 0 <= loop < model.config.n_loops:
        last = model.config.n_layers * model.config.n_loops - 1
        raise ValueError(f"layer {layer} is not there; the layers are 0 to {last}")
    if not 0 <= head < module.attn.n_heads:
        heads = f"its heads are 0 to {module.attn.n_heads - 1}"
        raise ValueError(f"head {head} of layer {layer} is not there; {heads}")
    return loop, module


@contextlib.contextmanager
def ablated(model: variants.GPT, heads: Iterable[tuple[int, int]]) -> Iterator[None]:
    """While active, the heads, (layer, head) from 0, add nothing to the residual stream. The second
    time that a looped model applies its layers is counted as further layers."""
    found = [(head, *find(model, layer, head)) for layer, head in heads]

    with loops_counted(model) as at:

        def cut(loop, start, end, out, inputs):
            if at["loop"] != loop:
                return None
            kept = inputs[0].clone()  # (B, T, C), the outputs of the heads side by side
            kept[..., start:end] = 0
            return (kept,)

        handles = []
        for head, loop, layer in found:
            size = layer.attn.out.in_features // layer.attn.n_heads
            hook = functools.partial(cut, loop, head * size, (head + 1) * size)
            handles.append(layer.attn.out.register_forward_pre_hook(hook))
        with hooked(handles):
            yield


def token_ids(tokens: Any) -> torch.Tensor:
    """Token ids, a NumPy or torch array of any integer type → an int64 tensor of the same shape."""
    if isinstance(tokens, torch.Tensor):
        return tokens.long()
    return torch.from_numpy(np.array(tokens, dtype=np.int64))


@machine.in_eval_mode
def exact_hidden(model: variants.GPT, tokens: Any) -> torch.Tensor:
    """model.hidden(tokens), in eval mode, which is restored; half precision begins in forward()."""
    model = getattr(model, "module", model)
    return model.hidden(token_ids(tokens).to(model.head_weight.device))


def attention_maps(model: variants.GPT, tokens: Any) -> list[torch.Tensor]:
    """Attention weights for tokens (B, T), a NumPy or torch array of any integer type: a
    (B, H, T, T) float32 tensor for each time a layer is applied, rows over keys summing to 1;
    without dropout. All at once: for long contexts see watch_attention(). Where a token that loops
    keep (`loop_keeps`) looks from the second loop on has no effect."""
    maps = []

    def see(layer, weights):
        maps.append(weights)

    with watch_attention(model, see):
        exact_hidden(model, tokens)
    return maps


# ---------- layer by layer ----------


@machine.in_eval_mode
def streams(model: variants.GPT, tokens: Any) -> list[torch.Tensor]:
    """The residual stream (B, T, C) at every depth, the embedding first: L + 1 tensors, one for
    each time a layer is applied. What a loop adds before its first layer stands in none. Tokens
    that loops keep (`loop_keeps`) are at each depth what the first loop has left."""
    depths = [model.embed(token_ids(tokens).to(model.head_weight.device))]

    def keep(layer, inputs, output):
        depths.append(output)

    with hooked(layer.register_forward_hook(keep) for layer in model.blocks):
        exact_hidden(model, tokens)
    kept = slice(None), slice(model.config.loop_keeps)
    after_first_loop = depths[model.config.n_layers]
    for x in depths[model.config.n_layers + 1 :]:
        x[kept] = after_first_loop[kept]
    return depths


@torch.no_grad()
def lens(model: variants.GPT, tokens: Any) -> list[torch.Tensor]:
    """The logit lens: the last norm and the head, applied at every depth → for each depth (B, T),
    the likeliest word. What it does not find may still be there, in directions that the head does
    not read."""
    weight = model.head_weight
    return [(model.norm(x) @ weight.T).argmax(-1) for x in streams(model, tokens)]


def known(model: variants.GPT, tokens: Any, targets: torch.Tensor) -> list[torch.Tensor]:
    """For each depth (B, T) bool, whether the lens reads the target."""
    return [words == targets.to(words.device) for words in lens(model, tokens)]


@contextlib.contextmanager
def skipped(model: variants.GPT, layer: int) -> Iterator[None]:
    """While active, the layer adds nothing to the residual stream. Layers are counted as by
    ablated()."""
    loop, module = find(model, layer)
    with loops_counted(model) as at:

        def pass_on(_, inputs, output):
            return inputs[0] if at["loop"] == loop else None

        with module.register_forward_hook(pass_on):
            yield


@contextlib.contextmanager
def without_links(model: variants.GPT, layer: int, link: torch.Tensor) -> Iterator[None]:
    """While active, no head of the layer looks along the links, (B, T, T) bool, query by key, as a
    step of a task's links() has them: the weight goes to the other tokens that a query sees, of
    which there has to be one. For these B sequences at once, without a cache, in eval mode. Layers
    are counted as by ablated()."""
    loop, module = find(model, layer)
    attn, T = module.attn, link.size(1)
    link = link.to(attn.qkv.weight.device)
    sees = torch.ones(T, T, dtype=torch.bool, device=link.device).tril() & ~link[:, None]
    if attn.window:
        sees = sees & ~fast.too_old(T, T, attn.window, link.device)

    as_it_is = attn.forward
    with loops_counted(model) as at:

        def forward(x, cache=None):
            if at["loop"] != loop:
                return as_it_is(x, cache)
            q, k, v = attn.project(x)
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=sees, scale=attn.scale)
            return attn.out(y.transpose(1, 2).reshape(x.shape))

        with replaced(attn, "forward", forward):
            yield


# ---------- how widely heads look ----------


def head_sums(
    weights: torch.Tensor,
    count_masked: bool = False,
    counted: torch.Tensor | None = None,
    window: int = 0,
) -> dict[str, torch.Tensor]:
    """head_stats() before its division, so that batches add up: {name: (2, H), sum and count}."""
    B, H, T, _ = weights.shape
    device = weights.device
    if counted is None:
        counted = torch.ones(B, T, dtype=torch.bool)
    if not isinstance(counted, torch.Tensor):
        counted = torch.from_numpy(
            counted.copy()
        )  # PyTorch takes no reversed view, to_data.filled()'s
    queries = counted.to(device)[:, None].expand(B, H, T)
    entries = torch.ones(T, T, dtype=torch.bool, device=device)  # of a map, that count
    if not count_masked:
        entries = entries.tril()
        if window:
            entries &= ~fast.too_old(T, T, window, device)
    n_entries = entries.sum(-1)  # (T,)
    keys = torch.arange(1, T + 1, device=device)  # in sight of query i: i + 1, or the window
    keys = keys.clamp(max=window or T)
    entropy = -weights.xlogy(weights).sum(-1)  # (B, H, T)
    most = keys.log().clamp(min=1e-9)  # the first query's is 0, and it is left out below

    def add(values, those, count=1):
        """The values (B, H, T) of `those` queries, and how many they are, summed: (2, H)"""
        total = torch.where(those, values, 0).sum((0, 2))
        n = torch.where(those, count, 0).sum((0, 2))
        return torch.stack((total.cpu().double(), n.cpu().double()))  # counts outgrow float32

    def below(threshold):
        """The entries below it, over all of them, as the published tables, not query by query."""
        few = ((weights < threshold) & entries).sum(-1)  # (B, H, T)
        return add(few, queries, n_entries)

    return dict(
        entropy=add(entropy, queries),
        normalised_entropy=add(entropy / most, queries & (keys > 1)),
        effective_keys=add(entropy.exp(), queries),
        sparsity=below(1e-3),
        relative_sparsity=below(0.1 / keys[:, None]),
    )


def head_stats(
    weights: torch.Tensor,
    count_masked: bool = False,
    counted: torch.Tensor | None = None,
    window: int = 0,
) -> dict[str, torch.Tensor]:
    """Of weights (B, H, T, T), averages over the queries `counted` (B, T), by default all, and of
    the sparsities over all their keys together, → (H,):

    entropy             -Σ p ln p of a query's weights, in nats
    normalised_entropy  that over ln n, its most with n keys in sight; of queries with two or more
    effective_keys      e^entropy: this many keys with equal weights have this entropy
    sparsity            share of the keys with a weight below 1e-3
    relative_sparsity   the same below a tenth of 1 / n, which does not depend on the length

    Query i has i + 1 keys in sight, of a layer with a `window` no more than that. Others are no
    keys; `count_masked` counts them, as LLmini's published tables do.
    """
    return averages(head_sums(weights, count_masked, counted, window))


def averages(sums: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """head_sums() → {name: (H,) float32}, 0 where no query counts"""
    return {name: (total / count.clamp(min=1)).float() for name, (total, count) in sums.items()}


def correlation(entropy: Any, sparsity: Any) -> float:
    """Pearson's correlation over all heads of all layers of two measures, (L, H) or lists of (H,)
    each, as head_stats() are stacked()."""
    flat = [torch.cat([layer.flatten() for layer in measure]) for measure in (entropy, sparsity)]
    return torch.corrcoef(torch.stack(flat).double())[0, 1].item()


def pruned(model: variants.GPT, part: tuple, batch_size: int = 32) -> dict:
    """What each head is worth: the rise of the mean loss (nats per token) on (tokens, targets) when
    it alone adds nothing, {"whole": the loss with all heads, "without": for each layer a list}."""
    n, rises = len(part[0]), []
    whole = md.mean_loss(model, part, n, batch_size)
    for layer, H in enumerate(model.config.heads * model.config.n_loops):
        rises.append([])
        for head in range(H):
            with ablated(model, [(layer, head)]):
                rises[-1].append(md.mean_loss(model, part, n, batch_size) - whole)
    return dict(whole=whole, without=rises)


def stacked(layers: list[dict[str, torch.Tensor]]) -> dict[str, Any]:
    """[head_stats() of each layer] → {name: (L, H)}, a list of (H,) where layers differ in H."""
    by_name = {}
    for name in layers[0]:
        column = [stats[name].cpu() for stats in layers]
        widths = {len(values) for values in column}
        by_name[name] = torch.stack(column) if len(widths) == 1 else column
    return by_name


def attention_stats(
    maps: list[torch.Tensor], count_masked: bool = False, counted: torch.Tensor | None = None
) -> dict[str, Any]:
    """head_stats() of attention_maps(), as if no layer had a window: {name: (L, H)}, ragged (a
    list) where heads differ."""
    return stacked([head_stats(weights, count_masked, counted) for weights in maps])


def sums_by_layer(
    model: variants.GPT, tokens: torch.Tensor, count_masked: bool, counted: torch.Tensor | None
) -> list[dict[str, torch.Tensor]]:
    """head_sums() of each layer on tokens (B, T), the weights of one layer at a time in memory."""
    sums, model = [], getattr(model, "module", model)

    def see(layer, weights):
        window = model.blocks[layer].attn.window
        sums.append(head_sums(weights, count_masked, counted, window))

    with watch_attention(model, see):
        exact_hidden(model, tokens)
    return sums


def model_stats(
    model: variants.GPT, tokens: Any, count_masked: bool = False, counted: Any = None
) -> dict[str, Any]:
    """head_stats() of each layer of a model on tokens (B, T), NumPy or torch, with the weights of
    one layer and one sequence at a time in memory, at most; as attention_stats() has them."""
    layers = []
    for i in range(len(tokens)):
        one = slice(i, i + 1)
        those = None if counted is None else counted[one]
        more_layers = sums_by_layer(model, tokens[one], count_masked, those)
        if not layers:
            layers = more_layers
            continue
        for sums, more in zip(layers, more_layers):
            for name in sums:
                sums[name] += more[name]
    return stacked([averages(sums) for sums in layers])


# ---------- what each layer does for text ----------


def pairs_before(tokens: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """(B, T) bool: whether a token with its target has stood in the sequence before, so that who
    looks back can know the target."""
    found = torch.zeros(targets.shape, dtype=torch.bool)
    for i, (row, wanted) in enumerate(zip(tokens.tolist(), targets.tolist())):
        pairs = set()
        for place, both in enumerate(zip(row, wanted)):
            found[i, place] = both in pairs
            pairs.add(tuple(row[place : place + 2]))  # as it stands, a target there or not
    return found


@torch.no_grad()
def layer_by_layer(model: variants.GPT, part: tuple) -> dict:
    """Of a GPT on (tokens, targets), (B, T) each: for each kind of target, `seen` where its token
    and it have stood together before, and `new`:

    targets   how many
    loss      of the whole model, nats per token
    skipped   for each layer, the rise of the loss without it
    lens      for each depth, the loss of what the logit lens reads, the embedding first
    right     for each depth, the share of targets that the lens reads

    costliest the layer, from 1, without which the loss rises most

    and `entropy`, for each layer the mean normalised entropy of its heads; `connects`, the layer,
    from 1, whose absence costs most more on seen targets than on new ones; and, of three layers and
    more, `thirds`: the entropy of the early, middle and late ones, and how much of the fall of the
    lens's loss on all targets comes in each.
    """
    tokens, targets = (token_ids(each) for each in part)
    before, there = pairs_before(tokens, targets), targets != -100
    kinds = dict(seen=there & before, new=there & ~before)
    depths = 1 + model.config.n_layers * model.config.n_loops
    weight = model.head_weight

    def read(x, i):
        """(losses, whether the likeliest is the target), (T,) each, of a stream of sequence i."""
        logits = (model.norm(x[0]) @ weight.T).float()
        those = targets[i].to(logits.device)
        losses = F.cross_entropy(logits, those, ignore_index=-100, reduction="none")
        return losses.cpu().double(), (logits.argmax(-1) == those).cpu().double()

    # one sequence at a time: its logits at one depth may be hundreds of megabytes
    lens = torch.zeros(2, depths, *targets.shape, dtype=torch.double)
    without = torch.zeros(depths - 1, *targets.shape, dtype=torch.double)
    for i in range(len(tokens)):
        one = tokens[i : i + 1]
        for depth, x in enumerate(streams(model, one)):
            lens[0, depth, i], lens[1, depth, i] = read(x, i)
        for layer in range(depths - 1):
            with skipped(model, layer):
                without[layer, i] = read(streams(model, one)[-1], i)[0]
    found = {}
    for kind, those in kinds.items():
        mean = [each[..., those].mean(-1) for each in (*lens, without)]
        whole = mean[0][-1]
        found[kind] = dict(
            targets=int(those.sum()),
            loss=whole.item(),
            skipped=(mean[2] - whole).tolist(),
            lens=mean[0].tolist(),
            right=mean[1].tolist(),
            costliest=1 + int(mean[2].argmax()),
        )
    entropy = model_stats(model, tokens, False, there)["normalised_entropy"]
    found["entropy"] = [heads.mean().item() for heads in entropy]
    more = [a - b for a, b in zip(*(found[kind]["skipped"] for kind in kinds))]
    found["connects"] = 1 + more.index(max(more))
    if depths > 3:
        thirds = {}
        read_off = lens[0][:, there].mean(-1).tolist()
        cuts = [round((depths - 1) * part / 3) for part in range(4)]
        for name, a, b in zip(("early", "middle", "late"), cuts, cuts[1:]):
            mean_entropy = sum(found["entropy"][a:b]) / (b - a)
            fall = (read_off[a] - read_off[b]) / (read_off[0] - read_off[-1])
            thirds[name] = dict(entropy=mean_entropy, fall=fall)
        found["thirds"] = thirds
    return found


# ---------- how a depth task is solved ----------


def link_weights(maps: list[torch.Tensor], link: torch.Tensor) -> list[list[float]]:
    """The mean weight that each head's queries give to their links, of attention_maps() and a
    step of a task's links(), (B, T, T): one list of H numbers per layer."""
    linked = link.any(2)[:, None]  # (B, 1, T): queries that have a link
    by_layer = []
    for weights in maps:
        given = (weights.cpu() * link[:, None]).sum(3)  # (B, H, T)
        by_layer.append(((given * linked).sum((0, 2)) / linked.sum()).tolist())
    return by_layer


N_LOOKED_AT = 200  # sequences: each head is cut by itself, a test of all for each


def mechanism(model: variants.GPT, data: TaskData, n: int = N_LOOKED_AT) -> dict:
    """How a model solves its depth task, on n sequences of the test split of a TaskData:

    accuracy  of the whole model
    without   (L, H), the accuracy with that head ablated()
    steps     {step of the task's links(): its `weight` (L, H), the mean weight that a head's
              queries give to their links, the `heads` that give half or more, (layer, head) from
              0, and the accuracy `without` all of these}

    ValueError for a task that does not say where its solution looks.
    """
    tokens, targets = (token_ids(part[:n]) for part in data.val)
    task, sizes = data.task, data.task_sizes
    links = links_of(data, tokens, targets)
    maps, layers = attention_maps(model, tokens), []
    for layer, H in enumerate(model.config.heads * model.config.n_loops):
        layers.append([(layer, head) for head in range(H)])

    def accuracy_without(heads):
        with ablated(model, heads):
            return task.accuracy(model, tokens, targets, **sizes)["accuracy"]

    parts = dict(accuracy=accuracy_without([]), without=[], steps={})
    for heads in layers:
        parts["without"].append([accuracy_without([head]) for head in heads])
    every = [head for heads in layers for head in heads]
    for step, link in links.items():
        weight = link_weights(maps, link)
        heads = [(layer, head) for layer, head in every if weight[layer][head] >= 0.5]
        without = accuracy_without(heads)
        parts["steps"][step] = dict(weight=weight, heads=heads, without=without)
    return parts


# ---------- from step to step of training ----------

# what the box on the page *Looking inside* draws (docs/assets/look.js):
#
#     data = inspect.watched(registry.data_of(t))
#     run = running.train(m, t, data)
#     inspect.story([run])                     a dict that JSON can hold


@dataclass
class Watched(TaskData):
    """TaskData that keeps, at every evaluation, how the model treats its first test sequence."""

    snapshots: list = field(default_factory=list)

    def evaluate(self, model: variants.GPT) -> dict:
        self.snapshots.append(snapshot(model, self))
        return super().evaluate(model)


def watched(data: TaskData) -> Watched:
    """A TaskData → the same, watched."""
    return Watched(**vars(data))


def first_test(data: TaskData) -> Iterator[torch.Tensor]:
    """The first test sequence, its tokens and targets: (1, T) int64 each."""
    return (token_ids(part[:1]) for part in data.val)


def target_places(targets: torch.Tensor) -> list[int]:
    """The places of a sequence (1, T) that have a target."""
    return (targets[0] != -100).nonzero().flatten().tolist()


def names(tokens: Iterable[int], symbols: int) -> list[str]:
    """icqa's ids → q0, q1, … for questions, a0, a1, … for answers."""
    return [f"q{i}" if i < symbols else f"a{i - symbols}" for i in tokens]


@machine.in_eval_mode
def snapshot(model: variants.GPT, data: TaskData) -> dict:
    """`maps`, by layer and head the weights of the first test sequence as text, and `said`, for
    each question the likeliest answer, its probability, and that of the right answer."""
    tokens, targets = first_test(data)
    maps = attention_maps(model, tokens)
    shares = model(tokens.to(maps[0].device)).softmax(-1)[0].cpu()  # (T, V)
    said = []
    for place in target_places(targets):
        share, word = shares[place].max(0)
        right = shares[place, targets[0, place]]
        (name,) = names([word.item()], data.task_sizes["symbols"])
        said.append([name, round(share.item(), 3), round(right.item(), 3)])
    return dict(maps=[[as_digits(head) for head in layer[0]] for layer in maps], said=said)


def as_digits(weights: torch.Tensor) -> str:
    """Weights (T, T) up to their diagonal, two digits for each, in percent, 99 at most."""
    kept = weights[torch.ones_like(weights).tril().bool()]
    return "".join(f"{min(99, round(100 * w)):02}" for w in kept.tolist())


def story(runs: Sequence[running.Run], until: int = 300) -> dict:
    """Finished runs on Watched data, of one layer, of two layers …: the sequence, and what each
    model made of it at each of its evaluations until this step, and at the last."""
    data = runs[0].data
    tokens, targets = first_test(data)
    symbols, places = data.task_sizes["symbols"], target_places(targets)
    right = names(targets[0, places].tolist(), symbols)
    models = []
    for run in runs:
        steps = []
        for row, seen in zip(run.log, run.data.snapshots):
            if row["step"] <= until or row is run.log[-1]:
                steps.append(dict(step=row["step"], right=row["accuracy"]) | seen)
        models.append(steps)
    names_of_tokens = names(tokens[0].tolist(), symbols)
    return dict(tokens=names_of_tokens, targets=list(zip(places, right)), models=models)


# ---------- attention of a run ----------


def as_lists(stats: dict[str, Any]) -> dict[str, list]:
    """model_stats() as plain lists, for JSON and figures."""
    return {name: [layer.tolist() for layer in layers] for name, layers in stats.items()}


def measured(folder: console.Path) -> dict:
    """model_stats() of a run on its own validation blocks, padding left out, as lists: `valid`
    over the keys in sight, `count_masked` as LLmini's tables; and on how much text."""
    m, t = checkpoints.read_config(folder)
    model, tokenizer = checkpoints.load(folder)
    data = registry.data_of(t, m.block_size, tokenizer)
    if checkpoints.has_changed(folder, data):
        now = "this is its attention to the data as it is now"
        print(f"note: the data of {folder} has changed since it was trained; {now}")
    tokens, targets = (part[: t.eval_blocks] for part in data.val)
    if targets.ndim == 3:  # (N, loops, T): where any loop has a target
        targets = targets.max(1)
    there = to_data.filled(tokens, targets)
    model.to(machine.pick_device("auto"))
    return dict(
        valid=as_lists(model_stats(model, tokens, False, there)),
        count_masked=as_lists(model_stats(model, tokens, True, there)),
        queries=int(there.sum()),
        blocks=tokens.shape[0],
        block_size=tokens.shape[1],
    )
