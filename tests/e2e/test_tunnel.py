"""Tunnels through the node (CONNECT), as curl makes them."""

import os
import subprocess

from harness import SLOW, Case, main, program, run
from test_activation import Client, listening, port_of


class Tunnel(Case):
    def setUp(self):
        super().setUp()
        self.server = self.origin(self.dir("tree"))
        self.server.add_file("/a", text="through")
        spare = listening()
        self.port = port_of(spare)
        spare.close()

    def start(self, *more):
        self.process = self.spawn(
            program("dartfs"), "--no-mount", "-f", "--cache-dir", os.path.join(self.temp, "cache"),
            "--listen", f"127.0.0.1:{self.port}", "--log-level", "warn", *more,
            env=self.environment(), stderr=subprocess.PIPE)

    def curl(self, *arguments):
        return run("curl", "-sS", "--retry", "50", "--retry-connrefused", "--retry-delay", "1",
                   "-p", "-x", f"http://127.0.0.1:{self.port}", *arguments, check=False,
                   env=self.environment())

    def test_curl_gets_through_to_the_ports_that_are_named(self):
        self.start("--connect", f"443,{self.server.port}")
        self.assertEqual(self.curl(self.server.url("/a")).stdout, b"through")
        refused = self.curl("http://127.0.0.1:1/")
        self.assertEqual((refused.returncode, refused.stdout), (56, b""))
        self.assertIn(b"403", refused.stderr)
        # One that is open does not keep the node from ending.
        target = f"127.0.0.1:{self.server.port}"
        tunnel = Client(self.port, target, "CONNECT")
        self.assertIn(b" 200 ", tunnel.socket.recv(4096))
        self.process.terminate()
        self.assertEqual(self.process.wait(timeout=25 * SLOW), 0)
        self.assertRaises(ConnectionResetError, tunnel.socket.recv, 1)
        tunnel.socket.close()

    def test_none_without_the_option(self):
        self.start()
        refused = self.curl(self.server.url("/a"))
        self.assertIn(b"403", refused.stderr)


if __name__ == "__main__":
    main()
