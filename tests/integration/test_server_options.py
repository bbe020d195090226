"""Goal: CONFIG and INFO about the servers behind heatsink show what the servers say, and an option set through heatsink
is set at every node, also at nodes that join later.

Method: heatsink in front of redis-servers and of a Cluster, whose nodes are read directly, given different options,
killed, started again, failed over and joined by a new one. heatsink must not answer with a value that a server does
not tell, or on which the servers do not agree.
"""
import os
import re
import time
import unittest

from cluster import Cluster, Node
from servers import GUARD_S, ROOT, Heatsink, Redis, note

POLL_S = 0.02


def until(what, condition):
    guard = time.monotonic() + GUARD_S
    while not (found := condition()):
        time.sleep(POLL_S)
        if time.monotonic() > guard:
            raise AssertionError("never happened: " + what)
    return found


def pairs(reply):
    texts = [item.text.decode() for item in reply.items]
    return dict(zip(texts[0::2], texts[1::2]))


def info(connection):
    lines = connection.call("INFO").text.decode().split("\r\n")
    return dict(line.split(":", 1) for line in lines if ":" in line)


LATE = re.compile(rb"(does not answer|nothing came back|cannot be reached) in time")
ODD_TRIES = 4  # attempts with a server that differs, because it may also be late


def in_time(ask):
    """The reply; repeats the request while it says that a server was late (heatsink waits two seconds)."""
    guard = time.monotonic() + GUARD_S
    while LATE.search((reply := ask()).raw) and time.monotonic() < guard:
        note(f"a server was late, and is asked again: {reply}")
    return reply


class Case(unittest.TestCase):
    def config(self, connection, *words):
        return in_time(lambda: connection.call("CONFIG", *words))

    def get(self, connection, *names):
        reply = self.config(connection, "GET", *names)
        self.assertFalse(reply.is_error, reply)
        return pairs(reply)

    def front(self, *urls):
        heatsink = Heatsink("--engine", *urls, "--workers", "2")
        self.addCleanup(heatsink.close)
        return heatsink.wait_engine().raw()


class Documented(unittest.TestCase):
    def test_every_option_is_in_the_manual(self):
        with open(os.path.join(ROOT, "src/engine/redis/server_options.c"), encoding="utf-8") as file:
            rows = re.findall(r'\{"([a-z-]+)", \.settable = (true|false)\}', file.read())
        with open(os.path.join(ROOT, "docs/ENGINES.md"), encoding="utf-8") as file:
            manual = re.findall(r"(?m)^\| (`[a-z-]+`.*) \| (yes|no) \|$", file.read())
        told = {name: said for names, said in manual for name in re.findall(r"`([a-z-]+)`", names)}
        self.assertEqual(told, {name: "yes" if settable == "true" else "no"
                                for name, settable in rows})


