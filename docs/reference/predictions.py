"""Prints the page of all predictions that were written down before their runs.

What was predicted stands in docs/results/NAME/predictions.toml, and judge.py works out the verdicts
from the stored runs: none is typed here, nor a number of a run.
"""

import pathlib
import re
import statistics

from minidepth_lab import tasks
from minidepth_lab.measure import judge, order, results
from minidepth_lab.measure.judge import HELD, NOT_RUN, WRONG
from minidepth_lab.show import verdict_map
from minidepth_lab.studies import reread

TUTORIALS = pathlib.Path(__file__).parents[1] / "tutorials"


def title(page):
    """What a tutorial is called: its first heading."""
    text = (TUTORIALS / f"{page}.py").read_text(encoding="utf-8")
    return re.search("^# # (.*)", text, re.MULTILINE)[1]


def link(*pages):
    """Links to tutorials."""
    return " and ".join(f"[{title(page)}](../tutorials/{page}.md)" for page in pages)


def counts(numbers):
    """How many runs each part of a prediction has."""
    numbers = [str(number) for number in numbers]
    if len(numbers) > 1 and len(set(numbers)) == 1:
        return f"{numbers[0]} each"
    return ", ".join(numbers)


def measured(experiment, which, part=0):
    """What the runs gave of one part of a prediction, as "5 of 10"."""
    return by_id[f"{experiment}/{which}"]["parts"][part]["measured"]


def tally_of(*which):
    """How many of the judged predictions of these orders held, as "150 of 200"."""
    words = [by_id[key]["verdict"] for each in which for key in order_of[each]]
    return f"{words.count(HELD)} of {words.count(HELD) + words.count(WRONG)}"


files = {name: judge.File(name) for name in judge.experiments()}
judged = {name: judge.judged_predictions(file) for name, file in files.items()}
by_id = {each["id"]: each for group in judged.values() for each in group}
words = [each["verdict"] for each in by_id.values()]
n_held, n_wrong = words.count(HELD), words.count(WRONG)
order_of = {
    which: [key for key in keys if by_id[key]["verdict"] != NOT_RUN]
    for which, keys in order.counts().items()
}
n_ordered = sum(map(len, order_of.values()))
n_others = n_ordered - len(order_of[order.BEFORE]) - len(order_of[order.MEASURED])
n_of_verdicts = sum(map(len, verdict_map.tally().values()))
not_run = ", ".join(key for key in by_id if by_id[key]["verdict"] == NOT_RUN)

print(f"""# Predictions

**Of {n_held + n_wrong} predictions that have been run, {n_held} held and {n_wrong} were wrong.**
These are all {len(words)} that have a name in our files; what was expected without a name is not
counted, and [{n_of_verdicts} more](../how-to/verdict.md#a-map-of-other-peoples-tasks) are about
verdicts. Not run, or not yet: {not_run or "none"}. A prediction of several parts held only if each
part did, so some that were wrong came true in part. Many say of fresh seeds what had been seen with
others, as their notes tell, so the share that held says little about how well we understand these
models.

Git shows that {len(order_of[order.BEFORE])} were committed before their runs, and
{len(order_of[order.MEASURED])} before the measurement that they predict. Of the other {n_others} it
does not: [which is which](#written-before-the-runs).

## What surprised us

These results were furthest from what we had expected. The choice is ours.
""")

