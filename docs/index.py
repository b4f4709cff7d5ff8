# %% [markdown]
# # Does depth help a Transformer reason?
#
# **Yes, when what one lookup finds decides where to look next. But writing the steps down does
# more.** Eight letters form a ring; the question is which letter comes some hops after another.
# Answering at once, one attention layer only guesses. Looped five times, the same layer answers
# four hops in six of ten runs. Two layers that write each letter down answer seven hops in six of
# six runs.

# %% tags=["hide"]
import matplotlib.pyplot as plt

from minidepth_lab import results
from minidepth_lab.ring_runs import accuracies, draw_learned, staircase
from minidepth_lab.studies.ring import LEARNED
from minidepth_site import widgets

widgets.show("walk", *widgets.walk())

# %% [markdown]
# This is one of the ten models that loop one layer five times, and it runs in this page. The ring
# shows which letter it holds after each loop: orange is where the question starts, green is the
# answer. The menu has all ten, those that did not learn four hops included.
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
title = "each further loop adds one hop:\nruns that learned it"
learned = draw_learned(title, staircase())
plt.gca().set_xlabel("loops of the same layer")
plt.show()
not_all = {(3, 4): 8, (4, 5): 6}  # (hops, loops): runs, as the text says
for (k, n), (good, runs) in learned.items():
    assert runs == 10
    assert good == (0 if k >= n else not_all.get((k, n), runs))
wide = accuracies(results.runs("ring-staircase", d_model=120))
assert len(wide) == 10 and max(run[k] for run in wide.values() for k in run) <= 0.2
written = accuracies(results.runs("ring", answer="written", n_layers=2))
assert len(written) == 6 and min(run[7] for run in written.values()) >= LEARNED

# %% [markdown]
# What to see: with one loop, the layer learns nothing; each further loop adds one hop, though the
# fourth and the fifth not in every run. Each cell counts the training runs that learned that many
# hops, that is, answered at least 0.9 of the questions on rings they had never seen. Every column
# has the same number of weights and the same training, in which longer questions join as a run
# learns the shorter ones, and we [wrote down](results/ring-staircase/notes.md) what to expect
# before the runs. Right of the orange line, a way to do it is known. Inside, the model [walks along
# the ring](tutorials/18_one_more_step.md), one letter per loop.
#
# - **More parameters did not help.** A wide layer that has the parameters of four layers, without
#   loops, only guesses.
# - **Layers with weights of their own** [learned fewer hops](tutorials/19_another_layer.md) in the
#   same training than the same layer looped.
# - **Depth makes it possible; training has to find it.** This was our fifth way of training. In the
#   first four, three loops learned two hops in five, eight, five and ten of ten runs; we [had
#   predicted nine](tutorials/12_rings.md).
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
# ## All pages
#
# You need Python and the basics of PyTorch: tensors, modules, a training loop. Words such as *nat*
# or *head* are in the [glossary](reference/glossary.md).
#
# <div class="site-map"></div>
