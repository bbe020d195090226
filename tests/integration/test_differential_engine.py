"""Goal: heatsink in front of a Redis server answers as that server does, byte for byte.

Method: random sequences over all commands of a server (tests/lib/generate_types.py) run side by side against heatsink
in front of a redis-server (redis://) and against a redis-server, on two connections, in RESP2 and RESP3, pipelined
and not; every reply is compared (tests/lib/differential.py, differential_types.py). The same is done in front of a
Cluster (cluster://) against one node with all slots, and against a plain server for the commands that heatsink
splits.

The seeds are fixed. SEED=n repeats one seed, SEED=new starts from a new one, SEQUENCES=n sets how many run.
"""

import functools
import hashlib
import os
import random
import signal
import socket
import time
import unittest

import differential
import differential_types
import generate
import generate_types
import redis
import resp
import servers
import transactions
from cluster import Cluster

SEQUENCES = int(os.environ.get("SEQUENCES", "30"))
LENGTH = 60

STARTED = {}  # the servers, started once for the whole module


def setUpModule():
    def start(name, server):
        STARTED[name] = server
        unittest.addModuleCleanup(server.close)
        return server

    debug = ("--enable-debug-command", "yes")
    start("plain", servers.Redis(*debug))
    start("one node", servers.Redis(*debug, cluster=True))
    behind = start("behind", servers.Redis())
    cluster = start("cluster", Cluster(masters=3, replicas=0))
    for name, url in (("redis", "redis://127.0.0.1:%d" % behind.port), ("split", cluster.url())):
        start(name, servers.Heatsink("--engine", url, "--workers", "2"))


# Sequences that once failed, each in its shortest form.
FOUND = {
    "scripts that were flushed": [
        (0, "EVAL return(1) 0"), (0, "EVALSHA 930269f31393d0be681588b6ab08dccee7d6bb67 0"),
        (0, "SCRIPT FLUSH"), (0, "EVALSHA 930269f31393d0be681588b6ab08dccee7d6bb67 0")],
    "a script that was refused": [
        (0, "EVAL return(1) x"), (0, "EVALSHA 930269f31393d0be681588b6ab08dccee7d6bb67 0"),
        (0, "EVAL return( 0"), (0, "EVALSHA a33f1d65a8f3995e86b6bee044233440ce1d37b4 0")],
    "nearly a number of keys": [
        (0, "EVAL return(1) 1.5 weight_*"), (0, "GET {}t"), (0, "EVAL return(1) +1 a"),
        (0, "GET {}t"), (0, "EVAL return(1) 1x b"), (0, "GET {}t")],
    "another dialect between WATCH and EXEC": [
        (0, "WATCH {t}h"), (0, "HELLO 3"), (1, "HSET {t}h f v"), (0, "MULTI"), (0, "EXEC"),
        (0, "WATCH {t}h"), (0, "HELLO 2"), (0, "MULTI"), (0, "HGETALL {t}h"), (0, "EXEC")],
}


def without(*names):
    """Steps of transactions over all keys, without the named cases."""
    return {name: steps for name, steps in transactions.SPANNING.items() if name not in names}


def seeds(count):
    if os.environ.get("SEED") == "new":
        first = random.SystemRandom().randrange(10 ** 9)
        return list(range(first, first + count))
    if "SEED" in os.environ:
        return [int(os.environ["SEED"])]
    return list(range(count))


class Sequences(unittest.TestCase):
    """heatsink in front of one server."""

    profile, reference, subject = "engine", "plain", "redis"
    make, runs = generate_types.Generator, differential_types.Run
    sequences = SEQUENCES

    def behind(self):
        return [[STARTED[self.reference].port], [STARTED["behind"].port]]

    def run_class(self):
        return functools.partial(self.runs, self.behind())

    def difference(self, steps, protocol, pipelined):
        return differential.first_difference(steps, STARTED[self.reference].port,
                                             STARTED[self.subject].port, protocol, pipelined,
                                             self.run_class())

    def check(self, protocol, pipelined):
        for seed in seeds(self.sequences):
            steps = self.make(seed, self.profile).sequence(LENGTH)
            found = self.difference(steps, protocol, pipelined)
            if not found:
                continue
            short = differential.shrink(
                steps, lambda some: self.difference(some, protocol, pipelined) is not None)
            found = self.difference(short, protocol, pipelined) or found
            self.fail("SEED=%d (%s, RESP%d, %s)\n%s\nsequence:\n%s" % (
                seed, self.profile, protocol, "pipelined" if pipelined else "one by one", found,
                "\n".join(map(repr, short))))

    def check_named(self, *cases):
        for name, steps in transactions.steps({name: lines for some in cases
                                               for name, lines in some.items()}):
            for protocol, pipelined in ((2, False), (2, True), (3, False), (3, True)):
                with self.subTest(name, protocol=protocol, pipelined=pipelined):
                    found = self.difference(steps, protocol, pipelined)
                    self.assertIsNone(found, found)

    def test_found(self):
        self.check_named(FOUND)

    def test_transactions(self):
        self.check_named(transactions.CASES, transactions.MORE, transactions.SPANNING_MORE,
                         transactions.TOGETHER, without("a slot", "errors at their place"))

    def test_resp2_one_by_one(self):
        self.check(2, False)

    def test_resp2_pipelined(self):
        self.check(2, True)

    def test_resp3_one_by_one(self):
        self.check(3, False)

    def test_resp3_pipelined(self):
        self.check(3, True)


