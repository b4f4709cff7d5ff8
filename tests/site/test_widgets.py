"""The boxes in pages that answer to the reader: their data is what the models did, and a browser
shows it. Ask the models has test_ask.py."""

import base64
import dataclasses
import json
import pathlib
import re

import pytest
import torch

import browser
from minidepth_lab.base import configs
from minidepth_lab.keep import checkpoints, registry, running
from minidepth_lab.measure import inspect, results
from minidepth_lab.models import variants
from minidepth_lab.tasks import TASKS
from minidepth_lab.tasks.walk import by_hops, pairs_kept
from minidepth_site import widgets

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module")
def tab():
    """(browser, address of docs/), on a page of that address."""
    with browser.on(DOCS) as (tab, address):
        tab.view(1280, "light")
        yield tab, address


def opened(tab, name, data, page="assets/"):
    """The browser, on a page of this address that holds nothing but this box."""
    tab, address = tab
    tab.open(address + page)
    box = widgets.html(name, data, "no script").split("\n")[0]
    style = '<meta name="viewport" content="width=device-width">'
    style += '<link rel="stylesheet" href="/assets/widgets.css">'
    tab.run(f"document.head.innerHTML = {json.dumps(style)}")
    tab.run(f"document.body.innerHTML = {json.dumps(box)}")
    tab.run(f"""new Promise((resolve) => {{
      const script = document.createElement("script")
      script.type = "module"
      script.src = "/assets/{name}.js"
      script.onload = resolve
      document.body.append(script)
    }})""")
    return tab


def complaints(tab):
    return [what for what in tab.complaints() if "favicon" not in what]


def press(tab, text):
    """Click on the button that says this."""
    tab.run(f"""[...document.querySelectorAll("button")]
      .find(button => button.textContent.trim() === {json.dumps(text)}).click()""")


def choose(tab, label, value):
    """Choose from the menu of this name."""
    tab.run(f"""(() => {{
      const menu = document.querySelector('select[aria-label="{label}"]')
      menu.value = {json.dumps(value)}
      menu.dispatchEvent(new Event("change"))
    }})()""")


def slide(tab, number, value):
    tab.run(f"""(() => {{
      const slider = document.querySelectorAll("input[type=range]")[{number}]
      slider.value = {value}
      slider.dispatchEvent(new Event("input"))
    }})()""")


def test_data_cannot_end_its_own_box():
    text = widgets.html("look", dict(a="</script><b>"), "none")
    assert text.count("</script>") == 2 and "<b>" in text  # of the data, and of the script


def test_numbers_of_a_table_stand_to_the_right_and_names_to_the_left(capsys):
    widgets.table(["model", "loss"], [["2 layers", "−1"], ["12 layers", "10.5"]])
    assert capsys.readouterr().out == "model      loss\n2 layers     −1\n12 layers  10.5\n"
    widgets.table(["runs", "p"], [[5, "–"], [10, "0.1"]])
    assert capsys.readouterr().out == "runs    p\n   5    –\n  10  0.1\n"


def test_what_was_wrong_is_picked_from_what_was_predicted(capsys):
    widgets.wrong("ring-at-test")
    assert capsys.readouterr().out.split("\n")[1].startswith("ring-at-test/A5")
    with pytest.raises(ValueError, match="ring-at-test/A1 was not wrong"):
        widgets.wrong("ring-at-test/A1")


def test_a_notebook_shows_a_table_as_one_and_a_script_nothing_of_a_box(monkeypatch, capsys):
    import IPython
    import IPython.display

    shown = []
    monkeypatch.setattr(IPython.display, "display", lambda html: shown.append(html.data))
    widgets.show("look", {})
    assert not shown
    monkeypatch.setattr(IPython, "get_ipython", lambda: "a notebook")
    widgets.show("look", {}, "no script")
    widgets.table(["model", "a < b"], [["2 layers", "−1"], ["12 layers", "10.5"]])
    box, table = shown
    assert box == widgets.html("look", {}, "no script")
    assert "<th>model</th>" in table and "<td>12 layers</td>" in table
    assert table.count('style="text-align: right"') == 3  # the numbers and what is above them
    assert 'right">a &lt; b</th>' in table and 'right">10.5</td>' in table
    assert capsys.readouterr().out == ""


