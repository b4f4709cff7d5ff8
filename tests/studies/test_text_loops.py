"""The study `text_loops`: text for a model that makes another number of loops in each step."""

import collections
import dataclasses

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import minidepth as md
import train
from conftest import log_of
from minidepth_lab.base.data import Data
from minidepth_lab.keep import registry, running
from minidepth_lab.studies import text_loops as study
from minidepth_lab.tasks.walk import pairs_kept

TESTED = ["1", "2", "3", "4", "6", "8", "12", "16", "24", "32"]


@pytest.fixture
def looped(tiny, jsonl):
    """(ModelConfig, TrainConfig, data) of a run of a second on a text of one's own."""
    path = jsonl([dict(text=f"{i} times {i} is {i * i}") for i in range(200)])

    def build(name="run", sizes=(), **changes):
        values = dict(data=(path,), loader="text_loops", sizes=sizes, eval_blocks=3, eval_every=4)
        values |= dict(n_layers=1, n_loops=8, eval_problems=0, name=name)
        m, t = tiny(**values | changes)
        return m, t, registry.data_of(t, m.block_size)

    return build


# ---------- what is drawn ----------


def test_loops_are_drawn_anew_for_each_step_from_one_to_the_most(looped):
    *_, data = looped()
    drawn = [data.loops_at(step) for step in range(800)]
    counts = collections.Counter(drawn)
    assert sorted(counts) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert min(counts.values()) > 70 and max(counts.values()) < 130  # each as likely
    assert drawn == [data.loops_at(step) for step in range(800)]
    data.seed = 1
    assert [data.loops_at(step) for step in range(800)] != drawn
    few = looped(sizes=("loops=3",))[2]
    assert {few.loops_at(step) for step in range(100)} == {1, 2, 3}


def test_a_batch_is_the_texts_own_with_a_loss_after_the_last_loop_or_each(looped):
    for data in (looped()[2], looped(sizes=("loss_after=each", "loops=5"))[2]):
        each = "loss_after=each" in data.sizes
        for step in range(9):
            tokens, targets = data.draw(step, 5)
            same_tokens, plain = Data.draw(data, step, 5)
            assert torch.equal(tokens, same_tokens) and targets.dtype == torch.int64
            assert targets.shape == (5, 5 if each else data.loops_at(step), tokens.size(1))
            assert torch.equal(targets[:, -1], plain)
            for earlier in targets[:, :-1].unbind(1):
                assert torch.equal(earlier, plain if each else torch.full_like(plain, -100))


def test_a_step_trains_by_the_loss_after_so_many_loops(looped, model):
    """The same for all parts of an accumulated batch."""
    m, t, data = looped(grad_accum=3)
    gpt = model(vocab_size=data.n_words, block_size=80, n_layers=1, n_loops=8)
    step = next(step for step in range(9) if data.loops_at(step) == 3)
    tokens, targets = data.draw(step, t.batch_size * t.grad_accum)
    parts = list(md.by_length(tokens, targets, t.batch_size))
    assert len(parts) == 3
    for x, y in parts:
        loss_sum, n = gpt(x, y)
        plain_sum, plain_n = gpt(x, y[:, -1], loops=3)
        assert torch.allclose(loss_sum, plain_sum, rtol=1e-5) and torch.equal(n, plain_n)
        assert not torch.allclose(loss_sum, gpt(x, y[:, -1])[0], rtol=1e-3)


def test_the_text_is_that_of_reread_or_ones_own(looped):
    m, t, own = looped(sizes=("problems=50",))
    reread = registry.data_of(dataclasses.replace(t, loader="reread"), m.block_size)
    assert own.fingerprint() == reread.fingerprint()
    assert own.sizes == ("problems=50", "loops=8", "loss_after=last")
    m, t = registry.configs("text_loops")  # of the problems that are in the repository
    preset = registry.data_of(t, m.block_size)
    words = preset.tokenizer.decode(np.concatenate([*preset.train[0], *preset.val[0]]))
    assert preset.facts["train_rows"] == 840 and "a heating pad for $30" in words


# ---------- what is measured ----------


@pytest.mark.parametrize("start", ["recall", "state"])
def test_losses_by_loops_are_those_of_a_plain_forward_pass(model, start):
    gpt = model(n_layers=2, n_loops=3, loop_start=start, dropout=0.5).train()
    drawn = torch.randint(61, (7, 25), generator=md.generator("text"))
    tokens, targets = drawn[:, :-1], drawn[:, 1:].clone()
    targets[2, 9:] = -100  # a block with less text than the others
    part = (tokens.int().numpy(), targets.int().numpy())
    losses = study.loss_by_loops(gpt, part, 3, {5, 1, 3, 32})
    assert list(losses) == [1, 3, 5, 32] and gpt.training
    gpt.eval()
    for loops, loss in losses.items():
        logits = gpt(tokens, loops=loops).flatten(0, 1).double()
        assert loss == pytest.approx(F.cross_entropy(logits, targets.flatten()).item(), rel=1e-5)
    assert losses[3] == pytest.approx(md.mean_loss(gpt, part, 7, 3), rel=1e-6)
    assert len({round(loss, 4) for loss in losses.values()}) == 4


