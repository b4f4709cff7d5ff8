"""The boxes in pages that answer to the reader: their data is what the models did, and a browser
shows it. Ask the models has test_ask.py, training in the page test_train_here.py."""

import dataclasses
import json
import pathlib
import re

import pytest
import torch

from conftest import same_weights
from minidepth_lab.base import configs
from minidepth_lab.keep import checkpoints, registry, running
from minidepth_lab.measure import inspect, results
from minidepth_lab.models import variants
from minidepth_lab.tasks import TASKS
from minidepth_lab.tasks import walk as walk_task
from minidepth_lab.tasks.base import task_data
from minidepth_lab.tasks.walk import by_hops, pairs_kept
from minidepth_site import widgets

SAID = "document.querySelector('.said').textContent"


def test_data_cannot_end_its_own_box():
    text = widgets.html("look", dict(a="</script><b>"), "none")
    assert text.count("</script>") == 2 and "<b>" in text  # of the data, and of the script


def test_a_notebook_shows_a_table_as_one_and_a_script_as_text(monkeypatch, capsys):
    """And a script nothing of a box. Numbers stand to the right, names to the left."""
    import IPython
    import IPython.display

    shown = []
    monkeypatch.setattr(IPython.display, "display", lambda html: shown.append(html.data))
    widgets.show("look", {})
    named = ["model", "a < b"], [["2 layers", "−1"], ["12 layers", "10.5"]]
    widgets.table(*named)
    widgets.table(["runs", "p"], [[5, "–"], [10, "0.1"]])
    said = "model      a < b\n2 layers      −1\n12 layers   10.5\nruns    p\n   5    –\n  10  0.1\n"
    assert not shown and capsys.readouterr().out == said
    monkeypatch.setattr(IPython, "get_ipython", lambda: "a notebook")
    widgets.show("look", {}, "no script")
    widgets.table(*named)
    box, table = shown
    assert box == widgets.html("look", {}, "no script")
    assert "<th>model</th>" in table and "<td>12 layers</td>" in table
    assert table.count('style="text-align: right"') == 3  # the numbers and what is above them
    assert 'right">a &lt; b</th>' in table and capsys.readouterr().out == ""


def test_what_was_wrong_is_picked_from_what_was_predicted(capsys):
    widgets.wrong("ring-at-test")
    assert capsys.readouterr().out.split("\n")[1].startswith("ring-at-test/A5")
    with pytest.raises(ValueError, match="ring-at-test/A1 was not wrong"):
        widgets.wrong("ring-at-test/A1")


