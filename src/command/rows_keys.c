/* Rows of the command table: keys, whatever their values. See command/rows.h. */
#include "command/rows.h"

/* A row: where it runs, what it takes, its flags, its words. */
/* clang-format off */

ROW(COPY,
	.name = "copy", .place = HS_PLACE_PARTITION,
	.arity = -3, KEYS(1, 2, 1, "RO access, OW update"),
	.flags = HS_CMD_WRITE | HS_CMD_DENYOOM, .categories = "@keyspace @write @slow",
	.group = "generic", .since = "6.2.0", .complexity = "O(N), N the size of the value",
	.arguments = "source destination [DB destination-db] [REPLACE]",
	.summary = "Copies the value of one key to another");

ROW(DEL,
	.name = "del", .place = HS_PLACE_SPLIT, .merge = HS_MERGE_SUM,
	.arity = -2, KEYS(1, -1, 1, "RM delete"),
	.flags = HS_CMD_WRITE, .categories = "@keyspace @write @slow",
	.tips = "request_policy:multi_shard response_policy:agg_sum",
	.group = "generic", .since = "1.0.0", .complexity = "O(N), N the number of keys",
	.arguments = "key ...",
	.summary = "Removes keys; answers how many were there");

ROW(EXISTS,
	.name = "exists", .place = HS_PLACE_SPLIT, .merge = HS_MERGE_SUM,
	.arity = -2, KEYS(1, -1, 1, "RO"),
	.flags = HS_CMD_READONLY | HS_CMD_FAST, .categories = "@keyspace @read @fast",
	.keep = HS_KEEP_YES | HS_KEEP_WHOLE | HS_KEEP_SHORT,
	.tips = "request_policy:multi_shard response_policy:agg_sum",
	.group = "generic", .since = "1.0.0", .complexity = "O(N), N the number of keys",
	.arguments = "key ...",
	.summary = "Counts which of the keys are there");

ROW(EXPIRE,
	.name = "expire", .place = HS_PLACE_PARTITION,
	.arity = -3, KEYS(1, 1, 1, "RW update"),
	.flags = HS_CMD_WRITE | HS_CMD_FAST, .categories = "@keyspace @write @fast",
	.group = "generic", .since = "1.0.0", .complexity = "O(1)",
	.arguments = "key seconds [NX | XX | GT | LT]",
	.summary = "Lets a key expire in some seconds");

ROW(EXPIREAT,
	.name = "expireat", .place = HS_PLACE_PARTITION,
	.arity = -3, KEYS(1, 1, 1, "RW update"),
	.flags = HS_CMD_WRITE | HS_CMD_FAST, .categories = "@keyspace @write @fast",
	.group = "generic", .since = "1.2.0", .complexity = "O(1)",
	.arguments = "key unix-time-seconds [NX | XX | GT | LT]",
	.summary = "Lets a key expire at a time given in seconds");

ROW(EXPIRETIME,
	.name = "expiretime", .place = HS_PLACE_PARTITION,
	.arity = 2, KEYS(1, 1, 1, "RO access"),
	.flags = HS_CMD_READONLY | HS_CMD_FAST, .categories = "@keyspace @read @fast",
	.group = "generic", .since = "7.0.0", .complexity = "O(1)",
	.arguments = "key",
	.summary = "Answers when a key expires, in seconds since 1970");

ROW(KEYS,
	.name = "keys", .place = HS_PLACE_ALL, .merge = HS_MERGE_CONCAT,
	.arity = 2,
	.flags = HS_CMD_READONLY, .categories = "@keyspace @read @slow @dangerous",
	.tips = "request_policy:all_shards nondeterministic_output_order",
	.group = "generic", .since = "1.0.0", .complexity = "O(N), N the number of all keys",
	.arguments = "pattern",
	.summary = "Lists the keys that match a pattern");

ROW(OBJECT,
	.name = "object", .place = HS_PLACE_PARENT,
	.arity = -2,
	.categories = "@slow",
	.group = "generic", .since = "2.2.3", .complexity = "That of the subcommand",
	.summary = "Looks at how a value is kept");

