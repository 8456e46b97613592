"""The registry mirror between skopeo and Debian's docker-registry: by the registry's own log, each
byte of a blob leaves it once."""

import hashlib
import json
import os

from harness import MIB, Case, main, sized
from registry import (PASSWORD, REPOSITORY, TAG, USER, Containerd, Image, Registry, TokenServer,
                      basic, pull, push)

LOGIN = f"{USER}:{PASSWORD}"
MANIFEST = f"/v2/{REPOSITORY}/manifests/{TAG}"
OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json"


class Mirror(Case):
    def setUp(self):
        super().setUp()
        self.image = Image(self.dir("image"), [sized(20, 6) * MIB, sized(9, 3) * MIB, 1000])

    def upstream(self, auth=None):
        registry = Registry(self, auth)
        push(self.image, registry, LOGIN if auth else None)
        registry.forget_log()
        return registry

    def mirror(self, registry, **options):
        return self.http_node(registry=registry.url(), **options)

    def login_file(self, authority, password=PASSWORD):
        path = os.path.join(self.temp, "logins.json")
        with open(path, "w") as file:
            json.dump({authority: {"username": USER, "password": password}}, file)
        os.chmod(path, 0o600)
        return path

    def blob(self, digest):
        return f"/v2/{REPOSITORY}/blobs/{digest}"

    def pull_twice(self, http, login=None):
        for number in (1, 2):
            out = os.path.join(self.temp, f"copy{number}")
            pull(http.authority, out, login)
            self.assert_image(out)

    def assert_image(self, directory):
        for digest in self.image.blobs:
            with open(os.path.join(directory, digest.partition(":")[2]), "rb") as file:
                self.assertEqual("sha256:" + hashlib.sha256(file.read()).hexdigest(), digest)
        with open(os.path.join(directory, "manifest.json"), "rb") as file:
            self.assertEqual("sha256:" + hashlib.sha256(file.read()).hexdigest(),
                             self.image.manifest)

    def assert_each_byte_once(self, registry):
        """But for probes of one byte, at most one a blob."""
        sent = registry.bodies()
        self.assertEqual(set(sent), set(self.image.blobs))
        for digest, sizes in sent.items():
            self.assertEqual(sum(size for size in sizes if size > 1), self.image.blobs[digest],
                             f"{digest}: {sizes}")
            self.assertLessEqual(sizes.count(1), 1, f"{digest}: {sizes}")


