"""The hub: a server on this machine that answers, refuses, fails and hangs up, a proxy, a cache."""

import http.server
import json
import os
import pathlib
import shutil
import socket
import threading
import urllib.request

import pytest

from minidepth_lab.base import configs
from minidepth_lab.keep import registry
from minidepth_lab.rows import hub

ROWS = [dict(question=f"What is {i} plus {i}?", answer=f"It is #### {2 * i}") for i in range(40)]


class Hub(http.server.BaseHTTPRequestHandler):
    """Answers everything with the code `how`, or hangs up if that is None."""

    how, asked = 200, []

    def answer(self):
        self.asked.append(self.path)
        self.close_connection = True
        if self.how:
            self.send_response(self.how)
            self.send_header("Content-Length", "0")
            self.end_headers()

    do_GET = do_HEAD = do_POST = answer

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def address():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def endpoint(address, tmp_path, monkeypatch):
    """The constants of huggingface_hub, whose hub is the server and whose cache is empty."""
    import datasets.config
    import huggingface_hub.constants as constants

    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    for name in ("HF_HUB_CACHE", "HF_HOME"):
        monkeypatch.setattr(constants, name, str(tmp_path / "hub"), raising=False)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "datasets")
    monkeypatch.setattr(constants, "ENDPOINT", address)
    monkeypatch.setattr(urllib.request, "_opener", None)  # which knows the proxies
    monkeypatch.setattr(Hub, "how", 200)
    monkeypatch.setattr(Hub, "asked", [])
    return constants


def text_data(**changes):
    return registry.data_of(configs.make("laptop", **dict(max_rows=40) | changes)[1], 104)


FAILS = {500: "error 500", 503: "error 503", None: "closed connection without response"}


@pytest.mark.parametrize("by_proxy", [False, True])
def test_a_refusal_is_an_answer_and_a_failure_is_told(by_proxy, endpoint, monkeypatch):
    asked = f"{endpoint.ENDPOINT}/api"
    if by_proxy:
        monkeypatch.setenv("http_proxy", endpoint.ENDPOINT)
        asked = "http://hub.test:8000/api"  # only the proxy knows it
    for code in (200, 401, 404):
        monkeypatch.setattr(Hub, "how", code)
        assert hub.fault(asked) is None
    for code, words in FAILS.items():
        monkeypatch.setattr(Hub, "how", code)
        assert words in hub.fault(asked)
    assert len(Hub.asked) == 6


def test_an_endpoint_that_is_no_address_is_told_as_one_that_does_not_answer():
    for endpoint in ("notaurl", "ftp://x", "http://", "http://[", "https://a:port"):
        assert hub.fault(f"{endpoint}/api/whoami-v2"), endpoint


@pytest.mark.parametrize("changes, instead, code", [
    (dict(tokenizer="nobody/words"), "--tokenizer DIR", 500),
    (dict(tokenizer="no such/id/at all"), "--tokenizer DIR", None),
    (dict(data=("nobody/rows",)), "--data FILE", None),
    (dict(data=("embedded", "nobody/rows:main")), "--data FILE", 503),
])  # fmt: skip
def test_a_hub_that_fails_is_asked_once_and_its_fault_is_told(
    changes, instead, code, endpoint, monkeypatch
):
    """The libraries by themselves ask again and again, for up to a minute."""
    monkeypatch.setattr(Hub, "how", code)
    with pytest.raises(ValueError) as error:
        text_data(**changes)
    assert instead in str(error.value) and FAILS[code] in str(error.value)
    assert "Internet on" in str(error.value) and "\n" not in str(error.value)
    assert len(Hub.asked) == 1 and hub.SECONDS <= 5 and endpoint.HF_HUB_OFFLINE is False


@pytest.mark.parametrize("fault", [None, "it is away"])
def test_other_mistakes_are_not_blamed_on_the_hub(fault, endpoint, monkeypatch):
    """Nor is it said that it was not asked where it was."""
    monkeypatch.setattr(hub, "fault", lambda url: fault)
    for words in ("is no JSON to read", "the hub has none of that name"):
        with pytest.raises(ValueError) as error, hub.looked_for():
            assert endpoint.HF_HUB_OFFLINE is bool(fault)
            raise ValueError(words)
        blamed = bool(fault) and "hub" in words
        assert ("was not asked: it is away" in str(error.value)) == blamed
        assert endpoint.HF_HUB_OFFLINE is False


def test_what_needs_no_hub_does_not_ask_it(monkeypatch, data, jsonl, tmp_path):
    monkeypatch.setattr(hub, "fault", lambda url: pytest.fail("the hub was asked"))
    data.tokenizer.save_pretrained(tmp_path / "words")
    own = dict(data=("embedded", jsonl(ROWS)), tokenizer=str(tmp_path / "words"), loss_on="all")
    text_data(**own)
    with pytest.raises(ValueError, match="nowhere.jsonl"):
        text_data(data=("nowhere.jsonl",))


def test_the_users_own_offline_switch_is_obeyed(endpoint, monkeypatch):
    monkeypatch.setattr(endpoint, "HF_HUB_OFFLINE", True)
    with pytest.raises(ValueError, match="HF_HUB_OFFLINE is set"):
        text_data(tokenizer="nobody/words")
    assert endpoint.HF_HUB_OFFLINE is True and not Hub.asked


def test_a_cached_tokenizer_and_data_set_load_without_the_network(
    data, tmp_path, endpoint, monkeypatch
):
    import datasets

    repo = tmp_path / "hub" / "models--cached--words"
    (repo / "refs").mkdir(parents=True)
    (repo / "refs" / "main").write_text("abc")
    data.tokenizer.save_pretrained(repo / "snapshots" / "abc")
    (repo / "snapshots" / "abc" / "config.json").write_text('{"model_type": "gpt2"}')
    source = tmp_path / "rows.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    datasets.load_dataset("json", data_files=str(source), cache_dir=str(tmp_path / "made"))
    (tmp_path / "datasets" / "cached___rows").mkdir(parents=True)
    (made,) = (tmp_path / "made" / "json").glob("default*")
    made = shutil.move(made, tmp_path / "datasets" / "cached___rows" / "default")
    for path in [*pathlib.Path(made).rglob("json-train.arrow")]:
        path.rename(path.with_name("rows-train.arrow"))
    used = []
    for where, name in ((socket.socket, "connect"), (socket, "create_connection")):
        monkeypatch.setattr(where, name, lambda *given, **_: used.append(given) or 1 / 0)
    words = text_data(tokenizer="cached/words", max_rows=40)
    assert len(words.tokenizer) == len(data.tokenizer)
    rows = text_data(data=("cached/rows",))
    assert len(rows.problems) == 2  # two of the 40 rows are held out
    assert len(used) == 2  # nothing but whether the hub is there was asked, once for each


def test_a_misspelt_task_is_asked_about():
    assert hub.meant("icqaa") == "; is the task icqa meant?" and hub.meant("org/name") == ""
