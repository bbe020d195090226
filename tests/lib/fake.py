"""A small fake Redis that can make mistakes on purpose, for testing programs that check servers.

    with FakeServer(mischief) as server:     # mischief(server, connection, number, args) -> reply
        ... server.port ...

It stores strings in a dict and serves, one request at a time, the commands that `heatsink storm` sends: reads and
writes of strings, TTLs, MULTI and WATCH; no scripts. mischief() is called first, under the lock, with the request's
number from 1. It returns the bytes of a reply, or None to serve the request normally, or raises Hangup to close the
connection.
"""
import socketserver
import threading
import time


class Hangup(Exception):
    """Closes this connection without a reply."""


def bulk(value):
    return b"$-1\r\n" if value is None else b"$%d\r\n%s\r\n" % (len(value), value)


def read_request(stream):
    """The arguments of one request, or None at the end of the stream."""
    head = stream.readline()
    if not head:
        return None
    args = []
    for _ in range(int(head[1:])):
        length = int(stream.readline()[1:])
        args.append(stream.read(length + 2)[:-2])
    return args


class FakeServer:
    def __init__(self, mischief=None, port=0):
        self.mischief = mischief
        self.lock = threading.Lock()
        self.data = {}
        self.ends = {}     # key: the time when it expires
        self.versions = {}  # key: number of writes
        self.requests = 0
        self.connections = 0
        fake = self

        class Handler(socketserver.StreamRequestHandler):
            disable_nagle_algorithm = True

            def handle(self):
                self.queue = None  # the queued requests inside MULTI; None outside
                self.watched = {}  # key: its version at WATCH
                with fake.lock:
                    fake.connections += 1
                try:
                    while (args := read_request(self.rfile)) is not None:
                        # A client's first PING is a greeting, not a request of the test.
                        greeted = args == [b"PING"]
                        self.wfile.write(b"+PONG\r\n" if greeted else fake.answer(self, args))
                except (Hangup, OSError, ValueError):
                    pass

        class Listener(socketserver.ThreadingTCPServer):
            daemon_threads = True
            allow_reuse_address = True
            request_queue_size = 128

        self.listener = Listener(("127.0.0.1", port), Handler)
        self.port = self.listener.server_address[1]
        self.thread = threading.Thread(target=self.listener.serve_forever, args=(0.01,))
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.shutdown()
        self.thread.join()
        self.listener.server_close()

    def answer(self, connection, args):
        with self.lock:
            self.requests += 1
            if self.mischief:
                reply = self.mischief(self, connection, self.requests, args)
                if reply is not None:
                    return reply
            return self.serve_transaction(connection, args)

    def serve_transaction(self, connection, args):
        """A correct server's reply on a connection that may be inside MULTI."""
        name = args[0].upper()
        if name == b"MULTI":
            connection.queue = []
        elif name == b"WATCH":
            connection.watched.update((key, self.versions.get(key)) for key in args[1:])
        elif name == b"UNWATCH":
            connection.watched = {}
        elif name == b"EXEC":
            queue, watched = connection.queue, connection.watched
            connection.queue, connection.watched = None, {}
            if any(self.versions.get(key) != version for key, version in watched.items()):
                return b"*-1\r\n"
            return b"*%d\r\n" % len(queue) + b"".join(map(self.serve, queue))
        elif connection.queue is not None:
            connection.queue.append(args)
            return b"+QUEUED\r\n"
        else:
            return self.serve(args)
        return b"+OK\r\n"

    def put(self, key, value, seconds=None):
        """Sets a key; value None deletes it."""
        self.versions[key] = self.versions.get(key, 0) + 1
        self.ends.pop(key, None)
        if value is None:
            self.data.pop(key, None)
            return
        self.data[key] = value
        if seconds:
            self.ends[key] = time.monotonic() + seconds

    def add(self, key, number):
        value = b"%d" % (int(self.data.get(key, b"0")) + number)
        self.data[key] = value  # the TTL stays
        self.versions[key] = self.versions.get(key, 0) + 1
        return b":%s\r\n" % value

    def left(self, key, factor):
        if key not in self.data:
            return -2
        return round((self.ends[key] - time.monotonic()) * factor) if key in self.ends else -1

    def serve_set(self, key, value, options):
        if (b"NX" in options and key in self.data) or (b"XX" in options and key not in self.data):
            return bulk(None)
        units = {b"EX": 1, b"PX": 1000}
        seconds = [int(options[i + 1]) / units[word] for i, word in enumerate(options) if word in units]
        self.put(key, value, *seconds)
        return b"+OK\r\n"

    def serve(self, args):
        """A correct server's reply."""
        name, key = args[0].upper(), args[1] if len(args) > 1 else None
        old = self.data.get(key)
        if name == b"GET":
            return bulk(old)
        if name == b"SET":
            return self.serve_set(key, args[2], args[3:])
        if name in (b"INCR", b"DECR", b"INCRBY", b"DECRBY"):
            number = int(args[2]) if len(args) > 2 else 1
            return self.add(key, number if name.startswith(b"INCR") else -number)
        if name in (b"EXISTS", b"STRLEN", b"TTL", b"PTTL"):
            return b":%d\r\n" % {b"EXISTS": old is not None, b"STRLEN": len(old or b""),
                                 b"TTL": self.left(key, 1), b"PTTL": self.left(key, 1000)}[name]
        if name in (b"GETSET", b"GETDEL"):
            self.put(key, args[2] if name == b"GETSET" else None)
            return bulk(old)
        if name == b"DEL":
            self.put(key, None)
            return b":%d\r\n" % (old is not None)
        if name == b"MGET":
            return b"*%d\r\n" % len(args[1:]) + b"".join(bulk(self.data.get(k)) for k in args[1:])
        if name == b"MSET":
            for i in range(1, len(args), 2):
                self.put(args[i], args[i + 1])
        elif name != b"AUTH":
            return b"-ERR unknown command\r\n"
        return b"+OK\r\n"
