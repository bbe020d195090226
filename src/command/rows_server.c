/* Rows of the command table: the server itself. See command/rows.h. */
#include "command/rows.h"

/* A row: where it runs, what it takes, its flags, its words. */
/* clang-format off */

ROW(COMMAND,
	.name = "command", .place = HS_PLACE_PARENT,
	.arity = -1,
	.flags = HS_CMD_LOADING | HS_CMD_STALE, .categories = "@slow @connection",
	.tips = "nondeterministic_output_order",
	.group = "server", .since = "2.8.13", .complexity = "O(N), N the number of commands",
	.summary = "Describes all commands");

ROW(COMMAND_COUNT,
	.name = "command|count", .parent = HS_CMD_ID_COMMAND, .place = HS_PLACE_CORE,
	.arity = 2,
	.flags = HS_CMD_LOADING | HS_CMD_STALE, .categories = "@slow @connection",
	.group = "server", .since = "2.8.13", .complexity = "O(1)",
	.summary = "Answers how many commands there are");

ROW(COMMAND_DOCS,
	.name = "command|docs", .parent = HS_CMD_ID_COMMAND, .place = HS_PLACE_CORE,
	.arity = -2,
	.flags = HS_CMD_LOADING | HS_CMD_STALE, .categories = "@slow @connection",
	.tips = "nondeterministic_output_order",
	.group = "server", .since = "7.0.0", .complexity = "O(N), N the number of names",
	.arguments = "[command-name ...]",
	.summary = "Explains commands in words");

ROW(COMMAND_GETKEYS,
	.name = "command|getkeys", .parent = HS_CMD_ID_COMMAND, .place = HS_PLACE_CORE,
	.arity = -4,
	.flags = HS_CMD_LOADING | HS_CMD_STALE, .categories = "@slow @connection",
	.group = "server", .since = "2.8.13", .complexity = "O(N), N the number of arguments",
	.arguments = "command-name [arg ...]",
	.summary = "Finds the keys in a request");

ROW(COMMAND_GETKEYSANDFLAGS,
	.name = "command|getkeysandflags", .parent = HS_CMD_ID_COMMAND, .place = HS_PLACE_CORE,
	.arity = -4,
	.flags = HS_CMD_LOADING | HS_CMD_STALE, .categories = "@slow @connection",
	.group = "server", .since = "7.0.0", .complexity = "O(N), N the number of arguments",
	.arguments = "command-name [arg ...]",
	.summary = "Finds the keys in a request, and what it does to each");

ROW(COMMAND_HELP,
	.name = "command|help", .parent = HS_CMD_ID_COMMAND, .place = HS_PLACE_CORE,
	.arity = 2,
	.flags = HS_CMD_LOADING | HS_CMD_STALE, .categories = "@slow @connection",
	.group = "server", .since = "5.0.0", .complexity = "O(1)",
	.summary = "Shows this text");

ROW(COMMAND_INFO,
	.name = "command|info", .parent = HS_CMD_ID_COMMAND, .place = HS_PLACE_CORE,
	.arity = -2,
	.flags = HS_CMD_LOADING | HS_CMD_STALE, .categories = "@slow @connection",
	.tips = "nondeterministic_output_order",
	.group = "server", .since = "2.8.13", .complexity = "O(N), N the number of names",
	.arguments = "[command-name ...]",
	.summary = "Describes commands for programs");

ROW(COMMAND_LIST,
	.name = "command|list", .parent = HS_CMD_ID_COMMAND, .place = HS_PLACE_CORE,
	.arity = -2,
	.flags = HS_CMD_LOADING | HS_CMD_STALE, .categories = "@slow @connection",
	.tips = "nondeterministic_output_order",
	.group = "server", .since = "7.0.0", .complexity = "O(N), N the number of commands",
	.arguments = "[FILTERBY (MODULE module-name | ACLCAT category | PATTERN pattern)]",
	.summary = "Lists the names of commands");

