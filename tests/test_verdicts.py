"""What the ring's runs say of its predictions: exact tests against figures worked out by hand or
known from the literature, and predictions.md against what the code tests."""

import itertools
import math
import re
import statistics

import pytest

from minidepth_lab import results, ring_runs, verdicts


def test_fisher_is_the_share_of_tables_as_rare():
    # all of ten against none of ten: two of the C(20, 10) ways
    all_ten, none = [True] * 10, [False] * 10
    assert verdicts.fisher(all_ten, none) == pytest.approx(2 / math.comb(20, 10))
    assert verdicts.fisher(all_ten, all_ten) == pytest.approx(1)
    # Fisher's tea: three of four cups, 34 / 70
    tea = [True, True, True, False], [True, False, False, False]
    assert verdicts.fisher(*tea) == pytest.approx(34 / 70)


def test_the_permutation_test_counts_all_divisions():
    a, b = [0.9, 0.7, 1.0], [0.2, 0.8, 0.1, 0.3]
    everything, gap = a + b, abs(statistics.mean(a) - statistics.mean(b))
    as_large = 0
    for chosen in itertools.combinations(range(7), 3):
        mine = [everything[i] for i in chosen]
        others = [everything[i] for i in range(7) if i not in chosen]
        as_large += statistics.mean(mine) - statistics.mean(others) >= gap - 1e-12
    assert verdicts.permutation(a, b) == pytest.approx(2 * as_large / math.comb(7, 3))


def test_seeds_are_paired_only_where_they_go_together():
    together = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6], [0.2, 0.31, 0.4, 0.52, 0.6, 0.7]
    correlation, p = verdicts.paired(*together)
    assert correlation > 0.9
    assert p == pytest.approx(2 / 2**6)  # all six differences have one sign
    correlation, p = verdicts.paired(together[0], together[1][::-1])
    assert correlation < 0 and p is None
    assert verdicts.paired([1.0, 1.0], [0.2, 0.3]) == (None, None)
    assert verdicts.paired([0.1, 0.2, 0.3], [0.2, 0.3]) == (None, None)
    assert verdicts.paired([], []) == (None, None)  # two models that share no seeds


def test_holm_multiplies_the_smallest_most_and_never_falls():
    assert verdicts.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert verdicts.holm([0.9, 0.8]) == [1.0, 1.0]


def test_contrasts_of_means_are_printed_with_holm_over_all_of_them(capsys):
    apart, mixed = ([0.9, 0.8, 0.7], [0.3, 0.2, 0.1]), ([0.9, 0.1, 0.5], [0.3, 0.2, 1.0])
    corrected = verdicts.show_contrasts({"apart": apart, "mixed": mixed})
    p = verdicts.permutation(*mixed)
    assert corrected == pytest.approx({"apart": 2 * 2 / math.comb(6, 3), "mixed": p})
    first, second = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"apart +\+0\.6  p 0\.1000, corrected 0\.2000", first)
    assert re.fullmatch(rf"mixed +\+0  p {p:.4f}, corrected {p:.4f}", second)


def test_exact_intervals_are_those_the_predictions_state():
    text = (results.RESULTS / "ring" / "predictions.md").read_text(encoding="utf-8")
    stated = re.findall(r"(\d+) of (\d+) is\s+(\d\.\d\d) to (\d\.\d\d)", text)
    assert len(stated) == 4
    for good, n, low, high in stated:
        found = verdicts.exact_interval(int(good), int(n))
        assert [f"{x:.2f}" for x in found] == [low, high]


def test_contrasts_are_those_of_the_predictions():
    text = (results.RESULTS / "ring" / "predictions.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (C\d) .* \| (.*) learned \| (\d+), (\d+) \|$", text, re.M)
    assert [row[0] for row in rows] == [contrast[0] for contrast in verdicts.CONTRASTS]
    planned = {(row[1], row[2]): row[5] for row in verdicts.HYPOTHESES}
    words = dict(all=(1, 2, 4, 7), one=(1,), two=(2,), four=(4,))
    for (_, what, *runs), (_, first, second, lengths) in zip(rows, verdicts.CONTRASTS):
        assert words[what.split()[0]] == lengths
        assert [planned[first], planned[second]] == [int(n) for n in runs]


