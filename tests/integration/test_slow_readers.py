"""Goal: clients that request much and do not read it cost bounded memory and do not delay other clients.

Method: clients pipeline reads of large values and leave the replies unread, with the embedded engine and in front of a
server, while a control connection (the canary) goes on. Memory is the kernel's account of the process. The tests
compare orders and counters, never times.
"""

import contextlib
import os
import re
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import resp
import servers
from checks import heap_bytes, is_sanitized, KIB, memory_slack, MIB, wait_for

RUN_ALONE = True  # it measures memory
SANITIZERS = ("address",)  # not "thread": tests/unit/test_embedded_snapshot_loan.c tests the threads

PIPELINE = 256  # the number of requests that one connection may have in flight


def stat(connection, name, section="stats"):
    text = connection.call("INFO", section).text.decode()
    return int(re.search(r"^%s:(\d+)" % name, text, re.MULTILINE).group(1))


def most_memory(server):
    """The process's peak resident memory in bytes."""
    with open("/proc/%d/status" % server.pid, encoding="ascii") as status:
        return int(re.search(r"VmHWM:\s+(\d+) kB", status.read()).group(1)) * KIB


class Embedded(unittest.TestCase):
    """Reads of a value that was just written: they go to the committer, after the write."""

    SIZE = 4 * MIB
    LIMIT = 32 * MIB

    def setUp(self):
        self.server = servers.Heatsink("--workers", "2", "--partitions", "2",
                                       "--output-limit", str(self.LIMIT))
        self.addCleanup(self.server.close)
        self.canary = self.connect()

    def connect(self):
        connection = resp.Connection(self.server.port)
        self.addCleanup(connection.close)
        return connection

    def storm(self, requests, count):
        """Sends requests without reading until it is cut off and memory is freed; returns the growth of the peak."""
        before, most = heap_bytes(self.server), most_memory(self.server)
        victim = self.connect()
        cut = stat(self.canary, "output_limit_disconnections")
        with contextlib.suppress(OSError):  # cut off while it was sending
            victim.send(requests * count)
        written = 0
        while stat(self.canary, "output_limit_disconnections") == cut:
            written += 1
            self.assertEqual(self.canary.call("SET", "canary", written).raw, b"+OK\r\n")
        victim.close()
        # Only the system's malloc returns memory; a sanitizer's allocator retains it.
        if not is_sanitized():
            wait_for(self, "memory is given back",
                     lambda: heap_bytes(self.server) < before + 24 * MIB)
        return most_memory(self.server) - most

    def test_replies_count_before_they_are_made(self):
        value = b"x" * self.SIZE
        self.canary.call("SET", "big", value)
        victim = resp.encode("SET", "big", value) + resp.encode("GET", "big") * PIPELINE
        took = self.storm(victim, 1)
        self.assertGreater(stat(self.canary, "large_reads_lent"), 0)
        self.assertLess(took, (2 * self.LIMIT + 16 * self.SIZE) * memory_slack())

    def test_transactions_of_reads(self):
        value = b"x" * self.SIZE
        self.canary.call("SET", "big", value)
        block = resp.encode("MULTI") + resp.encode("GET", "big") + resp.encode("EXEC")
        took = self.storm(resp.encode("SET", "big", value) + block * (PIPELINE // 3), 1)
        self.assertLess(took, (2 * self.LIMIT + 24 * self.SIZE) * memory_slack())

    def test_a_late_reader_gets_the_value_of_its_turn(self):
        """A client below the limit is not cut off. Every read returns the write before it and none after it,
        although its reply is composed after the later writes."""
        reader = self.connect()
        for at in range(4):
            reader.send(resp.encode("SET", "big", bytes([97 + at]) * MIB) +
                        resp.encode("GET", "big") + resp.encode("GET", "big"))
        self.assertEqual(self.canary.call("SET", "canary", 1).raw, b"+OK\r\n")
        for at in range(4):
            self.assertEqual(reader.read().raw, b"+OK\r\n")
            for _ in range(2):
                self.assertEqual(reader.read().text, bytes([97 + at]) * MIB)
        self.assertGreater(stat(self.canary, "large_reads_lent"), 0)

    def test_a_reply_of_many_values_has_an_end(self):
        self.canary.call("SET", "big", b"x" * (8 * MIB))
        # First the committer answers, then a snapshot; once is enough for a slow sanitizer.
        for _ in range(1 if is_sanitized() else 2):
            reply = self.canary.call("MGET", *["big"] * 80)
            self.assertTrue(reply.is_error, reply)
            self.assertIn(b"ask for fewer keys", reply.raw)


class InFrontOfAServer(unittest.TestCase):
    """Clients request large values and do not read. heatsink requests no more from the server than these clients
    can take, so that others are served; a client that reads later gets everything."""

    SIZE = MIB
    CLIENTS = 12
    EACH = 300

    def setUp(self):
        self.redis = servers.Redis()
        self.addCleanup(self.redis.close)
        self.server = servers.Heatsink("--engine", "redis://127.0.0.1:%d" % self.redis.port,
                                       "--workers", "2", "--output-limit", "32mb",
                                       "--engine-timeout", "120000")  # long, because a busy machine is slow
        self.addCleanup(self.server.close)
        self.canary = self.connect()
        for at in range(4):
            self.canary.call("SET", "big%d" % at, bytes([97 + at]) * self.SIZE)
        self.canary.call("SET", "small", "1")

    def connect(self):
        connection = resp.Connection(self.server.port)
        self.addCleanup(connection.close)
        return connection

    def asked(self):
        """The number of GETs that reached the server."""
        return self.redis.client().info("commandstats")["cmdstat_get"]["calls"]

    def test_no_request_is_sent_for_a_client_that_does_not_read(self):
        most = most_memory(self.server)
        slow = [self.connect() for _ in range(self.CLIENTS)]
        for connection in slow:
            connection.send(b"".join(resp.encode("GET", "big%d" % (at % 4))
                                     for at in range(self.EACH)))
        wait_for(self, "clients are held", lambda: stat(self.canary, "held_engine_inflight_bytes") > 0)
        trips = 0
        while trips < 200:
            self.assertEqual(self.canary.call("GET", "small").text, b"1")
            trips += 1
        # Each client may have 16 replies of unknown size in flight at first, then 8 MiB unread.
        self.assertLess(self.asked(), trips + self.CLIENTS * 40)
        self.assertEqual(stat(self.canary, "output_limit_disconnections"), 0)
        self.assertLess(most_memory(self.server) - most,
                        self.CLIENTS * 40 * self.SIZE * memory_slack())
        for at in range(self.EACH):
            self.assertEqual(slow[0].read().text, bytes([97 + at % 4]) * self.SIZE)
        for connection in slow:
            connection.close()
        self.assertEqual(self.canary.call("GET", "small").text, b"1")


if __name__ == "__main__":
    unittest.main()
