/* Private to the scout: its state, and what its files ask of each other. All of it belongs to the
 * scout's thread, but for what stands under the mutex.
 *
 *     scout.c        the thread, its clock, and the calls from others
 *     scout_node.c   a node: its connection, one request at a time
 *     scout_look.c   looking for the topology
 *     scout_route.c  what follows from a new one
 *     scout_watch.c  commands and telemetry
 *     scout_state.c  whether partitions are served
 *     scout_keys.c   how many keys there are now, for INFO
 *     scout_stats.c  telemetry of slots, where a server has it
 *     scout_tell.c   what an operator is told of a topology
 *     scout_config.c options of the servers: CONFIG GET, CONFIG SET */
#ifndef HS_ENGINE_REDIS_SCOUT_INTERNAL_H
#define HS_ENGINE_REDIS_SCOUT_INTERNAL_H

#include "base/address.h"
#include "base/list.h"
#include "base/mpsc.h"
#include "base/prng.h"
#include "engine/redis/herald.h"
#include "engine/redis/node_info.h"
#include "engine/redis/scout.h"
#include "engine/redis/server_options.h"
#include "engine/redis/slot_stats.h"
#include "engine/redis/walk.h"

#include <uv.h>

enum {
	HS_SCOUT_TICK_MS = 100,
	HS_SCOUT_WATCH_MS = 1000,     /* between two INFOs */
	HS_SCOUT_COUNT_EACH = 10,     /* of them, commands are counted too */
	HS_SCOUT_STATS_MS = 5000,     /* between two CLUSTER SLOT-STATS: up to 2 MB each */
	HS_SCOUT_REPLY_MS_MAX = 2000, /* a node that takes longer is as good as away */
	HS_SCOUT_KEYS_MS_MAX = 500,   /* INFO of a client waits so long for the numbers of keys */
	HS_SCOUT_HEDGE_MS = 200,      /* another node is asked beside one that takes so long */
	HS_SCOUT_IDLE_MS = 5000,   /* a connection that is only there for looking is kept so long */
	HS_SCOUT_GAP_MS_MIN = 50,  /* between two looks that somebody wants */
	HS_SCOUT_GAP_MS_MAX = 400, /* the same, while nothing changes */
	HS_SCOUT_RETRY_MS_MIN = 100, /* while nobody answers */
	HS_SCOUT_RETRY_MS_MAX = 1000,
	HS_SCOUT_BEHIND_LOOKS = 3,    /* before what is older than known is believed */
	HS_SCOUT_SHARDS_ROOM = 16,    /* partitions there can be, at least */
	HS_SCOUT_SHARDS_UNKNOWN = 64, /* when nobody has answered at the start */
};
#define HS_SCOUT_REPLY_BYTES_MAX (64 * HS_MIB) /* CLUSTER SLOTS of the largest cluster: 10 MB */

/* What a node is asked, the most urgent first. */
enum hs_scout_ask {
	HS_ASK_EPOCH,	/* CLUSTER INFO, for how much it knows */
	HS_ASK_SLOTS,	/* CLUSTER SLOTS */
	HS_ASK_COMMAND, /* COMMAND */
	HS_ASK_COUNT,	/* COMMAND COUNT */
	HS_ASK_STATE,	/* CLUSTER INFO, for how it is */
	HS_ASK_INFO,	/* INFO */
	HS_ASK_KEYS,	/* INFO keyspace, for a client's INFO */
	HS_ASK_SET,	/* CONFIG SET, for a client */
	HS_ASK_GET,	/* CONFIG GET, for a client */
	HS_ASK_CHECK,	/* CONFIG GET, for what is remembered of CONFIG SET */
	HS_ASK_KEEP,	/* CONFIG SET of what is remembered and not there */
	HS_ASK_STATS,	/* CLUSTER SLOT-STATS */
	HS_ASKS,
	HS_ASK_NOTHING = HS_ASKS,
};

/* A node in a round of CONFIG. */
enum hs_config_state { HS_CONFIG_IDLE, HS_CONFIG_ASKED, HS_CONFIG_DONE, HS_CONFIG_FAILED };

enum hs_scout_state { HS_SCOUT_DOWN, HS_SCOUT_OPENING, HS_SCOUT_UP };

struct hs_scout_node {
	struct hs_scout *scout;
	struct hs_link link;
	struct hs_redis_address address;
	char text[HS_ADDRESS_TEXT_MAX];
	bool seed;   /* of the URL: never forgotten */
	bool listed; /* in the topology */
	bool master; /* there, of this partition */
	uint16_t partition;

	enum hs_scout_state state;
	struct hs_conn *conn;
	unsigned wants;		 /* bits of enum hs_scout_ask */
	enum hs_scout_ask asked; /* under way */
	uint64_t asked_ms, used_ms;
	struct hs_buf out, in;
	uint64_t sent;
	struct hs_answer_scan scan;

