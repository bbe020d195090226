"""Goal: clients that know Redis Cluster work with heatsink, which announces itself as one node that owns every slot.

Method: every CLUSTER reply is compared with that of a redis-server that is a cluster of one node, byte for byte where
possible; the announced address must follow the options; then redis.cluster.RedisCluster, redis-cli -c, redis-cli
--cluster and a program written with hiredis (tests/clients/hiredis.c) run as their users run them.
"""

import os
import re
import socket
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import redis
from redis.cluster import RedisCluster

import servers
from cluster import Cluster
from servers import GUARD_S, ROOT

ANNOUNCE = ("--cluster-announce-ip", "10.1.2.3", "--cluster-announce-port", "7007")
NODE_ID = re.compile(rb"\b[0-9a-f]{40}\b")


class OneNodeCase(unittest.TestCase):
    @classmethod
    def engine(cls):
        """Starts the servers that the engine needs, which end with the class; returns heatsink's arguments."""
        return "--partitions", "4", "--sync", "off"

    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(servers.Heatsink("--workers", "2", *cls.engine()))

    def setUp(self):
        self.client = self.server.client(decode_responses=True)
        self.client.flushall()

    def ask(self, *words, server=None):
        return (server or self.server).raw().call(*words)


class BeforeCluster:
    """In front of a cluster of three nodes, which heatsink's clients must not see."""

    @classmethod
    def engine(cls):
        return "--engine", cls.enterClassContext(Cluster(masters=3, replicas=0)).url()


class BeforeServer:
    @classmethod
    def engine(cls):
        return "--engine", f"redis://127.0.0.1:{cls.enterClassContext(servers.Redis()).port}"


class SameReplies(unittest.TestCase):
    """Both servers announce the same address; ids, ports and epochs that must differ are replaced."""

    @classmethod
    def setUpClass(cls):
        cls.heatsink = cls.enterClassContext(servers.Heatsink("--sync", "off", *ANNOUNCE))
        cls.redis = cls.enterClassContext(servers.Redis(*ANNOUNCE, "--cluster-announce-bus-port",
                                                        "1", cluster=True))

    def plain(self, reply):
        """The reply without node id, bus port and epoch, and without the lengths that they change."""
        raw = NODE_ID.sub(b"ID", reply.raw)
        raw = re.sub(rb"@\d+ ", b"@BUS ", raw)
        raw = re.sub(rb"(- 0 0 |epoch:)\d+", rb"\1EPOCH", raw)
        raw = re.sub(rb"\r\n(cluster_stats_messages_[a-z]+_(sent|received):\d+\r\n)+", b"\r\n", raw)
        return re.sub(rb"^[$=]\d+", b"LENGTH", raw) if reply.kind in b"$=" else raw

    def compare(self, resp, words):
        replies = []
        for server in (self.heatsink, self.redis):
            connection = server.raw()
            connection.call("HELLO", resp)
            own = connection.call("CLUSTER", "MYID").text
            replies.append(self.plain(connection.call(
                *(own if word == "ME" else word for word in words))))
        self.assertEqual(*replies)

    def test_replies(self):
        asked = """CLUSTER SLOTS|CLUSTER SHARDS|CLUSTER NODES|CLUSTER INFO|CLUSTER MYID|CLUSTER LINKS
            CLUSTER KEYSLOT a|CLUSTER KEYSLOT {a}b|CLUSTER KEYSLOT x{}y|CLUSTER REPLICAS ME
            CLUSTER SLAVES ME|CLUSTER REPLICAS nosuch|CLUSTER SLAVES nosuch
            CLUSTER COUNT-FAILURE-REPORTS ME|CLUSTER COUNT-FAILURE-REPORTS nosuch
            CLUSTER COUNTKEYSINSLOT 0|CLUSTER COUNTKEYSINSLOT 16383|CLUSTER COUNTKEYSINSLOT 16384
            CLUSTER COUNTKEYSINSLOT -1|CLUSTER COUNTKEYSINSLOT x|CLUSTER GETKEYSINSLOT 0 5
            CLUSTER GETKEYSINSLOT 16384 5|CLUSTER GETKEYSINSLOT 0 -1|CLUSTER GETKEYSINSLOT 0 x
            CLUSTER GETKEYSINSLOT x 1|CLUSTER GETKEYSINSLOT 0 0|CLUSTER|CLUSTER NOSUCH
            CLUSTER KEYSLOT|CLUSTER SLOTS x|CLUSTER INFO x|CLUSTER REPLICAS|CLUSTER COUNTKEYSINSLOT
            READONLY|READWRITE|ASKING|READONLY x|ASKING x|SELECT 0|SELECT 1|INFO cluster"""
        for resp in ("2", "3"):
            for words in asked.replace("\n", "|").split("|"):
                with self.subTest(words.strip(), resp=resp):
                    self.compare(resp, words.split())

    def test_mode(self):
        for server in (self.heatsink, self.redis):
            self.assertIn(b"$4\r\nmode\r\n$7\r\ncluster\r\n", server.raw().call("HELLO").raw)
            self.assertIn(b"redis_mode:cluster\r\n", server.raw().call("INFO", "server").raw)
            self.assertIn(b"\r\nyes\r\n", server.raw().call("CONFIG", "GET", "cluster-enabled").raw)

    def test_client_flags(self):
        for server in (self.heatsink, self.redis):
            connection = server.raw()
            for word, flags in (("READONLY", b" flags=r "), ("READWRITE", b" flags=N "),
                                ("READONLY", b" flags=r "), ("RESET", b" flags=N ")):
                connection.call(word)
                self.assertIn(flags, connection.call("CLIENT", "INFO").raw)

    def test_commands_that_change_the_cluster_are_refused(self):
        connection = self.heatsink.raw()
        before = connection.call("CLUSTER", "NODES").raw
        for words in ("ADDSLOTS 1", "ADDSLOTSRANGE 1 2", "BUMPEPOCH", "DELSLOTS 1",
                      "DELSLOTSRANGE 1 2", "FAILOVER", "FLUSHSLOTS", "FORGET x",
                      "MEET 127.0.0.1 1", "REPLICATE x", "RESET", "RESET HARD", "SAVECONFIG",
                      "SET-CONFIG-EPOCH 9", "SETSLOT 1 STABLE"):
            with self.subTest(words):
                reply = connection.call("CLUSTER", *words.split())
                self.assertIn(b"would change the cluster", reply.raw)
                self.assertTrue(reply.is_error)
        self.assertEqual(connection.call("CLUSTER", "NODES").raw, before)


