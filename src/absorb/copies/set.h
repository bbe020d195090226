/* Copies: a hot value stored under several keys on different partitions, so that its reads are spread.
 *
 *     GET k ──┬── partition 0: GET k                              the original
 *             ├── partition 2: GET heatsink:copy:{17}:<id>:5:k    a copy
 *             └── partition 3: GET heatsink:copy:{4}:<id>:5:k     another
 *
 * A set of copies holds one state of the original: read with DUMP, stored with RESTORE, never changed. Its
 * names contain a number that no other set has. So a command for an older set, however late it arrives, cannot
 * touch a newer one. A set is valid like a cache entry (absorb/entry.h): it holds an entry whose reply lists
 * the names. A read of a copy while the set is valid returns the original's value as of the latest liveness
 * check, or a later one.
 *
 * A copy may still be missing: its lease is over, its server was flushed or out of memory. heatsink is not
 * notified. So an answer that a missing key could give is not accepted (hs_copies_may_be_missing), and the
 * original is read. A place that does not answer for HS_COPIES_SLOW_US, or fails, is skipped for a while.
 *
 * This module: what a set is (names, places, whose turn it is) and when to make one. It sends nothing; stage.c
 * and make.c do. Knows no session and no threshold. One thread, the worker's; another worker learns of the set
 * only through the cache entry in the shared cache. */
#ifndef HS_ABSORB_COPIES_H
#define HS_ABSORB_COPIES_H

#include "absorb/entry.h"
#include "base/buf.h"
#include "base/bytes.h"
#include "base/limits.h"
#include "contract/contract.h"
#include "route/slot_map.h"

#include <stdbool.h>
#include <stdint.h>

/* ---- names and places ---- */

struct hs_copies_id {
	/* random number of the process's worker, so that no two makers use the same names */
	uint64_t process;
	uint64_t set; /* counts the maker's sets */
};

/* Appends a name for a copy of `key`; the partition owns the name's slot. False: none of the tried hash tags has
 * a slot of the partition. */
bool hs_copies_name(const struct hs_slot_map *slots, uint16_t partition,
		    const struct hs_copies_id *id, struct hs_bytes key, struct hs_buf *out);

/* Load of each partition, in any unit. */
struct hs_copies_loads {
	double of[HS_PARTITIONS_MAX];
	double all;
};

/* Number of places for a value, the original included; 1: copies gain nothing. For HS_COPIES_AUTO: as many as
 * bring the partition's load down to the mean. `key`, `home`, `all`: load of the key, of its partition, of all
 * partitions. */
uint32_t hs_copies_wanted(uint8_t copies, uint32_t partitions, double key, double home, double all);
/* Chooses `wanted` partitions: `home`, then those with the least load; `salt` decides between equals. Returns
 * how many. */
uint32_t hs_copies_choose(const struct hs_slot_map *slots, const struct hs_copies_loads *loads,
			  uint16_t home, uint32_t wanted, uint64_t salt,
			  uint16_t partitions[HS_COPIES_MAX]);

/* ---- a set ---- */

struct hs_copies_place {
	struct hs_bytes name; /* bytes of the cache entry; empty: the original */
	uint16_t slot;
	uint32_t in_flight;	  /* reads sent and not answered */
	uint32_t rejected_in_row; /* consecutive answers that were not accepted */
	/* time of its last answer, or, if later, when it was sent a read while no other was in flight */
	uint64_t answered_us;
	uint64_t cool_until_us;	  /* not used before this time */
	uint64_t reads, rejected; /* reads sent; answers that were not accepted */
};

struct hs_copies {
	uint32_t refs;
	struct hs_cache_entry *entry; /* a reference; its reply lists the names */
	uint32_t next;
	uint32_t count; /* places; the first is the original */
	struct hs_copies_place places[];
};

enum {
	HS_COPIES_LEASE_US = 10000000, /* TTL of a copy; renewed when a third of it has passed */
	/* without an answer for this long the original is read instead */
	HS_COPIES_SLOW_US = 50000,
	HS_COPIES_COOL_DOWN_US = 1000000, /* a place that failed is skipped for this long */
	/* after as many rejected answers in a row the place counts as failed */
	HS_COPIES_REJECTED_MAX = 8,
};

/* Writes the names of a set as a reply, for its cache entry. */
void hs_copies_describe(const struct hs_bytes *names, size_t count, struct hs_buf *out);
/* Builds a set from the names in the entry's reply, and takes a reference to the entry. NULL: the reply is not
 * a list of names. */
struct hs_copies *hs_copies_create(struct hs_cache_entry *entry, uint16_t home_slot);
struct hs_copies *hs_copies_ref(struct hs_copies *copies);
void hs_copies_unref(struct hs_copies **copies);

/* The next place in turn, skipping slow and failed ones. The original is never skipped. */
struct hs_copies_place *hs_copies_next(struct hs_copies *copies, uint64_t now_us);
void hs_copies_place_asked(struct hs_copies_place *place, uint64_t now_us);
/* Records an answer. False: a copy's answer that must not be accepted. */
bool hs_copies_place_answered(struct hs_copies_place *place, uint64_t now_us,
			      struct hs_bytes reply);
/* True: slots have moved so that two places are on one partition, or a place's slot has no owner. */
bool hs_copies_misplaced(const struct hs_copies *copies, const struct hs_slot_map *slots);

/* Whether a missing key could give this reply: null, false, 0, -1, -2, an empty value, none, or an error. */
bool hs_copies_may_be_missing(struct hs_bytes reply);

/* ---- when to make a set ----
 *
 * Making a set costs a command or two per place. If a write ends it before it has answered a few reads per
 * place, it did not pay: the next one waits, each time twice as long (exponential backoff). A set that paid
 * halves the wait. */
struct hs_copies_backoff {
	uint64_t backoff_us;
};

enum {
	HS_COPIES_BACKOFF_US_MIN = 50000,
	HS_COPIES_BACKOFF_US_MAX = 10000000,
	HS_COPIES_READS_WORTH = 4, /* reads per place from which a set has paid */
};

/* Updates the wait when a set has ended. `places`: the places that it had; `reads`: the reads that its copies
 * answered. */
void hs_copies_backoff(struct hs_copies_backoff *backoff, uint32_t places, uint64_t reads);

#endif
