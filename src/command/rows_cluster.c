/* Rows of the command table: the cluster that clients see, which is heatsink alone. See
 * command/rows.h. */
#include "command/rows.h"

/* A row: where it runs, what it takes, its flags, its words. */
/* clang-format off */

ROW(ASKING,
	.name = "asking", .place = HS_PLACE_CORE,
	.arity = 1,
	.flags = HS_CMD_FAST, .categories = "@fast @connection",
	.group = "cluster", .since = "3.0.0", .complexity = "O(1)",
	.summary = "Taken for granted: heatsink never sends clients elsewhere");

ROW(CLUSTER,
	.name = "cluster", .place = HS_PLACE_PARENT,
	.arity = -2,
	.categories = "@slow",
	.group = "cluster", .since = "3.0.0", .complexity = "That of the subcommand",
	.summary = "Describes heatsink as a cluster of one node");

ROW(CLUSTER_ADDSLOTS,
	.name = "cluster|addslots", .parent = HS_CMD_ID_CLUSTER, .place = HS_PLACE_CORE,
	.arity = -3,
	.flags = HS_CMD_ADMIN | HS_CMD_STALE | HS_CMD_NO_ASYNC_LOADING,
	.categories = "@admin @slow @dangerous",
	.group = "cluster", .since = "3.0.0", .complexity = "O(1)",
	.arguments = "slot ...",
	.summary = "Refused: every slot is heatsink's already");

ROW(CLUSTER_ADDSLOTSRANGE,
	.name = "cluster|addslotsrange", .parent = HS_CMD_ID_CLUSTER, .place = HS_PLACE_CORE,
	.arity = -4,
	.flags = HS_CMD_ADMIN | HS_CMD_STALE | HS_CMD_NO_ASYNC_LOADING,
	.categories = "@admin @slow @dangerous",
	.group = "cluster", .since = "7.0.0", .complexity = "O(1)",
	.arguments = "(start-slot end-slot) ...",
	.summary = "Refused: every slot is heatsink's already");

ROW(CLUSTER_BUMPEPOCH,
	.name = "cluster|bumpepoch", .parent = HS_CMD_ID_CLUSTER, .place = HS_PLACE_CORE,
	.arity = 2,
	.flags = HS_CMD_ADMIN | HS_CMD_STALE | HS_CMD_NO_ASYNC_LOADING,
	.categories = "@admin @slow @dangerous",
	.tips = "nondeterministic_output",
	.group = "cluster", .since = "3.0.0", .complexity = "O(1)",
	.summary = "Refused: the configuration never changes");

ROW(CLUSTER_COUNT_FAILURE_REPORTS,
	.name = "cluster|count-failure-reports", .parent = HS_CMD_ID_CLUSTER,
	.place = HS_PLACE_CORE,
	.arity = 3,
	.flags = HS_CMD_ADMIN | HS_CMD_STALE, .categories = "@admin @slow @dangerous",
	.tips = "nondeterministic_output",
	.group = "cluster", .since = "3.0.0", .complexity = "O(1)",
	.arguments = "node-id",
	.summary = "Counts who takes a node for failed: nobody");

ROW(CLUSTER_COUNTKEYSINSLOT,
	.name = "cluster|countkeysinslot", .parent = HS_CMD_ID_CLUSTER, .place = HS_PLACE_SLOT,
	.arity = 3,
	.flags = HS_CMD_STALE, .categories = "@slow",
	.group = "cluster", .since = "3.0.0", .complexity = "O(N), N the number of keys in the slot",
	.arguments = "slot",
	.summary = "Counts the keys of a slot");

ROW(CLUSTER_DELSLOTS,
	.name = "cluster|delslots", .parent = HS_CMD_ID_CLUSTER, .place = HS_PLACE_CORE,
	.arity = -3,
	.flags = HS_CMD_ADMIN | HS_CMD_STALE | HS_CMD_NO_ASYNC_LOADING,
	.categories = "@admin @slow @dangerous",
	.group = "cluster", .since = "3.0.0", .complexity = "O(1)",
	.arguments = "slot ...",
	.summary = "Refused: heatsink keeps every slot");

