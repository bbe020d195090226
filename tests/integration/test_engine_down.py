"""A dead shard is seen.

Goal: a master that is gone, and a cluster that serves nobody because of it, show in every place where
an operator or a load balancer looks: HEAT PARTITIONS, /api/partitions, the metrics, /readyz and
CLUSTER INFO. Nobody is kept waiting for it longer than once. When it is back, all is well again in
the same places.

Method: real clusters without replicas, of servers that want all slots covered and of servers that do
not; real single servers. What waits is counted by heatsink itself (engine_retries), not timed. A server
that was given no processor for two seconds is down for a moment too: each place is looked at until it
shows what it must.
"""
import json
import time
import unittest
import urllib.error
import urllib.request

import redis

from cluster import POLL_S, SLOTS, Cluster, slot_of
from servers import GUARD_S, Heatsink, Redis

TIMEOUT_MS = 5000  # is waited out
LONG_MS = 60000  # is not: a busy machine takes its time
NODE_TIMEOUT_MS = 3000  # before the others call a node failed


def wait(what, condition):
    guard = time.monotonic() + GUARD_S
    while True:
        try:
            if found := condition():
                return found
        except redis.RedisError:
            pass
        if time.monotonic() > guard:
            raise AssertionError(f"never happened: {what}")
        time.sleep(POLL_S)


class Case(unittest.TestCase):
    maxDiff = None

    def serve(self, url, *args):
        self.server = Heatsink("--engine", url, "--workers", "1", *args)
        self.addCleanup(self.server.close)
        self.client = self.server.client()

    def page(self, path):
        """Status and text."""
        try:
            with urllib.request.urlopen(
                    f"http://127.0.0.1:{self.server.http_port}{path}") as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def rows(self):
        """By address."""
        rows = [dict(zip(row[0::2], row[1::2])) for row in
                self.client.execute_command("HEAT", "PARTITIONS")]
        return {row[b"address"].decode(): row for row in rows if row[b"id"] != b"median"}

    def states(self):
        return {address: row[b"state"].decode() for address, row in self.rows().items()}

    def up(self):
        """The metric, by address: joined with the series that tells it."""
        lines = [line for line in self.page("/metrics")[1].splitlines() if not line.startswith("#")]
        address_of, up = {}, {}
        for line in lines:
            if line.startswith("heatsink_partition_info{"):
                number, address = line.split('"')[1::2]
                self.assertTrue(line.endswith(" 1"))
                address_of[number] = address
        for line in lines:
            if line.startswith("heatsink_partition_up{"):
                up[address_of[line.split('"')[1]]] = int(line.split()[-1])
        return up

    def cluster_info(self):
        text = self.client.execute_command("CLUSTER", "INFO")
        if isinstance(text, dict):  # python3-redis has parsed it
            return text
        return dict(line.split(":") for line in text.decode().split())

    def slots(self):
        info = self.cluster_info()
        return (info["cluster_state"], int(info["cluster_slots_assigned"]),
                int(info["cluster_slots_ok"]), int(info["cluster_slots_fail"]))

    def troubles(self):
        return {address: row[b"trouble"].decode() for address, row in self.rows().items()}

    def shows(self, look, wanted):
        """Looks until it is there."""
        wait(f"it shows {wanted}", lambda: look() == wanted)

    def readiness(self):
        """The status, the first line, and what the others say of each partition, without the reason."""
        status, text = self.page("/readyz")
        first, *lines = text.splitlines()
        for line in lines:
            self.assertIn(": ", line)  # and a reason
        return status, first, {line.split(": ")[0] for line in lines}

    def down(self, *addresses):
        """What /readyz says of them."""
        rows = self.rows()
        return {f"partition {rows[address][b'id'].decode()} ({address}) is down" for address in addresses}

    def check_all_well(self, addresses):
        self.shows(self.states, {address: "ok" for address in addresses})
        self.shows(self.troubles, {address: "" for address in addresses})
        self.shows(self.slots, ("ok", SLOTS, SLOTS, 0))
        self.shows(self.up, {address: 1 for address in addresses})
        self.shows(lambda: self.page("/readyz"), (200, "ready\n"))
        self.assertEqual(self.page("/healthz"), (200, "ok\n"))