class Announced(unittest.TestCase):
    def place(self, connection):
        """The address in each of three CLUSTER replies; they must agree."""
        node = connection.call("CLUSTER", "SLOTS").items[0].items[2].items
        shard = connection.call("CLUSTER", "SHARDS").items[0].items[3].items[0].items
        shard = {name.text: value.text for name, value in zip(shard[::2], shard[1::2])}
        line = connection.call("CLUSTER", "NODES").text.decode()
        host, port = node[0].text.decode(), node[1].number()
        self.assertEqual((shard[b"ip"], shard[b"endpoint"], int(shard[b"port"])),
                         (host.encode(), host.encode(), port))
        self.assertEqual(line.split()[1], f"{host}:{port}@0")
        return host, port

    def connect(self, host, port):
        connection = object.__new__(servers.Connection)
        connection.socket = socket.create_connection((host, port), timeout=GUARD_S)
        connection.buffer, connection.at = b"", 0
        self.addCleanup(connection.close)
        return connection

    def test_where_the_client_is_connected(self):
        with servers.Heatsink("--bind", "127.0.0.1 127.0.0.2 ::1", "--sync", "off") as server:
            for host in ("127.0.0.1", "127.0.0.2", "::1"):
                self.assertEqual(self.place(self.connect(host, server.port)), (host, server.port))

    def test_any_address(self):
        """Bound to all addresses, heatsink announces the one that the client used."""
        with servers.Heatsink("--bind", "0.0.0.0", "--protected-mode", "no", "--sync",
                              "off") as server:
            self.assertEqual(self.place(self.connect("127.0.0.3", server.port)),
                             ("127.0.0.3", server.port))

    def test_options(self):
        with servers.Heatsink("--sync", "off", "--workers", "2", *ANNOUNCE) as server:
            first, second = server.raw(), server.raw()  # connections on different workers
            for connection in (first, second):
                self.assertEqual(self.place(connection), ("10.1.2.3", 7007))
            first.call("CONFIG", "SET", "cluster-announce-ip", "node.example.org",
                       "cluster-announce-port", "0", "cluster-announce-tls-port", "7008")
            for connection in (first, second):
                connection.call("CONFIG", "GET", "port")  # so that this worker has taken over the new options
                self.assertEqual(self.place(connection), ("node.example.org", server.port))
            reply = first.call("CONFIG", "SET", "cluster-announce-ip", "two words")
            self.assertIn(b"argument 'cluster-announce-ip') - cluster-announce-ip 'two words' is not "
                          b"an address or host name", reply.raw)
            self.assertTrue(first.call("CONFIG", "SET", "cluster-announce-ip", "x" * 254).is_error)
            self.assertTrue(first.call("CONFIG", "SET", "cluster-announce-port", "65536").is_error)
            self.assertEqual(self.place(first), ("node.example.org", server.port))
            first.call("CONFIG", "SET", "cluster-announce-ip", "x" * 253)
            first.call("CONFIG", "GET", "port")
            self.assertEqual(self.place(first), ("x" * 253, server.port))

    def test_number_of_the_node(self):
        """Forty hex digits, the same on all connections until the process ends."""
        with servers.Heatsink("--sync", "off", "--workers", "3") as server:
            numbers = [server.raw().call("CLUSTER", word).text for word in
                       ("MYID", "MYID", "MYID", "MYSHARDID")]
            self.assertEqual(len(set(numbers)), 1)
            self.assertRegex(numbers[0], rb"^[0-9a-f]{40}$")
            server.stop()
            server.start()
            self.assertNotEqual(server.raw().call("CLUSTER", "MYID").text, numbers[0])


