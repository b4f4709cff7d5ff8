"""Answers: as many tokens as asked for whatever the prompts' lengths, and right only if exact."""

import pytest
import torch

import minidepth as md
from minidepth_lab.base import configs
from minidepth_lab.measure import sampling
from minidepth_lab.models import variants


@pytest.fixture
def speaker(data):
    """A model of the shared data's words that says something else to each prompt."""
    torch.manual_seed(0)
    words = len(data.tokenizer)
    config = configs.ModelConfig(vocab_size=words, block_size=120, n_layers=1, n_heads=2,
                                 d_model=32,
                            d_ff=0, init_std=0.5, tie_weights=False)  # fmt: skip
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
