"""The commands that look into trained runs, and their figures:

python train.py --attention RUN_DIR RUN_DIR     entropy and sparsity of every head
python train.py --mechanism RUN_DIR             which heads do the steps of a depth task
"""

import json
import os

import minidepth as md
from minidepth_lab import attention as measures
from minidepth_lab import figures, find, results

# ---------- --attention ----------


def base_name(folder):
    """runs/deep/ → deep"""
    return os.path.basename(os.path.normpath(folder))


def write_json(path, about):
    text = json.dumps(about, indent=1).encode()
    md.write(path, lambda f: f.write(text))


def as_lists(stats):
    """model_stats() as plain lists, for JSON and figures."""
    return {name: [layer.tolist() for layer in layers] for name, layers in stats.items()}


def measured(folder):
    """model_stats() of a run on its own validation blocks, padding left out, as lists: `valid`
    over the keys in sight, `count_masked` as LLmini's tables; and on how much text."""
    m, t = md.read_config(folder)
    model, tokenizer = md.load(folder)
    data = find.load_data(t, m.block_size, tokenizer)
    tokens, targets = (part[: t.eval_blocks] for part in data.val)
    there = md.filled(tokens, targets)
    model.to(md.pick_device("auto"))
    return dict(
        valid=as_lists(measures.model_stats(model, tokens, False, there)),
        count_masked=as_lists(measures.model_stats(model, tokens, True, there)),
        queries=int(there.sum()),
        blocks=tokens.shape[0],
        block_size=tokens.shape[1],
    )


def layer_means(layers):
    """[[of each head] of each layer] → [mean over heads of each layer]"""
    return [sum(heads) / len(heads) for heads in layers]


def print_profile(folder, about, profile):
    """The table of one run, means over heads."""
    print(
        f"{folder}: {about['queries']:,} queries in {about['blocks']} validation blocks of "
        f"{about['block_size']}, means over heads"
    )
    print(
        "| layer | entropy (nats) | normalised | effective keys | sparsity "
        "| relative sparsity | sparsity, mask counted |"
    )
    print("|---|---|---|---|---|---|---|")
    for layer, row in enumerate(zip(*profile.values()), 1):
        cells = " | ".join(f"{value:.3f}" for value in row)
        print(f"| {layer} | {cells} |")


def attention(run_dirs, out_dir):
    """Attention of runs on their own validation blocks, padding left out: a table and, in each
    folder, attention.json and attention.png; in out_dir the profiles of all, LLmini's beside."""
    profiles = {}
    for folder in run_dirs:
        about = measured(folder)
        write_json(os.path.join(folder, "attention.json"), about)
        path = os.path.join(folder, "attention.png")
        draw_attention(about["valid"], path, base_name(folder))
        profile = {name: layer_means(layers) for name, layers in about["valid"].items()}
        profile["counted"] = layer_means(about["count_masked"]["sparsity"])
        print_profile(folder, about, profile)
        name = f"{base_name(folder)}, {about['block_size']} tokens"
        if name in profiles:  # runs of one name in two folders
            name = f"{folder}, {about['block_size']} tokens"
        profiles[name] = profile
    path = os.path.join(out_dir, "attention_profiles.png")
    draw_profiles(profiles, path)
    print(f"wrote {path}; in each folder attention.json, attention.png")


def draw_attention(stats, path, title):
    """Heat maps of entropy and sparsity, layer by head; head counts may differ."""
    n_layers = len(stats["entropy"])
    most_heads = max(map(len, stats["entropy"]))
    size = (5 + 0.4 * most_heads, 2 + 0.25 * n_layers)
    units = dict(entropy="nats", sparsity="share below 0.001")
    with figures.drawing(path, 1, 2, size) as (figure, drawn):
        for axes, (name, unit) in zip(drawn, units.items()):
            image = figures.heat_map(axes, stats[name])
            figure.colorbar(image, ax=axes, label=f"{name} ({unit})")
            axes.set(xlabel="head", ylabel="layer")
        figure.suptitle(title, fontsize="medium")


MASKED = 255 / 512  # share of masked entries in the published maps of 256 x 256