def test_a_text_is_kept_in_a_model_that_keeps_its_first_tokens_by_itself(model):
    """Which computes these once, and would pass by what is put into its layers."""
    gpt = model(n_layers=1, n_loops=4, loop_start="recall", loop_keeps=1)
    tokens = torch.randint(61, (3, 9), generator=md.generator("kept"))
    *_, plain = gpt.run_loops(tokens, loops=6)
    with study.text_kept(gpt, 2):
        *_, kept = gpt.run_loops(tokens, loops=6)
    assert not torch.allclose(kept, plain, atol=1e-2)


@pytest.mark.parametrize("start", ["recall", "state"])
@pytest.mark.parametrize("position", ["learned", "rotary"])
def test_a_text_that_is_kept_is_one_whose_last_token_alone_is_looped_on(model, start, position):
    """For every token at once what pairs_kept() does for the last one of a sequence."""
    gpt = model(n_layers=2, loop_start=start, position=position)
    tokens = torch.randint(61, (3, 9), generator=md.generator("kept"))
    plain = [x.detach() for x in gpt.run_loops(tokens, loops=6)]
    with study.text_kept(gpt, 2):
        kept = [x.detach() for x in gpt.run_loops(tokens, loops=6)]
    for place in range(9):
        with pairs_kept(gpt, place, 2):
            *_, last = (x.detach() for x in gpt.run_loops(tokens[:, : place + 1], loops=6))
        assert torch.allclose(kept[-1][:, place], last[:, -1], atol=1e-5)
    assert torch.allclose(kept[2], plain[2], atol=1e-6)  # the loop that begins with what is kept
    assert torch.allclose(kept[5][:, 0], plain[5][:, 0], atol=1e-5)  # no token before it
    assert not torch.allclose(kept[3][:, 1:], plain[3][:, 1:], atol=1e-2)
    for after_loop, again in zip(plain, gpt.run_loops(tokens, loops=6), strict=True):
        assert torch.equal(after_loop, again)  # and the model is as it was


def test_losses_with_a_text_that_is_kept_are_measured_of_runs(looped, measured_of):
    run = running.train(*looped(sizes=("loops=5",), n_loops=5))
    by_kept = measured_of(run.dir, study)["text_kept"]
    assert list(by_kept) == ["5", "2"]
    measured = by_kept["5"]
    assert list(measured) == list(by_kept["2"]) == ["6", "8", "12", "16", "24", "32"]
    blocks = [each[:3] for each in run.data.val]
    kept = study.loss_by_loops(run.model, blocks, 3, {6, 32}, kept_after=5)
    changing = study.loss_by_loops(run.model, blocks, 3, {6, 32})
    assert [measured["6"], measured["32"]] == pytest.approx([kept[6], kept[32]], rel=1e-6)
    assert kept[6] == pytest.approx(changing[6], rel=1e-6)
    assert abs(kept[32] - changing[32]) > 1e-4
    sooner = study.loss_by_loops(run.model, blocks, 3, {32}, kept_after=2)
    assert by_kept["2"]["32"] == pytest.approx(sooner[32], rel=1e-6)


def test_each_evaluation_has_the_loss_by_loops_of_its_own_blocks(looped):
    run = running.train(*looped())
    assert [record["step"] for record in run.log] == [1, 4, 8, 12]
    for record in run.log:
        assert list(record["val_loss_by_loops"]) == TESTED
        assert record["val_loss_by_loops"]["8"] == pytest.approx(record["val_loss"], rel=1e-6)
    blocks = [each[:3] for each in run.data.val]
    wanted = study.loss_by_loops(run.model, blocks, 4, {1, 32})
    last = run.log[-1]["val_loss_by_loops"]
    assert (last["1"], last["32"]) == pytest.approx((wanted[1], wanted[32]), rel=1e-6)
    of_five = looped("five", sizes=("loops=5",), n_loops=5, steps=2, warmup_steps=0)
    assert "5" in running.train(*of_five).log[-1]["val_loss_by_loops"]


def test_the_command_ends_with_the_loss_by_loops(tmp_path, jsonl, kept, capsys):
    path = jsonl([dict(text=f"{i} times {i} is {i * i}") for i in range(200)])
    flags = "--preset text_loops --d_model 8 --n_heads 1 --d_ff 8 --batch_size 2 --steps 2"
    flags += f" --warmup_steps 0 --sizes problems=9 --eval_blocks 2 --out_dir {tmp_path} --name a"
    flags += f" --data {path} --block_size 32"
    assert train.main(flags.split()) == 0
    by_loops = log_of(tmp_path / "a")[-1]["val_loss_by_loops"]
    told = ", ".join(f"{loops} {loss:.4f}" for loops, loss in by_loops.items())
    lines = capsys.readouterr().out.splitlines()
    assert list(by_loops) == TESTED and f"loss by loops: {told}" in lines
    for sizes, said in (
        ("loops=0", "sizes loops=0 does not work; give a whole number from 1"),
        ("hops=2", "sizes hops is none of the loader text_loops's; it has problems, loops"),
    ):
        assert train.main(["--preset", "text_loops", "--sizes", sizes]) == 2
        assert said in capsys.readouterr().err
