/* Copies: a hot value stored under several names on different partitions, so that reads of it spread.
 *
 *     GET k ──┬── partition 0: GET k                              the original
 *             ├── partition 2: GET heatsink:copy:{17}:<id>:5:k    a copy
 *             └── partition 3: GET heatsink:copy:{4}:<id>:5:k     another
 *
 * A set of copies is what one reading of the original left behind: it was taken with DUMP, put where it
 * is with RESTORE, and never changes. The name holds a number that no other set has, so that nothing
 * that was sent for an older set, however late it arrives, can get into a newer one. A set is valid as
 * a cache entry is (absorb/entry.h): it holds one, whose reply lists the names. What reads a copy while
 * the set is valid reads what the original was at the time of the latest proof, or later.
 *
 * A copy may be missing all the same: its lease is over, its server was flushed or had no room. Nobody
 * tells. So an answer that could be that of a missing key is not believed (hs_copies_may_be_missing), and
 * the original is asked.
 *
 * Here is what a set is: names, places, turns, and when to make one. Who asks the engine is
 * absorb/copies/stage.c. Knows no session and no threshold. One thread; a set made by one worker is known to
 * others through the cache entry alone. */
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
	uint64_t process; /* drawn by who makes it: no two makers have the same */
	uint64_t set;	  /* counted by the maker */
};

/* Appends the name of a copy of `key` whose slot lies on the partition now. False: no slot of it was
 * found. */
bool hs_copies_name(const struct hs_slot_map *slots, uint16_t partition,
		    const struct hs_copies_id *id, struct hs_bytes key, struct hs_buf *out);

/* How much each partition has to do, in any unit. */
struct hs_copies_loads {
	double of[HS_PARTITIONS_MAX];
	double all;
};

/* In how many places a value should lie, the original's included; 1: nothing is gained. `auto`: as many
 * as bring what its partition has down to the mean of all, given that the key has `key` of it. */
uint32_t hs_copies_wanted(uint8_t copies, uint32_t partitions, double key, double home, double all);
/* Where `wanted` places are, the quietest partitions first behind `home`; of equally quiet ones which
 * depends on `salt`. Returns how many. */
uint32_t hs_copies_choose(const struct hs_slot_map *slots, const struct hs_copies_loads *loads,
			  uint16_t home, uint32_t wanted, uint64_t salt,
			  uint16_t partitions[HS_COPIES_MAX]);

/* ---- a set ---- */

struct hs_copies_place {
	struct hs_bytes name; /* in the cache entry; empty: the original */
	uint16_t slot;
	uint32_t in_flight;	  /* reads sent and not answered */
	uint32_t rejected_in_row; /* answers in a row that were not believed */
	uint64_t answered_us;	  /* its last answer, or when it was asked with nothing under way */
	uint64_t cool_until_us;	  /* it is not asked before */
	uint64_t reads, rejected; /* sent; of them asked again elsewhere */
};

struct hs_copies {
	uint32_t refs;
	struct hs_cache_entry *entry; /* a reference; its reply lists the names */
	uint32_t next;
	uint32_t count; /* the original is the first place */
	struct hs_copies_place places[];
};

enum {
	HS_COPIES_LEASE_US = 10000000, /* a copy's time to live, renewed three times as often */
	HS_COPIES_SLOW_US = 50000,     /* nothing came back for so long: another place is asked */
	HS_COPIES_COOL_DOWN_US = 1000000, /* so long when it failed */
	HS_COPIES_REJECTED_MAX = 8,	  /* so many in a row not believed: it failed */
};

/* The names of a set as a reply to keep. */
void hs_copies_describe(const struct hs_bytes *names, size_t count, struct hs_buf *out);
/* A set as the cache entry describes it; takes a reference of it. NULL: it does not. */
struct hs_copies *hs_copies_create(struct hs_cache_entry *entry, uint16_t home_slot);
struct hs_copies *hs_copies_ref(struct hs_copies *copies);
void hs_copies_unref(struct hs_copies **copies);

/* Whose turn it is: each in its turn, but for those that are slow or failed. The original always may. */
struct hs_copies_place *hs_copies_next(struct hs_copies *copies, uint64_t now_us);
void hs_copies_place_asked(struct hs_copies_place *place, uint64_t now_us);
/* What it answered. False: that is not to be believed of a copy. */
bool hs_copies_place_answered(struct hs_copies_place *place, uint64_t now_us,
			      struct hs_bytes reply);
/* Two of them lie on one partition by now, or a slot is nobody's. */
bool hs_copies_misplaced(const struct hs_copies *copies, const struct hs_slot_map *slots);

/* Whether a reply is one that a missing key could have given: null, 0, nothing, none, or an error. */
bool hs_copies_may_be_missing(struct hs_bytes reply);

/* ---- when to make one ----
 *
 * A set costs a command or two for each place. One that was ended by a write before it had answered a
 * few reads for each did not pay: the next one waits, each time twice as long. One that paid halves the
 * wait. */
struct hs_copies_backoff {
	uint64_t backoff_us;
};

enum {
	HS_COPIES_BACKOFF_US_MIN = 50000,
	HS_COPIES_BACKOFF_US_MAX = 10000000,
	HS_COPIES_READS_WORTH = 4, /* reads of copies, for each place */
};

/* A set of so many places was ended; it had answered so many reads. */
void hs_copies_backoff(struct hs_copies_backoff *backoff, uint32_t places, uint64_t reads);

#endif