def test_every_hypothesis_of_the_predictions_is_judged():
    text = (results.RESULTS / "ring" / "predictions.md").read_text(encoding="utf-8")
    named = re.findall(r"\*\*(H\d)", text)
    judged = {row[0] for row in verdicts.HYPOTHESES} | {"H6"}
    assert set(named) == judged and len(named) == 8


def invented(shares):
    """Runs as stored() gives them: {(preset, model): accuracies of one and two steps}."""
    return {
        model: {seed: {1: one, 2: two} for seed, (one, two) in enumerate(runs, 50)}
        for model, runs in shares.items()
    }


def test_a_hypothesis_holds_from_as_many_runs_as_it_says_and_falls_below():
    good, poor, blind = (0.9, 0.9), (0.95, 0.31), (0.21, 0.1)
    found = invented({
        ("ring", "applied 1"): [(0.2, 0.15)] * 9 + [blind],
        ("ring", "applied 3"): [good] * 9 + [poor],
        ("ring", "applied 4"): [good] * 7 + [poor] * 3,
        ("ring", "applied 2"): [(1.0, 0.3)] * 5,
    })  # fmt: skip
    rows = {row["model"]: row for row in verdicts.hypothesis_rows(found)}
    assert (rows["applied 1"]["measured"], rows["applied 1"]["verdict"]) == ("9 of 10", "fell")
    assert (rows["applied 3"]["measured"], rows["applied 3"]["verdict"]) == ("9 of 10", "holds")
    assert rows["applied 3"]["interval"] == "0.55 to 1.00"
    assert (rows["applied 4"]["measured"], rows["applied 4"]["verdict"]) == ("7 of 10", "fell")
    assert rows["applied 2"]["verdict"] == "not run"  # five of ten
    assert rows["wide, applied 1"]["verdict"] == "not run"


def test_contrasts_count_runs_and_correct_for_all_that_were_named(capsys):
    found = invented({
        ("ring", "applied 1"): [(0.15, 0.14)] * 10,
        ("ring", "applied 2"): [(1.0, 0.16)] * 10,
        ("ring", "applied 3"): [(1.0, 1.0)] * 8 + [(1.0, 0.2)] * 2,
    })  # fmt: skip
    rows = {row["contrast"]: row for row in verdicts.contrast_rows(found)}
    assert rows["C1"]["learned"] == ["10 of 10", "0 of 10"]
    assert rows["C1"]["p"] == pytest.approx(2 / math.comb(20, 10))
    assert rows["C1"]["holm"] == pytest.approx(8 * rows["C1"]["p"])
    assert rows["C2"]["learned"] == ["8 of 10", "0 of 10"]
    assert rows["C2"]["holm"] == pytest.approx(7 * rows["C2"]["p"])
    # every run of one model is above every run of the other, so no division is more extreme
    assert rows["C2"]["permutation"] == pytest.approx(2 / math.comb(20, 10))
    assert not rows["C3"]["ran"] and rows["C3"]["holm"] == 1
    verdicts.show(found)
    out = capsys.readouterr().out
    assert "C3 applied 2 against wide, applied 1: not run" in out
    assert "C1 applied 2 against applied 1: learned by 10 of 10, 0 of 10;\n" in out
    assert "   Fisher's p 1.1e-05, corrected 8.7e-05, permutation 1.1e-05\n" in out
    assert "H8 2 layers            1, 2, 4, 7: ≥ 0.9  6 of 6   0 runs" in out
    assert max(map(len, out.splitlines())) <= 84


