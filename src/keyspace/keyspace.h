/* What commands do to data: Redis 7.0's string, bit, key and expiry commands as functions over one
 * store's transaction. Pure: the time and the random state come in with the call, replies go out
 * through the writer, and nothing here knows a thread, a file, LMDB, a connection or heat. The
 * embedded engine runs it on LMDB, the simulator on a sorted map.
 *
 * Any thread may run a read on its own read transaction; writes run on the store's one writer. */
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

/* What keyspace counts. The owner of the context takes counts back when it takes back what it ran: so they are plain
 * numbers, and the owner shows them with its own counters (engine/engine.h). */
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

/* Whether what was read between the two found none of its keys. */
static inline bool hs_keyspace_missed(const struct hs_keyspace_counts *before,
				      const struct hs_keyspace_counts *after)
{
	return after->misses != before->misses && after->hits == before->hits;
}

enum { HS_DAMAGED_KEY_MAX = 128 };

struct hs_keyspace {
	struct hs_kv *kv;     /* the open transaction */
	int64_t now_ms;	      /* wall clock */
	uint64_t hash_seed;   /* of this database, kept with it: places keys within their slot */
	struct hs_prng *prng; /* RANDOMKEY */
	struct hs_watch_table *watch;	   /* told of every key changed; NULL for readers */
	struct hs_changed *changed;	   /* gets their names; NULL: nobody asks */
	struct hs_keyspace_counts *counts; /* never NULL */
	uint8_t frequency;		   /* what OBJECT FREQ answers for a key that is there */
	uint64_t changes;		   /* keys changed through this context, INFO's dirty */
	/* A key was found whose record fails its checksum: this one, as text. The owner tells of it and
	 * clears `damaged`. */
	bool damaged;
	/* A record whose time is up was found. The owner clears it. */
	bool met_expired;
	char damaged_key[HS_DAMAGED_KEY_MAX];
};

/* Runs one command (place PARTITION, SPLIT, ALL or CURSOR), its number of arguments checked, and
 * writes its whole reply. argv[0] is the name; slot is that of its keys. (The keys of a SPLIT
 * command share a store and not a slot: it finds theirs itself.) Returns 0 when the reply was
 * written, be it an error reply; HS_EFULL or HS_EIO when the store failed: then nothing was written
 * to `reply` by this call, and the transaction must be given up. */
int hs_keyspace_run(struct hs_keyspace *ks, const struct hs_command *command, uint16_t slot,
		    size_t argc, const struct hs_bytes *argv, struct hs_reply *reply) HS_MUSTCHECK;

/* Removes up to `limit` keys whose time is up, oldest first. Returns how many, or an error. */
int hs_keyspace_sweep(struct hs_keyspace *ks, size_t limit) HS_MUSTCHECK;

/* SCAN's cursor: (slot << 48 | hash) of the next key to look at; 0 starts and ends. Read from text
 * as Redis reads it; false when it is none. */
bool hs_keyspace_parse_cursor(struct hs_bytes text, uint64_t *cursor);
static inline uint16_t hs_keyspace_cursor_slot(uint64_t cursor)
{
	return (uint16_t)(cursor >> 48);
}

#endif