class OneServer(Case):
    def behind(self, *args):
        server = Redis(*args)
        self.addCleanup(server.close)
        return server, self.front("redis://127.0.0.1:%d" % server.port)

    def test_options_of_the_server(self):
        server, client = self.behind("--maxmemory", "77mb", "--maxmemory-policy", "allkeys-lru",
                                     "--save", "900 1")
        told = {"maxmemory": "80740352", "maxmemory-policy": "allkeys-lru", "appendonly": "no",
                "save": "900 1", "appendfsync": "everysec", "notify-keyspace-events": ""}
        self.assertEqual(self.get(client, *told), told)
        self.assertEqual(self.get(client, "maxmem*", "MAXCLIENTS"), {
            "maxmemory": "80740352", "maxmemory-policy": "allkeys-lru", "maxmemory-samples": "5",
            "MAXCLIENTS": "10000"})
        self.assertEqual(self.get(client, "nosuch"), {})
        until("INFO tells", lambda: "maxmemory" in info(client))
        fields = info(client)
        self.assertEqual([fields[name] for name in ("maxmemory", "maxmemory_policy",
                                                    "aof_enabled")],
                         ["80740352", "allkeys-lru", "0"])
        for name in ("sync", "checkpoints", "keyspace_hits", "evicted_keys", "last_commit_status"):
            self.assertNotIn(name, fields)
        self.assertEqual(self.get(client, "sync", "data", "store-size", "log-size", "partitions"), {})
        server.raw().call("CONFIG", "SET", "maxmemory", "1gb")  # directly at the server
        self.assertEqual(self.get(client, "maxmemory"), {"maxmemory": "1073741824"})

    def test_set(self):
        server, client = self.behind()
        direct = server.raw()
        self.assertEqual(self.config(client, "SET", "notify-keyspace-events", "KEA", "maxmemory",
                                     "100mb").raw, b"+OK\r\n")
        self.assertEqual(self.get(direct, "maxmemory", "notify-keyspace-events"),
                         {"maxmemory": "104857600", "notify-keyspace-events": "AKE"})
        self.assertEqual(self.get(client, "maxmemory"), {"maxmemory": "104857600"})
        for words, error in ((("maxmemory", "nonsense"), b"argument must be a memory value"),
                             (("maxmemory-policy", "no"), b"argument(s) must be one of"),
                             (("maxmemory", "1", "maxclients", "9"), b"cannot be set with one command"),
                             (("maxmemory", "1", "maxmemory", "2"), b"duplicate parameter"),
                             (("maxmemory", "1", "save"), b"number of arguments"),
                             (("cluster-require-full-coverage", "no"), b"immutable")):
            self.assertIn(error, self.config(client, "SET", *words).raw)
        self.assertEqual(self.get(direct, "maxmemory"), {"maxmemory": "104857600"})
        transaction = [("MULTI",), ("SET", "a", "1"), ("CONFIG", "SET", "maxmemory", "200mb"),
                       ("CONFIG", "GET", "maxmemory"), ("EXEC",)]
        self.assertEqual(in_time(lambda: client.call_all(transaction)[-1]).raw,
                         b"*3\r\n+OK\r\n+OK\r\n*2\r\n$9\r\nmaxmemory\r\n$9\r\n209715200\r\n")

    def test_a_server_that_refuses_config(self):
        """A server that refuses CONFIG, as managed services do: heatsink shows only what it knows."""
        server, client = self.behind("--rename-command", "CONFIG", "")
        where = b"127.0.0.1:%d" % server.port
        for words in (("GET", "maxmemory"), ("SET", "maxmemory", "1")):
            error = self.config(client, *words).raw
            self.assertIn(b"unknown command", error)
            self.assertTrue(error.startswith(b"-ERR "), error)
        self.assertIn(where, self.config(client, "GET", "maxmemory").raw)
        found = self.get(client, "*")
        self.assertIn("maxclients", found)
        self.assertNotIn("maxmemory", found)
        self.assertNotIn("appendonly", found)
        until("INFO, which is not refused, tells",
              lambda: info(client).get("maxmemory_policy") == "noeviction")

    def test_a_server_that_is_away(self):
        server, client = self.behind()
        server.kill9()
        error = client.call("CONFIG", "GET", "maxmemory").raw
        self.assertIn(b"the value of 'maxmemory' is unknown: 127.0.0.1:%d" % server.port, error)
        self.assertIn(b"took effect at no server",
                      client.call("CONFIG", "SET", "maxmemory", "1").raw)
        until("INFO leaves it out", lambda: "maxmemory_policy" not in info(client))


