"""Goal: HOTKEYS works as tools written for Redis 8.6 expect, and redis-cli --hotkeys works.

Method: raw connections, so that types and the order of fields are checked as on the wire, in RESP2 and in RESP3. One
key gets many requests, one has a large value, one takes long to answer: each must lead its list. Sums are compared
with the bytes that the test has sent and received: a request counts with its arguments behind the name, and with its
reply.
"""

import os
import re
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import resp
import servers
from cases import ServerCase
from checks import KIB, MIB, wait_for

SANITIZERS = ("address",)  # one client at a time: no data race is possible

BASE = ["tracking-active", "sample-ratio", "selected-slots", "all-commands-all-slots-us",
        "net-bytes-all-commands-all-slots", "collection-start-time-unix-ms",
        "collection-duration-ms"]
CPU = ["total-cpu-time-user-ms", "total-cpu-time-sys-ms"]


def value_of(reply):
    """A reply as numbers, bytes and lists."""
    if reply.items is not None:
        return [value_of(item) for item in reply.items]
    return reply.number() if reply.kind == ord(":") else reply.text


def session(reply):
    """The fields of the single map in the reply."""
    fields = value_of(reply)[0]
    return {name.decode(): value for name, value in zip(fields[::2], fields[1::2])}


def pairs(flat):
    return list(zip(flat[::2], flat[1::2]))


class Case(ServerCase):
    args = ("--workers", "2", "--sync", "off")

    def setUp(self):
        self.connection = self.connect()
        self.connection.call("HOTKEYS", "STOP")
        self.assert_ok("HOTKEYS", "RESET")

    def call(self, *args):
        return self.connection.call(*args)

    def assert_ok(self, *args):
        self.assert_reply(self.connection, b"+OK\r\n", *args)

    def assert_error(self, text, *args):
        self.assert_reply(self.connection, b"-%s\r\n" % text.encode(), *args)

    def start(self, *args):
        self.assert_ok("HOTKEYS", "START", *args)

    def get(self):
        return session(self.call("HOTKEYS", "GET"))

    def repeat(self, times, *args):
        """Repeats a request in pipelines; returns the number of bytes that HOTKEYS must count."""
        request, received, left = resp.encode(*args), 0, times
        while left:
            batch = min(left, 100)
            self.connection.send(request * batch)
            for _ in range(batch):
                received += len(self.connection.read().raw)
            left -= batch
        return sum(len(arg) for arg in args[1:]) * times + received


