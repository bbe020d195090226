/* The front door of the engines: what executes commands. An engine knows operations, partitions
 * and where bytes rest; it knows no contract, no heat, no mitigation and no client. Adding one is
 * one file that fills this table. */
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

/* Given at start, kept by the engine. `done` is called from the engine's own threads, once for
 * every op it queued, with its reply (or error reply) in op->out: a chain linked by op->next, all
 * of the same worker. `wall` is the clock for sweeping and for replies that carry a time. */
struct hs_engine_host {
	void *context;
	void (*done)(void *context, uint32_t worker, struct hs_op *chain);
	/* On worker `worker`'s own thread, for an engine that lives on the worker's loop: one op is
	 * finished, its reply in op->out or op->answer. The core may submit more from inside. */
	void (*finished)(void *context, uint32_t worker, struct hs_now now, struct hs_op *op);
	/* The same thread, behind a run of `finished`: replies may go out. */
	void (*answered)(void *context, uint32_t worker);
	/* The same thread: of what this vouch vouched for (hs_op.track), the key has changed; NULL: all
	 * may have. Told in the order in which the vouch hears it: a reply that came behind it is
	 * finished behind it. */
	void (*changed)(void *context, uint32_t worker, struct hs_now now,
			const struct hs_tracking_session *tracking_session,
			const struct hs_bytes *key);
	/* Any thread: every worker is told. Takes over the reference.
	 *
	 * Of changes (after HS_OP_TRACK): every change of a key, by whomever, is told as
	 * HS_EVENT_CHANGED, in batches of any size,
	 *   - not before it can be seen: a read submitted after the news was heard sees the change
	 *     or a later one (an engine that answers reads at once: after the next refresh);
	 *   - no later than who made the change is told that it is done, where the engine knows;
	 *     else as soon as it hears of it.
	 * HS_EVENT_CHANGED_ALL is told whenever everything changed, and whenever a change may have
	 * been missed: a connection that was lost, a slot that moved. Telling too much does no harm;
	 * a change that is not told is a wrong value in somebody's hands for ever. A key that
	 * expired counts as changed when it is removed. */
	void (*event)(void *context, struct hs_event *event);
	/* Any thread: the commands a server has beside ours. The server's from now on. */
	void (*learned)(void *context, struct hs_learned *learned);
	/* Any thread: the calls of `recount` up to the one that returned this number are answered. */
	void (*recounted)(void *context, uint64_t number);
	struct hs_now (*now)(void *context);
	struct hs_log *log;
	uint32_t workers;
};

/* An option of the servers behind an engine, which clients may ask for through CONFIG. */
struct hs_engine_option {
	const char *name;
	bool settable;
};

/* What INFO says of how the data is kept, as far as it is known. */
struct hs_engine_servers {
	int64_t maxmemory;	   /* -1: not known, or not the same everywhere */
	char maxmemory_policy[32]; /* "": likewise */
	int aof_enabled;	   /* -1: likewise */
};

/* What engines count. A thread of an engine has a struct hs_engine_counters of its own, or the same fields. */
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
	    "Writes that group commits carried", .engine = "embedded") \
	ROW(commit_us, HS_COUNTER, "Stats", "commit_microseconds", "commit_seconds_total", \
	    "Time spent in group commits", .factor = 1e-6, .engine = "embedded") \
	ROW(store_writes, HS_COUNTER, "Stats", "store_writes", "store_writes_total", \
	    "Entries that group commits wrote; several changes of one key in a commit are one", \
	    .engine = "embedded") \
	ROW(syncs, HS_COUNTER, "Stats", "disk_syncs", "disk_syncs_total", \
	    "Waits for the disk to have written the log", .engine = "embedded") \
	ROW(full_errors, HS_COUNTER, "Stats", "store_full_errors", "store_full_errors_total", \
	    "Writes refused because a store was full", .engine = "embedded") \
	ROW(damaged, HS_COUNTER, "Stats", "damaged_reads", "damaged_reads_total", \
	    "Times a key was found whose record fails its checksum; the reply was an error") \
	ROW(lent, HS_COUNTER, "Stats", "large_reads_lent", "large_reads_lent_total", \
	    "Large reads of uncommitted keys that workers ran on snapshots of the committer's", \
	    .engine = "embedded") \
	ROW(connections, HS_GAUGE, "Engine", "engine_connections", "engine_connections", \
	    "Connections to the servers behind heatsink, open now") \
	ROW(private_connections, HS_GAUGE, "Engine", "engine_private_connections", "engine_private_connections", \
	    "Those of them for one client each: WATCH, blocking commands") \
	ROW(connection_attempts, HS_COUNTER, "Engine", "engine_connection_attempts", "engine_connection_attempts_total", \
	    "Connections to servers begun") \
	ROW(connection_failures, HS_COUNTER, "Engine", "engine_connection_failures", "engine_connection_failures_total", \
	    "Connections to servers that failed or were lost") \
	ROW(moved_redirects, HS_COUNTER, "Engine", "engine_moved_redirects", "engine_moved_redirects_total", \
	    "Requests sent on because their slot has moved (MOVED)") \
	ROW(ask_redirects, HS_COUNTER, "Engine", "engine_ask_redirects", "engine_ask_redirects_total", \
	    "Requests sent on because their slot is on the move (ASK)") \
	ROW(retries, HS_COUNTER, "Engine", "engine_retries", "engine_retries_total", \
	    "Requests sent once more: not run the first time, or reads whose reply was lost") \
	ROW(outcome_unknown, HS_COUNTER, "Engine", "engine_outcome_unknown", "engine_outcome_unknown_total", \
	    "Requests whose outcome is unknown: the connection was lost, and they may have run") \
	ROW(refused, HS_COUNTER, "Engine", "engine_refused", "engine_refused_total", \
	    "Requests that were not sent: no server for them, or too many waiting")
