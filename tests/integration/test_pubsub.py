"""Goal: publish and subscribe answer as Redis 7.0 does, over many connections and workers.

Method: random sequences of subscribing, unsubscribing and publishing on several connections, in either protocol
version, run step by step against heatsink and a redis-server started here (in cluster mode, so that the rules for
slots agree). A step's replies and the messages that it causes are compared byte for byte, connection by connection.
Where Redis leaves the order open (channels that UNSUBSCRIBE without names goes through, the order of patterns, lists
of PUBSUB), the order of words and errors is compared, and the other parts are sorted first.

Each step ends with a numbered PING on every connection, first on the connection that acts: PUBLISH is answered when
all workers have delivered. Everything before the reply to this PING belongs to the step.

SEED=n repeats one sequence, SEQUENCES=n sets how many sequences run.
"""
import os
import random
import threading
import unittest

import redis
from checks import wait_for
from resp import Closed, Connection, encode
from servers import GUARD_S, Heatsink, Redis

SEQUENCES = int(os.environ.get("SEQUENCES", "25"))
LENGTH = 60
CONNECTIONS = 5

CHANNELS = ["a", "b", "ab", "news.1", "news.2", "", "{t}1", "{t}2", "\xff", "long" * 50]
PATTERNS = ["*", "a*", "?", "news.*", "[ab]", "nobody", "*1", "\\a", ""]
SHARDS = ["{t}1", "{t}2", "{t}3"]
PAYLOADS = ["x", "", "hello world", "y" * 3000, "\r\n"]


def draw_command(rng):
    """A random command of a subscriber."""
    few = lambda pool: [rng.choice(pool) for _ in range(rng.choice([1, 1, 1, 2, 3]))]
    return rng.choice([
        lambda: ["SUBSCRIBE", *few(CHANNELS)],
        lambda: ["SUBSCRIBE", *few(CHANNELS)],
        lambda: ["PSUBSCRIBE", *few(PATTERNS)],
        lambda: ["PSUBSCRIBE", *few(PATTERNS)],
        lambda: ["SSUBSCRIBE", *few(SHARDS)],
        lambda: ["SSUBSCRIBE", *few(SHARDS + ["elsewhere"])],
        lambda: ["UNSUBSCRIBE", *few(CHANNELS)],
        lambda: ["PUNSUBSCRIBE", *few(PATTERNS)],
        lambda: ["SUNSUBSCRIBE", *few(SHARDS)],
        lambda: [rng.choice(["UNSUBSCRIBE", "PUNSUBSCRIBE", "SUNSUBSCRIBE"])],
        lambda: ["PING"],
        lambda: ["PING", "x"],
        lambda: ["GET", "{t}nothing"],
        lambda: ["SET", "{t}key", "x"],
        lambda: ["PUBLISH", rng.choice(CHANNELS), rng.choice(PAYLOADS)],
        lambda: ["SPUBLISH", rng.choice(SHARDS), rng.choice(PAYLOADS)],
        lambda: ["SUBSCRIBE"],
        lambda: ["EXEC"],
    ])()


def draw_look(rng):
    """A random command of a client that does not subscribe."""
    few = lambda pool: [rng.choice(pool) for _ in range(rng.choice([1, 1, 1, 2, 3]))]
    some = lambda pool: rng.choice([[], [rng.choice(pool)]])
    return rng.choice([
        lambda: ["PUBLISH", rng.choice(CHANNELS), rng.choice(PAYLOADS)],
        lambda: ["PUBLISH", rng.choice(CHANNELS), rng.choice(PAYLOADS)],
        lambda: ["PUBLISH", rng.choice(CHANNELS), rng.choice(PAYLOADS)],
        lambda: ["SPUBLISH", rng.choice(SHARDS + CHANNELS), rng.choice(PAYLOADS)],
        lambda: ["PUBSUB", "CHANNELS", *some(PATTERNS)],
        lambda: ["PUBSUB", "NUMSUB", *few(CHANNELS)],
        lambda: ["PUBSUB", "NUMPAT"],
        lambda: ["PUBSUB", "SHARDCHANNELS", *some(PATTERNS)],
        lambda: ["PUBSUB", "SHARDNUMSUB", *few(SHARDS)],
    ])()


def draw(rng):
    """A step: a connection and the commands it sends together. Connection 0 never subscribes."""
    if rng.random() < 0.4:
        return 0, [draw_look(rng)]
    index = rng.randrange(1, CONNECTIONS)
    chance = rng.random()
    if chance < 0.15:
        inside = [draw_command(rng) for _ in range(rng.choice([1, 2, 4]))]
        return index, [["MULTI"], *[words for words in inside if words != ["EXEC"]], ["EXEC"]]
    if chance < 0.2:
        return index, [["RESET"]]
    if chance < 0.25:
        return index, [["HELLO", rng.choice("23")]]
    return index, [draw_command(rng) for _ in range(rng.choice([1, 1, 1, 3]))]


