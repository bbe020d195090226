"""Goal: a cached RESP3 reply, converted to RESP2, equals the server's own RESP2 reply.

Method: keys of every type and shape are created on a redis-server: missing, of the wrong type, small and large, with
values that are numbers, empty, binary. Every command with cacheable replies is sent in many forms for all keys, in
both protocol versions. The program of the unit test (tests/unit/test_absorb_entry.c), which is given the server's
COMMAND reply, converts the RESP3 reply; the result must equal the RESP2 reply byte for byte. A reply that is not
cached must be an error, and commands whose replies must not be cached must be refused.
"""
import itertools
import os
import subprocess
import tempfile
import unittest

import resp
from servers import GUARD_S, Redis

SANITIZERS = ("address",)  # one client at a time: no data race is possible

PROGRAM = os.path.join(os.environ.get("HEATSINK_BUILD", "build"), "tests", "test_absorb_entry")

SETUP = """
SET text value|SET number 12|SETRANGE zeros 2000 x
HSET hash a 1 b 2.5 c |HSET hash:one f v|RPUSH list a b c a 1|RPUSH list:one x|SADD set a b c 1
SADD set:numbers 1 2 3|ZADD zset 1 a 2.5 b -inf c inf d 3.141592653589793 e 1e300 f|ZADD zset:one 0 m
ZADD zset:same 0 a 0 b 0 c|XADD stream 1-1 f v g w|XADD stream 2-1 a b|XADD stream:empty 1-1 a b
XTRIM stream:empty MAXLEN 0|GEOADD geo 13.361389 38.115556 Palermo 15.087269 37.502669 Catania
GEOADD geo:one 0 0 m
"""

KEYS = """missing text number empty zeros long hash hash:one hash:large list list:one set set:numbers
set:large zset zset:one zset:same zset:large stream stream:empty geo geo:one""".split()

REQUESTS = """
GET K|STRLEN K|GETRANGE K 0 -1|GETRANGE K 1 2|SUBSTR K 0 1|GETBIT K 7|BITCOUNT K|BITCOUNT K 0 1 BIT
BITPOS K 1|BITPOS K 0 2 3|BITFIELD_RO K GET u8 0 GET i5 3|BITFIELD_RO K|EXISTS K|TYPE K
HGET K a|HGET K nosuch|HGETALL K|HMGET K a nosuch c|HKEYS K|HVALS K|HLEN K|HEXISTS K a|HEXISTS K x
HSTRLEN K a|LRANGE K 0 -1|LRANGE K 5 6|LRANGE K 0 1|LINDEX K 0|LINDEX K 99|LLEN K|LPOS K a|LPOS K nosuch
LPOS K a COUNT 0|LPOS K nosuch COUNT 0|LPOS K a RANK -1|SMEMBERS K|SISMEMBER K a|SISMEMBER K x
SMISMEMBER K a x 1|SCARD K|ZRANGE K 0 -1|ZRANGE K 0 -1 WITHSCORES|ZRANGE K 0 1 REV WITHSCORES
ZRANGE K -inf +inf BYSCORE LIMIT 1 2 WITHSCORES|ZRANGE K (1 inf BYSCORE|ZRANGE K - + BYLEX
ZRANGE K 9 10 WITHSCORES|ZREVRANGE K 0 -1|ZREVRANGE K 0 -1 WITHSCORES|ZRANGEBYSCORE K -inf +inf
ZRANGEBYSCORE K -inf +inf WITHSCORES|ZRANGEBYSCORE K (1 3 WITHSCORES LIMIT 0 1
ZREVRANGEBYSCORE K inf -inf WITHSCORES|ZREVRANGEBYSCORE K inf -inf|ZRANGEBYLEX K - +
ZRANGEBYLEX K [a (c LIMIT 0 1|ZREVRANGEBYLEX K + -|ZSCORE K a|ZSCORE K c|ZSCORE K nosuch
ZMSCORE K a nosuch d|ZCARD K|ZCOUNT K -inf inf|ZLEXCOUNT K - +|ZRANK K a|ZRANK K nosuch|ZREVRANK K a
ZREVRANK K nosuch|XLEN K|XRANGE K - +|XRANGE K - + COUNT 1|XRANGE K - + COUNT 0|XRANGE K 5 +
XREVRANGE K + -|XREVRANGE K + - COUNT 0|GEODIST K Palermo Catania|GEODIST K Palermo nosuch km
GEOHASH K Palermo nosuch|GEOHASH K|GEOPOS K Palermo nosuch|GEOPOS K
GEOSEARCH K FROMLONLAT 15 37 BYRADIUS 200 km ASC
GEOSEARCH K FROMMEMBER Palermo BYBOX 400 400 km ASC WITHCOORD WITHDIST WITHHASH
GEOSEARCH K FROMLONLAT 15 37 BYRADIUS 200 km ASC COUNT 1 WITHCOORD
GEORADIUS_RO K 15 37 200 km WITHDIST|GEORADIUS_RO K 15 37 200 km|GEORADIUS_RO K 15 37 1 m
GEORADIUSBYMEMBER_RO K Palermo 200 km WITHCOORD|GEORADIUSBYMEMBER_RO K Palermo 200 km WITHHASH
GET K extra|LRANGE K a b|ZRANGE K 0 -1 NOSUCH
"""

