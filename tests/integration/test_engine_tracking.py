"""Goal: what the redis engine promises for tracked operations holds with real servers. Every change is reported,
whichever client makes it and however (a write, an expiry, an eviction, a flush, a move to another node, a full
tracking table). A SET of heatsink is tracked from the SET on. A tracking session ends when its connection can miss a
change.

Method: the engine alone (tests/drivers/tracked.c) against redis-server processes and Clusters. The driver prints a
line for every event, and the test waits for lines. That an event does not come is shown by a later event on the same
connection.
"""

import collections
import os
import signal
import subprocess
import sys
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import resp
import servers
from cluster import Cluster, slot_of
from relay import Relay

OK, NULL = "+OK", "_"


def text(value):
    return f"${len(value)}\\r\\n{value}"


class Driver:
    """The engine in a child process, controlled over pipes. Operations are numbered in order."""

    def __init__(self, url, timeout_ms=servers.GUARD_S * 1000, refresh_ms=100):
        path = os.path.join(os.path.dirname(servers.heatsink_path()), "drivers", "tracked")
        self.child = subprocess.Popen([path, url, str(timeout_ms), str(refresh_ms)],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT)
        self.lines, self.seen, self.asked = collections.deque(), [], 0
        self.change = threading.Condition()
        self.ended = False
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.child.stdout:
            with self.change:
                self.lines.append(line.decode().rstrip("\n"))
                self.change.notify_all()
        with self.change:
            self.ended = True
            self.change.notify_all()

    def close(self):
        self.child.stdin.close()
        code = self.child.wait(servers.GUARD_S)
        self.child.stdout.close()
        if code != 0:
            raise AssertionError(f"the driver ended with {code}: {list(self.lines)}")

    def say(self, *words):
        self.child.stdin.write(" ".join(map(str, words)).encode() + b"\n")
        self.child.stdin.flush()

    def next(self):
        """The next line of the driver."""
        with self.change:
            if not self.change.wait_for(lambda: self.lines or self.ended, servers.GUARD_S) or \
                    not self.lines:
                raise AssertionError(f"no more lines behind {self.seen[-20:]}")
            self.seen.append(self.lines.popleft())
            return self.seen[-1]

    def until(self, begins):
        """All lines up to and including the first one with this prefix (or one of these)."""
        lines = [self.next()]
        while not lines[-1].startswith(begins):
            lines.append(self.next())
        return lines

    def ask(self, what, *words):
        self.asked += 1
        self.say(what, self.asked, *words)
        return self.asked

    def run(self, what, *words):
        """Runs an operation; returns its number, whether a tracking session covers it, and the reply."""
        number = self.ask(what, *words)
        _, _, held, reply = self.until(f"done {number} ")[-1].split(" ", 3)
        return number, held == "held", reply.removesuffix("\\r\\n")

    def changed(self):
        """Keys reported as changed so far. The reply of a read comes after all earlier events."""
        number = self.ask("get", "fence")
        lines = self.until(f"done {number} ")[:-1]
        return [line.removeprefix("changed ") for line in lines if line.startswith("changed ")]

    def held(self, number):
        self.say("held", number)
        return self.until(("held", "not"))[-1] == "held"


class Tracking(unittest.TestCase):
    def driver(self, *args, **options):
        driver = Driver(*args, **options)
        self.addCleanup(driver.close)
        return driver

    def connect(self, server):
        connection = resp.Connection(server.port, servers.GUARD_S)
        self.addCleanup(connection.close)
        return connection

    def assert_held(self, driver, *words, reply=OK):
        number, held, got = driver.run(*words)
        self.assertEqual((held, got), (True, reply))
        return number


