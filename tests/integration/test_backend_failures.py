"""Goal: a failure behind heatsink affects as few clients as possible, and no reply claims an outcome that is not true
(laws 4 and 9 of docs/ARCHITECTURE.md). Failures: a master dies, slots migrate, a server freezes, replies are lost,
a server sends nonsense.

Method: a real Redis Cluster (tests/lib/cluster.py), or a redis-server behind a relay that injects faults
(tests/lib/relay.py), with heatsink in front. Clients increment counters all the time and record every reply.
Afterwards the counters are compared: an acknowledged increment happened, one with unknown outcome may have
happened, a refused one did not happen, and none happened twice.
"""

import os
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import resp
import servers
from cluster import POLL_S, Cluster, slot_of
from relay import Relay

PATIENT = ("--engine-timeout", str(servers.GUARD_S * 1000))  # slow servers are waited for
PAUSE_S = 0.005  # pause between the requests of a client, so that clients leave processor time to the servers


class Counting:
    """Clients of heatsink, one connection each, that increment counters until they are told to stop."""

    def __init__(self, port, names):
        self.port, self.names = port, names
        self.lock = threading.Condition()
        self.known = {name: 0 for name in names}  # acknowledged
        self.unknown = {name: 0 for name in names}
        self.refused = {name: 0 for name in names}
        self.last = {name: 0 for name in names}  # the last value received
        self.wrong = []
        self.stopped = threading.Event()
        self.threads = [threading.Thread(target=self._run, args=(name,), daemon=True)
                        for name in names]
        for thread in self.threads:
            thread.start()

    def _run(self, name):
        connection = resp.Connection(self.port, servers.GUARD_S)
        while not self.stopped.wait(PAUSE_S):
            reply = connection.call("INCR", name)
            with self.lock:
                self._note(name, reply)
                self.lock.notify_all()
        connection.close()

    def _note(self, name, reply):
        if reply.raw.startswith(b":"):
            self.known[name] += 1
            self.last[name] = reply.number()
        elif reply.raw.startswith(b"-UNKNOWN"):
            self.unknown[name] += 1
        elif reply.raw.startswith((b"-CLUSTERDOWN", b"-BUSY", b"-LOADING", b"-TRYAGAIN")):
            self.refused[name] += 1
        else:
            self.wrong.append((name, reply.raw))

    def wait(self, names, more):
        """Waits until each of `names` has `more` further acknowledged increments."""
        with self.lock:
            wanted = {name: self.known[name] + more for name in names}
            done = self.lock.wait_for(
                lambda: self.wrong or all(self.known[name] >= wanted[name] for name in names),
                servers.GUARD_S)
            if not done:
                raise AssertionError(f"no progress: {wanted}, {self.known}")

    def stop(self):
        self.stopped.set()
        for thread in self.threads:
            thread.join(servers.GUARD_S)


def names_on(cluster, node, count):
    """Names of counters whose slots one node owns."""
    owners = cluster.owners()
    found = []
    for i in range(100000):
        name = f"counter:{i}"
        if owners[slot_of(name)] is node:
            found.append(name)
            if len(found) == count:
                return found
    raise AssertionError("not enough names")


class BackendFailures(unittest.TestCase):
    def heatsink(self, *args):
        server = servers.Heatsink("--workers", "2", *args)
        self.addCleanup(server.close)
        return server

    def count(self, server, names):
        counting = Counting(server.port, names)
        self.addCleanup(counting.stop)
        return counting

    def check_counters(self, counting, read, lossy=()):
        """`lossy`: counters of a master that died. Writes it had not yet replicated are lost, as in any Redis
        Cluster."""
        self.assertEqual(counting.wrong, [])
        for name in counting.names:
            value = int(read(name) or 0)
            most = counting.known[name] + counting.unknown[name]
            self.assertLessEqual(value, most, f"{name} was incremented twice")
            if name not in lossy:
                self.assertGreaterEqual(value, counting.known[name], f"{name} was lost")


