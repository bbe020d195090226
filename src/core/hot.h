/* The hot keys of one worker: those that take more than `hot-share` of its requests. One table for all
 * mitigations, so that a key is found once and the threshold is tested in one place.
 *
 *     request counted ─ share of the short window ─┬─ at least `share`: the key enters
 *                                                  ├─ at least `share_exit`: it stays
 *                                                  └─ less, for `cool_down_us`: it leaves
 *
 * Each mitigation keeps its own state of a key in `state`. A key that has cooled leaves when none of them
 * has any: what is under way for it comes to its end first.
 *
 * Bounded: HS_HOT_KEYS_MAX keys with HS_HOT_BYTES_MAX bytes of names. A key that finds no room is counted
 * (hot_keys_full) and tried again with its next request.
 *
 * Belongs to the worker's thread. */
#ifndef HS_CORE_HOT_H
#define HS_CORE_HOT_H

#include "base/bytes.h"
#include "base/list.h"
#include "contract/contract.h"
#include "heat/heat.h"

#include <stdbool.h>
#include <stdint.h>

struct hs_call;
struct hs_core;

enum { HS_HOT_STAGES = 8 };

struct hs_hot {
	struct hs_link link; /* in hots->keys */
	struct hs_hot *next; /* in its bucket */
	uint64_t hash;
	uint16_t slot;
	uint64_t since_us;	    /* when it entered */
	struct hs_heat_warmth heat; /* when it was last counted */
	uint64_t seen_us;	    /* when it was last seen hot */
	const struct hs_rule *rule; /* of the core's rules; NULL: none matches */
	/* What the plan decided: a bit for each stage that may act on the key, all of them unless the plan says otherwise. A
	 * stage without its bit is not told that the key is hot, and with the next tick that it has cooled. */
	uint32_t plan;
	void *state[HS_HOT_STAGES]; /* of each stage, by its number in the array; NULL: none */
	size_t key_len;
	char key[];
};

enum { HS_HOT_BUCKETS = 1024 };

struct hs_hot_table {
	struct hs_link keys;
	uint32_t count;
	size_t key_bytes;
	uint64_t seed;
	struct hs_hot *buckets[HS_HOT_BUCKETS]; /* by hash */
	uint16_t
		of_slot[HS_HOT_BUCKETS]; /* how many, by slot: mostly none, and no hash is needed */
};

static inline struct hs_bytes hs_hot_key(const struct hs_hot *hot)
{
	return (struct hs_bytes){hot->key, hot->key_len};
}

void hs_hot_table_init(struct hs_hot_table *hot_table, uint64_t seed);
void hs_hot_table_deinit(struct hs_hot_table *hot_table); /* no stage has state of a key any more */

/* Whether a key of the slot may be hot. */
static inline bool hs_hot_may_have(const struct hs_hot_table *hot_table, uint16_t slot)
{
	return hot_table->of_slot[slot % HS_HOT_BUCKETS] > 0;
}

/* NULL: the key is not hot. */
struct hs_hot *hs_hot_find(const struct hs_hot_table *hot_table, uint16_t slot,
			   struct hs_bytes key);
/* The only key of a call; NULL also if it has several keys, or none. */
struct hs_hot *hs_hot_of_only_key(const struct hs_hot_table *hot_table, struct hs_call *call);
/* The same where its place among the arguments is known, and its slot. */
struct hs_hot *hs_hot_of_call(const struct hs_hot_table *hot_table, struct hs_call *call,
			      size_t at);

/* A request for a key was counted: enters or refreshes the key. Returns it if its share is at least `share`; else
 * NULL. */
struct hs_hot *hs_hot_note(struct hs_core *core, struct hs_heat_warmth heat);
void hs_hot_configure(struct hs_core *core); /* the rules are others */
/* Whether it has had too little for `cool_down_us`. */
bool hs_hot_is_cool(const struct hs_core *core, const struct hs_hot *hot);
/* A key that has cooled leaves, unless a stage has state for it. */
void hs_hot_leave(struct hs_core *core, struct hs_hot *hot);

#endif
