"""The clients that people have, against the HTTP door: what they are given is what lies at the
origin, and what the origin pays is one fetch."""

import hashlib
import json
import os
import zipfile

import trees
from harness import BLOCK, KIB, MIB, Case, main, run, sized
from http_node import parts
from lazy_http import LazyHttp
from scripted import Scripted


def blocks_of(size):
    return -(-size // BLOCK)


class Clients(Case):
    size = sized(5, 2) * BLOCK + 12345

    def setUp(self):
        super().setUp()
        self.root = self.dir("tree")
        self.true_path = os.path.join(self.root, "object.bin")
        trees.write_random(self.true_path, self.size, 11)
        trees.age(self.root)
        with open(self.true_path, "rb") as file:
            self.true = file.read()

    def serve(self, **options):
        self.server = self.origin(self.root)
        self.http = self.http_node(**options)
        self.where = self.http.prefix(self.server.url("/object.bin"))

    def out(self, name="out"):
        return os.path.join(self.temp, name)

    def curl(self, *arguments, check=True, **more):
        return run("curl", "-sS", "--max-time", "60", *arguments, check=check, **more)

    def assert_file(self, path, true=None):
        with open(path, "rb") as file:
            self.assertTrue(file.read() == (self.true if true is None else true),
                            f"{path} has other bytes")

    def assert_cost_of_one_fetch(self, path="/object.bin"):
        """Every byte once, and one request a block, plus the probe of one byte."""
        self.assertEqual(self.server.body_bytes(path), self.size + 1)
        self.assertEqual(self.server.requests(path), blocks_of(self.size) + 1)


class Curl(Clients):
    def test_a_whole_object_costs_one_fetch_and_then_nothing(self):
        self.serve()
        for name in ("first", "second"):
            self.curl("-f", "-o", self.out(name), self.where)
            self.assert_file(self.out(name))
        self.assert_cost_of_one_fetch()

    def test_http_1_0(self):
        self.serve()
        self.curl("-f", "--http1.0", "-D", self.out("head"), "-o", self.out(), self.where)
        self.assert_file(self.out())
        with open(self.out("head")) as file:
            self.assertNotIn("chunked", file.read())

    def test_resumes_from_any_length_as_with_nginx(self):
        """The same bytes and the same exit code, also where nothing is missing (416)."""
        self.serve()
        plain = self.nginx(self.root).url("/object.bin")
        for have in (0, 1, BLOCK - 1, BLOCK, BLOCK + 1, self.size - 1, self.size):
            codes = []
            for number, url in enumerate((self.where, plain)):
                path = self.out(f"part{number}")
                with open(path, "wb") as file:
                    file.write(self.true[:have])
                codes.append(self.curl("-f", "-C", "-", "-o", path, url, check=False).returncode)
                self.assert_file(path)
            self.assertEqual(codes[0], codes[1], f"exit codes where {have} bytes are there")
        self.assert_cost_of_one_fetch()

    def test_a_resume_of_what_is_complete_is_told_the_size(self):
        self.serve()
        answer = self.http.ask(self.where, Range=f"bytes={self.size}-")
        self.assertEqual(answer.status, 416)
        self.assertEqual(answer.headers["Content-Range"], f"bytes */{self.size}")

    def test_several_ranges_in_one_request(self):
        self.serve(fill="off")
        wanted = [(0, 99), (BLOCK - 10, BLOCK + 9), (self.size - 5, self.size - 1)]
        text = ",".join(f"{first}-{last}" for first, last in wanted)
        self.curl("-f", "-r", text, "-o", self.out(), self.where)
        answer = self.http.ask(self.where, Range=f"bytes={text}")
        self.assertEqual(answer.status, 206)
        found = parts(answer)
        self.assertEqual([(first, last, total) for first, last, total, _, _ in found],
                         [(first, last, self.size) for first, last in wanted])
        for first, last, _, _, data in found:
            self.assertEqual(data, self.true[first:last + 1])
        with open(self.out(), "rb") as file:
            said = file.read()
        for first, last in wanted:
            self.assertIn(self.true[first:last + 1], said)
        self.assertEqual(len(said), len(answer.body))

    def test_suffix_open_and_closed_ranges(self):
        self.serve()
        for text, true in (("-1000", self.true[-1000:]), (f"{BLOCK}-", self.true[BLOCK:]),
                           ("0-0", self.true[:1]), (f"{BLOCK - 1}-{BLOCK}",
                                                    self.true[BLOCK - 1:BLOCK + 1]),
                           (f"-{self.size + 5}", self.true),
                           (f"{self.size - 1}-{self.size + 9}", self.true[-1:])):
            said = self.curl("-f", "-r", text, "-w", "%{http_code}", "-o", self.out(), self.where)
            self.assertEqual(said.stdout, b"206", text)
            self.assert_file(self.out(), true)

    def test_head_is_get_without_its_body(self):
        self.serve()
        self.curl("-f", "-o", "/dev/null", self.where)
        self.http.settle()  # X-Cache is the same for both

        def fields(*arguments):
            text = self.curl("-f", "-D", "-", "-o", "/dev/null", *arguments).stdout.decode()
            return [line for line in text.splitlines() if not line.startswith("Date:")]
        whole = fields(self.where)
        self.assertEqual(fields("-I", self.where), whole)
        self.assertIn(f"Content-Length: {self.size}", whole)
        self.assertIn("Accept-Ranges: bytes", whole)
        for range_ in ("5-9", "-7", f"{self.size}-"):
            self.assertEqual(
                self.http.ask(self.where, "HEAD", Range=f"bytes={range_}").status,
                self.http.ask(self.where, Range=f"bytes={range_}").status, range_)

    def test_conditions(self):
        self.serve()
        first = self.http.ask(self.where, Range="bytes=0-9")
        tag, date = first.headers["ETag"], first.headers["Last-Modified"]
        for status, named in ((304, {"If_None_Match": tag}), (304, {"If_Modified_Since": date}),
                              (206, {"If_Range": tag, "Range": "bytes=0-9"}),
                              (200, {"If_Range": '"other"', "Range": "bytes=0-9"}),
                              (412, {"If_Match": '"other"'})):
            answer = self.http.ask(self.where, **named)
            self.assertEqual(answer.status, status, named)
            true = {304: b"", 206: self.true[:10], 200: self.true}.get(status)
            if true is not None:
                self.assertTrue(answer.body == true, named)
        self.curl("-f", "-o", self.out(), "-R", self.where)
        self.curl("-f", "-z", self.out(), "-o", self.out("newer"), self.where)
        self.assertFalse(os.path.exists(self.out("newer")) and os.path.getsize(self.out("newer")))

    def test_through_the_proxy_variable(self):
        self.serve()
        proxied = {**os.environ, "http_proxy": self.http.url(""), "no_proxy": ""}
        plain = self.server.url("/object.bin")
        for name in ("first", "second"):
            self.curl("-f", "-o", self.out(name), plain, env=proxied)
            self.assert_file(self.out(name))
        done = self.curl("-f", "-r", "100-199", plain, env=proxied)
        self.assertEqual(done.stdout, self.true[100:200])
        # The prefix door leads to the same object.
        self.curl("-f", "-o", self.out("prefix"), self.where)
        self.assert_file(self.out("prefix"))
        self.assert_cost_of_one_fetch()

    def test_a_fixed_origin_stands_under_the_root(self):
        server = self.origin(self.root)
        http = self.http_node(origin=server.url())
        self.curl("-f", "-o", self.out(), http.url("/object.bin"))
        self.assert_file(self.out())
        self.assertEqual(server.body_bytes("/object.bin"), self.size + 1)

    def test_the_origins_refusals_are_the_clients(self):
        self.serve()
        for status in (401, 403, 404, 410):
            path = f"/refused-{status}"
            self.server.add_file(path, text="hidden")
            self.server.faults({"fault": "status", "status": status, "path": path})
            self.assertEqual(self.http.ask(self.http.prefix(self.server.url(path))).status, status)
        self.server.faults()
        self.server.stop()
        answer = self.http.ask(self.http.prefix(self.server.url("/nobody")))
        self.assertEqual(answer.status, 502)
        self.assertIn(self.server.authority.encode(), answer.body)


    def test_the_origins_429_reaches_the_client_at_once(self):
        """It, not the node, decides what to do in the meantime."""
        self.serve()
        self.server.add_file("/busy", text="later")
        self.server.faults({"fault": "status", "status": 429, "retry_after": 30, "path": "/busy"})
        done = self.curl("-D", "-", "-o", "/dev/null", "--max-time", "20",
                         self.http.prefix(self.server.url("/busy")), check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"HTTP/1.1 429 ", done.stdout)
        self.assertIn(b"Retry-After: ", done.stdout)


class Downloaders(Clients):
    def test_wget_goes_on_where_it_was(self):
        self.serve()
        for have in (0, BLOCK + 17, self.size):
            with open(self.out(), "wb") as file:
                file.write(self.true[:have])
            run("wget", "-q", "--tries=1", "-c", "-O", self.out(), self.where)
            self.assert_file(self.out())
        self.assert_cost_of_one_fetch()

    def test_aria2c_with_eight_connections(self):
        self.serve()
        digest = hashlib.sha256(self.true).hexdigest()
        run("aria2c", "-q", "-x8", "-s8", "-k1M", "--no-conf", "--max-tries=1", "--dir", self.temp,
            "-o", "aria", f"--checksum=sha-256={digest}", self.where)
        self.assert_file(self.out("aria"))
        self.assert_cost_of_one_fetch()


class Qemu(Clients):
    def test_info_and_convert_over_http(self):
        disk = os.path.join(self.root, "disk.qcow2")
        run("qemu-img", "convert", "-f", "raw", "-O", "qcow2", self.true_path, disk)
        trees.age(self.root)
        self.serve()
        url = self.http.prefix(self.server.url("/disk.qcow2"))
        told = json.loads(run("qemu-img", "info", "--output=json", url).stdout)
        self.assertEqual(told["format"], "qcow2")
        # -m 1: with more coroutines qemu 7.2's curl driver hangs now and then, also on nginx.
        run("qemu-img", "convert", "-m", "1", "-f", "qcow2", "-O", "raw", url, self.out("raw"))
        run("qemu-img", "compare", "-f", "raw", "-F", "raw", self.out("raw"), self.true_path)
        self.assertLessEqual(self.server.body_bytes("/disk.qcow2"), os.path.getsize(disk) + 1)


class Sequences(Clients):
    """What programs that are too large to install here send, request by request."""

    def test_pip_reads_a_wheels_metadata(self):
        """Its lazy wheel: HEAD, then pieces from the end on, each with Cache-Control: no-cache."""
        wheel = os.path.join(self.root, "pack%2B1-py3-none-any.whl")
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr("pack/data.bin", self.true[:9 * MIB])
            archive.writestr("pack-1.dist-info/METADATA", "Name: pack\n" * 500)
        trees.age(self.root)
        self.serve(fill="off")
        url = self.http.prefix(self.server.url("/pack%252B1-py3-none-any.whl"))
        named = {"Accept_Encoding": "identity", "Cache_Control": "no-cache"}
        head = self.http.ask(url, "HEAD", Accept_Encoding="identity")
        self.assertEqual(head.status, 200)
        self.assertEqual(head.headers["Content-Length"], str(os.path.getsize(wheel)))
        self.assertEqual(head.headers["Accept-Ranges"], "bytes")
        lazy = LazyHttp(self.http, url, int(head.headers["Content-Length"]), named)
        with zipfile.ZipFile(lazy) as archive:
            self.assertEqual(archive.read("pack-1.dist-info/METADATA"), b"Name: pack\n" * 500)
        self.assertGreater(lazy.requests, 1)
        # Only the last block, once, whatever no-cache says; never one request for each piece.
        self.assertLessEqual(self.server.body_bytes(), BLOCK + 1)

    def test_stargz(self):
        self.serve(fill="off")
        probe = self.http.ask(self.where, Range="bytes=0-1", Accept_Encoding="identity")
        self.assertEqual((probe.status, probe.body), (206, self.true[:2]))
        self.assertEqual(probe.headers["Content-Range"], f"bytes 0-1/{self.size}")
        wanted = [(i * 300 * KIB, i * 300 * KIB + 4095) for i in range(20)]
        answer = self.http.ask(self.where, Accept_Encoding="identity",
                               Range="bytes=" + ",".join(f"{a}-{b}" for a, b in wanted))
        self.assertEqual(answer.status, 206)
        found = parts(answer)
        self.assertEqual([(first, last) for first, last, *_ in found], wanted)
        for first, last, total, kind, data in found:
            self.assertEqual((total, kind), (self.size, "application/octet-stream"))
            self.assertEqual(data, self.true[first:last + 1])
        last_block = wanted[-1][1] // BLOCK
        self.assertEqual(self.server.body_bytes(), (last_block + 1) * BLOCK + 1)

    def test_stargz_is_told_what_the_origin_refuses(self):
        self.serve()
        self.server.add_file("/secret", text="hidden")
        self.server.faults({"fault": "status", "status": 403, "path": "/secret"})
        url = self.http.prefix(self.server.url("/secret"))
        self.assertEqual(self.http.ask(url, Range="bytes=0-1").status, 403)

    def test_overlaybd(self):
        """The URL as it is, and the size out of the first byte's Content-Range."""
        self.serve(fill="off")
        path = "/v2//layers/a%2Bb%3D/blob"
        self.server.add_file(path, size=3 * BLOCK + 5, seed=4)
        true = self.server.get(path)[1]
        self.server.reset_stats()
        url = self.http.prefix(self.server.url(path))
        probe = self.http.ask(url, Range="bytes=0-0")
        self.assertEqual((probe.status, probe.body), (206, true[:1]))
        self.assertEqual(probe.headers["Content-Range"], f"bytes 0-0/{len(true)}")
        last = len(true) - 4096
        for at in [i * 7919 * 512 % last for i in range(sized(400, 100))] + [last]:
            answer = self.http.ask(url, Range=f"bytes={at}-{at + 4095}")
            self.assertEqual((answer.status, answer.body), (206, true[at:at + 4096]))
        self.assertEqual(self.server.body_bytes(path), len(true) + 1)
        self.assertEqual({logged["target"] for logged in self.server.control("GET", "log")
                          if "blob" in logged["target"]}, {path})

    def test_overlaybd_brings_the_origins_credential(self):
        """It goes to that origin as it is; who brings none, or another, sees nothing of it."""
        def answer(request):
            if request.headers.get("Authorization") != "Bearer of-the-client":
                return request.reply(401, WWW_Authenticate='Bearer realm="http://127.0.0.1/t"')
            return request.reply_object(self.true, ETag='"p"')
        private = Scripted(self, answer)
        http = self.http_node(ttl="1ms")
        url = http.prefix(private.url("/private"))
        for range_ in ("0-0", f"{BLOCK}-{BLOCK + 9}"):
            first, last = map(int, range_.split("-"))
            given = http.ask(url, Range=f"bytes={range_}", Authorization="Bearer of-the-client")
            self.assertEqual((given.status, given.body), (206, self.true[first:last + 1]))
        for named in ({}, {"Authorization": "Bearer other"}):
            refused = http.ask(url, Range="bytes=0-0", **named)
            self.assertEqual(refused.status, 401, named)
            self.assertEqual(refused.headers["WWW-Authenticate"],
                             'Bearer realm="http://127.0.0.1/t"')


class HuggingFace(Clients):
    """A hub that redirects to a store, as huggingface_hub meets it."""

    LINKED = {"X_Linked_Etag": '"abc"', "X_Repo_Commit": "0123456789abcdef"}

    def hub(self):
        self.store = Scripted(self, lambda request: request.reply_object(self.true, ETag='"s"'))
        self.linked = {**self.LINKED, "X_Linked_Size": str(self.size)}

        def answer(request):
            if request.path == "/org/model/resolve/main/config.json":
                return request.reply_object(b'{"a": 1}', ETag='"c"', **self.LINKED)
            if request.path == "/org/model/resolve/main/moved.json":
                return request.reply(307, Location="/org/model/resolve/main/config.json")
            if request.path == "/org/model/resolve/main/weights":
                return request.reply(302, Location=self.store.url("/weights?signed=1"),
                                     **self.linked)
            return request.reply(404, b"no")
        return Scripted(self, answer)

    def test_metadata_and_first_byte_of_a_small_file(self):
        hub = self.hub()
        http = self.http_node()
        url = http.prefix(hub.url("/org/model/resolve/main/config.json"))
        for _ in range(2):  # also out of the cache
            head = http.ask(url, "HEAD", Accept_Encoding="identity")
            self.assertEqual(head.status, 200)
            self.assertEqual(head.headers["ETag"], '"c"')
            self.assertEqual(head.headers["X-Repo-Commit"], self.LINKED["X_Repo_Commit"])
            self.assertEqual(head.headers["X-Linked-Etag"], self.LINKED["X_Linked_Etag"])
            self.assertEqual(head.headers["Content-Length"], "8")
            first = http.ask(url, Range="bytes=0-0")
            self.assertEqual((first.status, first.body), (206, b"{"))
            self.assertEqual(first.headers["Content-Range"], "bytes 0-0/8")
        self.assertLessEqual(hub.body_bytes(), 9)

    def test_redirects_that_the_client_must_see(self):
        """Status, Location and the X-Linked fields; nothing of the store is asked."""
        hub = self.hub()
        http = self.http_node(pass_redirects=hub.authority)
        url = http.prefix(hub.url("/org/model/resolve/main/weights"))
        for method in ("HEAD", "GET"):
            answer = http.ask(url, method, Accept_Encoding="identity")
            self.assertEqual(answer.status, 302)
            self.assertEqual(answer.headers["Location"], self.store.url("/weights?signed=1"))
            for name, value in self.linked.items():
                self.assertEqual(answer.headers[name.replace("_", "-")], value)
        self.assertEqual(self.store.asked(), [])

    def test_a_relative_redirect_leads_on(self):
        """The client resolves it against the URL that it has asked, and arrives."""
        hub = self.hub()
        for options in ({"origin": hub.url()}, {}):
            http = self.http_node(pass_redirects=hub.authority, **options)
            path = "/org/model/resolve/main/moved.json"
            url = http.url(path) if options else http.prefix(hub.url(path))
            done = self.curl("-f", "-L", url)
            self.assertEqual(done.stdout, b'{"a": 1}', options)

    def test_followed_where_nothing_is_said(self):
        hub = self.hub()
        http = self.http_node()
        url = http.prefix(hub.url("/org/model/resolve/main/weights"))
        first = http.ask(url, Range="bytes=0-0")
        self.assertEqual((first.status, first.body), (206, self.true[:1]))
        self.assertTrue(http.ask(url).body == self.true)
        self.assertEqual(self.store.body_bytes(), self.size + 1)


if __name__ == "__main__":
    main()
