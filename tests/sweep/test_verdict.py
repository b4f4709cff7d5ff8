"""A verdict: the rule against simulated truths, its plan, its runs, and two groups compared."""

import dataclasses
import json
import math
import os
import pathlib
import shlex
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy import stats

import minidepth as md
import minidepth_lab
import train
from conftest import log_of
from minidepth_lab.command import dispatch
from minidepth_lab.command import verdict as command
from minidepth_lab.keep import checkpoints, registry
from minidepth_lab.measure import verdict as rule
from minidepth_lab.models import variants
from minidepth_lab.rows import forms, to_data
from minidepth_lab.show import verdict as verdict_page
from minidepth_lab.show import verdict_map
from minidepth_lab.sweep import verdict as sweep
from minidepth_lab.sweep import verdict_plan, verdict_rows, verdict_runs
from minidepth_lab.sweep.verdict_data import check_source
from minidepth_lab.sweep.verdict_plan import Request
from minidepth_lab.tasks.base import own_code, task_data

OWN = """import torch
import torch.nn.functional as F
from minidepth_lab.tasks import Task

class Own(Task):
    settings = dict(block_size=16, n_heads=2, d_model=16, batch_size=100, warmup_steps=4)

    def draw(self, batch, generator, test=False, kinds={kinds}):
        x = torch.randint({symbols}, (batch, {length}), generator=generator)
        answer = x[:, :1] % kinds
        return x, F.pad(answer, ({length} - 1, 0), value=-100)

    def guess(self, kinds):
        return {guess}

TASK = Own()
"""


@pytest.fixture(autouse=True)
def no_start(monkeypatch):
    """A process of its own takes seconds to begin, which are measured."""
    monkeypatch.setattr(verdict_plan, "start_seconds", lambda jobs, device: 1.0)


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Writes my.py, a task whose answer is its first symbol modulo `kinds`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(own_code, "NAMED", set())

    def write(kinds=4, symbols=64, length=8, guess="1 / kinds"):
        text = OWN.format(kinds=kinds, symbols=symbols, length=length, guess=guess)
        (tmp_path / "my.py").write_text(text)
        return "my.py"

    return write


def scores(n, **values):
    """{(arm, budget): n scores near a value}, `one=0.4`, `one_time=0.4`; other arms as `one`."""
    noise = 0.004 * np.array([0, 1, -1, 2, -2, 1, 0, -1, 1, -1, 0, 2, -2, 1, 0, -1, 1, -1, 0, 0])
    made = {}
    for i, arm in enumerate(("one", "deep", "looped", "wide")):
        made[arm, "steps"] = values.get(arm, values["one"]) + np.roll(noise, i)[:n]
        if f"{arm}_time" in values:
            made[arm, "time"] = values[f"{arm}_time"] + np.roll(noise, i)[:n]
    return made


# ---------- the rule ----------


@pytest.mark.parametrize(("truth", "least"), [
    ("equal", 0.99), ("no effect", 0.95), ("bimodal", 0.9), ("large effect", 0.97),
    ("parameters", 0.97), ("only steps", 0.97), ("nobody learns", 0.99), ("all learn", 0.99),
])  # fmt: skip
def test_of_simulated_verdicts_few_are_wrong_and_what_is_so_is_found(truth, least):
    n = 250 if truth in rule.SIX else 60
    counts = rule.simulate(truth, n, seed=1)
    assert sum(counts[each] for each in rule.DECISIONS) == n
    assert sum(counts[each] for each in rule.TRUTHS[truth][1]) >= least * n
    assert rule.wrong(truth, counts) <= rule.ERROR


def test_a_heavy_tail_is_that_of_its_words():
    drawn = rule.heavy(np.random.default_rng(0), 2000)
    expected = 0.95 - stats.t(1.5).ppf([0.975, 0.75, 0.525]) / 20  # of |t|: 95 %, 50 % and 5 %
    assert np.quantile(drawn, [0.05, 0.5, 0.95]) == pytest.approx(expected, abs=0.03)


def test_no_single_comparison_is_wrong_too_often_in_the_worst_case():
    """Both arms learn with every second seed, to which no t interval is fitted: with five of 99 %
    it is wrong in 5.4 % of cases."""
    random, n = np.random.default_rng(3), 4000
    low, high = (np.empty((n, len(rule.LOOKS))) for _ in range(2))
    draw = rule.learned_or_not(0.5, noise=0.03)
    for i in range(n):
        gaps = draw(random, 20) - draw(random, 20)
        for k, look in enumerate(rule.LOOKS):
            _, low[i, k], high[i, k] = rule.interval(gaps[:look])
    assert 0.03 < ((low > 0) | (high < 0)).any(1).mean() <= rule.ERROR