# ---------- where does it look ----------


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Of icqa, one layer and two, after 40 and 150 steps."""
    made = []
    for n_layers, steps in ((1, 40), (2, 150)):
        out = str(tmp_path_factory.mktemp("runs"))
        sizes = dict(n_layers=n_layers, steps=steps, warmup_steps=10, eval_every=20, eval_blocks=8)
        m, t = registry.configs("tasks", data="icqa", out_dir=out, **sizes)
        made.append(running.train(m, t, inspect.watched(registry.data_of(t))))
    return made


def test_watching_changes_nothing(runs, tmp_path):
    run = runs[0]
    t = dataclasses.replace(checkpoints.read_config(run.dir)[1], out_dir=str(tmp_path))
    plain = running.train(run.model.config, t, registry.data_of(t))
    assert [row["train_loss"] for row in plain.log] == [row["train_loss"] for row in run.log]
    assert not hasattr(plain.data, "snapshots")


def test_a_story_is_what_the_model_did(runs):
    story = inspect.story(runs, until=60)
    assert [[now["step"] for now in model] for model in story["models"]] == [
        [1, 20, 40],
        [1, 20, 40, 60, 150],
    ]
    data, model = runs[1].data, runs[1].model
    tokens, targets = inspect.first_test(data)
    assert story["tokens"][:2] == [f"q{tokens[0, 0]}", f"a{tokens[0, 1] - 16}"]
    assert story["targets"] == [(i, f"a{targets[0, i] - 16}") for i in range(16, 24)]
    last = story["models"][1][-1]
    assert last["right"] == runs[1].log[-1]["accuracy"]
    maps = inspect.attention_maps(model, tokens)
    for layer, heads in enumerate(last["maps"]):
        for head, text in enumerate(heads):
            weights = torch.zeros(24, 24)
            digits = iter([int(text[i : i + 2]) for i in range(0, len(text), 2)])
            for query in range(24):
                for key in range(query + 1):
                    weights[query, key] = next(digits) / 100
            assert next(digits, None) is None
            assert torch.allclose(weights, maps[layer][0, head], atol=0.011)
    with torch.no_grad():
        shares = model(tokens).softmax(-1)[0]
    for (place, right), (word, share, right_share) in zip(story["targets"], last["said"]):
        said = shares[place].argmax().item()
        assert word == (f"a{said - 16}" if said >= 16 else f"q{said}")
        assert abs(share - shares[place, said].item()) < 1e-3
        assert abs(right_share - shares[place, 16 + int(right[1:])].item()) < 1e-3


def test_the_lines_are_the_weights(runs, tab):
    story = inspect.story(runs)
    tab = opened(tab, "look", story)
    said = "document.querySelector('.said').textContent"
    last = story["models"][1][-1]
    names = tab.run("[...document.querySelectorAll('svg text')].map(text => text.textContent)")
    assert names[-3:] == ["tokens", "after layer 1", "after layer 2"]
    for number, (place, right) in enumerate(story["targets"]):
        press(tab, story["tokens"][place])
        word, share, _ = last["said"][number]
        text = tab.run(said)
        assert f"{story['tokens'][place]} is asked. After step 150" in text
        (percent,) = re.findall(rf"answers {word} \((\d+) % sure\)", text)
        assert abs(int(percent) - 100 * share) <= 0.51
        assert ("That is right." in text) == (word == right)
    # the last question, from layer 2 on: the widest line of each head is its largest weight
    widths = "[...document.querySelectorAll('path')].map(p => +p.getAttribute('stroke-width'))"
    for head in (1, 2):
        press(tab, f"show head {3 - head}")  # off
        maps = [heads[head - 1] for heads in last["maps"]]
        start = place * (place + 1)
        weights = [int(maps[1][start + 2 * i : start + 2 * i + 2]) / 99 for i in range(place + 1)]
        wide = max(tab.run(widths))
        lower = max(int(maps[0][i : i + 2]) for i in range(0, len(maps[0]), 2)) / 99
        assert 0.5 + 4.5 * max(weights) <= wide + 1e-6 <= 0.5 + 4.5 * max(*weights, lower) + 2e-6
        assert f"(head {head}, {100 * max(weights):.0f} %" in tab.run(said)
        press(tab, f"show head {3 - head}")
    slide(tab, 0, 0)
    assert "After step 1," in tab.run(said)
    press(tab, "1 layer")
    assert "the model of 1 layer" in tab.run(said) and "In layer 2" not in tab.run(said)
    assert not complaints(tab)


def test_the_training_plays_from_its_start_to_its_end(runs, tab):
    story = inspect.story(runs)
    tab = opened(tab, "look", story)
    tab.run("""(() => {
      window.seen = []
      const slider = document.querySelector("input[type=range]")
      const note = () => seen.push(slider.value)
      new MutationObserver(note).observe(slider, { attributeFilter: ["aria-valuetext"] })
    })()""")
    press(tab, "play")
    assert tab.run("document.querySelector('.said').getAttribute('aria-live')") == "off"
    last = len(story["models"][0]) - 1
    tab.run(f"""new Promise((resolve) => {{
      const look = () => (seen.includes("{last}") ? resolve() : setTimeout(look, 50))
      look()
    }})""")
    assert tab.run("seen") == [str(at) for at in range(last + 1)]
    slide(tab, 0, 0)  # who moves the slider stops it
    names = "[...document.querySelectorAll('button')].map(button => button.textContent)"
    assert "play" in tab.run(names) and "pause" not in tab.run(names)
    press(tab, "play")
    press(tab, "pause")
    assert tab.run("document.querySelector('.said').getAttribute('aria-live')") == "polite"
    assert not complaints(tab)


# ---------- how many parameters ----------


def test_the_sliders_count_as_the_library_does(tab):
    tab = opened(tab, "parameters", None)
    names = "[...document.querySelectorAll('.bars .name')].map(name => name.textContent)"
    report, _ = configs.make("report")
    for L in (1, 12):
        counted = variants.parameters(dataclasses.replace(report, n_layers=L))["total"]
        name = f"report, {L} layer{'s' if L > 1 else ''}: {counted:,}"
        assert name in tab.run(names)
    widths = [32 * (i + 1) for i in range(32)]
    words = [332, 1000, 2048, 5000, 10000, 20000, 32000, 50257, 100000, 151665]
    for i, width, vocabulary, tied in [(0, 0, 0, True), (11, 11, 9, False), (47, 31, 4, True)]:
        slide(tab, 0, i)
        slide(tab, 1, width)
        slide(tab, 2, vocabulary)
        if tab.run("document.querySelector('[type=checkbox]').checked") != tied:
            tab.run("document.querySelector('[type=checkbox]').click()")
        C = widths[width]
        sizes = dict(n_layers=i + 1, d_model=C, d_ff=4 * C, vocab_size=words[vocabulary])
        config = dataclasses.replace(report, **sizes, tie_weights=tied)
        counted = variants.parameters(config)
        said = tab.run("document.querySelector('p[aria-live]').textContent")
        assert f"Yours has {counted['total']:,} parameters. {counted['blocks']:,} of them" in said
        parts = tab.run("[...document.querySelector('.bar').children].map(part => part.title)")
        for text, part in zip(parts, ("embedding", "position", "blocks", "head")):
            assert text.endswith(f" {counted[part]:,}")
        assert f"{100 * counted['blocks'] / counted['total']:.1f} %" in said
    slide(tab, 0, 99)  # no further than to the last number of its list
    assert tab.run("document.querySelector('label span').textContent") == "48"
    assert not complaints(tab)


# ---------- draw one seed ----------


def test_the_draws_are_the_stored_runs():
    data = widgets.seeds()
    assert data["seeds"] == [0, 1, 2, 3, 4] and len(data["accuracy"]) == 7
    runs = {}
    for run in results.runs("depth", d_ff=256, n_loops=1, d_model=64):
        name = f"{run['n_layers']} layer{'s' if run['n_layers'] > 1 else ''}"
        runs[name, run["seed"]] = run["accuracy"]
    assert len(runs) >= 15
    for (name, seed), accuracy in runs.items():
        assert data["accuracy"][name][seed] == accuracy
    a, b = data["accuracy"]["8 layers"], data["accuracy"]["12 layers"]
    gaps = [ours - theirs for ours, theirs in zip(b, a)]
    mean, low, high, paired = data["differences"]["8 layers | 12 layers"]
    assert mean == pytest.approx(sum(gaps) / 5) and low < mean < high
    assert min(gaps) < -0.1 and max(gaps) > 0.1  # one run can say either


@pytest.mark.filterwarnings("ignore:Precision loss")  # of runs that are all alike
def test_the_interval_of_a_gap_is_paired_where_the_seeds_go_together():
    """By hand: t quantiles 2.776 (4 degrees of freedom), and Welch's of two equal spreads."""
    a, b = [0.1, 0.2, 0.3, 0.4, 0.5], [0.2, 0.3, 0.5, 0.5, 0.6]
    mean, low, high, how = widgets.gap_interval(b, a)
    half = 2.776 * 0.0447214 / 5**0.5  # the standard deviation of 0.1, 0.1, 0.2, 0.1, 0.1
    assert how == "paired" and mean == pytest.approx(0.12)
    assert (low, high) == pytest.approx((mean - half, mean + half), abs=1e-4)
    mean, low, high, how = widgets.gap_interval([0.4, 0.3, 0.5, 0.1, 0.2], a)
    half = 2.306 * (2 * 0.025 / 5) ** 0.5  # 8 degrees of freedom
    assert how == "" and (low, high) == pytest.approx((mean - half, mean + half), abs=1e-4)
    mean, low, high, how = widgets.gap_interval([1.0] * 5, a)  # never wrong: Welch's, of one spread
    half = 2.776 * (0.025 / 5) ** 0.5
    assert how == "" and (low, high) == pytest.approx((mean - half, mean + half), abs=1e-4)


