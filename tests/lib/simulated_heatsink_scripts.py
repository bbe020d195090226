"""Scripts for tests/integration/test_sim_heatsink.py, in the language of tests/lib/simulated_heatsink.py: one per
situation, and random ones with a few clients, few keys, and a slot that moves key by key and comes back.
"""
import random

ROUNDS = 80
NAMES = ("x", "y", "z")


def pipelined(count, *requests):
    return " ; ".join(requests * count)


SCRIPTS = {
    "pipelines while a slot moves": [
        "connect a", "connect b 3", "a: MSET x@0b 0 y@0b 0 z@0b 0 w@1 0", "begin_move x@0b 1",
        "a~ " + pipelined(20, "INCR x@0b", "INCR y@0b", "GET x@0b", "INCR z@0b", "INCR w@1"),
        "b~ " + pipelined(10, "MULTI", "APPEND v@0b a", "STRLEN v@0b", "EXEC"),
        "moment 300", "move x@0b", "moment 300", "move y@0b", "a? 100", "b? 40",
        "a~ " + pipelined(20, "INCR x@0b", "MGET x@0b y@0b", "INCR z@0b", "GET y@0b", "MSET x@0b 5 w@1 5"),
        "moment 300", "end_move x@0b", "a? 100", "begin_move x@0b 0",
        "a~ " + pipelined(20, "INCR x@0b", "GETSET y@0b 7", "GET y@0b", "INCR z@0b"), "moment 300", "move z@0b",
        "moment 300", "move x@0b", "moment 300", "end_move x@0b", "a? 80", "a: MGET x@0b y@0b z@0b v@0b w@1"],
    "pipelines at a failover": [
        "connect a", "connect b 3", "a: SET x@1 0 ; SET y@1 0",
        "a~ " + pipelined(50, "INCR x@1", "GET x@1", "INCR w@2"), "b~ " + pipelined(30, "APPEND y@1 a", "STRLEN y@1"),
        "moment 500", "failover 4", "a? 150", "b? 60", "agree", "a: MGET x@1 y@1 w@2"],
    "a slot that moves and comes back": [
        "connect a", "connect b 3",
        "a: SET x@0b 1 ; SET y@0b 2 ; MSET z@0b 3 v@0b 4 ; MGET x@0b y@0b z@0b v@0b ; GET x@1 ; SET x@1 1",
        "begin_move x@0b 1", "a: INCR x@0b ; GET y@0b ; SET n@0b 7 ; GET n@0b ; MGET x@0b y@0b ; GET x@1",
        "move x@0b", "a: INCR x@0b ; GET x@0b ; INCR y@0b ; GET nothing@0b ; DEL n@0b ; GET n@0b",
        "b: MULTI ; INCR x@0b ; GET x@0b ; EXEC", "b: INCR y@0b ; GETSET x@0b 9", "move y@0b",
        "a: MGET x@0b y@0b ; INCR x@0b ; INCR y@0b ; MSET x@0b 1 y@0b 2 ; GET z@0b", "end_move x@0b",
        "a: MGET x@0b y@0b z@0b v@0b ; INCR x@0b ; MSET z@0b 5 v@0b 6 ; DEL z@0b v@0b",
        "b: MULTI ; INCR x@0b ; EXEC ; MGET x@0b x@1", "begin_move x@0b 0", "a: INCR x@0b ; SET n@0b 1",
        "move x@0b", "a: INCR x@0b ; INCR y@0b", "b: GET n@0b ; INCR n@0b", "end_move x@0b",
        "a: INCR x@0b ; INCR y@0b ; MGET x@0b y@0b n@0b z@0b"],
    "watches and moves": [
        "connect a", "connect b 3", "connect c", "a: SET x@0b 1 ; SET y@0b 1", "b: WATCH x@0b", "c: WATCH y@0b",
        "begin_move x@0b 1", "b: MULTI ; INCR x@0b ; EXEC", "b: WATCH x@0b", "move x@0b",
        "b: MULTI ; INCR x@0b ; EXEC", "c: MULTI ; INCR y@0b ; EXEC", "b: WATCH x@0b", "a: INCR x@0b",
        "b: MULTI ; INCR x@0b ; EXEC", "c: WATCH y@0b", "end_move x@0b", "c: MULTI ; INCR y@0b ; EXEC",
        "b: WATCH x@0b ; MULTI ; INCR x@0b ; EXEC", "a: MGET x@0b y@0b"],
    "a failover": [
        "connect a", "connect b 3", "connect c", "a: SET x@2 1 ; SET y@2 1 ; GET x@1", "b: WATCH x@2",
        "c: SET key0 1 ; GET key0 ; GET key0", "failover 5", "agree",
        "a: INCR x@2 ; GET x@2 ; MGET x@2 y@2", "b: MULTI ; INCR y@2 ; EXEC", "b: WATCH x@2 ; MULTI ; INCR y@2 ; EXEC",
        "a: MSET x@2 7 y@2 8 ; INCR x@2 ; MGET x@2 y@2 x@1", "c: GET key0", "behind SET key0 2", "seen c key0 2",
        "b: GET key0 ; STRLEN key0", "c: INCR key0 ; GET key0 ; SET key0 5 ; GET key0", "b: GET key0",
        "behind SET key0 6", "seen b key0 6", "c: GET key0"],
    "a takeover that loses": [
        "connect a", "connect b 3", "a: SET x@0 1 ; SET y@0 1 ; SET z@0 1", "sync", "lag 3",
        "a: SET x@0 9 ; INCR y@0 ; DEL z@0 ; GET x@0", "stall 0", "thaw 3", "takeover 3", "agree", "thaw 0", "agree",
        "sync", "a: GET x@0 ; MGET x@0 y@0 z@0 ; INCR y@0", "b: GET y@0 ; SET x@0 2 ; GET x@0"],
    "an outcome that nobody knows": [
        "connect a", "connect b 3", "connect c", "a: SET x@0 1 ; SET x@1 1", "b: GET x@0", "sync", "stall 0",
        "a~ INCR x@0 ; GET x@0", "c~ SET y@0 1", "b: GET x@1 ; INCR x@1", "crash 0", "takeover 3", "agree", "a? 2",
        "c? 1", "seen a x@0 *", "a: INCR x@0 ; GET x@0", "b: GET x@0 ; MGET x@0 x@1"],
    "a key under a rule": [
        "connect a", "connect b 3", "a: GET key0 ; SET key0 1 ; GET key0 ; GET key0", "b: GET key0 ; GET key0",
        "behind SET key0 2", "seen a key0 2", "b: GET key0 ; STRLEN key0", "begin_move key0 1", "a: GET key0",
        "move key0", "seen a key0 2", "behind SET key0 3", "seen a key0 3", "b: GET key0 ; GETSET key0 4 ; GET key0",
        "a: GET key0", "end_move key0", "behind SET key0 5", "seen a key0 5", "b: GET key0 ; DEL key0 ; GET key0",
        "a: GET key0 ; SET key0 6 ; GET key0", "b: GET key0"],
    "a key under a rule, while its server stands still": [
        "connect a", "connect b 3", "a: SET key1 1 ; GET key1 ; GET key1", "b: GET key1", "stall 1",
        "a: GET key1 ; GET key1", "b: GET key1 ; GET x@2", "thaw 1", "a: INCR key1 ; GET key1", "b: GET key1"],
    "tracking a key under a rule": [
        "connect t 3", "connect a", "connect b 3", "a: SET key1 1 ; GET key1 ; GET key1",
        "t: CLIENT TRACKING ON ; GET key1", "a: SET key1 2 ; GET key1", "t> 1", "b: GET key1", "t: GET key1",
        "behind SET key1 3", "t> 1", "seen a key1 3", "b: GET key1 ; EXISTS key1", "t: GET key1",
        "b: INCR key1 ; GET key1", "t> 1", "a: GET key1 ; DEL key1 ; GET key1", "t: GET key1", "behind SET key1 5",
        "t> 1", "seen b key1 5", "a: GET key1 ; GETRANGE key1 0 -1"],
    "tracking": [
        "connect t 3", "connect a", "a: SET x@0b 1 ; SET y@0b 1", "t: CLIENT TRACKING ON ; GET x@0b", "a: SET x@0b 2",
        "t> 1", "t: GET x@0b", "behind SET x@0b 3", "t> 1", "t: GET x@0b ; GET y@0b", "begin_move x@0b 1",
        "behind SET x@0b 4", "t> 1", "t: GET x@0b", "end_move x@0b", "a: DEL y@0b"],
}


