"""Goal: client-side caching works through heatsink: CLIENT TRACKING answers as in Redis 7.0, a tracking client receives
an invalidation for every change, by any client on any worker, and no client cache keeps an old value.

Method: scripts run side by side against a redis-server; replies and messages are compared byte for byte. Then clients
with real caches run over several workers, with writers at the same time. Messages from other workers arrive with a
delay: the reference server's messages tell how many to wait for, and a surplus message shows before the next reply.
"""

import itertools
import os
import random
import select
import signal
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import resp
import servers
from cases import ServerCase
from checks import client_rows, wait_for

PUSH = ord(">")
STARTED = {}
SILENT = "a server was silent for a while, and everything counts as changed"


def tells_all(push):
    """True for an invalidation of all keys, which heatsink sends when it may have missed a change."""
    return push.items[1].is_null


def next_reply(connection):
    """The next reply; only invalidations of all keys may come before it."""
    while (reply := connection.read()).kind == PUSH:
        if not tells_all(reply):
            raise AssertionError(reply)
    return reply


def setUpModule():
    for name, make in (("redis", servers.Redis),
                       ("heatsink", lambda: servers.Heatsink(
                           "--sync", "off", "--workers", "2", "--partitions", "4"))):
        STARTED[name] = make()
        unittest.addModuleCleanup(STARTED[name].close)


class Side:
    """One of the two servers: connections by name, and the messages of each."""

    def __init__(self, port):
        self.port = port
        self.connections = {}
        self.ids = {}

    def connection(self, name):
        if name not in self.connections:
            self.connections[name] = resp.Connection(self.port)
            self.ids[name] = str(self.connections[name].call("CLIENT", "ID").number())
        return self.connections[name]

    def words(self, args):
        """Replaces @name by the id of that connection."""
        return [self.ids[arg[1:]] if arg.startswith("@") else arg for arg in args]

    def mask(self, raw):
        """Replaces connection ids in a reply, which differ between servers, by names."""
        if b"redir" not in raw:
            return raw
        for name, number in self.ids.items():
            raw = raw.replace(b":%s\r\n" % number.encode(), b":@%s\r\n" % name.encode())
        return raw

    def call(self, name, args):
        """The reply, and the messages that came before it."""
        connection = self.connection(name)
        connection.send(resp.encode(*self.words(args)))
        early = []
        while True:
            reply = connection.read()
            if reply.kind != PUSH and "GETREDIR" in args and reply.raw[1:2] != b"-":
                return self.mask(b"redir" + reply.raw), early
            if reply.kind != PUSH:
                return self.mask(reply.raw), early
            early.append(self.mask(reply.raw))

    def close(self):
        for connection in self.connections.values():
            connection.close()


