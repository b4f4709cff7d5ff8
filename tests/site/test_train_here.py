"""Train it here: training.js computes what PyTorch computes, and the boxes show what it learns."""

import base64
import json
import re

import pytest
import safetensors.torch
import torch

import browser
import minidepth as md
from conftest import ROOT
from minidepth_lab.base import configs
from minidepth_lab.models import variants
from minidepth_lab.tasks import TASKS

ASSETS = ROOT / "docs" / "assets"
MODELS = {  # name of the task in training.js: (its task here, its sizes, the model)
    "questions": ("icqa", {}, dict(n_layers=2, n_heads=2, d_model=64, vocab_size=32)),
    "walk": (
        "walk",
        dict(ring=8, hops=4),
        dict(n_layers=1, n_heads=4, d_model=32, vocab_size=16, n_loops=5, loop_start="recall"),
    ),
}


def model_of(name, **changes):
    torch.manual_seed(0)
    rest = dict(block_size=24, d_ff=0, dropout=0.0, tie_weights=False, init_std=0.1)
    model = variants.GPT(configs.ModelConfig(**(MODELS[name][2] | rest | changes)))
    with torch.no_grad():  # so that the gradient of no norm is that of its first value
        for parameter in model.parameters():
            parameter.add_(0.05 * torch.randn(parameter.shape))
    return model


def drawn(name, batch, seed):
    """Sequences of the task here → (tokens, targets), and the same as training.js has them."""
    task, sizes, _ = MODELS[name]
    tokens, targets = TASKS[task].draw(batch, torch.Generator().manual_seed(seed), **sizes)
    by_loop = targets if targets.ndim == 3 else targets[:, None]
    theirs = []
    for line, rows in zip(tokens.tolist(), by_loop.tolist()):
        asked = [
            dict(place=place, loop=loop + 1, token=token)
            for loop, row in enumerate(rows)
            for place, token in enumerate(row)
            if token != -100
        ]
        theirs.append(dict(tokens=line, targets=asked))
    return tokens, targets, theirs


def as_file(model):
    """The script that gives a model's weights to the page."""
    data = safetensors.torch.save({name: w.data for name, w in model.named_parameters()})
    text = base64.b64encode(data).decode()
    return f"m.readSafetensors(Uint8Array.from(atob('{text}'), (c) => c.charCodeAt(0)).buffer)"


@pytest.mark.parametrize(
    ("name", "start", "keeps"),
    [
        ("questions", "state", 0),
        *(("walk", start, n) for start in configs.LOOP_STARTS for n in (0, 16)),
    ],
)
def test_gradients_are_those_of_pytorch(in_page, name, start, keeps):
    again = dict(loop_start=start, loop_keeps=keeps)
    model = model_of(name, **again)
    tokens, targets, theirs = drawn(name, 3, seed=3)
    loss, n = model(tokens, targets)
    (loss.sum() / n.sum()).backward()
    found = in_page(f"""
        const changes = {json.dumps(MODELS[name][2] | again)}
        const config = t.settings({{ ...t.{name}.config, ...changes }})
        const model = new m.GPT(config, {as_file(model)})
        const gradients = t.zeros(config)
        const sequences = {json.dumps(theirs)}
        const n = sequences.length * sequences[0].targets.length
        let loss = 0
        for (const each of sequences)
          for (const read of t.backward(model, gradients, each, 1 / n)) loss += read.loss / n
        const lists = Object.entries(gradients).map(([name, {{ data }}]) => [name, [...data]])
        return {{ loss, gradients: Object.fromEntries(lists) }}""")
    assert found["loss"] == pytest.approx((loss.sum() / n.sum()).item(), abs=1e-5)
    ours = dict(model.named_parameters())
    assert found["gradients"].keys() == ours.keys()
    for key, parameter in ours.items():
        gradient = torch.tensor(found["gradients"][key]).view(parameter.shape)
        assert (gradient - parameter.grad).norm() < 1e-3 * parameter.grad.norm(), key


@pytest.mark.parametrize("name", MODELS)
def test_steps_have_the_losses_of_pytorch(in_page, name):
    model = model_of(name)
    recipe = dict(steps=10, batch=4, lr=4e-3, warmup=2, beta1=0.7, weightDecay=5.0)
    rates = configs.TrainConfig(steps=10, lr=4e-3, warmup_steps=2, beta1=0.7, weight_decay=5.0)
    batches = [drawn(name, 4, seed=step) for step in range(10)]
    losses = in_page(f"""
        const task = {{ ...t.{name}, recipe: {json.dumps(recipe)} }}
        const run = new t.Training(task, {json.dumps(MODELS[name][2])}, 0, {as_file(model)})
        return {json.dumps([theirs for _, _, theirs in batches])}.map((each) => run.step(each))""")
    optimizer = md.make_optimizer(model, rates)
    for step, (tokens, targets, _) in enumerate(batches):
        for group in optimizer.param_groups:
            group["lr"] = md.lr_at(step, rates)
        loss, n = model(tokens, targets)
        loss = loss.sum() / n.sum()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), rates.grad_clip)
        optimizer.step()
        optimizer.zero_grad()
        assert losses[step] == pytest.approx(loss.item(), abs=1e-3)