# ---------- where does it look ----------


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Of icqa, one layer and two, after 20 and 60 steps."""
    made = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(task_data, "N_DRAWN", 100)  # sequences that they are tested on
        for n_layers, steps in ((1, 20), (2, 60)):
            out = str(tmp_path_factory.mktemp("runs"))
            sizes = dict(n_layers=n_layers, steps=steps, warmup_steps=10, eval_every=10)
            m, t = registry.configs("tasks", data="icqa", out_dir=out, eval_blocks=8, **sizes)
            made.append(running.train(m, t, inspect.watched(registry.data_of(t))))
    return made


def test_watching_changes_nothing(runs, tmp_path):
    t = dataclasses.replace(checkpoints.read_config(runs[0].dir)[1], out_dir=str(tmp_path))
    plain, watched = running.train(runs[0].model.config, t, registry.data_of(t)), runs[0]
    assert same_weights(plain.model, watched.model)


def test_a_story_is_what_the_model_did(runs):
    story = inspect.story(runs, until=30)
    steps = [[now["step"] for now in model] for model in story["models"]]
    assert steps == [[1, 10, 20], [1, 10, 20, 30, 60]]
    data, model = runs[1].data, runs[1].model
    tokens, targets = inspect.first_test(data)
    assert tokens.shape == targets.shape == (1, 24)
    assert story["tokens"][:2] == [f"q{tokens[0, 0]}", f"a{tokens[0, 1] - 16}"]
    assert story["targets"] == [(i, f"a{targets[0, i] - 16}") for i in range(16, 24)]
    last = story["models"][1][-1]
    assert last["right"] == runs[1].log[-1]["accuracy"]
    maps = inspect.attention_maps(model, tokens)
    seen = torch.ones(24, 24).tril().bool()
    for layer, heads in enumerate(last["maps"]):
        for head, text in enumerate(heads):
            digits = [int(text[i : i + 2]) / 100 for i in range(0, len(text), 2)]
            weights = torch.zeros(24, 24).masked_scatter(seen, torch.tensor(digits))
            assert len(digits) == seen.sum()
            assert torch.allclose(weights, maps[layer][0, head], atol=0.011)
    with torch.no_grad():
        shares = model(tokens).softmax(-1)[0]
    for (place, right), (word, share, right_share) in zip(story["targets"], last["said"]):
        said = shares[place].argmax().item()
        assert word == (f"a{said - 16}" if said >= 16 else f"q{said}")
        assert abs(share - shares[place, said].item()) < 1e-3
        assert abs(right_share - shares[place, 16 + int(right[1:])].item()) < 1e-3


def test_the_lines_are_the_weights_and_the_training_plays(runs, tab, docs):
    story = inspect.story(runs)
    tab.box(docs + "assets/", "look", story)
    last = story["models"][1][-1]
    assert tab.texts("svg text")[-3:] == ["tokens", "after layer 1", "after layer 2"]
    for number, (place, right) in enumerate(story["targets"]):
        tab.press(story["tokens"][place])
        word, share, _ = last["said"][number]
        text = tab.run(SAID)
        assert f"{story['tokens'][place]} is asked. After step 60" in text
        (percent,) = re.findall(rf"answers {word} \((\d+) % sure\)", text)
        assert abs(int(percent) - 100 * share) <= 0.51
        assert ("That is right." in text) == (word == right)
    # the last question, from layer 2 on: the widest line of a head is its largest weight
    tab.press("show head 2")  # off
    maps, start = [heads[0] for heads in last["maps"]], place * (place + 1)
    weights = [int(maps[1][start + 2 * i : start + 2 * i + 2]) / 99 for i in range(place + 1)]
    lower = max(int(maps[0][i : i + 2]) for i in range(0, len(maps[0]), 2)) / 99
    widths = "[...document.querySelectorAll('path')].map((p) => +p.getAttribute('stroke-width'))"
    wide = max(tab.run(widths))
    assert 0.5 + 4.5 * max(weights) <= wide + 1e-6 <= 0.5 + 4.5 * max(*weights, lower) + 2e-6
    assert f"(head 1, {100 * max(weights):.0f} %" in tab.run(SAID)
    tab.slide(0, 0)
    tab.press("1 layer")
    assert "After step 1, the model of 1 layer" in tab.run(SAID)
    # played from its start to its end, and read aloud when it has stopped; a hand stops it
    live = "document.querySelector('.said').getAttribute('aria-live')"
    tab.run("const set = setInterval; setInterval = (f, ms) => set(f, ms / 100)")
    tab.press("play")
    assert tab.run(live) == "off"
    tab.until(f"{live} === 'polite'")
    assert "After step 20," in tab.run(SAID) and tab.values("input[type=range]") == ["2"]
    tab.press("play")
    tab.slide(0, 0)
    assert "play" in tab.texts("button") and not tab.complaints()


# ---------- how many parameters ----------


def test_the_sliders_count_as_the_library_does(tab, docs):
    tab.box(docs + "assets/", "parameters", None)
    report, _ = configs.make("report")
    for L, name in ((1, "report, 1 layer"), (12, "report, 12 layers")):
        counted = variants.parameters(dataclasses.replace(report, n_layers=L))["total"]
        assert f"{name}: {counted:,}" in tab.texts(".bars .name")
    words = [332, 1000, 2048, 5000, 10000, 20000, 32000, 50257, 100000, 151665]
    for i, width, vocabulary, tied in [(0, 0, 0, True), (11, 11, 9, False), (47, 31, 4, True)]:
        for slider, value in enumerate((i, width, vocabulary)):
            tab.slide(slider, value)
        if tab.run("document.querySelector('[type=checkbox]').checked") != tied:
            tab.click("[type=checkbox]")
        C = 32 * (width + 1)
        sizes = dict(n_layers=i + 1, d_model=C, d_ff=4 * C, vocab_size=words[vocabulary])
        counted = variants.parameters(dataclasses.replace(report, **sizes, tie_weights=tied))
        (said,) = tab.texts("p[aria-live]")
        assert f"Yours has {counted['total']:,} parameters. {counted['layers']:,} of them" in said
        parts = tab.run("[...document.querySelector('.bar').children].map(part => part.title)")
        for text, part in zip(parts, ("embedding", "position", "layers", "head")):
            assert text.endswith(f" {counted[part]:,}")
    assert not tab.complaints()


# ---------- draw one seed ----------


def test_the_draws_are_the_stored_runs():
    data = widgets.seeds()
    assert data["seeds"] == [0, 1, 2, 3, 4] and len(data["accuracy"]) == 7
    stored = results.runs("depth", d_ff=256, n_loops=1, d_model=64)
    assert len(stored) >= 15
    for run in stored:
        name = f"{run['n_layers']} layer{'s' if run['n_layers'] > 1 else ''}"
        assert data["accuracy"][name][run["seed"]] == run["accuracy"]
    a, b = data["accuracy"]["8 layers"], data["accuracy"]["12 layers"]
    assert data["differences"]["8 layers | 12 layers"] == widgets.gap_interval(b, a)


@pytest.mark.filterwarnings("ignore:Precision loss")  # of runs that are all alike
def test_the_interval_of_a_gap_is_paired_where_the_seeds_go_together():
    """By hand: t quantiles 2.776 (4 degrees of freedom), and Welch's of two equal spreads."""
    a = [0.1, 0.2, 0.3, 0.4, 0.5]
    apart, spread = 0.0447214 / 5**0.5, (2 * 0.025 / 5) ** 0.5  # of 0.1, 0.1, 0.2, 0.1, 0.1
    for b, gap, half, told in (
        ([0.2, 0.3, 0.5, 0.5, 0.6], 0.12, 2.776 * apart, "paired"),
        ([0.4, 0.3, 0.5, 0.1, 0.2], 0.0, 2.306 * spread, ""),  # 8 degrees of freedom
        ([1.0] * 5, 0.7, 2.776 * (0.025 / 5) ** 0.5, ""),  # never wrong: of one spread
    ):
        mean, low, high, how = widgets.gap_interval(b, a)
        assert how == told and mean == pytest.approx(gap, abs=1e-9)
        assert (low, high) == pytest.approx((mean - half, mean + half), abs=1e-4)


