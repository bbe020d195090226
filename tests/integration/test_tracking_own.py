"""Goal: in front of servers, a tracking client receives the invalidation for its own write before the reply to its next
command, so that its client-side cache never returns the value from before its own write.

Method: heatsink in front of one redis-server and of a Cluster. Clients cache what they read and drop invalidated
keys, as a client library does. After every own write, they check their cache up to the reply to a PING that was sent
together with the write.
"""

import os
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import resp
import servers
from cluster import Cluster

PUSH = ord(">")
ROUNDS = 200


class Cached:
    """A connection with a client-side cache, valid as of the last reply read."""

    def __init__(self, test, server, *options):
        self.connection = server.raw()
        self.cache, self.flushed = {}, 0
        self.call("HELLO", "3")
        test.assertEqual(self.call("CLIENT", "TRACKING", "ON", *options).raw, b"+OK\r\n")

    def read(self):
        """The next reply; applies invalidations that come before it."""
        while True:
            reply = self.connection.read()
            if reply.kind != PUSH:
                return reply
            self.hear(reply)

    def hear(self, push):
        keys = push.items[1]
        if not keys.items:
            self.cache.clear()
            self.flushed += 1
        for key in keys.items or ():
            self.cache.pop(key.text, None)

    def call(self, *words):
        self.connection.send(resp.encode(*words))
        return self.read()

    def write(self, *words):
        """Sends a command and a PING; returns the command's reply. Messages that belong to the reply come before
        PONG."""
        self.connection.send(resp.encode(*words) + resp.encode("PING"))
        reply = self.read()
        self.read()
        return reply

    def get(self, key):
        if key not in self.cache:
            reply = self.call("GET", key)
            self.cache[key] = None if reply.is_null else reply.text
        return self.cache[key]


class OneServer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.heatsink = cls.enterClassContext(
            servers.Heatsink("--workers", "2", "--engine-timeout", "60000", "--engine", cls.engine()))

    @classmethod
    def engine(cls):
        return f"redis://127.0.0.1:{cls.enterClassContext(servers.Redis()).port}"

    def write_and_read(self, client, name, rounds=ROUNDS):
        stale = 0
        for i in range(rounds):
            client.get(name)
            client.write("SET", name, str(i))
            stale += client.get(name) != b"%d" % i
        return stale

    def test_a_set(self):
        self.assertEqual(self.write_and_read(Cached(self, self.heatsink), b"own:set"), 0)

    def test_by_prefix(self):
        client = Cached(self, self.heatsink, "BCAST", "PREFIX", "own:b")
        self.assertEqual(self.write_and_read(client, b"own:bcast"), 0)

    def test_of_a_transaction_and_a_script(self):
        client = Cached(self, self.heatsink)
        for i in range(ROUNDS // 2):
            client.get(b"own:tx"), client.get(b"own:script")
            for words in (("MULTI",), ("SET", "own:tx", i)):
                client.call(*words)
            client.write("EXEC")
            client.write("EVAL", "return redis.call('SET', KEYS[1], ARGV[1])", 1, "own:script", i)
            self.assertEqual((client.get(b"own:tx"), client.get(b"own:script")), (b"%d" % i,) * 2)

    def test_of_many_keys_at_once(self):
        client = Cached(self, self.heatsink)
        names = [b"own:many:%d" % i for i in range(20)]  # keys of several partitions
        for i in range(ROUNDS // 4):
            for name in names:
                client.get(name)
            client.write("MSET", *[word for name in names for word in (name, str(i))])
            self.assertEqual({client.get(name) for name in names}, {b"%d" % i})

    def test_flush(self):
        client = Cached(self, self.heatsink)
        for i in range(20):
            client.write("SET", "own:flush", i)
            client.get(b"own:flush")
            client.write("FLUSHALL")
            self.assertIsNone(client.get(b"own:flush"))

    def test_writes_to_a_hot_key(self):
        """Writes folded with those of other clients: each client gets the invalidation for its own write."""
        stale, failed = [], []

        def work(number):
            try:
                client = Cached(self, self.heatsink)
                for _ in range(ROUNDS):
                    client.get(b"own:hot")
                    written = client.write("INCR", "own:hot").number()
                    got = int(client.get(b"own:hot"))
                    if got < written:
                        stale.append((number, written, got))
            except Exception as error:
                failed.append(error)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual((stale[:5], failed), ([], []))

    def test_invalidation_precedes_later_replies(self):
        """The message comes between the reply to the write and the replies to later commands."""
        client, done, guard = Cached(self, self.heatsink), 0, time.monotonic() + servers.GUARD_S
        while done < ROUNDS // 4:
            self.assertLess(time.monotonic(), guard, "all keys count as changed again and again")
            client.cache.clear()
            client.get(b"own:piped")
            client.connection.send(resp.encode("SET", "own:piped", done) +
                                   resp.encode("GET", "own:other") * 5)
            got = [client.connection.read() for _ in range(2)]
            if client.flushed or any(reply.kind == PUSH and not reply.items[1].items for reply in got):
                servers.note("a server was silent for so long that all its keys count as changed")
                client = Cached(self, self.heatsink)
                continue
            self.assertEqual(got[0].raw, b"+OK\r\n")
            self.assertTrue(got[1].raw.startswith(b">2\r\n$10\r\ninvalidate"), got)
            for _ in range(5):
                client.read()
            while b"own:piped" in client.cache:  # until the server's own message has come
                client.hear(client.connection.read())
            done += 1

    def test_redirected(self):
        """REDIRECT to a connection in RESP2."""
        listener, data = self.heatsink.raw(), self.heatsink.raw()
        number = listener.call("CLIENT", "ID").number()
        listener.call("SUBSCRIBE", "__redis__:invalidate")
        self.assertEqual(data.call("CLIENT", "TRACKING", "ON", "REDIRECT", number).raw, b"+OK\r\n")
        guard = time.monotonic() + servers.GUARD_S
        while True:
            self.assertLess(time.monotonic(), guard, "all keys count as changed again and again")
            data.call("GET", "own:redirected")
            data.call("SET", "own:redirected", 1)
            told = listener.read().items[2]
            if not told.is_null:
                break
            servers.note("a server was silent for so long that all its keys count as changed")
        self.assertEqual([item.text for item in told.items], [b"own:redirected"])


class InFrontOfACluster(OneServer):
    @classmethod
    def engine(cls):
        return cls.enterClassContext(Cluster(masters=3, replicas=0)).url()


if __name__ == "__main__":
    unittest.main()
