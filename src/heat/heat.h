/* The front door of heat: what one worker has seen of its requests, and the merged view of all.
 *
 * The worker's side counts every access in three tables (heat/table.h: keys and key prefixes;
 * heat/slots.c: slots, in the same shapes), for its partition, and for one of 256 ranges of slots.
 * What the tables hold decays exponentially, over two windows at once: a short one to react and a
 * long one to look at. What partitions, ranges and totals hold is counted since the start.
 *
 *     access ─ note ─┬─ keys      8-way sets, 4096 entries, lower and upper bounds
 *                    ├─ prefixes  the key up to its first, second and third ':'
 *                    ├─ slots     by a map; the hottest in detail, the others bounded by their range
 *                    ├─ partition exact, with a ladder of times
 *                    └─ range     exact
 *
 * The reader's side may be called from any thread at any time. It never stops the worker: every
 * field is read by itself, and a set whose entries changed hands meanwhile is read again.
 *
 * Knows nothing of RESP, commands, or what anyone does about heat. All of it fits 256 KiB per
 * worker with eight partitions, however many keys there are; a partition more is 432 bytes. */
#ifndef HS_HEAT_HEAT_H
#define HS_HEAT_HEAT_H

#include "base/bytes.h"
#include "base/check.h"
#include "base/coarse_histogram.h"
#include "base/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hs_heat;

enum hs_heat_window { HS_HEAT_SHORT, HS_HEAT_LONG, HS_HEAT_WINDOWS };
enum hs_heat_what { HS_HEAT_KEYS, HS_HEAT_PREFIXES, HS_HEAT_SLOTS, HS_HEAT_TABLES };

enum {
	HS_HEAT_SHORT_US = 80000, /* a request weighs 1/e after this long */
	HS_HEAT_LONG_US = 10000000,
	HS_HEAT_NAME_BYTES = 80,    /* of a key that are kept; the rest of a longer one is not */
	HS_HEAT_PREFIX_LEVELS = 3,  /* a:b:c:d counts as a: and a:b: and a:b:c: */
	HS_HEAT_PREFIX_BYTES = 128, /* no further into a key is a ':' looked for */
	HS_HEAT_RANGES = 256,	    /* of HS_SLOTS / 256 slots each */
	HS_HEAT_DETAILS_MAX = 254,  /* of one table, that have a name */
	HS_HEAT_NOTES_MAX = 64,	    /* accesses noted and not settled */
};

struct hs_heat_options {
	uint64_t seed;		/* the same for all workers of a process: their tables must merge */
	uint64_t name_seeds[2]; /* for `shown`, likewise; independent of `seed` */
	uint16_t partitions;
	uint32_t key_sets; /* of 8; a power of two; 0: the usual 512. Small ones are for tests. */
};

struct hs_heat *hs_heat_create(const struct hs_heat_options *options);
void hs_heat_destroy(struct hs_heat **heat);

/* ---- the worker's side: one thread ---- */

struct hs_heat_access {
	struct hs_bytes key; /* note: valid until settled */
	uint64_t bytes;	     /* of the request and its reply that belong to this key */
	uint16_t slot;
	uint16_t partition;
	bool write;
	bool failed;	 /* answered with an error */
	bool missed;	 /* a read that found nothing */
	bool conflicted; /* a conditional write, or a transaction, that did not take place */
};

/* The time of what comes next. Time that goes back is taken as standing still. */
void hs_heat_now(struct hs_heat *heat, uint64_t mono_us);

/* Counts accesses whose time is known only together: noted one by one, settled at once, each with
 * `each_ns`. A note beyond HS_HEAT_NOTES_MAX must not happen: settle first. */
void hs_heat_note(struct hs_heat *heat, const struct hs_heat_access *access);
/* What a key has had for certain over the short window, this access included; 0 of one that is not
 * among the hottest. */
struct hs_heat_warmth {
	double requests;
	double share;	     /* of all that were counted */
	struct hs_bytes key; /* of the access */
	uint16_t slot;	     /* of it */
};
/* That of the last one that was noted. */
struct hs_heat_warmth hs_heat_settle(struct hs_heat *heat, uint64_t each_ns);
/* Counts one access now. */
struct hs_heat_warmth hs_heat_add(struct hs_heat *heat, const struct hs_heat_access *access,
				  uint64_t time_ns);
/* Counts accesses of one key that follow each other as one, where each has its time: those alike, with the same
 * time, are counted by the next one that differs or by hs_heat_run_end. The key's bytes stay until then. */