def test_one_seed_is_drawn_and_its_conclusion_named(tab, docs):
    data = widgets.seeds()
    tab.box(docs + "assets/", "seeds", data)
    a, b = "8 layers", "12 layers"
    wins, seen = 0, set()
    for n in range(1, 6):
        if n > 1:  # the first is drawn already
            tab.press("Draw one seed")
        text, tally = tab.texts(".said")
        (seed,) = map(int, re.findall(r"^Seed (\d):", text))
        ours, theirs = data["accuracy"][b][seed], data["accuracy"][a][seed]
        assert f"{a} {theirs:.3f}, {b} {ours:.3f}." in text
        assert f"“{b if ours > theirs else a}” is better, by {abs(ours - theirs):.3f}." in text
        wins, seen = wins + (ours > theirs), seen | {seed}
        assert f"“{b}” was better in {wins} of {n}." in tally
        assert tab.count("circle") == 2 * n
    mean, low, high, _ = data["differences"][f"{a} | {b}"]
    assert seen == {0, 1, 2, 3, 4} and f"minus “{a}” is {mean:+.3f}" in tally
    assert f"−{-low:.3f} to +{high:.3f}, contains 0" in tally
    tab.view(375, "light")  # a phone's picture is turned
    tab.until("document.querySelector('svg').viewBox.baseVal.width === 330")
    tab.change("select", "12 layers", "change")
    assert "different models" in tab.run(SAID) and not tab.complaints()
    assert tab.run("document.querySelector('.draw').disabled")