class Arguments(Case):

    def test_errors_of_start(self):
        required = "ERR METRICS parameter is required"
        count = "ERR METRICS count must be > 0 and <= 2"
        mismatch = "ERR METRICS count does not match number of metric types provided"
        none = "ERR METRICS no valid metrics passed. Supported: CPU|NET"
        top = "ERR COUNT must be between 1 and 64"
        duration = "ERR DURATION must be between 1 and 1000000"
        sample = "ERR SAMPLE ratio must be positive"
        slots = "ERR SLOTS count must be between 1 and 16384"
        few = "ERR not enough slot numbers provided"
        slot = "ERR Invalid or out of range slot"
        for text, args in (
                (required, ""), (required, "METRICS"), (required, "COUNT 5"),
                (required, "COUNT 5 METRICS 1 CPU"),
                (count, "METRICS 0"), (count, "METRICS -1 CPU"), (count, "METRICS 3 CPU NET"),
                (count, "METRICS CPU"), (count, "METRICS 99999999999999999999 CPU"),
                (mismatch, "METRICS 1"), (mismatch, "METRICS 2 CPU"),
                (none, "METRICS 1 GPU"), (none, "METRICS 2 GPU DISK"),
                ("ERR METRICS CPU defined more than once!", "METRICS 2 CPU cpu"),
                ("ERR METRICS NET defined more than once!", "METRICS 2 NET NET"),
                ("ERR syntax error", "METRICS 1 CPU NET"),
                ("ERR syntax error", "METRICS 1 CPU COUNT"),
                ("ERR syntax error", "METRICS 1 CPU COUNT 5 x"),
                ("ERR syntax error", "METRICS 1 CPU METRICS 1 NET"),
                (top, "METRICS 1 CPU COUNT 0"), (top, "METRICS 1 CPU COUNT 65"),
                (top, "METRICS 1 CPU COUNT x"),
                (duration, "METRICS 1 CPU DURATION 0"),
                (duration, "METRICS 1 CPU DURATION 1000001"),
                (duration, "METRICS 1 CPU DURATION 1.5"),
                (sample, "METRICS 1 CPU SAMPLE 0"), (sample, "METRICS 1 CPU SAMPLE -3"),
                (sample, "METRICS 1 CPU SAMPLE 2147483648"),
                (slots, "METRICS 1 CPU SLOTS 0"), (slots, "METRICS 1 CPU SLOTS 16385 1"),
                (few, "METRICS 1 CPU SLOTS 1"), (few, "METRICS 1 CPU SLOTS 3 1 2"),
                (slot, "METRICS 1 CPU SLOTS 1 16384"), (slot, "METRICS 1 CPU SLOTS 2 -1 0"),
                (slot, "METRICS 1 CPU SLOTS 3 7 7 x"), (slot, "METRICS 1 CPU SLOTS 2 1 COUNT 5"),
                ("ERR duplicate slot number", "METRICS 1 CPU SLOTS 3 7 8 7"),
                ("ERR SLOTS parameter already specified", "METRICS 1 CPU SLOTS 1 0 SLOTS 1 5")):
            with self.subTest(args):
                self.assert_error(text, "HOTKEYS", "START", *args.split())
        self.assertTrue(self.call("HOTKEYS", "GET").is_null)

    def test_number_of_arguments(self):
        self.assert_error("ERR wrong number of arguments for 'hotkeys' command", "HOTKEYS")
        for name in ("get", "stop", "reset"):
            self.assert_error("ERR wrong number of arguments for 'hotkeys|%s' command" % name,
                              "HOTKEYS", name, "x")
        self.assertTrue(self.call("HOTKEYS", "WHAT").raw.startswith(b"-ERR unknown subcommand"))
        self.assertIn(b"START METRICS", self.call("HOTKEYS", "HELP").raw)

    def test_words_in_any_case_and_order(self):
        self.start("metrics", "2", "net", "CPU", "sample", "2147483647", "duration", "1000000",
                   "count", "64")
        self.assertEqual(self.get()["sample-ratio"], 2147483647)

    def test_the_last_of_an_option_counts(self):
        self.start("METRICS", "1", "NET", "COUNT", "5", "COUNT", "1")
        for key in ("a", "b", "c"):
            self.call("SET", key, "1")
        wait_for(self, "a key shows", lambda: self.get()["by-net-bytes"])
        self.assertEqual(len(pairs(self.get()["by-net-bytes"])), 1)

    def test_a_metric_of_a_later_redis_is_ignored(self):
        self.start("METRICS", "2", "GPU", "NET")
        self.assertEqual(list(self.get()), BASE + ["total-net-bytes", "by-net-bytes"])


class Life(Case):

    def test_nothing_started(self):
        self.assert_reply(self.connection, b"$-1\r\n", "HOTKEYS", "GET")
        self.assert_reply(self.connection, b"$-1\r\n", "HOTKEYS", "STOP")
        self.assert_ok("HOTKEYS", "RESET")
        self.call("HELLO", "3")
        self.assert_reply(self.connection, b"_\r\n", "HOTKEYS", "GET")
        self.assert_reply(self.connection, b"_\r\n", "HOTKEYS", "STOP")

    def test_one_at_a_time(self):
        self.start("METRICS", "1", "CPU")
        self.assert_error("ERR hotkey tracking session already in progress",
                          "HOTKEYS", "START", "METRICS", "1", "NET")
        # Redis checks this before all arguments.
        self.assert_error("ERR hotkey tracking session already in progress", "HOTKEYS", "START")
        self.assert_error("ERR hotkey tracking session in progress, stop tracking first",
                          "HOTKEYS", "RESET")
        # All connections see the same session.
        other = self.connect()
        self.assert_reply(other, b"+OK\r\n", "HOTKEYS", "STOP")
        self.assertEqual(self.get()["tracking-active"], 0)
        self.assert_reply(self.connection, b"$-1\r\n", "HOTKEYS", "STOP")

    def test_stop_keeps_and_reset_drops(self):
        self.start("METRICS", "2", "CPU", "NET")
        self.repeat(500, "SET", "kept", "1")
        wait_for(self, "the key shows", lambda: self.get()["by-net-bytes"])
        self.assert_ok("HOTKEYS", "STOP")
        before = self.call("HOTKEYS", "GET")
        self.assertEqual(session(before)["tracking-active"], 0)
        self.assertEqual(session(before)["by-net-bytes"][0], b"kept")
        self.repeat(500, "SET", "late", "1")
        self.assertEqual(self.call("HOTKEYS", "GET").raw, before.raw)
        self.assert_ok("HOTKEYS", "RESET")
        self.assert_reply(self.connection, b"$-1\r\n", "HOTKEYS", "GET")

    def test_a_new_start_begins_with_nothing(self):
        self.start("METRICS", "1", "NET")
        self.repeat(500, "SET", "first", "1")
        self.assert_ok("HOTKEYS", "STOP")
        self.start("METRICS", "1", "NET")
        found = self.get()
        self.assertEqual(found["by-net-bytes"], [])
        self.assertEqual(found["total-net-bytes"], 0)

    def test_duration_ends_it(self):
        self.start("METRICS", "1", "NET", "DURATION", "1")
        wait_for(self, "the end", lambda: self.get()["tracking-active"] == 0)
        found = self.call("HOTKEYS", "GET")
        self.assertEqual(session(found)["collection-duration-ms"], 1000)
        self.repeat(500, "SET", "late", "1")
        self.assertEqual(self.call("HOTKEYS", "GET").raw, found.raw)
        self.assert_reply(self.connection, b"$-1\r\n", "HOTKEYS", "STOP")
        self.start("METRICS", "1", "CPU")


