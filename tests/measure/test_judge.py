"""Predictions are judged by the runs they are about: exact tests against figures worked out by hand
or known from the literature, each kind of prediction on invented runs, and the stored files."""

import itertools
import math
import statistics

import pytest

import stored
from minidepth_lab.measure import judge, results

# ---------- tests ----------


def test_fisher_is_the_share_of_tables_as_rare():
    # all of ten against none of ten: two of the C(20, 10) ways
    all_ten, none = [True] * 10, [False] * 10
    assert judge.fisher(all_ten, none) == pytest.approx(2 / math.comb(20, 10))
    assert judge.fisher(all_ten, all_ten) == pytest.approx(1)
    # Fisher's tea: three of four cups, 34 / 70
    tea = [True, True, True, False], [True, False, False, False]
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


def test_seeds_are_paired_only_where_they_go_together():
    together = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6], [0.2, 0.31, 0.4, 0.52, 0.6, 0.7]
    correlation, p = judge.paired(*together)
    assert correlation > 0.9
    assert p == pytest.approx(2 / 2**6)  # all six differences have one sign
    correlation, p = judge.paired(together[0], together[1][::-1])
    assert correlation < 0 and p is None
    assert judge.paired([1.0, 1.0], [0.2, 0.3]) == (None, None)
    assert judge.paired([0.1, 0.2, 0.3], [0.2, 0.3]) == (None, None)
    assert judge.paired([], []) == (None, None)  # two models that share no seeds


def test_holm_multiplies_the_smallest_most_and_never_falls():
    assert judge.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert judge.holm([0.9, 0.8]) == [1.0, 1.0]


def test_tests_of_means_are_printed_with_holm_over_all_of_them(capsys):
    apart, mixed = ([0.9, 0.8, 0.7], [0.3, 0.2, 0.1]), ([0.9, 0.1, 0.5], [0.3, 0.2, 1.0])
    corrected = judge.show_tests({"apart": apart, "mixed": mixed})
    p = judge.permutation(*mixed)
    assert corrected == pytest.approx({"apart": 2 * 2 / math.comb(6, 3), "mixed": p})
    first, second = capsys.readouterr().out.splitlines()
    assert first.split() == "apart +0.6 p 0.1000, corrected 0.2000".split()
    assert second.split() == f"mixed +0 p {p:.4f}, corrected {p:.4f}".split()


def test_the_exact_interval_is_clopper_and_pearsons():
    # 2.5 % of chances lie on each side
    low, high = judge.exact_interval(5, 5)
    assert low == pytest.approx(0.025 ** (1 / 5)) and high == 1
    low, high = judge.exact_interval(0, 5)
    assert low == 0 and high == pytest.approx(1 - 0.025 ** (1 / 5))


# ---------- invented runs ----------


@pytest.fixture
def invented(tmp_path, monkeypatch):
    """A function that stores runs and predictions and judges these: {id: judged}"""
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    made = itertools.count()

    def judged(groups, text):
        """groups {layers: [a list of rows for each seed from 0]}"""
        name = f"made{next(made)}"  # of its own: files are read once
        lines = []
        for n, runs in groups.items():
            for seed, log in enumerate(runs):
                lines.append(stored.line(f"{n}-{seed}", log, n_layers=n, seed=seed))
        stored.write(tmp_path, name, lines)
        head = 'written = 2026-11-25\n[runs]\n"one" = {n_layers = 1}\n"two" = {n_layers = 2}\n'
        (tmp_path / name / "predictions.toml").write_text(head + text.replace("NAME", name))
        return {each["id"].partition("/")[2]: each for each in judge.judged(name)}

    return judged


def rows(*losses, **columns):
    """A log of one row for each loss, steps 10 apart."""
    log = [dict(step=10 * i, val_loss=loss) for i, loss in enumerate(losses, 1)]
    for name, values in columns.items():
        for row, value in zip(log, values, strict=True):
            row[name] = value
    return log


def prediction(text, name="P"):
    return f'[[prediction]]\nid = "NAME/{name}"\nsentence = "…"\n{text}\n'


