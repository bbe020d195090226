"""Goal: under a rule with replica-reads, hot values that are too large for the cache are read from replicas, and
clients notice no difference. A write through heatsink is visible to all clients when it is acknowledged; a direct
write is visible when `stale` is over. This holds whatever a replica has missed, while the cluster fails over and moves
slots, and when a replica does not answer at all.

Method: a real Cluster. The nodes' own commandstats show which node answered; the replica itself shows which writes it
has. A wrong password for its master makes a replica miss writes: it goes on answering with old data. Values carry the
number of the write, and a reader notes the last acknowledged number before each read.
"""
import re
import threading
import time
import unittest

import redis

from cluster import Cluster, slot_of
from servers import GUARD_S, Heatsink, note

ENTRY_BYTES = 1000
FILLER = b"x" * 4 * ENTRY_BYTES
KEY, SMALL = "big:{1}", "big:{1}:small"
PATIENCE_S = 0.2  # heatsink gives a replica a quarter of a second; longer reads may have gone to the master

cluster = None


def setUpModule():
    global cluster
    cluster = Cluster(masters=3, replicas=1, node_timeout_ms=4000)


def tearDownModule():
    cluster.close()


def value(number):
    return b"%d " % number + FILLER


def number_of(text):
    return int(text.split()[0])


class ReplicaCase(unittest.TestCase):
    def begin(self, stale):
        cluster.reset()
        self.server = Heatsink(
            "--engine", cluster.url(cluster.nodes[0]), "--workers", "2",
            "--engine-timeout", "60000", "--cache-entry-bytes", str(ENTRY_BYTES),
            "--rule", f"big:* cache stale={stale} admit=all replica-reads")
        self.addCleanup(self.server.close)
        self.client, self.control = self.server.client(), self.server.raw()
        self.master = cluster.master_of(KEY)
        self.replica = cluster.replicas_of(self.master)[0]

    def counted(self, name):
        """A counter of the rule, summed over all workers."""
        text = self.control.call("INFO", "all").text.decode()
        return int(re.search(rf"^rule0:.*\b{name}=(\d+)", text, re.MULTILINE).group(1))

    @staticmethod
    def gets(node):
        found = re.search(r"cmdstat_get:calls=(\d+)", node.call("INFO", "commandstats").text.decode())
        return int(found.group(1)) if found else 0

    def read_from_replicas(self, more=20):
        """Reads until replicas answered this many reads."""
        start = self.counted("replica_reads")

        def read():
            for _ in range(more):
                self.client.get(KEY)
            return self.counted("replica_reads") >= start + more
        cluster.wait("replicas answer", read)

    def cut(self):
        """Cuts the replica off from its master; it goes on answering with old data."""
        self.replica.call("CONFIG", "SET", "masterauth", "wrong")
        self.addCleanup(self.replica.ask, "CONFIG", "SET", "masterauth", "")
        self.master.call("CLIENT", "KILL", "TYPE", "replica")
        cluster.wait("the link is down",
                  lambda: self.replica.info("replication")["master_link_status"] == "down")

    def what_the_replica_has(self):
        connection = self.replica.raw()
        connection.call("READONLY")
        return number_of(connection.call("GET", KEY).text)


