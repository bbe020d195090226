"""Goal: the Cluster that other tests use (tests/lib/cluster.py) is a real one and does what it claims.

Method: the harness's claims (the owner of a slot, a half-done move, a replica in sync) are checked with plain
commands at the nodes. A wrong claim here would make every test of the redis engine unreliable.
"""
import contextlib
import io
import os
import threading
import unittest
from unittest import mock

from cluster import Cluster, Node, slot_of
from redis.exceptions import NoPermissionError, ResponseError
from resp import Connection, encode
from servers import GUARD_S, Process

TAG = "{moving}"

RUN_ONCE = True


class Steps:
    """Replaces a number of seconds in the harness: `* attempt` gives the value for that attempt."""

    def __init__(self, *seconds):
        self.seconds = seconds

    def __mul__(self, attempt):
        return self.seconds[attempt - 1]


def hang(node):
    """Starts a program that never listens in place of the node's server."""
    node.process = Process(["sleep", "100000"])


class Shared(unittest.TestCase):
    """One shared cluster, repaired and emptied before each test."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.addClassCleanup(cls.cluster.close)

    def setUp(self):
        self.cluster.reset()

    def halfway(self):
        """The slot's owner, another master, and the slot in a list."""
        source = self.cluster.master_of(TAG)
        to = next(node for node in self.cluster.masters() if node is not source)
        return source, to, [slot_of(TAG)]

    def test_every_slot_has_one_owner_and_a_replica_in_sync(self):
        masters = self.cluster.masters()
        self.assertEqual(len(masters), 3)
        self.assertNotIn(None, self.cluster.owners())
        for key in ("a", "b", "c", "d"):
            owner = self.cluster.master_of(key)
            self.cluster.direct(key).set(key, "1")
            self.cluster.wait_synced()
            replica, = self.cluster.replicas_of(owner)
            connection = replica.raw()
            self.assertRegex(connection.call("GET", key).raw, b"^-MOVED %d " % slot_of(key))
            connection.call("READONLY")
            self.assertEqual(connection.call("GET", key).raw, b"$1\r\n1\r\n")

    def test_a_lagging_replica_is_waited_for(self):
        owner = self.cluster.master_of(TAG)
        replica, = self.cluster.replicas_of(owner)
        replica.freeze()
        requests = [("SET", f"{TAG}{i}", "x" * 100_000) for i in range(300)]
        owner.call_all(requests)  # more than fits into the buffers between the two
        replica.thaw()
        self.cluster.wait_synced()
        self.assertEqual(replica.raw().call("DBSIZE").number(), len(requests))

    def test_a_migrating_slot_answers_ask_and_tryagain(self):
        source, to, slots = self.halfway()
        one, two = TAG + "1", TAG + "2"
        source.call("MSET", one, "1", two, "2")
        self.cluster.begin_move(slots, to)
        ask = b"-ASK %d %s\r\n" % (slots[0], to.address.encode())
        self.assertEqual(source.raw().call("GET", TAG + "absent").raw, ask)
        self.assertEqual(self.cluster.move_keys(slots, to, keys=[one]), 1)
        self.assertEqual(source.raw().call("GET", one).raw, ask)
        self.assertEqual(source.raw().call("GET", two).raw, b"$1\r\n2\r\n")
        connection = to.raw()
        connection.call("ASKING")
        self.assertEqual(connection.call("GET", one).raw, b"$1\r\n1\r\n")
        connection.call("ASKING")
        self.assertRegex(connection.call("MGET", one, two).raw, b"^-TRYAGAIN")
        self.assertEqual(self.cluster.move_keys(slots, to), 1)
        self.assertIs(self.cluster.master_of(TAG), source)
        self.cluster.end_move(slots, to)
        self.assertIs(self.cluster.master_of(TAG), to)
        moved = b"-MOVED %d %s\r\n" % (slots[0], to.address.encode())
        self.assertEqual(source.raw().call("GET", one).raw, moved)
        self.assertEqual(to.raw().call("MGET", one, two).raw, b"*2\r\n$1\r\n1\r\n$1\r\n2\r\n")

    def test_a_move_with_a_limit_leaves_the_rest(self):
        source, to, slots = self.halfway()
        source.call_all([("SET", f"{TAG}{i}", "1") for i in range(150)])
        self.cluster.begin_move(slots, to)
        self.assertEqual(self.cluster.move_keys(slots, to, count=120), 120)
        self.assertEqual(source.call("CLUSTER", "COUNTKEYSINSLOT", slots[0]).number(), 30)
        self.cluster.end_moves()
        self.assertRegex(source.raw().call("GET", TAG + "absent").raw, rb"^\$-1")

    def test_resharding_brings_the_keys_along(self):
        source, to, _ = self.halfway()
        slots = sorted(source.myself().slots)[:50]
        keys = [key for key in map(str, range(20000)) if slot_of(key) in slots]
        source.call_all([("SET", key, key) for key in keys])
        self.assertEqual(self.cluster.move_slots(slots, to), len(keys))
        self.assertEqual(to.client().mget(keys[:1]), [keys[0].encode()])
        self.assertEqual([reply.text.decode() for reply in
                          to.call_all([("GET", key) for key in keys])], keys)
        self.assertFalse(source.myself().slots & set(slots))

    def test_manual_failover(self):
        old = self.cluster.master_of("a")
        old.call("SET", "a", "1")
        new = self.cluster.fail_over(old)
        self.assertIsNot(new, old)
        self.assertIs(self.cluster.master_of("a"), new)
        self.assertEqual(new.raw().call("GET", "a").raw, b"$1\r\n1\r\n")
        self.cluster.wait_ready()
        self.assertEqual(self.cluster.replicas_of(new), [old])

    def test_reset_mends_and_empties(self):
        source, to, slots = self.halfway()
        source.call("SET", TAG, "1")
        self.cluster.begin_move(slots, to)
        self.cluster.move_keys(slots, to)
        self.cluster.replicas_of(source)[0].kill9()
        self.cluster.replicas_of(to)[0].freeze()
        self.cluster.reset()
        self.assertEqual(self.cluster.answering(), self.cluster.nodes)
        for node in self.cluster.nodes:
            self.assertEqual(node.state(), "ok")
            self.assertEqual(node.myself().moving, [])
            self.assertEqual(node.raw().call("DBSIZE").raw, b":0\r\n")

    def test_an_aborted_failover_is_retried(self):
        """The master is frozen until its replica has given up the failover."""
        old = self.cluster.master_of("a")
        replica, = self.cluster.replicas_of(old)
        old.freeze()
        thread = threading.Thread(target=self.cluster.fail_over, args=(replica,))
        thread.start()
        replica.wait_log("Manual failover timed out")
        old.thaw()
        thread.join()
        self.assertIs(self.cluster.master_of("a"), replica)

    def test_reset_starts_a_cluster_anew_that_does_not_mend(self):
        """Slots that no node remembers never get an owner again, so reset() starts a new cluster."""
        # TAKEOVER needs no vote: masters that voted for this shard lately would refuse for forty seconds.
        self.cluster.fail_over(self.cluster.nodes[0], "TAKEOVER")
        epoch = max(row.epoch for row in self.cluster.nodes[0].rows())
        for node in self.cluster.nodes:
            node.call("CLUSTER", "DELSLOTS", *range(100, 200))
        with mock.patch("cluster.RESET_S", 1), \
                contextlib.redirect_stderr(io.StringIO()) as said:
            self.cluster.reset()
        self.assertRegex(said.getvalue(), r"\nnote: .*started anew.*every node says ok\n"
                         r"note: node-\d .*: fail\n.*100 slots are nobody's: \[100, 101, ")
        self.assertEqual(self.cluster.masters(), self.cluster.nodes[:3])
        self.assertNotIn(None, self.cluster.owners())
        for node in self.cluster.nodes[:3]:
            self.assertGreater(node.myself().epoch, epoch)
        self.assertTrue(self.cluster.direct("a").set("a", "1"))

    def test_a_wait_that_fails_shows_the_nodes_states(self):
        """The report starts with the unhealthy node and shows a view that several nodes share only once."""
        self.cluster.wait("all think the same", lambda: len(
            {frozenset(row.said() for row in node.rows()) for node in self.cluster.nodes}) == 1)
        with mock.patch.object(self.cluster.nodes[4], "frozen", True), \
                self.assertRaises(AssertionError) as caught:
            self.cluster.wait("pigs fly", lambda: False, guard_s=0)
        said = str(caught.exception)
        self.assertRegex(said, r"pigs fly\nnode-4 .*: frozen\n  \| (.|\n)*"
                         r"node-0 .*: ok\n(.|\n)*node-5 .*: ok\n  as node-0$")
        self.assertEqual(said.count("myself,"), 1)

    def test_a_clock_jump_is_reported(self):
        self.assertNotIn("the clock", self.cluster.describe())
        with mock.patch.object(self.cluster, "clock", self.cluster.clock + 600):
            self.assertIn("the clock was set by -600 s", self.cluster.describe())


