"""The hub: real servers on this machine that serve, refuse, fail and hang up, a proxy, a cache."""

import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys

import pytest

from minidepth_lab.base import configs
from minidepth_lab.keep import registry
from minidepth_lab.rows import hub

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROWS = [dict(question=f"What is {i} plus {i}?", answer=f"It is #### {2 * i}") for i in range(40)]
OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE")

# In a process of its own, because the libraries read their settings once. The server's way to
# answer is `mode`; what was asked of it is counted.
SERVED = """
import http.server, json, os, socket, sys, threading
folder, how = sys.argv[1:]

class Hub(http.server.BaseHTTPRequestHandler):
    mode, asked = "serve", []

    def answer(self):
        Hub.asked.append(f"{self.command} {self.path}")
        path = self.path.removeprefix("http://hub.test:8000") or "/"  # a proxy gets it whole
        name, content, code = path.rsplit("/", 1)[-1], b"", 404
        if Hub.mode == "drop":
            self.close_connection = True
            return
        if Hub.mode == "500" or Hub.mode == "front page" and path != "/":
            code = 500
        elif path == "/":
            code = 200
        elif Hub.mode == "serve" and path.startswith("/someone/words/resolve/main/"):
            if os.path.exists(f"{folder}/{name}"):
                code, content = 200, open(f"{folder}/{name}", "rb").read()
        elif Hub.mode == "serve" and path == "/api/models/someone/words":
            code, content = 200, json.dumps(dict(id="someone/words", siblings=[])).encode()
        self.send_response(code)
        if code == 404:
            error = "EntryNotFound" if Hub.mode == "serve" else "RepoNotFound"
            self.send_header("X-Error-Code", error)
            self.send_header("X-Error-Message", "Repository Not Found")
        self.send_header("X-Repo-Commit", "a" * 40)
        self.send_header("ETag", f'"{name}"')
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    do_GET = do_HEAD = do_POST = answer

    def log_message(self, *a):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
threading.Thread(target=server.serve_forever, daemon=True).start()
here = f"http://127.0.0.1:{server.server_port}"
os.environ["HF_ENDPOINT"] = here if how == "direct" else "http://hub.test:8000"
if how == "proxy":
    os.environ["http_proxy"] = here
import minidepth as md
from minidepth_lab.base import configs
from minidepth_lab.keep import registry

def tokenizer(name):
    data = registry.data_of(configs.make("laptop", tokenizer=name, max_rows=40)[1], 200)
    return len(data.tokenizer)

def rows(name):
    return len(registry.data_of(configs.make("laptop", data=(name,))[1], 58).problems)

def no_network(*a, **k):
    raise AssertionError("the network was used")

found = {}
for mode, load, name in json.load(sys.stdin):
    Hub.mode = mode
    Hub.asked.clear()
    if mode == "no network":
        socket.socket.connect = socket.create_connection = socket.getaddrinfo = no_network
    try:
        result = dict(loaded=dict(tokenizer=tokenizer, rows=rows)[load](name))
    except Exception as error:
        result = dict(error=type(error).__name__, message=str(error))
    found[f"{mode} {load} {name}"] = result | dict(asked=list(Hub.asked))
print(json.dumps(found))
"""


def environment(**changes):
    """This process's, with the code of the repository and without switches of the user's own."""
    kept = {}
    for name, value in os.environ.items():
        if name not in OFFLINE and not name.lower().endswith("_proxy"):
            kept[name] = value
    kept["PYTHONPATH"] = f"{ROOT}{os.pathsep}{ROOT / 'docs'}"
    return kept | changes


@pytest.fixture(scope="module")
def words(data, tmp_path_factory):
    """The files of a tokenizer as the hub holds them."""
    folder = tmp_path_factory.mktemp("words")
    data.tokenizer.save_pretrained(folder)
    (folder / "config.json").write_text('{"model_type": "gpt2"}')
    return folder