ROW(OBJECT_ENCODING,
	.name = "object|encoding", .parent = HS_CMD_ID_OBJECT, .place = HS_PLACE_PARTITION,
	.arity = 3, KEYS(2, 2, 1, "RO"),
	.flags = HS_CMD_READONLY, .categories = "@keyspace @read @slow",
	.tips = "nondeterministic_output",
	.group = "generic", .since = "2.2.3", .complexity = "O(1)",
	.arguments = "key",
	.summary = "Answers the name of the form a value is kept in");

ROW(OBJECT_FREQ,
	.name = "object|freq", .parent = HS_CMD_ID_OBJECT, .place = HS_PLACE_PARTITION,
	.arity = 3, KEYS(2, 2, 1, "RO"),
	.flags = HS_CMD_READONLY, .categories = "@keyspace @read @slow",
	.tips = "nondeterministic_output",
	.group = "generic", .since = "4.0.0", .complexity = "O(1)",
	.arguments = "key",
	.summary = "Answers how often a key is used, on a logarithmic scale");

ROW(OBJECT_HELP,
	.name = "object|help", .parent = HS_CMD_ID_OBJECT, .place = HS_PLACE_CORE,
	.arity = 2,
	.flags = HS_CMD_LOADING | HS_CMD_STALE, .categories = "@keyspace @slow",
	.group = "generic", .since = "6.2.0", .complexity = "O(1)",
	.summary = "Shows this text");

ROW(OBJECT_IDLETIME,
	.name = "object|idletime", .parent = HS_CMD_ID_OBJECT, .place = HS_PLACE_PARTITION,
	.arity = 3, KEYS(2, 2, 1, "RO"),
	.flags = HS_CMD_READONLY, .categories = "@keyspace @read @slow",
	.tips = "nondeterministic_output",
	.group = "generic", .since = "2.2.3", .complexity = "O(1)",
	.arguments = "key",
	.summary = "Answers for how many seconds a key was not used");

ROW(OBJECT_REFCOUNT,
	.name = "object|refcount", .parent = HS_CMD_ID_OBJECT, .place = HS_PLACE_PARTITION,
	.arity = 3, KEYS(2, 2, 1, "RO"),
	.flags = HS_CMD_READONLY, .categories = "@keyspace @read @slow",
	.tips = "nondeterministic_output",
	.group = "generic", .since = "2.2.3", .complexity = "O(1)",
	.arguments = "key",
	.summary = "Answers how many keys share the value");

ROW(PERSIST,
	.name = "persist", .place = HS_PLACE_PARTITION,
	.arity = 2, KEYS(1, 1, 1, "RW update"),
	.flags = HS_CMD_WRITE | HS_CMD_FAST, .categories = "@keyspace @write @fast",
	.group = "generic", .since = "2.2.0", .complexity = "O(1)",
	.arguments = "key",
	.summary = "Lets a key stay for ever");

ROW(PEXPIRE,
	.name = "pexpire", .place = HS_PLACE_PARTITION,
	.arity = -3, KEYS(1, 1, 1, "RW update"),
	.flags = HS_CMD_WRITE | HS_CMD_FAST, .categories = "@keyspace @write @fast",
	.group = "generic", .since = "2.6.0", .complexity = "O(1)",
	.arguments = "key milliseconds [NX | XX | GT | LT]",
	.summary = "Lets a key expire in some milliseconds");

ROW(PEXPIREAT,
	.name = "pexpireat", .place = HS_PLACE_PARTITION,
	.arity = -3, KEYS(1, 1, 1, "RW update"),
	.flags = HS_CMD_WRITE | HS_CMD_FAST, .categories = "@keyspace @write @fast",
	.group = "generic", .since = "2.6.0", .complexity = "O(1)",
	.arguments = "key unix-time-milliseconds [NX | XX | GT | LT]",
	.summary = "Lets a key expire at a time given in milliseconds");

ROW(PEXPIRETIME,
	.name = "pexpiretime", .place = HS_PLACE_PARTITION,
	.arity = 2, KEYS(1, 1, 1, "RO access"),
	.flags = HS_CMD_READONLY | HS_CMD_FAST, .categories = "@keyspace @read @fast",
	.group = "generic", .since = "7.0.0", .complexity = "O(1)",
	.arguments = "key",
	.summary = "Answers when a key expires, in milliseconds since 1970");