def published_profiles():
    """Entropy and sparsity by layer of LLmini's A, B and C. What was published counts the masked
    entries, which are all 0; without them it is the share of keys in sight."""
    profiles = {}
    table = results.published("llmini_attention")
    for model in "abc":
        rows = [row for row in table if row[f"entropy_{model}"] != ""]
        counted = [row[f"sparsity_{model}"] for row in rows]
        profiles[f"LLmini {model.upper()}, published, 256 tokens"] = dict(
            entropy=[row[f"entropy_{model}"] for row in rows],
            counted=counted,
            sparsity=[(share - MASKED) / (1 - MASKED) for share in counted],
        )
    return profiles


def draw_profiles(profiles, path):
    """Entropy and sparsity by layer of several runs, beside LLmini's A, B and C."""
    curves = [(name, "-o", profile) for name, profile in profiles.items()]
    curves += [(name, "--s", profile) for name, profile in published_profiles().items()]
    panels = dict(
        entropy="entropy (nats)",
        counted="share below 0.001, masked entries counted",
        sparsity="share below 0.001, of keys in sight",
    )
    with figures.drawing(path, 1, 3, (13, 4.5)) as (figure, drawn):
        for axes, (key, label) in zip(drawn, panels.items()):
            for name, style, profile in curves:
                layers = range(1, len(profile[key]) + 1)
                axes.plot(layers, profile[key], style, label=name, markersize=4)
            axes.set(xlabel="layer", ylabel=label)
            axes.set_ylim(bottom=0)
            axes.xaxis.get_major_locator().set_params(integer=True)
            axes.grid(alpha=0.3)
        handles, labels = drawn[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize="small")


# ---------- --mechanism ----------


def show_mechanism(run_dir):
    """Print, draw and write how a run solves its depth task: mechanism.json, mechanism.png.
    ValueError for a run of text, or of a task that does not say where its solution looks."""
    m, t = md.read_config(run_dir)
    if find.task(t.data[0]) is None:
        raise ValueError(f"--mechanism {run_dir} was not trained on a depth task")
    model, _ = md.load(run_dir)
    data = find.load_data(t, m.block_size)
    found = measures.mechanism(model, data)
    print(f"accuracy {found['accuracy']:.3f}")
    for step, part in found["steps"].items():
        named = [f"{head + 1} of layer {layer + 1}" for layer, head in part["heads"]]
        heads = ", ".join(named) or "none"
        print(f"{step}: heads {heads}; accuracy without them {part['without']:.3f}")
    write_json(os.path.join(run_dir, "mechanism.json"), found)
    draw_mechanism(model, data, found, os.path.join(run_dir, "mechanism.png"))
    print(f"wrote {run_dir}: mechanism.png, mechanism.json")


def draw_mechanism(model, data, found, path):
    """For each step the weights of the head that does it most, on one test sequence, with the
    places it should look at circled; and the accuracy without each head."""
    tokens, targets = (measures.token_ids(part[:1]) for part in data.val)
    maps = measures.attention_maps(model, tokens)
    links = data.task.links(tokens, targets, **data.task_sizes)
    size = (4 * len(links) + 3, 4)
    with figures.drawing(path, 1, len(links) + 1, size) as (figure, drawn):
        for axes, (step, link) in zip(drawn, links.items()):
            draw_step(axes, step, link[0], found["steps"][step]["weight"], maps)
        image = figures.heat_map(drawn[-1], found["without"], ".2f", vmax=1)
        title = f"accuracy without a head\n(with all: {found['accuracy']:.2f})"
        drawn[-1].set(title=title, xlabel="head", ylabel="layer")
        figure.colorbar(image, ax=drawn[-1], shrink=0.6)


def draw_step(axes, step, link, weight, maps):
    """The map (T, T) of the head whose `weight` is the most, and the places that link (T, T)
    says circled."""
    heads = []
    for layer, row in enumerate(weight):
        heads += [(value, layer, head) for head, value in enumerate(row)]
    most, layer, head = max(heads)
    axes.imshow(maps[layer][0, head].cpu().numpy(), cmap=figures.ground(), vmin=0, vmax=1)
    query, key = link.nonzero().T.numpy()
    axes.plot(key, query, "o", markerfacecolor="none", color="C3", alpha=0.7)
    title = f"{step}: layer {layer + 1}, head {head + 1}\nmean weight on the circles {most:.2f}"
    axes.set(title=title, xlabel="key (place in the sequence)", ylabel="query")
