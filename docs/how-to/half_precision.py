# %% [markdown]
# # Training: half precision, two GPUs, the learning rate
#
# **You will learn** why FP16 needs a scaler, why the mean of two GPUs' means is the wrong loss, how
# to check a learning rate against a published log, and how to read a live run.<br>
# **Time** 15 to 25 s on two CPU cores.<br>
# **Needs** PyTorch and Matplotlib; no GPU, no network.
#
# The published runs used 16-bit numbers (FP16), two T4 GPUs, and a learning rate that first warms
# up and then falls along a cosine. Each of the three has a trap, and all three traps can be shown
# on a CPU.

# %%
import contextlib
import inspect
import json
import os
import tempfile
import textwrap

import matplotlib.pyplot as plt
import torch

import minidepth as md
from minidepth_lab import figures, results

# %% [markdown]
# ## FP16 loses small numbers, GradScaler saves them
#
# FP16 can hold no number between 0 and about 6 × 10⁻⁸. Gradients are often smaller than that. They
# then become 0, no error is raised, and the weights that they belong to do not learn.

# %%
gradient = torch.tensor([1e-3, 1e-6, 1e-8, 1e-10])
half = gradient.half()
scaled = (gradient * 65536).half().float() / 65536
print("true           ", [f"{x:.1e}" for x in gradient.tolist()])
print("in FP16        ", [f"{x:.1e}" for x in half.tolist()])
print("scaled by 65536", [f"{x:.1e}" for x in scaled.tolist()])

# %% [markdown]
# The cure is to multiply the loss by a large number, the *scale*. All gradients then grow by that
# factor, and are divided by it again, in 32 bits, before they are used. `torch.amp.GradScaler` does
# this and finds the scale by itself. It begins at 65,536. When a gradient overflows, it **skips
# that step** and halves the scale; after 2,000 steps in a row without an overflow it doubles the
# scale. The log counts the skipped steps as `skipped_steps`.
#
# The order matters: clipping needs the true gradient, so it comes after `unscale_`. This is the
# step, as it stands in `train()`:

# %% tags=["python"]
source = inspect.getsource(md.train)
step = source.split("# 1. the rate")[1].split("# 5. every process")[0]
print(textwrap.dedent(" " * 12 + "# 1. the rate" + step))

# %% [markdown]
# A T4 has no hardware for bfloat16, although `torch.cuda.is_bf16_supported()` answers True on it
# (bfloat16 is emulated there). So the library checks for compute capability 8.0 instead, and uses
# FP16 on the T4. On a CPU it trains in 32 bits without a scaler.

# %% [markdown]
# ## Two GPUs: sums and counts, not means
#
# `DataParallel` splits a batch over the GPUs. Suppose each GPU returned the mean loss of its part
# and these means were averaged. Then each token on the GPU with fewer targets would count more.
# That happens when five sequences are split 3 + 2 over two GPUs, and padding makes it worse. Here
# are the two parts (*shards*), computed on the CPU one after the other:

# %%
torch.manual_seed(0)
shape = dict(n_layers=1, n_heads=2, d_model=16, d_ff=32)
small = md.ModelConfig(vocab_size=50, block_size=16, **shape)
model = md.GPT(small).eval()
tokens, targets = torch.randint(50, (2, 5, 16))
for row, length in enumerate((16, 16, 16, 5, 2)):  # the rest of a row is padding
    targets[row, length:] = -100
shards = [model(x, y) for x, y in zip(tokens.split(3), targets.split(3))]
whole_sum, whole_n = model(tokens, targets)
truth = (whole_sum.sum() / whole_n.sum()).item()
means = [(loss.sum() / n.sum()).item() for loss, n in shards]
mean_of_means = sum(means) / 2
losses, counts = zip(*((loss.sum().item(), int(n.sum())) for loss, n in shards))
from_sums = sum(losses) / sum(counts)
print(f"targets on each GPU: {list(counts)}")
print(f"mean of all tokens {truth:.4f}; mean of means {mean_of_means:.4f};")
print(f"from sums          {from_sums:.4f}")

