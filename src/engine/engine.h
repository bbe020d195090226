/* The front door of the engines. An engine executes operations (core/op.h) on data: embedded/ on LMDB, redis/ on
 * Redis or Valkey servers. It knows operations, partitions and where data is stored; it knows no contract, heat or
 * mitigation, and a client only as a number by which it keeps that client's order (hs_op.client). A new
 * engine fills struct hs_engine_calls; serve/server.c opens it.
 *
 * Threads: each member of struct hs_engine_calls and struct hs_engine_host names the thread that calls it. "The
 * worker" is the thread of worker op->worker or `worker`. The control thread (serve/control.h) does everything
 * that is not a data command: INFO, CONFIG, HTTP pages. A worker's thread never waits inside a call.
 *
 * Memory: an op belongs to the core. The engine borrows it from `submit` until it completes it, exactly once, with a
 * reply or an error reply.
 *
 * On a bad day an op ends in an error reply. Servers that are away: CLUSTERDOWN, BUSY or, where a command may have
 * run, UNKNOWN (redis/flow.h). A store that is full or a disk that fails: embedded/group_disk.c.
 * `unavailable_reason` says why nothing is served. */
#ifndef HS_ENGINE_ENGINE_H
#define HS_ENGINE_ENGINE_H

#include "base/buf.h"
#include "base/check.h"
#include "base/coarse_histogram.h"
#include "base/log.h"
#include "core/core.h"
#include "keyspace/keyspace.h"
#include "route/partition_state.h"

#include <stdbool.h>
#include <stdint.h>

struct hs_engine;
struct hs_learned;
struct uv_loop_s;

/* The caller's half, given at start and copied by the engine. `now` is the clock, monotonic and wall; any thread may
 * read it.
 *
 * `done`: called by the engine's own threads, once for each op that an engine queued to them, with the reply or
 * error reply in op->out. `chain` is linked by op->next; all of its ops are of `worker`. */
struct hs_engine_host {
	void *context;
	void (*done)(void *context, uint32_t worker, struct hs_op *chain);
	/* The worker, for an engine that lives on the worker's loop, instead of `done`: one op is complete, its
	 * reply in op->out or op->answer. The core may submit more from inside. */
	void (*finished)(void *context, uint32_t worker, struct hs_now now, struct hs_op *op);
	/* The worker, after one or more calls of `finished`: replies may be sent. */
	void (*answered)(void *context, uint32_t worker);
	/* The worker: the server invalidated `key`, or all keys (NULL), for cache entries that were read in this
	 * tracking session (hs_op.track). Calls come in order with replies: a reply that the server sent behind the
	 * invalidation is finished behind it. A lost connection is not reported here: the engine raises the
	 * session's epoch (base/tracking_session.h), which voids its cache entries. */
	void (*changed)(void *context, uint32_t worker, struct hs_now now,
			const struct hs_tracking_session *tracking_session,
			const struct hs_bytes *key);
	/* Any thread: an event for every worker. The host takes over the reference.
	 *
	 * After HS_OP_TRACK the engine reports every change of a key, whichever client made it, as HS_EVENT_CHANGED,
	 * in batches of any size:
	 *   - not before the change is visible: a read that is submitted after the event arrived sees the change
	 *     or a later one (an engine with reads_at_once: after the next `refresh`);
	 *   - if the engine made the change itself, before the writer gets its reply; else as soon as the server
	 *     reports the change.
	 *
	 * HS_EVENT_CHANGED_ALL: all keys changed, or a change may have been missed, because a connection was lost
	 * or a slot moved. The engine reports it at the loss, and once more when it sees all changes again: a
	 * client may have cached a value in between, and its change was missed. Until then the engine repeats it
	 * at intervals (redis/subscriber.h: every second), so that such a value does not stay for long. Reporting
	 * too much does no harm; a change that is not reported leaves a stale value in a client's cache for ever.
	 * A key that expired is reported when it is removed. */
	void (*event)(void *context, struct hs_event *event);
	/* Any thread: the commands that a server has beside the built-in table. They belong to the engine's servers
	 * and replace the ones learned before. */
	void (*learned)(void *context, struct hs_learned *learned);
	/* Any thread: calls of `recount` that returned this number or a lower one are answered. */
	void (*recounted)(void *context, uint64_t number);
	struct hs_now (*now)(void *context);
	struct hs_log *log;
	uint32_t workers;
};

/* An option of the servers behind an engine that clients may read, or set, through CONFIG. */
struct hs_engine_option {
	const char *name;
	bool settable;
};

/* The servers' persistence and memory settings, for INFO. */
struct hs_engine_servers {
	int64_t maxmemory;	   /* -1: unknown, or the servers differ */
	char maxmemory_policy[32]; /* "": unknown, or the servers differ */
	int aof_enabled;	   /* -1: unknown, or the servers differ */
};

/* The counters of engines. Each engine thread counts in a struct hs_engine_counters of its own, or in a struct that
 * begins with the same fields. */
