/* Heat: which keys, key prefixes, slots and partitions are hot. One worker's counters, and the merged view of
 * all workers.
 *
 * The worker's side counts every access in three tables (heat/table.h: keys and key prefixes; heat/slots.c:
 * slots), for its partition, and for one of 256 ranges of slots. The tables decay exponentially, over two
 * windows at once: a short one to react and a long one to show. Partitions and ranges count since the start;
 * the totals of a key's row count since a worker found it hot.
 *
 *     access ─ note ─┬─ keys      8-way sets, 4096 entries, lower and upper bounds
 *                    ├─ prefixes  the key up to its first, second and third ':'
 *                    ├─ slots     the hottest in detail, the others bounded by their range
 *                    ├─ partition exact, with a histogram of times
 *                    └─ range     exact
 *
 * The reader's side may be called from any thread at any time. It never stops the worker: each field is read
 * atomically, and a set that changes meanwhile is read again, up to 1,000 times; then the set counts as unknown
 * (bounds of infinity).
 *
 * Knows nothing of RESP, of commands, or of what is done about heat. A full set of eight evicts its entry with
 * the lowest score; the new key continues from that score, so upper bounds stay true. Memory is fixed at
 * creation: 256 KiB per worker with eight partitions, however many keys there are; each further partition takes
 * 432 bytes. */
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
	HS_HEAT_SHORT_US = 80000, /* after this time a request's weight is 1/e */
	HS_HEAT_LONG_US = 10000000,
	HS_HEAT_NAME_BYTES = 80,    /* stored bytes of a key; the rest of a longer one is cut */
	HS_HEAT_PREFIX_LEVELS = 3,  /* a:b:c:d counts as a: and a:b: and a:b:c: */
	HS_HEAT_PREFIX_BYTES = 128, /* a ':' further into a key is not looked for */
	HS_HEAT_RANGES = 256,	    /* each of HS_SLOTS / 256 slots */
	HS_HEAT_DETAILS_MAX = 254,  /* detail records of one table */
	HS_HEAT_NOTES_MAX = 64,	    /* accesses noted before they are settled */
};

struct hs_heat_options {
	uint64_t seed; /* equal for all workers of a process, so that their tables can be merged */
	/* seeds of public_id, equal for all workers; independent of `seed` */
	uint64_t name_seeds[2];
	uint16_t partitions;
	/* sets of 8 entries; a power of two; 0: the usual 512. Tests use small ones. */
	uint32_t key_sets;
};

struct hs_heat *hs_heat_create(const struct hs_heat_options *options);
void hs_heat_destroy(struct hs_heat **heat);

/* ---- the worker's side: one thread ---- */

struct hs_heat_access {
	struct hs_bytes key; /* must stay valid until the note is settled */
	uint64_t bytes;	     /* of the request and reply, as far as they belong to this key */
	uint16_t slot;
	uint16_t partition;
	bool write;
	bool failed;	 /* answered with an error */
	bool missed;	 /* a read of a key that does not exist */
	bool conflicted; /* a conditional write, or a transaction, that did not run */
};

/* Sets the time of the following accesses. Time that goes backwards counts as standing still. */
void hs_heat_now(struct hs_heat *heat, uint64_t mono_us);

/* Counts accesses whose time is known only together: note each one, then settle all with `each_ns`. The caller
 * must settle before it notes more than HS_HEAT_NOTES_MAX. */
void hs_heat_note(struct hs_heat *heat, const struct hs_heat_access *access);
/* Lower bound of a key's rate in the short window, this access included; 0 if the key has no detail record. */
struct hs_heat_warmth {
	double requests;
	double share;	     /* of all counted requests */
	struct hs_bytes key; /* the access's key */
	uint16_t slot;	     /* the access's slot */
};
/* Returns the warmth of the last noted key. */
struct hs_heat_warmth hs_heat_settle(struct hs_heat *heat, uint64_t each_ns);
/* Counts one access. */
struct hs_heat_warmth hs_heat_add(struct hs_heat *heat, const struct hs_heat_access *access,
				  uint64_t time_ns);
/* Counts consecutive accesses of one key as one, each with its time. Equal ones with the same time are counted
 * when a different one follows, or by hs_heat_run_end. The key's bytes must stay valid until then. */
void hs_heat_run_add(struct hs_heat *heat, const struct hs_heat_access *access, uint64_t time_ns);
struct hs_heat_warmth hs_heat_run_end(struct hs_heat *heat);
/* Counts an access without a key: SCAN, DBSIZE. */
void hs_heat_add_keyless(struct hs_heat *heat, uint16_t partition, bool write, bool failed,
			 uint64_t bytes, uint64_t time_ns);
