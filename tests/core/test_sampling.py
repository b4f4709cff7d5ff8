"""Sampling with and without the cache; answers, of which only exact ones are right."""

import math

import pytest
import torch

import minidepth as md
from minidepth_lab.base import configs
from minidepth_lab.base.data import Data
from minidepth_lab.keep import running
from minidepth_lab.measure import sampling
from minidepth_lab.rows import tokenizing


def prompt(model, B=3, T=5):
    words = model.config.vocab_size
    return torch.randint(words, (B, T), generator=torch.Generator().manual_seed(2))


VARIANTS = [
    dict(),
    dict(position="rotary", n_heads=(2, 4, 8)),
    dict(position="none", d_ff=0),
    dict(n_loops=2, attn_scale=0.5),
    dict(attn_window=3),
]


def uncached(gpt, tokens, n, temperature, top_k, seed):
    """Every token read anew for every word."""
    draw = torch.Generator().manual_seed(seed)
    for _ in range(n):
        logits = gpt(tokens)[:, -1]
        if temperature == 0:
            new = logits.argmax(-1, keepdim=True)
        else:
            kept = torch.full_like(logits, -math.inf)
            top = logits.topk(top_k)
            kept.scatter_(1, top.indices, top.values / temperature)
            new = torch.multinomial(kept.softmax(-1), 1, generator=draw)
        tokens = torch.cat((tokens, new), 1)
    return tokens


@pytest.mark.parametrize("changes", VARIANTS)
@pytest.mark.parametrize("temperature, top_k", [(0, 20), (0.8, 20), (0.8, 1000)])
def test_cached_equals_uncached_token_for_token(model, changes, temperature, top_k):
    gpt = model(**changes)
    x = prompt(gpt)
    n = 19 if gpt.config.position == "learned" else 40  # the block is 24, of which 5 are taken
    expected = uncached(gpt, x, n, temperature, min(top_k, 61), seed=4)
    assert torch.equal(sampling.generate(gpt, x, 40, temperature, top_k=top_k, seed=4), expected)


def test_samples_follow_the_softmax(model):
    gpt = model()
    x = prompt(gpt, 1).expand(20_000, -1)
    drawn = sampling.generate(gpt, x, 1, temperature=2.0, seed=0)[:, -1]
    expected = (gpt(x[:1])[0, -1] / 2).softmax(-1)
    assert (drawn.bincount(minlength=61) / 20_000 - expected).abs().max() < 0.012
    top = sampling.generate(gpt, x[:500], 1, top_k=3, seed=0)[:, -1].unique()
    assert set(top.tolist()) == set(gpt(x[:1])[0, -1].topk(3).indices.tolist())
    alike = sampling.sampler(top_k=2, seed=0)(torch.zeros(100, 9))
    assert len(alike.unique()) == 2  # of words that are alike no more


def test_ids_without_a_word_are_never_drawn(model):
    gpt = model()
    gpt.n_words = 10
    out = sampling.generate(gpt, prompt(gpt, 50), 19, temperature=5.0, seed=0)
    assert out[:, 5:].max() < 10


def test_the_seed_decides_and_global_state_does_not(model):
    gpt = model()
    x = prompt(gpt)
    torch.manual_seed(1)
    a = sampling.generate(gpt, x, 10, seed=3)
    state = torch.get_rng_state()
    assert torch.equal(sampling.generate(gpt, x, 10, seed=3), a)
    assert torch.equal(torch.get_rng_state(), state)
    assert not torch.equal(sampling.generate(gpt, x, 10, seed=5), a)
    assert not torch.equal(sampling.generate(gpt, x, 10), sampling.generate(gpt, x, 10))


def test_eos_ends_rows_one_by_one(model):
    gpt = model()
    x = prompt(gpt)
    free = sampling.generate(gpt, x, 15, temperature=0)
    eos = free[0, 7].item()
    out = sampling.generate(gpt, x, 15, temperature=0, eos=eos)
    for row, plain in zip(out, free):
        at = (plain[5:] == eos).nonzero()
        end = 5 + at[0].item() + 1 if len(at) else 20
        assert torch.equal(row[:end], plain[:end][: len(row)]) and (row[end:] == eos).all()
    one = sampling.generate(gpt, x[:1], 15, temperature=0, eos=eos)
    assert one.size(1) == 6 + (free[0, 5:] == eos).nonzero()[0].item()


def test_what_cannot_be_sampled_says_why(model):
    gpt = model(dropout=0.9)
    for bad in (dict(temperature=-1), dict(temperature=math.nan), dict(top_k=0)):
        with pytest.raises(ValueError, match="temperature"):
            sampling.generate(gpt, prompt(gpt), 3, **bad)
    with pytest.raises(ValueError, match="eval"):
        md.generate(gpt.train(), prompt(gpt), 5)


