"""Values for generate_types.py: keys by type, members, scores, ids, geo positions, scripts.

The lists named NO_… contain invalid values of the kind before them; they are drawn sometimes.
"""

TYPES = {
    "string": [b"{t}1", b"{t}2", b"{t}3", b"a", b"b", b"", b"\x00\xff\r\n\t", b"{}t", b"L" * 300],
    "hash": [b"{t}h1", b"{t}h2", b"h3"],
    "list": [b"{t}l1", b"{t}l2", b"l3"],
    "set": [b"{t}s1", b"{t}s2", b"s3"],
    "ints": [b"{t}i1", b"{t}i2", b"i3"],
    "zset": [b"{t}z1", b"{t}z2", b"z3"],
    "stream": [b"{t}x1", b"{t}x2", b"x3"],
    "geo": [b"{t}g1", b"{t}g2", b"g3"],
    "hll": [b"{t}p1", b"{t}p2", b"p3"],
    "bits": [b"{t}b1", b"{t}b2", b"b3"],
    "big": [b"{t}big"],
}
KEYS = [key for keys in TYPES.values() for key in keys]

# At most 64 bytes each: with a longer member, Redis stores a hash without order.
MEMBERS = [b"a", b"b", b"c", b"d", b"e", b"f", b"one", b"two", b"three", b"", b"a b", b"1", b"2",
           b"3", b"10", b"-7", b"3.5", b"x" * 64, b"\x00\xff\r\n", b"{t}h1", b"weight_*",
           b"9223372036854775807"]
FIELDS = MEMBERS[:14] + [b"f" * 64]
CONTENTS = MEMBERS + [b"0", b"-1", b"5e2", b"abc def", b"y" * 50]
LARGE = [b"v" * 65, b"w" * 5000, b"W" * 70000, b"\r\n" * 9000]
INTS = [b"0", b"1", b"2", b"3", b"5", b"10", b"-4", b"70000", b"5000000000", b"-9000000000"]
SCORES = [b"0", b"1", b"2", b"2", b"3", b"-1", b"1.5", b"1e3", b"inf", b"-inf", b"+inf",
          b"0.1", b"3.0000000000000001", b"1e-7", b"123456789012345678", b"-0"]
NO_SCORES = [b"(1", b"nan", b"abc", b"", b"1e400"]
BOUNDS = [b"-inf", b"+inf", b"0", b"1", b"(1", b"2", b"(2.5", b"3", b"inf"]
NO_BOUNDS = [b"(", b"abc", b"nan"]
LEX = [b"-", b"+", b"-", b"+", b"[a", b"(a", b"[c", b"(e", b"[", b"(", b"[x"]
NO_LEX = [b"a", b""]
IDS = [b"0", b"0-0", b"-", b"+", b"$", b"1-1", b"2", b"3-0", b"5-5", b"(2", b"(3-1", b"7-1",
       b"18446744073709551615-18446744073709551615"]
NO_IDS = [b">", b"abc", b"1-", b"-1", b"18446744073709551616"]
GROUPS = [b"g1", b"g1", b"g1", b"g2"]
CONSUMERS = [b"alice", b"bob", b"", b"carol"]
PLACES = [[b"13.361389", b"38.115556"], [b"15.087269", b"37.502669"], [b"0", b"0"],
          [b"-180", b"85.05112878"], [b"12.5", b"41.9"], [b"13.5", b"38"], [b"15", b"37.25"]]
NOWHERE = [[b"181", b"10"], [b"x", b"1"], [b"13.5", b"90"]]
UNITS = [b"m", b"km", b"ft", b"mi", b"M", b"parsec"]
BIT_TYPES = [b"u8", b"i8", b"u1", b"i16", b"u63", b"i64", b"i5"]
NO_BIT_TYPES = [b"u64", b"u0", b"x8"]

