"""Goal: a cached reply is never older than its rule allows, in every failure: direct writes at the server (past
heatsink), connections that die with or without notice, a server that is restarted, flushed, failed over or
resharded, rules and mitigation that change under load. A write acknowledged by heatsink is visible to all clients at
once, and a connection always sees its own writes.

Method: real servers. One writer counts a key up, directly at the server, and records when each number was
acknowledged. Readers on several connections of several workers record when they sent each GET and which number they
received. A GET sent more than `stale` after a number was acknowledged must return that number or a later one; all
times come from one machine's clock. Meanwhile the failure is injected. HEAT RULE LIST and the server's own command
counters show that the cache really served reads.
"""
import itertools
import os
import re
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import redis

import resp
from checks import wait_for
from cluster import ASKED_ONLY, Cluster, slot_of
from relay import Relay
from servers import GUARD_S, Heatsink, Redis, note

STALE_S = 0.2
TIMEOUT_MS = GUARD_S * 1000  # a slow request on a busy machine is not given up
READERS = 4
PACE_S = 0.005  # the longest time that the writer waits for readers between two writes
QUICK_S = 0.1  # the longest time that a worker waits for the fetch of another worker
PAUSE_S = 0.001  # pause between reads, so that readers leave processor time to the servers
RULE = f"k* cache stale={int(STALE_S * 1000)}ms admit=all"
TROUBLE = (OSError, resp.Closed, redis.RedisError)


def rule_counts(server):
    """The counters of the first rule, by name."""
    with resp.Connection(server.port, GUARD_S) as connection:
        words = connection.call("HEAT", "RULE", "LIST").items[0].items
    pairs = zip(words[::2], words[1::2])
    return {name.text.decode(): int(value.text) for name, value in pairs
            if re.fullmatch(rb"-?\d+", value.text or b"")}


def asked_of(client, command):
    """How often the server ran this command."""
    stats = client.info("commandstats")
    return stats.get("cmdstat_" + command, {"calls": 0})["calls"]


ASKED_ONCE_TRIES = 5


