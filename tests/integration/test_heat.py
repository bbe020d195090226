"""Goal: HEAT shows the hot keys of every worker, in both protocol versions, whatever bytes the keys contain.

Method: a real server with two workers. Pipelines over several connections, which the server distributes to both
workers, make known traffic; then HEAT is read until it shows this traffic. The tests assert nothing about the time
that this takes, nor about absolute rates: they compare names, orders, shares and bounds.
"""

import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

from redis.crc import key_slot

import resp
import servers
from checks import heap_bytes, memory_slack, MIB, wait_for

SANITIZERS = ("address",)  # tests/unit/test_heat_threads.c covers threads

KEY = "key ops ops_low reads writes bytes p99_us share partition slot".split()
PREFIX = "prefix ops ops_low reads writes bytes p99_us share".split()
SLOT = "slot ops ops_low reads writes bytes p99_us share partition".split()
PARTITION = ("id address state ops reads writes bytes load inflight queued p50_us p99_us errors "
             "commit_p99_us memory slots top_key top_key_share cpu clients replicas replica_lag "
             "replica_lag_bytes slots_cpu net_in net_out reason").split()
SECOND = "id ops reads writes bytes p99_us errors".split()
REAL = {"share", "load", "errors", "top_key_share", "total_s", "cpu", "slots_cpu"}
TEXT = {"key", "prefix", "id", "address", "slots", "top_key", "window", "hash", "state",
        "reason"}

CONNECTIONS = 4
PARTITIONS = 4
RANGES, SLOTS = 256, 16384


def pairs(reply):
    """A map (in RESP2 a flat array) as names and replies, in order."""
    return list(zip((item.text.decode() for item in reply.items[::2]), reply.items[1::2]))


def row(reply):
    """A row as a dictionary: numbers as numbers, other values as bytes."""
    fields = {}
    for name, value in pairs(reply):
        fields[name] = (float(value.text) if name in REAL else
                        value.text if name in TEXT else value.number())
    return fields


def rows(reply):
    return [row(item) for item in reply.items]


class HeatCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = servers.Heatsink("--workers", "2", "--partitions", str(PARTITIONS),
                                      "--sync", "off")
        cls.addClassCleanup(cls.server.close)

    def setUp(self):
        self.watcher = self.connect()
        self.clients = [self.connect() for _ in range(CONNECTIONS)]
        self.assertEqual(self.watcher.call("FLUSHALL").raw, b"+OK\r\n")
        self.assertEqual(self.heat("RESET").raw, b"+OK\r\n")

    def connect(self):
        connection = resp.Connection(self.server.port, guard_s=servers.GUARD_S)
        self.addCleanup(connection.close)
        return connection

    def heat(self, *args):
        return self.watcher.call("HEAT", *args)

    def pipeline(self, *requests, clients=None):
        """Sends the same requests on every connection before it reads the first reply."""
        data = b"".join(resp.encode(*request) for request in requests)
        clients = clients or self.clients
        for client in clients:
            client.send(data)
        for client in clients:
            for _ in requests:
                client.read()

    def until(self, what, ask, good, traffic=None):
        """Repeats ask() until good() accepts the answer, with the traffic (if any) before each time."""
        found = []

        def look():
            if traffic:
                self.pipeline(*traffic)
            found[:] = [ask()]
            return good(found[0])
        wait_for(self, what, look)
        return found[0]


