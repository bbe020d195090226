/* A group: operations of any connections that are run, logged, synced and committed together.
 *
 *     run      each operation in its store's write transaction; replies are written, not sent
 *     seal     one log record with the changes of all stores
 *     sync     once for all of it, here or by the syncer (syncer.h)
 *     commit   each store: from here on readers see it
 *     answer   by the caller, when it is synced
 *
 * So no reader ever sees what is not durable, and nobody is told of it before.
 *
 * Committing costs several pages for every store of every group, so it is put off where nobody
 * looks: the transaction is kept open (hs_store_postpone_commit), more groups run in it, and one commit shows
 * them all, some time later. A read of a key among them is turned away to the queue, where
 * it runs in that transaction, and for a while afterwards its store commits with every group. One
 * with a large reply is left to its worker, on a snapshot of what is committed by then (snapshot_loan.h).
 *
 * A store that fails on the way loses its transaction, not the group: the other stores go on, and
 * its own operations are run again one by one, so that only those which cannot be done are refused.
 * When the log, a checkpoint or a store's file fails, what the disk holds is unknown; then writes are
 * refused for good, until a restart has read the disk again. Reads go on: group_disk.c.
 *
 * One thread, the committer's, but for hs_group_durable. The counters may be read by any. */
#ifndef HS_ENGINE_EMBEDDED_GROUP_H
#define HS_ENGINE_EMBEDDED_GROUP_H

#include "base/counter.h"
#include "base/prng.h"
#include "core/op.h"
#include "engine/embedded/database.h"
#include "engine/embedded/snapshot_loan.h"
#include "engine/engine.h"
#include "keyspace/changed.h"
#include "keyspace/keyspace.h"
#include "keyspace/watch.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	HS_GROUP_OPS_MAX = 4096,
	/* How long growing writes are not even tried after the disk was found full. */
	HS_GROUP_DISK_FULL_US = 1000 * 1000,
};

#define HS_GROUP_FULL_TEXT "a store or its disk is full"

struct hs_group_item {
	struct hs_op *op;
	size_t out_mark; /* where its reply begins */
	uint64_t bytes;	 /* of its arguments */
	bool ran;
	bool refused;	 /* when it was last run */
	bool large;	 /* a read whose reply was too large to be written here */
	bool lent;	 /* its worker writes the reply, from a loan */
	bool reply_here; /* its reply is written here, however large */
	bool watches_checked,
		watches_clean; /* an EXEC whose watches were looked at, and what they said */
};

/* What the group knows of one store. */
struct hs_group_part {
	struct hs_keyspace ks;
	bool touched;	  /* has a transaction in this group */
	bool rolled_back; /* lost it: its operations are to be run again */
	bool given_up;	  /* its store was given up: `read` is all that is left */
	struct hs_store_read read;
	bool postpone;	       /* puts off its commit */
	bool retrying;	       /* its operations are run again, one by one, after a checkpoint */
	bool refused;	       /* one of its operations was refused while it was run again */
	uint64_t commit_at_us; /* when what it keeps must be committed */
	uint64_t
		commit_each_until_us; /* until then it keeps nothing: somebody reads what is written */
	uint64_t changes_before;
	uint64_t disk_full_until_us; /* growing writes are not even tried before */
};

