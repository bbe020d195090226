"""Random command sequences for the differential test, all from one seed.

A sequence is a list of steps; a step is sent in one piece on one of two connections. Commands come from a table, one
row each, with kinds of arguments. Some are then bent: an argument dropped, added or replaced by an odd one, letters in
the wrong case. Every generated command has one right reply, independent of the time: expiry times lie in the past or
far ahead, and values stay small enough to need little memory on any server.

Two profiles differ only in which keys a command may mix:
  cluster  any keys, but the commands that heatsink splits get keys of one slot outside MULTI;
  plain    those get any keys, and everything else keys of one slot.
"""

import random

SPLIT = {b"MGET", b"MSET", b"DEL", b"UNLINK", b"EXISTS", b"TOUCH"}

# Commands that the generator leaves out of transactions: heatsink refuses those about all partitions together with
# keys, some would end a connection, and HELLO decides the protocol of the whole EXEC reply, where Redis switches in the
# middle.
SPANNING = {b"FLUSHALL", b"FLUSHDB", b"DEBUG", b"LATENCY", b"CLIENT KILL", b"HELLO"}

TAGGED = [b"{t}1", b"{t}2", b"{t}3", b"x{t}y", b"{t}", b"{t}" + b"L" * 600, b"{t}{u}"]
LONE = [
    b"a", b"b", b"foo", b"", b" ", b"{}t", b"{}{t}", b"{", b"t}", b"\x00\xff\r\n\t",
    b"key with space",
    b"L" * 250, b"L" * 251, b"L" * 300, b"L" * 300 + b"2", b"M" * 5000, b"\xc3\xa9", b"*", b"[a-c]",
]
KEYS = TAGGED + LONE

VALUES = [
    b"0", b"1", b"-1", b"10", b"9999", b"10000", b"-5", b"3.14", b"-0.5", b"5e2", b"abc", b"",
    b" 10",
    b"10 ", b"+5", b"05", b"-0", b"0x10", b"9223372036854775807", b"-9223372036854775808",
    b"9223372036854775808", b"inf", b"nan", b"1e400", b"hello world", b"ohmytext", b"mynewtext",
    b"\x00\x01\xfe\xff\r\n", b"x" * 20, b"y" * 44, b"y" * 45, b"z" * 300, b"\xff" * 33, b"\x00" * 9,
    b"w" * 4500, b"1234567890123456789", b"12345678901234567890123",
]

# None of these is a small positive number: as an expiry it would make the reply depend on time.
ODD = [
    b"", b"abc", b"-1", b"0", b" 5", b"5 ", b"+5", b"05", b"1.5", b"1e3", b"0x10", b"-0", b"nan",
    b"inf",
    b"9223372036854775807", b"-9223372036854775808", b"9223372036854775808",
    b"-9223372036854775809", b"4294967296", b"99999999999999999999999", b"\x00", b"\r\n", b"nx",
    b"XX",
    b"GT", b"get", b"KEEPTTL", b"EX", b"{t}1", b"*",
]

SMALL = [b"0", b"1", b"2", b"3", b"7", b"8", b"15", b"100", b"-1", b"-2", b"-3", b"-100"]
PAST_S = [b"1", b"1000000000", b"1577836800"]
PAST_MS = [b"1", b"1000000000000", b"1577836800000"]
FUTURE_S = [b"4102444800", b"4102444801", b"9999999999"]
FUTURE_MS = [b"4102444800000", b"4102444800499", b"4102444800500", b"9999999999999"]
BAD_TIME = [
    b"0", b"-1", b"-1000", b"abc", b"", b"9223372036854775807", b"9223372036854775",
    b"9223372036854776", b"-9223372036854775808", b"9223372036854775808", b"1.5",
]
PATTERNS = [
    b"*", b"a", b"?", b"{t}*", b"*L*", b"[a-c]", b"[^a]", b"\\*", b"k*e", b"", b"*\xff*", b"[",
    b"[a",
    b"\\[a-c\\]", b"foo", b"f[o]?", b"**", b"[z-a]", b"[a", b"\\",
]


