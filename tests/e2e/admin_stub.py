"""The operator's page with numbers of the test's choice: what /admin/stats can say at worst."""

import http.server
import json
import os
import threading

from harness import BLOCK, MIB, TOP

PAGE_FOLDER = os.path.join(TOP, "src", "httpd", "admin")
TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
         ".css": "text/css; charset=utf-8"}
FILES = sorted(os.listdir(PAGE_FOLDER))
# As admin_handler.cc has it: what it forbids fails here too.
POLICY = ("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
          "img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
GIB = 1 << 30


class AdminStub:
    """Serves the page from the source tree; `stats(n)` makes the nth answer (a dict, or a status
    that is an error)."""

    def __init__(self, case, stats):
        self.asked = 0
        stub = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):  # the library's name
                stub.answer(self)

            def log_message(self, *_):
                pass

        self.stats = stats
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        thread = threading.Thread(target=self.server.serve_forever)
        thread.start()
        case.addCleanup(thread.join)
        case.addCleanup(self.server.server_close)
        case.addCleanup(self.server.shutdown)
        self.url = f"http://127.0.0.1:{self.server.server_port}/admin/"

    def answer(self, request):
        name = request.path.removeprefix("/admin/") or "page.html"
        status, kind, body = 404, "text/plain", b"no such page\n"
        if name in FILES:
            with open(os.path.join(PAGE_FOLDER, name), "rb") as file:
                status, kind, body = 200, TYPES[os.path.splitext(name)[1]], file.read()
        elif name == "stats":
            made = self.stats(self.asked)
            self.asked += 1
            status = made if isinstance(made, int) else 200
            kind, body = "application/json", json.dumps(made).encode()
        request.send_response(status)
        for header, value in (("Content-Type", kind), ("Content-Length", str(len(body))),
                              ("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff"),
                              ("Content-Security-Policy", POLICY)):
            request.send_header(header, value)
        request.end_headers()
        request.wfile.write(body)


def flight(i, url=None, age_ms=None, received=None):
    return {"url": url or f"https://registry.example.com/v2/team/model/blobs/sha256:{i:064x}",
            "block": i * 7, "received_bytes": BLOCK // 3 if received is None else received,
            "length_bytes": BLOCK, "age_ms": 180 + 40 * i if age_ms is None else age_ms,
            "waiters": 1 + i % 3, "source": "origin", "attempt": 1,
            "priority": "demand" if i % 2 else "read-ahead"}


def origin(authority, **more):
    return {"authority": authority, "active": 0, "queued": 0, "throttled_ms": 0, "calls": 91,
            "failures": 0, "bytes": 700 * MIB, "last_error": "", "last_error_age_ms": -1, **more}


def ordinary(n):
    """A node at work, the nth answer."""
    return {
        "self_id": "node-17", "cached_blocks": 1834, "version": "0.1.0", "pid": 4711,
        "uptime_ms": 11_640_000 + 2000 * n, "stays": True,
        "cache": {"dir": "/var/cache/dartfs", "limit_bytes": 10 * GIB, "used_bytes": 7.2 * GIB,
                  "blocks": 1834, "objects": 57, "owned_bytes": 6.1 * GIB,
                  "borrowed_bytes": 1.1 * GIB, "owned_limit_bytes": 8 * GIB,
                  "lent_bytes": 512 * MIB, "pinned_bytes": 0, "pending_blocks": 3,
                  "evicted_blocks": 412, "corrupt_granules": 0, "write_errors": 0,
                  "bypass": False, "bypass_reason": "", "disk_io": "io_uring"},
        "bytes": {"origin": 5 * GIB + n * 61 * MIB + (n % 5) * 9 * MIB, "peer": 0,
                  "cache": 42 * GIB + n * 388 * MIB + (n % 7) * 33 * MIB, "memory": 6 * GIB},
        "reads": {"cache": 90_000 + 200 * n, "peer": 0, "origin": 4_000 + 14 * n + (n % 5) * 3},
        "inflight": {"bytes": 40 * MIB, "limit_bytes": 256 * MIB}, "flights_started": 4_200,
        "flights_failed": 2, "retries": 9, "refetched_corrupt": 0, "wrong_digests": 0,
        "flights_under_way": 5,
        "flights": [flight(i, received=min(BLOCK, (i + 1) * n * 60_000)) for i in range(4)] +
                   [flight(9, age_ms=41_000 + 2000 * n, received=0)],
        "origins": [origin("https://registry.example.com:443", active=5, queued=2),
                    origin("https://models.example.org:443", throttled_ms=17_400, failures=3,
                           last_error="429 Too Many Requests", last_error_age_ms=4_200),
                    origin("http://10.0.4.12:8080", bytes=0, calls=4, failures=4,
                           last_error="connect to 10.0.4.12 port 8080: Connection refused",
                           last_error_age_ms=31_000)],
        "mounts": [{"mountpoint": "/srv/images", "source": "https://registry.example.com/images/",
                    "age_ms": 11_000_000, "open_files": 12, "waiting": 4,
                    "passthrough": {"state": "on", "files": 3, "opens": 19}},
                   {"mountpoint": "/srv/any", "source": "any", "age_ms": 640_000, "open_files": 0,
                    "waiting": 0, "passthrough": {"state": "needs root", "files": 0, "opens": 0}}],
        "http": {"connections": 38, "accepted": 9_120, "refused": 0, "cut_off": 7,
                 "planes": {"client": {"answers": {"2xx": 120_412, "3xx": 201, "4xx": 12,
                                                   "5xx": 3}, "sent_bytes": 88 * GIB},
                            "admin": {"answers": {"2xx": 5_120, "4xx": 1}, "sent_bytes": 9 * MIB}}},
    }


def idle(_):
    """A node that has just started."""
    return {"self_id": "node-17", "cached_blocks": 0, "version": "0.1.0", "uptime_ms": 1200,
            "cache": {"dir": "/var/cache/dartfs", "limit_bytes": 10 * GIB}, "bytes": {},
            "reads": {}, "inflight": {"bytes": 0, "limit_bytes": 256 * MIB}, "flights": [],
            "flights_under_way": 0, "origins": [], "mounts": [], "http": {}}


EVIL = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"


def hostile(n):
    """Foreign names, absurd numbers, as much as there can be, and what is of the wrong type."""
    stats = ordinary(n)
    long_url = "https://h.example/" + "very-long-segment/" * 60 + EVIL
    stats["self_id"] = EVIL
    stats["flights_under_way"] = 4_000
    stats["flights"] = [flight(i, url=f"{i} {long_url}", age_ms=2 ** 63) for i in range(256)]
    stats["flights"] += [None, 7, "text", {"url": 3, "age_ms": "x", "received_bytes": None}]
    stats["origins"] = [origin(f"https://{EVIL}{i}", active=2 ** 53, bytes=2 ** 64,
                               last_error=EVIL * 8, last_error_age_ms=1) for i in range(64)]
    stats["mounts"] = [{"mountpoint": "/srv/\\x1b[2J" + EVIL, "source": long_url,
                        "age_ms": -5, "open_files": 2 ** 64, "waiting": {}, "passthrough": 9}]
    stats["cache"].update(limit_bytes=2 ** 64, owned_bytes=2 ** 64, borrowed_bytes=2 ** 63,
                          bypass=True, bypass_reason=EVIL, dir="/c/" + "d" * 900,
                          corrupt_granules=2 ** 64, disk_io=EVIL)
    stats["reads"] = {"cache": "many", "origin": -3}
    stats["http"] = {"connections": 1e308, "planes": {"client": {"answers": {"2xx": 2 ** 64}}}}
    return stats