	uint64_t epoch; /* the cluster's, as it says; 0: not said */
	bool looked_at; /* asked for the topology in this look */
	bool away;	/* it was told that it does not answer */
	bool met;	/* has answered ever */
	bool lost;	/* was met and has gone since: it may come back as something newer */
	bool refuses;	/* it says that the cluster is down */
	char why[HS_PARTITION_TROUBLE_BYTES]; /* of `away` */
	bool informed;			      /* the rest is there */
	struct hs_node_info info;
	uint64_t info_us;
	double cpu;
	bool counting;		   /* the round of INFO keyspace waits for it */
	bool count_late;	   /* it missed a round; no round waits for it until it answers */
	bool stats_refused;	   /* it has no CLUSTER SLOT-STATS, or not for this user */
	uint64_t stats_ms;	   /* when it was last asked; 0: not yet */
	struct hs_slot_look stats; /* its last answer */
	struct hs_slot_sums sums;  /* what came of it */

	enum hs_config_state config_state;
	char config_why[HS_PARTITION_TROUBLE_BYTES]; /* of HS_CONFIG_FAILED */
	struct hs_buf config[HS_SERVER_OPTIONS];     /* as it last told; no data: not told */
	bool config_kept;			     /* it has what is remembered */
	bool config_old;			     /* its CONFIG GET takes one name */
};

/* One look: nodes are asked one by one until an answer is good. */
struct hs_scout_look {
	bool running;
	struct hs_scout_node **order;
	size_t count, next;
	uint32_t underway;
	uint64_t asked_ms;	    /* when the last one was */
	struct hs_topology *behind; /* the best of the answers that are older than what is known */
	uint64_t behind_epoch;
	size_t failed;
	char why[2 * HS_REDIS_WHY_BYTES + HS_ADDRESS_TEXT_MAX]; /* of the first that failed */
};

/* The rounds of CONFIG (scout_config.c). */
struct hs_scout_config {
	struct hs_mpsc asked;  /* ops, from any thread */
	struct hs_op *waiting; /* oldest first */
	struct hs_op *round;   /* those that the round under way answers; NULL: none is */
	uint32_t left;	       /* nodes that have not answered in it */
	/* Values set through heatsink; no data: not set. */
	struct hs_buf remembered[HS_SERVER_OPTIONS];
	struct hs_scout_node *writer; /* is asked how it writes what was set; NULL: none is */
	uint32_t written;	      /* which options those are, a bit each */
};

/* The rounds of INFO keyspace (scout_keys.c). */
struct hs_scout_recount {
	_Atomic uint64_t wanted; /* the number that the last request was given */
	uint64_t answers; /* the round under way, or the last one, answers requests up to this */
	bool running;
	bool resting;	   /* no round begins before the next tick */
	uint32_t left;	   /* nodes that have not answered in it */
	uint64_t began_ms; /* when it began */
};

struct hs_scout {
	struct hs_scout_options options;
	struct hs_scout_host host;
	uv_thread_t thread;
	uv_loop_t loop;
	uv_async_t wake;
	uv_timer_t tick;
	uv_timer_t look_timer;
	char *buffer; /* HS_READ_BYTES, for all connections */
	struct hs_prng prng;
	struct hs_herald *herald; /* news */

	struct hs_link nodes;
	size_t nodes_count;
	struct hs_topology *topology; /* NULL: not known; of one server never */
	uint64_t epoch;		      /* the highest that the topology was taken from */
	uint32_t behind_looks;	      /* in a row in which nobody knew as much */
	struct hs_scout_look look;
	uint64_t look_ended_ms;
	uint64_t gap_ms, retry_ms;
	uint64_t watch_ms;	     /* when INFO was last asked */
	uint32_t watches;	     /* how often */
	struct hs_slot_looks *looks; /* NULL until a server tells of its slots */

	struct hs_scout_config config;
	struct hs_scout_recount recount;

	struct hs_learned *learned; /* the host's; the last one */
	uint64_t learned_hash;
	int64_t learned_count;	       /* commands in the reply it was made from */
	struct hs_scout_node *learner; /* who is asked; NULL: nobody */
	bool learn_refused;	       /* said */
	bool contact;		       /* said */
	bool foreign;		       /* said */
	bool waiting;		       /* said that nobody answers */
	bool not_single;	       /* said */

	/* From any thread. */
	_Atomic bool stopping, surprised;
	struct hs_mpsc asked; /* ops */

	uv_mutex_t mutex; /* for the rest */
	uv_cond_t settle;
	bool settled;	   /* creation need not wait any more */
	uint16_t capacity; /* 0: not fixed yet */
	const struct hs_routes *routes;
	char trouble[HS_REDIS_WHY_BYTES];
	struct hs_engine_partition partitions[HS_PARTITIONS_MAX];
	struct hs_engine_servers servers;
};

static inline bool hs_scout_is_single(const struct hs_scout *scout)
{
	return scout->options.url.kind == HS_REDIS_SINGLE;
}

static inline uint64_t hs_scout_now_ms(const struct hs_scout *scout)
{
	return uv_now(&scout->loop);
}

/* scout.c */
void hs_scout_settle(struct hs_scout *scout); /* creation may go on */
__attribute__((format(printf, 2, 3))) void hs_scout_set_trouble(struct hs_scout *scout,
								const char *format, ...);

