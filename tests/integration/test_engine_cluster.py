"""Goal: a plain client, which knows nothing of clusters, sees one server in heatsink: keys of all slots, commands over
several slots, transactions, blocking commands. This holds while the cluster fails over and moves slots. heatsink is
given the address of one node and finds the others.

Method: a real Cluster of three masters with a replica each, shared by the tests of the module, with python3-redis in
front of heatsink. The tests read the nodes directly to see what the cluster holds. During changes several clients
work all the time, and every reply they get is checked.
"""
import itertools
import os
import threading
import unittest

import redis

from cluster import ASKED_ONLY, SLOTS, Cluster, slot_of
from servers import GUARD_S, Heatsink

SANITIZERS = ("address", "thread")  # the one Cluster module of the short sanitizer runs

TIMEOUT_MS = GUARD_S * 1000  # a failover may take long on a busy machine; no request may fail meanwhile

REFRESH_MS = 600000  # longer than any test: heatsink must notice changes by a redirect or an error, not by this refresh

cluster = None


def setUpModule():
    global cluster
    cluster = Cluster(masters=3, replicas=1, node_timeout_ms=4000, args=ASKED_ONLY)


def tearDownModule():
    cluster.close()


TAGS, NUMBERS = {}, itertools.count()


def key_in(slot):
    """A key whose slot this is."""
    while slot not in TAGS:
        tag = str(next(NUMBERS))
        TAGS.setdefault(slot_of(tag), tag)
    return f"key:{{{TAGS[slot]}}}"


class Busy:
    """Clients that work until they are told to end. Each increments and reads one key, and records errors."""

    def __init__(self, server, keys):
        self.errors, self.acknowledged, self.wrong = [], {key: 0 for key in keys}, []
        self.going, self.rounds = True, threading.Semaphore(0)
        self.threads = [threading.Thread(target=self._work, args=(server.client(), key))
                        for key in keys]
        for thread in self.threads:
            thread.start()

    def _work(self, client, key):
        while self.going:
            try:
                said = client.incr(key)
                self.acknowledged[key] += 1
                seen = int(client.get(key))
                if said != self.acknowledged[key] or seen != said:
                    self.wrong.append((key, said, seen, self.acknowledged[key]))
            except redis.RedisError as error:
                self.errors.append(f"{key}: {error}")
            self.rounds.release()

    def wait_rounds(self, count):
        for _ in range(count):
            assert self.rounds.acquire(timeout=GUARD_S), "the clients do nothing"

    def end(self):
        self.going = False
        for thread in self.threads:
            thread.join()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()


