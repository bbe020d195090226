"""Goal: what is folded is answered exactly as if it had been alone: the right number, the right error,
in the right dialect, in the client's own order; whatever else goes on with the key, and whatever
happens to the connections behind it.

Method: a real redis-server behind a relay (tests/lib/relay.py) that holds a reply back while requests
gather, so that folding is no matter of luck: INFO says how many wait, the relay what reached the server.
What must be equal to a plain redis-server is compared with one. And storms of every command on few keys
(`heatsink storm --command all --verify`), which look for an order of all requests that explains every
answer, while connections die and stall.
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

SANITIZERS = ("address", "thread")  # most of it is our own engine

INT64_MAX = 2 ** 63 - 1
CROWD = 200
STORMS = 8  # at most, until there was trouble enough


def fold_info(server):
    with resp.Connection(server.port, GUARD_S) as connection:
        text = connection.call("INFO", "stats").text.decode()
    return {name: int(value) for name, value in re.findall(r"^(fold_\w+):(\d+)", text, re.M)}


def is_worth_it(stats):
    """Requests were folded, several into one command."""
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
        """That many connections."""
        crowd = [resp.Connection((server or self.server).port, GUARD_S) for _ in range(count)]
        for connection in crowd:
            self.addCleanup(connection.close)
        return crowd

    def wait_info(self, what, condition):
        """Until INFO's fold fields are like that."""
        wait_for(self, what, lambda: condition(fold_info(self.server)))

    def wait_folding(self):
        """Until folding has been worth it, while requests for a hot key keep coming."""
        self.wait_info("requests are folded", is_worth_it)

    def heat(self, key):
        """Asks for it until it is hot."""
        connection = self.connect(1)[0]
        hot = fold_info(self.server)["fold_keys"]
        while fold_info(self.server)["fold_keys"] == hot:
            connection.call_all([["EXISTS", key]] * 500)

    def gather(self, key, requests):
        """Sends each connection's request while a reply for the key is held back, so that all of them
        wait. `requests` is a list of (connection, words). Returns the hold."""
        before = fold_info(self.server)["fold_waiting"]
        hold = self.hold_back(key)
        for connection, words in requests:
            connection.send(resp.encode(*words))
        self.wait_info(f"{len(requests)} wait",
                       lambda seen: seen["fold_waiting"] >= before + len(requests))
        return hold

    def hold_back(self, key):
        """Asks for the key, whose reply is held back. A key that nobody has asked for in a second has
        cooled, and is heated again; one that has a request under way stays hot."""
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
    """A crowd that waits together."""

    def test_a_crowd_of_increments_is_one_command(self):
        self.start()
        self.heat("n")
        crowd = self.connect(CROWD)
        hold = self.gather("n", [(connection, ["INCR", "n"]) for connection in crowd])
        seen = [reply.number() for reply in self.answers(hold, crowd)]
        self.assertEqual(seen, list(range(1, CROWD + 1)))  # in the order asked, even
        self.assertEqual(self.relay.count("INCRBY") + self.relay.count("INCR"), 1)
        stats = fold_info(self.server)
        self.assertGreaterEqual(stats["fold_requests"], CROWD)
        self.assertGreater(stats["fold_requests"], stats["fold_commands"])
        self.assertGreater(stats["fold_commands"], 0)

    def test_a_storm_of_increments(self):
        """Every number once, in front of a server and on our own engine."""
        self.start()
        with Heatsink("--workers", "2") as embedded:
            for server in (self.server, embedded):
                with self.subTest(engine=server is self.server):
                    result = run_storm(self, server, "--command", "incr", "--keys", 1,
                                       "--connections", CROWD, "--count", 40000)
                    self.assertEqual(result["answered"], 40000)
                    check_folding(self, server)

    def test_a_disconnect_while_waiting_affects_no_other_client(self):
        """Who is gone for good is not counted; who only asks no more may be."""
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
        """What a crowd that waits together is told is what redis-server tells the same requests one by
        one, and the key is left in the same state. `requests`: (dialect, words)."""
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
        """Five fit, the others do not; and the other way round."""
        self.judge_like_redis([["SET", "k", str(INT64_MAX - 5)]], [(2, ["INCR", "k"])] * 20)
        self.judge_like_redis([["SET", "k", str(-INT64_MAX + 4)]], [(3, ["DECR", "k"])] * 20)

    def test_overflow_and_back(self):
        """Who of them comes first is open, but what was done adds up."""
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
    """One connection's pipelines on a hot key, in whatever mixture, are answered as by redis-server.
    Others read the key all the while, which changes nothing but keeps it hot and busy."""

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
        """A second may pass between the one and the other: what 10000 seconds have left is one."""
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
        """A storm of reads of the key; it is stopped with the test."""
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
        """A crowd that asks for the same keys in different orders, with others in between: each gets
        every number once, and sees each key as far as those before it in its own order."""
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
        """Cold keys, asked for by nobody else, in pipelines long enough to make them hot."""
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
    """What no order explains is kept beside the build, to be judged again."""
    histories = os.path.join(os.path.dirname(heatsink_path()), "histories")
    os.makedirs(histories, exist_ok=True)
    return Process([heatsink_path(), "storm", "--target", f"127.0.0.1:{server.port}",
                    "--history-folder", histories, *map(str, args)])


