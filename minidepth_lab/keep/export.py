"""A trained run, for others.

    python train.py --export_hf RUN_DIR OUT_DIR

writes it as GPT-2: the folder loads with AutoModelForCausalLM.from_pretrained(OUT_DIR), without
code of ours. The way back, for a GPT-2 with the same activation, whoever wrote it:

    python train.py --init_from OUT_DIR

    python -m minidepth_lab.keep.export runs/laptop_n_layers-12_seed-0 docs/results/ask/12-layers

writes it small enough for a page, its weights in half precision, as a folder of a run.
"""

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import tempfile
from typing import TYPE_CHECKING, Any

import torch

import minidepth as md
from minidepth_lab.base import configs, console
from minidepth_lab.keep import checkpoints
from minidepth_lab.models import variants
from minidepth_lab.rows import tokenizing

if TYPE_CHECKING:
    from transformers import GPT2LMHeadModel

# ---------- to transformers ----------

NAMES = {  # parts of our weights' names, and what GPT-2 calls them
    "token_embedding": "wte",
    "position_embedding": "wpe",
    "blocks": "h",
    "norm": "ln_f",
    "norm1": "ln_1",
    "norm2": "ln_2",
    "qkv": "c_attn",
    "up": "c_fc",
    "out": "c_proj",
}


def check_gpt2(c: configs.ModelConfig) -> None:
    """Raise ValueError for the first setting of a ModelConfig that GPT-2 cannot express."""
    limits = [
        ("n_heads", len(set(c.heads)) == 1, "one number for all layers"),
        ("position", c.position == "learned", "learned positions"),
        ("n_loops", c.n_loops == 1, "1: every layer has weights of its own"),
        ("loop_start", c.loop_start == "state", "a stream that no loop changes, which is state"),
        ("attn_scale", c.attn_scale is None, "1/sqrt(head size), which is attn_scale unset"),
        ("attn_window", not c.attn_window, "layers that look at all tokens, which is 0"),
        ("d_ff", c.d_ff > 0, "a feed-forward part, d_ff at least 1"),
    ]
    for name, fits, has in limits:
        if not fits:
            other = "minidepth_lab.measure.sharing writes any run for the hub"
            raise ValueError(
                f"GPT-2 cannot express {name} {getattr(c, name)}; it has {has}; {other}"
            )


def gpt2_name(key: str) -> str:
    """blocks.0.attn.qkv.weight → transformer.h.0.attn.c_attn.weight"""
    parts = [NAMES.get(part, part) for part in key.split(".")]
    return ".".join(["transformer", *parts])


def to_gpt2(model: variants.GPT) -> "GPT2LMHeadModel":
    """The model as a GPT2LMHeadModel of `transformers`, whose biases are zero where it has none;
    ValueError if it has what GPT-2 has not: several head counts, loops, other positions or scales,
    no MLP."""
    from transformers import GPT2Config, GPT2LMHeadModel

    c = model.config
    check_gpt2(c)
    config = GPT2Config(
        vocab_size=c.vocab_size,
        n_positions=c.block_size,
        n_embd=c.d_model,
        n_inner=c.d_ff,
        n_layer=c.n_layers,
        n_head=c.heads[0],
        activation_function="gelu",
        layer_norm_epsilon=1e-5,
        resid_pdrop=c.dropout_of("residual"),
        embd_pdrop=c.dropout_of("embedding"),
        attn_pdrop=c.dropout,
        tie_word_embeddings=c.tie_weights,
        bos_token_id=None,
        eos_token_id=None,
    )
    gpt2 = GPT2LMHeadModel(config)
    # their biases stay at zero where we have none
    weights = {name: torch.zeros_like(value) for name, value in gpt2.state_dict().items()}
    for key, value in model.state_dict().items():
        if key == "head.weight":  # named below, tied or not
            continue
        is_linear = ".attn." in key or ".mlp." in key  # stored transposed there
        weights[gpt2_name(key)] = value.T if is_linear and value.dim() == 2 else value
    weights["lm_head.weight"] = model.head_weight
    gpt2.load_state_dict(weights)
    return gpt2.eval()


