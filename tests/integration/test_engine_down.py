"""Goal: a dead master, and a cluster that therefore refuses all requests, show in every place where an operator or a
load balancer looks: HEAT PARTITIONS, /api/partitions, the metrics, /readyz and CLUSTER INFO. Requests wait for a dead
master at most once; later ones fail at once. When the master is back, the same places show a healthy state.

Method: real Clusters without replicas, once with cluster-require-full-coverage and once without, and single servers.
heatsink counts retries itself (engine_retries), so no test measures time. A server that gets no processor time for
two seconds is down for a moment as well, so each place is read until it shows the expected state.
"""
import json
import time
import unittest
import urllib.error
import urllib.request

import redis

from cluster import POLL_S, SLOTS, Cluster, slot_of
from servers import GUARD_S, Heatsink, Redis

TIMEOUT_MS = 5000  # a test waits this long
LONG_MS = 60000  # no test waits this long
NODE_TIMEOUT_MS = 3000  # after this time the other nodes call a node failed


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
        """Status and body of an HTTP page."""
        try:
            with urllib.request.urlopen(
                    f"http://127.0.0.1:{self.server.http_port}{path}") as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def rows(self):
        """The rows of HEAT PARTITIONS by address."""
        rows = [dict(zip(row[0::2], row[1::2])) for row in
                self.client.execute_command("HEAT", "PARTITIONS")]
        return {row[b"address"].decode(): row for row in rows if row[b"id"] != b"median"}

    def states(self):
        return {address: row[b"state"].decode() for address, row in self.rows().items()}

    def up(self):
        """heatsink_partition_up by address, which heatsink_partition_info maps to the partition's number."""
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
        if isinstance(text, dict):  # this version of python3-redis parses the reply
            return text
        return dict(line.split(":") for line in text.decode().split())

    def slots(self):
        info = self.cluster_info()
        return (info["cluster_state"], int(info["cluster_slots_assigned"]),
                int(info["cluster_slots_ok"]), int(info["cluster_slots_fail"]))

    def troubles(self):
        return {address: row[b"reason"].decode() for address, row in self.rows().items()}

    def shows(self, look, wanted):
        """Waits until look() returns `wanted`."""
        wait(f"it shows {wanted}", lambda: look() == wanted)

    def readiness(self):
        """HTTP status, first line, and the other lines (one per partition) without the reason."""
        status, text = self.page("/readyz")
        first, *lines = text.splitlines()
        for line in lines:
            self.assertIn(": ", line)  # a reason follows the colon
        return status, first, {line.split(": ")[0] for line in lines}

    def down(self, *addresses):
        """The lines that /readyz must have for these partitions."""
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
                   {node.address: "it reports that the cluster is down" for node in others})
        self.assertNotIn("reports that the cluster is down", self.troubles()[dead.address])
        self.shows(lambda: {row["address"]: row["state"] for row in
                            json.loads(self.page("/api/partitions")[1])["rows"]},
                   {"": "", **{address: "down" for address in self.addresses}})
        self.shows(self.up, {address: 0 for address in self.addresses})
        self.shows(self.slots, ("fail", SLOTS, 0, SLOTS))
        self.shows(self.readiness, (503, "not ready: no partition is served",
                                    self.down(*self.addresses)))
        self.assertEqual(self.page("/healthz"), (200, "ok\n"))

        # The first request is retried until its timeout, then all others fail at once without a retry.
        for node in others:
            keys = [f"k{number}" for number in range(200)
                    if self.cluster.master_of(f"k{number}") is node]
            # The first request's timeout starts a moment before the node's first refusal, from which heatsink
            # counts, so the second request may still be retried.
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
        self.assertTrue(self.client.set("key", "y"))  # the first request already succeeds
        self.check_all_well(self.addresses)
        for node in others:
            self.server.wait_log(f"{node.address}, master of partition \\d+: "
                                 "it reports that the cluster is down")
            self.server.wait_log(f"{node.address}(, master of partition \\d+: "
                                 "it reports that the cluster is up| answers) again")

    def test_a_cluster_that_serves_the_rest(self):
        self.build("no", LONG_MS)
        dead, *others = self.cluster.nodes
        lost = len(dead.myself().slots)
        dead.kill9()
        wanted = {node.address: "down" if node is dead else "ok" for node in self.cluster.nodes}
        self.shows(self.states, wanted)
        self.shows(self.up, {address: int(state == "ok") for address, state in wanted.items()})
        self.shows(self.slots, ("fail", SLOTS, SLOTS - lost, lost))
        # /readyz stays 200: another heatsink could serve no more partitions than this one.
        self.shows(self.readiness, (200, "ready", self.down(dead.address)))
        for node in others:
            key = next(f"k{n}" for n in range(SLOTS) if slot_of(f"k{n}") in node.myself().slots)
            self.assertTrue(self.client.set(key, "x"))
        dead.restart()
        self.cluster.wait_ready()
        self.check_all_well(self.addresses)

        frozen = others[0]  # connections to it succeed, but it never answers
        frozen.freeze()
        wait("it is down", lambda: self.states()[frozen.address] == "down")
        self.assertNotEqual(self.rows()[frozen.address][b"reason"], b"")
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