def test_one_seed_is_drawn_and_its_conclusion_named(tab):
    data = widgets.seeds()
    tab = opened(tab, "seeds", data)
    said = "document.querySelectorAll('.said')[0].textContent"
    tally = "document.querySelectorAll('.said')[1].textContent"
    a, b = "8 layers", "12 layers"
    wins, seen = 0, set()
    for n in range(1, 6):
        if n > 1:  # the first is drawn already
            press(tab, "Draw one seed")
        text = tab.run(said)
        (seed,) = map(int, re.findall(r"^Seed (\d):", text))
        ours, theirs = data["accuracy"][b][seed], data["accuracy"][a][seed]
        assert f"{a} {theirs:.3f}, {b} {ours:.3f}." in text
        better = b if ours > theirs else a
        assert f"“{better}” is better, by {abs(ours - theirs):.3f}." in text
        wins, seen = wins + (ours > theirs), seen | {seed}
        assert f"“{b}” was better in {wins} of {n}." in tab.run(tally)
        assert tab.run("document.querySelectorAll('circle').length") == 2 * n
    for screen, drawn in ((375, 330), (1280, 640)):  # a phone is turned
        tab.view(screen, "light")
        assert tab.run(f"""new Promise(resolve => {{
          const width = () => document.querySelector("svg").viewBox.baseVal.width
          let n = 0
          const look = () => width() === {drawn} || n++ > 60
            ? resolve(width() === {drawn}) : requestAnimationFrame(look)
          look()
        }})""")
    mean, low, high, _ = data["differences"][f"{a} | {b}"]
    assert seen == {0, 1, 2, 3, 4} and f"minus “{a}” is {mean:+.3f}" in tab.run(tally)
    assert f"−{-low:.3f} to +{high:.3f}, contains 0" in tab.run(tally)
    tab.run("""(() => {
      const menu = document.querySelector("select")
      menu.value = "12 layers"
      menu.dispatchEvent(new Event("change"))
    })()""")
    assert "different models" in tab.run(said)
    assert tab.run("document.querySelector('.draw').disabled")
    assert not complaints(tab)


