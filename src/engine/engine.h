/* The front door of the engines: what executes commands. An engine knows operations, partitions
 * and where bytes rest; it knows no contract, no heat, no mitigation and no client. Adding one is
 * one file that fills this table. */
#ifndef HS_ENGINE_ENGINE_H
#define HS_ENGINE_ENGINE_H

#include "base/buf.h"
#include "base/check.h"
#include "base/ladder.h"
#include "base/log.h"
#include "core/core.h"
#include "route/state.h"

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
			const struct hs_vouch *vouch, const struct hs_bytes *key);
	/* Any thread: every worker is told. Takes over the reference.
	 *
	 * Of changes (after HS_OP_TRACK): every change of a key, by whomever, is told as
	 * HS_NEWS_CHANGED, in batches of any size,
	 *   - not before it can be seen: a read submitted after the news was heard sees the change
	 *     or a later one (an engine that answers reads at once: after the next refresh);
	 *   - no later than who made the change is told that it is done, where the engine knows;
	 *     else as soon as it hears of it.
	 * HS_NEWS_CHANGED_ALL is told whenever everything changed, and whenever a change may have
	 * been missed: a connection that was lost, a slot that moved. Telling too much does no harm;
	 * a change that is not told is a wrong value in somebody's hands for ever. A key that
	 * expired counts as changed when it is removed. */
	void (*news)(void *context, struct hs_news *news);
	/* Any thread: the commands a server has beside ours. The server's from now on. */
	void (*learned)(void *context, struct hs_learned *learned);
	/* Any thread: the calls of `recount` up to the one that returned this number are answered. */
	void (*recounted)(void *context, uint64_t number);
	struct hs_now (*now)(void *context);
	struct hs_log *log;
	uint32_t workers;
};

/* What INFO, HEAT and the metrics say about one partition. */
struct hs_engine_partition {
	/* No partition has this number now, and it is not shown. Numbers stay with what they stand
	 * for, so that there may be some between others that nothing stands for. */
	bool absent;
	char address[64]; /* where it is, in plain ASCII: a server, or the name of a file */
	char slots[64];	  /* those it has, "0-5460 8000"; cut with "…" */
	enum hs_partition_state state;
	char trouble[HS_PARTITION_TROUBLE_BYTES]; /* why it is not ok; "" when it is */
	uint64_t keys;
	uint64_t expires;    /* keys with an expiry */
	uint64_t bytes_used; /* pages in use */
	uint64_t bytes_max;
	uint64_t queued; /* writes waiting now */
	/* Of a server with replicas, as it last told; 0 where there is none. */
	double cpu; /* processor time against one core: 1 is a whole one */
	uint64_t clients;
	uint64_t replicas;	    /* that follow it */
	uint64_t replica_lag_s;	    /* of the one furthest behind */
	uint64_t replica_lag_bytes; /* the same */
	/* What the server counts for its slots; 0 where it does not tell. */
	double slots_cpu;	/* time their commands took, against one core */
	double net_in, net_out; /* bytes per second of requests and replies, whoever sent them */
	/* Times of its commits in µs, from the start of a group until those who wait for it can be
	 * answered. Counted since the start, never reset. */
	uint64_t commit_ladder[HS_LADDER_STEPS];
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

struct hs_engine_stats {
	uint64_t commits, commit_ops; /* group commits, and the operations they carried */
	uint64_t commit_us;	      /* spent in them, in all */
	uint64_t store_writes; /* entries they wrote: several changes of a key in one are one */
	uint64_t syncs;
	uint64_t checkpoints;
	int64_t checkpoint_wall_s; /* when the last one ended */
	uint64_t log_bytes;	   /* in the log, not yet checkpointed */
	uint64_t hits, misses, expired, changes;
	uint64_t full_errors;
	uint64_t damaged; /* times a key was found whose record fails its checksum */
	uint64_t lent;	  /* large reads that left the committer unread: their worker read them */
	/* Of an engine behind connections: redirects followed, tries again, outcomes unknown, requests
	 * not sent at all; connections now, those for one client, ever opened, failed. */
	uint64_t moved, asked, again, unknown, refused;
	uint64_t connections, own, connects, failures;
	const char *last_error; /* "" when the last commit went well */
	const char *trouble;	/* why nothing can be served now; "" when all is well */
	struct hs_engine_servers servers;
};

struct hs_engine_calls {
	const char *name; /* "embedded" */
	/* Called on worker `op->worker`'s thread. A read that is not `ordered` may be answered at
	 * once; everything else of one connection to one partition runs in the order submitted. */
	enum hs_submit (*submit)(struct hs_engine *engine, struct hs_op *op);
	/* The same thread: gives up a queued op that may wait for ever. May be NULL. */
	void (*cancel)(struct hs_engine *engine, struct hs_op *op);
	/* The same thread: writes the reply of a completed op that is `unmade`, if it is wanted. NULL where
	 * the engine leaves none. */
	void (*make)(struct hs_engine *engine, struct hs_op *op, bool wanted);
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
	void (*prove_every)(struct hs_engine *engine, uint64_t us);
	uint16_t (*partitions)(const struct hs_engine *engine);
	void (*partition_stats)(struct hs_engine *engine, uint16_t id,
				struct hs_engine_partition *stats);
	void (*stats)(struct hs_engine *engine, struct hs_engine_stats *stats);
	/* Any thread: hs_engine_stats.trouble alone, into `text`. NULL where there never is any. */
	void (*trouble)(struct hs_engine *engine, char *text, size_t size);
	void (*reset_stats)(struct hs_engine *engine);
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
	enum hs_together together;
	const char *where; /* the servers behind it, for people and without passwords; NULL: none */
	const struct hs_slot_map *slots;	/* NULL: even ranges that never change */
	const struct hs_engine_option *options; /* of the servers behind it; NULL: there are none */
	size_t options_count;
};

#endif
