"""Goal: storm follows a Cluster. The owner of the slot answers every request, no request overtakes another one of the
same client on the same key, and --verify means the same as with one server: correct behaviour of a Cluster is no
mistake, and lost writes are found.

Method: a real Cluster whose slots move and whose masters are replaced while storm runs; lost writes are caused with a
replica that has missed writes. Situations that are too rare there are made by nodes that answer from a script
(ScriptedNode).
"""
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

from cluster import ASKED_ONLY, Cluster, slot_of
from fake import FakeServer
from servers import GUARD_S, Process, Redis, ReservedPort, heatsink_path

SANITIZERS = ()  # unit tests cover its parts
HISTORIES = tempfile.TemporaryDirectory()


def command(target, *args):
    return [heatsink_path(), "storm", "--target", target, "--json", "--history-folder", HISTORIES.name,
            *map(str, args)]


def run(target, *args):
    done = subprocess.run(command(target, *args), capture_output=True, text=True, timeout=GUARD_S, check=False)
    return done.returncode, json.loads(done.stdout) if done.stdout else None, done.stderr


class Running:
    """Runs storm in the background until `end`."""

    def __init__(self, test, target, *args, env=None):
        self.test = test
        self.process = Process(command(target, "--duration", f"{GUARD_S}s", *args),
                               env={**os.environ, **(env or {})})
        test.addCleanup(lambda: self.process.child.poll() is None and self.process.kill9())

    def end(self, code=0):
        self.process.signal(2)
        got = self.process.wait()
        self.test.assertEqual(got, code, self.process.text())
        result = json.loads(self.process.text())
        self.test.assertEqual(result["answered"] + result["lost"], result["sent"])
        return result


def total(result, what):
    return sum(node[what] for node in result["nodes"].values())


class OnCluster(unittest.TestCase):
    """Helpers for tests with a `cluster`."""

    def calls(self, node, name):
        return node.client().info("commandstats").get(f"cmdstat_{name}", {}).get("calls", 0)

    def wait_calls(self, node, name, more):
        before = self.calls(node, name)
        self.cluster.wait(f"{more} calls", lambda: self.calls(node, name) >= before + more)

    def move_to_and_fro(self, slot, rounds):
        """Moves the slot key by key under traffic, so that its keys are on two nodes for a while."""
        for _ in range(rounds):
            owner = self.cluster.master_of(slot)
            to = next(node for node in self.cluster.nodes if node.is_master() and node is not owner)
            self.cluster.begin_move([slot], to)
            for _ in range(20):
                self.cluster.move_keys([slot], to, count=1)
            self.wait_calls(to, "asking", 20)
            self.cluster.move_keys([slot], to)
            self.cluster.end_move([slot], to)


