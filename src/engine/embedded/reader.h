/* The reads of one worker, on the worker's thread, straight from the stores' maps: no lock, no copy
 * before the reply, no allocation.
 *
 * For each store the reader holds one snapshot and uses it as long as it is the newest. The store's commit count
 * goes up after a commit is visible and before its clients are answered, so if the count has not changed, the
 * snapshot is current. hs_reader_refresh begins a new batch. In each batch the reader reads a store's count once,
 * at the first read of the store. The count is read before the snapshot is taken, never after: a snapshot is at
 * least as new as its count.
 *
 * The clock of a read is the time its request was received, or the time of the newest write in the
 * snapshot if that is later. A write can be newer when the worker's thread was suspended in
 * between; with the time of receipt PTTL would be more than the time to live.
 *
 * Three kinds of reads go to the writer's queue instead:
 *   - a read that meets an expired key: a write may have run that found the key alive and is not
 *     visible yet;
 *   - a read of a key with a postponed commit (marked in store->changed_in), or of all keys of a store that has
 *     such a key; this read also makes the store commit soon;
 *   - any read when LMDB refuses a snapshot and there is no fallback environment (store.h).
 *
 * As long as a snapshot is open, LMDB cannot reuse its pages: hs_reader_idle releases snapshots that are not
 * used. */
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
	uint64_t batch; /* the batch in which the store's commit count was last read */
	bool used;	/* the snapshot was used since the last hs_reader_idle */
};

struct hs_reader {
	const struct hs_database *database;
	struct hs_reader_store *stores;
	const struct hs_engine_host *host; /* for the host's clock */
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

/* Runs a read-only command and writes its reply. False: nothing is written, because only the writer can answer;
 * the caller queues the operation for the writer. */
bool hs_reader_run(struct hs_reader *reader, struct hs_op *op);

/* Writes the reply of a read, or of a read-only transaction, from a lent snapshot. */
void hs_reader_run_loan(struct hs_reader *reader, struct hs_snapshot_loan *loan, struct hs_op *op);

/* Releases the snapshots that were not used since the last call, so that LMDB can reuse their
 * pages. */
void hs_reader_idle(struct hs_reader *reader);

#endif
