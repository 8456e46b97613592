"""The two origins: the scripted one (tests/origin/README.md) and a stock nginx with autoindex."""

import http.client
import json
import os
import signal
import socket
import subprocess
import urllib.parse

from harness import SLOW, program, wait_until


class Server:
    """A process that listens on 127.0.0.1:port and is ended by its PID."""

    def __init__(self):
        self.port = 0
        self.process = None

    @property
    def authority(self):
        return f"127.0.0.1:{self.port}"

    def url(self, path="/"):
        return f"http://{self.authority}{path}"

    def stop(self):
        if self.process is None:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(timeout=20 * SLOW)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(timeout=20)
        self.process = None

    def get(self, path):
        """(headers, whole body) of a GET, past every mount."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60 * SLOW)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            body = answer.read()
        finally:
            connection.close()
        if answer.status != 200:
            raise AssertionError(f"GET {path}: {answer.status}")
        return answer.headers, body

    def _await_port(self):
        def listens():
            if self.process.poll() is not None:
                raise AssertionError(f"the server ended with {self.process.returncode}")
            with socket.socket() as probe:
                probe.settimeout(1)
                return probe.connect_ex(("127.0.0.1", self.port)) == 0
        wait_until(listens, 20 * SLOW, "the server listens")


class Origin(Server):
    def __init__(self, case, root=None, **options):
        """`options` as on the command line: index="json", rate="20MB", delay_ms=5."""
        super().__init__()
        self.case = case
        self.root = root
        self.options = options
        self.start()

    def start(self):
        """On the port of the last time, if there was one."""
        port_file = os.path.join(self.case.temp, f"origin-port-{id(self)}")
        if os.path.exists(port_file):
            os.unlink(port_file)
        command = [program("test-origin"), "--listen", f"127.0.0.1:{self.port}",
                   "--port-file", port_file]
        if self.root is not None:
            command += ["--root", self.root]
        for name, value in self.options.items():
            command += ["--" + name.replace("_", "-"), str(value)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL,
                                        env=self.case.environment())
        wait_until(lambda: os.path.exists(port_file) or self.process.poll() is not None,
                   20 * SLOW, "test-origin listens")
        if self.process.poll() is not None:
            raise AssertionError("test-origin did not start")
        with open(port_file) as file:
            self.port = int(file.read())

    def control(self, method, name, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20 * SLOW)
        try:
            connection.request(method, "/_ctl/" + name,
                               None if body is None else json.dumps(body))
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        if answer.status != 200:
            raise AssertionError(f"{method} {name}: {answer.status} {text!r}")
        return json.loads(text)

    def faults(self, *rules):
        """Replaces all rules; none: ends all."""
        if rules:
            self.control("POST", "faults", list(rules))
        else:
            self.control("DELETE", "faults")

    def fired(self):
        """How often each rule in force has fired, by its fault's name."""
        counts = {}
        for rule in self.control("GET", "faults"):
            counts[rule["fault"]] = counts.get(rule["fault"], 0) + rule["fired"]
        return counts

    def set(self, **options):
        self.control("POST", "options", options)

    def add_file(self, path, **content):
        """text="..." or size=, seed= or alias=; the path as on the wire."""
        self.control("POST", "files", {"path": path, **content})

    def reset_stats(self):
        self.control("POST", "reset-stats")

    def stats(self):
        return self.control("GET", "stats")

    def body_bytes(self, path=None):
        """Bytes of bodies sent since reset_stats, of one path or of all."""
        stats = self.stats()
        if path is None:
            return stats["total"]["body_bytes"]
        return stats["paths"].get(path, {}).get("body_bytes", 0)

    def requests(self, path=None):
        stats = self.stats()
        if path is None:
            return stats["total"]["requests"]
        return stats["paths"].get(path, {}).get("requests", 0)

    def ranges(self):
        """(path, first, last) of the logged requests with a simple range."""
        found = []
        for logged in self.control("GET", "log"):
            for name, value in _header_pairs(logged["headers"]):
                if name.lower() == "range" and value.startswith("bytes="):
                    first, _, last = value[len("bytes="):].partition("-")
                    if first and last:
                        path = logged["target"].partition("?")[0]
                        found.append((path, int(first), int(last)))
        return found


def _header_pairs(headers):
    if isinstance(headers, dict):
        return list(headers.items())
    return [tuple(pair) for pair in headers]


# In front of what one nginx has of its own: {workers}, {prefix}.
NGINX_HEAD = """
daemon off;
user root;
worker_processes {workers};
pid {prefix}/nginx.pid;
error_log {prefix}/error.log;
events {{ worker_connections 1024; }}
http {{
  client_body_temp_path {prefix}/client;
  proxy_temp_path {prefix}/proxy;
  fastcgi_temp_path {prefix}/fastcgi;
  uwsgi_temp_path {prefix}/uwsgi;
  scgi_temp_path {prefix}/scgi;
  sendfile on;
  tcp_nopush on;
"""
NGINX_CONF = NGINX_HEAD + """
  include /etc/nginx/mime.types;
  default_type application/octet-stream;
  access_log {prefix}/access.log;
  server {{
    listen 127.0.0.1:{port};
    root {root};
    location / {{ autoindex on; }}
  }}
}}
"""


class Nginx(Server):
    """As Debian ships it, but for the autoindex and where its files lie."""

    def __init__(self, case, root):
        super().__init__()
        self.case = case
        self.root = root
        self.prefix = case.dir("nginx")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.start()

    def start(self):
        conf = os.path.join(self.prefix, "nginx.conf")
        with open(conf, "w") as file:
            file.write(NGINX_CONF.format(workers=2, prefix=self.prefix, root=self.root,
                                         port=self.port))
        # -e: not even the first line of the log goes to the system's directory.
        self.process = subprocess.Popen(
            ["/usr/sbin/nginx", "-e", os.path.join(self.prefix, "error.log"), "-p", self.prefix,
             "-c", conf], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._await_port()


def quote(path):
    """A path's bytes as they go over the wire."""
    return urllib.parse.quote(path, safe="/")