@pytest.mark.parametrize("name", MODELS)
def test_a_sequence_is_one_of_the_task(in_page, name):
    """Its answers follow from its pairs, and over many draws every token is used."""
    hops = MODELS[name][1].get("hops", 1)
    lines = in_page(f"""
        const random = t.randomFrom(5)
        return Array.from({{ length: 200 }}, () => t.{name}.draw(random, {hops}))""")
    seen = set()
    for line in lines:
        tokens = line["tokens"]
        follows = dict(zip(tokens[:16:2], tokens[1:16:2]))
        assert len(follows) == 8 == len(set(follows.values())) == len(set(tokens[16:]))
        assert len(line["targets"]) == 8 * hops
        for target in line["targets"]:
            token = tokens[target["place"]]
            for _ in range(max(1, target["loop"] - 1)):
                token = follows[token]
            assert token == target["token"]
        seen |= set(tokens)
    assert seen == set(range(MODELS[name][2]["vocab_size"]))


def test_the_file_of_weights_is_read_by_pytorch(in_page, tmp_path):
    """What the page offers for download, loaded into a model here, gives the page's logits."""
    found = in_page("""
        const run = new t.Training(t.questions, { n_layers: 2 }, 7)
        const bytes = t.asSafetensors(run.config, run.model.weights)
        const { tokens, targets, shares } = run.example()
        const text = [...bytes].map((byte) => String.fromCharCode(byte)).join("")
        return { bytes: btoa(text), tokens, targets, shares: shares.map((row) => [...row]) }""")
    path = tmp_path / "weights.safetensors"
    path.write_bytes(base64.b64decode(found["bytes"]))
    with safetensors.safe_open(path, "pt") as file:
        model = variants.GPT(configs.ModelConfig(**json.loads(file.metadata()["config"])))
    model.load_state_dict(safetensors.torch.load_file(path))
    with torch.no_grad():
        shares = model(torch.tensor([found["tokens"]]))[0].softmax(-1)
    places = [target["place"] for target in found["targets"]]
    assert torch.allclose(shares[places], torch.tensor(found["shares"]), atol=1e-5)


def test_a_head_that_is_switched_off_adds_nothing(in_page):
    """The answers are those of the model whose head's output is made 0 before the output matrix."""
    model = model_of("questions")
    tokens, targets, theirs = drawn("questions", 50, seed=5)  # as many as it tests
    without, with_all, plain = in_page(f"""
        const lists = {json.dumps(theirs)}
        let n = 0
        const task = {{ ...t.questions, draw: () => lists[n++ % lists.length] }}
        const run = new t.Training(task, {{ n_layers: 2 }}, 0, {as_file(model)})
        return [run.without([[0, 1]]), run.without([]), run.accuracy()[1]]""")

    def right():
        with torch.no_grad():
            return (model(tokens).argmax(-1) == targets)[targets != -100].float().mean().item()

    assert with_all == plain == pytest.approx(right(), abs=1e-6)  # the weights are as they were
    with torch.no_grad():
        model.blocks[0].attn.out.weight[:, 32:] = 0
    assert without == pytest.approx(right(), abs=1e-6) and without != plain


# ---------- the boxes ----------

STEPS = """[...document.querySelectorAll("polyline")].map((line) =>
  line.getAttribute("points").split(" ").length)"""
WORDS = "document.querySelector('.said').textContent"
BOTH_DONE = "document.querySelectorAll('a[download]').length === 2"


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """The address of the scripts, with trainings of 40 steps on two sequences, tested on five."""
    folder = tmp_path_factory.mktemp("quick") / "assets"
    folder.mkdir()
    for path in [*ASSETS.glob("*.js"), *ASSETS.glob("*.css")]:
        text = path.read_text()
        if path.name == "training.js":
            text, n = re.subn(r"steps: \d+, batch: \d+", "steps: 40, batch: 2", text)
            text, once = re.subn(r"TESTS = \d+", "TESTS = 5", text)
            assert (n, once) == (2, 1)
        (folder / path.name).write_text(text)
    with browser.serving(folder.parent) as address:
        yield address + "assets/"


