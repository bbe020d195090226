/* Private to the topology monitor (monitor.h): its state, and what its files call in each other.
 *
 *     monitor.c           entry points, due times
 *     monitor_node.c      one node: its connection, and its queries, one in flight at a time
 *     monitor_poll.c      polls of the topology
 *     monitor_route.c     installing a new topology
 *     monitor_learn.c     the servers' commands
 *     monitor_watch.c     state of the servers: INFO, CLUSTER INFO, CLUSTER SLOT-STATS
 *     monitor_partition.c publishing the partitions' state
 *     monitor_keys.c      numbers of keys, for a client's INFO
 *     monitor_config.c    servers' options, for a client's CONFIG; monitor_config_answer.c: its replies */
#ifndef HS_ENGINE_REDIS_MONITOR_INTERNAL_H
#define HS_ENGINE_REDIS_MONITOR_INTERNAL_H

#include "base/address.h"
#include "base/prng.h"
#include "engine/redis/monitor.h"
#include "engine/redis/node_info.h"
#include "engine/redis/server_options.h"
#include "engine/redis/slot_stats.h"
#include "engine/redis/topology.h"
#include "wire/walk.h"

enum {
	HS_MONITOR_TICK_US = 100 * 1000,
	HS_MONITOR_WATCH_US = 1000 * 1000,     /* interval of INFO */
	HS_MONITOR_COUNT_EACH = 10,	       /* one COMMAND COUNT in this many rounds of INFO */
	HS_MONITOR_STATS_US = 5000 * 1000,     /* interval of CLUSTER SLOT-STATS, up to 2 MB each */
	HS_MONITOR_REPLY_US_MAX = 2000 * 1000, /* reply timeout: then the node counts as down */
	/* Timeout of a round of INFO keyspace. The timeout is short because a client waits for the round. */
	HS_MONITOR_KEYS_US_MAX = 500 * 1000,
	/* If a node has not answered a poll for this long, the poll asks another one as well. */
	HS_MONITOR_HEDGE_US = 200 * 1000,
	/* after this time a connection that only polls use is closed */
	HS_MONITOR_IDLE_US = 5000 * 1000,
	/* After this number of polls in a row that find only older topologies, the monitor installs one of
	 * these. */
	HS_MONITOR_STALE_POLLS = 3,
	HS_MONITOR_PARTITIONS_MIN = 16, /* least room for partitions */
};
#define HS_MONITOR_REPLY_BYTES_MAX (64 * HS_MIB) /* the reply of the largest Cluster has 10 MB */
#define HS_MONITOR_NEVER UINT64_MAX

/* Queries to a node, the most urgent first. The table of queries in monitor_node.c has a row for each. */
enum hs_monitor_query {
	HS_QUERY_EPOCH, /* CLUSTER INFO, for the epoch, in a poll */
	HS_QUERY_SLOTS,
	HS_QUERY_COMMAND,
	HS_QUERY_COMMAND_COUNT,
	HS_QUERY_CLUSTER_STATE, /* CLUSTER INFO, for cluster_state */
	HS_QUERY_INFO,
	HS_QUERY_KEYS,		 /* INFO keyspace, for a client's INFO */
	HS_QUERY_CONFIG_SET,	 /* CONFIG SET of a client */
	HS_QUERY_CONFIG_GET,	 /* CONFIG GET of a client */
	HS_QUERY_CONFIG_CHECK,	 /* CONFIG GET, to compare with `remembered` */
	HS_QUERY_CONFIG_RESTORE, /* CONFIG SET of remembered values */
	HS_QUERY_SLOT_STATS,	 /* CLUSTER SLOT-STATS */
	HS_QUERIES,
	HS_QUERY_NONE = HS_QUERIES,
};

/* The state of a node in the running round of CONFIG. */
enum hs_config_state { HS_CONFIG_IDLE, HS_CONFIG_PENDING, HS_CONFIG_DONE, HS_CONFIG_FAILED };

struct hs_monitor_node {
	struct hs_monitor *monitor;
	struct hs_monitor_node *next;
	struct hs_redis_address address;
	char text[HS_ADDRESS_TEXT_MAX];
	bool seed;   /* its address is in the URL: the node is never dropped */
	bool listed; /* the topology has the node */
	bool master; /* the master of `partition` */
	uint16_t partition;

	struct hs_upstream upstream;
	unsigned queries_due;	     /* bits of enum hs_monitor_query */
	enum hs_monitor_query query; /* the query in flight */
	uint64_t query_us, used_us;

