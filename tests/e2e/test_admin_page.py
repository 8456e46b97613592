"""The operator's page in a browser: what it shows, what it asks for, and what foreign text does."""

import itertools
import json
import os
import socket
import urllib.error
import urllib.request

from admin_stub import EVIL, POLICY, AdminStub, hostile, idle, ordinary
from browser import Browser
from harness import BLOCK, SLOW, Case, main, wait_until

WIDTHS = (1280, 400)
# Set: screenshots stay there, for people to look at.
PICTURES = os.environ.get("DARTFS_E2E_PICTURES")


class PageCase(Case):
    def open(self, url):
        browser = Browser(self)
        browser.shape(WIDTHS[0])
        browser.open(url)
        return browser

    def assert_sound(self, browser, url):
        """No error, nothing asked of anybody else, nothing wider than the window."""
        self.assertEqual(browser.console, [])
        base = url.removesuffix("admin/")
        foreign = [one for one in browser.requests
                   if not one.startswith((base, "data:", "about:"))]
        self.assertEqual(foreign, [])
        self.assertFalse(browser.value("document.documentElement.scrollWidth > innerWidth"),
                         "the page scrolls sideways")

    def live(self, browser):
        browser.wait_for("document.getElementById('state').classList.contains('live')")

    def picture(self, browser, name):
        if PICTURES:
            browser.screenshot(os.path.join(PICTURES, name + ".png"))


class Page(PageCase):
    def test_looks_alike_at_each_width_and_in_both_schemes(self):
        stub = AdminStub(self, ordinary)
        browser = Browser(self)
        grounds = set()
        for width, dark in itertools.product(WIDTHS, (False, True)):
            with self.subTest(width=width, dark=dark):
                browser.shape(width, dark=dark)
                browser.open(stub.url)
                self.live(browser)
                before = stub.asked
                browser.wait_for("document.querySelectorAll('#flights tr').length == 5")
                browser.wait_for("document.querySelector('#bytes-chart path').getAttribute('d')"
                                 ".includes('L')")
                self.assertGreater(stub.asked, before)
                self.assert_sound(browser, stub.url)
                grounds.add((dark, browser.value("getComputedStyle(document.body)"
                                                 ".backgroundColor")))
                self.picture(browser, f"{width}-{'dark' if dark else 'light'}")
        self.assertEqual(len(grounds), 2)

    def test_says_what_there_is(self):
        stub = AdminStub(self, ordinary)
        browser = self.open(stub.url)
        self.live(browser)
        shown = browser.value("document.body.innerText")
        for words in ("node-17", "version 0.1.0", "up 3 h 14 min", "10.0 GiB", "6.10 GiB",
                      "1.10 GiB", "stuck", "throttles us", "Connection refused", "/srv/images",
                      "needs root", "io_uring", "local programs", "88.0 GiB"):
            self.assertIn(words, shown)
        # The oldest flight is the first, and the only stuck one.
        self.assertIn("stuck", browser.value("document.querySelector('#flights tr').innerText"))
        self.assertEqual(browser.value("document.querySelectorAll('#flights tr.bad').length"), 1)

    def test_says_what_there_is_not(self):
        stub = AdminStub(self, idle)
        browser = Browser(self)
        for width in WIDTHS:
            browser.shape(width)
            browser.open(stub.url)
            self.live(browser)
            shown = browser.value("document.body.innerText")
            for words in ("No flight at the moment.", "No origin has been asked yet.",
                          "Nothing is mounted", "No HTTP request has been answered yet."):
                self.assertIn(words, shown)
            self.assertNotIn("NaN", shown)
            self.assertNotIn("undefined", shown)
            self.assert_sound(browser, stub.url)
            self.picture(browser, f"idle-{width}")

    def test_foreign_text_stays_text(self):
        stub = AdminStub(self, hostile)
        browser = Browser(self)
        for width in WIDTHS:
            browser.shape(width)
            browser.open(stub.url)
            self.live(browser)
            shown = browser.value("document.body.textContent")
            self.assertIn(EVIL, shown)
            self.assertNotIn("NaN", shown)
            self.assertNotEqual(browser.value("document.title"), "owned")
            self.assertEqual(browser.value("document.scripts.length"), 1)
            self.assertEqual(browser.value("document.images.length"), 0)
            self.assertEqual(browser.value("document.querySelectorAll('#flights tr').length"), 257)
            self.assert_sound(browser, stub.url)
            self.picture(browser, f"hostile-{width}")

    def test_a_node_that_fails_is_asked_more_and_more_seldom(self):
        stub = AdminStub(self, lambda n: ordinary(n) if n < 2 else 503)
        browser = self.open(stub.url)
        self.live(browser)
        browser.wait_for("document.getElementById('state').classList.contains('lost')")
        browser.wait_for("document.getElementById('state').textContent.includes('in 8 s')")
        shown = browser.value("document.getElementById('state').textContent")
        self.assertIn("answered 503", shown)
        self.assertIn("old", shown)
        self.assertIn("/srv/images", browser.value("document.body.innerText"))

    def test_a_hidden_page_asks_for_nothing(self):
        stub = AdminStub(self, ordinary)
        browser = self.open(stub.url)
        self.live(browser)
        browser.value("Object.defineProperty(document, 'hidden', {value: true, "
                      "configurable: true}), document.dispatchEvent(new Event('visibilitychange'))")
        browser.wait_for("document.getElementById('state').textContent.includes('paused')")
        asked = stub.asked
        browser.value("new Promise(done => setTimeout(done, 4500))")
        self.assertEqual(stub.asked, asked)
        browser.value("delete document.hidden, "
                      "document.dispatchEvent(new Event('visibilitychange'))")
        self.live(browser)
        self.assertGreater(stub.asked, asked)


