"""Where attention looks, and what depends on it. How the commands show it: attention_figures.py.

    maps = attention.attention_maps(model, tokens)          weights, a tensor per layer
    stats = attention.model_stats(model, tokens)            entropy and sparsity of every head
    with attention.ablated(model, [(0, 1)]): ...            without the second head of layer 1
    found = attention.mechanism(model, data)                which heads do a depth task's steps

Layers and heads count from 0 here. A looped model applies its layers several times: the second
time is counted as further layers.
"""

import contextlib
import functools
import itertools

import numpy as np
import torch

import minidepth as md

# ---------- a model looked into, its code untouched ----------


@contextlib.contextmanager
def hooked(hooks):
    """While active, each (module, hook) is a forward pre-hook."""
    handles = [module.register_forward_pre_hook(hook) for module, hook in hooks]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def watch_attention(model, see):
    """While active, every attention layer of the GPT, unmodified and training or not, calls
    see(layer, weights) each time it is applied to tokens read without a cache: weights (B, H, T, T)
    float32, without dropout, and gone after the call, so that one layer's at a time need memory.
    Nothing is drawn and no gradient formed: training goes on as if unwatched."""

    def look(layer, attn, inputs):
        # in single precision, whatever the training's: entropies are sums of many small terms
        with torch.no_grad(), torch.autocast(inputs[0].device.type, enabled=False):
            x = inputs[0].to(attn.qkv.weight.dtype)
            q, k, v = (part.float() for part in attn.project(x))
            _, weights = md.readable_attention(q, k, v, attn.scale)
            see(layer, weights)

    model = getattr(model, "module", model)  # out of DataParallel, whose replicas keep the hooks
    hooks = []
    for layer, block in enumerate(model.blocks):
        hooks.append((block.attn, functools.partial(look, layer)))
    return hooked(hooks)