	uint64_t epoch; /* the cluster's current epoch at this node; 0: unknown */
	bool polled;	/* asked in the running poll, and has not answered yet */
	/* Hash of the node's last CLUSTER SLOTS, and the topology_number that this reply confirmed. */
	uint64_t slots_hash, slots_number;
	bool down;   /* does not answer; this was logged */
	bool was_up; /* has been connected once */
	/* its connection was lost once: it may have returned as a newer version */
	bool was_lost;
	bool cluster_down;		     /* the node reports cluster_state:fail */
	char why[HS_PARTITION_REASON_BYTES]; /* the reason of `down` */
	bool has_info;			     /* `info`, `info_us` and `cpu` are set */
	struct hs_node_info info;
	uint64_t info_us;
	double cpu;
	bool recounting; /* the running round waits for its INFO keyspace */
	/* it missed a round: later rounds leave it out until it answers a query */
	bool recount_late;
	/* CLUSTER SLOT-STATS was refused: unknown command, or no permission */
	bool stats_refused;
	uint64_t stats_at_us;	     /* no CLUSTER SLOT-STATS before this time */
	struct hs_slot_sample stats; /* the last sample of its slots' counters */
	struct hs_slot_sums sums;    /* the sums over `stats` */

	enum hs_config_state config_state;
	char config_why[HS_PARTITION_REASON_BYTES]; /* the reason of HS_CONFIG_FAILED */
	struct hs_buf config[HS_SERVER_OPTIONS];    /* the values at the node; no data: unknown */
	/* the node has the remembered values, or refused them on this connection */
	bool config_in_sync;
	bool config_get_takes_one; /* CONFIG GET takes one name (before Redis 7) */
};

/* One poll of the topology: nodes are asked one by one until an answer is good. */
struct hs_monitor_poll {
	bool running;
	struct hs_monitor_node **order;
	size_t count, next;
	uint32_t underway;
	uint64_t query_us;	   /* when the last node was asked */
	struct hs_topology *stale; /* the newest topology found, if older than the installed one */
	uint64_t stale_epoch;
	size_t failed;
	/* the first failure of a node in this poll */
	char why[2 * HS_REDIS_WHY_BYTES + HS_ADDRESS_TEXT_MAX];
};

/* Rounds of CONFIG (monitor_config.c). */
struct hs_monitor_config {
	struct hs_ops waiting;
	struct hs_ops round; /* ops that the running round answers; empty: none runs */
	uint32_t left;	     /* nodes that have not answered the running round */
	/* Values set through heatsink; no data: not set. */
	struct hs_buf remembered[HS_SERVER_OPTIONS];
	/* The node asked for the form in which it writes the values just set (100mb: 104857600); NULL: none. */
	struct hs_monitor_node *writer;
	uint32_t written; /* the options that were just set, a bit each */
};

/* Rounds of INFO keyspace (monitor_keys.c). */
struct hs_monitor_recount {
	uint64_t wanted;  /* number of the last call of hs_monitor_recount */
	uint64_t answers; /* number of the last call that the running or last round answers */
	bool running;
	bool paused;   /* no new round before the next tick */
	uint32_t left; /* masters that have not answered the running round */
	uint64_t began_us;
};

struct hs_monitor {
	struct hs_monitor_options options;
	const struct hs_monitor_calls *calls;
	void *context;
	struct hs_prng prng;
	uint64_t now_us;
	uint32_t depth; /* depth of nested calls from the driver */
	/* a round may be complete or due: handled at the end of the outermost call */
	bool step_due;
	uint64_t tick_at_us;

	struct hs_monitor_node *nodes;
	size_t nodes_count;
	struct hs_topology *topology; /* NULL: unknown */
	uint64_t topology_number;     /* increases with each topology */
	uint64_t epoch;		      /* highest epoch of an installed topology */
	/* polls in a row that found no node with an epoch as high as `epoch` */
	uint32_t stale_polls;
	struct hs_monitor_poll poll;
	uint64_t poll_at_us;   /* when the next poll begins; HS_MONITOR_NEVER: a poll is running */
	bool topology_suspect; /* the topology became suspect after the last poll began */
	/* poll_backoff: between polls of a suspect topology; grows while polls find no change. unanswered_backoff:
	 * between polls while no node answers. */
	struct hs_backoff poll_backoff, unanswered_backoff;
	uint64_t watch_at_us;		 /* when the next round of INFO begins */
	uint32_t watches;		 /* rounds of INFO so far */
	struct hs_slot_samples *samples; /* NULL: no server has reported its slots */

	struct hs_monitor_config config;
	struct hs_monitor_recount recount;

	struct hs_learned *learned; /* the last one sent to the host, which owns it */
	uint64_t learned_hash;
	int64_t learned_count;		 /* entries in the reply to COMMAND */
	struct hs_monitor_node *learner; /* the node asked for COMMAND; NULL: none */
	/* These states were logged. Each is logged once, until it ends. */
	bool learn_refused, contact_logged, foreign_logged, waiting, not_single_logged;

	char unavailable_reason[HS_REDIS_WHY_BYTES]; /* as last reported to the host */
	/* The partitions' states as last reported to the host. */
	bool published[HS_PARTITIONS_MAX];
	uint8_t states[HS_PARTITIONS_MAX]; /* enum hs_partition_state */
};

static inline bool hs_monitor_is_single(const struct hs_monitor *monitor)
{
	return monitor->options.url->kind == HS_REDIS_SINGLE;
}

/* monitor.c */
/* Called at the begin and the end of each call of the driver. Calls may nest. Rounds begin and end in the
 * outermost call only, because an inner call may come while the outer one goes through the list of nodes. */
