"""Many mounts, one node: joining it, leaving it, refusals, and who comes at the wrong time."""

import os
import signal
import subprocess
import time

import trees
from harness import (SLOW, Case, default_signals, exit_status, is_mounted, main, program, run,
                     unmount, wait_until)
from test_start import MountProgram
from users import AsNobody


class MountsCase(Case):
    """One cache directory; mounts of it by `dartfs` as a person types it."""

    def setUp(self):
        super().setUp()
        self.root = self.dir("tree")
        for name in ("one", "two", "hello"):
            os.makedirs(os.path.join(self.root, name), exist_ok=True)
            with open(os.path.join(self.root, name, "name"), "w") as file:
                file.write(name + "\n")
        trees.age(self.root)
        self.server = self.origin(self.root)
        self.cache = os.path.join(self.temp, "shared-cache")
        self.pid_file = os.path.join(self.temp, "shared.pid")
        self.log = os.path.join(self.temp, "shared.log")
        self.pids = []
        self.addCleanup(self.end_nodes)

    def end_nodes(self):
        pid = self.lock_pid()
        if pid is not None:
            self.pids.append(pid)
        for pid in self.pids:
            try:
                if os.readlink(f"/proc/{pid}/exe") == os.path.realpath(program("dartfs")):
                    os.kill(pid, signal.SIGCONT)
                    os.kill(pid, signal.SIGTERM)
            except OSError:
                continue
        for name in os.listdir(self.temp):
            if name.startswith("at-"):
                unmount(os.path.join(self.temp, name), lazy=True)
        for pid in self.pids:
            wait_until(lambda p=pid: self.has_ended(p), 40 * SLOW, f"process {pid} ends")

    @staticmethod
    def has_ended(pid):
        exit_status(pid)
        return not os.path.exists(f"/proc/{pid}")

    def lock_pid(self):
        """Of the node that has the cache; None when there is none."""
        try:
            with open(os.path.join(self.cache, "lock")) as file:
                pid = int(file.read())
            if os.readlink(f"/proc/{pid}/exe") == os.path.realpath(program("dartfs")):
                return pid
        except (OSError, ValueError):
            pass
        return None

    def point(self, name):
        """A mountpoint; what another user has mounted there is not to be looked at."""
        path = os.path.join(self.temp, "at-" + name)
        if not is_mounted(path):
            os.makedirs(path, exist_ok=True)
        return path

    def command(self, name, *more, source=None):
        return [program("dartfs"), source or self.server.url(f"/{name}/"), self.point(name),
                "--cache-dir", self.cache, *more]

    def mount(self, name, *more, **how):
        done = run(*self.command(name, *more, **how), check=False, timeout=60,
                   env=self.environment(), preexec_fn=default_signals)
        pid = self.lock_pid()
        if pid is not None and pid not in self.pids:
            self.pids.append(pid)
        return done.returncode, done.stderr.decode(errors="replace")

    def mounted(self, name, *more, **how):
        code, said = self.mount(name, *more, **how)
        self.assertEqual((code, said), (0, ""))
        self.assertEqual(self.read(name), name + "\n", "usable at once")

    def read(self, name):
        with open(os.path.join(self.point(name), "name")) as file:
            return file.read()

    def refused(self, name, *more, says=()):
        code, said = self.mount(name, *more)
        self.assertEqual(code, 32, said)
        for word in says:
            self.assertIn(word, said)
        self.assertFalse(is_mounted(self.point(name)), "nothing is left behind")
        return said

    def ctl(self, *arguments):
        import json
        return json.loads(run(program("dartfsctl"), *arguments, "--json", "--cache-dir", self.cache,
                              env=self.environment()).stdout)

    def served(self):
        return sorted(os.path.basename(mount["mountpoint"])[3:]
                      for mount in self.ctl("status")["mounts"])

    def node_ends(self, pid, timeout=30):
        wait_until(lambda: self.has_ended(pid), timeout * SLOW, "the node ends")