struct hs_group {
	struct hs_database *database;
	const struct hs_engine_host *host;
	struct hs_group_part *parts;
	uint16_t *touched; /* stores with a transaction, in the order they got it */
	uint16_t touched_count;
	struct hs_group_item *items;
	size_t count;
	struct hs_prng prng;
	struct hs_keyspace_counts counts;
	bool log_full;	      /* the group did not fit behind the others in its log file */
	bool failed;	      /* for good */
	bool outcome_unknown; /* a restart may find the group's record in the log, or not */
	bool swept;	      /* keys were removed as part of the group */
	uint32_t trackers;    /* workers that want to know which keys change */
	/* Which did in this group and are not told yet, while there are trackers. Told by the
	 * caller when the group is finished, before its answers. */
	struct hs_changed changed;
	struct hs_snapshot_loans *loans; /* NULL: nothing is lent */
	uint64_t number;		 /* of the group */
	bool cut_short;			 /* ends here, so that what comes next finds it committed */
	uint64_t reply_bytes;		 /* of the group's replies */
	uint64_t bytes;			 /* of changes in the group */
	uint64_t begun_us;		 /* when it began */
	/* The time at which its operations run. Not when they were asked: a read in between may have
	 * found a key expired that they must not find alive. */
	int64_t now_ms;
	/* The group that was sealed last: its stores with changes, until those are durable. */
	uint16_t *sealed;
	uint16_t sealed_count;
	uint64_t sealed_begun_us;
	uint64_t logged_us; /* when its sync began */
	/* Waits until what was logged before the group is synced; 0 or a negative errno. NULL when
	 * it always is. */
	int (*barrier)(void *context);
	void *barrier_context;
	char failure[HS_PATH_BYTES_MAX + 256];

	struct hs_engine_counters counters;
	struct hs_counter sync_us;	  /* what a sync usually takes these days */
	_Atomic(const char *) last_error; /* constant text or `failure`; "" when all is well */
};

void hs_group_init(struct hs_group *group, struct hs_database *database,
		   const struct hs_engine_host *host);
void hs_group_deinit(struct hs_group *group);

/* Runs operations of the chain that begins at `op`, as many as fit into the group, and returns how
 * many. Their replies are written, but may still change. */
size_t hs_group_add(struct hs_group *group, struct hs_op *op);
/* Removes up to `limit` expired keys from each store, as part of the group. True when there are
 * more. */
bool hs_group_sweep(struct hs_group *group, size_t limit);
bool hs_group_empty(const struct hs_group *group);
bool hs_group_full(const struct hs_group *group);

/* Ends the group; the next begins empty. Its replies are final. True: they may be sent. False, only
 * if `may_defer`: first what was logged must be synced, by whoever called this. */
bool hs_group_finish(struct hs_group *group, bool may_defer);

/* What was sealed is on disk: that took how long, and its stores count it. Called by hs_group_finish; when
 * that left the sync to the caller, by the thread which has done it, before the next group is
 * finished. */
void hs_group_durable(struct hs_group *group);

/* Between groups: commits what was kept long enough, takes in a finished checkpoint, begins one
 * when enough was written. Says when to come back at the latest. */
uint64_t hs_group_maintain(struct hs_group *group);
/* Waits until everything is in a checkpoint. */
void hs_group_checkpoint(struct hs_group *group);

/* The parts of the work: group_run.c runs one operation, group.c does the rest. */

/* 0: the reply is written, be it a refusal. Else the store's transaction is lost. */
int hs_group_run_op(struct hs_group *group, struct hs_group_item *item) HS_MUSTCHECK;
/* May it make its store larger? */
bool hs_group_grows(struct hs_group *group, const struct hs_op *op);
/* Answers an operation that cannot be done, with the store's failure or the engine's. */
void hs_group_refuse(struct hs_group *group, struct hs_group_item *item);

/* What happens when the disk fails: group_disk.c. */

/* Nothing is written any more. The first reason stays. */
void hs_group_fail(struct hs_group *group, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void hs_group_fail_log(struct hs_group *group, const char *verb, int rc);
/* Waits until the groups before this one are on disk. */
void hs_group_await_log(struct hs_group *group);
/* Readers who were turned away since the last commit: many make the store commit with each group. */
void hs_group_check_redirected_reads(struct hs_group *group, struct hs_store *store);
/* Commits what a store has kept, so that readers see it. */
void hs_group_commit_postponed(struct hs_group *group, struct hs_store *store);
/* Takes back what the group did to a store; its operations are to be run again. */
void hs_group_rollback(struct hs_group *group, uint16_t id);
/* A store could not commit what the log has, and the disk is not just full. */
void hs_group_commit_failed(struct hs_group *group, struct hs_store *store);
/* Makes sure of a transaction to run operations in. */
int hs_group_begin_store(struct hs_group *group, uint16_t id) HS_MUSTCHECK;

#endif