/* Adds `change` to the operations that were sent to a partition and not answered. */
void hs_heat_inflight(struct hs_heat *heat, uint16_t partition, int change);

/* ---- the reader's side: any thread ---- */

/* Clears the tables: at once for readers, by the worker at its next hs_heat_now. Partitions and ranges count
 * on. */
void hs_heat_reset(struct hs_heat *heat, uint64_t now_us);

/* Monotonic µs of the worker's last hs_heat_now; an old value shows a stuck worker. */
uint64_t hs_heat_seen_us(const struct hs_heat *heat);

/* Counted since the start. The functions add to what `sum` holds. */
struct hs_heat_partition {
	uint64_t reads, writes, bytes, errors;
	uint64_t time_ns;				 /* sum of the times of all requests */
	int64_t inflight;				 /* at this moment */
	uint64_t histogram[HS_COARSE_HISTOGRAM_BUCKETS]; /* of times in µs */
};
void hs_heat_read_partition(const struct hs_heat *heat, uint16_t id, struct hs_heat_partition *sum);
void hs_heat_read_ranges(const struct hs_heat *heat, uint64_t sum[HS_HEAT_RANGES]);

/* ---- the merged view: heat/merge.c ---- */

/* A key, prefix or slot over all workers. Rates are per second, from the window's decayed weights, corrected
 * while a window is not full yet. The true rate lies between *_low and *_high. */
struct hs_heat_rates {
	double ops_low, ops_high;
	double reads, writes; /* lower bounds; they sum to ops_low */
	double bytes_low, bytes_high;
	double misses, conflicts; /* lower bounds */
};

struct hs_heat_row {
	/* the tables' hash of the name; secret: a client that knows it could craft keys that collide */
	uint64_t id;
	uint64_t public_id; /* another hash of the name, safe to show */
	char name[HS_HEAT_NAME_BYTES];
	uint32_t name_len; /* bytes in `name` */
	uint32_t full_len; /* length of the whole name; more than name_len if it was cut */
	uint16_t slot;	   /* of keys and slots */
	uint16_t partition;
	struct hs_heat_rates window[HS_HEAT_WINDOWS];
	double p50_us, p99_us; /* over the long window; 0: unknown */
	/* Exact since each worker found the key hot, not before. They restart at 0 when the key cools and
	 * becomes hot again. */
	uint64_t total_reads, total_writes, total_bytes, total_ns;
	uint64_t total_since_us; /* when the oldest of them started; 0: unknown */
	uint32_t workers;	 /* number of workers that have it in their table */
};

enum hs_heat_by {
	HS_HEAT_BY_OPS,
	HS_HEAT_BY_READS,
	HS_HEAT_BY_WRITES,
	HS_HEAT_BY_BYTES,
	HS_HEAT_BY_LATENCY, /* by p99_us */
	HS_HEAT_BY_MISSES,
	HS_HEAT_BY_CONFLICTS,
};

struct hs_heat_query {
	enum hs_heat_what what;
	enum hs_heat_by by; /* ranks by lower bounds */
	enum hs_heat_window window;
	struct hs_bytes starts; /* only names with this prefix; empty: all */
};

/* Writes the hottest rows, hottest first, at most `max`; returns how many. Leaves out entries without a detail
 * record in any worker, which have no name, and those that have cooled to less than half a request in the
 * window (by bytes, misses and conflicts: less than a thousandth). */
size_t hs_heat_top(struct hs_heat *const *heats, size_t heats_count,
		   const struct hs_heat_query *query, uint64_t now_us, struct hs_heat_row *rows,
		   size_t max);

/* One key, prefix or slot (then its number is in `slot` and `name` is empty), in a table or not. If it is in
 * none, its lower bounds are 0, its upper bounds are those of untracked names, and `workers` is 0. */
void hs_heat_find(struct hs_heat *const *heats, size_t heats_count, enum hs_heat_what what,
		  struct hs_bytes name, uint16_t slot, uint64_t now_us, struct hs_heat_row *row);

/* The public_id of a name: a hash of its hash, with two seeds, so that clients cannot compute either from names
 * and ids. */
uint64_t hs_heat_public_id(const struct hs_heat *heat, struct hs_bytes name);

/* Requests per second for all keys; the denominator of every share. */
double hs_heat_total(struct hs_heat *const *heats, size_t heats_count, enum hs_heat_window window,
		     uint64_t now_us);

#endif