class Shape(Case):

    def assert_shape(self, reply, resp3, names):
        """The reply is an array of one map with integers, and arrays for slots and keys."""
        self.assertEqual(reply.kind, ord("*"))
        self.assertEqual(len(reply.items), 1)
        fields = reply.items[0]
        self.assertEqual(fields.kind, ord("%" if resp3 else "*"))
        self.assertEqual([name.text.decode() for name in fields.items[::2]], names)
        for name, value in zip(fields.items[::2], fields.items[1::2]):
            self.assertEqual(name.kind, ord("$"))
            if name.text == b"selected-slots":
                self.assertEqual(value.kind, ord("*"))
                self.assertTrue(all(run.kind == ord("*") for run in value.items))
            elif name.text.startswith(b"by-"):
                # A flat array in both protocol versions.
                self.assertEqual(value.kind, ord("*"))
                self.assertTrue(all(key.kind == ord("$") for key in value.items[::2]))
                self.assertTrue(all(number.kind == ord(":") for number in value.items[1::2]))
            else:
                self.assertEqual(value.kind, ord(":"))
                self.assertGreaterEqual(value.number(), 0)

    def test_fields(self):
        selected = BASE[:3] + ["all-commands-selected-slots-us", BASE[3],
                               "net-bytes-all-commands-selected-slots"] + BASE[4:]
        sampled = BASE[:3] + ["sampled-commands-selected-slots-us",
                              "all-commands-selected-slots-us", BASE[3],
                              "net-bytes-sampled-commands-selected-slots",
                              "net-bytes-all-commands-selected-slots"] + BASE[4:]
        both = CPU + ["total-net-bytes", "by-cpu-time-us", "by-net-bytes"]
        for args, names in (
                ("1 CPU", BASE + CPU + ["by-cpu-time-us"]),
                ("1 NET", BASE + ["total-net-bytes", "by-net-bytes"]),
                ("2 NET CPU", BASE + both),
                ("2 CPU NET SAMPLE 10", BASE + both),
                ("2 CPU NET SLOTS 2 0 5", selected + both),
                ("2 CPU NET SLOTS 2 0 5 SAMPLE 1", selected + both),
                ("2 CPU NET SLOTS 2 0 5 SAMPLE 10", sampled + both)):
            for resp3 in (False, True):
                with self.subTest(args, resp3=resp3):
                    self.call("HELLO", "3" if resp3 else "2")
                    self.start("METRICS", *args.split())
                    self.repeat(50, "SET", "{06S}shape", "1")
                    self.assert_shape(self.call("HOTKEYS", "GET"), resp3, names)
                    self.assert_ok("HOTKEYS", "STOP")
                    self.assert_shape(self.call("HOTKEYS", "GET"), resp3, names)

    def test_slots_are_runs(self):
        for args, runs in (("", [[0, 16383]]),
                           ("SLOTS 2 0 5", [[0], [5]]),
                           ("SLOTS 1 16383", [[16383]]),
                           ("SLOTS 5 64 62 9 63 100", [[9], [62, 64], [100]])):
            with self.subTest(args):
                self.start("METRICS", "1", "CPU", *args.split())
                self.assertEqual(self.get()["selected-slots"], runs)
                self.assert_ok("HOTKEYS", "STOP")

    def test_all_slots_can_be_chosen(self):
        self.start("METRICS", "1", "NET", "SLOTS", "16384", *range(16384))
        self.assertEqual(self.get()["selected-slots"], [[0, 16383]])

    def test_times(self):
        before_ms = time.time_ns() // 1000000
        self.start("METRICS", "1", "CPU")
        after_ms = time.time_ns() // 1000000
        self.repeat(1000, "SET", "busy", "1")
        first, second = self.get(), self.get()
        began = first["collection-start-time-unix-ms"]
        self.assertGreaterEqual(began, before_ms)
        self.assertLessEqual(began, after_ms)
        self.assertEqual(second["collection-start-time-unix-ms"], began)
        for name in ("collection-duration-ms", *CPU):
            self.assertGreaterEqual(second[name], first[name], name)