class Step:
    """`commands` are sent in one piece on connection `conn`. `joined`: the next step of the same connection may be
    sent together with this one. `replies`: the number of replies (None: one per command). `macro`: a procedure of
    the executor (a step of several commands) instead of a plain comparison."""

    def __init__(self, conn, commands, joined=False, replies=None, macro=None, raw=None):
        self.conn = conn
        self.commands = commands
        self.joined = joined
        self.replies = replies
        self.macro = macro
        self.raw = raw

    def __repr__(self):
        what = self.raw if self.raw is not None else self.commands
        return "  conn %d%s %s" % (self.conn, " " + self.macro if self.macro else "", what)


def case(rng, word):
    """A word of a command, mostly in capitals."""
    return rng.choice([word, word, word, word.lower(), word.title()])


class Arguments:
    """Draws arguments by kind. All keys of one command are in one slot unless `mixed`."""

    def __init__(self, rng, tagged_only, mixed):
        self.rng = rng
        self.tagged_only = tagged_only
        self.pool = TAGGED if tagged_only else KEYS
        self.mixed = mixed

    def key(self):
        return [self.rng.choice(self.pool)]

    def few_keys(self):
        rng = self.rng
        pool = KEYS if self.mixed else TAGGED
        if not self.mixed and not self.tagged_only and rng.random() < 0.2:
            pool = [rng.choice(LONE)]
        return [rng.choice(pool) for _ in range(rng.choice([1, 1, 2, 3, 5]))]

    def two_keys(self):
        rng = self.rng
        if self.mixed and rng.random() < 0.3:
            return [rng.choice(KEYS), rng.choice(KEYS)]
        return [rng.choice(TAGGED), rng.choice(TAGGED)]

    def pairs(self):
        return [arg for key in self.few_keys() for arg in (key, self.rng.choice(VALUES))]

    def value(self):
        return [self.rng.choice(VALUES)]

    def integer(self):
        return [self.rng.choice(SMALL + [b"10000", b"9223372036854775807", b"-9223372036854775808",
                                         b"abc"])]

    def number(self):
        return [self.rng.choice([
            b"1", b"-1", b"0.1", b"3.0e3", b"-2.5", b"1e18", b"1e-10", b"inf", b"-inf", b"nan",
            b"1e400",
            b"abc", b"", b" 1", b"0x1p3", b"5.", b".5", b"1e5000", b"0.30000000000000004", b"-0",
            b"9007199254740993", b"100000000000000000000",
        ])]

    def index(self):
        return [self.rng.choice(SMALL + [b"20", b"2147483648", b"-2147483649",
                                         b"9223372036854775807",
                                    b"-9223372036854775808", b"x"])]

    def offset(self):
        return [self.rng.choice([b"0", b"1", b"5", b"44", b"300", b"-1", b"536870912",
                                 b"4294967296",
                                    b"9223372036854775807", b"a", b""])]

    def bit_offset(self):
        return [self.rng.choice([b"0", b"1", b"7", b"8", b"100", b"999", b"-1", b"4294967296",
                                    b"9223372036854775807", b"a", b""])]

    def bit(self):
        return [self.rng.choice([b"0", b"1", b"1", b"2", b"-1", b"x"])]

    def range(self):
        rng = self.rng
        choice = rng.random()
        if choice < 0.25:
            return []
        if choice < 0.35:
            return self.index()
        unit = [case(rng, rng.choice([b"BYTE", b"BIT", b"BYTES"]))] if rng.random() < 0.5 else []
        return self.index() + self.index() + unit

    def relative(self):
        """A relative expiry, far enough ahead to stay in the future, never the same twice."""
        if self.rng.random() < 0.25:
            return [self.rng.choice(BAD_TIME)]
        return [b"%d" % self.rng.randint(10 ** 8, 10 ** 10)]

    def absolute_s(self):
        return [self.rng.choice(self.rng.choice([PAST_S, FUTURE_S, FUTURE_S, BAD_TIME]))]

    def absolute_ms(self):
        return [self.rng.choice(self.rng.choice([PAST_MS, FUTURE_MS, FUTURE_MS, BAD_TIME]))]

    def expire_flags(self):
        rng = self.rng
        flags = [b"NX", b"XX", b"GT", b"LT"]
        return [case(rng, rng.choice(flags)) for _ in range(rng.choice([0, 0, 1, 1, 1, 2, 3]))]

    def expiry(self):
        rng = self.rng
        option = rng.choice([b"EX", b"PX", b"EXAT", b"PXAT"])
        time = {b"EXAT": self.absolute_s, b"PXAT": self.absolute_ms}.get(option, self.relative)()
        return [case(rng, option)] + (time if rng.random() < 0.95 else [])

    def set_options(self):
        rng = self.rng
        options = []
        for _ in range(rng.choice([0, 0, 0, 1, 1, 2, 3])):
            word = rng.choice([b"NX", b"XX", b"GET", b"KEEPTTL", None, None])
            options += [case(rng, word)] if word else self.expiry()
        return options

    def getex_options(self):
        rng = self.rng
        choice = rng.random()
        if choice < 0.2:
            return []
        if choice < 0.4:
            return [case(rng, b"PERSIST")]
        return self.expiry() + (self.expiry() if choice > 0.9 else [])

    def lcs_options(self):
        rng = self.rng
        options = []
        for _ in range(rng.choice([0, 1, 1, 2, 3])):
            word = rng.choice([b"LEN", b"IDX", b"IDX", b"WITHMATCHLEN", b"MINMATCHLEN"])
            options.append(case(rng, word))
            if word == b"MINMATCHLEN" and rng.random() < 0.9:
                options.append(rng.choice([b"0", b"1", b"2", b"4", b"-1", b"x", b"100"]))
        return options

    def copy_options(self):
        rng = self.rng
        choice = rng.random()
        if choice < 0.3:
            return []
        if choice < 0.7:
            return [case(rng, b"REPLACE")]
        database = rng.choice([b"0", b"0", b"abc", b"-1", b""])
        return [case(rng, b"DB"), database] + ([b"REPLACE"] if choice > 0.9 else [])

    def pattern(self):
        return [self.rng.choice(PATTERNS)]

    def flush_mode(self):
        return self.rng.choice([[], [], [b"ASYNC"], [b"sync"], [b"nosuch"], [b"ASYNC", b"SYNC"]])

    def client_name(self):
        return [self.rng.choice([b"me", b"", b"a b", b"new\nline", b"caf\xc3\xa9", b"x" * 100,
                                 b"~!"])]

    def protocol(self):
        return [self.rng.choice([b"2", b"3", b"3", b"4", b"1", b"0", b"-1", b"abc", b""])]

    def hello_options(self):
        return self.rng.choice([
            [], [], [], [b"SETNAME", b"him"], [b"AUTH", b"default", b"pw"],
            [b"AUTH", b"nobody", b"pw"],
            [b"SETNAME", b"a b"], [b"AUTH", b"default"], [b"SETNAME"], [b"NOSUCH"],
            [b"auth", b"default", b"x", b"setname", b"both"],
        ])

    def credentials(self):
        return self.rng.choice([[b"pw"], [b"default", b"pw"], [b"nobody", b"pw"],
                                [b"a", b"b", b"c"], []])

    def any_command(self):
        return self.rng.choice([
            [b"GET", b"k"], [b"SET", b"k", b"v", b"EX", b"10"], [b"MSET", b"a", b"1", b"b", b"2"],
            [b"MGET", b"a", b"b", b"c"], [b"PING"], [b"nosuch"], [b"GET"], [b"COPY", b"a", b"b"],
            [b"OBJECT", b"ENCODING", b"k"], [b"OBJECT", b"HELP"], [b"LCS", b"a", b"b"], [b"TIME"],
            [],
            [b"BITPOS", b"k", b"1"], [b"RENAME", b"a", b"b"], [b"WATCH", b"a", b"b"], [b"EXEC"],
            [b"DEL", b"a", b"b"], [b"SCAN", b"0"], [b"CLIENT", b"ID"], [b"client", b"nosuch"],
        ])


