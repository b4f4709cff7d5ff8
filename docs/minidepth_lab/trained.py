"""What the command does with trained runs: lets them speak, scores, looks into and exports them.

python train.py --sample RUN_DIR --prompt "Sort c a, b c. Number 2 ?"
"""

import torch

import minidepth as md
from minidepth_lab import check, export, inspect, registry, score


def look(a, changes):
    """Do the one thing that the flags `a` ask of trained runs; `changes` are settings given."""
    if a["sample"]:
        temperature, most = a["temperature"] or 0.0, a["max_new_tokens"] or 256
        sample(a["sample"], a["prompt"], temperature, most, changes.get("seed", 0))
    elif a["mechanism"]:
        inspect.show_mechanism(a["mechanism"])
    elif a["score"]:
        sources = changes.get("data", ("embedded",))
        most = changes.get("max_rows", 0)
        md.check_fields(md.TrainConfig(max_rows=most))
        score.show_score(a["score"], sources, most)
    elif a["attention"]:
        out_dir = changes.get("out_dir", md.TrainConfig.out_dir)
        inspect.show_attention(a["attention"], out_dir)
    else:
        run_dir, out_dir = a["export_hf"]
        export.export_hf(run_dir, out_dir)
        print(f"wrote {out_dir}; load it with AutoModelForCausalLM.from_pretrained")


def sample(run_dir, prompt, temperature, max_new_tokens, seed):
    """Print what a model answers to the prompt, or how it goes on if trained on plain text."""
    if not prompt:
        raise ValueError("--sample needs --prompt TEXT")
    with md.blame("--prompt", "is not text"):
        prompt.encode()
    md.check_fields(md.TrainConfig(seed=seed))
    model, tokenizer = md.load(run_dir)
    if tokenizer is None:
        raise ValueError(f"--sample {run_dir} {registry.no_text(run_dir)}")
    sampling = dict(temperature=temperature, max_new_tokens=max_new_tokens, seed=seed)
    if tokenizer.chat_template:  # trained on conversations
        problem = dict(messages=[dict(role="user", content=prompt)])
        check_room(model.config, md.prompt_ids(tokenizer, problem["messages"]))
        said = md.answer_texts(model, tokenizer, [problem], **sampling)[0]
        print(check.visible(said.strip()))
        return
    ids = tokenizer(prompt, add_special_tokens=False).input_ids
    check_room(model.config, ids)
    tokens = torch.tensor([ids])
    tokens = md.generate(model, tokens, eos=tokenizer.eos_token_id, **sampling)
    print(check.visible(tokenizer.decode(tokens[0], skip_special_tokens=True)))


def check_room(config, ids):
    """ValueError for a prompt that leaves its model no place for a word more."""
    room = config.block_size - 1
    if config.position == "learned" and len(ids) > room:
        what = f"--prompt makes {len(ids)} tokens"
        raise ValueError(f"{what}; this model reads at most {room} and has one left to answer")
