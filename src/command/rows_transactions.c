/* Rows of the command table: transactions. See command/rows.h. */
#include "command/rows.h"

/* A row: where it runs, what it takes, its flags, its words. */
/* clang-format off */

ROW(DISCARD,
	.name = "discard", .place = HS_PLACE_CORE,
	.arity = 1,
	.flags = HS_CMD_NOSCRIPT | HS_CMD_LOADING | HS_CMD_STALE | HS_CMD_FAST | HS_CMD_ALLOW_BUSY,
	.categories = "@fast @transaction",
	.group = "transactions", .since = "2.0.0",
	.complexity = "O(N), N the number of queued commands",
	.summary = "Ends a transaction without running it");

ROW(EXEC,
	.name = "exec", .place = HS_PLACE_CORE,
	.arity = 1,
	.flags = HS_CMD_NOSCRIPT | HS_CMD_LOADING | HS_CMD_STALE | HS_CMD_SKIP_SLOWLOG,
	.categories = "@slow @transaction",
	.group = "transactions", .since = "1.2.0", .complexity = "That of the queued commands",
	.summary = "Runs the commands queued since MULTI, as one");

ROW(MULTI,
	.name = "multi", .place = HS_PLACE_CORE,
	.arity = 1,
	.flags = HS_CMD_NOSCRIPT | HS_CMD_LOADING | HS_CMD_STALE | HS_CMD_FAST | HS_CMD_ALLOW_BUSY,
	.categories = "@fast @transaction",
	.group = "transactions", .since = "1.2.0", .complexity = "O(1)",
	.summary = "Begins a transaction: commands queue up until EXEC");

ROW(UNWATCH,
	.name = "unwatch", .place = HS_PLACE_CORE,
	.arity = 1,
	.flags = HS_CMD_NOSCRIPT | HS_CMD_LOADING | HS_CMD_STALE | HS_CMD_FAST | HS_CMD_ALLOW_BUSY,
	.categories = "@fast @transaction",
	.group = "transactions", .since = "2.2.0", .complexity = "O(1)",
	.summary = "Stops watching all keys");

ROW(WATCH,
	.name = "watch", .place = HS_PLACE_PARTITION,
	.arity = -2, KEYS(1, -1, 1, "RO"),
	.flags = HS_CMD_NOSCRIPT | HS_CMD_LOADING | HS_CMD_STALE | HS_CMD_FAST | HS_CMD_ALLOW_BUSY,
	.categories = "@fast @transaction",
	.group = "transactions", .since = "2.2.0", .complexity = "O(N), N the number of keys",
	.arguments = "key ...",
	.summary = "Lets the next EXEC fail if one of the keys changes before it");
