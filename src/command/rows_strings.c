/* Rows of the command table: strings, and strings seen as bits. See command/rows.h. */
#include "command/rows.h"

/* A row: where it runs, what it takes, its flags, its words. */
/* clang-format off */

ROW(APPEND,
	.name = "append", .place = HS_PLACE_PARTITION,
	.arity = 3, KEYS(1, 1, 1, "RW insert"),
	.flags = HS_CMD_WRITE | HS_CMD_DENYOOM | HS_CMD_FAST, .categories = "@write @string @fast",
	.group = "string", .since = "2.0.0", .complexity = "O(N), N the length of the string",
	.arguments = "key value",
	.summary = "Adds text to the end of a string; answers its new length");

ROW(DECR,
	.name = "decr", .place = HS_PLACE_PARTITION,
	.arity = 2, KEYS(1, 1, 1, "RW access update"),
	.flags = HS_CMD_WRITE | HS_CMD_DENYOOM | HS_CMD_FAST, .categories = "@write @string @fast",
	.group = "string", .since = "1.0.0", .complexity = "O(1)",
	.arguments = "key",
	.summary = "Takes one from a number");

ROW(DECRBY,
	.name = "decrby", .place = HS_PLACE_PARTITION,
	.arity = 3, KEYS(1, 1, 1, "RW access update"),
	.flags = HS_CMD_WRITE | HS_CMD_DENYOOM | HS_CMD_FAST, .categories = "@write @string @fast",
	.group = "string", .since = "1.0.0", .complexity = "O(1)",
	.arguments = "key decrement",
	.summary = "Takes an amount from a number");

ROW(GET,
	.name = "get", .place = HS_PLACE_PARTITION,
	.arity = 2, KEYS(1, 1, 1, "RO access"),
	.flags = HS_CMD_READONLY | HS_CMD_FAST, .categories = "@read @string @fast",
	.keep = HS_KEEP_YES | HS_KEEP_WHOLE,
	.group = "string", .since = "1.0.0", .complexity = "O(1)",
	.arguments = "key",
	.summary = "Answers the string at a key");

ROW(GETDEL,
	.name = "getdel", .place = HS_PLACE_PARTITION,
	.arity = 2, KEYS(1, 1, 1, "RW access delete"),
	.flags = HS_CMD_WRITE | HS_CMD_FAST, .categories = "@write @string @fast",
	.group = "string", .since = "6.2.0", .complexity = "O(1)",
	.arguments = "key",
	.summary = "Answers the string at a key and removes the key");

ROW(GETEX,
	.name = "getex", .place = HS_PLACE_PARTITION,
	.arity = -2, KEYS(1, 1, 1, "RW access update"),
	.flags = HS_CMD_WRITE | HS_CMD_FAST, .categories = "@write @string @fast",
	.group = "string", .since = "6.2.0", .complexity = "O(1)",
	.arguments = "key [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT "
	             "unix-time-milliseconds | PERSIST]",
	.summary = "Answers the string at a key and changes when it expires");

ROW(GETRANGE,
	.name = "getrange", .place = HS_PLACE_PARTITION,
	.arity = 4, KEYS(1, 1, 1, "RO access"),
	.flags = HS_CMD_READONLY, .categories = "@read @string @slow",
	.keep = HS_KEEP_YES,
	.group = "string", .since = "2.4.0", .complexity = "O(N), N the length of the part",
	.arguments = "key start end",
	.summary = "Answers a part of a string");

ROW(GETSET,
	.name = "getset", .place = HS_PLACE_PARTITION,
	.arity = 3, KEYS(1, 1, 1, "RW access update"),
	.flags = HS_CMD_WRITE | HS_CMD_DENYOOM | HS_CMD_FAST, .categories = "@write @string @fast",
	.deprecated = "6.2.0", .replaced_by = "`SET` with `GET`",
	.group = "string", .since = "1.0.0", .complexity = "O(1)",
	.arguments = "key value",
	.summary = "Stores a string and answers the one before it");

ROW(INCR,
	.name = "incr", .place = HS_PLACE_PARTITION,
	.arity = 2, KEYS(1, 1, 1, "RW access update"),
	.flags = HS_CMD_WRITE | HS_CMD_DENYOOM | HS_CMD_FAST, .categories = "@write @string @fast",
	.group = "string", .since = "1.0.0", .complexity = "O(1)",
	.arguments = "key",
	.summary = "Adds one to a number");