class OfOneServer(Tracking):
    def setUp(self):
        self.server = servers.Redis("--enable-debug-command", "yes")
        self.addCleanup(self.server.close)
        self.other = self.connect(self.server)
        self.driver_ = self.driver(f"redis://127.0.0.1:{self.server.port}")

    def call(self, *args):
        reply = self.other.call(*args)
        self.assertFalse(reply.is_error, reply)
        return reply

    def server_ms(self):
        seconds, microseconds = (int(item.text) for item in self.call("TIME").items)
        return seconds * 1000 + microseconds // 1000

    def test_reads_are_tracked(self):
        driver = self.driver_
        number = self.assert_held(driver, "get", "a", reply=NULL)
        for words in (("SET", "a", "1"), ("APPEND", "a", "2"), ("DEL", "a"), ("LPUSH", "a", "x"),
                      ("RENAME", "a", "b"), ("RENAME", "b", "a")):
            self.call(*words)
            self.assertEqual(driver.until("changed")[-1], "changed a")
            self.assertTrue(driver.held(number))  # the tracking session holds on; only the key has changed
            driver.run("get", "a")
        self.call("SET", "b", "1")  # no read of this key was tracked
        self.assertEqual(driver.changed(), [])

    def test_a_write_of_ours(self):
        driver = self.driver_
        for value in ("1", "2"):  # at the first SET the key is not tracked yet, at the second it is
            self.assert_held(driver, "set", "a", value)
            self.assertEqual(driver.changed(), [])  # the engine's own SET is not reported
        self.assertEqual(self.call("GET", "a").text, b"2")
        self.call("SET", "a", "3")
        self.assertEqual(driver.changed(), ["a"])
        self.assert_held(driver, "set", "a", "4 PX 100000")
        self.assertGreater(self.call("PTTL", "a").number(), 0)
        driver.run("plain", "SET", "a", "5")  # on another connection of heatsink
        self.assertEqual(driver.until("changed")[-1], "changed a")
        _, held, reply = driver.run("set", "a", "4 PX nonsense")
        self.assertFalse(held)
        self.assertIn("-ERR value is not an integer", reply)

    def test_many_at_once(self):
        """Writes of heatsink and of another client interleave: the last write that is tracked, without a change
        reported since, must be the server's value."""
        driver = self.driver_
        self.assert_held(driver, "get", "a", reply=NULL)
        kept, values = None, {}
        for i in range(300):
            values[driver.ask("set", "a", f"ours-{i}")] = f"ours-{i}"
            if i % 3 == 0:
                self.other.send(resp.encode("SET", "a", f"other-{i}"))
        last = driver.ask("get", "fence")
        for line in driver.until(f"done {last} "):
            words = line.split(" ")
            if words[0] == "changed" and words[1] == "a":
                kept = None
            elif words[0] == "done" and int(words[1]) in values:
                kept = values[int(words[1])] if words[2] == "held" else None
        for _ in range(100):
            self.other.read()
        driver.changed()  # reads all events so far
        told = [line for line in driver.seen if line == "changed a"]
        self.assertGreater(len(told), 299)
        since = driver.seen[driver.seen.index(f"done {last} held _\\r\\n"):]
        if kept and "changed a" not in since:
            self.assertEqual(self.call("GET", "a").text.decode(), kept)

    def test_expiry(self):
        driver, ms = self.driver_, 50
        while driver.run("get", "a")[2] == NULL:  # until a read succeeds before the key expires
            ms *= 2
            self.call("SET", "a", "1", "PX", ms)
        self.assertEqual(driver.until("changed a")[-1], "changed a")  # the server's active expiry finds it
        # Without active expiry, a read of heatsink finds the expired key and the event follows that reply.
        self.call("DEBUG", "SET-ACTIVE-EXPIRE", "0")
        while driver.run("get", "b")[2] == NULL:
            ms *= 2
            self.call("SET", "b", "1", "PX", ms)
            ends_ms = self.server_ms() + ms  # on the server's clock; the true end may be slightly later
        driver.changed()
        before = len(driver.seen)
        while self.server_ms() <= ends_ms:
            pass
        self.assertEqual(driver.run("get", "b")[2], NULL)
        driver.changed()  # the key may also expire during the read; then the event follows it
        self.assertEqual(driver.seen[before:].count("changed b"), 1)
        self.assertEqual(driver.run("get", "b")[2], NULL)
        self.assertEqual(driver.changed(), [])  # a later read stays valid

    def test_flush(self):
        driver = self.driver_
        for words in (("FLUSHALL",), ("FLUSHDB",), ("FLUSHALL", "ASYNC")):
            number = self.assert_held(driver, "set", "a", "1")
            self.call(*words)
            self.assertEqual(driver.until("changed")[-1], "changed *")
            self.assertFalse(driver.held(number))
            self.assert_held(driver, "get", "a", reply=NULL)

    def test_eviction(self):
        driver = self.driver_
        names = [f"key:{i}" for i in range(50)]
        for name in names:
            self.assert_held(driver, "set", name, "x" * 100)
        self.call("CONFIG", "SET", "maxmemory-policy", "allkeys-random", "maxmemory", "1")
        told = set()
        while told != set(names):
            told.add(driver.until("changed")[-1].removeprefix("changed "))

    def test_eviction_by_a_command_of_the_client(self):
        """Evictions caused by a write of heatsink are reported; with NOLOOP they would not be."""
        driver = self.driver_
        names = [f"key:{i}" for i in range(200)]
        for name in names:
            self.assert_held(driver, "set", name, "x" * 1000)
        used = int(self.call("INFO", "memory").text.split(b"used_memory:")[1].split()[0])
        self.call("CONFIG", "SET", "maxmemory-policy", "allkeys-random",
                  "maxmemory", str(used + 5000))
        told = []
        for i in range(100):  # each write makes the server evict keys
            number = driver.ask("set", f"more:{i}", "y" * 5000)
            told += [line[8:] for line in driver.until(f"done {number} ")
                     if line.startswith("changed key:")]
        told += [name for name in driver.changed() if name.startswith("key:")]
        self.call("CONFIG", "SET", "maxmemory", "0")
        told += [name for name in driver.changed() if name.startswith("key:")]
        gone = [name for name in names if self.call("EXISTS", name).number() == 0]
        self.assertGreater(len(gone), 0)
        self.assertEqual(set(gone), set(told))

    def test_a_full_tracking_table(self):
        driver = self.driver_
        self.call("CONFIG", "SET", "tracking-table-max-keys", "10")
        names = [f"key:{i}" for i in range(100)]
        for name in names:
            driver.run("get", name)
        driver.changed()
        told = {line[8:] for line in driver.seen if line.startswith("changed ")}
        self.assertGreaterEqual(len(told & set(names)), 85)

    def test_a_connection_that_is_closed(self):
        driver = self.driver_
        a = self.assert_held(driver, "set", "a", "1")
        self.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        driver.until(f"ended {a}")
        b = self.assert_held(driver, "get", "a", reply=text("1"))
        self.server.kill9()
        driver.until(f"ended {b}")

    def test_proofs(self):
        driver = self.driver_
        a = self.assert_held(driver, "get", "a", reply=NULL)
        driver.say("check_every", 2000)
        for _ in range(10):
            driver.say("check", a)
            driver.until(f"caught_up {a}")
        pings = int(self.call("INFO", "commandstats").text.split(b"cmdstat_ping:calls=")[1]
                    .split(b",")[0])
        self.assertLess(pings, 100)  # no PING without a reason
        driver.say("check_every", 0)
        self.assertTrue(driver.held(a))