void hs_heat_run_add(struct hs_heat *heat, const struct hs_heat_access *access, uint64_t time_ns);
struct hs_heat_warmth hs_heat_run_end(struct hs_heat *heat);
/* Counts what concerns a partition and no key: SCAN, DBSIZE. */
void hs_heat_add_keyless(struct hs_heat *heat, uint16_t partition, bool write, bool failed,
			 uint64_t bytes, uint64_t time_ns);
/* Operations sent to a partition and not answered: one more, one less. */
void hs_heat_inflight(struct hs_heat *heat, uint16_t partition, int change);

/* ---- the reader's side: any thread ---- */

/* Everything counted in the tables so far is forgotten: at once for readers, by the worker when it
 * next looks at the time. Partitions and ranges count on. */
void hs_heat_reset(struct hs_heat *heat, uint64_t now_us);

/* When the worker last told the time: who is stuck falls behind. */
uint64_t hs_heat_seen_us(const struct hs_heat *heat);

/* Counted since the start, added to what `sum` holds. */
struct hs_heat_partition {
	uint64_t reads, writes, bytes, errors;
	uint64_t time_ns;				 /* all their times added up */
	int64_t inflight;				 /* now */
	uint64_t histogram[HS_COARSE_HISTOGRAM_BUCKETS]; /* of times in µs */
};
void hs_heat_read_partition(const struct hs_heat *heat, uint16_t id, struct hs_heat_partition *sum);
void hs_heat_read_ranges(const struct hs_heat *heat, uint64_t sum[HS_HEAT_RANGES]);

/* ---- the merged view: heat/merge.c ---- */

/* A key, prefix or slot over all workers. Rates are per second, over the window's decaying weights,
 * and corrected for a window that is not full yet. The truth lies between *_low and *_high. */
struct hs_heat_rates {
	double ops_low, ops_high;
	double reads, writes; /* low: add up to ops_low */
	double bytes_low, bytes_high;
	double misses, conflicts; /* low */
};

struct hs_heat_row {
	uint64_t id;	    /* of the key, as the tables know it: a secret, who knows it can aim */
	uint64_t public_id; /* another hash of it, to tell keys apart by */
	char name[HS_HEAT_NAME_BYTES];
	uint32_t name_len; /* bytes in `name` */
	uint32_t full_len; /* of the key: more than name_len when it is cut */
	uint16_t slot;	   /* keys and slots */
	uint16_t partition;
	struct hs_heat_rates window[HS_HEAT_WINDOWS];
	double p50_us, p99_us; /* over the long window; 0 when not known */
	/* Exact, since the key became hot in each worker; what it was before is not in them. They
	 * start again when it cools and comes back. */
	uint64_t total_reads, total_writes, total_bytes, total_ns;
	uint64_t total_since_us; /* when the oldest of them started; 0 when not known */
	uint32_t workers;	 /* how many of them have it in their table */
};

enum hs_heat_by {
	HS_HEAT_BY_OPS,
	HS_HEAT_BY_READS,
	HS_HEAT_BY_WRITES,
	HS_HEAT_BY_BYTES,
	HS_HEAT_BY_LATENCY, /* p99_us */
	HS_HEAT_BY_MISSES,
	HS_HEAT_BY_CONFLICTS,
};

struct hs_heat_query {
	enum hs_heat_what what;
	enum hs_heat_by by; /* the certain part of it: low bounds */
	enum hs_heat_window window;
	struct hs_bytes starts; /* only names that start like this; empty: all */
};

/* The hottest, hottest first, at most `max`. Names that no worker knows (all but the hottest) and
 * what has cooled to less than half a request in the window (by bytes, misses and conflicts: less
 * than a thousandth) are left out. Returns how many. */
size_t hs_heat_top(struct hs_heat *const *heats, size_t heats_count,
		   const struct hs_heat_query *query, uint64_t now_us, struct hs_heat_row *rows,
		   size_t max);

/* One key, prefix or slot (its number in `slot`, `name` empty), tracked or not. An untracked one
 * has low bounds of 0 and the upper bounds of what may have been missed, and `workers` 0. */
void hs_heat_find(struct hs_heat *const *heats, size_t heats_count, enum hs_heat_what what,
		  struct hs_bytes name, uint16_t slot, uint64_t now_us, struct hs_heat_row *row);

/* The `shown` of a name: a hash of its hash, each with a seed of its own, so that neither can be
 * computed from pairs of names and hashes. */
uint64_t hs_heat_public_id(const struct hs_heat *heat, struct hs_bytes name);

/* All requests of all keys, per second, exact but for decay: what shares are shares of. */
double hs_heat_total(struct hs_heat *const *heats, size_t heats_count, enum hs_heat_window window,
		     uint64_t now_us);

#endif
