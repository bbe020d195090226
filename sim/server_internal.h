/* Internals of the simulated servers: a node, a connection, a view of the Cluster. Only sim/server*.c and
 * sim/cluster*.c include this. One thread.
 *
 *     server.c           connections, cycles: bytes in, bytes out
 *     server_run.c       one command: looked up, checked, queued or called
 *     server_route.c     which node serves it: MOVED, ASK, TRYAGAIN, CLUSTERDOWN
 *     server_data.c      commands on keys, over keyspace/; what follows from a change
 *     server_lists.c     RPUSH, BLPOP
 *     server_multi.c     MULTI, EXEC, WATCH
 *     server_extras.c    module commands, WAIT, blocked connections
 *     server_tracking.c  which clients get which invalidations, and when; server_tracking_command.c: CLIENT TRACKING
 *     server_pubsub.c    channels
 *     server_commands.c  commands on the connection and the server: HELLO, CLIENT …; server_info.c: INFO
 *     server_keys.c      records as they lie in the map: moved, copied, counted
 *     server_stream.c    replication
 *     cluster*.c         nodes together: views, gossip, moves, failovers, faults, the truth. */
#ifndef HS_SIM_SERVER_INTERNAL_H
#define HS_SIM_SERVER_INTERNAL_H

#include "base/limits.h"
#include "base/list.h"
#include "base/prng.h"
#include "command/command.h"
#include "keyspace/changed.h"
#include "keyspace/keyspace.h"
#include "sim/cluster.h"
#include "sim/memkv.h"
#include "wire/reply.h"
#include "wire/request.h"

#define HS_SIM_REDIS_VERSION "7.0.15"

enum { HS_SIM_ID_LEN = 40, HS_SIM_HOST_BYTES = 16, HS_SIM_SLOT_NONE = 0xffff };

/* ---- a connection ---- */

enum hs_sim_conn_flag {
	HS_SIM_CONN_MULTI = 1 << 0,
	HS_SIM_CONN_DIRTY_EXEC = 1 << 1, /* a command was refused when it was queued */
	HS_SIM_CONN_ASKING = 1 << 2,
	HS_SIM_CONN_READONLY = 1 << 3,
	HS_SIM_CONN_WATCHES = 1 << 4,
	HS_SIM_CONN_LOGGED_IN = 1 << 5,
	HS_SIM_CONN_CLOSING = 1 << 6, /* closes after the replies that are in `out` */
	HS_SIM_CONN_BLOCKED =
		1 << 7, /* by WAIT or BLPOP: no further request is handled until it is answered */
	HS_SIM_CONN_NO_REPLY = 1 << 8,	 /* CLIENT REPLY OFF */
	HS_SIM_CONN_SKIP = 1 << 9,	 /* no reply to this command */
	HS_SIM_CONN_SKIP_NEXT = 1 << 10, /* CLIENT REPLY SKIP */
	HS_SIM_CONN_TRACKING = 1 << 11,
	HS_SIM_CONN_BCAST = 1 << 12,
	HS_SIM_CONN_OPTIN = 1 << 13,
	HS_SIM_CONN_OPTOUT = 1 << 14,
	HS_SIM_CONN_NOLOOP = 1 << 15,
	HS_SIM_CONN_CACHING = 1 << 16,	       /* CLIENT CACHING applies to the next command */
	HS_SIM_CONN_BROKEN_REDIRECT = 1 << 17, /* the connection that REDIRECT names has ended */
	HS_SIM_CONN_HIDDEN = 1 << 18,	       /* runs external commands: it has no client */
};

enum hs_sim_topic_kind { HS_SIM_CHANNEL, HS_SIM_PATTERN, HS_SIM_SHARD, HS_SIM_TOPIC_KINDS };

/* A channel that a connection is subscribed to. */
struct hs_sim_topic {
	struct hs_link link;
	enum hs_sim_topic_kind kind;
	uint16_t slot;
	size_t len;
	char name[];
};

