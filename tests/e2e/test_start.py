"""How the program starts and ends: mount(8), fstab, signals, exit codes, what it says."""

import os
import resource
import signal

import trees
from harness import TOP, Case, exit_status, is_mounted, main, program, run


class StartCase(Case):
    def setUp(self):
        super().setUp()
        self.root = self.dir("tree")
        with open(os.path.join(self.root, "hello"), "w") as file:
            file.write("hello\n")
        trees.age(self.root)
        self.server = self.origin(self.root)

    def hello(self, mountpoint):
        with open(os.path.join(mountpoint, "hello")) as file:
            return file.read()


def close_quietly(fd):
    """Of a mount that has gone: close reports it, and closes all the same."""
    try:
        os.close(fd)
    except OSError:
        pass


class Starting(StartCase):
    def test_background_leaves_the_terminal(self):
        node = self.node(self.server.url(), start=False)
        # Pipes: their end comes only when the process in the background has let go of them.
        done = run(*node.command(), env=self.environment(), timeout=30)
        self.assertEqual((done.stdout, done.stderr), (b"", b""))
        node.pid = node._read_pid()
        self.assertEqual(self.hello(node.mountpoint), "hello\n", "usable at once")
        self.assertEqual(os.getsid(node.pid), node.pid, "a session of its own")
        self.assertEqual(os.readlink(f"/proc/{node.pid}/fd/0"), "/dev/null")

    def test_foreground_and_interrupt(self):
        node = self.node(self.server.url(), foreground=True)
        self.assertEqual(self.hello(node.mountpoint), "hello\n")
        node.stop(signal.SIGINT)

    def test_terminate_in_the_background(self):
        node = self.node(self.server.url())
        node.stop(signal.SIGTERM)

    def test_mounting_contacts_nobody(self):
        node = self.node("http://127.0.0.1:9/", start=False)  # discard: nobody listens
        node.start()
        self.assertTrue(is_mounted(node.mountpoint))
        self.server.reset_stats()
        other = self.node(self.server.url())
        self.assertEqual(self.server.requests(), 0)
        other.stop()
        node.stop()

    def test_as_many_open_files_as_the_system_grants(self):
        node = self.node(self.server.url(), start=False)
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        node.start()
        self.assertEqual(resource.prlimit(node.pid, resource.RLIMIT_NOFILE), (hard, hard))

    def test_a_busy_mount_is_left_behind_by_nobody(self):
        """SIGTERM with an open file: unmounted all the same, and the node ends."""
        node = self.node(self.server.url())
        held_open = os.open(node.path("hello"), os.O_RDONLY)
        try:
            self.assertEqual(os.pread(held_open, 2, 0), b"he")
            node.stop()
        finally:
            close_quietly(held_open)

    def test_a_dead_mount_is_replaced(self):
        node = self.node(self.server.url())
        self.assertEqual(self.hello(node.mountpoint), "hello\n")
        self.addCleanup(close_quietly, os.open(node.path("hello"), os.O_RDONLY))
        for _ in range(2):
            node.kill9()
            with self.assertRaises(OSError):
                os.listdir(node.mountpoint)
            node.start()
            self.assertEqual(self.hello(node.mountpoint), "hello\n")
        node.stop()
        self.assertFalse(is_mounted(node.mountpoint), "nothing below the new mount")

    def test_logs_and_lists_hide_secrets(self):
        source = self.server.url("/").replace("http://", "http://user:topsecret@")
        node = self.node(source)
        self.assertEqual(self.hello(node.mountpoint), "hello\n")
        shown = node.log_text() + run("mount").stdout.decode() + str(node.status())
        with open(f"/proc/{node.pid}/cmdline") as file:
            shown += file.read()
        self.assertNotIn("topsecret", shown)