class TestReplicas(ReplicaCase):
    def test_large_values_are_read_from_replicas(self):
        self.begin("10s")
        self.client.set(KEY, value(1))
        self.client.set(SMALL, "1")
        guard = time.monotonic() + GUARD_S
        while True:
            self.read_from_replicas()
            before, longest_s = (self.gets(self.master), self.gets(self.replica)), 0
            for _ in range(200):
                began = time.monotonic()
                self.assertEqual(self.client.get(KEY), value(1))
                longest_s = max(longest_s, time.monotonic() - began)
            asked = self.gets(self.master) - before[0], self.gets(self.replica) - before[1]
            if asked == (0, 200) or longest_s < PATIENCE_S or time.monotonic() > guard:
                break
            note(f"one read took {longest_s:.1f} s, so that master and replica were asked {asked} times; "
                 "once more")
        self.assertEqual(asked, (0, 200))
        # A value that fits is cached, not read from replicas.
        before = self.gets(self.replica)
        for _ in range(50):
            self.assertEqual(self.client.get(SMALL), b"1")
        self.assertEqual(self.gets(self.replica), before)

    def test_a_write_is_seen_at_once_though_the_replica_has_missed_it(self):
        """The replica was caught up recently enough for `stale`, and its next check is seconds away."""
        self.begin("20s")
        self.client.set(KEY, value(1))
        self.read_from_replicas()
        self.cut()
        others = [self.server.client() for _ in range(6)]
        for number in range(2, 6):
            self.client.set(KEY, value(number))
            for client in (self.client, *others):
                for _ in range(5):
                    self.assertEqual(client.get(KEY), value(number))
        self.assertEqual(self.what_the_replica_has(), 1)

    def test_a_direct_write_is_seen_after_stale(self):
        self.begin("500ms")
        self.client.set(KEY, value(1))
        self.read_from_replicas()
        self.cut()
        self.master.call("SET", KEY, value(2))
        over = time.monotonic() + 0.5
        late = 0
        while late < 50:
            asked = time.monotonic()
            seen = number_of(self.client.get(KEY))
            if asked > over:
                self.assertEqual(seen, 2)
                late += 1
        self.assertEqual(self.what_the_replica_has(), 1)
        # The replica is connected again.
        self.replica.call("CONFIG", "SET", "masterauth", "")
        cluster.wait_synced()
        self.read_from_replicas()
        self.assertEqual(number_of(self.client.get(KEY)), 2)

    def test_a_replica_that_says_nothing(self):
        self.begin("10s")
        self.client.set(KEY, value(1))
        self.read_from_replicas()
        self.replica.freeze()
        for number in range(2, 5):
            for _ in range(5):
                self.assertEqual(self.client.get(KEY), value(number - 1))
            self.client.set(KEY, value(number))
        self.replica.thaw()
        self.read_from_replicas()
        self.assertEqual(self.client.get(KEY), value(4))


PAUSE_S = 0.001  # pause between reads, so that clients leave processor time to the servers


class Watched:
    """One writer, several readers: no read may return a number older than the last one acknowledged before it."""

    def __init__(self, server, readers):
        self.done, self.wrong, self.errors = 0, [], []
        self.stopped = threading.Event()
        self.rounds = threading.Semaphore(0)
        self.threads = [threading.Thread(target=self._write, args=(server.client(),))]
        self.threads += [threading.Thread(target=self._read, args=(server.client(),))
                         for _ in range(readers)]
        for thread in self.threads:
            thread.start()

    def _write(self, client):
        number = 0
        while not self.stopped.is_set():
            number += 1
            try:
                client.set(KEY, value(number))
                self.done = number
            except redis.RedisError as error:
                self.errors.append(str(error))
            for _ in range(number % 10 * 20):  # sometimes time for the replica to catch up, sometimes none
                client.get(KEY)
            self.rounds.release()

    def _read(self, client):
        while not self.stopped.wait(PAUSE_S):
            least = self.done
            try:
                text = client.get(KEY)
                if (number_of(text) if text else 0) < least:
                    self.wrong.append((least, text and number_of(text)))
            except redis.RedisError as error:
                self.errors.append(str(error))

    def wait_rounds(self, count):
        for _ in range(count):
            assert self.rounds.acquire(timeout=GUARD_S), "nobody writes"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stopped.set()
        for thread in self.threads:
            thread.join()


class TestUnderWay(ReplicaCase):
    def test_while_the_cluster_changes(self):
        """The cluster fails over twice, and the slot moves to another node and back."""
        self.begin("200ms")
        with Watched(self.server, 3) as watched:
            watched.wait_rounds(40)
            cluster.wait("replicas answer meanwhile", lambda: self.counted("replica_reads") > 0)
            for _ in range(2):
                cluster.fail_over(cluster.master_of(KEY))
                watched.wait_rounds(20)
            home = cluster.master_of(KEY)
            away = next(node for node in cluster.masters() if node is not home)
            for node in (away, home):
                cluster.begin_move([slot_of(KEY)], node)
                watched.wait_rounds(10)
                cluster.move_keys([slot_of(KEY)], node)
                watched.wait_rounds(10)
                cluster.end_move([slot_of(KEY)], node)
                watched.wait_rounds(10)
            watched.wait_rounds(20)
        self.assertEqual(watched.wrong, [])
        self.assertEqual(watched.errors, [])
        self.read_from_replicas()
        self.assertEqual(number_of(self.client.get(KEY)), watched.done)


if __name__ == "__main__":
    unittest.main()
