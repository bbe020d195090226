"""Runs one sequence of commands against two servers and reports the first reply that differs.

The executor has no model of the server: it learns a connection's state (inside MULTI, queued commands) from the
replies of the reference server. Replies are compared byte for byte. Replies that cannot be equal (times, sets without
order, identifiers) are compared by their rule in RULES; deliberate differences are listed in KNOWN with the reason. A
difference fails the test with its seed and the shortest sequence found (shrink).
"""

import re

import generate
import resp

TIME_SLACK_MS = 20000  # the largest time between the two servers for one step, on a busy machine


class Invalid(Exception):
    """From here on the two servers differ on purpose (PARTINGS): the sequence ends without a failure."""


class Difference(Exception):
    def __init__(self, what, reference, subject):
        super().__init__("%s\n    redis:    %r\n    heatsink: %r" % (what, reference, subject))


def same_time(unit_ms):
    """Compares two numbers: equal if not positive, else close to each other."""

    def rule(left, right):
        if left.kind != ord(":") or right.kind != ord(":"):
            return False
        one, two = left.number(), right.number()
        return one > 0 and two > 0 and abs(one - two) * unit_ms <= TIME_SLACK_MS

    return rule


def same_kind(left, right):
    return left.kind == right.kind and not left.is_error


def same_members(left, right):
    if left.kind != right.kind or left.items is None or right.items is None:
        return False
    return sorted(item.raw for item in left.items) == sorted(item.raw for item in right.items)


def tree(reply):
    """A reply whose elements have no order, as sorted nested tuples."""
    if reply.items is None:
        return reply.raw
    return reply.kind, sorted(map(repr, map(tree, reply.items)))


def same_tree(left, right):
    return tree(left) == tree(right)


def same_pairs(left, right):
    """Compares fields and values, or members and scores, in any order."""
    if left.kind != right.kind or left.items is None or right.items is None:
        return False
    pairs = [sorted(zip(*[iter(item.raw for item in side.items)] * 2)) for side in (left, right)]
    return len(left.items) == len(right.items) and pairs[0] == pairs[1]


def same_shape(left, right):
    """Compares random picks: the same number of elements of the same types."""
    def shape(reply):
        return (reply.kind, None if reply.items is None else [shape(item) for item in reply.items])
    return not left.is_null and not right.is_null and shape(left) == shape(right)


IDLE = {b"idle", b"seen-time", b"active-time"}


def timeless(reply, known=False):
    """A reply about a stream's consumers without idle times and times of delivery."""
    if reply.items is None:
        clock = reply.kind == ord(":") and (known or reply.number() > 10 ** 11)
        return b"time" if clock else reply.raw
    before = [None] + [item.text if item.items is None else None for item in reply.items]
    return reply.kind, [timeless(item, name in IDLE) for name, item in zip(before, reply.items)]


def same_timeless(left, right):
    return timeless(left) == timeless(right)


def same_pending(left, right):
    """XPENDING: compares entries and delivery counts, without idle times."""
    if left.items is None or right.items is None or len(left.items) != len(right.items):
        return False
    for one, two in zip(left.items, right.items):
        if one.items is None or two.items is None or len(one.items) != 4 or len(two.items) != 4:
            return False
        for at in (0, 1, 3):
            if one.items[at].raw != two.items[at].raw:
                return False
    return True


def same_scan(left, right):
    """Inside EXEC a scan is one step of an iteration, so only its shape can be compared."""
    return same_kind(left, right) and len(left.items) == len(right.items) == 2


def same_idle(left, right):
    """OBJECT IDLETIME: for small integers, which are shared objects, Redis counts from its start."""
    return same_kind(left, right) and 0 <= right.number() * 1000 <= TIME_SLACK_MS


def same_frequency(left, right):
    """OBJECT FREQ: Redis answers only under an LFU policy; heatsink knows the heat of every key."""
    if left.raw == right.raw:
        return True
    return (left.raw.startswith(b"-ERR An LFU maxmemory policy is not selected")
            and right.raw.startswith(b":") and 0 <= right.number() <= 255)


def same_hello(left, right):
    """HELLO: the same fields in the same order and the same protocol; values may differ."""
    if left.kind != right.kind or left.items is None or len(left.items) != len(right.items):
        return False
    names = [item.raw for item in left.items[0::2]] == [item.raw for item in right.items[0::2]]
    return names and left.items[5].raw == right.items[5].raw