class OfASilentServer(Tracking):
    def test_silence(self):
        with servers.Redis() as server:
            driver = self.driver(f"redis://127.0.0.1:{server.port}", timeout_ms=5000)
            a = self.assert_held(driver, "get", "a", reply=NULL)
            driver.say("check_every", 2000)
            driver.say("check", a)
            driver.until(f"caught_up {a}")
            server.signal(signal.SIGSTOP)
            try:
                driver.say("check", a)
                self.assertNotIn(f"caught_up {a}", driver.until(f"ended {a}"))
            finally:
                server.signal(signal.SIGCONT)


class OfAServerThatRefuses(Tracking):
    def start(self, rules):
        server = servers.Redis()
        self.addCleanup(server.close)
        other = self.connect(server)
        self.assertEqual(other.call("ACL", "SETUSER", "app", "on", ">secret", "~*", "&*", "+@all",
                                    *rules).raw, b"+OK\r\n")
        return other, self.driver(f"redis://app:secret@127.0.0.1:{server.port}")

    def sets(self, other):
        stats = other.call("INFO", "commandstats").text
        return int(stats.split(b"cmdstat_set:calls=")[1].split(b",")[0])

    def test_tracking(self):
        for rules in (["-client|tracking"], ["-client|caching"]):
            with self.subTest(rules=rules):
                other, driver = self.start(rules)
                self.assertEqual(driver.run("set", "a", "1")[1:], (False, OK))
                self.assertEqual(driver.run("get", "a")[1:], (False, text("1")))
                self.assertEqual(driver.run("get", "a")[1:], (False, text("1")))
                self.assertEqual(self.sets(other), 1)
                told = [line for line in driver.seen if "sends no invalidations" in line]
                self.assertEqual(len(told), 1, driver.seen)

    def test_order_around_a_write(self):
        for rules in (["-multi"], ["-exists"], ["-exec"], ["-ping"]):
            with self.subTest(rules=rules):
                other, driver = self.start(rules)
                self.assert_held(driver, "get", "a", reply=NULL)
                for value in "12":
                    _, held, reply = driver.run("set", "a", value)
                    self.assertEqual(reply, OK)
                    self.assertEqual(held, rules == ["-ping"])
                    self.assertEqual(other.call("GET", "a").text, value.encode())
                self.assertEqual(self.sets(other), 2)
                self.assert_held(driver, "get", "a", reply=text("2"))

    def test_the_write_itself(self):
        other, driver = self.start(["-set"])
        _, held, reply = driver.run("set", "a", "1")
        self.assertIn("-NOPERM", reply)
        self.assertFalse(held)
        self.assertEqual(other.call("EXISTS", "a").number(), 0)


