"""The depth tasks against slow, obvious solutions, and what the command makes of them."""

import itertools

import numpy as np
import pytest
import torch

import minidepth as md
import train
from conftest import draw_of, log_of
from minidepth_lab import tasks
from minidepth_lab.base import configs
from minidepth_lab.keep import checkpoints, registry, running
from minidepth_lab.measure import results
from minidepth_lab.tasks import TASKS
from minidepth_lab.tasks.base import own_code, task_data
from minidepth_lab.tasks.base.sizes import sizes_of
from minidepth_lab.tasks.icl_template import IclTemplate
from solvers import all_patterns, pattern
from tasks.oracle import Oracle


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_hints_name_the_pattern_after_labels_and_in_a_share_of_the_queries(share):
    patterns, hinted, generator = all_patterns(4), [], md.generator("test")
    tokens, targets = TASKS["icl_template"].draw(2000, generator, hinted=share, symbols=40)
    for x, y in zip(tokens.tolist(), targets.tolist()):
        ends = range(4, len(x), 5)
        names = [89 + patterns.index(pattern(x[at - 4 : at])) for at in ends]  # after the query, 88
        assert [y[at] for at in ends][:3] == names[:3] and x[ends[3]] == 88
        shown = dict(zip(names[:3], (x[at] for at in ends)))
        said, labels = [y[at] for at in ends][3:], [shown[name] for name in names[3:]]
        assert said in (names[3:], labels)
        hinted.append(said == names[3:])
    assert sum(hinted) / 2000 == pytest.approx(share, abs=0.05)


def test_settings_of_a_task_may_name_it_as_text():
    """A task's own settings are found whether `data` is a text or a tuple."""
    for data in ("template", ("template",)):
        m, t = registry.configs("tasks", data=data)
        assert t.data == ("template",) and (t.steps, t.batch_size, t.eval_every) == (3000, 128, 200)
        assert (m.n_heads, m.d_ff, m.block_size) == (4, 0, 128)
    assert registry.configs("tasks", data="icqa")[0].n_heads == 2
    assert registry.configs("tasks", data="memorize", steps=70)[1].steps == 70
    assert configs.make("laptop", data="icqa")[1].data == ("icqa",)
    assert registry.configs("laptop", data="icqa")[0].n_heads == 4  # laptop's own, not the task's


def test_sizes_of_a_preset_are_of_its_own_task():
    """`--preset ring --data icqa` was told that icqa has no lengths."""
    assert registry.configs("ring", data=("icqa",))[1].sizes == ()
    assert registry.configs("ring", data=("icqa",), sizes=("pairs=3",))[1].sizes == ("pairs=3",)
    assert "lengths=1+2+4" in registry.configs("ring-four", sizes=("ring=9",))[1].sizes


def test_sizes_are_merged_by_name_and_all_of_them_are_known():
    t = registry.configs("tasks", data="khop", sizes=("hops=1+2+4",))[1]
    assert set(t.sizes) == {"length=48", "hops=1+2+4"}  # the task's own length stays
    data = registry.data_of(t)
    assert data.task_sizes == dict(symbols=4, length=48, hops=(1, 2, 4))
    assert data.sizes == ("symbols=4", "length=48", "hops=1+2+4")
    assert registry.configs("tasks", data="icl_template")[1].sizes == ("hints=0.75",)
    with pytest.raises(ValueError, match="sizes hops is none of mine's; it has none"):
        sizes_of(("hops=3",), {}, "mine")


def test_test_split_is_fixed_and_training_batches_are_not():
    one, two = (
        registry.data_of(registry.configs("tasks", data="template", seed=seed)[1], 128)
        for seed in (0, 1)
    )
    assert np.array_equal(one.val[0], two.val[0]) and one.val[0][:, :6].min() >= 2048
    assert one.train[0][:, :6].max() < 2048
    assert one.n_words == 2 * 2048 + 15 + 1
    assert len(one.val[0]) == 1000 and one.val[0].dtype == one.val[1].dtype == np.int32
    two.seed = 1
    batches = [one.draw(3, 8)[0], one.draw(4, 8)[0], two.draw(3, 8)[0]]
    assert torch.equal(batches[0], one.draw(3, 8)[0])
    for a, b in itertools.combinations(batches, 2):
        assert not torch.equal(a, b)


@pytest.mark.parametrize("name", ["walk", "hold", "sums", "strides"])
def test_the_first_rings_alone_are_asked(name, model, monkeypatch):
    """Of however many the test has; each of these is looped on and on."""
    home = dict(sums="program").get(name, name)  # sums are measured as the programs that they are
    monkeypatch.setattr(f"minidepth_lab.tasks.{home}.RINGS_TESTED", 10)
    task = TASKS[name]
    far = dict(far=20) if "far" in task.sizes else {}
    sizes, tokens, targets = draw_of(task, 30, **far)
    n_words = int(max(tokens.max(), targets.max())) + 1
    looped = dict(n_layers=1, n_loops=3, loop_start="recall", tie_weights=False)
    gpt = model(vocab_size=n_words, block_size=tokens.size(1), **looped)
    for method in (task.accuracy, task.final_accuracy):
        first = method(gpt, tokens[:10], targets[:10], **sizes)
        assert method(gpt, tokens, targets, **sizes) == first