class SideBySide(unittest.TestCase):
    """Steps are (connection, command, ...). After every step the reference server's messages are collected;
    heatsink must send the same ones."""

    def setUp(self):
        for server in STARTED.values():
            with resp.Connection(server.port) as connection:
                connection.call("FLUSHALL")
        self.reference = Side(STARTED["redis"].port)
        self.subject = Side(STARTED["heatsink"].port)
        self.addCleanup(self.reference.close)
        self.addCleanup(self.subject.close)
        self.fence = resp.Connection(self.reference.port)
        self.addCleanup(self.fence.close)

    def told(self, name):
        """Messages of the reference server to a connection since the last call. redis-server is single-threaded:
        after two replies to another connection, all earlier messages are in the sockets."""
        for _ in range(2):
            self.fence.call("PING")
        connection = self.reference.connection(name)
        messages = []
        while connection.at < len(connection.buffer) or select.select(
                [connection.socket], [], [], 0)[0]:
            messages.append(self.reference.mask(connection.read().raw))
        return messages

    def run_steps(self, *steps):
        for name, *args in steps:
            expected, early = self.reference.call(name, args)
            self.assertEqual(early, [], "the reference said something before")
            got, early = self.subject.call(name, args)
            self.assertEqual(early, [], f"{name} was told too much before {args}")
            self.assertEqual(got, expected, f"{name}: {args}")
            for listener in self.reference.connections:
                messages = self.told(listener)
                heard = [self.subject.mask(self.subject.connection(listener).read().raw)
                         for _ in messages]
                self.assertEqual(sorted(heard), sorted(messages),
                                 f"{listener}, after {name} said {args}")
        for name in self.reference.connections:  # no further message has come
            for _ in range(2):
                self.assertEqual(self.subject.call(name, ["PING"])[1], [], name)

    OPTIONS = (["on"], ["off"], ["maybe"], ["on", "foo"], ["on", "redirect"],
               ["on", "redirect", "x"], ["on", "redirect", "99999"], ["off", "redirect", "99999"],
               ["on", "redirect", "0"], ["on", "redirect", "-1"], ["on", "redirect", "@b"],
               ["on", "redirect", "@c"], ["ON", "REDIRECT", "@a"],
               ["on", "redirect", "@b", "redirect", "@b"],
               ["on", "redirect", "99999", "redirect", "@b"], ["on", "redirect", "99999", "foo"],
               ["on", "foo", "redirect", "99999"], ["on", "prefix"], ["on", "prefix", "a"],
               ["on", "bcast"], ["on", "bcast", "optin"], ["on", "bcast", "optout"],
               ["on", "bcast", "prefix", "a", "optin"], ["on", "optin", "optout"], ["on", "optin"],
               ["on", "optout"], ["on", "noloop"], ["on", "optin", "noloop"],
               ["on", "bcast", "prefix", "a", "prefix", "ab"], ["on", "bcast", "prefix", "b"],
               ["on", "bcast", "prefix", "c", "prefix", "a", "noloop"],
               ["on", "bcast", "prefix", ""], ["on", "bcast", "prefix", "bc"],
               ["on", "bcast", "redirect", "@c", "prefix", "d"], ["off", "prefix", "x", "optin"],
               ["off", "bcast", "optin", "optout"], ["off", "foo"])

    def step(self, rng):
        kind = rng.randrange(12)
        if kind < 5:
            return ("a", "CLIENT", "TRACKING", *rng.choice(self.OPTIONS))
        return ("a", *rng.choice((
            ("CLIENT", "TRACKINGINFO"), ("CLIENT", "TRACKINGINFO"), ("CLIENT", "GETREDIR"),
            ("CLIENT", "CACHING", "yes"), ("CLIENT", "CACHING", "no"), ("CLIENT", "CACHING", "x"),
            ("CLIENT", "CACHING"), ("CLIENT", "TRACKING"), ("CLIENT", "TRACKINGINFO", "x"),
            ("CLIENT", "GETREDIR", "x"), ("PING",), ("NOSUCH",), ("RESET",), ("GET", "k"))))

    def test_words_in_any_order(self):
        for protocol in ("2", "3"):
            for name in "abc":
                self.reference.connection(name), self.subject.connection(name)
            for seed in range(20):
                rng = random.Random(seed)
                steps = [("a", "CLIENT", "TRACKING", "off")]
                steps += [self.step(rng) for _ in range(40)]
                for name, *args in steps:
                    if args == ["RESET"] and protocol == "3":
                        continue
                    expected = self.reference.call(name, args)
                    self.assertEqual(self.subject.call(name, args), expected,
                                     f"seed {seed}, RESP{protocol}: {args} of {steps}")
            for side in (self.reference, self.subject):
                side.call("a", ["HELLO", "3"])

    def test_flags_of_connections(self):
        fields = []
        for side in (self.reference, self.subject):
            seen = []
            side.connection("b")
            for args in (["CLIENT", "TRACKING", "on"], ["CLIENT", "TRACKING", "off"],
                         ["CLIENT", "TRACKING", "on", "bcast"], ["CLIENT", "NO-EVICT", "on"],
                         ["MULTI"]):
                side.call("a", args)
                row = client_rows(side.connection("b"), "ID", side.ids["a"])[0]
                seen.append((row["flags"], row["redir"]))
            side.call("a", ["DISCARD"])
            side.call("a", ["CLIENT", "TRACKING", "off"])
            side.call("a", ["CLIENT", "TRACKING", "on", "redirect", "@b"])
            row = client_rows(side.connection("b"), "ID", side.ids["a"])[0]
            seen.append((row["flags"], row["redir"] == side.ids["b"]))
            fields.append(seen)
        self.assertEqual(*fields)

    def test_each_key(self):
        self.run_steps(
            ("w", "SET", "k", "1"), ("a", "CLIENT", "TRACKING", "on"),
            ("a", "GET", "k"), ("w", "SET", "k", "2"))  # RESP2 connections get no messages
        for side in (self.reference, self.subject):
            side.call("a", ["HELLO", "3"])
        self.run_steps(
            ("a", "GET", "k"), ("w", "SET", "k", "3"), ("w", "SET", "k", "4"), ("a", "GET", "k"),
            ("w", "SET", "other", "1"), ("w", "APPEND", "k", "x"), ("a", "MGET", "{k}1", "{k}2", "k"),
            ("w", "RENAME", "k", "{k}1"), ("a", "EXISTS", "{k}2"), ("w", "COPY", "{k}1", "{k}2"),
            ("a", "STRLEN", "{k}2"), ("w", "GETDEL", "{k}2"), ("a", "TTL", "{k}1"),
            ("w", "EXPIRE", "{k}1", "100"), ("a", "TYPE", "{k}1"), ("w", "GETEX", "{k}1", "PERSIST"),
            ("a", "GET", "n"), ("w", "INCR", "n"), ("a", "GET", "n"), ("w", "INCRBYFLOAT", "n", "1"),
            ("a", "GET", "n"), ("w", "SETRANGE", "n", "3", "x"), ("a", "GET", "n"),
            ("w", "DEL", "n"), ("a", "GET", "n"), ("w", "SETBIT", "n", "3", "1"), ("a", "GET", "n"),
            ("w", "GET", "n"), ("w", "SETNX", "n", "3"), ("a", "GET", "gone"), ("w", "DEL", "gone"),
            ("a", "GET", "n"), ("a", "SET", "n", "5"), ("a", "MGET", "n", "k"),
            ("w", "MSET", "n", "1", "k", "2"), ("a", "GET", "n"), ("w", "FLUSHALL"),
            ("w", "SET", "n", "1"), ("a", "GET", "n"), ("a", "FLUSHDB"), ("a", "GET", "n"),
            ("w", "MULTI"), ("w", "INCR", "n"), ("w", "INCR", "{n}2"), ("w", "EXEC"),
            ("a", "MULTI"), ("a", "GET", "n"), ("a", "INCR", "{n}2"), ("a", "EXEC"),
            ("w", "SET", "n", "x"), ("a", "CLIENT", "TRACKING", "off"), ("a", "GET", "n"),
            ("w", "SET", "n", "y"))

    def test_each_key_of_a_request(self):
        for name in "io":
            for side in (self.reference, self.subject):
                side.call(name, ["HELLO", "3"])
        self.run_steps(
            ("i", "CLIENT", "TRACKING", "on", "optin"), ("o", "CLIENT", "TRACKING", "on", "optout"),
            ("i", "GET", "k"), ("o", "GET", "k"), ("w", "SET", "k", "1"),
            ("i", "CLIENT", "CACHING", "yes"), ("o", "CLIENT", "CACHING", "no"),
            ("i", "CLIENT", "GETNAME"), ("i", "GET", "k"), ("o", "GET", "k"), ("i", "GET", "l"),
            ("w", "MSET", "k", "2", "l", "2"), ("i", "CLIENT", "CACHING", "yes"), ("i", "MULTI"),
            ("i", "GET", "k"), ("i", "EXEC"), ("w", "SET", "k", "3"),
            ("i", "CLIENT", "CACHING", "yes"), ("i", "MULTI"), ("i", "DISCARD"), ("i", "GET", "k"),
            ("w", "SET", "k", "4"), ("i", "CLIENT", "CACHING", "yes"), ("i", "NOSUCH"),
            ("i", "GET", "k"), ("w", "SET", "k", "5"), ("i", "MULTI"), ("i", "GET", "{k}1"),
            ("i", "CLIENT", "CACHING", "yes"), ("i", "GET", "k"), ("i", "EXEC"),
            ("w", "MSET", "k", "6", "{k}1", "6"))

    def test_prefixes(self):
        for name in "abn":
            for side in (self.reference, self.subject):
                side.call(name, ["HELLO", "3"])
        self.run_steps(
            ("a", "CLIENT", "TRACKING", "on", "bcast", "prefix", "u:", "prefix", "x"),
            ("b", "CLIENT", "TRACKING", "on", "bcast"),
            ("n", "CLIENT", "TRACKING", "on", "bcast", "noloop", "prefix", "u:"),
            ("w", "SET", "u:1", "1"), ("w", "SET", "u", "1"), ("n", "SET", "u:1", "2"),
            ("w", "SET", "x", "1"), ("a", "SET", "x", "2"), ("w", "DEL", "nosuch"),
            ("a", "CLIENT", "TRACKING", "on", "bcast", "prefix", "y"), ("w", "SET", "y", "1"),
            ("w", "FLUSHALL"), ("a", "CLIENT", "TRACKING", "off"), ("w", "SET", "x", "3"))

    def test_noloop(self):
        for side in (self.reference, self.subject):
            side.call("n", ["HELLO", "3"])
        self.run_steps(
            ("n", "CLIENT", "TRACKING", "on", "noloop"), ("n", "GET", "k"), ("n", "SET", "k", "1"),
            ("n", "GET", "k"), ("w", "SET", "k", "2"), ("n", "GET", "k"), ("n", "FLUSHALL"))

    def test_redirect(self):
        """REDIRECT to each of two connections, one of them on another worker."""
        for side in (self.reference, self.subject):
            for name in "stl":
                side.call(name, ["HELLO", "3"])
        for target in "st":
            self.run_steps(
                ("l", "CLIENT", "TRACKING", "on", "redirect", "@" + target),
                ("l", "CLIENT", "TRACKINGINFO"), ("l", "GET", "k"), ("w", "SET", "k", "1"),
                ("l", "MGET", "k", "m"), ("l", "MSET", "k", "2", "m", "2"), ("w", "FLUSHALL"))
            self.reference.connections.pop(target).close()
            self.subject.connections.pop(target).close()
            with resp.Connection(self.subject.port) as other:
                wait_for(self, "the connection is gone", lambda: not client_rows(
                    other, "ID", self.subject.ids[target]))
            wait_for(self, "the connection is gone", lambda: not client_rows(
                self.reference.connection("w"), "ID", self.reference.ids[target]))
            self.run_steps(
                ("l", "GET", "k"), ("w", "SET", "k", "3"), ("l", "CLIENT", "TRACKINGINFO"),
                ("l", "CLIENT", "TRACKING", "on", "redirect", "@" + target),
                ("l", "CLIENT", "TRACKING", "off"))
            del self.reference.ids[target], self.subject.ids[target]

    def test_redirect_to_a_subscriber(self):
        with resp.Connection(self.subject.port) as probe:
            if probe.call("SUBSCRIBE", "x").is_error:
                self.skipTest("there are no subscriptions yet")
        for side in (self.reference, self.subject):
            for name in "st":
                side.call(name, ["SUBSCRIBE", "__redis__:invalidate"])
        for target in "st":
            self.run_steps(
                ("l", "CLIENT", "TRACKING", "on", "redirect", "@" + target), ("l", "GET", "k"),
                ("w", "SET", "k", "1"), ("l", "GET", "k"), ("l", "SET", "k", "2"), ("w", "FLUSHALL"),
                ("l", "CLIENT", "TRACKING", "off"))