class OnANode(PageCase):
    """The page that is built in, with the numbers of a node that serves."""

    def setUp(self):
        super().setUp()
        root = self.dir("root")
        with open(os.path.join(root, "a.img"), "wb") as file:
            file.write(os.urandom(2 * BLOCK))
        self.source = self.origin(root)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.base = f"http://127.0.0.1:{probe.getsockname()[1]}"
        self.served = self.node(self.source.url("/"), listen=self.base.removeprefix("http://"))

    def get(self, path):
        """(status, headers, body)"""
        try:
            with urllib.request.urlopen(self.base + path, timeout=30 * SLOW) as answer:
                return answer.status, answer.headers, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.headers, error.read()

    def stats(self):
        return json.loads(self.get("/admin/stats")[2])

    def test_shows_what_the_node_does(self):
        with open(self.served.path("a.img"), "rb") as file:
            file.read()
        self.assertEqual(self.get("/dart/" + self.source.url("/a.img"))[0], 200)
        browser = Browser(self)
        for width in WIDTHS:
            browser.shape(width)
            browser.open(self.base + "/admin/")
            self.live(browser)
            shown = browser.value("document.body.innerText")
            for words in (self.served.mountpoint, self.source.authority, "No flight at the moment.",
                          "local programs"):
                self.assertIn(words, shown)
            self.assert_sound(browser, self.base + "/admin/")
            self.picture(browser, f"node-{width}")

    def test_answers_of_the_plane(self):
        self.assertEqual(self.get("/healthz")[::2], (200, b"ok\n"))
        self.assertEqual(self.get("/readyz")[::2], (200, b"ready\n"))
        self.assertEqual(self.get("/admin")[0], 200)  # after its redirect
        for path in ("/admin/members", "/admin/ring?key=1"):
            status, headers, body = self.get(path)
            self.assertEqual(status, 503)
            self.assertEqual(headers["Content-Type"], "application/json")
            self.assertEqual(json.loads(body), {"error": "no cluster is configured"})
        _, headers, _ = self.get("/admin/")
        self.assertEqual(headers["Content-Security-Policy"], POLICY)

    def test_numbers_move_as_they_should(self):
        def metric(series):
            for line in self.get("/metrics")[2].decode().splitlines():
                if line.startswith(series + " "):
                    return float(line.rpartition(" ")[2])
            raise AssertionError(f"no {series}")

        client = 'dart_bytes_total{direction="client"}'
        origin = 'dart_bytes_total{direction="origin_in"}'
        fetches = 'dart_block_fetch_seconds_count{source="origin"}'
        self.assertEqual(metric(client), 0)
        url = "/dart/" + self.source.url("/a.img")
        self.assertEqual(len(self.get(url)[2]), 2 * BLOCK)
        wait_until(lambda: metric(client) == 2 * BLOCK, 20 * SLOW, "the bytes are counted")
        taken = metric(origin)
        self.assertGreaterEqual(taken, 2 * BLOCK)
        self.assertEqual(metric(fetches), 2)
        wait_until(lambda: self.stats()["cached_blocks"] == 2, 20 * SLOW, "both blocks are kept")
        self.assertEqual(metric('dart_store_blocks{class="owned"}'), 2)
        self.assertEqual(len(self.get(url)[2]), 2 * BLOCK)
        wait_until(lambda: metric(client) == 4 * BLOCK, 20 * SLOW, "the bytes are counted")
        self.assertEqual(metric(origin), taken)
        self.assertGreaterEqual(metric('dart_block_source_total{source="cache"}'), 2)
        self.assertEqual(metric('dartfs_http_requests_total{plane="client",status="2xx"}'), 2)
        self.assertEqual(metric("dartfs_mounts"), 1)


if __name__ == "__main__":
    main()
