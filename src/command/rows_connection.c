/* Rows of the command table: connections. See command/rows.h. */
#include "command/rows.h"

/* A row: where it runs, what it takes, its flags, its words. */
/* clang-format off */

ROW(AUTH,
	.name = "auth", .place = HS_PLACE_CORE,
	.arity = -2,
	.flags = HS_CMD_NOSCRIPT | HS_CMD_LOADING | HS_CMD_STALE | HS_CMD_FAST | HS_CMD_NO_AUTH |
	         HS_CMD_ALLOW_BUSY,
	.categories = "@fast @connection",
	.group = "connection", .since = "1.0.0", .complexity = "O(1)",
	.arguments = "[username] password",
	.summary = "Says who the client is");

ROW(CLIENT,
	.name = "client", .place = HS_PLACE_PARENT,
	.arity = -2,
	.categories = "@slow",
	.group = "connection", .since = "2.4.0", .complexity = "That of the subcommand",
	.summary = "Looks after connections");

ROW(CLIENT_CACHING,
	.name = "client|caching", .parent = HS_CMD_ID_CLIENT, .place = HS_PLACE_CORE,
	.arity = 3,
	.flags = HS_CMD_NOSCRIPT | HS_CMD_LOADING | HS_CMD_STALE, .categories = "@slow @connection",
	.group = "connection", .since = "6.0.0", .complexity = "O(1)",
	.arguments = "YES | NO",
	.summary = "Says whether the keys of the next command are tracked");

ROW(CLIENT_GETNAME,
	.name = "client|getname", .parent = HS_CMD_ID_CLIENT, .place = HS_PLACE_CORE,
	.arity = 2,
	.flags = HS_CMD_NOSCRIPT | HS_CMD_LOADING | HS_CMD_STALE, .categories = "@slow @connection",
	.group = "connection", .since = "2.6.9", .complexity = "O(1)",
	.summary = "Answers the name of this connection");

ROW(CLIENT_GETREDIR,
	.name = "client|getredir", .parent = HS_CMD_ID_CLIENT, .place = HS_PLACE_CORE,
	.arity = 2,
	.flags = HS_CMD_NOSCRIPT | HS_CMD_LOADING | HS_CMD_STALE, .categories = "@slow @connection",
	.group = "connection", .since = "6.0.0", .complexity = "O(1)",
	.summary = "Answers which connection is told in place of this one");

ROW(CLIENT_HELP,
	.name = "client|help", .parent = HS_CMD_ID_CLIENT, .place = HS_PLACE_CORE,
	.arity = 2,
	.flags = HS_CMD_LOADING | HS_CMD_STALE, .categories = "@slow @connection",
	.group = "connection", .since = "5.0.0", .complexity = "O(1)",
	.summary = "Shows this text");

ROW(CLIENT_ID,
	.name = "client|id", .parent = HS_CMD_ID_CLIENT, .place = HS_PLACE_CORE,
	.arity = 2,
	.flags = HS_CMD_NOSCRIPT | HS_CMD_LOADING | HS_CMD_STALE, .categories = "@slow @connection",
	.group = "connection", .since = "5.0.0", .complexity = "O(1)",
	.summary = "Answers the number of this connection");

ROW(CLIENT_INFO,
	.name = "client|info", .parent = HS_CMD_ID_CLIENT, .place = HS_PLACE_CORE,
	.arity = 2,
	.flags = HS_CMD_NOSCRIPT | HS_CMD_LOADING | HS_CMD_STALE, .categories = "@slow @connection",
	.tips = "nondeterministic_output",
	.group = "connection", .since = "6.2.0", .complexity = "O(1)",
	.summary = "Describes this connection");

ROW(CLIENT_KILL,
	.name = "client|kill", .parent = HS_CMD_ID_CLIENT, .place = HS_PLACE_WORKERS,
	.arity = -3,
	.flags = HS_CMD_ADMIN | HS_CMD_NOSCRIPT | HS_CMD_LOADING | HS_CMD_STALE,
	.categories = "@admin @slow @dangerous @connection",
	.group = "connection", .since = "2.4.0", .complexity = "O(N), N the number of connections",
	.arguments = "ip:port | (ID client-id | TYPE (NORMAL | MASTER | REPLICA | PUBSUB) | "
	             "USER username | ADDR ip:port | LADDR ip:port | SKIPME (YES | NO)) ...",
	.summary = "Closes the connections that fit");

