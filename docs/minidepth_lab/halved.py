"""A trained run, small enough for a page: its weights in half precision, beside what says how they
were made.

    python docs/minidepth_lab/halved.py RUN_DIR docs/results/ask/weights/12-layers

The new folder is that of a run (config.json, log.jsonl, model.safetensors, tokenizer/), so that
minidepth.load() and a web page read the same files. What a resume needs is left out.
"""

import json
import pathlib
import shutil
import sys

import torch

import minidepth as md


def halve(run_dir, out_dir):
    """Write the run folder `run_dir` to `out_dir`, its weights in half precision."""
    from safetensors.torch import save

    run_dir, out_dir = pathlib.Path(run_dir), pathlib.Path(out_dir)
    model, _ = md.load(run_dir)
    config, train = md.read_config(run_dir)
    about = json.loads((run_dir / "config.json").read_text(encoding="utf-8"))
    # nothing of the machine that trained it; settings() leaves both out of the checksum
    about["train"] |= dict(out_dir=md.TrainConfig.out_dir)
    weights = {name: weight.to(torch.float16) for name, weight in model.state_dict().items()}
    if not md.all_finite(weights):
        raise ValueError(f"{run_dir} has weights that half precision, up to 65,504, cannot hold")
    shutil.copytree(run_dir / "tokenizer", out_dir / "tokenizer", dirs_exist_ok=True)
    checks = dict(
        crc32=md.checksum(weights, md.settings(config, train)),
        tokenizer=md.folder_checksum(out_dir / "tokenizer"),
    )
    md.write_file(out_dir / "model.safetensors", lambda f: f.write(save(weights, checks)))
    text = json.dumps(about, indent=1) + "\n"
    md.write_file(out_dir / "config.json", lambda f: f.write(text.encode()))
    shutil.copy(run_dir / "log.jsonl", out_dir)


if __name__ == "__main__":
    halve(*sys.argv[1:])