class ClusterDays(BackendFailures):
    def start(self, *args, **options):
        cluster = Cluster(**options)
        self.addCleanup(cluster.close)
        return cluster, self.heatsink("--engine", cluster.url(), *args)

    def test_a_master_dies(self):
        cluster, server = self.start(*PATIENT, node_timeout_ms=3000)
        doomed = cluster.nodes[0]
        theirs = [name for node in cluster.masters() if node is not doomed
                  for name in names_on(cluster, node, 3)]
        ours = names_on(cluster, doomed, 3)
        counting = self.count(server, ours + theirs)
        counting.wait(ours + theirs, 50)
        doomed.kill9()
        # Counters on other masters go on while no server owns these.
        counting.wait(theirs, 50)
        counting.wait(ours, 50)  # these go on when the replica has taken over
        counting.stop()
        for name in theirs:
            self.assertEqual((counting.unknown[name], counting.refused[name]), (0, 0), name)
        self.check_counters(counting, cluster_reader(server), lossy=ours)
        # heatsink reads from the new master.
        cluster.wait_agreed()
        for name in ours:
            self.assertEqual(cluster_reader(server)(name), cluster.direct(name).get(name))

    def test_a_thousand_slots_move(self):
        cluster, server = self.start(*PATIENT, replicas=0)
        source, target = cluster.nodes[0], cluster.nodes[1]
        names = names_on(cluster, source, 8) + names_on(cluster, target, 2)
        slots = sorted(slot for slot, owner in enumerate(cluster.owners()) if owner is source)
        moved = {slot_of(name) for name in names} & set(slots)
        others = [slot for slot in slots if slot not in moved]
        slots = sorted(list(moved) + others[:1000 - len(moved)])
        owners = cluster.owners()
        for i in range(2000):
            owners[slot_of(f"filler:{i}")].call("SET", f"filler:{i}", i)
        counting = self.count(server, names)
        counting.wait(names, 20)
        cluster.move_slots(slots, to=target, a_time=10)
        counting.wait(names, 20)
        counting.stop()
        for name in names:
            self.assertEqual((counting.unknown[name], counting.refused[name]), (0, 0), name)
        self.check_counters(counting, cluster_reader(server))
        client = server.client()
        self.assertEqual([int(value) for value in client.mget([f"filler:{i}" for i in range(2000)])],
                         list(range(2000)))

    def test_a_slot_half_moved(self):
        """Keys of one slot on two masters: heatsink handles ASK and TRYAGAIN itself."""
        cluster, server = self.start(*PATIENT, replicas=0)
        name = names_on(cluster, cluster.nodes[0], 1)[0]
        tag = "{%s}" % name
        client = server.client()
        client.mset({f"{tag}a": 1, f"{tag}b": 2})
        slot = [slot_of(f"{tag}a")]
        cluster.begin_move(slot, cluster.nodes[1])
        cluster.move_keys(slot, cluster.nodes[1], keys=[f"{tag}a"])
        self.assertEqual(client.get(f"{tag}a"), b"1")  # ASK
        self.assertEqual(client.incr(f"{tag}new"), 1)
        self.assertEqual(client.get(f"{tag}b"), b"2")
        waiting = server.raw()
        waiting.send(resp.encode("MGET", f"{tag}a", f"{tag}b", f"{tag}new"))
        cluster.wait("a node says TRYAGAIN", lambda: any(
            "errorstat_TRYAGAIN" in node.info("errorstats") for node in cluster.nodes))
        cluster.move_keys(slot, cluster.nodes[1])
        cluster.end_move(slot, cluster.nodes[1])
        self.assertEqual([item.text for item in waiting.read().items], [b"1", b"2", b"1"])
        pipe = client.pipeline(transaction=True)
        pipe.incr(f"{tag}a").incr(f"{tag}b")
        self.assertEqual(pipe.execute(), [2, 3])

    def test_a_node_stands_still(self):
        cluster, server = self.start("--engine-timeout", "5000", replicas=0,
                                     node_timeout_ms=60000)
        frozen = cluster.nodes[2]
        ours = names_on(cluster, frozen, 3)
        theirs = [name for node in cluster.nodes[:2] for name in names_on(cluster, node, 3)]
        counting = self.count(server, ours + theirs)
        counting.wait(ours + theirs, 20)
        frozen.freeze()
        with counting.lock:
            self.assertTrue(counting.lock.wait_for(  # every client of the frozen master gets an error in time
                lambda: all(counting.refused[name] + counting.unknown[name] > 1 for name in ours),
                servers.GUARD_S))
        counting.wait(theirs, 100)
        frozen.thaw()
        counting.wait(ours, 20)
        counting.stop()
        for name in theirs:
            self.assertEqual((counting.unknown[name], counting.refused[name]), (0, 0), name)
        self.check_counters(counting, cluster_reader(server))

    def test_a_command_that_ran_in_part(self):
        """If one server of several ran its part, the reply is UNKNOWN and not "not sent"."""
        cluster, server = self.start("--engine-timeout", "5000", replicas=0,
                                     args=("--cluster-require-full-coverage", "no"))
        good = names_on(cluster, cluster.nodes[0], 1)[0]
        bad = names_on(cluster, cluster.nodes[1], 1)[0]
        connection = server.raw()
        self.assertEqual(connection.call("MSET", good, "old", bad, "old").raw, b"+OK\r\n")
        cluster.nodes[1].kill9()
        for request in (("MSET", good, "new", bad, "new"), ("DEL", good, bad), ("FLUSHALL",)):
            reply = connection.call(*request)
            self.assertTrue(reply.raw.startswith(b"-UNKNOWN the command ran"), (request, reply.raw))
        reply = connection.call("MGET", good, bad)  # a read that ran in part changed nothing
        self.assertTrue(reply.raw.startswith(b"-CLUSTERDOWN"), reply.raw)

    def test_all_nodes_gone_and_back(self):
        with Cluster(replicas=0) as cluster:
            url = cluster.url()
            for node in cluster.nodes:
                node.kill9()
            server = self.heatsink("--engine", url)
            reply = server.raw().call("SET", "a", "1")
            self.assertTrue(reply.raw.startswith(b"-CLUSTERDOWN"), reply.raw)
            reply = server.raw().call("HSET", "h", "a", "1")  # heatsink has not learned HSET from a server yet
            self.assertTrue(reply.raw.startswith(b"-CLUSTERDOWN"), reply.raw)
            server.wait_log("retrying")
            for node in cluster.nodes:
                node.restart()
            cluster.wait("heatsink has found the cluster",
                         lambda: server.raw().call("SET", "a", "1").raw == b"+OK\r\n")


