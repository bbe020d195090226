"""Goal: under a rule with `copies`, reads of a hot value that is too large for the cache are spread over the masters.
Every reply is as fresh as the contract says, whatever is written, flushed, failed over, moved or killed. Clients
see no copy, and no copy stays at the servers for ever.

Method: a real Cluster of three masters with a replica each, shared by the tests of the module. The masters' own
commandstats show how many reads each of them got; the names of copies are read from the masters directly. Values
carry the number of the write that made them. A read sent after a write through heatsink was acknowledged must return
that write; a read sent more than `stale` after a direct write must return it, too. This holds on any machine, however
slow. heatsink removes the copies of a key that was not read for a second, and avoids a copy for a while that did not
answer within 50 ms, so tests wait until copies are there.
"""
import os
import random
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import resp
from cluster import Cluster, slot_of
from servers import GUARD_S, Heatsink, Redis, note

STALE_S = 0.2
RULE = f"hot:* cache stale={int(STALE_S * 1000)}ms ttl=1h copies=3"
LARGE = 20000  # more than --cache-entry-bytes
PREFIX = b"heatsink:copy:"
LEASE_MS = 10000
STILL_S = 0.04  # a longer pause of any process spoils the count of reads, which is then repeated

cluster = None


def setUpModule():
    global cluster
    cluster = Cluster(masters=3, replicas=1)


def tearDownModule():
    cluster.close()


def value(number):
    return b"%010d:" % number + b"x" * LARGE


def number(reply):
    if reply.is_error:
        raise AssertionError(reply)
    return None if reply.is_null else int(reply.text[:10])


def plan(connection):
    """The rows of HEAT PLAN that are about copies."""
    rows = []
    for item in connection.call("HEAT", "PLAN").items:
        row = {item.items[i].text.decode(): item.items[i + 1] for i in range(0, len(item.items), 2)}
        if row["what"].text == b"copies":
            rows.append({"key": row["key"].text.decode(), "state": row["state"].text.decode(),
                         "why": row["why"].text.decode(),
                         "partitions": [part.number() for part in row["partitions"].items],
                         "reads": [reads.number() for reads in row["reads"].items]})
    return rows


class CopiesCase(unittest.TestCase):
    numbers = iter(range(1, 1_000_000))

    def setUp(self):
        self.key = f"hot:{self.id().rsplit('.', 1)[-1]}:{random.getrandbits(32)}"
        cluster.wait_ready()

    def start(self, *args, rule=RULE, url=None, workers=2):
        server = Heatsink("--workers", str(workers), "--engine", url or cluster.url(),
                          "--cache-entry-bytes", "4096", "--engine-timeout", "60000",
                          "--rule", rule, *args)
        self.addCleanup(server.close)
        self.server = server
        return server

    def connect(self, server=None):
        connection = resp.Connection((server or self.server).port, GUARD_S)
        self.addCleanup(connection.close)
        return connection

    def wait(self, what, condition):
        try:
            return cluster.wait(what, condition)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{plan(self.connect())}\n{self.info()}") from error

    def info(self, server=None):
        text = self.connect(server).call("INFO", "stats").text.decode()
        return {line.split(":")[0]: int(line.split(":")[1]) for line in text.splitlines()
                if line.startswith("copies_")}

    def write(self, connection):
        """Writes a new value; returns its number."""
        made = next(self.numbers)
        self.assertEqual(connection.call("SET", self.key, value(made)).raw, b"+OK\r\n")
        return made

    def is_spread(self, connection):
        """Reads the key; True if copies exist and a copy was read."""
        for reply in connection.call_all([["GET", self.key]] * 10):
            self.assertFalse(reply.is_error, reply)
        return any(row["key"] == self.key and row["state"] == "active" and sum(row["reads"][1:]) > 0
                   for row in plan(connection))

    def spread(self, connection):
        self.wait("copies are in use", lambda: self.is_spread(connection))

    def copies(self, key=None):
        """Names of copies by master."""
        wanted = (key or self.key).encode()
        return {node: [item.text for item in node.call("KEYS", PREFIX.decode() + "*").items
                       if item.text.endswith(b":" + wanted)] for node in cluster.masters()}

    def no_copies(self):
        return not any(self.copies().values())

    def spread_and_seen(self, connection):
        """As spread(), and waits until the masters have the copies."""
        self.wait("copies are in use and there",
                  lambda: self.is_spread(connection) and not self.no_copies())