# (weight, the command's words, the kinds of its arguments)
COMMANDS = [
    # strings
    (6, b"GET", "key"), (12, b"SET", "key value set_options"), (6, b"SET", "key value"),
    (2, b"SETNX", "key value"), (2, b"SETEX", "key relative value"),
    (2, b"PSETEX", "key relative value"), (2, b"GETSET", "key value"), (2, b"GETDEL", "key"),
    (4, b"GETEX", "key getex_options"), (4, b"MGET", "few_keys"), (4, b"MSET", "pairs"),
    (3, b"MSETNX", "pairs"), (4, b"INCR", "key"), (3, b"INCRBY", "key integer"),
    (2, b"DECR", "key"),
    (3, b"DECRBY", "key integer"), (4, b"INCRBYFLOAT", "key number"), (4, b"APPEND", "key value"),
    (2, b"STRLEN", "key"), (3, b"GETRANGE", "key index index"),
    (4, b"SETRANGE", "key offset value"),
    (1, b"SUBSTR", "key index index"), (4, b"LCS", "two_keys lcs_options"),
    # bits
    (3, b"GETBIT", "key bit_offset"), (4, b"SETBIT", "key bit_offset bit"),
    (4, b"BITCOUNT", "key range"), (4, b"BITPOS", "key bit range"),
    # keys
    (3, b"DEL", "few_keys"), (1, b"UNLINK", "few_keys"), (3, b"EXISTS", "few_keys"),
    (1, b"TOUCH", "few_keys"), (2, b"TYPE", "key"), (4, b"EXPIRE", "key relative expire_flags"),
    (4, b"PEXPIRE", "key relative expire_flags"), (4, b"EXPIREAT", "key absolute_s expire_flags"),
    (4, b"PEXPIREAT", "key absolute_ms expire_flags"), (2, b"EXPIRETIME", "key"),
    (3, b"PEXPIRETIME", "key"), (2, b"TTL", "key"), (2, b"PTTL", "key"), (2, b"PERSIST", "key"),
    (3, b"RENAME", "two_keys"), (3, b"RENAMENX", "two_keys"), (4, b"COPY", "two_keys copy_options"),
    (2, b"KEYS", "pattern"), (3, b"OBJECT ENCODING", "key"), (2, b"OBJECT REFCOUNT", "key"),
    (1, b"OBJECT IDLETIME", "key"), (1, b"OBJECT FREQ", "key"), (1, b"OBJECT NOSUCH", "key"),
    # transactions
    (3, b"MULTI", ""), (0.7, b"EXEC", ""), (0.7, b"DISCARD", ""), (3, b"WATCH", "few_keys"),
    (1, b"UNWATCH", ""),
    # connection
    (1, b"PING", ""), (1, b"PING", "value"), (1, b"ECHO", "value"), (1, b"SELECT 0", ""),
    (0.5, b"SELECT", "odd"), (0.5, b"AUTH", "credentials"), (1, b"HELLO", "protocol hello_options"),
    (0.5, b"RESET", ""), (0.5, b"QUIT", ""), (0.5, b"CLIENT SETNAME", "client_name"),
    (0.5, b"CLIENT GETNAME", ""), (0.3, b"CLIENT ID", ""), (0.3, b"CLIENT NOSUCH", ""),
    (0.3, b"CLIENT NO-EVICT ON", ""), (0.3, b"CLIENT NO-EVICT", "odd"), (0.3, b"CLIENT", ""),
    (0.3, b"CLIENT REPLY", "odd"), (0.3, b"CLIENT KILL", "odd"), (0.3, b"CLIENT KILL", "odd odd"),
    (0.3, b"CLIENT KILL TYPE", "odd"), (0.3, b"CLIENT KILL SKIPME", "odd"),
    (0.2, b"CLIENT LIST ID", "odd"),
    (0.2, b"CLIENT LIST TYPE", "odd"), (0.2, b"CLIENT LIST", "odd"),
    # server
    (0.5, b"TIME", ""), (0.4, b"FLUSHALL", "flush_mode"), (0.4, b"FLUSHDB", "flush_mode"),
    (0.4, b"COMMAND GETKEYS", "any_command"), (0.2, b"COMMAND NOSUCH", ""),
    (0.2, b"COMMAND COUNT", ""),
    (0.2, b"COMMAND COUNT", "odd"), (0.2, b"COMMAND LIST NOSUCH", ""),
    (0.2, b"CONFIG GET nosuch", ""), (0.2, b"CONFIG GET maxclients", ""),
    (0.2, b"CONFIG SET nosuch", "value"), (0.2, b"CONFIG SET", "odd"),
    (0.2, b"CONFIG SET maxclients", "odd"), (0.2, b"CONFIG NOSUCH", ""), (0.2, b"CONFIG", ""),
    (0.2, b"DEBUG SLEEP 0", ""), (0.2, b"DEBUG NOSUCH", ""), (0.3, b"FUNCTION FLUSH", ""),
    (0.2, b"FUNCTION FLUSH ASYNC", ""), (0.2, b"FUNCTION FLUSH NOSUCH", ""),
    (0.2, b"FUNCTION NOSUCH", ""),
    (0.2, b"SLOWLOG LEN", "odd"), (0.2, b"SLOWLOG GET abc", ""), (0.2, b"SLOWLOG GET -5", ""),
    (0.2, b"SLOWLOG NOSUCH", ""), (0.2, b"LATENCY LATEST", ""), (0.2, b"LATENCY RESET", ""),
    (0.2, b"LATENCY NOSUCH", ""), (0.2, b"INFO", ""), (0.2, b"INFO nosuch", ""),
    # unknown commands
    (0.5, b"NOSUCH", ""), (0.5, b"NOSUCH", "value value value key"), (0.2, b"", ""),
    (0.2, b"x" * 200, "value"),
    # Not GET\x00: Redis takes it for GET if both names fall into one bucket of its hash table, whose seed Redis draws
    # at each start.
    (0.2, b"no\r\nsuch", "value"), (0.2, b"NOSUCH\x00", "key"),
]

