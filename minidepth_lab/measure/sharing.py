"""A run as a model of the Hugging Face hub, by huggingface_hub's own mixin.

    model = SharedGPT.from_pretrained("runs/NAME")        a run's folder, or an id of the hub
    model.save_pretrained("folder")                       what push_to_hub() uploads
    model.push_to_hub("somebody/a-name")

A folder that is so written is a run's without what a resume needs: --sample, --score and load()
read it. Its README.md, the model card, says what the run's own files say.
"""

import json
import os
import shutil
import tempfile
from typing import Any

from huggingface_hub import ModelCard, ModelHubMixin, snapshot_download

from minidepth_lab.base import configs, console
from minidepth_lab.keep import checkpoints
from minidepth_lab.measure import results
from minidepth_lab.models import variants

FILES = ["config.json", "log.jsonl", "*.safetensors", "tokenizer/*"]


class SharedGPT(variants.GPT, ModelHubMixin, library_name="minidepth", tags=["minidepth"]):
    """The laboratory's GPT with from_pretrained(), save_pretrained() and push_to_hub(); `tokenizer`
    is that of its run, None for a task, `about` what its config.json says, `log` its log, `step`
    that of the log whose weights it has, None for the last."""

    def __init__(self, config: configs.ModelConfig) -> None:
        super().__init__(config)
        self.tokenizer: Any = None
        self.about: dict = {}
        self.log: list[dict] = []
        self.step: int | None = None

    @classmethod
    def _from_pretrained(cls, *, model_id: str, **how: Any) -> "SharedGPT":
        if os.path.isdir(model_id):
            return cls.of_run(model_id)
        names = ("revision", "cache_dir", "force_download", "local_files_only", "token")
        given = {name: how[name] for name in names if name in how}
        there = snapshot_download(model_id, allow_patterns=FILES, **given)
        with tempfile.TemporaryDirectory() as folder:  # the cache holds links, which a run has not
            shutil.copytree(there, folder, dirs_exist_ok=True)
            return cls.of_run(folder)

    @classmethod
    def of_run(cls, folder: console.Path) -> "SharedGPT":
        """The model of a run's folder, in eval mode; ValueError as checkpoints.load()."""
        loaded, tokenizer = checkpoints.load(folder)
        model = cls(loaded.config).eval()
        model.load_state_dict(loaded.state_dict())
        model.n_words, model.tokenizer = loaded.n_words, tokenizer
        model.about = checkpoints.read_about(folder)
        if os.path.exists(os.path.join(folder, "log.jsonl")):
            model.log = results.read_log(folder)
        file = checkpoints.weights_file(folder)
        model.step = checkpoints.said_of_weights(os.path.join(folder, file)).get("step")
        if file == checkpoints.BEST and model.log and model.step is None:
            model.step = model.log[-1 - checkpoints.since_best(model.log)]["step"]
        return model

    def _save_pretrained(self, save_directory: os.PathLike) -> None:
        about = self.about or dict(model=vars(self.config), train={})
        files = {}
        if self.tokenizer:
            folder = os.path.join(save_directory, "tokenizer")
            checkpoints.save_tokenizer(self.tokenizer, folder)
            files = checkpoints.folder_checksums(folder)
        # of a run that keeps its best weights these may be they: here they are all there is
        saved = json.loads(json.dumps(about["model"]))
        notes = {} if self.step is None else dict(step=self.step)
        checkpoints.write_weights(save_directory, self.state_dict(), saved, files, **notes)
        if self.log:
            checkpoints.write_log(save_directory, self.log)
        checkpoints.write_json(os.path.join(save_directory, "config.json"), about)

    def generate_model_card(self, *args: Any, **kwargs: Any) -> ModelCard:
        """The card of what the run's files say of it."""
        return ModelCard(card(self.config, self.about, self.log, self.step))


def card(config: configs.ModelConfig, about: dict, log: list[dict], step: int | None = None) -> str:
    """A model card, Markdown, of a run's own facts, as they were after a step of its log, or after
    the last."""
    n, train = variants.parameters(config)["total"], about.get("train", {})
    rows = [("layers", config.n_layers), ("loops", config.n_loops), ("width", config.d_model),
            ("feed-forward width", config.d_ff), ("heads", config.n_heads),
            ("tokens in a block", config.block_size), ("parameters", f"{n:,}")]  # fmt: skip
    names = ("data", "val_data", "tokenizer", "sizes", "steps", "batch_size", "grad_accum", "lr")
    rows += [
        (name, train[name]) for name in (*names, "seed") if train.get(name) not in (None, "", [])
    ]
    if log:
        if log[-1]["step"] < train.get("steps", 0):  # it was ended early
            done = ("steps", f"{log[-1]['step']} of {train['steps']}")
            rows = [done if name == "steps" else (name, value) for name, value in rows]
        told = next((record for record in log if record["step"] == step), log[-1])
        if told is not log[-1]:
            rows.append(("weights", f"of step {told['step']}"))
        rows.append(("validation loss", f"{told['val_loss']:.4f} nats per token"))
        if told.get("accuracy") is not None:
            share = f"{told['accuracy']:.3f}"
            if answers := told.get("answers"):
                low, high = results.wilson(sum(answers), len(answers))
                share += (
                    f" of {len(answers)} held-out problems, 95 % interval {low:.3f} to {high:.3f}"
                )
            rows.append(("accuracy", share))
        rows += [(name, f"{told[name]:.3f}") for name in ("guess", "shortcut") if told.get(name)]
    rows += [(name, about[name]) for name in ("device", "commit", "versions", "command")
             if about.get(name)]  # fmt: skip
    lines = [f"| {name} | {as_cell(value)} |" for name, value in rows]
    return "\n".join([
        "---", "library_name: minidepth", "tags:", "- minidepth", "---", "",
        f"# A Transformer of {console.plural(config.n_layers, 'layer')}", "",
        "Trained with minidepth, which asks whether depth helps a Transformer reason.", "",
        "| what | is |", "|---|---|", *lines, "", "```python",
        "from minidepth_lab.measure.sharing import SharedGPT", "",
        'model = SharedGPT.from_pretrained("this repository, or a folder")', "```", "",
    ])  # fmt: skip


def as_cell(value: Any) -> str:
    """A value of anybody's in a table's cell, as code: it moves neither a terminal nor the page."""
    if isinstance(value, dict):
        value = ", ".join(f"{name} {each}" for name, each in value.items())
    if isinstance(value, (list, tuple)):
        value = ", ".join(map(str, value))
    text = console.one_line(value, 300).replace("`", "'").replace("|", "\\|")
    return f"`{text}`"
