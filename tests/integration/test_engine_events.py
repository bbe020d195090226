"""Goal: events of the servers behind heatsink reach its clients, whatever happens to the connections that carry them:
messages of channels, patterns and shard channels, and invalidations of changed keys.

Method: real servers and a real Cluster; a relay in front of them cuts, refuses and holds back connections. The tests
ask the servers (PUBSUB, CLIENT LIST) for heatsink's subscriptions and go on when these exist: a message published
after that must arrive exactly once.
"""
import datetime
import unittest

from checks import MIB, client_rows, wait_for
from cluster import Cluster, slot_of
from relay import Relay
from servers import Heatsink, Redis

CHANNEL = "{news}1"  # used as a key and as a shard channel of the same slot
TELLS_MAX = 100      # at most this many "everything may have changed" before an invalidation names the key
STEADY = datetime.timedelta(seconds=1.9)  # after two seconds a connection counts as stable, and a loss is logged again


def words(reply):
    return [item.text.decode() for item in reply.items]


class Listening(unittest.TestCase):
    """Helpers shared by the tests below."""

    def heatsink(self, url):
        return self.enterContext(Heatsink("--engine", url, "--workers", "2"))

    def listener(self, heatsink, verb, name):
        """A subscribed client."""
        client = heatsink.raw()
        self.assertEqual(words(client.call(verb, name)), [verb.lower(), name, "1"])
        return client

    def hears(self, client, *expected):
        """Asserts the next message, word by word."""
        self.assertEqual(words(client.read()), list(expected))

    def wait_subscribed(self, connection, channel, count, what="NUMSUB"):
        """Waits until the server counts this many subscribers of the channel."""
        wait_for(self, f"{count} listen to {channel}",
                 lambda: connection.call("PUBSUB", what, channel).items[1].number() == count)

    def tracker(self, heatsink):
        """A client that receives an invalidation for every changed key (BCAST)."""
        client = heatsink.raw()
        client.call("HELLO", "3")
        self.assertEqual(client.call("CLIENT", "TRACKING", "ON", "BCAST").raw, b"+OK\r\n")
        return client

    def changed(self, client):
        """The keys of the next invalidation; None: all keys may have changed."""
        push = client.read()
        self.assertEqual((push.kind, push.items[0].text), (ord(">"), b"invalidate"), push)
        return None if push.items[1].is_null else words(push.items[1])

    def watchers(self, connection):
        """The ids, at the server, of its tracking connections."""
        return {row["id"] for row in client_rows(connection) if "t" in row["flags"]}

    def hear_of(self, client, connection, key, but=()):
        """Waits for a tracking connection that is not in `but`, then changes the key until an invalidation names
        it. Before that, invalidations of everything may arrive."""
        wait_for(self, "it is watched", lambda: self.watchers(connection) - set(but))
        for _ in range(TELLS_MAX):
            wait_for(self, "it is changed",  # a master that has just taken over may refuse writes
                     lambda: connection.call("SET", key, "1").raw == b"+OK\r\n")
            if self.changed(client) == [key]:
                return
        self.fail("never told: " + key)