RULES = {
    b"TTL": same_time(1000), b"PTTL": same_time(1), b"EXPIRETIME": same_time(1000),
    b"PEXPIRETIME": same_time(1), b"TIME": same_kind, b"INFO": same_kind, b"KEYS": same_members,
    b"RANDOMKEY": same_kind, b"SCAN": same_scan, b"DBSIZE": same_kind, b"HELLO": same_hello,
    b"CLIENT ID": same_kind, b"CLIENT LIST": same_kind, b"CLIENT INFO": same_kind,
    b"COMMAND COUNT": same_kind, b"OBJECT IDLETIME": same_idle,
    b"OBJECT FREQ": same_frequency,
    b"PUBSUB HELP": same_kind,  # heatsink's texts are its own
    # Collections in the server's own order, and random picks.
    b"HGETALL": same_pairs, b"HKEYS": same_members, b"HVALS": same_members,
    b"SMEMBERS": same_members, b"SUNION": same_members, b"SINTER": same_members,
    b"SDIFF": same_members, b"SORT": same_members, b"SORT_RO": same_members, b"SPOP": same_members,
    b"HSCAN": same_scan, b"SSCAN": same_scan, b"ZSCAN": same_scan, b"SRANDMEMBER": same_shape,
    b"HRANDFIELD": same_shape, b"ZRANDMEMBER": same_shape, b"FUNCTION LIST": same_tree,
    b"EVAL": same_tree, b"EVAL_RO": same_tree, b"EVALSHA": same_tree, b"EVALSHA_RO": same_tree,
    b"FCALL": same_tree, b"FCALL_RO": same_tree,
    # Serialized forms, whose bytes depend on the order in memory.
    b"DUMP": same_kind, b"FUNCTION DUMP": same_kind,
    b"MEMORY USAGE": same_kind, b"MEMORY DOCTOR": same_kind, b"MEMORY STATS": same_kind,
    b"MEMORY MALLOC-STATS": same_kind, b"LASTSAVE": same_kind,
    b"XPENDING": same_pending, b"XINFO STREAM": same_timeless, b"XINFO CONSUMERS": same_timeless,
}


def refcount_in_exec(argv, left, right, in_exec):
    return (in_exec and words(argv, 2) == b"OBJECT REFCOUNT" and same_kind(left, right)
            and right.number() in (1, 2147483647))


# Deliberate differences after which both servers still have the same data.
KNOWN = [
    (refcount_in_exec, "Redis counts the references its own transaction queue holds"),
]

QUEUED = b"+QUEUED\r\n"
SPANNING = re.compile(rb"-EXECABORT Transaction discarded because of: '[a-z|]+' writes to every "
                      rb"partition and cannot be atomic with keys of one slot; send it outside of "
                      rb"MULTI, or in a transaction without keys and WATCH\r\n")
CROSSSLOT = b"-CROSSSLOT Keys in request don't hash to the same slot\r\n"


def split(name, left, right, in_multi):
    return name in generate.SPLIT and not in_multi and left.raw == CROSSSLOT


def queued(name, left, right, in_multi):
    return in_multi and name in generate.SPLIT and left.raw == QUEUED and right.raw == CROSSSLOT


def spanning(name, left, right, in_multi):
    return in_multi and name == b"EXEC" and SPANNING.fullmatch(right.raw)


def watch(name, left, right, in_multi):
    return name in (b"WATCH", b"EXEC") and left.raw != right.raw and right.raw == CROSSSLOT


# Deliberate differences after which the data differs: the sequence ends there. The generator avoids them; separate
# tests check heatsink's reply.
PARTINGS = [
    (split, "heatsink splits these commands over slots where Redis Cluster refuses"),
    (queued, "but not inside a transaction, which is of one slot"),
    (spanning, "a transaction runs on one partition, so writes to all of them cannot join"),
    (watch,
     "watched keys are in the transaction's slot, where Redis Cluster lets them be anywhere"),
]


def words(argv, count):
    return b" ".join(argv[:count]).upper()


def agree(argv, left, right, in_exec=False, rules=None, known=tuple(KNOWN)):
    if left.raw == right.raw:
        return True
    rules = rules or RULES
    rule = rules.get(words(argv, 1)) or rules.get(words(argv, 2))
    if rule and rule(left, right):
        return True
    return any(meant(argv, left, right, in_exec) for meant, _ in known)