def test_sharing_compares_medians():
    found = invented({
        ("ring", "applied 3"): [(1.0, 0.5), (1.0, 0.9), (1.0, 0.8)],
        ("ring-layers", "3 layers"): [(1.0, 0.7), (1.0, 0.1), (1.0, 0.95)],
    })  # fmt: skip
    row = verdicts.sharing_row(found)
    assert (row["measured"], row["verdict"]) == ("0.80, 0.70", "holds")
    assert verdicts.sharing_row({})["verdict"] == "not run"


def runs_by_name(preset, name_of):
    """{name: the stored runs of a preset of the ring, in the order of their seeds}"""
    found = {}
    for path in sorted((results.RESULTS / "ring" / preset / "runs").iterdir()):
        run = results.result(path)
        found.setdefault(name_of(run), []).append(run)
    return found


def test_the_table_of_the_ring_is_what_its_runs_logged():
    page = (results.RESULTS / "README.md").read_text(encoding="utf-8")
    page = page.split("\n## ring\n")[1].split("\n## ")[0]

    times = {1: "once", 2: "twice", 3: "three times", 4: "four times", 5: "five times"}

    def name_of(run):
        if run["d_model"] > 64:
            return "1 wide layer, applied once"
        return "1 layer, applied " + times[run["n_loops"]]

    logs = runs_by_name("ring", name_of)
    assert len(logs) == 6
    for name, runs in logs.items():
        assert [run["seed"] for run in runs] == list(range(50, 60))
        cells = [name]
        for length in "12":
            shares = [run["accuracy_by"]["lengths"][length]["accuracy"] for run in runs]
            cells.append(f"{sum(share >= 0.9 for share in shares)} of 10")
        cells.append(f"{runs[0]['params_total']:,}")
        assert f"| {' | '.join(cells)} |" in page


def test_the_table_of_layers_of_their_own_is_what_they_logged():
    page = (results.RESULTS / "README.md").read_text(encoding="utf-8")
    page = page.split("\n`ring/ring-layers`")[1].split("\n`ring/longer`")[0]

    def name_of(run):
        return f"{run['n_layers']} layers" + (", 2 times" if run["n_loops"] == 2 else "")

    logs = runs_by_name("ring-layers", name_of)
    assert len(logs) == 4
    for name, runs in logs.items():
        assert [run["seed"] for run in runs] == list(range(50, 56))
        shares = {}
        for length in "12":
            shares[length] = [run["accuracy_by"]["lengths"][length]["accuracy"] for run in runs]
        cells = [name]
        cells += [f"{sum(share >= 0.9 for share in shares[k])} of 6" for k in "12"]
        cells.append(f"{min(shares['2']):.3f} to {max(shares['2']):.3f}")
        cells.append(f"{runs[0]['params_total']:,}")
        assert f"| {' | '.join(cells)} |" in page


@pytest.mark.parametrize("folder", ["short-memory", "ten-seeds"])
def test_both_tries_at_the_second_step_are_quoted_as_they_were_logged(folder):
    shares = []
    for path in sorted((results.RESULTS / "ring" / folder / "three" / "runs").iterdir()):
        run = results.result(path)
        shares.append(run["accuracy_by"]["lengths"]["2"]["accuracy"])
    assert len(shares) == 10
    page = (results.RESULTS / "README.md").read_text(encoding="utf-8")
    assert " ".join(f"{share:.3f}" for share in shares) in " ".join(page.split())
    learned = sum(share >= verdicts.LEARNED for share in shares)
    assert f"So {learned} of 10 have learned them" in " ".join(page.split())


