/* Private to the topology monitor: its state, and what its files ask of each other.
 *
 *     monitor.c           calls of the driver, and what is due when
 *     monitor_node.c      a node: its connection, and the table of questions, asked one at a time
 *     monitor_poll.c      looking for the topology
 *     monitor_route.c     what follows from a new topology
 *     monitor_learn.c     which commands the servers have
 *     monitor_watch.c     how the servers are
 *     monitor_partition.c what is published of partitions
 *     monitor_keys.c      how many keys there are now, for INFO of clients
 *     monitor_config.c    options of the servers, for CONFIG of clients; monitor_config_answer.c the replies */
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
	HS_MONITOR_WATCH_US = 1000 * 1000,     /* between two INFOs */
	HS_MONITOR_COUNT_EACH = 10,	       /* of them, commands are counted too */
	HS_MONITOR_STATS_US = 5000 * 1000,     /* between two CLUSTER SLOT-STATS: up to 2 MB each */
	HS_MONITOR_REPLY_US_MAX = 2000 * 1000, /* a node that takes longer counts as down */
	HS_MONITOR_KEYS_US_MAX =
		500 * 1000,		  /* INFO of a client waits so long for numbers of keys */
	HS_MONITOR_HEDGE_US = 200 * 1000, /* another node is asked beside one that takes so long */
	HS_MONITOR_IDLE_US = 5000 * 1000, /* a connection for looks alone is kept so long */
	HS_MONITOR_STALE_POLLS =
		3, /* so many looks find only older topologies: then one is taken */
	HS_MONITOR_PARTITIONS_MIN = 16, /* partitions there can be, at least */
};
#define HS_MONITOR_REPLY_BYTES_MAX (64 * HS_MIB) /* CLUSTER SLOTS of the largest cluster: 10 MB */
#define HS_MONITOR_NEVER UINT64_MAX

/* What a node is asked, the most urgent first (monitor_node.c has the table). */
enum hs_monitor_query {
	HS_QUERY_EPOCH,		 /* CLUSTER INFO, for how much it knows */
	HS_QUERY_SLOTS,		 /* CLUSTER SLOTS */
	HS_QUERY_COMMAND,	 /* COMMAND */
	HS_QUERY_COMMAND_COUNT,	 /* COMMAND COUNT */
	HS_QUERY_CLUSTER_STATE,	 /* CLUSTER INFO, for how it is */
	HS_QUERY_INFO,		 /* INFO */
	HS_QUERY_KEYS,		 /* INFO keyspace, for a client's INFO */
	HS_QUERY_CONFIG_SET,	 /* CONFIG SET, for a client */
	HS_QUERY_CONFIG_GET,	 /* CONFIG GET, for a client */
	HS_QUERY_CONFIG_CHECK,	 /* CONFIG GET, for what is remembered of CONFIG SET */
	HS_QUERY_CONFIG_RESTORE, /* CONFIG SET of what is remembered and not there */
	HS_QUERY_SLOT_STATS,	 /* CLUSTER SLOT-STATS */
	HS_QUERIES,
	HS_QUERY_NONE = HS_QUERIES,
};

/* A node in a round of CONFIG. */
enum hs_config_state { HS_CONFIG_IDLE, HS_CONFIG_PENDING, HS_CONFIG_DONE, HS_CONFIG_FAILED };

struct hs_monitor_node {
	struct hs_monitor *monitor;
	struct hs_monitor_node *next;
	struct hs_redis_address address;
	char text[HS_ADDRESS_TEXT_MAX];
	bool seed;   /* of the URL: never forgotten */
	bool listed; /* in the topology */
	bool master; /* there, of this partition */
	uint16_t partition;

	struct hs_upstream upstream;
	unsigned queries_due;	     /* bits of enum hs_monitor_query */
	enum hs_monitor_query query; /* not answered yet */
	uint64_t query_us, used_us;

