"""Goal: heatsink answers as Redis 7.0 does, byte for byte.

Method: random command sequences (tests/lib/generate.py) run side by side against heatsink and a redis-server started
here, on two connections, in RESP2 and RESP3, pipelined and not; every reply is compared (tests/lib/differential.py).
The reference runs in cluster mode with all slots, so that CROSSSLOT rules agree; commands that heatsink splits over
slots are compared with a plain redis-server.

The seeds are fixed, so that a failure comes from a change of the code and not from chance. A difference prints its
seed and the shortest sequence found. SEED=n repeats one seed, SEED=new starts from a new one, SEQUENCES=n sets how
many sequences run.
"""

import os
import random
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import differential
import generate
import resp
import servers
import transactions

SANITIZERS = ("address",)  # one client at a time: no data race is possible

SEQUENCES = int(os.environ.get("SEQUENCES", "80"))
LENGTH = 60
GUARD_S = resp.GUARD_S


def seeds():
    if os.environ.get("SEED") == "new":
        first = random.SystemRandom().randrange(10 ** 9)
        return list(range(first, first + SEQUENCES))
    if "SEED" in os.environ:
        return [int(os.environ["SEED"])]
    return list(range(SEQUENCES))


STARTED = {}  # the servers, started once for the whole module


def setUpModule():
    debug = ("--enable-debug-command", "yes")
    for name, make in (("cluster", lambda: servers.Redis(*debug, cluster=True)),
                       ("plain", lambda: servers.Redis(*debug)),
                       ("heatsink", lambda: servers.Heatsink(
                           "--sync", "off", "--workers", "2", "--partitions", "4"))):
        STARTED[name] = make()
        unittest.addModuleCleanup(STARTED[name].close)


class DifferentialCase(unittest.TestCase):
    profile = "cluster"

    @property
    def reference(self):
        return STARTED[self.profile]

    @property
    def subject(self):
        return STARTED["heatsink"]

    def both(self, guard_s=resp.GUARD_S):
        pair = [resp.Connection(self.reference.port, guard_s),
                resp.Connection(self.subject.port, guard_s)]
        for connection in pair:
            self.addCleanup(connection.close)
        return pair

    def flush(self):
        for connection in self.both():
            connection.call("FLUSHALL")


class RandomSequences(DifferentialCase):
    def check(self, protocol, pipelined):
        for seed in seeds():
            steps = generate.Generator(seed, self.profile).sequence(LENGTH)
            ports = self.reference.port, self.subject.port
            found = differential.first_difference(steps, *ports, protocol, pipelined)
            if not found:
                continue

            def fails(shorter):
                return differential.first_difference(shorter, *ports, protocol,
                                                     pipelined) is not None

            short = differential.shrink(steps, fails)
            found = differential.first_difference(short, *ports, protocol, pipelined) or found
            self.fail("SEED=%d (%s, RESP%d, %s)\n%s\nsequence:\n%s" % (
                seed, self.profile, protocol, "pipelined" if pipelined else "one by one", found,
                "\n".join(map(repr, short))))

    def test_resp2_one_by_one(self):
        self.check(2, False)

    def test_resp2_pipelined(self):
        self.check(2, True)

    def test_resp3_one_by_one(self):
        self.check(3, False)

    def test_resp3_pipelined(self):
        self.check(3, True)


class RandomSequencesAcrossSlots(RandomSequences):
    """MGET, MSET, DEL, UNLINK, EXISTS and TOUCH over any keys, as a plain redis-server answers."""

    profile = "plain"


