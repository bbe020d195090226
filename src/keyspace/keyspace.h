/* Commands on data: Redis 7.0's string, bit, key and expiry commands as functions over one
 * store's transaction. Pure: the time and the random state come in with the call, and replies go
 * out through the reply writer. Nothing here knows a thread, a file, LMDB, a connection or heat.
 * The embedded engine runs it on LMDB, the simulator on a sorted map.
 *
 * Any thread may run reads on its own read transaction; writes run on the store's one writer. Each
 * thread has its own struct hs_keyspace. Arguments are borrowed for the call. A full store is
 * HS_EFULL, and the transaction must be aborted (hs_keyspace_run); a damaged record is an error
 * reply that names the key. */
#ifndef HS_KEYSPACE_KEYSPACE_H
#define HS_KEYSPACE_KEYSPACE_H

#include "base/bytes.h"
#include "base/check.h"
#include "base/counter.h"
#include "base/prng.h"
#include "command/command.h"
#include "keyspace/kv.h"
#include "wire/reply.h"

#include <stdbool.h>
#include <stdint.h>

struct hs_watch_table;
struct hs_changed;

/* The counts of the keyspace. The fields are plain numbers, so that the owner of a struct
 * hs_keyspace can save them before a run and restore them when it discards the run (reply too
 * large, key expired). The owner shows them with its own counters (engine/engine.h). A transaction
 * that is run again after HS_EFULL counts again. */
/* clang-format off */
#define HS_KEYSPACE_COUNTERS(ROW) \
	ROW(expired, HS_COUNTER, "Stats", "expired_keys", "expired_keys_total", \
	    "Keys removed because their time was over", .engine = "embedded") \
	ROW(hits, HS_COUNTER, "Stats", "keyspace_hits", "keyspace_hits_total", \
	    "Keys looked up and found", .engine = "embedded") \
	ROW(misses, HS_COUNTER, "Stats", "keyspace_misses", "keyspace_misses_total", \
	    "Keys looked up and not found", .engine = "embedded")
/* clang-format on */

struct hs_keyspace_counts {
	HS_KEYSPACE_COUNTERS(HS_COUNTER_NUMBER)
};

/* Whether every key that was looked up between the two snapshots was missing. */
static inline bool hs_keyspace_missed(const struct hs_keyspace_counts *before,
				      const struct hs_keyspace_counts *after)
{
	return after->misses != before->misses && after->hits == before->hits;
}

enum { HS_DAMAGED_KEY_MAX = 128 };

struct hs_keyspace {
	struct hs_kv *kv;	      /* the open transaction */
	int64_t now_ms;		      /* wall clock */
	uint64_t hash_seed;	      /* secret of the database: places keys within their slot */
	struct hs_prng *prng;	      /* RANDOMKEY */
	struct hs_watch_table *watch; /* touched for every changed key; NULL for readers */
	struct hs_changed *changed;   /* gets the names of changed keys; NULL: no client tracks */
	struct hs_keyspace_counts *counts; /* never NULL */
	uint8_t frequency;		   /* reply of OBJECT FREQ for an existing key */
	uint64_t changes;		   /* keys changed through this struct */
	/* Set when a record failed its checksum; damaged_key is that key, escaped. The owner logs
	 * it and resets this. */
	bool damaged;
	/* Set when a command met an expired record. The owner resets it. */
	bool met_expired;
	char damaged_key[HS_DAMAGED_KEY_MAX];
};

/* Runs one command (place PARTITION, SPLIT, ALL or CURSOR) and writes its whole reply. argv[0] is
 * the name; the number of arguments is checked before. `slot` is that of the keys, but a SPLIT
 * command computes the slot of each key.
 *
 * 0: a reply was written, perhaps an error. Negative: `reply` is as long as before the call.
 *   HS_EFULL, HS_EIO  The store failed. A writer must abort the transaction, with all commands that
 *                     ran in it, and set ks->changes back to its value before them. Then it runs
 *                     them again or replies with an error; the embedded engine runs each one alone,
 *                     and one that still finds no room gets "-OOM store full"
 *                     (engine/embedded/group.h). Watch marks and noted changes stay: they may
 *                     report a change that did not happen, which is safe. A reader (HS_EIO) replies
 *                     with an error.
 *   HS_EBUSY          Only in a reader's transaction, which stays valid: only the writer can answer
 *                     this read (keyspace/kv.h), so the engine queues it for the writer. */
int hs_keyspace_run(struct hs_keyspace *ks, const struct hs_command *command, uint16_t slot,
		    size_t argc, const struct hs_bytes *argv, struct hs_reply *reply) HS_MUSTCHECK;

/* Removes up to `limit` expired keys, oldest first. Returns their number, or a negative error: then
 * the transaction must be aborted. */
int hs_keyspace_sweep(struct hs_keyspace *ks, size_t limit) HS_MUSTCHECK;

/* SCAN's cursor: (slot << 48 | hash) of the next key; 0 starts and ends. Parsed as Redis parses it;
 * false when it is invalid. */
bool hs_keyspace_parse_cursor(struct hs_bytes text, uint64_t *cursor);
static inline uint16_t hs_keyspace_cursor_slot(uint64_t cursor)
{
	return (uint16_t)(cursor >> 48);
}

#endif
