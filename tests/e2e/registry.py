"""Debian's docker-registry on loopback, a token server for it, an image to keep there, and those
who fetch it: skopeo, containerd."""

import base64
import collections
import gzip
import hashlib
import http.server
import io
import json
import os
import random
import re
import socket
import subprocess
import tarfile
import threading
import time
import urllib.parse
from typing import NamedTuple

from harness import SLOW, run, wait_until
from servers import Server

USER, PASSWORD = "reader", "open sesame"
REPOSITORY, TAG = "library/image", "v1"

CONFIG = """
version: 0.1
log: {{level: info, accesslog: {{disabled: false}}}}
storage:
  filesystem: {{rootdirectory: {root}}}
http:
  addr: 127.0.0.1:{port}
{auth}
"""
BASIC = """
auth:
  htpasswd: {{realm: the registry, path: {file}}}
"""
TOKEN = """
auth:
  token: {{realm: "{realm}", service: the-registry, issuer: the-issuer, rootcertbundle: {cert}}}
"""


class Logged(NamedTuple):
    method: str
    target: str
    status: int
    bytes: int


class Registry(Server):
    """`auth`: None (anonymous), "basic", or a TokenServer. Keeps its files over restarts."""

    LINE = re.compile(r'"([A-Z]+) (\S+) HTTP/1\.[01]" (\d+) (\d+)')

    def __init__(self, case, auth=None):
        super().__init__()
        self.case = case
        self.directory = case.dir(f"registry{id(self)}")
        self.log_file = os.path.join(self.directory, "log")
        self.skipped = 0  # of the log
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        case.addCleanup(self.stop)
        with open(os.path.join(self.directory, "config.yml"), "w") as file:
            file.write(CONFIG.format(root=os.path.join(self.directory, "files"), port=self.port,
                                     auth=self._auth(auth)))
        with open(self.log_file, "wb") as log:
            self.process = subprocess.Popen(
                ["docker-registry", "serve", os.path.join(self.directory, "config.yml")],
                stdout=log, stderr=log, env={**os.environ, "OTEL_TRACES_EXPORTER": "none"})
        self._await_port()

    def _auth(self, auth):
        if auth is None:
            return ""
        if auth == "basic":
            path = os.path.join(self.directory, "htpasswd")
            with open(path, "wb") as file:
                file.write(run("htpasswd", "-Bbn", USER, PASSWORD).stdout)
            return BASIC.format(file=path)
        return TOKEN.format(realm=auth.realm, cert=auth.certificate)

    def forget_log(self):
        """What is asked for from now on is what logged() has."""
        self.skipped = os.path.getsize(self.log_file)

    def logged(self):
        with open(self.log_file, errors="replace") as file:
            file.seek(self.skipped)
            lines = [self.LINE.search(line) for line in file]
        return [Logged(m[1], m[2], int(m[3]), int(m[4])) for m in lines if m]

    def bodies(self, what="blobs"):
        """{digest or reference: bytes of each 200 or 206 answer to a GET}."""
        found = collections.defaultdict(list)
        for each in self.logged():
            name = each.target.partition("?")[0]
            if each.method == "GET" and each.status in (200, 206) and f"/{what}/" in name:
                found[name.rpartition("/")[2]].append(each.bytes)
        return dict(found)


class TokenServer:
    """Tokens as the distribution project specifies them: whoever logs in may pull and push, others
    may nothing."""

    def __init__(self, case, host="127.0.0.1"):
        directory = case.dir("token-server")
        self.key = os.path.join(directory, "key.pem")
        self.certificate = os.path.join(directory, "cert.pem")
        run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
            "/CN=the-issuer", "-keyout", self.key, "-out", self.certificate)
        der = run("openssl", "x509", "-in", self.certificate, "-outform", "DER").stdout
        self.chain = [base64.b64encode(der).decode()]
        self.asked = []  # (scopes, Authorization or "") of each request
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.server.daemon_threads = True
        self.server.block_on_close = False
        self.port = self.server.server_address[1]
        self.host = host
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()
        case.addCleanup(self.stop)

    @property
    def realm(self):
        return f"http://{self.host}:{self.port}/token"

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(timeout=20)

    def token(self, service, scopes, allowed):
        now = int(time.time())
        access = []
        for scope in scopes:
            kind, name, actions = scope.split(":", 2)
            access.append({"type": kind, "name": name,
                           "actions": actions.split(",") if allowed else []})
        claims = {"iss": "the-issuer", "sub": USER if allowed else "", "aud": service,
                  "exp": now + 300, "nbf": now - 10, "iat": now, "jti": os.urandom(8).hex(),
                  "access": access}
        head = {"typ": "JWT", "alg": "RS256", "x5c": self.chain}
        text = ".".join(_url_base64(json.dumps(part).encode()) for part in (head, claims))
        signed = subprocess.run(["openssl", "dgst", "-sha256", "-sign", self.key],
                                input=text.encode(), stdout=subprocess.PIPE, check=True,
                                timeout=60 * SLOW)
        return f"{text}.{_url_base64(signed.stdout)}"

    def _handler(self):
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
                given = self.headers.get("Authorization", "")
                scopes = [one for each in query.get("scope", []) for one in each.split(" ")]
                server.asked.append((scopes, given))
                if given and given != basic():
                    return self.reply(401, {"errors": []})
                token = server.token(query.get("service", [""])[0], scopes, bool(given))
                return self.reply(200, {"token": token, "expires_in": 300})

            def reply(self, status, value):
                text = json.dumps(value).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_):
                pass
        return Handler


