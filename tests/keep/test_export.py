"""The export: what `transformers` makes of it, and what GPT-2 cannot express."""

import copy
import json
import os
import pathlib

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, pipeline

import minidepth as md
from minidepth_lab.keep import checkpoints, export, registry, running
from minidepth_lab.measure import sampling


@pytest.fixture(scope="module")
def exported(finished, tmp_path_factory):
    out = str(tmp_path_factory.mktemp("exported") / "gpt2")
    export.export_hf(finished, out)
    return out, AutoModelForCausalLM.from_pretrained(out), AutoTokenizer.from_pretrained(out)


def test_transformers_loads_the_export_and_says_the_same(exported, finished, data):
    out, model, tokenizer = exported
    assert json.loads(pathlib.Path(out, "config.json").read_text())["model_type"] == "gpt2"
    ours, _ = checkpoints.load(finished)
    x = torch.tensor([md.prompt_ids(tokenizer, data.problems[0]["messages"])])
    torch.testing.assert_close(model(x).logits, ours(x), atol=1e-4, rtol=0)
    assert tokenizer.get_vocab() == data.tokenizer.get_vocab()
    theirs = model.generate(x, max_new_tokens=10, do_sample=False, pad_token_id=0)
    assert torch.equal(sampling.generate(ours, x, 10, temperature=0), theirs)
    with pytest.raises(ValueError, match="is no empty folder"):
        export.export_hf(finished, out)
    text = pipeline("text-generation", model=out, tokenizer=out)("Go", max_new_tokens=2)
    assert text[0]["generated_text"].startswith("Go")


def test_a_batch_of_an_export_goes_on_as_its_prompts_alone(exported):
    _, model, tokenizer = exported
    prompts, how = ["Go", "Follow a b, b c, c a. Go 2"], dict(max_new_tokens=5, do_sample=False)
    many = model.generate(**tokenizer(prompts, padding=True, return_tensors="pt"), **how)
    for prompt, row in zip(prompts, many):
        alone = model.generate(**tokenizer(prompt, return_tensors="pt"), **how)
        assert torch.equal(alone[0], row[-alone.size(1) :])


@pytest.mark.parametrize("changes, words", [
    (dict(n_heads=(2, 4, 4)), "n_heads"),
    (dict(d_ff=0), "d_ff 0; it has a feed-forward part, d_ff at least 1"),
    (dict(position="rotary"), "position rotary; it has learned positions"),
    (dict(n_loops=2), "n_loops 2"), (dict(loop_start="recall"), "loop_start recall"),
    (dict(attn_scale=1.0), "attn_scale 1.0"), (dict(attn_window=4), "attn_window 4"),
])  # fmt: skip
def test_what_gpt2_cannot_express_is_refused(model, changes, words):
    with pytest.raises(ValueError, match=f"GPT-2 cannot express {words}"):
        export.to_gpt2(model(**changes))
    theirs = export.to_gpt2(model(n_heads=(4, 4, 4), dropout=0.3)).config
    assert theirs.resid_pdrop == theirs.embd_pdrop == theirs.attn_pdrop == 0.3
    rates = dict(dropout=0.1, residual_dropout=0.3, embedding_dropout=0.0)
    theirs = export.to_gpt2(model(n_heads=4, d_ff=1, **rates)).config
    assert (theirs.attn_pdrop, theirs.resid_pdrop, theirs.embd_pdrop) == (0.1, 0.3, 0.0)


def test_a_depth_task_is_exported_without_a_tokenizer(tmp_path):
    small = dict(n_layers=1, d_ff=32, steps=1, warmup_steps=0, batch_size=4, eval_blocks=3)
    m, t = registry.configs("tasks", data="icqa", out_dir=str(tmp_path / "runs"), **small)
    run, out = running.train(m, t, registry.data_of(t, m.block_size)), str(tmp_path / "out")
    export.export_hf(run.dir, out)
    tokens = torch.randint(16, (3, 24))
    theirs = AutoModelForCausalLM.from_pretrained(out)(tokens).logits
    torch.testing.assert_close(theirs, run.model(tokens), atol=1e-4, rtol=0)
    assert not [name for name in os.listdir(out) if "token" in name]


def test_a_model_that_gpt2_cannot_be_is_not_exported(finished, tmp_path, monkeypatch):
    """Somebody's own feed-forward part, say, which check_gpt2() does not know of."""
    monkeypatch.setattr("torch.nn.GELU.forward", lambda self, x: x.relu() + 1)
    out = tmp_path / "export"
    with pytest.raises(AssertionError, match="not close"):
        export.export_hf(finished, str(out))
    assert not out.exists()


@pytest.mark.parametrize("of_chats", [True, False])
def test_an_export_asks_as_training_did_or_refuses(data, tmp_path, of_chats):
    """With a tokenizer that puts a begin before each text, as Llama's does."""
    from tokenizers import processors

    tokenizer = copy.deepcopy(data.tokenizer)
    tokenizer.chat_template = tokenizer.chat_template if of_chats else None
    begin = tokenizer.eos_token, tokenizer.eos_token_id
    added = processors.TemplateProcessing(f"{begin[0]} $A", special_tokens=[begin])
    tokenizer.backend_tokenizer.post_processor = added
    assert tokenizer("One day").input_ids[0] == begin[1]
    export.ask_as_trained(tokenizer)
    assert tokenizer("One day").input_ids[0] != begin[1] and tokenizer.padding_side == "left"
    tokenizer.chat_template = "Hi"  # which asks otherwise
    with pytest.raises(ValueError, match="its tokenizer would ask with .* where training had"):
        export.ask_as_trained(tokenizer)
