"""Trees of files to serve, and ways to compare what came back."""

import hashlib
import os
import random
import stat

from harness import BLOCK, GRANULE, MIB, run, sized

# Bytes, because not all of them are UTF-8. No "/" and no NUL: all else may be a name.
ODD_NAMES = [b"with space", b"100%", b"%41", b"%2e%2e", b"a%20b", b"a#b", b"a?b=c", b"a+b",
             b"a&b;c", b"<tag>", b"it's", b'"quoted"', b"back\\slash", b"semi:colon", b"-dash",
             b"~tilde", b"...", b".hidden", b"\xc3\xbcml\xc3\xa4ut", b"latin-\xe4\xff",
             b"tab\there", b"new\nline", b"[x]{y}|z^`", b"$(echo)", b"trailing ", b" leading",
             b"n" * 250]
SIZES = [0, 1, 2, 511, 4095, 4096, 4097, GRANULE - 1, GRANULE, GRANULE + 1, BLOCK - 1, BLOCK,
         BLOCK + 1, 2 * BLOCK, 2 * BLOCK + 12345]


def write_random(path, size, seed):
    """Bytes that nothing compresses and that every run makes again."""
    source = random.Random(seed)
    with open(path, "wb") as file:
        while size > 0:
            piece = min(size, 4 * MIB)
            file.write(source.randbytes(piece))
            size -= piece


def write_text(path, size, seed):
    words = random.Random(seed)
    with open(path, "w") as file:
        while file.tell() < size:
            file.write(" ".join(str(words.randrange(1000)) for _ in range(20)) + "\n")


def make_payload(root):
    """What goes into images: many small files, a few larger, links, holes."""
    os.makedirs(root)
    for i in range(sized(160, 40)):
        folder = os.path.join(root, f"d{i % 7}", f"e{i % 3}")
        os.makedirs(folder, exist_ok=True)
        write_text(os.path.join(folder, f"f{i}.txt"), 100 + 337 * i, i)
    write_random(os.path.join(root, "random.bin"), sized(9, 2) * MIB + 77, 1)
    write_text(os.path.join(root, "text.txt"), sized(3, 1) * MIB, 2)
    os.symlink("random.bin", os.path.join(root, "link"))
    os.link(os.path.join(root, "text.txt"), os.path.join(root, "hard"))
    with open(os.path.join(root, "holes"), "wb") as file:
        file.truncate(8 * MIB)
        file.seek(5 * MIB)
        file.write(b"in the middle")
    os.chmod(os.path.join(root, "text.txt"), 0o640)


def make_images(root, payload):
    """squashfs, erofs, ext4, qcow2 and tar of the payload, and a raw image with holes."""
    os.makedirs(root, exist_ok=True)
    at = lambda name: os.path.join(root, name)
    run("mksquashfs", payload, at("root.squashfs"), "-quiet", "-no-progress", "-noappend")
    run("mkfs.erofs", "-zlz4", at("root.erofs"), payload)
    size = f"{sized(48, 24)}M"
    run("truncate", "-s", size, at("root.ext4"))
    run("mkfs.ext4", "-q", "-F", "-d", payload, at("root.ext4"))
    run("qemu-img", "convert", "-f", "raw", "-O", "qcow2", at("root.ext4"), at("root.qcow2"))
    run("tar", "-cSf", at("root.tar"), "-C", payload, ".")
    with open(at("sparse.raw"), "wb") as file:
        file.truncate(24 * MIB)
        for offset in (0, 7 * MIB + 3, 20 * MIB):
            file.seek(offset)
            file.write(random.Random(offset).randbytes(MIB))


def make_files(root, dotted=True):
    """Sizes around every boundary, and odd names."""
    os.makedirs(os.path.join(root, "sizes"), exist_ok=True)
    for size in SIZES:
        write_random(os.path.join(root, "sizes", f"s{size}"), size, size)
    odd = os.path.join(os.fsencode(root), b"odd")
    os.makedirs(odd, exist_ok=True)
    for i, name in enumerate(ODD_NAMES):
        if name.startswith(b".") and not dotted:
            continue
        with open(os.path.join(odd, name), "wb") as file:
            file.write(b"content of %d\n" % i + name)
        folder = os.path.join(odd, b"in " + name[:200])
        os.makedirs(folder)
        with open(os.path.join(folder, name), "wb") as file:
            file.write(b"deep content of %d\n" % i)
    os.makedirs(os.path.join(root, "deep", *"abcdefgh"))
    write_random(os.path.join(root, "deep", *"abcdefgh", "bottom"), 1000, 3)
    os.makedirs(os.path.join(root, "empty"))


def age(root, seconds=100000):
    """Makes all files so old that Last-Modified is a validator; each another second."""
    moment = 1_700_000_000
    for folder, dirs, files in os.walk(os.fsencode(root)):
        dirs.sort()
        for name in sorted(files):
            moment += 1 + seconds % 7
            os.utime(os.path.join(folder, name), (moment, moment), follow_symlinks=False)


def make_tree(root, dotted=True):
    """Everything above, for the main job; the payload lies beside `root`, not in it. Without
    `dotted`, no name begins with a dot: nginx does not list those."""
    payload = root.rstrip("/") + "-payload"
    make_payload(payload)
    os.makedirs(root, exist_ok=True)
    make_images(os.path.join(root, "images"), payload)
    make_files(root, dotted)
    age(root)
    return payload


def sha256_of(path):
    digest = hashlib.sha256()
    with open(path, "rb", buffering=0) as file:
        while piece := file.read(MIB):
            digest.update(piece)
    return digest.hexdigest()


def digest_tree(root, attributes=False):
    """{relative path: (kind, size, SHA-256 or link target)}; with modes and owners if asked."""
    found = {}
    root = os.fsencode(root)

    def on_error(error):
        raise error
    for folder, dirs, files in os.walk(root, onerror=on_error):
        for name in dirs + files:
            path = os.path.join(folder, name)
            info = os.lstat(path)
            if stat.S_ISLNK(info.st_mode):
                entry = ("link", 0, os.readlink(path))
            elif stat.S_ISDIR(info.st_mode):
                entry = ("dir", 0, "")
            else:
                entry = ("file", info.st_size, sha256_of(path))
            if attributes:
                entry += (stat.S_IMODE(info.st_mode), info.st_uid, info.st_gid)
            found[os.path.relpath(path, root)] = entry
    return found


def tool_sums(root):
    """What find and sha256sum say, as a person would check a tree."""
    script = 'cd "$1" && find . -type f -print0 | LC_ALL=C sort -z | xargs -0 -r sha256sum -b'
    return run("bash", "-o", "pipefail", "-c", script, "bash", root).stdout


def tool_listing(root):
    """Names, kinds, sizes and times to the second, of all but directories' sizes and times."""
    script = ('cd "$1" && { find . -type d -printf "d %P\\0"; '
              'find . ! -type d -printf "%y %s %TY%Tm%Td-%TH%TM%.2TS %P\\0"; } | LC_ALL=C sort -z')
    return run("bash", "-o", "pipefail", "-c", script, "bash", root,
               env={**os.environ, "TZ": "UTC"}).stdout


def first_difference(a, b):
    """Of two dictionaries, for messages."""
    for key in sorted(set(a) | set(b)):
        if a.get(key) != b.get(key):
            return f"{key!r}: {a.get(key)} != {b.get(key)}"
    return "no difference"
