"""The sources other than one directory: catalogues and `any`; and what lists cost an origin."""

import errno
import hashlib
import os
import signal
import subprocess

from harness import MIB, SANITIZER, Case, main, run, sized, wait_until


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def read(path):
    with open(path, "rb") as file:
        return file.read()


class Catalogues(Case):
    def setUp(self):
        super().setUp()
        self.file = os.path.join(self.temp, "images.tsv")
        self.server = self.origin(self.dir("tree"), index="none")

    def add(self, path, data):
        with open(os.path.join(self.temp, "tree", path), "wb") as file:
            file.write(data)
        return self.server.url("/" + path)

    def write(self, *lines):
        with open(self.file + ".new", "w") as file:
            for line in lines:
                file.write("\t".join(str(column) for column in line) + "\n")
        os.rename(self.file + ".new", self.file)

    def mount(self, **options):
        return self.node("catalog:" + self.file, **options)

    def test_no_request_until_a_file_is_opened(self):
        data = os.urandom(3 * MIB)
        url = self.add("a.img", data)
        self.write(("vm/deep/a.img", url, len(data), digest(data)), ("vm/b.img", url, 5))
        node = self.mount()
        self.assertEqual(os.listdir(node.mountpoint), ["vm"])
        self.assertEqual(sorted(os.listdir(node.path("vm"))), ["b.img", "deep"])
        listed = run("ls", "-lR", node.mountpoint).stdout.decode()
        self.assertIn(str(len(data)), listed)
        self.assertEqual(os.stat(node.path("vm", "deep", "a.img")).st_size, len(data))
        with self.assertRaises(FileNotFoundError):
            os.stat(node.path("vm", "absent"))
        run("find", node.mountpoint, "-ls")
        self.assertEqual(self.server.requests(), 0)
        self.assertEqual(read(node.path("vm", "deep", "a.img")), data)
        wait_until(lambda: os.getxattr(node.path("vm", "deep", "a.img"),
                                       "user.dartfs.verified") == b"1", 30, "verified")
        self.assertEqual(os.getxattr(node.path("vm", "deep", "a.img"), "user.dartfs.url"),
                         url.encode())
        explained = node.explain(node.path("vm", "deep", "a.img"))
        self.assertTrue(explained["object"]["verified"])
        self.assertEqual(explained["digest"], digest(data))

    def test_without_a_size_the_origin_is_asked(self):
        url = self.add("a", b"x" * 12345)
        self.write(("a", url), ("b", url, "-", "-"))
        node = self.mount()
        self.assertEqual(os.stat(node.path("a")).st_size, 12345)
        self.assertEqual(os.stat(node.path("b")).st_size, 12345)
        self.assertEqual(self.server.requests(), 1)

    def test_a_wrong_size_is_never_seen_in_the_bytes(self):
        data = os.urandom(300_000)
        url = self.add("a", data)
        self.write(("short", url, 100_000), ("long", url + "?l", 900_000), ("none", url + "?n", 0),
                   ("right", url + "?r", len(data)))
        node = self.mount()
        for name in ("short", "long", "none", "right"):
            with self.subTest(name):
                os.stat(node.path(name))
                self.assertEqual(read(node.path(name)), data)
                self.assertEqual(os.stat(node.path(name)).st_size, len(data))
                self.assertEqual(read(node.path(name)), data)
        self.assertEqual(run("cat", node.path("long")).stdout, data)
        with open(node.log_file) as log:
            told = [line for line in log if "as the catalogue states" in line]
        self.assertEqual(len(told), 3, told)
        self.assertIn("images.tsv:1: ", told[0])

    def test_another_version_of_the_stated_size(self):
        url = self.add("a", b"first")
        self.write(("a", url, 5))
        node = self.mount(ttl="0")
        self.assertEqual(read(node.path("a")), b"first")
        for data in (b"secnd", b"third"):
            self.add("a.new", data)
            os.rename(os.path.join(self.temp, "tree", "a.new"),
                      os.path.join(self.temp, "tree", "a"))
            wait_until(lambda: self.opens_as(node.path("a"), data), 20, "the new version")

    def opens_as(self, path, data):
        try:
            return read(path) == data
        except OSError as error:
            self.assertEqual(error.errno, errno.ESTALE)
            return False

    def test_a_digest_refuses_other_bytes(self):
        data = os.urandom(2 * MIB)
        url = self.add("a", data)
        wrong = digest(b"other bytes")
        self.write(("a", url + "?token=secret", len(data), wrong))
        node = self.mount()

        def refused():
            try:
                read(node.path("a"))
            except OSError as error:
                return error.errno == errno.EIO
            return False
        wait_until(refused, 30, "the bytes are refused")
        with open(node.log_file) as log:
            text = log.read()
        self.assertTrue(any(url in line and wrong in line for line in text.splitlines()))
        self.assertNotIn("secret", text)
        self.assertEqual(node.status()["cache"]["used_bytes"], 0)

    def test_the_same_digest_is_fetched_once(self):
        data = os.urandom(5 * MIB)
        first, second = self.add("a", data), self.add("b", data)
        self.write(("a", first, "-", digest(data)), ("b", second, "-", digest(data)))
        node = self.mount()
        self.assertEqual(read(node.path("a")), data)
        wait_until(lambda: os.getxattr(node.path("a"), "user.dartfs.verified") == b"1", 30,
                   "verified")
        self.assertEqual(read(node.path("b")), data)
        self.assertLess(self.server.body_bytes("/b"), 1000)

    def test_errors_name_the_line(self):
        for line, says in ((("../a", "http://h/a"), "'..'"), (("a", "ftp://h/a"), "http"),
                           (("a",), "no URL"), (("b/c", "http://h/c"), "file in line 2")):
            with self.subTest(line):
                self.write(("# comment",), ("b", "http://h/b"), line)
                code, said = self.node("catalog:" + self.file, start=False).try_start()
                self.assertNotEqual(code, 0)
                self.assertIn(f"{self.file}:3: ", said)
                self.assertIn(says, said)
        code, said = self.node("catalog:" + self.temp + "/absent.tsv", start=False).try_start()
        self.assertNotEqual(code, 0)
        self.assertIn("absent.tsv: No such file", said)

    def test_sighup_reads_it_anew(self):
        url = self.add("a", b"hello")
        self.write(("old", url, 5))
        node = self.mount(ttl="1s")
        held = open(node.path("old"), "rb")
        self.addCleanup(held.close)
        self.write(("new", url, 5), ("d/new", url, 5))
        os.kill(node.pid, signal.SIGHUP)
        wait_until(lambda: sorted(os.listdir(node.mountpoint)) == ["d", "new"], 30, "new names")
        self.assertEqual(read(node.path("d", "new")), b"hello")
        self.assertEqual(held.read(), b"hello")

        def gone():
            try:
                os.stat(node.path("old"))
            except FileNotFoundError:
                return True
            return False
        wait_until(gone, 30, "the old name is forgotten")
        self.write(("new", url, 5), ("new", url, 5))
        os.kill(node.pid, signal.SIGHUP)

        def told():
            with open(node.log_file) as log:
                return "images.tsv:2: " in log.read()
        wait_until(told, 30, "the log says what is wrong")
        self.assertEqual(sorted(os.listdir(node.mountpoint)), ["d", "new"])

    def test_names_as_bytes(self):
        url = self.add("a", b"hello")
        names = [b"\xff\xfe", b"a b", b"tab\there", b"new\nline", "ü".encode(), b"#x", b"a%2Fb"]
        with open(self.file, "wb") as file:
            for name in names:
                name = name.replace(b"\t", b"\\t").replace(b"\n", b"\\n").replace(b"#", b"\\x23")
                file.write(name + b"\t" + url.encode() + b"\t5\r\n")
        node = self.mount()
        self.assertEqual(sorted(os.listdir(os.fsencode(node.mountpoint))), sorted(names))
        for name in names:
            self.assertEqual(read(node.path(name)), b"hello")

    def test_many_names_give_their_memory_back(self):
        count = sized(200_000, 20_000)
        with open(self.file, "w") as file:
            for i in range(count):
                file.write(f"dir{i // 1000}/image-{i}.qcow2\t"
                           f"http://127.0.0.1:1/pool/image-{i}.qcow2?versionId={i}\t"
                           f"{i}\tsha256:{i:064x}\n")
        node = self.mount()
        before = rss(node)
        nodes = node_count(node)
        found = subprocess.run(["find", node.mountpoint, "-type", "f", "-size", "-1000000000c"],
                               stdout=subprocess.PIPE, check=True)
        self.assertEqual(found.stdout.count(b"\n"), count)
        after = rss(node)
        with open("/proc/sys/vm/drop_caches", "w") as file:
            file.write("2\n")
        wait_until(lambda: node_count(node) <= nodes + 1000, 30, "the kernel forgets the nodes")
        if SANITIZER:
            return  # it keeps what is freed
        wait_until(lambda: rss(node) < before + 0.2 * max(after - before, 20 * MIB), 30,
                   f"the memory is given back: {before}, {after}, now {rss(node)}", 0.5)
        print(f"{count} files: {before // MIB} MiB, after find {after // MIB}, "
              f"after drop_caches {rss(node) // MIB}")


