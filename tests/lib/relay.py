"""A relay between a client and a server that injects faults when a test asks for them.

    with Redis() as redis, Relay(redis.port) as relay:
        fault = relay.cut_after("INCR")         # the server runs it, the reply is lost
        ... a client at relay.port ...
        fault.wait()                            # until it has happened

Without faults every byte passes unchanged. A fault applies to requests: `match` is a command ("GET", "CLUSTER SLOTS"),
a function of the arguments, or None for any request; `times` is the number of requests, None for all. If several
faults match, the oldest one applies. The relay parses RESP to find the ends of requests and replies, and expects one
reply per request; pushes are passed on. After a command that breaks this rule (SUBSCRIBE, MONITOR, PSYNC) the relay
passes the connection on without parsing. With parse=False, for TLS, it parses no connection; then only the faults of
whole connections work.

Faults of one or all connections, at any time: cut_all, pause and resume (a network that drops packets), refuse and
listen (a port without a server). `requests` has the last requests, `passed` counts all.

The test's thread gives orders; two threads per connection carry them out. wait() methods fail after GUARD_S.
"""
import collections
import socket
import threading

from servers import GUARD_S, ReservedPort

CHUNK = 1 << 16
REQUESTS_KEPT = 10000

# After these commands the server sends more than one reply per request.
UNREAD = {b"SUBSCRIBE", b"PSUBSCRIBE", b"SSUBSCRIBE", b"MONITOR", b"PSYNC", b"SYNC"}
RAW = object()  # in the list of expected replies: from here on replies are not parsed


class Garbled(Exception):
    """The data is no valid RESP."""


# ---- where requests and replies end ----

def _line(data, at):
    end = data.find(b"\r\n", at)
    return (None, -1) if end < 0 else (data[at:end], end + 2)


def _number(line):
    try:
        return int(line[1:])
    except ValueError:
        raise Garbled(bytes(line[:100])) from None


def read_request(data, at):
    """(arguments, end of the request); end -1: incomplete."""
    line, at = _line(data, at)
    if line is None:
        return None, -1
    if not line.startswith(b"*"):
        return bytes(line).split(), at  # an inline command
    args = []
    for _ in range(_number(line)):
        line, at = _line(data, at)
        if line is None:
            return None, -1
        end = at + _number(line)
        if len(data) < end + 2:
            return None, -1
        args.append(bytes(data[at:end]))
        at = end + 2
    return args, at


def reply_end(data, at):
    """The end of the reply at `at`, or -1 if it is incomplete."""
    left = 1
    while left:
        line, end = _line(data, at)
        if line is None:
            return -1
        kind = line[:1]
        left -= 1
        if kind in (b"$", b"!", b"="):
            if _number(line) >= 0:
                end += _number(line) + 2
            if len(data) < end:
                return -1
        elif kind in (b"*", b"~", b">"):
            left += max(0, _number(line))
        elif kind == b"%":
            left += 2 * _number(line)
        elif kind == b"|":
            left += 2 * _number(line) + 1  # the attributes and the reply that they belong to
        elif kind not in (b"+", b"-", b":", b"_", b",", b"#", b"("):
            raise Garbled(bytes(line[:100]))
        at = end
    return at


def _matcher(match):
    if match is None or callable(match):
        return match or (lambda args: True)
    words = match.upper().encode().split()
    return lambda args: [word.upper() for word in args[:len(words)]] == words


# ---- faults of requests ----

class Fault:
    """What happens to a matching request, one of two. asked(link): called instead of sending the request to the server;
    later requests of the connection are dropped. answered(link, reply): the server has run the request; called with
    its reply, and sends the client what it should get."""

    def __init__(self, relay, match, times, asked=None, answered=None):
        self.relay, self.matches, self.times = relay, _matcher(match), times
        self.asked, self.answered = asked, answered
        self.hits = 0   # times that the fault happened
        self.taken = 0  # requests to which it has happened or will happen
        self.sent = 0   # bytes sent in place of replies
        self.go_on = threading.Event()

    def hit(self):
        with self.relay.change:
            self.hits += 1
            self.relay.change.notify_all()

    def wait(self, hits=1, guard_s=GUARD_S):
        """Waits until the fault has happened this often."""
        with self.relay.change:
            if not self.relay.change.wait_for(lambda: self.hits >= hits, guard_s):
                raise AssertionError(f"the fault was met {self.hits} times, not {hits}")
        return self

    def release(self):
        """Ends hold(): held replies are sent, and later ones are not held."""
        self.remove()
        self.go_on.set()

    def remove(self):
        with self.relay.change:
            self.times = self.taken


