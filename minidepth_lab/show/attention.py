"""The commands --attention and --mechanism: what inspect.py measures, in tables and figures."""

import os
from collections.abc import Sequence

from minidepth_lab.base import console
from minidepth_lab.keep import checkpoints, registry
from minidepth_lab.measure import inspect
from minidepth_lab.show import figures
from minidepth_lab.tasks.base.task_data import links_of


def base_name(folder: console.Path) -> str:
    """runs/deep/ → deep"""
    return os.path.basename(os.path.normpath(folder))


def layer_means(layers: list[list[float]]) -> list[float]:
    """[[of each head] of each layer] → [mean over heads of each layer]"""
    return [sum(heads) / len(heads) for heads in layers]


def print_profile(folder: console.Path, about: dict, profile: dict) -> None:
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


def show_attention(run_dirs: Sequence[console.Path], out_dir: console.Path) -> None:
    """Attention of runs on their own validation blocks, padding left out: a table and, in each
    folder, attention.json and attention.png; in out_dir the profiles of all, LLmini's beside."""
    profiles = {}
    for folder in run_dirs:
        about = inspect.measured(folder)
        checkpoints.write_json(os.path.join(folder, "attention.json"), about)
        path = os.path.join(folder, "attention.png")
        figures.draw_attention(about["valid"], path, base_name(folder))
        profile = {name: layer_means(layers) for name, layers in about["valid"].items()}
        profile["counted"] = layer_means(about["count_masked"]["sparsity"])
        print_profile(folder, about, profile)
        name = f"{base_name(folder)}, {about['block_size']} tokens"
        if name in profiles:  # runs of one name in two folders
            name = f"{folder}, {about['block_size']} tokens"
        profiles[name] = profile
    path = os.path.join(out_dir, "attention_profiles.png")
    figures.draw_profiles(profiles, path)
    print(f"wrote {path}; in each folder attention.json, attention.png")


def show_mechanism(run_dir: console.Path) -> None:
    """Print, draw and write how a run solves its depth task: mechanism.json, mechanism.png.
    ValueError for a run of text, or of a task that does not say where its solution looks."""
    m, t = checkpoints.read_config(run_dir)
    if registry.task(t.data[0]) is None:
        raise ValueError(f"--mechanism {run_dir} was not trained on a depth task")
    model, _ = checkpoints.load(run_dir)
    data = registry.data_of(t, m.block_size)
    about = inspect.mechanism(model, data)
    n_test = len(data.val[0])
    read = f"the first {min(inspect.N_LOOKED_AT, n_test):,} of {n_test:,} test sequences"
    print(f"accuracy {about['accuracy']:.3f} on {read}")
    for step, part in about["steps"].items():
        named = [f"{head + 1} of layer {layer + 1}" for layer, head in part["heads"]]
        heads = ", ".join(named) or "none"
        print(f"{step}: heads {heads}; accuracy without them {part['without']:.3f}")
    checkpoints.write_json(os.path.join(run_dir, "mechanism.json"), about)
    tokens, targets = inspect.first_test(data)
    maps = inspect.attention_maps(model, tokens)
    links = links_of(data, tokens, targets)
    figures.draw_mechanism(maps, links, about, os.path.join(run_dir, "mechanism.png"))
    print(f"wrote {run_dir}: mechanism.png, mechanism.json")
