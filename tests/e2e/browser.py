"""Chromium without a window, driven over a pipe (the DevTools protocol)."""

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time

from harness import SLOW, wait_until

MISSING = ("these tests need Chromium: apt-get install chromium (DARTFS_CHROMIUM names another "
           "one)")

# The browser reads commands from descriptor 3 and writes to 4.
_START = """
import fcntl, os, sys
pipes = [fcntl.fcntl(int(fd), fcntl.F_DUPFD, 10) for fd in sys.argv[1:3]]
os.dup2(pipes[0], 3)
os.dup2(pipes[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


def find_chromium():
    path = os.environ.get("DARTFS_CHROMIUM") or shutil.which("chromium")
    if path is None:
        raise AssertionError(MISSING)
    return path


class Browser:
    """One page. `console` has what went wrong in it, `requests` every URL it asked for."""

    def __init__(self, case):
        self.console = []
        self.requests = []
        self._last_id = 0
        self._answers = {}
        self._pending = b""
        self._session = None
        self._loaded = False
        ours, theirs = os.pipe(), os.pipe()
        profile = case.dir("browser")
        case.spawn(
            sys.executable, "-c", _START, str(ours[0]), str(theirs[1]), find_chromium(),
            "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            "--hide-scrollbars", "--disable-background-networking",
            "--no-first-run", "--remote-debugging-pipe",
            f"--user-data-dir={profile}", "about:blank", pass_fds=(ours[0], theirs[1]),
            env={**case.environment(), "HOME": profile}, stderr=subprocess.DEVNULL)
        os.close(ours[0])
        os.close(theirs[1])
        self._to, self._from = ours[1], theirs[0]
        case.addCleanup(os.close, self._to)
        case.addCleanup(os.close, self._from)
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target,
                                  flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def call(self, method, **parameters):
        """The result; AssertionError where the browser has none."""
        self._last_id += 1
        wanted = self._last_id
        message = {"id": wanted, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + 60 * SLOW
        while wanted not in self._answers:
            self._receive(deadline)
        answer = self._answers.pop(wanted)
        if "error" in answer:
            raise AssertionError(f"{method}: {answer['error']}")
        return answer["result"]

    def _receive(self, deadline):
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([self._from], [], [], left)[0]:
            raise AssertionError("the browser does not answer")
        read = os.read(self._from, 1 << 20)
        if not read:
            raise AssertionError("the browser has ended")
        *messages, self._pending = (self._pending + read).split(b"\0")
        for message in messages:
            self._take(json.loads(message))

    def _take(self, message):
        if "id" in message:
            self._answers[message["id"]] = message
            return
        method, parameters = message["method"], message.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.console.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning"):
            self.console.append(str([one.get("value") for one in parameters["args"]]))
        elif method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
            entry = parameters["entry"]
            self.console.append(f"{entry['text']} {entry.get('url', '')}")
        elif method == "Page.loadEventFired":
            self._loaded = True
        elif method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])

    def shape(self, width, height=900, dark=False):
        """How wide the window is, and which colours its user likes."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)
        scheme = "dark" if dark else "light"
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": scheme}])

    def open(self, url):
        """Loaded, with its scripts run, on return."""
        self._loaded = False
        self.call("Page.navigate", url=url)
        deadline = time.monotonic() + 60 * SLOW
        while not self._loaded:
            self._receive(deadline)

    def value(self, expression):
        """Of an expression in the page, as JSON would have it."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                           awaitPromise=True)
        if "exceptionDetails" in result:
            raise AssertionError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait_for(self, expression, timeout=30):
        return wait_until(lambda: self.value(expression), timeout * SLOW, expression, 0.1)

    def screenshot(self, path):
        """The whole page, also what lies below the window."""
        picture = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        with open(path, "wb") as file:
            file.write(base64.b64decode(picture["data"]))