ROW(CLUSTER_DELSLOTSRANGE,
	.name = "cluster|delslotsrange", .parent = HS_CMD_ID_CLUSTER, .place = HS_PLACE_CORE,
	.arity = -4,
	.flags = HS_CMD_ADMIN | HS_CMD_STALE | HS_CMD_NO_ASYNC_LOADING,
	.categories = "@admin @slow @dangerous",
	.group = "cluster", .since = "7.0.0", .complexity = "O(1)",
	.arguments = "(start-slot end-slot) ...",
	.summary = "Refused: heatsink keeps every slot");

ROW(CLUSTER_FAILOVER,
	.name = "cluster|failover", .parent = HS_CMD_ID_CLUSTER, .place = HS_PLACE_CORE,
	.arity = -2,
	.flags = HS_CMD_ADMIN | HS_CMD_STALE | HS_CMD_NO_ASYNC_LOADING,
	.categories = "@admin @slow @dangerous",
	.group = "cluster", .since = "3.0.0", .complexity = "O(1)",
	.arguments = "[FORCE | TAKEOVER]",
	.summary = "Refused: there is no replica to take over");

ROW(CLUSTER_FLUSHSLOTS,
	.name = "cluster|flushslots", .parent = HS_CMD_ID_CLUSTER, .place = HS_PLACE_CORE,
	.arity = 2,
	.flags = HS_CMD_ADMIN | HS_CMD_STALE | HS_CMD_NO_ASYNC_LOADING,
	.categories = "@admin @slow @dangerous",
	.group = "cluster", .since = "3.0.0", .complexity = "O(1)",
	.summary = "Refused: heatsink keeps every slot");

ROW(CLUSTER_FORGET,
	.name = "cluster|forget", .parent = HS_CMD_ID_CLUSTER, .place = HS_PLACE_CORE,
	.arity = 3,
	.flags = HS_CMD_ADMIN | HS_CMD_STALE | HS_CMD_NO_ASYNC_LOADING,
	.categories = "@admin @slow @dangerous",
	.group = "cluster", .since = "3.0.0", .complexity = "O(1)",
	.arguments = "node-id",
	.summary = "Refused: there is one node");

ROW(CLUSTER_GETKEYSINSLOT,
	.name = "cluster|getkeysinslot", .parent = HS_CMD_ID_CLUSTER, .place = HS_PLACE_SLOT,
	.arity = 4,
	.flags = HS_CMD_STALE, .categories = "@slow",
	.tips = "nondeterministic_output",
	.group = "cluster", .since = "3.0.0", .complexity = "O(N), N the number of keys answered",
	.arguments = "slot count",
	.summary = "Answers keys of a slot, some or all");

ROW(CLUSTER_HELP,
	.name = "cluster|help", .parent = HS_CMD_ID_CLUSTER, .place = HS_PLACE_CORE,
	.arity = 2,
	.flags = HS_CMD_LOADING | HS_CMD_STALE, .categories = "@slow",
	.group = "cluster", .since = "5.0.0", .complexity = "O(1)",
	.summary = "Shows this text");

ROW(CLUSTER_INFO,
	.name = "cluster|info", .parent = HS_CMD_ID_CLUSTER, .place = HS_PLACE_CORE,
	.arity = 2,
	.flags = HS_CMD_STALE, .categories = "@slow",
	.tips = "nondeterministic_output",
	.group = "cluster", .since = "3.0.0", .complexity = "O(1)",
	.summary = "Says whether the cluster is well, as a node of it would");

ROW(CLUSTER_KEYSLOT,
	.name = "cluster|keyslot", .parent = HS_CMD_ID_CLUSTER, .place = HS_PLACE_CORE,
	.arity = 3,
	.flags = HS_CMD_STALE, .categories = "@slow",
	.group = "cluster", .since = "3.0.0", .complexity = "O(N), N the length of the key",
	.arguments = "name",
	.summary = "Answers the slot a key belongs to");