class RealCluster(OnCluster):
    """All tests share one Cluster; slots and roles stay as the last test left them."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(masters=3, replicas=1, args=ASKED_ONLY))

    def setUp(self):
        self.cluster.reset()

    def checked(self, *args):
        code, result, err = run(self.cluster.url(), "--verify", *args)
        self.assertEqual((code, err), (0, ""), result)
        self.assertTrue(result["verify"]["ok"])
        self.assertEqual(result["errors"], {})
        return result

    # ---- where requests go ----

    def test_each_node_gets_the_keys_of_its_slots(self):
        before = {node.address: self.calls(node, "incr") for node in self.cluster.masters()}
        result = self.checked("--command", "incr", "--writes", 1, "--keys", 300, "--count", 3000, "--pipeline", 4)
        self.assertEqual((result["answered"], total(result, "moved"), total(result, "requests")), (3000, 0, 3000))
        for node in self.cluster.masters():
            got = self.calls(node, "incr") - before[node.address]
            self.assertGreater(got, 300)
            self.assertEqual(result["nodes"][node.address]["requests"], got)

    def test_one_seed_is_enough(self):
        for node in self.cluster.nodes:  # replicas, too
            code, result, _ = run(self.cluster.url(node), "--count", 300, "--keys", 50, "--load")
            self.assertEqual((code, result["answered"], result["errors"]), (0, 300, {}))
            code, result, _ = run(node.address, "--cluster", "--count", 300, "--keys", 50, "--threads", 2)
            self.assertEqual((code, result["answered"], result["errors"]), (0, 300, {}))

    def test_a_cluster_without_the_flag_is_reported(self):
        code, result, _ = run(self.cluster.nodes[0].address, "--count", 300, "--keys", 50)
        self.assertEqual(code, 3)
        self.assertGreater(result["errors"]["MOVED"], 0)

    def test_every_command(self):
        result = self.checked("--command", "all", "--keys", 40, "--count", 20000, "--pipeline", 6,
                              "--connections", 12)
        self.assertEqual(total(result, "moved"), 0)
        self.assertGreater(len([n for n in result["nodes"].values() if n["requests"]]), 1)
        for name in ("mget", "mset", "eval", "exec", "watch"):
            self.assertGreater(sum(self.calls(node, name) for node in self.cluster.masters()), 0, name)
        code, result, _ = run(self.cluster.url(), "--command", "all", "--keys", 40, "--count", 5000)
        self.assertEqual((code, result["errors"]), (0, {}))

    def test_a_custom_command(self):
        owner = self.cluster.master_of("counter")
        code, result, _ = run(self.cluster.url(), "--request", "INCRBY counter 2", "--count", 500)
        self.assertEqual((code, result["errors"]), (0, {}))
        self.assertEqual(owner.client().get("counter"), b"1000")

    def test_open_loop(self):
        result = self.checked("--rate", 5000, "--count", 2000, "--keys", 100)
        self.assertEqual(result["answered"], 2000)

    # ---- slots on the move ----

    def test_strings_and_counters_while_slots_move(self):
        for args in (["--pipeline", 8], ["--rate", 3000, "--pipeline", 4], ["--ordered", "--pipeline", 4]):
            with self.subTest(args=args):
                storm = Running(self, self.cluster.url(), "--verify", "--writes", "0.5", "--keys", 20, "--prefix",
                                "{m}", "--connections", 10, *args)
                self.move_to_and_fro(slot_of("{m}"), 6)
                result = storm.end()
                self.assertGreater(total(result, "moved"), 0)
                self.assertGreater(total(result, "asked"), 0)
                self.assertEqual((result["lost"], result["errors"]), (0, {}))
                self.assertTrue(result["verify"]["ok"])

    def test_every_command_while_slots_move(self):
        """Requests for two keys get TRYAGAIN; transactions are repeated as a whole or not at all."""
        storm = Running(self, self.cluster.url(), "--verify", "--command", "all", "--keys", 20, "--prefix", "{m}",
                        "--connections", 10, "--pipeline", 8, "--window", 1000)
        self.move_to_and_fro(slot_of("{m}"), 6)
        result = storm.end()
        for what in ("moved", "asked", "not_now"):
            self.assertGreater(total(result, what), 0, what)
        self.assertEqual((result["lost"], result["errors"]), (0, {}))
        self.assertGreater(result["verify"]["windows"], 20)
        self.assertEqual((result["verify"]["ok"], result["verify"]["undecided"]), (True, 0))

    # ---- masters that are replaced ----

    def test_manual_failover(self):
        for args in (["--writes", "0.5", "--keys", 200, "--pipeline", 8],
                     ["--command", "all", "--keys", 20, "--pipeline", 8, "--window", 1000]):
            with self.subTest(args=args):
                storm = Running(self, self.cluster.url(), "--verify", "--connections", 10, *args)
                for node in self.cluster.masters():
                    self.wait_calls(node, "get", 50)
                    new = self.cluster.fail_over(node)
                    self.wait_calls(new, "get", 50)
                result = storm.end()
                self.assertGreater(total(result, "moved"), 0)
                self.assertEqual(result["errors"], {})
                self.assertTrue(result["verify"]["ok"])

    def test_a_master_that_is_gone(self):
        """Requests sent to the lost master have an unknown outcome; the others wait for the new master."""
        master = self.cluster.master_of("{g}")
        replica = self.cluster.replicas_of(master)[0]
        storm = Running(self, self.cluster.url(), "--verify", "--command", "incr", "--writes", 1, "--keys", 1,
                        "--prefix", "{g}", "--connections", 5, "--pipeline", 4)
        self.wait_calls(master, "incr", 200)
        master.client().wait(1, GUARD_S * 1000)
        master.freeze()  # from here on no write is acknowledged that the replica could miss
        self.cluster.fail_over(replica, how="TAKEOVER")
        master.kill9()
        self.wait_calls(replica, "incr", 200)
        result = storm.end(code=self.ended_with(storm))
        self.assertGreater(result["disconnects"], 0)
        self.assertGreater(result["lost"], 0)
        self.assertEqual(result["verify"]["unknown"], result["lost"])

    def ended_with(self, storm):
        """Exit status 0, or 1 if a write acknowledged before the freeze had not reached the replica."""
        storm.process.signal(2)
        return storm.process.wait()

    def test_a_master_that_hangs_and_was_replaced(self):
        master = self.cluster.master_of("{h}")
        replica = self.cluster.replicas_of(master)[0]
        storm = Running(self, self.cluster.url(), "--command", "get", "--keys", 1, "--prefix", "{h}",
                        "--connections", 3)
        self.wait_calls(master, "get", 100)
        master.freeze()
        self.cluster.fail_over(replica, how="TAKEOVER")
        self.wait_calls(replica, "get", 100)
        result = storm.end()
        self.assertEqual(result["lost"], 3)
        self.assertEqual(result["errors"], {})

    def test_writes_that_a_replica_had_missed(self):
        """The replica takes over without acknowledged writes: --verify reports them."""
        for args, said in ((["--command", "set", "--writes", "0.2", "--keys", 20], "is lost|replaced"),
                           (["--command", "incr", "--writes", "0.5", "--keys", 3], "possible was|two INCRs|the sum is"),
                           (["--command", "all", "--keys", 10, "--window", 500], "no order|an answer")):
            with self.subTest(args=args):
                self.cluster.reset()
                master = self.cluster.master_of("{w}")
                replica = self.cluster.replicas_of(master)[0]
                storm = Running(self, self.cluster.url(), "--verify", "--prefix", "{w}", "--connections", 4, *args)
                self.wait_calls(master, "get", 100)
                replica.freeze()
                master.call("CLIENT", "KILL", "TYPE", "replica")  # the replica misses later writes
                self.wait_calls(master, "get", 500)
                master.freeze()
                replica.thaw()
                self.cluster.fail_over(replica, how="TAKEOVER")
                self.wait_calls(replica, "get", 100)
                result = storm.end(code=1)
                self.assertFalse(result["verify"]["ok"])
                self.assertRegex("\n".join(result["verify"]["failures"]), said)


class Secured(OnCluster):
    def test_tls_and_a_user(self):
        with Cluster(masters=3, replicas=0, tls=True, users=["app on >pw ~* +@all"]) as self.cluster:
            cluster = self.cluster
            code, result, err = run(cluster.url(user="app", password="pw"), "--tls-ca-cert-file", cluster.tls.ca,
                                    "--verify", "--prefix", "app:", "--keys", 50, "--count", 2000, "--pipeline", 4)
            self.assertEqual((code, err, result["errors"]), (0, "", {}))
            self.assertEqual(len(result["nodes"]), 3)
            code, _, err = run(cluster.url(user="app", password="no"), "--tls-ca-cert-file", cluster.tls.ca)
            self.assertEqual(code, 1)
            self.assertIn("cannot log in as 'app'", err)
            code, _, err = run(cluster.url(user="app", password="pw"))
            self.assertEqual(code, 1)
            self.assertRegex(err, "TLS: .*certificate")
            # After a redirect, storm uses TLS and the same user, too.
            storm = Running(self, cluster.url(), "--tls-ca-cert-file", cluster.tls.ca, "--user", "app", "--verify",
                            "--writes", "0.5", "--keys", 20, "--prefix", "{m}", env={"HEATSINK_PASSWORD": "pw"})
            self.move_to_and_fro(slot_of("{m}"), 4)
            result = storm.end()
            self.assertGreater(total(result, "moved"), 0)
            self.assertGreater(total(result, "asked"), 0)
            self.assertEqual((result["lost"], result["errors"]), (0, {}))
            self.assertTrue(result["verify"]["ok"])


class ScriptedNode(FakeServer):
    """A node of a Cluster in which one scripted node owns all slots."""

    def __init__(self, script=None):
        self.script, self.owner, self.seen = script, self, []
        super().__init__(self.redirect)

    def share(self, other):
        """Both nodes use the same data."""
        self.data, self.ends, self.versions, self.lock = other.data, other.ends, other.versions, other.lock
        other.owner = self

    def redirect(self, _server, connection, number, args):
        if args[0] == b"CLUSTER":
            return b"*1\r\n*3\r\n:0\r\n:16383\r\n*3\r\n$9\r\n127.0.0.1\r\n:%d\r\n$0\r\n\r\n" % self.owner.port
        self.seen.append(args)
        return self.script(self, connection, number, args) if self.script else None


class Scripted(unittest.TestCase):
    """Answers that real nodes give at moments that a test cannot choose."""

    def run_on(self, node, *args):
        return run(f"cluster://127.0.0.1:{node.port}", *args)

    def test_not_now(self):
        """LOADING, CLUSTERDOWN and TRYAGAIN are retried and are no errors."""
        words = [b"LOADING Redis is loading", b"CLUSTERDOWN Hash slot not served", b"TRYAGAIN Multiple keys"]

        def later(_node, _connection, number, _args):
            return b"-%s\r\n" % words[number // 40 % 3] if number % 40 == 0 else None

        with ScriptedNode(later) as node:
            code, result, _ = self.run_on(node, "--verify", "--count", 400, "--connections", 1, "--keys", 5)
            self.assertEqual((code, result["answered"], result["errors"]), (0, 400, {}))
            self.assertGreaterEqual(total(result, "not_now"), 9)

    def test_an_overtaken_request_is_not_sent_again(self):
        """The first of two SETs of a key is refused and the second runs: the first must not be sent again after it,
        and counts as a refused write for --verify."""
        refused = []

        def refuse(_node, _connection, number, args):
            if args[0] == b"SET" and number % 50 == 7:
                refused.append(args[2])
                return b"-TRYAGAIN later\r\n"
            return None

        with ScriptedNode(refuse) as node:
            code, result, _ = self.run_on(node, "--verify", "--command", "set", "--writes", 1, "--count", 2000, "--keys",
                                          1, "--connections", 1, "--pipeline", 16)
            sent = [args[2] for args in node.seen if args[0] == b"SET"]
            again = [value for value in refused if sent.count(value) > 1]
            self.assertEqual((code, result["verify"]["ok"]), (3, True))
            self.assertEqual(result["errors"], {"TRYAGAIN": len(refused) - len(again)})
            self.assertLess(len(again), len(refused))  # the last one of a pipeline has no later request

    def test_a_redirect_waits_for_later_requests_in_flight(self):
        """A node redirects one request and runs later ones, because the slot came back meanwhile."""
        with ScriptedNode() as one, ScriptedNode() as other:
            def moved(node, connection, number, args):
                if args[0] not in (b"INCR", b"GETSET", b"GET", b"INCRBY") or number % 20 or connection.queue is not None:
                    return None
                return b"-MOVED %d 127.0.0.1:%d\r\n" % (slot_of(args[1]), (other if node is one else one).port)

            one.script = other.script = moved
            one.share(other)
            code, result, _ = self.run_on(one, "--verify", "--command", "all", "--count", 6000, "--keys", 2,
                                          "--connections", 1, "--pipeline", 16, "--window", 500)
            self.assertEqual((code, result["verify"]["ok"]), (3, True), result["verify"]["failures"])
            self.assertEqual(list(result["errors"]), ["MOVED"])

    def test_endless_redirects_are_given_up(self):
        """After --resend-timeout, requests fail with the last error."""
        with ScriptedNode(lambda *_: b"-CLUSTERDOWN The cluster is down\r\n") as node:
            code, result, _ = self.run_on(node, "--resend-timeout", "500ms", "--count", 6, "--connections", 1, "--pipeline",
                                          3, "--keys", 5)
            self.assertEqual((code, result["answered"], result["errors"]), (3, 6, {"CLUSTERDOWN": 6}))
            self.assertGreater(len(node.seen), 20)

    def test_to_and_fro(self):
        """Two nodes redirect to each other: storm follows with pauses."""
        with ScriptedNode() as one, ScriptedNode() as other:
            def moved(node, _connection, number, args):
                if number > 40:
                    return None
                away = other if node is one else one
                return b"-MOVED %d 127.0.0.1:%d\r\n" % (slot_of(args[1]), away.port)

            one.script = other.script = moved
            code, result, _ = self.run_on(one, "--count", 1, "--connections", 1, "--keys", 1)
            self.assertEqual((code, result["errors"], result["answered"]), (0, {}, 1))
            self.assertGreater(total(result, "moved"), 40)
            self.assertGreater(result["all"]["max_us"], 100000)

    def test_a_watched_transaction_stays_with_its_watch(self):
        """The slot has moved: the transaction did nothing and must not run at a node without its WATCH."""
        with ScriptedNode() as one, ScriptedNode() as other:
            watching = set()

            def leave(_node, connection, _number, args):
                if args[0] == b"WATCH":
                    watching.add(connection)
                elif args[0] == b"MULTI" and connection in watching:
                    watching.discard(connection)
                    connection.leaving = True
                elif getattr(connection, "leaving", False):
                    if args[0] != b"EXEC":
                        return b"-MOVED %d 127.0.0.1:%d\r\n" % (slot_of(args[1]), other.port)
                    connection.leaving, connection.queue, connection.watched = False, None, {}
                    return b"-EXECABORT Transaction discarded because of previous errors.\r\n"
                return None

            one.script = leave
            one.share(other)
            code, result, _ = self.run_on(one, "--verify", "--command", "all", "--count", 8000, "--keys", 2,
                                          "--connections", 6, "--pipeline", 4, "--window", 500)
            self.assertEqual((code, result["errors"]), (0, {}))
            self.assertGreater(total(result, "moved"), 0)

    def test_no_slots_and_no_cluster(self):
        with Redis("--cluster-enabled", "yes") as alone:
            code, _, err = run(f"cluster://127.0.0.1:{alone.port}", "--count", 1)
            self.assertEqual(code, 1)
            self.assertIn("the cluster has no slots", err)
        port = ReservedPort()
        self.addCleanup(port.release)
        code, _, err = run(f"cluster://127.0.0.1:{port.number}", "--count", 1)
        self.assertEqual(code, 1)
        self.assertIn("could not connect: connection refused", err)


if __name__ == "__main__":
    unittest.main()
