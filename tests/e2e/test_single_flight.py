"""Many readers of one cold file cost the origin that file once."""

import os
import subprocess
import time

import trees
from harness import MIB, SLOW, Case, main, sized

READERS = 32
MOST = 1.01  # origin bytes, of the file's size
GIVEN_UP_BLOCKS = 4  # under way for a reader of 9 MiB: its own and the first window ahead


class SingleFlight(Case):
    limit = 300

    def setUp(self):
        super().setUp()
        self.root = self.dir("tree")
        self.size = sized(512, 64) * MIB
        trees.write_random(os.path.join(self.root, "file"), self.size, 21)
        trees.age(self.root)
        self.server = self.origin(self.root)

    def compare(self, node, count, *options):
        """So many processes compare the file with the original, all at once."""
        command = ["cmp", *options, node.path("file"), os.path.join(self.root, "file")]
        readers = [self.spawn(*command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                   for _ in range(count)]
        for reader in readers:
            said, _ = reader.communicate(timeout=280 * SLOW)
            self.assertEqual(reader.returncode, 0, said)

    def sent(self, name="file"):
        return self.server.body_bytes("/" + name) / self.size

    def test_processes_read_one_cold_file(self):
        node = self.node(self.server.url())
        began = time.monotonic()
        self.compare(node, READERS)
        print(f"  {READERS} readers of {self.size // MIB} MiB: origin sent {self.sent():.5f} x, "
              f"{time.monotonic() - began:.1f} s", flush=True)
        self.assertLessEqual(self.sent(), MOST)
        status = node.settle()
        self.assertLessEqual(status["inflight"]["bytes"], status["inflight"]["limit_bytes"])
        self.assertEqual(len(node.held("file")), self.size // (4 * MIB))

    def test_readers_that_come_one_after_another_and_at_other_places(self):
        """Two from the start, one from the middle: still once, and who gives up wastes at most the
        blocks that were fetched for nobody else at that moment."""
        node = self.node(self.server.url())
        half = str(self.size // 2)
        middle = self.spawn("cmp", f"--ignore-initial={half}", node.path("file"),
                            os.path.join(self.root, "file"))
        for _ in range(4):
            gives_up = self.spawn("head", "-c", str(9 * MIB), node.path("file"),
                                  stdout=subprocess.DEVNULL)
            time.sleep(0.05)
            gives_up.kill()
        self.compare(node, 2)
        self.assertEqual(middle.wait(timeout=200 * SLOW), 0)
        print(f"  origin sent {self.sent():.5f} x", flush=True)
        self.assertLessEqual(self.sent(), MOST + 4 * GIVEN_UP_BLOCKS * 4 * MIB / self.size)


if __name__ == "__main__":
    main()