class ProtocolErrors(DifferentialCase):
    """Malformed requests: the same error, and the connection closes at the same place."""

    INPUTS = [
        b"*abc\r\n", b"*\r\n", b"*1\r\nGET\r\n", b"*1\r\n:5\r\n", b"*1\r\n$abc\r\n", b"*1\r\n$\r\n",
        b"*1\r\n$-1\r\n", b"*1\r\n$-5\r\n", b"*2147483648\r\n", b"*99999999999999999999\r\n",
        b"*1\r\n$536870913\r\n", b"*1\r\n$629145600\r\n", b"*1\r\n$99999999999999999999\r\n",
        b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n#1\r\nb\r\n", b"*2\r\n$3\r\nGET\r\n\r\n",
        b"PING\r\n*1\r\n$4\r\nPING\r\n*x\r\n*1\r\n$4\r\nPING\r\n",
        b'SET a "unbalanced\r\n', b"SET a 'unbalanced\r\n", b'SET a "b"c\r\n', b'GET "a\\x4\r\n',
        b"x" * 65537, b"*1" + b"1" * 65537, b"*1\r\n$" + b"1" * 65537, b"x" * 70000 + b"\r\n",
        b"*0\r\n", b"*-1\r\n", b"*-10\r\n", b"*0\r\n\r\n\n*0\r\n", b"\r\n\r\n", b"\xff\xfe\r\n",
        b"+OK\r\n", b"$3\r\nGET\r\n", b":1\r\n", b"-ERR\r\n", b"*1 \r\n$4\r\nPING\r\n",
        b"*+1\r\n$4\r\nPING\r\n", b"*01\r\n$4\r\nPING\r\n", b"*1\r\n$+4\r\nPING\r\n",
        b"*1\r\n$04\r\nPING\r\n",
        b"*1\n$4\nPING\n", b"*1\r\n$4\r\nPINGxx", b"*1\r\n$0\r\n\r\n",
        b"*2\r\n$0\r\n\r\n$0\r\n\r\n",
    ]

    def test_texts_and_closing(self):
        for data in self.INPUTS:
            with self.subTest(data=data[:80]):
                answers = []
                for connection in self.both():
                    try:
                        connection.send(data + resp.encode("ECHO", "after") + resp.encode("QUIT"))
                    except OSError:
                        pass  # closed while sending: the reply sent before is read below
                    answers.append(connection.read_to_end())
                self.assertEqual(*answers)

    def test_byte_by_byte(self):
        """The place of the error must not depend on how the bytes arrive."""
        for data in (b"*abc\r\n", b"*1\r\n$abc\r\n", b"*1\r\n:5\r\n", b"*1\r\n$-5\r\n",
                     b"GET 'x\r\n"):
            with self.subTest(data=data):
                answers = []
                for connection in self.both():
                    for at in range(len(data)):
                        try:
                            connection.send(data[at:at + 1])
                        except OSError:
                            break
                    answers.append(connection.read_to_end())
                self.assertEqual(*answers)


class Transactions(DifferentialCase):
    def test_named(self):
        cases = {**transactions.CASES, **transactions.SPANNING}
        for name, steps in transactions.steps(cases):
            for pipelined in (False, True):
                with self.subTest(name, pipelined=pipelined):
                    for protocol in (2, 3):
                        found = differential.first_difference(
                            steps, self.reference.port, self.subject.port, protocol, pipelined)
                        self.assertIsNone(found, found)