class Keys(HeatCase):
    def test_a_hot_key_is_found_on_both_workers(self):
        # Interleaved, so that all counts decay alike.
        traffic = [("GET", "{p}hot"), ("GET", "{p}hot"), ("SET", "{p}hot", "1"),
                   ("GET", "{p}other")] * 100
        found = self.until("both workers have it",
                           lambda: row(self.heat("KEY", "{p}hot")),
                           lambda answer: answer["workers"] == 2 and answer["ops_low_long"] > 0,
                           traffic)
        self.assertEqual(found["tracked"], 1)
        self.assertEqual(found["key"], b"{p}hot")
        self.assertEqual(found["slot"], key_slot(b"p"))
        for window in ("short", "long"):
            self.assertLessEqual(found["ops_low_" + window], found["ops_" + window])
            self.assertLessEqual(found["bytes_" + window], found["bytes_high_" + window])

        def top():
            return rows(self.heat("TOP", "WINDOW", "long"))
        # A server that was paused misjudges its rates until more traffic has come.
        first, second = self.until(
            "both keys are shown with their shares", top, lambda rows: len(rows) == 2 and
            abs(rows[0]["share"] - 0.75) <= 0.1 and abs(rows[1]["share"] - 0.25) <= 0.1, traffic)
        self.assertEqual([first["key"], second["key"]], [b"{p}hot", b"{p}other"])
        self.assertAlmostEqual(first["writes"] / (first["reads"] + first["writes"]), 1 / 3, delta=0.1)
        self.assertEqual(second["writes"], 0)
        self.assertEqual(first["partition"], key_slot(b"p") * PARTITIONS // SLOTS)
        for found in (first, second):
            self.assertGreater(found["ops_low"], 0)
            self.assertLessEqual(found["ops_low"], found["ops"])
            self.assertAlmostEqual(found["reads"] + found["writes"], found["ops_low"],
                                   delta=2 + found["ops_low"] * 0.01)
            self.assertGreater(found["bytes"], found["ops_low"])
            self.assertGreater(found["p99_us"], 0)

    def test_shapes_in_both_dialects(self):
        tables = (("TOP", KEY), ("PREFIXES", PREFIX), ("SLOTS", SLOT), ("PARTITIONS", PARTITION))
        for command, names in tables:
            asked = (command, "WINDOW", "long")
            self.until("something to show", lambda: self.heat(*asked),
                       lambda reply: len(reply.items) > 0, [("GET", "a:b")] * 100)
            for dialect in ("2", "3"):
                self.assertFalse(self.watcher.call("HELLO", dialect).is_error)
                reply = self.heat(*asked)
                self.assertEqual(chr(reply.kind), "*")
                self.assertGreater(len(reply.items), 0)
                for item in reply.items:
                    self.assertEqual(chr(item.kind), "%" if dialect == "3" else "*")
                    self.assertEqual([name for name, _ in pairs(item)], names)
                    self.check_kinds(item, dialect)

    def check_kinds(self, item, dialect):
        for name, value in pairs(item):
            wanted = "$" if name in TEXT else ":"
            if name in REAL:
                wanted = "," if dialect == "3" else "$"
                self.assertRegex(value.text, rb"^[0-9]+(\.[0-9]{1,4})?$")
            self.assertEqual(chr(value.kind), wanted, name)

    def test_one_key_in_both_dialects(self):
        for dialect in ("2", "3"):
            self.watcher.call("HELLO", dialect)
            reply = self.heat("KEY", "nobody:asked")
            self.assertEqual(chr(reply.kind), "%" if dialect == "3" else "*")
            self.check_kinds(reply, dialect)
            answer = row(reply)
            self.assertEqual(list(answer)[:4], ["key", "tracked", "slot", "partition"])
            self.assertEqual(answer["key"], b"nobody:asked")
            self.assertEqual(answer["slot"], key_slot(b"nobody:asked"))
            for name in ("tracked", "workers", "ops_low_long", "share", "total_reads", "total_s"):
                self.assertEqual(answer[name], 0, name)

    def test_counts_by_and_prefixes_of_names(self):
        self.watcher.call("SET", "taken", "x")
        self.watcher.call("SET", "large", "x" * 100000)
        traffic = ([("GET", "missing")] * 5 + [("SETNX", "taken", "y")] * 4 +
                   [("GET", "large")] + [("SET", "written", "1")] * 20 + [("STRLEN", "taken")] * 30)

        def first(*words):
            found = rows(self.heat("TOP", "COUNT", "1", "WINDOW", "long", *words))
            self.assertLessEqual(len(found), 1)
            return found[0]["key"] if found else None
        for by, key in (("misses", b"missing"), ("conflicts", b"taken"), ("bytes", b"large"),
                        ("writes", b"written"), ("reads", b"taken"), ("ops", b"taken")):
            for word in (by, by.upper()):
                self.until("first by " + by, lambda: first("by", word),
                           lambda found: found == key, traffic)
        for by in ("misses", "conflicts"):
            found = rows(self.heat("TOP", "COUNT", "1", "WINDOW", "long", "BY", by))
            self.assertGreater(found[0][by], 0, "what it is sorted by is in it")
            self.assertNotIn(by, rows(self.heat("TOP", "COUNT", "1", "WINDOW", "long"))[0])
        self.until("one by latency", lambda: first("BY", "latency"),
                   lambda found: found is not None, traffic)
        self.until("the largest of some", lambda: first("PREFIX", "mis"),
                   lambda found: found == b"missing", traffic)
        self.assertIsNone(first("PREFIX", "nosuch"))
        everything = rows(self.heat("TOP", "WINDOW", "long", "PREFIX", ""))
        self.assertEqual({found["key"] for found in everything},
                         {b"missing", b"taken", b"large", b"written"})
        answer = row(self.heat("KEY", "missing"))
        self.assertGreater(answer["misses_long"], 0)
        self.assertEqual(answer["conflicts_long"], 0)
        self.assertGreater(row(self.heat("KEY", "taken"))["conflicts_long"], 0)

    def test_each_key_of_a_command_counts(self):
        # Each key counts for itself and for the partition, so each of the four has a quarter.
        found = self.until("all four", lambda: rows(self.heat("TOP", "WINDOW", "long")),
                           lambda found: len(found) == 4,
                           [("MGET", "{t}a", "{t}b", "{t}c"), ("GET", "{t}d")] * 50)
        self.assertEqual({row["key"] for row in found}, {b"{t}a", b"{t}b", b"{t}c", b"{t}d"})
        for one in found:
            self.assertAlmostEqual(one["share"], 0.25, delta=0.05)
            self.assertEqual(one["writes"], 0)
        # The same holds for keys on several partitions.
        self.heat("RESET")
        found = self.until("all three", lambda: rows(self.heat("TOP", "WINDOW", "long")),
                           lambda found: len(found) == 3, [("MGET", "one", "two", "three")] * 50)
        self.assertEqual({row["key"] for row in found}, {b"one", b"two", b"three"})

    def test_any_bytes_are_names(self):
        names = [b"", b"new\nline\r\n", b"\"quotes\" and 'more'", b"nul\0inside", b"\xff\xfe\x80",
                 b"back\\slash", "grün✓".encode(), b" ", b"{}", b":"]
        found = self.until("all of them", lambda: rows(self.heat("TOP", "COUNT", "100")),
                           lambda found: len(found) == len(names),
                           [("GET", name) for name in names] * 20)
        self.assertEqual({row["key"] for row in found}, set(names))
        for name in names:
            answer = row(self.heat("KEY", name))
            self.assertEqual((answer["key"], answer["tracked"]), (name, 1))

    def test_long_keys_are_cut_and_distinguished(self):
        names = [b"x" * 65535 + last for last in (b"1", b"2")] + [b"y" * 80, b"z" * 81]
        found = self.until("all of them", lambda: rows(self.heat("TOP")),
                           lambda found: len(found) == len(names),
                           [("GET", name) for name in names] * 5)
        shown = {row["key"] for row in found}
        for name in names:
            answer = row(self.heat("KEY", name))
            if len(name) > 80:
                self.assertEqual(answer["key"], name[:80] + "…(%d bytes, #%s)".encode() % (
                    len(name), answer["hash"]))
            else:
                self.assertEqual(answer["key"], name)
            self.assertIn(answer["key"], shown)
        self.assertEqual(len(shown), len(names))

    def test_many_cold_keys_hide_no_hot_key(self):
        total, batch = 120000, 10000
        before = heap_bytes(self.server)
        for start in range(0, total, batch):
            requests = [("GET", "crowd:%d" % at) for at in range(start, start + batch)]
            requests[::20] = [("GET", "star")] * len(requests[::20])
            self.pipeline(*requests, clients=[self.clients[start // batch % CONNECTIONS]])
        self.assertLess(heap_bytes(self.server) - before, 16 * MIB * memory_slack())
        found = rows(self.heat("TOP", "COUNT", "1000", "WINDOW", "long"))
        self.assertEqual(found[0]["key"], b"star")
        self.assertLess(len(found), 1000)
        for one in found:
            self.assertLessEqual(one["ops_low"], one["ops"])
            self.assertTrue(0 <= one["share"] <= 1, one)
        prefix = rows(self.heat("PREFIXES", "WINDOW", "long"))[0]
        self.assertEqual(prefix["prefix"], b"crowd:")
        self.assertGreater(prefix["share"], 0.85)
        self.assertEqual(row(self.heat("KEY", "crowd:never"))["ops_low_long"], 0)


class Fleet(HeatCase):
    def test_a_tenant_is_one_line(self):
        traffic = [("GET", "tenant7:user:%d" % at) for at in range(1000)] + [("GET", "x")] * 10
        found = self.until("the tenant", lambda: rows(self.heat("PREFIXES", "WINDOW", "long")),
                           lambda found: len(found) == 2 and
                           all(prefix["share"] > 0.9 for prefix in found), traffic)
        self.assertEqual({row["prefix"] for row in found}, {b"tenant7:", b"tenant7:user:"})
        for prefix in found:
            self.assertLessEqual(prefix["ops_low"], prefix["ops"])
        for key in rows(self.heat("TOP", "WINDOW", "long", "PREFIX", "tenant7:")):
            self.assertLess(key["share"], 0.2)

    def test_slots(self):
        traffic = [("GET", "{tag}%d" % (at % 7)) for at in range(300)] + [("GET", "else")] * 50
        found = self.until("both slots", lambda: rows(self.heat("SLOTS", "WINDOW", "long")),
                           lambda found: len(found) == 2, traffic)
        self.assertEqual([row["slot"] for row in found], [key_slot(b"tag"), key_slot(b"else")])
        self.assertEqual(found[0]["partition"], key_slot(b"tag") * PARTITIONS // SLOTS)
        self.assertEqual(len(rows(self.heat("SLOTS", "COUNT", "1", "BY", "reads"))), 1)

    def test_partitions_add_up_and_the_median_is_last(self):
        tags = {}  # a hash tag for each partition
        for at in range(1000):
            tags.setdefault(key_slot(b"%d" % at) * PARTITIONS // SLOTS, b"{%d}" % at)
        self.assertEqual(len(tags), PARTITIONS)
        traffic = []
        for at in range(100):
            for partition in range(PARTITIONS):
                traffic += [("SET" if at % 4 == 0 else "GET", tags[partition] + b"k",
                             *([b"v"] if at % 4 == 0 else []))] * (partition + 1)

        def ask():
            return rows(self.heat("PARTITIONS", "WINDOW", "long"))
        found = self.until("all have a top key", ask, lambda found: all(
            row["top_key"] and row["top_key_share"] > 0.9 for row in found[:-1]), traffic)
        self.assertEqual([row["id"] for row in found],
                         [b"%d" % at for at in range(PARTITIONS)] + [b"median"])
        self.assertAlmostEqual(sum(row["load"] for row in found[:-1]), PARTITIONS, delta=0.01)
        for partition, one in enumerate(found[:-1]):
            self.assertAlmostEqual(one["load"], (partition + 1) * PARTITIONS / 10, delta=0.1)
            self.assertEqual(one["top_key"], tags[partition] + b"k")
            self.assertAlmostEqual(one["reads"] + one["writes"], one["ops"], delta=2)
            self.assertAlmostEqual(one["writes"] / one["ops"], 0.25, delta=0.05)
            self.assertGreater(one["memory"], 0)
            self.assertGreaterEqual(one["p99_us"], one["p50_us"])
            first, last = (int(slot) for slot in one["slots"].split(b"-"))
            self.assertTrue(first <= key_slot(tags[partition]) <= last)
            self.assertEqual((one["state"], one["reason"]), (b"ok", b""))
        ops = sorted(row["ops"] for row in found[:-1])
        self.assertAlmostEqual(found[-1]["ops"], (ops[1] + ops[2]) / 2, delta=1)
        for name in ("address", "slots", "top_key", "state", "reason"):
            self.assertEqual(found[-1][name], b"")
        self.assertEqual(sum(int(row["slots"].split(b"-")[1]) - int(row["slots"].split(b"-")[0]) + 1
                             for row in found[:-1]), SLOTS)

    def test_commits_are_timed(self):
        self.until("commits", lambda: rows(self.heat("PARTITIONS", "WINDOW", "long")),
                   lambda found: any(row["commit_p99_us"] > 0 for row in found[:-1]),
                   [("SET", "k", "v")] * 10)

    def test_errors_are_counted(self):
        self.until("errors", lambda: rows(self.heat("PARTITIONS", "WINDOW", "long")),
                   lambda found: found[key_slot(b"k") * PARTITIONS // SLOTS]["errors"] > 0,
                   [("SET", "k", "text"), ("INCR", "k")] * 10)

    def test_the_window_follows_the_traffic(self):
        def window():
            return row(self.heat("KEY", "k"))["window"]

        def window_at_the_end():
            # One pipeline: HEAT follows the traffic directly, however slowly the test reads.
            times = 8000
            self.watcher.send(resp.encode("GET", "k") * times + resp.encode("HEAT", "KEY", "k"))
            for _ in range(times):
                self.watcher.read()
            return row(self.watcher.read())["window"]
        self.assertEqual(window(), b"long")
        self.until("enough for the short window", window_at_the_end,
                   lambda found: found == b"short")
        self.until("too little again", window, lambda found: found == b"long")
        # An explicit WINDOW is obeyed: the short window has cooled, the long one has not.
        self.until("the short window has cooled",
                   lambda: rows(self.heat("TOP", "WINDOW", "short")), lambda found: found == [])
        for words in ((), ("WINDOW", "long"), ("window", "LONG")):
            self.assertEqual([row["key"] for row in rows(self.heat("TOP", *words))], [b"k"])

    def test_reset_forgets(self):
        self.until("heat", lambda: rows(self.heat("TOP")), lambda found: len(found) == 1,
                   [("GET", "a:b")] * 100)
        self.until("history", lambda: self.heat("HISTORY", "TOP"),
                   lambda reply: len(reply.items) > 0)
        self.assertEqual(self.heat("RESET").raw, b"+OK\r\n")
        for command in ("TOP", "PREFIXES", "SLOTS"):
            self.assertEqual(self.heat(command, "WINDOW", "long").raw, b"*0\r\n")
        for one in rows(self.heat("PARTITIONS", "WINDOW", "long")):
            self.assertEqual((one["ops"], one["load"], one["top_key"]), (0, 0, b""))
        self.assertEqual(row(self.heat("KEY", "a:b"))["tracked"], 0)
        # A second of history may end at any moment; none may contain traffic from before RESET.
        for second in self.heat("HISTORY", "TOP").items:
            self.assertNotIn(b"a:b", second.raw)
        for second in self.heat("HISTORY", "PARTITIONS").items:
            for one in rows(dict(pairs(second))["partitions"]):
                self.assertEqual(one["ops"], 0)
        for second in self.heat("HISTORY", "RANGES").items:
            self.assertEqual({item.number() for item in dict(pairs(second))["ranges"].items}, {0})
        # Counting goes on after RESET.
        self.until("heat again", lambda: rows(self.heat("TOP")),
                   lambda found: [row["key"] for row in found] == [b"new"], [("GET", "new")] * 100)


class History(HeatCase):
    def seconds(self, *args):
        return [dict(pairs(item)) for item in self.heat("HISTORY", *args).items]

    def test_partitions(self):
        here = key_slot(b"k") * PARTITIONS // SLOTS
        found = self.until("a second with traffic", lambda: self.seconds("PARTITIONS"),
                           lambda found: any(rows(second["partitions"])[here]["reads"] > 0
                                             for second in found), [("GET", "k")] * 100)
        for second in found:
            self.assertEqual(list(second), ["time", "partitions"])
            for at, item in enumerate(second["partitions"].items):
                self.assertEqual([name for name, _ in pairs(item)], SECOND)
                one = row(item)
                self.assertEqual(one["id"], b"%d" % at)
                self.assertAlmostEqual(one["ops"], one["reads"] + one["writes"], delta=1)
                if at != here:
                    self.assertEqual(one["ops"], 0)
            self.assertEqual(len(second["partitions"].items), PARTITIONS)

    def test_times_go_up_and_seconds_limit(self):
        found = self.until("three seconds", lambda: self.seconds("PARTITIONS", "SECONDS", "600"),
                           lambda found: len(found) >= 3)
        times = [second["time"].number() for second in found]
        self.assertEqual(times, sorted(set(times)))
        now = int(self.watcher.call("TIME").items[0].text)
        self.assertTrue(times[0] <= times[-1] <= now)
        self.assertEqual(len(self.seconds("PARTITIONS", "SECONDS", "1")), 1)
        self.assertEqual(len(self.seconds("ranges", "seconds", "2")), 2)

    def test_top(self):
        found = self.until("a second with the key", lambda: self.seconds("TOP", "SECONDS", "600"),
                           lambda found: any(second["keys"].items for second in found),
                           [("GET", "k")] * 100)
        for second in found:
            self.assertEqual(list(second), ["time", "window", "keys"])
            self.assertIn(second["window"].text, (b"short", b"long"))
            for item in second["keys"].items:
                self.assertEqual([name for name, _ in pairs(item)], KEY)
                self.assertEqual(row(item)["key"], b"k")

    def test_ranges(self):
        def ranges(second):
            return [item.number() for item in second["ranges"].items]
        found = self.until("a second with traffic", lambda: self.seconds("RANGES"),
                           lambda found: any(any(ranges(second)) for second in found),
                           [("GET", "k")] * 100)
        for second in found:
            self.assertEqual(list(second), ["time", "ranges"])
            self.assertEqual(len(ranges(second)), RANGES)
            for at, ops in enumerate(ranges(second)):
                if at != key_slot(b"k") // (SLOTS // RANGES):
                    self.assertEqual(ops, 0)

    def test_in_maps(self):
        self.until("a second", lambda: self.seconds("TOP"), lambda found: len(found) > 0)
        self.watcher.call("HELLO", "3")
        for history in ("PARTITIONS", "TOP", "RANGES"):
            for item in self.heat("HISTORY", history).items:
                self.assertEqual(chr(item.kind), "%")


class Words(HeatCase):
    def test_errors_are_reported(self):
        by = "it must be ops, reads, writes, bytes, latency, misses or conflicts. Try HEAT HELP."
        window = "it must be short or long. Try HEAT HELP."
        count = "it must be a number from 1 to 1000"
        seconds = "it must be a number from 1 to 600"
        known = "; allowed are "
        for request, wanted in (
                ("TOP nosuch", "HEAT TOP: unknown word 'nosuch'%sCOUNT, BY, WINDOW, PREFIX. Try HEAT HELP." % known),
                ("TOP COUNT 5 SECONDS 5",
                 "HEAT TOP: unknown word 'SECONDS'%sCOUNT, BY, WINDOW, PREFIX. Try HEAT HELP." % known),
                ("PREFIXES PREFIX a", "HEAT PREFIXES: unknown word 'PREFIX'%sCOUNT, BY, WINDOW. Try HEAT HELP." % known),
                ("SLOTS PREFIX a", "HEAT SLOTS: unknown word 'PREFIX'%sCOUNT, BY, WINDOW. Try HEAT HELP." % known),
                ("PARTITIONS COUNT 1", "HEAT PARTITIONS: unknown word 'COUNT'%sWINDOW. Try HEAT HELP." % known),
                ("HISTORY TOP COUNT 1", "HEAT HISTORY: unknown word 'COUNT'%sSECONDS. Try HEAT HELP." % known),
                ("TOP COUNT", "HEAT TOP: COUNT needs a value"),
                ("SLOTS BY ops WINDOW", "HEAT SLOTS: WINDOW needs a value"),
                ("TOP COUNT 1 count 2", "HEAT TOP: COUNT is given twice"),
                ("TOP BY nosuch", "HEAT TOP: BY is 'nosuch'; " + by),
                ("PREFIXES BY \n\"", "HEAT PREFIXES: BY is '\\n\\\"'; " + by),
                ("TOP WINDOW medium", "HEAT TOP: WINDOW is 'medium'; " + window),
                ("PARTITIONS WINDOW 1", "HEAT PARTITIONS: WINDOW is '1'; " + window),
                ("TOP COUNT 0", "HEAT TOP: COUNT is '0'; " + count),
                ("TOP COUNT -1", "HEAT TOP: COUNT is '-1'; " + count),
                ("TOP COUNT 1001", "HEAT TOP: COUNT is '1001'; " + count),
                ("TOP COUNT 1e3", "HEAT TOP: COUNT is '1e3'; " + count),
                ("TOP COUNT 99999999999999999999",
                 "HEAT TOP: COUNT is '99999999999999999999'; " + count),
                ("HISTORY nosuch", "HEAT HISTORY: the first word is 'nosuch'; "
                 "it must be partitions, top or ranges. Try HEAT HELP."),
                ("HISTORY TOP SECONDS 0", "HEAT HISTORY: SECONDS is '0'; " + seconds),
                ("HISTORY TOP SECONDS 601", "HEAT HISTORY: SECONDS is '601'; " + seconds),
                ("KEY", "wrong number of arguments for 'heat|key' command. Try HEAT HELP."),
                ("KEY a b", "wrong number of arguments for 'heat|key' command. Try HEAT HELP."),
                ("HISTORY", "wrong number of arguments for 'heat|history' command. Try HEAT HELP."),
                ("RESET now", "wrong number of arguments for 'heat|reset' command. Try HEAT HELP."),
                ("TOP CONT 5", "HEAT TOP: unknown word 'CONT'; did you mean COUNT? allowed are "
                 "COUNT, BY, WINDOW, PREFIX. Try HEAT HELP."),
                ("TOP BY readz", "HEAT TOP: BY is 'readz'; did you mean reads? " + by),
                ("tpo", "unknown subcommand 'tpo'. Did you mean HEAT TOP? Try HEAT HELP."),
                ("mitigaet", "unknown subcommand 'mitigaet'. Did you mean HEAT MITIGATE? "
                 "Try HEAT HELP."),
                ("xyzzyxyzzy", "unknown subcommand 'xyzzyxyzzy'. Try HEAT HELP.")):
            with self.subTest(request):
                reply = self.heat(*request.split(" "))
                self.assertEqual(reply.raw, b"-ERR %s\r\n" % wanted.encode())
        self.assertEqual(self.watcher.call("HEAT").raw, b"-ERR wrong number of arguments for 'heat' "
                         b"command. Try HEAT HELP.\r\n")

    def test_a_word_of_any_length_makes_a_short_error(self):
        for word in ("BY", "COUNT", "WINDOW", "x"):
            reply = self.heat("TOP", word, b"\xff" * 1000000)
            self.assertTrue(reply.is_error)
            self.assertLess(len(reply.raw), 300)
        self.assertTrue(self.heat("TOP", b"\0" * 1000000).is_error)

    def test_largest_count(self):
        for request in ("TOP COUNT 1000", "PREFIXES COUNT 1000", "SLOTS count 1000 by OPS",
                        "HISTORY ranges SECONDS 600"):
            self.assertFalse(self.heat(*request.split()).is_error, request)

    def test_help(self):
        lines = [item.text.decode() for item in self.heat("HELP").items]
        for word in ("TOP", "PREFIXES", "SLOTS", "PARTITIONS", "KEY", "HISTORY", "RESET", "HELP"):
            self.assertTrue(any(line.startswith(word) for line in lines), word)

    def test_in_a_transaction(self):
        self.watcher.call("MULTI")
        self.assertEqual(self.heat("TOP").raw, b"+QUEUED\r\n")
        self.assertEqual(self.heat("PLAN").raw, b"+QUEUED\r\n")
        self.assertEqual([item.is_error for item in self.watcher.call("EXEC").items],
                         [False, False])

    def test_redis_cli_shows_it(self):
        self.until("heat", lambda: rows(self.heat("TOP", "WINDOW", "long")),
                   lambda found: len(found) == 1, [("GET", "seen:by:cli")] * 100)
        shown = subprocess.run(["redis-cli", "-p", str(self.server.port), "HEAT", "TOP"],
                               capture_output=True, text=True, check=True,
                               timeout=servers.GUARD_S).stdout
        self.assertIn("seen:by:cli", shown)


if __name__ == "__main__":
    unittest.main()
