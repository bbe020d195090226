"""Goal: a client of heatsink that subscribes to keyspace notifications receives those of every master of a Cluster,
each once, also those of masters that appear later; other messages are not multiplied.

Method: heatsink in front of a Cluster. Notifications are switched on through heatsink, keys of every master are
written, and each subscriber must receive exactly these events, in any order. Then a master is replaced by its replica
and comes back.
"""
import collections
import unittest

from cluster import Cluster
from resp import encode
from servers import Heatsink

EVENT = b"__keyevent@0__:set"


class KeyEvents(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(masters=3, replicas=1, node_timeout_ms=4000))

    def setUp(self):
        self.cluster.reset()
        for node in self.cluster.nodes:
            node.call("CONFIG", "SET", "notify-keyspace-events", "")
        heatsink = Heatsink("--engine", self.cluster.url(), "--workers", "2",
                            "--engine-timeout", "60000")
        self.addCleanup(heatsink.close)
        self.heatsink, self.client, self.number = heatsink, heatsink.raw(), 0
        # CONFIG SET fails if a node does not answer for two seconds.
        self.cluster.wait("every node takes the option", lambda: self.client.call(
            "CONFIG", "SET", "notify-keyspace-events", "KEA").raw == b"+OK\r\n")

    def listen(self, *words):
        listener = self.heatsink.raw()
        self.assertIn(b"subscribe\r\n", listener.call(*words).raw)
        return listener

    def keys(self):
        """A new key for every master."""
        self.number += 1
        keys = {}
        for i in range(1000):
            key = "key:%d:%d" % (self.number, i)
            keys.setdefault(self.cluster.master_of(key), key)
            if len(keys) == len(self.cluster.masters()):
                break
        return sorted(keys.values())

    def write(self):
        """Writes a new key of every master; returns the keys."""
        keys = self.keys()
        for key in keys:
            self.assertEqual(self.client.call("SET", key, "x").raw, b"+OK\r\n")
        return [key.encode() for key in keys]

    def heard(self, listener, count):
        return sorted(listener.read().items[-1].text for _ in range(count))

    def heard_until(self, listener, channel, last):
        """Payloads of messages on this channel, up to and including `last`."""
        payloads = []
        while True:
            items = [item.text for item in listener.read().items]
            if items[-2] == channel:
                payloads.append(items[-1])
            if items[-1] == last:
                return sorted(payloads)

    def test_events_of_all_masters_arrive_once(self):
        channel = self.listen("SUBSCRIBE", EVENT)
        pattern = self.listen("PSUBSCRIBE", "__key*__:*")
        everything = self.listen("PSUBSCRIBE", "*")
        keys = self.write()
        self.assertEqual(len(keys), 3)
        self.assertEqual(self.heard(channel, 3), keys)
        self.assertEqual(self.heard(pattern, 6), sorted(keys + [b"set"] * 3))
        self.assertEqual(self.heard(everything, 6), sorted(keys + [b"set"] * 3))
        for text in ("one", "last"):  # every node forwards a message, but a subscriber gets it once
            self.client.call("PUBLISH", "news", text)
        self.assertEqual(self.heard_until(everything, b"news", b"last"), [b"last", b"one"])
        self.assertEqual(self.client.call("PUBSUB", "NUMSUB", EVENT).items[1].number(), 1)
        self.assertEqual(self.client.call("PUBSUB", "NUMPAT").number(), 2)

    def test_one_key(self):
        keys = self.keys()
        listeners = [self.listen("SUBSCRIBE", "__keyspace@0__:" + key) for key in keys]
        for key, listener in zip(keys, listeners):
            self.client.call("SET", key, "1")
            self.client.call("DEL", key)
            self.assertEqual([listener.read().items[-1].text for _ in range(2)], [b"set", b"del"])

    def drain(self, listener):
        """Events received so far: the reply to PING comes after them."""
        listener.send(encode("PING"))
        texts = []
        while True:
            items = [item.text for item in listener.read().items]
            if items[0] == b"pong":
                return texts
            texts.append(items[-1])

    def until_all_are_heard(self, listener):
        """Writes until events of all masters arrive, each once: subscriptions follow the topology with some
        delay."""
        rounds, heard = [], collections.Counter()

        def whole_round():
            rounds.append(self.write())
            heard.update(self.drain(listener))
            return any(all(heard[key] for key in keys) for keys in rounds)
        self.cluster.wait("events of all masters are heard", whole_round)
        self.assertEqual(set(heard.values()), {1})

    def test_after_a_failover(self):
        listener = self.listen("SUBSCRIBE", EVENT)
        keys = self.write()
        self.assertEqual(self.heard(listener, 3), keys)
        old = self.cluster.masters()[1]
        replica = self.cluster.replicas_of(old)[0]

        def has_it(node):
            found = node.call("CONFIG", "GET", "notify-keyspace-events")
            return found.items[1].text == b"AKE"
        self.cluster.wait("the replica has the option", lambda: has_it(replica))
        old.kill9()
        self.cluster.fail_over(replica, "FORCE")
        self.until_all_are_heard(listener)
        old.restart()
        self.cluster.wait("so has the one that was master", lambda: has_it(old))
        self.cluster.wait_ready()  # until the old master knows that it is a replica
        self.cluster.fail_over(old)
        self.until_all_are_heard(listener)


if __name__ == "__main__":
    unittest.main()