class Anonymous(Mirror):
    def test_two_copies_cost_one_and_a_layer_by_its_url_nothing(self):
        registry = self.upstream()
        http = self.mirror(registry)
        self.pull_twice(http)
        self.assert_each_byte_once(registry)
        manifests = registry.bodies("manifests")
        self.assertGreaterEqual(sum(map(len, manifests.values())), 2, "a manifest was cached")
        registry.forget_log()
        for digest in self.image.layers:
            answer = http.ask(http.prefix(registry.url(self.blob(digest))))
            self.assertEqual(answer.status, 200)
            self.assertTrue(answer.body == self.image.bytes_of(digest))
        self.assertEqual(registry.bodies(), {})

    def test_a_moved_tag_is_seen_at_once(self):
        registry = self.upstream()
        http = self.mirror(registry)
        pull(http.authority, os.path.join(self.temp, "before"))
        self.image = Image(self.dir("other"), [2000, 3000])
        push(self.image, registry)
        pull(http.authority, os.path.join(self.temp, "after"))
        self.assert_image(os.path.join(self.temp, "after"))

    def test_heads_as_containerd_and_crane_want_them(self):
        registry = self.upstream()
        http = self.mirror(registry)
        for method in ("HEAD", "GET"):
            answer = http.ask(MANIFEST, method, Accept=OCI_MANIFEST)
            self.assertEqual(answer.status, 200)
            self.assertEqual(answer.headers["Docker-Content-Digest"], self.image.manifest)
            self.assertEqual(answer.headers["Content-Type"], OCI_MANIFEST)
            self.assertGreater(int(answer.headers["Content-Length"]), 100)
        layer = self.image.layers[0]
        head = http.ask(self.blob(layer), "HEAD")
        self.assertEqual(head.status, 200)
        self.assertEqual(head.headers["Content-Length"], str(self.image.blobs[layer]))
        self.assertEqual(head.headers["Docker-Content-Digest"], layer)
        part = http.ask(self.blob(layer), Range="bytes=1000-")
        self.assertEqual(part.status, 206)
        self.assertTrue(part.body == self.image.bytes_of(layer)[1000:])
        missing = http.ask(self.blob("sha256:" + "0" * 64))
        self.assertEqual(missing.status, 404)
        self.assertIn("errors", json.loads(missing.body))
        self.assertEqual(http.ask("/v2/").status, 200)
        tags = http.ask(f"/v2/{REPOSITORY}/tags/list")
        self.assertEqual(json.loads(tags.body)["tags"], [TAG])

    def test_nothing_can_be_written(self):
        registry = self.upstream()
        http = self.mirror(registry)
        for method, path in (("POST", f"/v2/{REPOSITORY}/blobs/uploads/"), ("PUT", MANIFEST),
                             ("PATCH", f"/v2/{REPOSITORY}/blobs/uploads/1"),
                             ("DELETE", f"/v2/{REPOSITORY}/manifests/{self.image.manifest}")):
            answer = http.ask(path, method)
            self.assertEqual(answer.status, 405, method)
            self.assertIn("GET", answer.headers["Allow"])
            self.assertEqual(answer.headers.get_content_type(), "application/json")
            self.assertTrue(json.loads(answer.body)["errors"][0]["code"])
        self.assertEqual(registry.logged(), [])

    def test_ns_names_a_registry_that_is_allowed(self):
        registry, other = self.upstream(), self.upstream()
        http = self.http_node(registry_allow=[registry.authority])
        layer = self.image.layers[1]
        for number in range(2):
            answer = http.ask(f"{MANIFEST}?ns={registry.authority}", Accept=OCI_MANIFEST)
            self.assertEqual(answer.status, 200)
            self.assertEqual(answer.headers["Docker-Content-Digest"], self.image.manifest)
            answer = http.ask(f"{self.blob(layer)}?ns={registry.authority}")
            self.assertTrue(answer.body == self.image.bytes_of(layer))
        self.assertEqual(sum(sum(sizes) for sizes in registry.bodies().values()),
                         self.image.blobs[layer] + 1)
        self.assertNotIn("ns=", "".join(each.target for each in registry.logged()))
        for query in (f"?ns={other.authority}", ""):
            refused = http.ask(MANIFEST + query)
            self.assertIn(refused.status, (403, 404), query)
            self.assertIn("errors", json.loads(refused.body))
        self.assertEqual(other.logged(), [])

    def test_two_containerds_with_a_hosts_toml(self):
        """They name the registry by ns=."""
        registry = self.upstream()
        http = self.http_node(registry_allow=[registry.authority])
        for name in ("first", "second"):
            containerd = Containerd(self, name, registry, http)
            containerd.fetch()
            for digest in self.image.blobs:
                self.assertTrue(containerd.content(digest) == self.image.bytes_of(digest), digest)
        self.assert_each_byte_once(registry)

    def test_warm_without_the_registry(self):
        registry = self.upstream()
        http = self.mirror(registry)
        pull(http.authority, os.path.join(self.temp, "copy"))
        http.settle()
        registry.stop()
        http.restart()
        for digest in self.image.blobs:
            answer = http.ask(self.blob(digest))
            self.assertTrue(answer.body == self.image.bytes_of(digest), digest)
        self.assertEqual(http.ask(MANIFEST).status, 502)


