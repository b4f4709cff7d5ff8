"""Predictions are judged by the runs they are about: exact tests against figures worked out by hand
or known from the literature, each kind of prediction on invented runs, and the stored files."""

import itertools
import math
import re
import statistics

import pytest

import stored
from minidepth_lab.measure import judge, results

# ---------- tests ----------


def test_fisher_is_the_share_of_tables_as_rare():
    all_ten, none = [True] * 10, [False] * 10
    assert judge.fisher(all_ten, none) == pytest.approx(2 / math.comb(20, 10))  # two of all ways
    assert judge.fisher(all_ten, all_ten) == pytest.approx(1)
    tea = [True, True, True, False], [True, False, False, False]  # Fisher's: three of four cups
    assert judge.fisher(*tea) == pytest.approx(34 / 70)


def test_the_permutation_test_counts_all_divisions():
    a, b = [0.9, 0.7, 1.0], [0.2, 0.8, 0.1, 0.3]
    everything, gap = a + b, abs(statistics.mean(a) - statistics.mean(b))
    as_large = 0
    for chosen in itertools.combinations(range(7), 3):
        mine = [everything[i] for i in chosen]
        others = [everything[i] for i in range(7) if i not in chosen]
        as_large += statistics.mean(mine) - statistics.mean(others) >= gap - 1e-12
    assert judge.permutation(a, b) == pytest.approx(2 * as_large / math.comb(7, 3))
    with pytest.raises(ValueError, match="a permutation test of 1 against 4 runs says nothing"):
        judge.permutation(a[:1], b)


def test_seeds_are_paired_only_where_they_go_together():
    a, b = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6], [0.2, 0.31, 0.4, 0.52, 0.6, 0.7]
    correlation, p = judge.paired(a, b)
    assert correlation > 0.9 and p == pytest.approx(2 / 2**6)  # all differences have one sign
    correlation, p = judge.paired(a, b[::-1])
    assert correlation < 0 and p is None
    for no in (([1.0, 1.0], [0.2, 0.3]), (a[:3], b[:2]), ([], [])):  # all alike, or no common seeds
        assert judge.paired(*no) == (None, None)


def test_holm_multiplies_the_smallest_most_and_never_falls():
    assert judge.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert judge.holm([0.9, 0.8]) == [1.0, 1.0]


def test_the_exact_interval_is_clopper_and_pearsons():
    """2.5 % of chances lie on each side."""
    least = 0.025 ** (1 / 5)
    assert judge.exact_interval(5, 5) == pytest.approx((least, 1))
    assert judge.exact_interval(0, 5) == pytest.approx((0, 1 - least))


# ---------- invented runs ----------

HEAD = """
[measures]
loss = "val_loss"
extra = "extra"
own = "measured.own.2"
a = "a"
b = "b"
[runs]
one = {n_layers = 1, n = ONE}
two = {n_layers = 2, n = TWO}
"""


@pytest.fixture
def invented(tmp_path, monkeypatch):
    """A function that stores runs and predictions and judges these: {id: judged}"""
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    made = itertools.count()

    def judged(groups, *parts, planned=None, tests=""):
        """groups {layers: [a list of rows for each seed from 0]}; a part is what holds, and each
        one a prediction P, Q, R, …, or a tuple of parts one."""
        name = f"made{next(made)}"  # of its own: files are read once
        lines = []
        for n, runs in groups.items():
            for seed, log in enumerate(runs):
                lines.append(stored.line(f"{n}-{seed}", log, n_layers=n, seed=seed))
        stored.write(tmp_path, name, lines)
        n = [planned or len(groups.get(layers, [0])) for layers in (1, 2)]
        text = HEAD.replace("ONE", str(n[0])).replace("TWO", str(n[1]))
        text += f"[tests]\n{tests}\n[written.2026-11-25]\n"
        for which, all_of in zip("PQRS", parts):
            told = ", ".join(
                "{a = 'one'" + (", b = 'two'" if "b." in part else "") + f', holds = "{part}"}}'
                for part in ([all_of] if isinstance(all_of, str) else all_of)
            )
            text += f'{which} = ["…", {told}]\n'
        (tmp_path / name / "predictions.toml").write_text(text)
        return {each["id"].partition("/")[2]: each for each in judge.judged(name)}

    return judged