/* Commands between MULTI and EXEC; `bytes` holds their arguments. */
struct hs_sim_queue {
	struct hs_sim_queued {
		const struct hs_command *command;
		size_t args; /* index of its first argument in `args` */
		size_t argc;
	} * commands;
	struct hs_sim_queued_arg {
		size_t at, len;
	} * args;
	size_t count, cap, args_count, args_cap;
	struct hs_buf bytes;
	unsigned any_flags, all_flags; /* of the commands: enum hs_command_flag */
};

struct hs_sim_server_conn {
	struct hs_link link;   /* in server->clients, oldest first */
	struct hs_link ready;  /* in server->ready: it has bytes for the next cycle */
	struct hs_link writes; /* in server->writes: `out` has bytes for the end of the cycle */
	struct hs_sim_server *server;
	void *io;
	uint64_t id;
	int resp;
	unsigned flags;
	struct hs_buf in, out;
	struct hs_wire_request request;
	const struct hs_command *command; /* the last one looked up; NULL: an unknown command */
	struct hs_sim_queue queue;
	uint64_t redirect; /* CLIENT TRACKING … REDIRECT; 0: none */
	struct hs_link topics;
	uint32_t topics_count[HS_SIM_TOPIC_KINDS];
	char *name; /* or NULL */
	/* Blocked: by which command, and the number of this wait (its events carry it). */
	enum hs_sim_wait { HS_SIM_WAIT_REPLICAS, HS_SIM_WAIT_LIST } wait;
	/* WAIT: the offset that wait_replicas replicas must reach. BLPOP: wait_offset is the slot of its keys. */
	uint64_t wait_number, wait_offset, wait_replicas;
	/* BLPOP: the length and name of each key, in order. */
	struct hs_buf wait_keys;
};

/* ---- the Cluster as one node sees it ---- */

/* A node's knowledge of a node (another one, or itself). */
struct hs_sim_peer_view {
	uint64_t config_epoch;
	uint64_t failed_us; /* when it was marked as failed */
	uint8_t master;	    /* the node it replicates; HS_SIM_NO_NODE: it is a master */
	bool silent;	    /* PFAIL: no message from it for the node timeout */
	bool failed;	    /* FAIL: a majority has marked it so */
};

/* A moving slot, at the node that it leaves or comes to. */
struct hs_sim_move {
	uint16_t slot;
	uint8_t other;	/* the node at the other end of the move */
	bool importing; /* false: migrating */
};

struct hs_sim_view {
	struct hs_sim_slots slots;
	/* Slots whose owner does not claim them any more: the first node that claims one gets it. They are stored as
	 * slots of node 0, all others as HS_SIM_NO_NODE's. Without ranges: there are none. */
	struct hs_sim_slots unclaimed;
	uint64_t epoch;
	struct hs_sim_peer_view nodes[HS_SIM_NODES_MAX];
	struct hs_sim_move *moves;
	uint16_t moves_count, moves_cap;
	bool ok;	     /* cluster_state:ok */
	bool was_minority;   /* it was not ok because it reached no majority */
	uint64_t ok_from_us; /* it becomes ok at this time at the earliest */
};

/* ---- a server ---- */

struct hs_sim_server {
	struct hs_sim_cluster *cluster;
	uint64_t life; /* counts its starts: events of an earlier life are ignored */
	uint64_t started_us;
	uint64_t loading_until_us; /* 0: it is not loading */

	/* Connections and cycles. */
	struct hs_link clients, ready, writes;
	uint64_t ids;			    /* the last id of a connection */
	struct hs_sim_server_conn *current; /* whose command is being handled */
	uint64_t waits;			    /* counts waits, to number them */

	/* Data. */
	struct hs_memkv *map;
	struct hs_watch_table *watch; /* NULL: no key was ever watched */
	struct hs_changed changed;    /* keys changed by the running command */
	struct hs_keyspace_counts counts;
	uint64_t commands, evicted;
	uint64_t pauses; /* counts pauses, to number them */

	/* Tracking (server_tracking.c). */
	struct hs_sim_tracked **tracked; /* buckets; NULL: no client has tracked yet */
	size_t tracked_count;
	struct hs_sim_prefix *prefixes; /* of BCAST, sorted by their bytes */
	struct hs_buf pending; /* invalidations that follow the reply of the running command */

