"""A dartfs on a mountpoint: started as a person would, stopped, killed, asked."""

import json
import os
import signal
import subprocess
import sys

from harness import (SANITIZER, SLOW, default_signals, exit_status, is_mounted, program, run,
                     unmount, wait_until)


class Node:
    """One cache directory and one mountpoint. `options` are those of -o: ttl="1s", immutable=True.

    start() and kill9() may follow one another as often as one likes: the mountpoint and the cache
    stay the same.
    """

    _count = 0

    def __init__(self, case, source, cache=None, mountpoint=None, foreground=False, **options):
        Node._count += 1
        self.case = case
        self.source = source
        self.name = f"node{Node._count}"
        self.cache = cache or os.path.join(case.temp, self.name + "-cache")
        self.mountpoint = mountpoint or case.dir(self.name)
        self.foreground = foreground
        self.log_file = os.path.join(case.temp, self.name + ".log")
        self.pid_file = os.path.join(case.temp, self.name + ".pid")
        self.options = {"log_level": "debug", "listen": "none"}
        if "thread" in SANITIZER:
            self.options["disk_io"] = "pool"
        if "DARTFS_E2E_DISK_IO" in os.environ:
            self.options["disk_io"] = os.environ["DARTFS_E2E_DISK_IO"]
        self.options.update(options)
        self.pid = None
        self.ended_with = None

    def path(self, *names):
        """Below the mountpoint; bytes in, bytes out."""
        if names and isinstance(names[0], bytes):
            return os.path.join(os.fsencode(self.mountpoint), *names)
        return os.path.join(self.mountpoint, *names)

    def command(self):
        options = {"cache_dir": self.cache, "log_file": self.log_file, "pid_file": self.pid_file,
                   **self.options}
        words = [name if value is True else f"{name}={value}" for name, value in options.items()
                 if value is not False]
        command = [program("dartfs"), self.source, self.mountpoint, "-o", ",".join(words)]
        return command + (["-f"] if self.foreground else [])

    def start(self):
        """Mounted on return."""
        self._forget_pid_file()
        if self.foreground:
            process = subprocess.Popen(self.command(), env=self.case.environment(),
                                       preexec_fn=default_signals, stdout=subprocess.DEVNULL)
            self.pid = process.pid
            process.returncode = 0  # reaped by exit_status, not by subprocess
            wait_until(lambda: os.path.exists(self.pid_file) or exit_status(self.pid) is not None,
                       30 * SLOW, "the mount is usable")
            return self
        done = run(*self.command(), check=False, timeout=60, env=self.case.environment(),
                   preexec_fn=default_signals)
        self.pid = self._read_pid()
        if done.returncode != 0:
            raise AssertionError(f"dartfs ended with {done.returncode}: "
                                 f"{done.stderr.decode(errors='replace')}")
        if self.pid is None:
            raise AssertionError("mounted, but the PID file is not there")
        return self

    def try_start(self):
        """(exit code, what it said); for a start that is meant to fail."""
        self._forget_pid_file()
        done = run(*self.command(), check=False, timeout=60, env=self.case.environment())
        self.pid = self._read_pid()
        return done.returncode, done.stderr.decode(errors="replace")

    def _forget_pid_file(self):
        if os.path.exists(self.pid_file):
            os.unlink(self.pid_file)

    def _read_pid(self):
        try:
            with open(self.pid_file) as file:
                return int(file.read())
        except (OSError, ValueError):
            return None

    def alive(self):
        if self.pid is None:
            return False
        status = exit_status(self.pid)
        if status is not None:
            self.pid = None
            self.ended_with = status
        return status is None

    def wait_ended(self, timeout=30):
        """The exit code (negative: signal)."""
        wait_until(lambda: not self.alive(), timeout * SLOW, "the node ends")
        return self.ended_with

    def kill9(self):
        """As a crash: the mount stays behind, dead."""
        pid = self.pid
        os.kill(pid, signal.SIGKILL)
        return self.wait_ended()

    def stop(self, sig=signal.SIGTERM):
        """In order; an AssertionError unless it ends with 0 and without its mount."""
        os.kill(self.pid, sig)
        code = self.wait_ended()
        if code != 0:
            self.show_log()
            raise AssertionError(f"the node ended with {code}")
        if is_mounted(self.mountpoint):
            raise AssertionError("the node has ended and its mount has not")

    def restart(self):
        self.stop()
        return self.start()

    def kill_if_alive(self):
        """From any thread: does not reap."""
        if self.pid is not None:
            try:
                os.kill(self.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def clean_up(self):
        problem = None
        try:
            if self.alive():
                os.kill(self.pid, signal.SIGTERM)
                code = self.wait_ended()
                if code != 0:
                    problem = f"the node ended with {code} when the test was over"
        except AssertionError as error:
            problem = str(error)
            self.kill_if_alive()
            wait_until(lambda: not self.alive(), 30, "the killed node ends")
        unmount(self.mountpoint, lazy=True)
        if problem:
            self.show_log()
            raise AssertionError(problem)

    def log_text(self):
        try:
            with open(self.log_file, errors="replace") as file:
                return file.read()
        except OSError:
            return ""

    def show_log(self, lines=60):
        tail = self.log_text().splitlines()[-lines:]
        sys.stderr.write(f"--- the end of {self.log_file}\n" + "\n".join(tail) + "\n---\n")

    # What it says of itself.

    def ctl(self, *arguments):
        done = run(program("dartfsctl"), *arguments, "--json", "--cache-dir", self.cache,
                   env=self.case.environment(), check=False)
        if done.returncode != 0:
            state = "runs" if self.alive() else f"has ended with {self.ended_with}"
            self.show_log()
            raise AssertionError(f"dartfsctl {arguments}: {done.stderr.decode(errors='replace')}"
                                 f"the node {state}")
        return json.loads(done.stdout)

    def status(self):
        return self.ctl("status")

    def explain(self, what):
        """Of a path below the mountpoint, or of a URL."""
        return self.ctl("explain", what if "://" in what else self.path(what))

    def held(self, what):
        """The set of block indices that the cache holds of an object."""
        answer = self.explain(what)
        blocks = answer.get("object", {}).get("blocks", {"ranges": []})
        return {i for first, last in blocks["ranges"] for i in range(first, last + 1)}

    def settle(self):
        """Until everything present is durable; the status then."""
        def settled():
            status = self.status()
            idle = status["cache"]["pending_blocks"] == 0 and not status["flights"]
            return status if idle else None
        return wait_until(settled, 30 * SLOW, "the cache is durable")

    def open_files(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def threads(self):
        """The program's own: the kernel's workers for io_uring come and go."""
        count = 0
        for task in os.listdir(f"/proc/{self.pid}/task"):
            try:
                with open(f"/proc/{self.pid}/task/{task}/comm") as file:
                    count += not file.read().startswith("iou-")
            except OSError:
                pass  # it has ended
        return count
