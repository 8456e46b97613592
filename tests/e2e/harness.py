"""What every end-to-end test stands on: the environment, deadlines, temporary directories, loop
devices, and the guarantee that nothing started here survives its test.

A test class derives from Case. Servers and nodes come from Case.origin, Case.nginx and Case.node;
they are ended after the test, whatever happened in it.
"""

import ctypes
import faulthandler
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.abspath(os.environ.get("DARTFS_BUILD_DIR", os.path.join(TOP, "build", "release")))
SANITIZER = os.environ.get("DARTFS_SANITIZE", "")
SMALL = bool(SANITIZER)  # the same tests on less data
SLOW = 4 if SANITIZER else 1  # factor on deadlines that are not what a test is about
MIB = 1 << 20
KIB = 1 << 10
BLOCK = 4 * MIB
GRANULE = 256 * KIB


def sized(full, small):
    """A size or count: `full`, or `small` under a sanitizer."""
    return small if SMALL else full


def program(name):
    return os.path.join(BUILD, name)


def require_environment():
    """Ends the run when these tests can't mean anything here."""
    missing = []
    if os.geteuid() != 0:
        missing.append("they need root (mounts, loop devices)")
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        missing.append("/dev/fuse can't be opened")
    for name in ("dartfs", "dartfsctl", "test-origin"):
        if not os.access(program(name), os.X_OK):
            missing.append(f"{program(name)} is not built (DARTFS_BUILD_DIR says where to look)")
    if missing:
        sys.exit("end-to-end tests can't run: " + "; ".join(missing))


def become_reaper():
    """Orphans of our children (a node in the background) become our children: their exit status
    can be had, and they are no zombies of somebody else."""
    pr_set_child_subreaper = 36
    ctypes.CDLL(None, use_errno=True).prctl(pr_set_child_subreaper, 1, 0, 0, 0)


def wait_until(condition, timeout, what, step=0.02):
    """The first true value of condition(); AssertionError after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout:g} s: {what}")
        time.sleep(step)


def run(*command, timeout=120, check=True, **more):
    """A command to its end; its output as bytes. On failure the message has what it said."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          stdin=subprocess.DEVNULL, timeout=timeout * SLOW, check=False, **more)
    if check and done.returncode != 0:
        raise AssertionError(f"{command} ended with {done.returncode}:\n"
                             f"{done.stdout.decode(errors='replace')[-2000:]}\n"
                             f"{done.stderr.decode(errors='replace')[-2000:]}")
    return done


