"""Goal: a folded request is answered exactly as if it had been sent alone: the right number, the right error, in the
right protocol version, in the client's order, whatever other commands use the key and whatever happens to the
connections to the server.

Method: a real redis-server behind a relay (tests/lib/relay.py) that holds a reply back while requests gather, so that
folding does not depend on timing: INFO shows how many requests wait, the relay shows which reached the server.
Replies that must equal those of a plain redis-server are compared with one. In addition, storms of every command on
few keys (`heatsink storm --command all --verify`) search for an order of all requests that explains every reply,
while connections die and stall.
"""
import json
import os
import random
import re
import socket
import struct
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import resp
from checks import is_sanitized, wait_for, wait_learned
from cluster import Cluster
from relay import Relay
from servers import GUARD_S, Heatsink, Process, Redis, heatsink_path, note

SANITIZERS = ("address", "thread")  # most tests need no Cluster

INT64_MAX = 2 ** 63 - 1
CROWD = 200
STORMS = 8  # at most this many storms, until enough faults were hit


def fold_info(server):
    with resp.Connection(server.port, GUARD_S) as connection:
        text = connection.call("INFO", "stats").text.decode()
    return {name: int(value) for name, value in re.findall(r"^(fold_\w+):(\d+)", text, re.M)}


def is_worth_it(stats):
    """True if requests were folded, several into one command."""
    return 0 < stats["fold_commands"] < stats["fold_requests"]


class FoldCase(unittest.TestCase):
    """heatsink in front of a redis-server, with a relay between them."""

    def start(self, *args, workers=1):
        self.redis = Redis()
        self.addCleanup(self.redis.close)
        self.relay = Relay(self.redis.port)
        self.addCleanup(self.relay.close)
        self.server = Heatsink("--workers", str(workers), "--engine-timeout", str(GUARD_S * 1000),
                               "--engine", f"redis://127.0.0.1:{self.relay.port}", *args)
        self.addCleanup(self.server.close)
        wait_learned(self, self.server)
        return self.server

    def connect(self, count, server=None):
        """Opens this many connections."""
        crowd = [resp.Connection((server or self.server).port, GUARD_S) for _ in range(count)]
        for connection in crowd:
            self.addCleanup(connection.close)
        return crowd

    def wait_info(self, what, condition):
        """Waits until the fold_ fields of INFO satisfy the condition."""
        wait_for(self, what, lambda: condition(fold_info(self.server)))

    def wait_folding(self):
        """Waits until requests were folded, while requests for a hot key keep coming."""
        self.wait_info("requests are folded", is_worth_it)

    def heat(self, key):
        """Sends requests for the key until it is hot."""
        connection = self.connect(1)[0]
        hot = fold_info(self.server)["fold_keys"]
        while fold_info(self.server)["fold_keys"] == hot:
            connection.call_all([["EXISTS", key]] * 500)

    def gather(self, key, requests):
        """Sends each connection's request while a reply for the key is held back, so that all of them wait.
        `requests`: a list of (connection, words). Returns the relay's fault, to be released."""
        before = fold_info(self.server)["fold_waiting"]
        hold = self.hold_back(key)
        for connection, words in requests:
            connection.send(resp.encode(*words))
        self.wait_info(f"{len(requests)} wait",
                       lambda seen: seen["fold_waiting"] >= before + len(requests))
        return hold

    def hold_back(self, key):
        """Sends a request for the key and holds its reply back. A key without requests for a second has cooled
        and is heated again; a key with a request in flight stays hot."""
        guard = time.monotonic() + GUARD_S
        while True:
            self.assertLess(time.monotonic(), guard, "the key cools again and again")
            hold = self.relay.hold("EXISTS")
            self.first = self.connect(1)[0]
            self.first.send(resp.encode("EXISTS", key))
            hold.wait()
            if fold_info(self.server)["fold_keys"] > 0:
                return hold
            note(f"the key {key} had cooled before others waited for it, and is heated again")
            hold.release()
            self.first.read()
            self.heat(key)

    def answers(self, hold, connections):
        hold.release()
        self.first.read()
        return [connection.read() for connection in connections]


