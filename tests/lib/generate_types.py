"""Random sequences over everything that a Redis server has, for heatsink in front of one.

To the commands of generate.py this adds hashes, lists, sets, sorted sets, streams, bitmaps, hyperloglogs, geo, SORT,
DUMP, scripts and functions, and blocking commands. Each type has keys of its own, so that most commands find a key of
the right type; sometimes one gets a key of any type.

Every command has one right reply. Servers keep large collections in their own order, so hashes and sorted sets stay
small (long values have a separate key). Random results (SPOP, SRANDMEMBER) are compared by rules or as a macro
(differential.py). Blocking commands wait 10 ms at most, except in the macro in which the other connection ends the
wait.

Profiles:
  engine          one server (redis://): keys of any slots together;
  engine-cluster  a Cluster against one node with all slots: keys of one slot together.
For the commands that are split over a Cluster's slots there is generate.py's profile plain.
"""

import generate
from generate import Step, case
from generate_arguments import Arguments
from generate_values import ANYWHERE, CONTENTS, KEYS, LIBRARIES, PLACES, SCRIPTS, TYPES

# Group: rows of (weight, the command's words, the kinds of its arguments). A WORD in capitals stands for itself, A/B
# for one of the two. Each sequence draws some groups often and the others rarely.
COMMANDS = {
    "hashes": [
        (6, b"HSET", "hash_key field_pairs"), (2, b"HMSET", "hash_key field_pairs"),
        (1, b"HSETNX", "hash_key field content"), (2, b"HGET", "hash_key field"),
        (2, b"HMGET", "hash_key fields"), (2, b"HDEL", "hash_key fields"),
        (1, b"HEXISTS", "hash_key field"), (1, b"HLEN", "hash_key"),
        (1, b"HSTRLEN", "hash_key field"), (1, b"HKEYS", "hash_key"), (1, b"HVALS", "hash_key"),
        (3, b"HGETALL", "hash_key"), (2, b"HINCRBY", "hash_key field integer"),
        (2, b"HINCRBYFLOAT", "hash_key field number"), (1, b"HRANDFIELD", "hash_key sample_with"),
        (1, b"HSET", "big_key field large"), (1, b"HGET", "big_key field"),
        (1, b"HGETALL", "big_key"), (0.5, b"HVALS", "big_key"),
    ],
    "lists": [
        (4, b"LPUSH", "list_key contents"), (5, b"RPUSH", "list_key contents"),
        (1, b"LPUSHX", "list_key contents"), (1, b"RPUSHX", "list_key contents"),
        (2, b"LPOP", "list_key maybe_count"), (2, b"RPOP", "list_key maybe_count"),
        (1, b"LLEN", "list_key"), (3, b"LRANGE", "list_key index index"),
        (1, b"LINDEX", "list_key index"), (1, b"LSET", "list_key index content"),
        (1, b"LINSERT", "list_key BEFORE/AFTER/BESIDE content content"),
        (1, b"LREM", "list_key count content"), (1, b"LTRIM", "list_key index index"),
        (2, b"LPOS", "list_key content lpos_options"), (2, b"LMOVE", "list_two side side"),
        (1, b"RPOPLPUSH", "list_two"), (2, b"LMPOP", "list_numbered mpop_options"),
    ],
    "sets": [
        (5, b"SADD", "set_key members"), (3, b"SADD", "ints_key ints"),
        (2, b"SREM", "set_key members"), (1, b"SISMEMBER", "set_key member"),
        (1, b"SMISMEMBER", "set_key members"), (2, b"SMEMBERS", "set_key"),
        (1, b"SMEMBERS", "ints_key"), (1, b"SCARD", "set_key"), (1, b"SMOVE", "set_two member"),
        (2, b"SINTER", "set_keys"), (2, b"SUNION", "set_keys"), (2, b"SDIFF", "set_keys"),
        (1, b"SINTER", "ints_keys"), (1, b"SUNION", "ints_keys"),
        (1, b"SINTERSTORE", "set_beside set_keys"), (1, b"SUNIONSTORE", "set_beside set_keys"),
        (1, b"SDIFFSTORE", "ints_two ints_keys"), (2, b"SINTERCARD", "set_numbered maybe_limit"),
        (1, b"SRANDMEMBER", "set_key sample"), (0.6, b"SPOP", "set_key pop_all"),
    ],
    "zsets": [
        (7, b"ZADD", "zset_key zadd_options scored"), (1, b"ZINCRBY", "zset_key score member"),
        (2, b"ZREM", "zset_key members"), (1, b"ZCARD", "zset_key"),
        (2, b"ZSCORE", "zset_key member"), (2, b"ZMSCORE", "zset_key members"),
        (1, b"ZRANK", "zset_key member"), (1, b"ZREVRANK", "zset_key member"),
        (1, b"ZCOUNT", "zset_key bounds"), (1, b"ZLEXCOUNT", "zset_key lexes"),
        (4, b"ZRANGE", "zset_key range_options maybe_scores"),
        (1, b"ZREVRANGE", "zset_key index index maybe_scores"),
        (2, b"ZRANGEBYSCORE", "zset_key bounds scores_limit"),
        (1, b"ZREVRANGEBYSCORE", "zset_key bounds scores_limit"),
        (1, b"ZRANGEBYLEX", "zset_key lexes"), (1, b"ZREVRANGEBYLEX", "zset_key lexes"),
        (2, b"ZRANGESTORE", "zset_two range_options"), (1, b"ZPOPMIN", "zset_key maybe_count"),
        (1, b"ZPOPMAX", "zset_key maybe_count"), (2, b"ZMPOP", "zset_numbered zmpop_options"),
        (1, b"ZRANDMEMBER", "zset_key sample_with"),
        (1, b"ZREMRANGEBYRANK", "zset_key index index"),
        (1, b"ZREMRANGEBYSCORE", "zset_key bounds"), (1, b"ZREMRANGEBYLEX", "zset_key lexes"),
        (2, b"ZUNION", "combined maybe_scores"), (2, b"ZINTER", "combined maybe_scores"),
        (1, b"ZDIFF", "zset_numbered maybe_scores"), (2, b"ZUNIONSTORE", "zset_store"),
        (1, b"ZINTERSTORE", "zset_store"), (1, b"ZDIFFSTORE", "zset_store"),
        (1, b"ZINTERCARD", "zset_numbered maybe_limit"),
    ],
    "bits": [
        (3, b"SETBIT", "bits_key bit_offset bit"), (1, b"SET", "bits_key value"),
        (2, b"BITCOUNT", "bits_key range"), (2, b"BITOP", "bit_operation bits_two"),
        (1, b"BITOP", "bit_operation bits_two bits_beside"), (3, b"BITFIELD", "bits_key bitfield"),
        (1, b"BITFIELD_RO", "bits_key bitfield_ro"),
    ],
    "hyperloglogs": [
        (4, b"PFADD", "hll_key members"), (2, b"PFCOUNT", "hll_keys"), (1, b"PFMERGE", "hll_keys"),
        (0.2, b"PFADD", "hll_key"),
    ],
    "places": [
        (4, b"GEOADD", "geo_key geoadd_options places"), (1, b"GEOPOS", "geo_key members"),
        (1, b"GEODIST", "geo_key member member maybe_unit"), (1, b"GEOHASH", "geo_key members"),
        (2, b"GEOSEARCH", "geo_key geo_from geo_by geo_count geo_with"),
        (1, b"GEOSEARCHSTORE", "geo_two geo_from geo_by geo_count"),
        (1, b"GEORADIUS", "geo_pair_radius"),
        (1, b"GEORADIUS_RO", "geo_key place distance geo_count geo_with"),
        (1, b"GEORADIUSBYMEMBER", "geo_pair_member"),
        (1, b"GEORADIUSBYMEMBER_RO", "geo_key member distance geo_count geo_with"),
    ],
    "streams": [
        (9, b"XADD", "stream_key xadd_options entry_id entry"), (1, b"XLEN", "stream_key"),
        (2, b"XRANGE", "stream_key stream_range"), (1, b"XREVRANGE", "stream_key stream_range"),
        (1, b"XDEL", "stream_key stream_ids"), (1, b"XTRIM", "stream_key trim"),
        (3, b"XREAD", "read_options streams"), (0.5, b"XSETID", "stream_key stream_id"),
        (5, b"XGROUP CREATE", "stream_key group group_start group_options"),
        (1, b"XGROUP SETID", "stream_key group stream_id"),
        (0.5, b"XGROUP DESTROY", "stream_key group"),
        (1, b"XGROUP CREATECONSUMER", "stream_key group consumer"),
        (0.5, b"XGROUP DELCONSUMER", "stream_key group consumer"),
        (0.3, b"XGROUP NOSUCH", "stream_key"),
        (5, b"XREADGROUP GROUP", "group consumer read_options new_streams"),
        (1, b"XREADGROUP GROUP", "group consumer NOACK new_streams"),
        (2, b"XACK", "stream_key group stream_ids"),
        (3, b"XPENDING", "stream_key group pending_range"),
        (2, b"XCLAIM", "stream_key group consumer idle stream_ids claim_options"),
        (2, b"XAUTOCLAIM", "stream_key group consumer idle stream_id autoclaim_options"),
        (2, b"XINFO STREAM", "stream_key maybe_full"), (1, b"XINFO GROUPS", "stream_key"),
        (1, b"XINFO CONSUMERS", "stream_key group"), (0.3, b"XINFO NOSUCH", "stream_key"),
    ],
    "keys": [
        (2, b"TYPE", "any_key"), (2, b"OBJECT ENCODING", "any_key"),
        (1, b"OBJECT REFCOUNT", "any_key"), (1, b"OBJECT IDLETIME", "any_key"),
        (0.5, b"OBJECT FREQ", "any_key"), (1, b"DUMP", "any_key"),
        (1, b"RESTORE", "any_key restore_ttl payload restore_options"), (1, b"SORT", "list_sort"),
        (1, b"SORT", "zset_sort"), (1, b"SORT", "ints_key sort_read"),
        (1, b"SORT_RO", "any_key sort_read"), (0.5, b"MOVE", "any_key database"),
        (2, b"COPY", "two_keys copy_options"), (1, b"RENAME", "two_keys"),
        (2, b"EXPIRE", "any_key relative expire_flags"), (1, b"PERSIST", "any_key"),
        (0.7, b"MEMORY USAGE", "any_key memory_options"), (0.2, b"MEMORY NOSUCH", ""),
        (0.2, b"MEMORY DOCTOR", ""), (0.2, b"MEMORY", ""), (0.2, b"SWAPDB", "database database"),
    ],
    "scripts": [
        (8, b"EVAL", "script script_keys"), (2, b"EVAL_RO", "script script_keys"),
        (6, b"EVALSHA", "digest script_keys"), (2, b"EVALSHA_RO", "digest script_keys"),
        (2, b"SCRIPT LOAD", "script"), (2, b"SCRIPT EXISTS", "digests"),
        (0.4, b"SCRIPT FLUSH", "flush_mode"), (0.2, b"SCRIPT KILL", ""),
        (0.3, b"SCRIPT NOSUCH", ""), (0.2, b"SCRIPT", ""), (0.2, b"SCRIPT LOAD", ""),
        (0.3, b"SCRIPT EXISTS", ""), (3, b"FUNCTION LOAD", "library"),
        (2, b"FUNCTION LOAD REPLACE", "library"), (1, b"FUNCTION LIST", "list_options"),
        (1, b"FUNCTION DELETE", "library_name"), (0.3, b"FUNCTION FLUSH", "flush_mode"),
        (0.3, b"FUNCTION STATS", ""), (0.2, b"FUNCTION KILL", ""), (0.3, b"FUNCTION DUMP", ""),
        (0.2, b"FUNCTION RESTORE", "payload"), (4, b"FCALL", "function script_keys"),
        (2, b"FCALL_RO", "function script_keys"),
    ],
    "transactions": [
        (5, b"MULTI", ""), (2, b"EXEC", ""), (1, b"DISCARD", ""), (4, b"WATCH", "few_keys"),
        (1, b"UNWATCH", ""), (0.5, b"RESET", ""), (1, b"HELLO", "protocol"),
    ],
    "waits": [
        (1.5, b"BLPOP", "list_keys timeout"), (1, b"BRPOP", "list_keys timeout"),
        (1, b"BLMOVE", "list_two side side timeout"), (0.7, b"BRPOPLPUSH", "list_two timeout"),
        (1, b"BLMPOP", "timeout list_numbered mpop_options"), (1, b"BZPOPMIN", "zset_keys timeout"),
        (0.7, b"BZPOPMAX", "zset_keys timeout"),
        (1, b"BZMPOP", "timeout zset_numbered zmpop_options"), (0.5, b"WAIT", "wait"),
        (0.2, b"WAITAOF", "wait"),
    ],
    "server": [
        (0.5, b"PUBLISH", "member content"), (0.5, b"SPUBLISH", "any_key content"),
        (0.2, b"LOLWUT VERSION 1", ""), (0.2, b"LASTSAVE", ""), (0.2, b"ROLE", ""),
        (0.2, b"PFDEBUG ENCODING", "hll_key"), (0.2, b"MEMORY STATS", ""),
        (0.2, b"MEMORY MALLOC-STATS", ""), (0.2, b"MEMORY PURGE", ""), (0.2, b"MODULE LIST", ""),
        (0.2, b"XINFO HELP", ""), (0.2, b"XGROUP HELP", ""), (0.2, b"SCRIPT HELP", ""),
        (0.2, b"MEMORY HELP", ""), (0.2, b"FUNCTION HELP", ""),
        (0.5, b"COMMAND GETKEYS", "any_command"), (0.5, b"COMMAND GETKEYSANDFLAGS", "any_command"),
        (0.5, b"COMMAND INFO", "command_names"), (0.2, b"CLIENT UNBLOCK 999999", ""),
        (0.2, b"PUBSUB NUMSUB", "members"), (0.2, b"PUBSUB CHANNELS", ""),
        (0.2, b"PUBSUB NUMPAT", ""),
    ],
}

