"""Goal: CLIENT PAUSE, UNPAUSE, UNBLOCK and NO-TOUCH work as in Redis, on real sockets and several workers.

Method: the same steps run on heatsink (alone, in front of a redis-server and of a cluster) and on a redis-server, each
with its own connections; replies and flags must be the same. CLIENT LIST and INFO show that a command waits, before
the pause is ended. tests/unit tests the duration of a pause, with a simulated clock.
"""

import os
import re
import socket
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import servers
from cluster import Cluster
from resp import encode

LONG = "100000"  # ms: longer than any test


class PauseCase(unittest.TestCase):
    @classmethod
    def engine(cls):
        return "--sync", "off"

    @classmethod
    def setUpClass(cls):
        cls.heatsink = cls.enterClassContext(servers.Heatsink("--workers", "3", *cls.engine()))
        cls.redis = cls.enterClassContext(servers.Redis(cluster=True))

    def setUp(self):
        for server in (self.heatsink, self.redis):
            server.raw().call("FLUSHALL")

    def on_both(self, steps):
        """Runs steps(server) on both servers; the results must be equal."""
        said = [steps(server) for server in (self.heatsink, self.redis)]
        self.assertEqual(*said)
        return said[0]

    def flags(self, asker, number):
        listed = asker.call("CLIENT", "LIST", "ID", number).text
        return re.search(rb" flags=(\w+) ", listed).group(1)

    def wait_blocked(self, asker, number):
        """Waits until CLIENT LIST shows that the other connection's command waits."""
        guard = time.monotonic() + servers.GUARD_S
        while b"b" not in self.flags(asker, number):
            self.assertLess(time.monotonic(), guard, "the command does not wait")

    def start(self, server):
        connection = server.raw()
        return connection, connection.call("CLIENT", "ID").text

    def silent(self, connection):
        """True if no byte has arrived so far."""
        connection.socket.setblocking(False)
        try:
            came = connection.socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            came = b""
        connection.socket.settimeout(servers.GUARD_S)
        return came == b"" and connection.buffer[connection.at:] == b""



