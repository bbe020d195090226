/* The audit of a store: reads everything in it and compares what must agree. `heatsink check` and
 * `heatsink repair` run it.
 *
 * Reading follows the pointers in LMDB's pages, and LMDB does not doubt them: a damaged page can make
 * it read past the file or give up the process. So hs_audit_store runs in a process of its own, and
 * leaves word in memory shared with the process that waits of how far it got.
 *
 * It sees the store as the next start would: with the meta pages of the checkpoint in the place of
 * the file's own, which are therefore of no account. Nothing is written. */
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
	_Atomic uint64_t entries;  /* read so far, of both trees */
	_Atomic uint64_t expected; /* what the trees say they hold */
	_Atomic uint64_t keys, expiries;
	_Atomic uint64_t damaged; /* records that fail their checksum or do not fit their key */
	/* Expiries that records and the tree of expiries do not share. */
	_Atomic uint64_t misfits;
	_Atomic uint64_t metas;	     /* meta pages damaged: a start puts them back */
	_Atomic uint64_t broken;     /* what is wrong with the trees themselves */
	char last[HS_AUDIT_KEY_MAX]; /* the key read last, as text */
};

struct hs_audit {
	const char *folder;
	uint16_t store, partitions;
	uint64_t seed;
	const struct hs_checkpoint_found *checkpoint;
	struct hs_audit_progress *progress;
	FILE *out; /* gets a line for each finding, up to HS_AUDIT_LINES_MAX */
};

/* Reads the store and counts what is wrong in `progress`. The process must end afterwards: what it has
 * opened stays open. */
void hs_audit_store(const struct hs_audit *audit);

/* Its key as text, as far as that can be told. */
void hs_audit_key_text(struct hs_bytes physical, char text[HS_AUDIT_KEY_MAX]);

/* Removes the damaged records of a store that is open for writing, writes each to `aside` as a line
 * (physical key and record, escaped), and makes the tree of expiries anew from the others. Returns
 * how many were removed, or an error. */
int hs_audit_remove_damaged(struct hs_store *store, uint64_t seed, uint16_t partitions,
			    FILE *aside) HS_MUSTCHECK;

#endif
