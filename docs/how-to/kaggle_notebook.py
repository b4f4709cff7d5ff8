# %% [markdown]
# # One layer against twelve, on 2 × T4
#
# Trains the two models of the published report and draws them beside its logs. Set the accelerator
# to *GPU T4 x2* and Internet to *On*. On one T4 the same runs are trained on that; without a GPU
# that this PyTorch can use, small models on the CPU.

# %%
import os

import matplotlib.pyplot as plt
import torch

from minidepth_lab.base import configs, machine
from minidepth_lab.keep import checkpoints, running
from minidepth_lab.measure import results

PRESET = "report"
SETTINGS = dict(out_dir="runs", seed=0)

# a P100 may be too old for this PyTorch, and without a GPU the report's models would train for days
try:
    device = machine.pick_device("auto").type
except ValueError as error:
    print(error)
    device = SETTINGS["device"] = "cpu"
if device != "cuda" and PRESET == "report":
    PRESET = "laptop"
n_gpus = torch.cuda.device_count()  # two of them train under DataParallel, one by itself
gpus = f"{n_gpus} x {torch.cuda.get_device_name(0)}" if n_gpus else "no GPU"
print(f"found {gpus}: preset {PRESET} on {device}, PyTorch {torch.__version__}")

# %% [markdown]
# Both models train on the same data in the same order. After a cut-off, run all cells again: a run
# goes on from its last checkpoint, and one that is finished is read, not trained again.


# %%
def finished(folder):
    """The log of a run that has done its last step; None of any other."""
    try:
        return results.result(folder)["log"]
    except ValueError:
        return None


logs = {}
for n_layers in (1, 12):
    m, t = configs.make(PRESET, n_layers=n_layers, name=f"{n_layers}-layers", **SETTINGS)
    folder = os.path.join(t.out_dir, t.name)
    logs[n_layers] = finished(folder)
    if logs[n_layers] is None:
        begun = os.path.exists(os.path.join(folder, "config.json"))
        run = running.train(m, t, resume=begun)
        model, logs[n_layers] = run.model, run.log
        del run
    else:
        model, _ = checkpoints.load(folder)
        print(f"{folder} is finished")
    print(f"{n_layers} layers: {model.num_params()}")
    if PRESET == "report":
        assert model.num_params()["total"] == {1: 60_207_744, 12: 79_688_832}[n_layers]
    del model
    torch.cuda.empty_cache()

# %%
figure, axes = plt.subplots(1, 2, figsize=(11, 4), sharey=True, layout="constrained")
for panel, key, title in zip(axes, ("train_loss", "val_loss"), ("train, one batch", "validation")):
    for number, (n_layers, log) in enumerate(logs.items()):
        drawn = [(log, "o-", "this run")]
        if PRESET == "report":
            published = results.published(f"report_log_{n_layers}_layers")
            drawn.append((published, "s:", "published"))
        for rows, style, whose in drawn:
            x, y = [row["step"] for row in rows], [row[key] for row in rows]
            label = f"{n_layers} layer{'s' * (n_layers > 1)}, {whose}"
            panel.plot(x, y, style, color=f"C{number}", label=label, markersize=3)
    panel.set(xlabel="optimizer step", ylabel="loss (nats per token)", title=title)
    panel.legend()
plt.show()

# %% [markdown]
# There is one run per depth (n = 1): look at the shape, not at the third digit. Three seeds per
# depth, with a table and intervals, are one command:
# `python train.py --preset report --n_layers 1 12 --seed 0 1 2`.

# %%
for n_layers, log in logs.items():
    best = min(log, key=lambda record: record["val_loss"])
    print(
        f"{n_layers:2} layers: last val {log[-1]['val_loss']:.4f}, best {best['val_loss']:.4f} at "
        f"step {best['step']}, train without dropout {log[-1]['train_loss_eval']:.4f}, "
        f"skipped steps {log[-1]['skipped_steps']}, {log[-1]['seconds']:.0f} s"
    )