COUNT = 'of = "one"\nmeasure = "last val_loss"\n{}\nruns = 4'


@pytest.mark.parametrize(("bounds", "verdict"), [
    ("low = 2\ncount = 3", "held"), ("low = 2\ncount = 4", "was wrong"),
    ("above = 2\ncount = 3", "was wrong"), ("above = 2\ncount = 2", "held"),
    ("high = 2\ncount = 2", "held"), ("below = 2\ncount = 2", "was wrong"),
    ("high = 2\nmost = 2", "held"), ("high = 2\nmost = 1", "was wrong"),
    ("low = 2\nhigh = 3\ncount = 2\nmost = 2", "held"),
])  # fmt: skip
def test_runs_within_the_bounds_are_counted(bounds, verdict, invented):
    runs = [rows(9.0, loss) for loss in (1.0, 2.0, 3.0, 4.0)]
    found = invented({1: runs}, prediction(COUNT.format(bounds)))["P"]
    assert found["verdict"] == verdict


def test_a_prediction_with_fewer_runs_than_planned_was_not_run(invented):
    text = prediction(COUNT.format("low = 0\ncount = 1"))
    assert invented({1: [rows(1.0)] * 3}, text)["P"]["verdict"] == "not run"
    with pytest.raises(ValueError, match="one are 5 runs where 4 were planned"):
        invented({1: [rows(1.0)] * 5}, text)


@pytest.mark.parametrize(("measure", "less"), [("val_loss", "extra"), ("extra", "val_loss")])
def test_a_prediction_whose_runs_have_not_logged_what_it_asks_was_not_run(measure, less, invented):
    asked = f'measure = "last {measure}"\nless = "last {less}"\nlow = 0\ncount = 1'
    text = prediction(f'of = "one"\n{asked}\nruns = 1')
    assert invented({1: [rows(1.0)]}, text)["P"]["verdict"] == "not run"
    assert invented({1: [rows(1.0, extra=[1.0])]}, text)["P"]["verdict"] == "held"


def test_a_prediction_holds_only_if_all_its_parts_do(invented):
    part = (
        '[[prediction.part]]\nof = "one"\nmeasure = "last val_loss"\nhigh = {}\ncount = 1\nruns = 1'
    )
    both = "\n".join(part.format(limit) for limit in (2, 3))
    found = invented({1: [rows(1.0)]}, prediction(both))["P"]
    assert found["verdict"] == "held" and found["measured"] == "1 of 1; 1 of 1"
    one = "\n".join(part.format(limit) for limit in (2, 0.5))
    assert invented({1: [rows(1.0)]}, prediction(one))["P"]["verdict"] == "was wrong"
    other = part.format(0.5) + "\n" + part.format(2).replace("one", "two")  # of which none ran
    assert invented({1: [rows(1.0)]}, prediction(other))["P"]["verdict"] == "not run"


def test_a_run_must_meet_every_condition_and_only_chosen_runs_count(invented):
    runs = [rows(1.0, accuracy=[share]) for share in (0.2, 0.9)] + [rows(3.0, accuracy=[0.9])]
    low, high = '{measure = "last accuracy", low = 0.9}', '{measure = "last val_loss", high = 2}'
    text = prediction(f'of = "one"\neach = [{low}, {high}]\ncount = 1\nmost = 1\nruns = 3')
    text += prediction(
        f'of = "one"\ngiven = [{low}]\nmeasure = "last val_loss"\nhigh = 2\ncount = 1\nruns = 3',
        "Q",
    )
    found = invented({1: runs}, text)
    assert found["P"]["verdict"] == "held" and found["P"]["measured"] == "1 of 3"
    assert found["Q"]["measured"] == "1 of 2"


def test_a_run_is_compared_with_the_run_of_its_seed(invented):
    text = 'of = "two"\nminus = "one"\nmeasure = "last val_loss"\nhigh = -0.5\ncount = {}\nruns = 2'
    groups = {1: [rows(2.0), rows(5.0)], 2: [rows(1.0), rows(4.9)]}
    assert invented(groups, prediction(text.format(1)))["P"]["measured"] == "1 of 2"
    assert invented(groups, prediction(text.format(2)))["P"]["verdict"] == "was wrong"