class Together(MountsCase):
    def test_each_comes_and_goes_alone(self):
        self.mounted("one")
        pid = self.lock_pid()
        self.mounted("two", "-o", "ttl=5s,umask=022")
        self.mounted("hello")
        self.assertEqual(self.lock_pid(), pid, "one process")
        self.assertEqual(self.ctl("status")["pid"], pid)
        self.assertEqual(self.served(), ["hello", "one", "two"])
        facts = {m["mountpoint"]: m for m in self.ctl("status")["mounts"]}
        two = facts[self.point("two")]
        self.assertEqual(two["source"], self.server.url("/two/"))
        self.assertEqual(two["options"]["ttl"], "5s")
        self.assertEqual(facts[self.point("one")]["options"]["ttl"], "60s")
        self.assertEqual(os.stat(os.path.join(self.point("two"), "name")).st_mode & 0o777, 0o444)
        # The first one is as good as any.
        unmount(self.point("one"))
        wait_until(lambda: self.served() == ["hello", "two"], 10, "the node lets go of it")
        self.assertEqual(self.read("two"), "two\n")
        self.mounted("one")
        self.assertEqual(self.served(), ["hello", "one", "two"])
        for name in ("two", "hello", "one"):
            self.assertFalse(self.has_ended(pid))
            unmount(self.point(name))
        self.node_ends(pid)
        self.assertFalse(os.path.exists(os.path.join(self.cache, "control")))

    def test_one_cache(self):
        self.mounted("one")
        self.server.reset_stats()
        self.mounted("two", source=self.server.url("/two/"))
        before = self.ctl("status")["bytes"]["origin"]
        other = self.dir("at-again")
        done = run(program("dartfs"), self.server.url("/two/"), other, "--cache-dir", self.cache,
                   env=self.environment())
        self.assertEqual(done.returncode, 0)
        with open(os.path.join(other, "name")) as file:
            self.assertEqual(file.read(), "two\n")
        self.assertEqual(self.ctl("status")["bytes"]["origin"], before, "held already")

    def test_explain_finds_the_mount(self):
        self.mounted("one")
        self.mounted("two")
        for name in ("one", "two"):
            answer = self.ctl("explain", os.path.join(self.point(name), "name"))
            self.assertEqual(answer["url"], self.server.url(f"/{name}/name"))
            self.assertEqual(answer["mountpoint"], self.point(name))
        os.listdir(self.point("two"))
        listing = self.ctl("explain", self.server.url("/two/"))
        self.assertEqual(listing["listing"]["names"], 1)
        done = run(program("dartfsctl"), "explain", self.temp, "--cache-dir", self.cache,
                   env=self.environment(), check=False)
        self.assertEqual(done.returncode, 3)

    def test_sigterm_unmounts_all(self):
        for name in ("one", "two", "hello"):
            self.mounted(name)
        held = os.open(os.path.join(self.point("two"), "name"), os.O_RDONLY)
        try:
            pid = self.lock_pid()
            os.kill(pid, signal.SIGTERM)
            self.node_ends(pid)
        finally:
            try:
                os.close(held)
            except OSError:
                pass
        for name in ("one", "two", "hello"):
            self.assertFalse(is_mounted(self.point(name)), name)

    def test_logs_tell_which_mount(self):
        self.mounted("one", "--log-file", self.log)
        self.mounted("two")
        unmount(self.point("two"))
        wait_until(lambda: self.served() == ["one"], 10, "the node lets go of it")
        with open(self.log) as file:
            text = file.read()
        self.assertIn(f"{self.server.url('/two/')} mounted on {self.point('two')}", text)
        self.assertIn(f"{self.point('two')} was unmounted", text)

    def test_in_the_foreground(self):
        """A joined -f stays until its mount ends; SIGTERM ends that one alone."""
        self.mounted("one")
        for end in (lambda p: p.send_signal(signal.SIGTERM), lambda p: p.send_signal(signal.SIGINT),
                    lambda p: unmount(self.point("two"))):
            process = self.spawn(*self.command("two", "-f"), env=self.environment(),
                                 stderr=subprocess.PIPE)
            wait_until(lambda: is_mounted(self.point("two")), 20, "mounted")
            self.assertEqual(self.read("two"), "two\n")
            self.assertIsNone(process.poll())
            end(process)
            self.assertEqual(process.wait(timeout=20), 0, process.stderr.read())
            self.assertFalse(is_mounted(self.point("two")))
            self.assertEqual(self.read("one"), "one\n")
            wait_until(lambda: self.served() == ["one"], 10, "the node lets go of it")

    def test_in_the_foreground_when_the_node_dies(self):
        self.mounted("one")
        process = self.spawn(*self.command("two", "-f"), env=self.environment(),
                             stderr=subprocess.PIPE)
        wait_until(lambda: is_mounted(self.point("two")), 20, "mounted")
        os.kill(self.lock_pid(), signal.SIGKILL)
        self.assertEqual(process.wait(timeout=20), 32)
        self.assertIn(b"has ended", process.stderr.read())
        self.assertFalse(is_mounted(self.point("two")))

    def test_secrets_stay_secret(self):
        self.mounted("one", "--log-file", self.log, "--log-level", "debug")
        source = self.server.url("/two/").replace("http://", "http://user:topsecret@")
        self.mounted("two", source=source)
        with open(self.log) as file:
            shown = file.read() + str(self.ctl("status")) + run("mount").stdout.decode()
        self.assertNotIn("topsecret", shown)


