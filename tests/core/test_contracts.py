"""The five interfaces of minidepth.py, Data, Folder, make_model, on_log and stop: what each asks,
and that every implementation, the file's own and the laboratory's, keeps to it."""

import dataclasses
import json
import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import minidepth as md
from conftest import same_weights
from minidepth_lab.base import configs
from minidepth_lab.keep import checkpoints, registry, running
from minidepth_lab.keep.folder import CarefulFolder
from minidepth_lab.models import variants
from minidepth_lab.rows import to_data
from minidepth_lab.tasks import walk
from minidepth_lab.tasks.base import task_data

SMALL = dict(
    n_layers=1, d_model=16, n_heads=2, d_ff=32, dropout=0.1, batch_size=4, grad_accum=1, steps=6,
    warmup_steps=1, eval_every=3, save_every=4, eval_blocks=8, max_rows=200, eval_problems=3,
    watch_problems=2, ring_questions=1,
)  # fmt: skip
TEXT = dict(preset="laptop", block_size=80)
LOOKUPS = ("families=lookup", "answer=direct", "curriculum=99.0")


# ---------- Data ----------


@dataclasses.dataclass
class Own(md.Data):
    """Draws what no order of blocks could give, remembers what it was told, measures something."""

    def draw(self, step, n):
        seen = self.state["seen"]
        tokens = torch.randint(1, 9, (n, 12), generator=md.generator(self.seed, step, len(seen)))
        tokens[:, 0] = 1 + int(100 * sum(seen)) % 8  # what was told decides what is drawn
        return tokens[:, :-1], tokens[:, 1:]

    def after_step(self, loss):
        self.state["seen"] = [*self.state["seen"], loss]

    def evaluate(self, model):
        return dict(told=len(self.state["seen"]))


def own(m, t):
    tokens = torch.randint(1, 9, (40, 12), generator=md.generator("own")).int().numpy()
    part = (tokens[:, :-1], tokens[:, 1:])
    return Own(part, part, n_words=9, infinite=True, state=dict(seen=[]))


def plain(m, t):
    return md.load_data(md.configs("laptop", max_rows=200)[1], m.block_size)


DATA = {  # name: (settings, what makes the data of them)
    "the file's": (TEXT, plain),
    "the laboratory's": (TEXT | dict(packing="pack", loss_on="all"), None),
    "several sources": (TEXT | dict(data="two files", loss_on="all"), None),
    "thinking": (TEXT | dict(loader="thinking", sizes=LOOKUPS), None),
    "packing": (TEXT | dict(loader="packing", sizes=("val_packing=pack",)), None),
    "reread": (TEXT | dict(data="own rows", loader="reread"), None),
    "text_loops": (TEXT | dict(data="own rows", loader="text_loops", n_loops=2), None),
    "icqa": (dict(preset="tasks", data="icqa", block_size=24), None),
    "icl_template": (dict(preset="tasks", data="icl_template", block_size=30,
                          sizes=("symbols=12",)), None),
    "ring": (dict(preset="ring", data="ring", block_size=32,
                  sizes=("questions=4", "early=0.9", "gate=9.0")), None),
    "walk": (dict(preset="walk", data="walk", block_size=15, n_loops=4,
                  sizes=("ring=5", "hops=3", "far=31", "gate=4")), None),
    "walk, last": (dict(preset="walk", data="walk", block_size=15, n_loops=4,
                        sizes=("ring=5", "hops=3", "far=31", "gate=4", "loss_after=last")), None),
    "one's own": (TEXT | dict(block_size=11), own),
}  # fmt: skip