void hs_monitor_enter(struct hs_monitor *monitor, uint64_t now_us);
void hs_monitor_leave(struct hs_monitor *monitor);
__attribute__((format(printf, 2, 3))) void hs_monitor_set_unavailable_reason(
	struct hs_monitor *monitor, const char *format, ...);

/* monitor_node.c */
/* Returns the node at this address; creates it if it is new. */
struct hs_monitor_node *hs_monitor_node(struct hs_monitor *monitor,
					const struct hs_redis_address *address);
void hs_monitor_node_request(struct hs_monitor_node *node, enum hs_monitor_query query);
void hs_monitor_node_tick(struct hs_monitor_node *node); /* may free the node */
void hs_monitor_node_destroy(struct hs_monitor_node *node);
bool hs_monitor_is_error(struct hs_bytes reply, struct hs_bytes *text);

/* monitor_poll.c */
void hs_monitor_poll_start(struct hs_monitor *monitor);
void hs_monitor_poll_soon(struct hs_monitor *monitor); /* the topology is suspect: polls soon */
void hs_monitor_poll_tick(struct hs_monitor *monitor);
void hs_monitor_poll_epoch(struct hs_monitor_node *node, struct hs_bytes reply);
void hs_monitor_poll_slots(struct hs_monitor_node *node, struct hs_bytes reply);
/* The node did not answer. If the running poll asked it, the poll asks the next node. */
void hs_monitor_poll_failed(struct hs_monitor_node *node, const char *why);
void hs_monitor_poll_deinit(struct hs_monitor *monitor);

/* monitor_route.c */
void hs_monitor_install(struct hs_monitor *monitor,
			struct hs_topology *topology); /* takes over `topology` */
/* Appends the differences between two topologies, in one line, for the log. */
void hs_monitor_describe_change(const struct hs_topology *before, const struct hs_topology *after,
				struct hs_buf *text);

/* monitor_learn.c */
void hs_monitor_learn_from(struct hs_monitor_node *node);
void hs_monitor_learn_commands(struct hs_monitor_node *node, struct hs_bytes reply);
void hs_monitor_learn_count(struct hs_monitor_node *node, struct hs_bytes reply);
/* A hash that is equal for two replies to COMMAND with the same commands in different orders. */
uint64_t hs_monitor_command_hash(struct hs_bytes reply);

/* monitor_watch.c */
void hs_monitor_watch_tick(struct hs_monitor *monitor);
void hs_monitor_watch_all(struct hs_monitor *monitor); /* starts a round of INFO */
void hs_monitor_watch_info(struct hs_monitor_node *node, struct hs_bytes reply);
/* Takes the reply to CLUSTER INFO. */
void hs_monitor_watch_state(struct hs_monitor_node *node, struct hs_bytes reply);
void hs_monitor_watch_stats(struct hs_monitor_node *node, struct hs_bytes reply);
void hs_monitor_watch_up(struct hs_monitor_node *node);
void hs_monitor_watch_down(struct hs_monitor_node *node, const char *why);
void hs_monitor_end_startup(struct hs_monitor *monitor);

/* monitor_partition.c */
void hs_monitor_publish(struct hs_monitor *monitor, uint16_t partition);
void hs_monitor_publish_all(struct hs_monitor *monitor);

/* monitor_keys.c */
void hs_monitor_keys_step(struct hs_monitor *monitor);
void hs_monitor_keys_tick(struct hs_monitor *monitor);
void hs_monitor_keys_answered(struct hs_monitor_node *node, struct hs_bytes reply);
void hs_monitor_keys_forget(struct hs_monitor_node *node); /* its connection is closed */

/* monitor_config.c */
void hs_monitor_config_step(struct hs_monitor *monitor);
void hs_monitor_config_tick(struct hs_monitor *monitor);
void hs_monitor_config_deinit(struct hs_monitor *monitor);	     /* completes all ops */
bool hs_monitor_config_has_values(const struct hs_monitor *monitor); /* any value is remembered */
void hs_monitor_config_compose_set(const struct hs_monitor_node *node, struct hs_buf *out);
void hs_monitor_config_compose_get(const struct hs_monitor_node *node, struct hs_buf *out);
void hs_monitor_config_compose_restore(const struct hs_monitor_node *node, struct hs_buf *out);
void hs_monitor_config_set(struct hs_monitor_node *node, struct hs_bytes reply);
void hs_monitor_config_get(struct hs_monitor_node *node, struct hs_bytes reply);
void hs_monitor_config_check(struct hs_monitor_node *node, struct hs_bytes reply);
void hs_monitor_config_restored(struct hs_monitor_node *node, struct hs_bytes reply);
void hs_monitor_config_up(struct hs_monitor_node *node);
void hs_monitor_config_failed(struct hs_monitor_node *node, const char *why);
void hs_monitor_config_forget(struct hs_monitor_node *node); /* its connection is closed */
static inline bool hs_monitor_config_is_set(const struct hs_op *op)
{
	return op->command->id == HS_CMD_ID_CONFIG_SET;
}
void hs_monitor_config_answer(struct hs_monitor *monitor, struct hs_op *op);

#endif
