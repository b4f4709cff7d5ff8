# %% [markdown]
# # Does depth help a Transformer reason?
#
# **On chained lookups, yes: one more loop through its layer, one more hop. In real reasoning text,
# neither a published report nor our reruns could show it.**

# %% tags=["hide"]
import markdown
import matplotlib.pyplot as plt

from minidepth_lab.measure.ring_runs import staircase
from minidepth_lab.show.figures import draw_learned
from minidepth_site import answer, widgets

widgets.show("walk", *widgets.walk())

# %% [markdown]
# <p>
# <a class="md-button md-button--primary" href="tutorials/play.md">Train one yourself,
# 1 min</a>
# <a class="md-button" href="tutorials/1_hypothesis.md">First lesson</a>
# <a class="md-button" href="minidepth.zip">Get the code</a>
# </p>
#
# The model is **one attention layer**. It was told, pair by pair, which letter follows which. A
# *hop* is one step along the ring. A *loop* is one trip through the layer, always with the same
# weights. The menu has all ten trainings: four of them did not learn four hops.
#
# ## The answer

# %% tags=["hide"]
widgets.show_html(markdown.markdown(answer.answer("{}.md")))

# %% [markdown]
# ## One more loop, one more hop

# %% tags=["hide"]
title = "each further loop adds one hop:\nruns that learned it"
learned = draw_learned(title, staircase())
plt.gca().set_xlabel("loops of the same layer")
plt.show()
not_all = {(3, 4): 8, (4, 5): 6}  # (hops, loops): runs
for (k, n), (good, runs) in learned.items():
    assert runs == 10
    assert good == (0 if k >= n else not_all.get((k, n), runs))

# %% [markdown]
# What to see: with one loop the layer learns nothing; each further loop adds one hop, the fourth
# and fifth only in some runs. Each cell counts the trainings, of ten, that answer 0.9 of the
# questions on new rings. Every column has the same number of weights. Right of the orange line we
# know weights that would work.
#
# Trained apart, models differ in more than their loops. [Take loops away from one
# model](tutorials/4_walking.md#change-only-the-number-of-loops), and it loses a hop for each. One
# layer *can* answer one-hop questions, with [weights written by
# hand](tutorials/4_walking.md#what-this-shows-and-what-it-does-not); training did not find
# them.
#
# ## Where to go on
#
# - **Play.** [Train a layer and ask trained ones](tutorials/play.md), in your browser.
# - **Understand.** The lessons, from [the hypothesis](tutorials/1_hypothesis.md) on, or [the
#   finding from scratch](tutorials/from_scratch.md) in about a hundred lines of PyTorch.
# - **Doubt.** [All predictions](reference/predictions.md) and which were wrong, [the published
#   logs](tutorials/2_logs.md) that it began with, [the log of every run](reference/results.md).
# - **Use it.** [Does depth help on your problem?](how-to/verdict.md) With Python 3.11 or newer,
#   [download the project](minidepth.zip) and unpack it. A laptop will do:
#
# ```
# pip install -r requirements.txt
# python train.py --n_layers 12
# ```
#
# <details><summary>All pages, and what each says</summary><div class="site-map"></div></details>