# --- answers


@pytest.fixture(scope="module")
def expert(data, tmp_path_factory):
    """A model that knows twelve held-out problems by heart, made by training on nothing else."""
    parts = []
    for p in data.problems[:12]:
        says = dict(role="assistant", content=p["solution"])
        row = dict(messages=[*p["messages"], says])
        parts.append(tokenizing.segments(row, data.tokenizer))
    encoded = md.encode(parts, data.tokenizer, "assistant")
    part = md.blocks(encoded, 80, "pad")
    known = Data(part, part, data.tokenizer, data.problems[:12], data.facts, data.n_words)
    m, t = configs.make(
        "laptop", n_layers=1, d_model=64, block_size=80, batch_size=12, grad_accum=1, steps=60,
        lr=0.01, out_dir=str(tmp_path_factory.mktemp("expert")), eval_every=60, eval_problems=12,
    )  # fmt: skip
    return running.train(m, t, data=known), known


def test_accuracy_is_the_share_answered_exactly(expert):
    run, known = expert
    assert run.log[-1]["accuracy"] == 1.0
    wrong = [dict(p, answer=f"{p['answer']}0") for p in known.problems[:3]]
    asked = [*wrong, *known.problems[3:]]
    assert md.accuracy(run.model, run.tokenizer, asked)["accuracy"] == 0.75


def test_problems_are_answered_some_at_a_time(expert, monkeypatch):
    """Those of about the same length together, each with its own text, which is as long as was
    asked for, whatever the length of the others."""
    run, known = expert
    problems, tokenizer = known.problems, run.tokenizer
    asked, generate = [], md.generate

    def noted(model, tokens, *args, **kwargs):
        asked.append(tuple(tokens.shape))
        return generate(model, tokens, *args, **kwargs)

    monkeypatch.setattr(md, "generate", noted)
    texts = md.answer_texts(run.model, tokenizer, problems, at_once=5)
    assert texts == [p["solution"] for p in problems]
    lengths = sorted(len(md.prompt_ids(tokenizer, p["messages"])) for p in problems)
    assert asked == [(5, lengths[4]), (5, lengths[9]), (2, lengths[11])]
    assert lengths[4] > lengths[0]
    for most in (1, 3):
        texts = sampling.answer_texts(run.model, tokenizer, problems, max_new_tokens=most)
        solutions = [tokenizer(p["solution"], add_special_tokens=False).input_ids for p in problems]
        assert texts == [tokenizer.decode(ids[:most]) for ids in solutions]
    assert sampling.answer_texts(run.model, tokenizer, []) == []


def test_each_answer_to_one_problem_is_drawn_anew(expert):
    run, known = expert
    ask, how = [known.problems[0]] * 10, dict(temperature=100.0, max_new_tokens=8, seed=1)
    texts = sampling.answer_texts(run.model, run.tokenizer, ask, **how)
    assert len(set(texts)) == 10
    assert texts == sampling.answer_texts(run.model, run.tokenizer, ask, **how)


def test_prompts_of_different_lengths_go_on_as_each_would_alone(model):
    """Whatever is known of a row is kept, and what follows depends on that row alone."""
    gpt = model(block_size=40)
    draw = torch.Generator().manual_seed(3)
    prompts = [torch.randint(61, (n,), generator=draw) for n in (3, 9, 5, 3)]
    eos = 7
    prompts[1][4] = eos  # an end of turn within a prompt is no end of the answer
    tokens = torch.full((4, 9), -1)
    for row, prompt in zip(tokens, prompts):
        row[: len(prompt)] = prompt
    made = sampling.generate(gpt, tokens, 8, temperature=0, eos=eos)
    for row, prompt in zip(made, prompts):
        alone = sampling.generate(gpt, prompt[None], 8, temperature=0, eos=eos)[0]
        assert torch.equal(row[: len(alone)], alone)
        assert (row[len(alone) :] == eos).all() or len(row) > len(prompt) + 8


@pytest.mark.parametrize("said, right", [
    ("#### 3", True), ("so #### 3 ", True), ("<think> 4 </think>\n\n 3", True),
    ("#### 30", False), ("#### 13", False), ("#### 3.", False), ("####", False), ("3", False),
    ("#### 3 #### 4", False), ("#### 4 #### 3", True), ("", False),
])  # fmt: skip
def test_an_answer_is_right_if_it_is_exactly_the_one(said, right):
    assert (md.final_answer(said) == "3") == right