def cluster_reader(server):
    client = server.client()
    return client.get


class RelayDay(BackendFailures):
    """One redis-server behind a relay."""

    patience = PATIENT

    def setUp(self):
        self.redis = servers.Redis()
        self.addCleanup(self.redis.close)
        self.relay = Relay(self.redis.port)
        self.addCleanup(self.relay.close)
        self.server = self.heatsink("--engine", f"redis://127.0.0.1:{self.relay.port}",
                                    *self.patience)
        self.connection = self.server.raw()
        self.assertEqual(self.connection.call("SET", "n", "0").raw, b"+OK\r\n")

    def value(self):
        return int(self.redis.client().get("n"))

    def wait_recovered(self):
        guard = time.monotonic() + servers.GUARD_S
        while self.connection.call("INCR", "n").raw != b":1\r\n":
            self.assertLess(time.monotonic(), guard, "heatsink does not find the server again")
            time.sleep(POLL_S)

    def cut(self):
        """Cuts all connections, then waits for the reply to a read: heatsink repeats a lost read, so the reply shows
        that it has noticed the cut."""
        self.relay.cut_all()
        self.connection.call("GET", "n")


class OneServer(RelayDay):
    def test_the_reply_to_a_write_is_lost(self):
        self.relay.cut_after("INCR")
        reply = self.connection.call("INCR", "n")
        self.assertTrue(reply.raw.startswith(b"-UNKNOWN"), reply.raw)
        self.assertEqual(self.value(), 1)
        self.assertEqual(self.relay.count("INCR"), 1)  # not sent again
        self.assertEqual(self.connection.call("INCR", "n").raw, b":2\r\n")

    def test_the_reply_to_a_read_is_lost(self):
        self.relay.cut_after("GET")
        self.assertEqual(self.connection.call("GET", "n").raw, b"$1\r\n0\r\n")
        self.assertEqual(self.relay.count("GET"), 2)

    def test_half_a_reply(self):
        self.relay.cut_after("GET", reply_bytes=3)
        self.assertEqual(self.connection.call("GET", "n").raw, b"$1\r\n0\r\n")

    def test_a_pipeline_is_cut(self):
        self.relay.cut_after("INCR", times=1)
        replies = self.connection.call_all([("INCR", "n"), ("GET", "n"), ("INCR", "n"),
                                            ("GET", "other")])
        self.assertTrue(replies[0].raw.startswith(b"-UNKNOWN"), replies[0].raw)
        acknowledged = sum(1 for reply in replies if reply.raw.startswith(b":"))
        unknown = sum(1 for reply in replies if reply.raw.startswith(b"-UNKNOWN"))
        self.assertGreaterEqual(self.value(), acknowledged)
        self.assertLessEqual(self.value(), acknowledged + unknown)
        self.assertEqual(self.connection.call("PING").raw, b"+PONG\r\n")

    def test_garbage(self):
        for garbage in (b"HTTP/1.1 200 OK\r\n\r\n", b"\x00\x01\x02\x03\r\n", b"$-5\r\n",
                        b"*1000000000000000000000\r\n", b":1\r\n:2\r\n:3\r\n"):
            with self.subTest(garbage=garbage):
                self.relay.answer(garbage, "INCR")
                reply = self.connection.call("INCR", "n")
                self.assertRegex(reply.raw, b"^(-UNKNOWN|:1)")
                self.assertRegex(self.connection.call("GET", "n").raw, b"^\\$[0-9]\r\n")

    def test_too_much(self):
        """A reply without an end is given up at a limit, and other clients do not wait for it."""
        endless = self.relay.endless("GET", head=b"$9999999999\r\n")
        reply = self.connection.call("GET", "n")
        self.assertTrue(reply.raw.startswith((b"-UNKNOWN", b"$1")), reply.raw)
        endless.remove()
        self.assertEqual(self.connection.call("GET", "n").raw, b"$1\r\n0\r\n")

    def test_a_password_that_we_lack(self):
        self.redis.client().config_set("requirepass", "secret")
        self.cut()
        reply = self.connection.call("INCR", "n")
        self.assertRegex(reply.raw, b"^-ERR .* cannot log in .*NOAUTH")
        client = self.redis.client(password="secret")
        client.config_set("requirepass", "")
        self.wait_recovered()