def test_every_run_below_every_other_is_the_greatest_below_the_least(invented):
    text = prediction(
        'of = "two"\nminus = "one"\nstatistic = "greatest"\nminus_statistic = "least"\n'
        'measure = "last val_loss"\nbelow = 0\nruns = 2'
    )
    apart = {1: [rows(2.1), rows(3.0)], 2: [rows(1.0), rows(2.0)]}
    assert invented(apart, text)["P"]["verdict"] == "held"
    meet = {1: [rows(2.0), rows(3.0)], 2: [rows(1.0), rows(2.0)]}
    assert invented(meet, text)["P"]["verdict"] == "was wrong"


@pytest.mark.parametrize(
    ("statistic", "limit"), [("mean", 3.0), ("median", 2.0), ("least", 1.0), ("greatest", 6.0)]
)
def test_a_statistic_of_the_runs_is_compared(statistic, limit, invented):
    runs = {1: [rows(loss) for loss in (1.0, 2.0, 6.0)]}
    text = f'of = "one"\nstatistic = "{statistic}"\nmeasure = "last val_loss"\nruns = 3\n'
    assert invented(runs, prediction(f"{text}low = {limit}"))["P"]["verdict"] == "held"
    assert invented(runs, prediction(f"{text}above = {limit}"))["P"]["verdict"] == "was wrong"


def test_differences_of_differences_and_scales(invented, capsys):
    groups = {1: [rows(1.0)], 2: [rows(3.0)]}
    text = 'statistic = "mean"\nmeasure = "last val_loss"\nruns = 1\n'
    lists = f'of = ["two", "two"]\nminus = ["one", "two"]\n{text}low = 2.0\nhigh = 2.0'
    found = invented(groups, prediction(lists))["P"]
    assert found["verdict"] == "held"
    judge.show(found["id"].split("/")[0])
    said = "P two, two − one, two: last val_loss ≥ 2.0, ≤ 2.0\n   mean 3, 3, 1, 3: held\n"
    assert capsys.readouterr().out == said
    scaled = f'of = "two"\nminus = "one"\n{text}scale = [2, 4]\nlow = 2.0\nhigh = 2.0'
    assert invented(groups, prediction(scaled))["P"]["verdict"] == "held"


def test_a_share_of_runs_is_compared_whatever_their_number(invented):
    groups = {1: [rows(1.0), rows(9.0)], 2: [rows(1.0), rows(9.0), rows(9.0)]}
    condition = '{measure = "last val_loss", high = 2}'
    text = f'of = "two"\nminus = "one"\nstatistic = "share"\neach = [{condition}]\nbelow = 0\n'
    found = invented(groups, prediction(f"{text}runs = 3\nminus_runs = 2"))["P"]
    assert found["verdict"] == "held" and found["measured"] == "0.3333, 0.5"
    assert found["n"] == [3, 2]


@pytest.mark.parametrize(("measure", "value"), [
    ("last val_loss", 2.5), ("least val_loss", 2.0), ("greatest val_loss", 4.0),
    ("step of least val_loss", 30), ("step of accuracy at 0.9", 20),
    ("step of accuracy at 0.95", math.inf), ("last by.lengths.2.accuracy", 0.75),
    ("val_loss where train is 1.5", 2.5), ("val_loss where train is 9", 4.0),
    ("val_loss where train is 0.1", 2.5), ("measured own.2", 0.5),
])  # fmt: skip
def test_measures(measure, value):
    log = rows(4.0, 3.0, 2.0, 2.5, accuracy=[0.1, 0.9, 0.8, 0.7], train=[3.0, 2.0, 1.0, 0.5])
    log[-1]["by"] = dict(lengths={"2": dict(accuracy=0.75)})
    run = dict(log=log, measured=dict(own={"2": 0.5}))
    assert judge.value(run, measure) == value