ROW(CONFIG,
	.name = "config", .place = HS_PLACE_PARENT,
	.arity = -2,
	.categories = "@slow",
	.group = "server", .since = "2.0.0", .complexity = "That of the subcommand",
	.summary = "Reads and changes the configuration");

ROW(CONFIG_GET,
	.name = "config|get", .parent = HS_CMD_ID_CONFIG, .place = HS_PLACE_HOST,
	.arity = -3,
	.flags = HS_CMD_ADMIN | HS_CMD_NOSCRIPT | HS_CMD_LOADING | HS_CMD_STALE,
	.categories = "@admin @slow @dangerous",
	.group = "server", .since = "2.0.0", .complexity = "O(N), N the number of patterns",
	.arguments = "parameter ...",
	.summary = "Answers the parameters that match, with their values");

ROW(CONFIG_HELP,
	.name = "config|help", .parent = HS_CMD_ID_CONFIG, .place = HS_PLACE_CORE,
	.arity = 2,
	.flags = HS_CMD_LOADING | HS_CMD_STALE, .categories = "@slow",
	.group = "server", .since = "5.0.0", .complexity = "O(1)",
	.summary = "Shows this text");

ROW(CONFIG_RESETSTAT,
	.name = "config|resetstat", .parent = HS_CMD_ID_CONFIG, .place = HS_PLACE_HOST,
	.arity = 2,
	.flags = HS_CMD_ADMIN | HS_CMD_NOSCRIPT | HS_CMD_LOADING | HS_CMD_STALE,
	.categories = "@admin @slow @dangerous",
	.group = "server", .since = "2.0.0", .complexity = "O(1)",
	.summary = "Sets the counters that INFO shows to zero");

ROW(CONFIG_REWRITE,
	.name = "config|rewrite", .parent = HS_CMD_ID_CONFIG, .place = HS_PLACE_HOST,
	.arity = 2,
	.flags = HS_CMD_ADMIN | HS_CMD_NOSCRIPT | HS_CMD_LOADING | HS_CMD_STALE,
	.categories = "@admin @slow @dangerous",
	.group = "server", .since = "2.8.0", .complexity = "O(1)",
	.summary = "Writes the values in force to the configuration file");

ROW(CONFIG_SET,
	.name = "config|set", .parent = HS_CMD_ID_CONFIG, .place = HS_PLACE_HOST,
	.arity = -4,
	.flags = HS_CMD_ADMIN | HS_CMD_NOSCRIPT | HS_CMD_LOADING | HS_CMD_STALE,
	.categories = "@admin @slow @dangerous",
	.tips = "request_policy:all_nodes response_policy:all_succeeded",
	.group = "server", .since = "2.0.0", .complexity = "O(N), N the number of parameters",
	.arguments = "(parameter value) ...",
	.summary = "Changes parameters, all or none");

ROW(DBSIZE,
	.name = "dbsize", .place = HS_PLACE_ALL, .merge = HS_MERGE_SUM,
	.arity = 1,
	.flags = HS_CMD_READONLY | HS_CMD_FAST, .categories = "@keyspace @read @fast",
	.tips = "request_policy:all_shards response_policy:agg_sum",
	.group = "server", .since = "1.0.0", .complexity = "O(1)",
	.summary = "Counts the keys");

ROW(DEBUG,
	.name = "debug", .place = HS_PLACE_PARENT,
	.arity = -2,
	.flags = HS_CMD_ADMIN | HS_CMD_NOSCRIPT | HS_CMD_LOADING | HS_CMD_STALE,
	.categories = "@admin @slow @dangerous",
	.group = "server", .since = "1.0.0", .complexity = "That of the subcommand",
	.summary = "Helps with tests");

ROW(DEBUG_HELP,
	.name = "debug|help", .parent = HS_CMD_ID_DEBUG, .place = HS_PLACE_CORE,
	.arity = 2,
	.flags = HS_CMD_ADMIN | HS_CMD_NOSCRIPT | HS_CMD_LOADING | HS_CMD_STALE,
	.categories = "@admin @slow @dangerous",
	.group = "server", .since = "1.0.0", .complexity = "O(1)",
	.summary = "Shows this text");

