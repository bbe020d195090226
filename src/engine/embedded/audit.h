/* The audit of a store: reads everything in it and compares what must agree. `heatsink check` and
 * `heatsink repair` run it.
 *
 * LMDB follows the pointers in its pages without checking them: on a damaged page it may read past
 * the end of the file or abort the process. So the caller runs hs_audit_store in a child process.
 * The child reports its progress in memory that it shares with the parent, so that the parent knows
 * how far a dead child came.
 *
 * The audit sees the store as the next start will see it before it replays the log: with the meta
 * pages of the checkpoint. The file's own meta pages do not matter, because every start overwrites
 * them. The audit writes nothing. */
#ifndef HS_ENGINE_EMBEDDED_AUDIT_H
#define HS_ENGINE_EMBEDDED_AUDIT_H

#include "base/check.h"
#include "engine/embedded/checkpoint.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { HS_AUDIT_KEY_MAX = 128, HS_AUDIT_LINES_MAX = 50 };

/* Shared between the two processes. */
struct hs_audit_progress {
	_Atomic uint64_t entries;  /* read so far, in both trees */
	_Atomic uint64_t expected; /* the number of entries that the trees claim to have */
	_Atomic uint64_t keys, expiries;
	_Atomic uint64_t damaged; /* records with a wrong checksum, or under a wrong key */
	/* Expiries that only the record has, or only the tree of expiries. */
	_Atomic uint64_t misfits;
	_Atomic uint64_t metas;	 /* stores with damaged meta pages; the next start restores them */
	_Atomic uint64_t broken; /* faults in the structure of the trees */
	char last[HS_AUDIT_KEY_MAX]; /* the key read last, as text */
};

struct hs_audit {
	const char *folder;
	uint16_t store, partitions;
	uint64_t seed;
	const struct hs_checkpoint_found *checkpoint;
	struct hs_audit_progress *progress;
	FILE *out; /* one line per finding, at most HS_AUDIT_LINES_MAX */
};

/* Reads the store and counts the faults in `progress`. The process must end afterwards: the audit
 * leaves its files and mappings open. */
void hs_audit_store(const struct hs_audit *audit);

/* The key of a physical key as printable text. For a long key, or a damaged one: the physical key
 * itself. */
void hs_audit_key_text(struct hs_bytes physical, char text[HS_AUDIT_KEY_MAX]);

/* Removes the damaged records of a store that is open for writing, appends each to `aside` as one
 * line (physical key and record, escaped), and rebuilds the tree of expiries from the remaining
 * records. `aside` is synced before the removal is committed. Returns the number of removed
 * records, or an error. */
int hs_audit_remove_damaged(struct hs_store *store, uint64_t seed, uint16_t partitions,
			    FILE *aside) HS_MUSTCHECK;

#endif
