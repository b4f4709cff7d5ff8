"""A looped model as layers of their own."""

import errno
import shutil

import pytest
import torch

import minidepth as md
from minidepth_lab.keep import checkpoints, registry, running
from minidepth_lab.measure import untie
from minidepth_lab.tasks.base import task_data


@pytest.mark.parametrize("heads", [4, (2, 4)])
def test_copies_compute_as_the_loops_do(model, heads):
    looped = model(n_layers=2, n_loops=3, n_heads=heads).eval()
    copies = untie.untied(looped).eval()
    assert copies.config.n_layers == 6 and copies.config.n_loops == 1
    assert copies.config.heads == looped.config.heads * 3
    tokens = torch.randint(61, (3, 20), generator=md.generator("untie"))
    assert torch.equal(copies(tokens), looped(tokens))
    windowed = model(n_layers=2, n_loops=3, attn_window=4).eval()
    assert torch.equal(untie.untied(windowed).eval()(tokens), windowed(tokens))
    with torch.no_grad():
        copies.blocks[0].attn.out.weight.zero_()  # one copy alone
    assert not torch.equal(copies.blocks[2].attn.out.weight, copies.blocks[0].attn.out.weight)
    assert not torch.equal(copies(tokens), looped(tokens))


def test_a_run_goes_on_from_copies(tmp_path, monkeypatch):
    monkeypatch.setattr(task_data, "N_DRAWN", 50)
    small = dict(d_model=16, n_heads=2, steps=2, warmup_steps=0, eval_blocks=4, batch_size=4)
    small |= dict(out_dir=str(tmp_path), seed=3)
    m, t = registry.configs("ring", n_layers=1, n_loops=3, name="looped", **small)
    data = registry.data_of(t, m.block_size)
    looped = running.train(m, t, data)
    folder = str(tmp_path / "copies")
    untie.main([str(looped.dir), folder])
    changes = small | dict(n_layers=3, init_from=folder, name="own", steps=1, lr=0)
    m, t = registry.configs("ring", **changes)
    own = running.train(m, t, registry.data_of(t, m.block_size))
    assert own.log[-1]["val_loss"] == pytest.approx(looped.log[-1]["val_loss"], rel=1e-6)


def test_copies_keep_the_words_of_a_run_on_text(tiny, data, tmp_path, capsys, monkeypatch):
    m, t = tiny(n_layers=1, n_loops=2)
    looped, folder = running.train(m, t, data), str(tmp_path / "copies")
    untie.main([looped.dir, folder])
    copies, tokenizer = checkpoints.load(folder)
    assert tokenizer.get_vocab() == looped.tokenizer.get_vocab()
    tokens = torch.randint(looped.data.n_words, (2, 9))
    assert torch.allclose(copies(tokens), looped.model(tokens), atol=1e-6)
    with open(tmp_path / "copies" / "tokenizer" / "tokenizer.json", "a") as f:
        f.write(" ")
    with pytest.raises(ValueError, match="tokenizer.json is changed or damaged"):
        checkpoints.load(folder)

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    for place, why in (("/proc/nope", "No such file"), (str(tmp_path / "again"), "No space")):
        with pytest.raises(SystemExit) as ended:
            untie.main([looped.dir, place])
        said = capsys.readouterr().err
        assert ended.value.code == 2 and f"{place} cannot be written: " in said and why in said
        monkeypatch.setattr(shutil, "copyfile", full)


def test_what_has_no_copies_says_so(model):
    for changes, said in (
        (dict(n_loops=1), "n_loops is 1: the model has layers of its own already"),
        (dict(n_loops=2, loop_start="recall"), "loop_start is recall; layers of their own begin"),
        (dict(n_loops=2, n_layers=1, attn_window=4), "attn_window is 4 with n_layers 1; in the"),
        (dict(n_loops=2, loop_keeps=3), "loop_keeps is 3; layers of their own change every token"),
    ):
        with pytest.raises(ValueError, match=said):
            untie.untied(model(**changes))
