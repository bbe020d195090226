/* Snapshot loans: snapshots of a store that the committer lends to workers, for reads with large
 * replies.
 *
 * A read goes to the committer when it must run after writes of its connection, or when it wants a
 * key whose commit is postponed. Copying a large value there would delay every client's writes. So the committer
 * stops when it finds that the reply is large, commits all changes before the read, and lends a snapshot of
 * exactly this state. The worker writes the reply itself, when it knows that the client can take it:
 *
 *     committer   … SET k ─ GET k: large ─ commit ─ lend ─ SET k …
 *     worker                                         └─ reads k as of then, gives the loan back
 *
 * Reads of one worker in one group on one store share a loan. A store lends at most HS_STORE_LOANS snapshots; if
 * all are lent, the committer writes the reply itself.
 *
 * The committer's thread gets loans. The worker's thread uses them and gives them back. */
#ifndef HS_ENGINE_EMBEDDED_SNAPSHOT_LOAN_H
#define HS_ENGINE_EMBEDDED_SNAPSHOT_LOAN_H

#include "base/limits.h"
#include "engine/embedded/database.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* A reply of at least this size is large. _MIN_CHANGED applies if the group has changed the store: then the loan
 * ends the group early. _MIN applies otherwise. */
#define HS_SNAPSHOT_LOAN_BYTES_MIN (64 * HS_KIB)
#define HS_SNAPSHOT_LOAN_BYTES_MIN_CHANGED (256 * HS_KIB)

struct hs_snapshot_loan {
	struct hs_store_read read;
	_Atomic bool lent;
	_Atomic uint32_t users; /* number of operations that will read from the snapshot */
	uint32_t worker;
	uint64_t group; /* number of the group in which the snapshot was lent */
};

struct hs_snapshot_loans {
	struct hs_snapshot_loan *loans; /* HS_STORE_LOANS for each store */
	uint16_t stores;
};

void hs_snapshot_loans_init(struct hs_snapshot_loans *loans, struct hs_database *database);
void hs_snapshot_loans_deinit(struct hs_snapshot_loans *loans); /* no operation may use a loan */

/* Lends a snapshot of the last commit to one more operation of `worker`. NULL: all snapshots of the store are
 * lent. */
struct hs_snapshot_loan *hs_snapshot_loan_get(struct hs_snapshot_loans *loans, uint16_t store,
					      uint32_t worker, uint64_t group);
void hs_snapshot_loan_put(struct hs_snapshot_loan *loan);

#endif
