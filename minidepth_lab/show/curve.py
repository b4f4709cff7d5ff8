"""curve.png, the figure in a run's folder."""

import os

import minidepth as md
from minidepth_lab.keep import checkpoints
from minidepth_lab.measure import results
from minidepth_lab.show import figures


def draw_lost(folder):
    """Draw the curve of a run that is finished and has none: a kill has cost it."""
    path = os.path.join(folder, "curve.png")
    try:
        (model, train), log = results.settings_of(folder), results.read_log(folder)
    except (OSError, ValueError):  # whoever reads it next says so
        return
    if checkpoints.is_over(log, train["steps"]) and not os.path.exists(path):
        draw_run(folder, log, model.n_layers, train["data"])


def draw_curve(run, t):
    """draw_run() of what train() gave."""
    draw_run(run.dir, run.log, run.model.config.n_layers, t.data)


def draw_run(folder, log, n, data):
    """Both losses over the steps, beside the report's two runs the published ones; in a second
    panel the accuracy, by family where the log has it, if every evaluation measured one; and in a
    third the last one by a number, such as the hops of a walk, where the log has that."""
    name = os.path.basename(folder)[-40:]
    logs = {name.lstrip("_"): log}  # matplotlib names no line whose label begins so
    if data == (md.TrainConfig.data,) and n in (1, 12):
        logs["published"] = results.published(f"report_log_{n}_layers")
    draw_logs(logs, os.path.join(folder, "curve.png"))


def draw_logs(logs, path, train=True):
    """Both losses of {name: log} over the steps, or the validation losses alone; in a second panel
    the accuracy of those whose every evaluation measured one, beside both losses by family."""
    measured = {}
    for number, (name, log) in enumerate(logs.items()):
        if all(record.get("accuracy") is not None for record in log):
            measured[name] = (log, f"C{number}")
    panels = 2 if measured else 1
    kind, shares = last_by_number(next(iter(logs.values())))
    if measured and len(logs) == 1 and len(shares) > 1:
        panels = 3
    with figures.drawing(path, 1, panels, (6 * panels, 4), squeeze=False) as (_, drawn):
        draw_losses(drawn[0, 0], logs, train)
        if not measured:
            return
        axes = drawn[0, 1]
        if train:
            draw_accuracy(axes, *[log for log, _ in measured.values()])
            if panels == 3:
                draw_by_number(drawn[0, 2], kind, shares)
            return
        for name, (log, color) in measured.items():
            steps = [record["step"] for record in log]
            shares = [record["accuracy"] for record in log]
            axes.plot(steps, shares, "o-", color=color, label=name, markersize=3)
        axes.legend(fontsize="small")
        label_accuracy(axes)


def draw_losses(axes, logs, train=True):
    """Train and validation loss of {name: log}, or the validation loss alone."""
    kinds = (("train_loss", "train, one batch", "o-"), ("val_loss", "validation", "s-"))
    for name, log in logs.items():
        steps = [record["step"] for record in log]
        for key, what, style in kinds if train else kinds[1:]:
            losses = [record[key] for record in log]
            axes.plot(steps, losses, style, label=f"{name}: {what}", markersize=3)
    axes.set(xlabel="optimizer step", ylabel="loss (nats per token)")
    if axes.dataLim.ymax > 0:  # most of the fall is in the first steps, most of the story later
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter(plain_numbers())
    axes.grid(alpha=0.3, which="both")
    axes.legend(fontsize="small")


def plain_numbers():
    """Between powers of ten as many labels as matplotlib chooses, but 6 for its 6 × 10⁰."""
    from matplotlib.ticker import LogFormatter

    class Plain(LogFormatter):
        def __call__(self, x, pos=None):
            return f"{x:g}" if super().__call__(x, pos) else ""

    return Plain()


def draw_accuracy(axes, log):
    """The share answered at each evaluation, of each family of problems and of all."""
    steps = [record["step"] for record in log]
    axes.plot(steps, [record["accuracy"] for record in log], "k-", label="all")
    if all("accuracy_by_family" in record for record in log):
        asked = set.intersection(*({*record["accuracy_by_family"]} for record in log))
        for family in sorted(asked):
            shares = [record["accuracy_by_family"][family] for record in log]
            axes.plot(steps, shares, "o-", label=family, markersize=3)
    guess = log[-1].get("guess")
    if guess is not None:
        axes.axhline(guess, color="dimgray", linestyle=":", label="guessing")
    if len(axes.lines) > 1:
        axes.legend(fontsize="small")
    label_accuracy(axes)


def last_by_number(log):
    """(what is counted, {number: accuracy}) of the last evaluation of a log, such as the hops of a
    walk or the additions of a sum; ("", {}) where it measured none, or a task of one's own has it
    in another form."""
    measured = log[-1].get("accuracy_by")
    for kind, parts in measured.items() if isinstance(measured, dict) else ():
        try:
            shares = {int(number): part["accuracy"] for number, part in parts.items()}
        except (AttributeError, KeyError, TypeError, ValueError):
            continue
        if shares:
            return kind, shares
    return "", {}


def draw_by_number(axes, kind, shares):
    """The last accuracy by a number, of {number: share}; far ones stand close together."""
    axes.plot(list(shares), list(shares.values()), "o-", color="k", markersize=3)
    axes.xaxis.get_major_locator().set_params(integer=True)
    if max(shares) > 20 * min(shares):
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
    label_accuracy(axes)
    axes.set(xlabel=f"{kind}, after the last step")


def label_accuracy(axes):
    axes.set(xlabel="optimizer step", ylabel="accuracy on the test split (share)")
    axes.set_ylim(-0.02, 1.02)
    axes.grid(alpha=0.3)