/* clang-format on */

struct hs_engine_counters {
	HS_ENGINE_COUNTERS(HS_COUNTER_FIELD)
};

extern const struct hs_counter_table hs_engine_counters;

/* Shows what keyspace has counted so far for this thread. */
static inline void hs_engine_show_counts(struct hs_engine_counters *counters,
					 const struct hs_keyspace_counts *counts)
{
#define SHOW(field, ...) hs_counter_set(&counters->field, counts->field);
	HS_KEYSPACE_COUNTERS(SHOW)
#undef SHOW
}

struct hs_engine_stats {
	/* First: over all threads, since the start. */
	HS_ENGINE_COUNTERS(HS_COUNTER_NUMBER)
	const char *last_error;		/* "" when the last commit went well */
	const char *unavailable_reason; /* why nothing can be served now; "" when all is well */
	struct hs_engine_servers servers;
};

/* Adds what one thread has counted. */
void hs_engine_stats_add(struct hs_engine_stats *stats, const void *counters);

/* For engines that run commands on data of their own: runs those of a transaction and writes the reply, as
 * hs_keyspace_run does for one. Stops at a reply that is `over`. */
int hs_engine_run_exec(struct hs_keyspace *ks, const struct hs_op *op,
		       struct hs_reply *reply) HS_MUSTCHECK;

struct hs_engine_calls {
	const char *name; /* "embedded" */
	/* Called on worker `op->worker`'s thread. A read that is not `ordered` may be answered at
	 * once; everything else of one connection to one partition runs in the order submitted. */
	enum hs_submit (*submit)(struct hs_engine *engine, struct hs_op *op);
	/* The same thread: gives up a queued op that may wait for ever. May be NULL. */
	void (*cancel)(struct hs_engine *engine, struct hs_op *op);
	/* The same thread: writes the reply of a completed op that is `reply_unwritten`, if it is wanted. NULL where
	 * the engine leaves none. */
	void (*write_reply)(struct hs_engine *engine, struct hs_op *op, bool wanted);
	/* The same thread, CLIENT UNBLOCK: ends the wait of a queued op as if its time were over, or
	 * with an error; it is completed soon. False: it does not wait. May be NULL. */
	bool (*unblock)(struct hs_engine *engine, struct hs_op *op, bool error);
	/* The same thread: the text of a script with this digest, if it passed by; empty: not known. Valid
	 * until the thread's next call. May be NULL. */
	struct hs_bytes (*script)(struct hs_engine *engine, uint32_t worker,
				  struct hs_bytes digest);
	/* The same thread, before its first op and behind its last: an engine with connections has
	 * them on the worker's loop. Handles are closed when the loop has run once more. May be
	 * NULL. */
	void (*attach)(struct hs_engine *engine, uint32_t worker, struct uv_loop_s *loop);
	void (*detach)(struct hs_engine *engine, uint32_t worker);
	/* The same thread, when it has submitted all it has for now: queued ops may be sent on. */
	void (*flush)(struct hs_engine *engine, uint32_t worker);
	/* The same thread, before each batch of client bytes is handled: reads from now on must see
	 * everything acknowledged before. */
	void (*refresh)(struct hs_engine *engine, uint32_t worker);
	/* The same thread, every 100 ms: give back what an idle worker must not hold. */
	void (*idle)(struct hs_engine *engine, uint32_t worker);
	/* Any thread: values are kept from now on (hs_op.track), and who vouches for them proves itself
	 * every so often while that is wanted; 0: none are. NULL where vouches need no proof. */
	void (*check_sessions_every)(struct hs_engine *engine, uint64_t us);
	uint16_t (*partitions)(const struct hs_engine *engine);
	void (*partition_stats)(struct hs_engine *engine, uint16_t id,
				struct hs_engine_partition *stats);
	void (*stats)(struct hs_engine *engine, struct hs_engine_stats *stats);
	/* Any thread: hs_engine_stats.trouble alone, into `text`. NULL where there never is any. */
	void (*unavailable_reason)(struct hs_engine *engine, char *text, size_t size);
	/* The control thread: CONFIG GET or SET (op->argv) of options of the servers, completed through
	 * host.done. op->out holds `pairs` names and values already; a GET adds the servers' and puts
	 * the header in front. NULL where there are no servers. */
	void (*config)(struct hs_engine *engine, struct hs_op *op, size_t pairs);
	/* The control thread: asks the servers how many keys they have. Returns a number, larger with each
	 * call; at host.recounted with that number or a larger one, partition_stats has the keys of every
	 * write that was acknowledged before this call, but for servers that did not answer in time: theirs
	 * are as before. NULL where partition_stats always has them. */
	uint64_t (*recount)(struct hs_engine *engine);
	/* Runs everything queued, makes it durable, ends its threads, frees. All workers have
	 * stopped submitting. */
	void (*destroy)(struct hs_engine **engine);
};

struct hs_engine {
	const struct hs_engine_calls *calls;
	/* What the cores are told about it (struct hs_core_world). */
	bool reads_at_once;
	bool shared_connections;
	enum hs_op_scope op_scope;
	const char *where; /* the servers behind it, for people and without passwords; NULL: none */
	const struct hs_slot_map *slots;	/* NULL: even ranges that never change */
	const struct hs_engine_option *options; /* of the servers behind it; NULL: there are none */
	size_t options_count;
};

#endif
