"""Named cases of MULTI, EXEC and WATCH on two connections, as lists of (connection, command) in order. Words of a
command contain no spaces.
"""

import generate


def steps(cases):
    """(name, steps) of each case, for the executor (differential.py)."""
    for name, lines in cases.items():
        yield name, [generate.Step(conn, [line.encode().split()], joined=True)
                     for conn, line in lines]


CASES = {
    "a watched key changed by another connection": [
        (0, "SET {t}a 1"), (0, "WATCH {t}a"), (1, "SET {t}a 2"), (0, "MULTI"), (0, "INCR {t}a"),
        (0, "EXEC"), (0, "GET {t}a"), (0, "MULTI"), (0, "INCR {t}a"), (0, "EXEC")],
    "set to the same value is a change": [
        (0, "SET {t}a 1"), (0, "WATCH {t}a"), (1, "SET {t}a 1"), (0, "MULTI"), (0, "PING"),
        (0, "EXEC")],
    "a write that changes nothing is none": [
        (0, "SET {t}a 1"), (0, "WATCH {t}a {t}b"), (1, "SETNX {t}a 2"), (1, "DEL {t}b"),
        (1, "PERSIST {t}a"), (1, "EXPIRE {t}b 100"), (1, "GETRANGE {t}a 0 -1"), (0, "MULTI"),
        (0, "GET {t}a"), (0, "EXEC")],
    "its own change": [
        (0, "WATCH {t}a"), (0, "SET {t}a 1"), (0, "MULTI"), (0, "GET {t}a"), (0, "EXEC")],
    "created, then deleted": [
        (0, "WATCH {t}a"), (1, "SET {t}a 1"), (1, "DEL {t}a"), (0, "MULTI"), (0, "PING"),
        (0, "EXEC")],
    "expiry set": [
        (0, "SET {t}a 1"), (0, "WATCH {t}a"), (1, "EXPIRE {t}a 100"), (0, "MULTI"), (0, "PING"),
        (0, "EXEC")],
    "touched by rename": [
        (0, "SET {t}a 1"), (0, "WATCH {t}b"), (1, "RENAME {t}a {t}b"), (0, "MULTI"),
        (0, "PING"), (0, "EXEC")],
    "touched by copy": [
        (0, "SET {t}a 1"), (0, "WATCH {t}b"), (1, "COPY {t}a {t}b"), (0, "MULTI"), (0, "PING"),
        (0, "EXEC")],
    "flushed": [
        (0, "SET {t}a 1"), (0, "WATCH {t}a"), (1, "FLUSHALL"), (0, "MULTI"), (0, "PING"),
        (0, "EXEC")],
    "flushed, but not there": [
        (0, "WATCH {t}a"), (1, "SET {t}b 1"), (1, "FLUSHALL"), (0, "MULTI"), (0, "PING"),
        (0, "EXEC")],
    "unwatched": [
        (0, "WATCH {t}a"), (1, "SET {t}a 1"), (0, "UNWATCH"), (0, "MULTI"), (0, "PING"),
        (0, "EXEC")],
    "discard unwatches": [
        (0, "WATCH {t}a"), (0, "MULTI"), (0, "DISCARD"), (1, "SET {t}a 1"), (0, "MULTI"),
        (0, "PING"),
        (0, "EXEC")],
    "reset ends the transaction": [
        (0, "WATCH {t}a"), (0, "MULTI"), (0, "SET {t}a 1"), (0, "RESET"), (0, "EXEC"),
        (0, "GET {t}a")],
    "changed after MULTI, before EXEC": [
        (0, "WATCH {t}a"), (0, "MULTI"), (0, "SET {t}a mine"), (1, "SET {t}a other"),
        (0, "EXEC"),
        (1, "GET {t}a")],
    "an error while queueing": [
        (0, "MULTI"), (0, "SET {t}a 1"), (0, "GET"), (0, "SET {t}a 2"), (0, "EXEC"),
        (0, "GET {t}a")],
    "an unknown command while queueing": [
        (0, "MULTI"), (0, "NOSUCH x"), (0, "EXEC"), (0, "EXEC")],
    "an error while running": [
        (0, "SET {t}s abc"), (0, "MULTI"), (0, "INCR {t}s"), (0, "SET {t}b 1"),
        (0, "SETRANGE {t}b -1 x"), (0, "INCR {t}b"), (0, "EXEC"), (0, "MGET {t}s {t}b")],
    "two slots in a transaction": [
        (0, "MULTI"), (0, "SET a 1"), (0, "SET b 1"), (0, "EXEC"), (0, "GET a"), (0, "EXEC")],
    "two slots in one queued command": [
        (0, "MULTI"), (0, "MGET a b"), (0, "SET a 1"), (0, "EXEC"), (0, "EXISTS a")],
    "one slot, no keys between": [
        (0, "MULTI"), (0, "SET {t}a 1"), (0, "PING"), (0, "ECHO x"), (0, "TIME"),
        (0, "TYPE {t}a"), (0, "EXEC")],
    "two slots in one WATCH": [(0, "WATCH a b"), (0, "MULTI"), (0, "GET a"), (0, "EXEC")],
    "commands without keys only": [(0, "MULTI"), (0, "PING"), (0, "ECHO x"), (0, "EXEC")],
    "nothing": [(0, "MULTI"), (0, "EXEC"), (0, "WATCH {t}a"), (0, "MULTI"), (0, "EXEC")],
    "quit inside": [(0, "MULTI"), (0, "SET {t}a 1"), (0, "QUIT"), (1, "GET {t}a")],
    "not allowed inside": [
        (0, "MULTI"), (0, "WATCH {t}a"), (0, "MULTI"), (0, "EXEC"), (0, "MULTI"),
        (0, "UNWATCH"), (0, "HELLO 3"),
        (0, "CLIENT SETNAME x"), (0, "SELECT 0"), (0, "EXEC"), (0, "CLIENT GETNAME"),
        (0, "GET {t}nil")],
    "seen whole": [
        (0, "MULTI"), (0, "SET {t}a 1"), (0, "INCR {t}a"), (1, "GET {t}a"), (0, "EXEC"),
        (1, "GET {t}a")],
    "a name given in a transaction that does not run": [
        (0, "CLIENT SETNAME first"), (0, "WATCH {t}a"), (1, "SET {t}a 1"), (0, "MULTI"),
        (0, "CLIENT SETNAME later"), (0, "CLIENT NO-EVICT ON"), (0, "GET {t}a"), (0, "EXEC"),
        (0, "CLIENT GETNAME"), (0, "WATCH {t}a"), (0, "MULTI"), (0, "CLIENT SETNAME later"),
        (0, "GET {t}a"), (0, "CLIENT GETNAME"), (0, "EXEC"), (0, "CLIENT GETNAME")],
}