/* clang-format off */
#define HS_ENGINE_COUNTERS(ROW) \
	HS_KEYSPACE_COUNTERS(ROW) \
	ROW(changes, HS_TOTAL, "Persistence", "changes_since_start", "changes_total", \
	    "Changes to keys since the start", .engine = "embedded") \
	ROW(checkpoints, HS_TOTAL, "Persistence", "checkpoints", "checkpoints_total", \
	    "Checkpoints written", .engine = "embedded") \
	ROW(checkpoint_wall_s, HS_GAUGE, "Persistence", "last_checkpoint_time", "last_checkpoint_timestamp_seconds", \
	    "When the last checkpoint ended", .engine = "embedded") \
	ROW(log_bytes, HS_GAUGE, "Persistence", "log_bytes", "log_bytes", \
	    "Bytes in the redo log that no checkpoint covers yet", .engine = "embedded") \
	ROW(commits, HS_COUNTER, "Stats", "commits", "commits_total", "Group commits", .engine = "embedded") \
	ROW(commit_ops, HS_COUNTER, "Stats", "commit_operations", "commit_operations_total", \
	    "Write operations in group commits", .engine = "embedded") \
	ROW(commit_us, HS_COUNTER, "Stats", "commit_microseconds", "commit_seconds_total", \
	    "Time spent in group commits", .factor = 1e-6, .engine = "embedded") \
	ROW(store_writes, HS_COUNTER, "Stats", "store_writes", "store_writes_total", \
	    "Entries that group commits wrote; several changes of one key in a commit are one", \
	    .engine = "embedded") \
	ROW(syncs, HS_COUNTER, "Stats", "disk_syncs", "disk_syncs_total", \
	    "Times the redo log was synced to disk", .engine = "embedded") \
	ROW(full_errors, HS_COUNTER, "Stats", "store_full_errors", "store_full_errors_total", \
	    "Writes refused because a store was full", .engine = "embedded") \
	ROW(damaged, HS_COUNTER, "Stats", "damaged_reads", "damaged_reads_total", \
	    "Records found with a wrong checksum; the client got an error: run heatsink check") \
	ROW(lent, HS_COUNTER, "Stats", "large_reads_lent", "large_reads_lent_total", \
	    "Large reads of uncommitted keys that a worker ran on a snapshot of the committer's", \
	    .engine = "embedded") \
	ROW(connections, HS_GAUGE, "Engine", "engine_connections", "engine_connections", \
	    "Open connections to the servers") \
	ROW(private_connections, HS_GAUGE, "Engine", "engine_private_connections", "engine_private_connections", \
	    "Open connections to the servers that serve one client each: WATCH, blocking commands") \
	ROW(connection_attempts, HS_COUNTER, "Engine", "engine_connection_attempts", "engine_connection_attempts_total", \
	    "Connections to the servers that were attempted") \
	ROW(connection_failures, HS_COUNTER, "Engine", "engine_connection_failures", "engine_connection_failures_total", \
	    "Connections to the servers that could not be opened or were lost") \
	ROW(moved_redirects, HS_COUNTER, "Engine", "engine_moved_redirects", "engine_moved_redirects_total", \
	    "Requests redirected by MOVED: their slot has another owner") \
	ROW(ask_redirects, HS_COUNTER, "Engine", "engine_ask_redirects", "engine_ask_redirects_total", \
	    "Requests redirected by ASK: their slot is being moved") \
	ROW(retries, HS_COUNTER, "Engine", "engine_retries", "engine_retries_total", \
	    "Requests sent again after a server refused them for now (TRYAGAIN, CLUSTERDOWN, LOADING …)") \
	ROW(outcome_unknown, HS_COUNTER, "Engine", "engine_outcome_unknown", "engine_outcome_unknown_total", \
	    "Requests whose outcome is unknown: the connection was lost before the reply, and they may have run") \
	ROW(refused, HS_COUNTER, "Engine", "engine_refused", "engine_refused_total", \
	    "Requests refused and not sent: no server was available, or the queue was full (engine-queue)")
/* clang-format on */

struct hs_engine_counters {
	HS_ENGINE_COUNTERS(HS_COUNTER_FIELD)
};

extern const struct hs_counter_table hs_engine_counters;

/* Publishes what keyspace/ has counted for this thread. */
static inline void hs_engine_show_counts(struct hs_engine_counters *counters,
					 const struct hs_keyspace_counts *counts)
{
#define SHOW(field, ...) hs_counter_set(&counters->field, counts->field);
	HS_KEYSPACE_COUNTERS(SHOW)
#undef SHOW
}

struct hs_engine_stats {
	/* Sums over all threads since the start. They come first: hs_engine_stats_add relies on it. */
	HS_ENGINE_COUNTERS(HS_COUNTER_NUMBER)
	const char *last_error;		/* of the last group commit; "": it succeeded */
	const char *unavailable_reason; /* why no request can be served; "": available */
	struct hs_engine_servers servers;
};

/* Adds one thread's counters. */
void hs_engine_stats_add(struct hs_engine_stats *stats, const void *counters);

/* For engines that run commands themselves: runs the commands of a transaction and writes the reply of EXEC. Stops
 * when the reply gets larger than reply->out_max (reply->over). */
