"""Same URL, new bytes of the same size, while readers hold it open: the new version is seen after
the TTL by a new open, an old handle gets old bytes or ESTALE, and nobody ever gets a mix."""

import errno
import mmap
import os
import threading
import time

import trees
from harness import BLOCK, KIB, MIB, SLOW, Case, main, sized, wait_until

TTL = 1


class Versions(Case):
    def setUp(self):
        super().setUp()
        self.root = self.dir("tree")
        self.size = sized(32, 12) * MIB + 77
        self.generations = {}
        self.publish(0)
        self.server = self.origin(self.root)

    def publish(self, generation, size=None):
        """Replaces the file at once, as a careful publisher does."""
        path = os.path.join(self.root, "file")
        trees.write_random(path + ".new", size or self.size, 1000 + generation)
        with open(path + ".new", "rb") as file:
            self.generations[generation] = file.read()
        moment = 1_700_000_000 + 100 * generation
        os.utime(path + ".new", (moment, moment))
        os.rename(path + ".new", path)

    def mount(self, **options):
        return self.node(self.server.url(), ttl=f"{TTL}s", **options)

    def generation_of(self, content):
        for number, wanted in self.generations.items():
            if content == wanted:
                return number
        return None

    def read(self, node):
        with open(node.path("file"), "rb") as file:
            return file.read()

    def await_generation(self, node, number):
        """A new open sees it once the TTL has passed."""
        def seen():
            try:
                found = self.generation_of(self.read(node))
            except OSError as error:
                self.assertEqual(error.errno, errno.ESTALE)
                return False
            self.assertIsNotNone(found, "a mix of versions")
            return found == number
        wait_until(seen, 20 * SLOW, f"generation {number} is seen", 0.2)

    def test_a_new_open_sees_it_and_an_old_handle_never_a_mix(self):
        node = self.mount()
        old = os.open(node.path("file"), os.O_RDONLY)
        self.addCleanup(os.close, old)
        first = os.pread(old, MIB, 0)
        self.assertEqual(first, self.generations[0][:MIB])
        self.publish(1)
        self.await_generation(node, 1)
        stale = 0
        for offset in range(0, self.size, MIB):
            try:
                piece = os.pread(old, MIB, offset)
            except OSError as error:
                self.assertEqual(error.errno, errno.ESTALE)
                stale += 1
                continue
            self.assertEqual(piece, self.generations[0][offset:offset + MIB], "an old handle")
        print(f"  old handle: {stale} of {self.size // MIB + 1} reads ESTALE", flush=True)
        self.assertEqual(os.fstat(old).st_size, self.size)
        self.assertEqual(os.pread(old, MIB, 0), first, "what is cached stays readable")

    def test_a_mapping_of_the_old_version(self):
        node = self.mount()
        self.assertEqual(self.generation_of(self.read(node)), 0)
        with open(node.path("file"), "rb") as file:
            view = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self.addCleanup(view.close)
        self.assertEqual(view[:MIB], self.generations[0][:MIB])
        self.publish(1)
        self.await_generation(node, 1)
        for offset in range(0, self.size, 4 * MIB):
            self.assertEqual(view[offset:offset + 4096], self.generations[0][offset:offset + 4096])

    def test_change_in_the_middle_of_a_cold_read(self):
        """The origin changes between two blocks: old bytes, then ESTALE or an error, not a mix."""
        self.server.set(rate="8MB")
        node = self.mount(read_ahead="0B")
        with open(node.path("file"), "rb", buffering=0) as file:
            got = file.read(256 * KIB)
            self.publish(1)
            try:
                while piece := file.read(256 * KIB):
                    got += piece
            except OSError as error:
                self.assertIn(error.errno, (errno.ESTALE,))
            else:
                self.assertEqual(len(got), self.size)
        self.assertEqual(got, self.generations[0][:len(got)], "a mix")
        self.server.set(rate="0")
        self.await_generation(node, 1)

    def test_readers_through_many_changes(self):
        node = self.mount()
        mixes, seen, end = [], set(), threading.Event()

        def reader():
            while not end.is_set():
                try:
                    content = self.read(node)
                except OSError as error:
                    if error.errno != errno.ESTALE:
                        mixes.append(repr(error))
                    continue
                number = self.generation_of(content)
                if number is None:
                    mixes.append(f"a mix of {len(content)} bytes")
                else:
                    seen.add(number)
        readers = [threading.Thread(target=reader) for _ in range(3)]
        for thread in readers:
            thread.start()
        for number in range(1, 6):
            time.sleep(0.9)
            self.publish(number)
        end.set()
        for thread in readers:
            thread.join(60 * SLOW)
            self.assertFalse(thread.is_alive())
        self.await_generation(node, 5)
        print(f"  generations seen: {sorted(seen)}", flush=True)
        self.assertEqual(mixes, [])

    def test_other_sizes(self):
        node = self.mount()
        self.assertEqual(self.generation_of(self.read(node)), 0)
        for number, size in ((1, BLOCK + 1), (2, 10), (3, 3 * BLOCK)):
            self.publish(number, size)
            self.await_generation(node, number)
            self.assertEqual(os.stat(node.path("file")).st_size, size)

    def test_a_file_that_is_removed(self):
        node = self.mount()
        held = open(node.path("file"), "rb")
        self.addCleanup(held.close)
        self.assertEqual(self.generation_of(self.read(node)), 0)
        os.unlink(os.path.join(self.root, "file"))

        def gone():
            return not os.path.exists(node.path("file"))
        wait_until(gone, 20 * SLOW, "a new open finds nothing", 0.2)
        self.assertEqual(held.read(), self.generations[0], "blocks stay until evicted")

    def test_unchanged_files_are_kept_over_the_ttl(self):
        """One conditional request, no bytes, and the page cache stays."""
        node = self.mount()
        self.read(node)
        time.sleep(TTL * 1.5)
        self.server.reset_stats()
        self.assertEqual(self.generation_of(self.read(node)), 0)
        self.assertLess(self.server.body_bytes("/file"), 1000)

    def test_immutable_is_never_asked_again(self):
        node = self.mount(immutable=True)
        self.read(node)
        time.sleep(TTL * 1.5)
        self.server.reset_stats()
        self.assertEqual(self.generation_of(self.read(node)), 0)
        self.assertEqual(self.server.requests("/file"), 0)

    def test_unversioned_objects_are_forgotten_at_a_restart(self):
        self.server.faults({"fault": "no-etag", "path": "/file"},
                           {"fault": "no-last-modified", "path": "/file"})
        node = self.mount()
        self.assertEqual(self.generation_of(self.read(node)), 0)
        node.stop()
        self.publish(1)
        node.start()
        self.assertEqual(self.generation_of(self.read(node)), 1)


if __name__ == "__main__":
    main()