# ---------- walk around a ring ----------


@pytest.fixture(scope="module")
def walkers():
    return widgets.walkers()


@pytest.fixture
def walk(tab, docs):
    """Opens the box, when its first model has been loaded → its data and its picture."""

    def opened(search="", motion="reduce", own=False):
        data, picture = widgets.walk(own=own)
        tab.box(f"{docs}assets/{search}", "walk", data, motion)
        tab.until("document.querySelector('select')")
        return data, picture

    return opened


def test_every_stored_model_can_be_chosen_those_that_failed_included(walkers, docs):
    data, picture = widgets.walk()
    assert [each["seed"] for each in data["models"]] == sorted(walkers) == list(range(110, 120))
    learned = [each["hops"] for each in data["models"]]
    assert learned.count(4) == 6 and set(learned) == {3, 4}
    for each in data["models"]:
        weights = results.RESULTS.parent / each["weights"]
        assert weights.stem == walkers[each["seed"]]["id"] and weights.exists()
    assert picture.count("<text") == widgets.RING + 2 + 4  # and after which loop it was where


def test_the_ring_is_asked_as_training_asked():
    """The layout of tokens is that of the task: its own drawn question, put together by hand."""
    drawn = TASKS["ring"].draw(
        20, torch.Generator().manual_seed(0), lengths=widgets.HOPS, questions=1
    )
    for sequence, target in zip(*(part.tolist() for part in drawn)):
        follows = dict(zip(sequence[:16:2], sequence[1:16:2]))
        ring = [sequence[17]]
        while len(ring) < widgets.RING:
            ring.append(follows[ring[-1]])
        order = [ring.index(letter) for letter in sequence[:16:2]]
        hops = ring.index(target[17])
        assert widgets.question_tokens(ring, order, 0, hops).tolist() == sequence


def test_the_browser_walks_as_pytorch_does(in_page, walkers):
    """All shares after every loop to 1e-5, on rings at random."""
    data, _ = widgets.walk()
    (weights,) = [each["weights"] for each in data["models"] if each["seed"] == 112]
    model, _ = checkpoints.load(walkers[112]["folder"])
    generator = torch.Generator().manual_seed(112)
    questions = []
    for hops in widgets.HOPS:
        ring = torch.randperm(16, generator=generator)[: widgets.RING].tolist()
        order = torch.randperm(widgets.RING, generator=generator).tolist()
        questions.append(dict(ring=ring, order=order, start=hops, hops=hops))
    shares = in_page(f"""
      const w = await import("/assets/walk.js")
      const file = await (await fetch("/{weights}")).arrayBuffer()
      const model = new m.GPT({json.dumps(data["config"])}, m.readSafetensors(file))
      return {json.dumps(questions)}.map((question) =>
        w.afterEachLoop(model, w.questionTokens(question)).map((row) => [...row]))""")
    for question, ours in zip(questions, shares):
        tokens = widgets.question_tokens(**question)
        theirs = widgets.after_each_loop(model, tokens)
        with torch.no_grad():
            whole = model(tokens[None])[0, -1].softmax(-1)
        assert theirs.shape == (6, 21) and torch.allclose(theirs[-1], whole, atol=1e-6)
        assert torch.allclose(torch.tensor(ours), theirs, atol=1e-5)


