"""The comparisons of mount_bench: each a class with one_round, end, rows and `about`."""

import json
import os
import shutil
import subprocess
import sys
import threading
import time

from series import Series

BLOCK = 4 << 20


class Side:
    about = ""

    def __init__(self, case, root, arguments):
        self.case, self.root = case, root
        self.original = os.path.join(root, "object")
        self.size = os.path.getsize(self.original)

    def end(self):
        pass

    def make_node(self, source, **options):
        return self.case.node(source, start=False, log_level="info", **options)

    def sync(self):
        subprocess.run(["sync", "-f", self.case.temp], check=True)

    @staticmethod
    def read(path):
        return ["dd", f"if={path}", "of=/dev/null", "bs=1M"]

    @staticmethod
    def stop(node):
        if node.alive():
            node.stop()

    def fresh(self, node):
        """Started with an empty cache."""
        self.stop(node)
        shutil.rmtree(node.cache, ignore_errors=True)
        node.start()

    def until_stored(self, node):
        """Seconds until every block of the object is present."""
        began = time.monotonic()
        while True:
            blocks = node.explain("object")["object"]["blocks"]
            waited = time.monotonic() - began
            if blocks["held"] == blocks["total"]:
                return waited
            if waited > 60:
                sys.exit(f"not every block is present: {blocks['held']} of {blocks['total']}")
            time.sleep(0.002)


class Cold(Side):
    about = ("cold: the server's file is in the page cache, the copy's and the cache's pages are "
             "new, nothing is synced in the timed part; each turn begins with the pages that the "
             "one before has freed; dd bs=1M")

    def __init__(self, case, root, arguments):
        super().__init__(case, root, arguments)
        self.server = case.nginx(root) if arguments.server == "nginx" else case.origin(root)
        self.node = self.make_node(self.server.url())
        self.copy = os.path.join(case.temp, "copy")
        self.curl = Series("curl -o FILE")
        self.null = Series("curl -o /dev/null")
        self.cold = Series("mount, cold")
        self.stored = Series("mount, cold, until every block is stored")
        self.rclone = Series("rclone mount, cold") if shutil.which("rclone") else None

    def one_round(self, number):
        turns = [self.plain_curl, self.curl_to_null, self.mount]
        if self.rclone is not None:
            turns.append(self.rclone_mount)
        for turn in turns if number % 2 == 0 else reversed(turns):
            self.sync()
            turn()

    def plain_curl(self):
        self.curl.measure(["curl", "-sf", "-o", self.copy, self.server.url("/object")], self.size)
        os.unlink(self.copy)

    def curl_to_null(self):
        self.null.measure(["curl", "-sf", "-o", "/dev/null", self.server.url("/object")], self.size)

    def mount(self):
        self.fresh(self.node)
        seconds = self.cold.measure(self.read(self.node.path("object")), self.size, self.node)
        waited = self.until_stored(self.node)
        self.stored.rates.append(self.size / (seconds + waited))
        self.stored.cpu.append(self.cold.cpu[-1])
        self.stop(self.node)

    def rclone_mount(self):
        point = self.case.dir("rclone")
        process = self.case.spawn("rclone", "mount", "--read-only", "--vfs-cache-mode", "full",
                                  "--cache-dir", self.case.dir("rclone-cache"), "--http-url",
                                  self.server.url(), ":http:", point)
        while not os.path.ismount(point):
            time.sleep(0.02)
        self.rclone.measure(self.read(os.path.join(point, "object")), self.size)
        subprocess.run(["umount", point], check=True)
        process.wait()
        shutil.rmtree(self.case.dir("rclone-cache"), ignore_errors=True)

    def rows(self):
        rows = [(self.curl, None), (self.null, self.curl), (self.cold, self.curl),
                (self.stored, self.curl)]
        return rows + ([(self.rclone, self.curl)] if self.rclone else [])