def basic(user=USER, password=PASSWORD):
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def _url_base64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Image:
    """An OCI layout with layers that nothing compresses; `layers` are their digests in order,
    `blobs` the size of each blob, the configuration's with them."""

    def __init__(self, directory, layer_sizes):
        self.directory = directory
        self.folder = os.path.join(directory, "blobs", "sha256")
        os.makedirs(self.folder)
        self.blobs = {}
        layers, plain = [], []
        for number, size in enumerate(layer_sizes):
            tar = _tar(f"data{number}", random.Random(number).randbytes(size))
            plain.append("sha256:" + hashlib.sha256(tar).hexdigest())
            layers.append(self._blob("application/vnd.oci.image.layer.v1.tar+gzip",
                                     gzip.compress(tar, 1, mtime=0)))
        config = self._blob("application/vnd.oci.image.config.v1+json", json.dumps(
            {"architecture": "amd64", "os": "linux", "config": {},
             "rootfs": {"type": "layers", "diff_ids": plain}}).encode())
        self.layers = [layer["digest"] for layer in layers]
        self.blobs = {each["digest"]: each["size"] for each in [*layers, config]}
        manifest = self._blob("application/vnd.oci.image.manifest.v1+json", json.dumps(
            {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
             "config": config, "layers": layers}).encode())
        self.manifest = manifest["digest"]
        manifest["annotations"] = {"org.opencontainers.image.ref.name": TAG}
        for name, value in (("oci-layout", {"imageLayoutVersion": "1.0.0"}),
                            ("index.json", {"schemaVersion": 2, "manifests": [manifest]})):
            with open(os.path.join(directory, name), "w") as file:
                json.dump(value, file)

    def _blob(self, kind, data):
        digest = hashlib.sha256(data).hexdigest()
        with open(os.path.join(self.folder, digest), "wb") as file:
            file.write(data)
        return {"mediaType": kind, "digest": f"sha256:{digest}", "size": len(data)}

    def bytes_of(self, digest):
        with open(os.path.join(self.folder, digest.partition(":")[2]), "rb") as file:
            return file.read()


def _tar(name, data):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        member = tarfile.TarInfo(name)
        member.size = len(data)
        archive.addfile(member, io.BytesIO(data))
    return out.getvalue()


def skopeo(*arguments, check=True):
    return run("skopeo", "--insecure-policy", *arguments, check=check)


def push(image, registry, login=None):
    skopeo("copy", "--dest-tls-verify=false", *(["--dest-creds", login] if login else []),
           f"oci:{image.directory}:{TAG}", f"docker://{registry.authority}/{REPOSITORY}:{TAG}")


def pull(authority, directory, login=None, check=True):
    return skopeo("copy", "--src-tls-verify=false", *(["--src-creds", login] if login else []),
                  f"docker://{authority}/{REPOSITORY}:{TAG}", f"dir:{directory}", check=check)


CONTAINERD_CONFIG = """
version = 2
root = "{directory}/root"
state = "{directory}/state"
disabled_plugins = ["io.containerd.grpc.v1.cri"]
[grpc]
address = "{directory}/socket"
[ttrpc]
address = "{directory}/ttrpc"
"""


class Containerd:
    """A containerd of our own, to whose content store images are fetched through `mirror`."""

    def __init__(self, case, name, registry, mirror):
        self.directory = case.dir(name)
        self.registry = registry
        hosts = case.dir(os.path.join(name, "hosts", registry.authority))
        with open(os.path.join(hosts, "hosts.toml"), "w") as file:
            # "server" answers nothing: what the mirror does not have is not had.
            file.write(f'server = "http://127.0.0.1:1"\n[host."http://{mirror.authority}"]\n'
                       '  capabilities = ["pull", "resolve"]\n')
        config = os.path.join(self.directory, "config.toml")
        with open(config, "w") as file:
            file.write(CONTAINERD_CONFIG.format(directory=self.directory))
        with open(os.path.join(self.directory, "log"), "wb") as log:
            case.spawn("containerd", "-c", config, stdout=log, stderr=log)
        wait_until(lambda: self.ctr("version", check=False).returncode == 0, 30 * SLOW,
                   "containerd answers")

    def ctr(self, *arguments, check=True):
        return run("ctr", "-a", os.path.join(self.directory, "socket"), *arguments, check=check)

    def fetch(self):
        self.ctr("content", "fetch", "--hosts-dir", os.path.join(self.directory, "hosts"),
                 f"{self.registry.authority}/{REPOSITORY}:{TAG}")

    def content(self, digest):
        return self.ctr("content", "get", digest).stdout