# ---------- walk around a ring ----------


@pytest.fixture(scope="module")
def walkers():
    return widgets.walkers()


def test_every_stored_model_can_be_chosen_those_that_failed_included(walkers):
    data, picture = widgets.walk()
    assert [each["seed"] for each in data["models"]] == sorted(walkers) == list(range(110, 120))
    learned = [each["hops"] for each in data["models"]]
    assert learned.count(4) == 6 and set(learned) == {3, 4}
    for each in data["models"]:
        weights = DOCS / each["weights"]
        assert weights.stem == walkers[each["seed"]]["id"] and weights.exists()
    assert picture.count("<text") == widgets.RING + 2 + 4  # and after which pass it was where


def walk_opened(tab, page="assets/"):
    """The browser with the box, when its first model has been loaded."""
    data, picture = widgets.walk()
    tab = opened(tab, "walk", data, page)
    tab.run("""new Promise((resolve) => {
      const look = () => document.querySelector("select") ? resolve() : setTimeout(look, 20)
      look()
    })""")
    return tab, data, picture


def test_the_ring_is_asked_as_training_asked():
    """The layout of tokens is that of the task: its own drawn question, put together by hand."""
    tokens, targets = TASKS["ring"].draw(
        20, torch.Generator().manual_seed(0), lengths=widgets.HOPS, questions=1
    )
    for sequence, target in zip(tokens.tolist(), targets.tolist()):
        follows = dict(zip(sequence[:16:2], sequence[1:16:2]))
        ring = [sequence[17]]
        while len(ring) < widgets.RING:
            ring.append(follows[ring[-1]])
        order = [ring.index(letter) for letter in sequence[:16:2]]
        hops = ring.index(target[17])
        assert widgets.question_tokens(ring, order, 0, hops).tolist() == sequence


@pytest.mark.parametrize("seed", [110, 112, 119])
def test_the_browser_walks_as_pytorch_does(tab, walkers, seed):
    """All shares after every loop to 1e-5, on rings at random."""
    data, _ = widgets.walk()
    (weights,) = [each["weights"] for each in data["models"] if each["seed"] == seed]
    model, _ = checkpoints.load(walkers[seed]["folder"])
    generator = torch.Generator().manual_seed(seed)
    questions = []
    for hops in widgets.HOPS * 2:
        ring = torch.randperm(16, generator=generator)[: widgets.RING].tolist()
        order = torch.randperm(widgets.RING, generator=generator).tolist()
        questions.append(dict(ring=ring, order=order, start=hops, hops=hops))
    browser_tab, address = tab
    browser_tab.open(address + "assets/")
    shares = browser_tab.run(f"""(async () => {{
      const m = await import("/assets/minidepth.js")
      const w = await import("/assets/walk.js")
      const file = await (await fetch("/{weights}")).arrayBuffer()
      const model = new m.GPT({json.dumps(data["config"])}, m.readSafetensors(file))
      return {json.dumps(questions)}.map((question) =>
        w.afterEachLoop(model, w.questionTokens(question)).map((row) => [...row]))
    }})()""")
    furthest = 0.0
    for question, ours in zip(questions, shares):
        theirs = widgets.after_each_loop(model, widgets.question_tokens(**question))
        assert theirs.shape == (6, 21)
        assert torch.allclose(theirs[-1], whole_model(model, question), atol=1e-6)
        furthest = max(furthest, (torch.tensor(ours) - theirs).abs().max().item())
    print(f"seed {seed}: largest difference of a share {furthest:.1e}")
    assert furthest < 1e-5


@torch.no_grad()
def whole_model(model, question):
    """The shares of a question's answer as the model itself gives them."""
    tokens = widgets.question_tokens(**question)
    return model(tokens[None])[0, -1].softmax(-1)


def go_to(tab, loops):
    """Press the box of so many passes."""
    tab.run(f"document.querySelectorAll('.passes button')[{loops - 1}].click()")