class Refused(MountsCase):
    def test_node_options_that_differ(self):
        self.mounted("one", "--cache-size", "1GiB")
        self.mounted("two", "-o", "cache_size=1024MiB,connections=16")
        said = self.refused("hello", "--cache-size", "2GiB", says=["cache-size", "2GiB", "1GiB"])
        self.assertIn(self.cache, said)
        self.refused("hello", "-o", "ignore_query=x", says=["ignore-query x", "without"])
        self.refused("hello", "--pid-file", self.pid_file, says=["pid-file"])
        self.refused("hello", "--log-level", "debug", says=["log-level debug", "info"])
        self.assertFalse(os.path.exists(self.pid_file))
        self.assertEqual(self.served(), ["one", "two"])

    def test_the_same_line_twice(self):
        more = ["-o", f"cache_size=1GiB,log_file={self.log},pid_file={self.pid_file},ttl=5s"]
        self.mounted("one", *more)
        self.mounted("two", *more)
        with open(self.pid_file) as file:
            self.assertEqual(int(file.read()), self.lock_pid())

    def test_a_mountpoint_in_use(self):
        self.mounted("one")
        self.mounted("two")
        for source in ("/one/", "/hello/"):
            code, said = self.mount("two", source=self.server.url(source))
            self.assertEqual(code, 32)
            self.assertIn(self.point("two"), said)
        self.assertEqual(self.read("two"), "two\n")
        absent = os.path.join(self.temp, "absent")
        done = run(program("dartfs"), self.server.url(), absent, "--cache-dir", self.cache,
                   check=False, env=self.environment())
        self.assertEqual(done.returncode, 32)
        self.assertIn(b"absent", done.stderr)
        self.assertEqual(self.served(), ["one", "two"])

    def test_two_joins_at_one_mountpoint(self):
        self.mounted("one")
        codes = self.at_once([self.command("two")] * 6)
        self.assertEqual(sorted(codes), [0, 32, 32, 32, 32, 32])
        self.assertEqual(self.read("two"), "two\n")
        unmount(self.point("two"))
        self.assertEqual(self.served(), ["one"])

    def at_once(self, commands):
        processes = [self.spawn(*command, env=self.environment(), stderr=subprocess.DEVNULL)
                     for command in commands]
        return [process.wait(timeout=60) for process in processes]

    def test_another_mount_namespace(self):
        self.mounted("one")
        done = run("unshare", "--mount", *self.command("two"), env=self.environment(), check=False)
        self.assertEqual(done.returncode, 32)
        self.assertIn(b"mount namespace", done.stderr)

    def test_a_stopped_node_is_said_so(self):
        self.mounted("one")
        pid = self.lock_pid()
        os.kill(pid, signal.SIGSTOP)
        try:
            said = self.refused("two", says=[str(pid), "does not answer", self.cache])
            self.assertNotIn("index", said)
        finally:
            os.kill(pid, signal.SIGCONT)
        self.assertEqual(self.read("one"), "one\n")


