"""The comparisons of http_bench: each a class with one_round, end, rows and `about`."""

import os
import shutil
import socket
import subprocess
import time

from harness import wait_until
from http_node import HttpNode
from http_series import ServerSeries
from servers import NGINX_HEAD, Origin, Server

SERVER_CORE, LOAD_CORE = "0", "1"
BLOCK = 4 << 20

# wrk: ranges of one length at offsets that are the same in every run.
RANGES_LUA = """
local requests, at = {{}}, 0
function init(args)
  math.randomseed(20)
  for i = 1, 4096 do
    local first = math.random(0, {size} - {length})
    requests[i] = wrk.format("GET", nil,
      {{["Range"] = string.format("bytes=%d-%d", first, first + {length} - 1)}})
  end
end
function request()
  at = at % #requests + 1
  return requests[at]
end
function done(summary, latency, all)
  local e = summary.errors
  print(string.format("@ %d %d %d", summary.requests, summary.duration,
    e.connect + e.read + e.write + e.status + e.timeout))
end
"""

CONF = NGINX_HEAD + """
  access_log off;
  {more}
  server {{
    listen 127.0.0.1:{port};
    {served}
  }}
}}
"""
SLICE_MORE = "proxy_cache_path {prefix}/cache keys_zone=z:16m max_size=16g;"
SLICE_SERVED = """
    location / {{
      slice 1m;
      proxy_cache z;
      proxy_cache_key $uri$is_args$args$slice_range;
      proxy_set_header Range $slice_range;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_cache_valid 200 206 1h;
      proxy_pass {origin};
    }}
"""


class BenchNginx(Server):
    def __init__(self, case, name, served, more=""):
        super().__init__()
        self.prefix = case.dir(name)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.conf = os.path.join(self.prefix, "nginx.conf")
        with open(self.conf, "w") as file:
            file.write(CONF.format(workers=1, prefix=self.prefix, port=self.port, served=served,
                                   more=more.format(prefix=self.prefix)))
        case.addCleanup(self.stop)
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            ["taskset", "-c", SERVER_CORE, "/usr/sbin/nginx", "-e",
             os.path.join(self.prefix, "error.log"), "-p", self.prefix, "-c", self.conf],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._await_port()

    def pids(self):
        """The worker's, and the cache's helpers'."""
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children") as file:
            return [int(pid) for pid in file.read().split()]


class PinnedNode(HttpNode):
    def __init__(self, case, **options):
        super().__init__(case, log_level="info", http_threads=1, **options)
        case.nodes.append(self)
        case.addCleanup(self.clean_up)

    def command(self):
        return ["taskset", "-c", SERVER_CORE, *super().command()]

    def pids(self):
        return [self.pid]


def on_load_core(*command):
    return subprocess.run(["taskset", "-c", LOAD_CORE, *command], check=True,
                          stdout=subprocess.PIPE).stdout.decode()


def fetch(url, size):
    """(requests, bytes, None) of one curl."""
    told = on_load_core("curl", "-sf", "-o", "/dev/null", "-w", "%{size_download}", url)
    if int(told) != size:
        raise AssertionError(f"{url}: {told} bytes, not {size}")
    return 1, size, None