class Link:
    """One connection through the relay."""

    def __init__(self, relay, number, client, server):
        self.relay, self.number = relay, number
        self.ends = (client, server)
        self.expected = collections.deque()  # for each request in flight: its fault, None, or RAW
        self.raw = not relay.parse           # requests are not parsed
        self.silent = False                  # further requests are dropped
        self.at_work = 2                     # running threads of this connection
        self.threads = [threading.Thread(target=self._run, args=(self._up,), daemon=True),
                        threading.Thread(target=self._run, args=(self._down,), daemon=True)]
        for thread in self.threads:
            thread.start()

    def _run(self, way):
        client, server = self.ends
        try:
            way(client, server)
        except (OSError, Garbled):
            self.cut()
        self.relay.thread_ended(self)

    def cut(self):
        for end in self.ends:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self):
        for end in self.ends:
            end.close()

    def _pass(self, to, data):
        self.relay.wait_running()
        if data:
            to.sendall(data)

    def _up(self, client, server):
        data = b""
        while more := client.recv(CHUNK):
            if self.raw:
                self._pass(server, more)
            elif not self.silent:
                data = self._requests(server, data + more)
        try:
            server.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def _requests(self, server, data):
        """Passes on every complete request; returns the remaining bytes."""
        at = 0
        while not self.raw:
            args, end = read_request(data, at)
            if end < 0:
                break
            fault = self.relay.take(self, args)
            if fault and fault.asked:
                self._pass(server, data[:at])
                self.silent = True
                fault.asked(self)
                return b""
            self.raw = bool(args) and args[0].upper() in UNREAD
            self.expected.append(RAW if self.raw else fault)
            at = end
        if self.raw:
            at = len(data)
        self._pass(server, data[:at])
        return data[at:]

    def _down(self, client, server):
        data = b""
        while more := server.recv(CHUNK):
            data = self._replies(client, data + more)
        self.cut()

    def _replies(self, client, data):
        begin = at = 0
        while at < len(data):
            if not self.relay.parse or (self.expected and self.expected[0] is RAW):
                at = len(data)
                break
            end = reply_end(data, at)
            if end < 0:
                break
            fault = None
            if data[at:at + 1] != b">" and self.expected:
                fault = self.expected.popleft()
            if fault:
                self._pass(client, data[begin:at])
                fault.answered(self, data[at:end])
                begin = end
            at = end
        self._pass(client, data[begin:at])
        return data[at:]