def test_an_interval_is_students_and_wider_where_few_problems_were_asked():
    values = [0.1, 0.3, 0.2, 0.25]
    wanted = stats.ttest_1samp(values, 0).confidence_interval(1 - rule.LOOK_ERROR)
    mean, low, high = rule.interval(values)
    assert (mean, low, high) == pytest.approx((np.mean(values), wanted.low, wanted.high))
    _, few, _ = rule.interval(values, answers=50)
    half = stats.norm.ppf(1 - rule.LOOK_ERROR / 2) * math.sqrt(mean / 50)
    assert mean - few == pytest.approx(math.hypot(mean - low, half))
    assert rule.interval([0.5])[1:] == (-math.inf, math.inf)
    assert np.isfinite(rule.interval([0.5, 0.6])).all()
    assert rule.decide({}).n == 0 and rule.around(1, 0.5)(np.random.default_rng(0), 99).max() == 1
    assert rule.interval([0.5, math.nan, 0.5])[1:] == (-math.inf, math.inf)


def test_depth_helps_where_neither_time_nor_parameters_do():
    deep = dict(one=0.4, deep=0.97, looped=0.95)
    timed = dict(one_time=0.42, deep_time=0.97, looped_time=0.95, wide_time=0.43)
    for n, level, decision in (
        (3, deep, rule.UNDECIDED),  # equal time is to be trained before
        (3, deep | timed, rule.HELPS),
        (3, deep | timed | dict(wide=0.9), rule.PARAMETERS),
        (3, deep | timed | dict(one_time=0.99), rule.UNDECIDED),  # three do not show there is none
        (8, deep | timed | dict(one_time=0.97), rule.STEPS_ONLY),
    ):
        found = rule.decide(scores(n, **level))
        assert (found.decision, found.n) == (decision, n), level
        assert found.decided == (decision != rule.UNDECIDED)
        assert found.differences["deep - one"].mean == pytest.approx(0.57, abs=0.01)
    untimed = rule.decide(scores(3, **deep))
    assert (untimed.budget, untimed.more) == ("time", 0)


def test_parameters_do_not_help_where_the_wide_layer_is_like_the_narrow_one():
    z = np.array([1, -1] * 4)
    level = dict(one=0.6 + 0 * z, deep=0.66 + 0.012 * z, looped=0.66 + 0 * z, wide=0.62 - 0.018 * z)
    both = {(arm, budget): level[arm] for arm in level for budget in ("steps", "time")}
    found = rule.decide(both)
    assert found.differences["wide - one"].found == rule.ALIKE
    assert found.differences["deep - wide"].found == rule.OPEN
    assert found.decision == rule.HELPS
    both["wide", "steps"] = 0.63 - 0.04 * z  # neither like it nor surely better
    found = rule.decide(both)
    assert found.decision == rule.UNDECIDED and "parameters" in found.why


@pytest.mark.parametrize(("level", "known", "decision"), [
    (dict(one=0.6), dict(chance=0.1), rule.SAME),
    (dict(one=0.6), dict(margin=0.002), rule.UNDECIDED),
    (dict(one=0.11), dict(chance=0.1), rule.NOBODY),
    (dict(one=0.11), {}, rule.SAME),  # no chance is known
    (dict(one=0.985), {}, rule.EASY), (dict(one=0.93), {}, rule.SAME),  # below 0.95
    (dict(one=0.985), dict(ceiling=None), rule.SAME),  # nats
    (dict(one=0.6, deep=0.3), dict(chance=0.1), rule.HURTS),
    (dict(one=0.6, deep=0.62), dict(margin=0.05), rule.SAME),  # however sure
])  # fmt: skip
def test_that_there_is_nothing_takes_eight_seeds(level, known, decision):
    assert rule.decide(scores(8, **level), **known).decision == decision
    if decision == rule.SAME and known.get("chance"):
        for n in (3, 5):
            found = rule.decide(scores(n, **level), **known)
            assert found.decision == rule.UNDECIDED and found.more == 8 - n


def test_undecided_says_about_how_many_seeds_decide():
    gaps = np.array([0.3, 0.1, 0.25, 0.05, 0.2])
    gap = rule.compare(gaps, np.zeros(5), 0.05)
    assert gap.found == rule.OPEN and gap.more > 0
    n, spread = 5 + gap.more, gaps.std(ddof=1)
    half = [stats.t.ppf(1 - rule.LOOK_ERROR / 2, k - 1) * spread / math.sqrt(k) for k in (n - 1, n)]
    assert half[1] < gap.mean <= half[0]
    assert rule.compare([0.4, 0.0, 0.31, -0.4, -0.3], np.zeros(5), 0.01).more is None
    # the error of few problems does not shrink with seeds, so that no number of them may decide
    steady = np.full(5, 0.03) + [0.001, -0.001, 0, 0.001, -0.001]
    assert rule.compare(steady, np.zeros(5), 0.02).found == rule.MORE
    assert rule.compare(steady, np.zeros(5), 0.02, answers=50).more is None
    # only what is open still asks for more: deep - wide is alike here, and wide - one is not known
    one = 0.4 + 0.037 * np.array([1, -1] * 4)
    arms = dict(one=one, deep=np.full(8, 0.47), wide=np.full(8, 0.44))
    found = rule.decide({(arm, b): s for arm, s in arms.items() for b in ("steps", "time")})
    assert found.decision == rule.UNDECIDED and found.why == "whether depth helps or parameters do"
    assert found.differences["deep - wide"].found == rule.ALIKE and found.more > 0
    words = ["", ": about 1 more seed", ": about 4 more seeds", f": more than {rule.MOST} seeds"]
    assert [rule.more_words(more) for more in (0, 1, 4, None)] == words