def rss(node):
    with open(f"/proc/{node.pid}/status") as file:
        for line in file:
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
    raise AssertionError("no VmRSS")


def node_count(node):
    """What statvfs calls files: the names that the kernel knows."""
    return os.statvfs(node.mountpoint).f_files


class Any(Case):
    def setUp(self):
        super().setUp()
        root = self.dir("tree")
        os.makedirs(os.path.join(root, "pool"))
        with open(os.path.join(root, "pool", "a b.img"), "wb") as file:
            file.write(b"hello")
        self.server = self.origin(root, index="nginx")
        self.host = self.server.authority

    def test_urls_as_paths(self):
        node = self.node("any")
        self.assertEqual(sorted(os.listdir(node.mountpoint)), ["http", "https"])
        self.assertEqual(os.listdir(node.path("http")), [])
        self.assertTrue(os.path.isdir(node.path("https", "nowhere.invalid")))
        self.assertEqual(self.server.requests(), 0)
        self.assertEqual(os.listdir(node.path("http", self.host)), ["pool"])
        self.assertEqual(os.listdir(node.path("http", self.host, "pool")), ["a b.img"])
        self.assertEqual(read(node.path("http", self.host, "pool", "a b.img")), b"hello")
        self.assertEqual(read(node.path("http", self.host, "pool%2Fa%2520b.img%3Fv=1")), b"hello")
        self.assertEqual(os.listdir(node.path("http")), [self.host])

    def test_what_is_no_host_costs_no_request(self):
        node = self.node("any")
        for name in (".Trash", ".Trash-0", "a b", "user@" + self.host, "h:0", "autorun.inf"):
            with self.subTest(name), self.assertRaises(FileNotFoundError):
                os.stat(node.path("http", name))
        for name in ("ftp", ".Trash"):
            with self.subTest(name), self.assertRaises(FileNotFoundError):
                os.stat(node.path(name))
        self.assertEqual(self.server.requests(), 0)

    def test_listings_outlive_a_restart_without_the_origin(self):
        node = self.node("any")
        self.assertEqual(read(node.path("http", self.host, "pool", "a b.img")), b"hello")
        self.assertEqual(os.listdir(node.path("http", self.host, "pool")), ["a b.img"])
        node.settle()
        node.kill9()
        self.server.stop()
        node.start()
        self.assertEqual(os.listdir(node.path("http", self.host, "pool")), ["a b.img"])
        self.assertEqual(read(node.path("http", self.host, "pool", "a b.img")), b"hello")

    def test_the_address_policy_holds(self):
        node = self.node("any")
        with self.assertRaises(OSError):
            os.stat(node.path("http", "169.254.169.254", "latest"))

    def test_explain(self):
        node = self.node("any")
        path = node.path("http", self.host, "pool", "a b.img")
        self.assertEqual(read(path), b"hello")
        self.assertTrue(node.explain(path)["opened"])


