"""Think longer, on text: a Transformer that is looped one to eight times in training, at random,
and up to thirty-two times at test. Does text that reasons gain from loops beyond those of training,
does it stay as good, or does it fall?

    python train.py --preset text_loops                   one layer that reads its input each loop
    python train.py --study text_loops --seed 0 1 2 3 4

One layer, and four layers of their own that are looped together; each with the input read again in
every loop (`loop_start` recall) and without (state). A step has its loss after the last of its
loops, or, with `--sizes loss_after=each`, after each of all eight. The text is that of
studies/reread.py, worked solutions of word problems, or any other that --data names. Every
evaluation tells the loss on text that is held out after 1, 2, 3, … 32 loops.

    python -m minidepth_lab.studies.text_loops RUN_FOLDER … text-loops

measures of published runs what these losses are if a token's text before it is kept as it was after
the loops of training.
"""

import contextlib
import dataclasses
import os
from dataclasses import dataclass

import torch

import minidepth as md
from minidepth_lab.base import machine
from minidepth_lab.base.data import Data
from minidepth_lab.keep import checkpoints
from minidepth_lab.measure import inspect, results
from minidepth_lab.models import fast
from minidepth_lab.show import figures
from minidepth_lab.studies import reread
from minidepth_lab.tasks.base.sizes import as_text, check_known, sizes_of

LOOPS = 8  # the most in training, unless --sizes says another
LOSS_AFTER = ("last", "each")
# Of the settings of reread these differ. A head of its own and larger initial weights, as in the
# study walk, with which a looped layer learns faster. And 440 steps, which read the text ten times,
# too few to know it by heart: so without dropout, with which a step would take twice as long on a
# CPU
PRESETS = {
    "text_loops": reread.PRESETS["reread"]
    | dict(
        loader="text_loops", n_layers=1, n_loops=LOOPS, loop_start="recall",
        sizes=(f"loops={LOOPS}",), tie_weights=False, init_std=0.1, dropout=0.0, epochs=0,
        steps=440, eval_every=110,
    ),
}  # fmt: skip

SIZES = reread.SIZES | dict(loops=LOOPS, loss_after="last")
TESTED = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)  # loops after which the loss is measured


def rows(preset, settings):
    """{row's name: its settings}: one layer and four, each with the input in every loop and
    without."""
    made = {}
    for n_layers, name in ((1, "1 layer"), (4, "4 layers")):
        for start in ("recall", "state"):
            made[f"{name}, {start}"] = settings | dict(n_layers=n_layers, loop_start=start)
    return made


@dataclass
class LoopedText(Data):
    """Text, for a model that makes another number of loops in each step and has a loss after the
    last of them, or, with `loss_after` "each", makes all of them and has a loss after each."""

    loops: int = LOOPS  # the most in training
    loss_after: str = "last"
    eval_blocks: int = 64
    batch_size: int = 16

    def loops_at(self, step):
        """How many loops a step makes, from 1 to `loops`, each as likely: a function of the seed
        and of the step, so that a resumed run makes the same."""
        drawn = md.generator(self.seed, "loops", step)
        return int(torch.randint(1, self.loops + 1, (1,), generator=drawn))

    def draw(self, step, n):
        """tokens (n, T) and targets (n, loops, T) of a step: -100 after loops without a loss."""
        tokens, targets = super().draw(step, n)
        if self.loss_after == "each":
            return tokens, targets[:, None].repeat(1, self.loops, 1)
        after_each = targets.new_full((n, self.loops_at(step), targets.size(1)), -100)
        after_each[:, -1] = targets
        return tokens, after_each

    def evaluate(self, model):
        """`val_loss_by_loops`, {"1": nats per token, …}: of the validation blocks of `val_loss`."""
        part = [each[: self.eval_blocks] for each in self.val]
        losses = loss_by_loops(model, part, self.batch_size, {*TESTED, self.loops})
        return dict(val_loss_by_loops={str(loops): loss for loops, loss in losses.items()})


@machine.in_eval_mode
def loss_by_loops(model, part, batch_size, tested, kept_after=None):
    """{loops: mean loss per token after so many} of blocks (tokens, targets), each (N, T): all that
    are `tested` on one way through the most of them; with text_kept() after `kept_after` loops, if
    given."""
    device = next(model.parameters()).device
    sums, n_tokens = dict.fromkeys(sorted(tested), 0.0), 0
    blocks = (torch.as_tensor(each).long() for each in part)
    for x, y in md.by_length(*blocks, batch_size):
        x, y = x.to(device), y.to(device)
        has_target = y != -100
        n_tokens += int(has_target.sum())
        with text_kept(model, kept_after) if kept_after else contextlib.nullcontext():
            for loops, state in enumerate(model.run_loops(x, loops=max(tested)), 1):
                if loops in sums:
                    h = model.norm(state)[has_target]
                    nll = fast.HeadLoss.apply(h, model.head_weight, y[has_target], h.dtype, False)
                    sums[loops] += nll.double().sum().item()
    return {loops: total / n_tokens for loops, total in sums.items()}