class Exact(FoldCase):
    """Many requests that wait for one key at the same time."""

    def test_a_crowd_of_increments_is_one_command(self):
        self.start()
        self.heat("n")
        crowd = self.connect(CROWD)
        hold = self.gather("n", [(connection, ["INCR", "n"]) for connection in crowd])
        seen = [reply.number() for reply in self.answers(hold, crowd)]
        self.assertEqual(seen, list(range(1, CROWD + 1)))  # even in the order of the requests
        self.assertEqual(self.relay.count("INCRBY") + self.relay.count("INCR"), 1)
        stats = fold_info(self.server)
        self.assertGreaterEqual(stats["fold_requests"], CROWD)
        self.assertGreater(stats["fold_requests"], stats["fold_commands"])
        self.assertGreater(stats["fold_commands"], 0)

    def test_a_storm_of_increments(self):
        """Every number once, in front of a server and with the embedded engine."""
        self.start()
        with Heatsink("--workers", "2") as embedded:
            for server in (self.server, embedded):
                with self.subTest(engine=server is self.server):
                    result = run_storm(self, server, "--command", "incr", "--keys", 1,
                                       "--connections", CROWD, "--count", 40000)
                    self.assertEqual(result["answered"], 40000)
                    check_folding(self, server)

    def test_a_disconnect_while_waiting_affects_no_other_client(self):
        """A client that closes without reading may or may not be counted; the other clients are."""
        self.start()
        self.heat("n")
        crowd = self.connect(10)
        hold = self.gather("n", [(connection, ["INCR", "n"]) for connection in crowd])
        for connection in crowd[::2]:
            connection.close()
        seen = [reply.number() for reply in self.answers(hold, crowd[1::2])]
        self.assertEqual(sorted(set(seen)), seen)
        self.assertIn(int(self.redis.client().get("n")), range(5, 11))

    def test_a_disconnect_while_waiting_is_not_counted(self):
        self.start()
        self.heat("n")
        crowd = self.connect(10)
        hold = self.gather("n", [(connection, ["INCR", "n"]) for connection in crowd])
        for connection in crowd[::2]:
            connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()
        self.wait_info("five have gone", lambda seen: seen["fold_waiting"] == 5)
        seen = [reply.number() for reply in self.answers(hold, crowd[1::2])]
        self.assertEqual(seen, [1, 2, 3, 4, 5])
        self.assertEqual(self.redis.client().get("n"), b"5")

    def judge_like_redis(self, prepare, requests):
        """Requests that wait together must get the replies that redis-server gives to the same requests one by
        one, and must leave the key in the same state. `requests`: (protocol version, words)."""
        self.start()
        with Redis() as plain:
            for words in prepare:
                plain.raw().call(*words)
                self.redis.raw().call(*words)
            self.heat("k")
            crowds = [self.connect(len(requests), server) for server in (self.server, plain)]
            for crowd in crowds:
                for (dialect, _), connection in zip(requests, crowd):
                    connection.call("HELLO", dialect)
            hold = self.gather("k", [(connection, words) for (_, words), connection
                                     in zip(requests, crowds[0])])
            expected = [connection.call(*words).raw for (_, words), connection
                        in zip(requests, crowds[1])]
            seen = [reply.raw for reply in self.answers(hold, crowds[0])]
            self.assertEqual(seen, expected)
            self.assertEqual(self.redis.raw().call("DUMP", "k").raw,
                             plain.raw().call("DUMP", "k").raw)
        self.assertGreater(fold_info(self.server)["fold_commands"], 0)

    def test_a_value_of_another_type(self):
        reads = [["GET", "k"], ["INCR", "k"], ["STRLEN", "k"], ["LRANGE", "k", "0", "-1"],
                 ["EXISTS", "k"], ["INCRBY", "k", "7"], ["TTL", "k"], ["HGETALL", "k"]]
        self.judge_like_redis([["RPUSH", "k", "a", "b"]],
                              [(2 + i % 2, words) for i, words in enumerate(reads * 5)])

    def test_a_value_that_is_no_number(self):
        asks = [["INCR", "k"], ["GET", "k"], ["DECR", "k"], ["INCRBY", "k", "-3"], ["STRLEN", "k"]]
        self.judge_like_redis([["SET", "k", "ten"]], [(2, words) for words in asks * 8])

    def test_overflow(self):
        """Five increments fit below the upper bound, the others overflow; likewise at the lower bound."""
        self.judge_like_redis([["SET", "k", str(INT64_MAX - 5)]], [(2, ["INCR", "k"])] * 20)
        self.judge_like_redis([["SET", "k", str(-INT64_MAX + 4)]], [(3, ["DECR", "k"])] * 20)

    def test_overflow_and_back(self):
        """The order is not fixed, but the value must equal the sum of the acknowledged increments."""
        self.start()
        base = INT64_MAX - 9
        self.redis.client().set("k", base)
        self.heat("k")
        adds = [4, -1, INT64_MAX, -3, 1, -INT64_MAX, 2] * 6
        crowd = self.connect(len(adds))
        hold = self.gather("k", [(connection, ["INCRBY", "k", str(add)]) for connection, add
                                 in zip(crowd, adds)])
        replies = self.answers(hold, crowd)
        done = [add for add, reply in zip(adds, replies) if not reply.is_error]
        self.assertEqual(int(self.redis.client().get("k")), base + sum(done))
        self.assertEqual({reply.raw for reply in replies if reply.is_error},
                         {b"-ERR increment or decrement would overflow\r\n"})
        for reply in replies:
            self.assertTrue(reply.is_error or -INT64_MAX <= reply.number() <= INT64_MAX)

    def test_a_missing_key_in_both_dialects(self):
        asks = [["GET", "k"], ["STRLEN", "k"], ["EXISTS", "k"], ["TTL", "k"], ["HGETALL", "k"],
                ["GETRANGE", "k", "0", "3"]]
        self.judge_like_redis([], [(2 + i % 2, words) for i, words in enumerate(asks * 7)])

    def test_sets_among_the_others(self):
        asks = [["SET", "k", "5"], ["INCR", "k"], ["GET", "k"], ["SET", "k", "text", "EX", "1000"],
                ["STRLEN", "k"], ["INCR", "k"], ["SET", "k", "-8", "PX", "1000000"], ["DECR", "k"],
                ["EXISTS", "k"], ["GET", "k"]]
        self.judge_like_redis([["SET", "k", "0"]],
                              [(2 + i % 2, words) for i, words in enumerate(asks * 4)])