def test_the_picture_without_javascript_is_the_one_with_it(tab, walk):
    _, picture = walk()
    tab.click(".each-loop button", 4)
    box = json.dumps(f"<div>{picture}</div>")
    tab.run(f"document.body.insertAdjacentHTML('beforeend', {box})")
    drawn, still = tab.run("""[...document.querySelectorAll("svg")].map((svg) =>
      [...svg.children].map((shape) => [shape.tagName, shape.getAttribute("class")?.trim() ?? "",
        shape.textContent, shape.getAttribute("d"), shape.getAttribute("transform"),
        shape.getAttribute("points"),
        ...["cx", "cy", "x", "y", "fill-opacity"].map((name) =>
          Math.round(1000 * Number(shape.getAttribute(name))) / 1000)]))""")
    shares = re.findall(r'fill-opacity="([.\d]+)"/><text[^>]*>(.)</text>', picture)
    assert f"After 5 of 5 loops the model is at {max(shares)[1]}. With JavaScript" in picture
    assert [shape[2] for shape in drawn if shape[1] == "small"] == ["2", "3", "4", "5", "of 5"]
    assert len(drawn) == len(still) == 4 * widgets.RING + 4 + 4
    for ours, theirs in zip(drawn, still):
        assert ours[:6] == theirs[:6]
        assert ours[6:] == pytest.approx(theirs[6:], abs=0.06)


def test_a_walk_whose_model_is_not_there_keeps_its_picture_and_says_so(tab, docs):
    data, _ = widgets.walk()
    for each in data["models"]:
        each["weights"] = "nowhere.safetensors"
    tab.box(docs + "assets/", "walk", data)
    tab.until("document.querySelector('.said')")
    said = tab.run("document.querySelector('.widget.walk').innerText")
    assert "no script" in said and "The model could not be loaded: " in said
    assert not tab.count(".widget.walk :is(select, button, input)")


def test_the_walk_says_where_the_model_is(tab, walk, walkers):
    """Every loop of one question, with two models: one that learned four hops, and one that did
    not."""
    question = walk()[0]["question"]
    asked = {name: question[name] for name in ("ring", "order", "start", "hops")}
    goal = question["ring"][4]
    verdicts = []
    for seed in (110, 112):
        tab.run(f"{SAID.removesuffix('.textContent')}.textContent = ''")
        tab.choose("which training", str(seed))
        tab.until(SAID)
        model, _ = checkpoints.load(walkers[seed]["folder"])
        shares = widgets.after_each_loop(model, widgets.question_tokens(**asked))
        for loops, row in enumerate(shares[1:], 1):
            tab.click(".each-loop button", loops - 1)
            text, answer = tab.run(SAID), row.argmax().item()
            assert f"{widgets.LETTERS[answer]} ({100 * row[answer]:.0f} % sure)" in text
            if answer in question["ring"][1:] and loops > 1:
                hops = question["ring"].index(answer)
                assert f"{hops} hop{'s' * (hops > 1)} from g" in text
            assert ("right" in text or "wrong" in text) == (loops == 5)
        marks = ["✓" if row.argmax() == goal else "✗" for row in shares[1:]]
        assert tab.texts(".each-loop span") == marks
        verdicts.append(text.split(". ")[-1])
    wrong = f"That is wrong: the answer is {widgets.LETTERS[goal]}."
    assert verdicts == ["That is right.", wrong] and not tab.complaints()


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_the_walk_plays_and_draws_another_ring(tab, walk, motion):
    walk(motion=motion)
    loop = "document.querySelector('svg text:not(.small):nth-last-of-type(2)').textContent"
    assert tab.run(loop) == "loop 0"
    tab.run("const set = setInterval; setInterval = (f, ms) => set(f, ms / 20)")
    tab.press("▶ Let the model walk")
    assert tab.run(loop) == ("loop 5" if motion == "reduce" else "loop 0")  # the whole at once
    tab.until(f"{loop} === 'loop 5'")
    names = ["▶ Let the model walk", "Another ring", "Copy link"]
    assert tab.texts("button:not(.each-loop *)") == names
    before = tab.texts("svg .share + text")
    tab.press("Another ring")
    tab.until(f"{loop} === 'loop 0'")
    after = tab.texts("svg .share + text")
    assert before != after and len(set(after)) == widgets.RING and not tab.complaints()