class Side:
    """The two connections to one server."""

    def __init__(self, port):
        self.port = port
        self.clients = [resp.Connection(port), resp.Connection(port)]

    def reopen(self, conn):
        self.clients[conn].close()
        self.clients[conn] = resp.Connection(self.port)

    def close(self):
        for conn in self.clients:
            conn.close()


class Run:
    keys = generate.KEYS + generate.ODD  # all keys that a sequence may have written
    rules, known, partings = RULES, KNOWN, PARTINGS

    def __init__(self, reference_port, subject_port, protocol, pipelined):
        self.left = Side(reference_port)
        self.right = Side(subject_port)
        self.pipelined = pipelined
        self.queued = [None, None]  # commands since MULTI; None outside of a transaction
        self.flush()
        if protocol == 3:
            for conn in (0, 1):
                self.call(conn, [b"HELLO", b"3"])

    def close(self):
        self.left.close()
        self.right.close()

    def flush(self):
        for side in (self.left, self.right):
            assert side.clients[0].call("FLUSHALL").raw == b"+OK\r\n"

    # Sending and reading.

    def exchange(self, conn, data, count):
        """Sends the data to both servers and reads `count` replies from each."""
        self.left.clients[conn].send(data)
        self.right.clients[conn].send(data)
        left = [self.left.clients[conn].read() for _ in range(count)]
        right = []
        for reply in left:
            try:
                right.append(self.right.clients[conn].read())
            except (resp.Closed, OSError) as error:
                raise Difference("no reply (%s)" % error, reply, None) from error
        return left, right

    def call(self, conn, argv):
        left, right = self.exchange(conn, resp.encode(*argv), 1)
        self.compare(conn, argv, left[0], right[0])
        return left[0], right[0]

    def call_all(self, conn, requests):
        """Sends requests together and compares; returns the reference server's replies."""
        left, right = self.exchange(conn, b"".join(resp.encode(*argv) for argv in requests),
                                    len(requests))
        for argv, one, two in zip(requests, left, right):
            self.compare(conn, argv, one, two)
        return left

    # Comparing, and following MULTI through the reference's replies.

    def agree(self, argv, left, right, in_exec=False):
        return agree(argv, left, right, in_exec, self.rules, self.known)

    def compare(self, conn, argv, left, right):
        name = argv[0].upper() if argv else b""
        queue = self.queued[conn]
        if left.raw != right.raw:
            if any(parting(name, left, right, queue is not None) for parting, _ in self.partings):
                raise Invalid
        if name == b"EXEC" and queue is not None and left.items is not None:
            self.compare_exec(queue, left, right)
        elif not self.agree(argv, left, right):
            raise Difference("%r" % argv, left, right)
        if left.raw == QUEUED:
            queue.append(argv)
        elif name == b"MULTI" and left.raw == b"+OK\r\n":
            self.queued[conn] = []
        elif name in (b"EXEC", b"DISCARD", b"RESET", b"QUIT") and b"wrong number" not in left.raw:
            self.queued[conn] = None

    def compare_exec(self, queue, left, right):
        if left.raw == right.raw:
            return
        if right.items is None or len(left.items) != len(right.items) or left.kind != right.kind:
            raise Difference("EXEC", left, right)
        for argv, one, two in zip(queue, left.items, right.items):
            if not self.agree(argv, one, two, in_exec=True):
                raise Difference("in EXEC: %r" % argv, one, two)

    # Steps.

    def play(self, steps):
        at = 0
        while at < len(steps):
            group = [steps[at]]
            while (self.pipelined and group[-1].joined and at + len(group) < len(steps)
                    and steps[at + len(group)].conn == group[0].conn
                    and not steps[at + len(group)].macro):
                group.append(steps[at + len(group)])
            if group[0].macro:
                getattr(self, "macro_" + group[0].macro)(group[0])
            else:
                self.play_group(group)
            at += len(group)
        self.audit()

    def play_group(self, group):
        conn = group[0].conn
        data, expected = b"", []
        for step in group:
            data += step.raw if step.raw is not None else b"".join(
                resp.encode(*argv) for argv in step.commands)
            expected += step.commands if step.replies is None else step.commands[:step.replies]
            if self.quits(step):
                break
        left, right = self.exchange(conn, data, len(expected))
        for argv, one, two in zip(expected, left, right):
            self.compare(conn, argv, one, two)
        if self.quits(step):
            self.check_closed(conn)

    @staticmethod
    def quits(step):
        return bool(step.commands[0]) and step.commands[0][0].upper() == b"QUIT"

    def check_closed(self, conn):
        rest = [side.clients[conn].read_to_end() for side in (self.left, self.right)]
        if rest[0] != rest[1]:
            raise Difference("after QUIT", *rest)
        self.left.reopen(conn)
        self.right.reopen(conn)
        self.queued[conn] = None

    def macro_silent(self, step):
        if self.queued[step.conn] is not None:
            raise Invalid
        data = b"".join(resp.encode(*argv) for argv in step.commands)
        left, right = self.exchange(step.conn, data, step.replies)
        for one, two in zip(left, right):
            if one.raw != two.raw:
                raise Difference("with replies off or skipped: %r" % step.commands, one, two)
        self.call(step.conn, [b"ECHO", b"still in step"])

    def macro_scan(self, step):
        argv, conn = list(step.commands[0]), step.conn
        left, right = self.exchange(conn, resp.encode(*argv), 1)
        left, right = left[0], right[0]
        if left.items is None or right.items is None:
            self.compare(conn, argv, left, right)
            return
        one = self.walk(self.left.clients[conn], argv, left)
        two = self.walk(self.right.clients[conn], argv, right)
        if one != two:
            raise Difference("whole scan: %r" % argv, sorted(one), sorted(two))

    @staticmethod
    def walk(connection, argv, reply):
        found = set()
        argv, at = list(argv), 1 if argv[0].upper() == b"SCAN" else 2  # position of the cursor
        for _ in range(2000):
            found.update(item.text for item in reply.items[1].items)
            argv[at] = reply.items[0].text
            if argv[at] == b"0":
                return found
            reply = connection.call(*argv)
        raise AssertionError("a scan that does not end: %r" % argv)

    def macro_dbsize(self, step):
        """Redis counts expired keys until they are accessed, so all keys are accessed first."""
        if self.queued[step.conn] is not None:
            raise Invalid
        looks = b"".join(resp.encode(b"EXISTS", key) for key in self.keys)
        self.exchange(step.conn, looks, len(self.keys))
        left, right = self.exchange(step.conn, resp.encode(b"DBSIZE"), 1)
        if left[0].raw != right[0].raw:
            raise Difference("DBSIZE", left[0], right[0])

    def macro_randomkey(self, step):
        left, right = self.exchange(step.conn, resp.encode(b"RANDOMKEY"), 1)
        left, right = left[0], right[0]
        if self.queued[step.conn] is not None or left.is_null or right.is_null:
            self.compare(step.conn, step.commands[0], left, right)
        elif self.left.clients[step.conn].call(b"EXISTS", right.text).raw != b":1\r\n":
            raise Difference("RANDOMKEY names a key that is not there", left, right)

    def audit(self):
        """Compares all stored data at the end, on a new connection."""
        for side in (self.left, self.right):
            side.reopen(0)
        self.queued[0] = None
        self.audit_keys()
        self.call(0, [b"KEYS", b"*"])

    def audit_keys(self):
        self.call_all(0, [[*look, key] for key in self.keys for look in (
            [b"GET"], [b"PEXPIRETIME"], [b"OBJECT", b"ENCODING"])])


def first_difference(steps, reference_port, subject_port, protocol, pipelined, make=Run):
    """Runs the steps; returns the Difference, or None if both servers agree."""
    run = make(reference_port, subject_port, protocol, pipelined)
    try:
        run.play(steps)
    except Difference as difference:
        return difference
    except Invalid:
        return None
    finally:
        run.close()
    return None


def shrink(steps, fails, tries=400):
    """A shorter sequence that still fails: removes ever smaller pieces, at most `tries` runs."""
    size = max(1, len(steps) // 2)
    while tries > 0:
        at, dropped = 0, False
        while at < len(steps) and tries > 0:
            shorter = steps[:at] + steps[at + size:]
            tries -= 1
            if shorter and fails(shorter):
                steps, dropped = shorter, True
            else:
                at += size
        if size == 1 and not dropped:
            break
        size = max(1, size // 2)
    return steps