ROW(DEBUG_SLEEP,
	.name = "debug|sleep", .parent = HS_CMD_ID_DEBUG, .place = HS_PLACE_CORE,
	.arity = 3,
	.flags = HS_CMD_ADMIN | HS_CMD_NOSCRIPT | HS_CMD_LOADING | HS_CMD_STALE,
	.categories = "@admin @slow @dangerous",
	.group = "server", .since = "1.0.0", .complexity = "O(1)",
	.arguments = "duration",
	.summary = "Answers after some seconds");

ROW(FLUSHALL,
	.name = "flushall", .place = HS_PLACE_ALL, .merge = HS_MERGE_OK,
	.arity = -1,
	.flags = HS_CMD_WRITE, .categories = "@keyspace @write @slow @dangerous",
	.tips = "request_policy:all_shards response_policy:all_succeeded",
	.group = "server", .since = "1.0.0", .complexity = "O(N), N the number of keys",
	.arguments = "[ASYNC | SYNC]",
	.summary = "Removes all keys");

ROW(FLUSHDB,
	.name = "flushdb", .place = HS_PLACE_ALL, .merge = HS_MERGE_OK,
	.arity = -1,
	.flags = HS_CMD_WRITE, .categories = "@keyspace @write @slow @dangerous",
	.tips = "request_policy:all_shards response_policy:all_succeeded",
	.group = "server", .since = "1.0.0", .complexity = "O(N), N the number of keys",
	.arguments = "[ASYNC | SYNC]",
	.summary = "Removes all keys of the database");

ROW(FUNCTION,
	.name = "function", .place = HS_PLACE_PARENT,
	.arity = -2,
	.categories = "@slow",
	.group = "scripting", .since = "7.0.0", .complexity = "That of the subcommand",
	.summary = "Looks after functions; there are none to keep");

ROW(FUNCTION_FLUSH,
	.name = "function|flush", .parent = HS_CMD_ID_FUNCTION, .place = HS_PLACE_CORE,
	.arity = -2,
	.flags = HS_CMD_WRITE | HS_CMD_NOSCRIPT | HS_CMD_STAND_IN,
	.categories = "@write @slow @scripting",
	.tips = "request_policy:all_shards response_policy:all_succeeded",
	.group = "scripting", .since = "7.0.0", .complexity = "O(1)",
	.arguments = "[ASYNC | SYNC]",
	.summary = "Removes all functions");

ROW(INFO,
	.name = "info", .place = HS_PLACE_HOST,
	.arity = -1,
	.flags = HS_CMD_LOADING | HS_CMD_STALE, .categories = "@slow @dangerous",
	.tips = "nondeterministic_output request_policy:all_shards response_policy:special",
	.group = "server", .since = "1.0.0", .complexity = "O(1)",
	.arguments = "[section ...]",
	.summary = "Tells how the server is doing, in sections");

ROW(LATENCY,
	.name = "latency", .place = HS_PLACE_PARENT,
	.arity = -2,
	.categories = "@slow",
	.group = "server", .since = "2.8.13", .complexity = "That of the subcommand",
	.summary = "Looks at what took long");

ROW(LATENCY_HELP,
	.name = "latency|help", .parent = HS_CMD_ID_LATENCY, .place = HS_PLACE_CORE,
	.arity = 2,
	.flags = HS_CMD_LOADING | HS_CMD_STALE, .categories = "@slow",
	.group = "server", .since = "2.8.13", .complexity = "O(1)",
	.summary = "Shows this text");

ROW(LATENCY_LATEST,
	.name = "latency|latest", .parent = HS_CMD_ID_LATENCY, .place = HS_PLACE_CORE,
	.arity = 2,
	.flags = HS_CMD_ADMIN | HS_CMD_NOSCRIPT | HS_CMD_LOADING | HS_CMD_STALE,
	.categories = "@admin @slow @dangerous",
	.tips = "nondeterministic_output request_policy:all_nodes response_policy:special",
	.group = "server", .since = "2.8.13", .complexity = "O(1)",
	.summary = "Answers the last delay of every kind");

