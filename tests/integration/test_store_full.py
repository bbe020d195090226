"""Goal: a full store or disk refuses writes with a clear error, still serves reads, and can be emptied.

Method: small stores, and a small disk made for the test, are filled until the server refuses. All acknowledged values
must be readable, and space freed by deletes must be usable again.
"""

import os
import re
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import servers
from cases import FolderCase
from checks import MIB, own_disk, wait_for

SANITIZERS = ("address",)  # one client at a time: no data race is possible


class StoreFull(FolderCase):
    VALUE = b"v" * 10000

    def fill(self, connection, prefix):
        """Writes values until the store is full; returns how many fit."""
        for count in range(100000):
            reply = connection.call("SET", "%s%d" % (prefix, count), self.VALUE)
            if reply.raw != b"+OK\r\n":
                self.assertTrue(reply.raw.startswith(b"-OOM store full: "), reply)
                return count
        self.fail("it never fills up")
        return None

    def check_reads(self, connection, prefix, count):
        for at in range(count):
            self.assertEqual(connection.call("GET", "%s%d" % (prefix, at)).text, self.VALUE)
        self.assertEqual(connection.call("DBSIZE").number(), count)
        self.assertEqual(connection.call("EXISTS", "%s%d" % (prefix, count)).number(), 0)

    def test_partition_at_its_limit(self):
        data = self.path("data")
        with servers.Heatsink("--partitions", "1", "--store-size", "4mb", data=data) as server:
            connection, other = server.raw(), server.raw()
            first = self.fill(connection, "a")
            self.assertGreater(first, 100)
            self.check_reads(other, "a", first)
            # Every write that needs space gets the same error.
            for words in (["APPEND", "a0", self.VALUE * 300],
                          ["MSET", "x", self.VALUE * 300, "y", self.VALUE * 300],
                          ["SETRANGE", "a1", "3000000", "x"]):
                self.assertTrue(connection.call(*words).raw.startswith(b"-OOM store full: "), words)
            self.check_reads(other, "a", first)
            info = other.call("INFO", "stats").text.decode()
            self.assertGreaterEqual(int(re.search(r"store_full_errors:(\d+)", info).group(1)), 4)

            # Filled and emptied several times: the usable space does not shrink.
            for turn in range(3):
                names = ["%s%d" % ("a" if turn == 0 else "b", at) for at in range(first)]
                for name in names:
                    self.assertIn(connection.call("DEL", name).raw, (b":1\r\n", b":0\r\n"))
                self.assertEqual(connection.call("DBSIZE").number(), 0)
                again = self.fill(connection, "b")
                self.assertGreater(again, first * 0.8)
                self.check_reads(other, "b", again)
                first = max(first, again)

            # A full store survives a kill and a restart.
            server.kill9()
            server.start()
            self.check_reads(server.raw(), "b", again)
            self.assertEqual(server.raw().call("FLUSHALL").raw, b"+OK\r\n")
            self.assertGreater(self.fill(server.raw(), "c"), first * 0.8)

    def test_transaction_at_the_limit_is_all_or_nothing(self):
        with servers.Heatsink("--partitions", "1", "--store-size", "2mb") as server:
            connection = server.raw()
            self.fill(connection, "{f}")
            connection.call("DEL", "{f}0", "{f}1")
            for words in (["MULTI"], ["SET", "{f}small", "1"], ["SET", "{f}big", b"x" * 3 * MIB],
                          ["EXEC"]):
                reply = connection.call(*words)
            self.assertTrue(reply.raw.startswith(b"-OOM store full: ") or
                            b"-OOM store full: " in reply.raw, reply)
            self.assertEqual(connection.call("EXISTS", "{f}small").raw, b":0\r\n")
            self.assertEqual(connection.call("SET", "{f}after", "1").raw, b"+OK\r\n")

    def test_other_partitions_go_on(self):
        with servers.Heatsink("--partitions", "2", "--store-size", "2mb") as server:
            connection = server.raw()
            self.fill(connection, "{a}")
            names = ["{b}", "{c}", "{d}", "{e}", "{f}", "{g}", "{h}", "{i}"]
            replies = [connection.call("SET", name, self.VALUE).raw for name in names]
            self.assertIn(b"+OK\r\n", replies)

    def states(self, connection):
        """State of each partition in HEAT PARTITIONS, and whether a reason is given."""
        rows = [dict(zip((name.text for name in row.items[0::2]), row.items[1::2]))
                for row in connection.call("HEAT", "PARTITIONS").items[:-1]]
        return [(row[b"state"].text, row[b"reason"].text != b"") for row in rows]

    def test_it_is_seen(self):
        ok, full = (b"ok", False), (b"full", True)
        with servers.Heatsink("--partitions", "2", "--store-size", "2mb") as server:
            connection = server.raw()
            self.assertEqual(self.states(connection), [ok, ok])
            # A value that can never fit does not make the store full.
            self.assertTrue(connection.call("SET", "{a}", b"x" * 3 * MIB).raw.startswith(b"-OOM"))
            self.assertEqual(self.states(connection), [ok, ok])
            self.fill(connection, "{a}")
            self.assertEqual(self.states(connection), [ok, full])  # {a} is slot 15495
            self.assertEqual(connection.call("SET", "{b}", "1").raw, b"+OK\r\n")  # {b} is slot 3300
            self.assertEqual(connection.call("GET", "{a}0").text, self.VALUE)
            self.assertEqual(self.states(connection), [ok, full])
            self.assertEqual(connection.call("DEL", "{a}0").raw, b":1\r\n")
            self.assertEqual(self.states(connection), [ok, ok])

    def test_disk_full(self):
        """A disk of 24 MB with 8 MB of another program's files."""
        disk = self.path("disk")
        os.mkdir(disk)
        with own_disk(disk, "24m"), servers.Heatsink(
                "--partitions", "1", "--log-size", "1mb",
                data=os.path.join(disk, "data")) as server:
            inside = "/proc/%d/root%s" % (server.pid, disk)
            ballast = os.path.join(inside, "ballast")
            with open(ballast, "wb") as file:
                file.write(b"x" * 8 * MIB)
            connection, other = server.raw(), server.raw()
            first = self.fill(connection, "a")
            self.assertGreater(first, 100)
            self.check_reads(other, "a", first)

            # Deletes free space.
            for at in range(first // 2):
                self.assertEqual(connection.call("DEL", "a%d" % at).raw, b":1\r\n")
            again = self.fill(connection, "b")
            self.assertGreater(again, first // 4)

            # Removing the other file frees space, too.
            os.unlink(ballast)
            wait_for(self, "room after the file is gone",
                     lambda: connection.call("SET", "later", self.VALUE).raw == b"+OK\r\n")
            more = self.fill(connection, "c")
            self.assertGreater(more, 100)
            for at in range(first // 2, first):
                self.assertEqual(other.call("GET", "a%d" % at).text, self.VALUE)


if __name__ == "__main__":
    unittest.main()