class Cache:
    """A client that caches what it reads until an invalidation comes. Pipelined reads, one thread."""

    def __init__(self, port, *options):
        self.connection = resp.Connection(port)
        self.connection.call("HELLO", "3")
        assert self.connection.call("CLIENT", "TRACKING", "ON", *options).raw == b"+OK\r\n"
        self.kept = {}
        self.asked = []

    def drop(self, push):
        kind, keys = push.items
        assert kind.text == b"invalidate", push
        if keys.is_null:
            self.kept.clear()
        for item in keys.items or ():
            self.kept.pop(item.text, None)

    def hear(self):
        """Reads one reply or message; returns which."""
        reply = self.connection.read()
        if reply.kind == PUSH:
            self.drop(reply)
            return reply
        key = self.asked.pop(0)
        if key is not None:
            assert not reply.is_error, reply
            self.kept[key] = reply.text
        return None

    def ask(self, *args, keeps=None):
        self.asked.append(keeps)
        self.connection.send(resp.encode(*args))

    def settle(self):
        while self.asked:
            self.hear()

    def close(self):
        self.connection.close()


class NoStaleValue(ServerCase):
    """Client caches on all workers read in pipelines while writers write. When the writers have stopped, every
    client reads a key that only it uses, which is then changed. The message about this key comes after all others of
    its worker, so every value still cached then must be the server's value."""

    args = ("--workers", "3", "--partitions", "4")  # with sync, so that groups form and commits are delayed
    KEYS = [b"key%d" % i for i in range(5)]
    MAY_TELL_ALL = False  # true: clients may be told that all keys changed; here all changes pass through heatsink
    MODES = ((), (), ("NOLOOP",), ("BCAST",), ("BCAST", "PREFIX", "key"))

    def writer_port(self, _seed):
        return self.server.port

    def write(self, seed, failures):
        rng = random.Random(seed)
        try:
            with resp.Connection(self.writer_port(seed)) as connection:
                for number in range(400):
                    key = rng.choice(self.KEYS)
                    connection.call(*rng.choice((
                        ("SET", key, f"{seed}-{number}"), ("APPEND", key, "x"), ("DEL", key),
                        ("MSET", key, f"{seed}-{number}", rng.choice(self.KEYS), "m"))))
        except Exception as error:  # the test's own thread raises it
            failures.append(error)

    def read(self, cache, seed, stop, failures):
        rng = random.Random(seed)
        try:
            while not stop.is_set():
                for _ in range(rng.randrange(1, 8)):
                    key = rng.choice(self.KEYS)
                    if rng.randrange(8) == 0:
                        cache.ask("SET", b"mine", "1")  # a write that waits for the disk
                    cache.ask("GET", key, keeps=key)
                cache.settle()
        except Exception as error:
            failures.append(error)

    def test_it(self):
        caches = [Cache(self.server.port, *mode) for mode in self.MODES]
        for cache in caches:
            self.addCleanup(cache.close)
        rows = client_rows(self.connect())
        self.assertGreater(len({row["worker"] for row in rows if "t" in row["flags"]}), 1)
        stop, failures = threading.Event(), []
        readers = [threading.Thread(target=self.read, args=(cache, i, stop, failures))
                   for i, cache in enumerate(caches)]
        writers = [threading.Thread(target=self.write, args=(100 + i, failures)) for i in range(3)]
        for thread in readers + writers:
            thread.start()
        for thread in writers:
            thread.join()
        stop.set()
        for thread in readers:
            thread.join()
        self.assertEqual(failures, [])
        plain = self.connect()
        for number, cache in enumerate(caches):
            fence = b"keyfence%d" % number
            cache.ask("GET", fence)
            cache.settle()
            plain.call("SET", fence, "1")
            while True:
                push = cache.hear()
                if push and tells_all(push):
                    self.assertTrue(self.MAY_TELL_ALL, push)
                    servers.note(SILENT)  # the cache is empty, so the message about the last key may not come
                    break
                if push and fence in [item.text for item in push.items[1].items]:
                    break
        for cache in caches:
            for key, value in cache.kept.items():
                if key in self.KEYS:
                    self.assertEqual(value, plain.call("GET", key).text, key)


