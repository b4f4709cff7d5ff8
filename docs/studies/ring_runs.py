"""How runs on rings went: the accuracy over training, when it comes, and maps of what was learned.
The pages on rings share these."""

from studies import figures, ring
from studies.ring import LEARNED


def course(run, k):
    """{training step: accuracy k steps on} at each evaluation of a results.result()."""
    return {row["step"]: row["accuracy_by"]["lengths"][str(k)]["accuracy"] for row in run["log"]}


def onset(run, k):
    """The training step of the first evaluation at which a run answers k steps on; None without."""
    for step, accuracy in course(run, k).items():
        if accuracy >= LEARNED:
            return step
    return None


def draw_courses(axes, runs, k, color):
    """A thin line for each run: accuracy k steps on over training steps."""
    for run in runs:
        shares = course(run, k)
        axes.plot(list(shares), list(shares.values()), color=color, alpha=0.7)
    axes.set(xlabel="training step", ylim=(-0.03, 1.05))


def draw_learned(title, by_depth, answer="direct"):
    """Draw a map of {depth: {seed: {steps on: accuracy}}}, with pyplot: how many runs learned so
    many steps at that depth, and as a line where a way to do it is known from → {(steps on, depth):
    (runs that learned it, runs)}"""
    import matplotlib.pyplot as plt

    _, axes = plt.subplots(figsize=(0.5 + 0.62 * len(by_depth), 2.9))
    some_runs = next(iter(by_depth.values()))
    lengths = list(next(iter(some_runs.values())))
    learned = {}
    for k in lengths:
        for depth, runs in by_depth.items():
            good = sum(run[k] >= LEARNED for run in runs.values())
            learned[k, depth] = good, len(runs)
    cells = [[learned[k, depth] for depth in by_depth] for k in lengths]
    shares = [[good / n for good, n in row] for row in cells]
    texts = [[f"{good}/{n}" for good, n in row] for row in cells]
    figures.heat_map(axes, shares, vmax=1, texts=texts)
    for y, k in enumerate(lengths):
        edge = sum(depth < ring.layers_needed(k, answer) for depth in by_depth) - 0.5
        axes.plot([edge, edge], [y - 0.5, y + 0.5], color="C1", linewidth=4)
    axes.set_xticks(range(len(by_depth)), list(by_depth))
    axes.set_yticks(range(len(lengths)), lengths)
    axes.set(xlabel="depth", ylabel="steps on", title=title, xlim=(-0.6, len(by_depth) - 0.4))
    return learned