def test_the_third_try_at_the_second_step_is_quoted_as_it_was_logged():
    page = " ".join((results.RESULTS / "README.md").read_text(encoding="utf-8").split())
    once, twice = (verdicts.runs_of(f"ring/gate/{name}") for name in ("once", "twice"))
    assert sorted(once) == list(range(90, 95)) and sorted(twice) == list(range(90, 100))
    shares = [share for run in once.values() for share in run.values()]
    assert f"{min(shares):.3f} to {max(shares):.3f} at both lengths" in page
    shares = [run[2] for run in twice.values()]
    assert f"one step in 10 of 10, two steps at {min(shares):.3f} to {max(shares):.3f}" in page
    assert all(run[1] >= verdicts.LEARNED for run in twice.values())
    came = []
    for path in (results.RESULTS / "ring" / "gate" / "three" / "runs").iterdir():
        log = [
            (row["step"], row["accuracy_by"]["lengths"]["2"]) for row in results.result(path)["log"]
        ]
        came.append(next(step for step, part in log if part["accuracy"] >= verdicts.LEARNED))
    assert sorted(came) == [400] + 4 * [500] + 5 * [600]
    assert "by step 400 (one run), 500 (four) or 600 (five)" in page
    assert f"{verdicts.fisher([True] * 10, [False] * 10):.5f}" == "0.00001"
    shares = [run[2] for _, run in sorted(verdicts.runs_of("ring/gate/by-time").items())]
    assert f"by seed, at {' '.join(f'{share:.3f}' for share in shares)}: 6 of 10" in page


def test_four_applications_with_the_gate_are_quoted_as_they_were_logged():
    page = " ".join((results.RESULTS / "README.md").read_text(encoding="utf-8").split())
    runs = results.stored_runs("ring/gate/four")
    assert [run["seed"] for run in runs] == list(range(100, 110))
    assert all(min(run.values()) > 0.9 for run in verdicts.runs_of("ring/gate/four").values())
    came = sorted(ring_runs.onset(run, 2) for run in runs)
    assert came == 3 * [600] + 7 * [700]
    assert "two steps by step 600 (three runs) or 700 (seven)" in page
    three = [ring_runs.onset(run, 2) for run in results.stored_runs("ring/gate/three")]
    assert f"p = {verdicts.permutation(three, came):.4f} by a permutation test" in page


def as_told(runs):
    """The cells of runs asked one to four steps: seeds and accuracies; how many learned each."""
    accuracies, learned = [f"{min(runs)} to {max(runs)}"], []
    for k in (1, 2, 3, 4):
        shares = [run[k] for run in runs.values()]
        accuracies.append(f"{min(shares):.3f} to {max(shares):.3f}")
        learned.append(f"{sum(share >= verdicts.LEARNED for share in shares)} of {len(shares)}")
    return " | ".join(accuracies), " | ".join(learned)


@pytest.mark.parametrize(
    "folder, name, in_readme",
    [
        ("once", "once", "one attention layer"),
        ("twice", "twice", "one layer that is applied twice"),
        ("three", "three times", "one layer that is applied three times"),
        ("four", "four times", "one layer that is applied four times"),
        ("five", "five times", "one layer that is applied five times"),
        ("wide", "once, wide", "one wide layer with the parameters of four"),
    ],
)
def test_the_staircase_is_quoted_as_it_was_logged(folder, name, in_readme):
    runs = verdicts.runs_of(f"ring/staircase/{folder}")
    accuracies, learned = as_told(runs)
    page = (results.RESULTS / "README.md").read_text(encoding="utf-8")
    assert f"| {name} | {accuracies} |" in page
    readme = (results.RESULTS.parents[1] / "README.md").read_text(encoding="utf-8")
    assert f"| {in_readme} | {learned} |" in readme.replace("**", "")
    assert list(runs) == list(range(110, 110 + len(runs)))


@pytest.mark.parametrize("name", ["two", "three", "four", "five"])
def test_layers_of_their_own_are_quoted_as_they_were_logged(name):
    runs = verdicts.runs_of(f"ring/own-layers/{name}")
    assert list(runs) == list(range(120, 120 + len(runs))) and len(runs) >= 5
    accuracies, _ = as_told(runs)
    page = (results.RESULTS / "README.md").read_text(encoding="utf-8")
    assert f"| {name} | {accuracies} |" in page