@pytest.fixture(autouse=True)
def small_tests(monkeypatch):
    """Tasks are tested on few sequences."""
    monkeypatch.setattr(task_data, "N_DRAWN", 100)
    monkeypatch.setattr(walk, "RINGS_TESTED", 20)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder, known = tmp_path_factory.mktemp("contracts"), {}
    rows = [dict(text=f"{i} times {i} is {i * i}") for i in range(200)]
    asked = [dict(question=f"{i} and {i}?", answer=f"#### {2 * i}") for i in range(99)]
    for name, of_file in (("own", rows), ("asked", asked)):
        lines = [json.dumps(row) + "\n" for row in of_file]
        (folder / f"{name}.jsonl").write_text("".join(lines))
    files = {"own rows": (str(folder / "own.jsonl"),)}
    files["two files"] = ("embedded", str(folder / "asked.jsonl"))

    def make(name, run="run", anew=False):
        """(ModelConfig, TrainConfig, Data) of an implementation, the data as it was made before, or
        anew."""
        given, load = DATA[name]
        place = dict(out_dir=str(folder), name=f"{run} {list(DATA).index(name)}")
        settings = SMALL | given | place
        settings["data"] = files.get(settings.get("data"), settings.get("data", "embedded"))
        m, t = registry.configs(settings.pop("preset"), **settings)
        if anew or name not in known:
            known[name] = (load or (lambda m, t: registry.data_of(t, m.block_size)))(m, t)
        return m, t, known[name]

    return make


@pytest.mark.parametrize("name", DATA)
def test_what_data_draws_follows_from_the_step_the_seed_and_its_state(made, name):
    _, _, data = made(name)
    for part in (data.train, data.val):
        assert len(part) == 2 and all(isinstance(each, np.ndarray) for each in part)
        assert len(part[0]) == len(part[1]) > 0
    for step in (0, 7):
        tokens, targets = data.draw(step, 6)
        assert tokens.dtype == targets.dtype == torch.int64 and len(tokens) == len(targets) == 6
        assert tokens.min() >= 0 and max(tokens.max(), targets.max()) < data.n_words
        assert (targets != -100).any()
        torch.manual_seed(step + 5)  # whatever was drawn before
        numbers = torch.get_rng_state()
        again = data.draw(step, 6)
        assert torch.equal(again[0], tokens) and torch.equal(again[1], targets)
        assert torch.equal(torch.get_rng_state(), numbers)
    other = dataclasses.replace(data, seed=1, state={**data.state})
    assert any(not torch.equal(other.draw(n, 6)[0], data.draw(n, 6)[0]) for n in range(4))
    prints = data.fingerprint()
    assert prints == made(name, anew=True)[2].fingerprint() and all(
        isinstance(n, int) for n in prints
    )
    changed = data.val[0].copy()
    changed[-1, 0] += 1
    assert dataclasses.replace(data, val=(changed, data.val[1])).fingerprint() != prints


@pytest.mark.parametrize("name", DATA)
def test_a_run_on_any_data_goes_on_where_it_was_stopped(made, name):
    """Bit for bit, with what the data measures, and its state is not the state that was given."""
    m, t, data = made(name, "whole")
    given = json.dumps(data.state)
    whole = running.train(m, t, data)
    assert json.dumps(data.state) == given and json.loads(json.dumps(whole.log))
    m, t, data = made(name, "stopped")
    asked = iter([False] * 4 + [True])
    part = running.train(m, t, data, stop=lambda: next(asked))
    assert not part.finished and checkpoints.read_state(f"{part.dir}/state.pt")["step"] == 5
    again = running.train(*made(name, "stopped", anew=True), resume=True)
    for row, other in zip(whole.log, again.log, strict=True):
        own = dict(seconds=row["seconds"], tokens_per_second=row["tokens_per_second"])
        assert other | own == row
    assert same_weights(whole.model, again.model)


# ---------- Folder ----------


def folders(kind, path, t):
    """A folder in which one layer of 8 numbers trains, and its state."""
    model = torch.nn.Linear(8, 8)
    state = dict(
        step=3, skipped=0, in_a_row=0, seconds=1.5, log=[RECORD], data={},
        scaler={}, model=model.state_dict(),
        optimizer=torch.optim.AdamW(model.parameters()).state_dict(),
    )  # fmt: skip
    if kind is CarefulFolder:
        folder = CarefulFolder(path, t)
        folder.model = model
        return folder, state
    return md.Folder(path), state