class Reads(CopiesCase):
    def read_many(self, connection, made):
        """Sends 300 reads of a key that has copies. Returns the reads per master and the number of retries; None
        if a process paused meanwhile (STILL_S)."""
        masters = cluster.masters()
        self.spread(connection)
        read_s, longest_s = time.monotonic(), 0
        before = self.info()["copies_retries"]
        for node in masters:
            node.call("CONFIG", "RESETSTAT")
        for _ in range(300):
            self.assertEqual(number(connection.call("GET", self.key)), made)
            longest_s, read_s = max(longest_s, time.monotonic() - read_s), time.monotonic()
        calls = [int(node.info("commandstats").get("cmdstat_get", "calls=0").split("=")[1].split(",")[0])
                 for node in masters]
        if longest_s > STILL_S:
            note(f"somebody stood still for {longest_s:.3f} s, reads are counted anew")
            return None
        return calls, self.info()["copies_retries"] - before

    def test_spread_over_the_masters(self):
        self.start()
        connection = self.connect()
        made = self.write(connection)
        home = cluster.master_of(self.key)
        self.wait("each of the others has a copy", lambda: self.is_spread(connection) and {
            node: len(names) for node, names in self.copies().items()} == {
                node: int(node is not home) for node in cluster.masters()})
        calls, again = self.wait("reads while nobody stands still",
                                 lambda: self.read_many(connection, made))
        self.assertLessEqual(sum(calls), 310)
        self.assertGreater(min(calls), 80)
        self.assertEqual(again, 0)

    def test_commands_of_all_types(self):
        self.start()
        connection = self.connect()
        items = [str(i) * 500 for i in range(50)]  # few large items, so that the client needs many requests
        connection.call("RPUSH", self.key, *items)
        asked = ["LRANGE", self.key, "0", "-1"]
        self.wait("copies are in use", lambda: connection.call_all([asked] * 10) and any(
            row["state"] == "active" for row in plan(connection)))
        self.connect().call("CONFIG", "RESETSTAT")

        def are_read():
            connection.call_all([asked] * 10)
            self.assertEqual([item.text.decode() for item in connection.call(*asked).items], items)
            self.assertEqual(connection.call("LINDEX", self.key, "7").text.decode(), items[7])
            self.assertEqual(connection.call("LLEN", self.key).number(), 50)
            self.assertTrue(connection.call("LINDEX", self.key, "700").is_null)
            self.assertEqual(connection.call("TTL", self.key).number(), -1)
            self.assertTrue(connection.call("GET", self.key).is_error)
            self.assertEqual(connection.call("TYPE", self.key).text, b"list")
            return self.info()["copies_reads"] > 0
        for _ in range(9):
            are_read()
        self.wait("copies are read", are_read)

    def test_small_values_need_none(self):
        """Small values are cached in heatsink: the servers get one read. No entry expires during the test."""
        self.start(rule=RULE.replace(f"stale={int(STALE_S * 1000)}ms", "stale=1h"))
        connection = self.connect()
        connection.call("SET", self.key, "small")
        for _ in range(200):
            for reply in connection.call_all([["GET", self.key]] * 20):
                self.assertEqual(reply.text, b"small")
        self.assertEqual(self.info()["copies_made"], 0)
        self.assertTrue(self.no_copies())

    def test_automatic(self):
        """A key with all the load gets copies on all masters."""
        self.start(rule=RULE.replace("copies=3", "copies=auto"))
        connection = self.connect()

        def is_everywhere():
            """The number of copies depends on the measured load, so on a busy machine the first set may be smaller.
            A write ends the set, and the next set is computed from the load again."""
            self.write(connection)
            self.spread(connection)
            for _ in range(20):
                self.is_spread(connection)
            return [sorted(row["partitions"]) for row in plan(connection)] == [[0, 1, 2]]
        self.wait("copies are on all masters", is_everywhere)