NOT_ASKED = """
SET K v|MGET K|TTL K|PTTL K|OBJECT ENCODING K|SRANDMEMBER K|HRANDFIELD K|ZRANDMEMBER K|SSCAN K 0|DUMP K
PFCOUNT K|SORT_RO K|EXISTS K K|SINTER K K|XINFO STREAM K|XPENDING K g|HSCAN K 0|ZSCAN K 0|LCS K K
EXPIRETIME K|MEMORY USAGE K|INCR K|BITFIELD K GET u8 0|GEORADIUS K 15 37 200 km|XREAD STREAMS K 0
NOSUCH K|GETDEL K|EVAL_RO return 0
"""


def lines(text):
    return [line for line in text.replace("\n", "|").split("|") if line]


class Dialect(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.redis = cls.enterClassContext(Redis())
        cls.two, cls.three = cls.redis.raw(), cls.redis.raw()
        assert not cls.three.call("HELLO", 3).is_error
        for line in lines(SETUP):
            reply = cls.two.call(*line.split(" "))
            assert not reply.is_error, (line, reply)
        cls.two.call("SET", "empty", "")
        cls.two.call("SET", "long", "long\r\n" * 5000)
        cls.two.call("HSET", "hash:large", *range(2000))
        cls.two.call("SADD", "set:large", *range(1000), "\r\n", "")
        cls.two.call("ZADD", "zset:large", *itertools.chain(
            *((str(i / 7), f"m{i}") for i in range(1000))))
        cls.commands = cls.enterClassContext(tempfile.NamedTemporaryFile())
        cls.commands.write(cls.three.call("COMMAND").raw)
        cls.commands.flush()

    def program(self, data):
        return subprocess.run([PROGRAM, self.commands.name], input=data, timeout=GUARD_S,
                              stdout=subprocess.PIPE, check=True).stdout

    def translated(self, questions):
        """For each (words, reply): the converted reply; None: the reply is not cacheable; False: the command is not."""
        data = self.program(b"".join(resp.encode(*words) + raw for words, raw in questions))
        for _ in questions:
            head, _, rest = data.partition(b"\r\n")
            if head[:1] == b"+":
                yield None if head == b"+not kept" else False
                data = rest
            else:
                yield rest[:int(head[1:])]
                data = rest[int(head[1:]) + 2:]
        self.assertEqual(data, b"")

    def test_every_command_on_every_key(self):
        questions, wanted = [], []
        for line, key in itertools.product(lines(REQUESTS), KEYS):
            words = [key if word == "K" else word for word in line.split(" ")]
            questions.append((words, self.three.call(*words).raw))
            wanted.append(self.two.call(*words).raw)
        kept = differ = 0
        for (words, three), two, ours in zip(questions, wanted, self.translated(questions)):
            if three[:1] == b"-":
                self.assertIn(ours, (None, False), words)
            else:
                self.assertEqual(ours, two, (words, three[:200]))
                kept += 1
                differ += three != two
        self.assertGreater(kept, 500)
        self.assertGreater(differ, 150)

    def test_none_is_left_out(self):
        names = set(self.program(b"").decode().split())
        self.assertGreater(len(names), 45)
        self.assertEqual(names, {line.split(" ")[0].lower() for line in lines(REQUESTS)})

    def test_uncacheable_commands_are_refused(self):
        for line in lines(NOT_ASKED):
            for key in ("missing", "text", "zset"):
                words = [key if word == "K" else word for word in line.split(" ")]
                answer, = self.translated([(words, b"$1\r\na\r\n")])
                self.assertIs(answer, False, words)


if __name__ == "__main__":
    unittest.main()