RECORD = dict(step=1, lr=0.1, train_loss=2.0, val_loss=2.0, seconds=1.0, tokens_per_second=9)


@pytest.mark.parametrize("kind", [md.Folder, CarefulFolder])
def test_a_folder_gives_back_what_it_was_given(kind, tmp_path, monkeypatch):
    m, t = configs.make("laptop", vocab_size=8, out_dir=str(tmp_path), name="run", steps=9)
    settings = json.loads(json.dumps(dict(model=vars(m), train=vars(t))))
    identity = dict(settings=settings, fingerprint=[1, 2])
    path = str(tmp_path / "run")
    folder, state = folders(kind, path, t)
    assert folder.resume(identity) is None or kind is md.Folder
    folder.begin(identity, None)
    folder.log([dict(step=1, val_loss=math.nan), dict(step=3, val_loss=1.25)])
    lines = [json.loads(line) for line in open(f"{path}/log.jsonl")]
    assert lines == [dict(step=1, val_loss=None), dict(step=3, val_loss=1.25)]
    folder.save(state, identity)
    if kind is CarefulFolder:
        folder.release()  # as the end of the process does
    folder, _ = folders(kind, path, t)
    found = folder.resume(identity)
    for name, value in state.items():
        if name not in ("model", "optimizer"):
            assert found[name] == value, name
    assert all(torch.equal(found["model"][key], each) for key, each in state["model"].items())
    with pytest.raises(ValueError, match="trained (with|on)"):  # another data's checkpoint
        folder.resume(identity | dict(fingerprint=[1, 3]))
    with pytest.raises(ValueError, match="exists; give another --name"):
        folder.begin(identity, None)
    before = {name: (tmp_path / "run" / name).read_bytes() for name in ("state.pt", "log.jsonl")}

    def full(*a, **k):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(torch, "save", full)
    with pytest.raises(OSError, match="No space left"):
        folder.save(state | dict(step=4), identity)
    there = {name: (tmp_path / "run" / name).read_bytes() for name in before}
    assert there == before  # each file is whole, the new one or the old one
    assert folder.resume(identity)["step"] == 3