ROW(PTTL,
	.name = "pttl", .place = HS_PLACE_PARTITION,
	.arity = 2, KEYS(1, 1, 1, "RO access"),
	.flags = HS_CMD_READONLY | HS_CMD_FAST, .categories = "@keyspace @read @fast",
	.tips = "nondeterministic_output",
	.group = "generic", .since = "2.6.0", .complexity = "O(1)",
	.arguments = "key",
	.summary = "Answers how many milliseconds a key has left");

ROW(RANDOMKEY,
	.name = "randomkey", .place = HS_PLACE_ALL, .merge = HS_MERGE_FIRST,
	.arity = 1,
	.flags = HS_CMD_READONLY, .categories = "@keyspace @read @slow",
	.tips = "request_policy:all_shards nondeterministic_output",
	.group = "generic", .since = "1.0.0", .complexity = "O(1)",
	.summary = "Answers any one key");

ROW(RENAME,
	.name = "rename", .place = HS_PLACE_PARTITION,
	.arity = 3, KEYS(1, 2, 1, "RW access delete, OW update"),
	.flags = HS_CMD_WRITE, .categories = "@keyspace @write @slow",
	.group = "generic", .since = "1.0.0", .complexity = "O(N), N the size of the value",
	.arguments = "key newkey",
	.summary = "Gives a key another name, replacing what has it");

ROW(RENAMENX,
	.name = "renamenx", .place = HS_PLACE_PARTITION,
	.arity = 3, KEYS(1, 2, 1, "RW access delete, OW insert"),
	.flags = HS_CMD_CONDITIONAL | HS_CMD_WRITE | HS_CMD_FAST, .categories = "@keyspace @write @fast",
	.group = "generic", .since = "1.0.0", .complexity = "O(N), N the size of the value",
	.arguments = "key newkey",
	.summary = "Gives a key another name if nothing has it");

ROW(SCAN,
	.name = "scan", .place = HS_PLACE_CURSOR,
	.arity = -2,
	.flags = HS_CMD_READONLY, .categories = "@keyspace @read @slow",
	.tips = "nondeterministic_output request_policy:special",
	.group = "generic", .since = "2.8.0", .complexity = "O(1) a call, O(N) for all N keys",
	.arguments = "cursor [MATCH pattern] [COUNT count] [TYPE type]",
	.summary = "Walks over the keys, some at a time");

ROW(TOUCH,
	.name = "touch", .place = HS_PLACE_SPLIT, .merge = HS_MERGE_SUM,
	.arity = -2, KEYS(1, -1, 1, "RO"),
	.flags = HS_CMD_READONLY | HS_CMD_FAST, .categories = "@keyspace @read @fast",
	.tips = "request_policy:multi_shard response_policy:agg_sum",
	.group = "generic", .since = "3.2.1", .complexity = "O(N), N the number of keys",
	.arguments = "key ...",
	.summary = "Marks keys as used just now; answers how many are there");

ROW(TTL,
	.name = "ttl", .place = HS_PLACE_PARTITION,
	.arity = 2, KEYS(1, 1, 1, "RO access"),
	.flags = HS_CMD_READONLY | HS_CMD_FAST, .categories = "@keyspace @read @fast",
	.tips = "nondeterministic_output",
	.group = "generic", .since = "1.0.0", .complexity = "O(1)",
	.arguments = "key",
	.summary = "Answers how many seconds a key has left");

ROW(TYPE,
	.name = "type", .place = HS_PLACE_PARTITION,
	.arity = 2, KEYS(1, 1, 1, "RO"),
	.flags = HS_CMD_READONLY | HS_CMD_FAST, .categories = "@keyspace @read @fast",
	.keep = HS_KEEP_YES | HS_KEEP_WHOLE,
	.group = "generic", .since = "1.0.0", .complexity = "O(1)",
	.arguments = "key",
	.summary = "Answers the type of the value at a key");

ROW(UNLINK,
	.name = "unlink", .place = HS_PLACE_SPLIT, .merge = HS_MERGE_SUM,
	.arity = -2, KEYS(1, -1, 1, "RM delete"),
	.flags = HS_CMD_WRITE | HS_CMD_FAST, .categories = "@keyspace @write @fast",
	.tips = "request_policy:multi_shard response_policy:agg_sum",
	.group = "generic", .since = "4.0.0", .complexity = "O(N), N the number of keys",
	.arguments = "key ...",
	.summary = "Removes keys; answers how many were there");