	/* Replication (server_stream.c). */
	struct hs_buf log; /* the replication stream from offset log_start on */
	uint64_t log_start;
	size_t log_pushed; /* bytes of `log` that replicas know of: fetching them is planned */
	/* Offset up to which the previous master's stream is identical (PSYNC: master_replid2). */
	uint64_t stream_before_end;
	/* Counts the masters it has replicated: joins of an earlier one are ignored. */
	uint64_t follows;
	/* Counts the failovers that this replica began: steps of earlier ones are ignored. */
	uint64_t failover;

	/* Other nodes. */
	uint64_t reach_changes; /* how often it lost or regained contact with the others */
	uint64_t posted_us[HS_SIM_NODES_MAX]; /* when the last bus message to that node arrives */
	struct hs_sim_view view;

	uint32_t tracking_conns; /* connections with CLIENT TRACKING on */
	uint16_t port;
	uint8_t number;
	bool down, stalled, cut; /* cut: partitioned from the other nodes */
	bool replaced; /* a master whose replica took over, and which does not know that yet */
	bool cycle_planned;
	bool executing; /* the command of `current` is past all checks and runs */
	bool in_exec;
	/* The running command pushed elements: blocked clients are served after it. */
	bool lists_grew;
	bool paused;	     /* writes wait: a failover on request is in progress */
	bool log_open;	     /* a group of commands in the stream is open */
	bool link_up;	     /* a replica: the link to its master is up */
	bool stream_held;    /* hs_sim_cluster_hold_stream */
	bool refuses_stale;  /* replica-serve-stale-data no */
	bool stream_planned; /* an event that fetches more of the stream is planned */
	char host[HS_SIM_HOST_BYTES];
	char id[HS_SIM_ID_LEN + 1], run_id[HS_SIM_ID_LEN + 1];
	char stream[HS_SIM_ID_LEN + 1], stream_before[HS_SIM_ID_LEN + 1];
};

struct hs_sim_snapshot;

struct hs_sim_cluster {
	struct hs_sim_cluster_options options;
	struct hs_sim_cluster_host host;
	struct hs_prng prng;
	uint64_t hash_seed; /* one seed for all maps, so that records can be copied unchanged */
	struct hs_sim_slots truth;   /* the true owner of every slot */
	uint64_t epoch;		     /* the last config epoch that was given */
	struct hs_link bus_messages; /* in flight on the cluster bus */
	bool faults_stopped;
	uint8_t count;
	struct hs_sim_server servers[];
};

static inline uint64_t hs_sim_now_us(const struct hs_sim_cluster *cluster)
{
	return cluster->host.now->mono_us;
}

static inline int64_t hs_sim_now_ms(const struct hs_sim_cluster *cluster)
{
	return hs_now_wall_ms(*cluster->host.now);
}

/* Runs `run` with the server as its target after a random time of at most `us_max`; `number` is passed on. */
void hs_sim_server_plan(struct hs_sim_server *server, uint64_t us_max, hs_sim_event_run *run,
			uint64_t number);

static inline bool hs_sim_server_runs(const struct hs_sim_server *server)
{
	return !server->down && !server->stalled;
}

static inline bool hs_sim_server_is_master(const struct hs_sim_server *server)
{
	return server->view.nodes[server->number].master == HS_SIM_NO_NODE;
}

/* Whether messages pass between two nodes. */
static inline bool hs_sim_servers_talk(const struct hs_sim_server *a, const struct hs_sim_server *b)
{
	return hs_sim_server_runs(a) && hs_sim_server_runs(b) && !a->cut && !b->cut;
}

/* ---- server.c ---- */

void hs_sim_server_init(struct hs_sim_server *server, struct hs_sim_cluster *cluster,
			uint8_t number);
