# %% [markdown]
# # Does depth help a Transformer reason?
#
# **Yes, when what one look finds decides where to look next. But writing the steps down does
# more.** Eight letters form a ring; the question is which letter comes some steps after another.
# Answering at once, one attention layer only guesses. Applied five times, the same layer answers
# four steps in six of ten runs. Two layers that write each letter down answer seven steps in
# six of six runs.
#
# **minidepth** is one file that you can read in a sitting, one command that trains models, and
# these pages. The pages are programs: their own code runs and draws their figures.
#
# <p>
# <a class="md-button md-button--primary" href="tutorials/01_hypothesis.md">First lesson</a>
# <a class="md-button" href="tutorials/08_looking_inside.md#where-does-it-look">Watch it learn</a>
# <a class="md-button" href="tutorials/ask.md">Ask a model</a>
# <a class="md-button" href="minidepth.zip">Get the code</a>
# <a class="md-button" href="how-to/kaggle.md">Kaggle</a>
# </p>

# %% tags=["hide"]
import matplotlib.pyplot as plt

from minidepth_lab import results
from minidepth_lab.ring import LEARNED
from minidepth_lab.ring_runs import accuracies, draw_learned, staircase

title = "each further application adds one step:\nruns that learned it"
learned = draw_learned(title, staircase())
plt.gca().set_xlabel("times that the same layer is applied")
plt.show()
not_all = {(3, 4): 8, (4, 5): 6}  # steps, applications: as the text says
for (k, n), (good, runs) in learned.items():
    assert runs == 10
    assert good == (0 if k >= n else not_all.get((k, n), runs))
wide = accuracies(results.runs("ring-staircase", d_model=120))
assert len(wide) == 10 and max(run[k] for run in wide.values() for k in run) <= 0.2
written = accuracies(results.runs("ring", answer="written", n_layers=2))
assert len(written) == 6 and min(run[7] for run in written.values()) >= LEARNED

# %% [markdown]
# What to see: applied once, the layer learns nothing; each further application adds one step,
# though the fourth and the fifth not in every run. Each cell counts the training runs that learned
# that many steps, that is, answered at least 0.9 of the questions on rings they had never seen.
# Every column has the same number of weights and the same training, in which longer questions join
# as a run learns the shorter ones, and we [wrote down](results/ring-staircase/notes.md) what to
# expect before the runs. Right of the orange line, a way to do it is known. Inside, the model
# [walks along the ring](tutorials/18_one_more_step.md), one letter per application.
#
# - **More parameters did not help.** A wide layer that has the parameters of four layers, applied
#   once, only guesses.
# - **Layers with weights of their own** [learned fewer steps](tutorials/19_another_layer.md) in the
#   same training than the same layer applied again.
# - **Depth makes it possible; training has to find it.** This was our fifth way of training. In the
#   first four, three applications learned two steps in five, eight, five and ten of ten runs; we
#   [had predicted nine](tutorials/12_rings.md).
# - **With the steps written out, few layers are enough.** On small problems two layers answer [as
#   many as twelve](tutorials/16_depth_or_time.md) that train for the same CPU time, and learn them
#   sooner. What helps is that they can [read what they wrote](tutorials/14_written_steps.md).
#
# It began with a [published experiment](tutorials/04_logs.md): one layer against twelve on the same
# chain-of-thought text. Twelve layers ended with the lower training loss, and its report concluded
# that depth helps reasoning. But their validation loss ended *higher*, there was one seed, and no
# answer was checked. An article on the runs named the seed and the extra parameters as caveats, and
# proposed controls. [We ran those](tutorials/05_caveats.md), small, with several seeds and checked
# answers. In [a small copy of the training](tutorials/20_same_text.md), where a text is read twenty
# times, deeper models predict new text better; where a quarter of it is read eighty times, twelve
# layers do worse than one.
#
# ## Two commands
#
# On a laptop without a GPU, with Python 3.10 or newer: [download the project](minidepth.zip) and
# unpack it. In its folder run
#
# ```
# pip install -r requirements.txt
# python train.py --n_layers 12
# ```
#
# The second command needs no network. It trains a model of twelve layers in a few minutes on two
# cores, and then has it answer problems that it has never seen. `python train.py --n_layers 1 12
# --seed 0 1 2` trains both depths with three seeds each and ends with a table and a figure.
#
# ## The path
#
# 1. [One look against many](tutorials/01_hypothesis.md): see depth matter in less than a minute.
# 2. [The model](tutorials/02_model.md): every part of it, and where its parameters sit.
# 3. [Training](tutorials/03_training.md): half precision, two GPUs, the learning rate.
# 4. [The logs](tutorials/04_logs.md): the published claim against its own logs.
# 5. [Depth, parameters, memorisation](tutorials/05_caveats.md): the controls that tell them apart.
# 6. [Depth by itself](tutorials/12_rings.md): one step and two, what we had predicted, and what it
#    took to train it.
# 7. [One more application, one more step](tutorials/18_one_more_step.md): the runs behind the
#    figure above, and what the model does inside.
#
# ## Further reading
#
# | if you want to | read |
# |---|---|
# | ask a model of one layer and one of twelve | [Ask the models](tutorials/ask.md) |
# | compare depths at equal training time | [Depth or time?](tutorials/16_depth_or_time.md) |
# | repeat a layer, or add new ones | [The same layer, or another?](tutorials/19_another_layer.md) |
# | see what reading a text again does | [The same text, twenty times](tutorials/20_same_text.md) |
# | see what more depth than needed costs | [More depth than needed](tutorials/17_more_depth.md) |
# | see when a run learns, and how much is luck | [Seeds, threads, luck](tutorials/13_seeds.md) |
# | find out why a run fails to learn | [A first run that learns](tutorials/15_first_run.md) |
# | find how many layers a task needs | [Depth thresholds](tutorials/06_depth_thresholds.md) |
# | compare written steps with layers | [Thinking against depth](tutorials/07_thinking.md) |
# | know why written steps help | [Written steps, taken apart](tutorials/14_written_steps.md) |
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
