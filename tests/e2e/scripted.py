"""An HTTP server whose every answer is a function of the test: for what neither test-origin nor
nginx can be told to send."""

import http.server
import re
import threading


class Scripted:
    """`answer(request)` is called in a thread of the connection. `request` is the handler of
    http.server, with .command, .path, .headers, and the helpers below. All are counted."""

    def __init__(self, case, answer):
        self.lock = threading.Lock()
        self.log = []  # (method, path, headers, bytes of body sent)
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _handler(self, answer))
        self.server.daemon_threads = True
        self.server.block_on_close = False
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()
        case.addCleanup(self.stop)

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(timeout=20)

    @property
    def authority(self):
        return f"127.0.0.1:{self.port}"

    def url(self, path="/"):
        return f"http://{self.authority}{path}"

    def reset(self):
        with self.lock:
            self.log = []

    def body_bytes(self):
        with self.lock:
            return sum(entry[3] for entry in self.log)

    def asked(self):
        """(method, path, headers) of each request."""
        with self.lock:
            return [entry[:3] for entry in self.log]


def _handler(scripted, answer):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = 0

        def handle_one_request(self):
            self.entry = None
            super().handle_one_request()

        def parse_request(self):
            if not super().parse_request():
                return False
            self.entry = [self.command, self.path, self.headers, 0]
            with scripted.lock:
                scripted.log.append(self.entry)
            return True

        def do(self):
            try:
                answer(self)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

        do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_PATCH = do

        def log_message(self, *_):
            pass

        # For `answer`.

        def head(self, status, **fields):
            self.send_response(status)
            for name, value in fields.items():
                self.send_header(name.replace("_", "-"), str(value))
            self.end_headers()

        def send(self, data):
            """Counts what the socket has taken."""
            view = memoryview(data)
            for at in range(0, len(view), 65536):
                piece = view[at:at + 65536]
                self.connection.sendall(piece)
                with scripted.lock:
                    self.entry[3] += len(piece)

        def reply(self, status, data=b"", **fields):
            """An answer that is whole."""
            self.head(status, Content_Length=len(data), **fields)
            if self.command != "HEAD":
                self.send(data)

        def wanted(self, size):
            """(first, last) of a single range, else None."""
            found = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
            if not found:
                return None
            return int(found[1]), min(int(found[2] or size - 1), size - 1)

        def reply_object(self, data, **fields):
            """Whole, or the range that is asked for."""
            wanted = self.wanted(len(data))
            fields.setdefault("Content_Type", "application/octet-stream")
            if wanted is None:
                return self.reply(200, data, Accept_Ranges="bytes", **fields)
            first, last = wanted
            return self.reply(206, data[first:last + 1], Accept_Ranges="bytes",
                              Content_Range=f"bytes {first}-{last}/{len(data)}", **fields)

    return Handler
