"""The task `written` and its study: what stands at the places to write in, and what is a target,
against a walk along the pairs."""

import pytest
import torch

import minidepth as md
import train
from conftest import changed
from minidepth_lab import tasks
from minidepth_lab.measure import results
from minidepth_lab.show import figures
from minidepth_lab.studies import written
from minidepth_lab.tasks.written import WAYS, own_steps

TASK = tasks.TASKS["written"]
BLANK = 16


def questions(way, n=200, **sizes):
    """(letters of the ring, its walk from the question's letter, k, tokens and targets at the
    places 1, 2, …) of all questions of n sequences."""
    tokens, targets = TASK.draw(n, md.generator("test"), way=way, **sizes)
    assert tokens.shape == targets.shape == (n, 16 + 48 * 4)
    for x, y in zip(tokens.tolist(), targets.tolist()):
        follows = dict(zip(x[0:16:2], x[1:16:2]))
        assert y[:16] == [-100] * 16
        for at in range(16, len(x), 4):
            walk = [x[at + 1]]
            for _ in range(3):
                walk.append(follows[walk[-1]])
            assert y[at] == -100
            yield set(follows), walk, x[at] - BLANK, x[at + 1 : at + 4], y[at + 1 : at + 4]


@pytest.mark.parametrize("way", WAYS)
def test_what_each_way_shows_and_asks(way):
    seen = set()
    for letters, walk, k, shown, wanted in questions(way):
        seen.add(k)
        blanks, none = [BLANK] * (3 - k), [-100] * (3 - k)
        steps, answer = walk[1:k], walk[k]
        only = [-100] * (k - 1) + [answer] + none
        expected = {
            "direct": ([BLANK] * 2, [answer] + [-100] * 2),
            "filler": ([BLANK] * 2, only),
            "random": (shown[1:k] + blanks, only),
            "hidden": ([BLANK] * 2, steps + [answer] + none),
            "given": (steps + blanks, only),
            "backwards": (steps[::-1] + blanks, steps[::-1] + [answer] + none),
            "written": (steps + blanks, steps + [answer] + none),
        }
        assert shown[0] == walk[0] and (shown[1:], wanted) == expected[way]
        assert set(shown[1:k]) <= letters | {BLANK}
    assert seen == {1, 2, 3}


def test_random_letters_are_any_of_the_ring_and_say_nothing():
    counts = {}
    for _, walk, k, shown, _ in questions("random", n=400):
        for token in shown[1:k]:
            step = walk.index(token) if token in walk else "further"
            counts[step] = counts.get(step, 0) + 1
    n = sum(counts.values())
    for step in range(4):  # each of the eight letters as often
        assert abs(counts[step] - n / 8) < 5 * (n / 8) ** 0.5


def test_all_ways_ask_the_same_questions():
    drawn = [list(questions(way, n=20)) for way in WAYS]
    assert all(
        [(walk, k) for _, walk, k, *_ in way] == [(walk, k) for _, walk, k, *_ in drawn[0]]
        for way in drawn
    )


@pytest.mark.parametrize(("done", "lengths"), [(0.0, {1}), (0.2, {1, 2}), (0.3, {1, 2, 3})])
def test_the_lengths_join_by_time(done, lengths):
    tokens, _ = TASK.train_batch(done, 50, md.generator(1), **TASK.sizes | dict(way="given"))
    assert tokens.shape == (50, 208)
    assert set((tokens[tokens > BLANK] - BLANK).tolist()) == lengths


def test_guesses():
    third = 1 / 3
    assert TASK.chance(way="direct") == TASK.chance(way="filler") == TASK.chance(way="random")
    guess, shortcut = TASK.chance(way="filler")
    assert guess == pytest.approx(1 / 7) and shortcut == pytest.approx(third * (1 + 2 / 5))
    # the letters shown are ruled out: 7, 6 and 5 others are left
    assert TASK.chance(way="given") == (pytest.approx(third * (1 / 7 + 1 / 6 + 1 / 5)), None)
    steps = third * (1 / 7 + 1 / (7 * 6) + 1 / (7 * 6 * 5))
    assert (
        TASK.chance(way="written") == TASK.chance(way="backwards") == (pytest.approx(steps), None)
    )
    alone = third * (1 / 7 + 1 / 7**2 + 1 / 7**3)
    assert TASK.chance(way="hidden") == (pytest.approx(alone), None)


class Follows(torch.nn.Module):
    """Says at each place the letter that follows the one that stands there; at the places before
    `silent` something that is no letter."""

    def __init__(self, silent=0):
        super().__init__()
        self.anchor = torch.nn.Parameter(torch.zeros(1))
        self.silent = silent

    def forward(self, x):
        follows = torch.full((len(x), 32), BLANK)
        follows.scatter_(1, x[:, :16:2], x[:, 1:16:2])
        said = follows.gather(1, x)
        place = (torch.arange(x.size(1)) - 16) % 4
        said = torch.where(place < self.silent, BLANK, said)
        return torch.nn.functional.one_hot(said, 32).float()


def accuracies(model, way):
    tokens, targets = TASK.draw(100, md.generator("val"), way=way)
    before = tokens.clone()
    found = TASK.accuracy(model, tokens, targets, **TASK.sizes | dict(way=way))
    assert torch.equal(tokens, before)  # what the model writes is written elsewhere
    by_length = found["accuracy_by"]["lengths"]
    own = {k: part["own"] for k, part in by_length.items() if "own" in part}
    return {k: part["accuracy"] for k, part in by_length.items()}, own