ROW(LATENCY_RESET,
	.name = "latency|reset", .parent = HS_CMD_ID_LATENCY, .place = HS_PLACE_CORE,
	.arity = -2,
	.flags = HS_CMD_ADMIN | HS_CMD_NOSCRIPT | HS_CMD_LOADING | HS_CMD_STALE,
	.categories = "@admin @slow @dangerous",
	.tips = "request_policy:all_nodes response_policy:all_succeeded",
	.group = "server", .since = "2.8.13", .complexity = "O(1)",
	.arguments = "[event ...]",
	.summary = "Forgets the delays of some kinds, or of all");

ROW(SHUTDOWN,
	.name = "shutdown", .place = HS_PLACE_HOST,
	.arity = -1,
	.flags = HS_CMD_ADMIN | HS_CMD_NOSCRIPT | HS_CMD_LOADING | HS_CMD_STALE |
	         HS_CMD_NO_MULTI | HS_CMD_ALLOW_BUSY,
	.categories = "@admin @slow @dangerous",
	.group = "server", .since = "1.0.0", .complexity = "O(1)",
	.arguments = "[NOSAVE | SAVE] [NOW] [FORCE] [ABORT]",
	.summary = "Stops the server");

ROW(SLOWLOG,
	.name = "slowlog", .place = HS_PLACE_PARENT,
	.arity = -2,
	.categories = "@slow",
	.group = "server", .since = "2.2.12", .complexity = "That of the subcommand",
	.summary = "Looks at the requests that took long");

ROW(SLOWLOG_GET,
	.name = "slowlog|get", .parent = HS_CMD_ID_SLOWLOG, .place = HS_PLACE_WORKERS,
	.arity = -2,
	.flags = HS_CMD_ADMIN | HS_CMD_LOADING | HS_CMD_STALE,
	.categories = "@admin @slow @dangerous",
	.tips = "request_policy:all_nodes nondeterministic_output",
	.group = "server", .since = "2.2.12", .complexity = "O(N), N the number of entries",
	.arguments = "[count]",
	.summary = "Answers the newest slow requests");

ROW(SLOWLOG_HELP,
	.name = "slowlog|help", .parent = HS_CMD_ID_SLOWLOG, .place = HS_PLACE_CORE,
	.arity = 2,
	.flags = HS_CMD_LOADING | HS_CMD_STALE, .categories = "@slow",
	.group = "server", .since = "6.2.0", .complexity = "O(1)",
	.summary = "Shows this text");

ROW(SLOWLOG_LEN,
	.name = "slowlog|len", .parent = HS_CMD_ID_SLOWLOG, .place = HS_PLACE_WORKERS,
	.arity = 2,
	.flags = HS_CMD_ADMIN | HS_CMD_LOADING | HS_CMD_STALE,
	.categories = "@admin @slow @dangerous",
	.tips = "request_policy:all_nodes response_policy:agg_sum nondeterministic_output",
	.group = "server", .since = "2.2.12", .complexity = "O(1)",
	.summary = "Counts the slow requests kept");

ROW(SLOWLOG_RESET,
	.name = "slowlog|reset", .parent = HS_CMD_ID_SLOWLOG, .place = HS_PLACE_WORKERS,
	.arity = 2,
	.flags = HS_CMD_ADMIN | HS_CMD_LOADING | HS_CMD_STALE,
	.categories = "@admin @slow @dangerous",
	.tips = "request_policy:all_nodes response_policy:all_succeeded",
	.group = "server", .since = "2.2.12", .complexity = "O(N), N the number of entries",
	.summary = "Forgets the slow requests");

ROW(TIME,
	.name = "time", .place = HS_PLACE_CORE,
	.arity = 1,
	.flags = HS_CMD_LOADING | HS_CMD_STALE | HS_CMD_FAST, .categories = "@fast",
	.tips = "nondeterministic_output",
	.group = "server", .since = "2.6.0", .complexity = "O(1)",
	.summary = "Answers the time of day");