ROW(CLUSTER_LINKS,
	.name = "cluster|links", .parent = HS_CMD_ID_CLUSTER, .place = HS_PLACE_CORE,
	.arity = 2,
	.flags = HS_CMD_STALE, .categories = "@slow",
	.tips = "nondeterministic_output",
	.group = "cluster", .since = "7.0.0", .complexity = "O(1)",
	.summary = "Lists the connections to other nodes: none");

ROW(CLUSTER_MEET,
	.name = "cluster|meet", .parent = HS_CMD_ID_CLUSTER, .place = HS_PLACE_CORE,
	.arity = -4,
	.flags = HS_CMD_ADMIN | HS_CMD_STALE | HS_CMD_NO_ASYNC_LOADING,
	.categories = "@admin @slow @dangerous",
	.group = "cluster", .since = "3.0.0", .complexity = "O(1)",
	.arguments = "ip port [cluster-bus-port]",
	.summary = "Refused: heatsink joins no cluster of clients");

ROW(CLUSTER_MYID,
	.name = "cluster|myid", .parent = HS_CMD_ID_CLUSTER, .place = HS_PLACE_CORE,
	.arity = 2,
	.flags = HS_CMD_STALE, .categories = "@slow",
	.group = "cluster", .since = "3.0.0", .complexity = "O(1)",
	.summary = "Answers the number of this node, which changes with every start");

ROW(CLUSTER_MYSHARDID,
	.name = "cluster|myshardid", .parent = HS_CMD_ID_CLUSTER, .place = HS_PLACE_CORE,
	.arity = 2,
	.flags = HS_CMD_STALE, .categories = "@slow",
	.group = "cluster", .since = "7.2.0", .complexity = "O(1)",
	.summary = "Answers the number of the one shard: the node's");

ROW(CLUSTER_NODES,
	.name = "cluster|nodes", .parent = HS_CMD_ID_CLUSTER, .place = HS_PLACE_CORE,
	.arity = 2,
	.flags = HS_CMD_STALE, .categories = "@slow",
	.tips = "nondeterministic_output",
	.group = "cluster", .since = "3.0.0", .complexity = "O(1)",
	.summary = "Describes the nodes, a line each: heatsink is the one that owns all slots");

ROW(CLUSTER_REPLICAS,
	.name = "cluster|replicas", .parent = HS_CMD_ID_CLUSTER, .place = HS_PLACE_CORE,
	.arity = 3,
	.flags = HS_CMD_ADMIN | HS_CMD_STALE, .categories = "@admin @slow @dangerous",
	.tips = "nondeterministic_output",
	.group = "cluster", .since = "5.0.0", .complexity = "O(1)",
	.arguments = "node-id",
	.summary = "Lists the replicas of a node: none");

ROW(CLUSTER_REPLICATE,
	.name = "cluster|replicate", .parent = HS_CMD_ID_CLUSTER, .place = HS_PLACE_CORE,
	.arity = 3,
	.flags = HS_CMD_ADMIN | HS_CMD_STALE | HS_CMD_NO_ASYNC_LOADING,
	.categories = "@admin @slow @dangerous",
	.group = "cluster", .since = "3.0.0", .complexity = "O(1)",
	.arguments = "node-id",
	.summary = "Refused: heatsink is nobody's replica");

ROW(CLUSTER_RESET,
	.name = "cluster|reset", .parent = HS_CMD_ID_CLUSTER, .place = HS_PLACE_CORE,
	.arity = -2,
	.flags = HS_CMD_ADMIN | HS_CMD_NOSCRIPT | HS_CMD_STALE,
	.categories = "@admin @slow @dangerous",
	.group = "cluster", .since = "3.0.0", .complexity = "O(1)",
	.arguments = "[HARD | SOFT]",
	.summary = "Refused: heatsink stays what it is");