def set_ends(gpt2: "GPT2LMHeadModel", tokenizer: Any) -> None:
    """Tell a GPT-2 and its tokenizer, both changed, what programs around them ask: which word ends
    an answer, which fills up a batch, and how many words there is room for."""
    end_of_text, end = tokenizer.eos_token, md.turn_end(tokenizer)
    if not tokenizer.chat_template:  # trained on plain text
        end = end_of_text
    number = tokenizer.convert_tokens_to_ids
    tokenizer.eos_token, tokenizer.pad_token = end, end_of_text
    tokenizer.model_max_length = gpt2.config.n_positions
    # in the generation's own settings too: those are what generate() goes by
    gpt2.config.eos_token_id = number(end)
    gpt2.generation_config.eos_token_id = sorted({number(end), number(end_of_text)})
    for config in (gpt2.config, gpt2.generation_config):
        config.pad_token_id = number(end_of_text)
    gpt2.generation_config.max_length = gpt2.config.n_positions


def ask_as_trained(tokenizer: Any) -> None:
    """Let a tokenizer, which is changed, give a text and a conversation the tokens that training
    gave them, in other programs, too: nothing before or after them. ValueError if it cannot."""
    for name in ("add_bos_token", "add_eos_token"):
        if getattr(tokenizer, name, False):
            setattr(tokenizer, name, False)
    with contextlib.suppress(AttributeError):  # one that is written in Python has none
        tokenizer.backend_tokenizer.post_processor = None
    # a batch of prompts goes on where each of them ends; what is kept is what it was made with
    tokenizer.padding_side = tokenizer.init_kwargs["padding_side"] = "left"
    text = "One day, 2 + 3 ?"
    messages = [dict(role="user", content=text)]
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save_pretrained(folder)
        there = tokenizing.load_tokenizer(folder)
    pairs = [(next(md.encode([[(text, True)]], tokenizer))[0], there(text).input_ids)]
    if tokenizer.chat_template:
        how = dict(tokenize=False, add_generation_prompt=True)
        system = tokenizing.system_turn(tokenizer)
        turns = [dict(role="system", content=system)] * bool(system) + messages
        asked = there(there.apply_chat_template(turns, **how), add_special_tokens=False).input_ids
        pairs.append((md.prompt_ids(tokenizer, turns), asked))
    for ours, its in pairs:
        if ours != its:
            first, other = (tokenizer.convert_ids_to_tokens(ids[:4]) for ids in (ours, its))
            raise ValueError(f"its tokenizer would ask with {other}, where training had {first}")


def is_taken(place: console.Path) -> bool:
    """Whether there is something at a place that is to be written, but for an empty folder."""
    empty = os.path.isdir(place) and not os.listdir(place)
    return os.path.lexists(place) and not empty


def export_hf(run_dir: console.Path, out_dir: console.Path) -> None:
    """Write a folder that `transformers` loads as GPT-2, without our code; with its tokenizer,
    where the run has one. ValueError for a folder that is not empty, or what GPT-2 has not."""
    model, tokenizer = checkpoints.load(run_dir)
    if is_taken(out_dir):
        raise ValueError(f"{out_dir} is no empty folder; choose another one for the export")
    gpt2, c = to_gpt2(model), model.config
    some = torch.arange(min(c.vocab_size, c.block_size, 64))[None]
    with torch.no_grad():  # a setting of one's own may have been forgotten in check_gpt2()
        torch.testing.assert_close(gpt2(some).logits, model(some), rtol=1e-3, atol=1e-3)
    if tokenizer is not None:  # a depth task has none
        with console.one_line_errors(run_dir, "cannot be exported"):
            ask_as_trained(tokenizer)
        set_ends(gpt2, tokenizer)
        checkpoints.save_tokenizer(tokenizer, out_dir)
    gpt2.save_pretrained(out_dir)


# ---------- from transformers ----------


def has_biases(folder: console.Path) -> bool:
    """Whether a GPT-2's linear maps add anything of their own; ours have such vectors only then."""
    from safetensors import safe_open

    for name in sorted(os.listdir(folder)):
        if name.endswith(".safetensors"):
            with safe_open(console.regular_file(os.path.join(folder, name)), "pt") as f:
                for key in f.keys():
                    linear = key.endswith(".bias") and (".attn." in key or ".mlp." in key)
                    if linear and f.get_tensor(key).any():
                        return True
    return False