def test_the_picture_without_javascript_is_the_one_with_it(tab):
    tab, data, picture = walk_opened(tab)
    go_to(tab, 5)
    box = f"<div>{picture}</div>"
    tab.run(f"document.body.insertAdjacentHTML('beforeend', {json.dumps(box)})")
    shapes = """[...document.querySelectorAll("svg")].map((svg) =>
      [...svg.children].map((shape) => [shape.tagName, shape.getAttribute("class")?.trim() ?? "",
        shape.textContent, shape.getAttribute("d"), shape.getAttribute("transform"),
        shape.getAttribute("points"),
        ...["cx", "cy", "x", "y", "fill-opacity"].map((name) =>
          Math.round(1000 * Number(shape.getAttribute(name))) / 1000)]))"""
    shares = re.findall(r'fill-opacity="([.\d]+)"/><text[^>]*>(.)</text>', picture)
    assert f"After 5 of 5 passes the model is at {max(shares)[1]}. With JavaScript" in picture
    drawn, still = tab.run(shapes)
    numbers = [shape[2] for shape in drawn if shape[1] == "small"]
    assert numbers == ["2", "3", "4", "5", "of 5"]  # b, k, c, m
    assert len(drawn) == len(still) == 4 * widgets.RING + 4 + 4
    for ours, theirs in zip(drawn, still):
        assert ours[:6] == theirs[:6]
        assert ours[6:] == pytest.approx(theirs[6:], abs=0.06)


def test_a_walk_whose_model_is_not_there_keeps_its_picture_and_says_so(tab):
    data, picture = widgets.walk()
    for each in data["models"]:
        each["weights"] = "nowhere.safetensors"
    tab = opened(tab, "walk", data)
    box = "document.querySelector('.widget.walk')"
    said = tab.run(f"""new Promise((resolve) => {{
      const look = () => {box}.querySelector(".said") ? resolve({box}.innerText) :
        setTimeout(look, 20)
      look()
    }})""")
    assert "no script" in said and "The model could not be loaded: " in said
    assert tab.run(f"{box}.querySelector('select, button, input')") is None


def test_the_walk_says_where_the_model_is(tab, walkers):
    """Every pass of one question, with two models: one that learned four hops, and one that did
    not."""
    tab, data, _ = walk_opened(tab)
    question = data["question"]
    asked = {name: question[name] for name in ("ring", "order", "start", "hops")}
    right = widgets.LETTERS[question["ring"][4]]
    verdicts_seen = set()
    for seed in (110, 112):
        choose(tab, "which training", str(seed))
        tab.run("""new Promise((resolve) => setTimeout(resolve, 500))""")
        model, _ = checkpoints.load(walkers[seed]["folder"])
        shares = widgets.after_each_loop(model, widgets.question_tokens(**asked))
        for loops, row in enumerate(shares[1:], 1):
            go_to(tab, loops)
            text = tab.run("document.querySelector('.said').textContent")
            answer = row.argmax().item()
            assert f"{widgets.LETTERS[answer]} ({100 * row[answer]:.0f} % sure)" in text
            if answer in question["ring"] and loops > 1:
                hops = question["ring"].index(answer)
                assert f"{hops} hop{'s' * (hops > 1)} from g" in text or hops == 0
            assert ("right" in text or "wrong" in text) == (loops == 5)
        marks = tab.run("[...document.querySelectorAll('.passes span')].map((s) => s.textContent)")
        goal = question["ring"][4]
        assert marks == ["✓" if row.argmax() == goal else "✗" for row in shares[1:]]
        verdicts_seen.add(text.split(". ")[-1])
    assert verdicts_seen == {"That is right.", f"That is wrong: the answer is {right}."}
    assert not complaints(tab)


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_the_walk_plays_and_draws_another_ring(tab, motion):
    wanted = [dict(name="prefers-reduced-motion", value=motion)]
    tab[0].call("Emulation.setEmulatedMedia", features=wanted)
    page, data, _ = walk_opened(tab)
    loop = "document.querySelector('svg text:not(.small):nth-last-of-type(2)').textContent"
    assert page.run(loop) == "pass 0"
    press(page, "▶ Let the model walk")
    assert page.run(loop) == ("pass 5" if motion == "reduce" else "pass 0")  # the whole at once
    assert page.run(f"""new Promise((resolve) => {{
      const look = () => {loop} === "pass 5" ? setTimeout(() => resolve(true), 50)
        : setTimeout(look, 50)
      look()
    }})""")
    names = "[...document.querySelectorAll('button:not(.passes *)')].map((b) => b.textContent)"
    assert page.run(names) == ["▶ Let the model walk", "Another ring", "Copy link"]
    ring = "[...document.querySelectorAll('svg .share + text')].map(text => text.textContent)"
    before = page.run(ring)
    press(page, "Another ring")
    page.run("new Promise((resolve) => setTimeout(resolve, 100))")
    after = page.run(ring)
    assert before != after and len(set(after)) == widgets.RING
    assert page.run("[...document.querySelectorAll('select')][1].options.length") == widgets.RING
    assert not complaints(page)
    page.view(1280, "light")


def test_a_letter_is_clicked_and_the_address_opens_the_box_so(tab):
    page, _, _ = walk_opened(tab)
    ring = "[...document.querySelectorAll('svg .share + text')].map(text => text.textContent)"
    page.run("""document.querySelectorAll("svg .share")[3]
      .dispatchEvent(new MouseEvent("click", { bubbles: true }))""")
    choose(page, "how many hops", "2")
    choose(page, "which training", "112")
    page.run("new Promise((resolve) => setTimeout(resolve, 500))")
    address = page.run("location.search")
    for part in ("walk-ring=gbkcmaph", "walk-from=c", "walk-hops=2", "walk-seed=112"):
        assert part in address
    menus = "[...document.querySelectorAll('select')].map((menu) => menu.value)"
    chosen, letters = page.run(menus), page.run(ring)
    page, _, _ = walk_opened(tab, f"assets/{address}")
    assert page.run(menus) == chosen == ["2", "3", "112"] and page.run(ring) == letters
    wrong = "?walk-ring=gbkcmapp&walk-from=z&walk-hops=9&walk-told=0&walk-seed=1"
    page, data, _ = walk_opened(tab, f"assets/{wrong}")  # what cannot be is left as it is
    assert page.run(menus) == ["4", "0", "110"]
    assert not complaints(page)


