/* The reads of one worker, on its own thread, straight from the stores' maps: no lock, no copy
 * before the reply, no allocation.
 *
 * For each store it keeps one snapshot and uses it for as long as it is the newest. A store's
 * commit count says so: it goes up after a commit is visible and before anybody is told of it.
 * Refresh only marks that the counts must be looked at again; each is then read once per batch, at
 * the first read of its store. The count is read before the snapshot is taken, never after, so a
 * snapshot is at least as new as the count remembered for it.
 *
 * A read is dated when its request was received, but never before the data in its snapshot was written:
 * the worker may have been kept from going on in between, and PTTL would answer more than the time to live.
 *
 * A worker does not say by itself that a key has expired: a write that found the key alive may have run and not be
 * shown yet. Such a read is turned away to the writer's queue, too.
 *
 * The writer may answer before it commits (hs_store_postpone_commit). What it changed so is told by stamps:
 * a read of such a key is turned away to the writer's queue, and makes it commit soon. */
#ifndef HS_ENGINE_EMBEDDED_READER_H
#define HS_ENGINE_EMBEDDED_READER_H

#include "base/prng.h"
#include "core/op.h"
#include "engine/embedded/database.h"
#include "engine/embedded/snapshot_loan.h"
#include "engine/engine.h"
#include "keyspace/keyspace.h"

#include <stdbool.h>
#include <stdint.h>

struct hs_reader_store {
	struct hs_store_read read;
	struct hs_keyspace ks;
	uint64_t batch; /* the one it was last looked at in */
	bool used;	/* since the last idle */
};

struct hs_reader {
	const struct hs_database *database;
	struct hs_reader_store *stores;
	const struct hs_engine_host *host; /* its clock */
	uint16_t count;
	uint64_t batch;
	struct hs_prng prng;
	struct hs_keyspace_counts counts;
	struct hs_engine_counters counters;
};

void hs_reader_init(struct hs_reader *reader, struct hs_database *database,
		    const struct hs_engine_host *host, uint32_t worker);
void hs_reader_deinit(struct hs_reader *reader);

static inline void hs_reader_refresh(struct hs_reader *reader)
{
	reader->batch++;
}

/* Runs a read-only command and writes its reply. False, with nothing done, when it wants a key that
 * only the writer knows yet: then it must queue. */
bool hs_reader_run(struct hs_reader *reader, struct hs_op *op);

/* Writes the reply of a read, or of a transaction that only reads, from a snapshot that the writer has
 * lent for it. */
void hs_reader_run_loan(struct hs_reader *reader, struct hs_snapshot_loan *loan, struct hs_op *op);

/* Gives back snapshots not used since the last call, so that their pages can be used again. */
void hs_reader_idle(struct hs_reader *reader);

#endif