class Pipelines(FoldCase):
    """Pipelines of one connection on a hot key, of mixed commands, get the replies of redis-server. Other clients
    read the key all the time, which keeps it hot and busy and changes nothing else."""

    ASKS = [["INCR", "k"], ["INCR", "k"], ["INCR", "k"], ["INCRBY", "k", "5"], ["DECR", "k"],
            ["GET", "k"], ["GET", "k"], ["EXISTS", "k"], ["STRLEN", "k"], ["TTL", "k"],
            ["SET", "k", "10"], ["SET", "k", "11", "EX", "10000"], ["SET", "k", "x"],
            ["SET", "k", "12", "NX"], ["SET", "k", "13", "XX"], ["GETSET", "k", "14"], ["DEL", "k"],
            ["GETDEL", "k"], ["MGET", "k", "other", "k"], ["MSET", "k", "3", "other", "4"],
            ["EXISTS", "k", "k"], ["APPEND", "k", "7"], ["EXPIRE", "k", "10000"], ["PERSIST", "k"],
            ["EVAL", "return redis.call('incrby', KEYS[1], ARGV[1])", "1", "k", "2"],
            ["INCRBY", "k", str(INT64_MAX)], ["LPUSH", "k", "a"], ["TYPE", "k"], ["INCR", "other"],
            ["INCRBY", "k", "zero"], ["GET"], ["PING"], ["NONSENSE", "k"]]

    def transaction(self, rng):
        inside = [rng.choice(self.ASKS) for _ in range(rng.randrange(1, 4))]
        watch = [["WATCH", "k"], ["INCR", "k"]] if rng.randrange(3) == 0 else \
            [["WATCH", "k"]] if rng.randrange(2) else []
        end = [["DISCARD"]] if rng.randrange(5) == 0 else [["EXEC"]]
        return [*watch, ["MULTI"], *inside, *end]

    def pipeline(self, rng, length):
        asks = []
        while len(asks) < length:
            asks += self.transaction(rng) if rng.randrange(8) == 0 else [rng.choice(self.ASKS)]
        return asks

    @staticmethod
    def timeless(raw):
        """Replaces the remainder of a TTL of 10000 s, because a second may pass between the two servers."""
        return re.sub(rb":(99\d\d|10000)\r\n", b":10000\r\n", raw)

    def compare(self, rng, rounds, between=lambda turn: None):
        with Redis() as plain:
            ours, theirs = self.connect(1)[0], self.connect(1, plain)[0]
            for turn in range(rounds):
                if rng.randrange(4) == 0:
                    dialect = rng.choice((2, 3))
                    ours.call("HELLO", dialect)
                    theirs.call("HELLO", dialect)
                asks = self.pipeline(rng, rng.choice((3, 20, 100)))
                between(turn)
                seen, expected = ours.call_all(asks), theirs.call_all(asks)
                for i, (one, other) in enumerate(zip(seen, expected)):
                    self.assertEqual(self.timeless(one.raw), self.timeless(other.raw),
                                     f"round {turn}: {asks[:i + 1][-8:]}")

    def readers(self):
        """Starts a storm of reads of the key; it ends with the test."""
        readers = storm(self.server, "--request", "EXISTS k", "--connections", 20, "--duration", "1h")
        self.addCleanup(readers.wait)
        self.addCleanup(readers.signal, 2)
        return readers

    def test_the_key_is_hot(self):
        self.start()
        self.readers()
        self.wait_info("hot", lambda seen: seen["fold_keys"] > 0)
        self.wait_folding()
        self.compare(random.Random(1), 150)

    def test_folding_is_switched_while_pipelines_run(self):
        self.start()
        self.readers()
        client = self.server.client()
        self.compare(random.Random(2), 150,
                     lambda turn: client.config_set("fold", "no" if turn % 2 else "yes"))
        client.config_set("fold", "yes")
        self.wait_folding()

    def test_pipelines_over_several_hot_keys(self):
        """Many clients use the same keys in different orders, with other keys in between: no number comes twice,
        and each client's reads are at least as new as its own earlier increments."""
        self.start()
        keys = ["a", "b", "c"]
        for key in keys:
            self.heat(key)
        crowd, orders = self.connect(40), [["a", "b", "c"], ["c", "b", "a"], ["b", "c", "a"]]
        seen = {key: [] for key in keys}

        def take_turn(turn):
            asks = [[["INCR", key] for key in orders[i % 3]] + [["SETRANGE", f"own{i}", "0", str(turn)],
                    ["INCR", orders[i % 3][0]], ["MGET", *keys]] for i in range(len(crowd))]
            for connection, words in zip(crowd, asks):
                connection.send(b"".join(resp.encode(*each) for each in words))
            for i, connection in enumerate(crowd):
                first, *rest = orders[i % 3]
                numbers = {first: 0}
                for key in (first, *rest):
                    numbers[key] = connection.read().number()
                    seen[key].append(numbers[key])
                connection.read()
                numbers[first] = connection.read().number()
                seen[first].append(numbers[first])
                values = [int(item.text) for item in connection.read().items]
                for key, value in zip(keys, values):
                    self.assertGreaterEqual(value, numbers[key])
            return is_worth_it(fold_info(self.server))

        for turn in range(30):
            take_turn(turn)
        wait_for(self, "requests are folded", lambda: take_turn(30))
        for key, numbers in seen.items():
            self.assertEqual(sorted(numbers), list(range(1, len(numbers) + 1)), key)

    def test_the_key_turns_hot_in_the_middle_of_a_pipeline(self):
        """Cold keys that only one client uses, in pipelines long enough to make them hot."""
        self.start()
        rng = random.Random(3)
        with Redis() as plain:
            for turn in range(4):
                ours, theirs = self.connect(1)[0], self.connect(1, plain)[0]
                asks = [[word.replace("k", f"key{turn}") if word == "k" else word for word in words]
                        for words in self.pipeline(rng, 3000)]
                seen, expected = ([self.timeless(reply.raw) for reply in side.call_all(asks)]
                                  for side in (ours, theirs))
                self.assertEqual(seen, expected)


