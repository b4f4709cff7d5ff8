"""Questions that look at the map alone: what is drawn, against a walk by hand, and what counts."""

import pathlib

import pytest
import torch
import torch.nn.functional as F

import minidepth as md
from minidepth_lab.studies import map_alone


def drawn(kind, ring=None, test=False, n=50):
    return map_alone.draw(kind, n, md.generator("drawn"), ring, test)


@pytest.mark.parametrize("kind, ring", [("sizes", 8), ("sizes", 13), ("stop", None)])
def test_answers_are_those_of_a_walk_by_the_pairs(kind, ring):
    pairs, line, follows = drawn(kind, ring)
    walked = list(map_alone.answers(line, follows, 20))
    for row, (told, asked) in enumerate(zip(pairs.tolist(), line.tolist())):
        after = dict(zip(told[::2], told[1::2]))
        assert sorted(after) == sorted(asked) and len(asked) == (ring or 64)
        assert told[::2] != asked  # the order of the pairs says nothing
        for hops in (1, 2, 20):
            ends = asked
            for _ in range(hops):
                ends = [after[letter] for letter in ends]
            assert walked[hops - 1][row].tolist() == ends
        if ring:
            assert len({after[letter] for letter in asked}) == ring


def depths(line, follows):
    steps = torch.zeros_like(line)
    at = torch.arange(line.size(1)).expand_as(line)
    for _ in range(line.size(1)):
        steps += (at != 0).long()
        at = follows.gather(1, at)
    assert (at == 0).all()  # all come to the root
    return steps


def test_trees_are_shallow_in_training_and_deep_in_the_test():
    assert depths(*drawn("stop")[1:]).amax(1).unique().tolist()[-1] == 8
    deep = depths(*drawn("stop", test=True)[1:])
    assert deep.amax(1).min() >= 60 and deep.max() <= 63
    assert (deep[:, 61:] > 8).any()  # the letters beside the spine hang from all along it


def test_a_question_looks_at_the_map_alone_and_sizes_are_read_by_distance():
    """Two pairs before it change places: the last letter sees it by the rotary places alone."""
    torch.manual_seed(0)
    model = map_alone.Walker(128, 2, 7)
    pairs, line, _ = drawn("sizes", 8)
    _, memory = model.read(pairs)
    *_, together = model.walk(line, memory, 5)
    *_, alone = model.walk(line[:, 3:4], memory, 5)
    torch.testing.assert_close(together[:, 3:4], alone)
    swapped = torch.cat((pairs[:, 2:4], pairs[:, :2], pairs[:, 4:]), 1)
    assert model.rotary and not map_alone.Walker(128, 256, 7).rotary
    for model.rotary in (True, False):
        change = (model.read(pairs)[0] - model.read(swapped)[0])[:, -1].abs().max()
        assert (change > 1e-5) == model.rotary


def test_training_asks_every_step_and_at_first_for_what_is_told_before(monkeypatch):
    """The hint: of each pair the second letter is asked for the first one."""
    steps, draw = [], md.generator
    monkeypatch.setattr(map_alone, "BATCH", 16)
    monkeypatch.setattr(map_alone, "RATE", 1e-2)
    monkeypatch.setattr(md, "generator", lambda *of: steps.append(of[-1]) or draw(*of))
    model = map_alone.train(1, "sizes", steps=40)
    assert steps == list(range(1, 41))
    pairs, _, _ = drawn("sizes", 8)
    said = model.say(model.read(pairs)[0][:, 1::2]).argmax(-1)
    assert (said == pairs[:, ::2]).float().mean() > 0.3  # guessing finds 1 in 128


class Known(torch.nn.Module):
    """Follows the pairs that it is told up to so many hops, and is then lost on the last ring."""

    def __init__(self, until):
        super().__init__()
        self.until = until

    def read(self, pairs):
        return None, pairs

    def walk(self, asked, pairs, loops):
        after = torch.zeros(len(pairs), 128, dtype=torch.int64)
        after.scatter_(1, pairs[:, ::2], pairs[:, 1::2])
        for i in range(1, loops + 1):
            asked = after.gather(1, asked)
            said = asked.clone()
            if i > self.until:
                said[-1] = (said[-1] + 1) % 128
            yield said

    def say(self, said):
        return F.one_hot(said, 128)


def test_what_is_counted():
    found = map_alone.tested(Known(999), "sizes", ring=16, rings=20)
    assert found["at"]["35"] == dict(right=1.0, rings_without_error=20)
    window = found["window"]
    assert window["least"] == 1 and window["to"] == 35 and window["rings_without_error"] == 20
    assert window["own"] == window["stopped"] == 0 and window["own_at_best"] == 1
    assert 0 < window["commonest"] < 0.1
    lost = map_alone.tested(Known(31), "sizes", ring=16, rings=20)
    assert lost["window"]["least"] == 0.95 and lost["window"]["least_at"] == 32
    assert lost["window"]["rings_without_error"] == 19 and lost["at"]["15"]["right"] == 1


def test_a_question_stops_where_its_answer_stands():
    found = map_alone.tested(Known(999), "stop", rings=20)
    assert found["stop"]["right"] == 1 and 61 <= found["stop"]["loops"] <= 64
    assert found["window"]["least"] == 1 and found["window"]["to"] == 60
    assert found["window"]["root"] < 0.2 and found["window"]["root_at_best"] > 0.95
    assert found["at"]["300"]["right"] == 1
    lost = map_alone.tested(Known(100), "stop", rings=20)  # held, then lost, when all have stopped
    assert lost["stop"]["right"] == 1
    assert lost["at"]["300"]["right"] == pytest.approx(0.95, abs=0.001)


def test_the_page_from_scratch_walks_as_this_model_does():
    """Its program alone, without the training that it shows."""
    page = pathlib.Path(__file__).parents[2] / "docs/tutorials/from_scratch.py"
    space = {}
    exec(page.read_text("utf-8").partition("# ## Train it")[0], space)
    torch.manual_seed(0)
    theirs, ours = space["Walker"](64, 8), map_alone.Walker(128, 128, 8)
    ours.load_state_dict(theirs.state_dict())
    pairs, line, _ = drawn("stop")
    (read, memory), (same, again) = theirs.read(pairs), ours.read(pairs)
    torch.testing.assert_close(read, same)
    for x, y in zip(theirs.walk(line, memory, 9), ours.walk(line, again, 9)):
        torch.testing.assert_close(theirs.say(x), ours.say(y))
    pairs, line = space["draw"](20, 16)
    for told, ring in zip(pairs.tolist(), line.tolist()):
        assert set(zip(told[::2], told[1::2])) == set(zip(ring, ring[1:] + ring[:1]))
    model = space["train"](1, ring=8, hops=2, steps=2, hint=True)
    found = space["test"](model, (1, 9), 5)
    assert {i: x.shape for i, x in found.items()} == {1: (5, 8), 9: (5, 8)}
