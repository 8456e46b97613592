"""dartfsctl: jobs on cached objects, mounts, settings; texts, JSON, exit codes."""

import json
import os
import pty
import re
import signal
import subprocess

import trees
from harness import BLOCK, KIB, MIB, SLOW, Case, main, program, run, wait_until


class CtlCase(Case):
    """A tree of a large file, a directory with two and an empty file, mounted once."""

    def setUp(self):
        super().setUp()
        self.root = self.dir("tree")
        os.makedirs(os.path.join(self.root, "some/deep"))
        self.sizes = {"large": 3 * BLOCK + 5, "some/one": BLOCK, "some/deep/two": MIB,
                      "some/empty": 0}
        for seed, (name, size) in enumerate(self.sizes.items()):
            trees.write_random(os.path.join(self.root, name), size, seed)
        trees.age(self.root)
        self.server = self.origin(self.root)
        self.mount = self.node(self.server.url())

    def ctl(self, *arguments, code=0):
        done = run(program("dartfsctl"), *arguments, "--cache-dir", self.mount.cache, check=False,
                   env=self.environment(), timeout=60)
        said = done.stdout.decode() + done.stderr.decode()
        if code is not None:
            self.assertEqual(done.returncode, code, said)
        return said

    def json(self, *arguments, code=0):
        done = run(program("dartfsctl"), *arguments, "--json", "--cache-dir", self.mount.cache,
                   check=False, env=self.environment(), timeout=60)
        self.assertEqual(done.returncode, code, (done.stdout + done.stderr).decode())
        return json.loads(done.stdout)

    def read_all(self, name):
        with open(self.mount.path(name), "rb") as file:
            return file.read()

    def original(self, name):
        with open(os.path.join(self.root, name), "rb") as file:
            return file.read()

    def settled(self):
        self.mount.settle()


