"""Goal: replies come in order, a connection sees its own writes, and concurrent increments are counted once each, on
pipelined connections over several keys, partitions and workers.

Method: every connection sends deep pipelines whose replies are known in advance, or must add up over all connections.
"""

import os
import random
import sys
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import resp
import servers

CONNECTIONS = 8


class Order(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = servers.Heatsink("--workers", "2", "--partitions", "4", "--sync", "off")
        cls.addClassCleanup(cls.server.close)

    def setUp(self):
        connection = self.connect()
        connection.call("FLUSHALL")

    def connect(self):
        connection = resp.Connection(self.server.port)
        self.addCleanup(connection.close)
        return connection

    def run_all(self, body):
        """Runs body(index, connection) in a thread per connection; an exception in any fails the test."""
        failures = []

        def run(index, connection):
            try:
                body(index, connection)
            except BaseException as error:  # any exception is passed to the test
                failures.append(error)

        threads = [threading.Thread(target=run, args=(index, self.connect()))
                   for index in range(CONNECTIONS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]

    def test_own_writes(self):
        """SET k v; GET k for many keys, deeply pipelined: every GET returns the value set just before."""
        rounds, depth = 20, 60

        def body(index, connection):
            rng = random.Random(index)
            for turn in range(rounds):
                sent, expected = [], []
                for at in range(depth):
                    key = "own:%d:%d" % (index, rng.randrange(7))
                    value = b"%d-%d-%d" % (index, turn, at)
                    sent.append(resp.encode("SET", key, value) + resp.encode("GET", key))
                    expected += [b"+OK\r\n", b"$%d\r\n%s\r\n" % (len(value), value)]
                connection.send(b"".join(sent))
                self.assertEqual([connection.read().raw for _ in expected], expected)

        self.run_all(body)

    def test_order_over_all_kinds_of_commands(self):
        """Fast replies never overtake slow ones: numbered ECHOs stand between writes, reads, commands for all
        partitions, transactions and errors."""
        def body(index, connection):
            rng = random.Random(100 + index)
            kinds = [
                ["SET", "k%d", "v"], ["GET", "k%d"], ["MSET", "a%d", "1", "b%d", "2"], ["DBSIZE"],
                ["INCR", "n%d"],
                ["MGET", "a%d", "b%d", "c"], ["KEYS", "nosuch*"], ["NOSUCH"], ["DEL", "a%d", "k%d"],
                ["CLIENT", "LIST"],
                ["INFO", "server"], ["MULTI"], ["EXEC"], ["SCAN", "0"], ["CONFIG", "GET", "port"],
                ["DEBUG", "SLEEP", "0"],
            ]
            for turn in range(6):
                count, data = 80, []
                for at in range(count):
                    argv = [word.replace("%d", str(rng.randrange(5))) for word in rng.choice(kinds)]
                    data.append(resp.encode(*argv) + resp.encode("ECHO", "%d" % at))
                connection.send(b"".join(data) + resp.encode("DISCARD") + resp.encode("ECHO",
                                                                                      "end"))
                for at in range(count):
                    connection.read()
                    echo = connection.read()
                    self.assertIn(echo.raw, (b"$%d\r\n%d\r\n" % (len(str(at)), at), b"+QUEUED\r\n"))
                connection.read()
                self.assertEqual(connection.read().raw, b"$3\r\nend\r\n", turn)

        self.run_all(body)

    def test_increments_of_one_key(self):
        """All connections increment one key: replies are distinct, grow on each connection, and none is lost."""
        each = 1500
        replies = [[] for _ in range(CONNECTIONS)]

        def body(index, connection):
            for _ in range(0, each, 50):
                connection.send(resp.encode("INCR", "hits") * 50)
                replies[index] += [connection.read().number() for _ in range(50)]

        self.run_all(body)
        for seen in replies:
            self.assertEqual(seen, sorted(seen))
        together = sorted(number for seen in replies for number in seen)
        self.assertEqual(together, list(range(1, CONNECTIONS * each + 1)))
        self.assertEqual(self.connect().call("GET", "hits").text, b"%d" % (CONNECTIONS * each))

    def test_increments_by_many_amounts(self):
        """INCRBY, DECRBY and reads of a few keys: each key equals the sum of the acknowledged amounts."""
        keys, sums, lock = ["sum:%d" % at for at in range(5)], {}, threading.Lock()

        def body(index, connection):
            rng = random.Random(200 + index)
            own = {key: 0 for key in keys}
            for _ in range(15):
                data = []
                for _ in range(40):
                    key, amount = rng.choice(keys), rng.randrange(-50, 50)
                    own[key] += amount
                    command = "INCRBY" if rng.random() < 0.5 else "DECRBY"
                    data.append(resp.encode(command, key, amount if command == "INCRBY"
                                            else -amount) +
                                resp.encode("GET", key))
                connection.send(b"".join(data))
                for _ in range(40):
                    self.assertEqual(connection.read().kind, ord(":"))
                    self.assertEqual(connection.read().kind, ord("$"))
            with lock:
                for key in keys:
                    sums[key] = sums.get(key, 0) + own[key]

        self.run_all(body)
        connection = self.connect()
        self.assertEqual({key: int(connection.call("GET", key).text) for key in keys}, sums)

    def test_reads_never_go_back(self):
        """While one connection increments, no reader sees the number fall or a half-applied MSET."""
        rounds = 1500
        stop = threading.Event()

        def body(index, connection):
            if index == 0:
                try:
                    for at in range(rounds):
                        connection.call("MSET", "{m}a", at, "{m}b", at)
                finally:
                    stop.set()
                return
            last = -1
            while not stop.is_set():
                connection.send(resp.encode("GET", "{m}a") + resp.encode("MGET", "{m}a", "{m}b"))
                first = int(connection.read().text or -1)
                pair = [int(item.text or -1) for item in connection.read().items]
                self.assertEqual(pair[0], pair[1])
                self.assertTrue(last <= first <= pair[0], (last, first, pair))
                last = pair[0]

        self.run_all(body)


if __name__ == "__main__":
    unittest.main()
