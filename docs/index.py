# %% [markdown]
# # Does depth help a Transformer reason?
#
# And how would you know? A [published experiment](tutorials/04_logs.md) trained one attention layer
# and twelve on the same chain-of-thought text. It saw a lower training loss with twelve and
# concluded that depth helps reasoning. Its validation loss ended *higher* with twelve; it had one
# seed, no task whose answers can be checked, and twelve times the parameters in its blocks.
#
# **minidepth** repeats that experiment in one file that you can read in a sitting, and adds what it
# lacked: problems with answers, held-out accuracy, several seeds, and runs in which depth and the
# number of parameters vary one without the other.

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
# What to see: five seeds a model (n = 5, a round point a run); squares are means with 95 %
# intervals.
# One layer stays near guessing, 0.221, and so does a wide one with eight times the parameters.
# Applied twelve times, the same layer answers more, and twelve layers of their own most, with a
# wide spread. It is one small size and one budget, and the wide layer fares better at a learning
# rate of its own: [depth, parameters, memory](tutorials/05_caveats.md).
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
# The second command needs no network. It trains twelve layers in two to three minutes on two cores
# and then answers problems that it has not seen. `python train.py --n_layers 1 12 --seed 0 1 2`
# trains such pairs with three seeds and ends with a table and a figure.
#
# ## The map
#
# | to | read |
# |---|---|
# | see depth matter within half a minute | [One look against many](tutorials/01_hypothesis.md) |
# | understand the model and where its parameters sit | [The model](tutorials/02_model.md) |
# | understand half precision, two GPUs, the learning rate | [Training](tutorials/03_training.md) |
# | judge the published claim by its own logs | [The logs](tutorials/04_logs.md) |
# | tell depth from parameters and memory | [Depth, parameters, memory](tutorials/05_caveats.md) |
# | find how many layers a task needs | [Depth thresholds](tutorials/06_depth_thresholds.md) |
# | weigh written steps against layers | [Thinking against depth](tutorials/07_thinking.md) |
# | look at attention, and count it right | [Looking inside](tutorials/08_looking_inside.md) |
# | judge nine single runs, and eighteen intervals | [Heads per layer](tutorials/09_heads.md) |
# | see what size, padding and little data do | [Scale](tutorials/10_scale.md) |
# | train the published pair on Kaggle | [Kaggle](how-to/kaggle.md) |
# | train on your own text | [Own data](how-to/own_data.md) |
# | add a task or a study | [Own task, own study](how-to/own_task_and_study.md) |
# | look something up | [Every flag](reference/flags.md), [functions](reference/api.md) |
#
# You need Python and the basics of PyTorch: tensors, modules, a training loop. Words such as *nat*
# or *head* are in the [glossary](reference/glossary.md).