PAIRS = {b"RENAME", b"RENAMENX", b"COPY", b"LCS"}
UNBENT = {b"DEBUG", b"CLIENT", b"SLOWLOG", b"CONFIG", b"FUNCTION", b"COMMAND"}

INLINE = [
    b"PING\r\n", b"ping\n", b"  PING  \r\n", b"SET {t}1 value\r\n", b"GET {t}1\r\n", b"\r\n", b"\n",
    b"   \r\n",
    b'SET {t}2 "a b\\x41\\n\\"q\\""\r\n', b"GET {t}2\r\n", b"SET {t}3 'single \\' \\n'\r\n",
    b"GET {t}3\r\n",
    b'ECHO ""\r\n', b"ECHO 'x'\r\n", b"nosuch a b c\r\n", b"GET\r\n", b"ECHO \t tab\r\n", b"*0\r\n",
    b"*-1\r\n",
    b"*1\r\n$4\r\nPING\r\n", b"*2\r\n$4\r\nECHO\r\n$0\r\n\r\n",
]
SILENT = {b"\r\n", b"\n", b"   \r\n", b"*0\r\n", b"*-1\r\n"}


class Generator:
    rows = COMMANDS
    quiet = [[b"INCR", b"{t}1"], [b"SET", b"a", b"quiet"], [b"GET"], [b"nosuch"],
             [b"APPEND", b"b", b"x"]]  # commands for blocks without replies

    def __init__(self, seed, profile):
        self.rng = random.Random("%s %s" % (profile, seed))
        self.profile = profile
        self.weights = [row[0] for row in self.rows]
        self.in_multi = [False, False]
        self.watching = [False, False]
        self.one_slot = [True, True]  # all keys of the transaction are in one slot

    def command(self, conn):
        """The next command, mostly from the table; inside a transaction, EXEC is drawn more often."""
        rng = self.rng
        if self.in_multi[conn] and rng.random() < 0.15:
            return [case(rng, b"EXEC")]
        if self.watching[conn] and not self.in_multi[conn] and rng.random() < 0.4:
            return [case(rng, b"MULTI")]
        return self.table_command(conn)

    def table_command(self, conn):
        rng = self.rng
        while True:
            _, words, kinds = rng.choices(self.rows, self.weights)[0]
            name = words.split(b" ")[0] if words else words
            if not self.skips(conn, name, words):
                break
        arguments = self.arguments(conn, name)
        argv = [case(rng, word) for word in words.split(b" ")]
        for kind in kinds.split():
            argv += self.draw(arguments, kind)
        if rng.random() < (0.02 if self.in_multi[conn] else 0.07) and self.may_bend(conn, name):
            self.bend(argv)
        return argv

    def skips(self, conn, name, words):
        """True if the command is not allowed in the present state."""
        if self.in_multi[conn] and (name in SPANNING or words[:11] in SPANNING):
            return True
        # heatsink refuses other databases; a plain server accepts them.
        return self.profile == "plain" and words == b"SELECT"

    def arguments(self, conn, name):
        """The drawer of arguments, which decides which keys may be mixed."""
        rng = self.rng
        if name == b"WATCH" or self.in_multi[conn] and self.watching[conn]:
            return Arguments(rng, True, False)
        if self.profile == "plain":
            mixed = name in SPLIT and not self.in_multi[conn]
            return Arguments(rng, self.in_multi[conn] or rng.random() < 0.5, mixed)
        splits = name in SPLIT and not self.in_multi[conn]
        tagged = self.in_multi[conn] and self.one_slot[conn] or self.watching[1 - conn]
        return Arguments(rng, tagged, not splits and not tagged and rng.random() < 0.25)

    def draw(self, arguments, kind):
        return [self.rng.choice(ODD)] if kind == "odd" else getattr(arguments, kind)()

    def may_bend(self, conn, name):
        """False where another argument would be another key, because slot rules have separate tests, and where it
        could cause a long sleep or change the server."""
        if self.profile == "plain" and (self.in_multi[conn] or name in PAIRS or name == b"SELECT"):
            return False
        return name not in UNBENT

    def bend(self, argv):
        """Makes a wrong arity or inserts an odd argument."""
        rng = self.rng
        name = argv[0].upper()
        fixed = name in SPLIT or name in (b"WATCH", b"MSETNX")
        at = rng.randint(1, len(argv))
        if rng.random() < 0.4:
            del argv[at:]
        elif fixed:
            del argv[-1:]
        elif rng.random() < 0.5 or at == len(argv):
            argv.insert(at, rng.choice(ODD))
        elif name not in PAIRS:
            argv[at] = rng.choice(ODD)

    def step(self):
        rng = self.rng
        conn = 0 if rng.random() < (0.5 if any(self.watching) else 0.8) else 1
        joined = rng.random() < 0.6
        special = None if self.in_multi[conn] else self.special(conn)
        if special:
            return special
        if rng.random() > 0.985:
            raw = rng.choice(INLINE)
            return Step(conn, [raw.split()], raw=raw, replies=0 if raw in SILENT else 1)
        argv = self.command(conn)
        name = argv[0].upper()
        if name == b"MULTI":
            self.in_multi[conn] = True
            self.one_slot[conn] = rng.random() < 0.85
        elif name == b"WATCH":
            self.watching[conn] = True
        elif name in (b"EXEC", b"DISCARD", b"RESET", b"QUIT"):
            self.in_multi[conn] = self.watching[conn] = False
        return Step(conn, [argv], joined=joined and name != b"QUIT")

    def special(self, conn):
        """Sometimes a macro or a block without replies; mostly None."""
        kind = self.rng.random()
        if kind < 0.015:
            return Step(conn, [self.scan()], macro="scan")
        if kind < 0.03:
            return Step(conn, [[b"DBSIZE"]], macro="dbsize")
        if kind < 0.04:
            return Step(conn, [[b"RANDOMKEY"]], macro="randomkey")
        return self.silent_block(conn) if kind < 0.05 else None

    def scan(self):
        rng = self.rng
        argv = [case(rng, b"SCAN"), rng.choice([b"0"] * 8 + [b"abc", b"",
                                                             b"99999999999999999999999"])]
        for _ in range(rng.choice([0, 0, 1, 1, 2, 3])):
            word = rng.choice([b"MATCH", b"COUNT", b"TYPE"])
            value = {
                b"MATCH": rng.choice(PATTERNS),
                b"COUNT": rng.choice([b"1", b"2", b"5", b"1000", b"0", b"-1", b"abc"]),
                b"TYPE": rng.choice([b"string", b"STRING", b"list", b"nosuch"]),
            }[word]
            argv += [case(rng, word)] + ([value] if rng.random() < 0.95 else [])
        return argv

    def silent_block(self, conn):
        """CLIENT REPLY OFF … ON gives one reply; SKIP drops one reply."""
        rng = self.rng
        chosen = [rng.choice(self.quiet) for _ in range(rng.choice([1, 2, 3]))]
        if rng.random() < 0.5:
            commands = [[b"CLIENT", b"REPLY", b"OFF"]] + chosen + [[b"CLIENT", b"REPLY", b"ON"]]
            return Step(conn, commands, replies=1, macro="silent")
        commands = [[b"CLIENT", b"REPLY", b"SKIP"]] + chosen
        return Step(conn, commands, replies=len(chosen) - 1, macro="silent")

    def sequence(self, length):
        return [self.step() for _ in range(length)]