class Refusals(StartCase):
    def fails(self, arguments, code, *words):
        done = run(program("dartfs"), *arguments, check=False, env=self.environment(), timeout=30)
        said = done.stderr.decode(errors="replace")
        self.assertEqual(done.returncode, code, said)
        for word in words:
            self.assertIn(word, said)
        self.assertNotIn("terminate called", said)

    def test_wrong_usage(self):
        point = self.dir("point")
        url = self.server.url()
        self.fails([], 1)
        self.fails([url], 1)
        self.fails([url, point, "extra"], 1)
        self.fails([url, point, "--cache-siez", "1GiB"], 1, "cache-size")
        self.fails([url, point, "-o", "cache_siez=1GiB"], 1, "cache_size")
        self.fails([url, point, "-o", "cache_size=much"], 1, "10GiB")
        self.fails(["ftp://127.0.0.1/", point], 1)
        self.fails(["/etc", point], 1)

    def test_wrong_places(self):
        url = self.server.url()
        cache = ["--cache-dir", os.path.join(self.temp, "cache")]
        self.fails([url, os.path.join(self.temp, "absent"), *cache], 32, "absent")
        self.fails([url, os.path.join(self.root, "hello"), *cache], 32, "hello")
        self.fails([url, self.dir("point"), "--cache-dir", "/proc/nowhere"], 32, "/proc/nowhere")

    def test_check_config_looks_at_what_is_named(self):
        point, absent = self.dir("point"), os.path.join(self.temp, "absent")
        cache = os.path.join(self.temp, "cache")
        right = [self.server.url(), point, "--check-config", "--cache-dir", cache]
        self.assertEqual(run(program("dartfs"), *right).returncode, 0)
        self.fails([self.server.url() + "?key=1", *right[1:]], 1, "query")
        self.fails([right[0], absent, *right[2:]], 1, "absent")
        self.fails([*right, "--ca-file", absent], 1, "absent")
        self.fails([*right, "--pid-file", os.path.join(absent, "pid")], 1, "absent")
        self.fails([*right, "--log-file", os.path.join(absent, "log")], 1, "absent")
        self.fails([*right, "--config", self.temp], 1, "directory")
        self.assertFalse(os.path.exists(cache) or os.path.exists(absent), "nothing is made")

    def test_a_log_file_makes_no_directories(self):
        absent = os.path.join(self.temp, "absent")
        self.fails([self.server.url(), self.dir("point"), "--log-file", os.path.join(absent, "log"),
                    "--cache-dir", os.path.join(self.temp, "cache")], 1, "absent")
        self.assertFalse(os.path.exists(absent))

    def test_the_pid_file_of_another_node_is_left_alone(self):
        node = self.node(self.server.url())
        other = self.dir("other")
        self.fails([self.server.url(), other, "--cache-dir", os.path.join(self.temp, "cache"),
                    "--pid-file", node.pid_file], 32, node.pid_file, str(node.pid))
        self.assertEqual(node._read_pid(), node.pid)
        self.assertFalse(is_mounted(other))

    def test_commands_that_are_none(self):
        for arguments, word in (((), b"no command"), (("foo",), b"unknown command 'foo'"),
                                (("status", "--foo"), b"unknown option '--foo'")):
            done = run(program("dartfsctl"), *arguments, check=False, env=self.environment())
            self.assertEqual(done.returncode, 1)
            self.assertIn(word, done.stderr)

    def test_a_locked_directory_is_said_so(self):
        """A node for several mounts wants the directory for itself."""
        node = self.node(self.server.url())
        self.fails(["--no-mount", "--cache-dir", node.cache], 32, str(node.pid), node.cache)
        self.assertEqual(self.hello(node.mountpoint), "hello\n")

    def test_a_live_mount_is_not_covered(self):
        node = self.node(self.server.url())
        code, said = self.node(self.server.url(), start=False,
                               mountpoint=node.mountpoint).try_start()
        self.assertEqual(code, 32, said)
        self.assertIn(node.mountpoint, said)
        self.assertEqual(self.hello(node.mountpoint), "hello\n")

    def test_a_cache_of_another_format_is_refused(self):
        node = self.node(self.server.url())
        self.hello(node.mountpoint)
        node.stop()
        with open(os.path.join(node.cache, "version"), "w") as file:
            file.write("dartfs cache 999\n")
        code, said = node.try_start()
        self.assertEqual(code, 32, said)
        self.assertIn(node.cache, said)

    def test_a_cache_on_a_mount_of_ours_is_refused(self):
        node = self.node(self.server.url())
        code, said = self.node(self.server.url(), start=False,
                               cache=os.path.join(node.mountpoint, "cache")).try_start()
        self.assertEqual(code, 32, said)

    def test_help_and_version(self):
        for name in ("dartfs", "dartfsctl"):
            self.assertIn(b"sage", run(program(name), "--help").stdout)
            with open(os.path.join(TOP, "CMakeLists.txt")) as file:
                version = file.read().split("VERSION ")[2].split()[0]
            self.assertIn(version.encode(), run(program(name), "--version").stdout)

    def test_ctl_without_a_node(self):
        done = run(program("dartfsctl"), "status", "--cache-dir", self.dir("nobody"), check=False,
                   env=self.environment())
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(b"nobody", done.stderr)