def read_result(test, process, codes=(0,)):
    """2: some windows were not decided; 3: some replies were errors."""
    code = process.wait()
    test.assertIn(code, codes, process.text())
    return json.loads(process.text()[process.text().index("{"):])


def run_storm(test, server, *args):
    """Verified; what storm says about it."""
    return read_result(test, storm(server, "--json", "--verify", *args))


def check_folding(test, server):
    """It was there, and it was worth it."""
    stats = fold_info(server)
    test.assertGreater(stats["fold_commands"], 0)
    test.assertGreater(stats["fold_requests"], stats["fold_commands"])


class Bounds(FoldCase):
    """Which keys are hot is an option, and may change while running."""

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
    """Every command, many connections, few keys: an order explains all answers."""

    def all(self, server, *args, keys=3, connections=40, pipeline=4, count=20000, whole=False):
        """Under a sanitizer, which is slow, half of the operations, unless the test wants the whole."""
        if is_sanitized() and not whole:
            count //= 2
        return storm(server, "--json", "--verify", "--command", "all", "--keys", keys,
                     "--connections", connections, "--pipeline", pipeline, "--count", count,
                     "--window", 1500, *args)

    @staticmethod
    def ended(process):
        """Whether a storm has, after waiting a moment for it."""
        try:
            process.child.wait(0.01)
        except subprocess.TimeoutExpired:
            return False
        return True

    def judge(self, process):
        """Nothing is wrong, and most was decided."""
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
            self.assertGreater(result["not_known"], 0)  # it has no EVAL yet
            check_folding(self, server)

    def test_the_hot_key_moves(self):
        """One key after the other turns hot and cools."""
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
        """Who is one too many is told so, and nothing happens to it."""
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
        """One storm after the other while connections die and stall: how many faults one meets depends
        on how much of it is folded. What each says, once it is judged, and how many faults it met."""
        faults = self.make_trouble()
        for number in range(STORMS):
            if number > 0:
                note("a storm met too little trouble, and is followed by another one")
            process, hits = self.all(self.server, **options), 0
            while process.child.poll() is None:
                hits += self.hit(next(faults), process)
            yield self.judge(process), hits

    def make_trouble(self):
        """Faults without end, for requests that concern the keys."""
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
        """Lets a fault happen and waits until requests flow again. Whether it did."""
        fault, before = make(), self.relay.passed
        while not fault.hits and process.child.poll() is None:
            self.relay.wait_change()
        fault.remove()
        while self.relay.passed < before + 1000 and process.child.poll() is None:
            self.relay.wait_change()
        return fault.hits > 0

    def test_a_cluster(self):
        """Keys on several masters, whose connections are killed now and then."""
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