class Walks(Case):
    """What looking at names costs the origin."""

    def tree(self, index, files=300):
        root = self.dir("tree")
        for i in range(files):
            with open(os.path.join(root, f"f{i:04}"), "wb") as file:
                file.write(b"x" * i)
        return self.origin(root, index=index)

    def test_find_without_stat_costs_the_listings_only(self):
        for index in ("nginx", "apache", "python", "json", "s3"):
            with self.subTest(index):
                server = self.tree(index)
                node = self.node(server.url())
                found = run("find", node.mountpoint, "-name", "f*").stdout
                self.assertEqual(found.count(b"\n"), 300)
                self.assertLessEqual(server.requests(), 3)
                node.stop()
                server.stop()

    def test_exact_sizes_of_a_listing_need_no_probes(self):
        for index in ("json", "s3"):
            with self.subTest(index):
                server = self.tree(index)
                node = self.node(server.url())
                run("ls", "-l", node.mountpoint)
                self.assertEqual([os.stat(node.path(f"f{i:04}")).st_size for i in range(300)],
                                 list(range(300)))
                self.assertLessEqual(server.requests(), 3)
                self.assertEqual(read(node.path("f0299")), b"x" * 299)
                node.stop()
                server.stop()

    def test_a_file_that_grew_since_it_was_listed(self):
        server = self.tree("json", 5)
        node = self.node(server.url())
        os.listdir(node.mountpoint)
        self.assertEqual(os.stat(node.path("f0004")).st_size, 4)
        with open(os.path.join(self.temp, "tree", "f0004"), "wb") as file:
            file.write(b"grown longer")
        self.assertEqual(read(node.path("f0004")), b"grown longer")
        self.assertEqual(os.stat(node.path("f0004")).st_size, 12)

    def test_ls_asks_for_each_file_once(self):
        server = self.tree("nginx")
        server.set(delay_ms=5)
        node = self.node(server.url())
        for _ in range(2):
            run("ls", "-l", node.mountpoint)
        self.assertLessEqual(server.requests(), 303)


if __name__ == "__main__":
    main()