void hs_sim_server_deinit(struct hs_sim_server *server);
/* A new process: a new run id and a new replication id. */
void hs_sim_server_start(struct hs_sim_server *server);
void hs_sim_id_draw(struct hs_prng *prng, char id[HS_SIM_ID_LEN + 1]);
/* Makes writes wait, or resumes them. */
void hs_sim_server_pause(struct hs_sim_server *server, bool pause);
/* Plans a cycle, if the server runs. */
void hs_sim_server_wake(struct hs_sim_server *server);
struct hs_sim_server_conn *hs_sim_server_open(struct hs_sim_server *server, void *io);
/* Frees it without telling the host. */
void hs_sim_conn_free(struct hs_sim_server_conn *conn);
/* The server closes the connection, and calls host.closed. */
void hs_sim_conn_close(struct hs_sim_server_conn *conn);
void hs_sim_server_close_all(struct hs_sim_server *server);
/* Marks the connection for the next cycle; marks it as having output for the end of the cycle. */
void hs_sim_conn_ready(struct hs_sim_server_conn *conn);
void hs_sim_conn_wrote(struct hs_sim_server_conn *conn);
struct hs_sim_server_conn *hs_sim_server_conn_by_id(const struct hs_sim_server *server,
						    uint64_t id);
static inline struct hs_reply hs_sim_conn_reply(struct hs_sim_server_conn *conn)
{
	return (struct hs_reply){.out = &conn->out, .resp = conn->resp};
}

/* ---- server_run.c ---- */

/* Runs one command of the connection, and appends its reply to conn->out. False: writes are paused; run it
 * again when they resume. */
bool hs_sim_run_command(struct hs_sim_server_conn *conn, size_t argc, const struct hs_bytes *argv);
/* Runs a command that is past all checks. */
void hs_sim_call(struct hs_sim_server_conn *conn, const struct hs_command *command, size_t argc,
		 const struct hs_bytes *argv);
/* Replies with an error; a transaction that is being queued will fail. */
void hs_sim_reject(struct hs_sim_server_conn *conn, const char *text);
/* The row of a command, including those that only servers have; NULL: unknown. */
const struct hs_command *hs_sim_command_find(size_t argc, const struct hs_bytes *argv);

/* ---- server_route.c ---- */

/* Whether this node serves the command; if not, the error is written. */
bool hs_sim_route(struct hs_sim_server_conn *conn, const struct hs_command *command, size_t argc,
		  const struct hs_bytes *argv);
/* The same without a reply, for a connection that is not READONLY. */
bool hs_sim_route_serves(struct hs_sim_server_conn *conn, const struct hs_command *command,
			 size_t argc, const struct hs_bytes *argv);
/* The slot's move; NULL: it is not moving. */
struct hs_sim_move *hs_sim_view_move(struct hs_sim_view *view, uint16_t slot, bool importing);
/* In cluster_move.c: the view notes that a move of the slot begins or ends. */
void hs_sim_view_begin_move(struct hs_sim_view *view, uint16_t slot, uint8_t other, bool importing);
void hs_sim_view_end_move(struct hs_sim_view *view, uint16_t slot, bool importing);

/* ---- server_run.c, continued ---- */

/* Reports to the host that the connection's command was not run. */
void hs_sim_note_refused(const struct hs_sim_server_conn *conn, const char *text);

/* ---- server_data.c ---- */

/* Runs a command on keys; also for rows of sim/server_extras.c. */
void hs_sim_data_run(struct hs_sim_server_conn *conn, const struct hs_command *command, size_t argc,
		     const struct hs_bytes *argv, struct hs_reply *reply);
struct hs_keyspace hs_sim_keyspace(struct hs_sim_server *server);
/* Whether the key exists and has expired. */
bool hs_sim_data_is_expired(struct hs_sim_server *server, uint16_t slot, struct hs_bytes key);
/* Deletes the key if it has expired and this node may delete it; true: it has expired, even if it still exists. */
bool hs_sim_data_expire(struct hs_sim_server *server, uint16_t slot, struct hs_bytes key);
/* The map has changed: notifies the host, tracking clients, watches and replicas. Empties `changed`. */
void hs_sim_data_notify(struct hs_sim_server *server, enum hs_sim_change_cause cause);
void hs_sim_data_sweep(struct hs_sim_server *server);
/* Deletes the key; with `tell`, notifies clients that track or watch it, and replicas. */
void hs_sim_data_remove(struct hs_sim_server *server, struct hs_bytes key, bool tell);