# ---------- go on ----------


@pytest.fixture(scope="module")
def walked():
    """Every stored model of the box, by its weights' address, as minidepth.py loads it."""
    addresses = [about["weights"] for about in widgets.further()["models"]]
    names = {address: pathlib.PurePosixPath(address).stem for address in addresses}
    return {
        address: checkpoints.load(results.weights("walk", run_id))[0]
        for address, run_id in names.items()
    }


def walk_tokens(rings):
    """Sequences that training never shows, (rings, 48)."""
    generator = torch.Generator().manual_seed(4)
    return TASKS["walk"].draw(rings, generator, test=True, ring=16, hops=8)[0]


def test_the_models_that_go_on_are_the_stored_runs(walked):
    """Both kinds are there, and each does what its run did, on other rings."""
    data = widgets.further()
    assert [data["models"][i]["start"] for i in data["first"]] == ["recall", "normalised"]
    assert {about["start"] for about in data["models"]} == {"recall", "normalised", "state"}
    tokens = walk_tokens(200)
    for run in results.runs(
        "walk", ring=16, hops=8, loss_after="each", n_layers=1, d_model=64, loop_keeps=0
    ):
        address = f"results/walk/weights/{run['id']}.safetensors"
        if address not in walked:
            continue
        shares = by_hops(walked[address], tokens, 16, (8, 31))
        for hops, share in shares.items():
            stored = run["accuracy_by"]["hops"][str(hops)]["accuracy"]
            assert share == pytest.approx(stored, abs=0.05)
    names = [about["name"] for about in data["models"]]
    assert len(names) == len(walked) >= 3
    assert sum("100 % at" in name for name in names) >= 1  # and one that fails
    assert sum(re.search(r": \d % at", name) is not None for name in names) >= 1


def in_walk(tab, about, tokens, script):
    """What a script gives back that walks (`walk`) with a model of further() on tokens (1, T)."""
    page, address = tab
    page.open(address + "assets/")
    return page.run(f"""(async () => {{
      const {{ Walk, loadModel }} = await import("/assets/walking.js")
      const about = {json.dumps(about)}
      const walk = new Walk(await loadModel(about.config, about.weights), {tokens[0].tolist()})
      {script}
    }})()""")


def test_the_browser_loops_on_as_pytorch_does(tab, walked):
    data = widgets.further()
    tokens = walk_tokens(1)
    for about in data["models"]:
        answers = in_walk(
            tab,
            about,
            tokens,
            """
            const places = Array.from({ length: 16 }, (_, i) => 32 + i)
            return Array.from({ length: 25 }, () => {
              walk.step()
              return places.map((place) => walk.answer(place))
            })""",
        )
        model = walked[about["weights"]]
        with torch.no_grad():
            for ours, x in zip(answers, model.run_loops(tokens, loops=25)):
                logits = model.norm(x[0, 32:]) @ model.head_weight.T
                assert ours == logits.argmax(-1).tolist()


def walked_on(tab, loops):
    """Press Go on until so many loops are made, and say how many questions of each model are right
    then."""
    counter = "document.querySelector('.said').textContent"
    press(tab, "Go on")
    tab.run(f"""new Promise((resolve) => {{
      const look = () => parseInt({counter}) > {loops} ? resolve() : setTimeout(look, 50)
      look()
    }})""")
    press(tab, "Pause")
    said = tab.run("[...document.querySelectorAll('.both .said')].map((said) => said.textContent)")
    return [int(re.findall(r"(\d+) of 16 right", each)[0]) for each in said], said


def test_one_goes_on_and_the_other_gets_lost(tab):
    tab = opened(tab, "further", widgets.further())
    counter = "document.querySelector('.said').textContent"
    tab.run(f"""new Promise((resolve) => {{
      const look = () => {counter} ? resolve() : setTimeout(look, 50)
      look()
    }})""")
    assert tab.run(counter) == "2 loops, 1 hop."
    press(tab, "One loop")
    assert tab.run(counter) == "3 loops, 2 hops."
    (right, lost), (with_it, _) = walked_on(tab, 60)
    text = tab.run(counter)
    loops = int(text.split()[0])
    assert f"{(loops - 1) // 16} times round the ring, {loops - 9} hops further" in text
    assert right >= 14 and lost <= 4
    assert "That is right." in with_it or right < 16
    assert tab.run(counter) == text  # it has stopped
    choose(tab, "model with the input", "1")
    press(tab, "Another ring")
    assert not complaints(tab)