class Pause(PauseCase):
    def test_writes_wait(self):
        def steps(server):
            asker = server.raw()
            writers = [self.start(server) for _ in range(6)]  # connections on every worker
            said = [asker.call("CLIENT", "PAUSE", LONG, "WRITE").raw]
            for at, (writer, _) in enumerate(writers):
                writer.send(encode("SET", f"key:{at}", at) + encode("GET", f"key:{at}"))
            for writer, number in writers:
                self.wait_blocked(asker, number)
                self.assertTrue(self.silent(writer))
            info = asker.call("INFO", "clients").text
            said.append(re.search(rb"blocked_clients:(\d+)", info).group(1))
            said += [asker.call("GET", "key:0").raw, asker.call("EXISTS", "key:1").raw,
                     asker.call("CLIENT", "UNPAUSE").raw]
            said += [writer.read().raw for writer, _ in writers for _ in range(2)]
            said += [self.flags(asker, number) for _, number in writers]
            info = asker.call("INFO", "clients").text
            said.append(re.search(rb"blocked_clients:(\d+)", info).group(1))
            return said
        self.assertEqual(self.on_both(steps)[:3], [b"+OK\r\n", b"6", b"$-1\r\n"])

    def test_transactions(self):
        def steps(server):
            asker = server.raw()
            (writes, number), (reads, _) = self.start(server), self.start(server)
            said = [writes.call("MULTI").raw, writes.call("SET", "a", 1).raw,
                    reads.call("MULTI").raw, reads.call("GET", "a").raw,
                    asker.call("CLIENT", "PAUSE", LONG, "WRITE").raw]
            writes.send(encode("EXEC"))
            self.wait_blocked(asker, number)
            said += [self.flags(asker, number), reads.call("EXEC").raw,
                     asker.call("CLIENT", "UNPAUSE").raw, writes.read().raw]
            return said
        self.assertIn(b"xb", self.on_both(steps))

    def test_all_waits_and_ends(self):
        """PAUSE ALL holds every command, UNPAUSE too; only requests that are refused get a reply at once."""
        def steps(server):
            asker, other = server.raw(), server.raw()
            said = [asker.call("CLIENT", "PAUSE", "300").raw]
            other.send(encode("NOSUCH") + encode("PING"))
            asker.send(encode("CLIENT", "UNPAUSE") + encode("SET", "a", 1))
            said += [other.read().raw, other.read().raw, asker.read().raw, asker.read().raw]
            return said
        self.on_both(steps)

    def test_a_held_client_says_why(self):
        asker = self.heatsink.raw()
        connection, number = self.start(self.heatsink)

        def held():
            return re.search(rb" held=(\S+)\n", asker.call("CLIENT", "LIST", "ID", number).text).group(1)

        self.assertEqual(held(), b"-")
        holds = self.heatsink.client().info("stats")["held_pause"]
        asker.call("CLIENT", "PAUSE", 100000, "WRITE")
        connection.send(encode("SET", "k", "v"))
        self.wait_blocked(asker, number)
        self.assertEqual(held(), b"pause")
        asker.call("CLIENT", "UNPAUSE")
        self.assertEqual(connection.read().raw, b"+OK\r\n")
        self.assertEqual(held(), b"-")
        self.assertEqual(self.heatsink.client().info("stats")["held_pause"], holds + 1)

    def test_arguments(self):
        asked = """CLIENT PAUSE|CLIENT PAUSE x|CLIENT PAUSE -1|CLIENT PAUSE 1.5|CLIENT PAUSE 0
            CLIENT PAUSE 9223372036854775808|CLIENT PAUSE x y|CLIENT PAUSE 0 all|CLIENT PAUSE 0 all x
            CLIENT PAUSE 0 WRITE|CLIENT UNPAUSE|CLIENT UNPAUSE x|CLIENT UNBLOCK|CLIENT UNBLOCK x
            CLIENT UNBLOCK x y|CLIENT UNBLOCK 0|CLIENT UNBLOCK -5|CLIENT UNBLOCK 99999 ERROR
            CLIENT UNBLOCK 99999 timeout|CLIENT UNBLOCK 1 ERROR x|CLIENT NO-EVICT x
            CLIENT NO-EVICT ON|CLIENT NO-EVICT OFF"""
        ours, theirs = self.heatsink.raw(), self.redis.raw()
        for words in asked.replace("\n", "|").split("|"):
            with self.subTest(words.strip()):
                self.assertEqual(ours.call(*words.split()).raw, theirs.call(*words.split()).raw)

    def test_unblock_without_a_blocked_client(self):
        """UNBLOCK of the connection itself and of one that does not wait."""
        def steps(server):
            (first, number), (_, other) = self.start(server), self.start(server)
            return [first.call("CLIENT", "UNBLOCK", number).raw,
                    first.call("CLIENT", "UNBLOCK", other).raw]
        self.assertEqual(self.on_both(steps), [b":0\r\n", b":0\r\n"])

    def test_no_touch(self):
        """CLIENT NO-TOUCH of Redis 7.2, which the reference server lacks."""
        connection, number = self.start(self.heatsink)
        asker = self.heatsink.raw()
        self.assertEqual(connection.call("CLIENT", "NO-TOUCH", "on").raw, b"+OK\r\n")
        self.assertEqual(self.flags(asker, number), b"T")
        connection.call("CLIENT", "NO-EVICT", "on")
        self.assertEqual(self.flags(asker, number), b"eT")
        self.assertEqual(connection.call("CLIENT", "NO-TOUCH", "x").raw, b"-ERR syntax error\r\n")
        connection.call("CLIENT", "NO-TOUCH", "off")
        self.assertEqual(self.flags(asker, number), b"e")

    def test_shutdown_does_not_wait_for_a_pause(self):
        """A held write was never acknowledged, so the shutdown drops it."""
        with servers.Heatsink("--workers", "2", "--shutdown-timeout", "3600") as server:
            asker, (writer, number) = server.raw(), self.start(server)
            asker.call("CLIENT", "PAUSE", LONG, "WRITE")
            writer.send(encode("SET", "a", 1))
            self.wait_blocked(asker, number)
            self.assertEqual(server.stop(), 0)
            server.start()
            self.assertEqual(server.raw().call("GET", "a").raw, b"$-1\r\n")