class Apart(unittest.TestCase):
    def test_a_cluster_that_does_not_form_is_restarted_with_a_note(self):
        """A node of the first attempt hangs at its start; the second attempt succeeds."""
        launch, launched = Node.launch, []

        def launch_all_but_one(node):
            launched.append(node)
            (hang if len(launched) == 1 else launch)(node)
        with mock.patch.object(Node, "launch", launch_all_but_one), \
                contextlib.redirect_stderr(io.StringIO()) as said, \
                mock.patch("cluster.FORM_S", Steps(0.5, GUARD_S)), \
                Cluster(masters=1, replicas=1) as cluster:
            self.assertEqual(launched[2:], cluster.nodes)
            self.assertFalse(any(node.running() for node in launched[:2]))
            self.assertTrue(cluster.direct("a").set("a", "1"))
        self.assertRegex(said.getvalue(), r"\nnote: a cluster did not form and is started again: ")
        self.assertEqual(said.getvalue().count("did not form"), 1)

    def test_a_cluster_that_never_forms_fails_the_test(self):
        with mock.patch("cluster.FORM_S", Steps(0, 0, 0)), \
                mock.patch.object(Node, "launch", hang), \
                contextlib.redirect_stderr(io.StringIO()) as said, \
                self.assertRaises(AssertionError):
            Cluster(masters=1, replicas=0)
        self.assertEqual(said.getvalue().count("did not form"), 2)

    def test_two_at_once_share_nothing_and_end_in_any_state(self):
        clusters = []
        threads = [threading.Thread(target=lambda: clusters.append(Cluster(masters=2, replicas=1)))
                   for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        one, two = clusters
        ports = [port for cluster in clusters for node in cluster.nodes
                 for port in (node.port, node.bus_port)]
        self.assertEqual(len(set(ports)), 16)
        one.direct("a").set("a", "1")
        self.assertIsNone(two.direct("a").get("a"))
        one.nodes[0].freeze()
        one.nodes[1].kill9()
        one.nodes[2].stop()
        for cluster in clusters:
            cluster.close()
            self.assertFalse(os.path.exists(cluster.folder))
            self.assertFalse(any(node.running() for node in cluster.nodes))

    def test_passwords_users_tls_and_relays(self):
        with Cluster(masters=3, replicas=1, password="secret", tls=True, relays=True,
                     users=["app on >word ~app:* +@all"]) as cluster:
            owner = cluster.master_of("app:1")
            self.assertTrue(cluster.direct("app:1").set("app:1", "1"))
            with self.assertRaisesRegex(ResponseError, "WRONGPASS"):
                owner.client(password="wrong").ping()
            app = owner.client(username="app", password="word")
            self.assertEqual(app.get("app:1"), b"1")
            with self.assertRaises(NoPermissionError):
                app.get("b")
            self.assertRegex(cluster.url(), r"^clusters://:secret@127\.0\.0\.1:\d+,")
            self.assertIn(owner.address, cluster.url(user="app", password="word"))
            self.assertEqual(owner.relay.port, owner.public_port)
            self.assertIn(f":{owner.relay.port}@", owner.myself().address)
            slots, to = [slot_of("app:1")], next(n for n in cluster.masters() if n is not owner)
            self.assertEqual(cluster.move_slots(slots, to), 1)
            cluster.fail_over(to)
            self.assertEqual(cluster.direct("app:1").get("app:1"), b"1")

    def test_a_replica_takes_over_from_a_dead_master_and_from_a_frozen_one(self):
        with Cluster(node_timeout_ms=4000) as cluster:
            for harm in ("kill9", "freeze"):
                old = cluster.master_of("a")
                old.call("SET", "a", harm)
                cluster.wait_synced()
                getattr(old, harm)()
                self.assertIsNot(cluster.master_of("a"), old)
                new = cluster.wait("another owns it", lambda: cluster.master_of("a"))
                self.assertEqual(new.raw().call("GET", "a").text.decode(), harm)
                cluster.reset()
                self.assertEqual(cluster.replicas_of(new), [old])

    def test_a_relay_in_front_of_every_node_and_replication_through_it(self):
        with Cluster(masters=1, replicas=1, relays=True) as cluster:
            node = cluster.master_of("a")
            slots = node.raw().call("CLUSTER", "SLOTS").items
            self.assertEqual(slots[0].items[2].items[1].number(), node.relay.port)
            node.relay.cut_after("INCR")
            with Connection(node.relay.port) as client:
                client.send(encode("INCR", "a"))
                self.assertEqual(client.read_to_end(), b"")
            cluster.wait_synced()
            replica, = cluster.replicas_of(node)
            connection = replica.raw()
            self.assertEqual([reply.raw for reply in connection.call_all(
                [("READONLY",), ("GET", "a")])], [b"+OK\r\n", b"$1\r\n1\r\n"])

    def test_data_survives_a_restart_if_configured(self):
        with Cluster(masters=1, replicas=0, args=("--appendonly", "yes", "--appendfsync",
                                                  "always")) as cluster:
            cluster.direct("a").set("a", "1")
            node = cluster.nodes[0]
            port = node.port
            node.restart()
            cluster.wait_ready()
            self.assertEqual(node.port, port)
            self.assertEqual(node.raw().call("GET", "a").raw, b"$1\r\n1\r\n")


if __name__ == "__main__":
    unittest.main()