class KeysInSlots(OneNodeCase):
    def test_keys(self):
        names = [f"key:{at}" for at in range(200)] + ["{tag}" + str(at) for at in range(300)]
        self.client.mset({name: 1 for name in names})
        slots = {}
        for name in names:
            slots.setdefault(self.ask("CLUSTER", "KEYSLOT", name).number(), set()).add(name)
        self.assertIn(300, {len(keys) for keys in slots.values()})
        connection = self.server.raw()
        for slot, keys in slots.items():
            self.assertEqual(connection.call("CLUSTER", "COUNTKEYSINSLOT", slot).number(), len(keys))
            found = connection.call("CLUSTER", "GETKEYSINSLOT", slot, 1000).items
            self.assertEqual(sorted(item.text.decode() for item in found), sorted(keys))
        empty = next(slot for slot in range(16384) if slot not in slots)
        self.assertEqual(connection.call("CLUSTER", "COUNTKEYSINSLOT", empty).raw, b":0\r\n")
        self.assertEqual(connection.call("CLUSTER", "GETKEYSINSLOT", empty, 9).raw, b"*0\r\n")

    def test_some_keys(self):
        self.client.mset({"{tag}" + str(at): 1 for at in range(20)})
        slot = self.ask("CLUSTER", "KEYSLOT", "tag").number()
        for most in (0, 1, 19, 20, 21):
            found = self.ask("CLUSTER", "GETKEYSINSLOT", slot, most).items
            self.assertEqual(len(found), min(most, 20))
            self.assertEqual(len({item.text for item in found}), len(found))

    def test_reads_after_pipelined_writes(self):
        """A count in a pipeline includes the writes before it, although they may still be in flight."""
        slot = self.ask("CLUSTER", "KEYSLOT", "tag").number()
        pipe = self.client.pipeline(transaction=False)
        for at in range(50):
            pipe.set("{tag}" + str(at), at).execute_command("CLUSTER COUNTKEYSINSLOT", slot)
        self.assertEqual(pipe.execute()[1::2], list(range(1, 51)))

    def test_in_a_transaction(self):
        slot = self.ask("CLUSTER", "KEYSLOT", "tag").number()
        connection = self.server.raw()
        for words in (("MULTI",), ("SET", "{tag}", 1), ("CLUSTER", "COUNTKEYSINSLOT", slot)):
            connection.call(*words)
        self.assertEqual(connection.call("EXEC").raw, b"*2\r\n+OK\r\n:1\r\n")

    def test_commands_of_the_core_in_a_transaction(self):
        connection = self.server.raw()
        for words in (("MULTI",), ("CLUSTER", "KEYSLOT", "a"), ("READONLY",), ("ASKING",)):
            connection.call(*words)
        self.assertEqual(connection.call("EXEC").raw, b"*3\r\n:15495\r\n+OK\r\n+OK\r\n")


