"""HTTP/1.1 messages as they come over a socket, byte for byte: what a proxy passes on unchanged."""

import select
import socket
import struct

MAX_HEAD = 1 << 20  # bytes
PIECE = 1 << 18


class Broken(Exception):
    """The other side is gone, or does not speak HTTP."""


class Head:
    """The head of a request or an answer, including the empty line that ends it."""

    def __init__(self, raw):
        self.raw = raw
        first, *lines = raw.decode("latin-1").rstrip("\r\n").split("\r\n")
        self.first = first.split(" ", 2)
        if len(self.first) < 2 or not all(":" in line for line in lines):
            raise Broken(f"not HTTP: {first}")
        self.headers = {}  # by name in lower case
        for line in lines:
            name, _, value = line.partition(":")
            self.headers[name.strip().lower()] = value.strip()

    @property
    def status(self):
        """The status of an answer."""
        return int(self.first[1])

    @property
    def is_last(self):
        """Whether the connection ends with this message."""
        return self.headers.get("connection", "").lower() == "close" or "HTTP/1.0" in self.first

    def with_headers(self, changes):
        """The same head with some headers set, or removed (None)."""
        changed = {name.lower() for name in changes}
        kept = [line for line in self.raw.rstrip(b"\r\n").split(b"\r\n")
                if line.partition(b":")[0].decode("latin-1").strip().lower() not in changed]
        kept += [f"{name}: {value}".encode("latin-1")
                 for name, value in changes.items() if value is not None]
        return Head(b"\r\n".join(kept) + b"\r\n\r\n")


class Stream:
    def __init__(self, connection):
        self._connection = connection
        self._connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = b""

    # --- Reading.

    def _receive(self):
        try:
            piece = self._connection.recv(PIECE)
        except OSError as error:
            raise Broken(str(error)) from error
        if not piece:
            raise Broken("the connection has ended")
        self._buffer += piece

    def _take(self, count):
        taken, self._buffer = self._buffer[:count], self._buffer[count:]
        return taken

    def _line(self, end=b"\r\n"):
        while end not in self._buffer:
            if len(self._buffer) > MAX_HEAD:
                raise Broken("a line without an end")
            self._receive()
        return self._take(self._buffer.index(end) + len(end))

    def head(self):
        """Reads a head; None if the other side has closed the connection instead."""
        try:
            return Head(self._line(b"\r\n\r\n"))
        except Broken:
            if self._buffer:
                raise
            return None

    def _bytes(self, count, most):
        while count:
            if not self._buffer:
                self._receive()
            piece = self._take(min(count, most))
            count -= len(piece)
            yield piece

    def _chunks(self, most):
        while True:
            line = self._line()
            yield line
            try:
                size = int(line.partition(b";")[0], 16)
            except ValueError as error:
                raise Broken("not a chunk") from error
            if size == 0:
                break
            yield from self._bytes(size + 2, most)
        while line != b"\r\n":  # trailers
            line = self._line()
            yield line

    def body(self, head, most=PIECE):
        """Yields the body in pieces of at most that many bytes, up to the end that a request's or
        answer's head defines."""
        if "chunked" in head.headers.get("transfer-encoding", "").lower():
            return self._chunks(most)
        return self._bytes(int(head.headers.get("content-length", 0)), most)

    def is_readable(self):
        return bool(self._buffer or select.select([self._connection], [], [], 0)[0])

    # --- Writing.

    def send(self, data):
        try:
            self._connection.sendall(data)
        except OSError as error:
            raise Broken(str(error)) from error

    def end(self):
        """Closes the connection in order: the other side reads what was sent, then the end."""
        try:
            self._connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def reset(self):
        """Resets the connection at once: the other side may not even read what was sent."""
        self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()

    def drain(self, seconds):
        """Reads what the other side still sends, so that it sees the answer before an error."""
        try:
            self._connection.settimeout(seconds)
            while self._connection.recv(PIECE):
                pass
        except OSError:
            pass

    def close(self):
        self._connection.close()