class SequencesInCluster(Sequences):
    """heatsink in front of a Cluster; all keys of a sequence have one slot."""

    profile, reference, subject = "engine-cluster", "one node", "split"
    runs = differential_types.ClusterRun
    sequences = SEQUENCES // 2

    def behind(self):
        return [[STARTED[self.reference].port], [node.port for node in STARTED["cluster"].nodes]]

    def test_transactions(self):
        self.check_named(transactions.CASES, transactions.MORE, transactions.SPANNING,
                         transactions.SPANNING_MORE)


class SequencesAcrossSlots(SequencesInCluster):
    """heatsink in front of a Cluster; MGET, MSET, DEL, UNLINK, EXISTS and TOUCH over keys of any slots."""

    profile, reference = "plain", "plain"
    make = generate.Generator

    def run_class(self):
        return differential.Run

    test_found = test_transactions = None  # inherited tests for keys of one slot; the class above runs them


class Waits(unittest.TestCase):
    """Blocking commands, in front of a server that no other test uses."""

    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(servers.Redis("--repl-diskless-sync-delay", "0"))
        cls.heatsink = cls.enterClassContext(servers.Heatsink(
            "--engine", "redis://127.0.0.1:%d" % cls.server.port, "--workers", "1"))

    def test_others_go_on(self):
        """Blocked clients do not delay others of the same worker, and a disconnect ends the wait."""
        server, other = self.server.raw(), self.heatsink.raw()
        server.call("XGROUP", "CREATE", "stream", "streams", "0", "MKSTREAM")
        for line in ("WAIT 1 0", "BLPOP nosuch 0", "BZMPOP 0 1 nosuch MIN",
                     "XREAD BLOCK 0 STREAMS nosuch $",
                     "XREADGROUP GROUP streams alice BLOCK 0 STREAMS stream >"):
            with self.subTest(line):
                waiting = resp.Connection(self.heatsink.port)
                waiting.send(resp.encode(*line.split()))
                self.wait_blocked(server, 1)
                self.assertEqual(other.call("GET", "nosuch").raw, b"$-1\r\n")
                waiting.close()
                self.wait_blocked(server, 0)

    def wait_blocked(self, server, count):
        guard = time.monotonic() + servers.GUARD_S
        while b"blocked_clients:%d\r\n" % count not in server.call("INFO", "clients").raw:
            self.assertLess(time.monotonic(), guard, "not %d clients wait" % count)

    def test_a_disconnected_client_pops_nothing(self):
        """The client disconnects with a blocking command in its pipeline, also in the middle of a request."""
        server = self.server.raw()
        for data in (resp.encode("SET", "a", "1") + resp.encode("BLPOP", "list", "0"),
                     resp.encode("BLPOP", "list", "0") + resp.encode("SET", "b", "1"),
                     resp.encode("BLPOP", "list", "0") + b"*2\r\n$3\r\nGE"):
            connection = resp.Connection(self.heatsink.port)
            connection.send(data)
            connection.socket.shutdown(socket.SHUT_WR)
            heard = connection.read_to_end()
            self.assertEqual(heard, b"+OK\r\n" if b"SET" in data[:15] else b"")
            connection.close()
            self.wait_blocked(server, 0)
            self.assertEqual(server.call("RPUSH", "list", "kept").raw, b":1\r\n")
            self.assertEqual(server.call("LPOP", "list").text, b"kept")
        self.assertEqual(server.call("GET", "b").raw, b"$-1\r\n")

    def test_wait_counts_replicas_that_have_the_write(self):
        """heatsink sends WAIT on another connection than the write, and it must still count that write."""
        replica = self.enterContext(servers.Redis("--replicaof", "127.0.0.1 %d" % self.server.port))
        connection = self.heatsink.raw()
        for number in range(3):
            self.assertEqual(connection.call("SET", "waited", number).raw, b"+OK\r\n")
            self.assertEqual(connection.call("WAIT", "1", "0").raw, b":1\r\n")
            self.assertEqual(replica.raw().call("GET", "waited").text, b"%d" % number)
        replica.signal(signal.SIGSTOP)
        try:
            self.assertEqual(connection.call("SET", "waited", "more").raw, b"+OK\r\n")
            self.assertEqual(connection.call("WAIT", "1", "10").raw, b":0\r\n")
        finally:
            replica.signal(signal.SIGCONT)
        self.assertEqual(connection.call("WAIT", "1", "0").raw, b":1\r\n")