def test_an_unknown_measure_is_told():
    with pytest.raises(ValueError, match="measure 'mean val_loss' is unknown"):
        judge.value(dict(log=rows(1.0), measured={}), "mean val_loss")


def test_the_greatest_gap_is_of_one_evaluation_of_two_runs():
    one, two = dict(log=rows(5.0, 4.0, 9.0)), dict(log=rows(1.0, 4.5, 1.0))
    assert judge.gap(two, one, "greatest gap in val_loss from step 10 to 20") == 0.5
    assert judge.gap(two, one, "greatest gap in val_loss from step 10 to 10") == -4.0
    short = dict(log=rows(5.0))  # what only one of them has evaluated is no gap
    assert judge.gap(two, short, "greatest gap in val_loss from step 10 to 30") == -4.0
    assert judge.gap(dict(two, measured={}), dict(one, measured={}), "last val_loss") == -8.0


@pytest.mark.parametrize("bound", ["below", "above"])
def test_what_never_came_is_later_than_all_and_not_before_what_never_came(bound, invented):
    never, late = rows(1.0, 1.0, a=[0, 0], b=[0, 0]), rows(1.0, 1.0, a=[0, 1], b=[0, 0])
    condition = 'measure = "step of a at 0.9"\nless = "step of b at 0.9"\nmost = 1'
    text = prediction(f'of = "one"\n{condition}\n{bound} = 0\nruns = 2')
    found = invented({1: [never, late]}, text)["P"]
    assert found["measured"] == "1 of 2"


CONTRAST = """
[[contrast]]
id = "NAME/{name}"
family = "NAME/{family}"
test = "{test}"
of = "two"
minus = "one"
{more}
"""


def test_contrasts_are_corrected_within_their_family(invented):
    groups = {1: [rows(9.0)] * 5, 2: [rows(1.0)] * 5}
    good = 'measure = "last val_loss"\nhigh = 2'
    text = prediction('contrasts = ["NAME/A", "NAME/B"]\nbelow = 0.016')
    text += prediction('contrasts = ["NAME/C"]\nbelow = 0.008', "Q")
    text += prediction('contrasts = ["NAME/D"]\nbelow = 0.05', "R")
    for name, family, test in (
        ("A", "f", "fisher"),
        ("B", "f", "permutation"),
        ("C", "g", "fisher"),
    ):
        text += CONTRAST.format(name=name, family=family, test=test, more=good)
    none = 'of = {n_layers = 7}\nminus = "one"\nmeasure = "last val_loss"'
    text += (
        CONTRAST.format(name="D", family="h", test="fisher", more="").partition("of =")[0] + none
    )
    found = invented(groups, text)
    assert found["P"]["measured"] == f"p at most {2 * 2 / 252:.2g}"  # two tests in the family
    assert found["P"]["verdict"] == found["Q"]["verdict"] == "held"
    assert found["Q"]["measured"] == f"p = {2 / 252:.2g}" and found["R"]["verdict"] == "not run"


def test_a_contrast_of_which_a_seed_is_missing_was_not_run(invented):
    for seeds, others, verdict in (
        ('"0 to 4"', '"0 to 4"', "held"),
        ('"0 to 5"', '"0 to 4"', "not run"),
        ('"0 to 4"', '"0 to 5"', "not run"),
        ("[0, 1]", "[0, 1]", "was wrong"),
    ):
        text = prediction('contrasts = ["NAME/A"]\nbelow = 0.05')
        contrast = CONTRAST.format(name="A", family="f", test="permutation", more="")
        contrast = contrast.partition("of =")[0] + (
            f"of = {{n_layers = 2, seed = {seeds}}}\nminus = {{n_layers = 1, seed = {others}}}\n"
            'measure = "last val_loss"\n'
        )
        found = invented({1: [rows(9.0)] * 5, 2: [rows(1.0)] * 5}, text + contrast)
        assert found["P"]["verdict"] == verdict