	uint64_t epoch; /* the cluster's, as the node says; 0: not said */
	bool polled;	/* asked for the topology in this look */
	/* Of the last CLUSTER SLOTS that was taken for the topology of that number. */
	uint64_t slots_hash, slots_number;
	bool down;	   /* it was logged that it does not answer */
	bool was_up;	   /* has answered ever */
	bool was_lost;	   /* was met and has gone since: it may come back as a newer version */
	bool cluster_down; /* says that the cluster is down */
	char why[HS_PARTITION_REASON_BYTES]; /* of `away` */
	bool has_info;			     /* the next three are there */
	struct hs_node_info info;
	uint64_t info_us;
	double cpu;
	bool recounting;	     /* the round of INFO keyspace waits for it */
	bool recount_late;	     /* it missed a round; no round waits for it until it answers */
	bool stats_refused;	     /* it has no CLUSTER SLOT-STATS, or not for this user */
	uint64_t stats_at_us;	     /* not asked for them before */
	struct hs_slot_sample stats; /* its last answer */
	struct hs_slot_sums sums;    /* what came of it */

	enum hs_config_state config_state;
	char config_why[HS_PARTITION_REASON_BYTES]; /* of HS_CONFIG_FAILED */
	struct hs_buf config[HS_SERVER_OPTIONS];    /* as it last told; no data: not told */
	bool config_in_sync;			    /* it has what is remembered */
	bool config_get_takes_one;		    /* its CONFIG GET takes one name */
};

/* One look: nodes are asked one by one until an answer is good. */
struct hs_monitor_poll {
	bool running;
	struct hs_monitor_node **order;
	size_t count, next;
	uint32_t underway;
	uint64_t query_us;	   /* when the last node was */
	struct hs_topology *stale; /* the best of the answers that are older than what is known */
	uint64_t stale_epoch;
	size_t failed;
	char why[2 * HS_REDIS_WHY_BYTES + HS_ADDRESS_TEXT_MAX]; /* of the first that failed */
};

/* The rounds of CONFIG (monitor_config.c). */
struct hs_monitor_config {
	struct hs_ops waiting;
	struct hs_ops round; /* those that the round under way answers; empty: there is none */
	uint32_t left;	     /* nodes that have not answered in it */
	/* Values set through heatsink; no data: not set. */
	struct hs_buf remembered[HS_SERVER_OPTIONS];
	struct hs_monitor_node *writer; /* is asked how it writes what was set; NULL: nobody */
	uint32_t written;		/* which options those are, a bit each */
};

/* The rounds of INFO keyspace (monitor_keys.c). */
struct hs_monitor_recount {
	uint64_t wanted;  /* the number of the last hs_monitor_recount */
	uint64_t answers; /* the round under way, or the last one, answers calls up to this */
	bool running;
	bool paused;	   /* no round begins before the next tick */
	uint32_t left;	   /* nodes that have not answered in it */
	uint64_t began_us; /* when it began */
};

struct hs_monitor {
	struct hs_monitor_options options;
	const struct hs_monitor_calls *calls;
	void *context;
	struct hs_prng prng;
	uint64_t now_us;
	uint32_t depth; /* of calls from the driver */
	bool step_due;	/* a round may be complete, or wanted */
	uint64_t tick_at_us;

	struct hs_monitor_node *nodes;
	size_t nodes_count;
	struct hs_topology *topology; /* NULL: not known yet */
	uint64_t topology_number;     /* another one with each topology */
	uint64_t epoch;		      /* the highest that the topology was taken from */
	uint32_t stale_polls;	      /* in a row in which no node knew as much */
	struct hs_monitor_poll poll;
	uint64_t poll_at_us;   /* when the next one begins; HS_MONITOR_NEVER while one runs */
	bool topology_suspect; /* since the last look began */
	/* Between two looks after surprises, longer while they find nothing new; while no node answers. */
	struct hs_backoff poll_backoff, unanswered_backoff;
	uint64_t watch_at_us;		 /* when INFO is asked next */
	uint32_t watches;		 /* how often it was */
	struct hs_slot_samples *samples; /* NULL until a server tells of its slots */