class MeantDifferences(unittest.TestCase):
    """Replies that differ from the server's on purpose."""

    def check(self, name, lines):
        connection = STARTED[name].raw()
        for line, words in lines:
            with self.subTest(line):
                self.assertIn(words, connection.call(*line.split()).raw)

    def test_databases(self):
        """SELECT is refused: connections to the server are shared, and it would change them for all clients."""
        self.check("redis", [("SELECT 1", b"-ERR SELECT is not allowed"), ("SELECT 0", b"+OK")])

    def test_commands_about_heatsink_itself(self):
        self.check("redis", [
            ("LATENCY HISTOGRAM", b"-ERR 'latency|histogram' is not for clients of heatsink"),
            ("DEBUG OBJECT a", b"-ERR unknown subcommand"), ("HELLO", b"cluster"),
            ("INFO server", b"heatsink_version"), ("CLUSTER KEYSLOT a", b":15495"),
            ("CLIENT INFO", b"lib-name")])

    def test_commands_that_change_a_shared_connection(self):
        self.check("redis", [(line, b"is not for clients of heatsink") for line in (
            "MONITOR", "SYNC", "PSYNC ? -1", "REPLCONF ACK 0", "SCRIPT DEBUG YES",
            "REPLICAOF NO ONE", "FAILOVER", "MODULE LOAD x", "RESTORE-ASKING a 0 x")])

    def test_commands_for_all_masters_are_refused_in_transactions_with_keys(self):
        for line in ("FLUSHALL", "FLUSHDB", "FUNCTION FLUSH"):
            self.check("split", [("SET a 1", b"+OK"), ("MULTI", b"+OK"), (line, b"+QUEUED"),
                                 ("GET a", b"+QUEUED"), ("EXEC", b"writes to every partition"),
                                 ("GET a", b"$1\r\n1")])

    def test_pipelines_of_redis_py(self):
        """redis-py's pipeline is a transaction by default, also when the program does not need one."""
        for name in ("redis", "split"):
            client = redis.Redis(port=STARTED[name].port)
            self.addCleanup(client.close)
            client.flushall()
            client.set("elsewhere", 1)
            pipe = client.pipeline()
            pipe.set("a", "1").dbsize().set("{a}b", "2").dbsize().info("server").delete("a")
            pipe.dbsize().config_get("maxclients").client_list().keys("*").slowlog_len()
            pipe.scan(count=1000).script_load("return 1").wait(0, 10).ping()
            replies = pipe.execute()
            with self.subTest(name):
                self.assertEqual([replies[at] for at in (0, 1, 2, 3, 5, 6)],
                                 [True, 2, True, 3, 1, 2])
                self.assertIn("heatsink_version", replies[4])
                self.assertEqual(list(replies[7]), ["maxclients"])
                self.assertGreaterEqual(len(replies[8]), 1)
                self.assertEqual(sorted(replies[9]), [b"elsewhere", b"{a}b"])
                self.assertEqual(replies[12], "e0e1f9fabfc9d4800c877a703b823ac0578ff8db")
                self.assertEqual(replies[13:], [0, True])

    def test_the_dialect_of_a_transaction_is_one(self):
        """HELLO in a transaction decides the protocol of the whole EXEC reply; Redis switches in the middle."""
        connection = STARTED["redis"].raw()
        connection.call_all([["DEL", "h"], ["HSET", "h", "f", "v"], ["MULTI"], ["HGETALL", "h"],
                             ["HELLO", "3"], ["HGETALL", "h"]])
        items = connection.call("EXEC").items
        self.assertEqual([chr(item.kind) for item in items], ["%", "%", "%"])

    def test_a_script_is_where_it_ran(self):
        """In a Cluster EVAL loads the script at one node only; heatsink must run EVALSHA at the other nodes,
        too."""
        connection, script = STARTED["split"].raw(), b"return 'everywhere'"
        digest = hashlib.sha1(script).hexdigest()
        connection.call("SCRIPT", "FLUSH")
        connection.call("EVAL", script, "1", "a")
        self.assertEqual(connection.call("SCRIPT", "EXISTS", digest).raw, b"*1\r\n:0\r\n")
        for key in ("a", "b", "c", "d", "e", "f", "g"):
            self.assertEqual(connection.call("EVALSHA", digest, "1", key).text, b"everywhere")
        connection.call("SCRIPT", "LOAD", script)
        self.assertEqual(connection.call("SCRIPT", "EXISTS", digest).raw, b"*1\r\n:1\r\n")
        connection.call("SCRIPT", "FLUSH")
        self.assertIn(b"-NOSCRIPT", connection.call("EVALSHA", digest, "1", "a").raw)


if __name__ == "__main__":
    unittest.main()