ROW(CLIENT_LIST,
	.name = "client|list", .parent = HS_CMD_ID_CLIENT, .place = HS_PLACE_WORKERS,
	.arity = -2,
	.flags = HS_CMD_ADMIN | HS_CMD_NOSCRIPT | HS_CMD_LOADING | HS_CMD_STALE,
	.categories = "@admin @slow @dangerous @connection",
	.tips = "nondeterministic_output",
	.group = "connection", .since = "2.4.0", .complexity = "O(N), N the number of connections",
	.arguments = "[TYPE (NORMAL | MASTER | REPLICA | PUBSUB)] [ID client-id ...]",
	.summary = "Describes the connections, a line each");

ROW(CLIENT_NO_EVICT,
	.name = "client|no-evict", .parent = HS_CMD_ID_CLIENT, .place = HS_PLACE_CORE,
	.arity = 3,
	.flags = HS_CMD_ADMIN | HS_CMD_NOSCRIPT | HS_CMD_LOADING | HS_CMD_STALE,
	.categories = "@admin @slow @dangerous @connection",
	.group = "connection", .since = "7.0.0", .complexity = "O(1)",
	.arguments = "ON | OFF",
	.summary = "Keeps this connection when others are closed for their memory");

ROW(CLIENT_NO_TOUCH,
	.name = "client|no-touch", .parent = HS_CMD_ID_CLIENT, .place = HS_PLACE_CORE,
	.arity = 3,
	.flags = HS_CMD_NOSCRIPT | HS_CMD_LOADING | HS_CMD_STALE, .categories = "@slow @connection",
	.group = "connection", .since = "7.2.0", .complexity = "O(1)",
	.arguments = "ON | OFF",
	.summary = "Marks this connection as one that only looks; engines are not told");

ROW(CLIENT_PAUSE,
	.name = "client|pause", .parent = HS_CMD_ID_CLIENT, .place = HS_PLACE_WORKERS,
	.arity = -3,
	.flags = HS_CMD_ADMIN | HS_CMD_NOSCRIPT | HS_CMD_LOADING | HS_CMD_STALE,
	.categories = "@admin @slow @dangerous @connection",
	.group = "connection", .since = "2.9.50", .complexity = "O(1)",
	.arguments = "timeout [WRITE | ALL]",
	.summary = "Lets commands wait, those that write or all, for this many milliseconds");

ROW(CLIENT_REPLY,
	.name = "client|reply", .parent = HS_CMD_ID_CLIENT, .place = HS_PLACE_CORE,
	.arity = 3,
	.flags = HS_CMD_NOSCRIPT | HS_CMD_LOADING | HS_CMD_STALE, .categories = "@slow @connection",
	.group = "connection", .since = "3.2.0", .complexity = "O(1)",
	.arguments = "ON | OFF | SKIP",
	.summary = "Says whether this connection wants answers");

ROW(CLIENT_SETINFO,
	.name = "client|setinfo", .parent = HS_CMD_ID_CLIENT, .place = HS_PLACE_CORE,
	.arity = 4,
	.flags = HS_CMD_NOSCRIPT | HS_CMD_LOADING | HS_CMD_STALE, .categories = "@slow @connection",
	.group = "connection", .since = "7.2.0", .complexity = "O(1)",
	.arguments = "LIB-NAME libname | LIB-VER libver",
	.summary = "Tells the client library and its version");

ROW(CLIENT_SETNAME,
	.name = "client|setname", .parent = HS_CMD_ID_CLIENT, .place = HS_PLACE_CORE,
	.arity = 3,
	.flags = HS_CMD_NOSCRIPT | HS_CMD_LOADING | HS_CMD_STALE, .categories = "@slow @connection",
	.group = "connection", .since = "2.6.9", .complexity = "O(1)",
	.arguments = "connection-name",
	.summary = "Names this connection");

ROW(CLIENT_TRACKING,
	.name = "client|tracking", .parent = HS_CMD_ID_CLIENT, .place = HS_PLACE_CORE,
	.arity = -3,
	.flags = HS_CMD_NOSCRIPT | HS_CMD_LOADING | HS_CMD_STALE, .categories = "@slow @connection",
	.group = "connection", .since = "6.0.0", .complexity = "O(1), and with prefixes O(N), N their number",
	.arguments = "(ON | OFF) [REDIRECT client-id] [PREFIX prefix ...] [BCAST] "
	             "[OPTIN] [OPTOUT] [NOLOOP]",
	.summary = "Tells this connection of changes to keys it has read, so that it may keep their values");