class WrongTimes(MountsCase):
    def at_once(self, names):
        processes = [self.spawn(*self.command(name), env=self.environment(),
                                stderr=subprocess.PIPE) for name in names]
        codes = [process.wait(timeout=90) for process in processes]
        pid = self.lock_pid()
        if pid is not None and pid not in self.pids:
            self.pids.append(pid)
        self.assertEqual(codes, [0] * len(names),
                         b"".join(process.stderr.read() for process in processes))

    def test_first_mounts_at_the_same_time(self):
        """As systemd does with fstab: one becomes the node, the others join it."""
        for _ in range(4):
            self.at_once(["one", "two", "hello"])
            self.assertEqual(self.served(), ["hello", "one", "two"])
            for name in ("one", "two", "hello"):
                self.assertEqual(self.read(name), name + "\n")
            pid = self.lock_pid()
            for name in ("one", "two", "hello"):
                unmount(self.point(name))
            self.node_ends(pid)

    def test_a_mount_comes_as_the_last_one_goes(self):
        self.mounted("one")
        names = ["two", "one"]
        for turn in range(16):
            coming, going = names[turn % 2], names[(turn + 1) % 2]
            process = self.spawn(*self.command(coming), env=self.environment(),
                                 stderr=subprocess.PIPE)
            time.sleep(0.002 * turn)  # spreads the two over each other; any order is right
            unmount(self.point(going))
            self.assertEqual(process.wait(timeout=60), 0, process.stderr.read())
            self.assertEqual(self.read(coming), coming + "\n", f"turn {turn}")
            self.pids.append(self.lock_pid())
            self.assertEqual(self.served(), [coming])

    def test_a_mount_waits_for_a_node_that_starts(self):
        """The directory is locked, its socket not there yet."""
        os.makedirs(self.cache, mode=0o700)
        lock = os.open(os.path.join(self.cache, "lock"), os.O_RDWR | os.O_CREAT, 0o600)
        import fcntl
        fcntl.flock(lock, fcntl.LOCK_EX)
        process = self.spawn(*self.command("two"), env=self.environment(), stderr=subprocess.PIPE)
        with self.assertRaises(subprocess.TimeoutExpired):
            process.wait(timeout=1)
        self.assertFalse(is_mounted(self.point("two")))
        os.close(lock)
        self.assertEqual(process.wait(timeout=30), 0, process.stderr.read())
        self.pids.append(self.lock_pid())
        self.assertEqual(self.read("two"), "two\n")

    def test_a_join_that_is_killed_leaves_nothing(self):
        """Whenever it comes: the mount is whole, or not there."""
        self.mounted("one")
        whole = none = 0
        for turn in range(40):
            process = self.spawn(*self.command("two"), env=self.environment(),
                                 stderr=subprocess.DEVNULL, start_new_session=True)
            time.sleep(0.001 * turn)  # somewhere in it; any place is right
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait(timeout=20)
            if is_mounted(self.point("two")):
                self.assertEqual(self.read("two"), "two\n", f"turn {turn}")
                whole += 1
                unmount(self.point("two"))
            else:
                none += 1
            wait_until(lambda: self.served() == ["one"], 20, "the node lets go of it")
        self.assertGreater(none, 0, "none was killed in time")
        self.assertEqual(self.read("one"), "one\n")

    def test_a_dead_node_is_followed_by_another(self):
        self.mounted("one")
        self.mounted("two")
        os.kill(self.lock_pid(), signal.SIGKILL)
        self.mounted("two")
        code, said = self.mount("one")  # which joins, and has no log of its own
        self.assertEqual(code, 0)
        self.assertIn("detached a mount whose daemon has gone", said)
        self.assertEqual(self.read("one"), "one\n")
        self.assertEqual(self.served(), ["one", "two"])