class Keys(Case):

    def found(self, field, key):
        return dict(pairs(self.get()[field])).get(key, 0)

    def test_bytes_are_counted(self):
        self.start("METRICS", "1", "NET")
        told = self.repeat(1000, "SET", "counted", "x" * 1000)
        told += self.repeat(1000, "GET", "counted")
        wait_for(self, "all requests counted", lambda: self.get()["total-net-bytes"] >= told)
        found = self.get()
        self.assertEqual(found["total-net-bytes"], told)
        self.assertEqual(found["net-bytes-all-commands-all-slots"], told)
        self.assertEqual(pairs(found["by-net-bytes"]), [(b"counted", told)])

    def test_requests_answered_before_stop_count(self):
        for _ in range(10):
            self.start("METRICS", "1", "NET")
            told = self.repeat(150, "SET", "late", "x") + self.repeat(150, "GET", "late")
            self.assert_ok("HOTKEYS", "STOP")
            self.assertEqual(self.get()["by-net-bytes"], [b"late", told])

    def test_a_heavy_key_leads_by_bytes_and_a_busy_one_follows(self):
        self.call("SET", "heavy", "x" * MIB)
        self.call("SET", "busy", "x" * KIB)
        self.call("SET", "rare", "x")
        self.start("METRICS", "1", "NET", "COUNT", "2")
        self.repeat(20, "GET", "heavy")
        self.repeat(2000, "GET", "busy")
        self.repeat(2, "GET", "rare")
        wait_for(self, "both found", lambda: len(self.get()["by-net-bytes"]) == 4)
        self.assertEqual([key for key, _ in pairs(self.get()["by-net-bytes"])],
                         [b"heavy", b"busy"])
        self.assertGreaterEqual(self.found("by-net-bytes", b"heavy"), 19 * MIB)

    def test_a_slow_key_leads_by_time(self):
        self.call("SET", "slow", b"\x55" * (4 * MIB))
        self.call("SET", "quick", "x")
        self.start("METRICS", "2", "CPU", "NET")

        def leads():
            """Times are wall-clock times: a pause of the server at the quick key delays the result."""
            for _ in range(20):
                self.call("BITCOUNT", "slow")
                self.call("GET", "quick")
            return self.get()["by-cpu-time-us"][:1] == [b"slow"] and self.found("by-net-bytes", b"quick")
        wait_for(self, "the slow key leads", leads)
        found = self.get()
        self.assertGreaterEqual(found["all-commands-all-slots-us"],
                                self.found("by-cpu-time-us", b"slow"))

    def test_earlier_requests_do_not_count(self):
        self.repeat(5000, "SET", "past", "x" * 100)
        # The key is in the table already, from a first session.
        self.start("METRICS", "1", "NET")
        self.repeat(10, "SET", "past", "x" * 100)
        wait_for(self, "the key shows", lambda: self.found("by-net-bytes", b"past"))
        self.assert_ok("HOTKEYS", "STOP")
        self.start("METRICS", "1", "NET")
        told = self.repeat(100, "SET", "past", "x" * 100)
        wait_for(self, "the key shows", lambda: self.found("by-net-bytes", b"past") >= told)
        self.assertEqual(self.found("by-net-bytes", b"past"), told)

    def test_all_workers_count(self):
        """Connections are distributed evenly, so both workers have some of these."""
        others = [self.connect() for _ in range(4)]
        self.start("METRICS", "1", "NET")
        told = 0
        for other in others:
            for _ in range(100):
                told += len("shared") + 100 + len(other.call("SET", "shared", "x" * 100).raw)
        wait_for(self, "all of them counted",
                 lambda: self.found("by-net-bytes", b"shared") >= told)
        self.assertEqual(self.found("by-net-bytes", b"shared"), told)

    def test_slots_exclude_other_keys(self):
        self.start("METRICS", "2", "CPU", "NET", "SLOTS", "1", "0", "SAMPLE", "10")
        inside = self.repeat(300, "SET", "{06S}in", "x" * 100)  # slot 0
        outside = self.repeat(900, "SET", "{zzz}out", "x" * 100)
        wait_for(self, "all of them counted", lambda:
                 self.get()["net-bytes-all-commands-all-slots"] >= inside + outside)
        found = self.get()
        self.assertEqual(found["net-bytes-all-commands-all-slots"], inside + outside)
        for field in ("by-cpu-time-us", "by-net-bytes"):
            self.assertEqual([key for key, _ in pairs(found[field])], [b"{06S}in"])
        for field in ("total-net-bytes", "net-bytes-all-commands-selected-slots",
                      "net-bytes-sampled-commands-selected-slots"):
            self.assertEqual(found[field], inside, field)
        self.assertEqual(found["sampled-commands-selected-slots-us"],
                         found["all-commands-selected-slots-us"])
        self.assertLessEqual(found["all-commands-selected-slots-us"],
                             found["all-commands-all-slots-us"])

    def test_any_bytes_are_a_key(self):
        keys = [b"with\r\nbreaks", b'"quoted"', b"\xff\xfe\x00zero", b"",
                "gr\u00fc\u00dfe".encode()]
        self.start("METRICS", "1", "NET", "COUNT", "64")
        for key in keys:
            self.repeat(50, "SET", key, "1")
        wait_for(self, "all found", lambda: len(self.get()["by-net-bytes"]) >= 2 * len(keys))
        self.assertEqual({key for key, _ in pairs(self.get()["by-net-bytes"])}, set(keys))

    def test_long_keys_stay_apart(self):
        """HOTKEYS shows the beginning of a long key, with its length and hash to identify it."""
        keys = [b"k" * 200 + b"1", b"k" * 200 + b"2"]
        self.start("METRICS", "1", "NET")
        for key in keys:
            self.repeat(50, "SET", key, "1")
        wait_for(self, "both found", lambda: len(self.get()["by-net-bytes"]) >= 4)
        shown = [key.decode() for key, _ in pairs(self.get()["by-net-bytes"])]
        self.assertEqual(len(set(shown)), 2)
        for key in shown:
            self.assertRegex(key, r"^k{80}…\(201 bytes, #[0-9a-f]{16}\)$")