ROW(INCRBY,
	.name = "incrby", .place = HS_PLACE_PARTITION,
	.arity = 3, KEYS(1, 1, 1, "RW access update"),
	.flags = HS_CMD_WRITE | HS_CMD_DENYOOM | HS_CMD_FAST, .categories = "@write @string @fast",
	.group = "string", .since = "1.0.0", .complexity = "O(1)",
	.arguments = "key increment",
	.summary = "Adds an amount to a number");

ROW(INCRBYFLOAT,
	.name = "incrbyfloat", .place = HS_PLACE_PARTITION,
	.arity = 3, KEYS(1, 1, 1, "RW access update"),
	.flags = HS_CMD_WRITE | HS_CMD_DENYOOM | HS_CMD_FAST, .categories = "@write @string @fast",
	.group = "string", .since = "2.6.0", .complexity = "O(1)",
	.arguments = "key number",
	.summary = "Adds an amount with a fraction to a number");

ROW(LCS,
	.name = "lcs", .place = HS_PLACE_PARTITION,
	.arity = -3, KEYS(1, 2, 1, "RO access"),
	.flags = HS_CMD_READONLY, .categories = "@read @string @slow",
	.group = "string", .since = "7.0.0",
	.complexity = "O(N*M), N and M the lengths of the two strings",
	.arguments = "key1 key2 [LEN] [IDX] [MINMATCHLEN min-match-len] [WITHMATCHLEN]",
	.summary = "Finds what two strings have in common, in order");

ROW(MGET,
	.name = "mget", .place = HS_PLACE_SPLIT, .merge = HS_MERGE_BY_KEY,
	.arity = -2, KEYS(1, -1, 1, "RO access"),
	.flags = HS_CMD_READONLY | HS_CMD_FAST, .categories = "@read @string @fast",
	.tips = "request_policy:multi_shard",
	.group = "string", .since = "1.0.0", .complexity = "O(N), N the number of keys",
	.arguments = "key ...",
	.summary = "Answers the strings at several keys");

ROW(MSET,
	.name = "mset", .place = HS_PLACE_SPLIT, .merge = HS_MERGE_OK,
	.arity = -3, KEYS(1, -1, 2, "OW update"),
	.flags = HS_CMD_WRITE | HS_CMD_DENYOOM, .categories = "@write @string @slow",
	.tips = "request_policy:multi_shard response_policy:all_succeeded",
	.group = "string", .since = "1.0.1", .complexity = "O(N), N the number of keys",
	.arguments = "(key value) ...",
	.summary = "Stores several strings");

ROW(MSETNX,
	.name = "msetnx", .place = HS_PLACE_PARTITION,
	.arity = -3, KEYS(1, -1, 2, "OW insert"),
	.flags = HS_CMD_CONDITIONAL | HS_CMD_WRITE | HS_CMD_DENYOOM, .categories = "@write @string @slow",
	.tips = "request_policy:multi_shard response_policy:agg_min",
	.group = "string", .since = "1.0.1", .complexity = "O(N), N the number of keys",
	.arguments = "(key value) ...",
	.summary = "Stores several strings, all or none: only if no key is there yet");

ROW(PSETEX,
	.name = "psetex", .place = HS_PLACE_PARTITION,
	.arity = 4, KEYS(1, 1, 1, "OW update"),
	.flags = HS_CMD_WRITE | HS_CMD_DENYOOM, .categories = "@write @string @slow",
	.group = "string", .since = "2.6.0", .complexity = "O(1)",
	.arguments = "key milliseconds value",
	.summary = "Stores a string for some milliseconds");

ROW(SET,
	.name = "set", .place = HS_PLACE_PARTITION,
	.arity = -3, KEYS(1, 1, 1, "RW access update variable_flags"),
	.flags = HS_CMD_CONDITIONAL | HS_CMD_WRITE | HS_CMD_DENYOOM, .categories = "@write @string @slow",
	.group = "string", .since = "1.0.0", .complexity = "O(1)",
	.arguments = "key value [NX | XX] [GET] [EX seconds | PX milliseconds | EXAT "
	             "unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL]",
	.summary = "Stores a string, whatever was there");