def test_a_letter_is_clicked_and_the_address_opens_the_box_so(tab, walk):
    walk()
    click = 'new MouseEvent("click", { bubbles: true })'
    tab.run(f'document.querySelectorAll("svg .share")[3].dispatchEvent({click})')
    tab.choose("how many hops", "2")
    tab.choose("which training", "112")
    tab.until("location.search.includes('walk-seed=112')")
    address = tab.run("location.search")
    for part in ("walk-ring=gbkcmaph", "walk-from=c", "walk-hops=2"):
        assert part in address
    letters = tab.texts("svg .share + text")
    walk(address)
    assert tab.values("select") == ["2", "3", "112"] and tab.texts("svg .share + text") == letters
    walk("?walk-ring=gbkcmapp&walk-from=z&walk-hops=9&walk-told=0&walk-seed=1")
    assert tab.values("select") == ["4", "0", "110"]  # what cannot be is left as it is
    assert not tab.complaints()


# ---------- go on ----------


@pytest.fixture(scope="module")
def further():
    return widgets.further()


@pytest.fixture(scope="module")
def walked(further):
    """Every stored model of the box, by its weights' address, as minidepth.py loads it."""
    addresses = [about["weights"] for about in further["models"]]
    return {each: checkpoints.load(results.weights("walk", pathlib.PurePosixPath(each).stem))[0]
            for each in addresses}  # fmt: skip


def walk_tokens(rings):
    """Sequences that training never shows, (rings, 48)."""
    generator = torch.Generator().manual_seed(4)
    return TASKS["walk"].draw(rings, generator, test=True, ring=16, hops=8)[0]


def test_the_models_that_go_on_are_the_stored_runs(further, walked):
    """Each kind is there, and each does what its run did, on other rings."""
    models = further["models"]
    assert [models[i]["start"] for i in further["first"]] == ["recall", "normalised"]
    assert {about["start"] for about in models} == {"recall", "normalised", "state"}
    tokens = walk_tokens(60)
    for run in results.runs("walk"):
        model = walked.get(f"results/walk/weights/{run['id']}.safetensors")
        for hops, share in by_hops(model, tokens, 16, (8, 31)).items() if model else ():
            stored = run["accuracy_by"]["hops"][str(hops)]["accuracy"]
            assert share == pytest.approx(stored, abs=0.05)
    names = [about["name"] for about in models]
    assert len(names) == len(walked) >= 3 and any("100 % at" in name for name in names)
    assert any(re.search(r": \d % at", name) for name in names)  # one fails


def test_the_browser_loops_on_as_pytorch_does(in_page, further, walked):
    """What is answered, and six loops long the states. Every stored model; one that is told to read
    its pairs once, as no stored one does; and one whose pairs are kept as they are after nine
    loops."""
    recall, normalised = (further["models"][i] for i in further["first"])
    read_once = recall | dict(config=recall["config"] | dict(loop_keeps=32))
    trials = [(about, 25, 25) for about in further["models"]]
    tokens = walk_tokens(1)
    for about, loops, changing in [*trials, (read_once, 6, 6), (normalised, 30, 9)]:
        found = in_page(f"""
          const {{ Walk, loadModel }} = await import("/assets/walking.js")
          const about = {json.dumps(about)}
          const walk = new Walk(await loadModel(about.config, about.weights), {tokens[0].tolist()})
          const pairs = Array.from({{ length: 32 }}, (_, i) => i)
          return Array.from({{ length: {loops} }}, (_, loop) => {{
            walk.step(loop < {changing} ? [] : pairs)
            const said = Array.from({{ length: 16 }}, (_, i) => walk.answer(32 + i))
            return [said, loop < 6 ? walk.states.map((x) => [...x]) : null]
          }})""")
        model = variants.GPT(configs.ModelConfig(**about["config"])).eval()
        model.load_state_dict(walked[about["weights"]].state_dict())
        with torch.no_grad(), pairs_kept(model, 32, after=changing):
            for (said, states), x in zip(found, model.run_loops(tokens, loops=loops), strict=True):
                assert said == (model.norm(x[0, 32:]) @ model.head_weight.T).argmax(-1).tolist()
                if states:
                    assert torch.allclose(torch.tensor(states), x[0], rtol=1e-4, atol=1e-3)


