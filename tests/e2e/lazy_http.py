"""A file over HTTP that is read piece by piece, as pip reads a wheel's end."""

import io


class LazyHttp(io.RawIOBase):
    """Seekable; keeps nothing. `named` are the headers of each request beside Range."""

    piece = 10240

    def __init__(self, node, url, size, named):
        super().__init__()
        self.node, self.url, self.size, self.named = node, url, size, named
        self.at = 0
        self.requests = 0

    def readable(self):
        return True

    def seekable(self):
        return True

    def seek(self, offset, whence=io.SEEK_SET):
        self.at = {io.SEEK_SET: 0, io.SEEK_CUR: self.at, io.SEEK_END: self.size}[whence] + offset
        return self.at

    def tell(self):
        return self.at

    def readinto(self, buffer):
        count = min(len(buffer), self.size - self.at, self.piece)
        if count <= 0:
            return 0
        wanted = f"bytes={self.at}-{self.at + count - 1}"
        answer = self.node.ask(self.url, Range=wanted, **self.named)
        self.requests += 1
        if answer.status != 206 or len(answer.body) != count:
            raise AssertionError(f"{wanted}: {answer.status}, {len(answer.body)} bytes")
        buffer[:count] = answer.body
        self.at += count
        return count
