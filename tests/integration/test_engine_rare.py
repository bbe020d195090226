"""Goal: rare situations behind heatsink go well: a transaction on a migrating slot, a shard that leaves the cluster and
comes back, a blocked client that disconnects, flushed scripts, a server that freezes under WATCH, requests and replies
longer than one write, connections that a server closes because they are idle.

Method: a real Redis Cluster (tests/lib/cluster.py) or a redis-server, heatsink in front of it, and clients that must
notice nothing of all that.
"""

import os
import signal
import socket
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import resp
import servers
from cluster import Cluster, slot_of


class Rare(unittest.TestCase):
    def heatsink(self, *args):
        server = servers.Heatsink("--workers", "1", *args)
        self.addCleanup(server.close)
        return server

    def connect(self, server):
        connection = resp.Connection(server.port, servers.GUARD_S)
        self.addCleanup(connection.close)
        return connection


class OfClusters(Rare):
    def start(self, **options):
        cluster = Cluster(**options)
        self.addCleanup(cluster.close)
        return cluster, self.heatsink("--engine", cluster.url())

    def test_a_transaction_on_a_slot_that_moves(self):
        cluster, server = self.start(masters=2, replicas=0)
        key = "counter"
        to = next(node for node in cluster.masters() if node is not cluster.master_of(key))
        client = self.connect(server)
        cluster.begin_move([slot_of(key)], to)  # the key does not exist yet, so the old owner answers ASK
        for expected in (1, 3):
            for args in (("MULTI",), ("INCR", key), ("PING",), ("INCR", key)):
                client.call(*args)
            self.assertEqual(client.call("EXEC").raw,
                             f"*3\r\n:{expected}\r\n+PONG\r\n:{expected + 1}\r\n".encode())
        cluster.end_move([slot_of(key)], to)
        self.assertEqual(client.call("GET", key).text, b"4")

    def test_a_shard_that_leaves_and_comes_back(self):
        cluster, server = self.start(masters=3, replicas=0)
        leaving, stays = cluster.nodes[1], cluster.nodes[2]
        client = self.connect(server)
        names = {b"key:%d" % i for i in range(100)}
        for name in names:
            self.assertEqual(client.call("SET", name, "1").raw, b"+OK\r\n")
        cluster.move_slots([slot for slot, node in enumerate(cluster.owners()) if node is leaving],
                           to=stays, a_time=1000)
        server.wait_log("partition 1 is removed")
        self.assertEqual(client.call("DBSIZE").number(), len(names))
        self.assertEqual({item.text for item in client.call("KEYS", "*").items}, names)
        self.assertIn(client.call("RANDOMKEY").text, names)
        found, cursor = set(), b"0"
        while True:
            reply = client.call("SCAN", cursor)
            cursor = reply.items[0].text
            found.update(item.text for item in reply.items[1].items)
            if cursor == b"0":
                break
        self.assertEqual(found, names)
        self.assertEqual(client.call("FLUSHALL").raw, b"+OK\r\n")
        self.assertEqual(client.call("DBSIZE").number(), 0)
        # The shard comes back: its first slot migrates to a node that owns no slot. No slot map names this node,
        # and this heatsink has no connection to it.
        another = self.connect(self.heatsink("--engine", cluster.url(stays)))
        key = b"key:0"
        cluster.begin_move([slot_of(key)], to=leaving)
        for value in (b"1", b"2"):
            self.assertEqual(another.call("INCR", key).raw, b":" + value + b"\r\n")
        self.assertEqual(leaving.call_all([("ASKING",), ("GET", key)])[1].text, b"2")
        cluster.end_move([slot_of(key)], to=leaving)
        self.assertEqual(client.call("GET", key).text, b"2")


