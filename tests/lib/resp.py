"""A small RESP client that keeps the bytes: every reply has exactly the bytes of the wire, so that two servers can be
compared byte for byte. It knows RESP2 and RESP3 and no command.

A server that does not answer within GUARD_S (120 s) fails the test with TimeoutError; no call hangs for ever. A
connection is used by one thread at a time.
"""

import socket

GUARD_S = 120.0  # long: sanitizers and busy machines are slow


class Closed(Exception):
    """The server closed the connection where a reply was expected."""


class Reply:
    """One complete reply: `raw` bytes, type byte `kind`, and `items` if it is an aggregate."""

    __slots__ = ("raw", "kind", "items")

    def __init__(self, raw, kind, items=None):
        self.raw = raw
        self.kind = kind
        self.items = items

    @property
    def text(self):
        """The payload of a reply that is not an aggregate; None for a null."""
        if self.kind in b"$!=":
            head, _, rest = self.raw.partition(b"\r\n")
            return None if head[1:] == b"-1" else rest[:-2]
        if self.kind == ord("_"):
            return None
        return self.raw[1:-2]

    @property
    def is_error(self):
        return self.kind in b"-!"

    @property
    def is_null(self):
        return self.raw in (b"$-1\r\n", b"*-1\r\n", b"_\r\n")

    def number(self):
        return int(self.text)

    def __repr__(self):
        return repr(self.raw if len(self.raw) < 300 else self.raw[:300] + b"...")


def encode(*args):
    """A request as an array of bulk strings. Text becomes UTF-8, numbers decimal."""
    parts = [b"*%d\r\n" % len(args)]
    for arg in args:
        if isinstance(arg, int):
            arg = str(arg)
        if isinstance(arg, str):
            arg = arg.encode()
        parts.append(b"$%d\r\n%s\r\n" % (len(arg), arg))
    return b"".join(parts)


class Connection:
    """One socket to a server on 127.0.0.1."""

    def __init__(self, port, guard_s=GUARD_S):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=guard_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""
        self.at = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    @property
    def address(self):
        """This end's address, as the server's CLIENT LIST shows it."""
        return "%s:%d" % self.socket.getsockname()

    def send(self, data):
        self.socket.sendall(data)

    def _fill(self):
        data = self.socket.recv(1 << 16)
        if not data:
            raise Closed("connection closed, left over: %r" % self.buffer[self.at:])
        self.buffer = self.buffer[self.at:] + data
        self.at = 0

    def _line(self):
        while True:
            end = self.buffer.find(b"\r\n", self.at)
            if end >= 0:
                line = self.buffer[self.at:end + 2]
                self.at = end + 2
                return line
            self._fill()

    def exactly(self, count):
        """The next `count` bytes. Pieces are joined once, because a join per read is slow for large replies."""
        parts, have = [], len(self.buffer) - self.at
        while have < count:
            parts.append(self.buffer[self.at:])
            self.buffer, self.at = b"", 0
            self._fill()
            have += len(self.buffer)
        self.buffer = b"".join([*parts, self.buffer]) if parts else self.buffer
        data = self.buffer[self.at:self.at + count]
        self.at += count
        return data

    def read(self):
        """The next reply or push."""
        line = self._line()
        kind = line[0]
        if kind in b"$!=":
            length = int(line[1:])
            return Reply(line + (self.exactly(length + 2) if length >= 0 else b""), kind)
        if kind in b"*~>%|":
            count = max(0, int(line[1:]))
            items = [self.read() for _ in range(count * 2 if kind in b"%|" else count)]
            reply = Reply(line + b"".join(item.raw for item in items), kind, items)
            return self._with_attribute(reply) if kind == ord("|") else reply
        if kind in b"+-:_,#(":
            return Reply(line, kind)
        raise AssertionError("not a reply: %r" % (line + self.buffer[self.at:self.at + 100]))

    def _with_attribute(self, attribute):
        reply = self.read()
        return Reply(attribute.raw + reply.raw, reply.kind, reply.items)

    def call(self, *args):
        """Sends a request; returns its reply."""
        self.send(encode(*args))
        return self.read()

    def call_all(self, requests):
        """Sends requests together; returns their replies."""
        self.send(b"".join(encode(*request) for request in requests))
        return [self.read() for _ in requests]

    def read_to_end(self):
        """All bytes up to the end of the connection."""
        data = self.buffer[self.at:]
        self.buffer, self.at = b"", 0
        while True:
            try:
                more = self.socket.recv(1 << 16)
            except ConnectionResetError:
                return data
            if not more:
                return data
            data += more

    def is_closed(self):
        """True when the server closes the connection; TimeoutError after the guard time if it does not."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True