def asked_of_a_server(words, cache, how, cases):
    """What comes of each (mode, what to load, name), in a new cache."""
    done = subprocess.run(
        [sys.executable, "-c", SERVED, str(words), how], input=json.dumps(cases),
        env=environment(HF_HOME=str(cache)), capture_output=True, text=True, timeout=1800,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


CASES = [
    (mode, load, f"nobody/{mode.split()[0]}-{load}")
    for mode in ("500", "front page", "drop", "404")
    for load in ("tokenizer", "rows")
]


@pytest.fixture(scope="module")
def direct(words, tmp_path_factory):
    """HF_ENDPOINT has the scheme http and a port of its own."""
    cases = [*CASES, ("serve", "tokenizer", "someone/words"), ("500", "tokenizer", "someone/words")]
    return asked_of_a_server(words, tmp_path_factory.mktemp("cache"), "direct", cases)


@pytest.mark.parametrize(
    "load, instead", [("tokenizer", "--tokenizer DIR"), ("rows", "--data FILE")]
)
@pytest.mark.parametrize("mode, reason", [
    ("500", "error 500"), ("front page", "error 500"),
    ("drop", "closed connection without response"),
])  # fmt: skip
def test_a_hub_that_fails_is_asked_once_and_its_fault_is_told(direct, mode, reason, load, instead):
    """The libraries by themselves ask again and again, for up to a minute."""
    name = f"nobody/{mode.split()[0]}-{load}"
    found = direct[f"{mode} {load} {name}"]
    assert found["error"] == "ValueError" and "\n" not in found["message"]
    assert instead in found["message"] and reason in found["message"]
    assert "Internet on" in found["message"] and name in found["message"]
    assert len(found["asked"]) <= 2


@pytest.mark.parametrize("load", ["tokenizer", "rows"])
def test_a_name_that_the_hub_does_not_have_is_told_in_the_librarys_words(direct, load):
    found = direct[f"404 {load} nobody/404-{load}"]
    assert found["error"] == "ValueError" and "\n" not in found["message"]
    assert f"nobody/404-{load}" in found["message"] and "was not asked" not in found["message"]
    words = dict(tokenizer="is not a valid model identifier", rows="doesn't exist on the Hub")
    assert words[load] in found["message"]
    assert len(found["asked"]) < 15


def test_what_is_cached_is_taken_when_the_hub_fails(direct, data):
    found = direct["500 tokenizer someone/words"]
    assert found["loaded"] == len(data.tokenizer) and len(found["asked"]) <= 2


@pytest.fixture(scope="module")
def proxied(words, data, tmp_path_factory):
    """The hub's name leads nowhere: only the proxy knows it. Then there is no network at all, but
    caches laid out as the two libraries do, under other hub ids."""
    import datasets

    cache = tmp_path_factory.mktemp("cache")
    repo = cache / "hub" / "models--cached--words"
    (repo / "refs").mkdir(parents=True)
    (repo / "refs" / "main").write_text("abc")
    shutil.copytree(words, repo / "snapshots" / "abc")
    source = cache / "rows.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    datasets.load_dataset("json", data_files=str(source), cache_dir=str(cache / "made"))
    made = next((cache / "made" / "json").glob("default*"))
    (cache / "datasets" / "cached___rows").mkdir(parents=True)
    made = made.rename(cache / "datasets" / "cached___rows" / "default")
    for path in [*made.rglob("json-train.arrow")]:
        path.rename(path.with_name("rows-train.arrow"))
    cases = [("serve", "tokenizer", "someone/words"), ("500", "rows", "nobody/rows")]
    cases += [("no network", "tokenizer", "cached/words"), ("no network", "rows", "cached/rows")]
    return asked_of_a_server(words, cache, "proxy", cases)


def test_a_cached_tokenizer_and_data_set_load_without_the_network(proxied, data):
    assert proxied["no network tokenizer cached/words"] == dict(
        loaded=len(data.tokenizer), asked=[]
    )
    # two of the 40 rows are held out
    assert proxied["no network rows cached/rows"] == dict(loaded=2, asked=[])


# ---------- in this process ----------


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    import datasets.config
    import huggingface_hub.constants

    for name in ("HF_HUB_CACHE", "HF_HOME"):
        monkeypatch.setattr(huggingface_hub.constants, name, str(tmp_path / "hub"), raising=False)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "datasets")
    return huggingface_hub.constants


def text_data(**changes):
    return registry.data_of(configs.make("laptop", **changes)[1], 104)


AWAY = [
    (dict(tokenizer="nobody/words"), "--tokenizer DIR"),
    (dict(tokenizer="no such/id/at all"), "--tokenizer DIR"),
    (dict(data=("nobody/rows",)), "--data FILE"),
    (dict(data=("embedded", "nobody/rows:main")), "--data FILE"),
]


def test_an_endpoint_that_is_no_address_is_told_as_one_that_does_not_answer():
    for endpoint in ("notaurl", "ftp://x", "http://", "http://[", "https://a:port"):
        assert hub.fault(f"{endpoint}/api/whoami-v2"), endpoint


@pytest.mark.parametrize("changes, instead", AWAY)
def test_what_is_not_cached_fails_quickly_with_what_to_do(
    changes, instead, empty_cache, monkeypatch
):
    """A port at which nobody listens; the question may take three seconds, not a minute."""
    asked = []

    def unreachable(address, *others, **options):
        asked.append(address)
        raise TimeoutError("timed out")

    monkeypatch.setattr(socket, "create_connection", unreachable)
    monkeypatch.setattr(socket.socket, "connect", lambda s, address: unreachable(address))
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    before = empty_cache.HF_HUB_OFFLINE
    with pytest.raises(ValueError) as error:
        text_data(**changes)
    assert instead in str(error.value) and "timed out" in str(error.value)
    assert "\n" not in str(error.value) and len(asked) == 1 and hub.SECONDS <= 5
    assert empty_cache.HF_HUB_OFFLINE == before


def test_what_needs_no_hub_does_not_ask_it(monkeypatch, words, jsonl):
    monkeypatch.setattr(hub, "fault", lambda url: pytest.fail("the hub was asked"))
    text_data(max_rows=40)
    text_data(max_rows=40, data=("embedded", jsonl(ROWS)), tokenizer=str(words), loss_on="all")
    with pytest.raises(ValueError, match="nowhere.jsonl"):
        text_data(data=("nowhere.jsonl",))


def test_the_users_own_offline_switch_is_obeyed(empty_cache, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr(socket, "create_connection", lambda *a, **k: pytest.fail("network used"))
    with pytest.raises(ValueError, match="HF_HUB_OFFLINE is set"):
        text_data(tokenizer="nobody/words")
    assert empty_cache.HF_HUB_OFFLINE is True


def test_other_mistakes_are_not_blamed_on_the_hub(empty_cache, monkeypatch, jsonl):
    """A source of rows that cannot be used stands beside one that is not to be had."""
    monkeypatch.setattr(hub, "fault", lambda url: "it is away")
    with pytest.raises(ValueError, match="is no JSON to read") as error:
        path = jsonl([])
        pathlib.Path(path).write_text('{"text": \n')
        text_data(data=(path, "nobody/rows"))
    assert "it is away" not in str(error.value)