def default_signals():
    """For preexec_fn: ^C ends the child, as at a terminal, whatever we inherited."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)


def exit_status(pid):
    """The exit code of a child (negative: signal) once it has ended, else None."""
    try:
        done, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return None if os.path.exists(f"/proc/{pid}") else 0
    return os.waitstatus_to_exitcode(status) if done else None


def _mount_table():
    table = []
    with open("/proc/self/mountinfo", "rb") as file:
        for line in file:
            fields = line.split(b" ")
            path = fields[4].decode("unicode_escape").encode("latin-1")
            kind = fields[fields.index(b"-") + 1]
            table.append((path, kind))
    return table


def is_mounted(path):
    path = os.fsencode(path)
    return any(mounted == path for mounted, _ in _mount_table())


def unmount(path, lazy=False):
    """Everything that is mounted on `path`, layer by layer."""
    for _ in range(8):
        if not is_mounted(path):
            return
        command = ["umount", "-l", path] if lazy else ["umount", path]
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60,
                       check=False)
        if is_mounted(path):
            lazy = True
    raise AssertionError(f"{path} can't be unmounted")


class Terminated(AssertionError):
    """SIGTERM ends the test that runs, with its cleanup, and all that would follow."""

    happened = False


def _terminate(*_):
    Terminated.happened = True
    raise Terminated("SIGTERM")


class Case(unittest.TestCase):
    """One directory, one set of processes, one deadline per test."""

    limit = 150  # seconds; then all nodes of the test are killed, which ends whatever hangs on them

    @classmethod
    def setUpClass(cls):
        require_environment()
        become_reaper()
        faulthandler.enable()
        signal.signal(signal.SIGTERM, _terminate)

    def setUp(self):
        if Terminated.happened:
            self.fail("not run: SIGTERM came")
        self.temp = tempfile.mkdtemp(prefix="dartfs-e2e-")
        self.nodes = []
        self._processes = []
        self.timed_out = False
        self._watchdog = threading.Timer(self.limit * SLOW, self._expire)
        self._watchdog.daemon = True
        self._watchdog.start()
        self.addCleanup(shutil.rmtree, self.temp, ignore_errors=True)
        self.addCleanup(self._check_sanitizer)
        self.addCleanup(self._end_watchdog)

    def _expire(self):
        self.timed_out = True
        sys.stderr.write(f"\n{self.id()}: still running after {self.limit * SLOW} s\n")
        faulthandler.dump_traceback()
        for node in self.nodes:
            node.show_log()
            node.kill_if_alive()

    def _end_watchdog(self):
        self._watchdog.cancel()
        if self.timed_out:
            self.fail(f"the test did not end within {self.limit * SLOW} s")

    def sanitizer_prefix(self):
        return os.path.join(self.temp, "sanitizer")

    def _check_sanitizer(self):
        for name in sorted(os.listdir(self.temp)):
            if name.startswith("sanitizer."):
                with open(os.path.join(self.temp, name), errors="replace") as file:
                    self.fail("a sanitizer found:\n" + file.read()[:20000])

    def environment(self):
        """For programs of the build."""
        env = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
        log = f"log_path={self.sanitizer_prefix()}"
        env["ASAN_OPTIONS"] = f"{log}:abort_on_error=0:detect_stack_use_after_return=0"
        env["UBSAN_OPTIONS"] = f"{log}:print_stacktrace=1"
        env["TSAN_OPTIONS"] = f"{log}:history_size=4:second_deadlock_stack=1"
        return env

    def dir(self, name):
        path = os.path.join(self.temp, name)
        os.makedirs(path, exist_ok=True)
        return path

    def origin(self, root=None, **options):
        from servers import Origin
        origin = Origin(self, root, **options)
        self.addCleanup(origin.stop)
        return origin

    def nginx(self, root):
        from servers import Nginx
        server = Nginx(self, root)
        self.addCleanup(server.stop)
        return server

    def node(self, source, start=True, **more):
        from node import Node
        node = Node(self, source, **more)
        self.nodes.append(node)
        self.addCleanup(node.clean_up)
        if start:
            node.start()
        return node

    def http_node(self, start=True, **options):
        from http_node import HttpNode
        node = HttpNode(self, **options)
        self.nodes.append(node)
        self.addCleanup(node.clean_up)
        if start:
            node.start()
        return node

    def spawn(self, *command, **more):
        """A helper process that is gone after the test."""
        process = subprocess.Popen(command, preexec_fn=default_signals, **more)
        if not self._processes:
            self.addCleanup(self._end_processes)
        self._processes.append(process)
        return process

    def _end_processes(self):
        """All are killed before one is waited for: some may wait for one another."""
        for process in self._processes:
            if process.poll() is None:
                process.kill()
        for process in self._processes:
            process.wait(timeout=60)
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    stream.close()

    def loop_device(self, image, direct_io=False):
        """A read-only loop device on `image`."""
        command = ["losetup", "--find", "--show", "--read-only"]
        if direct_io:
            command.append("--direct-io=on")
        device = wait_until(lambda: _try_losetup(command + [image]), 30, f"losetup {image}", 0.2)
        self.addCleanup(_detach, device)
        return device

    def loop_mount(self, image, kind, direct_io=False):
        """The mountpoint of an image; unmounted after the test (or by unmount_loop)."""
        device = self.loop_device(image, direct_io)
        point = tempfile.mkdtemp(prefix="loop-", dir=self.temp)
        options = "ro,noload" if kind == "ext4" else "ro"
        run("mount", "-t", kind, "-o", options, device, point)
        self.addCleanup(unmount, point)
        return point, device

    def unmount_loop(self, loop):
        point, device = loop
        unmount(point)
        _detach(device)


def _try_losetup(command):
    done = run(*command, check=False)
    return done.stdout.decode().strip() if done.returncode == 0 else None


def _detach(device):
    subprocess.run(["losetup", "-d", device], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   timeout=60, check=False)


def main():
    """For `python3 test_x.py [-v] [Class.test]`."""
    require_environment()
    unittest.main(module="__main__", verbosity=2)