class Warm(Side):
    """A complete object: the bare cache file, the mount without passthrough, and with it."""

    about = ("warm: the backing file is in the page cache; without passthrough each round has a "
             "fresh mount, whose own pages are new; dd bs=1M, fio psync 4 KiB for 2 s")

    def __init__(self, case, root, arguments):
        super().__init__(case, root, arguments)
        self.server = case.nginx(root)
        self.bare = Series("bare cache file")
        self.off = Series("mount, passthrough=off")
        self.on = Series("mount, passthrough")
        kilo = {"unit": "kIOPS", "scale": 1e3}
        self.bare_random = Series("bare cache file, random 4 KiB", **kilo)
        self.off_random = Series("mount, passthrough=off, random 4 KiB", **kilo)
        self.on_random = Series("mount, passthrough, random 4 KiB", **kilo)
        cache = os.path.join(case.temp, "warm-cache")
        self.nodes = {state: self.make_node(self.server.url(), cache=cache, passthrough=state)
                      for state in ("off", "auto")}
        self.prepare()

    def prepare(self):
        node = self.nodes["off"]
        node.start()
        subprocess.run(self.read(node.path("object")), check=True, stderr=subprocess.DEVNULL)
        self.until_stored(node)
        node.settle()
        self.stop(node)
        import damage
        self.backing = max(damage.object_files(node.cache), key=os.path.getsize)
        subprocess.run(["cmp", self.backing, self.original], check=True)
        for _ in range(2):
            subprocess.run(self.read(self.backing), check=True, stderr=subprocess.DEVNULL)

    def one_round(self, number):
        turns = [self.bare_file, self.without, self.passthrough]
        for turn in turns if number % 2 == 0 else reversed(turns):
            turn()

    def bare_file(self):
        self.bare.measure(self.read(self.backing), self.size)
        self.random(self.bare_random, self.backing)

    def without(self):
        node = self.nodes["off"]
        node.start()
        os.stat(node.path("object"))
        self.off.measure(self.read(node.path("object")), self.size, node)
        self.random(self.off_random, node.path("object"))
        self.stop(node)

    def passthrough(self):
        node = self.nodes["auto"]
        node.start()
        if self.await_passthrough(node):
            self.on.measure(self.read(node.path("object")), self.size, node)
            self.random(self.on_random, node.path("object"))
        self.stop(node)

    @staticmethod
    def await_passthrough(node):
        """Opens the file until the kernel reads it by itself; False where it never will."""
        def state():
            return node.status()["mounts"][0]["passthrough"]
        if state()["state"] != "on":
            print(f"\nno passthrough here: {state()['state']}")
            return False
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            with open(node.path("object"), "rb"):
                if state()["files"] > 0:
                    return True
            time.sleep(0.05)
        sys.exit("the object's check does not end, or its file is not lent")

    def random(self, series, path):
        command = ["fio", "--name=r", f"--filename={path}", "--rw=randread", "--bs=4k",

                   "--readonly", "--ioengine=psync", "--runtime=2", "--time_based",
                   "--output-format=json",
                   f"--size={self.size}", "--invalidate=0", "--allow_file_create=0"]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
        job = json.loads(done.stdout)["jobs"][0]
        series.rates.append(job["read"]["iops"])
        cpu = (job["usr_cpu"] + job["sys_cpu"]) / 100 * job["read"]["runtime"] / 1e3
        series.cpu.append(cpu / (job["read"]["io_bytes"] / 1e9))

    def rows(self):
        rows = [(self.bare, None), (self.off, self.bare)]
        rows += [(self.on, self.bare)] if self.on.rates else []
        rows += [(self.bare_random, None), (self.off_random, self.bare_random)]
        return rows + ([(self.on_random, self.bare_random)] if self.on_random.rates else [])


class Slow(Side):
    about = "behind 20 ms and 50 MB/s a connection, cold; dd bs=1M"

    def __init__(self, case, root, arguments):
        super().__init__(case, root, arguments)
        self.server = case.origin(root, delay_ms=20, rate="50MB")
        self.node = self.make_node(self.server.url())
        self.curl = Series("one curl -o /dev/null")
        self.mount = Series("mount, cold")

    def one_round(self, number):
        turns = [self.one_curl, self.through_the_mount]
        for turn in turns if number % 2 == 0 else reversed(turns):
            turn()

    # A quarter of the object: its rate does not depend on more.
    def one_curl(self):
        part = self.size // 4
        self.curl.measure(["curl", "-sf", "-o", "/dev/null", "-r", f"0-{part - 1}",
                           self.server.url("/object")], part)

    def through_the_mount(self):
        self.fresh(self.node)
        self.mount.measure(self.read(self.node.path("object")), self.size, self.node)
        self.stop(self.node)

    def rows(self):
        return [(self.curl, None), (self.mount, self.curl)]


class Threads(Side):
    """Readers of disjoint parts of one cold file, each with its own descriptor: 128 KiB out of each
    block of its part, a stride that no read-ahead helps."""

    about = ("behind 20 ms, cold: threads on disjoint parts of one file, 128 KiB of every second "
             "block")
    threads = 8
    blocks = 12  # a thread
    piece = 128 << 10

    def __init__(self, case, root, arguments):
        super().__init__(case, root, arguments)
        self.blocks = min(self.blocks, self.size // BLOCK // 2 // self.threads)
        self.server = case.origin(root, delay_ms=20)
        self.node = self.make_node(self.server.url(), fill="off")
        kind = {"unit": "MB/s", "scale": 1e6}
        self.one = Series("one thread", **kind)
        self.all = Series(f"{self.threads} threads", **kind)

    def part(self, number):
        fd = os.open(self.node.path("object"), os.O_RDONLY)
        first = number * self.blocks * 2
        for i in range(self.blocks):
            got = os.pread(fd, self.piece, (first + 2 * i) * BLOCK)
            assert len(got) == self.piece
        os.close(fd)

    def run(self, series, threads):
        self.fresh(self.node)
        os.stat(self.node.path("object"))

        def work():
            crew = [threading.Thread(target=self.part, args=(n,)) for n in range(threads)]
            for each in crew:
                each.start()
            for each in crew:
                each.join()
        series.measure(work, threads * self.blocks * self.piece, self.node)
        self.stop(self.node)

    def one_round(self, number):
        for threads in (1, self.threads) if number % 2 == 0 else (self.threads, 1):
            self.run(self.one if threads == 1 else self.all, threads)

    def rows(self):
        return [(self.one, None), (self.all, self.one)]