class WithALogin(Mirror):
    """What a registry with Basic and one with a token server have in common."""

    def check_client_login(self, registry, **options):
        http = self.mirror(registry, **options)
        self.pull_twice(http, LOGIN)
        self.assert_each_byte_once(registry)

    def check_operator_login(self, registry, **options):
        http = self.mirror(registry, registry_auth=self.login_file(registry.authority), **options)
        self.pull_twice(http)
        self.assert_each_byte_once(registry)
        for wrong in (basic(USER, "wrong"), "Bearer wrong"):
            refused = http.ask(MANIFEST, Authorization=wrong)
            self.assertEqual(refused.status, 401, "the operator's login stood in for a wrong one")

    def check_wrong_login(self, registry, **options):
        http = self.mirror(registry, **options)
        done = pull(http.authority, os.path.join(self.temp, "no"), f"{USER}:wrong", check=False)
        self.assertNotEqual(done.returncode, 0)
        for path in (MANIFEST, self.blob(self.image.layers[0])):
            for named in ({}, {"Authorization": basic(USER, "wrong")},
                          {"Authorization": "Bearer wrong"}):
                answer = http.ask(path, **named)
                self.assertEqual(answer.status, 401, (path, named))
                self.assertTrue(answer.headers["WWW-Authenticate"], (path, named))
                self.assertTrue(json.loads(answer.body)["errors"], (path, named))
        self.assertEqual(registry.bodies(), {})


class Basic(WithALogin):
    def test_with_the_clients_login(self):
        self.check_client_login(self.upstream("basic"))

    def test_with_the_operators_login(self):
        self.check_operator_login(self.upstream("basic"))

    def test_with_a_wrong_login(self):
        self.check_wrong_login(self.upstream("basic"))

    def test_a_wrong_operators_login_is_a_401(self):
        registry = self.upstream("basic")
        http = self.mirror(registry, registry_auth=self.login_file(registry.authority, "hunter2"))
        self.assertEqual(http.ask(MANIFEST).status, 401)
        self.assertNotIn("hunter2", http.log_text())
        self.assertNotIn(basic(USER, "hunter2").partition(" ")[2], http.log_text())


class Tokens(WithALogin):
    def test_with_the_clients_login(self):
        self.check_client_login(self.upstream(TokenServer(self)))

    def test_with_the_operators_login(self):
        """One exchange a scope serves all that follow; /v2/ itself has none."""
        server = TokenServer(self)
        registry = self.upstream(server)
        del server.asked[:]
        self.check_operator_login(registry, registry_realm=f"127.0.0.1:{server.port}")
        with_login = [scopes for scopes, given in server.asked if given == basic()]
        self.assertEqual(with_login, [[], [f"repository:{REPOSITORY}:pull"]])

    def test_with_a_wrong_login(self):
        self.check_wrong_login(self.upstream(TokenServer(self)))

    def test_a_token_server_elsewhere_never_sees_the_operators_login(self):
        server = TokenServer(self, host="localhost")
        registry = self.upstream(server)
        del server.asked[:]
        http = self.mirror(registry, registry_auth=self.login_file(registry.authority))
        self.assertEqual(http.ask(MANIFEST).status, 401)
        self.assertEqual([given for _, given in server.asked if given], [])
        self.assertEqual(registry.bodies("manifests"), {})

    def test_a_hundred_cold_clients_cost_one_token(self):
        server = TokenServer(self)
        registry = self.upstream(server)
        del server.asked[:]
        http = self.mirror(registry, registry_auth=self.login_file(registry.authority),
                           registry_realm=f"127.0.0.1:{server.port}")
        path = self.blob(self.image.layers[0])
        clients = [self.spawn("curl", "-sf", "-o", os.path.join(self.temp, f"c{i}"), http.url(path))
                   for i in range(sized(100, 30))]
        for i, client in enumerate(clients):
            self.assertEqual(client.wait(timeout=100), 0)
            with open(os.path.join(self.temp, f"c{i}"), "rb") as file:
                self.assertTrue(file.read() == self.image.bytes_of(self.image.layers[0]))
        self.assertEqual(len(server.asked), 1)
        self.assertEqual(sum(registry.bodies()[self.image.layers[0]]),
                         self.image.blobs[self.image.layers[0]] + 1)


if __name__ == "__main__":
    main()