class Tool(unittest.TestCase):

    def run_tool(self, server):
        return subprocess.run(["redis-cli", "-p", str(server.port), "--hotkeys"],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=servers.GUARD_S, check=False)

    def test_redis_cli_names_the_hot_key(self):
        with servers.Heatsink("--workers", "2", "--sync", "off") as server:
            connection = server.raw()
            for i in range(200):
                connection.call("SET", "cold:%d" % i, "1")
            connection.call("SET", "hot one", "1")
            for _ in range(200):
                connection.send(resp.encode("GET", "hot one") * 100)
                for _ in range(100):
                    connection.read()
            result = self.run_tool(server)
            self.assertEqual(result.returncode, 0, result.stdout)
            found = re.findall(r'^hot key found with counter: (\d+)\s+keyname: "(.*)"$',
                               result.stdout, re.M)
            self.assertTrue(found, result.stdout)
            self.assertEqual(found[0][1], "hot one", result.stdout)
            others = [int(counter) for counter, name in found[1:]]
            self.assertTrue(all(int(found[0][0]) > counter for counter in others), result.stdout)

    def test_redis_cli_has_nothing_to_say_of_no_keys(self):
        with servers.Heatsink("--sync", "off") as server:
            result = self.run_tool(server)
            self.assertEqual(result.returncode, 0, result.stdout)
            self.assertNotIn("hot key found", result.stdout)


if __name__ == "__main__":
    unittest.main()
