"""HTTP sockets that the node is started with (sd_listen_fds(3)): held over its restarts by somebody
else, so that no client is refused."""

import os
import socket
import subprocess
import sys
import threading

import trees
from harness import SLOW, Case, main, program, run, wait_until

# As systemd starts a service: its sockets from descriptor 3 on, its own PID in the environment.
LAUNCH = """
import fcntl, os, sys
fds = [fcntl.fcntl(int(fd), fcntl.F_DUPFD, 64) for fd in sys.argv[1].split(",")]
for at, fd in enumerate(fds):
    os.dup2(fd, 3 + at, inheritable=True)
    os.close(fd)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(len(fds)), LISTEN_FDNAMES=sys.argv[2])
os.execv(sys.argv[3], sys.argv[3:])
"""


def listening(kind=socket.SOCK_STREAM, listens=True):
    made = socket.socket(socket.AF_INET, kind)
    made.bind(("127.0.0.1", 0))
    if listens:
        made.listen(128)
    return made


def port_of(sock):
    return sock.getsockname()[1]


class Client:
    """One request on a connection of its own; the answer is read later."""

    def __init__(self, port, target, method="GET"):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60 * SLOW)
        self.socket.sendall(f"{method} {target} HTTP/1.1\r\nHost: localhost\r\n"
                            "Connection: close\r\n\r\n".encode())

    def answer(self):
        """(status, body)"""
        with self.socket, self.socket.makefile("rb") as file:
            head, _, body = file.read().partition(b"\r\n\r\n")
        return int(head.split()[1]), body


def get(port, target):
    return Client(port, target).answer()


class Activation(Case):
    def setUp(self):
        super().setUp()
        root = self.dir("tree")
        with open(os.path.join(root, "hello"), "w") as file:
            file.write("hello\n")
        trees.age(root)
        self.target = "/dart/" + self.origin(root).url("/hello")
        self.log = os.path.join(self.temp, "log")

    def held(self, *arguments, **more):
        made = listening(*arguments, **more)
        self.addCleanup(made.close)
        return made

    def start(self, sockets, *more):
        """`sockets`: name and socket of each. It need not be ready on return."""
        fds = [sock.fileno() for _, sock in sockets]
        return self.spawn(sys.executable, "-c", LAUNCH, ",".join(map(str, fds)),
                          ":".join(name for name, _ in sockets), program("dartfs"), "--no-mount",
                          "-f", "--cache-dir", os.path.join(self.temp, "cache"), "--log-file",
                          self.log, *more, pass_fds=fds, env=self.environment(),
                          stderr=subprocess.PIPE)

    def stop(self, process):
        process.terminate()
        self.assertEqual(process.wait(timeout=40 * SLOW), 0, process.stderr.read())

    def test_who_asks_while_no_node_runs_is_answered_by_the_next(self):
        door = self.held()
        for _ in range(2):
            early = Client(port_of(door), self.target)
            process = self.start([("client", door)])
            self.assertEqual(early.answer(), (200, b"hello\n"))
            self.assertEqual(get(port_of(door), self.target), (200, b"hello\n"))
            self.stop(process)

    def test_a_restart_loses_no_request(self):
        door = self.held()
        url = f"http://127.0.0.1:{port_of(door)}{self.target}"
        failed = []
        done = []

        def ask():
            for number in range(200):
                got = run("curl", "-sS", "--fail", "--max-time", "60", url, check=False)
                if (got.returncode, got.stdout) != (0, b"hello\n"):
                    failed.append((number, got.returncode, got.stderr))
                done.append(number)

        process = self.start([("client", door)])
        clients = threading.Thread(target=ask)
        clients.start()
        restarts = 0
        try:
            for at in (20, 60, 100, 140):
                wait_until(lambda at=at: len(done) >= at, 60 * SLOW, "requests go on")
                self.stop(process)
                process = self.start([("client", door)])
                restarts += len(done) < 200
        finally:
            clients.join(timeout=120 * SLOW)
        self.assertEqual((failed, len(done), restarts), ([], 200, 4))
        self.stop(process)

    def test_names_say_what_a_socket_is_for(self):
        client, admin, peer = self.held(), self.held(), self.held()
        process = self.start([("client", client), ("admin", admin), ("peer", peer)])
        self.assertEqual(get(port_of(client), self.target), (200, b"hello\n"))
        for door in (admin, peer):
            self.assertEqual(get(port_of(door), self.target)[0], 404)
        with open(self.log) as file:
            log = file.read()
        for door, plane in ((client, "client"), (admin, "admin"), (peer, "peer")):
            self.assertIn(f"HTTP on 127.0.0.1:{port_of(door)} ({plane})\n", log)
        self.stop(process)

    def test_they_replace_the_addresses_of_the_options(self):
        one, two, admin = self.held(), self.held(), self.held()
        spare = listening()
        port = port_of(spare)
        spare.close()
        process = self.start([("client", one), ("", two), ("admin", admin)], "--listen",
                             f"127.0.0.1:{port}", "--admin", f"127.0.0.1:{port}")
        for door in (one, two):
            self.assertEqual(get(port_of(door), self.target), (200, b"hello\n"))
        with socket.socket() as probe:
            self.assertNotEqual(probe.connect_ex(("127.0.0.1", port)), 0)
        self.stop(process)

    def test_two_admin_sockets_do_not_stand_for_a_clients(self):
        one, two, spare = self.held(), self.held(), listening()
        port = port_of(spare)
        spare.close()
        process = self.start([("admin", one), ("admin", two)], "--listen", f"127.0.0.1:{port}")
        for door in (one, two):
            self.assertEqual(get(port_of(door), self.target)[0], 404)
        self.assertEqual(get(port, self.target), (200, b"hello\n"))
        self.stop(process)

    def test_what_does_not_listen_is_an_error(self):
        file = open(os.path.join(self.temp, "file"), "w")
        self.addCleanup(file.close)
        for unusable in (self.held(listens=False), self.held(socket.SOCK_DGRAM, listens=False),
                         file):
            process = self.start([("odd\x01name", unusable)])
            _, said = process.communicate(timeout=60 * SLOW)
            self.assertNotEqual(process.returncode, 0)
            self.assertIn(b"odd\\x01name", said)
            self.assertIn(b"no listening socket", said)


if __name__ == "__main__":
    main()