class ExpiredKeysInSlots(OneNodeCase):
    """The embedded engine does not count expired keys; Redis counts them until they are read."""

    def test_expired_keys_are_not_there(self):
        self.client.set("{tag}a", 1)
        self.client.set("{tag}b", 1, pxat=1)
        self.client.set("{tag}c", 1, ex=1000)
        slot = self.ask("CLUSTER", "KEYSLOT", "tag").number()
        self.assertEqual(self.ask("CLUSTER", "COUNTKEYSINSLOT", slot).number(), 2)
        self.assertEqual(len(self.ask("CLUSTER", "GETKEYSINSLOT", slot, 9).items), 2)


class KeysInSlotsBeforeCluster(BeforeCluster, KeysInSlots):
    pass


class KeysInSlotsBeforeServer(BeforeServer, OneNodeCase):
    def test_the_server_says_that_it_has_no_slots(self):
        self.assertIn(b"cluster support disabled", self.ask("CLUSTER", "COUNTKEYSINSLOT", 1).raw)


class PythonRedisCluster(OneNodeCase):
    def setUp(self):
        super().setUp()
        self.cluster = RedisCluster(host="127.0.0.1", port=self.server.port, decode_responses=True,
                                    socket_timeout=GUARD_S)
        self.addCleanup(self.cluster.close)

    def test_one_node(self):
        nodes = self.cluster.get_nodes()
        self.assertEqual([node.name for node in nodes], [f"127.0.0.1:{self.server.port}"])
        self.assertEqual(len(self.cluster.nodes_manager.slots_cache), 16384)
        self.assertEqual(self.cluster.cluster_info()["cluster_state"], "ok")
        nodes = self.cluster.cluster_nodes()
        self.assertEqual(nodes[f"127.0.0.1:{self.server.port}"]["slots"], [["0", "16383"]])

    def test_reads_and_writes(self):
        cluster = self.cluster
        for at in range(300):
            self.assertTrue(cluster.set(f"key:{at}", at))
        self.assertEqual([cluster.get(f"key:{at}") for at in range(300)],
                         [str(at) for at in range(300)])
        self.assertEqual(cluster.incr("key:7"), 8)
        self.assertIsNone(cluster.get("nil"))
        self.assertEqual(cluster.dbsize(), 300)
        self.assertEqual(len(cluster.keys()), 300)
        self.assertEqual(len(set(cluster.scan_iter("key:*", count=20))), 300)
        cluster.append("key:1", "x")
        with self.assertLogs("redis.cluster"), self.assertRaises(redis.ResponseError):
            cluster.incr("key:1")

    def test_keys_of_many_slots(self):
        cluster = self.cluster
        values = {f"many:{at}": str(at) for at in range(500)}
        self.assertTrue(all(cluster.mset_nonatomic(values)))
        self.assertEqual(cluster.mget_nonatomic([*values, "nil"]), [*values.values(), None])
        self.assertEqual(cluster.exists(*values), 500)
        self.assertEqual(cluster.touch(*values), 500)
        self.assertEqual(cluster.delete(*list(values)[:100]), 100)
        self.assertEqual(cluster.unlink(*values), 400)
        self.assertEqual(cluster.dbsize(), 0)
        self.assertTrue(cluster.mset({"{t}a": 1, "{t}b": 2}))
        self.assertEqual(cluster.mget("{t}a", "{t}b"), ["1", "2"])

    def test_pipeline(self):
        pipe = self.cluster.pipeline()
        for at in range(400):
            pipe.set(f"p:{at}", at).incr(f"p:{at}").get(f"p:{at}")
        replies = pipe.execute()
        self.assertEqual(replies[1::3], list(range(1, 401)))
        self.assertEqual(replies[2::3], [str(at) for at in range(1, 401)])

    def test_reading_from_replicas(self):
        """The client library sends READONLY on its connections first."""
        cluster = RedisCluster(host="127.0.0.1", port=self.server.port, read_from_replicas=True)
        self.addCleanup(cluster.close)
        cluster.set("a", 1)
        self.assertEqual(cluster.get("a"), b"1")

    def test_announced_elsewhere(self):
        """A client redirected to another address of the same server works there."""
        with servers.Heatsink("--bind", "127.0.0.1 127.0.0.2", "--sync", "off",
                              "--cluster-announce-ip", "127.0.0.2") as server:
            with RedisCluster(host="127.0.0.1", port=server.port) as cluster:
                self.assertEqual(cluster.get_nodes()[0].host, "127.0.0.2")
                cluster.set("a", 1)
                self.assertEqual(server.client().get("a"), b"1")
                self.assertIn(b" laddr=127.0.0.2:", server.raw().call("CLIENT", "LIST").raw)


