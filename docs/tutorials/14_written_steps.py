# %% [markdown]
# # What in the written steps helps?
#
# **You will learn** which part of writing the work down replaces layers: the extra tokens, the
# targets on the way, or the steps that can be read again.<br>
# **Time** 5 to 15 s: nothing is trained here, the runs are stored.<br>
# **Needs** [Depth by itself](12_rings.md).
#
# A model of two layers that writes each letter on its way along a ring gets anywhere. Answering at
# once, it gets one step far. But who writes has three things more than who answers at once: **time**,
# since each token is another pass through the layers; **supervision**, since each step is a target
# in training; and **something to read**, since the steps stand there for the tokens after them. Here
# they are taken apart.
#
# ## Seven ways to ask the same questions
#
# The rings are those of [Depth by itself](12_rings.md): eight letters, pairs in mixed order, then
# questions of one, two or three steps. Each question is a number and a letter, and two more places
# to write in. The ways differ in what stands at these places, and in what is a target:

# %%
import matplotlib.pyplot as plt
import torch

from studies import results, tasks, verdicts, written

task, letters = tasks.TASKS["written"], "abcdefghijklmnop.123"


def said(numbers):
    """Tokens or targets as text: a dot is a blank, a line no target."""
    return " ".join("–" if number < 0 else letters[number] for number in numbers.tolist())


for way in written.WAYS:
    tokens, targets = task.draw(1, torch.Generator().manual_seed(3), way=way)
    shown, wanted = (part[0, 16:].view(-1, 4) for part in (tokens, targets))
    three = next(i for i in range(48) if shown[i, 0] == 16 + 3)
    print(f"{way:10} reads {said(shown[three])}   is to say {said(wanted[three])}")