def gpt2_config(folder: console.Path) -> configs.ModelConfig:
    """The ModelConfig of a GPT-2's folder; ValueError for what a ModelConfig cannot express."""
    path = os.path.join(folder, "config.json")
    with console.one_line_errors(path, "is no configuration of a GPT-2"):
        with open(console.regular_file(path), encoding="utf-8") as f:
            saved = json.load(f)
        ours = dict(
            model_type="gpt2",
            activation_function="gelu",
            layer_norm_epsilon=1e-5,
            scale_attn_weights=True,
            scale_attn_by_inverse_layer_idx=False,
        )
        defaults, drops = dict(activation_function="gelu_new"), []
        for name in ("attn_pdrop", "resid_pdrop", "embd_pdrop"):
            drops.append(float(saved.get(name, 0.1)))
        for name, value in ours.items():
            its = saved.get(name, defaults.get(name, value))
            if its != value:
                raise ValueError(f"{name} is {its!r:.40}; minidepth's models have {value!r}")
        return configs.ModelConfig(
            vocab_size=saved["vocab_size"],
            block_size=saved.get("n_positions", 1024),
            n_layers=saved["n_layer"],
            n_heads=saved["n_head"],
            d_model=saved["n_embd"],
            d_ff=saved.get("n_inner") or 4 * saved["n_embd"],
            dropout=drops[0],
            residual_dropout=drops[1] if drops[1] != drops[0] else None,
            embedding_dropout=drops[2] if drops[2] != drops[0] else None,
            bias=has_biases(folder),
            tie_weights=saved.get("tie_word_embeddings", True),
        ).validate()


def from_gpt2(folder: console.Path) -> dict[str, torch.Tensor]:
    """{name: tensor}, as our model has them, of a GPT-2's folder, from its .safetensors alone: the
    way back from to_gpt2(). ValueError where it cannot be read, or is not finite."""
    from transformers import GPT2LMHeadModel

    model = variants.GPT(gpt2_config(folder))
    with console.one_line_errors(folder, "cannot be read as GPT-2"):
        gpt2 = GPT2LMHeadModel.from_pretrained(folder, local_files_only=True, use_safetensors=True)
    theirs, weights = gpt2.state_dict(), {}
    for key in model.state_dict():
        is_linear = ".attn." in key or ".mlp." in key
        name = "lm_head.weight" if key == "head.weight" else gpt2_name(key)
        weight = theirs[name]
        weights[key] = (weight.T if is_linear and weight.dim() == 2 else weight).clone()
    if not checkpoints.all_finite(weights):
        raise ValueError(f"{folder} holds infinite or NaN weights")
    return weights


# ---------- small enough for a page ----------


def halve(run_dir: console.Path, out_dir: console.Path) -> None:
    """Write the run folder `run_dir` to `out_dir`, its weights in half precision, so that
    minidepth.load() and a web page read the same files. What a resume needs is left out."""
    run_dir, out_dir = pathlib.Path(run_dir), pathlib.Path(out_dir)
    if is_taken(out_dir):
        raise ValueError(f"{out_dir} is no empty folder; give another name")
    model, _ = checkpoints.load(run_dir)
    about = json.loads((run_dir / "config.json").read_text(encoding="utf-8"))
    # nothing of the machine that trained it
    about["train"] |= dict(out_dir=configs.TrainConfig.out_dir)
    weights = {name: weight.to(torch.float16) for name, weight in model.state_dict().items()}
    if not checkpoints.all_finite(weights):
        raise ValueError(f"{run_dir} has weights that half precision, up to 65,504, cannot hold")
    if not (run_dir / "tokenizer").is_dir():
        raise ValueError(f"{run_dir} has no tokenizer, as a run on a depth task; a page needs one")
    shutil.copytree(run_dir / "tokenizer", out_dir / "tokenizer", dirs_exist_ok=True)
    files = checkpoints.folder_checksums(out_dir / "tokenizer")
    checkpoints.write_weights(out_dir, weights, about["model"], files)
    text = json.dumps(about, indent=1) + "\n"
    checkpoints.write(out_dir / "config.json", lambda f: f.write(text.encode()))
    shutil.copy(run_dir / "log.jsonl", out_dir)


def main(words: list[str] | None = None) -> None:
    """The command, of `words` or of the command line."""
    parser = argparse.ArgumentParser(description="A run small enough for a page.")
    parser.add_argument("run", help="the run's folder")
    parser.add_argument("folder", help="the folder to write")
    args = parser.parse_args(words)
    try:
        halve(args.run, args.folder)
    except (ValueError, OSError) as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