ROW(CLUSTER_SAVECONFIG,
	.name = "cluster|saveconfig", .parent = HS_CMD_ID_CLUSTER, .place = HS_PLACE_CORE,
	.arity = 2,
	.flags = HS_CMD_ADMIN | HS_CMD_STALE | HS_CMD_NO_ASYNC_LOADING,
	.categories = "@admin @slow @dangerous",
	.group = "cluster", .since = "3.0.0", .complexity = "O(1)",
	.summary = "Refused: there is no configuration to save");

ROW(CLUSTER_SET_CONFIG_EPOCH,
	.name = "cluster|set-config-epoch", .parent = HS_CMD_ID_CLUSTER, .place = HS_PLACE_CORE,
	.arity = 3,
	.flags = HS_CMD_ADMIN | HS_CMD_STALE | HS_CMD_NO_ASYNC_LOADING,
	.categories = "@admin @slow @dangerous",
	.group = "cluster", .since = "3.0.0", .complexity = "O(1)",
	.arguments = "config-epoch",
	.summary = "Refused: the configuration never changes");

ROW(CLUSTER_SETSLOT,
	.name = "cluster|setslot", .parent = HS_CMD_ID_CLUSTER, .place = HS_PLACE_CORE,
	.arity = -4,
	.flags = HS_CMD_ADMIN | HS_CMD_STALE | HS_CMD_NO_ASYNC_LOADING,
	.categories = "@admin @slow @dangerous",
	.group = "cluster", .since = "3.0.0", .complexity = "O(1)",
	.arguments = "slot (IMPORTING node-id | MIGRATING node-id | NODE node-id | STABLE)",
	.summary = "Refused: heatsink keeps every slot");

ROW(CLUSTER_SHARDS,
	.name = "cluster|shards", .parent = HS_CMD_ID_CLUSTER, .place = HS_PLACE_CORE,
	.arity = 2,
	.flags = HS_CMD_STALE, .categories = "@slow",
	.tips = "nondeterministic_output",
	.group = "cluster", .since = "7.0.0", .complexity = "O(1)",
	.summary = "Describes the shards and their nodes: one, with all slots");

ROW(CLUSTER_SLAVES,
	.name = "cluster|slaves", .parent = HS_CMD_ID_CLUSTER, .place = HS_PLACE_CORE,
	.arity = 3,
	.flags = HS_CMD_ADMIN | HS_CMD_STALE, .categories = "@admin @slow @dangerous",
	.tips = "nondeterministic_output",
	.group = "cluster", .since = "3.0.0", .complexity = "O(1)",
	.deprecated = "5.0.0", .replaced_by = "`CLUSTER REPLICAS`",
	.arguments = "node-id",
	.summary = "Lists the replicas of a node: none");

ROW(CLUSTER_SLOTS,
	.name = "cluster|slots", .parent = HS_CMD_ID_CLUSTER, .place = HS_PLACE_CORE,
	.arity = 2,
	.flags = HS_CMD_STALE, .categories = "@slow",
	.tips = "nondeterministic_output",
	.group = "cluster", .since = "3.0.0", .complexity = "O(1)",
	.deprecated = "7.0.0", .replaced_by = "`CLUSTER SHARDS`",
	.summary = "Says which node has which slots: heatsink has all");

ROW(READONLY,
	.name = "readonly", .place = HS_PLACE_CORE,
	.arity = 1,
	.flags = HS_CMD_LOADING | HS_CMD_STALE | HS_CMD_FAST, .categories = "@fast @connection",
	.group = "cluster", .since = "3.0.0", .complexity = "O(1)",
	.summary = "Accepted, without effect: which reads may come from a replica is said by rules (replica-reads)");

ROW(READWRITE,
	.name = "readwrite", .place = HS_PLACE_CORE,
	.arity = 1,
	.flags = HS_CMD_LOADING | HS_CMD_STALE | HS_CMD_FAST, .categories = "@fast @connection",
	.group = "cluster", .since = "3.0.0", .complexity = "O(1)",
	.summary = "Takes READONLY back");
