"""Uses of a mounted tree by ordinary tools, each compared with the original."""

import mmap
import os
import random
import threading

import trees
from harness import KIB, run

LOOP_KINDS = {"root.squashfs": "squashfs", "root.erofs": "erofs", "root.ext4": "ext4"}


def loop_mounts(case, node, payload, direct_io=False):
    """Each image of the mount, mounted from there, walked and checksummed."""
    wanted = trees.digest_tree(payload, attributes=True)
    for name, kind in LOOP_KINDS.items():
        with case.subTest(image=name, direct_io=direct_io):
            loop = case.loop_mount(node.path("images", name), kind, direct_io)
            shown = trees.digest_tree(loop[0], attributes=True)
            shown.pop(b"lost+found", None)
            case.assertEqual(shown, wanted, trees.first_difference(shown, wanted))
            case.unmount_loop(loop)


def qemu_img(case, node, root):
    shown, true = (os.path.join(top, "images", "root.qcow2") for top in (node.mountpoint, root))
    run("qemu-img", "check", shown)
    run("qemu-img", "compare", "-U", shown, true)
    run("qemu-img", "compare", "-f", "qcow2", "-F", "raw", shown,
        os.path.join(root, "images", "root.ext4"))
    out = os.path.join(case.temp, "converted.raw")
    run("qemu-img", "convert", "-f", "qcow2", "-O", "raw", shown, out)
    case.assertEqual(trees.sha256_of(out), trees.sha256_of(os.path.join(root, "images",
                                                                        "root.ext4")))
    os.unlink(out)


def tar(case, node, payload):
    """Unpacked from the mount, and the mount itself packed."""
    out = case.dir("untarred")
    run("tar", "-xSf", node.path("images", "root.tar"), "-C", out)
    shown, wanted = trees.digest_tree(out), trees.digest_tree(payload)
    case.assertEqual(shown, wanted, trees.first_difference(shown, wanted))
    run("rm", "-rf", out)
    packed = os.path.join(case.temp, "packed.tar")
    run("tar", "-cf", packed, "-C", node.mountpoint, "images")
    run("tar", "-df", packed, "-C", node.mountpoint)
    os.unlink(packed)


def copies(case, node, root):
    """cp, sparse and not."""
    for mode in ("auto", "always", "never"):
        out = os.path.join(case.temp, "copy")
        run("cp", f"--sparse={mode}", node.path("images", "sparse.raw"), out)
        run("cmp", out, os.path.join(root, "images", "sparse.raw"))
        os.unlink(out)


def mapped_pages(case, node, root, name="images/root.ext4"):
    """mmap, pages in random order."""
    with open(node.path(name), "rb") as shown, open(os.path.join(root, name), "rb") as true:
        with mmap.mmap(shown.fileno(), 0, access=mmap.ACCESS_READ) as view:
            pages = list(range(0, len(view), 4 * KIB))
            random.Random(1).shuffle(pages)
            for page in pages[:2000]:
                case.assertEqual(view[page:page + 4 * KIB], os.pread(true.fileno(), 4 * KIB, page))


def threads_on_one_descriptor(case, node, root, name="images/root.tar", count=16):
    """Disjoint ranges, in small pieces, all at once."""
    shown = os.open(node.path(name), os.O_RDONLY)
    true = os.open(os.path.join(root, name), os.O_RDONLY)
    size = os.fstat(true).st_size
    wrong = []

    def read(index):
        start, end = size * index // count, size * (index + 1) // count
        while start < end:
            length = min(192 * KIB, end - start)
            try:
                if os.pread(shown, length, start) != os.pread(true, length, start):
                    wrong.append(start)
            except OSError as error:
                wrong.append((start, error))
            start += length
    readers = [threading.Thread(target=read, args=(i,)) for i in range(count)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    os.close(shown)
    os.close(true)
    case.assertEqual(wrong, [])


FIO_FILE = "fio.data"


def make_fio_file(root, size):
    """A file in which every 64 KiB carries its own checksum."""
    run("fio", "--name=make", f"--filename={os.path.join(root, FIO_FILE)}", f"--size={size}",
        "--rw=write", "--bs=64k", "--verify=crc32c", "--do_verify=0", "--verify_state_save=0")


def fio(case, node, size):
    """Verified reads, in sequence and at random, four jobs."""
    for pattern in ("read", "randread"):
        done = run("fio", "--name=check", f"--filename={node.path(FIO_FILE)}", f"--size={size}",
                   f"--rw={pattern}", "--bs=64k", "--verify=crc32c", "--verify_fatal=1",
                   "--readonly", "--numjobs=4", "--group_reporting", "--invalidate=0",
                   "--allow_file_create=0", "--verify_state_save=0", "--ioengine=psync",
                   cwd=case.temp)
        case.assertNotIn(b"verify: bad", done.stdout + done.stderr)


