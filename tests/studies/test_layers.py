"""Layer by layer: the lens against the model's own logits, layers left out against a model without
them, and the words of embedded problems."""

import dataclasses
import json

import pytest
import torch

import minidepth as md
from minidepth_lab.base import configs
from minidepth_lab.keep import running
from minidepth_lab.measure import inspect
from minidepth_lab.models import variants
from minidepth_lab.rows import to_data, tokenizing
from minidepth_lab.studies import layers

SHAPE = dict(vocab_size=40, block_size=16, n_layers=3, n_heads=2, d_model=16, dropout=0.0)


@pytest.fixture
def model():
    torch.manual_seed(0)
    return variants.GPT(configs.ModelConfig(**SHAPE, d_ff=32, init_std=0.3)).eval()


TOKENS = torch.arange(30).view(2, 15) % 40


def without(model, layer):
    """A model of the other layers alone."""
    blocks = [each for number, each in enumerate(model.blocks) if number != layer]
    shorter = variants.GPT(dataclasses.replace(model.config, n_layers=len(blocks))).eval()
    shorter.load_state_dict({k: v for k, v in model.state_dict().items() if "blocks" not in k},
                            strict=False)  # fmt: skip
    shorter.blocks = torch.nn.ModuleList(blocks)
    return shorter


def test_the_lens_at_the_last_depth_is_the_model_and_at_the_first_its_embedding(model):
    targets = model(TOKENS).argmax(-1)
    right = inspect.known(model, TOKENS, targets)
    assert len(right) == 4 and right[-1].all() and not right[0].all()
    words = inspect.lens(model, TOKENS)
    assert torch.equal(words[-1], targets) and torch.equal(words[0] == targets, right[0])
    first, *_, last = inspect.streams(model, TOKENS)
    positions = model.position_embedding.weight[:15]
    assert torch.equal(first, model.token_embedding(TOKENS) + positions)
    assert torch.allclose(model.norm(last), model.hidden(TOKENS))


@pytest.mark.parametrize("layer", [0, 1, 2])
def test_a_layer_left_out_is_a_model_without_it_and_comes_back(model, layer):
    before = model(TOKENS)
    with inspect.skipped(model, layer):
        assert torch.allclose(model(TOKENS), without(model, layer)(TOKENS), atol=1e-5)
        assert not torch.allclose(model(TOKENS), before)
    assert torch.equal(model(TOKENS), before)


def test_of_a_looped_layer_one_application_is_left_out():
    torch.manual_seed(0)
    config = configs.ModelConfig(**SHAPE | dict(n_layers=1, n_loops=3), d_ff=0, init_std=0.3)
    looped = variants.GPT(config).eval()

    def again(**changes):
        twin = variants.GPT(dataclasses.replace(config, **changes)).eval()
        twin.load_state_dict(looped.state_dict())
        return twin

    twice = again(n_loops=2)
    for layer in range(3):
        with inspect.skipped(looped, layer):
            for _ in range(2):  # a second pass counts anew
                assert torch.allclose(looped(TOKENS), twice(TOKENS), atol=1e-5)
            streams = inspect.streams(looped, TOKENS)
            same = [torch.equal(a, b) for a, b in zip(streams, streams[1:])]
            assert same == [number == layer for number in range(3)]
    models = [again(loop_start=start) for start in configs.LOOP_STARTS]
    models.append(variants.GPT(dataclasses.replace(config, n_layers=2, loop_keeps=3)).eval())
    for each in models:  # whatever a loop begins with, the stream is what it leaves
        with torch.no_grad():
            after_each = list(each.run_loops(TOKENS))
        found = inspect.streams(each, TOKENS)
        for stream, after in zip(found[:: each.config.n_layers][1:], after_each, strict=True):
            assert torch.allclose(stream, after, atol=1e-6)
    assert all(torch.equal(x[:, :3], found[2][:, :3]) for x in found[3:])  # what is kept
    assert not torch.allclose(found[1][:, :3], found[2][:, :3], atol=1e-3)