class Random:
    def __init__(self, seed):
        self.draw = random.Random(seed)
        self.owner, self.moving = 0, None  # owner of slot 0b; keys not moved yet (None: no migration)

    def key(self, slots=("0", "0b", "0b", "1", "2")):
        return f"{self.draw.choice(NAMES)}@{self.draw.choice(slots)}"

    def keys(self, slots):
        return [self.key(slots) for _ in range(self.draw.randint(1, 3))]

    def command(self, slots):
        """A command. With several keys, at most one is in the migrating slot: others would wait for its end."""
        draw, value = self.draw, self.draw.randint(0, 99)
        key, several = self.key(slots), self.keys([slot for slot in slots if self.moving is None or slot != "0b"])
        return draw.choice((
            f"GET {key}", f"GET {key}", f"SET {key} {value}", f"SET {key} {value} XX GET", f"SETNX {key} {value}",
            f"INCR {key}", f"INCR {key}", f"INCRBY {key} {value}", f"APPEND {key} {value}", f"DEL {key}",
            f"GETDEL {key}", f"GETSET {key} {value}", f"EXISTS {key}", f"STRLEN {key}", f"PTTL {key}", f"TYPE {key}",
            f"SETRANGE {key} 1 ab", f"GETRANGE {key} 0 -1", "PING", "ECHO a", f"INCRBYFLOAT {key} 0.5",
            "MGET " + " ".join(several), "EXISTS " + " ".join(several), "DEL " + " ".join(several),
            "MSET " + " ".join(f"{one} {value}" for one in several)))

    def requests(self):
        if self.draw.randint(0, 4):
            return [self.command(("0", "0b", "0b", "1", "2")) for _ in range(self.draw.randint(1, 6))]
        key = self.key()  # all commands of a transaction use one key
        watch = [f"WATCH {key}"] if self.draw.randint(0, 1) else []
        return watch + ["MULTI", f"INCR {key}", f"GET {key}", f"APPEND {key} 1", "EXEC"]

    def move(self):
        """The next step of the migration there or back."""
        if self.moving is None:
            self.moving = self.draw.sample(NAMES, len(NAMES))
            return [f"begin_move x@0b {1 - self.owner}"]
        if self.moving:
            key = self.moving.pop()
            return [f"a: SET {key}@0b {self.draw.randint(0, 99)}", f"move {key}@0b"]
        self.moving, self.owner = None, 1 - self.owner
        return ["end_move x@0b"]

    def lines(self):
        lines = ["connect a", "connect b 3", "connect c 3"]
        for _ in range(ROUNDS):
            if self.draw.randint(0, 3) == 0:
                lines += self.move()
            elif self.draw.randint(0, 9) == 0:
                key = self.key(("0", "1", "2"))
                lines.append(f"behind SET {key} {self.draw.randint(0, 99)}")
            else:
                lines.append(f"{self.draw.choice('abc')}: " + " ; ".join(self.requests()))
        return lines


def script(seed):
    return Random(seed).lines()