def test_who_follows_the_letter_before_needs_it_written():
    every = {"1": 1.0, "2": 1.0, "3": 1.0}
    assert accuracies(Follows(), "written") == (every, every)
    assert accuracies(Follows(), "given") == (every, every)
    for way in ("filler", "hidden"):
        found, own = accuracies(Follows(), way)
        assert found == {"1": 1.0, "2": 0.0, "3": 0.0} and not own
    found, own = accuracies(Follows(), "direct")
    assert found == {"1": 1.0, "2": 0.0, "3": 0.0} and not own
    found, own = accuracies(Follows(), "backwards")
    assert found == {"1": 1.0, "2": 1.0, "3": 0.0} and own["2"] == 1.0


def test_own_steps_are_those_the_model_writes():
    """A model that is silent at the first place has no step to go on from, but with the true steps
    before each place it knows the answer."""
    found, own = accuracies(Follows(silent=2), "given")
    assert found == {"1": 0.0, "2": 1.0, "3": 1.0}
    assert own == {"1": 0.0, "2": 0.0, "3": 0.0}


def test_own_steps_are_those_of_writing_one_token_after_another(tmp_path):
    sizes = dict(letters=16, ring=8, questions=4, lengths=(1, 2, 3))
    tokens, targets = TASK.draw(300, md.generator("own"), way="written", questions=4)
    torch.manual_seed(1)
    config = md.ModelConfig(vocab_size=20, block_size=32, n_layers=2, n_heads=2, d_model=32)
    model = md.GPT(config).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight) * 0.3)
    k = (tokens[:, 16::4] - BLANK)[..., None]
    written_by_hand, right = tokens.clone(), {1: [], 2: [], 3: []}
    for place in range(17, 32):
        said = tasks.predicted(model, written_by_hand[:, : place + 1])[:, -1]
        number, step = divmod(place - 16, 4)
        done = k[:, number, 0] == step
        for length, hit in zip(k[:, number, 0][done].tolist(), (said == targets[:, place])[done]):
            right[length].append(hit.item())
        if step in (1, 2):
            goes_on = step < k[:, number, 0]
            written_by_hand[:, place + 1] = torch.where(goes_on, said, BLANK)
    expected = {length: sum(hits) / len(hits) for length, hits in right.items()}
    assert own_steps(model, tokens, targets, **sizes) == pytest.approx(expected)
    assert 0 < expected[3] and not torch.equal(written_by_hand, tokens)


def test_own_steps_of_stored_runs(tmp_path, measured_of):
    line = f"--preset written --sizes questions=3,way=given --steps 2 --out_dir {tmp_path} --name a"
    assert train.main([*line.split(), "--warmup_steps", "1", "--eval_blocks", "8"]) == 0
    measured = measured_of(tmp_path / "a", written)
    logged = results.result(tmp_path / "a")["accuracy_by"]["lengths"]
    shares = {k: part["own"] for k, part in logged.items()}
    assert measured["own"] == pytest.approx(shares) and measured["about"]["own"]["date"]


def test_the_study_varies_the_way_alone(tmp_path):
    first, differ = changed(written, "written")
    assert list(differ) == list(WAYS)
    assert (first["n_layers"], first["d_ff"], first["data"]) == (2, 0, ("written",))
    for way, settings in differ.items():
        assert settings == (dict(sizes=(f"way={way}",)) if way != "direct" else {})
    _, differ = changed(written, "written", dict(sizes=("questions=3",)))
    assert differ["given"] == dict(sizes=("questions=3", "way=given"))
    where = ["--out_dir", str(tmp_path)]
    assert train.main(["--study", "written", "--dry_run", *where]) == 0


def test_the_figure_shows_medians(tmp_path, monkeypatch):
    shown = []
    see = lambda axes, rows, form, vmax: shown.append((axes, rows, vmax))  # noqa: E731
    monkeypatch.setattr(figures, "heat_map", see)
    runs = []
    for way, shares in (("written", (1.0, 0.8, 0.9)), ("filler", (0.5, 0.1, 0.2))):
        for k in (1, 3):
            for share in shares:
                labels = dict(model=way, lengths=str(k))
                runs.append(dict(labels=labels, accuracy=share / k))
    written.figure(runs, str(tmp_path))
    assert (tmp_path / "ways.png").stat().st_size > 1000
    ((axes, (filler, all_right), most),) = shown  # in the order of WAYS
    assert most == 1
    assert filler == pytest.approx([0.2, 0.2 / 3]) and all_right == pytest.approx([0.9, 0.3])
    for axis, ticks in ((axes.xaxis, ["1", "3"]), (axes.yaxis, ["filler", "written"])):
        assert [text.get_text() for text in axis.get_ticklabels()] == ticks
    assert axes.get_xlabel() == "steps on"
    assert axes.get_title() == "Two layers: accuracy, median of 3 seeds"


def test_an_unknown_way_is_told(tmp_path, capsys):
    line = f"--preset written --sizes way=aloud --out_dir {tmp_path}".split()
    assert train.main(line) == 2
    said = "way 'aloud' is unknown; choose from direct, filler, random, hidden, given, backwards"
    assert said in capsys.readouterr().err


def test_the_stored_runs_are_five_seeds_of_each_way():
    stored = written.stored()
    assert list(stored) == list(WAYS)
    for way, runs in stored.items():
        assert [run["seed"] for run in runs] == [50, 51, 52, 53, 54]
        assert all(f"way={way}" in run["sizes"] for run in runs)
        own = [run["measured"].get("own") for run in runs]
        assert all(own) if way in ("given", "backwards", "written") else not any(own)