class MeantDifferences(DifferentialCase):
    """Replies that differ on purpose (tests/lib/differential.py, PARTINGS)."""

    def check(self, *conversation):
        connection = resp.Connection(self.subject.port)
        self.addCleanup(connection.close)
        for line, raw in conversation:
            self.assertEqual(connection.call(*line.split()).raw, raw, line)

    def test_commands_for_all_partitions_are_refused_in_transactions_with_keys(self):
        refused = (b"-EXECABORT Transaction discarded because of: '%s' writes to every partition and "
                   b"cannot be atomic with keys of one slot; send it outside of MULTI, or in a "
                   b"transaction without keys and WATCH\r\n")
        for line in ("FLUSHALL", "FLUSHDB"):
            error = refused % line.lower().encode()
            self.assertTrue(differential.SPANNING.fullmatch(error))
            for lines in ((line, "SET a 1"), ("SET a 1", line)):
                self.check(("DEL a", b":0\r\n"), ("MULTI", b"+OK\r\n"),
                           *((queued, b"+QUEUED\r\n") for queued in lines),
                           ("EXEC", error), ("EXISTS a", b":0\r\n"))
            self.check(("WATCH a", b"+OK\r\n"), ("MULTI", b"+OK\r\n"), (line, b"+QUEUED\r\n"),
                       ("EXEC", error))

    def test_commands_that_cannot_be_queued(self):
        for line, name in (("DEBUG SLEEP 0", b"debug|sleep"),
                           ("CLIENT TRACKING ON", b"client|tracking")):
            connection = resp.Connection(self.subject.port)
            self.addCleanup(connection.close)
            connection.call("MULTI")
            error = connection.call(*line.split()).raw
            self.assertIn(b"'%s'" % name, error)
            self.assertTrue(error.endswith(b"send it before MULTI\r\n"), error)
            self.assertTrue(connection.call("EXEC").raw.startswith(b"-EXECABORT"))

    def test_watched_keys_are_of_one_slot(self):
        self.check(("WATCH a", b"+OK\r\n"), ("WATCH b", differential.CROSSSLOT),
                   ("UNWATCH", b"+OK\r\n"),
                   ("WATCH b", b"+OK\r\n"))

    def test_watched_keys_are_of_the_transaction_s_slot(self):
        self.check(("DEL a {t}a", b":0\r\n"), ("WATCH a", b"+OK\r\n"), ("MULTI", b"+OK\r\n"),
                   ("SET {t}a 1", b"+QUEUED\r\n"), ("EXEC", differential.CROSSSLOT),
                   ("GET {t}a", b"$-1\r\n"))


class Expiry(DifferentialCase):
    """Keys that expire without being read: gone for every command at once."""

    COMMANDS = [
        "GET {k}", "GETDEL {k}", "GETEX {k} PERSIST", "GETSET {k} new", "SET {k} new GET",
        "SET {k} new XX",
        "SET {k} new NX", "SET {k} new KEEPTTL", "SETNX {k} new", "APPEND {k} x", "INCR {k}",
        "STRLEN {k}",
        "INCRBYFLOAT {k} 1.5", "GETRANGE {k} 0 -1", "SETRANGE {k} 2 x", "GETBIT {k} 1",
        "SETBIT {k} 1 1",
        "BITCOUNT {k}", "BITPOS {k} 1", "DEL {k}", "UNLINK {k}", "EXISTS {k} {k}", "TOUCH {k}",
        "TYPE {k}",
        "EXPIRE {k} 1000", "PERSIST {k}", "TTL {k}", "PTTL {k}", "EXPIRETIME {k}",
        "RENAME {k} {{{k}}}b",
        "RENAMENX {k} {{{k}}}b", "COPY {k} {{{k}}}b", "OBJECT ENCODING {k}", "OBJECT REFCOUNT {k}",
        "MSETNX {k} new", "MGET {k}", "LCS {k} {k}", "MSET {k} new", "PSETEX {k} 1000000 new",
    ]

    def test_commands_on_expired_keys(self):
        self.flush()
        pair = self.both()
        keys = ["k%d" % index for index in range(len(self.COMMANDS))]
        for connection in pair:
            self.watch_while_it_lives(connection)
            for key in keys + ["sentinel"]:
                connection.call("SET", key, "5", "PX", "60")
        for connection in pair:
            self.wait_until_gone(connection)
        for connection in pair:
            connection.call("MULTI")
        self.assertEqual(*[connection.call("EXEC").raw for connection in pair])
        self.assertEqual([connection.call("KEYS", "*").raw for connection in pair], [b"*0\r\n"] * 2)
        self.assertEqual(pair[1].call("RANDOMKEY").raw, b"$-1\r\n")
        for key, template in zip(keys, self.COMMANDS):
            argv = template.format(k=key).split()
            with self.subTest(argv=argv):
                one, two = [connection.call(*argv) for connection in pair]
                self.assertTrue(differential.agree([arg.encode() for arg in argv], one, two),
                                (one, two))
                for look in (["GET", key], ["PTTL", key], ["OBJECT", "ENCODING", key]):
                    one, two = [connection.call(*look) for connection in pair]
                    self.assertTrue(differential.agree([arg.encode() for arg in look], one, two),
                                    (look, one, two))

    def watch_while_it_lives(self, connection):
        """WATCHes a key that expires soon; repeated if the machine was too slow."""
        for _ in range(100):
            connection.call("UNWATCH")
            connection.call("SET", "watched", "5", "PX", "60")
            connection.call("WATCH", "watched")
            if connection.call("EXISTS", "watched").raw == b":1\r\n":
                return
        self.fail("60 ms pass too fast here")

    def wait_until_gone(self, connection):
        """Waits for the sentinel, which was set last: when it is gone, all are, and none was read."""
        guard = time.monotonic() + GUARD_S
        while connection.call("EXISTS", "sentinel").raw != b":0\r\n":
            self.assertLess(time.monotonic(), guard, "a key that does not expire")

    def test_swept_without_being_touched(self):
        """Expired keys that are never read leave the store: DBSIZE falls, expired_keys counts them."""
        client = self.subject.client()
        client.flushall()
        before = client.info("stats")["expired_keys"]
        pipe = client.pipeline(transaction=False)
        for index in range(500):
            pipe.set("swept:%d" % index, "x", px=30)
        pipe.execute()
        guard = time.monotonic() + GUARD_S
        while client.info("stats")["expired_keys"] < before + 500:
            self.assertLess(time.monotonic(), guard, "expired keys stay in the store")
        self.assertEqual(client.dbsize(), 0)