	struct hs_monitor_config config;
	struct hs_monitor_recount recount;

	struct hs_learned *learned; /* the host's; the last one */
	uint64_t learned_hash;
	int64_t learned_count;		 /* commands in the reply it was made from */
	struct hs_monitor_node *learner; /* who is asked; NULL: nobody */
	/* What was logged, and is not logged again. */
	bool learn_refused, contact_logged, foreign_logged, waiting, not_single_logged;

	char unavailable_reason[HS_REDIS_WHY_BYTES]; /* as it was told */
	/* Of partitions, as they were told. */
	bool published[HS_PARTITIONS_MAX];
	uint8_t states[HS_PARTITIONS_MAX]; /* enum hs_partition_state */
};

static inline bool hs_monitor_is_single(const struct hs_monitor *monitor)
{
	return monitor->options.url->kind == HS_REDIS_SINGLE;
}

/* monitor.c */
/* Around each call of the driver. A call may come from inside another: rounds end and begin behind the
 * outermost, because the others may be in the middle of the list of nodes. */
void hs_monitor_enter(struct hs_monitor *monitor, uint64_t now_us);
void hs_monitor_leave(struct hs_monitor *monitor);
__attribute__((format(printf, 2, 3))) void hs_monitor_set_failure_reason(struct hs_monitor *monitor,
									 const char *format, ...);

/* monitor_node.c */
/* The node of that address; a new one if there is none. */
struct hs_monitor_node *hs_monitor_node(struct hs_monitor *monitor,
					const struct hs_redis_address *address);
void hs_monitor_node_request(struct hs_monitor_node *node, enum hs_monitor_query query);
void hs_monitor_node_tick(struct hs_monitor_node *node); /* may free it */
void hs_monitor_node_destroy(struct hs_monitor_node *node);
bool hs_monitor_is_error(struct hs_bytes reply, struct hs_bytes *text);

/* monitor_poll.c */
void hs_monitor_poll_start(struct hs_monitor *monitor);
void hs_monitor_poll_soon(struct hs_monitor *monitor); /* after a surprise */
void hs_monitor_poll_tick(struct hs_monitor *monitor);
void hs_monitor_poll_epoch(struct hs_monitor_node *node, struct hs_bytes reply);
void hs_monitor_poll_slots(struct hs_monitor_node *node, struct hs_bytes reply);
/* The node does not tell the topology, if it was asked. */
void hs_monitor_poll_failed(struct hs_monitor_node *node, const char *why);
void hs_monitor_poll_deinit(struct hs_monitor *monitor);

/* monitor_route.c */
void hs_monitor_install(struct hs_monitor *monitor,
			struct hs_topology *topology); /* takes it over */
/* What is different, in one line. */
void hs_monitor_describe_change(const struct hs_topology *before, const struct hs_topology *after,
				struct hs_buf *text);

/* monitor_learn.c */
void hs_monitor_learn_from(struct hs_monitor_node *node);
void hs_monitor_learn_commands(struct hs_monitor_node *node, struct hs_bytes reply);
void hs_monitor_learn_count(struct hs_monitor_node *node, struct hs_bytes reply);
/* A number that two replies to COMMAND have in common when they say the same, in whichever order. */
uint64_t hs_monitor_command_hash(struct hs_bytes reply);

/* monitor_watch.c */
void hs_monitor_watch_tick(struct hs_monitor *monitor);
void hs_monitor_watch_all(struct hs_monitor *monitor); /* now */
void hs_monitor_watch_info(struct hs_monitor_node *node, struct hs_bytes reply);
void hs_monitor_watch_state(struct hs_monitor_node *node, struct hs_bytes reply); /* CLUSTER INFO */
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
void hs_monitor_config_deinit(struct hs_monitor *monitor);	     /* every op is done first */
bool hs_monitor_config_has_values(const struct hs_monitor *monitor); /* something is remembered */
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