/* ---- server_extras.c ---- */

extern const struct hs_command hs_sim_extras[];
bool hs_sim_extras_has(const struct hs_command *command);
void hs_sim_extras_run(struct hs_sim_server_conn *conn, const struct hs_command *command,
		       size_t argc, const struct hs_bytes *argv, struct hs_reply *reply);
void hs_sim_unblock(struct hs_sim_server_conn *conn,
		    const char *error);			 /* NULL: as after a timeout */
void hs_sim_unblock_waits(struct hs_sim_server *server); /* a replica has caught up further */
void hs_sim_unblock_moved(
	struct hs_sim_server *server); /* slots have moved to another node, or this one is down */
void hs_sim_unblock_all(struct hs_sim_server *server, const char *error);

/* ---- server_lists.c ---- */

void hs_sim_lists_push(struct hs_sim_server_conn *conn, size_t argc, const struct hs_bytes *argv,
		       struct hs_reply *reply);
/* False: all lists are empty, and nothing was replied. */
bool hs_sim_lists_pop(struct hs_sim_server_conn *conn, size_t keys, const struct hs_bytes *names,
		      struct hs_reply *reply);
/* Blocks the connection on these keys. */
void hs_sim_lists_wait(struct hs_sim_server_conn *conn, size_t keys, const struct hs_bytes *names);
void hs_sim_lists_serve(
	struct hs_sim_server *server); /* serves clients that are blocked on lists */

/* ---- server_keys.c ---- */

/* The record of a key, borrowed until the map changes; false: it is missing. */
bool hs_sim_keys_get(struct hs_sim_server *server, uint16_t slot, struct hs_bytes key,
		     struct hs_bytes *record);
/* Appends the value of a key; false: it is missing. */
bool hs_sim_keys_value(struct hs_sim_server *server, struct hs_bytes key, struct hs_buf *value);
/* The time at which a record expires; -1: never. */
int64_t hs_sim_record_expiry(struct hs_bytes record);
/* The next two must be called within a transaction of the map. An empty record deletes the key. */
void hs_sim_keys_put(struct hs_sim_server *server, uint16_t slot, struct hs_bytes key,
		     struct hs_bytes record);
/* Moves a key's record, if there is one, to its place in another slot. */
void hs_sim_keys_shift(struct hs_sim_server *server, struct hs_bytes key, uint16_t from,
		       uint16_t to);
void hs_sim_keys_clear(struct hs_sim_server *server);
size_t hs_sim_keys_count(struct hs_sim_server *server); /* of all keys */
size_t hs_sim_keys_count_expiring(struct hs_sim_server *server);
size_t hs_sim_keys_count_slot(struct hs_sim_server *server, uint16_t slot);
/* Copies the slot's key with this number, counted from 0; false: there are fewer. */
bool hs_sim_keys_at(struct hs_sim_server *server, uint16_t slot, size_t number, struct hs_buf *key);
void hs_sim_keys_each(struct hs_sim_server *server, uint16_t first, uint16_t last,
		      void (*visit)(void *context, uint16_t slot, struct hs_bytes key,
				    struct hs_bytes record),
		      void *context);

/* ---- server_multi.c ---- */

void hs_sim_multi(struct hs_sim_server_conn *conn, struct hs_reply *reply);
void hs_sim_exec(struct hs_sim_server_conn *conn);
void hs_sim_discard(struct hs_sim_server_conn *conn); /* also drops its watches */
void hs_sim_queue_add(struct hs_sim_server_conn *conn, const struct hs_command *command,
		      size_t argc, const struct hs_bytes *argv);
void hs_sim_queue_get(const struct hs_sim_queue *queue, size_t number, struct hs_bytes *argv);
void hs_sim_queue_deinit(struct hs_sim_queue *queue);
void hs_sim_watch(struct hs_sim_server_conn *conn, size_t argc, const struct hs_bytes *argv,
		  struct hs_reply *reply);
