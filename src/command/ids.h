/* The identifiers of the command rows, in table order. Included by command/command.h only.
 * X(identifier): the row itself is in command/rows_*.c; one that is missing does not link. */
#ifndef HS_COMMAND_IDS_H
#define HS_COMMAND_IDS_H

/* clang-format off */
#define HS_COMMAND_IDS(X)                                                                          \
	/* strings */                                                                              \
	X(APPEND) X(DECR) X(DECRBY) X(GET) X(GETDEL) X(GETEX) X(GETRANGE) X(GETSET) X(INCR)        \
	X(INCRBY) X(INCRBYFLOAT) X(LCS) X(MGET) X(MSET) X(MSETNX) X(PSETEX) X(SET) X(SETEX)        \
	X(SETNX) X(SETRANGE) X(STRLEN) X(SUBSTR)                                                   \
	/* bits */                                                                                 \
	X(BITCOUNT) X(BITPOS) X(GETBIT) X(SETBIT)                                                  \
	/* keys */                                                                                 \
	X(COPY) X(DEL) X(EXISTS) X(EXPIRE) X(EXPIREAT) X(EXPIRETIME) X(KEYS) X(OBJECT)             \
	X(OBJECT_ENCODING) X(OBJECT_FREQ) X(OBJECT_HELP) X(OBJECT_IDLETIME) X(OBJECT_REFCOUNT)     \
	X(PERSIST) X(PEXPIRE) X(PEXPIREAT) X(PEXPIRETIME) X(PTTL) X(RANDOMKEY) X(RENAME)           \
	X(RENAMENX) X(SCAN) X(TOUCH) X(TTL) X(TYPE) X(UNLINK)                                      \
	/* transactions */                                                                         \
	X(DISCARD) X(EXEC) X(MULTI) X(UNWATCH) X(WATCH)                                            \
	/* publish and subscribe */                                                                \
	X(PSUBSCRIBE) X(PUBLISH) X(PUBSUB) X(PUBSUB_CHANNELS) X(PUBSUB_HELP) X(PUBSUB_NUMPAT)      \
	X(PUBSUB_NUMSUB) X(PUBSUB_SHARDCHANNELS) X(PUBSUB_SHARDNUMSUB) X(PUNSUBSCRIBE)             \
	X(SPUBLISH) X(SSUBSCRIBE) X(SUBSCRIBE) X(SUNSUBSCRIBE) X(UNSUBSCRIBE)                      \
	/* connection */                                                                           \
	X(AUTH) X(CLIENT) X(CLIENT_CACHING) X(CLIENT_GETNAME) X(CLIENT_GETREDIR) X(CLIENT_HELP)    \
	X(CLIENT_ID) X(CLIENT_INFO) X(CLIENT_KILL) X(CLIENT_LIST) X(CLIENT_NO_EVICT)               \
	X(CLIENT_NO_TOUCH) X(CLIENT_PAUSE) X(CLIENT_REPLY) X(CLIENT_SETINFO) X(CLIENT_SETNAME)     \
	X(CLIENT_TRACKING) X(CLIENT_TRACKINGINFO) X(CLIENT_UNBLOCK) X(CLIENT_UNPAUSE)              \
	X(ECHO) X(HELLO) X(PING) X(QUIT) X(RESET) X(SELECT)                                        \
	/* cluster */                                                                              \
	X(ASKING) X(CLUSTER) X(CLUSTER_ADDSLOTS) X(CLUSTER_ADDSLOTSRANGE)                          \
	X(CLUSTER_BUMPEPOCH) X(CLUSTER_COUNT_FAILURE_REPORTS) X(CLUSTER_COUNTKEYSINSLOT)           \
	X(CLUSTER_DELSLOTS) X(CLUSTER_DELSLOTSRANGE) X(CLUSTER_FAILOVER)                           \
	X(CLUSTER_FLUSHSLOTS) X(CLUSTER_FORGET) X(CLUSTER_GETKEYSINSLOT) X(CLUSTER_HELP)           \
	X(CLUSTER_INFO) X(CLUSTER_KEYSLOT) X(CLUSTER_LINKS) X(CLUSTER_MEET)                        \
	X(CLUSTER_MYID) X(CLUSTER_MYSHARDID) X(CLUSTER_NODES) X(CLUSTER_REPLICAS)                  \
	X(CLUSTER_REPLICATE) X(CLUSTER_RESET) X(CLUSTER_SAVECONFIG)                                \
	X(CLUSTER_SET_CONFIG_EPOCH) X(CLUSTER_SETSLOT) X(CLUSTER_SHARDS) X(CLUSTER_SLAVES)         \
	X(CLUSTER_SLOTS) X(READONLY) X(READWRITE)                                                  \
	/* users */                                                                                \
	X(ACL) X(ACL_CAT) X(ACL_DELUSER) X(ACL_DRYRUN) X(ACL_GENPASS) X(ACL_GETUSER) X(ACL_HELP)   \
	X(ACL_LIST) X(ACL_LOAD) X(ACL_LOG) X(ACL_SAVE) X(ACL_SETUSER) X(ACL_USERS) X(ACL_WHOAMI)   \
	/* server */                                                                               \
	X(COMMAND) X(COMMAND_COUNT) X(COMMAND_DOCS) X(COMMAND_GETKEYS)                             \
	X(COMMAND_GETKEYSANDFLAGS) X(COMMAND_HELP) X(COMMAND_INFO) X(COMMAND_LIST) X(CONFIG) X(CONFIG_GET) X(CONFIG_HELP)                     \
	X(CONFIG_RESETSTAT) X(CONFIG_REWRITE) X(CONFIG_SET) X(DBSIZE) X(DEBUG) X(DEBUG_HELP)       \
	X(DEBUG_SLEEP) X(FLUSHALL) X(FLUSHDB) X(FUNCTION) X(FUNCTION_FLUSH) X(HEAT) X(HEAT_HELP)   \
	X(HEAT_HISTORY) X(HEAT_KEY) X(HEAT_MITIGATE) X(HEAT_PARTITIONS) X(HEAT_PLAN) X(HEAT_PREFIXES) \
	X(HEAT_RESET) X(HEAT_RULE) X(HEAT_SLOTS) X(HEAT_TOP) X(HOTKEYS) X(HOTKEYS_GET) X(HOTKEYS_HELP) X(HOTKEYS_RESET)       \
	X(HOTKEYS_START) X(HOTKEYS_STOP) X(INFO) X(LATENCY) X(LATENCY_HELP) X(LATENCY_LATEST)      \
	X(LATENCY_RESET) X(SHUTDOWN) X(SLOWLOG) X(SLOWLOG_GET) X(SLOWLOG_HELP) X(SLOWLOG_LEN)      \
	X(SLOWLOG_RESET) X(TIME)

enum hs_command_id {
	HS_CMD_ID_NONE,
#define X(name) HS_CMD_ID_##name,
	HS_COMMAND_IDS(X)
#undef X
	HS_CMD_IDS, /* how many, with NONE */
	/* Behind them come the commands that are learned from a server (command/learned.h). What is
	 * counted by identifier has this many cells. */
	HS_CMD_IDS_ALL = HS_CMD_IDS + HS_LEARNED_MAX,
};
/* clang-format on */

#endif