class Passwords(unittest.TestCase):
    """Replies before and after AUTH, and the smaller limits before it."""

    LINES = [
        [["PING"], ["GET", "a"], ["NOSUCH"], ["GET"], ["MULTI"], ["EXEC"], ["HELLO"],
         ["HELLO", "3"],
         ["AUTH", "wrong"], ["AUTH", "default", "wrong"], ["AUTH", "nobody", "secret"], ["AUTH"],
         ["AUTH", "secret"], ["SET", "a", "1"], ["AUTH", "wrong"], ["GET", "a"], ["RESET"],
         ["GET", "a"],
         ["AUTH", "default", "secret"], ["GET", "a"], ["QUIT"]],
        [["HELLO", "3", "AUTH", "default", "wrong"], ["GET", "a"],
         ["HELLO", "3", "AUTH", "default", "secret",
         "SETNAME", "me"], ["CLIENT", "GETNAME"], ["GET", "nil"], ["HELLO", "2"], ["GET", "nil"],
         ["QUIT"]],
        [["CLIENT", "SETNAME", "x"], ["COMMAND"], ["SELECT", "0"], ["RESET"], ["CLIENT", "NOSUCH"],
         ["QUIT"]],
    ]
    RAW = [b"*11\r\n", b"*1\r\n$16385\r\n",
           b"*10\r\n$16384\r\n" + b"x" * 16384 + b"\r\n" + b"$1\r\na\r\n" * 9]

    @classmethod
    def setUpClass(cls):
        cls.servers = []
        for make in (servers.Redis, servers.Heatsink):
            server = make("--requirepass", "secret")
            cls.addClassCleanup(server.close)
            cls.servers.append(server)

    def test_conversations(self):
        for lines in self.LINES:
            connections = [server.raw() for server in self.servers]
            for argv in lines:
                with self.subTest(argv=argv):
                    one, two = [connection.call(*argv) for connection in connections]
                    self.assertTrue(differential.agree([arg.encode() for arg in argv], one, two),
                                    (one, two))

    def test_limits_before_auth(self):
        for data in self.RAW:
            with self.subTest(data=data[:30]):
                answers = []
                for server in self.servers:
                    connection = server.raw()
                    connection.send(data + resp.encode("QUIT"))
                    answers.append(connection.read_to_end())
                self.assertEqual(*answers)


if __name__ == "__main__":
    unittest.main()