void hs_sim_unwatch(struct hs_sim_server_conn *conn);

/* ---- server_tracking.c ---- */

/* Adds a prefix to the connection (BCAST); removes all of them. */
void hs_sim_prefix_join(struct hs_sim_server_conn *conn, struct hs_bytes bytes);
void hs_sim_prefix_leave_all(struct hs_sim_server_conn *conn);
/* The connection's next prefix after `at` (NULL: the first one), or NULL. */
const struct hs_sim_prefix *hs_sim_prefix_next(const struct hs_sim_server_conn *conn,
					       const struct hs_sim_prefix *at,
					       struct hs_bytes *bytes);
/* Called when the first connection of the server tracks. */
void hs_sim_tracking_begin(struct hs_sim_server *server);

/* ---- server_tracking_command.c ---- */

void hs_sim_tracking_command(struct hs_sim_server_conn *conn, size_t argc,
			     const struct hs_bytes *argv, struct hs_reply *reply);
void hs_sim_tracking_caching(struct hs_sim_server_conn *conn, struct hs_bytes word,
			     struct hs_reply *reply);
void hs_sim_tracking_info(struct hs_sim_server_conn *conn, struct hs_reply *reply);
void hs_sim_tracking_stop(struct hs_sim_server_conn *conn);

/* ---- server_tracking.c, continued ---- */

/* The connection has read these keys. */
void hs_sim_tracking_remember(struct hs_sim_server_conn *conn, const struct hs_command *command,
			      size_t argc, const struct hs_bytes *argv);
void hs_sim_tracking_invalidate(struct hs_sim_server *server, struct hs_bytes key);
void hs_sim_tracking_invalidate_all(struct hs_sim_server *server);
void hs_sim_tracking_flush_pending(struct hs_sim_server *server);
void hs_sim_tracking_broadcast(struct hs_sim_server *server);
void hs_sim_tracking_limit(struct hs_sim_server *server);
/* The connection has ended. */
void hs_sim_tracking_forget(struct hs_sim_server_conn *conn);
/* Forgets every tracked key. */
void hs_sim_tracking_reset(struct hs_sim_server *server);
void hs_sim_tracking_deinit(struct hs_sim_server *server);

/* ---- server_pubsub.c ---- */

/* SUBSCRIBE and the like; false: it was another command. */
bool hs_sim_pubsub_run(struct hs_sim_server_conn *conn, const struct hs_command *command,
		       size_t argc, const struct hs_bytes *argv);
void hs_sim_pubsub_forget(struct hs_sim_server_conn *conn);
/* The slots have moved to another node: unsubscribes clients from their shard channels. */
void hs_sim_pubsub_drop_slot(struct hs_sim_server *server, uint16_t first, uint16_t last);
void hs_sim_bus_messages_deinit(struct hs_sim_cluster *cluster);
static inline bool hs_sim_conn_listens(const struct hs_sim_server_conn *conn)
{
	return conn->topics_count[HS_SIM_CHANNEL] + conn->topics_count[HS_SIM_PATTERN] +
		       conn->topics_count[HS_SIM_SHARD] >
	       0;
}

/* ---- server_commands.c, server_info.c ---- */

/* Commands on the connection, the server and the Cluster. */
void hs_sim_commands_run(struct hs_sim_server_conn *conn, const struct hs_command *command,
			 size_t argc, const struct hs_bytes *argv, struct hs_reply *reply);
void hs_sim_info(struct hs_sim_server *server, size_t argc, const struct hs_bytes *argv,
		 struct hs_reply *reply);
/* CLUSTER …, in cluster_commands.c. */
void hs_sim_cluster_commands_run(struct hs_sim_server_conn *conn, const struct hs_command *command,
				 size_t argc, const struct hs_bytes *argv, struct hs_reply *reply);

/* ---- server_stream.c ---- */

