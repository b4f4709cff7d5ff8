"""The Hugging Face hub, with manners: what is cached needs no network, and no network is told in
seconds. The libraries by themselves try again for up to a minute before they give up."""

import contextlib
import difflib
import os
import urllib.error
import urllib.request

from minidepth_lab.base import console
from minidepth_lab.tasks import TASKS

SECONDS = 3.0  # to wait for an answer


def fault(url):
    """Why the server does not serve, in words; None if it does. The user's proxies are asked, as
    the libraries ask them. A refusal (401, 404) is an answer: the libraries then say why."""
    try:
        request = urllib.request.Request(url, method="HEAD")
        urllib.request.urlopen(request, timeout=SECONDS).close()
    except urllib.error.HTTPError as error:
        return f"it answers with error {error.code}" if error.code >= 500 else None
    except Exception as error:  # a connection can fail in more ways than OSError knows
        return str(getattr(error, "reason", "") or error or type(error).__name__)
    return None


def cached(name, kind):
    """Whether the hub's own cache has a `dataset` or a `model` of this name."""
    import huggingface_hub.constants as hub

    folder = f"{kind}s--{name.replace('/', '--')}"
    return os.path.isdir(os.path.join(hub.HF_HUB_CACHE, folder, "snapshots"))


def out_of_reach(wanted):
    """Why one of `wanted`, pairs of a name and `dataset` or `model`, cannot be had within seconds;
    None if each is cached, or the hub answers."""
    import huggingface_hub.constants as hub

    missing = [name for name, kind in wanted if not cached(name, kind)]
    if not missing:
        return None
    why = "HF_HUB_OFFLINE is set" if hub.HF_HUB_OFFLINE else fault(f"{hub.ENDPOINT}/api/whoami-v2")
    return f"{missing[0]} is not cached and {hub.ENDPOINT} was not reached: {why}" if why else None


@contextlib.contextmanager
def looked_for():
    """While active, the libraries take what is cached and no network if the hub does not answer.
    A ValueError from within then also says why it was not asked."""
    import datasets.config
    import huggingface_hub.constants as hub
    import transformers.utils.hub as transformers_hub

    # each has read the environment once, and each is asked by a library of its own
    switches = [(hub, "HF_HUB_OFFLINE"), (datasets.config, "HF_HUB_OFFLINE")]
    if hasattr(transformers_hub, "_is_offline_mode"):  # before version 5
        switches.append((transformers_hub, "_is_offline_mode"))
    before = [getattr(*switch) for switch in switches]
    # not its front page, which can be there when nothing else is; that we may not is an answer
    why = "HF_HUB_OFFLINE is set" if any(before) else fault(f"{hub.ENDPOINT}/api/whoami-v2")
    if why:
        for module, name in switches:
            setattr(module, name, True)
    try:
        yield
    except ValueError as error:
        if not why or "hub" not in str(error):
            raise
        raise ValueError(f"{error}; {hub.ENDPOINT} was not asked: {why}") from None
    finally:
        for (module, name), value in zip(switches, before):
            setattr(module, name, value)


HUB = "is neither a local file or folder nor to be had from the Hugging Face hub; on Kaggle turn"


def meant(name):
    """A question about a name that looks like a task's, else nothing."""
    close = difflib.get_close_matches(name, TASKS, 1, cutoff=0.75)
    return f"; is the task {close[0]} meant?" if close else ""


def splits_of(source):
    """{name of a split: its rows} of a data set of the hub, HUB_ID or HUB_ID:SUBSET."""
    name, _, subset = source.partition(":")
    if not name.strip():
        raise ValueError(f"data {source!r} names no data set; give HUB_ID or HUB_ID:SUBSET")
    from datasets import load_dataset

    advice = f"{HUB} Internet on, or give --data FILE or --data embedded{meant(name)}"
    with console.one_line_errors(f"data {source}", advice):
        return dict(load_dataset(name, subset or None))