def rows(*losses, **columns):
    """A log of one row for each loss, steps 10 apart."""
    log = [dict(step=10 * i, val_loss=loss) for i, loss in enumerate(losses, 1)]
    for name, values in columns.items():
        for row, value in zip(log, values, strict=True):
            row[name] = value
    return log


@pytest.mark.parametrize(("part", "verdict", "measured"), [
    ("count(a.loss >= 2) >= 3", "held", "3 of 4"),
    ("count(a.loss > 2) >= 3", "was wrong", "2 of 4"),
    ("1 <= count(a.loss <= 1) <= 1", "held", "1 of 4"),
    ("count((a.loss > 1) & (a.loss < 4)) >= 2", "held", "2 of 4"),
    ("count((a.loss > 2)[a.loss > 1]) >= 2", "held", "2 of 3"),
    ("count(a.loss < b.loss) <= 2", "held", "2 of 4"),
    ("mean(a.loss) - mean(b.loss) == -0.25", "held", "2.5, 2.75"),
    ("median(a.loss) < 2.5", "was wrong", "2.5"),
    ("greatest(a.loss) < least(b.loss)", "was wrong", "greatest 4, least 0.5"),
    ("abs(mean(a.loss) - 2.5) < 0.1", "held", "2.5"), ("mean(a.loss > 1) >= 0.75", "held", "0.75"),
])  # fmt: skip
def test_what_holds_is_asked_of_arrays_by_seed(invented, part, verdict, measured):
    groups = {1: [rows(9.0, loss) for loss in (4.0, 3.0, 2.0, 1.0)]}
    groups[2] = [rows(loss) for loss in (5.0, 3.0, 2.5, 0.5)]
    found = invented(groups, part)["P"]
    assert (found["verdict"], found["measured"]) == (verdict, measured)
    assert set(found["n"]) <= {3, 4}  # of three the loss is over 1


def test_a_prediction_with_fewer_runs_than_planned_was_not_run(invented):
    part = "count(a.loss >= 0) >= 1"
    assert invented({1: [rows(1.0)] * 3}, part, planned=4)["P"]["verdict"] == "not run"
    with pytest.raises(ValueError, match="one are 5 runs where 4 were planned"):
        invented({1: [rows(1.0)] * 5}, part, planned=4)
    with pytest.raises(ValueError, match="predictions.toml has no measure los$"):
        invented({1: [rows(1.0)]}, "count(a.los >= 0) >= 1")


@pytest.mark.parametrize("asked", ["a.loss - a.extra", "a.extra - a.loss", "a.own"])
def test_a_prediction_whose_runs_have_not_logged_what_it_asks_was_not_run(asked, invented):
    part = f"count({asked} >= 0) >= 1"
    assert invented({1: [rows(1.0)]}, part)["P"]["verdict"] == "not run"
    if "extra" in asked:
        assert invented({1: [rows(1.0, extra=[1.0])]}, part)["P"]["verdict"] == "held"


def test_a_prediction_holds_only_if_all_its_parts_do(invented):
    low, high = "count(a.loss <= 2) >= 1", "count(a.loss <= 0.5) >= 1"
    found = invented({1: [rows(1.0)]}, (low, low))["P"]
    assert found["verdict"] == "held" and found["measured"] == "1 of 1; 1 of 1"
    assert invented({1: [rows(1.0)]}, (low, high))["P"]["verdict"] == "was wrong"
    other = "count(b.loss <= 2) >= 1"  # of which none ran
    assert invented({1: [rows(1.0)]}, (high, other))["P"]["verdict"] == "not run"


