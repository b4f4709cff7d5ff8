"""Chromium without a window, driven over a pipe: what the tests of the site need and no more."""

import base64
import contextlib
import functools
import http.server
import json
import os
import select
import shutil
import subprocess
import tempfile
import threading

import pytest

PATIENCE = 120  # seconds for what a busy machine does in ten; a promise may never be kept
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find():
    """The browser's path, or None."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def serve(folder):
    """A server of the folder on a free port; its address ends in a slash."""
    handler = functools.partial(Quiet, directory=folder)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_port}/"


class Browser:
    """One tab. `events` holds what it reported since open() was last called."""

    def __init__(self):
        self.start()

    def start(self):
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        options = "--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run"
        options += " --disable-background-networking --disable-component-update --hide-scrollbars"
        options += f" --remote-debugging-pipe --user-data-dir={self.profile.name}"
        theirs, self.write = os.pipe()
        self.read, ours = os.pipe()
        os.set_inheritable(theirs, True), os.set_inheritable(ours, True)
        command = f'exec "$0" {options} about:blank 3<&{theirs} 4>&{ours}'
        quiet = dict(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.process = subprocess.Popen(
            ["bash", "-c", command, find()], pass_fds=(theirs, ours), **quiet
        )
        os.close(theirs), os.close(ours)
        self.number, self.buffer, self.events, self.session = 0, b"", [], None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def message(self):
        while b"\0" not in self.buffer:
            if not select.select([self.read], [], [], PATIENCE)[0]:
                self.process.kill()  # what else is asked of it fails at once
                said = "; ".join(self.complaints()) or "nothing"
                raise RuntimeError(f"no answer for {PATIENCE} s; the page complained of: {said}")
            part = os.read(self.read, 1 << 20)
            if not part:
                raise RuntimeError("the browser ended")
            self.buffer += part
        one, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(one)

    def call(self, method, **params):
        self.number += 1
        about = dict(id=self.number, method=method, params=params)
        about |= dict(sessionId=self.session) if self.session else {}
        os.write(self.write, json.dumps(about).encode() + b"\0")
        while (got := self.message()).get("id") != self.number:
            self.events.append(got)
        if "error" in got:
            raise RuntimeError(f"{method}: {got['error']['message']}")
        return got["result"]

    def view(self, width, scheme, motion="reduce"):
        """The width of the screen in pixels; scheme light or dark."""
        size = dict(width=width, height=800, deviceScaleFactor=1, mobile=width < 500)
        self.call("Emulation.setDeviceMetricsOverride", **size)
        features = [dict(name="prefers-color-scheme", value=scheme)]
        features += [dict(name="prefers-reduced-motion", value=motion)]
        self.call("Emulation.setEmulatedMedia", features=features)

    def open(self, url):
        if self.process.poll() is not None:  # another test has ended it
            self.start()
            self.view(1280, "light")
        self.events.clear()
        self.call("Page.navigate", url=url)
        while not any(e.get("method") == "Page.loadEventFired" for e in self.events):
            self.events.append(self.message())

    def run(self, script):
        """The value of a JavaScript expression, awaited if it is a promise."""
        options = dict(returnByValue=True, awaitPromise=True)
        got = self.call("Runtime.evaluate", expression=script, **options)
        if "exceptionDetails" in got:
            raise RuntimeError(got["exceptionDetails"])
        return got["result"].get("value")

    def complaints(self):
        """Console errors, exceptions, and requests to other hosts than our own."""
        found = []
        for event in self.events:
            method, params = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                found.append(f"exception: {params['exceptionDetails']['text']}")
            if method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
                found.append(f"console: {params['args'][0].get('value')}")
            if method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
                found.append(f"log: {params['entry']['text']} {params['entry'].get('url', '')}")
            if method == "Network.requestWillBeSent":
                url = params["request"]["url"]
                if not url.startswith(("http://127.0.0.1:", "data:", "blob:", "about:")):
                    found.append(f"request: {url}")
        return [each for each in found if "favicon" not in each]

    # ---------- what a reader does ----------

    def box(self, url, name, data, motion="reduce"):
        """Open the address with nothing on it but a box of docs/assets."""
        from minidepth_site import widgets

        self.open(url)
        self.view(1280, "light", motion)
        html = widgets.html(name, data, "no script").split("\n")[0]
        style = '<meta name="viewport" content="width=device-width">'
        style += '<link rel="stylesheet" href="/assets/widgets.css">'
        self.run(f"""new Promise((resolve) => {{
          document.head.innerHTML = {json.dumps(style)}
          document.body.innerHTML = {json.dumps(html)}
          const script = document.createElement("script")
          Object.assign(script, {{ type: "module", src: "/assets/{name}.js", onload: resolve }})
          document.body.append(script)
        }})""")

    def until(self, condition, seconds=60):
        """Wait until a JavaScript condition is true."""
        assert self.run(f"""new Promise((resolve) => {{
          let n = 0
          const look = () => ({condition}) ? resolve(true) : n++ > {50 * seconds}
            ? resolve(false) : setTimeout(look, 20)
          look()
        }})"""), f"{condition}: {self.run('document.body.innerText')}"

    def press(self, text):
        """Click on the button that says this."""
        self.run(f"""[...document.querySelectorAll("button")]
          .find(button => button.textContent.trim() === {json.dumps(text)}).click()""")

    def click(self, selector, number=0):
        self.run(f"document.querySelectorAll('{selector}')[{number}].click()")

    def change(self, selector, value, event, number=0):
        """Give an element a value as a reader would, and say so."""
        self.run(f"""(() => {{
          const element = document.querySelectorAll('{selector}')[{number}]
          element.focus()
          element.value = {json.dumps(value)}
          element.dispatchEvent(new Event("{event}"))
        }})()""")

    def choose(self, label, value):
        """Choose from the menu of this name."""
        self.change(f'select[aria-label="{label}"]', value, "change")

    def slide(self, number, value):
        self.change("input[type=range]", value, "input", number)

    def give(self, *files):
        """Choose these files, (name, bytes), for the box."""
        parts = [dict(name=name, data=base64.b64encode(data).decode()) for name, data in files]
        self.run(f"""(() => {{
          const transfer = new DataTransfer()
          for (const {{ name, data }} of {json.dumps(parts)}) {{
            const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0))
            transfer.items.add(new File([bytes], name))
          }}
          const input = document.querySelector("input[type=file]")
          input.files = transfer.files
          input.dispatchEvent(new Event("change"))
        }})()""")

    def texts(self, selector):
        return self.run(f"[...document.querySelectorAll('{selector}')].map((e) => e.textContent)")

    def values(self, selector):
        return self.run(f"[...document.querySelectorAll('{selector}')].map((e) => e.value)")

    def count(self, selector):
        return self.run(f"document.querySelectorAll('{selector}').length")

    def screenshot(self, path):
        got = self.call("Page.captureScreenshot", captureBeyondViewport=True, format="png")
        with open(path, "wb") as f:
            f.write(base64.b64decode(got["data"]))

    def close(self):
        self.process.terminate()
        self.process.wait(10)
        os.close(self.read), os.close(self.write)
        self.profile.cleanup()


@contextlib.contextmanager
def running():
    """A browser; skips where there is none."""
    if not find():
        assert not os.environ.get("NEEDS_BROWSER"), "no Chromium here, but NEEDS_BROWSER is set"
        pytest.skip("Chromium is not installed; on Debian: apt install chromium")
    tab = Browser()
    tab.view(1280, "light")
    yield tab
    tab.close()


@contextlib.contextmanager
def serving(folder):
    """The address of a folder that is served."""
    server, address = serve(str(folder))
    yield address
    server.shutdown()
