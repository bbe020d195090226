"""Goal: a misbehaving client costs bounded memory and does not disturb other clients.

Method: clients that do not read, announce arguments that they never send, send garbage, or send one byte at a time.
Meanwhile one control connection on each worker (a canary) keeps reading and writing, and the server's memory is
measured.
"""

import contextlib
import os
import random
import socket
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import resp
import servers
from checks import GUARD_S, heap_bytes, is_sanitized, KIB, memory_slack, MIB, wait_for

SANITIZERS = ("address",)  # these clients test memory, not threads


class BadClients(unittest.TestCase):
    """A misbehaving client costs bounded memory, and the canaries work all the time."""

    @classmethod
    def setUpClass(cls):
        cls.server = servers.Heatsink("--workers", "2", "--partitions", "2", "--sync", "off",
                                      "--output-limit", "1mb")
        cls.addClassCleanup(cls.server.close)
        cls.slack = memory_slack()

    def setUp(self):
        self.canaries = [self.connect() for _ in range(2)]
        self.sing()

    def connect(self):
        connection = resp.Connection(self.server.port)
        self.addCleanup(connection.close)
        return connection

    def sing(self):
        """The canary of each worker writes and reads."""
        for at, canary in enumerate(self.canaries):
            self.assertEqual(canary.call("SET", "canary%d" % at, "tweet").raw, b"+OK\r\n")
            self.assertEqual(canary.call("GET", "canary%d" % at).raw, b"$5\r\ntweet\r\n")

    @contextlib.contextmanager
    def bounded(self, most):
        before = heap_bytes(self.server)
        yield
        self.sing()
        self.assertLess(heap_bytes(self.server) - before, most * self.slack)

    def test_does_not_read(self):
        self.canaries[0].call("SET", "big", "x" * 100000)
        victim = self.connect()
        address, asked = victim.address, 600
        with self.bounded(32 * MIB):
            victim.socket.settimeout(GUARD_S)
            try:
                for _ in range(asked):
                    victim.send(resp.encode("GET", "big"))
            except OSError:
                pass  # cut off while it was sending
            wait_for(self, "it is cut off", lambda: address.encode() not in self.canaries[1].call(
                "CLIENT", "LIST").text)
        self.assertLess(len(victim.read_to_end()), asked * 100000)

    def test_slow_reader_gets_everything(self):
        """A client below the limit is never cut off, however late it reads."""
        reader = self.connect()
        self.canaries[0].call("SET", "piece", "x" * 1000)
        reader.send(resp.encode("GET", "piece") * 900)
        self.sing()
        for _ in range(900):
            self.assertEqual(len(reader.read().text), 1000)

    def test_bulk_of_600_mb(self):
        with self.bounded(16 * MIB):
            connection = self.connect()
            connection.send(b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$629145600\r\n")
            self.assertEqual(connection.read_to_end(),
                             b"-ERR Protocol error: invalid bulk length\r\n")

    def test_a_browser_cannot_write(self):
        """A web page can make a browser send such a request to any local port."""
        for head in (b"POST / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET x\r\nHost: localhost\r\n"):
            connection = self.connect()
            connection.send(head + b"SET planted 1\r\n")
            self.assertNotIn(b"+OK", connection.read_to_end())
        self.assertEqual(self.canaries[0].call("EXISTS", "planted").raw, b":0\r\n")

    def test_negative_length(self):
        connection = self.connect()
        connection.send(b"*2\r\n$3\r\nGET\r\n$-7\r\n")
        self.assertEqual(connection.read_to_end(), b"-ERR Protocol error: invalid bulk length\r\n")
        self.sing()

    def test_announced_arguments_never_sent(self):
        """Headers that announce large arguments cost memory only for the bytes sent."""
        with self.bounded(48 * MIB):
            for _ in range(20):
                self.connect().send(b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$500000000\r\nonly this")
            for _ in range(20):
                self.connect().send(b"*1000000\r\n$3\r\nDEL\r\n$1\r\na\r\n")
            for _ in range(20):
                self.connect().send(b"*2147483647\r\n$3\r\nDEL\r\n")
            self.sing()

    def test_one_byte_at_a_time(self):
        request = b"*3\r\n$3\r\nSET\r\n$4\r\nslow\r\n$5\r\nvalue"
        with self.bounded(48 * MIB):
            crowd = [self.connect() for _ in range(100)]
            for at in range(len(request)):
                for connection in crowd:
                    connection.send(request[at:at + 1])
                if at % 8 == 0:
                    self.sing()
        crowd[7].send(b"\r\n")
        self.assertEqual(crowd[7].read().raw, b"+OK\r\n")

    def test_garbage(self):
        """Random bytes lead to a protocol error, or to errors for parts that look like commands."""
        rng = random.Random(4)
        with self.bounded(32 * MIB):
            for size in (1, 10, 1000, 70000, 300000) * 4:
                connection = self.connect()
                with contextlib.suppress(OSError):
                    connection.send(bytes(rng.randrange(256) for _ in range(size)))
                    connection.socket.shutdown(socket.SHUT_WR)
                answer = connection.read_to_end()
                for line in answer.split(b"\r\n"):
                    self.assertTrue(line == b"" or line.startswith(b"-ERR "), line[:100])
                self.sing()

    def test_broken_protocol_closes_only_its_connection(self):
        others = [self.connect() for _ in range(5)]
        broken = self.connect()
        broken.send(resp.encode("PING") + b"*1\r\nnonsense\r\n" + resp.encode("PING"))
        self.assertEqual(broken.read_to_end(),
                         b"+PONG\r\n-ERR Protocol error: expected '$', got 'n'\r\n")
        for other in others:
            self.assertEqual(other.call("PING").raw, b"+PONG\r\n")

    def test_transaction_that_never_ends(self):
        """Queued commands need no more memory than the client sent, freed on disconnect."""
        connection = self.connect()
        connection.call("MULTI")
        for _ in range(50):
            connection.send(resp.encode("SET", "queued", "x" * 1000) * 100)
            for _ in range(100):
                self.assertEqual(connection.read().raw, b"+QUEUED\r\n")
        self.sing()
        connection.close()
        self.assertEqual(self.canaries[0].call("EXISTS", "queued").raw, b":0\r\n")

    def test_connections_that_come_and_go(self):
        with self.bounded(16 * MIB):
            for at in range(600):
                connection = resp.Connection(self.server.port)
                if at % 3 == 0:
                    connection.send(resp.encode("GET", "canary0"))
                elif at % 3 == 1:
                    connection.send(b"*2\r\n$3\r\nGE")
                connection.close()
            self.sing()


class LevelMemory(unittest.TestCase):
    def test_idle_connections_are_small(self):
        """A used and idle connection holds at most 64 KiB."""
        count = 300
        with servers.Heatsink("--workers", "2", "--partitions", "2", "--sync", "off") as server:
            server.raw().call("SET", "idle", "x" * 20000)
            before = heap_bytes(server)
            for connection in [server.raw() for _ in range(count)]:
                self.assertEqual(connection.call("SET", "idle", "y" * 20000).raw, b"+OK\r\n")
                self.assertEqual(len(connection.call("GET", "idle").text), 20000)
            growth = heap_bytes(server) - before
            self.assertLess(growth / count, 64 * KIB * memory_slack())

    def test_a_million_requests(self):
        """The first requests fill pools and buffers; the others add next to nothing. A sanitizer run gets a tenth
        of the requests, because the sanitizer's own memory hides a small growth anyway."""
        count = 100000 if is_sanitized() else 1000000
        with servers.Heatsink("--workers", "2", "--partitions", "2", "--sync", "off") as server:
            self.load(server, count // 10)
            before = heap_bytes(server)
            self.load(server, count // 10 * 9)
            growth = heap_bytes(server) - before
            self.assertLess(growth, 12 * MIB * memory_slack())
            info = server.client().info("stats")
            self.assertGreaterEqual(info["total_commands_processed"], count)

    def load(self, server, count):
        for test, part in (("get", 0.5), ("set", 0.4), ("incr", 0.1)):
            done = subprocess.run(
                ["redis-benchmark", "-p", str(server.port), "-t", test, "-n",
                 str(int(count * part)), "-P", "64",
                 "-c", "20", "-r", "1000", "-d", "100", "-q"], capture_output=True, timeout=300,
                 check=False)
            self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