ROW(CLIENT_TRACKINGINFO,
	.name = "client|trackinginfo", .parent = HS_CMD_ID_CLIENT, .place = HS_PLACE_CORE,
	.arity = 2,
	.flags = HS_CMD_NOSCRIPT | HS_CMD_LOADING | HS_CMD_STALE, .categories = "@slow @connection",
	.group = "connection", .since = "6.2.0", .complexity = "O(1)",
	.summary = "Describes what this connection tracks");

ROW(CLIENT_UNBLOCK,
	.name = "client|unblock", .parent = HS_CMD_ID_CLIENT, .place = HS_PLACE_WORKERS,
	.arity = -3,
	.flags = HS_CMD_ADMIN | HS_CMD_NOSCRIPT | HS_CMD_LOADING | HS_CMD_STALE,
	.categories = "@admin @slow @dangerous @connection",
	.group = "connection", .since = "5.0.0", .complexity = "O(N), N the number of connections",
	.arguments = "client-id [TIMEOUT | ERROR]",
	.summary = "Ends what another connection waits for");

ROW(CLIENT_UNPAUSE,
	.name = "client|unpause", .parent = HS_CMD_ID_CLIENT, .place = HS_PLACE_WORKERS,
	.arity = 2,
	.flags = HS_CMD_ADMIN | HS_CMD_NOSCRIPT | HS_CMD_LOADING | HS_CMD_STALE,
	.categories = "@admin @slow @dangerous @connection",
	.group = "connection", .since = "6.2.0", .complexity = "O(N), N the number of connections",
	.summary = "Ends CLIENT PAUSE; while it keeps all commands, it keeps this one too");

ROW(ECHO,
	.name = "echo", .place = HS_PLACE_CORE,
	.arity = 2,
	.flags = HS_CMD_LOADING | HS_CMD_STALE | HS_CMD_FAST, .categories = "@fast @connection",
	.group = "connection", .since = "1.0.0", .complexity = "O(1)",
	.arguments = "message",
	.summary = "Answers what it is given");

ROW(HELLO,
	.name = "hello", .place = HS_PLACE_CORE,
	.arity = -1,
	.flags = HS_CMD_NOSCRIPT | HS_CMD_LOADING | HS_CMD_STALE | HS_CMD_FAST | HS_CMD_NO_AUTH |
	         HS_CMD_ALLOW_BUSY,
	.categories = "@fast @connection",
	.group = "connection", .since = "6.0.0", .complexity = "O(1)",
	.arguments = "[protover [AUTH username password] [SETNAME clientname]]",
	.summary = "Greets the server and chooses the protocol version");

ROW(PING,
	.name = "ping", .place = HS_PLACE_CORE,
	.arity = -1,
	.flags = HS_CMD_FAST, .categories = "@fast @connection",
	.tips = "request_policy:all_shards response_policy:all_succeeded",
	.group = "connection", .since = "1.0.0", .complexity = "O(1)",
	.arguments = "[message]",
	.summary = "Asks for a sign of life");

ROW(QUIT,
	.name = "quit", .place = HS_PLACE_CORE,
	.arity = -1,
	.flags = HS_CMD_NOSCRIPT | HS_CMD_LOADING | HS_CMD_STALE | HS_CMD_FAST | HS_CMD_NO_AUTH |
	         HS_CMD_ALLOW_BUSY,
	.categories = "@fast @connection",
	.group = "connection", .since = "1.0.0", .complexity = "O(1)",
	.summary = "Closes this connection");

ROW(RESET,
	.name = "reset", .place = HS_PLACE_CORE,
	.arity = 1,
	.flags = HS_CMD_NOSCRIPT | HS_CMD_LOADING | HS_CMD_STALE | HS_CMD_FAST | HS_CMD_NO_AUTH |
	         HS_CMD_ALLOW_BUSY,
	.categories = "@fast @connection",
	.group = "connection", .since = "6.2.0", .complexity = "O(1)",
	.summary = "Makes this connection as new");

ROW(SELECT,
	.name = "select", .place = HS_PLACE_CORE,
	.arity = 2,
	.flags = HS_CMD_LOADING | HS_CMD_STALE | HS_CMD_FAST, .categories = "@fast @connection",
	.group = "connection", .since = "1.0.0", .complexity = "O(1)",
	.arguments = "index",
	.summary = "Chooses a database; there is only 0");
