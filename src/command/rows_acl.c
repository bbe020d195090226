/* Rows of the command table: users. See command/rows.h. */
#include "command/rows.h"

#define ADMIN HS_CMD_ADMIN | HS_CMD_NOSCRIPT | HS_CMD_LOADING | HS_CMD_STALE
#define PLAIN HS_CMD_NOSCRIPT | HS_CMD_LOADING | HS_CMD_STALE

/* A row: where it runs, what it takes, its flags, its words. */
/* clang-format off */

ROW(ACL,
	.name = "acl", .place = HS_PLACE_PARENT,
	.arity = -2,
	.categories = "@slow",
	.group = "server", .since = "6.0.0", .complexity = "That of the subcommand",
	.summary = "Looks after users and what they may do");

ROW(ACL_CAT,
	.name = "acl|cat", .parent = HS_CMD_ID_ACL, .place = HS_PLACE_CORE,
	.arity = -2,
	.flags = PLAIN, .categories = "@slow",
	.group = "server", .since = "6.0.0", .complexity = "O(N), N the number of commands",
	.arguments = "[categoryname]",
	.summary = "Answers the categories of commands, or the commands of one");

ROW(ACL_DELUSER,
	.name = "acl|deluser", .parent = HS_CMD_ID_ACL, .place = HS_PLACE_HOST,
	.arity = -3,
	.flags = ADMIN, .categories = "@admin @slow @dangerous",
	.group = "server", .since = "6.0.0", .complexity = "O(N), N the number of users",
	.arguments = "username ...",
	.summary = "Removes users and closes their connections");

ROW(ACL_DRYRUN,
	.name = "acl|dryrun", .parent = HS_CMD_ID_ACL, .place = HS_PLACE_CORE,
	.arity = -4,
	.flags = ADMIN, .categories = "@admin @slow @dangerous",
	.group = "server", .since = "7.0.0", .complexity = "O(N), N the number of arguments",
	.arguments = "username command [arg ...]",
	.summary = "Says whether a user may run a command, without running it");

ROW(ACL_GENPASS,
	.name = "acl|genpass", .parent = HS_CMD_ID_ACL, .place = HS_PLACE_HOST,
	.arity = -2,
	.flags = PLAIN, .categories = "@slow",
	.group = "server", .since = "6.0.0", .complexity = "O(1)",
	.arguments = "[bits]",
	.summary = "Makes up a password");

ROW(ACL_GETUSER,
	.name = "acl|getuser", .parent = HS_CMD_ID_ACL, .place = HS_PLACE_CORE,
	.arity = 3,
	.flags = ADMIN, .categories = "@admin @slow @dangerous",
	.group = "server", .since = "6.0.0", .complexity = "O(N), N the number of rules",
	.arguments = "username",
	.summary = "Answers what a user may do");

ROW(ACL_HELP,
	.name = "acl|help", .parent = HS_CMD_ID_ACL, .place = HS_PLACE_CORE,
	.arity = 2,
	.flags = HS_CMD_LOADING | HS_CMD_STALE, .categories = "@slow",
	.group = "server", .since = "6.0.0", .complexity = "O(1)",
	.summary = "Shows this text");

ROW(ACL_LIST,
	.name = "acl|list", .parent = HS_CMD_ID_ACL, .place = HS_PLACE_CORE,
	.arity = 2,
	.flags = ADMIN, .categories = "@admin @slow @dangerous",
	.group = "server", .since = "6.0.0", .complexity = "O(N), N the number of users",
	.summary = "Answers all users as lines of the configuration file");

ROW(ACL_LOAD,
	.name = "acl|load", .parent = HS_CMD_ID_ACL, .place = HS_PLACE_CORE,
	.arity = 2,
	.flags = ADMIN, .categories = "@admin @slow @dangerous",
	.group = "server", .since = "6.0.0", .complexity = "O(1)",
	.summary = "Refuses: there is no file of users alone, SIGHUP reads the configuration");

ROW(ACL_LOG,
	.name = "acl|log", .parent = HS_CMD_ID_ACL, .place = HS_PLACE_WORKERS,
	.arity = -2,
	.flags = ADMIN, .categories = "@admin @slow @dangerous",
	.group = "server", .since = "6.0.0", .complexity = "O(N), N the number of entries",
	.arguments = "[count | RESET]",
	.summary = "Answers who was refused lately, or forgets it");

ROW(ACL_SAVE,
	.name = "acl|save", .parent = HS_CMD_ID_ACL, .place = HS_PLACE_CORE,
	.arity = 2,
	.flags = ADMIN, .categories = "@admin @slow @dangerous",
	.group = "server", .since = "6.0.0", .complexity = "O(1)",
	.summary = "Refuses: there is no file of users alone, CONFIG REWRITE keeps them");

ROW(ACL_SETUSER,
	.name = "acl|setuser", .parent = HS_CMD_ID_ACL, .place = HS_PLACE_HOST,
	.arity = -3,
	.flags = ADMIN, .categories = "@admin @slow @dangerous",
	.group = "server", .since = "6.0.0", .complexity = "O(N), N the number of rules",
	.arguments = "username [rule ...]",
	.summary = "Makes a user, or changes what it may do");

ROW(ACL_USERS,
	.name = "acl|users", .parent = HS_CMD_ID_ACL, .place = HS_PLACE_CORE,
	.arity = 2,
	.flags = ADMIN, .categories = "@admin @slow @dangerous",
	.group = "server", .since = "6.0.0", .complexity = "O(N), N the number of users",
	.summary = "Answers the names of all users");

ROW(ACL_WHOAMI,
	.name = "acl|whoami", .parent = HS_CMD_ID_ACL, .place = HS_PLACE_CORE,
	.arity = 2,
	.flags = PLAIN, .categories = "@slow",
	.group = "server", .since = "6.0.0", .complexity = "O(1)",
	.summary = "Answers the name of this connection's user");