@pytest.mark.parametrize(("measure", "value"), [
    ("val_loss", 2.5), ('least("val_loss")', 2.0), ('step_of_least("val_loss")', 30),
    ('step_of("accuracy", 0.9)', 20), ('step_of("accuracy", 0.95)', math.inf),
    ("by.lengths.2.accuracy", 0.75), ('value_at("val_loss", "train", 1.5)', 2.5),
    ('value_at("val_loss", "train", 9)', 4.0), ('value_at("val_loss", "train", 0.1)', 2.5),
    ("measured.own.2", 0.5), ('course("val_loss", 20, 30)', [3.0, 2.0]),
])  # fmt: skip
def test_measures(measure, value):
    log = rows(4.0, 3.0, 2.0, 2.5, accuracy=[0.1, 0.9, 0.8, 0.7], train=[3.0, 2.0, 1.0, 0.5])
    log[-1]["by"] = dict(lengths={"2": dict(accuracy=0.75)})
    run = dict(log=log, measured=dict(own={"2": 0.5}))
    assert judge.value(run, measure) == value
    if "least" in measure:  # NaN never is, wherever it stands
        lost = rows(math.nan)
        assert judge.value(dict(log=lost + log), measure) == value
        assert judge.value(dict(log=log + lost), measure) == value


FISHER = "fisher(a.loss <= 2, b.loss <= 2)"


def test_tests_are_corrected_within_their_family(invented):
    groups = {1: [rows(9.0)] * 5, 2: [rows(1.0)] * 5}
    told = "{a = 'one', b = 'two', "
    tests = f'A = {told} p = "{FISHER}", family = "f"}}\n'
    tests += f'B = {told} p = "permutation(a.loss, b.loss)", family = "f"}}\n'
    tests += f'C = {told} p = "{FISHER}"}}'
    parts = "max(p['A'], p['B']) < 0.016", "p['C'] < 0.008"
    found = invented(groups, *parts, tests=tests)
    assert found["P"]["measured"] == f"p at most {2 * 2 / 252:.2g}"  # two tests in the family
    assert found["P"]["verdict"] == found["Q"]["verdict"] == "held"
    assert found["Q"]["measured"] == f"p = {2 / 252:.2g}" and found["Q"]["n"] == [5]
    del groups[2][0]
    found = invented(groups, "p['C'] < 0.05", planned=5, tests=tests)
    assert found["P"]["verdict"] == "not run"  # a seed is missing
    with pytest.raises(ValueError, match="predictions.toml has no test C11$"):
        invented(groups, "p['C11'] < 0.05", tests=tests)


def test_beside_a_test_stand_the_means_of_several_measures(invented):
    groups = {1: [rows(1.0, a=[1.0], b=[0.0])] * 3 + [rows(1.0, a=[1.0], b=[1.0])] * 2}
    groups[2] = [rows(1.0, a=[1.0], b=[0.2])] * 5
    told = "p = 'fisher((a.a >= 0.9) & (a.b >= 0.9), (b.a >= 0.9) & (b.b >= 0.9))'"
    tests = f"A = {{a = 'one', b = 'two', {told}, beside = ['a', 'b']}}"
    name = invented(groups, "p['A'] < 2", tests=tests)["P"]["id"].split("/")[0]
    (test,) = judge.judged_tests(name).values()
    assert [sum(good) for good in test["samples"]] == [2, 0]
    means = judge.permutation([0.5] * 3 + [1.0] * 2, [0.6] * 5)
    assert test["permutation"] == pytest.approx(means) and means > 0.1


def test_predictions_are_shown_part_by_part_and_counted(invented, capsys):
    runs = [rows(loss) for loss in (1.0, 2.0, 3.0, 4.0)]
    parts = [f"count(a.loss >= 2) >= {n}" for n in (3, 4)] + ["mean(b.loss) >= 1"]
    name = invented({1: runs}, *parts)["P"]["id"].split("/")[0]
    assert judge.tally(name) == "1 of 3 held; Q was wrong; R was not run"
    assert judge.tally(name, "P", "Q") == "1 of 2 held; Q was wrong"
    assert judge.verdict(f"{name}/Q") == "was wrong"
    shown = [
        "P a = one; count(a.loss >= 2) >= 3",
        "   3 of 4 (0.19 to 0.99): held",
        "R a = one; b = two; mean(b.loss) >= 1",
        "   not run",
    ]
    judge.show(name, "P", "R")
    assert capsys.readouterr().out.splitlines() == shown
    judge.show(name)
    said = capsys.readouterr().out.splitlines()
    assert said[:2] + said[4:] == shown and said[2].startswith("Q ")
    judge.show_test("T", dict(a="one", b="two", ran=False))
    assert capsys.readouterr().out == "T: one against two: not run\n"
    part = dict(verdict="held", measured="from 0.2 to 0.4", counts=[], numbers=[("loss", [0.2])])
    assert judge.outcome(part) == "loss from 0.2 to 0.4: held"
    part = dict(verdict="held", measured="0 of 0, 5 of 5", counts=[(0, 0), (5, 5)], numbers=[])
    assert judge.outcome(part) == "0 of 0, 5 of 5 (0.48 to 1.00): held"