def test_runs_succeed_in_a_contrast_only_if_they_meet_every_condition(invented):
    """A run that learned one of two lengths has not learned both."""
    runs = [rows(1.0, a=[1.0], b=[0.0])] * 3 + [rows(1.0, a=[1.0], b=[1.0])] * 2
    conditions = '{measure = "last a", low = 0.9}, {measure = "last b", low = 0.9}'
    text = prediction('contrasts = ["NAME/A"]\nbelow = 2')
    more = f'each = [{conditions}]\nbeside = ["last a", "last b"]'
    text += CONTRAST.format(name="A", family="f", test="fisher", more=more)
    name = invented({1: [rows(1.0, a=[1.0], b=[0.2])] * 5, 2: runs}, text)["P"]["id"].split("/")[0]
    (contrast,) = judge.judged_contrasts(name).values()
    assert [sum(good) for good in contrast["good"]] == [2, 0]
    # beside it the means of both measures of each run
    means = judge.permutation([0.5] * 3 + [1.0] * 2, [0.6] * 5)
    assert contrast["permutation"] == pytest.approx(means) and means > 0.1


def test_predictions_are_shown_part_by_part_and_counted(invented, capsys):
    runs = [rows(loss) for loss in (1.0, 2.0, 3.0, 4.0)]
    text = prediction(COUNT.format("low = 2\ncount = 3"))
    text += prediction(COUNT.format("low = 2\ncount = 4"), "Q")
    text += prediction('of = "two"\nmeasure = "last val_loss"\nlow = 1\ncount = 1\nruns = 1', "R")
    name = invented({1: runs}, text)["P"]["id"].split("/")[0]
    assert judge.tally(name) == "1 of 3 held; Q was wrong; R was not run"
    assert judge.tally(name, "P", "Q") == "1 of 2 held; Q was wrong"
    assert judge.verdict(f"{name}/Q") == "was wrong"
    judge.show(name, "P", "R")
    assert capsys.readouterr().out.splitlines() == [
        "P one: last val_loss ≥ 2",
        "   in 3 of 4 predicted, 3 of 4 (0.19 to 0.99): held",
        "R two: last val_loss ≥ 1",
        "   not run",
    ]
    judge.show(name)
    assert [line[:2] for line in capsys.readouterr().out.splitlines()[::2]] == ["P ", "Q ", "R "]


# ---------- the stored predictions ----------

WRONG = {
    "report": "P1 P2 P3 P5 P12",
    "report-small": "",
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
    "heads": "H9",
    "llmini": "L9 L12 L17 L19",
}
WAITING = {  # those whose runs are not there yet
    "report-small": "R1 R2 R3 A1 A2 I1 I2 I3 I4",
    "heads": "H11 H12 H13 H14 H15",
    "llmini": "L20 L21 L22",
}


@pytest.mark.parametrize("name", WRONG)
def test_the_same_predictions_are_wrong_as_the_pages_say(name):
    """Whoever changes a bound, a selection or a run so that another verdict comes out, sees it."""
    verdicts = judge.verdicts(name)
    wrong = [key for key, verdict in verdicts.items() if verdict == judge.WRONG]
    not_run = [key for key, verdict in verdicts.items() if verdict == judge.NOT_RUN]
    assert wrong == WRONG[name].split()
    assert not_run == WAITING.get(name, "").split()


def test_the_measures_and_bounds_of_the_stored_predictions_are_spelled_right():
    """A misspelled bound would be no bound, and a misspelled key would be forgotten."""
    known = set("id sentence words written part of minus given each measure less statistic".split())
    known |= set("minus_statistic scale count most runs minus_runs contrasts".split())
    known |= set(judge.BOUNDS)
    condition = set(judge.BOUNDS) | {"measure", "less"}
    for name in judge.experiments():
        for each in judge.File(name).predictions:
            for part in [each, *each.get("part", ())]:
                assert set(part) <= known, part
                for conditions in (part.get("each", ()), part.get("given", ())):
                    assert all(set(each) <= condition for each in conditions)
                if "of" in part:
                    parts = judge.conditions_of(part) if "each" in part else [part]
                    assert all(set(each) & set(judge.BOUNDS) for each in parts), part