def flat(reply):
    """A reply as a list of its elements. In EXEC, Redis sends a confirmation for each channel, more than the array
    header announces, so only the elements can be compared."""
    if reply.items is None:
        return [reply.raw]
    if b"$6\r\nserver\r\n$5\r\nredis\r\n" in reply.raw:
        return [reply.raw[:4], b"what HELLO answers"]
    head = reply.raw.split(b"\r\n", 1)[0]
    return [head] + [raw for item in reply.items for raw in flat(item)]


def nobody_listens(connection):
    """True if the server has no subscriber; it notices closed connections with a delay."""
    return [connection.call("PUBSUB", what).raw for what in ("CHANNELS", "SHARDCHANNELS", "NUMPAT")] \
        == [b"*0\r\n", b"*0\r\n", b":0\r\n"]


class Side:
    """The connections to one of the two servers."""

    def __init__(self, port):
        self.connections = [Connection(port, GUARD_S) for _ in range(CONNECTIONS)]
        self.number = 0

    def close(self):
        for connection in self.connections:
            connection.close()

    def until_mark(self, index, data=b""):
        """Sends the data and a numbered PING; returns all replies before the reply to this PING."""
        self.number += 1
        mark = b"mark%d" % self.number
        bulk = b"$%d\r\n%s\r\n" % (len(mark), mark)
        self.connections[index].send(data + encode("PING", mark))
        got = []
        while True:
            reply = self.connections[index].read()
            if reply.raw in (bulk, b"*2\r\n$4\r\npong\r\n" + bulk):
                return got
            got.append(reply)

    def step(self, index, commands):
        data = b"".join(encode(*[word.encode("latin-1") for word in words]) for words in commands)
        first = self.until_mark(index, data)
        return {index: first, **{other: self.until_mark(other) for other in range(CONNECTIONS)
                                 if other != index}}