# Commands that other partitions, other workers or the control thread answer, in their place within EXEC.
SPANNING = {
    "keys at their place": [
        (0, "SET other 1"), (0, "SET {t}a 1"), (0, "MULTI"), (0, "KEYS *a"), (0, "SET {t}aa 1"),
        (0, "KEYS *a"), (0, "DEL {t}a {t}aa"), (0, "KEYS *a"), (0, "KEYS other"), (0, "EXEC")],
    "keys of other partitions": [
        (0, "MULTI"), (0, "KEYS x*"), (0, "EXEC"), (1, "SET x1 1"), (1, "SET x2 1"),
        (1, "SET x3 1"), (0, "MULTI"), (0, "GET {t}a"), (0, "KEYS x*"), (0, "EXEC")],
    "a key drawn": [
        (0, "MULTI"), (0, "RANDOMKEY"), (0, "EXEC"), (0, "SET other 1"), (0, "MULTI"),
        (0, "RANDOMKEY"), (0, "EXEC")],
    "the process and its clients": [
        (0, "CONFIG SET slowlog-log-slower-than -1"), (0, "SLOWLOG RESET"), (0, "MULTI"),
        (0, "SET {t}a 1"), (0, "CONFIG GET nosuch"), (0, "CONFIG SET slowlog-max-len 7"),
        (0, "CONFIG GET slowlog-max-len"), (0, "INFO server"), (0, "SLOWLOG LEN"),
        (0, "SLOWLOG GET 1"), (0, "SLOWLOG RESET"), (0, "CLIENT LIST"), (0, "CLIENT PAUSE 0"),
        (0, "CLIENT UNPAUSE"), (0, "CLIENT KILL ID 999999999"), (0, "CLIENT UNBLOCK 999999999"),
        (0, "ACL LOG RESET"), (0, "ACL LOG"), (0, "DBSIZE"), (0, "GET {t}a"), (0, "EXEC"),
        (0, "CONFIG GET slowlog-max-len"), (0, "CONFIG SET slowlog-max-len 128"),
        (0, "CONFIG SET slowlog-log-slower-than 10000")],
    "errors at their place": [
        (0, "MULTI"), (0, "CONFIG SET maxclients none"), (0, "SLOWLOG GET -5"),
        (0, "CLIENT PAUSE x"), (0, "CLUSTER COUNTKEYSINSLOT 16384"), (0, "SET {t}a 1"),
        (0, "EXEC"), (0, "GET {t}a")],
    "a slot": [
        (0, "SET {t}a 1"), (0, "MULTI"), (0, "CLUSTER COUNTKEYSINSLOT 15891"), (0, "DEL {t}a"),
        (0, "CLUSTER COUNTKEYSINSLOT 15891"), (0, "CLUSTER GETKEYSINSLOT 15891 10"), (0, "EXEC")],
    "everything emptied": [
        (0, "MSET {t}a 1 {t}b 2"), (0, "SET other 1"), (0, "MULTI"), (0, "PING"), (0, "FLUSHDB"),
        (0, "KEYS *"), (0, "DBSIZE"), (0, "EXEC"), (0, "EXISTS {t}a {t}b"), (0, "SET other 2"),
        (0, "MULTI"), (0, "FLUSHALL"), (0, "EXEC"), (0, "GET other")],
    "not before the watched key was looked at": [
        (0, "WATCH {t}a"), (1, "SET {t}a 1"), (0, "MULTI"), (0, "CONFIG SET slowlog-max-len 9"),
        (0, "DBSIZE"), (0, "EXEC"), (0, "CONFIG GET slowlog-max-len")],
    "names behind the list of clients": [
        (0, "CLIENT SETNAME before"), (0, "MULTI"), (0, "CLIENT LIST"), (0, "CLIENT SETNAME after"),
        (0, "CLIENT GETNAME"), (0, "EXEC"), (0, "CLIENT GETNAME")],
    "the table of commands": [(0, "MULTI"), (0, "COMMAND COUNT"), (0, "SET {t}a 1"), (0, "EXEC")],
}

