"""Goal: whatever is or is not at the address of --engine, heatsink logs it in one line, answers each request with the
reason, and reports it in /readyz; when the servers are there, heatsink works without a restart. Only an error that
can never be repaired ends heatsink at the start.

Method: real servers that run, are away, are frozen, need a password, are of another kind, or belong to another
cluster than the one heatsink knows.
"""
import socket
import subprocess
import time
import unittest
import urllib.error
import urllib.request

import redis

from checks import start_waiting
from cluster import POLL_S, Cluster
from relay import Relay
from servers import GUARD_S, Heatsink, Redis, ReservedPort, heatsink_path

cluster = None


def setUpModule():
    global cluster
    cluster = Cluster(masters=3, replicas=0)


def tearDownModule():
    cluster.close()


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
    def serve(self, url, *args):
        server = Heatsink("--engine", url, "--workers", "2", *args)
        self.addCleanup(server.close)
        return server

    def serve_in_vain(self, why, url):
        return start_waiting(self, why, "--engine", url, "--workers", "2")[0]

    def ready(self, server):
        """None if /readyz reports no problem, else its text."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{server.http_port}/readyz") as answer:
                ready, *lines = answer.read().decode().splitlines()
                self.assertEqual(ready, "ready")
                return "\n".join(lines) or None
        except urllib.error.HTTPError as error:
            with error:
                self.assertEqual(error.code, 503)
                return error.read().decode().strip()

    def assert_works(self, server):
        client = server.client()
        seen = wait("it works", lambda: client.set("key", "value") and [client.get("key")])
        self.assertEqual(seen, [b"value"])
        wait("it says so", lambda: self.ready(server) is None)

    def wait_trouble(self, server, text):
        """Waits until /readyz has the text, which may appear later than the log line."""
        wait(f"it says {text}", lambda: text in (self.ready(server) or ""))

    def count(self, server, text):
        return sum(text in line for line in server.log)


class TestWrong(Case):
    def refused(self, *args):
        done = subprocess.run([heatsink_path(), "serve", "--port", "0", "--http", "0", *args],
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=GUARD_S,
                              check=False, text=True)
        self.assertEqual(done.returncode, 1)
        lines = (done.stdout + done.stderr).splitlines()
        self.assertEqual(len(lines), 1, lines)
        return lines[0]

    def test_a_wrong_url_ends_it(self):
        for url, said in (("cluster://127.0.0.1:70000", "port"), ("http://127.0.0.1", "must start with redis://"),
                          ("redis://a,b", "one"), ("cluster://:secret@", "host")):
            line = self.refused("--engine", url)
            self.assertIn("engine: ", line)
            self.assertRegex(line, said)
            self.assertNotIn("secret", line)

    def test_a_wrong_engine_ends_it(self):
        self.assertIn("neither embedded nor a URL", self.refused("--engine", "redis"))


class TestCluster(Case):
    def setUp(self):
        cluster.reset()

    def test_one_seed_is_enough(self):
        server = self.serve(cluster.url(cluster.nodes[1]))
        self.assert_works(server)
        server.wait_log(r"cluster: 3 shards, 0 replicas, Redis \d")
        server.wait_log(r"in front of cluster://127.0.0.1:\d+, 3 partitions, 2 workers")
        self.assertEqual(server.stop(), 0)
        self.assertIn("goodbye", server.log[-1])
        self.assertNotIn("disk", server.process.text())

    def test_seeds_that_are_away_are_passed_over(self):
        gone = ReservedPort()
        self.addCleanup(gone.release)
        url = f"cluster://127.0.0.1:{gone.number},{cluster.nodes[0].address}"
        server = self.serve(url)
        self.assert_works(server)
        self.assertEqual(self.count(server, "retrying"), 0)

    def test_all_seeds_down_and_started_later(self):
        for node in cluster.nodes:
            node.kill9()
        server = self.serve(cluster.url(), "--engine-timeout", "1000")
        server.wait_log(r"none of 3 seeds gives a usable answer .*127.0.0.1:\d+: connection refused, and 2 more"
                        r".*: retrying")
        client = server.client()
        with self.assertRaisesRegex(redis.ResponseError, "CLUSTERDOWN .*not sent"):
            client.get("key")
        self.wait_trouble(server, "none of 3 nodes gives a usable answer")
        self.assertIn("none of 3 nodes", client.info("engine")["engine_unavailable"])
        for node in cluster.nodes:
            node.restart()
        cluster.wait_ready()
        self.assert_works(server)
        wait("INFO says so", lambda: client.info("engine")["engine_unavailable"] == "")

    def test_one_log_line_for_many_attempts(self):
        with socket.create_server(("127.0.0.1", 0)) as nobody:
            for kind in ("cluster", "redis"):
                server = self.serve(f"{kind}://127.0.0.1:{nobody.getsockname()[1]}")
                for _ in range(4):
                    nobody.accept()[0].close()
                server.wait_log(": retrying")
                self.assertEqual(self.count(server, ": retrying"), 1)
                self.assertEqual(server.stop(), 0)

    def test_all_gone_for_a_while(self):
        server = self.serve(cluster.url(cluster.nodes[0]), "--engine-timeout", "1000")
        self.assert_works(server)
        for node in cluster.nodes:
            node.kill9()
        server.wait_log("none of 3 nodes gives a usable answer")
        self.wait_trouble(server, "none of 3 nodes")
        for node in cluster.nodes:
            node.restart()
        cluster.wait_ready()
        self.assert_works(server)
        server.wait_log(r"127.0.0.1:\d+ answers again")

    def test_a_server_without_a_cluster(self):
        with Redis() as single:
            server = self.serve_in_vain("not part of a cluster: use redis://",
                                        f"cluster://127.0.0.1:{single.port}")
            self.wait_trouble(server, "use redis://")

    def test_another_cluster_at_the_seed(self):
        """The nodes are gone, and another cluster answers at their addresses."""
        relays = [Relay(node.port) for node in cluster.nodes]
        for relay in relays:
            self.addCleanup(relay.close)
        with Cluster(masters=3, replicas=0, relays=True) as mine:
            server = self.serve(mine.url(), "--engine-timeout", "1000")
            self.assert_works(server)
            for node in mine.nodes:
                node.kill9()
            for node, other in zip(mine.nodes, cluster.nodes):  # from here on the other cluster answers
                node.relay.target = other.port
            server.wait_log("a different cluster answers at this address")
            self.wait_trouble(server, "a different cluster")
            with self.assertRaises(redis.ResponseError):
                server.client().set("key", "theirs")
            self.assertEqual(self.count(server, "ignored, check the engine's URL"), 1)
            self.assertEqual([node.call("DBSIZE").number() for node in cluster.nodes], [0, 0, 0])
            for node in mine.nodes:
                node.relay.target = node.port
                node.restart()
            mine.wait_ready()
            self.assert_works(server)

    def test_ends_while_it_waits(self):
        """Shutdown works while no server listens, a server does not answer, or the name does not resolve."""
        gone = ReservedPort()
        self.addCleanup(gone.release)
        with Redis() as single, Relay(single.port) as silent:
            silent.pause()
            for url in (f"cluster://127.0.0.1:{gone.number}", f"cluster://127.0.0.1:{silent.port}",
                        f"redis://127.0.0.1:{silent.port}", "cluster://nobody.invalid"):
                self.assertEqual(self.serve(url).stop(), 0)


class TestPassword(Case):
    def test_the_right_one_and_a_wrong_one(self):
        with Cluster(masters=1, replicas=0, password="open/sesame") as guarded:
            servers = [self.serve(guarded.url(password="open%2Fsesame"))]
            self.assert_works(servers[-1])
            servers.append(self.serve_in_vain("cannot log in as .*WRONGPASS.*: retrying",
                                              guarded.url(password="shut-sesame")))
            self.wait_trouble(servers[-1], "WRONGPASS")
            servers.append(self.serve_in_vain("NOAUTH", guarded.url(password="")))
            servers.append(self.serve(guarded.url(password=""), "--engine-password",
                                      "open/sesame"))
            self.assert_works(servers[-1])
            for server in servers:
                self.assertNotIn("sesame", server.process.text())

    def test_a_user_without_a_password(self):
        users = "--user default on nopass +ping --user alice on nopass ~* &* +@all"
        with Redis(*users.split()) as single:
            self.assert_works(self.serve(f"redis://alice:@127.0.0.1:{single.port}"))
            self.assert_works(self.serve(f"redis://127.0.0.1:{single.port}", "--engine-user",
                                         "alice"))


class TestTls(Case):
    def test_a_cluster_by_tls(self):
        """heatsink knows the nodes by address, so their certificates must contain the addresses."""
        with Cluster(masters=2, replicas=0, tls=True) as secret:
            server = self.serve(secret.url(), "--engine-timeout", "60000", "--engine-tls-ca-cert-file",
                                secret.tls.ca)
            self.assert_works(server)
            client = server.client()
            client.mset({f"k{number}": "x" * number for number in range(0, 70000, 1000)})
            self.assertEqual(len(client.get("k69000")), 69000)
            self.assertEqual(client.dbsize(), 71)
            server = self.serve_in_vain("none of 2 seeds gives a usable answer .*TLS: .*: retrying",
                                        secret.url())  # without a CA file: certificates not trusted
            self.wait_trouble(server, "TLS: ")
            server = self.serve(secret.url(), "--engine-tls-skip-verify", "yes")
            self.assert_works(server)


class TestSingle(Case):
    def test_it_is_there(self):
        with Redis() as single:
            server = self.serve(f"redis://127.0.0.1:{single.port}")
            self.assert_works(server)
            server.wait_log(rf"127.0.0.1:{single.port}: Redis \d")
            server.wait_log(r"in front of redis://127.0.0.1:\d+, 1 partition, 2 workers")
            self.assertEqual(single.client().get("key"), b"value")

    def test_a_server_that_starts_late_stops_and_returns(self):
        gone = ReservedPort()
        self.addCleanup(gone.release)
        with Redis() as single:
            relay = Relay(gone.number)
            self.addCleanup(relay.close)
            server = self.serve(f"redis://127.0.0.1:{relay.port}", "--engine-timeout", "1000")
            server.wait_log(r"127.0.0.1:\d+: .*: retrying")
            self.wait_trouble(server, f"127.0.0.1:{relay.port}: ")
            relay.target = single.port
            self.assert_works(server)
            server.wait_log("answers again")
            relay.target = gone.number
            single.kill9()
            wait("it is missed", lambda: self.ready(server))
            single.start()
            relay.target = single.port
            self.assert_works(server)

    def test_it_has_a_name(self):
        with Redis() as single:
            self.assert_works(self.serve(f"redis://localhost:{single.port}"))
        self.serve_in_vain("nobody.invalid:6379: its host name was not found: .*: retrying",
                           "redis://nobody.invalid")

    def test_it_is_of_a_cluster(self):
        server = self.serve(f"redis://{cluster.nodes[0].address}")
        server.wait_log("is a node of a cluster: .*; use cluster://")
        self.assertEqual(self.count(server, "use cluster://"), 1)

    def test_commands_are_learned_again(self):
        """Another server answers at the address, with the same number of commands but another command."""
        with Redis("--rename-command", "LPUSH", "") as first, \
                Redis("--rename-command", "RPUSH", "") as second, Relay(first.port) as relay:
            server = self.serve(f"redis://127.0.0.1:{relay.port}")
            client = server.client()
            wait("its commands are known", lambda: client.rpush("other", "x"))
            with self.assertRaisesRegex(redis.ResponseError, "unknown command"):
                client.lpush("list", "x")
            relay.target = second.port
            relay.cut_all()
            wait("it is known", lambda: client.lpush("list", "x"))
            server.wait_log("has changed its commands")

    def test_commands_that_come_while_it_runs(self):
        """As when a module is loaded: the relay answers the first COMMAND without the command."""
        with Redis() as single, Relay(single.port) as relay:
            none = relay.answer(b"*0\r\n", lambda args: args == [b"COMMAND"])
            server = self.serve(f"redis://127.0.0.1:{relay.port}")
            none.wait()
            wait("it is known", lambda: server.client().lpush("list", "x"))


if __name__ == "__main__":
    unittest.main()