class GoneServer(RelayDay):
    """The server is gone: every request gets an error in time."""

    patience = ("--engine-timeout", "5000")

    def test_no_reply(self):
        swallowed = self.relay.swallow("INCR")
        reply = self.connection.call("INCR", "n")
        self.assertTrue(reply.raw.startswith(b"-UNKNOWN"), reply.raw)
        self.assertEqual(swallowed.hits, 1)
        self.assertEqual(self.connection.call("GET", "n").raw, b"$1\r\n0\r\n")

    def test_gone_and_back(self):
        self.relay.refuse()
        self.cut()
        reply = self.connection.call("INCR", "n")
        self.assertTrue(reply.raw.startswith(b"-CLUSTERDOWN"), reply.raw)
        self.relay.listen()
        self.wait_recovered()


class WrongEngines(unittest.TestCase):
    def test_one_line_and_exit_1(self):
        for url, words in (("redis://", "host"), ("cluster://127.0.0.1:99999", "port"),
                           ("mysql://127.0.0.1:1", "redis://"), ("nothing", "embedded")):
            with self.subTest(url=url):
                process = servers.Process([servers.heatsink_path(), "serve", "--port", "0", "--http",
                                           "-1", "--engine", url])
                self.assertEqual(process.wait(), 1)
                lines = process.text().strip().splitlines()
                self.assertEqual(len(lines), 1, lines)
                self.assertIn(words, lines[0])


if __name__ == "__main__":
    unittest.main()
