/* Rows of the command table: heat, and the hot keys as Redis 8.6 asks for them. See command/rows.h.
 */
#include "command/rows.h"

/* A row: where it runs, what it takes, its flags, its words. */
/* clang-format off */

ROW(HEAT,
	.name = "heat", .place = HS_PLACE_PARENT,
	.arity = -2,
	.categories = "@slow",
	.group = "server", .since = "0.1.0", .complexity = "That of the subcommand",
	.summary = "Shows what is hot: keys, prefixes, slots, partitions");

ROW(HEAT_HELP,
	.name = "heat|help", .parent = HS_CMD_ID_HEAT, .place = HS_PLACE_CORE,
	.arity = 2,
	.flags = HS_CMD_LOADING | HS_CMD_STALE, .categories = "@slow",
	.group = "server", .since = "0.1.0", .complexity = "O(1)",
	.summary = "Shows this text");

ROW(HEAT_HISTORY,
	.name = "heat|history", .parent = HS_CMD_ID_HEAT, .place = HS_PLACE_HOST,
	.arity = -3,
	.flags = HS_CMD_ADMIN | HS_CMD_NOSCRIPT | HS_CMD_LOADING | HS_CMD_STALE,
	.categories = "@admin @slow @dangerous", .tips = "nondeterministic_output",
	.group = "server", .since = "0.1.0", .complexity = "O(N), N the number of seconds",
	.arguments = "(PARTITIONS | TOP | RANGES) [SECONDS seconds]",
	.summary = "Answers the last seconds, one by one: by partition, the hottest keys, or by slot "
		   "range");

ROW(HEAT_KEY,
	.name = "heat|key", .parent = HS_CMD_ID_HEAT, .place = HS_PLACE_HOST,
	.arity = 3,
	.flags = HS_CMD_ADMIN | HS_CMD_NOSCRIPT | HS_CMD_LOADING | HS_CMD_STALE,
	.categories = "@admin @slow @dangerous", .tips = "nondeterministic_output",
	.group = "server", .since = "0.1.0", .complexity = "O(N), N the number of workers",
	.arguments = "key-name",
	.summary = "Answers everything known about the heat of one key");

ROW(HEAT_MITIGATE,
	.name = "heat|mitigate", .parent = HS_CMD_ID_HEAT, .place = HS_PLACE_HOST,
	.arity = -2,
	.flags = HS_CMD_ADMIN | HS_CMD_NOSCRIPT | HS_CMD_LOADING | HS_CMD_STALE,
	.categories = "@admin @slow @dangerous",
	.group = "server", .since = "0.1.0", .complexity = "O(N), N the number of workers",
	.arguments = "[ON | OBSERVE | OFF]",
	.summary = "Does what rules allow, only counts what that would save, or neither; answers "
		   "which of them it is");

ROW(HEAT_PARTITIONS,
	.name = "heat|partitions", .parent = HS_CMD_ID_HEAT, .place = HS_PLACE_HOST,
	.arity = -2,
	.flags = HS_CMD_ADMIN | HS_CMD_NOSCRIPT | HS_CMD_LOADING | HS_CMD_STALE,
	.categories = "@admin @slow @dangerous", .tips = "nondeterministic_output",
	.group = "server", .since = "0.1.0", .complexity = "O(N), N the number of partitions",
	.arguments = "[WINDOW (SHORT | LONG)]",
	.summary = "Answers each partition's load, and the median behind them");

ROW(HEAT_PLAN,
	.name = "heat|plan", .parent = HS_CMD_ID_HEAT, .place = HS_PLACE_WORKERS,
	.arity = 2,
	.flags = HS_CMD_ADMIN | HS_CMD_NOSCRIPT | HS_CMD_LOADING | HS_CMD_STALE,
	.categories = "@admin @slow @dangerous", .tips = "nondeterministic_output",
	.group = "server", .since = "0.1.0", .complexity = "O(N), N the number of keys at work",
	.summary = "Answers what is being done about hot keys now, worker by worker");

ROW(HEAT_PREFIXES,
	.name = "heat|prefixes", .parent = HS_CMD_ID_HEAT, .place = HS_PLACE_HOST,
	.arity = -2,
	.flags = HS_CMD_ADMIN | HS_CMD_NOSCRIPT | HS_CMD_LOADING | HS_CMD_STALE,
	.categories = "@admin @slow @dangerous", .tips = "nondeterministic_output",
	.group = "server", .since = "0.1.0", .complexity = "O(N), N the number of workers",
	.arguments = "[COUNT count] "
		     "[BY (OPS | READS | WRITES | BYTES | LATENCY | MISSES | CONFLICTS)] "
		     "[WINDOW (SHORT | LONG)]",
	.summary = "Answers the hottest key prefixes, which end at a colon");

ROW(HEAT_RESET,
	.name = "heat|reset", .parent = HS_CMD_ID_HEAT, .place = HS_PLACE_HOST,
	.arity = 2,
	.flags = HS_CMD_ADMIN | HS_CMD_NOSCRIPT | HS_CMD_LOADING | HS_CMD_STALE,
	.categories = "@admin @slow @dangerous",
	.group = "server", .since = "0.1.0", .complexity = "O(N), N the number of workers",
	.summary = "Forgets all heat and its history");

