"""curve.png, the figure in a run's folder."""

import os

import minidepth as md
from studies import results


def draw_curve(run, t):
    """curve.png: both losses over the steps, the accuracy where every evaluation has one, and
    beside the report's two runs the published ones."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    n, logs = run.model.config.n_layers, {os.path.basename(run.dir)[-40:]: run.log}
    if t.data == (md.REPORT_DATA,) and n in (1, 12):
        logs["published"] = results.published(f"report_log_{n}_layers")
    for name, log in logs.items():
        steps = [row["step"] for row in log]
        for key, what, style in (("train_loss", "train, one batch", "o-"),
                                 ("val_loss", "validation", "s-")):  # fmt: skip
            losses = [row[key] for row in log]
            axes.plot(steps, losses, style, label=f"{name}: {what}", markersize=3)
    if all("accuracy" in row for row in run.log):
        right = axes.twinx()
        steps = [row["step"] for row in run.log]
        right.plot(steps, [row["accuracy"] for row in run.log], "^-", color="C4", markersize=3)
        right.set(ylabel="accuracy on the test split (share, triangles)", ylim=(-0.02, 1.02))
    axes.set(xlabel="optimizer step", ylabel="loss (nats per token)")
    axes.set_yscale("log")  # most of the fall is in the first steps, most of the story later
    axes.yaxis.set_major_formatter("{x:g}")
    axes.grid(alpha=0.3, which="both")
    axes.legend(fontsize="small")
    path = os.path.join(run.dir, "curve.png")
    md.write_file(path, lambda f: figure.savefig(f, dpi=150))