def test_without_a_folder_nothing_is_written(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    settings = dict(n_layers=1, d_model=16, d_ff=16, max_rows=60, steps=3, warmup_steps=0)
    settings |= dict(eval_problems=3, watch_problems=0)
    m, t = md.configs(**settings | dict(batch_size=4, grad_accum=1, eval_blocks=2, eval_every=1))
    model, log = md.train(m, t, md.load_data(t, m.block_size))
    assert not model.training and [record["step"] for record in log] == [1, 2, 3]
    assert list(tmp_path.iterdir()) == [] and capsys.readouterr().out.count(" step ") == 3
    m, t = md.configs(**settings | dict(vocab_size=9, block_size=11, steps=1, eval_problems=0))
    data = md.Data(own(m, t).train, own(m, t).val)  # which does not say how many words it has
    assert md.train(m, t, data)[0].n_words == 9


# ---------- make_model ----------

MODELS = {
    "the file's": (md.GPT, md.ModelConfig, {}),
    "the file's, looped": (md.GPT, md.ModelConfig, dict(n_loops=3, tie_weights=False)),
    "the laboratory's": (variants.GPT, configs.ModelConfig, {}),
    "rotary": (variants.GPT, configs.ModelConfig, dict(position="rotary", d_ff=0)),
    "no position": (variants.GPT, configs.ModelConfig, dict(position="none", bias=True)),
    "heads by layer": (variants.GPT, configs.ModelConfig, dict(n_heads=(4, 2))),
    **{start: (variants.GPT, configs.ModelConfig, dict(loop_start=start, n_loops=3))
       for start in configs.LOOP_STARTS},
    "kept": (variants.GPT, configs.ModelConfig, dict(n_loops=2, loop_keeps=5)),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_a_model_gives_logits_or_sums_and_counts(name):
    make, kind, changes = MODELS[name]
    torch.manual_seed(0)
    sizes = dict(vocab_size=61, block_size=24, n_layers=2, n_heads=4, d_model=32, d_ff=64)
    gpt = make(kind(**sizes | dict(dropout=0.0) | changes)).eval()
    tokens = torch.randint(61, (5, 16))
    targets = tokens.roll(-1, 1)
    for i in range(5):  # uneven numbers of targets; one row has none
        targets[i, 4 * i :] = -100
    logits = gpt(tokens)
    assert logits.shape == (5, 16, 61)
    loss_sum, n = gpt(tokens, targets)
    assert loss_sum.shape == n.shape == (5,) and n.tolist() == [0, 4, 8, 12, 16]
    by_hand = F.cross_entropy(logits.transpose(1, 2), targets, reduction="none").sum(1)
    torch.testing.assert_close(loss_sum, by_hand, atol=1e-4, rtol=1e-5)
    (loss_sum.sum() / n.sum()).backward()
    ours = {key: p.grad.clone() for key, p in gpt.named_parameters()}
    gpt.zero_grad()
    (F.cross_entropy(gpt(tokens).flatten(0, 1), targets.flatten())).backward()
    for key, p in gpt.named_parameters():
        torch.testing.assert_close(ours[key], p.grad, atol=1e-6, rtol=1e-4, msg=key)
    # what it declares of itself: its loops, its norm and its head
    *_, last = gpt.run_loops(tokens)
    torch.testing.assert_close(gpt.norm(last) @ gpt.head_weight.T, logits, atol=1e-4, rtol=1e-4)
    later = tokens.clone()
    later[:, 9] = (later[:, 9] + 1) % 61  # no token sees a later one
    difference = (gpt(later) - logits).abs().amax(-1)
    assert (difference[:, :9] == 0).all() and (difference[:, 9:] > 0).any()


# ---------- on_log and stop ----------


def test_each_record_is_told_once_in_order_and_stop_is_asked_after_each_step(tmp_path, data):
    """And a run that is stopped goes on to the same weights, bit for bit, with dropout."""
    settings = dict(n_layers=1, d_model=16, d_ff=16, dropout=0.1, steps=7, warmup_steps=0)
    settings |= dict(batch_size=4, grad_accum=1, eval_every=3, eval_blocks=2, eval_problems=0)
    settings |= dict(watch_problems=0)
    m, t = md.configs(**settings)
    plain = md.load_data(dataclasses.replace(t, max_rows=60), m.block_size)
    told, asked = [], []
    model, log = md.train(m, t, plain, on_log=told.append, stop=lambda: asked.append(1) or False)
    assert told == log and [record["step"] for record in log] == [1, 3, 6, 7] and len(asked) >= 6
    told.clear()
    folder, asks = md.Folder(str(tmp_path / "run")), iter([False, True])
    _, part = md.train(m, t, plain, folder, on_log=told.append, stop=lambda: next(asks))
    state = torch.load(tmp_path / "run" / "state.pt", weights_only=True)
    assert told == part and state["step"] == 2 and state["log"] == part
    told.clear()
    again, rest = md.train(m, t, plain, folder, resume=True, on_log=told.append)
    assert [record["train_loss"] for record in rest] == [record["train_loss"] for record in log]
    assert told == rest[len(part) :]  # what was told before is not told again
    assert same_weights(model, again)
    path = tmp_path / "run" / "log.jsonl"
    kept = path.read_text()
    path.write_text("")  # killed between its weights and its log
    assert md.train(m, t, plain, folder, resume=True)[1] == rest and path.read_text() == kept
    # the laboratory's: a tracker is told the same
    m, t = configs.make("laptop", **SMALL, block_size=80, out_dir=str(tmp_path), name="lab")
    seen = []
    run = running.train(m, t, to_data.load_data(t, 80, data.tokenizer), tell=seen.append)
    assert seen == run.log