/* scout_node.c */
struct hs_scout_node *hs_scout_node(struct hs_scout *scout, const struct hs_redis_address *address);

/* All nodes, one after the other; NULL at the end. */
static inline struct hs_scout_node *hs_scout_at(struct hs_scout *scout, struct hs_link *link)
{
	return link == &scout->nodes ? NULL : hs_list_entry(link, struct hs_scout_node, link);
}

static inline struct hs_scout_node *hs_scout_first(struct hs_scout *scout)
{
	return hs_scout_at(scout, scout->nodes.next);
}

static inline struct hs_scout_node *hs_scout_next(struct hs_scout *scout,
						  const struct hs_scout_node *node)
{
	return hs_scout_at(scout, node->link.next);
}
void hs_scout_node_want(struct hs_scout_node *node, enum hs_scout_ask ask);
void hs_scout_node_hang_up(
	struct hs_scout_node *node);		     /* the next one who wants something connects */
void hs_scout_node_tick(struct hs_scout_node *node); /* may be freed by it */
void hs_scout_node_destroy(struct hs_scout_node **node);

/* scout_look.c */
void hs_scout_look_start(struct hs_scout *scout);
void hs_scout_look_soon(struct hs_scout *scout); /* somebody was surprised */
void hs_scout_look_tick(struct hs_scout *scout);
void hs_scout_look_epoch(struct hs_scout_node *node, struct hs_bytes reply);
void hs_scout_look_slots(struct hs_scout_node *node, struct hs_bytes reply);
/* The node that was asked for the topology does not tell. */
void hs_scout_look_failed(struct hs_scout_node *node, const char *why);
void hs_scout_look_deinit(struct hs_scout *scout);

/* scout_route.c */
void hs_scout_route_single(struct hs_scout *scout);
void hs_scout_install(struct hs_scout *scout, struct hs_topology *topology); /* takes it over */

/* scout_watch.c */
void hs_scout_watch_tick(struct hs_scout *scout);
void hs_scout_watch_all(struct hs_scout *scout); /* now */
void hs_scout_watch_info(struct hs_scout_node *node, struct hs_bytes reply);
void hs_scout_watch_command(struct hs_scout_node *node, struct hs_bytes reply);
void hs_scout_watch_count(struct hs_scout_node *node, struct hs_bytes reply);
void hs_scout_watch_up(struct hs_scout_node *node);
void hs_scout_watch_down(struct hs_scout_node *node, const char *why);
void hs_scout_watch_publish(struct hs_scout *scout); /* partitions, for other threads */

void hs_scout_watch_numbers(struct hs_scout *scout, uint16_t partition); /* of one, the same */

/* scout_state.c */
void hs_scout_state_told(struct hs_scout_node *node, struct hs_bytes reply); /* CLUSTER INFO */
/* A master of the partition: the worst of them counts. */
void hs_scout_state_add(struct hs_engine_partition *sum, const struct hs_scout_node *node);
void hs_scout_state_slots(struct hs_scout *scout); /* how many cannot be served, for CLUSTER INFO */

/* scout_keys.c */
/* When a client asks, or all nodes have answered. */
void hs_scout_keys_step(struct hs_scout *scout);
void hs_scout_keys_tick(struct hs_scout *scout);
void hs_scout_keys_told(struct hs_scout_node *node, struct hs_bytes reply);
void hs_scout_keys_forget(struct hs_scout_node *node); /* its connection is closed */

/* scout_stats.c */
void hs_scout_stats_tick(struct hs_scout *scout);
void hs_scout_stats_told(struct hs_scout_node *node, struct hs_bytes reply);
void hs_scout_stats_forget(struct hs_scout_node *node); /* it is away, or no master any more */

/* scout_config.c */
void hs_scout_config_step(struct hs_scout *scout); /* when somebody asks, or all have answered */
void hs_scout_config_tick(struct hs_scout *scout);
void hs_scout_config_deinit(struct hs_scout *scout);	/* every op is done first */
bool hs_scout_config_any(const struct hs_scout *scout); /* something is remembered */
void hs_scout_config_request(const struct hs_scout_node *node, enum hs_scout_ask ask,
			     struct hs_buf *out);
void hs_scout_config_told(struct hs_scout_node *node, enum hs_scout_ask ask, struct hs_bytes reply);
void hs_scout_config_up(struct hs_scout_node *node);
void hs_scout_config_failed(struct hs_scout_node *node, const char *why);
void hs_scout_config_forget(struct hs_scout_node *node); /* its connection is closed */
static inline bool hs_scout_config_is_set(const struct hs_op *op)
{
	return op->command->id == HS_CMD_ID_CONFIG_SET;
}
void hs_scout_config_answer(struct hs_scout *scout, struct hs_op *op); /* scout_config_answer.c */

/* scout_tell.c: pure */
/* What is different, in one line. */
void hs_scout_tell_change(const struct hs_topology *before, const struct hs_topology *after,
			  struct hs_buf *text);
/* A number that two replies to COMMAND have in common when they say the same, in whichever order. */
uint64_t hs_scout_command_hash(struct hs_bytes reply);

#endif