class RandomSequences(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.redis = cls.enterClassContext(Redis(cluster=True))
        cls.heatsink = cls.enterClassContext(
            Heatsink("--sync", "off", "--workers", "2", "--partitions", "4"))

    def comparable(self, commands, replies):
        """The replies of one connection in the form that must be equal on both servers."""
        names = {words[0] for words in commands}
        parts = [part for reply in replies for part in flat(reply)]
        bare = any(len(words) == 1 and words[0].endswith("UNSUBSCRIBE") for words in commands)
        if "PUBLISH" in names or "PUBSUB" in names or bare:
            # The order of patterns, lists and remaining subscriptions is open; that of the other words is not.
            kinds = [part for part in parts if part[:1] not in b"$*~>:"]
            words = [part for part in parts if part.split(b"\r\n")[1:2] in WORDS]
            return kinds, words, sorted(parts)
        return parts

    def wait_nobody_listens(self):
        """Waits until both servers have noticed that the subscribers of the last sequence are gone."""
        for server in (self.heatsink, self.redis):
            with Connection(server.port, GUARD_S) as asks:
                wait_for(self, "nobody listens", lambda asks=asks: nobody_listens(asks))

    def run_one(self, seed):
        rng = random.Random(seed)
        self.wait_nobody_listens()
        sides = [Side(self.heatsink.port), Side(self.redis.port)]
        done = []
        try:
            for index in range(CONNECTIONS):
                if rng.random() < 0.5:
                    for side in sides:
                        side.connections[index].call("HELLO", "3")
            for _ in range(LENGTH):
                index, commands = draw(rng)
                done.append(f"  {index} {commands}")
                ours, theirs = (side.step(index, commands) for side in sides)
                for each in range(CONNECTIONS):
                    self.assertEqual(self.comparable(commands, ours[each]),
                                     self.comparable(commands, theirs[each]),
                                     f"connection {each}")
        except (AssertionError, TimeoutError) as error:
            raise AssertionError("SEED=%d\n%s\n%s" % (seed, "\n".join(done), error)) from None
        finally:
            for side in sides:
                side.close()

    def test_sequences(self):
        seeds = [int(os.environ["SEED"])] if "SEED" in os.environ else range(SEQUENCES)
        for seed in seeds:
            self.run_one(seed)


WORDS = [[word] for word in (b"message", b"pmessage", b"smessage", b"subscribe", b"psubscribe",
                             b"ssubscribe", b"unsubscribe", b"punsubscribe", b"sunsubscribe")]


class ManyListeners(unittest.TestCase):
    LISTENERS = 200
    MESSAGES = 100

    def test_every_message_reaches_every_listener_in_order(self):
        """Three clients publish their own numbers at the same time: every subscriber gets all, each publisher's in
        order, and PUBLISH returns the number of receivers."""
        with Heatsink("--sync", "off", "--workers", "2") as server:
            listeners = [server.raw() for _ in range(self.LISTENERS)]
            for number, listener in enumerate(listeners):
                if number % 2:
                    listener.call("HELLO", "3")
                verb = ("SUBSCRIBE", "PSUBSCRIBE")[number // 2 % 2]
                listener.call(verb, "news" if verb == "SUBSCRIBE" else "new?")
            counts = []

            def publish(who):
                connection = server.raw()
                connection.send(b"".join(encode("PUBLISH", "news", f"{who}:{i}")
                                         for i in range(self.MESSAGES)))
                counts.extend(connection.read().number() for _ in range(self.MESSAGES))
            speakers = [threading.Thread(target=publish, args=(who,)) for who in "xyz"]
            for speaker in speakers:
                speaker.start()
            for speaker in speakers:
                speaker.join()
            self.assertEqual(counts, [self.LISTENERS] * (3 * self.MESSAGES))
            for listener in listeners:
                got = [listener.read().items[-1].text.decode() for _ in range(3 * self.MESSAGES)]
                for who in "xyz":
                    self.assertEqual([text for text in got if text[0] == who],
                                     [f"{who}:{i}" for i in range(self.MESSAGES)])
            info = server.client().info("stats")
            self.assertEqual(info["pubsub_subscriptions"], self.LISTENERS)
            self.assertEqual(info["pubsub_messages"], self.LISTENERS * 3 * self.MESSAGES)

    def test_listeners_that_go_are_gone(self):
        with Heatsink("--sync", "off", "--workers", "2") as server:
            listeners = [server.raw() for _ in range(20)]
            for listener in listeners:
                listener.call("SUBSCRIBE", "a")
            asks = server.raw()
            self.assertEqual(asks.call("PUBLISH", "a", "x").number(), 20)
            for listener in listeners[:10]:
                listener.close()
            while asks.call("PUBSUB", "NUMSUB", "a").items[1].number() != 10:
                pass  # the server notices closed connections with a delay
            self.assertEqual(asks.call("PUBLISH", "a", "x").number(), 10)
            self.assertEqual(asks.call("CLIENT", "KILL", "TYPE", "pubsub").number(), 10)
            while asks.call("PUBSUB", "CHANNELS").items:
                pass
            self.assertEqual(server.stop(), 0)


class SlowListener(unittest.TestCase):
    def test_only_the_slow_subscriber_is_cut_off(self):
        """One subscriber does not read. It is cut off and counted when its unsent bytes reach output-limit; another
        subscriber misses nothing."""
        with Heatsink("--sync", "off", "--workers", "2", "--output-limit", "1mb") as server:
            deaf, well, speaker = server.raw(), server.raw(), server.raw()
            for listener in (deaf, well):
                listener.call("SUBSCRIBE", "a")
            payload, sent = "x" * 100000, 0
            while speaker.call("PUBLISH", "a", payload).number() == 2:
                sent += 1
                self.assertEqual(well.read().items[2].text, payload.encode())
                self.assertLess(sent, 500)
            self.assertEqual(well.read().items[2].text, payload.encode())
            with self.assertRaises((Closed, ConnectionResetError)):
                for _ in range(sent + 1):
                    deaf.read()
            self.assertEqual(speaker.call("PUBLISH", "a", "last").number(), 1)
            self.assertEqual(well.read().items[2].text, b"last")
            self.assertEqual(server.client().info("stats")["output_limit_disconnections"], 1)


class Causality(unittest.TestCase):
    def test_a_write_is_visible_before_its_message(self):
        """SET and PUBLISH in one pipeline, and in one transaction, with sync always: a subscriber that gets the
        message must read the new value."""
        with Heatsink("--workers", "2") as server:
            for together in (False, True):
                listener, reader, writer = server.raw(), server.raw(), server.raw()
                listener.call("SUBSCRIBE", "changes")
                for i in range(100):
                    commands = [("SET", f"k{i}", i), ("PUBLISH", "changes", f"k{i}")]
                    if together:
                        commands = [("MULTI",), *reversed(commands), ("EXEC",)]
                    writer.send(b"".join(encode(*command) for command in commands))
                    key = listener.read().items[2].text
                    self.assertEqual(reader.call("GET", key).text, b"%d" % i)
                listener.close()


class Library(unittest.TestCase):
    def test_python_redis(self):
        """redis-py's subscriber, for channels and patterns, with its health check."""
        with Heatsink("--sync", "off") as server:
            client = server.client(decode_responses=True)
            listener = client.pubsub(ignore_subscribe_messages=True)
            listener.subscribe("a", "b")
            listener.psubscribe("n*")
            while client.execute_command("PUBSUB", "NUMPAT") != 1:
                pass
            self.assertEqual(client.publish("a", "1"), 1)
            self.assertEqual(client.publish("news", "2"), 1)
            got = []
            while len(got) < 2:
                message = listener.get_message(timeout=GUARD_S)
                if message:
                    got.append((message["type"], message["channel"], message["data"]))
            self.assertEqual(got, [("message", "a", "1"), ("pmessage", "news", "2")])
            self.assertEqual(client.pubsub_numsub("a", "b", "c"), [("a", 1), ("b", 1), ("c", 0)])
            listener.unsubscribe()
            listener.punsubscribe()
            with self.assertRaises(redis.ResponseError):
                client.execute_command("SSUBSCRIBE", "a", "b")
            listener.close()


if __name__ == "__main__":
    unittest.main()