/* The server's replication offset. */
static inline uint64_t hs_sim_stream_offset(const struct hs_sim_server *server)
{
	return server->log_start + server->log.len;
}
/* Called after every command that changed something, for the replicas. */
void hs_sim_stream_note_key(struct hs_sim_server *server, uint16_t slot, struct hs_bytes key);
void hs_sim_stream_note_all(struct hs_sim_server *server);
/* Replicas apply everything that was noted since the last call together. */
void hs_sim_stream_end_group(struct hs_sim_server *server);
/* The server replicates its master from now on, from its offset or with a full copy. */
void hs_sim_stream_follow(struct hs_sim_server *server);
/* The server is a master from now on: its stream continues under a new replication id. */
void hs_sim_stream_lead(struct hs_sim_server *server);
/* Whether the replica has everything its master has. */
bool hs_sim_stream_has_all(const struct hs_sim_server *replica, const struct hs_sim_server *master);
/* Applies everything that the master has. */
void hs_sim_stream_catch_up(struct hs_sim_server *server);
/* How many replicas have applied the stream up to this offset. */
int64_t hs_sim_stream_count(const struct hs_sim_server *master, uint64_t offset);
/* Plans to catch up one replica; or all replicas of a master. */
void hs_sim_stream_pull(struct hs_sim_server *replica);
void hs_sim_stream_push(struct hs_sim_server *master);

/* ---- cluster.c ---- */

struct hs_sim_server *hs_sim_server_of(struct hs_sim_cluster *cluster, uint8_t node);
/* The node's own view changed: it sends gossip to the others and re-evaluates its state. */
void hs_sim_gossip(struct hs_sim_server *from);
void hs_sim_gossip_one(struct hs_sim_server *from, struct hs_sim_server *to);
/* As hs_sim_gossip_one, without delay. */
void hs_sim_gossip_deliver(struct hs_sim_server *from, struct hs_sim_server *to);
/* A node that was down receives the others' gossip before it serves clients. Redis does not promise that: for
 * some ms a master that was replaced meanwhile may answer as before, and no client can notice it. */
void hs_sim_gossip_receive_all(struct hs_sim_server *server);
void hs_sim_view_give(struct hs_sim_server *server, uint16_t first, uint16_t last, uint8_t node);
/* Gives the node a new config epoch, so that its claims win; _bump only if it does not have the latest one
 * already. */
void hs_sim_view_new_epoch(struct hs_sim_server *server);
void hs_sim_view_bump(struct hs_sim_server *server);
void hs_sim_view_set_master(struct hs_sim_server *server, uint8_t master);
void hs_sim_truth_give(struct hs_sim_cluster *cluster, uint16_t first, uint16_t last, uint8_t node);

/* ---- cluster_health.c ---- */

/* `to` has received a message from `from`: it is alive. */
void hs_sim_health_mark_alive(struct hs_sim_server *to, struct hs_sim_server *from);
/* Which nodes the server reaches may have changed. */
void hs_sim_health_changed(struct hs_sim_server *server);
void hs_sim_health_judge(struct hs_sim_server *server);

/* ---- cluster_move.c ---- */

/* MIGRATE of one key. Returns an error's text, or NULL. */
const char *hs_sim_migrate_key(struct hs_sim_server *from, struct hs_sim_server *to,
			       struct hs_bytes key, bool copy, bool replace);
void hs_sim_setslot(struct hs_sim_server *server, size_t argc, const struct hs_bytes *argv,
		    struct hs_reply *reply);

/* ---- cluster_truth.c ---- */

/* Copies the true values in the slots of a node, to find out what a fault changes. */
struct hs_sim_snapshot *hs_sim_snapshot_create(struct hs_sim_cluster *cluster, uint8_t owner);
/* The slots are this node's now: reports every key with another value to the host. Frees the snapshot. */
void hs_sim_snapshot_compare(struct hs_sim_snapshot **memory, uint8_t owner);

/* ---- cluster_failover.c ---- */

/* CLUSTER FAILOVER. Returns an error's text, or NULL. */
const char *hs_sim_failover_ask(struct hs_sim_server *replica, bool force);

#endif
