"""Programs run as a user who is not root, who may mount through fusermount3."""

import ctypes
import os
import stat
import tempfile

from harness import default_signals, run


class AsNobody:
    """To be named before Case in a test class."""

    NOBODY = 65534

    @classmethod
    def setUpClass(cls):
        """Where only root may open /dev/fuse, another node of it takes its place for this process
        and those it starts, in a mount namespace of their own."""
        super().setUpClass()
        if os.stat("/dev/fuse").st_mode & 0o006 == 0o006:
            return
        clone_newns = 0x20000
        if ctypes.CDLL(None, use_errno=True).unshare(clone_newns) != 0:
            raise OSError(ctypes.get_errno(), "unshare")
        run("mount", "--make-rprivate", "/")
        place = tempfile.mkdtemp(prefix="dartfs-e2e-dev-")
        run("mount", "-t", "tmpfs", "-o", "mode=0755", "dev", place)
        node = os.path.join(place, "fuse")
        os.mknod(node, 0o600 | stat.S_IFCHR, os.makedev(10, 229))
        os.chmod(node, 0o666)
        run("mount", "--bind", node, "/dev/fuse")
        run("umount", "-l", place)
        os.rmdir(place)

    def setUp(self):
        super().setUp()
        os.chmod(self.temp, 0o711)
        self.home = self.dir("home")
        os.chown(self.home, self.NOBODY, self.NOBODY)

    def as_user(self, *command, check=True):
        """With a signal of parent death, so that nothing stays when the test is killed."""
        def become():
            default_signals()
            os.setgroups([])
            os.setgid(self.NOBODY)
            os.setuid(self.NOBODY)
            ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # PR_SET_DUMPABLE: /proc is ours to look at
        return run(*command, check=check, timeout=60, preexec_fn=become,
                   env={**self.environment(), "HOME": self.home})