# %% [markdown]
# So `GPT.forward` returns a loss *sum* and a token *count* for each sequence, and the division is
# done once, over the whole step. The same division makes gradient accumulation correct.
#
# Returning sums rather than logits has a second advantage. To gather the logits of 8,192 tokens
# over 151,665 words on one GPU would take 5 GB in 32 bits; the loss sums are 16 numbers.
#
# ## The learning rate, against the published log
#
# The report says: 50 steps of warm-up, then a cosine to a tenth of 3 × 10⁻⁴. That leaves one
# question open: does the first step count as number 0 or as number 1? Each of the two logs prints
# the rate at 21 steps. The formula below gives all 42 numbers, and in it the first step has a rate
# of 0:

# %% tags=["python"]
print(inspect.getsource(md.lr_at))

# %%
_, t = md.configs("report")
published = results.published("report_log_1_layers") + results.published("report_log_12_layers")
same = [f"{md.lr_at(row['step'] - 1, t):.2e}" == f"{row['lr']:.2e}" for row in published]
print(f"{sum(same)} of {len(same)} published rates agree in all printed digits")

rates = [md.lr_at(step, t) * 1e4 for step in range(t.steps)]
figure, axes = plt.subplots(figsize=(4.6, 3.2))
axes.plot(range(1, t.steps + 1), rates, color="C0")
axes.plot(
    [row["step"] for row in published], [row["lr"] * 1e4 for row in published], "o", color="C1"
)
axes.annotate("line: lr_at()", (330, 2.6), color="C0")
axes.annotate("dots: both logs", (330, 2.3), color="C1")
axes.set(xlabel="optimizer step", ylabel="learning rate (10⁻⁴)")
axes.set_title(f"{sum(same)} of {len(same)} published rates lie on one formula")
plt.show()

# %% [markdown]
# What to see: every published value lies on the curve (n = 42: two logs with the same 21 values).
# The first step changes no weight, because its rate is 0.

# %% [markdown]
# ## A live run
#
# This is a smaller run of the laptop preset: two layers, 120 steps, and generated problems whose
# answers can be checked. One is "From 6 add 8 modulo 10 ?", to which the model is to write
# `So 6 + 8 = 4` and then 4; others ask for a letter of a ring or of a line. The lines have the
# report's own format.

# %%
folder = tempfile.mkdtemp()
small = dict(n_layers=2, steps=120, eval_every=20, max_rows=2000)
small |= dict(ring_questions=1, batch_size=32, grad_accum=1)
m, t = md.configs("laptop", **small, eval_problems=60, out_dir=folder)
run = md.train(m, t)

# %% [markdown]
# - **train** is the loss of *one batch*, in [nats](../reference/glossary.md#nat) per token, with
#   dropout on if the model has any.
# - **val** is the loss of fixed validation blocks, the same ones at each evaluation, without
#   dropout.
# - **right** is the share of correct answers, measured on the first of the held-out problems. The
#   loss cannot tell you this.
# - The last line of `log.jsonl` also has `train_loss_eval`: the train loss over many blocks without
#   dropout. That is the number to compare with val. And it has `guess`, the share that guessing
#   would get right among the answers that each question allows.

# %%
with open(os.path.join(run.dir, "log.jsonl"), encoding="utf-8") as f:
    last = json.loads(f.readlines()[-1])
for key, value in last.items():
    if not isinstance(value, dict | list):  # accuracy by kind, and by problem
        print(f"{key:18} {value}")
print("files:", *sorted(os.listdir(run.dir)), sep="\n  ")

# %%
figure, axes = plt.subplots(figsize=(4.6, 3.2))
at = [row["step"] for row in run.log]
names = {"train_loss": ("train, one batch", -6), "val_loss": ("validation", 7)}
for number, (key, (name, up)) in enumerate(names.items()):
    losses = [row[key] for row in run.log]
    axes.plot(at, losses, "os"[number] + "-", color=f"C{number}")
    figures.name_end(axes, at[-1], losses[-1], name, f"C{number}", up)
axes.set(xlabel="optimizer step", ylabel="loss (nats per token)", ylim=(-0.3, None))
axes.set(xlim=(-4, 185), xticks=range(0, 121, 20))
left = run.log[-1]["val_loss"] / run.log[0]["val_loss"]
right, guess = last["accuracy"], last["guess"]
axes.set_title(
    f"loss falls to {100 * left:.0f} %; {100 * right:.0f} % of answers are right,\n"
    f"guessing finds {100 * guess:.0f} %"
)
plt.show()