class Freshness(CopiesCase):
    def test_writes_through_are_seen_at_once(self):
        self.start()
        writer, readers = self.connect(), [self.connect() for _ in range(6)]
        made = self.write(writer)
        for _ in range(8):
            before = self.info()["copies_reads"]
            self.wait("copies are read", lambda: self.is_spread(writer) and
                      self.info()["copies_reads"] > before)
            made = self.write(writer)
            for reader in readers * 3:
                self.assertEqual(number(reader.call("GET", self.key)), made)

    def test_readers_beside_a_writer(self):
        """Many readers and occasional writes. No read returns a number older than the last one acknowledged before
        the read was sent, and a pipeline sees its own writes in order."""
        self.start()
        writer = self.connect()
        acknowledged, wrong, going = [self.write(writer)], [], [True]

        def read():
            connection = self.connect()
            while going[0]:
                least = acknowledged[0]
                got = [number(reply) for reply in connection.call_all([["GET", self.key]] * 4)]
                if any(one is None or one < least for one in got):
                    wrong.append((least, got))
                    return

        threads = [threading.Thread(target=read) for _ in range(4)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(12):
                self.spread(writer)
                made = next(self.numbers)
                replies = writer.call_all([["GET", self.key], ["SET", self.key, value(made)],
                                           ["GET", self.key], ["GET", self.key]])
                seen = [number(replies[i]) for i in (0, 2, 3)]
                self.assertEqual(seen, [acknowledged[0], made, made])
                acknowledged[0] = made
        finally:
            going[0] = False
            for thread in threads:
                thread.join()
        self.assertEqual(wrong, [])

    def check_behind(self, connection, made):
        """`made` was just acknowledged by another server; reads until 12 in a row return it, all within `stale`."""
        written_s = time.monotonic()
        new = 0
        while new < 12:
            asked_s = time.monotonic()
            seen = number(connection.call("GET", self.key))
            if seen == made:
                new += 1
                continue
            new = 0
            self.assertLess(asked_s - written_s, STALE_S,
                            f"{seen} was read instead of {made}, which is older than allowed")

    def test_direct_writes_are_seen_in_time(self):
        self.start()
        connection, direct = self.connect(), cluster.direct(self.key)
        self.write(connection)
        for _ in range(8):
            self.spread(connection)
            made = next(self.numbers)
            direct.set(self.key, value(made))
            self.check_behind(connection, made)

    def test_deleted_and_created_directly_with_another_type(self):
        self.start()
        connection, direct = self.connect(), cluster.direct(self.key)
        self.write(connection)
        self.spread(connection)
        direct.delete(self.key)
        self.check_behind(connection, None)
        direct.rpush(self.key, "a" * LARGE)
        self.wait("the list is seen", lambda: connection.call("GET", self.key).is_error)
        asked = ["LRANGE", self.key, "0", "-1"]
        self.wait("copies of it are in use", lambda: connection.call_all([asked] * 10) and any(
            row["key"] == self.key and row["state"] == "active" for row in plan(connection)))
        for _ in range(6):
            self.assertTrue(connection.call("GET", self.key).is_error)
            self.assertEqual(len(connection.call(*asked).items[0].text), LARGE)

    def test_expires_with_its_copies(self):
        self.start()
        connection = self.connect()
        for lives_s in (3, 12, 60):  # a busy machine may need longer to make copies
            end_s = time.monotonic() + lives_s  # the earliest end: the server counts from the SET
            connection.call("SET", self.key, value(next(self.numbers)), "PX", lives_s * 1000)
            self.wait("copies are in use, or it is gone", lambda: self.is_spread(connection) or
                      connection.call("GET", self.key).is_null)
            if not connection.call("GET", self.key).is_null:
                break
            note(f"the key expired before it had copies, after {lives_s} s")
        for names in self.copies().values():
            for name in names:
                left = cluster.direct(name).pttl(name)
                self.assertLessEqual(left, lives_s * 1000)
        self.wait("it is gone", lambda: connection.call("GET", self.key).is_null)
        self.assertGreaterEqual(time.monotonic() + 0.05, end_s)
        for _ in range(12):
            self.assertTrue(connection.call("GET", self.key).is_null)
        self.wait("so are its copies", self.no_copies)

    def test_flushed(self):
        self.start()
        connection = self.connect()
        self.write(connection)
        self.spread(connection)
        connection.call("FLUSHALL")
        for _ in range(12):
            self.assertTrue(connection.call("GET", self.key).is_null)
        made = self.write(connection)
        self.spread(connection)
        home = cluster.master_of(self.key)
        for node in cluster.masters():  # directly at the masters that have only copies
            if node is not home:
                node.call("FLUSHALL")
        for _ in range(30):
            self.assertEqual(number(connection.call("GET", self.key)), made)
        home.call("FLUSHALL")
        self.check_behind(connection, None)


class Changes(CopiesCase):
    """Failovers, slot moves and frozen masters."""

    def keeps_reading(self, connection, made, until, what):
        def step():
            self.assertEqual(number(connection.call("GET", self.key)), made)
            return until()
        self.wait(what, step)

    def test_fail_over(self):
        self.start()
        connection = self.connect()
        made = self.write(connection)
        cluster.wait_synced()
        home = cluster.master_of(self.key)
        for old in (home, next(node for node in cluster.masters() if node is not home)):
            self.spread(connection)
            cluster.fail_over(old)
            cluster.wait_agreed()
            for _ in range(30):
                self.assertEqual(number(connection.call("GET", self.key)), made)
            made = self.write(connection)
            cluster.wait_synced()
        self.spread(connection)

    def test_a_master_is_killed(self):
        self.start()
        connection = self.connect()
        made = self.write(connection)
        home = cluster.master_of(self.key)
        self.spread(connection)
        cluster.wait_synced()
        dead = next(node for node in cluster.masters() if node is not home)
        dead.kill9()
        for _ in range(30):
            self.assertEqual(number(connection.call("GET", self.key)), made)
        dead.restart()
        cluster.wait_ready()
        self.spread(connection)

    def test_a_master_stops(self):
        """Clients that read a key of another master do not wait for the frozen one."""
        self.start(workers=1)
        connection = self.connect()
        made = self.write(connection)
        self.spread(connection)
        home = cluster.master_of(self.key)
        stopped = next(node for node in cluster.masters() if node is not home)

        def is_asked_in_vain():
            """True if a read went to the frozen master; copies may have ended just before it was frozen."""
            self.spread(connection)
            before = self.info()["copies_retries"]
            stopped.freeze()
            try:
                for _ in range(100):  # the frozen master answers none of them
                    self.assertEqual(number(connection.call("GET", self.key)), made)
                return self.info()["copies_retries"] > before
            finally:
                stopped.thaw()
        self.wait("a copy is asked in vain", is_asked_in_vain)
        cluster.wait_ready()
        self.spread(connection)

    def test_slots_move(self):
        self.start()
        connection = self.connect()
        made = self.write(connection)
        home = cluster.master_of(self.key)
        others = [node for node in cluster.masters() if node is not home]
        name = self.wait("another master has a copy", lambda: self.is_spread(connection) and
                         self.copies()[others[0]])[0]
        cluster.move_slots([slot_of(name)], to=others[1])  # the slot of a copy
        for _ in range(12):
            self.assertEqual(number(connection.call("GET", self.key)), made)
        self.spread(connection)
        cluster.move_slots([slot_of(self.key)], to=others[0])  # the slot of the original
        for _ in range(12):
            self.assertEqual(number(connection.call("GET", self.key)), made)
        made = self.write(connection)
        cluster.direct(self.key).set(self.key, value(made + 1_000_000))
        self.wait("a write behind us is seen",
                  lambda: number(connection.call("GET", self.key)) == made + 1_000_000)
        self.wait("copies are on all masters", lambda: self.is_spread(connection) and any(
            len(set(row["partitions"])) == 3 for row in plan(connection)))


class Ends(CopiesCase):
    def test_stopped(self):
        server = self.start()
        connection = self.connect()
        self.write(connection)
        self.spread_and_seen(connection)
        connection.close()
        self.assertEqual(server.stop(), 0)
        self.assertTrue(self.no_copies())

    def test_killed(self):
        """Copies of a killed heatsink expire, because they have a TTL that only a live process renews."""
        server = self.start()
        connection = self.connect()
        made = self.write(connection)
        self.spread(connection)
        server.kill9()
        for node, names in self.copies().items():
            for name in names:
                self.assertIn(node.call("PTTL", name).number(), range(-2, LEASE_MS + 1))
                self.assertNotEqual(node.call("PTTL", name).number(), -1)
        server.start()
        connection = self.connect()
        self.assertEqual(number(connection.call("GET", self.key)), made)
        self.assertEqual([item.text for item in connection.call("KEYS", "*" + self.key).items],
                         [self.key.encode()])
        self.wait("they are gone", self.no_copies)

    def test_cooled(self):
        self.start()
        connection = self.connect()
        self.write(connection)
        self.spread(connection)
        self.wait("they are taken away", self.no_copies)
        self.assertEqual(self.info()["copies_keys"], 0)

    def test_rules_and_mitigation(self):
        self.start()
        connection = self.connect()
        made = self.write(connection)
        for end, begin in ((["HEAT", "RULE", "DEL", "hot:*"], ["HEAT", "RULE", "SET", *RULE.split()]),
                           (["HEAT", "MITIGATE", "off"], ["HEAT", "MITIGATE", "on"]),
                           (["HEAT", "MITIGATE", "observe"], ["HEAT", "MITIGATE", "on"])):
            self.spread(connection)
            self.assertEqual(connection.call(*end).raw, b"+OK\r\n")
            self.wait("they are taken away", self.no_copies)
            for _ in range(30):
                self.assertEqual(number(connection.call("GET", self.key)), made)
            self.assertTrue(self.no_copies())
            self.assertEqual(connection.call(*begin).raw, b"+OK\r\n")


class Nobodys(CopiesCase):
    """Two heatsinks, reserved names, and commands that must not show copies."""

    def test_two_heatsinks(self):
        first, second = self.start(), self.start()
        one, other = self.connect(first), self.connect(second)
        made = self.write(one)
        self.wait("both spread it", lambda: self.is_spread(one) and self.is_spread(other) and len(
            {name.split(b":")[3] for names in self.copies().values() for name in names}) == 2)
        made = self.write(other)
        self.assertEqual(number(other.call("GET", self.key)), made)
        written_s, new = time.monotonic(), 0
        while new < 12:  # the write went through the other heatsink
            asked_s = time.monotonic()
            seen = number(one.call("GET", self.key))
            new = new + 1 if seen == made else 0
            if seen != made:
                self.assertLess(asked_s - written_s, STALE_S)
        one.close()
        first.stop()
        for _ in range(12):
            self.assertEqual(number(other.call("GET", self.key)), made)

    def test_not_shown(self):
        self.start()
        connection = self.connect()
        connection.call("FLUSHALL")
        self.write(connection)
        self.spread_and_seen(connection)
        self.assertEqual([item.text for item in connection.call("KEYS", "*").items],
                         [self.key.encode()])
        self.assertEqual(connection.call("KEYS", PREFIX.decode() + "*").items, [])
        found, cursor = [], b"0"
        while cursor != b"0" or not found:
            reply = connection.call("SCAN", cursor.decode())
            cursor = reply.items[0].text
            found += [item.text for item in reply.items[1].items]
        self.assertEqual(found, [self.key.encode()])
        for _ in range(20):
            self.assertEqual(connection.call("RANDOMKEY").text, self.key.encode())
        for names in self.copies().values():
            for name in names:
                self.assertEqual(connection.call("CLUSTER", "GETKEYSINSLOT", str(slot_of(name)),
                                                 "10").items, [])
                for request in (["GET", name], ["DEL", name], ["MGET", "a", name],
                                ["EVAL", "return 1", "1", name]):
                    self.assertIn(b"heatsink's own", connection.call(*request).text)

    def test_copies_are_not_announced(self):
        """A client that tracks all keys receives no invalidation of a copy."""
        self.start()
        tracker = self.connect()
        tracker.call("HELLO", "3")
        self.assertEqual(tracker.call("CLIENT", "TRACKING", "ON", "BCAST").raw, b"+OK\r\n")
        connection = self.connect()
        self.write(connection)
        self.spread(connection)
        connection.call("SET", "hot:last", "1")
        told = b""
        while b"hot:last" not in told:
            told += tracker.read().raw
        self.assertNotIn(PREFIX, told)

    def test_where_they_bring_nothing(self):
        redis = Redis()
        self.addCleanup(redis.close)
        for args, why in ((["--engine", f"redis://127.0.0.1:{redis.port}"], "one server"),
                          ([], "embedded")):
            server = Heatsink("--rule", RULE, *args)
            self.addCleanup(server.close)
            connection = self.connect(server)
            connection.call("SET", self.key, value(1))
            for _ in range(50):
                connection.call_all([["GET", self.key]] * 20)
            row, = plan(connection)
            self.assertEqual((row["key"], row["state"]), ("hot:*", "paused"))
            self.assertIn(why, row["why"])
            self.assertEqual(connection.call("SET", PREFIX.decode() + "x", "1").raw, b"+OK\r\n")
            self.assertEqual(connection.call("KEYS", PREFIX.decode() + "*").items[0].text,
                             PREFIX + b"x")


if __name__ == "__main__":
    unittest.main()
