"""Goal: in front of real servers, publish and subscribe look as if one Redis had all clients: heatsink's own and those
that are connected to the servers directly.

Method: heatsink in front of a redis-server and of a Cluster. Subscribers are connected on both sides and on both
workers; messages published through heatsink or directly reach all of them, and the counts are those of a single
server. Then random sequences (test_pubsub.py) run against heatsink and a plain server: the numbers and messages of
each step must agree, although messages arrive later here.
"""
import random
import unittest

import test_pubsub
from checks import wait_for
from cluster import Cluster
from resp import Connection, encode
from servers import GUARD_S, Heatsink, Redis

PATIENT = ("--workers", "2", "--engine-timeout", GUARD_S * 1000)  # no request times out at a server


def parts(replies):
    return sorted(part for reply in replies for part in test_pubsub.flat(reply))


class Engine:
    """Tests for both kinds of engine. A subclass sets `heatsink` and `servers`: functions that connect to each
    server, among them the one to which heatsink sends PUBLISH."""

    def listen(self, connection, *commands):
        for command in commands:
            self.assertIn(b"subscribe\r\n", connection.call(*command.split()).raw)

    def expect(self, connection, *texts):
        for text in texts:
            self.assertEqual([item.text.decode() for item in connection.read().items],
                             text.split())

    def wait_nobody_listens(self):
        wait_for(self, "nobody listens", lambda: test_pubsub.nobody_listens(self.speaker))

    def setUp(self):
        self.here = [self.heatsink.raw() for _ in range(4)]
        self.there = [connect() for connect in self.servers]
        self.speaker = self.heatsink.raw()
        for connection in self.there:
            self.addCleanup(connection.close)
        for connection in self.here + [self.speaker]:
            self.addCleanup(connection.close)
        self.wait_nobody_listens()  # the subscribers of the last test are gone
        self.here[3].call("HELLO", "3")

    def test_all_subscribers_receive_and_are_counted(self):
        one, two, three, four = self.here
        self.listen(one, "SUBSCRIBE a")
        self.listen(two, "SUBSCRIBE a")
        self.listen(three, "PSUBSCRIBE a*")
        self.listen(four, "PSUBSCRIBE a* ?", "SUBSCRIBE a")
        four.read()
        for connection in self.there:
            self.listen(connection, "SUBSCRIBE a")
        direct = self.servers[-1]()
        self.addCleanup(direct.close)
        for speaker, text in ((self.speaker, "1"), (direct, "2")):
            reached = speaker.call("PUBLISH", "a", text).number()
            if speaker is self.speaker:  # six at heatsink, and one at the server that gets PUBLISH
                self.assertEqual(reached, 7)
            self.expect(one, f"message a {text}")
            self.expect(two, f"message a {text}")
            self.expect(three, f"pmessage a* a {text}")
            got = sorted(four.read().raw for _ in range(3))
            self.assertEqual(got, sorted([
                b">3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\n%s\r\n" % text.encode(),
                b">4\r\n$8\r\npmessage\r\n$2\r\na*\r\n$1\r\na\r\n$1\r\n%s\r\n" % text.encode(),
                b">4\r\n$8\r\npmessage\r\n$1\r\n?\r\n$1\r\na\r\n$1\r\n%s\r\n" % text.encode()]))
            for connection in self.there:
                self.expect(connection, f"message a {text}")
        self.assertEqual(self.speaker.call("PUBSUB", "NUMSUB", "a", "b").raw,
                         b"*4\r\n$1\r\na\r\n:%d\r\n$1\r\nb\r\n:0\r\n" % (3 + len(self.there)))
        self.assertEqual(self.speaker.call("PUBSUB", "CHANNELS").raw, b"*1\r\n$1\r\na\r\n")
        self.assertEqual(self.speaker.call("PUBSUB", "NUMPAT").raw, b":2\r\n")
        # heatsink's subscribers leave; the servers keep only their direct ones.
        for connection in self.here:
            connection.close()
        wait_for(self, "the patterns are gone",
                 lambda: self.speaker.call("PUBSUB", "NUMPAT").number() == 0)
        wait_for(self, "one is left",
                 lambda: self.speaker.call("PUBLISH", "a", "3").number() == 1)

    def test_one_subscription_for_many(self):
        for connection in self.here:
            self.listen(connection, "SUBSCRIBE many")
        total = 0
        for connect in self.servers:
            with connect() as direct:
                total += direct.call("PUBSUB", "NUMSUB", "many").items[1].number()
        self.assertEqual(total, 1)
        self.assertEqual(self.speaker.call("PUBLISH", "many", "x").raw, b":4\r\n")

    def test_shard_channels(self):
        self.listen(self.here[0], "SSUBSCRIBE {s}1 {s}2")
        self.here[0].read()
        self.listen(self.here[1], "SSUBSCRIBE {s}1")
        self.assertEqual(self.speaker.call("SPUBLISH", "{s}1", "x").raw, b":2\r\n")
        self.assertEqual(self.speaker.call("PUBLISH", "{s}1", "x").raw, b":0\r\n")
        for connection in self.here[:2]:
            self.expect(connection, "smessage {s}1 x")
        self.assertEqual(self.speaker.call("PUBSUB", "SHARDNUMSUB", "{s}1", "{s}2").raw,
                         b"*4\r\n$4\r\n{s}1\r\n:2\r\n$4\r\n{s}2\r\n:1\r\n")

    def test_transactions(self):
        self.listen(self.here[0], "SUBSCRIBE a")
        self.speaker.send(b"".join(encode(*line.split()) for line in (
            "MULTI", "SET key 1", "PUBLISH a x", "PSUBSCRIBE a*", "GET key", "EXEC")))
        self.assertEqual([self.speaker.read().raw for _ in range(5)],
                         [b"+OK\r\n"] + [b"+QUEUED\r\n"] * 4)
        self.assertEqual(self.speaker.read().raw,
                         b"*4\r\n+OK\r\n:1\r\n*3\r\n$10\r\npsubscribe\r\n$2\r\na*\r\n:1\r\n"
                         b"$1\r\n1\r\n")
        self.expect(self.here[0], "message a x")

    def test_a_write_is_visible_before_its_message(self):
        self.listen(self.here[0], "SUBSCRIBE changes")
        for i in range(200):
            self.speaker.send(encode("SET", f"k{i}", i) + encode("PUBLISH", "changes", f"k{i}"))
            key = self.here[0].read().items[2].text
            self.assertEqual(self.here[3].call("GET", key).text, b"%d" % i)

    def test_random_sequences(self):
        """Reads as many replies and messages as the plain server sends, because messages have no fixed place in
        front of servers. Transactions are left out, because there messages have a fixed place."""
        with Redis() as plain:
            for seed in range(15):
                self.run_one(seed, plain)

    def run_one(self, seed, plain):
        rng = random.Random(seed)
        theirs = test_pubsub.Side(plain.port)
        ours = [Connection(self.heatsink.port, GUARD_S) for _ in theirs.connections]
        for connection in theirs.connections + ours:
            self.addCleanup(connection.close)
        for index, connection in enumerate(ours):
            if rng.random() < 0.5:
                connection.call("HELLO", "3")
                theirs.connections[index].call("HELLO", "3")
        done = []
        for _ in range(test_pubsub.LENGTH):
            index, commands = test_pubsub.draw(rng)
            if commands[0] == ["MULTI"] or any("elsewhere" in words or words[0] == "EXEC"
                                               for words in commands):
                continue
            done.append(f"  {index} {commands}")
            wanted = theirs.step(index, commands)
            data = b"".join(encode(*[word.encode("latin-1") for word in words])
                            for words in commands)
            with self.subTest(seed=seed, steps="\n".join(done)):
                if commands[0][0] == "PUBSUB":
                    self.look(ours[index], data, wanted[index][0])
                    continue
                ours[index].send(data)
                for each, replies in wanted.items():
                    got = [ours[each].read() for _ in replies]
                    self.assertEqual(parts(got), parts(replies), each)
        for connection in theirs.connections + ours:
            connection.close()
        self.wait_nobody_listens()

    def look(self, connection, data, wanted):
        """Repeats PUBSUB until the answer agrees, because servers notice disconnects with a delay."""
        def is_answered():
            connection.send(data)
            return parts([connection.read()]) == parts([wanted])
        wait_for(self, f"the answer is {wanted}", is_answered)


class OneServer(Engine, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        server = cls.enterClassContext(Redis())
        cls.servers = [server.raw]
        cls.heatsink = cls.enterClassContext(
            Heatsink("--engine", f"redis://127.0.0.1:{server.port}", *PATIENT))
        cls.heatsink.wait_engine()


class SeveralServers(Engine, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cluster = cls.enterClassContext(Cluster(masters=3, replicas=0))
        cls.servers = [node.raw for node in cluster.nodes]
        cls.heatsink = cls.enterClassContext(Heatsink("--engine", cluster.url(), *PATIENT))
        cls.heatsink.wait_engine()


if __name__ == "__main__":
    unittest.main()