class WarmServers:
    """The same object out of nginx's root and out of the node's cache, complete. Both files are in
    the page cache: each has been served whole, twice, through its own server."""

    def __init__(self, case, root):
        self.case = case
        self.size = os.path.getsize(os.path.join(root, "object"))
        self.nginx = BenchNginx(case, "nginx", f"root {root};")
        self.node = PinnedNode(case, cache_size=self.size * 2 + (1 << 30), immutable=True)
        self.node.start()
        self.urls = {"nginx": self.nginx.url("/object")}
        self.urls["dartfs"] = self.node.prefix(self.urls["nginx"])
        for url in self.urls.values():
            fetch(url, self.size)
        wait_until(lambda: len(self.node.held(self.urls["nginx"])) == -(-self.size // BLOCK), 120,
                   "every block is stored")
        self.node.settle()
        for url in self.urls.values():
            fetch(url, self.size)

    def pids(self, name):
        return self.nginx.pids() if name == "nginx" else self.node.pids()


class HttpSide:
    about = ""

    def end(self):
        pass


class Warm(HttpSide):
    """Both servers, one after the other."""

    def __init__(self, servers, per_request):
        self.servers = servers
        self.series = {name: ServerSeries(name, per_request) for name in ("nginx", "dartfs")}

    def one_round(self, number):
        names = list(self.series)
        for name in names if number % 2 == 0 else reversed(names):
            url = self.servers.urls[name]
            self.series[name].measure(self.servers.pids(name), lambda: self.work(url))

    def rows(self):
        return [(self.series["nginx"], None), (self.series["dartfs"], self.series["nginx"])]


class Ranges(Warm):
    def __init__(self, servers, arguments, length):
        super().__init__(servers, per_request=length < 1 << 20)
        self.length = length
        self.load = ["-t1", f"-c{arguments.connections}", f"-d{max(1, round(arguments.seconds))}s"]
        self.script = os.path.join(servers.case.temp, f"ranges{length}.lua")
        with open(self.script, "w") as file:
            file.write(RANGES_LUA.format(size=servers.size, length=length))
        self.about = (f"warm, ranges of {length >> 10} KiB at random offsets, wrk {self.load[1]}; "
                      "both files are in the page cache, each served whole twice before")

    def work(self, url):
        said = on_load_core("wrk", *self.load, "-s", self.script, url)
        line = next(line for line in said.splitlines() if line.startswith("@ "))
        requests, micros, errors = map(int, line.split()[1:])
        if errors:
            raise AssertionError(f"{url}: {errors} errors\n{said}")
        return requests, requests * self.length, micros / 1e6


class Whole(Warm):
    about = "warm, the whole object, one curl -o /dev/null; page cache as above"

    def __init__(self, servers, arguments):
        super().__init__(servers, per_request=False)
        self.times = max(1, (1 << 30) // servers.size)

    def work(self, url):
        """So often that the server's clock ticks can be counted."""
        for _ in range(self.times):
            fetch(url, self.servers.size)
        return self.times, self.times * self.servers.size, None


class Slice(HttpSide):
    """nginx as a cache: proxy_cache and slice."""

    about = ("behind 20 ms and 50 MB/s a connection: the whole object, one curl, with an empty "
             "cache and again; nginx with proxy_cache and slice 1m; the origin is on the load's "
             "core; what was just stored is in the page cache")

    def __init__(self, case, root, arguments):
        self.case = case
        self.size = os.path.getsize(os.path.join(root, "object"))
        self.origin = Origin(case, root, delay_ms=20, rate="50MB")
        case.addCleanup(self.origin.stop)
        os.sched_setaffinity(self.origin.process.pid, {int(LOAD_CORE)})
        for task in os.listdir(f"/proc/{self.origin.process.pid}/task"):
            os.sched_setaffinity(int(task), {int(LOAD_CORE)})
        self.nginx = BenchNginx(case, "nginx-slice",
                                SLICE_SERVED.format(origin=self.origin.url("").rstrip("/")),
                                SLICE_MORE)
        self.node = PinnedNode(case, cache_size=self.size * 2 + (1 << 30))
        self.series = {(name, state): ServerSeries(f"{name}, {state}", per_request=False)
                       for state in ("cold", "warm") for name in ("nginx slice", "dartfs")}

    def one_round(self, number):
        turns = [self.through_nginx, self.through_dartfs]
        for turn in turns if number % 2 == 0 else reversed(turns):
            turn()

    def twice(self, name, pids, url, settle):
        """A cold one's CPU seconds are those until all is stored, its time is the client's."""
        def cold():
            began = time.monotonic()
            fetch(url, self.size)
            seconds = time.monotonic() - began
            settle()
            return 1, self.size, seconds
        self.series[name, "cold"].measure(pids, cold)
        self.series[name, "warm"].measure(pids, lambda: fetch(url, self.size))

    def through_nginx(self):
        self.nginx.stop()
        shutil.rmtree(os.path.join(self.nginx.prefix, "cache"), ignore_errors=True)
        self.nginx.start()
        self.twice("nginx slice", self.nginx.pids(), self.nginx.url("/object"),
                   lambda: None)

    def through_dartfs(self):
        if self.node.alive():
            self.node.stop()
        shutil.rmtree(self.node.cache, ignore_errors=True)
        self.node.start()
        self.twice("dartfs", self.node.pids(), self.node.prefix(self.origin.url("/object")),
                   self.node.settle)
        self.node.stop()

    def rows(self):
        return [(self.series[name, state],
                 self.series["nginx slice", state] if name == "dartfs" else None)
                for state in ("cold", "warm") for name in ("nginx slice", "dartfs")]
