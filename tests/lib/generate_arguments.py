"""Draws the arguments of the commands in generate_types.py: a method for each kind of argument."""

import hashlib

import generate
from generate import SMALL, case
from generate_values import (
    BIT_TYPES, BOUNDS, CONSUMERS, CONTENTS, FIELDS, FUNCTIONS, GROUPS, IDS, INTS, KEYS, LARGE, LEX,
    LIBRARIES, MEMBERS, NOWHERE, NO_BIT_TYPES, NO_BOUNDS, NO_IDS, NO_LEX, NO_SCORES, PLACES, SCORES,
    TYPES, UNITS)


class Arguments(generate.Arguments):
    """Draws arguments by kind. `slots`: "any": keys of any slots together; "one": all keys in one slot."""

    def __init__(self, generator, slots, mixed, tagged_only):
        super().__init__(generator.rng, tagged_only, mixed)
        self.one_slot = slots == "one"
        self.counter = generator.counter
        self.scripts = generator.scripts

    def pick(self, kind, alone):
        """A key, mostly of that type; unless `alone`, it may have to share a slot with other keys."""
        keys = KEYS if self.rng.random() < 0.06 else TYPES[kind]
        if self.tagged_only or self.one_slot and not alone and not self.mixed:
            keys = [key for key in keys if b"{t}" in key]
        return self.rng.choice(keys)

    def several(self, kind, most=3):
        return [self.pick(kind, False) for _ in range(self.rng.randint(1, most))]

    def __getattr__(self, name):
        """Kinds of keys by type, for example hash_key. For commands with several keys: hash_beside (one), hash_two,
        hash_keys (up to three), hash_numbered (preceded by their number)."""
        kind, _, what = name.partition("_")
        if kind not in TYPES:
            raise AttributeError(name)
        return {
            "key": lambda: [self.pick(kind, True)],
            "beside": lambda: [self.pick(kind, False)],
            "two": lambda: [self.pick(kind, False), self.pick(kind, False)],
            "keys": lambda: self.several(kind),
            "numbered": lambda: self.numbered(self.several(kind)),
        }[what]

    def numbered(self, keys):
        number = b"%d" % len(keys)
        if self.rng.random() < 0.05:
            number = self.rng.choice([b"0", b"-1", b"abc", b"9", b"1"])
        return [number] + keys

    # Keys of any type: generate.py's kinds with this module's keys.

    def any_key(self):
        return [self.any(True)]

    def any(self, alone):
        return self.pick(self.rng.choice(list(TYPES)), alone)

    def few_keys(self):
        return [self.any(False) for _ in range(self.rng.choice([1, 1, 2, 3, 5]))]

    def two_keys(self):
        return [self.any(False), self.any(False)]

    def key(self):
        if self.rng.random() < 0.2:
            return [self.any(True)]
        return [self.pick("string", True)]

    def pairs(self):
        return [arg for _ in range(self.rng.choice([1, 1, 2, 3]))
                for arg in (self.pick("string", False), self.rng.choice(generate.VALUES))]

    # Numbers and words.

    def word(self, *words):
        return case(self.rng, self.rng.choice(words))

    def mostly(self, good, odd):
        return self.rng.choice(good if self.rng.random() < 0.95 else odd)

    def maybe(self, chance, args):
        return args if self.rng.random() < chance else []

    def member(self):
        return [self.rng.choice(MEMBERS)]

    def members(self):
        return [self.rng.choice(MEMBERS) for _ in range(self.rng.choice([1, 1, 2, 3, 6]))]

    def ints(self):
        return [self.rng.choice(INTS) for _ in range(self.rng.choice([1, 2, 3]))]

    def field(self):
        return [self.rng.choice(FIELDS)]

    def fields(self):
        return [self.rng.choice(FIELDS) for _ in range(self.rng.choice([1, 2, 3]))]

    def content(self):
        return [self.rng.choice(CONTENTS)]

    def contents(self):
        return [self.rng.choice(CONTENTS) for _ in range(self.rng.choice([1, 1, 2, 3, 6]))]

    def field_pairs(self):
        return [arg for _ in range(self.rng.choice([1, 1, 2, 4]))
                for arg in (self.rng.choice(FIELDS), self.rng.choice(CONTENTS))]

    def large(self):
        return [self.rng.choice(LARGE)]

    def count(self):
        return [self.mostly([b"0", b"1", b"2", b"3", b"10"], [b"-1", b"-3", b"abc"])]

    def maybe_count(self):
        return self.maybe(0.4, self.count())

    def limit(self):
        rng = self.rng
        return [self.word(b"LIMIT"), rng.choice([b"0", b"1", b"2", b"-1", b"x"]),
                rng.choice([b"0", b"1", b"2", b"10", b"-1"])]

    def timeout(self):
        """A short timeout; 0 would block for ever."""
        return [self.mostly([b"0.001", b"0.001", b"0.01"], [b"-1", b"abc", b"", b"nan"])]

    def side(self):
        return [self.word(*self.mostly([[b"LEFT"], [b"RIGHT"]], [[b"UP"]]))]

    def mpop_options(self):
        count = [self.word(b"COUNT"), self.mostly([b"1", b"2", b"9"], [b"0", b"x"])]
        return self.side() + self.maybe(0.4, count)

    def zmpop_options(self):
        count = [self.word(b"COUNT"), self.mostly([b"1", b"2", b"9"], [b"0", b"x"])]
        return [self.word(*self.mostly([[b"MIN"], [b"MAX"]], [[b"MID"]]))] + self.maybe(0.4, count)

    # Random picks: all elements, or a number of which only the shape is compared.

    def sample(self):
        return self.rng.choice([[], [b"0"], [b"100"], [b"2"], [b"-3"], [b"x"], [b"1", b"2"]])

    def sample_with(self):
        word = self.word(b"WITHVALUES", b"WITHSCORES", b"WITHVALUES")
        sample = self.sample()
        return sample + self.maybe(0.4, [word]) if sample else sample

    def pop_all(self):
        return [self.rng.choice([b"100", b"0", b"-1", b"x"])]

    # Lists.

    def lpos_options(self):
        args = []
        for _ in range(self.rng.choice([0, 0, 1, 2])):
            args += [self.word(b"RANK", b"COUNT", b"MAXLEN"), self.rng.choice(SMALL)]
        return args

    # Sorted sets.

    def score(self):
        return [self.mostly(SCORES, NO_SCORES)]

    def scored(self):
        return [arg for _ in range(self.rng.choice([1, 1, 2, 4]))
                for arg in self.score() + self.member()]

    def zadd_options(self):
        return [self.word(b"NX", b"XX", b"GT", b"LT", b"CH", b"CH", b"INCR")
                for _ in range(self.rng.choice([0, 0, 0, 1, 1, 2]))]

    def bounds(self):
        return [self.mostly(BOUNDS, NO_BOUNDS), self.mostly(BOUNDS, NO_BOUNDS)]

    def lexes(self):
        return [self.mostly(LEX, NO_LEX), self.mostly(LEX, NO_LEX)]

    def scores_limit(self):
        return self.maybe(0.4, [self.word(b"WITHSCORES")]) + self.maybe(0.3, self.limit())

    def range_options(self):
        rng = self.rng
        kind = rng.choice([None, b"BYSCORE", b"BYLEX"])
        ends = {None: lambda: self.index() + self.index(), b"BYSCORE": self.bounds,
                b"BYLEX": self.lexes}[kind]()
        words = [[case(rng, kind)] if kind else [], self.maybe(0.3, [self.word(b"REV")]),
                 self.maybe(0.3, self.limit())]
        rng.shuffle(words)
        return ends + [word for group in words for word in group]

    def maybe_scores(self):
        return self.maybe(0.4, [self.word(b"WITHSCORES")])

    def combined(self):
        rng = self.rng
        keys = self.several(rng.choice(["zset", "zset", "set", "ints"]))
        args = self.numbered(keys)
        if rng.random() < 0.3:
            args += [self.word(b"WEIGHTS")] + [rng.choice([b"1", b"2", b"-1.5", b"0", b"inf", b"x"])
                                               for _ in keys]
        if rng.random() < 0.3:
            args += [self.word(b"AGGREGATE"), self.word(b"SUM", b"MIN", b"MAX", b"AVG")]
        return args

    def maybe_limit(self):
        return self.maybe(0.4, [self.word(b"LIMIT"),
                                self.rng.choice([b"0", b"1", b"2", b"-1", b"x"])])

    # Bits.

    def bit_operation(self):
        return [self.word(b"AND", b"OR", b"XOR", b"NOT", b"NAND")]

    def bitfield(self):
        rng, args = self.rng, []
        for _ in range(rng.choice([1, 1, 2, 3])):
            word = self.word(b"GET", b"SET", b"INCRBY", b"OVERFLOW")
            args.append(word)
            if word.upper() == b"OVERFLOW":
                args.append(self.mostly([b"WRAP", b"SAT", b"FAIL"], [b"NONE"]))
                continue
            args += [self.mostly(BIT_TYPES, NO_BIT_TYPES),
                     self.mostly([b"0", b"1", b"#1", b"#2", b"17"], [b"-1", b"x"])]
            if word.upper() != b"GET":
                args.append(self.mostly([b"0", b"1", b"-1", b"127", b"255", b"9999"], [b"x"]))
        return args

    def bitfield_ro(self):
        rng = self.rng
        return [arg for _ in range(rng.choice([1, 2]))
                for arg in (self.mostly([b"GET"], [b"SET"]), self.mostly(BIT_TYPES, NO_BIT_TYPES),
                            rng.choice([b"0", b"#1", b"9"]))]

    # Geo.

    def places(self):
        rng = self.rng
        return [arg for _ in range(rng.choice([1, 2, 3]))
                for arg in self.place() + [rng.choice(MEMBERS[:8])]]

    def geoadd_options(self):
        return [self.word(b"NX", b"XX", b"CH") for _ in range(self.rng.choice([0, 0, 0, 1, 2]))]

    def maybe_unit(self):
        return self.maybe(0.6, [self.rng.choice(UNITS)])

    def distance(self):
        return [self.mostly([b"100", b"200", b"5000", b"0"], [b"-1", b"x"]),
                self.mostly(UNITS[:4], UNITS)]

    def geo_from(self):
        rng = self.rng
        if rng.random() < 0.5:
            return [self.word(b"FROMMEMBER"), rng.choice(MEMBERS[:8])]
        return [self.word(b"FROMLONLAT")] + self.place()

    def geo_by(self):
        if self.rng.random() < 0.6:
            return [self.word(b"BYRADIUS")] + self.distance()
        return [self.word(b"BYBOX"), self.mostly([b"400", b"9000"], [b"-1"])] + self.distance()

    def geo_count(self):
        count = [self.word(b"COUNT"), self.rng.choice([b"1", b"2", b"9", b"0"])]
        return (self.maybe(0.4, [self.word(b"ASC", b"DESC")])
                + self.maybe(0.3, count + self.maybe(0.2, [self.word(b"ANY")])))

    def geo_with(self):
        return [self.word(b"WITHCOORD", b"WITHDIST", b"WITHHASH")
                for _ in range(self.rng.choice([0, 0, 1, 2, 3]))]

    def geo_store(self):
        if self.rng.random() < 0.7:
            return []
        return [self.word(b"STORE", b"STOREDIST"), self.pick("geo", False)]

    def place(self):
        return self.mostly(PLACES, NOWHERE)

    # Streams.

    def entry_id(self):
        rng = self.rng
        if rng.random() < 0.8:
            self.counter[0] += 1
            return [b"%d-%d" % (self.counter[0], rng.choice([0, 1, 1, 5]))]
        return [rng.choice([b"1-1", b"0-0", b"5-*", b"abc", b"%d-*" % (self.counter[0] + 1),
                            b"0-1", b"18446744073709551615-18446744073709551615" if
                            rng.random() < 0.05 else b"2-2"])]

    def trim(self):
        rng = self.rng
        args = [self.word(b"MAXLEN", b"MINID", b"MAXLEN")]
        about = rng.choice([[], [b"="], [b"~"], []])
        args += about + [rng.choice([b"0", b"1", b"3", b"10", b"-1", b"5-1", b"x"])]
        return args + self.maybe(0.15, [self.word(b"LIMIT"), rng.choice([b"0", b"10", b"-1"])])

    def xadd_options(self):
        return self.maybe(0.1, [self.word(b"NOMKSTREAM")]) + self.maybe(0.2, self.trim())

    def entry(self):
        return [arg for _ in range(self.rng.choice([1, 1, 2]))
                for arg in (self.rng.choice(FIELDS), self.rng.choice(CONTENTS))]

    def stream_id(self):
        rng = self.rng
        if rng.random() < 0.6:
            return [b"%d-%d" % (rng.randint(0, self.counter[0] + 1), rng.choice([0, 1, 5]))]
        return [self.mostly(IDS, NO_IDS)]

    def stream_ids(self):
        return [arg for _ in range(self.rng.choice([1, 1, 2, 3])) for arg in self.stream_id()]

    def stream_range(self):
        rng = self.rng
        ends = self.stream_id() + self.stream_id()
        if rng.random() < 0.5:
            ends = rng.choice([[b"-", b"+"], [b"+", b"-"]])
        return ends + self.maybe(0.3, [self.word(b"COUNT"), rng.choice([b"0", b"1", b"2", b"-1"])])

    def streams(self):
        keys = self.several("stream", 2)
        ids = [arg for _ in keys for arg in self.stream_id()]
        if self.rng.random() < 0.05:
            ids.pop()
        return [self.word(b"STREAMS")] + keys + ids

    def new_streams(self):
        keys = self.several("stream", 2)
        ids = [b">" if self.rng.random() < 0.7 else self.stream_id()[0] for _ in keys]
        return [self.word(b"STREAMS")] + keys + ids

    def read_options(self):
        count = [self.word(b"COUNT"), self.mostly([b"1", b"2", b"0"], [b"-1", b"x"])]
        block = [self.word(b"BLOCK"), self.mostly([b"1", b"10"], [b"-1", b"x"])]
        return self.maybe(0.3, count) + self.maybe(0.2, block)

    def group(self):
        return [self.mostly(GROUPS, [b"nosuch"])]

    def group_start(self):
        return self.rng.choice([[b"0"], [b"$"], self.stream_id()])

    def consumer(self):
        return [self.rng.choice(CONSUMERS)]

    def group_options(self):
        return (self.maybe(0.9, [self.word(b"MKSTREAM")])
                + self.maybe(0.2, [self.word(b"ENTRIESREAD"), self.mostly([b"0", b"3", b"-1"],
                                                                             [b"-2", b"x"])]))

    def idle(self):
        """Idle times that no entry reaches in a test, or that every entry has reached."""
        return [self.mostly([b"0", b"0", b"0", b"100000000"], [b"-1", b"x"])]

    def pending_range(self):
        if self.rng.random() < 0.4:
            return []
        idle = self.maybe(0.2, [self.word(b"IDLE")] + self.idle())
        ends = self.rng.choice([[b"-", b"+"], [b"-", b"+"], self.stream_id() + self.stream_id()])
        return idle + ends + [self.rng.choice([b"10", b"1", b"0", b"-1"])] + self.maybe(
            0.3, self.consumer())

    def claim_options(self):
        rng, args = self.rng, []
        for _ in range(rng.choice([0, 0, 1, 2])):
            word = self.word(b"IDLE", b"TIME", b"RETRYCOUNT", b"FORCE", b"JUSTID", b"LASTID")
            value = {b"IDLE": [b"1000"], b"TIME": [b"1577836800000"],
                     b"RETRYCOUNT": [rng.choice([b"0", b"3", b"-1"])],
                     b"LASTID": [b"%d-0" % rng.randint(0, self.counter[0])]}.get(word.upper(), [])
            args += [word] + value
        return args

    def autoclaim_options(self):
        return (self.maybe(0.3, [self.word(b"COUNT"), self.rng.choice([b"1", b"2", b"0"])])
                + self.maybe(0.3, [self.word(b"JUSTID")]))

    def maybe_full(self):
        return self.rng.choice([[], [], [b"FULL"], [b"full", b"COUNT", b"2"], [b"NOSUCH"]])

    # Keys.

    def sort_options(self, *more):
        rng, args = self.rng, []
        for _ in range(rng.choice([0, 1, 1, 2, 3])):
            word = self.word(b"ALPHA", b"ALPHA", b"DESC", b"ASC", b"LIMIT", *more)
            value = {b"LIMIT": [rng.choice([b"0", b"1", b"-1", b"x"]), rng.choice([b"2", b"10"])],
                     b"GET": [rng.choice([b"#", b"{t}*", b"{t}h1->*", b"*", b"h*->a"])],
                     b"BY": [rng.choice([b"{t}*", b"nosort", b"{t}h1->*", b"weight_*"])]}
            args += [word] + value.get(word.upper(), [])
        return args

    def sort_store(self):
        """Options of SORT STORE without BY, because elements of equal weight have no defined order."""
        if self.rng.random() < 0.3:
            return self.sort_options() + [self.word(b"STORE"), self.pick("list", False)]
        return self.sort_options(b"GET", b"BY")

    def sort_read(self):
        return self.sort_options(b"GET", b"BY")

    def database(self):
        return [self.rng.choice([b"1", b"1", b"0", b"2", b"99", b"x"])]

    def copy_options(self):
        if self.rng.random() < 0.2 and not self.one_slot:
            return [self.word(b"DB")] + self.database() + self.maybe(0.3, [b"REPLACE"])
        return super().copy_options()

    def restore_options(self):
        rng, args = self.rng, []
        for _ in range(rng.choice([0, 1, 1, 2])):
            word = self.word(b"REPLACE", b"REPLACE", b"ABSTTL", b"IDLETIME", b"FREQ")
            value = {b"IDLETIME": [rng.choice([b"10", b"-1"])], b"FREQ": [rng.choice([b"5",
                                                                                  b"256"])]}
            args += [word] + value.get(word.upper(), [])
        return args

    def restore_ttl(self):
        return [self.rng.choice([b"0", b"0", b"-1", b"x", b"9999999999999"])]

    def payload(self):
        return [self.rng.choice([b"", b"x", b"\x00\x03abc\n\x00" + b"\x00" * 8])]

    def memory_options(self):
        return self.rng.choice([[], [], [b"SAMPLES", b"0"], [b"SAMPLES", b"x"], [b"NOSUCH"]])

    # Scripts.

    def script(self):
        return [self.rng.choice(self.scripts)]

    def digest(self):
        digest = hashlib.sha1(self.rng.choice(self.scripts)).hexdigest().encode()
        return [self.mostly([digest, digest, digest.upper()], [b"0" * 40, b"short"])]

    def digests(self):
        return [arg for _ in range(self.rng.choice([1, 2, 3])) for arg in self.digest()]

    def script_keys(self):
        keys = [self.any(False) for _ in range(self.rng.choice([0, 1, 1, 1, 2]))]
        return self.numbered(keys) + [self.rng.choice(CONTENTS) for _ in range(self.rng.choice(
            [0, 1, 1, 2]))]

    def library(self):
        return [self.rng.choice(LIBRARIES)]

    def library_name(self):
        return [self.rng.choice([b"one", b"two", b"late", b"resp", b"nosuch", b""])]

    def function(self):
        return [self.rng.choice(FUNCTIONS)]

    def list_options(self):
        return self.rng.choice([[], [b"WITHCODE"], [b"LIBRARYNAME", b"o*"], [b"LIBRARYNAME"],
                                [b"NOSUCH"], [b"withcode", b"libraryname", b"two"]])

    # All keys of a command together.

    def zset_store(self):
        return [self.pick("zset", False)] + self.combined()

    def geo_pair_radius(self):
        return ([self.pick("geo", False)] + self.place() + self.distance() + self.geo_count()
                + self.geo_with() + self.geo_store())

    def geo_pair_member(self):
        return ([self.pick("geo", False)] + self.member() + self.distance() + self.geo_count()
                + self.geo_with() + self.geo_store())

    def list_sort(self):
        return [self.pick("list", False)] + self.sort_store()

    def zset_sort(self):
        return [self.pick("zset", False)] + self.sort_store()

    def wait(self):
        return [self.rng.choice([b"0", b"1", b"-1", b"x"]), self.rng.choice([b"1", b"10", b"-1",
                                                                             b"x"])]

    def command_names(self):
        return [self.rng.choice([b"hset", b"EVAL", b"xread", b"blpop", b"sort", b"nosuch", b"get"])
                for _ in range(self.rng.choice([1, 2]))]

    def any_command(self):
        return self.rng.choice([
            [b"HSET", b"h", b"f", b"v"], [b"EVAL", b"x", b"2", b"a", b"b"], [b"ZADD", b"z"],
            [b"XREAD", b"COUNT", b"1", b"STREAMS", b"a", b"b", b"0", b"0"], [b"BLPOP", b"a", b"0"],
            [b"SORT", b"a", b"STORE", b"b"], [b"ZUNIONSTORE", b"d", b"2", b"a", b"b"],
            [b"XGROUP", b"CREATE", b"s", b"g", b"0"], [b"LMPOP", b"2", b"a", b"b", b"LEFT"],
            [b"GEORADIUS", b"g", b"1", b"2", b"3", b"m", b"STORE", b"d"], [b"WAIT", b"0", b"0"],
            [b"SCRIPT", b"LOAD", b"x"], [b"XINFO", b"NOSUCH", b"x"], [b"BITOP", b"AND", b"d", b"a"],
        ])