class BehindARelay(Tracking):
    def setUp(self):
        self.server = servers.Redis()
        self.addCleanup(self.server.close)
        self.relay = Relay(self.server.port)
        self.addCleanup(self.relay.close)
        self.driver_ = self.driver(f"redis://127.0.0.1:{self.relay.port}")

    def test_a_server_without_resp3(self):
        driver = self.driver_
        self.relay.answer(b"-NOPROTO unsupported protocol version\r\n", times=None,
                          match=lambda args: args[:2] == [b"HELLO", b"3"])
        for words in (("get", "a"), ("set", "a", "1"), ("get", "a")):
            _, held, reply = driver.run(*words)
            self.assertFalse(held)
            self.assertTrue(reply.startswith("-NOTRACKING "), reply)
        self.assertEqual(driver.run("plain", "SET", "a", "1")[1:], (False, OK))

    def test_a_write_whose_reply_is_lost(self):
        driver = self.driver_
        other = self.connect(self.server)
        for lost in ("EXEC", "PING"):
            a = self.assert_held(driver, "get", "a", reply=NULL)
            self.relay.cut_after(lost)
            _, held, reply = driver.run("set", "a", "1")
            self.assertFalse(held)
            self.assertTrue(reply.startswith("-UNKNOWN "), reply)
            self.assertFalse(driver.held(a))
            self.assertEqual(driver.run("get", "a")[2], text("1"))
            self.assertEqual(other.call("DEL", "a").number(), 1)
        stats = other.call("INFO", "commandstats").text
        self.assertIn(b"cmdstat_set:calls=2,", stats)  # no SET was sent twice


class OfClusters(Tracking):
    def start(self, refresh_ms=100, **options):
        cluster = Cluster(**options)
        self.addCleanup(cluster.close)
        return cluster, self.driver(cluster.url(), refresh_ms=refresh_ms)

    def test_a_slot_that_moves(self):
        cluster, driver = self.start(masters=2, replicas=0)
        slot = slot_of("{a}")
        to = next(node for node in cluster.masters() if node is not cluster.master_of("{a}"))
        self.assert_held(driver, "set", "{a}1", "1")
        missing = self.assert_held(driver, "get", "{a}2", reply=NULL)
        cluster.begin_move([slot], to)
        cluster.move_keys([slot], to)
        self.assertEqual(driver.until("changed")[-1], "changed {a}1")  # the key left this node
        # heatsink reads it at the other node by ASK: not tracked, and a missing key may exist there now.
        _, held, reply = driver.run("get", "{a}1")
        self.assertEqual((held, reply), (False, text("1")))
        self.assertFalse(driver.held(missing))
        _, held, reply = driver.run("set", "{a}2", "2")
        self.assertEqual((held, reply), (False, OK))
        cluster.end_move([slot], to)
        # Tracked again at the new owner, when heatsink knows it.
        while not driver.run("get", "{a}1")[1]:
            pass
        self.assert_held(driver, "set", "{a}1", "3")
        to.client().set("{a}1", "4")
        self.assertEqual(driver.until("changed {a}1")[-1], "changed {a}1")

    def test_a_slot_move_without_requests(self):
        """New routes end the tracking session, although no request met a redirect."""
        cluster, driver = self.start(masters=2, replicas=0)
        a = self.assert_held(driver, "get", "{a}1", reply=NULL)
        driver.say("check_every", 60000000)  # no liveness check closes the idle connection
        to = next(node for node in cluster.masters() if node is not cluster.master_of("{a}1"))
        cluster.move_slots([slot_of("{a}1")], to=to)
        driver.until(f"ended {a}")

    def test_a_master_that_is_replaced(self):
        """The old master still answers and no refresh is due: the liveness check finds that it is no master."""
        cluster, driver = self.start(masters=2, replicas=1, refresh_ms=3600000)
        a = self.assert_held(driver, "set", "{a}1", "1")
        driver.say("check_every", 2000)
        driver.say("check", a)
        driver.until(f"caught_up {a}")
        new = cluster.fail_over(cluster.master_of("{a}1"))
        for _ in range(3):  # an earlier check may still have been in flight
            driver.say("check", a)
        driver.until(f"ended {a}")
        b = self.assert_held(driver, "get", "{a}1", reply=text("1"))
        self.assertIsNot(a, b)
        new.client().set("{a}1", "2")
        driver.until("changed {a}1")


if __name__ == "__main__":
    unittest.main()
