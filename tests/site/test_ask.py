"""Ask the models: the stored models are those of the stored run, and the browser computes what
PyTorch does."""

import json
import random
import re

import pytest
import torch

import minidepth as md
from minidepth_lab.keep import checkpoints, export
from minidepth_lab.measure import inspect, results, sampling
from minidepth_lab.rows import to_data

NAMES = {1: "1-layer", 2: "2-layers", 12: "12-layers"}
MODELS = {n: results.weights("ask", name) for n, name in NAMES.items()}


@pytest.fixture(scope="module")
def problems():
    return [to_data.problem_of(row) for row in md.embedded_rows(600, held_out=True)]


# ---------- the stored files ----------


def test_halving_keeps_what_loads_and_nothing_of_the_machine(finished, tmp_path):
    export.halve(finished, tmp_path / "half")
    text = (tmp_path / "half" / "config.json").read_text()
    assert json.loads(text)["train"]["out_dir"] == "runs" and str(tmp_path.parent) not in text
    model, tokenizer = checkpoints.load(finished)
    half, same = checkpoints.load(tmp_path / "half")
    assert tokenizer.get_vocab() == same.get_vocab()
    for name, weight in model.state_dict().items():
        assert torch.equal(half.state_dict()[name], weight.half().float()), name
    with pytest.raises(ValueError, match="half is no empty folder; give another name"):
        export.halve(finished, tmp_path / "half")


@pytest.mark.parametrize("n_layers", MODELS)
def test_a_stored_model_answers_what_its_log_says(n_layers, problems):
    """Of the first 60 problems; another run, or other weights, would answer others."""
    model, tokenizer = checkpoints.load(MODELS[n_layers])
    assert model.config.n_layers == n_layers
    (run,) = results.runs("ask", n_layers=n_layers)
    right = sampling.answers_right(model, tokenizer, problems[:60])
    logged = [float(each) for each in run["answers"][:60]]
    assert sum(a != b for a, b in zip(right, logged)) <= 2  # half precision may tip one over
    assert run["accuracy"] == sum(run["answers"]) / 600


# ---------- in the browser ----------


def test_half_precision_is_read_exactly(in_page):
    bits = [0, 1, 1023, 1024, 15360, 31743, 32769, 48128, 12345]
    numbers = torch.tensor(bits, dtype=torch.int32).to(torch.int16).view(torch.float16).tolist()
    assert in_page(f"return {bits}.map(m.half)") == numbers


@pytest.mark.parametrize("n_layers", MODELS)
def test_the_browser_computes_what_pytorch_does(in_page, n_layers, problems):
    """On 6 problems: all logits to 1e-3, attention to 1e-4, the greedy text token by token."""
    model, tokenizer = checkpoints.load(MODELS[n_layers])
    asked = problems[:3] + problems[100:103]
    questions = [problem["messages"][0]["content"] for problem in asked]
    address = f"/results/ask/weights/{MODELS[n_layers].name}.safetensors"
    found = in_page(f"""
        const {{ model, words }} = await m.load("{address}")
        return {json.dumps(questions)}.map((question) => {{
          const prompt = m.promptIds(words, question)
          const cache = m.emptyCache(model)
          const steps = prompt.map((token) => model.forward(token, cache))
          const said = [...m.generate(model, prompt, words.ids["<|im_end|>"])]
          return {{
            prompt,
            logits: steps.map((step) => [...model.read(step.states.at(-1))]),
            attention: steps.at(-1).attention,
            said: said.map((step) => step.token),
            text: said.map((step) => words.text(step.token)).join(""),
          }}
        }})""")
    for problem, theirs in zip(asked, found):
        assert theirs["prompt"] == md.prompt_ids(tokenizer, problem["messages"])
        tokens = torch.tensor([theirs["prompt"]])
        with torch.no_grad():
            logits = model(tokens)[0]
        assert (torch.tensor(theirs["logits"]) - logits).abs().max() < 1e-3
        maps = inspect.attention_maps(model, tokens)
        for layer, weights in enumerate(theirs["attention"]):
            assert torch.allclose(torch.tensor(weights), maps[layer][0, :, -1], atol=1e-4)
        said = greedy(model, tokenizer, tokens)
        assert (theirs["said"], theirs["text"]) == (said, tokenizer.decode(said))