def test_two_models_train_side_by_side(tab, quick):
    tab.box(quick, "train", None)
    assert tab.run("document.querySelector('.ask').disabled")  # one predicts first
    tab.press("two layers")
    tab.run("document.querySelector('.ask').focus()")
    tab.press("Train both")
    live = "document.querySelector('.said').getAttribute('aria-live')"
    assert tab.run(live) == "off"
    tab.until(BOTH_DONE)
    assert tab.run(STEPS) == [5, 5] and tab.run(live) == "polite"  # 0, 10, 20, 30, 40
    assert tab.run("document.activeElement.textContent") == "Train both"  # the focus stayed
    said = tab.run(WORDS)
    assert "After 40 steps" in said and "You had said “two layers”" in said
    assert "your prediction was wrong" in said  # on 80 sequences nothing is learned
    assert tab.count(".pair svg path") > 20
    names = tab.run("[...document.querySelectorAll('a')].map((a) => a.download)")
    assert {name[10:17] for name in names} == {"1-layer", "2-layer"}
    assert names[0].endswith("-seed-1.safetensors")
    shares = "document.querySelector('[aria-label=heads] + p').textContent"
    tab.until(f"{shares}.startsWith('With all')")
    tab.press("layer 1, head 1")
    tab.until(f"{shares}.startsWith('Without this head')")
    tab.press("layer 2, head 2")
    tab.until(f"{shares}.startsWith('Without these heads')")
    tab.press("Another seed")
    assert tab.values("input[type=number]") != ["1"]
    tab.press("Stop")
    assert tab.texts(".ask") == ["Stopping …"]
    tab.until(BOTH_DONE)
    assert not tab.complaints()


@pytest.mark.parametrize(("box", "train"), [("train", "Train both"), ("loops", "Train it")])
def test_a_browser_that_cannot_train_says_so_and_can_be_asked_again(tab, quick, box, train):
    tab.box(quick, box, None)
    tab.run("Worker = class extends Worker { constructor() { super('/nowhere.js') } }")
    tab.run("document.querySelector('.ask').disabled") and tab.press("neither")
    tab.press(train)
    tab.until("document.body.innerText.includes('does not train here')")
    assert tab.texts(".ask") == [train]


def test_a_hidden_tab_waits(tab, quick):
    tab.box(quick, "train", None)
    hidden = """(value) => {
      Object.defineProperty(document, "hidden", { value, configurable: true })
      document.dispatchEvent(new Event("visibilitychange"))
    }"""
    tab.press("neither")
    tab.run(f"({hidden})(true)")
    tab.press("Train both")
    tab.until("document.querySelectorAll('polyline').length === 2")  # before the first step
    tab.run("new Promise((resolve) => setTimeout(resolve, 500))")
    assert tab.run(STEPS) == [1, 1]
    tab.run(f"({hidden})(false)")
    tab.until(BOTH_DONE)
    assert "your prediction held" in tab.run(WORDS) and not tab.complaints()


def test_walkers_train_with_the_loops_that_were_chosen_and_are_compared(tab, quick):
    tab.box(quick, "loops", None)
    tab.choose("how many loops", "3")
    for once in (False, True):
        if once:
            tab.click("input[type=checkbox]")
        note, *_ = tab.texts(".said")
        assert ("fails" in note) == once
        tab.press("Train it")
        tab.until(f"document.querySelectorAll('li').length === {1 + once}")
        _, words, *_ = tab.texts(".said")
        assert re.match("Step 40 of 40, .* s: 1 hop .* %, 2 hops .* %", words)
        # one hop and two over training, and over hops each run so far
        assert tab.run(STEPS) == [5, 5, *([100] * (1 + once))]
        link = "document.querySelector('a[download]')"
        assert ("read-once" in tab.run(f"{link}.download")) == once
        file = f"""fetch({link}.href).then((r) => r.arrayBuffer())
          .then((bytes) => new TextDecoder().decode(bytes.slice(0, 600)))"""
        assert f'\\"loop_keeps\\":{16 if once else 0}' in tab.run(file)
    plain, read_once = tab.texts("li")
    assert "pairs that change, 3 loops, seed 1:" in plain and "read once, 3 loops" in read_once
    assert plain.endswith("of the questions at 100")
    assert tab.run("location.search") == "?loops-loops=3&loops-once=1&loops-seed=1"
    tab.press("Forget these runs")
    assert not tab.count("li") and not tab.complaints()


def test_a_link_opens_the_walker_as_it_was(tab, quick):
    tab.box(quick + "?loops-loops=5&loops-once=1&loops-seed=77", "loops", None)
    assert tab.values("select, input[type=number]") == ["5", "77"]
    assert tab.run("document.querySelector('input[type=checkbox]').checked")
    tab.box(quick + "?loops-loops=9&loops-seed=5x", "loops", None)
    assert tab.values("select") == ["4"] and not tab.complaints()