class TestCluster(Case):
    def build(self, covered, timeout_ms):
        self.cluster = Cluster(masters=3, replicas=0, node_timeout_ms=NODE_TIMEOUT_MS, args=(
            "--cluster-require-full-coverage", covered))
        self.addCleanup(self.cluster.close)
        self.serve(self.cluster.url(), "--engine-timeout", timeout_ms)
        self.addresses = [node.address for node in self.cluster.nodes]
        self.check_all_well(self.addresses)

    def again(self):
        return self.client.info("engine")["engine_retries"]

    def test_a_cluster_that_wants_all_slots(self):
        self.build("yes", TIMEOUT_MS)
        dead, *others = self.cluster.nodes
        wait("it is written", lambda: self.client.set("key", "x"))
        dead.kill9()
        self.cluster.wait("the others give up", lambda: all(
            node.state() == "fail" for node in others))
        self.shows(self.states, {address: "down" for address in self.addresses})
        self.shows(lambda: {node.address: self.troubles()[node.address] for node in others},
                   {node.address: "it says that the cluster is down" for node in others})
        self.assertNotIn("says that the cluster is down", self.troubles()[dead.address])
        self.shows(lambda: {row["address"]: row["state"] for row in
                            json.loads(self.page("/api/partitions")[1])["rows"]},
                   {"": "", **{address: "down" for address in self.addresses}})
        self.shows(self.up, {address: 0 for address in self.addresses})
        self.shows(self.slots, ("fail", SLOTS, 0, SLOTS))
        self.shows(self.readiness, (503, "not ready: no partition is served",
                                    self.down(*self.addresses)))
        self.assertEqual(self.page("/healthz"), (200, "ok\n"))

        # One waits until it is told, and then nobody does: nothing is tried again.
        for node in others:
            keys = [f"k{number}" for number in range(200)
                    if self.cluster.master_of(f"k{number}") is node]
            # Its own time begins a moment before the node's first refusal, from which heatsink counts:
            # the second may still be tried again.
            for call in (self.client.set, self.client.setnx):
                with self.assertRaisesRegex(redis.ResponseError, "CLUSTERDOWN|is down"):
                    call(keys[0], "x")
            waited = self.again()
            self.assertGreater(waited, 0)
            for key in keys:
                for call in (self.client.get, self.client.incr):
                    with self.assertRaisesRegex(redis.ResponseError, "CLUSTERDOWN|is down"):
                        call(key)
            self.assertEqual(self.again(), waited)

        dead.restart()
        self.cluster.wait_ready()
        self.assertTrue(self.client.set("key", "y"))  # the first one is served
        self.check_all_well(self.addresses)
        for node in others:
            self.server.wait_log(f"{node.address}, master of partition \\d+: "
                                 "it says that the cluster is down")
            self.server.wait_log(f"{node.address}(, master of partition \\d+: "
                                 "it says that the cluster is well| answers) again")

    def test_a_cluster_that_serves_the_rest(self):
        self.build("no", LONG_MS)
        dead, *others = self.cluster.nodes
        lost = len(dead.myself().slots)
        dead.kill9()
        wanted = {node.address: "down" if node is dead else "ok" for node in self.cluster.nodes}
        self.shows(self.states, wanted)
        self.shows(self.up, {address: int(state == "ok") for address, state in wanted.items()})
        self.shows(self.slots, ("fail", SLOTS, SLOTS - lost, lost))
        # A load balancer goes on sending clients: what is left is served here as well as anywhere.
        self.shows(self.readiness, (200, "ready", self.down(dead.address)))
        for node in others:
            key = next(f"k{n}" for n in range(SLOTS) if slot_of(f"k{n}") in node.myself().slots)
            self.assertTrue(self.client.set(key, "x"))
        dead.restart()
        self.cluster.wait_ready()
        self.check_all_well(self.addresses)

        frozen = others[0]  # its port can be reached, and that is all
        frozen.freeze()
        wait("it is down", lambda: self.states()[frozen.address] == "down")
        self.assertNotEqual(self.rows()[frozen.address][b"trouble"], b"")
        frozen.thaw()
        self.cluster.wait_ready()
        self.check_all_well(self.addresses)


class TestSingle(Case):
    def test_a_server_that_dies(self):
        with Redis() as server:
            address = f"127.0.0.1:{server.port}"
            self.serve(f"redis://{address}", "--engine-timeout", TIMEOUT_MS)
            self.check_all_well([address])
            server.kill9()
            self.shows(self.states, {address: "down"})
            self.shows(self.slots, ("fail", SLOTS, 0, SLOTS))
            self.shows(self.up, {address: 0})
            status, text = self.page("/readyz")
            self.assertEqual(status, 503)
            self.assertIn(f"partition 0 ({address}) is down: ", text)

    def test_a_replica(self):
        with Redis() as master, Redis("--replicaof", f"127.0.0.1 {master.port}") as replica:
            address = f"127.0.0.1:{replica.port}"
            self.serve(f"redis://{address}")
            self.shows(self.states, {address: "readonly"})
            self.shows(self.troubles, {address: "it is a replica"})
            self.shows(self.up, {address: 1})
            self.shows(lambda: self.page("/readyz"), (
                200, f"ready\npartition 0 ({address}) is readonly: it is a replica\n"))
            self.shows(self.slots, ("ok", SLOTS, SLOTS, 0))


if __name__ == "__main__":
    unittest.main()