def greedy(model, tokenizer, prompt):
    """What the model writes after a prompt (1, T), as PyTorch computes it."""
    end = tokenizer.convert_tokens_to_ids("<|im_end|>")
    said = sampling.generate(model, prompt, 256, temperature=0, eos=end)
    return said[0, prompt.size(1) :].tolist()


def test_what_is_asked_is_cut_as_the_models_own_tokenizer_cuts_it(in_page, problems):
    """Which puts words together from letters; here each is looked up, and has to be there."""
    _, tokenizer = checkpoints.load(MODELS[1])
    questions = [problem["messages"][0]["content"] for problem in problems]
    ids, said = in_page(f"""
        const {{ words }} = await m.load("/results/ask/weights/{NAMES[1]}.safetensors")
        const ids = {json.dumps(questions)}.map((question) => m.promptIds(words, question))
        try {{
          words.encode("From zebra")
        }} catch (error) {{
          return [ids, error.message]
        }}""")
    assert ids == [md.prompt_ids(tokenizer, problem["messages"]) for problem in problems]
    assert said == " zebra is no word that this model knows"


def test_composed_problems_are_the_embedded_ones(in_page):
    """Question, worked steps, answer and what is held out, as embedded_problem() has them."""
    drawn = in_page("""const made = []
        for (const family of ["chain", "lookup", "order"])
          for (const steps of [1, 2, 3])
            for (let i = 0; i < 20; i++) {
              const settings = p.draw(family, steps)
              made.push({ ...settings, ...p.problem(settings) })
            }
        return made""")
    held = 0
    for made in drawn:
        family, steps, letters = made["family"], made["steps"], made["letters"]
        if family == "chain":
            numbers = [made["first"] / 10 + 0.01, *((n - 1) / 9 + 0.01 for n in made["adds"])]
        else:
            line = letters
            if family == "lookup":
                ring, start = letters[:6], made["from"]
                line = ring[start:] + ring[:start] + letters[6:]
            numbers = [line.index(letter) / 10 for letter in "abcdefghij"]
            numbers += [made["number"] / (steps + 1) + 0.01] * (family == "order")
            numbers += [random.random() for _ in range(6)]  # the order of the pairs
        question, work, answer, _, key, keys = md.embedded_problem(
            iter(numbers).__next__, family, steps
        )
        assert (made["work"], made["answer"]) == (work, answer)
        assert sorted(made["question"]) == sorted(question)  # the pairs in any order
        assert family != "chain" or made["question"] == question
        assert made["heldOut"] == md.is_held_out(key, keys)
        held += made["heldOut"]
    assert len(drawn) == 180 and 0 < held < 180


def test_a_link_opens_the_box_as_it_was(in_page):
    """Settings → what the address has of them → settings that make the same problem."""
    pairs, wrong, own, short = in_page("""const made = []
        for (const family of ["chain", "lookup", "order"])
          for (const steps of [1, 2, 3, 4]) {
            const settings = p.draw(family, steps)
            const text = Object.fromEntries(new URLSearchParams(p.asText(settings)))
            const there = p.fromText(text, p.draw("chain", 1))
            made.push([p.problem(settings), p.problem(there)].map(({question}) => question))
          }
        const wrong = { kind: "riddle", steps: "9", letters: "aab", told: "0x", at: "-1", add: "0" }
        const settings = p.draw("lookup", 2)
        const short = p.fromText({ steps: "1" }, { ...p.draw("order", 3), number: 3 })
        const questions = [p.fromText(wrong, settings), settings].map((s) => p.problem(s).question)
        return [made, ...questions, short.number]
        """)
    assert len(pairs) == 12 and all(a == b for a, b in pairs) and wrong == own
    assert short == 1  # a line of two letters has no fourth one