def test_hints_are_given_in_the_first_part_of_training_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(task_data, "N_DRAWN", 100)
    given, real = [], IclTemplate.draw

    def see(self, *a, hinted=None, **k):
        given.append(hinted)
        return real(self, *a, hinted=hinted, **k)

    settings = dict(data="icl_template", steps=20, warmup_steps=1)
    settings |= dict(n_layers=1, batch_size=2, eval_every=20, out_dir=str(tmp_path))
    m, t = registry.configs("tasks", sizes=("hints=0.5", "symbols=16"), **settings)
    data = registry.data_of(t, m.block_size)
    monkeypatch.setattr(IclTemplate, "draw", see)
    run = running.train(m, t, data)
    assert given == [1.0] * 2 + [0.2] * 8 + [None] * 10
    # names of patterns are words too, and the test split asks for none
    assert data.n_words == 2 * 16 + 8 + 1 + 3 == run.model.config.vocab_size
    assert data.val[1].max() < 2 * 16 + 8
    monkeypatch.undo()
    t = registry.configs("tasks", sizes=("hints=0", "symbols=16"), **settings)[1]
    assert registry.data_of(t, m.block_size).n_words == 2 * 16 + 8 + 1


def test_khop_accuracy_leaves_out_bottom_and_is_told_by_hops():
    """Of a model that is right for k = 1, a symbol further for k = 3, and never says ⊥."""
    sizes, tokens, targets = draw_of(TASKS["khop"], 1000, length=20, hops=(1, 3))
    said = (targets.clamp(min=0) + (tokens[:, :1] == 4 + 3)) % 4
    found = TASKS["khop"].accuracy(Oracle(tokens, said), tokens, targets, **sizes)
    by_hops = found["accuracy_by"]["hops"]
    assert {k: part["accuracy"] for k, part in by_hops.items()} == {"1": 1.0, "3": 0.0}
    assert 0.4 < found["accuracy"] < 0.7
    for k, part in by_hops.items():  # what each is to be compared with
        expected = TASKS["khop"].chance(length=20, hops=(int(k),))[1]
        assert part["shortcut"] == pytest.approx(expected)


def test_two_layers_answer_in_context(solved):
    result = results.result(solved)
    assert result["accuracy"] > 0.99 and result["shortcut"] == 1 / 8
    model, tokenizer = checkpoints.load(solved)
    assert tokenizer is None
    t = checkpoints.read_config(solved)[1]
    assert t.sizes == ("symbols=16", "pairs=8")  # all that were used
    assert registry.data_of(t, 128).evaluate(model)["accuracy"] == result["accuracy"]


def test_the_command_takes_a_task(tmp_path, capsys):
    line = f"--data khop --n_layers 1 --steps 4 --warmup_steps 1 --out_dir {tmp_path}"
    assert train.main([*line.split(), "--sizes", "length=16,symbols=3,hops=1+2"]) == 0
    out = capsys.readouterr().out
    assert "preset tasks: khop is a depth task" in out
    assert "data khop (symbols 3, length 16, hops 1+2), drawn anew each step" in out
    (folder,) = tmp_path.iterdir()
    names = {path.name for path in folder.iterdir()} - {".lock"}
    assert names == {"config.json", "log.jsonl", "model.safetensors", "state.pt", "curve.png"}
    assert log_of(folder)[-1]["accuracy_by"]["hops"].keys() == {"1", "2"}
    assert checkpoints.read_config(folder)[1].sizes == ("symbols=3", "length=16", "hops=1+2")
    assert train.main(["--sample", str(folder), "--prompt", "a"]) == 2
    assert "knows no text" in capsys.readouterr().err


OWN = """
import torch
from minidepth_lab.tasks import Task, ask

class parity(Task):
    settings = dict(steps=3, n_heads=1)

    def draw(self, batch, generator, test=False, length=5, shares=(0.5, 0.1)):
        x = torch.randint(2, (batch, length), generator=generator)
        return ask(x, 3 + x.sum(1) % 2, 2)

    def guess(self, **_):
        return 0.5

TASK = parity()
"""


def test_a_task_of_ones_own_is_one_class_in_a_file(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(own_code, "NAMED", set())
    path = tmp_path / "parity.py"
    path.write_text(OWN)
    line = f"--data {path} --n_layers 1 --warmup_steps 0 --out_dir {tmp_path} --name run"
    assert train.main([*line.split(), "--sizes", "length=6"]) == 0
    out = capsys.readouterr().out
    assert "parity.py is a depth task" in out and "accuracy of guessing 0.500" in out
    m, t = checkpoints.read_config(tmp_path / "run")
    assert t.sizes == ("length=6", "shares=0.5+0.1") and (t.steps, m.n_heads) == (3, 1)
    last = log_of(tmp_path / "run")[-1]
    assert last["guess"] == 0.5 and "shortcut" not in last
    # longer: Python knows a changed file by its second and its size
    path.write_text(OWN.replace("TASK =", "MY_TASK ="))
    assert train.main([*line.split()[:-2], "--name", "other"]) == 2
    assert "has no TASK" in capsys.readouterr().err


def test_a_task_says_what_it_does_not_know():
    class silent(tasks.Task):
        def draw(self, batch, generator, test=False, n=3):
            return tuple(torch.randint(n, (batch, 2), generator=generator) for _ in range(2))

    task = silent()  # named after its file, as --data names it
    assert (task.name, task.sizes, task.settings) == ("test_tasks", dict(n=3), {})
    assert task.chance(n=5) == (None, None)
    with pytest.raises(ValueError, match="test_tasks has no steps to look for"):
        task.links(None, None)