def test_two_arms_are_paired_by_seed():
    level = np.array([0.2, 0.5, 0.9, 0.4, 0.7])
    gap = rule.compare(level + [0.1, 0.11, 0.1, 0.09, 0.1], level, 0.05)
    assert gap.found == rule.MORE and gap.low > 0.05
    shuffled = rule.compare(level + [0.1, 0.11, 0.1, 0.09, 0.1], level[::-1], 0.05)
    assert shuffled.found == rule.OPEN


@pytest.mark.parametrize(("decision", "advice"), [
    (rule.EASY, "fewer than 100 steps"), (rule.NOBODY, "more than 100 steps"),
    (rule.SAME, "a margin below 0.05"), (rule.HELPS, None),
])  # fmt: skip
def test_what_would_change_the_verdict_is_for_that_verdict(decision, advice):
    plan = SimpleNamespace(steps=dict(one=dict(steps=100)), request=SimpleNamespace(margin=0.05))
    plan.tried = plan.rates = {}
    found = SimpleNamespace(differences={}, decision=decision, n=8)
    *lines, seeds, _ = verdict_page.change_of(SimpleNamespace(found=found, plan=plan))
    assert [line.startswith(advice) for line in lines] == ([True] if advice else [])
    assert "at most 31%" in seeds  # 0.69^8 = 0.05


# ---------- the plan ----------


def test_equal_time_gives_the_faster_arm_more_steps():
    steps = verdict_plan.equal_time(100, dict(one=0.01, deep=0.04, looped=0.038, wide=0.02))
    assert steps["one"] == dict(steps=100, time=400) and steps["wide"]["time"] == 200
    assert steps["deep"]["time"] == steps["looped"]["time"] == 100  # as good as the same


@pytest.mark.parametrize(("tried", "more"), [
    ({1e-3: (0.1, 0), 3e-3: (0.5, 0), 9e-3: (0.2, 0)}, []),
    ({1e-3: (0.6, 0), 3e-3: (0.5, 0), 9e-3: (0.2, 0)}, [3.3e-4]),
    ({1e-3: (1, -2), 3e-3: (1, -1), 9e-3: (1, -0.5)}, [0.027]),  # by loss
    ({10.0**k: (float(k), 0) for k in range(5)}, []),  # enough
])  # fmt: skip
def test_a_rate_at_an_end_is_tried_beyond_it(tried, more):
    assert verdict_runs.next_rates(tried) == more


def test_a_budget_is_read():
    for text, seconds in {"20m": 1200, "90s": 90, "90": 90, "1h30m": 5400, "0.5h": 1800}.items():
        assert verdict_plan.seconds_of(text) == seconds


def test_a_verdict_is_named_by_its_source_and_what_is_set():
    request = Request(
        "rows/my own.jsonl", "laptop", dict(steps=9, sizes=("n=1", "m=2")), n_layers=3
    )
    assert verdict_plan.checked(request).name == "my-own_steps-9_sizes-n=1+m=2_L3"


def test_a_budget_takes_seeds_and_then_steps(own, monkeypatch):
    monkeypatch.setattr(verdict_plan, "step_seconds", lambda *given: (0.01, 0.02))  # a busy machine
    source = own()
    own_code.NAMED.add(source)

    def plan(seconds, **more):
        settings = dict(steps=500)
        return verdict_plan.prepared(Request(source, "tasks", settings, seconds=seconds, **more))

    whole = plan(None)
    assert whole.seeds == 20 and whole.slower == 2 and not whole.notes
    runs, seconds = whole.cost(20)
    assert runs == 4 * 3 * 2 + 4 * 20  # tuning; equal time is equal steps
    assert seconds == pytest.approx(runs * (1 + 1.2 * 2 * 500 * 0.01))
    assert plan(seconds).seeds == 20 and plan(seconds - 1).seeds == 12
    assert plan(seconds, jobs=2).cost(20)[1] == seconds / 2
    five = whole.cost(5)[1]
    assert plan(five).seeds == 5 and not plan(five).notes
    with pytest.raises(ValueError, match=f"five seeds are {whole.cost(5)[0]} runs of 125 steps"):
        plan(1)
    fewer = plan(five - 1)
    equal = dataclasses.replace(fewer, rates=dict.fromkeys(fewer.arms, 1e-3), spent=0.0)
    equal.request = dataclasses.replace(
        equal.request, seconds=4 * 5 * equal.seconds("one", "steps")
    )
    assert sweep.too_long(equal, 5, ["steps", "time"]) == ""  # at equal time they are the same runs
    assert fewer.steps["one"]["steps"] == 250 and fewer.seeds >= 5 and "250 steps" in fewer.notes[0]
    assert all(settings["steps"] == 250 for settings in fewer.arms.values())
    assert sweep.too_long(whole, 20, ["steps"]) == ""  # no budget
    fewer.rates = dict.fromkeys(fewer.arms, 1e-3)
    assert sweep.too_long(fewer, 5, ["steps"]) == ""
    fewer.spent = five
    assert "beyond the budget" in sweep.too_long(fewer, 5, ["steps"])


