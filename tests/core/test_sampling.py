"""Sampling with and without the cache; answers, of which only exact ones are right."""

import math

import pytest
import torch

import minidepth as md
from minidepth_lab.base import configs
from minidepth_lab.base.data import Data
from minidepth_lab.keep import running
from minidepth_lab.measure import sampling
from minidepth_lab.models import variants
from minidepth_lab.rows import tokenizing


def prompt(model, B=3, T=5):
    return torch.randint(
        model.config.vocab_size, (B, T), generator=torch.Generator().manual_seed(2)
    )


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
@pytest.mark.parametrize("temperature", [0, 0.8])
def test_cached_equals_uncached_token_for_token(model, changes, temperature):
    gpt = model(**changes)
    x = prompt(gpt)
    n = 19 if gpt.config.position == "learned" else 40  # the block is 24, of which 5 are taken
    expected = uncached(gpt, x, n, temperature, 20, seed=4)
    assert torch.equal(sampling.generate(gpt, x, 40, temperature, top_k=20, seed=4), expected)


def test_samples_follow_the_softmax(model):
    gpt = model()
    x = prompt(gpt, 1).expand(20_000, -1)
    drawn = (
        sampling.generate(gpt, x, 1, temperature=2.0, seed=0)[:, -1].bincount(minlength=61) / 20_000
    )
    expected = (gpt(x[:1])[0, -1] / 2).softmax(-1)
    assert (drawn - expected).abs().max() < 0.012
    top = sampling.generate(gpt, x[:500], 1, top_k=3, seed=0)[:, -1].unique()
    assert set(top.tolist()) == set(gpt(x[:1])[0, -1].topk(3).indices.tolist())


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


def test_a_training_model_is_not_sampled(model):
    gpt = model(dropout=0.9).train()
    with pytest.raises(ValueError, match="eval"):
        md.generate(gpt, prompt(gpt), 5)


@pytest.mark.parametrize(
    "bad", [dict(temperature=-1), dict(temperature=float("nan")), dict(top_k=0)]
)
def test_bad_sampling_settings_say_why(model, bad):
    gpt = model()
    with pytest.raises(ValueError, match="temperature .* must be at least 0"):
        sampling.generate(gpt, prompt(gpt), 3, **bad)


# --- answers


@pytest.fixture(scope="module")
def expert(data, tmp_path_factory):
    """A model that knows twelve held-out problems by heart, made by training on nothing else."""
    rows = [
        dict(messages=[*p["messages"], dict(role="assistant", content=p["solution"])])
        for p in data.problems[:12]
    ]
    parts = [tokenizing.segments(row, data.tokenizer) for row in rows]
    encoded = md.encode(parts, data.tokenizer, "assistant")
    part = md.blocks(encoded, 80, "pad")
    known = Data(part, part, data.tokenizer, data.problems[:12], data.facts, data.n_words)
    m, t = configs.make(
        "laptop", n_layers=1, d_model=64, block_size=80, batch_size=12, grad_accum=1, steps=60,
        lr=0.01, out_dir=str(tmp_path_factory.mktemp("expert")), eval_every=60, eval_problems=12,
    )  # fmt: skip
    return running.train(m, t, data=known), known


def test_accuracy_is_the_share_answered_exactly(expert, data):
    run, known = expert
    assert md.accuracy(run.model, run.tokenizer, known.problems)["accuracy"] == 1.0
    assert run.log[-1]["accuracy"] == 1.0
    wrong = [
        dict(p, answer=p["answer"] + "0") if i < 3 else p for i, p in enumerate(known.problems)
    ]
    assert md.accuracy(run.model, run.tokenizer, wrong)["accuracy"] == 0.75
    texts = sampling.answer_texts(run.model, run.tokenizer, known.problems)
    assert texts == [p["solution"] for p in known.problems]  # each text with its own problem


def test_problems_are_answered_some_at_a_time(expert, monkeypatch):
    """Those of about the same length together, and each text stays with its own problem."""
    run, known = expert
    asked, generate = [], md.generate

    def noted(model, tokens, *args, **kwargs):
        asked.append(tuple(tokens.shape))
        return generate(model, tokens, *args, **kwargs)

    monkeypatch.setattr(md, "generate", noted)
    texts = md.answer_texts(run.model, run.tokenizer, known.problems, at_once=5)
    assert texts == [p["solution"] for p in known.problems]
    lengths = sorted(len(md.prompt_ids(run.tokenizer, p["messages"])) for p in known.problems)
    assert asked == [(5, lengths[0]), (5, lengths[5]), (2, lengths[10])]
    assert sampling.answer_texts(run.model, run.tokenizer, []) == []