# Commands that only a server behind heatsink has.
MORE = {
    "collections": [
        (0, "MULTI"), (0, "HSET {t}h a 1 b 2"), (0, "RPUSH {t}l 1 2 3"), (0, "ZADD {t}z 1.5 x"),
        (0, "SADD {t}s 1"), (0, "XADD {t}x 1-1 f v"), (0, "HGETALL {t}h"), (0, "LRANGE {t}l 0 -1"),
        (0, "ZRANGE {t}z 0 -1 WITHSCORES"), (0, "PING"), (0, "SMEMBERS {t}s"),
        (0, "XRANGE {t}x - +"), (0, "ZSCORE {t}z nil"), (0, "EXEC"), (1, "TYPE {t}z")],
    "the wrong type while running": [
        (0, "SET {t}a x"), (0, "MULTI"), (0, "LPUSH {t}a 1"), (0, "HGET {t}a f"), (0, "GET {t}a"),
        (0, "EXEC")],
    "the wrong arity while queueing": [
        (0, "MULTI"), (0, "HSET {t}h"), (0, "HSET {t}h a 1"), (0, "EXEC"), (0, "EXISTS {t}h")],
    "no such subcommand while queueing": [
        (0, "MULTI"), (0, "XGROUP NOSUCH {t}x"), (0, "HSET {t}h a 1"), (0, "EXEC"),
        (0, "EXISTS {t}h")],
    "an odd number of fields while running": [
        (0, "MULTI"), (0, "HSET {t}h a 1 b"), (0, "HSET {t}h a 1"), (0, "EXEC")],
    "nothing to wait for": [
        (0, "MULTI"), (0, "BLPOP {t}l 0"), (0, "BLMOVE {t}l {t}m LEFT LEFT 0"),
        (0, "BZPOPMIN {t}z 0"), (0, "XREAD BLOCK 0 STREAMS {t}x $"), (0, "RPUSH {t}l a"),
        (0, "BLPOP {t}l 0"), (0, "BLMPOP 0 1 {t}l LEFT"), (0, "EXEC")],
    "scripts": [
        (0, "MULTI"), (0, "EVAL return(redis.call('INCR',KEYS[1])) 1 {t}a"),
        (0, "EVAL return(redis.call('LPUSH',KEYS[1],1)) 1 {t}a"), (0, "EVAL return({1,{2}}) 0"),
        (0, "EVALSHA 0000000000000000000000000000000000000000 1 {t}a"), (0, "EXEC"),
        (0, "GET {t}a")],
    "a watched list pushed to": [
        (0, "RPUSH {t}l a"), (0, "WATCH {t}l"), (1, "LPUSH {t}l b"), (0, "MULTI"),
        (0, "LRANGE {t}l 0 -1"), (0, "EXEC"), (0, "LRANGE {t}l 0 -1")],
    "a watched list read": [
        (0, "RPUSH {t}l a"), (0, "WATCH {t}l"), (1, "LRANGE {t}l 0 -1"), (1, "LPOP {t}none"),
        (0, "MULTI"), (0, "LPOP {t}l"), (0, "EXEC"), (0, "EXISTS {t}l")],
    "watched by a script's key": [
        (0, "WATCH {t}a"), (1, "EVAL return(redis.call('SET',KEYS[1],1)) 1 {t}a"), (0, "MULTI"),
        (0, "GET {t}a"), (0, "EXEC")],
    "its own waiting command while it watches": [
        (0, "WATCH {t}a"), (0, "RPUSH {t}l x"), (0, "BLPOP {t}l 0"), (0, "BLPOP {t}l 0.01"),
        (0, "MULTI"), (0, "GET {t}a"), (0, "EXEC")],
    "its own change while it watches": [
        (0, "WATCH {t}a"), (0, "HSET {t}a f v"), (0, "MULTI"), (0, "HGETALL {t}a"), (0, "EXEC")],
    "another dialect while it watches": [
        (0, "HSET {t}h f v"), (0, "WATCH {t}h"), (0, "HELLO 3"), (0, "HGETALL {t}h"),
        (1, "HSET {t}h f w"), (0, "MULTI"), (0, "HGETALL {t}h"), (0, "EXEC"), (0, "HGETALL {t}h"),
        (0, "WATCH {t}h"), (0, "HELLO 2"), (0, "MULTI"), (0, "HGETALL {t}h"), (0, "EXEC"),
        (0, "HGETALL {t}h")],
    "watched twice, unwatched once": [
        (0, "WATCH {t}a"), (0, "WATCH {t}a {t}b"), (0, "UNWATCH"), (1, "SET {t}b 1"), (0, "MULTI"),
        (0, "GET {t}b"), (0, "EXEC")],
    "reset unwatches": [
        (0, "WATCH {t}a"), (0, "RESET"), (1, "SET {t}a 1"), (0, "MULTI"), (0, "GET {t}a"),
        (0, "EXEC")],
    "watched, and gone": [
        (0, "WATCH {t}a"), (0, "QUIT"), (1, "SET {t}a 1"), (0, "MULTI"), (0, "GET {t}a"),
        (0, "EXEC")],
}

