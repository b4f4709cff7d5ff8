"""What the README tells in words: each sentence with a number is built here from the stored runs or
from the settings, and has to stand in it. Its tables, its commands and more of its sentences are in
test_readme.py and test_results.py."""

import inspect
import math
import pathlib
import statistics
import tomllib

import minidepth as md
from minidepth_lab.command import registry
from minidepth_lab.measure import judge, results, ring_runs
from minidepth_lab.models import by_hand
from minidepth_lab.studies import budget, depth, heads, reread, ring, text_loops, thinking, written
from minidepth_lab.studies import map as depth_map
from minidepth_lab.studies.ring import LEARNED
from minidepth_lab.tasks import TASKS
from minidepth_lab.tasks.base import task_data

ROOT = pathlib.Path(__file__).resolve().parents[1]
README = " ".join((ROOT / "README.md").read_text(encoding="utf-8").replace("**", "").split())

UP_TO_19 = (
    "none one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen"
).split()
TENS = {2: "twenty", 3: "thirty"}
ROUND = {100: "a hundred", 200: "two hundred", 1000: "a thousand"}
ORDINALS = {2: "second", 6: "sixth"}
PARTS = {2: "half", 3: "third", 4: "quarter", 8: "eighth"}  # 1/2, 1/3, …
TIMES = {1: "once", 2: "twice", 3: "three times"}

ONE, LOOPED, WIDE = "1 layer", "1 layer, 12 times", "1 wide layer"
TWO, TWELVE = "2 layers", "12 layers"