WAITING = {b"BLPOP", b"BRPOP", b"BLMOVE", b"BRPOPLPUSH", b"BLMPOP", b"BZPOPMIN", b"BZPOPMAX",
           b"BZMPOP", b"WAIT", b"WAITAOF", b"XREAD", b"XREADGROUP"}


OFTEN = {"strings": 0.3, "transactions": 0.25}


class Generator(generate.Generator):
    """The generator for the profiles engine and engine-cluster."""

    groups = {"strings": [row for row in generate.COMMANDS if row[1] != b"SELECT"], **COMMANDS}
    rows = [row for group in groups.values() for row in group]
    quiet = generate.Generator.quiet + [
        [b"RPUSH", b"{t}l1", b"quiet"], [b"BLPOP", b"{t}l1", b"0.01"], [b"HGETALL", b"{t}h1"],
        [b"EVAL", b"return redis.call('INCR', KEYS[1])", b"1", b"{t}2"], [b"XGROUP", b"NOSUCH"],
        [b"WAIT", b"0", b"1"], [b"DEL", b"{t}1", b"{t}2"]]

    def __init__(self, seed, profile):
        super().__init__(seed, profile)
        self.cluster = profile != "engine"
        self.watched = [[], []]
        self.counter = [0]  # ids of stream entries: most are greater than the last one
        self.scripts = self.rng.sample(SCRIPTS if self.cluster else SCRIPTS + ANYWHERE, 5)
        self.much = self.rng.sample(list(self.groups), 3)
        self.weights = []
        for name, group in self.groups.items():
            share = 1 if name in self.much else OFTEN.get(name, 0.1)
            whole = sum(row[0] for row in group)
            self.weights += [row[0] * share / whole for row in group]

    def command(self, conn):
        """As in the base class, but sometimes one connection changes a key that the other watches."""
        if self.watched[1 - conn] and not self.in_multi[conn] and self.rng.random() < 0.3:
            key = self.rng.choice(self.watched[1 - conn])
            return self.rng.choice([[b"SET", key, b"1"], [b"DEL", key], [b"RPUSH", key, b"x"],
                                    [b"PERSIST", key], [b"HSET", key, b"f", b"v"], [b"TYPE", key]])
        argv = super().command(conn)
        name = argv[0].upper()
        if name == b"WATCH" and not self.in_multi[conn]:
            self.watched[conn] += argv[1:]
        elif name in (b"EXEC", b"DISCARD", b"UNWATCH", b"RESET", b"QUIT"):
            self.watched[conn] = []
        return argv

    def skips(self, conn, name, words):
        apart = SPANNING if self.cluster else WHOLE
        return self.in_multi[conn] and (name in apart or b" ".join(words.split(b" ")[:2]) in apart)

    def arguments(self, conn, name):
        if not self.cluster:
            return Arguments(self, "any", True, False)
        tagged = self.in_multi[conn] or name == b"WATCH" or any(self.watching)
        mixed = not tagged and name not in generate.SPLIT and self.rng.random() < 0.05
        return Arguments(self, "one", mixed, tagged)

    def draw(self, arguments, kind):
        if kind[0].isupper():
            return [case(self.rng, self.rng.choice(kind.split("/")).encode())]
        return super().draw(arguments, kind)

    def may_bend(self, conn, name):
        if self.cluster and self.in_multi[conn]:
            return False
        return name not in generate.UNBENT

    def bend(self, argv):
        if argv[0].upper() in WAITING:
            del argv[self.rng.randint(1, len(argv)):]
        else:
            super().bend(argv)

    def special(self, conn):
        rng = self.rng
        kind = rng.random()
        if kind < 0.01:
            name, keys = rng.choice([(b"HSCAN", "hash"), (b"SSCAN", "set"), (b"SSCAN", "ints"),
                                     (b"ZSCAN", "zset"), (b"HSCAN", "big")])
            argv = self.scan()
            return Step(conn, [[case(rng, name), rng.choice(TYPES[keys])] + argv[1:]],
                        macro="scan")
        if kind < 0.018:
            return Step(conn, [[b"SPOP", rng.choice(TYPES["set"] + TYPES["ints"])]], macro="spop")
        if kind < 0.025:
            return Step(conn, [[b"DUMP", rng.choice(KEYS)], [b"RESTORE", rng.choice(KEYS)]],
                        macro="restore")
        if kind < 0.035 and not self.in_multi[1 - conn]:
            return self.wait_and_wake(conn)
        return super().special(conn)

    def sequence(self, length):
        """A sequence that begins with the functions and scripts that later commands need."""
        first = [Step(0, [argv]) for name in self.much for argv in FIRST.get(name, [])]
        return first + super().sequence(length - len(first))

    def wait_and_wake(self, conn):
        """A macro: one connection blocks without a timeout until the other one writes."""
        rng = self.rng
        lists = [rng.choice([key for key in TYPES["list"] if b"{t}" in key]) for _ in range(2)]
        zset = rng.choice(TYPES["zset"])
        stream = rng.choice(TYPES["stream"])
        self.counter[0] += 1
        pushed = [b"RPUSH", lists[0]] + [rng.choice(CONTENTS) for _ in range(rng.choice([1, 3]))]
        waiting, waking = rng.choice([
            ([b"BLPOP", lists[0], b"0"], pushed),
            ([b"BRPOP", lists[1], lists[0], b"0"], pushed),
            ([b"BLMOVE", lists[0], lists[1], b"RIGHT", b"LEFT", b"0"], pushed),
            ([b"BRPOPLPUSH", lists[0], lists[1], b"0"], pushed),
            ([b"BLMPOP", b"0", b"2", lists[0], lists[1], b"LEFT", b"COUNT", b"2"], pushed),
            ([b"BZPOPMIN", zset, b"0"], [b"ZADD", zset, b"3", b"late", b"2", b"early"]),
            ([b"BZMPOP", b"0", b"1", zset, b"MAX"], [b"ZADD", zset, b"3", b"late"]),
            ([b"XREAD", b"BLOCK", b"0", b"STREAMS", stream, b"$"],
             [b"XADD", stream, b"%d-0" % (self.counter[0] + 1000), b"f", b"v"]),
        ])
        removed = [b"DEL"] + {b"B": [zset] if b"Z" in waiting[0] else lists,
                              b"X": [stream]}[waiting[0][:1]]
        return Step(conn, [removed, waiting, waking], macro="wake")


