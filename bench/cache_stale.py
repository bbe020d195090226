"""How old answers are: one process writes growing numbers to a key, others read it all the time, and
afterwards the two are laid side by side by the clock that all processes share.

    writer   ──[SET 7 sent … answered]──────────────────────
    reader   ────────────────────────────[GET sent … 6]─────    6 was old for at least this long:
                                        └──┘                    from the answer to the asking

That is what can be proven: 6 had been overwritten when 7 was answered, and it was given out after it was
asked for. Delays of this machine make it shorter, never longer. What an answer may have been at most, from
the SET sent to the GET answered, is told too.
"""
import array
import bisect
import multiprocessing
import random
import socket
import time

CONNECTIONS = 8  # of a reader
SEEN_S = 10  # a reader that sees nothing for so long gives up


def _connect(port):
    connection = socket.create_connection(("127.0.0.1", port), timeout=SEEN_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def _set(key, number):
    return b"*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$12\r\n%012d\r\n" % (len(key), key, number)


def _write(port, key, count, gap_s, begin, out):
    """Numbers from 1 on, with pauses of gap_s on average. Sends [sent, answered] in ns of each."""
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
    """All connections ask, then all are listened to. Sends [asked, answered, number]."""
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
    """What a run has come to. Times in ms; `ages` and `most` have one of each write, sorted."""

    def __init__(self, writes, reads):
        sent, answered = writes
        last_asked, last_answered = {}, {}  # of every number, by any reader
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
        """For each write, how long something older was still answered."""
        ages, latest = [], 0
        for number, at in enumerate(written, 1):
            latest = max(latest, last.get(number - 1, 0))
            ages.append(max(0, latest - at) / 1e6)
        return sorted(ages)

    @staticmethod
    def at(ages, share):
        return ages[min(len(ages) - 1, int(share * len(ages)))]


def watch(write_port, read_port, key, count, gap_s, readers):
    """Seen: `count` writes at one port while so many processes read at the other."""
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
        theirs.close()  # so that one that dies is noticed
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