class Jobs(CtlCase):
    def test_evict(self):
        self.read_all("large")
        self.read_all("some/one")
        self.settled()
        job = self.json("evict", self.mount.path("large"))
        self.assertEqual((job["state"], job["objects"]["done"]), ("done", 1))
        self.assertAlmostEqual(job["bytes"]["done"], self.sizes["large"], delta=4 * KIB)
        self.assertEqual(self.mount.held("large"), set())
        self.assertEqual(self.mount.held("some/one"), {0}, "the other one stays")
        self.server.reset_stats()
        self.assertEqual(self.read_all("some/one"), self.original("some/one"))
        self.assertEqual(self.read_all("large"), self.original("large"), "fetched again")

    def test_evict_a_directory_and_a_url(self):
        for name in self.sizes:
            self.read_all(name)
        self.settled()
        job = self.json("evict", self.mount.path("some"), self.server.url("/large"))
        self.assertEqual(job["state"], "done", job)
        self.assertEqual(job["objects"], {"found": 4, "done": 4, "failed": 0})
        for name in self.sizes:
            self.assertEqual(self.mount.held(name), set(), name)

    def test_verify(self):
        self.read_all("large")
        self.settled()
        self.mount.restart()
        job = self.json("verify", self.mount.path("large"))
        self.assertEqual((job["state"], job["bad_granules"]), ("done", 0))
        self.assertEqual(job["bytes"]["done"], self.sizes["large"])

    def test_verify_finds_damage(self):
        self.read_all("large")
        self.settled()
        self.mount.stop()
        key = None
        for folder, _, names in os.walk(os.path.join(self.mount.cache, "objects")):
            for name in names:
                if os.path.getsize(os.path.join(folder, name)) == self.sizes["large"]:
                    key = os.path.join(folder, name)
        with open(key, "r+b") as file:
            file.seek(BLOCK + 77)
            byte = file.read(1)
            file.seek(BLOCK + 77)
            file.write(bytes([byte[0] ^ 1]))
        self.mount.start()
        said = self.ctl("verify", self.mount.path("large"), code=4)
        self.assertIn("1 damaged granules", said)
        self.assertIn(self.server.url("/large"), said)
        self.assertEqual(self.mount.held("large"), {0, 2, 3}, "its block is dropped")
        self.assertEqual(self.read_all("large"), self.original("large"))

    def test_pin(self):
        self.read_all("large")
        self.settled()
        pinned = lambda: self.json("explain", self.mount.path("large"))["object"]["pinned"]
        self.assertFalse(pinned())
        self.assertEqual(self.json("pin", self.mount.path("large"))["state"], "done")
        self.assertTrue(pinned())
        self.mount.restart()
        self.read_all("large")
        self.assertTrue(pinned(), "also over a restart")
        self.assertIn("is pinned, and stays", self.ctl("evict", self.mount.path("large"), code=4))
        self.assertEqual(self.mount.held("large"), {0, 1, 2, 3})
        self.assertEqual(self.json("unpin", self.mount.path("large"))["state"], "done")
        self.assertFalse(pinned())

    def test_what_can_not_be_had(self):
        said = self.ctl("evict", self.mount.path("absent"), code=4)
        self.assertIn("absent", said)
        said = self.ctl("evict", "/elsewhere", self.mount.path("some/one"), code=4)
        self.assertIn("/elsewhere does not lie on a mount", said)
        self.assertIn("1 of 1 objects", said, "the rest is done")

    def test_jobs_and_cancel(self):
        self.assertEqual(self.json("jobs"), {"jobs": []})
        self.ctl("evict", self.mount.path("large"))
        (job,) = self.json("jobs")["jobs"]
        self.assertEqual((job["verb"], job["state"]), ("evict", "done"))
        self.assertEqual(job["what"], self.mount.path("large"))
        self.assertIn("over already", self.ctl("cancel", str(job["job"])))
        self.assertIn("no job 77", self.ctl("cancel", "77", code=3))
        self.assertIn("expected a number that 'dartfsctl jobs' lists",
                      self.ctl("cancel", "x", code=1))
        self.assertIn("evict", self.ctl("jobs"))

    def test_queries_stay_secret(self):
        said = self.ctl("evict", self.server.url("/large?token=topsecret"))
        said += self.ctl("jobs") + self.mount.log_text()
        self.assertNotIn("topsecret", said)

    def test_queries_of_names_stay_secret(self):
        said = ""
        for name in ("large%3Ftoken=topsecret", "large%3ftoken=topsecret",
                     "absent%3Ftoken=topsecret", "large%3Ftoken=topsecret/below"):
            for path in (self.mount.path(name), "/elsewhere/" + name):
                for verb in ("evict", "pin"):
                    said += self.ctl(verb, path, code=None)
        said += self.ctl("jobs") + json.dumps(self.json("jobs")) + self.mount.log_text()
        self.assertNotIn("topsecret", said)
        self.assertIn(self.mount.path("large"), said)


class Promised(CtlCase):
    """Names whose listing or catalogue states the size: nobody has asked for them."""

    def setUp(self):
        super().setUp()
        os.remove(os.path.join(self.root, "some/empty"))  # without a version: not to be pinned
        del self.sizes["some/empty"]

    def jobs_on_a_directory(self, mount, sizes):
        self.mount = mount
        for verb in ("evict", "verify", "pin", "unpin"):
            with self.subTest(verb):
                mount.restart()  # so that nothing is known but what is promised
                job = self.json(verb, mount.mountpoint)
                self.assertEqual((job["state"], job["objects"]["done"]), ("done", len(sizes)), job)
        mount.restart()
        job = self.json("warm", "--wait", mount.mountpoint)
        self.assertEqual(job["bytes"], {"done": sum(sizes.values()), "total": sum(sizes.values())})
        for name in sizes:
            self.assertEqual(self.read_all(name), self.original(name))

    def test_listings(self):
        for index in ("json", "s3"):
            with self.subTest(index):
                server = self.origin(self.root, index=index)
                self.jobs_on_a_directory(self.node(server.url()), self.sizes)

    def test_a_catalogue(self):
        file = os.path.join(self.temp, "c.tsv")
        with open(file, "w") as lines:
            for name, size in self.sizes.items():
                lines.write(f"{name}\t{self.server.url('/' + name)}\t{size}\n")
        self.jobs_on_a_directory(self.node("catalog:" + file), self.sizes)


