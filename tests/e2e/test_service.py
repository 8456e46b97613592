"""The node as a service: what it tells the service manager, reload, stop, the installed units."""

import os
import re
import shutil
import signal
import socket
import subprocess
import time

import trees
from harness import (BUILD, SLOW, TOP, Case, default_signals, exit_status, is_mounted, main,
                     program, run, unmount, wait_until)


class NotifySocket:
    """What systemd would hear: one dict a datagram, in order, with when it came."""

    def __init__(self, path):
        self.path = path
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(path)
        self.heard = []

    def listen(self, seconds):
        """All that comes within so long."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            self._receive(left)

    def wait_for(self, what, timeout=20):
        """Until a datagram has that line; the datagram."""
        deadline = time.monotonic() + timeout * SLOW
        seen = 0
        while True:
            for message in self.heard[seen:]:
                seen += 1
                if what in message["lines"]:
                    del self.heard[:seen]
                    return message
            left = deadline - time.monotonic()
            if left <= 0:
                raise AssertionError(f"not told: {what}")
            self._receive(left)

    def _receive(self, seconds):
        self.socket.settimeout(seconds)
        try:
            lines = self.socket.recv(4096).decode().splitlines()
        except (TimeoutError, socket.timeout):
            return
        fields = dict(line.split("=", 1) for line in lines)
        self.heard.append({"lines": lines, "at": time.monotonic(), **fields})

    def close(self):
        self.socket.close()


class ServiceCase(Case):
    def setUp(self):
        super().setUp()
        self.root = self.dir("tree")
        with open(os.path.join(self.root, "hello"), "w") as file:
            file.write("hello\n")
        trees.age(self.root)
        self.server = self.origin(self.root)
        self.cache = os.path.join(self.temp, "cache")
        self.log = os.path.join(self.temp, "log")
        self.config = os.path.join(self.temp, "dartfs.toml")
        self.write_config()
        self.points = [self.dir("first"), self.dir("second")]
        self.manager = NotifySocket(os.path.join(self.temp, "notify"))
        self.addCleanup(self.manager.close)
        self.process = None

    def write_config(self, **options):
        options = {"cache-dir": self.cache, "log-file": self.log, "log-level": "info", **options}
        with open(self.config, "w") as file:
            for name, value in options.items():
                file.write(f"{name} = {'true' if value is True else chr(34) + value + chr(34)}\n")

    def start(self, *more, watchdog=None):
        env = {**self.environment(), "NOTIFY_SOCKET": self.manager.path}
        if watchdog is not None:
            env["WATCHDOG_USEC"] = str(int(watchdog * 1e6))
        self.process = self.spawn(program("dartfs"), "--no-mount", "-f", "--config", self.config,
                                  *more, env=env, stderr=subprocess.PIPE)
        self.addCleanup(self.unmount_all)
        self.manager.wait_for("READY=1")
        return self.process

    def unmount_all(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(timeout=30)
        for point in self.points:
            unmount(point, lazy=True)

    def mount(self, point, *more):
        run(program("dartfs"), self.server.url(), point, "--cache-dir", self.cache, *more,
            env=self.environment(), timeout=60)
        with open(os.path.join(point, "hello")) as file:
            self.assertEqual(file.read(), "hello\n")

    def ctl(self, *arguments):
        import json
        return json.loads(run(program("dartfsctl"), *arguments, "--json", "--cache-dir", self.cache,
                              env=self.environment()).stdout)

    def log_text(self):
        with open(self.log) as file:
            return file.read()

    def ends(self, code=0):
        self.assertEqual(self.process.wait(timeout=40 * SLOW), code, self.process.stderr.read())


class Service(ServiceCase):
    def test_it_is_there_before_the_first_mount_and_after_the_last(self):
        self.start()
        self.assertEqual(self.ctl("status")["mounts"], [])
        self.assertTrue(self.ctl("status")["stays"])
        for _ in range(2):
            self.mount(self.points[0])
            self.mount(self.points[1])
            self.assertEqual(len(self.ctl("status")["mounts"]), 2)
            for point in self.points:
                unmount(point)
            wait_until(lambda: not self.ctl("status")["mounts"], 10, "none is left")
        self.assertIsNone(self.process.poll())
        self.process.terminate()
        self.ends()

    def test_it_stops_in_order_and_leaves_nothing_mounted(self):
        self.start()
        for point in self.points:
            self.mount(point)
        held = os.open(os.path.join(self.points[1], "hello"), os.O_RDONLY)
        try:
            self.process.terminate()
            message = self.manager.wait_for("STOPPING=1")
            self.assertGreaterEqual(int(message["EXTEND_TIMEOUT_USEC"]), 30_000_000)
            self.ends()
        finally:
            try:
                os.close(held)
            except OSError:
                pass
        for point in self.points:
            self.assertFalse(is_mounted(point))
        self.assertFalse(os.path.exists(os.path.join(self.cache, "control")))

    def test_its_start_asks_for_time(self):
        env = {**self.environment(), "NOTIFY_SOCKET": self.manager.path}
        self.process = self.spawn(program("dartfs"), "--no-mount", "-f", "--config", self.config,
                                  env=env, stderr=subprocess.PIPE)
        self.addCleanup(self.unmount_all)
        message = self.manager.wait_for("STATUS=opening the cache")
        self.assertGreaterEqual(int(message["EXTEND_TIMEOUT_USEC"]), 60_000_000)
        ready = self.manager.wait_for("READY=1")
        self.assertIn(self.cache, ready["STATUS"])

    def test_a_start_that_fails_is_never_ready(self):
        self.write_config(**{"cache-dir": "/proc/nowhere"})
        env = {**self.environment(), "NOTIFY_SOCKET": self.manager.path}
        done = run(program("dartfs"), "--no-mount", "-f", "--config", self.config, env=env,
                   check=False)
        self.assertEqual(done.returncode, 32)
        self.manager.listen(0.2)
        self.assertFalse([m for m in self.manager.heard if "READY=1" in m["lines"]])

    def test_watchdog(self):
        self.start(watchdog=0.9)
        self.mount(self.points[0])
        came = [self.manager.wait_for("WATCHDOG=1")["at"] for _ in range(6)]
        self.assertLess(max(b - a for a, b in zip(came, came[1:])), 0.9 * SLOW,
                        "the manager would have acted")
        self.process.send_signal(signal.SIGSTOP)
        self.manager.listen(0.5)
        self.manager.heard.clear()
        self.manager.listen(1)
        self.assertEqual(self.manager.heard, [], "a process that stands still")
        self.process.send_signal(signal.SIGCONT)
        self.manager.wait_for("WATCHDOG=1")

    def test_without_a_watchdog_nothing_is_told(self):
        self.start()
        self.manager.listen(0.5)
        self.assertEqual(self.manager.heard, [])

    def test_reload(self):
        self.start()
        self.mount(self.points[0])
        self.write_config(**{"log-level": "debug"})
        os.rename(self.log, self.log + ".1")  # as logrotate does
        before = time.clock_gettime(time.CLOCK_MONOTONIC)
        self.process.send_signal(signal.SIGHUP)
        message = self.manager.wait_for("RELOADING=1")
        self.assertGreaterEqual(int(message["MONOTONIC_USEC"]), before * 1e6 - 1)
        self.assertLessEqual(int(message["MONOTONIC_USEC"]),
                             time.clock_gettime(time.CLOCK_MONOTONIC) * 1e6)
        self.manager.wait_for("READY=1")
        self.assertIn("log level debug", self.log_text())
        with open(os.path.join(self.points[0], "hello")) as file:
            self.assertEqual(file.read(), "hello\n")

    def reload(self):
        self.process.send_signal(signal.SIGHUP)
        self.manager.wait_for("RELOADING=1")
        self.manager.wait_for("READY=1")

    def test_a_reload_changes_which_origins_may_be_asked(self):
        trees.write_random(os.path.join(self.root, "more"), 4096, 3)
        trees.age(self.root)
        self.start()
        self.mount(self.points[0])

        def read():
            try:
                with open(os.path.join(self.points[0], "more"), "rb") as file:
                    return file.read()
            except OSError:
                return None

        self.write_config(**{"origin-deny": "127.0.0.0/8"})
        self.reload()
        self.assertIsNone(read())
        self.write_config(**{"origin-deny": "somewhere/else"})
        self.reload()
        self.assertIsNone(read(), "wrong options change nothing")
        self.write_config()
        self.reload()
        with open(os.path.join(self.root, "more"), "rb") as file:
            expected = file.read()
        wait_until(lambda: read() == expected, 20, "the origin is asked again")

    def test_a_reload_of_wrong_options_changes_nothing(self):
        self.start()
        self.write_config(ttl="soon")
        self.process.send_signal(signal.SIGHUP)
        self.manager.wait_for("RELOADING=1")
        self.manager.wait_for("READY=1")
        self.assertIn("the options stay as they are", self.log_text())
        self.mount(self.points[0])

    def test_mounts_take_what_they_do_not_name_from_the_service(self):
        self.write_config(**{"ttl": "7s", "allow-other": True, "cache-size": "1GiB"})
        self.start()
        self.mount(self.points[0])
        self.mount(self.points[1], "-o", "ttl=8s,allow_other=false,cache_size=1GiB")
        first, second = [next(m["options"] for m in self.ctl("status")["mounts"]
                              if m["mountpoint"] == point) for point in self.points]
        self.assertEqual((first["ttl"], first["allow-other"]), ("7s", "true"))
        self.assertEqual((second["ttl"], second["allow-other"]), ("8s", "false"))
        with open("/proc/self/mountinfo") as file:
            shown = {line.split()[4]: line for line in file}
        self.assertIn("allow_other", shown[self.points[0]])
        self.assertNotIn("allow_other", shown[self.points[1]])

    def test_in_the_background(self):
        pid_file = os.path.join(self.temp, "pid")
        done = run(program("dartfs"), "--no-mount", "--config", self.config, "--pid-file", pid_file,
                   env=self.environment(), timeout=30, preexec_fn=default_signals)
        self.assertEqual((done.stdout, done.stderr), (b"", b""))
        with open(pid_file) as file:
            pid = int(file.read())
        try:
            self.mount(self.points[0])
        finally:
            os.kill(pid, signal.SIGTERM)
            wait_until(lambda: exit_status(pid) is not None, 30 * SLOW, "it ends")
        self.assertFalse(is_mounted(self.points[0]))

    def test_what_makes_no_sense_is_said(self):
        for arguments, word in (([self.server.url(), self.points[0]], b"takes no SOURCE"),
                                (["--cache-siez", "1GiB"], b"cache-size")):
            done = run(program("dartfs"), "--no-mount", *arguments, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn(word, done.stderr)


class Installed(Case):
    """What `cmake --install` puts where systemd looks."""

    def install(self, where):
        run("cmake", "--install", BUILD, "--prefix", where, timeout=120)
        return where

    def setUp(self):
        super().setUp()
        self.prefix = self.install(os.path.join(self.temp, "prefix"))

    def test_units_are_right(self):
        units = self.dir("units")
        for name in ("dartfs.service", "dartfs.socket"):
            shutil.copy(os.path.join(self.prefix, "lib/systemd/system", name), units)
        for name in ("srv-images.mount", "srv-images.automount"):
            shutil.copy(os.path.join(TOP, "contrib/systemd", name), units)
        names = [os.path.join(units, name) for name in sorted(os.listdir(units))]
        self.assertEqual(len(names), 4)
        done = run("systemd-analyze", "verify", "--man=no", *names, check=False,
                   env={**os.environ, "SYSTEMD_UNIT_PATH": units + ":"})
        said = [line for line in done.stderr.decode().splitlines() if units in line or
                "dartfs" in line or "srv-images" in line]
        self.assertEqual((done.returncode, said), (0, []))
        # It would have found something.
        with open(names[0], "a") as file:
            file.write("\n[Service]\nWatchdogSec=never\nNoSuchThing=1\n")
        wrong = run("systemd-analyze", "verify", "--man=no", names[0], check=False,
                    env={**os.environ, "SYSTEMD_UNIT_PATH": units + ":"})
        self.assertTrue(wrong.returncode != 0 or b"NoSuchThing" in wrong.stderr)

    def test_the_service_has_no_mount_namespace_of_its_own(self):
        with open(os.path.join(self.prefix, "lib/systemd/system/dartfs.service")) as file:
            options = dict(re.findall(r"^(\w+)=(.*)$", file.read(), re.MULTILINE))
        for name in ("ProtectSystem", "ProtectHome", "PrivateTmp", "PrivateDevices",
                     "PrivateMounts", "ProtectKernelTunables", "ProtectKernelModules",
                     "ProtectKernelLogs",
                     "ProtectControlGroups", "ProtectProc", "ReadWritePaths", "ReadOnlyPaths",
                     "InaccessiblePaths", "BindPaths", "TemporaryFileSystem", "RootDirectory",
                     "MountFlags", "DynamicUser", "ProtectClock"):
            self.assertNotIn(name, options)
        self.assertEqual(options["Type"], "notify")
        start = options["ExecStart"].split()
        self.assertTrue(os.access(start[0], os.X_OK), start[0])
        self.assertTrue(os.path.exists(start[start.index("--config") + 1]))

    def test_the_example_has_every_option_at_its_default(self):
        path = os.path.join(self.prefix, "etc/dartfs/dartfs.toml")
        with open(path) as file:
            example = file.read()
        named = set(re.findall(r"^#([a-z-]+) = ", example, re.MULTILINE))
        described = run(program("dartfs"), "--help").stdout.decode()
        known = set(re.findall(r"--([a-z-]+)", described)) - {"help", "version", "config",
                                                              "check-config"}
        self.assertEqual(named, known)
        # As it is, and with every line in force; the files that it names are there.
        for name, place in (("registries.json", "/etc/dartfs"), ("access.log", "/var/log/dartfs")):
            with open(os.path.join(self.temp, name), "w") as file:
                file.write("{}")
            self.assertIn(f"{place}/{name}", example)
            example = example.replace(f"{place}/{name}", os.path.join(self.temp, name))
        for text in (example, re.sub(r"^#([a-z-]+ = )", r"\1", example, flags=re.MULTILINE)):
            with open(path, "w") as file:
                file.write(text)
            run(program("dartfs"), "--check-config", "--config", path, env=self.environment())

    def test_the_administrators_file_is_never_replaced(self):
        path = os.path.join(self.prefix, "etc/dartfs/dartfs.toml")
        with open(path, "w") as file:
            file.write("ttl = \"7s\"\n")
        self.install(self.prefix)
        with open(path) as file:
            self.assertEqual(file.read(), "ttl = \"7s\"\n")


if __name__ == "__main__":
    main()
