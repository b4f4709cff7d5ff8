"""How runs on rings went: the accuracy over training, when it comes, maps of what was learned, and
what a question's token holds on its way through a model. The pages on rings share these.

    python -m minidepth_lab.measure.ring_runs RUN_FOLDER … ring-at-test

measures of published runs what they answer with other numbers of loops than in training, and with
`--what watched` which pairs the heads of a single layer watch.
"""

import torch

from minidepth_lab.keep import checkpoints, registry
from minidepth_lab.measure import inspect, results
from minidepth_lab.tasks.ring import LEARNED


def accuracies(runs):
    """{seed: {hops: accuracy at the end}} of results.runs() on rings."""
    found = {}
    for run in runs:
        lengths = run["accuracy_by"]["lengths"]
        found[run["seed"]] = {int(k): part["accuracy"] for k, part in lengths.items()}
    return found


def staircase():
    """{loops of the same layer: accuracies()} of the runs behind the site's first
    figure."""
    runs = results.runs("ring-staircase", d_model=64)
    return {n: accuracies(group) for n, group in results.by(runs, "n_loops").items()}


def in_writing():
    """{layers: accuracies()} of the runs that write their steps."""
    runs = results.runs("ring", answer="written") + results.runs("ring-to-ten", answer="written")
    return {n: accuracies(group) for n, group in results.by(runs, "n_layers").items()}


def course(run, k):
    """{training step: accuracy at k hops} at each evaluation of a results.result()."""
    return {
        record["step"]: record["accuracy_by"]["lengths"][str(k)]["accuracy"]
        for record in run["log"]
    }


def onset(run, k):
    """The training step of the first evaluation at which a run answers k hops; None without."""
    for step, accuracy in course(run, k).items():
        if accuracy >= LEARNED:
            return step
    return None


def draw_courses(axes, runs, k, color):
    """A thin line for each run: accuracy at k hops over training steps."""
    for run in runs:
        shares = course(run, k)
        axes.plot(list(shares), list(shares.values()), color=color, alpha=0.7)
    axes.set(xlabel="training step", ylim=(-0.03, 1.05))


def questions(tokens, letters=16, ring=8, furthest=4):
    """Of the direct questions in tokens (B, T) → how many hops each asks for, (B, questions), and
    the letters 0, 1, … `furthest` hops on, a list of (B, questions)."""
    end = 2 * ring  # of the pairs; a question is a number and a letter
    follows = torch.zeros(len(tokens), letters, dtype=torch.int64)
    follows.scatter_(1, tokens[:, :end:2], tokens[:, 1:end:2])  # of each letter the next
    path = [tokens[:, end + 1 :: 2]]
    for _ in range(furthest):
        path.append(follows.gather(1, path[-1]))
    return tokens[:, end::2] - letters, path


def walk(model, tokens):
    """What the letter of a question holds on its way through the model, read by the logit lens:
    {(depth, k): shares}, the shares of the questions about k hops at which it is the letter 0, 1,
    … 4 hops on, after so many layers or loops."""
    k, path = questions(tokens)
    asked = {length: k == length for length in k.unique().tolist()}
    found = {}
    for depth, words in enumerate(inspect.lens(model, tokens)):
        said = words[:, 17::2]
        for length, where in asked.items():
            shares = [(said == at)[where].float().mean().item() for at in path]
            found[depth, length] = shares
    return found


@torch.no_grad()
def with_loops(model, tokens, loops, lengths=(1, 2, 3, 4)):
    """{hops: share of the questions in tokens (B, T) answered right} by a model of one looped
    layer, if the layer is looped so many times, however often it was in training."""
    k, path = questions(tokens)
    answers = model(tokens, loops=loops).argmax(-1)[:, 17::2]
    return {n: (answers == path[n])[k == n].float().mean().item() for n in lengths}


def tested_on(run_dir):
    """(model, tokens (B, T)) of a finished run on rings: the sequences that it was tested on.
    ValueError for a run of another task."""
    results.trained_on("ring", run_dir)
    model, _ = checkpoints.load(run_dir)
    data = registry.data_of(checkpoints.read_config(run_dir)[1], model.config.block_size)
    return model, torch.as_tensor(data.val[0]).long()


def by_loops(run_dir):
    """{loops: {hops: share}} of a finished run of one looped layer, answered with one loop to six:
    with_loops() of what tested_on() gives."""
    model, tokens = tested_on(run_dir)
    found = {}
    for loops in range(1, 7):
        shares = with_loops(model, tokens, loops)
        found[str(loops)] = {str(hops): share for hops, share in shares.items()}
    return found


def pairs_watched(model, tokens, ring=8):
    """Of the questions of one hop in tokens (B, T), by the pairs in the order in which they stand:
    {"weight": of each head of the first layer the mean weight that a question gives to each pair,
    "second": of each head its weight on the second letter of the pair that it watches most, where
    the first one is asked and where another is, "right": the share of questions that are right
    where the answer stands in that pair}."""
    k, path = questions(tokens, ring=ring)
    first = 2 * ring + 1  # the letter of the first question
    maps = inspect.attention_maps(model, tokens)[0]  # (B, H, T, T)
    looks = maps[:, :, first::2, : 2 * ring].unflatten(3, (ring, 2))  # (…, pairs, its two letters)
    looks = looks.transpose(1, 2)[k == 1]  # of each question, by head
    with torch.no_grad():
        right = model(tokens).argmax(-1)[:, first::2] == path[1]
    seconds = tokens[:, None, 1 : 2 * ring : 2]
    stands = (seconds == path[1][:, :, None]) & (k == 1)[:, :, None]  # (B, questions, pairs)
    shares = [right[stands[:, :, pair]].float().mean().item() for pair in range(ring)]
    weight, second = looks.sum(3).mean(0), []
    asked = (tokens[:, None, 0 : 2 * ring : 2] == path[0][:, :, None])[k == 1]
    for head, pair in enumerate(weight.argmax(1).tolist()):
        parts = (looks[which, head, pair, 1] for which in (asked[:, pair], ~asked[:, pair]))
        second.append([part.mean().item() for part in parts])
    return dict(weight=weight.tolist(), second=second, right=shares)


def watched(run_dir):
    """pairs_watched() of a finished run that is asked one hop, on 200 of the sequences that it was
    tested on."""
    model, tokens = tested_on(run_dir)
    return pairs_watched(model, tokens[:200])


if __name__ == "__main__":
    results.measuring_command(by_loops=by_loops, watched=watched)