ROW(SETEX,
	.name = "setex", .place = HS_PLACE_PARTITION,
	.arity = 4, KEYS(1, 1, 1, "OW update"),
	.flags = HS_CMD_WRITE | HS_CMD_DENYOOM, .categories = "@write @string @slow",
	.group = "string", .since = "2.0.0", .complexity = "O(1)",
	.arguments = "key seconds value",
	.summary = "Stores a string for some seconds");

ROW(SETNX,
	.name = "setnx", .place = HS_PLACE_PARTITION,
	.arity = 3, KEYS(1, 1, 1, "OW insert"),
	.flags = HS_CMD_CONDITIONAL | HS_CMD_WRITE | HS_CMD_DENYOOM | HS_CMD_FAST, .categories = "@write @string @fast",
	.group = "string", .since = "1.0.0", .complexity = "O(1)",
	.arguments = "key value",
	.summary = "Stores a string if the key is not there yet");

ROW(SETRANGE,
	.name = "setrange", .place = HS_PLACE_PARTITION,
	.arity = 4, KEYS(1, 1, 1, "RW update"),
	.flags = HS_CMD_WRITE | HS_CMD_DENYOOM, .categories = "@write @string @slow",
	.group = "string", .since = "2.2.0", .complexity = "O(N), N the length of the string",
	.arguments = "key offset value",
	.summary = "Writes over a part of a string, from an offset on");

ROW(STRLEN,
	.name = "strlen", .place = HS_PLACE_PARTITION,
	.arity = 2, KEYS(1, 1, 1, "RO"),
	.flags = HS_CMD_READONLY | HS_CMD_FAST, .categories = "@read @string @fast",
	.keep = HS_KEEP_YES,
	.group = "string", .since = "2.2.0", .complexity = "O(1)",
	.arguments = "key",
	.summary = "Answers how long a string is");

ROW(SUBSTR,
	.name = "substr", .place = HS_PLACE_PARTITION,
	.arity = 4, KEYS(1, 1, 1, "RO access"),
	.flags = HS_CMD_READONLY, .categories = "@read @string @slow",
	.keep = HS_KEEP_YES,
	.deprecated = "2.0.0", .replaced_by = "`GETRANGE`",
	.group = "string", .since = "1.0.0", .complexity = "O(N), N the length of the part",
	.arguments = "key start end",
	.summary = "Answers a part of a string; an old name of GETRANGE");

ROW(BITCOUNT,
	.name = "bitcount", .place = HS_PLACE_PARTITION,
	.arity = -2, KEYS(1, 1, 1, "RO access"),
	.flags = HS_CMD_READONLY, .categories = "@read @bitmap @slow",
	.keep = HS_KEEP_YES,
	.group = "bitmap", .since = "2.6.0", .complexity = "O(N), N the length of the part",
	.arguments = "key [start end [BYTE | BIT]]",
	.summary = "Counts the bits of a string that are 1");

ROW(BITPOS,
	.name = "bitpos", .place = HS_PLACE_PARTITION,
	.arity = -3, KEYS(1, 1, 1, "RO access"),
	.flags = HS_CMD_READONLY, .categories = "@read @bitmap @slow",
	.keep = HS_KEEP_YES,
	.group = "bitmap", .since = "2.8.7", .complexity = "O(N), N the length of the part",
	.arguments = "key bit [start [end [BYTE | BIT]]]",
	.summary = "Finds the first bit of a string that is 0, or 1");

ROW(GETBIT,
	.name = "getbit", .place = HS_PLACE_PARTITION,
	.arity = 3, KEYS(1, 1, 1, "RO access"),
	.flags = HS_CMD_READONLY | HS_CMD_FAST, .categories = "@read @bitmap @fast",
	.keep = HS_KEEP_YES,
	.group = "bitmap", .since = "2.2.0", .complexity = "O(1)",
	.arguments = "key offset",
	.summary = "Answers one bit of a string");

ROW(SETBIT,
	.name = "setbit", .place = HS_PLACE_PARTITION,
	.arity = 4, KEYS(1, 1, 1, "RW access update"),
	.flags = HS_CMD_WRITE | HS_CMD_DENYOOM, .categories = "@write @bitmap @slow",
	.group = "bitmap", .since = "2.2.0", .complexity = "O(N), N the length of the string",
	.arguments = "key offset bit",
	.summary = "Changes one bit of a string and answers the old one");