class PauseBeforeServer(Pause):
    @classmethod
    def engine(cls):
        cls.behind = [cls.enterClassContext(servers.Redis())]
        return "--engine", f"redis://127.0.0.1:{cls.behind[0].port}"

    def test_unblock(self):
        def steps(server):
            asker, said = server.raw(), []
            waiters = [self.start(server) for _ in range(3)]
            for reason in ((), ("TIMEOUT",), ("error",)):
                for waiter, number in waiters:
                    waiter.send(encode("BLPOP", "{t}a", "{t}b", "0") + encode("PING"))
                    self.wait_blocked(asker, number)
                    said += [self.flags(asker, number),
                             asker.call("CLIENT", "UNBLOCK", number, *reason).raw,
                             waiter.read().raw, waiter.read().raw, self.flags(asker, number)]
            return said
        self.assertEqual(self.on_both(steps)[-4:], [
            b":1\r\n", b"-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n", b"+PONG\r\n", b"N"])

    def test_commands_held_by_a_write_pause(self):
        """Commands that may write or be replicated are held; scripts with the flag no-writes are not."""
        reads = "#!lua flags=no-writes\nreturn 1"
        cases = [("PFCOUNT", "h"), ("PFADD", "h", 1), ("EVAL", reads, 1, "k"), ("EVAL_RO", reads, 1, "k"),
                 ("EVAL", "return 1", 1, "k"), ("EVAL", "#!lua\nreturn 1", 1, "k"),
                 ("EVAL", "#!lua flags=allow-oom,no-writes\nreturn 1", 1, "k"),
                 ("EVALSHA", "%(reads)s", 1, "k"), ("EVALSHA", "%(writes)s", 1, "k"),
                 ("EVALSHA", "0" * 40, 1, "k"), ("EVALSHA_RO", "%(reads)s", 1, "k"),
                 ("FCALL", "nothing", 1, "k"), ("FCALL_RO", "nothing", 1, "k"), ("LLEN", "l"),
                 ("SORT", "l"), ("SORT_RO", "l"), ("GETEX", "k"), ("TOUCH", "k"), ("OBJECT", "HELP"),
                 ("PUBLISH", "c", "x"), ("SPUBLISH", "c", "x"), ("SCRIPT", "EXISTS", "0" * 40),
                 ("XREAD", "STREAMS", "s", "0"), ("BITFIELD", "k", "GET", "u8", "0"),
                 ("BITFIELD_RO", "k", "GET", "u8", "0")]

        def steps(server):
            asker, held = server.raw(), []
            digests = {"reads": asker.call("SCRIPT", "LOAD", reads).text.decode(),
                       "writes": asker.call("SCRIPT", "LOAD", "return 1").text.decode()}
            for words in cases:
                waiter, number = self.start(server)
                asker.call("CLIENT", "PAUSE", LONG, "WRITE")
                waiter.send(encode(*[str(word) % digests if "%" in str(word) else word
                                     for word in words]))
                while self.silent(waiter) and b"b" not in self.flags(asker, number):
                    pass
                held.append((words, self.silent(waiter)))
                asker.call("CLIENT", "UNPAUSE")
                waiter.read()
                waiter.close()
            return held
        self.on_both(steps)

    def test_unblock_a_request_in_flight(self):
        """UNBLOCK of commands that may not have reached the server yet."""
        asker = self.heatsink.raw()
        for _ in range(5):
            waiters = [self.start(self.heatsink) for _ in range(30)]
            for waiter, number in waiters:  # each needs its own connection to the server
                waiter.send(encode("BLPOP", b"nothing:" + number, "0"))
            guard = time.monotonic() + servers.GUARD_S
            while b"blocked_clients:30\r" not in asker.call("INFO", "clients").text:
                self.assertLess(time.monotonic(), guard, "not all of them wait")
            asker.send(b"".join(encode("CLIENT", "UNBLOCK", number, "ERROR")
                                for _, number in reversed(waiters)))
            self.assertEqual([asker.read().raw for _ in waiters], [b":1\r\n"] * len(waiters))
            for waiter, _ in waiters:
                self.assertEqual(waiter.read().raw,
                                 b"-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n")
                waiter.close()

    def test_blocking_commands_and_scripts_write(self):
        """A write pause holds commands flagged as writes, and scripts not flagged as reads."""
        def steps(server):
            asker, (waiter, number), said = server.raw(), self.start(server), []
            for words in (("BLPOP", "a", "0"), ("EVAL", "return redis.call('SET', KEYS[1], 1)", 1, "k"),
                          ("LPUSH", "b", "1"), ("PUBLISH", "channel", "1")):
                asker.call("RPUSH", "a", "1")
                said.append(asker.call("CLIENT", "PAUSE", LONG, "WRITE").raw)
                waiter.send(encode(*words))
                self.wait_blocked(asker, number)
                said += [asker.call("LLEN", "a").raw, asker.call("CLIENT", "UNBLOCK", number).raw
                         if server is self.heatsink else b":0\r\n",
                         asker.call("CLIENT", "UNPAUSE").raw, waiter.read().raw]
            return said
        self.on_both(steps)


class PauseBeforeCluster(PauseBeforeServer):
    @classmethod
    def engine(cls):
        cluster = cls.enterClassContext(Cluster(masters=3, replicas=0))
        cls.behind = cluster.nodes
        return "--engine", cluster.url()


if __name__ == "__main__":
    unittest.main()