class PythonRedisClusterBeforeCluster(BeforeCluster, PythonRedisCluster):
    pass


class PythonRedisClusterBeforeServer(BeforeServer, PythonRedisCluster):
    pass


class Tools(OneNodeCase):
    def run_tool(self, *command, status=0):
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                              timeout=GUARD_S, check=False)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr)

    def cluster_tool(self, verb, *args):
        return self.run_tool("redis-cli", "--cluster", verb, f"127.0.0.1:{self.server.port}", *args)

    def test_redis_cli_in_cluster_mode(self):
        cli = ("redis-cli", "-c", "-p", self.server.port)
        self.assertEqual(self.run_tool(*cli, "SET", "foo", "bar"), "OK\n")
        self.assertEqual(self.run_tool(*cli, "GET", "foo"), "bar\n")
        self.assertEqual(self.run_tool(*cli, "CLUSTER", "KEYSLOT", "foo"), "12182\n")

    def test_check_and_info(self):
        self.client.mset({f"key:{at}": at for at in range(5)})
        line = rf"127\.0\.0\.1:{self.server.port} \([0-9a-f]{{8}}\.\.\.\) -> 5 keys \| 16384 slots"
        for verb in ("check", "info"):
            printed = self.cluster_tool(verb)
            self.assertRegex(printed, line)
            self.assertIn("[OK] 5 keys in 1 masters.", printed)
        printed = self.cluster_tool("check")
        self.assertIn("[OK] All nodes agree about slots configuration.", printed)
        self.assertIn("[OK] All 16384 slots covered.", printed)
        self.assertNotRegex(printed, "ERR|WARNING")

    def test_nothing_to_mend(self):
        self.assertIn("[OK] All 16384 slots covered.", self.cluster_tool("fix"))
        self.assertIn("No rebalancing needed", self.cluster_tool("rebalance"))
        self.client.set("a", 1)
        self.assertIn(f"127.0.0.1:{self.server.port}: 1\n", self.cluster_tool("call", "DBSIZE"))

    def test_redis_benchmark(self):
        """redis-benchmark --cluster refuses any cluster of one node, Redis's as well; without --cluster it works."""
        bench = ("redis-benchmark", "-p", self.server.port, "-n", 300, "-q", "-t", "set,get")
        self.assertIn("Invalid cluster: 1 node(s)", self.run_tool(*bench, "--cluster", status=1))
        self.assertRegex(self.run_tool(*bench), r"GET: \d+")

    def test_hiredis(self):
        flags = subprocess.run(["pkg-config", "--cflags", "--libs", "hiredis", "libuv"], check=True,
                               capture_output=True, text=True).stdout.split()
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "client")
            self.run_tool("gcc", os.path.join(ROOT, "tests/clients/hiredis.c"), "-o", program,
                          *flags)
            self.assertEqual(self.run_tool(program, self.server.port), "")


class ToolsBeforeCluster(BeforeCluster, Tools):
    pass


if __name__ == "__main__":
    unittest.main()