class OneServer(Listening):
    def setUp(self):
        self.redis = self.enterContext(Redis())
        self.relay = self.enterContext(Relay(self.redis.port))
        self.server = self.heatsink(f"redis://127.0.0.1:{self.relay.port}")
        self.direct = self.redis.raw()

    def test_one_subscription_for_all_clients(self):
        clients = [self.listener(self.server, "SUBSCRIBE", "x") for _ in range(8)]
        patterns = [self.listener(self.server, "PSUBSCRIBE", "x*") for _ in range(8)]
        shards = [self.listener(self.server, "SSUBSCRIBE", "x") for _ in range(8)]
        self.assertEqual(len(client_rows(self.direct, "TYPE", "pubsub")), 1)
        self.assertEqual(self.direct.call("PUBLISH", "x", "hello").number(), 2)
        self.assertEqual(self.direct.call("SPUBLISH", "x", "shard").number(), 1)
        for client in clients:
            self.hears(client, "message", "x", "hello")
        for client in patterns:
            self.hears(client, "pmessage", "x*", "x", "hello")
        for client in shards:
            self.hears(client, "smessage", "x", "shard")
        for client in clients[1:] + shards:
            client.close()
        self.wait_subscribed(self.direct, "x", 0, "SHARDNUMSUB")
        self.wait_subscribed(self.direct, "x", 1)
        self.direct.call("PUBLISH", "x", "still")
        self.hears(clients[0], "message", "x", "still")
        clients[0].call("UNSUBSCRIBE", "x")
        self.wait_subscribed(self.direct, "x", 0)
        again = self.listener(self.server, "SUBSCRIBE", "x")
        self.direct.call("PUBLISH", "x", "again")
        self.hears(again, "message", "x", "again")

    def test_messages_of_any_size_and_their_order(self):
        client = self.listener(self.server, "SUBSCRIBE", "x")
        sizes = [0, 1, 1000, 70_000, 3 * MIB, 10, 20 * MIB, 5]
        for number, size in enumerate(sizes):
            self.direct.call("PUBLISH", "x", chr(ord("a") + number) * size)
        for number, size in enumerate(sizes):
            self.hears(client, "message", "x", chr(ord("a") + number) * size)

    def test_a_lost_connection_is_had_back_with_everything(self):
        clients = [self.listener(self.server, "SUBSCRIBE", f"x{i}") for i in range(500)]
        for _ in range(2):
            self.relay.cut_all()
            for i in (0, 250, 499):
                self.wait_subscribed(self.direct, f"x{i}", 1)
        for i, client in enumerate(clients):
            self.wait_subscribed(self.direct, f"x{i}", 1)
            self.direct.call("PUBLISH", f"x{i}", i)
            self.hears(client, "message", f"x{i}", str(i))
        # A loss is logged again only after the connection was stable for a while.
        told = [datetime.datetime.fromisoformat(line.split("Z ")[0]) for line in self.server.log
                if "pub/sub stream lost" in line]
        self.assertGreater(len(told), 0)
        for before, after in zip(told, told[1:]):
            self.assertGreaterEqual(after - before, STEADY)

    def test_the_server_finds_us_too_slow(self):
        self.direct.call("CONFIG", "SET", "client-output-buffer-limit", "pubsub 1mb 0 0")
        client = self.listener(self.server, "SUBSCRIBE", "x")
        self.relay.pause()
        wait_for(self, "the server ends it",
                 lambda: self.direct.call("PUBLISH", "x", "m" * MIB).number() == 0)
        self.relay.resume()
        self.wait_subscribed(self.direct, "x", 1)
        self.direct.call("PUBLISH", "x", "last")
        while (heard := words(client.read())) != ["message", "x", "last"]:
            self.assertEqual(heard, ["message", "x", "m" * MIB])

    def test_server_unreachable(self):
        self.listener(self.server, "SUBSCRIBE", "x")
        self.relay.refuse()
        self.relay.cut_all()
        self.server.wait_log("pub/sub stream lost")
        refused = self.server.raw().call("SUBSCRIBE", "y")
        self.assertRegex(refused.raw, b"^-CLUSTERDOWN cannot subscribe: connection refused")
        self.relay.listen()
        self.wait_subscribed(self.direct, "x", 1)
        self.wait_subscribed(self.direct, "y", 0)

    def test_forbidden_channels(self):
        self.direct.call("ACL", "SETUSER", "app", "on", ">word", "~*", "+@all", "resetchannels",
                         "&allowed")
        server = self.heatsink(f"redis://app:word@127.0.0.1:{self.redis.port}")
        client = self.listener(server, "SUBSCRIBE", "allowed")
        refused = server.raw().call("SUBSCRIBE", "secret")
        self.assertRegex(refused.raw, b"^-NOPERM")
        self.direct.call("PUBLISH", "allowed", "1")
        self.hears(client, "message", "allowed", "1")

    def test_shutdown_during_a_request(self):
        self.relay.refuse()
        self.relay.cut_all()
        self.server.raw().send(b"SUBSCRIBE x\r\n")
        self.assertEqual(self.server.stop(), 0)


class KeysOfOneServer(Listening):
    def setUp(self):
        self.redis = self.enterContext(Redis())
        self.relay = self.enterContext(Relay(self.redis.port))
        self.server = self.heatsink(f"redis://127.0.0.1:{self.relay.port}")
        self.direct = self.redis.raw()

    def test_every_change_of_anybody(self):
        clients = [self.tracker(self.server) for _ in range(4)]
        self.assertEqual(len(self.watchers(self.direct)), 1)
        for client in clients:
            self.hear_of(client, self.direct, "a")
        for client in clients:
            client.close()
        wait_for(self, "nobody watches", lambda: not self.watchers(self.direct))

    def test_all_keys_at_once(self):
        client = self.tracker(self.server)
        self.direct.call("FLUSHALL")
        self.assertIsNone(self.changed(client))
        self.hear_of(client, self.direct, "a")

    def test_a_lost_connection(self):
        client = self.tracker(self.server)
        old = self.watchers(self.direct)
        self.relay.cut_all()
        self.assertIsNone(self.changed(client))  # the connection was lost
        self.assertIsNone(self.changed(client))  # a new one is up
        self.hear_of(client, self.direct, "a", but=old)

    def test_server_unreachable(self):
        client = self.tracker(self.server)
        old = self.watchers(self.direct)
        self.relay.refuse()
        self.relay.cut_all()
        for _ in range(3):  # repeatedly, as long as the server is away
            self.assertIsNone(self.changed(client))
        self.relay.listen()
        self.hear_of(client, self.direct, "a", but=old)

    def test_a_connection_that_says_nothing(self):
        client = self.tracker(self.server)
        self.relay.pause()
        for _ in range(3):
            self.assertIsNone(self.changed(client))
        self.relay.resume()
        self.hear_of(client, self.direct, "a")

    def test_a_server_that_does_not_tell(self):
        self.direct.call("ACL", "SETUSER", "app", "on", ">word", "~*", "&*", "+@all",
                         "-client|tracking")
        server = self.heatsink(f"redis://app:word@127.0.0.1:{self.redis.port}")
        client = server.raw()
        client.call("HELLO", "3")
        self.assertRegex(client.call("CLIENT", "TRACKING", "ON").raw, b"^-NOPERM")
        self.assertEqual(client.call("SET", "a", "1").raw, b"+OK\r\n")