class Relay:
    def __init__(self, target, parse=True):
        self.target = target  # the server's port; a change applies to new connections
        self.parse = parse
        self.change = threading.Condition()
        self.faults, self.links = [], set()
        self.accepted = self.passed = 0  # numbers of connections and requests
        self.requests = collections.deque(maxlen=REQUESTS_KEPT)  # (connection's number, arguments)
        self.running, self.closed = True, False
        self.reserved = ReservedPort()
        self.port = self.reserved.number
        self.listener = self.thread = None
        self.listen()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # ---- connections ----

    def listen(self):
        """Accepts connections, also again after refuse()."""
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(("127.0.0.1", self.port))
        self.listener.listen(1024)
        self.thread = threading.Thread(target=self._accept, args=(self.listener,), daemon=True)
        self.thread.start()

    def refuse(self):
        """New connections are refused; open ones stay."""
        if self.listener:
            self.listener.shutdown(socket.SHUT_RDWR)
            self.thread.join()
            self.listener.close()
            self.listener = None

    def _accept(self, listener):
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self.target), GUARD_S)
            except OSError:
                client.close()
                continue
            for end in (client, server):
                end.settimeout(None)
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self.change:
                self.accepted += 1
                self.links.add(Link(self, self.accepted, client, server))
                self.change.notify_all()

    def thread_ended(self, link):
        """Called by both threads of a link; the second one closes it."""
        with self.change:
            link.at_work -= 1
            if not link.at_work:
                self.links.discard(link)
                link.close()
            self.change.notify_all()

    def cut_all(self):
        """Ends all connections; new ones are accepted."""
        with self.change:
            links = list(self.links)
        for link in links:
            link.cut()

    def pause(self):
        """No byte passes in either direction until resume()."""
        with self.change:
            self.running = False

    def resume(self):
        with self.change:
            self.running = True
            self.change.notify_all()

    def wait_running(self):
        with self.change:
            self.change.wait_for(lambda: self.running or self.closed)

    def wait(self, what, condition, guard_s=GUARD_S):
        """Waits until condition(relay) holds, which is checked after every event of the relay."""
        with self.change:
            if not self.change.wait_for(lambda: condition(self), guard_s):
                raise AssertionError("never happened at the relay: " + what)

    def wait_change(self, seconds=0.05):
        """Waits for an event of the relay, at most `seconds`, for callers that also watch something else."""
        with self.change:
            self.change.wait(seconds)

    def count(self, match):
        """The number of recorded requests that match."""
        matches = _matcher(match)
        with self.change:
            return sum(1 for _, args in self.requests if matches(args))

    def close(self):
        self.refuse()
        with self.change:
            self.closed = True
            for fault in self.faults:
                fault.go_on.set()
            self.change.notify_all()
            links = list(self.links)
        for link in links:
            link.cut()
        for link in links:
            for thread in link.threads:
                thread.join(GUARD_S)
        self.reserved.release()

    # ---- faults ----

    def take(self, link, args):
        """The fault for this request, or None."""
        with self.change:
            self.requests.append((link.number, args))
            self.passed += 1
            self.change.notify_all()
            for fault in self.faults:
                if fault.taken != fault.times and fault.matches(args):
                    fault.taken += 1
                    return fault
        return None

    def _fault(self, match, times, **what):
        fault = Fault(self, match, times, **what)
        with self.change:
            self.faults.append(fault)
        return fault

    def cut_before(self, match=None, times=1):
        """Closes the connection before the request reaches the server."""
        def asked(link):
            link.cut()
            fault.hit()
        fault = self._fault(match, times, asked=asked)
        return fault

    def cut_after(self, match=None, times=1, reply_bytes=0):
        """Lets the server run the request, passes `reply_bytes` bytes of the reply, then closes the connection."""
        def answered(link, reply):
            if reply_bytes:
                link.ends[0].sendall(reply[:reply_bytes])
            link.cut()
            fault.hit()
        fault = self._fault(match, times, answered=answered)
        return fault

    def hold(self, match=None, times=1, seconds=None):
        """Holds the reply and all later ones of the connection until release(), or for `seconds`."""
        def answered(link, reply):
            fault.hit()
            fault.go_on.wait(seconds)
            link.ends[0].sendall(reply)
        fault = self._fault(match, times, answered=answered)
        return fault

    def swallow(self, match=None, times=1):
        """Drops the request and all later ones of its connection, which stays open."""
        def asked(_):
            fault.hit()
        fault = self._fault(match, times, asked=asked)
        return fault

    def answer(self, data, match=None, times=1):
        """Replaces the server's reply by these bytes, or by the result of this function. The server has run the
        request."""
        def answered(link, _):
            reply = data() if callable(data) else data
            fault.sent += len(reply)
            link.ends[0].sendall(reply)
            fault.hit()
        fault = self._fault(match, times, answered=answered)
        return fault

    def endless(self, match=None, times=1, head=b"$536870912\r\n", chunk=b"x" * CHUNK):
        """Replaces the reply by the head and an endless repetition of the chunk, until the client closes. `sent`
        counts the bytes."""
        def answered(link, _):
            fault.hit()
            piece = head
            while True:
                link.ends[0].sendall(piece)
                fault.sent += len(piece)
                piece = chunk
        fault = self._fault(match, times, answered=answered)
        return fault