ROW(HEAT_RULE,
	.name = "heat|rule", .parent = HS_CMD_ID_HEAT, .place = HS_PLACE_HOST,
	.arity = -3,
	.flags = HS_CMD_ADMIN | HS_CMD_NOSCRIPT | HS_CMD_LOADING | HS_CMD_STALE,
	.categories = "@admin @slow @dangerous",
	.group = "server", .since = "0.1.0", .complexity = "O(N), N the number of rules",
	.arguments = "((SET glob contract [option ...]) | (DEL glob) | LIST | (TEST key-name))",
	.summary = "Says what may be done to the keys that fit a glob, takes that back, answers all "
		   "rules, or which one a key has");

ROW(HEAT_SLOTS,
	.name = "heat|slots", .parent = HS_CMD_ID_HEAT, .place = HS_PLACE_HOST,
	.arity = -2,
	.flags = HS_CMD_ADMIN | HS_CMD_NOSCRIPT | HS_CMD_LOADING | HS_CMD_STALE,
	.categories = "@admin @slow @dangerous", .tips = "nondeterministic_output",
	.group = "server", .since = "0.1.0", .complexity = "O(N), N the number of workers",
	.arguments = "[COUNT count] "
		     "[BY (OPS | READS | WRITES | BYTES | LATENCY | MISSES | CONFLICTS)] "
		     "[WINDOW (SHORT | LONG)]",
	.summary = "Answers the hottest slots");

ROW(HEAT_TOP,
	.name = "heat|top", .parent = HS_CMD_ID_HEAT, .place = HS_PLACE_HOST,
	.arity = -2,
	.flags = HS_CMD_ADMIN | HS_CMD_NOSCRIPT | HS_CMD_LOADING | HS_CMD_STALE,
	.categories = "@admin @slow @dangerous", .tips = "nondeterministic_output",
	.group = "server", .since = "0.1.0", .complexity = "O(N), N the number of workers",
	.arguments = "[COUNT count] "
		     "[BY (OPS | READS | WRITES | BYTES | LATENCY | MISSES | CONFLICTS)] "
		     "[WINDOW (SHORT | LONG)] [PREFIX prefix]",
	.summary = "Answers the hottest keys, hottest first");

ROW(HOTKEYS,
	.name = "hotkeys", .place = HS_PLACE_PARENT,
	.arity = -2,
	.categories = "@slow",
	.group = "server", .since = "8.6.0", .complexity = "That of the subcommand",
	.summary = "Collects the keys that cost most, from a start to a stop");

ROW(HOTKEYS_GET,
	.name = "hotkeys|get", .parent = HS_CMD_ID_HOTKEYS, .place = HS_PLACE_HOST,
	.arity = 2,
	.flags = HS_CMD_ADMIN | HS_CMD_NOSCRIPT, .categories = "@admin @slow @dangerous",
	.tips = "nondeterministic_output",
	.group = "server", .since = "8.6.0", .complexity = "O(N), N the number of keys asked for",
	.summary = "Answers what was collected so far: an array of one map, as Redis does");

ROW(HOTKEYS_HELP,
	.name = "hotkeys|help", .parent = HS_CMD_ID_HOTKEYS, .place = HS_PLACE_CORE,
	.arity = 2,
	.flags = HS_CMD_LOADING | HS_CMD_STALE, .categories = "@slow",
	.group = "server", .since = "8.6.0", .complexity = "O(1)",
	.summary = "Shows this text");

ROW(HOTKEYS_RESET,
	.name = "hotkeys|reset", .parent = HS_CMD_ID_HOTKEYS, .place = HS_PLACE_HOST,
	.arity = 2,
	.flags = HS_CMD_ADMIN | HS_CMD_NOSCRIPT, .categories = "@admin @slow @dangerous",
	.group = "server", .since = "8.6.0", .complexity = "O(1)",
	.summary = "Forgets what was collected");

ROW(HOTKEYS_START,
	.name = "hotkeys|start", .parent = HS_CMD_ID_HOTKEYS, .place = HS_PLACE_HOST,
	.arity = -2,
	.flags = HS_CMD_ADMIN | HS_CMD_NOSCRIPT, .categories = "@admin @slow @dangerous",
	.group = "server", .since = "8.6.0", .complexity = "O(1)",
	.arguments = "METRICS count [CPU] [NET] [COUNT count] [DURATION seconds] [SAMPLE ratio] "
		     "[SLOTS count slot ...]",
	.summary = "Begins to sum up by key: the time its requests took as heatsink measured it "
		   "(CPU) and their bytes both ways (NET); whatever SAMPLE says, all are counted");

ROW(HOTKEYS_STOP,
	.name = "hotkeys|stop", .parent = HS_CMD_ID_HOTKEYS, .place = HS_PLACE_HOST,
	.arity = 2,
	.flags = HS_CMD_ADMIN | HS_CMD_NOSCRIPT, .categories = "@admin @slow @dangerous",
	.group = "server", .since = "8.6.0", .complexity = "O(1)",
	.summary = "Ends collecting and keeps what was collected");