class NobodyKeepsAnOldValueOfAnotherServer(NoStaleValue):
    """NoStaleValue in front of a redis-server that is also written directly."""

    MAY_TELL_ALL = True  # after a silence of the server, heatsink invalidates all keys

    @classmethod
    def setUpClass(cls):
        cls.redis = servers.Redis()
        cls.addClassCleanup(cls.redis.close)
        cls.args = ("--workers", "3", "--engine", f"redis://127.0.0.1:{cls.redis.port}",
                    "--engine-timeout", servers.GUARD_S * 1000)
        super().setUpClass()
        cls.server.wait_engine()

    def writer_port(self, seed):
        return self.redis.port if seed % 2 else self.server.port

    def tracker(self):
        connection = self.connect()
        connection.call("HELLO", "3")
        connection.call("CLIENT", "TRACKING", "ON")
        return connection

    def told_of_a_key(self, change):
        """The message after change(); repeated while it is an invalidation of all keys."""
        guard = time.monotonic() + servers.GUARD_S
        while tells_all(push := change()):
            self.assertLess(time.monotonic(), guard, "never told of a key")
            servers.note(SILENT)
        return push

    def track(self, tracker, *args):
        """Reads the key, so that the client tracks it from here on."""
        tracker.send(resp.encode(*args))
        self.assertFalse(next_reply(tracker).is_error)

    def test_a_waiting_client_is_invalidated(self):
        """A blocked BLPOP does not delay invalidations."""
        plain = self.connect()

        def change():
            waiting = self.tracker()
            self.track(waiting, "GET", "k")
            waiting.send(resp.encode("BLPOP", "queue", "0"))
            plain.call("SET", "k", "1")
            push = waiting.read()
            plain.call("RPUSH", "queue", "x")
            self.assertEqual(next_reply(waiting).kind, ord("*"))
            return push
        self.assertEqual(self.told_of_a_key(change).raw,
                         b">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n")

    def test_other_types_and_scripts(self):
        tracker, direct = self.tracker(), resp.Connection(self.redis.port)
        self.addCleanup(direct.close)
        keys = (f"other:{number}" for number in itertools.count())
        for read, write in ((("LRANGE", "k", "0", "-1"), ("RPUSH", "k", "1")),
                            (("HGET", "k", "f"), ("HSET", "k", "f", "1")),
                            (("ZRANGE", "k", "0", "-1"), ("ZADD", "k", "1", "a")),
                            (("SUNION", "s1", "k"), ("SADD", "k", "a")),
                            (("XREAD", "STREAMS", "k", "0"), ("XADD", "k", "*", "a", "1")),
                            (("EVAL", "return redis.call('get', KEYS[1])", "1", "k"),
                             ("SET", "k", "1"))):
            def change(read=read, write=write):
                self.key = next(keys)  # a new key each time, so that a late message is not taken for it
                self.track(tracker, *(self.key if word == "k" else word for word in read))
                direct.call(*(self.key if word == "k" else word for word in write))
                return tracker.read()
            self.assertEqual(self.told_of_a_key(change).items[1].items[0].text.decode(), self.key)