def test_arms_have_the_depth_and_the_parameters_they_stand_for(own):
    source = own()
    own_code.NAMED.add(source)
    data = registry.data_of(registry.configs("tasks", data=(source,))[1], 16)
    arms = verdict_plan.arms_of(Request(source, "tasks", dict(d_model=16), n_layers=3), data)
    made = {arm: registry.configs("tasks", **its)[0] for arm, its in arms.items()}
    depths = {arm: (m.n_layers, m.n_loops) for arm, m in made.items()}
    assert depths == dict(one=(1, 1), deep=(3, 1), looped=(1, 3), wide=(1, 1))
    n = {arm: variants.parameters(m)["layers"] for arm, m in made.items()}
    assert n["deep"] == 3 * n["one"] == 3 * n["looped"]
    assert n["wide"] == pytest.approx(n["deep"], rel=0.02)
    data = registry.data_of(registry.configs("tasks", data=("mqar",))[1], 128)  # 8 pairs are a map
    kept = verdict_plan.arms_of(Request("mqar", "tasks", {}), data)["reread"]
    assert (kept["n_layers"], kept["n_loops"], kept["loop_keeps"]) == (1, 4, 16)


# ---------- what cannot be judged ----------


@pytest.mark.parametrize(("task", "flags", "said"), [
    (dict(kinds=1), [], "every answer of the test is the same"),
    (dict(symbols=2, length=3), [], "training repeats"), (dict(guess="0.97"), [], "chance is 0.97"),
    (dict(), ["--margin", "0.01"], "a margin of 0.01 needs 2500"),
    (dict(), ["--budget", "1s"], "five seeds are"), (dict(), ["--budget", "soon"], "is no time"),
    (dict(), ["--seeds", "4"], "is no look"), (dict(), ["--n_layers", "1"], "give from 2 to 100"),
    (dict(), ["--margin", "0"], "a number from 0 to 1"), (dict(), ["--jobs", "0"], "at least 1"),
    (dict(), ["--sizes", "hops=3"], "hops"), (dict(), ["--depth", "3"], "--depth"),
    (dict(), ["--lr", "much"], "float value: 'much'"),
    (dict(), ["--sizes", "kinds=2,kinds=3"], "gives a size twice"),
    (dict(), ["--margin", "0.1", "--margin=0.2"], "--margin is given twice"),
])  # fmt: skip
def test_what_cannot_be_judged_is_said_in_a_line(own, capsys, task, flags, said):
    assert train.main(["--verdict", own(**task), *flags]) == 2
    told = capsys.readouterr()
    assert told.err.count("\n") == 1 and said in told.err and not told.out
    assert not os.path.exists("verdicts")  # before any run