class Watch:
    """One writer that counts up, many readers, and the check that no read was too old."""

    def __init__(self, test, server, write, stale_s=STALE_S, key="k"):
        self.test, self.server, self.write, self.key = test, server, write, key
        self.stale_s = stale_s
        self.acknowledged = []  # (number, time of the acknowledgement)
        self.reads = []  # (time of sending, number)
        self.change = threading.Condition()  # notified when one of the two lists grows, and at the end
        self.ended = threading.Event()
        self.threads = [threading.Thread(target=self._write)]
        self.threads += [threading.Thread(target=self._read) for _ in range(READERS)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        self.wait_writes(3)
        return self

    def __exit__(self, failed, *_):
        """Goes on until a read was sent so late that it must return the last number written before this call."""
        now = time.monotonic()
        try:
            if not failed:
                self.wait("readers ask on",
                          lambda: self.reads and self.reads[-1][0] > now + self.stale_s)
        finally:
            self._end()

    def _end(self):
        self.ended.set()
        self._note()
        for thread in self.threads:
            thread.join()

    def _note(self, written=None, read=None):
        with self.change:
            self.acknowledged += [written] if written else []
            self.reads += [read] if read else []
            self.change.notify_all()

    def _write(self):
        number = 0
        while not self.ended.is_set():
            number += 1
            try:
                self.write(number)
            except TROUBLE:
                continue  # outcome unknown: reads may or may not see it
            self._note(written=(number, time.monotonic()))
            with self.change:  # readers get a turn; one that gets no answer is not waited for
                reads = len(self.reads)
                self.change.wait_for(lambda: self.ended.is_set() or
                                     len(self.reads) >= reads + READERS,
                                     PACE_S)

    def _read(self):
        connection = None
        while not self.ended.wait(PAUSE_S):
            try:
                connection = connection or resp.Connection(self.server.port, 5)
                asked = time.monotonic()
                reply = connection.call("GET", self.key)
            except TROUBLE:
                if connection:
                    connection.close()
                connection = None
                continue
            if not reply.is_error:
                self._note(read=(asked, 0 if reply.is_null else int(reply.text)))
        if connection:
            connection.close()

    def wait_writes(self, more):
        """Waits until `more` further numbers were acknowledged and `more` further reads were answered."""
        count, reads = len(self.acknowledged) + more, len(self.reads) + more
        self.wait("numbers are written and read",
                  lambda: len(self.acknowledged) >= count and len(self.reads) >= reads)

    def wait(self, what, condition):
        """Waits for the condition, which is checked after every write and read."""
        with self.change:
            self.test.assertTrue(self.change.wait_for(condition, GUARD_S), "never happened: " + what)

    def check(self, after=0.0):
        """Every read must be at least as new as the last number acknowledged `stale` before the read was sent.
        Reads sent before `after` are not checked: the server lost its memory, and numbers with it."""
        at, least = 0, 0
        for asked, number in sorted(self.reads):
            while at < len(self.acknowledged) and \
                    self.acknowledged[at][1] + self.stale_s < asked:
                least = self.acknowledged[at][0]
                at += 1
            if asked > after:
                self.test.assertGreaterEqual(
                    number, least, f"asked {self.stale_s} s after {least} was acknowledged")
        self.test.assertGreater(least, 0, "nothing was compared")


class CacheCase(unittest.TestCase):
    """heatsink with two workers in front of a redis-server, with a relay between them."""

    def start(self, rule=RULE, *args):
        self.redis = Redis()
        self.addCleanup(self.redis.close)
        self.relay = Relay(self.redis.port)
        self.addCleanup(self.relay.close)
        self.server = Heatsink("--workers", "2", "--engine",
                               f"redis://127.0.0.1:{self.relay.port}", "--engine-timeout", TIMEOUT_MS,
                               "--rule", rule, *args)
        self.addCleanup(self.server.close)
        self.server.wait_engine()
        self.direct = self.redis.client()

    def connect(self, count=1):
        crowd = [resp.Connection(self.server.port, GUARD_S) for _ in range(count)]
        for connection in crowd:
            self.addCleanup(connection.close)
        return crowd if count > 1 else crowd[0]

    def watch(self, **options):
        return Watch(self, self.server, lambda number: self.direct.set("k", number), **options)


class OneServer(CacheCase):
    def test_one_fetch_for_all_readers(self):
        self.start("k* cache stale=1h ttl=1h admit=all")
        crowd = self.connect(8)
        for number in range(1, ASKED_ONCE_TRIES + 1):
            before, lost = asked_of(self.direct, "get"), rule_counts(self.server)["invalidated_by_disconnect"]
            self.direct.set(f"k{number}", "v")
            for _ in range(20):
                for connection in crowd:
                    self.assertEqual(connection.call("GET", f"k{number}").text, b"v")
            counts, asked = rule_counts(self.server), asked_of(self.direct, "get")
            self.assertEqual(asked, counts["fetches"])
            self.assertEqual(counts["hits"] + counts["misses"], 160 * number)
            if asked - before <= 2 or counts["invalidated_by_disconnect"] == lost:
                break
            note("heatsink closed the connection that watches the entries, because the server was silent for "
                 "too long; once more")
        self.assertLessEqual(asked - before, 2)  # one fetch per worker

    def test_acknowledged_writes_are_seen_at_once(self):
        self.start("k* cache stale=1h ttl=1h admit=all")
        writers, readers = self.connect(4), self.connect(8)
        for round_ in range(100):
            writer = writers[round_ % len(writers)]
            how = (["SET", "k", round_], ["SET", "k", round_, "PX", 100000],
                   ["GETSET", "k", round_], ["MSET", "k", round_, "k2", 1],
                   ["EVAL", "return redis.call('set', KEYS[1], ARGV[1])", 1, "k", round_])
            self.assertFalse(writer.call(*how[round_ % len(how)]).is_error)
            for reader in readers:
                self.assertEqual(reader.call("GET", "k").number(), round_)
        counts = rule_counts(self.server)
        self.assertGreater(counts["hits"], 300)
        self.assertGreater(counts["write_through"], 20)

    def test_a_connection_sees_its_own_writes(self):
        self.start("k* cache stale=1h ttl=1h admit=all")
        crowd = self.connect(8)
        numbers = [0] * len(crowd)
        for _ in range(50):
            for connection in crowd:
                connection.send(b"".join(resp.encode(*words) for words in
                                         (["INCR", "k"], ["GET", "k"], ["SET", "k2", "x"],
                                          ["INCR", "k"], ["GET", "k"])))
            for i, connection in enumerate(crowd):
                first, seen, _, second, last = [connection.read() for _ in range(5)]
                self.assertGreaterEqual(seen.number(), first.number())
                self.assertGreaterEqual(last.number(), second.number())
                self.assertGreater(first.number(), numbers[i])
                numbers[i] = second.number()
        self.assertEqual(max(numbers), 50 * 2 * len(crowd))

    def test_direct_writes(self):
        self.start()
        with self.watch() as watch:
            watch.wait_writes(200)
            wait_for(self, "entries are used", lambda: rule_counts(self.server)["hits"] > 200)
            wait_for(self, "entries are ended",
                     lambda: rule_counts(self.server)["invalidated_by_server"] > 20)
        watch.check()

    def test_connections_that_are_cut(self):
        self.start()
        with self.watch() as watch:
            for _ in range(20):
                watch.wait_writes(10)
                self.relay.cut_all()
            wait_for(self, "entries are ended", lambda: rule_counts(self.server)["invalidated_by_disconnect"] +
                     rule_counts(self.server)["invalidated_by_server"] > 0)
        watch.check()

    def test_a_connection_that_is_silent(self):
        self.start()
        with self.watch() as watch:
            for _ in range(5):
                watch.wait_writes(20)
                self.relay.pause()
                written = len(watch.acknowledged)
                watch.wait("longer than anything may be old",
                           lambda: watch.acknowledged[-1][1] - watch.acknowledged[written - 1][1]
                           > 2 * STALE_S)
                self.relay.resume()
        watch.check()

    def test_a_server_that_kills_clients(self):
        self.start()
        with self.watch() as watch:
            for _ in range(10):
                watch.wait_writes(10)
                self.direct.client_kill_filter(_type="normal", skipme=True)
        watch.check()

    def test_a_flush(self):
        self.start()
        connection = self.connect()
        self.direct.set("k", "kept")
        wait_for(self, "it is read", lambda: connection.call("GET", "k").text == b"kept")
        self.direct.flushall()
        wait_for(self, "the flush is seen", lambda: connection.call("GET", "k").is_null)

    def test_a_server_that_is_restarted(self):
        self.start()
        with self.watch() as watch:
            watch.wait_writes(20)
            self.redis.kill9()
            self.redis.start()
            self.relay.target = self.redis.port
            self.direct = self.redis.client()
            self.relay.cut_all()
            watch.wait_writes(20)
            written = time.monotonic()
            watch.wait("what is compared was written since",
                       lambda: watch.acknowledged[-1][1] > written + STALE_S)
            back = time.monotonic()
            watch.wait_writes(50)
        watch.check(after=back)

    def test_a_write_of_unknown_outcome(self):
        self.start("k* cache stale=1h ttl=1h admit=all")
        connection, other = self.connect(2)
        connection.call("SET", "k", "before")
        for reader in (connection, other):  # both workers have a cache entry: a SET is written through
            self.assertEqual(reader.call("GET", "k").text, b"before")
        lost = self.relay.cut_after("EXEC")
        reply = connection.call("SET", "k", "perhaps")
        self.assertTrue(reply.is_error and reply.text.startswith(b"UNKNOWN"), reply)
        lost.wait()
        for reader in (connection, other):
            self.assertEqual(reader.call("GET", "k").text, self.direct.get("k"))
        self.assertEqual(self.direct.get("k"), b"perhaps")

    def test_values_too_large_to_cache(self):
        self.start("k* cache stale=1h ttl=1h admit=all", "--cache-bytes", "1mb",
                   "--cache-entry-bytes", "64kb")
        connection = self.connect()
        for size, kept in ((1000, True), (100_000, False), (5_000_000, False)):
            self.direct.set("k%d" % size, b"x" * size)
            before = asked_of(self.direct, "get")
            for _ in range(5):
                self.assertEqual(connection.call("GET", "k%d" % size).text, b"x" * size)
            self.assertEqual(asked_of(self.direct, "get") - before, 1 if kept else 5)

    def test_many_keys_stay_within_bounds(self):
        self.start("k* cache stale=1h ttl=1h admit=all", "--cache-bytes", "1mb")
        connection = self.connect()
        for start in range(0, 30_000, 2000):
            connection.call_all([["GET", f"k{i}"] for i in range(start, start + 2000)])

        def counted():
            text = connection.call("INFO", "stats").text.decode()
            return {name: int(value)
                    for name, value in re.findall(r"^(cache_\w+):(\d+)", text, re.M)}

        wait_for(self, "most had to go", lambda: counted()["cache_evicted_keys"] > 20_000)
        self.assertLessEqual(counted()["cache_bytes"], 1 << 20)
        self.assertGreater(counted()["cache_keys"], 100)

    def test_a_key_that_changes_its_type(self):
        self.start("k* cache stale=1h ttl=1h admit=all")
        connection = self.connect()
        changes = ((["SET", "k", "text"], ["GET", "k"], b"text"),
                   (["HSET", "k", "f", "v"], ["HGET", "k", "f"], b"v"),
                   (["RPUSH", "k", "x"], ["LINDEX", "k", 0], b"x"))
        for through in (self.direct, connection):
            for change, look, text in changes * 2:
                run = through.execute_command if through is self.direct else through.call
                run("DEL", "k")
                run(*change)
                wait_for(self, "the new type is seen",
                         lambda: connection.call(*look).text == text or
                         self.assertIs(through, self.direct))
                for _, other, _ in changes:
                    self.assertEqual(connection.call(*other).is_error, other != look)

    def read_to_its_end(self, crowd, key):
        """How often the server was asked for the key, and the longest time that all clients took to read it once."""
        before, longest, over = asked_of(self.direct, "get"), 0.0, False
        self.direct.set(key, "v", px=700)
        while not over:
            began = time.monotonic()
            for connection in crowd:
                connection.send(resp.encode("GET", key))
            over = any([connection.read().is_null for connection in crowd])
            longest = max(longest, time.monotonic() - began)
        return asked_of(self.direct, "get") - before, longest

    def test_the_end_of_a_key_that_many_read(self):
        # No refresh-ahead: it fetches at random before the end, more often the longer a read takes.
        self.start("k* cache stale=1h ttl=1h negative-ttl=1h admit=all refresh-ahead=0")
        crowd, guard = self.connect(100), time.monotonic() + GUARD_S
        for number in itertools.count():
            asked, longest = self.read_to_its_end(crowd, f"k{number}")
            # One fetch at the first read and one at the end of the entry.
            if asked <= 2:
                break
            self.assertGreater(longest, QUICK_S, f"asked {asked} times")
            self.assertLessEqual(asked, 4)  # one fetch per worker
            self.assertLess(time.monotonic(), guard, "never quick enough")
            note(f"all took {longest:.3f} s to read a key, and it is tried again with another")

    def test_rules_that_change_under_load(self):
        self.start()
        connection = self.connect()
        with self.watch() as watch:
            for i in range(40):
                watch.wait_writes(5)
                ways = (["HEAT", "RULE", "SET", "k*", "strict"],
                        ["HEAT", "RULE", "SET", "k*", "cache", "stale=100ms", "admit=all"],
                        ["HEAT", "RULE", "DEL", "k*"],
                        ["HEAT", "RULE", "SET", *RULE.split()],
                        ["HEAT", "MITIGATE", "observe"], ["HEAT", "MITIGATE", "off"],
                        ["CONFIG", "SET", "cache-bytes", "0"],
                        ["CONFIG", "SET", "cache-bytes", "10mb"], ["HEAT", "MITIGATE", "on"])
                reply = connection.call(*ways[i % len(ways)])
                self.assertEqual(reply.text, b"OK", ways[i % len(ways)])
        watch.check()

    def test_observe_reports_the_possible_saving(self):
        self.start(RULE, "--mitigate", "observe")
        connection = self.connect()
        self.direct.set("k", "v")
        for _ in range(100):
            self.assertEqual(connection.call("GET", "k").text, b"v")
        counts = rule_counts(self.server)
        self.assertEqual(asked_of(self.direct, "get"), 100)
        self.assertEqual(counts["hits"], 0)
        self.assertEqual(counts["would_hit"] + counts["would_miss"], 100)
        self.assertGreater(counts["would_hit"], 50)


class Embedded(unittest.TestCase):
    def test_the_same_contract(self):
        with Heatsink("--workers", "2", "--sync", "off", "--rule", RULE) as server:
            with server.raw() as writer:
                def write(number):
                    if writer.call("SET", "k", number).is_error:
                        raise OSError("not written")

                # All writes pass through heatsink, so an acknowledged number is visible at once.
                with Watch(self, server, write, stale_s=0.0) as watch:
                    watch.wait_writes(300)
                    wait_for(self, "entries are used", lambda: rule_counts(server)["hits"] > 100)
                watch.check()
                writer.call("SET", "k", "x", "PX", 50)
                wait_for(self, "it ends", lambda: writer.call("GET", "k").is_null)


class OfACluster(unittest.TestCase):
    """All tests share one cluster: three masters with a replica each."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(node_timeout_ms=4000, args=ASKED_ONLY)
        cls.addClassCleanup(cls.cluster.close)

    def setUp(self):
        self.cluster.reset()
        self.server = Heatsink("--workers", "2", "--engine", self.cluster.url(), "--rule", RULE)
        self.addCleanup(self.server.close)
        self.clients = {}

    def write(self, number):
        """Writes directly at the slot's present master, past heatsink."""
        master = self.cluster.master_of("k")
        if not master:
            raise OSError("just now it has none")
        client = self.clients.setdefault(master.port, master.client())
        client.set("k", number)

    def test_a_failover(self):
        with Watch(self, self.server, self.write) as watch:
            for _ in range(2):
                watch.wait_writes(20)
                self.cluster.fail_over(self.cluster.master_of("k"))
                watch.wait_writes(20)
        watch.check()

    def test_slots_that_move(self):
        slot = slot_of("k")
        with Watch(self, self.server, self.write) as watch:
            for _ in range(4):
                watch.wait_writes(20)
                home = self.cluster.master_of("k")
                away = next(node for node in self.cluster.masters() if node is not home)
                self.cluster.move_slots([slot], to=away)
        watch.check()


if __name__ == "__main__":
    unittest.main()
