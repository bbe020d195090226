"""A little Redis that can be told to make mistakes: for testing those who check servers.

    with FakeServer(mischief) as server:     # mischief(server, connection, number, args) -> reply
        ... server.port ...

It keeps strings in a dict and answers GET, SET, INCR, AUTH and PING, one request at a time.
`mischief` is asked first, under the lock, with a running number from 1; it returns the bytes to
answer with, None to let the request be served as usual, or raises Hangup to drop the connection.
"""
import socketserver
import threading


class Hangup(Exception):
    """Close this connection without an answer."""


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
        self.requests = 0
        self.connections = 0
        fake = self

        class Handler(socketserver.StreamRequestHandler):
            disable_nagle_algorithm = True

            def handle(self):
                with fake.lock:
                    fake.connections += 1
                try:
                    while (args := read_request(self.rfile)) is not None:
                        self.wfile.write(fake.answer(self, args))
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
            return self.serve(args)

    def serve(self, args):
        """What an honest server does."""
        name = args[0].upper()
        if name == b"GET":
            return bulk(self.data.get(args[1]))
        if name == b"SET":
            self.data[args[1]] = args[2]
        elif name == b"INCR":
            value = int(self.data.get(args[1], b"0")) + 1
            self.data[args[1]] = b"%d" % value
            return b":%d\r\n" % value
        elif name == b"PING":
            return b"+PONG\r\n"
        elif name != b"AUTH":
            return b"-ERR unknown command\r\n"
        return b"+OK\r\n"
