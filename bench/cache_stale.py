"""Measures how old replies are: one process writes growing numbers to a key, others read it all the time. Afterwards
the two logs are compared by the monotonic clock that all processes share.

    writer   ──[SET 7 sent … answered]──────────────────────
    reader   ────────────────────────────[GET sent … 6]─────    6 was stale for at least this long:
                                        └──┘                    from the reply to SET to the sending of GET

The SET of 7 was answered before the GET was sent, yet the GET returned 6. This is a lower bound of the staleness:
delays of the machine make it shorter, never longer. The upper bound, from SET sent to GET answered, is printed, too. A
process that dies ends the benchmark with status 1.
"""
import array
import bisect
import multiprocessing
import random
import socket
import time

CONNECTIONS = 8  # connections per reader
SEEN_S = 10  # a connection without a reply for this long is an error


def _connect(port):
    connection = socket.create_connection(("127.0.0.1", port), timeout=SEEN_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def _set(key, number):
    return b"*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$12\r\n%012d\r\n" % (len(key), key, number)


def _write(port, key, count, gap_s, begin, out):
    """Writes numbers from 1 on, with pauses of gap_s on average. Puts ([sent], [answered]) in ns into `out`."""
    draw, log = random.Random(1), (array.array("q"), array.array("q"))
    with _connect(port) as connection:
        begin.wait()
        for number in range(1, count + 1):
            time.sleep(draw.uniform(0, 2 * gap_s))
            request = _set(key, number)
            log[0].append(time.monotonic_ns())
            connection.sendall(request)
            if connection.recv(64) != b"+OK\r\n":
                raise SystemExit("the writer was refused")
            log[1].append(time.monotonic_ns())
    out.send(log)


def _read(port, key, begin, end, out):
    """All connections send a GET, then all replies are read. Puts ([sent], [answered], [number]) into `out`."""
    request = b"*2\r\n$3\r\nGET\r\n$%d\r\n%s\r\n" % (len(key), key)
    asked, answered, numbers = (array.array("q") for _ in range(3))
    connections = [_connect(port) for _ in range(CONNECTIONS)]
    begin.wait()
    while not end.is_set():
        for connection in connections:
            asked.append(time.monotonic_ns())
            connection.sendall(request)
        for connection in connections:
            reply = connection.recv(64)
            answered.append(time.monotonic_ns())
            while len(reply) < 19:  # $12\r\n, twelve digits, \r\n
                more = connection.recv(64)
                if not more or not reply.startswith(b"$12"):
                    raise SystemExit(f"a reader was told {reply + more}")
                reply += more
            numbers.append(int(reply[5:17]))
    out.send((asked, answered, numbers))


class Seen:
    """The result of a run. For each write, sorted, in ms: `ages` lower bounds of staleness, `most` upper bounds."""

    def __init__(self, writes, reads):
        sent, answered = writes
        last_asked, last_answered = {}, {}  # for each number the last time that any reader sent, or received, it
        self.reads = self.stale = 0
        for asked, heard, numbers in reads:
            self.reads += len(numbers)
            for ask, hear, number in zip(asked, heard, numbers):
                self.stale += number < bisect.bisect_left(answered, ask)
                last_asked[number] = max(ask, last_asked.get(number, 0))
                last_answered[number] = max(hear, last_answered.get(number, 0))
        self.ages = self._ages(answered, last_asked)
        self.most = self._ages(sent, last_answered)

    @staticmethod
    def _ages(written, last):
        """For each write, how long an older number was still returned."""
        ages, latest = [], 0
        for number, at in enumerate(written, 1):
            latest = max(latest, last.get(number - 1, 0))
            ages.append(max(0, latest - at) / 1e6)
        return sorted(ages)

    @staticmethod
    def at(ages, share):
        return ages[min(len(ages) - 1, int(share * len(ages)))]


def watch(write_port, read_port, key, count, gap_s, readers):
    """Runs `count` writes at one port while `readers` processes read at the other; returns Seen."""
    begin, end = multiprocessing.Event(), multiprocessing.Event()
    with _connect(write_port) as connection:
        connection.sendall(_set(key, 0))
        connection.recv(64)
    pipes = [multiprocessing.Pipe(False) for _ in range(readers + 1)]
    writer = multiprocessing.Process(target=_write, args=(
        write_port, key, count, gap_s, begin, pipes[0][1]))
    children = [writer] + [multiprocessing.Process(target=_read, args=(
        read_port, key, begin, end, pipe[1])) for pipe in pipes[1:]]
    for child, (_, theirs) in zip(children, pipes):
        child.start()
        theirs.close()  # so that a dead child closes the pipe
    begin.set()
    try:
        writes = pipes[0][0].recv()
        end.set()
        return Seen(writes, [ours.recv() for ours, _ in pipes[1:]])
    except EOFError:
        raise SystemExit("a process of the staleness row has died") from None
    finally:
        end.set()
        for child in children:
            child.join()
