"""A dartfs without a mount, and the ways in which tests speak HTTP with it."""

import http.client
import io
import os
import re
import socket
import subprocess
from typing import NamedTuple

from harness import SLOW, default_signals, exit_status, program, wait_until
from node import Node


class Answer(NamedTuple):
    status: int
    headers: http.client.HTTPMessage
    body: bytes


class HttpNode(Node):
    """`options` are those of the command line: origin="http://...", registry_allow=["a", "b"] (once
    for each), immutable=True. Listens on a port of its own choice, the same one over restarts."""

    def __init__(self, case, cache=None, **options):
        super().__init__(case, "", cache=cache, foreground=True,
                         **{"listen": "127.0.0.1:0", **options})
        self.port = 0

    @property
    def authority(self):
        return f"127.0.0.1:{self.port}"

    def url(self, path="/"):
        return f"http://{self.authority}{path}"

    def prefix(self, url):
        """Where the node serves any URL."""
        return self.url(f"/dart/{url}")

    def command(self):
        command = [program("dartfs"), "--no-mount", "--foreground", "--cache-dir", self.cache,
                   "--pid-file", self.pid_file]
        options = dict(self.options)
        if self.port:
            options["listen"] = self.authority
        for name, value in options.items():
            flag = "--" + name.replace("_", "-")
            for each in value if isinstance(value, (list, tuple)) else [value]:
                if each is True:
                    command.append(flag)
                elif each is not False:
                    command += [flag, str(each)]
        return command

    def start(self):
        """Serving on return."""
        self._forget_pid_file()
        began = os.path.getsize(self.log_file) if os.path.exists(self.log_file) else 0
        with open(self.log_file, "ab") as log:
            process = subprocess.Popen(self.command(), env=self.case.environment(),
                                       preexec_fn=default_signals, stdin=subprocess.DEVNULL,
                                       stdout=log, stderr=log)
        self.pid = process.pid
        process.returncode = 0  # reaped by exit_status, not by subprocess
        try:
            self.port = wait_until(lambda: self._logged_port(began), 30 * SLOW, "the node serves")
        except AssertionError:
            self.show_log()
            raise
        return self

    def _logged_port(self, began):
        found = re.search(r"HTTP on 127\.0\.0\.1:(\d+) ", self.log_text()[began:])
        if found:
            return int(found[1])
        code = exit_status(self.pid)
        if code is not None:
            self.pid = None
            raise AssertionError(f"dartfs ended with {code}")
        return None

    # Of its process.

    def memory(self):
        """Resident, in bytes."""
        with open(f"/proc/{self.pid}/status") as file:
            fields = dict(line.split(":", 1) for line in file)
        return int(fields["VmRSS"].split()[0]) << 10

    # What it answers.

    def ask(self, path, method="GET", body=None, **headers):
        """One request on a connection of its own; `path` is a target as on the wire, or a URL of
        this node; the names of headers with underscores."""
        target = path.removeprefix(self.url(""))
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return exchange(self.port, target, method, body, named)

    def say(self, text, timeout=20):
        """Raw bytes on a connection of its own; all that comes back until it is closed. Fails where
        it is not closed within `timeout`."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=timeout * SLOW) as client:
            client.sendall(text)
            said = b""
            while piece := client.recv(65536):
                said += piece
        return said


def exchange(port, target, method="GET", body=None, headers=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60 * SLOW)
    try:
        connection.putrequest(method, target, skip_accept_encoding=True)
        if body is not None:
            connection.putheader("Content-Length", str(len(body)))
        for name, value in (headers or {}).items():
            connection.putheader(name, value)
        connection.endheaders(body)
        answer = connection.getresponse()
        return Answer(answer.status, answer.headers, answer.read())
    finally:
        connection.close()


def parts(answer):
    """Of multipart/byteranges: (first, last, total, content type, bytes) of each."""
    boundary = re.fullmatch(r'multipart/byteranges; boundary="?([^"]+)"?',
                            answer.headers["Content-Type"])[1].encode()
    pieces = (b"\r\n" + answer.body).split(b"\r\n--" + boundary)
    if pieces[0].strip() or pieces[-1].rstrip() != b"--":
        raise AssertionError(f"not framed as multipart: {pieces[0]!r} {pieces[-1]!r}")
    found = []
    for piece in pieces[1:-1]:
        head, _, data = piece.partition(b"\r\n\r\n")
        fields = http.client.parse_headers(io.BytesIO(head.lstrip(b"\r\n") + b"\r\n\r\n"))
        where = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+)", fields["Content-Range"])
        found.append((*map(int, where.groups()), fields["Content-Type"], data))
    return found
