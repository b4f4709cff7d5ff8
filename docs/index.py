# %% [markdown]
# # Does depth help a Transformer reason?
#
# And how would you know? A [published experiment](tutorials/04_logs.md) trained a model of one
# attention layer and a model of twelve on the same chain-of-thought text. The training loss was
# lower with twelve layers, and its report concluded that depth helps reasoning. But the validation
# loss ended *higher* with twelve layers; there was one seed; no task had answers that can be
# checked; and the deeper model had twelve times the parameters in its blocks. The article about it
# names the single seed and the parameters as caveats, and proposes two further experiments: one
# layer widened to as many parameters, and a sweep over depths. Both are here, at a small size.
#
# **minidepth** puts that experiment into code that you can read in a sitting, and adds what it
# lacked: problems with answers, held-out accuracy, several seeds, and runs in which depth and
# parameter count are varied independently.

# %% tags=["hide"]
import matplotlib.pyplot as plt

from studies import results

runs = results.summary("depth")["runs"]
names = ["1 layer", "1 wide layer", "1 layer, 12 times", "12 layers"]
plt.figure()
for x, name in enumerate(names):
    values = [run["accuracy"] for run in runs if run["labels"]["model"] == name]
    mean, half = results.interval(values)
    plt.plot([x - 0.1] * len(values), values, "o", color="C0", alpha=0.7)
    plt.errorbar(x + 0.1, mean, half, fmt="s", color="C1", capsize=3)
tuned = [results.result(path)["accuracy"] for path in (results.RESULTS / "depth-wide").glob("*")]
assert "{:.3f} ± {:.3f}".format(*results.interval(tuned)) == "0.293 ± 0.019"  # as the caption says
guess = runs[0]["guess"]
plt.axhline(guess, color="C5", linestyle="--")
plt.annotate("guessing", (0.5, guess + 0.03), ha="center")
plt.xticks(
    range(4), ["1 layer\n75 k", "1 wide\n614 k", "1 layer,\n12 times\n75 k", "12 layers\n618 k"]
)
plt.ylim(0, 1.05)
plt.xlabel("model, with its number of parameters")
plt.ylabel("held-out accuracy\n(share of 600 problems)")
plt.show()

# %% [markdown]
# What to see: twelve layers answer most, with a wide spread, and one layer applied twelve times
# answers more than one applied once, which stays near guessing (0.221). There are five seeds per
# model; each dot is one run, each square a mean with its 95 % interval. The wide layer has eight
# times the parameters of one layer, and here it is badly trained: with a learning rate and initial
# weights of its own it answers 0.293 ± 0.019 (n = 5), still far fewer than twelve layers. All of
# this is one small size and one budget: [depth, parameters, memory](tutorials/05_caveats.md).
#
# ## Two commands
#
# On a laptop without a GPU, on Python 3.10 or newer, from the project's folder:
#
# ```
# pip install -r requirements.txt
# python train.py --n_layers 12
# ```
#
# The second command needs no network. It trains twelve layers in some minutes on two cores,
# and then the model answers problems that it has not seen.
# `python train.py --n_layers 1 12 --seed 0 1 2` trains both depths with three seeds each and ends
# with a table and a figure.
#
# ## The map
#
# | if you want to | read |
# |---|---|
# | see depth matter in less than a minute | [One look against many](tutorials/01_hypothesis.md) |
# | understand the model and where its parameters sit | [The model](tutorials/02_model.md) |
# | understand half precision, two GPUs, the learning rate | [Training](tutorials/03_training.md) |
# | check the published claim against its own logs | [The logs](tutorials/04_logs.md) |
# | tell depth from parameters and memory | [Depth, parameters, memory](tutorials/05_caveats.md) |
# | find how many layers a task needs | [Depth thresholds](tutorials/06_depth_thresholds.md) |
# | compare written steps with layers | [Thinking against depth](tutorials/07_thinking.md) |
# | look at attention, and measure it correctly | [Looking inside](tutorials/08_looking_inside.md) |
# | see what nine single runs can say | [Heads per layer](tutorials/09_heads.md) |
# | see what size, padding and a lack of data do | [Scale](tutorials/10_scale.md) |
# | see what each layer of a model knows | [Layer by layer](tutorials/11_layer_by_layer.md) |
# | train the published pair on Kaggle | [Kaggle](how-to/kaggle.md) |
# | train on your own text | [Own data](how-to/own_data.md) |
# | add a task or a study | [Own task, own study](how-to/own_task_and_study.md) |
# | look something up | [Every flag](reference/flags.md), [functions](reference/api.md) |
#
# You need Python and the basics of PyTorch: tensors, modules, a training loop. Words such as *nat*
# or *head* are in the [glossary](reference/glossary.md).