# The same as SPANNING, in front of servers.
SPANNING_MORE = {
    "scripts on all nodes": [
        (0, "SCRIPT FLUSH"), (0, "MULTI"), (0, "SCRIPT LOAD return(1)"), (0, "SET {t}a 1"),
        (0, "EVALSHA 930269f31393d0be681588b6ab08dccee7d6bb67 1 {t}a"),
        (0, "SCRIPT EXISTS 930269f31393d0be681588b6ab08dccee7d6bb67"), (0, "EXEC"),
        (0, "SCRIPT EXISTS 930269f31393d0be681588b6ab08dccee7d6bb67"),
        (0, "EVALSHA 930269f31393d0be681588b6ab08dccee7d6bb67 1 other"), (0, "MULTI"),
        (0, "SCRIPT LOAD return("), (0, "SCRIPT FLUSH"), (0, "EXEC"),
        (0, "EVALSHA 930269f31393d0be681588b6ab08dccee7d6bb67 1 other")],
    "replicas that are not waited for": [
        (0, "MULTI"), (0, "SET {t}a 1"), (0, "WAIT 3 0"), (0, "WAIT x 0"), (0, "EXEC"),
        (0, "MULTI"), (0, "WAIT 1 0"), (0, "EXEC")],
}

# With one server behind heatsink: keys of any slots, and commands about all keys.
TOGETHER = {
    "any keys": [
        (0, "MULTI"), (0, "MSET a 1 b 2 c 3"), (0, "RENAME a d"), (0, "SUNIONSTORE e f g"),
        (0, "MGET a b c d"), (0, "EXEC")],
    "all keys": [
        (0, "MSET a 1 b 2"), (0, "MULTI"), (0, "DBSIZE"), (0, "KEYS nosuch*"), (0, "FLUSHALL"),
        (0, "DBSIZE"), (0, "RANDOMKEY"), (0, "SCAN 0"), (0, "EXEC")],
    "scripts and functions": [
        (0, "MULTI"), (0, "SCRIPT LOAD return(1)"), (0, "WAIT 0 0"), (0, "FUNCTION LIST"),
        (0, "EVALSHA 930269f31393d0be681588b6ab08dccee7d6bb67 0"), (0, "SCRIPT FLUSH"),
        (0, "PUBLISH c m"), (0, "EXEC"), (0, "EVALSHA 930269f31393d0be681588b6ab08dccee7d6bb67 0")],
    "watched keys of any slots": [
        (0, "WATCH a b"), (0, "WATCH c"), (1, "SET c 1"), (0, "MULTI"), (0, "MGET a b c"),
        (0, "EXEC")],
}