# ---- storms ----

def storm(server, *args):
    """Starts `heatsink storm`. A history that it cannot explain is saved in the build folder's histories/."""
    histories = os.path.join(os.path.dirname(heatsink_path()), "histories")
    os.makedirs(histories, exist_ok=True)
    return Process([heatsink_path(), "storm", "--target", f"127.0.0.1:{server.port}",
                    "--history-folder", histories, *map(str, args)])


def read_result(test, process, codes=(0,)):
    """Storm's JSON result. `codes`: accepted exit statuses: 2: some windows undecided, 3: some error replies."""
    code = process.wait()
    test.assertIn(code, codes, process.text())
    return json.loads(process.text()[process.text().index("{"):])


def run_storm(test, server, *args):
    """Runs a storm with --verify; returns its JSON result."""
    return read_result(test, storm(server, "--json", "--verify", *args))


def check_folding(test, server):
    """Asserts that requests were folded, several into one command."""
    stats = fold_info(server)
    test.assertGreater(stats["fold_commands"], 0)
    test.assertGreater(stats["fold_requests"], stats["fold_commands"])


class Bounds(FoldCase):
    """The bounds of a hot key are options and may change while the server runs."""

    def test_shares_are_read_and_shown(self):
        self.start()
        connection = self.server.raw()
        for text, shown in (("2%", b"2%"), ("0.5", b"0.5%"), ("0.0001%", b"0.0001%"),
                            ("12.50%", b"12.5%"), ("100%", b"100%")):
            self.assertEqual(connection.call("CONFIG", "SET", "hot-share", text).raw, b"+OK\r\n")
            self.assertEqual(connection.call("CONFIG", "GET", "hot-share").items[1].text, shown)
        for text in ("", "%", "-1%", "101%", "1.00001%", "1e2", "0%", "."):
            reply = connection.call("CONFIG", "SET", "hot-share", text)
            self.assertIn(b"must be a share", reply.raw, text)
        self.assertEqual(connection.call("CONFIG", "GET", "hot-share").items[1].text, b"100%")

    def test_no_key_is_hot_below_the_bound(self):
        self.start("--hot-share", "100%", "--hot-requests-min", "16777216")
        reply = storm(self.server, "--request", "INCR k", "--connections", 20, "--count", 20000)
        reply.wait()
        info = self.server.client().info("stats")
        self.assertEqual((info["hot_keys"], info["fold_requests"], info["hot_keys_full"]), (0, 0, 0))