def test_each_answer_to_one_problem_is_drawn_anew(expert):
    run, known = expert
    ask, how = [known.problems[0]] * 10, dict(temperature=100.0, max_new_tokens=8, seed=1)
    texts = sampling.answer_texts(run.model, run.tokenizer, ask, **how)
    assert len(set(texts)) == 10
    assert texts == sampling.answer_texts(run.model, run.tokenizer, ask, **how)


def test_a_question_longer_than_the_block_is_refused(expert, data):
    """It was answered with nothing, which counted as wrong."""
    run, known = expert
    long = dict(messages=[dict(role="user", content="a b " * 60)], answer="1")
    with pytest.raises(ValueError, match=r"a prompt of \d{3} tokens does not fit block_size 80"):
        sampling.answer_texts(run.model, run.tokenizer, [long, known.problems[0]])
    assert sampling.answer_texts(
        run.model, run.tokenizer, known.problems[:1], max_new_tokens=1
    ) == ["<think>"]


def test_prompts_of_different_lengths_go_on_as_each_would_alone(model):
    """Whatever is known of a row is kept, and what follows depends on that row alone."""
    gpt = model(block_size=40)
    draw = torch.Generator().manual_seed(3)
    prompts = [torch.randint(61, (n,), generator=draw) for n in (3, 9, 5, 3)]
    eos = 7
    prompts[1][4] = eos  # an end of turn within a prompt is no end of the answer
    known = torch.full((4, 6), -1)
    for row, prompt in zip(known, prompts):
        row[: len(prompt) - 3] = prompt[3:]
    tokens = torch.stack([prompt[:3] for prompt in prompts])
    made = sampling.generate(gpt, tokens, 6 + 8, temperature=0, eos=eos, known=known)
    for row, prompt in zip(made, prompts):
        alone = sampling.generate(gpt, prompt[None], 8, temperature=0, eos=eos)[0]
        assert torch.equal(row[: len(alone)], alone)
        assert (row[len(alone) :] == eos).all() or len(row) > len(prompt) + 8


@pytest.fixture
def speaker(data):
    """A model of the shared data's words that says something else to each prompt."""
    torch.manual_seed(0)
    words = len(data.tokenizer)
    sizes = dict(n_layers=1, n_heads=2, d_model=32, d_ff=0, init_std=0.5, tie_weights=False)
    config = configs.ModelConfig(vocab_size=words, block_size=120, **sizes)
    return variants.GPT(config).eval()


@pytest.mark.parametrize("most", [1, 3])
def test_each_prompt_gets_so_many_new_tokens_whatever_the_length_of_the_others(speaker, data, most):
    tokenizer, problems = data.tokenizer, data.problems[:9]
    end = tokenizer.convert_tokens_to_ids("<|im_end|>")
    expected, lengths = [], set()
    for problem in problems:
        prompt = tokenizer.apply_chat_template(
            problem["messages"], add_generation_prompt=True, tokenize=False
        )
        ids = tokenizer(prompt, add_special_tokens=False).input_ids
        lengths.add(len(ids))
        tokens = torch.tensor([ids])
        for _ in range(most):  # the likeliest word, everything read anew
            tokens = torch.cat((tokens, speaker(tokens)[:, -1:].argmax(-1)), 1)
        said = tokens[0, len(ids) :].tolist()
        expected.append(tokenizer.decode(said[: said.index(end)] if end in said else said))
    assert max(lengths) - min(lengths) > 10 and len(set(expected)) > 1
    found = sampling.answer_texts(speaker, tokenizer, problems, max_new_tokens=most)
    assert found == expected


@pytest.mark.parametrize("said, right", [
    ("#### 3", True), ("so #### 3 ", True), ("<think> 4 </think>\n\n 3", True),
    ("#### 30", False), ("#### 13", False), ("#### 3.", False), ("####", False), ("3", False),
    ("#### 3 #### 4", False), ("#### 4 #### 3", True), ("", False),
])  # fmt: skip
def test_an_answer_is_right_if_it_is_exactly_the_one(speaker, data, monkeypatch, said, right):
    monkeypatch.setattr(md, "answer_texts", lambda model, tokenizer, problems, *_: [said])
    problem = dict(messages=[dict(role="user", content="1 + 2 ?")], answer="3")
    assert md.accuracy(speaker, data.tokenizer, [problem])["accuracy"] == right


def test_a_top_k_of_more_words_than_there_are_takes_them_all(model):
    gpt = model()
    x = torch.randint(61, (3, 5), generator=torch.Generator().manual_seed(1))
    assert torch.equal(
        sampling.generate(gpt, x, 6, top_k=1000, seed=2), sampling.generate(gpt, x, 6, seed=2)
    )


def test_of_words_that_are_alike_top_k_takes_no_more():
    drawn = sampling.sampler(top_k=2, seed=0)(torch.zeros(100, 9))
    assert len(drawn.unique()) == 2