khop = {name: [run["accuracy"] for run in runs] for name, runs in judge.named_runs("khop").items()}
one_hop, eight_hops = khop["1 layer, 1 hop"], khop["5 layers, 8 hops"]
two_tokens = tasks.TASKS["khop"].chance(length=48, hops=(8,))[1]
budget = judge.named_runs("budget")
chains = sum(results.onset(run, "chain") is not None for run in budget["1 layer"])
over_it = sum(run["accuracy"] > 0.6 for run in budget["1 layer"])
least = min(run["accuracy"] for run in budget["2 layers"])
texts = reread.stored(**reread.FIRST)
loop_ends, one_ends = (
    statistics.mean(run["val_loss"] for run in texts[20, model])
    for model in ("1 layer, 12 times", "1 layer")
)
same_fit = reread.at_fit(reread.models_read(texts, 20), 3.27)
apart = statistics.mean(same_fit["1 layer, 12 times"]) - statistics.mean(same_fit["12 layers"])
assert least == 1 and abs(apart) < 0.01 and chains == 6
assert max(eight_hops) < two_tokens < 0.27
TOLD = ["ring/H1", "ring/H2", "ring/H5", "ring-short-memory/S1", "ring-ten-seeds/T1"]
TOLD += [
    "ring-to-ten/Z2",
    "khop/K1",
    "khop/K2",
    "budget/B2",
    "budget/B5",
    "lookups/L5",
    "reread/M9",
]
assert all(by_id[key]["verdict"] == WRONG for key in TOLD)
assert by_id["ring-gate/G1"]["verdict"] == by_id["ring-gate/G7"]["verdict"] == HELD
print(f"""
1. **Two layers do what twelve do in the same CPU time**, on the problems of the main job. All six
   runs end at {least:.3f}, where we had expected 0.95 in three at most (B5;
   {link("7_equal_time")}).
2. **More loops than needed learned less.** In the first training one layer looped five
   times learned one hop and two in {measured("ring", "H2", 1)} runs, and looped four times in
   {measured("ring", "H2", 0)}, where we had expected 8 each. With another timetable four
   loops did in {measured("ring-gate", "G7")}, as expected (H2, G7; {link("beyond_training")}).
3. **What a depth makes possible, training did not always find.** One layer looped three times
   learned one hop and two in {measured("ring", "H1", 2)} runs. With a shorter memory of the
   gradient it was {measured("ring-short-memory", "S1")}, and with more steps as well
   {measured("ring-ten-seeds", "T1")}, where we had expected 9 each time; the fourth training that
   we tried did it in {measured("ring-gate", "G1")} ({link("beyond_training")}).
4. **Two layers looped twice stayed at one hop.** {measured("ring", "H5")} runs learned one hop
   and two, where we had expected 5; of four layers with weights of their own
   {measured("ring", "H4", 2)} learned two. In the later training it was
   {measured("ring-to-ten", "Z2", 2)}, where we had expected 3 (H5, Z2; {link("beyond_training")}).
5. **Five layers found nothing of eight hops**, for which a way with five layers is known. All five
   runs end at {max(eight_hops):.2f} or less, and the last two symbols alone give {two_tokens:.2f};
   we had expected two runs to learn it (K2; {link("depth_map")}).
6. **A single run misled us.** Three layers that answer at once had learned every length with one
   seed; of five fresh seeds {measured("lookups", "L5")} did, where we had expected three (L5;
   {link("5_writing")}).
7. **One layer looped twelve times ended above the same layer without loops** on new text, at
   {loop_ends:.2f} nats per token against {one_ends:.2f}, where we had expected it below. At
   the same fit of the training text it is within 0.01 of twelve layers, but gets there later (M9;
   {link("7_equal_time")}).
8. **One layer does more than we thought.** It answers {min(one_hop):.2f} to {max(one_hop):.2f} of
   the targets of one hop, where we had expected 0.60 or less (K1; {link("depth_map")}).
   And in the CPU time of twelve layers it learned chains of sums in all six runs, with which
   {over_it} of them answer more than the 0.6 that we had expected at most (B2;
   {link("7_equal_time")}).

## Every prediction

Runs that did as predicted are counted, part by part in the order in which the prediction names its
parts; of a comparison the two numbers are given that it compares. p values are those that the file
asks for. The column "committed" is told [below](#written-before-the-runs).""")
for name, file in files.items():
    days = sorted({each["written"] for each in judged[name]})
    dates = " and ".join(f"{day.day} {day:%B %Y}" for day in days)
    told = f"; told in {link(*file.about['told'])}" if file.about["told"] else ""
    notes = results.RESULTS / name / "notes.md"
    predicted = f"[Predicted](../results/{name}/notes.md)" if notes.exists() else "Predicted"
    print(f"\n### {name}\n\n**{file.about['title']}** {predicted}", end=" ")
    print(f"on {dates}{told}. {' '.join(file.about['note'].split())}\n")
    print("| | predicted | committed | measured | runs | verdict |\n|---|---|---|---|---|---|")
    when = {each["id"]: order.of(file, each) or "–" for each in file.predictions}
    for each in judged[name]:
        verdict = f"**{WRONG}**" if each["verdict"] == WRONG else each["verdict"]
        cells = each["id"].partition("/")[2], " ".join(each["sentence"].split()), when[each["id"]]
        cells += (each["measured"],)
        print(f"| {' | '.join(cells)} | {counts(each['n'])} | {verdict} |")