def test_the_part_answers_from_the_keyboard_and_shows_where_it_looked(tab, docs):
    tab.open(docs + "assets/")
    answered = """new Promise((resolve) => document.querySelector(".widget")
      .addEventListener("answered", () => resolve(true)))"""
    assert tab.run(f"""(async () => {{
      document.body.innerHTML =
        '<div class="widget ask-the-models" data-models="/results/ask/weights"></div>'
      await import("/assets/ask.js")
      return {answered}
    }})()""")  # the first problem is answered without being asked
    assert tab.count(".menus select") == 9  # kind, steps, ring
    assert tab.count(".verdict:not(:empty)") == 3
    for _ in range(10):
        assert "is held out" in tab.texts(".seen")[0]
        tab.click("button.draw")
    for label, value in (
        ("kind of problem", "order"), ("steps", "3"), ("which one is asked", "3"), ("steps", "1"),
        ("letter 1", "c"), ("letter 2", "a"), ("letter 1", "a"), ("which one is asked", "1"),
    ):  # fmt: skip
        tab.choose(label, value)
        assert tab.run("document.activeElement.getAttribute('aria-label')") == label
    question = "Sort a c. Number 2 ?"  # two letters have no fourth one
    assert tab.texts(".question") == [question]
    address = tab.run("location.search")
    assert "ask-kind=order&ask-steps=1" in address and "ask-letters=ac" in address
    tab.run(f"""(() => {{
      const done = {answered}
      document.querySelector("button.ask").focus()
      document.activeElement.click()
      return done
    }})()""")
    model, tokenizer = checkpoints.load(MODELS[12])
    prompt = torch.tensor([md.prompt_ids(tokenizer, [dict(role="user", content=question)])])
    said = greedy(model, tokenizer, prompt)
    answer = md.final_answer(tokenizer.decode(said[:-1]))
    deep = ".answers section:nth-of-type(3)"
    (verdict,) = tab.texts(f"{deep} .verdict")
    assert verdict.startswith(f"✓ {answer} " if answer == "c" else f"✗ {answer}:")
    as_shown = [tokenizer.decode([token]).replace("\n", "⏎").strip() for token in said[:-1]]
    assert tab.texts(f"{deep} button") == [*as_shown, "■"]
    # of all heads the one that looks most at a letter or a number of the question is shown first
    words = [tokenizer.decode([token]) for token in said]
    thoughts = words[: words.index("</think>")]
    last = max(i for i, word in enumerate(thoughts) if re.fullmatch(r" ?[a-j\d]", word))
    read = torch.cat((prompt, torch.tensor([said[:last]], dtype=torch.long)), 1)
    given = [re.fullmatch(r" ?[a-j\d]", tokenizer.decode([id])) is not None for id in prompt[0]]
    (given,) = torch.tensor(given).nonzero(as_tuple=True)
    maps = torch.stack([layer[0, :, -1, given] for layer in inspect.attention_maps(model, read)])
    layer, head = divmod(maps.amax(-1).argmax().item(), maps.size(1))
    assert f", head {head + 1} of layer {layer + 1} of 12 put" in tab.texts(f"{deep} .looked p")[0]
    tab.change(f"{deep} .looked select", "mean", "change")
    mean = f", the mean of the heads of layer {layer + 1} of 12 put"
    assert mean in tab.texts(f"{deep} .looked p")[0]
    other = 2 if layer == 0 else 1
    tab.change(f"{deep} input", other, "input")
    assert f"layer {other} of 12 put" in tab.texts(f"{deep} .looked p")[0]
    assert not tab.complaints()