@pytest.fixture(scope="module")
def problems():
    rows = md.embedded_rows(90, held_out=True)
    texts = ("".join(text for text, _ in tokenizing.segments(row)) for row in md.embedded_rows(300))
    return [to_data.problem_of(row) for row in rows], tokenizing.load_tokenizer("embedded", texts)


def test_the_words_of_an_answer_have_their_kinds(problems):
    wanted = {
        "chain": "form form form copy form copy form sum form form form answer form",
        "lookup": "form form form copy look-up form form form answer form",
        "order": "form form form order order form form form answer form",
    }
    rows, tokenizer = problems
    for family, kinds in wanted.items():
        row = next(row for row in rows if (row["family"], row["steps"]) == (family, 1))
        ids, words, start = layers.read(row, tokenizer)
        assert [layers.kind(family, *pair) for pair in zip(words[start:], words[start - 1 :])] == (
            kinds.split()
        )
        assert words[start] == "<think>" and words[-1] == "<|im_end|>" and len(ids) == len(words)


def test_links_lead_to_what_is_written_next(problems):
    rows, tokenizer = problems
    seen = set()
    for row in rows:
        _, words, start = layers.read(row, tokenizer)
        names = [word.strip() for word in words]
        for link, looks in layers.links_of(row["family"], words, start).items():
            for query, keys in looks:
                seen.add((row["family"], link))
                if link in ("match", "answer"):
                    assert [names[key] for key in keys] == [names[query + 1]]
                if link == "match":
                    assert keys[0] < start and names[keys[0] - 1] == names[query]
                if link == "sum":
                    assert sum(int(names[key]) for key in keys) % 10 == int(names[query + 1])
                if link == "copy":
                    assert keys == [query - 1]
                    assert len(names[query - 1]) == len(names[query]) == 1  # a pair of letters
    assert seen == {
        *((family, link) for family in ("lookup", "order") for link in ("copy", "match", "answer")),
        ("chain", "sum"), ("chain", "answer"),
    }  # fmt: skip


def test_a_run_is_examined_into_a_file(problems, tmp_path, model):
    rows, tokenizer = problems
    config = dataclasses.replace(model.config, vocab_size=len(tokenizer), block_size=64)
    found = layers.examined(variants.GPT(config).eval(), tokenizer, rows[:9], [(1, 2), (1, 3)])
    assert found["words"]["sum"] == 1 + 2 + 3 and found["words"]["answer"] == 9
    assert {len(shares) for shares in found["known"].values()} == {4}
    assert {len(shares) for shares in found["without"].values()} == {3}
    # without any layer the model is what the lens sees at depth 0
    assert found["spans"]["1 to 3"] == {kind: x[0] for kind, x in found["known"].items()}
    for kind, shares in found["known"].items():  # without the last layer, the depth before it
        assert found["without"][kind][2] == pytest.approx(shares[2])
    assert [len(heads) for heads in found["looks"]["match"]] == [2, 2, 2]
    small = dict(n_layers=1, d_model=16, n_heads=2, steps=2, warmup_steps=1, eval_problems=0)
    small |= dict(max_rows=300)
    m, t = configs.make("laptop", **small, watch_problems=0, out_dir=str(tmp_path), name="run")
    running.train(m, t, command="python train.py")
    layers.write_examined(str(tmp_path / "run"), tmp_path / "out.json", [(1, 1)], n=9)
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    copied = dict(model=config["model"], train={})  # as untie.py writes it
    (tmp_path / "run" / "config.json").write_text(json.dumps(copied))
    layers.write_examined(str(tmp_path / "run"), tmp_path / "copy.json", n=9)
    assert json.loads((tmp_path / "copy.json").read_text())["command"] is None
    out = json.loads((tmp_path / "out.json").read_text())
    assert out["command"] == "python train.py" and out["problems"] == 9 and "1 to 1" in out["spans"]