# %% [markdown]
# What to see: both losses fall together. After two passes over 2,000 problems the validation loss
# is less than 0.1 above `train_loss_eval`: if that is learning by heart, it is little (one run, n =
# 1, seed 0). Now look at `accuracy` and `guess` above. The loss fell to less than an eighth, and
# yet, on 60 problems, the model does no better than guessing: it has learned the *form* of
# an answer. From the loss alone you could not know which of the two, form or reasoning, a model has
# learned. Each file of the folder is explained in [run folders](../reference/run_folder.md).

# %% [markdown]
# ## Stop and go on
#
# Everything random in a step is a function of the seed and the step's number. So a run that was
# stopped and resumed gives the same losses as one that was not, on the CPU to the last bit. We try
# it on 20 steps, with a stop after the seventh.

# %%
short = dict(n_layers=1, steps=20, max_rows=500, eval_every=10, eval_problems=0)
m, t = md.configs("laptop", **short)
straight = md.train(m, t, quiet=True)
m, t = md.configs("laptop", **short, out_dir=folder, name="stopped")
asked = iter([False] * 6 + [True])
with contextlib.redirect_stdout(None):  # a quiet run keeps no folder to go on from
    stopped = md.train(m, t, stop=lambda: next(asked))
    resumed = md.train(m, t, resume=True)
for name, run_of in (("without a stop", straight), ("stopped, resumed", resumed)):
    losses = [f"{row['train_loss']:.12f}" for row in run_of.log]
    print(f"{name:16}", *losses)

# %%
assert half[2] == 0 and abs(scaled[2] / 1e-8 - 1) < 0.01
assert abs(from_sums - truth) < 1e-5 < abs(mean_of_means - truth)
assert all(same) and len(same) == 42
assert run.log[-1]["val_loss"] < run.log[0]["val_loss"] / 8
assert last["val_loss"] - last["train_loss_eval"] < 0.1
assert abs(last["accuracy"] - last["guess"]) < 0.12
assert not stopped.finished
assert [r["train_loss"] for r in straight.log] == [r["train_loss"] for r in resumed.log]

# %% [markdown]
# ## Exercises
#
# 1. What is the smallest power of two that saves 10⁻¹⁰ in the first example?

# %% [markdown] tags=["hint"]
# FP16 rounds what is below half of its smallest number, 2⁻²⁴, to 0.

# %% [markdown] tags=["answer"]
# 10⁻¹⁰ has to come above 2⁻²⁵ = 2.98 × 10⁻⁸, which takes a factor of 298 or more: 512. The factor
# 65,536 with which GradScaler begins is 128 times that. Saved is not exact: with 512 it comes back
# 16 % too large, with 4,096 the error is 2 %.

# %% tags=["answer"]
powers = [k for k in range(17) if (torch.tensor(1e-10) * 2**k).half() > 0]
print(f"smallest: 2 to the {powers[0]} = {2 ** powers[0]}")
assert 2 ** powers[0] == 512
back = {k: ((torch.tensor(1e-10) * k).half().float() / k).item() for k in (512, 4096)}
assert [f"{abs(x / 1e-10 - 1):.2f}" for x in back.values()] == ["0.16", "0.02"]

# %% [markdown]
# 2. Replace `from_sums` by the mean of the five sequences' means. Which sequences count too much?

# %% [markdown] tags=["hint"]
# In a mean of means each sequence has a fifth of the weight, however many targets it has.

# %% [markdown] tags=["answer"]
# Those with few targets: each of their tokens has a larger share of the fifth.

# %% tags=["answer"]
print(f"{sum(loss / n for loss, n in zip(whole_sum, whole_n)) / 5:.4f} instead of {truth:.4f}")

# %% [markdown]
# 3. The report says 16 sequences of 512 tokens per step, 500 steps, and 25 steps per epoch. How
#    many tokens make an epoch, one pass over the data? The report also says that the data has about
#    420,000 tokens. What would make the two numbers agree?

# %% [markdown] tags=["answer"]
# 25 × 16 × 512 = 204,800 tokens, about half of what the report says. They would agree if a step had
# 32 sequences, 16 on each of the two GPUs; the logs cannot tell. We keep the 16 that the report
# states.

# %% tags=["answer"]
print(f"{25 * 16 * 512:,} and {25 * 32 * 512:,} tokens")