FIRST = {
    "streams": [
        [b"XGROUP", b"CREATE", b"{t}x1", b"g1", b"0", b"MKSTREAM"],
        [b"XGROUP", b"CREATE", b"{t}x2", b"g1", b"0", b"MKSTREAM"],
        [b"XGROUP", b"CREATE", b"x3", b"g1", b"0", b"MKSTREAM"],
        [b"XADD", b"{t}x1", b"0-1", b"f", b"v"], [b"XADD", b"{t}x1", b"0-2", b"f", b"v"],
        [b"XADD", b"{t}x2", b"0-1", b"f", b"v"], [b"XADD", b"x3", b"0-1", b"f", b"v"],
    ],
    "scripts": [[b"FUNCTION", b"LOAD", library] for library in (
        LIBRARIES[1], LIBRARIES[2], LIBRARIES[-2], LIBRARIES[-1])],
    "lists": [[b"RPUSH", b"{t}l1", b"a", b"b", b"c"], [b"RPUSH", b"l3", b"3", b"1", b"2"]],
    "zsets": [[b"ZADD", b"{t}z1", b"1", b"a", b"2", b"b"],
              [b"ZADD", b"z3", b"0", b"a", b"0", b"c"]],
    "places": [[b"GEOADD", b"{t}g1", *PLACES[0], b"a", *PLACES[1], b"b"]],
}

# Commands left out of transactions. WHOLE: heatsink refuses them there or answers differently. SPANNING, in front of a
# Cluster: also those that concern several masters.
WHOLE = {b"DEBUG", b"LATENCY", b"CLIENT KILL", b"HELLO"}
SPANNING = WHOLE | generate.SPANNING | {b"PUBSUB", b"FUNCTION"}