class Warm(CtlCase):
    def test_wait(self):
        job = self.json("warm", "--wait", self.mount.path(""), "/no/mount", code=4)
        self.assertEqual((job["state"], job["objects"]["done"]), ("failed", 4))
        self.assertEqual(job["bytes"], {"done": sum(self.sizes.values()),
                                        "total": sum(self.sizes.values())})
        self.settled()
        self.server.reset_stats()
        self.server.stop()
        for name in self.sizes:
            self.assertEqual(self.read_all(name), self.original(name), "without the origin")

    def test_without_wait(self):
        job = self.json("warm", self.mount.path("large"))["job"]
        wait_until(lambda: self.json("jobs")["jobs"][-1]["state"] == "done", 20 * SLOW, "it ends")
        self.assertEqual(self.json("jobs")["jobs"][-1]["job"], job)
        self.assertEqual(self.mount.held("large"), {0, 1, 2, 3})
        said = self.ctl("warm", self.mount.path("large"))
        self.assertRegex(said, r"job \d+ has begun")

    def test_a_line_at_the_end_when_it_is_no_terminal(self):
        said = self.ctl("warm", "--wait", self.mount.path("some"))
        self.assertIn("warm done: 3 of 3 objects", said)
        self.assertNotIn("\r", said)

    def test_a_bar_on_a_terminal(self):
        ours, theirs = pty.openpty()
        process = self.spawn(program("dartfsctl"), "warm", "--wait", self.mount.path(""),
                             "--cache-dir", self.mount.cache, env=self.environment(),
                             stderr=theirs, stdout=subprocess.PIPE)
        os.close(theirs)
        shown = b""
        try:
            while chunk := os.read(ours, 4096):
                shown += chunk
        except OSError:
            pass  # its end is closed
        os.close(ours)
        self.assertEqual(process.wait(timeout=60), 0)
        self.assertRegex(shown.decode(), re.compile(r"\[[#-]{24}\] .* of .* objects"))

    def test_an_interrupt_leaves_the_job(self):
        self.server.stop()  # so that it lasts
        process = self.spawn(program("dartfsctl"), "warm", "--wait", self.mount.path("large"),
                             "--cache-dir", self.mount.cache, env=self.environment(),
                             stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
        wait_until(lambda: self.json("jobs")["jobs"], 20 * SLOW, "it has begun")
        process.send_signal(signal.SIGINT)
        code = process.wait(timeout=20)
        if code == 4:
            return  # the origin's end was noticed first
        self.assertEqual(code, 130)
        self.assertIn(b"goes on", process.stderr.read())
        (job,) = self.json("jobs")["jobs"]
        self.json("cancel", str(job["job"]))
        wait_until(lambda: self.json("jobs")["jobs"][0]["state"] != "running", 20 * SLOW, "it ends")


class Settings(CtlCase):
    def test_log_level(self):
        self.assertIn("warn", self.ctl("set", "log-level", "warn"))
        before = self.mount.log_text()
        self.ctl("evict", self.mount.path("large"))
        self.assertEqual(self.mount.log_text(), before)
        self.ctl("set", "log-level", "info")
        self.ctl("evict", self.mount.path("large"))
        self.assertNotEqual(self.mount.log_text(), before)

    def test_bypass(self):
        self.ctl("set", "bypass", "on")
        self.assertTrue(self.json("status")["cache"]["bypass"])
        self.assertEqual(self.read_all("large"), self.original("large"))
        self.assertEqual(self.mount.held("large"), set(), "nothing is kept")
        self.ctl("set", "bypass", "off")
        self.assertFalse(self.json("status")["cache"]["bypass"])
        self.read_all("some/one")
        wait_until(lambda: self.mount.held("some/one") == {0}, 10 * SLOW, "kept again")

    def test_wrong_settings(self):
        self.assertIn("trace, debug", self.ctl("set", "log-level", "loud", code=1))
        self.assertIn("on or off", self.ctl("set", "bypass", "maybe", code=1))
        self.assertIn("bypass", self.ctl("set", "colour", "red", code=1))
        self.ctl("set", "bypass", code=1)

    def test_mounts(self):
        (mount,) = self.json("mounts")
        self.assertEqual(mount["mountpoint"], self.mount.mountpoint)
        said = self.ctl("mounts")
        for word in (self.mount.mountpoint, self.server.url(), "ttl 60s"):
            self.assertIn(word, said)


if __name__ == "__main__":
    main()