class Storms(FoldCase):
    """Every command, many connections, few keys: some order must explain all replies."""

    def all(self, server, *args, keys=3, connections=40, pipeline=4, count=20000, whole=False):
        """Starts such a storm; a sanitizer run, which is slow, gets half of the operations unless `whole`."""
        if is_sanitized() and not whole:
            count //= 2
        return storm(server, "--json", "--verify", "--command", "all", "--keys", keys,
                     "--connections", connections, "--pipeline", pipeline, "--count", count,
                     "--window", 1500, *args)

    @staticmethod
    def ended(process):
        """True if the process has ended, after waiting 10 ms for it."""
        try:
            process.child.wait(0.01)
        except subprocess.TimeoutExpired:
            return False
        return True

    def judge(self, process):
        """Asserts that no window is wrong and that most windows were decided."""
        result = read_result(self, process, codes=(0, 2, 3))
        verify = result["verify"]
        self.assertTrue(verify["ok"], verify)
        self.assertGreater(verify["windows"], 2 * verify["undecided"], verify)
        return result

    def test_quiet(self):
        self.start(workers=2)
        result = self.judge(self.all(self.server))
        self.assertEqual((result["lost"], result["errors"]), (0, {}))
        check_folding(self, self.server)

    def test_on_the_embedded_engine(self):
        with Heatsink("--workers", "2") as server:
            result = self.judge(self.all(server, whole=True))
            self.assertEqual(result["lost"], 0)
            self.assertEqual(result["errors"], {})
            self.assertGreater(result["unknown_command"], 0)  # the embedded engine has no EVAL
            check_folding(self, server)

    def test_the_hot_key_moves(self):
        """One key after the other becomes hot and cools."""
        self.start(workers=2)
        self.judge(self.all(self.server, "--shape", "moving:50ms:0.9", keys=20, count=40000))
        check_folding(self, self.server)

    def test_folding_is_switched_all_the_time(self):
        self.start(workers=2)
        process, turn = self.all(self.server, count=40000), 0
        while process.child.poll() is None:
            self.server.client().config_set("fold", ("no", "yes")[turn % 2])
            turn += 1
        self.judge(process)
        self.assertGreater(turn, 2)
        check_folding(self, self.server)

    def test_few_may_wait(self):
        """A request beyond the limit of waiters gets an error and has no effect."""
        self.start("--fold-waiters-max", "4")
        result = self.judge(self.all(self.server, connections=100))
        self.assertEqual(set(result["errors"]), {"BUSY"})
        self.assertGreater(fold_info(self.server)["fold_busy"], 0)
        check_folding(self, self.server)

    def test_connections_die_and_stall(self):
        self.start(workers=2)
        hits = unknown = 0
        for result, met in self.storms_in_trouble(count=40000):
            hits, unknown = hits + met, unknown + result["verify"]["unknown"]
            self.assertLessEqual(set(result["errors"]), {"UNKNOWN", "CLUSTERDOWN", "EXECABORT"})
            if hits > 3 and unknown > 0:
                break
        self.assertGreater(hits, 3)
        self.assertGreater(unknown, 0)
        check_folding(self, self.server)
        self.wait_info("nobody waits", lambda seen: seen["fold_waiting"] == 0)

    def test_connections_die_and_few_may_wait(self):
        self.start("--fold-waiters-max", "6")
        hits, errors = 0, set()
        for result, met in self.storms_in_trouble():
            hits, errors = hits + met, errors | set(result["errors"])
            if hits > 0 and "BUSY" in errors:
                break
        self.assertGreater(hits, 0)
        self.assertIn("BUSY", errors)
        check_folding(self, self.server)

    def storms_in_trouble(self, **options):
        """Runs storms while connections die and stall. Yields each storm's result and the number of faults it hit,
        which depends on how much of it was folded."""
        faults = self.make_trouble()
        for number in range(STORMS):
            if number > 0:
                note("a storm met too little trouble, and is followed by another one")
            process, hits = self.all(self.server, **options), 0
            while process.child.poll() is None:
                hits += self.hit(next(faults), process)
            yield self.judge(process), hits

    def make_trouble(self):
        """An endless generator of faults for requests about the keys."""
        def concerns_keys(args):
            return args[0].upper() in (b"GET", b"SET", b"INCR", b"INCRBY", b"DECRBY", b"EXEC", b"TTL",
                                       b"GETSET", b"STRLEN", b"EXISTS", b"MGET", b"MSET", b"EVAL")
        rng, relay = random.Random(4), self.relay
        while True:
            yield rng.choice((
                lambda: relay.cut_before(concerns_keys), lambda: relay.cut_after(concerns_keys),
                lambda: relay.cut_after(concerns_keys, reply_bytes=1),
                lambda: relay.hold(concerns_keys, times=3, seconds=0.02),
                lambda: relay.hold("EXEC", seconds=0.02)))

    def hit(self, make, process):
        """Arms a fault, waits until it was hit and requests flow again; True if it was hit."""
        fault, before = make(), self.relay.passed
        while not fault.hits and process.child.poll() is None:
            self.relay.wait_change()
        fault.remove()
        while self.relay.passed < before + 1000 and process.child.poll() is None:
            self.relay.wait_change()
        return fault.hits > 0

    def test_a_cluster(self):
        """Keys on several masters, whose connections are killed from time to time."""
        with Cluster(masters=3, replicas=0) as cluster, \
                Heatsink("--workers", "2", "--engine", cluster.url()) as server:
            process = self.all(server)
            commands = {node: node.info("stats") for node in cluster.nodes}
            while not self.ended(process):
                for node in cluster.nodes:
                    done = int(node.info("stats")["total_commands_processed"])
                    if done > int(commands[node]["total_commands_processed"]) + 2000:
                        node.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
                        commands[node] = node.info("stats")
            self.judge(process)
            check_folding(self, server)


if __name__ == "__main__":
    unittest.main()