# ---------- the stored predictions ----------

WRONG = {
    "report": "P1 P2 P3 P5 P12",
    "report-small": "R3",
    "report-tuned": "T4 T5",
    "ring": "H1 H2 H4 H5 H6 H7",
    "ring-short-memory": "S1 S3",
    "ring-ten-seeds": "T1 T4",
    "ring-gate": "G6",
    "ring-staircase": "R5 R8",
    "ring-own-layers": "O7",
    "ring-to-ten": "Z2",
    "ring-compute": "Q3",
    "ring-copies": "C2 C4",
    "ring-wide": "V8 V12 V14 V16",
    "ring-at-test": "A5",
    "khop": "K1 K2 K3",
    "budget": "B2 B3 B5",
    "budget-tuned": "G1",
    "lookups": "L5 L6",
    "reread": "M9 M13 M26",
    "reread-constant": "K3",
    "map": "M1 M2 M3 M5 M6 M10 M13",
    "map-longer": "",
    "strides": "T2",
    "back": "Y1 Y2 Y3",
    "text-loops": "V7 V10 V15 V17",
    "first-run": "R2 R3",
    "written": "",
    "sums": "S1 S5 S7 S10 S11",
    "hold": "H2 H3 H4 H5",
    "hold-further": "F4",
    "walk": "W11 W13 W14 W18 W20 W24 W30 W31 W35 W36 W48 W49 W52 W55",
    "heads": "H9 H13",
    "llmini": "L9 L12 L17 L19 L22",
    "no-cheat": "P1 P4 P5 P9",
}
NAMED = re.compile(rf"\b[{judge.GROUPS}]\.(\w+)")


@pytest.mark.parametrize("name", WRONG)
def test_the_same_predictions_are_wrong_as_the_pages_say(name):
    """Whoever changes a bound, a selection or a run so that another verdict comes out, sees it."""
    verdicts = judge.verdicts(name)
    wrong = [key for key, verdict in verdicts.items() if verdict == judge.WRONG]
    not_run = [key for key, verdict in verdicts.items() if verdict == judge.NOT_RUN]
    assert wrong == WRONG[name].split()
    assert not not_run


def test_who_names_predictions_is_not_shown_tests(capsys):
    judge.show("khop", "none of this name")
    assert not capsys.readouterr().out
    judge.show("khop")
    assert "Fisher" in capsys.readouterr().out


def test_the_stored_predictions_are_spelled_right():
    """What nobody reads would be forgotten; what is compared seed by seed has the same seeds."""
    for name in judge.experiments():
        file = judge.File(name)
        known = "title told note runs measures tests written".split()
        assert file.about.keys() <= set(known)
        for test in file.tests.values():
            assert test.keys() <= {"a", "b", "p", "family", "beside"}
            assert {*test.get("beside", ()), *NAMED.findall(test["p"])} <= file.measures.keys()
        for part in (part for each in file.predictions for part in each["parts"]):
            assert part.keys() <= {*judge.GROUPS, "holds"}, part
            assert set(NAMED.findall(part["holds"])) <= file.measures.keys(), part
            assert set(re.findall(r"p\['(.+?)'\]", part["holds"])) <= file.tests.keys(), part
            paired = {"a", "b"} <= part.keys() and "count" in part["holds"]
            if paired and file.all_there(part):
                seeds = [[run["seed"] for run in file.runs(part[key])] for key in "ab"]
                assert seeds[0] == seeds[1], part