def test_the_readme_has_the_five_layers_of_their_own():
    _, learned = as_told(verdicts.runs_of("ring/own-layers/five"))
    readme = (results.RESULTS.parents[1] / "README.md").read_text(encoding="utf-8")
    assert f"| five layers with weights of their own | {learned} |" in readme


def test_the_longer_runs_of_layers_of_their_own_are_quoted_as_they_were_logged():
    page = " ".join((results.RESULTS / "README.md").read_text(encoding="utf-8").split())
    for run, word in zip(results.stored_runs("ring/own-layers/longer"), ("three", "five")):
        assert (run["seed"], run["step"]) == (120, 6000)
        ends = [ring_runs.course(run, k)[6000] for k in (1, 2, 3, 4)]
        assert f"{word} layers {' '.join(f'{share:.3f}' for share in ends)}" in page


def test_four_steps_are_quoted_as_they_were_logged():
    page = " ".join((results.RESULTS / "README.md").read_text(encoding="utf-8").split())
    for n, word in ((3, "three"), (4, "four")):
        runs = [run for run in results.stored_runs("ring/ring-four") if run["n_layers"] == n]
        assert [run["seed"] for run in runs] == list(range(50, 55))
        shares = [run["accuracy_by"]["lengths"]["4"]["accuracy"] for run in runs]
        assert f"{word} layers {' '.join(f'{share:.3f}' for share in shares)}" in page


def test_hops_are_judged_by_the_table_that_was_written_first():
    rows = {(row["model"], row["hops"]): row for row in verdicts.hop_rows()}
    assert len(rows) == 13 and rows["2 layers, 2 times", 4]["shares"] == "0.95 0.97 0.97 0.97 0.97"
    assert rows["2 layers, 2 times", 4]["verdict"] == "in 4 of 5: as expected"
    assert rows["1 layer", 1]["verdict"] == "in 0 of 5: fell"
    assert rows["1 layer", 1]["shares"] == "0.73 0.78 0.79 0.79 0.81"
    assert rows["1 layer, 3 times", 2]["verdict"] == "in 5 of 5: as expected"
    assert rows["5 layers", 8]["verdict"] == "in 0 of 5: fell"
    assert rows["2 wide layers, parameters of four", 4]["shares"] == "0.49 0.50 0.52 0.52 0.54"
    page = (results.RESULTS / "README.md").read_text(encoding="utf-8")
    page = page.split("\n## khop\n")[1].split("\n## ")[0]
    for (model, hops), row in rows.items():
        if row["verdict"] != "not run":
            assert f"| {model} | {hops} | {row['shares']} |" in page


def test_hops_of_layers_of_their_own_are_quoted_as_they_were_logged():
    rows = verdicts.hop_rows("own-layers.md")
    assert len(rows) == 9 and all("as expected" in row["verdict"] for row in rows)
    page = (results.RESULTS / "README.md").read_text(encoding="utf-8")
    for n in (2, 3, 4):
        shares = [row["shares"] for row in rows if row["model"] == f"{n} layers"]
        assert f"| {n} layers | {' | '.join(shares)} |" in page
    learned = {k: [[value >= 0.95 for value in hops(n, k)] for n in pair]
               for k, pair in {2: (3, 2), 4: (4, 3)}.items()}  # fmt: skip
    ps = [verdicts.fisher(*learned[k]) for k in (2, 4)]
    assert [f"{p:.2g}" for p in ps + verdicts.holm(ps)] == ["0.0079", "0.048", "0.016", "0.048"]


def hops(n_layers, k):
    """The accuracies of the runs of so many layers on k hops."""
    runs = results.stored_runs("khop/own-layers")
    return [run["accuracy"] for run in runs
            if run["n_layers"] == n_layers and f"hops={k}" in run["sizes"]]  # fmt: skip
