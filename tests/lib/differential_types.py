"""Runs the sequences of generate_types.py: compares the stored data of all types, and has the macros (steps of several
commands) of that generator.

A blocking command has begun when the server reports a blocked client. In front of heatsink that is the server behind
it, so a run is given the ports of these servers.
"""

import hashlib
import time

import differential
import generate
import generate_values
import resp
from differential import Difference

CONTENT = {
    b"string": [b"GET"], b"hash": [b"HGETALL"], b"set": [b"SMEMBERS"],
    b"list": [b"LRANGE", None, b"0", b"-1"],
    b"zset": [b"ZRANGE", None, b"0", b"-1", b"WITHSCORES"],
    b"stream": [b"XINFO", b"STREAM", None, b"FULL"],
}
DIGESTS = [hashlib.sha1(script).hexdigest().encode()
           for script in generate_values.SCRIPTS + generate_values.ANYWHERE]


def content(kind, key):
    argv = CONTENT[kind]
    return [key if word is None else word for word in argv] if None in argv else argv + [key]


class Run(differential.Run):
    keys = generate_values.KEYS + generate.ODD + [b"undeclared"]
    # For small integers both servers count from their start, at different times.
    rules = {**differential.RULES, b"OBJECT IDLETIME": differential.same_kind}

    def __init__(self, behind, *args):
        self.behind = behind  # ports of the reference server and of the server behind heatsink
        self.looks = None
        super().__init__(*args)

    def close(self):
        super().close()
        for side in self.looks or ():
            for connection in side:
                connection.close()

    def flush(self):
        for side in (self.left, self.right):
            for command in ("FLUSHALL", "SCRIPT FLUSH", "FUNCTION FLUSH"):
                reply = side.clients[0].call(*command.split())
                assert reply.raw == b"+OK\r\n", (command, reply)

    def audit_keys(self):
        kinds = self.call_all(0, [[b"TYPE", key] for key in self.keys])
        looks = [[*words, key] for key in self.keys
                 for words in ([b"PEXPIRETIME"], [b"OBJECT", b"ENCODING"])]
        looks += [content(kind.text, key) for kind, key in zip(kinds, self.keys)
                  if kind.text in CONTENT]
        self.call_all(0, looks + [[b"SCRIPT", b"EXISTS", *DIGESTS], [b"FUNCTION", b"LIST"]])

    # Steps.

    def in_multi(self):
        return any(queue is not None for queue in self.queued)

    def macro_spop(self, step):
        """Each server pops a random member and gets it back, so that both have the same data again."""
        argv, conn = step.commands[0], step.conn
        left, right = [replies[0] for replies in self.exchange(conn, resp.encode(*argv), 1)]
        if self.queued[conn] is not None or left.is_null or left.is_error:
            self.compare(conn, argv, left, right)
            return
        if left.kind != right.kind or right.text is None:
            raise Difference("SPOP", left, right)
        if left.raw != right.raw:
            self.left.clients[conn].call(b"SADD", argv[1], left.text)
            self.right.clients[conn].call(b"SADD", argv[1], right.text)

    def macro_restore(self, step):
        """Both servers restore the dump of each of them."""
        (_, source), (_, target) = step.commands
        if self.in_multi():
            return
        replies = self.exchange(step.conn, resp.encode(b"DUMP", source), 1)
        for reply in (replies[0][0], replies[1][0]):
            if reply.kind == ord("$") and reply.text is not None:
                self.call(step.conn, [b"RESTORE", target, b"0", reply.text, b"REPLACE"])
                self.call(step.conn, [b"OBJECT", b"ENCODING", target])

    def macro_wake(self, step):
        if self.in_multi():
            return
        removed, waiting, waking = step.commands
        self.call(step.conn, removed)
        for side in (self.left, self.right):
            side.clients[step.conn].send(resp.encode(*waiting))
        self.wait_blocked(waiting)
        self.call(1 - step.conn, waking)
        left, right = self.exchange(step.conn, b"", 1)
        self.compare(step.conn, waiting, left[0], right[0])

    def wait_blocked(self, argv):
        if self.looks is None:
            self.looks = [[resp.Connection(port) for port in ports] for ports in self.behind]
        guard = time.monotonic() + resp.GUARD_S
        for name, side in zip(("redis", "heatsink"), self.looks):
            while not any(b"blocked_clients:1" in connection.call("INFO", "clients").raw
                          for connection in side):
                if time.monotonic() > guard:
                    raise Difference("does not wait: %r" % argv, name, None)


def fewer_scripts(argv, left, right, in_exec):
    return (differential.words(argv, 2) == b"SCRIPT EXISTS" and left.items and right.items
            and len(left.items) == len(right.items)
            and all(two.number() <= one.number() for one, two in zip(left.items, right.items)))


def lost_script(name, left, right, in_multi):
    return b"NOSCRIPT" in right.raw and b"NOSCRIPT" not in left.raw


class ClusterRun(Run):
    known = differential.KNOWN + [
        (fewer_scripts, "a script that EVAL brought is on the node that ran it"),
    ]
    partings = differential.PARTINGS + [
        (lost_script, "the same; what is behind EVALSHA already cannot wait until it is there"),
    ]