def test_one_goes_on_and_the_other_gets_lost_unless_its_pairs_are_kept(tab, docs, further):
    tab.box(docs + "assets/", "further", further)
    tab.until(SAID)
    assert tab.run(SAID) == "2 loops, 1 hop."

    def walked_on():
        """How many questions of each model are right after 60 loops."""
        tab.run("""(() => { const one = [...document.querySelectorAll("button")]
          .find((button) => button.textContent === "One loop")
          for (let i = 0; i < 58; i++) one.click() })()""")
        assert "60 loops, 59 hops: 3 times round the ring, 51 hops further" in tab.run(SAID)
        return [int(re.findall(r"(\d+) of 16 right", each)[0]) for each in tab.texts(".both .said")]

    right, lost = walked_on()
    assert right >= 14 and lost <= 4
    ring = tab.texts(".both svg")[0][:16]
    tab.click("input[type=checkbox]")
    tab.until(f"{SAID} === '2 loops, 1 hop.'")
    assert tab.texts(".both svg")[0][:16] == ring  # walked anew
    right, found = walked_on()
    assert right >= 14 and found >= 15
    tab.press("Go on")
    tab.until(f"parseInt({SAID}) > 60")
    tab.press("Pause")
    text = tab.run(SAID)
    address = tab.run("location.search")
    assert "further-keep=1" in address and "further-ring=" in address
    tab.choose("model with the input", "1")
    tab.press("Another ring")
    tab.until(f"{SAID} !== {json.dumps(text)}")
    assert not tab.complaints()
    tab.box(f"{docs}assets/{address}", "further", further)
    tab.until(SAID)
    assert tab.texts(".both svg")[0][:16] == ring


def test_a_walk_that_begins_while_another_loads_is_the_one_that_is_shown(tab, docs, further):
    """The first one's model arrives last; and a loop is asked of nothing yet."""
    tab.box(docs + "assets/", "further", further)
    tab.until(SAID)
    tab.run("""(() => {
      const [plain, files] = [fetch, []]
      fetch = (address) => new Promise((resolve) => files.push(() => resolve(plain(address))))
      const menu = document.querySelector("select")
      menu.value = "1"
      menu.dispatchEvent(new Event("change"))
      const press = (text) => [...document.querySelectorAll("button")]
        .find((button) => button.textContent === text).click()
      const said = document.querySelector(".both .said")
      const before = said.textContent
      press("Another ring")
      press("One loop")
      nothing = said.textContent === before
      said.textContent = ""
      files[1]()
      first = files[0]
    })()""")
    shown = "document.querySelector('.both .said').textContent"
    tab.until(shown)
    tab.run("first(), new Promise((resolve) => setTimeout(resolve, 500))")
    assert tab.run(SAID) == "2 loops, 1 hop." and not tab.complaints()
    assert "16 of 16 right" in tab.run(shown) and tab.run("nothing")