int hs_engine_run_exec(struct hs_keyspace *ks, const struct hs_op *op,
		       struct hs_reply *reply) HS_MUSTCHECK;

struct hs_engine_calls {
	const char *name;
	/* The worker (of op->worker). A read that is not `ordered` may be answered at once. An op with `track` or
	 * `replica_since_us` has no order (core/op.h). Every other op runs in the order of submission among those
	 * of the same client (op->client) and the same place: in embedded/ the partition, in redis/ the slot
	 * (redis/flow.h). */
	enum hs_submit (*submit)(struct hs_engine *engine, struct hs_op *op);
	/* The worker: ends a queued op that may wait for ever, for example BLPOP, because its client has gone. The
	 * op still completes; its reply is ignored. May be NULL. */
	void (*cancel)(struct hs_engine *engine, struct hs_op *op);
	/* The worker: for a completed op with reply_unwritten set, whose large reply was not composed yet. `wanted`:
	 * writes it to op->out; else frees what was set aside for it. NULL: the engine leaves no reply unwritten. */
	void (*write_reply)(struct hs_engine *engine, struct hs_op *op, bool wanted);
	/* The worker, for CLIENT UNBLOCK: ends the wait of a queued op as if its timeout had passed, or with an
	 * error; the op completes soon. False: the op does not wait. May be NULL. */
	bool (*unblock)(struct hs_engine *engine, struct hs_op *op, bool error);
	/* The worker: the text of the script with this SHA-1 digest; empty: unknown. Valid until this worker's next
	 * call. May be NULL. */
	struct hs_bytes (*script)(struct hs_engine *engine, uint32_t worker,
				  struct hs_bytes digest);
	/* The worker, before its first op and after its last: an engine with connections opens and closes them on
	 * the worker's loop. Handles are closed when the loop has run once more after `detach`. May be NULL. */
	void (*attach)(struct hs_engine *engine, uint32_t worker, struct uv_loop_s *loop);
	void (*detach)(struct hs_engine *engine, uint32_t worker);
	/* The worker, after it has submitted all ops of a round: queued ops may be sent. */
	void (*flush)(struct hs_engine *engine, uint32_t worker);
	/* The worker, before it handles a batch of client bytes: reads from here on see every write that was
	 * acknowledged before. */
	void (*refresh)(struct hs_engine *engine, uint32_t worker);
	/* The worker, every 100 ms: releases read snapshots that were not used since the last call, checks
	 * deadlines. */
	void (*idle)(struct hs_engine *engine, uint32_t worker);
	/* Any thread: the interval in microseconds of liveness checks on tracking connections, as long as a cache
	 * wants them. 0: no rule caches, no checks. NULL: the engine's tracking needs no checks. */
	void (*check_sessions_every)(struct hs_engine *engine, uint64_t us);
	/* Any thread, once the engine is created: how many partitions there can be; it never changes. */
	uint16_t (*partitions)(const struct hs_engine *engine);
	/* The control thread: the state of a partition, and the engine's counters. */
	void (*partition_stats)(struct hs_engine *engine, uint16_t id,
				struct hs_engine_partition *stats);
	void (*stats)(struct hs_engine *engine, struct hs_engine_stats *stats);
	/* Any thread: copies hs_engine_stats.unavailable_reason into `text`. NULL: the engine is always available. */
	void (*unavailable_reason)(struct hs_engine *engine, char *text, size_t size);
	/* The control thread: CONFIG GET or SET (op->argv) of the servers' options, completed through host.done.
	 * op->out holds `pairs` names and values already; a GET adds those of the servers and puts the header in
	 * front. NULL: there are no servers. */
	void (*config)(struct hs_engine *engine, struct hs_op *op, size_t pairs);
	/* The control thread: asks the servers how many keys they have. Returns a number that grows with each call.
	 * When host.recounted is called with that number or a higher one, partition_stats counts the keys of every
	 * write that was acknowledged before this call. A server that does not answer in time keeps its previous
	 * count. NULL: partition_stats is always exact. */
	uint64_t (*recount)(struct hs_engine *engine);
	/* One thread, when the workers and the control thread have ended (in serve/server.c a thread of its own,
	 * so that the main loop still handles signals): runs every queued op and makes it durable, ends the
	 * engine's threads, frees the engine. An engine on servers cannot run them any more: it ends queued ops
	 * with an error reply, data commands already in `detach`. */
	void (*destroy)(struct hs_engine **engine);
};

struct hs_engine {
	const struct hs_engine_calls *calls;
	/* How the cores treat this engine; the same names in struct hs_core_world (core/core.h). */
	bool reads_at_once;	 /* `submit` answers a read that is not `ordered` */
	bool shared_connections; /* clients share connections: WATCH and BLPOP need one of their own */
	enum hs_op_scope op_scope; /* which keys one command or transaction may name together */
	/* For people, without passwords: the servers behind the engine; NULL: none. */
	const char *where;
	/* Which partition has a slot; NULL: even ranges that never change. */
	const struct hs_slot_map *slots;
	const struct hs_engine_option *options; /* of the servers; NULL: no servers */
	size_t options_count;
};

#endif