class InFrontOfACluster(Case):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(masters=3, replicas=1))

    def setUp(self):
        self.cluster.reset()
        for node in self.cluster.nodes:
            node.call("CONFIG", "SET", "maxmemory-policy", "noeviction", "maxmemory", "0")
        self.client = self.front(self.cluster.url())

    def policy(self, node):
        return pairs(node.call("CONFIG", "GET", "maxmemory-policy"))["maxmemory-policy"]

    def set_policy(self, policy):
        """Sets the option through heatsink. CLUSTER SLOTS omits a replica until the nodes know its offset: it gets
        the option as soon as it is listed."""
        self.assertEqual(self.config(self.client, "SET", "maxmemory-policy", policy).raw,
                         b"+OK\r\n")
        self.assertEqual({self.policy(node) for node in self.cluster.masters()}, {policy})
        until("every node has it",
              lambda: all(self.policy(node) == policy for node in self.cluster.nodes))

    def test_every_node_has_it(self):
        self.set_policy("volatile-ttl")
        self.assertEqual(self.get(self.client, "maxmemory-policy"),
                         {"maxmemory-policy": "volatile-ttl"})
        until("INFO says it", lambda: info(self.client).get("maxmemory_policy") == "volatile-ttl")

    def test_nodes_that_differ(self):
        odd = self.cluster.masters()[1]
        odd.call("CONFIG", "SET", "maxmemory-policy", "allkeys-lfu")
        for _ in range(ODD_TRIES):
            began = time.monotonic()
            error = self.client.call("CONFIG", "GET", "maxmemory-policy")
            if error.is_error:
                break
            note(f"a value after {time.monotonic() - began:.1f} s: the other server did not tell its own in "
                 "time, and is asked again")
        self.assertTrue(error.is_error, error)
        error = error.raw
        self.assertIn(b"differs between servers", error)
        self.assertIn(b"'allkeys-lfu' at " + odd.address.encode(), error)
        found = self.get(self.client, "maxmemory*")
        self.assertEqual(found, {"maxmemory": "0", "maxmemory-samples": "5"})
        until("INFO leaves it out", lambda: "maxmemory_policy" not in info(self.client))
        self.set_policy("noeviction")
        self.assertEqual(self.policy(odd), "noeviction")

    def test_a_node_that_is_started_again(self):
        self.set_policy("allkeys-random")
        replica = self.cluster.replicas_of(self.cluster.masters()[0])[0]
        replica.restart()
        until("a replica that was started again has it",
              lambda: self.policy(replica) == "allkeys-random")

    def test_a_failover(self):
        self.set_policy("volatile-lfu")
        old = self.cluster.masters()[0]
        replica = self.cluster.replicas_of(old)[0]
        old.kill9()
        new = self.cluster.fail_over(replica, "FORCE")
        self.assertEqual(self.policy(new), "volatile-lfu")
        old.restart()
        until("the one that was master has it", lambda: self.policy(old) == "volatile-lfu")

    def test_a_node_that_is_away(self):
        away = self.cluster.replicas_of(self.cluster.masters()[0])[0]
        self.set_policy("volatile-lru")
        until("every node lists it", lambda: all(
            b":%d\r\n" % away.public_port in node.call("CLUSTER", "SLOTS").raw
            for node in self.cluster.nodes))
        away.kill9()
        error = self.config(self.client, "SET", "maxmemory-policy", "allkeys-lru").raw
        self.assertIn(b"took effect at 5 of 6 servers", error)
        self.assertIn(away.address.encode() + b": ", error)
        away.restart()
        until("it has it when it is back", lambda: self.policy(away) == "allkeys-lru")

    def test_a_new_node(self):
        self.set_policy("volatile-random")
        master = self.cluster.masters()[0]
        node = Node(self.cluster, "node-new")
        self.addCleanup(node.close)
        node.write_configuration()
        node.launch()
        node.wait_listening()
        host, port = master.address.rsplit(":", 1)
        identity = master.call("CLUSTER", "MYID").text

        def has_master():
            if not node.ask("CLUSTER", "REPLICATE", identity).is_error:
                return True
            node.call("CLUSTER", "MEET", host, port, str(master.bus_port))  # repeated: a node may give it up
            return False
        until("it knows its master", has_master)
        until("a new node has it", lambda: self.policy(node) == "volatile-random")
        name = node.call("CLUSTER", "MYID").text
        until("every node knows it", lambda: all(
            name in other.call("CLUSTER", "NODES").text for other in self.cluster.nodes))
        node.kill9()
        for other in self.cluster.nodes:
            other.call("CLUSTER", "FORGET", name)


if __name__ == "__main__":
    unittest.main()