# ---------- order, tests, time ----------

everywhere = [run for name in results.experiments() for run in results.runs(name)]
n_gone = sum(not order.times(run["date"])[0] for run in everywhere)
MEANS = {
    order.BEFORE: "before the code of each of its runs was",
    order.MEASURED: "the runs were there; what it predicts was measured of them with later code",
    order.UNPROVEN: "between the code of a run and the commit that stored it: our notes say "
    "before, the history does not show it",
    order.PARTLY: "when a part of its runs was stored: those it compares with, or earlier seeds",
    order.AFTER: "with its runs or after them, or after runs of the same settings and seeds, which "
    "were made again to measure more",
}
print(f"""
## Written before the runs?

A run names the commit of its code, and stands in the history from some commit on: it began between
the two. A prediction that was committed before the first of them came before its run. Since 28
November 2026 a run logs when it begins. {n_gone} runs name a commit that is no longer there.

| committed | means | predictions |
|---|---|---|""")
for which, means in MEANS.items():
    print(f"| {which} | {means} | {len(order_of[which])} |")
print(f"""
Of those that were certainly before {tally_of(order.BEFORE, order.MEASURED)} held, of the others
{tally_of(order.UNPROVEN, order.PARTLY, order.AFTER)}.""")
families = {}  # {family: its tests}
for file in files.values():
    for which, each in file.judged_tests.items():
        if each["ran"]:
            families.setdefault(each["family"], {})[f"{file.name}/{which}"] = each
several = {family: group for family, group in families.items() if len(group) > 1}
ps = [each["holm"] for group in several.values() for each in group.values()]
alone = sorted({key for family in families.keys() - several.keys() for key in families[family]})
print(f"""
## Which were tested

The files name {len(ps)} comparisons whose p values are corrected by Holm's method, over the
comparisons of one line below; {sum(p < 0.05 for p in ps)} of them end below 0.05. Nothing is
corrected over several lines. Fisher's exact test compares how many runs learned, the exact
permutation test compares means; both are two-sided. {" and ".join(alone)} stand alone and are not
corrected. The other predictions are counts of runs or comparisons of numbers, without a test.

| predictions | test | corrected p |
|---|---|---|""")
for family, group in several.items():
    name = family.partition("/")[0]
    tests = " and ".join(
        sorted({each["asked"].partition("(")[0].title() for each in group.values()})
    )
    values = "; ".join(
        f"{key.partition('/')[2]}: {each['holm']:.2g}" for key, each in group.items()
    )
    print(f"| [{files[name].about['title']}](#{name}) | {tests} | {values} |")

took = {}  # {experiment: (runs, hours of their training times threads)}
for name in files.keys() & set(results.experiments()):
    runs = results.runs(name)
    hours = sum((run["threads"] or 1) * run["seconds"] / 3600 for run in runs)
    took[name] = len(runs), hours
print(f"""
## What they took

The {sum(n for n, _ in took.values())} runs that are stored beside the predictions logged
{sum(hours for _, hours in took.values()):.0f} hours of training, a run with two threads counted
twice. These are hours by the clock, evaluations included, on machines that often did other work as
well; CPU time was not logged. Some of these runs belong to no prediction. Runs that only chose
settings, and runs that were stopped, are not in it.

| results | runs | hours times threads |
|---|---|---|""")
for name, (n, hours) in sorted(took.items()):
    print(f"| [{name}](results.md#{name}) | {n} | {hours:.1f} |")