def ablated(model, heads):
    """While active, the heads, (layer, head) from 0, add nothing to the residual stream. The second
    time that a looped model applies its layers is counted as further layers."""
    n_layers, n_loops = model.config.n_layers, model.config.n_loops

    def cut(loop, times, start, end, out, inputs):
        if next(times) % n_loops != loop:
            return None
        kept = inputs[0].clone()  # (B, T, C), the outputs of the heads side by side
        kept[..., start:end] = 0
        return (kept,)

    hooks = []
    for layer, head in heads:
        attn = model.blocks[layer % n_layers].attn
        size = attn.out.in_features // attn.n_heads
        start, end = head * size, (head + 1) * size
        times = itertools.count()  # how often the layer has been applied
        hook = functools.partial(cut, layer // n_layers, times, start, end)
        hooks.append((attn.out, hook))
    return hooked(hooks)


def token_ids(tokens):
    """Token ids, a NumPy or torch array of any integer type → an int64 tensor of the same shape."""
    if isinstance(tokens, torch.Tensor):
        return tokens.long()
    return torch.from_numpy(np.array(tokens, dtype=np.int64))


@md.in_eval_mode
def exact_hidden(model, tokens):
    """model.hidden(tokens), in eval mode and single precision; both are restored."""
    model = getattr(model, "module", model)
    half, model.half = model.half, None
    try:
        return model.hidden(token_ids(tokens).to(model.head_weight.device))
    finally:
        model.half = half


def attention_maps(model, tokens):
    """Attention weights for tokens (B, T), a NumPy or torch array of any integer type: a
    (B, H, T, T) float32 tensor for each time a layer is applied, rows over keys summing to 1;
    without dropout. All at once: for long contexts see watch_attention()."""
    maps = []

    def see(layer, weights):
        maps.append(weights)

    with watch_attention(model, see):
        exact_hidden(model, tokens)
    return maps


# ---------- how widely heads look ----------


def head_sums(weights, count_masked=False, counted=None):
    """head_stats() before its division, so that batches add up: {name: (2, H), sum and count}."""
    B, H, T, _ = weights.shape
    device = weights.device
    if counted is None:
        counted = torch.ones(B, T, dtype=torch.bool)
    if not isinstance(counted, torch.Tensor):
        counted = torch.from_numpy(counted.copy())  # PyTorch takes no reversed view, md.filled()'s
    queries = counted.to(device)[:, None].expand(B, H, T)
    entries = torch.ones(T, T, dtype=torch.bool, device=device)  # of a map, that count
    if not count_masked:
        entries = entries.tril()
    n_entries = entries.sum(-1)  # (T,)
    keys = torch.arange(1, T + 1, device=device)  # in sight of query i: i + 1
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


def head_stats(weights, count_masked=False, counted=None):
    """Of weights (B, H, T, T), averages over the queries `counted` (B, T), by default all, → (H,):

    entropy             -Σ p ln p of a query's weights, in nats
    normalised_entropy  that over ln(i + 1), its most with i + 1 keys in sight; from query i = 1 on
    effective_keys      e^entropy: this many keys with equal weights have this entropy
    sparsity            share of a query's keys with a weight below 1e-3
    relative_sparsity   the same below a tenth of 1 / (i + 1), which does not depend on the length

    Keys after the query are no keys; `count_masked` counts them, as LLmini's published tables do.
    """
    return averages(head_sums(weights, count_masked, counted))


def averages(sums):
    """head_sums() → {name: (H,) float32}"""
    return {name: (total / count).float() for name, (total, count) in sums.items()}


def stacked(layers):
    """[head_stats() of each layer] → {name: (L, H)}, a list of (H,) where layers differ in H."""
    found = {}
    for name in layers[0]:
        column = [stats[name].cpu() for stats in layers]
        widths = {len(values) for values in column}
        found[name] = torch.stack(column) if len(widths) == 1 else column
    return found


def attention_stats(maps, count_masked=False, counted=None):
    """head_stats() of attention_maps(): {name: (L, H)}, ragged (a list) where heads differ."""
    return stacked([head_stats(weights, count_masked, counted) for weights in maps])


def sums_by_layer(model, tokens, count_masked, counted):
    """head_sums() of each layer on tokens (B, T), the weights of one layer at a time in memory."""
    found = []

    def see(layer, weights):
        found.append(head_sums(weights, count_masked, counted))

    with watch_attention(model, see):
        exact_hidden(model, tokens)
    return found


def model_stats(model, tokens, count_masked=False, counted=None):
    """attention_stats() of a model on tokens (B, T), NumPy or torch, with the weights of one layer
    and one sequence at a time in memory, at most."""
    layers = []
    for i in range(len(tokens)):
        one = slice(i, i + 1)
        those = None if counted is None else counted[one]
        found = sums_by_layer(model, tokens[one], count_masked, those)
        if not layers:
            layers = found
            continue
        for sums, more in zip(layers, found):
            for name in sums:
                sums[name] += more[name]
    return stacked([averages(sums) for sums in layers])


# ---------- how a depth task is solved ----------


def link_weights(maps, link):
    """The mean weight that each head's queries give to their links, of attention_maps() and a
    step of a task's links(), (B, T, T): one list of H numbers per layer."""
    linked = link.any(2)[:, None]  # (B, 1, T): queries that have a link
    found = []
    for weights in maps:
        given = (weights * link[:, None]).sum(3)  # (B, H, T)
        found.append(((given * linked).sum((0, 2)) / linked.sum()).tolist())
    return found


def mechanism(model, data, n=200):
    """How a model solves its depth task, on n sequences of the test split of a tasks.TaskData:

    accuracy  of the whole model
    without   (L, H), the accuracy with that head ablated()
    steps     {step of the task's links(): its `weight` (L, H), the mean weight that a head's
              queries give to their links, the `heads` that give half or more, (layer, head) from
              0, and the accuracy `without` all of these}

    ValueError for a task that does not say where its solution looks.
    """
    tokens, targets = (token_ids(part[:n]) for part in data.val)
    task, sizes = data.task, data.task_sizes
    links = task.links(tokens, targets, **sizes)
    maps = [weights.cpu() for weights in attention_maps(model, tokens)]
    layers = []
    for layer, H in enumerate(model.config.heads * model.config.n_loops):
        layers.append([(layer, head) for head in range(H)])

    def accuracy_without(heads):
        with ablated(model, heads):
            return task.accuracy(model, tokens, targets, **sizes)["accuracy"]

    found = dict(accuracy=accuracy_without([]), without=[], steps={})
    for heads in layers:
        found["without"].append([accuracy_without([head]) for head in heads])
    every = [head for heads in layers for head in heads]
    for step, link in links.items():
        weight = link_weights(maps, link)
        heads = [(layer, head) for layer, head in every if weight[layer][head] >= 0.5]
        without = accuracy_without(heads)
        found["steps"][step] = dict(weight=weight, heads=heads, without=without)
    return found