@contextlib.contextmanager
def text_kept(model, after):
    """Within it a token that is looped on finds the tokens before it as they are after so many
    loops: in the loop after those every layer keeps its keys and values. As if the text had been
    read with so many loops, and only its last token were looped on, for every token at once. For
    one pass over the loops. See pairs_kept() of tasks/walk.py."""
    with contextlib.ExitStack() as stack:
        for layer in model.blocks:
            forward = with_kept_keys(layer.attn, after + 1)
            stack.enter_context(inspect.replaced(layer.attn, "forward", forward))
        yield


def with_kept_keys(attn, loop):
    """The forward pass of an Attention whose keys and values of earlier tokens stay, from its call
    number `loop` on, those of that call."""
    calls, kept, as_it_is = 0, None, attn.forward

    def forward(x, cache=None):
        nonlocal calls, kept
        calls += 1
        if calls == loop:
            kept = attn.project(x)[1:]
        if calls <= loop:
            return as_it_is(x, cache)
        q, k, v = attn.project(x)  # each (B, H, T, D)
        kept_k, kept_v = kept
        T = x.size(1)
        earlier = torch.ones(T, T, dtype=torch.bool, device=x.device).tril(-1)
        scores = (q @ kept_k.transpose(-2, -1)).masked_fill(~earlier, -torch.inf)
        its_own = (q * k).sum(-1, keepdim=True)  # of the token itself, which goes on
        weights = (attn.scale * torch.cat((scores, its_own), -1)).softmax(-1)
        y = weights[..., :T] @ kept_v + weights[..., T:] * v
        return attn.out(y.transpose(1, 2).reshape(x.shape))

    return forward


def load_data(config, block_size, tokenizer=None):
    """The LoopedText of a text, which is that of studies/reread.py."""
    sizes = sizes_of(config.sizes, SIZES, "the loader text_loops")
    check_known("loss_after", sizes["loss_after"], LOSS_AFTER)
    plain = dataclasses.replace(config, sizes=(f"problems={sizes['problems']}",))
    data = reread.load_data(plain, block_size, tokenizer)
    data.sizes = as_text(sizes)
    return LoopedText(**vars(data), loops=sizes["loops"], loss_after=sizes["loss_after"])


def by_loops(runs):
    """[{loops: validation loss at the end}] of runs, stored ones or a grid's."""
    losses = []
    for run in runs:
        last = run["log"][-1]["val_loss_by_loops"]
        losses.append({int(loops): loss for loops, loss in last.items()})
    return losses


def draw_by_loops(axes, models, trained=LOOPS):
    """Validation loss by loops at test: `models` is {row: its by_loops()}. A thin line is a seed,
    a thick one their mean, broken without the input; loops of the training are shaded, if
    `trained`, the most of them, is the same for all."""
    for name, seeds in models.items():
        look = dict(color=figures.color_of(name), linestyle="--" if "state" in name else "-")
        tested = list(seeds[0])
        means = [sum(losses[loops] for losses in seeds) / len(seeds) for loops in tested]
        for losses in seeds:
            axes.plot(tested, list(losses.values()), alpha=0.35, linewidth=0.8, **look)
        axes.plot(tested, means, linewidth=2, label=name, **look)
    axes.set_xscale("log", base=2)
    ticks = [1, 2, 4, 8, 16, 32]
    axes.set_xticks(ticks, ticks)
    axes.set_xlabel("loops at test")
    if trained:
        axes.axvspan(1, trained, color="gray", alpha=0.15, linewidth=0)
        axes.set_xlabel(f"loops at test (trained with 1 to {trained}, shaded)")
    axes.set_ylabel("loss on new text (nats per token)")
    axes.legend(fontsize="small")


def figure(runs, folder):
    """text_loops.png of a grid: validation loss by loops at test, a line for each row."""
    grouped = {}
    for run in runs:
        grouped.setdefault(run["labels"]["model"], []).append(run)
    models = {name: by_loops(found) for name, found in grouped.items()}
    most = {sizes_of(run["sizes"], SIZES, "the loader text_loops")["loops"] for run in runs}
    trained = most.pop() if len(most) == 1 else None
    with figures.drawing(os.path.join(folder, "text_loops.png"), size=(6, 4.5)) as (_, axes):
        draw_by_loops(axes, models, trained)


def losses_with_text_kept(run_dir):
    """{loops after which the text is kept, those of training and half of them: {loops: validation
    loss}} of a finished run beyond the loops of training, with text_kept(); of the blocks that its
    log's `val_loss_by_loops` is of."""
    _, config = checkpoints.read_config(run_dir)
    model, tokenizer = checkpoints.load(run_dir)
    data = load_data(config, model.config.block_size, tokenizer)
    part = [each[: config.eval_blocks] for each in data.val]
    beyond = [loops for loops in TESTED if loops > data.loops]
    found = {}
    for kept in (data.loops, data.loops // 2):
        losses = loss_by_loops(model, part, config.batch_size, beyond, kept_after=kept)
        found[str(kept)] = {str(loops): loss for loops, loss in losses.items()}
    return found


if __name__ == "__main__":
    results.measuring_command(text_kept=losses_with_text_kept)