class OfOneServer(Rare):
    def start(self, *args):
        redis = servers.Redis()
        self.addCleanup(redis.close)
        return redis, self.heatsink("--engine", f"redis://127.0.0.1:{redis.port}", *args)

    def test_watch_does_not_wait_for_ever(self):
        redis, server = self.start("--engine-timeout", "5000")
        client = self.connect(server)
        self.assertEqual(client.call("WATCH", "a").raw, b"+OK\r\n")
        client.call("MULTI")
        client.call("INCR", "a")
        os.kill(redis.pid, signal.SIGSTOP)
        self.addCleanup(os.kill, redis.pid, signal.SIGCONT)
        self.assertTrue(client.call("EXEC").raw.startswith(b"-UNKNOWN"))
        self.assertTrue(client.call("WATCH", "a").raw.startswith(b"-CLUSTERDOWN"))

    def test_shutdown_under_watch(self):
        redis, server = self.start("--engine-timeout", "5000", "--shutdown-timeout", "1")
        watching, client, blocked = (self.connect(server) for _ in range(3))
        self.assertEqual(watching.call("WATCH", "a").raw, b"+OK\r\n")
        os.kill(redis.pid, signal.SIGSTOP)
        self.addCleanup(os.kill, redis.pid, signal.SIGCONT)
        client.send(resp.encode("WATCH", "b"))
        blocked.send(resp.encode("BLPOP", "c", "0"))
        watching.close()
        server.signal(signal.SIGTERM)
        self.assertEqual(server.wait(), 0)

    def test_scripts_that_were_flushed_are_not_there(self):
        redis, server = self.start()
        client = self.connect(server)
        digest = client.call("SCRIPT", "LOAD", "return 7").text
        for _ in range(2):
            redis.client().script_flush()  # flushed directly at the server: heatsink loads the script again
            self.assertEqual(client.call("EVALSHA", digest, "0").raw, b":7\r\n")
            self.assertEqual(client.call("SCRIPT", "FLUSH").raw, b"+OK\r\n")
            self.assertTrue(client.call("EVALSHA", digest, "0").raw.startswith(b"-NOSCRIPT"))
            self.assertEqual(client.call("EVAL", "return 7", "0").raw, b":7\r\n")

    def wait_blocked(self, wanted, *clients):
        give_up = time.monotonic() + servers.GUARD_S
        line = b"blocked_clients:%d\r\n" % wanted
        while any(line not in client.call("INFO", "clients").text for client in clients):
            self.assertLess(time.monotonic(), give_up, "blocked_clients does not change")

    def test_a_blocked_client_that_leaves_takes_nothing(self):
        redis, server = self.start()
        client, direct = self.connect(server), self.connect(redis)
        for leave in ("close", "shutdown", "pipeline"):
            waiting = self.connect(server)
            if leave == "pipeline":  # the client disconnects before its BLPOP starts
                waiting.send(resp.encode("GET", "a") + resp.encode("BLPOP", "list", "0"))
                waiting.socket.shutdown(socket.SHUT_WR)
                self.assertEqual(waiting.read().raw, b"$-1\r\n")
            else:
                waiting.send(resp.encode("BLPOP", "list", "0"))
                self.wait_blocked(1, client, direct)
            if leave == "close":
                waiting.close()
            elif leave == "shutdown":
                waiting.socket.shutdown(socket.SHUT_WR)
            self.wait_blocked(0, client, direct)
            self.assertEqual(client.call("RPUSH", "list", "x").raw, b":1\r\n")
            self.assertEqual(client.call("LPOP", "list").text, b"x", leave)

    def test_long_requests_and_replies_pass_in_pieces(self):
        _, server = self.start("--engine-timeout", "60000")
        client = self.connect(server)
        value = bytes(range(256)) * (1 << 20)  # 256 MiB
        self.assertEqual(client.call("SET", "long", value).raw, b"+OK\r\n")
        self.assertTrue(client.call("GET", "long").text == value)
        replies = client.call_all([("SET", "long", value), ("GET", "none"), ("STRLEN", "long")])
        self.assertEqual([reply.raw for reply in replies],
                         [b"+OK\r\n", b"$-1\r\n", b":%d\r\n" % len(value)])

    def test_connections_closed_for_idleness(self):
        redis, server = self.start("--engine-timeout", "3000")
        client = self.connect(server)
        self.assertEqual(client.call("SET", "a", "1").raw, b"+OK\r\n")
        for _ in range(3):
            redis.client().execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            # Longer than --engine-timeout.
            self.assertEqual(client.call("DEBUG", "SLEEP", "3.2").raw, b"+OK\r\n")
            self.assertEqual(client.call("GET", "a").text, b"1")


if __name__ == "__main__":
    unittest.main()