class OtherUsers(AsNobody, MountsCase):
    """A user who is not root, with his own node, through fusermount3."""

    def setUp(self):
        super().setUp()
        for name in ("one", "two"):
            os.chown(self.point(name), self.NOBODY, self.NOBODY)
        self.cache = os.path.join(self.home, "cache")

    def mount_as_user(self, name, *more):
        done = self.as_user(*self.command(name, *more), check=False)
        self.pids += [pid for pid in [self.lock_pid()] if pid]
        return done

    def test_two_mounts_of_his_own(self):
        for name in ("one", "two"):
            done = self.mount_as_user(name)
            self.assertEqual(done.returncode, 0, done.stderr.decode())
        pid = self.lock_pid()
        for name in ("one", "two"):
            shown = self.as_user("cat", os.path.join(self.point(name), "name")).stdout
            self.assertEqual(shown.decode(), name + "\n")
        status = self.as_user(program("dartfsctl"), "status", "--cache-dir", self.cache).stdout
        self.assertIn(self.point("two").encode(), status)
        self.as_user("fusermount3", "-u", self.point("one"))
        shown = self.as_user("cat", os.path.join(self.point("two"), "name")).stdout
        self.assertEqual(shown, b"two\n")
        os.kill(pid, signal.SIGTERM)
        self.node_ends(pid)
        self.assertFalse(is_mounted(self.point("two")))

    def test_his_dead_mount_is_replaced(self):
        for name in ("one", "two"):
            self.assertEqual(self.mount_as_user(name).returncode, 0)
        os.kill(self.lock_pid(), signal.SIGKILL)
        for name in ("one", "two"):
            done = self.mount_as_user(name)
            self.assertEqual(done.returncode, 0, done.stderr.decode())
            shown = self.as_user("cat", os.path.join(self.point(name), "name")).stdout
            self.assertEqual(shown.decode(), name + "\n")

    def test_root_does_not_join_his_node(self):
        self.assertEqual(self.mount_as_user("one").returncode, 0)
        self.refused("two", says=["belongs to user"])

    def test_a_refusal_leaves_nothing(self):
        self.assertEqual(self.mount_as_user("one").returncode, 0)
        done = self.mount_as_user("two", "--cache-size", "1GiB")
        self.assertEqual(done.returncode, 32)
        self.assertIn(b"cache-size", done.stderr)
        self.assertFalse(is_mounted(self.point("two")))


class ByMount(MountProgram):
    """Two lines of fstab and a third mount by hand: one node, as mount(8) starts it."""

    def test_fstab(self):
        points = [self.dir("first"), self.dir("second"), self.dir("third")]
        options = (f"ro,nofail,_netdev,x-systemd.automount,allow_other,cache_dir={self.temp}/cache,"
                   f"pid_file={self.temp}/pid,cache_size=1GiB")
        with open(os.path.join(self.temp, "fstab"), "w") as file:
            for point in points[:2]:
                file.write(f"{self.server.url()} {point} fuse.dartfs {options} 0 0\n")
        self.check(self.in_namespace("""
        mount --bind "$TEMP/fstab" /etc/fstab
        mount "$TEMP/first" & first=$!; mount "$TEMP/second"; wait $first
        pid=$(cat $TEMP/pid)
        mount -t fuse.dartfs "$URL" "$TEMP/third" -o "cache_dir=$CACHE,ttl=5s"
        test "$(findmnt -n -o TARGET -t fuse.dartfs | grep -c "^$TEMP/\\|$TEMP")" = 3
        test "$(cat $CACHE/lock)" = "$pid"
        umount "$TEMP/first"; cat "$TEMP/second/hello"
        umount "$TEMP/third"; cat "$TEMP/second/hello"
        kill -0 "$pid"
        umount "$TEMP/second"
        """ + self.ENDED))


if __name__ == "__main__":
    main()