def word(n):
    """A whole number as the README's sentences have it."""
    if n in ROUND:
        return ROUND[n]
    if n < 20:
        return UP_TO_19[n]
    return TENS[n // 10] + (f"-{word(n % 10)}" if n % 10 else "")


def listed(words, last="and"):
    """ "one, two and four" """
    *first, end = words
    return f"{', '.join(first)} {last} {end}"


def of(good):
    """How many of some runs did something, each True or False: "six of ten"."""
    return f"{word(sum(good))} of {word(len(good))}"


def ends(runs, key="accuracy"):
    return [run[key] for run in runs]


def learned(accuracies, hops):
    """Of ring_runs.accuracies(), whether each run learned so many hops."""
    return [run[hops] >= LEARNED for run in accuracies.values()]


def test_how_many_predictions_were_wrong():
    judged = [judge.judged_predictions(judge.File(name)) for name in judge.experiments()]
    verdicts = [each["verdict"] for group in judged for each in group]
    n_wrong = verdicts.count(judge.WRONG)
    n_run = n_wrong + verdicts.count(judge.HELD)
    page = "[predictions](docs/reference/predictions.py)"
    assert f"Of {n_run} such {page} {n_wrong} were wrong." in README


# ---------- text of the report's kind ----------


def test_the_published_logs_and_the_pair_run_again():
    names = [path.stem for path in (results.RESULTS / "published").glob("report_log_*.csv")]
    few, many = sorted(int(name.split("_")[2]) for name in names)
    assert f"comparison of {word(few)} Transformer layer with {word(many)}, on chain" in README
    logs = {n: results.published(f"report_log_{n}_layers")[-1] for n in (few, many)}
    assert logs[many]["train_loss"] < logs[few]["train_loss"]
    higher = f"{logs[many]['val_loss'] - logs[few]['val_loss']:.2f}"
    ended = f"{word(many).capitalize()} layers ended with the lower training loss, but with a"
    a_loss = f"validation loss that is {higher} nats per token *higher*;"
    n_seeds = word(len(names) // len(logs))
    assert f"{ended} {a_loss} there was {n_seeds} seed," in README

    again = judge.named_runs("report")
    losses = {name: ends(again[name], "val_loss") for name in (ONE, TWELVE, "1 layer, wide")}
    assert {run["n_layers"] for run in again[TWELVE]} == {many}
    lower = f"{statistics.mean(losses[ONE]) - statistics.mean(losses[TWELVE]):.2f}"
    better = f"{word(many)} layers *predict* such text better by {lower} nats per token"
    assert f"Run again at its size, on other text, {better}" in README
    seeds = {len(group) for group in losses.values()}
    assert len(seeds) == 1 and max(losses[TWELVE]) < min(losses["1 layer, wide"])
    on_others = f"on other conversations of the same form and with {word(*seeds)} seeds,"
    on_new = f"{word(many)} layers end {lower} *lower* on new text, and lower than"
    wide = {run["n_layers"] for run in again["1 layer, wide"]}
    assert f"{on_others} {on_new} {word(*wide)} wide layer of as many parameters" in README


def test_the_learning_rates_of_the_pair():
    tuned = sorted(results.runs("report-tuned", seed=range(3)), key=lambda run: run["seed"])
    runs = results.by(tuned, "n_layers", "n_loops", "d_model")
    lowest = {model: ends(group, "best_val_loss") for model, group in runs.items()}
    (deep,) = (model for model in lowest if model[0] > 1)
    (looped,) = (model for model in lowest if model[1] > 1)
    once = (1, 1, deep[2])
    for model in lowest.keys() - {deep}:
        assert max(lowest[deep]) < min(lowest[model])
    mean, half = results.interval([a - b for a, b in zip(lowest[once], lowest[looped])])
    assert mean < half
    layers, loops = deep[0], looped[1]
    by = statistics.mean(lowest[once]) - statistics.mean(lowest[deep])
    better = f"or by {by:.2f} when each has a learning rate of its own"
    assert f"{better} (39 conversations of one split)" in README
    assert {len(run["log"][-1]["answers"]) for run in results.runs("report", n_layers=12)} == {39}
    ahead = f"{word(layers)} layers are still ahead at their best evaluation, by {by:.2f},"
    no_gain = f"one layer applied {word(loops)} times shows no gain over {TIMES[1]}"
    assert f"learning rate of its own, {ahead} and {no_gain}" in README


def test_text_gains_nothing_from_loops_beyond_training():
    best = set()
    for runs in judge.named_runs("text-loops").values():
        by_loops = text_loops.by_loops(runs)
        means = {n: statistics.mean(each[n] for each in by_loops) for n in by_loops[0]}
        best.add(min(means, key=means.get))
        beyond = [loss for n, loss in means.items() if n >= text_loops.LOOPS]
        assert beyond == sorted(beyond)
    trained = f"with one to {word(text_loops.LOOPS)} loops,"
    at_best = f"are best after {word(min(best))} to {word(max(best))}"
    beyond = f"and slowly get worse beyond {word(text_loops.LOOPS)}"
    assert f"worked solutions, {trained} {at_best} {beyond}" in README


def test_text_learned_by_heart_and_the_same_fit():
    stored = reread.stored(**reread.FIRST)
    few, most = min(read for read, _ in stored), max(read for read, _ in stored)
    problems = {read: stored[read, ONE][0]["sizes_by_name"]["problems"] for read in (few, most)}
    for key in ("train_loss_eval", "val_loss"):
        assert max(ends(stored[few, TWELVE], key)) < min(ends(stored[few, ONE], key))
    assert min(ends(stored[most, TWELVE], "val_loss")) > max(ends(stored[most, ONE], "val_loss"))
    lowest = {model: ends(stored[most, model], "best_val_loss") for model in (ONE, TWELVE)}
    assert max(lowest[TWELVE]) < min(lowest[ONE])
    falling = reread.at_fit(reread.models_read(stored, few), 3.27)
    constant = reread.at_fit(judge.named_runs("reread-constant"), 3.27)
    for losses in (falling, constant):
        assert max(losses[TWELVE]) < min(losses[ONE])
    one, twelve = (word(stored[few, model][0]["n_layers"]) for model in (ONE, TWELVE))
    beat = f"{twelve} layers beat {one} on training text and on new text."
    assert f"After {few} epochs on {problems[few]} solutions, {beat}" in README
    part = PARTS[problems[few] / problems[most]]
    worse = "their last validation loss was worse; at each run's best evaluation it was better."
    assert f"After {most} epochs on a {part} of them, {worse}" in README
    same = f"{twelve} layers predict new text better than {one}, with a falling learning rate"
    page = f"([The same text, {word(few)} times](docs/tutorials/same_text.py))"
    assert f"the same step, {same} and with a constant one {page}" in README


# ---------- rings ----------


def test_the_staircase_of_the_answer():
    stairs = ring_runs.staircase()  # {loops: {seed: {hops: accuracy}}}
    guessing = [max(run.values()) <= 0.2 for run in stairs[1].values()]
    assert f"one layer stays at guessing, in {of(guessing)} runs." in README
    loops, hops = max(stairs), max(stairs[1][min(stairs[1])])
    good = learned(stairs[loops], hops)
    told = f"a layer looped {word(loops)} times and, in {of(good)}, it answers {word(hops)}-hop"
    assert f"Train such {told} questions." in README
    n = word(sum(good))
    assert f"Take loops away from those {n} models, with nothing else changed" in README
    assert f"the {n} trained models that learned {word(hops)} hops, looped less often." in README

    tokens, _ = TASKS["ring"].draw(50, md.generator("walk"), lengths=tuple(range(1, hops + 1)))
    reached = {at: set() for at in range(1, loops + 1)}  # {loops: the hops that each model answers}
    for run in results.runs("ring-staircase", d_model=64, n_loops=loops):
        if run["accuracy_by"]["lengths"][str(hops)]["accuracy"] >= LEARNED:
            model, _ = md.load(results.weights("ring-staircase", run["id"]))
            for at in reached:
                shares = ring_runs.with_loops(model, tokens, at).items()
                reached[at].add(tuple(k for k, share in shares if share >= LEARNED))
    takes = {}  # {hops: the loops that they take in every model}
    for at, ((*answered,),) in reached.items():
        for k in answered:
            takes.setdefault(k, at)
    costs = {takes[k + 1] - takes[k] for k in range(1, hops)}
    assert f"each loop less costs {word(*costs)} hop; so it is in thirteen of fifteen" in README
    assert f"these trainings took {word(*costs)} loop for each." in README
    one, *more = ((word(k), word(at)) for k, at in takes.items())
    ways = [f"{one[0]} hop then takes {one[1]} loops", *(f"{k} take {at}" for k, at in more)]
    *first, last = ways
    assert f"In all {n}, {', '.join(first)}, and {last} ([Walking" in README


def test_the_rings_of_the_table():
    sizes, stairs = TASKS["ring"].sizes, ring_runs.staircase()
    runs = results.runs("ring-staircase")
    hops = sorted(next(iter(stairs[1].values())))
    assert f"{word(sizes['ring']).capitalize()} letters form a ring." in README
    assert f"at once the letter {word(hops[0])} to {word(hops[-1])} hops further along." in README
    least, n = f"{LEARNED} of the questions", task_data.N_DRAWN
    assert f"answered at least {least} on {n:,} rings drawn afresh" in README
    (drawn,) = {run["steps"] * run["batch_size"] * run["grad_accum"] for run in runs}
    there_are = math.perm(sizes["letters"], sizes["ring"]) // sizes["ring"]
    by_chance = word(round(n * drawn / there_are))
    assert f"(about {by_chance} of them had occurred in training, by chance;" in README
    held_out = [md.is_held_out(str(i), there_are) for i in range(8000)]
    part = PARTS[round(len(held_out) / sum(held_out))]
    assert f"runs since then keep an {part} of all rings for the test)" in README
    head = ["1 hop", *(f"{k} hops" for k in hops[1:])]
    assert f"| model | {' | '.join(head)} |" in README
    assert len({run["params_total"] for run in runs if run["d_model"] == 64}) == 1
    assert f"The first {word(len(stairs))} models have the same number of weights." in README


def test_the_rings_at_equal_computing():
    equal = results.by(results.runs("ring-compute"), "n_loops")
    found = {n: ring_runs.accuracies(group) for n, group in equal.items()}
    assert max(run[1] for run in found[1].values()) < 0.2
    two = {n: learned(runs, 2) for n, runs in found.items() if n > 1}
    (n_runs,) = {len(good) for good in two.values()}
    counts = listed(word(sum(good)) for good in two.values())
    told = f"hops are then learned in {counts} of {word(n_runs)} runs with {listed(map(word, two))}"
    assert f"(At equal computing one loop still only guesses; {word(2)} {told} loops.)" in README


def test_the_weights_written_by_hand():
    config = by_hand.one_layer(8).config
    (hops,) = by_hand.SIZES["lengths"]
    size = f"of width {config.d_model} and {word(config.n_heads)} heads"
    answers = f"answers every {word(hops)}-hop question with weights [written by hand]"
    assert by_hand.measured(config.n_heads) == 1
    assert f"{word(config.n_layers).capitalize()} attention layer {size} {answers}" in README
    heads_of_table = registry.configs("ring")[0].n_heads
    by_hand_there = by_hand.measured(heads_of_table), by_hand.expected(heads_of_table)
    there, calculated = (f"{share:.2f}" for share in by_hand_there)
    assert f"and {there} of them at the size of the table ({calculated} by calculation)" in README
    most = {}  # {heads: of the answers, the best run}
    for n_heads in (config.n_heads, heads_of_table):
        larger = results.runs("ring-wide", d_model=config.d_model, n_heads=n_heads, n_loops=1)
        right = [run["accuracy_by"]["lengths"][str(hops)]["accuracy"] for run in larger]
        most[word(n_heads)] = f"{max(right):.2f}"
    (eight, of_eight), (four, of_four) = most.items()
    found = f"{of_eight} of the answers at most with {eight} heads, and {of_four} with {four}."
    assert f"At the larger width it found {found}" in README


def test_the_recipes_of_the_rings():
    recipes = {  # a prediction of each, and its runs of three loops
        "ring/H1": judge.named_runs("ring")["3 loops"],
        "ring-short-memory/S1": judge.named_runs("ring-short-memory")["3 loops"],
        "ring-ten-seeds/T1": judge.named_runs("ring-ten-seeds")["3 loops"],
        "ring-gate/G1": judge.named_runs("ring-gate")["3 loops"],
        "ring-to-ten/Z1": results.runs("ring-staircase", d_model=64, n_loops=3),
    }
    n = word(len(recipes))
    assert f"It took us {n} training recipes." in README
    assert f"([Rings: {n} ways of training](docs/tutorials/rings.py))" in README
    *first, _ = recipes
    counts, predicted, n_runs = [], set(), set()
    for which in first:
        good = learned(ring_runs.accuracies(recipes[which]), 2)
        counts.append(word(sum(good)))
        n_runs.add(len(good))
        predictions = {each["id"]: each for each in judge.judged(which.partition("/")[0])}
        parts = predictions[which]["parts"]
        predicted |= {part["count"] for part in parts if part["of"] == "3 loops"}
    told = f"learned {word(2)} hops in {listed(counts)} of {word(*n_runs)} runs;"
    three = f"With the first {word(len(first))}, a layer looped {TIMES[3]}"
    assert f"{three} {told} we had predicted {word(*predicted)} (" in README
    deeper = judge.named_runs("ring")["5 loops"]
    (loops,) = {run["n_loops"] for run in deeper}
    good = learned(ring_runs.accuracies(deeper), 2)
    slower = f"in the first recipe {word(loops)} loops learned {word(2)} hops in {of(good)} runs"
    assert slower in README


def test_the_same_layer_or_layers_of_their_own():
    runs = judge.named_runs("ring-copies")
    own = runs["own, 6,000 steps"]
    (usual,) = {run["steps"] for run in results.runs("ring-staircase")}
    hops = max(max(run) for run in ring_runs.accuracies(own).values())
    layers, times = word(own[0]["n_layers"]), word(own[0]["steps"] // usual)
    good = learned(ring_runs.accuracies(own), hops)
    told = f"{layers} layers of their own learned {word(hops)} hops in {of(good)} runs,"
    assert f"With {times} times the steps {told}" in README
    copies, still = (ring_runs.accuracies(runs[name]) for name in ("copies", "still one layer"))
    for k in range(1, hops + 1):
        assert sum(learned(copies, k)) >= sum(learned(still, k))
    begun = results.runs("ring-copies", lengths=1)
    assert all(learned(ring_runs.accuracies(begun), 1)) and len(begun) == len(copies)
    assert f"a looped layer that knows {word(1)} hop they learned as much as it did." in README


def test_other_studies_of_the_same_layer_or_layers_of_their_own():
    khop = results.runs("khop", hops=4)
    four, four_times = (
        results.select(khop, n_layers=n, n_loops=n_loops) for n, n_loops in ((4, 1), (1, 4))
    )
    texts = reread.models_read(reread.stored(**reread.FIRST), 20)
    by_accuracy = [  # layers of their own, the looped layer
        (four, four_times),
        (depth.stored()[TWELVE], depth.stored()[LOOPED]),
        (budget.stored()[TWELVE], judge.named_runs("budget-tuned")[LOOPED]),
    ]
    by_loss = [(texts[TWELVE], texts[LOOPED])]
    for deep, looped in by_accuracy:
        assert statistics.mean(ends(deep)) > statistics.mean(ends(looped))
    for deep, looped in by_loss:
        own, loop = (statistics.mean(ends(group, "val_loss")) for group in (deep, looped))
        assert own < loop
    studies = by_accuracy + by_loss
    ratios = [deep[0]["params_total"] / looped[0]["params_total"] for deep, looped in studies]
    more = f"with {word(round(min(ratios)))} to {word(round(max(ratios)))} times the parameters"
    other = f"In {word(len(studies))} other studies of ours, layers of their own, {more},"
    assert f"{other} end ahead of the looped one in the mean" in README


def test_letters_written_down():
    runs = ring_runs.in_writing()[2]  # two layers
    hops = max(next(iter(runs.values())))
    told = f"{word(2).capitalize()} layers that write each letter down follow {word(hops)} hops"
    passes = f"which is {word(2 * hops)} layer applications one after another."
    assert f"{told} in {of(learned(runs, hops))} runs, {passes}" in README
    writers = results.runs("strides", ring=16)
    assert len(writers) == 20 and min(ends(writers, "own")) >= 0.95
    walkers = results.runs(
        "walk", ring=16, hops=8, loss_after="each", loop_start="recall", d_model=64, loop_keeps=0
    )
    once_round = [run["accuracy_by"]["hops"]["15"]["accuracy"] for run in walkers]
    assert len(once_round) > 10 and min(once_round) >= 0.95
    assert f"On rings of {word(16)} letters both come once round in every run, the looped" in README


# ---------- the commands ----------


def test_what_the_command_takes_and_tells():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert f"Python {project['requires-python'].removeprefix('>=')} or newer." in README
    laptop = md.PRESETS["laptop"]
    first = f"on the first {laptop['watch_problems']} held-out problems"
    assert f"{first} (on all {laptop['eval_problems']} in the last line)." in README
    assert f"family of the run above, over its {laptop['steps']:,} steps:" in README
    families, problems = word(len(md.FAMILIES)), laptop["eval_problems"]
    assert f"problems of the main command come in {families} families:" in README
    modulus = inspect.signature(md.embedded_rows).parameters["modulus"].default
    assert f"*chains* (sums modulo {word(modulus)})" in README
    assert f"the share of {problems} held-out problems answered right." in README
    lessons = list((ROOT / "docs" / "tutorials").glob("[1-9]_*.py"))
    assert f"{word(len(lessons)).capitalize()} lessons, a good hour in all" in README


def test_the_presets_of_the_table():
    model, _ = registry.configs("report", n_layers=12)
    n = f"{md.parameters(model)['total']:,}"
    assert f"`python train.py --preset report --n_layers 12` | the published run: {n} par" in README
    sizes = {}
    for name in ("walk", "sums", "hold"):
        _, t = registry.configs(name)
        sizes[name] = TASKS[name].sizes | results.size_values(t.sizes)
    walk, sums, hold = sizes.values()
    told = f"trained to follow {word(walk['hops'])} hops of a ring and looped {word(walk['far'])}"
    assert f"`python train.py --preset walk` | one layer, {told} times;" in README
    told = f"trained to add {word(sums['additions'])}, looped for {word(sums['far'])};"
    assert f"the same with a digit on each letter: {told} `--study sums`" in README
    assert f"the answer is to be held for {word(hold['far'])} loops; `--study hold`" in README
    trained, tested = text_loops.LOOPS, max(text_loops.TESTED)
    told = f"looped one to {word(trained)} times in training and {word(tested)} times at test;"
    assert f"`python train.py --preset text_loops` | worked solutions, {told}" in README
    how_to = (ROOT / "docs" / "how-to" / "own_task_and_study.md").read_text(encoding="utf-8")
    own_task = how_to.partition('```python title="my_task.py"\n')[2].partition("```")[0]
    under = 10 * math.ceil(len(own_task.splitlines()) / 10)
    assert f"(docs/how-to/own_task_and_study.md), in under {under} lines" in README


def test_the_studies_of_the_table():
    loops = [row["n_loops"] for row in ring.rows("ring", {}).values() if "n_loops" in row]
    told = f"one layer, looped {TIMES[min(loops)]} to {word(max(loops))} times |"
    assert f"| rings of letters: {told}" in README
    tasks, depths = word(len(depth_map.MAPPED)), depth_map.DEPTHS
    small = f"small models of {word(min(depths))} to {word(max(depths))} layers or loops"
    told = f"{tasks} tasks, each with a formula for the layers that it needs, and {small}"
    assert f"| a map of depth: {told} |" in README
    ways = word(len(written.rows("written", {})))
    assert f"| the same rings, answered in {ways} ways:" in README
    own = [budget.MODELS[name]["n_layers"] for name in budget.MODELS if name.endswith("layers")]
    layers = listed(word(n) for n in (1, *own))
    told = f"one looped {word(budget.MODELS[LOOPED]['n_loops'])} times and one wide layer,"
    assert f"| {layers} layers, {told} for the same CPU time |" in README
    schedules, (model, _) = heads.rows("heads", {}), registry.configs("heads")
    told = f"{word(len(schedules))} schedules of heads over {word(model.n_layers)} layers,"
    assert f"| {told} beside the published ones |" in README


# ---------- found so far ----------


def test_a_first_run_learns():
    runs = judge.named_runs("first-run")
    (least,) = (each["low"] for each in judge.judged("first-run")[0]["parts"])
    assert min(ends(runs[TWELVE])) >= least
    seeds = {len(group) for group in runs.values()}
    (guess,) = {f"{run['guess']:.3f}" for group in runs.values() for run in group}
    one, twelve = (word(runs[name][0]["n_layers"]) for name in (ONE, TWELVE))
    fresh = f"On {word(*seeds)} fresh seeds, none chosen, every {twelve}-layer run answers {least}"
    most = f"no {one}-layer run more than {max(ends(runs[ONE])):.3f}; guessing finds {guess}."
    assert f"At equal steps, {twelve} layers learn and {one} does not. {fresh}" in README
    assert f"answers {least} or more, and {most}" in README
    n = sum(name.startswith("first-run") for name in results.experiments())
    assert f"These are the {ORDINALS[n]} settings of" in README
    assert f"what the {word(n - 1)} before gave is on the page" in README


def test_what_layers_do_at_equal_time():
    models = budget.stored()
    cost = budget.COST[TWELVE] / budget.COST[ONE]
    assert 7.5 < cost < 8
    nearly = f"takes nearly {word(math.ceil(cost))} times as long as a step of"
    one, two, twelve = (word(models[name][0]["n_layers"]) for name in (ONE, TWO, TWELVE))
    assert f"A step of {twelve} layers {nearly} {one}." in README
    seeds = {len(runs) for runs in models.values()}
    gave = f"we gave each model the CPU time of {twelve} layers, with {word(*seeds)} fresh seeds:"
    assert gave in README
    (problems,) = {run["eval_problems"] for run in models[TWELVE]}
    missed = {name: problems - round(problems * min(ends(runs))) for name, runs in models.items()}
    solved = [name for name in models if missed[name] < 10]
    layers = listed(word(models[name][0]["n_layers"]) for name in solved).capitalize()
    but = f"all {problems} problems or all but {word(max(missed[name] for name in solved))}."
    assert f"{layers} layers answer {but}" in README
    assert all(budget.learned(models[ONE], "chain"))
    assert not any(budget.learned(models[ONE], "lookup"))
    assert f"{one.capitalize()} layer learns chains and a part of the orderings," in README
    all_three = {}  # CPU seconds until each run has learned all families
    for name in (TWO, TWELVE):
        all_three[name] = [max(budget.learned_at(name, run, each) for each in md.FAMILIES)
                           for run in models[name]]  # fmt: skip
    assert max(all_three[TWO]) < min(all_three[TWELVE]) / 2
    families = word(len(md.FAMILIES))
    told = f"{two.capitalize()} layers learn all {families} families in less than half of the time"
    assert f"{told} that {twelve} need." in README
    tuned = judge.named_runs("budget-tuned")
    low_to_high = []
    for name in (LOOPED, WIDE):
        low, high = (f"{end(ends(tuned[name])):.2f}" for end in (min, max))
        low_to_high.append(f"at {low} to {high}")
    instead = f"With settings of their own instead of those chosen for {twelve} layers,"
    assert f"{instead} they end {' and '.join(low_to_high)}." in README

    # the same, in other places
    assert f"At equal time, {two} layers do what {twelve} do." in README
    assert judge.verdict("budget/B5") == judge.WRONG  # which is about two layers
    assert f"among them that {two} layers would not be enough" in README
    assert f"With written steps, {two} layers were enough." in README
    as_many = f"{two} layers answer as many as {twelve} that train for the same CPU time"
    assert f"the command below, {as_many}" in README
    n_more = models[TWELVE][0]["n_layers"] - models[TWO][0]["n_layers"]
    more = f"a {ORDINALS[2]} layer helps and {word(n_more)} more do not."
    assert max(ends(models[ONE])) < min(ends(models[TWO]))
    assert f"On small problems of our own with written steps, {more}" in README


def test_what_the_looped_layer_does_at_equal_steps():
    found = {name: ends(runs) for name, runs in depth.stored().items()}
    one, twelve = (word(depth.stored()[name][0]["n_layers"]) for name in (ONE, TWELVE))
    (loops,) = {run["n_loops"] for run in depth.stored()[LOOPED]}
    (n,) = {len(group) for group in found.values()}
    for name in (ONE, WIDE, f"{WIDE}, tuned"):
        assert min(found[LOOPED]) > max(found[name])
    assert statistics.mean(found[TWELVE]) > statistics.mean(found[LOOPED])
    each = f"each of {word(n)} runs of {one} layer looped {word(loops)} times answers more"
    than = f"than each run of {one} layer, and than each of {one} wide layer with the parameters"
    assert f"{each} {than} of {twelve}; {twelve} layers answer more still, in the mean." in README
    pairs = math.comb(len(found), 2)
    told = f"{word(n).capitalize()} seeds cannot decide all {word(pairs)} comparisons"
    models = f"of its {word(len(found))} models: corrected for {word(pairs)}, none is below"
    assert f"{told} {models}" in README


def test_what_written_steps_did():
    lengths = sorted(
        int(name.split()[1]) for name in results.runs("lookups")[0]["accuracy_by_problem"]
    )
    steps, at_once = {}, {}  # {layers: its runs}
    for run in results.runs("lookups"):
        writes = results.size_values(run["sizes"])["answer"] == thinking.SIZES["answer"]
        (steps if writes else at_once).setdefault(run["n_layers"], []).append(run)
    enough = min(n for n in steps if min(ends(steps[n])) == 1)
    good = [run["accuracy"] == 1 for run in steps[enough]]
    n_runs = f"{word(sum(good))} runs of {word(len(good))}."
    hops = f"On lookups of {word(lengths[0])} to {word(lengths[-1])} hops,"
    all_of = f"{word(enough)} layers that write their steps answered all problems, in {n_runs}"
    assert f"{hops} {all_of}" in README
    several = {n: runs for n, runs in sorted(at_once.items()) if n > 1}
    two_hops = [run["accuracy_by_problem"]["lookup 2"] >= LEARNED
                for runs in several.values() for run in runs]  # fmt: skip
    layers = listed(map(word, several), "or")
    told = f"Of {word(len(two_hops))} runs of {layers} layers that answer at once,"
    assert f"{told} {word(sum(two_hops))} learned {word(2)} hops" in README


def test_the_thresholds_and_the_map_of_depth():
    widths = {md.PRESETS["laptop"]["d_model"]}
    for study in (depth.stored(), budget.stored()):
        widths |= {run["d_model"] for name in study if WIDE not in name for run in study[name]}
    (width,) = widths
    assert f"at small sizes (width {width}, but for the wide layers)" in README

    least = set()  # layers with which some task was learned, and not with fewer
    for task in ("memorize", "icqa", "template", "icl_template"):
        runs = [run for run in results.runs("tasks", data=task, n_loops=1) if run["grid"]]
        groups = results.by(runs, "n_layers").items()
        least.add(min(n for n, group in groups if min(ends(group)) >= 0.95))
    for runs in results.by(results.runs("khop", seed=range(60, 65)), "hops").values():
        groups = results.by(runs, "n_layers").items()
        least.add(min(n for n, group in groups if statistics.median(ends(group)) >= 0.95))
    layers = listed(word(n) for n in sorted(least))
    assert f"Which tasks were learned with {layers} layers, and which heads solve" in README

    counts = depth_map.called_right(depth_map.cells(depth_map.stored()))
    shares = {}  # {task: of its cells those that are as the formula says, by kind}
    for (name, _), (right, total) in counts.items():
        shares.setdefault(name, []).append(right / total)
    nearly = [name for name, both in shares.items() if min(both) > 0.9]
    tasks = f"{word(len(shares)).capitalize()} tasks with a formula each for the layers"
    assert f"{tasks} that they need, of which {word(len(nearly))} came out nearly" in README
    (usual,) = {run["steps"] for run in results.runs("map")}
    (longer,) = {run["steps"] for run in results.runs("map-longer", data="pointers")}
    found, as_written = depth_map.cells(depth_map.stored("map-longer", data="pointers")), {}
    for (name, kind, n, layers), share in found.items():
        if (name, kind) == ("pointers", "layers"):
            told = (share >= depth_map.RIGHT) == (layers >= depth_map.formula(name, n))
            as_written.setdefault(layers, []).append(told)
    whole = listed((word(n) for n, cells in as_written.items() if all(cells)), "and with")
    times = f"a third after {word(longer // usual)} times the training,"
    assert f"as written, and {times} with {whole} layers:" in README