def test_with_its_pairs_kept_the_lost_one_walks_on(tab):
    tab = opened(tab, "further", widgets.further())
    tab.run("""new Promise((resolve) => {
      const look = () => document.querySelector('.both .said').textContent ? resolve()
        : setTimeout(look, 50)
      look()
    })""")
    (_, lost), _ = walked_on(tab, 30)
    ring = tab.run("document.querySelector('.both svg').textContent")[:16]
    tab.run("""(async () => {
      const { Walk } = await import("/assets/walking.js")
      const step = Walk.prototype.step
      window.kept = []  // of each loop of each walk: how many places it leaves as they are
      Walk.prototype.step = function (places = []) {
        window.kept.push([this.loops, places.length])
        return step.call(this, places)
      }
    })()""")
    tab.run("document.querySelector('input[type=checkbox]').click()")
    loops = "parseInt(document.querySelector('.said').textContent)"
    tab.run(f"""new Promise((resolve) => {{
      const look = () => {loops} === 2 ? resolve() : setTimeout(look, 50)
      look()
    }})""")
    assert tab.run("document.querySelector('.both svg').textContent")[:16] == ring  # walked anew
    (right, found), _ = walked_on(tab, 30)
    assert lost <= 4 and found >= 15 and right >= 14
    kept = tab.run("window.kept")  # after the nine loops of training, not before and not later
    assert sorted(kept)[: 2 * 20] == [[n, 32 if n >= 9 else 0] for n in range(20) for _ in "ab"]
    assert not complaints(tab)


def test_the_browser_reads_once_as_pytorch_does(tab, walked):
    """A model whose loops keep its pairs: no stored one does, so one of them is told to."""
    data = widgets.further()
    about = data["models"][data["first"][0]]
    about["config"]["loop_keeps"] = 32
    tokens = walk_tokens(1)
    ours = in_walk(
        tab,
        about,
        tokens,
        """
        return Array.from({ length: 6 }, () => {
          walk.step()
          return walk.states.map((x) => [...x])
        })""",
    )
    model = variants.GPT(configs.ModelConfig(**about["config"]))
    model.load_state_dict(walked[about["weights"]].state_dict())
    with torch.no_grad():
        for states, x in zip(ours, model.run_loops(tokens, loops=6), strict=True):
            assert torch.allclose(torch.tensor(states), x[0], atol=1e-3)


def test_the_browser_keeps_pairs_as_pytorch_does(tab, walked):
    data = widgets.further()
    about = data["models"][data["first"][1]]
    tokens = walk_tokens(1)
    ours = in_walk(
        tab,
        about,
        tokens,
        """
        const pairs = Array.from({ length: 32 }, (_, i) => i)
        for (let i = 0; i < 30; i++) walk.step(i < 9 ? [] : pairs)
        return Array.from({ length: 16 }, (_, i) => walk.answer(32 + i))""",
    )
    model = walked[about["weights"]]
    with torch.no_grad(), pairs_kept(model, 32, after=9):
        *_, x = model.run_loops(tokens, loops=30)
    logits = model.norm(x[0, 32:]) @ model.head_weight.T
    assert ours == logits.argmax(-1).tolist()


def given(tab, *files):
    """Choose these files, (name, bytes), for the box."""
    parts = [dict(name=name, data=base64.b64encode(data).decode()) for name, data in files]
    tab.run(f"""(() => {{
      const transfer = new DataTransfer()
      for (const {{ name, data }} of {json.dumps(parts)})
        transfer.items.add(new File([Uint8Array.from(atob(data), (c) => c.charCodeAt(0))], name))
      const input = document.querySelector("input[type=file]")
      input.files = transfer.files
      input.dispatchEvent(new Event("change"))
    }})()""")


def test_a_walk_of_ones_own_runs_beside_itself_with_its_pairs_kept(tab, tmp_path):
    """A run of train.py, as its folder has it; and what cannot be run says why."""
    sizes = dict(steps=2, warmup_steps=0, eval_every=50, eval_blocks=2, out_dir=str(tmp_path))
    config, recipe = registry.configs("walk", **sizes, sizes=("ring=8", "hops=3"), n_loops=4)
    run = pathlib.Path(running.train(config, recipe, registry.data_of(recipe)).dir)
    settings = (run / "config.json").read_bytes()
    weights = (run / "model.safetensors").read_bytes()
    page = opened(tab, "further", widgets.further())
    counter = "document.querySelector('.said').textContent"
    ready = f"""new Promise((resolve) => {{
      const look = () => {counter}.includes("WORDS") ? resolve(true) : setTimeout(look, 20)
      look()
    }})"""
    assert page.run(ready.replace("WORDS", "1 hop"))
    given(page, ("model.safetensors", weights))
    assert page.run(ready.replace("WORDS", "its config.json is needed"))
    given(page, ("model.safetensors", weights), ("config.json", settings))
    names = "[...document.querySelectorAll('strong')].map((name) => name.textContent)"
    assert page.run(f"""new Promise((resolve) => {{
      let n = 0
      const look = () => {names}[0] === "Your model" || n++ > 500
        ? resolve({names}[0] === "Your model") : setTimeout(look, 20)
      look()
    }})"""), page.run(counter)
    assert page.run("document.querySelectorAll('svg')[0].querySelectorAll('.letter').length") == 8
    for _ in range(2):
        press(page, "One loop")
    assert "of 8 right" in page.run("document.querySelectorAll('svg')[1].textContent")
    press(page, "Back to ours")
    assert page.run("document.querySelectorAll('svg')[0].querySelectorAll('.letter').length") == 16
    given(
        page,
        ("model.safetensors", weights),
        ("config.json", settings.replace(b'"d_ff": 0', b'"d_ff": 9')),
    )
    assert page.run(ready.replace("WORDS", "this box runs models"))
    assert not complaints(page)


