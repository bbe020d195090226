"""heatsink looks for the servers behind it.

Goal: whatever is or is not where the URL says, an operator is told in one line, clients are told
with each request, /readyz says the same, and everything is well by itself as soon as the servers
are. Only what can never become right ends heatsink at the start.

Method: real servers that are there, away, asleep, behind a password, of another kind or of another
cluster than heatsink believes.
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
        """None, or what is not well."""
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
        """Until /readyz says so: the log may be ahead of it."""
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
        self.assertEqual(self.count(server, "waiting"), 0)

    def test_all_seeds_down_and_started_later(self):
        for node in cluster.nodes:
            node.kill9()
        server = self.serve(cluster.url(), "--engine-timeout", "1000")
        server.wait_log(r"none of 3 seeds answers .*127.0.0.1:\d+: connection refused, and 2 more"
                        r".*: waiting")
        client = server.client()
        with self.assertRaisesRegex(redis.ResponseError, "CLUSTERDOWN .*not sent"):
            client.get("key")
        self.wait_trouble(server, "none of 3 nodes answers")
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
                server.wait_log(": waiting")
                self.assertEqual(self.count(server, ": waiting"), 1)
                self.assertEqual(server.stop(), 0)

    def test_all_gone_for_a_while(self):
        server = self.serve(cluster.url(cluster.nodes[0]), "--engine-timeout", "1000")
        self.assert_works(server)
        for node in cluster.nodes:
            node.kill9()
        server.wait_log("none of 3 nodes answers")
        self.wait_trouble(server, "none of 3 nodes")
        for node in cluster.nodes:
            node.restart()
        cluster.wait_ready()
        self.assert_works(server)
        server.wait_log(r"127.0.0.1:\d+ answers again")

    def test_a_server_without_a_cluster(self):
        with Redis() as single:
            server = self.serve_in_vain("without a cluster: use redis://",
                                        f"cluster://127.0.0.1:{single.port}")
            self.wait_trouble(server, "use redis://")

    def test_another_cluster_at_the_seed(self):
        """What answered there has gone, and another cluster has come to its address."""
        relays = [Relay(node.port) for node in cluster.nodes]
        for relay in relays:
            self.addCleanup(relay.close)
        with Cluster(masters=3, replicas=0, relays=True) as mine:
            server = self.serve(mine.url(), "--engine-timeout", "1000")
            self.assert_works(server)
            for node in mine.nodes:
                node.kill9()
            for node, other in zip(mine.nodes, cluster.nodes):  # no more of them answers
                node.relay.target = other.port
            server.wait_log("another cluster answers there than the one known so far")
            self.wait_trouble(server, "another cluster")
            with self.assertRaises(redis.ResponseError):
                server.client().set("key", "theirs")
            self.assertEqual(self.count(server, "it is left alone"), 1)
            self.assertEqual([node.call("DBSIZE").number() for node in cluster.nodes], [0, 0, 0])
            for node in mine.nodes:
                node.relay.target = node.port
                node.restart()
            mine.wait_ready()
            self.assert_works(server)

    def test_ends_while_it_waits(self):
        """Whatever state it is in: nobody there, somebody who says nothing, nobody asked yet."""
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
            servers.append(self.serve_in_vain("cannot log in as .*WRONGPASS.*: waiting",
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
        """Its nodes are known by their addresses, which their certificates must have."""
        with Cluster(masters=2, replicas=0, tls=True) as secret:
            server = self.serve(secret.url(), "--engine-timeout", "60000", "--engine-tls-ca-cert-file",
                                secret.tls.ca)
            self.assert_works(server)
            client = server.client()
            client.mset({f"k{number}": "x" * number for number in range(0, 70000, 1000)})
            self.assertEqual(len(client.get("k69000")), 69000)
            self.assertEqual(client.dbsize(), 71)
            server = self.serve_in_vain("none of 2 seeds answers .*TLS: .*: waiting",
                                        secret.url())  # nobody vouches for them
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
            server.wait_log(r"127.0.0.1:\d+: .*: waiting")
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
        self.serve_in_vain("nobody.invalid:6379: its name is not known: .*: waiting",
                           "redis://nobody.invalid")

    def test_it_is_of_a_cluster(self):
        server = self.serve(f"redis://{cluster.nodes[0].address}")
        server.wait_log("is a node of a cluster, .*: use cluster://")
        self.assertEqual(self.count(server, "use cluster://"), 1)

    def test_commands_are_learned_again(self):
        """Another server has come to the place: it has another command, though not more."""
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
            server.wait_log("has other commands than before")

    def test_commands_that_come_while_it_runs(self):
        """As when a module is loaded. The first time, the relay has COMMAND answered without any."""
        with Redis() as single, Relay(single.port) as relay:
            none = relay.answer(b"*0\r\n", lambda args: args == [b"COMMAND"])
            server = self.serve(f"redis://127.0.0.1:{relay.port}")
            none.wait()
            wait("it is known", lambda: server.client().lpush("list", "x"))


if __name__ == "__main__":
    unittest.main()