class MountProgram(StartCase):
    """mount(8) in a mount namespace of its own, in which the binary is installed."""

    def in_namespace(self, script, **variables):
        installed = self.dir("bin")
        for name in ("dartfs", "dartfsctl"):
            link = os.path.join(installed, name)
            if not os.path.lexists(link):
                os.symlink(program(name), link)
        env = {**self.environment(), "BIN": installed, "URL": self.server.url(),
               "POINT": self.dir("point"), "CACHE": os.path.join(self.temp, "cache"),
               "TEMP": self.temp, **variables}
        self.addCleanup(self.kill_leftover)
        prelude = "set -eu; mount --bind \"$BIN\" /usr/local/bin\n"
        return run("unshare", "--mount", "--propagation", "private", "bash", "-c",
                   prelude + script, env=env, timeout=60, check=False)

    def kill_leftover(self):
        try:
            with open(os.path.join(self.temp, "pid")) as file:
                pid = int(file.read())
            if os.readlink(f"/proc/{pid}/exe") == os.path.realpath(program("dartfs")):
                os.kill(pid, signal.SIGKILL)
        except OSError:
            return  # it has ended, as it should
        exit_status(pid)

    def check(self, done):
        self.assertEqual(done.returncode, 0, done.stderr.decode(errors="replace"))
        self.assertIn(b"hello\n", done.stdout)
        self.assertIn(b"ended", done.stdout)

    ENDED = """
    for i in $(seq 300); do kill -0 "$pid" 2>/dev/null || { echo ended; exit 0; }
      grep -q 'State:.Z' /proc/$pid/status 2>/dev/null && { echo ended; exit 0; }; sleep 0.1; done
    echo "still there"; kill -9 "$pid"; exit 1
    """

    def test_mount_type(self):
        self.check(self.in_namespace("""
        mount -t fuse.dartfs "$URL" "$POINT" -o "ro,cache_dir=$CACHE,pid_file=$TEMP/pid,noatime"
        pid=$(cat $TEMP/pid)
        cat "$POINT/hello"
        findmnt -n -o FSTYPE,OPTIONS "$POINT"
        umount "$POINT"
        """ + self.ENDED))

    def test_fstab(self):
        with open(os.path.join(self.temp, "fstab"), "w") as file:
            file.write(f"{self.server.url()} {self.dir('point')} fuse.dartfs "
                       f"ro,nofail,_netdev,x-systemd.automount,allow_other,"
                       f"cache_dir={self.temp}/cache,pid_file={self.temp}/pid,"
                       f"cache_size=1GiB 0 0\n")
        self.check(self.in_namespace("""
        mount --bind "$TEMP/fstab" /etc/fstab
        mount "$POINT"
        pid=$(cat $TEMP/pid)
        cat "$POINT/hello"
        umount "$POINT"
        """ + self.ENDED))

    def test_system_places_are_refused(self):
        """Where a mistake can take nothing from the machine."""
        done = self.in_namespace("""
        for place in / /proc /sys /dev /proc/self; do
          timeout 20 dartfs "$URL" $place --cache-dir "$CACHE" && exit 3
        done
        grep -qF "$URL" /proc/self/mountinfo || echo none
        """)
        self.assertEqual(done.stdout, b"none\n", done.stderr.decode(errors="replace"))
        self.assertEqual(done.stderr.count(b"the mountpoint may not be"), 5)

    def test_an_error_reaches_the_caller_of_mount(self):
        done = self.in_namespace("""
        mount -t fuse.dartfs "$URL" "$POINT" -o "cache_dir=$CACHE,cache_size=much"
        """)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(b"cache", done.stderr)


if __name__ == "__main__":
    main()