def test_a_ring_of_ones_own_is_asked(tab, tmp_path):
    """A run of train.py with other sizes than ours, and a walk, which is no ring."""
    recipe = dict(steps=2, warmup_steps=0, eval_every=50, eval_blocks=2, out_dir=str(tmp_path))
    sizes = ("letters=20", "ring=10", "questions=50", "lengths=1+2+5")
    config, recipe = registry.configs("ring", **recipe, sizes=sizes, n_layers=1, n_loops=3)
    run = pathlib.Path(running.train(config, recipe, registry.data_of(recipe)).dir)
    settings = (run / "config.json").read_bytes()
    weights = (run / "model.safetensors").read_bytes()
    page = opened(tab, "walk", widgets.walk(own=True)[0])
    said = "(document.querySelector('.said')?.textContent ?? '')"
    ready = f"""new Promise((resolve) => {{
      let n = 0
      const look = () => {said}.includes("WORDS") || n++ > 500
        ? resolve({said}.includes("WORDS")) : setTimeout(look, 20)
      look()
    }})"""
    assert page.run(ready.replace("WORDS", "It has no answer yet"))
    other = settings.replace(b'"ring"', b'"walk"')
    given(page, ("model.safetensors", weights), ("config.json", other))
    assert page.run(ready.replace("WORDS", "this box runs a ring"))
    given(page, ("model.safetensors", weights), ("config.json", settings))
    assert page.run(ready.replace("WORDS", "It has no answer yet"))
    assert page.run("document.querySelectorAll('svg .letter').length") == 10
    assert page.run("document.querySelectorAll('.passes button').length") == 3
    hops = "[...document.querySelector('select').options].map((option) => option.value)"
    assert page.run(hops) == ["1", "2", "5"]
    page.run("document.querySelectorAll('.passes button')[2].click()")
    assert page.run(f"{said}").startswith("After 3 passes it is at")
    ring = page.run("[...document.querySelectorAll('svg .share + text')].map((t) => t.textContent)")
    asked = page.run("document.querySelector('select[aria-label=\"how many hops\"]').value")
    press(page, "Back to ours")
    assert page.run(ready.replace("WORDS", "It has no answer yet"))
    assert page.run("document.querySelectorAll('svg .letter').length") == 8
    assert len(set(ring)) == 10 and asked in ("1", "2", "5")
    assert not complaints(page)


def test_cards_are_dealt(tab):
    page = opened(tab, "cards", dict(learned=[6, 0], runs=10))
    said = "document.querySelector('.said').textContent"
    assert page.run(said).startswith("As the runs came out: the piles differ by 6.")
    for _ in range(2):
        press(page, "Deal once")
    assert page.run(said).startswith("2 dealt: ")
    learned = "document.querySelectorAll('.card.learned').length"
    assert page.run(learned) == 6
    assert page.run("document.querySelectorAll('.card').length") == 20
    press(page, "Deal 10,000")
    share = float(re.search(r"([\d.]+) %", page.run(said))[1])
    assert 0.6 < share < 1.6  # Fisher's exact p is 0.0108
    heights = page.run(
        "[...document.querySelectorAll('.bar')].map((bar) => Number(bar.getAttribute('height')))"
    )
    assert len(heights) == 7 and heights.index(max(heights)) == 3
    assert not complaints(page)


# ---------- take it apart ----------


def apart_opened(tab):
    tab = opened(tab, "apart", widgets.further())
    tab.run("""new Promise((resolve) => {
      const look = () => document.querySelector("table") ? resolve() : setTimeout(look, 20)
      look()
    })""")
    return tab


def switch(tab, label):
    tab.run(f"""document.querySelector('button[aria-label="{label}"]').click()""")


def test_a_loop_is_skipped_and_two_questions_swap_states(tab):
    tab = apart_opened(tab)
    said = "document.querySelector('.said').textContent"
    assert re.match("As it was trained, after 9 loops: .* 8 hops from .*; .* 8 hops", tab.run(said))
    switch(tab, "skip loop 4")
    text = tab.run(said)
    assert "loop 4 skipped by both" in text and text.count(" 7 hops from") == 2
    switch(tab, "skip loop 6")
    text = tab.run(said)
    assert "loops 4, 6 skipped" in text and text.count(" 6 hops from") == 2
    press(tab, "As it was trained")
    switch(tab, "swap after loop 5")
    text = tab.run(said)
    # the second letter is five hops after the first: on the other's way, eight hops from its letter
    assert text.count("and 8 hops from") == 2 and " 13 hops from" in text and " 3 hops from" in text
    rows = tab.run("""[...document.querySelectorAll("tr")].map((row) =>
      [...row.querySelectorAll("td")].map((cell) => cell.textContent))""")
    assert len(rows) == 4 and all(len(row) == 9 for row in rows)
    switch(tab, "swap after loop 5")
    assert tab.run(said).startswith("As it was trained")
    assert not complaints(tab)