class ClusterCase(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        cluster.reset()
        self.server = Heatsink("--engine", cluster.url(cluster.nodes[0]), "--workers", "2",
                               "--engine-timeout", TIMEOUT_MS, "--engine-topology-refresh", REFRESH_MS)
        self.addCleanup(self.server.close)
        self.server.wait_engine()
        self.client = self.server.client()

    def info(self, name):
        return self.client.info("engine")[name]


class TestData(ClusterCase):
    def test_keys_of_every_slot(self):
        """A key in every hundredth slot, and in the first and last slot of each master."""
        slots = sorted({*range(0, SLOTS, 100), 0, 5460, 5461, 10921, 10922, SLOTS - 1})
        for slot in slots:
            self.assertTrue(self.client.set(key_in(slot), slot))
        for slot in slots:
            self.assertEqual(self.client.get(key_in(slot)), str(slot).encode())
        for node in cluster.masters():
            owned = [slot for slot in slots if slot in node.myself().slots]
            self.assertEqual(node.call("DBSIZE").number(), len(owned))
        self.assertEqual(self.info("engine_moved_redirects"), 0)  # each request went to the slot's owner at once

    def test_commands_over_many_slots(self):
        keys = [key_in(slot) for slot in range(0, SLOTS, 371)]
        self.client.mset({key: f"of {key}" for key in keys})
        self.assertEqual(self.client.mget(*keys, "none"), [f"of {k}".encode() for k in keys] + [None])
        self.assertEqual(self.client.exists(*keys, keys[0]), len(keys) + 1)
        self.assertEqual(self.client.touch(*keys), len(keys))
        self.assertEqual(self.client.delete(*keys[:10], "none"), 10)
        self.assertEqual(self.client.unlink(*keys[5:15]), 5)
        self.assertEqual(self.client.dbsize(), len(keys) - 15)

    def test_commands_over_all_nodes(self):
        names = {f"user:{number}".encode() for number in range(500)}
        for name in names:
            self.client.set(name, "x")
        self.client.set("other", "x")
        self.assertEqual(self.client.dbsize(), 501)
        self.assertEqual(set(self.client.keys("user:*")), names)
        self.assertEqual(sorted(self.client.scan_iter(count=17)), sorted(names | {b"other"}))
        self.assertEqual(set(self.client.scan_iter(match="user:1*")),
                         {name for name in names if name.startswith(b"user:1")})
        self.assertIn(self.client.randomkey(), names | {b"other"})
        self.assertTrue(self.client.flushall())
        self.assertEqual(self.client.dbsize(), 0)
        self.assertEqual([node.call("DBSIZE").number() for node in cluster.masters()], [0, 0, 0])

    def test_pipelines(self):
        """Replies come in the order of the requests, whichever node they come from."""
        with self.client.pipeline(transaction=False) as pipe:
            for number in range(2000):
                pipe.set(f"k{number}", number)
                pipe.get(f"k{number}")
                pipe.incr(f"n{number % 7}")
            answers = pipe.execute()
        self.assertEqual(answers[0::3], [True] * 2000)
        self.assertEqual(answers[1::3], [str(n).encode() for n in range(2000)])
        self.assertEqual(answers[2::3], [number // 7 + 1 for number in range(2000)])

    def test_keys_of_several_slots_are_refused(self):
        with self.assertRaisesRegex(redis.ResponseError, "CROSSSLOT"):
            self.client.rename("a", "b")

    def test_types_that_heatsink_learned(self):
        self.client.hset("{h}1", mapping={"a": "1", "b": "2"})
        self.client.zadd("z", {"x": 1.5, "y": 2})
        self.client.xadd("stream", {"field": "value"})
        self.assertEqual(self.client.hgetall("{h}1"), {b"a": b"1", b"b": b"2"})
        self.assertEqual(self.client.zrange("z", 0, -1, withscores=True), [(b"x", 1.5), (b"y", 2)])
        self.assertEqual(self.client.xlen("stream"), 1)
        self.assertEqual(self.client.eval("return redis.call('get', KEYS[1])", 1, "none"), None)

    def test_a_large_value_passes_both_ways(self):
        value = os.urandom(8 << 20)
        self.client.set("large", value)
        self.assertEqual(self.client.get("large"), value)


class TestTransactions(ClusterCase):
    def test_multi(self):
        with self.client.pipeline() as pipe:
            pipe.set("{t}a", "1").incr("{t}a").get("{t}a").lpush("{t}l", "x")
            self.assertEqual(pipe.execute(), [True, 2, b"2", 1])
        self.assertEqual(cluster.direct("{t}a").get("{t}a"), b"2")

    def test_watch(self):
        for changed in (False, True):
            with self.client.pipeline() as pipe:
                pipe.watch("{w}a")
                if changed:
                    cluster.direct("{w}a").set("{w}a", "theirs")  # written directly at the master
                pipe.multi()
                pipe.set("{w}b", "ours")
                if changed:
                    with self.assertRaises(redis.WatchError):
                        pipe.execute()
                else:
                    self.assertEqual(pipe.execute(), [True])
        self.assertEqual(self.info("engine_outcome_unknown"), 0)

    def test_blocking(self):
        """A blocked client gets the element that another one pushes; a blocking command on an empty list times out."""
        got = []

        def wait():
            got.append(other.blpop("queue", timeout=GUARD_S))
        other, owner = self.server.client(), cluster.master_of("queue")
        thread = threading.Thread(target=wait)
        thread.start()
        cluster.wait("somebody blocks", lambda: owner.info("clients")["blocked_clients"] == "1")
        self.assertEqual(self.client.rpush("queue", "job"), 1)
        thread.join()
        self.assertEqual(got, [(b"queue", b"job")])
        self.assertEqual(self.client.exists("queue"), 0)
        self.assertIsNone(self.client.blpop("queue", timeout=0.01))


class TestChange(ClusterCase):
    def keys(self):
        """A key of each master, and more keys of the first."""
        return [key_in(slot) for slot in (1, 2, 3, 6000, 12000)]

    def check(self, busy):
        self.assertEqual(busy.errors, [])
        self.assertEqual(busy.wrong, [])
        for key, count in busy.acknowledged.items():
            self.assertEqual(int(cluster.direct(key).get(key)), count)

    def test_a_manual_failover_is_not_noticed(self):
        master = cluster.master_of(1)
        with Busy(self.server, self.keys()) as busy:
            busy.wait_rounds(100)
            replica = cluster.fail_over(master)
            self.server.wait_log(f"{replica.address} has replaced {master.address} as master")
            busy.wait_rounds(100)
        self.check(busy)

    def set_asked_only(self, word):
        for node in cluster.answering():
            node.call("CONFIG", "SET", "cluster-replica-no-failover", word)

    def let_replicas_take_over(self):
        self.addCleanup(self.set_asked_only, "yes")
        self.set_asked_only("no")

    def test_a_killed_master_is_replaced(self):
        self.let_replicas_take_over()
        master = cluster.master_of(1)
        self.client.set(key_in(1), "before")
        cluster.wait_synced()
        master.kill9()
        self.assertEqual(self.client.get(key_in(1)), b"before")  # held until the replica has taken over
        self.assertTrue(self.client.set(key_in(1), "after"))
        self.assertEqual(cluster.direct(key_in(1)).get(key_in(1)), b"after")
        self.server.wait_log(f"{master.address}, master of partition \\d+: ")
        self.server.wait_log(f"has replaced {master.address} as master")
        master.restart()
        cluster.wait_ready()
        self.assertEqual(self.client.get(key_in(1)), b"after")

    def test_others_are_served_while_a_master_is_away(self):
        """Law 9: only requests for the frozen master wait."""
        self.let_replicas_take_over()
        master = cluster.master_of(1)
        master.freeze()
        waiting = threading.Thread(target=self.server.client().get, args=(key_in(1),))
        waiting.start()
        for _ in range(100):
            self.client.set(key_in(6000), "x")
        master.thaw()
        waiting.join()

    def test_slots_that_move_are_not_noticed(self):
        slots = [1, 2, 3]
        away, home = cluster.master_of(6000), cluster.master_of(1)
        others = {f"m{number}:{key_in(2)}": str(number) for number in range(300)}
        self.client.mset(others)
        with Busy(self.server, self.keys()) as busy:
            busy.wait_rounds(100)
            cluster.move_slots(slots, to=away)
            self.server.wait_log("slots? moved")
            busy.wait_rounds(100)
            cluster.move_slots(slots, to=home)
            busy.wait_rounds(100)
        self.check(busy)
        self.assertEqual(self.client.mget(list(others)), [v.encode() for v in others.values()])

    def test_a_slot_half_moved(self):
        """Keys of one slot on two masters: heatsink follows ASK without changing its slot map."""
        away = cluster.master_of(6000)
        keys = [f"{word}:{key_in(7)}" for word in "abcdef"]
        for key in keys:
            self.client.set(key, key)
        cluster.begin_move([7], to=away)
        cluster.move_keys([7], to=away, keys=keys[:3])
        for key in keys:
            self.assertEqual(self.client.get(key), key.encode())
        self.assertGreaterEqual(self.info("engine_ask_redirects"), 3)
        self.assertEqual(self.info("engine_moved_redirects"), 0)
        cluster.move_keys([7], to=away)
        cluster.end_move([7], to=away)
        for key in keys:
            self.assertEqual(self.client.get(key), key.encode())


class TestLooking(unittest.TestCase):
    """Without clients no redirect comes: only the periodic refresh finds changes."""

    def test_older_topology_is_ignored(self):
        """Two of three nodes report the topology before a slot move: heatsink ignores it until all three do."""
        with Cluster(masters=3, replicas=0, relays=True) as own:
            first, second, third = own.nodes
            old = {words: first.call(*words.split()).raw
                   for words in ("CLUSTER INFO", "CLUSTER SLOTS")}
            with Heatsink("--engine", own.url(), "--engine-topology-refresh", "100") as server:
                server.wait_engine()  # heatsink has learned the first owner of the slot
                own.move_slots([1], to=second)
                server.wait_log("1 slot moved")
                # While the nodes exchange the change, heatsink may follow one or the other: wait until all
                # agree and heatsink has looked again.
                own.wait_agreed()
                seen = sum(node.relay.count("CLUSTER SLOTS") for node in own.nodes)
                own.wait("some looks", lambda: sum(
                    node.relay.count("CLUSTER SLOTS") for node in own.nodes) >= seen + 6)
                before = sum("moved" in line for line in server.log)
                for node in (first, second):
                    # The old epoch first, until heatsink has read it: old slots with the new epoch
                    # would count as a newer topology.
                    node.relay.answer(old["CLUSTER INFO"], "CLUSTER INFO", times=None).wait(hits=2)
                    node.relay.answer(old["CLUSTER SLOTS"], "CLUSTER SLOTS", times=None).wait(hits=3)
                self.assertEqual(sum("moved" in line for line in server.log), before)
                for words, text in old.items():
                    third.relay.answer(text, words, times=None)
                server.wait_log("1 slot moved.*")
                own.wait("it is believed", lambda: sum("moved" in line for line in server.log) > before)


class TestTelemetry(ClusterCase):
    def partitions(self):
        rows = [dict(zip(row[0::2], row[1::2])) for row in
                self.client.execute_command("HEAT", "PARTITIONS")]
        return {row[b"address"].decode(): row for row in rows if row[b"id"] != b"median"}

    def test_partitions_are_masters(self):
        for number in range(100):
            self.client.set(f"k{number}", "x", ex=1000 if number < 10 else None)
        masters = {node.address for node in cluster.masters()}
        self.assertEqual(set(self.partitions()), masters)
        self.assertEqual(self.client.info("server")["partitions"], 3)
        cluster.wait("replicas are told of", lambda: all(
            row[b"replicas"] == 1 and row[b"memory"] > 0 for row in self.partitions().values()))
        cluster.wait("keys are counted", lambda: self.client.info("keyspace") ==
                     {"db0": {"keys": 100, "expires": 10, "avg_ttl": 0}})
        covered = {slot for row in self.partitions().values() for part in
                   row[b"slots"].decode().split() for slot in
                   range(int(part.split("-")[0]), int(part.split("-")[-1]) + 1)}
        self.assertEqual(len(covered), SLOTS)

    def test_a_shard_keeps_its_number(self):
        master = cluster.master_of(1)
        before = self.partitions()[master.address][b"id"]
        replica = cluster.fail_over(master)
        cluster.wait("it is seen", lambda: replica.address in self.partitions())
        self.assertEqual(self.partitions()[replica.address][b"id"], before)


if __name__ == "__main__":
    unittest.main()
