/* The audit of a store: reads all records and expiries and checks that they agree. `heatsink check` and `heatsink
 * repair` run it.
 *
 * LMDB follows the pointers in its pages without checking them: on a damaged page it may read past
 * the end of the file or abort the process. So the caller runs hs_audit_store in a child process.
 * The child reports its progress in memory that it shares with the parent, so that after the child's death the
 * parent knows how much it has read.
 *
 * The audit sees the store as the next start will see it before the start replays the log: with the meta pages of
 * the checkpoint. The file's own meta pages do not matter, because every start overwrites these. The audit writes
 * nothing. */
#ifndef HS_ENGINE_EMBEDDED_AUDIT_H
#define HS_ENGINE_EMBEDDED_AUDIT_H

#include "base/check.h"
#include "engine/embedded/checkpoint.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { HS_AUDIT_KEY_MAX = 128, HS_AUDIT_LINES_MAX = 50 };

/* Shared between the child and its parent. */
struct hs_audit_progress {
	_Atomic uint64_t entries;  /* number of entries read in both trees */
	_Atomic uint64_t expected; /* number of entries that the trees claim to have */
	_Atomic uint64_t keys, expiries;
	_Atomic uint64_t damaged; /* records with a wrong checksum or under a wrong key */
	/* Expiries that are only in a record or only in the tree of expiries. */
	_Atomic uint64_t misfits;
	/* stores whose own meta pages are damaged; the next start restores them */
	_Atomic uint64_t metas;
	_Atomic uint64_t broken;     /* faults in the structure of the trees */
	char last[HS_AUDIT_KEY_MAX]; /* the last key read, as text */
};

struct hs_audit {
	const char *folder;
	uint16_t store, partitions;
	uint64_t seed;
	const struct hs_checkpoint_found *checkpoint;
	struct hs_audit_progress *progress;
	FILE *out; /* one line per finding, at most HS_AUDIT_LINES_MAX */
};

/* Reads the store and counts the faults in `progress`. The process must end afterwards, because the audit leaves
 * its files and mappings open. */
void hs_audit_store(const struct hs_audit *audit);

/* Writes to `text` the key that a physical key stands for, in printable characters. For a long or damaged key: the
 * physical key itself. */
void hs_audit_key_text(struct hs_bytes physical, char text[HS_AUDIT_KEY_MAX]);

/* Removes the damaged records of a store that is open for writing, appends each to `aside` as one
 * line (physical key and record, escaped), and rebuilds the tree of expiries from the remaining
 * records. The function syncs `aside` before it commits the removal. Returns the number of removed records, or an
 * error. */
int hs_audit_remove_damaged(struct hs_store *store, uint64_t seed, uint16_t partitions,
			    FILE *aside) HS_MUSTCHECK;

#endif