# ---------- runs of one's own ----------


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A run of train.py, as its folder has it → the bytes of its weights and settings."""
    monkeypatch.setattr(task_data, "N_DRAWN", 100)  # sequences that it is tested on
    monkeypatch.setattr(walk_task, "RINGS_TESTED", 1)  # which are followed a thousand hops

    def trained(task, **changes):
        small = dict(steps=2, warmup_steps=0, eval_every=50, eval_blocks=2, out_dir=str(tmp_path))
        config, recipe = registry.configs(task, **small, **changes)
        run = pathlib.Path(running.train(config, recipe, registry.data_of(recipe)).dir)
        return (run / "model.safetensors").read_bytes(), (run / "config.json").read_bytes()

    return trained


def test_a_walk_of_ones_own_runs_beside_itself_with_its_pairs_kept(tab, docs, own, further):
    """And what cannot be run says why."""
    weights, settings = own("walk", sizes=("ring=8", "hops=3"), n_loops=4)
    tab.box(docs + "assets/", "further", further)
    tab.until(f"{SAID}.includes('1 hop')")
    tab.give(("model.safetensors", weights))
    tab.until(f"{SAID}.includes('its config.json is needed')")
    tab.give(("model.safetensors", weights), ("config.json", settings))
    tab.until("document.querySelector('strong').textContent === 'Your model'")
    for _ in range(2):
        tab.press("One loop")
    assert "of 8 right" in tab.texts(".both svg")[1] and tab.count("svg .letter") == 2 * 8
    tab.press("Back to ours")
    tab.until("document.querySelectorAll('svg .letter').length === 32")
    assert tab.values("input[type=file]") == [""]  # the same files can be chosen again
    other = settings.replace(b'"d_ff": 0', b'"d_ff": 9')
    tab.give(("model.safetensors", weights), ("config.json", other))
    tab.until(f"{SAID}.includes('this box runs models')")
    other = settings.replace(b'"n_layers": 1', b'"n_layers": 2')
    tab.give(("model.safetensors", weights), ("config.json", other))
    tab.until(f"{SAID}.includes('these weights are not of the model')")
    assert not tab.complaints()


def test_a_ring_of_ones_own_is_asked(tab, walk, own):
    """A run of other sizes than ours, and a walk, which is no ring."""
    sizes = ("letters=20", "ring=10", "questions=50", "lengths=1+2+5")
    weights, settings = own("ring", sizes=sizes, n_layers=1, n_loops=3)
    walk(own=True)
    other = settings.replace(b'"ring"', b'"walk"')
    tab.give(("model.safetensors", weights), ("config.json", other))
    tab.until(f"{SAID}.includes('this box runs a ring')")
    tab.give(("model.safetensors", weights), ("config.json", settings))
    tab.until("document.querySelectorAll('svg .letter').length === 10")
    assert tab.count(".each-loop button") == 3
    options = tab.run("[...document.querySelector('select').options].map((each) => each.value)")
    assert options == ["1", "2", "5"]
    tab.click(".each-loop button", 2)
    assert tab.run(SAID).startswith("After 3 loops it is at")
    tab.press("Back to ours")
    tab.until("document.querySelectorAll('svg .letter').length === 8")
    assert not tab.complaints()


# ---------- deal cards, take it apart ----------


def test_cards_are_dealt(tab, docs):
    tab.box(docs + "assets/", "cards", dict(learned=[6, 0], runs=10))
    assert tab.run(SAID).startswith("As the runs came out: the piles differ by 6.")
    for _ in range(2):
        tab.press("Deal once")
    assert tab.run(SAID).startswith("2 dealt: ")
    assert tab.count(".card.learned") == 6 and tab.count(".card") == 20
    tab.press("Deal 10,000")
    share = float(re.search(r"([\d.]+) %", tab.run(SAID))[1])
    assert 0.6 < share < 1.6 and not tab.complaints()  # Fisher's exact p is 0.0108


def test_a_loop_is_skipped_and_two_questions_swap_states(tab, docs, further):
    tab.box(docs + "assets/", "apart", further)
    tab.until("document.querySelector('table')")
    assert re.match("As it was trained, after 9 loops: .* 8 hops from .*; .* 8 hops", tab.run(SAID))
    tab.click('button[aria-label="skip loop 4"]')
    tab.click('button[aria-label="skip loop 6"]')
    text = tab.run(SAID)
    assert "loops 4, 6 skipped" in text and text.count(" 6 hops from") == 2
    tab.press("As it was trained")
    tab.click('button[aria-label="swap after loop 5"]')
    text = tab.run(SAID)
    # the second letter is five hops after the first: on the other's way, eight hops from its letter
    assert text.count("and 8 hops from") == 2 and " 13 hops from" in text and " 3 hops from" in text
    rows = tab.run("[...document.querySelectorAll('tr')].map((row) => row.cells.length)")
    assert len(rows) == 4 and not tab.complaints()