def test_an_unknown_source_is_said_in_a_line(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [dict(question=f"{i} ?", answer=f"so #### {i % 7}") for i in range(90)]
    (tmp_path / "few.jsonl").write_text("\n".join(map(json.dumps, rows)))
    for source, said in (
        ("no.jsonl", "no.jsonl"), ("no.py", "no.py"),
        ("few.jsonl", "needs 100; give more of them, or --margin 0."),
        ("strides", "a loss after each loop"),
        ("embedded --preset text_loops --max_rows 90", "a loss after each loop"),
    ):  # fmt: skip
        assert train.main(["--verdict", *source.split()]) == 2
        err = capsys.readouterr().err
        assert err.count("\n") == 1 and said in err
    assert not os.listdir("verdicts")  # where the rows of what is refused had been


# ---------- rows ----------


def test_a_file_is_split_by_question_and_tuned_on_what_is_not_reported(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [dict(question=f"{i} squared ?", answer=f"so #### {i * i % 97}") for i in range(1500)]
    twice = [json.dumps(row) for row in rows for _ in range(2)]  # the same question twice
    pathlib.Path("my.jsonl").write_text("\n".join(twice))
    settings = dict(tokenizer="characters", steps=4, batch_size=2, d_model=16, n_heads=2)
    plan = verdict_plan.prepared(Request("my.jsonl", "laptop", settings))
    parts = [[json.loads(line)["question"] for line in open(path)] for path in plan.rows.values()]
    assert list(plan.rows) == ["train", "tune", "test"]
    sizes = [len(set(part)) for part in parts]
    assert sum(sizes) == len(set().union(*parts)) == 1500  # no question is in two of them
    assert [len(part) for part in parts] == [2 * n for n in sizes]
    assert 100 < sizes[1] < 200 and 100 < sizes[2] < 200
    tuned = verdict_runs.cell_of(plan, "one", "steps", 1000, 1e-3, tuning=True)
    reported = verdict_runs.cell_of(plan, "one", "steps", 0, 1e-3)
    assert tuned.t.val_data == plan.rows["tune"] and reported.t.val_data == plan.rows["test"]
    assert tuned.t.data == reported.t.data == (plan.rows["train"],)
    plan.save()
    pathlib.Path("my.jsonl").write_text("\n".join(twice[2:]))
    with pytest.raises(ValueError, match="my.jsonl is not what verdicts/.* was begun with"):
        verdict_plan.prepared(Request("my.jsonl", "laptop", settings))
    origin = pathlib.Path("verdicts", plan.request.name, "data", verdict_rows.ORIGIN)
    kept = origin.read_text()
    origin.unlink()  # as of a verdict that was begun before this was noted
    assert verdict_plan.prepared(Request("my.jsonl", "laptop", settings)).rows == plan.rows
    origin.write_text(kept)
    pathlib.Path(plan.path).unlink()  # as after a --dry_run: nothing was trained on the parts
    again = verdict_plan.prepared(Request("my.jsonl", "laptop", settings)).rows
    asked = [json.loads(line)["question"] for path in again.values() for line in open(path)]
    assert len(set(asked)) == 1499


@pytest.mark.parametrize(("question", "answer", "name"), [
    ("problem", "solution", "my.jsonl"), ("query", "response", "my.json"),
    ("instruction", "output", "my.csv"),
])  # fmt: skip
def test_no_question_is_in_two_parts_whatever_it_is_called(tmp_path, question, answer, name):
    rows = [{question: f"{i} ?", answer: f"way {way} #### {i}"} for i in range(200) for way in "ab"]
    path = tmp_path / name
    if path.suffix == ".csv":
        cells = [",".join(row.values()) for row in [{0: question, 1: answer}, *rows]]
        path.write_text("\n".join(cells))
    else:
        text = "\n".join(map(json.dumps, rows)) if path.suffix == ".jsonl" else json.dumps(rows)
        path.write_text(text)
    assert verdict_rows.is_rows(str(path)) and not verdict_rows.is_rows("my.txt")
    parts = [{row[question] for row in rows} for rows in verdict_rows.of_file(str(path)).values()]
    assert sum(map(len, parts)) == len(set().union(*parts)) == 200


def test_what_a_file_is_read_as_is_said(tmp_path, capsys):
    lines = ["question,answer", '"a" screen of 5 or more,#### 1']
    (tmp_path / "my.csv").write_text("\n".join([*lines, *(f"{i} ?,#### {i}" for i in range(99))]))
    verdict_rows.of_file(str(tmp_path / "my.csv"))
    assert "note:" in (err := capsys.readouterr().err) and "quote" in err


def test_an_accuracy_is_of_the_problems_that_are_asked():
    """A run answers the first of them: with fewer, an interval is wider."""
    m, t = registry.configs("laptop", eval_problems=150, max_rows=300)
    data = registry.data_of(t, m.block_size)
    assert check_source(data, "embedded", 0.05, True, t.eval_problems)["answers"] == 150
    with pytest.raises(ValueError, match="has 99 problems .* a margin of 0.05 needs 100"):
        check_source(data, "embedded", 0.05, True, 99)
    assert check_source(data, "embedded", 0.05, True, 0)["metric"] == "nats"


def test_a_generator_of_reasoning_gym_becomes_rows(tmp_path, monkeypatch, capsys):
    gym = pytest.importorskip("reasoning_gym")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(verdict_rows, "N_TRAIN", 300)
    monkeypatch.setattr(verdict_rows, "N_TEST", 100)
    monkeypatch.setattr(verdict_rows, "LEAST", 300)
    paths = verdict_rows.made("rg:chain_sum", ("min_terms=3", "max_terms=3"), "data")
    asked = {}
    for part, path in paths.items():
        for line in open(path):
            row = json.loads(line)
            question, answer = (turn["content"] for turn in row["messages"])
            assert ("gym" in row) == (part != "train")
            assert asked.setdefault(question, part) == part
            assert question.count("+") + question.count("- ") == 2  # without its first words
            assert eval(question) == int(answer.removeprefix("#### "))  # and its last, " ="
    assert len(asked) == 500 and gym
    m, _ = registry.configs("laptop", data=(paths["train"],), **verdict_rows.settings_of(paths))
    assert m.block_size >= max(map(len, asked))
    for line, said in [
        (["rg:chain_sun"], "is chain_sum meant?"),
        (["rg:chain_sum", "--sizes", "foo=3"], "foo"),
        (["rg:coin_flip", "--sizes", "min_trials=1,max_trials=2"], "too few rows"),
    ]:
        assert train.main(["--verdict", *line]) == 2
        err = capsys.readouterr().err
        assert err.count("\n") == 1 and said in err


@pytest.mark.parametrize(("name", "others", "wrong"), [
    ("palindrome_generation", lambda right: [right[::-1].upper()], "x"),
    ("complex_arithmetic", lambda right: [right.replace(" ", ""), right.replace(".0", "")], "i"),
    ("gcd", lambda right: [], "x"),
])  # fmt: skip
def test_answers_to_reasoning_gym_are_scored_by_itself(name, others, wrong):
    gym = pytest.importorskip("reasoning_gym")
    for item in map(json.loads, map(json.dumps, gym.create_dataset(name, size=5, seed=1))):
        turns = [dict(role="user", content="?")]
        turns.append(dict(role="assistant", content=f"#### {item['answer']}"))
        answer = to_data.problem_of(forms.read_row(dict(messages=turns, gym=item)))["answer"]
        assert all(text == answer for text in [item["answer"], *others(item["answer"])])
        assert not any(text == answer for text in ["", wrong, f"{item['answer']} or not"])
        assert answer != 3 and hash(answer) == hash(str(answer))


# ---------- a whole verdict ----------


@pytest.fixture
def here(monkeypatch, kept):
    """One rate and one tuning seed; the names of the runs that are trained."""
    trained, main = [], dispatch.main

    def noted(arguments, **how):
        if not arguments[0].startswith("--verdict"):  # a run's, and not the verdict's own
            trained.append(arguments[arguments.index("--name") + 1])
        return main(arguments, **how)

    monkeypatch.setattr(dispatch, "main", noted)
    monkeypatch.setattr(verdict_plan, "FACTORS", (1.0,))
    monkeypatch.setattr(verdict_plan, "BEYOND", 0)
    monkeypatch.setattr(verdict_plan, "TUNING_SEEDS", (1000,))
    monkeypatch.setattr(task_data, "N_DRAWN", 200)  # sequences that a run is tested on
    return trained


LINE = "--verdict my.py --steps 6 --seeds 3 --n_layers 2 --name v".split()


def test_a_verdict_trains_writes_and_goes_on(own, here, capsys):
    own()
    line = [*LINE, "--batch_size", "100"]
    assert train.main(line) == 0
    said = capsys.readouterr().out
    assert "\nverdict  undecided" in said and "wrote    verdicts/v" in said
    kept = json.load(open("verdicts/v/verdict.json"))
    assert all(line in said for line in kept["text"].split("\n"))
    runs = kept["runs"]
    assert kept["decision"] == rule.UNDECIDED and kept["seeds"] == 3
    assert len({name for name in here if "tuning" in name}) == 4
    assert {run["seed"] for run in runs} == {0, 1, 2}
    assert not any("tuning" in run["folder"] for run in runs)
    assert {run["arm"] for run in runs} == {"one", "deep", "looped", "wide"}
    for arm in ("one", "deep"):
        by_seed = [run["score"] for run in runs if run["arm"] == arm]
        assert by_seed == kept["arms"][arm]["steps"]["scores"]
    page = open("verdicts/v/verdict.html").read()
    assert kept["text"].split("\n")[0].replace("'", "&#x27;") in page
    assert "http://" not in page.replace("http://www.w3.org", "") and "https://" not in page
    assert all(run["command"].replace('"', "&quot;") in page for run in runs)
    assert "--seeds 3" in open("verdicts/v/verdict.txt").read()  # the command that makes it again

    # a run by its own command, in another folder
    alone = shlex.split(runs[0]["command"])[2:]
    for flag, value in (("--out_dir", "."), ("--name", "alone")):
        alone[alone.index(flag) + 1] = value
    assert dispatch.main(alone) == 0 and here.pop() == "alone"
    losses = [[row["val_loss"] for row in log_of(each)] for each in (runs[0]["folder"], "alone")]
    assert losses[0] == losses[1]

    n = len(here)
    assert train.main(line) == 0 and len(here) == n  # the same command trains nothing again
    made = minidepth_lab.verdict("my.py", steps=6, seeds=3, n_layers=2, batch_size=100, name="v")
    assert len(here) == n and made.decision == rule.UNDECIDED and made.runs[0]["log"]
    assert made.differences["deep - one"].n == 3 and len(made.figure().axes[0].containers) == 4
    made.found.arms |= {arm: (0.5, -math.inf, math.inf) for arm in made.found.arms}  # of one seed
    assert not made.figure().axes[0].containers
    made.plan.tried["one"]["0.5"] = {"1000": (-math.inf, -math.inf)}  # a run that failed
    made.plan.told |= dict(metric="nats", ceiling=None)
    made.plan.request = dataclasses.replace(made.plan.request, repeats=True)
    verdict_page.write(made)
    kept = json.load(open("verdicts/v/verdict.json"), parse_constant=pytest.fail)
    assert kept["tuning"]["one"]["0.5"]["1000"] == [None, None]
    paste = open("verdicts/v/verdict.txt").read()
    assert "; gain " in paste and "minus the validation loss" in paste
    assert "--repeats" in paste and "--name v" in paste
    capsys.readouterr()
    plan = json.load(open("verdicts/v/plan.json"))
    assert plan["looks"] and all(look in said for look in plan["looks"])
    json.dump(plan | dict(spent=plan["spent"] + 1000), open("verdicts/v/plan.json", "w"))
    late = ["5" if word == "3" else word for word in line]
    assert train.main([*late, "--budget", "900s"]) == 0 and len(here) == n
    assert "beyond the budget" in capsys.readouterr().out
    for seed in range(3):  # as if they had not been trained yet
        shutil.rmtree(f"verdicts/v/runs/one-steps-seed{seed}")
    own(kinds=3)
    assert train.main(line) == 2 and "is not what earlier runs" in capsys.readouterr().err
    assert train.main([*line, "--lr", "0.1"]) == 2
    assert "another settings" in capsys.readouterr().err


def test_a_budget_that_is_over_ends_in_a_line_and_goes_on(own, here, capsys):
    own()
    assert train.main([*LINE, "--dry_run"]) == 0
    flag, source, *others = LINE
    assert train.main([f"{flag}={source}", *others, "--dry_run"]) == 0
    assert capsys.readouterr().out.count("at most") == 2
    request = Request("my.py", "tasks", dict(steps=6), n_layers=2, seeds=3, name="v")
    plan = verdict_plan.prepared(request)
    plan.spent = 1000.0
    for rates, said in ((None, "rates are chosen"), (dict.fromkeys(plan.arms, 1e-3), "first look")):
        plan.rates = rates or plan.rates
        plan.save()
        assert train.main([*LINE, "--budget", "900s"]) == 2 and not here
        assert f"over before the {said}" in capsys.readouterr().err


def test_stopped_keeps_all_and_the_same_command_goes_on(own, here, monkeypatch, capsys):
    own()
    main = dispatch.main

    for most in (2, 4):

        def stopped(arguments, most=most, **how):  # as a run ends after Ctrl-C
            a_run = "--verdict" not in arguments
            return 130 if a_run and len(here) == most else main(arguments, **how)

        monkeypatch.setattr(dispatch, "main", stopped)
        assert train.main(LINE) == 130
        assert "the same command goes on" in capsys.readouterr().err
        assert len(here) == len(set(here)) == most  # none of them twice
    assert json.load(open("verdicts/v/plan.json"))["spent"] > 0


def test_while_rates_are_chosen_a_run_may_diverge_but_not_fail(own, here, monkeypatch):
    own_code.NAMED.add(own())
    request = Request("my.py", "tasks", dict(steps=6), n_layers=2, name="v", command=dispatch.main)
    plan = verdict_plan.prepared(request)
    taken = "verdicts/v/runs/tuning-deep-lr0.002-seed1000"
    os.makedirs(taken)
    with checkpoints.locked(taken), pytest.raises(ValueError, match="by another process"):
        verdict_runs.tune(plan)
    assert not plan.rates
    trains = md.train

    def diverges(m, t, *given, **how):
        if t.lr > 0.005:
            raise md.Diverged("weights are infinite")
        return trains(m, t, *given, **how)

    monkeypatch.setattr(md, "train", diverges)
    monkeypatch.setattr(verdict_plan, "FACTORS", (1.0, 3.0))
    verdict_runs.tune(plan)
    assert plan.tried["deep"]["0.006"] == {"1000": (-math.inf, -math.inf)}
    assert plan.rates == dict.fromkeys(plan.arms, 0.002)


# ---------- two groups ----------


@pytest.fixture
def groups(tmp_path, monkeypatch):
    """Makes a folder of finished runs with these accuracies, by seed."""
    monkeypatch.chdir(tmp_path)
    rows, found = {}, command.results.result

    def result(folder):
        name = os.path.relpath(folder)
        return rows[name] if name in rows else found(name)

    def make(name, values, **own):
        for seed, value in enumerate(values):
            folder = tmp_path / name / f"seed{seed}"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "config.json").write_text("{}")
            row = dict(seed=seed, accuracy=value) | (own if seed else {})  # of all but the first
            rows[os.path.relpath(folder)] = row
        return name

    monkeypatch.setattr(command.results, "result", result)
    make.rows = rows
    return make


@pytest.mark.parametrize(("new", "code", "decision"), [
    ([0.91, 0.9, 0.92, 0.9, 0.91], 0, "keep"), ([0.9, 0.3, 0.6, 0.5, 0.7], 3, "undecided"),
    ([0.6, 0.61, 0.6, 0.6, 0.59, 0.6, 0.61, 0.6], 1, "discard"),
])  # fmt: skip
def test_two_groups_are_kept_discarded_or_undecided(groups, capsys, new, code, decision):
    old = [0.6, 0.6, 0.61, 0.59, 0.6, 0.6, 0.61, 0.6][: len(new)]
    line = ["--compare", groups("new", new), groups("old", old)]
    assert train.main([*line, "--json"]) == code
    said = json.loads(capsys.readouterr().out)
    assert said["decision"] == decision and said["exit_status"] == code
    assert said["difference"] == pytest.approx(np.mean(new) - np.mean(old))
    assert train.main(line) == code
    printed, more = capsys.readouterr().out, said["more_seeds"]
    assert printed.startswith(decision) and (" more seeds" in printed) == (code == 3)
    assert code != 3 or (f"over {rule.MOST}" if more is None else f"about {more}") in printed
    assert train.main(["--compare", "new/seed*", "old/*"]) == code  # patterns


def test_two_groups_are_compared_by_what_compares(groups, capsys):
    """By the answers to few problems less is sure; losses of other words compare by the byte."""
    for name, values in (("new", [0.66, 0.67, 0.65, 0.66, 0.67]), ("old", [0.6] * 5)):
        groups(name, values, answers=[1] * 100)
        groups(f"{name} surely", values)
    assert train.main(["--compare", "new surely", "old surely"]) == 0
    assert train.main(["--compare", "new", "old"]) == 3
    losses = {"a": [2.6, 2.7, 2.61], "b": [4.4, 4.3, 4.35]}
    for name, values in losses.items():
        groups(name, [None] * 3, tokenizer=name)
        for seed, value in enumerate(values):
            per_byte = dict(val_loss=value, val_loss_per_byte=5 - value, tokenizer=name, seed=seed)
            groups.rows[f"{name}/seed{seed}"] = per_byte
    capsys.readouterr()
    assert train.main(["--compare", "a", "b", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["metric"] == "val_loss_per_byte"
    del groups.rows["b/seed1"]["val_loss_per_byte"]
    assert train.main(["--compare", "a", "b"]) == 2
    assert "tokenizers do not compare" in capsys.readouterr().err


def test_two_groups_are_of_one_setting_each_and_share_seeds(groups, capsys):
    groups("old", [0.1, 0.2])
    groups("new", [0.5, 0.6], lr=1.0)
    for name in ("a/one", "a/two"):
        groups(name, [0.5, 0.6])  # of the same seeds
    groups("few", [0.5])
    for line, said in (
        (["new", "old"], "lr is None and 1.0"),
        (["a/*/seed*", "old"], "seed 0 is there twice"),
        (["few", "none"], "no finished run"),
        (["few", "few", "few"], "takes two"),
    ):
        assert train.main(["--compare", *line, "--json"]) == 2
        err = capsys.readouterr().err
        assert err.count("\n") == 1 and said in err
    assert train.main(["--compare", "old/*", "none/*"]) == 2
    assert "none/*: no finished run" in capsys.readouterr().err  # and not the other one


# ---------- the map ----------


def test_the_map_says_what_was_predicted(tmp_path, monkeypatch):
    monkeypatch.setattr(verdict_map, "FOLDER", tmp_path)
    tasks = {name: dict(predicted=["too easy"]) for name in "abce"}
    (tmp_path / "predictions.json").write_text(json.dumps(dict(tasks=tasks)))
    for name, decision in dict(a="too easy", b="depth helps", c="undecided", d="too easy").items():
        arms = {arm: dict(steps=dict(mean=0.5)) for arm in ("one", "deep", "looped", "wide")}
        kept = dict(decision=decision, more_seeds=4, arms=arms, seeds=8, seconds=90)
        kept |= dict(judged_by=dict(chance=0.1), runs=[dict(folder="x")])
        # of a task of ours today's chance is shown, of others the one that they were judged by
        request = dict(source="icqa" if name == "d" else f"rg:{name}", settings={})
        kept["request"] = request | (dict(settings=dict(sizes=["pairs=5"])) if name == "d" else {})
        (tmp_path / name).mkdir()
        (tmp_path / name / "verdict.json").write_text(json.dumps(kept))
        for _ in range(2):
            assert verdict_map.store(tmp_path / name) == name
    assert list(verdict_map.stored()) == list("abcd")
    assert verdict_map.stored()["a"]["runs"] == [{}]
    rows = {row[0]: row for row in verdict_map.rows()}
    assert [rows[name][3] for name in "abcd"] == [
        "too easy: held", "too easy: was wrong", "too easy: open", "–",
    ]  # fmt: skip
    assert rows["c"][2] == "undecided: about 4 more seeds" and rows["a"][4:6] == ["0.50", "0.50"]
    assert verdict_map.tally() == {
        "held": ["a"], "was wrong": ["b"], "open": ["c"], "not run": ["e"],
    }  # fmt: skip
    axes = Figure().subplots()
    verdict_map.draw(axes)
    texts = [label.get_text() for label in axes.get_yticklabels()]
    assert texts == ["c: undecided", "d: too easy", "a: too easy", "b: depth helps"]
    assert len(axes.lines) == 5 and list(axes.lines[-1].get_xdata()) == [0.1, 0.2, 0.1, 0.1]


def test_stored_verdicts_are_of_the_predictions_commands():
    tasks = verdict_map.predictions()["tasks"]
    for name, kept in verdict_map.stored().items():
        asked = kept["request"]["settings"]
        assert ",".join(asked.get("sizes", [])) == tasks[name]["sizes"]
        assert asked["steps"] == tasks[name]["steps"] and kept["seeds"] <= 8