SCRIPTS = [
    b"return 1", b"return", b"return nil", b"return true", b"return false", b"return 3.99",
    b"return -7", b"return 'text'", b"return ''", b"return {}", b"return {{},{{}}}",
    b"return {1,2,'three',{4,{5,'six'}},true,false,7}", b"return {1,nil,3}",
    b"return redis.status_reply('FINE')", b"return redis.error_reply('MY bad')",
    b"return redis.error_reply('oneword')", b"return {ok='yes'}", b"return {err='ERR mine'}",
    b"return {err='no newline'}", b"return {ok='FINE', err='ERR which'}",
    b"return {double=3.25}", b"redis.setresp(3) return {double=3.25}",
    b"redis.setresp(3) return {map={a=1}}", b"redis.setresp(3) return {set={a=true}}",
    b"redis.setresp(3) return {big_number='12345678901234567890'}",
    b"redis.setresp(3) return {verbatim_string={format='txt',string='plain'}}",
    b"redis.setresp(3) return true", b"redis.setresp(4)",
    b"redis.setresp(3) return redis.call('HGETALL',KEYS[1])",
    b"redis.setresp(3) return redis.call('ZRANGE',KEYS[1],0,-1,'WITHSCORES')",
    b"redis.setresp(3) return redis.call('ZSCORE',KEYS[1],'a')",
    b"redis.setresp(3) return redis.call('GET',KEYS[1])",
    b"return redis.call('GET',KEYS[1])", b"return redis.call('SET',KEYS[1],ARGV[1])",
    b"return redis.pcall('SET',KEYS[1],ARGV[1])", b"return redis.call('INCR',KEYS[1])",
    b"return redis.pcall('INCR',KEYS[1])", b"return redis.pcall('INCR',KEYS[1]).err",
    b"return redis.call('TYPE',KEYS[1])", b"return redis.call('TYPE',KEYS[1]).ok",
    b"return redis.call('LRANGE',KEYS[1],0,-1)", b"return redis.call('HGETALL',KEYS[1])",
    b"return redis.call('ZRANGE',KEYS[1],0,-1,'WITHSCORES')",
    b"return redis.call('XRANGE',KEYS[1],'-','+')", b"return redis.call('LPUSH',KEYS[1],ARGV[1])",
    b"return redis.call('RPUSH',KEYS[1],unpack(ARGV))", b"return redis.call('MGET',unpack(KEYS))",
    b"return redis.call('HSET',KEYS[1],ARGV[1],ARGV[2])",
    b"local n = 0 for i, k in ipairs(KEYS) do n = n + redis.call('DEL', k) end return n",
    b"return {KEYS, ARGV, #KEYS, #ARGV}", b"return {redis.call('PING'), redis.call('ECHO', 'x')}",
    b"return {redis.call('EXISTS',KEYS[1]), redis.call('STRLEN',KEYS[1])}",
    b"return string.rep('x', 6000)", b"local t = {} for i = 1, 300 do t[i] = i end return t",
    b"error('boom')", b"error({err='ERR thrown'})", b"return nosuch", b"nosuch = 1",
    b"return redis.call('NOSUCH')", b"return redis.pcall('NOSUCH')", b"return redis.call('GET')",
    b"return redis.call()", b"return redis.call('SUBSCRIBE','x')", b"return redis.call('MULTI')",
    b"return redis.call('BLPOP',KEYS[1],0)", b"return redis.call('WAIT',0,0)",
    b"return redis.call('XREAD','BLOCK',0,'STREAMS',KEYS[1],'$')",
    b"return redis.call('CLIENT','SETNAME','x')", b"return redis.call('CONFIG','GET','port')",
    b"this is not lua", b"return (", b"", b"#!lua\nreturn 5", b"#!nosuch\nreturn 5",
    b"#!lua flags=nosuch\nreturn 5", b"#!lua name=x\nreturn 5",
    b"#!lua flags=no-writes\nreturn redis.call('GET',KEYS[1])",
    b"#!lua flags=no-writes\nreturn redis.call('SET',KEYS[1],'x')",
    b"#!lua flags=no-cluster\nreturn 1",
    b"return cjson.encode({1,2,{a=1}})", b"return cmsgpack.pack({1,2})",
    b"return redis.sha1hex('')",
    b"return {struct.unpack('I', 'abcd')}", b"return bit.band(7, 3)", b"return redis.REDIS_VERSION",
    b"return redis.call('SET',KEYS[1],'v','EX',ARGV[1])", b"return redis.acl_check_cmd('get','x')",
    b"return redis.call('SORT',KEYS[1],'ALPHA')",
]
# Scripts with keys of other slots: not for a Cluster, where all keys of a script must be on one node.
ANYWHERE = [b"return redis.call('SET','undeclared','x')",
            b"#!lua flags=allow-cross-slot-keys\nreturn redis.call('SET','undeclared','x')",
            b"return {redis.call('SELECT',0), redis.call('DEL','undeclared')}"]

LIBRARIES = [
    b"#!lua name=one\nredis.register_function('f', function(k, a) return {k, a} end)",
    b"#!lua name=one\nredis.register_function('f', function(k, a) return #k end)\n"
    b"redis.register_function{function_name='g', flags={'no-writes'}, description='reads',"
    b" callback=function(k, a) return redis.call('GET', k[1]) end}",
    b"#!lua name=two\nredis.register_function('w', function(k, a) return "
    b"redis.call('SET', k[1], a[1]) end)",
    b"#!lua name=two\nredis.register_function('f', function() return 1 end)",
    b"#!lua name=bad name\nreturn 1", b"#!lua\nreturn 1", b"no shebang", b"#!lua name=empty\n",
    b"#!lua name=broken\nthis is not lua", b"#!js name=x\n1",
    b"#!lua name=late\nredis.register_function{function_name='e', callback=function(k, a) "
    b"return redis.error_reply('LATE sorry') end}",
    b"#!lua name=resp\nredis.register_function{function_name='m', flags={'no-writes'}, "
    b"callback=function(k, a) redis.setresp(3) return redis.call('HGETALL', k[1]) end}",
]
FUNCTIONS = [b"f", b"g", b"w", b"e", b"m", b"F", b"nosuch", b""]