class OneServer(ServerCase):
    args = ("--workers", "2", "--sync", "off", "--tracking-table-max-keys", "8")

    def tracker(self, *options):
        connection = self.connect()
        connection.call("HELLO", "3")
        self.assert_reply(connection, b"+OK\r\n", "CLIENT", "TRACKING", "ON", *options)
        return connection

    def info(self, name):
        text = self.connect().call("INFO").text.decode()
        return int(next(line for line in text.splitlines() if line.startswith(name + ":"))
                   .partition(":")[2])

    def test_an_expired_key(self):
        tracker = self.tracker()
        for time_ms in (50, 1000, 20000):  # on a busy machine the key may expire before it is read
            key = f"soon:{time_ms}"
            self.connect().call("SET", key, "1", "PX", time_ms)
            if not tracker.call("GET", key).is_null:
                break
        push = tracker.read()
        self.assertEqual((push.kind, push.items[1].items[0].text.decode()), (PUSH, key))
        self.assertTrue(tracker.call("GET", key).is_null)

    def test_pipelined_after_tracking_on(self):
        """A read in the same pipeline after CLIENT TRACKING ON is tracked."""
        writer = self.connect()
        for _ in range(50):
            connection = self.connect()
            connection.send(resp.encode("HELLO", "3") + resp.encode("CLIENT", "TRACKING", "ON") +
                            resp.encode("GET", "breath"))
            for _ in range(3):
                connection.read()
            writer.call("INCR", "breath")
            self.assertEqual(connection.read().kind, PUSH)
            connection.close()

    def test_the_table_is_bounded(self):
        wait_for(self, "the last test's are gone", lambda: self.info("tracking_clients") == 0 and
                 self.info("tracking_total_keys") == 0)
        tracker = self.tracker()
        evicted = self.info("tracking_evicted_keys")
        for i in range(10):
            tracker.send(resp.encode("GET", f"many{i}"))
        replies = [tracker.read().kind for _ in range(16)]
        self.assertEqual(replies.count(PUSH), 6)  # four of eight connections are on this worker
        self.assertEqual(self.info("tracking_evicted_keys"), evicted + 6)
        self.assertEqual(self.info("tracking_total_keys"), 4)
        self.assertEqual(self.info("tracking_total_items"), 4)
        self.assertEqual(self.info("tracking_clients"), 1)
        self.connect().call("CONFIG", "SET", "tracking-table-max-keys", "1")
        wait_for(self, "the table shrinks", lambda: self.info("tracking_total_keys") == 1)
        self.connect().call("CONFIG", "SET", "tracking-table-max-keys", "8")
        tracker.close()
        wait_for(self, "the table is empty", lambda: self.info("tracking_total_keys") == 0)

    def test_not_in_a_transaction(self):
        connection = self.connect()
        connection.call("MULTI")
        self.assertTrue(connection.call("CLIENT", "TRACKING", "ON").is_error)
        self.assertTrue(connection.call("EXEC").raw.startswith(b"-EXECABORT"))

    def test_metrics_of_prefixes(self):
        wait_for(self, "the last test's are gone", lambda: self.info("tracking_clients") == 0)
        self.tracker("BCAST", "PREFIX", "a", "PREFIX", "b")
        self.assertEqual(self.info("tracking_total_prefixes"), 2)


class Ends(unittest.TestCase):
    def test_stops_with_trackers_connected(self):
        with servers.Heatsink("--workers", "2", "--sync", "off") as server:
            writer = server.raw()
            for options in ((), ("BCAST",), ("NOLOOP",)):
                connection = server.raw()
                connection.call("HELLO", "3")
                connection.call("CLIENT", "TRACKING", "ON", *options)
                connection.call("GET", "k")
            writer.send(b"".join(resp.encode("SET", "k", i) for i in range(1000)))
            server.signal(signal.SIGTERM)  # the clients stay connected during the shutdown
            self.assertEqual(server.wait(), 0)


if __name__ == "__main__":
    unittest.main()