class ACluster(Listening):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(masters=3, replicas=1, node_timeout_ms=4000))

    def setUp(self):
        self.cluster.reset()
        self.server = self.heatsink(self.cluster.url())

    def publish(self, node, channel, payload):
        node.raw().call("PUBLISH", channel, payload)

    def home(self, channel):
        """The node at which heatsink has subscribed to a channel; None: at no node, or at two."""
        found = [node for node in self.cluster.answering()
                 if node.call("PUBSUB", "NUMSUB", channel).items[1].number()]
        return found[0] if len(found) == 1 else None

    def owner_heard(self, channel):
        """True if heatsink has subscribed to a shard channel at the owner of its slot only."""
        return [node for node in self.cluster.answering()
                if node.call("PUBSUB", "SHARDNUMSUB", channel).items[1].number()] == \
            [self.cluster.master_of(channel)]

    def test_published_anywhere_received_once(self):
        client = self.listener(self.server, "SUBSCRIBE", "x")
        self.assertIs(self.home("x"), self.cluster.master_of(0))
        for i, node in enumerate(self.cluster.nodes):
            self.publish(node, "x", str(i))
            self.hears(client, "message", "x", str(i))

    def test_home_dies_and_comes_back(self):
        client = self.listener(self.server, "SUBSCRIBE", "x")
        other = self.listener(self.server, "PSUBSCRIBE", "x*")
        home = self.home("x")
        home.kill9()
        self.cluster.wait("another is home", lambda: self.home("x"))
        self.cluster.wait("another has taken over", lambda: self.cluster.master_of(0))
        self.cluster.wait("home is where partition 0 is",
                          lambda: self.home("x") is self.cluster.master_of(0))
        home.restart()
        self.cluster.wait_ready()
        for i, node in enumerate(self.cluster.nodes):
            self.publish(node, "x", str(i))
            self.hears(client, "message", "x", str(i))
            self.hears(other, "pmessage", "x*", "x", str(i))

    def test_a_shard_channel_follows_its_slot(self):
        client = self.listener(self.server, "SSUBSCRIBE", CHANNEL)
        slot = slot_of(CHANNEL)
        for number, to in enumerate([node for node in self.cluster.masters()
                                     if node is not self.cluster.master_of(CHANNEL)]):
            self.cluster.move_slots([slot], to)
            self.cluster.wait("heard at the new owner", lambda: self.owner_heard(CHANNEL))
            to.raw().call("SPUBLISH", CHANNEL, str(number))
            self.hears(client, "smessage", CHANNEL, str(number))

    def test_a_shard_channel_follows_a_failover(self):
        client = self.listener(self.server, "SSUBSCRIBE", CHANNEL)
        for harm in (self.cluster.fail_over, lambda node: node.kill9()):
            old = self.cluster.master_of(CHANNEL)
            harm(old)
            self.cluster.wait("heard at another", lambda old=old: self.owner_heard(CHANNEL) and
                              self.cluster.master_of(CHANNEL) is not old)
            self.cluster.master_of(CHANNEL).raw().call("SPUBLISH", CHANNEL, "1")
            self.hears(client, "smessage", CHANNEL, "1")

    def test_keys_of_all_masters(self):
        client = self.tracker(self.server)
        for slot in (0, 8000, 16000):
            key = next(str(i) for i in range(10 ** 6) if slot_of(str(i)) == slot)
            self.hear_of(client, self.cluster.master_of(slot).raw(), key)

    def test_keys_of_a_master_that_takes_over(self):
        client = self.tracker(self.server)
        for key, harm in ((CHANNEL, self.cluster.fail_over),
                          (CHANNEL + "2", lambda node: node.kill9())):
            old = self.cluster.master_of(CHANNEL)
            harm(old)
            while self.changed(client) is not None:
                pass  # skips earlier invalidations
            new = self.cluster.wait("another has it", lambda old=old: self.another(old))
            self.hear_of(client, new.raw(), key)

    def another(self, old):
        new = self.cluster.master_of(CHANNEL)
        return new if new is not old else None

    def test_keys_of_a_slot_that_moves(self):
        client = self.tracker(self.server)
        source = self.cluster.master_of(CHANNEL)
        to = next(node for node in self.cluster.masters() if node is not source)
        self.cluster.move_slots([slot_of(CHANNEL)], to)
        self.assertIsNone(self.changed(client))
        self.hear_of(client, to.raw(), CHANNEL)


if __name__ == "__main__":
    unittest.main()
